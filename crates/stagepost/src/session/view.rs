//! A session in the files of the system whose design it follows, and what is derived for them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::cache::{self, Entries};
use super::events::Happened;
use super::{Checkpoint, Error, Session, Status};
use crate::formats::maestro::{self, History, Operation, Statistics, Summary};
use crate::formats::{pretty, zoned};
use crate::model::{Rollback, Timestamp};
use crate::project::{Outdated, Project, View, export_file};

/// Everything of a session, from which all its files are derived.
struct Whole {
    entries: Entries,
    rollbacks: Vec<Rollback>,
    said: Option<(Timestamp, Status)>,
}

impl Session<'_> {
    fn whole(&self) -> Result<Whole, Error> {
        let happened = self.happened()?;
        let said = happened.iter().rev().find_map(|(at, happened)| match happened {
            Happened::Status { status } => Some((*at, *status)),
            _ => None,
        });
        let rollbacks = self.rollbacks(happened)?;
        Ok(Whole { entries: self.entries(&rollbacks)?, rollbacks, said })
    }

    /// Brings the session's files up to date.
    pub(super) fn publish(&self, outdated: Outdated) -> Result<(), Error> {
        let published = self.project.publish(outdated, || self.as_stored()?.views());
        published.map_err(|source| Error::View { session: self.run.id.clone(), source: Box::new(source) })
    }

    fn views(&self) -> Result<Vec<View>, Error> {
        let whole = self.whole()?;
        let view = |file: &str, bytes| View { path: maestro::path(self.run.id.as_str(), file), bytes };
        Ok(vec![
            view(maestro::CHECKPOINTS, self.log(&whole).into_bytes()),
            view(maestro::HISTORY, pretty(&self.rollback_log(&whole))),
            view(maestro::METADATA, pretty(&self.metadata_of(&whole))),
        ])
    }

    /// The log of checkpoints, put together from texts: everything around the entries is written as ever, with an
    /// empty list in their place.
    fn log(&self, whole: &Whole) -> String {
        let around = maestro::Log {
            session_id: self.run.id.to_string(),
            generated_at: zoned(self.run.created_at),
            checkpoints: Vec::new(),
            summary: whole.entries.summary(),
            extra: maestro::unknown(&self.run, maestro::CHECKPOINTS),
        };
        let around = String::from_utf8(pretty(&around)).expect("JSON is text");
        let list = cache::list(whole.entries.texts.iter(), "  ");
        // A quotation mark inside a text is escaped, so this can only be the member itself.
        around.replacen("\n  \"checkpoints\": []", &format!("\n  \"checkpoints\": {list}"), 1)
    }

    fn rollback_log(&self, whole: &Whole) -> History {
        let session = self.run.id.as_str();
        let last = whole.rollbacks.last().map_or(self.run.created_at, |rollback| rollback.at);
        History {
            session_id: session.to_owned(),
            generated_at: zoned(self.run.created_at),
            rollback_operations: whole.rollbacks.iter().map(|one| Operation::of(session, one)).collect(),
            last_updated: zoned(last),
            extra: maestro::unknown(&self.run, maestro::HISTORY),
        }
    }

    fn metadata_of(&self, whole: &Whole) -> serde_json::Value {
        let updated = whole.updated(self.run.created_at);
        let (status, since) = whole.status();
        let ended = since.filter(|_| matches!(status, Status::Completed | Status::Failed));
        let mut statistics = whole.statistics();
        statistics.duration_seconds = self.run.created_at.until(ended.unwrap_or(updated)).as_secs();
        let phase = whole.entries.sum.phase;
        maestro::metadata(&self.run, status.as_str(), phase, updated, ended, statistics)
    }

    /// Returns what the session is about, where it stands, and its statistics, as `metadata.json` has them.
    pub fn metadata(&self) -> Result<serde_json::Value, Error> {
        Ok(self.metadata_of(&self.whole()?))
    }

    /// Sums the checkpoints up.
    pub fn summary(&self) -> Result<Summary, Error> {
        Ok(self.whole()?.entries.summary())
    }

    /// Returns the checkpoints, newest first, as a JSON list in the shape of the session's files. Unlike
    /// [`list`](Self::list) it does not read every record again.
    pub fn list_json(&self) -> Result<String, Error> {
        Ok(cache::list(self.whole()?.entries.texts.iter().rev(), ""))
    }
}

impl Whole {
    /// What was said last, unless the work went on after it; else what the phase tells.
    fn status(&self) -> (Status, Option<Timestamp>) {
        let sum = &self.entries.sum;
        match self.said {
            Some((at, status)) if sum.last_at.is_none_or(|latest| latest <= at) => (status, Some(at)),
            _ => (sum.phase.map_or(Status::Initializing, Status::of), None),
        }
    }

    fn updated(&self, started: Timestamp) -> Timestamp {
        let rollback = self.rollbacks.last().map(|one| one.at);
        let said = self.said.map(|(at, _)| at);
        [self.entries.sum.last_at, rollback, said].into_iter().flatten().fold(started, Timestamp::max)
    }

    fn statistics(&self) -> Statistics {
        let progress = self.entries.sum.progress.unwrap_or_default();
        Statistics {
            completed_tasks: progress.tasks_completed.unwrap_or(0),
            decisions_made: progress.decisions_made.unwrap_or(0),
            checkpoints_created: self.entries.created(),
            error_recovery_count: self.entries.sum.recoveries,
            ..Statistics::default()
        }
    }
}

/// Counts the successful rollbacks to each checkpoint.
pub(super) fn count(rollbacks: &[Rollback]) -> HashMap<String, u64> {
    let mut counts = HashMap::new();
    for rollback in rollbacks.iter().filter(|rollback| rollback.success) {
        *counts.entry(rollback.checkpoint.clone()).or_insert(0) += 1;
    }
    counts
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

impl Session<'_> {
    /// Puts tags back that a deletion took away before it was cut off.
    fn mend_tags(&self) -> Result<(), Error> {
        self.project.mend_tags(self.run.id.as_str(), "checkpoint-", || {
            Ok(self.list()?.into_iter().map(Checkpoint::into_record).collect())
        })
    }
}

/// Brings up to date the files of sessions that a crash left behind; says of which.
pub fn catch_up(project: &Project) -> Result<Vec<String>, Error> {
    let mut done = Vec::new();
    for key in project.stale_views() {
        let Ok(id) = key.parse() else { continue };
        let Ok(session) = Session::open(project, &id) else { continue };
        session.mend_tags()?;
        if let Some(outdated) = project.take_over_view(&key) {
            session.publish(outdated)?;
            done.push(key);
        }
    }
    Ok(done)
}
