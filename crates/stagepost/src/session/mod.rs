//! Sessions: an agent's work in phases, with checkpoints to go back to.
//!
//! A [`Session`] is opened on a project. Its checkpoints are commits on the branch with a tag, or snapshots beside it;
//! everything else (summary, counts of rollbacks, statistics, the files in `.flow/maestro/sessions/`) is derived from
//! its checkpoints and from the record of its rollbacks.
//!
//! ```
//! # let home = stagepost_testutil::TempProject::git();
//! # let project = &home.open();
//! use stagepost::model::{Phase, Progress, Reason};
//! use stagepost::session::{NewCheckpoint, Session};
//!
//! let session = Session::start(project, "Implement the feature")?;
//! let checkpoint = session.create(NewCheckpoint {
//!     reason: Reason::PhaseComplete,
//!     on_branch: false,
//!     ..NewCheckpoint::new(Phase::Plan, "Planning phase completed")
//! })?;
//! println!("Created checkpoint: {}", checkpoint.id());
//! println!("Commit SHA: {:?}", checkpoint.commit());
//!
//! home.write("src/lib.rs", "pub fn answer() -> u32 { 42 }\n");
//! let milestone = session.create(NewCheckpoint {
//!     reason: Reason::TaskGroupComplete,
//!     progress: Some(Progress {
//!         tasks_completed: Some(15),
//!         decisions_made: Some(8),
//!         files_modified: Some(23),
//!         files_created: Some(12),
//!         tests_passing: Some(42),
//!         tests_failing: Some(0),
//!     }),
//!     ..NewCheckpoint::new(Phase::Implement, "Implementation milestone")
//! })?;
//!
//! let newest_first = session.list()?;
//! assert_eq!(newest_first[0].id(), milestone.id());
//! let summary = session.summary()?;
//! assert_eq!(summary.total_checkpoints, 2);
//! assert_eq!(summary.checkpoints_by_type["task_group_complete"], 1);
//! # Ok::<(), stagepost::session::Error>(())
//! ```

mod cache;
mod create;
mod error;
mod events;
mod rollback;
mod rule;
mod validate;
mod view;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use create::{Checkpoint, NewCheckpoint, Tag};
pub use error::Error;
pub use rollback::{Changes, Plan};
pub use rule::{Failure, Trigger, should_rollback};
pub use validate::{Finding, TestRun, Validation};
pub use view::{catch_up, export};

use crate::formats::maestro;
use crate::model::{Imported, Phase, Run, RunId, RunKind};
use crate::project::{self, Outdated, Project};
use crate::store::{Batch, Expect, NewEntry, Query};
use events::Happened;

/// A session of a project.
#[derive(Debug, Clone)]
pub struct Session<'p> {
    project: &'p Project,
    run: Run,
}

/// How a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// It was started and has no checkpoint yet.
    Initializing,
    /// It is planning.
    Planning,
    /// It is turning the plan into tasks.
    GeneratingTasks,
    /// It is doing the tasks.
    Implementing,
    /// It is checking the result.
    Validating,
    /// It is tidying up and reporting.
    GeneratingReport,
    /// It is done.
    Completed,
    /// It was given up.
    Failed,
    /// It waits.
    Paused,
}

impl Status {
    fn of(phase: Phase) -> Self {
        match phase {
            Phase::Plan => Status::Planning,
            Phase::GenerateTasks => Status::GeneratingTasks,
            Phase::Implement => Status::Implementing,
            Phase::Validate => Status::Validating,
            Phase::Cleanup => Status::GeneratingReport,
        }
    }

    /// Returns the name used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Initializing => "initializing",
            Status::Planning => "planning",
            Status::GeneratingTasks => "generating_tasks",
            Status::Implementing => "implementing",
            Status::Validating => "validating",
            Status::GeneratingReport => "generating_report",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Paused => "paused",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<'p> Session<'p> {
    /// Starts a session about `request`, under a new id.
    pub fn start(project: &'p Project, request: &str) -> Result<Self, Error> {
        let id = RunId::new(project.new_id().to_string())?;
        Self::begin(project, id, request)
    }

    /// Opens a session that was started before.
    pub fn open(project: &'p Project, id: &RunId) -> Result<Self, Error> {
        match project.store().run(id)? {
            Some(run) if run.kind == RunKind::Session => Ok(Self { project, run }),
            _ => Err(Error::NoSession { session: id.clone() }),
        }
    }

    /// Opens a session, or one that begins with its first checkpoint under the id that someone else gave it. If
    /// several do so at once, it is begun by one of them and found by the others.
    pub fn open_or_start(project: &'p Project, id: &RunId) -> Result<Self, Error> {
        match project.store().run(id)? {
            Some(run) if run.kind == RunKind::Session => Ok(Self { project, run }),
            Some(run) => Err(Error::OtherRun { run: id.clone(), kind: run.kind }),
            None => {
                id.check_new()?;
                Ok(Self { project, run: new_run(project, id.clone(), "")? })
            }
        }
    }

    fn begin(project: &'p Project, id: RunId, request: &str) -> Result<Self, Error> {
        let session = Self { project, run: new_run(project, id, request)? };
        let outdated = session.claim_views()?;
        let entries = vec![NewEntry::Run(session.run.clone())];
        let expect = vec![Expect::NewRun(session.run.id.clone())];
        project.store().write(Batch { entries, expect, ..Batch::default() })?;
        session.publish(outdated)?;
        session.as_stored()
    }

    /// The session as the store has it: without what looks like a token. Files of it show that and nothing else.
    fn as_stored(&self) -> Result<Self, Error> {
        let stored = self.project.store().run(&self.run.id)?;
        Ok(Self { project: self.project, run: stored.unwrap_or_else(|| self.run.clone()) })
    }

    /// Lists the sessions of a project, oldest first.
    pub fn all(project: &'p Project) -> Result<Vec<Session<'p>>, Error> {
        let runs = project.runs()?.into_iter().filter(|run| run.kind == RunKind::Session);
        Ok(runs.map(|run| Self { project, run }).collect())
    }

    /// Returns the id.
    pub fn id(&self) -> &RunId {
        &self.run.id
    }

    /// Says how the session stands, such as completed; new work after that counts more.
    pub fn set_status(&self, status: Status) -> Result<(), Error> {
        let outdated = self.project.begin_view(self.run.id.as_str())?;
        self.say(&Happened::Status { status })?;
        self.publish(outdated)
    }

    /// Lists the checkpoints, newest first.
    pub fn list(&self) -> Result<Vec<Checkpoint>, Error> {
        let query = Query { run: Some(self.run.id.clone()), ..Query::default() };
        let counts = view::count(&self.history()?);
        let count = |one: &crate::model::Checkpoint| match counts.is_empty() {
            true => 0,
            false => counts.get(&one.id.to_string()).copied().unwrap_or(0),
        };
        let listed = self.project.log(&query)?.into_iter();
        Ok(listed
            .filter_map(|one| {
                let count = count(&one);
                Checkpoint::new(one, count)
            })
            .collect())
    }

    /// Finds a checkpoint of this session by its id, the start of it, or the id it had before it was imported.
    pub fn get(&self, name: &str) -> Result<Checkpoint, Error> {
        let missing = || Error::NotFound { session: self.run.id.clone(), checkpoint: name.to_owned() };
        let found = match self.project.resolve(name) {
            Ok(found) if found.run == self.run.id && !name.starts_with('@') => Some(found),
            Ok(_) | Err(project::Error::NotFound { .. } | project::Error::Pruned { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let found = match found {
            Some(found) => found,
            None => self.imported_as(name)?.ok_or_else(missing)?,
        };
        let count = view::count(&self.history()?).get(&found.id.to_string()).copied().unwrap_or(0);
        Checkpoint::new(found, count).ok_or_else(missing)
    }

    /// Finds a checkpoint by the id it had where it was imported from. Ids made from seconds collide.
    fn imported_as(&self, name: &str) -> Result<Option<crate::model::Checkpoint>, Error> {
        let query = Query { run: Some(self.run.id.clone()), ..Query::default() };
        let is_it = |one: &crate::model::Checkpoint| Imported::of(one).is_some_and(|from| from.id == name);
        let mut found: Vec<_> = self.project.log(&query)?.into_iter().filter(is_it).collect();
        if found.len() > 1 {
            let (checkpoint, candidates) = (name.to_owned(), found.iter().map(|one| one.id).collect());
            return Err(Error::Ambiguous { session: self.run.id.clone(), checkpoint, candidates });
        }
        Ok(found.pop())
    }

    /// Deletes a checkpoint: a stub is left of it, its snapshot is let go, and its tag goes unless it is to stay.
    pub fn delete(&self, name: &str, tag: Tag) -> Result<Checkpoint, Error> {
        let _lock = self.project.lock_work_tree(self.project.settings().busy_timeout)?;
        let checkpoint = self.get(name)?;
        let outdated = self.project.begin_view(self.run.id.as_str())?;
        let tags = checkpoint.mark().tag.filter(|_| tag == Tag::Delete);
        self.project.forget_tagged(self.run.id.as_str(), tags.as_slice(), &[checkpoint.id()])?;
        self.publish(outdated)?;
        Ok(checkpoint)
    }

    fn claim_views(&self) -> Result<Outdated, Error> {
        claim_places(self.project, &self.run.id)?;
        Ok(self.project.begin_view(self.run.id.as_str())?)
    }
}

/// Makes the places of a session's files ours.
fn claim_places(project: &Project, id: &RunId) -> Result<(), Error> {
    for file in [maestro::CHECKPOINTS, maestro::HISTORY, maestro::METADATA] {
        project.claim_view(&maestro::path(id.as_str(), file))?;
    }
    Ok(())
}

/// The record of a session that begins now.
fn new_run(project: &Project, id: RunId, request: &str) -> Result<Run, Error> {
    // Before anyone looks at the files: git may track what stands there, and then it would be committed.
    claim_places(project, &id)?;
    let mut run = Run::new(id, RunKind::Session, project.context().clock.now());
    run.description = request.to_owned();
    run.metadata.insert("git_context".to_owned(), git_context(project)?);
    Ok(run)
}

/// Where the repository stood when a session began.
fn git_context(project: &Project) -> Result<Value, Error> {
    let place = project.place();
    let Some(git) = &place.git else { return Ok(Value::Null) };
    let state = project.snapshots()?.state_of_repository().map_err(project::Error::from)?;
    Ok(json!({
        "branch": state.branch,
        "commit": state.head,
        "repo_root": place.root.to_string_lossy(),
        "is_worktree": git.worktree.is_some(),
        "worktree_name": git.worktree,
    }))
}
