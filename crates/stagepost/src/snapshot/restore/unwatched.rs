//! Files that git was told not to look at (assume-unchanged, skip-worktree): a snapshot holds what the index has of
//! them, which may be something else than what stands in the work tree.

use std::collections::HashSet;
use std::path::Path;

use super::content::{Attributes, Conversion};
use super::error::RestoreError;
use super::task::{Failure, Progress, Task, progress};
use super::{Mode, Restore};
use crate::model::{IndexMarks, RepoPath};
use crate::snapshot::Snapshots;
use crate::snapshot::beneath::Root;
use crate::snapshot::compare::{Change, Side};
use crate::snapshot::git::{Git, GitError};
use crate::snapshot::plan::is_asked;
use crate::snapshot::quarantine::on_disk;
use crate::snapshot::tree::EntryMode;

/// Lists the entries of an index that git was told not to look at.
fn marked(git: &Git) -> Result<HashSet<RepoPath>, GitError> {
    let marks = git.unwatched_marks()?;
    Ok(marks.assume_unchanged.into_iter().chain(marks.skip_worktree).collect())
}

impl Snapshots {
    /// Returns those of the files asked for that git was told not to look at and that stand there as neither end of the
    /// restore has them: no checkpoint holds them. Both ends may well say that nothing differs.
    pub(super) fn unwatched(
        &self,
        root: &Root,
        restore: &Restore,
        changes: &[&Change],
    ) -> Result<Vec<RepoPath>, RestoreError> {
        if self.user.is_none() || restore.mode == Mode::Mixed || self.is_all_watched() {
            return Ok(Vec::new());
        }
        let marked = marked(&self.rules_git)?;
        let content = Conversion::new(self, Attributes::WorkTree, None);
        let changed = changes.iter().filter(|change| marked.contains(&change.path));
        let mut tasks: Vec<Task> = changed.map(|change| Task::of(change)).collect();
        let known: HashSet<&RepoPath> = changes.iter().map(|change| &change.path).collect();
        for path in marked.iter().filter(|path| is_asked(path, &restore.paths) && !known.contains(path)) {
            if on_disk(&self.root, path.as_bytes()).symlink_metadata().is_ok() {
                let side = self.side_at(&restore.to.tree, path)?;
                tasks.extend(side.map(|side| Task::of(&unchanged(path, side))));
            }
        }
        let mut unwatched = Vec::new();
        for task in tasks.into_iter().filter(|task| task.path.is_safe()) {
            let stands = || on_disk(&self.root, task.path.as_bytes()).symlink_metadata().is_ok();
            match progress(root, &content, &task) {
                Ok(Progress::Changed) if stands() => unwatched.push(task.path),
                Ok(_) => {}
                Err(Failure::Beneath(error)) => return Err(error.into()),
                Err(Failure::Content(error)) => return Err(error),
            }
        }
        unwatched.sort();
        Ok(unwatched)
    }

    /// Lists the files that git was told not to look at and that are not there, of those asked for that the target holds. Where a
    /// sparse checkout leaves them out, that is as it should be.
    pub(super) fn missing(&self, restore: &Restore) -> Result<Vec<RepoPath>, RestoreError> {
        let mut missing = Vec::new();
        for path in self.absent_marked(restore)? {
            let side = self.side_at(&restore.to.tree, &path)?;
            if side.is_some_and(|side| side.mode != EntryMode::Submodule) {
                missing.push(path);
            }
        }
        if missing.is_empty() || self.rules_git.is_sparse()? { Ok(Vec::new()) } else { Ok(missing) }
    }

    /// Lists the files asked for that git was told not to look at and that are not there.
    fn absent_marked(&self, restore: &Restore) -> Result<Vec<RepoPath>, RestoreError> {
        if self.user.is_none() || restore.mode == Mode::Mixed || self.is_all_watched() {
            return Ok(Vec::new());
        }
        let mut paths: Vec<_> = marked(&self.rules_git)?.into_iter().collect();
        paths.sort();
        paths.retain(|path| is_asked(path, &restore.paths));
        paths.retain(|path| on_disk(&self.root, path.as_bytes()).symlink_metadata().is_err());
        Ok(paths)
    }

    /// Makes changes of the files that were asked for by name, that git was told not to look at, and that are not there: both
    /// snapshots hold what the index has of them.
    pub(super) fn bring_missing(
        &self,
        restore: &Restore,
        changes: &mut Vec<Change>,
    ) -> Result<(), RestoreError> {
        for path in self.absent_marked(restore)? {
            changes.retain(|change| change.path != path);
            let new = self.side_at(&restore.to.tree, &path)?;
            let new = new.filter(|side| !matches!(side.mode, EntryMode::Submodule | EntryMode::Folder));
            changes.extend(new.map(|new| Change { path, old: None, new: Some(new) }));
        }
        Ok(())
    }

    /// Takes out what a sparse checkout leaves out: it is to be there neither before nor after.
    pub(super) fn spare_sparse(
        &self,
        restore: &Restore,
        changes: &mut Vec<Change>,
    ) -> Result<(), RestoreError> {
        let absent: HashSet<_> = self.absent_marked(restore)?.into_iter().collect();
        if !absent.is_empty() && self.rules_git.is_sparse()? {
            changes.retain(|change| !absent.contains(&change.path));
        }
        Ok(())
    }

    /// Takes the marks from files that stand in the work tree: for their sake git would refuse to change their entries.
    /// Returns them, and those of `to` with them, for [`mark_again`].
    pub(super) fn unmark(
        &self,
        git: &Git,
        now: &IndexMarks,
        to: &IndexMarks,
    ) -> Result<IndexMarks, GitError> {
        let stands = |path: &&RepoPath| on_disk(&self.root, path.as_bytes()).symlink_metadata().is_ok();
        let standing = |paths: &[RepoPath]| paths.iter().filter(stands).cloned().collect::<Vec<_>>();
        let (assumed, skipped) = (standing(&now.assume_unchanged), standing(&now.skip_worktree));
        git.mark("--no-assume-unchanged", &assumed)?;
        git.mark("--no-skip-worktree", &skipped)?;
        Ok(IndexMarks {
            intent_to_add: to.intent_to_add.clone(),
            assume_unchanged: [assumed, to.assume_unchanged.clone()].concat(),
            skip_worktree: [skipped, to.skip_worktree.clone()].concat(),
        })
    }
}

fn unchanged(path: &RepoPath, side: Side) -> Change {
    Change { path: path.clone(), old: Some(side.clone()), new: Some(side) }
}

/// Gives the entries that are there these marks, and those that are to be added later their place if the work tree of `root` has
/// them.
pub(super) fn mark_again(git: &Git, root: &Path, marks: &IndexMarks) -> Result<(), GitError> {
    if marks.is_empty() {
        return Ok(());
    }
    let answer = git.run(&["ls-files", "-z"], b"")?;
    let there: HashSet<&[u8]> = answer.split(|byte| *byte == 0).collect();
    let intended = marks.intent_to_add.iter().filter(|path| {
        let stands = on_disk(root, path.as_bytes()).symlink_metadata().is_ok_and(|found| !found.is_dir());
        stands && !there.contains(path.as_bytes())
    });
    let list: Vec<u8> = intended.flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
    if !list.is_empty() {
        let args = ["add", "--intent-to-add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul"];
        git.run(&args, &list)?;
    }
    let kept = |paths: &'_ [RepoPath]| -> Vec<RepoPath> {
        paths.iter().filter(|path| there.contains(path.as_bytes())).cloned().collect()
    };
    git.mark("--assume-unchanged", &kept(&marks.assume_unchanged))?;
    git.mark("--skip-worktree", &kept(&marks.skip_worktree))
}
