//! Going back after an error, to the stage that the kind of error calls for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Checkpoint, Error, Rollback, Task};
use crate::model::{Event, Stage, Timestamp, Topic};
use crate::project::RestoreOutcome;
use crate::store::{Batch, EventQuery, NewEntry};

/// What sort of error a task ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The implementation went wrong: back to the start.
    Implementation,
    /// Validation failed: back to the implementation.
    Validation,
    /// Anything else: back to the newest checkpoint.
    Other,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ErrorKind::Implementation => "implementation",
            ErrorKind::Validation => "validation",
            ErrorKind::Other => "other",
        })
    }
}

impl FromStr for ErrorKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let all = [ErrorKind::Implementation, ErrorKind::Validation, ErrorKind::Other];
        all.into_iter().find(|kind| kind.to_string() == text).ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

/// The error for a word that is no kind of error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not one of implementation, validation, other", .0.escape_debug())]
pub struct UnknownKind(String);

/// How far a task is, derived from its checkpoints since it was last reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Flags {
    /// It was started.
    pub is_started: bool,
    /// It is implemented.
    pub is_complete: bool,
    /// It is validated.
    pub is_validated: bool,
}

/// What a recovery did.
#[derive(Debug, Clone)]
pub struct Recovered {
    /// The checkpoint that was gone back to.
    pub target: Checkpoint,
    /// What happened to the files.
    pub restore: RestoreOutcome,
    /// How far the task is now: nowhere.
    pub flags: Flags,
}

/// Picks the checkpoint that an error calls for, from the options oldest first; `None` if there are none.
pub fn target_of(error: ErrorKind, options: &[Checkpoint]) -> Option<&Checkpoint> {
    let wanted = match error {
        ErrorKind::Implementation => Some(Stage::Start),
        ErrorKind::Validation => Some(Stage::Implementation),
        ErrorKind::Other => None,
    };
    options.iter().find(|one| Some(one.stage()) == wanted).or(options.last())
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Happened {
    /// The task's flags were reset.
    Recovered { error: ErrorKind, message: Option<String>, stage: Stage },
}

impl Task<'_> {
    /// Goes back to where the kind of error calls for, resets the task's flags and notes why. `None` if the task has
    /// no checkpoint.
    pub fn recover(&self, error: ErrorKind, message: Option<&str>) -> Result<Option<Recovered>, Error> {
        let options = self.recovery_options()?;
        let Some(target) = target_of(error, &options).cloned() else { return Ok(None) };
        let restore = self.restore(&target, Rollback::Hard)?;
        let happened =
            Happened::Recovered { error, message: message.map(str::to_owned), stage: target.stage() };
        let body = serde_json::to_value(&happened).expect("what happened has string keys only");
        let at = self.project.context().clock.now();
        let event = Event { topic: Topic::Run, key: self.run.to_string(), at, body };
        self.project.store().write(Batch { entries: vec![NewEntry::Event(event)], ..Batch::default() })?;
        let why = message.map_or_else(String::new, |message| format!(": {message}"));
        self.log_progress(&format!("recovered from a failure ({error}{why}) to `{}`", target.stage()))?;
        Ok(Some(Recovered { target, restore, flags: self.flags()? }))
    }

    /// Says how far the task is since it was last reset.
    pub fn flags(&self) -> Result<Flags, Error> {
        let reset = self.last_reset()?;
        let since = self.history()?;
        let since = since.iter().filter(|one| reset.is_none_or(|reset| one.record().created_at > reset));
        let reached: Vec<Stage> = since.map(Checkpoint::stage).collect();
        Ok(Flags {
            is_started: !reached.is_empty(),
            is_complete: reached.iter().any(|stage| *stage > Stage::Start),
            is_validated: reached.contains(&Stage::Validated),
        })
    }

    fn last_reset(&self) -> Result<Option<Timestamp>, Error> {
        let query = EventQuery { topic: Topic::Run, key: Some(self.run.to_string()), last: None };
        let events = self.project.store().events(&query)?;
        let is_reset = |event: &Event| serde_json::from_value::<Happened>(event.body.clone()).is_ok();
        Ok(events.into_iter().rev().map(|(_, event)| event).find(is_reset).map(|event| event.at))
    }
}
