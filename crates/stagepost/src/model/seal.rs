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

/// Hashes the record that `write` writes, and the seal of its parent if it has one, in the given domain. All of it is
/// hashed at once, not part by part: this is done for every record that is written or read.
pub(crate) fn seal(domain: &str, parent: Option<&Hash>, write: impl FnOnce(&mut String)) -> Hash {
    let mut sealed = String::with_capacity(1024);
    sealed.push_str(domain);
    sealed.push('\0');
    write(&mut sealed);
    sealed.push('\0');
    let mut sealed = sealed.into_bytes();
    sealed.extend_from_slice(parent.map_or(&[], |parent| parent.as_bytes()));
    Hash::of(&sealed)
}

/// Extends the chain over all entries of a store by one entry.
pub fn chain(before: &Hash, seal: &Hash) -> Hash {
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
