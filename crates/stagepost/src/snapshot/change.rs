//! One path that two trees hold differently.

use serde::{Deserialize, Serialize};

use crate::model::{ObjectId, RepoPath};

/// What a path is in a tree, apart from folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A regular file that may be executed.
    Executable,
    /// A symlink; its content is where it points.
    Link,
    /// Another repository, known by its commit only.
    Submodule,
}

impl FileKind {
    /// The mode as git writes it.
    pub fn mode(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
            Self::Submodule => "160000",
        }
    }

    /// Whether it is a regular file, executable or not.
    pub fn is_regular(self) -> bool {
        matches!(self, Self::File | Self::Executable)
    }
}

/// What a tree holds at a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Version {
    /// What it is.
    pub kind: FileKind,
    /// Its content.
    pub id: ObjectId,
}

/// A path that two trees hold differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path, in both trees.
    pub path: RepoPath,
    /// What the first tree holds there.
    pub before: Option<Version>,
    /// What the second tree holds there.
    pub after: Option<Version>,
}

impl Change {
    /// Whether the path is one of `paths` or lies beneath one; every path is within none at all.
    pub(crate) fn is_within(&self, paths: &[RepoPath]) -> bool {
        paths.is_empty() || paths.iter().any(|folder| self.path.is_within(folder))
    }
}
