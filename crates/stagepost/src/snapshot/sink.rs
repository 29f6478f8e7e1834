//! Where new objects go: into one pack, or, for a look, into memory. What the repository has is not taken again.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gix::objs::Exists;

use super::capture::CaptureError;
use super::objects::ObjectKind;
use super::pack;
use super::state::Id;
use crate::model::ObjectId;

/// Packs grow in memory up to this size, then in a temporary file.
const IN_MEMORY: usize = 64 << 20;
/// Larger objects are compressed less hard.
const LARGE: usize = 1 << 18;

/// Objects found by pending looks.
pub(super) type Pending = HashMap<ObjectId, (ObjectKind, Vec<u8>)>;

/// Takes new objects from several threads.
pub(super) struct Sink {
    inner: Mutex<Inner>,
}

struct Inner {
    odb: gix::odb::Handle,
    known: HashSet<Id>,
    place: Place,
}

enum Place {
    Pack { body: tempfile::SpooledTempFile, entries: Vec<Packed>, length: u64 },
    Memory(Pending),
}

/// An object in the pack that is being written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packed {
    pub(super) id: Id,
    pub(super) crc: u32,
    /// Where it starts, after the pack's header.
    pub(super) offset: u64,
}

impl Sink {
    /// A sink whose objects become a pack.
    pub(super) fn to_pack(odb: gix::odb::Handle) -> Self {
        let body = tempfile::SpooledTempFile::new(IN_MEMORY);
        Self::new(odb, Place::Pack { body, entries: vec![], length: 0 })
    }

    /// A sink whose objects stay in memory.
    pub(super) fn to_memory(odb: gix::odb::Handle) -> Self {
        Self::new(odb, Place::Memory(HashMap::new()))
    }

    fn new(mut odb: gix::odb::Handle, place: Place) -> Self {
        // Most questions are about objects that nobody has; looking for new packs each time is dear.
        odb.refresh_never();
        Self { inner: Mutex::new(Inner { odb, known: HashSet::new(), place }) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn exists(&self, id: &Id) -> bool {
        let inner = self.lock();
        inner.known.contains(id) || inner.odb.exists(&gix::hash::ObjectId::from(*id))
    }

    /// Takes a tree. Failures to write surface when the pack is finished.
    pub(super) fn tree(&self, bytes: &[u8]) -> Id {
        self.add(ObjectKind::Tree, bytes)
    }

    /// Takes an object and returns its name.
    pub(super) fn add(&self, kind: ObjectKind, bytes: &[u8]) -> Id {
        let id = pack::sha1_of(kind, bytes);
        if self.exists(&id) {
            return id;
        }
        let mut inner = self.lock();
        if let Place::Memory(pending) = &mut inner.place {
            pending.extend(ObjectId::from_bytes(&id).map(|name| (name, (kind, bytes.to_vec()))));
            inner.known.insert(id);
            return id;
        }
        drop(inner);
        let packed = pack_entry(kind, bytes);
        self.lock().push(id, packed);
        id
    }

    /// Returns what a look found.
    pub(super) fn into_pending(self) -> Pending {
        match self.inner.into_inner().unwrap_or_else(PoisonError::into_inner).place {
            Place::Memory(pending) => pending,
            Place::Pack { .. } => HashMap::new(),
        }
    }

    /// Writes the pack to an object store, durably; without objects nothing happens. Says whether it was written.
    pub(super) fn finish(self, objects_dir: &Path) -> Result<bool, CaptureError> {
        let inner = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Place::Pack { mut body, entries, length } = inner.place else { return Ok(false) };
        if entries.is_empty() {
            return Ok(false);
        }
        let failed = || CaptureError::io("read back objects for", objects_dir);
        body.seek(SeekFrom::Start(0)).map_err(failed())?;
        // A write that failed left less than was counted.
        let mut body = body.take(length);
        pack::write(objects_dir, entries, &mut body)?;
        if body.limit() != 0 {
            return Err(failed()(io::ErrorKind::WriteZero.into()));
        }
        Ok(true)
    }
}

impl Inner {
    fn push(&mut self, id: Id, packed: Vec<u8>) {
        if !self.known.insert(id) {
            return;
        }
        if let Place::Pack { body, entries, length } = &mut self.place {
            entries.push(Packed { id, crc: crc32fast::hash(&packed), offset: *length });
            *length += packed.len() as u64;
            // A failure shows as a body shorter than `length`.
            let _ = body.write_all(&packed);
        }
    }
}

/// Returns an object as it stands in a pack: kind and size, then the compressed content.
fn pack_entry(kind: ObjectKind, bytes: &[u8]) -> Vec<u8> {
    let number: u8 = match kind {
        ObjectKind::Commit => 1,
        ObjectKind::Tree => 2,
        ObjectKind::Blob => 3,
        ObjectKind::Tag => 4,
    };
    let mut size = bytes.len();
    let mut packed = Vec::with_capacity(bytes.len() / 2 + 32);
    let mut byte = number << 4 | (size & 15) as u8;
    size >>= 4;
    while size > 0 {
        packed.push(byte | 0x80);
        byte = (size & 0x7f) as u8;
        size >>= 7;
    }
    packed.push(byte);
    let level = if bytes.len() > LARGE {
        gix::zlib::Compression::BEST_SPEED
    } else {
        gix::zlib::Compression::DEFAULT
    };
    let mut writer = gix::zlib::stream::deflate::Write::new(packed, level);
    // Writing to memory cannot fail.
    let _ = writer.write_all(bytes).and_then(|()| writer.flush());
    writer.into_inner()
}
