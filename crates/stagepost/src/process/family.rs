//! Processes that belong together: those of a group, what they started, and what carries marks.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::Identity;
use super::group::{Stat, boot, carries, processes, stat};

/// Processes that belong together. Each look finds what they started since; whoever was found once stays known, also
/// when it moves to another group or its parent is gone. Where the system does not tell, there is none.
#[derive(Debug, Default)]
pub(super) struct Family {
    /// Groups that belong to it, by the processes that lead or led them.
    groups: Vec<Identity>,
    /// Whose environment had all of these (`NAME=value`) when it started belongs to it.
    marks: Vec<String>,
    /// Everybody who was found so far: number and start.
    known: HashMap<i32, u64>,
}

/// Somebody who is alive.
struct Member {
    pid: i32,
    /// It belongs to the family by itself, or there is nobody left who could tell it to stop.
    is_own: bool,
}

impl Family {
    pub(super) fn new(groups: &[Identity], marks: &[&str]) -> Self {
        let groups = groups.iter().filter(|one| one.pid > 1 && one.boot == boot()).cloned().collect();
        let marks = marks.iter().map(|mark| (*mark).to_owned()).collect();
        Self { groups, marks, known: HashMap::new() }
    }

    /// The program that leads `group`, with all that it has started by now.
    pub(super) fn of_group(group: i32) -> Self {
        let mut family = Self::new(&[Identity::of(group)], &[]);
        family.look();
        family
    }

    /// Finds everybody who is alive.
    fn look(&mut self) -> Vec<Member> {
        let ours = std::process::id().cast_signed();
        let others = processes().into_iter().filter(|pid| *pid != ours && *pid > 1);
        let all: HashMap<i32, Stat> =
            others.filter_map(|pid| Some((pid, stat(pid)?))).filter(|(_, stat)| !stat.zombie).collect();
        let mut found: HashSet<i32> =
            all.iter().filter(|(pid, stat)| self.has(&all, **pid, stat)).map(|(pid, _)| *pid).collect();
        let seeds = found.clone();
        loop {
            let more: Vec<i32> = all
                .iter()
                .filter(|(pid, stat)| found.contains(&stat.parent) && !found.contains(pid))
                .map(|(pid, _)| *pid)
                .collect();
            if more.is_empty() {
                break;
            }
            found.extend(more);
        }
        let member = |pid: i32| {
            let alone = !found.contains(&all[&pid].parent);
            let is_own = alone || (seeds.contains(&pid) && !self.known.contains_key(&pid));
            Member { pid, is_own }
        };
        let members = found.iter().map(|pid| member(*pid)).collect();
        self.known.extend(found.iter().map(|pid| (*pid, all[pid].started)));
        members
    }

    fn has(&self, all: &HashMap<i32, Stat>, pid: i32, stat: &Stat) -> bool {
        // A number that was given away again is somebody else's.
        let is_now = |leader: i32, started: u64| all.get(&leader).is_none_or(|now| now.started == started);
        let led = self.groups.iter().any(|one| one.pid == stat.group && is_now(one.pid, one.started));
        let led_by_known = || self.known.get(&stat.group).is_some_and(|started| is_now(stat.group, *started));
        led || self.known.get(&pid) == Some(&stat.started)
            || led_by_known()
            || (!self.marks.is_empty() && carries(pid, &self.marks))
    }

    /// Asks everybody to stop, kills who is still there after `grace`, and returns when nobody is. Who was started by
    /// one that is alive is left to that one until then: it may be another that ends what it started. Says how many
    /// there were.
    pub(super) fn end(&mut self, grace: Duration) -> io::Result<usize> {
        let (begun, mut asked, mut seen) = (Instant::now(), HashSet::new(), HashSet::new());
        loop {
            let found = self.look();
            if found.is_empty() {
                return Ok(seen.len());
            }
            let over = begun.elapsed() >= grace;
            for Member { pid, is_own } in found {
                seen.insert(pid);
                if over {
                    tell(pid, Signal::KILL);
                } else if is_own && asked.insert(pid) {
                    tell(pid, Signal::TERM);
                    // One that was stopped cannot hear.
                    tell(pid, Signal::CONT);
                }
            }
            if begun.elapsed() > grace + Duration::from_secs(5) {
                return Err(io::Error::other("processes do not end, not even when killed"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn tell(pid: i32, signal: Signal) {
    let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, signal));
}
