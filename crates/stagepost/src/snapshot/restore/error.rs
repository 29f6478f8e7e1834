//! How a restore fails.

use std::io;
use std::path::PathBuf;

use super::files::Stop;
use super::task::Failure;
use crate::lock::LockError;
use crate::model::{ObjectId, RepoPath};
use crate::snapshot::beneath;
use crate::snapshot::capture::CaptureError;
use crate::snapshot::git::GitError;
use crate::snapshot::objects::ObjectError;
use crate::snapshot::plan::Refusal;
use crate::snapshot::refs::RefError;

/// The error of a restore. Unless [`RestoreError::nothing_was_touched`] says otherwise, some files may be as the
/// target has them and some as they were; finishing or reverting puts that right.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The plan says that it must not be done.
    #[error("refused to restore: {}", join(refusals))]
    Refused {
        /// Why: at least one reason.
        refusals: Vec<Refusal>,
    },
    /// Ignored files would be overwritten that no checkpoint holds yet.
    #[error("refused to restore: {} ignored files in the way are in no checkpoint yet", paths.len())]
    CaptureFirst {
        /// The files.
        paths: Vec<RepoPath>,
    },
    /// Someone changed a file between plan and action.
    #[error("`{path}` changed while it was being restored")]
    Changed {
        /// The file; it was not touched.
        path: RepoPath,
    },
    /// A file does not read back as it was written.
    #[error("`{path}` is not what was written to it")]
    NotAsWritten {
        /// The file.
        path: RepoPath,
    },
    /// The caller asked to stop.
    #[error("the restore was interrupted")]
    Interrupted,
    /// HEAD is neither where it was nor where it goes.
    #[error("HEAD moved while it was being restored")]
    HeadMoved,
    /// The index is neither as it was nor as it will be.
    #[error("the index changed while it was being restored")]
    IndexChanged,
    /// Another git process holds the index's lock.
    #[error("the index is locked by another git process (`index.lock` exists)")]
    IndexLocked,
    /// An object's content does not fit its name.
    #[error("object {id} of `{path}` has other content than its name says")]
    Damaged {
        /// The file that needs it.
        path: RepoPath,
        /// The object.
        id: ObjectId,
    },
    /// A filter that git writes no file without failed.
    #[error("the filter `{}` failed, and `{path}` cannot be written without it", filter.escape_debug())]
    Filter {
        /// The file; nothing was touched.
        path: RepoPath,
        /// The filter.
        filter: String,
        /// Why.
        source: Box<RestoreError>,
    },
    /// The work tree could not be opened, read or written.
    #[error("failed to restore files")]
    Files(#[from] beneath::Error),
    /// An object could not be read.
    #[error("failed to read what is to be restored")]
    Object(#[from] ObjectError),
    /// git refused.
    #[error("failed to restore HEAD or index through git")]
    Git(#[from] GitError),
    /// A ref could not be read or moved.
    #[error("failed to read or move HEAD")]
    Ref(#[from] RefError),
    /// Another capture or restore went on.
    #[error("failed to lock the snapshots of this work tree")]
    Lock(#[from] LockError),
    /// The index could not be prepared.
    #[error("failed to prepare the index")]
    Index {
        /// Why.
        source: Box<CaptureError>,
    },
    /// A file of the repository failed.
    #[error("failed to {attempted} {}", path.display())]
    Io {
        /// What was attempted.
        attempted: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl RestoreError {
    /// Says whether the restore was refused, so that files, index and HEAD are as they were.
    pub fn nothing_was_touched(&self) -> bool {
        self.is_refusal() || matches!(self, Self::Filter { .. } | Self::Lock(_))
    }

    /// Says whether someone else's work stands against it (and not a failure of ours).
    pub fn is_conflict(&self) -> bool {
        self.is_refusal()
            || matches!(self, Self::Changed { .. } | Self::HeadMoved | Self::IndexChanged | Self::IndexLocked)
    }

    fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::CaptureFirst { .. })
    }

    /// Says whether something stored or just written is not as it was written.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } | Self::NotAsWritten { .. } => true,
            Self::Object(error) => error.is_damage(),
            Self::Filter { source, .. } => source.is_damage(),
            _ => false,
        }
    }

    /// Says whether trying again later can help.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Lock(LockError::Busy { .. }) | Self::IndexLocked)
    }
}

fn join(refusals: &[Refusal]) -> String {
    refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl From<Stop<RestoreError>> for RestoreError {
    fn from(stop: Stop<RestoreError>) -> Self {
        match stop {
            Stop::Changed(path) => Self::Changed { path },
            Stop::NotAsWritten(path) => Self::NotAsWritten { path },
            Stop::Asked => Self::Interrupted,
            Stop::Failed(Failure::Beneath(error)) => Self::Files(error),
            Stop::Failed(Failure::Content(error)) => error,
        }
    }
}
