//! Files strictly below a work tree's root.
//!
//! A path is opened part by part (or by `openat2` in one call), never through a symlink, so that a parent swapped
//! for a link makes the operation fail instead of leaving the project. Whoever holds a [`Folder`] acts relative to
//! its handle: renaming the folder afterwards moves the effect with it, but never outside.
//!
//! New content is written beside its place under a recognisable name and renamed; syncing is the caller's choice,
//! because one sync per folder serves many files.

mod folder;
mod whole;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

pub(crate) use folder::{Folder, Node, Place, Readers, Stamp, Temporary, is_temporary};

use crate::model::RepoPath;

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

/// The root of a work tree, held open.
#[derive(Debug)]
pub(crate) struct Root {
    folder: OwnedFd,
    /// The device of all that [`sync_whole`](Self::sync_whole) syncs, if there is such a call.
    device: OnceLock<Option<u64>>,
    /// Cleared when the kernel turns out not to know `openat2`.
    in_one_call: AtomicBool,
}

impl Root {
    /// Opens the root folder itself; how the user reached it, links included, is the user's business.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = fs::open(path, flags, Mode::empty())
            .map_err(|errno| Error::io("open", path.as_os_str().as_encoded_bytes(), errno))?;
        Ok(Self { folder, device: OnceLock::new(), in_one_call: AtomicBool::new(cfg!(target_os = "linux")) })
    }

    fn device(&self) -> Option<u64> {
        *self.device.get_or_init(|| whole::device(&self.folder))
    }

    /// Says whether there is [`sync_whole`](Self::sync_whole) here.
    pub(crate) fn can_sync_whole(&self) -> bool {
        self.device().is_some()
    }

    /// Says whether [`sync_whole`](Self::sync_whole) makes what is written in a folder durable: another file system may be mounted
    /// there.
    pub(crate) fn syncs_whole(&self, folder: &Folder) -> bool {
        self.device().is_some_and(|device| folder.device() == Some(device))
    }

    /// Makes everything durable that was written in the file system of the root.
    pub(crate) fn sync_whole(&self) -> Result<(), Error> {
        whole::sync(&self.folder).map_err(|error| Error::io("sync", b".", error))
    }

    /// Opens the folder that holds `path`, or `None` if it does not exist.
    pub(crate) fn folder_of(&self, path: &[u8]) -> Result<Option<Folder>, Error> {
        check(path)?;
        self.folder(parent(path))
    }

    /// Opens a folder below the root (the root itself for an empty path), or `None` if it does not exist.
    pub(crate) fn folder(&self, path: &[u8]) -> Result<Option<Folder>, Error> {
        match self.descend(path) {
            Ok(handle) => Ok(Some(Folder::new(handle, path.to_vec()))),
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
        let mut folder = Folder::new(self.duplicate()?, Vec::new());
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

    /// Opens a folder below the root, as the system's own answer; no part of the path may be a link.
    pub(crate) fn descend(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
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
            let temporary = place.write_beside(b"hello", true, Readers::ByUmask).unwrap();
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
        let temporary = place.write_beside(b"ours", false, Readers::ByUmask).unwrap();
        std::fs::write(folder.path().join("x"), "theirs").unwrap();

        assert!(place.place(&temporary, b"x", Place::Fresh).unwrap_err().is_occupied());
        assert_eq!(std::fs::read(folder.path().join("x")).unwrap(), b"theirs");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_mounted_below_is_not_synced_with_the_rest() {
        let root = Root::open(Path::new("/")).unwrap();
        let is_synced = |path: &[u8]| root.syncs_whole(&root.folder(path).unwrap().unwrap());
        assert_eq!(is_synced(b""), root.can_sync_whole());
        assert!(!is_synced(b"proc"));
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
}
