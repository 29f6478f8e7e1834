//! Files strictly below a work tree's root.
//!
//! A path is opened part by part (or by `openat2` in one call), never through a symlink, so that a parent swapped
//! for a link makes the operation fail instead of leaving the project. Whoever holds a [`Folder`] acts relative to
//! its handle: renaming the folder afterwards moves the effect with it, but never outside.
//!
//! New content is written beside its place under a recognisable name and renamed; syncing is the caller's choice,
//! because one sync per folder serves many files.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::model::RepoPath;

/// What a temporary file's name starts with; what a killed restore left behind is known by it.
pub(crate) const TEMPORARY: &str = ".stagepost-restore-";

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An operation below the root that could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path must never be touched.
    #[error("refused to touch `{path}`: it could mean a place outside the work tree or inside `.git`")]
    Forbidden {
        /// The path, escaped for display.
        path: String,
    },
    /// A parent of the path is a file or a link, not a folder.
    #[error("failed to reach `{path}`: a parent of it is not a folder")]
    Blocked {
        /// The path, escaped for display.
        path: String,
    },
    /// The system refused.
    #[error("failed to {action} `{path}`")]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The path, escaped for display.
        path: String,
        /// Why it failed.
        source: io::Error,
    },
}

impl Error {
    fn io(action: &'static str, path: &[u8], errno: impl Into<io::Error>) -> Self {
        Self::Io { action, path: shown(path), source: errno.into() }
    }

    /// Whether something stood at the place where nothing was expected.
    pub(crate) fn is_occupied(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
    }
}

/// Shows a path's bytes on one line.
pub(crate) fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).escape_debug().to_string()
}

/// What the system tells of a file without reading it: equal stamps mean nobody wrote it in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    inode: (u64, u64),
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
            mode: stat.st_mode as u32,
        }
    }

    /// Whether its owner may execute it, which is what git records.
    pub(crate) fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
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
}

/// Whether placing a file may replace what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Something is expected there and goes.
    Replace,
    /// Nothing is expected there; something that appeared meanwhile is kept and the placing fails.
    Fresh,
}

/// The root of a work tree, held open.
#[derive(Debug)]
pub(crate) struct Root {
    folder: OwnedFd,
    /// Cleared when the kernel turns out not to know `openat2`.
    in_one_call: AtomicBool,
}

impl Root {
    /// Opens the root folder itself; how the user reached it, links included, is the user's business.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = fs::open(path, flags, Mode::empty())
            .map_err(|errno| Error::io("open", path.as_os_str().as_encoded_bytes(), errno))?;
        Ok(Self { folder, in_one_call: AtomicBool::new(cfg!(target_os = "linux")) })
    }

    /// Opens the folder that holds `path`, or `None` if it does not exist.
    pub(crate) fn folder_of(&self, path: &[u8]) -> Result<Option<Folder>, Error> {
        check(path)?;
        self.folder(parent(path))
    }

    /// Opens a folder below the root (the root itself for an empty path), or `None` if it does not exist.
    pub(crate) fn folder(&self, path: &[u8]) -> Result<Option<Folder>, Error> {
        match self.descend(path) {
            Ok(handle) => Ok(Some(Folder { handle, path: path.to_vec() })),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Err(Error::Blocked { path: shown(path) }),
            Err(errno) => Err(Error::io("open the folder", path, errno)),
        }
    }

    /// Opens the folder that holds `path`, making it and its parents where they do not exist; returns also the
    /// folders that got a new name by that, for the caller to sync.
    pub(crate) fn make_folder_of(&self, path: &[u8]) -> Result<(Folder, Vec<Vec<u8>>), Error> {
        if let Some(folder) = self.folder_of(path)? {
            return Ok((folder, Vec::new()));
        }
        let mut folder = Folder { handle: self.duplicate()?, path: Vec::new() };
        let mut renamed = Vec::new();
        for part in parent(path).split(|&byte| byte == b'/') {
            renamed.push(folder.path.clone());
            folder = folder.make(part)?;
        }
        Ok((folder, renamed))
    }

    fn duplicate(&self) -> Result<OwnedFd, Error> {
        self.folder.try_clone().map_err(|error| Error::io("open", b".", error))
    }

    fn descend(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        if path.is_empty() {
            return fs::openat(&self.folder, ".", FOLDER, Mode::empty());
        }
        if self.in_one_call.load(Ordering::Relaxed) {
            match in_one_call(self.folder.as_fd(), path) {
                Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::AGAIN) => {
                    self.in_one_call.store(false, Ordering::Relaxed);
                }
                answer => return answer,
            }
        }
        part_by_part(self.folder.as_fd(), path)
    }

    /// Makes this root open paths part by part, as it does where the kernel lacks `openat2`.
    #[cfg(test)]
    fn without_openat2(self) -> Self {
        self.in_one_call.store(false, Ordering::Relaxed);
        self
    }
}

#[cfg(target_os = "linux")]
fn in_one_call(root: impl AsFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    fs::openat2(root, path, FOLDER, Mode::empty(), resolve)
}

#[cfg(not(target_os = "linux"))]
fn in_one_call(_root: impl AsFd, _path: &[u8]) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

fn part_by_part(root: impl AsFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let mut parts = path.split(|&byte| byte == b'/');
    let first = parts.next().unwrap_or_default();
    let mut folder = fs::openat(root, first, FOLDER, Mode::empty())?;
    for part in parts {
        folder = fs::openat(&folder, part, FOLDER, Mode::empty())?;
    }
    Ok(folder)
}

/// A folder below the root, held open.
#[derive(Debug)]
pub(crate) struct Folder {
    handle: OwnedFd,
    path: Vec<u8>,
}

impl Folder {
    /// The folder's path below the root.
    pub(crate) fn path(&self) -> &[u8] {
        &self.path
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
        let mut bytes = Vec::with_capacity(usize::try_from(stamp.size).unwrap_or(0).min(1 << 26));
        File::from(handle).read_to_end(&mut bytes).map_err(failed)?;
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
    fn make(&self, name: &[u8]) -> Result<Folder, Error> {
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
    pub(crate) fn write_beside(&self, bytes: &[u8], executable: bool) -> Result<Temporary, Error> {
        let name = temporary_name();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(if executable { 0o777 } else { 0o666 });
        let handle = fs::openat(&self.handle, &name, flags, mode)
            .map_err(|errno| self.failed("create", &name, errno))?;
        let mut file = File::from(handle);
        match file.write_all(bytes) {
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
        let mode = fs::fstat(&handle).map_err(failed)?.st_mode & 0o777;
        let mode = if executable { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 };
        fs::fchmod(&handle, Mode::from_raw_mode(mode)).map_err(failed)
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

    /// Makes the content durable (a symlink's is its name, which the folder's sync covers).
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }
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

/// The paths that reach this module come from tree objects, which can hold anything; checked here again, whatever
/// the plan already checked.
fn check(path: &[u8]) -> Result<(), Error> {
    let first = path.split(|&byte| byte == b'/').next().unwrap_or_default();
    if RepoPath::from_bytes(path).is_safe() && !first.eq_ignore_ascii_case(b".stagepost") {
        return Ok(());
    }
    Err(Error::Forbidden { path: shown(path) })
}

/// The folder part of a path: empty for a path in the root.
pub(crate) fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|&byte| byte == b'/').map_or(&[], |slash| &path[..slash])
}

/// The last part of a path.
pub(crate) fn name(path: &[u8]) -> &[u8] {
    path.iter().rposition(|&byte| byte == b'/').map_or(path, |slash| &path[slash + 1..])
}

fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn both_ways(path: &Path) -> [Root; 2] {
        [Root::open(path).unwrap(), Root::open(path).unwrap().without_openat2()]
    }

    #[test]
    fn a_file_is_written_beside_and_renamed() {
        let folder = tempfile::tempdir().unwrap();
        for (root, path) in both_ways(folder.path()).into_iter().zip(["a/b/x.sh", "c/d/x.sh"]) {
            let place = root.make_folder_of(path.as_bytes()).unwrap().0;
            let temporary = place.write_beside(b"hello", true).unwrap();
            assert!(is_temporary(temporary.name()) && !folder.path().join(path).exists());
            place.place(&temporary, b"x.sh", Place::Fresh).unwrap();

            assert_eq!(std::fs::read(folder.path().join(path)).unwrap(), b"hello");
            let mode = std::fs::metadata(folder.path().join(path)).unwrap().permissions().mode();
            assert_eq!(mode & 0o100, 0o100);
        }
    }

    #[test]
    fn a_symlinked_parent_is_never_entered() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::create_dir(outside.path().join("sub")).unwrap();
        symlink(outside.path(), folder.path().join("link")).unwrap();
        for root in both_ways(folder.path()) {
            for path in ["link/x", "link/sub/x", "link/new/x"] {
                assert!(matches!(root.make_folder_of(path.as_bytes()), Err(Error::Blocked { .. })), "{path}");
                assert!(matches!(root.folder_of(path.as_bytes()), Err(Error::Blocked { .. })), "{path}");
            }
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn forbidden_paths_are_refused_before_anything_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        for root in both_ways(folder.path()) {
            for path in [".git/hooks/x", "a/../b", ".GIT/x", "/etc/x", "a//b", ".stagepost/x", "git~1/x"] {
                assert!(
                    matches!(root.make_folder_of(path.as_bytes()), Err(Error::Forbidden { .. })),
                    "{path}"
                );
            }
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_appeared_meanwhile_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let place = root.make_folder_of(b"x").unwrap().0;
        let temporary = place.write_beside(b"ours", false).unwrap();
        std::fs::write(folder.path().join("x"), "theirs").unwrap();

        assert!(place.place(&temporary, b"x", Place::Fresh).unwrap_err().is_occupied());
        assert_eq!(std::fs::read(folder.path().join("x")).unwrap(), b"theirs");
    }

    #[test]
    fn a_pipe_does_not_block_reading() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        fs::mkfifoat(&root.folder, "pipe", Mode::from_raw_mode(0o600)).unwrap();
        let place = root.folder_of(b"pipe").unwrap().unwrap();
        assert_eq!(place.node(b"pipe").unwrap(), Node::Other);
        assert!(place.read(b"pipe").unwrap().1.is_empty());
    }

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
