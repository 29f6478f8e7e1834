//! Tasks: numbered pieces of work in stages, with a tag for each stage and notes of progress.
//!
//! Saving a stage again moves its tag; the older checkpoint stays in the history. Notes are kept in the store, so no
//! rollback can lose one.
//!
//! ```
//! # let home = stagepost_testutil::TempProject::git();
//! # let project = &home.open();
//! use stagepost::model::Stage;
//! use stagepost::task::{ErrorKind, NewCheckpoint, Rollback, Task};
//!
//! let task = Task::new(project, 1)?;
//! home.write("a.txt", "before\n");
//! task.save(NewCheckpoint::new(Stage::Start, "Before the work"))?;
//! home.write("a.txt", "after\n");
//! task.save(NewCheckpoint::new(Stage::Implementation, "Implemented"))?;
//! task.log_progress("wrote a.txt")?;
//!
//! assert_eq!(task.recovery_options()?.len(), 2);
//! assert_eq!(task.latest()?.map(|latest| latest.stage()), Some(Stage::Implementation));
//!
//! task.rollback_to(Stage::Start, Rollback::Hard)?;
//! assert_eq!(home.read("a.txt").as_deref(), Some("before\n"));
//!
//! let recovered = task.recover(ErrorKind::Validation, Some("tests fail"))?;
//! assert_eq!(recovered.map(|recovered| recovered.target.stage()), Some(Stage::Implementation));
//! # Ok::<(), stagepost::task::Error>(())
//! ```

mod checkpoint;
mod cleanup;
mod error;
mod note;
mod recover;
mod view;

pub use checkpoint::{Checkpoint, NewCheckpoint, Rollback};
pub use cleanup::{Cleaned, CleanupPlan, Limits, Removal, Why, apply_cleanup, plan_cleanup};
pub use error::Error;
pub use note::{log_progress, recent_progress};
pub use recover::{ErrorKind, Flags, Recovered, target_of};
pub use view::{catch_up, export};

use crate::formats::tasks::number_of;
use crate::model::{RunId, RunKind};
use crate::project::Project;

/// A task of a project.
#[derive(Debug, Clone)]
pub struct Task<'p> {
    project: &'p Project,
    number: u64,
    run: RunId,
}

impl<'p> Task<'p> {
    /// Takes hold of a task by its number; it need not have a checkpoint yet.
    pub fn new(project: &'p Project, number: u64) -> Result<Self, Error> {
        Ok(Self { project, number, run: RunId::new(format!("task-{number}"))? })
    }

    /// Lists the tasks that have a checkpoint, by number.
    pub fn all(project: &'p Project) -> Result<Vec<Task<'p>>, Error> {
        let runs = project.runs()?.into_iter().filter(|run| run.kind == RunKind::Task);
        let numbers = runs.filter_map(|run| number_of(run.id.as_str()));
        let mut tasks = numbers.map(|number| Self::new(project, number)).collect::<Result<Vec<_>, _>>()?;
        tasks.sort_by_key(|task| task.number);
        Ok(tasks)
    }

    /// Returns the number.
    pub fn number(&self) -> u64 {
        self.number
    }
}
