//! Taking secrets out of text before it is stored or shown: those of a flow, and whatever looks like a token.

use std::io::{self, Read};

use memchr::memmem;
use serde_json::Value;

use crate::model::{TokenStream, redact_value};

/// What stands where a secret was.
const MASK: &[u8] = b"***";

/// A line of a secret that is shorter may stand anywhere, such as `}`; it is no secret by itself.
const SHORTEST_LINE: usize = 8;

/// The secrets of a flow.
#[derive(Debug, Clone, Default)]
pub(super) struct Secrets {
    /// Longest first: one may be the beginning of another.
    values: Vec<Vec<u8>>,
}

impl Secrets {
    /// Keeps what must not be seen: each secret, the longer lines of one that has several, and all of these as JSON writes
    /// them. Nothing at all is no secret.
    pub(super) fn new(values: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut all: Vec<Vec<u8>> = Vec::new();
        for value in values.into_iter().filter(|value| !value.is_empty()) {
            let lines = value.split(|byte| matches!(byte, b'\n' | b'\r'));
            let long = lines.filter(|line| line.len() >= SHORTEST_LINE && line.len() < value.len());
            for one in long.chain([value.as_slice()]) {
                all.extend(std::str::from_utf8(one).into_iter().flat_map(in_json));
                all.push(one.to_owned());
            }
        }
        all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        all.dedup();
        Self { values: all }
    }

    /// Says whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Says whether there are secrets in what is read, wherever it is cut.
    pub(super) fn are_read_from(&self, mut from: impl Read) -> io::Result<bool> {
        let longest = self.values.first().map_or(0, Vec::len);
        let (mut held, mut buffer) = (Vec::new(), vec![0; 1 << 20]);
        loop {
            let count = match from.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if count == 0 {
                return Ok(false);
            }
            held.extend_from_slice(&buffer[..count]);
            if self.are_in(&held) {
                return Ok(true);
            }
            held.drain(..held.len().saturating_sub(longest.saturating_sub(1)));
        }
    }

    /// Says whether there are secrets in `bytes`.
    pub(super) fn are_in(&self, bytes: &[u8]) -> bool {
        self.values.iter().any(|secret| memmem::find(bytes, secret).is_some())
    }

    /// Takes secrets out of a whole.
    pub(super) fn redact(&self, bytes: &[u8]) -> Vec<u8> {
        let mut redactor = Redactor::new(self);
        let mut out = redactor.push(bytes);
        out.extend(redactor.finish());
        out
    }

    /// Takes secrets out of text.
    pub(super) fn redact_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.redact(text.as_bytes())).into_owned()
    }

    /// Takes secrets out of every text in a value, also out of names of members.
    pub(super) fn redact_value(&self, mut value: Value) -> Value {
        redact_value(&mut value);
        if self.values.is_empty() { value } else { self.redact_own(value) }
    }

    fn redact_own(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.redact_text(&text).into(),
            Value::Array(list) => list.into_iter().map(|one| self.redact_own(one)).collect(),
            Value::Object(members) => members
                .into_iter()
                .map(|(name, one)| (self.redact_text(&name), self.redact_own(one)))
                .collect(),
            // A number may be the secret.
            Value::Number(number) if self.are_in(number.to_string().as_bytes()) => {
                self.redact_text(&number.to_string()).into()
            }
            other => other,
        }
    }

    /// The longest end of `bytes` that a secret may begin with.
    fn held_back(&self, bytes: &[u8]) -> usize {
        let beginning = |secret: &Vec<u8>| {
            let most = bytes.len().min(secret.len() - 1);
            (1..=most).rev().find(|length| bytes.ends_with(&secret[..*length])).unwrap_or(0)
        };
        self.values.iter().map(beginning).max().unwrap_or(0)
    }
}

/// A text as it stands in JSON between its quotes, if that differs: as most write it, and in plain ASCII.
fn in_json(text: &str) -> Vec<Vec<u8>> {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default();
    let mut ascii = String::with_capacity(inner.len());
    for c in inner.chars() {
        match c.is_ascii() {
            true => ascii.push(c),
            false => {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| ascii.push_str(&format!("\\u{unit:04x}")))
            }
        }
    }
    let forms = [inner.to_owned(), ascii].into_iter();
    forms.filter(|form| !form.is_empty() && form != text).map(String::into_bytes).collect()
}

/// Takes secrets out of a stream, wherever it is cut.
#[derive(Debug)]
pub(super) struct Redactor<'s> {
    secrets: &'s Secrets,
    held: Vec<u8>,
    tokens: TokenStream,
}

impl<'s> Redactor<'s> {
    pub(super) fn new(secrets: &'s Secrets) -> Self {
        Self { secrets, held: Vec::new(), tokens: TokenStream::default() }
    }

    /// Takes the next part in, and returns what can be told by now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.secrets.values.is_empty() {
            return self.tokens.push(bytes);
        }
        self.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.held);
        let (out, told) = self.told(&held, |rest| rest.len() - self.secrets.held_back(rest));
        self.held = held[told..].to_vec();
        self.tokens.push(&out)
    }

    /// Returns what was held back: no more will follow it.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        let mut out = self.tokens.push(&self.told(&held, <[u8]>::len).0);
        out.extend(self.tokens.finish());
        out
    }

    /// What can be told of `bytes`, and how many of them that is. `safe` says where a secret may begin whose end is
    /// still to come: nothing from there on is told, not even a shorter secret that is there in full.
    fn told(&self, bytes: &[u8], safe: impl Fn(&[u8]) -> usize) -> (Vec<u8>, usize) {
        let (mut out, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
        loop {
            let end = safe(rest);
            match self.first(rest) {
                Some((at, length)) if at + length <= end => {
                    out.extend_from_slice(&rest[..at]);
                    out.extend_from_slice(MASK);
                    rest = &rest[at + length..];
                }
                found => {
                    let end = found.map_or(end, |(at, _)| at.min(end));
                    out.extend_from_slice(&rest[..end]);
                    return (out, bytes.len() - rest.len() + end);
                }
            }
        }
    }

    /// The first secret, and of those at the same place the longest.
    fn first(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let found = self
            .secrets
            .values
            .iter()
            .filter_map(|secret| memmem::find(bytes, secret).map(|at| (at, secret.len())));
        found.min_by_key(|(at, length)| (*at, std::cmp::Reverse(*length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secrets() -> Secrets {
        Secrets::new(["swordfish", "sword", "", "12345"].map(|text| text.as_bytes().to_vec()))
    }

    #[test]
    fn a_secret_is_found_wherever_the_stream_is_cut() {
        let (secrets, text) = (secrets(), "a swordfish, a sword, sswordfishh and swor");
        for cut in 0..=text.len() {
            for second in cut..=text.len() {
                let mut redactor = Redactor::new(&secrets);
                let mut out = redactor.push(&text.as_bytes()[..cut]);
                out.extend(redactor.push(&text.as_bytes()[cut..second]));
                out.extend(redactor.push(&text.as_bytes()[second..]));
                out.extend(redactor.finish());
                let out = String::from_utf8(out).unwrap();
                assert_eq!(out, "a ***, a ***, s***h and swor", "cut at {cut} and {second}");
            }
        }
    }

    #[test]
    fn values_are_redacted_in_texts_names_and_numbers() {
        let value = json!({"sword": ["my swordfish", 12345, 7, null]});
        assert_eq!(secrets().redact_value(value), json!({"***": ["my ***", "***", 7, null]}));
    }

    #[test]
    fn a_secret_is_known_as_json_and_by_its_longer_lines() {
        let secrets = Secrets::new(["first line \u{fc}\nsec\"ond line\n}\n".as_bytes().to_vec()]);
        let told = |text: &str| secrets.redact_text(text);
        assert_eq!(told(r#"{"a":"first line \u00fc\nsec\"ond line\n}\n"}"#), r#"{"a":"***"}"#);
        assert_eq!(told("{\"a\":\"first line \u{fc}\\nsec\\\"ond line\\n}\\n\"}"), r#"{"a":"***"}"#);
        assert_eq!(told("- sec\"ond line, sec\\\"ond line }"), "- ***, *** }");
        assert_eq!(told("first line \u{fc}\r\n"), "***\r\n");
    }

    #[test]
    fn a_secret_is_found_in_a_long_file_wherever_a_read_ends() {
        struct Slow<'b>(&'b [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let length = self.0.len().min(3);
                buffer[..length].copy_from_slice(&self.0[..length]);
                self.0 = &self.0[length..];
                Ok(length)
            }
        }
        assert!(secrets().are_read_from(Slow(b"a long text with a swordfish in it")).unwrap());
        assert!(!secrets().are_read_from(Slow(b"a long text with a swor d fish in it")).unwrap());
    }
}
