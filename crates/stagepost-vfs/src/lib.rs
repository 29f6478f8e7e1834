//! Hands what SQLite writes to its log for one commit to the system as one write.
//!
//! SQLite writes each page of its log in two parts, so a commit of eight small pages is sixteen system calls, and they cost
//! more than everything else it does in a commit. Here they are gathered while [`gathered`] runs, and written when the
//! page comes that completes the commit. By then SQLite has not told anyone of it: a failed write fails the commit as
//! ever, and what others see, what a sync covers and what a crash leaves do not change.
//!
//! Everything else is SQLite's own layer for files, which all calls go on to.

mod gather;
mod layer;

use std::ffi::CStr;
use std::sync::OnceLock;

/// The name of the layer for files that gathers.
const NAME: &CStr = c"stagepost";

/// Returns the name to open a connection with; `None` if SQLite does not have the files it should be built on.
pub fn name() -> Option<&'static CStr> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    REGISTERED.get_or_init(|| layer::register(NAME)).then_some(NAME)
}

/// Runs a commit in this thread, on a connection opened with [`name`], and gathers what it writes to its log.
///
/// The work has to end the transaction: what is gathered without the page that completes a commit is of one that
/// failed, and is dropped.
pub fn gathered<T>(commit: impl FnOnce() -> T) -> T {
    let _gathering = gather::begin();
    commit()
}
