//! What a capture is asked for, what it gives, and how it fails.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::commit::Signature;
use super::compare::Change;
use super::git::GitError;
use super::guard::Refusal;
use super::objects::ObjectError;
use super::refs::RefError;
use crate::lock::LockError;
use crate::model::{FileCounts, IndexMarks, ObjectId, RepoPath, Skipped};

/// What to capture, and within which limits.
#[derive(Debug, Clone)]
pub struct Capture {
    /// Files above this many bytes are skipped and listed, unless git holds their content already.
    pub max_file_size: u64,
    /// Ignored files or folders to capture all the same.
    pub include_ignored: Vec<RepoPath>,
    /// What becomes of files that look like secrets and that git neither ignores nor tracks.
    pub secrets: Secrets,
    /// Ignored files that a restore is about to overwrite: captured whatever their size.
    pub force: Vec<RepoPath>,
    /// After this long a capture fails as a whole.
    pub deadline: Option<Duration>,
    /// More untracked files than this are refused without consent.
    pub max_untracked: usize,
    /// With fewer free bytes than this where snapshots are kept, a capture does not begin.
    pub min_free: u64,
    /// What a person agreed to.
    pub consent: Consent,
    /// The commit's message.
    pub description: String,
    /// The commit's author, and the time.
    pub author: Signature,
    /// How long to wait for another capture of the same work tree.
    pub patience: Duration,
}

impl Default for Capture {
    fn default() -> Self {
        Self {
            max_file_size: 50_000_000,
            include_ignored: vec![],
            secrets: Secrets::LeaveOut,
            force: vec![],
            deadline: Some(Duration::from_secs(10)),
            max_untracked: 50_000,
            min_free: 32 << 20,
            consent: Consent::No,
            description: "snapshot".to_owned(),
            author: Signature::default(),
            patience: Duration::from_secs(10),
        }
    }
}

/// Says what becomes of files whose names say that they hold a secret, such as `.env` and `*.pem`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// They are left out and listed.
    LeaveOut,
    /// They are captured as any other file.
    Include,
}

/// Says whether a person agreed to a capture of a home folder, of `/`, or of absurdly many files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// Nobody was asked.
    No,
    /// Somebody said yes.
    Given,
}

/// What a capture would hold. Its objects are readable through [`Objects`](super::Objects) until the next look.
///
/// A path that is on disk but neither in the tree nor in `skipped` is ignored or one of our own.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Look {
    /// The tree of the work tree.
    pub tree: ObjectId,
    /// The tree of the index; absent in a folder without git and while the index has conflicts.
    pub index_tree: Option<ObjectId>,
    /// What the index says of files and no tree can hold.
    pub marks: IndexMarks,
    /// The commit that HEAD names.
    pub head: Option<ObjectId>,
    /// The branch that HEAD names.
    pub branch: Option<String>,
    /// What differs from HEAD.
    pub changes: Vec<Change>,
    /// How many files there are, and how they differ from HEAD.
    pub files: FileCounts,
    /// What a capture would leave out.
    pub skipped: Vec<Skipped>,
    /// Ignored files that are in the tree because they were asked for.
    pub included: Vec<RepoPath>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// A work tree as it was found, its objects not yet where they stay.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) tree: ObjectId,
    pub(super) index_tree: Option<ObjectId>,
    pub(super) marks: IndexMarks,
    pub(super) total: u64,
    pub(super) skipped: Vec<Skipped>,
    pub(super) included: Vec<RepoPath>,
    pub(super) notes: Vec<String>,
}

/// The moment when a capture gives up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    /// When the capture began, and after how long it gives up.
    moment: Option<(Instant, Duration)>,
}

impl Deadline {
    /// No such moment.
    pub(super) const NONE: Self = Self { moment: None };

    pub(super) fn start(after: Option<Duration>) -> Self {
        Self { moment: after.map(|after| (Instant::now(), after)) }
    }

    /// Returns how long it is until then; `None` if it never comes.
    pub(super) fn left(&self) -> Option<Duration> {
        self.moment.map(|(begun, after)| after.saturating_sub(begun.elapsed()))
    }

    pub(super) fn check(&self) -> Result<(), CaptureError> {
        match self.moment {
            Some((begun, after)) if begun.elapsed() > after => Err(CaptureError::Deadline { after }),
            _ => Ok(()),
        }
    }

    /// Says of a program that was ended for being late that the capture was.
    pub(super) fn blame(&self, error: CaptureError) -> CaptureError {
        match (self.moment, error) {
            (Some((_, after)), CaptureError::Git(GitError::TimedOut { .. })) => {
                CaptureError::Deadline { after }
            }
            (_, error) => error,
        }
    }
}

/// The error of a capture: there is no snapshot then, not even half of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// It would be too much without consent.
    #[error("refused to capture {}", root.display())]
    Refused {
        /// The work tree.
        root: PathBuf,
        /// Why.
        source: Refusal,
    },
    /// Something was asked for that no snapshot holds.
    #[error("`{path}` is in no snapshot: {why}")]
    NeverHeld {
        /// What was asked for.
        path: RepoPath,
        /// Why.
        why: &'static str,
    },
    /// It took too long.
    #[error("the capture was not done after {after:?}")]
    Deadline {
        /// The limit.
        after: Duration,
    },
    /// Another capture went on, or the lock could not be opened.
    #[error("failed to lock the snapshots of this work tree")]
    Lock(#[from] LockError),
    /// git refused.
    #[error("failed to capture the work tree through git")]
    Git(#[from] GitError),
    /// A ref could not be read or written.
    #[error("failed to record the snapshot")]
    Ref(#[from] RefError),
    /// An object could not be read.
    #[error("failed to compare the work tree with HEAD")]
    Object(#[from] ObjectError),
    /// A file of ours or a folder of the work tree failed.
    #[error("failed to {attempted} {}", path.display())]
    Io {
        /// What was attempted.
        attempted: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl CaptureError {
    /// Says whether trying again later can help.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Deadline { .. } | Self::Lock(LockError::Busy { .. }))
    }

    /// Makes an error of a failed attempt on a path.
    pub(super) fn io(attempted: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { attempted, path, source }
    }
}
