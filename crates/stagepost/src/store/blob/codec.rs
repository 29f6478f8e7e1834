//! Compression of single pieces. A piece is kept raw unless compression makes it clearly smaller; which of the two
//! it is shows in its length alone, so no flag can go wrong.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io;

/// Smaller pieces do not repay the frame around compressed bytes.
const WORTH_TRYING: usize = 96;
/// Pieces below this are packed only if a quarter is left of them.
const SMALL: usize = 4096;
const LEVEL: i32 = 3;

thread_local! {
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Returns the bytes to store for a piece.
pub(crate) fn encode(raw: &[u8]) -> Cow<'_, [u8]> {
    if (WORTH_TRYING..SMALL).contains(&raw.len()) && !repeats_itself(raw) {
        return Cow::Borrowed(raw);
    }
    encode_if(raw, is_worth_it)
}

/// Returns the bytes to store for a piece of a payload that is read seldom: room counts more than time.
pub(crate) fn encode_tight(raw: &[u8]) -> Cow<'_, [u8]> {
    encode_if(raw, |packed, raw| packed + packed / 16 < raw)
}

fn encode_if(raw: &[u8], is_worth_it: impl Fn(usize, usize) -> bool) -> Cow<'_, [u8]> {
    if raw.len() < WORTH_TRYING {
        return Cow::Borrowed(raw);
    }
    match compress(raw) {
        Ok(packed) if is_worth_it(packed.len(), raw.len()) => Cow::Owned(packed),
        _ => Cow::Borrowed(raw),
    }
}

/// Unpacking a small piece costs as much as reading several raw ones, and a state is read more often than written.
fn is_worth_it(packed: usize, raw: usize) -> bool {
    if raw < SMALL { packed * 4 < raw } else { packed + packed / 16 < raw }
}

/// Says whether a small piece may shrink to a quarter: then most groups of four bytes in it were there before. Looking is
/// quicker than packing to find out.
fn repeats_itself(raw: &[u8]) -> bool {
    if is_new_throughout(raw) {
        return false;
    }
    let mut seen = Seen([0; SMALL / 8]);
    // Once so many of the groups are new, the rest cannot make up for them.
    let (mut new, too_many) = (0, raw.len().div_ceil(2).saturating_sub(3));
    let mut group = raw.iter().take(3).fold(0, |group, byte| group >> 8 | u32::from(*byte) << 24);
    for byte in raw.iter().skip(3) {
        group = group >> 8 | u32::from(*byte) << 24;
        if seen.is_new(group) {
            new += 1;
            if new >= too_many {
                return false;
            }
        }
    }
    true
}

/// Says whether hardly any of the groups of four that stand side by side was there before. What shrinks below a quarter holds the
/// same five times or more, and then one of five groups was there, whatever its length. (Of a little more than four times
/// some are missed, and stay as they are.)
fn is_new_throughout(raw: &[u8]) -> bool {
    let mut seen = Seen([0; SMALL / 32]);
    let (groups, _) = raw.as_chunks::<4>();
    let new = groups.iter().filter(|group| seen.is_new(u32::from_le_bytes(**group))).count();
    new > groups.len() - groups.len() / 8
}

/// Which groups of four bytes there were, a bit for each; some share one.
struct Seen<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Seen<WORDS> {
    /// Takes note of a group, and says whether it was not there before.
    fn is_new(&mut self, group: u32) -> bool {
        let bit = group.wrapping_mul(0x9e37_79b1) as usize >> (32 - (64 * WORDS).ilog2());
        let (word, mask) = (&mut self.0[bit / 64], 1 << (bit % 64));
        let is_new = *word & mask == 0;
        *word |= mask;
        is_new
    }
}

/// Appends the `size` bytes of a stored piece to `out`.
pub(crate) fn decode(stored: &[u8], size: usize, out: &mut Vec<u8>) -> io::Result<()> {
    if stored.len() == size {
        out.extend_from_slice(stored);
        return Ok(());
    }
    let before = out.len();
    out.resize(before + size, 0);
    let written = decompress(stored, &mut out[before..])?;
    if written == size {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "a piece unpacks to another size"))
    }
}

fn compress(raw: &[u8]) -> io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|slot| {
        let compressor = match slot {
            Some(ready) => ready,
            None => slot.insert(zstd::bulk::Compressor::new(LEVEL)?),
        };
        compressor.compress(raw)
    })
}

fn decompress(stored: &[u8], into: &mut [u8]) -> io::Result<usize> {
    DECOMPRESSOR.with_borrow_mut(|slot| {
        let decompressor = match slot {
            Some(ready) => ready,
            None => slot.insert(zstd::bulk::Decompressor::new()?),
        };
        decompressor.decompress_to_buffer(stored, into)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Hash;

    #[test]
    fn pieces_come_back_whether_packing_helped_or_not() {
        let noise: Vec<u8> = (0..4000u32).map(|n| (n.wrapping_mul(2654435761) >> 13) as u8).collect();
        for raw in [b"".to_vec(), b"x".to_vec(), vec![7; 5000], noise] {
            let mut out = b"before".to_vec();
            decode(&encode(&raw), raw.len(), &mut out).unwrap();
            assert_eq!(&out[6..], raw);
        }
        assert!(encode(&[7; 5000]).len() < 100);
    }

    #[test]
    fn small_pieces_are_packed_where_that_leaves_a_quarter() {
        let row = r#"{"path":"src/main.rs","status":"unchanged","mode":420},"#;
        let rows = row.repeat(20).into_bytes();
        assert!(encode(&rows).len() * 4 < rows.len());
        for text in [20, 60, 200].map(|words| sentence(words).into_bytes()) {
            let packed = compress(&text).unwrap();
            assert!(!is_worth_it(packed.len(), text.len()), "{} of {}", packed.len(), text.len());
            assert!(!repeats_itself(&text), "{}", text.len());
        }
    }

    /// Words in no order, as they stand in a conversation.
    fn sentence(words: u32) -> String {
        let word = |n: u32| format!("{:x} ", n.wrapping_mul(2_654_435_761) >> 12);
        (0..words).map(word).collect()
    }

    #[test]
    fn what_is_there_five_times_or_has_few_letters_is_not_taken_for_new_throughout() {
        let noise = |n: usize| Hash::of(&n.to_le_bytes()).as_bytes()[0];
        let mut shrinks = 0;
        for length in [96, 130, 400, 1000, 2048, 4095] {
            let repeated = (1..=length / 5).map(|period| (0..length).map(|n| noise(n % period)).collect());
            let few = (1..8).map(|letters| (0..length).map(|n| b'a' + noise(n) % letters).collect());
            for raw in repeated.chain(few).collect::<Vec<Vec<u8>>>() {
                if is_worth_it(compress(&raw).unwrap().len(), raw.len()) {
                    shrinks += 1;
                    assert!(!is_new_throughout(&raw), "{raw:?}");
                }
            }
        }
        assert!(shrinks > 500, "{shrinks}");
    }

    #[test]
    fn a_damaged_or_oversized_piece_is_an_error() {
        let raw = vec![7; 5000];
        let mut stored = encode(&raw).into_owned();
        assert!(decode(&stored, 4999, &mut Vec::new()).is_err());
        assert!(decode(&stored, 5001, &mut Vec::new()).is_err());
        stored[5] ^= 0x40;
        let mut out = Vec::new();
        assert!(decode(&stored, raw.len(), &mut out).is_err() || out != raw);
    }
}
