use clap::ValueEnum;
use schemars::schema_for;
use stagepost::flow::definition::Flow;
use stagepost::gate::journey::File;
use stagepost::gate::{Answer, Gate, Question};
use stagepost::model::{Checkpoint, Event, Run};
use stagepost::plan::Job;

use crate::app::App;
use crate::failure::Failure;
use crate::json::{CheckpointOutput, ErrorOutput, LogOutput};

#[derive(Debug, clap::Args)]
pub(crate) struct SchemaArgs {
    /// What
    r#type: Type,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Type {
    /// The record of a checkpoint
    Checkpoint,
    /// A flow file, as `flow run` reads it
    Flow,
    /// The record of a run
    Run,
    /// The record of an event
    Event,
    /// What `save --json` and `show --json` print
    Show,
    /// What `log --json` prints
    Log,
    /// What is printed with `--json` when a command fails
    Error,
    /// A gate as `gate show --json` prints it
    Gate,
    /// A question as `gate ask --via` hands it to a program
    Question,
    /// An answer as a gate keeps it
    Answer,
    /// A file that describes a journey
    Journey,
    /// The job file of `plan run`
    PlanJob,
}

pub(crate) fn run(app: &App, args: &SchemaArgs) -> Result<(), Failure> {
    let schema = match args.r#type {
        Type::Checkpoint => schema_for!(Checkpoint),
        Type::Flow => schema_for!(Flow),
        Type::Run => schema_for!(Run),
        Type::Event => schema_for!(Event),
        Type::Show => schema_for!(CheckpointOutput<'_>),
        Type::Log => schema_for!(LogOutput<'_>),
        Type::Error => schema_for!(ErrorOutput),
        Type::Gate => schema_for!(Gate),
        Type::Question => schema_for!(Question),
        Type::Answer => schema_for!(Answer),
        Type::Journey => schema_for!(File),
        Type::PlanJob => schema_for!(Job),
    };
    app.ui.json(&schema)
}
