//! From blobs to files: line ends, encodings and filter programs on the way back to the work tree.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::capture::Deadline;
use super::git::{Git, GitError, Trust};
use super::objects::{ObjectError, ObjectKind};
use super::rules::{Judge, Rules};
use super::tree::EntryMode;
use super::{Snapshots, handle_of, quarantine};
use crate::model::{ObjectId, RepoPath};

/// Converts blobs to what stands in the work tree. It reads attribute files as they are when it is made and as it
/// comes by them, so a restore writes those first and then makes a converter.
pub struct Converter<'a> {
    snapshots: &'a Snapshots,
    /// The rules read directly; `None` where only git can follow them.
    direct: Option<Direct>,
    /// git with only trusted filters, for what cannot be converted directly.
    program: OnceCell<Programs>,
}

/// git for the two ways of conversion.
struct Programs {
    /// For what goes into a snapshot: raw where a filter fails.
    reading: Git,
    /// For what goes into the work tree: nothing where a required filter fails.
    writing: Git,
    /// The filters that are required.
    required: Vec<String>,
}

/// The rules of the work tree, and where they find objects.
struct Direct {
    judge: Judge,
    odb: gix::odb::Handle,
}

impl std::fmt::Debug for Converter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Converter").field("snapshots", &self.snapshots).finish_non_exhaustive()
    }
}

impl Converter<'_> {
    /// Returns a blob as it stands in the work tree: line ends, encoding and trusted filter programs applied. Links
    /// and what has no conversion come back as they are; where a filter is not trusted, so does the rest.
    pub fn convert(
        &mut self,
        path: &RepoPath,
        mode: EntryMode,
        blob: &ObjectId,
    ) -> Result<Vec<u8>, ObjectError> {
        let bytes = self.snapshots.objects.blob(blob)?;
        if matches!(mode, EntryMode::Link | EntryMode::Submodule) {
            return Ok(bytes);
        }
        self.convert_read(path, blob, bytes)
    }

    /// Returns the `bytes` of a blob as they stand in the work tree as a file.
    pub(super) fn convert_read(
        &mut self,
        path: &RepoPath,
        blob: &ObjectId,
        bytes: Vec<u8>,
    ) -> Result<Vec<u8>, ObjectError> {
        match self.convert_directly(path.as_bytes(), bytes) {
            Some(converted) => Ok(converted),
            None => self.convert_by_git(path, blob),
        }
    }

    fn convert_directly(&mut self, path: &[u8], bytes: Vec<u8>) -> Option<Vec<u8>> {
        let Direct { judge, odb } = self.direct.as_mut()?;
        let possible = !judge.needs_git_for_worktree(path, odb);
        possible.then(|| judge.smudge(path, bytes, odb).ok()).flatten()
    }

    fn convert_by_git(&self, path: &RepoPath, blob: &ObjectId) -> Result<Vec<u8>, ObjectError> {
        let path = [b"--path=", path.as_bytes()].concat();
        let args = ["cat-file", "--filters"].map(OsStr::new);
        let args = [args[0], args[1], OsStr::from_bytes(&path), OsStr::new(blob.as_str())];
        Ok(self.programs()?.writing.run(&args, b"")?)
    }

    /// Returns the filter that a path must go through on its way to the work tree, with the rules read directly;
    /// `None` where only git can follow them.
    pub(super) fn required_directly(&mut self, path: &RepoPath) -> Option<Option<String>> {
        let Direct { judge, odb } = self.direct.as_mut()?;
        Some(judge.required_filter_of(path.as_bytes(), odb))
    }

    /// Returns the filters that are required.
    pub(super) fn required(&self) -> Result<&[String], GitError> {
        Ok(&self.programs()?.required)
    }

    /// Says that a file's `bytes` are what `blob` names, if that can be told without git. A no is no answer: some
    /// conversions depend on more than is known here.
    pub(super) fn is_surely(&mut self, path: &RepoPath, bytes: &[u8], blob: &ObjectId) -> bool {
        let Some(Direct { judge, odb }) = self.direct.as_mut() else { return false };
        if judge.needs_git_to_clean(path.as_bytes(), odb) {
            return false;
        }
        let objects = &self.snapshots.objects;
        let mut index_blob = |buffer: &mut Vec<u8>| objects.blob(blob).ok().map(|blob| *buffer = blob);
        let converted = judge.clean(path.as_bytes(), bytes.to_vec(), &mut index_blob, odb, Deadline::NONE);
        let name = converted.ok().and_then(|bytes| self.snapshots.name_of(ObjectKind::Blob, &bytes).ok());
        name.as_ref() == Some(blob)
    }

    /// Returns git with only trusted filters, able to read what only a private store holds.
    pub(super) fn program(&self) -> Result<&Git, GitError> {
        Ok(&self.programs()?.reading)
    }

    /// Returns the same git for writing files: where a required filter fails, it does too.
    pub(super) fn writing_program(&self) -> Result<&Git, GitError> {
        Ok(&self.programs()?.writing)
    }

    fn programs(&self) -> Result<&Programs, GitError> {
        if let Some(programs) = self.program.get() {
            return Ok(programs);
        }
        let trust = Trust::read(&self.snapshots.rules_git)?;
        let readable = quarantine::join(&self.snapshots.object_dirs());
        let git = self.snapshots.rules_git.with("GIT_ALTERNATE_OBJECT_DIRECTORIES", readable);
        let writing = git.configured(trust.for_writing());
        let reading = git.configured(trust.overrides);
        Ok(self.program.get_or_init(|| Programs { reading, writing, required: trust.required }))
    }
}

impl Snapshots {
    /// Makes a converter of blobs to files.
    pub fn converter(&self) -> Converter<'_> {
        Converter { snapshots: self, direct: self.direct_means(), program: OnceCell::new() }
    }

    /// Converts one blob; for many, [`Snapshots::converter`] costs less.
    pub fn to_worktree(
        &self,
        path: &RepoPath,
        mode: EntryMode,
        blob: &ObjectId,
    ) -> Result<Vec<u8>, ObjectError> {
        self.converter().convert(path, mode, blob)
    }

    fn direct_means(&self) -> Option<Direct> {
        let odb = handle_of(self.odb.as_ref()?);
        let repository = self.user.as_ref().unwrap_or(&self.store);
        let (_, branch) = self.user_refs.head().ok()?;
        let rules = Rules::load(&self.root, repository, branch.as_deref(), self.rules_git.program()).ok()?;
        let rules = Some(rules).filter(|rules| rules.needs_git.is_none())?;
        Some(Direct { judge: rules.judge(None).ok()?, odb })
    }
}
