//! Putting the files back to where a step began that failed for good.
//!
//! That it is due is told by the attempt that failed, and that it was done by an event after it. Whoever is killed between
//! the two leaves it to whoever goes on: it is done before anything else is.

use std::collections::HashMap;

use super::Error;
use super::attempts::Begun;
use super::happened::Happened;
use super::state::{RunState, StepState};
use super::watch::{Progress, Watch};
use crate::model::{Checkpoint, RunId, StepStatus};
use crate::project::{Project, Wish};
use crate::store::{Batch, NewEntry};

/// The files go back.
#[derive(Debug)]
pub(super) struct Rollback {
    /// Because these steps or items failed.
    steps: Vec<String>,
    /// To here.
    target: Checkpoint,
}

impl Rollback {
    /// Goes back to before all that failed: of several, the one that began first saw the files before all of them.
    pub(super) fn of(before: Vec<(String, Checkpoint)>) -> Option<Self> {
        let mut steps: Vec<String> = before.iter().map(|(step, _)| step.clone()).collect();
        steps.sort();
        let target = before.into_iter().map(|(_, checkpoint)| checkpoint).min_by_key(|one| one.seq)?;
        Some(Self { steps, target })
    }

    /// Finds one that is due: `before` has the files as they were before steps that are not done.
    pub(super) fn due(state: &RunState, before: &HashMap<String, Checkpoint>, begun: &Begun) -> Option<Self> {
        let failed = |(step, files): &(&String, &Checkpoint)| {
            let last = state.step(step).and_then(StepState::last);
            let begun = begun.attempts.get(*step).copied().unwrap_or(0);
            // The past that a fork shares is not its own to roll back.
            let is_own = files.run == state.run.id;
            let is_due = |one: &super::state::Attempt| {
                one.status == StepStatus::Failed && one.record.rolls_back && one.attempt >= begun
            };
            is_own && last.is_some_and(is_due)
        };
        let due = before.iter().filter(failed);
        Self::of(due.map(|(step, files)| (step.clone(), files.clone())).collect())
    }

    /// What is written down when it was done.
    pub(super) fn happened(&self) -> Happened {
        Happened::RolledBack { steps: self.steps.clone() }
    }

    /// Puts the files back, then writes that down: if we are killed in between, it is done once more.
    pub(super) fn carry_out(&self, project: &Project, run: &RunId, watch: &dyn Watch) -> Result<(), Error> {
        project.restore(&self.target, &Wish::default())?;
        let event = self.happened().event(run, project.context().clock.now());
        project.store().write(Batch { entries: vec![NewEntry::Event(event)], ..Batch::default() })?;
        self.steps.iter().for_each(|step| watch.saw(Progress::RolledBack { step }));
        Ok(())
    }
}
