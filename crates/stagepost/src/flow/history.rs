//! Everything that is recorded of a run, in the order in which it happened.

use super::{Error, Happened};
use crate::model::{Checkpoint, CheckpointId, Run, RunId, RunKind, Timestamp, Topic};
use crate::project::Project;
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
    let is_last =
        |moment: &Moment| matches!(moment, Moment::Checkpoint { checkpoint, .. } if checkpoint.seq >= seq);
    let end = moments.iter().position(is_last).map_or(moments.len(), |at| at + 1);
    moments.truncate(end);
    Ok((flow_run(project, &id)?, moments))
}

fn moments_of(project: &Project, id: &RunId) -> Result<Vec<Moment>, Error> {
    let listed = project.store().list(&Query { run: Some(id.clone()), ..Query::default() })?;
    let query = EventQuery { topic: Topic::Run, key: Some(id.to_string()), last: None };
    let events = project.store().events(&query)?;
    let mut moments = Vec::with_capacity(listed.len() + events.len());
    moments.extend(
        listed
            .into_iter()
            .rev()
            .map(|Listed { position, checkpoint }| Moment::Checkpoint { position, checkpoint }),
    );
    // What another version of the program wrote is not ours to read.
    moments.extend(events.into_iter().filter_map(|(position, event)| {
        let happened = serde_json::from_value(event.body).ok()?;
        Some(Moment::Happened { position, at: event.at, happened })
    }));
    moments.sort_by_key(Moment::position);
    Ok(moments)
}
