//! Giving up old checkpoints of tasks: decided first, done second.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use serde::Serialize;

use super::{Checkpoint, Error, Task, view};
use crate::model::{CheckpointId, Mark, Stage, Timestamp};
use crate::project::Project;
use crate::store::Collected;

/// What is kept of each task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// So many of the newest checkpoints.
    pub per_task: usize,
    /// Only what is younger than this.
    pub max_age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { per_task: 5, max_age: Duration::from_secs(30 * 86_400) }
    }
}

/// Why a checkpoint goes. One that is both old and surplus goes once, because it is old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It is too old.
    Old,
    /// There are enough newer ones.
    Surplus,
}

/// A checkpoint that goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Removal {
    /// The task.
    pub task: u64,
    /// The stage.
    pub stage: Stage,
    /// The checkpoint.
    pub id: CheckpointId,
    /// Why it goes.
    pub why: Why,
    /// Its tag, unless a checkpoint that stays has it.
    pub tag: Option<String>,
}

/// What a cleanup will do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CleanupPlan {
    /// What goes, oldest first within each task.
    pub remove: Vec<Removal>,
    /// How many checkpoints stay.
    pub keep: usize,
}

/// What a cleanup did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// How many checkpoints went.
    pub removed: usize,
    /// What came back.
    pub collected: Collected,
}

/// Decides what a cleanup of all tasks gives up. Pinned and labelled checkpoints stay.
pub fn plan_cleanup(project: &Project, limits: &Limits) -> Result<CleanupPlan, Error> {
    let pinned = project.pinned()?;
    let now = project.context().clock.now();
    let mut plan = CleanupPlan::default();
    for task in Task::all(project)? {
        let history = task.history()?;
        let stays =
            |one: &Checkpoint| pinned.contains(&one.record().id) || !one.record().content.labels.is_empty();
        let doomed = doom(&history, limits, now, stays);
        plan.keep += history.len() - doomed.len();
        let kept: HashSet<Stage> = history
            .iter()
            .filter(|one| !doomed.iter().any(|(other, _)| other.record().id == one.record().id))
            .map(Checkpoint::stage)
            .collect();
        plan.remove.extend(doomed.into_iter().rev().map(|(one, why)| removal(one, why, &kept)));
    }
    Ok(plan)
}

/// Picks from a history, newest first, what goes.
fn doom<'a>(
    history: &'a [Checkpoint],
    limits: &Limits,
    now: Timestamp,
    stays: impl Fn(&Checkpoint) -> bool,
) -> Vec<(&'a Checkpoint, Why)> {
    let judge = |(place, one): (usize, &'a Checkpoint)| {
        let old = one.record().created_at.until(now) > limits.max_age;
        let why = match (old, place >= limits.per_task) {
            (true, _) => Why::Old,
            (false, true) => Why::Surplus,
            (false, false) => return None,
        };
        Some((one, why))
    };
    history.iter().enumerate().filter_map(judge).filter(|(one, _)| !stays(one)).collect()
}

/// The tag of a stage goes only with the last checkpoint of it: a newer one may have it now.
fn removal(one: &Checkpoint, why: Why, kept: &HashSet<Stage>) -> Removal {
    let tag = Mark::of(one.record()).tag.filter(|_| !kept.contains(&one.stage()));
    Removal { task: one.task(), stage: one.stage(), id: one.record().id, why, tag }
}

/// The tags that go: those of the plan, but not one that a checkpoint has got since the plan was made.
fn free_tags(project: &Project, plan: &CleanupPlan) -> Result<Vec<String>, Error> {
    let going: HashSet<_> = plan.remove.iter().map(|removal| removal.id).collect();
    let mut tags: BTreeSet<_> = plan.remove.iter().filter_map(|removal| removal.tag.clone()).collect();
    for one in view::current(project)?.iter().filter(|one| !going.contains(&one.record().id)) {
        if let Some(tag) = Mark::of(one.record()).tag {
            tags.remove(&tag);
        }
    }
    Ok(tags.into_iter().collect())
}

/// Carries a cleanup out: records, snapshots, tags, files and room all go.
pub fn apply_cleanup(project: &Project, plan: &CleanupPlan) -> Result<Cleaned, Error> {
    if plan.remove.is_empty() {
        return Ok(Cleaned { removed: 0, collected: Collected::default() });
    }
    let _lock = project.lock_work_tree(project.settings().busy_timeout)?;
    let outdated = project.begin_view(view::KEY)?;
    let ids: Vec<_> = plan.remove.iter().map(|removal| removal.id).collect();
    project.forget_tagged(view::KEY, &free_tags(project, plan)?, &ids)?;
    view::publish(project, outdated)?;
    Ok(Cleaned { removed: ids.len(), collected: project.store().collect()? })
}
