//! Checkpoints of a session.

use serde_json::Map;

use super::validate::{Finding, quick};
use super::{Error, Session};
use crate::formats::maestro::{self, Entry};
use crate::model::{self, CheckpointId, Kind, Label, Mark, ObjectId, Phase, Progress, Reason, RunKind};
use crate::project::{self, BranchError, Files, Marking, Save};

/// What a checkpoint of a session is to be.
#[derive(Debug, Clone)]
pub struct NewCheckpoint {
    /// The phase.
    pub phase: Phase,
    /// What it is, in words.
    pub description: String,
    /// Why it is made.
    pub reason: Reason,
    /// How far the session is.
    pub progress: Option<Progress>,
    /// The risky operation that comes next.
    pub operation: Option<String>,
    /// Whether changes are committed to the branch; otherwise the files are captured beside it.
    pub on_branch: bool,
    /// Names to give to it.
    pub labels: Vec<Label>,
}

impl NewCheckpoint {
    /// A checkpoint on the branch, made because someone asked for it.
    pub fn new(phase: Phase, description: impl Into<String>) -> Self {
        Self {
            phase,
            description: description.into(),
            reason: Reason::Manual,
            progress: None,
            operation: None,
            on_branch: true,
            labels: Vec::new(),
        }
    }
}

/// Says what becomes of the tag of a checkpoint that is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// It goes too.
    Delete,
    /// It stays.
    Keep,
}

/// A checkpoint of a session, and how often a rollback went to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    record: model::Checkpoint,
    rollbacks: u64,
}

impl Checkpoint {
    /// A run may hold other things too, such as decisions at gates: only what is of a phase is of the session.
    pub(super) fn new(record: model::Checkpoint, rollbacks: u64) -> Option<Self> {
        matches!(record.content.kind, Kind::Phase { .. }).then_some(Self { record, rollbacks })
    }

    /// Returns the id.
    pub fn id(&self) -> CheckpointId {
        self.record.id
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
        self.mark().commit
    }

    /// Returns how the repository knows it.
    pub fn mark(&self) -> Mark {
        Mark::of(&self.record)
    }

    /// Returns how often a rollback went to it.
    pub fn rollbacks(&self) -> u64 {
        self.rollbacks
    }

    /// Returns it in the shape of the session's files.
    pub fn entry(&self) -> Entry {
        Entry::of(&self.record, self.rollbacks).expect("it was made from a checkpoint of a phase")
    }
}

impl Session<'_> {
    /// Makes a checkpoint. The repository is validated first: errors refuse it, warnings do not. If it fails, there
    /// is neither tag nor record.
    pub fn create(&self, new: NewCheckpoint) -> Result<Checkpoint, Error> {
        let findings = quick(self.project)?.errors;
        if !findings.is_empty() {
            return Err(Error::Invalid { findings });
        }
        let outdated = self.claim_views()?;
        let saved = match self.save(new) {
            Ok(saved) => saved,
            Err(error) => {
                self.project.leave_view(outdated);
                return Err(error);
            }
        };
        self.publish(outdated)?;
        Ok(Checkpoint::new(saved, 0).expect("it was saved as one of a phase"))
    }

    fn save(&self, new: NewCheckpoint) -> Result<model::Checkpoint, Error> {
        let id = self.project.new_id();
        let mut metadata = Map::new();
        new.progress.iter().for_each(|progress| progress.put(&mut metadata));
        if let Some(operation) = &new.operation {
            metadata.insert(maestro::OPERATION.to_owned(), operation.clone().into());
        }
        let operation = new.operation.as_deref();
        let marking = Marking {
            id,
            commit: new.on_branch.then(|| maestro::commit_message(&new.description, operation)),
            tag: maestro::tag(&id.to_string()),
            tag_message: maestro::tag_message(&new.description, operation),
            replace: false,
        };
        let save = Save {
            run: Some((self.run.id.clone(), RunKind::Session)),
            begins: Some(self.run.clone()),
            kind: Some(Kind::Phase { phase: new.phase, reason: new.reason }),
            description: new.description,
            labels: new.labels,
            metadata,
            files: Some(Files::default()),
            ..Save::default()
        };
        self.project.save_marked(save, &marking).map_err(|error| match error {
            project::Error::Branch(BranchError::Conflicts) => {
                Error::Invalid { findings: vec![Finding::Conflicts] }
            }
            other => other.into(),
        })
    }
}
