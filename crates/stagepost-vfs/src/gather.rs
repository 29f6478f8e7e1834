//! What is gathered, for each thread.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::Mutex;

use rusqlite::ffi::SQLITE_OK;

/// So long is the part of SQLite's log before each page; its bytes 4 to 8 are not zero for the last page of a commit.
const BEFORE_PAGE: usize = 24;

/// More than this is written before the commit is complete, and in parts: SQLite's own layer takes less than 128 KiB at once,
/// and calls a write of exactly that a full disk.
const MOST: usize = 64 << 10;

/// Room to gather in, for whoever commits next: those who write together take turns, and each would have to make its own.
static ROOM: Mutex<Vec<u8>> = Mutex::new(Vec::new());

thread_local! {
    static GATHERED: RefCell<Gathered> = const { RefCell::new(Gathered::nothing()) };
}

/// A log that can be written to. It is the same as long as its address is.
pub(crate) trait Log: Copy {
    fn address(self) -> usize;
    fn write(self, bytes: &[u8], offset: i64) -> c_int;
}

struct Gathered {
    on: bool,
    log: usize,
    start: i64,
    bytes: Vec<u8>,
    /// The page that comes next is the last of its commit.
    completes: bool,
}

/// Gathering goes on until this is dropped.
pub(crate) struct Gathering(());

pub(crate) fn begin() -> Gathering {
    let mut room = ROOM.try_lock().map(|mut room| std::mem::take(&mut *room)).unwrap_or_default();
    // At once, because what grows is copied. With large pages it grows once more.
    room.reserve(MOST + 4096);
    change(|gathered| gathered.start_over(Some(room)));
    Gathering(())
}

impl Drop for Gathering {
    fn drop(&mut self) {
        let room = change(|gathered| gathered.start_over(None));
        if let (Some(room), Ok(mut spare)) = (room, ROOM.try_lock()) {
            *spare = room;
        }
    }
}

/// Takes something to be written, and says what SQLite is told of it.
pub(crate) fn write(log: impl Log, bytes: &[u8], offset: i64) -> c_int {
    change(|gathered| gathered.write(log, bytes, offset)).unwrap_or_else(|| log.write(bytes, offset))
}

/// Writes what is gathered, before anything else is done with the log.
pub(crate) fn flush(log: impl Log) -> c_int {
    change(|gathered| gathered.flush(log)).unwrap_or(SQLITE_OK)
}

/// Writes what is gathered, and gathers no more. A log that is read in the middle of a commit is about to be changed in
/// places that were written before.
pub(crate) fn stop(log: impl Log) -> c_int {
    change(|gathered| {
        gathered.on = false;
        gathered.flush(log)
    })
    .unwrap_or(SQLITE_OK)
}

/// A thread that is at its end has nothing gathered.
fn change<T>(work: impl FnOnce(&mut Gathered) -> T) -> Option<T> {
    GATHERED
        .try_with(|gathered| gathered.try_borrow_mut().ok().map(|mut gathered| work(&mut gathered)))
        .ok()
        .flatten()
}

impl Gathered {
    const fn nothing() -> Self {
        Self { on: false, log: 0, start: 0, bytes: Vec::new(), completes: false }
    }

    /// Begins with some room, or ends, and returns the room there was, with nothing in it.
    fn start_over(&mut self, room: Option<Vec<u8>>) -> Vec<u8> {
        self.on = room.is_some();
        self.completes = false;
        let mut before = std::mem::replace(&mut self.bytes, room.unwrap_or_default());
        before.clear();
        before
    }

    fn write(&mut self, log: impl Log, bytes: &[u8], offset: i64) -> c_int {
        if !self.on {
            return log.write(bytes, offset);
        }
        let before_page = bytes.len() == BEFORE_PAGE;
        if !self.goes_on(log, offset) {
            let written = self.flush(log);
            if written != SQLITE_OK || !before_page {
                return if written == SQLITE_OK { log.write(bytes, offset) } else { written };
            }
            (self.log, self.start) = (log.address(), offset);
        }
        self.bytes.extend_from_slice(bytes);
        if before_page {
            self.completes = bytes[4..8] != [0; 4];
            return SQLITE_OK;
        }
        if self.completes || self.bytes.len() >= MOST { self.flush(log) } else { SQLITE_OK }
    }

    fn goes_on(&self, log: impl Log, offset: i64) -> bool {
        !self.bytes.is_empty() && self.log == log.address() && offset == self.start + self.bytes.len() as i64
    }

    fn flush(&mut self, log: impl Log) -> c_int {
        self.completes = false;
        if self.bytes.is_empty() || self.log != log.address() {
            return SQLITE_OK;
        }
        let (mut written, mut offset) = (SQLITE_OK, self.start);
        for part in self.bytes.chunks(MOST) {
            written = log.write(part, offset);
            if written != SQLITE_OK {
                break;
            }
            offset += part.len() as i64;
        }
        self.bytes.clear();
        written
    }
}
