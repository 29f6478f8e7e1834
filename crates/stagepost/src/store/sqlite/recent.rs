//! The payloads written last.

use std::sync::{Arc, Mutex};

use super::super::blob::Prepared;
use super::lock;
use crate::model::BlobRef;

/// The payloads written last, so that their continuations are cheap to write and they are cheap to read.
#[derive(Default)]
pub(super) struct Recent(Mutex<Vec<Arc<RecentBlob>>>);

/// A payload with the numbers it was stored under.
pub(super) struct RecentBlob {
    pub(super) prepared: Prepared,
    pub(super) number: i64,
    pub(super) depth: i64,
    pub(super) pieces: Vec<i64>,
}

impl Recent {
    const MOST: usize = 16;
    const MOST_BYTES: usize = 32 << 20;

    pub(super) fn get(&self, blob: &BlobRef) -> Option<Arc<RecentBlob>> {
        let recent = lock(&self.0);
        recent.iter().find(|recent| recent.prepared.blob == *blob).cloned()
    }

    /// Keeps a payload in place of the one it continues, which nobody will continue again.
    pub(super) fn keep(&self, blob: Arc<RecentBlob>) {
        if blob.prepared.bytes.len() > Self::MOST_BYTES / 4 {
            return;
        }
        let mut recent = lock(&self.0);
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
        lock(&self.0).clear();
    }
}
