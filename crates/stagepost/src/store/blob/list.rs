//! The list of the pieces of a payload, as stored.
//!
//! Pieces are named by number. A list is written as runs of consecutive numbers, and where an earlier list begins
//! and ends the same way, only what lies between is written.
//!
//! ```text
//! list  = prefix suffix runs…        prefix, suffix: pieces taken from the start and end of the base list
//! run   = zigzag(first - expected) count
//! ```
//! All numbers are LEB128. Without a base, prefix and suffix are 0.

/// The numbers of the pieces of a payload, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PieceList(pub(crate) Vec<i64>);

impl PieceList {
    /// Writes the list as its difference to `base`.
    pub(crate) fn encode(&self, base: &[i64]) -> Vec<u8> {
        let prefix = self.0.iter().zip(base).take_while(|(a, b)| a == b).count();
        let (rest, base_rest) = (&self.0[prefix..], &base[prefix..]);
        let suffix = rest.iter().rev().zip(base_rest.iter().rev()).take_while(|(a, b)| a == b).count();
        let mut out = Vec::new();
        write_number(&mut out, prefix as u64);
        write_number(&mut out, suffix as u64);
        write_runs(&mut out, &rest[..rest.len() - suffix]);
        out
    }

    /// Reads a list that was written as its difference to `base`; `None` if the bytes cannot be one.
    pub(crate) fn decode(mut bytes: &[u8], base: &[i64]) -> Option<Self> {
        let prefix = usize::try_from(read_number(&mut bytes)?).ok()?;
        let suffix = usize::try_from(read_number(&mut bytes)?).ok()?;
        if prefix.checked_add(suffix)? > base.len() {
            return None;
        }
        let mut pieces = base[..prefix].to_vec();
        read_runs(bytes, &mut pieces)?;
        pieces.extend_from_slice(&base[base.len() - suffix..]);
        Some(Self(pieces))
    }
}

fn write_runs(out: &mut Vec<u8>, mut pieces: &[i64]) {
    let mut expected = 0;
    while let Some(first) = pieces.first() {
        let count = pieces.iter().zip(*first..).take_while(|(piece, number)| *piece == number).count();
        write_number(out, zigzag(first - expected));
        write_number(out, count as u64);
        expected = first + count as i64;
        pieces = &pieces[count..];
    }
}

/// A damaged list must not make us ask for all the memory there is, nor count beyond the last number.
const MOST_PIECES: u64 = 1 << 32;
const HIGHEST: i64 = i64::MAX / 2;

fn read_runs(mut bytes: &[u8], pieces: &mut Vec<i64>) -> Option<()> {
    let mut expected = 0i64;
    while !bytes.is_empty() {
        let first = expected.checked_add(unzigzag(read_number(&mut bytes)?))?;
        let count = read_number(&mut bytes).filter(|count| (1..MOST_PIECES).contains(count))?;
        let next = first.checked_add(i64::try_from(count).ok()?)?;
        if first < 0 || next > HIGHEST || pieces.len() as u64 + count > MOST_PIECES {
            return None;
        }
        pieces.try_reserve(usize::try_from(count).ok()?).ok()?;
        pieces.extend(first..next);
        expected = next;
    }
    Some(())
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_back_with_and_without_a_base() {
        let base = vec![1, 2, 3, 10, 11, 12, 40];
        for pieces in [
            vec![],
            vec![5],
            base.clone(),
            vec![1, 2, 3, 99, 12, 40],
            vec![1, 2, 3, 10, 11, 12, 40, 41],
            vec![40, 1],
            vec![HIGHEST - 1, 0],
        ] {
            let list = PieceList(pieces);
            assert_eq!(PieceList::decode(&list.encode(&[]), &[]).as_ref(), Some(&list));
            assert_eq!(PieceList::decode(&list.encode(&base), &base).as_ref(), Some(&list));
        }
    }

    #[test]
    fn an_appended_piece_costs_a_few_bytes() {
        let base: Vec<i64> = (0..500).map(|n| n * 3).collect();
        let mut longer = base.clone();
        longer.push(1501);
        assert!(PieceList(longer).encode(&base).len() <= 6);
    }

    #[test]
    fn damaged_lists_are_refused_not_believed() {
        let huge = [0, 0, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        for bytes in [&b""[..], &[5, 0], &[0, 0, 1], &[0, 0, 2, 0], &huge, &[0xff; 12], &[0, 0, 3, 1]] {
            assert_eq!(PieceList::decode(bytes, &[1, 2]), None, "{bytes:?}");
        }
    }
}
