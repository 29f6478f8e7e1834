//! Taking the place of a file that git guards with a lock, in a way that leaves no lock if we are killed.
//!
//! git makes `<file>.lock`, looks at the file, and renames the lock over it. Whoever is killed in between leaves the lock,
//! and no git goes on until somebody removes it. Here two files change places in one call, and there never is a lock. What the
//! lock is for is taken care of by looking: nobody may hold it before; what comes out must be what was expected, or it goes back
//! in; and whoever took the lock between two looks is waited for, because it may have looked at the old file, and puts its
//! own over ours. So of two at the same moment git's is the one that stays, and we know of it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// How long a lock of git's is waited for, and how long between two looks.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

/// What became of a file that was to take the place of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    /// It is in its place, and the one before it, if there was one, is where it had been.
    Done,
    /// git holds the lock, and goes on holding it.
    Locked,
    /// What is there is not what was expected; it stays.
    Changed,
    /// It was in its place, and a git that had begun before has put its own there.
    Overtaken,
    /// This file system or this kind of file knows no such exchange; nothing was done.
    Unable,
}

/// Puts the file `new` in the place of `path`, if what is there is as expected by `was`; that is asked of a path at which there
/// may be no file. Both are to be in the same file system, and `new` synced.
pub(super) fn place(new: &Path, path: &Path, was: impl Fn(&Path) -> io::Result<bool>) -> io::Result<Placed> {
    let (lock, ours) = (with_lock(path), identity(new)?);
    if !becomes_free(&lock) {
        return Ok(Placed::Locked);
    }
    let there = match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => return Ok(Placed::Unable),
        found => found.is_ok(),
    };
    if !was(path)? {
        return Ok(Placed::Changed);
    }
    match change_places(new, path, there) {
        Ok(()) if there && !was(new)? => {
            put_back(new, path, ours)?;
            return Ok(Placed::Changed);
        }
        Ok(()) => {}
        // Somebody removed or made it since the look.
        Err(Errno::NOENT | Errno::EXIST) => return Ok(Placed::Changed),
        Err(Errno::INVAL | Errno::NOSYS | Errno::XDEV | Errno::NOTSUP) => return Ok(Placed::Unable),
        Err(error) => return Err(error.into()),
    }
    if !becomes_free(&lock) {
        return Ok(Placed::Locked);
    }
    Ok(if identity(path)? == ours { Placed::Done } else { Placed::Overtaken })
}

fn change_places(new: &Path, path: &Path, there: bool) -> rustix::io::Result<()> {
    let flags = if there { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
    renameat_with(CWD, new, CWD, path, flags)
}

/// Moves the file at `path` to `to`, where nothing may be; says whether there was one.
pub(super) fn take_out(path: &Path, to: &Path) -> io::Result<bool> {
    match change_places(path, to, false) {
        Err(Errno::NOENT) => Ok(false),
        done => Ok(done.map(|()| true)?),
    }
}

/// Puts what came out back in, until what comes out is ours: somebody may just have taken our place.
fn put_back(new: &Path, path: &Path, ours: Option<(u64, u64)>) -> io::Result<()> {
    for _ in 0..100 {
        change_places(new, path, true)?;
        if identity(new)? == ours {
            return Ok(());
        }
    }
    Err(io::Error::other("somebody else goes on changing it"))
}

/// Waits a moment for a lock of git's; says whether it is gone.
pub(super) fn becomes_free(lock: &Path) -> bool {
    let until = Instant::now() + PATIENCE;
    while fs::symlink_metadata(lock).is_ok() {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    true
}

fn identity(path: &Path) -> io::Result<Option<(u64, u64)>> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some((found.dev(), found.ino()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the lock that git guards a file with.
pub(super) fn with_lock(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    struct Files {
        _folder: tempfile::TempDir,
        new: PathBuf,
        path: PathBuf,
    }

    fn files(there: Option<&str>) -> Files {
        let folder = tempfile::tempdir().unwrap();
        let (new, path) = (folder.path().join("new"), folder.path().join("ref"));
        fs::write(&new, "ours").unwrap();
        if let Some(text) = there {
            fs::write(&path, text).unwrap();
        }
        Files { _folder: folder, new, path }
    }

    fn text(path: &Path) -> Option<String> {
        fs::read_to_string(path).ok()
    }

    fn is(expected: Option<&str>) -> impl Fn(&Path) -> io::Result<bool> {
        move |path| Ok(text(path).as_deref() == expected)
    }

    /// Expects the old one; after the first look, and before the exchange, something happens.
    fn old_but_then(happens: impl Fn()) -> impl Fn(&Path) -> io::Result<bool> {
        let looks = Cell::new(0);
        move |seen| {
            let expected = text(seen).as_deref() == Some("old");
            if looks.replace(looks.get() + 1) == 0 {
                happens();
            }
            Ok(expected)
        }
    }

    #[test]
    fn what_was_expected_makes_way_and_comes_out() {
        for there in [Some("old"), None] {
            let Files { new, path, .. } = &files(there);
            assert_eq!(place(new, path, is(there)).unwrap(), Placed::Done);
            assert_eq!((text(path).as_deref(), text(new).as_deref()), (Some("ours"), there));
            assert!(!with_lock(path).exists());
        }
    }

    #[test]
    fn what_was_not_expected_stays() {
        let Files { new, path, .. } = &files(Some("theirs"));
        assert_eq!(place(new, path, is(Some("old"))).unwrap(), Placed::Changed);
        assert_eq!((text(path).as_deref(), text(new).as_deref()), (Some("theirs"), Some("ours")));
        let Files { new, path, .. } = &files(Some("theirs"));
        assert_eq!(place(new, path, is(None)).unwrap(), Placed::Changed);
        assert_eq!(text(path).as_deref(), Some("theirs"));
    }

    #[test]
    fn what_came_a_moment_before_us_goes_back() {
        let Files { new, path, .. } = &files(Some("old"));
        let was = old_but_then(|| fs::write(path, "theirs").unwrap());
        assert_eq!(place(new, path, was).unwrap(), Placed::Changed);
        assert_eq!((text(path).as_deref(), text(new).as_deref()), (Some("theirs"), Some("ours")));
    }

    #[test]
    fn a_git_that_looked_before_us_is_waited_for_and_told_of() {
        let Files { new, path, .. } = &files(Some("old"));
        let was = old_but_then(|| {
            fs::write(with_lock(path), "theirs").unwrap();
            let (lock, path) = (with_lock(path), path.clone());
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(30));
                fs::rename(lock, path).unwrap();
            });
        });
        assert_eq!(place(new, path, was).unwrap(), Placed::Overtaken);
        assert_eq!((text(path).as_deref(), text(new).as_deref()), (Some("theirs"), Some("old")));
    }

    #[test]
    fn nothing_is_done_while_git_holds_the_lock_or_where_there_is_no_file() {
        let Files { new, path, .. } = &files(Some("old"));
        fs::write(with_lock(path), "theirs").unwrap();
        assert_eq!(place(new, path, is(Some("old"))).unwrap(), Placed::Locked);
        assert_eq!(text(path).as_deref(), Some("old"));
        fs::remove_file(with_lock(path)).unwrap();
        fs::remove_file(path).unwrap();
        for make in [|path: &Path| fs::create_dir(path), |path: &Path| std::os::unix::fs::symlink("x", path)]
        {
            make(path).unwrap();
            assert_eq!(place(new, path, |_| Ok(true)).unwrap(), Placed::Unable);
            let _ = fs::remove_dir(path).or_else(|_| fs::remove_file(path));
        }
    }
}
