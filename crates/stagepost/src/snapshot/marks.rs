//! Marks that an index gives to files and that no tree can hold: to be added later, taken for unchanged, not looked for.

use std::path::PathBuf;

use super::git::{Git, GitError};
use super::index::Index;
use super::repository::{HashKind, Repository};
use crate::model::{IndexMarks, RepoPath};

/// An index file, and how objects are named in it.
pub(super) struct IndexFile {
    path: PathBuf,
    hash: HashKind,
}

impl IndexFile {
    pub(super) fn new(repository: &Repository, path: PathBuf) -> Self {
        Self { path, hash: repository.hash }
    }

    /// Lists the entries that are to be added later, if the file can be read without git.
    fn intended(&self) -> Option<Vec<RepoPath>> {
        (self.hash == HashKind::Sha1)
            .then(|| Index::read(&self.path).ok())
            .flatten()
            .map(|index| index.intended())
    }
}

impl Git {
    /// Reads the marks of the index that git is bound to. Those that a sparse checkout gives are left out: it says which they are,
    /// and there may be very many.
    pub(super) fn index_marks(&self, file: &IndexFile) -> Result<IndexMarks, GitError> {
        let mut marks = self.all_index_marks(file)?;
        if !marks.skip_worktree.is_empty() && self.is_sparse()? {
            marks.skip_worktree.clear();
        }
        Ok(marks)
    }

    /// Reads all marks of the index that git is bound to.
    pub(super) fn all_index_marks(&self, file: &IndexFile) -> Result<IndexMarks, GitError> {
        let mut marks = self.unwatched_marks()?;
        marks.intent_to_add = match file.intended() {
            Some(intended) => intended,
            None => self.intended()?,
        };
        Ok(marks)
    }

    /// Reads the marks of files that git was told not to look at.
    pub(super) fn unwatched_marks(&self) -> Result<IndexMarks, GitError> {
        let mut marks = IndexMarks::default();
        let answer = self.run(&["ls-files", "-z", "-v"], b"")?;
        for line in answer.split(|byte| *byte == 0).filter(|line| line.len() > 2) {
            if line[0].is_ascii_lowercase() {
                marks.assume_unchanged.push(RepoPath::from_bytes(&line[2..]));
            }
            if line[0].eq_ignore_ascii_case(&b'S') {
                marks.skip_worktree.push(RepoPath::from_bytes(&line[2..]));
            }
        }
        Ok(marks)
    }

    /// Lists the entries of an index that are to be added later, as far as git tells: their files must be there.
    fn intended(&self) -> Result<Vec<RepoPath>, GitError> {
        let args = ["diff-files", "-z", "--name-only", "--no-ext-diff", "--diff-filter=A"];
        let answer = self.run(&args, b"")?;
        let paths = answer.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.map(RepoPath::from_bytes).collect())
    }

    /// Says whether the work tree holds a part of the files on purpose.
    pub(super) fn is_sparse(&self) -> Result<bool, GitError> {
        let answer = self.try_run(&["config", "--type=bool", "--get", "core.sparseCheckout"], b"")?;
        Ok(answer.stdout.trim_ascii() == b"true")
    }

    /// Gives a mark to entries of the index, or takes it from them.
    pub(super) fn mark<'a>(
        &self,
        mark: &str,
        paths: impl IntoIterator<Item = &'a RepoPath>,
    ) -> Result<(), GitError> {
        let list: Vec<u8> = paths.into_iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
        if list.is_empty() {
            return Ok(());
        }
        self.run(&["update-index", mark, "-z", "--stdin"], &list).map(drop)
    }
}
