//! Putting files in place: deletes first, then writes in batches, each path looked at again just before.
//!
//! Every function here can be cut off at any point and run again, in the same or the other direction: a path that is
//! already as it should be is done, one that is as it was is still to do, anything else was changed by someone else
//! and is not touched.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::attributes::is_attributes;
use super::content::Content;
use super::task::{Failure, Progress, Task, progress};
use crate::model::RepoPath;
use crate::snapshot::beneath::{self, Folder, Node, Place, Root, Temporary, is_temporary, name, parent};
use crate::snapshot::plan::ancestors;
use crate::snapshot::tree::EntryMode;

/// How many files are written before they are synced and put in place together. Each holds a handle.
const BATCH: usize = 64;

/// What to do about a path that someone else changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnChange {
    /// Stop before it is touched.
    Stop,
    /// Leave it, say so, and go on with the others.
    Leave,
}

/// Why files could not be put in place.
#[derive(Debug)]
pub(super) enum Stop<E> {
    /// Someone else changed this path meanwhile.
    Changed(RepoPath),
    /// What was written does not read back.
    NotAsWritten(RepoPath),
    /// The caller asked to stop.
    Asked,
    /// Looking or acting failed.
    Failed(Failure<E>),
}

impl<E> From<Failure<E>> for Stop<E> {
    fn from(failure: Failure<E>) -> Self {
        Self::Failed(failure)
    }
}

impl<E> From<beneath::Error> for Stop<E> {
    fn from(error: beneath::Error) -> Self {
        Self::Failed(Failure::Beneath(error))
    }
}

/// What was done to the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) written: usize,
    pub(super) deleted: usize,
    /// Paths that were already as they should be.
    pub(super) already: usize,
    /// Paths that someone else changed and that were left.
    pub(super) changed: Vec<RepoPath>,
}

/// Brings the paths of `tasks` from before to after.
pub(super) struct Files<'a, C> {
    root: &'a Root,
    content: &'a C,
    on_change: OnChange,
    on_step: &'a mut dyn FnMut(&RepoPath) -> ControlFlow<()>,
    /// Folders whose names changed and are not synced yet.
    unsynced: BTreeSet<Vec<u8>>,
    done: Done,
}

/// A file to put in place, written under another name.
struct Written<'t> {
    task: &'t Task,
    folder: usize,
    temporary: Temporary,
    /// What stood at the place when we looked.
    seen: Node,
    digest: blake3::Hash,
}

impl<'a, C: Content> Files<'a, C> {
    pub(super) fn new(
        root: &'a Root,
        content: &'a C,
        on_change: OnChange,
        on_step: &'a mut dyn FnMut(&RepoPath) -> ControlFlow<()>,
    ) -> Self {
        Self { root, content, on_change, on_step, unsynced: BTreeSet::new(), done: Done::default() }
    }

    /// Does all of it: looks at every path before the first is touched, and checks every path after the last.
    pub(super) fn apply(mut self, tasks: &[Task]) -> Result<Done, Stop<C::Error>> {
        let to_do = self.still_to_do(tasks)?;
        let (deletes, writes): (Vec<_>, Vec<_>) =
            to_do.into_iter().partition(|(task, _)| task.after.is_none());
        for (task, seen) in &deletes {
            self.delete(task, *seen)?;
        }
        // what converts other files goes first, so that they are converted as the target says
        let (attributes, others): (Vec<_>, Vec<_>) =
            writes.into_iter().partition(|(task, _)| is_attributes(&task.path));
        for batch in attributes.chunks(BATCH).chain(others.chunks(BATCH)) {
            self.write(batch)?;
        }
        self.remove_empty_folders(tasks)?;
        self.sync_folders()?;
        self.check_deletes(&deletes)?;
        Ok(self.done)
    }

    /// Sorts out what is done already; in the strict way, a single changed path stops everything here.
    fn still_to_do<'t>(&mut self, tasks: &'t [Task]) -> Result<Vec<(&'t Task, Node)>, Stop<C::Error>> {
        let mut to_do = Vec::new();
        for task in tasks {
            match progress(self.root, self.content, task)? {
                Progress::ToDo(seen) => to_do.push((task, seen)),
                Progress::Done => self.done.already += 1,
                Progress::Changed => self.changed(task)?,
            }
        }
        Ok(to_do)
    }

    fn changed(&mut self, task: &Task) -> Result<(), Stop<C::Error>> {
        match self.on_change {
            OnChange::Stop => Err(Stop::Changed(task.path.clone())),
            OnChange::Leave => {
                self.done.changed.push(task.path.clone());
                Ok(())
            }
        }
    }

    fn step(&mut self, path: &RepoPath) -> Result<(), Stop<C::Error>> {
        match (self.on_step)(path) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop::Asked),
        }
    }

    fn delete(&mut self, task: &Task, seen: Node) -> Result<(), Stop<C::Error>> {
        self.step(&task.path)?;
        let path = task.path.as_bytes();
        let Some(folder) = self.root.folder_of(path)? else { return self.changed(task) };
        if folder.node(name(path))? != seen {
            return self.changed(task);
        }
        folder.remove(name(path))?;
        self.unsynced.insert(folder.path().to_vec());
        self.done.deleted += 1;
        Ok(())
    }

    /// Writes a batch beside its places, makes it durable, and puts it in place.
    fn write(&mut self, batch: &[(&Task, Node)]) -> Result<(), Stop<C::Error>> {
        let mut folders: Vec<Folder> = Vec::new();
        let mut written = Vec::new();
        for (task, seen) in batch {
            if task.is_mode_only() {
                self.change_mode(task, *seen)?;
                continue;
            }
            if let Some(file) = self.write_beside(task, *seen, &mut folders)? {
                written.push(file);
            }
        }
        sync_all(&written)?;
        let mut placed = Vec::with_capacity(written.len());
        for file in &written {
            if self.place(file, &folders[file.folder])? {
                placed.push(file);
            }
        }
        placed.into_iter().try_for_each(|file| check(file, &folders[file.folder]))
    }

    fn write_beside<'t>(
        &mut self,
        task: &'t Task,
        seen: Node,
        folders: &mut Vec<Folder>,
    ) -> Result<Option<Written<'t>>, Stop<C::Error>> {
        self.step(&task.path)?;
        let Some(after) = &task.after else { return Ok(None) };
        let bytes =
            self.content.for_work_tree(&task.path, after.mode, &after.id).map_err(Failure::Content)?;
        let folder = match self.open(task, folders) {
            Err(beneath::Error::Blocked { .. }) => return self.changed(task).map(|()| None),
            opened => opened?,
        };
        let temporary = match after.mode {
            EntryMode::Link => folders[folder].link_beside(&bytes)?,
            mode => folders[folder].write_beside(&bytes, mode == EntryMode::Executable)?,
        };
        Ok(Some(Written { task, folder, temporary, seen, digest: blake3::hash(&bytes) }))
    }

    /// Opens the task's folder, or finds it among those of its batch: neighbours share one.
    fn open(&mut self, task: &Task, folders: &mut Vec<Folder>) -> Result<usize, beneath::Error> {
        let path = task.path.as_bytes();
        if folders.last().is_none_or(|folder| folder.path() != parent(path)) {
            folders.push(self.root.make_folder_of(path)?);
            // a folder made here is a new name in its parent
            self.unsynced.extend(ancestors(path).map(|above| parent(above).to_vec()));
        }
        Ok(folders.len() - 1)
    }

    /// Renames a written file to its place, unless someone changed the place meanwhile.
    fn place(&mut self, file: &Written<'_>, folder: &Folder) -> Result<bool, Stop<C::Error>> {
        self.step(&file.task.path)?;
        let path = file.task.path.as_bytes();
        if file.seen == Node::Folder {
            remove_folders(self.root, path)?;
        }
        let expected = if file.seen == Node::Folder { Node::Nothing } else { file.seen };
        if folder.node(name(path))? != expected {
            return self.give_up(file, folder);
        }
        let place = if expected == Node::Nothing { Place::Fresh } else { Place::Replace };
        match folder.place(&file.temporary, name(path), place) {
            Err(error) if error.is_occupied() => return self.give_up(file, folder),
            placed => placed?,
        }
        self.unsynced.insert(folder.path().to_vec());
        self.done.written += 1;
        Ok(true)
    }

    fn give_up(&mut self, file: &Written<'_>, folder: &Folder) -> Result<bool, Stop<C::Error>> {
        folder.remove(file.temporary.name())?;
        self.changed(file.task).map(|()| false)
    }

    fn change_mode(&mut self, task: &Task, seen: Node) -> Result<(), Stop<C::Error>> {
        self.step(&task.path)?;
        let path = task.path.as_bytes();
        let Some(folder) = self.root.folder_of(path)? else { return self.changed(task) };
        if folder.node(name(path))? != seen {
            return self.changed(task);
        }
        let executable = task.after.as_ref().is_some_and(|after| after.mode == EntryMode::Executable);
        folder.set_executable(name(path), executable)?;
        self.unsynced.insert(folder.path().to_vec());
        self.done.written += 1;
        Ok(())
    }

    /// Removes the folders that held nothing but what was deleted, deepest first.
    fn remove_empty_folders(&mut self, tasks: &[Task]) -> Result<(), Stop<C::Error>> {
        let deleted = tasks.iter().filter(|task| task.after.is_none());
        let folders: BTreeSet<&[u8]> = deleted.flat_map(|task| ancestors(task.path.as_bytes())).collect();
        for path in folders.into_iter().rev() {
            let above = match self.root.folder_of(path) {
                Ok(Some(above)) => above,
                Ok(None) | Err(beneath::Error::Blocked { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            if above.remove_empty(name(path))? {
                self.unsynced.insert(above.path().to_vec());
                self.unsynced.remove(path);
            }
        }
        Ok(())
    }

    fn sync_folders(&mut self) -> Result<(), Stop<C::Error>> {
        for path in std::mem::take(&mut self.unsynced) {
            match self.root.folder(&path) {
                Ok(Some(folder)) => folder.sync()?,
                // gone since, with everything in it: its parent's sync says so
                Ok(None) | Err(beneath::Error::Blocked { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn check_deletes(&self, deletes: &[(&Task, Node)]) -> Result<(), Stop<C::Error>> {
        for (task, _) in deletes.iter().filter(|(task, _)| !self.done.changed.contains(&task.path)) {
            if progress(self.root, self.content, task)? != Progress::Done {
                return Err(Stop::NotAsWritten(task.path.clone()));
            }
        }
        Ok(())
    }
}

fn sync_all<E>(written: &[Written<'_>]) -> Result<(), Stop<E>> {
    for file in written {
        file.temporary.sync().map_err(|source| beneath::Error::Io {
            action: "sync",
            path: file.task.path.to_string(),
            source,
        })?;
    }
    Ok(())
}

/// Reads a placed file back and compares it with what was meant to be written.
fn check<E>(file: &Written<'_>, folder: &Folder) -> Result<(), Stop<E>> {
    let name = name(file.task.path.as_bytes());
    let bytes = match folder.node(name)? {
        Node::Link(_) => folder.read_link(name)?,
        Node::File(_) => folder.read(name)?.1,
        _ => return Err(Stop::NotAsWritten(file.task.path.clone())),
    };
    if blake3::hash(&bytes) == file.digest { Ok(()) } else { Err(Stop::NotAsWritten(file.task.path.clone())) }
}

/// Removes a folder that holds nothing but empty folders; where there is a file, everything from there up stays.
fn remove_folders(root: &Root, path: &[u8]) -> Result<(), beneath::Error> {
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

/// Removes what a killed restore left beside the places of `tasks`. What a snapshot holds under such a name stays.
pub(super) fn remove_temporaries(root: &Root, tasks: &[Task]) -> Result<usize, beneath::Error> {
    let held: BTreeSet<&[u8]> = tasks.iter().map(|task| task.path.as_bytes()).collect();
    let folders: BTreeMap<&[u8], ()> = tasks.iter().map(|task| (parent(task.path.as_bytes()), ())).collect();
    let mut removed = 0;
    for path in folders.into_keys() {
        let folder = match root.folder(path) {
            Ok(Some(folder)) => folder,
            Ok(None) | Err(beneath::Error::Blocked { .. }) => continue,
            Err(error) => return Err(error),
        };
        for name in folder.names()?.into_iter().filter(|name| is_temporary(name)) {
            let whole = if path.is_empty() { name.clone() } else { [path, b"/", &name].concat() };
            if !held.contains(&whole[..]) {
                folder.remove(&name)?;
                removed += 1;
            }
        }
    }
    Ok(removed)
}
