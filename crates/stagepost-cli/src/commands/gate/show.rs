//! Printing gates.

use std::io::{self, Write};

use anstyle::Style;
use serde::Serialize;
use stagepost::gate::{Gate, Message, Span, State, Tone};
use stagepost::model::Timestamp;
use stagepost::project::{Clock, SystemClock};

use crate::app::App;
use crate::failure::Failure;
use crate::json::Output;
use crate::ui::{self, BOLD, CYAN, DIM, Form, YELLOW};

/// What `--json` prints of a gate.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    pub(super) gate: &'a Gate,
}

/// Prints a gate as the result of a command that changed or found one.
pub(super) fn result(app: &App, gate: &Gate) -> Result<(), Failure> {
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(Body { gate })),
        Form::Quiet => app.ui.line(gate.id.to_string()),
        Form::Text => app.ui.line(outcome(gate)),
    }
}

/// Where a gate stands, in a sentence.
pub(super) fn outcome(gate: &Gate) -> String {
    let id = &gate.id;
    match &gate.state {
        State::Waiting => {
            format!("gate {BOLD}{id}{BOLD:#} waits: answer it with `stagepost gate answer {id} TEXT`")
        }
        State::Answered { answer } => {
            let chosen = &answer.reply.details.option_ids;
            let chosen = if chosen.is_empty() { String::new() } else { format!(" {}", chosen.join(", ")) };
            format!(
                "gate {BOLD}{id}{BOLD:#} was answered by {} ({}): {BOLD}{}{}{BOLD:#} “{}”\n{DIM}{}{DIM:#}",
                ui::printable(&answer.by),
                answer.origin.name(),
                answer.reply.action,
                ui::printable(&chosen),
                ui::headline(&on_one_line(&answer.words), 60),
                ui::printable(&answer.reply.because),
            )
        }
        State::Expired { outcome, at, .. } => {
            format!("gate {BOLD}{id}{BOLD:#} expired {} and counts as {}", ago(*at), outcome.name())
        }
        State::Cancelled { by, why, at, .. } => {
            let why = if why.is_empty() { String::new() } else { format!(": {}", ui::headline(why, 60)) };
            format!("gate {BOLD}{id}{BOLD:#} was cancelled by {} {}{why}", ui::printable(by), ago(*at))
        }
        State::Void { by, back_to, at } => {
            format!(
                "gate {BOLD}{id}{BOLD:#} is void: {} went back to {back_to} {}",
                ui::printable(by),
                ago(*at)
            )
        }
        other => format!("gate {BOLD}{id}{BOLD:#} is {}", other.name()),
    }
}

/// All lines of what was said: the first may say yes and the second no.
pub(super) fn on_one_line(words: &str) -> String {
    words.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" / ")
}

/// Lines of a list, in columns.
pub(super) fn rows(gates: &[Gate]) -> Vec<String> {
    let wide = gates.iter().map(|gate| gate.id.as_str().chars().count()).max().unwrap_or(0);
    gates.iter().map(|gate| row(gate, wide)).collect()
}

fn row(gate: &Gate, wide: usize) -> String {
    let state = match &gate.state {
        State::Answered { answer } => answer.reply.action.to_string(),
        other => other.name().to_owned(),
    };
    format!(
        "{BOLD}{:<wide$}{BOLD:#}  {state:<12}  {:<16}  {DIM}{:<14}{DIM:#}  {}",
        gate.id,
        gate.prompt.kind.name(),
        ago(gate.asked_at),
        ui::headline(gate.prompt.question(), 60)
    )
}

/// A waiting gate in the status.
pub(crate) fn short_row(gate: &Gate) -> String {
    let question = ui::headline(gate.prompt.question(), 60);
    format!("{BOLD}{}{BOLD:#}  {}  {question}", gate.id, ago(gate.asked_at))
}

pub(super) fn ago(time: Timestamp) -> String {
    ui::ago(time, SystemClock.now())
}

/// Writes the message for a person; colour goes where the stream is a terminal.
pub(super) fn message(out: &mut impl Write, message: &Message) -> io::Result<()> {
    for line in message.lines(width()) {
        for span in line {
            let style = style(span.tone);
            write!(out, "{style}{}{style:#}", span.text)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The message as plain text.
pub(super) fn plain(message: &Message) -> String {
    let line = |spans: Vec<Span>| spans.into_iter().map(|span| span.text).collect::<String>() + "\n";
    message.lines(width()).into_iter().map(line).collect()
}

pub(super) fn style(tone: Tone) -> Style {
    match tone {
        Tone::Heading | Tone::Question => BOLD,
        Tone::Warning => YELLOW,
        Tone::Say => CYAN,
        Tone::Faint => DIM,
        _ => Style::new(),
    }
}

/// The width of the terminal; where there is none, one that can be read anywhere.
pub(super) fn width() -> usize {
    let terminal = terminal_size::terminal_size().map(|(terminal_size::Width(width), _)| usize::from(width));
    terminal.unwrap_or(80).min(100)
}
