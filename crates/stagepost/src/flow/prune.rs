//! Ending a run, and giving up what it does not need any more.

use std::collections::HashSet;

use super::Error;
use super::happened::{End, Happened};
use super::state::{Attempt, RunState, StepState};
use crate::model::{CheckpointId, RunId};
use crate::project::Project;
use crate::store::{Batch, NewEntry};

/// Writes down that a run ended, then gives up all but its newest checkpoints, if a number is given.
pub(super) fn end(
    project: &Project,
    run: &RunId,
    status: End,
    why: Option<String>,
    keep_last: Option<usize>,
) -> Result<(), Error> {
    let surplus = match keep_last {
        Some(keep) => surplus(project, &RunState::load(project, run)?, status, keep)?,
        None => Vec::new(),
    };
    let steps = surplus.iter().map(|(step, attempt)| attempt.summary(step)).collect();
    let ended = Happened::Ended { status, why, steps };
    let event = ended.event(run, project.context().clock.now());
    project.store().write(Batch { entries: vec![NewEntry::Event(event)], ..Batch::default() })?;
    let ids: Vec<CheckpointId> = surplus.iter().map(|(_, attempt)| attempt.checkpoint).collect();
    Ok(project.forget(&ids)?)
}

/// Which attempts a run that ends so does not need: all but the newest, and of a run that can be resumed never a result
/// that holds. What another run was forked from stays with all it stands on, and so does what someone pinned.
fn surplus(
    project: &Project,
    state: &RunState,
    status: End,
    keep: usize,
) -> Result<Vec<(String, Attempt)>, Error> {
    let mut needed: HashSet<CheckpointId> = project.pinned()?.into_iter().collect();
    if status != End::Completed || is_forked(project, &state.run.id)? {
        needed.extend(state.steps.iter().filter_map(|step| step.current()).map(|one| one.checkpoint));
    }
    let own = |attempt: &&Attempt| attempt.run == state.run.id && !attempt.pruned;
    let mut all: Vec<(Worth, String, Attempt)> = Vec::new();
    for step in &state.steps {
        let attempts = step.attempts.iter().filter(own);
        all.extend(attempts.map(|one| (Worth::of(step, one, state), step.step.clone(), one.clone())));
    }
    all.sort_by_key(|(worth, _, attempt)| (*worth, attempt.seq));
    let surplus = all.len().saturating_sub(keep.max(1));
    all.truncate(surplus);
    all.retain(|(_, _, attempt)| !needed.contains(&attempt.checkpoint));
    Ok(all.into_iter().map(|(_, step, attempt)| (step, attempt)).collect())
}

/// What is given up first, before what is merely older.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// It holds no more.
    Superseded,
    /// It is an item whose result is part of that of its step.
    Joined,
    /// It holds.
    Holds,
}

impl Worth {
    fn of(step: &StepState, attempt: &Attempt, state: &RunState) -> Self {
        let whole = step.step.split_once('/').and_then(|(whole, _)| state.step(whole));
        match step.current() {
            Some(current) if current.checkpoint != attempt.checkpoint => Worth::Superseded,
            None => Worth::Superseded,
            Some(_) if whole.is_some_and(|whole| whole.current().is_some()) => Worth::Joined,
            Some(_) => Worth::Holds,
        }
    }
}

/// Says whether another run shares the past of this one.
fn is_forked(project: &Project, run: &RunId) -> Result<bool, Error> {
    let forks: Vec<CheckpointId> =
        project.runs()?.into_iter().filter_map(|other| other.forked_from).collect();
    for fork in forks {
        if let Some(found) = project.store().checkpoint(&fork)? {
            let of = match &found {
                crate::store::Found::Live(checkpoint) => &checkpoint.run,
                crate::store::Found::Pruned(stub) => &stub.run,
            };
            if of == run {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
