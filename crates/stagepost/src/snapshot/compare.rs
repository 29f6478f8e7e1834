//! What differs between two trees, found without looking into folders that are equal.

use std::collections::HashMap;

use super::objects::{ObjectError, Objects};
use super::tree::{EntryMode, TreeEntry};
use crate::model::{FileCounts, ObjectId, RepoPath};

/// One side of a change: what the path is and what it holds.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Side {
    /// What it is; never a folder.
    pub mode: EntryMode,
    /// The blob, or the commit of a submodule.
    pub id: ObjectId,
}

/// A path that differs between two trees. A file that became a folder is a deletion and additions below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub path: RepoPath,
    /// What it was; absent if it was added.
    pub old: Option<Side>,
    /// What it is; absent if it was deleted.
    pub new: Option<Side>,
}

impl Objects {
    /// Returns the paths that differ between two trees, sorted by path; `None` stands for the empty tree.
    pub fn diff_trees(
        &self,
        old: Option<&ObjectId>,
        new: Option<&ObjectId>,
    ) -> Result<Vec<Change>, ObjectError> {
        let mut changes = Vec::new();
        self.diff_folder(&[], old, new, &mut changes)?;
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }

    fn diff_folder(
        &self,
        prefix: &[u8],
        old: Option<&ObjectId>,
        new: Option<&ObjectId>,
        changes: &mut Vec<Change>,
    ) -> Result<(), ObjectError> {
        if old == new {
            return Ok(());
        }
        let entries = |id: Option<&ObjectId>| id.map_or_else(|| Ok(Vec::new()), |id| self.tree(id));
        let (mut old, mut new) = (entries(old)?, entries(new)?);
        // By name alone, so that a file and the folder in its place meet.
        old.sort_by(|a, b| a.name.cmp(&b.name));
        new.sort_by(|a, b| a.name.cmp(&b.name));
        let (mut old, mut new) = (old.into_iter().peekable(), new.into_iter().peekable());
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(old), Some(new)) => old.name.cmp(&new.name),
            };
            let old = if order.is_le() { old.next() } else { None };
            let new = if order.is_ge() { new.next() } else { None };
            if old != new {
                self.diff_entry(prefix, old, new, changes)?;
            }
        }
    }

    fn diff_entry(
        &self,
        prefix: &[u8],
        old: Option<TreeEntry>,
        new: Option<TreeEntry>,
        changes: &mut Vec<Change>,
    ) -> Result<(), ObjectError> {
        let Some(name) = old.as_ref().or(new.as_ref()).map(|entry| &entry.name) else { return Ok(()) };
        let path = if prefix.is_empty() { name.clone() } else { [prefix, b"/", name].concat() };
        let (old_folder, old_file) = split(old);
        let (new_folder, new_file) = split(new);
        if old_file != new_file {
            changes.push(Change { path: RepoPath::from_bytes(path.clone()), old: old_file, new: new_file });
        }
        self.diff_folder(&path, old_folder.as_ref(), new_folder.as_ref(), changes)
    }
}

impl Objects {
    /// Brings the counts of how `old` differs from `base` up to date with `new`: only what differs between the two is
    /// looked up in `base`, however far away that is.
    pub(super) fn recount(
        &self,
        base: Option<&ObjectId>,
        [old, new]: [&ObjectId; 2],
        mut counts: FileCounts,
        counted: impl Fn(&RepoPath) -> bool,
    ) -> Result<FileCounts, ObjectError> {
        let mut trees = HashMap::new();
        for change in self.diff_trees(Some(old), Some(new))?.iter().filter(|change| counted(&change.path)) {
            let there = self.side_at(base, &change.path, &mut trees)?;
            if let Some(count) = count_of(&mut counts, there.as_ref(), change.old.as_ref()) {
                *count = count.saturating_sub(1);
            }
            if let Some(count) = count_of(&mut counts, there.as_ref(), change.new.as_ref()) {
                *count += 1;
            }
        }
        Ok(counts)
    }

    /// Returns the file at a path of a tree; `trees` are those that were read.
    fn side_at(
        &self,
        tree: Option<&ObjectId>,
        path: &RepoPath,
        trees: &mut HashMap<ObjectId, Vec<TreeEntry>>,
    ) -> Result<Option<Side>, ObjectError> {
        let (mut folder, mut file) = (tree.cloned(), None);
        for part in path.parts() {
            let Some(id) = folder else { return Ok(None) };
            if !trees.contains_key(&id) {
                trees.insert(id.clone(), self.tree(&id)?);
            }
            let entry = trees[&id].iter().find(|entry| entry.name == part).cloned();
            (folder, file) = split(entry);
        }
        Ok(file)
    }
}

/// Returns the count that a path belongs to, if it differs.
fn count_of<'a>(counts: &'a mut FileCounts, base: Option<&Side>, now: Option<&Side>) -> Option<&'a mut u64> {
    match (base, now) {
        (base, now) if base == now => None,
        (None, _) => Some(&mut counts.added),
        (_, None) => Some(&mut counts.deleted),
        _ => Some(&mut counts.modified),
    }
}

/// Splits an entry into the folder or the file that it is.
fn split(entry: Option<TreeEntry>) -> (Option<ObjectId>, Option<Side>) {
    match entry {
        Some(TreeEntry { mode: EntryMode::Folder, id, .. }) => (Some(id), None),
        Some(TreeEntry { mode, id, .. }) => (None, Some(Side { mode, id })),
        None => (None, None),
    }
}

/// Counts changes by kind.
pub(super) fn count(changes: &[Change], total: u64) -> FileCounts {
    let mut counts = FileCounts { total, ..FileCounts::default() };
    for change in changes {
        if let Some(count) = count_of(&mut counts, change.old.as_ref(), change.new.as_ref()) {
            *count += 1;
        }
    }
    counts
}
