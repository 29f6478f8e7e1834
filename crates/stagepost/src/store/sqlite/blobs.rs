//! Payloads in the database: pieces, each once, and lists of pieces.

use std::borrow::Cow;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, OptionalExtension, params};

use super::super::blob::{Cut, Cutter, Piece, PieceList, Prepared, WHOLE, decode, encode};
use super::super::{Batch, Error};
use super::write::{Outcome, Writing, short};
use super::{SqliteStore, db, lock};
use crate::model::{BlobRef, Hash};

/// A list that differs from one that differs from one … is followed so many times at most.
const DEEPEST: i64 = 32;

/// The payloads written last, so that their continuations are cheap to write and they are cheap to read.
#[derive(Default)]
pub(super) struct Recent(Mutex<Vec<Arc<RecentBlob>>>);

/// A payload with the numbers it was stored under.
pub(super) struct RecentBlob {
    pub(super) prepared: Prepared,
    number: i64,
    depth: i64,
    pieces: Vec<i64>,
}

impl Recent {
    const MOST: usize = 16;
    const MOST_BYTES: usize = 32 << 20;

    pub(super) fn get(&self, blob: &BlobRef) -> Option<Arc<RecentBlob>> {
        let recent = lock(&self.0);
        recent.iter().find(|recent| recent.prepared.blob == *blob).cloned()
    }

    /// Keeps a payload in place of the one it continues, which nobody will continue again.
    fn keep(&self, blob: RecentBlob) {
        if blob.prepared.bytes.len() > Self::MOST_BYTES / 4 {
            return;
        }
        let mut recent = lock(&self.0);
        let base = blob.prepared.base;
        recent.retain(|other| other.prepared.blob != blob.prepared.blob && Some(other.prepared.blob) != base);
        recent.push(Arc::new(blob));
        let mut bytes: usize = recent.iter().map(|recent| recent.prepared.bytes.len()).sum();
        while recent.len() > Self::MOST || bytes > Self::MOST_BYTES {
            bytes -= recent.remove(0).prepared.bytes.len();
        }
    }

    /// Forgets everything, because numbers may mean something else from now on.
    pub(super) fn clear(&self) {
        lock(&self.0).clear();
    }
}

/// A list of pieces as stored.
struct StoredBlob {
    number: i64,
    depth: i64,
    pieces: Vec<i64>,
}

impl SqliteStore {
    /// Compresses before the write lock is taken what will probably have to be written.
    pub(super) fn pack_ahead(&self, batch: &mut Batch) -> Result<(), Error> {
        for payload in &mut batch.payloads {
            let recent = payload.base.and_then(|base| self.recent.get(&base));
            let known = recent.map_or(0, |recent| agreeing(&recent.prepared.pieces, &payload.pieces));
            let many = payload.pieces.len() - known > 8;
            let missing = |piece: &Piece| -> Result<bool, Error> {
                Ok(!many || self.read(|connection| find_piece(connection, &piece.hash))?.is_none())
            };
            let mut packed = Vec::with_capacity(payload.pieces.len() - known);
            for piece in &payload.pieces[known..] {
                packed.push(if missing(piece)? { Some(payload.encoded(piece).into_owned()) } else { None });
            }
            payload.packed = packed;
        }
        Ok(())
    }

    /// Reads a payload from the database and checks it.
    pub(super) fn load_stored(&self, blob: &BlobRef) -> Result<Vec<u8>, Error> {
        let size = usize::try_from(blob.size).map_err(|_| Error::MissingBlob { blob: *blob })?;
        let bytes = self.read(|connection| {
            let pieces = pieces_of(connection, blob)?;
            // The size comes from a record that may be damaged: it must not make us ask for all memory at once.
            let mut bytes = Vec::with_capacity(size.min(64 << 20));
            read_pieces(connection, &pieces, &mut bytes)?;
            Ok(bytes)
        })?;
        if bytes.len() != size || Hash::of(&bytes) != blob.hash {
            return Err(unlike(blob));
        }
        Ok(bytes)
    }

    pub(super) fn open_stream(&self, blob: &BlobRef) -> Result<Box<dyn Read + '_>, Error> {
        let pieces = self.read(|connection| pieces_of(connection, blob))?;
        Ok(Box::new(Stream {
            store: self,
            blob: *blob,
            pieces,
            next: 0,
            buffer: Vec::new(),
            at: 0,
            hasher: blake3::Hasher::new(),
            seen: 0,
        }))
    }

    pub(super) fn put_stream(&self, source: &mut dyn Read, cut: Cut) -> Result<BlobRef, Error> {
        let mut buffer = Vec::new();
        source.take(READ_AHEAD as u64).read_to_end(&mut buffer).map_err(Error::Source)?;
        if buffer.len() < READ_AHEAD {
            return self.put_small(Prepared::new(buffer, cut, None, None));
        }
        let mut put = Put::new(self, cut);
        let mut ended = false;
        loop {
            put.cut_off(&mut buffer, ended)?;
            if ended {
                return put.finish();
            }
            let before = buffer.len();
            source.take(READ_AHEAD as u64).read_to_end(&mut buffer).map_err(Error::Source)?;
            ended = buffer.len() == before;
        }
    }

    fn put_small(&self, payload: Prepared) -> Result<BlobRef, Error> {
        let blob = payload.blob;
        self.submit(Box::new(move |writing| writing.store_payload(&payload).map(|()| Outcome::Done)))?;
        Ok(blob)
    }
}

/// How much of a stream is held in memory at once.
const READ_AHEAD: usize = 4 << 20;

/// A stream on its way into the store.
struct Put<'a> {
    store: &'a SqliteStore,
    cutter: Cutter,
    hasher: blake3::Hasher,
    size: u64,
    pieces: Vec<i64>,
}

impl<'a> Put<'a> {
    fn new(store: &'a SqliteStore, cut: Cut) -> Self {
        Self { store, cutter: Cutter::new(cut), hasher: blake3::Hasher::new(), size: 0, pieces: Vec::new() }
    }

    /// Stores the pieces that are complete and leaves the rest in the buffer.
    fn cut_off(&mut self, buffer: &mut Vec<u8>, ended: bool) -> Result<(), Error> {
        let (mut start, mut pieces) = (0, Vec::new());
        while let Some(length) = self.cutter.next(&buffer[start..], ended) {
            let raw = &buffer[start..start + length];
            pieces.push((Hash::of(raw), raw.len(), encode(raw).into_owned()));
            start += length;
        }
        self.hasher.update(&buffer[..start]);
        self.size += start as u64;
        buffer.drain(..start);
        let job = Box::new(move |writing: &mut Writing<'_>| {
            let stored = pieces
                .iter()
                .map(|(hash, size, packed)| writing.store_piece(hash, *size, || Cow::Borrowed(packed)));
            stored.collect::<Result<_, _>>().map(Outcome::Numbers)
        });
        match self.store.submit(job)? {
            Outcome::Numbers(numbers) => self.pieces.extend(numbers),
            _ => return Err(Error::WriterLost),
        }
        Ok(())
    }

    fn finish(self) -> Result<BlobRef, Error> {
        let blob = BlobRef { size: self.size, hash: self.hasher.finalize().into() };
        let pieces = self.pieces;
        self.store.submit(Box::new(move |writing| {
            if find_blob(writing.connection, &blob.hash)?.is_none() {
                writing.store_list(&blob, &pieces, None)?;
            }
            Ok(Outcome::Done)
        }))?;
        Ok(blob)
    }
}

impl Writing<'_> {
    /// Stores a payload unless it is there.
    pub(super) fn store_payload(&mut self, payload: &Prepared) -> Result<(), Error> {
        if payload.is_whole() {
            let piece = &payload.pieces[0];
            return self.store_piece(&piece.hash, payload.bytes.len(), || payload.packed_piece(0)).map(drop);
        }
        if self.blob_number(&payload.blob.hash)?.is_some() {
            return Ok(());
        }
        let base = self.base_of(payload)?;
        let known = base.as_ref().map_or(0, |base| base.agreeing);
        let mut pieces = base.as_ref().map_or_else(Vec::new, |base| base.stored.pieces[..known].to_vec());
        pieces.reserve(payload.pieces.len() - known);
        for (index, piece) in payload.pieces.iter().enumerate().skip(known) {
            pieces.push(
                self.store_piece(&piece.hash, piece.end - piece.start, || payload.packed_piece(index))?,
            );
        }
        let (number, depth) = self.store_list(&payload.blob, &pieces, base.map(|base| base.stored))?;
        self.recent.keep(RecentBlob { prepared: payload.clone(), number, depth, pieces });
        Ok(())
    }

    /// Finds the list that a payload's own list is written as a difference to. If it is one we wrote ourselves,
    /// the pieces at its start need not be looked up again; its row is looked at because it may be gone by now.
    fn base_of(&self, payload: &Prepared) -> Result<Option<Base>, Error> {
        let Some(base) = payload.base.filter(|base| base.size >= WHOLE as u64) else { return Ok(None) };
        if let Some(recent) = self.recent.get(&base)
            && hash_of_blob(self.connection, recent.number)? == Some(base.hash)
        {
            let agreeing = agreeing(&recent.prepared.pieces, &payload.pieces);
            let stored =
                StoredBlob { number: recent.number, depth: recent.depth, pieces: recent.pieces.clone() };
            return Ok(Some(Base { stored, agreeing }));
        }
        let stored = match self.blob_number(&base.hash)? {
            Some(number) => read_list(self.connection, number)?,
            None => return Ok(None),
        };
        Ok(Some(Base { stored, agreeing: 0 }))
    }

    /// Stores a list of pieces and returns its number and depth.
    fn store_list(
        &mut self,
        blob: &BlobRef,
        pieces: &[i64],
        base: Option<StoredBlob>,
    ) -> Result<(i64, i64), Error> {
        let list = PieceList(pieces.to_vec());
        let whole = list.encode(&[]);
        let delta = base.filter(|base| base.depth < DEEPEST).map(|base| (list.encode(&base.pieces), base));
        let (bytes, base, depth) = match delta {
            Some((bytes, base)) if bytes.len() < whole.len() => (bytes, Some(base.number), base.depth + 1),
            _ => (whole, None, 0),
        };
        let number = self.known.last_blob + 1;
        let mut statement = self
            .connection
            .prepare_cached("INSERT INTO blobs VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
            .map_err(db("store a payload"))?;
        let size = i64::try_from(blob.size).unwrap_or(i64::MAX);
        let values = params![number, blob.hash.as_bytes(), size, base, depth, bytes];
        statement.execute(values).map_err(db("store a payload"))?;
        self.known.last_blob = number;
        self.known.blobs.insert(blob.hash, number);
        Ok((number, depth))
    }

    /// Stores a piece unless it is there, and returns its number.
    fn store_piece<'p>(
        &mut self,
        hash: &Hash,
        size: usize,
        packed: impl FnOnce() -> Cow<'p, [u8]>,
    ) -> Result<i64, Error> {
        if let Some(number) = self.piece_number(hash)? {
            return Ok(number);
        }
        let number = self.known.last_piece + 1;
        let mut statement = self
            .connection
            .prepare_cached("INSERT INTO pieces VALUES (?1, ?2, ?3, ?4)")
            .map_err(db("store a payload"))?;
        statement
            .execute(params![number, hash.as_bytes(), size as i64, &*packed()])
            .map_err(db("store a payload"))?;
        self.known.last_piece = number;
        self.known.pieces.insert(*hash, number);
        Ok(number)
    }

    fn piece_number(&self, hash: &Hash) -> Result<Option<i64>, Error> {
        match self.known.pieces.get(hash) {
            Some(number) => Ok(Some(*number)),
            None => by_hash(self.connection, INDEXED_PIECE, hash),
        }
    }

    fn blob_number(&self, hash: &Hash) -> Result<Option<i64>, Error> {
        match self.known.blobs.get(hash) {
            Some(number) => Ok(Some(*number)),
            None => by_hash(self.connection, INDEXED_BLOB, hash),
        }
    }

    /// Refuses a reference to a payload that is not there.
    pub(super) fn must_have(&self, blob: &BlobRef) -> Result<(), Error> {
        let number =
            if is_whole(blob) { self.piece_number(&blob.hash)? } else { self.blob_number(&blob.hash)? };
        number.map(drop).ok_or(Error::MissingBlob { blob: *blob })
    }
}

/// A list to write a difference to, and how many pieces at its start are known to be the same.
struct Base {
    stored: StoredBlob,
    agreeing: usize,
}

fn agreeing(a: &[Piece], b: &[Piece]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a.hash == b.hash).count()
}

fn is_whole(blob: &BlobRef) -> bool {
    blob.size < WHOLE as u64
}

const INDEXED_PIECE: &str = "SELECT p.number FROM by_piece b JOIN pieces p ON p.number = b.number \
     WHERE b.hash = ?1 AND p.hash = ?2 LIMIT 1";
const INDEXED_BLOB: &str = "SELECT p.number FROM by_blob b JOIN blobs p ON p.number = b.number \
     WHERE b.hash = ?1 AND p.hash = ?2 LIMIT 1";
const LATER_PIECE: &str = "SELECT number FROM pieces WHERE number > (SELECT pieces FROM state) AND ?1 IS NOT NULL \
     AND hash = ?2 LIMIT 1";
const LATER_BLOB: &str = "SELECT number FROM blobs WHERE number > (SELECT blobs FROM state) AND ?1 IS NOT NULL \
     AND hash = ?2 LIMIT 1";

fn by_hash(connection: &Connection, sql: &str, hash: &Hash) -> Result<Option<i64>, Error> {
    let mut statement = connection.prepare_cached(sql).map_err(db("look up a payload"))?;
    let row = statement.query_row(params![short(hash), hash.as_bytes()], |row| row.get(0));
    row.optional().map_err(db("look up a payload"))
}

fn find_piece(connection: &Connection, hash: &Hash) -> Result<Option<i64>, Error> {
    by_hash(connection, INDEXED_PIECE, hash)?
        .map_or_else(|| by_hash(connection, LATER_PIECE, hash), |n| Ok(Some(n)))
}

fn find_blob(connection: &Connection, hash: &Hash) -> Result<Option<i64>, Error> {
    by_hash(connection, INDEXED_BLOB, hash)?
        .map_or_else(|| by_hash(connection, LATER_BLOB, hash), |n| Ok(Some(n)))
}

fn hash_of_blob(connection: &Connection, number: i64) -> Result<Option<Hash>, Error> {
    let mut statement = connection
        .prepare_cached("SELECT hash FROM blobs WHERE number = ?1")
        .map_err(db("look up a payload"))?;
    let hash: Option<[u8; 32]> =
        statement.query_row([number], |row| row.get(0)).optional().map_err(db("look up a payload"))?;
    Ok(hash.map(Hash::from_bytes))
}

/// Finds the pieces of a payload.
fn pieces_of(connection: &Connection, blob: &BlobRef) -> Result<Vec<i64>, Error> {
    let missing = || Error::MissingBlob { blob: *blob };
    if is_whole(blob) {
        return Ok(vec![find_piece(connection, &blob.hash)?.ok_or_else(missing)?]);
    }
    let number = find_blob(connection, &blob.hash)?.ok_or_else(missing)?;
    Ok(read_list(connection, number)?.pieces)
}

/// Reads a list, following the lists it is a difference to.
fn read_list(connection: &Connection, number: i64) -> Result<StoredBlob, Error> {
    let damaged =
        || Error::Damaged { what: format!("the list of pieces of payload number {number} cannot be read") };
    let mut chain = Vec::new();
    let mut next = Some(number);
    while let Some(number) = next {
        if chain.len() as i64 > DEEPEST {
            return Err(damaged());
        }
        let (base, depth, list) = read_list_row(connection, number)?.ok_or_else(damaged)?;
        chain.push((depth, list));
        next = base;
    }
    let depth = chain.first().map_or(0, |(depth, _)| *depth);
    let pieces = chain
        .iter()
        .rev()
        .try_fold(Vec::new(), |base, (_, list)| PieceList::decode(list, &base).map(|list| list.0));
    Ok(StoredBlob { number, depth, pieces: pieces.ok_or_else(damaged)? })
}

type ListRow = (Option<i64>, i64, Vec<u8>);

fn read_list_row(connection: &Connection, number: i64) -> Result<Option<ListRow>, Error> {
    let mut statement = connection
        .prepare_cached("SELECT base, depth, list FROM blobs WHERE number = ?1")
        .map_err(db("read a payload"))?;
    let row = statement.query_row([number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    row.optional().map_err(db("read a payload"))
}

/// Reads the numbers of the pieces that a list names.
pub(super) fn list_numbers(connection: &Connection, number: i64) -> Result<Vec<i64>, Error> {
    Ok(read_list(connection, number)?.pieces)
}

/// Writes a list again without a base.
pub(super) fn write_whole_list(connection: &Connection, number: i64, pieces: Vec<i64>) -> Result<(), Error> {
    let mut statement = connection
        .prepare_cached("UPDATE blobs SET base = NULL, depth = 0, list = ?2 WHERE number = ?1")
        .map_err(db("rewrite a list"))?;
    statement.execute(params![number, PieceList(pieces).encode(&[])]).map(drop).map_err(db("rewrite a list"))
}

/// Appends pieces to `out`. Pieces stored one after the other are read one after the other.
fn read_pieces(connection: &Connection, pieces: &[i64], out: &mut Vec<u8>) -> Result<(), Error> {
    const SQL: &str = "SELECT number, size, data FROM pieces WHERE number BETWEEN ?1 AND ?2 ORDER BY number";
    let mut statement = connection.prepare_cached(SQL).map_err(db("read a payload"))?;
    let mut rest = pieces;
    while let Some(first) = rest.first() {
        let count = rest.iter().zip(*first..).take_while(|(piece, number)| *piece == number).count();
        let mut rows =
            statement.query(params![first, first + count as i64 - 1]).map_err(db("read a payload"))?;
        for expected in &rest[..count] {
            let gone =
                || Error::Damaged { what: format!("piece number {expected} is gone or cannot be unpacked") };
            let row = rows.next().map_err(db("read a payload"))?.ok_or_else(gone)?;
            let (number, size): (i64, i64) =
                (row.get(0).map_err(db("read"))?, row.get(1).map_err(db("read"))?);
            let data = row.get_ref(2).map_err(db("read"))?.as_blob().map_err(|_| gone())?;
            let size = usize::try_from(size).ok().filter(|size| *size <= LONGEST_PIECE).ok_or_else(gone)?;
            if number != *expected {
                return Err(gone());
            }
            decode(data, size, out).map_err(|_| gone())?;
        }
        rest = &rest[count..];
    }
    Ok(())
}

/// A damaged size must not make us ask for all the memory there is.
const LONGEST_PIECE: usize = 64 * 1024;

fn unlike(blob: &BlobRef) -> Error {
    Error::Damaged { what: format!("payload {} does not fit its hash", blob.hash) }
}

/// A payload on its way out of the store.
struct Stream<'a> {
    store: &'a SqliteStore,
    blob: BlobRef,
    pieces: Vec<i64>,
    next: usize,
    buffer: Vec<u8>,
    at: usize,
    hasher: blake3::Hasher,
    seen: u64,
}

impl Stream<'_> {
    /// Reads more pieces, or checks the whole when there are none left.
    fn refill(&mut self) -> io::Result<()> {
        const PIECES: usize = 64;
        let end = (self.next + PIECES).min(self.pieces.len());
        self.buffer.clear();
        self.at = 0;
        let (pieces, buffer) = (&self.pieces[self.next..end], &mut self.buffer);
        self.store.read(|connection| read_pieces(connection, pieces, buffer)).map_err(io::Error::other)?;
        self.next = end;
        self.hasher.update(&self.buffer);
        self.seen += self.buffer.len() as u64;
        let over = self.next == self.pieces.len();
        if over && (self.seen != self.blob.size || Hash::from(self.hasher.finalize()) != self.blob.hash) {
            self.buffer.clear();
            return Err(io::Error::other(unlike(&self.blob)));
        }
        Ok(())
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.buffer.len() && self.next < self.pieces.len() {
            self.refill()?;
        }
        let count = out.len().min(self.buffer.len() - self.at);
        out[..count].copy_from_slice(&self.buffer[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Lists the numbers of all lists and their bases.
pub(super) fn all_lists(connection: &Connection) -> Result<Vec<(i64, Hash, Option<i64>)>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT number, hash, base FROM blobs").map_err(db("list payloads"))?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, Hash::from_bytes(row.get(1)?), row.get(2)?)));
    rows.and_then(Iterator::collect).map_err(db("list payloads"))
}

/// Lists the numbers and hashes of all pieces.
pub(super) fn all_pieces(connection: &Connection) -> Result<Vec<(i64, Hash)>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT number, hash FROM pieces").map_err(db("list pieces"))?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, Hash::from_bytes(row.get(1)?))));
    rows.and_then(Iterator::collect).map_err(db("list pieces"))
}
