//! Finding and reading runs of workflows: their checkpoints first, then how each run stands.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{Candidate, ImportItem, ImportPlan, Unreadable, read_file};
use crate::formats::Format;
use crate::formats::runs::{self, Record, RunRecord, Shape};
use crate::model::{Event, Hash, Imported, Kind, Mark, Run, RunId, RunKind, StepStatus, Timestamp, Topic};
use crate::project::{Error, Project};
use crate::store::EventQuery;

/// What was found at a path.
#[derive(Debug, Default)]
struct Sources {
    /// Folders of one run each.
    folders: Vec<PathBuf>,
    /// Checkpoints outside of such a folder.
    files: Vec<PathBuf>,
}

/// The names of folders and files at a path: a file, the folder of a run, a folder of runs, or a project.
fn sources(path: &Path, forced: bool) -> Sources {
    let mut found = Sources::default();
    if path.is_file() {
        let name = name_of(path);
        if name == runs::RUN || name == runs::REGISTRY {
            found.folders.extend(path.parent().map(Path::to_owned));
        } else if forced || read_file(path).is_ok_and(|bytes| runs::is_one(&name, &bytes)) {
            found.files.push(path.to_owned());
        }
        return found;
    }
    let places = [path.to_owned(), path.join(runs::RUNS), path.join(runs::RUNTIME)];
    let inside = places.iter().flat_map(|place| listed(place));
    found.folders = std::iter::once(path.to_owned()).chain(inside).filter(|one| is_run(one)).collect();
    let compressed =
        [path.to_owned(), path.join(runs::COMPRESSED)].into_iter().flat_map(|place| listed(&place));
    found.files.extend(compressed.filter(|file| file.is_file() && name_of(file).ends_with(".json.gz")));
    // The folder of checkpoints itself, taken out of its run.
    let steps = listed(path).into_iter().filter(|file| file.is_file() && is_step(&name_of(file)));
    found.files.extend(steps);
    let pressure = listed(&path.join(runs::PRESSURE)).into_iter();
    found.files.extend(pressure.filter(|file| file.is_file() && name_of(file).ends_with(".json")));
    found
}

/// Says whether a file is called as the runner calls its checkpoints.
fn is_step(name: &str) -> bool {
    name.starts_with("checkpoint-step-") && name.ends_with(".json")
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What is in a folder, in the order of names.
fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn is_run(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).is_file();
    // Other systems have a `run.json` too; a registry or checkpoints beside it make sure.
    has(runs::REGISTRY)
        || checkpoints(folder).iter().any(|file| name_of(file).starts_with("checkpoint-"))
        || read_file(&folder.join(runs::RUN)).is_ok_and(|bytes| RunRecord::read(&bytes).is_ok())
}

fn checkpoints(folder: &Path) -> Vec<PathBuf> {
    let mut files = listed(&folder.join(runs::CHECKPOINTS));
    files.retain(|file| file.is_file() && name_of(file).ends_with(".json"));
    files
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    read_file(path).map_err(|error| error.to_string())
}

/// What can be read of some files, with their names and bytes, in the order in which they were made.
fn records(files: &[PathBuf], plan: &mut ImportPlan) -> Vec<(Record, String, Vec<u8>)> {
    let mut found = Vec::new();
    for file in files {
        match read(file).and_then(|bytes| Ok((Record::read(&name_of(file), &bytes)?, bytes))) {
            Ok((record, bytes)) => found.push((record, name_of(file), bytes)),
            Err(why) => plan.unreadable.push(Unreadable { path: file.clone(), why }),
        }
    }
    // Names sort by digits, not by number: step 10 would come before step 2.
    found.sort_by(|(a, ..), (b, ..)| (&a.timestamp, &a.id).cmp(&(&b.timestamp, &b.id)));
    found
}

impl Project {
    pub(super) fn plan_runs(&self, path: &Path, forced: bool, plan: &mut ImportPlan) -> Result<(), Error> {
        let sources = sources(path, forced);
        for folder in &sources.folders {
            self.plan_run(folder, plan)?;
        }
        for (record, name, bytes) in records(&sources.files, plan) {
            let run = self.run_for(&record.run, &record.workflow, None)?;
            self.plan_record(run, record, &name, bytes, plan);
        }
        Ok(())
    }

    fn plan_run(&self, folder: &Path, plan: &mut ImportPlan) -> Result<(), Error> {
        let about = self.record_of(folder, plan);
        let named = about.as_ref().map(|(record, _)| record.run.clone());
        let named = named.unwrap_or_else(|| name_of(folder));
        let own = about.as_ref().and_then(|(record, _)| record.own.clone());
        let workflow = about.as_ref().map_or("", |(record, _)| &record.workflow);
        let run = self.run_for(
            own.as_deref().unwrap_or(&named),
            workflow,
            about.as_ref().map(|(record, _)| record),
        )?;
        for (record, name, bytes) in records(&checkpoints(folder), plan) {
            self.plan_record(run.clone(), record, &name, bytes, plan);
        }
        if let Some((record, bytes)) = about {
            self.plan_standing(&run, &record, bytes, folder, plan)?;
        }
        Ok(())
    }

    fn record_of(&self, folder: &Path, plan: &mut ImportPlan) -> Option<(RunRecord, Vec<u8>)> {
        let file = folder.join(runs::RUN);
        if !file.exists() {
            return None;
        }
        match read(&file).and_then(|bytes| Ok((RunRecord::read(&bytes)?, bytes))) {
            Ok(found) => Some(found),
            Err(why) => {
                plan.unreadable.push(Unreadable { path: file, why });
                None
            }
        }
    }

    /// The run that something imported belongs to: of the same name, unless that is taken by a run of ours.
    fn run_for(&self, named: &str, workflow: &str, record: Option<&RunRecord>) -> Result<Run, Error> {
        let safe: String = named
            .chars()
            .map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' })
            .take(100)
            .collect();
        let id = self.named_run(named).or_else(|_| RunId::new(format!("run-{safe}")));
        let mut id = id.unwrap_or_else(|_| RunId::new("imported-run").expect("a run id"));
        let is_own = record.is_some_and(|record| record.own.is_some());
        let taken = self.store.run(&id)?;
        if taken.as_ref().is_some_and(|run| !is_own && (run.kind != RunKind::Flow || !is_imported(run))) {
            id = RunId::new(format!("imported-{id}"))?;
        }
        let started = record.and_then(|record| crate::formats::parse_time(&record.created_at));
        let mut run =
            Run::new(id, RunKind::Flow, started.map_or_else(|| self.context.clock.now(), |(time, _)| time));
        run.description =
            record.map(|record| record.request.clone()).filter(|text| !text.is_empty()).unwrap_or_default();
        if run.description.is_empty() {
            run.description = workflow.to_owned();
        }
        run.metadata.insert("imported".to_owned(), json!({"format": Format::Runs.as_str(), "id": named}));
        run.metadata.insert("workflow".to_owned(), workflow.into());
        Ok(run)
    }

    fn plan_record(&self, run: Run, record: Record, file: &str, original: Vec<u8>, plan: &mut ImportPlan) {
        let key = format!("runs:{}:{}", run.id, record.id);
        let is_same = |item: &&ImportItem| item.found.key == key;
        // Two layouts may hold the same run.
        if plan.items.iter().any(|item| is_same(&item)) {
            return;
        }
        let mut findings = record.findings;
        let (at, tz_assumed) = self.time_of(&record.timestamp, &mut findings);
        let kind = match record.shape {
            Shape::Pressure => Kind::State,
            _ => step_kind(&run.id, &record.step, record.step_name.as_deref(), plan),
        };
        let description = match record.shape {
            Shape::Pressure => format!("memory ran out at step {}", record.step),
            _ => format!("step {} of {}", record.step, record.workflow),
        };
        let imported = Imported {
            format: Format::Runs.to_string(),
            id: record.own.unwrap_or(record.id),
            integrity: record.integrity,
            commit: "none".to_owned(),
            tz_assumed,
            findings,
            extra: record.extra,
        };
        let metadata = Map::from_iter([("file".to_owned(), Value::from(file))]);
        let found = self.candidate(key, run, kind, at, metadata, imported, original);
        plan.items.push(ImportItem::new(Format::Runs, description, found));
    }

    #[expect(clippy::too_many_arguments, reason = "each is a member of what is made")]
    fn candidate(
        &self,
        key: String,
        run: Run,
        kind: Kind,
        at: Timestamp,
        metadata: Map<String, Value>,
        imported: Imported,
        original: Vec<u8>,
    ) -> Candidate {
        Candidate {
            key,
            run,
            kind,
            at,
            mark: Mark::default(),
            metadata,
            imported,
            original,
            beside: Vec::new(),
        }
    }

    /// How a run stands, as its record says, with the record itself. One that changed since is taken in again.
    fn plan_standing(
        &self,
        run: &Run,
        record: &RunRecord,
        original: Vec<u8>,
        folder: &Path,
        plan: &mut ImportPlan,
    ) -> Result<(), Error> {
        // A view of a run that was made here says nothing new.
        if record.own.is_some() && self.store.run(&run.id)?.is_some_and(|known| !is_imported(&known)) {
            return Ok(());
        }
        let registry = read(&folder.join(runs::REGISTRY)).ok();
        let both = [original.as_slice(), registry.as_deref().unwrap_or_default()].concat();
        let hash = Hash::of(&both).to_string();
        let key = format!("runs:{}:{}:{}", run.id, runs::RUN, &hash[..16]);
        let mut findings = Vec::new();
        let (at, tz_assumed) = self.time_of(&record.updated_at, &mut findings);
        let imported = Imported {
            format: Format::Runs.to_string(),
            id: format!("{}/{}", record.run, runs::RUN),
            integrity: "unverifiable".to_owned(),
            commit: "none".to_owned(),
            tz_assumed,
            findings,
            extra: Map::new(),
        };
        let metadata = Map::from_iter([("file".to_owned(), Value::from(runs::RUN))]);
        let mut found =
            self.candidate(key.clone(), run.clone(), Kind::State, at, metadata, imported, original);
        found.beside.extend(registry.map(|bytes| ("registry", bytes)));
        let description = format!("the record of the run, which says that it is {}", record.status);
        plan.items.push(ImportItem::new(Format::Runs, description, found));
        if self.store.events(&EventQuery::latest(Topic::Import, &key))?.is_empty() {
            plan.events.extend(self.standing_events(run, record, at));
        }
        Ok(())
    }

    /// What the history of a flow needs to tell how it stands.
    fn standing_events(&self, run: &Run, record: &RunRecord, at: Timestamp) -> Vec<Event> {
        let event = |body: Value| Event { topic: Topic::Run, key: run.id.to_string(), at, body };
        let mut events = vec![event(json!({"type": "began", "who": self.context.who}))];
        let end = match record.standing() {
            Some(runs::Status::Completed) => Some("completed"),
            Some(runs::Status::Failed) => Some("failed"),
            Some(runs::Status::Cancelled) => Some("cancelled"),
            _ => None,
        };
        events.extend(
            end.map(|status| event(json!({"type": "ended", "status": status, "why": "it was imported so"}))),
        );
        events
    }
}

/// A step that was done again gets the next number.
fn step_kind(run: &RunId, number: &str, name: Option<&str>, plan: &ImportPlan) -> Kind {
    let usable = |name: &&str| !name.is_empty() && name.len() <= 200 && !name.chars().any(char::is_control);
    let step = name.filter(usable).map_or_else(|| format!("step-{number}"), str::to_owned);
    let is_same = |item: &&ImportItem| {
        item.found.run.id == *run
            && matches!(&item.found.kind, Kind::Step { step: other, .. } if *other == step)
    };
    let before = plan.items.iter().filter(is_same).count();
    let attempt = u32::try_from(before + 1).unwrap_or(u32::MAX);
    Kind::Step { step, status: StepStatus::Completed, attempt }
}

fn is_imported(run: &Run) -> bool {
    run.metadata.get("imported").is_some_and(|from| from["format"] == Format::Runs.as_str())
}
