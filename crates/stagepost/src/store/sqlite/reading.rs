//! Reading payloads back.

use std::io::{self, Read};

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::Error;
use super::super::blob::{PieceList, WHOLE, decode};
use super::follow::short;
use super::known::Stored;
use super::{SqliteStore, db};
use crate::model::{BlobRef, Hash};

/// A list that differs from one that differs from one … is followed so many times at most.
pub(super) const DEEPEST: i64 = 32;

/// A list of pieces as stored.
pub(super) struct StoredBlob {
    pub(super) number: i64,
    pub(super) depth: i64,
    pub(super) pieces: Vec<i64>,
}

impl SqliteStore {
    /// Reads a payload from the database and checks it.
    pub(super) fn load_stored(&self, blob: &BlobRef) -> Result<Vec<u8>, Error> {
        self.read(|connection| load_checked(connection, blob, &pieces_of(connection, blob)?))
    }

    /// Reads payloads that were probably written one after the other. Unpacking and hashing takes longer than reading, so
    /// many are shared out between two threads.
    pub(super) fn load_in_order(&self, blobs: &[BlobRef]) -> Result<Vec<Vec<u8>>, Error> {
        const SHARED: usize = 128;
        let load = |blobs: &[BlobRef]| self.read(|connection| load_each(connection, blobs));
        if blobs.len() < SHARED {
            return load(blobs);
        }
        let (first, second) = blobs.split_at(blobs.len() / 2);
        std::thread::scope(|threads| {
            let second = threads.spawn(|| load(second));
            let mut loaded = load(first)?;
            loaded.extend(second.join().unwrap_or(Err(Error::WriterLost))?);
            Ok(loaded)
        })
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
}

/// Reads payloads. Those that are kept whole, one behind the other, are read in one go.
fn load_each(connection: &Connection, blobs: &[BlobRef]) -> Result<Vec<Vec<u8>>, Error> {
    let mut loaded = Vec::with_capacity(blobs.len());
    while let Some(blob) = blobs.get(loaded.len()) {
        let pieces = pieces_of(connection, blob)?;
        match pieces[..] {
            [first] if is_whole(blob) => load_row_by_row(connection, first, blobs, &mut loaded)?,
            _ => loaded.push(load_checked(connection, blob, &pieces)?),
        }
    }
    Ok(loaded)
}

/// Reads the payload at a piece, and those behind it as long as they are what comes next.
fn load_row_by_row(
    connection: &Connection,
    first: i64,
    blobs: &[BlobRef],
    loaded: &mut Vec<Vec<u8>>,
) -> Result<(), Error> {
    const SQL: &str = "SELECT number, size, data, hash FROM pieces WHERE number >= ?1 ORDER BY number";
    let mut statement = connection.prepare_cached(SQL).map_err(db("read a payload"))?;
    let mut rows = statement.query([first]).map_err(db("read a payload"))?;
    for (blob, number) in blobs[loaded.len()..].iter().take_while(|blob| is_whole(blob)).zip(first..) {
        let row = match rows.next().map_err(db("read a payload"))? {
            Some(row) if number == first || is_piece(row, number, &blob.hash) => row,
            None if number == first => return Err(gone(first)),
            _ => return Ok(()),
        };
        let mut bytes = Vec::with_capacity(usize::try_from(blob.size).unwrap_or_default().min(WHOLE));
        read_row(row, number, &mut bytes)?;
        loaded.push(checked(bytes, blob)?);
    }
    Ok(())
}

fn is_piece(row: &Row<'_>, number: i64, hash: &Hash) -> bool {
    row.get(0) == Ok(number) && row.get_ref(3).is_ok_and(|found| found.as_bytes() == Ok(hash.as_bytes()))
}

/// Reads a payload whose pieces are known, and checks it.
fn load_checked(connection: &Connection, blob: &BlobRef, pieces: &[i64]) -> Result<Vec<u8>, Error> {
    let size = usize::try_from(blob.size).map_err(|_| Error::MissingBlob { blob: *blob })?;
    // The size comes from a record that may be damaged: it must not make us ask for all memory at once.
    let mut bytes = Vec::with_capacity(size.min(64 << 20));
    read_pieces(connection, pieces, &mut bytes)?;
    checked(bytes, blob)
}

fn checked(bytes: Vec<u8>, blob: &BlobRef) -> Result<Vec<u8>, Error> {
    if bytes.len() as u64 != blob.size || Hash::of(&bytes) != blob.hash {
        return Err(unlike(blob));
    }
    Ok(bytes)
}

pub(super) fn is_whole(blob: &BlobRef) -> bool {
    blob.size < WHOLE as u64
}

pub(super) const INDEXED_PIECE: &str = "SELECT p.number, p.size FROM by_piece b JOIN pieces p ON p.number = b.number \
     WHERE b.hash = ?1 AND p.hash = ?2 LIMIT 1";
pub(super) const INDEXED_BLOB: &str = "SELECT p.number, p.size FROM by_blob b JOIN blobs p ON p.number = b.number \
     WHERE b.hash = ?1 AND p.hash = ?2 LIMIT 1";
const LATER_PIECE: &str = "SELECT number, size FROM pieces WHERE number > (SELECT pieces FROM state) AND ?1 IS NOT NULL \
     AND hash = ?2 LIMIT 1";
const LATER_BLOB: &str = "SELECT number, size FROM blobs WHERE number > (SELECT blobs FROM state) AND ?1 IS NOT NULL \
     AND hash = ?2 LIMIT 1";

pub(super) fn by_hash(connection: &Connection, sql: &str, hash: &Hash) -> Result<Option<Stored>, Error> {
    let mut statement = connection.prepare_cached(sql).map_err(db("look up a payload"))?;
    let row = statement.query_row(params![short(hash), hash.as_bytes()], |row| {
        Ok(Stored { number: row.get(0)?, size: row.get(1)? })
    });
    row.optional().map_err(db("look up a payload"))
}

pub(super) fn find_piece(connection: &Connection, hash: &Hash) -> Result<Option<Stored>, Error> {
    by_hash(connection, INDEXED_PIECE, hash)?
        .map_or_else(|| by_hash(connection, LATER_PIECE, hash), |there| Ok(Some(there)))
}

fn find_blob(connection: &Connection, hash: &Hash) -> Result<Option<Stored>, Error> {
    by_hash(connection, INDEXED_BLOB, hash)?
        .map_or_else(|| by_hash(connection, LATER_BLOB, hash), |there| Ok(Some(there)))
}

pub(super) fn hash_of_blob(connection: &Connection, number: i64) -> Result<Option<Hash>, Error> {
    const SQL: &str = "SELECT hash FROM blobs WHERE number = ?1";
    let mut statement = connection.prepare_cached(SQL).map_err(db("look up a payload"))?;
    let hash: Option<[u8; 32]> =
        statement.query_row([number], |row| row.get(0)).optional().map_err(db("look up a payload"))?;
    Ok(hash.map(Hash::from_bytes))
}

/// Finds the pieces of a payload.
fn pieces_of(connection: &Connection, blob: &BlobRef) -> Result<Vec<i64>, Error> {
    let missing = || Error::MissingBlob { blob: *blob };
    if is_whole(blob) {
        return Ok(vec![find_piece(connection, &blob.hash)?.ok_or_else(missing)?.number]);
    }
    let number = find_blob(connection, &blob.hash)?.ok_or_else(missing)?.number;
    Ok(read_list(connection, number)?.pieces)
}

/// Reads a list, following the lists it is a difference to.
pub(super) fn read_list(connection: &Connection, number: i64) -> Result<StoredBlob, Error> {
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

/// Appends pieces to `out`. Pieces stored one after the other are read one after the other.
pub(super) fn read_pieces(connection: &Connection, pieces: &[i64], out: &mut Vec<u8>) -> Result<(), Error> {
    const SQL: &str = "SELECT number, size, data FROM pieces WHERE number BETWEEN ?1 AND ?2 ORDER BY number";
    let mut statement = connection.prepare_cached(SQL).map_err(db("read a payload"))?;
    let mut rest = pieces;
    while let Some(first) = rest.first() {
        let count = rest.iter().zip(*first..).take_while(|(piece, number)| *piece == number).count();
        let mut rows =
            statement.query(params![first, first + count as i64 - 1]).map_err(db("read a payload"))?;
        for expected in &rest[..count] {
            let row = rows.next().map_err(db("read a payload"))?;
            read_row(row.ok_or_else(|| gone(*expected))?, *expected, out)?;
        }
        rest = &rest[count..];
    }
    Ok(())
}

/// Appends the piece in a row of number, size and data to `out`.
fn read_row(row: &Row<'_>, expected: i64, out: &mut Vec<u8>) -> Result<(), Error> {
    let gone = || gone(expected);
    let (number, size): (i64, i64) = (row.get(0).map_err(db("read"))?, row.get(1).map_err(db("read"))?);
    let data = row.get_ref(2).map_err(db("read"))?.as_blob().map_err(|_| gone())?;
    let size = usize::try_from(size).ok().filter(|size| *size <= LONGEST_PIECE).ok_or_else(gone)?;
    if number != expected {
        return Err(gone());
    }
    decode(data, size, out).map_err(|_| gone())
}

fn gone(piece: i64) -> Error {
    Error::Damaged { what: format!("piece number {piece} is gone or cannot be unpacked") }
}

/// A damaged size must not make us ask for all the memory there is. Far longer than what is written today: before the
/// first release, a text in quotes that was a whole payload was one piece, whatever its length.
pub(super) const LONGEST_PIECE: usize = 16 << 20;

fn unlike(blob: &BlobRef) -> Error {
    Error::Damaged { what: format!("payload {} does not fit its hash", blob.hash) }
}

/// So many pieces are read at a time from a payload that is not held in memory.
const AT_A_TIME: usize = 64;

/// Reads a whole payload, keeping nothing of it, and returns the numbers of its pieces if it is sound.
pub(super) fn check_payload(connection: &Connection, blob: &BlobRef) -> Result<Vec<i64>, Error> {
    let pieces = pieces_of(connection, blob)?;
    let (mut hasher, mut seen, mut buffer) = (blake3::Hasher::new(), 0, Vec::new());
    for some in pieces.chunks(AT_A_TIME) {
        buffer.clear();
        read_pieces(connection, some, &mut buffer)?;
        hasher.update(&buffer);
        seen += buffer.len() as u64;
    }
    if seen == blob.size && Hash::from(hasher.finalize()) == blob.hash {
        Ok(pieces)
    } else {
        Err(unlike(blob))
    }
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
        let end = (self.next + AT_A_TIME).min(self.pieces.len());
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
