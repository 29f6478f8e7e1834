//! Putting a snapshot back: plan, apply, and after a kill finish or revert.
//!
//! A restore goes from one point to another: from what is there now, as a safety snapshot holds it, to what the
//! target holds. Both are stored, so the same restore can be applied again or turned round at any time: a path that
//! is as the target has it is done, one that is as it was is still to do, anything else was changed by someone else
//! and is not touched. The cost is that of what differs; the rest of the work tree is not visited.
//!
//! What the caller does:
//!
//! 1. [`plan_restore`](Snapshots::plan_restore) from a [`Look`] (a dry run ends here), or straight from 2;
//! 2. capture the safety snapshot, with the plan's `capture_first` as forced paths, and plan again from it;
//! 3. write down the [`Restore`] where a kill cannot take it;
//! 4. [`apply_restore`](Snapshots::apply_restore); on an error, [`revert_restore`](Snapshots::revert_restore);
//! 5. strike out what 3 wrote down. Whoever finds it later calls [`recover_restore`](Snapshots::recover_restore).

mod attributes;
mod content;
mod error;
mod files;
mod head;
mod ignored;
mod index;
mod parallel;
mod place;
mod position;
mod staging;
mod survey;
mod task;
mod unwatched;

use std::ops::ControlFlow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use super::beneath::Error as FileError;
use super::beneath::{Node, Root, name};
use super::capture::Look;
use super::compare::Side;
pub use super::plan::{Delete, FilePlan, Left, LeftReason, Refusal, Write};
use super::plan::{Facts, decide, selected};
use super::repository::Repository;
use super::tree::EntryMode;
use super::{Change, Snapshots, reference};
use crate::lock::Lock;
use crate::model::{IndexMarks, ObjectId, RepoPath, Skipped, Snapshot};
use attributes::is_attributes;
use content::{Attributes, Conversion};
pub use error::RestoreError;
use files::{Done, Files, OnChange, remove_temporaries};
pub use position::Position;
use position::marks_are_as;
pub use staging::Staging;
use task::{Progress, Task, progress};

/// How long to wait for a capture or another restore of the same work tree.
const PATIENCE: Duration = Duration::from_secs(10);

/// Of so many paths or more, a cut off restore takes back what it did if most is still to do: nobody is to wait for long. So many of
/// them are looked at to tell.
const VERY_MANY: usize = 1000;
const LOOKS: usize = 64;

/// What a restore puts back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The files; HEAD, branch and index stay.
    Files,
    /// HEAD, branch and index; the files stay.
    Mixed,
    /// Files, HEAD, branch and index.
    Hard,
}

/// One end of a restore: files, HEAD, branch and index, and what could not be held of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The tree of the work tree.
    pub tree: ObjectId,
    /// HEAD, branch and index.
    #[serde(flatten)]
    pub position: Position,
    /// What the index says of files and no tree can hold.
    #[serde(default, skip_serializing_if = "IndexMarks::is_empty")]
    pub marks: IndexMarks,
    /// What was there and is not in the tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// What is known not to have been there, also where the ignore rules in the tree would have left it out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<RepoPath>,
    /// What may have been there although neither the tree nor its ignore rules tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<RepoPath>,
}

impl From<&Snapshot> for Point {
    fn from(snapshot: &Snapshot) -> Self {
        let (tree, marks, skipped) =
            (snapshot.tree.clone(), snapshot.marks.clone(), snapshot.skipped.clone());
        Self { tree, position: snapshot.into(), marks, skipped, absent: Vec::new(), kept: Vec::new() }
    }
}

impl From<&Look> for Point {
    fn from(look: &Look) -> Self {
        let (tree, marks, skipped) = (look.tree.clone(), look.marks.clone(), look.skipped.clone());
        Self { tree, position: look.into(), marks, skipped, absent: Vec::new(), kept: Vec::new() }
    }
}

/// A restore: everything needed to plan it, to do it, and after a kill to finish or revert it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// What is there now.
    pub from: Point,
    /// What will be there.
    pub to: Point,
    /// What is put back.
    pub mode: Mode,
    /// The files and folders asked for; none means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<RepoPath>,
    /// Whether there is no such branch as HEAD goes to, so that it goes again if this is reverted. The plan knows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub makes_branch: bool,
}

/// What a restore will do. Nothing was touched to make it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RestorePlan {
    /// What is put back.
    pub mode: Mode,
    /// What happens to the files.
    #[serde(flatten)]
    pub files: FilePlan,
    /// Where HEAD, branch and index go, if the mode moves them and they are elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<Move>,
    #[serde(skip)]
    restore: Restore,
}

impl RestorePlan {
    /// Says why it must not be done; empty if it may.
    pub fn refusals(&self) -> &[Refusal] {
        &self.files.refusals
    }

    /// Says whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.files.writes.is_empty() && self.files.deletes.is_empty() && self.moves.is_none()
    }

    /// Returns the restore that this is the plan of, to be written down before it is applied.
    pub fn restore(&self) -> &Restore {
        &self.restore
    }
}

/// HEAD, branch and index before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Move {
    /// Where they are.
    pub from: Position,
    /// Where they go.
    pub to: Position,
}

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Restored {
    /// How many files were written.
    pub written: usize,
    /// How many files were deleted.
    pub deleted: usize,
    /// How many files were already as they should be.
    pub already: usize,
    /// Files that someone else changed meanwhile; they were left. Only reverting does that.
    pub changed: Vec<RepoPath>,
    /// Files that were left because git was told not to look at them (sparse checkout, assume-unchanged), so that no
    /// snapshot holds what stands there.
    pub unwatched: Vec<RepoPath>,
    /// What happened to HEAD and its branch.
    pub head: Moved,
    /// What happened to the index.
    pub index: Moved,
}

/// What became of a restore that had been cut off, and what was done for that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovered {
    /// It was finished.
    Finished(Restored),
    /// It was taken back.
    Reverted(Restored),
}

/// What happened to HEAD or index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Moved {
    /// It stayed: the mode does not move it, or it was there already.
    No,
    /// It is where it should be.
    Yes,
    /// Someone else moved it meanwhile; it was left. Only reverting does that.
    Left,
}

/// Called before each step with the path it is about; breaking stops the restore there.
pub type OnStep<'a> = &'a mut dyn FnMut(&RepoPath) -> ControlFlow<()>;

impl Snapshots {
    /// Decides what a restore will do, and touches nothing.
    pub fn plan_restore(&self, restore: &Restore) -> Result<RestorePlan, RestoreError> {
        let root = Root::open(&self.root)?;
        let changes = self.changes_of(restore)?;
        let selected = selected(&changes, &restore.paths);
        let obstacles = survey::survey(&root, &selected, &restore.from.skipped)?;
        let missing = if restore.paths.is_empty() { self.missing(restore)? } else { Vec::new() };
        let unwatched = self.unwatched(&root, restore, &selected)?;
        let ignored = self.ignored_then(restore, &changes)?;
        let facts = self.facts(restore, &changes, &ignored);
        let mut files =
            decide(Facts { obstacles: &obstacles, unwatched: &unwatched, missing: &missing, ..facts });
        self.add_ignored_now(&mut files, restore, &selected)?;
        files.unknown = self.unknown_paths(restore)?;
        files.refusals.extend(self.repository_refusals(restore)?);
        let (from, to) = (&restore.from.position, &restore.to.position);
        let marked = marks_are_as(&restore.from.marks, &restore.to.marks);
        let moves = restore.mode != Mode::Files && (from != to || !marked);
        let moves = moves.then(|| Move { from: from.clone(), to: to.clone() });
        let restore = Restore { makes_branch: self.makes_branch(restore)?, ..restore.clone() };
        Ok(RestorePlan { mode: restore.mode, files, moves, restore })
    }

    /// Does what a plan says, durably, and reads back what it wrote. Stops at the first path that someone changed
    /// since the plan's `from` was captured, before touching it.
    pub fn apply_restore(&self, plan: &RestorePlan, on_step: OnStep<'_>) -> Result<Restored, RestoreError> {
        if !plan.refusals().is_empty() {
            return Err(RestoreError::Refused { refusals: plan.refusals().to_vec() });
        }
        if !plan.files.capture_first.is_empty() {
            return Err(RestoreError::CaptureFirst { paths: plan.files.capture_first.clone() });
        }
        let _lock = Lock::take(&self.folder.join("lock"), PATIENCE)?;
        let mut restored = self.carry_out(&plan.restore, Task::all(&plan.files), OnChange::Stop, on_step)?;
        let left = plan.files.left.iter().filter(|left| left.reason == LeftReason::Unwatched);
        restored.unwatched.extend(left.map(|left| left.path.clone()));
        restored.unwatched.sort();
        Ok(restored)
    }

    /// Finishes a restore that was cut off, or takes it back where that is not possible, or where it had very much to do and less than
    /// half of it is done.
    pub fn recover_restore(&self, restore: &Restore, on_step: OnStep<'_>) -> Result<Recovered, RestoreError> {
        let _lock = Lock::take(&self.folder.join("lock"), PATIENCE)?;
        let tasks = self.tasks_of(restore)?;
        if self.has_hardly_begun(restore, &tasks)
            && let Ok(reverted) = self.revert(restore, tasks.clone(), on_step)
        {
            return Ok(Recovered::Reverted(reverted));
        }
        match self.recover(restore, tasks.clone(), OnChange::Stop, on_step) {
            Ok(finished) => Ok(Recovered::Finished(finished)),
            Err(_) => self.revert(restore, tasks, on_step).map(Recovered::Reverted),
        }
    }

    /// Whether a restore of very many paths has most of them still to do. Either way is right, so what cannot be looked at does
    /// not count.
    fn has_hardly_begun(&self, restore: &Restore, tasks: &[Task]) -> bool {
        if tasks.len() < VERY_MANY {
            return false;
        }
        let Ok(root) = Root::open(&self.root) else { return false };
        let index = restore.to.position.index_tree.as_ref();
        let content = Conversion::new(self, attributes_of(restore, tasks), index);
        let looks = tasks.iter().step_by(tasks.len() / LOOKS);
        let done = looks.clone().filter(|task| matches!(progress(&root, &content, task), Ok(Progress::Done)));
        2 * done.count() < looks.count()
    }

    /// Finishes a restore that was cut off; also right when it never began or is complete. Stops at a path that is
    /// neither as it was nor as it should be.
    pub fn finish_restore(&self, restore: &Restore, on_step: OnStep<'_>) -> Result<Restored, RestoreError> {
        let _lock = Lock::take(&self.folder.join("lock"), PATIENCE)?;
        let tasks = self.tasks_of(restore)?;
        self.recover(restore, tasks, OnChange::Stop, on_step)
    }

    /// Takes back a restore that was cut off, or that is complete. What someone else changed meanwhile is left and
    /// reported.
    pub fn revert_restore(&self, restore: &Restore, on_step: OnStep<'_>) -> Result<Restored, RestoreError> {
        let _lock = Lock::take(&self.folder.join("lock"), PATIENCE)?;
        self.revert(restore, self.tasks_of(restore)?, on_step)
    }

    fn revert(
        &self,
        restore: &Restore,
        tasks: Vec<Task>,
        on_step: OnStep<'_>,
    ) -> Result<Restored, RestoreError> {
        let tasks = tasks.into_iter().map(Task::reversed).collect();
        let reversed = Restore { from: restore.to.clone(), to: restore.from.clone(), ..restore.clone() };
        let reverted = self.recover(&reversed, tasks, OnChange::Leave, on_step)?;
        if restore.makes_branch {
            self.unmake_branch(&restore.to.position)?;
        }
        Ok(reverted)
    }

    fn recover(
        &self,
        restore: &Restore,
        tasks: Vec<Task>,
        on_change: OnChange,
        on_step: OnStep<'_>,
    ) -> Result<Restored, RestoreError> {
        remove_temporaries(&Root::open(&self.root)?, &tasks)?;
        if let Some(user) = &self.user {
            self.remove_index_leftovers(user)?;
        }
        if restore.mode != Mode::Files {
            self.free_branches(restore)?;
        }
        self.carry_out(restore, tasks, on_change, on_step)
    }

    fn carry_out(
        &self,
        restore: &Restore,
        tasks: Vec<Task>,
        on_change: OnChange,
        on_step: OnStep<'_>,
    ) -> Result<Restored, RestoreError> {
        if on_change == OnChange::Stop {
            self.refuse(restore)?;
        }
        let root = Root::open(&self.root)?;
        let index = restore.to.position.index_tree.as_ref();
        let content = Conversion::new(self, attributes_of(restore, &tasks), index);
        let Done { written, deleted, already, unwatched, changed } =
            Files::new(&root, &content, on_change, &mut *on_step).apply(&tasks)?;
        let (index, head) = match (&self.user, restore.mode) {
            (Some(user), Mode::Mixed | Mode::Hard) => {
                self.move_repository(user, restore, on_change, on_step)?
            }
            _ => (Moved::No, Moved::No),
        };
        Ok(Restored { written, deleted, already, changed, unwatched, head, index })
    }

    /// A git that was killed while it moved HEAD left its locks.
    fn free_branches(&self, restore: &Restore) -> Result<(), RestoreError> {
        let branches = [&restore.from, &restore.to].map(|point| point.position.branch.as_deref());
        let refs: Vec<_> = branches.into_iter().flatten().map(reference).collect();
        self.free_refs(&refs).map_err(|source| RestoreError::Io {
            attempted: "remove a lock that git left in",
            path: self.root.join(".git"),
            source,
        })
    }

    /// Looks once more, before the first file is touched, whether HEAD and index may move.
    fn refuse(&self, restore: &Restore) -> Result<(), RestoreError> {
        let refusals = self.repository_refusals(restore)?;
        if refusals.is_empty() { Ok(()) } else { Err(RestoreError::Refused { refusals }) }
    }

    fn move_repository(
        &self,
        user: &Repository,
        restore: &Restore,
        on_change: OnChange,
        on_step: OnStep<'_>,
    ) -> Result<(Moved, Moved), RestoreError> {
        let (from, to) = (&restore.from.position, &restore.to.position);
        stop_if_asked(on_step)?;
        let index = moved(self.put_index(user, &restore.from, &restore.to), on_change)?;
        stop_if_asked(on_step)?;
        let head = moved(self.move_head(from, to), on_change)?;
        stop_if_asked(on_step)?;
        Ok((index, head))
    }

    /// How the target differs from what is there; nothing, if the files stay.
    fn changes_of(&self, restore: &Restore) -> Result<Vec<Change>, RestoreError> {
        if restore.mode == Mode::Mixed {
            return Ok(Vec::new());
        }
        let (from, to) = (&restore.from.tree, &restore.to.tree);
        let mut changes = self.objects.diff_trees(Some(from), Some(to))?;
        match restore.paths.is_empty() {
            true => {
                changes.extend(self.converted_otherwise(&changes, from, to)?);
                self.spare_sparse(restore, &mut changes)?;
            }
            false => self.bring_missing(restore, &mut changes)?,
        }
        Ok(changes)
    }

    /// Picks the files and links that stand in the work tree and that a tree of it does not hold.
    pub(crate) fn stand_unheld(
        &self,
        paths: &[RepoPath],
        tree: &ObjectId,
    ) -> Result<Vec<RepoPath>, RestoreError> {
        let root = Root::open(&self.root)?;
        let mut found = Vec::new();
        for path in paths.iter().filter(|path| path.is_safe()) {
            // A path that leads through a link or a file is not there.
            let Ok(Some(folder)) = root.folder_of(path.as_bytes()) else { continue };
            let node = folder.node(name(path.as_bytes()))?;
            if matches!(node, Node::File(_) | Node::Link(_)) && !self.holds(tree, path)? {
                found.push(path.clone());
            }
        }
        Ok(found)
    }

    /// Picks the paths that a tree does not hold.
    pub(crate) fn not_in(
        &self,
        tree: &ObjectId,
        paths: Vec<RepoPath>,
    ) -> Result<Vec<RepoPath>, RestoreError> {
        let mut missing = Vec::new();
        for path in paths {
            if !self.holds(tree, &path)? {
                missing.push(path);
            }
        }
        Ok(missing)
    }

    /// Paths that were asked for and are at neither end.
    fn unknown_paths(&self, restore: &Restore) -> Result<Vec<RepoPath>, RestoreError> {
        let mut unknown = Vec::new();
        for path in &restore.paths {
            if !self.holds(&restore.from.tree, path)? && !self.holds(&restore.to.tree, path)? {
                unknown.push(path.clone());
            }
        }
        Ok(unknown)
    }

    /// Says whether a tree holds a file or folder at `path`.
    fn holds(&self, tree: &ObjectId, path: &RepoPath) -> Result<bool, RestoreError> {
        Ok(path.as_bytes().is_empty() || self.side_at(tree, path)?.is_some())
    }

    /// What a tree holds at `path`, be it a file or a folder.
    fn side_at(&self, tree: &ObjectId, path: &RepoPath) -> Result<Option<Side>, RestoreError> {
        let mut found = None;
        let mut folder = Some(tree.clone());
        for part in path.parts() {
            let Some(id) = folder else { return Ok(None) };
            let Some(entry) = self.objects.tree(&id)?.into_iter().find(|entry| entry.name == part) else {
                return Ok(None);
            };
            folder = (entry.mode == EntryMode::Folder).then(|| entry.id.clone());
            found = Some(Side { mode: entry.mode, id: entry.id });
        }
        Ok(found)
    }

    /// The tasks of a restore that was planned and allowed before: what is on disk now does not count.
    fn tasks_of(&self, restore: &Restore) -> Result<Vec<Task>, RestoreError> {
        let changes = self.changes_of(restore)?;
        let ignored = self.ignored_then(restore, &changes)?;
        let files = decide(self.facts(restore, &changes, &ignored));
        if files.refusals.is_empty() {
            return Ok(Task::all(&files));
        }
        Err(RestoreError::Refused { refusals: files.refusals })
    }

    fn facts<'a>(
        &'a self,
        restore: &'a Restore,
        changes: &'a [Change],
        ignored_then: &'a [RepoPath],
    ) -> Facts<'a> {
        Facts {
            changes,
            ignored_then,
            kept: &restore.to.kept,
            paths: &restore.paths,
            obstacles: &[],
            unwatched: &[],
            missing: &[],
            skipped_now: &restore.from.skipped,
            skipped_then: &restore.to.skipped,
            own_records: &self.exclude,
        }
    }

    fn repository_refusals(&self, restore: &Restore) -> Result<Vec<Refusal>, RestoreError> {
        if restore.mode == Mode::Files {
            return Ok(Vec::new());
        }
        if !restore.paths.is_empty() {
            return Ok(vec![Refusal::PathsNeedFiles]);
        }
        let Some(user) = &self.user else { return Ok(vec![Refusal::NoRepository]) };
        let to = &restore.to.position;
        let mut refusals = position::refusals(&restore.from.position, to, &self.circumstances(user, to)?);
        refusals.extend(self.gone_head(to)?.map(|commit| Refusal::HeadGone { commit }));
        Ok(refusals)
    }

    /// Says why HEAD and index may not go to a point, as far as that can be told without a look at files and index.
    pub(crate) fn refuse_early(&self, to: &Point, mode: Mode) -> Result<Vec<Refusal>, RestoreError> {
        let (head, branch) = self.user_refs.head()?;
        let position = Position { head, branch, ..to.position.clone() };
        let from = Point { position, ..to.clone() };
        self.repository_refusals(&Restore {
            from,
            to: to.clone(),
            mode,
            paths: Vec::new(),
            makes_branch: false,
        })
    }

    /// The commit that HEAD goes to, if the repository does not have it. Snapshots that are kept apart keep no commit of the
    /// user's.
    fn gone_head(&self, to: &Position) -> Result<Option<ObjectId>, RestoreError> {
        let Some(commit) = to.head.as_ref().filter(|_| self.is_apart() || self.elsewhere.is_some()) else {
            return Ok(None);
        };
        let there = self.rules_git.try_run(&["cat-file", "-e", commit.as_str()], b"")?.status.success();
        Ok((!there).then(|| commit.clone()))
    }
}

/// What someone else moved meanwhile is left where that is asked for, as with files.
fn moved(result: Result<bool, RestoreError>, on_change: OnChange) -> Result<Moved, RestoreError> {
    match result {
        Ok(true) => Ok(Moved::Yes),
        Ok(false) => Ok(Moved::No),
        Err(RestoreError::HeadMoved | RestoreError::IndexChanged) if on_change == OnChange::Leave => {
            Ok(Moved::Left)
        }
        Err(error) => Err(error),
    }
}

/// A restore of everything that changes attributes converts by those of its trees. One of single paths goes by what
/// stands in the work tree, for that is what git will go by afterwards.
fn attributes_of<'a>(restore: &'a Restore, tasks: &[Task]) -> Attributes<'a> {
    if !tasks.iter().any(|task| is_attributes(&task.path)) {
        return Attributes::WorkTree;
    }
    match &restore.paths[..] {
        [] => Attributes::Trees { before: &restore.from.tree, after: &restore.to.tree },
        _ => Attributes::WorkTreeChanging,
    }
}

fn stop_if_asked(on_step: OnStep<'_>) -> Result<(), RestoreError> {
    match on_step(&RepoPath::from(".git")) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(RestoreError::Interrupted),
    }
}
