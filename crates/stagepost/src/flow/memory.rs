//! What a program that drives a run knows of its steps, and how it comes to know it when it goes on.

use std::collections::{HashMap, HashSet};

use super::attempts::{Attempts, Begun};
use super::cleanup::is_deleted;
use super::ended::Ended;
use super::happened::Happened;
use super::history::{History, Moment, flow_run, happened_to};
use super::record::RESULT;
use super::state::RunState;
use super::{Error, hold};
use crate::model::{BlobRef, CheckpointId, Run, RunId};
use crate::project::Project;
use crate::store::{Found, Query, Store};

/// What is known of the steps.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) known: HashMap<String, Known>,
    pub(super) running: HashSet<String>,
    pub(super) over: bool,
    /// All results, in the order in which they were made.
    results: Vec<BlobRef>,
}

/// What is known of a step.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    pub(super) attempt: u32,
    /// How many attempts failed since someone asked for it.
    pub(super) failures: u32,
    pub(super) result: Option<Kept>,
    /// The checkpoint of its result, if it was done and that result was given up.
    pub(super) gone: Option<CheckpointId>,
}

/// A result, and its place among all results.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    blob: BlobRef,
    place: usize,
}

impl Memory {
    /// Finds out how a run stands: from the lines beside the store where they can be believed, else from its records.
    ///
    /// Either way the newest record is read and fits its seal, which covers all before it. A result is checked when it is
    /// handed over.
    pub(super) fn load(
        project: &Project,
        run: &Run,
        begun: Begun,
        attempts: &Attempts,
    ) -> Result<Self, Error> {
        let has_only_begun = has_only_begun(project, &run.id)? && run.forked_from.is_none();
        let mut memory = match told(project, &run.id, begun.ended)?.filter(|_| has_only_begun) {
            Some((ended, tail)) => {
                tail.iter().for_each(|one| attempts.ended(one));
                Self::of_ends(ended.into_iter().chain(tail))
            }
            None => Self::recorded(project, &run.id, attempts, has_only_begun)?,
        };
        for (step, attempt) in begun.attempts {
            let known = memory.known.entry(step).or_default();
            known.attempt = known.attempt.max(attempt);
        }
        Ok(memory)
    }

    /// Reads every record of a run.
    fn recorded(project: &Project, id: &RunId, attempts: &Attempts, tell: bool) -> Result<Self, Error> {
        let history = History::load(project, id)?;
        let checkpoints = history.moments.iter().filter_map(|moment| match moment {
            Moment::Checkpoint { checkpoint, .. } => Some(checkpoint),
            Moment::Gone { .. } | Moment::Happened { .. } => None,
        });
        checkpoints.filter(|_| tell).filter_map(Ended::of).for_each(|one| attempts.ended(&one));
        let mut memory = Self::of(&RunState::of(&history, hold::is_driven(project, id)));
        // One that was deleted is not there again before somebody is told to have begun it.
        memory.over |= is_deleted(project, id)?;
        Ok(memory)
    }

    fn of(state: &RunState) -> Self {
        let mut memory = Self { over: state.ended_at.is_some(), ..Self::default() };
        for step in &state.steps {
            let result = step.current().and_then(|attempt| attempt.artifact(RESULT));
            let known = Known {
                attempt: step.last().map_or(0, |attempt| attempt.attempt),
                failures: if memory.over { 0 } else { step.failures },
                result: result.map(|artifact| memory.keep(artifact.blob)),
                gone: step.current().filter(|attempt| attempt.pruned).map(|attempt| attempt.checkpoint),
            };
            memory.known.insert(step.step.clone(), known);
        }
        memory
    }

    fn of_ends(ends: impl Iterator<Item = Ended>) -> Self {
        let mut memory = Self::default();
        ends.for_each(|ended| memory.ended(ended));
        memory
    }

    /// Takes in the end of an attempt.
    pub(super) fn ended(&mut self, ended: Ended) {
        let result = ended.result.map(|blob| self.keep(blob));
        let known = self.known.entry(ended.step).or_default();
        known.attempt = ended.attempt;
        known.failures = if result.is_some() { 0 } else { known.failures + 1 };
        (known.result, known.gone) = (result, None);
    }

    fn keep(&mut self, blob: BlobRef) -> Kept {
        self.results.push(blob);
        Kept { blob, place: self.results.len() - 1 }
    }

    /// Names the results from one on that are read together.
    pub(super) fn next_results(&self, from: usize) -> Vec<BlobRef> {
        const MOST: usize = 1024;
        const MOST_BYTES: u64 = 4 << 20;
        let mut bytes = 0;
        let fits = |blob: &&BlobRef| {
            bytes += blob.size;
            bytes <= MOST_BYTES
        };
        self.results[from..].iter().take(MOST).take_while(fits).copied().collect()
    }
}

/// Refuses a run that a program cannot drive.
pub(super) fn check_in_code(project: &Project, id: &RunId) -> Result<(), Error> {
    flow_run(project, id)?;
    has_only_begun(project, id).map(drop)
}

/// Says whether nothing happened to a run but that someone began to drive it. A program cannot drive one that follows a
/// flow file.
fn has_only_begun(project: &Project, id: &RunId) -> Result<bool, Error> {
    let mut only = true;
    let (moments, bodies) = happened_to(project, id)?;
    for moment in &moments {
        match moment {
            Moment::Happened { happened: Happened::Began { definition: Some(definition), .. }, .. } => {
                return Err(Error::FromFile { run: id.clone(), flow: definition.name.clone() });
            }
            Moment::Happened { happened: Happened::Began { .. }, .. } => {}
            _ => only = false,
        }
    }
    Ok(only && moments.len() == bodies.len())
}

/// What the lines beside the store tell, and what the records tell beyond that. `None` if the lines do not fit the
/// records.
#[expect(clippy::type_complexity, reason = "it is taken apart at once")]
fn told(
    project: &Project,
    id: &RunId,
    mut ended: Vec<Ended>,
) -> Result<Option<(Vec<Ended>, Vec<Ended>)>, Error> {
    ended.sort_by_key(|one| one.seq);
    ended.dedup_by_key(|one| one.seq);
    let whole = ended.iter().zip(1..).take_while(|(one, seq)| one.seq == *seq).count();
    ended.truncate(whole);
    let Some(last) = ended.last() else { return Ok(None) };
    let store = project.store();
    let Some(Found::Live(newest)) = store.at(id, last.seq)? else { return Ok(None) };
    if Ended::of(&newest).as_ref() != Some(last) {
        return Ok(None);
    }
    let Some(head) = store.head(id)?.map(|head| head.seq()) else { return Ok(None) };
    let mut tail = Vec::new();
    if let Some(later) = usize::try_from(head.saturating_sub(last.seq)).ok().filter(|later| *later > 0) {
        let query = Query { run: Some(id.clone()), limit: Some(later), ..Query::default() };
        tail.extend(store.list(&query)?.iter().rev().filter_map(|one| Ended::of(&one.checkpoint)));
    }
    tail.retain(|one| one.seq > last.seq);
    Ok(Some((ended, tail)))
}

/// Results of an earlier drive that were read before they were asked for: a program that goes on asks for one after the
/// other.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    from: usize,
    loaded: Vec<Option<Vec<u8>>>,
}

impl Ahead {
    /// Returns a result, checked. `next` names those that are read together from one on.
    pub(super) fn load(
        &mut self,
        store: &dyn Store,
        result: Kept,
        next: impl FnOnce(usize) -> Vec<BlobRef>,
    ) -> Result<Vec<u8>, Error> {
        let at = result.place.checked_sub(self.from);
        if let Some(bytes) = at.and_then(|at| self.loaded.get_mut(at)).and_then(Option::take) {
            return Ok(bytes);
        }
        if at == Some(self.loaded.len()) {
            // If one of them is damaged, that is said when it is asked for.
            let loaded = store.load_all(&next(result.place)).unwrap_or_default();
            // What could not be read along with others is left out, so that those behind it are.
            self.from = result.place + usize::from(loaded.is_empty());
            self.loaded = loaded.into_iter().map(Some).collect();
            if let Some(bytes) = self.loaded.first_mut().and_then(Option::take) {
                return Ok(bytes);
            }
        }
        Ok(store.load(&result.blob)?)
    }
}
