use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;
use stagepost::gate::{Gate, Gates, Message, Moment};
use stagepost::model::RunId;

use super::{end, parse_duration, show};
use crate::app::App;
use crate::failure::Failure;
use crate::json::Output;
use crate::ui::{self, DIM, Form};

/// List the gates that wait
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Also those that were answered, cancelled, expired or voided
    #[arg(long)]
    all: bool,
    /// Only those of this run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

/// Show a gate: what it asks, and what became of it
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The gate: its name or the start of it, or `@` for the only one that waits
    #[arg(value_name = "GATE", default_value = "@")]
    gate: String,
    /// How its question is printed
    #[arg(long, value_name = "FORM")]
    form: Option<Shape>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shape {
    /// As a person reads it
    Text,
    /// As Markdown
    Markdown,
    /// As JSON for an agent kit's way to ask the user
    Ask,
    /// As JSON for MCP's elicitation
    Elicitation,
}

/// Wait until a gate is answered
///
/// Ends as `gate ask` does: 0 for a yes or a choice, 6 if it still waits, 7 for anything else.
#[derive(Debug, clap::Args)]
pub(crate) struct WaitArgs {
    /// The gate: its name or the start of it, or `@` for the only one that waits
    #[arg(value_name = "GATE", default_value = "@")]
    gate: String,
    /// Wait no longer than this, such as 30s; without it, without end
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
}

#[derive(Serialize)]
struct Listed<'a> {
    gates: &'a [Gate],
}

/// What `--json` prints of a question that is laid out as text.
#[derive(Serialize)]
struct Shown<'a> {
    gate: &'a str,
    text: String,
}

pub(crate) fn list(app: &App, args: &ListArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let gates = Gates::of(&project);
    let run = args.run.as_ref().map(RunId::new).transpose()?;
    let mut found = if args.all { gates.all()? } else { gates.waiting()? };
    found.retain(|gate| run.as_ref().is_none_or(|run| gate.of.run == *run));
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(Listed { gates: &found })),
        Form::Quiet => found.iter().try_for_each(|gate| app.ui.line(gate.id.to_string())),
        Form::Text => {
            if found.is_empty() {
                app.ui.say("no gate waits");
            }
            show::rows(&found).iter().try_for_each(|row| app.ui.line(row))
        }
    }
}

pub(crate) fn show(app: &App, args: &ShowArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let gates = Gates::of(&project);
    let gate = gates.settled(&gates.resolve(&args.gate)?.id)?;
    match (args.form, app.ui.form) {
        (Some(Shape::Markdown), Form::Json) => {
            app.ui.json(&Output::new(Shown { gate: gate.id.as_str(), text: Message::of(&gate).markdown() }))
        }
        (Some(Shape::Text), Form::Json) => app
            .ui
            .json(&Output::new(Shown { gate: gate.id.as_str(), text: show::plain(&Message::of(&gate)) })),
        (Some(Shape::Markdown), _) => app.ui.text(&Message::of(&gate).markdown()),
        (Some(Shape::Ask), _) => app.ui.json(&Message::ask_user(&gate)),
        (Some(Shape::Elicitation), _) => app.ui.json(&Message::elicitation(&gate)),
        (Some(Shape::Text), _) => {
            super::written(show::message(&mut anstream::stdout().lock(), &Message::of(&gate)))
        }
        (None, Form::Text) => whole(app, &gates, &gate),
        (None, _) => show::result(app, &gate),
    }
}

/// The message, where the gate stands, and all that happened to it.
fn whole(app: &App, gates: &Gates<'_>, gate: &Gate) -> Result<(), Failure> {
    super::written(show::message(&mut anstream::stdout().lock(), &Message::of(gate)))?;
    app.ui.line(format!("\n{}", show::outcome(gate)))?;
    for (at, moment) in gates.history(&gate.id)? {
        let words = match &moment {
            Moment::Answered(answer) => format!("{}: “{}”", answer.by, show::on_one_line(&answer.words)),
            Moment::Unclear(attempt) => format!("{}: “{}”", attempt.by, show::on_one_line(&attempt.words)),
            Moment::Reopened { by, why } | Moment::Cancelled { by, why, .. } if !why.is_empty() => {
                format!("{by}: {why}")
            }
            Moment::Reopened { by, .. } | Moment::Cancelled { by, .. } => by.clone(),
            Moment::Voided { by, back_to } => format!("{by}: back to {back_to}"),
            _ => String::new(),
        };
        app.ui.line(format!("{DIM}{at}  {:<10}{DIM:#} {}", moment.name(), ui::headline(&words, 60)))?;
    }
    Ok(())
}

pub(crate) fn wait(app: &App, args: &WaitArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let gates = Gates::of(&project);
    let gate = gates.resolve(&args.gate)?;
    let gate = gates.wait(&gate.id, args.timeout)?;
    show::result(app, &gate)?;
    end(&gate)
}
