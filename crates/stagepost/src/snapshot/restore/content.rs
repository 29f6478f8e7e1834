//! Content on its way into and out of a work tree, and what putting files in place needs to know of it.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::error::RestoreError;
use super::task::End;
use crate::model::{ObjectId, RepoPath};
use crate::snapshot::Snapshots;
use crate::snapshot::git::{Git, GitError, Trust};
use crate::snapshot::objects::ObjectKind;
use crate::snapshot::tree::EntryMode;

/// Content by its name.
pub(super) trait Content {
    /// What goes wrong.
    type Error;

    /// Returns the bytes to put at `path`: the blob, converted as git converts on checkout. The blob *must* be
    /// checked against its name.
    fn for_work_tree(&self, path: &RepoPath, mode: EntryMode, id: &ObjectId) -> Result<Vec<u8>, Self::Error>;

    /// Says whether `bytes` at `path` are what `id` names, as git converts on add at that end of the restore.
    fn is(&self, end: End, path: &RepoPath, bytes: &[u8], id: &ObjectId) -> Result<bool, Self::Error>;

    /// Returns the name of `bytes` as they are.
    fn name_of(&self, bytes: &[u8]) -> Result<ObjectId, Self::Error>;
}

/// Whose attributes say how files are converted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Attributes<'a> {
    /// The work tree's: the restore does not change them.
    WorkTree,
    /// Those of the trees at either end, whatever stands in the work tree halfway.
    Trees { before: &'a ObjectId, after: &'a ObjectId },
}

/// Content as the repository converts it.
pub(super) struct Conversion<'a> {
    snapshots: &'a Snapshots,
    attributes: Attributes<'a>,
    /// git with only trusted filters, found out once per restore.
    git: OnceCell<Git>,
}

impl<'a> Conversion<'a> {
    pub(super) fn new(snapshots: &'a Snapshots, attributes: Attributes<'a>) -> Self {
        Self { snapshots, attributes, git: OnceCell::new() }
    }

    fn git(&self, end: End) -> Result<Git, GitError> {
        let git = match self.git.get() {
            Some(git) => git,
            None => {
                let overrides = Trust::read(&self.snapshots.rules_git)?.overrides;
                self.git.get_or_init(|| self.snapshots.git_for_all_objects().configured(overrides))
            }
        };
        Ok(match (self.attributes, end) {
            (Attributes::WorkTree, _) => git.clone(),
            (Attributes::Trees { before, .. }, End::Before) => git.with("GIT_ATTR_SOURCE", before.as_str()),
            (Attributes::Trees { after, .. }, End::After) => git.with("GIT_ATTR_SOURCE", after.as_str()),
        })
    }

    fn converted_name_of(&self, end: End, path: &RepoPath, bytes: &[u8]) -> Result<ObjectId, RestoreError> {
        let path = [b"--path=", path.as_bytes()].concat();
        let args = [OsStr::new("hash-object"), OsStr::from_bytes(&path), OsStr::new("--stdin")];
        let answer = self.git(end)?.run(&args, bytes)?;
        let id = String::from_utf8_lossy(&answer).trim().parse();
        Ok(id.map_err(|_| GitError::Answer { command: "hash-object".to_owned() })?)
    }

    fn converted(&self, path: &RepoPath, id: &ObjectId) -> Result<Vec<u8>, RestoreError> {
        let path = [b"--path=", path.as_bytes()].concat();
        let args = ["cat-file", "--filters"].map(OsStr::new);
        let args = [args[0], args[1], OsStr::from_bytes(&path), OsStr::new(id.as_str())];
        Ok(self.git(End::After)?.run(&args, b"")?)
    }
}

impl Content for Conversion<'_> {
    type Error = RestoreError;

    fn for_work_tree(
        &self,
        path: &RepoPath,
        mode: EntryMode,
        id: &ObjectId,
    ) -> Result<Vec<u8>, RestoreError> {
        let bytes = self.snapshots.objects.blob(id)?;
        if self.name_of(&bytes)? != *id {
            return Err(RestoreError::Damaged { path: path.clone(), id: id.clone() });
        }
        match self.attributes {
            _ if mode == EntryMode::Link => Ok(bytes),
            Attributes::WorkTree => Ok(self.snapshots.to_worktree(path, mode, id)?),
            Attributes::Trees { .. } => self.converted(path, id),
        }
    }

    fn is(&self, end: End, path: &RepoPath, bytes: &[u8], id: &ObjectId) -> Result<bool, RestoreError> {
        Ok(self.converted_name_of(end, path, bytes)? == *id)
    }

    fn name_of(&self, bytes: &[u8]) -> Result<ObjectId, RestoreError> {
        Ok(self.snapshots.name_of(ObjectKind::Blob, bytes)?)
    }
}
