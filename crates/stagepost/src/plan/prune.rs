//! Giving up old iterations. Finals and best attempts stay.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::history::{History, Iteration};
use super::{Error, Plan, Standing};
use crate::formats::plans;
use crate::model::{Checkpoint, CheckpointId, Hash, Kind, RunId, Timestamp};
use crate::project::{Project, View, export_file};

/// How many iterations to keep. Limits add up: what any of them gives up goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// Give up all but the newest so many of each run.
    pub keep: Option<usize>,
    /// Give up what is older than this.
    pub max_age: Option<Duration>,
}

/// Why an iteration goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Its run has newer ones than are kept.
    Surplus,
    /// It is too old.
    Age,
}

/// What would go. Carrying it out does exactly this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pruning {
    /// The iterations that go.
    pub prune: Vec<Gone>,
    /// How many iterations stay.
    pub kept: usize,
    /// How many of those stay although the policy gave them up.
    pub spared: usize,
}

/// An iteration that goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gone {
    /// Its run.
    pub run: RunId,
    /// Its number.
    pub iteration: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// Why it goes.
    pub why: Cause,
    /// What is recorded of it.
    pub checkpoints: Vec<CheckpointId>,
    /// Bytes of its payloads.
    pub bytes: u64,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Pruned {
    /// Files of the archive.
    pub archived: Vec<PathBuf>,
    /// Files that someone changed, so that they were left.
    pub left: Vec<PathBuf>,
}

/// What is known of an iteration, oldest first.
struct Fact {
    created_at: Timestamp,
    spare: bool,
}

impl Policy {
    /// Decides which of the iterations of a run go, and why; how many are spared.
    fn decide(&self, facts: &[Fact], now: Timestamp) -> (Vec<(usize, Cause)>, usize) {
        let (mut gone, mut spared) = (Vec::new(), 0);
        for (index, fact) in facts.iter().enumerate() {
            let surplus = self.keep.is_some_and(|keep| facts.len() - index > keep).then_some(Cause::Surplus);
            let old = self.max_age.is_some_and(|age| fact.created_at.until(now) > age).then_some(Cause::Age);
            match surplus.or(old) {
                Some(_) if fact.spare => spared += 1,
                Some(why) => gone.push((index, why)),
                None => {}
            }
        }
        (gone, spared)
    }
}

/// Decides what goes, in one run or in all.
pub fn plan_prune(project: &Project, run: Option<&RunId>, policy: &Policy) -> Result<Pruning, Error> {
    let pinned = project.pinned()?;
    let now = project.context().clock.now();
    let mut pruning = Pruning { prune: Vec::new(), kept: 0, spared: 0 };
    for plan in Plan::all(project)?.into_iter().filter(|plan| run.is_none_or(|run| run == plan.id())) {
        let history = plan.history()?;
        let spare = spared(&history, Standing::of(project, &history), &pinned);
        let all: Vec<&Iteration> = history.iterations.values().collect();
        let facts: Vec<Fact> = all
            .iter()
            .map(|one| Fact { created_at: newest(one), spare: spare.contains(&one.number) })
            .collect();
        let (gone, count) = policy.decide(&facts, now);
        pruning.kept += all.len() - gone.len();
        pruning.spared += count;
        pruning.prune.extend(gone.into_iter().map(|(index, why)| gone_of(plan.id(), all[index], why)));
    }
    Ok(pruning)
}

/// The iterations that stay whatever the policy says: the best, what the final plan is, what someone pinned, and
/// what a run that has not ended goes on from.
fn spared(history: &History, standing: Standing, pinned: &BTreeSet<CheckpointId>) -> BTreeSet<u32> {
    if standing == Standing::Running {
        return history.iterations.keys().copied().collect();
    }
    let mut spare: BTreeSet<u32> =
        [history.best(), history.best_effort()].into_iter().flatten().map(|one| one.number).collect();
    if history.end.is_none() {
        spare.extend(history.iterations.keys().next_back());
    }
    let kept = |one: &Checkpoint| pinned.contains(&one.id) || !one.content.labels.is_empty();
    spare.extend(history.iterations.values().filter(|one| one.checkpoints().any(kept)).map(|one| one.number));
    spare
}

fn newest(one: &Iteration) -> Timestamp {
    one.checkpoints()
        .map(|checkpoint| checkpoint.created_at)
        .max()
        .unwrap_or_else(|| Timestamp::from_micros(0).expect("the beginning of time"))
}

fn gone_of(run: &RunId, one: &Iteration, why: Cause) -> Gone {
    let blobs = one.checkpoints().flat_map(|checkpoint| &checkpoint.content.artifacts);
    Gone {
        run: run.clone(),
        iteration: one.number,
        created_at: newest(one),
        why,
        checkpoints: one.checkpoints().map(|checkpoint| checkpoint.id).collect(),
        bytes: blobs.map(|artifact| artifact.blob.size).sum(),
    }
}

/// Carries it out: what goes is archived first if a folder is given, then pruned to stubs, and its files go.
pub fn apply_prune(project: &Project, pruning: &Pruning, archive: Option<&Path>) -> Result<Pruned, Error> {
    let mut done = Pruned::default();
    let mut views = Vec::new();
    let mut manifest = Vec::new();
    for gone in &pruning.prune {
        let plan = Plan::open(project, &gone.run)?;
        for id in &gone.checkpoints {
            let checkpoint = project.resolve(&id.to_string())?;
            views.extend(plan.iteration_file(&checkpoint)?.filter(|_| plan.about.checkpoint));
            if let Some(folder) = archive {
                archive_checkpoint(&plan, gone, &checkpoint, folder, &mut manifest, &mut done)?;
            }
        }
    }
    if let Some(folder) = archive.filter(|_| !manifest.is_empty()) {
        done.archived.push(write_manifest(project, folder, manifest)?);
    }
    let ids: Vec<CheckpointId> =
        pruning.prune.iter().flat_map(|gone| gone.checkpoints.iter().copied()).collect();
    project.forget(&ids)?;
    for view in &views {
        if !project.withdraw_view(view)? {
            done.left.push(project.place().root.join(&view.path));
        }
    }
    Ok(done)
}

/// Writes every payload of a checkpoint: as the file it had, or under its name.
fn archive_checkpoint(
    plan: &Plan<'_>,
    gone: &Gone,
    checkpoint: &Checkpoint,
    folder: &Path,
    manifest: &mut Vec<serde_json::Value>,
    done: &mut Pruned,
) -> Result<(), Error> {
    let Kind::Iteration { part, .. } = &checkpoint.content.kind else { return Ok(()) };
    let own = Plan {
        about: super::About { output_dir: Some(plan.about.project.clone()), ..plan.about.clone() },
        ..plan.clone()
    };
    let shown = own.iteration_file(checkpoint)?;
    let mut files: Vec<View> = Vec::new();
    for artifact in &checkpoint.content.artifacts {
        let name = artifact.name.as_str();
        if shown.is_some() && (name == part || name == "original") {
            continue;
        }
        let extension = if artifact.media.is_json() { "json" } else { "txt" };
        let start = plans::file_name(&plan.about.project, Some((gone.run.as_str(), gone.iteration)), part);
        let start = start.trim_end_matches(".json");
        let path = format!(
            "{}/{}/{start}-{}-{}.{extension}",
            plan.about.project,
            plans::PLANS,
            checkpoint.seq,
            name.replace('/', "-")
        );
        files.push(View { path, bytes: plan.project.load(checkpoint, name)? });
    }
    for view in shown.into_iter().chain(files) {
        let path = export_file(folder, &view)?;
        check_written(&path, &view.bytes)?;
        manifest.push(json!({
            "file": view.path,
            "blake3": Hash::of(&view.bytes),
            "run": gone.run,
            "iteration": gone.iteration,
            "type": part,
            "checkpoint": checkpoint.id,
            "created_at": checkpoint.created_at,
        }));
        done.archived.push(path);
    }
    Ok(())
}

/// What was written is deleted from the store next, so it has to be on the disk, and right.
fn check_written(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let read = fs::File::open(path).and_then(|file| file.sync_all()).and_then(|()| fs::read(path));
    let failed = |source| Error::File { doing: "check", path: path.to_owned(), source };
    let same = read.map_err(failed)? == bytes;
    if same { Ok(()) } else { Err(failed(std::io::Error::other("it is not as it was written"))) }
}

fn write_manifest(project: &Project, folder: &Path, files: Vec<serde_json::Value>) -> Result<PathBuf, Error> {
    let now = project.context().clock.now();
    let bytes = plans::write(&json!({"schema": 1, "created_at": now, "files": files}));
    let path = format!("manifest-{}.json", now.as_micros());
    let path = export_file(folder, &View { path, bytes: bytes.clone() })?;
    check_written(&path, &bytes)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(spare: &[usize]) -> Vec<Fact> {
        let day = |index: usize| Timestamp::from_micros(index as i64 * 86_400_000_000).unwrap();
        (0..6).map(|index| Fact { created_at: day(index), spare: spare.contains(&index) }).collect()
    }

    #[test]
    fn the_oldest_go_by_count_and_age_and_what_is_spared_stays() {
        let now = Timestamp::from_micros(6 * 86_400_000_000).unwrap();
        let by_count = Policy { keep: Some(4), max_age: None }.decide(&facts(&[0]), now);
        assert_eq!(by_count, (vec![(1, Cause::Surplus)], 1));
        let by_age =
            Policy { keep: None, max_age: Some(Duration::from_secs(4 * 86_400)) }.decide(&facts(&[]), now);
        assert_eq!(by_age, (vec![(0, Cause::Age), (1, Cause::Age)], 0));
        assert_eq!(Policy::default().decide(&facts(&[]), now), (vec![], 0));
    }
}
