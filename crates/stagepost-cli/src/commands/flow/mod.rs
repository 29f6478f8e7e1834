//! Flows: `flow` and its commands.

pub(crate) mod check;
pub(crate) mod cleanup;
pub(crate) mod drive;
mod file;
pub(crate) mod fork;
pub(crate) mod graph;
mod live;
pub(crate) mod look;
pub(crate) mod plan;

use crate::app::App;
use crate::failure::Failure;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum FlowCommand {
    Run(drive::RunArgs),
    Resume(drive::ResumeArgs),
    Plan(plan::PlanArgs),
    Why(plan::WhyArgs),
    Rerun(drive::RerunArgs),
    List(look::ListArgs),
    Show(look::ShowArgs),
    Checkpoints(look::CheckpointsArgs),
    Fork(fork::ForkArgs),
    Cancel(fork::CancelArgs),
    Check(check::CheckArgs),
    Graph(graph::GraphArgs),
    Cleanup(cleanup::CleanupArgs),
}

pub(crate) fn run(app: &App, command: FlowCommand) -> Result<(), Failure> {
    match command {
        FlowCommand::Run(args) => drive::run(app, &args),
        FlowCommand::Resume(args) => drive::resume(app, &args),
        FlowCommand::Plan(args) => plan::run(app, &args),
        FlowCommand::Why(args) => plan::why(app, &args),
        FlowCommand::Rerun(args) => drive::rerun(app, &args),
        FlowCommand::List(args) => look::list(app, &args),
        FlowCommand::Show(args) => look::show(app, &args),
        FlowCommand::Checkpoints(args) => look::checkpoints(app, &args),
        FlowCommand::Fork(args) => fork::fork(app, &args),
        FlowCommand::Cancel(args) => fork::cancel(app, &args),
        FlowCommand::Check(args) => check::run(app, &args),
        FlowCommand::Graph(args) => graph::run(app, &args),
        FlowCommand::Cleanup(args) => cleanup::run(app, &args),
    }
}

fn parse_duration(text: &str) -> Result<std::time::Duration, String> {
    stagepost::project::parse_duration(text)
        .ok_or_else(|| "a duration is such as 90s, 15m, 2h or 3d".to_owned())
}
