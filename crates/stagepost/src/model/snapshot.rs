//! What a snapshot says about itself: the names of its git objects and what it could not hold.
//!
//! These values are part of the sealed record, so they are deterministic: no floats, no maps without order,
//! and what is empty is left out. The content lives in git; nothing here reads it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Names a git object: 40 (SHA-1) or 64 (SHA-256) lowercase hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(Box<str>);

impl ObjectId {
    /// Names the object with this digest, or returns `None` unless it has 20 or 32 bytes.
    pub fn from_bytes(digest: &[u8]) -> Option<Self> {
        matches!(digest.len(), 20 | 32).then(|| {
            // Trees are full of these: one allocation, and no character by character.
            let hex = digest
                .iter()
                .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
            let mut text = Vec::with_capacity(2 * digest.len());
            text.extend(hex);
            Self(String::from_utf8(text).expect("hexadecimal digits are text").into())
        })
    }

    /// Returns the digest: 20 or 32 bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let value = |digit: u8| if digit <= b'9' { digit - b'0' } else { digit - b'a' + 10 };
        self.0.as_bytes().chunks_exact(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
    }

    /// Returns the name as hexadecimal text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl FromStr for ObjectId {
    type Err = InvalidObjectId;

    fn from_str(text: &str) -> Result<Self, InvalidObjectId> {
        let hex = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
        if matches!(text.len(), 40 | 64) && text.bytes().all(hex) {
            return Ok(Self(text.into()));
        }
        Err(InvalidObjectId { text: text.chars().take(80).collect() })
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ObjectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ObjectId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The error for text that names no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not the name of a git object", text.escape_debug())]
pub struct InvalidObjectId {
    text: String,
}

/// A path in a work tree: bytes, relative to its root, parts separated by `/`.
///
/// Any bytes may be in it, because git accepts any; whoever writes to disk asks [`RepoPath::is_safe`] first.
/// As text (display, JSON) a backslash becomes `\\` and a byte that is no UTF-8 becomes `\xNN`; every other path
/// is its own text, and reading the text back gives the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(Vec<u8>);

impl RepoPath {
    /// Wraps the bytes of a path as they are.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the parts between the slashes.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/')
    }

    /// Says whether this is `folder` itself or lies beneath it.
    pub fn is_within(&self, folder: &RepoPath) -> bool {
        match self.0.strip_prefix(folder.as_bytes()) {
            Some(rest) => rest.is_empty() || rest[0] == b'/' || folder.0.is_empty(),
            None => false,
        }
    }

    /// Says whether the path can only mean a place inside the work tree and outside the repository's own
    /// folder, on every file system: no empty part, `.`, `..` or NUL, and no part that some file system takes
    /// for `.git` (`.GIT`, `.git.`, `git~1`, `.g\u{200c}it`).
    pub fn is_safe(&self) -> bool {
        !self.0.contains(&0) && self.parts().all(is_safe_part)
    }

    /// Reads the text that [`fmt::Display`] writes.
    fn unescape(text: &str) -> Option<Self> {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let [first, tail @ ..] = rest {
            (rest, _) = match (first, tail) {
                (b'\\', [b'\\', tail @ ..]) => (tail, bytes.push(b'\\')),
                (b'\\', [b'x', high, low, tail @ ..]) => {
                    let digits = [*high, *low];
                    let value = u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?;
                    (tail, bytes.push(value))
                }
                (b'\\', _) => return None,
                (other, tail) => (tail, bytes.push(*other)),
            };
        }
        Some(Self(bytes))
    }
}

fn is_safe_part(part: &[u8]) -> bool {
    // NTFS ends a name at `:` and drops trailing dots and spaces; HFS+ ignores some invisible characters.
    let name = part.split(|byte| *byte == b':').next().unwrap_or(part);
    let text: String = String::from_utf8_lossy(name).chars().filter(|c| !is_ignored_by_hfs(*c)).collect();
    let text = text.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    let is_git = |piece: &[u8]| piece.eq_ignore_ascii_case(b".git");
    let unsafe_here = part.is_empty() || part == b"." || part == b".." || text == ".git" || text == "git~1";
    !(unsafe_here || part.split(|byte| *byte == b'\\').any(is_git))
}

fn is_ignored_by_hfs(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

impl From<&str> for RepoPath {
    /// Takes the text as bytes, without any escapes.
    fn from(path: &str) -> Self {
        Self(path.as_bytes().to_vec())
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            f.write_str(&chunk.valid().replace('\\', "\\\\"))?;
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl Serialize for RepoPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RepoPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::unescape(&text).ok_or_else(|| serde::de::Error::custom(format!("`{text}` is no escaped path")))
    }
}

/// The files of a work tree as they were: names of git objects, and what could not be held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// The commit, shaped like a stash: its tree is the work tree, its parents are HEAD (if any) and a commit of
    /// the index (if the index could be written as a tree).
    pub commit: ObjectId,
    /// The tree of the work tree, untracked files included.
    pub tree: ObjectId,
    /// The tree of the index; absent in a folder without git and while the index has conflicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_tree: Option<ObjectId>,
    /// What the index says of files and no tree can hold.
    #[serde(default, skip_serializing_if = "IndexMarks::is_empty")]
    pub marks: IndexMarks,
    /// The commit that HEAD named; absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<ObjectId>,
    /// The branch that HEAD named, without `refs/heads/`; absent when detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The work tree it was taken of: `main`, or `worktrees/<name>` for a linked one.
    pub worktree: String,
    /// How many files it holds, and how they differ from HEAD.
    pub files: FileCounts,
    /// What it does not hold although git would have added it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// Ignored files that it holds because someone asked for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub included: Vec<RepoPath>,
    /// What a reader should know, such as a filter that was not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What an index says of files beside their content: marks that no tree can hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexMarks {
    /// Files that are to be added later (`git add -N`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intent_to_add: Vec<RepoPath>,
    /// Files that git takes for unchanged (`git update-index --assume-unchanged`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assume_unchanged: Vec<RepoPath>,
    /// Files that git does not look for (`git update-index --skip-worktree`). Where a sparse checkout says which those are, there
    /// is nothing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip_worktree: Vec<RepoPath>,
}

impl IndexMarks {
    /// Says whether there is no mark.
    pub fn is_empty(&self) -> bool {
        self.intent_to_add.is_empty() && self.assume_unchanged.is_empty() && self.skip_worktree.is_empty()
    }
}

/// Counts of files: in the snapshot, and by how they differ from HEAD.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileCounts {
    /// Files in the snapshot; links and submodules count as files.
    pub total: u64,
    /// Files that HEAD does not have.
    pub added: u64,
    /// Files whose content or mode HEAD has differently.
    pub modified: u64,
    /// Files that only HEAD has.
    pub deleted: u64,
}

/// A file that the snapshot does not hold. Nothing may delete or overwrite it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Where it is.
    pub path: RepoPath,
    /// How many bytes it had.
    pub size: u64,
    /// Why it was left out.
    pub reason: SkipReason,
}

/// Says why a file was left out of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SkipReason {
    /// It is larger than the limit for one file.
    TooLarge,
    /// It could not be read.
    Unreadable,
    /// It is a socket, a pipe or a device.
    Special,
    /// It is a repository of its own without a commit that could be recorded.
    NestedUnborn,
    /// git holds no file of this name, such as `.GIT/x`.
    InvalidName,
    /// Its name says that it holds a secret, git does not track it, and it was not asked for.
    Secret,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_ids_are_lowercase_hex_of_a_known_length() {
        let text = "89abcdef0123456789abcdef0123456789abcdef";
        let id: ObjectId = text.parse().unwrap();
        assert_eq!(ObjectId::from_bytes(&id.to_bytes()).unwrap().as_str(), text);
        for bad in ["", "89ab", &text.to_uppercase(), &text.replace('f', "g"), &text.repeat(2)] {
            assert!(bad.parse::<ObjectId>().is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn paths_survive_json_whatever_their_bytes() {
        for bytes in
            [&b"a/b c"[..], b"new\nline", b"back\\slash", b"\\x41", b"\xff\xfe/\xc3\xa9", b"", b"\xc3"]
        {
            let path = RepoPath::from_bytes(bytes);
            let json = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<RepoPath>(&json).unwrap(), path, "{json}");
        }
        assert!(serde_json::from_str::<RepoPath>(r#""a\\b""#).is_err());
    }

    #[test]
    fn paths_that_could_leave_the_work_tree_are_not_safe() {
        let bad =
            ["", "/a", "a/", "a//b", ".", "a/../b", ".git/x", "a/.GIT/x", ".git./x", "git~1", "a\\.git\\x"];
        for bad in bad.iter().chain(&[".git::$INDEX/x", ".g\u{200c}it/x", "a\0b", ".git "]) {
            assert!(!RepoPath::from(*bad).is_safe(), "{bad:?} was called safe");
        }
        for good in ["a", ".gitignore", ".github/x", "a.git", "x/.gitmodules", "a b", "..a", "git"] {
            assert!(RepoPath::from(good).is_safe(), "{good:?} was called unsafe");
        }
    }

    #[test]
    fn what_is_empty_is_left_out_of_the_record() {
        let id: ObjectId = "89abcdef0123456789abcdef0123456789abcdef".parse().unwrap();
        let snapshot = Snapshot {
            commit: id.clone(),
            tree: id,
            index_tree: None,
            marks: IndexMarks::default(),
            head: None,
            branch: None,
            worktree: "main".into(),
            files: FileCounts::default(),
            skipped: vec![],
            included: vec![],
            notes: vec![],
        };
        let json = serde_json::to_value(&snapshot).unwrap();
        assert_eq!(json.as_object().unwrap().len(), 4, "{json}");
        assert_eq!(serde_json::from_value::<Snapshot>(json).unwrap(), snapshot);
    }
}
