//! The private state of one work tree: what every folder and file looked like when it was last captured.
//!
//! A cache, never the truth: if it is damaged, newer than this program, or names objects that are gone, the next
//! capture looks at everything anew. The file is a journal of records, the later of two with one path counting, so
//! that a capture appends only the folders that changed; it is written anew once a fifth of it is out of date.
//!
//! Layout, little-endian: 8 bytes of magic with the version; then records of `u32` length, `u32` CRC-32 and payload.
//! A payload starts with its kind: 0 for the one that says what the state is valid for, 1 for a folder.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use super::stamp::Fingerprint;
use crate::private;

const MAGIC: &[u8; 8] = b"stgstat\x02";
/// Out-of-date bytes below this are not worth writing everything anew.
const SLACK: usize = 1 << 18;

pub(super) type Id = [u8; 20];
/// Stands for "no object", as an empty folder has none.
pub(super) const NO_ID: Id = [0; 20];

/// What an entry of a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    File = 0,
    Executable = 1,
    Link = 2,
    /// A repository of its own that the index does not know.
    Nested = 3,
    /// A repository of its own that the index knows as a submodule.
    Submodule = 4,
    Folder = 5,
    /// An ignored folder in which the index knows files.
    TrackedFolder = 6,
    IgnoredFile = 7,
    IgnoredFolder = 8,
    /// A file that could not be held: tried again each time.
    Unheld = 9,
    /// A file that looks like a secret, that git does not track, and that is left out.
    Secret = 10,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        use Kind::{
            Executable, File, Folder, IgnoredFile, IgnoredFolder, Link, Nested, Secret, Submodule,
            TrackedFolder, Unheld,
        };
        let kinds = [
            File,
            Executable,
            Link,
            Nested,
            Submodule,
            Folder,
            TrackedFolder,
            IgnoredFile,
            IgnoredFolder,
            Unheld,
            Secret,
        ];
        kinds.get(usize::from(byte)).copied()
    }

    /// Says whether an entry of this kind is a leaf of a tree.
    pub(super) fn is_held(self) -> bool {
        matches!(self, Self::File | Self::Executable | Self::Link | Self::Nested | Self::Submodule)
    }
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry<N = Vec<u8>> {
    pub(super) kind: Kind,
    pub(super) name: N,
    pub(super) stamp: Fingerprint,
    pub(super) id: Id,
}

impl Entry {
    /// An entry that is in no tree and is looked at each time.
    pub(super) fn left_out(kind: Kind, name: &[u8]) -> Self {
        Self { kind, name: name.to_vec(), stamp: Fingerprint::NEVER, id: NO_ID }
    }
}

impl Entry<&[u8]> {
    pub(super) fn to_owned(&self) -> Entry {
        Entry { kind: self.kind, name: self.name.to_vec(), stamp: self.stamp, id: self.id }
    }
}

/// What the state is valid for. If one of these differs, more than stamps must be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Basis {
    /// The rules: configuration, global ignore and attribute files.
    pub(super) rules: [u8; 32],
    /// The user's index file as it was.
    pub(super) index: [u8; 32],
    /// Which paths the index tracks.
    pub(super) tracked: [u8; 32],
    /// How many those are.
    pub(super) tracked_count: u64,
    /// The tree of the index.
    pub(super) index_tree: Id,
    /// Whether attribute files must be looked for in the index because the work tree lacks them.
    pub(super) needs_index: bool,
    /// The latest snapshot: its commit and HEAD at the time.
    pub(super) commit: Id,
    pub(super) head: Id,
    /// How it differed from HEAD: added, modified, deleted.
    pub(super) counts: [u64; 3],
}

/// A folder as it was last captured, still as bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) stamp: Fingerprint,
    pub(super) tree: Id,
    /// How many files are in it, at any depth.
    pub(super) below: u64,
    entries: &'a [u8],
}

impl<'a> Record<'a> {
    /// Says whether there are few enough entries to look at them twice.
    pub(super) fn is_small(&self) -> bool {
        self.entries.len() < 4096
    }

    /// Iterates over the entries, in git's order of names.
    pub(super) fn entries(&self) -> Entries<'a> {
        Entries { reader: Reader(self.entries) }
    }
}

/// Iterates over the entries of a record.
pub(super) struct Entries<'a> {
    reader: Reader<'a>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        // The record's checksum was right, so what cannot be read is its end.
        let kind = Kind::from_byte(self.reader.byte()?)?;
        let id = self.reader.array()?;
        let stamp = self.reader.stamp()?;
        let length = usize::from(u16::from_le_bytes(self.reader.array()?));
        Some(Entry { kind, name: self.reader.take(length)?, stamp, id })
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn stamp(&mut self) -> Option<Fingerprint> {
        self.number().map(Fingerprint)
    }
}

/// The bytes of a state file, to be looked into by a [`State`].
#[derive(Debug, Default)]
pub(super) struct Bytes(Vec<u8>);

impl Bytes {
    /// Reads the state file; one that is not there or cannot be read is empty.
    pub(super) fn read(path: &Path) -> Self {
        Self(fs::read(path).unwrap_or_default())
    }
}

/// The state of a work tree, looked into without copying.
#[derive(Debug, Default)]
pub(super) struct State<'a> {
    pub(super) basis: Option<Basis>,
    folders: HashMap<&'a [u8], (Record<'a>, usize), BuildPathHasher>,
    /// How many bytes of the file are sound, and how many of them are still valid.
    sound: usize,
    live: usize,
}

/// What must be known of a state file to write the next records: it outlives the look into the file's bytes.
#[derive(Debug, Default)]
pub(super) struct Extent {
    basis: Option<Basis>,
    sound: usize,
    live: usize,
}

type BuildPathHasher = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

impl<'a> State<'a> {
    /// Reads as many sound records as there are; a damaged one ends the journal.
    pub(super) fn parse(bytes: &'a Bytes) -> Self {
        let mut state = Self::default();
        let Some(mut rest) = bytes.0.strip_prefix(MAGIC) else { return state };
        state.folders.reserve(bytes.0.len() / 1024);
        while let Some((payload, tail)) = split_record(rest) {
            if state.add(payload).is_none() {
                break;
            }
            rest = tail;
        }
        state.sound = bytes.0.len() - rest.len();
        // What follows a damaged record is lost; its folders may be older than the basis says.
        if !rest.is_empty() {
            state.basis = None;
        }
        state
    }

    fn add(&mut self, payload: &'a [u8]) -> Option<()> {
        let mut reader = Reader(payload);
        match reader.byte()? {
            0 => self.basis = Some(read_basis(&mut reader)?),
            1 => {
                let length = usize::from(u16::from_le_bytes(reader.array()?));
                let path = reader.take(length)?;
                let (stamp, tree, below) = (reader.stamp()?, reader.array()?, reader.number()?);
                let record = Record { stamp, tree, below, entries: reader.0 };
                self.live += payload.len() + 8;
                if let Some((_, old)) = self.folders.insert(path, (record, payload.len() + 8)) {
                    self.live -= old;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns a folder as it was, if it is the one whose tree its parent names.
    pub(super) fn folder(&self, path: &[u8], tree: Option<Id>) -> Option<Record<'a>> {
        let (record, _) = self.folders.get(path)?;
        (tree.is_none_or(|tree| tree == record.tree)).then_some(*record)
    }

    /// Returns what must be known to write the next records.
    pub(super) fn extent(&self) -> Extent {
        Extent { basis: self.basis.clone(), sound: self.sound, live: self.live }
    }

    /// Copies what is still valid and not among the changed, from `path` down.
    fn copy_live(&self, path: &[u8], tree: Option<Id>, changed: &Journal, journal: &mut Journal) {
        let known = changed.folders.get(path);
        let record = match known {
            Some(_) => None,
            None => self.folder(path, tree),
        };
        if let Some(record) = record {
            let entries = record.entries().map(|entry| entry.to_owned()).collect::<Vec<_>>();
            journal.folder(path, record.stamp, record.tree, record.below, &entries);
            self.copy_below(path, &entries, changed, journal);
        }
        if let Some(entries) = known {
            self.copy_below(path, entries, changed, journal);
        }
    }

    fn copy_below(&self, path: &[u8], entries: &[Entry], changed: &Journal, journal: &mut Journal) {
        for entry in entries.iter().filter(|entry| matches!(entry.kind, Kind::Folder | Kind::TrackedFolder)) {
            self.copy_live(&join(path, &entry.name), Some(entry.id), changed, journal);
        }
    }
}

impl Extent {
    /// Writes the changed folders and the new basis: appended where that is enough, else everything anew, with what
    /// still counts of `bytes`. Nothing is synced, for what is lost is only looked at again.
    pub(super) fn store(
        &self,
        bytes: &Bytes,
        path: &Path,
        basis: &Basis,
        changed: &Journal,
    ) -> io::Result<()> {
        if self.basis.is_some() && !self.is_wasteful(changed.bytes.len()) {
            return self.append(path, basis, changed);
        }
        let mut journal = Journal::default();
        journal.bytes.extend_from_slice(MAGIC);
        // Folders that no parent names any more stay out: what they name may be gone one day.
        State::parse(bytes).copy_live(&[], None, changed, &mut journal);
        journal.bytes.extend_from_slice(&changed.bytes);
        journal.basis(basis);
        let beside = path.with_extension("new");
        private::write(&beside, &journal.bytes)?;
        fs::rename(&beside, path)
    }

    /// Says whether more of the file is out of date than is worth keeping.
    fn is_wasteful(&self, more: usize) -> bool {
        self.sound + more > self.live + self.live / 4 + SLACK
    }

    fn append(&self, path: &Path, basis: &Basis, changed: &Journal) -> io::Result<()> {
        let mut journal = Journal { bytes: changed.bytes.clone(), ..Journal::default() };
        if self.basis.as_ref() != Some(basis) {
            journal.basis(basis);
        }
        if journal.bytes.is_empty() {
            return Ok(());
        }
        let mut file = fs::OpenOptions::new().append(true).open(path)?;
        file.write_all(&journal.bytes)
    }
}

/// Joins a folder's path and a name in it.
pub(super) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

fn split_record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader(bytes);
    let length = u32::from_le_bytes(reader.array()?) as usize;
    let sum = u32::from_le_bytes(reader.array()?);
    let payload = reader.take(length)?;
    (crc32fast::hash(payload) == sum).then_some((payload, reader.0))
}

fn read_basis(reader: &mut Reader<'_>) -> Option<Basis> {
    Some(Basis {
        rules: reader.array()?,
        index: reader.array()?,
        tracked: reader.array()?,
        tracked_count: reader.number()?,
        index_tree: reader.array()?,
        needs_index: reader.byte()? != 0,
        commit: reader.array()?,
        head: reader.array()?,
        counts: [reader.number()?, reader.number()?, reader.number()?],
    })
}

/// Records to be written.
#[derive(Debug, Default)]
pub(super) struct Journal {
    bytes: Vec<u8>,
    folders: HashMap<Vec<u8>, Vec<Entry>>,
}

impl Journal {
    /// Adds a folder, and remembers its entries for writing everything anew.
    pub(super) fn add(&mut self, path: &[u8], stamp: Fingerprint, tree: Id, below: u64, entries: Vec<Entry>) {
        self.folder(path, stamp, tree, below, &entries);
        self.folders.insert(path.to_vec(), entries);
    }

    fn folder(&mut self, path: &[u8], stamp: Fingerprint, tree: Id, below: u64, entries: &[Entry]) {
        self.record(|bytes| {
            bytes.push(1);
            bytes.extend_from_slice(&(path.len() as u16).to_le_bytes());
            bytes.extend_from_slice(path);
            bytes.extend_from_slice(&stamp.0.to_le_bytes());
            bytes.extend_from_slice(&tree);
            bytes.extend_from_slice(&below.to_le_bytes());
            for entry in entries {
                bytes.push(entry.kind as u8);
                bytes.extend_from_slice(&entry.id);
                bytes.extend_from_slice(&entry.stamp.0.to_le_bytes());
                bytes.extend_from_slice(&(entry.name.len() as u16).to_le_bytes());
                bytes.extend_from_slice(&entry.name);
            }
        });
    }

    fn basis(&mut self, basis: &Basis) {
        self.record(|bytes| {
            bytes.push(0);
            for part in [&basis.rules, &basis.index, &basis.tracked] {
                bytes.extend_from_slice(part);
            }
            bytes.extend_from_slice(&basis.tracked_count.to_le_bytes());
            bytes.extend_from_slice(&basis.index_tree);
            bytes.push(u8::from(basis.needs_index));
            bytes.extend_from_slice(&basis.commit);
            bytes.extend_from_slice(&basis.head);
            basis.counts.iter().for_each(|count| bytes.extend_from_slice(&count.to_le_bytes()));
        });
    }

    fn record(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 8]);
        write(&mut self.bytes);
        let payload = &self.bytes[start + 8..];
        let (length, sum) = (payload.len() as u32, crc32fast::hash(payload));
        self.bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
        self.bytes[start + 4..start + 8].copy_from_slice(&sum.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: Kind, name: &str, id: u8) -> Entry {
        Entry { kind, name: name.into(), stamp: Fingerprint(7), id: [id; 20] }
    }

    fn stored() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut journal = Journal::default();
        journal.add(
            b"",
            Fingerprint::KNOWN,
            [1; 20],
            2,
            vec![entry(Kind::File, "a", 3), entry(Kind::Folder, "d", 2)],
        );
        journal.add(b"d", Fingerprint::KNOWN, [2; 20], 1, vec![entry(Kind::Link, "l", 4)]);
        Extent::default().store(&Bytes::default(), &path, &Basis::default(), &journal).unwrap();
        (folder, path)
    }

    #[test]
    fn the_later_record_counts_and_only_for_the_tree_its_parent_names() {
        let (_folder, path) = stored();
        let mut journal = Journal::default();
        journal.add(b"d", Fingerprint::KNOWN, [9; 20], 1, vec![entry(Kind::File, "new", 5)]);
        let before = Bytes::read(&path);
        State::parse(&before).extent().store(&before, &path, &Basis::default(), &journal).unwrap();

        let bytes = Bytes::read(&path);
        let state = State::parse(&bytes);
        assert_eq!(state.basis, Some(Basis::default()));
        assert_eq!(state.folder(b"d", Some([9; 20])).unwrap().entries().next().unwrap().name, b"new");
        assert!(state.folder(b"d", Some([2; 20])).is_none());
        assert_eq!(state.folder(b"", None).unwrap().entries().count(), 2);
    }

    #[test]
    fn any_damaged_byte_makes_the_state_worthless_but_never_wrong() {
        let (_folder, path) = stored();
        let sound = fs::read(&path).unwrap();
        for position in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[position] ^= 0x40;
            assert!(State::parse(&Bytes(bytes)).basis.is_none(), "byte {position}");
        }
        for length in 0..sound.len() {
            assert!(State::parse(&Bytes(sound[..length].to_vec())).basis.is_none(), "{length} bytes");
        }
    }
}
