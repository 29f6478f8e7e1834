//! A run in the files of the design it follows: written only if its job asks for them, never the truth.

use std::path::{Path, PathBuf};

use super::history::{About, payload_of};
use super::part::{FAILURE, JOB, VALIDATION};
use super::{Error, Plan};
use crate::formats::plans;
use crate::model::{Checkpoint, Imported, Kind};
use crate::project::{Outdated, Project, View, export_file};
use crate::store::Query;

/// The types whose newest payload is a file of its own, also when it belongs to an iteration.
const LATEST: [&str; 4] = [plans::RAW, plans::EVALUATION, plans::IMPLEMENTATION, plans::FINAL];

impl Plan<'_> {
    /// Says that the files are about to be out of date; `None` if the job does not ask for any.
    pub(super) fn begin_view(&self) -> Result<Option<Outdated>, Error> {
        let begin = || self.project.begin_view(self.run.id.as_str());
        Ok(self.about.checkpoint.then(begin).transpose()?)
    }

    /// Brings the files up to date: those that follow from the checkpoint that was made, or all if there may be more.
    pub(super) fn publish(&self, outdated: Outdated, made: Option<&Checkpoint>) -> Result<(), Error> {
        let made = made.filter(|_| outdated.is_only());
        let published = self.project.publish(outdated, || match made {
            Some(checkpoint) => self.views_of(checkpoint),
            None => self.views(),
        });
        published.map_err(|source| Error::View { run: self.run.id.clone(), source: Box::new(source) })
    }

    fn views_of(&self, checkpoint: &Checkpoint) -> Result<Vec<View>, Error> {
        let own = self.owns_latest()?;
        let mut views = Vec::new();
        views.extend(self.iteration_file(checkpoint)?);
        views.extend(if own { self.latest_file(checkpoint)? } else { None });
        Ok(views)
    }

    /// Every file of the run.
    fn views(&self) -> Result<Vec<View>, Error> {
        let listed = self.project.log(&Query { run: Some(self.run.id.clone()), ..Query::default() })?;
        let own = self.owns_latest()?;
        let mut views: Vec<View> = Vec::new();
        for checkpoint in &listed {
            views.extend(self.iteration_file(checkpoint)?);
            // Newest first: what is there already is newer.
            let latest = if own { self.latest_file(checkpoint)? } else { None };
            views.extend(latest.filter(|file| !views.iter().any(|other| other.path == file.path)));
        }
        Ok(views)
    }

    /// The files without a run in their name belong to the newest run of the project in that folder.
    fn owns_latest(&self) -> Result<bool, Error> {
        let same = |plan: &Plan<'_>| plan.about == self.about;
        let newest = Plan::all(self.project)?.into_iter().rev().find(same);
        Ok(newest.is_none_or(|newest| newest.run.id == self.run.id))
    }

    fn path(&self, part: &str, file: &str) -> String {
        let below = format!("{}/{file}", plans::folder_of(part));
        match self.about.output_dir.as_deref() {
            Some("") | None => below,
            Some(folder) => format!("{folder}/{below}"),
        }
    }

    /// The file of a part of an iteration.
    pub(super) fn iteration_file(&self, checkpoint: &Checkpoint) -> Result<Option<View>, Error> {
        let Some((iteration, part)) = shown(checkpoint).filter(|(iteration, _)| *iteration > 0) else {
            return Ok(None);
        };
        let run = self.run.id.as_str();
        let file = plans::file_name(&self.about.project, Some((run, iteration)), part);
        let Some(payload) = payload_of(self.project, checkpoint)? else { return Ok(None) };
        let Some(members) = payload.value().as_object() else { return Ok(None) };
        let bytes = plans::write(&plans::envelope(run, iteration, part, members));
        Ok(Some(View { path: self.path(part, &file), bytes }))
    }

    /// The file of the newest payload of a type.
    fn latest_file(&self, checkpoint: &Checkpoint) -> Result<Option<View>, Error> {
        let is_latest = |(iteration, part): &(u32, &str)| *iteration == 0 || LATEST.contains(part);
        let Some((_, part)) = shown(checkpoint).filter(is_latest) else { return Ok(None) };
        let file = plans::file_name(&self.about.project, None, part);
        let Some(payload) = payload_of(self.project, checkpoint)? else { return Ok(None) };
        Ok(Some(View { path: self.path(part, &file), bytes: plans::write(payload.value()) }))
    }
}

/// The iteration and part of a checkpoint that has files.
fn shown(checkpoint: &Checkpoint) -> Option<(u32, &str)> {
    match &checkpoint.content.kind {
        Kind::Iteration { part, .. } if [JOB, VALIDATION, FAILURE].contains(&part.as_str()) => None,
        Kind::Iteration { iteration, part } => Some((*iteration, part)),
        _ => None,
    }
}

/// Writes the files of all runs below a folder, one folder for each project; says which. What was imported is written
/// byte for byte as it was.
pub fn export(project: &Project, folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut written = Vec::new();
    let mut latest: Vec<String> = Vec::new();
    for plan in Plan::all(project)?.into_iter().rev() {
        let about = About { output_dir: Some(plan.about.project.clone()), ..plan.about.clone() };
        let plan = Plan { about, ..plan };
        for mut view in plan.exported(&latest)? {
            view.path = view.path.trim_start_matches('/').to_owned();
            written.push(export_file(folder, &view)?);
            latest.push(view.path);
        }
    }
    written.sort();
    Ok(written)
}

impl Plan<'_> {
    /// Every file of the run but those that a newer run has.
    fn exported(&self, taken: &[String]) -> Result<Vec<View>, Error> {
        let listed = self.project.log(&Query { run: Some(self.run.id.clone()), ..Query::default() })?;
        let mut views: Vec<View> = Vec::new();
        for checkpoint in &listed {
            let files = match Imported::of(checkpoint) {
                Some(_) => [self.original_file(checkpoint)?, None],
                None => [self.iteration_file(checkpoint)?, self.latest_file(checkpoint)?],
            };
            for file in files.into_iter().flatten() {
                let known = taken.contains(&file.path) || views.iter().any(|other| other.path == file.path);
                views.extend((!known).then_some(file));
            }
        }
        Ok(views)
    }

    /// A file as it was imported.
    fn original_file(&self, checkpoint: &Checkpoint) -> Result<Option<View>, Error> {
        let Some((iteration, part)) = shown(checkpoint) else { return Ok(None) };
        let from = Imported::of(checkpoint).and_then(|from| from.id.rsplit('/').next().map(str::to_owned));
        let of_iteration = (iteration > 0).then_some((self.run.id.as_str(), iteration));
        let made = plans::file_name(&self.about.project, of_iteration, part);
        let file = from.filter(|name| plans::Name::read(name).is_some()).unwrap_or(made);
        Ok(Some(View { path: self.path(part, &file), bytes: self.project.load(checkpoint, "original")? }))
    }
}

/// Brings up to date the files of runs that a crash left behind; says of which.
pub fn catch_up(project: &Project) -> Result<Vec<String>, Error> {
    let mut done = Vec::new();
    for key in project.stale_views() {
        let Ok(id) = key.parse() else { continue };
        let Ok(plan) = Plan::open(project, &id) else { continue };
        if let Some(outdated) = project.take_over_view(&key) {
            plan.publish(outdated, None)?;
            done.push(key);
        }
    }
    Ok(done)
}
