//! Packs of our own in a repository's object store.
//!
//! Each has a `.keep` beside it that says whose it is: git's automatic gc does not count such packs, so ours never
//! provoke it. When snapshots are released the `.keep` files go, and the user's next gc takes what nothing needs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::capture::CaptureError;
use super::durable;

/// The text of our `.keep` files.
pub(super) const KEEP: &[u8] = b"stagepost\n";

/// Moves a finished pack (`<base>.pack`, `<base>.idx`) into an object store: first what marks it as ours, then the
/// content, then the index that makes git see it. Durable when it returns.
pub(super) fn adopt(base: &Path, objects_dir: &Path) -> Result<(), CaptureError> {
    let folder = objects_dir.join("pack");
    fs::create_dir_all(&folder).map_err(CaptureError::io("make the folder", &folder))?;
    let name = base.file_name().unwrap_or_default();
    let target = |suffix: &str| with_suffix(&folder.join(name), suffix);
    let keep = target(".keep");
    fs::write(&keep, KEEP).map_err(CaptureError::io("write", &keep))?;
    for suffix in [".pack", ".idx"] {
        let source = with_suffix(base, suffix);
        let synced = File::open(&source).and_then(|file| file.sync_all());
        synced.map_err(CaptureError::io("sync", &source))?;
        fs::rename(&source, target(suffix)).map_err(CaptureError::io("move a pack to", &folder))?;
    }
    durable::sync_folder(&folder).map_err(CaptureError::io("sync", &folder))
}

/// Adds to a path's last name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Returns our packs in an object store, each without its suffix.
pub(super) fn ours(objects_dir: &Path) -> Result<Vec<PathBuf>, CaptureError> {
    let folder = objects_dir.join("pack");
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
        other => other.map_err(CaptureError::io("list", &folder))?,
    };
    let keeps = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "keep"));
    let mut packs: Vec<_> = keeps.filter(|path| fs::read(path).is_ok_and(|text| text == KEEP)).collect();
    packs.iter_mut().for_each(|path| _ = path.set_extension(""));
    packs.sort();
    Ok(packs)
}

/// Returns the SHA-1 name of an object.
pub(super) fn sha1_name(kind: super::ObjectKind, bytes: &[u8]) -> crate::model::ObjectId {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(format!("{} {}\0", kind.as_str(), bytes.len()).as_bytes());
    hasher.update(bytes);
    // Content made to collide is refused by git too; its name here then differs from every real one.
    let digest =
        hasher.try_finalize().map_or([0; 20], |id| <[u8; 20]>::try_from(id.as_slice()).unwrap_or([0; 20]));
    crate::model::ObjectId::from_bytes(&digest).expect("20 bytes are a name")
}
