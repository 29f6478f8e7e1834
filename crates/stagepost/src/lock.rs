//! OS locks with a bounded wait: they die with the processes that hold them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};

/// An exclusive lock, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
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
        Ok(Self { _file: file })
    }

    /// Waits for the lock at `path`, at most for `patience`; the folder is made if need be.
    pub fn take(path: &Path, patience: Duration) -> Result<Self, LockError> {
        let failed = |source| LockError::Open { path: path.into(), source };
        let file = open(path).map_err(failed)?;
        match wait_for(&file, FlockOperation::NonBlockingLockExclusive, patience).map_err(failed)? {
            true => Ok(Self { _file: file }),
            false => Err(LockError::Busy { path: path.into(), patience }),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        crate::private::folders(folder)?;
    }
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}

/// Waits for a lock on an open file, at most for `patience`. Says whether it has it.
pub(crate) fn wait_for(file: &File, operation: FlockOperation, patience: Duration) -> io::Result<bool> {
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
