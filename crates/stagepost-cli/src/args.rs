//! What can be typed.

use std::path::PathBuf;

use clap::{ArgMatches, Args, FromArgMatches, Parser, Subcommand};

use stagepost::snapshot::Consent;

use crate::commands;

/// Keep an agent's work recoverable: save, look at, compare, restore and resume it
///
/// Every name of a checkpoint may be an id or the start of one, `@` for the newest, `@-` for the one before it,
/// `last-good`, a label, `RUN/3` for the third of a run, or a run for its newest.
#[derive(Debug, Parser)]
#[command(name = "stagepost", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What every command accepts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
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

// What a command accepts that looks at all files. With three strokes this would be the help of each of them.
#[derive(Debug, Args)]
pub(crate) struct ConsentArg {
    /// Agree to keep a home folder, the whole file system, or absurdly many files
    #[arg(long)]
    consent: bool,
}

impl From<&ConsentArg> for Consent {
    fn from(arg: &ConsentArg) -> Self {
        if arg.consent { Self::Given } else { Self::No }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show where the project stands (the same as no command at all)
    Status(Late<commands::status::StatusArgs>),
    /// Make the store for this project; nothing else is written
    Init(Late<commands::init::InitArgs>),
    /// Save a checkpoint
    Save(Late<commands::save::SaveArgs>),
    /// List checkpoints, newest first
    ///
    /// A record that is damaged is named on standard error, and the sound ones are listed; the exit code is 5 then.
    Log(Late<commands::log::LogArgs>),
    /// Show a checkpoint, or print one of its artifacts
    Show(Late<commands::show::ShowArgs>),
    /// Show what differs between two checkpoints, or between a checkpoint and now
    ///
    /// Without names, the newest checkpoint that holds files is compared with the files as they are now.
    Diff(Late<commands::diff::DiffArgs>),
    /// Put the files of a checkpoint back
    ///
    /// What is there now is saved first, so `stagepost undo` always brings it back. Files made since the checkpoint are
    /// deleted only because that safety checkpoint holds them; what no checkpoint can hold is left alone.
    Restore(Late<commands::restore::RestoreArgs>),
    /// Undo the last restore
    Undo(Late<commands::restore::UndoArgs>),
    /// Take the last undo back
    Redo(Late<commands::restore::RedoArgs>),
    /// Run steps that survive a crash
    #[command(subcommand)]
    Flow(Late<commands::flow::FlowCommand>),
    /// Ask a person, and understand the answer
    #[command(subcommand)]
    Gate(Late<commands::gate::GateCommand>),
    /// Read everything again and name what is damaged
    Verify(Late<commands::verify::VerifyArgs>),
    /// Give up old checkpoints as the policy says, and give the space back
    ///
    /// Without flags the settings `retention.*` are the policy; without those, only what nothing refers to is dropped.
    /// Pinned and labelled checkpoints stay, and so does the newest of each run.
    Gc(Late<commands::gc::GcArgs>),
    /// Keep a checkpoint whatever the policy says
    Pin(Late<commands::pin::PinArgs>),
    /// Take a pin away
    Unpin(Late<commands::pin::UnpinArgs>),
    /// Checkpoints of an agent's work in phases
    ///
    /// A session's checkpoints are commits on the branch with a tag, or with --no-commit snapshots beside it. Their JSON has
    /// the shapes of the files in .flow/maestro/sessions, without a wrapper.
    Session(Late<commands::session::SessionArgs>),
    /// Checkpoints of numbered tasks in stages, and notes of progress
    Task(Late<commands::task::TaskArgs>),
    /// Propose and judge: every iteration kept, scored and compared
    #[command(subcommand)]
    Plan(Late<commands::plan::PlanCommand>),
    /// Take in checkpoints that another system kept
    ///
    /// Source files are only read. What is broken is taken in and flagged. Importing again takes in only what is new.
    ///
    /// What cannot be read at all is named on standard error (with --json under `unreadable`), and the rest is taken in; the exit
    /// code is 1 then, also of a dry run. It is 3 if there is nothing of a known form.
    Import(Late<commands::import::ImportArgs>),
    /// Write checkpoints in the files of another system
    Export(Late<commands::import::ExportArgs>),
    /// Look whether everything is in order
    Doctor(Late<commands::doctor::DoctorArgs>),
    /// List the settings and where each comes from
    ///
    /// Settings come from `~/.config/stagepost/config.toml`, then `stagepost.toml` in the project, then variables such as
    /// `STAGEPOST_RETENTION_KEEP`, then flags; later ones win.
    Config(Late<commands::config::ConfigArgs>),
    /// Print completions for a shell
    Completions(Late<commands::completions::CompletionsArgs>),
    /// Print the JSON Schema of something that is stored or printed
    Schema(Late<commands::schema::SchemaArgs>),
    /// Tell a short true story on a throw-away project
    ///
    /// Every line that starts with `$` is run by this very program, and every outcome is checked: if one is not as told,
    /// the demo fails.
    Demo(Late<commands::demo::DemoArgs>),
}

/// What a command accepts, named once the command was typed: naming every argument of every command takes a good part
/// of what a small `save` takes.
#[derive(Debug)]
pub(crate) struct Late<T>(pub(crate) T);

impl<T: FromArgMatches> FromArgMatches for Late<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Late<T> {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.defer(T::augment_args)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        command.defer(T::augment_args_for_update)
    }
}

impl<T: Subcommand> Subcommand for Late<T> {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        command.defer(T::augment_subcommands)
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        command.defer(T::augment_subcommands_for_update)
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}
