//! A diff as one line a file, as `git diff --stat` shows it.

use super::render::{Tag, quoted};
use super::{ContentDiff, Counts, Diff, FileDiff};

/// The least room for the plus and minus signs.
const LEAST_GRAPH: usize = 10;

impl Diff {
    /// Hands out a line for each file and one for all of them, within `width` columns. A line is several pieces.
    pub fn stat(&self, width: usize, emit: &mut dyn FnMut(Tag, &[u8])) {
        let names: Vec<String> = self.files.iter().map(name).collect();
        let most = self.files.iter().map(|file| total(file.counts())).max().unwrap_or(0);
        let numbers = self.files.iter().map(|file| number(file).len()).max().unwrap_or(0);
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let room = longest.min(width.saturating_sub(numbers + 5 + LEAST_GRAPH)).max(LEAST_GRAPH);
        let graph = width.saturating_sub(room + numbers + 5).max(LEAST_GRAPH);
        for (file, name) in self.files.iter().zip(&names) {
            emit(
                Tag::Context,
                format!(" {:<room$} | {:>numbers$}", shortened(name, room), number(file)).as_bytes(),
            );
            let (added, deleted) = signs(file.counts(), most, graph);
            if added + deleted > 0 {
                emit(Tag::Context, b" ");
            }
            emit(Tag::Added, "+".repeat(added).as_bytes());
            emit(Tag::Deleted, "-".repeat(deleted).as_bytes());
            emit(Tag::Context, b"\n");
        }
        if !self.files.is_empty() {
            emit(Tag::Context, summary(self.files.len(), self.totals).as_bytes());
        }
    }
}

fn name(file: &FileDiff) -> String {
    match &file.old_path {
        Some(old) => format!("{} => {}", quoted("", old), quoted("", &file.path)),
        None => quoted("", &file.path),
    }
}

/// The end of a path tells more than its beginning.
fn shortened(name: &str, room: usize) -> String {
    let length = name.chars().count();
    if length <= room {
        return name.to_owned();
    }
    let tail: String = name.chars().skip(length + 3 - room).collect();
    format!("...{tail}")
}

fn total(counts: Counts) -> usize {
    counts.added + counts.deleted
}

fn number(file: &FileDiff) -> String {
    match file.content {
        ContentDiff::Binary { old_size, new_size } => format!("Bin {old_size} -> {new_size} bytes"),
        ContentDiff::Submodule => "submodule".to_owned(),
        _ => total(file.counts()).to_string(),
    }
}

/// How many signs a file gets: one a line where there is room, else in proportion, but never none for something.
fn signs(counts: Counts, most: usize, room: usize) -> (usize, usize) {
    let scaled = |lines: usize| match lines {
        0 => 0,
        _ if most <= room => lines,
        _ => (lines * room / most).max(1),
    };
    (scaled(counts.added), scaled(counts.deleted))
}

fn summary(files: usize, totals: Counts) -> String {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let mut text = format!(" {files} file{} changed", plural(files));
    if totals.added > 0 || totals.deleted == 0 {
        text.push_str(&format!(", {} insertion{}(+)", totals.added, plural(totals.added)));
    }
    if totals.deleted > 0 || totals.added == 0 {
        text.push_str(&format!(", {} deletion{}(-)", totals.deleted, plural(totals.deleted)));
    }
    text + "\n"
}
