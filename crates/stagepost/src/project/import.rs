//! Taking in what other systems kept: decided first, done second, and never twice.
//!
//! Source files are only read. What is broken is taken in and flagged. Every original is kept as an artifact.

mod maestro;
mod plans;
mod runs;
mod tasks;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::branch::Tag;
use super::save::media_of;
use super::{Error, Files, Project};
use crate::bounded;
use crate::formats::Format;
use crate::formats::runs::MOST_BYTES;
use crate::lock::Lock;
use crate::model::{
    Artifact, ArtifactName, Checkpoint, CheckpointId, Content, Draft, Event, Imported, Kind, Mark, ObjectId,
    Parent, Run, RunId, RunKind, Timestamp, Topic, beyond_64_bits,
};
use crate::snapshot::Adopt;
use crate::store::blob::Cut;
use crate::store::{Batch, EventQuery, Expect, Found, NewEntry, Query};

/// What an import would take in. Carrying it out does exactly this.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ImportPlan {
    /// What was found, in the order of its files.
    pub items: Vec<ImportItem>,
    /// Files with lines of progress.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<ProgressFile>,
    /// Files that could not be read at all.
    pub unreadable: Vec<Unreadable>,
    #[serde(skip)]
    events: Vec<Event>,
}

/// A checkpoint that another system kept.
#[derive(Debug, Clone, Serialize)]
pub struct ImportItem {
    /// The format it is in.
    pub format: &'static str,
    /// Its id there.
    pub id: String,
    /// The run it will belong to.
    pub run: String,
    /// What it is, in words.
    pub description: String,
    /// Whether it is in the store already.
    pub known: bool,
    /// Whether it can be trusted as it is: `ok`, or what was found.
    pub integrity: String,
    /// Where its commit was found: `recorded`, `resolved-from-tag`, `resolved-from-text` or `missing`; `none` where the
    /// format knows no commits.
    pub commit: String,
    /// What else was noticed.
    pub findings: Vec<String>,
    #[serde(skip)]
    found: Candidate,
}

/// A file whose lines become notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProgressFile {
    /// The file.
    pub path: PathBuf,
    /// How many lines it has.
    pub lines: usize,
    /// How many of them are not in the store yet.
    pub new: usize,
}

/// A file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

/// Everything of a checkpoint that is needed to make it ours.
#[derive(Debug, Clone)]
struct Candidate {
    key: String,
    run: Run,
    kind: Kind,
    at: Timestamp,
    mark: Mark,
    metadata: Map<String, Value>,
    imported: Imported,
    original: Vec<u8>,
    /// Other files that it was taken from, by what to call them.
    beside: Vec<(&'static str, Vec<u8>)>,
}

/// When something was taken in, and as which checkpoint.
struct Taken {
    position: u64,
    id: Option<CheckpointId>,
}

/// The checkpoints of runs, each run read once however many items are of it.
#[derive(Default)]
struct There(HashMap<RunId, Vec<Checkpoint>>);

impl There {
    fn of(&mut self, project: &Project, run: &RunId) -> Result<&[Checkpoint], Error> {
        if !self.0.contains_key(run) {
            let query = Query { run: Some(run.clone()), ..Query::default() };
            self.0.insert(run.clone(), project.log(&query)?);
        }
        Ok(&self.0[run])
    }
}

impl ImportItem {
    fn new(format: Format, description: String, found: Candidate) -> Self {
        let Imported { id, integrity, commit, findings, .. } = found.imported.clone();
        let run = found.run.id.to_string();
        Self {
            format: format.as_str(),
            id,
            run,
            description,
            known: false,
            integrity,
            commit,
            findings,
            found,
        }
    }
}

/// Where a commit was found, and what to say about it.
struct Resolved {
    commit: Option<ObjectId>,
    how: &'static str,
}

impl Project {
    /// Decides what an import of a file or folder would take in. Without a format, each file is looked at.
    pub fn plan_import(&self, path: &Path, format: Option<Format>) -> Result<ImportPlan, Error> {
        let mut plan = ImportPlan::default();
        let wanted = |one: Format| format.is_none_or(|format| format == one);
        let tags = self.user_git().and_then(|git| git.tags("checkpoint-")).unwrap_or_default();
        if wanted(Format::Maestro) {
            for file in maestro::logs(path, format.is_some()) {
                self.plan_log(&file, &tags, &mut plan)?;
            }
        }
        if wanted(Format::Tasks) {
            self.plan_tasks(path, format.is_some(), &tags, &mut plan)?;
            self.plan_progress(path, &mut plan)?;
        }
        if wanted(Format::Runs) {
            self.plan_runs(path, format.is_some(), &mut plan)?;
        }
        if wanted(Format::Plans) {
            self.plan_plans(path, format.is_some(), &mut plan)?;
        }
        if plan.items.is_empty() && plan.progress.is_empty() && plan.unreadable.is_empty() {
            return Err(Error::NothingToImport { path: path.to_owned() });
        }
        self.recognise(&mut plan)?;
        Ok(plan)
    }

    /// Finds out what is in the store already.
    fn recognise(&self, plan: &mut ImportPlan) -> Result<(), Error> {
        let (imported, mut there) = (self.imported()?, There::default());
        for item in &mut plan.items {
            item.known = self.is_known(item, &imported, &mut there)?;
        }
        plan.events.retain(|event| !imported.contains_key(&event.key));
        Ok(())
    }

    /// Everything that was ever taken in, by its key.
    fn imported(&self) -> Result<HashMap<String, Taken>, Error> {
        let events = self.store.events(&EventQuery::all(Topic::Import))?.into_iter();
        let taken = |(position, event): (u64, Event)| {
            let id = event.body["checkpoint"].as_str().and_then(|id| id.parse().ok());
            (event.key, Taken { position, id })
        };
        Ok(events.map(taken).collect())
    }

    fn is_known(
        &self,
        item: &ImportItem,
        imported: &HashMap<String, Taken>,
        there: &mut There,
    ) -> Result<bool, Error> {
        let own = item.id.parse::<CheckpointId>().ok();
        let own = own.map(|id| self.store.checkpoint(&id)).transpose()?.flatten().is_some();
        if own || self.is_own_stage(&item.found, there)? || self.is_own_plan(&item.found, there)? {
            return Ok(true);
        }
        match imported.get(&item.found.key) {
            Some(taken) => self.is_still_there(&item.found, taken),
            None => Ok(false),
        }
    }

    /// What was deleted does not come back by itself. Only iterations of plans are archived and pruned, so that they
    /// can be taken in again.
    fn is_still_there(&self, found: &Candidate, taken: &Taken) -> Result<bool, Error> {
        let Some(id) = taken.id.filter(|_| found.run.kind == RunKind::Plan) else { return Ok(true) };
        Ok(matches!(self.store.checkpoint(&id)?, Some(Found::Live(_))))
    }

    /// Takes in what a plan lists and is not in the store yet; returns how many checkpoints are new.
    pub fn apply_import(&self, plan: &ImportPlan) -> Result<usize, Error> {
        // Names come from elsewhere: another import of the same ones must not take ours for left over, or we its own.
        let _lock = Lock::take(&self.place.store.join("import.lock"), self.settings.busy_timeout)?;
        let (imported, mut there) = (self.imported()?, There::default());
        let mut new = Vec::new();
        for item in plan.items.iter().filter(|item| !item.known) {
            if !self.is_known(item, &imported, &mut there)? {
                new.push(item);
            }
        }
        let _held = self.store.hold()?;
        let (mut batch, mut adopted) = (Batch::default(), Vec::new());
        for item in &new {
            let before = imported.get(&item.found.key).map_or(0, |taken| taken.position);
            batch.expect.push(Expect::LatestEvent(Topic::Import, item.found.key.clone(), before));
            let taken = self.take(item, &mut batch, &mut adopted);
            if let Err(error) = taken {
                let _ = self.snapshots().map(|snapshots| snapshots.release(&adopted));
                return Err(error);
            }
        }
        let events = plan.events.iter().filter(|event| !imported.contains_key(&event.key));
        batch.entries.extend(events.cloned().map(NewEntry::Event));
        if batch.entries.is_empty() {
            return Ok(0);
        }
        if let Err(error) = self.store.write(batch) {
            // Nothing refers to the snapshots; if letting them go fails too, gc will find them.
            adopted.retain(|id| self.is_surely_missing(id));
            let _ = self.snapshots().map(|snapshots| snapshots.release(&adopted));
            return Err(error.into());
        }
        Ok(new.len())
    }

    /// The snapshot of a checkpoint whose import was cut off before its record. Such ids come from elsewhere, so the next
    /// import meets it again.
    fn left_by_an_import(&self, id: &CheckpointId) -> Result<Option<ObjectId>, Error> {
        if self.store.checkpoint(id)?.is_some() {
            return Ok(None);
        }
        let snapshots = self.snapshots()?;
        Ok(snapshots.user_ref(&snapshots.ref_name(id))?)
    }

    fn take(
        &self,
        item: &ImportItem,
        batch: &mut Batch,
        adopted: &mut Vec<CheckpointId>,
    ) -> Result<(), Error> {
        let found = &item.found;
        let id = match item.id.parse::<CheckpointId>() {
            Ok(id) if !adopted.contains(&id) => id,
            _ => self.context.ids.checkpoint(self.context.clock.now()),
        };
        let mut content = Content::new(found.kind.clone());
        content.description = item.description.clone();
        content.metadata = found.metadata.clone();
        found.mark.put(&mut content.metadata);
        found.imported.put(&mut content.metadata);
        content.artifacts = self.keep_originals(found, batch)?;
        if let Some(commit) = found.mark.commit.clone()
            && self.snapshots()?.shares_objects()
        {
            let replaces = self.left_by_an_import(&id)?;
            let adopt = Adopt { head: commit, branch: None, tree: None, total: None, replaces };
            let options = self.capture_options(&Files::default(), &item.description, found.at);
            content.snapshot = Some(self.snapshots()?.adopt(&id, &adopt, &options)?);
        }
        adopted.push(id);
        let run = found.run.id.clone();
        let body = json!({"checkpoint": id, "who": self.context.who});
        let at = self.context.clock.now();
        batch.entries.extend([
            NewEntry::Run(found.run.clone()),
            NewEntry::Checkpoint(Draft { id, run, parent: Parent::Head, created_at: found.at, content }),
            NewEntry::Event(Event { topic: Topic::Import, key: found.key.clone(), at, body }),
        ]);
        Ok(())
    }

    /// The run that something calls itself by, if a run of ours does not need that name.
    fn named_run(&self, name: &str) -> Result<RunId, Error> {
        let id = RunId::new(name)?;
        match id.check_new() {
            Err(fault) if self.store.run(&id)?.is_none_or(|run| run.kind == RunKind::Adhoc) => {
                Err(fault.into())
            }
            _ => Ok(id),
        }
    }

    fn keep_originals(&self, found: &Candidate, batch: &mut Batch) -> Result<Vec<Artifact>, Error> {
        let beside = found.beside.iter().map(|(name, bytes)| (*name, bytes));
        let mut artifacts = Vec::new();
        for (name, bytes) in [("original", &found.original)].into_iter().chain(beside) {
            // What is broken, or JSON to its writer only, is not said to be JSON.
            let media = media_of(bytes, true);
            let cut = if media.is_json() { Cut::Json } else { Cut::Content };
            let payload = self.store.prepare(bytes.clone(), cut, None);
            let (name, blob) = (ArtifactName::new(name)?, payload.blob());
            artifacts.push(Artifact { name, media, blob });
            batch.payloads.push(payload);
        }
        Ok(artifacts)
    }

    /// Looks for a commit: as it was recorded, then where the tag points, then in the text.
    fn resolve_commit(
        &self,
        recorded: &str,
        text: Option<&str>,
        tag: Option<&Tag>,
    ) -> Result<Resolved, Error> {
        let git = self.user_git().ok();
        let find = |name: &str| -> Result<Option<ObjectId>, Error> {
            match &git {
                Some(git) => Ok(git.find_commit(name)?),
                None => Ok(None),
            }
        };
        let is_name = (7..=64).contains(&recorded.len()) && recorded.bytes().all(|b| b.is_ascii_hexdigit());
        if is_name && tag.is_some_and(|tag| tag.commit.as_str() == recorded) {
            return Ok(Resolved { commit: tag.map(|tag| tag.commit.clone()), how: "recorded" });
        }
        if let Some(commit) = if is_name { find(recorded)? } else { None } {
            return Ok(Resolved { commit: Some(commit), how: "recorded" });
        }
        if let Some(tag) = tag {
            return Ok(Resolved { commit: Some(tag.commit.clone()), how: "resolved-from-tag" });
        }
        if let Some(commit) = text.map(find).transpose()?.flatten() {
            return Ok(Resolved { commit: Some(commit), how: "resolved-from-text" });
        }
        Ok(Resolved { commit: None, how: "missing" })
    }
}

/// What the way a commit was found says about the record.
fn integrity(how: &str) -> String {
    match how {
        "recorded" => "ok",
        "missing" => "unverifiable",
        _ => "mismatch(commit)",
    }
    .to_owned()
}

/// Tells of numbers that are exact in the file, which is kept, and rounded in the record of an entry and so in an export.
fn tell_of_rounding(file: &[u8], entry: &Value, findings: &mut Vec<String>) {
    if has_large(entry) && beyond_64_bits(file).is_some() {
        findings.push("a whole number of more than 64 bits is rounded, but in its source".to_owned());
    }
}

fn has_large(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            number.is_f64() && number.as_f64().is_some_and(|real| real.abs() >= 2f64.powi(63))
        }
        Value::Array(items) => items.iter().any(has_large),
        Value::Object(members) => members.values().any(has_large),
        _ => false,
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    bounded::read(bounded::open(path)?, MOST_BYTES)
}

fn read(path: &Path, plan: &mut ImportPlan) -> Option<Vec<u8>> {
    match read_file(path) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            plan.unreadable.push(Unreadable { path: path.to_owned(), why: error.to_string() });
            None
        }
    }
}
