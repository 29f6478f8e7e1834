//! Locks that git leaves when it is killed while it moves refs for us.
//!
//! Such a lock says nothing about who made it. It is taken for left behind only by someone who knows that an operation
//! of ours on these refs was cut off, and only if it stands unchanged for a while: git holds the lock of a ref for
//! moments, not while people type.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Snapshots;
use super::exchange::with_lock;
use super::repository::{RefKind, Repository};
use crate::process::Guard;

/// Far longer than git holds the lock of a ref.
const STANDS: Duration = Duration::from_millis(250);

/// The variable by which git at work for this process is recognised.
pub(crate) const AT_WORK: &str = "STAGEPOST_GIT";

/// The value of [`AT_WORK`] in what this process starts.
pub(crate) fn at_work() -> String {
    std::process::id().to_string()
}

impl Snapshots {
    /// Has the locks on HEAD and on `refs` removed if this process and the git that it started (with [`AT_WORK`] set) are
    /// both killed, as those who give up on a command kill all of its group. As long as the returned guard is held.
    pub(crate) fn guard_refs(&self, refs: &[String]) -> Option<Guard> {
        let locks = locks(self.user.as_ref()?, refs);
        // It is one care more; without it the next command frees them.
        Guard::over_files(&format!("{AT_WORK}={}", at_work()), &locks).ok()
    }

    /// Removes the locks that a killed git left on HEAD and on `refs`, so that the user's git can go on.
    pub fn free_refs(&self, refs: &[String]) -> io::Result<()> {
        let Some(user) = &self.user else { return Ok(()) };
        let found: Vec<_> =
            locks(user, refs).into_iter().filter_map(|path| Some((identity(&path)?, path))).collect();
        if found.is_empty() {
            return Ok(());
        }
        std::thread::sleep(STANDS);
        for (before, path) in found {
            if identity(&path) == Some(before) {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Every lock that git may have taken for a change of HEAD and `refs`.
fn locks(user: &Repository, refs: &[String]) -> Vec<PathBuf> {
    let own = ["HEAD", "AUTO_MERGE", LIST].map(|name| user.git_dir.join(name));
    let common = ["packed-refs", LIST].map(|name| user.common_dir.join(name));
    let named = refs.iter().map(|name| user.common_dir.join(name));
    let mut locks: Vec<_> = own.into_iter().chain(common).chain(named).map(|path| with_lock(&path)).collect();
    if user.refs == RefKind::Reftable {
        // Those of the tables that git was about to join.
        let folders = [&user.git_dir, &user.common_dir].map(|folder| fs::read_dir(folder.join("reftable")));
        let found = folders.into_iter().flatten().flatten().flatten().map(|entry| entry.path());
        locks.extend(found.filter(|path| path.extension().is_some_and(|end| end == "lock")));
    }
    locks.sort();
    locks.dedup();
    locks
}

/// The list of the tables that hold all refs, where these are no files.
const LIST: &str = "reftable/tables.list";

fn identity(path: &Path) -> Option<(u64, i64, i64, u64)> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec(), found.size()))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
