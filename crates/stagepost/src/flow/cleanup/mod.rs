//! Giving up runs that failed long ago: decided first, done second, and told in a report.
//!
//! A run that is driven is known by its lock, never by a word in a file. Of a deleted run stubs and events stay, so that
//! the journal still verifies; its payloads, snapshots, files and side files go.

mod report;

use std::collections::HashSet;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::flows::end_left_over;
use super::history::happened_to;
use super::hold::{self, Hold};
use super::{Error, RunState, Status, attempts, is_driven, view};
use crate::formats::runs;
use crate::model::{CheckpointId, Event, RunId, RunKind, Timestamp, Topic};
use crate::project::{GcPlan, Project, View, size_of};
use crate::retention;
use crate::store::{Batch, Found, NewEntry, Query};

pub use report::Report;

/// What is given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Runs that ended badly, or that nobody drives, go when nothing happened to them for longer than this.
    pub max_age: Duration,
    /// Only this run is looked at.
    pub only: Option<RunId>,
}

impl Default for Policy {
    fn default() -> Self {
        Self { max_age: Duration::from_secs(7 * 86_400), only: None }
    }
}

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The run.
    pub run: RunId,
    /// How it stands.
    pub status: Status,
    /// When anything last happened to it.
    pub changed_at: Timestamp,
    /// How many bytes its payloads and files have.
    pub bytes: u64,
    /// Why it must stay whatever the policy says.
    pub protected: Option<Reason>,
}

/// Why a run stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// Somebody drives it.
    Running,
    /// It waits for a person.
    Waiting,
    /// It is complete.
    Completed,
    /// Something happened to it not long ago.
    Recent,
    /// Another run shares its past.
    Forked,
    /// Someone pinned or labelled a checkpoint of it.
    Pinned,
}

impl Reason {
    /// Says it in words.
    pub fn describe(self) -> &'static str {
        match self {
            Reason::Running => "somebody drives it",
            Reason::Waiting => "it waits for a person",
            Reason::Completed => "it is complete",
            Reason::Recent => "it is not old enough",
            Reason::Forked => "another run shares its past",
            Reason::Pinned => "a checkpoint of it is pinned or labelled",
        }
    }
}

/// A run that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// The run.
    pub run: RunId,
    /// How it stands.
    pub status: Status,
    /// How many whole days nothing happened to it.
    pub age_days: u64,
    /// How many bytes its payloads and files have.
    pub bytes: u64,
    /// When anything last happened to it.
    pub changed_at: Timestamp,
}

/// What a cleanup will do. Carrying it out does exactly this.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The runs that go, oldest first.
    pub delete: Vec<Seen>,
    /// The runs that stay, and why.
    pub keep: Vec<(Seen, Reason)>,
}

/// What a cleanup did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cleaned {
    /// The runs that are gone.
    pub deleted: Vec<Seen>,
    /// The runs that stayed, and why: also those that somebody began to drive meanwhile.
    pub kept: Vec<(Seen, Reason)>,
    /// Bytes by which the store and the files became smaller.
    pub bytes: u64,
}

impl Policy {
    /// Decides which runs go.
    pub fn plan(&self, facts: &[Fact], now: Timestamp) -> Plan {
        let mut plan = Plan::default();
        let mut facts: Vec<&Fact> = facts.iter().collect();
        facts.sort_by(|a, b| (a.changed_at, &a.run).cmp(&(b.changed_at, &b.run)));
        for fact in facts {
            let age = fact.changed_at.until(now);
            let Fact { run, status, bytes, changed_at, .. } = fact.clone();
            let seen = Seen { run, status, age_days: age.as_secs() / 86_400, bytes, changed_at };
            match self.stays(fact, age) {
                Some(reason) => plan.keep.push((seen, reason)),
                None => plan.delete.push(seen),
            }
        }
        plan
    }

    fn stays(&self, fact: &Fact, age: Duration) -> Option<Reason> {
        match fact.status {
            Status::Running => Some(Reason::Running),
            Status::Waiting => Some(Reason::Waiting),
            Status::Completed => Some(Reason::Completed),
            Status::Failed | Status::Declined | Status::Cancelled | Status::Interrupted => {
                fact.protected.or_else(|| (age <= self.max_age).then_some(Reason::Recent))
            }
        }
    }
}

/// How long what a killed run left has, once asked to stop, before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// Decides what a cleanup would do.
pub fn plan(project: &Project, policy: &Policy) -> Result<Plan, Error> {
    Ok(policy.plan(&facts(project, policy)?, project.context().clock.now()))
}

/// Carries a plan out. A run that somebody drives by now stays.
pub fn apply(project: &Project, plan: &Plan) -> Result<Cleaned, Error> {
    let mut cleaned = Cleaned { kept: plan.keep.clone(), ..Cleaned::default() };
    for seen in &plan.delete {
        match Hold::take(project, &seen.run) {
            // Somebody may have gone on with it since it was looked at.
            Ok(_) if RunState::load(project, &seen.run)?.changed_at != seen.changed_at => {
                cleaned.kept.push((seen.clone(), Reason::Recent));
            }
            Ok(hold) => {
                // Who drove it may have been killed; without the record nobody could end what it left.
                end_left_over(project, &seen.run, &attempts::read(hold.folder()), GRACE)?;
                cleaned.bytes += delete(project, &seen.run)?;
                hold.tidy();
                cleaned.deleted.push(seen.clone());
            }
            Err(Error::Held { .. }) => cleaned.kept.push((seen.clone(), Reason::Running)),
            Err(error) => return Err(error),
        }
    }
    if !cleaned.deleted.is_empty() {
        let nothing_more = GcPlan { plan: retention::Plan::default() };
        cleaned.bytes += project.apply_gc(&nothing_more)?.collected.bytes;
    }
    Ok(cleaned)
}

/// Writes the report where the format has it, and says where that is.
pub fn write_report(project: &Project, report: &Report) -> Result<std::path::PathBuf, Error> {
    let view = View { path: runs::REPORT.to_owned(), bytes: report.markdown().into_bytes() };
    project.write_views(|| Ok::<_, Error>(vec![view]))?;
    Ok(project.place().root.join(runs::REPORT))
}

/// Gives up a run and returns how many bytes its files had; those of its payloads come back with a collection.
fn delete(project: &Project, run: &RunId) -> Result<u64, Error> {
    let files = size_of(&project.place().root.join(runs::path(run.as_str(), "")));
    let log = project.log(&Query { run: Some(run.clone()), ..Query::default() })?;
    let ids: Vec<CheckpointId> = log.iter().map(|checkpoint| checkpoint.id).collect();
    // First the word, then the deed: a run that is cut off in between is not looked at as if it could be resumed.
    let body = json!({"type": DELETED, "who": project.context().who});
    let at = project.context().clock.now();
    let event = Event { topic: Topic::Run, key: run.to_string(), at, body };
    project.store().write(Batch { entries: vec![NewEntry::Event(event)], ..Batch::default() })?;
    project.forget(&ids)?;
    view::remove(project, run);
    let left = size_of(&project.place().root.join(runs::path(run.as_str(), "")));
    Ok(files.saturating_sub(left))
}

/// The event of a run that was deleted.
const DELETED: &str = "deleted";

/// Says whether a run was deleted, and nobody began it again.
pub fn is_deleted(project: &Project, run: &RunId) -> Result<bool, Error> {
    Ok(is_deleted_in(happened_to(project, run)?.1.iter()))
}

/// Says whether a run was deleted, and nobody drives it.
pub(super) fn is_gone(project: &Project, run: &RunId) -> Result<bool, Error> {
    Ok(is_deleted(project, run)? && !is_driven(project, run))
}

/// Says whether what happened to a run ends with its being deleted.
pub(super) fn is_deleted_in<'b>(bodies: impl DoubleEndedIterator<Item = &'b Value>) -> bool {
    let last = bodies.rev().find(|body| body["type"] == DELETED || body["type"] == "began");
    last.is_some_and(|body| body["type"] == DELETED)
}

fn facts(project: &Project, policy: &Policy) -> Result<Vec<Fact>, Error> {
    let flows: Vec<_> = project.runs()?.into_iter().filter(|run| run.kind == RunKind::Flow).collect();
    let mut shared: HashSet<RunId> = HashSet::new();
    for (run, from) in flows.iter().filter_map(|run| Some((run, run.forked_from?))) {
        if is_gone(project, &run.id)? {
            continue;
        }
        shared.extend(project.store().checkpoint(&from)?.map(|found| match found {
            Found::Live(checkpoint) => checkpoint.run,
            Found::Pruned(stub) => stub.run,
        }));
    }
    let pinned = project.pinned()?;
    let mut facts = Vec::new();
    for run in flows.iter().filter(|run| policy.only.as_ref().is_none_or(|only| *only == run.id)) {
        if is_gone(project, &run.id)? {
            continue;
        }
        let state = RunState::load(project, &run.id)?;
        let log = project.log(&Query { run: Some(run.id.clone()), ..Query::default() })?;
        let is_kept = log.iter().any(|one| pinned.contains(&one.id) || !one.content.labels.is_empty());
        let protected = match (shared.contains(&run.id), is_kept) {
            (true, _) => Some(Reason::Forked),
            (_, true) => Some(Reason::Pinned),
            _ => None,
        };
        let files = size_of(&project.place().root.join(runs::path(run.id.as_str(), "")))
            + size_of(&hold::folder(project, &run.id));
        let payloads: u64 = log.iter().flat_map(|one| &one.content.artifacts).map(|one| one.blob.size).sum();
        facts.push(Fact {
            run: run.id.clone(),
            status: state.status,
            changed_at: state.changed_at,
            bytes: files + payloads,
            protected,
        });
    }
    Ok(facts)
}
