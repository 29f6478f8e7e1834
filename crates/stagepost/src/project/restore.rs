//! Going back: plan, protect, write down, apply, record. And forward again.
//!
//! What is about to happen is an event in the store before the first file is touched, and so is how it ended. A
//! restore that began and never ended was cut off: whoever comes next finishes it or takes it back. What can be
//! undone and redone is derived from the same events.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::files::{Files, snapshot_of};
use super::{Error, Project, Save};
use crate::lock::Lock;
use crate::model::{
    Checkpoint, CheckpointId, Event, Kind, ObjectId, RepoPath, RunId, RunKind, Snapshot, Timestamp, Topic,
};
use crate::snapshot::Snapshots;
use crate::snapshot::restore::{
    Left, LeftReason, Mode, Point, Recovered, Restore, RestoreError, RestorePlan, Restored,
};
use crate::store::{Batch, EventQuery, Found, Hold, NewEntry};

/// What is put back of a checkpoint.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Files, HEAD and index, or all.
    pub mode: Mode,
    /// The files and folders; none means all.
    pub paths: Vec<RepoPath>,
}

impl Default for Wish {
    fn default() -> Self {
        Self { mode: Mode::Files, paths: Vec::new() }
    }
}

/// What a restore did.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RestoreOutcome {
    /// The checkpoint that was put back.
    pub target: CheckpointId,
    /// The checkpoint of what was there before.
    pub safety: CheckpointId,
    /// What happened to files, HEAD and index; `None` if there was nothing to do.
    pub done: Option<Restored>,
    /// Files that differ from the target and were left.
    pub left: Vec<Left>,
}

/// What had been cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Interrupted {
    /// A restore, an undo or a redo.
    Restore,
    /// A checkpoint with a commit or a tag.
    Checkpoint {
        /// The tag.
        tag: String,
    },
}

/// What became of a restore or a checkpoint that had been cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// What had been cut off.
    pub of: Interrupted,
    /// The checkpoint that was being put back or made.
    pub target: CheckpointId,
    /// Whether it was finished; otherwise it was taken back.
    pub finished: bool,
    /// Files that someone changed meanwhile and that were left.
    pub left: Vec<RepoPath>,
}

/// One restore in the history of a work tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreRecord {
    /// What was asked for: a restore, an undo or a redo.
    pub verb: Verb,
    /// The checkpoint that was put back.
    pub target: CheckpointId,
    /// The checkpoint of what was there before.
    pub safety: CheckpointId,
    /// What was put back of it.
    pub mode: Mode,
    /// The files and folders, with those that had to go because they were in the way; none means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<RepoPath>,
    /// Who did it.
    pub who: String,
    /// Which of the linked work trees that had its name one after the other; `None` for the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_tree: Option<String>,
}

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// A checkpoint was put back.
    Restore,
    /// The last restore was undone.
    Undo,
    /// The last undo was taken back.
    Redo,
}

/// What an event of a restore says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum Said {
    /// It is about to happen: everything needed to finish it or take it back.
    Began {
        #[serde(flatten)]
        record: RestoreRecord,
        restore: Box<Restore>,
    },
    /// It happened.
    Done {
        #[serde(flatten)]
        record: RestoreRecord,
    },
    /// It was taken back, or did not begin.
    Reverted {
        #[serde(flatten)]
        record: RestoreRecord,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

/// So many restores back can be undone for certain: their safety checkpoints stay whatever the policy says.
const UNDOABLE: usize = 32;

/// So many of the latest restores are asked for what they left.
const LATEST: usize = 16;

impl Project {
    /// Decides what a restore would do, and touches nothing.
    pub fn plan_restore(&self, target: &Checkpoint, wish: &Wish) -> Result<RestorePlan, Error> {
        let look = self.look(&Files::default())?;
        let mut plan = self.plan_sparing(Point::from(&look), target, wish)?;
        must_know(&plan)?;
        // Ignored files in the way may be as the target has them, or have to go: only a look at them tells.
        if !plan.files.capture_first.is_empty() && plan.refusals().is_empty() {
            let force = plan.files.capture_first.clone();
            let look = self.look(&Files { force, ..Files::default() })?;
            plan = self.plan_sparing(Point::from(&look), target, wish)?;
        }
        Ok(plan)
    }

    /// Plans the way from one point to another.
    fn plan_from(&self, from: Point, to: Point, wish: &Wish) -> Result<RestorePlan, Error> {
        let restore = Restore { from, to, mode: wish.mode, paths: wish.paths.clone(), makes_branch: false };
        Ok(self.snapshots()?.plan_restore(&restore)?)
    }

    /// Plans the way from a point to a checkpoint, so that what earlier restores left stays: a second one does no more than the
    /// first.
    fn plan_sparing(&self, from: Point, target: &Checkpoint, wish: &Wish) -> Result<RestorePlan, Error> {
        let to = Point::from(snapshot_of(target)?);
        let plan = self.plan_from(from.clone(), to.clone(), wish)?;
        let kept = self.ignored_before(&plan, &from.tree)?;
        if kept.is_empty() { Ok(plan) } else { self.plan_from(from, Point { kept, ..to }, wish) }
    }

    /// The files that a plan would delete and that were ignored before one of the latest restores took the rules away. The safety
    /// checkpoint would hold them, but nobody asked for any that does.
    fn ignored_before(&self, plan: &RestorePlan, now: &ObjectId) -> Result<Vec<RepoPath>, Error> {
        if plan.files.deletes.is_empty() {
            return Ok(Vec::new());
        }
        let (snapshots, key) = (self.snapshots()?, Some(self.place.worktree_key()));
        let latest = EventQuery { topic: Topic::Restore, key, last: Some(LATEST) };
        let asked_for = self.newest_with_files().ok();
        let mut kept = Vec::new();
        for record in self.store.events(&latest)?.into_iter().filter_map(|(_, event)| done(event.body)) {
            let Some(before) = self.store.checkpoint(&record.safety)?.and_then(Found::live) else { continue };
            let Some(snapshot) = &before.content.snapshot else { continue };
            let deleted = plan.files.deletes.iter().map(|delete| &delete.path);
            let ignored = snapshots.ignored_before(&snapshot.tree, now, deleted)?;
            // What somebody kept since then is as any other file.
            let since = asked_for.as_ref().filter(|asked| asked.id > before.id);
            let since = since.and_then(|asked| asked.content.snapshot.as_ref());
            kept.extend(match since {
                Some(since) => snapshots.not_in(&since.tree, ignored)?,
                None => ignored,
            });
        }
        kept.sort();
        kept.dedup();
        Ok(kept)
    }

    /// Puts a checkpoint back. What was there before is in a checkpoint first, so that it can be undone.
    pub fn restore(&self, target: &Checkpoint, wish: &Wish) -> Result<RestoreOutcome, Error> {
        self.carry_out(Verb::Restore, target, wish, &[])
    }

    /// Undoes the last restore that is not undone.
    pub fn undo(&self) -> Result<RestoreOutcome, Error> {
        let last = self.undo_stacks()?.undo.pop().ok_or(Error::NothingToUndo)?;
        self.go_back(Verb::Undo, last)
    }

    /// Takes the last undo back.
    pub fn redo(&self) -> Result<RestoreOutcome, Error> {
        let last = self.undo_stacks()?.redo.pop().ok_or(Error::NothingToRedo)?;
        self.go_back(Verb::Redo, last)
    }

    fn go_back(&self, verb: Verb, record: RestoreRecord) -> Result<RestoreOutcome, Error> {
        let found = self.store.checkpoint(&record.safety)?;
        let target = found.and_then(Found::live).ok_or(Error::Pruned { id: record.safety })?;
        let made = self.made_by(&record, &target);
        self.carry_out(verb, &target, &Wish { mode: record.mode, paths: record.paths }, &made)
    }

    /// The files that a restore wrote where there were none. Nothing of it is needed to go back, so what cannot be told is
    /// none: its target may have been pruned since.
    fn made_by(&self, record: &RestoreRecord, before: &Checkpoint) -> Vec<RepoPath> {
        let found = self.store.checkpoint(&record.target).ok().flatten();
        let after = found.and_then(Found::live).and_then(|target| target.content.snapshot);
        let (Some(before), Some(after), Ok(snapshots)) =
            (before.content.snapshot.as_ref(), after, self.snapshots())
        else {
            return Vec::new();
        };
        let changes = snapshots.objects().diff_trees(Some(&before.tree), Some(&after.tree));
        let made = changes.into_iter().flatten().filter(|change| change.old.is_none());
        let is_asked = |path: &RepoPath| {
            record.paths.is_empty() || record.paths.iter().any(|folder| path.is_within(folder))
        };
        made.map(|change| change.path).filter(is_asked).collect()
    }

    /// Puts a checkpoint back. `made` are files that it is about to take away, also where rules leave them out.
    fn carry_out(
        &self,
        verb: Verb,
        target: &Checkpoint,
        wish: &Wish,
        made: &[RepoPath],
    ) -> Result<RestoreOutcome, Error> {
        let snapshots = self.snapshots()?;
        let _lock = self.restore_lock(snapshots, self.settings.busy_timeout)?;
        if verb == Verb::Restore {
            self.must_be_possible(target, wish)?;
        }
        let (plan, safety) = self.protect(verb, target, wish, made)?;
        let left = plan.files.left.clone();
        if plan.is_empty() && verb == Verb::Restore {
            return Ok(RestoreOutcome { target: target.id, safety: safety.id, done: None, left });
        }
        let record = RestoreRecord {
            verb,
            target: target.id,
            safety: safety.id,
            mode: wish.mode,
            paths: touched(wish, &plan),
            who: self.context.who.clone(),
            work_tree: self.place.linked_since(),
        };
        let restore = plan.restore().clone();
        self.say(snapshots, &Said::Began { record: record.clone(), restore: Box::new(restore.clone()) })?;
        match snapshots.apply_restore(&plan, &mut |_| ControlFlow::Continue(())) {
            Ok(done) => {
                self.say(snapshots, &Said::Done { record })?;
                Ok(RestoreOutcome { target: target.id, safety: safety.id, done: Some(done), left })
            }
            Err(error) => {
                if !error.nothing_was_touched() {
                    snapshots.revert_restore(&restore, &mut |_| ControlFlow::Continue(()))?;
                }
                self.say(snapshots, &Said::Reverted { record, error: Some(error.to_string()) })?;
                Err(error.into())
            }
        }
    }

    /// Refuses what can be told to be impossible before the files are captured for it. Those of a whole checkpoint are not looked at
    /// twice for that: what is in their way, the plan finds.
    fn must_be_possible(&self, target: &Checkpoint, wish: &Wish) -> Result<(), Error> {
        let to = Point::from(snapshot_of(target)?);
        let refusals = match wish.paths[..] {
            [] => self.snapshots()?.refuse_early(&to, wish.mode)?,
            _ => self.plan_restore(target, wish)?.refusals().to_vec(),
        };
        if refusals.is_empty() { Ok(()) } else { Err(RestoreError::Refused { refusals }.into()) }
    }

    /// Makes the safety checkpoint and the plan that starts from it. Where ignored files are in the way, or have to go, it holds
    /// them too. What is refused leaves none.
    fn protect(
        &self,
        verb: Verb,
        target: &Checkpoint,
        wish: &Wish,
        made: &[RepoPath],
    ) -> Result<(RestorePlan, Checkpoint), Error> {
        let plan_from = |now: &Snapshot| match (Point::from(now), verb) {
            (from, Verb::Restore) => self.plan_sparing(from, target, wish),
            (from, _) => self.plan_from(from, Point::from(snapshot_of(target)?), wish),
        };
        let mut before = Before::capture(self, target, &Files::default())?;
        let mut plan = plan_from(&before.snapshot)?;
        let mut force = plan.files.capture_first.clone();
        force.extend(self.snapshots()?.stand_unheld(made, &before.snapshot.tree)?);
        if !force.is_empty() && plan.refusals().is_empty() {
            before = Before::capture(self, target, &Files { force, ..Files::default() })?;
            plan = plan_from(&before.snapshot)?;
        }
        let absent = left_as_ignored(&plan, made);
        if !absent.is_empty() {
            let to = Point { absent, ..Point::from(snapshot_of(target)?) };
            plan = self.plan_from(Point::from(&before.snapshot), to, wish)?;
        }
        // What is undone may be so already.
        if verb == Verb::Restore {
            must_know(&plan)?;
        }
        match plan.refusals() {
            [] => Ok((plan, before.keep()?)),
            refusals => Err(RestoreError::Refused { refusals: refusals.to_vec() }.into()),
        }
    }

    /// Finishes or takes back a restore that was cut off, and takes back a checkpoint with a commit or a tag that was;
    /// `None` if there is none.
    pub fn recover(&self) -> Result<Option<Recovery>, Error> {
        let marking = self.recover_marking()?;
        Ok(self.recover_restore()?.or(marking))
    }

    fn recover_restore(&self) -> Result<Option<Recovery>, Error> {
        if self.cut_off()?.is_none() {
            return Ok(None);
        }
        let snapshots = self.snapshots()?;
        // Whoever holds the lock is still at it.
        let Ok(_lock) = self.restore_lock(snapshots, Duration::ZERO) else { return Ok(None) };
        let Some((record, restore)) = self.cut_off()? else { return Ok(None) };
        let target = record.target;
        let recovered = snapshots.recover_restore(&restore, &mut |_| ControlFlow::Continue(()))?;
        let (said, finished, left) = match recovered {
            Recovered::Finished(restored) => (Said::Done { record }, true, restored.changed),
            Recovered::Reverted(restored) => {
                let error = Some("it was cut off".to_owned());
                (Said::Reverted { record, error }, false, restored.changed)
            }
        };
        self.say(snapshots, &said)?;
        Ok(Some(Recovery { of: Interrupted::Restore, target, finished, left }))
    }

    /// The restore of this work tree that began and did not end.
    fn cut_off(&self) -> Result<Option<(RestoreRecord, Restore)>, Error> {
        let key = self.place.worktree_key();
        let latest = self.store.events(&EventQuery::latest(Topic::Restore, key))?.pop();
        Ok(latest.and_then(|(_, event)| match serde_json::from_value(event.body) {
            Ok(Said::Began { record, restore }) if self.is_of_this_tree(&record) => Some((record, *restore)),
            _ => None,
        }))
    }

    pub(super) fn restore_lock(&self, snapshots: &Snapshots, patience: Duration) -> Result<Lock, Error> {
        let name = format!("restore-{}.lock", snapshots.worktree().replace('/', "-"));
        Ok(Lock::take(&self.place.store.join(name), patience)?)
    }

    fn say(&self, snapshots: &Snapshots, said: &Said) -> Result<(), Error> {
        debug_assert_eq!(snapshots.worktree(), self.place.worktree_key());
        let body = serde_json::to_value(said).expect("the record of a restore has string keys only");
        let event = Event {
            topic: Topic::Restore,
            key: self.place.worktree_key(),
            at: self.context.clock.now(),
            body,
        };
        self.store.write(Batch { entries: vec![NewEntry::Event(event)], ..Batch::default() })?;
        Ok(())
    }

    /// Lists the restores of this work tree that happened, oldest first.
    pub fn restores(&self) -> Result<Vec<(Timestamp, RestoreRecord)>, Error> {
        let key = Some(self.place.worktree_key());
        let events = self.store.events(&EventQuery { topic: Topic::Restore, key, last: None })?;
        Ok(events.into_iter().filter_map(|(_, event)| Some((event.at, done(event.body)?))).collect())
    }

    fn undo_stacks(&self) -> Result<Stacks, Error> {
        let records = self.restores()?.into_iter().map(|(_, record)| record);
        Ok(Stacks::of(records.filter(|record| self.is_of_this_tree(record))))
    }

    /// A linked work tree that was removed may have had the name of this one; what was done there is not undone here.
    fn is_of_this_tree(&self, record: &RestoreRecord) -> bool {
        record.work_tree.is_none() || record.work_tree == self.place.linked_since()
    }

    /// The safety checkpoints that undo and redo may still ask for.
    pub(super) fn needed_for_undo(&self) -> Result<Vec<CheckpointId>, Error> {
        let mut lines: std::collections::BTreeMap<String, Vec<RestoreRecord>> = Default::default();
        for (_, event) in self.store.events(&EventQuery::all(Topic::Restore))? {
            lines.entry(event.key).or_default().extend(done(event.body));
        }
        let stacks = lines.into_values().map(Stacks::of);
        let newest = |records: Vec<RestoreRecord>| {
            records.into_iter().rev().take(UNDOABLE).map(|record| record.safety)
        };
        Ok(stacks.flat_map(|stacks| newest(stacks.undo).chain(newest(stacks.redo))).collect())
    }
}

/// What is there before a restore: captured, and not recorded yet. Dropped, it is let go.
struct Before<'p> {
    project: &'p Project,
    id: CheckpointId,
    at: Timestamp,
    save: Save,
    snapshot: Snapshot,
    /// Whether there is a record of it, or was an attempt to write one.
    is_kept: bool,
    /// Until the record is written nothing refers to the snapshot; gc must not take it for an orphan.
    _held: Hold,
}

impl<'p> Before<'p> {
    fn capture(project: &'p Project, target: &Checkpoint, files: &Files) -> Result<Self, Error> {
        let save = Save {
            run: Some((project.run_of_here(RunId::SAFETY), RunKind::Adhoc)),
            kind: Some(Kind::Safety { before: target.id.to_string() }),
            description: format!("before restoring {}/{}", target.run, target.seq),
            ..Save::default()
        };
        let at = project.context.clock.now();
        let id = project.context.ids.checkpoint(at);
        let held = project.store.hold()?;
        let snapshot = project.capture(&id, files, &save.description, at)?;
        Ok(Self { project, id, at, save, snapshot, is_kept: false, _held: held })
    }

    /// Makes it a checkpoint.
    fn keep(mut self) -> Result<Checkpoint, Error> {
        self.is_kept = true;
        let (save, snapshot) = (std::mem::take(&mut self.save), self.snapshot.clone());
        self.project.append(save, self.id, self.at, Some(snapshot))
    }
}

impl Drop for Before<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            // If letting it go fails, gc will find it.
            let _ = self.project.snapshots().map(|snapshots| snapshots.give_up(&self.id));
        }
    }
}

/// Refuses a path that is neither there nor in the checkpoint: it is a mistake of whoever asks for it.
fn must_know(plan: &RestorePlan) -> Result<(), Error> {
    plan.files.unknown.first().map_or(Ok(()), |path| Err(Error::UnknownPath { path: path.clone() }))
}

/// Files that a restore made and that would stay when it is undone, because rules leave them out.
fn left_as_ignored(plan: &RestorePlan, made: &[RepoPath]) -> Vec<RepoPath> {
    let made: HashSet<&RepoPath> = made.iter().collect();
    let left = plan.files.left.iter().filter(|left| left.reason == LeftReason::IgnoredThen);
    left.map(|left| &left.path).filter(|path| made.contains(path)).cloned().collect()
}

/// What an undo has to put back: what was asked for, and what was in its way.
fn touched(wish: &Wish, plan: &RestorePlan) -> Vec<RepoPath> {
    let is_asked = |path: &RepoPath| wish.paths.iter().any(|folder| path.is_within(folder));
    let in_the_way = plan.files.deletes.iter().map(|delete| &delete.path).filter(|path| !is_asked(path));
    let in_the_way = in_the_way.filter(|_| !wish.paths.is_empty());
    wish.paths.iter().chain(in_the_way).cloned().collect()
}

fn done(body: Value) -> Option<RestoreRecord> {
    match serde_json::from_value(body) {
        Ok(Said::Done { record }) => Some(record),
        _ => None,
    }
}

/// What can be undone and redone, newest last.
#[derive(Debug, Default)]
struct Stacks {
    undo: Vec<RestoreRecord>,
    redo: Vec<RestoreRecord>,
}

impl Stacks {
    fn of(records: impl IntoIterator<Item = RestoreRecord>) -> Self {
        let mut stacks = Self::default();
        for record in records {
            match record.verb {
                Verb::Restore => {
                    stacks.undo.push(record);
                    stacks.redo.clear();
                }
                Verb::Undo => {
                    stacks.undo.pop();
                    stacks.redo.push(record);
                }
                Verb::Redo => {
                    stacks.redo.pop();
                    stacks.undo.push(record);
                }
            }
        }
        stacks
    }
}
