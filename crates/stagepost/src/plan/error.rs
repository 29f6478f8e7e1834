//! What can go wrong with a plan.

use std::path::PathBuf;

use super::Role;
use crate::formats::plans::LenientError;
use crate::model::{InvalidId, RunId};
use crate::{project, store};

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such run.
    #[error("there is no run of a plan called `{}`", run.escape_debug())]
    NoRun {
        /// The run.
        run: String,
    },
    /// The run has no such iteration, or no such part of it.
    #[error("run `{run}` has no {what}")]
    NotFound {
        /// The run.
        run: RunId,
        /// What was asked for.
        what: String,
    },
    /// A job cannot be carried out as it is.
    #[error("the job is not complete: {why}")]
    Job {
        /// What is wrong.
        why: String,
    },
    /// A job is not JSON of the right shape.
    #[error("the job cannot be read")]
    JobJson(#[source] serde_json::Error),
    /// The files should be written, but nobody said where.
    #[error("`output_dir` is missing, and `checkpoint` asks for files")]
    NoOutputDir,
    /// The files would be written where they must not be.
    #[error("`output_dir` {} leads out of the project", path.display())]
    Outside {
        /// The folder.
        path: PathBuf,
    },
    /// The job changed since the run was begun.
    #[error("the job changed since run `{run}` was begun: {}", what.join(", "))]
    Changed {
        /// The run.
        run: RunId,
        /// The members that changed.
        what: Vec<String>,
    },
    /// Another process drives the run.
    #[error("another process drives run `{run}`")]
    Driven {
        /// The run.
        run: RunId,
    },
    /// The run is over.
    #[error("run `{run}` has ended")]
    Ended {
        /// The run.
        run: RunId,
    },
    /// That part of that iteration is recorded with something else in it.
    #[error("iteration {iteration} of run `{run}` has another `{part}` already")]
    Recorded {
        /// The run.
        run: RunId,
        /// The iteration.
        iteration: u32,
        /// The part.
        part: String,
    },
    /// There is no iteration 0.
    #[error("there is no iteration 0: iterations are counted from 1")]
    IterationZero,
    /// A name cannot be used in the name of a file.
    #[error("`{}` cannot be {what}: {why}", text.escape_debug())]
    Name {
        /// What it should be.
        what: &'static str,
        /// The text.
        text: String,
        /// Why not.
        why: &'static str,
    },
    /// A payload is not JSON.
    #[error("the payload of `{part}` is not JSON")]
    Payload {
        /// The part.
        part: String,
        /// Why.
        source: LenientError,
    },
    /// A payload is JSON, but no object.
    #[error("the payload of `{part}` is not a JSON object")]
    NoObject {
        /// The part.
        part: String,
    },
    /// Planner, judge or validator failed as often as it may.
    #[error("the {role} failed in iteration {iteration} of run `{run}`: {what}")]
    Agent {
        /// The run.
        run: RunId,
        /// Who failed.
        role: Role,
        /// In which iteration.
        iteration: u32,
        /// How it failed last.
        what: String,
    },
    /// Someone asked to stop.
    #[error("run `{run}` was stopped")]
    Cancelled {
        /// The run.
        run: RunId,
    },
    /// The lock of a run failed.
    #[error("failed to find out who drives run `{run}`")]
    Lock {
        /// The run.
        run: RunId,
        /// Why.
        source: crate::lock::LockError,
    },
    /// A file could not be written or read.
    #[error("failed to {doing} {}", path.display())]
    File {
        /// What was attempted.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Something was done, but the files that show it could not be brought up to date.
    #[error("it was done and recorded, but the files of run `{run}` could not be written")]
    View {
        /// The run.
        run: RunId,
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
