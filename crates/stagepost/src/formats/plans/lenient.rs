//! JSON as Python writes it: with bare `NaN`, `Infinity` and `-Infinity`.
//!
//! They have no place in a JSON value, so each is held as a string that no text contains, and written bare again. What
//! is handed to others is [`finite`]: `null` stands for them there. Whole numbers of more than 64 bits, which Python has
//! too, are held in the same way.

use std::io;

use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, PrettyFormatter, Serializer};

use crate::formats::shown::escaped;
use crate::model::{is_beyond_64_bits, may_have_one, number_at};

/// The names Python gives to numbers that JSON does not have, longest first.
const NAMES: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
/// Begins and ends the string that stands for one. It is in a private part of Unicode.
const MARK: char = '\u{f8ff}';

/// The error for bytes that are no JSON, not even Python's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LenientError {
    /// It cannot be read.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A text in it is the one that stands for a number here.
    #[error("it holds the text `\\uf8ff{0}\\uf8ff`, which is reserved")]
    Reserved(String),
}

/// Reads JSON, with or without Python's names for numbers that are not finite.
pub fn read(bytes: &[u8]) -> Result<Value, LenientError> {
    let (value, marked): (Value, usize) = match mark(bytes) {
        Some((marked, count)) => (serde_json::from_slice(&marked)?, count),
        None => (serde_json::from_slice(bytes)?, 0),
    };
    // More of them than were put in: a text looks like one.
    let mut standing = Vec::new();
    find_standing(&value, &mut standing);
    match standing.last() {
        Some(name) if standing.len() > marked => Err(LenientError::Reserved((*name).to_owned())),
        _ => Ok(value),
    }
}

fn standing_for(name: &str) -> String {
    format!("{MARK}{name}{MARK}")
}

/// The name or number that a string stands for.
pub(super) fn name_of(text: &str) -> Option<&str> {
    let inside = text.strip_prefix(MARK)?.strip_suffix(MARK)?;
    (NAMES.contains(&inside) || is_large(inside)).then_some(inside)
}

/// Whether a whole number is held as text, because 64 bits do not hold it. What not even a fraction comes near to is no
/// number to anyone else.
fn is_large(number: &str) -> bool {
    number.len() <= 300 && is_beyond_64_bits(number)
}

fn find_standing<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => found.extend(name_of(text)),
        Value::Array(items) => items.iter().for_each(|item| find_standing(item, found)),
        Value::Object(members) => members.values().for_each(|member| find_standing(member, found)),
        _ => {}
    }
}

/// Replaces the names and the large numbers outside strings, and counts them; `None` if there is none.
fn mark(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    if memchr::memchr2(b'N', b'I', bytes).is_none() && !may_have_one(bytes) {
        return None;
    }
    let (mut out, mut at, mut found, mut in_string) = (Vec::with_capacity(bytes.len() + 64), 0, 0, false);
    while at < bytes.len() {
        let name = NAMES.into_iter().find(|name| !in_string && bytes[at..].starts_with(name.as_bytes()));
        let begins = !in_string && name.is_none() && matches!(bytes[at], b'-' | b'0'..=b'9');
        let number = if begins { number_at(bytes, at) } else { "" };
        if let Some(name) = name.or_else(|| Some(number).filter(|number| is_large(number))) {
            out.extend_from_slice(format!("\"{}\"", standing_for(name)).as_bytes());
            (at, found) = (at + name.len(), found + 1);
            continue;
        }
        if !number.is_empty() {
            out.extend_from_slice(number.as_bytes());
            at += number.len();
            continue;
        }
        let escaped = in_string && bytes[at] == b'\\';
        in_string ^= bytes[at] == b'"';
        let length = if escaped { 2.min(bytes.len() - at) } else { 1 };
        out.extend_from_slice(&bytes[at..at + length]);
        at += length;
    }
    (found > 0).then_some((out, found))
}

/// Puts `null` where a number is not finite, so that everyone can read it, and the nearest number for a whole one of more
/// than 64 bits.
pub fn finite(value: &Value) -> Value {
    match value {
        Value::String(text) if name_of(text).is_some() => {
            let number = name_of(text).and_then(|name| name.parse::<f64>().ok());
            number.map_or(Value::Null, Value::from)
        }
        Value::Array(items) => items.iter().map(finite).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), finite(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// Writes JSON as `json.dumps(value, indent=2, ensure_ascii=False)` does: two spaces, UTF-8, bare names for numbers
/// that are not finite, no newline at the end. What would drive a terminal is escaped.
pub fn write(value: &Value) -> Vec<u8> {
    let bytes = write_as(value, PrettyFormatter::with_indent(b"  "));
    match String::from_utf8(bytes) {
        Ok(text) => escaped(&text).into_owned().into_bytes(),
        Err(other) => other.into_bytes(),
    }
}

/// Writes JSON in as little room as it takes, with bare names for numbers that are not finite.
pub fn compact(value: &Value) -> Vec<u8> {
    write_as(value, CompactFormatter)
}

fn write_as(value: &Value, inner: impl Formatter) -> Vec<u8> {
    let mut bytes = Vec::new();
    let formatter = Bare { inner, string: Where::Outside };
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter));
    written.expect("a value has string keys only, and memory takes it");
    bytes
}

#[derive(PartialEq)]
enum Where {
    Outside,
    /// A string was opened, and nothing of it is written yet: it may stand for a name.
    Opened,
    /// Its quotation mark is written.
    Quoted,
    /// It stands for a name, which is written.
    Named,
}

struct Bare<F> {
    inner: F,
    string: Where,
}

impl<F> Bare<F> {
    fn quote<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.string == Where::Opened {
            self.string = Where::Quoted;
            writer.write_all(b"\"")?;
        }
        Ok(())
    }
}

macro_rules! forward {
    ($($name:ident($($arg:ident: $type:ty),*);)+) => {
        $(fn $name<W: ?Sized + io::Write>(&mut self, writer: &mut W, $($arg: $type),*) -> io::Result<()> {
            self.inner.$name(writer, $($arg),*)
        })+
    };
}

impl<F: Formatter> Formatter for Bare<F> {
    forward! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        begin_object_value();
        end_object_value();
    }

    fn begin_string<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.string = Where::Opened;
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        if let Some(name) = name_of(text).filter(|_| self.string == Where::Opened) {
            self.string = Where::Named;
            return writer.write_all(name.as_bytes());
        }
        self.quote(writer)?;
        writer.write_all(text.as_bytes())
    }

    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        self.quote(writer)?;
        self.inner.write_char_escape(writer, escape)
    }

    fn end_string<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.quote(writer)?;
        let named = std::mem::replace(&mut self.string, Where::Outside) == Where::Named;
        if named { Ok(()) } else { writer.write_all(b"\"") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_of_any_length_come_back_and_a_text_never_becomes_one() {
        let text =
            r#"{"a":[123456789012345678901234567890,-9223372036854775809,1.5],"b":18446744073709551615}"#;
        let value = read(text.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(compact(&value)).unwrap(), text);
        assert_eq!(finite(&value)["a"][0], 123_456_789_012_345_678_901_234_567_890_f64);
        for reserved in [
            "[\"\u{f8ff}123456789012345678901234567890\u{f8ff}\"]",
            r#"[NaN, "\uf8ffNaN\uf8ff"]"#,
            r#"[123456789012345678901, "\uf8ff123456789012345678901\uf8ff"]"#,
        ] {
            assert!(matches!(read(reserved.as_bytes()), Err(LenientError::Reserved(_))), "{reserved}");
        }
        let endless = format!("[{}]", "9".repeat(400));
        assert!(matches!(read(endless.as_bytes()), Err(LenientError::Json(_))));
    }

    #[test]
    fn numbers_that_are_not_finite_come_back_as_they_were() {
        let text = "{\n  \"energy\": [\n    NaN,\n    -Infinity,\n    Infinity,\n    null\n  ],\n  \"NaN\": \"a \\\"NaN, Infinity\\\\\",\n  \"ü\": \"\"\n}";
        let value = read(text.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(write(&value)).unwrap(), text);
        assert_eq!(finite(&value)["energy"], serde_json::json!([null, null, null, null]));
        assert_eq!(finite(&value)["NaN"], value["NaN"]);
    }

    #[test]
    fn what_is_no_json_is_still_refused_and_nothing_stands_for_a_number_by_accident() {
        for wrong in ["", "{", "NaNa", "[nan]", "{NaN: 1}x", "\"NaN", "[Infinity"] {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
        for reserved in
            ["[\"\u{f8ff}NaN\u{f8ff}\"]", "[\"\\uf8ffNaN\\uF8FF\"]", "[NaN, \"\u{f8ff}NaN\u{f8ff}\"]"]
        {
            assert!(matches!(read(reserved.as_bytes()), Err(LenientError::Reserved(_))), "{reserved}");
        }
        assert!(read(b"[1e400]").is_err());
    }
}
