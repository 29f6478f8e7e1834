//! Running a program to its end.

use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use super::family::Family;
use super::{Cancel, Captured, Identity, Limits, Program, group};

/// How long the outputs are still read after the program has ended, if another process keeps them open.
const LINGER: Duration = Duration::from_millis(200);

/// So often we look whether a program waits for a terminal.
const LOOK_FOR_STOP: Duration = Duration::from_millis(500);

/// Which of its outputs a program wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// By itself, with this code.
    Exit(i32),
    /// By a signal that we did not send.
    Signal(i32),
    /// We ended it, because its time was over.
    TimedOut,
    /// We ended it, because someone asked to stop.
    Cancelled,
    /// We ended it, because it printed far more than is taken.
    TooMuch,
    /// We ended it, because it waited for a terminal that it cannot have: the kernel had stopped it with this signal.
    NoTerminal(i32),
}

impl Ended {
    /// Says whether the program says that it did what it should.
    pub fn is_success(self) -> bool {
        self == Ended::Exit(0)
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Exit(code) => write!(f, "exit code {code}"),
            Ended::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "signal {signal} ({name})"),
                None => write!(f, "signal {signal}"),
            },
            Ended::TimedOut => f.write_str("time-out"),
            Ended::Cancelled => f.write_str("cancelled"),
            Ended::TooMuch => f.write_str("too much output"),
            Ended::NoTerminal(_) => f.write_str("a wait for the terminal, which it cannot have"),
        }
    }
}

/// The name of a signal that programs die of.
fn signal_name(signal: i32) -> Option<&'static str> {
    const NAMES: &[(i32, &str)] = &[
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (14, "SIGALRM"),
        (15, "SIGTERM"),
    ];
    NAMES.iter().find(|(number, _)| *number == signal).map(|(_, name)| *name)
}

/// What came of a program.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended.
    pub ended: Ended,
    /// What it wrote to its standard output.
    pub out: Captured,
    /// What it wrote to its standard error.
    pub err: Captured,
    /// How long it took.
    pub took: Duration,
    /// It left processes behind in its group, which were ended.
    pub left_behind: bool,
}

/// The error of running a program. How it ended is no error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It could not be started.
    #[error("failed to start `{program}`")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// It could not be followed to its end.
    #[error("failed to follow `{program}` to its end")]
    Follow {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
}

/// Runs a program to its end, or ends it. `started` is called once, as soon as it is there; `output` with every part of
/// what it writes, as it comes. When this returns, also with an error, no process of its group is alive; if we ended it,
/// neither is what it had started in other groups.
pub fn run(
    program: &Program,
    limits: &Limits,
    cancel: &Cancel,
    started: &mut dyn FnMut(&Identity),
    output: &mut dyn FnMut(Output, &[u8]),
) -> Result<Finished, Error> {
    let begun = Instant::now();
    let child = start(program).map_err(|source| Error::Start { program: program.name(), source })?;
    let mut running = Running { group: child.id() as i32, child, reaped: None };
    started(&Identity::of(running.group));
    let followed = running.follow(program, limits, cancel, begun, output);
    followed.map_err(|source| Error::Follow { program: program.name(), source })
}

fn start(program: &Program) -> io::Result<Child> {
    let [name, arguments @ ..] = program.argv.as_slice() else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "no program is named"));
    };
    let mut command = Command::new(name);
    if program.alone {
        command.env_clear();
    }
    command.args(arguments).envs(program.set.iter().map(|(name, value)| (name, value)));
    for name in &program.unset {
        command.env_remove(name);
    }
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
    }
    let input = if program.input.is_empty() { Stdio::null() } else { Stdio::piped() };
    command.process_group(0).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

/// A program that runs. Dropping it ends its group.
struct Running {
    child: Child,
    group: i32,
    reaped: Option<ExitStatus>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.reaped.is_none() {
            if let Some(pid) = Pid::from_raw(self.group) {
                let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
            }
            let _ = self.child.wait();
        }
    }
}

/// Why we ended it.
#[derive(Clone, Copy)]
enum Why {
    TimedOut,
    Cancelled,
    TooMuch,
    NoTerminal(i32),
}

impl Running {
    fn follow(
        &mut self,
        program: &Program,
        limits: &Limits,
        cancel: &Cancel,
        begun: Instant,
        output: &mut dyn FnMut(Output, &[u8]),
    ) -> io::Result<Finished> {
        let mut streams = Streams::of(&mut self.child, &program.input, limits.keep)?;
        let exit = exit_of(self.group)?;
        let why = self.until_exit(&mut streams, exit.as_ref(), limits, cancel, begun, output)?;
        // Seen before it is asked: who loses its parent by that cannot be told afterwards.
        let family = why.map(|_| Family::of_group(self.group));
        if why.is_some() {
            self.stop(&mut streams, exit.as_ref(), limits.grace, output)?;
        }
        let status = self.child.wait()?;
        self.reaped = Some(status);
        let lingering = Instant::now();
        while streams.any_open() && lingering.elapsed() < LINGER {
            streams.wait(None, None, Some(LINGER.saturating_sub(lingering.elapsed())), output)?;
        }
        let left_behind = Pid::from_raw(self.group).is_some_and(group::is_there)
            && group::end_group(self.group, limits.grace)?;
        if let Some(mut family) = family {
            family.end(limits.grace)?;
        }
        let ended = match why {
            Some(Why::TimedOut) => Ended::TimedOut,
            Some(Why::Cancelled) => Ended::Cancelled,
            Some(Why::TooMuch) => Ended::TooMuch,
            Some(Why::NoTerminal(signal)) => Ended::NoTerminal(signal),
            None => status.code().map_or_else(|| Ended::Signal(status.signal().unwrap_or(0)), Ended::Exit),
        };
        let Streams { out, err, .. } = streams;
        Ok(Finished { ended, out: out.kept, err: err.kept, took: begun.elapsed(), left_behind })
    }

    /// Follows the program until it ends, or until there is a reason to end it.
    fn until_exit(
        &mut self,
        streams: &mut Streams,
        exit: Option<&OwnedFd>,
        limits: &Limits,
        cancel: &Cancel,
        begun: Instant,
        output: &mut dyn FnMut(Output, &[u8]),
    ) -> io::Result<Option<Why>> {
        let mut looked = Instant::now();
        loop {
            if cancel.is_cancelled() {
                return Ok(Some(Why::Cancelled));
            }
            let left = limits.timeout.map(|timeout| timeout.saturating_sub(begun.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Some(Why::TimedOut));
            }
            if limits.most.is_some_and(|most| streams.out.kept.total() > most) {
                return Ok(Some(Why::TooMuch));
            }
            if looked.elapsed() >= LOOK_FOR_STOP {
                if let Some(signal) = stopped_by_terminal(self.group) {
                    return Ok(Some(Why::NoTerminal(signal)));
                }
                looked = Instant::now();
            }
            let left = Some(left.map_or(LOOK_FOR_STOP, |left| left.min(LOOK_FOR_STOP)));
            if streams.wait(exit, Some(cancel), bounded(left, exit), output)? || self.has_exited(exit)? {
                return Ok(None);
            }
        }
    }

    /// Asks the group to stop and goes on reading meanwhile, so that nobody hangs on a full pipe; then kills it.
    fn stop(
        &mut self,
        streams: &mut Streams,
        exit: Option<&OwnedFd>,
        grace: Duration,
        output: &mut dyn FnMut(Output, &[u8]),
    ) -> io::Result<()> {
        let Some(pid) = Pid::from_raw(self.group) else { return Ok(()) };
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::TERM);
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::CONT);
        let asked = Instant::now();
        while asked.elapsed() < grace {
            let left = bounded(Some(grace.saturating_sub(asked.elapsed())), exit);
            if streams.wait(exit, None, left, output)? || self.has_exited(exit)? {
                return Ok(());
            }
        }
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        Ok(())
    }

    /// Where the system cannot wake us at the exit of a process, we have to look.
    fn has_exited(&mut self, exit: Option<&OwnedFd>) -> io::Result<bool> {
        Ok(exit.is_none() && self.child.try_wait()?.is_some())
    }
}

/// Without a file that tells of the exit, no wait is long.
fn bounded(left: Option<Duration>, exit: Option<&OwnedFd>) -> Option<Duration> {
    const LOOK: Duration = Duration::from_millis(5);
    if exit.is_some() { left } else { Some(left.map_or(LOOK, |left| left.min(LOOK))) }
}

/// The signal with which the kernel stopped a child of ours because it wants the terminal, which its group does not have.
/// Nobody would ever let it go on. One that a person stopped is left alone.
#[cfg(target_os = "linux")]
fn stopped_by_terminal(pid: i32) -> Option<i32> {
    use rustix::process::{Signal, WaitId, WaitIdOptions, waitid};
    let look = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let signal = waitid(WaitId::Pid(Pid::from_raw(pid)?), look).ok()??.stopping_signal()?;
    [Signal::TTIN, Signal::TTOU].iter().any(|one| one.as_raw() == signal).then_some(signal)
}

#[cfg(not(target_os = "linux"))]
fn stopped_by_terminal(_: i32) -> Option<i32> {
    None
}

/// A file that becomes readable when the process ends.
#[cfg(target_os = "linux")]
fn exit_of(pid: i32) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = Pid::from_raw(pid) else { return Ok(None) };
    match rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
        Ok(exit) => Ok(Some(exit)),
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn exit_of(_: i32) -> io::Result<Option<OwnedFd>> {
    Ok(None)
}

/// The three streams of a program, as we hold them.
struct Streams<'a> {
    input: Option<ChildStdin>,
    unsent: &'a [u8],
    out: Reading,
    err: Reading,
    buffer: Vec<u8>,
}

struct Reading {
    from: Option<OwnedFd>,
    kept: Captured,
}

impl<'a> Streams<'a> {
    fn of(child: &mut Child, input: &'a [u8], keep: usize) -> io::Result<Self> {
        let reading = |from: Option<OwnedFd>| -> io::Result<Reading> {
            if let Some(from) = &from {
                rustix::io::ioctl_fionbio(from, true)?;
            }
            Ok(Reading { from, kept: Captured::new(keep) })
        };
        let to = child.stdin.take();
        if let Some(to) = &to {
            rustix::io::ioctl_fionbio(to, true)?;
        }
        Ok(Self {
            input: to,
            unsent: input,
            out: reading(child.stdout.take().map(OwnedFd::from))?,
            err: reading(child.stderr.take().map(OwnedFd::from))?,
            buffer: vec![0; 1 << 16],
        })
    }

    fn any_open(&self) -> bool {
        self.out.from.is_some() || self.err.from.is_some()
    }

    /// Waits until something happens, and takes it in. Says whether `exit` did.
    fn wait(
        &mut self,
        exit: Option<&OwnedFd>,
        cancel: Option<&Cancel>,
        timeout: Option<Duration>,
        output: &mut dyn FnMut(Output, &[u8]),
    ) -> io::Result<bool> {
        let readable = PollFlags::IN;
        let mut watched = Vec::with_capacity(5);
        watched.extend(exit.map(|exit| PollFd::new(exit, readable)));
        watched.extend(cancel.map(|cancel| PollFd::from_borrowed_fd(cancel.signal(), readable)));
        watched.extend(self.out.from.as_ref().map(|from| PollFd::new(from, readable)));
        watched.extend(self.err.from.as_ref().map(|from| PollFd::new(from, readable)));
        watched.extend(self.input.as_ref().map(|to| PollFd::from_borrowed_fd(to.as_fd(), PollFlags::OUT)));
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let exited = exit.is_some() && !watched[0].revents().is_empty();
        self.send()?;
        self.out.take_in(Output::Out, &mut self.buffer, output)?;
        self.err.take_in(Output::Err, &mut self.buffer, output)?;
        Ok(exited)
    }

    fn send(&mut self) -> io::Result<()> {
        let Some(to) = &mut self.input else { return Ok(()) };
        while !self.unsent.is_empty() {
            match to.write(self.unsent) {
                Ok(count) => self.unsent = &self.unsent[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // A program that does not care for its input may have closed it.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                Err(error) => return Err(error),
            }
        }
        self.input = None;
        Ok(())
    }
}

impl Reading {
    /// Reads what is there now, but lets others have their turn.
    fn take_in(
        &mut self,
        which: Output,
        buffer: &mut [u8],
        output: &mut dyn FnMut(Output, &[u8]),
    ) -> io::Result<()> {
        for _ in 0..16 {
            let Some(from) = &self.from else { return Ok(()) };
            match rustix::io::read(from, &mut *buffer) {
                Ok(0) => self.from = None,
                Ok(count) => {
                    self.kept.push(&buffer[..count]);
                    output(which, &buffer[..count]);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finish(program: &Program, limits: &Limits) -> Finished {
        let cancel = Cancel::new().unwrap();
        run(program, limits, &cancel, &mut |_| {}, &mut |_, _| {}).unwrap()
    }

    fn short(timeout: u64, grace: u64) -> Limits {
        Limits {
            timeout: Some(Duration::from_millis(timeout)),
            grace: Duration::from_millis(grace),
            ..Limits::default()
        }
    }

    #[test]
    fn outputs_and_ends_are_told_apart() {
        let done = finish(&Program::shell("printf one; printf two >&2; exit 3"), &Limits::default());
        assert_eq!(done.ended, Ended::Exit(3));
        assert_eq!((done.out.bytes().as_slice(), done.err.bytes().as_slice()), (&b"one"[..], &b"two"[..]));
        assert_eq!(finish(&Program::shell("kill -SEGV $$"), &Limits::default()).ended, Ended::Signal(11));
        assert!(!finish(&Program::new(["true"]), &Limits::default()).left_behind);
    }

    #[test]
    fn a_program_alone_knows_only_what_it_is_told() {
        let told = vec![("TOLD".into(), "yes".into())];
        let program = Program { alone: true, set: told, ..Program::new(["/usr/bin/env"]) };
        assert_eq!(finish(&program, &Limits::default()).out.bytes(), b"TOLD=yes\n");
    }

    #[test]
    fn a_large_input_and_a_large_output_do_not_wait_for_each_other() {
        let program = Program { input: vec![b'x'; 4 << 20], ..Program::new(["cat"]) };
        let done = finish(&program, &Limits { keep: 8 << 20, ..Limits::default() });
        assert_eq!(done.out.whole().map(|out| out.len()), Some(4 << 20));
        let program = Program { input: vec![b'x'; 4 << 20], ..Program::new(["true"]) };
        assert!(
            finish(&program, &Limits::default()).ended.is_success(),
            "input that nobody reads is no fault"
        );
    }

    #[test]
    fn a_program_that_will_not_stop_is_killed_with_all_it_started() {
        let mut group = 0;
        let program = Program::shell("trap '' TERM; sleep 600 & sleep 600");
        let cancel = Cancel::new().unwrap();
        let done =
            run(&program, &short(100, 100), &cancel, &mut |who| group = who.pid, &mut |_, _| {}).unwrap();
        assert_eq!(done.ended, Ended::TimedOut);
        assert!(!group::end_group(group, Duration::ZERO).unwrap(), "somebody of the group is still alive");
    }

    #[test]
    fn what_a_program_leaves_behind_is_ended() {
        let done = finish(&Program::shell("sleep 600 & echo begun"), &Limits::default());
        assert_eq!(done.ended, Ended::Exit(0));
        assert!(done.left_behind);
        assert_eq!(done.out.bytes(), b"begun\n");
    }

    #[test]
    fn a_wish_to_stop_is_heard_while_it_runs() {
        let cancel = Cancel::new().unwrap();
        let stopper = cancel.clone();
        let done = run(
            &Program::shell("echo ready; sleep 600"),
            &Limits::default(),
            &cancel,
            &mut |_| {},
            &mut |_, _| stopper.cancel(),
        );
        assert_eq!(done.unwrap().ended, Ended::Cancelled);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let cancel = Cancel::new().unwrap();
        let program = Program::new(["/no/such/program"]);
        let failed = run(&program, &Limits::default(), &cancel, &mut |_| {}, &mut |_, _| {}).unwrap_err();
        assert_eq!(failed.to_string(), "failed to start `/no/such/program`");
    }

    #[test]
    fn who_left_the_group_is_found_by_its_mark() {
        let mark = format!("STAGEPOST_TEST_MARK={}", std::process::id());
        let (name, value) = mark.split_once('=').unwrap();
        let program = Program {
            set: vec![(name.into(), value.into())],
            ..Program::shell("setsid sleep 600 >/dev/null 2>&1 </dev/null & sleep 0.1")
        };
        finish(&program, &Limits::default());
        let found = group::marked(&mark);
        assert_eq!(found.len(), 1, "{found:?}");
        let found = Pid::from_raw(found[0]).unwrap();
        rustix::process::kill_process(found, rustix::process::Signal::KILL).unwrap();
    }
}
