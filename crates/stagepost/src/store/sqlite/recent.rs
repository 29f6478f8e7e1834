//! The payloads written last.

use std::sync::{Arc, Mutex};

use super::super::blob::Prepared;
use super::lock;
use crate::model::BlobRef;

/// The payloads written last, so that their continuations are cheap to write and they are cheap to read.
#[derive(Default)]
pub(super) struct Recent {
    written: Mutex<Vec<Arc<RecentBlob>>>,
    read: Mutex<Vec<Read>>,
}

/// A payload that was read, with its bytes once it was read twice.
type Read = (BlobRef, Option<Arc<Vec<u8>>>);

/// A payload with the numbers it was stored under.
pub(super) struct RecentBlob {
    pub(super) prepared: Prepared,
    pub(super) number: i64,
    pub(super) depth: i64,
    pub(super) pieces: Vec<i64>,
}

impl Recent {
    const MOST: usize = 16;
    const MOST_READ: usize = 4;
    /// Smaller ones are read as fast from the database.
    const LEAST_READ: usize = 16 << 10;
    const MOST_BYTES: usize = 32 << 20;

    pub(super) fn get(&self, blob: &BlobRef) -> Option<Arc<RecentBlob>> {
        let recent = lock(&self.written);
        recent.iter().find(|recent| recent.prepared.blob == *blob).cloned()
    }

    /// Returns the bytes of a payload that was written or read lately. They were checked then.
    pub(super) fn bytes(&self, blob: &BlobRef) -> Option<Arc<Vec<u8>>> {
        let written = self.get(blob).map(|recent| recent.prepared.bytes.clone());
        written.or_else(|| {
            lock(&self.read).iter().find(|(known, _)| known == blob).and_then(|(_, bytes)| bytes.clone())
        })
    }

    /// Keeps a payload that is read for the second time: a state is often read again before it changes, but who reads
    /// it once should not pay for a copy.
    pub(super) fn keep_read(&self, blob: &BlobRef, bytes: &[u8]) {
        if !(Self::LEAST_READ..=Self::MOST_BYTES / 4).contains(&bytes.len()) {
            return;
        }
        let mut read = lock(&self.read);
        let before = read.len();
        read.retain(|(known, _)| known != blob);
        let kept = (read.len() < before).then(|| Arc::new(bytes.to_vec()));
        read.push((*blob, kept));
        let size = |bytes: &Option<Arc<Vec<u8>>>| bytes.as_ref().map_or(0, |bytes| bytes.len());
        let mut total: usize = read.iter().map(|(_, bytes)| size(bytes)).sum();
        while read.len() > Self::MOST_READ || total > Self::MOST_BYTES {
            total -= size(&read.remove(0).1);
        }
    }

    /// Keeps a payload in place of the one it continues, which nobody will continue again.
    pub(super) fn keep(&self, blob: Arc<RecentBlob>) {
        if blob.prepared.bytes.len() > Self::MOST_BYTES / 4 {
            return;
        }
        let mut recent = lock(&self.written);
        let base = blob.prepared.base;
        recent.retain(|other| other.prepared.blob != blob.prepared.blob && Some(other.prepared.blob) != base);
        recent.push(blob);
        let mut bytes: usize = recent.iter().map(|recent| recent.prepared.bytes.len()).sum();
        while recent.len() > Self::MOST || bytes > Self::MOST_BYTES {
            bytes -= recent.remove(0).prepared.bytes.len();
        }
    }

    /// Forgets everything, because numbers may mean something else from now on.
    pub(super) fn clear(&self) {
        lock(&self.written).clear();
    }
}
