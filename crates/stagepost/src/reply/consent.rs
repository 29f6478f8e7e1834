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
    /// What was asked cannot be answered by agreeing.
    Open(&'static str),
    /// Nothing in it approves.
    NoApproval,
    /// It is too long to be only a consent.
    Long,
}

/// Returns a word that ends a consent whatever was asked.
pub(super) fn plain_obstacle<'a>(units: &[Unit<'a>], risk: Risk) -> Option<Obstacle<'a>> {
    let hedges = if risk == Risk::Low { Classes::default() } else { Classes::HEDGE };
    let asked = Classes::NUM.or(Classes::ORDINAL).or(Classes::STOP).or(Classes::BACK);
    let never = NEVER.without(asked).or(hedges);
    let plain = |unit: &&Unit<'_>| unit.is(never) && !unit.is(asked) && unit.text != "actually";
    let found = units.iter().find(plain)?;
    Some(Obstacle::Reserve(found.text, found.classes.name_in(never)))
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
    let approving = (0..units.len()).find(|&at| approves(units, at, echo) && !faultless(&units[at]));
    let case = Case { tokens, units, echo, risk, spelling: approving.map(|_| lexicon) };
    if is_question(units) && !case.is_request() {
        return Err(Obstacle::Question);
    }
    if let Some(why) = case.cannot_be_agreed_to() {
        return Err(Obstacle::Open(why));
    }
    if echo.cuts_a_name(tokens) {
        return Err(Obstacle::Partial(units[0].text));
    }
    for at in 0..units.len() {
        case.account(at)?;
    }
    let asks = |at: &usize| case.asks_for_the_act(*at) || case.likes_the_suggestion(*at);
    let approving = approving.or_else(|| (0..units.len()).find(asks));
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
        if unit.is(never) && !self.is_asked_stop(unit) && !self.is_emphasis(at) {
            return Err(Obstacle::Reserve(unit.text, unit.classes.name_in(never)));
        }
        if self.is_supposed(at) || self.is_done(at) {
            return Err(Obstacle::Reserve(unit.text, "hedge"));
        }
        if self.is_mockery(at) {
            return Err(Obstacle::Reserve(unit.text, "hedge"));
        }
        if (unit.is(Classes::VERB) && self.widens(at) || self.is_each(at)) && !self.echo.says_all {
            return Err(Obstacle::Reserve(unit.text, "all"));
        }
        if unit.is(UNLESS_ASKED) && !self.repeats(unit) && !self.helps_with_the_act(at) && !self.uses_what_was_asked(at) {
            return Err(Obstacle::Reserve(unit.text, unit.classes.name_in(UNLESS_ASKED)));
        }
        if self.echo.several && unit.is(Classes::GOOD) {
            return Err(Obstacle::Partial(unit.text));
        }
        if unit.is(Classes::MATTER) && self.is_pointed(at) && !self.is_matter(at) && !self.repeats(unit) {
            return Err(Obstacle::Unknown(unit.text));
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
            return Err(Obstacle::Unknown(unit.text));
        }
        if self.repeats(unit) && !self.is_added(at) {
            let partial = self.echo.several || self.names_one_aspect(at);
            return if partial { Err(Obstacle::Partial(unit.text)) } else { Ok(()) };
        }
        let object = self.is_known_object(at) || self.is_meant_thing(at) || self.addresses(at);
        let named = self.is_identified(at) || self.is_thanked_for(at);
        if object || named || self.is_matter(at) || self.is_deed(at) { Ok(()) } else { Err(Obstacle::Unknown(unit.text)) }
    }

    /// "Tea or coffee?", "what time?" "Yes": nothing is decided by that. Whoever confirms or approves in so many words
    /// means the whole of what was asked.
    fn cannot_be_agreed_to(&self) -> Option<&'static str> {
        let confirms = |unit: &Unit<'_>| {
            matches!(unit.text, "approve" | "approved" | "confirm" | "confirmed") || unit.text == "i" && unit.is(Classes::GO)
        };
        let plainly = |unit: &Unit<'_>| unit.len == 1 && unit.is(Classes::APPROVAL.or(NOTHING)) && unit.text != "do";
        if self.echo.wants_words {
            Some("it was asked what, not whether")
        } else if self.echo.either_or && !self.units.iter().any(confirms) {
            Some("it was asked which of several")
        } else if self.echo.negative && self.units.iter().all(plainly) {
            Some("the question was put in the negative")
        } else {
            None
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
        let plain = unit.classes.without(Classes::NUM.or(Classes::ORDINAL)).is_blank();
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
            |unit: &Unit<'_>| unit.len > 2 && matches!(unit.text, "can" | "could" | "would" | "will");
        let request = |unit: &Unit<'_>| phrased(unit) && (yes || unit.is(Classes::GO.or(Classes::YES)));
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

    /// "How about the Grand Hotel?" "I like that hotel."
    fn likes_the_suggestion(&self, at: usize) -> bool {
        let (unit, next) = (&self.units[at], self.units.get(at + 1));
        let mine = at.checked_sub(1).is_some_and(|before| matches!(self.units[before].text, "i" | "we"));
        let points = next.is_some_and(|next| matches!(next.text, "that" | "this"));
        self.echo.suggests && !self.echo.several && mine && points && matches!(unit.text, "like" | "love")
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
        let counted = at.checked_sub(1).is_some_and(|before| self.units[before].is(Classes::NUM.or(Classes::ORDINAL)));
        let timed = self.opens_with_yes() && (counted || self.tokens[self.units[at].first].classes().any(Classes::TIME));
        let they = at >= 2 && self.units[at - 2].text == "they" && self.units[at - 1].is(Classes::AUX);
        they || (!ends && !timed && self.units.get(at + 1).is_some_and(judged) && !before.any(pointed))
    }

    /// "Cancel the order?" "Yes, cancel it": an act that was asked about, after a yes.
    fn is_asked_stop(&self, unit: &Unit<'a>) -> bool {
        let ends = Classes::STOP.or(Classes::BACK);
        let agreed = self.units.first().is_some_and(|unit| unit.is(Classes::APPROVAL));
        // "Restart it" carries out what was asked; "cancel it" may cancel the asking.
        let carried = unit.is(Classes::BACK) && self.tokens.get(unit.first + 1).is_some_and(|next| next.text == "it" || is_pointer(next.text));
        unit.is(ends) && !unit.is(NEVER.without(ends)) && (agreed || carried) && self.repeats(unit)
    }

    /// "Thanks for checking": what someone is thanked for.
    fn is_thanked_for(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let favour = at.checked_sub(1).is_some_and(|before| self.units[before].text == "for");
        unit.text.ends_with("ing") && favour && self.units[..at].iter().any(|unit| is_thanks(unit.text))
    }

    /// "Pay with the Visa?" "Yes, use that card", "use the Visa".
    fn uses_what_was_asked(&self, at: usize) -> bool {
        let points = self.units.get(at + 1).is_some_and(|next| matches!(next.text, "the" | "that" | "this" | "it"));
        matches!(self.units[at].text, "use" | "keep") && self.units[at].len == 1 && points && self.opens_with_yes() && !self.echo.names_act
    }

    /// "That's my card": says what the thing that was pointed at is.
    fn is_identified(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let nameable = unit.classes.is_blank() && unit.is(Classes::THING.or(Classes::PLAIN).or(Classes::DEED));
        let Some(is) = self.leader(at).filter(|_| nameable) else { return false };
        let points = is.checked_sub(1).is_some_and(|before| matches!(self.units[before].text, "that" | "it" | "this"));
        let ends = unit.after != Gap::None || at + 1 == self.units.len();
        let chosen = matches!(self.units[at - 1].text, "this" | "that");
        self.echo.asked && matches!(self.units[is].text, "is" | "'s") && points && ends && !chosen && !self.echo.conflicts(&self.tokens[unit.first])
    }

    /// "Actually, yes", "that is actually right": it takes nothing back.
    fn is_emphasis(&self, at: usize) -> bool {
        let (unit, next) = (&self.units[at], self.units.get(at + 1));
        let states = |before: &Unit<'_>| matches!(before.text, "is" | "'s" | "are" | "'re");
        let stated = at.checked_sub(1).is_some_and(|before| states(&self.units[before]));
        let agrees = next.is_some_and(|next| next.is(Classes::YES) && at == 0 || stated && is_truth(next.text));
        unit.text == "actually" && unit.len == 1 && agrees
    }

    /// "I would merge it", "we could do that": says what one would do.
    fn is_supposed(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(2) else { return false };
        let (who, would) = (&self.units[before], &self.units[at - 1]);
        let unit = &self.units[at];
        let acts = unit.is(Classes::VERB.or(Classes::GO)) && !unit.is(Classes::WANT) && !unit.is(Classes::GOOD);
        let supposing = matches!(would.text, "would" | "could" | "should" | "might" | "'d") && would.len == 1;
        matches!(who.text, "i" | "we") && who.len == 1 && supposing && acts
    }

    /// "I restarted it": it was done, not asked for.
    fn is_done(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let past = unit.text.ends_with("ed") || matches!(unit.text, "sent" | "bought" | "paid" | "ran" | "made");
        let mine = at.checked_sub(1).is_some_and(|before| self.units[before].len == 1 && matches!(self.units[before].text, "i" | "we" | "'ve" | "already"));
        past && mine && unit.len == 1 && !unit.is(Classes::APPROVAL.or(Classes::WANT)) && self.repeats(unit)
    }

    /// "Play the album?" "Play the movie": what goes with the act, but not with its object.
    fn is_other_thing(&self, unit: &Unit<'a>) -> bool {
        let token = &self.tokens[unit.first];
        unit.is(Classes::THING) && !self.echo.says(token) && self.echo.conflicts(token)
    }

    fn is_pointed(&self, at: usize) -> bool {
        at.checked_sub(1).is_some_and(|before| is_pointer(self.units[before].text))
    }

    /// "Yes, every Friday": more than was asked.
    fn is_each(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let counted = self.units.get(at + 1).is_some_and(|next| !next.is(NOTHING.or(Classes::APPROVAL).or(Classes::MATTER)));
        matches!(unit.text, "each" | "every") && unit.len == 1 && unit.after == Gap::None && counted
    }

    /// "Book a visit?" "Yes, help me book one": help with the very act.
    fn helps_with_the_act(&self, at: usize) -> bool {
        let act = self.units.get(at + 1).is_some_and(|act| act.is(Classes::VERB) && self.repeats(act));
        self.units[at].text == "help" && act && self.opens_with_yes()
    }

    /// "Add it to the calendar?" "Yes, with a reminder": another word for the same is something new after "with".
    fn is_added(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let own = self.tokens[unit.first..unit.first + unit.len].iter().all(|token| self.echo.says(token));
        let adds = |before: &Unit<'_>| matches!(before.text, "with" | "without" | "as" | "via" | "and" | "plus");
        let opens = self.leader(at).is_some_and(|before| adds(&self.units[before]));
        !own && !unit.is(Classes::VERB.or(Classes::WANT)) && opens && !self.praised_before(at)
    }

    /// The unit before a thing and the words that point at it.
    fn leader(&self, at: usize) -> Option<usize> {
        let points = |unit: &Unit<'_>| is_pointer(unit.text) && unit.len == 1 || unit.is(Classes::GOOD);
        let joined = |before: &usize| self.units[*before].after == Gap::None;
        let before = (0..at).rev().take_while(joined).find(|&before| !points(&self.units[before]))?;
        Some(before)
    }

    /// The units of the clause around a unit.
    fn clause(&self, at: usize) -> std::ops::Range<usize> {
        let start = self.units[..at].iter().rposition(|unit| unit.after != Gap::None).map_or(0, |stop| stop + 1);
        let end = self.units[at..].iter().position(|unit| unit.after != Gap::None);
        start..end.map_or(self.units.len(), |end| at + end + 1)
    }

    /// "The plan is fine", "that's the right answer", "go ahead with the plan"; but not "send the summary".
    fn is_matter(&self, at: usize) -> bool {
        if !self.units[at].is(Classes::MATTER) {
            return false;
        }
        let clause = self.clause(at);
        let judges = |unit: &Unit<'_>| {
            unit.is(Classes::GOOD.or(Classes::GO)) || unit.is(Classes::YES) && (unit.len > 1 || matches!(unit.text, "agree" | "granted"))
        };
        let acts = |unit: &Unit<'_>| unit.is(Classes::VERB) && !unit.is(Classes::APPROVAL.or(Classes::WANT));
        let before = &self.units[clause.start..at];
        let placed = self.leader(at).is_some_and(|before| is_place(self.units[before].text));
        let points = |unit: &Unit<'_>| matches!(unit.text, "that" | "this" | "it" | "these" | "those" | "you" | "my");
        if before.iter().any(acts) {
            return false;
        }
        if placed { before.iter().any(judges) } else { self.units[clause].iter().any(|unit| judges(unit) || points(unit)) }
    }

    /// "Make the booking", "go ahead with the reservation": the act as a thing, where the question names no other.
    fn is_deed(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let carried = self.clause(at).any(|at| {
            let unit = &self.units[at];
            is_light(unit.text) || unit.is(Classes::GO.or(Classes::WANT)) || unit.text == "make"
        });
        unit.is(Classes::DEED) && !self.echo.names_act && carried && !self.echo.alternatives
    }

    /// "Reserve this?" "Yes, I would like to book a rental car": after a yes, a word for what was only pointed at.
    fn is_meant_thing(&self, at: usize) -> bool {
        let (unit, echo) = (&self.units[at], self.echo);
        let open = echo.alternatives || echo.several || echo.leaves_out || echo.wants_words;
        let adds = |before: usize| matches!(self.units[before].text, "and" | "plus" | "with" | "as" | "without");
        let meant = echo.only_points && !open && self.opens_with_yes() && !self.leader(at).is_some_and(adds);
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

    /// "Reserve it?" "Yes, reserve the car", "that car sounds good": a word for what the question is about.
    fn is_known_object(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let token = &self.tokens[unit.first];
        let nameless = unit.classes.without(Classes::VERB).is_blank() && unit.len == 1;
        let adds = |before: usize| matches!(self.units[before].text, "and" | "plus" | "with" | "as" | "without");
        let added = self.leader(at).is_some_and(adds) && !self.praised_before(at);
        if !nameless || added || !self.echo.asked || self.echo.alternatives || self.echo.several {
            return false;
        }
        let pointer = at.checked_sub(1).map_or("", |before| self.units[before].text);
        let thing = unit.is(Classes::THING) || is_thing(token);
        let other = thing && self.echo.names_another(token);
        match pointer {
            "that" if unit.is(Classes::TIME) => true,
            "that" | "those" => self.is_object_of_the_act(at) && !(thing && self.echo.conflicts(token)),
            "this" | "these" => {
                self.is_object_of_the_act(at) && !unit.is(Classes::TIME) && !(thing && self.echo.conflicts(token))
            }
            "the" if !self.echo.names_things => self.is_object_of_the_act(at),
            _ => thing && !other && self.is_object_of_the_act(at),
        }
    }

    /// Whether a thing is what the act is done to, what is wanted, or what is praised.
    fn is_object_of_the_act(&self, at: usize) -> bool {
        let rest = self.units.get(at + 1);
        let judged = |unit: &Unit<'_>| unit.is(Classes::AUX.or(Classes::GOOD)) || is_judging(unit.text);
        let ends = self.units[at].after != Gap::None || rest.is_none_or(|next| next.is(NOTHING.or(Classes::NAME).or(Classes::THING).or(Classes::DEED)));
        let leader = self.leader(at).map(|before| &self.units[before]);
        let acts = leader.is_some_and(|act| {
            let plain = matches!(act.text, "make" | "do" | "take" | "get" | "me" | "us") && !self.echo.names_act;
            let same = act.is(Classes::VERB) && (!self.echo.names_act || self.repeats(act));
            let given = matches!(act.text, "me" | "us") && self.clause(at).any(|at| self.units[at].is(Classes::VERB) && self.repeats(&self.units[at]));
            let wanted = act.is(Classes::WANT.or(Classes::GO)) || act.is(Classes::GOOD);
            plain || same || given || wanted || is_light(act.text) || is_place(act.text) && act.len == 1 && self.praised_before(at)
        });
        let subject = leader.is_none_or(|before| before.is(Classes::YES));
        (acts && ends) || (subject && self.units[at].after == Gap::None && rest.is_some_and(judged))
    }

    fn praised_before(&self, at: usize) -> bool {
        let start = self.clause(at).start;
        self.units[start..at].iter().any(|unit| unit.is(Classes::GOOD.or(Classes::GO)) || unit.is(Classes::YES) && unit.len > 1)
    }
}

/// Words that only point at a thing.
fn is_pointer(word: &str) -> bool {
    matches!(word, "the" | "a" | "an" | "that" | "this" | "those" | "these" | "my" | "our" | "your" | "some" | "such")
}

/// Words that put a thing beside another.
fn is_place(word: &str) -> bool {
    matches!(word, "with" | "in" | "on" | "for" | "to" | "at" | "from" | "as" | "via" | "by" | "into" | "without")
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
    let short = units[at].len == 1 || units[at].text == "all";
    let thanked = !echo.asked && short && units.iter().any(|unit| is_thanks(unit.text));
    let it = clause().any(|unit| unit.text == "it");
    let turned_down = echo.offers && units[at].text == "fine" && it && is_said_of_it(units, at);
    let about_asker = clause().any(|unit| matches!(unit.text, "are" | "'re" | "were"))
        && !(is_truth(units[at].text) && clause().next().is_some_and(leads_to_truth));
    let about_it = match subject(clause()) {
        Some("i" | "we") => false,
        Some("you") => !about_asker,
        _ => true,
    };
    about_it && !(thanked || turned_down || is_demand(clause()) || describes(units, at))
}

/// "It's a nice place", "it was good": tells what something is like, and asks for nothing.
fn describes(units: &[Unit<'_>], at: usize) -> bool {
    let unit = &units[at];
    let before = || units[..at].iter().rev().take_while(|unit| unit.after == Gap::None);
    let past = before().any(|unit| matches!(unit.text, "was" | "were")) && unit.len == 1 && !is_truth(unit.text);
    let article = before().next().is_some_and(|unit| matches!(unit.text, "a" | "an" | "such"));
    let thing = units.get(at + 1).is_some_and(|next| next.is(Classes::THING) || next.classes.is_blank() && !next.is(Classes::DEED));
    let subject = before().any(|unit| unit.is(Classes::THING));
    let plainly = matches!(unit.text, "fine" | "ok" | "okay" | "right" | "correct" | "perfect" | "good" | "alright");
    let is = before().any(|unit| matches!(unit.text, "is" | "'s" | "are"));
    past || (article && thing && unit.after == Gap::None) || (subject && is && !plainly)
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
    let first = word.as_bytes()[0];
    let start = lexicon.approvals().partition_point(|right| right.as_bytes()[0] < first);
    let mut near = lexicon.approvals()[start..].iter().take_while(|right| right.as_bytes()[0] == first);
    word.len() >= 5 && word.is_ascii() && near.any(|right| one_slip(word, right))
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
        let obstacle = consent(&tokens, &units(&tokens, lexicon), &echo, lexicon, Risk::Normal).expect_err(text);
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
