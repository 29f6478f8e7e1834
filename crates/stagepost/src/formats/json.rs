//! JSON and times as Python programs write them.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use crate::model::Timestamp;

/// Writes JSON as `json.dumps(value, indent=2)` does: two spaces, ASCII only, no newline at the end.
pub fn pretty(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let formatter = Ascii(PrettyFormatter::with_indent(b"  "));
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter));
    written.expect("what is written has string keys only, and memory takes it");
    bytes
}

/// Indents as serde does and escapes what is not ASCII.
struct Ascii<'a>(PrettyFormatter<'a>);

macro_rules! forward {
    ($($name:ident($($arg:ident: $type:ty),*);)+) => {
        $(fn $name<W: ?Sized + io::Write>(&mut self, writer: &mut W, $($arg: $type),*) -> io::Result<()> {
            self.0.$name(writer, $($arg),*)
        })+
    };
}

impl Formatter for Ascii<'_> {
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

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        let plain = |c: char| c.is_ascii() && c != '\u{7f}';
        if text.chars().all(plain) {
            return writer.write_all(text.as_bytes());
        }
        for c in text.chars() {
            if plain(c) {
                writer.write_all(&[c as u8])?;
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }
}

/// Writes a time as `datetime.utcnow().isoformat()` does: no zone, and no fraction where it is zero.
pub fn naive(time: Timestamp) -> String {
    let text = time.to_string();
    let text = text.trim_end_matches('Z');
    text.strip_suffix(".000000").unwrap_or(text).to_owned()
}

/// The same with a `Z` at the end.
pub fn zoned(time: Timestamp) -> String {
    format!("{}Z", naive(time))
}

/// Reads a time with or without a zone, and says whether UTC had to be assumed.
pub fn parse_time(text: &str) -> Option<(Timestamp, bool)> {
    if let Ok(time) = text.parse() {
        return Some((time, false));
    }
    format!("{text}Z").parse().ok().map(|time| (time, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_looks_as_python_writes_it() {
        let value = serde_json::json!({"a": [], "b": {}, "c": ["é\u{1f600}\n\"", 1.5, null]});
        let expected = "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    \"\\u00e9\\ud83d\\ude00\\n\\\"\",\n    1.5,\n    null\n  ]\n}";
        assert_eq!(String::from_utf8(pretty(&value)).unwrap(), expected);
    }

    #[test]
    fn times_lose_a_zero_fraction_and_come_back() {
        let time: Timestamp = "2024-01-07T13:00:00Z".parse().unwrap();
        assert_eq!(
            (zoned(time).as_str(), naive(time).as_str()),
            ("2024-01-07T13:00:00Z", "2024-01-07T13:00:00")
        );
        let time: Timestamp = "2024-01-07T13:00:00.25Z".parse().unwrap();
        assert_eq!(naive(time), "2024-01-07T13:00:00.250000");
        assert_eq!(parse_time("2024-01-07T13:00:00.250000"), Some((time, true)));
        assert_eq!(parse_time("2024-01-07T14:00:00.25+01:00"), Some((time, false)));
        assert_eq!(parse_time("yesterday"), None);
    }
}
