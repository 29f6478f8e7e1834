//! A message for a terminal: wrapped to its width, with tones that a front end may colour.
//!
//! Only our own headings start at the left edge; whatever comes from data is indented or follows a bullet.

use super::Message;
use super::message::clean;

/// How a piece of text is meant; plain where there is no colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tone {
    /// A heading.
    Heading,
    /// Just text.
    Plain,
    /// What was not understood.
    Warning,
    /// The question.
    Question,
    /// What may be said.
    Say,
    /// What that means.
    Faint,
}

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// How it is meant.
    pub tone: Tone,
    /// The text; nothing in it acts on a terminal.
    pub text: String,
}

/// Narrower than this, nothing can be read.
const NARROWEST: usize = 24;
/// What may be said stands in a column of at most this width.
const WIDEST_SAY: usize = 28;

impl Message {
    /// Lays the message out in lines of at most `width` columns.
    pub fn lines(&self, width: usize) -> Vec<Vec<Span>> {
        let width = width.max(NARROWEST);
        let mut page = Page { width, lines: Vec::new() };
        page.text(Tone::Heading, "", "", &self.title);
        if !self.intro.trim().is_empty() {
            page.gap();
        }
        for line in self.intro.lines().filter(|line| !line.trim().is_empty()) {
            page.text(Tone::Plain, "  ", "  ", line);
        }
        for section in &self.sections {
            page.gap();
            page.text(Tone::Heading, "", "", &section.heading);
            section.bullets.iter().for_each(|bullet| page.text(Tone::Plain, "  • ", "    ", bullet));
        }
        if let Some(misunderstood) = &self.misunderstood {
            page.gap();
            page.text(Tone::Warning, "  ", "  ", misunderstood);
        }
        page.gap();
        page.text(Tone::Question, "", "", &self.question);
        self.say(&mut page);
        page.lines
    }

    fn say(&self, page: &mut Page) {
        let widths = self.answers.iter().map(|answer| columns(&clean(&answer.say)));
        let column = widths.max().unwrap_or(0).min(WIDEST_SAY);
        for answer in &self.answers {
            let say = clean(&answer.say);
            let pad = " ".repeat(column.saturating_sub(columns(&say)));
            let indent = 2 + column.max(columns(&say)) + 2;
            let first = vec![Span { tone: Tone::Say, text: format!("  {say}{pad}  ") }];
            page.after(first, indent.min(page.width / 2 + 4), Tone::Faint, &answer.means);
        }
    }

    /// Lays the message out as plain text.
    pub fn plain(&self, width: usize) -> String {
        let mut text = String::new();
        for line in self.lines(width) {
            let line: String = line.into_iter().map(|span| span.text).collect();
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

struct Page {
    width: usize,
    lines: Vec<Vec<Span>>,
}

impl Page {
    fn gap(&mut self) {
        self.lines.push(Vec::new());
    }

    fn text(&mut self, tone: Tone, first: &str, rest: &str, text: &str) {
        let start = vec![Span { tone: Tone::Plain, text: first.to_owned() }];
        let start = if first.is_empty() { Vec::new() } else { start };
        self.flow(start, columns(first), columns(rest), tone, text);
    }

    fn after(&mut self, start: Vec<Span>, indent: usize, tone: Tone, text: &str) {
        let used = start.iter().map(|span| columns(&span.text)).sum();
        self.flow(start, used, indent, tone, text);
    }

    /// Fills lines word by word; words longer than a line are broken.
    fn flow(&mut self, start: Vec<Span>, used: usize, indent: usize, tone: Tone, text: &str) {
        let (mut line, mut at, mut empty) = (start, used, true);
        let mut filled = String::new();
        for word in broken(&clean(text), self.width.saturating_sub(indent).max(8)) {
            let wide = columns(&word);
            if at + usize::from(!empty) + wide > self.width && (!empty || at > indent) {
                line.push(Span { tone, text: std::mem::take(&mut filled) });
                self.lines.push(std::mem::take(&mut line));
                line.push(Span { tone: Tone::Plain, text: " ".repeat(indent) });
                (at, empty) = (indent, true);
            }
            if !empty {
                filled.push(' ');
                at += 1;
            }
            filled.push_str(&word);
            (at, empty) = (at + wide, false);
        }
        line.push(Span { tone, text: filled });
        self.lines.push(line);
    }
}

/// The words of a text, those that are too long in pieces.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        let (mut piece, mut used) = (String::new(), 0);
        for c in word.chars() {
            if used + column(c) > width {
                words.push(std::mem::take(&mut piece));
                used = 0;
            }
            piece.push(c);
            used += column(c);
        }
        words.push(piece);
    }
    words
}

/// Cuts a text off where it would be wider, and shows that.
pub(super) fn shortened_to(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let (mut short, mut used) = (String::new(), 0);
    for c in text.chars() {
        used += column(c);
        if used + 1 > width {
            break;
        }
        short.push(c);
    }
    if width > 0 {
        short.push('…');
    }
    short
}

pub(super) fn columns(text: &str) -> usize {
    text.chars().map(column).sum()
}

/// How many columns a character takes: none for marks that combine, two for the wide ones of East Asia and emoji.
fn column(c: char) -> usize {
    match u32::from(c) {
        0x300..=0x36f | 0xfe00..=0xfe0f | 0x20d0..=0x20ff => 0,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f => 2,
        0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}
