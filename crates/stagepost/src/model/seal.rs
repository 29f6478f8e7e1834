//! Seals: a hash over the canonical record and the seal of what came before it.
//!
//! Altering a record breaks its own seal; swapping, dropping or reordering breaks the seal of the next one, and
//! the chain over the whole store (see `docs/storage-format.md`) covers what has no next.

use super::Hash;

/// Domain of the seal of a run.
pub(crate) const RUN: &str = "stagepost 1 run";
/// Domain of the seal of a checkpoint.
pub(crate) const CHECKPOINT: &str = "stagepost 1 checkpoint";
/// Domain of the seal of an event.
pub(crate) const EVENT: &str = "stagepost 1 event";
/// Domain of the chain over all entries of a store.
const CHAIN: &str = "stagepost 1 chain";

/// Hashes `record`, and the seal of its parent if it has one, in the given domain.
pub(crate) fn seal(domain: &str, record: &str, parent: Option<&Hash>) -> Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(domain.as_bytes());
    hasher.update(&[0]);
    hasher.update(record.as_bytes());
    hasher.update(&[0]);
    if let Some(parent) = parent {
        hasher.update(parent.as_bytes());
    }
    hasher.finalize().into()
}

/// Extends the chain over all entries of a store by one entry.
pub fn chain(before: &Hash, seal: &Hash) -> Hash {
    // At once, not part by part: this is done for every entry that is written or read.
    const NAMED: usize = CHAIN.len();
    let mut link = [0; NAMED + 64];
    link[..NAMED].copy_from_slice(CHAIN.as_bytes());
    link[NAMED..NAMED + 32].copy_from_slice(before.as_bytes());
    link[NAMED + 32..].copy_from_slice(seal.as_bytes());
    Hash::of(&link)
}

/// The chain of a store without entries.
pub fn chain_start() -> Hash {
    Hash::of(CHAIN.as_bytes())
}
