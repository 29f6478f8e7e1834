//! Signs around the words: those that may negate them, comment them out or leave a box unticked.
//!
//! Words are folded without their punctuation, so `!yes` and `[ ] yes` would read like `yes`. What is listed here as
//! harmless is what people put around words that they mean; any other sign makes a decision worth asking for again.

use std::borrow::Cow;

/// Blanks out ticked boxes: `[x] yes` says `yes`. Everything else stays where it is.
pub(super) fn without_ticks(text: &str) -> Cow<'_, str> {
    let mut kept = Cow::Borrowed(text);
    if memchr::memchr2(b'[', b'(', text.as_bytes()).is_none() {
        return kept;
    }
    // Both signs are ASCII, and so never a part of another character.
    for (at, open) in text.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'[' | b'(')) {
        let close = if open == b'[' { ']' } else { ')' };
        let mut inside = text[at + 1..].chars();
        let tick = inside.next().filter(|sign| matches!(sign, 'x' | 'X' | '✓' | '✔' | '☑' | '✅'));
        if let Some(tick) = tick.filter(|_| inside.next() == Some(close)) {
            let end = at + tick.len_utf8() + 2;
            kept.to_mut().replace_range(at..end, &" ".repeat(end - at));
        }
    }
    kept
}

/// Whether a sign stands where it may turn the words around it into their opposite, or into no words at all.
pub(super) fn may_negate(text: &str) -> bool {
    // Most replies hold nothing but these; the closer look is for the others.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'.' | b',' | b'\'' | b'"');
    !text.bytes().all(plain) && looks_negated(text)
}

fn looks_negated(text: &str) -> bool {
    let mut place = Place::default();
    let mut rest = text.chars();
    while let Some(sign) = rest.next() {
        let after = rest.as_str();
        if negates(sign, &place, after) {
            return true;
        }
        place.pass(sign);
    }
    false
}

/// What was seen before a sign.
#[derive(Default)]
struct Place {
    /// The two signs before; a space where there are none.
    before: Option<(char, char)>,
    /// Whether the text had a word before.
    spoken: bool,
    /// Whether this line had one.
    begun: bool,
    /// Whether an asterisk led a word: a later one then ends the emphasis.
    emphasised: bool,
}

impl Place {
    fn last(&self) -> char {
        self.before.map_or(' ', |(_, last)| last)
    }

    fn pass(&mut self, sign: char) {
        if sign.is_alphanumeric() {
            self.emphasised |= self.last() == '*';
            (self.spoken, self.begun) = (true, true);
        } else if sign == '\n' {
            self.begun = false;
        }
        self.before = Some((self.last(), sign));
    }
}

fn negates(sign: char, place: &Place, after: &str) -> bool {
    let last = place.last();
    let next = after.chars().next().unwrap_or(' ');
    let (follows, leads) = (last.is_alphanumeric(), next.is_alphanumeric());
    let speaks_on = || after.contains(char::is_alphanumeric);
    match sign {
        _ if sign.is_alphanumeric() => false,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '\'' | '"' | '`' | ':' | ')' | '@' | '&' | '+' => false,
        // "Yes!" is said with force and `!yes` is its opposite.
        '!' | '！' => !place.spoken || (leads && !follows) || matches!(next, '=' | '(' | '[' | '{' | '<'),
        '?' | '？' => !place.spoken,
        // A question that was begun and not ended is one all the same.
        '¿' => !after.contains(['?', '？']),
        '-' => leads && !follows && !next.is_ascii_digit() || !place.begun && (next == '-' || last == '-'),
        // An empty pair is a box nobody ticked, `(*` a comment, `:(` a sad face.
        '(' => {
            let empty = after.trim_start().starts_with(')');
            let sad = last == ':' || (last == '-' && place.before.is_some_and(|(before, _)| before == ':'));
            empty || next == '*' || (sad && !leads)
        }
        '*' => matches!(next, '/' | ')') || (follows && !leads && !place.emphasised),
        '/' => {
            !leads && !follows && next != '/' || next == '*' || (next == '/' && last != ':') || last == '*'
        }
        '\\' => !leads,
        '#' => !next.is_ascii_digit() && !follows,
        '%' | ';' => !place.begun,
        '$' => !next.is_ascii_digit() && !follows,
        '~' => leads,
        '^' => leads || !place.spoken,
        '_' => !leads && !follows && !matches!(last, '*' | '^' | '.' | '!' | '?') && next != '*',
        '=' => next != '>' && !(leads && follows),
        // An arrow points at a word and changes nothing.
        '>' => !matches!(last, '-' | '='),
        '[' | ']' | '{' | '}' | '<' | '|' => true,
        // Some terminals and logs put these around a line; within it they may delete or overwrite words.
        _ if sign.is_ascii_control() => place.spoken && speaks_on(),
        '\u{200e}' | '\u{200f}' | '\u{61c}' => place.spoken && speaks_on(),
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => false,
        '\u{a1}' | '\u{ab}' | '\u{bb}' | '\u{b4}' | '\u{b7}' => false,
        // Dashes, quotes, bullets, dots and primes.
        '\u{2010}'..='\u{201f}' | '\u{2022}' | '\u{2026}' | '\u{2030}'..='\u{2037}' => false,
        '\u{2039}' | '\u{203a}' | '\u{203c}' => false,
        _ if sign.is_whitespace() => false,
        // A bar over a letter is a "not" of its own.
        '\u{305}' | '\u{33f}' => true,
        // What else of these blocks is folded away as if it were a space: "¬", "†", "‽", and signs that turn the
        // direction of what is read.
        '\u{80}'..='\u{bf}' | '\u{2000}'..='\u{206f}' => true,
        // Any other sign is a word of its own, and known or not like a word.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticked_box_is_blank_and_keeps_its_place() {
        assert_eq!(without_ticks("- [x] yes"), "-     yes");
        assert_eq!(without_ticks("(X) a [ ] b"), "    a [ ] b");
        assert_eq!(without_ticks("[✓] ok").trim(), "ok");
        assert_eq!(without_ticks("f(x) = 2"), "f    = 2");
        assert!(matches!(without_ticks("yes (please)"), Cow::Borrowed(_)));
        assert!(matches!(without_ticks("é[é](é"), Cow::Borrowed(_)));
    }

    #[test]
    fn the_place_of_a_sign_decides() {
        for text in ["yes!", "yes !", "**yes**", "build/cache", "https://a.b/c", "$55", "#2", "yes -- ok"] {
            assert!(!may_negate(text), "{text}");
        }
        for text in ["!yes", "yes !ok", "yes*", "// yes", "a // yes", "/* yes */", "# yes", "-- yes", "-yes"]
        {
            assert!(may_negate(text), "{text}");
        }
        assert!(may_negate("¿yes") && !may_negate("¿yes?"));
        for text in ["\u{202e}yes", "yes\u{8}ok", "yes\u{200e}ok", "y\u{305}es", "‽", "yes ¬ok"] {
            assert!(may_negate(text), "{text:?}");
        }
        assert!(!may_negate("\u{1}yes\u{1}") && !may_negate("yes\u{200e}") && !may_negate("\u{feff}yes"));
    }
}
