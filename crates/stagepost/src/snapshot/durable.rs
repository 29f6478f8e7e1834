//! Files that are still there after a power loss: the file is synced, then its folder.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// Waits until the entries of a folder are on disk.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Waits until files are on disk, all at the same time: a disk serves them in one turn.
pub(super) fn sync_files(files: &[&File]) -> io::Result<()> {
    let Some((first, others)) = files.split_first() else { return Ok(()) };
    std::thread::scope(|scope| {
        let sync = |file: &&File| file.sync_all();
        let waiting: Vec<_> = others
            .iter()
            .map(|file| std::thread::Builder::new().spawn_scoped(scope, move || sync(file)).map_err(|_| file))
            .collect();
        let mut result = first.sync_all();
        for other in waiting {
            let synced = match other {
                Ok(thread) => thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread died"))),
                Err(file) => file.sync_all(),
            };
            result = result.and(synced);
        }
        result
    })
}

/// Makes the folders that `file` needs, each synced into the one above it; `root` is there.
pub(super) fn create_folders(file: &Path, root: &Path) -> io::Result<()> {
    let Some(folder) = file.parent() else { return Ok(()) };
    if folder == root || folder.is_dir() {
        return Ok(());
    }
    create_folders(folder, root)?;
    let mode = mode_below(root, 0o777);
    match fs::DirBuilder::new().mode(mode).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    folder.parent().map_or(Ok(()), sync_folder)
}

/// What others may do with something new below `folder`: no more than with the folder itself.
pub(super) fn mode_below(folder: &Path, mode: u32) -> u32 {
    fs::metadata(folder).map_or(0o700, |found| found.permissions().mode()) & mode
}

/// Removes a file; one that is not there is removed already.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Removes a folder with all that is in it; one that is not there is removed already.
pub(super) fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
