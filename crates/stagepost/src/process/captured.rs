//! What is kept of a program's output: all of it, or its beginning and its end.

use std::collections::VecDeque;

/// What a program wrote, as far as it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    keep: usize,
    total: u64,
}

impl Captured {
    /// Keeps at most `keep` bytes: half of them from the beginning, half from the end.
    pub fn new(keep: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), keep, total: 0 }
    }

    /// Adds what was written next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = (self.keep / 2).saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        let rest = &bytes[room..];
        let limit = self.keep - self.keep / 2;
        self.tail.extend(&rest[rest.len().saturating_sub(limit)..]);
        let over = self.tail.len().saturating_sub(limit);
        self.tail.drain(..over);
    }

    /// How many bytes were written in all.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many bytes in the middle were let go.
    pub fn left_out(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// Everything that was written, unless some of it was let go.
    pub fn whole(&self) -> Option<Vec<u8>> {
        (self.left_out() == 0).then(|| self.parts("".as_bytes()))
    }

    /// What was kept; a line in the middle says how much is missing there, if any is.
    pub fn bytes(&self) -> Vec<u8> {
        match self.left_out() {
            0 => self.parts(b""),
            left_out => self.parts(format!("\n[… {left_out} bytes left out …]\n").as_bytes()),
        }
    }

    fn parts(&self, between: &[u8]) -> Vec<u8> {
        let (front, back) = self.tail.as_slices();
        [&self.head, between, front, back].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_kept_whole_and_much_by_its_ends() {
        let mut captured = Captured::new(8);
        captured.push(b"abc");
        captured.push(b"defgh");
        assert_eq!(captured.whole().as_deref(), Some(b"abcdefgh".as_slice()));
        captured.push(b"ij");
        assert_eq!(captured.whole(), None);
        assert_eq!(captured.bytes(), "abcd\n[… 2 bytes left out …]\nghij".as_bytes());
        captured.push(&[b'x'; 100]);
        assert_eq!((captured.total(), captured.left_out()), (110, 102));
        assert!(captured.bytes().starts_with(b"abcd") && captured.bytes().ends_with(b"\nxxxx"));
    }
}
