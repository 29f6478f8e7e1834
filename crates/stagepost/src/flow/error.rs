//! What can go wrong with a flow.

use std::io;
use std::path::PathBuf;

use super::Status;
use super::definition::Invalid;
use crate::model::{CheckpointId, InvalidId, RunId, RunKind};
use crate::{gate, process, project, store};

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The project failed.
    #[error(transparent)]
    Project(#[from] project::Error),
    /// A gate failed.
    #[error(transparent)]
    Gate(#[from] gate::Error),
    /// A name is not allowed.
    #[error(transparent)]
    InvalidName(#[from] InvalidId),
    /// There is no such run.
    #[error("no flow run is called `{run}`")]
    NoRun {
        /// The run.
        run: RunId,
    },
    /// The run is there already.
    #[error("run `{run}` is there already")]
    Exists {
        /// The run.
        run: RunId,
    },
    /// A run of that name was deleted; what is left of it in the journal keeps its name.
    #[error("there was a run `{run}`, which was deleted, and its name is not given again")]
    NameTaken {
        /// The run.
        run: RunId,
    },
    /// The run was deleted, with the results of its steps.
    #[error("run `{run}` was deleted, and the results of its steps with it")]
    Deleted {
        /// The run.
        run: RunId,
    },
    /// What would be stored with the run holds a token.
    #[error("{what} holds what looks like a token or a private key")]
    Token {
        /// Where it is.
        what: &'static str,
    },
    /// Steps that are to be done need variables that are not set.
    #[error("not set in the environment: {}", unset_list(unset))]
    Unset {
        /// The variables, each with the first step that needs it.
        unset: Vec<(String, String)>,
    },
    /// The run is something else.
    #[error("run `{run}` is a {kind}, not a flow")]
    NotAFlow {
        /// The run.
        run: RunId,
        /// What it is.
        kind: RunKind,
    },
    /// The run follows a flow file, and a program would drive it.
    #[error("run `{run}` follows the flow file of `{flow}`, so no program can do steps in it")]
    FromFile {
        /// The run.
        run: RunId,
        /// What the flow is called.
        flow: String,
    },
    /// Another process drives the run.
    #[error("run `{run}` is being driven by {holder}")]
    Held {
        /// The run.
        run: RunId,
        /// Who drives it.
        holder: String,
    },
    /// The run is over.
    #[error("run `{run}` is {status} already")]
    Over {
        /// The run.
        run: RunId,
        /// How it ended.
        status: Status,
    },
    /// A file of the run could not be used.
    #[error("failed to {doing} {}", path.display())]
    File {
        /// What was attempted.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The name of a step is not allowed.
    #[error("`{}` cannot be the name of a step: {why}", step.escape_debug())]
    StepName {
        /// The name.
        step: String,
        /// Why not.
        why: &'static str,
    },
    /// The same step is running in another thread.
    #[error("step `{step}` is running already")]
    Running {
        /// The step.
        step: String,
    },
    /// A step failed.
    #[error("step `{step}` failed (attempt {attempt})")]
    Step {
        /// The step.
        step: String,
        /// Its last attempt.
        attempt: u32,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A step took too long, and its result was refused.
    #[error("step `{step}` took longer than {limit:?}")]
    TookTooLong {
        /// The step.
        step: String,
        /// How long it might have taken.
        limit: std::time::Duration,
    },
    /// The result of a step cannot be written as JSON.
    #[error("the result of step `{step}` cannot be kept")]
    Unkeepable {
        /// The step.
        step: String,
        /// Why.
        source: serde_json::Error,
    },
    /// The recorded result of a step is of another shape than is asked for.
    #[error("the recorded result of step `{step}` is not what the program expects")]
    OtherShape {
        /// The step.
        step: String,
        /// Why.
        source: serde_json::Error,
    },
    /// The result of a step was pruned.
    #[error("the result of step `{step}` was pruned: checkpoint {checkpoint}")]
    Pruned {
        /// The step.
        step: String,
        /// Its checkpoint.
        checkpoint: CheckpointId,
    },
    /// No run answers to a name.
    #[error("no flow run is called `{}`", name.escape_debug())]
    NoSuchRun {
        /// The name.
        name: String,
    },
    /// Several runs answer to a name.
    #[error("`{}` is the start of {} flow runs", name.escape_debug(), candidates.len())]
    Ambiguous {
        /// The name.
        name: String,
        /// Those that answer to it.
        candidates: Vec<RunId>,
    },
    /// The flow has no such step.
    #[error("the flow has no step `{}`", step.escape_debug())]
    NoStep {
        /// The name.
        step: String,
        /// The steps that it has.
        known: Vec<String>,
    },
    /// A step has no result to go on from.
    #[error("run `{run}` has no result of step `{step}`")]
    NoResult {
        /// The run.
        run: RunId,
        /// The step.
        step: String,
        /// The steps that there are results of.
        known: Vec<String>,
    },
    /// The run is driven by a program, not by a flow file.
    #[error("run `{run}` is driven by a program: only that program can go on with it")]
    InCode {
        /// The run.
        run: RunId,
    },
    /// The flow of a run cannot be read any more.
    #[error("the flow that run `{run}` follows cannot be read")]
    Definition {
        /// The run.
        run: RunId,
        /// Why.
        source: Box<Invalid>,
    },
    /// Steps that were done are defined otherwise now.
    #[error("{} of run `{run}` changed since {} done: {}", if steps.len() == 1 { "a step" } else { "steps" }, if steps.len() == 1 { "it was" } else { "they were" }, steps.join(", "))]
    Redefined {
        /// The run.
        run: RunId,
        /// The steps.
        steps: Vec<String>,
    },
    /// What is stored of a run is damaged.
    #[error("run `{run}` is damaged: {what}")]
    Damaged {
        /// The run.
        run: RunId,
        /// What is wrong.
        what: String,
        /// The newest checkpoint up to which everything is sound.
        newest: Option<String>,
    },
    /// A step that may be done once only was cut off.
    #[error(
        "step `{step}` may be done once only, and attempt {attempt} was cut off: nobody knows whether it was done"
    )]
    Once {
        /// The step.
        step: String,
        /// The attempt.
        attempt: u32,
    },
    /// A step that may be done once only was done, and would be done again.
    #[error("step `{step}` may be done once only and was done (attempt {attempt}), but {why}")]
    DoneOnce {
        /// The step.
        step: String,
        /// The attempt.
        attempt: u32,
        /// Why its result does not hold, in words.
        why: String,
    },
    /// What someone says of a step that was cut off makes no sense.
    #[error("nobody can say of step `{}` whether it was done: {why}", step.escape_debug())]
    Decision {
        /// The step.
        step: String,
        /// Why not.
        why: &'static str,
    },
    /// A process of an earlier attempt could not be ended.
    #[error("failed to end what is left of an earlier attempt")]
    LeftOver {
        /// Why.
        source: io::Error,
    },
    /// A program could not be run.
    #[error(transparent)]
    Process(#[from] process::Error),
}

fn unset_list(unset: &[(String, String)]) -> String {
    let list: Vec<_> =
        unset.iter().map(|(name, step)| format!("the secret `{name}` of step `{step}`")).collect();
    list.join(", ")
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Error::Project(error.into())
    }
}
