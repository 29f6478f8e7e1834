//! The checksum of a checkpoint: SHA-256 over its tokens.
//!
//! It is checked on the bytes as they are, without white space: a number that were read and written again could look
//! different.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::javascript::compact;
use crate::formats::shown::unescaped;

/// What a checksum was made over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Everything but `metadata`: what the program writes.
    Body,
    /// Everything but `metadata.checksum`: what its validator expects, and what we write.
    Whole,
}

impl Form {
    /// Describes the form in words.
    pub fn describe(self) -> &'static str {
        match self {
            Form::Body => "its checksum leaves `metadata` out",
            Form::Whole => "its checksum includes `metadata`",
        }
    }
}

/// Computes the checksum of a checkpoint that we write: over everything but `metadata.checksum`.
pub fn checksum(checkpoint: &Value) -> String {
    let mut bare = checkpoint.clone();
    if let Some(metadata) = bare.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("checksum");
    }
    hex(compact(&bare).as_bytes())
}

/// Puts the checksum into a checkpoint, as the first member of its `metadata`.
pub fn sealed(mut checkpoint: Value) -> Value {
    let sum = checksum(&checkpoint);
    if let Some(metadata) = checkpoint.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("checksum");
        metadata.shift_insert(0, "checksum".to_owned(), sum.into());
    }
    checkpoint
}

/// Checks the bytes of a checkpoint against the checksum inside. `None`: it has none. `Some(None)`: it fits no form.
pub fn verify(bytes: &[u8]) -> Option<Option<Form>> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let expected = value["metadata"]["checksum"].as_str()?.to_ascii_lowercase();
    let tokens = minified(bytes);
    let members = members(&tokens)?;
    let found = [Form::Body, Form::Whole].into_iter().find(|form| hex(&reduced(&members, *form)) == expected);
    Some(found)
}

fn reduced(of: &[Member<'_>], form: Form) -> Vec<u8> {
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for Member { key, value } in of {
        let value = match (*key, form) {
            (b"\"metadata\"", Form::Body) => continue,
            (b"\"metadata\"", Form::Whole) => match members(value) {
                Some(inner) => {
                    let inner = inner.iter().filter(|member| member.key != b"\"checksum\"");
                    joined(&inner.map(Member::bytes).collect::<Vec<_>>())
                }
                None => value.to_vec(),
            },
            _ => value.to_vec(),
        };
        kept.push([key, b":".as_slice(), &value].concat());
    }
    joined(&kept)
}

fn joined(members: &[Vec<u8>]) -> Vec<u8> {
    [b"{".as_slice(), &members.join(b",".as_slice()), b"}"].concat()
}

/// Drops the white space between the tokens of JSON, and takes back escapes that JavaScript never writes.
pub fn minified(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len());
    let (mut inside, mut at) = (Inside::default(), 0);
    while let Some(byte) = json.get(at) {
        let escape = json.get(at..at + 6).filter(|_| inside.text && !inside.escaped);
        if let Some(c) = escape.and_then(unescaped) {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            at += 6;
            continue;
        }
        if inside.text || !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            out.push(*byte);
        }
        inside.pass(*byte);
        at += 1;
    }
    out
}

struct Member<'b> {
    key: &'b [u8],
    value: &'b [u8],
}

impl Member<'_> {
    fn bytes(&self) -> Vec<u8> {
        [self.key, b":".as_slice(), self.value].concat()
    }
}

/// Whether we are inside a text, and how deep.
#[derive(Default)]
struct Inside {
    text: bool,
    escaped: bool,
    depth: usize,
}

impl Inside {
    fn pass(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.text => self.escaped = true,
            b'"' => self.text = !self.text,
            b'{' | b'[' if !self.text => self.depth += 1,
            b'}' | b']' if !self.text => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

/// The members of an object without white space.
fn members(tokens: &[u8]) -> Option<Vec<Member<'_>>> {
    let inner = tokens.strip_prefix(b"{")?.strip_suffix(b"}")?;
    let (mut found, mut inside) = (Vec::new(), Inside::default());
    let (mut start, mut colon) = (0, None);
    for (at, byte) in inner.iter().enumerate() {
        let is_outside = !inside.text && inside.depth == 0;
        match byte {
            b':' if is_outside && colon.is_none() => colon = Some(at),
            b',' if is_outside => {
                found.push(Member { key: &inner[start..colon?], value: &inner[colon? + 1..at] });
                (start, colon) = (at + 1, None);
            }
            _ => {}
        }
        inside.pass(*byte);
    }
    if start < inner.len() {
        found.push(Member { key: &inner[start..colon?], value: &inner[colon? + 1..] });
    }
    Some(found)
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::javascript::pretty;
    use super::*;

    #[test]
    fn both_forms_are_recognised_whatever_the_white_space() {
        let body = json!({"a": [1, {"metadata": 2}], "t": "x\"} ,{\\", "n": 1.5, "metadata": {"created_by": "c", "version": "1.0"}});
        let sealed = sealed(body.clone());
        assert_eq!(verify(pretty(&sealed).as_bytes()), Some(Some(Form::Whole)));
        assert_eq!(verify(compact(&sealed).as_bytes()), Some(Some(Form::Whole)));

        let mut by_program = body;
        let bare = json!({"a": [1, {"metadata": 2}], "t": "x\"} ,{\\", "n": 1.5});
        by_program["metadata"]["checksum"] = hex(compact(&bare).as_bytes()).into();
        assert_eq!(verify(pretty(&by_program).as_bytes()), Some(Some(Form::Body)));
        by_program["n"] = json!(2);
        assert_eq!(verify(pretty(&by_program).as_bytes()), Some(None));
        assert_eq!(verify(b"{\"metadata\": {}}"), None);
        assert_eq!(verify(b"not json"), None);
    }

    #[test]
    fn numbers_are_taken_as_they_are_written() {
        // 1e2 would be written again as 100; the checksum of the bytes is what counts.
        let bare = r#"{"n":1e2,"big":12345678901234567890123}"#;
        let file = format!(
            r#"{{ "n": 1e2, "big": 12345678901234567890123, "metadata": {{"checksum": "{}"}} }}"#,
            hex(bare.as_bytes())
        );
        assert_eq!(verify(file.as_bytes()), Some(Some(Form::Body)));
    }
}
