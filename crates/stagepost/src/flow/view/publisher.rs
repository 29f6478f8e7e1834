//! When the files of a run that is driven are brought up to date: soon after a step ended, but never so often that the
//! steps would wait for it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{begin, bring_up, write};
use crate::flow::Error;
use crate::flow::definition::Flow;
use crate::model::RunId;
use crate::project::{Outdated, Project};

/// Files are this old at most while steps end one after the other, unless writing them takes long.
const OLDEST: Duration = Duration::from_millis(200);
/// When nothing has happened for so long, they are written at once.
const QUIET: Duration = Duration::from_millis(20);
/// Of the time that a run takes, at most one part in so many goes to its files.
const SHARE: u32 = 50;

/// Brings the files of one run up to date while it is driven. They are only views: failing to is no reason to stop, and
/// the mark stays, so that the next command tries again and says why it fails. Without a mark nobody would.
#[derive(Debug)]
pub(in super::super) struct Publisher {
    /// Held while the run is driven; without it no files are wanted.
    outdated: Option<Outdated>,
    pending: Mutex<Pending>,
}

#[derive(Debug)]
struct Pending {
    /// Since when the files are out of date.
    behind: Option<Instant>,
    /// When something happened last.
    changed: Instant,
    /// Before this it is too early to write them again.
    not_before: Instant,
}

impl Publisher {
    /// Begins, before anything happens to the run: from now on the files are about to be out of date.
    pub(in super::super) fn new(project: &Project, run: &RunId, is_wanted: bool) -> Result<Self, Error> {
        let outdated = is_wanted.then(|| begin(project, run)).transpose()?;
        let now = Instant::now();
        let pending = Mutex::new(Pending { behind: Some(now), changed: now, not_before: now });
        Ok(Self { outdated, pending })
    }

    /// Says that something happened to the run.
    pub(in super::super) fn changed(&self) {
        let now = Instant::now();
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.behind.get_or_insert(now);
        pending.changed = now;
    }

    /// Publishes if something changed and either nothing more happens now or that was put off for long.
    pub(in super::super) fn when_due(&self, project: &Project, run: &RunId, flow: &Flow) {
        if self.outdated.is_none() {
            return;
        }
        let begun = Instant::now();
        {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            let is_quiet = pending.changed.elapsed() >= QUIET;
            if begun < pending.not_before
                || pending.behind.take_if(|since| is_quiet || since.elapsed() > OLDEST).is_none()
            {
                return;
            }
        }
        let _ = write(project, run, Some(flow));
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.not_before = Instant::now() + begun.elapsed() * SHARE;
    }

    /// Publishes how it ended.
    pub(in super::super) fn finish(self, project: &Project, run: &RunId, flow: &Flow) {
        if let Some(outdated) = self.outdated {
            let _ = bring_up(project, run, outdated, Some(flow));
        }
    }
}
