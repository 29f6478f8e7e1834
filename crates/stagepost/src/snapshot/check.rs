//! Checking that a snapshot is whole: every object it needs is there and is what its name says.

use std::collections::HashSet;

use super::objects::{ObjectError, ObjectKind, Objects};
use super::tree::EntryMode;
use super::{GitError, Snapshots};
use crate::model::{ObjectId, RepoPath, Snapshot};

/// What is wrong with a snapshot.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// An object is missing, unreadable or malformed.
    #[error("the snapshot is damaged {}", if path.as_bytes().is_empty() { "at its root".to_owned() } else { format!("at `{path}`") })]
    Object {
        /// The path that needs it; empty for the commit and the root.
        path: RepoPath,
        /// What is wrong with it.
        source: ObjectError,
    },
    /// An object's content does not fit its name.
    #[error("object {id} of `{path}` has other content than its name says")]
    Content {
        /// The path that needs it.
        path: RepoPath,
        /// The object.
        id: ObjectId,
    },
    /// The commit does not hold what the record says.
    #[error("commit {commit} does not hold what the record says")]
    Record {
        /// The commit.
        commit: ObjectId,
    },
    /// git could not be asked.
    #[error("failed to check the snapshot")]
    Git(#[from] GitError),
}

impl Snapshots {
    /// Checks that every object of a snapshot is there and hashes to its name, and that its commit says what the
    /// record says. HEAD's own history is git's to check.
    pub fn check(&self, snapshot: &Snapshot) -> Result<(), Damage> {
        let commit = self.checked(&self.objects, &snapshot.commit, ObjectKind::Commit, &[])?;
        let commit = super::Commit::parse(&commit);
        if commit.is_none_or(|commit| commit.tree != snapshot.tree) {
            return Err(Damage::Record { commit: snapshot.commit.clone() });
        }
        let mut seen = if self.store.partial { self.promised(snapshot) } else { HashSet::new() };
        for tree in [Some(&snapshot.tree), snapshot.index_tree.as_ref()].into_iter().flatten() {
            self.check_tree(tree, &[], &mut seen)?;
        }
        Ok(())
    }

    /// Lists what a partial clone does not have of HEAD's files: it is with the remote, and a snapshot of them shares it.
    fn promised(&self, snapshot: &Snapshot) -> HashSet<ObjectId> {
        let head = snapshot.head.as_ref().and_then(|head| self.objects.commit(head).ok());
        let (mut missing, mut folders) = (HashSet::new(), Vec::from_iter(head.map(|head| head.tree)));
        while let Some(folder) = folders.pop() {
            let Ok(entries) = self.objects.tree(&folder) else {
                missing.insert(folder);
                continue;
            };
            for entry in entries {
                match entry.mode {
                    EntryMode::Folder => folders.push(entry.id),
                    EntryMode::Submodule => {}
                    _ if matches!(self.objects.find(&entry.id), Ok(None)) => _ = missing.insert(entry.id),
                    _ => {}
                }
            }
        }
        missing
    }

    fn check_tree(&self, id: &ObjectId, path: &[u8], seen: &mut HashSet<ObjectId>) -> Result<(), Damage> {
        if !seen.insert(id.clone()) {
            return Ok(());
        }
        self.checked(&self.objects, id, ObjectKind::Tree, path)?;
        let failed = |source| Damage::Object { path: RepoPath::from_bytes(path), source };
        for entry in self.objects.tree(id).map_err(failed)? {
            let path = if path.is_empty() { entry.name } else { [path, b"/", &entry.name].concat() };
            match entry.mode {
                EntryMode::Folder => self.check_tree(&entry.id, &path, seen)?,
                // A submodule's commit is in its own repository.
                EntryMode::Submodule => {}
                _ if seen.insert(entry.id.clone()) => {
                    self.checked(&self.objects, &entry.id, ObjectKind::Blob, &path)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads an object and checks its kind and its name.
    fn checked(
        &self,
        objects: &Objects,
        id: &ObjectId,
        wanted: ObjectKind,
        path: &[u8],
    ) -> Result<Vec<u8>, Damage> {
        let path = RepoPath::from_bytes(path);
        let found = objects.find(id).map_err(|source| Damage::Object { path: path.clone(), source })?;
        let (kind, bytes) = match found {
            Some((kind, bytes)) => (kind, bytes),
            None => return Err(Damage::Object { path, source: ObjectError::Missing { id: id.clone() } }),
        };
        if kind != wanted {
            return Err(Damage::Object { path, source: ObjectError::Kind { id: id.clone(), wanted, kind } });
        }
        if self.name_of(kind, &bytes)? != *id {
            return Err(Damage::Content { path, id: id.clone() });
        }
        Ok(bytes)
    }

    /// Returns the name that an object with these bytes has.
    pub(super) fn name_of(&self, kind: ObjectKind, bytes: &[u8]) -> Result<ObjectId, GitError> {
        if self.store.hash == super::repository::HashKind::Sha1 {
            return Ok(super::pack::sha1_name(kind, bytes));
        }
        let args = ["hash-object", "-t", kind.as_str(), "--literally", "--stdin"];
        let answer = self.store_git.run(&args, bytes)?;
        let id = String::from_utf8_lossy(&answer).trim().parse();
        id.map_err(|_| GitError::Answer { command: "hash-object".to_owned() })
    }
}
