//! What is stored of a gate: one line of events, from which everything else follows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GateId, Prompt};
use crate::model::{CheckpointId, Hash, RunId, RunKind, Timestamp};
use crate::reply::Reply;

/// Where an answer came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// A person said it.
    Person,
    /// A program said it.
    Program,
    /// Nobody said anything in time.
    Timeout,
    /// A rule that a person set up before decided it.
    Policy,
}

impl Origin {
    /// Returns the name used in commands and files.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Person => "person",
            Origin::Program => "program",
            Origin::Timeout => "timeout",
            Origin::Policy => "policy",
        }
    }
}

/// What becomes of a gate that nobody answers in time. None of these is a consent, and there is no way to write one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// It counts as a no.
    #[default]
    Reject,
    /// The whole matter is given up.
    Cancel,
    /// The run goes back to an earlier point.
    Back,
}

impl Outcome {
    /// Returns the name used in commands and files.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Reject => "reject",
            Outcome::Cancel => "cancel",
            Outcome::Back => "back",
        }
    }
}

/// When nobody is waited for any longer, and what happens then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deadline {
    /// From then on no answer is taken.
    pub at: Timestamp,
    /// What it counts as.
    pub outcome: Outcome,
}

/// An answer that was understood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// Who answered.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// In which words.
    pub words: String,
    /// How they were understood.
    pub reply: Reply,
    /// Where it came from.
    pub origin: Origin,
    /// The hash of what was shown: the answer is an answer to that and to nothing else.
    pub shown: Hash,
    /// The checkpoint of the answer.
    pub checkpoint: CheckpointId,
}

/// Words that were not understood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Who said them.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// The words.
    pub words: String,
    /// Why they were not understood, and what they could have meant.
    pub reply: Reply,
    /// Where they came from.
    pub origin: Origin,
}

/// The run a gate belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Of {
    /// The run.
    pub run: RunId,
    /// What it is an attempt at.
    pub kind: RunKind,
    /// Whether the gate stands by itself: going back to it voids nothing else of the run.
    #[serde(default)]
    pub alone: bool,
}

/// Something that happened to a gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Moment {
    /// It was asked, or asked again because something changed.
    Asked {
        /// What was asked.
        prompt: Box<Prompt>,
        /// The run it belongs to.
        of: Of,
        /// Who asked.
        by: String,
        /// The hash of what is shown.
        shown: Hash,
        /// When nobody is waited for any longer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Deadline>,
        /// The checkpoint of the files as they were.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        files: Option<CheckpointId>,
    },
    /// Someone said something that was not understood.
    Unclear(Attempt),
    /// It was answered.
    Answered(Answer),
    /// Nobody answered in time.
    Expired {
        /// What it counts as.
        outcome: Outcome,
        /// Always a time-out.
        origin: Origin,
        /// The checkpoint of that.
        checkpoint: CheckpointId,
    },
    /// The question was withdrawn.
    Cancelled {
        /// Who withdrew it.
        by: String,
        /// Why, in words.
        #[serde(default)]
        why: String,
        /// Where that came from.
        origin: Origin,
        /// The checkpoint of that.
        checkpoint: CheckpointId,
    },
    /// It is open again; what was answered before does not hold any more.
    Reopened {
        /// Who opened it.
        by: String,
        /// Why, in words.
        #[serde(default)]
        why: String,
    },
    /// Someone went back to an earlier gate: what was answered here does not hold any more.
    Voided {
        /// Who went back.
        by: String,
        /// To which gate.
        back_to: GateId,
    },
}

impl Moment {
    /// Returns the name of what happened.
    pub fn name(&self) -> &'static str {
        match self {
            Moment::Asked { .. } => "asked",
            Moment::Unclear(_) => "unclear",
            Moment::Answered(_) => "answered",
            Moment::Expired { .. } => "expired",
            Moment::Cancelled { .. } => "cancelled",
            Moment::Reopened { .. } => "reopened",
            Moment::Voided { .. } => "voided",
        }
    }
}
