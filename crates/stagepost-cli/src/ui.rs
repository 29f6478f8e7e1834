//! Printing: results on standard output, everything else on standard error.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anstream::adapter::strip_str;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use stagepost::formats::{escaped_without, shown_without};
use stagepost::model::{Checkpoint, Timestamp};
use stagepost::project::Project;

use crate::failure::Failure;
use crate::json;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Json,
    Quiet,
}

pub(crate) struct Ui {
    pub(crate) form: Form,
}

impl Ui {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        let form = match (json, quiet) {
            (true, _) => Form::Json,
            (_, true) => Form::Quiet,
            _ => Form::Text,
        };
        Self { form }
    }

    /// Prints a result that ends its own lines.
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        done(write!(anstream::stdout().lock(), "{text}"))
    }

    /// Prints a line of a result.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> Result<(), Failure> {
        let mut out = anstream::stdout().lock();
        done(writeln!(out, "{}", text.as_ref()))
    }

    /// Prints bytes of a result as they are, but none to a terminal that it would obey.
    pub(crate) fn raw(&self, source: &mut dyn io::Read) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let copied =
            if out.is_terminal() { show(source, &mut out) } else { io::copy(source, &mut out).map(drop) };
        match copied.and_then(|()| out.flush()) {
            Err(error) if error.get_ref().is_some() => {
                Err(Failure::reading(error, "standard output".as_ref()))
            }
            other => done(other),
        }
    }

    /// Prints a result as JSON.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
        self.line(escaped(&text))
    }

    /// Says something that is not a result.
    pub(crate) fn say(&self, text: impl AsRef<str>) {
        if self.form == Form::Text {
            tell(text.as_ref());
        }
    }

    /// Says something that must not be missed.
    pub(crate) fn warn(&self, text: impl AsRef<str>) {
        tell(&format!("{YELLOW}note:{YELLOW:#} {}", text.as_ref()));
    }

    /// Says whether results go to a person.
    pub(crate) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Says whether a person is there to be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.form == Form::Text && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks a person; only a plain yes is one.
    pub(crate) fn ask(&self, question: &str) -> Result<bool, Failure> {
        let mut err = anstream::stderr().lock();
        write!(err, "{question} [y/N] ").and_then(|()| err.flush())?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    /// Prints a failure and returns its exit code.
    pub(crate) fn failure(&self, failure: &Failure) -> ExitCode {
        let code = ExitCode::from(failure.code as u8);
        if failure.message.is_empty() {
            return code;
        }
        // Where no result can be printed, what failed is still told.
        if self.form == Form::Json && self.json(&json::ErrorOutput::from(failure)).is_ok() {
            return code;
        }
        let mut text = format!("{RED}error:{RED:#} {}", printable(&failure.message));
        for cause in &failure.causes {
            let _ = write!(text, "\n  because {}", printable(cause));
        }
        if let Some(hint) = &failure.hint {
            let _ = write!(text, "\n{DIM}hint:{DIM:#} {}", printable_lines(hint));
        }
        tell(&text);
        code
    }

    /// Prints a checkpoint as the result of a command that made or found one.
    pub(crate) fn checkpoint(
        &self,
        project: &Project,
        checkpoint: &Checkpoint,
        text: impl FnOnce(&str) -> String,
    ) -> Result<(), Failure> {
        match self.form {
            Form::Json => {
                let pinned = project.is_pinned(checkpoint)?;
                self.json(&json::CheckpointOutput { schema: json::SCHEMA, checkpoint, pinned })
            }
            Form::Quiet => self.line(checkpoint.id.to_string()),
            Form::Text => self.line(text(&project.short_id(&checkpoint.id)?)),
        }
    }
}

/// Shows bytes to a person.
fn show(source: &mut dyn io::Read, out: &mut dyn Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes)?;
    out.write_all(printable_lines(&String::from_utf8_lossy(&bytes)).as_bytes())
}

/// Writes lines to standard error at one go: what other threads and programs write there does not come in between.
fn tell(text: &str) {
    let err = anstream::stderr();
    let is_plain = err.current_choice() == anstream::ColorChoice::Never;
    let text = if is_plain { strip_str(text).to_string() } else { text.to_owned() };
    let _ = io::stderr().lock().write_all((text + "\n").as_bytes());
}

/// A reader that has had enough, such as `head`, is no failure. The command goes on: what it does is done, and it ends
/// with the code that it would have ended with. A no that nobody reads is still a no.
fn done(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Failure::printing),
    }
}

/// Says whether a terminal obeys a character instead of showing it: control characters and those that turn text around.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Makes JSON safe for a terminal. JSON itself escapes the oldest control characters only.
pub(crate) fn escaped(json: &str) -> Cow<'_, str> {
    escaped_without(json, acts)
}

/// Makes text safe for a terminal: control characters and those that turn text around are shown as escapes.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    shown_without(text, acts)
}

/// As [`printable`], but keeps line breaks and tabs.
pub(crate) fn printable_lines(text: &str) -> String {
    let lines: Vec<String> =
        text.split('\n').map(|line| line.split('\t').map(printable).collect::<Vec<_>>().join("\t")).collect();
    lines.join("\n")
}

/// The first line of a text, cut to a width.
pub(crate) fn headline(text: &str, width: usize) -> String {
    let first = printable(text.lines().next().unwrap_or("")).into_owned();
    if first.chars().count() <= width {
        return first;
    }
    first.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// How long ago, in one unit.
pub(crate) fn ago(time: Timestamp, now: Timestamp) -> String {
    let seconds = time.until(now).as_secs();
    let (count, unit) = match seconds {
        0..=59 => return "just now".to_owned(),
        60..=3599 => (seconds / 60, "minute"),
        3600..=86_399 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{} ago", if count == 1 { "" } else { "s" })
}

/// A number of bytes, in one unit.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut unit) = (count as f64, 0);
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{size:.1} {}", UNITS[unit]) }
}

/// `1 file`, `2 files`.
pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stored_can_drive_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\nc\u{202e}d\u{9b}e"), "a\\u{1b}[31mb\\nc\\u{202e}d\\u{9b}e");
        assert_eq!(printable_lines("a\tb\nc\r\u{7}"), "a\tb\nc\\r\\u{7}");
        assert_eq!(headline("first line\nsecond", 6), "first…");
        let mut shown = Vec::new();
        show(&mut &b"a\x1b[2J\n\xffb\n"[..], &mut shown).unwrap();
        assert_eq!(String::from_utf8(shown).unwrap(), "a\\u{1b}[2J\n\u{fffd}b\n");
        let json = serde_json::to_string_pretty(&serde_json::json!({"a": "\u{9b}\u{202e}\u{7f}\n"})).unwrap();
        assert_eq!(escaped(&json), "{\n  \"a\": \"\\u009b\\u202e\\u007f\\n\"\n}");
    }

    #[test]
    fn sizes_and_counts_read_like_words() {
        assert_eq!((bytes(0), bytes(1023), bytes(1536)), ("0 B".into(), "1023 B".into(), "1.5 KiB".into()));
        assert_eq!((count(1, "file"), count(0, "file")), ("1 file".into(), "0 files".into()));
    }
}
