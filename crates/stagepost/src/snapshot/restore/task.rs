//! One path to bring from one version to another, and how far it has come.

use crate::model::RepoPath;
use crate::snapshot::beneath::{Error, Node, Root, name};
use crate::snapshot::compare::Side;
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

    /// The same path, the other way round.
    pub(super) fn reversed(self) -> Self {
        Self { path: self.path, before: self.after, after: self.before }
    }

    /// Whether only the right to execute changes.
    pub(super) fn is_mode_only(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => {
                before.id == after.id && is_regular(before.mode) && is_regular(after.mode)
            }
            _ => false,
        }
    }

    /// Whether the path says how other files are converted.
    pub(super) fn is_attributes(&self) -> bool {
        name(self.path.as_bytes()) == b".gitattributes"
    }
}

fn is_regular(mode: EntryMode) -> bool {
    matches!(mode, EntryMode::File | EntryMode::Executable)
}

/// How far a path has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It is as it was; here is what stood there when we looked.
    ToDo(Node),
    /// It is as it should be.
    Done,
    /// It is neither: someone else wrote it.
    Changed,
}

/// Looks how far a path has come.
pub(super) fn progress<C: Content>(
    root: &Root,
    content: &C,
    task: &Task,
) -> Result<Progress, Failure<C::Error>> {
    let ends: Vec<&Side> = task.after.iter().chain(&task.before).collect();
    let found = look(root, content, &task.path, &ends)?;
    Ok(if found.is(task.after.as_ref()) {
        Progress::Done
    } else if found.is(task.before.as_ref()) {
        Progress::ToDo(found.node)
    } else {
        Progress::Changed
    })
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

/// What stands at a path, in the terms of a tree; no side if it is none of those it was compared with.
struct Found {
    node: Node,
    side: Option<Side>,
}

impl Found {
    /// A folder counts as nothing: what is in it has paths of its own.
    fn is(&self, expected: Option<&Side>) -> bool {
        match (self.node, expected) {
            (Node::Nothing | Node::Folder, None) => true,
            (Node::File(_) | Node::Link(_), Some(expected)) => self.side.as_ref() == Some(expected),
            _ => false,
        }
    }
}

fn look<C: Content>(
    root: &Root,
    content: &C,
    path: &RepoPath,
    ends: &[&Side],
) -> Result<Found, Failure<C::Error>> {
    let without_content = |node| Ok(Found { node, side: None });
    let folder = match root.folder_of(path.as_bytes()) {
        Ok(Some(folder)) => folder,
        // a file where a folder should be: nothing can be beneath it
        Ok(None) | Err(Error::Blocked { .. }) => return without_content(Node::Nothing),
        Err(error) => return Err(error.into()),
    };
    let name = name(path.as_bytes());
    let node = folder.node(name)?;
    let (mode, bytes) = match node {
        Node::File(stamp) => {
            let (opened, bytes) = folder.read(name)?;
            if opened != stamp || folder.node(name)? != node {
                return without_content(node);
            }
            (if stamp.is_executable() { EntryMode::Executable } else { EntryMode::File }, bytes)
        }
        Node::Link(_) => (EntryMode::Link, folder.read_link(name)?),
        Node::Nothing | Node::Folder | Node::Other => return without_content(node),
    };
    let candidates: Vec<_> = ends.iter().filter(|end| end.mode == mode).map(|end| &end.id).collect();
    let found = content.which(path, mode, &bytes, &candidates).map_err(Failure::Content)?;
    Ok(Found { node, side: found.map(|id| Side { mode, id: id.clone() }) })
}
