//! Letting go of the snapshots of pruned checkpoints.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::capture::CaptureError;
use super::refs::RefError;
use super::{GitError, Keep, Snapshots, durable, pack};
use crate::bounded;
use crate::lock::{Lock, LockError};
use crate::model::{CheckpointId, ObjectId};
use crate::private;

/// How long to wait for a capture that is going on.
const PATIENCE: Duration = Duration::from_secs(30);

/// The error of releasing snapshots.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// A ref could not be deleted.
    #[error("failed to delete the refs of snapshots")]
    Ref(#[from] RefError),
    /// Another process was at work.
    #[error("failed to lock the snapshots")]
    Lock(#[from] LockError),
    /// git failed to pack what is left.
    #[error("failed to pack what is left")]
    Git(#[from] GitError),
    /// Our packs could not be let go.
    #[error("failed to let go of packs")]
    Packs(#[source] Box<CaptureError>),
}

impl Snapshots {
    /// Lists the checkpoints of all work trees that a snapshot is kept for, each with the ref that keeps it.
    pub fn held(&self) -> Result<Vec<(CheckpointId, String)>, RefError> {
        let names = self.refs.ours()?.into_keys();
        Ok(names.filter_map(|name| Some((name.rsplit_once('/')?.1.parse().ok()?, name))).collect())
    }

    /// Returns the commits that are kept for checkpoints, wherever they are kept.
    pub fn kept(&self) -> Result<HashMap<CheckpointId, ObjectId>, RefError> {
        let mut kept = HashMap::new();
        for refs in self.elsewhere.iter().map(|(_, refs)| refs).chain([&self.refs]) {
            let named = refs.ours()?.into_iter();
            kept.extend(named.filter_map(|(name, id)| Some((name.rsplit_once('/')?.1.parse().ok()?, id))));
        }
        Ok(kept)
    }

    /// The name of a ref that is about to be made for a checkpoint. It is noted first: if the checkpoint is never written, a
    /// collection knows that the ref is ours to delete. If that fails, the ref stays.
    pub(super) fn own_ref(&self, id: &CheckpointId) -> String {
        let _ = private::append(&self.made, &format!("{id}\n"));
        self.refs.name_of(id)
    }

    /// The checkpoints that this store made refs for since the last collection.
    pub(crate) fn made(&self) -> HashSet<CheckpointId> {
        let noted = bounded::read_text(&self.made).unwrap_or_default();
        noted.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Forgets them: each has its checkpoint, or its ref is deleted.
    pub(crate) fn forget_made(&self) {
        let _ = std::fs::remove_file(&self.made);
    }

    /// Lets go of these checkpoints' snapshots in this work tree's history.
    pub fn release(&self, ids: &[CheckpointId]) -> Result<(), ReleaseError> {
        self.release_refs(&ids.iter().map(|id| self.refs.name_of(id)).collect::<Vec<_>>())
    }

    /// Deletes the ref of a snapshot that became no checkpoint. Its objects go with the next that are let go.
    pub(crate) fn give_up(&self, id: &CheckpointId) -> Result<(), ReleaseError> {
        let _lock = Lock::take(&self.folder.join("lock"), PATIENCE)?;
        Ok(self.refs.delete(&self.beside_packed(), &[self.refs.name_of(id)])?)
    }

    /// Deletes refs that [`held`](Self::held) listed. In the user's repository the space comes back with the user's
    /// next `git gc`: only git knows whether a commit of theirs has come to need one of the objects. A private
    /// repository is packed anew at once.
    pub fn release_refs(&self, names: &[String]) -> Result<(), ReleaseError> {
        if names.is_empty() {
            return Ok(());
        }
        let _lock = Lock::take(&self.folder.join("lock"), PATIENCE)?;
        self.refs.delete(&self.beside_packed(), names)?;
        self.let_go().map_err(|error| ReleaseError::Packs(Box::new(error)))?;
        if self.keep() == Keep::Private {
            // What another work tree is just capturing has no ref yet.
            let age = if self.is_shared() { "1.hour.ago" } else { "now" };
            self.store_git.run(&["repack", "-A", "-d", "-q", &format!("--unpack-unreachable={age}")], b"")?;
            self.store_git.run(&["prune", &format!("--expire={age}")], b"")?;
        }
        self.objects.refresh();
        Ok(())
    }

    /// Gives our packs to git, as one: from now on its gc decides what is still needed.
    fn let_go(&self) -> Result<(), CaptureError> {
        let objects_dir = self.store.objects_dir();
        if !self.is_shared() {
            // Nobody else is about to finish them.
            pack::unfinished(&objects_dir)?.iter().try_for_each(|pack| pack::remove(pack))?;
        }
        let packs = pack::ours(&objects_dir)?;
        if packs.len() > 1 {
            self.merge(&packs, &objects_dir)?;
        }
        for pack in pack::ours(&objects_dir)? {
            let keep = pack::with_suffix(&pack, ".keep");
            durable::remove(&keep).map_err(CaptureError::io("remove", &keep))?;
        }
        Ok(())
    }

    /// Says whether other work trees keep snapshots in the same place, each under a lock of its own.
    fn is_shared(&self) -> bool {
        let folder = self.folder.parent();
        folder.is_some_and(|folder| folder.join("worktrees").is_dir() || folder.ends_with("worktrees"))
    }

    fn keep(&self) -> Keep {
        let shared = self.user.as_ref().is_some_and(|user| user.common_dir == self.store.common_dir);
        if shared { Keep::Repository } else { Keep::Private }
    }
}

/// So many packs of our own are merged into one.
const MERGE_AT: usize = 16;

impl Snapshots {
    /// Merges our small packs, so that neither reading nor gc has to go through hundreds of them. The new pack holds
    /// everything before the old ones go; a failure leaves them as they are, to be tried again.
    pub(super) fn tidy(&self) {
        let objects_dir = self.store.objects_dir();
        if pack::count_kept(&objects_dir) < MERGE_AT {
            return;
        }
        let Ok(packs) = pack::ours(&objects_dir) else { return };
        if packs.len() >= MERGE_AT {
            // Nothing is lost if it fails, and the capture it follows is done.
            let _ = self.merge(&pack::small_ones(packs), &objects_dir);
        }
    }

    fn merge(&self, packs: &[std::path::PathBuf], objects_dir: &std::path::Path) -> Result<(), CaptureError> {
        let mut ids = Vec::new();
        for pack in packs {
            ids.extend(pack::ids_of(pack, self.store.hash)?);
        }
        ids.sort();
        ids.dedup();
        let quarantine = super::quarantine::Quarantine::make(&self.folder)?;
        let merged = quarantine.keep(&self.store_git, &ids, objects_dir)?;
        // If one of them held everything already, the new one can be that very file.
        let is_merged =
            |old: &std::path::Path| old.file_name().and_then(|name| name.to_str()) == merged.as_deref();
        packs.iter().filter(|old| !is_merged(old)).try_for_each(|old| pack::remove(old))
    }
}
