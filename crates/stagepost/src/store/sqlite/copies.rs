//! Plain copies of the large payloads written last, in files beside the database.
//!
//! A payload in hundreds of pieces takes hundreds of reads from the database, and its copy takes one. Copies are derived:
//! they are never synced, never believed without hashing them, and gone as soon as something does not fit. A payload that
//! continues another takes over its copy, and only what is new is written. Whatever fails here costs time at the next
//! read, nothing else, so it is nobody's error.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};

use super::super::blob::Prepared;
use super::open;
use crate::bounded;
use crate::model::{BlobRef, Hash};

pub(super) struct Copies {
    folder: PathBuf,
}

impl Copies {
    /// Smaller payloads are read as fast from the database.
    const LEAST: usize = 16 << 10;
    /// Larger ones are streamed.
    const MOST: usize = 8 << 20;
    /// More than this is not written a second time for each payload: it does not grow at its end.
    const MOST_NEW: usize = 64 << 10;
    const MOST_FILES: usize = 16;

    pub(super) fn beside(folder: &Path) -> Self {
        Self { folder: folder.join("copies") }
    }

    /// Returns the bytes of a payload if there is a sound copy of it.
    pub(super) fn load(&self, blob: &BlobRef) -> Option<Vec<u8>> {
        let size =
            usize::try_from(blob.size).ok().filter(|size| (Self::LEAST..=Self::MOST).contains(size))?;
        let path = self.path(blob);
        let file = open::existing_file(&path).ok()?;
        let found = read_checked(&file, size, &blob.hash).ok().flatten();
        if found.is_none() {
            let _ = fs::remove_file(path);
        }
        found
    }

    /// Brings the copies up to date with a payload that was written. `base` holds the bytes of the one it continues, if
    /// they are at hand.
    pub(super) fn keep(&self, new: &Prepared, base: Option<&[u8]>) {
        if (Self::LEAST..=Self::MOST).contains(&new.bytes.len()) && new.base != Some(new.blob) {
            let _ = self.bring_up_to_date(new, base);
        }
    }

    fn bring_up_to_date(&self, new: &Prepared, base: Option<&[u8]>) -> io::Result<()> {
        let old = new.base.map(|base| self.path(&base)).filter(|old| old.exists());
        let known = match (base, &old) {
            (Some(base), _) => agreeing(base, &new.bytes),
            (None, Some(old)) => agreeing(&bounded::read_file(old)?, &new.bytes),
            (None, None) => 0,
        };
        let is_small_change = new.bytes.len() - known <= Self::MOST_NEW;
        match old {
            Some(old) if is_small_change => {
                let file = open::existing_file(&old)?;
                file.write_all_at(&new.bytes[known..], known as u64)?;
                file.set_len(new.bytes.len() as u64)?;
                fs::rename(&old, self.path(&new.blob))
            }
            Some(old) => fs::remove_file(old),
            None if is_small_change => self.make(new),
            None => Ok(()),
        }
    }

    fn make(&self, new: &Prepared) -> io::Result<()> {
        self.make_room()?;
        let path = self.path(&new.blob);
        let file: File = open::private_file(&path).map_err(io::Error::other)?;
        file.write_all_at(&new.bytes, 0)?;
        file.set_len(new.bytes.len() as u64)
    }

    fn make_room(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let entries = fs::read_dir(&self.folder)?.flatten();
        let mut copies: Vec<_> =
            entries.filter_map(|copy| Some((copy.metadata().ok()?.modified().ok()?, copy.path()))).collect();
        copies.sort();
        let over = (copies.len() + 1).saturating_sub(Self::MOST_FILES);
        copies[..over].iter().try_for_each(|(_, path)| fs::remove_file(path))
    }

    /// Lets all copies go: some of them may be of what was given up.
    pub(super) fn clear(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }

    /// Adds up the room they take.
    pub(super) fn size(&self) -> u64 {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|copy| copy.metadata().ok()).map(|copy| copy.len()).sum()
    }

    fn path(&self, blob: &BlobRef) -> PathBuf {
        self.folder.join(blob.hash.to_string())
    }
}

/// Reads a file of `size` bytes that hash to `hash`; each part is hashed while the processor still has it at hand.
fn read_checked(file: &File, size: usize, hash: &Hash) -> io::Result<Option<Vec<u8>>> {
    const PART: usize = 64 << 10;
    if file.metadata()?.len() != size as u64 {
        return Ok(None);
    }
    let (mut bytes, mut hasher) = (vec![0; size], blake3::Hasher::new());
    for (number, part) in bytes.chunks_mut(PART).enumerate() {
        file.read_exact_at(part, (number * PART) as u64)?;
        hasher.update(part);
    }
    Ok((Hash::from(hasher.finalize()) == *hash).then_some(bytes))
}

/// How many bytes two payloads have in common from the start.
fn agreeing(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 4096;
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK)).take_while(|(a, b)| a == b).count();
    let start = blocks * BLOCK;
    start + a[start..].iter().zip(&b[start..]).take_while(|(a, b)| a == b).count()
}
