//! What can go wrong with a project.

use std::io;
use std::path::PathBuf;

use crate::lock::LockError;
use crate::model::{CheckpointId, InvalidId, RepoPath};
use crate::{snapshot, store};

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The end of the journal is gone: what it refers to cannot be told from what nothing refers to.
    #[error("failed to collect what is not needed: the end of the journal is gone ({}); nothing was deleted", if *entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") })]
    Lost {
        /// How many entries.
        entries: u64,
    },
    /// No checkpoint answers to a name.
    #[error("no checkpoint is called `{}`", name.escape_debug())]
    NotFound {
        /// The name.
        name: String,
    },
    /// Several checkpoints answer to a name.
    #[error("`{}` is the start of {} checkpoint ids", name.escape_debug(), if candidates.len() < 10 { candidates.len().to_string() } else { "10 or more".to_owned() })]
    Ambiguous {
        /// The name.
        name: String,
        /// The first few that answer to it.
        candidates: Vec<CheckpointId>,
    },
    /// The checkpoint was pruned.
    #[error("checkpoint {id} was pruned: only its place and its seal are left")]
    Pruned {
        /// The checkpoint.
        id: CheckpointId,
    },
    /// A checkpoint has no artifact of that name.
    #[error("checkpoint {id} has no artifact `{}`", name.escape_debug())]
    NoArtifact {
        /// The checkpoint.
        id: CheckpointId,
        /// The name.
        name: String,
    },
    /// What should be JSON is not.
    #[error("`{name}` is not valid JSON")]
    InvalidJson {
        /// The artifact.
        name: String,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A name is not allowed.
    #[error(transparent)]
    InvalidName(#[from] InvalidId),
    /// A label looks like a token. It is not named here: errors are kept in logs too.
    #[error(
        "failed to label the checkpoint: label {number} looks like a token, and nothing is stored that does"
    )]
    TokenLabel {
        /// Which of the labels.
        number: usize,
    },
    /// Two artifacts have the same name.
    #[error("two artifacts are called `{name}`")]
    TwiceNamed {
        /// The name.
        name: String,
    },
    /// A file could not be read or written.
    #[error("failed to {doing} {}", path.display())]
    File {
        /// What was attempted.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The checkpoint holds no files.
    #[error("checkpoint {id} holds no files, only what was saved with it by name")]
    NoFiles {
        /// The checkpoint.
        id: CheckpointId,
    },
    /// A path was asked for that is neither in the checkpoint nor among the files of now.
    #[error("`{path}` is neither in the checkpoint nor among the files of now")]
    UnknownPath {
        /// The path.
        path: RepoPath,
    },
    /// No restore is left to undo.
    #[error("there is no restore to undo")]
    NothingToUndo,
    /// No undo is left to take back.
    #[error("there is no undo to take back")]
    NothingToRedo,
    /// The snapshots could not be opened.
    #[error("failed to open the snapshots of the project")]
    Snapshots(#[from] snapshot::OpenError),
    /// The files could not be captured.
    #[error("failed to capture the files of the project")]
    Capture(#[from] snapshot::CaptureError),
    /// The files could not be put back.
    #[error(transparent)]
    Restore(#[from] snapshot::restore::RestoreError),
    /// The files of a checkpoint could not be read.
    #[error("failed to read the files of a checkpoint")]
    Object(#[from] snapshot::ObjectError),
    /// Snapshots could not be let go.
    #[error("failed to let go of the files of pruned checkpoints")]
    Release(#[from] snapshot::ReleaseError),
    /// The refs of snapshots could not be read.
    #[error("failed to list the files that are kept")]
    Refs(#[from] snapshot::RefError),
    /// Another process moves files, HEAD or tags, or writes views; or whether one does cannot be known.
    #[error("{}", at_work(.0))]
    Lock(#[from] LockError),
    /// git could not act as the user.
    #[error(transparent)]
    Branch(#[from] super::BranchError),
    /// Nothing at a path is in a known format.
    #[error("there is nothing to import at {}", path.display())]
    NothingToImport {
        /// The path.
        path: PathBuf,
    },
    /// An export would overwrite something else.
    #[error("{} is there already, with other content", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
}

fn at_work(error: &LockError) -> &'static str {
    match error {
        LockError::Busy { .. } => "another process is at work on this project",
        LockError::Open { .. } => "failed to keep other processes from working on this project meanwhile",
    }
}
