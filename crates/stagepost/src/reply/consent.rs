//! When an answer is a consent: every word must be accounted for.
//!
//! A consent holds at least one word of approval, and every other word decides nothing or only repeats the
//! question. A negator, contrast, condition, hedge, number or question anywhere ends it, and so does a single
//! word that nobody can account for. There is no score: nothing outweighs a "but".

use super::acts::{is_light, is_question};
use super::counter::Counter;
use super::echo::Echo;
use super::lexicon::{Classes, Lexicon};
use super::praise::{approves, is_truth, misspells_approval};
use super::question::Risk;
use super::units::{Token, Unit};

/// Answers longer than this are read by people.
const MOST_UNITS: usize = 60;

/// What ends a consent even where the question used the same word.
pub(super) const NEVER: Classes = Classes::NO
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
pub(super) const NOTHING: Classes = Classes::FILL.or(Classes::WHO).or(Classes::AUX).or(Classes::CLOSE);

/// Why an answer is no consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Obstacle<'a> {
    /// A word that reserves, refuses or asks, with the class it belongs to.
    Reserve(&'a str, &'static str),
    /// A word that nothing accounts for.
    Unknown(&'a str),
    /// It approves of one thing among several.
    Partial(&'a str),
    /// It speaks of a yes that is not given here and now.
    NotGiven(&'a str),
    /// It is put as a question.
    Question,
    /// What was asked cannot be answered by agreeing.
    Open(&'static str),
    /// Nothing in it approves.
    NoApproval,
    /// It is too long to be only a consent.
    Long,
}

/// Returns a word that ends a consent whatever was asked.
pub(super) fn plain_obstacle<'a>(units: &[Unit<'a>], risk: Risk) -> Option<Obstacle<'a>> {
    let hedges = if risk == Risk::Low { Classes::UNMEANT } else { Classes::HEDGE };
    let asked = Classes::NUM.or(Classes::ORDINAL).or(Classes::STOP).or(Classes::BACK);
    let never = NEVER.without(asked).or(hedges);
    // "Yes, reject it" may carry out what was asked.
    let asked = asked.or(Classes::COUNTER);
    let plain = |unit: &&Unit<'_>| unit.is(never) && !unit.is(asked) && unit.text != "actually";
    let found = units.iter().find(plain)?;
    Some(Obstacle::Reserve(found.phrase, found.classes.name_in(never)))
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
    // "Any problems?" "No problems" is a no.
    let is_fault = |token: &Token<'_>| token.classes().any(Classes::FAULT);
    let faultless =
        |unit: &Unit<'_>| echo.faults && tokens[unit.first..unit.first + unit.len].iter().any(is_fault);
    let mut case = Case { tokens, units, echo, risk, spelling: None };
    let agrees = |at: usize| match &echo.counter {
        Some(counter) => case.agrees_to_end(counter, at),
        None => approves(units, at, echo),
    };
    let approving = (0..units.len()).find(|&at| agrees(at) && !faultless(&units[at]));
    case.spelling = approving.map(|_| lexicon);
    if is_question(units) && !case.is_request() {
        return Err(Obstacle::Question);
    }
    if let Some(why) = case.cannot_be_agreed_to() {
        return Err(Obstacle::Open(why));
    }
    if echo.cuts_a_name(tokens) || case.widens_the_thing() {
        return Err(Obstacle::Partial(units[0].phrase));
    }
    for at in 0..units.len() {
        case.account(at)?;
    }
    let asks = |at: &usize| case.asks_for_the_act(*at) || case.likes_the_suggestion(*at);
    let approving = approving.or_else(|| (0..units.len()).find(asks)).ok_or(Obstacle::NoApproval)?;
    match case.not_given() {
        Some(word) => Err(Obstacle::NotGiven(word)),
        None => Ok(units[approving].phrase),
    }
}

/// What is known while the words are accounted for.
pub(super) struct Case<'c, 'a, 'q> {
    pub(super) tokens: &'c [Token<'a>],
    pub(super) units: &'c [Unit<'a>],
    pub(super) echo: &'c Echo<'q>,
    pub(super) risk: Risk,
    /// Set once something approves: then a misspelled approval may stand beside it.
    pub(super) spelling: Option<&'c Lexicon>,
}

impl<'a> Case<'_, 'a, '_> {
    /// Checks that one unit decides nothing against a consent.
    pub(super) fn account(&self, at: usize) -> Result<(), Obstacle<'a>> {
        let unit = &self.units[at];
        let hedges = if self.risk == Risk::Low { Classes::UNMEANT } else { Classes::HEDGE };
        let never = NEVER.or(hedges);
        if self.misstates(at) {
            return Err(Obstacle::Partial(unit.phrase));
        }
        if unit.is(Classes::NUM.or(Classes::ORDINAL)) && (self.repeats_number(unit) || self.is_one_of_it(at))
        {
            return Ok(());
        }
        if unit.is(never) && !self.is_asked_stop(unit) && !self.is_emphasis(at) {
            return Err(Obstacle::Reserve(unit.phrase, unit.classes.name_in(never)));
        }
        if let Some(obstacle) =
            self.echo.counter.as_ref().and_then(|counter| self.speaks_against_ending(counter, at))
        {
            return Err(obstacle);
        }
        if self.is_supposed(at) || self.is_done(at) {
            return Err(Obstacle::Reserve(unit.phrase, "hedge"));
        }
        if self.is_mockery(at) {
            return Err(Obstacle::Reserve(unit.phrase, "hedge"));
        }
        if (unit.is(Classes::VERB) && self.widens(at) || self.is_each(at)) && !self.echo.says_all {
            return Err(Obstacle::Reserve(unit.phrase, "all"));
        }
        let very = |counter: &Counter<'_>| counter.is_verb(self.tokens, unit.first);
        if unit.is(Classes::CHANGE) && self.echo.counter.as_deref().is_some_and(very) {
            return Ok(());
        }
        if self.helps_with_the_act(at) || self.uses_what_was_asked(at) || self.is_looked_at(at) {
            return Ok(());
        }
        // "Please check it" asks for something first, unless a yes came before.
        let tells = unit.is(Classes::TELL) && !self.opens_with_yes();
        if unit.is(UNLESS_ASKED) && (tells || !self.repeats(unit)) {
            return Err(Obstacle::Reserve(unit.phrase, unit.classes.name_in(UNLESS_ASKED)));
        }
        if self.echo.several && unit.is(Classes::GOOD) {
            return Err(Obstacle::Partial(unit.phrase));
        }
        if unit.is(Classes::MATTER) && self.is_pointed(at) && !self.is_matter(at) && !self.repeats(unit) {
            return Err(Obstacle::Unknown(unit.phrase));
        }
        let nothing = NOTHING.or(Classes::APPROVAL).or(Classes::WANT).or(Classes::HEDGE);
        let act = unit.is(Classes::VERB) && !self.echo.names_act;
        let repeated_request = (unit.is(Classes::ALONE) && self.spelling.is_some())
            || (is_light(unit.text) && self.has_asked_object(at));
        if unit.is(nothing) || act || repeated_request || self.misspells(unit) {
            return Ok(());
        }
        let token = &self.tokens[unit.first];
        if unit.classes.is_blank() && (self.echo.asks_for_one(token) || self.is_other_thing(unit)) {
            return Err(Obstacle::Unknown(unit.phrase));
        }
        if self.repeats(unit) && !self.is_added(at) {
            let partial = self.echo.several || self.names_one_aspect(at);
            return if partial { Err(Obstacle::Partial(unit.phrase)) } else { Ok(()) };
        }
        let object = self.is_known_object(at) || self.is_meant_thing(at) || self.addresses(at);
        let named = self.is_identified(at) || self.is_thanked_for(at);
        if object || named || self.is_matter(at) || self.is_deed(at) {
            Ok(())
        } else {
            Err(Obstacle::Unknown(unit.phrase))
        }
    }

    /// "Tea or coffee?", "what time?" "Yes": nothing is decided by that. Whoever confirms or approves in so many words
    /// means the whole of what was asked.
    pub(super) fn cannot_be_agreed_to(&self) -> Option<&'static str> {
        let confirms = |unit: &Unit<'_>| {
            matches!(unit.text, "approve" | "approved" | "confirm" | "confirmed")
                || unit.text == "i" && unit.is(Classes::GO)
        };
        let short =
            |unit: &Unit<'_>| unit.len == 1 || matches!(unit.text, "yes" | "yeah" | "ok" | "okay" | "sure");
        let plainly =
            |unit: &Unit<'_>| short(unit) && unit.is(Classes::APPROVAL.or(NOTHING)) && unit.text != "do";
        // "Shall we not deploy?" "Yes, deploy".
        let acts = |unit: &Unit<'a>| unit.is(Classes::VERB.or(Classes::CHANGE)) && self.repeats(unit);
        if self.echo.wants_words {
            Some("it was asked what, not whether")
        } else if self.echo.either_or && !self.units.iter().any(confirms) {
            Some("it was asked which of several")
        } else if self.echo.negative && (self.units.iter().all(plainly) || self.units.iter().any(acts)) {
            Some("the question was put in the negative")
        } else {
            None
        }
    }

    pub(super) fn repeats(&self, unit: &Unit<'a>) -> bool {
        let words = &self.tokens[unit.first..unit.first + unit.len];
        let safe = !self.echo.leaves_out || unit.is(Classes::VERB);
        let points = |word: &Token<'_>| {
            matches!(
                word.text,
                "me" | "us" | "it" | "that" | "this" | "for" | "in" | "on" | "up" | "out" | "off"
            )
        };
        let repeated = |(at, word): (usize, &Token<'a>)| self.echo.repeats(word) || (at > 0 && points(word));
        safe && !self.echo.alternatives && words.iter().enumerate().all(repeated)
    }

    pub(super) fn opens_with_yes(&self) -> bool {
        self.units.first().is_some_and(|unit| unit.is(Classes::YES))
    }

    pub(super) fn misspells(&self, unit: &Unit<'a>) -> bool {
        self.spelling.is_some_and(|lexicon| misspells_approval(unit.text, lexicon))
    }

    /// "Yeah, right" and "oh, great" and nothing else are seldom meant.
    pub(super) fn is_mockery(&self, at: usize) -> bool {
        let sighs = at == 1 && self.units[0].text == "oh" && self.units.len() == 2;
        let praise = matches!(
            self.units[at].text,
            "great" | "wonderful" | "fantastic" | "lovely" | "brilliant" | "perfect" | "terrific" | "nice"
        );
        if sighs && praise {
            return true;
        }
        let yeah = at
            .checked_sub(1)
            .is_some_and(|before| matches!(self.units[before].text, "yeah" | "yea" | "sure"));
        yeah && self.units[at].text == "right" && self.units[at].len == 1
    }

    /// "Actually, yes", "that is actually right": it takes nothing back.
    pub(super) fn is_emphasis(&self, at: usize) -> bool {
        let (unit, next) = (&self.units[at], self.units.get(at + 1));
        let states = |before: &Unit<'_>| matches!(before.text, "is" | "'s" | "are" | "'re");
        let stated = at.checked_sub(1).is_some_and(|before| states(&self.units[before]));
        let agrees =
            next.is_some_and(|next| next.is(Classes::YES) && at == 0 || stated && is_truth(next.text));
        unit.text == "actually" && unit.len == 1 && agrees
    }
}

#[cfg(test)]
mod tests {
    use super::super::normalise::Folded;
    use super::super::question::Language;
    use super::super::units::{tokens, units};
    use super::*;

    #[track_caller]
    fn obstacle(question: Option<&str>, text: &str) -> String {
        let (asked, said) = (Folded::new(question.unwrap_or_default()), Folded::new(text));
        let lexicon = Lexicon::of(Language::English);
        let echo = Echo::new(&asked, question.is_some(), lexicon);
        let tokens = tokens(&said, lexicon);
        let obstacle =
            consent(&tokens, &units(&tokens, lexicon), &echo, lexicon, Risk::Normal).expect_err(text);
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
