//! Files that two trees hold alike and a work tree does not, because the attributes differ.
//!
//! `*.txt text eol=crlf` coming or going changes what stands in the work tree for blobs that stay the same. Git
//! leaves such files as they are; a restore that promises the snapshot's tree must write them again. Only a
//! restore that changes a `.gitattributes` pays for this.

use std::collections::{BTreeMap, HashSet};

use super::error::RestoreError;
use crate::model::{ObjectId, RepoPath};
use crate::snapshot::beneath::{name, parent};
use crate::snapshot::compare::{Change, Side};
use crate::snapshot::git::Git;
use crate::snapshot::tree::EntryMode;
use crate::snapshot::{Snapshots, quarantine};

/// The attributes that decide how a file is converted.
const DECISIVE: [&str; 6] = ["text", "eol", "crlf", "ident", "filter", "working-tree-encoding"];

/// Whether a path says how others are converted.
pub(super) fn is_attributes(path: &RepoPath) -> bool {
    name(path.as_bytes()) == b".gitattributes"
}

impl Snapshots {
    /// Returns files that both trees hold alike but convert differently, as changes from themselves to themselves.
    pub(super) fn converted_otherwise(
        &self,
        changes: &[Change],
        from: &ObjectId,
        to: &ObjectId,
    ) -> Result<Vec<Change>, RestoreError> {
        let folders: Vec<RepoPath> = changes
            .iter()
            .filter(|change| is_attributes(&change.path))
            .map(|change| RepoPath::from_bytes(parent(change.path.as_bytes())))
            .collect();
        if folders.is_empty() {
            return Ok(Vec::new());
        }
        let changed: HashSet<&RepoPath> = changes.iter().map(|change| &change.path).collect();
        let mut files = BTreeMap::new();
        self.files_beneath(to, &[], &folders, &mut files)?;
        files.retain(|path, _| !changed.contains(path));
        let paths: Vec<u8> = files.keys().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
        let (before, after) = (self.attributes(from, &paths)?, self.attributes(to, &paths)?);
        let differs = |path: &RepoPath| before.get(path) != after.get(path);
        let otherwise = files.into_iter().filter(|(path, _)| differs(path));
        Ok(otherwise.map(|(path, side)| Change { path, old: Some(side.clone()), new: Some(side) }).collect())
    }

    fn files_beneath(
        &self,
        tree: &ObjectId,
        prefix: &[u8],
        folders: &[RepoPath],
        files: &mut BTreeMap<RepoPath, Side>,
    ) -> Result<(), RestoreError> {
        for entry in self.objects.tree(tree)? {
            let path = if prefix.is_empty() { entry.name } else { [prefix, b"/", &entry.name].concat() };
            let whole = RepoPath::from_bytes(path.clone());
            let concerned = folders.iter().any(|folder| whole.is_within(folder) || folder.is_within(&whole));
            match entry.mode {
                EntryMode::Folder if concerned => self.files_beneath(&entry.id, &path, folders, files)?,
                EntryMode::File | EntryMode::Executable if concerned => {
                    files.insert(whole, Side { mode: entry.mode, id: entry.id });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The decisive attributes of each path, as a tree's own `.gitattributes` give them.
    fn attributes(&self, tree: &ObjectId, paths: &[u8]) -> Result<BTreeMap<RepoPath, Vec<u8>>, RestoreError> {
        let source = format!("--source={tree}");
        let args = [&["check-attr", source.as_str(), "-z", "--stdin"][..], &DECISIVE].concat();
        let answer = self.git_for_all_objects().run(&args, paths)?;
        let fields: Vec<&[u8]> = answer.split(|byte| *byte == 0).collect();
        let mut attributes: BTreeMap<RepoPath, Vec<u8>> = BTreeMap::new();
        for field in fields.chunks_exact(3) {
            let values = attributes.entry(RepoPath::from_bytes(field[0])).or_default();
            values.extend([field[1], b"=", field[2], b"\n"].concat());
        }
        Ok(attributes)
    }

    /// git as it sees the work tree, able to read what only a private store holds.
    pub(super) fn git_for_all_objects(&self) -> Git {
        self.rules_git.with("GIT_ALTERNATE_OBJECT_DIRECTORIES", quarantine::join(&self.object_dirs()))
    }
}
