//! Snapshots of commits that git holds already: no file is looked at.

use super::capture::{Capture, CaptureError};
use super::git::GitError;
use super::objects::ObjectKind;
use super::sink::Sink;
use super::{Found, Snapshots, compare, fast, handle_of};
use crate::model::{CheckpointId, ObjectId, RepoPath, Snapshot};

/// What a snapshot is made of when the files are known to be those of a commit.
#[derive(Debug, Clone)]
pub struct Adopt {
    /// The commit that HEAD names in the snapshot.
    pub head: ObjectId,
    /// The branch that HEAD names in the snapshot.
    pub branch: Option<String>,
    /// The tree of the work tree; that of the commit if absent.
    pub tree: Option<ObjectId>,
    /// How many files the tree holds; counted if absent.
    pub total: Option<u64>,
    /// The commit that the checkpoint's ref names now; absent if there is no such ref.
    pub replaces: Option<ObjectId>,
}

impl Snapshots {
    /// Says whether a path is one of our own records, which no snapshot holds.
    pub fn is_own_record(&self, path: &RepoPath) -> bool {
        self.is_ours(path)
    }

    /// Says whether commits of the user's repository can be adopted and snapshots tagged there.
    pub fn shares_objects(&self) -> bool {
        self.user.is_some() && !self.is_apart()
    }

    /// Captures the work tree as [`capture`](Self::capture) does, but leaves the checkpoint's ref to
    /// [`adopt`](Self::adopt) or [`name`](Self::name) where it can; says whether it is there.
    pub fn prepare(&self, id: &CheckpointId, options: &Capture) -> Result<(Snapshot, bool), CaptureError> {
        self.capture_as(id, false, options)
    }

    /// Makes the ref of a checkpoint whose snapshot was prepared.
    pub fn name(&self, id: &CheckpointId, snapshot: &Snapshot) -> Result<(), CaptureError> {
        Ok(self.refs.create(&self.own_ref(id), &snapshot.commit)?)
    }

    /// Makes the snapshot of a checkpoint from a commit of the user's repository. The index is taken to be as in the
    /// commit. Where the tree is the commit's own, that commit is the snapshot. Like a capture it is on disk when it
    /// returns.
    pub fn adopt(
        &self,
        id: &CheckpointId,
        adopt: &Adopt,
        options: &Capture,
    ) -> Result<Snapshot, CaptureError> {
        let _lock = self.begin(options)?;
        self.objects.refresh();
        let index_tree = self.objects.commit(&adopt.head)?.tree;
        let tree = adopt.tree.clone().unwrap_or_else(|| index_tree.clone());
        let total = match adopt.total {
            Some(total) => total,
            None => self.objects.diff_trees(None, Some(&tree))?.len() as u64,
        };
        let found = Found {
            tree,
            index_tree: Some(index_tree.clone()),
            marks: Default::default(),
            total,
            skipped: vec![],
            included: vec![],
            notes: vec![],
        };
        let mut state = self.state_of_repository()?;
        (state.head, state.branch) = (Some(adopt.head.clone()), adopt.branch.clone());
        let commit = match found.tree == index_tree {
            true => adopt.head.clone(),
            false => self.write_adopted(&found, &state, options)?,
        };
        self.refs.swap(&self.own_ref(id), adopt.replaces.as_ref(), &commit)?;
        let mut changes = self.objects.diff_trees(Some(&index_tree), Some(&found.tree))?;
        changes.retain(|change| !self.is_ours(&change.path));
        let counts = compare::count(&changes, total);
        Ok(self.describe(commit, state, found, counts))
    }

    fn write_adopted(
        &self,
        found: &Found,
        state: &super::RepositoryState,
        options: &Capture,
    ) -> Result<ObjectId, CaptureError> {
        let Some(odb) = &self.odb else {
            return self.commit(found, state, options, |bytes| {
                let answer = self.store_git.run(&["hash-object", "-t", "commit", "-w", "--stdin"], bytes)?;
                let id = String::from_utf8_lossy(&answer).trim().parse();
                Ok(id.map_err(|_| GitError::Answer { command: "hash-object".to_owned() })?)
            });
        };
        let sink = Sink::to_pack(handle_of(odb));
        let commit =
            self.commit(found, state, options, |bytes| Ok(fast::name(sink.add(ObjectKind::Commit, bytes))))?;
        if sink.finish(&self.store.objects_dir())? {
            self.tidy();
        }
        Ok(commit)
    }
}
