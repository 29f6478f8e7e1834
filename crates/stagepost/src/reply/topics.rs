//! What more is wanted about, and where to go back to, in the person's own words.

use super::lexicon::Classes;
use super::normalise::Gap;
use super::units::{Token, Unit, is_courtesy};

/// Words after which a topic stands.
fn introduces(word: &str) -> bool {
    matches!(
        word,
        "about" | "on" | "regarding" | "concerning" | "for" | "of" | "into" | "over" | "research" | "know"
    )
}

/// Returns what more is wanted about: what follows "about" or its like, to the end of the clause.
pub(super) fn topics(text: &str, tokens: &[Token<'_>], units: &[Unit<'_>]) -> Vec<String> {
    let start = tokens.iter().position(|token| token.text == "about" || token.text == "regarding");
    let start = start.or_else(|| tokens.iter().rposition(|token| introduces(token.text)));
    let Some(start) = start.or_else(|| last_more(units)) else { return Vec::new() };
    let end = clause_end(tokens, start + 1);
    let words = trimmed(&tokens[(start + 1).min(end)..end]);
    let listed = words.split(|token| token.text == "and");
    listed.filter_map(|part| original(text, tokens, trimmed(part))).collect()
}

/// Returns where to go back to: what follows "back to" or its like.
pub(super) fn back_to(text: &str, tokens: &[Token<'_>], units: &[Unit<'_>]) -> Option<String> {
    let back = units.iter().find(|unit| unit.is(Classes::BACK))?;
    let end = clause_end(tokens, back.first);
    let to = tokens[back.first..end].iter().position(|token| token.text == "to")?;
    let mut place = &tokens[back.first + to + 1..end];
    while let Some((_, rest)) = place.split_first().filter(|(first, _)| is_article(first.text)) {
        place = rest;
    }
    while let Some((_, rest)) = place.split_last().filter(|(last, _)| is_courtesy(last.text)) {
        place = rest;
    }
    original(text, tokens, place)
}

fn is_article(word: &str) -> bool {
    matches!(word, "the" | "a" | "an" | "my" | "our" | "that" | "this")
}

fn last_more(units: &[Unit<'_>]) -> Option<usize> {
    let wanting = Classes::MORE.or(Classes::TELL);
    units.iter().rev().find(|unit| unit.is(wanting)).map(|unit| unit.first + unit.len - 1)
}

fn clause_end(tokens: &[Token<'_>], from: usize) -> usize {
    let stop = tokens.iter().skip(from).position(|token| token.after >= Gap::Stop);
    stop.map_or(tokens.len(), |stop| from + stop + 1)
}

/// Drops courtesies, articles and the like at both ends.
fn trimmed<'t, 'a>(mut words: &'t [Token<'a>]) -> &'t [Token<'a>] {
    while let Some((_, rest)) = words.split_first().filter(|(first, _)| is_filler(first)) {
        words = rest;
    }
    while let Some((_, rest)) = words.split_last().filter(|(last, _)| is_filler(last)) {
        words = rest;
    }
    words
}

fn is_filler(token: &Token<'_>) -> bool {
    token.entry.is_some_and(|entry| entry.classes.any(Classes::FILL.or(Classes::WHO)) && entry.same == 0)
}

/// Returns the original text of some words.
fn original(text: &str, tokens: &[Token<'_>], words: &[Token<'_>]) -> Option<String> {
    let (first, last) = (words.first()?, words.last()?);
    let next =
        tokens.iter().find(|token| token.source > last.source).map_or(text.len(), |token| token.source);
    let found = text[first.source..next].trim_end_matches(|c: char| !c.is_alphanumeric());
    (!found.is_empty()).then(|| found.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Question, parse};

    fn topics(text: &str) -> Vec<String> {
        parse(text, &Question::new(Kind::PresentFindings)).details.topics
    }

    #[test]
    fn topics_keep_the_persons_own_words() {
        assert_eq!(topics("Tell me more about the Old Bridge, please"), ["Old Bridge"]);
        assert_eq!(topics("more research on cafés and water"), ["cafés", "water"]);
        assert_eq!(topics("explain"), Vec::<String>::new());
    }

    #[test]
    fn the_way_back_may_name_its_goal() {
        let back_to = |text: &str| parse(text, &Question::new(Kind::Confirm)).details.back_to;
        assert_eq!(back_to("go back to the Second Draft please").as_deref(), Some("Second Draft"));
        assert_eq!(back_to("go back"), None);
    }
}
