//! What happened in a run, derived from its checkpoints: iterations, scores, the best attempt, how it stands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::part::{FAILURE, JOB, VALIDATION};
use super::{Error, Payload, Role};
use crate::formats::plans::{self, RevisionRequest, Scored, Thresholds, Verdict};
use crate::model::{Checkpoint, Kind, Run, RunId, RunKind};
use crate::project::Project;
use crate::store::Query;

/// What a run is about, as kept with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The name that its files begin with.
    pub project: String,
    /// Where its files go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_dir: Option<String>,
    /// Whether it has files.
    #[serde(default)]
    pub checkpoint: bool,
}

impl About {
    const KEY: &'static str = "plan";

    pub(super) fn of(run: &Run) -> Self {
        member(&run.metadata, Self::KEY).unwrap_or_default()
    }

    pub(super) fn put(&self, run: &mut Run) {
        let value = serde_json::to_value(self).expect("it has string keys only");
        run.metadata.insert(Self::KEY.to_owned(), value);
    }
}

/// What a call cost, and how it failed if it did, as kept with its checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Who was called.
    pub role: Role,
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// How long it took.
    pub seconds: f64,
    /// How many tokens it says it cost.
    #[serde(default)]
    pub tokens: u64,
    /// How long all calls took up to here.
    pub total_seconds: f64,
    /// How many tokens all calls cost up to here.
    #[serde(default)]
    pub total_tokens: u64,
    /// How it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

impl Call {
    const KEY: &'static str = "call";

    /// Returns what the call behind a checkpoint cost, if there was one.
    pub fn of(checkpoint: &Checkpoint) -> Option<Self> {
        member(&checkpoint.content.metadata, Self::KEY)
    }

    pub(super) fn metadata(&self) -> Map<String, Value> {
        let value = serde_json::to_value(self).expect("it has string keys only");
        Map::from_iter([(Self::KEY.to_owned(), value)])
    }
}

/// What a run was begun with, as kept with its job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Begun {
    pub(super) fingerprint: Map<String, Value>,
    pub(super) thresholds: Thresholds,
}

impl Begun {
    const KEY: &'static str = "begun";

    pub(super) fn metadata(&self) -> Map<String, Value> {
        let value = serde_json::to_value(self).expect("it has string keys only");
        Map::from_iter([(Self::KEY.to_owned(), value)])
    }
}

fn member<T: DeserializeOwned>(metadata: &Map<String, Value>, key: &str) -> Option<T> {
    serde_json::from_value(metadata.get(key)?.clone()).ok()
}

/// One iteration.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Iteration {
    /// Its number.
    pub number: u32,
    /// The plan, if one was made.
    pub raw: Option<Checkpoint>,
    /// What a validator said, if one was asked.
    pub validation: Option<Validation>,
    /// What a judge said, if one did.
    pub judgement: Option<Judgement>,
    /// Calls that failed.
    pub failures: Vec<Checkpoint>,
    /// Whatever else was recorded of it, by type.
    pub others: BTreeMap<String, Checkpoint>,
}

/// What a validator said.
#[derive(Debug, Clone)]
pub struct Validation {
    /// Where it is recorded.
    pub checkpoint: Checkpoint,
    /// Whether the plan may be judged.
    pub valid: bool,
    /// What is wrong with it.
    pub errors: Vec<String>,
    pub(super) answer: Value,
}

/// What a judge said.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// Where it is recorded.
    pub checkpoint: Checkpoint,
    /// The judgement as it was given.
    pub evaluation: Value,
    /// The same in one form.
    pub scored: Scored,
}

impl Judgement {
    /// What the planner is asked to change.
    pub fn revision(&self) -> Option<RevisionRequest> {
        RevisionRequest::of(&self.evaluation, self.scored.verdict)
    }
}

impl Iteration {
    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.judgement.as_ref()?.scored.verdict
    }

    fn rank(&self) -> (bool, Option<f64>) {
        let fraction = self.judgement.as_ref().and_then(|said| said.scored.fraction());
        (self.verdict() == Some(Verdict::Approve), fraction)
    }

    /// Returns how many attempts of a role failed.
    pub(super) fn failed(&self, role: Role) -> u32 {
        let of_role = |one: &&Checkpoint| Call::of(one).is_some_and(|call| call.role == role);
        u32::try_from(self.failures.iter().filter(of_role).count()).unwrap_or(u32::MAX)
    }

    /// Lists what is recorded of it, for those who keep or delete it.
    pub fn checkpoints(&self) -> impl Iterator<Item = &Checkpoint> {
        let validation = self.validation.iter().map(|one| &one.checkpoint);
        let judgement = self.judgement.iter().map(|one| &one.checkpoint);
        self.raw.iter().chain(validation).chain(judgement).chain(&self.failures).chain(self.others.values())
    }
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct End {
    /// Where it is recorded.
    pub checkpoint: Checkpoint,
    /// Whether its plan was approved.
    pub approved: bool,
    /// Why it ended without an approved plan.
    pub reason: Option<String>,
}

/// Everything of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct History {
    /// The run.
    pub run: Run,
    /// What it is about.
    pub about: About,
    /// Its iterations, in order.
    pub iterations: BTreeMap<u32, Iteration>,
    /// The newest payload of each type that belongs to the whole run.
    pub core: BTreeMap<String, Checkpoint>,
    /// How it ended, if it did.
    pub end: Option<End>,
    /// How many tokens were spent.
    pub tokens: u64,
    /// How long all calls took.
    pub seconds: f64,
    pub(super) begun: Option<Begun>,
    pub(super) head: u64,
    pub(super) failed_last: bool,
}

impl History {
    /// Reads a run.
    pub fn read(project: &Project, id: &RunId) -> Result<Self, Error> {
        let run = project.store().run(id)?.filter(|run| run.kind == RunKind::Plan);
        let run = run.ok_or_else(|| Error::NoRun { run: id.to_string() })?;
        // Read before the list: what comes between the two is in the list, or makes whoever expects this end fail. The
        // newest may have been pruned: its place still counts.
        let head = project.store().head(id)?.map_or(0, |newest| newest.seq());
        let mut history = Self::empty(run);
        let listed = project.log(&Query { run: Some(id.clone()), ..Query::default() })?;
        for checkpoint in listed.into_iter().rev() {
            history.add(project, checkpoint)?;
        }
        history.head = history.head.max(head);
        Ok(history)
    }

    pub(super) fn empty(run: Run) -> Self {
        let about = About::of(&run);
        Self {
            run,
            about,
            iterations: BTreeMap::new(),
            core: BTreeMap::new(),
            end: None,
            tokens: 0,
            seconds: 0.0,
            begun: None,
            head: 0,
            failed_last: false,
        }
    }

    /// Takes in the next checkpoint of the run.
    pub(super) fn add(&mut self, project: &Project, checkpoint: Checkpoint) -> Result<(), Error> {
        let Kind::Iteration { iteration, part } = checkpoint.content.kind.clone() else { return Ok(()) };
        self.head = checkpoint.seq;
        self.failed_last = part == FAILURE;
        if let Some(call) = Call::of(&checkpoint) {
            (self.tokens, self.seconds) = (call.total_tokens, call.total_seconds);
        }
        if iteration == 0 {
            return self.add_core(project, part, checkpoint);
        }
        let bar = self.begun.as_ref().map(|begun| begun.thresholds);
        let one = self
            .iterations
            .entry(iteration)
            .or_insert_with(|| Iteration { number: iteration, ..Iteration::default() });
        match part.as_str() {
            plans::RAW => one.raw = Some(checkpoint),
            plans::EVALUATION => {
                let payload = value_of(project, &checkpoint)?;
                let evaluation = plans::finite(plans::evaluation_of(&payload));
                let scored = Scored::of(&evaluation, bar.as_ref());
                one.judgement = Some(Judgement { checkpoint, evaluation, scored });
            }
            VALIDATION => {
                let answer = plans::finite(&value_of(project, &checkpoint)?);
                let (valid, errors) = plans::validity_of(&answer).unwrap_or((false, Vec::new()));
                one.validation = Some(Validation { checkpoint, valid, errors, answer });
            }
            FAILURE => one.failures.push(checkpoint),
            _ => drop(one.others.insert(part, checkpoint)),
        }
        Ok(())
    }

    fn add_core(&mut self, project: &Project, part: String, checkpoint: Checkpoint) -> Result<(), Error> {
        if part == JOB {
            self.begun = member(&checkpoint.content.metadata, Begun::KEY);
        }
        if part == plans::FINAL {
            let payload = value_of(project, &checkpoint)?;
            let (status, reason) = plans::status_of(&payload);
            let (approved, reason) = (status == Some("SUCCESS"), reason.map(str::to_owned));
            // Whoever drove the loop elsewhere told what it cost at its end only.
            let spent = plans::spent_of(&payload);
            if self.begun.is_none() && spent != (0, 0.0) {
                (self.tokens, self.seconds) = spent;
            }
            self.end = Some(End { checkpoint: checkpoint.clone(), approved, reason });
        }
        self.core.insert(part, checkpoint);
        Ok(())
    }

    /// Returns the best attempt: one that was approved before others, then the highest score, then the earliest.
    pub fn best(&self) -> Option<&Iteration> {
        let judged = self.iterations.values().filter(|one| one.judgement.is_some());
        judged.reduce(|best, one| if one.rank() > best.rank() { one } else { best })
    }

    /// Returns the run with the best attempt of all; the earliest where several are as good. Where nothing was judged, the
    /// newest that has a plan.
    pub fn best_of(histories: &[History]) -> Option<&History> {
        let planned = || histories.iter().rev().find(|one| one.best_effort().is_some());
        let judged = histories.iter().filter(|one| one.best().is_some());
        let best = judged.reduce(|best, one| {
            let rank = |history: &History| history.best().map(Iteration::rank);
            if rank(one) > rank(best) { one } else { best }
        });
        best.or_else(planned)
    }

    /// Returns the best attempt, or where nothing was judged the newest plan, sound ones first.
    pub fn best_effort(&self) -> Option<&Iteration> {
        let plans = || self.iterations.values().rev().filter(|one| one.raw.is_some());
        let sound = || plans().find(|one| one.validation.as_ref().is_none_or(|said| said.valid));
        self.best().filter(|one| one.raw.is_some()).or_else(sound).or_else(|| plans().next())
    }

    /// From which scores on a plan is approved, or worth more work.
    pub fn thresholds(&self) -> Thresholds {
        self.begun.as_ref().map(|begun| begun.thresholds).unwrap_or_default()
    }

    /// Says whether nothing but how it ended is left of it.
    pub(super) fn is_only_its_end(&self) -> bool {
        self.end.is_some() && self.begun.is_none() && self.iterations.is_empty()
    }

    /// Finds an iteration.
    pub fn iteration(&self, number: u32) -> Result<&Iteration, Error> {
        self.iterations.get(&number).ok_or_else(|| self.missing(format!("iteration {number}")))
    }

    /// Reads the plan of an iteration.
    pub fn plan(&self, project: &Project, iteration: &Iteration) -> Result<Value, Error> {
        let missing = || self.missing(format!("plan of iteration {}", iteration.number));
        let raw = iteration.raw.as_ref().ok_or_else(missing)?;
        Ok(plans::finite(plans::plan_of(&value_of(project, raw)?)))
    }

    pub(super) fn missing(&self, what: String) -> Error {
        Error::NotFound { run: self.run.id.clone(), what }
    }
}

/// Reads the payload of a checkpoint: what was recorded under the name of its part, or the file it was imported from.
pub(super) fn payload_of(project: &Project, checkpoint: &Checkpoint) -> Result<Option<Payload>, Error> {
    let Kind::Iteration { part, .. } = &checkpoint.content.kind else { return Ok(None) };
    if checkpoint.artifact(part).is_some() {
        return Ok(Payload::read(project.load(checkpoint, part)?).ok());
    }
    let original = project.load(checkpoint, "original")?;
    // What was imported broken is kept, and says nothing.
    Ok(Payload::read(original).ok().map(|payload| plans::unwrap(payload.value().clone()).into()))
}

pub(super) fn value_of(project: &Project, checkpoint: &Checkpoint) -> Result<Value, Error> {
    Ok(payload_of(project, checkpoint)?.map_or(Value::Null, |payload| payload.value().clone()))
}
