//! Asking for the very act that was asked about, which is a yes, and only speaking of it, which is none.

use super::consent::{Case, NEVER};
use super::counter::Counter;
use super::lexicon::Classes;
use super::normalise::Gap;
use super::objects::is_pointer;
use super::units::{Unit, is_courtesy};

impl<'a> Case<'_, 'a, '_> {
    /// "Yes, could you book it?", "can you do that for me, please?", "yes, please book it?": a question in form only.
    /// Without a yes it must be polite, for "can you do that?" may want to know whether you can.
    pub(super) fn is_request(&self) -> bool {
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
    pub(super) fn is_request_at(&self, you: usize) -> bool {
        let asking = matches!(self.units[you - 1].text, "can" | "could" | "would" | "will");
        let mut rest =
            self.units[you + 1..].iter().skip_while(|unit| is_courtesy(unit.text) || unit.text == "just");
        let act = rest.next().is_some_and(|act| {
            let stands = matches!(act.text, "do" | "go" | "make" | "get" | "reserve" | "book" | "proceed");
            (act.is(Classes::GO.or(Classes::YES)) && stands)
                || (act.is(Classes::VERB) && self.repeats(act))
                || (is_light(act.text) && self.has_object(you))
        });
        asking && self.units[you].text == "you" && act
    }

    /// "Could you get me the address?" asks for something else: what is got must be a thing, an act or pointed at.
    fn has_object(&self, you: usize) -> bool {
        let points =
            |unit: &Unit<'_>| matches!(unit.text, "it" | "that" | "this" | "them" | "those" | "these");
        self.units[you + 1..].iter().any(|unit| unit.is(Classes::THING.or(Classes::DEED)) || points(unit))
    }

    /// "Book it?" "Please book it", "I would like to book it", "make the booking": asking for the very act is a yes.
    pub(super) fn asks_for_the_act(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let open = self.echo.several || self.echo.wants_words;
        let known = unit.is(Classes::VERB.or(Classes::CHANGE)) || self.is_unknown_act(unit);
        let act = (known && self.repeats(unit))
            || (is_light(unit.text) && self.has_asked_object(at) && !self.echo.alternatives);
        let other = |counter: &Counter<'_>| !counter.is_verb(self.tokens, unit.first);
        if !self.echo.asked || open || !act || self.echo.counter.as_deref().is_some_and(other) {
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

    /// "Archive it?" "Archive it, please": the language does not know the act, but the question does.
    pub(super) fn is_unknown_act(&self, unit: &Unit<'a>) -> bool {
        unit.len == 1 && self.echo.is_act(&self.tokens[unit.first])
    }

    /// "How about the Grand Hotel?" "I like that hotel."
    pub(super) fn likes_the_suggestion(&self, at: usize) -> bool {
        let (unit, next) = (&self.units[at], self.units.get(at + 1));
        let mine = at.checked_sub(1).is_some_and(|before| matches!(self.units[before].text, "i" | "we"));
        let points = next.is_some_and(|next| matches!(next.text, "that" | "this"));
        self.echo.suggests && !self.echo.several && mine && points && matches!(unit.text, "like" | "love")
    }

    /// "Book a visit?" "Yes, help me book one": help with the very act.
    pub(super) fn helps_with_the_act(&self, at: usize) -> bool {
        let act = self.units.get(at + 1).is_some_and(|act| act.is(Classes::VERB) && self.repeats(act));
        self.units[at].text == "help" && act && self.opens_with_yes()
    }

    /// "Cancel the order?" "Yes, cancel it": an act that was asked about, after a yes.
    pub(super) fn is_asked_stop(&self, unit: &Unit<'a>) -> bool {
        let very = self.echo.counter.as_ref().is_some_and(|counter| counter.is_verb(self.tokens, unit.first));
        let refuses = if very { Classes::BAD.or(Classes::LATER) } else { Classes::default() };
        let ends = Classes::STOP.or(Classes::BACK).or(refuses);
        let agreed = self.units.first().is_some_and(|unit| unit.is(Classes::APPROVAL));
        // "Restart it" carries out what was asked; "cancel it" may cancel the asking.
        let carried = unit.is(Classes::BACK.or(refuses))
            && self.tokens.get(unit.first + 1).is_some_and(|next| next.text == "it" || is_pointer(next.text));
        unit.is(ends) && !unit.is(NEVER.without(ends)) && (agreed || carried) && self.repeats(unit)
    }

    /// "I would merge it", "we could do that": says what one would do.
    pub(super) fn is_supposed(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(2) else { return false };
        let (who, would) = (&self.units[before], &self.units[at - 1]);
        let unit = &self.units[at];
        let acts =
            unit.is(Classes::VERB.or(Classes::GO)) && !unit.is(Classes::WANT) && !unit.is(Classes::GOOD);
        let supposing = matches!(would.text, "would" | "could" | "should" | "might" | "'d") && would.len == 1;
        matches!(who.text, "i" | "we") && who.len == 1 && supposing && acts
    }

    /// "I restarted it": it was done, not asked for.
    pub(super) fn is_done(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let past =
            unit.text.ends_with("ed") || matches!(unit.text, "sent" | "bought" | "paid" | "ran" | "made");
        let mine = at.checked_sub(1).is_some_and(|before| {
            self.units[before].len == 1 && matches!(self.units[before].text, "i" | "we" | "'ve" | "already")
        });
        past && mine && unit.len == 1 && !unit.is(Classes::APPROVAL.or(Classes::WANT)) && self.repeats(unit)
    }
}

/// Verbs that say little without their object.
pub(super) fn is_light(word: &str) -> bool {
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

/// Whether anything is put as a question: a question mark, or an auxiliary before its subject.
pub(super) fn is_question(units: &[Unit<'_>]) -> bool {
    units.iter().any(|unit| unit.after == Gap::Question)
        || units.windows(2).enumerate().any(|(at, pair)| {
            let subject_before = at > 0 && units[at - 1].is(Classes::WHO) && units[at - 1].after == Gap::None;
            inverts(&pair[0], &pair[1]) && !subject_before
        })
}

pub(super) fn inverts(first: &Unit<'_>, second: &Unit<'_>) -> bool {
    first.is(Classes::AUX) && first.len == 1 && first.after == Gap::None && second.is(Classes::WHO)
}
