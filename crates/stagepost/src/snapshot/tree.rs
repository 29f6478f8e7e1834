//! Trees of git: their entries, as bytes and as values.

use crate::model::ObjectId;

/// What an entry of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryMode {
    /// A file.
    File,
    /// A file that may be executed.
    Executable,
    /// A symbolic link; its blob is where it points.
    Link,
    /// A folder.
    Folder,
    /// A repository of its own, recorded as its commit.
    Submodule,
}

impl EntryMode {
    /// Returns the mode as git writes it in a tree.
    pub fn as_octal(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
            Self::Folder => "40000",
            Self::Submodule => "160000",
        }
    }

    /// Reads a mode of a tree; old trees hold file modes such as `100664`, which git takes for `100644`.
    fn from_octal(text: &[u8]) -> Option<Self> {
        let value = u32::from_str_radix(std::str::from_utf8(text).ok()?, 8).ok()?;
        Some(match value & 0o170_000 {
            0o100_000 if value & 0o100 != 0 => Self::Executable,
            0o100_000 => Self::File,
            0o120_000 => Self::Link,
            0o040_000 => Self::Folder,
            0o160_000 => Self::Submodule,
            _ => return None,
        })
    }
}

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// What it is.
    pub mode: EntryMode,
    /// Its name in the folder: any bytes but `/` and NUL.
    pub name: Vec<u8>,
    /// The blob, tree or commit.
    pub id: ObjectId,
}

/// Reads the bytes of a tree, or returns `None` if they are none.
pub(super) fn parse(mut bytes: &[u8], id_len: usize) -> Option<Vec<TreeEntry>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let space = bytes.iter().position(|byte| *byte == b' ')?;
        let end = space + bytes[space..].iter().position(|byte| *byte == 0)?;
        let id = bytes.get(end + 1..end + 1 + id_len)?;
        let mode = EntryMode::from_octal(&bytes[..space])?;
        entries.push(TreeEntry { mode, name: bytes[space + 1..end].to_vec(), id: ObjectId::from_bytes(id)? });
        bytes = &bytes[end + 1 + id_len..];
    }
    Some(entries)
}

/// Writes the bytes of a tree, sorting its entries.
pub(super) fn compose(entries: &mut [(EntryMode, &[u8], [u8; 20])]) -> Vec<u8> {
    entries.sort_by(|a, b| order((a.1, a.0), (b.1, b.0)));
    let mut bytes = Vec::with_capacity(entries.iter().map(|(_, name, _)| name.len() + 28).sum());
    for (mode, name, id) in entries {
        for part in [mode.as_octal().as_bytes(), b" ", name, b"\0", id] {
            bytes.extend_from_slice(part);
        }
    }
    bytes
}

/// Compares names as git sorts them in a tree: a folder as if its name ended in `/`.
pub(super) fn order(a: (&[u8], EntryMode), b: (&[u8], EntryMode)) -> std::cmp::Ordering {
    let shared = a.0.len().min(b.0.len());
    let next = |(name, mode): (&[u8], EntryMode)| match name.get(shared) {
        Some(byte) => *byte,
        None if mode == EntryMode::Folder => b'/',
        None => 0,
    };
    a.0[..shared].cmp(&b.0[..shared]).then_with(|| next(a).cmp(&next(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    #[test]
    fn folders_sort_as_if_they_ended_in_a_slash() {
        assert_eq!(order((b"a", EntryMode::Folder), (b"a.b", EntryMode::File)), Ordering::Greater);
        assert_eq!(order((b"a", EntryMode::File), (b"a.b", EntryMode::File)), Ordering::Less);
        assert_eq!(order((b"a", EntryMode::Folder), (b"a0", EntryMode::File)), Ordering::Less);
    }

    #[test]
    fn bytes_that_are_no_tree_are_refused() {
        for bad in [&b"100644"[..], b"100644 a", b"100644 a\0short", b"999 a\0aaaaaaaaaaaaaaaaaaaa"] {
            assert!(parse(bad, 20).is_none());
        }
    }
}
