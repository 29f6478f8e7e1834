//! From blobs to files: line ends, encodings and filter programs on the way back to the work tree.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::git::{Git, Trust};
use super::objects::ObjectError;
use super::rules::{Judge, Rules};
use super::tree::EntryMode;
use super::{Snapshots, handle_of, quarantine};
use crate::model::{ObjectId, RepoPath};

/// Converts blobs to what stands in the work tree. It reads attribute files as they are when it is made and as it
/// comes by them, so a restore writes those first and then makes a converter.
pub struct Converter<'a> {
    snapshots: &'a Snapshots,
    means: Means,
}

enum Means {
    Direct { judge: Box<Judge>, odb: gix::odb::Handle },
    Program(Git),
}

impl std::fmt::Debug for Converter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Converter").field("snapshots", &self.snapshots).finish_non_exhaustive()
    }
}

impl Converter<'_> {
    /// Returns a blob as it stands in the work tree: line ends, encoding and trusted filter programs applied. Links
    /// and what has no conversion come back as they are; where a filter is not trusted, so does the rest.
    pub fn to_worktree(
        &mut self,
        path: &RepoPath,
        mode: EntryMode,
        blob: &ObjectId,
    ) -> Result<Vec<u8>, ObjectError> {
        if matches!(mode, EntryMode::Link | EntryMode::Submodule) {
            return self.snapshots.objects.blob(blob);
        }
        match &mut self.means {
            Means::Direct { judge, odb } => {
                let bytes = self.snapshots.objects.blob(blob)?;
                judge.smudge(path.as_bytes(), bytes, odb).map_err(|error| ObjectError::Convert {
                    path: path.clone(),
                    source: std::io::Error::other(error.to_string()),
                })
            }
            Means::Program(git) => {
                let path = [b"--path=", path.as_bytes()].concat();
                let args = ["cat-file", "--filters"].map(OsStr::new);
                Ok(git.run(&[args[0], args[1], OsStr::from_bytes(&path), OsStr::new(blob.as_str())], b"")?)
            }
        }
    }
}

impl Snapshots {
    /// Makes a converter of blobs to files.
    pub fn converter(&self) -> Result<Converter<'_>, ObjectError> {
        let means = match self.direct_means() {
            Some(means) => means,
            None => {
                let git = self.rules_git.configured(Trust::read(&self.rules_git)?.overrides);
                let readable = quarantine::join(&self.object_dirs());
                Means::Program(git.with("GIT_ALTERNATE_OBJECT_DIRECTORIES", readable))
            }
        };
        Ok(Converter { snapshots: self, means })
    }

    /// Converts one blob; for many, [`Snapshots::converter`] costs less.
    pub fn to_worktree(
        &self,
        path: &RepoPath,
        mode: EntryMode,
        blob: &ObjectId,
    ) -> Result<Vec<u8>, ObjectError> {
        self.converter()?.to_worktree(path, mode, blob)
    }

    fn direct_means(&self) -> Option<Means> {
        let odb = handle_of(self.odb.as_ref()?);
        let repository = self.user.as_ref().unwrap_or(&self.store);
        let (_, branch) = self.user_refs.head().ok()?;
        let rules = Rules::load(&self.root, repository, branch.as_deref(), self.rules_git.program()).ok()?;
        let rules = Some(rules).filter(|rules| rules.needs_git.is_none())?;
        Some(Means::Direct { judge: Box::new(rules.judge(None).ok()?), odb })
    }
}
