//! One path to bring from one version to another, and how far it has come.

use crate::model::RepoPath;
use crate::snapshot::beneath::{Error, Node, Root, name};
use crate::snapshot::compare::{Change, Side};
use crate::snapshot::plan::FilePlan;
use crate::snapshot::restore::content::Content;
use crate::snapshot::tree::EntryMode;

/// One path to bring from one version to another; no version means nothing is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) path: RepoPath,
    pub(super) before: Option<Side>,
    pub(super) after: Option<Side>,
}

impl Task {
    /// The tasks of a plan, in the order of their paths.
    pub(super) fn all(plan: &FilePlan) -> Vec<Self> {
        let deletes = plan.deletes.iter().map(|delete| Self {
            path: delete.path.clone(),
            before: Some(delete.content.clone()),
            after: None,
        });
        let writes = plan.writes.iter().map(|write| Self {
            path: write.path.clone(),
            before: write.replaces.clone(),
            after: Some(write.content.clone()),
        });
        let mut tasks: Vec<Self> = deletes.chain(writes).collect();
        tasks.sort_by(|a, b| a.path.cmp(&b.path));
        tasks
    }

    /// The task of bringing a path from its old version to its new one.
    pub(super) fn of(change: &Change) -> Self {
        Self { path: change.path.clone(), before: change.old.clone(), after: change.new.clone() }
    }

    /// The same path, the other way round.
    pub(super) fn reversed(self) -> Self {
        Self { path: self.path, before: self.after, after: self.before }
    }

    /// Whether the path holds the same before and after, and only its conversion differs.
    fn is_conversion_only(&self) -> bool {
        self.before == self.after
    }

    /// Whether only the right to execute changes.
    pub(super) fn is_mode_only(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => {
                before.id == after.id && before.mode != after.mode && class(before.mode) == class(after.mode)
            }
            _ => false,
        }
    }
}

/// The mode without the right to execute.
fn class(mode: EntryMode) -> EntryMode {
    if mode == EntryMode::Executable { EntryMode::File } else { mode }
}

/// How far a path has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It is as it was; here is what stood there when we looked, and what it held if it has other names.
    ToDo(Node, Option<blake3::Hash>),
    /// It is as it should be.
    Done,
    /// It is neither: someone else wrote it.
    Changed,
}

/// One end of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Before,
    After,
}

/// Looks how far a path has come.
pub(super) fn progress<C: Content>(
    root: &Root,
    content: &C,
    task: &Task,
) -> Result<Progress, Failure<C::Error>> {
    let (node, file) = look(root, &task.path)?;
    let is_linked = node.stamp().is_some_and(|stamp| stamp.is_linked());
    let held = file.as_ref().filter(|_| is_linked).map(|(_, bytes)| blake3::hash(bytes));
    let end = match file {
        Some((mode, bytes)) => end_of(content, task, mode, &bytes).map_err(Failure::Content)?,
        // a folder counts as nothing: what is in it has paths of its own
        None if !matches!(node, Node::Nothing | Node::Folder) => None,
        None if task.after.is_none() => Some(End::After),
        None => task.before.is_none().then_some(End::Before),
    };
    Ok(match end {
        Some(End::After) => Progress::Done,
        Some(End::Before) => Progress::ToDo(node, held),
        None => Progress::Changed,
    })
}

/// Says which end of its task a file is at. Most files are not converted at all, so their own bytes are compared
/// with both ends before git is asked about either.
fn end_of<C: Content>(
    content: &C,
    task: &Task,
    mode: EntryMode,
    bytes: &[u8],
) -> Result<Option<End>, C::Error> {
    let sides = [(End::After, &task.after), (End::Before, &task.before)];
    let sides = sides.into_iter().filter_map(|(end, side)| Some((end, side.as_ref()?)));
    let mut links = sides.clone().filter(|(_, side)| side.mode == EntryMode::Link).peekable();
    if mode != EntryMode::Link && links.peek().is_some() && !content.has_links()? {
        let name = content.name_of(bytes)?;
        if let Some((end, _)) = links.find(|(_, side)| side.id == name) {
            return Ok(Some(end));
        }
    }
    let mut ends: Vec<(End, &Side)> = sides.filter(|(_, side)| class(side.mode) == class(mode)).collect();
    if ends.iter().any(|(_, side)| side.mode != mode) && content.minds_modes()? {
        ends.retain(|(_, side)| side.mode == mode);
    }
    if ends.is_empty() {
        return Ok(None);
    }
    if task.is_conversion_only() {
        return end_of_conversion(content, &task.path, bytes, ends[0].1);
    }
    let name = content.name_of(bytes)?;
    if let Some((end, _)) = ends.iter().find(|(_, side)| side.id == name) {
        return Ok(Some(*end));
    }
    for (end, side) in ends.into_iter().filter(|_| mode != EntryMode::Link) {
        if content.is(end, &task.path, bytes, &side.id)? {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

/// A file that is only converted otherwise is done when it stands there byte for byte.
fn end_of_conversion<C: Content>(
    content: &C,
    path: &RepoPath,
    bytes: &[u8],
    side: &Side,
) -> Result<Option<End>, C::Error> {
    if content.for_work_tree(path, side.mode, &side.id)? == bytes {
        return Ok(Some(End::After));
    }
    let held =
        content.is(End::Before, path, bytes, &side.id)? || content.is(End::After, path, bytes, &side.id)?;
    Ok(held.then_some(End::Before))
}

/// Why looking at or acting on a path failed.
#[derive(Debug)]
pub(super) enum Failure<E> {
    Beneath(Error),
    Content(E),
}

impl<E> From<Error> for Failure<E> {
    fn from(error: Error) -> Self {
        Self::Beneath(error)
    }
}

/// A file's or link's mode and bytes.
type Held = (EntryMode, Vec<u8>);

/// Looks at what stands at a path; a file comes with its mode and bytes unless it changes while it is read.
fn look(root: &Root, path: &RepoPath) -> Result<(Node, Option<Held>), Error> {
    let folder = match root.folder_of(path.as_bytes()) {
        Ok(Some(folder)) => folder,
        // a file where a folder should be: nothing can be beneath it
        Ok(None) | Err(Error::Blocked { .. }) => return Ok((Node::Nothing, None)),
        Err(error) => return Err(error),
    };
    let name = name(path.as_bytes());
    let node = folder.node(name)?;
    let file = match node {
        Node::File(stamp) => {
            let (opened, bytes) = folder.read(name)?;
            let mode = if stamp.is_executable() { EntryMode::Executable } else { EntryMode::File };
            (opened == stamp && folder.node(name)? == node).then_some((mode, bytes))
        }
        Node::Link(_) => Some((EntryMode::Link, folder.read_link(name)?)),
        Node::Nothing | Node::Folder | Node::Other => None,
    };
    Ok((node, file))
}
