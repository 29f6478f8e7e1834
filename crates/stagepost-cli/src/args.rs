//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands;

/// Keep an agent's work recoverable: save, look at, compare, restore and resume it
///
/// Every name of a checkpoint may be an id or the start of one, `@` for the newest, `@-` for the one before it,
/// `last-good`, a label, `RUN/3` for the third of a run, or a run for its newest.
#[derive(Debug, Parser)]
#[command(name = "stagepost", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What every command accepts.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print ids only
    #[arg(long, short, global = true, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Work in this folder instead of the current one
    #[arg(long, short = 'C', global = true, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// How long to wait for other processes, such as 10s
    #[arg(long, global = true, value_name = "DURATION")]
    pub(crate) busy_timeout: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Status(commands::status::StatusArgs),
    Init(commands::init::InitArgs),
    Save(commands::save::SaveArgs),
    Log(commands::log::LogArgs),
    Show(commands::show::ShowArgs),
    Diff(commands::diff::DiffArgs),
    Restore(commands::restore::RestoreArgs),
    Undo(commands::restore::UndoArgs),
    Redo(commands::restore::RedoArgs),
    #[command(subcommand)]
    Flow(commands::flow::FlowCommand),
    #[command(subcommand)]
    Gate(commands::gate::GateCommand),
    Verify(commands::verify::VerifyArgs),
    Gc(commands::gc::GcArgs),
    Pin(commands::pin::PinArgs),
    Unpin(commands::pin::UnpinArgs),
    Session(commands::session::SessionArgs),
    Task(commands::task::TaskArgs),
    #[command(subcommand)]
    Plan(commands::plan::PlanCommand),
    Import(commands::import::ImportArgs),
    Export(commands::import::ExportArgs),
    Doctor(commands::doctor::DoctorArgs),
    Config(commands::config::ConfigArgs),
    Completions(commands::completions::CompletionsArgs),
    Schema(commands::schema::SchemaArgs),
    Demo(commands::demo::DemoArgs),
}
