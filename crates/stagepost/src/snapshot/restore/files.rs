//! Putting files in place: deletes first, then writes in batches, each path looked at again just before.
//!
//! Every function here can be cut off at any point and run again, in the same or the other direction: a path that is
//! already as it should be is done, one that is as it was is still to do, anything else was changed by someone else
//! and is not touched.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::attributes::is_attributes;
use super::content::Content;
use super::parallel;
use super::place::{Outcome, Seen, Written};
use super::task::{Failure, Progress, Task, progress};
use crate::model::RepoPath;
use crate::snapshot::beneath::{self, Folder, Readers, Root, is_temporary, name, parent};
use crate::snapshot::plan::ancestors;
use crate::snapshot::tree::EntryMode;

/// How many files are written before they are synced and put in place together. Each holds a handle.
const BATCH: usize = 64;
/// So many, or more, are made durable by one call for each of their batches where the system has one, and hold no handle. Their
/// folders do.
const MANY: usize = 64;
const LARGE_BATCH: usize = 2048;
const FOLDERS: usize = 64;

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
    /// Paths that git was told not to look at and that were left.
    pub(super) unwatched: Vec<RepoPath>,
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
            to_do.into_iter().partition(|seen| seen.task.after.is_none());
        self.try_filters(&writes)?;
        for batch in deletes.chunks(LARGE_BATCH) {
            self.delete(batch)?;
        }
        // a file with other names is written anew, for its mode is that of all of them
        let (modes, writes): (Vec<_>, Vec<_>) =
            writes.into_iter().partition(|seen| seen.task.is_mode_only() && seen.held.is_none());
        for batch in modes.chunks(LARGE_BATCH) {
            self.change_modes(batch)?;
        }
        // what converts other files goes first, so that they are converted as the target says
        let (attributes, others): (Vec<_>, Vec<_>) =
            writes.into_iter().partition(|seen| is_attributes(&seen.task.path));
        for batch in attributes.chunks(BATCH) {
            self.write(batch, false)?;
        }
        let whole = others.len() >= MANY && self.root.can_sync_whole();
        let mut rest = &others[..];
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(if whole { large_batch(rest) } else { BATCH.min(rest.len()) });
            self.write(batch, whole)?;
            rest = after;
        }
        self.remove_empty_folders(tasks)?;
        self.sync_folders()?;
        self.check_deletes(&deletes)?;
        Ok(self.done)
    }

    /// Sorts out what is done already; in the strict way, a single changed path stops everything here.
    fn still_to_do<'t>(&mut self, tasks: &'t [Task]) -> Result<Vec<Seen<'t>>, Stop<C::Error>> {
        let (root, content) = (self.root, self.content);
        let seen = parallel::on_processors(tasks, |task| progress(root, content, task));
        let mut to_do = Vec::new();
        for (task, progress) in tasks.iter().zip(seen) {
            match progress? {
                Progress::ToDo(node, held) => to_do.push(Seen { task, node, held }),
                Progress::Done => self.done.already += 1,
                Progress::Changed if self.content.is_unwatched(&task.path).map_err(Failure::Content)? => {
                    self.done.unwatched.push(task.path.clone());
                }
                Progress::Changed => self.changed(task)?,
            }
        }
        Ok(to_do)
    }

    fn try_filters(&self, writes: &[Seen<'_>]) -> Result<(), Failure<C::Error>> {
        let anew = writes.iter().map(|seen| seen.task).filter(|task| !task.is_mode_only());
        let files: Vec<_> = anew.filter_map(|task| Some((&task.path, task.after.as_ref()?))).collect();
        self.content.try_filters(&files).map_err(Failure::Content)
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

    fn step(&mut self, task: &Task) -> Result<(), Stop<C::Error>> {
        match (self.on_step)(&task.path) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop::Asked),
        }
    }

    /// Does `act` to a batch at once and returns how many are done. Asked to stop at one, it does those before it.
    fn at_once<'t, T: Sync>(
        &mut self,
        batch: &[T],
        task: impl Fn(&T) -> &'t Task,
        act: impl Fn(&T) -> Result<Outcome, beneath::Error> + Sync,
    ) -> Result<usize, Stop<C::Error>> {
        let asked = batch.iter().position(|item| self.step(task(item)).is_err());
        let batch = &batch[..asked.unwrap_or(batch.len())];
        let mut done = 0;
        let mut stopped = asked.map_or(Ok(()), |_| Err(Stop::Asked));
        for (item, outcome) in batch.iter().zip(parallel::for_each(batch, act)) {
            match outcome {
                Ok(Outcome::Done) => {
                    self.unsynced.insert(parent(task(item).path.as_bytes()).to_vec());
                    done += 1;
                }
                Ok(Outcome::Changed) => stopped = stopped.and(self.changed(task(item))),
                Err(error) => stopped = stopped.and(Err(error.into())),
            }
        }
        stopped.map(|()| done)
    }

    fn delete(&mut self, batch: &[Seen<'_>]) -> Result<(), Stop<C::Error>> {
        let root = self.root;
        self.done.deleted += self.at_once(batch, |seen| seen.task, |seen| seen.delete(root))?;
        Ok(())
    }

    fn change_modes(&mut self, batch: &[Seen<'_>]) -> Result<(), Stop<C::Error>> {
        let root = self.root;
        self.done.written += self.at_once(batch, |seen| seen.task, |seen| seen.change_mode(root))?;
        Ok(())
    }

    /// Writes a batch beside its places, makes it durable, `whole` or file by file, puts it in place, and reads it back.
    fn write(&mut self, batch: &[Seen<'_>], whole: bool) -> Result<(), Stop<C::Error>> {
        let Beside { folders, written } = self.write_beside(batch, whole)?;
        match whole {
            true => self.root.sync_whole()?,
            false => parallel::for_each(&written, Written::sync).into_iter().collect::<Result<_, _>>()?,
        }
        let root = self.root;
        let place = |file: &Written<'_>| file.place(root, &folders[file.folder]);
        self.done.written += self.at_once(&written, |file| file.seen.task, place)?;
        self.check_writes(&written, &folders)
    }

    /// Writes a batch beside its places, in folders that are made where there are none. Asked to stop at one, it writes those before it.
    fn write_beside<'t>(&mut self, batch: &[Seen<'t>], whole: bool) -> Result<Beside<'t>, Stop<C::Error>> {
        let mut folders: Vec<Folder> = Vec::new();
        let mut to_write: Vec<(Seen<'t>, usize)> = Vec::with_capacity(batch.len());
        let mut stopped = Ok(());
        for seen in batch {
            stopped = self.step(seen.task);
            if stopped.is_err() {
                break;
            }
            match self.open(seen.task, &mut folders) {
                Err(beneath::Error::Blocked { .. }) => self.changed(seen.task)?,
                folder => to_write.push((*seen, folder?)),
            }
        }
        let writer = Writer { root: self.root, content: self.content, whole };
        let act = |(seen, folder): &(Seen<'t>, usize)| writer.write(*seen, *folder, &folders[*folder]);
        let written: Result<Vec<_>, _> = parallel::on_processors(&to_write, act).into_iter().collect();
        let written = written?;
        stopped.map(|()| Beside { folders, written })
    }

    /// Opens the task's folder, or finds it among those of its batch: neighbours share one.
    fn open(&mut self, task: &Task, folders: &mut Vec<Folder>) -> Result<usize, beneath::Error> {
        let path = task.path.as_bytes();
        if folders.last().is_none_or(|folder| folder.path() != parent(path)) {
            let (folder, made) = self.root.make_folder_of(path)?;
            folders.push(folder);
            self.unsynced.extend(made);
        }
        Ok(folders.len() - 1)
    }

    fn check_writes(&self, written: &[Written<'_>], folders: &[Folder]) -> Result<(), Stop<C::Error>> {
        let placed: Vec<_> =
            written.iter().filter(|file| !self.done.changed.contains(&file.seen.task.path)).collect();
        let read = parallel::on_processors(&placed, |file| file.reads_back(&folders[file.folder]));
        for (file, reads_back) in placed.iter().zip(read) {
            if !reads_back? {
                return Err(Stop::NotAsWritten(file.seen.task.path.clone()));
            }
        }
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
        let paths: Vec<Vec<u8>> = std::mem::take(&mut self.unsynced).into_iter().collect();
        let (root, whole) = (self.root, paths.len() >= MANY && self.root.can_sync_whole());
        for synced in parallel::for_each(&paths, |path| sync_folder(root, path, whole)) {
            synced?;
        }
        if whole {
            root.sync_whole()?;
        }
        Ok(())
    }

    fn check_deletes(&self, deletes: &[Seen<'_>]) -> Result<(), Stop<C::Error>> {
        let changed: BTreeSet<&RepoPath> = self.done.changed.iter().collect();
        for Seen { task, .. } in deletes.iter().filter(|seen| !changed.contains(&seen.task.path)) {
            if progress(self.root, self.content, task)? != Progress::Done {
                return Err(Stop::NotAsWritten(task.path.clone()));
            }
        }
        Ok(())
    }
}

/// A batch that is written beside its places, and the folders that hold it.
struct Beside<'t> {
    folders: Vec<Folder>,
    written: Vec<Written<'t>>,
}

/// Writes files beside their places, by any thread.
struct Writer<'a, C> {
    root: &'a Root,
    content: &'a C,
    /// They are made durable together later.
    whole: bool,
}

impl<C: Content> Writer<'_, C> {
    /// Writes one file in `place`, which is the folder of that position among those of its batch.
    fn write<'t>(
        &self,
        seen: Seen<'t>,
        folder: usize,
        place: &Folder,
    ) -> Result<Written<'t>, Failure<C::Error>> {
        let path = &seen.task.path;
        let after = seen.task.after.as_ref().expect("what goes is deleted, not written");
        let bytes = self.content.for_work_tree(path, after.mode, &after.id).map_err(Failure::Content)?;
        let temporary = match after.mode {
            EntryMode::Link if self.content.has_links().map_err(Failure::Content)? => {
                place.link_beside(&bytes)?
            }
            mode => place.write_beside(&bytes, mode == EntryMode::Executable, self.readers(&seen)?)?,
        };
        let mut written = Written { seen, folder, temporary, digest: blake3::hash(&bytes) };
        if self.whole {
            // Another file system may be mounted there.
            if !self.root.syncs_whole(place) {
                written.sync()?;
            }
            written.temporary.close();
        }
        Ok(written)
    }

    /// Who may read what is written: those who could read the file that stood there. A secret that is missing is its owner's.
    fn readers(&self, seen: &Seen<'_>) -> Result<Readers, Failure<C::Error>> {
        if let Some(old) = seen.replaced_file() {
            return Ok(Readers::AsOf(old));
        }
        let is_secret = self.content.is_secret(&seen.task.path).map_err(Failure::Content)?;
        Ok(if is_secret { Readers::Owner } else { Readers::ByUmask })
    }
}

/// Makes the names in a folder durable, unless everything will be: `whole`.
fn sync_folder(root: &Root, path: &[u8], whole: bool) -> Result<(), beneath::Error> {
    match root.folder(path) {
        Ok(Some(folder)) if whole && root.syncs_whole(&folder) => Ok(()),
        Ok(Some(folder)) => folder.sync(),
        // gone since, with everything in it: its parent's sync says so
        Ok(None) | Err(beneath::Error::Blocked { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// How many of the next files, of which there is one, make a large batch.
fn large_batch(files: &[Seen<'_>]) -> usize {
    let mut folders = 0;
    let mut last = None;
    let in_few = files.iter().take(LARGE_BATCH).take_while(|seen| {
        let folder = parent(seen.task.path.as_bytes());
        folders += usize::from(last.replace(folder) != Some(folder));
        folders <= FOLDERS
    });
    in_few.count()
}

/// Removes what a killed restore left beside the places of `tasks`. What a snapshot holds under such a name stays.
pub(super) fn remove_temporaries(root: &Root, tasks: &[Task]) -> Result<usize, beneath::Error> {
    let held: BTreeSet<&[u8]> = tasks.iter().map(|task| task.path.as_bytes()).collect();
    let folders: BTreeSet<&[u8]> = tasks.iter().map(|task| parent(task.path.as_bytes())).collect();
    let mut removed = 0;
    for path in folders {
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
