//! The layer for files: SQLite's own, but for logs.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use rusqlite::ffi::{
    self, SQLITE_CANTOPEN, SQLITE_IOERR, SQLITE_NOTFOUND, SQLITE_OK, SQLITE_OPEN_WAL, sqlite3_file,
    sqlite3_int64, sqlite3_io_methods, sqlite3_vfs,
};

use crate::gather;

/// Calls a method of the file behind one that SQLite has opened and not closed, with SQLite's own arguments.
macro_rules! go_on {
    ($file:expr, $method:ident, $missing:expr $(, $argument:expr)*) => {
        // SAFETY: an open file has methods, and one of ours is only open while the one behind it is.
        unsafe {
            let behind = behind($file);
            match (*(*behind).pMethods).$method {
                Some(method) => method(behind $(, $argument)*),
                None => $missing,
            }
        }
    };
}

/// SQLite's own layer.
static OWN: AtomicPtr<sqlite3_vfs> = AtomicPtr::new(ptr::null_mut());

/// Makes the layer known to SQLite under `name`. To be called once.
pub(crate) fn register(name: &'static CStr) -> bool {
    // SAFETY: with no name, SQLite returns its default layer or null; layers are never freed.
    let own = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
    // SAFETY: see above.
    let Some(layer) = (unsafe { own.as_ref() }) else { return false };
    let mut layer = *layer;
    let room = c_int::try_from(size_of::<sqlite3_file>()).unwrap_or(0);
    layer.szOsFile += room;
    layer.zName = name.as_ptr();
    layer.pNext = ptr::null_mut();
    layer.xOpen = Some(open);
    OWN.store(own, Ordering::Release);
    // SAFETY: the layer and its name live for ever, and its functions are those of SQLite's own, which know it by nothing
    // but the fields that were copied; but `open`, which goes on to SQLite's own layer.
    unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(layer)), 0) == SQLITE_OK }
}

/// Opens a file. One that is a log is ours, with SQLite's own behind it; any other is SQLite's own.
unsafe extern "C" fn open(
    _layer: *mut sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let own = OWN.load(Ordering::Acquire);
    // SAFETY: it was stored before anyone could open a file, and layers are never freed.
    let Some(open) = (unsafe { (*own).xOpen }) else { return SQLITE_CANTOPEN };
    if flags & SQLITE_OPEN_WAL == 0 {
        // SAFETY: the arguments are SQLite's, and the room for the file is larger than asked for.
        return unsafe { open(own, name, file, flags, out_flags) };
    }
    // SAFETY: SQLite gave room for both files; see `register`.
    let opened = unsafe { open(own, name, behind(file), flags, out_flags) };
    // SAFETY: `file` is SQLite's to fill in. A file without methods is not closed, so the one behind it must not need to be.
    unsafe {
        let has_methods = !(*behind(file)).pMethods.is_null();
        (*file).pMethods = if has_methods { &raw const METHODS } else { ptr::null() };
    }
    opened
}

/// The file of SQLite's own behind a log of ours. It lies right after it, as aligned as SQLite's own would be.
unsafe fn behind(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: the caller has a file with room for both.
    unsafe { file.add(1) }
}

/// Version 1: a log is neither locked nor mapped.
static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// A log that SQLite has opened and not closed.
#[derive(Clone, Copy)]
struct Opened(*mut sqlite3_file);

impl gather::Log for Opened {
    fn address(self) -> usize {
        self.0.addr()
    }

    fn write(self, bytes: &[u8], offset: i64) -> c_int {
        let Ok(length) = c_int::try_from(bytes.len()) else { return SQLITE_IOERR };
        go_on!(self.0, xWrite, SQLITE_IOERR, bytes.as_ptr().cast(), length, offset)
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    bytes: *const c_void,
    length: c_int,
    offset: sqlite3_int64,
) -> c_int {
    let Ok(length) = usize::try_from(length) else { return SQLITE_IOERR };
    // SAFETY: SQLite says how long the bytes are.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) };
    gather::write(Opened(file), bytes, offset)
}

/// Does the first, and the second if that went well.
fn after(first: c_int, second: impl FnOnce() -> c_int) -> c_int {
    if first == SQLITE_OK { second() } else { first }
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    into: *mut c_void,
    length: c_int,
    offset: sqlite3_int64,
) -> c_int {
    after(gather::stop(Opened(file)), || go_on!(file, xRead, SQLITE_IOERR, into, length, offset))
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: sqlite3_int64) -> c_int {
    after(gather::flush(Opened(file)), || go_on!(file, xTruncate, SQLITE_IOERR, size))
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    after(gather::flush(Opened(file)), || go_on!(file, xSync, SQLITE_IOERR, flags))
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, size: *mut sqlite3_int64) -> c_int {
    after(gather::flush(Opened(file)), || go_on!(file, xFileSize, SQLITE_IOERR, size))
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    go_on!(file, xClose, SQLITE_OK)
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    go_on!(file, xLock, SQLITE_OK, level)
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    go_on!(file, xUnlock, SQLITE_OK, level)
}

unsafe extern "C" fn check_reserved_lock(file: *mut sqlite3_file, held: *mut c_int) -> c_int {
    go_on!(file, xCheckReservedLock, SQLITE_OK, held)
}

unsafe extern "C" fn file_control(file: *mut sqlite3_file, what: c_int, argument: *mut c_void) -> c_int {
    go_on!(file, xFileControl, SQLITE_NOTFOUND, what, argument)
}

unsafe extern "C" fn sector_size(file: *mut sqlite3_file) -> c_int {
    go_on!(file, xSectorSize, 0)
}

unsafe extern "C" fn device_characteristics(file: *mut sqlite3_file) -> c_int {
    go_on!(file, xDeviceCharacteristics, 0)
}
