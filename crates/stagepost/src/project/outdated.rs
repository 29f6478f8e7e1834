//! Marks of views that are out of date.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::Error;
use crate::bounded;
use crate::lock::{LockError, Locked, is_at};
use crate::private;

/// A view is out of date, or about to be. The mark that says so is a file, locked by everyone who is at work on what the
/// view is derived from: whoever ends last takes it away, and one that nobody holds is what a crash left.
#[derive(Debug)]
#[must_use = "dropped, it tells the next command that the view is out of date"]
pub struct Outdated {
    file: Locked,
    path: PathBuf,
    /// The mark was there before.
    found: bool,
}

impl Outdated {
    /// Makes the mark, or joins those who hold it.
    pub(super) fn begin(path: PathBuf, patience: Duration) -> Result<Self, Error> {
        let failed = |source| Error::File { doing: "make", path: path.clone(), source };
        if let Some(folder) = path.parent() {
            private::folders(folder).map_err(failed)?;
        }
        loop {
            let (file, found) = match private::create(&path) {
                Ok(file) => (file, false),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match open(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    opened => (opened.map_err(failed)?, true),
                },
                Err(error) => return Err(failed(error)),
            };
            let locked =
                Locked::wait(file, FlockOperation::NonBlockingLockShared, patience).map_err(failed)?;
            let Some(file) = locked else { return Err(LockError::Busy { path, patience }.into()) };
            // It may have been taken away before it was locked.
            if is_at(&file, &path) {
                if found {
                    // Tells the others. It takes no room on the disk, which may be full.
                    file.set_len(1).map_err(failed)?;
                }
                return Ok(Self { file, path, found });
            }
        }
    }

    /// Takes the mark that a crash left; `None` if there is none or its holders are still at work.
    pub(super) fn take_over(path: PathBuf) -> Option<Self> {
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        let file = Locked::wait(open(&path).ok()?, exclusive, Duration::ZERO).ok()??;
        if !is_at(&file, &path) {
            return None;
        }
        // Others may begin meanwhile.
        flock(&*file, FlockOperation::NonBlockingLockShared).ok()?;
        Some(Self { file, path, found: true })
    }

    /// Says whether nobody else was at work since the view was up to date.
    pub fn is_only(&self) -> bool {
        !self.found && self.file.metadata().is_ok_and(|file| file.len() == 0)
    }

    /// Takes the mark away, unless someone else is still at work.
    pub(crate) fn end(self) -> Result<(), Error> {
        let is_last = flock(&*self.file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if !is_last || !is_at(&self.file, &self.path) {
            return Ok(());
        }
        let Self { path, .. } = &self;
        fs::remove_file(path).map_err(|source| Error::File { doing: "remove", path: path.clone(), source })
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).expect("a flag of open(2)");
    bounded::open_with(OpenOptions::new().write(true), flags, path)
}
