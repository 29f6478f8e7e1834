//! The files of a project: captured with a checkpoint, compared, let go.

use crate::model::{Checkpoint, CheckpointId, RepoPath, Skipped, Snapshot, Timestamp, without_tokens};
use crate::snapshot::diff::{Diff as FilesDiff, DiffOptions};
use crate::snapshot::{Capture, Consent, Keep, Look, Open, Secrets, Signature, Snapshots, Way};

use super::settings::StoreKind;
use super::{Error, Project};

/// How the files are captured with a checkpoint.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Ignored files or folders to capture all the same.
    pub include_ignored: Vec<RepoPath>,
    /// Whether files that look like secrets are captured too, whatever the settings say.
    pub include_secrets: bool,
    /// Whether a person agreed to capture a home folder or absurdly many files.
    pub consent: bool,
    /// Ignored files that are about to be overwritten: captured whatever their size.
    pub force: Vec<RepoPath>,
}

impl Project {
    /// Returns the snapshots of this work tree, opened when they are first needed.
    pub fn snapshots(&self) -> Result<&Snapshots, Error> {
        if let Some(open) = self.snapshots.get() {
            return Ok(open);
        }
        // A folder that became a repository later goes on as it began.
        let keep = match self.settings.store {
            StoreKind::Repository if self.place.git.is_some() => Keep::Repository,
            StoreKind::Repository | StoreKind::Private => Keep::Private,
        };
        let opened = Snapshots::open(Open {
            root: self.place.root.clone(),
            state_dir: self.place.store.clone(),
            keep,
            git: self.context.git.clone(),
            exclude: self.own_records(),
            way: Way::Fastest,
        })?;
        Ok(self.snapshots.get_or_init(|| opened))
    }

    pub(super) fn capture(
        &self,
        id: &CheckpointId,
        files: &Files,
        description: &str,
        now: Timestamp,
    ) -> Result<Snapshot, Error> {
        Ok(self.snapshots()?.capture(id, &self.capture_options(files, description, now))?)
    }

    /// Looks at the files as they are now, and keeps nothing.
    pub fn look(&self, files: &Files) -> Result<Look, Error> {
        Ok(self.snapshots()?.look(&self.capture_options(files, "", self.context.clock.now()))?)
    }

    pub(super) fn capture_options(&self, files: &Files, description: &str, now: Timestamp) -> Capture {
        let subject = if description.is_empty() { "checkpoint" } else { description };
        Capture {
            max_file_size: self.settings.max_file_size,
            include_ignored: files.include_ignored.clone(),
            secrets: match files.include_secrets || self.settings.secrets {
                true => Secrets::Include,
                false => Secrets::LeaveOut,
            },
            force: files.force.clone(),
            deadline: self.settings.deadline,
            max_untracked: self.settings.max_untracked,
            consent: if files.consent { Consent::Given } else { self.consent },
            description: without_tokens(subject).into_owned(),
            author: Signature { seconds: now.as_micros() / 1_000_000, ..Signature::default() },
            patience: self.settings.busy_timeout,
            ..Capture::default()
        }
    }

    /// Compares the files of a checkpoint with those of another, or with those of now.
    pub fn diff_files(
        &self,
        before: &Checkpoint,
        after: Option<&Checkpoint>,
        options: &DiffOptions,
    ) -> Result<FilesDiff, Error> {
        let old = snapshot_of(before)?;
        let (new, skipped) = match after {
            Some(after) => snapshot_of(after).map(|after| (after.tree.clone(), after.skipped.clone()))?,
            None => self.look_beside(old).map(|now| (now.tree, now.skipped))?,
        };
        let options = DiffOptions { left_out: left_out_of_one(&old.skipped, &skipped), ..options.clone() };
        Ok(self.snapshots()?.diff(Some(&old.tree), Some(&new), &options)?)
    }

    /// Looks at the files as they are now, with those that a snapshot holds and that are ignored: they are not gone.
    fn look_beside(&self, held: &Snapshot) -> Result<Look, Error> {
        let (snapshots, look) = (self.snapshots()?, self.look(&Files::default())?);
        let changes = snapshots.objects().diff_trees(Some(&held.tree), Some(&look.tree))?;
        let is_left_out = |path: &RepoPath| look.skipped.iter().any(|left| path.is_within(&left.path));
        let gone = changes.into_iter().filter(|change| change.new.is_none()).map(|change| change.path);
        let gone: Vec<_> = gone.filter(|path| !is_left_out(path)).collect();
        let force = snapshots.stand_unheld(&gone, &look.tree)?;
        if force.is_empty() { Ok(look) } else { self.look(&Files { force, ..Files::default() }) }
    }
}

/// What only one of two snapshots does not hold.
fn left_out_of_one(old: &[Skipped], new: &[Skipped]) -> Vec<Skipped> {
    let only = |these: &[Skipped], others: &[Skipped]| -> Vec<Skipped> {
        let is_other = |one: &&Skipped| !others.iter().any(|other| other.path == one.path);
        these.iter().filter(is_other).cloned().collect()
    };
    let mut left_out = [only(old, new), only(new, old)].concat();
    left_out.sort();
    left_out
}

/// Returns the snapshot of a checkpoint, which must have one.
pub(super) fn snapshot_of(checkpoint: &Checkpoint) -> Result<&Snapshot, Error> {
    checkpoint.content.snapshot.as_ref().ok_or(Error::NoFiles { id: checkpoint.id })
}
