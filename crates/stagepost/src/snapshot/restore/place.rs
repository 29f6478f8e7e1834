//! What is done to one path at a time, by any thread: delete it, put a written file in its place, change its mode.
//!
//! Each looks first whether the path is still as it was seen, and touches nothing if it is not.

use super::task::Task;
use crate::snapshot::beneath::{Error, Folder, Node, Place, Root, Stamp, Temporary, name};
use crate::snapshot::tree::EntryMode;

/// What became of one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is as it should be.
    Done,
    /// Someone changed it since it was looked at; it was not touched.
    Changed,
}

/// A path to change, and what stood there when we looked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'t> {
    pub(super) task: &'t Task,
    pub(super) node: Node,
    /// What it held, if it has other names: an act on one of them changes the stamp of all.
    pub(super) held: Option<blake3::Hash>,
}

impl Seen<'_> {
    fn name(&self) -> &[u8] {
        name(self.task.path.as_bytes())
    }

    /// The regular file that stood there, if it was one.
    pub(super) fn replaced_file(&self) -> Option<Stamp> {
        match self.node {
            Node::File(stamp) => Some(stamp),
            _ => None,
        }
    }

    /// Deletes the file, unless it changed.
    pub(super) fn delete(&self, root: &Root) -> Result<Outcome, Error> {
        self.if_unchanged(root, |folder| folder.remove(self.name()))
    }

    /// Gives or takes the right to execute the file, unless it changed.
    pub(super) fn change_mode(&self, root: &Root) -> Result<Outcome, Error> {
        let executable = self.task.after.as_ref().is_some_and(|after| after.mode == EntryMode::Executable);
        self.if_unchanged(root, |folder| folder.set_executable(self.name(), executable))
    }

    /// Says whether what was seen is still there. Where only the file's other names can have changed, it is read again.
    fn still_stands(&self, folder: &Folder) -> Result<bool, Error> {
        let node = folder.node(self.name())?;
        let Some(held) = self.held.filter(|_| node != self.node) else { return Ok(node == self.node) };
        if !node.is_same_but_for_names(&self.node) {
            return Ok(false);
        }
        let bytes = match node {
            Node::Link(_) => folder.read_link(self.name())?,
            _ => folder.read(self.name())?.1,
        };
        Ok(blake3::hash(&bytes) == held && folder.node(self.name())?.is_same_but_for_names(&self.node))
    }

    fn if_unchanged(
        &self,
        root: &Root,
        act: impl FnOnce(&Folder) -> Result<(), Error>,
    ) -> Result<Outcome, Error> {
        let folder = match root.folder_of(self.task.path.as_bytes()) {
            Ok(Some(folder)) => folder,
            Ok(None) | Err(Error::Blocked { .. }) => return Ok(Outcome::Changed),
            Err(error) => return Err(error),
        };
        if !self.still_stands(&folder)? {
            return Ok(Outcome::Changed);
        }
        act(&folder).map(|()| Outcome::Done)
    }
}

/// A file that is written under another name, on its way to its place.
#[derive(Debug)]
pub(super) struct Written<'t> {
    pub(super) seen: Seen<'t>,
    /// The position of its folder among those of its batch.
    pub(super) folder: usize,
    pub(super) temporary: Temporary,
    /// What was meant to be written.
    pub(super) digest: blake3::Hash,
}

impl Written<'_> {
    /// Makes the content durable.
    pub(super) fn sync(&self) -> Result<(), Error> {
        let path = || self.seen.task.path.to_string();
        self.temporary.sync().map_err(|source| Error::Io { action: "sync", path: path(), source })
    }

    /// Renames the file to its place, unless that changed.
    pub(super) fn place(&self, root: &Root, folder: &Folder) -> Result<Outcome, Error> {
        let seen = match self.seen.node {
            Node::Folder => {
                remove_folders(root, self.seen.task.path.as_bytes())?;
                Seen { node: Node::Nothing, ..self.seen }
            }
            _ => self.seen,
        };
        if !seen.still_stands(folder)? {
            return self.give_up(folder);
        }
        let place = if seen.node == Node::Nothing { Place::Fresh } else { Place::Replace };
        match folder.place(&self.temporary, self.seen.name(), place) {
            Err(error) if error.is_occupied() => self.give_up(folder),
            placed => placed.map(|()| Outcome::Done),
        }
    }

    fn give_up(&self, folder: &Folder) -> Result<Outcome, Error> {
        folder.remove(self.temporary.name())?;
        Ok(Outcome::Changed)
    }

    /// Reads the placed file back and compares it with what was meant to be written.
    pub(super) fn reads_back(&self, folder: &Folder) -> Result<bool, Error> {
        let bytes = match folder.node(self.seen.name())? {
            Node::Link(_) => folder.read_link(self.seen.name())?,
            Node::File(_) => folder.read(self.seen.name())?.1,
            _ => return Ok(false),
        };
        Ok(blake3::hash(&bytes) == self.digest)
    }
}

/// Removes a folder that holds nothing but empty folders; where there is a file, everything from there up stays.
fn remove_folders(root: &Root, path: &[u8]) -> Result<(), Error> {
    if let Some(folder) = root.folder(path)? {
        for name in folder.names()? {
            if folder.node(&name)? == Node::Folder {
                remove_folders(root, &[path, b"/", &name].concat())?;
            }
        }
    }
    match root.folder_of(path)? {
        Some(above) => above.remove_empty(name(path)).map(|_| ()),
        None => Ok(()),
    }
}
