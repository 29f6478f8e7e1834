//! Taking secrets out of text before it is stored or shown: those of a step, and whatever looks like a token.

use memchr::memmem;
use serde_json::Value;

use crate::model::{TokenStream, redact_value};

/// What stands where a secret was.
const MASK: &[u8] = b"***";

/// The secrets of a step.
#[derive(Debug, Clone, Default)]
pub(super) struct Secrets {
    /// Longest first: one may be the beginning of another.
    values: Vec<Vec<u8>>,
}

impl Secrets {
    /// Keeps what must not be seen; nothing at all is no secret.
    pub(super) fn new(values: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut values: Vec<Vec<u8>> = values.into_iter().filter(|value| !value.is_empty()).collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self { values }
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
}
