//! Where am I?

use std::fs;
use std::path::Path;

use super::{Error, Project};
use crate::model::Checkpoint;
use crate::store::Query;

/// Where a project stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The newest checkpoint.
    pub latest: Option<Checkpoint>,
    /// The newest checkpoint that someone called good.
    pub last_good: Option<Checkpoint>,
    /// Entries ever written to the store.
    pub entries: u64,
    /// Bytes of the store on disk, with the snapshots that are kept apart from the user's repository.
    pub bytes: u64,
}

impl Project {
    /// Looks where the project stands. It takes the same time whatever the length of the history.
    pub fn status(&self) -> Result<Status, Error> {
        let usage = self.store.usage()?;
        Ok(Status {
            latest: self.newest(Query::default(), 0)?,
            last_good: self.newest(Query { good: true, ..Query::default() }, 0)?,
            entries: usage.entries,
            bytes: usage.bytes + self.private_snapshots(),
        })
    }

    /// Bytes of the snapshots that are kept apart from the user's repository.
    pub(super) fn private_snapshots(&self) -> u64 {
        size_of(&self.place.store.join("snapshots.git"))
    }
}

/// How many bytes are in a folder. What cannot be looked at counts nothing, and links are not followed.
pub(crate) fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => size_of(&entry.path()),
        Ok(about) => about.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}
