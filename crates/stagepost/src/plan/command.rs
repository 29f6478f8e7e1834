//! Planners, judges and validators that are programs: JSON on standard input, JSON on standard output.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Agent, Fault, Payload, Reply, Request, Role};
use crate::model::without_tokens_in;
use crate::process::{self, Cancel, Captured, Ended, Finished, Limits, Program};

/// How much of what a program printed beside its answer is kept.
const KEPT_ASIDE: usize = 64 << 10;

/// A command as it is written in a job: a line for the shell, or a program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Words {
    /// A line for the shell.
    Line(String),
    /// A program and its arguments.
    List(Vec<String>),
}

impl Words {
    fn program(&self) -> Program {
        match self {
            Words::Line(line) => Program::shell(line),
            Words::List(words) => Program::new(words),
        }
    }

    /// Says whether there is nothing to run.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Words::Line(line) => line.trim().is_empty(),
            Words::List(words) => words.first().is_none_or(String::is_empty),
        }
    }
}

/// A planner, judge or validator that is a program.
///
/// It reads a request as JSON on its standard input and writes its answer as JSON to its standard output. It runs in a
/// process group of its own that is ended with it. `STAGEPOST_PLAN_RUN`, `STAGEPOST_ROLE`, `STAGEPOST_ITERATION` and
/// `STAGEPOST_ATTEMPT` are in its environment, unless something else of that name was set.
#[derive(Debug, Clone)]
pub struct Command {
    program: Program,
    timeout: Option<Duration>,
    most: usize,
}

impl Command {
    /// How many bytes an answer may have, unless something else is said.
    pub const MOST: u64 = 64 << 20;

    /// A command that runs in a folder.
    pub fn new(words: &Words, folder: &Path) -> Self {
        let program = Program { folder: Some(folder.to_owned()), ..words.program() };
        Self { program, timeout: None, most: Self::MOST as usize }
    }

    /// Limits how long a call may take.
    pub fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Limits how many bytes an answer may have.
    pub fn most(mut self, bytes: u64) -> Self {
        self.most = usize::try_from(bytes).unwrap_or(usize::MAX / 4);
        self
    }

    /// Adds variables to its environment, such as a mark to find its processes by.
    pub fn with_environment(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.program.set.extend(variables);
        self
    }

    fn prepared(&self, request: &Request<'_>) -> Program {
        let own = [
            ("STAGEPOST_PLAN_RUN", request.run.to_string()),
            ("STAGEPOST_ROLE", request.role.to_string()),
            ("STAGEPOST_ITERATION", request.iteration.to_string()),
            ("STAGEPOST_ATTEMPT", request.attempt.to_string()),
        ];
        let mut program = self.program.clone();
        for (name, value) in own {
            if !program.set.iter().any(|(given, _)| given == name) {
                program.set.push((name.into(), value.into()));
            }
        }
        program.input = request.to_json().to_string().into_bytes();
        program
    }

    fn answer(&self, role: Role, limit: Option<Duration>, done: &Finished) -> Result<Payload, String> {
        match done.ended {
            Ended::Exit(0) => {}
            Ended::TimedOut => {
                let limit = limit.unwrap_or_default();
                return Err(format!("it took longer than {limit:?} and was ended"));
            }
            Ended::TooMuch => {
                let (total, most) = (done.out.total(), self.most);
                return Err(format!(
                    "it had printed {total} bytes when it was ended, and an answer may have {most}"
                ));
            }
            ended @ Ended::Exit(_) => return Err(format!("it ended with {ended}")),
            ended => return Err(format!("it was ended by {ended}")),
        }
        let Some(out) = done.out.whole() else {
            let (total, most) = (done.out.total(), self.most);
            return Err(format!("it printed {total} bytes, and an answer may have {most}"));
        };
        if out.trim_ascii().is_empty() {
            return match role {
                Role::Validator => Ok(json!({"valid": true}).into()),
                _ => Err("it printed nothing".to_owned()),
            };
        }
        let shown = without_tokens_in(&out);
        let start = String::from_utf8_lossy(&shown[..shown.len().min(60)]).escape_debug().to_string();
        Payload::read(out)
            .map_err(|error| format!("what it printed is not JSON ({error}): it begins with `{start}`"))
    }
}

impl Agent for Command {
    fn call(&mut self, request: &Request<'_>, cancel: &Cancel) -> Result<Reply, Fault> {
        let limit = [self.timeout, request.limit].into_iter().flatten().min();
        let limits = Limits { timeout: limit, keep: self.most, ..Limits::default() }.with_an_end();
        let ran = process::run(&self.prepared(request), &limits, cancel, &mut |_| {}, &mut |_, _| {});
        let done = ran.map_err(|error| Fault { what: chain(&error), ..Fault::default() })?;
        let aside = ends(&done.err.bytes());
        let cancelled = done.ended == Ended::Cancelled;
        match self.answer(request.role, limit, &done) {
            Ok(payload) => Ok(Reply { payload, aside }),
            Err(what) => Err(Fault {
                what: with_last_words(what, &aside),
                out: ends(&done.out.bytes()),
                aside,
                cancelled,
            }),
        }
    }
}

/// The beginning and the end of what was printed. Half a token would not be known as one any more.
fn ends(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Captured::new(KEPT_ASIDE);
    kept.push(&without_tokens_in(bytes));
    kept.bytes()
}

/// The last line that a program wrote to its standard error usually says what was wrong.
fn with_last_words(what: String, aside: &[u8]) -> String {
    let text = String::from_utf8_lossy(aside);
    match text.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!("{what}; its last words: {}", line.chars().take(200).collect::<String>()),
        None => what,
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
