//! Whether a yes is given here and now, by the one who was asked.
//!
//! "You said yes" tells of another's yes, "I will approve" promises one, "get it approved" asks for one, "it was ok" is
//! over, and "ok, let me look" comes before one. Each holds a word of approval, and else only words that decide
//! nothing by themselves.

use super::consent::Case;
use super::lexicon::Classes;
use super::normalise::Gap;
use super::praise::is_truth;
use super::units::{Token, Unit, is_courtesy};

impl<'a> Case<'_, 'a, '_> {
    /// Returns the word that shows that no yes is given here and now.
    pub(super) fn not_given(&self) -> Option<&'a str> {
        let shows = |at: &usize| {
            self.is_looking(*at)
                || self.is_told(*at)
                || self.is_settled_elsewhere(*at)
                || self.is_intended(*at)
                || self.is_sought(*at)
                || self.is_over(*at)
                || self.is_expected(*at)
                || self.is_wondering(*at)
                || self.is_theirs(*at)
                || self.is_of_others(*at)
                || self.is_lacking(*at)
                || self.is_correction(*at)
                || self.is_asked_of_others(*at)
                || self.is_of_a_part(*at)
                || self.is_scorned(*at)
        };
        (0..self.units.len()).find(shows).map(|at| self.units[at].phrase)
    }

    /// "They do", "it is", "you did": a short answer about someone or something that the question did not ask about. "Do
    /// they match?" "They do" is a yes, "deploy it?" "they do" is none; "you may" gives leave anywhere.
    fn is_of_others(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let last = self.tokens[unit.first + unit.len - 1].text;
        let states = matches!(last, "is" | "was" | "does" | "did" | "do" | "are" | "were" | "will" | "would");
        if !states || !matches!(unit.text, "it" | "they" | "you") || !unit.is(Classes::YES) || unit.len != 2 {
            return false;
        }
        let unasked = !self.echo.asked
            && (unit.text != "they" || self.units[..at].iter().any(|unit| unit.is(Classes::YES)));
        let open = unit.text != "they" && !self.echo.names_act;
        // "Shall we meet on Wednesday?" "Wednesday it is".
        let settles = last == "is" && self.before(at).next().is_some_and(|before| self.repeats(before));
        !(unasked || open || settles || self.echo.asks_whether(unit.text, last))
    }

    /// "I agree it needs work", "that needs a plan": agrees that something is missing.
    fn is_lacking(&self, at: usize) -> bool {
        let subject = self.before(at).find(|unit| !is_adverb(unit));
        let next = self.units[at + 1..].iter().take(2).any(|unit| unit.is(Classes::MATTER));
        matches!(self.units[at].text, "needs" | "need")
            && next
            && subject.is_some_and(|who| matches!(who.text, "it" | "this" | "that" | "they"))
    }

    /// "Correct that": asks for something to be put right.
    fn is_correction(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let leads = self.before(at).all(|unit| is_courtesy(unit.text));
        let pointed = self.units.get(at + 1).filter(|next| unit.after == Gap::None && is_it(next.text));
        let ends = |next: &Unit<'_>| {
            next.after != Gap::None || self.units.get(at + 2).is_none_or(|after| is_courtesy(after.text))
        };
        unit.text == "correct" && unit.len == 1 && leads && pointed.is_some_and(ends)
    }

    /// "Yes, I looked at it", "I have read it": done, so that the yes can be given.
    pub(super) fn is_looked_at(&self, at: usize) -> bool {
        let seen = matches!(
            self.units[at].text,
            "looked" | "seen" | "read" | "reviewed" | "checked" | "watched" | "studied" | "inspected"
        );
        let who = self.before(at).find(|unit| !matches!(unit.text, "have" | "'ve" | "just" | "already"));
        seen && self.spelling.is_some() && who.is_some_and(is_asked)
    }

    /// "Ok, let me look", "I'll have a look", "ok, looking": the yes is yet to come.
    fn is_looking(&self, at: usize) -> bool {
        let unit = &self.units[at];
        if unit.len > 1 || self.repeats(unit) {
            return false;
        }
        match unit.text {
            "look" | "looking" => !(self.looks_like(at) || self.is_called(at) || self.is_noun(at)),
            "go" if !self.goes_over(at) => false,
            "go" | "see" | "view" | "try" | "watch" | "listen" | "hear" => {
                let mut before = self.before(at).filter(|unit| !is_adverb(unit)).map(|unit| unit.text);
                match before.next() {
                    Some("will" | "'ll" | "shall" | "must" | "should" | "me") => true,
                    Some("to") => matches!(before.next(), Some("going" | "need" | "have" | "got" | "about")),
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// "Go over it", "go through it".
    fn goes_over(&self, at: usize) -> bool {
        self.units.get(at + 1).is_some_and(|next| matches!(next.text, "over" | "through"))
    }

    /// "Looking good", "looking forward to it".
    fn looks_like(&self, at: usize) -> bool {
        let next = self.units.get(at + 1).filter(|_| self.units[at].after == Gap::None);
        next.is_some_and(|next| {
            next.is(Classes::APPROVAL) || matches!(next.text, "forward" | "for" | "like" | "to")
        })
    }

    /// "Look, go ahead" only calls someone.
    fn is_called(&self, at: usize) -> bool {
        let unit = &self.units[at];
        unit.text == "look" && unit.after != Gap::None && self.before(at).next().is_none()
    }

    /// "I like the look of it" names something; "take a look" does something.
    fn is_noun(&self, at: usize) -> bool {
        let mut before = self.before(at).map(|unit| unit.text);
        let article = before.next().is_some_and(is_determiner);
        let acts = |word| {
            matches!(
                word,
                "have" | "having" | "had" | "take" | "taking" | "get" | "getting" | "want" | "need"
            )
        };
        article && !before.next().is_some_and(acts)
    }

    /// "You said yes", "I was told yes", "they gave the green light"; but not "as you said" or "I said go ahead".
    fn is_told(&self, at: usize) -> bool {
        let passive = || self.before(at).any(|unit| is_be(unit.text));
        let mut before = self.before(at).skip_while(|unit| is_adverb(unit));
        match self.units[at].text {
            _ if self.units[at].len > 1 => false,
            "gave" | "given" => true,
            "said" | "says" | "told" | "tells" => match before.next() {
                Some(who) if is_asked(who) => passive(),
                Some(how) if is_likened(how.text) => false,
                Some(_) => passive() || !before.next().is_some_and(|how| is_likened(how.text)),
                None => true,
            },
            _ => false,
        }
    }

    /// "You approved", "it was approved", "get it approved"; but not "approved", "it's approved" or "plan approved".
    fn is_settled_elsewhere(&self, at: usize) -> bool {
        let unit = &self.units[at];
        if !is_settled(unit) {
            return false;
        }
        let waits = |unit: &Unit<'_>| {
            matches!(unit.text, "was" | "were" | "be" | "been" | "being" | "had") || is_getting(unit.text)
        };
        let required = |unit: &Unit<'_>| unit.is(Classes::WANT) && unit.len > 1;
        let who = self.before(at).find(|unit| !is_adverb(unit) && !is_have(unit.text));
        let person = |unit: &Unit<'_>| is_person(unit.text) && unit.len == 1 || unit.is(Classes::NAME);
        let open = self.before(at).any(|unit| waits(unit) || required(unit) || is_modal(unit.text));
        (open && !self.is_asked_deed(unit)) || who.is_some_and(person)
    }

    /// "Shall I confirm it?" "Get it confirmed": wanting it done agrees, and so does "yes, it was confirmed". To want
    /// it approved never does.
    fn is_asked_deed(&self, unit: &Unit<'a>) -> bool {
        let asked = self.repeats(unit) && matches!(unit.text, "confirmed" | "accepted");
        asked || (unit.text == "confirmed" && self.opens_with_yes())
    }

    /// "I will approve", "I need to approve this", "I was going to go ahead", "let me do it".
    fn is_intended(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let consents = is_consenting(unit);
        let takes = self.tokens.get(unit.first + 1).is_some_and(|next| matches!(next.text, "for" | "with"));
        let acts = unit.is(Classes::GO) && !takes && !consents && self.is_own_act(at) && !self.repeats(unit);
        let mut before = self.before(at).filter(|unit| !is_adverb(unit)).map(|unit| unit.text);
        let Some(lead) = before.next().filter(|_| consents || acts) else { return false };
        // "I can agree to that" and "I'll accept that" do what they say.
        let given = match unit.text {
            "agree" | "concur" => lead == "can",
            "accept" => matches!(lead, "will" | "'ll" | "can"),
            "confirm" => lead == "can" || (matches!(lead, "will" | "'ll") && self.repeats(unit)),
            _ => false,
        };
        match lead {
            "to" => {
                before.next().is_some_and(|wish| acts && is_begun(wish) || consents && !is_polite(wish, unit))
            }
            "me" | "us" => before.next() == Some("let"),
            lead => is_modal(lead) && !given,
        }
    }

    /// Whether the one who was asked does it: "I'll proceed", "let me go ahead".
    fn is_own_act(&self, at: usize) -> bool {
        let who = self.before(at).find(|unit| is_person(unit.text) || unit.text == "me");
        who.is_some_and(|who| matches!(who.text, "i" | "me"))
    }

    /// "I need your ok", "we have a green light", "I want it approved".
    fn is_sought(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let noun = matches!(unit.text, "ok" | "okay" | "yes" | "go" | "green" | "sign");
        let mut before = (0..at).rev().take_while(|&at| self.units[at].after == Gap::None);
        let Some(lead) = before.next().map(|at| self.units[at].text) else { return false };
        let pointed = (noun && is_determiner(lead)) || (is_settled(unit) && is_it(lead));
        let verb = before.find(|&at| self.units[at].text != "for" && !is_adverb(&self.units[at]));
        let subject = |verb| self.before(verb).find(|unit| unit.is(Classes::WHO));
        let seeks = |verb: usize| match self.units[verb].text {
            "need" | "needs" | "needed" | "require" | "want" | "wants" | "wanted" | "ask" | "asked" => true,
            // "You have my ok" gives it.
            word if is_have(word) || is_getting(word) => subject(verb).is_none_or(is_asked),
            _ => false,
        };
        pointed && !self.is_asked_deed(unit) && verb.is_some_and(seeks)
    }

    /// "It was ok", "I wanted to go ahead": over, and not said of what is asked now.
    fn is_over(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let judges = unit.is(Classes::YES.or(Classes::GO)) && !is_truth(unit.text);
        let over = |unit: &Unit<'_>| matches!(unit.text, "was" | "were" | "wanted") && unit.len == 1;
        judges && !self.is_asked_deed(unit) && self.before(at).any(over)
    }

    /// "Should be ok", "can be fine": what may be expected, where no yes comes before it.
    fn is_expected(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let judged = unit.is(Classes::GOOD) || matches!(unit.text, "ok" | "okay" | "alright" | "sure");
        let mut before = self.before(at).filter(|unit| !is_adverb(unit));
        let expects = before.next().is_some_and(|be| {
            let required = be.is(Classes::WANT) && be.len > 1 && be.text != "make";
            required || (be.text == "be" && before.next().is_some_and(|modal| may_be(modal.text)))
        });
        judged && unit.len == 1 && expects && !self.opens_with_yes()
    }

    /// "Should I approve", "do I agree": asked of oneself.
    fn is_wondering(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let mine = matches!(unit.text, "i" | "we") && unit.len > 1 && unit.is(Classes::APPROVAL);
        let asks = |before: &Unit<'_>| before.is(Classes::AUX) && before.len == 1;
        mine && self.before(at).next().is_some_and(asks)
    }

    /// "They are ok with it", "it's a yes for him", "their ok", "you approve", "they like it": another's yes.
    fn is_theirs(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let with = self.units.get(at + 1).is_some_and(|next| next.text == "with");
        let judges = unit.is(Classes::APPROVAL) && unit.after == Gap::None;
        let them = judges && with && self.before(at).any(|unit| unit.text == "they");
        let who = self.word_before(unit);
        let noun = matches!(unit.text, "ok" | "okay" | "yes") && unit.len == 1;
        let owned = noun && who.is_some_and(|who| matches!(who, "your" | "her" | "their"));
        let liked = matches!(unit.text, "like" | "love" | "likes" | "loves") && unit.is(Classes::GOOD);
        let others = |who| matches!(who, "you" | "they" | "them" | "him" | "her" | "all" | "both");
        let done = is_consenting(unit) && unit.len == 1 && who.is_some_and(others);
        them || owned || done || (liked && who == Some("they")) || self.is_of_someone(at)
    }

    /// The word before a unit in its clause that does more than strengthen it; "all" may stand for people.
    fn word_before(&self, unit: &Unit<'a>) -> Option<&'a str> {
        let before = self.tokens[..unit.first].iter().rev().take_while(|token| token.after == Gap::None);
        let strengthens = |token: &&Token<'_>| token.classes().any(Classes::BOOST) && token.text != "all";
        before.skip_while(strengthens).map(|token| token.text).next()
    }

    /// "A yes for him", "fine by them", "yes from her": whose it is, where nobody of that kind was asked about.
    fn is_of_someone(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let mut before = self.before(at);
        let from = before.next().is_some_and(|word| {
            matches!(word.text, "for" | "from" | "by" | "to" | "with" | "of" | "on") && word.len == 1
        });
        let someone = matches!(unit.text, "him" | "her" | "them") && unit.len == 1;
        let said = before.next().is_some_and(|said| said.is(Classes::APPROVAL));
        // "I agree to them" names what is agreed to.
        let words = unit.first.checked_sub(2).map(|at| (self.tokens[at].text, self.tokens[at + 1].text));
        let terms = matches!(words, Some(("agree" | "agreed" | "consent", "to")));
        someone && from && said && !terms && !self.repeats(unit)
    }

    /// "Please approve", "approve it, please": asks someone else for a yes, unless one came before it.
    fn is_asked_of_others(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let polite = |unit: &Unit<'_>| matches!(unit.text, "please" | "pls" | "plz" | "kindly");
        let asks = self.clause(at).any(|at| polite(&self.units[at]));
        // "Shall I approve it?" "Please approve it" asks for the very act.
        let act = self.echo.leaders(unit.text).any(|word| matches!(word, "i" | "we" | "to"));
        is_consenting(unit) && unit.len == 1 && asks && !self.opens_with_yes() && !act
    }

    /// "Approve some", "yes to this part", "most, ok": a yes to less than what was asked about.
    fn is_of_a_part(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let part = matches!(unit.text, "some" | "most" | "part" | "parts" | "rest") && unit.len == 1;
        let points =
            |unit: &&Unit<'_>| is_it(unit.text) || matches!(unit.text, "to" | "the" | "with" | "for");
        let yes = |unit: &Unit<'_>| unit.is(Classes::YES.or(Classes::GO));
        let said = self.before(at).find(|unit| !points(unit)).is_some_and(yes);
        let ends =
            unit.after != Gap::None || self.units.get(at + 1).is_none_or(|next| is_courtesy(next.text));
        let opens = unit.text == "some" && self.units.get(at + 1).is_some_and(yes) && unit.after == Gap::None;
        part && ((said && ends) || opens) && !self.repeats(unit)
    }

    /// "Like I would say yes": said to mean that one would not. "I'd like you to" wishes, and has its subject before it.
    fn is_scorned(&self, at: usize) -> bool {
        let unit = &self.units[at];
        let leads = |before: &Unit<'_>| before.is(Classes::APPROVAL) || before.is(Classes::GREET);
        let would = |word: &str| is_modal(word) || matches!(word, "ever" | "care" | "really");
        let who = |next: &Unit<'_>| {
            let then = self.tokens.get(next.first + 1).is_some_and(|then| would(then.text));
            self.tokens[next.first].classes().any(Classes::WHO) && then
        };
        unit.text == "like"
            && unit.len == 1
            && unit.after == Gap::None
            && self.before(at).next().is_none_or(leads)
            && self.units.get(at + 1).is_some_and(who)
    }

    /// The units before one in its clause, nearest first.
    fn before(&self, at: usize) -> impl Iterator<Item = &Unit<'a>> {
        self.units[..at].iter().rev().take_while(|unit| unit.after == Gap::None)
    }
}

/// The one who was asked.
fn is_asked(unit: &Unit<'_>) -> bool {
    matches!(unit.text, "i" | "we") && unit.len == 1
}

fn is_person(word: &str) -> bool {
    matches!(word, "i" | "you" | "we" | "they")
}

fn is_it(word: &str) -> bool {
    matches!(word, "it" | "this" | "that" | "them" | "these" | "those" | "everything" | "all")
}

fn is_determiner(word: &str) -> bool {
    matches!(word, "a" | "an" | "the" | "my" | "your" | "our" | "his" | "her" | "their" | "its")
}

fn is_likened(word: &str) -> bool {
    matches!(word, "as" | "like" | "everything" | "all" | "what")
}

fn is_be(word: &str) -> bool {
    matches!(word, "am" | "'m" | "are" | "'re" | "was" | "were" | "been" | "being" | "got" | "get")
}

fn is_have(word: &str) -> bool {
    matches!(word, "have" | "has" | "had" | "'ve" | "having")
}

fn is_getting(word: &str) -> bool {
    matches!(word, "get" | "gets" | "got" | "gotten" | "getting")
}

fn is_modal(word: &str) -> bool {
    matches!(
        word,
        "may"
            | "might"
            | "will"
            | "'ll"
            | "shall"
            | "can"
            | "could"
            | "would"
            | "'d"
            | "should"
            | "must"
            | "ought"
    )
}

fn may_be(word: &str) -> bool {
    matches!(word, "may" | "might" | "can" | "could" | "should" | "must" | "ought")
}

/// Words that may stand between a subject, its verb and what it says.
fn is_adverb(unit: &Unit<'_>) -> bool {
    unit.is(Classes::BOOST) || matches!(unit.text, "already" | "then" | "now" | "finally" | "too" | "well")
}

/// "Approve": the verbs that give a yes.
fn is_consenting(unit: &Unit<'_>) -> bool {
    let verb = matches!(
        unit.text,
        "approve"
            | "accept"
            | "agree"
            | "confirm"
            | "authorize"
            | "authorise"
            | "consent"
            | "concur"
            | "sign"
    );
    verb && (unit.len == 1 || unit.text == "sign" || unit.text.starts_with("authori"))
}

/// "Approved": a yes that was given.
fn is_settled(unit: &Unit<'_>) -> bool {
    let settled = matches!(
        unit.text,
        "approved"
            | "accepted"
            | "agreed"
            | "confirmed"
            | "authorized"
            | "authorised"
            | "granted"
            | "seconded"
    );
    (settled && unit.len == 1) || unit.text == "signed"
}

/// "Going to", "about to": what is begun before an act of one's own.
fn is_begun(word: &str) -> bool {
    matches!(word, "going" | "have" | "got" | "about" | "trying")
}

/// "I'd like to approve", "happy to approve", "I have to agree" do what they say.
fn is_polite(wish: &str, unit: &Unit<'_>) -> bool {
    let agrees = matches!(unit.text, "agree" | "concur") && matches!(wish, "have" | "got");
    agrees
        || matches!(
            wish,
            "like"
                | "love"
                | "happy"
                | "glad"
                | "pleased"
                | "wish"
                | "good"
                | "fine"
                | "ok"
                | "okay"
                | "free"
        )
}
