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
use super::{Restore, Snapshots, selected};
use crate::model::{ObjectId, RepoPath};
use crate::snapshot::compare::Change;
use crate::snapshot::git::Git;
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
        if !changes.iter().any(|change| change.path.parts().last() == Some(RULES)) {
            return Ok(Vec::new());
        }
        let absent: HashSet<&RepoPath> = restore.to.absent.iter().collect();
        let deleted = selected(changes, &restore.paths).into_iter();
        let deleted = deleted.filter(|change| change.new.is_none() && !absent.contains(&change.path));
        // This command takes no literal paths, so they begin as none with a meaning of its own does.
        let asked: Vec<u8> =
            deleted.flat_map(|change| [b"./", change.path.as_bytes(), b"\0"].concat()).collect();
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        // git looks for ignore files in a work tree, so it gets one with nothing else in it.
        let rules = tempfile::tempdir_in(&self.folder).map_err(failed("make a folder in", &self.folder))?;
        self.write_rules(&restore.to.tree, rules.path())?;
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
        Ok(ignored.map(RepoPath::from_bytes).collect())
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

fn failed(attempted: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RestoreError {
    move |source| RestoreError::Io { attempted, path: path.into(), source }
}
