//! When an answer is a consent: every word must be accounted for.
//!
//! A consent holds at least one word of approval, and every other word decides nothing or only repeats the
//! question. A negator, contrast, condition, hedge, number or question anywhere ends it, and so does a single
//! word that nobody can account for. There is no score: nothing outweighs a "but".

use super::echo::{Echo, is_thing};
use super::lexicon::{Classes, Lexicon};
use super::normalise::Gap;
use super::question::Risk;
use super::units::{Token, Unit, is_courtesy};

/// Answers longer than this are read by people.
const MOST_UNITS: usize = 60;

/// What ends a consent even where the question used the same word.
const NEVER: Classes = Classes::NO
    .or(Classes::NOT)
    .or(Classes::BAD)
    .or(Classes::STOP)
    .or(Classes::LATER)
    .or(Classes::DECLINE)
    .or(Classes::BACK)
    .or(Classes::MORE)
    .or(Classes::ASK)
    .or(Classes::CONTRAST)
    .or(Classes::COND)
    .or(Classes::NUM)
    .or(Classes::ORDINAL);

/// What ends a consent unless the question named the same act.
const UNLESS_ASKED: Classes = Classes::CHANGE.or(Classes::TELL);

/// What decides nothing.
const NOTHING: Classes = Classes::FILL.or(Classes::WHO).or(Classes::AUX).or(Classes::CLOSE);

/// Why an answer is no consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Obstacle<'a> {
    /// A word that reserves, refuses or asks, with the class it belongs to.
    Reserve(&'a str, &'static str),
    /// A word that nothing accounts for.
    Unknown(&'a str),
    /// It approves of one thing among several.
    Partial(&'a str),
    /// It is put as a question.
    Question,
    /// Nothing in it approves.
    NoApproval,
    /// It is too long to be only a consent.
    Long,
}

/// Returns the word of approval if every word agrees, else the first obstacle.
pub(super) fn consent<'a>(
    tokens: &[Token<'a>],
    units: &[Unit<'a>],
    echo: &Echo<'_>,
    lexicon: &Lexicon,
    risk: Risk,
) -> Result<&'a str, Obstacle<'a>> {
    if units.len() > MOST_UNITS {
        return Err(Obstacle::Long);
    }
    let approving = (0..units.len()).find(|&at| approves(units, at, echo));
    let case = Case { tokens, units, echo, risk, spelling: approving.map(|_| lexicon) };
    if is_question(units) && !case.is_request() {
        return Err(Obstacle::Question);
    }
    for at in 0..units.len() {
        case.account(at)?;
    }
    let approving = approving.or_else(|| (0..units.len()).find(|&at| case.asks_for_the_act(at)));
    approving.map(|at| units[at].text).ok_or(Obstacle::NoApproval)
}

/// What is known while the words are accounted for.
struct Case<'c, 'a, 'q> {
    tokens: &'c [Token<'a>],
    units: &'c [Unit<'a>],
    echo: &'c Echo<'q>,
    risk: Risk,
    /// Set once something approves: then a misspelled approval may stand beside it.
    spelling: Option<&'c Lexicon>,
}

impl<'a> Case<'_, 'a, '_> {
    /// Checks that one unit decides nothing against a consent.
    fn account(&self, at: usize) -> Result<(), Obstacle<'a>> {
        let unit = &self.units[at];
        let hedges = if self.risk == Risk::Low { Classes::default() } else { Classes::HEDGE };
        let never = NEVER.or(hedges);
        if unit.is(Classes::NUM.or(Classes::ORDINAL)) && (self.repeats_number(unit) || self.is_one_of_it(at))
        {
            return Ok(());
        }
        if unit.is(never) {
            return Err(Obstacle::Reserve(unit.text, unit.classes.name_in(never)));
        }
        if self.is_mockery(at) {
            return Err(Obstacle::Reserve(unit.text, "hedge"));
        }
        if unit.is(Classes::VERB) && self.widens(at) && !self.echo.says_all {
            return Err(Obstacle::Reserve(unit.text, "all"));
        }
        if unit.is(UNLESS_ASKED) && !self.repeats(unit) {
            return Err(Obstacle::Reserve(unit.text, unit.classes.name_in(UNLESS_ASKED)));
        }
        if self.echo.several && unit.is(Classes::GOOD) {
            return Err(Obstacle::Partial(unit.text));
        }
        let nothing = NOTHING.or(Classes::APPROVAL).or(Classes::WANT).or(Classes::HEDGE);
        let act = unit.is(Classes::VERB) && !self.echo.names_act;
        let repeated_request = (unit.is(Classes::ALONE) && self.spelling.is_some())
            || (is_light(unit.text) && self.has_asked_object(at));
        let object = self.is_known_object(at) || self.is_meant_thing(at) || self.addresses(at);
        if unit.is(nothing) || act || repeated_request || object || self.misspells(unit) {
            return Ok(());
        }
        match self.repeats(unit) {
            true if self.echo.several || self.names_one_aspect(at) => Err(Obstacle::Partial(unit.text)),
            true => Ok(()),
            false => Err(Obstacle::Unknown(unit.text)),
        }
    }

    fn repeats(&self, unit: &Unit<'a>) -> bool {
        let words = &self.tokens[unit.first..unit.first + unit.len];
        let safe = !self.echo.leaves_out || unit.is(Classes::VERB);
        let points = |word: &Token<'_>| matches!(word.text, "me" | "us" | "it" | "that" | "this" | "for");
        let repeated = |(at, word): (usize, &Token<'a>)| self.echo.repeats(word) || (at > 0 && points(word));
        safe && !self.echo.alternatives && words.iter().enumerate().all(repeated)
    }

    fn opens_with_yes(&self) -> bool {
        self.units.first().is_some_and(|unit| unit.is(Classes::YES))
    }

    /// "On May 3rd?" "Yes, May 3rd": a number of the question, said after a yes.
    fn repeats_number(&self, unit: &Unit<'a>) -> bool {
        let before = self.units.iter().take_while(|other| other.first < unit.first);
        let agrees = before.into_iter().any(|unit| unit.is(Classes::YES) || is_truth(unit.text));
        let plain = unit.classes.without(Classes::NUM.or(Classes::ORDINAL)) == Classes::default();
        agrees && plain && !self.echo.several && self.echo.repeats_number(self.tokens, unit.first)
    }

    /// "Schedule a visit?" "Yes, let's schedule one": not a number, where none was asked about.
    fn is_one_of_it(&self, at: usize) -> bool {
        let acts =
            |before: &Unit<'_>| before.after == Gap::None && before.is(Classes::VERB.or(Classes::WANT));
        let ends = self.units[at].after != Gap::None
            || self.units.get(at + 1).is_none_or(|next| is_courtesy(next.text));
        let plain = self.units[at].text == "one" && self.units[at].len == 1;
        plain && ends && self.echo.numbers == 0 && at.checked_sub(1).is_some_and(|at| acts(&self.units[at]))
    }

    /// "Yes, could you book it?", "can you do that for me, please?", "yes, please book it?": a question in form only.
    /// Without a yes it must be polite, for "can you do that?" may want to know whether you can.
    fn is_request(&self) -> bool {
        let units = self.units;
        let open = self.echo.several || self.echo.wants_words || self.echo.alternatives || !self.echo.asked;
        let polite = |unit: &Unit<'_>| is_courtesy(unit.text);
        let favour = || units.iter().any(|unit| polite(unit) || (unit.text == "for" && unit.len > 1));
        let yes = self.opens_with_yes();
        let inverted = (1..units.len()).filter(|&at| inverts(&units[at - 1], &units[at]));
        let mut requests = inverted.map(|at| self.is_request_at(at));
        let asked_once = units.iter().rev().skip(1).all(|unit| unit.after != Gap::Question);
        let phrased =
            |unit: &Unit<'_>| unit.len > 3 && matches!(unit.text, "can" | "could" | "would" | "will");
        let request = |unit: &Unit<'_>| phrased(unit) && (yes || unit.is(Classes::GO));
        let imperative =
            units.iter().any(|unit| request(unit) || (yes && (polite(unit) || unit.text == "let")));
        !open
            && asked_once
            && match requests.next() {
                Some(first) => first && requests.all(|request| request) && (yes || favour()),
                None => imperative,
            }
    }

    /// "Could you …": what follows must be the act that was asked about, or stand for it.
    fn is_request_at(&self, you: usize) -> bool {
        let asking = matches!(self.units[you - 1].text, "can" | "could" | "would" | "will");
        let mut rest =
            self.units[you + 1..].iter().skip_while(|unit| is_courtesy(unit.text) || unit.text == "just");
        let act = rest.next().is_some_and(|act| {
            let stands = matches!(act.text, "do" | "go" | "make" | "get" | "reserve" | "book" | "proceed");
            (act.is(Classes::GO.or(Classes::YES)) && stands)
                || ((act.is(Classes::VERB) || is_light(act.text))
                    && (self.repeats(act) || is_light(act.text)))
        });
        asking && self.units[you].text == "you" && act
    }

    /// "Book it?" "Please book it", "I would like to book it", "make the booking": asking for the very act is a yes.
    fn asks_for_the_act(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let open = self.echo.several || self.echo.wants_words;
        let act = (unit.is(Classes::VERB.or(Classes::CHANGE)) && self.repeats(unit))
            || (is_light(unit.text) && self.has_asked_object(at) && !self.echo.alternatives);
        if !self.echo.asked || open || !act {
            return false;
        }
        let clause = || self.units[..at].iter().rev().take_while(|unit| unit.after == Gap::None);
        let is_subject = |unit: &&Unit<'_>| unit.is(Classes::WHO) || (unit.is(Classes::FILL) && unit.len > 1);
        let wanted = clause().any(|unit| unit.is(Classes::WANT));
        let allowed = clause().any(|unit| matches!(unit.text, "can" | "may"))
            || (at >= 2 && (1..at).any(|you| self.is_request_at(you)));
        let ours = clause().any(|unit| matches!(unit.text, "i" | "we"));
        let taken =
            matches!(unit.text, "take" | "have") && clause().any(|unit| matches!(unit.text, "'ll" | "will"));
        clause().find(is_subject).is_none_or(|subject| match subject.text {
            "i" | "we" => wanted || taken,
            "you" => allowed || (wanted && ours),
            _ => false,
        })
    }

    /// "Make the booking": the object of a verb that says little is what the question was about.
    fn has_asked_object(&self, at: usize) -> bool {
        let decides = NOTHING.or(Classes::WANT).or(Classes::APPROVAL);
        let joined = |unit: &&Unit<'_>| unit.after == Gap::None;
        let count = self.units[at..].iter().take_while(joined).count();
        let object = self.units[at + 1..].iter().take(count);
        object.into_iter().any(|unit| !unit.is(decides) && self.repeats(unit))
    }

    fn misspells(&self, unit: &Unit<'a>) -> bool {
        self.spelling.is_some_and(|lexicon| misspells_approval(unit.text, lexicon))
    }

    /// "Yeah, right" and nothing else is seldom meant.
    fn is_mockery(&self, at: usize) -> bool {
        let yeah = at
            .checked_sub(1)
            .is_some_and(|before| matches!(self.units[before].text, "yeah" | "yea" | "sure"));
        yeah && self.units[at].text == "right" && self.units[at].len == 1
    }

    /// "Delete everything": an act must not grow beyond what was asked.
    fn widens(&self, at: usize) -> bool {
        self.units[at + 1..].iter().take(2).any(|next| next.is(Classes::ALL))
    }

    /// "A green door is fine": approving of one thing the question named leaves the rest open.
    fn names_one_aspect(&self, at: usize) -> bool {
        let judged = |unit: &Unit<'_>| unit.is(Classes::AUX.or(Classes::GOOD)) || is_judging(unit.text);
        let pointed = |unit: &Unit<'_>| matches!(unit.text, "that" | "this" | "these" | "those");
        let ends = self.units[at].after != Gap::None;
        let mut before = self.units[..at].iter().rev().take(3).take_while(|unit| unit.after == Gap::None);
        !ends && self.units.get(at + 1).is_some_and(judged) && !before.any(pointed)
    }

    /// "Reserve this?" "Yes, I would like to book a rental car": after a yes, a word for what was only pointed at.
    fn is_meant_thing(&self, at: usize) -> bool {
        let (unit, echo) = (&self.units[at], self.echo);
        let open = echo.alternatives || echo.several || echo.leaves_out || echo.wants_words;
        let meant = echo.only_points && !open && self.opens_with_yes();
        meant && unit.len == 1 && is_thing(&self.tokens[unit.first])
    }

    /// "Yes, captain", "sure, my friend": nobody is meant but the one who asked.
    fn addresses(&self, at: usize) -> bool {
        let agrees = Classes::APPROVAL.or(Classes::GREET);
        let before = self.units[..at].iter().rev().find(|unit| unit.text != "my" || unit.len > 1);
        let called = |before: &Unit<'_>| {
            before.after != Gap::None
                || before.is(agrees)
                || is_courtesy(before.text)
                || before.is(Classes::NAME)
        };
        self.units[at].is(Classes::NAME) && before.is_none_or(called)
    }

    /// "Reserve it?" "Yes, reserve the car": the object of a repeated act, where the question named none.
    fn is_known_object(&self, at: usize) -> bool {
        let [.., act, pointer] = &self.units[..at] else { return false };
        let plain = matches!(act.text, "make" | "do" | "take" | "get") && !self.echo.names_act;
        let acts = plain || (act.is(Classes::VERB) && (!self.echo.names_act || self.repeats(act)));
        let points = matches!(pointer.text, "the" | "that" | "this") && pointer.len == 1;
        let unit = &self.units[at];
        let after = unit.after != Gap::None
            || self.units[at + 1..].iter().all(|next| is_courtesy(next.text) || next.is(Classes::FILL));
        let unknown = unit.classes == Classes::default() || unit.classes == Classes::VERB;
        let this = matches!(pointer.text, "that" | "this");
        acts && points && after && unknown && (this || !self.echo.names_things)
    }
}

/// Verbs that say little without their object.
fn is_light(word: &str) -> bool {
    matches!(
        word,
        "make"
            | "complete"
            | "confirm"
            | "finalize"
            | "finalise"
            | "process"
            | "place"
            | "get"
            | "take"
            | "have"
    )
}

fn is_judging(word: &str) -> bool {
    matches!(word, "'s" | "'ll" | "'d" | "sounds" | "looks" | "seems" | "works" | "sound" | "work")
}

/// Whether anything is put as a question: a question mark, or an auxiliary before its subject.
pub(super) fn is_question(units: &[Unit<'_>]) -> bool {
    units.iter().any(|unit| unit.after == Gap::Question)
        || units.windows(2).enumerate().any(|(at, pair)| {
            let subject_before = at > 0 && units[at - 1].is(Classes::WHO) && units[at - 1].after == Gap::None;
            inverts(&pair[0], &pair[1]) && !subject_before
        })
}

fn inverts(first: &Unit<'_>, second: &Unit<'_>) -> bool {
    first.is(Classes::AUX) && first.len == 1 && first.after == Gap::None && second.is(Classes::WHO)
}

/// Whether the unit at `at` approves of what was asked.
fn approves(units: &[Unit<'_>], at: usize, echo: &Echo<'_>) -> bool {
    let unit = &units[at];
    // "Anything else?" "It is okay, great, thanks." is no yes.
    if unit.is(Classes::YES) {
        let thanks = units.iter().any(|unit| is_thanks(unit.text));
        let may_decline = echo.closing || ((echo.offers || thanks) && is_said_of_it(units, at));
        return !(may_decline && is_resigned(unit.text));
    }
    if unit.is(Classes::ALONE)
        && (units.iter().all(|unit| unit.is(Classes::ALONE)) || echo.contains(unit.text))
    {
        return true;
    }
    !echo.closing
        && !echo.wants_words
        && (unit.is(Classes::GO) || (unit.is(Classes::GOOD) && praises_the_matter(units, at, echo)))
}

/// "It's okay", "that's alright" with nothing after it.
fn is_said_of_it(units: &[Unit<'_>], at: usize) -> bool {
    let mut before = units[..at].iter().rev().take_while(|unit| unit.after == Gap::None);
    let ends = units[at].after != Gap::None
        || units[at + 1..].iter().all(|next| is_courtesy(next.text) || next.text == "you");
    ends && before.any(|unit| matches!(unit.text, "it" | "that" | "this"))
}

fn is_resigned(word: &str) -> bool {
    matches!(word, "ok" | "okay" | "okey" | "k" | "kk" | "alright" | "all" | "it")
}

/// Whether praise is about what was asked.
///
/// "I am right" and "I have a good idea" are about oneself, "you are great" is about the asker, and "great, thanks"
/// without a question ends a talk.
fn praises_the_matter(units: &[Unit<'_>], at: usize, echo: &Echo<'_>) -> bool {
    let clause = || units[..at].iter().rev().take_while(|unit| unit.after == Gap::None);
    let thanked = !echo.asked && units[at].len == 1 && units.iter().any(|unit| is_thanks(unit.text));
    let it = clause().any(|unit| unit.text == "it");
    let turned_down = echo.offers && units[at].text == "fine" && it && is_said_of_it(units, at);
    let about_asker = clause().any(|unit| matches!(unit.text, "are" | "'re" | "were"))
        && !(is_truth(units[at].text) && clause().next().is_some_and(leads_to_truth));
    let about_it = match subject(clause()) {
        Some("i" | "we") => false,
        Some("you") => !about_asker,
        _ => true,
    };
    about_it && !(thanked || turned_down || is_demand(clause()))
}

/// The nearest word before that stands for a person or thing.
fn subject<'u>(mut backwards: impl Iterator<Item = &'u Unit<'u>>) -> Option<&'u str> {
    let stands = |unit: &&Unit<'_>| unit.is(Classes::WHO) || (unit.is(Classes::FILL) && unit.len > 1);
    backwards.find(stands).map(|unit| unit.text)
}

/// "It has to be …", "be …", "the … one": a demand or a description of what is wanted.
fn is_demand<'u>(backwards: impl Iterator<Item = &'u Unit<'u>> + Clone) -> bool {
    let required = backwards.clone().any(|unit| unit.is(Classes::WANT) && unit.len > 1);
    let ordered = backwards.clone().last().is_some_and(|first| matches!(first.text, "be" | "let"));
    let described = backwards.clone().next().is_some_and(|before| before.text == "the");
    required || ordered || (described && subject(backwards).is_none())
}

fn is_thanks(word: &str) -> bool {
    matches!(word, "thanks" | "thank" | "thx" | "ty")
}

/// "You are right" and "you are so right" are about the matter; "you are a bot, right" only asks.
fn leads_to_truth(before: &Unit<'_>) -> bool {
    let strengthens = |word| {
        matches!(
            word,
            "so" | "very"
                | "quite"
                | "absolutely"
                | "totally"
                | "completely"
                | "exactly"
                | "entirely"
                | "definitely"
        )
    };
    matches!(before.text, "are" | "'re" | "were") || strengthens(before.text)
}

fn is_truth(word: &str) -> bool {
    matches!(word, "right" | "correct" | "exactly" | "exact" | "precise" | "precisely" | "accurate" | "spot")
}

/// Whether a word is a longer word of approval with one slip: a letter dropped or doubled inside, or two swapped.
///
/// Other endings and other letters are not forgiven: "correcto" and "perfekt" are other languages' words.
fn misspells_approval(word: &str, lexicon: &Lexicon) -> bool {
    word.len() >= 5 && word.is_ascii() && lexicon.approvals().iter().any(|right| one_slip(word, right))
}

fn one_slip(word: &str, right: &str) -> bool {
    let (short, long) = if word.len() < right.len() { (word, right) } else { (right, word) };
    let same_ends = word.as_bytes()[0] == right.as_bytes()[0] && word.chars().last() == right.chars().last();
    let start = short.bytes().zip(long.bytes()).take_while(|(a, b)| a == b).count();
    let (short, long) = (&short.as_bytes()[start..], &long.as_bytes()[start..]);
    match long.len() - short.len() {
        0 => short.len() > 1 && short[0] == long[1] && short[1] == long[0] && short[2..] == long[2..],
        1 => same_ends && !short.is_empty() && *short == long[1..],
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::normalise::Folded;
    use super::super::question::Language;
    use super::super::units::{tokens, units};
    use super::*;

    #[test]
    fn slips_are_forgiven_but_not_other_endings() {
        assert!(one_slip("corectly", "correctly"));
        assert!(one_slip("correclty", "correctly"));
        assert!(one_slip("exacctly", "exactly"));
        assert!(!one_slip("correcto", "correct"));
        assert!(!one_slip("perfekt", "perfect"));
        assert!(!one_slip("incorrect", "correct"));
    }

    #[track_caller]
    fn obstacle(question: Option<&str>, text: &str) -> String {
        let (asked, said) = (Folded::new(question.unwrap_or_default()), Folded::new(text));
        let lexicon = Lexicon::of(Language::English);
        let echo = Echo::new(&asked, question.is_some(), lexicon);
        let tokens = tokens(&said, lexicon);
        let obstacle = consent(&tokens, &units(&tokens), &echo, lexicon, Risk::Normal).expect_err(text);
        format!("{obstacle:?}")
    }

    #[test]
    fn the_first_word_that_holds_back_is_named() {
        assert_eq!(obstacle(None, "yes, but"), r#"Reserve("but", "contrast")"#);
        assert_eq!(obstacle(None, "yes, 3"), r#"Reserve("3", "num")"#);
        assert_eq!(obstacle(None, "yes, purple"), r#"Unknown("purple")"#);
        assert_eq!(obstacle(None, "is it ok"), "Question");
        assert_eq!(obstacle(None, "thank you"), "NoApproval");
        assert_eq!(obstacle(None, &"yes ".repeat(100)), "Long");
        assert_eq!(obstacle(Some("Paint the door green?"), "green is fine"), r#"Partial("green")"#);
    }
}
