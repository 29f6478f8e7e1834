//! When the files of a run that is driven are brought up to date: soon after a step ended, but never so often that the
//! steps would wait for it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{begin, publish_as};
use crate::flow::definition::Flow;
use crate::model::RunId;
use crate::project::Project;

/// Files are this old at most while steps end one after the other, unless writing them takes long.
const OLDEST: Duration = Duration::from_millis(200);
/// Of the time that a run takes, at most one part in so many goes to its files.
const SHARE: u32 = 50;

/// Brings the files of one run up to date while it is driven. They are only views: failing to is no reason to stop, and
/// the mark stays, so that the next command tries again and says why it fails.
#[derive(Debug)]
pub(in super::super) struct Publisher {
    is_wanted: bool,
    pending: Mutex<Pending>,
}

#[derive(Debug)]
struct Pending {
    /// Since when the files are out of date.
    behind: Option<Instant>,
    /// Before this it is too early to write them again.
    not_before: Instant,
}

impl Publisher {
    /// Begins; from now on the files are about to be out of date.
    pub(in super::super) fn new(project: &Project, run: &RunId, is_wanted: bool) -> Self {
        if is_wanted {
            let _ = begin(project, run);
        }
        let now = Instant::now();
        Self { is_wanted, pending: Mutex::new(Pending { behind: Some(now), not_before: now }) }
    }

    /// Says that something happened to the run.
    pub(in super::super) fn changed(&self) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).behind.get_or_insert_with(Instant::now);
    }

    /// Publishes if that was put off for long.
    pub(in super::super) fn when_due(&self, project: &Project, run: &RunId, flow: &Flow) {
        self.publish_if(project, run, flow, |since| since.elapsed() > OLDEST);
    }

    /// Publishes if anything changed: nothing else is to be done now.
    pub(in super::super) fn when_quiet(&self, project: &Project, run: &RunId, flow: &Flow) {
        self.publish_if(project, run, flow, |_| true);
    }

    /// Publishes how it ended.
    pub(in super::super) fn finish(self, project: &Project, run: &RunId, flow: &Flow) {
        if self.is_wanted {
            let _ = publish_as(project, run, Some(flow));
        }
    }

    fn publish_if(&self, project: &Project, run: &RunId, flow: &Flow, is_time: impl Fn(&Instant) -> bool) {
        if !self.is_wanted {
            return;
        }
        let begun = Instant::now();
        {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            if begun < pending.not_before || pending.behind.take_if(|since| is_time(since)).is_none() {
                return;
            }
        }
        let _ = publish_as(project, run, Some(flow));
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.not_before = Instant::now() + begun.elapsed() * SHARE;
    }
}
