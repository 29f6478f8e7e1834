//! Where a run of a journey stands, told from what is recorded. It reads, decides, and does nothing.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{END, Journey, Stop, Task};
use crate::gate::{Error, Gate, GateId, Prompt};
use crate::model::{CheckpointId, RunId};
use crate::reply::{Action, Details};

/// What is recorded of a run.
pub(super) struct Record<'a> {
    pub(super) run: &'a RunId,
    /// The results of work, oldest first: their place in the run, the stop, what came out.
    pub(super) results: Vec<(u64, String, Value)>,
    /// The place of each checkpoint in the run.
    pub(super) places: HashMap<CheckpointId, u64>,
    /// Finds a gate.
    pub(super) gate: &'a dyn Fn(&GateId) -> Result<Option<Gate>, Error>,
}

/// An answer on the way to where the run stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Given {
    /// The stop.
    pub stop: String,
    /// The gate.
    pub gate: GateId,
    /// What was answered.
    pub action: Action,
    /// What belongs to that.
    pub details: Details,
    /// In which words.
    pub words: String,
}

/// Where a run of a journey stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Position {
    /// What comes next.
    pub next: Next,
    /// The answers on the way here, oldest first.
    pub given: Vec<Given>,
    /// The newest result of each stop where something was done.
    pub results: Map<String, Value>,
}

/// What comes next in a run of a journey.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Something is to be done.
    Work {
        /// The stop.
        stop: String,
        /// How often this run was there, from 1.
        visit: u32,
    },
    /// A person is to be asked.
    Ask {
        /// The stop.
        stop: String,
        /// The gate.
        gate: GateId,
        /// What is asked.
        prompt: Box<Prompt>,
    },
    /// Someone wants to go back to an earlier gate.
    Back {
        /// The gate where they said so.
        from: GateId,
        /// The gate to open again.
        to: GateId,
    },
    /// It is over.
    Over {
        /// The gate that ended it, if it did not come to its end.
        stopped_by: Option<GateId>,
    },
}

/// A journey that goes on for longer goes in circles.
const MOST_VISITS: u32 = 10_000;

/// Tells where a run stands: from the first stop on, each result and each answer leads to the next stop. Only what is
/// recorded later than what led to it counts, so whatever depends on an answer that changed is done again.
pub(super) fn replay(journey: &Journey, record: &Record<'_>) -> Result<Position, Error> {
    let mut walk =
        Walk { journey, record, since: 0, visits: HashMap::new(), given: Vec::new(), results: Map::new() };
    let mut at = journey.stops.first().map_or(END, |stop| stop.id.as_str()).to_owned();
    let next = loop {
        let Some(stop) = journey.stop(&at) else { break Next::Over { stopped_by: None } };
        match walk.step(stop)? {
            Step::To(next) => at = next,
            Step::Here(next) => break next,
        }
    };
    Ok(Position { next, given: walk.given, results: walk.results })
}

struct Walk<'a> {
    journey: &'a Journey,
    record: &'a Record<'a>,
    /// The place in the run of what was counted last.
    since: u64,
    visits: HashMap<String, u32>,
    given: Vec<Given>,
    results: Map<String, Value>,
}

enum Step {
    To(String),
    Here(Next),
}

impl Walk<'_> {
    fn step(&mut self, stop: &Stop) -> Result<Step, Error> {
        let visit = self.visits.entry(stop.id.clone()).or_default();
        *visit += 1;
        let visit = *visit;
        if visit > MOST_VISITS {
            return Err(Error::Invalid { what: format!("the journey was at `{}` too often", stop.id) });
        }
        match &stop.task {
            Task::Run { .. } => Ok(self.work(&stop.id, visit)),
            Task::Ask { ask, data, .. } => {
                let gate = GateId::new(format!("{}.{}.{visit}", self.record.run, stop.id))
                    .map_err(|error| Error::Invalid { what: error.to_string() })?;
                let result = data.as_ref().and_then(|data| self.results.get(data)).cloned();
                let mut prompt = ask.as_ref().clone();
                prompt.data = result.unwrap_or(prompt.data);
                self.ask(stop, gate, prompt.complete()?)
            }
        }
    }

    fn work(&mut self, stop: &str, visit: u32) -> Step {
        let done = self.record.results.iter().find(|(place, done, _)| *place > self.since && done == stop);
        let Some((place, _, result)) = done else {
            return Step::Here(Next::Work { stop: stop.to_owned(), visit });
        };
        self.since = *place;
        self.results.insert(stop.to_owned(), result.clone());
        Step::To(self.journey.after(stop).to_owned())
    }

    fn ask(&mut self, stop: &Stop, id: GateId, prompt: Prompt) -> Result<Step, Error> {
        let gate = (self.record.gate)(&id)?.filter(|gate| gate.shown == prompt.shown());
        let decided = gate.as_ref().and_then(|gate| Some((gate, self.decided(gate)?)));
        let Some((gate, (place, action))) = decided else {
            return Ok(Step::Here(Next::Ask { stop: stop.id.clone(), gate: id, prompt: Box::new(prompt) }));
        };
        self.since = place;
        let answer = gate.answer();
        let details = answer.map(|answer| answer.reply.details.clone()).unwrap_or_default();
        let words = answer.map(|answer| answer.words.clone()).unwrap_or_default();
        let back_to = details.back_to.clone();
        let before = self.earlier(back_to.as_deref());
        self.given.push(Given { stop: stop.id.clone(), gate: id.clone(), action, details, words });
        Ok(self.lead(stop, id, action, before))
    }

    /// The place and action of what was decided at a gate, unless it was decided before what it depends on.
    fn decided(&self, gate: &Gate) -> Option<(u64, Action)> {
        let (action, checkpoint) = (gate.action()?, gate.checkpoint()?);
        let place = *self.record.places.get(&checkpoint)?;
        (place > self.since).then_some((place, action))
    }

    /// The gate to go back to: the newest on the way whose name fits what was said, else the one before.
    fn earlier(&self, back_to: Option<&str>) -> Option<GateId> {
        let wanted = back_to.map(str::to_lowercase).unwrap_or_default();
        let fits = |given: &&Given| {
            let parts = given.stop.split(['_', '-']).filter(|part| part.len() > 3);
            let stem = |part: &str| part.chars().take(5).collect::<String>().to_lowercase();
            parts
                .map(stem)
                .any(|stem| wanted.split(|c: char| !c.is_alphanumeric()).any(|word| word.starts_with(&stem)))
        };
        let named = self.given.iter().rev().filter(|_| !wanted.is_empty()).find(fits);
        named.or(self.given.last()).map(|given| given.gate.clone())
    }

    fn lead(&self, stop: &Stop, id: GateId, action: Action, before: Option<GateId>) -> Step {
        let Task::Ask { data, on, .. } = &stop.task else { return Step::To(END.to_owned()) };
        let to = on.get(&action);
        match (action, before, to) {
            (Action::Back, before, Some(to)) => {
                match self.newest_at(to).or(before.filter(|_| self.is_ask(to))) {
                    Some(to) => Step::Here(Next::Back { from: id, to }),
                    None => Step::To(to.clone()),
                }
            }
            (Action::Back, Some(to), None) => Step::Here(Next::Back { from: id, to }),
            (_, _, Some(to)) => Step::To(to.clone()),
            (Action::Cancel | Action::Reject, ..) => Step::Here(Next::Over { stopped_by: Some(id) }),
            // What should be different or is missing goes to the work that the question is about, else it is asked again.
            _ => Step::To(data.clone().unwrap_or_else(|| stop.id.clone())),
        }
    }

    fn is_ask(&self, id: &str) -> bool {
        self.journey.stop(id).is_some_and(|stop| matches!(stop.task, Task::Ask { .. }))
    }

    /// The newest gate of a stop on the way here, not counting where we are.
    fn newest_at(&self, stop: &str) -> Option<GateId> {
        let earlier = self.given.iter().rev().skip(1);
        earlier.filter(|given| given.stop == stop).map(|given| given.gate.clone()).next()
    }
}
