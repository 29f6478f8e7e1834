//! What `lstat` says of a file, as far as it tells whether the content can have changed.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Stat};

/// The times, size and identity of a file. Two equal stamps mean the same content, unless the file was changed in
/// the very tick of the clock in which it was read: see [`Stamp::is_older_than`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    pub(super) modified: i64,
    pub(super) changed: i64,
    pub(super) size: u64,
    pub(super) inode: u64,
}

/// What a name in a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nature {
    File,
    Executable,
    Link,
    Folder,
    Special,
}

impl Stamp {
    /// A stamp that no file has: what carries it is looked at anew.
    pub(super) const NEVER: Self = Self { modified: 0, changed: 0, size: u64::MAX, inode: 0 };

    pub(super) fn of(stat: &Stat) -> Self {
        let nanoseconds =
            |seconds: i64, rest: u64| seconds.wrapping_mul(1_000_000_000).wrapping_add(rest as i64);
        Self {
            modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            changed: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
            size: stat.st_size as u64,
            inode: stat.st_ino,
        }
    }

    /// Says whether the file was last changed before `moment`, so that any later change shows.
    pub(super) fn is_older_than(&self, moment: i64) -> bool {
        self.changed < moment && self.modified < moment
    }

    /// Returns the stamp if it can be trusted later, else one that never matches.
    pub(super) fn if_older_than(self, moment: i64) -> Self {
        if self.is_older_than(moment) { self } else { Self::NEVER }
    }
}

impl Nature {
    pub(super) fn of(stat: &Stat) -> Self {
        match FileType::from_raw_mode(stat.st_mode) {
            // git looks at the owner's bit alone.
            FileType::RegularFile if stat.st_mode & 0o100 != 0 => Self::Executable,
            FileType::RegularFile => Self::File,
            FileType::Symlink => Self::Link,
            FileType::Directory => Self::Folder,
            _ => Self::Special,
        }
    }
}

/// Looks at a name in an open folder, without following links; `None` if it is not there.
pub(super) fn look_at(folder: impl AsFd, name: &[u8]) -> rustix::io::Result<Option<Stat>> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error),
    }
}
