//! From what a walk found to trees: bottom up, and only where something changed.

use std::collections::{BTreeSet, HashMap};

use super::index::tree_mode;
use super::sink::Sink;
use super::stamp::Fingerprint;
use super::state::{Entry, Id, Journal, Kind, NO_ID, Place, Record, State, join};
use super::tree;
use super::walk::{Findings, Outcome};

/// The trees of a work tree: the root's, how many files there are, and what the state must learn.
pub(super) struct Grown {
    pub(super) tree: Id,
    pub(super) total: u64,
    pub(super) journal: Journal,
}

/// What a folder has become for the one above it.
enum Now {
    /// A tree, and where its new record is if it has one.
    Tree {
        id: Id,
        below: u64,
        place: Option<Place>,
    },
    Gone,
    Nested(Option<Id>),
}

/// Builds the trees of all folders that differ, and of those above them.
pub(super) fn grow(findings: &mut Findings<'_>, state: &State<'_>, sink: &Sink) -> Grown {
    let mut now: HashMap<Vec<u8>, Now> = HashMap::new();
    let mut journal = state.extent().journal();
    for path in deepest_first(findings) {
        let outcome = match findings.folders.remove(&path) {
            Some(Outcome::Gone) => Now::Gone,
            Some(Outcome::Repository(head)) => Now::Nested(head),
            Some(Outcome::Listed { stamp, entries, record }) => {
                rebuild(&path, Some((stamp, entries)), record, &now, state, sink, &mut journal)
            }
            None => rebuild(&path, None, state.find(&path), &now, state, sink, &mut journal),
        };
        now.insert(path, outcome);
    }
    let (tree, total) = match (now.get(&[][..]), state.root()) {
        (Some(Now::Tree { id, below, .. }), _) => (*id, *below),
        (None, Some(record)) => (record.tree, record.below),
        _ => (NO_ID, 0),
    };
    // The root alone is a tree even if it is empty.
    Grown { tree: if tree == NO_ID { sink.tree(&[]) } else { tree }, total, journal }
}

/// Lists the folders that were found to differ and all above them, those below before those above.
fn deepest_first(findings: &Findings<'_>) -> Vec<Vec<u8>> {
    let mut paths = BTreeSet::new();
    for path in findings.folders.keys() {
        let mut path = path.as_slice();
        while paths.insert(path.to_vec()) && !path.is_empty() {
            path = path.iter().rposition(|byte| *byte == b'/').map_or(&[], |slash| &path[..slash]);
        }
    }
    let depth = |path: &Vec<u8>| {
        if path.is_empty() { 0 } else { 1 + path.iter().filter(|byte| **byte == b'/').count() }
    };
    let mut paths: Vec<_> = paths.into_iter().collect();
    paths.sort_by_key(|path| std::cmp::Reverse(depth(path)));
    paths
}

fn rebuild(
    path: &[u8],
    listed: Option<(Fingerprint, Vec<Entry>)>,
    record: Option<Record<'_>>,
    now: &HashMap<Vec<u8>, Now>,
    state: &State<'_>,
    sink: &Sink,
    journal: &mut Journal,
) -> Now {
    let mut same = listed.is_none();
    let (stamp, mut entries) = match (listed, record) {
        (Some(listed), _) => listed,
        (None, Some(record)) => (record.stamp, record.entries().map(|entry| entry.to_owned()).collect()),
        (None, None) => (Fingerprint::NEVER, vec![]),
    };
    let mut below = 0;
    entries.retain_mut(|entry| {
        if matches!(entry.kind, Kind::Folder | Kind::TrackedFolder) {
            let child = join(path, &entry.name);
            return match now.get(&child) {
                Some(Now::Tree { id, below: files, place }) => {
                    same &= entry.id == *id && place.is_none();
                    entry.stamp = place.map_or(entry.stamp, Fingerprint);
                    entry.id = *id;
                    below += files;
                    true
                }
                Some(Now::Gone) => {
                    same = false;
                    false
                }
                Some(Now::Nested(head)) => {
                    same = false;
                    entry.stamp = Fingerprint::NEVER;
                    entry.id = head.unwrap_or(NO_ID);
                    if head.is_some() {
                        entry.kind = Kind::Nested;
                        below += 1;
                    }
                    true
                }
                None => {
                    below += state.below(&entry.borrow()).map_or(0, |record| record.below);
                    true
                }
            };
        }
        below += u64::from(entry.kind.is_held());
        true
    });
    if let (true, Some(record)) = (same, record) {
        return Now::Tree { id: record.tree, below: record.below, place: None };
    }
    let id = tree_of(&entries, record.map(|record| record.tree), sink);
    let place = journal.add(stamp, id, below, &entries);
    Now::Tree { id, below, place: Some(place) }
}

/// Returns the tree of a folder's entries; one that was there before is not stored again.
fn tree_of(entries: &[Entry], before: Option<Id>, sink: &Sink) -> Id {
    let held = entries.iter().filter(|entry| entry.id != NO_ID);
    let mut items: Vec<_> =
        held.filter_map(|entry| Some((tree_mode(entry.kind)?, entry.name.as_slice(), entry.id))).collect();
    if items.is_empty() {
        return NO_ID;
    }
    let bytes = tree::compose(&mut items);
    let id = super::pack::sha1_of(super::ObjectKind::Tree, &bytes);
    if before == Some(id) { id } else { sink.tree(&bytes) }
}
