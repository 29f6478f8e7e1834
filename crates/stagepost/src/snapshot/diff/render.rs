//! A diff as text that `git apply` takes, in pieces with tags to colour them by.

use super::{ContentDiff, Diff, FileDiff, Hunk, LineKind, Status};
use crate::model::RepoPath;
use crate::snapshot::compare::Side;

/// What a piece of text is, for whoever colours it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tag {
    /// The line that opens a file.
    File,
    /// What is said of a file as a whole.
    Meta,
    /// Where a hunk is.
    Range,
    /// An unchanged line, or plain text.
    Context,
    /// What is new.
    Added,
    /// What is gone.
    Deleted,
}

/// How many digits of an object's name are shown.
const DIGITS: usize = 10;

impl Diff {
    /// Hands out the diff as a patch, piece by piece. Pieces hold whole lines with their ends. The bytes of files are
    /// handed out as they are; whoever prints to a terminal escapes what could act there.
    pub fn patch(&self, emit: &mut dyn FnMut(Tag, &[u8])) {
        for file in &self.files {
            Patch { file, emit }.file();
        }
    }
}

struct Patch<'a> {
    file: &'a FileDiff,
    emit: &'a mut dyn FnMut(Tag, &[u8]),
}

impl Patch<'_> {
    fn line(&mut self, tag: Tag, text: &str) {
        (self.emit)(tag, format!("{text}\n").as_bytes());
    }

    fn file(&mut self) {
        let file = self.file;
        let (old, new) = (quoted("a/", old_path(file)), quoted("b/", &file.path));
        self.line(Tag::File, &format!("diff --git {old} {new}"));
        self.modes();
        self.renaming();
        self.ids();
        match &file.content {
            ContentDiff::Unread | ContentDiff::Same => {}
            ContentDiff::Text { hunks, .. } => self.text(hunks),
            ContentDiff::Binary { .. } => {
                let (old, new) = self.ends();
                self.line(Tag::Context, &format!("Binary files {old} and {new} differ"));
            }
            ContentDiff::Submodule => self.submodule(),
        }
    }

    fn modes(&mut self) {
        match (&self.file.old, &self.file.new) {
            (None, Some(new)) => self.line(Tag::Meta, &format!("new file mode {}", new.mode.as_octal())),
            (Some(old), None) => self.line(Tag::Meta, &format!("deleted file mode {}", old.mode.as_octal())),
            (Some(old), Some(new)) if old.mode != new.mode => {
                self.line(Tag::Meta, &format!("old mode {}", old.mode.as_octal()));
                self.line(Tag::Meta, &format!("new mode {}", new.mode.as_octal()));
            }
            _ => {}
        }
    }

    fn renaming(&mut self) {
        if let (Some(old_path), Some(similarity)) = (&self.file.old_path, self.file.similarity) {
            self.line(Tag::Meta, &format!("similarity index {similarity}%"));
            self.line(Tag::Meta, &format!("rename from {}", quoted("", old_path)));
            self.line(Tag::Meta, &format!("rename to {}", quoted("", &self.file.path)));
        }
    }

    fn ids(&mut self) {
        let (old, new) = (&self.file.old, &self.file.new);
        if old.as_ref().map(|side| &side.id) == new.as_ref().map(|side| &side.id) {
            return;
        }
        let mode = match (old, new) {
            (Some(old), Some(new)) if old.mode == new.mode => format!(" {}", new.mode.as_octal()),
            _ => String::new(),
        };
        self.line(Tag::Meta, &format!("index {}..{}{mode}", short(old.as_ref()), short(new.as_ref())));
    }

    /// The names of both sides; a side that is not there is `/dev/null`.
    fn ends(&self) -> (String, String) {
        let file = self.file;
        let old = file.old.as_ref().map_or_else(|| "/dev/null".to_owned(), |_| quoted("a/", old_path(file)));
        let new = file.new.as_ref().map_or_else(|| "/dev/null".to_owned(), |_| quoted("b/", &file.path));
        (old, new)
    }

    fn names(&mut self) {
        // git ends a name with a tab where it contains a space, so that patch programs know where it ends
        let end = |name: &str| if name.contains(' ') { "\t" } else { "" };
        let (old, new) = self.ends();
        self.line(Tag::Meta, &format!("--- {old}{}", end(&old)));
        self.line(Tag::Meta, &format!("+++ {new}{}", end(&new)));
    }

    fn text(&mut self, hunks: &[Hunk]) {
        if !hunks.is_empty() {
            self.names();
        }
        for hunk in hunks {
            self.hunk(hunk);
        }
    }

    fn hunk(&mut self, hunk: &Hunk) {
        let (old, new) = (range(hunk.old_start, hunk.old_lines), range(hunk.new_start, hunk.new_lines));
        self.line(Tag::Range, &format!("@@ -{old} +{new} @@"));
        for line in &hunk.lines {
            let (tag, sign) = match line.kind {
                LineKind::Context => (Tag::Context, b" "),
                LineKind::Added => (Tag::Added, b"+"),
                LineKind::Deleted => (Tag::Deleted, b"-"),
            };
            (self.emit)(tag, &[sign, line.text.as_bytes(), b"\n"].concat());
            if line.no_newline {
                self.line(Tag::Context, "\\ No newline at end of file");
            }
        }
    }

    fn submodule(&mut self) {
        self.names();
        let (old, new) = (&self.file.old, &self.file.new);
        let lines = |side: &Option<Side>| if side.is_some() { "1" } else { "0,0" };
        self.line(Tag::Range, &format!("@@ -{} +{} @@", lines(old), lines(new)));
        if let Some(old) = old {
            self.line(Tag::Deleted, &format!("-Subproject commit {}", old.id));
        }
        if let Some(new) = new {
            self.line(Tag::Added, &format!("+Subproject commit {}", new.id));
        }
    }
}

fn old_path(file: &FileDiff) -> &RepoPath {
    match file.status {
        Status::Renamed => file.old_path.as_ref().unwrap_or(&file.path),
        _ => &file.path,
    }
}

fn range(start: usize, lines: usize) -> String {
    if lines == 1 { start.to_string() } else { format!("{start},{lines}") }
}

fn short(side: Option<&Side>) -> String {
    side.map_or_else(|| "0".repeat(DIGITS), |side| side.id.as_str().chars().take(DIGITS).collect())
}

/// A path as git writes it: in quotes, with escapes, where it could be misread.
pub(super) fn quoted(prefix: &str, path: &RepoPath) -> String {
    let bytes = path.as_bytes();
    let text = std::str::from_utf8(bytes).ok();
    let plain = |c: char| !c.is_control() && !matches!(c, '"' | '\\');
    if let Some(text) = text.filter(|text| text.chars().all(plain)) {
        return format!("{prefix}{text}");
    }
    let escape = |byte: &u8| match byte {
        b'"' => "\\\"".to_owned(),
        b'\\' => "\\\\".to_owned(),
        b'\n' => "\\n".to_owned(),
        b'\t' => "\\t".to_owned(),
        b'\r' => "\\r".to_owned(),
        b' '..=b'~' => char::from(*byte).to_string(),
        other => format!("\\{other:03o}"),
    };
    format!("\"{prefix}{}\"", bytes.iter().map(escape).collect::<String>())
}
