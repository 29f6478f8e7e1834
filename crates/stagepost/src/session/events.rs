//! What happened in a session beside its checkpoints: rollbacks and changes of status.

use serde::{Deserialize, Serialize};

use super::{Error, Session, Status};
use crate::model::{CheckpointId, Event, Rollback, Timestamp, Topic};
use crate::store::{Batch, EventQuery, NewEntry};

/// What an event of a session says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Happened {
    /// A rollback is about to happen.
    RollbackBegan { rollback: Rollback },
    /// A rollback succeeded or failed.
    RollbackEnded { rollback: Rollback },
    /// Someone said how the session stands.
    Status { status: Status },
}

impl Session<'_> {
    pub(super) fn say(&self, happened: &Happened) -> Result<(), Error> {
        let body = serde_json::to_value(happened).expect("what happened has string keys only");
        let at = self.project.context().clock.now();
        let event = Event { topic: Topic::Run, key: self.run.id.to_string(), at, body };
        // It may be the first thing that happens in it.
        let entries = vec![NewEntry::Run(self.run.clone()), NewEntry::Event(event)];
        self.project.store().write(Batch { entries, ..Batch::default() })?;
        Ok(())
    }

    pub(super) fn happened(&self) -> Result<Vec<(Timestamp, Happened)>, Error> {
        let query = EventQuery { topic: Topic::Run, key: Some(self.run.id.to_string()), last: None };
        let events = self.project.store().events(&query)?.into_iter();
        // What another version of the program wrote is not ours to read.
        Ok(events
            .filter_map(|(_, event)| Some((event.at, serde_json::from_value(event.body).ok()?)))
            .collect())
    }

    /// Lists every rollback, oldest first, also those that failed. One that was cut off is told by what became of the
    /// files: the next command finishes or reverts them.
    pub fn history(&self) -> Result<Vec<Rollback>, Error> {
        self.rollbacks(self.happened()?)
    }

    pub(super) fn rollbacks(&self, happened: Vec<(Timestamp, Happened)>) -> Result<Vec<Rollback>, Error> {
        let mut rollbacks: Vec<Rollback> = Vec::new();
        let mut open: Option<usize> = None;
        for (_, happened) in happened {
            match happened {
                Happened::RollbackBegan { rollback } => {
                    open = Some(rollbacks.len());
                    rollbacks.push(rollback);
                }
                Happened::RollbackEnded { rollback } => {
                    let begun = open.take().filter(|at| rollbacks[*at].id == rollback.id);
                    match begun {
                        Some(at) => rollbacks[at] = rollback,
                        None => rollbacks.push(rollback),
                    }
                }
                Happened::Status { .. } => {}
            }
        }
        for rollback in rollbacks.iter_mut().filter(|one| !one.success && one.error.is_none()) {
            self.settle(rollback)?;
        }
        Ok(rollbacks)
    }

    /// Finds out what became of a rollback whose end was not recorded.
    fn settle(&self, rollback: &mut Rollback) -> Result<(), Error> {
        let target: Option<CheckpointId> = rollback.checkpoint.parse().ok();
        let restores = self.project.restores()?;
        let done = restores.iter().any(|(at, record)| *at >= rollback.at && Some(record.target) == target);
        rollback.success = done;
        rollback.head_after = rollback.commit.clone().filter(|_| done).or(rollback.head_before.clone());
        rollback.error = (!done).then(|| "it was cut off and taken back".to_owned());
        Ok(())
    }
}
