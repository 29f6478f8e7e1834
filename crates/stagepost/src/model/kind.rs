//! What a run is an attempt at, and what point of it a checkpoint marks.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::canonical::write_string;

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[non_exhaustive]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// Returns the name used in commands and files.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, UnknownName> {
                Self::ALL.iter().copied().find(|one| one.as_str() == text).ok_or_else(|| UnknownName {
                    text: text.to_owned(),
                    known: Self::ALL.iter().map(|one| one.as_str()).collect(),
                })
            }
        }
    };
}

/// The error for a word that is none of the known ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not one of {}", text.escape_debug(), known.join(", "))]
pub struct UnknownName {
    text: String,
    known: Vec<&'static str>,
}

named! {
    /// What a run is an attempt at.
    RunKind {
        /// Phases of an agent's work.
        Session = "session",
        /// A numbered task, in stages.
        Task = "task",
        /// Steps.
        Flow = "flow",
        /// Iterations of propose and judge.
        Plan = "plan",
        /// States saved by a framework.
        Thread = "thread",
        /// Whatever `save` was asked to keep.
        Adhoc = "adhoc",
    }
}

named! {
    /// The phase of a session.
    Phase {
        /// Planning.
        Plan = "plan",
        /// Turning the plan into tasks.
        GenerateTasks = "generate_tasks",
        /// Doing the tasks.
        Implement = "implement",
        /// Checking the result.
        Validate = "validate",
        /// Tidying up.
        Cleanup = "cleanup",
    }
}

named! {
    /// Why a session's checkpoint was made.
    Reason {
        /// A phase is complete.
        PhaseComplete = "phase_complete",
        /// A group of tasks is complete.
        TaskGroupComplete = "task_group_complete",
        /// The state is known to be good.
        SafeState = "safe_state",
        /// Something risky comes next.
        PreRiskyOperation = "pre_risky_operation",
        /// An error is being recovered from.
        ErrorRecovery = "error_recovery",
        /// Someone asked for it.
        Manual = "manual",
    }
}

named! {
    /// The stage of a task.
    Stage {
        /// Before anything was done.
        Start = "start",
        /// Implemented.
        Implementation = "implementation",
        /// About to be validated.
        PreValidation = "pre-validation",
        /// Validated.
        Validated = "validated",
    }
}

named! {
    /// How a step of a flow ended.
    StepStatus {
        /// It did what it should.
        Completed = "completed",
        /// It did not.
        Failed = "failed",
        /// Its condition did not hold, so it was not run.
        Skipped = "skipped",
        /// It was ended from outside.
        Cancelled = "cancelled",
    }
}

/// What point of a run a checkpoint marks, with what only such a point has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// Someone asked for it with `save`.
    Manual,
    /// A phase of a session.
    Phase {
        /// The phase.
        phase: Phase,
        /// Why it was made.
        reason: Reason,
    },
    /// A stage of a task.
    Stage {
        /// The number of the task.
        task: u64,
        /// The stage.
        stage: Stage,
    },
    /// A step of a flow.
    Step {
        /// The id of the step in the flow file.
        step: String,
        /// How it ended.
        status: StepStatus,
        /// Which attempt this was, from 1.
        attempt: u32,
    },
    /// An iteration of a plan.
    Iteration {
        /// The number of the iteration, from 1; 0 for what belongs to the whole run.
        iteration: u32,
        /// Which part of it: `raw`, `evaluation`, `final`, ….
        part: String,
    },
    /// An answer to a gate.
    Decision {
        /// The gate that was answered.
        gate: String,
        /// How the answer was understood.
        answer: String,
    },
    /// What was there before a restore.
    Safety {
        /// What was about to be restored.
        before: String,
    },
    /// A state saved by a framework.
    State,
}

impl Kind {
    /// Returns the name of the kind alone.
    pub fn as_str(&self) -> &'static str {
        match self {
            Kind::Manual => "manual",
            Kind::Phase { .. } => "phase",
            Kind::Stage { .. } => "stage",
            Kind::Step { .. } => "step",
            Kind::Iteration { .. } => "iteration",
            Kind::Decision { .. } => "decision",
            Kind::Safety { .. } => "safety",
            Kind::State => "state",
        }
    }

    /// Writes the members in their order; the name of the kind is always the last.
    pub(super) fn write_canonical(&self, out: &mut String) {
        out.push('{');
        let _ = match self {
            Kind::Manual | Kind::State => Ok(()),
            Kind::Phase { phase, reason } => write!(out, "\"phase\":\"{phase}\",\"reason\":\"{reason}\","),
            Kind::Stage { task, stage } => write!(out, "\"stage\":\"{stage}\",\"task\":{task},"),
            Kind::Step { step, status, attempt } => {
                let _ = write!(out, "\"attempt\":{attempt},\"status\":\"{status}\",");
                write_text(out, "step", step)
            }
            Kind::Iteration { iteration, part } => {
                let _ = write!(out, "\"iteration\":{iteration},");
                write_text(out, "part", part)
            }
            Kind::Decision { gate, answer } => {
                write_text(out, "answer", answer).and_then(|()| write_text(out, "gate", gate))
            }
            Kind::Safety { before } => write_text(out, "before", before),
        };
        let _ = write!(out, "\"type\":\"{}\"}}", self.as_str());
    }

    /// Says whether this kind by itself marks a point that someone called good.
    pub fn is_good(&self) -> bool {
        matches!(
            self,
            Kind::Phase { reason: Reason::SafeState | Reason::PhaseComplete, .. }
                | Kind::Stage { stage: Stage::Validated, .. }
                | Kind::Step { status: StepStatus::Completed, .. }
        )
    }
}

fn write_text(out: &mut String, name: &str, text: &str) -> fmt::Result {
    write!(out, "\"{name}\":")?;
    write_string(out, text);
    out.write_char(',')
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Phase { phase, reason } => write!(f, "{phase} ({reason})"),
            Kind::Stage { task, stage } => write!(f, "task {task} {stage}"),
            Kind::Step { step, status, attempt: 1 } => write!(f, "step {step} {status}"),
            Kind::Step { step, status, attempt } => write!(f, "step {step} {status} (attempt {attempt})"),
            Kind::Iteration { iteration: 0, part } => write!(f, "{part}"),
            Kind::Iteration { iteration, part } => write!(f, "iteration {iteration} {part}"),
            Kind::Decision { gate, answer } => write!(f, "{gate}: {answer}"),
            Kind::Manual | Kind::Safety { .. } | Kind::State => f.write_str(self.as_str()),
        }
    }
}
