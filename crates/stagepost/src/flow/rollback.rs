//! Putting the files back to where a step began that failed for good.
//!
//! Steps that ended meanwhile, beside it, lose what they left in the files. Nobody knows which files those were, so their
//! results are given up and they are done again. A step that may be done once only keeps its result: what it is for
//! lies outside the files, and what it declares to leave is put back.
//!
//! That it is due is told by the attempt that failed, and that it was done by an event after it. Whoever is killed between
//! the two leaves it to whoever goes on: it is done before anything else is.

use std::collections::HashMap;

use serde_json::Value;

use super::Error;
use super::attempts::Begun;
use super::definition::{Action, Effects, Flow, Step};
use super::flows::owner;
use super::happened::Happened;
use super::state::{Attempt, RunState, StepState};
use super::watch::{Progress, Watch};
use crate::model::{Checkpoint, RunId, StepStatus};
use crate::project::{Project, Wish};
use crate::store::{Batch, NewEntry};

/// With the files as they were before a step: the newest checkpoint of the run when they began to be captured. What ended
/// while they were may be in them or not.
pub(super) const AFTER: &str = "after";

/// The files go back.
#[derive(Debug)]
pub(super) struct Rollback {
    /// Because these steps or items failed.
    steps: Vec<String>,
    /// To here.
    target: Checkpoint,
    /// What these left in the files goes with it.
    undone: Vec<String>,
}

impl Rollback {
    /// Goes back to before all that failed: of several, the one that began first saw the files before all of them.
    pub(super) fn of(flow: &Flow, state: &RunState, before: Vec<(String, Checkpoint)>) -> Option<Self> {
        let mut steps: Vec<String> = before.iter().map(|(step, _)| step.clone()).collect();
        steps.sort();
        let target = before.into_iter().map(|(_, checkpoint)| checkpoint).min_by_key(|one| one.seq)?;
        let undone = undone(flow, state, &target);
        Some(Self { steps, target, undone })
    }

    /// Finds one that is due: `before` has the files as they were before steps that are not done.
    pub(super) fn due(
        flow: &Flow,
        state: &RunState,
        before: &HashMap<String, Checkpoint>,
        begun: &Begun,
    ) -> Option<Self> {
        let failed = |(step, files): &(&String, &Checkpoint)| {
            let last = state.step(step).and_then(StepState::last);
            let begun = begun.attempts.get(*step).copied().unwrap_or(0);
            // The past that a fork shares is not its own to roll back.
            let is_own = files.run == state.run.id;
            let is_due = |one: &Attempt| {
                one.status == StepStatus::Failed && one.record.rolls_back && one.attempt >= begun
            };
            is_own && last.is_some_and(is_due)
        };
        let due = before.iter().filter(failed);
        Self::of(flow, state, due.map(|(step, files)| (step.clone(), files.clone())).collect())
    }

    /// What is written down when it was done.
    pub(super) fn happened(&self) -> Happened {
        Happened::RolledBack { steps: self.steps.clone(), undone: self.undone.clone() }
    }

    /// Puts the files back, then writes that down: if we are killed in between, it is done once more.
    pub(super) fn carry_out(&self, project: &Project, run: &RunId, watch: &dyn Watch) -> Result<(), Error> {
        project.restore(&self.target, &Wish::default())?;
        let event = self.happened().event(run, project.context().clock.now());
        project.store().write(Batch { entries: vec![NewEntry::Event(event)], ..Batch::default() })?;
        self.steps.iter().for_each(|step| watch.saw(Progress::RolledBack { step }));
        if !self.undone.is_empty() {
            let why = format!("the files were rolled back to where step `{}` began", self.steps[0]);
            watch.saw(Progress::Voided { steps: &self.undone, why: &why });
        }
        Ok(())
    }
}

/// Steps and items that were done by a program after the files were captured.
fn undone(flow: &Flow, state: &RunState, target: &Checkpoint) -> Vec<String> {
    let after = target.content.metadata.get(AFTER).and_then(Value::as_u64).unwrap_or(target.seq);
    let wrote = |step: &&StepState| {
        let is_program =
            |step: &Step| !matches!(step.action, Action::Ask(_)) && step.effects != Effects::Once;
        let is_later =
            |one: &Attempt| one.run == target.run && one.seq > after && one.status != StepStatus::Skipped;
        flow.step(owner(&step.step)).is_some_and(is_program) && step.current().is_some_and(is_later)
    };
    state.steps.iter().filter(wrote).map(|step| step.step.clone()).collect()
}
