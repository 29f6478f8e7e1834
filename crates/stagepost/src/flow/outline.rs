//! How a run stands in a few words, without reading what became of its steps.

use super::cleanup::is_deleted_in;
use super::history::happened_to;
use super::state::RunState;
use super::{Error, Status, hold};
use crate::model::{Run, RunKind, Timestamp};
use crate::project::Project;
use crate::store::Found;

/// How a run stands, in a few words: what a list of many runs is chosen by.
#[derive(Debug, Clone)]
pub struct Outline {
    /// The run.
    pub run: Run,
    /// How it stands.
    pub status: Status,
    /// What the flow is called that it follows; one that code drives has none.
    pub flow: Option<String>,
    /// Whether it was deleted, and nobody began it again.
    pub deleted: bool,
    happened_at: Timestamp,
}

impl Outline {
    /// Reads how a run stands from what happened to it as a whole: a few records, however many steps it has.
    pub fn load(project: &Project, run: Run) -> Result<Self, Error> {
        let driven = hold::is_driven(project, &run.id);
        let (moments, bodies) = happened_to(project, &run.id)?;
        let state = RunState::of_moments(&run, &moments, driven);
        Ok(Self {
            status: state.status,
            flow: state.definition.map(|definition| definition.name),
            deleted: is_deleted_in(bodies.iter()) && !driven,
            happened_at: state.changed_at,
            run,
        })
    }

    /// Lists the runs of flows, newest first.
    pub fn runs(project: &Project) -> Result<impl Iterator<Item = Run>, Error> {
        Ok(project.runs()?.into_iter().rev().filter(|run| run.kind == RunKind::Flow))
    }

    /// When anything last happened to it or to a step of it.
    pub fn changed_at(&self, project: &Project) -> Result<Timestamp, Error> {
        let newest = project.store().head(&self.run.id)?.and_then(Found::live);
        Ok(newest.map_or(self.happened_at, |newest| newest.created_at.max(self.happened_at)))
    }
}
