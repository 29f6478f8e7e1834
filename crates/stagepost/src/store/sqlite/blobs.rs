//! Payloads in the database: pieces, each once, and lists of pieces.

use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

use rusqlite::params;

use super::super::blob::{Cut, Cutter, Packing, Piece, PieceList, Prepared, WHOLE, encode};
use super::super::{Batch, Error};
use super::collect::write_whole_list;
use super::known::Stored;
use super::reading::{
    DEEPEST, INDEXED_BLOB, INDEXED_PIECE, StoredBlob, by_hash, find_piece, hash_of_blob, is_whole, read_list,
    read_pieces,
};
use super::recent::RecentBlob;
use super::writer::{Job, Outcome, Writing};
use super::{SqliteStore, db};
use crate::model::{BlobRef, Hash};

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
                packed.push(if missing(piece)? { payload.pack(piece) } else { Packing::Unknown });
            }
            payload.packed = packed;
        }
        Ok(())
    }

    pub(super) fn put_stream(&self, source: &mut dyn Read, cut: Cut) -> Result<BlobRef, Error> {
        let mut buffer = Vec::new();
        source.take(READ_AHEAD as u64).read_to_end(&mut buffer).map_err(Error::Source)?;
        if buffer.len() < READ_AHEAD {
            return self.put_small(Prepared::of(buffer, cut, None));
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
        self.submit(Job::new(move |writing| writing.store_payload(&payload).map(|()| Outcome::Done)))?;
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
        let job = Job::new(move |writing: &mut Writing<'_>| {
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
        self.store.submit(Job::new(move |writing| {
            match writing.blob(&blob.hash)? {
                None => drop(writing.store_list(&blob, &pieces, None)?),
                Some(there) => {
                    let sound = read_list(writing.connection, there.number);
                    if sound.map_or(true, |list| list.pieces != pieces) {
                        write_whole_list(writing.connection, there.number, pieces)?;
                    }
                }
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
        if let Some(there) = self.blob(&payload.blob.hash)? {
            return self.mend_unless_sound(there.number, payload);
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
        self.pending.push(Arc::new(RecentBlob { prepared: payload.clone(), number, depth, pieces }));
        Ok(())
    }

    /// What is there is used again only if it reads back; a save must not succeed on damaged bytes.
    fn mend_unless_sound(&mut self, number: i64, payload: &Prepared) -> Result<(), Error> {
        let mut stored = Vec::with_capacity(payload.bytes.len());
        let read = read_list(self.connection, number)
            .and_then(|list| read_pieces(self.connection, &list.pieces, &mut stored));
        if read.is_ok() && stored == **payload.bytes {
            return Ok(());
        }
        let mut pieces = Vec::with_capacity(payload.pieces.len());
        for (index, piece) in payload.pieces.iter().enumerate() {
            let size = piece.end - piece.start;
            pieces.push(self.store_piece(&piece.hash, size, || payload.packed_piece(index))?);
        }
        write_whole_list(self.connection, number, pieces)
    }

    /// Finds the list that a payload's own list is written as a difference to. If it is one we wrote ourselves,
    /// the pieces at its start need not be looked up again; its row is looked at because it may be gone by now.
    fn base_of(&self, payload: &Prepared) -> Result<Option<Base>, Error> {
        let Some(base) = payload.base.filter(|base| base.size >= WHOLE as u64) else { return Ok(None) };
        let pending = self.pending.iter().rfind(|pending| pending.prepared.blob == base).cloned();
        if let Some(recent) = pending.or_else(|| self.recent.get(&base))
            && hash_of_blob(self.connection, recent.number)? == Some(base.hash)
        {
            let agreeing = agreeing(&recent.prepared.pieces, &payload.pieces);
            let stored =
                StoredBlob { number: recent.number, depth: recent.depth, pieces: recent.pieces.clone() };
            return Ok(Some(Base { stored, agreeing }));
        }
        let Some(there) = self.blob(&base.hash)? else { return Ok(None) };
        // A base that cannot be read is no reason to refuse what needs no base.
        let stored = read_list(self.connection, there.number).ok();
        Ok(stored.map(|stored| Base { stored, agreeing: 0 }))
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
        self.known.blobs.insert(blob.hash, Stored { number, size });
        Ok((number, depth))
    }

    /// Stores a piece unless it is there and sound, and returns its number. A damaged one is mended in its place, for
    /// everything that refers to it.
    fn store_piece<'p>(
        &mut self,
        hash: &Hash,
        size: usize,
        packed: impl FnOnce() -> Cow<'p, [u8]>,
    ) -> Result<i64, Error> {
        if let Some(there) = self.piece(hash)? {
            let mut stored = Vec::with_capacity(size);
            let read = read_pieces(self.connection, &[there.number], &mut stored);
            if read.is_err() || Hash::of(&stored) != *hash {
                self.mend_piece(there.number, size, &packed())?;
            }
            return Ok(there.number);
        }
        let (number, size) = (self.known.last_piece + 1, size as i64);
        let mut statement = self
            .connection
            .prepare_cached("INSERT INTO pieces VALUES (?1, ?2, ?3, ?4)")
            .map_err(db("store a payload"))?;
        statement
            .execute(params![number, hash.as_bytes(), size, &*packed()])
            .map_err(db("store a payload"))?;
        self.known.last_piece = number;
        self.known.pieces.insert(*hash, Stored { number, size });
        Ok(number)
    }

    fn mend_piece(&self, number: i64, size: usize, packed: &[u8]) -> Result<(), Error> {
        let mut statement = self
            .connection
            .prepare_cached("UPDATE pieces SET size = ?2, data = ?3 WHERE number = ?1")
            .map_err(db("mend a payload"))?;
        statement.execute(params![number, size as i64, packed]).map(drop).map_err(db("mend a payload"))
    }

    fn piece(&self, hash: &Hash) -> Result<Option<Stored>, Error> {
        match self.known.pieces.get(hash) {
            Some(there) => Ok(Some(*there)),
            None => by_hash(self.connection, INDEXED_PIECE, hash),
        }
    }

    fn blob(&self, hash: &Hash) -> Result<Option<Stored>, Error> {
        match self.known.blobs.get(hash) {
            Some(there) => Ok(Some(*there)),
            None => by_hash(self.connection, INDEXED_BLOB, hash),
        }
    }

    /// Refuses a reference to a payload that is not there.
    pub(super) fn must_have(&self, blob: &BlobRef) -> Result<(), Error> {
        let there = if is_whole(blob) { self.piece(&blob.hash)? } else { self.blob(&blob.hash)? };
        let size = i64::try_from(blob.size).ok();
        let there = there.filter(|there| Some(there.size) == size);
        there.map(drop).ok_or(Error::MissingBlob { blob: *blob })
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
