//! The file `head`: how long the journal has been, so that losing its end is noticed.
//!
//! It is written after each commit and never synced. After a power cut it may lag behind: then it proves less, never
//! something wrong. It never goes back by itself: if the journal is shorter than it says, it stays as evidence until
//! the tables are rebuilt on purpose.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::Error;
use super::open;
use crate::bounded;
use crate::model::Hash;

pub(super) const HEAD_FILE: &str = "head";

pub(super) struct HeadFile {
    file: File,
    /// The journal is not the one that the file tells of.
    frozen: AtomicBool,
}

impl HeadFile {
    pub(super) fn open(folder: &Path) -> Result<Self, Error> {
        Ok(Self { file: open::private_file(&folder.join(HEAD_FILE))?, frozen: AtomicBool::new(false) })
    }

    /// Compares the file with the journal that was just read under the write lock.
    pub(super) fn compare(&self, position: i64, chain: &Hash) {
        let mut record = [0; 72];
        let known = self.file.read_exact_at(&mut record, 0).ok().and_then(|()| parse(&record));
        let frozen = known
            .is_some_and(|(longest, noted)| longest > position || (longest == position && noted != *chain));
        self.frozen.store(frozen, Ordering::Relaxed);
    }

    pub(super) fn write(&self, position: i64, chain: &Hash) {
        if self.frozen.load(Ordering::Relaxed) {
            return;
        }
        let mut record = [0; 72];
        record[..8].copy_from_slice(&position.to_le_bytes());
        record[8..40].copy_from_slice(chain.as_bytes());
        let check = Hash::of(&record[..40]);
        record[40..].copy_from_slice(check.as_bytes());
        let _ = self.file.write_all_at(&record, 0);
    }

    /// Believes the journal from now on.
    pub(super) fn thaw(&self) {
        self.frozen.store(false, Ordering::Relaxed);
    }
}

/// Reads how long the journal was when it was last written, if that is known.
pub(super) fn remembered(folder: &Path) -> Option<(i64, Hash)> {
    parse(&bounded::read_file(&folder.join(HEAD_FILE)).ok()?)
}

fn parse(record: &[u8]) -> Option<(i64, Hash)> {
    let record: &[u8; 72] = record.try_into().ok()?;
    if Hash::of(&record[..40]).as_bytes()[..] != record[40..] {
        return None;
    }
    let position = i64::from_le_bytes(record[..8].try_into().ok()?);
    Some((position, Hash::from_bytes(record[8..40].try_into().ok()?)))
}
