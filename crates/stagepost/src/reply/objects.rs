//! What an agreement speaks of: things, acts named as things, numbers. Each must be what was asked about.

use super::acts::is_light;
use super::consent::{Case, NOTHING};
use super::echo::is_thing;
use super::lexicon::Classes;
use super::normalise::Gap;
use super::praise::{is_thanks, is_truth};
use super::units::{Unit, is_courtesy};

impl<'a> Case<'_, 'a, '_> {
    /// "Schedule a visit?" "Yes, let's schedule one": not a number, where none was asked about.
    pub(super) fn is_one_of_it(&self, at: usize) -> bool {
        let acts =
            |before: &Unit<'_>| before.after == Gap::None && before.is(Classes::VERB.or(Classes::WANT));
        let ends = self.units[at].after != Gap::None
            || self.units.get(at + 1).is_none_or(|next| is_courtesy(next.text));
        let plain = self.units[at].text == "one" && self.units[at].len == 1;
        plain && ends && self.echo.numbers == 0 && at.checked_sub(1).is_some_and(|at| acts(&self.units[at]))
    }

    /// "Make the booking": the object of a verb that says little is what the question was about.
    pub(super) fn has_asked_object(&self, at: usize) -> bool {
        let decides = NOTHING.or(Classes::WANT).or(Classes::APPROVAL);
        let joined = |unit: &&Unit<'_>| unit.after == Gap::None;
        let count = self.units[at..].iter().take_while(joined).count();
        let object = self.units[at + 1..].iter().take(count);
        let pointed =
            |at: usize| matches!(self.units[at - 1].text, "that" | "this") && self.is_known_object(at);
        object.into_iter().any(|unit| !unit.is(decides) && self.repeats(unit))
            || (at + 2 <= at + count && at + 2 < self.units.len() && pointed(at + 2))
    }

    /// "Thanks for checking": what someone is thanked for.
    pub(super) fn is_thanked_for(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let favour = at.checked_sub(1).is_some_and(|before| self.units[before].text == "for");
        unit.text.ends_with("ing") && favour && self.units[..at].iter().any(|unit| is_thanks(unit.text))
    }

    /// "Pay with the Visa?" "Yes, use that card", "use the Visa".
    pub(super) fn uses_what_was_asked(&self, at: usize) -> bool {
        let points =
            self.units.get(at + 1).is_some_and(|next| matches!(next.text, "the" | "that" | "this" | "it"));
        matches!(self.units[at].text, "use" | "keep")
            && self.units[at].len == 1
            && points
            && self.opens_with_yes()
            && !self.echo.names_act
    }

    /// "That's my card": says what the thing that was pointed at is.
    pub(super) fn is_identified(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let nameable = unit.classes.without(Classes::VERB).is_blank()
            && unit.is(Classes::THING.or(Classes::PLAIN).or(Classes::DEED));
        let Some(is) = self.leader(at).filter(|_| nameable) else { return false };
        let points =
            is.checked_sub(1).is_some_and(|before| matches!(self.units[before].text, "that" | "it" | "this"));
        let ends = unit.after != Gap::None || at + 1 == self.units.len();
        let chosen = matches!(self.units[at - 1].text, "this" | "that");
        self.echo.asked
            && matches!(self.units[is].text, "is" | "'s")
            && points
            && ends
            && !chosen
            && !self.echo.conflicts(&self.tokens[unit.first])
    }

    /// "Play the album?" "Play the movie": what goes with the act, but not with its object.
    pub(super) fn is_other_thing(&self, unit: &Unit<'a>) -> bool {
        let token = &self.tokens[unit.first];
        unit.is(Classes::THING) && !self.echo.says(token) && self.echo.conflicts(token)
    }

    pub(super) fn is_pointed(&self, at: usize) -> bool {
        at.checked_sub(1).is_some_and(|before| is_pointer(self.units[before].text))
    }

    /// "Add it to the calendar?" "Yes, with a reminder": another word for the same is something new after "with".
    pub(super) fn is_added(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let own = self.tokens[unit.first..unit.first + unit.len].iter().all(|token| self.echo.says(token));
        let adds =
            |before: &Unit<'_>| matches!(before.text, "with" | "without" | "as" | "via" | "and" | "plus");
        let opens = self.leader(at).is_some_and(|before| adds(&self.units[before]));
        !own && !unit.is(Classes::VERB.or(Classes::WANT)) && opens && !self.praised_before(at)
    }

    /// The unit before a thing and the words that point at it.
    pub(super) fn leader(&self, at: usize) -> Option<usize> {
        let points = |unit: &Unit<'_>| is_pointer(unit.text) && unit.len == 1 || unit.is(Classes::GOOD);
        let joined = |before: &usize| self.units[*before].after == Gap::None;
        let before = (0..at).rev().take_while(joined).find(|&before| !points(&self.units[before]))?;
        Some(before)
    }

    /// The units of the clause around a unit.
    pub(super) fn clause(&self, at: usize) -> std::ops::Range<usize> {
        let start =
            self.units[..at].iter().rposition(|unit| unit.after != Gap::None).map_or(0, |stop| stop + 1);
        let end = self.units[at..].iter().position(|unit| unit.after != Gap::None);
        start..end.map_or(self.units.len(), |end| at + end + 1)
    }

    /// "The plan is fine", "that's the right answer", "go ahead with the plan"; but not "send the summary".
    pub(super) fn is_matter(&self, at: usize) -> bool {
        if !self.units[at].is(Classes::MATTER) {
            return false;
        }
        let clause = self.clause(at);
        let judges = |unit: &Unit<'_>| {
            unit.is(Classes::GOOD.or(Classes::GO))
                || unit.is(Classes::YES) && (unit.len > 1 || matches!(unit.text, "agree" | "granted"))
        };
        let acts = |unit: &Unit<'_>| unit.is(Classes::VERB) && !unit.is(Classes::APPROVAL.or(Classes::WANT));
        let before = &self.units[clause.start..at];
        let placed = self.leader(at).is_some_and(|before| is_place(self.units[before].text));
        let points =
            |unit: &Unit<'_>| matches!(unit.text, "that" | "this" | "it" | "these" | "those" | "you" | "my");
        if before.iter().any(acts) {
            return false;
        }
        if placed {
            before.iter().any(judges)
        } else {
            self.units[clause].iter().any(|unit| judges(unit) || points(unit))
        }
    }

    /// "Make the booking", "go ahead with the reservation": the act as a thing, where the question names no other.
    pub(super) fn is_deed(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let carried = self.clause(at).any(|at| {
            let unit = &self.units[at];
            is_light(unit.text) || unit.is(Classes::GO.or(Classes::WANT)) || unit.text == "make"
        });
        unit.is(Classes::DEED) && !self.echo.names_act && carried && !self.echo.alternatives
    }

    /// "Reserve this?" "Yes, I would like to book a rental car": after a yes, a word for what was only pointed at.
    pub(super) fn is_meant_thing(&self, at: usize) -> bool {
        let (unit, echo) = (&self.units[at], self.echo);
        let open = echo.alternatives || echo.several || echo.leaves_out || echo.wants_words;
        let adds =
            |before: usize| matches!(self.units[before].text, "and" | "plus" | "with" | "as" | "without");
        let meant = echo.only_points && !open && self.opens_with_yes() && !self.leader(at).is_some_and(adds);
        meant && unit.len == 1 && is_thing(&self.tokens[unit.first])
    }

    /// "Yes, captain", "sure, my friend": nobody is meant but the one who asked.
    pub(super) fn addresses(&self, at: usize) -> bool {
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
    pub(super) fn is_known_object(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let token = &self.tokens[unit.first];
        let nameless = unit.classes.without(Classes::VERB).is_blank() && unit.len == 1;
        let adds =
            |before: usize| matches!(self.units[before].text, "and" | "plus" | "with" | "as" | "without");
        let added = self.leader(at).is_some_and(adds) && !self.praised_before(at);
        if !nameless || added || !self.echo.asked || self.echo.alternatives || self.echo.several {
            return false;
        }
        let pointer = at.checked_sub(1).map_or("", |before| self.units[before].text);
        let thing = unit.is(Classes::THING) || is_thing(token);
        let other = thing && self.echo.names_another(token);
        match pointer {
            "that" if unit.is(Classes::TIME) => true,
            "that" | "those" | "this" | "these" if self.is_agreed_with(at) => false,
            _ if !self.echo.names_things && self.is_agreed_with(at) => false,
            "that" | "those" => self.is_object_of_the_act(at) && !(thing && self.echo.conflicts(token)),
            "this" | "these" => {
                self.is_object_of_the_act(at)
                    && !unit.is(Classes::TIME)
                    && !(thing && self.echo.conflicts(token))
            }
            "the" if !self.echo.names_things => self.is_object_of_the_act(at),
            _ => thing && !other && self.is_object_of_the_act(at),
        }
    }

    /// "Do you approve this?" "Approve the logo", "I agree with the rejection": it may be less than what was asked about,
    /// or speak of something else.
    fn is_agreed_with(&self, at: usize) -> bool {
        let start = self.tokens[..self.units[at].first].iter().rposition(|token| token.after != Gap::None);
        let said = &self.tokens[start.map_or(0, |stop| stop + 1)..self.units[at].first];
        let agrees = |word: &str| {
            matches!(word, "approve" | "approved" | "accept" | "accepted" | "agree" | "agreed" | "concur")
        };
        said.iter().any(|token| agrees(token.text))
    }

    /// Whether a thing is what the act is done to, what is wanted, or what is praised.
    pub(super) fn is_object_of_the_act(&self, at: usize) -> bool {
        let rest = self.units.get(at + 1);
        let judged = |unit: &Unit<'_>| unit.is(Classes::AUX.or(Classes::GOOD)) || is_judging(unit.text);
        let ends = self.units[at].after != Gap::None
            || rest
                .is_none_or(|next| next.is(NOTHING.or(Classes::NAME).or(Classes::THING).or(Classes::DEED)));
        let leader = self.leader(at).map(|before| &self.units[before]);
        let acts = leader.is_some_and(|act| {
            let plain =
                matches!(act.text, "make" | "do" | "take" | "get" | "me" | "us") && !self.echo.names_act;
            let same = (act.is(Classes::VERB) || self.is_unknown_act(act))
                && (!self.echo.names_act || self.repeats(act));
            let given = matches!(act.text, "me" | "us")
                && self
                    .clause(at)
                    .any(|at| self.units[at].is(Classes::VERB) && self.repeats(&self.units[at]));
            let wanted = act.is(Classes::WANT.or(Classes::GO)) || act.is(Classes::GOOD);
            plain
                || same
                || given
                || wanted
                || is_light(act.text)
                || is_place(act.text) && act.len == 1 && self.praised_before(at)
        });
        let pointed = matches!(self.units[at.saturating_sub(1)].text, "that" | "this" | "those" | "these");
        let subject = pointed && leader.is_none_or(|before| before.is(Classes::YES));
        (acts && ends) || (subject && self.units[at].after == Gap::None && rest.is_some_and(judged))
    }

    pub(super) fn praised_before(&self, at: usize) -> bool {
        let start = self.clause(at).start;
        self.units[start..at]
            .iter()
            .any(|unit| unit.is(Classes::GOOD.or(Classes::GO)) || unit.is(Classes::YES) && unit.len > 1)
    }

    /// "A green door is fine", "I'm fine with a green door": approving of one thing the question named leaves the rest open.
    pub(super) fn names_one_aspect(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let pointed = |unit: &Unit<'_>| matches!(unit.text, "that" | "this" | "these" | "those");
        let mut before = self.units[..at].iter().rev().take(3).take_while(|unit| unit.after == Gap::None);
        if unit.is(Classes::MATTER.or(Classes::DEED)) || before.any(pointed) || self.is_repeated_time(at) {
            return false;
        }
        let judged = |unit: &Unit<'_>| {
            unit.is(Classes::AUX.or(Classes::GOOD)) || is_judging(unit.text) || unit.text == "should"
        };
        let acts =
            unit.is(Classes::VERB.or(Classes::CHANGE)) || self.echo.is_gerund(&self.tokens[unit.first]);
        let chosen = |next: &Unit<'_>| next.text == "one" && !acts;
        let is_judged = unit.after == Gap::None
            && self.units.get(at + 1).is_some_and(|next| judged(next) || chosen(next));
        let they = at >= 2 && self.units[at - 2].text == "they" && self.units[at - 1].is(Classes::AUX);
        they || is_judged || (!acts && self.is_praised_with(at))
    }

    /// "Yes, Tuesday works", "yes, 20 dollars is fine": after a yes, a time or an amount that was asked about.
    fn is_repeated_time(&self, at: usize) -> bool {
        let number = |before: usize| self.units[before].is(Classes::NUM.or(Classes::ORDINAL));
        let counted = at.checked_sub(1).is_some_and(number);
        self.opens_with_yes() && (counted || self.tokens[self.units[at].first].classes().any(Classes::TIME))
    }

    /// "I'm fine with …": praise of what follows.
    fn is_praised_with(&self, at: usize) -> bool {
        let start = self.clause(at).start;
        let praised = self.units[start..at].iter().any(|unit| unit.is(Classes::GOOD));
        let with = |before: &Unit<'_>| {
            let praises =
                before.is(Classes::GOOD) && self.tokens[before.first + before.len - 1].text == "with";
            praises || (before.text == "with" && before.len == 1 && praised)
        };
        let leads = |before: &&Unit<'_>| before.after == Gap::None;
        self.units[..at].iter().rev().take(4).take_while(leads).any(with)
    }

    /// "On May 3rd?" "Yes, May 3rd": a number of the question, said after a yes.
    pub(super) fn repeats_number(&self, unit: &Unit<'a>) -> bool {
        let before = self.units.iter().take_while(|other| other.first < unit.first);
        let agrees = before.into_iter().any(|unit| unit.is(Classes::YES) || is_truth(unit.text));
        let plain = unit.classes.without(Classes::NUM.or(Classes::ORDINAL)).is_blank();
        agrees && plain && !self.echo.several && self.echo.repeats_number(self.tokens, unit.first)
    }

    /// "Delete everything": an act must not grow beyond what was asked.
    pub(super) fn widens(&self, at: usize) -> bool {
        self.units[at + 1..].iter().take(2).any(|next| next.is(Classes::ALL))
    }

    /// "Yes, every Friday": more than was asked.
    pub(super) fn is_each(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let counted = self
            .units
            .get(at + 1)
            .is_some_and(|next| !next.is(NOTHING.or(Classes::APPROVAL).or(Classes::MATTER)));
        matches!(unit.text, "each" | "every") && unit.len == 1 && unit.after == Gap::None && counted
    }
}

/// Words that only point at a thing.
pub(super) fn is_pointer(word: &str) -> bool {
    matches!(
        word,
        "the" | "a" | "an" | "that" | "this" | "those" | "these" | "my" | "our" | "your" | "some" | "such"
    )
}

/// Words that put a thing beside another.
pub(super) fn is_place(word: &str) -> bool {
    matches!(
        word,
        "with" | "in" | "on" | "for" | "to" | "at" | "from" | "as" | "via" | "by" | "into" | "without"
    )
}

pub(super) fn is_judging(word: &str) -> bool {
    matches!(word, "'s" | "'ll" | "'d" | "sounds" | "looks" | "seems" | "works" | "sound" | "work")
}
