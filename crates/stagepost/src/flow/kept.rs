//! What is kept of steps whose checkpoints are pruned: their results and the files they left, in one checkpoint of the
//! run. What they printed and the project's files go.

use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::record::{FILES, RESULT, Record};
use super::state::{Attempt, StepState, Summary};
use crate::model::{
    Artifact, ArtifactName, Checkpoint, CheckpointId, Content, Draft, Kind, Parent, RunId, Timestamp,
};
use crate::project::KEPT_STEPS;

/// A step whose checkpoint is pruned and whose result is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct KeptStep {
    pub(super) summary: Summary,
    pub(super) record: Record,
    /// How often a result of it was given up before.
    pub(super) generation: u32,
    /// What its payloads are called; here they have numbers, because a name may be as long as a name can be.
    names: Vec<ArtifactName>,
    #[serde(skip)]
    artifacts: Vec<Artifact>,
}

impl KeptStep {
    /// Keeps the result of a step; `None` if none holds.
    pub(super) fn of(step: &StepState) -> Option<Self> {
        let current = step.current()?;
        let is_result = |one: &&Artifact| one.name.as_str() == RESULT || one.name.as_str().starts_with(FILES);
        let artifacts: Vec<Artifact> = current.artifacts.iter().filter(is_result).cloned().collect();
        Some(Self {
            summary: current.summary(step),
            record: current.record.clone(),
            generation: step.generation,
            names: artifacts.iter().map(|one| one.name.clone()).collect(),
            artifacts,
        })
    }

    /// The attempt, as far as it is kept.
    pub(super) fn attempt(self, run: &RunId) -> Attempt {
        Attempt {
            record: self.record,
            artifacts: self.artifacts,
            pruned: false,
            thinned: true,
            ..Attempt::of_summary(run, &self.summary)
        }
    }
}

/// Makes the checkpoint that keeps results. Their payloads are stored already; it only refers to them.
pub(super) fn draft(id: CheckpointId, run: &RunId, at: Timestamp, steps: &[KeptStep]) -> Draft {
    let metadata = serde_json::to_value(steps).expect("what is kept has string keys only");
    let mut artifacts: Vec<Artifact> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        artifacts.extend(step.artifacts.iter().enumerate().map(|(at, one)| {
            let name = ArtifactName::new(format!("{number}/{at}")).expect("two numbers are a name");
            Artifact { name, ..one.clone() }
        }));
    }
    artifacts.sort_by(|a, b| a.name.cmp(&b.name));
    let content = Content {
        description: format!("results of {} whose checkpoints are pruned", count(steps.len())),
        metadata: Map::from_iter([(KEPT_STEPS.to_owned(), metadata)]),
        artifacts,
        // Nobody who asks for the newest checkpoint means this one.
        ..Content::new(Kind::Safety { before: "pruning".to_owned() })
    };
    Draft { id, run: run.clone(), parent: Parent::Head, created_at: at, content }
}

fn count(steps: usize) -> String {
    if steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") }
}

/// Reads what a checkpoint keeps; nothing if it is not one of these.
pub(super) fn read(checkpoint: &Checkpoint) -> Vec<KeptStep> {
    let Some(steps) = checkpoint.content.metadata.get(KEPT_STEPS) else { return Vec::new() };
    let mut steps: Vec<KeptStep> = Vec::deserialize(steps).unwrap_or_default();
    for artifact in &checkpoint.content.artifacts {
        let place = artifact.name.as_str().split_once('/');
        let place = place.and_then(|(step, at)| Some((step.parse().ok()?, at.parse().ok()?)));
        let Some(step) = place.and_then(|(step, _): (usize, usize)| steps.get_mut(step)) else { continue };
        if let Some(name) = place.and_then(|(_, at)| step.names.get(at)) {
            step.artifacts.push(Artifact { name: name.clone(), ..artifact.clone() });
        }
    }
    steps
}

/// Says whether a checkpoint keeps results for steps whose checkpoints are pruned.
pub(super) fn is_one(checkpoint: &Checkpoint) -> bool {
    checkpoint.content.metadata.contains_key(KEPT_STEPS)
}
