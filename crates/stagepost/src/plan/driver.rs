//! Who drives a run: a kernel lock that dies with its holder.

use std::path::PathBuf;
use std::time::Duration;

use super::Error;
use crate::lock::{Lock, LockError};
use crate::model::RunId;
use crate::project::Project;

/// Somebody who only looks holds the lock for a moment; who wants to drive waits that long.
const MOMENT: Duration = Duration::from_millis(250);

fn path(project: &Project, run: &RunId) -> PathBuf {
    project.place().store.join("plans").join(format!("{run}.lock"))
}

/// Takes the wheel, or says that somebody else has it.
pub(super) fn drive(project: &Project, run: &RunId) -> Result<Lock, Error> {
    Lock::take(&path(project, run), MOMENT).map_err(|source| match source {
        LockError::Busy { .. } => Error::Driven { run: run.clone() },
        source => Error::Lock { run: run.clone(), source },
    })
}

/// Says whether somebody drives the run now.
pub(super) fn is_driven(project: &Project, run: &RunId) -> bool {
    let path = path(project, run);
    path.exists() && matches!(Lock::take(&path, Duration::ZERO), Err(LockError::Busy { .. }))
}
