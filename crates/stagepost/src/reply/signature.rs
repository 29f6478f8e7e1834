//! Mail signatures: who wrote, under a line of two dashes.
//!
//! A line that could be more than a name, an address or a number is none: it may take back what stands above it.

use super::lexicon::Lexicon;
use super::normalise::Folded;
use super::question::Language;

/// As many as good manners allow.
const MOST_LINES: usize = 4;
const LONGEST_LINE: usize = 72;
/// Fewer digits are no telephone number and may be an answer.
const FEWEST_DIGITS: usize = 6;

/// Returns a reply without the signature under it; `None` where there is none, or what stands there may say something.
pub(super) fn without_signature(text: &str) -> Option<&str> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (above, below) = (&text[..at], &text[at + line.len()..]);
        if line.trim_end() == "--" {
            return Some(above).filter(|above| !above.trim().is_empty() && is_signature(below));
        }
        at += line.len();
    }
    None
}

fn is_signature(text: &str) -> bool {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    (1..=MOST_LINES).contains(&lines().count()) && lines().all(is_of_a_signature)
}

fn is_of_a_signature(line: &str) -> bool {
    let is_plain = |sign: char| sign.is_alphanumeric() || " .,@+-()/:'&|_\t\r".contains(sign);
    let has_number = line.chars().filter(char::is_ascii_digit).count() >= FEWEST_DIGITS;
    line.chars().all(is_plain)
        && line.chars().count() <= LONGEST_LINE
        && line
            .split_whitespace()
            .all(|part| is_address(part) || has_number && is_of_a_number(part) || is_of_a_name(part))
}

fn is_address(part: &str) -> bool {
    let is_named = |text: &str| text.starts_with(|first: char| first.is_ascii_alphanumeric());
    let is_mail = part
        .split_once('@')
        .is_some_and(|(who, place)| is_named(who) && is_named(place) && place.contains('.'));
    is_mail || part.starts_with("https://") || part.starts_with("http://") || part.starts_with("www.")
}

fn is_of_a_number(part: &str) -> bool {
    part.chars().all(|sign| sign.is_ascii_digit() || "+-()/.".contains(sign))
}

/// Whether words are capitalised as names are, and no language knows one of them.
fn is_of_a_name(part: &str) -> bool {
    let folded = Folded::new(part);
    let is_known =
        |word: &str| Language::ALL.iter().any(|language| Lexicon::of(*language).get(word).is_some());
    let shouts = part.chars().filter(|sign| sign.is_uppercase()).count() > 3;
    // Signs alone, such as the bar between a name and a title, say nothing.
    !shouts && folded.spans.iter().all(|span| span.capital && !is_known(folded.word(span)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_a_name_an_address_or_a_number() {
        for signature in [
            "Bob",
            "Bob Miller\nCEO | Acme Inc.\nbob@example.com\n+49 30 123456",
            "B. Miller",
            "www.acme.example",
        ] {
            assert_eq!(
                without_signature(&format!("Yes\n\n-- \n{signature}\n")),
                Some("Yes\n\n"),
                "{signature}"
            );
            assert_eq!(
                without_signature(&format!("Yes\r\n--\r\n{signature}")),
                Some("Yes\r\n"),
                "{signature}"
            );
        }
        for other in [
            "",
            "no",
            "No",
            "Nein",
            "bob",
            "Bob!",
            "Not Bob",
            "STORNO",
            "Bob\n\n> Yes",
            "2",
            "Bob 2",
            "[ ] Bob",
            "Bob?",
            "Only Monday",
            "A\nB\nC\nD\nE",
        ] {
            assert_eq!(without_signature(&format!("Yes\n-- \n{other}")), None, "{other}");
        }
        for text in ["Yes", "-- \nBob", "Yes -- Bob", "Yes\n-- Bob", "Yes\n---\nBob"] {
            assert_eq!(without_signature(text), None, "{text}");
        }
    }
}
