//! Words joined into units: the longest phrases the language knows, with what they do and what negates them.

use super::echo::stem;
use super::lexicon::{Classes, Entry, Lexicon};
use super::normalise::{Folded, Gap};

/// One word of a reply, contractions spelled out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    /// The word as the lexicon spells it, or as it was typed.
    pub(super) text: &'a str,
    /// The word without its commonest endings.
    pub(super) stem: &'a str,
    pub(super) entry: Option<&'static Entry>,
    /// Whether it began with a capital letter.
    pub(super) capital: bool,
    /// Whether the next word belongs to the same name.
    pub(super) joined: bool,
    /// Where it begins in the original text.
    pub(super) source: usize,
    /// The whole folded text, and from where to where it lies there.
    folded: (usize, usize, &'a str),
    pub(super) after: Gap,
}

impl<'a> Token<'a> {
    /// The words from this one to `last`, as they were said.
    fn phrase_to(&self, last: &Token<'_>) -> &'a str {
        let (start, _, text) = self.folded;
        text.get(start..last.folded.1).unwrap_or_default()
    }

    /// Whether the language knows what the word does by itself.
    pub(super) fn is_known(&self) -> bool {
        self.entry.is_some_and(Entry::is_known)
    }

    /// What the word can do by itself.
    pub(super) fn classes(&self) -> Classes {
        self.entry.map_or(Classes::default(), |entry| entry.classes)
    }

    /// Bits of the words for the same.
    pub(super) fn same(&self) -> u64 {
        self.entry.map_or(0, |entry| entry.same)
    }
}

/// One or several words that do one thing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit<'a> {
    /// The first word.
    pub(super) text: &'a str,
    /// All of its words, as they were said.
    pub(super) phrase: &'a str,
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
            let (text, stem) = entry.map_or_else(|| (text, stem(text)), |entry| (entry.word, entry.stem));
            let (capital, joined, folded) = (span.capital, span.joined, folded.place(span));
            Token { text, stem, entry, source, folded, after, capital, joined }
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
pub(super) fn units<'a>(tokens: &[Token<'a>], lexicon: &Lexicon) -> Vec<Unit<'a>> {
    let mut units: Vec<Unit<'a>> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let unit = unit_at(tokens, at, lexicon);
        at += unit.len;
        units.push(unit);
    }
    settle(&mut units, tokens);
    join_faultless(&mut units, tokens);
    negate(&mut units);
    units
}

/// "I don't have any objections", "nothing wrong", "no issues": a negator and a fault it reaches are one agreement.
fn join_faultless<'a>(units: &mut Vec<Unit<'a>>, tokens: &[Token<'a>]) {
    let is_fault = |unit: &Unit<'_>| tokens[unit.first].classes().any(Classes::FAULT) && unit.len == 1;
    let negates =
        |unit: &Unit<'_>| matches!(unit.text, "no" | "not" | "nothing" | "without") && unit.len == 1;
    let leads = |unit: &Unit<'_>| {
        matches!(
            unit.text,
            "have" | "see" | "find" | "got" | "any" | "a" | "the" | "single" | "is" | "'s" | "really"
        ) && unit.len == 1
    };
    let Some(fault) = units.iter().position(is_fault) else { return };
    let joined = |unit: &Unit<'_>| unit.after == Gap::None;
    let Some(from) = units[..fault].iter().rposition(|unit| !(leads(unit) && joined(unit))) else { return };
    // "No wrong" and "no mistake" may be "no: wrong" with the stop left out.
    let (negator, word) = (units[from].text, units[fault].text);
    let exclaimed = match word {
        "wrong" | "missing" | "bad" | "incorrect" | "amiss" => negator != "nothing",
        "mistake" | "error" | "fault" | "flaw" => negator == "no",
        _ => false,
    };
    if exclaimed
        || !negates(&units[from])
        || !joined(&units[from])
        || from.checked_sub(1).is_some_and(|at| units[at].is(Classes::NOT))
    {
        return;
    }
    let last = units[fault];
    let first = &mut units[from];
    (first.len, first.after) = (last.first + last.len - first.first, last.after);
    first.phrase = tokens[first.first].phrase_to(&tokens[last.first + last.len - 1]);
    first.classes = Classes::YES.or(Classes::FAULT);
    units.drain(from + 1..=fault);
}

fn unit_at<'a>(tokens: &[Token<'a>], at: usize, lexicon: &Lexicon) -> Unit<'a> {
    let token = tokens[at];
    let single = Unit {
        text: token.text,
        phrase: token.phrase_to(&token),
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
    let Some((end, classes)) = phrase_at(tokens, at, lexicon) else { return single };
    let (phrase, after) = (token.phrase_to(&tokens[end - 1]), tokens[end - 1].after);
    Unit { len: end - at, phrase, classes, value: None, after, ..single }
}

/// More words than the longest phrase has.
const MOST_STEPS: usize = 12;

/// The longest phrase that begins at a word: where it ends and what it does.
fn phrase_at(tokens: &[Token<'_>], at: usize, lexicon: &Lexicon) -> Option<(usize, Classes)> {
    let mut node = tokens[at].entry?.number;
    let mut found = [(0, Classes::default()); MOST_STEPS];
    let (mut count, mut last, mut exact) = (0, at, true);
    while count < MOST_STEPS {
        let Some((next, step)) = step(tokens, last, node, lexicon) else { break };
        exact &= next == last + 1;
        (last, node) = (next, step);
        // "That's exactly it" is more than "that's it".
        let classes = lexicon.phrases.classes(node).without(Classes::ASKING);
        if classes != Classes::default() && (exact || !classes.any(Classes::CLOSE)) {
            found[count] = (last + 1, classes);
            count += 1;
        }
    }
    found[..count].iter().rev().find_map(|&(end, classes)| {
        let speaks_of_another =
            classes.any(Classes::APPROVAL.or(Classes::TAIL).or(Classes::FILL)) && points_on(tokens, end);
        Some((end, settled(classes, tokens, end).filter(|_| !speaks_of_another)?))
    })
}

/// Goes on in a phrase with the next word, or with the first after those that only strengthen.
///
/// "I'd really like that" is "I'd like that"; but "not entirely wrong" is not "not wrong".
fn step(tokens: &[Token<'_>], at: usize, node: u32, lexicon: &Lexicon) -> Option<(usize, u32)> {
    // No phrase goes on over a stop.
    let next = tokens.get(at + 1).filter(|_| tokens[at].after == Gap::None)?;
    let to = |at: usize| tokens[at].entry.and_then(|entry| lexicon.phrases.step(node, entry.number));
    if let Some(node) = to(at + 1) {
        return Some((at + 1, node));
    }
    let skips = next.classes().any(Classes::BOOST) && !tokens[at].classes().any(Classes::NOT);
    let after = skips.then(|| over_boosts(tokens, at + 1)).flatten()?;
    Some((after, to(after)?))
}

/// "I love that" agrees; "I love that place" and "I'd love that to be true" speak of something else.
fn points_on(tokens: &[Token<'_>], end: usize) -> bool {
    let (last, next) = (&tokens[end - 1], tokens.get(end).filter(|_| tokens[end - 1].after == Gap::None));
    let thing = |next: &Token<'_>| {
        let classes = next.classes();
        classes.any(Classes::THING) || classes.is_blank() && !classes.any(Classes::DEED)
    };
    let determines = matches!(last.text, "that" | "this" | "these" | "those");
    let points = determines || last.text == "it";
    next.is_some_and(|next| (determines && thing(next)) || (points && next.text == "to"))
}

/// The first word after one or more that only strengthen.
fn over_boosts(tokens: &[Token<'_>], from: usize) -> Option<usize> {
    let boosts = |token: &&Token<'_>| token.classes().any(Classes::BOOST) && token.after == Gap::None;
    let count = tokens[from..].iter().take_while(boosts).count();
    (count > 0 && from + count < tokens.len()).then_some(from + count)
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
        if unit.is(Classes::YES) && unit.is(Classes::COND) {
            // The French "si" is a yes by itself, and an "if" before other words.
            let alone = unit.after != Gap::None || next.is_none_or(|next| next.text == unit.text);
            units[at].classes = if alone { Classes::YES } else { Classes::COND };
        }
        if unit.is(Classes::STOP) && unit.len == 1 && is_noun(units, at) {
            units[at].classes = Classes::default();
        }
        if unit.is(Classes::BACK) && is_left_out(units, at) {
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
    let unknown = before.classes.is_blank();
    let making = Classes::DET.or(Classes::MORE).or(Classes::ORDINAL).or(Classes::GOOD).or(Classes::CHANGE);
    before.after == Gap::None && !before.is(Classes::OPTION) && (unknown || before.is(making))
}

/// "A lunch stop", "the end": a thing, not a call to stop.
fn is_noun(units: &[Unit<'_>], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| &units[before]) else { return false };
    let article = matches!(before.text, "a" | "an" | "the" | "another" | "each" | "every" | "my" | "our");
    let placed = |next: &Unit<'_>| matches!(next.text, "at" | "in" | "on" | "near" | "for" | "is" | "was");
    let named = before.classes.is_blank() && (at > 1 || units.get(at + 1).is_some_and(placed));
    before.after == Gap::None && (article || named)
}

/// "Except the last step", "all but the previous one": what is left out is a thing, and no way back.
fn is_left_out(units: &[Unit<'_>], at: usize) -> bool {
    let mut before = units[..at].iter().rev().take_while(|unit| unit.after == Gap::None);
    let article = before.next().is_some_and(|unit| matches!(unit.text, "the" | "that" | "this" | "your"));
    let leaves_out = Classes::AVERSE.or(Classes::CONTRAST).or(Classes::NOT);
    article && before.next().is_some_and(|unit| unit.is(leaves_out))
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
        units(&tokens, Lexicon::of(Language::English)).into_iter().map(show).collect()
    }

    fn classes(text: &str, at: usize) -> Classes {
        let folded = Folded::new(text);
        let english = Lexicon::of(Language::English);
        units(&tokens(&folded, english), english)[at].classes
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
