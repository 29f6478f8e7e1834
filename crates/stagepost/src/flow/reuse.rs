//! What of an earlier drive still holds. Pure: the history and what is there now go in, a plan comes out.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::Fingerprint;
use super::definition::{Flow, OnFailure, Step};
use super::made_of::is_file_part;
use super::state::{Attempt, RunState, StepState};
use crate::model::StepStatus;

/// What going on with a run would do with each step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The steps, each after what it needs.
    pub steps: Vec<Planned>,
    /// Steps that the run has results of and the flow does not have any more.
    pub removed: Vec<String>,
}

/// What going on with a run would do with a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// The step.
    pub step: String,
    /// What would be done with it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What going on with a run would do with a step, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// Its result holds and is not made again.
    Reuse {
        /// The attempt that made it.
        attempt: u32,
    },
    /// It has not been done.
    New,
    /// Its last attempt failed.
    Failed {
        /// That attempt.
        attempt: u32,
    },
    /// It was cut off in the middle.
    Interrupted {
        /// That attempt.
        attempt: u32,
    },
    /// What it is made from has changed.
    Changed {
        /// The parts that changed.
        parts: Vec<String>,
    },
    /// It is made from the result of a step that is done again.
    Downstream {
        /// That step.
        of: String,
    },
    /// What it left in the files went when those were rolled back to where another step began.
    RolledBack {
        /// That step.
        with: String,
    },
    /// An answer or a failure leads back to it, or to what it depends on.
    LedBack {
        /// Which one, in words.
        why: String,
    },
    /// The question that it asked is open again.
    Reopened,
    /// Its result was pruned, and a step that is to be done needs it.
    Pruned,
}

impl Verdict {
    /// Returns the name of the verdict.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Reuse { .. } => "reuse",
            Verdict::New => "new",
            Verdict::Failed { .. } => "failed",
            Verdict::Interrupted { .. } => "interrupted",
            Verdict::Changed { .. } => "changed",
            Verdict::Downstream { .. } => "downstream",
            Verdict::RolledBack { .. } => "rolled_back",
            Verdict::LedBack { .. } => "led_back",
            Verdict::Reopened => "reopened",
            Verdict::Pruned => "pruned",
        }
    }

    /// Says whether there is a result, and it does not hold.
    pub(super) fn is_made_again(&self) -> bool {
        matches!(
            self,
            Verdict::Changed { .. } | Verdict::Downstream { .. } | Verdict::Reopened | Verdict::Pruned
        )
    }

    /// Says whether the result holds.
    pub fn is_reuse(&self) -> bool {
        matches!(self, Verdict::Reuse { .. })
    }
}

/// What is there now.
#[derive(Debug, Default)]
pub(super) struct Now {
    /// The fingerprint of each step.
    pub(super) fingerprints: HashMap<String, Fingerprint>,
    /// Steps whose files are not what they left.
    pub(super) files: HashMap<String, Vec<String>>,
    /// Steps whose question is open again.
    pub(super) reopened: Vec<String>,
    /// The newest attempt of each step that is known to have begun.
    pub(super) begun: HashMap<String, u32>,
}

impl Plan {
    /// Decides for every step.
    pub(super) fn of(flow: &Flow, state: &RunState, now: &Now) -> Self {
        let mut remade = BTreeSet::new();
        let steps = loop {
            let steps = decide_all(flow, state, now, &remade);
            match needed_and_gone(flow, state, &steps) {
                Some(step) => drop(remade.insert(step)),
                None => break steps,
            }
        };
        let owner = |name: &str| name.split('/').next().unwrap_or(name).to_owned();
        let unknown = |step: &&StepState| flow.step(&owner(&step.step)).is_none() && step.current().is_some();
        let removed = state.steps.iter().filter(unknown).map(|step| step.step.clone()).collect();
        Self { steps, removed }
    }

    /// Takes in which results that hold are given up as soon as the run goes on, and why.
    pub(super) fn lead_back(&mut self, given_up: &BTreeMap<String, String>) {
        for planned in self.steps.iter_mut().filter(|planned| planned.verdict.is_reuse()) {
            if let Some(why) = given_up.get(&planned.step) {
                planned.verdict = Verdict::LedBack { why: why.clone() };
            }
        }
    }

    /// Finds a step.
    pub fn step(&self, name: &str) -> Option<&Verdict> {
        self.steps.iter().find(|planned| planned.step == name).map(|planned| &planned.verdict)
    }

    /// Names the steps whose definition was changed since they were done.
    pub fn redefined(&self) -> Vec<String> {
        let redefined = |planned: &&Planned| match &planned.verdict {
            Verdict::Changed { parts } => parts.iter().any(|part| !is_file_part(part)),
            _ => false,
        };
        self.steps.iter().filter(redefined).map(|planned| planned.step.clone()).collect()
    }

    /// Says whether there is nothing to do.
    pub fn is_done(&self) -> bool {
        self.steps.iter().all(|planned| planned.verdict.is_reuse())
    }
}

fn decide_all(flow: &Flow, state: &RunState, now: &Now, remade: &BTreeSet<String>) -> Vec<Planned> {
    let mut verdicts: HashMap<&str, Verdict> = HashMap::new();
    let mut steps = Vec::new();
    for step in flow.order() {
        let verdict = match remade.contains(step.id.as_str()) {
            true => Verdict::Pruned,
            false => decide(flow, step, state, now, &verdicts),
        };
        steps.push(Planned { step: step.id.to_string(), verdict: verdict.clone() });
        verdicts.insert(step.id.as_str(), verdict);
    }
    steps
}

/// Finds a result that was pruned and that a step needs which is to be done.
fn needed_and_gone(flow: &Flow, state: &RunState, steps: &[Planned]) -> Option<String> {
    let reused = |id: &str| steps.iter().any(|planned| planned.step == id && planned.verdict.is_reuse());
    let gone = |id: &str| state.step(id).and_then(StepState::current).is_some_and(|one| one.pruned);
    let done = flow.steps.iter().filter(|step| !reused(step.id.as_str()));
    let mut needs = done.flat_map(|step| &step.needs).map(|need| need.as_str());
    needs.find(|need| reused(need) && gone(need)).map(str::to_owned)
}

fn decide(
    flow: &Flow,
    step: &Step,
    state: &RunState,
    now: &Now,
    verdicts: &HashMap<&str, Verdict>,
) -> Verdict {
    let id = step.id.as_str();
    let known = state.step(id);
    let begun = now.begun.get(id).copied().unwrap_or(0);
    let last = known.and_then(StepState::last);
    if begun > last.map_or(0, |attempt| attempt.attempt) {
        return Verdict::Interrupted { attempt: begun };
    }
    let Some(known) = known else { return Verdict::New };
    if let Some(with) = &known.undone_with {
        return Verdict::RolledBack { with: with.clone() };
    }
    let goes_on = matches!(step.on_failure, OnFailure::Continue | OnFailure::GoTo(_));
    let attempt = match (known.current(), last) {
        (Some(current), _) if current.status == StepStatus::Failed && !goes_on => {
            return Verdict::Failed { attempt: current.attempt };
        }
        (Some(current), _) => current,
        (None, Some(last)) => match last.status {
            StepStatus::Failed if goes_on && was_consumed(flow, step, state, last) => last,
            StepStatus::Failed => return Verdict::Failed { attempt: last.attempt },
            StepStatus::Cancelled => return Verdict::Interrupted { attempt: last.attempt },
            _ => return Verdict::New,
        },
        (None, None) => return Verdict::New,
    };
    if now.reopened.iter().any(|reopened| reopened == id) {
        return Verdict::Reopened;
    }
    let parts = changed_parts(id, known, attempt, now);
    // A definition that someone changed needs a permission, whatever else makes the step run again.
    if parts.iter().any(|part| !is_file_part(part)) {
        return Verdict::Changed { parts };
    }
    if let Some(of) = stale_need(step, known, attempt, verdicts) {
        return Verdict::Downstream { of };
    }
    if parts.is_empty() { Verdict::Reuse { attempt: attempt.attempt } } else { Verdict::Changed { parts } }
}

/// Says whether something was made from this failure. That is how runs that an earlier version drove tell that they went
/// on from it; now the attempt says so itself.
fn was_consumed(flow: &Flow, step: &Step, state: &RunState, failed: &Attempt) -> bool {
    let consumed = |other: &Step| {
        let current = state.step(other.id.as_str()).and_then(StepState::current);
        current.is_some_and(|one| one.record.consumed.get(step.id.as_str()) == Some(&failed.attempt))
    };
    flow.dependents(&step.id).any(consumed)
}

/// Names a step that this result is made from and that is done again, or was done again since.
fn stale_need(
    step: &Step,
    known: &StepState,
    attempt: &Attempt,
    verdicts: &HashMap<&str, Verdict>,
) -> Option<String> {
    let accepted = known.accepted.as_ref().map(|accepted| &accepted.consumed);
    let consumed: &BTreeMap<String, u32> = accepted.unwrap_or(&attempt.record.consumed);
    let stale = |need: &str| match verdicts.get(need) {
        Some(Verdict::Reuse { attempt }) => consumed.get(need).is_some_and(|consumed| consumed != attempt),
        _ => true,
    };
    let spared = |need: &str| known.accepted.as_ref().is_some_and(|accepted| accepted.spared.contains(need));
    let mut needs = step.needs.iter().map(|need| need.as_str());
    needs.find(|need| !spared(need) && stale(need)).map(str::to_owned)
}

fn changed_parts(id: &str, known: &StepState, attempt: &Attempt, now: &Now) -> Vec<String> {
    let accepted = known.accepted.as_ref().and_then(|accepted| accepted.fingerprint.as_ref());
    let mut parts = match (accepted.or(attempt.record.fingerprint.as_ref()), now.fingerprints.get(id)) {
        (Some(before), Some(after)) => before.differences(after),
        _ => Vec::new(),
    };
    parts.extend(now.files.get(id).into_iter().flatten().cloned());
    parts
}
