use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};
use stagepost::gate::journey::{self, Arrived, Commands, Journey, OnItsWay, Travel};
use stagepost::gate::{self, Gate, GateId, Gates};
use stagepost::model::RunId;

use super::ask::Who;
use super::{end, origin, parse_duration, show};
use crate::app::App;
use crate::failure::{Code, Failure};
use crate::input;
use crate::json::Output;
use crate::ui::Form;

/// Gates with work between them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum JourneyCommand {
    Run(Box<RunArgs>),
    List(ListArgs),
    Abandon(AbandonArgs),
}

/// List the journeys that are on their way; nothing of them is collected
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {}

/// Give a journey up: its gates that wait are cancelled, and `gc` may take what it left
///
/// What was recorded stays until then. Running the journey again later tells where it was given up, or takes it up where it had
/// stopped in the middle of work.
#[derive(Debug, clap::Args)]
pub(crate) struct AbandonArgs {
    /// The run of the journey
    #[arg(value_name = "RUN")]
    run: String,
    /// Why, in words
    #[arg(long, value_name = "TEXT", default_value = "the journey was given up", hide_default_value = true)]
    why: String,
}

/// Travel a journey: begin it, or go on where its run stands
///
/// Ends with 0 at its end, with 6 at a gate that waits (answer it and run this again), and with 7 where it was given up.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The journey: a file in JSON or YAML (`stagepost schema journey`)
    file: PathBuf,
    /// What to call its run; the journey's name unless given
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Going back also puts the files back as they were when the gate was asked
    #[arg(long)]
    restore_files: bool,
    #[command(flatten)]
    who: Who,
    /// At a gate where nobody answers here, wait for an answer from elsewhere: for so long, or without end
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, value_parser = parse_duration)]
    wait: Option<Option<Duration>>,
}

#[derive(Serialize)]
struct Body<'a> {
    run: &'a RunId,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<&'a Gate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<&'a Map<String, Value>>,
}

#[derive(Serialize)]
struct Listed<'a> {
    journeys: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    run: &'a RunId,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<&'a Gate>,
}

#[derive(Serialize)]
struct Abandoned<'a> {
    run: &'a RunId,
    cancelled: Vec<&'a GateId>,
}

pub(crate) fn run(app: &App, command: &JourneyCommand) -> Result<(), Failure> {
    match command {
        JourneyCommand::Run(args) => travel(app, args),
        JourneyCommand::List(_) => list(app),
        JourneyCommand::Abandon(args) => abandon(app, args),
    }
}

fn list(app: &App) -> Result<(), Failure> {
    let found = journey::on_their_way(&app.open()?)?;
    let row = |found: &OnItsWay| match &found.gate {
        Some(gate) => format!("{}  waits at {}", found.run, gate.id),
        None => format!("{}  stopped in the middle of work", found.run),
    };
    match app.ui.form {
        Form::Json => {
            let journeys =
                found.iter().map(|found| Row { run: &found.run, gate: found.gate.as_ref() }).collect();
            app.ui.json(&Output::new(Listed { journeys }))
        }
        Form::Quiet => found.iter().try_for_each(|found| app.ui.line(found.run.to_string())),
        Form::Text if found.is_empty() => {
            app.ui.say("no journey is on its way");
            Ok(())
        }
        Form::Text => found.iter().try_for_each(|found| app.ui.line(row(found))),
    }
}

fn abandon(app: &App, args: &AbandonArgs) -> Result<(), Failure> {
    let run = RunId::new(args.run.clone())?;
    let gates = journey::abandon(&app.open_to_write()?, &run, &args.why, origin(None))?;
    let cancelled: Vec<&GateId> = gates.iter().map(|gate| &gate.id).collect();
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(Abandoned { run: &run, cancelled })),
        Form::Quiet => Ok(()),
        Form::Text => {
            cancelled.iter().try_for_each(|gate| app.ui.line(format!("gate {gate} is cancelled")))?;
            app.ui.line(format!("journey {run} is given up; `stagepost gc` may take what it left"))
        }
    }
}

fn travel(app: &App, args: &RunArgs) -> Result<(), Failure> {
    let text = input::read_text(&args.file, input::MOST)
        .map_err(|error| Failure::file("read the journey in", &args.file, error))?;
    let journey = Journey::read(&text)?;
    let project = app.open_to_write()?;
    let run = RunId::new(args.run.clone().unwrap_or_else(|| journey.name.clone()))?;
    let travel =
        Travel { project: &project, journey: &journey, run: &run, restore_files: args.restore_files };
    let mut asker = args.who.asker(app, true);
    let folder = project.place().root.clone();
    let mut worker = Commands { journey: &journey, folder, bounds: args.who.bounds() };
    loop {
        let arrived = match travel.go(&mut worker, &mut *asker) {
            // Someone who leaves with Ctrl-C has said nothing: the gate waits on.
            Err(journey::Error::Gate(gate::Error::Asker { source, .. }))
                if source.kind() == std::io::ErrorKind::Interrupted =>
            {
                return Err(Failure::told(Code::Interrupted));
            }
            other => other?,
        };
        let (Arrived::Waiting(gate), Some(patience)) = (&arrived, args.wait) else {
            return told(app, &run, &arrived);
        };
        app.ui.say(show::outcome(gate));
        if Gates::of(&project).wait(&gate.id, patience)?.is_waiting() {
            return told(app, &run, &arrived);
        }
    }
}

fn told(app: &App, run: &RunId, arrived: &Arrived) -> Result<(), Failure> {
    let (state, gate, results) = match arrived {
        Arrived::AtTheEnd(results) => ("done", None, Some(results)),
        Arrived::Waiting(gate) => ("waiting", Some(&**gate), None),
        Arrived::Stopped(gate) => ("stopped", Some(&**gate), None),
    };
    match (app.ui.form, gate) {
        (Form::Json, _) => app.ui.json(&Output::new(Body { run, state, gate, results }))?,
        (Form::Quiet, Some(gate)) => app.ui.line(gate.id.to_string())?,
        (Form::Quiet, None) => {}
        (Form::Text, Some(gate)) => app.ui.line(show::outcome(gate))?,
        (Form::Text, None) => app.ui.line(format!("journey {run} is at its end"))?,
    }
    match (arrived, gate) {
        (Arrived::Stopped(_), _) => Err(Failure::told(Code::Declined)),
        (_, Some(gate)) => end(gate),
        _ => Ok(()),
    }
}
