//! Content on its way into and out of a work tree, and what putting files in place needs to know of it.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::error::RestoreError;
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

    /// Returns which of `candidates` stands at `path` with these bytes, as git converts them on add.
    fn which<'c>(
        &self,
        path: &RepoPath,
        mode: EntryMode,
        bytes: &[u8],
        candidates: &[&'c ObjectId],
    ) -> Result<Option<&'c ObjectId>, Self::Error>;
}

/// Content as the repository's attributes convert it.
pub(super) struct Conversion<'a> {
    snapshots: &'a Snapshots,
    /// git with only trusted filters, found out once per restore.
    git: OnceCell<Git>,
}

impl<'a> Conversion<'a> {
    pub(super) fn new(snapshots: &'a Snapshots) -> Self {
        Self { snapshots, git: OnceCell::new() }
    }

    fn git(&self) -> Result<&Git, GitError> {
        if let Some(git) = self.git.get() {
            return Ok(git);
        }
        let rules = &self.snapshots.rules_git;
        let git = rules.configured(Trust::read(rules)?.overrides);
        Ok(self.git.get_or_init(|| git))
    }

    fn name_of(&self, bytes: &[u8]) -> Result<ObjectId, RestoreError> {
        Ok(self.snapshots.name_of(ObjectKind::Blob, bytes)?)
    }

    fn converted_name_of(&self, path: &RepoPath, bytes: &[u8]) -> Result<ObjectId, RestoreError> {
        let path = [b"--path=", path.as_bytes()].concat();
        let args = [OsStr::new("hash-object"), OsStr::from_bytes(&path), OsStr::new("--stdin")];
        let answer = self.git()?.run(&args, bytes)?;
        let id = String::from_utf8_lossy(&answer).trim().parse();
        Ok(id.map_err(|_| GitError::Answer { command: "hash-object".to_owned() })?)
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
        if mode == EntryMode::Link {
            return Ok(bytes);
        }
        Ok(self.snapshots.to_worktree(path, mode, id)?)
    }

    /// Most files are not converted at all, so their own bytes are tried first; git is asked about the rest only.
    fn which<'c>(
        &self,
        path: &RepoPath,
        mode: EntryMode,
        bytes: &[u8],
        candidates: &[&'c ObjectId],
    ) -> Result<Option<&'c ObjectId>, RestoreError> {
        let find = |name: &ObjectId| candidates.iter().copied().find(|candidate| *candidate == name);
        let found = find(&self.name_of(bytes)?);
        if found.is_some() || mode == EntryMode::Link || candidates.is_empty() {
            return Ok(found);
        }
        Ok(find(&self.converted_name_of(path, bytes)?))
    }
}
