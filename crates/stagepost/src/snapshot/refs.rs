//! Refs: HEAD and branches are read, our own are written, durably and never over someone else's change.
//!
//! With refs as files this speaks git's own protocol (`<ref>.lock`, rename), adding the fsyncs that git leaves out
//! for the folder. Every other kind of refs goes through `git update-ref`. How refs of the user's move is in `moving`.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::durable;
use super::exchange::with_lock;
use super::git::{Git, GitError};
use super::moving::Move;
use super::repository::{RefKind, Repository, read_line};
use crate::bounded;
use crate::model::{CheckpointId, ObjectId};

/// The folder of our refs.
const OURS: &str = "refs/stagepost";

/// The refs of one repository, as seen from one work tree.
#[derive(Debug)]
pub(super) struct Refs {
    git: Git,
    repository: Repository,
    /// The work tree whose snapshots these are; it names the folder of our refs.
    worktree: String,
}

impl Refs {
    pub(super) fn new(git: Git, repository: Repository, worktree: String) -> Self {
        Self { git, repository, worktree }
    }

    /// Returns the ref of a checkpoint's snapshot.
    pub(super) fn name_of(&self, id: &CheckpointId) -> String {
        format!("refs/stagepost/{}/{id}", self.worktree)
    }

    /// Returns the ref that keeps reachable what the private state names.
    pub(super) fn latest_name(&self) -> String {
        format!("refs/stagepost/{}/latest", self.worktree)
    }

    /// Returns the commit that HEAD names and the branch it names it through.
    pub(super) fn head(&self) -> Result<(Option<ObjectId>, Option<String>), RefError> {
        let target = match self.repository.refs {
            RefKind::Files => self.file_target("HEAD", &self.repository.git_dir)?,
            RefKind::Reftable => {
                let answer = self.git.try_run(&["symbolic-ref", "-q", "HEAD"], b"")?;
                let name = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
                if name.is_empty() { Target::None } else { Target::Ref(name) }
            }
        };
        match target {
            Target::Ref(name) => {
                let branch = name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned();
                Ok((self.read(&name)?, Some(branch)))
            }
            Target::Id(id) => Ok((Some(id), None)),
            Target::None => Ok((self.read("HEAD")?, None)),
        }
    }

    /// Returns what a ref names, or `None` if there is no such ref.
    pub(super) fn read(&self, name: &str) -> Result<Option<ObjectId>, RefError> {
        if self.repository.refs != RefKind::Files {
            let answer = self.git.try_run(&["rev-parse", "-q", "--verify", "--end-of-options", name], b"")?;
            return Ok(String::from_utf8_lossy(&answer.stdout).trim().parse().ok());
        }
        let mut name = name.to_owned();
        // A symbolic ref may name another one; git gives up after five.
        for _ in 0..5 {
            match self.file_target(&name, self.folder_of(&name))? {
                Target::Id(id) => return Ok(Some(id)),
                Target::None => return self.packed(&name),
                Target::Ref(next) => name = next,
            }
        }
        Ok(None)
    }

    /// Makes a ref that must not be there yet.
    pub(super) fn create(&self, name: &str, id: &ObjectId) -> Result<(), RefError> {
        self.swap(name, None, id)
    }

    /// Moves a ref from `old` (`None`: not there) to `new`; if it is elsewhere, nothing happens and it is an error.
    pub(super) fn swap(&self, name: &str, old: Option<&ObjectId>, new: &ObjectId) -> Result<(), RefError> {
        self.swap_all(&[(name, old)], new)
    }

    /// Moves several refs of one folder to `new`, each from where it must be; if one is elsewhere, nothing happens.
    pub(super) fn swap_all(
        &self,
        swaps: &[(&str, Option<&ObjectId>)],
        new: &ObjectId,
    ) -> Result<(), RefError> {
        if self.repository.refs != RefKind::Files {
            let zero = "0".repeat(new.as_str().len());
            let line = |(name, old): &(&str, Option<&ObjectId>)| {
                format!("update {name}\0{new}\0{}\0", old.map_or(zero.as_str(), ObjectId::as_str))
            };
            let lines: String = swaps.iter().map(line).collect();
            return Ok(self.git.run(&["update-ref", "-z", "--stdin"], lines.as_bytes()).map(drop)?);
        }
        let locks = swaps.iter().map(|(name, old)| self.lock(name, *old));
        let locks = locks.collect::<Result<Vec<_>, _>>()?;
        let Some(((name, _), folder)) = swaps.first().zip(locks.first().and_then(|lock| lock.path.parent()))
        else {
            return Ok(());
        };
        let (failed, folder) =
            (|source| RefError::Write { name: (*name).to_owned(), source }, folder.to_owned());
        locks.iter().try_for_each(|lock| lock.write(new)).map_err(failed)?;
        let files: Vec<_> = locks.iter().map(|lock| &lock.file).collect();
        durable::sync_files(&files).map_err(failed)?;
        locks.into_iter().try_for_each(RefLock::commit).map_err(failed)?;
        durable::sync_folder(&folder).map_err(failed)
    }

    /// Locks a ref that must be at `old`.
    fn lock(&self, name: &str, old: Option<&ObjectId>) -> Result<RefLock, RefError> {
        let path = self.path_of(name);
        let failed = |source| RefError::Write { name: name.to_owned(), source };
        durable::create_folders(&path, &self.repository.common_dir).map_err(failed)?;
        let lock = RefLock::take(&path).map_err(failed)?;
        let found = self.read(name)?;
        if found.as_ref() != old {
            return Err(RefError::Moved { name: name.to_owned(), found });
        }
        Ok(lock)
    }

    /// Deletes refs, wherever they are; one that is not there is deleted already. `beside` is where a file may lie meanwhile.
    pub(super) fn delete(&self, beside: &Path, names: &[String]) -> Result<(), RefError> {
        let mut left = names.to_vec();
        if self.are_files() {
            let gone: HashSet<&str> = names.iter().map(String::as_str).collect();
            // What is packed comes back once the file is gone, so it goes first.
            let unpacked = self.unpack(beside, &gone)?;
            self.remove_loose(names)?;
            // Whoever packs refs may have read one before it was removed here.
            if unpacked == Move::Done && self.unpack(beside, &gone)? == Move::Done {
                return Ok(());
            }
            left = self.tell_packed(names)?;
        }
        if !left.is_empty() {
            let lines: String = left.iter().map(|name| format!("delete {name}\0\0")).collect();
            self.git.run(&["update-ref", "-z", "--stdin"], lines.as_bytes())?;
        }
        Ok(())
    }

    /// Tells which refs are packed.
    fn tell_packed(&self, names: &[String]) -> Result<Vec<String>, RefError> {
        let bytes = self.read_packed(OURS)?;
        let packed: HashSet<&str> = packed_in(&bytes).map(|(_, name)| name).collect();
        Ok(names.iter().filter(|name| packed.contains(name.as_str())).cloned().collect())
    }

    /// Removes refs that are nothing but a file.
    fn remove_loose(&self, names: &[String]) -> Result<(), RefError> {
        let mut folders = BTreeMap::new();
        for name in names {
            let path = self.path_of(name);
            let failed = |source| RefError::Write { name: name.clone(), source };
            durable::remove(&path).map_err(failed)?;
            if let Some(folder) = path.parent().filter(|folder| folder.is_dir()) {
                folders.insert(folder.to_owned(), name.clone());
            }
        }
        for (folder, name) in folders {
            durable::sync_folder(&folder).map_err(|source| RefError::Write { name, source })?;
        }
        Ok(())
    }

    /// Returns all our refs of all work trees with what they name.
    pub(super) fn ours(&self) -> Result<BTreeMap<String, ObjectId>, RefError> {
        if self.repository.refs == RefKind::Files {
            let mut found = our_refs(&self.read_packed(OURS)?);
            self.add_loose(OURS, &mut found)?;
            return Ok(found);
        }
        let answer = self.git.run(&["for-each-ref", "--format=%(objectname) %(refname)", OURS], b"")?;
        Ok(our_refs(&answer))
    }

    /// Adds the refs that are files below a folder.
    fn add_loose(&self, folder: &str, found: &mut BTreeMap<String, ObjectId>) -> Result<(), RefError> {
        let failed = |source| RefError::Read { name: folder.to_owned(), source };
        let entries = match fs::read_dir(self.path_of(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(failed)?,
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let name = format!("{folder}/{name}");
            if entry.file_type().map_err(failed)?.is_dir() {
                self.add_loose(&name, found)?;
            } else if !name.ends_with(".lock")
                && let Some(id) = self.read(&name)?
            {
                found.insert(name, id);
            }
        }
        Ok(())
    }

    /// HEAD and its like belong to the work tree, everything below `refs/` to the repository (with the exceptions
    /// that git makes for work trees, none of which a branch can be).
    pub(super) fn folder_of(&self, name: &str) -> &Path {
        if name.starts_with("refs/") { &self.repository.common_dir } else { &self.repository.git_dir }
    }

    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.folder_of(name).join(name)
    }

    pub(super) fn are_files(&self) -> bool {
        self.repository.refs == RefKind::Files
    }

    /// Says whether a new ref of that name would be a folder to another one, or the other way round. Those that are files show that
    /// by themselves.
    pub(super) fn is_in_the_way_of(&self, name: &str) -> Result<bool, RefError> {
        let within =
            |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
        let packed = self.read_packed(name)?;
        let above = self.path_of(name);
        let above = above.ancestors().skip(1).take_while(|folder| *folder != self.repository.common_dir);
        Ok(packed_in(&packed).any(|(_, other)| within(other, name) || within(name, other))
            || above.into_iter().any(Path::is_file))
    }

    /// Says whether one commit is another, or has it among those before it.
    pub(super) fn follows(&self, commit: &ObjectId, other: &ObjectId) -> Result<bool, RefError> {
        let args = ["merge-base", "--is-ancestor", other.as_str(), commit.as_str()];
        Ok(self.git.try_run(&args, b"")?.status.success())
    }

    fn file_target(&self, name: &str, folder: &Path) -> Result<Target, RefError> {
        let failed = |source| RefError::Read { name: name.to_owned(), source };
        if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Ok(Target::None);
        }
        let line = match read_line(&folder.join(name)) {
            // A folder of that name: the ref may still be packed.
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => None,
            other => other.map_err(failed)?,
        };
        let Some(line) = line else { return Ok(Target::None) };
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        Ok(match line.strip_prefix("ref:") {
            Some(name) => Target::Ref(name.trim().to_owned()),
            None => line.parse().map_or(Target::None, Target::Id),
        })
    }

    pub(super) fn packed(&self, name: &str) -> Result<Option<ObjectId>, RefError> {
        let bytes = self.read_packed(name)?;
        Ok(packed_in(&bytes).filter(|(_, packed)| *packed == name).find_map(|(id, _)| id.parse().ok()))
    }

    pub(super) fn packed_refs(&self) -> PathBuf {
        self.repository.common_dir.join("packed-refs")
    }

    /// Reads the file of packed refs, of which `name` is wanted.
    pub(super) fn read_packed(&self, name: &str) -> Result<Vec<u8>, RefError> {
        match bounded::read_file(&self.packed_refs()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other.map_err(|source| RefError::Read { name: name.to_owned(), source }),
        }
    }
}

/// The lines of a list of refs, each with what it names first.
fn packed_in(bytes: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.filter_map(|line| std::str::from_utf8(line).ok()?.split_once(' '))
}

/// Our own of a list of refs.
fn our_refs(bytes: &[u8]) -> BTreeMap<String, ObjectId> {
    let is_ours = |name: &str| name.strip_prefix(OURS).is_some_and(|rest| rest.starts_with('/'));
    let ours = packed_in(bytes).filter(|(_, name)| is_ours(name));
    ours.filter_map(|(id, name)| Some((name.to_owned(), id.parse().ok()?))).collect()
}

enum Target {
    Id(ObjectId),
    Ref(String),
    None,
}

/// How often, and for how long each time, git's lock on a ref of ours is waited for.
const PAUSES: usize = 50;
const PAUSE: Duration = Duration::from_millis(5);

/// git's lock on one ref: a file beside it that must not exist.
struct RefLock {
    lock: PathBuf,
    path: PathBuf,
    file: fs::File,
    committed: bool,
}

impl RefLock {
    fn take(path: &Path) -> io::Result<Self> {
        let lock = with_lock(path);
        let mode = durable::mode_below(path.parent().unwrap_or(path), 0o644);
        let open = || OpenOptions::new().write(true).create_new(true).mode(mode).open(&lock);
        let is_there = |file: &io::Result<_>| {
            file.as_ref().is_err_and(|error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists)
        };
        let mut file = open();
        // One that stays is left, too.
        for pause in (0..=PAUSES).rev() {
            if !is_there(&file) {
                break;
            }
            if pause == 0 || is_left(&lock) {
                durable::remove(&lock)?;
            } else {
                std::thread::sleep(PAUSE);
            }
            file = open();
        }
        Ok(Self { file: file?, lock, path: path.into(), committed: false })
    }

    fn write(&self, id: &ObjectId) -> io::Result<()> {
        writeln!(&self.file, "{id}")
    }

    fn commit(mut self) -> io::Result<()> {
        fs::rename(&self.lock, &self.path)?;
        self.committed = true;
        Ok(())
    }
}

/// Says whether a lock on a ref of ours is one of ours that died. Whoever of us is alive and moves refs of this work tree holds its
/// lock; and git takes them for a moment when it packs refs, and writes nothing.
fn is_left(lock: &Path) -> bool {
    fs::symlink_metadata(lock).is_ok_and(|found| found.len() > 0)
}

impl Drop for RefLock {
    fn drop(&mut self) {
        if !self.committed {
            // Nothing can be done about a failure here; the next writer's error names the lock.
            let _ = fs::remove_file(&self.lock);
        }
    }
}

/// The error of reading or writing a ref.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RefError {
    /// git refused.
    #[error("failed to work on refs")]
    Git(#[from] GitError),
    /// A ref could not be read.
    #[error("failed to read the ref `{name}`")]
    Read {
        /// The ref.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A ref could not be written.
    #[error("failed to write the ref `{name}`")]
    Write {
        /// The ref.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A ref was not where it was expected.
    #[error("the ref `{name}` is not where it was expected")]
    Moved {
        /// The ref.
        name: String,
        /// What it names.
        found: Option<ObjectId>,
    },
    /// Another git holds the lock of a ref.
    #[error("the ref `{name}` is locked by another git process (`{name}.lock` exists)")]
    Locked {
        /// The ref.
        name: String,
    },
}
