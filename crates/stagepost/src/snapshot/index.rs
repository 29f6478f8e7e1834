//! The user's index, read and never written: what it tracks, what it remembers of files, and its tree.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Mode, Stage};

use super::sink::Sink;
use super::stamp::{Nature, Stamp};
use super::state::{Id, Kind, NO_ID};
use super::tree::{self, EntryMode};
use crate::bounded;
use crate::model::RepoPath;

/// The user's index.
pub(super) struct Index {
    file: gix::index::File,
    /// Entries from the second of the index itself, or later, could be out of date. git counts in seconds here, and
    /// what it looks at again it may convert differently: to agree with it, so do we.
    moment: i64,
    has_nanoseconds: bool,
}

/// Names an index file as it is now, without reading it.
pub(super) fn key_of(path: &Path) -> std::io::Result<[u8; 32]> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = match bounded::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok([0; 32]),
        other => other?,
    };
    let metadata = file.metadata()?;
    let mut hasher = blake3::Hasher::new();
    let times = [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()];
    for number in times.map(|time| time as u64).into_iter().chain([metadata.ino(), metadata.len()]) {
        hasher.update(&number.to_le_bytes());
    }
    // Its checksum too: two of the same size may be written within one tick of the clock.
    let mut checksum = [0; 20];
    if metadata.len() >= 20 {
        file.seek(SeekFrom::End(-20))?;
        file.read_exact(&mut checksum)?;
    }
    Ok(*hasher.update(&checksum).finalize().as_bytes())
}

impl Index {
    pub(super) fn read(path: &Path) -> Result<Self, gix::Error> {
        let options = gix::index::decode::Options::default();
        let file = gix::index::File::at_or_default(path, gix::hash::Kind::Sha1, false, options)?;
        let time = file.timestamp();
        let moment = time.unix_seconds().wrapping_mul(1_000_000_000);
        let has_nanoseconds = file.entries().iter().any(|entry| entry.stat.mtime.nsecs != 0);
        Ok(Self { file, moment, has_nanoseconds })
    }

    pub(super) fn as_state(&self) -> &gix::index::State {
        &self.file
    }

    pub(super) fn len(&self) -> u64 {
        self.file.entries().len() as u64
    }

    /// Says why only git itself can capture with this index, if so.
    pub(super) fn needs_git(&self) -> Option<&'static str> {
        let special = Flags::ASSUME_VALID | Flags::SKIP_WORKTREE;
        if self.file.is_sparse() {
            return Some("a sparse index");
        }
        self.file.entries().iter().find_map(|entry| match entry {
            entry if entry.stage() != Stage::Unconflicted => Some("conflicts"),
            entry if entry.flags.intersects(special) => Some("files that git is told not to look at"),
            entry if entry.mode == Mode::DIR => Some("a sparse index"),
            _ => None,
        })
    }

    /// Names which paths are tracked, and as what.
    pub(super) fn tracked_key(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        let mut buffer = Vec::new();
        for entry in self.file.entries() {
            buffer.extend_from_slice(entry.path(&self.file));
            buffer.push(0);
            if entry.mode == Mode::COMMIT {
                buffer.extend_from_slice(entry.id.as_slice());
            }
            buffer.push(u8::from(entry.mode == Mode::COMMIT));
        }
        *hasher.update(&buffer).finalize().as_bytes()
    }

    /// Says whether some attribute file is in the index but not in the work tree.
    pub(super) fn lends_attributes(&self, root: &Path) -> bool {
        let is_attributes = |path: &[u8]| path == b".gitattributes" || path.ends_with(b"/.gitattributes");
        let paths = self.file.entries().iter().map(|entry| entry.path(&self.file));
        let mut paths = paths.filter(|path| is_attributes(path));
        paths.any(|path| super::quarantine::on_disk(root, path).symlink_metadata().is_err())
    }

    pub(super) fn tracks(&self, path: &[u8]) -> Option<&gix::index::Entry> {
        self.file.entry_by_path(path.as_bstr())
    }

    /// Returns the commit of a submodule, if that is what is tracked at `path`.
    pub(super) fn submodule(&self, path: &[u8]) -> Option<Id> {
        self.tracks(path).filter(|entry| entry.mode == Mode::COMMIT).map(|entry| id_of(&entry.id))
    }

    /// Lists the files that are to be added later.
    pub(super) fn intended(&self) -> Vec<RepoPath> {
        let entries = self.file.entries().iter();
        let intended = entries.filter(|entry| entry.flags.contains(Flags::INTENT_TO_ADD));
        intended.map(|entry| RepoPath::from_bytes(entry.path(&self.file).as_bytes())).collect()
    }

    /// Says whether a submodule is tracked anywhere.
    pub(super) fn has_submodules(&self) -> bool {
        self.file.entries().iter().any(|entry| entry.mode == Mode::COMMIT)
    }

    /// Says whether something beneath a folder is tracked.
    pub(super) fn tracks_below(&self, folder: &[u8]) -> bool {
        let prefix = [folder, b"/"].concat();
        self.file.prefixed_entries_range(prefix.as_bstr()).is_some_and(|range| !range.is_empty())
    }

    /// Returns what the index remembers of a file, if it is unchanged since.
    pub(super) fn remembered(&self, path: &[u8], stamp: Stamp, nature: Nature) -> Option<Id> {
        let sure = self.has_nanoseconds && stamp.modified < self.moment;
        self.seen(path, stamp, nature).filter(|_| sure)
    }

    /// Returns what the index remembers of a file that looks unchanged. It may have been changed at the very moment that the index
    /// was written.
    pub(super) fn seen(&self, path: &[u8], stamp: Stamp, nature: Nature) -> Option<Id> {
        let entry = self.tracks(path)?;
        let mode = match nature {
            Nature::File => Mode::FILE,
            Nature::Executable => Mode::FILE_EXECUTABLE,
            Nature::Link => Mode::SYMLINK,
            Nature::Folder | Nature::Special => return None,
        };
        let stat = &entry.stat;
        let time = |time: &gix::index::entry::stat::Time| {
            i64::from(time.secs).wrapping_mul(1_000_000_000).wrapping_add(i64::from(time.nsecs))
        };
        let same = entry.mode == mode
            && !entry.flags.contains(Flags::INTENT_TO_ADD)
            && time(&stat.mtime) == stamp.modified
            && time(&stat.ctime) == stamp.changed
            && stat.size == stamp.size as u32
            && stat.ino == stamp.inode as u32;
        if same { <[u8; 20]>::try_from(entry.id.as_slice()).ok() } else { None }
    }

    /// Returns the tree of the index; new trees go to `sink`.
    pub(super) fn tree(&self, sink: &Sink) -> Id {
        match self.file.tree() {
            Some(tree) if sink.exists(&id_of(&tree.id)) => {
                self.build(0..self.file.entries().len(), 0, Some(tree), sink)
            }
            Some(tree) if tree.num_entries.is_none() => {
                self.build(0..self.file.entries().len(), 0, Some(tree), sink)
            }
            // What git remembers of a tree that nobody has is of no use.
            _ => self.build(0..self.file.entries().len(), 0, None, sink),
        }
    }

    /// Builds the tree of the entries in `range`, whose paths share the first `prefix` bytes.
    fn build(
        &self,
        range: std::ops::Range<usize>,
        prefix: usize,
        known: Option<&gix::index::extension::Tree>,
        sink: &Sink,
    ) -> Id {
        let entries = &self.file.entries()[range.clone()];
        if let Some(known) = known.filter(|known| known.num_entries == Some(entries.len() as u32)) {
            return id_of(&known.id);
        }
        let mut items: Vec<(EntryMode, &[u8], Id)> = Vec::new();
        let mut position = range.start;
        while position < range.end {
            let entry = &self.file.entries()[position];
            let rest = &entry.path(&self.file)[prefix..];
            match rest.find_byte(b'/') {
                None => {
                    let kept = !entry.flags.contains(Flags::INTENT_TO_ADD);
                    items.extend(
                        mode_of(entry.mode)
                            .filter(|_| kept)
                            .map(|mode| (mode, rest.as_bytes(), id_of(&entry.id))),
                    );
                    position += 1;
                }
                Some(slash) => {
                    let name = &rest[..slash];
                    let shared = &entry.path(&self.file)[..prefix + slash + 1];
                    let inside = &self.file.entries()[position..range.end];
                    let count = inside.partition_point(|entry| {
                        entry.path(&self.file).starts_with(shared)
                            || entry.path(&self.file) <= shared.as_bstr()
                    });
                    let known =
                        known.and_then(|known| known.children.iter().find(|child| child.name[..] == *name));
                    let id = self.build(position..position + count, prefix + slash + 1, known, sink);
                    if id != NO_ID {
                        items.push((EntryMode::Folder, name, id));
                    }
                    position += count;
                }
            }
        }
        if items.is_empty() && prefix > 0 { NO_ID } else { sink.tree(&tree::compose(&mut items)) }
    }
}

fn id_of(id: &gix::hash::oid) -> Id {
    <[u8; 20]>::try_from(id.as_bytes()).unwrap_or(NO_ID)
}

fn mode_of(mode: Mode) -> Option<EntryMode> {
    Some(match mode {
        Mode::FILE => EntryMode::File,
        Mode::FILE_EXECUTABLE => EntryMode::Executable,
        Mode::SYMLINK => EntryMode::Link,
        Mode::COMMIT => EntryMode::Submodule,
        _ => return None,
    })
}

/// Returns what an entry of the state is in a tree.
pub(super) fn tree_mode(kind: Kind) -> Option<EntryMode> {
    match kind {
        Kind::File => Some(EntryMode::File),
        Kind::Executable => Some(EntryMode::Executable),
        Kind::Link => Some(EntryMode::Link),
        Kind::Nested | Kind::Submodule => Some(EntryMode::Submodule),
        Kind::Folder | Kind::TrackedFolder => Some(EntryMode::Folder),
        Kind::IgnoredFile | Kind::IgnoredFolder | Kind::Unheld | Kind::Secret => None,
    }
}
