//! Putting the index back: made beside it by git, then the two change places, which leaves no lock if we are killed.
//!
//! Where the file system knows no such exchange, it is swapped in under git's own lock. The lock file is a second name of
//! the finished index then, so a kill between locking and renaming leaves a lock that the next command recognises as ours (same
//! file, two names) and removes. Nobody else's lock is ever touched.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Point;
use super::error::RestoreError;
use super::position::marks_are_as;
use super::unwatched::mark_again;
use crate::model::ObjectId;
use crate::snapshot::exchange::{self, Placed};
use crate::snapshot::git::{Git, GitError, Trust};
use crate::snapshot::marks::IndexFile;
use crate::snapshot::objects::ObjectKind;
use crate::snapshot::quarantine::{Quarantine, copy_index};
use crate::snapshot::repository::Repository;
use crate::snapshot::tree::EntryMode;
use crate::snapshot::{Snapshots, durable};

/// The name of an index on its way.
pub(super) const BESIDE: &str = "index.stagepost-restore";

impl Snapshots {
    /// Removes what a killed restore left of an index, its lock included.
    pub(super) fn remove_index_leftovers(&self, user: &Repository) -> Result<(), RestoreError> {
        let (beside, lock) = (user.git_dir.join(BESIDE), user.git_dir.join("index.lock"));
        let file =
            |path: &Path| fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        if file(&lock).is_some_and(|lock| file(&beside) == Some(lock)) {
            remove(&lock)?;
        }
        remove(&beside)?;
        remove(&lock_of(&beside))
    }

    /// Makes the index hold the tree of `to`, if it holds that of `from`; says whether it had to.
    pub(super) fn put_index(
        &self,
        user: &Repository,
        from: &Point,
        to: &Point,
    ) -> Result<bool, RestoreError> {
        let (Some(old), Some(new)) = (&from.position.index_tree, &to.position.index_tree) else {
            return Ok(false);
        };
        if old == new && marks_are_as(&from.marks, &to.marks) {
            return Ok(false);
        }
        self.remove_index_leftovers(user)?;
        let (index, beside) = (user.git_dir.join("index"), user.git_dir.join(BESIDE));
        copy_index(&index, &beside).map_err(|source| RestoreError::Index { source: Box::new(source) })?;
        // Refreshing compares files, and so converts them: a filter that only the repository names must not run for that.
        let trusted = Trust::read(&self.rules_git)?.overrides;
        let git = self.rules_git.configured(trusted).with("GIT_INDEX_FILE", &beside);
        let (now, marks) =
            (self.tree_of_index(&git)?, git.all_index_marks(&IndexFile::new(user, beside.clone()))?);
        if now == *new && marks_are_as(&marks, &to.marks) {
            remove(&beside)?;
            return Ok(false);
        }
        if now != *old && now != *new {
            remove(&beside)?;
            return Err(RestoreError::IndexChanged);
        }
        let seen = stamp(&index)?;
        self.bring_blobs(new)?;
        let marks = self.unmark(&git, &marks, &to.marks)?;
        git.run(&["read-tree", "--reset", "--no-sparse-checkout", "--end-of-options", new.as_str()], b"")?;
        // its status says that some files differ from the index, which is what is being restored
        git.try_run(&["update-index", "-q", "--refresh"], b"")?;
        mark_again(&git, &self.root, &marks)?;
        swap(&index, &beside, &seen)?;
        Ok(true)
    }

    /// The tree of the index git is bound to. What git writes for the answer goes to a place that is thrown away.
    fn tree_of_index(&self, git: &Git) -> Result<ObjectId, RestoreError> {
        let quarantine = Quarantine::make(&self.folder)
            .map_err(|source| RestoreError::Index { source: Box::new(source) })?;
        let answer = quarantine.bind(git, &self.object_dirs()).run(&["write-tree", "--missing-ok"], b"")?;
        let id = String::from_utf8_lossy(&answer).trim().parse();
        Ok(id.map_err(|_| GitError::Answer { command: "write-tree".to_owned() })?)
    }

    /// Copies into the user's repository what only a private store holds of a tree, now or while it was the one in use: an
    /// index must not name objects that git cannot find.
    fn bring_blobs(&self, tree: &ObjectId) -> Result<(), RestoreError> {
        if !self.is_apart() && self.elsewhere.is_none() {
            return Ok(());
        }
        let mut parts = Vec::new();
        self.parts_of(tree, &mut parts)?;
        let asked: String = parts.iter().map(|(id, _)| format!("{id}\n")).collect();
        let told = self.rules_git.run(&["cat-file", "--batch-check"], asked.as_bytes())?;
        let told = String::from_utf8_lossy(&told);
        let missing: HashSet<&str> = told.lines().filter_map(|line| line.strip_suffix(" missing")).collect();
        for (id, kind) in parts.iter().filter(|(id, _)| missing.contains(id.as_str())) {
            let Some((_, bytes)) = self.objects.find(id)? else { continue };
            let args = ["hash-object", "-w", "-t", kind.as_str(), "--literally", "--stdin"];
            self.rules_git.run(&args, &bytes)?;
        }
        Ok(())
    }

    /// Lists a tree and everything in it, the tree last.
    fn parts_of(&self, tree: &ObjectId, parts: &mut Vec<(ObjectId, ObjectKind)>) -> Result<(), RestoreError> {
        for entry in self.objects.tree(tree)? {
            match entry.mode {
                EntryMode::Folder => self.parts_of(&entry.id, parts)?,
                EntryMode::Submodule => {}
                _ => parts.push((entry.id, ObjectKind::Blob)),
            }
        }
        parts.push((tree.clone(), ObjectKind::Tree));
        Ok(())
    }
}

/// Puts the finished index in the place of the one that was seen.
pub(super) fn swap(index: &Path, beside: &Path, seen: &Stamp) -> Result<(), RestoreError> {
    fs::File::open(beside).and_then(|file| file.sync_all()).map_err(failed("sync", beside))?;
    let was = |file: &Path| Ok(stamp_of(file)? == *seen);
    let swapped = match exchange::place(beside, index, was).map_err(failed("replace", index))? {
        Placed::Done => Ok(()),
        Placed::Locked => Err(RestoreError::IndexLocked),
        Placed::Changed | Placed::Overtaken => Err(RestoreError::IndexChanged),
        Placed::Unable => swap_locked(index, beside, seen),
    };
    remove(beside)?;
    // A git that could neither finish nor tidy up, both refused by the system, leaves this; it stops nobody.
    let _ = remove(&lock_of(beside));
    swapped?;
    index.parent().map_or(Ok(()), durable::sync_folder).map_err(failed("sync", index))
}

/// What git locks an index on its way with.
fn lock_of(beside: &Path) -> PathBuf {
    beside.with_file_name(format!("{BESIDE}.lock"))
}

/// Takes git's lock with the finished index as its content, and renames it into place.
fn swap_locked(index: &Path, beside: &Path, seen: &Stamp) -> Result<(), RestoreError> {
    let lock = index.with_file_name("index.lock");
    match fs::hard_link(beside, &lock) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(RestoreError::IndexLocked),
        linked => linked.map_err(failed("lock", index))?,
    }
    if stamp(index)? != *seen {
        remove(&lock)?;
        return Err(RestoreError::IndexChanged);
    }
    fs::rename(&lock, index).map_err(failed("replace", index))
}

/// What tells one version of the index file from another.
pub(super) type Stamp = Option<(u64, u64, i64, i64)>;

pub(super) fn stamp(index: &Path) -> Result<Stamp, RestoreError> {
    stamp_of(index).map_err(failed("look at", index))
}

fn stamp_of(index: &Path) -> io::Result<Stamp> {
    match fs::symlink_metadata(index) {
        Ok(metadata) => Ok(Some((metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn remove(path: &Path) -> Result<(), RestoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}

fn failed(attempted: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RestoreError + use<> {
    let path: PathBuf = path.into();
    move |source| RestoreError::Io { attempted, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Git was told that it could neither rename its lock nor remove it, and went on.
    #[test]
    fn what_an_interrupted_git_left_goes_with_the_swap() {
        let folder = tempfile::tempdir().unwrap();
        let (index, beside) = (folder.path().join("index"), folder.path().join(BESIDE));
        fs::write(&index, "old").unwrap();
        let seen = stamp(&index).unwrap();
        fs::write(&beside, "new").unwrap();
        fs::write(lock_of(&beside), "half").unwrap();
        swap(&index, &beside, &seen).unwrap();
        assert_eq!(fs::read(&index).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the index alone is left");
    }
}
