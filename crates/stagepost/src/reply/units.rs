//! Words joined into units: the longest phrases the language knows, with what they do and what negates them.

use super::lexicon::{Classes, Entry, Lexicon};
use super::normalise::{Folded, Gap};

/// One word of a reply, contractions spelled out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    /// The word as the lexicon spells it, or as it was typed.
    pub(super) text: &'a str,
    pub(super) entry: Option<&'static Entry>,
    /// Where it begins in the original text.
    pub(super) source: usize,
    pub(super) after: Gap,
}

impl Token<'_> {
    /// Whether the language knows what the word does by itself.
    pub(super) fn is_known(&self) -> bool {
        self.entry.is_some_and(Entry::is_known)
    }
}

/// One or several words that do one thing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit<'a> {
    /// The first word.
    pub(super) text: &'a str,
    pub(super) first: usize,
    pub(super) len: usize,
    pub(super) classes: Classes,
    pub(super) value: Option<i32>,
    pub(super) after: Gap,
    /// Whether a negator reaches it.
    pub(super) negated: bool,
}

impl Unit<'_> {
    pub(super) fn is(&self, classes: Classes) -> bool {
        self.classes.any(classes)
    }

    /// Whether it is of these classes and not negated.
    pub(super) fn says(&self, classes: Classes) -> bool {
        self.is(classes) && !self.negated
    }
}

/// Cuts folded text into tokens of a language.
pub(super) fn tokens<'a>(folded: &'a Folded, lexicon: &'static Lexicon) -> Vec<Token<'a>> {
    let mut tokens = Vec::with_capacity(folded.spans.len() + 4);
    for span in &folded.spans {
        let (word, source) = (folded.word(span), span.source as usize);
        let entry = lexicon.get(word);
        let token = |text: &'a str, entry: Option<&'static Entry>, after| {
            let text = entry.map_or(text, |entry| entry.word);
            Token { text, entry, source, after }
        };
        let at = if entry.is_none() { word.bytes().position(|byte| byte == b'\'') } else { None };
        let parts = match (entry, at) {
            (Some(entry), _) if !entry.short.is_empty() => entry.short.clone(),
            (None, Some(at)) => vec![&word[..at], &word[at..]],
            _ => {
                tokens.push(token(word, entry, span.after));
                continue;
            }
        };
        let last = parts.len() - 1;
        for (index, part) in parts.into_iter().enumerate() {
            tokens.push(token(part, lexicon.get(part), if index == last { span.after } else { Gap::None }));
        }
    }
    tokens
}

/// Joins tokens into units and marks what is negated.
pub(super) fn units<'a>(tokens: &[Token<'a>]) -> Vec<Unit<'a>> {
    let mut units: Vec<Unit<'a>> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let unit = unit_at(tokens, at);
        at += unit.len;
        units.push(unit);
    }
    settle(&mut units, tokens);
    negate(&mut units);
    units
}

fn unit_at<'a>(tokens: &[Token<'a>], at: usize) -> Unit<'a> {
    let token = tokens[at];
    let single = Unit {
        text: token.text,
        first: at,
        len: 1,
        classes: token.entry.map_or(Classes::default(), |entry| entry.classes),
        value: token.entry.and_then(|entry| entry.value),
        after: token.after,
        negated: false,
    };
    if token.text.starts_with(|first: char| first.is_ascii_digit()) && !single.is(Classes::ORDINAL) {
        return numeral(single);
    }
    // No phrase goes on over a stop.
    let second = tokens.get(at + 1).filter(|_| token.after == Gap::None).and_then(|next| next.entry);
    let (Some(entry), Some(second)) = (token.entry, second) else { return single };
    for phrase in entry.phrases_with(second.number) {
        let end = at + 1 + phrase.rest.len();
        if end <= tokens.len() && holds(&tokens[at..end], &phrase.rest) {
            let classes = phrase.classes.without(Classes::ASKING);
            let Some(classes) = settled(classes, tokens, end) else { continue };
            let after = tokens[end - 1].after;
            return Unit { len: end - at, classes, value: None, after, ..single };
        }
    }
    single
}

/// A short answer ("I do") agrees where its clause ends, and is no phrase at all where it goes on.
fn settled(classes: Classes, tokens: &[Token<'_>], end: usize) -> Option<Classes> {
    if !classes.any(Classes::TAIL) {
        return Some(classes).filter(|classes| *classes != Classes::default());
    }
    let ends =
        tokens[end - 1].after != Gap::None || tokens.get(end).is_none_or(|next| is_courtesy(next.text));
    let rest = classes.without(Classes::TAIL);
    if ends { Some(Classes::YES) } else { Some(rest).filter(|rest| *rest != Classes::default()) }
}

/// Whether the tokens after the first are these words, with nothing but spaces between.
pub(super) fn holds(tokens: &[Token<'_>], rest: &[u32]) -> bool {
    let follows = |(pair, word): (&[Token<'_>], &u32)| {
        pair[0].after == Gap::None && pair[1].entry.is_some_and(|entry| entry.number == *word)
    };
    tokens.windows(2).zip(rest).all(follows)
}

fn numeral(unit: Unit<'_>) -> Unit<'_> {
    let digits = unit.text.len() - unit.text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = &unit.text[digits..];
    let value = unit.text[..digits].parse().ok().filter(|_| rest.is_empty() || is_ordinal_ending(rest));
    let classes = if is_ordinal_ending(rest) { Classes::ORDINAL } else { Classes::NUM };
    Unit { classes, value, ..unit }
}

fn is_ordinal_ending(rest: &str) -> bool {
    ["st", "nd", "rd", "th"].contains(&rest)
}

/// Settles what depends on neighbours: "one" as a thing, "no." before a number, "first" at a clause's end.
fn settle(units: &mut [Unit<'_>], tokens: &[Token<'_>]) {
    for at in 0..units.len() {
        let next = units.get(at + 1).copied();
        let unit = units[at];
        if unit.text == "first" && unit.len == 1 && unit.after == Gap::None && next.is_some() {
            // "Check it first" puts off, "the first part" does not.
            units[at].classes = unit.classes.without(Classes::LATER);
        }
        let pointed = unit.first.checked_sub(1).map(|before| &tokens[before]);
        let pointed =
            pointed.is_some_and(|one| matches!(one.text, "that" | "this") && one.after == Gap::None);
        if unit.text == "one" && unit.len == 1 && at > 0 && (pointed || makes_a_thing(&units[at - 1])) {
            units[at].classes = Classes::FILL;
            units[at].value = None;
        }
        if unit.is(Classes::STOP) && unit.len == 1 && is_noun(units, at) {
            units[at].classes = Classes::default();
        }
        if unit.text == "help" && unit.len == 1 && units[..at].iter().rev().take(6).any(is_thanking) {
            units[at].classes = Classes::FILL;
        }
        let numbered = next.is_some_and(|next| next.is(Classes::NUM) && next.value.is_some());
        if unit.text == "no" && unit.len == 1 && numbered && abbreviated(&tokens[unit.first]) {
            units[at].classes = Classes::OPTION;
        }
    }
}

/// "no. 4" and "no.4" number something; "no, 4" and "no 4" refuse.
fn abbreviated(token: &Token<'_>) -> bool {
    token.after == Gap::Stop
}

/// Whether "one" after this unit is a thing ("the coastal one") rather than a number ("option one").
fn makes_a_thing(before: &Unit<'_>) -> bool {
    let unknown = before.classes == Classes::default();
    let making = Classes::DET.or(Classes::MORE).or(Classes::ORDINAL).or(Classes::GOOD).or(Classes::CHANGE);
    before.after == Gap::None && !before.is(Classes::OPTION) && (unknown || before.is(making))
}

/// "A lunch stop", "the end": a thing, not a call to stop.
fn is_noun(units: &[Unit<'_>], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| &units[before]) else { return false };
    let article = matches!(before.text, "a" | "an" | "the" | "another" | "each" | "every" | "my" | "our");
    let placed = |next: &Unit<'_>| matches!(next.text, "at" | "in" | "on" | "near" | "for" | "is" | "was");
    let named = before.classes == Classes::default() && (at > 1 || units.get(at + 1).is_some_and(placed));
    before.after == Gap::None && (article || named)
}

/// "Thank you for all your kind help" asks for none.
fn is_thanking(unit: &Unit<'_>) -> bool {
    matches!(unit.text, "thanks" | "thank" | "appreciate" | "appreciated" | "great" | "your" | "all")
}

pub(super) fn is_courtesy(word: &str) -> bool {
    matches!(word, "please" | "pls" | "plz" | "thanks" | "thank" | "thx" | "indeed" | "sir")
}

/// A negator, or a call to stop, reaches to the end of its clause; one that is cut off by a comma negates nothing.
fn negate(units: &mut [Unit<'_>]) {
    let mut negating = false;
    for unit in units {
        let turns = unit.is(Classes::CONTRAST.or(Classes::COND));
        unit.negated = negating && !turns && !unit.is(Classes::NOT.or(Classes::NO));
        negating = (negating && !turns) || unit.is(Classes::NOT.or(Classes::NO).or(Classes::STOP));
        negating &= unit.after == Gap::None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::question::Language;
    use super::*;

    /// Shows each unit as its words, with `!` where it is negated.
    fn shown(text: &str) -> Vec<String> {
        let folded = Folded::new(text);
        let tokens = tokens(&folded, Lexicon::of(Language::English));
        let show = |unit: Unit<'_>| {
            let words: Vec<&str> =
                tokens[unit.first..unit.first + unit.len].iter().map(|token| token.text).collect();
            format!("{}{}", if unit.negated { "!" } else { "" }, words.join(" "))
        };
        units(&tokens).into_iter().map(show).collect()
    }

    fn classes(text: &str, at: usize) -> Classes {
        let folded = Folded::new(text);
        units(&tokens(&folded, Lexicon::of(Language::English)))[at].classes
    }

    #[test]
    fn contractions_are_spelled_out() {
        assert_eq!(shown("thats what ive got"), ["that", "'s", "what", "i", "'ve", "got"]);
        assert_eq!(shown("cant"), ["can", "not"]);
    }

    #[test]
    fn the_longest_phrase_wins_and_stops_at_a_comma() {
        assert_eq!(shown("not bad at all"), ["not bad at all"]);
        assert_eq!(shown("not bad, at all"), ["not bad", "at", "all"]);
        assert_eq!(shown("go, ahead"), ["go", "ahead"]);
    }

    #[test]
    fn a_negator_reaches_to_the_end_of_its_clause() {
        assert_eq!(shown("do not send it, send that"), ["do", "not", "!send", "!it", "send", "that"]);
        assert_eq!(shown("not red but blue"), ["not", "!red", "but", "blue"]);
    }

    #[test]
    fn one_is_a_number_only_by_itself() {
        assert!(classes("one", 0).any(Classes::NUM));
        assert!(classes("option one", 1).any(Classes::NUM));
        assert!(!classes("a coastal one", 2).any(Classes::NUM));
        assert!(!classes("the second one", 2).any(Classes::NUM));
    }

    #[test]
    fn an_abbreviated_number_is_no_refusal() {
        assert!(!classes("no. 4", 0).any(Classes::NO));
        assert!(classes("no, 4", 0).any(Classes::NO));
    }

    #[test]
    fn a_stop_on_the_way_ends_nothing() {
        assert!(!classes("a lunch stop", 2).any(Classes::STOP));
        assert!(!classes("the end", 1).any(Classes::STOP));
        assert!(classes("please stop", 1).any(Classes::STOP));
        assert!(classes("Robin stop", 1).any(Classes::STOP));
    }

    #[test]
    fn short_answers_agree_only_at_the_end() {
        assert!(classes("I do.", 0).any(Classes::YES));
        assert!(!classes("I do wonder", 0).any(Classes::YES));
    }
}
