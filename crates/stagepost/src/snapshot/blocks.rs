//! A file of records that is read block by block, where someone looks.
//!
//! Reading all of a large one first would keep everyone waiting: what it costs is the memory, page by page, and threads
//! that look at the same time share that.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;

use crate::bounded;

const BLOCK: usize = 1 << 16;

/// The bytes of a file as long as it was when it was opened. Each block is read once, by whoever comes first; what cannot be
/// read is not there.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    file: Option<File>,
    length: usize,
    blocks: Vec<Block>,
}

#[derive(Debug, Default)]
struct Block {
    bytes: OnceLock<Option<Box<[u8]>>>,
    /// The record that begins in this block and ends in a later one, and where that is.
    across: OnceLock<Option<(usize, Box<[u8]>)>>,
}

impl Blocks {
    /// Opens a file; one that is not there or cannot be opened is empty.
    pub(super) fn open(path: &Path) -> Self {
        let open = || -> io::Result<Self> {
            let file = bounded::open(path)?;
            let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
            let blocks = (0..length.div_ceil(BLOCK)).map(|_| Block::default()).collect();
            Ok(Self { file: Some(file), length, blocks })
        };
        open().unwrap_or_default()
    }

    /// Returns how long the file is.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Says whether the file begins with these few bytes.
    pub(super) fn starts_with(&self, bytes: &[u8]) -> bool {
        self.block(0).is_some_and(|block| block.starts_with(bytes))
    }

    /// Returns the record at a place: a `u32` with its length, a sum of four bytes, and what it holds. No two records that
    /// overlap are sound.
    pub(super) fn record(&self, place: usize) -> Option<&[u8]> {
        let index = place / BLOCK;
        let inside = self.block(index)?.get(place % BLOCK..)?;
        let length = match inside.first_chunk() {
            Some(length) => *length,
            None => self.read(place, 4)?.first_chunk().copied()?,
        };
        let length = usize::try_from(u32::from_le_bytes(length)).ok()?.checked_add(8)?;
        if length <= inside.len() {
            return Some(&inside[..length]);
        }
        let across = self.blocks[index].across.get_or_init(|| Some((place, self.read(place, length)?)));
        across.as_ref().filter(|across| across.0 == place).map(|across| &*across.1)
    }

    fn block(&self, index: usize) -> Option<&[u8]> {
        let start = index.checked_mul(BLOCK)?;
        let read = || self.read(start, BLOCK.min(self.length - start));
        self.blocks.get(index)?.bytes.get_or_init(read).as_deref()
    }

    fn read(&self, start: usize, length: usize) -> Option<Box<[u8]>> {
        // A length comes from the file, and must not make us ask for all memory.
        start.checked_add(length).filter(|end| *end <= self.length)?;
        let mut bytes = vec![0; length];
        self.file.as_ref()?.read_exact_at(&mut bytes, start as u64).ok()?;
        Some(bytes.into_boxed_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(length: usize) -> Vec<u8> {
        let mut record = u32::try_from(length).unwrap().to_le_bytes().to_vec();
        record.extend((0..length + 4).map(|at| u8::try_from(at % 251).unwrap()));
        record
    }

    #[test]
    fn records_are_found_wherever_they_begin_and_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        // Ends at, before and behind the end of a block; headers across it; records of several blocks.
        let lengths = [5, BLOCK - 8 - 13 - 6, 20, BLOCK, 3 * BLOCK, 0, 1, BLOCK - 100, 2 * BLOCK - 3, 7];
        let records: Vec<_> = lengths.into_iter().map(record).collect();
        let bytes = records.concat();
        std::fs::write(&path, &bytes).unwrap();
        let blocks = Blocks::open(&path);
        assert_eq!(blocks.len(), bytes.len());
        assert!(blocks.starts_with(&bytes[..8]) && !blocks.starts_with(b"other"));
        let mut place = bytes.len();
        for record in records.iter().rev() {
            place -= record.len();
            assert_eq!(blocks.record(place), Some(record.as_slice()));
            assert_eq!(blocks.record(place), Some(record.as_slice()));
        }
    }

    #[test]
    fn what_is_not_there_is_no_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert_eq!(Blocks::open(&path).record(0), None);
        assert!(!Blocks::open(&path).starts_with(b""));
        let mut bytes = [record(10), vec![0xff; 3 * BLOCK]].concat();
        std::fs::write(&path, &bytes).unwrap();
        let blocks = Blocks::open(&path);
        for place in [18, 2 * BLOCK, 3 * BLOCK + 15, 3 * BLOCK + 18, 9 * BLOCK, usize::MAX] {
            assert_eq!(blocks.record(place), None, "{place}");
        }
        // Two that overlap across the end of a block.
        let (first, second) = (BLOCK - 20, BLOCK - 10);
        bytes[first..first + 4].copy_from_slice(&40u32.to_le_bytes());
        bytes[second..second + 4].copy_from_slice(&40u32.to_le_bytes());
        std::fs::write(&path, &bytes).unwrap();
        let blocks = Blocks::open(&path);
        assert!(blocks.record(first).is_some());
        assert_eq!(blocks.record(second), None);
    }
}
