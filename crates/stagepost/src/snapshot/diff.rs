//! What differs between two trees, as plain data: files, renames, lines.
//!
//! A tree is a snapshot's, or that of now as [`look`](Snapshots::look) finds it. The text for people is made from
//! the same data by [`Diff::patch`] and [`Diff::stat`], piece by piece, each with a tag to colour it by; nothing is
//! printed here.

mod render;
mod stat;

use serde::Serialize;

pub use super::lines::{Counts, Hunk, Line, LineKind, Text};
pub use render::Tag;

use super::Snapshots;
use super::compare::{Change, Side};
use super::lines::Comparison;
use super::objects::{ObjectError, Objects};
use super::rename::{self, Candidate, Fingerprint, Rename};
use super::tree::EntryMode;
use crate::model::{ObjectId, RepoPath, Skipped};

/// What to compare, and how closely.
#[derive(Debug, Clone)]
pub struct DiffOptions {
    /// The files and folders asked for; none means all.
    pub paths: Vec<RepoPath>,
    /// How closely to look.
    pub detail: Detail,
    /// Whether a deleted and an added file with similar content are shown as one.
    pub renames: bool,
    /// Files above this many bytes are only named.
    pub max_size: usize,
    /// What only one of the trees could not hold: it is named, and neither new nor gone.
    pub left_out: Vec<Skipped>,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self {
            paths: vec![],
            detail: Detail::Lines { context: 3 },
            renames: true,
            max_size: 50_000_000,
            left_out: vec![],
        }
    }
}

/// How closely to compare files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Which files differ; their content is not read.
    Names,
    /// How many lines came and went.
    Counts,
    /// The lines, with so many unchanged ones around them.
    Lines {
        /// How many unchanged lines to show around each change.
        context: usize,
    },
}

/// What differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diff {
    /// The files that differ, in the order of their paths.
    pub files: Vec<FileDiff>,
    /// All lines that came and went.
    pub totals: Counts,
    /// Whether there were too many files to look for similar ones.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub renames_limited: bool,
    /// What only one of the trees could not hold; how it differs is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<Skipped>,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileDiff {
    /// Where it is; where it was, if it is gone.
    pub path: RepoPath,
    /// What happened to it.
    pub status: Status,
    /// Where it was before, if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_path: Option<RepoPath>,
    /// How much of it stayed the same, in percent, if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<u8>,
    /// What it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Side>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Side>,
    /// How its content differs.
    pub content: ContentDiff,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// Its content or mode changed.
    Modified,
    /// It has another path.
    Renamed,
}

/// How a file's content differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[non_exhaustive]
pub enum ContentDiff {
    /// It was not looked at.
    Unread,
    /// It is the same; path or mode differ.
    Same,
    /// Lines of text.
    Text {
        /// How many lines came and went.
        #[serde(flatten)]
        counts: Counts,
        /// The lines, if they were asked for.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        hunks: Vec<Hunk>,
    },
    /// At least one side is no text.
    Binary {
        /// How many bytes it had.
        old_size: usize,
        /// How many bytes it has.
        new_size: usize,
    },
    /// Another repository, at another commit.
    Submodule,
}

impl Snapshots {
    /// Compares two trees; `None` stands for the empty one.
    pub fn diff(
        &self,
        old: Option<&ObjectId>,
        new: Option<&ObjectId>,
        options: &DiffOptions,
    ) -> Result<Diff, ObjectError> {
        let mut changes = self.objects.diff_trees(old, new)?;
        let is_asked = |path: &RepoPath| {
            options.paths.is_empty() || options.paths.iter().any(|folder| path.is_within(folder))
        };
        let is_left_out = |path: &RepoPath| options.left_out.iter().any(|left| path.is_within(&left.path));
        changes.retain(|change| {
            let on_both_sides = change.old.is_some() && change.new.is_some();
            is_asked(&change.path) && (on_both_sides || !is_left_out(&change.path))
        });
        let mut files: Vec<FileDiff> = changes.into_iter().flat_map(file_diffs).collect();
        let reader = Reader { objects: &self.objects, options };
        let renames_limited = if options.renames { reader.find_renames(&mut files)? } else { false };
        for file in &mut files {
            file.content = reader.compare(file)?;
        }
        let totals = files.iter().fold(Counts::default(), |sum, file| sum + file.counts());
        let left_out = options.left_out.iter().filter(|left| is_asked(&left.path)).cloned().collect();
        Ok(Diff { files, totals, renames_limited, left_out })
    }
}

impl FileDiff {
    /// Returns how many lines came and went; none, if it is no text.
    pub fn counts(&self) -> Counts {
        match self.content {
            ContentDiff::Text { counts, .. } => counts,
            _ => Counts::default(),
        }
    }
}

/// A file that became a link or a repository is one that is gone and one that is new, as git shows it.
fn file_diffs(change: Change) -> Vec<FileDiff> {
    let Change { path, old, new } = change;
    match (old, new) {
        (Some(old), Some(new)) if class(old.mode) != class(new.mode) => {
            vec![file_diff(path.clone(), Some(old), None), file_diff(path, None, Some(new))]
        }
        (old, new) => vec![file_diff(path, old, new)],
    }
}

fn class(mode: EntryMode) -> EntryMode {
    if mode == EntryMode::Executable { EntryMode::File } else { mode }
}

fn file_diff(path: RepoPath, old: Option<Side>, new: Option<Side>) -> FileDiff {
    let status = match (&old, &new) {
        (None, _) => Status::Added,
        (_, None) => Status::Deleted,
        _ => Status::Modified,
    };
    FileDiff { path, status, old_path: None, similarity: None, old, new, content: ContentDiff::Unread }
}

/// Reads what is needed for a comparison, and no more.
struct Reader<'a> {
    objects: &'a Objects,
    options: &'a DiffOptions,
}

impl Reader<'_> {
    /// Joins deleted and added files that are one; says whether there were too many to compare by content.
    fn find_renames(&self, files: &mut Vec<FileDiff>) -> Result<bool, ObjectError> {
        let (deleted, added) = (positions(files, Status::Deleted), positions(files, Status::Added));
        let candidates = |positions: &[usize], side: fn(&FileDiff) -> Option<&Side>| -> Vec<Candidate<_>> {
            let sides = positions.iter().filter_map(|&at| Some((at, side(&files[at])?)));
            sides.map(|(at, side)| candidate(&files[at], side)).collect()
        };
        let old = candidates(&deleted, |file| file.old.as_ref());
        let new = candidates(&added, |file| file.new.as_ref());
        let mut renames = rename::exact(&old, &new);
        let (left_old, left_new) =
            (left(&old, &renames, |pair| pair.deleted), left(&new, &renames, |pair| pair.added));
        let limited = left_old.len().saturating_mul(left_new.len()) > rename::MOST_PAIRS;
        if !limited && self.options.detail != Detail::Names && !left_old.is_empty() && !left_new.is_empty() {
            renames.extend(rename::similar(
                &self.fingerprints(&old, left_old)?,
                &self.fingerprints(&new, left_new)?,
            ));
        }
        join(files, &deleted, &added, &renames);
        Ok(limited)
    }

    fn fingerprints(
        &self,
        files: &[Candidate<(EntryMode, ObjectId)>],
        positions: Vec<usize>,
    ) -> Result<Vec<(usize, Fingerprint)>, ObjectError> {
        let regular = positions.into_iter().filter(|&at| files[at].id.0 == EntryMode::File);
        regular.map(|at| Ok((at, Fingerprint::of(&self.objects.blob(&files[at].id.1)?)))).collect()
    }

    fn compare(&self, file: &FileDiff) -> Result<ContentDiff, ObjectError> {
        let sides = [&file.old, &file.new];
        if sides.iter().any(|side| side.as_ref().is_some_and(|side| side.mode == EntryMode::Submodule)) {
            return Ok(ContentDiff::Submodule);
        }
        if file.old.as_ref().map(|side| &side.id) == file.new.as_ref().map(|side| &side.id) {
            return Ok(ContentDiff::Same);
        }
        if self.options.detail == Detail::Names {
            return Ok(ContentDiff::Unread);
        }
        let read =
            |side: &Option<Side>| side.as_ref().map_or(Ok(Vec::new()), |side| self.objects.blob(&side.id));
        let (old, new) = (read(&file.old)?, read(&file.new)?);
        Ok(self.compare_bytes(&old, &new))
    }

    fn compare_bytes(&self, old: &[u8], new: &[u8]) -> ContentDiff {
        if [old, new].iter().any(|bytes| bytes.len() > self.options.max_size || is_binary(bytes)) {
            return ContentDiff::Binary { old_size: old.len(), new_size: new.len() };
        }
        let comparison = Comparison::of(old, new);
        let hunks = match self.options.detail {
            Detail::Lines { context } => comparison.hunks(context),
            Detail::Names | Detail::Counts => Vec::new(),
        };
        ContentDiff::Text { counts: comparison.counts(), hunks }
    }
}

/// A link and a file with the same bytes are not one.
fn candidate(file: &FileDiff, side: &Side) -> Candidate<(EntryMode, ObjectId)> {
    Candidate { path: file.path.as_bytes().to_vec(), id: (class(side.mode), side.id.clone()) }
}

fn positions(files: &[FileDiff], status: Status) -> Vec<usize> {
    files.iter().enumerate().filter(|(_, file)| file.status == status).map(|(at, _)| at).collect()
}

fn left<T>(all: &[T], renames: &[Rename], position: fn(&Rename) -> usize) -> Vec<usize> {
    let taken: std::collections::HashSet<usize> = renames.iter().map(position).collect();
    (0..all.len()).filter(|at| !taken.contains(at)).collect()
}

/// Puts the deleted half of each rename into the added one.
fn join(files: &mut Vec<FileDiff>, deleted: &[usize], added: &[usize], renames: &[Rename]) {
    let mut gone = std::collections::HashSet::new();
    for pair in renames {
        let (from, to) = (deleted[pair.deleted], added[pair.added]);
        let (old_path, old) = (files[from].path.clone(), files[from].old.clone());
        let file = &mut files[to];
        (file.status, file.old_path, file.old) = (Status::Renamed, Some(old_path), old);
        file.similarity = Some(pair.similarity);
        gone.insert(from);
    }
    let mut at = 0;
    files.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
}

/// Git's rule: a zero byte near the start makes a file binary.
fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(8000)].contains(&0)
}
