//! Asking people: `gate` and its commands.

pub(crate) mod parse;

use crate::app::App;
use crate::failure::Failure;

/// Ask a person, and understand the answer
#[derive(Debug, clap::Subcommand)]
pub(crate) enum GateCommand {
    Parse(parse::ParseArgs),
}

pub(crate) fn run(app: &App, command: GateCommand) -> Result<(), Failure> {
    match command {
        GateCommand::Parse(args) => parse::run(app, &args),
    }
}

/// A reader that has had enough, such as `head`, is no failure.
fn written(done: std::io::Result<()>) -> Result<(), Failure> {
    match done {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
