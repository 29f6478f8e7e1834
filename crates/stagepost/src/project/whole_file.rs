//! Files that someone names to be written: there as a whole, or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// A file that is written beside its place and put there when it is complete and on the disk. Dropped before that, it leaves nothing,
/// and what was there stays.
#[derive(Debug)]
#[must_use = "dropped, it is not written"]
pub struct WholeFile {
    file: File,
    /// Where it is written; `None` for a device or a pipe, which are written to as they are.
    beside: Option<PathBuf>,
    path: PathBuf,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Replace,
    Fresh,
}

impl WholeFile {
    /// Begins a file that takes the place of what is there, if something is: with its rights, and where a link to it leads.
    pub fn replace(path: &Path) -> io::Result<Self> {
        // A link that leads nowhere is followed too, as by everyone who writes to it.
        let led_to =
            fs::canonicalize(path).or_else(|_| fs::read_link(path).map(|to| path.with_file_name(to)));
        let path = led_to.unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&path) {
            Ok(there) if there.is_file() => {
                // One that may not be written is not to be replaced either.
                drop(OpenOptions::new().write(true).open(&path)?);
                let begun = Self::begin(path, Place::Replace)?;
                begun.file.set_permissions(there.permissions())?;
                Ok(begun)
            }
            Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(_) => {
                let file = OpenOptions::new().write(true).open(&path)?;
                Ok(Self { file, beside: None, path, place: Place::Replace })
            }
            Err(_) => Self::begin(path, Place::Replace),
        }
    }

    /// Begins a file where there must be none.
    pub fn fresh(path: &Path) -> io::Result<Self> {
        match fs::symlink_metadata(path) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => Self::begin(path.to_owned(), Place::Fresh),
        }
    }

    fn begin(path: PathBuf, place: Place) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if path.file_name().is_none() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let beside = path.with_file_name(format!(".stagepost-{}-{number}.tmp", std::process::id()));
            match File::create_new(&beside) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return Ok(Self { file: made?, beside: Some(beside), path, place }),
            }
        }
    }

    /// Puts the file in its place, once it is on the disk.
    pub fn finish(mut self) -> io::Result<()> {
        let Some(beside) = &self.beside else { return Ok(()) };
        self.file.sync_all()?;
        match self.place {
            Place::Replace => fs::rename(beside, &self.path)?,
            Place::Fresh => rename_fresh(beside, &self.path)?,
        }
        self.beside = None;
        // The file is there; not every file system can say that its name is on the disk too.
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            let _ = fs::remove_file(beside);
        }
    }
}

/// Not every file system can refuse to replace in the rename itself; a look just before is the next best.
fn rename_fresh(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if fs::symlink_metadata(to).is_err() => {
            fs::rename(from, to)
        }
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Err(io::ErrorKind::AlreadyExists.into()),
        answer => Ok(answer?),
    }
}

/// Writes a file as a whole, in place of what is there.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = WholeFile::replace(path)?;
    file.write_all(bytes)?;
    file.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_is_not_finished_leaves_nothing_and_what_was_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        for (path, fresh) in [(&path, false), (&folder.path().join("b"), true)] {
            let mut file = if fresh { WholeFile::fresh(path) } else { WholeFile::replace(path) }.unwrap();
            file.write_all(b"half").unwrap();
        }
        assert_eq!((names(folder.path()), fs::read(&path).unwrap()), (vec!["a".to_owned()], b"old".to_vec()));
    }

    #[test]
    fn rights_and_links_stay_and_a_device_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("link"));
        symlink("a", &link).unwrap();
        write_whole(&link, b"through a link that led nowhere").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        write_whole(&link, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(link.is_symlink());
        write_whole(Path::new("/dev/null"), b"anything").unwrap();
        assert!(write_whole(folder.path(), b"no").is_err());
        assert_eq!(names(folder.path()), ["a", "link"]);
    }

    #[test]
    fn what_must_be_new_replaces_nothing_that_appeared_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let file = WholeFile::fresh(&path).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert_eq!(file.finish().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(WholeFile::fresh(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(
            (names(folder.path()), fs::read(&path).unwrap()),
            (vec!["a".to_owned()], b"theirs".to_vec())
        );
    }
}
