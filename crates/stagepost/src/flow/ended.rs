//! What the end of an attempt comes to, as one line beside the store.
//!
//! Whoever goes on with a run in code would have to read every record of it to know which steps are done. These lines
//! say the same at a hundredth of the cost. They are never the truth: each carries a check of itself, the newest must
//! agree with the record that it tells of, and what is not told here is read from the records.

use std::fmt::Write as _;

use crate::model::{BlobRef, Checkpoint, Hash, Kind, StepStatus};

use super::record::RESULT;

/// The end of an attempt at a step of a run in code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    /// The number of its checkpoint in the run.
    pub(super) seq: u64,
    /// The beginning of the seal of its checkpoint, which stands for all that came before it.
    pub(super) seal: u64,
    /// The number of the attempt.
    pub(super) attempt: u32,
    /// The result, if it was completed.
    pub(super) result: Option<BlobRef>,
    /// The step.
    pub(super) step: String,
}

impl Ended {
    /// Tells of a checkpoint; `None` if it is not the end of an attempt.
    pub(super) fn of(checkpoint: &Checkpoint) -> Option<Self> {
        let Kind::Step { step, status, attempt } = &checkpoint.content.kind else { return None };
        let result = checkpoint.artifact(RESULT).filter(|_| *status == StepStatus::Completed);
        Some(Self {
            seq: checkpoint.seq,
            seal: beginning(&checkpoint.seal),
            attempt: *attempt,
            result: result.map(|artifact| artifact.blob),
            step: step.clone(),
        })
    }

    /// Writes the line, without the word that begins it.
    pub(super) fn write(&self, out: &mut String) {
        let Self { seq, seal, attempt, result, step } = self;
        let mut told = String::with_capacity(128 + step.len());
        let _ = match result {
            Some(BlobRef { size, hash }) => {
                write!(told, "{seq}\t{seal:016x}\t{attempt}\t{size}\t{hash}\t{step}")
            }
            None => write!(told, "{seq}\t{seal:016x}\t{attempt}\t-\t-\t{step}"),
        };
        let _ = writeln!(out, "{:08x}\t{told}", crc32fast::hash(told.as_bytes()));
    }

    /// Reads a line; `None` if it is not as it was written.
    pub(super) fn read(line: &str) -> Option<Self> {
        let (checked, told) = line.split_once('\t')?;
        if u32::from_str_radix(checked, 16).ok()? != crc32fast::hash(told.as_bytes()) {
            return None;
        }
        let mut parts = told.splitn(6, '\t');
        let mut part = || parts.next();
        let (seq, seal) = (part()?.parse().ok()?, u64::from_str_radix(part()?, 16).ok()?);
        let attempt = part()?.parse().ok()?;
        let result = match (part()?, part()?) {
            ("-", "-") => None,
            (size, hash) => Some(BlobRef { size: size.parse().ok()?, hash: hash.parse().ok()? }),
        };
        Some(Self { seq, seal, attempt, result, step: part()?.to_owned() })
    }
}

fn beginning(seal: &Hash) -> u64 {
    u64::from_be_bytes(seal.as_bytes()[..8].try_into().expect("a hash has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_back_and_none_that_differs_in_any_byte() {
        let blob = BlobRef { size: 7, hash: Hash::of(b"x") };
        let done = Ended { seq: 3, seal: 9, attempt: 2, result: Some(blob), step: "a/\u{fc}".into() };
        for ended in [done.clone(), Ended { result: None, ..done }] {
            let mut line = String::new();
            ended.write(&mut line);
            assert_eq!(Ended::read(line.trim_end()).as_ref(), Some(&ended));
            for at in 0..line.len() - 1 {
                let mut bytes = line.trim_end().as_bytes().to_vec();
                bytes[at] ^= 1;
                assert_eq!(Ended::read(&String::from_utf8_lossy(&bytes)), None, "byte {at}");
            }
        }
    }
}
