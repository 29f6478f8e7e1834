//! Putting a file back that a step left and that is gone: as it was, and never outside the project.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Writes a file that is not there, with the mode that it had; where that is not known, the umask decides. The folders
/// above it are made where they are missing. A link among them may lead elsewhere in the project, not out of it.
pub(super) fn put_back(root: &Path, path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    let root = fs::canonicalize(root)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = open_folder(&root, &place_of(path.parent().unwrap_or(&root))?)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Until it is whole, nobody else has any business with it.
    let first = Mode::from_raw_mode(if mode.is_some() { 0o600 } else { 0o666 });
    let mut file = File::from(rustix::fs::openat(&folder, name, flags, first)?);
    let written = file.write_all(bytes).and_then(|()| match mode {
        Some(mode) => Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o777))?),
        None => Ok(()),
    });
    if written.is_err() {
        let _ = rustix::fs::unlinkat(&folder, name, AtFlags::empty());
    }
    written
}

/// Where a folder really is, or will be: as far as it is there, links are followed.
fn place_of(folder: &Path) -> io::Result<PathBuf> {
    match (fs::canonicalize(folder), folder.parent(), folder.file_name()) {
        (Err(error), Some(above), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
            Ok(place_of(above)?.join(name))
        }
        (place, ..) => place,
    }
}

/// Opens a folder below the root, making what is missing. What was swapped for a link meanwhile is not followed.
fn open_folder(root: &Path, folder: &Path) -> io::Result<OwnedFd> {
    let Ok(below) = folder.strip_prefix(root) else {
        return Err(io::Error::other("its folder lies outside the project"));
    };
    let mut handle = rustix::fs::open(root, FOLDER, Mode::empty())?;
    for part in below {
        match rustix::fs::mkdirat(&handle, part, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        handle = rustix::fs::openat(&handle, part, FOLDER, Mode::empty())?;
    }
    Ok(handle)
}
