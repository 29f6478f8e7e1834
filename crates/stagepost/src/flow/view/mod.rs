//! A run of a flow file in the files of the design it follows: `.claude/context/runs/<run>/`.
//!
//! The files are derived from the history and never the truth. While a run is driven, a mark says that its files are
//! about to be out of date; after a crash the next command finds the mark and brings them up to date.

mod files;
mod publisher;
mod standing;

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::definition::Flow;
use super::{Error, History, RunState, is_driven};
use crate::bounded;
use crate::formats::runs;
use crate::model::RunId;
use crate::project::{Outdated, Project, View};

pub(super) use files::Files;
pub(super) use publisher::Publisher;

/// The mark of a run's files while they are out of date. No session can have such a name: it holds a colon.
const MARK: &str = "run:";

/// Says that the files of a run are about to be out of date.
pub(super) fn begin(project: &Project, run: &RunId) -> Result<Outdated, Error> {
    Ok(project.begin_view(&format!("{MARK}{run}"))?)
}

/// Brings the files of a run up to date: all of `run.json` and the registry, and the newest checkpoints.
///
/// A run that code drives has no files, and neither has one whose flow says `view: false`.
pub fn publish(project: &Project, run: &RunId) -> Result<(), Error> {
    bring_up(project, run, begin(project, run)?, None)
}

/// As [`publish`]. As long as the run goes on, its files are about to be out of date again, and the mark stays.
pub(super) fn bring_up(
    project: &Project,
    run: &RunId,
    outdated: Outdated,
    flow: Option<&Flow>,
) -> Result<(), Error> {
    if write(project, run, flow)? {
        return Ok(());
    }
    Ok(outdated.end()?)
}

/// Writes the files of a run and says whether it goes on. Whoever has read the flow already hands it in.
fn write(project: &Project, run: &RunId, flow: Option<&Flow>) -> Result<bool, Error> {
    let mut goes_on = false;
    let derive = || -> Result<Vec<View>, Error> {
        let history = History::load(project, run)?;
        let state = RunState::of(&history, is_driven(project, run));
        let read = if flow.is_none() { flow_of(&state) } else { None };
        let Some(flow) = flow.or(read.as_ref()).filter(|flow| flow.view) else { return Ok(Vec::new()) };
        goes_on = state.status == super::Status::Running;
        let keep = usize::try_from(flow.retention.keep_last).unwrap_or(usize::MAX);
        let files = Files { moments: &history.moments, state: &state, flow: Some(flow), keep };
        let folder = project.place().root.join(runs::path(run.as_str(), runs::CHECKPOINTS));
        let wanted = files.checkpoints();
        tidy(&folder, |name| wanted.iter().any(|one| one.name == name));
        // What is written once stays as it is. It comes before what tells of it.
        let missing = wanted.iter().filter(|one| !folder.join(&one.name).exists());
        Ok(missing.map(|one| files.checkpoint(one)).chain(files.about()).collect())
    };
    project.write_views(derive)?;
    Ok(goes_on)
}

/// Brings up to date the files of runs that a crash left behind; says of which.
pub fn catch_up(project: &Project) -> Result<Vec<RunId>, Error> {
    let mut done = Vec::new();
    for key in project.stale_views() {
        let Some(run) = key.strip_prefix(MARK).and_then(|id| RunId::new(id).ok()) else { continue };
        // Whoever drives it holds the mark, and keeps its files up to date.
        let Some(outdated) = project.take_over_view(&key) else { continue };
        match project.store().run(&run)? {
            Some(_) => bring_up(project, &run, outdated, None)?,
            None => outdated.end()?,
        }
        done.push(run);
    }
    Ok(done)
}

/// Takes the files of a run away: what we wrote, and the folder if nothing else is in it.
pub(super) fn remove(project: &Project, run: &RunId) {
    let folder = project.place().root.join(runs::path(run.as_str(), ""));
    tidy(&folder.join(runs::CHECKPOINTS), |_| false);
    for name in [runs::RUN, runs::REGISTRY] {
        if is_ours(&folder.join(name)) {
            // What cannot be taken away stays; it is a view and nothing depends on it.
            let _ = fs::remove_file(folder.join(name));
        }
    }
    // These fail where something else is inside, which is as it should be.
    let _ = fs::remove_dir(folder.join(runs::CHECKPOINTS));
    let _ = fs::remove_dir(&folder);
    if let Some(outdated) = project.take_over_view(&format!("{MARK}{run}")) {
        // If this fails, the next command finds nothing of the run any more, and ends it.
        let _ = outdated.end();
    }
}

/// Removes checkpoints that we wrote and that are not wanted any more.
fn tidy(folder: &Path, is_wanted: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let name = entry.file_name();
        let is_checkpoint =
            name.to_str().is_some_and(|name| name.starts_with("checkpoint-step-") && !is_wanted(name));
        if is_checkpoint && is_ours(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Says whether a file was written by us and not by the program whose format it has.
fn is_ours(path: &Path) -> bool {
    // A link is not what we wrote, wherever it leads.
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let value = bounded::read_file(path)
        .ok()
        .filter(|_| is_file)
        .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    value.is_some_and(|value| {
        value["metadata"]["created_by"] == runs::OURS || value["created_by"] == runs::OURS
    })
}

/// The flow that a run follows; `None` if code drives it.
pub(super) fn flow_of(state: &RunState) -> Option<Flow> {
    state.definition.as_ref().and_then(|definition| Flow::read(&definition.text).ok())
}
