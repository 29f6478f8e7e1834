//! Who plans, judges and validates: commands, or code.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Payload;
use crate::formats::plans::RevisionRequest;
use crate::model::{RunId, without_tokens, without_tokens_in};
use crate::process::Cancel;

/// What someone does in the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Makes plans.
    Planner,
    /// Says whether a plan may be judged at all.
    Validator,
    /// Judges plans.
    Judge,
}

impl Role {
    /// Returns the name used in records and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Planner => "planner",
            Role::Validator => "validator",
            Role::Judge => "judge",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What is asked of a planner, validator or judge.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The run.
    pub run: &'a RunId,
    /// As what it is asked.
    pub role: Role,
    /// The iteration, from 1.
    pub iteration: u32,
    /// Which attempt of this call it is, from 1.
    pub attempt: u32,
    /// What the job says it is about.
    pub input: &'a Value,
    /// The plan to judge or validate; `None` for a planner.
    pub plan: Option<&'a Value>,
    /// The plan before and what was said of it; `None` in a first iteration and for others than planners.
    pub previous: Option<Previous<'a>>,
    /// What the planner should hear: a text or a list.
    pub feedback: &'a Value,
    /// What the planner is asked to change, if the judge says so.
    pub revision: Option<&'a RevisionRequest>,
    /// How long it may take, if that is limited by the run.
    pub limit: Option<Duration>,
}

/// What there was before.
#[derive(Debug, Clone, Copy)]
pub struct Previous<'a> {
    /// The plan.
    pub plan: &'a Value,
    /// What the judge said; `None` if it was not judged.
    pub evaluation: Option<&'a Value>,
}

impl Request<'_> {
    /// The request as a command reads it on its standard input.
    pub fn to_json(&self) -> Value {
        let (run, iteration, input) = (self.run, self.iteration, self.input);
        match self.plan {
            Some(plan) => json!({"run_id": run, "iteration": iteration, "input": input, "plan": plan}),
            None => json!({
                "run_id": run,
                "iteration": iteration,
                "input": input,
                "previous": self.previous.map(|one| json!({"plan": one.plan, "evaluation": one.evaluation})),
                "feedback": self.feedback,
                "revision_request": self.revision,
            }),
        }
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The plan, judgement or validation.
    pub payload: Payload,
    /// What was said beside it, such as a program's standard error.
    pub aside: Vec<u8>,
}

impl Reply {
    /// Takes out what looks like a token.
    #[must_use]
    pub(super) fn without_tokens(self) -> Self {
        Self { payload: self.payload.without_tokens(), aside: without_tokens_in(&self.aside).into_owned() }
    }
}

impl From<Value> for Reply {
    fn from(value: Value) -> Self {
        Self { payload: value.into(), aside: Vec::new() }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fault {
    /// What happened, in words.
    pub what: String,
    /// What was printed instead of an answer, as far as it was kept.
    pub out: Vec<u8>,
    /// What was said beside it.
    pub aside: Vec<u8>,
    /// Someone asked to stop: nobody failed.
    pub cancelled: bool,
}

impl Fault {
    /// Takes out what looks like a token.
    #[must_use]
    pub(super) fn without_tokens(self) -> Self {
        Self {
            what: without_tokens(&self.what).into_owned(),
            out: without_tokens_in(&self.out).into_owned(),
            aside: without_tokens_in(&self.aside).into_owned(),
            cancelled: self.cancelled,
        }
    }
}

/// Someone who plans, judges or validates. Closures that take a [`Request`] and return JSON or an error are such.
pub trait Agent {
    /// Answers. It should return soon after `cancel` asks it to.
    fn call(&mut self, request: &Request<'_>, cancel: &Cancel) -> Result<Reply, Fault>;
}

impl<F, E> Agent for F
where
    F: FnMut(&Request<'_>) -> Result<Value, E>,
    E: fmt::Display,
{
    fn call(&mut self, request: &Request<'_>, _: &Cancel) -> Result<Reply, Fault> {
        let failed = |error: E| Fault { what: error.to_string(), ..Fault::default() };
        self(request).map(Reply::from).map_err(failed)
    }
}

/// Everyone the loop calls.
#[allow(missing_debug_implementations, reason = "closures have nothing to show")]
pub struct Agents<'a> {
    /// Makes plans.
    pub planner: &'a mut dyn Agent,
    /// Says whether a plan may be judged at all.
    pub validator: Option<&'a mut dyn Agent>,
    /// Judges plans.
    pub judge: &'a mut dyn Agent,
}

impl<'a> Agents<'a> {
    /// A planner and a judge.
    pub fn new(planner: &'a mut dyn Agent, judge: &'a mut dyn Agent) -> Self {
        Self { planner, validator: None, judge }
    }

    pub(super) fn get(&mut self, role: Role) -> Option<&mut (dyn Agent + 'a)> {
        match role {
            Role::Planner => Some(&mut *self.planner),
            Role::Judge => Some(&mut *self.judge),
            Role::Validator => self.validator.as_deref_mut(),
        }
    }
}
