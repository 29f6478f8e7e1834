//! What can go wrong with a project.

use std::io;
use std::path::PathBuf;

use crate::model::{CheckpointId, InvalidId};
use crate::store;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
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
}
