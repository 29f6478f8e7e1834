//! Pins: checkpoints that stay whatever the policy says. What is pinned now is derived from what happened.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Error, Project};
use crate::model::{Checkpoint, CheckpointId, Event, Topic};
use crate::store::{Batch, EventQuery, NewEntry};

impl Project {
    /// Pins a checkpoint; says whether it was not pinned before.
    pub fn pin(&self, checkpoint: &Checkpoint) -> Result<bool, Error> {
        self.set_pin(checkpoint, true)
    }

    /// Takes a pin away; says whether there was one.
    pub fn unpin(&self, checkpoint: &Checkpoint) -> Result<bool, Error> {
        self.set_pin(checkpoint, false)
    }

    /// Says whether a checkpoint is pinned.
    pub fn is_pinned(&self, checkpoint: &Checkpoint) -> Result<bool, Error> {
        let latest = self.store.events(&EventQuery::latest(Topic::Pin, checkpoint.id.to_string()))?;
        Ok(latest.last().is_some_and(|(_, event)| is_pin(&event.body)))
    }

    fn set_pin(&self, checkpoint: &Checkpoint, pinned: bool) -> Result<bool, Error> {
        if self.is_pinned(checkpoint)? == pinned {
            return Ok(false);
        }
        let key = checkpoint.id.to_string();
        let body = json!({"pinned": pinned, "who": self.context.who});
        let event = Event { topic: Topic::Pin, key, at: self.context.clock.now(), body };
        self.store.write(Batch { entries: vec![NewEntry::Event(event)], ..Batch::default() })?;
        Ok(true)
    }

    /// Lists the checkpoints that are pinned now.
    pub fn pinned(&self) -> Result<BTreeSet<CheckpointId>, Error> {
        let mut pinned = BTreeSet::new();
        for (_, event) in self.store.events(&EventQuery::all(Topic::Pin))? {
            let Ok(id) = event.key.parse() else { continue };
            if is_pin(&event.body) {
                pinned.insert(id);
            } else {
                pinned.remove(&id);
            }
        }
        Ok(pinned)
    }
}

fn is_pin(body: &Value) -> bool {
    body["pinned"] == Value::Bool(true)
}
