//! An index beside the user's, for a commit on their branch: theirs is not locked while git and its hooks work, and a
//! kill leaves nothing in its way.

use std::path::{Path, PathBuf};

use super::RestoreError;
use super::index::{BESIDE, Stamp, stamp, swap};
use crate::snapshot::Snapshots;
use crate::snapshot::quarantine::copy_index;

/// A copy of the user's index, to be changed by git and then put in its place.
#[derive(Debug)]
pub struct Staging {
    index: PathBuf,
    beside: PathBuf,
    seen: Stamp,
}

impl Staging {
    /// Returns the copy, for `GIT_INDEX_FILE`.
    pub fn path(&self) -> &Path {
        &self.beside
    }

    /// Puts it in the place of the user's index, unless that changed or is locked by another git.
    pub fn put_in_place(self) -> Result<(), RestoreError> {
        swap(&self.index, &self.beside, &self.seen)
    }
}

impl Snapshots {
    /// Copies the user's index. The caller is the only one who does so in this work tree.
    pub fn stage(&self) -> Result<Option<Staging>, RestoreError> {
        let Some(user) = &self.user else { return Ok(None) };
        self.remove_index_leftovers(user)?;
        let (index, beside) = (user.git_dir.join("index"), user.git_dir.join(BESIDE));
        let seen = stamp(&index)?;
        copy_index(&index, &beside).map_err(|source| RestoreError::Index { source: Box::new(source) })?;
        Ok(Some(Staging { index, beside, seen }))
    }

    /// Removes what is left of a copy that never got to its place.
    pub fn unstage(&self) -> Result<(), RestoreError> {
        self.user.as_ref().map_or(Ok(()), |user| self.remove_index_leftovers(user))
    }
}
