//! Everything that is recorded of a run, in the order in which it happened.

use std::collections::HashSet;

use serde::Deserialize as _;
use serde_json::Value;

use super::{Error, Happened};
use crate::model::{Checkpoint, CheckpointId, Run, RunId, RunKind, Timestamp, Topic};
use crate::project::{GoneStep, Project};
use crate::store::{EventQuery, Found, Listed, Query};

/// Everything that is recorded of a run, oldest first. A run that was forked shares the past of the other.
#[derive(Debug, Clone)]
pub struct History {
    /// The run.
    pub run: Run,
    /// What happened, oldest first.
    pub moments: Vec<Moment>,
}

/// One thing that happened.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "most of them are checkpoints")]
pub enum Moment {
    /// A checkpoint: the end of an attempt at a step, or an answer to a gate.
    Checkpoint {
        /// Its place in the journal.
        position: u64,
        /// The checkpoint.
        checkpoint: Checkpoint,
    },
    /// The end of an attempt at a step whose checkpoint was given up.
    Gone {
        /// The run that it belongs to.
        run: RunId,
        /// What is left to say of it.
        gone: GoneStep,
    },
    /// Something else.
    Happened {
        /// Its place in the journal.
        position: u64,
        /// When.
        at: Timestamp,
        /// What.
        happened: Happened,
    },
}

impl Moment {
    /// Returns the place in the journal.
    pub fn position(&self) -> u64 {
        match self {
            Moment::Checkpoint { position, .. } | Moment::Happened { position, .. } => *position,
            Moment::Gone { gone, .. } => gone.position,
        }
    }

    /// The number of the checkpoint in its run.
    fn seq(&self) -> Option<u64> {
        match self {
            Moment::Checkpoint { checkpoint, .. } => Some(checkpoint.seq),
            // What another checkpoint kept came later than its own number says.
            Moment::Gone { gone, .. } => Some(gone.seq).filter(|_| gone.kept.is_none()),
            Moment::Happened { .. } => None,
        }
    }
}

/// So many forks of forks are followed.
const DEEPEST: usize = 64;

impl History {
    /// Reads the history of a run, and with it the past that it shares.
    pub fn load(project: &Project, id: &RunId) -> Result<Self, Error> {
        let run = flow_run(project, id)?;
        let mut moments = moments_of(project, id)?;
        let mut forked_from = run.forked_from;
        for _ in 0..DEEPEST {
            let Some(checkpoint) = forked_from else { break };
            let (before, mut shared) = shared_past(project, &checkpoint)?;
            shared.append(&mut moments);
            moments = shared;
            forked_from = before.forked_from;
        }
        Ok(Self { run, moments })
    }
}

/// Finds a run that is a flow.
pub(super) fn flow_run(project: &Project, id: &RunId) -> Result<Run, Error> {
    let run = project.store().run(id)?.ok_or_else(|| Error::NoRun { run: id.clone() })?;
    match run.kind {
        RunKind::Flow => Ok(run),
        kind => Err(Error::NotAFlow { run: id.clone(), kind }),
    }
}

/// The run that a checkpoint belongs to, and what happened there up to it.
fn shared_past(project: &Project, checkpoint: &CheckpointId) -> Result<(Run, Vec<Moment>), Error> {
    let (id, seq) = match project.store().checkpoint(checkpoint)? {
        Some(Found::Live(found)) => (found.run, found.seq),
        Some(Found::Pruned(stub)) => (stub.run, stub.seq),
        None => return Err(crate::project::Error::NotFound { name: checkpoint.to_string() }.into()),
    };
    let mut moments = moments_of(project, &id)?;
    let later = |moment: &Moment| moment.seq().is_some_and(|other| other > seq);
    let it = |moment: &Moment| moment.seq() == Some(seq);
    let end = moments.iter().position(it).map(|at| at + 1).or_else(|| moments.iter().position(later));
    let end = end.unwrap_or(moments.len());
    moments.truncate(end);
    Ok((flow_run(project, &id)?, moments))
}

fn moments_of(project: &Project, id: &RunId) -> Result<Vec<Moment>, Error> {
    let listed = project.store().list(&Query { run: Some(id.clone()), ..Query::default() })?;
    let (mut moments, _) = happened_to(project, id)?;
    // A collection that was cut off told of what is still there.
    let live: HashSet<CheckpointId> = listed.iter().map(|one| one.checkpoint.id).collect();
    moments.retain(|moment| !matches!(moment, Moment::Gone { gone, .. } if live.contains(&gone.checkpoint)));
    let listed = listed.into_iter().rev();
    moments.extend(listed.map(|Listed { position, checkpoint }| Moment::Checkpoint { position, checkpoint }));
    moments.sort_by_key(Moment::position);
    Ok(moments)
}

/// What happened to a run beside the ends of its steps, and everything that is written of that.
pub(super) fn happened_to(project: &Project, id: &RunId) -> Result<(Vec<Moment>, Vec<Value>), Error> {
    let query = EventQuery { topic: Topic::Run, key: Some(id.to_string()), last: None };
    let (mut moments, mut bodies, mut told) = (Vec::new(), Vec::new(), HashSet::new());
    for (position, event) in project.store().events(&query)? {
        let gone = GoneStep::read(&event.body).into_iter();
        let gone = gone.filter(|gone| told.insert((gone.checkpoint, gone.position)));
        moments.extend(gone.map(|gone| Moment::Gone { run: id.clone(), gone }));
        // What another version of the program wrote is not ours to read.
        if let Ok(happened) = Happened::deserialize(&event.body) {
            moments.push(Moment::Happened { position, at: event.at, happened });
        }
        bodies.push(event.body);
    }
    moments.sort_by_key(Moment::position);
    Ok((moments, bodies))
}
