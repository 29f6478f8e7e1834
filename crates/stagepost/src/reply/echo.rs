//! What the question said: an answer that only repeats it adds nothing.

use super::lexicon::{Classes, Entry, Lexicon};
use super::normalise::{Folded, Gap};
use super::question::Question;
use super::units::{Token, holds, is_courtesy, tokens};

/// The words of a question, ready to be compared with those of an answer.
#[derive(Debug, Default)]
pub(super) struct Echo<'q> {
    stems: Vec<&'q str>,
    /// Every word as it stands, for comparing numbers with what is beside them.
    words: Vec<&'q str>,
    /// How many numbers it has.
    pub(super) numbers: usize,
    same: u32,
    /// Whether the words that were asked are known.
    pub(super) asked: bool,
    /// Whether it offers further help ("anything else?"): praise and thanks then mean no.
    pub(super) closing: bool,
    /// Whether it names an act: then a different one in the answer is something else.
    pub(super) names_act: bool,
    /// Whether it names things beyond the words of the language.
    pub(super) names_things: bool,
    /// Whether it only points at what it is about ("reserve this?").
    pub(super) only_points: bool,
    /// Whether it offers to do something: "it's okay" may then turn it down.
    pub(super) offers: bool,
    /// Whether it asks for words of one's own ("which city?"): repeating it answers nothing.
    pub(super) wants_words: bool,
    /// Whether it asks several things: praise of "that" leaves open which of them.
    pub(super) several: bool,
    /// Whether it leaves something out ("without subtitles"): repeating that thing may mean the opposite.
    pub(super) leaves_out: bool,
    /// Whether it asks about all of something: then saying "all" does not widen it.
    pub(super) says_all: bool,
    /// Whether it names alternatives: repeating one of them chooses it, which is more than a yes.
    pub(super) alternatives: bool,
}

/// An answer to a longer question repeats nothing: too many words would be accounted for.
const MOST_WORDS: usize = 400;

impl<'q> Echo<'q> {
    /// Reads the words of a question.
    pub(super) fn new(folded: &'q Folded, asked: bool, lexicon: &'static Lexicon) -> Self {
        let tokens = tokens(folded, lexicon);
        let content = |token: &&Token<'q>| !is_grammar(token);
        let several = tokens.iter().filter(|token| token.after == Gap::Question).count();
        Self {
            stems: tokens.iter().filter(content).map(|token| stem(token.text)).take(MOST_WORDS).collect(),
            words: tokens.iter().map(|token| token.text).take(MOST_WORDS).collect(),
            numbers: tokens.iter().filter(|token| is_number(token)).count(),
            same: tokens.iter().filter_map(|token| token.entry).fold(0, |bits, entry| bits | entry.same),
            asked,
            leaves_out: (0..tokens.len()).any(|at| leaves_out(&tokens, at)),
            names_act: tokens.iter().any(names_act),
            names_things: tokens.iter().any(|token| !token.is_known()),
            only_points: asked && !tokens.iter().any(|token| !token.is_known() || is_thing(token)),
            closing: (0..tokens.len()).any(|at| tells(&tokens, at, Classes::CLOSING)) || is_bad_news(&tokens),
            offers: (0..tokens.len()).any(|at| tells(&tokens, at, Classes::OFFER)),
            wants_words: wants_words(&tokens),
            several: several >= 2,
            says_all: tokens
                .iter()
                .any(|token| token.entry.is_some_and(|entry| entry.classes.any(Classes::ALL))),
            alternatives: tokens.len() > MOST_WORDS || tokens.iter().any(|token| token.text == "or"),
        }
    }

    /// Folds what a question says, its own words and those of its kind.
    pub(super) fn folded(question: &Question<'_>) -> Folded {
        match (question.text, question.kind.own_words()) {
            (Some(text), "") => Folded::new(text),
            (text, own) => Folded::new(&format!("{} {own}", text.unwrap_or_default())),
        }
    }

    /// Whether an answer's word repeats the question, in its own or another word for the same.
    pub(super) fn repeats(&self, token: &Token<'_>) -> bool {
        let same = token.entry.map_or(0, |entry| entry.same);
        same & self.same != 0 || self.stems.contains(&stem(token.text))
    }

    /// Whether an answer's number is one of the question's, beside the same word as there: "7 pm" repeats "at 7 pm" and
    /// not "7 people". One that stands alone repeats the only number that was asked about.
    pub(super) fn repeats_number(&self, tokens: &[Token<'_>], at: usize) -> bool {
        let joined = |one: usize, next: usize| tokens.get(next).filter(|_| tokens[one].after == Gap::None);
        let before = at.checked_sub(1).and_then(|before| joined(before, at).map(|_| tokens[before].text));
        let after = joined(at, at + 1).map(|token| token.text).filter(|word| !is_courtesy(word));
        let places = || (0..self.words.len()).filter(|place| self.words[*place] == tokens[at].text);
        let beside = |place: usize| {
            let same = |word: Option<&str>, there: Option<&&str>| word.is_some() && word == there.copied();
            // "At 7 am" does not repeat "at 7 pm": the word after it says what is counted.
            same(after, self.words.get(place + 1))
                || (after.is_none()
                    && same(before, place.checked_sub(1).and_then(|place| self.words.get(place))))
        };
        let alone = before.is_none() && after.is_none();
        !self.alternatives && places().any(|place| beside(place) || (alone && self.numbers == 1))
    }

    /// How often the question says a word.
    pub(super) fn times(&self, word: &str) -> usize {
        self.stems.iter().filter(|known| **known == stem(word)).count()
    }

    /// Whether an answer's word stands in the question itself.
    pub(super) fn contains(&self, word: &str) -> bool {
        self.stems.contains(&stem(word))
    }
}

/// A word for a thing: it means nothing by itself, but other words for the same are known.
pub(super) fn is_thing(token: &Token<'_>) -> bool {
    token.entry.is_some_and(|entry| entry.classes == Classes::default() && entry.same != 0)
}

fn is_number(token: &Token<'_>) -> bool {
    token.text.starts_with(|first: char| first.is_ascii_digit())
        || token.entry.is_some_and(|entry| entry.classes.any(Classes::NUM.or(Classes::ORDINAL)))
}

fn is_grammar(token: &Token<'_>) -> bool {
    let grammar = Classes::FILL.or(Classes::WHO).or(Classes::AUX);
    token.entry.is_some_and(|entry| {
        entry.classes.any(grammar) && entry.same == 0 && !entry.classes.any(Classes::VERB)
    })
}

fn names_act(token: &Token<'_>) -> bool {
    let acts = Classes::VERB.or(Classes::CHANGE).or(Classes::STOP).or(Classes::BACK);
    token.text != "confirm" && token.entry.is_some_and(|entry| entry.classes.any(acts))
}

fn leaves_out(tokens: &[Token<'_>], at: usize) -> bool {
    let next = tokens.get(at + 1).map_or("", |next| next.text);
    let courtesy = matches!(next, "problem" | "problems" | "worries" | "longer");
    matches!(tokens[at].text, "without" | "no") && tokens[at].after == Gap::None && !courtesy
}

/// Whether a word or phrase of a class begins at a token.
fn tells(tokens: &[Token<'_>], at: usize, class: Classes) -> bool {
    let Some(entry) = tokens[at].entry else { return false };
    entry.classes.any(class) || (entry.tells && begins(tokens, at, entry, class))
}

fn begins(tokens: &[Token<'_>], at: usize, entry: &Entry, class: Classes) -> bool {
    let Some(second) = tokens.get(at + 1).and_then(|next| next.entry) else { return false };
    entry.phrases_with(second.number).any(|phrase| {
        let end = at + 1 + phrase.rest.len();
        phrase.classes.any(class) && end <= tokens.len() && holds(&tokens[at..end], &phrase.rest)
    })
}

/// Whether it is a notice, not a question, and ends with what did not work.
fn is_bad_news(tokens: &[Token<'_>]) -> bool {
    let start = last_sentence(tokens);
    let asks = tokens.iter().any(|token| token.after == Gap::Question);
    !asks && (start..tokens.len()).any(|at| tells(tokens, at, Classes::SORRY))
}

/// Whether its last sentence asks what, where, when, who or how many.
fn wants_words(tokens: &[Token<'_>]) -> bool {
    let sentence = &tokens[last_sentence(tokens)..];
    let opening = |token: &&Token<'_>| {
        token.entry.is_some_and(|entry| entry.classes.any(Classes::YES)) || token.text == "and"
    };
    let skipped = sentence.iter().take_while(opening).count();
    let word = |at: usize| sentence.get(skipped + at).map_or("", |token| token.text);
    match word(0) {
        "what" | "which" | "where" | "when" | "who" | "whom" => word(1) != "about" && word(1) != "if",
        "how" => matches!(word(1), "many" | "much" | "long" | "far" | "often"),
        _ => false,
    }
}

fn last_sentence(tokens: &[Token<'_>]) -> usize {
    let before = &tokens[..tokens.len().saturating_sub(1)];
    before.iter().rposition(|token| token.after >= Gap::Stop).map_or(0, |at| at + 1)
}

/// Cuts the commonest endings off, so that "playing" repeats "play".
pub(super) fn stem(word: &str) -> &str {
    for ending in ["ations", "ation", "ating", "ated", "ates", "ate", "ings", "ing", "ed", "es", "s", "e"] {
        if let Some(rest) = word.strip_suffix(ending).filter(|rest| rest.len() >= 3) {
            return rest;
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::super::question::Language;
    use super::*;

    fn with<T>(question: &str, look: impl FnOnce(&Echo<'_>) -> T) -> T {
        let folded = Folded::new(question);
        look(&Echo::new(&folded, true, Lexicon::of(Language::English)))
    }

    #[test]
    fn endings_do_not_matter() {
        assert!(
            with("Shall I start playing the songs?", |echo| echo.contains("play") && echo.contains("song"))
        );
        assert_eq!(stem("is"), "is");
    }

    #[test]
    fn the_kind_of_question_is_seen() {
        assert!(with("Is there anything else?", |echo| echo.closing));
        assert!(with("Sorry, that did not work.", |echo| echo.closing));
        assert!(!with("Sorry for the wait. Shall I go on?", |echo| echo.closing));
        assert!(with("Red or blue?", |echo| echo.alternatives));
        assert!(with("Red? And round?", |echo| echo.several));
        assert!(with("Shall I print it?", |echo| echo.offers && echo.names_act));
        assert!(with("Ok, which city?", |echo| echo.wants_words));
        assert!(!with("What about Rome?", |echo| echo.wants_words));
        assert!(with("Print it without the map?", |echo| echo.leaves_out));
        assert!(!with("No problem, print it?", |echo| echo.leaves_out));
    }
}
