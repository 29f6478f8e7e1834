//! What can be done in one folder, by its handle: look, read, write beside and rename, remove, sync.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::{Error, FOLDER, joined, shown};
use crate::bounded;

/// What a temporary file's name starts with; what a killed restore left behind is known by it.
const TEMPORARY: &str = ".stagepost-restore-";

/// What the system tells of a file without reading it: equal stamps mean nobody wrote it in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    inode: (u64, u64),
    /// How many names it has.
    links: u64,
    mode: u32,
}

impl Stamp {
    #[allow(clippy::unnecessary_cast)] // the fields' types differ between platforms
    fn of(stat: &Stat) -> Self {
        Self {
            size: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            inode: (stat.st_dev as u64, stat.st_ino as u64),
            links: stat.st_nlink as u64,
            mode: stat.st_mode as u32,
        }
    }

    /// Whether its owner may execute it, which is what git records.
    pub(crate) fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    /// Whether the file has other names too: what is done to one of them shows at all.
    pub(crate) fn is_linked(&self) -> bool {
        self.links > 1
    }

    /// Whether the two differ at most in what giving or taking another name of the file changes.
    fn is_same_but_for_names(&self, other: &Self) -> bool {
        Self { changed: other.changed, links: other.links, ..*self } == *other
    }
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    /// Nothing.
    Nothing,
    /// A regular file.
    File(Stamp),
    /// A symlink.
    Link(Stamp),
    /// A folder.
    Folder,
    /// A pipe, socket or device.
    Other,
}

impl Node {
    fn of(stat: &Stat) -> Self {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Self::File(Stamp::of(stat)),
            FileType::Symlink => Self::Link(Stamp::of(stat)),
            FileType::Directory => Self::Folder,
            _ => Self::Other,
        }
    }

    /// The stamp of a file or link.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::File(stamp) | Self::Link(stamp) => Some(*stamp),
            Self::Nothing | Self::Folder | Self::Other => None,
        }
    }

    /// Whether the two differ at most in what giving or taking another name of a file changes.
    pub(crate) fn is_same_but_for_names(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(one), Self::File(other)) | (Self::Link(one), Self::Link(other)) => {
                one.is_same_but_for_names(other)
            }
            _ => self == other,
        }
    }
}

/// Whether placing a file may replace what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Something is expected there and goes.
    Replace,
    /// Nothing is expected there; something that appeared meanwhile is kept and the placing fails.
    Fresh,
}

/// Who may read and write a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// As the process's umask says.
    ByUmask,
    /// Its owner alone.
    Owner,
    /// As with the file that it replaces: what was private stays private.
    AsOf(Stamp),
}

/// A folder below the root, held open.
#[derive(Debug)]
pub(crate) struct Folder {
    handle: OwnedFd,
    pub(super) path: Vec<u8>,
}

impl Folder {
    pub(super) fn new(handle: OwnedFd, path: Vec<u8>) -> Self {
        Self { handle, path }
    }

    /// The folder's path below the root.
    pub(crate) fn path(&self) -> &[u8] {
        &self.path
    }

    /// The device it is on.
    pub(super) fn device(&self) -> Option<u64> {
        #[allow(clippy::unnecessary_cast)] // the field's type differs between platforms
        fs::fstat(&self.handle).ok().map(|found| found.st_dev as u64)
    }

    /// Looks at what stands at `name`, without following it.
    pub(crate) fn node(&self, name: &[u8]) -> Result<Node, Error> {
        match fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Node::of(&stat)),
            Err(Errno::NOENT) => Ok(Node::Nothing),
            Err(errno) => Err(self.failed("look at", name, errno)),
        }
    }

    /// Reads a regular file, with its stamp from before reading.
    pub(crate) fn read(&self, name: &[u8]) -> Result<(Stamp, Vec<u8>), Error> {
        // a pipe put in the file's place would block a plain open for ever
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let failed = |error: io::Error| self.failed("read", name, error);
        let handle =
            fs::openat(&self.handle, name, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
        let stamp = Stamp::of(&fs::fstat(&handle).map_err(|errno| failed(errno.into()))?);
        let bytes = bounded::read_sized(File::from(handle), stamp.size).map_err(failed)?;
        Ok((stamp, bytes))
    }

    /// Reads where a symlink points.
    pub(crate) fn read_link(&self, name: &[u8]) -> Result<Vec<u8>, Error> {
        fs::readlinkat(&self.handle, name, Vec::new())
            .map(|target| target.into_bytes())
            .map_err(|errno| self.failed("read the link", name, errno))
    }

    /// Lists the names in the folder, without `.` and `..`.
    pub(crate) fn names(&self) -> Result<Vec<Vec<u8>>, Error> {
        let failed = |errno: Errno| Error::io("list", &self.path, errno);
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(&self.handle).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Opens a folder in this one, making it if there is none.
    pub(super) fn make(&self, name: &[u8]) -> Result<Folder, Error> {
        match fs::mkdirat(&self.handle, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(self.failed("make the folder", name, errno)),
        }
        let path = joined(&self.path, name);
        match fs::openat(&self.handle, name, FOLDER, Mode::empty()) {
            Ok(handle) => Ok(Folder { handle, path }),
            Err(Errno::NOTDIR | Errno::LOOP) => Err(Error::Blocked { path: shown(&path) }),
            Err(errno) => Err(Error::io("open the folder", &path, errno)),
        }
    }

    /// Writes a new file under a temporary name; it is not synced yet.
    pub(crate) fn write_beside(
        &self,
        bytes: &[u8],
        executable: bool,
        readers: Readers,
    ) -> Result<Temporary, Error> {
        let name = temporary_name();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Nobody may open it before it is known who may read it.
        let mode = if matches!(readers, Readers::ByUmask) { 0o666 } else { 0o600 };
        let handle = fs::openat(&self.handle, &name, flags, with_execution(mode, executable))
            .map_err(|errno| self.failed("create", &name, errno))?;
        let mut file = File::from(handle);
        let permit = match readers {
            Readers::AsOf(old) => fs::fchmod(&file, with_execution(old.mode, executable)),
            Readers::ByUmask | Readers::Owner => Ok(()),
        };
        match permit.map_err(io::Error::from).and_then(|()| file.write_all(bytes)) {
            Ok(()) => Ok(Temporary { name, file: Some(file) }),
            Err(error) => {
                // a full disk must not be made fuller by what could not be finished
                let _ = fs::unlinkat(&self.handle, &name, AtFlags::empty());
                Err(self.failed("write", &name, error))
            }
        }
    }

    /// Makes a symlink under a temporary name.
    pub(crate) fn link_beside(&self, target: &[u8]) -> Result<Temporary, Error> {
        let name = temporary_name();
        fs::symlinkat(target, &self.handle, &name).map_err(|errno| self.failed("link", &name, errno))?;
        Ok(Temporary { name, file: None })
    }

    /// Renames a temporary file to its name.
    pub(crate) fn place(&self, temporary: &Temporary, name: &[u8], place: Place) -> Result<(), Error> {
        let renamed = match place {
            Place::Replace => fs::renameat(&self.handle, &temporary.name, &self.handle, name),
            Place::Fresh => self.rename_fresh(&temporary.name, name),
        };
        renamed.map_err(|errno| self.failed("put in place", name, errno))
    }

    /// Not every file system can refuse to replace in the rename itself; a look just before is the next best.
    fn rename_fresh(&self, from: &[u8], to: &[u8]) -> Result<(), Errno> {
        match fs::renameat_with(&self.handle, from, &self.handle, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            answer => return answer,
        }
        match fs::statat(&self.handle, to, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => fs::renameat(&self.handle, from, &self.handle, to),
            Ok(_) => Err(Errno::EXIST),
            Err(errno) => Err(errno),
        }
    }

    /// Removes a file or a link.
    pub(crate) fn remove(&self, name: &[u8]) -> Result<(), Error> {
        fs::unlinkat(&self.handle, name, AtFlags::empty()).map_err(|errno| self.failed("delete", name, errno))
    }

    /// Removes a folder if it is empty, and says whether it did.
    pub(crate) fn remove_empty(&self, name: &[u8]) -> Result<bool, Error> {
        match fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT | Errno::NOTDIR | Errno::BUSY) => Ok(false),
            Err(errno) => Err(self.failed("remove the folder", name, errno)),
        }
    }

    /// Gives or takes the right to execute a file, for those who may read it.
    pub(crate) fn set_executable(&self, name: &[u8], executable: bool) -> Result<(), Error> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let failed = |errno: Errno| self.failed("change the mode of", name, errno);
        let handle = fs::openat(&self.handle, name, flags, Mode::empty()).map_err(failed)?;
        let mode = fs::fstat(&handle).map_err(failed)?.st_mode;
        fs::fchmod(&handle, with_execution(mode, executable)).map_err(failed)
    }

    /// Makes the folder's names durable.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        fs::fsync(&self.handle).map_err(|errno| Error::io("sync the folder", &self.path, errno))
    }

    fn failed(&self, action: &'static str, name: &[u8], error: impl Into<io::Error>) -> Error {
        Error::io(action, &joined(&self.path, name), error)
    }
}

/// A file that is written but not yet in its place.
#[derive(Debug)]
pub(crate) struct Temporary {
    name: Vec<u8>,
    file: Option<File>,
}

impl Temporary {
    /// The temporary name.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Lets go of the file, which is or will be made durable by somebody else.
    pub(crate) fn close(&mut self) {
        self.file = None;
    }

    /// Makes the content durable (a symlink's is its name, which the folder's sync covers).
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }
}

/// A file's mode with the right to execute given to all who may read, or taken from all.
fn with_execution(mode: u32, executable: bool) -> Mode {
    let mode = mode & 0o777;
    Mode::from_raw_mode(if executable { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 })
}

fn temporary_name() -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{TEMPORARY}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)).into_bytes()
}

/// Whether a name is one that [`Folder::write_beside`] gives.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let rest = std::str::from_utf8(name).ok().and_then(|name| name.strip_prefix(TEMPORARY));
    rest.and_then(|rest| rest.split_once('-'))
        .is_some_and(|(process, count)| digits(process) && digits(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_temporary_names_are_recognised() {
        assert!(is_temporary(&temporary_name()));
        for other in [
            ".stagepost-restore-",
            ".stagepost-restore-1",
            ".stagepost-restore-1-x",
            "x.stagepost-restore-1-2",
        ] {
            assert!(!is_temporary(other.as_bytes()), "{other}");
        }
    }
}
