//! Flows: `flow` and its commands.

pub(crate) mod check;
mod file;
pub(crate) mod graph;

use crate::app::App;
use crate::failure::Failure;

/// Run steps that survive a crash
#[derive(Debug, clap::Subcommand)]
pub(crate) enum FlowCommand {
    Check(check::CheckArgs),
    Graph(graph::GraphArgs),
}

pub(crate) fn run(app: &App, command: FlowCommand) -> Result<(), Failure> {
    match command {
        FlowCommand::Check(args) => check::run(app, &args),
        FlowCommand::Graph(args) => graph::run(app, &args),
    }
}
