//! Tokens of well-known services and private keys, told by their shape.
//!
//! What programs print and people type is kept without them: a journal stays for years and is copied about. A shape is a
//! guess, so the list holds only those that hardly anything else has, and payloads and files that someone hands over by
//! name are not touched: they must come back as they were.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// What stands where a token was.
pub(crate) const MASK: &[u8] = b"***";

/// What may follow the beginning of a token.
#[derive(Debug, Clone, Copy)]
enum Tail {
    Capitals,
    Letters,
    Words,
    Dotted,
}

impl Tail {
    fn takes(self, byte: u8) -> bool {
        match self {
            Self::Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Letters => byte.is_ascii_alphanumeric(),
            Self::Words => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
        }
    }
}

/// How tokens of one service begin, how they go on, and for how long at least.
struct Shape(&'static [u8], Tail, usize);

const SHAPES: &[Shape] = &[
    // Amazon
    Shape(b"AKIA", Tail::Capitals, 16),
    Shape(b"ASIA", Tail::Capitals, 16),
    Shape(b"AROA", Tail::Capitals, 16),
    Shape(b"AIDA", Tail::Capitals, 16),
    // Google
    Shape(b"AIza", Tail::Words, 35),
    Shape(b"ya29.", Tail::Words, 20),
    // GitHub and GitLab
    Shape(b"ghp_", Tail::Letters, 36),
    Shape(b"gho_", Tail::Letters, 36),
    Shape(b"ghu_", Tail::Letters, 36),
    Shape(b"ghs_", Tail::Letters, 36),
    Shape(b"ghr_", Tail::Letters, 36),
    Shape(b"github_pat_", Tail::Words, 22),
    Shape(b"glpat-", Tail::Words, 20),
    // Slack
    Shape(b"xoxa-", Tail::Words, 10),
    Shape(b"xoxb-", Tail::Words, 10),
    Shape(b"xoxe-", Tail::Words, 10),
    Shape(b"xoxe.", Tail::Dotted, 10),
    Shape(b"xoxp-", Tail::Words, 10),
    Shape(b"xoxr-", Tail::Words, 10),
    Shape(b"xoxs-", Tail::Words, 10),
    Shape(b"xapp-", Tail::Words, 10),
    // OpenAI, Anthropic, Stripe
    Shape(b"sk-", Tail::Words, 20),
    Shape(b"sk_live_", Tail::Letters, 16),
    Shape(b"sk_test_", Tail::Letters, 16),
    Shape(b"rk_live_", Tail::Letters, 16),
    // Hugging Face, npm, PyPI, DigitalOcean, SendGrid, Shopify
    Shape(b"hf_", Tail::Letters, 30),
    Shape(b"npm_", Tail::Letters, 36),
    Shape(b"pypi-", Tail::Words, 32),
    Shape(b"dop_v1_", Tail::Letters, 32),
    Shape(b"SG.", Tail::Dotted, 40),
    Shape(b"shpat_", Tail::Letters, 32),
    // JSON Web Tokens: a JSON object in base64, twice, and a signature
    Shape(b"eyJ", Tail::Dotted, 30),
];

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";
/// The line that a key begins with is no longer than this.
const HEADER: usize = 80;
/// So much is held back at most while it may still turn out to be a token.
const HELD: usize = 64 * 1024;
/// How far back a beginning looks for what stands before it.
const CONTEXT: usize = 12;

/// What was found at a place.
#[derive(Debug, PartialEq)]
enum Found {
    Nothing,
    /// A token of so many bytes; it may go on if it reaches the end of what is there.
    Token(usize),
    /// The beginning of something that may be a token, once more is there.
    Perhaps,
}

/// Returns the text without tokens.
pub fn without_tokens(text: &str) -> Cow<'_, str> {
    match without_tokens_in(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // Tokens are ASCII, so what is left is still text.
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Returns the bytes without tokens. JSON stays JSON: nothing that ends a string is part of a token.
pub fn without_tokens_in(bytes: &[u8]) -> Cow<'_, [u8]> {
    let (mut out, mut kept, mut at) = (Vec::new(), 0, 0);
    while let Some(begin) = next_beginning(bytes, at) {
        match found(bytes, begin) {
            Found::Token(length) => {
                out.extend_from_slice(&bytes[kept..begin]);
                out.extend_from_slice(MASK);
                (kept, at) = (begin + length, begin + length);
            }
            _ => at = begin + 1,
        }
    }
    if kept == 0 && out.is_empty() {
        return Cow::Borrowed(bytes);
    }
    out.extend_from_slice(&bytes[kept..]);
    Cow::Owned(out)
}

/// Says whether there are tokens in the text.
pub fn has_tokens(text: &str) -> bool {
    matches!(without_tokens(text), Cow::Owned(_))
}

/// Takes tokens out of every text in a value, also out of the names of members.
pub fn redact_value(value: &mut Value) {
    match value {
        Value::String(text) => redact_text(text),
        Value::Array(items) => items.iter_mut().for_each(redact_value),
        Value::Object(members) => redact_members(members),
        _ => {}
    }
}

/// Takes tokens out of the names and the values of members.
pub fn redact_members(members: &mut Map<String, Value>) {
    members.values_mut().for_each(redact_value);
    if members.keys().any(|name| has_tokens(name)) {
        let all = std::mem::take(members).into_iter();
        *members = all.map(|(name, one)| (without_tokens(&name).into_owned(), one)).collect();
    }
}

/// Takes tokens out of a text.
pub fn redact_text(text: &mut String) {
    if let Cow::Owned(clean) = without_tokens(text) {
        *text = clean;
    }
}

/// Takes tokens out of a stream, wherever it is cut.
#[derive(Debug, Default)]
pub(crate) struct TokenStream {
    /// What was told last, so that beginnings know what stands before them, and after it what is held back.
    kept: Vec<u8>,
    told: usize,
}

impl TokenStream {
    /// Takes the next part in, and returns what can be told by now.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.kept.extend_from_slice(bytes);
        let too_long = self.kept.len() - self.told > HELD;
        self.tell(too_long)
    }

    /// Returns what was held back: no more will follow it.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.tell(true)
    }

    fn tell(&mut self, all: bool) -> Vec<u8> {
        let (mut out, mut at, mut from) = (Vec::new(), self.told, self.told);
        let mut end = self.kept.len();
        while let Some(begin) = next_beginning(&self.kept, at) {
            match found(&self.kept, begin) {
                Found::Token(length) if all || begin + length < self.kept.len() => {
                    out.extend_from_slice(&self.kept[from..begin]);
                    out.extend_from_slice(MASK);
                    (from, at) = (begin + length, begin + length);
                }
                Found::Token(_) | Found::Perhaps if !all => {
                    end = begin;
                    break;
                }
                _ => at = begin + 1,
            }
        }
        out.extend_from_slice(&self.kept[from..end]);
        self.kept.drain(..end.saturating_sub(CONTEXT));
        self.told = end.min(CONTEXT);
        out
    }
}

/// The next place where a token could begin.
fn next_beginning(bytes: &[u8], from: usize) -> Option<usize> {
    let first = |byte: &u8| matches!(byte, b'A' | b'S' | b'-' | b'd'..=b'e' | b'g'..=b'h' | b'n' | b'p' | b'r'..=b's' | b'x'..=b'y');
    bytes.get(from..)?.iter().position(first).map(|at| from + at)
}

fn found(bytes: &[u8], at: usize) -> Found {
    let rest = &bytes[at..];
    if rest[0] == b'-' {
        return key(rest);
    }
    if !begins_word(bytes, at) {
        return Found::Nothing;
    }
    let mut best = Found::Nothing;
    for Shape(prefix, tail, least) in SHAPES.iter().filter(|shape| shape.0[0] == rest[0]) {
        if !rest.starts_with(prefix) {
            if prefix.starts_with(rest) {
                best = Found::Perhaps;
            }
            continue;
        }
        let follow = &rest[prefix.len()..];
        let length = follow.iter().take_while(|byte| tail.takes(**byte)).count();
        if length >= *least && is_random(prefix, &follow[..length]) {
            return Found::Token(prefix.len() + length);
        }
        if length == follow.len() {
            best = Found::Perhaps;
        }
    }
    best
}

/// Words that people write are not made of letters and digits.
fn is_random(prefix: &[u8], tail: &[u8]) -> bool {
    if prefix == b"eyJ" {
        let parts: Vec<_> = tail.split(|byte| *byte == b'.').collect();
        return parts.len() >= 3 && parts[..3].iter().all(|part| part.len() >= 6);
    }
    tail.iter().any(u8::is_ascii_digit) && tail.iter().any(u8::is_ascii_alphabetic)
}

/// Says whether a word begins at a place: also after `\n` as JSON writes it, and after the colours of a terminal.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    let before = &bytes[at.saturating_sub(CONTEXT)..at];
    match before {
        [.., b'\\', _] => true,
        [.., last] if !(last.is_ascii_alphanumeric() || *last == b'_') => true,
        [start @ .., b'm'] => {
            let begin = start.iter().rposition(|byte| *byte == b'[');
            let inside = |byte: &u8| byte.is_ascii_digit() || *byte == b';';
            begin.is_some_and(|begin| start[begin + 1..].iter().all(inside))
        }
        [] => true,
        _ => false,
    }
}

/// A private key, from its first line to its last; one whose end is missing goes as far as it can be one.
fn key(rest: &[u8]) -> Found {
    if !rest.starts_with(BEGIN) {
        return if BEGIN.starts_with(rest) { Found::Perhaps } else { Found::Nothing };
    }
    let header = &rest[BEGIN.len()..rest.len().min(HEADER)];
    let Some(label) = memchr::memmem::find(header, DASHES) else {
        return if rest.len() < HEADER { Found::Perhaps } else { Found::Nothing };
    };
    if memchr::memmem::find(&header[..label], b"PRIVATE KEY").is_none() {
        return Found::Nothing;
    }
    let body = BEGIN.len() + label + DASHES.len();
    let length = rest[body..].iter().take_while(|byte| is_of_key(**byte)).count();
    let text = &rest[body..body + length];
    let Some(end) = memchr::memmem::find(text, END) else { return Found::Token(body + length) };
    let after = body + end + END.len();
    match memchr::memmem::find(&rest[after..body + length], DASHES) {
        Some(dashes) => Found::Token(after + dashes + DASHES.len()),
        None => Found::Token(body + length),
    }
}

/// Base64, headers, and line ends as they are or as JSON writes them.
fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() || b"+/=-:,\\".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Put together here, so that nobody who looks for tokens finds this file.
    fn tokens() -> Vec<String> {
        let tail = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0";
        let capitals = "QWERTY1234ASDFGH";
        let starts = [
            "ghp_",
            "gho_",
            "github_pat_",
            "glpat-",
            "xoxb-",
            "xoxp-",
            "sk-",
            "sk-proj-",
            "sk-ant-api03-",
            "sk_live_",
            "hf_",
            "npm_",
            "pypi-",
            "SG.abc.",
            "AIza",
            "ya29.",
            "dop_v1_",
            "shpat_",
        ];
        let mut all: Vec<String> = starts.iter().map(|start| format!("{start}{tail}")).collect();
        all.extend(["AKIA", "ASIA"].map(|start| format!("{start}{capitals}")));
        all.push(format!("eyJ{tail}.eyJ{tail}.{tail}"));
        let body = format!("{tail}\n{tail}==\n");
        all.push(format!("-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----"));
        all.push(format!(
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{body}-----END PGP PRIVATE KEY BLOCK-----"
        ));
        all
    }

    #[test]
    fn tokens_are_found_in_whatever_stands_around_them() {
        for token in tokens() {
            for (before, after) in [
                ("", ""),
                ("the key is ", " indeed"),
                ("KEY=", "\n"),
                ("\"", "\""),
                ("\u{1b}[32m", "\u{1b}[0m"),
                ("(", ")"),
                ("é ", " é"),
            ] {
                let text = format!("{before}{token}{after}");
                assert_eq!(without_tokens(&text), format!("{before}***{after}"), "{text}");
            }
            let written = json!({"a": format!("line\n{token}"), "b": 1}).to_string();
            assert_eq!(without_tokens(&written), r#"{"a":"line\n***","b":1}"#, "{written}");
        }
    }

    #[test]
    fn what_is_no_token_stays_as_it_is() {
        for text in [
            "",
            "ghp_",
            "ghp_short",
            "risk-assessment-of-the-plan-2024-09-01",
            "sk-",
            "the task-1234567890abcdefghijk",
            "eyJust a word. And another. And more of them here",
            "AKIA is how they begin",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "----------",
            "0123456789012345678901234567890123456789",
            "01985c1e-4a00-7000-8000-000000000001",
            "src/snapshot/restore.rs: expected one of `!` or `::`",
        ] {
            assert!(matches!(without_tokens(text), Cow::Borrowed(_)), "{text}: {}", without_tokens(text));
        }
    }

    #[test]
    fn a_stream_is_redacted_wherever_it_is_cut() {
        for token in tokens() {
            let text = format!("one sk two {token} three -----\ng {token}");
            let whole = without_tokens(&text).into_owned();
            for cut in 0..text.len() {
                for width in [1, 7, text.len()] {
                    let (mut stream, mut out) = (TokenStream::default(), Vec::new());
                    out.extend(stream.push(&text.as_bytes()[..cut]));
                    for part in text.as_bytes()[cut..].chunks(width) {
                        out.extend(stream.push(part));
                    }
                    out.extend(stream.finish());
                    assert_eq!(String::from_utf8_lossy(&out), whole, "cut at {cut}, {width}");
                }
                if token.len() > 60 {
                    break;
                }
            }
        }
    }

    #[test]
    fn nothing_is_held_back_that_cannot_become_a_token() {
        let mut stream = TokenStream::default();
        assert_eq!(stream.push(b"50 % done"), b"50 % done");
        assert_eq!(stream.push(b"\nwaiting for it"), b"\nwaiting for it");
        assert_eq!(stream.push(b" ... gh"), b" ... ", "this could be one");
        assert_eq!(stream.push(b"ost"), b"ghost");
    }

    #[test]
    fn values_are_redacted_in_texts_and_names() {
        let token = &tokens()[0];
        let mut value = json!({"a": [format!("x {token}"), 1, null], token.as_str(): {"b": "plain"}});
        redact_value(&mut value);
        assert_eq!(value, json!({"a": ["x ***", 1, null], "***": {"b": "plain"}}));
    }
}
