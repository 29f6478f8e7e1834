//! What can go wrong with a session.

use super::validate::Finding;
use crate::model::{CheckpointId, InvalidId, RunId, RunKind};
use crate::{project, store};

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such session.
    #[error("there is no session `{session}`")]
    NoSession {
        /// The session.
        session: RunId,
    },
    /// The name belongs to something else.
    #[error("`{run}` is not a session: its kind is {kind}")]
    OtherRun {
        /// The name.
        run: RunId,
        /// What it is.
        kind: RunKind,
    },
    /// The session has no such checkpoint.
    #[error("session `{session}` has no checkpoint `{}`", checkpoint.escape_debug())]
    NotFound {
        /// The session.
        session: RunId,
        /// What was asked for.
        checkpoint: String,
    },
    /// Several checkpoints were imported under one id.
    #[error("session `{session}` has {} checkpoints `{}`", candidates.len(), checkpoint.escape_debug())]
    Ambiguous {
        /// The session.
        session: RunId,
        /// What was asked for.
        checkpoint: String,
        /// What they are called here.
        candidates: Vec<CheckpointId>,
    },
    /// The repository is not in a state for it.
    #[error("the repository is not ready: {}", join(findings))]
    Invalid {
        /// Why.
        findings: Vec<Finding>,
    },
    /// There are uncommitted changes, and nobody said what should become of them.
    #[error("there are uncommitted changes in {files} file{}", if *files == 1 { "" } else { "s" })]
    Dirty {
        /// How many files differ from HEAD.
        files: usize,
    },
    /// The checkpoint was imported without its files.
    #[error("checkpoint `{checkpoint}` was imported, but its commit is gone")]
    Lost {
        /// The checkpoint.
        checkpoint: String,
    },
    /// The test command could not be run.
    #[error("failed to run the test command `{}`", command.escape_debug())]
    TestCommand {
        /// The command.
        command: String,
        /// Why.
        source: std::io::Error,
    },
    /// Something was done, but the files that show it could not be brought up to date.
    #[error("it was done and recorded, but the files of session `{session}` could not be written")]
    View {
        /// The session.
        session: RunId,
        /// Why.
        source: Box<Error>,
    },
    /// A name is not allowed.
    #[error(transparent)]
    InvalidName(#[from] InvalidId),
    /// The project failed.
    #[error(transparent)]
    Project(#[from] project::Error),
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Project(error.into())
    }
}

fn join(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
