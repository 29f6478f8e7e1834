//! A payload that is cut and hashed and waits to be written.

use std::borrow::Cow;
use std::sync::Arc;

use crate::model::{BlobRef, Hash};

use super::cut::{Cut, Cutter};
use super::{WHOLE, encode, encode_tight};

/// A payload that is cut and hashed, ready for a [`Batch`](crate::store::Batch).
#[derive(Debug, Clone)]
pub struct Prepared {
    pub(crate) blob: BlobRef,
    pub(crate) bytes: Arc<Vec<u8>>,
    /// The pieces in order; a payload that is not cut has one.
    pub(crate) pieces: Vec<Piece>,
    /// The blob that this one probably continues.
    pub(crate) base: Option<BlobRef>,
    /// The last pieces of the payload as they will be stored, where they were packed ahead.
    pub(crate) packed: Vec<Packing>,
    /// Where a continuation may go on; what is kept whole has none.
    resume: Option<Box<Resume>>,
    cut: Cut,
    tight: bool,
}

/// A piece of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) hash: Hash,
}

/// How a piece will be stored, as far as that was found out ahead.
#[derive(Debug, Clone)]
pub(crate) enum Packing {
    /// It is probably there, so nobody has looked.
    Unknown,
    /// As it is.
    Raw,
    Packed(Vec<u8>),
}

/// A payload prepared before, kept so that its continuation need not be cut and hashed from the start.
pub(crate) type Previous = Prepared;

/// The state of hashing at the last cut from which a continuation may go on.
#[derive(Debug, Clone)]
struct Resume {
    offset: usize,
    pieces: usize,
    hasher: blake3::Hasher,
}

impl Resume {
    fn start() -> Self {
        Self { offset: 0, pieces: 0, hasher: blake3::Hasher::new() }
    }
}

impl Prepared {
    /// Cuts and hashes `bytes`, as a store's `prepare` does.
    pub fn of(bytes: Vec<u8>, cut: Cut, base: Option<BlobRef>) -> Self {
        Self::new(bytes, cut, base, None)
    }

    /// Cuts and hashes `bytes`, going on from `previous` as far as the two agree.
    pub(crate) fn new(bytes: Vec<u8>, cut: Cut, base: Option<BlobRef>, previous: Option<&Previous>) -> Self {
        if bytes.len() < WHOLE {
            return Self::whole(bytes, cut, base);
        }
        let resume = previous
            .filter(|previous| previous.cut == cut)
            .and_then(|previous| {
                let resume = previous.resume.as_ref()?;
                agrees(&previous.bytes, &bytes, resume.offset).then(|| resume.clone())
            })
            .unwrap_or_else(|| Box::new(Resume::start()));
        let known = previous.map_or(&[][..], |previous| &previous.pieces[..resume.pieces]);
        Self::cut_from(bytes, cut, base, resume, known)
    }

    fn whole(bytes: Vec<u8>, cut: Cut, base: Option<BlobRef>) -> Self {
        let hash = Hash::of(&bytes);
        let piece = Piece { start: 0, end: bytes.len(), hash };
        let blob = BlobRef { size: bytes.len() as u64, hash };
        Self {
            blob,
            bytes: Arc::new(bytes),
            pieces: vec![piece],
            base,
            packed: Vec::new(),
            resume: None,
            cut,
            tight: false,
        }
    }

    fn cut_from(
        bytes: Vec<u8>,
        cut: Cut,
        base: Option<BlobRef>,
        mut resume: Box<Resume>,
        known: &[Piece],
    ) -> Self {
        let mut pieces = Vec::with_capacity(known.len() + 1 + (bytes.len() - resume.offset) / 1024);
        pieces.extend_from_slice(known);
        let (mut cutter, mut start, mut clean) =
            (Cutter::new(cut), resume.offset, (resume.offset, known.len()));
        while let Some(length) = cutter.next(&bytes[start..], true) {
            let end = start + length;
            pieces.push(Piece { start, end, hash: Hash::of(&bytes[start..end]) });
            start = end;
            if cutter.is_clean() && end < bytes.len() {
                clean = (end, pieces.len());
            }
        }
        resume.hasher.update(&bytes[resume.offset..clean.0]);
        let hash = resume.hasher.clone().update(&bytes[clean.0..]).finalize().into();
        (resume.offset, resume.pieces) = clean;
        let blob = BlobRef { size: bytes.len() as u64, hash };
        let (bytes, resume) = (Arc::new(bytes), Some(resume));
        Self { blob, bytes, pieces, base, packed: Vec::new(), resume, cut, tight: false }
    }

    /// Returns the payload itself.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns what the payload will be found under.
    pub fn blob(&self) -> BlobRef {
        self.blob
    }

    /// Packs it whenever that makes it smaller: it will be read seldom.
    pub fn tight(mut self) -> Self {
        self.tight = true;
        self
    }

    /// Says whether the payload is kept as one piece under its own hash.
    pub(crate) fn is_whole(&self) -> bool {
        self.bytes.len() < WHOLE
    }

    /// Returns the bytes to store for a piece.
    fn encoded(&self, piece: &Piece) -> Cow<'_, [u8]> {
        let raw = &self.bytes[piece.start..piece.end];
        if self.tight { encode_tight(raw) } else { encode(raw) }
    }

    /// Finds out how a piece will be stored.
    pub(crate) fn pack(&self, piece: &Piece) -> Packing {
        match self.encoded(piece) {
            Cow::Borrowed(_) => Packing::Raw,
            Cow::Owned(packed) => Packing::Packed(packed),
        }
    }

    /// Returns the bytes to store for a piece, from those packed ahead if it is among them.
    pub(crate) fn packed_piece(&self, index: usize) -> Cow<'_, [u8]> {
        let (ahead, piece) =
            ((index + self.packed.len()).checked_sub(self.pieces.len()), &self.pieces[index]);
        match ahead.map(|ahead| &self.packed[ahead]) {
            Some(Packing::Packed(packed)) => Cow::Borrowed(packed),
            Some(Packing::Raw) => Cow::Borrowed(&self.bytes[piece.start..piece.end]),
            Some(Packing::Unknown) | None => self.encoded(piece),
        }
    }
}

/// Says whether a cut at `offset` in the old bytes is one in the new bytes too: a cut depends on the byte after it.
fn agrees(old: &[u8], new: &[u8], offset: usize) -> bool {
    offset > 0 && offset < old.len() && offset < new.len() && old[..=offset] == new[..=offset]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: usize) -> Vec<u8> {
        let items: Vec<_> = (0..items).map(|n| format!("\"{n} {}\"", "text ".repeat(100 + n % 7))).collect();
        format!("[{}]", items.join(",")).into_bytes()
    }

    #[test]
    fn going_on_from_a_previous_payload_gives_the_same_as_starting_over() {
        let mut previous = Prepared::new(list(20), Cut::Json, None, None);
        for items in [21, 22, 40, 39, 41, 3, 50] {
            let fresh = Prepared::new(list(items), Cut::Json, None, None);
            let continued = Prepared::new(list(items), Cut::Json, None, Some(&previous));
            assert_eq!(continued.blob, fresh.blob);
            assert_eq!(continued.pieces, fresh.pieces);
            assert_eq!(fresh.blob.hash, Hash::of(&list(items)));
            previous = continued;
        }
    }

    #[test]
    fn a_payload_that_differs_early_is_cut_anew() {
        let previous = Prepared::new(list(30), Cut::Json, None, None);
        let mut changed = list(31);
        changed[5] = b'X';
        let fresh = Prepared::new(changed.clone(), Cut::Json, None, None);
        let continued = Prepared::new(changed, Cut::Json, None, Some(&previous));
        assert_eq!((continued.blob, continued.pieces), (fresh.blob, fresh.pieces));
    }
}
