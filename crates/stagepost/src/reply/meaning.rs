//! What an answer means, before anyone asks which actions are open.
//!
//! Refusing, going back and asking for more are read generously: the cost of a mistake is one more question.
//! Consent is not decided here but in [`super::consent`], and comes first.

use super::acts::is_question;
use super::consent::{Obstacle, consent, plain_obstacle};
use super::counter::Counter;
use super::echo::{Asked, Echo};
use super::lexicon::{Classes, Lexicon};
use super::normalise::Gap;
use super::question::Risk;
use super::units::{Token, Unit, is_courtesy};

/// What an answer means at any kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Yes, and nothing else.
    Consent,
    /// No, or not now.
    Refusal,
    /// Stop altogether.
    Cancel,
    /// Return to an earlier point.
    Back,
    /// Something is to be different; the words begin at this token.
    Change(usize),
    /// Wants more, other, or an explanation.
    More,
    /// Asks something back.
    Question,
    /// Agrees, and says something else that nothing accounts for.
    Qualified,
    /// A bare no where a no can mean either.
    Either,
    /// Is not sure or has no preference.
    Hedge,
    /// Says nothing: a greeting, thanks, a sound.
    Empty,
    /// Says something that answers no question of ours.
    Other,
}

/// A meaning with the reason for it.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    pub(super) meaning: Meaning,
    /// The word it rests on.
    pub(super) word: &'a str,
    /// Why it is no consent.
    pub(super) obstacle: Option<Obstacle<'a>>,
}

/// An answer cut up, with the question it answers.
pub(super) struct Answer<'a, 'q> {
    /// The words as they were typed.
    pub(super) text: &'a str,
    pub(super) tokens: &'a [Token<'a>],
    pub(super) units: &'a [Unit<'a>],
    pub(super) asked: &'a Asked<'q>,
}

impl<'a, 'q> Answer<'a, 'q> {
    /// Reads what the answer means.
    pub(super) fn read(&self, lexicon: &Lexicon, risk: Risk) -> Reading<'a> {
        let plain = plain_obstacle(self.units, risk).map_or(Ok(()), Err);
        let agrees = plain.and_then(|()| consent(self.tokens, self.units, self.echo(), lexicon, risk));
        let obstacle = match agrees {
            Ok(word) => return Reading { meaning: Meaning::Consent, word, obstacle: None },
            Err(obstacle) => obstacle,
        };
        let (meaning, word) = self.other_than_consent();
        Reading { meaning, word, obstacle: Some(obstacle) }
    }

    /// What the question said.
    pub(super) fn echo(&self) -> &'a Echo<'q> {
        self.asked.echo()
    }

    fn other_than_consent(&self) -> (Meaning, &'a str) {
        let change = self.change();
        if let Some(word) = self.said(Classes::BACK).filter(|_| self.said(Classes::CHANGE).is_none()) {
            return (Meaning::Back, word);
        }
        if let Some(word) = self.said(Classes::STOP).filter(|_| change.is_none()) {
            return (Meaning::Cancel, word);
        }
        if let Some(word) = self.keeps() {
            return (Meaning::Refusal, word);
        }
        let more = self.said(Classes::MORE.or(Classes::TELL));
        if let Some(word) = self.bare_no().filter(|_| self.echo().negative) {
            return (Meaning::Either, word);
        }
        if let Some(word) = self.refusal() {
            let more = more.filter(|_| self.asks_for_more());
            return match (more, change) {
                (Some(word), None) => (Meaning::More, word),
                (_, Some((at, word))) => (Meaning::Change(at), word),
                (None, None) => (Meaning::Refusal, word),
            };
        }
        let asks = is_question(self.units) || self.said(Classes::ASK).is_some();
        match (change, more) {
            (Some((at, word)), _) => (Meaning::Change(at), word),
            (None, Some(word)) => (Meaning::More, word),
            (None, None) if asks => (Meaning::Question, self.said(Classes::ASK).unwrap_or("?")),
            (None, None) => self.neither(),
        }
    }

    /// Beside a refusal, a word such as "list" asks for something only where it leads its clause.
    fn asks_for_more(&self) -> bool {
        let leads = |at: usize| {
            at == 0 || self.units[at - 1].after != Gap::None || is_courtesy(self.units[at - 1].text)
        };
        let tells = |(at, unit): (usize, &Unit<'_>)| unit.says(Classes::TELL) && leads(at);
        let other = self.said(Classes::MORE).is_some() || is_question(self.units);
        other || self.units.iter().enumerate().any(tells)
    }

    fn neither(&self) -> (Meaning, &'a str) {
        let known = Classes::FILL
            .or(Classes::MATTER)
            .or(Classes::GREET)
            .or(Classes::WHO)
            .or(Classes::AUX)
            .or(Classes::CLOSE);
        if let Some(word) = self.said(Classes::APPROVAL) {
            (Meaning::Qualified, word)
        } else if let Some(word) = self.said(Classes::HEDGE.or(Classes::COND)) {
            (Meaning::Hedge, word)
        } else if self.units.iter().all(|unit| unit.is(known)) {
            (Meaning::Empty, "")
        } else {
            (Meaning::Other, "")
        }
    }

    /// The first unit of these classes that no negator reaches.
    fn said(&self, classes: Classes) -> Option<&'a str> {
        self.units.iter().find(|unit| unit.says(classes)).map(|unit| unit.phrase)
    }

    /// "Remove them?" "Keep them": leaving something as it is, and nothing else.
    fn keeps(&self) -> Option<&'a str> {
        let keeps = |word: &str| matches!(word, "keep" | "leave");
        let points =
            |word: &str| matches!(word, "it" | "them" | "that" | "this" | "those" | "these" | "everything");
        let at = self.tokens.windows(2).position(|pair| keeps(pair[0].text) && points(pair[1].text))?;
        let known = Classes::NO
            .or(Classes::FILL)
            .or(Classes::WHO)
            .or(Classes::WANT)
            .or(Classes::AUX)
            .or(Classes::NOT);
        let kept = |token: &Token<'_>| keeps(token.text) || matches!(token.text, "be" | "alone" | "there");
        let plain = self.tokens.iter().all(|token| kept(token) || token.classes().any(known));
        (plain && !self.echo().contains(self.tokens[at].text)).then_some(self.tokens[at].text)
    }

    /// A no with nothing that says what it refuses.
    fn bare_no(&self) -> Option<&'a str> {
        let bare =
            |unit: &Unit<'_>| unit.len == 1 && unit.is(Classes::NO.or(Classes::FILL).or(Classes::NAME));
        self.said(Classes::NO).filter(|_| self.units.iter().all(bare))
    }

    /// The word a refusal rests on.
    fn refusal(&self) -> Option<&'a str> {
        let plain = Classes::NO.or(Classes::NONE).or(Classes::BAD).or(Classes::DECLINE).or(Classes::LATER);
        let negatable = Classes::APPROVAL.or(Classes::WANT).or(Classes::VERB).or(Classes::CHANGE);
        let negated = |unit: &&Unit<'_>| unit.negated && unit.is(negatable);
        // "Reject it?" "Reject": what was asked, or the asking.
        let asked = |unit: &Unit<'_>| {
            let very = |counter: &Counter<'_>| counter.is_verb(self.tokens, unit.first);
            unit.is(Classes::COUNTER) && self.echo().counter.as_deref().is_some_and(very)
        };
        let refuses = |unit: &&Unit<'_>| unit.says(plain) && !asked(unit);
        self.units
            .iter()
            .find(refuses)
            .map(|unit| unit.phrase)
            .or_else(|| self.units.iter().find(negated).map(|unit| unit.phrase))
            .or_else(|| self.said(Classes::CLOSE).filter(|_| !self.asked.is_known() || self.echo().closing))
            .or_else(|| self.said(Classes::APPROVAL).filter(|_| self.thanks() && self.echo().closing))
            .or_else(|| self.said(Classes::NOT))
    }

    /// Thanks to an offer of further help.
    fn thanks(&self) -> bool {
        let thanks =
            |token: &Token<'_>| ["thanks", "thank", "appreciate", "help", "helpful"].contains(&token.text);
        self.tokens.iter().any(thanks) && !is_question(self.units)
    }

    /// The change that is asked for: where its words begin, and the word that shows it.
    fn change(&self) -> Option<(usize, &'a str)> {
        let shows = Classes::CHANGE.or(Classes::NUM).or(Classes::ORDINAL);
        let makes = |unit: &Unit<'_>| unit.text == "make" && unit.len > 1 && unit.says(Classes::WANT);
        let turned = |unit: &Unit<'_>| {
            makes(unit) || matches!(unit.text, "instead" | "actually" | "rather" | "prefer")
        };
        let by_word = self.units.iter().find(|unit| unit.says(shows) && !self.is_later(unit));
        // "Yes, but later" and "actually, not yet" put off; they change nothing.
        let turns = self.has_content() && self.said(Classes::LATER).is_none();
        let by_turn = self.units.iter().find(|unit| turned(unit) && turns);
        let by_but = self.said_then_but().filter(|_| turns);
        let shown = by_word.or(by_turn).or(by_but).or_else(|| self.wanted_instead())?;
        Some((self.first_content(), shown.phrase))
    }

    fn is_later(&self, unit: &Unit<'_>) -> bool {
        unit.is(Classes::LATER)
    }

    /// "Yes, but …"
    fn said_then_but(&self) -> Option<&'a Unit<'a>> {
        self.said(Classes::APPROVAL)?;
        self.units.iter().find(|unit| unit.is(Classes::CONTRAST))
    }

    /// "No, I want a window seat": a wish with words that the question did not say.
    fn wanted_instead(&self) -> Option<&'a Unit<'a>> {
        self.said(Classes::NO.or(Classes::BAD))?;
        let at = self.units.iter().position(|unit| unit.says(Classes::WANT.or(Classes::VERB)))?;
        let new = |unit: &Unit<'_>| unit.classes.is_blank() && !self.echo().repeats(&self.tokens[unit.first]);
        let past = self.units[..at].iter().any(|unit| matches!(unit.text, "was" | "were" | "did" | "just"));
        let later =
            self.said(Classes::LATER).is_some() || self.tokens.iter().any(|token| ponders(token.text));
        (!past && !later && self.units[at..].iter().any(new)).then(|| &self.units[at])
    }

    fn has_content(&self) -> bool {
        let content = |unit: &Unit<'_>| unit.classes.is_blank() || unit.is(Classes::CHANGE.or(Classes::VERB));
        self.units.iter().any(content)
    }

    /// The first token after the leading yes, no, but and interjections.
    fn first_content(&self) -> usize {
        let leading = Classes::APPROVAL.or(Classes::NO).or(Classes::GREET).or(Classes::BAD);
        let sound = |unit: &Unit<'_>| unit.is(leading) || is_interjection(unit.text) || is_turn(unit.text);
        self.units.iter().find(|unit| !sound(unit)).map_or(0, |unit| unit.first)
    }
}

/// "No, I need to ask my wife": what one has to find out first is no wish.
fn ponders(word: &str) -> bool {
    matches!(
        word,
        "ask"
            | "think"
            | "sure"
            | "discuss"
            | "consult"
            | "decide"
            | "consider"
            | "talk"
            | "rethink"
            | "browse"
            | "compare"
    )
}

/// Words that only announce a change; "except" and "only" belong to it.
fn is_turn(word: &str) -> bool {
    matches!(word, "but" | "however" | "though" | "although" | "actually")
}

fn is_interjection(word: &str) -> bool {
    matches!(
        word,
        "oh" | "ah"
            | "uh"
            | "um"
            | "umm"
            | "uhm"
            | "hm"
            | "hmm"
            | "well"
            | "so"
            | "please"
            | "thanks"
            | "and"
    )
}
