//! Runs of flows as files for the programs whose format they have.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::view::{Files, flow_of};
use super::{Error, History, RunState};
use crate::formats::Format;
use crate::formats::runs::{self, Shape};
use crate::model::{Checkpoint, Imported, RunKind};
use crate::project::{Project, View, export_file};
use crate::store::Query;

/// Writes the files of all runs below a folder; says which. What was imported is written as it came, with everything
/// that only its writer knows; its checksum is made one that the validator accepts, but only if it was right before.
pub fn export(project: &Project, folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut written = Vec::new();
    for run in project.runs()?.into_iter().filter(|run| run.kind == RunKind::Flow) {
        let query = Query { run: Some(run.id.clone()), ..Query::default() };
        let log = project.log(&query)?;
        let imported: Vec<&Checkpoint> = log.iter().rev().filter(|one| is_imported(one)).collect();
        let mut views = Vec::new();
        for checkpoint in &imported {
            add(&mut views, original(project, run.id.as_str(), checkpoint)?);
        }
        if imported.len() < log.len() || imported.is_empty() {
            let history = History::load(project, &run.id)?;
            let state = RunState::of(&history, super::is_driven(project, &run.id));
            let flow = flow_of(&state);
            let files =
                Files { moments: &history.moments, state: &state, flow: flow.as_ref(), keep: usize::MAX };
            add(&mut views, files.about());
            let own = files.checkpoints();
            let own = own.iter().filter(|wanted| !imported.iter().any(|one| one.id == wanted.id));
            add(&mut views, own.map(|wanted| files.checkpoint(wanted)).collect());
        }
        for view in views {
            written.push(export_file(folder, &view)?);
        }
    }
    Ok(written)
}

/// What comes later replaces what is there: a record of a run that was imported again is the newer one.
fn add(views: &mut Vec<View>, more: Vec<View>) {
    for view in more {
        views.retain(|known| known.path != view.path);
        views.push(view);
    }
}

fn is_imported(checkpoint: &Checkpoint) -> bool {
    Imported::of(checkpoint).is_some_and(|from| from.format == Format::Runs.as_str())
}

/// The files that an imported checkpoint was taken from.
fn original(project: &Project, run: &str, checkpoint: &Checkpoint) -> Result<Vec<View>, Error> {
    let bytes = project.load(checkpoint, "original")?;
    let named = checkpoint.content.metadata.get("file").and_then(Value::as_str).unwrap_or_default();
    // The name comes from outside: it may name a file, not a place.
    let is_plain =
        |name: &&str| !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
    let name = Some(named).filter(is_plain).map_or_else(|| format!("{}.json", checkpoint.id), str::to_owned);
    let path = match runs::Record::read(&name, &bytes) {
        Ok(record) => match record.shape {
            Shape::Compressed => format!("{}/{name}", runs::COMPRESSED),
            Shape::Pressure => format!("{}/{name}", runs::PRESSURE),
            _ => runs::path(run, &format!("{}/{name}", runs::CHECKPOINTS)),
        },
        Err(_) => runs::path(run, &name),
    };
    let mut views = vec![View { path, bytes: accepted(bytes) }];
    if checkpoint.artifact("registry").is_some() {
        let bytes = project.load(checkpoint, "registry")?;
        views.push(View { path: runs::path(run, runs::REGISTRY), bytes });
    }
    Ok(views)
}

/// Gives a checkpoint whose checksum was right the one that the validator expects. One that was altered stays so.
fn accepted(bytes: Vec<u8>) -> Vec<u8> {
    let is_old_form = runs::verify(&bytes) == Some(Some(runs::Form::Body));
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(value) if is_old_form => runs::pretty(&runs::sealed(value)).into_bytes(),
        _ => bytes,
    }
}
