//! The options as words, and how well an answer's words name each of them.
//!
//! A word weighs by how few options contain it. A word that people say about any option ("the", "good", "more")
//! names none, unless a whole label is said.

use super::echo::{Echo, stem};
use super::lexicon::{Classes, Lexicon};
use super::normalise::Folded;
use super::question::Choice;
use super::units::Token;

/// Words that are said whatever the options are.
const COMMON: Classes = Classes::APPROVAL
    .or(Classes::FILL)
    .or(Classes::WANT)
    .or(Classes::WHO)
    .or(Classes::AUX)
    .or(Classes::NO)
    .or(Classes::NOT)
    .or(Classes::MORE)
    .or(Classes::TELL)
    .or(Classes::ASK)
    .or(Classes::CONTRAST)
    .or(Classes::COND)
    .or(Classes::HEDGE)
    .or(Classes::CLOSE)
    .or(Classes::GREET)
    .or(Classes::VERB)
    .or(Classes::NUM)
    .or(Classes::OPTION);

/// One word of a label or description.
#[derive(Debug)]
struct Word {
    text: String,
    weight: f32,
    common: bool,
}

/// One option as words.
#[derive(Debug)]
struct Named {
    label: Vec<Word>,
    id: Vec<String>,
    description: Vec<Word>,
}

/// How an answer names one option.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Hit {
    /// How strongly.
    pub(super) score: f32,
    /// The first and the last of the answer's tokens that name it.
    pub(super) tokens: (usize, usize),
    /// Whether the whole label or id was said.
    pub(super) whole: bool,
    /// Whether less than about half of the label was said.
    pub(super) slight: bool,
}

/// All options of a question as words.
#[derive(Debug)]
pub(super) struct Options(Vec<Named>);

impl Options {
    /// Reads the options of a question.
    pub(super) fn new(choices: &[Choice], lexicon: &'static Lexicon, echo: &Echo<'_>) -> Self {
        let mut options = Self(choices.iter().map(|choice| named(choice, lexicon)).collect());
        options.weigh(echo);
        options
    }

    /// Weighs every word by how few options contain it.
    fn weigh(&mut self, echo: &Echo<'_>) {
        let all: Vec<Vec<String>> = self.0.iter().map(stems).collect();
        let count = all.len() as f32;
        let holding =
            |text: &str| all.iter().filter(|words| words.iter().any(|word| word == stem(text))).count();
        for word in self.0.iter_mut().flat_map(|named| named.label.iter_mut().chain(&mut named.description)) {
            let among = holding(&word.text);
            // Where the question says a word more often than its options do, it is the word for any of them.
            word.common |= echo.times(&word.text) > among;
            let rare = if among as f32 >= count && count > 1.0 {
                0.0
            } else {
                ((count + 1.0) / among.max(1) as f32).ln()
            };
            word.weight = if word.common { rare * 0.15 } else { rare };
        }
    }

    /// Returns how the tokens name each option, none where they do not.
    pub(super) fn hits(&self, tokens: &[Token<'_>]) -> Vec<Option<Hit>> {
        let mut hits: Vec<Option<Hit>> = self.0.iter().map(|named| named.hit(tokens)).collect();
        // A label said as part of a longer label was not said for itself.
        let whole: Vec<Hit> = hits.iter().flatten().filter(|hit| hit.whole).copied().collect();
        for hit in &mut hits {
            let inside = |outer: &Hit| hit.is_some_and(|hit| hit.lies_within(outer));
            if whole.iter().any(inside) {
                *hit = None;
            }
        }
        hits
    }
}

impl Hit {
    fn lies_within(&self, outer: &Hit) -> bool {
        let smaller =
            self.tokens.1 - self.tokens.0 < outer.tokens.1 - outer.tokens.0 || (!self.whole && outer.whole);
        smaller && self.tokens.0 >= outer.tokens.0 && self.tokens.1 <= outer.tokens.1
    }
}

impl Named {
    fn hit(&self, tokens: &[Token<'_>]) -> Option<Hit> {
        let label: Vec<&str> = self.label.iter().map(|word| word.text.as_str()).collect();
        let id: Vec<&str> = self.id.iter().map(String::as_str).collect();
        let total: f32 = self.label.iter().map(|word| word.weight).sum();
        let plain = self.label.iter().any(|word| !word.common);
        let said = run(tokens, &label).filter(|&at| plain || label.len() > 1 || stands_alone(tokens, at));
        // An id of digits is the position's business.
        let coded = || {
            run(tokens, &id)
                .filter(|_| id.concat().contains(|c: char| c.is_alphabetic()) && id.concat().len() > 1)
        };
        let whole = |at: usize, len: usize| Hit {
            score: total.max(0.7) * 1.5,
            tokens: (at, at + len - 1),
            whole: true,
            slight: false,
        };
        said.map(|at| whole(at, label.len()))
            .or_else(|| coded().map(|at| whole(at, id.len())))
            .or_else(|| self.part(tokens, total))
    }

    /// A part of the label, or words of the description.
    fn part(&self, tokens: &[Token<'_>], total: f32) -> Option<Hit> {
        let (label, plain, span) = said(&self.label, tokens);
        let (about, described, around) = said(&self.description, tokens);
        let covered = if total > 0.0 { label / total } else { 0.0 };
        let score = label * (0.3 + 0.7 * covered) + if described { about * 0.4 } else { 0.0 };
        let tokens = if plain { span } else { around };
        (plain || described)
            .then_some(Hit { score, tokens, whole: false, slight: covered < 0.6 })
            .filter(|hit| hit.score > 0.0)
    }
}

/// The weight of the words that were said, whether one of them is not common, and where.
fn said(words: &[Word], tokens: &[Token<'_>]) -> (f32, bool, (usize, usize)) {
    let (mut weight, mut plain, mut span) = (0.0, false, (usize::MAX, 0));
    for word in words.iter().filter(|word| word.weight > 0.0) {
        let Some(at) = tokens.iter().position(|token| names(token, word)) else { continue };
        weight += word.weight;
        if !word.common {
            plain = true;
            span = (span.0.min(at), span.1.max(at));
        }
    }
    (weight, plain, span)
}

fn names(token: &Token<'_>, word: &Word) -> bool {
    token.text == word.text
        || (!word.common && token.text.len() > 3 && stem(token.text) == stem(&word.text))
        || (!word.common && !token.is_known() && is_typo(token.text, &word.text))
}

/// A label that is one common word ("After") was only said where nothing follows or it is judged.
fn stands_alone(tokens: &[Token<'_>], at: usize) -> bool {
    let judged = Classes::AUX.or(Classes::GOOD).or(Classes::GO);
    let next = tokens.get(at + 1).filter(|_| tokens[at].after == super::normalise::Gap::None);
    next.is_none_or(|next| {
        let classes = next.entry.map_or(Classes::default(), |entry| entry.classes);
        classes.any(judged) || matches!(next.text, "please" | "thanks" | "sounds" | "looks" | "seems" | "now")
    })
}

/// Where the words are said one after the other.
fn run(tokens: &[Token<'_>], words: &[&str]) -> Option<usize> {
    if words.is_empty() {
        return None;
    }
    tokens
        .windows(words.len())
        .position(|window| window.iter().zip(words).all(|(token, word)| token.text == *word))
}

fn stems(named: &Named) -> Vec<String> {
    named.label.iter().chain(&named.description).map(|word| stem(&word.text).to_owned()).collect()
}

fn named(choice: &Choice, lexicon: &'static Lexicon) -> Named {
    let plain = |text: &str| -> Vec<String> {
        let folded = Folded::new(text);
        super::units::tokens(&folded, lexicon).iter().map(|token| token.text.to_owned()).collect()
    };
    let word = |text: String| {
        let entry = lexicon.get(&text).filter(|entry| entry.is_known()).or_else(|| lexicon.get(stem(&text)));
        let common = entry.is_some_and(|entry| entry.classes.any(COMMON));
        Word { text, weight: 0.0, common }
    };
    let words = |text: &str| plain(text).into_iter().map(word).collect::<Vec<_>>();
    let description = words(&choice.description).into_iter().filter(|word| !word.common).collect();
    Named { label: words(&choice.label), id: plain(&choice.id.replace('_', " ")), description }
}

/// Whether a longer word was mistyped: one slip from five letters on, two from eight.
pub(super) fn is_typo(word: &str, right: &str) -> bool {
    let allowed = match right.len() {
        0..=4 => return false,
        5..=7 => 1,
        _ => 2,
    };
    let numeric = |text: &str| text.contains(|c: char| c.is_ascii_digit());
    let sane = word.len() <= 40 && right.len() <= 40 && word.len().abs_diff(right.len()) <= allowed;
    sane && !numeric(word) && !numeric(right) && distance(word.as_bytes(), right.as_bytes()) <= allowed
}

/// The number of letters to drop, add, change or swap.
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut rows = [[0usize; 41]; 3];
    rows[0].iter_mut().enumerate().for_each(|(index, cell)| *cell = index);
    for i in 1..=one.len() {
        let (now, last, before) = (i % 3, (i + 2) % 3, (i + 1) % 3);
        rows[now][0] = i;
        for j in 1..=other.len() {
            let differs = usize::from(one[i - 1] != other[j - 1]);
            let mut best = (rows[last][j] + 1).min(rows[now][j - 1] + 1).min(rows[last][j - 1] + differs);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                best = best.min(rows[before][j - 2] + 1);
            }
            rows[now][j] = best;
        }
    }
    rows[one.len() % 3][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_in_longer_words_are_typos() {
        assert!(is_typo("mountian", "mountain"));
        assert!(is_typo("costal", "coastal"));
        assert!(is_typo("magdelane", "magdalene"));
        assert!(!is_typo("cat", "car"));
        assert!(!is_typo("north", "south"));
        assert!(!is_typo("route1", "route2"));
    }
}
