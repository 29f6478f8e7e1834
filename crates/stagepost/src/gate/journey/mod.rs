//! Journeys: gates with work between them, and where each answer leads, as data.
//!
//! A journey is a list of stops. At a stop either something is done ([`Task::Run`]) or a person is asked
//! ([`Task::Ask`]). Where a run of a journey stands is never written down: it is told by replaying what is recorded,
//! the results of work and the answers to gates, from the first stop on ([`replay`]). A run that was killed anywhere
//! therefore goes on where it was, and a gate that is opened again by anyone takes the run back to it.

mod abandon;
mod built_in;
mod limit;
mod read;
mod replay;
mod travel;

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Prompt, Unclear};
use crate::reply::{Action, open_actions};

pub use abandon::{OnItsWay, abandon, on_their_way};
pub use built_in::route;
pub use limit::TimeLimit;
pub use read::{File, Invalid};
pub use replay::{Given, Next, Position};
pub use travel::{Arrived, Commands, Error, Travel, Work};

/// Where a journey ends.
pub const END: &str = "end";

/// Gates with work between them, and where each answer leads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Journey {
    /// What it is called.
    pub name: String,
    /// The stops; it begins at the first.
    pub stops: Vec<Stop>,
    /// Whether the files are kept with every question, so that going back can put them back.
    #[serde(default)]
    pub files: bool,
    /// What the work gets to begin with.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
    /// How long a command may take where its stop does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeLimit>,
}

/// A stop of a journey.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Written", into = "Written")]
pub struct Stop {
    /// What it is called.
    pub id: String,
    /// What happens there.
    pub task: Task,
}

/// What happens at a stop.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// A person is asked.
    Ask {
        /// What is asked.
        ask: Box<Prompt>,
        /// The work whose result the question is about.
        data: Option<String>,
        /// Where each answer leads: a stop, or `end`.
        on: HashMap<Action, String>,
    },
    /// Something is done.
    Run {
        /// The command; in code, whatever the worker does for this stop.
        run: Run,
        /// The stop after it; without one, the next in the list.
        next: Option<String>,
        /// How long it may take.
        timeout: Option<TimeLimit>,
    },
}

/// A stop as a file describes it: `run`, or `ask` with `on`.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Written {
    /// What it is called.
    id: String,
    /// What a person is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    ask: Option<Box<Prompt>>,
    /// The work whose result the question is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    /// Where each answer leads: a stop, or `end`.
    #[serde(skip_serializing_if = "Option::is_none")]
    on: Option<HashMap<Action, String>>,
    /// What is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<Run>,
    /// The stop after what is done; without one, the next in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// How long what is done may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<TimeLimit>,
}

impl TryFrom<Written> for Stop {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { id, ask, data, on, run, next, timeout } = written;
        let task = match (ask, on, run) {
            (Some(ask), Some(on), None) if next.is_none() && timeout.is_none() => Task::Ask { ask, data, on },
            (None, None, Some(run)) if data.is_none() => Task::Run { run, next, timeout },
            _ => {
                let id = id.escape_debug();
                return Err(format!(
                    "stop `{id}` needs either `run` (and `next`, `timeout`) or `ask` (and `data`) with `on`"
                ));
            }
        };
        Ok(Self { id, task })
    }
}

impl From<Stop> for Written {
    fn from(stop: Stop) -> Self {
        match stop.task {
            Task::Ask { ask, data, on } => {
                Self { id: stop.id, ask: Some(ask), data, on: Some(on), ..Self::default() }
            }
            Task::Run { run, next, timeout } => {
                Self { id: stop.id, run: Some(run), next, timeout, ..Self::default() }
            }
        }
    }
}

/// A command: a program with its arguments, or a line for the shell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Run {
    /// A program and its arguments.
    Argv(Vec<String>),
    /// A line for `sh -c`.
    Shell(String),
    /// None: code does it.
    #[default]
    Nothing,
}

/// What is wrong with a description that can be read: where, and what.
struct Fault {
    stop: Option<String>,
    what: String,
}

impl Journey {
    /// Checks that every answer leads somewhere; questions whose unclear answers lead somewhere take them.
    pub fn checked(mut self) -> Result<Self, Invalid> {
        if let Some(fault) = self.first_fault() {
            return Err(Invalid::Leads { place: None, what: fault.what });
        }
        for stop in &mut self.stops {
            if let Task::Ask { ask, on, .. } = &mut stop.task
                && on.contains_key(&Action::Clarify)
            {
                ask.unclear = Unclear::Answers;
            }
        }
        Ok(self)
    }

    fn first_fault(&self) -> Option<Fault> {
        if self.stops.is_empty() || crate::model::RunId::new(&self.name).is_err() {
            return Some(Fault { stop: None, what: "it has no stop, or no name".to_owned() });
        }
        let mut ids = HashSet::new();
        for stop in &self.stops {
            let named = crate::model::RunId::new(&stop.id).is_ok() && stop.id != END;
            if !named || !ids.insert(stop.id.as_str()) {
                let what =
                    format!("`{}` is no name for a stop, or there are two of it", stop.id.escape_debug());
                return Some(Fault { stop: Some(stop.id.clone()), what });
            }
        }
        self.stops
            .iter()
            .find_map(|stop| Some(Fault { stop: Some(stop.id.clone()), what: self.fault(stop)? }))
    }

    fn fault(&self, stop: &Stop) -> Option<String> {
        let is_stop = |id: &str| id == END || self.stop(id).is_some();
        let is_work = |id: &str| self.stop(id).is_some_and(|stop| matches!(stop.task, Task::Run { .. }));
        let id = &stop.id;
        match &stop.task {
            Task::Run { next: Some(next), .. } if !is_stop(next) => {
                Some(format!("`{id}` leads to `{}`, which is no stop", next.escape_debug()))
            }
            Task::Run { .. } => None,
            Task::Ask { data: Some(data), .. } if !is_work(data) => {
                Some(format!("`{id}` asks about `{}`, where nothing is done", data.escape_debug()))
            }
            Task::Ask { ask, on, .. } => {
                let open = open_actions(ask.kind);
                let goes_on = |action: &Action| action.is_consent() || *action == Action::Select;
                if let Some((action, _)) = on.iter().find(|(action, _)| !open.contains(action)) {
                    return Some(format!("at `{id}` nobody can answer `{action}`"));
                }
                if let Some(action) = open.iter().find(|action| goes_on(action) && !on.contains_key(action)) {
                    return Some(format!("at `{id}` the answer `{action}` leads nowhere"));
                }
                let wrong = on.values().find(|to| !is_stop(to))?;
                Some(format!("`{id}` leads to `{}`, which is no stop", wrong.escape_debug()))
            }
        }
    }

    /// Finds a stop.
    pub fn stop(&self, id: &str) -> Option<&Stop> {
        self.stops.iter().find(|stop| stop.id == id)
    }

    /// The stop after work: the one it names, or the next in the list.
    fn after(&self, id: &str) -> &str {
        let at = self.stops.iter().position(|stop| stop.id == id);
        let next = at.and_then(|at| match &self.stops[at].task {
            Task::Run { next: Some(next), .. } => Some(next.as_str()),
            _ => self.stops.get(at + 1).map(|stop| stop.id.as_str()),
        });
        next.unwrap_or(END)
    }
}
