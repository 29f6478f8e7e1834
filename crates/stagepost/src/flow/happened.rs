//! What happened to a run beside the ends of its steps: events of the journal, keyed by run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Fingerprint;
use super::state::Summary;
use crate::model::{Event, RunId, Timestamp, Topic};

/// Something that happened to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Happened {
    /// Someone began to drive it, for the first time or again.
    Began {
        /// The flow as it was written, where it is new or differs from what was captured before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        definition: Option<Definition>,
        /// What the run was given to begin with, where it is new.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// Who drives it.
        who: String,
    },
    /// It waits for a person.
    Waiting {
        /// The step that asks.
        step: String,
        /// The gate.
        gate: String,
    },
    /// Results hold no more; they stay in the history.
    Voided {
        /// The steps.
        steps: Vec<String>,
        /// Why, in words.
        why: String,
        /// The step that an answer or a failure led to, with which all that depends on it is done again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        led_to: Option<String>,
    },
    /// Results hold although what they were made from has changed: someone said so.
    Accepted {
        /// The steps, with the fingerprint that was accepted and the attempts that count as consumed.
        steps: BTreeMap<String, Accepted>,
    },
    /// The files were put back to where steps began that failed.
    RolledBack {
        /// Those steps, or items of them.
        steps: Vec<String>,
        /// Others that had ended meanwhile: what they left in the files is gone, so their results hold no more.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        undone: Vec<String>,
    },
    /// It ended.
    Ended {
        /// How.
        status: End,
        /// Why, in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// What there is to say of its steps, where their checkpoints may be pruned.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steps: Vec<Summary>,
    },
}

/// The flow of a run, as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// What it is called.
    pub name: String,
    /// The text of the file.
    pub text: String,
    /// Where the file was, for messages and for resuming.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// What someone accepted as still good.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The fingerprint that the step has now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
    /// The attempts of other steps that count as consumed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub consumed: BTreeMap<String, u32>,
    /// Steps that are to be done again without it: their next results count as consumed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub spared: BTreeSet<String>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum End {
    /// Every step did what it should.
    Completed,
    /// A step did not.
    Failed,
    /// Someone said no at a gate.
    Declined,
    /// Someone gave it up.
    Cancelled,
}

impl Happened {
    /// Makes the event of it.
    pub(super) fn event(&self, run: &RunId, at: Timestamp) -> Event {
        let body = serde_json::to_value(self).expect("what happened has string keys only");
        Event { topic: Topic::Run, key: run.to_string(), at, body }
    }
}
