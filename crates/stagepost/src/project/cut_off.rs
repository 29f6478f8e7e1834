//! A checkpoint with a commit and a tag that was cut off: what had been done of it is taken back.
//!
//! Before git is asked for the commit, an event says what is about to happen and where everything stood. It is over when
//! the record of that id is in the store, or when another event says that it was taken back.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::restore::Interrupted;
use super::{Error, Marking, Project, Recovery};
use crate::lock::Lock;
use crate::model::{CheckpointId, Event, ObjectId, Snapshot, Topic};
use crate::snapshot::restore::{Mode, Point, Position, Restore};
use crate::store::{Batch, EventQuery, NewEntry};

/// What a checkpoint with a commit and a tag is about to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Began {
    pub(super) id: CheckpointId,
    tag: String,
    /// What the tag names so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tag_before: Option<ObjectId>,
    /// The message of the commit, if there is to be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// The commit, if a hook gave it another message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<ObjectId>,
    /// Where HEAD, branch and index are so far.
    before: Point,
}

impl Began {
    /// The refs that git moves for it.
    pub(super) fn refs(&self) -> impl Iterator<Item = String> {
        let branch = self.before.position.branch.iter().map(|branch| format!("refs/heads/{branch}"));
        branch.chain([tag_ref(self.tag.clone())])
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum Said {
    Began(Box<Began>),
    Reverted { id: CheckpointId },
}

impl Project {
    /// Says what is about to happen.
    pub(super) fn begin_marking(&self, marking: &Marking, snapshot: &Snapshot) -> Result<Began, Error> {
        let began = Began {
            id: marking.id,
            tag: marking.tag.clone(),
            tag_before: self.snapshots()?.user_ref(&tag_ref(marking.tag.clone()))?,
            message: marking.commit.clone(),
            commit: None,
            before: Point::from(snapshot),
        };
        self.say_marking(&Said::Began(Box::new(began.clone())))?;
        Ok(began)
    }

    /// Says which commit is meant, where its message does not.
    pub(super) fn say_commit(&self, began: &Began, commit: &ObjectId) -> Result<(), Error> {
        let began = Began { commit: Some(commit.clone()), ..began.clone() };
        self.say_marking(&Said::Began(Box::new(began)))
    }

    /// Takes back whatever was done; right at any point of it, and when nothing was done. The files were never touched.
    pub(super) fn take_back(&self, began: &Began) -> Result<(), Error> {
        let snapshots = self.snapshots()?;
        snapshots.unstage()?;
        if let Some(after) = self.committed(began)? {
            let restore = Restore {
                from: began.before.clone(),
                to: after,
                mode: Mode::Mixed,
                paths: Vec::new(),
                makes_branch: false,
            };
            snapshots.revert_restore(&restore, &mut |_| ControlFlow::Continue(()))?;
        }
        let git = self.user_git()?;
        let now = snapshots.user_ref(&tag_ref(began.tag.clone()))?;
        match &began.tag_before {
            before if *before == now => {}
            Some(before) => git.put_tag_back(&began.tag, before)?,
            None => git.take_tag_back(&began.tag)?,
        }
        snapshots.release(&[began.id])?;
        self.say_marking(&Said::Reverted { id: began.id })
    }

    /// Where everything is if HEAD is the commit that was to be made; what someone else did since stays.
    fn committed(&self, began: &Began) -> Result<Option<Point>, Error> {
        let snapshots = self.snapshots()?;
        let state = snapshots.state_of_repository()?;
        let before = &began.before;
        let (Some(head), Some(message)) = (state.head, &began.message) else { return Ok(None) };
        if Some(&head) == before.position.head.as_ref() || state.branch != before.position.branch {
            return Ok(None);
        }
        let (parents, tree, said) = self.user_git()?.read_commit(&head)?;
        let follows = parents == before.position.head.as_ref().map_or("", ObjectId::as_str);
        // A hook may have added to the message, if only git's own commit could be made.
        let ours = follows && (Some(&head) == began.commit.as_ref() || said.starts_with(message.trim()));
        let position = Position { head: Some(head), branch: state.branch, index_tree: tree.parse().ok() };
        Ok(ours.then(|| Point { position, ..before.clone() }))
    }

    /// Takes back a checkpoint with a commit and a tag that was cut off; `None` if there is none.
    pub(super) fn recover_marking(&self) -> Result<Option<Recovery>, Error> {
        if self.place.git.is_none() || self.cut_off_marking()?.is_none() {
            return Ok(None);
        }
        // Whoever holds the lock is still at it.
        let Ok(_lock) = self.lock_work_tree(Duration::ZERO) else { return Ok(None) };
        let Some(began) = self.cut_off_marking()? else { return Ok(None) };
        // A git that outlived whoever started it may still make the commit. Something that a hook left running for good
        // cannot be told from it, so the wait ends.
        let _alone = Lock::take(&self.git_at_work(), self.settings.busy_timeout);
        self.free_refs(&began.refs().collect::<Vec<_>>())?;
        self.take_back(&began)?;
        let of = Interrupted::Checkpoint { tag: began.tag };
        Ok(Some(Recovery { of, target: began.id, finished: false, left: Vec::new() }))
    }

    /// Returns what began last and has no record.
    pub(super) fn cut_off_marking(&self) -> Result<Option<Began>, Error> {
        let key = self.place.worktree_key();
        let latest = self.store.events(&EventQuery::latest(Topic::Mark, key))?.pop();
        let Some(Ok(Said::Began(began))) = latest.map(|(_, event)| serde_json::from_value(event.body)) else {
            return Ok(None);
        };
        Ok(if self.store.checkpoint(&began.id)?.is_none() { Some(*began) } else { None })
    }

    fn say_marking(&self, said: &Said) -> Result<(), Error> {
        let body = serde_json::to_value(said).expect("what is said of a checkpoint has string keys only");
        let (key, at) = (self.place.worktree_key(), self.context.clock.now());
        let event = Event { topic: Topic::Mark, key, at, body };
        self.store.write(Batch { entries: vec![NewEntry::Event(event)], ..Batch::default() })?;
        Ok(())
    }

    /// Removes locks that a killed git left on refs.
    pub(super) fn free_refs(&self, refs: &[String]) -> Result<(), Error> {
        let freed = self.snapshots()?.free_refs(refs);
        freed.map_err(|source: io::Error| Error::File {
            doing: "remove a lock that git left in",
            path: self.place.root.join(".git"),
            source,
        })
    }

    /// The lock that is held as long as git is at work for a checkpoint of this work tree.
    pub(super) fn git_at_work(&self) -> PathBuf {
        self.place.store.join(format!("git-{}.lock", self.place.worktree_key().replace('/', "-")))
    }

    /// Keeps every other process from moving HEAD, index, tags or files of this work tree.
    pub fn lock_work_tree(&self, patience: Duration) -> Result<Lock, Error> {
        self.restore_lock(self.snapshots()?, patience)
    }
}

pub(super) fn tag_ref(tag: String) -> String {
    format!("refs/tags/{tag}")
}
