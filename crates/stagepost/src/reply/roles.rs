//! Where a thing stands in the question: an echo that turns it around, or says it twice, is none.

use super::consent::Case;
use super::counter::Counter;
use super::lexicon::Classes;
use super::normalise::Gap;
use super::objects::{is_place, is_pointer};
use super::units::Unit;

impl<'a> Case<'_, 'a, '_> {
    /// Whether a word of the question is repeated in another role, once too often, or for all of its kind.
    pub(super) fn misstates(&self, at: usize) -> bool {
        let repeats = || self.names_or_counts(&self.units[at]);
        self.takes_all(at) || (repeats() && (self.turns_around(at) || self.says_twice(at)))
    }

    /// "Transfer it to Bob?" "Yes, from Bob": the same thing, and the other way round.
    fn turns_around(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let Some(before) = self.leader(at) else { return false };
        let (leader, word) = (self.units[before].text, self.tokens[unit.first].text);
        // "I'd like to transfer it" leads to an act.
        let acts = unit.is(Classes::VERB.or(Classes::CHANGE)) || self.is_unknown_act(unit);
        if leader == "to" && acts {
            return false;
        }
        if !is_directed(leader) {
            // "Remove Bob from the team?" "Remove the team".
            let ends = |counter: &Counter<'_>| counter.is_verb(self.tokens, self.units[before].first);
            let mut asked = self.echo.leaders(word).peekable();
            let acts = self.echo.counter.as_deref().is_some_and(ends);
            return acts && asked.peek().is_some() && asked.all(is_place);
        }
        let mut directed = self.echo.leaders(word).filter(|word| is_directed(word)).peekable();
        match directed.peek() {
            None => {
                matches!(leader, "from" | "without" | "against") || self.echo.points_elsewhere(leader, word)
            }
            Some(_) => !directed.any(|word| direction(word) == direction(leader)),
        }
    }

    /// "100 to Bob and 100 to Bob": more of it than was asked about.
    fn says_twice(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let word = self.tokens[unit.first].text;
        let before = &self.tokens[..unit.first];
        let Some(first) = before.iter().position(|token| token.text == word) else { return false };
        let said = before.iter().filter(|token| token.text == word).count() + 1;
        let adds = |word: &str| matches!(word, "and" | "plus" | "also" | "then");
        let added = before[first..].iter().any(|token| adds(token.text));
        said > self.echo.count(word) && (added || unit.is(Classes::NUM))
    }

    /// "Delete the backups?" "Yes, all backups": perhaps more than those that were meant.
    fn takes_all(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let all = matches!(unit.text, "all" | "both" | "any") && unit.after == Gap::None;
        if !all || self.echo.says_all || self.echo.counter.is_none() {
            return false;
        }
        let points = |next: &&Unit<'_>| is_pointer(next.text) || next.text == "of";
        let thing = self.units[at + 1..].iter().find(|next| !points(next));
        thing.is_some_and(|next| {
            let blank = next.classes.without(Classes::VERB.or(Classes::CHANGE)).is_blank();
            blank && !next.is(Classes::BOOST) && self.repeats(next)
        })
    }

    /// A word of the question that is more than its grammar.
    fn names_or_counts(&self, unit: &Unit<'a>) -> bool {
        let grammar = Classes::APPROVAL.or(Classes::FILL).or(Classes::WHO).or(Classes::AUX);
        unit.len == 1 && !unit.is(grammar) && self.echo.says(&self.tokens[unit.first])
    }
}

/// Words between two things that say which way it goes.
fn is_directed(word: &str) -> bool {
    matches!(word, "from" | "to" | "into" | "onto" | "without" | "against" | "off")
}

fn direction(word: &str) -> &str {
    match word {
        "into" | "onto" => "to",
        word => word,
    }
}
