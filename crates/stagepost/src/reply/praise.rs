//! Which words approve of what was asked, and which only praise something or someone.

use super::echo::Echo;
use super::lexicon::{Classes, Lexicon};
use super::normalise::Gap;
use super::units::{Unit, is_courtesy};

/// Whether the unit at `at` approves of what was asked.
pub(super) fn approves(units: &[Unit<'_>], at: usize, echo: &Echo<'_>) -> bool {
    let unit = &units[at];
    // "Anything else?" "It is okay, great, thanks." is no yes.
    if unit.is(Classes::YES) {
        let thanks = units.iter().any(|unit| is_thanks(unit.text));
        let may_decline = echo.closing || ((echo.offers || thanks) && is_said_of_it(units, at));
        return !(may_decline && is_resigned(unit.text));
    }
    if unit.is(Classes::ALONE)
        && (units.iter().all(|unit| unit.is(Classes::ALONE) || is_heard(unit)) || echo.contains(unit.text))
    {
        return true;
    }
    !echo.closing
        && !echo.wants_words
        && (unit.is(Classes::GO) || (unit.is(Classes::GOOD) && praises_the_matter(units, at, echo)))
}

/// "Got it", "understood": says that it was heard.
fn is_heard(unit: &Unit<'_>) -> bool {
    unit.is(Classes::FILL) && matches!(unit.phrase, "got it" | "got that" | "understood" | "noted")
}

/// "It's okay", "that's alright" with nothing after it.
pub(super) fn is_said_of_it(units: &[Unit<'_>], at: usize) -> bool {
    let mut before = units[..at].iter().rev().take_while(|unit| unit.after == Gap::None);
    let ends = units[at].after != Gap::None
        || units[at + 1..].iter().all(|next| is_courtesy(next.text) || next.text == "you");
    ends && before.any(|unit| matches!(unit.text, "it" | "that" | "this"))
}

pub(super) fn is_resigned(word: &str) -> bool {
    matches!(word, "ok" | "okay" | "okey" | "k" | "kk" | "alright" | "all" | "it")
}

/// Whether praise is about what was asked.
///
/// "I am right" and "I have a good idea" are about oneself, "you are great" is about the asker, and "great, thanks"
/// without a question ends a talk.
pub(super) fn praises_the_matter(units: &[Unit<'_>], at: usize, echo: &Echo<'_>) -> bool {
    let clause = || units[..at].iter().rev().take_while(|unit| unit.after == Gap::None);
    let short = units[at].len == 1 || units[at].text == "all";
    let thanked = !echo.asked && short && units.iter().any(|unit| is_thanks(unit.text));
    let it = clause().any(|unit| unit.text == "it");
    let turned_down = echo.offers && units[at].text == "fine" && it && is_said_of_it(units, at);
    let about_asker = clause().any(|unit| matches!(unit.text, "are" | "'re" | "were"))
        && !(is_truth(units[at].text) && clause().next().is_some_and(leads_to_truth));
    let about_it = match subject(clause()) {
        Some("i" | "we") => false,
        // "Remove them?" "They are fine": what is fine may stay.
        Some("they") => !(echo.names_act && echo.says_them),
        Some("you") => !about_asker,
        _ => true,
    };
    // "Rewrite it?" "It's good", "I like it": then it need not be.
    let liked =
        units[at].len > 1 && (units[at].phrase.ends_with(" it") || units[at].phrase.ends_with(" them"));
    let stays =
        echo.alters && (liked || matches!(subject(clause()), Some("it" | "they" | "these" | "those")));
    let elsewhere = stays || praises_work(units, at, echo) || tells_that_it_works(units, at, echo);
    about_it && !(elsewhere || thanked || turned_down || is_demand(clause()) || describes(units, at))
}

/// "Great work", "well done", "nice start": thanks for what was done, and no yes to what is to be done. Where the
/// question asks about the work itself ("does that look right?") it is one.
fn praises_work(units: &[Unit<'_>], at: usize, echo: &Echo<'_>) -> bool {
    let unit = &units[at];
    let is_work = |word: &str| {
        matches!(
            word,
            "work"
                | "job"
                | "effort"
                | "efforts"
                | "going"
                | "start"
                | "progress"
                | "try"
                | "attempt"
                | "teamwork"
        )
    };
    let next = units.get(at + 1).filter(|_| unit.after == Gap::None);
    let named = unit.len == 2 && matches!(unit.text, "good" | "great" | "nice");
    let work = (named && unit.phrase.rsplit(' ').next().is_some_and(is_work))
        || next.is_some_and(|next| next.len == 1 && is_work(next.text));
    (work || unit.phrase == "well done") && (echo.names_act || !echo.asks_how_it_is())
}

/// "It works", "everything works fine": tells how something is, and is no yes to what is to be done. Where the question asks just that
/// ("does it work?") it is one.
fn tells_that_it_works(units: &[Unit<'_>], at: usize, echo: &Echo<'_>) -> bool {
    let unit = &units[at];
    let mut clause = units[..at].iter().rev().take_while(|unit| unit.after == Gap::None);
    let works = unit.phrase.split(' ').any(|word| matches!(word, "works" | "work"));
    let told = works && clause.any(|unit| matches!(unit.text, "it" | "everything" | "they"));
    let asked = echo.contains("works") || echo.asks_how_it_is();
    told && (!asked || echo.names_act && !(echo.contains("works") && echo.asks_how_it_is()))
}

/// "It's a nice place", "it was good": tells what something is like, and asks for nothing.
pub(super) fn describes(units: &[Unit<'_>], at: usize) -> bool {
    let unit = &units[at];
    let before = || units[..at].iter().rev().take_while(|unit| unit.after == Gap::None);
    let past =
        before().any(|unit| matches!(unit.text, "was" | "were")) && unit.len == 1 && !is_truth(unit.text);
    let article = before().next().is_some_and(|unit| matches!(unit.text, "a" | "an" | "such"));
    let thing = units
        .get(at + 1)
        .is_some_and(|next| next.is(Classes::THING) || next.classes.is_blank() && !next.is(Classes::DEED));
    let subject = before().any(|unit| unit.is(Classes::THING));
    let plainly =
        matches!(unit.text, "fine" | "ok" | "okay" | "right" | "correct" | "perfect" | "good" | "alright");
    let is = before().any(|unit| matches!(unit.text, "is" | "'s" | "are"));
    past || (article && thing && unit.after == Gap::None) || (subject && is && !plainly)
}

/// The nearest word before that stands for a person or thing.
pub(super) fn subject<'u>(mut backwards: impl Iterator<Item = &'u Unit<'u>>) -> Option<&'u str> {
    let stands = |unit: &&Unit<'_>| unit.is(Classes::WHO) || (unit.is(Classes::FILL) && unit.len > 1);
    backwards.find(stands).map(|unit| unit.text)
}

/// "It has to be …", "be …", "the … one": a demand or a description of what is wanted.
pub(super) fn is_demand<'u>(backwards: impl Iterator<Item = &'u Unit<'u>> + Clone) -> bool {
    let required = backwards.clone().any(|unit| unit.is(Classes::WANT) && unit.len > 1);
    let ordered = backwards.clone().last().is_some_and(|first| matches!(first.text, "be" | "let"));
    let described = backwards.clone().next().is_some_and(|before| before.text == "the");
    required || ordered || (described && subject(backwards).is_none())
}

pub(super) fn is_thanks(word: &str) -> bool {
    matches!(word, "thanks" | "thank" | "thx" | "ty")
}

/// "You are right" and "you are so right" are about the matter; "you are a bot, right" only asks.
pub(super) fn leads_to_truth(before: &Unit<'_>) -> bool {
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

pub(super) fn is_truth(word: &str) -> bool {
    matches!(word, "right" | "correct" | "exactly" | "exact" | "precise" | "precisely" | "accurate" | "spot")
}

/// Whether a word is a longer word of approval with one slip: a letter dropped or doubled inside, or two swapped.
///
/// Other endings and other letters are not forgiven: "correcto" and "perfekt" are other languages' words.
pub(super) fn misspells_approval(word: &str, lexicon: &Lexicon) -> bool {
    let first = word.as_bytes()[0];
    let start = lexicon.approvals().partition_point(|right| right.as_bytes()[0] < first);
    let mut near = lexicon.approvals()[start..].iter().take_while(|right| right.as_bytes()[0] == first);
    word.len() >= 5 && word.is_ascii() && near.any(|right| one_slip(word, right))
}

pub(super) fn one_slip(word: &str, right: &str) -> bool {
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
}
