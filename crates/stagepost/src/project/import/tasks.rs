//! Finding and reading checkpoints of tasks: tags first, for the list may have been rolled back.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{
    Candidate, ImportItem, ImportPlan, ProgressFile, There, Unreadable, integrity, read, read_file,
    tell_of_rounding,
};
use crate::formats::tasks::{self, Entry, Note};
use crate::formats::{Format, naive};
use crate::model::{Imported, Kind, Mark, Run, RunId, RunKind, Stage, Timestamp, Topic};
use crate::project::branch::Tag;
use crate::project::{Error, Project};
use crate::store::EventQuery;

/// Finds the list at a path: the file itself, or the one in a folder.
fn list_at(path: &Path, forced: bool) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.join(tasks::LIST)).filter(|file| file.is_file());
    }
    let name = path.file_name()?.to_string_lossy();
    let is_list = || read_file(path).is_ok_and(|bytes| tasks::is_list(&name, &bytes));
    let forced = forced && name != tasks::PROGRESS;
    (path.is_file() && (forced || name == tasks::LIST || is_list())).then(|| path.to_owned())
}

/// Finds the lines of progress at a path: the file itself, or the one in a folder.
fn progress_at(path: &Path) -> Option<PathBuf> {
    let file = if path.is_dir() { path.join(tasks::PROGRESS) } else { path.to_owned() };
    let named = file.file_name().is_some_and(|name| name == tasks::PROGRESS);
    (named && file.is_file()).then_some(file)
}

impl Project {
    /// Decides which lines of progress become notes: each as it is, with the time it names, and none twice.
    pub(super) fn plan_progress(&self, path: &Path, plan: &mut ImportPlan) -> Result<(), Error> {
        let Some(file) = progress_at(path) else { return Ok(()) };
        let Some(bytes) = read(&file, plan) else { return Ok(()) };
        let text = String::from_utf8_lossy(&bytes);
        let notes = self.store.events(&EventQuery::all(Topic::Note))?;
        let new = tasks::new_lines(&text, notes.iter().flat_map(|(_, note)| tasks::lines_of(note)));
        let lines = text.lines().filter(|line| !line.is_empty()).count();
        plan.progress.push(ProgressFile { path: file, lines, new: new.len() });
        let now = self.context.clock.now();
        plan.events.extend(new.into_iter().map(|line| Note::of_line(line, now)));
        Ok(())
    }

    pub(super) fn plan_tasks(
        &self,
        path: &Path,
        forced: bool,
        tags: &[Tag],
        plan: &mut ImportPlan,
    ) -> Result<(), Error> {
        let file = list_at(path, forced);
        // Tags belong to the project; a folder elsewhere has only its list.
        let here = path.canonicalize().is_ok_and(|path| self.place.root.starts_with(path))
            || file
                .as_ref()
                .is_some_and(|file| file.canonicalize().is_ok_and(|file| file.starts_with(&self.place.root)));
        if file.is_none() && !here {
            return Ok(());
        }
        let source = file.as_deref().and_then(|file| read(file, plan));
        let values = parse(file.as_deref(), source.as_deref(), plan);
        let mut listed: Vec<(Entry, Value)> = Vec::new();
        for (place, value) in values.into_iter().enumerate() {
            let Some(entry) = Entry::read(&value) else {
                let why = format!("entry {} names no task or no stage that is known", place + 1);
                plan.unreadable.extend(file.clone().map(|path| Unreadable { path, why }));
                continue;
            };
            listed.push((entry, value));
        }
        let tags = if here { tags } else { &[] };
        for tag in tags {
            let Some((task, stage)) = tasks::parse_tag(&tag.name) else {
                plan.unreadable.extend(tasks::is_of_task(&tag.name).then(|| Unreadable {
                    path: PathBuf::from(format!("refs/tags/{}", tag.name)),
                    why: "its stage is not known".to_owned(),
                }));
                continue;
            };
            let same = listed.iter().position(|(entry, _)| entry.task_id == task && entry.stage == stage);
            let entry = same.map(|at| listed.remove(at));
            plan.items.push(self.plan_tag(tag, task, stage, entry, source.as_deref())?);
        }
        for (entry, value) in listed {
            plan.items.push(self.plan_listed(entry, &value, source.as_deref())?);
        }
        let of_tasks = |item: &ImportItem| item.format == Format::Tasks.as_str();
        plan.items.sort_by_key(|item| if of_tasks(item) { (1, item.found.at.as_micros()) } else { (0, 0) });
        Ok(())
    }

    fn plan_tag(
        &self,
        tag: &Tag,
        task: u64,
        stage: Stage,
        listed: Option<(Entry, Value)>,
        source: Option<&[u8]>,
    ) -> Result<ImportItem, Error> {
        let tagged_at = Timestamp::from_micros(tag.seconds.saturating_mul(1_000_000));
        let tagged_at = tagged_at.unwrap_or_else(|_| self.context.clock.now());
        let (entry, value) = listed.unwrap_or_else(|| {
            let entry = Entry {
                task_id: task,
                stage,
                commit_hash: String::new(),
                description: tag.message.clone(),
                timestamp: naive(tagged_at),
                metadata: Map::new(),
                extra: Map::new(),
            };
            let value = json!({"tag": tag.name, "commit": tag.commit, "message": tag.message});
            (entry, value)
        });
        let mut item = self.plan_stage(entry, &value, Some(tag), source)?;
        if item.commit == "resolved-from-tag" && value.get("tag").is_some() {
            item.findings.push("only its tag is left".to_owned());
            item.found.imported.findings = item.findings.clone();
        }
        Ok(item)
    }

    fn plan_listed(&self, entry: Entry, value: &Value, source: Option<&[u8]>) -> Result<ImportItem, Error> {
        let mut item = self.plan_stage(entry, value, None, source)?;
        item.findings.push("its tag is gone".to_owned());
        item.found.imported.findings = item.findings.clone();
        Ok(item)
    }

    fn plan_stage(
        &self,
        entry: Entry,
        value: &Value,
        tag: Option<&Tag>,
        source: Option<&[u8]>,
    ) -> Result<ImportItem, Error> {
        // Where the tag and the list disagree, the tag is right: the list may have been rolled back.
        let recorded = if tag.is_some_and(|tag| tag.commit.as_str() != entry.commit_hash) {
            ""
        } else {
            &entry.commit_hash
        };
        let resolved = self.resolve_commit(recorded, None, tag)?;
        let mut findings = Vec::new();
        let (at, tz_assumed) = self.time_of(&entry.timestamp, &mut findings);
        tell_of_rounding(source.unwrap_or_default(), value, &mut findings);
        let mut metadata = Map::new();
        if !entry.metadata.is_empty() {
            metadata.insert(tasks::GIVEN.to_owned(), Value::Object(entry.metadata));
        }
        let id = format!("t{}-{}", entry.task_id, entry.stage);
        let commit = resolved.commit.as_ref().map_or(entry.timestamp.as_str(), |commit| commit.as_str());
        let run = RunId::new(format!("task-{}", entry.task_id))?;
        let found = Candidate {
            key: format!("tasks:{id}:{commit}"),
            run: Run::new(run, RunKind::Task, at),
            kind: Kind::Stage { task: entry.task_id, stage: entry.stage },
            at,
            metadata,
            imported: Imported {
                format: Format::Tasks.to_string(),
                id,
                integrity: integrity(resolved.how),
                commit: resolved.how.to_owned(),
                tz_assumed,
                findings,
                extra: entry.extra,
            },
            mark: Mark { commit: resolved.commit, tag: tag.map(|tag| tag.name.clone()), message: None },
            original: serde_json::to_vec(value).unwrap_or_default(),
            beside: source.map(|bytes| ("source", bytes.to_vec())).into_iter().collect(),
        };
        Ok(ImportItem::new(Format::Tasks, entry.description, found))
    }

    /// Says whether a stage with this commit was saved here: its files are views of our own.
    pub(super) fn is_own_stage(&self, found: &Candidate, there: &mut There) -> Result<bool, Error> {
        let Kind::Stage { stage, .. } = found.kind else { return Ok(false) };
        let same = |one: &crate::model::Checkpoint| {
            matches!(one.content.kind, Kind::Stage { stage: other, .. } if other == stage)
                && Mark::of(one).commit == found.mark.commit
        };
        Ok(there.of(self, &found.run.id)?.iter().any(same))
    }
}

fn parse(file: Option<&Path>, source: Option<&[u8]>, plan: &mut ImportPlan) -> Vec<Value> {
    let (Some(file), Some(source)) = (file, source) else { return Vec::new() };
    match serde_json::from_slice(source) {
        Ok(values) => values,
        Err(error) => {
            plan.unreadable.push(Unreadable { path: file.to_owned(), why: error.to_string() });
            Vec::new()
        }
    }
}
