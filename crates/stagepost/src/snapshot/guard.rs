//! What is refused without a person's consent, and what no consent can help.

use std::ffi::OsStr;
use std::path::Path;

use super::capture::{Capture, Consent};
use super::git::GitProgram;

/// Why a capture was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It is the whole file system.
    #[error("it is the root of the file system")]
    FileSystem,
    /// It is the home folder.
    #[error("it is the home folder")]
    Home,
    /// There are too many untracked files.
    #[error("it has {found} untracked files, more than {limit}")]
    TooManyUntracked {
        /// How many there are, or how many were counted before giving up.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The disk is nearly full.
    #[error("only {free} bytes are free where snapshots are kept, and {needed} are needed")]
    DiskFull {
        /// Free bytes.
        free: u64,
        /// Needed bytes.
        needed: u64,
    },
}

/// Checks what can be said before looking at a single file.
pub(super) fn before(root: &Path, store: &Path, git: &GitProgram, options: &Capture) -> Result<(), Refusal> {
    if options.consent == Consent::No {
        if root.parent().is_none() {
            return Err(Refusal::FileSystem);
        }
        let home = git.environment.get(OsStr::new("HOME")).map(Path::new);
        let is_home = |home: &Path| home == root || home.canonicalize().is_ok_and(|home| home == root);
        if home.is_some_and(is_home) {
            return Err(Refusal::Home);
        }
    }
    free_space(store, options.min_free)
}

/// Checks that `needed` bytes are free where `store` is. A file system that cannot say has room.
fn free_space(store: &Path, needed: u64) -> Result<(), Refusal> {
    match rustix::fs::statvfs(store) {
        Ok(disk) if disk.f_blocks > 0 => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            if free < needed { Err(Refusal::DiskFull { free, needed }) } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

/// Checks how many untracked files there are.
pub(super) fn untracked(found: usize, options: &Capture) -> Result<(), Refusal> {
    if options.consent == Consent::No && found > options.max_untracked {
        return Err(Refusal::TooManyUntracked { found, limit: options.max_untracked });
    }
    Ok(())
}
