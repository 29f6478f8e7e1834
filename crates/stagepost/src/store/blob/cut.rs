//! Where a payload is cut.
//!
//! Two rules make versions share pieces. A cut depends only on bytes at and before it, so that what is appended
//! changes nothing earlier; and it depends on few of them, so that after an insertion the old cuts are found again.

use fastcdc::v2020::FastCDC;

/// How a payload is cut into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Where an element of a list or map ends.
    Json,
    /// By content.
    Content,
}

/// JSON pieces are at least this long, unless the payload ends.
const JSON_MIN: usize = 256;
/// From this length on a JSON piece ends with its next element.
const JSON_MAX: usize = 4096;
/// A JSON piece without a good place to end in so many bytes is cut by content.
const JSON_LONG: usize = 16 * 1024;
/// Of the bytes of small elements, about one in so many ends a piece.
const JSON_SPREAD: usize = 512;

const CONTENT_MIN: usize = 4 * 1024;
const CONTENT_AVERAGE: usize = 16 * 1024;
/// No piece is longer than this.
pub(crate) const LONGEST: usize = 64 * 1024;

/// Finds the ends of pieces, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Cutter {
    cut: Cut,
    /// How far the window was looked at, from the start of the piece; beyond its end after a trailing backslash.
    scanned: usize,
    /// Where the element that is being looked at began.
    element: usize,
    in_string: bool,
}

impl Cutter {
    pub(crate) fn new(cut: Cut) -> Self {
        Self { cut, scanned: 0, element: 0, in_string: false }
    }

    /// Returns the length of the piece at the start of `window`, or `None` if more bytes are needed to tell.
    /// Asked again after `None`, the window must start at the same place. `last`: nothing follows the window.
    pub(crate) fn next(&mut self, window: &[u8], last: bool) -> Option<usize> {
        let found = match self.cut {
            Cut::Json => self.json(window, last),
            Cut::Content => content(window, last),
        };
        let length = found.or((last && !window.is_empty()).then_some(window.len()))?;
        self.scanned = self.scanned.saturating_sub(length);
        self.element = 0;
        Some(length)
    }

    /// Says whether the last piece ended where an element did: a fresh cutter would go on the same way.
    pub(crate) fn is_clean(&self) -> bool {
        match self.cut {
            Cut::Json => self.scanned == 0 && !self.in_string,
            Cut::Content => true,
        }
    }

    fn json(&mut self, window: &[u8], last: bool) -> Option<usize> {
        while self.scanned < window.len().min(JSON_LONG) {
            if self.in_string {
                self.skip_string(window);
                continue;
            }
            match window[self.scanned] {
                b'"' => self.in_string = true,
                b',' | b']' | b'}' => {
                    if self.ends_piece(window) {
                        return Some(self.scanned);
                    }
                    self.element = self.scanned;
                }
                _ => {}
            }
            self.scanned += 1;
        }
        if self.scanned < JSON_LONG { None } else { content(window, last) }
    }

    fn skip_string(&mut self, window: &[u8]) {
        match memchr::memchr2(b'"', b'\\', &window[self.scanned..]) {
            Some(at) if window[self.scanned + at] == b'\\' => self.scanned += at + 2,
            Some(at) => {
                self.scanned += at + 1;
                self.in_string = false;
            }
            None => self.scanned = window.len(),
        }
    }

    /// Decides at the end of an element. A large element ends its piece; small ones gather until the bytes before
    /// the end happen to say so.
    fn ends_piece(&self, window: &[u8]) -> bool {
        let (length, element) = (self.scanned, self.scanned - self.element);
        if length < JSON_MIN {
            return false;
        }
        length >= JSON_MAX
            || element >= JSON_MIN
            || fingerprint(&window[..length]) < element * (65536 / JSON_SPREAD)
    }
}

/// Sixteen bits that depend on the last eight bytes.
fn fingerprint(bytes: &[u8]) -> usize {
    let tail: [u8; 8] = bytes[bytes.len() - 8..].try_into().expect("eight bytes were taken");
    (u64::from_le_bytes(tail).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize
}

fn content(window: &[u8], last: bool) -> Option<usize> {
    if window.is_empty() || (window.len() < LONGEST && !last) {
        return None;
    }
    let window = &window[..window.len().min(LONGEST)];
    let (_, end) = FastCDC::new(window, CONTENT_MIN, CONTENT_AVERAGE, LONGEST).cut(0, window.len());
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn pieces(cut: Cut, bytes: &[u8]) -> Vec<&[u8]> {
        let (mut cutter, mut rest, mut found) = (Cutter::new(cut), bytes, Vec::new());
        while let Some(length) = cutter.next(rest, true) {
            let (piece, after) = rest.split_at(length);
            found.push(piece);
            rest = after;
        }
        found
    }

    fn new_bytes(cut: Cut, before: &[u8], after: &[u8]) -> usize {
        let known: HashSet<&[u8]> = pieces(cut, before).into_iter().collect();
        pieces(cut, after).into_iter().filter(|piece| !known.contains(piece)).map(<[u8]>::len).sum()
    }

    fn conversation(turns: usize) -> String {
        let text =
            |n: usize| (0..120).map(|w| format!("word{} ", (n * 7919 + w * w) % 997)).collect::<String>();
        let turns: Vec<_> =
            (0..turns).map(|n| format!(r#"{{"role":"user","content":"{}"}}"#, text(n))).collect();
        format!("[{}]", turns.join(","))
    }

    #[test]
    fn an_appended_message_costs_about_itself() {
        let (before, after) = (conversation(50), conversation(51));
        let grown = after.len() - before.len();
        assert!(new_bytes(Cut::Json, before.as_bytes(), after.as_bytes()) < grown + 64);
    }

    #[test]
    fn a_change_in_the_middle_costs_its_surroundings_only() {
        let numbers = |skip: usize| {
            (0..20_000).filter(|n| *n != skip).map(|n| (n * n).to_string()).collect::<Vec<_>>().join(",")
        };
        let (before, after) = (format!("[{}]", numbers(usize::MAX)), format!("[{}]", numbers(9_000)));
        assert!(new_bytes(Cut::Json, before.as_bytes(), after.as_bytes()) < 8 * 1024);
    }

    #[test]
    fn inserted_bytes_cost_their_surroundings_only() {
        let before: Vec<u8> = (0..400_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        let mut after = before.clone();
        after.splice(100_000..100_000, *b"inserted");
        assert!(new_bytes(Cut::Content, &before, &after) < 3 * LONGEST);
    }

    #[test]
    fn cuts_do_not_depend_on_how_the_bytes_arrive() {
        let long_string = format!("[\"{}\",{}]", "x\\\"yz,".repeat(20_000), conversation(40));
        for (cut, text) in
            [(Cut::Json, conversation(90)), (Cut::Json, long_string), (Cut::Content, conversation(400))]
        {
            let bytes = text.as_bytes();
            let (mut cutter, mut start, mut end, mut streamed) = (Cutter::new(cut), 0, 0, Vec::new());
            while start < bytes.len() {
                match cutter.next(&bytes[start..end], end == bytes.len()) {
                    Some(length) => {
                        streamed.push(&bytes[start..start + length]);
                        start += length;
                    }
                    None => end = (end + 777).min(bytes.len()),
                }
            }
            assert_eq!(streamed, pieces(cut, bytes));
            assert!(streamed.iter().all(|piece| piece.len() <= LONGEST));
        }
    }

    #[test]
    fn no_piece_is_longer_than_the_longest_wherever_the_payload_ends() {
        let lengths = (0..4).flat_map(|times| [1, JSON_LONG, LONGEST].map(|length| times * length));
        for length in lengths.flat_map(|length| length.saturating_sub(3)..length + 3) {
            for text in ["x".repeat(length), "\\\\".repeat(length / 2), "\\\"".repeat(length / 2)] {
                for text in [format!("\"{text}\""), format!("\"{text}"), format!("[\"{text}\"]"), text] {
                    let found = pieces(Cut::Json, text.as_bytes());
                    assert!(found.iter().all(|piece| piece.len() <= LONGEST), "{length}");
                    assert_eq!(found.concat(), text.as_bytes());
                }
            }
        }
    }

    #[test]
    fn braces_and_commas_inside_strings_are_no_borders() {
        let text = format!("[\"{}\",1]", "a,]}\\\\\\\"".repeat(300));
        assert_eq!(pieces(Cut::Json, text.as_bytes())[0].last(), Some(&b'"'));
    }
}
