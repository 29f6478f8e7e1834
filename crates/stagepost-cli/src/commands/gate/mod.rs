//! Asking people: `gate` and its commands.

pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod journey;
pub(crate) mod look;
mod menu;
pub(crate) mod parse;
mod show;

pub(crate) use show::short_row;

use stagepost::gate::{Gate, Origin, Verdict};

use crate::app::App;
use crate::failure::{Code, Failure};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum GateCommand {
    Ask(Box<ask::AskArgs>),
    List(look::ListArgs),
    Show(look::ShowArgs),
    Answer(answer::AnswerArgs),
    Wait(look::WaitArgs),
    Cancel(answer::CancelArgs),
    Reopen(answer::ReopenArgs),
    Parse(parse::ParseArgs),
    #[command(subcommand)]
    Journey(journey::JourneyCommand),
}

pub(crate) fn run(app: &App, command: GateCommand) -> Result<(), Failure> {
    match command {
        GateCommand::Ask(args) => ask::run(app, *args),
        GateCommand::List(args) => look::list(app, &args),
        GateCommand::Show(args) => look::show(app, &args),
        GateCommand::Answer(args) => answer::answer(app, &args),
        GateCommand::Wait(args) => look::wait(app, &args),
        GateCommand::Cancel(args) => answer::cancel(app, &args),
        GateCommand::Reopen(args) => answer::reopen(app, &args),
        GateCommand::Parse(args) => parse::run(app, &args),
        GateCommand::Journey(command) => journey::run(app, &command),
    }
}

/// Ends with what a gate lets its asker do: only a yes or a choice is success.
fn end(gate: &Gate) -> Result<(), Failure> {
    match gate.verdict() {
        Verdict::Yes => Ok(()),
        Verdict::No => Err(Failure::told(Code::Declined)),
        Verdict::Waiting => Err(Failure::told(Code::Waiting)),
    }
}

/// Whose words they are: a person's where there is a terminal, a program's elsewhere, unless it is said.
fn origin(said: Option<Origin>) -> Origin {
    let person = std::io::IsTerminal::is_terminal(&std::io::stdin());
    said.unwrap_or(if person { Origin::Person } else { Origin::Program })
}

fn parse_origin(text: &str) -> Result<Origin, String> {
    match text {
        "person" => Ok(Origin::Person),
        "program" => Ok(Origin::Program),
        "policy" => Ok(Origin::Policy),
        _ => Err("an answer comes from a person, a program or a policy".to_owned()),
    }
}

fn parse_duration(text: &str) -> Result<std::time::Duration, String> {
    stagepost::project::parse_duration(text)
        .ok_or_else(|| "a duration is such as 90s, 15m, 2h or 3d".to_owned())
}

/// A reader that has had enough, such as `head`, is no failure.
fn written(done: std::io::Result<()>) -> Result<(), Failure> {
    match done {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
