//! What is left to say of steps whose checkpoints a collection gives up: that they were done, and how often. Without it, a
//! flow that had ended would do them again, and would take an answer to an earlier question for one to a new one.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Error, KEPT_STEPS, Project};
use crate::model::{CheckpointId, Event, Kind, RunId, StepStatus, Timestamp, Topic};
use crate::store::{Batch, Listed, NewEntry, Query};

/// The type of the event that tells of them.
const PRUNED: &str = "pruned";

/// An event tells of so many at most.
const MOST: usize = 1000;

/// What else of an attempt says what follows from it.
const SAYS: [&str; 5] = ["took_us", "consumed", "went_on", "led_to", "gate"];

/// An attempt at a step of a flow whose checkpoint was given up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoneStep {
    /// The place in the journal from which it was known.
    pub position: u64,
    /// Its checkpoint.
    pub checkpoint: CheckpointId,
    /// The number of the checkpoint in its run.
    pub seq: u64,
    /// When it ended.
    pub at: Timestamp,
    /// The step.
    pub step: String,
    /// How it ended.
    pub status: StepStatus,
    /// Its number.
    pub attempt: u32,
    /// What its metadata said, as far as it matters to what comes after it.
    pub says: Map<String, Value>,
    /// How often a result of the step had been given up, where only another checkpoint still kept this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<u32>,
}

/// A result that another checkpoint keeps, as far as it is read here.
#[derive(Deserialize)]
struct Kept {
    summary: Summary,
    record: Map<String, Value>,
    generation: u32,
}

#[derive(Deserialize)]
struct Summary {
    step: String,
    attempt: u32,
    status: StepStatus,
    at: Timestamp,
    checkpoint: CheckpointId,
    seq: u64,
}

impl GoneStep {
    /// Reads what an event of a run tells of such attempts; nothing if it is another event.
    pub(crate) fn read(body: &Value) -> Vec<Self> {
        let steps = body.get("steps").filter(|_| tells(body));
        steps.and_then(|steps| Vec::deserialize(steps).ok()).unwrap_or_default()
    }

    fn of(listed: &Listed) -> Vec<Self> {
        let Listed { position, checkpoint } = listed;
        let content = &checkpoint.content;
        if let Kind::Step { step, status, attempt } = &content.kind {
            return vec![Self {
                position: *position,
                checkpoint: checkpoint.id,
                seq: checkpoint.seq,
                at: checkpoint.created_at,
                step: step.clone(),
                status: *status,
                attempt: *attempt,
                says: says(step, &content.metadata),
                kept: None,
            }];
        }
        let kept = content.metadata.get(KEPT_STEPS).map(Vec::<Kept>::deserialize);
        let gone = |Kept { summary, record, generation }: Kept| Self {
            position: *position,
            says: says(&summary.step, &record),
            checkpoint: summary.checkpoint,
            seq: summary.seq,
            at: summary.at,
            step: summary.step,
            status: summary.status,
            attempt: summary.attempt,
            kept: Some(generation),
        };
        kept.and_then(Result::ok).into_iter().flatten().map(gone).collect()
    }
}

/// What an attempt was made from is compared step by step, and there may be very many items of one.
fn says(step: &str, metadata: &Map<String, Value>) -> Map<String, Value> {
    let fingerprint = Some("fingerprint").filter(|_| !step.contains('/'));
    let names = SAYS.into_iter().chain(fingerprint);
    names.filter_map(|name| Some((name.to_owned(), metadata.get(name)?.clone()))).collect()
}

/// Says whether an event tells of attempts that were given up. Nothing happened to the run by that.
pub(super) fn tells(body: &Value) -> bool {
    body["type"] == PRUNED
}

impl Project {
    /// Writes down what there is to say of steps before their checkpoints go.
    pub(super) fn tell_of_steps(
        &self,
        runs: &BTreeSet<&RunId>,
        ids: &HashSet<CheckpointId>,
    ) -> Result<(), Error> {
        let mut gone: BTreeMap<&RunId, Vec<GoneStep>> = BTreeMap::new();
        for run in runs {
            let listed = self.store.list(&Query { run: Some((*run).clone()), ..Query::default() })?;
            let goes = listed.iter().rev().filter(|one| ids.contains(&one.checkpoint.id));
            gone.entry(run).or_default().extend(goes.flat_map(GoneStep::of));
        }
        let at = self.context.clock.now();
        let event = |run: &RunId, steps: &[GoneStep]| {
            let body = json!({"type": PRUNED, "steps": steps});
            NewEntry::Event(Event { topic: Topic::Run, key: run.to_string(), at, body })
        };
        let events = gone.iter().flat_map(|(run, steps)| steps.chunks(MOST).map(|some| event(run, some)));
        let entries: Vec<NewEntry> = events.collect();
        if !entries.is_empty() {
            self.store.write(Batch { entries, ..Batch::default() })?;
        }
        Ok(())
    }
}
