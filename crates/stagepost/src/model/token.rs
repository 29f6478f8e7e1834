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
    Base64,
}

impl Tail {
    fn takes(self, byte: u8) -> bool {
        match self {
            Self::Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Letters => byte.is_ascii_alphanumeric(),
            Self::Words => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'='),
        }
    }
}

/// How the tail of a token looks, and words that people write do not.
#[derive(Debug, Clone, Copy)]
enum Look {
    /// Letters and digits.
    Mixed,
    /// Letters with digits, or in both cases.
    Random,
    /// As an id of Amazon: with digits, or exactly as long as one.
    Id,
    /// Few of it are words with hyphens between them. Some random tokens have no digit.
    Strange,
    /// Hardly any of it are words with hyphens between them: branches, packages and programs begin so too.
    VeryStrange,
    /// Three parts.
    Jwt,
}

/// How tokens of one service begin, how they go on, for how long at least, and how that looks.
struct Shape(&'static [u8], Tail, usize, Look);

const SHAPES: &[Shape] = &[
    // Amazon
    Shape(b"AKIA", Tail::Capitals, 16, Look::Id),
    Shape(b"ASIA", Tail::Capitals, 16, Look::Id),
    Shape(b"AROA", Tail::Capitals, 16, Look::Id),
    Shape(b"AIDA", Tail::Capitals, 16, Look::Id),
    // Google
    Shape(b"AIza", Tail::Words, 35, Look::Mixed),
    Shape(b"ya29.", Tail::Words, 20, Look::Mixed),
    Shape(b"GOCSPX-", Tail::Words, 20, Look::Strange),
    // GitHub and GitLab
    Shape(b"ghp_", Tail::Letters, 36, Look::Random),
    Shape(b"gho_", Tail::Letters, 36, Look::Random),
    Shape(b"ghu_", Tail::Letters, 36, Look::Random),
    Shape(b"ghs_", Tail::Letters, 36, Look::Random),
    Shape(b"ghr_", Tail::Letters, 36, Look::Random),
    Shape(b"github_pat_", Tail::Words, 22, Look::Mixed),
    Shape(b"glpat-", Tail::Words, 20, Look::Strange),
    Shape(b"glrt-", Tail::Words, 20, Look::Strange),
    // Slack
    Shape(b"xoxa-", Tail::Words, 10, Look::Mixed),
    Shape(b"xoxb-", Tail::Words, 10, Look::Mixed),
    Shape(b"xoxc-", Tail::Words, 10, Look::Mixed),
    Shape(b"xoxd-", Tail::Base64, 10, Look::Mixed),
    Shape(b"xoxe-", Tail::Words, 10, Look::Mixed),
    Shape(b"xoxe.", Tail::Dotted, 10, Look::Mixed),
    Shape(b"xoxp-", Tail::Words, 10, Look::Mixed),
    Shape(b"xoxr-", Tail::Words, 10, Look::Mixed),
    Shape(b"xoxs-", Tail::Words, 10, Look::Mixed),
    Shape(b"xapp-", Tail::Words, 20, Look::VeryStrange),
    // OpenAI, Anthropic and those who do as they do; Groq, xAI, Hugging Face
    Shape(b"sk-", Tail::Words, 20, Look::VeryStrange),
    Shape(b"gsk_", Tail::Letters, 40, Look::Random),
    Shape(b"xai-", Tail::Letters, 40, Look::Random),
    Shape(b"hf_", Tail::Letters, 30, Look::Random),
    // Stripe
    Shape(b"sk_live_", Tail::Letters, 16, Look::Mixed),
    Shape(b"sk_test_", Tail::Letters, 16, Look::Mixed),
    Shape(b"rk_live_", Tail::Letters, 16, Look::Mixed),
    Shape(b"whsec_", Tail::Base64, 24, Look::Random),
    // npm, PyPI, Docker, DigitalOcean, SendGrid, Shopify, Vault, age
    Shape(b"npm_", Tail::Letters, 36, Look::Random),
    Shape(b"pypi-", Tail::Words, 32, Look::VeryStrange),
    Shape(b"dckr_pat_", Tail::Words, 20, Look::Random),
    Shape(b"dop_v1_", Tail::Letters, 32, Look::Mixed),
    Shape(b"SG.", Tail::Dotted, 40, Look::Mixed),
    Shape(b"shpat_", Tail::Letters, 32, Look::Mixed),
    Shape(b"hvs.", Tail::Words, 20, Look::Strange),
    Shape(b"AGE-SECRET-KEY-1", Tail::Capitals, 50, Look::Mixed),
    // JSON Web Tokens: a JSON object in base64, twice, and a signature
    Shape(b"eyJ", Tail::Dotted, 30, Look::Jwt),
];

/// Which shapes begin with a byte: one bit for each.
const BY_FIRST: [u64; 256] = {
    assert!(SHAPES.len() <= 64, "a shape is one bit of a number");
    let (mut table, mut at) = ([0; 256], 0);
    while at < SHAPES.len() {
        table[SHAPES[at].0[0] as usize] |= 1 << at;
        at += 1;
    }
    table
};

/// The bytes at which something can begin: a shape, a private key, a URL's `//`, or a word that announces a secret.
const MAY_BEGIN: [bool; 256] = {
    let (mut table, mut byte) = ([false; 256], 0);
    while byte < 256 {
        table[byte] = BY_FIRST[byte] != 0 || matches!(byte as u8, b'-' | b'/' | b'a' | b'A' | b'b' | b'B');
        byte += 1;
    }
    table
};

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";
/// The line that a key begins with is no longer than this.
const HEADER: usize = 80;
/// So much is held back at most while it may still turn out to be a token.
const HELD: usize = 64 * 1024;
/// How far back a beginning looks for what stands before it.
const CONTEXT: usize = 40;

/// What was found at a place.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Found {
    Nothing,
    /// A token: from where to where, counted from the place. What is before it only announces it. It may go on if it
    /// reaches the end of what is there.
    Token(usize, usize),
    /// The beginning of something that may be a token, once more is there.
    Perhaps,
}

/// Returns the text without tokens.
pub fn without_tokens(text: &str) -> Cow<'_, str> {
    match without_tokens_in(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // What stands before and after a token is ASCII, so what is left is still text.
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Returns the bytes without tokens. JSON stays JSON: nothing that ends a string is part of a token.
pub fn without_tokens_in(bytes: &[u8]) -> Cow<'_, [u8]> {
    let (mut out, mut kept, mut at) = (Vec::new(), 0, 0);
    while let Some(begin) = next_beginning(bytes, at) {
        match found(bytes, begin) {
            Found::Token(start, end) => {
                out.extend_from_slice(&bytes[kept..begin + start]);
                out.extend_from_slice(MASK);
                (kept, at) = (begin + end, begin + end);
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
                Found::Token(start, end) if all || begin + end < self.kept.len() => {
                    out.extend_from_slice(&self.kept[from..begin + start]);
                    out.extend_from_slice(MASK);
                    (from, at) = (begin + end, begin + end);
                }
                Found::Token(..) | Found::Perhaps if !all => {
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
    let may_begin = |byte: &u8| MAY_BEGIN[usize::from(*byte)];
    bytes.get(from..)?.iter().position(may_begin).map(|at| from + at)
}

fn found(bytes: &[u8], at: usize) -> Found {
    let rest = &bytes[at..];
    match rest[0] {
        b'-' => return key(rest),
        b'/' => return if bytes[..at].ends_with(b":") { password(rest) } else { Found::Nothing },
        _ => {}
    }
    let is_word = begins_word(bytes, at);
    let announced = match rest[0].to_ascii_lowercase() {
        // Also at the end of a name, such as `TF_VAR_aws_secret_access_key`.
        b'a' if is_word || bytes[..at].ends_with(b"_") => announced_by_name(rest),
        b'b' if is_word => bearer(rest),
        _ => Found::Nothing,
    };
    if !is_word || matches!(announced, Found::Token(..)) {
        return announced;
    }
    match shaped(rest) {
        Found::Nothing => announced,
        other => other,
    }
}

/// A token that begins as those of its service do.
fn shaped(rest: &[u8]) -> Found {
    let (mut best, mut shapes) = (Found::Nothing, BY_FIRST[usize::from(rest[0])]);
    while shapes != 0 {
        let Shape(prefix, tail, least, look) = &SHAPES[shapes.trailing_zeros() as usize];
        shapes &= shapes - 1;
        if !rest.starts_with(prefix) {
            if prefix.starts_with(rest) {
                best = Found::Perhaps;
            }
            continue;
        }
        let follow = &rest[prefix.len()..];
        let length = follow.iter().take_while(|byte| tail.takes(**byte)).count();
        if length >= *least && look.fits(&follow[..length]) {
            return Found::Token(0, prefix.len() + length);
        }
        if length == follow.len() {
            best = Found::Perhaps;
        }
    }
    best
}

impl Look {
    fn fits(self, tail: &[u8]) -> bool {
        let [digit, lower, upper] = [u8::is_ascii_digit, u8::is_ascii_lowercase, u8::is_ascii_uppercase]
            .map(|is: fn(&u8) -> bool| tail.iter().any(is));
        let mixed = digit && (lower || upper);
        match self {
            Self::Mixed => mixed,
            Self::Random => mixed || (lower && upper),
            Self::Id => mixed || (tail.len() == 16 && distinct(tail) >= 6),
            Self::Strange => strange(tail).0 >= 12,
            Self::VeryStrange => {
                let (all, longest) = strange(tail);
                longest >= 24 || (all >= 16 && mixed && lower && upper)
            }
            Self::Jwt => {
                let parts: Vec<_> = tail.split(|byte| *byte == b'.').collect();
                parts.len() >= 3 && parts[..3].iter().all(|part| part.len() >= 6)
            }
        }
    }
}

fn distinct(bytes: &[u8]) -> usize {
    bytes.iter().enumerate().filter(|(at, byte)| !bytes[..*at].contains(byte)).count()
}

/// How many bytes of a tail are in parts that are no words, and how long the longest of these parts is.
fn strange(tail: &[u8]) -> (usize, usize) {
    let parts = tail.split(|byte| matches!(byte, b'-' | b'_'));
    let strange = parts.filter(|part| !is_wordlike(part)).map(<[u8]>::len);
    strange.fold((0, 0), |(all, longest), length| (all + length, longest.max(length)))
}

/// A word as people write them, in any case, perhaps with a short number behind it, or a number.
fn is_wordlike(part: &[u8]) -> bool {
    let letters = part.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (word, number) = part.split_at(letters);
    let one_case = word.iter().skip(1).all(u8::is_ascii_lowercase) || word.iter().all(u8::is_ascii_uppercase);
    let most = if word.is_empty() { usize::MAX } else { 3 };
    one_case && number.iter().all(u8::is_ascii_digit) && number.len() <= most
}

/// Says whether a word begins at a place: also after `\n` as JSON writes it, after `%3D` as URLs do, and after what tells a
/// terminal to use a colour.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    let before = &bytes[at.saturating_sub(CONTEXT)..at];
    let hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    match before {
        [] | [.., b'\\', _] => true,
        [.., last] if !(last.is_ascii_alphanumeric() || *last == b'_') => true,
        [.., b'%', a, b] if hex(&[*a, *b]) => true,
        [.., b'\\', b'u', a, b, c, d] if hex(&[*a, *b, *c, *d]) => true,
        [start @ .., b'm' | b'K'] => {
            let begin = start.iter().rposition(|byte| *byte == b'[');
            let inside = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b';' | b':');
            begin.is_some_and(|begin| start[begin + 1..].iter().all(inside))
        }
        _ => false,
    }
}

/// Reads on in something that announces a secret: `Err` if it is none, or too little is there to say.
type Read = Result<usize, Found>;

fn word(rest: &[u8], at: usize, word: &[u8]) -> Read {
    let there = &rest[at..rest.len().min(at + word.len())];
    match there.eq_ignore_ascii_case(&word[..there.len()]) {
        false => Err(Found::Nothing),
        true if there.len() < word.len() => Err(Found::Perhaps),
        true => Ok(at + word.len()),
    }
}

/// What stands between a name and its value: at least one of these bytes, and few.
fn gap(rest: &[u8], at: usize, of: &[u8]) -> Read {
    let length = rest[at..].iter().take(10).take_while(|byte| of.contains(byte)).count();
    match length {
        _ if at + length == rest.len() => Err(Found::Perhaps),
        0 => Err(Found::Nothing),
        _ => Ok(at + length),
    }
}

fn secret(rest: &[u8], at: usize, least: usize, fits: impl Fn(&[u8]) -> bool) -> Found {
    let of_secret = |byte: &&u8| Tail::Base64.takes(**byte) || matches!(**byte, b'.' | b'~');
    let length = rest[at..].iter().take_while(of_secret).count();
    match length >= least && fits(&rest[at..at + length]) {
        true => Found::Token(at, at + length),
        false if at + length == rest.len() => Found::Perhaps,
        false => Found::Nothing,
    }
}

/// Between a name and its value, as headers, settings, JSON and shells write it.
const ASSIGNED: &[u8] = b"\"'\\ \t:=";

/// `Authorization: Bearer …`, `aws_secret_access_key=…`, `AccountKey=…`
fn announced_by_name(rest: &[u8]) -> Found {
    let named = |name: &[u8]| word(rest, 0, name).and_then(|at| gap(rest, at, ASSIGNED));
    let random = |value: &[u8]| Look::Random.fits(value);
    let read = match rest.get(1).map(u8::to_ascii_lowercase) {
        Some(b'u') => named(b"authorization").and_then(|at| scheme(rest, at)).map(|at| {
            secret(rest, at, 8, |value| random(value) || value.len() >= 20 || value.ends_with(b"="))
        }),
        Some(b'w') => named(b"aws_secret_access_key").map(|at| secret(rest, at, 30, random)),
        Some(b'c') => named(b"accountkey").map(|at| secret(rest, at, 40, random)),
        Some(_) => Err(Found::Nothing),
        None => Err(Found::Perhaps),
    };
    read.unwrap_or_else(|none| none)
}

fn scheme(rest: &[u8], at: usize) -> Read {
    let read = [&b"bearer"[..], b"basic", b"token"].map(|scheme| word(rest, at, scheme));
    let perhaps = read.contains(&Err(Found::Perhaps));
    match read.into_iter().find_map(Result::ok) {
        Some(at) => gap(rest, at, b" \t"),
        None => Err(if perhaps { Found::Perhaps } else { Found::Nothing }),
    }
}

/// `Bearer …` without its header; people write about bearers too.
fn bearer(rest: &[u8]) -> Found {
    let value = word(rest, 0, b"bearer").and_then(|at| gap(rest, at, b" \t"));
    value.map_or_else(|none| none, |at| secret(rest, at, 20, |value| Look::Mixed.fits(value)))
}

/// The password of `https://user:password@host`, from the slashes on.
fn password(rest: &[u8]) -> Found {
    let Ok(user) = word(rest, 0, b"//") else {
        return if rest.len() < 2 { Found::Perhaps } else { Found::Nothing };
    };
    let of_user =
        |byte: &&u8| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"-._~!$&'()*+,;=%".contains(*byte);
    let length = |at: usize| rest[at..].iter().take_while(of_user).count();
    let colon = user + length(user);
    match rest.get(colon) {
        Some(b':') => {}
        Some(_) => return Found::Nothing,
        None => return Found::Perhaps,
    }
    // A password may have colons in it.
    let start = colon + 1;
    let mut end = start + length(start);
    while rest.get(end) == Some(&b':') {
        end += 1 + length(end + 1);
    }
    let given = &rest[start..end];
    match rest.get(end) {
        // A variable is no password, and what was taken out is gone.
        Some(b'@') if !given.is_empty() && given[0] != b'$' && given.iter().any(|byte| *byte != b'*') => {
            Found::Token(start, end)
        }
        Some(_) => Found::Nothing,
        None => Found::Perhaps,
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
    let Some(end) = memchr::memmem::find(text, END) else { return Found::Token(0, body + length) };
    let after = body + end + END.len();
    match memchr::memmem::find(&rest[after..body + length], DASHES) {
        Some(dashes) => Found::Token(0, after + dashes + DASHES.len()),
        None => Found::Token(0, body + length),
    }
}

/// Base64, headers, line ends as they are or as JSON writes them, and what quotes or numbers lines.
fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() || b"+/=-:,\\>|#".contains(&byte)
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
            "hvs.",
            "dckr_pat_",
            "gsk_",
            "xai-",
            "GOCSPX-",
            "glrt-",
            "whsec_",
            "xoxc-",
            "xoxd-",
            "sk-or-v1-",
        ];
        let mut all: Vec<String> = starts.iter().map(|start| format!("{start}{tail}")).collect();
        all.extend(["AKIA", "ASIA"].map(|start| format!("{start}{capitals}")));
        all.push(format!("AGE-SECRET-KEY-1{capitals}{capitals}{capitals}{capitals}"));
        // As random as any, without a digit.
        all.push(["hf_", "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH"].concat());
        all.push(["glpat-", "aBcDeFgHiJkL_mNoPqRs"].concat());
        all.push(["AK", "IAQWERTYUIOPASDFGH"].concat());
        all.push(format!("sk-{}", "0123456789abcdef".repeat(2)));
        all.push("xapp-1-A0123ABCDEF-1234567890-".to_owned() + &"0123456789abcdef".repeat(4));
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
                ("\u{1b}[01;31m\u{1b}[K", "\u{1b}[m"),
                ("\u{1b}[38;2;255;255;255m", "\u{1b}[0m"),
                ("https://host/?key%3D", "&more"),
                ("\\u003d", "\""),
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
            "sk-4321-fix-the-login-page",
            "sk-0000-production-release-1",
            "sk-payments-worker-7d9f8b6c5-x2x9q",
            "sk-01985c1e-4a00-7000-8000-000000000001",
            "xapp-gtk3-module",
            "pypi-publish-workflow-v2-release-candidate",
            "glpat-rotation-for-the-build-2024",
            "hf_abcdefghijklmnopqrstuvwxyzabcdefgh",
            "AKIAZZZZZZZZZZZZZZZZ",
            "Authorization: Basic authentication",
            "the bearer of good news is authorized",
            "http://localhost:3000/@user",
            "https://user:$PASSWORD@host",
            "https://user:***@host",
            "ssh://git@github.com:22/path",
            "std::vec // a:b@c",
            "aws_secret_access_key = ${SECRET}",
        ] {
            assert!(matches!(without_tokens(text), Cow::Borrowed(_)), "{text}: {}", without_tokens(text));
        }
    }

    /// What announces a secret stays; these are the text and what is left of it.
    fn announced() -> Vec<(String, &'static str)> {
        let value = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0";
        let twice = format!("{value}/{value}==");
        vec![
            ("https://user:pass@host/path".to_owned(), "https://user:***@host/path"),
            ("redis://:p%40ss:w0rd@host:6379".to_owned(), "redis://:***@host:6379"),
            (format!("Authorization: Bearer {value}"), "Authorization: Bearer ***"),
            ("authorization: basic YWxhZGRpbjpvcGVuc2VzYW1l".to_owned(), "authorization: basic ***"),
            (format!(r#"{{"Authorization": "Bearer {value}"}}"#), r#"{"Authorization": "Bearer ***"}"#),
            (format!("a bearer {value}, you see"), "a bearer ***, you see"),
            (format!("AccountName=x;AccountKey={twice};End"), "AccountName=x;AccountKey=***;End"),
            (format!("AWS_SECRET_ACCESS_KEY='{value}'"), "AWS_SECRET_ACCESS_KEY='***'"),
            (format!("TF_VAR_aws_secret_access_key = {value}\n"), "TF_VAR_aws_secret_access_key = ***\n"),
            (
                format!(r#"{{"aws_secret_access_key": "{value}", "b": 1}}"#),
                r#"{"aws_secret_access_key": "***", "b": 1}"#,
            ),
        ]
    }

    #[test]
    fn what_is_announced_is_taken_out_and_what_announces_it_stays() {
        for (text, left) in announced() {
            assert_eq!(without_tokens(&text), left);
            assert!(matches!(without_tokens(left), Cow::Borrowed(_)), "{left}");
            let (mut stream, mut out) = (TokenStream::default(), Vec::new());
            text.bytes().for_each(|byte| out.extend(stream.push(&[byte])));
            out.extend(stream.finish());
            assert_eq!(String::from_utf8_lossy(&out), left);
        }
    }

    #[test]
    fn a_key_whose_lines_are_quoted_or_numbered_loses_them_all() {
        let line = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0";
        for before in ["> ", ">> ", "1| ", "  12 | ", "# ", "+"] {
            let lines =
                ["-----BEGIN PRIVATE KEY-----", line, line, "-----END PRIVATE KEY-----", "that was it."];
            let text = lines.map(|line| format!("{before}{line}\n")).concat();
            assert_eq!(without_tokens(&text), format!("{before}***\n{before}that was it.\n"));
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
