//! Journeys: gates with work between them, and where each answer leads, as data.
//!
//! A journey is a list of stops. At a stop either something is done ([`Task::Run`]) or a person is asked
//! ([`Task::Ask`]). Where a run of a journey stands is never written down: it is told by replaying what is recorded,
//! the results of work and the answers to gates, from the first stop on ([`replay`]). A run that was killed anywhere
//! therefore goes on where it was, and a gate that is opened again by anyone takes the run back to it.

mod built_in;
mod replay;
mod travel;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Prompt, Unclear};
use crate::reply::{Action, open_actions};

pub use built_in::route;
pub use replay::{Given, Next, Position};
pub use travel::{Arrived, Commands, Error, Travel, Work};

/// Where a journey ends.
pub const END: &str = "end";

/// Gates with work between them, and where each answer leads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
}

/// A stop of a journey.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    },
}

/// A stop as a file describes it.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ask: Option<Box<Prompt>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on: Option<HashMap<Action, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<Run>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl TryFrom<Written> for Stop {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { id, ask, data, on, run, next } = written;
        let task = match (ask, on, run) {
            (Some(ask), Some(on), None) if next.is_none() => Task::Ask { ask, data, on },
            (None, None, Some(run)) if data.is_none() => Task::Run { run, next },
            _ => {
                let id = id.escape_debug();
                return Err(format!(
                    "stop `{id}` needs either `run` (and `next`) or `ask` (and `data`) with `on`"
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
            Task::Run { run, next } => Self { id: stop.id, run: Some(run), next, ..Self::default() },
        }
    }
}

/// A command: a program with its arguments, or a line for the shell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// A built-in journey with its commands, as a file describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BuiltIn {
    journey: String,
    #[serde(default)]
    name: Option<String>,
    work: BTreeMap<String, Run>,
    #[serde(default)]
    files: bool,
    #[serde(default)]
    input: Value,
}

/// The error for a description that leads nowhere.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// It cannot be read.
    #[error("the journey cannot be read")]
    Json(#[from] serde_json::Error),
    /// It leads nowhere.
    #[error("the journey cannot be travelled: {0}")]
    Leads(String),
}

impl Journey {
    /// Reads a journey from JSON and checks that every answer leads somewhere.
    pub fn read(text: &str) -> Result<Self, Invalid> {
        let value: Value = serde_json::from_str(text)?;
        if value.get("journey").is_none() {
            return Journey::deserialize(value)?.checked();
        }
        let file = BuiltIn::deserialize(value)?;
        let mut journey = match file.journey.as_str() {
            "route" => route(),
            other => return Err(Invalid::Leads(format!("there is no journey `{}`", other.escape_debug()))),
        };
        journey.name = file.name.unwrap_or(journey.name);
        (journey.files, journey.input) = (file.files, file.input);
        file.work.into_iter().try_for_each(|(stop, command)| journey.put(&stop, command))?;
        journey.checked()
    }

    fn put(&mut self, id: &str, command: Run) -> Result<(), Invalid> {
        let work = self.stops.iter_mut().find(|stop| stop.id == id).map(|stop| &mut stop.task);
        match work {
            Some(Task::Run { run, .. }) => {
                *run = command;
                Ok(())
            }
            _ => Err(Invalid::Leads(format!("nothing is done at `{}`", id.escape_debug()))),
        }
    }

    /// Checks that every answer leads somewhere; questions whose unclear answers lead somewhere take them.
    pub fn checked(mut self) -> Result<Self, Invalid> {
        let mut ids = HashSet::new();
        for stop in &self.stops {
            if crate::model::RunId::new(&stop.id).is_err() || stop.id == END || !ids.insert(stop.id.as_str())
            {
                let id = stop.id.escape_debug();
                return Err(Invalid::Leads(format!("`{id}` is no name for a stop, or there are two of it")));
            }
        }
        if let Some(fault) = self.stops.iter().find_map(|stop| self.fault(stop)) {
            return Err(Invalid::Leads(fault));
        }
        if self.stops.is_empty() || crate::model::RunId::new(&self.name).is_err() {
            return Err(Invalid::Leads("it has no stop, or no name".to_owned()));
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
