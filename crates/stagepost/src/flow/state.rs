//! How a run stands, told from its history. Pure: the same history always gives the same state.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::happened::{Accepted, Definition, End, Happened};
use super::history::{History, Moment};
use super::kept::{self, KeptStep};
use super::record::Record;
use super::{Error, hold};
use crate::model::{Artifact, Checkpoint, CheckpointId, Kind, Run, RunId, StepStatus, Timestamp};
use crate::project::{GoneStep, Project};

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// Somebody drives it.
    Running,
    /// It has not ended and nobody drives it: whoever did was killed or stopped.
    Interrupted,
    /// It waits for a person.
    Waiting,
    /// Every step did what it should.
    Completed,
    /// A step did not.
    Failed,
    /// Someone said no at a gate.
    Declined,
    /// Someone gave it up.
    Cancelled,
}

impl Status {
    /// Every status.
    pub const ALL: &'static [Status] = &[
        Status::Running,
        Status::Interrupted,
        Status::Waiting,
        Status::Completed,
        Status::Failed,
        Status::Declined,
        Status::Cancelled,
    ];

    /// Returns the name used in commands and files.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Interrupted => "interrupted",
            Status::Waiting => "waiting",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Declined => "declined",
            Status::Cancelled => "cancelled",
        }
    }

    /// Says whether nothing more will happen unless someone resumes it.
    pub fn is_over(self) -> bool {
        matches!(self, Status::Completed | Status::Failed | Status::Declined | Status::Cancelled)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<End> for Status {
    fn from(end: End) -> Self {
        match end {
            End::Completed => Status::Completed,
            End::Failed => Status::Failed,
            End::Declined => Status::Declined,
            End::Cancelled => Status::Cancelled,
        }
    }
}

/// A run as its history tells it.
#[derive(Debug, Clone)]
pub struct RunState {
    /// The run.
    pub run: Run,
    /// How it stands.
    pub status: Status,
    /// Why it stands so, in words, where someone said.
    pub why: Option<String>,
    /// The flow that it follows; one that code drives has none.
    pub definition: Option<Definition>,
    /// What it was given to begin with.
    pub input: Value,
    /// Its steps, in the order in which they first ended.
    pub steps: Vec<StepState>,
    /// The step and the gate that it waits for.
    pub waits_for: Option<(String, String)>,
    /// When anything last happened to it.
    pub changed_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How often someone began to drive it.
    pub drives: u32,
    /// How it ended, whoever drives it now.
    pub(super) end: Option<Status>,
    /// Its own checkpoints that keep results of steps whose checkpoints are pruned.
    pub(super) keepers: Vec<CheckpointId>,
    /// Steps that were to be done again without what depends on them, and have no new result yet.
    sparing: BTreeSet<String>,
    /// Where in the history something led back, and to which step.
    pub(super) led: Vec<(u64, String)>,
    /// Where each step is in `steps`: a step that is done for each of many has as many items.
    places: HashMap<String, usize>,
}

/// A step as the history of its run tells it.
#[derive(Debug, Clone, Default)]
pub struct StepState {
    /// Its name.
    pub step: String,
    /// Its attempts that ended, oldest first.
    pub attempts: Vec<Attempt>,
    /// Which of them holds, if one does.
    pub holds: Option<usize>,
    /// How often a result of it was given up to be made again.
    pub generation: u32,
    /// How many attempts failed since someone asked for it.
    pub failures: u32,
    /// What someone accepted as still good.
    pub accepted: Option<Accepted>,
    /// The step with which what it left in the files was rolled back, if that is why no result holds.
    pub undone_with: Option<String>,
}

/// The end of an attempt at a step.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// How it ended.
    pub status: StepStatus,
    /// When it ended.
    pub at: Timestamp,
    /// The run that it belongs to: another one for a past that is shared.
    pub run: RunId,
    /// Its checkpoint.
    pub checkpoint: CheckpointId,
    /// The number of the checkpoint in its run.
    pub seq: u64,
    /// Its place in the history, whatever its step and run; 0 where only the end of its run tells of it.
    pub position: u64,
    /// Its payloads; none if it was pruned.
    pub artifacts: Vec<Artifact>,
    /// Whether files were captured with it.
    pub has_files: bool,
    /// What else is kept with it.
    pub record: Record,
    /// Whether only this summary is left of it.
    pub pruned: bool,
    /// Whether its checkpoint is pruned, but its result and the files it left are kept.
    pub thinned: bool,
}

/// What is left to say of an attempt whose checkpoint is pruned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The step.
    pub step: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// How it ended.
    pub status: StepStatus,
    /// When it ended.
    pub at: Timestamp,
    /// Its checkpoint.
    pub checkpoint: CheckpointId,
    /// The number of the checkpoint in its run.
    pub seq: u64,
    /// How long it took, in microseconds.
    pub took_us: u64,
    /// How many bytes its payloads had.
    pub bytes: u64,
    /// How often a result of the step had been given up by then.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub generation: u32,
    /// Whether it held no more by then. Earlier versions did not say so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub superseded: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Attempt {
    fn of(checkpoint: &Checkpoint, position: u64, status: StepStatus, attempt: u32) -> Self {
        let content = &checkpoint.content;
        Self {
            attempt,
            status,
            at: checkpoint.created_at,
            run: checkpoint.run.clone(),
            checkpoint: checkpoint.id,
            seq: checkpoint.seq,
            position,
            artifacts: content.artifacts.clone(),
            has_files: content.snapshot.is_some(),
            record: Record::of(&content.metadata),
            pruned: false,
            thinned: false,
        }
    }

    pub(super) fn of_summary(run: &RunId, summary: &Summary) -> Self {
        Self {
            attempt: summary.attempt,
            status: summary.status,
            at: summary.at,
            run: run.clone(),
            checkpoint: summary.checkpoint,
            seq: summary.seq,
            position: 0,
            artifacts: Vec::new(),
            has_files: false,
            record: Record { took_us: summary.took_us, ..Record::default() },
            pruned: true,
            thinned: false,
        }
    }

    /// What a collection left to say of it.
    fn gone(run: &RunId, gone: &GoneStep) -> Self {
        Self {
            attempt: gone.attempt,
            status: gone.status,
            at: gone.at,
            run: run.clone(),
            checkpoint: gone.checkpoint,
            seq: gone.seq,
            position: gone.position,
            artifacts: Vec::new(),
            has_files: false,
            record: Record::of(&gone.says),
            pruned: true,
            thinned: false,
        }
    }

    /// Says whether others can be made from it: it ended well, was left out, or the run went on from its failure.
    pub fn is_result(&self) -> bool {
        matches!(self.status, StepStatus::Completed | StepStatus::Skipped) || self.record.went_on
    }

    /// Finds a payload by name.
    pub fn artifact(&self, name: &str) -> Option<&Artifact> {
        self.artifacts.iter().find(|artifact| artifact.name.as_str() == name)
    }

    /// How many bytes its payloads have.
    pub fn bytes(&self) -> u64 {
        self.artifacts.iter().map(|artifact| artifact.blob.size).sum()
    }

    /// What is left to say of it when it is pruned.
    pub(super) fn summary(&self, step: &StepState) -> Summary {
        Summary {
            step: step.step.clone(),
            generation: step.generation,
            superseded: step.current().is_none_or(|current| current.checkpoint != self.checkpoint),
            attempt: self.attempt,
            status: self.status,
            at: self.at,
            checkpoint: self.checkpoint,
            seq: self.seq,
            took_us: self.record.took_us,
            bytes: self.bytes(),
        }
    }
}

impl StepState {
    /// The attempt whose result holds.
    pub fn current(&self) -> Option<&Attempt> {
        self.holds.map(|at| &self.attempts[at])
    }

    /// The attempt that ended last.
    pub fn last(&self) -> Option<&Attempt> {
        self.attempts.last()
    }

    /// How long all its attempts took.
    pub fn took(&self) -> Duration {
        self.attempts.iter().map(|attempt| attempt.record.took()).sum()
    }

    fn give_up(&mut self) {
        if self.holds.take().is_some() {
            self.generation += 1;
        }
        self.failures = 0;
        (self.accepted, self.undone_with) = (None, None);
    }

    /// Takes in what is told of an attempt whose checkpoint is not there, unless it is.
    fn told_of(&mut self, attempt: Attempt, superseded: bool) {
        let (is_result, id) = (attempt.is_result(), attempt.checkpoint);
        let is_newest = self.attempts.iter().all(|known| known.attempt <= attempt.attempt);
        self.insert(attempt);
        // Earlier versions kept no results and did not say what held: the newest did.
        if self.holds.is_none() && is_newest && is_result && !superseded {
            self.hold(id);
        }
    }

    /// Takes in a result that a checkpoint of the run keeps: at that point it held, whatever was told of others before.
    fn keeps(&mut self, attempt: Attempt) {
        let id = attempt.checkpoint;
        self.insert(attempt);
        self.hold(id);
    }

    /// Adds an attempt in its place, unless more is known of it already.
    fn insert(&mut self, attempt: Attempt) {
        let is_it = |known: &Attempt| known.checkpoint == attempt.checkpoint;
        if self.attempts.iter().any(|known| is_it(known) && !known.pruned) {
            return;
        }
        let holds = self.current().map(|current| current.checkpoint);
        self.attempts.retain(|known| !is_it(known));
        self.attempts.push(attempt);
        self.attempts.sort_by_key(|attempt| attempt.attempt);
        self.holds = None;
        if let Some(id) = holds {
            self.hold(id);
        }
    }

    fn hold(&mut self, id: CheckpointId) {
        self.holds = self.attempts.iter().position(|attempt| attempt.checkpoint == id);
    }

    fn ended(&mut self, attempt: Attempt) {
        let (status, is_result) = (attempt.status, attempt.is_result());
        if self.holds.is_some() {
            self.give_up();
        }
        (self.accepted, self.undone_with) = (None, None);
        self.attempts.push(attempt);
        if is_result {
            self.holds = Some(self.attempts.len() - 1);
            self.failures = 0;
        } else if status == StepStatus::Failed {
            self.failures += 1;
        }
    }
}

impl RunState {
    /// Reads how a run stands.
    pub fn load(project: &Project, id: &RunId) -> Result<Self, Error> {
        // Liveness first: who ends a run writes that down before it lets go.
        let driven = hold::is_driven(project, id);
        Ok(Self::of(&History::load(project, id)?, driven))
    }

    /// Tells how a run stands from its history, and from whether somebody drives it now.
    pub fn of(history: &History, driven: bool) -> Self {
        Self::of_moments(&history.run, &history.moments, driven)
    }

    /// As [`RunState::of`], from what happened up to some point.
    pub(super) fn of_moments(run: &Run, moments: &[Moment], driven: bool) -> Self {
        let run = run.clone();
        let mut state = Self {
            status: Status::Interrupted,
            why: None,
            definition: None,
            input: Value::Null,
            steps: Vec::new(),
            waits_for: None,
            changed_at: run.created_at,
            ended_at: None,
            drives: 0,
            end: None,
            keepers: Vec::new(),
            sparing: BTreeSet::new(),
            led: Vec::new(),
            places: HashMap::new(),
            run,
        };
        for moment in moments {
            state.take_in(moment);
        }
        state.end = Some(state.status).filter(|status| status.is_over());
        // Nobody goes on with what was cancelled; whoever holds it tidies up.
        if driven && state.status != Status::Cancelled {
            state.status = Status::Running;
        }
        state
    }

    fn take_in(&mut self, moment: &Moment) {
        match moment {
            Moment::Checkpoint { checkpoint, position } => {
                self.changed_at = checkpoint.created_at;
                if let Kind::Step { step, status, attempt } = &checkpoint.content.kind {
                    let place = self.place(step);
                    // A summary may have told of it before: it was to be pruned, and was not.
                    self.steps[place].attempts.retain(|known| known.checkpoint != checkpoint.id);
                    let ended = Attempt::of(checkpoint, *position, *status, *attempt);
                    let is_result = ended.is_result();
                    self.steps[place].ended(ended);
                    if is_result {
                        self.done_without_others(step, *attempt);
                    }
                }
                for step in kept::read(checkpoint) {
                    self.kept(step, &checkpoint.run);
                }
                if kept::is_one(checkpoint) && checkpoint.run == self.run.id {
                    self.keepers.push(checkpoint.id);
                }
            }
            Moment::Gone { run, gone } => {
                self.changed_at = gone.at;
                self.gone(run, gone);
            }
            Moment::Happened { at, happened, position } => {
                self.changed_at = *at;
                if let Happened::Voided { led_to: Some(to), .. } = happened {
                    self.led.push((*position, to.clone()));
                }
                self.happened(happened, *at);
            }
        }
    }

    fn happened(&mut self, happened: &Happened, at: Timestamp) {
        match happened {
            Happened::Began { definition, input, .. } => {
                if let Some(definition) = definition {
                    self.definition = Some(definition.clone());
                }
                if let Some(input) = input {
                    self.input = input.clone();
                }
                if self.status.is_over() {
                    // Someone asked again: what was tried before does not count.
                    self.steps.iter_mut().for_each(|step| step.failures = 0);
                }
                (self.status, self.why, self.waits_for, self.ended_at) =
                    (Status::Interrupted, None, None, None);
                self.drives += 1;
            }
            Happened::Waiting { step, gate } => {
                self.status = Status::Waiting;
                self.waits_for = Some((step.clone(), gate.clone()));
            }
            Happened::Voided { steps, .. } => {
                for step in steps {
                    let place = self.place(step);
                    self.steps[place].give_up();
                }
            }
            Happened::Accepted { steps } => {
                for (step, accepted) in steps {
                    let place = self.place(step);
                    self.steps[place].accepted = Some(accepted.clone());
                    self.sparing.extend(accepted.spared.iter().cloned());
                }
            }
            Happened::RolledBack { steps, undone } => {
                for step in undone {
                    let place = self.place(step);
                    self.steps[place].give_up();
                    self.steps[place].undone_with = steps.first().cloned();
                }
            }
            Happened::Ended { status, why, steps } => {
                (self.status, self.why) = ((*status).into(), why.clone());
                self.waits_for = None;
                self.ended_at = Some(at);
                for summary in steps {
                    self.summarised(summary);
                }
            }
        }
    }

    /// Takes in what a summary tells of an attempt whose checkpoint is not there any more.
    fn summarised(&mut self, summary: &Summary) {
        let attempt = Attempt::of_summary(&self.run.id, summary);
        let place = self.place(&summary.step);
        let step = &mut self.steps[place];
        // Those whose checkpoints are gone cannot be counted any more.
        step.generation = step.generation.max(summary.generation);
        step.told_of(attempt, summary.superseded);
    }

    /// Takes in what is left to say of an attempt that a collection gave up.
    fn gone(&mut self, run: &RunId, gone: &GoneStep) {
        let (place, attempt) = (self.place(&gone.step), Attempt::gone(run, gone));
        let (step, is_result) = (&mut self.steps[place], attempt.is_result());
        match gone.kept {
            Some(generation) => {
                step.generation = step.generation.max(generation);
                step.keeps(attempt);
            }
            None => step.ended(attempt),
        }
        if is_result {
            self.done_without_others(&gone.step, gone.attempt);
        }
    }

    /// Takes in a result that is kept although its checkpoint is not there any more.
    fn kept(&mut self, kept: KeptStep, run: &RunId) {
        let place = self.place(&kept.summary.step);
        let step = &mut self.steps[place];
        step.generation = step.generation.max(kept.generation);
        let (name, attempt) = (step.step.clone(), kept.summary.attempt);
        step.keeps(kept.attempt(run));
        self.done_without_others(&name, attempt);
    }

    /// Has those that were spared when a step was to be done again count as made from its new result.
    fn done_without_others(&mut self, name: &str, attempt: u32) {
        if !self.sparing.remove(name) {
            return;
        }
        for accepted in self.steps.iter_mut().filter_map(|step| step.accepted.as_mut()) {
            if accepted.spared.remove(name) {
                accepted.consumed.insert(name.to_owned(), attempt);
            }
        }
    }

    fn place(&mut self, step: &str) -> usize {
        if let Some(place) = self.places.get(step) {
            return *place;
        }
        self.steps.push(StepState { step: step.to_owned(), ..StepState::default() });
        self.places.insert(step.to_owned(), self.steps.len() - 1);
        self.steps.len() - 1
    }

    /// Finds a step by name.
    pub fn step(&self, name: &str) -> Option<&StepState> {
        // Whoever has a state to himself may have changed its steps.
        let at = self.places.get(name).and_then(|place| self.steps.get(*place));
        at.filter(|step| step.step == name).or_else(|| self.steps.iter().find(|step| step.step == name))
    }

    /// When it was started.
    pub fn started_at(&self) -> Timestamp {
        self.run.created_at
    }

    /// How many bytes the payloads of its own checkpoints have, each counted once.
    pub fn bytes(&self) -> u64 {
        let own = self.steps.iter().flat_map(|step| &step.attempts).filter(|one| one.run == self.run.id);
        let blobs: std::collections::HashSet<_> =
            own.flat_map(|attempt| &attempt.artifacts).map(|artifact| artifact.blob).collect();
        blobs.iter().map(|blob| blob.size).sum()
    }
}
