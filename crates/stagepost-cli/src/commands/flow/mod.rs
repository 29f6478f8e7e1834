//! Flows: `flow` and its commands.

pub(crate) mod check;
pub(crate) mod cleanup;
mod file;
pub(crate) mod graph;

use crate::app::App;
use crate::failure::{Code, Failure};

/// Run steps that survive a crash
#[derive(Debug, clap::Subcommand)]
pub(crate) enum FlowCommand {
    Check(check::CheckArgs),
    Graph(graph::GraphArgs),
    Cleanup(cleanup::CleanupArgs),
}

pub(crate) fn run(app: &App, command: FlowCommand) -> Result<(), Failure> {
    match command {
        FlowCommand::Check(args) => check::run(app, &args),
        FlowCommand::Graph(args) => graph::run(app, &args),
        FlowCommand::Cleanup(args) => cleanup::run(app, &args),
    }
}

/// What a person is told when looking at runs failed.
pub(crate) fn failed(error: stagepost::flow::Error) -> Failure {
    match error {
        stagepost::flow::Error::Project(error) => error.into(),
        other => Failure::new(Code::Failed, other.to_string()),
    }
}
