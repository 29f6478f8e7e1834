//! Runs that something unfinished goes on from: nothing of them may be given up.
//!
//! A run says so itself, or a gate of it waits. The events of gates are read here as far as that is needed.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use super::{Error, Project};
use crate::model::{CheckpointId, Event, RunId, Topic, WAITING_GATES};
use crate::store::{Batch, EventQuery, NewEntry};

const UNFINISHED: &str = "unfinished";
const FINISHED: &str = "finished";

/// What must stay because something goes on from it.
#[derive(Debug, Default)]
pub(super) struct Needed {
    pub(super) runs: HashSet<String>,
    pub(super) checkpoints: HashSet<CheckpointId>,
}

impl Project {
    /// Says that a run is not over: until [`finished`](Self::finished) is said, no collection gives up anything of it.
    /// Saying it again changes nothing.
    pub fn unfinished(&self, run: &RunId) -> Result<(), Error> {
        self.say_of_run(run, UNFINISHED)
    }

    /// Says that a run is over, and that nothing goes on from it.
    pub fn finished(&self, run: &RunId) -> Result<(), Error> {
        self.say_of_run(run, FINISHED)
    }

    /// Lists the runs that say they are not over, by name.
    pub fn unfinished_runs(&self) -> Result<Vec<RunId>, Error> {
        Ok(self.said_unfinished()?.into_iter().filter_map(|run| RunId::new(run).ok()).collect())
    }

    fn said_unfinished(&self) -> Result<BTreeSet<String>, Error> {
        let mut runs = BTreeSet::new();
        for (_, event) in self.store.events(&EventQuery::all(Topic::Run))? {
            match word_of(&event.body) {
                Some(UNFINISHED) => drop(runs.insert(event.key)),
                Some(_) => drop(runs.remove(&event.key)),
                None => {}
            }
        }
        Ok(runs)
    }

    fn say_of_run(&self, run: &RunId, word: &str) -> Result<(), Error> {
        let query = EventQuery { topic: Topic::Run, key: Some(run.to_string()), last: None };
        let events = self.store.events(&query)?;
        let said = events.iter().rev().find_map(|(_, event)| word_of(&event.body));
        if said.unwrap_or(FINISHED) == word {
            return Ok(());
        }
        let at = self.context.clock.now();
        let event = Event { topic: Topic::Run, key: run.to_string(), at, body: json!({"type": word}) };
        self.store.write(Batch { entries: vec![NewEntry::Event(event)], ..Batch::default() })?;
        Ok(())
    }

    /// Finds what must stay: the runs that are not over, those that a waiting gate belongs to, and the files that such
    /// a gate could be gone back to. A gate that stands by itself needs nothing of the run that it happens to be in.
    pub(super) fn needed_to_go_on(&self) -> Result<Needed, Error> {
        let mut needed = Needed { runs: self.said_unfinished()?.into_iter().collect(), ..Needed::default() };
        let index = self.store.events(&EventQuery::latest(Topic::Gate, WAITING_GATES))?;
        let waiting = index.iter().filter_map(|(_, event)| event.body["waiting"].as_array()).flatten();
        for gate in waiting.filter_map(Value::as_str) {
            let query = EventQuery { topic: Topic::Gate, key: Some(gate.to_owned()), last: None };
            let events = self.store.events(&query)?;
            let asked = events.iter().rev().find(|(_, event)| event.body["state"] == "asked");
            let Some((_, asked)) = asked else { continue };
            let of = &asked.body["of"];
            needed.runs.extend(of["run"].as_str().filter(|_| of["alone"] != true).map(str::to_owned));
            needed
                .checkpoints
                .extend(asked.body["files"].as_str().and_then(|id| id.parse::<CheckpointId>().ok()));
        }
        Ok(needed)
    }
}

fn word_of(body: &Value) -> Option<&'static str> {
    [UNFINISHED, FINISHED].into_iter().find(|word| body["type"] == *word)
}
