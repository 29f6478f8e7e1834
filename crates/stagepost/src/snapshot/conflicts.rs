//! Conflicts whose resolution git is to remember (`rerere`): it is told of them in a folder of our own, so that its lock on the list
//! of them stands in nobody's way if it is killed.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::repository::{RefKind, Repository};
use super::{Snapshots, durable};
use crate::bounded;

/// The list of conflicts that somebody is resolving.
const LIST: &str = "MERGE_RR";

/// A copy of the list, in what looks like another work tree of the repository.
#[derive(Debug)]
pub(crate) struct Conflicts {
    folder: PathBuf,
    work_tree: PathBuf,
    list: PathBuf,
    was: Vec<u8>,
}

impl Snapshots {
    /// Copies the list of conflicts, if there are any; what cannot be copied is left to git's next commit.
    pub(crate) fn copy_conflicts(&self) -> Option<Conflicts> {
        let user = self.user.as_ref().filter(|user| user.refs == RefKind::Files)?;
        let list = user.git_dir.join(LIST);
        let was = bounded::read_file(&list).ok().filter(|list| !list.is_empty())?;
        let folder = self.folder.join("conflicts.git");
        make(user, &folder, &was).ok()?;
        Some(Conflicts { folder, work_tree: self.root.clone(), list, was })
    }
}

fn make(user: &Repository, folder: &Path, list: &[u8]) -> io::Result<()> {
    durable::remove_folder(folder)?;
    fs::create_dir_all(folder)?;
    fs::write(folder.join("HEAD"), bounded::read_file(&user.git_dir.join("HEAD"))?)?;
    std::os::unix::fs::symlink(&user.common_dir, folder.join("common"))?;
    fs::write(folder.join("commondir"), "common\n")?;
    fs::write(folder.join(LIST), list)
}

impl Conflicts {
    /// What git is told so that it works here.
    pub(crate) fn variables(&self) -> [(&'static str, &OsStr); 2] {
        [("GIT_DIR", self.folder.as_os_str()), ("GIT_WORK_TREE", self.work_tree.as_os_str())]
    }

    /// Puts what git left of the list in its place, if nobody else has changed it.
    pub(crate) fn take_place(self) {
        let is_same = || bounded::read_file(&self.list).is_ok_and(|list| list == self.was);
        let is_left = || fs::symlink_metadata(self.folder.join(LIST)).is_ok();
        if is_same() && is_left() {
            // Whatever fails here is done by git's next commit.
            let _ = fs::rename(self.folder.join(LIST), &self.list);
        }
        let _ = durable::remove_folder(&self.folder);
    }
}
