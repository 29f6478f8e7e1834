//! Two texts compared line by line. Pure; knows no files.

use std::collections::HashMap;
use std::ops::Range;

use serde::{Serialize, Serializer};
use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

/// A stretch of changed lines with the unchanged lines around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hunk {
    /// The first line of the old text, counted from 1; 0 when the hunk has none.
    pub old_start: usize,
    /// How many lines of the old text it covers.
    pub old_lines: usize,
    /// The first line of the new text, counted from 1; 0 when the hunk has none.
    pub new_start: usize,
    /// How many lines of the new text it covers.
    pub new_lines: usize,
    /// The lines, in the order to show them.
    pub lines: Vec<Line>,
}

/// One line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// What happened to it.
    pub kind: LineKind,
    /// The line without its end.
    pub text: Text,
    /// Whether the file ends here without a line end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_newline: bool,
}

/// What happened to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// In both texts.
    Context,
    /// Only in the new text.
    Added,
    /// Only in the old text.
    Deleted,
}

/// Bytes that are most likely text; shown with replacement characters where they are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(Vec<u8>);

impl Text {
    /// The bytes as they are in the file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(&self.0))
    }
}

/// How many lines came and went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Lines only in the new text.
    pub added: usize,
    /// Lines only in the old text.
    pub deleted: usize,
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { added: self.added + other.added, deleted: self.deleted + other.deleted }
    }
}

/// Two texts, compared.
pub(crate) struct Comparison<'a> {
    old: Vec<&'a [u8]>,
    new: Vec<&'a [u8]>,
    changes: Vec<DiffOp>,
}

impl<'a> Comparison<'a> {
    /// Compares two texts.
    pub(crate) fn of(old: &'a [u8], new: &'a [u8]) -> Self {
        let (old, new) = (split_lines(old), split_lines(new));
        let changes = compare(&old, &new);
        Self { old, new, changes }
    }

    /// How many lines came and went.
    pub(crate) fn counts(&self) -> Counts {
        self.changes.iter().fold(Counts::default(), |sum, change| {
            let (deleted, added) = match change {
                DiffOp::Equal { .. } => (0, 0),
                other => (other.old_range().len(), other.new_range().len()),
            };
            sum + Counts { added, deleted }
        })
    }

    /// The changes, with `context` unchanged lines around each.
    pub(crate) fn hunks(&self, context: usize) -> Vec<Hunk> {
        let groups = group_diff_ops(self.changes.clone(), context);
        groups.iter().filter(|group| !group.is_empty()).map(|group| self.hunk(group)).collect()
    }

    fn hunk(&self, group: &[DiffOp]) -> Hunk {
        let span = |range: fn(&DiffOp) -> Range<usize>| {
            let first = group.first().map_or(0, |op| range(op).start);
            let last = group.last().map_or(0, |op| range(op).end);
            // a side without lines is named by the line before it, as git does
            (if last > first { first + 1 } else { first }, last - first)
        };
        let (old_start, old_lines) = span(DiffOp::old_range);
        let (new_start, new_lines) = span(DiffOp::new_range);
        let lines = group.iter().flat_map(|op| self.lines(op)).collect();
        Hunk { old_start, old_lines, new_start, new_lines, lines }
    }

    fn lines(&self, op: &DiffOp) -> Vec<Line> {
        if let DiffOp::Equal { .. } = op {
            return self.old[op.old_range()].iter().map(|text| line(LineKind::Context, text)).collect();
        }
        let deleted = self.old[op.old_range()].iter().map(|text| line(LineKind::Deleted, text));
        let added = self.new[op.new_range()].iter().map(|text| line(LineKind::Added, text));
        deleted.chain(added).collect()
    }
}

fn line(kind: LineKind, text: &[u8]) -> Line {
    let (text, no_newline) = match text.strip_suffix(b"\n") {
        Some(text) => (text, false),
        None => (text, true),
    };
    Line { kind, text: Text(text.to_vec()), no_newline }
}

fn split_lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').collect()
}

/// Compares lines by number instead of by content: each distinct line is hashed once, and only where the texts
/// differ, which is what makes a one-line change in a large file cheap.
fn compare<'a>(old: &[&'a [u8]], new: &[&'a [u8]]) -> Vec<DiffOp> {
    let prefix = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let suffix =
        old[prefix..].iter().rev().zip(new[prefix..].iter().rev()).take_while(|(a, b)| a == b).count();
    let mut numbers = HashMap::new();
    let old_middle = numbered(&mut numbers, &old[prefix..old.len() - suffix]);
    let new_middle = numbered(&mut numbers, &new[prefix..new.len() - suffix]);
    let middle = capture_diff_slices(Algorithm::Myers, &old_middle, &new_middle);
    let ends = (old.len() - suffix, new.len() - suffix);
    stitched(prefix, middle, suffix, ends)
}

fn numbered<'a>(numbers: &mut HashMap<&'a [u8], usize>, lines: &[&'a [u8]]) -> Vec<usize> {
    let mut number_of = |line| {
        let next = numbers.len();
        *numbers.entry(line).or_insert(next)
    };
    lines.iter().map(|&line| number_of(line)).collect()
}

/// Puts the equal ends back around the compared middle; neighbouring equal stretches become one, because grouping
/// counts context within a single stretch.
fn stitched(prefix: usize, middle: Vec<DiffOp>, suffix: usize, ends: (usize, usize)) -> Vec<DiffOp> {
    let mut all = Vec::with_capacity(middle.len() + 2);
    push(&mut all, DiffOp::Equal { old_index: 0, new_index: 0, len: prefix });
    for op in middle {
        push(&mut all, shifted(op, prefix));
    }
    push(&mut all, DiffOp::Equal { old_index: ends.0, new_index: ends.1, len: suffix });
    all
}

fn push(all: &mut Vec<DiffOp>, op: DiffOp) {
    match (all.last_mut(), op) {
        (_, DiffOp::Equal { len: 0, .. }) => {}
        (Some(DiffOp::Equal { len: before, .. }), DiffOp::Equal { len, .. }) => *before += len,
        _ => all.push(op),
    }
}

fn shifted(op: DiffOp, by: usize) -> DiffOp {
    match op {
        DiffOp::Equal { old_index, new_index, len } => {
            DiffOp::Equal { old_index: old_index + by, new_index: new_index + by, len }
        }
        DiffOp::Delete { old_index, old_len, new_index } => {
            DiffOp::Delete { old_index: old_index + by, old_len, new_index: new_index + by }
        }
        DiffOp::Insert { old_index, new_index, new_len } => {
            DiffOp::Insert { old_index: old_index + by, new_index: new_index + by, new_len }
        }
        DiffOp::Replace { old_index, old_len, new_index, new_len } => {
            DiffOp::Replace { old_index: old_index + by, old_len, new_index: new_index + by, new_len }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies hunks to the old text, as `patch` would.
    fn patched(old: &[u8], hunks: &[Hunk]) -> Vec<u8> {
        let lines = split_lines(old);
        let (mut result, mut next) = (Vec::new(), 0);
        for hunk in hunks {
            let first = if hunk.old_lines == 0 { hunk.old_start } else { hunk.old_start - 1 };
            result.extend(lines[next..first].concat());
            for line in hunk.lines.iter().filter(|line| line.kind != LineKind::Deleted) {
                result.extend_from_slice(line.text.as_bytes());
                result.extend_from_slice(if line.no_newline { b"" } else { b"\n" });
            }
            next = first + hunk.old_lines;
        }
        result.extend(lines[next..].concat());
        result
    }

    #[test]
    fn hunks_turn_the_old_text_into_the_new() {
        let mut seed = 7u32;
        let mut text = |count: u32| -> Vec<u8> {
            let lines = (0..count).map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                format!("line {}\n", (seed >> 16) % 9)
            });
            lines.collect::<String>().into_bytes()
        };
        for round in 0..200 {
            let (old, mut new) = (text(round % 40), text(round % 37));
            if round % 3 == 0 {
                new.pop();
            }
            for context in [0, 1, 3] {
                let comparison = Comparison::of(&old, &new);
                assert_eq!(patched(&old, &comparison.hunks(context)), new, "round {round} context {context}");
            }
        }
    }

    #[test]
    fn a_change_is_shown_with_three_lines_around_it() {
        let old: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let new = old.replace("10\n", "ten\n");
        let hunks = Comparison::of(old.as_bytes(), new.as_bytes()).hunks(3);
        let [hunk] = &hunks[..] else { panic!("{hunks:?}") };
        assert_eq!((hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines), (7, 7, 7, 7));
        assert_eq!(hunk.lines.len(), 8);
    }

    #[test]
    fn a_missing_last_line_end_is_a_change() {
        let comparison = Comparison::of(b"a\nb\n", b"a\nb");
        assert_eq!(comparison.counts(), Counts { added: 1, deleted: 1 });
        assert!(comparison.hunks(3)[0].lines.last().unwrap().no_newline);
    }

    #[test]
    fn large_texts_are_compared_to_the_end() {
        let line = |n: u32| format!("{:x} some words\n", n.wrapping_mul(2_654_435_761));
        let old: String = (0..100_000).map(line).collect();
        let edited = old.replace("000 some", "000 other");
        let disjoint: String = (200_000..300_000).map(line).collect();
        // A way that takes the square of the lines would not come back from either.
        let edits = Comparison::of(old.as_bytes(), edited.as_bytes()).counts();
        let all = Comparison::of(old.as_bytes(), disjoint.as_bytes()).counts();
        assert!(edits.added > 0 && edits.added == edits.deleted && all.added == 100_000);
    }
}
