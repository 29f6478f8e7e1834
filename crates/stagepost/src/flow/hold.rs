//! Who drives a run: a kernel lock that dies with its holder.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;

use super::{Error, attempts};
use crate::bounded;
use crate::lock::{Locked, is_at};
use crate::model::RunId;
use crate::process::Identity;
use crate::project::Project;

/// Somebody who only looks holds the lock for a moment; who wants to drive waits that long.
const LOOK: Duration = Duration::from_millis(250);

/// The word for whoever drives a run that it is given up.
const GIVEN_UP: &str = "given-up";

/// The right to drive a run, until it is dropped.
#[derive(Debug)]
pub(super) struct Hold {
    folder: PathBuf,
    _lock: Locked,
}

/// Where a run keeps what only matters while it is driven.
pub(super) fn folder(project: &Project, run: &RunId) -> PathBuf {
    project.place().store.join("flow").join(run.as_str())
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::File { doing, path: path.to_owned(), source }
}

impl Hold {
    /// Takes the right to drive a run, or says who has it.
    pub(super) fn take(project: &Project, run: &RunId) -> Result<Self, Error> {
        let folder = folder(project, run);
        loop {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(&folder).map_err(failed("make", &folder))?;
            let path = folder.join("lock");
            let mut options = OpenOptions::new();
            options.create(true).truncate(false).write(true).mode(0o600);
            let file = match bounded::open_as(&mut options, &path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.map_err(failed("open", &path))?,
            };
            let exclusive = FlockOperation::NonBlockingLockExclusive;
            let Some(file) = Locked::wait(file, exclusive, LOOK).map_err(failed("lock", &path))? else {
                return Err(held(project, run));
            };
            // Who held it before may have tidied the file away between our opening and our locking it.
            if is_at(&file, &path) {
                return Ok(Self { folder, _lock: file });
            }
        }
    }

    /// Where the run keeps what only matters while it is driven.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns why the run is given up, if someone left word of that.
    pub(super) fn given_up(&self) -> Option<String> {
        bounded::read_text(&self.folder.join(GIVEN_UP)).ok()
    }

    /// Takes away word that was left for whoever drove the run before.
    pub(super) fn is_wanted_again(&self) {
        let _ = fs::remove_file(self.folder.join(GIVEN_UP));
    }

    /// Tidies away what only matters while the run is driven: it is over.
    pub(super) fn tidy(self) {
        // What is left is in nobody's way; cleaning up finds it.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Leaves word for whoever drives a run that it is given up.
pub(super) fn give_up(project: &Project, run: &RunId, why: &str) -> Result<(), Error> {
    let path = folder(project, run).join(GIVEN_UP);
    match crate::private::write(&path, why) {
        // Whoever drove it has just ended and tidied up.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        written => written.map_err(failed("write", &path)),
    }
}

/// Says whether somebody drives a run now.
pub fn is_driven(project: &Project, run: &RunId) -> bool {
    let Ok(file) = bounded::open(&folder(project, run).join("lock")) else { return false };
    !matches!(Locked::wait(file, FlockOperation::NonBlockingLockShared, Duration::ZERO), Ok(Some(_)))
}

/// Finds the process that drives a run now.
pub fn driver(project: &Project, run: &RunId) -> Option<Identity> {
    is_driven(project, run).then(|| attempts::read(&folder(project, run)).driver).flatten()
}

/// Lists the newest attempt of each step that is known to have begun. Those that ended are among them.
pub fn begun(project: &Project, run: &RunId) -> HashMap<String, u32> {
    attempts::read(&folder(project, run)).attempts
}

/// The error of whoever wants to drive a run that somebody drives.
pub(super) fn held(project: &Project, run: &RunId) -> Error {
    let holder = match attempts::read(&folder(project, run)).driver {
        Some(driver) => format!("process {}", driver.pid),
        None => "another process".to_owned(),
    };
    Error::Held { run: run.clone(), holder }
}
