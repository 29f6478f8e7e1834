//! Journeys that nobody finishes: which are on their way, and giving one up.
//!
//! Nothing of a journey that is on its way is ever collected, however long that takes: only a person can say that
//! nobody goes on with it. No age says so, for a question may well wait for months.

use super::Error;
use crate::gate::{Gate, Gates, Origin};
use crate::model::{RunId, RunKind};
use crate::project::Project;

/// A journey that has begun and is not at its end.
#[derive(Debug, Clone, PartialEq)]
pub struct OnItsWay {
    /// Its run.
    pub run: RunId,
    /// The gate it waits at; none where it stopped in the middle of work.
    pub gate: Option<Gate>,
}

/// Lists the journeys that are on their way.
pub fn on_their_way(project: &Project) -> Result<Vec<OnItsWay>, Error> {
    let waiting = Gates::of(project).waiting()?;
    let mut found = Vec::new();
    for run in project.unfinished_runs()? {
        // Plans say so of their runs too.
        let known = project.store().run(&run).map_err(crate::gate::Error::from)?;
        if known.is_none_or(|run| run.kind != RunKind::Plan) {
            let gate = waiting.iter().find(|gate| is_of(gate, &run)).cloned();
            found.push(OnItsWay { run, gate });
        }
    }
    Ok(found)
}

/// Gives a journey up: its gates that wait are cancelled, and a collection may take what it left.
///
/// What was recorded stays as it is until then.
pub fn abandon(project: &Project, run: &RunId, why: &str, origin: Origin) -> Result<Vec<Gate>, Error> {
    if !on_their_way(project)?.iter().any(|journey| journey.run == *run) {
        return Err(Error::NotOnItsWay { run: run.clone() });
    }
    let gates = Gates::of(project);
    let mut cancelled = Vec::new();
    for gate in gates.waiting()?.iter().filter(|gate| is_of(gate, run)) {
        cancelled.push(gates.cancel(&gate.id, why, origin)?);
    }
    project.finished(run)?;
    Ok(cancelled)
}

fn is_of(gate: &Gate, run: &RunId) -> bool {
    gate.of.run == *run && !gate.of.alone
}
