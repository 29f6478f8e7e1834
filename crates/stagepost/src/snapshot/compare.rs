//! What differs between two trees, found without looking into folders that are equal.

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
            self.diff_entry(prefix, old, new, changes)?;
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
        match (&change.old, &change.new) {
            (None, _) => counts.added += 1,
            (_, None) => counts.deleted += 1,
            _ => counts.modified += 1,
        }
    }
    counts
}
