//! Files that people look at with `cat`: nothing in them may drive a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Says whether a terminal obeys a character instead of showing it: control characters, and those that turn text around.
/// All of them are below U+10000.
fn drives(c: char) -> bool {
    (c.is_control() && c != '\t')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Shows a line of text with escapes for what would drive a terminal. Showing it again changes nothing.
pub fn shown(line: &str) -> Cow<'_, str> {
    shown_without(line, drives)
}

/// Escapes within JSON what JSON leaves as it is and a terminal would obey.
pub(super) fn escaped(json: &str) -> Cow<'_, str> {
    escaped_without(json, drives)
}

/// Shows a text with escapes for the characters that `acts` names.
pub fn shown_without(text: &str, acts: impl Fn(char) -> bool) -> Cow<'_, str> {
    replaced(text, acts, |safe, c| safe.extend(c.escape_default()))
}

/// Writes JSON with escapes of its own for the characters that `acts` names, but for line breaks. They must be below U+10000.
pub fn escaped_without(json: &str, acts: impl Fn(char) -> bool) -> Cow<'_, str> {
    let acts = |c: char| acts(c) && c != '\n';
    replaced(json, acts, |safe, c| {
        let _ = write!(safe, "\\u{:04x}", u32::from(c));
    })
}

fn replaced(text: &str, acts: impl Fn(char) -> bool, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if !text.contains(&acts) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) { escape(&mut safe, c) } else { safe.push(c) }
    }
    Cow::Owned(safe)
}

/// Takes such escapes back, as whoever reads the JSON and writes it again does.
pub(super) fn unescaped(escape: &[u8]) -> Option<char> {
    let digits = std::str::from_utf8(escape.strip_prefix(b"\\u")?).ok()?;
    let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
    (drives(c) && c >= '\u{7f}').then_some(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_shown_drives_a_terminal_and_showing_twice_changes_nothing() {
        let line = "a\u{1b}[31m\u{9b}2J\u{202e}\r\u{7f}\ttab 👩\u{200d}💻 \\u{9b}";
        let once = shown(line).into_owned();
        assert!(!once.contains(drives), "{once:?}");
        assert!(once.ends_with("\ttab 👩\u{200d}💻 \\u{9b}"), "{once:?}");
        assert_eq!(shown(&once), once);
    }

    #[test]
    fn json_that_is_escaped_says_the_same() {
        let json = serde_json::json!({"a\u{9b}": "\u{1b}\u{7f}\u{2028}é\n"});
        let text = serde_json::to_string_pretty(&json).unwrap();
        let safe = escaped(&text);
        assert!(!safe.replace('\n', "").contains(drives), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), json);
        assert_eq!(unescaped(b"\\u009b"), Some('\u{9b}'));
        for other in ["\\u001b", "\\u00e9", "\\u00zz", "au009b"] {
            assert_eq!(unescaped(other.as_bytes()), None, "{other}");
        }
    }
}
