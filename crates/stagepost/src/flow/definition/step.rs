//! A step of a flow, and everything that can be said about it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::{Condition, Source};
use crate::gate::{Outcome, Prompt};
use crate::model::ArtifactName;
use crate::reply;

/// Names a step within its flow: letters, digits, `_` and `-`, at most 64, starting with a letter, a digit or `_`.
///
/// It is part of file names and of what conditions refer to, so words that mean something there are no step ids.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct StepId(String);

impl StepId {
    /// Words that mean something else where a step can be named.
    pub const RESERVED: &'static [&'static str] =
        &["input", "item", "index", "end", "true", "false", "null", "exists"];

    /// Checks `text` and makes it the id of a step.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidStepId> {
        let text = text.into();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let why = if text.is_empty() {
            "it is empty"
        } else if text.len() > 64 {
            "it is longer than 64 characters"
        } else if !text.chars().all(is_plain) {
            "it may have letters, digits, `_` and `-` only"
        } else if text.starts_with('-') {
            "it starts with a dash"
        } else if Self::RESERVED.contains(&text.as_str()) {
            "that word has a meaning of its own"
        } else {
            return Ok(Self(text));
        };
        Err(InvalidStepId { text: text.chars().take(80).collect(), why })
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for StepId {
    type Err = InvalidStepId;

    fn from_str(text: &str) -> Result<Self, InvalidStepId> {
        Self::new(text)
    }
}

/// The error for text that may not be the id of a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` cannot be the id of a step: {why}", text.escape_debug())]
pub struct InvalidStepId {
    text: String,
    why: &'static str,
}

/// A step of a flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What everything else calls it.
    pub id: StepId,
    /// What people call it; without a name, the id.
    pub name: String,
    /// What it is for, in words.
    pub description: String,
    /// What is done.
    pub action: Action,
    /// The steps whose results it gets, and that come before it.
    pub needs: Vec<StepId>,
    /// The files it reads, as paths within the project: if one changes, the step has to run again.
    pub inputs: Vec<String>,
    /// The files it leaves, which are kept.
    pub outputs: Vec<Output>,
    /// What is added to its environment: of the flow, and over that its own.
    pub env: BTreeMap<String, String>,
    /// The names of variables that come from outside and are stored nowhere, sorted.
    pub secrets: Vec<String>,
    /// The folder it runs in, as a path within the project; without one, the top of the project.
    pub cwd: Option<String>,
    /// How long an attempt may take.
    pub timeout: Option<Duration>,
    /// How often it is tried.
    pub retry: Retry,
    /// What must hold for it to be run; otherwise it is skipped.
    pub condition: Option<Condition>,
    /// What happens when its last attempt failed.
    pub on_failure: OnFailure,
    /// Whether the files of the project are captured with its checkpoint.
    pub snapshot: bool,
    /// What it is done for, one by one.
    pub for_each: Option<ForEach>,
    /// What running it twice would do.
    pub effects: Effects,
    /// A command that says, by ending with 0, that the step did what it should.
    pub verify: Option<Command>,
}

/// What is done at a step.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// A program is run.
    Run(Command),
    /// A person is asked.
    Ask(Box<Ask>),
    /// Something is proposed and judged until it is good enough.
    Refine(Box<Refine>),
}

/// A command: a program with its arguments, or a line for the shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Command {
    /// A line for `sh -c`.
    Shell(String),
    /// A program and its arguments; there is at least the program.
    Argv(Vec<String>),
}

/// What is asked at a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// What is asked, without what comes from other steps.
    pub prompt: Prompt,
    /// What the question is about; put it into the prompt's data.
    pub data: Option<Source>,
    /// What can be chosen, where another step says so; put it into the prompt's options.
    pub options: Option<Source>,
    /// Where answers lead. Without an entry a consent or a choice goes on, `reject` and `cancel` end the run.
    pub on: Vec<(reply::Action, Target)>,
    /// How long to wait for an answer, and what it counts as if there is none.
    pub expires: Option<(Duration, Outcome)>,
}

/// Where an answer leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// To a step; going to an earlier one does it and what depends on it again.
    Step(StepId),
    /// To the end of the run, which then is complete.
    End,
}

/// Proposing and judging until it is good enough.
#[derive(Debug, Clone, PartialEq)]
pub struct Refine {
    /// Proposes.
    pub planner: Command,
    /// Judges what was proposed.
    pub judge: Command,
    /// Checks the form of a proposal before it is judged.
    pub validator: Option<Command>,
    /// What the planner gets; without it, what the needs of the step produced.
    pub input: Option<Source>,
    /// So many proposals are made at most.
    pub max_iterations: u32,
    /// From this score on a proposal is approved.
    pub approve_at: f64,
    /// Below this score a proposal failed.
    pub soft_fail_at: f64,
    /// So many tokens may be used in all.
    pub token_budget: Option<u64>,
    /// How long one call of a command may take.
    pub timeout: Option<Duration>,
}

/// A file that a step leaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// What it is kept as.
    pub name: ArtifactName,
    /// Where it is, as a path within the project.
    pub path: String,
}

/// How often a step is tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// So many attempts are made in all, at least 1.
    pub attempts: u32,
    /// How long to wait before the second attempt.
    pub backoff: Duration,
    /// By what the wait grows from one attempt to the next.
    pub factor: f64,
    /// The exit codes after which it is tried again; empty: any failure.
    pub on_exit: Vec<i32>,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 1, backoff: Duration::from_secs(1), factor: 2.0, on_exit: Vec::new() }
    }
}

impl Retry {
    /// Nobody waits longer than this between two attempts, however the wait grows.
    pub const LONGEST: Duration = Duration::from_secs(3600);

    /// Says whether there is another attempt after attempt number `made` failed. `exit` is its exit code, if it had one.
    pub fn again(&self, made: u32, exit: Option<i32>) -> bool {
        made < self.attempts
            && (self.on_exit.is_empty() || exit.is_some_and(|code| self.on_exit.contains(&code)))
    }

    /// Returns how long to wait after attempt number `made` failed.
    pub fn wait_after(&self, made: u32) -> Duration {
        let grown =
            self.backoff.as_secs_f64() * self.factor.powi(i32::try_from(made).unwrap_or(i32::MAX) - 1);
        // More than the longest is the longest, also where the product is no number any more.
        if grown < Self::LONGEST.as_secs_f64() { Duration::from_secs_f64(grown) } else { Self::LONGEST }
    }
}

/// What happens when the last attempt of a step failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFailure {
    /// The run stops as failed.
    #[default]
    Stop,
    /// The run goes on; steps that need this one see that it failed.
    Continue,
    /// The run goes on with another step.
    GoTo(StepId),
    /// The files are put back to where the step began, and the run stops as failed.
    Rollback,
}

/// What a step is done for, one by one.
#[derive(Debug, Clone, PartialEq)]
pub struct ForEach {
    /// The list.
    pub list: Source,
    /// So many are done at the same time, at least 1.
    pub side_by_side: u32,
}

/// What running a step twice would do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effects {
    /// Nothing outside the project.
    #[default]
    None,
    /// The same as running it once.
    Idempotent,
    /// Harm: after a crash in the middle a person decides.
    Once,
}

impl Step {
    /// Describes what decides over the result of the step, for its fingerprint.
    ///
    /// Left out is what changes how it is shown, watched or retried (name, description, timeout, retry, on_failure,
    /// snapshot, effects, verify, how many side by side): changing those does not make a result stale.
    pub fn canonical(&self) -> Value {
        let mut value = json!({
            "action": self.action.canonical(),
            "needs": self.needs,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "env": self.env,
            "secrets": self.secrets,
        });
        let mut set = |key: &str, member: Option<Value>| {
            if let Some(member) = member {
                value[key] = member;
            }
        };
        set("cwd", self.cwd.clone().map(Value::from));
        set("if", self.condition.as_ref().map(|condition| condition.text().into()));
        set("for_each", self.for_each.as_ref().map(|each| each.list.canonical()));
        value
    }
}

impl Action {
    /// Returns the key of the file that this action is written under.
    pub fn name(&self) -> &'static str {
        match self {
            Action::Run(_) => "run",
            Action::Ask(_) => "ask",
            Action::Refine(_) => "refine",
        }
    }

    fn canonical(&self) -> Value {
        match self {
            Action::Run(command) => json!({ "run": command }),
            Action::Ask(ask) => json!({ "ask": ask.canonical() }),
            Action::Refine(refine) => json!({ "refine": refine.canonical() }),
        }
    }
}

impl Ask {
    /// Without who is asked how often and for how long.
    fn canonical(&self) -> Value {
        let Prompt { kind, message, question, options, multiple, risk, phrase, .. } = &self.prompt;
        let on: BTreeMap<&str, &str> =
            self.on.iter().map(|(action, to)| (action.name(), to.as_str())).collect();
        json!({
            "kind": kind, "message": message, "question": question, "options": options, "multiple": multiple,
            "risk": risk, "phrase": phrase, "on": on,
            "data": self.data.as_ref().map(Source::canonical),
            "options_from": self.options.as_ref().map(Source::canonical),
        })
    }
}

impl Refine {
    /// Without how long it may take.
    fn canonical(&self) -> Value {
        let Self {
            planner, judge, validator, max_iterations, approve_at, soft_fail_at, token_budget, ..
        } = self;
        json!({
            "planner": planner, "judge": judge, "validator": validator, "max_iterations": max_iterations,
            "approve_at": approve_at, "soft_fail_at": soft_fail_at, "token_budget": token_budget,
            "input": self.input.as_ref().map(Source::canonical),
        })
    }
}

impl Target {
    /// The word for the end of the run.
    pub const END: &'static str = "end";

    /// Returns the step, unless it is the end.
    pub fn step(&self) -> Option<&StepId> {
        match self {
            Target::Step(id) => Some(id),
            Target::End => None,
        }
    }

    /// Returns the target as the file has it.
    pub fn as_str(&self) -> &str {
        match self {
            Target::Step(id) => id.as_str(),
            Target::End => Self::END,
        }
    }
}

impl fmt::Display for Command {
    /// Writes it as a person would type it; arguments that a shell would take apart are quoted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Shell(line) => f.write_str(line),
            Command::Argv(argv) => {
                let shown: Vec<String> = argv.iter().map(|argument| quoted(argument)).collect();
                f.write_str(&shown.join(" "))
            }
        }
    }
}

fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}
