//! What a reply says in its own words: without lines that quote someone and without what was struck out.
//!
//! Nobody says what they only quote or take back, so an answer must mean the same without it.

/// Signs that are laid over a letter to strike it out.
const STROKES: std::ops::RangeInclusive<char> = '\u{335}'..='\u{338}';

/// Returns the reply without what is quoted or struck out; `None` where nothing is.
pub(super) fn own_words(text: &str) -> Option<String> {
    // The first byte of a stroke is 0xCC; most replies hold none of these.
    if !text.bytes().any(|byte| matches!(byte, b'>' | b'~' | 0xCC)) {
        return None;
    }
    let own: Vec<String> = text.lines().filter(|line| !is_quote(line)).map(without_struck).collect();
    let own = own.join("\n");
    (own != text.trim_end_matches(['\r', '\n'])).then_some(own)
}

fn is_quote(line: &str) -> bool {
    line.trim_start().starts_with('>')
}

/// Drops `~~words~~`, `~words~` and letters with a stroke through them.
fn without_struck(line: &str) -> String {
    let mut parts = line.split('~').collect::<Vec<_>>();
    // `~5 km` strikes nothing out: a sign without a second one stays.
    let strikes = parts.len() > 2 && parts[1..parts.len() - 1].iter().any(|part| !part.is_empty());
    if strikes {
        let signs = if parts[1].is_empty() { 2 } else { 1 };
        parts = line.split(&"~~"[..signs]).step_by(2).collect();
    }
    let kept = if strikes { parts.concat() } else { line.to_owned() };
    without_strokes(&kept)
}

fn without_strokes(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    for char in line.chars() {
        if STROKES.contains(&char) {
            kept.pop();
        } else {
            kept.push(char);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_lines_and_struck_words_are_no_own_words() {
        let own = |text: &str| own_words(text).map(|own| own.trim().to_owned());
        assert_eq!(own("yes, 2 > 1").as_deref(), None);
        assert_eq!(own("about ~5 km").as_deref(), None);
        assert_eq!(own("~5 or ~6").as_deref(), Some("6"), "in doubt it is struck");
        assert_eq!(own("> yes").as_deref(), Some(""));
        assert_eq!(own("> yes\nno").as_deref(), Some("no"));
        assert_eq!(own("~~yes~~ no").as_deref(), Some("no"));
        assert_eq!(own("~yes~ no").as_deref(), Some("no"));
        assert_eq!(own("y\u{336}e\u{336}s\u{336} no").as_deref(), Some("no"));
        assert_eq!(own("~~").as_deref(), None);
    }
}
