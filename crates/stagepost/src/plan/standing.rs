//! How a run stands.

use serde::Serialize;

use super::driver::is_driven;
use super::history::History;
use crate::project::Project;

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Standing {
    /// Its plan was approved.
    Success,
    /// It ended without an approved plan; the best attempt is kept.
    Incomplete,
    /// Someone drives it now.
    Running,
    /// Planner, judge or validator failed; it can be resumed.
    Failed,
    /// Whoever drove it is gone; it can be resumed.
    Interrupted,
    /// It is recorded by someone else's loop and has not ended.
    Open,
}

impl Standing {
    /// Returns the name used in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Standing::Success => "success",
            Standing::Incomplete => "incomplete",
            Standing::Running => "running",
            Standing::Failed => "failed",
            Standing::Interrupted => "interrupted",
            Standing::Open => "open",
        }
    }

    /// Finds out how a run stands. The lock of its driver tells, not a field that a crash would leave behind.
    pub fn of(project: &Project, history: &History) -> Self {
        if is_driven(project, &history.run.id) {
            return Standing::Running;
        }
        match &history.end {
            Some(end) if end.approved => Standing::Success,
            Some(_) => Standing::Incomplete,
            None if history.failed_last => Standing::Failed,
            None if history.begun.is_some() => Standing::Interrupted,
            None => Standing::Open,
        }
    }
}
