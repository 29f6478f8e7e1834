//! A session in the files of the system whose design it follows, and what is derived for them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::events::Happened;
use super::{Error, Session, Status};
use crate::formats::maestro::{self, Entry, History, Log, Operation, Statistics, Summary};
use crate::formats::{pretty, zoned};
use crate::model::{Checkpoint, Kind, Phase, Progress, Reason, Rollback, Timestamp};
use crate::project::{Project, View, export_file};
use crate::store::Query;

/// Everything of a session, from which all its files are derived.
pub(super) struct Whole {
    /// Oldest first.
    pub(super) checkpoints: Vec<Checkpoint>,
    pub(super) rollbacks: Vec<Rollback>,
    counts: HashMap<String, u64>,
    status: Option<(Timestamp, Status)>,
    created: u64,
}

impl Session<'_> {
    pub(super) fn whole(&self) -> Result<Whole, Error> {
        let query = Query { run: Some(self.run.id.clone()), ..Query::default() };
        let mut checkpoints = self.project.log(&query)?;
        checkpoints.reverse();
        let happened = self.happened()?;
        let status = happened.iter().rev().find_map(|(at, happened)| match happened {
            Happened::Status { status } => Some((*at, *status)),
            _ => None,
        });
        let rollbacks = self.rollbacks(happened)?;
        let created = self.project.store().head(&self.run.id)?.map_or(0, |head| seq_of(&head));
        Ok(Whole { checkpoints, counts: count(&rollbacks), rollbacks, status, created })
    }

    /// Brings the session's files up to date.
    pub(super) fn publish(&self) -> Result<(), Error> {
        let published = self.project.publish(self.run.id.as_str(), || self.views());
        published.map_err(|source| Error::View { session: self.run.id.clone(), source: Box::new(source) })
    }

    fn views(&self) -> Result<Vec<View>, Error> {
        let whole = self.whole()?;
        let view = |file: &str, bytes| View { path: maestro::path(self.run.id.as_str(), file), bytes };
        Ok(vec![
            view(maestro::CHECKPOINTS, pretty(&self.log(&whole))),
            view(maestro::HISTORY, pretty(&self.rollback_log(&whole))),
            view(maestro::METADATA, pretty(&self.metadata_of(&whole))),
        ])
    }

    pub(super) fn log(&self, whole: &Whole) -> Log {
        let checkpoints = whole.entries();
        Log {
            session_id: self.run.id.to_string(),
            generated_at: zoned(self.run.created_at),
            summary: Summary::of(&checkpoints),
            checkpoints,
        }
    }

    fn rollback_log(&self, whole: &Whole) -> History {
        let session = self.run.id.as_str();
        let last = whole.rollbacks.last().map_or(self.run.created_at, |rollback| rollback.at);
        History {
            session_id: session.to_owned(),
            generated_at: zoned(self.run.created_at),
            rollback_operations: whole.rollbacks.iter().map(|one| Operation::of(session, one)).collect(),
            last_updated: zoned(last),
        }
    }

    fn metadata_of(&self, whole: &Whole) -> serde_json::Value {
        let updated = whole.updated(self.run.created_at);
        let (status, since) = whole.status();
        let ended = since.filter(|_| matches!(status, Status::Completed | Status::Failed));
        let mut statistics = whole.statistics();
        statistics.duration_seconds = self.run.created_at.until(ended.unwrap_or(updated)).as_secs();
        maestro::metadata(&self.run, status.as_str(), whole.phase(), updated, ended, statistics)
    }

    /// Returns what the session is about, where it stands, and its statistics, as `metadata.json` has them.
    pub fn metadata(&self) -> Result<serde_json::Value, Error> {
        Ok(self.metadata_of(&self.whole()?))
    }
}

impl Whole {
    pub(super) fn entries(&self) -> Vec<Entry> {
        self.checkpoints.iter().map(|one| Entry::of(one, self.rollbacks_to(one))).collect()
    }

    pub(super) fn rollbacks_to(&self, checkpoint: &Checkpoint) -> u64 {
        if self.counts.is_empty() {
            return 0;
        }
        self.counts.get(&checkpoint.id.to_string()).copied().unwrap_or(0)
    }

    fn phase(&self) -> Option<Phase> {
        self.checkpoints.iter().rev().find_map(|one| match one.content.kind {
            Kind::Phase { phase, .. } => Some(phase),
            _ => None,
        })
    }

    /// What was said last, unless the work went on after it; else what the phase tells.
    fn status(&self) -> (Status, Option<Timestamp>) {
        let latest = self.checkpoints.last().map(|one| one.created_at);
        match self.status {
            Some((at, status)) if latest.is_none_or(|latest| latest <= at) => (status, Some(at)),
            _ => (self.phase().map_or(Status::Initializing, Status::of), None),
        }
    }

    fn updated(&self, started: Timestamp) -> Timestamp {
        let checkpoint = self.checkpoints.last().map(|one| one.created_at);
        let rollback = self.rollbacks.last().map(|one| one.at);
        let status = self.status.map(|(at, _)| at);
        [checkpoint, rollback, status].into_iter().flatten().fold(started, Timestamp::max)
    }

    fn statistics(&self) -> Statistics {
        let progress = self.checkpoints.iter().rev().find_map(Progress::of).unwrap_or_default();
        Statistics {
            completed_tasks: progress.tasks_completed.unwrap_or(0),
            decisions_made: progress.decisions_made.unwrap_or(0),
            checkpoints_created: self.created,
            error_recovery_count: self.recoveries(),
            ..Statistics::default()
        }
    }

    /// Counts recoveries from errors: each rollback is one, and so is a checkpoint made for one unless it only
    /// follows such a rollback.
    fn recoveries(&self) -> u64 {
        let done = self.rollbacks.iter().filter(|one| one.success).map(|one| (one.at, true, false));
        let made = self.checkpoints.iter().map(|one| {
            let recovery = matches!(one.content.kind, Kind::Phase { reason: Reason::ErrorRecovery, .. });
            (one.created_at, false, recovery)
        });
        let mut all: Vec<_> = done.chain(made).collect();
        all.sort_by_key(|(at, ..)| *at);
        let (mut count, mut after_rollback) = (0, false);
        for (_, rollback, recovery) in all {
            count += u64::from(rollback || (recovery && !after_rollback));
            after_rollback = rollback;
        }
        count
    }
}

pub(super) fn count(rollbacks: &[Rollback]) -> HashMap<String, u64> {
    let mut counts = HashMap::new();
    for rollback in rollbacks.iter().filter(|rollback| rollback.success) {
        *counts.entry(rollback.checkpoint.clone()).or_insert(0) += 1;
    }
    counts
}

fn seq_of(found: &crate::store::Found) -> u64 {
    match found {
        crate::store::Found::Live(checkpoint) => checkpoint.seq,
        crate::store::Found::Pruned(stub) => stub.seq,
    }
}

/// Writes the files of all sessions below a folder, for the programs that made the format; says which.
pub fn export(project: &Project, folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut written = Vec::new();
    for session in Session::all(project)? {
        for view in session.views()? {
            written.push(export_file(folder, &view)?);
        }
    }
    Ok(written)
}

/// Brings up to date the files of sessions that a crash left behind; says of which.
pub fn catch_up(project: &Project) -> Result<Vec<String>, Error> {
    let mut done = Vec::new();
    for key in project.stale_views() {
        let Ok(id) = key.parse() else { continue };
        if let Ok(session) = Session::open(project, &id) {
            session.publish()?;
            done.push(key);
        }
    }
    Ok(done)
}
