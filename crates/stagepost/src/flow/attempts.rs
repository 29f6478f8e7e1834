//! What was begun: a file beside the store that is appended to, in general without waiting for the disk.
//!
//! That a step was begun matters when the process that drove it was killed: whoever goes on must count that attempt and
//! end what is left of it. If the machine went down with it, nothing is left of it here, and losing the line costs nothing.
//! A step that may be done once only is different: what it did elsewhere outlives the machine. That it begins is on the
//! disk before its program starts.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::ended::Ended;
use crate::bounded;
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
    /// The processes of steps that are not known to be over, in the order of their start.
    pub(super) processes: Vec<(String, Identity)>,
    /// Whether any program was started.
    pub(super) has_run: bool,
    /// Who drove the run last.
    pub(super) driver: Option<Identity>,
    /// The ends of attempts at steps in code, as far as they were written down here too.
    pub(super) ended: Vec<Ended>,
}

/// Reads what was begun. A line that was cut off says nothing.
pub(super) fn read(folder: &Path) -> Begun {
    let mut begun = Begun::default();
    let text = bounded::read_file(&folder.join(NAME)).unwrap_or_default();
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
                self.has_run = true;
            }
            // The number of a group that is over may be a stranger's by now.
            "over" => {
                let over = identity(&mut rest.splitn(3, '\t'))?;
                let at = self.processes.iter().rposition(|(_, process)| *process == over)?;
                self.processes.remove(at);
            }
            "end" => self.ended.push(Ended::read(rest)?),
            "driver" => {
                self.driver = Some(identity(&mut rest.splitn(3, '\t'))?);
                // Who goes on with a run first ends what is left of it.
                self.processes.clear();
            }
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
    folder: PathBuf,
    /// Has the disk keep what was written to a file or folder.
    sync: fn(&File) -> io::Result<()>,
}

#[derive(Debug)]
struct Appended {
    file: File,
    /// Whether the disk knows where the file is.
    is_placed: bool,
    /// Lines that go along with the next one: losing them costs time and nothing else.
    waiting: String,
}

impl Attempts {
    /// Opens the file and writes down who drives the run from now on.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o600);
        let file = bounded::open_as(&mut options, &folder.join(NAME))?;
        let appended = Appended { file, is_placed: false, waiting: String::new() };
        let attempts =
            Self { file: Mutex::new(appended), folder: folder.to_owned(), sync: |file| file.sync_all() };
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

    /// Writes down that an attempt begins, and returns when a power cut cannot undo that.
    pub(super) fn start_durably(&self, step: &str, attempt: u32) -> io::Result<()> {
        self.start(step, attempt)?;
        let mut appended = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        (self.sync)(&appended.file)?;
        if !appended.is_placed {
            // The folder of the run, and the one for all runs, may be as new as the file.
            for folder in self.folder.ancestors().take(3) {
                (self.sync)(&File::open(folder)?)?;
            }
            appended.is_placed = true;
        }
        Ok(())
    }

    /// Writes down which process a step runs in.
    pub(super) fn process(&self, step: &str, process: &Identity) -> io::Result<()> {
        let Identity { pid, started, boot } = process;
        self.append(&format!("process\t{pid}\t{started}\t{boot}\t{step}\n"))
    }

    /// Has written down, along with what is written next, that nothing of a group is left.
    pub(super) fn over(&self, process: &Identity) {
        let Identity { pid, started, boot } = process;
        let mut appended = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(appended.waiting, "over\t{pid}\t{started}\t{boot}");
    }

    /// Writes down what waits: nothing follows for a while.
    pub(super) fn pause(&self) -> io::Result<()> {
        self.append("")
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
        let Appended { file, waiting, .. } = &mut *appended;
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
    fn only_what_may_be_done_once_waits_for_the_disk() {
        use std::cell::RefCell;
        use std::os::unix::fs::MetadataExt as _;
        thread_local! { static SYNCED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) }; }
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("flow/r");
        std::fs::create_dir_all(&folder).unwrap();
        let mut attempts = Attempts::open(&folder).unwrap();
        attempts.sync = |file| {
            SYNCED.with_borrow_mut(|all| all.push(file.metadata().unwrap().ino()));
            Ok(())
        };
        let number = |path: &str| std::fs::metadata(home.path().join(path)).unwrap().ino();
        attempts.start("a", 1).unwrap();
        assert!(SYNCED.take().is_empty());
        attempts.start_durably("pay", 1).unwrap();
        assert_eq!(SYNCED.take(), ["flow/r/attempts", "flow/r", "flow", "."].map(number));
        attempts.start_durably("pay", 2).unwrap();
        assert_eq!(SYNCED.take(), ["flow/r/attempts"].map(number), "where it is is known by now");
        assert_eq!(read(&folder).attempts["pay"], 2);
    }

    #[test]
    fn a_group_that_is_over_is_written_down_with_what_comes_next() {
        let folder = tempfile::tempdir().unwrap();
        let attempts = Attempts::open(folder.path()).unwrap();
        let process = |pid| Identity { pid, started: 9, boot: "b".to_owned() };
        [7, 8].iter().for_each(|pid| attempts.process("a", &process(*pid)).unwrap());
        attempts.over(&process(7));
        assert_eq!(read(folder.path()).processes.len(), 2);
        attempts.start("b", 1).unwrap();
        assert_eq!(read(folder.path()).processes, [("a".to_owned(), process(8))]);
        attempts.over(&process(8));
        attempts.pause().unwrap();
        let begun = read(folder.path());
        assert!(begun.has_run && begun.processes.is_empty());
    }

    #[test]
    fn what_was_begun_is_read_back_and_a_torn_line_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let attempts = Attempts::open(folder.path()).unwrap();
        let process = Identity { pid: 7, started: 9, boot: "b".to_owned() };
        attempts.start("a/b", 1).unwrap();
        attempts.start("a/b", 2).unwrap();
        attempts.process("a/b", &process).unwrap();
        attempts.append("start\t3\nstart\tx\ta\nproc").unwrap();
        assert_eq!(read(folder.path()).processes, [("a/b".to_owned(), process)]);
        drop(Attempts::open(folder.path()).unwrap());
        let begun = read(folder.path());
        assert_eq!(begun.attempts, HashMap::from([("a/b".to_owned(), 2)]));
        assert!(begun.has_run && begun.processes.is_empty(), "who goes on has ended what was left");
        assert_eq!(begun.driver.map(|driver| driver.pid), Some(std::process::id().cast_signed()));
    }
}
