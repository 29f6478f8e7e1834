//! Process groups, and processes that can be told by a mark.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use serde::{Deserialize, Serialize};

use super::family::Family;

/// Which process this is, beyond its number, which is given away again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its number, which is its group's number too.
    pub pid: i32,
    /// When it started, in the kernel's ticks since boot; 0 where that cannot be known.
    pub started: u64,
    /// Which boot of the machine that was; empty where that cannot be known.
    pub boot: String,
}

impl Identity {
    /// Reads the identity of a process that is there now.
    pub fn of(pid: i32) -> Self {
        Self { pid, started: stat(pid).map_or(0, |stat| stat.started), boot: boot().to_owned() }
    }

    /// Says whether that very process is still there and not just a zombie.
    pub fn is_alive(&self) -> bool {
        self.boot == boot() && stat(self.pid).is_some_and(|stat| stat.started == self.started && !stat.zombie)
    }
}

/// Asks a group to stop, kills what is still there after `grace`, and returns when none of it is alive. Says whether
/// there was anything to end.
pub fn end_group(group: i32, grace: Duration) -> io::Result<bool> {
    let Some(pid) = Pid::from_raw(group).filter(|pid| !pid.is_init()) else { return Ok(false) };
    if !is_there(pid) || !has_live_member(pid) {
        return Ok(false);
    }
    let _ = kill_process_group(pid, Signal::TERM);
    // One that was stopped cannot hear.
    let _ = kill_process_group(pid, Signal::CONT);
    if wait_until_gone(pid, grace) {
        return Ok(true);
    }
    let _ = kill_process_group(pid, Signal::KILL);
    if wait_until_gone(pid, Duration::from_secs(5)) {
        return Ok(true);
    }
    Err(io::Error::other(format!("process group {group} does not end, not even when killed")))
}

/// Says whether a group has a member, if only a zombie.
pub(super) fn is_there(group: Pid) -> bool {
    test_kill_process_group(group) != Err(rustix::io::Errno::SRCH)
}

fn wait_until_gone(group: Pid, patience: Duration) -> bool {
    let begun = Instant::now();
    let mut pause = Duration::from_micros(500);
    while is_there(group) && has_live_member(group) {
        if begun.elapsed() >= patience {
            return false;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    true
}

/// A zombie is nobody, but its parent may never look, so its group never goes away.
fn has_live_member(group: Pid) -> bool {
    let group = group.as_raw_nonzero().get();
    if !Path::new("/proc/self/stat").exists() {
        return true;
    }
    processes().into_iter().filter_map(stat).any(|stat| stat.group == group && !stat.zombie)
}

/// Finds the processes of this user whose environment had `mark` (`NAME=value`) when they started. Where the system does
/// not tell, it finds none.
pub fn marked(mark: &str) -> Vec<i32> {
    let ours = std::process::id().cast_signed();
    let alive = |pid: &i32| stat(*pid).is_some_and(|stat| !stat.zombie);
    let has_mark = |pid: &i32| carries(*pid, &[mark]);
    processes().into_iter().filter(|pid| *pid != ours).filter(has_mark).filter(alive).collect()
}

/// Says whether the environment of a process had all of `marks` when it started.
pub(super) fn carries(pid: i32, marks: &[impl AsRef<str>]) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let has = |mark: &str| environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes());
    !environment.is_empty() && marks.iter().all(|mark| has(mark.as_ref()))
}

/// Ends every process whose environment had all of `marks` when it started, and what these started: asks it to stop, and
/// kills it if it is still there after `grace`. Looks again until there is none, because one may just have started
/// another. Says how many there were.
pub fn end_marked(marks: &[&str], grace: Duration) -> io::Result<usize> {
    Family::new(&[], marks).end(grace)
}

/// Ends what is left of groups, as [`end_marked`] does, with every process that has a mark and what all these started. A
/// group whose number went to another process is not one of them.
pub fn end_left(groups: &[Identity], mark: &str, grace: Duration) -> io::Result<usize> {
    Family::new(groups, &[mark]).end(grace)
}

/// Asks a process to stop, if that very process is still there.
pub fn ask_to_stop(process: &Identity) {
    if process.is_alive() {
        let _ = Pid::from_raw(process.pid).map(|pid| kill_process(pid, Signal::TERM));
    }
}

pub(super) fn processes() -> Vec<i32> {
    let Ok(found) = fs::read_dir("/proc") else { return Vec::new() };
    found.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

pub(super) fn boot() -> &'static str {
    static BOOT: LazyLock<String> = LazyLock::new(|| {
        fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
    });
    &BOOT
}

pub(super) struct Stat {
    pub(super) zombie: bool,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) started: u64,
}

/// Reads what the kernel says of a process. Its name comes in brackets and may itself have brackets and blanks.
pub(super) fn stat(pid: i32) -> Option<Stat> {
    // Such a file has no size, and the kernel fills it once for each time it is read: at one go is best.
    let mut text = [0; 1024];
    let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text[..length]);
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        zombie: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}
