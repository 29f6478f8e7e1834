//! Finding and reading the logs of sessions.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{Candidate, ImportItem, ImportPlan, Unreadable, integrity, read, read_file, tell_of_rounding};
use crate::formats::maestro::{self, Entry, Operation};
use crate::formats::{Format, parse_time};
use crate::model::{Event, Imported, Kind, Mark, Phase, Reason, Run, RunId, RunKind, Timestamp, Topic};
use crate::project::branch::Tag;
use crate::project::{Error, Project};

/// Lists the logs at a path: the file itself, or those in a folder of one session, of sessions, or of a project.
pub(super) fn logs(path: &Path, forced: bool) -> Vec<PathBuf> {
    if path.is_file() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_log = forced || read_file(path).is_ok_and(|bytes| maestro::is_log(&name, &bytes));
        // A log that was cut off while it was written is still called what a log is called.
        return if is_log || name == maestro::CHECKPOINTS { vec![path.to_owned()] } else { Vec::new() };
    }
    let inside = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        entries.map(|entry| entry.path()).collect()
    };
    let mut found = vec![path.join(maestro::CHECKPOINTS)];
    found.extend(inside(path).into_iter().map(|folder| folder.join(maestro::CHECKPOINTS)));
    found.extend(inside(&path.join(maestro::SESSIONS)).into_iter().map(|one| one.join(maestro::CHECKPOINTS)));
    let older = inside(&path.join(maestro::OLDER)).into_iter();
    found.extend(older.filter(|file| file.extension().is_some_and(|extension| extension == "json")));
    found.retain(|file| file.is_file());
    found.sort();
    found.dedup();
    found
}

impl Project {
    pub(super) fn plan_log(&self, file: &Path, tags: &[Tag], plan: &mut ImportPlan) -> Result<(), Error> {
        let Some(bytes) = read(file, plan) else { return Ok(()) };
        let log: Value = match serde_json::from_slice(&bytes) {
            Ok(log) => log,
            Err(error) => {
                plan.unreadable.push(Unreadable { path: file.to_owned(), why: error.to_string() });
                return Ok(());
            }
        };
        let run = self.run_of(file, &log);
        let mut seen: Vec<String> = Vec::new();
        for (place, value) in log["checkpoints"].as_array().into_iter().flatten().enumerate() {
            let Some(entry) = Entry::read(value) else {
                let why = format!("entry {} is no object", place + 1);
                plan.unreadable.push(Unreadable { path: file.to_owned(), why });
                continue;
            };
            let mut item = self.plan_entry(&run, entry, value, tags, &bytes)?;
            // Ids made from seconds collide; the second of a kind is told apart by its number.
            let same = seen.iter().filter(|id| **id == item.id).count();
            seen.push(item.id.clone());
            if same > 0 {
                item.found.key.push_str(&format!("#{}", same + 1));
                item.findings.push("its id is not unique".to_owned());
            }
            plan.items.push(item);
        }
        for name in [maestro::HISTORY, maestro::METADATA] {
            tell_of_damage(&file.with_file_name(name), plan);
        }
        self.plan_history(file, &run, plan);
        self.plan_status(file, &run, plan);
        Ok(())
    }

    fn run_of(&self, file: &Path, log: &Value) -> Run {
        let now = self.context.clock.now();
        let folder = file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let named = log["session_id"].as_str().unwrap_or(&folder);
        let safe: String =
            named.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
        let id = self.named_run(named).or_else(|_| RunId::new(format!("session-{safe}")));
        let id = id.unwrap_or_else(|_| RunId::new("imported-session").expect("a run id"));
        let started = log["generated_at"].as_str().and_then(parse_time).map_or(now, |(time, _)| time);
        let mut run = Run::new(id, RunKind::Session, started);
        maestro::keep_unknown(&mut run, maestro::CHECKPOINTS, log);
        if let Some(history) = beside(file, maestro::HISTORY) {
            maestro::keep_unknown(&mut run, maestro::HISTORY, &history);
        }
        if let Some(about) = beside(file, maestro::METADATA) {
            run.description = about["feature_request"].as_str().unwrap_or_default().to_owned();
            for key in ["git_context", "prd_reference", "statistics"] {
                run.metadata.insert(key.to_owned(), about[key].clone());
            }
            maestro::keep_unknown(&mut run, maestro::METADATA, &about);
        }
        run
    }

    fn plan_entry(
        &self,
        run: &Run,
        entry: Entry,
        value: &Value,
        tags: &[Tag],
        source: &[u8],
    ) -> Result<ImportItem, Error> {
        let own = maestro::tag(&entry.checkpoint_id);
        let tag = tags.iter().find(|tag| tag.name == own);
        let tag = tag.or_else(|| tags.iter().find(|tag| entry.tags.contains(&tag.name)));
        let resolved = self.resolve_commit(&entry.commit_sha, entry.commit_in_text(), tag)?;
        let mut findings = Vec::new();
        let at = self.time_of(&entry.timestamp, &mut findings);
        tell_of_rounding(source, value, &mut findings);
        let kind =
            Kind::Phase { phase: phase_of(&entry, &mut findings), reason: reason_of(&entry, &mut findings) };
        let mut metadata = Map::new();
        if let Some(state) = entry.state_snapshot {
            state.progress.put(&mut metadata);
            if !state.extra.is_empty() {
                metadata.insert(maestro::STATE.to_owned(), Value::Object(state.extra));
            }
        }
        if let Some(operation) = entry.operation_context.clone() {
            metadata.insert(maestro::OPERATION.to_owned(), operation);
        }
        let imported = Imported {
            format: Format::Maestro.to_string(),
            id: entry.checkpoint_id.clone(),
            integrity: integrity(resolved.how),
            commit: resolved.how.to_owned(),
            tz_assumed: at.1,
            findings,
            extra: entry.extra,
        };
        let tag = tag.map(|tag| tag.name.clone()).or_else(|| entry.tags.first().cloned());
        if entry.tags.len() > 1 {
            metadata.insert(maestro::TAGS.to_owned(), json!(entry.tags));
        }
        let found = Candidate {
            key: format!("maestro:{}:{}", run.id, entry.checkpoint_id),
            run: run.clone(),
            kind,
            at: at.0,
            mark: Mark { commit: resolved.commit, tag, message: entry.commit_message },
            metadata,
            imported,
            original: serde_json::to_vec(value).unwrap_or_default(),
            beside: vec![("source", source.to_vec())],
        };
        Ok(ImportItem::new(Format::Maestro, entry.description, found))
    }

    /// Reads a time; one that cannot be read is flagged and becomes the time of the import.
    pub(super) fn time_of(&self, text: &str, findings: &mut Vec<String>) -> (Timestamp, bool) {
        parse_time(text).unwrap_or_else(|| {
            findings.push(format!("its time `{}` cannot be read", text.escape_debug()));
            (self.context.clock.now(), false)
        })
    }

    /// The rollbacks of a session, taken in once each.
    fn plan_history(&self, file: &Path, run: &Run, plan: &mut ImportPlan) {
        let Some(history) = beside(file, maestro::HISTORY) else { return };
        let now = self.context.clock.now();
        let operations = history["rollback_operations"].as_array().into_iter().flatten();
        for (place, operation) in operations.enumerate() {
            let Some(rollback) = Operation::read(operation, now) else {
                let (path, why) =
                    (file.with_file_name(maestro::HISTORY), format!("rollback {} has no id", place + 1));
                plan.unreadable.push(Unreadable { path, why });
                continue;
            };
            if self.knows_rollback(run, &rollback.id) {
                continue;
            }
            let body = json!({"type": "rollback_ended", "rollback": rollback});
            plan.events.push(Event { topic: Topic::Run, key: run.id.to_string(), at: rollback.at, body });
        }
    }

    /// How a session ended or was left. While it goes on, its phase tells how it stands.
    fn plan_status(&self, file: &Path, run: &Run, plan: &mut ImportPlan) {
        let Some(about) = beside(file, maestro::METADATA) else { return };
        let said = about["status"].as_str().filter(|said| ["completed", "failed", "paused"].contains(said));
        let Some(status) = said.filter(|_| !self.happened(run, |body| body["type"] == "status")) else {
            return;
        };
        let time = |key: &str| Some(parse_time(about[key].as_str()?)?.0);
        let at = time("completed_at").or_else(|| time("updated_at"));
        // Saving a checkpoint did not touch this file there: what it says holds for all of them.
        let latest =
            plan.items.iter().filter(|item| item.found.run.id == run.id).map(|item| item.found.at).max();
        let at = at.max(latest).unwrap_or_else(|| self.context.clock.now());
        let body = json!({"type": "status", "status": status});
        plan.events.push(Event { topic: Topic::Run, key: run.id.to_string(), at, body });
    }

    fn knows_rollback(&self, run: &Run, id: &str) -> bool {
        self.happened(run, |body| body["rollback"]["id"] == id)
    }

    fn happened(&self, run: &Run, what: impl Fn(&Value) -> bool) -> bool {
        let query = crate::store::EventQuery { topic: Topic::Run, key: Some(run.id.to_string()), last: None };
        self.store.events(&query).unwrap_or_default().iter().any(|(_, event)| what(&event.body))
    }
}

/// Names a file beside the log that is there and cannot be read. Several logs of an older layout share it.
fn tell_of_damage(path: &Path, plan: &mut ImportPlan) {
    let told = plan.unreadable.iter().any(|one| one.path == path);
    if told || !path.exists() {
        return;
    }
    if let Some(bytes) = read(path, plan)
        && let Err(error) = serde_json::from_slice::<Value>(&bytes)
    {
        plan.unreadable.push(Unreadable { path: path.to_owned(), why: error.to_string() });
    }
}

/// Reads another file of the same session; one that is not there or cannot be read tells nothing.
fn beside(log: &Path, name: &str) -> Option<Value> {
    serde_json::from_slice(&read_file(&log.with_file_name(name)).ok()?).ok()
}

fn phase_of(entry: &Entry, findings: &mut Vec<String>) -> Phase {
    entry.phase.parse().unwrap_or_else(|_| {
        findings.push(format!("its phase `{}` is unknown", entry.phase.escape_debug()));
        Phase::Implement
    })
}

fn reason_of(entry: &Entry, findings: &mut Vec<String>) -> Reason {
    entry.checkpoint_type.parse().unwrap_or_else(|_| {
        findings.push(format!("its type `{}` is unknown", entry.checkpoint_type.escape_debug()));
        Reason::Manual
    })
}
