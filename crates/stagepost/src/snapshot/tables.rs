//! Refs that are no files but in tables (reftable): git changes a copy of them, and the copy takes their place.
//!
//! One lock stands for all refs there, and a git that is killed leaves it to everybody. So git is shown a folder of our own with
//! the same tables, the user's objects and configuration, and adds a table there. That is put beside the others, and the new
//! list of tables changes places with the old one ([`exchange`](super::exchange)); tables that git joined with others go. If the
//! list is not what it was when the copy was made, nothing happens, and it is done anew with another copy.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::exchange::Placed;
use super::moving::place;
use super::refs::RefError;
use super::repository::{HashKind, RefKind, Repository};
use super::{Snapshots, durable};
use crate::bounded;

/// The tables of a repository or a work tree, and the list of those that count.
const TABLES: &str = "reftable";
const LIST: &str = "tables.list";

/// How often what others change at the same time is looked at anew.
const ATTEMPTS: usize = 100;

/// A copy of the user's refs that git can change.
#[derive(Debug)]
pub(crate) struct Copy {
    folder: PathBuf,
    git_dir: PathBuf,
    work_tree: PathBuf,
    objects: PathBuf,
    /// Those of the repository first: a branch is there before HEAD names it.
    stacks: Vec<Stack>,
}

/// The tables of a repository, or of a work tree, and their copy.
#[derive(Debug)]
struct Stack {
    theirs: PathBuf,
    copy: PathBuf,
    list: Vec<u8>,
}

/// What became of a copy that was to take the place of the user's refs.
enum Outcome {
    Done,
    Changed,
    Unable,
}

impl Snapshots {
    /// Changes the user's refs with git, in a copy that then takes their place; `None` if they are files, or the file system
    /// cannot have two files change places: nothing was done then. `act` is called again
    /// if others changed a ref meanwhile. Whoever calls holds the lock of the work tree.
    pub(crate) fn change_tables<T, E: From<RefError>>(
        &self,
        mut act: impl FnMut(&Copy) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        let Some(user) = self.user.as_ref().filter(|user| user.refs == RefKind::Reftable) else {
            return Ok(None);
        };
        for _ in 0..ATTEMPTS {
            let copy = match Copy::make(user, &self.root, &self.folder.join("refs.git")) {
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => return Ok(None),
                copy => copy.map_err(failed)?,
            };
            let done = act(&copy)?;
            match copy.take_place(&self.folder.join("moving"))? {
                Outcome::Done => return Ok(Some(done)),
                Outcome::Unable => return Ok(None),
                Outcome::Changed => {}
            }
        }
        Err(RefError::Moved { name: LIST.to_owned(), found: None }.into())
    }
}

impl Copy {
    fn make(user: &Repository, work_tree: &Path, folder: &Path) -> io::Result<Self> {
        durable::remove_folder(folder)?;
        fs::create_dir_all(folder)?;
        let git_dir =
            if user.git_dir == user.common_dir { folder.to_owned() } else { folder.join(&user.worktree) };
        let mut stacks = vec![Stack::copy(&user.common_dir, folder)?];
        fs::write(folder.join("config"), configuration(user))?;
        if git_dir != folder {
            stacks.push(Stack::copy(&user.git_dir, &git_dir)?);
            fs::write(git_dir.join("commondir"), "../..\n")?;
        }
        let objects = user.objects_dir();
        Ok(Self { folder: folder.into(), git_dir, work_tree: work_tree.into(), objects, stacks })
    }

    /// What git is told so that it works here.
    pub(crate) fn variables(&self) -> [(&'static str, &std::ffi::OsStr); 3] {
        [
            ("GIT_DIR", self.git_dir.as_os_str()),
            ("GIT_WORK_TREE", self.work_tree.as_os_str()),
            ("GIT_OBJECT_DIRECTORY", self.objects.as_os_str()),
        ]
    }

    /// Puts what was changed in the place of the user's, unless somebody else has changed anything meanwhile.
    fn take_place(self, beside: &Path) -> Result<Outcome, RefError> {
        for stack in &self.stacks {
            match stack.take_place(beside)? {
                Outcome::Done => {}
                other => return Ok(other),
            }
        }
        durable::remove_folder(&self.folder).map_err(failed)?;
        Ok(Outcome::Done)
    }
}

impl Stack {
    /// Copies the tables of the git folder `from` to the git folder `to`.
    fn copy(from: &Path, to: &Path) -> io::Result<Self> {
        let (theirs, copy) = (from.join(TABLES), to.join(TABLES));
        fs::create_dir_all(&copy)?;
        fs::create_dir_all(to.join("refs"))?;
        fs::write(to.join("HEAD"), "ref: refs/heads/.invalid\n")?;
        fs::write(to.join("refs").join("heads"), "this repository uses the reftable format\n")?;
        for attempt in 1.. {
            let list = bounded::read_file(&theirs.join(LIST))?;
            let linked = names(&list).try_for_each(|name| link(&theirs.join(name), &copy.join(name)));
            match linked {
                Ok(()) => {
                    fs::write(copy.join(LIST), &list)?;
                    return Ok(Self { theirs, copy, list });
                }
                // Somebody has just joined it with others.
                Err(error) if error.kind() == io::ErrorKind::NotFound && attempt < ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("the last attempt returns")
    }

    fn take_place(&self, beside: &Path) -> Result<Outcome, RefError> {
        let list = fs::read(self.copy.join(LIST)).map_err(failed)?;
        if list == self.list {
            return Ok(Outcome::Done);
        }
        let before: Vec<_> = names(&self.list).collect();
        let new: Vec<_> = names(&list).filter(|name| !before.contains(name)).collect();
        for name in &new {
            self.add(name).map_err(failed)?;
        }
        durable::sync_folder(&self.theirs).map_err(failed)?;
        let path = self.theirs.join(LIST);
        let was = |file: &Path| Ok(bounded::read_file(file).ok().as_ref() == Some(&self.list));
        let placed = place(beside, &path, &list, was).map_err(failed)?;
        let now = bounded::read_file(&path).map_err(failed)?;
        let is_listed = |name: &str| names(&now).any(|listed| listed == name);
        let outcome = match placed {
            Placed::Done => Outcome::Done,
            // Somebody may have gone on from where we were. If they have joined ours with others already, it is taken for
            // lost: that fails, and is taken back.
            Placed::Overtaken if new.iter().all(|name| is_listed(name)) => Outcome::Done,
            Placed::Overtaken | Placed::Changed => Outcome::Changed,
            Placed::Unable => Outcome::Unable,
            Placed::Locked => return Err(RefError::Locked { name: LIST.to_owned() }),
        };
        // What git joined with others, or what is not needed after all.
        let left = match outcome {
            Outcome::Done => before,
            _ => new,
        };
        let mut gone = left.into_iter().filter(|name| !is_listed(name));
        gone.try_for_each(|name| durable::remove(&self.theirs.join(name))).map_err(failed)?;
        Ok(outcome)
    }

    /// Puts a new table beside the others, which no list names yet.
    fn add(&self, name: &str) -> io::Result<()> {
        fs::File::open(self.copy.join(name))?.sync_all()?;
        link(&self.copy.join(name), &self.theirs.join(name))
    }
}

/// A table is never changed, so that it may be in both places.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// The names in a list of tables; one that would lead elsewhere is none.
fn names(list: &[u8]) -> impl Iterator<Item = &str> {
    let lines = std::str::from_utf8(list).unwrap_or_default().lines();
    lines.filter(|name| !name.is_empty() && !name.contains('/'))
}

/// The user's configuration, read from where it is.
fn configuration(user: &Repository) -> Vec<u8> {
    let mut text = b"[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefstorage = reftable\n".to_vec();
    if user.hash == HashKind::Sha256 {
        text.extend_from_slice(b"\tobjectformat = sha256\n");
    }
    let (all, own) = (user.common_dir.join("config"), user.git_dir.join("config.worktree"));
    for path in [all, own].into_iter().filter(|path| path.is_file()) {
        text.extend_from_slice(b"[include]\n\tpath = \"");
        for byte in path.as_os_str().as_bytes() {
            match byte {
                b'\n' => text.extend_from_slice(b"\\n"),
                b'"' | b'\\' => text.extend_from_slice(&[b'\\', *byte]),
                _ => text.push(*byte),
            }
        }
        text.extend_from_slice(b"\"\n");
    }
    text
}

fn failed(source: io::Error) -> RefError {
    RefError::Write { name: LIST.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::testing::{self, git};

    fn repository() -> (tempfile::TempDir, Snapshots) {
        testing::repository(&["--ref-format=reftable"])
    }

    fn move_back(snapshots: &Snapshots, mut meanwhile: impl FnMut()) -> Result<Option<()>, RefError> {
        snapshots.change_tables(|copy| {
            let git = snapshots.rules_git.in_copy(copy);
            let identity = [("user.name", "Ada"), ("user.email", "ada@example.org")];
            let git = git.configured(identity.map(|(key, value)| (key.into(), value.into())).to_vec());
            git.run(&["update-ref", "-m", "back", "HEAD", "HEAD~1"], b"")?;
            meanwhile();
            Ok(())
        })
    }

    #[test]
    fn what_git_changes_in_the_copy_takes_the_place_and_nothing_is_left() {
        let (folder, snapshots) = repository();
        let root = folder.path();
        move_back(&snapshots, || assert_eq!(git(root, &["log", "-1", "--format=%s"]), "second"))
            .unwrap()
            .unwrap();
        assert_eq!(git(root, &["log", "-1", "--format=%s"]), "first");
        assert_eq!(git(root, &["log", "-g", "-1", "--format=%gs", "main"]), "back");
        git(root, &["fsck", "--no-dangling"]);
        assert!(!snapshots.folder.join("refs.git").exists() && !snapshots.folder.join("moving").exists());
        git(root, &["pack-refs", "--all"]);
        assert_eq!(git(root, &["log", "-1", "--format=%s"]), "first");
    }

    #[test]
    fn what_others_change_meanwhile_is_kept_and_it_is_done_anew() {
        let (folder, snapshots) = repository();
        let root = folder.path();
        let mut times = 0;
        let others = || {
            times += 1;
            if times == 1 {
                git(root, &["tag", "theirs"]);
            }
        };
        move_back(&snapshots, others).unwrap().unwrap();
        assert_eq!((times, git(root, &["log", "-1", "--format=%s"])), (2, "first".into()));
        assert_eq!(git(root, &["log", "-1", "--format=%s", "theirs"]), "second");
        let listed = fs::read(root.join(".git/reftable/tables.list")).unwrap();
        let there = fs::read_dir(root.join(".git/reftable")).unwrap().count();
        assert_eq!(there, names(&listed).count() + 1, "a table is left that no list names");
    }

    #[test]
    fn tables_do_not_pile_up() {
        let (folder, snapshots) = repository();
        let root = folder.path();
        for number in 0..20 {
            let args = ["update-ref".to_owned(), format!("refs/tags/t{number}"), "HEAD".to_owned()];
            let make =
                |copy: &Copy| snapshots.rules_git.in_copy(copy).run(&args, b"").map_err(RefError::from);
            snapshots.change_tables(make).unwrap().unwrap();
        }
        assert_eq!(git(root, &["tag"]).lines().count(), 20);
        let listed = fs::read(root.join(".git/reftable/tables.list")).unwrap();
        let there = fs::read_dir(root.join(".git/reftable")).unwrap().count();
        assert!(there == names(&listed).count() + 1 && there < 8, "{there} files, {listed:?}");
    }

    #[test]
    fn while_git_holds_the_lock_nothing_changes() {
        let (folder, snapshots) = repository();
        let root = folder.path();
        let lock = root.join(".git/reftable/tables.list.lock");
        let error = move_back(&snapshots, || fs::write(&lock, "").unwrap()).unwrap_err();
        assert!(matches!(error, RefError::Locked { .. }), "{error:?}");
        fs::remove_file(&lock).unwrap();
        assert_eq!(git(root, &["log", "-1", "--format=%s"]), "second");
    }
}
