//! Ending a run, and giving up what it does not need any more.

use std::collections::HashSet;

use super::Error;
use super::cleanup::is_gone;
use super::happened::{End, Happened};
use super::kept::{self, KeptStep};
use super::state::{Attempt, RunState, StepState, Summary};
use crate::model::{CheckpointId, Run, RunId};
use crate::project::Project;
use crate::store::{Batch, Found, NewEntry};

/// Writes down that a run ended, then gives up all but its newest checkpoints, if a number is given. The results among
/// them that hold stay: one checkpoint keeps them all.
pub(super) fn end(
    project: &Project,
    run: &RunId,
    status: End,
    why: Option<String>,
    keep_last: Option<usize>,
) -> Result<(), Error> {
    let surplus = match keep_last {
        Some(keep) => surplus(project, &RunState::load(project, run)?, status, keep)?,
        None => Surplus::default(),
    };
    let now = project.context().clock.now();
    let ended = Happened::Ended { status, why, steps: surplus.told };
    let mut entries = Vec::new();
    if !surplus.kept.is_empty() {
        let keeper = kept::draft(project.new_id(), run, now, &surplus.kept);
        entries.push(NewEntry::Checkpoint(keeper));
    }
    entries.push(NewEntry::Event(ended.event(run, now)));
    project.store().write(Batch { entries, ..Batch::default() })?;
    Ok(project.forget(&surplus.gone)?)
}

/// What a run that ends does not need.
#[derive(Debug, Default)]
struct Surplus {
    /// Checkpoints that go.
    gone: Vec<CheckpointId>,
    /// Steps whose results are kept all the same.
    kept: Vec<KeptStep>,
    /// What there is to say of the others.
    told: Vec<Summary>,
}

/// Which attempts a run that ends so does not need: all but the newest, and of a run that can be resumed never a result
/// that holds. What another run was forked from stays with all it stands on, and so does what someone pinned.
fn surplus(project: &Project, state: &RunState, status: End, keep: usize) -> Result<Surplus, Error> {
    let mut needed: HashSet<CheckpointId> = project.pinned()?.into_iter().collect();
    let shared = shared(project, state)?;
    if status != End::Completed || shared.is_some() {
        needed.extend(state.steps.iter().filter_map(|step| step.current()).map(|one| one.checkpoint));
    }
    // What they stand on may hold no more here.
    needed.extend(shared.into_iter().flatten());
    if status != End::Completed {
        // Someone will want to see how it failed.
        needed.extend(state.steps.iter().filter_map(|step| step.last()).map(|one| one.checkpoint));
    }
    let own = |attempt: &&Attempt| attempt.run == state.run.id && !attempt.pruned && !attempt.thinned;
    let mut all: Vec<(Worth, &StepState, &Attempt)> = Vec::new();
    for step in &state.steps {
        let attempts = step.attempts.iter().filter(own);
        all.extend(attempts.map(|one| (Worth::of(step, one, state), step, one)));
    }
    all.sort_by_key(|(worth, _, attempt)| (*worth, attempt.seq));
    all.truncate(all.len().saturating_sub(keep.max(1)));
    all.retain(|(_, _, attempt)| !needed.contains(&attempt.checkpoint));
    let mut surplus = Surplus::default();
    for (worth, step, attempt) in all {
        surplus.gone.push(attempt.checkpoint);
        match KeptStep::of(step).filter(|_| worth == Worth::Holds) {
            Some(kept) => surplus.kept.push(kept),
            None => surplus.told.push(attempt.summary(step)),
        }
    }
    if !surplus.kept.is_empty() {
        // One such checkpoint at a time: the new one takes over what the ones before it kept.
        let thinned = |step: &&StepState| step.current().is_some_and(|one| one.thinned);
        surplus.kept.extend(state.steps.iter().filter(thinned).filter_map(KeptStep::of));
        for step in &state.steps {
            let is_current =
                |one: &Attempt| step.current().is_some_and(|now| now.checkpoint == one.checkpoint);
            let superseded = step.attempts.iter().filter(|one| one.thinned && !is_current(one));
            surplus.told.extend(superseded.map(|one| one.summary(step)));
        }
        surplus.gone.extend(&state.keepers);
    }
    Ok(surplus)
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

/// The checkpoints of a run that others stand on which share its past; `None` if none does.
fn shared(project: &Project, state: &RunState) -> Result<Option<HashSet<CheckpointId>>, Error> {
    let (run, mut shared) = (&state.run.id, None);
    for other in project.runs()?.into_iter().filter(|other| other.id != *run) {
        if other.forked_from.is_none() || is_gone(project, &other.id)? {
            continue;
        }
        let results: Vec<CheckpointId> = match RunState::load(project, &other.id) {
            Ok(fork) => {
                let current = fork.steps.iter().filter_map(StepState::current);
                current.filter(|one| one.run == *run).map(|one| one.checkpoint).collect()
            }
            // Nobody knows what it stands on, so nothing goes.
            Err(_) => state.steps.iter().flat_map(|step| &step.attempts).map(|one| one.checkpoint).collect(),
        };
        if !results.is_empty() || is_fork_of(project, &other, run)? {
            shared.get_or_insert_with(HashSet::new).extend(results);
        }
    }
    Ok(shared)
}

fn is_fork_of(project: &Project, other: &Run, run: &RunId) -> Result<bool, Error> {
    let Some(fork) = other.forked_from else { return Ok(false) };
    Ok(match project.store().checkpoint(&fork)? {
        Some(Found::Live(checkpoint)) => checkpoint.run == *run,
        Some(Found::Pruned(stub)) => stub.run == *run,
        None => false,
    })
}
