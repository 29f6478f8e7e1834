//! What can be typed.

use std::ffi::OsString;
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
    #[command(flatten)]
    Everyday(Everyday),
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

/// What is typed most often, by programs too.
#[derive(Debug, Subcommand)]
pub(crate) enum Everyday {
    Status(commands::status::StatusArgs),
    Init(commands::init::InitArgs),
    Save(commands::save::SaveArgs),
    Log(commands::log::LogArgs),
    Show(commands::show::ShowArgs),
    Diff(commands::diff::DiffArgs),
    Restore(commands::restore::RestoreArgs),
    Undo(commands::restore::UndoArgs),
    Redo(commands::restore::RedoArgs),
}

/// A grammar of nothing but that: naming every argument of every command takes a good part of what a small `save` takes.
#[derive(Debug, Parser)]
#[command(name = "stagepost", disable_help_subcommand = true)]
struct Frequent {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Everyday,
}

impl From<Frequent> for Cli {
    fn from(frequent: Frequent) -> Self {
        Self { global: frequent.global, command: Some(Command::Everyday(frequent.command)) }
    }
}

impl Cli {
    /// Understands what was typed. Help, the version and what is wrong are for the whole to say.
    pub(crate) fn understand(typed: &[OsString]) -> Result<Self, clap::Error> {
        Frequent::try_parse_from(typed).map(Self::from).or_else(|_| Self::try_parse_from(typed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_often_means_what_it_means_in_the_whole() {
        let lines = [
            "status",
            "--json save -m text --label good --no-files",
            "save --quiet -m x -C folder",
            "log",
            "show @",
            "diff @- @",
            "restore @ --dry-run",
            "undo",
            "redo --json",
        ];
        for line in lines {
            let typed: Vec<OsString> =
                std::iter::once("stagepost").chain(line.split(' ')).map(OsString::from).collect();
            let frequent = Frequent::try_parse_from(&typed).map(Cli::from).unwrap();
            assert_eq!(
                format!("{frequent:?}"),
                format!("{:?}", Cli::try_parse_from(&typed).unwrap()),
                "{line}"
            );
        }
    }

    #[test]
    fn the_rest_is_understood_and_refused_by_the_whole() {
        for line in [
            "stagepost",
            "stagepost gc --dry-run",
            "stagepost --help",
            "stagepost save --wrong",
            "stagepost sav",
        ] {
            let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let [found, whole] = [Cli::understand(&typed), Cli::try_parse_from(&typed)].map(|result| {
                result.map(|cli| format!("{cli:?}")).map_err(|error| error.render().to_string())
            });
            assert_eq!(found, whole, "{line}");
        }
    }
}
