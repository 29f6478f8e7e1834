//! Finding and reading checkpoints of plans: three generations of payloads, in two layouts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::{Map, Value, json};

use super::{Candidate, ImportItem, ImportPlan, There, read, read_file};
use crate::formats::Format;
use crate::formats::plans::{self, Meta, Name};
use crate::model::{Hash, Imported, Kind, Mark, Run, RunId, RunKind, Timestamp};
use crate::project::{Error, Project};

/// How deep below a folder the files may be.
const DEEPEST: usize = 6;

/// A file that could be a checkpoint of a plan.
struct Found {
    path: PathBuf,
    /// What it is called, there or in its neighbour `meta.json`.
    name: Name,
    at: Timestamp,
    bytes: Vec<u8>,
    value: Option<Value>,
}

impl Project {
    pub(super) fn plan_plans(&self, path: &Path, forced: bool, plan: &mut ImportPlan) -> Result<(), Error> {
        let mut found = Vec::new();
        for file in files(path, forced) {
            // The views of our own runs are no news.
            if file.canonicalize().is_ok_and(|file| self.is_view(&file)) {
                continue;
            }
            found.extend(self.read_checkpoint(&file, plan));
        }
        found.sort_by_cached_key(order);
        for one in &found {
            plan.items.push(self.plan_checkpoint(one, &found)?);
        }
        Ok(())
    }

    fn read_checkpoint(&self, file: &Path, plan: &mut ImportPlan) -> Option<Found> {
        let bytes = read(file, plan)?;
        let named = file.file_name().and_then(|name| Name::read(&name.to_string_lossy()));
        let meta = || Meta::read(&read_file(&file.with_file_name("meta.json")).ok()?);
        let (name, at) = match named {
            Some(name) => (name, None),
            None => meta().and_then(|meta| Some((meta.name()?, meta.created_at)))?,
        };
        let value = plans::read(&bytes).ok();
        let at = at.and_then(seconds).or_else(|| modified(file)).unwrap_or_else(|| self.context.clock.now());
        Some(Found { path: file.to_owned(), name: stated(name, value.as_ref()), at, bytes, value })
    }

    fn plan_checkpoint(&self, one: &Found, all: &[Found]) -> Result<ImportItem, Error> {
        let run = run_of(one, all)?;
        let Name { project, iteration, part, .. } = &one.name;
        let iteration = iteration.unwrap_or(0);
        let mut findings = Vec::new();
        if run_named(&one.name).is_none() {
            findings.push("it names no run".to_owned());
        }
        let integrity = match &one.value {
            Some(Value::Object(_)) => "ok",
            Some(_) => "mismatch(object)",
            None => "mismatch(json)",
        };
        let file = one.path.file_name().unwrap_or_default().to_string_lossy();
        let id = if Name::read(&file).is_some() { file.into_owned() } else { meta_id(one) };
        let found = Candidate {
            key: format!("plans:{project}:{}:{iteration}:{part}:{}", run.id, Hash::of(&one.bytes)),
            run,
            kind: Kind::Iteration { iteration, part: part.clone() },
            at: one.at,
            mark: Mark::default(),
            metadata: Map::new(),
            imported: Imported {
                format: Format::Plans.to_string(),
                id,
                integrity: integrity.to_owned(),
                commit: "none".to_owned(),
                findings,
                ..Imported::default()
            },
            original: one.bytes.clone(),
            beside: Vec::new(),
        };
        let description = if iteration > 0 {
            format!("{project} iteration {iteration} {part}")
        } else {
            format!("{project} {part}")
        };
        Ok(ImportItem::new(Format::Plans, description, found))
    }

    /// Says whether a checkpoint is of a run that was made here: then its file is a view of ours, or a copy of one. An
    /// iteration that was pruned is not there any more.
    pub(super) fn is_own_plan(&self, found: &Candidate, there: &mut There) -> Result<bool, Error> {
        if found.run.kind != RunKind::Plan {
            return Ok(false);
        }
        let known = self.store.run(&found.run.id)?;
        if known.is_none_or(|run| run.metadata.contains_key(IMPORTED)) {
            return Ok(false);
        }
        // What belongs to the whole run is never pruned alone.
        if matches!(found.kind, Kind::Iteration { iteration: 0, .. }) {
            return Ok(true);
        }
        Ok(there.of(self, &found.run.id)?.iter().any(|one| one.content.kind == found.kind))
    }
}

/// The member of a run's metadata that says it was made elsewhere.
const IMPORTED: &str = "imported";

/// The JSON knows better than the name which run and iteration it is of.
fn stated(name: Name, value: Option<&Value>) -> Name {
    let Some((run, iteration, part)) = value.map(plans::stated) else { return name };
    if name.iteration.is_none() || part.is_none() {
        return name;
    }
    let iteration = iteration.and_then(|number| u32::try_from(number).ok()).or(name.iteration);
    let run = match (run, value.map(|value| &value["run_id"])) {
        (Some(run), _) => Some(run.to_owned()),
        (None, Some(Value::Null)) => None,
        _ => name.run.clone(),
    };
    // A project that ends like a run, and no run: the name was read one word too far.
    let project = match (&name.run, &run) {
        (Some(end), None) => format!("{}_{end}", name.project),
        _ => name.project.clone(),
    };
    Name { project, run, iteration, part: name.part }
}

fn run_named(name: &Name) -> Option<RunId> {
    RunId::new(name.run.as_deref()?).ok().filter(|id| id.check_new().is_ok())
}

/// The run of a file: as it says; else the newest of its project there, for what has no run in its name belongs to that
/// one; else one of its own, always the same for the same project.
fn run_of(one: &Found, all: &[Found]) -> Result<Run, Error> {
    let same = |other: &&Found| other.name.project == one.name.project;
    let newest = || {
        let named = all.iter().filter(same).filter(|other| other.name.run.is_some());
        run_named(&named.max_by_key(|other| other.at)?.name)
    };
    let own = || {
        let hash = Hash::of(format!("plans of {}", one.name.project).as_bytes()).to_string();
        RunId::new(&hash[..8])
    };
    let whole = one.name.iteration.is_none();
    let id = match run_named(&one.name).or_else(|| newest().filter(|_| whole)) {
        Some(id) => id,
        None => own()?,
    };
    let of_run = all.iter().filter(same).filter(|other| run_named(&other.name).is_none_or(|run| run == id));
    let begun = of_run.map(|other| other.at).min().unwrap_or(one.at);
    let mut run = Run::new(id, RunKind::Plan, begun);
    run.description = one.name.project.clone();
    run.metadata.insert("plan".to_owned(), json!({"project": one.name.project, "checkpoint": false}));
    run.metadata.insert(IMPORTED.to_owned(), json!(Format::Plans.as_str()));
    Ok(run)
}

/// Iterations in their order, plans before judgements, and what belongs to the whole run last.
fn order(one: &Found) -> (String, bool, Option<String>, Option<u32>, usize, PathBuf) {
    let known = [plans::RAW, plans::IMPLEMENTATION, plans::EVALUATION];
    let rank = known.iter().position(|known| *known == one.name.part).unwrap_or(known.len());
    let Name { project, run, iteration, .. } = one.name.clone();
    (project, iteration.is_none(), run, iteration, rank, one.path.clone())
}

/// What a checkpoint of the newer layout is called there.
fn meta_id(one: &Found) -> String {
    let folders: Vec<_> = one.path.iter().rev().skip(1).take(2).map(|part| part.to_string_lossy()).collect();
    folders.into_iter().rev().collect::<Vec<_>>().join("/")
}

fn seconds(since: f64) -> Option<Timestamp> {
    Timestamp::from_micros((since * 1e6) as i64).ok().filter(|_| since.is_finite())
}

fn modified(file: &Path) -> Option<Timestamp> {
    let since = fs::metadata(file).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Timestamp::from_micros(i64::try_from(since.as_micros()).ok()?).ok()
}

/// Lists what could be checkpoints of plans at a path: the file itself, those in a folder, or in folders below it that are
/// called as the layouts call them. Without being asked for this format, only what is unmistakable counts.
fn files(path: &Path, forced: bool) -> Vec<PathBuf> {
    if path.is_file() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_one = Name::read(&name).is_some_and(|name| forced || name.iteration.is_some());
        return if is_one || is_cached(path) { vec![path.to_owned()] } else { Vec::new() };
    }
    let mut found = Vec::new();
    walk(path, forced, 0, &mut found);
    found.sort();
    found
}

fn walk(folder: &Path, forced: bool, depth: usize, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        // Links are not followed: they could lead round in circles, or out.
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir()
            && depth < DEEPEST
            && !name.starts_with('.')
            && !["node_modules", "target"].contains(&name.as_str())
        {
            walk(&path, forced, depth + 1, found);
        } else if kind.is_file() && (is_checkpoint(&path, &name, forced) || is_cached(&path)) {
            found.push(path);
        }
    }
}

fn is_checkpoint(path: &Path, name: &str, forced: bool) -> bool {
    let Some(read) = Name::read(name) else { return false };
    let folder = path.parent().unwrap_or(path);
    let at_home = folder.ends_with(plans::PLANS) || folder.ends_with(plans::FOLDER);
    at_home
        || read.iteration.is_some() && (forced || plans::TYPES.contains(&read.part.as_str()))
        || forced && folder.ends_with("plans")
}

/// Says whether a file is an artifact of the newer layout that was finished.
fn is_cached(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "artifact.json")
        && read_file(&path.with_file_name("meta.json")).is_ok_and(|bytes| Meta::read(&bytes).is_some())
}
