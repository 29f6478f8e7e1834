//! Questions that ask to stop, refuse, undo or destroy something.
//!
//! "Cancel the order?" turns the words of consent around: "place the order", "looks good" and "carry on" speak for the
//! order, and so against what was asked. There only a plain yes agrees, or asking for that very act on that very thing;
//! praise and going on are asked about again, also beside a yes.

use super::consent::{Case, NOTHING, Obstacle};
use super::echo::stem;
use super::lexicon::Classes;
use super::normalise::Gap;
use super::objects::{is_judging, is_place, is_pointer};
use super::praise::{is_truth, praises_the_matter};
use super::units::{Token, Unit};

/// What a question asks to end, and by which words.
#[derive(Debug, Default)]
pub(super) struct Counter<'q> {
    verbs: Vec<Verb<'q>>,
    /// Things that are named by several words: the last of them, and those before it.
    things: Vec<(&'q str, Vec<&'q str>)>,
    /// Whether something that runs or waits is to be stopped: "go ahead" may then speak to that.
    halts: bool,
    /// Whether something is to be refused: "approved" then says the opposite.
    refuses: bool,
}

/// A verb of stopping, refusing, undoing or destroying.
#[derive(Debug)]
struct Verb<'q> {
    text: &'q str,
    stem: &'q str,
    same: u64,
    /// The last word of a verb of several, such as "back" of "roll back".
    particle: Option<&'q str>,
}

/// A word of such a verb: where it stands, how many words it has, and what they do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) at: usize,
    pub(super) len: usize,
    pub(super) classes: Classes,
}

impl<'q> Counter<'q> {
    /// Reads what a question asks to end.
    pub(super) fn new(tokens: &[Token<'q>], found: &[Found]) -> Self {
        let mut counter = Self::default();
        for found in found {
            let (first, last) = (&tokens[found.at], &tokens[found.at + found.len - 1]);
            let particle = (found.len > 1).then_some(last.text);
            counter.verbs.push(Verb { text: first.text, stem: first.stem, same: first.same(), particle });
            counter.things.extend(thing_after(tokens, found.at + found.len));
            counter.halts |= found.classes.any(Classes::HALT);
            counter.refuses |= found.classes.any(Classes::REFUSE);
        }
        counter
    }

    /// Whether an answer's word is the act that was asked about, in its own or another word for the same.
    pub(super) fn is_verb(&self, tokens: &[Token<'_>], at: usize) -> bool {
        let token = &tokens[at];
        let near = &tokens[at + 1..tokens.len().min(at + 5)];
        self.verbs.iter().any(|verb| {
            let same = token.stem == verb.stem || token.same() & verb.same != 0;
            match verb.particle {
                None => same,
                // "Roll it back" and "rollback" are "roll back"; "roll forward" is not.
                Some(particle) => {
                    let joined = token.text.strip_prefix(verb.text) == Some(particle);
                    joined || (same && near.iter().any(|near| near.text == particle))
                }
            }
        })
    }

    /// "Roll back?" "Roll forward": the same verb, and another act.
    fn is_half(&self, token: &Token<'_>) -> bool {
        self.verbs.iter().any(|verb| verb.particle.is_some() && verb.stem == token.stem)
    }

    /// "Delete the old backups?" "Delete the backups": a thing named with fewer words may be more.
    fn loses_a_word(&self, tokens: &[Token<'_>]) -> bool {
        let says = |word: &str| tokens.iter().any(|token| token.stem == word);
        self.things.iter().any(|(last, before)| says(last) && !before.iter().all(|word| says(word)))
    }
}

/// Whether the words at a place ask to end something, and do not only name a thing ("a lunch stop").
pub(super) fn is_asked(tokens: &[Token<'_>], at: usize, classes: Classes) -> bool {
    let (token, before) = (&tokens[at], at.checked_sub(1).map(|before| &tokens[before]));
    if classes.any(Classes::NAMED) {
        return true;
    }
    // "Drop it off on Monday" and "close to the station" end nothing.
    let near = |words: &[&str]| tokens[at + 1..].iter().take(3).any(|token| words.contains(&token.text));
    if token.text.starts_with("drop") && near(&["off"])
        || token.text == "close" && near(&["to", "by", "enough"])
    {
        return false;
    }
    let Some(before) = before.filter(|before| before.after < Gap::Comma) else { return true };
    if token.text.ends_with("ed") {
        let ends = tokens.get(at + 1).is_none() || token.after >= Gap::Stop;
        return ends || is_made(before.text);
    }
    let start = tokens[..at].iter().rposition(|token| token.after >= Gap::Stop).map_or(0, |stop| stop + 1);
    let asks = matches!(
        tokens[start].text,
        "should" | "shall" | "can" | "may" | "will" | "must" | "could" | "would" | "do" | "does" | "let"
    );
    leads_to_an_act(before) || (asks && !is_pointer(before.text) && !is_place(before.text))
}

/// "To be deleted", "want it deleted".
fn is_made(word: &str) -> bool {
    matches!(
        word,
        "be" | "been" | "being" | "get" | "gets" | "it" | "them" | "is" | "are" | "that" | "this" | "these"
    )
}

fn leads_to_an_act(before: &Token<'_>) -> bool {
    let leads = matches!(
        before.text,
        "to" | "i"
            | "we"
            | "you"
            | "me"
            | "us"
            | "it"
            | "they"
            | "and"
            | "then"
            | "or"
            | "so"
            | "also"
            | "just"
            | "now"
            | "please"
            | "not"
            | "let"
            | "'s"
            | "'ll"
            | "should"
            | "shall"
            | "will"
            | "would"
            | "can"
            | "could"
            | "may"
            | "must"
            | "first"
            | "confirm"
            | "proceed"
            | "sure"
            | "kindly"
    );
    leads || before.text.ends_with("ly") || before.classes().any(Classes::YES)
}

/// The thing that an act is done to, where several words name it; a name after its kind ("branch main") is whole.
fn thing_after<'q>(tokens: &[Token<'q>], from: usize) -> Option<(&'q str, Vec<&'q str>)> {
    let grammar = Classes::FILL.or(Classes::WHO).or(Classes::AUX).or(Classes::ALL);
    let skipped = |token: &&Token<'_>| is_pointer(token.text) || token.classes().any(Classes::ALL);
    let start = from + tokens.get(from..)?.iter().take_while(skipped).count();
    let names = |token: &Token<'_>| {
        !token.classes().any(grammar.or(Classes::OR).or(Classes::NUM)) && !is_place(token.text)
    };
    let mut thing = Vec::new();
    for token in &tokens[start..] {
        if !names(token) {
            break;
        }
        thing.push(token);
        if token.after != Gap::None {
            break;
        }
    }
    let (last, before) = thing.split_last()?;
    let kind = before.first()?.classes().any(Classes::THING);
    let name = last.capital
        || (!last.is_known() && !last.classes().any(Classes::THING) && !last.text.ends_with('s'));
    if thing.iter().any(|token| token.joined) || (kind && name) {
        return None;
    }
    let tells = |token: &&&Token<'_>| {
        !token.classes().any(Classes::TIME) && !token.text.starts_with(|first: char| first.is_ascii_digit())
    };
    Some((last.stem, before.iter().filter(tells).map(|token| token.stem).collect()))
}

impl<'a> Case<'_, 'a, '_> {
    /// Whether a unit agrees to ending something.
    pub(super) fn agrees_to_end(&self, counter: &Counter<'_>, at: usize) -> bool {
        let unit = &self.units[at];
        if unit.is(Classes::YES) {
            return self.is_plain_yes(unit) && !self.is_judgement(at);
        }
        let confirms = unit.is(Classes::ALONE) && unit.text == "confirm" && self.units.len() == 1;
        let true_of_it = is_praise(unit)
            && !unit.text.starts_with("look")
            && is_truth(self.tokens[unit.first + unit.len - 1].text)
            && praises_the_matter(self.units, at, self.echo)
            && !self.is_said_of_a_thing(counter, at);
        confirms || true_of_it || (goes_on(unit) && self.carries_out(counter, unit))
    }

    /// Returns what speaks for the thing that is to be ended, or for more or less of it than was asked about.
    pub(super) fn speaks_against_ending(&self, counter: &Counter<'_>, at: usize) -> Option<Obstacle<'a>> {
        let unit = &self.units[at];
        if counter.is_verb(self.tokens, unit.first) {
            return None;
        }
        if counter.is_half(&self.tokens[unit.first]) {
            return Some(Obstacle::Unknown(unit.phrase));
        }
        if goes_on(unit) && !self.carries_out(counter, unit) {
            return Some(Obstacle::Reserve(unit.phrase, "go"));
        }
        if unit.is(Classes::YES) && !self.is_plain_yes(unit) {
            return Some(Obstacle::Partial(unit.phrase));
        }
        let judges = is_praise(unit) || unit.is(Classes::YES) && self.is_judgement(at);
        if judges && self.is_said_of_a_thing(counter, at) {
            return Some(Obstacle::Partial(unit.phrase));
        }
        // "Yes, I need them" wants to keep them.
        let points = |next: &Unit<'_>| matches!(next.text, "it" | "them" | "those" | "these");
        let wanted = unit.is(Classes::WANT) && self.units.get(at + 1).is_some_and(points);
        if wanted && !self.asks_to_end(counter, at) {
            return Some(Obstacle::Partial(unit.phrase));
        }
        let acts = unit.is(Classes::VERB.or(Classes::CHANGE)) && !self.is_object(counter, at);
        if acts && !unit.is(Classes::APPROVAL) && unit.text != "confirm" {
            return Some(Obstacle::Unknown(unit.phrase));
        }
        let names = self.names_a_thing(unit);
        let words = &self.tokens[unit.first..unit.first + unit.len];
        if names && self.repeats(unit) && !words.iter().all(|word| self.echo.says(word)) {
            return Some(Obstacle::Unknown(unit.phrase));
        }
        // "Yes, the order": to end it, or to have it?
        (names && !self.asks_to_end(counter, at)).then_some(Obstacle::Partial(unit.phrase))
    }

    /// Whether the thing is named by fewer words than in the question.
    pub(super) fn widens_the_thing(&self) -> bool {
        self.echo.counter.as_ref().is_some_and(|counter| counter.loses_a_word(self.tokens))
    }

    /// A yes that says nothing else. "Granted", "I'm on board" and "no objections" take a side, and it may be the other.
    fn is_plain_yes(&self, unit: &Unit<'a>) -> bool {
        let words = &self.tokens[unit.first..unit.first + unit.len];
        // "Yes to it" and "I vote yes" may be said of the thing.
        let aimed = |word: &Token<'_>| matches!(word.text, "to" | "on" | "vote");
        if words.iter().any(|word| word.text == "yes") {
            return !words.iter().any(aimed);
        }
        if unit.text == "all" {
            return words.iter().any(|word| word.text == "right");
        }
        let sides = matches!(
            unit.text,
            "agree"
                | "agreed"
                | "granted"
                | "permission"
                | "consent"
                | "deal"
                | "concur"
                | "seconded"
                | "amen"
                | "in"
                | "what"
                | "nothing"
                | "could"
                | "can"
                | "would"
                | "who"
                | "consider"
                | "say"
                | "done"
                | "i"
                | "we"
                | "you"
                | "they"
                | "it"
                | "that"
                | "there"
                | "happy"
                | "glad"
                | "so"
                | "out"
                | "get"
                | "keep"
                | "let"
                | "clear"
                | "off"
                | "roll"
                | "send"
                | "put"
                | "take"
                | "run"
                | "me"
                | "same"
        );
        // "You should", "I would", "I do": the question's own verb is left out.
        let short = unit.len <= 3
            && words.iter().all(|word| {
                word.classes().any(Classes::WHO.or(Classes::AUX))
                    && !matches!(word.text, "did" | "had" | "it")
            });
        !unit.is(Classes::FAULT) && (!sides || short)
    }

    /// "The order is ok", "they're fine": says what something is like.
    fn is_judgement(&self, at: usize) -> bool {
        let be = |before: &Unit<'_>| {
            matches!(
                before.text,
                "is" | "'s" | "are" | "'re" | "was" | "were" | "be" | "look" | "seem" | "feels"
            ) || is_judging(before.text)
        };
        at.checked_sub(1)
            .is_some_and(|before| self.units[before].after == Gap::None && be(&self.units[before]))
    }

    /// "They look good", "I like it", "good branch": praise of the thing, not of ending it.
    fn is_said_of_a_thing(&self, counter: &Counter<'_>, at: usize) -> bool {
        let unit = &self.units[at];
        if self.asks_to_end(counter, at) {
            return false;
        }
        let subject = |other: usize| {
            let other = &self.units[other];
            matches!(other.text, "it" | "they" | "them" | "these" | "those" | "there" | "i" | "we" | "you")
                || self.names_a_thing(other)
        };
        let likes = matches!(unit.text, "i" | "we" | "you" | "like" | "love" | "loved" | "nice" | "captures");
        (likes && !is_truth(self.tokens[unit.first + unit.len - 1].text))
            || self.clause(at).any(|other| self.units[other].first != unit.first && subject(other))
    }

    /// Whether the clause around a unit asks for the very act.
    fn asks_to_end(&self, counter: &Counter<'_>, at: usize) -> bool {
        self.clause(at).any(|other| counter.is_verb(self.tokens, self.units[other].first))
    }

    /// A word of the question that is more than its grammar.
    fn names_a_thing(&self, unit: &Unit<'a>) -> bool {
        let nothing = NOTHING.or(Classes::APPROVAL).or(Classes::WANT).or(Classes::BOOST);
        !unit.is(nothing) && self.repeats(unit)
    }

    /// "Cancel the order" names a thing where "order it" would do something.
    fn is_object(&self, counter: &Counter<'_>, at: usize) -> bool {
        let Some(before) = at.checked_sub(1).map(|before| &self.units[before]) else { return false };
        let names = is_pointer(before.text)
            || counter.is_verb(self.tokens, before.first)
            || (before.classes.is_blank() && self.repeats(before));
        before.after == Gap::None && names
    }

    /// "Do it", "go ahead": asks for what was asked, whatever that is. Where something is to be stopped, "go ahead" may
    /// be said to that something, unless a yes comes before it.
    fn carries_out(&self, counter: &Counter<'_>, unit: &Unit<'a>) -> bool {
        let words = &self.tokens[unit.first..unit.first + unit.len];
        let within =
            |known: fn(&str) -> bool| words.iter().all(|word| known(word.text) || is_plain(word.text));
        let does = words.iter().any(|word| matches!(word.text, "do" | "happen" | "so"));
        let goes = words.iter().any(|word| matches!(word.text, "ahead" | "for" | "free"));
        let confirms = |word: &str| matches!(word, "confirm" | "confirmed" | "confirming" | "hereby");
        let approves = |word: &str| matches!(word, "approve" | "approved" | "approving");
        (within(|word| matches!(word, "do" | "happen" | "so" | "make" | "let" | "us" | "'s")) && does)
            || (within(|word| matches!(word, "go" | "ahead" | "for" | "feel" | "free" | "right"))
                && goes
                && (!counter.halts || self.opens_with_yes()))
            || (within(|word| word == "proceed" || word == "with") && !counter.halts)
            || (words.iter().any(|word| confirms(word.text))
                && within(|word| stem(word) == "confirm" || word == "hereby"))
            || (words.iter().any(|word| approves(word.text))
                && within(|word| stem(word) == "approv")
                && self.echo.contains("approve")
                && !counter.refuses)
    }
}

/// "Sounds good" praises, though it asks to go on elsewhere.
fn is_praise(unit: &Unit<'_>) -> bool {
    let seems = matches!(unit.text, "look" | "looks" | "sound" | "sounds" | "seem" | "seems" | "feels");
    if unit.is(Classes::GO) { seems } else { unit.is(Classes::GOOD) }
}

fn goes_on(unit: &Unit<'_>) -> bool {
    unit.is(Classes::GO) && !is_praise(unit)
}

/// Words that carry nothing in a phrase that asks to go on.
fn is_plain(word: &str) -> bool {
    matches!(
        word,
        "please"
            | "kindly"
            | "just"
            | "it"
            | "that"
            | "this"
            | "now"
            | "away"
            | "you"
            | "can"
            | "may"
            | "could"
            | "would"
            | "will"
            | "i"
            | "we"
            | "and"
            | "right"
            | "me"
            | "us"
            | "for"
    )
}
