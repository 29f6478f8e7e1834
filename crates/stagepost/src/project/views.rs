//! Views: files in other systems' formats, derived from the store, never the truth.
//!
//! A view is replaced as a whole. Before the record changes that it is derived from, a mark says that it is out of
//! date ([`Outdated`]); whoever finds one that nobody holds brings the view up to date. Views are in no snapshot, ignored
//! by git, and never rolled back.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::marked::TAGS_OF;
use super::{Error, Outdated, Project};
use crate::bounded;
use crate::formats::{maestro, runs, tasks};
use crate::lock::Lock;
use crate::model::{RepoPath, RunId, RunKind};
use crate::private;

/// A file in another system's format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Where it is, relative to the project.
    pub path: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// The first line of our part of `info/exclude`.
const OURS: &str = "# stagepost: views of its store";

impl Project {
    /// Says that a view is about to be out of date.
    pub fn begin_view(&self, key: &str) -> Result<Outdated, Error> {
        Outdated::begin(self.pending_folder().join(key), self.settings.busy_timeout)
    }

    /// Takes over a view that a crash left out of date; `None` if it is not, or someone is still at work on it.
    pub fn take_over_view(&self, key: &str) -> Option<Outdated> {
        Outdated::take_over(self.pending_folder().join(key))
    }

    /// Lists the views that are out of date, and those whose tags are, because something was cut off or is under way.
    pub fn stale_views(&self) -> Vec<String> {
        let entries = fs::read_dir(self.pending_folder()).into_iter().flatten().filter_map(Result::ok);
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let keys: BTreeSet<_> =
            names.map(|name| name.strip_prefix(TAGS_OF).map_or(name.clone(), str::to_owned)).collect();
        keys.into_iter().collect()
    }

    /// Says that the views of sessions and tasks among `runs` are about to be out of date. Whoever drops the marks leaves
    /// it to the next command to bring them up to date.
    pub(super) fn begin_views_of(&self, runs: &BTreeSet<&RunId>) -> Result<Vec<Outdated>, Error> {
        let mut keys = BTreeSet::new();
        for id in runs {
            let (path, key) = match self.store.run(id)?.map(|run| run.kind) {
                Some(RunKind::Session) => (maestro::path(id.as_str(), maestro::CHECKPOINTS), id.as_str()),
                Some(RunKind::Task) => (tasks::LIST.to_owned(), tasks::VIEWS),
                _ => continue,
            };
            if !self.is_new_view(&path)? {
                keys.insert(key);
            }
        }
        keys.into_iter().map(|key| self.begin_view(key)).collect()
    }

    /// Brings a view up to date and takes its mark away.
    pub fn publish<E: From<Error>>(
        &self,
        outdated: Outdated,
        derive: impl FnOnce() -> Result<Vec<View>, E>,
    ) -> Result<(), E> {
        self.write_views(derive)?;
        Ok(outdated.end()?)
    }

    /// Writes views: `derive` runs while no other process writes any, so the newest state wins.
    pub fn write_views<E: From<Error>>(
        &self,
        derive: impl FnOnce() -> Result<Vec<View>, E>,
    ) -> Result<(), E> {
        let lock = Lock::take(&self.place.store.join("views.lock"), self.settings.busy_timeout);
        let _lock = lock.map_err(Error::from)?;
        for view in derive()? {
            self.write_view(&view)?;
        }
        Ok(())
    }

    /// Says what snapshots leave out: the views that were ever written here.
    pub(super) fn own_records(&self) -> Vec<RepoPath> {
        let known = bounded::read_text(&self.known_views()).unwrap_or_default();
        let covered: BTreeSet<&str> = known.lines().map(cover).collect();
        covered.into_iter().map(RepoPath::from).collect()
    }

    fn write_view(&self, view: &View) -> Result<(), Error> {
        let path = self.place.root.join(&view.path);
        if Path::new(&view.path).is_absolute() {
            self.claim_outside(&view.path)?;
        } else {
            self.refuse_links(&view.path)?;
            self.claim_view(&claimed(&view.path))?;
        }
        if bounded::read_file(&path).is_ok_and(|present| present == view.bytes) {
            return Ok(());
        }
        replace(&path, &view.bytes)
    }

    /// Deletes a view that is no longer derived. What someone else changed meanwhile is left; says whether it is gone.
    pub fn withdraw_view(&self, view: &View) -> Result<bool, Error> {
        let path = self.place.root.join(&view.path);
        match bounded::read_file(&path) {
            Ok(present) if present == view.bytes => {}
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(source) => return Err(Error::File { doing: "read", path, source }),
        }
        fs::remove_file(&path).map(|()| true).map_err(|source| Error::File { doing: "delete", path, source })
    }

    /// Says whether a file is a view of ours.
    pub(super) fn is_view(&self, path: &Path) -> bool {
        let inside = path.strip_prefix(&self.place.root).unwrap_or(path).to_string_lossy();
        self.is_new_view(&inside).is_ok_and(|new| !new) || self.is_known_outside(&inside)
    }

    /// Keeps what someone else wrote where a view outside of the project will be: its owner named that folder in full.
    fn claim_outside(&self, path: &str) -> Result<(), Error> {
        if self.is_known_outside(path) {
            return Ok(());
        }
        self.set_aside(path)?;
        append(&self.known_outside(), &format!("{path}\n"))
    }

    fn is_known_outside(&self, path: &str) -> bool {
        bounded::read_text(&self.known_outside()).is_ok_and(|known| known.lines().any(|line| line == path))
    }

    fn known_outside(&self) -> PathBuf {
        self.place.store.join("views.outside")
    }

    /// Makes the place of a view ours: what someone else wrote there is kept in the store's folder, git ignores it
    /// from now on, and no snapshot holds it.
    pub fn claim_view(&self, path: &str) -> Result<(), Error> {
        if self.is_new_view(path)? {
            self.set_aside(path)?;
            self.ignore_view(path)?;
            self.know_view(path)?;
        }
        Ok(())
    }

    /// Keeps a file that someone else wrote where a view will be.
    fn set_aside(&self, path: &str) -> Result<(), Error> {
        let from = self.place.root.join(path);
        if !fs::symlink_metadata(&from).is_ok_and(|found| found.is_file()) {
            return Ok(());
        }
        let folder = self.place.store.join("views.original");
        let name = path.replace('/', "-");
        let mut places = (1..).map(|number| folder.join(format!("{name}.{number}")));
        let free = places.find(|place| fs::symlink_metadata(place).is_err()).expect("some number is free");
        let copied = private::folders(&folder)
            .and_then(|()| bounded::read_file(&from))
            .and_then(|bytes| private::write(&free, bytes));
        copied.map_err(|source| Error::File { doing: "set aside", path: from, source })
    }

    /// Says that nothing changed that a view is derived from.
    pub fn leave_view(&self, outdated: Outdated) {
        if outdated.is_only() {
            // If this fails, the view is derived once more for nothing.
            let _ = outdated.end();
        }
    }

    /// No folder on the way may be a link: it could lead out of the project.
    fn refuse_links(&self, path: &str) -> Result<(), Error> {
        let mut folder = self.place.root.clone();
        for part in Path::new(path).components() {
            folder.push(part);
            let is_link = fs::symlink_metadata(&folder).is_ok_and(|found| found.file_type().is_symlink());
            if is_link {
                let source = io::Error::other("it is a symbolic link");
                return Err(Error::File { doing: "write a view through", path: folder, source });
            }
        }
        Ok(())
    }

    fn is_new_view(&self, path: &str) -> Result<bool, Error> {
        match bounded::read_text(&self.known_views()) {
            Ok(known) => Ok(!known.lines().any(|line| line == path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(source) => Err(Error::File { doing: "read", path: self.known_views(), source }),
        }
    }

    fn know_view(&self, path: &str) -> Result<(), Error> {
        append(&self.known_views(), &format!("{path}\n"))
    }

    /// Has git ignore a view; not in a file that anyone shares.
    fn ignore_view(&self, path: &str) -> Result<(), Error> {
        let Some(git) = &self.place.git else { return Ok(()) };
        let file = git.common_dir.join("info").join("exclude");
        // Whoever leads it there wants to have nothing ignored by it.
        if fs::canonicalize(&file).is_ok_and(|file| file == Path::new("/dev/null")) {
            return Ok(());
        }
        let present = bounded::read_text(&file).unwrap_or_default();
        let mut wanted = vec![format!("/{}", cover(path)), format!("/{}", cover(&temporary(path)))];
        wanted.retain(|line| !present.lines().any(|known| known == line));
        wanted.dedup();
        if wanted.is_empty() {
            return Ok(());
        }
        let mut text = String::new();
        if !present.is_empty() && !present.ends_with('\n') {
            text.push('\n');
        }
        if !present.contains(OURS) {
            text.push_str(&format!("{OURS}\n"));
        }
        text.push_str(&wanted.join("\n"));
        text.push('\n');
        append(&file, &text)
    }

    /// Reads what was kept for a view from one command to the next.
    pub fn load_cache(&self, key: &str) -> Option<Vec<u8>> {
        bounded::read_file(&self.place.store.join("views.cache").join(key)).ok()
    }

    /// Keeps something for a view that can be derived again; failing to is no fault.
    pub fn keep_cache(&self, key: &str, bytes: &[u8]) {
        let _ = replace_unsynced(&self.place.store.join("views.cache").join(key), bytes);
    }

    fn known_views(&self) -> PathBuf {
        self.place.store.join("views")
    }

    fn pending_folder(&self) -> PathBuf {
        self.place.store.join("views.pending")
    }
}

/// What stands for a view in lists: sessions and runs by the folder of all of them, so that lists stay short.
fn cover(path: &str) -> &str {
    let is_inside = |folder: &&str| path.strip_prefix(*folder).is_some_and(|rest| rest.starts_with('/'));
    [maestro::SESSIONS, runs::RUNS].into_iter().find(is_inside).unwrap_or(path)
}

/// The view by which a place is made ours: a run's checkpoints come and go, its record stands for them.
fn claimed(path: &str) -> String {
    let of_run = path.strip_prefix(runs::RUNS).and_then(|rest| rest.split_once("/checkpoints/"));
    of_run.map_or_else(|| path.to_owned(), |(run, _)| format!("{}{run}/{}", runs::RUNS, runs::RUN))
}

/// The name a view has while it is written.
fn temporary(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let stem = name.trim_start_matches('.').rsplit_once('.').map_or(name, |(stem, _)| stem);
    if folder.is_empty() { format!(".{stem}.tmp") } else { format!("{folder}/.{stem}.tmp") }
}

fn append(path: &Path, text: &str) -> Result<(), Error> {
    let write = || {
        if let Some(folder) = path.parent() {
            private::folders(folder)?;
        }
        private::append(path, text)
    };
    write().map_err(|source| Error::File { doing: "write", path: path.to_owned(), source })
}

/// Writes a file of an export below a folder. What is there with other content is left, and is an error.
pub fn export_file(folder: &Path, view: &View) -> Result<PathBuf, Error> {
    let path = folder.join(&view.path);
    match bounded::read_file(&path) {
        Ok(present) if present == view.bytes => return Ok(path),
        Ok(_) => return Err(Error::Exists { path }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(Error::File { doing: "read", path, source }),
    }
    replace(&path, &view.bytes)?;
    Ok(path)
}

/// Replaces a file as a whole: readers see the old one or the new one, also after the power was cut.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace_by(path, bytes, |beside| fs::File::open(beside)?.sync_data())
}

/// As [`replace`], for what is not believed when it is damaged.
fn replace_unsynced(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace_by(path, bytes, |_| Ok(()))
}

fn replace_by(path: &Path, bytes: &[u8], sync: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Error> {
    let write = || {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let beside = path.with_file_name(temporary(&name));
        if let Some(folder) = path.parent() {
            private::folders(folder)?;
        }
        // A name may be on disk before its content, also one that something else had before.
        let written = private::write(&beside, bytes).and_then(|()| sync(&beside));
        let placed = written.and_then(|()| fs::rename(&beside, path));
        if placed.is_err() {
            // A full disk must not be made fuller by what could not be finished.
            let _ = fs::remove_file(&beside);
        }
        placed
    };
    write().map_err(|source| Error::File { doing: "write", path: path.to_owned(), source })
}
