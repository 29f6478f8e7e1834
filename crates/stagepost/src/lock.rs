//! OS locks with a bounded wait: they die with the processes that hold them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};

/// A lock, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _held: Held,
}

#[derive(Debug)]
enum Held {
    ByUs { _file: Locked },
    WithChildren { _file: File },
}

impl Lock {
    /// Holds the lock at `path` together with every program that is started from now on: it ends with the last of them,
    /// also if this process is killed before. [`take`](Self::take) waits for them all; others may hold it too.
    pub(crate) fn hold_with_children(path: &Path) -> Result<Self, LockError> {
        let failed = |source| LockError::Open { path: path.into(), source };
        let file = open(path).map_err(failed)?;
        let shared = wait_for(&file, FlockOperation::NonBlockingLockShared, Duration::ZERO);
        if !shared.map_err(failed)? {
            return Err(LockError::Busy { path: path.into(), patience: Duration::ZERO });
        }
        fcntl_setfd(&file, FdFlags::empty()).map_err(|error| failed(error.into()))?;
        Ok(Self { _held: Held::WithChildren { _file: file } })
    }

    /// Waits for the lock at `path`, at most for `patience`; the folder is made if need be.
    pub fn take(path: &Path, patience: Duration) -> Result<Self, LockError> {
        let failed = |source| LockError::Open { path: path.into(), source };
        let file = open(path).map_err(failed)?;
        let locked =
            Locked::wait(file, FlockOperation::NonBlockingLockExclusive, patience).map_err(failed)?;
        match locked {
            Some(file) => Ok(Self { _held: Held::ByUs { _file: file } }),
            None => Err(LockError::Busy { path: path.into(), patience }),
        }
    }
}

/// An open file that this process has locked, until it is dropped. It is unlocked then, not only closed: a program that
/// another thread is about to start has a copy of everything that is open, and the lock with it, until it runs.
#[derive(Debug)]
pub(crate) struct Locked(File);

impl Locked {
    /// Waits for a lock on an open file, at most for `patience`; `None` if others have it.
    pub(crate) fn wait(
        file: File,
        operation: FlockOperation,
        patience: Duration,
    ) -> io::Result<Option<Self>> {
        Ok(wait_for(&file, operation, patience)?.then_some(Self(file)))
    }
}

impl std::ops::Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // If it cannot be unlocked, closing it does that, a moment later at worst.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        crate::private::folders(folder)?;
    }
    crate::bounded::open_as(OpenOptions::new().create(true).truncate(false).write(true).mode(0o600), path)
}

/// Waits for a lock on an open file, at most for `patience`. Says whether it has it.
fn wait_for(file: &File, operation: FlockOperation, patience: Duration) -> io::Result<bool> {
    let begun = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        match flock(file, operation) {
            Ok(()) => return Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if begun.elapsed() >= patience {
            return Ok(false);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Says whether an open file is still the one at a path: who held it may have taken it away before it was locked.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(held), Ok(there)) = (file.metadata(), path.symlink_metadata()) else { return false };
    (held.dev(), held.ino()) == (there.dev(), there.ino())
}

/// The error of taking a lock.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The lock file could not be opened.
    #[error("failed to open the lock {}", path.display())]
    Open {
        /// The lock file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process held it all the time.
    #[error("another process held {} for {patience:?}", path.display())]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// How long we waited.
        patience: Duration,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_let_go_is_free_though_a_copy_of_its_file_is_still_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = Lock::take(&path, Duration::ZERO).unwrap();
        let Held::ByUs { _file: file } = &lock._held else { panic!("it is ours") };
        // As a program has it that was started meanwhile and does not run yet.
        let copy = file.try_clone().unwrap();
        assert!(matches!(Lock::take(&path, Duration::ZERO), Err(LockError::Busy { .. })));
        drop(lock);
        assert!(Lock::take(&path, Duration::ZERO).is_ok());
        drop(copy);
    }

    #[test]
    fn a_lock_that_children_share_stays_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = Lock::hold_with_children(&path).unwrap();
        let Held::WithChildren { _file: file } = &lock._held else { panic!("children have it too") };
        let copy = file.try_clone().unwrap();
        drop(lock);
        assert!(matches!(Lock::take(&path, Duration::ZERO), Err(LockError::Busy { .. })));
        drop(copy);
        assert!(Lock::take(&path, Duration::ZERO).is_ok());
    }
}
