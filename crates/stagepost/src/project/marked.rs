//! Checkpoints that the user's repository knows too: a commit on the branch, or a snapshot beside it, and a tag.

use std::time::Duration;

use super::branch::operation_name;
use super::cut_off::{Began, tag_ref};
use super::{BranchError, Error, Project, Save};
use crate::lock::Lock;
use crate::model::{Checkpoint, CheckpointId, Mark, ObjectId, RepoPath, Snapshot, without_tokens};
use crate::snapshot::restore::Staging;
use crate::snapshot::{Adopt, Capture, Operation};

/// What the mark of a deletion begins with that takes tags along.
pub(super) const TAGS_OF: &str = "tags:";

/// How the user's repository gets to know a checkpoint.
#[derive(Debug, Clone)]
pub struct Marking {
    /// The id that the checkpoint will have.
    pub id: CheckpointId,
    /// The message of a commit on the branch; without one, the files are captured beside it.
    pub commit: Option<String>,
    /// The tag.
    pub tag: String,
    /// The message of the tag.
    pub tag_message: String,
    /// Whether the tag may take the place of an older one.
    pub replace: bool,
}

impl Marking {
    /// What goes into commits and tags is kept for longer than anything else.
    fn without_tokens(&self) -> Self {
        let clean = |text: &String| without_tokens(text).into_owned();
        Self {
            commit: self.commit.as_ref().map(clean),
            tag_message: clean(&self.tag_message),
            ..self.clone()
        }
    }
}

/// Files that were captured and are not in a record yet.
struct Captured {
    snapshot: Snapshot,
    /// Whether the checkpoint's ref is there.
    named: bool,
    options: Capture,
}

impl Project {
    /// Returns an id for a checkpoint that is about to be made.
    pub fn new_id(&self) -> CheckpointId {
        self.context.ids.checkpoint(self.context.clock.now())
    }

    /// Makes a checkpoint of the files, with a commit on the branch if `marking` says so and there is something to
    /// commit, and tags it. If anything fails or it is cut off, there is neither commit nor tag nor record.
    pub fn save_marked(&self, mut save: Save, marking: &Marking) -> Result<Checkpoint, Error> {
        save.check_labels()?;
        self.user_git()?;
        let marking = &marking.without_tokens();
        let snapshots = self.snapshots()?;
        let _lock = self.lock_work_tree(self.settings.busy_timeout)?;
        let operation = snapshots.state_of_repository()?.operation;
        let operation = operation.filter(|operation| *operation != Operation::Bisect).map(operation_name);
        if let (Some(operation), Some(_)) = (operation, &marking.commit) {
            return Err(BranchError::InProgress { operation }.into());
        }
        // From here until the record is written nothing refers to the snapshot; gc must not take it for an orphan.
        let _held = self.store.hold()?;
        let now = self.context.clock.now();
        let files = save.files.take().unwrap_or_default();
        let options = self.capture_options(&files, &save.description, now);
        let (snapshot, named) = snapshots.prepare(&marking.id, &options)?;
        // If this process is killed, git may still be at work.
        let _at_work = Lock::hold_with_children(&self.git_at_work())?;
        let began = self.begin_marking(marking, &snapshot)?;
        let marked = self.commit_and_tag(Captured { snapshot, named, options }, marking, &began);
        let saved = marked.and_then(|(snapshot, mark)| {
            mark.put(&mut save.metadata);
            self.append(save, marking.id, now, Some(snapshot))
        });
        if saved.is_err() && self.is_surely_missing(&marking.id) {
            // If this fails too, what began is still written down, and the next command takes it back.
            let began = self.cut_off_marking().ok().flatten().unwrap_or(began);
            let _ = self.take_back(&began);
        }
        saved
    }

    fn commit_and_tag(
        &self,
        captured: Captured,
        marking: &Marking,
        began: &Began,
    ) -> Result<(Snapshot, Mark), Error> {
        if captured.snapshot.index_tree.is_none() {
            return Err(BranchError::Conflicts.into());
        }
        let clean = is_clean(&captured.snapshot);
        let wanted = marking.commit.as_ref().filter(|_| !clean && has_something(&captured.snapshot));
        let (snapshot, staging) = match wanted {
            Some(message) => self.commit_captured(captured, message, began)?,
            None => {
                if !captured.named {
                    self.snapshots()?.name(&marking.id, &captured.snapshot)?;
                }
                (captured.snapshot, None)
            }
        };
        let head = snapshot.head.clone().filter(|_| clean || wanted.is_some());
        let shared = self.snapshots()?.shares_objects();
        let commit = head.or_else(|| shared.then(|| snapshot.commit.clone()));
        if let Some(commit) = &commit {
            let message = some_text(&marking.tag_message);
            self.user_git()?.tag(&marking.tag, commit, message, marking.replace)?;
        }
        // Last of all: until here the user's index is as it was, to the byte.
        staging.map_or(Ok(()), Staging::put_in_place)?;
        let tag = commit.as_ref().map(|_| marking.tag.clone());
        Ok((snapshot, Mark { commit, tag, message: wanted.cloned() }))
    }

    /// Commits what was captured, with a copy of the user's index. The tree of the new commit is known, so the files
    /// need not be looked at again unless a hook changed something.
    fn commit_captured(
        &self,
        captured: Captured,
        message: &str,
        began: &Began,
    ) -> Result<(Snapshot, Option<Staging>), Error> {
        let Captured { snapshot: captured, named, options } = captured;
        let id = &began.id;
        let snapshots = self.snapshots()?;
        let paths = self.staged_by(&captured)?;
        let whole = captured.skipped.is_empty().then_some(paths.as_slice());
        let Some(staging) = snapshots.stage()? else { return Err(BranchError::NothingToCommit.into()) };
        let git = self.user_git()?.with_index(staging.path());
        git.commit(whole, message, |commit| self.say_commit(began, commit))?;
        let state = snapshots.state_of_repository()?;
        let Some(head) = state.head else { return Err(BranchError::NothingToCommit.into()) };
        if snapshots.shares_objects() && captured.skipped.is_empty() && self.holds_all(&head, &captured)? {
            let adopt = Adopt {
                head,
                branch: state.branch,
                tree: Some(captured.tree),
                total: Some(captured.files.total),
                replaces: named.then_some(captured.commit),
            };
            return Ok((snapshots.adopt(id, &adopt, &options)?, Some(staging)));
        }
        if named {
            snapshots.release(&[*id])?;
        }
        staging.put_in_place()?;
        Ok((snapshots.capture(id, &options)?, None))
    }

    /// What `git add -A` would change in the index.
    fn staged_by(&self, captured: &Snapshot) -> Result<Vec<RepoPath>, Error> {
        let snapshots = self.snapshots()?;
        let changes = snapshots.objects().diff_trees(captured.index_tree.as_ref(), Some(&captured.tree))?;
        let paths = changes.into_iter().map(|change| change.path);
        Ok(paths.filter(|path| !snapshots.is_own_record(path)).collect())
    }

    /// Says whether a commit holds exactly what was captured.
    fn holds_all(&self, commit: &ObjectId, captured: &Snapshot) -> Result<bool, Error> {
        let snapshots = self.snapshots()?;
        let tree = snapshots.objects().commit(commit)?.tree;
        if tree == captured.tree {
            return Ok(true);
        }
        let changes = snapshots.objects().diff_trees(Some(&tree), Some(&captured.tree))?;
        Ok(changes.iter().all(|change| snapshots.is_own_record(&change.path)))
    }

    /// Gives up checkpoints and deletes their tags as the user would. The caller holds the lock of the work tree. Tags go
    /// first; if it is cut off in between, they are put back by [`Project::mend_tags`].
    pub fn forget_tagged(&self, key: &str, tags: &[String], ids: &[CheckpointId]) -> Result<(), Error> {
        let mark = self.begin_view(&format!("{TAGS_OF}{key}"))?;
        if !tags.is_empty() {
            self.user_git()?.delete_tags(tags)?;
        }
        self.forget(ids)?;
        mark.end()
    }

    /// Puts tags back that a deletion took away before it was cut off; not while someone works on the work tree. `key` is
    /// the one that it was begun with, `prefix` what all tags begin with, and `records` are those that name one.
    pub fn mend_tags<E: From<Error>>(
        &self,
        key: &str,
        prefix: &str,
        records: impl FnOnce() -> Result<Vec<Checkpoint>, E>,
    ) -> Result<(), E> {
        let Some(mark) = self.take_over_view(&format!("{TAGS_OF}{key}")) else { return Ok(()) };
        let Ok(_lock) = self.lock_work_tree(Duration::ZERO) else { return Ok(()) };
        self.put_tags_back(prefix, &records()?)?;
        Ok(mark.end()?)
    }

    /// Tags that are right stay as they are.
    fn put_tags_back(&self, prefix: &str, checkpoints: &[Checkpoint]) -> Result<(), Error> {
        let git = self.user_git()?;
        let refs: Vec<_> = checkpoints.iter().filter_map(|one| Mark::of(one).tag).map(tag_ref).collect();
        self.free_refs(&refs)?;
        let tags = git.tags(prefix)?;
        for checkpoint in checkpoints {
            let Mark { commit: Some(commit), tag: Some(name), .. } = Mark::of(checkpoint) else { continue };
            if !tags.iter().any(|tag| tag.name == name && tag.commit == commit) {
                git.tag(&name, &commit, some_text(&checkpoint.content.description), true)?;
            }
        }
        Ok(())
    }

    /// Returns what `git status --porcelain` prints.
    pub fn git_status(&self) -> Result<String, Error> {
        self.user_git()?;
        Ok(self.snapshots()?.git_status()?)
    }
}

/// Says whether the files are those of HEAD.
fn is_clean(captured: &Snapshot) -> bool {
    let files = &captured.files;
    captured.head.is_some()
        && captured.skipped.is_empty()
        && files.added + files.modified + files.deleted == 0
}

/// Before the first commit a folder without files has nothing that could be committed.
fn has_something(captured: &Snapshot) -> bool {
    captured.head.is_some() || captured.files.total > 0
}

/// git refuses a tag whose message is white space only.
fn some_text(message: &str) -> &str {
    if message.trim().is_empty() { "checkpoint" } else { message }
}
