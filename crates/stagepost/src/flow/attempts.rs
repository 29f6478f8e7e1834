//! What was begun: a file beside the store that is appended to without waiting for the disk.
//!
//! That a step was begun matters when the process that drove it was killed: whoever goes on must count that attempt and
//! end what is left of it. If the machine went down with it, nothing is left of it, and losing the line costs nothing.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::ended::Ended;
use crate::process::Identity;

const NAME: &str = "attempts";

/// Where the file is.
pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// What is known to have been begun.
#[derive(Debug, Default)]
pub(super) struct Begun {
    /// The newest attempt of each step.
    pub(super) attempts: HashMap<String, u32>,
    /// The processes of steps, in the order of their start.
    pub(super) processes: Vec<(String, Identity)>,
    /// Who drove the run last.
    pub(super) driver: Option<Identity>,
    /// The ends of attempts at steps in code, as far as they were written down here too.
    pub(super) ended: Vec<Ended>,
}

/// Reads what was begun. A line that was cut off says nothing.
pub(super) fn read(folder: &Path) -> Begun {
    let mut begun = Begun::default();
    let text = std::fs::read(folder.join(NAME)).unwrap_or_default();
    for line in String::from_utf8_lossy(&text).lines() {
        let _ = begun.take_in(line);
    }
    begun
}

impl Begun {
    fn take_in(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once('\t')?;
        match word {
            "start" => {
                let (attempt, step) = rest.split_once('\t')?;
                let attempt: u32 = attempt.parse().ok()?;
                match self.attempts.get_mut(step) {
                    Some(newest) => *newest = attempt.max(*newest),
                    None => drop(self.attempts.insert(step.to_owned(), attempt)),
                }
            }
            "process" => {
                let mut parts = rest.splitn(4, '\t');
                let process = identity(&mut parts)?;
                self.processes.push((parts.next()?.to_owned(), process));
            }
            "end" => self.ended.push(Ended::read(rest)?),
            "driver" => self.driver = Some(identity(&mut rest.splitn(3, '\t'))?),
            _ => {}
        }
        Some(())
    }
}

fn identity<'a>(parts: &mut impl Iterator<Item = &'a str>) -> Option<Identity> {
    let (pid, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(Identity { pid, started, boot: parts.next()?.to_owned() })
}

/// The file, open to be appended to.
#[derive(Debug)]
pub(super) struct Attempts {
    file: Mutex<Appended>,
}

#[derive(Debug)]
struct Appended {
    file: File,
    /// Lines that go along with the next one: losing them costs time and nothing else.
    waiting: String,
}

impl Attempts {
    /// Opens the file and writes down who drives the run from now on.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(folder.join(NAME))?;
        let attempts = Self { file: Mutex::new(Appended { file, waiting: String::new() }) };
        let ours = Identity::of(std::process::id().cast_signed());
        attempts.append(&format!("\ndriver\t{}\t{}\t{}\n", ours.pid, ours.started, ours.boot))?;
        Ok(attempts)
    }

    /// Writes down that an attempt begins.
    pub(super) fn start(&self, step: &str, attempt: u32) -> io::Result<()> {
        let mut line = String::with_capacity(step.len() + 16);
        let _ = writeln!(line, "start\t{attempt}\t{step}");
        self.append(&line)
    }

    /// Writes down which process a step runs in.
    pub(super) fn process(&self, step: &str, process: &Identity) -> io::Result<()> {
        let Identity { pid, started, boot } = process;
        self.append(&format!("process\t{pid}\t{started}\t{boot}\t{step}\n"))
    }

    /// Has the end of an attempt written down, along with what is written next.
    pub(super) fn ended(&self, ended: &Ended) {
        let mut appended = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        appended.waiting.push_str("end\t");
        ended.write(&mut appended.waiting);
    }

    /// One write for one line and what waits for it: lines of several threads do not mix.
    fn append(&self, line: &str) -> io::Result<()> {
        let mut appended = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Appended { file, waiting } = &mut *appended;
        if waiting.is_empty() {
            return file.write_all(line.as_bytes());
        }
        waiting.push_str(line);
        let written = file.write_all(waiting.as_bytes());
        waiting.clear();
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_is_read_back_and_a_torn_line_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let attempts = Attempts::open(folder.path()).unwrap();
        let process = Identity { pid: 7, started: 9, boot: "b".to_owned() };
        attempts.start("a/b", 1).unwrap();
        attempts.start("a/b", 2).unwrap();
        attempts.process("a/b", &process).unwrap();
        attempts.append("start\t3\nstart\tx\ta\nproc").unwrap();
        drop(Attempts::open(folder.path()).unwrap());
        let begun = read(folder.path());
        assert_eq!(begun.attempts, HashMap::from([("a/b".to_owned(), 2)]));
        assert_eq!(begun.processes, [("a/b".to_owned(), process)]);
        assert_eq!(begun.driver.map(|driver| driver.pid), Some(std::process::id().cast_signed()));
    }
}
