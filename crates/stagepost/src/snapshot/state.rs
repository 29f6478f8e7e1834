//! The private state of one work tree: what every folder and file looked like when it was last captured.
//!
//! A cache, never the truth: if it is damaged, newer than this program, or names objects that are gone, the next
//! capture looks at everything anew.
//!
//! A record is a folder with its entries, and names the places of the records of the folders in it, so that a walk
//! starts at the root's and finds every other one without a table of them. Records are only ever appended: a folder
//! that changed gets a new one, and so does every folder above it. The last record says where the root's is and what
//! all of it is valid for. The file is written anew once it has grown by a quarter.
//!
//! Layout, little-endian: 8 bytes of magic with the version; then records of `u32` length, `u32` CRC-32 and payload.
//! A payload starts with its kind: 0 for the one that says what the state is valid for, 1 for a folder.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use super::blocks::Blocks;
use super::stamp::Fingerprint;
use crate::{bounded, private};

const MAGIC: &[u8; 8] = b"stgstat\x03";
/// The length of the last record, header and payload.
const BASIS: usize = 8 + 206;
/// Added bytes below this are not worth writing everything anew.
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
    /// Of a folder that has a record: where it is, for what a folder looks like stands there.
    pub(super) stamp: Fingerprint,
    pub(super) id: Id,
}

impl<N> Entry<N> {
    /// Returns where the record of a folder is; 0 if there is none, and for all that is no folder.
    pub(super) fn place(&self) -> Place {
        if matches!(self.kind, Kind::Folder | Kind::TrackedFolder) { self.stamp.0 } else { 0 }
    }
}

impl Entry {
    pub(super) fn borrow(&self) -> Entry<&[u8]> {
        Entry { kind: self.kind, name: &self.name, stamp: self.stamp, id: self.id }
    }

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
    /// Where the record of the root is.
    pub(super) root: Place,
    /// How long the file was when it was last written anew.
    pub(super) anew: u64,
}

/// Where a record starts in the file; 0 stands for no record.
pub(super) type Place = u64;

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

/// The state of a work tree, looked into without copying.
#[derive(Debug, Clone, Default)]
pub(super) struct State<'a> {
    pub(super) basis: Option<Basis>,
    file: Option<&'a Blocks>,
    /// What comes after them in the file, but is not written yet.
    more: &'a [u8],
}

impl<'a> State<'a> {
    /// Looks for the last record and the root's, and at no other one yet: each is checked when a walk comes to it.
    pub(super) fn parse(file: &'a Blocks) -> Self {
        let basis = if file.starts_with(MAGIC) { read_last(file) } else { None };
        let state = Self { basis, file: Some(file), more: &[] };
        if state.root().is_some() { state } else { Self { basis: None, ..state } }
    }

    /// Returns the root as it was.
    pub(super) fn root(&self) -> Option<Record<'a>> {
        self.at(self.basis.as_ref()?.root)
    }

    /// Returns a folder as it was, if its record is sound and the one that the folder above it names.
    pub(super) fn below(&self, entry: &Entry<&[u8]>) -> Option<Record<'a>> {
        self.at(entry.place()).filter(|record| record.tree == entry.id)
    }

    /// Returns the folder at a path as it was.
    pub(super) fn find(&self, path: &[u8]) -> Option<Record<'a>> {
        let mut names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        names.try_fold(self.root()?, |record, name| {
            self.below(&record.entries().find(|entry| entry.name == name && entry.place() != 0)?)
        })
    }

    fn at(&self, place: Place) -> Option<Record<'a>> {
        let place = usize::try_from(place).ok().filter(|place| *place != 0)?;
        let bytes = match place.checked_sub(self.end()) {
            Some(beyond) => self.more.get(beyond..)?,
            None => self.file?.record(place)?,
        };
        let mut reader = Reader(split_record(bytes)?.0);
        if reader.byte()? != 1 {
            return None;
        }
        let (stamp, tree, below) = (reader.stamp()?, reader.array()?, reader.number()?);
        Some(Record { stamp, tree, below, entries: reader.0 })
    }

    /// Returns what must be known to write the next records.
    pub(super) fn extent(&self) -> Extent {
        Extent { basis: self.basis.clone(), end: self.end() }
    }

    fn end(&self) -> usize {
        self.file.map_or(0, Blocks::len)
    }

    /// Copies the record at a place and what it leads to, each folder after those in it, and returns where the copy is.
    /// A record that leads to one behind it is damaged, and must not lead round in a circle.
    fn copy(&self, place: Place, record: &Record<'a>, copy: &mut Journal) -> Place {
        let mut entries: Vec<_> = record.entries().map(|entry| entry.to_owned()).collect();
        for (entry, old) in entries.iter_mut().zip(record.entries()).filter(|(_, old)| old.place() != 0) {
            let below = self.below(&old).filter(|_| old.place() < place);
            entry.stamp = Fingerprint(below.map_or(0, |below| self.copy(old.place(), &below, copy)));
        }
        copy.add(record.stamp, record.tree, record.below, &entries)
    }
}

/// Reads the last record of a file.
fn read_last(file: &Blocks) -> Option<Basis> {
    let last = file.record(file.len().checked_sub(BASIS)?).filter(|record| record.len() == BASIS)?;
    let mut reader = Reader(split_record(last)?.0);
    if reader.byte()? != 0 {
        return None;
    }
    let basis = read_basis(&mut reader)?;
    reader.0.is_empty().then_some(basis)
}

/// What must be known of a state file to write the next records: it outlives the look into the file's bytes.
#[derive(Debug, Default)]
pub(super) struct Extent {
    basis: Option<Basis>,
    end: usize,
}

impl Extent {
    /// Returns where the next records go.
    pub(super) fn journal(&self) -> Journal {
        Journal { start: self.end.max(MAGIC.len()), bytes: vec![], root: 0 }
    }

    /// Writes the changed folders and the new basis: appended where that is enough, else everything anew, with what
    /// still counts of `file`. Nothing is synced, for what is lost is only looked at again.
    pub(super) fn store(
        &self,
        file: &Blocks,
        path: &Path,
        basis: &Basis,
        changed: &Journal,
    ) -> io::Result<()> {
        let root = if changed.root == 0 { basis.root } else { changed.root };
        let basis = Basis { root, ..basis.clone() };
        let Some(old) = &self.basis else { return write_anew(path, basis, changed) };
        if self.end + changed.bytes.len() <= (old.anew + old.anew / 4) as usize + SLACK {
            return self.append(path, &basis, changed);
        }
        let state = State { basis: Some(basis.clone()), file: Some(file), more: &changed.bytes };
        let record = state.root().ok_or(io::ErrorKind::InvalidData)?;
        let mut copy = Self::default().journal();
        let root = state.copy(root, &record, &mut copy);
        write_anew(path, Basis { root, ..basis }, &copy)
    }

    fn append(&self, path: &Path, basis: &Basis, changed: &Journal) -> io::Result<()> {
        if changed.bytes.is_empty() && self.basis.as_ref() == Some(basis) {
            return Ok(());
        }
        let mut file = bounded::open_as(fs::OpenOptions::new().append(true), path)?;
        // Places count from the file's beginning.
        if file.metadata()?.len() != self.end as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = changed.bytes.clone();
        push_basis(&mut bytes, basis);
        file.write_all(&bytes)
    }
}

/// Writes a file of nothing but these records.
fn write_anew(path: &Path, basis: Basis, journal: &Journal) -> io::Result<()> {
    let mut bytes = [MAGIC, journal.bytes.as_slice()].concat();
    let anew = (bytes.len() + BASIS) as u64;
    push_basis(&mut bytes, &Basis { anew, ..basis });
    let beside = path.with_extension("new");
    private::write(&beside, &bytes)?;
    fs::rename(&beside, path)
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
        root: reader.number()?,
        anew: reader.number()?,
    })
}

/// Records to be written.
#[derive(Debug)]
pub(super) struct Journal {
    /// Where they go in the file.
    start: usize,
    bytes: Vec<u8>,
    /// The place of the last one, which is the root's once all are there.
    root: Place,
}

impl Journal {
    /// Adds a folder, after those in it, and returns its place.
    pub(super) fn add(&mut self, stamp: Fingerprint, tree: Id, below: u64, entries: &[Entry]) -> Place {
        self.root = (self.start + self.bytes.len()) as Place;
        push_record(&mut self.bytes, |bytes| {
            bytes.push(1);
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
        self.root
    }
}

fn push_basis(bytes: &mut Vec<u8>, basis: &Basis) {
    push_record(bytes, |bytes| {
        bytes.push(0);
        for part in [&basis.rules, &basis.index, &basis.tracked] {
            bytes.extend_from_slice(part);
        }
        bytes.extend_from_slice(&basis.tracked_count.to_le_bytes());
        bytes.extend_from_slice(&basis.index_tree);
        bytes.push(u8::from(basis.needs_index));
        bytes.extend_from_slice(&basis.commit);
        bytes.extend_from_slice(&basis.head);
        for number in basis.counts.iter().chain([&basis.root, &basis.anew]) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    });
}

fn push_record(bytes: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; 8]);
    write(bytes);
    let payload = &bytes[start + 8..];
    let (length, sum) = (payload.len() as u32, crc32fast::hash(payload));
    bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
    bytes[start + 4..start + 8].copy_from_slice(&sum.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: Kind, name: &str, id: u8) -> Entry {
        Entry { kind, name: name.into(), stamp: Fingerprint(7), id: [id; 20] }
    }

    fn folder(name: &str, id: u8, place: Place) -> Entry {
        Entry { stamp: Fingerprint(place), ..entry(Kind::Folder, name, id) }
    }

    fn names(record: &Record<'_>) -> Vec<String> {
        record.entries().map(|entry| String::from_utf8(entry.name.to_vec()).unwrap()).collect()
    }

    fn stored() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut journal = Extent::default().journal();
        let below = journal.add(Fingerprint(5), [2; 20], 1, &[entry(Kind::Link, "l", 4)]);
        let entries = [entry(Kind::File, "a", 3), self::folder("d", 2, below)];
        journal.add(Fingerprint(6), [1; 20], 2, &entries);
        Extent::default().store(&Blocks::default(), &path, &Basis::default(), &journal).unwrap();
        (folder, path)
    }

    /// A state file with these bytes.
    fn opened(bytes: &[u8]) -> Blocks {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        Blocks::open(file.path())
    }

    /// Gives the folder `d` one other file.
    fn change(path: &Path, name: &str) {
        let before = Blocks::open(path);
        let state = State::parse(&before);
        let mut journal = state.extent().journal();
        let below = journal.add(Fingerprint(5), [9; 20], 1, &[entry(Kind::File, name, 5)]);
        journal.add(Fingerprint(6), [8; 20], 2, &[entry(Kind::File, "a", 3), folder("d", 9, below)]);
        let basis = state.basis.clone().unwrap();
        state.extent().store(&before, path, &basis, &journal).unwrap();
    }

    #[test]
    fn a_state_of_this_version_is_written_and_read_as_ever() {
        const GOLDEN: &[u8] = include_bytes!("../../tests/golden/snapshot-state-3");
        let basis = Basis {
            rules: [0x11; 32],
            index: [0x22; 32],
            tracked: [0x33; 32],
            tracked_count: 2,
            index_tree: [0x44; 20],
            needs_index: true,
            commit: [0x55; 20],
            head: [0x66; 20],
            counts: [1, 2, 3],
            ..Basis::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut journal = Extent::default().journal();
        let below = journal.add(Fingerprint(5), [2; 20], 1, &[entry(Kind::Link, "l", 4)]);
        let entries = [entry(Kind::File, "a", 3), self::folder("d", 2, below), entry(Kind::Secret, "k", 0)];
        let root = journal.add(Fingerprint(0x0102_0304_0506_0708), [1; 20], 2, &entries);
        Extent::default().store(&Blocks::default(), &path, &basis, &journal).unwrap();
        assert!(fs::read(&path).unwrap() == GOLDEN, "what is written has changed: it needs a new version");

        let file = opened(GOLDEN);
        let state = State::parse(&file);
        assert_eq!(state.basis, Some(Basis { root, anew: GOLDEN.len() as u64, ..basis }));
        let read = state.root().unwrap();
        assert_eq!((read.stamp, read.tree, read.below), (Fingerprint(0x0102_0304_0506_0708), [1; 20], 2));
        assert_eq!(read.entries().map(|one| one.to_owned()).collect::<Vec<_>>(), entries);
        assert_eq!(names(&state.find(b"d").unwrap()), ["l"]);
        let other: Vec<u8> =
            GOLDEN.iter().enumerate().map(|(at, byte)| if at == 7 { 4 } else { *byte }).collect();
        assert!(State::parse(&opened(&other)).basis.is_none(), "a version that is not known says nothing");
    }

    #[test]
    fn the_last_root_leads_to_what_counts() {
        let (_folder, path) = stored();
        change(&path, "new");
        let file = Blocks::open(&path);
        let state = State::parse(&file);
        assert_eq!(names(&state.root().unwrap()), ["a", "d"]);
        assert_eq!(names(&state.find(b"d").unwrap()), ["new"]);
        assert!(state.find(b"a").is_none() && state.find(b"d/new").is_none());
        let other = folder("d", 2, state.root().unwrap().entries().nth(1).unwrap().place());
        assert!(state.below(&other.borrow()).is_none(), "the folder above names another tree");
    }

    #[test]
    fn a_file_that_grows_is_written_anew_and_says_the_same() {
        let (_folder, path) = stored();
        let long = "n".repeat(60_000);
        let lengths: Vec<u64> = (0..12)
            .map(|_| {
                change(&path, &long);
                fs::metadata(&path).unwrap().len()
            })
            .collect();
        assert!(!lengths.is_sorted(), "it only grew: {lengths:?}");
        let file = Blocks::open(&path);
        let state = State::parse(&file);
        assert_eq!(names(&state.find(b"d").unwrap()), [long]);
        assert_eq!(names(&state.root().unwrap()), ["a", "d"]);
    }

    #[test]
    fn a_record_that_names_itself_does_not_lead_round_in_a_circle() {
        let mut journal = Extent::default().journal();
        let own = journal.start as Place;
        journal.add(Fingerprint(6), [1; 20], 1, &[entry(Kind::File, "a", 3), folder("d", 1, own)]);
        let file = opened(&[MAGIC, journal.bytes.as_slice()].concat());
        let state = State { basis: None, file: Some(&file), more: &[] };
        let record = state.below(&folder("d", 1, own).borrow()).unwrap();
        let mut copy = Extent::default().journal();
        let copied = state.copy(own, &record, &mut copy);
        let file = opened(&[MAGIC, copy.bytes.as_slice()].concat());
        let copied = State { file: Some(&file), ..State::default() }.at(copied).unwrap();
        assert!(copied.entries().all(|one| one.place() == 0), "the circle is cut");
    }

    #[test]
    fn a_file_that_is_not_as_long_as_it_was_is_not_appended_to() {
        let (_folder, path) = stored();
        let before = Blocks::open(&path);
        let extent = State::parse(&before).extent();
        private::append(&path, "x").unwrap();
        let mut journal = extent.journal();
        journal.add(Fingerprint(6), [8; 20], 0, &[]);
        assert!(extent.store(&before, &path, &Basis::default(), &journal).is_err());
    }

    #[test]
    fn any_damaged_byte_makes_the_state_worthless_but_never_wrong() {
        let (_folder, path) = stored();
        let sound = fs::read(&path).unwrap();
        let is_whole = |bytes: Vec<u8>| {
            let file = opened(&bytes);
            let state = State::parse(&file);
            state.root().is_some() && state.find(b"d").is_some()
        };
        assert!(is_whole(sound.clone()));
        for position in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[position] ^= 0x40;
            assert!(!is_whole(bytes), "byte {position}");
        }
        for length in 0..sound.len() {
            assert!(!is_whole(sound[..length].to_vec()), "{length} bytes");
        }
    }
}
