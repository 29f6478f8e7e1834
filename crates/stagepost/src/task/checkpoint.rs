//! Checkpoints of a task: saving a stage, and going back to it.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Error, Task, view};
use crate::formats::tasks::{self, Entry};
use crate::model::{self, Kind, Mark, ObjectId, RunKind, Stage};
use crate::project::{self, Files, Marking, RestoreOutcome, Save, Wish};
use crate::snapshot::restore::Mode;
use crate::store::{Listed, Query};

/// What a checkpoint of a task is to be.
#[derive(Debug, Clone)]
pub struct NewCheckpoint {
    /// The stage.
    pub stage: Stage,
    /// What it is, in words.
    pub description: String,
    /// What else to keep with it.
    pub metadata: Map<String, Value>,
    /// Whether changes are committed to the branch; otherwise the files are captured beside it.
    pub on_branch: bool,
}

impl NewCheckpoint {
    /// A checkpoint on the branch.
    pub fn new(stage: Stage, description: impl Into<String>) -> Self {
        Self { stage, description: description.into(), metadata: Map::new(), on_branch: true }
    }
}

/// How to go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rollback {
    /// The branch goes back, the files stay as they are. HEAD is never detached.
    Soft,
    /// The branch and the files go back.
    Hard,
}

/// A checkpoint of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    pub(super) position: u64,
    task: u64,
    stage: Stage,
    record: model::Checkpoint,
}

impl Checkpoint {
    fn new(listed: Listed) -> Option<Self> {
        let Listed { position, checkpoint: record } = listed;
        let Kind::Stage { task, stage } = record.content.kind else { return None };
        Some(Self { position, task, stage, record })
    }

    /// Returns the number of the task.
    pub fn task(&self) -> u64 {
        self.task
    }

    /// Returns the stage.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Returns the sealed record.
    pub fn record(&self) -> &model::Checkpoint {
        &self.record
    }

    pub(super) fn into_record(self) -> model::Checkpoint {
        self.record
    }

    /// Returns the commit that its tag names; `None` if it was imported and the commit is gone.
    pub fn commit(&self) -> Option<ObjectId> {
        Mark::of(&self.record).commit
    }

    /// Returns it in the shape of the list of checkpoints.
    pub fn entry(&self) -> Entry {
        Entry::of(&self.record).expect("it was made from a stage of a task")
    }
}

impl Task<'_> {
    /// Makes a checkpoint of a stage. If the stage has one already, its tag moves here and the older one stays in the
    /// history.
    pub fn save(&self, new: NewCheckpoint) -> Result<Checkpoint, Error> {
        let outdated = view::claim(self.project)?;
        let stage = new.stage;
        let saved = match self.save_marked(new) {
            Ok(saved) => saved,
            Err(error) => {
                self.project.leave_view(outdated);
                return Err(error.into());
            }
        };
        view::publish(self.project, outdated)?;
        let position = u64::MAX;
        Ok(Checkpoint { position, task: self.number, stage, record: saved })
    }

    fn save_marked(&self, new: NewCheckpoint) -> Result<model::Checkpoint, project::Error> {
        let mut metadata = Map::new();
        if !new.metadata.is_empty() {
            metadata.insert(tasks::GIVEN.to_owned(), Value::Object(new.metadata));
        }
        let marking = Marking {
            id: self.project.new_id(),
            commit: new.on_branch.then(|| tasks::commit_message(&new.description)),
            tag: tasks::tag(self.number, new.stage),
            tag_message: new.description.clone(),
            replace: true,
        };
        let save = Save {
            run: Some((self.run.clone(), RunKind::Task)),
            kind: Some(Kind::Stage { task: self.number, stage: new.stage }),
            description: new.description,
            metadata,
            files: Some(Files::default()),
            ..Save::default()
        };
        self.project.save_marked(save, &marking)
    }

    /// Lists the checkpoints that can be gone back to: the newest of each stage, oldest first.
    pub fn recovery_options(&self) -> Result<Vec<Checkpoint>, Error> {
        let mut seen = HashSet::new();
        let mut options: Vec<_> = self.history()?.into_iter().filter(|one| seen.insert(one.stage)).collect();
        options.reverse();
        Ok(options)
    }

    /// Lists every checkpoint of the task, newest first, also those whose stage was saved again.
    pub fn history(&self) -> Result<Vec<Checkpoint>, Error> {
        let query = Query { run: Some(self.run.clone()), ..Query::default() };
        Ok(self.project.store().list(&query)?.into_iter().filter_map(Checkpoint::new).collect())
    }

    /// Finds the newest checkpoint.
    pub fn latest(&self) -> Result<Option<Checkpoint>, Error> {
        Ok(self.history()?.into_iter().next())
    }

    /// Goes back to a stage. What is there now is in a safety checkpoint first, so that it can be undone.
    pub fn rollback_to(&self, stage: Stage, how: Rollback) -> Result<RestoreOutcome, Error> {
        let options = self.recovery_options()?;
        let found = options.into_iter().find(|one| one.stage == stage);
        self.restore(&found.ok_or(Error::NotFound { task: self.number, stage })?, how)
    }

    /// Whatever branch a checkpoint was made on, a rollback moves the one that is checked out.
    pub(super) fn restore(&self, checkpoint: &Checkpoint, how: Rollback) -> Result<RestoreOutcome, Error> {
        let mut target = checkpoint.record.clone();
        let lost = Error::Lost { task: self.number, stage: checkpoint.stage };
        let Some(snapshot) = target.content.snapshot.as_mut() else { return Err(lost) };
        let state = self.project.snapshots()?.state_of_repository();
        snapshot.branch = state.map_err(project::Error::from)?.branch;
        let mode = match how {
            Rollback::Soft => Mode::Mixed,
            Rollback::Hard => Mode::Hard,
        };
        let outcome = self.project.restore(&target, &Wish { mode, paths: Vec::new() })?;
        view::publish(self.project, self.project.begin_view(view::KEY)?)?;
        Ok(outcome)
    }
}
