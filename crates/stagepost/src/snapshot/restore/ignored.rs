//! What a target's own ignore rules leave out.
//!
//! A file that git sees now may have been ignored when the target was taken, and then it may have been there: the target
//! cannot tell. So it is not deleted. It matters only where ignore files differ between now and then.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::error::RestoreError;
use super::{FilePlan, Left, LeftReason, Restore, Snapshots, selected};
use crate::model::{ObjectId, RepoPath};
use crate::snapshot::compare::Change;
use crate::snapshot::git::Git;
use crate::snapshot::plan::ancestors;
use crate::snapshot::tree::EntryMode;

const RULES: &[u8] = b".gitignore";

impl Snapshots {
    /// Lists the files that a restore would delete and that the target's ignore files leave out, unless it is known that
    /// they were not there.
    pub(super) fn ignored_then(
        &self,
        restore: &Restore,
        changes: &[Change],
    ) -> Result<Vec<RepoPath>, RestoreError> {
        if !changes.iter().any(is_rules) {
            return Ok(Vec::new());
        }
        let absent: HashSet<&RepoPath> = restore.to.absent.iter().collect();
        let deleted = selected(changes, &restore.paths).into_iter();
        let deleted = deleted.filter(|change| change.new.is_none() && !absent.contains(&change.path));
        self.left_out_by(&restore.to.tree, deleted.map(|change| change.path.as_bytes()))
    }

    /// Names what is ignored now and will not be after the restore: it stays, but the next snapshot holds it.
    pub(super) fn add_ignored_now(
        &self,
        plan: &mut FilePlan,
        restore: &Restore,
        changes: &[&Change],
    ) -> Result<(), RestoreError> {
        if !changes.iter().any(|change| is_rules(change)) {
            return Ok(());
        }
        let args = ["ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory"];
        let answer = self.rules_git.run(&args, b"")?;
        // A folder has a slash at its end, and the rules ask for it.
        let ignored = answer.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        let without_slash = |path: &[u8]| RepoPath::from_bytes(path.strip_suffix(b"/").unwrap_or(path));
        let still: HashSet<_> = self.left_out_by(&restore.to.tree, ignored.clone())?.into_iter().collect();
        let bare = ignored.filter(|path| !still.contains(&RepoPath::from_bytes(*path))).map(without_slash);
        let bare: HashSet<_> = bare.filter(|path| !self.is_ours(path)).collect();
        // git names a folder of nothing but ignored files, and those too.
        let is_within_one = |path: &RepoPath| {
            ancestors(path.as_bytes()).any(|above| bare.contains(&RepoPath::from_bytes(above)))
        };
        for path in bare.iter().filter(|path| !is_within_one(path)).cloned() {
            if !self.holds(&restore.from.tree, &path)? && !plan.capture_first.contains(&path) {
                plan.left.push(Left { path, reason: LeftReason::IgnoredNow });
            }
        }
        plan.left.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(())
    }

    /// Picks those of the files of `now` that were there, ignored, when `before` was taken, as far as that can be told: its
    /// rules leave them out and it does not hold them. There are none where the rules have not changed since.
    pub(crate) fn ignored_before<'p>(
        &self,
        before: &ObjectId,
        now: &ObjectId,
        paths: impl Iterator<Item = &'p RepoPath>,
    ) -> Result<Vec<RepoPath>, RestoreError> {
        let changes = self.objects.diff_trees(Some(before), Some(now))?;
        if !changes.iter().any(is_rules) {
            return Ok(Vec::new());
        }
        let new: HashSet<_> =
            changes.iter().filter(|change| change.old.is_none()).map(|change| &change.path).collect();
        self.left_out_by(before, paths.filter(|path| new.contains(path)).map(RepoPath::as_bytes))
    }

    /// Picks the paths that the ignore files of a tree leave out, in order.
    fn left_out_by<'p>(
        &self,
        tree: &ObjectId,
        paths: impl Iterator<Item = &'p [u8]>,
    ) -> Result<Vec<RepoPath>, RestoreError> {
        // This command takes no literal paths, so they begin as none with a meaning of its own does.
        let asked: Vec<u8> = paths.flat_map(|path| [b"./", path, b"\0"].concat()).collect();
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        // git looks for ignore files in a work tree, so it gets one with nothing else in it.
        let rules = tempfile::tempdir_in(&self.folder).map_err(failed("make a folder in", &self.folder))?;
        self.write_rules(tree, rules.path())?;
        let repository = self.user.as_ref().unwrap_or(&self.store);
        let git = Git::new(self.rules_git.program().clone(), &repository.git_dir, rules.path());
        let git = git.with("GIT_LITERAL_PATHSPECS", "0");
        let args = ["check-ignore", "--no-index", "-z", "--stdin"];
        let answer = git.try_run(&args, &asked)?;
        // 1 says that none is ignored.
        if !matches!(answer.status.code(), Some(0 | 1)) {
            return Err(answer.into_error(&args).into());
        }
        let ignored = answer.stdout.split(|byte| *byte == 0).filter_map(|path| path.strip_prefix(b"./"));
        let mut ignored: Vec<_> = ignored.map(RepoPath::from_bytes).collect();
        ignored.sort();
        Ok(ignored)
    }

    /// Writes the ignore files of a tree, and nothing else of it. No name in the tree leads out of `folder`.
    fn write_rules(&self, tree: &ObjectId, folder: &Path) -> Result<(), RestoreError> {
        for entry in self.objects.tree(tree)? {
            let one_name = RepoPath::from_bytes(&*entry.name).is_safe() && !entry.name.contains(&b'/');
            let place = folder.join(OsStr::from_bytes(&entry.name));
            match entry.mode {
                EntryMode::Folder if one_name => self.write_rules(&entry.id, &place)?,
                EntryMode::File | EntryMode::Executable if entry.name == RULES => {
                    let rules = self.objects.blob(&entry.id)?;
                    fs::create_dir_all(folder).map_err(failed("make", folder))?;
                    fs::write(&place, rules).map_err(failed("write", &place))?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn is_rules(change: &Change) -> bool {
    change.path.parts().last() == Some(RULES)
}

fn failed(attempted: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RestoreError {
    move |source| RestoreError::Io { attempted, path: path.into(), source }
}
