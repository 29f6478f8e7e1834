//! Reading git's objects: blobs, trees, commits, and what differs between two trees.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::{Mutex, PoisonError};

use super::commit::Commit;
use super::git::{Git, GitError};
use super::sink::Pending;
use super::tree::{self, TreeEntry};
use crate::model::{ObjectId, RepoPath};

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// Content of a file or target of a link.
    Blob,
    /// A folder.
    Tree,
    /// A commit.
    Commit,
    /// An annotated tag.
    Tag,
}

impl ObjectKind {
    /// Returns git's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Tree => "tree",
            Self::Commit => "commit",
            Self::Tag => "tag",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        [Self::Blob, Self::Tree, Self::Commit, Self::Tag].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// The objects that snapshots are made of. What the last [`look`](super::Snapshots::look) found is here too, until
/// the next one, although it was not written.
pub struct Objects {
    git: Git,
    /// Read directly where the formats are known; else git is asked.
    odbs: Vec<Odb>,
    process: Mutex<Option<Process>>,
    pending: Mutex<Pending>,
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects").field("git", &self.git).finish_non_exhaustive()
    }
}

impl Objects {
    /// Objects that git is asked for.
    pub(super) fn new(git: Git) -> Self {
        Self { git, odbs: vec![], process: Mutex::default(), pending: Mutex::default() }
    }

    /// Objects that are read from these object stores.
    pub(super) fn direct(git: Git, folders: Vec<PathBuf>, odbs: Vec<gix::odb::Handle>) -> Self {
        let odbs = folders.into_iter().zip(odbs).map(|(folder, odb)| Odb::new(folder, odb)).collect();
        Self { odbs, ..Self::new(git) }
    }

    /// Returns the content of a blob.
    pub fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, ObjectError> {
        self.read_as(id, ObjectKind::Blob)
    }

    /// Returns the entries of a tree, in git's order.
    pub fn tree(&self, id: &ObjectId) -> Result<Vec<TreeEntry>, ObjectError> {
        let bytes = self.read_as(id, ObjectKind::Tree)?;
        tree::parse(&bytes, id.as_str().len() / 2).ok_or_else(|| ObjectError::Malformed { id: id.clone() })
    }

    /// Returns a commit's tree and parents.
    pub fn commit(&self, id: &ObjectId) -> Result<Commit, ObjectError> {
        let bytes = self.read_as(id, ObjectKind::Commit)?;
        Commit::parse(&bytes).ok_or_else(|| ObjectError::Malformed { id: id.clone() })
    }

    /// Says whether an object is there.
    pub fn exists(&self, id: &ObjectId) -> Result<bool, ObjectError> {
        Ok(self.size(id)?.is_some())
    }

    /// Returns what an object is and how many bytes it has; `None` if it is not there.
    pub fn size(&self, id: &ObjectId) -> Result<Option<(ObjectKind, u64)>, ObjectError> {
        Ok(self.find(id)?.map(|(kind, bytes)| (kind, bytes.len() as u64)))
    }

    /// Returns an object's kind and bytes; `None` if it is not there.
    pub fn find(&self, id: &ObjectId) -> Result<Option<Object>, ObjectError> {
        if let Some(object) = self.pending.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
            return Ok(Some(object.clone()));
        }
        if !self.odbs.is_empty() {
            // A handle has room for as many packs as there were when it was opened, and some. Whoever works for long
            // comes across more, so what it does not find is looked for with a new one.
            return match self.find_directly(id, Odb::find) {
                Ok(Some(found)) => Ok(Some(found)),
                _ => self.find_directly(id, Odb::find_anew),
            };
        }
        let mut slot = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            *slot = Some(Process::start(&self.git)?);
        }
        let process = slot.as_mut().expect("it was started above");
        let found = process.ask(id);
        if found.is_err() {
            // The conversation is out of step; the next question starts a new one.
            *slot = None;
        }
        found.map_err(|source| ObjectError::Read { id: id.clone(), source })
    }

    fn find_directly(
        &self,
        id: &ObjectId,
        look: impl Fn(&Odb, &gix::hash::oid) -> Result<Option<Object>, gix::Error>,
    ) -> Result<Option<Object>, ObjectError> {
        let Ok(name) = gix::hash::ObjectId::try_from(id.to_bytes().as_slice()) else { return Ok(None) };
        let failed = |error: gix::Error| ObjectError::Read {
            id: id.clone(),
            source: io::Error::other(error.to_string()),
        };
        for odb in &self.odbs {
            if let Some(found) = look(odb, &name).map_err(failed)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Forgets the process, so that objects written since it started are seen for sure.
    pub(super) fn refresh(&self) {
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Replaces what is readable without having been written.
    pub(super) fn set_pending(&self, objects: Pending) {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = objects;
    }

    fn read_as(&self, id: &ObjectId, wanted: ObjectKind) -> Result<Vec<u8>, ObjectError> {
        match self.find(id)? {
            Some((kind, bytes)) if kind == wanted => Ok(bytes),
            Some((kind, _)) => Err(ObjectError::Kind { id: id.clone(), wanted, kind }),
            None => Err(ObjectError::Missing { id: id.clone() }),
        }
    }
}

/// An object's kind and bytes.
type Object = (ObjectKind, Vec<u8>);

/// An object store that is read directly. A handle serves one reader at a time, so each reader takes one of those that are idle.
struct Odb {
    folder: PathBuf,
    newest: Mutex<gix::odb::Handle>,
    idle: Mutex<Vec<gix::odb::Handle>>,
}

impl Odb {
    fn new(folder: PathBuf, newest: gix::odb::Handle) -> Self {
        Self { folder, newest: Mutex::new(newest), idle: Mutex::default() }
    }

    fn find(&self, name: &gix::hash::oid) -> Result<Option<Object>, gix::Error> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let handle = taken.unwrap_or_else(|| super::handle_of(&self.newest));
        let found = find_with(&handle, name);
        idle().push(handle);
        found
    }

    /// Opens the store anew, for all who come later too, and finds an object in it.
    fn find_anew(&self, name: &gix::hash::oid) -> Result<Option<Object>, gix::Error> {
        let Ok(fresh) = gix::odb::at(self.folder.clone(), gix::hash::Kind::Sha1) else {
            return self.find(name);
        };
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = fresh.clone();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        find_with(&fresh, name)
    }
}

fn find_with(odb: &gix::odb::Handle, name: &gix::hash::oid) -> Result<Option<Object>, gix::Error> {
    let mut buffer = Vec::new();
    let kind = gix::objs::Find::try_find(odb, name, &mut buffer)?.map(|object| kind_of(object.kind));
    Ok(kind.map(|kind| (kind, buffer)))
}

fn kind_of(kind: gix::objs::Kind) -> ObjectKind {
    match kind {
        gix::objs::Kind::Blob => ObjectKind::Blob,
        gix::objs::Kind::Tree => ObjectKind::Tree,
        gix::objs::Kind::Commit => ObjectKind::Commit,
        gix::objs::Kind::Tag => ObjectKind::Tag,
    }
}

/// A `git cat-file --batch` that answers one question after the other.
#[derive(Debug)]
struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    fn start(git: &Git) -> Result<Self, GitError> {
        let mut child = git.spawn(&["cat-file", "--batch"])?;
        // Nobody reads it; closed, so that git can never wait for a reader.
        drop(child.stderr.take());
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => Ok(Self { child, stdin, stdout: BufReader::new(stdout) }),
            _ => Err(GitError::Answer { command: "cat-file".to_owned() }),
        }
    }

    fn ask(&mut self, id: &ObjectId) -> io::Result<Option<Object>> {
        writeln!(self.stdin, "{id}")?;
        self.stdin.flush()?;
        let mut header = String::new();
        self.stdout.read_line(&mut header)?;
        let mut words = header.split_ascii_whitespace().skip(1);
        let (kind, size) = (words.next().unwrap_or_default(), words.next());
        if kind == "missing" {
            return Ok(None);
        }
        let size = size.and_then(|size| size.parse::<usize>().ok());
        let (Some(kind), Some(size)) = (ObjectKind::from_word(kind), size) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "git cannot read the object"));
        };
        let mut bytes = vec![0; size + 1];
        self.stdout.read_exact(&mut bytes)?;
        bytes.pop();
        Ok(Some((kind, bytes)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It only reads, so ending it is safe; waiting leaves no zombie.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The error of reading an object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// git could not be asked.
    #[error("failed to read objects")]
    Git(#[from] GitError),
    /// The object could not be read.
    #[error("failed to read object {id}")]
    Read {
        /// The object.
        id: ObjectId,
        /// Why.
        source: io::Error,
    },
    /// The object is not there.
    #[error("object {id} is missing")]
    Missing {
        /// The object.
        id: ObjectId,
    },
    /// The object is of another kind.
    #[error("object {id} is a {}, not a {}", kind.as_str(), wanted.as_str())]
    Kind {
        /// The object.
        id: ObjectId,
        /// What it should be.
        wanted: ObjectKind,
        /// What it is.
        kind: ObjectKind,
    },
    /// An object could not be converted to what stands in the work tree.
    #[error("failed to convert `{path}` for the work tree")]
    Convert {
        /// The path.
        path: RepoPath,
        /// Why.
        source: io::Error,
    },
    /// The object's bytes make no sense.
    #[error("object {id} is malformed")]
    Malformed {
        /// The object.
        id: ObjectId,
    },
}

impl ObjectError {
    /// Says whether an object is not there as it was written.
    pub fn is_damage(&self) -> bool {
        use io::ErrorKind::{InvalidData, Other, UnexpectedEof};
        match self {
            Self::Missing { .. } | Self::Kind { .. } | Self::Malformed { .. } => true,
            Self::Read { source, .. } => matches!(source.kind(), InvalidData | Other | UnexpectedEof),
            Self::Git(_) | Self::Convert { .. } => false,
        }
    }
}
