//! A place for objects that may never be needed: a failed capture leaves nothing in the repository.
//!
//! git writes loose objects here and reads the rest from the repository; what is to stay is moved as one pack.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::capture::CaptureError;
use super::git::Git;
use super::pack;
use crate::model::ObjectId;
use crate::private;

const PREFIX: &str = "quarantine-";

/// A folder for objects, removed when dropped.
#[derive(Debug)]
pub(super) struct Quarantine {
    folder: tempfile::TempDir,
}

impl Quarantine {
    /// Makes one in `parent`, and removes those that a killed process left there; the caller holds the lock.
    pub(super) fn make(parent: &Path) -> Result<Self, CaptureError> {
        private::folders(parent).map_err(CaptureError::io("make the folder", parent))?;
        for entry in fs::read_dir(parent).map_err(CaptureError::io("list", parent))?.flatten() {
            if entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()) {
                // What cannot be removed now is tried again next time; it is in nobody's way.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent);
        let quarantine = Self { folder: folder.map_err(CaptureError::io("make a folder in", parent))? };
        let objects = quarantine.objects_dir();
        private::folders(&objects).map_err(CaptureError::io("make the folder", &objects))?;
        Ok(quarantine)
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn objects_dir(&self) -> PathBuf {
        self.path().join("objects")
    }

    /// Returns git such that new objects land here and those of `others` can be read.
    pub(super) fn bind(&self, git: &Git, others: &[PathBuf]) -> Git {
        git.with("GIT_OBJECT_DIRECTORY", self.objects_dir())
            .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", join(others))
    }

    /// Lists the objects that were written here.
    pub(super) fn written(&self) -> Result<Vec<ObjectId>, CaptureError> {
        let objects = self.objects_dir();
        let mut ids = Vec::new();
        for folder in fs::read_dir(&objects).map_err(CaptureError::io("list", &objects))?.flatten() {
            let Ok(files) = fs::read_dir(folder.path()) else { continue };
            for file in files.flatten() {
                let (high, low) = (folder.file_name(), file.file_name());
                ids.extend(format!("{}{}", high.to_string_lossy(), low.to_string_lossy()).parse());
            }
        }
        ids.sort();
        Ok(ids)
    }

    /// Packs `ids` and moves the pack to where objects stay; durable when it returns. Returns the pack's name, if
    /// there was something to pack.
    pub(super) fn keep(
        &self,
        git: &Git,
        ids: &[ObjectId],
        objects_dir: &Path,
    ) -> Result<Option<String>, CaptureError> {
        if ids.is_empty() {
            return Ok(None);
        }
        let list: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let base = self.path().join("pack");
        let args = ["pack-objects", "-q", "--threads=2", "--end-of-options"].map(OsStr::new);
        let name = git.run(&[&args[..], &[base.as_os_str()]].concat(), list.as_bytes())?;
        let name = format!("pack-{}", String::from_utf8_lossy(&name).trim());
        pack::adopt(&self.path().join(&name), objects_dir)?;
        Ok(Some(name))
    }
}

/// Joins folders as git wants them: quoted, because a path may contain the separator.
pub(super) fn join(folders: &[PathBuf]) -> OsString {
    let mut list = Vec::new();
    for folder in folders {
        if !list.is_empty() {
            list.push(b':');
        }
        list.push(b'"');
        for byte in folder.as_os_str().as_bytes() {
            match byte {
                b'"' | b'\\' => list.extend([b'\\', *byte]),
                b'\n' => list.extend(b"\\n"),
                other => list.push(*other),
            }
        }
        list.push(b'"');
    }
    OsString::from_vec(list)
}

/// Copies the user's index, with its times: git decides by them which entries could be out of date.
pub(super) fn copy_index(from: &Path, to: &Path) -> Result<(), CaptureError> {
    use std::io::Read;
    let mut file = match crate::bounded::open(from) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(CaptureError::io("open", from))?,
    };
    let failed = || CaptureError::io("read", from);
    let times = file.metadata().and_then(|metadata| metadata.modified()).map_err(failed())?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed())?;
    fs::write(to, bytes).map_err(CaptureError::io("write", to))?;
    let copy = fs::File::options().write(true).open(to).map_err(CaptureError::io("open", to))?;
    copy.set_modified(times).map_err(CaptureError::io("set the times of", to))
}

/// Makes a path of the work tree one of the file system.
pub(super) fn on_disk(root: &Path, path: &[u8]) -> PathBuf {
    root.join(OsStr::from_bytes(path))
}
