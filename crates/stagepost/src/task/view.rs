//! Tasks in the files of the design they follow.

use std::path::{Path, PathBuf};

use super::{Checkpoint, Error, Task, note};
use crate::formats::pretty;
use crate::formats::tasks::{self, Entry, LIST, PROGRESS};
use crate::project::{Outdated, Project, View, export_file};

/// The mark of these views while they are out of date.
pub(super) const KEY: &str = tasks::VIEWS;

/// Makes the places of the views ours before anything is saved, so that no snapshot holds them.
pub(super) fn claim(project: &Project) -> Result<Outdated, Error> {
    note::adopt(project)?;
    project.claim_view(LIST)?;
    project.claim_view(PROGRESS)?;
    Ok(project.begin_view(KEY)?)
}

/// Brings the files up to date.
pub(super) fn publish(project: &Project, outdated: Outdated) -> Result<(), Error> {
    let published = project.publish(outdated, || views(project));
    published.map_err(|source| Error::View { source: Box::new(source) })
}

fn views(project: &Project) -> Result<Vec<View>, Error> {
    note::adopt(project)?;
    let entries: Vec<Entry> = current(project)?.iter().map(Checkpoint::entry).collect();
    let mut lines = note::all_lines(project)?.join("\n");
    if !lines.is_empty() {
        lines.push('\n');
    }
    let list = View { path: LIST.to_owned(), bytes: pretty(&entries) };
    Ok(vec![list, View { path: PROGRESS.to_owned(), bytes: lines.into_bytes() }])
}

/// The newest checkpoint of each stage of each task, in the order in which they were saved.
pub(super) fn current(project: &Project) -> Result<Vec<Checkpoint>, Error> {
    let mut all = Vec::new();
    for task in Task::all(project)? {
        all.extend(task.recovery_options()?);
    }
    all.sort_by_key(|checkpoint| checkpoint.position);
    Ok(all)
}

impl<'p> Task<'p> {
    /// Lists the newest checkpoint of each stage of each task, in the order in which they were saved.
    pub fn list(project: &'p Project) -> Result<Vec<Checkpoint>, Error> {
        current(project)
    }
}

/// Writes the files of all tasks below a folder, for the programs that made the format; says which.
pub fn export(project: &Project, folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut written = Vec::new();
    for view in views(project)? {
        written.push(export_file(folder, &view)?);
    }
    Ok(written)
}

/// Brings the files up to date that a crash left behind; says whether that was needed.
pub fn catch_up(project: &Project) -> Result<bool, Error> {
    if !project.stale_views().iter().any(|key| key == KEY) {
        return Ok(false);
    }
    project.mend_tags(KEY, "checkpoint-t", || {
        Ok::<_, Error>(current(project)?.into_iter().map(Checkpoint::into_record).collect())
    })?;
    let Some(outdated) = project.take_over_view(KEY) else { return Ok(false) };
    publish(project, outdated)?;
    Ok(true)
}
