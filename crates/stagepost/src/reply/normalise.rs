//! Text as people type it, made comparable: lower case, plain quotes, no accents, words with the stops between them.
//!
//! One pass, linear in the text. Nothing is lost that a decision could need: an unknown sign stays a word of its
//! own, so that it can never be skipped on the way to a consent.

/// What stands between a word and the next one; a later variant outweighs an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    None,
    Comma,
    Stop,
    Question,
}

/// One word: where it lies in the folded text and in the original.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    start: u32,
    end: u32,
    pub(super) source: u32,
    pub(super) after: Gap,
    /// Whether it began with a capital letter.
    pub(super) capital: bool,
    /// Whether the next word belongs to the same name, as in a path.
    pub(super) joined: bool,
}

/// Folded text cut into words.
#[derive(Debug)]
pub(super) struct Folded {
    buffer: String,
    pub(super) spans: Vec<Span>,
    open: Option<(u32, u32, bool)>,
}

impl Folded {
    /// Folds and cuts `text`.
    pub(super) fn new(text: &str) -> Self {
        let buffer = String::with_capacity(text.len() + 8);
        let mut folded = Self { buffer, spans: Vec::with_capacity(text.len() / 5 + 2), open: None };
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            if byte.is_ascii_lowercase() {
                let run = bytes[at..].iter().take_while(|byte| byte.is_ascii_lowercase()).count();
                folded.letters(&text[at..at + run], at);
                at += run;
            } else if byte.is_ascii() {
                folded.ascii(bytes, at, byte);
                at += 1;
            } else {
                // `at` is a character border: every step is one ASCII byte or one whole character.
                let Some(char) = text[at..].chars().next() else { break };
                folded.other(char, at, text[at + char.len_utf8()..].chars().next());
                at += char.len_utf8();
            }
        }
        folded.close(Gap::None);
        folded
    }

    /// Returns where a word lies in the folded text, and that text.
    pub(super) fn place(&self, span: &Span) -> (usize, usize, &str) {
        (span.start as usize, span.end as usize, &self.buffer)
    }

    /// Returns the folded text of a word.
    pub(super) fn word(&self, span: &Span) -> &str {
        &self.buffer[span.start as usize..span.end as usize]
    }

    fn ascii(&mut self, bytes: &[u8], at: usize, byte: u8) {
        let next = bytes.get(at + 1).copied().unwrap_or(b' ');
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => self.push(byte as char, at),
            b'A'..=b'Z' => self.capital(byte, at),
            b'\'' | b'`' => self.apostrophe(next.is_ascii_alphabetic() || !next.is_ascii()),
            b'.' | b':' | b',' if next.is_ascii_digit() && self.in_number() => self.push(byte as char, at),
            b'+' | b'-' if next.is_ascii_digit() && self.open.is_none() => self.push(byte as char, at),
            _ => self.separate(byte, next),
        }
    }

    fn capital(&mut self, byte: u8, at: usize) {
        if self.open.is_none() {
            self.open = Some((self.buffer.len() as u32, at as u32, true));
        }
        self.buffer.push(byte.to_ascii_lowercase() as char);
    }

    /// Closes a word; `src/main.rs` is one name of three words.
    fn separate(&mut self, byte: u8, next: u8) {
        let inside = self.open.is_some();
        self.close(gap_of(byte));
        let joins = match byte {
            b'/' | b'\\' | b'_' | b'@' | b'-' => next.is_ascii_alphanumeric(),
            b'.' => next.is_ascii_lowercase(),
            _ => false,
        };
        if let Some(last) = self.spans.last_mut().filter(|_| inside && joins) {
            last.joined = true;
        }
    }

    fn other(&mut self, char: char, at: usize, next: Option<char>) {
        match char {
            '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2bc}' | '\u{b4}' | '\u{2032}' => {
                self.apostrophe(next.is_some_and(char::is_alphabetic));
            }
            '\u{300}'..='\u{36f}' | '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{feff}' => {}
            '\u{fe00}'..='\u{fe0f}' | '\u{20e3}' | '\u{1f3fb}'..='\u{1f3ff}' => {}
            '\u{2013}' | '\u{2014}' | '\u{3001}' | '\u{ff0c}' | '\u{61b}' | '\u{60c}' => {
                self.close(Gap::Comma)
            }
            '\u{2026}' | '\u{3002}' | '\u{ff01}' | '\u{a1}' => self.close(Gap::Stop),
            '\u{ff1f}' | '\u{bf}' | '\u{61f}' | '\u{37e}' => self.close(Gap::Question),
            _ if char.is_alphanumeric() => char.to_lowercase().for_each(|lower| self.letter(lower, at)),
            _ if char.is_whitespace() || char.is_control() => self.close(Gap::None),
            '\u{a0}'..='\u{bf}' | '\u{2000}'..='\u{206f}' => self.close(Gap::None),
            _ => self.sign(char, at),
        }
    }

    fn push(&mut self, char: char, source: usize) {
        if self.open.is_none() {
            self.open = Some((self.buffer.len() as u32, source as u32, false));
        }
        self.buffer.push(char);
    }

    /// The commonest case by far: plain letters are taken over as they are.
    fn letters(&mut self, letters: &str, source: usize) {
        if self.open.is_none() {
            self.open = Some((self.buffer.len() as u32, source as u32, false));
        }
        self.buffer.push_str(letters);
    }

    fn letter(&mut self, char: char, source: usize) {
        match plain(char) {
            Some(letters) => letters.chars().for_each(|letter| self.push(letter, source)),
            None if ('\u{300}'..='\u{36f}').contains(&char) => {}
            None => self.push(char, source),
        }
    }

    /// A sign such as an emoji is a word by itself.
    fn sign(&mut self, char: char, source: usize) {
        self.close(Gap::None);
        self.push(char, source);
        self.close(Gap::None);
    }

    /// An apostrophe joins within a word and is a quote elsewhere.
    fn apostrophe(&mut self, letter_follows: bool) {
        if self.open.is_some() && letter_follows {
            self.buffer.push('\'');
        } else {
            self.close(Gap::None);
        }
    }

    fn in_number(&self) -> bool {
        self.open.is_some() && self.buffer.ends_with(|last: char| last.is_ascii_digit())
    }

    fn close(&mut self, gap: Gap) {
        if let Some((start, source, capital)) = self.open.take() {
            let end = self.buffer.len() as u32;
            // Words are kept apart, so that a phrase can be shown as it stands here.
            self.buffer.push(' ');
            self.spans.push(Span { start, end, source, after: gap, capital, joined: false });
        } else if let Some(last) = self.spans.last_mut() {
            last.after = last.after.max(gap);
        }
    }
}

fn gap_of(byte: u8) -> Gap {
    match byte {
        b'?' => Gap::Question,
        b'.' | b'!' | b'\n' => Gap::Stop,
        b',' | b';' | b':' | b'(' | b')' => Gap::Comma,
        _ => Gap::None,
    }
}

/// Returns the plain letters for an accented one.
fn plain(char: char) -> Option<&'static str> {
    Some(match char {
        'à'..='å' | 'ā' | 'ă' | 'ą' => "a",
        'ç' | 'ć' | 'č' => "c",
        'è'..='ë' | 'ē' | 'ę' | 'ě' => "e",
        'ì'..='ï' | 'ī' | 'ı' => "i",
        'ñ' | 'ń' | 'ň' => "n",
        'ò'..='ö' | 'ø' | 'ō' | 'ő' => "o",
        'ù'..='ü' | 'ū' | 'ű' | 'ů' => "u",
        'ý' | 'ÿ' => "y",
        'ś' | 'š' | 'ş' => "s",
        'ź' | 'ż' | 'ž' => "z",
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let folded = Folded::new(text);
        folded.spans.iter().map(|span| folded.word(span).to_owned()).collect()
    }

    #[test]
    fn case_quotes_and_accents_are_folded() {
        assert_eq!(words("Don’t  STOP, Señor"), ["don't", "stop", "senor"]);
        assert_eq!(words("'yes' “ok”"), ["yes", "ok"]);
        assert_eq!(words("si\u{301}"), ["si"]);
    }

    #[test]
    fn numbers_and_times_stay_whole() {
        assert_eq!(words("#2. at 4:30, $1,250 +1"), ["2", "at", "4:30", "1,250", "+1"]);
    }

    #[test]
    fn every_emoji_is_a_word_without_its_skin_tone() {
        assert_eq!(words("ok👍🏽👍 2️⃣"), ["ok", "👍", "👍", "2"]);
    }

    #[test]
    fn the_strongest_stop_counts() {
        let folded = Folded::new("really?! yes, ok");
        let gaps: Vec<Gap> = folded.spans.iter().map(|span| span.after).collect();
        assert_eq!(gaps, [Gap::Question, Gap::Comma, Gap::None]);
    }

    #[test]
    fn control_and_invisible_characters_join_nothing_new() {
        assert_eq!(words("ye\u{200b}s\u{7}no\0"), ["yes", "no"]);
    }
}
