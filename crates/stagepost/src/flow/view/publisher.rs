//! When the files of a run that is driven are brought up to date: soon after a step ended, but never so often that the
//! steps would wait for it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{begin, publish};
use crate::model::RunId;
use crate::project::Project;

/// Files are this old at most while steps end one after the other.
const OLDEST: Duration = Duration::from_millis(200);

/// Brings the files of one run up to date while it is driven. They are only views: failing to is no reason to stop, and
/// the mark stays, so that the next command tries again and says why it fails.
#[derive(Debug)]
pub(in super::super) struct Publisher {
    is_wanted: bool,
    /// Since when the files are out of date.
    behind: Mutex<Option<Instant>>,
}

impl Publisher {
    /// Begins; from now on the files are about to be out of date.
    pub(in super::super) fn new(project: &Project, run: &RunId, is_wanted: bool) -> Self {
        if is_wanted {
            let _ = begin(project, run);
        }
        Self { is_wanted, behind: Mutex::new(Some(Instant::now())) }
    }

    /// Says that something happened to the run.
    pub(in super::super) fn changed(&self) {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
    }

    /// Publishes if that was put off for long.
    pub(in super::super) fn when_due(&self, project: &Project, run: &RunId) {
        self.publish_if(project, run, |since| since.elapsed() > OLDEST);
    }

    /// Publishes if anything changed: there is time now.
    pub(in super::super) fn when_quiet(&self, project: &Project, run: &RunId) {
        self.publish_if(project, run, |_| true);
    }

    fn publish_if(&self, project: &Project, run: &RunId, is_time: impl Fn(&Instant) -> bool) {
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_wanted && behind.take_if(|since| is_time(since)).is_some() {
            drop(behind);
            let _ = publish(project, run);
        }
    }
}
