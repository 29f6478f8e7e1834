//! Folders still to be walked, shared by the threads of a walk.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use super::state::Record;

/// A folder to look at.
pub(super) struct Job<'a> {
    pub(super) path: Vec<u8>,
    /// What it looked like before, as far as that is believed.
    pub(super) record: Option<Record<'a>>,
    /// It is ignored, and only what the index tracks in it counts.
    pub(super) tracked_only: bool,
}

/// Each thread works on folders of its own and gives some away when another one has none.
pub(super) struct Queue<'a> {
    shared: Mutex<Shared<'a>>,
    wake: Condvar,
    hungry: AtomicUsize,
}

struct Shared<'a> {
    jobs: Vec<Job<'a>>,
    /// How many threads have work of their own.
    busy: usize,
    stopped: bool,
}

impl<'a> Queue<'a> {
    pub(super) fn new(first: Job<'a>) -> Self {
        let shared = Shared { jobs: vec![first], busy: 0, stopped: false };
        Self { shared: Mutex::new(shared), wake: Condvar::new(), hungry: AtomicUsize::new(0) }
    }

    /// Returns the next job of a thread whose own jobs are `own`; `None` when the walk is over.
    pub(super) fn next(&self, own: &mut Vec<Job<'a>>) -> Option<Job<'a>> {
        own.pop().or_else(|| self.wait(own))
    }

    fn wait(&self, own: &mut Vec<Job<'a>>) -> Option<Job<'a>> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        self.hungry.fetch_add(1, Ordering::Relaxed);
        let job = loop {
            if shared.stopped {
                break None;
            }
            if !shared.jobs.is_empty() {
                let half = shared.jobs.len() / 2;
                own.extend(shared.jobs.drain(half + 1..));
                shared.busy += 1;
                break shared.jobs.pop();
            }
            if shared.busy == 0 {
                shared.stopped = true;
                self.wake.notify_all();
                break None;
            }
            shared = self.wake.wait(shared).unwrap_or_else(PoisonError::into_inner);
        };
        self.hungry.fetch_sub(1, Ordering::Relaxed);
        job
    }

    /// Says whether a thread waits for work.
    pub(super) fn is_hungry(&self) -> bool {
        self.hungry.load(Ordering::Relaxed) > 0
    }

    /// Ends one job: gives work away if someone waits for it, or says that this thread has none left.
    pub(super) fn done(&self, own: &mut Vec<Job<'a>>) {
        if own.is_empty() {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.busy -= 1;
            self.wake.notify_all();
        } else if own.len() > 1 && self.is_hungry() {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            // The first ones are the nearest to the root and have the most below them.
            shared.jobs.extend(own.drain(..own.len() / 2));
            self.wake.notify_all();
        }
    }

    /// Ends the walk for all threads, and returns the result of this one.
    pub(super) fn stop<T>(&self, result: T) -> T {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        self.wake.notify_all();
        result
    }
}
