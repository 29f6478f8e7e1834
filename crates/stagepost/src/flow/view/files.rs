//! The files of a run, derived from its history.

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::definition::Flow;
use super::super::{Attempt, FILES, Moment, RunState, StepState};
use super::standing::{standing, transitions};
use crate::formats::runs::{
    self, Checkpoint, Entry, EntryMetadata, Owners, Registry, Retries, RunFile, RunMetadata,
    StepState as Stood, Summary, Times, checkpoint_name, iso, sealed,
};
use crate::model::{CheckpointId, StepStatus, Timestamp};
use crate::project::View;

/// What the files of a run are derived from.
pub(in super::super) struct Files<'r> {
    /// What happened, oldest first.
    pub(in super::super) moments: &'r [Moment],
    pub(in super::super) state: &'r RunState,
    /// The flow that it follows; code follows none.
    pub(in super::super) flow: Option<&'r Flow>,
    /// So many checkpoints there are files of.
    pub(in super::super) keep: usize,
}

/// A checkpoint that there is a file of.
pub(in super::super) struct Wanted {
    /// The name of the file.
    pub(in super::super) name: String,
    step: String,
    number: usize,
    at: Timestamp,
    /// The checkpoint.
    pub(in super::super) id: CheckpointId,
}

impl Files<'_> {
    /// `run.json` and the registry.
    pub(in super::super) fn about(&self) -> Vec<View> {
        let view = |file: &str, value: &Value| self.view(file, value);
        vec![view(runs::RUN, &json(&self.run_file())), view(runs::REGISTRY, &self.registry_value())]
    }

    fn view(&self, file: &str, value: &Value) -> View {
        View { path: runs::path(self.run(), file), bytes: runs::pretty(value).into_bytes() }
    }

    fn run(&self) -> &str {
        self.state.run.id.as_str()
    }

    /// The name by which the readers of the files know the run.
    fn name(&self) -> String {
        runs::folder(self.run())
    }

    fn workflow(&self) -> String {
        match self.flow {
            Some(flow) => flow.name.clone(),
            None => self.state.run.description.clone(),
        }
    }

    /// The number of a step: in its flow, or by when it first ended. Items of a list have none.
    fn number(&self, step: &str) -> Option<usize> {
        match self.flow {
            Some(flow) => flow.number(step),
            None => self.state.steps.iter().position(|one| one.step == step).map(|at| at + 1),
        }
    }

    /// Lists the newest completed steps whose checkpoints are there, oldest first.
    pub(in super::super) fn checkpoints(&self) -> Vec<Wanted> {
        let mut all: Vec<(u64, Wanted)> = Vec::new();
        for step in &self.state.steps {
            let Some(number) = self.number(&step.step) else { continue };
            let is_there = |one: &&Attempt| {
                let is_live = !one.pruned && !one.thinned;
                one.status == StepStatus::Completed && is_live && one.run == self.state.run.id
            };
            all.extend(step.attempts.iter().filter(is_there).map(|one| {
                let name = format!("{}.json", checkpoint_name(number, one.at));
                (one.seq, Wanted { name, step: step.step.clone(), number, at: one.at, id: one.checkpoint })
            }));
        }
        all.sort_by_key(|(seq, _)| *seq);
        let first = all.len().saturating_sub(self.keep);
        all.drain(first..).map(|(_, wanted)| wanted).collect()
    }

    /// Makes the file of a checkpoint: everything as it was then.
    pub(in super::super) fn checkpoint(&self, wanted: &Wanted) -> View {
        let is_it = |moment: &Moment| matches!(moment, Moment::Checkpoint { checkpoint, .. } if checkpoint.id == wanted.id);
        let end = self.moments.iter().position(is_it).map_or(self.moments.len(), |at| at + 1);
        let moments = &self.moments[..end];
        let state = RunState::of_moments(&self.state.run, moments, true);
        let then = Files { moments, state: &state, flow: self.flow, keep: self.keep };
        then.describe(wanted)
    }

    fn describe(&self, wanted: &Wanted) -> View {
        let registry = self.registry();
        let made_here = |entry: &&Entry| entry.step == wanted.number;
        let artifacts: Vec<String> =
            registry.iter().filter(made_here).map(|entry| entry.path.clone()).collect();
        // Whoever restores this goes on with the step after it: step and status say so in both places.
        let run_record = RunFile { current_step: wanted.number, ..self.run_file() };
        let checkpoint = Checkpoint {
            checkpoint_id: wanted.name.trim_end_matches(".json").to_owned(),
            run_id: self.name(),
            workflow_id: self.workflow(),
            step: wanted.number,
            timestamp: iso(wanted.at),
            run_record,
            artifacts_at_checkpoint: registry.iter().map(|entry| entry.name.clone()).collect(),
            validation_summary: Summary {
                total_artifacts: registry.len(),
                validated_artifacts: registry.len(),
                failed_validations: 0,
            },
            artifact_registry: self.registry_of(&registry),
            step_state: Stood {
                step_name: wanted.step.clone(),
                agent: runs::OURS.to_owned(),
                artifacts,
                validation_status: "pass",
            },
            recovery_instructions: runs::instructions(self.run(), wanted.number, &wanted.step),
            metadata: Map::from_iter([
                ("created_by".to_owned(), runs::OURS.into()),
                ("version".to_owned(), "1.0".into()),
                ("checkpoint".to_owned(), wanted.id.to_string().into()),
            ]),
        };
        self.view(&format!("{}/{}", runs::CHECKPOINTS, wanted.name), &sealed(json(&checkpoint)))
    }

    fn run_file(&self) -> RunFile {
        let state = self.state;
        let done = |step: &&StepState| step.current().is_some_and(|one| one.status == StepStatus::Completed);
        let last = state.steps.iter().filter(done).filter_map(|step| Some((step.current()?, &step.step)));
        let last =
            last.filter(|(_, step)| self.number(step).is_some()).max_by_key(|(attempt, _)| attempt.seq);
        let status = standing(state.status);
        let at = |wanted: runs::Status| (status == wanted).then(|| iso(state.changed_at));
        let request = self.flow.map(|flow| flow.description.clone()).filter(|text| !text.is_empty());
        RunFile {
            run_id: self.name(),
            workflow_id: self.workflow(),
            selected_workflow: self.workflow(),
            current_step: last.and_then(|(_, step)| self.number(step)).unwrap_or(0),
            status,
            created_at: iso(state.run.created_at),
            updated_at: iso(state.changed_at),
            task_queue: Vec::new(),
            owners: Owners::default(),
            timestamps: Times {
                started_at: Some(iso(state.run.created_at)),
                last_step_completed_at: last.map(|(attempt, _)| iso(attempt.at)),
                completed_at: at(runs::Status::Completed),
                awaiting_approval_at: at(runs::Status::AwaitingApproval),
                failed_at: at(runs::Status::Failed),
            },
            metadata: RunMetadata {
                user_request: request.unwrap_or_else(|| self.workflow()),
                confidence: 1.0,
                missing_inputs: Vec::new(),
                created_by: runs::OURS.to_owned(),
                run: self.run().to_owned(),
            },
            state_transitions: transitions(self.moments, state),
            step_retries: self.retries(),
        }
    }

    /// The steps of which attempts failed, by number.
    fn retries(&self) -> Map<String, Value> {
        let mut retries = Map::new();
        for step in &self.state.steps {
            let failed: Vec<&Attempt> =
                step.attempts.iter().filter(|one| one.status == StepStatus::Failed).collect();
            let (Some(number), Some(last)) = (self.number(&step.step), failed.last()) else { continue };
            let errors: Vec<String> = failed.iter().filter_map(|one| one.record.error.clone()).collect();
            let entry = Retries {
                count: failed.len(),
                last_error: errors.last().cloned(),
                last_attempt: Some(iso(last.at)),
                feedback_injected: false,
                errors,
            };
            retries.insert(number.to_string(), json(&entry));
        }
        retries
    }

    /// The files that steps left and that are kept. Checkpoints are not listed: each would list all before it.
    fn registry(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for step in &self.state.steps {
            // The format names only what a checkpoint of its own is there of.
            let current = step.current().filter(|one| !one.thinned);
            let Some((number, current)) = self.number(&step.step).zip(current) else { continue };
            let needs = self.flow.and_then(|flow| flow.step(&step.step)).map(|step| step.needs.as_slice());
            let needed: Vec<usize> =
                needs.unwrap_or_default().iter().filter_map(|id| self.number(id.as_str())).collect();
            let dependencies: Vec<String> =
                entries.iter().filter(|one| needed.contains(&one.step)).map(|one| one.name.clone()).collect();
            for artifact in &current.artifacts {
                let Some(file) = artifact.name.as_str().strip_prefix(FILES) else { continue };
                let versions =
                    step.attempts.iter().filter(|one| one.artifact(artifact.name.as_str()).is_some());
                let first = step.attempts.iter().find(|one| one.artifact(artifact.name.as_str()).is_some());
                entries.push(Entry {
                    name: free_name(file, &entries),
                    step: number,
                    agent: runs::OURS.to_owned(),
                    path: self.path_of(&step.step, file),
                    dependencies: dependencies.clone(),
                    version: versions.count().max(1),
                    validation_status: "pass",
                    schema: None,
                    gate_path: None,
                    reasoning_path: None,
                    publishable: false,
                    published: false,
                    published_at: None,
                    publish_targets: Vec::new(),
                    publish_attempts: Vec::new(),
                    publish_status: None,
                    publish_error: None,
                    created_at: iso(first.unwrap_or(current).at),
                    updated_at: iso(current.at),
                    metadata: EntryMetadata {
                        size: artifact.blob.size,
                        media: artifact.media.as_str().to_owned(),
                        validation_status: "pass",
                        blake3: artifact.blob.hash.to_string(),
                    },
                });
            }
        }
        entries
    }

    /// Where the file is, within the project.
    fn path_of(&self, step: &str, name: &str) -> String {
        let outputs = self.flow.and_then(|flow| flow.step(step)).map(|step| step.outputs.as_slice());
        let output = outputs.unwrap_or_default().iter().find(|output| output.name.as_str() == name);
        output.map_or_else(|| name.to_owned(), |output| output.path.clone())
    }

    fn registry_of(&self, entries: &[Entry]) -> Registry {
        Registry {
            run_id: self.name(),
            workflow_id: self.workflow(),
            created_at: iso(self.state.run.created_at),
            updated_at: iso(self.state.changed_at),
            artifacts: entries.iter().map(|entry| (entry.name.clone(), json(entry))).collect(),
        }
    }

    /// The registry as a file: it also says who wrote it, so that it is known again.
    fn registry_value(&self) -> Value {
        let mut value = json(&self.registry_of(&self.registry()));
        value["created_by"] = runs::OURS.into();
        value
    }
}

/// A second artifact of the same name gets the next version's, as the format does it.
fn free_name(name: &str, entries: &[Entry]) -> String {
    let is_taken = |name: &str| entries.iter().any(|entry| entry.name == name);
    if !is_taken(name) {
        return name.to_owned();
    }
    let mut free = (2..).map(|version| format!("{name}-v{version}")).filter(|name| !is_taken(name));
    free.next().expect("some number is free")
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("what is written has string keys only")
}
