//! Where am I?

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
    /// Bytes of the store on disk.
    pub bytes: u64,
}

impl Project {
    /// Looks where the project stands. It takes the same time whatever the length of the history.
    pub fn status(&self) -> Result<Status, Error> {
        let good = Query { good: true, limit: Some(1), ..Query::default() };
        let usage = self.store.usage()?;
        Ok(Status {
            latest: self.newest(Query::default(), 0)?,
            last_good: self.log(&good)?.pop(),
            entries: usage.entries,
            bytes: usage.bytes,
        })
    }
}
