//! Which deleted file became which added one. Pure; contents are handed in.
//!
//! Files with the same content are paired first, without looking inside. What is left is compared by how many
//! bytes of lines they share, as git does, when that is few enough pairs to be worth the wait.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use super::beneath::name;

/// The least share of common content, in percent, that makes two files one.
pub(crate) const LEAST_SIMILARITY: u8 = 50;

/// The most pairs that are compared by content.
pub(crate) const MOST_PAIRS: usize = 250_000;

/// A file on one side: its path and the name of its content.
#[derive(Debug, Clone)]
pub(crate) struct Candidate<Id> {
    pub(crate) path: Vec<u8>,
    pub(crate) id: Id,
}

/// A deleted and an added file that are one, by their positions in the lists handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rename {
    pub(crate) deleted: usize,
    pub(crate) added: usize,
    /// In percent.
    pub(crate) similarity: u8,
}

/// Pairs files whose content is the same; among several, those that kept their name go first.
pub(crate) fn exact<Id: Eq + Hash + Clone>(
    deleted: &[Candidate<Id>],
    added: &[Candidate<Id>],
) -> Vec<Rename> {
    let mut by_content: HashMap<&Id, Vec<usize>> = HashMap::new();
    for (position, file) in deleted.iter().enumerate() {
        by_content.entry(&file.id).or_default().push(position);
    }
    let mut pairs = Vec::new();
    let mut paired = vec![false; added.len()];
    for same_name in [true, false] {
        for (position, file) in added.iter().enumerate() {
            let Some(sources) = by_content.get_mut(&file.id).filter(|_| !paired[position]) else { continue };
            let fits = |source: &usize| !same_name || name(&deleted[*source].path) == name(&file.path);
            if let Some(found) = sources.iter().position(fits) {
                pairs.push(Rename { deleted: sources.remove(found), added: position, similarity: 100 });
                paired[position] = true;
            }
        }
    }
    pairs
}

/// Pairs files that share at least [`LEAST_SIMILARITY`] percent, the most similar first.
pub(crate) fn similar(deleted: &[(usize, Fingerprint)], added: &[(usize, Fingerprint)]) -> Vec<Rename> {
    let mut scored = Vec::new();
    for (source, old) in deleted {
        for (target, new) in added {
            if let Some(similarity) = old.similarity(new).filter(|&score| score >= LEAST_SIMILARITY) {
                scored.push(Rename { deleted: *source, added: *target, similarity });
            }
        }
    }
    // equal scores go by position, so that every machine pairs alike
    scored.sort_by_key(|pair| (std::cmp::Reverse(pair.similarity), pair.deleted, pair.added));
    let (mut taken_old, mut taken_new) = (HashSet::new(), HashSet::new());
    scored.retain(|pair| {
        let free = !taken_old.contains(&pair.deleted) && !taken_new.contains(&pair.added);
        free && taken_old.insert(pair.deleted) && taken_new.insert(pair.added)
    });
    scored
}

/// What a file's lines weigh, by their hash: enough to tell how much two files share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    size: u64,
    lines: Vec<(u64, u64)>,
}

impl Fingerprint {
    /// The longest piece that counts as one line, so that files without line ends compare too.
    const LONGEST: usize = 64;

    /// Weighs the lines of a file.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut pieces: Vec<(u64, u64)> = bytes
            .split_inclusive(|&byte| byte == b'\n')
            .flat_map(|line| line.chunks(Self::LONGEST))
            .map(|piece| (hash(piece), piece.len() as u64))
            .collect();
        pieces.sort_unstable();
        pieces.dedup_by(|next, first| {
            next.0 == first.0 && {
                first.1 += next.1;
                true
            }
        });
        Self { size: bytes.len() as u64, lines: pieces }
    }

    /// The share of the larger file that the smaller one holds too, in percent; `None` when their sizes alone rule
    /// out a rename, or one is empty.
    fn similarity(&self, other: &Self) -> Option<u8> {
        let (small, large) = (self.size.min(other.size), self.size.max(other.size));
        if small == 0 || small * 100 < large * u64::from(LEAST_SIMILARITY) {
            return None;
        }
        u8::try_from(self.shared(other) * 100 / large).ok().map(|percent| percent.min(99))
    }

    fn shared(&self, other: &Self) -> u64 {
        let (mut mine, mut theirs, mut shared) =
            (self.lines.iter().peekable(), other.lines.iter().peekable(), 0);
        while let (Some(&&(a, weight_a)), Some(&&(b, weight_b))) = (mine.peek(), theirs.peek()) {
            if a == b {
                shared += weight_a.min(weight_b);
            }
            if a <= b {
                mine.next();
            }
            if b <= a {
                theirs.next();
            }
        }
        shared
    }
}

/// FNV-1a: a clash only makes two files look a little more alike.
fn hash(piece: &[u8]) -> u64 {
    piece
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, id: u32) -> Candidate<u32> {
        Candidate { path: path.into(), id }
    }

    #[test]
    fn the_same_content_is_paired_by_name_first() {
        let deleted = [file("a/one", 1), file("a/two", 1)];
        let added = [file("b/new", 1), file("b/two", 1), file("b/other", 2)];
        let pairs = exact(&deleted, &added);
        assert_eq!(pairs[0], Rename { deleted: 1, added: 1, similarity: 100 });
        assert_eq!(pairs[1], Rename { deleted: 0, added: 0, similarity: 100 });
        assert_eq!(pairs.len(), 2);
    }

    #[test]
    fn an_edited_file_is_still_the_same_file() {
        let old: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let edited = old.replace("line 5", "other 5");
        let print = |text: &str| Fingerprint::of(text.as_bytes());
        let pairs = similar(&[(0, print(&old))], &[(4, print("unrelated\n")), (5, print(&edited))]);
        let [pair] = pairs[..] else { panic!("{pairs:?}") };
        assert!(pair.added == 5 && (80..=95).contains(&pair.similarity), "{pair:?}");
    }

    #[test]
    fn half_different_files_are_two_files() {
        let text = |from: u32| (from..from + 100).map(|n| format!("line {n}\n")).collect::<String>();
        let print = |text: String| Fingerprint::of(text.as_bytes());
        assert!(similar(&[(0, print(text(0)))], &[(0, print(text(60)))]).is_empty());
        assert_eq!(similar(&[(0, print(text(0)))], &[(0, print(text(40)))]).len(), 1);
        assert!(similar(&[(0, print(String::new()))], &[(0, print(String::new()))]).is_empty());
    }
}
