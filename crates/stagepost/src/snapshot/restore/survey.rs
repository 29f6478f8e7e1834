//! Looking for what stands in the way: files on disk, where the target needs a place, that the snapshot of now
//! does not hold. Costs one look per path that the target adds; the rest of the work tree is not visited.

use std::collections::{BTreeSet, HashSet};

use crate::model::{RepoPath, SkipReason, Skipped};
use crate::snapshot::beneath::{Error, Folder, Node, Root, name, parent};
use crate::snapshot::compare::Change;
use crate::snapshot::plan::{Obstacle, ObstacleKind, ancestors};

/// The most files in one folder in the way that are captured by force; beyond that the restore is refused.
const MOST_BELOW: usize = 10_000;

/// Finds what stands in the way of the paths that `changes` add.
pub(super) fn survey(root: &Root, changes: &[&Change], skipped: &[Skipped]) -> Result<Vec<Obstacle>, Error> {
    let held = changes.iter().filter(|change| change.old.is_some()).map(|change| change.path.as_bytes());
    let survey = Survey { root, held: held.collect(), skipped };
    let mut obstacles = BTreeSet::new();
    let added = changes.iter().filter(|change| change.old.is_none() && change.path.is_safe());
    for change in added {
        survey.look(change.path.as_bytes(), &mut obstacles)?;
    }
    Ok(obstacles.into_iter().collect())
}

struct Survey<'a> {
    root: &'a Root,
    /// Paths that the snapshot of now holds and the target has otherwise.
    held: HashSet<&'a [u8]>,
    skipped: &'a [Skipped],
}

impl Survey<'_> {
    fn look(&self, path: &[u8], obstacles: &mut BTreeSet<Obstacle>) -> Result<(), Error> {
        match self.root.folder_of(path) {
            Ok(Some(folder)) => self.look_at(&folder, name(path), path, obstacles),
            Ok(None) => Ok(()),
            Err(Error::Blocked { .. }) => self.look_above(path, obstacles),
            Err(error) => Err(error),
        }
    }

    fn look_at(
        &self,
        folder: &Folder,
        name: &[u8],
        path: &[u8],
        obstacles: &mut BTreeSet<Obstacle>,
    ) -> Result<(), Error> {
        match folder.node(name)? {
            Node::Nothing => Ok(()),
            Node::Folder => self.look_below(path, obstacles),
            node => {
                obstacles.extend(self.obstacle(path, node));
                Ok(())
            }
        }
    }

    /// A parent is a file or a link: it is in the way unless the snapshot of now holds it.
    fn look_above(&self, path: &[u8], obstacles: &mut BTreeSet<Obstacle>) -> Result<(), Error> {
        for above in ancestors(path) {
            let Some(folder) = self.root.folder(parent(above))? else { return Ok(()) };
            match folder.node(name(above))? {
                Node::Folder => {}
                node => {
                    obstacles.extend(self.obstacle(above, node));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// A folder stands where the target needs a file: everything in it that is not held is in the way.
    fn look_below(&self, path: &[u8], obstacles: &mut BTreeSet<Obstacle>) -> Result<(), Error> {
        let Some(folder) = self.root.folder(path)? else { return Ok(()) };
        for name in folder.names()? {
            if name.eq_ignore_ascii_case(b".git") {
                obstacles
                    .insert(Obstacle { path: RepoPath::from_bytes(path), kind: ObstacleKind::Repository });
                return Ok(());
            }
            if obstacles.len() > MOST_BELOW {
                return Ok(());
            }
            let below = [path, b"/", &name].concat();
            self.look_at(&folder, &name, &below, obstacles)?;
        }
        Ok(())
    }

    fn obstacle(&self, path: &[u8], node: Node) -> Option<Obstacle> {
        if self.held.contains(path) {
            return None;
        }
        let path = RepoPath::from_bytes(path);
        let skipped = self.skipped.iter().find(|skipped| path.is_within(&skipped.path));
        let kind = match (skipped, node) {
            (Some(skipped), _) if skipped.reason != SkipReason::Secret => {
                ObstacleKind::NotHeld(skipped.reason)
            }
            (_, Node::File(_) | Node::Link(_)) => ObstacleKind::Ignored,
            (_, _) => ObstacleKind::NotHeld(SkipReason::Special),
        };
        Some(Obstacle { path, kind })
    }
}
