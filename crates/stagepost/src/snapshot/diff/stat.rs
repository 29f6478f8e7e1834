//! A diff as one line a file, as `git diff --stat` shows it.

use super::render::{Tag, quoted};
use super::{ContentDiff, Counts, Diff, FileDiff};

impl Diff {
    /// Hands out a line for each file and one for all of them, within `width` columns. A line is several pieces.
    pub fn stat(&self, width: usize, emit: &mut dyn FnMut(Tag, &[u8])) {
        let names: Vec<String> = self.files.iter().map(name).collect();
        let room = Room::of(&self.files, &names, width);
        for (file, name) in self.files.iter().zip(&names) {
            let (name, number) = (fitted(name, room.name), room.number);
            let count = match words(file) {
                Some(words) => words,
                None => format!("{:>number$}", total(file.counts())),
            };
            emit(Tag::Context, format!(" {name} | {count}").as_bytes());
            let (added, deleted) = signs(file.counts(), room.most, room.graph);
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

/// How many columns each part of a line gets, as git divides them.
struct Room {
    name: usize,
    number: usize,
    graph: usize,
    /// The most lines that changed in one file.
    most: usize,
}

impl Room {
    fn of(files: &[FileDiff], names: &[String], width: usize) -> Self {
        let most = files.iter().map(|file| total(file.counts())).max().unwrap_or(0);
        let words = files.iter().filter_map(words).map(|words| words.len()).max();
        // Numbers stand beneath each other and beneath `Bin`.
        let number = most.to_string().len().max(if words.is_some() { 3 } else { 1 });
        let width = width.max(16 + 6 + number);
        let mut name = names.iter().map(|name| columns(name)).max().unwrap_or(0);
        let mut graph = most.max(words.unwrap_or(0).saturating_sub(4));
        if name + number + 6 + graph > width {
            graph = graph.min((width * 3 / 8).saturating_sub(number + 6).max(6));
            name = name.min(width - number - 6 - graph);
            graph = width - number - 6 - name;
        }
        Self { name, number, graph, most }
    }
}

/// The name of a file; of one that was renamed both, with what they share said once.
fn name(file: &FileDiff) -> String {
    let new = quoted("", &file.path);
    let Some(old) = file.old_path.as_ref().map(|old| quoted("", old)) else { return new };
    if old.starts_with('"') || new.starts_with('"') {
        return format!("{old} => {new}");
    }
    let same = |pair: &((usize, char), char)| pair.0.1 == pair.1;
    let shared = old.char_indices().zip(new.chars()).take_while(same);
    let before = shared.filter(|((_, c), _)| *c == '/').last().map_or(0, |((at, _), _)| at + 1);
    // The slash that ends what is shared before may begin what is shared after.
    let from = before.saturating_sub(1);
    let shared = old[from..].char_indices().rev().zip(new[from..].chars().rev()).take_while(same);
    let after = shared.filter(|((_, c), _)| *c == '/').last().map_or(0, |((at, _), _)| old.len() - from - at);
    if before + after == 0 {
        return format!("{old} => {new}");
    }
    let middle = |name: &str| name.get(before..name.len() - after).unwrap_or_default().to_owned();
    let (start, end) = (&old[..before], &old[old.len() - after..]);
    format!("{start}{{{} => {}}}{end}", middle(&old), middle(&new))
}

/// A name in exactly so many columns. Its end tells more than its beginning.
fn fitted(name: &str, room: usize) -> String {
    let mut shown = name.to_owned();
    if columns(name) > room {
        let mut tail = name;
        while columns(tail) + 3 > room {
            tail = tail.char_indices().nth(1).map_or("", |(next, _)| &tail[next..]);
        }
        shown = format!("...{}", tail.find('/').map_or(tail, |slash| &tail[slash..]));
    }
    let missing = room.saturating_sub(columns(&shown));
    shown + &" ".repeat(missing)
}

/// How many columns of a terminal a text takes.
fn columns(text: &str) -> usize {
    let of = |c: char| match u32::from(c) {
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    };
    text.chars().map(of).sum()
}

fn total(counts: Counts) -> usize {
    counts.added + counts.deleted
}

/// What stands in the place of a number, where no lines were counted.
fn words(file: &FileDiff) -> Option<String> {
    match file.content {
        ContentDiff::Binary { old_size, new_size } => Some(format!("Bin {old_size} -> {new_size} bytes")),
        ContentDiff::Submodule => Some("submodule".to_owned()),
        _ => None,
    }
}

/// How many signs a file gets: one a line where there is room, else in proportion, but never none for something.
fn signs(counts: Counts, most: usize, room: usize) -> (usize, usize) {
    let Counts { added, deleted, .. } = counts;
    if most < room {
        return (added, deleted);
    }
    let scaled = |lines: usize| if lines == 0 { 0 } else { 1 + lines * (room - 1) / most };
    let both = scaled(added + deleted).max(if added > 0 && deleted > 0 { 2 } else { 0 });
    match added < deleted {
        true => (scaled(added), both - scaled(added)),
        false => (both - scaled(deleted), scaled(deleted)),
    }
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
