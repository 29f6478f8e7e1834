//! Asking running programs to stop, from anywhere.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::pipe::{PipeFlags, pipe_with};

/// A wish to stop, shared by all who should hear of it. Waiting for it costs nothing.
#[derive(Debug, Clone)]
pub struct Cancel {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Becomes readable when the other end is closed.
    heard: OwnedFd,
    /// Closed to cancel.
    said: Mutex<Option<OwnedFd>>,
}

impl Cancel {
    /// Makes one that nobody has used yet.
    pub fn new() -> io::Result<Self> {
        let (heard, said) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self { shared: Arc::new(Shared { heard, said: Mutex::new(Some(said)) }) })
    }

    /// Asks to stop. Doing so twice changes nothing.
    pub fn cancel(&self) {
        self.shared.said.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Says whether someone asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.shared.said.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// What becomes readable when someone asks to stop.
    pub(super) fn signal(&self) -> BorrowedFd<'_> {
        self.shared.heard.as_fd()
    }
}
