//! Options that are named and not taken: avoided, disliked, refused after all, or only described.

use super::choose::Choosing;
use super::lexicon::Classes;
use super::normalise::Gap;
use super::objects::is_pointer;
use super::units::{Unit, is_courtesy};

/// What refuses or finds fault.
const AGAINST: Classes = Classes::NO.or(Classes::BAD).or(Classes::STOP).or(Classes::AVOID);

impl Choosing<'_, '_, '_> {
    /// Whether a unit avoids, removes or dislikes what is named beside it, in words that the question did not use.
    pub(super) fn avoids(&self, unit: &Unit<'_>) -> bool {
        // "Skip the" is a phrase of its own, and its first word still leaves something out.
        let classes = unit.classes.or(self.answer.tokens[unit.first].classes());
        classes.any(Classes::AVOID.or(Classes::COUNTER))
            && !self.is_named(unit.first)
            && !self.answer.echo().repeats(&self.answer.tokens[unit.first])
    }

    /// Whether the name that ends with a token is refused or described rather than taken.
    pub(super) fn is_spoken_against(&self, first: usize, last: usize) -> bool {
        let units = self.answer.units;
        let at = units.partition_point(|unit| unit.first + unit.len <= last);
        let begin = units.partition_point(|unit| unit.first + unit.len <= first);
        self.is_refused_after(at)
            || self.is_described(at)
            || self.is_done_to(begin)
            || units[..begin].iter().any(|unit| self.is_against_what_follows(unit))
            || units.iter().any(|unit| self.is_foreign_sign(unit))
    }

    /// "Castle no", "castle ❌"; but not "castle, not the harbour", which refuses another.
    fn is_refused_after(&self, at: usize) -> bool {
        let units = self.answer.units;
        let place = Classes::NUM.or(Classes::ORDINAL);
        let names = |unit: &Unit<'_>| self.is_named(unit.first) || unit.is(place);
        let ends =
            |from: usize| units[from..].iter().all(|unit| is_courtesy(unit.text) || unit.is(Classes::NAME));
        (at + 1..units.len()).any(|other| {
            let unit = &units[other];
            let refuses = unit.is(AGAINST) || self.avoids(unit) || (unit.is(Classes::NOT) && ends(other + 1));
            refuses && !self.is_named(unit.first) && !units[other + 1..].iter().any(names)
        })
    }

    /// "Castle is closed", "castle blows": says what it is like, and nothing in it approves.
    fn is_described(&self, at: usize) -> bool {
        let units = self.answer.units;
        let end = units[at..]
            .iter()
            .position(|unit| unit.after != Gap::None)
            .map_or(units.len(), |end| at + end + 1);
        let rest = &units[(at + 1).min(end)..end];
        let rest = match rest {
            [one, rest @ ..] if one.text == "one" || one.is(Classes::OPTION) => rest,
            rest => rest,
        };
        let Some((first, about)) = rest.split_first() else { return false };
        let states = matches!(first.text, "is" | "'s" | "are" | "was" | "were" | "has" | "looks" | "seems");
        let chosen = Classes::APPROVAL.or(Classes::WANT).or(Classes::OPTION).or(Classes::MATTER);
        let likes = |unit: &Unit<'_>| {
            // "A good one" is a phrase of its own, and praises here.
            unit.classes.or(self.answer.tokens[unit.first].classes()).any(chosen)
                || matches!(unit.text, "favourite" | "favorite" | "interesting" | "it" | "mine")
        };
        let denies = |unit: &Unit<'_>| unit.negated || unit.is(Classes::NO.or(Classes::NOT));
        let liked = about.iter().any(likes) && !about.iter().any(denies);
        let states_only = states && first.len == 1 && !liked;
        let verb = about.is_empty() && self.is_foreign(first);
        states_only || verb
    }

    /// "Boycott the castle": something unknown is to be done to it.
    fn is_done_to(&self, at: usize) -> bool {
        let units = self.answer.units;
        let mut before = units[..at].iter().rev().take_while(|unit| unit.after == Gap::None);
        let pointed = before.next().is_some_and(|unit| is_pointer(unit.text));
        pointed && before.next().is_some_and(|act| self.is_foreign(act)) && before.next().is_none()
    }

    /// "Least favourite: castle": a word of dislike in a clause that names nothing is said of what follows.
    fn is_against_what_follows(&self, unit: &Unit<'_>) -> bool {
        let dislikes = unit.is(Classes::BAD) || self.avoids(unit);
        let units = self.answer.units;
        let at = units.partition_point(|other| other.first < unit.first);
        let end =
            units[at..].iter().position(|other| other.after != Gap::None).map_or(units.len(), |end| at + end);
        let start = units[..at].iter().rposition(|other| other.after != Gap::None).map_or(0, |stop| stop + 1);
        let clause = &units[start..=end.min(units.len() - 1)];
        let names =
            |other: &Unit<'_>| self.is_named(other.first) || other.is(Classes::NUM.or(Classes::ORDINAL));
        dislikes && !self.is_named(unit.first) && !clause.iter().any(names)
    }

    /// A box, a cross or any sign that nobody knows: it may say that this is not taken.
    fn is_foreign_sign(&self, unit: &Unit<'_>) -> bool {
        unit.classes.is_blank()
            && !self.is_named(unit.first)
            && !unit
                .text
                .starts_with(|first: char| first.is_alphanumeric() || matches!(first, '\'' | '+' | '-'))
    }

    fn is_foreign(&self, unit: &Unit<'_>) -> bool {
        let token = &self.answer.tokens[unit.first];
        unit.classes.is_blank()
            && !token.is_known()
            && !token.classes().any(Classes::THING.or(Classes::TIME).or(Classes::PLAIN))
            && !self.is_named(unit.first)
            && !self.answer.echo().contains(unit.text)
    }
}
