//! What can go wrong in a store.

use std::io;
use std::path::PathBuf;

use crate::model::{BlobRef, CheckpointId, RunId};

/// What went wrong in a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something.
    #[error("failed to {doing} {}", path.display())]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The database refused something.
    #[error("failed to {doing} in the store")]
    Database {
        /// What was attempted.
        doing: &'static str,
        /// Why it failed.
        source: rusqlite::Error,
    },
    /// Another process kept the store busy for too long.
    #[error("another process kept the store busy for longer than {waited:?}")]
    Busy {
        /// How long was waited.
        waited: std::time::Duration,
    },
    /// A newer program made the store.
    #[error("the store {} has format {found}, this program knows formats up to {known}", path.display())]
    TooNew {
        /// The store.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format known here.
        known: i64,
    },
    /// There is a file, but it is not a store.
    #[error("{} is not a stagepost store", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// The store was taken away while it was open: what is written to it would be lost with it.
    #[error("the store {} was moved or removed while it was open", path.display())]
    Gone {
        /// Where it was.
        path: PathBuf,
    },
    /// The database of a store was deleted.
    #[error("the database of the store, {}, is gone: {entries} entries were written to it", path.display())]
    Deleted {
        /// Where it was.
        path: PathBuf,
        /// How many entries.
        entries: u64,
    },
    /// Something stored is not as it was written.
    #[error("stored data is damaged: {what}")]
    Damaged {
        /// What is damaged, and how.
        what: String,
    },
    /// The database is damaged so that it could not do what it was asked for.
    #[error("failed to {doing}: the database of the store is damaged: {why}")]
    Malformed {
        /// What was attempted.
        doing: &'static str,
        /// What the database says.
        why: String,
    },
    /// A blob is not in the store.
    #[error("payload {} of {} bytes is not in the store", blob.hash, blob.size)]
    MissingBlob {
        /// The blob.
        blob: BlobRef,
    },
    /// A checkpoint is not in the store.
    #[error("checkpoint {id} is not in the store")]
    MissingCheckpoint {
        /// The checkpoint.
        id: CheckpointId,
    },
    /// A run is not in the store.
    #[error("run `{run}` is not in the store")]
    MissingRun {
        /// The run.
        run: RunId,
    },
    /// What the writer expected no longer holds.
    #[error("the store has changed meanwhile: {what}")]
    Conflict {
        /// What does not hold.
        what: String,
    },
    /// What was to be written could not be read back, or does not say what it does.
    #[error("this cannot be stored: {what}")]
    Refused {
        /// What is wrong with it.
        what: String,
    },
    /// The stream that was to be stored could not be read.
    #[error("failed to read what was to be stored")]
    Source(#[source] io::Error),
    /// The writer that was committing this batch along with its own was lost.
    #[error("the writer stopped before it was known whether the batch was written")]
    WriterLost,
}

impl Error {
    /// Says whether the same call may succeed later without anyone doing anything.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Busy { .. })
    }

    /// Says whether stored data is damaged or missing.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Error::Damaged { .. }
                | Error::Malformed { .. }
                | Error::Deleted { .. }
                | Error::MissingBlob { .. }
                | Error::NotAStore { .. }
        )
    }
}
