//! Where a project is: its folder, its store, and the git repository it lives in.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::bounded;
use crate::store::SqliteStore;

/// The folder of a store that is not inside a git repository.
pub const OWN_FOLDER: &str = ".stagepost";

/// Where a project is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The folder whose files are the project.
    pub root: PathBuf,
    /// The folder of the store.
    pub store: PathBuf,
    /// The git repository around it, if there is one.
    pub git: Option<GitPlace>,
}

/// Where a git repository keeps itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitPlace {
    /// The folder of this work tree: `HEAD`, `index`.
    pub dir: PathBuf,
    /// The folder that all work trees share: objects, refs, config.
    pub common_dir: PathBuf,
    /// The name of a linked work tree; `None` for the main one.
    pub worktree: Option<String>,
}

impl Place {
    /// Looks for the project around `start`: the nearest folder upwards that is a git work tree or has a store.
    pub fn find(start: &Path) -> Result<Option<Place>, FindError> {
        let start =
            folder_at(start).map_err(|source| FindError::Folder { path: start.to_owned(), source })?;
        for folder in start.ancestors() {
            let own = folder.join(OWN_FOLDER);
            if is_store(&own) {
                return Ok(Some(Self::without_git(folder)));
            }
            if let Some(git) = GitPlace::at(folder)? {
                let store = git.common_dir.join("stagepost");
                return Ok(Some(Self { root: folder.to_owned(), store, git: Some(git) }));
            }
            if own.is_dir() {
                return Ok(Some(Self::without_git(folder)));
            }
        }
        Ok(None)
    }

    /// The project that `init` would make at `folder` where there is no git repository.
    pub fn without_git(folder: &Path) -> Place {
        Self { root: folder.to_owned(), store: folder.join(OWN_FOLDER), git: None }
    }

    /// Returns the key of this work tree's restores: as snapshots name it.
    pub(super) fn worktree_key(&self) -> String {
        match self.git.as_ref().and_then(|git| git.worktree.as_deref()) {
            Some(name) => format!("worktrees/{name}"),
            None => "main".to_owned(),
        }
    }

    /// Says when this linked work tree was made, which tells it from others that had its name; `None` for the main one.
    pub(super) fn linked_since(&self) -> Option<String> {
        let git = self.git.as_ref().filter(|git| git.worktree.is_some())?;
        // git writes this file once.
        let made = fs::symlink_metadata(git.dir.join("commondir")).ok()?;
        Some(format!("{}.{:09}", made.mtime(), made.mtime_nsec()))
    }

    /// Says whether the store is there. One that may not be looked at is: opening it will say why.
    pub fn has_store(&self) -> bool {
        self.store.join("store.db").try_exists().unwrap_or(true) || self.lost_store().is_some()
    }

    /// Returns how many entries were written to the store, if its database was deleted since.
    pub fn lost_store(&self) -> Option<u64> {
        SqliteStore::deleted_from(&self.store)
    }
}

impl GitPlace {
    /// Reads the `.git` of a folder: a folder of its own, or a file that points at one.
    fn at(folder: &Path) -> Result<Option<GitPlace>, FindError> {
        let dot_git = folder.join(".git");
        let kind = match fs::symlink_metadata(&dot_git) {
            Ok(found) => found.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(FindError::Git { path: dot_git, source }),
        };
        let dir = if kind.is_file() { pointed_at(&dot_git, "gitdir: ")? } else { dot_git.clone() };
        if !dir.join("HEAD").exists() {
            return Ok(None);
        }
        let dir = fs::canonicalize(&dir).map_err(|source| FindError::Git { path: dir, source })?;
        let common = dir.join("commondir");
        if !common.is_file() {
            return Ok(Some(Self { common_dir: dir.clone(), dir, worktree: None }));
        }
        let common_dir = pointed_at(&common, "")?;
        let common_dir =
            fs::canonicalize(&common_dir).map_err(|source| FindError::Git { path: common_dir, source })?;
        let worktree = dir.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Some(Self { dir, common_dir, worktree }))
    }
}

/// Says whether a folder holds a store, or what is left of one. An empty folder of that name in a repository is none. One that may
/// not be looked at is: opening it will say why.
fn is_store(own: &Path) -> bool {
    ["store.db", "head"].iter().any(|name| own.join(name).try_exists().unwrap_or(true))
}

fn folder_at(path: &Path) -> io::Result<PathBuf> {
    let real = fs::canonicalize(path)?;
    if real.is_dir() { Ok(real) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// Reads a path from a file of one line; it is relative to the file's folder.
fn pointed_at(file: &Path, before: &str) -> Result<PathBuf, FindError> {
    let text = bounded::read_file(file).map_err(|source| FindError::Git { path: file.to_owned(), source })?;
    let line = text.strip_prefix(before.as_bytes()).unwrap_or(&text).trim_ascii_end();
    let path: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(line);
    Ok(file.parent().unwrap_or(Path::new("/")).join(path))
}

/// What can go wrong while looking for a project.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// The folder to start from cannot be used.
    #[error("failed to open the folder {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A git repository cannot be read.
    #[error("failed to read the git repository at {}", path.display())]
    Git {
        /// The file or folder that could not be read.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
