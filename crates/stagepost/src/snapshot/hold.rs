//! Taking one file into a snapshot: read, check that it did not change meanwhile, convert, store.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::capture::{CaptureError, Secrets};
use super::objects::ObjectKind;
use super::rules::Judge;
use super::secret::is_secret;
use super::stamp::{Fingerprint, Nature, Stamp, look_at};
use super::state::{Id, Kind};
use super::walk::Walk;
use crate::bounded;
use crate::model::{RepoPath, SkipReason, Skipped};

/// How often a file that changes while it is read is read again.
const ATTEMPTS: usize = 5;

/// Takes files into a snapshot, on one thread.
pub(super) struct Holder<'w> {
    walk: &'w Walk<'w>,
    judge: Option<Judge>,
    odb: gix::odb::Handle,
    pub(super) skipped: Vec<Skipped>,
    pub(super) notes: Vec<String>,
}

/// What became of a file.
pub(super) enum Held {
    As {
        kind: Kind,
        stamp: Fingerprint,
        id: Id,
    },
    /// It is there but cannot be held.
    Not,
    /// It is there and left out, for it looks like a secret.
    Secret,
    Gone,
}

/// A file's content, and its stamp if nobody wrote to it meanwhile.
struct Content {
    bytes: Vec<u8>,
    stamp: Option<Stamp>,
}

impl<'w> Holder<'w> {
    pub(super) fn new(walk: &'w Walk<'w>) -> Self {
        Self {
            walk,
            judge: None,
            odb: walk.odb.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            skipped: vec![],
            notes: vec![],
        }
    }

    pub(super) fn skip(&mut self, path: &[u8], size: u64, reason: SkipReason) {
        self.skipped.push(Skipped { path: RepoPath::from_bytes(path), size, reason });
    }

    pub(super) fn is_ignored(&mut self, path: &[u8], is_folder: bool) -> io::Result<bool> {
        self.ready()?;
        let judge = self.judge.as_mut().expect("it was made ready above");
        judge.is_ignored(path, is_folder, &self.odb)
    }

    /// Binds the rules to this thread, when they are first needed.
    fn ready(&mut self) -> io::Result<()> {
        if self.judge.is_none() {
            let index = if self.walk.ask_index { self.walk.index.get() } else { self.walk.index.loaded() };
            self.judge = Some(self.walk.rules.judge(index.map(super::index::Index::as_state))?);
        }
        Ok(())
    }

    /// Takes the file at `path`, which is called `name` in `folder`.
    pub(super) fn hold(
        &mut self,
        folder: BorrowedFd<'_>,
        path: &[u8],
        name: &[u8],
        stamp: Stamp,
        nature: Nature,
    ) -> Result<Held, CaptureError> {
        let kind = match nature {
            Nature::File => Kind::File,
            Nature::Executable => Kind::Executable,
            Nature::Link => Kind::Link,
            Nature::Folder => return Ok(Held::Gone),
            Nature::Special => {
                self.skip(path, 0, SkipReason::Special);
                return Ok(Held::Not);
            }
        };
        if !RepoPath::from_bytes(path).is_safe() {
            self.skip(path, stamp.size, SkipReason::InvalidName);
            return Ok(Held::Not);
        }
        if self.is_left_out(path, kind) {
            self.skip(path, stamp.size, SkipReason::Secret);
            return Ok(Held::Secret);
        }
        if let Some(id) = self.remembered(path, stamp, nature) {
            return Ok(Held::As { kind, stamp: stamp.if_older_than(self.walk.moment), id });
        }
        if stamp.size > self.walk.options.max_file_size && nature != Nature::Link {
            if let Some(id) = self.held_by_git(folder, path, name, stamp, nature)? {
                return Ok(Held::As { kind, stamp: stamp.if_older_than(self.walk.moment), id });
            }
            self.skip(path, stamp.size, SkipReason::TooLarge);
            return Ok(Held::Not);
        }
        let content = match nature {
            Nature::Link => read_link(folder, name),
            _ => read_file(folder, name),
        };
        match content {
            Ok(content) => self.store(path, kind, content),
            Err(Errno::NOENT) => Ok(Held::Gone),
            // A link in the place of a file, and the like: it changed between two looks.
            Err(_) => {
                self.skip(path, stamp.size, SkipReason::Unreadable);
                Ok(Held::Not)
            }
        }
    }

    /// Says whether a file is left out because its name says that it holds a secret. What git tracks is none.
    fn is_left_out(&self, path: &[u8], kind: Kind) -> bool {
        self.walk.options.secrets == Secrets::LeaveOut
            && kind != Kind::Link
            && is_secret(path)
            && self.walk.index.get().is_none_or(|index| index.tracks(path).is_none())
    }

    fn remembered(&self, path: &[u8], stamp: Stamp, nature: Nature) -> Option<Id> {
        // Only where the index was read anyway: reading one file costs less than reading a large index.
        self.walk.index.loaded()?.remembered(path, stamp, nature)
    }

    /// Returns what git holds of a large file that looks unchanged since it was added or checked out. It is read only if that
    /// is not certain.
    fn held_by_git(
        &self,
        folder: BorrowedFd<'_>,
        path: &[u8],
        name: &[u8],
        stamp: Stamp,
        nature: Nature,
    ) -> Result<Option<Id>, CaptureError> {
        let Some(index) = self.walk.index.get() else { return Ok(None) };
        let Some(id) = index.seen(path, stamp, nature) else { return Ok(None) };
        if index.remembered(path, stamp, nature).is_some() {
            return Ok(Some(id));
        }
        let hashed = hash_file(folder, name, stamp, || self.walk.deadline.check())?;
        Ok(hashed.filter(|hashed| *hashed == id))
    }

    fn store(&mut self, path: &[u8], kind: Kind, content: Content) -> Result<Held, CaptureError> {
        let stamp = match content.stamp {
            Some(stamp) => stamp.if_older_than(self.walk.moment),
            None => {
                self.notes.push(format!("`{}` kept changing while it was read", RepoPath::from_bytes(path)));
                Fingerprint::NEVER
            }
        };
        let bytes = if kind == Kind::Link { content.bytes } else { self.convert(path, content.bytes)? };
        Ok(Held::As { kind, stamp, id: self.walk.sink.add(ObjectKind::Blob, &bytes) })
    }

    /// Converts a file's bytes as `git add` does; if that fails, the bytes are kept as they are, and that is noted. Where only
    /// git can, the walk is told.
    fn convert(&mut self, path: &[u8], bytes: Vec<u8>) -> Result<Vec<u8>, CaptureError> {
        let place = self.walk.root.join(OsStr::from_bytes(path));
        self.ready().map_err(CaptureError::io("apply attributes to", &place))?;
        let judge = self.judge.as_mut().expect("it was made ready above");
        if judge.needs_git_to_clean(path, &self.odb) {
            self.walk.needs_git.store(true, Ordering::Relaxed);
            return Ok(bytes);
        }
        if !self.walk.rules.refused.is_empty() {
            let filter = judge.filter_of(path, &self.odb);
            self.notes.extend(
                filter.filter(|name| self.walk.rules.refused.contains(name)).map(|n| super::note_refused(&n)),
            );
        }
        let index = self.walk.index;
        let odb = &self.odb;
        let mut index_blob = |buffer: &mut Vec<u8>| {
            let entry = index.get()?.tracks(path)?;
            gix::objs::Find::try_find(odb, &entry.id, buffer).ok()?.map(|_| ())
        };
        match judge.clean(path, bytes.clone(), &mut index_blob, odb, self.walk.deadline) {
            Ok(converted) => Ok(converted),
            Err(_) => {
                // A filter that was ended for being late did not fail: the capture did.
                self.walk.deadline.check()?;
                let path = RepoPath::from_bytes(path);
                self.notes.push(format!("the conversion of `{path}` failed: raw bytes kept"));
                Ok(bytes)
            }
        }
    }
}

/// What one reading of a file gave.
struct Reading {
    bytes: Vec<u8>,
    before: Stamp,
    after: Stamp,
    /// The stamp of what has the file's name after reading.
    named: Option<Stamp>,
}

impl Reading {
    /// Says that nobody wrote to the file meanwhile. A rename over its name does not touch the file that was read;
    /// only the name tells.
    fn is_whole(&self) -> bool {
        self.before == self.after
            && self.named == Some(self.after)
            && self.bytes.len() as u64 == self.after.size
    }
}

/// Reads a file until nobody writes to it meanwhile, or often enough.
fn until_whole(mut read: impl FnMut() -> rustix::io::Result<Reading>) -> rustix::io::Result<Content> {
    let mut reading = read()?;
    for _ in 1..ATTEMPTS {
        if reading.is_whole() {
            break;
        }
        reading = read()?;
    }
    let stamp = reading.is_whole().then_some(reading.after);
    Ok(Content { bytes: reading.bytes, stamp })
}

/// Names a file of this stamp as git names a blob of its bytes, a part at a time; `None` if it is not that file any more.
fn hash_file(
    folder: BorrowedFd<'_>,
    name: &[u8],
    stamp: Stamp,
    go_on: impl Fn() -> Result<(), CaptureError>,
) -> Result<Option<Id>, CaptureError> {
    let Ok(file) = rustix::fs::openat(folder, name, READ, Mode::empty()) else { return Ok(None) };
    let is_still = |file: &std::fs::File| rustix::fs::fstat(file).is_ok_and(|stat| Stamp::of(&stat) == stamp);
    let mut file = std::fs::File::from(file);
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(format!("blob {}\0", stamp.size).as_bytes());
    let mut part = vec![0; 1 << 20];
    loop {
        go_on()?;
        match file.read(&mut part) {
            Ok(0) => break,
            Ok(length) => hasher.update(&part[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Ok(None),
        }
    }
    let id = hasher.try_finalize().ok().and_then(|id| Id::try_from(id.as_slice()).ok());
    Ok(id.filter(|_| is_still(&file)))
}

/// Without blocking: it may have become a pipe.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK);

fn read_file(folder: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Content> {
    until_whole(|| {
        let file = rustix::fs::openat(folder, name, READ, Mode::empty())?;
        let before = rustix::fs::fstat(&file)?;
        if !matches!(Nature::of(&before), Nature::File | Nature::Executable) {
            return Err(Errno::NOENT);
        }
        let file = std::fs::File::from(file);
        let bytes = bounded::read_sized(&file, before.st_size as u64)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let after = Stamp::of(&rustix::fs::fstat(&file)?);
        let named = look_at(folder, name)?.map(|stat| Stamp::of(&stat));
        Ok(Reading { bytes, before: Stamp::of(&before), after, named })
    })
}

fn read_link(folder: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Content> {
    let stamp = || look_at(folder, name).map(|stat| stat.map(|stat| Stamp::of(&stat)));
    let mut bytes = Vec::new();
    for _ in 0..ATTEMPTS {
        let before = stamp()?;
        bytes = rustix::fs::readlinkat(folder, name, bytes)?.into_bytes();
        if before.is_some() && before == stamp()? {
            return Ok(Content { bytes, stamp: before });
        }
    }
    Ok(Content { bytes, stamp: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(modified: i64) -> Stamp {
        Stamp { modified, changed: modified, size: 4, inode: 1 }
    }

    fn reading(bytes: &[u8], before: i64, after: i64, named: i64) -> Reading {
        let (before, after, named) = (stamp(before), stamp(after), Some(stamp(named)));
        Reading { bytes: bytes.to_vec(), before, after, named }
    }

    fn read_all(readings: Vec<Reading>) -> Content {
        let mut readings = readings.into_iter();
        until_whole(|| Ok(readings.next().unwrap())).unwrap()
    }

    #[test]
    fn a_file_that_was_written_or_replaced_meanwhile_is_read_again() {
        let torn = [reading(b"oldn", 1, 2, 2), reading(b"oldd", 1, 1, 2), reading(b"ol", 1, 1, 1)];
        for torn in torn {
            let content = read_all(vec![torn, reading(b"newn", 3, 3, 3)]);
            assert_eq!((content.bytes.as_slice(), content.stamp), (&b"newn"[..], Some(stamp(3))));
        }
    }

    #[test]
    fn a_file_that_never_rests_is_taken_as_it_is_but_not_believed() {
        let content = read_all((0..ATTEMPTS as i64).map(|at| reading(b"torn", at, at + 1, at + 1)).collect());
        assert_eq!(content.stamp, None);
    }
}
