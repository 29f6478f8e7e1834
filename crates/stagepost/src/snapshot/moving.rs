//! Moving HEAD, branches and tags of the user's: durably, told in the reflogs, and without a lock that a kill could leave.
//!
//! Where refs are files, they change places with what was there ([`exchange`]). What that cannot do is left to git, which the
//! caller asks when told so: other kinds of refs, other kinds of files, names that stand in each other's way.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::durable;
use super::exchange::{self, Placed, with_lock};
use super::refs::{RefError, Refs};
use super::repository::{HashKind, RefKind, read_line};
use super::{Snapshots, reference};
use crate::bounded;
use crate::lock::Lock;
use crate::model::ObjectId;

/// How long another of us is waited for, and how often what others change at the same time is looked at anew.
const PATIENCE: Duration = Duration::from_secs(10);
const ATTEMPTS: usize = 100;

/// What a squashed merge or a cherry-pick without a commit leaves for the commit that follows.
const LEFT_OF_A_MERGE: [&str; 4] = ["SQUASH_MSG", "MERGE_MSG", "MERGE_MODE", LEFT_REF];
/// The one among them that is a ref, and may be kept elsewhere.
const LEFT_REF: &str = "AUTO_MERGE";

/// Who moves something, and what the reflogs say of it.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    /// Name, address, seconds and time zone, as in a commit.
    pub(crate) who: String,
    /// Why, in one line.
    pub(crate) message: String,
    /// Reflogs are to be kept, also where there are none yet.
    pub(crate) begins: bool,
}

/// Whether something was moved here, or git has to be asked for it.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    Done,
    NeedsGit,
}

impl Snapshots {
    /// Moves the branch that HEAD names, or HEAD itself where it names none, from `old` to a commit that follows it.
    pub(crate) fn advance(
        &self,
        old: Option<&ObjectId>,
        new: &ObjectId,
        told: &Told,
    ) -> Result<Move, RefError> {
        let (head, branch) = self.user_refs.head()?;
        if head.as_ref() != old {
            return Err(RefError::Moved { name: "HEAD".to_owned(), found: head });
        }
        match (branch, old) {
            (Some(branch), _) => self.move_branch(&reference(&branch), old, new, told),
            (None, Some(old)) => self.move_head_to(old.as_str(), new.as_str(), (Some(old), Some(new)), told),
            (None, None) => Ok(Move::NeedsGit),
        }
    }

    /// Moves the branch that HEAD names.
    pub(super) fn move_branch(
        &self,
        name: &str,
        old: Option<&ObjectId>,
        new: &ObjectId,
        told: &Told,
    ) -> Result<Move, RefError> {
        let refs = &self.user_refs;
        let moved = refs.put(&self.beside(), name, old, new)?;
        if moved == Move::Done {
            refs.tell(name, old, new, told)?;
            refs.tell("HEAD", old, new, told)?;
        }
        Ok(moved)
    }

    /// Takes a branch away. If HEAD names it, HEAD is before the first commit then.
    pub(super) fn take_branch_away(&self, name: &str, old: &ObjectId) -> Result<Move, RefError> {
        self.user_refs.take_away(&self.beside(), name, old)
    }

    /// Makes a branch that HEAD does not name.
    pub(super) fn make_branch(&self, name: &str, new: &ObjectId, told: &Told) -> Result<Move, RefError> {
        let moved = self.put_user_ref(name, None, new)?;
        if moved == Move::Done {
            self.user_refs.tell(name, None, new, told)?;
        }
        Ok(moved)
    }

    /// Changes what HEAD says from `was` to `is`; that takes it from one commit to another.
    pub(super) fn move_head_to(
        &self,
        was: &str,
        is: &str,
        (old, new): (Option<&ObjectId>, Option<&ObjectId>),
        told: &Told,
    ) -> Result<Move, RefError> {
        let moved = self.user_refs.put_head(&self.beside(), was, is)?;
        if let (Move::Done, Some(new)) = (moved, new) {
            self.user_refs.tell("HEAD", old, new, told)?;
        }
        Ok(moved)
    }

    /// Makes a ref of the user's, or has it name something else.
    pub(crate) fn put_user_ref(
        &self,
        name: &str,
        old: Option<&ObjectId>,
        new: &ObjectId,
    ) -> Result<Move, RefError> {
        self.user_refs.put(&self.beside(), name, old, new)
    }

    /// Deletes refs of the user's; those that are not there are deleted already.
    pub(crate) fn delete_user_refs(&self, names: &[String]) -> Result<(), RefError> {
        let lines: String = names.iter().map(|name| format!("delete {name}\0\0")).collect();
        let deleted = self.change_tables(|copy| {
            let git = self.rules_git.in_copy(copy);
            git.run(&["update-ref", "-z", "--stdin"], lines.as_bytes()).map_err(RefError::from)
        });
        if deleted?.is_some() {
            return Ok(());
        }
        self.user_refs.delete(&self.beside_packed(), names)
    }

    /// Says whether the user's refs are in tables.
    pub(crate) fn keeps_tables(&self) -> bool {
        self.user.as_ref().is_some_and(|user| user.refs == RefKind::Reftable)
    }

    /// Returns how many digits the names of objects have.
    pub(crate) fn name_length(&self) -> usize {
        2 * self.user.as_ref().map_or(HashKind::Sha1, |user| user.hash).bytes()
    }

    /// Removes what a merge that made no commit has left for the next one.
    pub(crate) fn put_merge_away(&self) -> Result<(), RefError> {
        let Some(user) = &self.user else { return Ok(()) };
        for name in LEFT_OF_A_MERGE {
            let removed = durable::remove(&user.git_dir.join(name));
            removed.map_err(|source| RefError::Write { name: name.to_owned(), source })?;
        }
        if user.refs != RefKind::Files && self.user_refs.read(LEFT_REF)?.is_some() {
            self.delete_user_refs(&[LEFT_REF.to_owned()])?;
        }
        Ok(())
    }

    /// Where what is to take a place lies before. Whoever moves something holds the lock of the work tree.
    fn beside(&self) -> PathBuf {
        self.folder.join("moving")
    }

    /// Where the file of packed refs lies before it takes its place.
    pub(super) fn beside_packed(&self) -> PathBuf {
        self.folder.join("packed")
    }
}

impl Refs {
    /// Moves a ref from `old` (`None`: not there) to `new`.
    fn put(
        &self,
        beside: &Path,
        name: &str,
        old: Option<&ObjectId>,
        new: &ObjectId,
    ) -> Result<Move, RefError> {
        let path = self.path_of(name);
        if !self.are_files() || (old.is_none() && self.is_in_the_way_of(name)?) || path.is_dir() {
            return Ok(Move::NeedsGit);
        }
        let was = |file: &Path| {
            let found = match read_line(file)? {
                Some(line) => String::from_utf8_lossy(&line).trim().parse().ok(),
                None => self.packed(name).map_err(io::Error::other)?,
            };
            Ok(found.as_ref() == old)
        };
        let placed = self.place(beside, name, new.as_str(), was)?;
        let found = || self.read(name);
        self.judge(name, placed, found, |found| self.follows(found, new))
    }

    /// Changes what HEAD says.
    fn put_head(&self, beside: &Path, was: &str, is: &str) -> Result<Move, RefError> {
        if !self.are_files() {
            return Ok(Move::NeedsGit);
        }
        let said = |file: &Path| {
            let line = read_line(file)?.unwrap_or_default();
            Ok(String::from_utf8_lossy(&line).trim() == was)
        };
        let placed = self.place(beside, "HEAD", is, said)?;
        self.judge("HEAD", placed, || Ok(self.head()?.0), |_| Ok(false))
    }

    /// Writes what a ref is to hold beside it, and has it take its place.
    fn place(
        &self,
        beside: &Path,
        name: &str,
        text: &str,
        was: impl Fn(&Path) -> io::Result<bool>,
    ) -> Result<Placed, RefError> {
        let path = self.path_of(name);
        let made = durable::create_folders(&path, self.folder_of(name));
        let placed = made.and_then(|()| place(beside, &path, format!("{text}\n").as_bytes(), was));
        placed.map_err(|source| RefError::Write { name: name.to_owned(), source })
    }

    /// Takes refs out of the file of packed refs.
    pub(super) fn unpack(&self, beside: &Path, gone: &HashSet<&str>) -> Result<Move, RefError> {
        let path = self.packed_refs();
        let name = || "packed-refs".to_owned();
        let failed = |source| RefError::Write { name: name(), source };
        // Two of us would write the same file beside.
        let lock = Lock::take(&with_lock(beside), PATIENCE);
        let _lock = lock.map_err(|error| failed(io::Error::other(error)))?;
        for _ in 0..ATTEMPTS {
            if !exchange::becomes_free(&with_lock(&path)) {
                return Err(RefError::Locked { name: name() });
            }
            let all = self.read_packed("packed-refs")?;
            let Some(left) = without(&all, gone) else { return Ok(Move::Done) };
            let was = |file: &Path| Ok(bounded::read_file(file).ok().as_ref() == Some(&all));
            match place(beside, &path, &left, was).map_err(failed)? {
                Placed::Done => return Ok(Move::Done),
                Placed::Unable => return Ok(Move::NeedsGit),
                Placed::Locked => return Err(RefError::Locked { name: name() }),
                // Somebody packed or deleted others meanwhile.
                Placed::Changed | Placed::Overtaken => {}
            }
        }
        Err(RefError::Moved { name: name(), found: None })
    }

    /// Takes a branch away that is at `old`, as if it had never been.
    fn take_away(&self, beside: &Path, name: &str, old: &ObjectId) -> Result<Move, RefError> {
        let path = self.path_of(name);
        if !self.are_files() || path.is_dir() {
            return Ok(Move::NeedsGit);
        }
        let moved = |found| RefError::Moved { name: name.to_owned(), found };
        let failed = |source| RefError::Write { name: name.to_owned(), source };
        if !exchange::becomes_free(&with_lock(&path)) {
            return Err(RefError::Locked { name: name.to_owned() });
        }
        let found = self.read(name)?;
        if found.as_ref() != Some(old) {
            return Err(moved(found));
        }
        if self.unpack(&beside.with_file_name("packed"), &HashSet::from([name]))? == Move::NeedsGit {
            return Ok(Move::NeedsGit);
        }
        durable::remove(beside).map_err(failed)?;
        // It may have been packed only.
        if exchange::take_out(&path, beside).map_err(failed)? {
            let line = read_line(beside).map_err(failed)?.unwrap_or_default();
            let was: Option<ObjectId> = String::from_utf8_lossy(&line).trim().parse().ok();
            if was.as_ref() != Some(old) {
                exchange::take_out(beside, &path).map_err(failed)?;
                return Err(moved(was));
            }
            durable::remove(beside).map_err(failed)?;
            path.parent().map_or(Ok(()), durable::sync_folder).map_err(failed)?;
        }
        // Whoever looked before may put its own there.
        exchange::becomes_free(&with_lock(&path));
        match self.read(name)? {
            None => {
                durable::remove(&self.folder_of(name).join("logs").join(name)).map_err(failed)?;
                Ok(Move::Done)
            }
            found => Err(moved(found)),
        }
    }

    fn judge(
        &self,
        name: &str,
        placed: Placed,
        found: impl FnOnce() -> Result<Option<ObjectId>, RefError>,
        follows: impl FnOnce(&ObjectId) -> Result<bool, RefError>,
    ) -> Result<Move, RefError> {
        let name = name.to_owned();
        match placed {
            Placed::Done => Ok(Move::Done),
            Placed::Unable => Ok(Move::NeedsGit),
            Placed::Locked => Err(RefError::Locked { name }),
            Placed::Changed => Err(RefError::Moved { name, found: found()? }),
            // Somebody may have gone on from where we had just moved it to.
            Placed::Overtaken => match found()? {
                Some(id) if follows(&id)? => Ok(Move::Done),
                found => Err(RefError::Moved { name, found }),
            },
        }
    }

    /// Adds a line to the reflog of a ref, as git does: where there is one, or where there are to be some.
    fn tell(&self, name: &str, old: Option<&ObjectId>, new: &ObjectId, told: &Told) -> Result<(), RefError> {
        let logs = self.folder_of(name).join("logs");
        let (path, begins) = (logs.join(name), told.begins || self.path_of("logs/HEAD").is_file());
        let zero = "0".repeat(new.as_str().len());
        let (old, message) = (old.map_or(zero.as_str(), ObjectId::as_str), told.message.replace('\n', " "));
        let line = format!("{old} {new} {}\t{message}\n", told.who);
        let told = (|| {
            if begins {
                fs::create_dir_all(path.parent().unwrap_or(&logs))?;
            }
            match OpenOptions::new().append(true).create(begins).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && !begins => Ok(()),
                file => file?.write_all(line.as_bytes()),
            }
        })();
        told.map_err(|source| RefError::Write { name: format!("logs/{name}"), source })
    }
}

/// Writes a file beside, synced, and has it take the place of `path` if what is there is as expected.
pub(super) fn place(
    beside: &Path,
    path: &Path,
    bytes: &[u8],
    was: impl Fn(&Path) -> io::Result<bool>,
) -> io::Result<Placed> {
    let folder = path.parent().unwrap_or(path);
    durable::remove(beside)?;
    let mode = durable::mode_below(folder, 0o644);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    let placed = exchange::place(beside, path, was);
    durable::remove(beside)?;
    if matches!(placed, Ok(Placed::Done)) {
        durable::sync_folder(folder)?;
    }
    placed
}

/// Returns a file of packed refs without some of them, and without what it says of where these lead; `None` if none was there.
fn without(packed: &[u8], gone: &HashSet<&str>) -> Option<Vec<u8>> {
    let mut left = Vec::with_capacity(packed.len());
    let mut skips = false;
    for line in packed.split_inclusive(|byte| *byte == b'\n') {
        if !line.starts_with(b"^") {
            let name = line.splitn(2, |byte| *byte == b' ').nth(1).map(<[u8]>::trim_ascii_end);
            let name = name.and_then(|name| std::str::from_utf8(name).ok());
            skips = !line.starts_with(b"#") && name.is_some_and(|name| gone.contains(name));
        }
        if !skips {
            left.extend_from_slice(line);
        }
    }
    (left.len() < packed.len()).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::testing::{self, git};

    fn repository() -> (tempfile::TempDir, Snapshots) {
        testing::repository(&[])
    }

    fn told(message: &str) -> Told {
        Told { who: "Ada <ada@example.org> 1700000000 +0100".into(), message: message.into(), begins: false }
    }

    fn id(root: &Path, name: &str) -> ObjectId {
        git(root, &["rev-parse", name]).parse().unwrap()
    }

    fn two_commits(packed: bool) -> (tempfile::TempDir, Snapshots, ObjectId, ObjectId) {
        let (folder, snapshots) = repository();
        let root = folder.path();
        if packed {
            git(root, &["pack-refs", "--all", "--prune"]);
        }
        let (first, second) = (id(root, "HEAD~1"), id(root, "HEAD"));
        (folder, snapshots, first, second)
    }

    #[test]
    fn git_sees_a_branch_that_was_moved_and_why_loose_or_packed() {
        for packed in [false, true] {
            let (folder, snapshots, first, second) = two_commits(packed);
            let root = folder.path();
            let moved =
                snapshots.move_branch("refs/heads/main", Some(&second), &first, &told("back")).unwrap();
            assert_eq!((moved, id(root, "main")), (Move::Done, first));
            for log in ["HEAD", "main"] {
                assert_eq!(git(root, &["log", "-g", "-1", "--format=%gs by %gn", log]), "back by Ada");
                assert_eq!(id(root, &format!("{log}@{{1}}")), second);
            }
            assert_eq!(git(root, &["fsck", "--no-dangling"]), "");
            assert!(!snapshots.beside().exists());
        }
    }

    #[test]
    fn a_branch_that_is_elsewhere_stays_and_so_does_one_that_git_is_at() {
        let (folder, snapshots) = repository();
        let root = folder.path();
        let (first, second) = (id(root, "HEAD~1"), id(root, "HEAD"));
        let error = snapshots.move_branch("refs/heads/main", Some(&first), &second, &told("x")).unwrap_err();
        assert!(
            matches!(&error, RefError::Moved { found: Some(found), .. } if *found == second),
            "{error:?}"
        );
        fs::write(root.join(".git/refs/heads/main.lock"), "").unwrap();
        let error = snapshots.move_branch("refs/heads/main", Some(&second), &first, &told("x")).unwrap_err();
        assert!(matches!(error, RefError::Locked { .. }), "{error:?}");
        assert_eq!(id(root, "main"), second);
    }

    #[test]
    fn head_goes_to_a_commit_and_back_to_a_branch() {
        let (folder, snapshots) = repository();
        let root = folder.path();
        let (first, second) = (id(root, "HEAD~1"), id(root, "HEAD"));
        let branch = "ref: refs/heads/main";
        let moved = snapshots
            .move_head_to(branch, first.as_str(), (Some(&second), Some(&first)), &told("away"))
            .unwrap();
        assert_eq!((moved, git(root, &["branch", "--show-current"])), (Move::Done, String::new()));
        assert_eq!((id(root, "HEAD"), id(root, "main")), (first.clone(), second.clone()));
        let moved = snapshots
            .move_head_to(first.as_str(), branch, (Some(&first), Some(&second)), &told("home"))
            .unwrap();
        assert_eq!((moved, git(root, &["branch", "--show-current"])), (Move::Done, "main".into()));
        assert_eq!(git(root, &["log", "-g", "-2", "--format=%gs", "HEAD"]), "home\naway");
    }

    #[test]
    fn names_that_stand_in_each_others_way_are_left_to_git() {
        let (folder, snapshots) = repository();
        let root = folder.path();
        let head = id(root, "HEAD");
        git(root, &["branch", "a/b"]);
        git(root, &["pack-refs", "--all", "--prune"]);
        for name in ["refs/heads/a", "refs/heads/a/b/c"] {
            assert_eq!(snapshots.put_user_ref(name, None, &head).unwrap(), Move::NeedsGit, "{name}");
        }
        assert_eq!(snapshots.put_user_ref("refs/heads/a/c", None, &head).unwrap(), Move::Done);
        assert_eq!(git(root, &["for-each-ref", "--format=%(refname)", "refs/heads/a"]).lines().count(), 2);
    }

    #[test]
    fn a_ref_that_git_packs_at_the_same_moment_is_deleted_all_the_same() {
        let (folder, snapshots) = repository();
        let root = folder.path();
        git(root, &["tag", "loose"]);
        git(root, &["tag", "packed"]);
        let packed = root.join(".git/packed-refs");
        let (lock, head) = (exchange::with_lock(&packed), id(root, "HEAD"));
        fs::write(&lock, format!("# pack-refs with: peeled fully-peeled sorted \n{head} refs/tags/loose\n"))
            .unwrap();
        let packing = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(30));
            fs::rename(lock, packed).unwrap();
        });
        snapshots.delete_user_refs(&["refs/tags/loose".into()]).unwrap();
        packing.join().unwrap();
        assert_eq!(git(root, &["tag", "-l"]), "packed");
    }

    #[test]
    fn refs_that_are_packed_are_deleted_with_what_is_said_of_them_and_no_other_is() {
        let (folder, snapshots) = repository();
        let root = folder.path();
        for name in ["a", "gone", "z"] {
            git(root, &["tag", "-a", name, "-m", name]);
        }
        git(root, &["pack-refs", "--all", "--prune"]);
        // Newer than what is packed, which must not come back.
        git(root, &["tag", "-f", "-a", "gone", "-m", "again", "HEAD~1"]);
        fs::write(root.join(".git/refs/tags/z.lock"), "").unwrap();
        snapshots.delete_user_refs(&["refs/tags/gone".into(), "refs/tags/never".into()]).unwrap();
        assert_eq!(git(root, &["tag", "-l"]), "a\nz");
        assert_eq!(id(root, "a^{commit}"), id(root, "HEAD"));
        git(root, &["fsck", "--no-dangling"]);
        let packed = fs::read_to_string(root.join(".git/packed-refs")).unwrap();
        assert_eq!(packed.lines().filter(|line| line.starts_with('^')).count(), 2, "{packed}");
        assert!(!snapshots.beside_packed().exists());
    }

    #[test]
    fn packed_refs_wait_for_git_and_then_stay_as_they_are() {
        let (folder, snapshots) = repository();
        let root = folder.path();
        git(root, &["tag", "gone"]);
        git(root, &["pack-refs", "--all", "--prune"]);
        fs::write(root.join(".git/packed-refs.lock"), "").unwrap();
        let error = snapshots.delete_user_refs(&["refs/tags/gone".into()]).unwrap_err();
        assert!(matches!(error, RefError::Locked { .. }), "{error:?}");
        fs::remove_file(root.join(".git/packed-refs.lock")).unwrap();
        assert_eq!(git(root, &["tag", "-l"]), "gone");
    }

    #[test]
    fn a_branch_is_taken_away_where_it_is_expected_loose_or_packed() {
        for packed in [false, true] {
            let (folder, snapshots, first, second) = two_commits(packed);
            let root = folder.path();
            let error = snapshots.take_branch_away("refs/heads/main", &first).unwrap_err();
            assert!(matches!(error, RefError::Moved { .. }), "{error:?}");
            assert_eq!(id(root, "main"), second);
            assert_eq!(snapshots.take_branch_away("refs/heads/main", &second).unwrap(), Move::Done);
            assert_eq!(git(root, &["branch", "--list"]), "");
            assert_eq!(git(root, &["status", "--porcelain", "--branch"]), "## No commits yet on main");
            git(root, &["commit", "-q", "--allow-empty", "-m", "anew"]);
        }
    }
}
