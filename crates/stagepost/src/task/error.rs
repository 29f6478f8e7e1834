//! What can go wrong with a task.

use crate::model::{InvalidId, Stage};
use crate::{project, store};

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The task has no checkpoint at that stage.
    #[error("task {task} has no checkpoint at stage `{stage}`")]
    NotFound {
        /// The task.
        task: u64,
        /// The stage.
        stage: Stage,
    },
    /// The checkpoint was imported without its files.
    #[error("the checkpoint of task {task} at stage `{stage}` was imported, but its commit is gone")]
    Lost {
        /// The task.
        task: u64,
        /// The stage.
        stage: Stage,
    },
    /// Something was done, but the files that show it could not be brought up to date.
    #[error("it was done and recorded, but the files that show tasks could not be written")]
    View {
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
