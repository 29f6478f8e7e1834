//! JSON as Python writes it: with bare `NaN`, `Infinity` and `-Infinity`.
//!
//! They have no place in a JSON value, so each is held as a string that no text contains, and written bare again. What
//! is handed to others is [`finite`]: `null` stands for them there.

use std::io;

use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, PrettyFormatter, Serializer};

use crate::formats::shown::escaped;

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
    Reserved(&'static str),
}

/// Reads JSON, with or without Python's names for numbers that are not finite.
pub fn read(bytes: &[u8]) -> Result<Value, LenientError> {
    let marked = mark(bytes);
    let given = marked.is_none().then(|| serde_json::from_slice(bytes)).transpose()?;
    if let Some(value) = given {
        return reserved(&value).map_or(Ok(value), |name| Err(LenientError::Reserved(name)));
    }
    if let Some(name) = NAMES.iter().find(|name| contains(bytes, standing_for(name).as_bytes())) {
        return Err(LenientError::Reserved(name));
    }
    Ok(serde_json::from_slice(&marked.unwrap_or_default())?)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(bytes, part).is_some()
}

fn standing_for(name: &str) -> String {
    format!("{MARK}{name}{MARK}")
}

/// The name that a string stands for.
pub(super) fn name_of(text: &str) -> Option<&'static str> {
    let inside = text.strip_prefix(MARK)?.strip_suffix(MARK)?;
    NAMES.into_iter().find(|name| *name == inside)
}

fn reserved(value: &Value) -> Option<&'static str> {
    match value {
        Value::String(text) => name_of(text),
        Value::Array(items) => items.iter().find_map(reserved),
        Value::Object(members) => members.values().find_map(reserved),
        _ => None,
    }
}

/// Replaces the names outside strings; `None` if there is none.
fn mark(bytes: &[u8]) -> Option<Vec<u8>> {
    memchr::memchr2(b'N', b'I', bytes)?;
    let (mut out, mut at, mut found, mut in_string) = (Vec::with_capacity(bytes.len() + 64), 0, false, false);
    while at < bytes.len() {
        let name = NAMES.iter().find(|name| !in_string && bytes[at..].starts_with(name.as_bytes()));
        if let Some(name) = name {
            out.extend_from_slice(format!("\"{}\"", standing_for(name)).as_bytes());
            (at, found) = (at + name.len(), true);
            continue;
        }
        let escaped = in_string && bytes[at] == b'\\';
        in_string ^= bytes[at] == b'"';
        let length = if escaped { 2.min(bytes.len() - at) } else { 1 };
        out.extend_from_slice(&bytes[at..at + length]);
        at += length;
    }
    found.then_some(out)
}

/// Puts `null` where a number is not finite, so that everyone can read it.
pub fn finite(value: &Value) -> Value {
    match value {
        Value::String(text) if name_of(text).is_some() => Value::Null,
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
