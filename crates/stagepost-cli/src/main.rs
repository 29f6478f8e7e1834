//! The `stagepost` program: arguments in, library called, result printed. No rule lives here.

mod app;
mod args;
mod commands;
mod failure;
mod input;
mod json;
#[cfg(test)]
mod reference;
mod signals;
mod ui;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ContextValue;

use failure::Failure;

fn main() -> ExitCode {
    let args = match args::Cli::try_parse() {
        Ok(args) => args,
        Err(error) => return not_understood(&shown(error)),
    };
    signals::too_large_is_an_error();
    let mut app = app::App::new(&args.global);
    match commands::run(&mut app, args.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => app.ui.failure(&failure),
    }
}

/// What was typed is shown back with nothing in it that a terminal would obey.
fn shown(mut error: clap::Error) -> clap::Error {
    let printable = |text: &String| ui::printable(text).into_owned();
    let context: Vec<_> = error.context().map(|(kind, value)| (kind, value.clone())).collect();
    for (kind, value) in context {
        let value = match value {
            ContextValue::String(text) => ContextValue::String(printable(&text)),
            ContextValue::Strings(texts) => ContextValue::Strings(texts.iter().map(printable).collect()),
            other => other,
        };
        error.insert(kind, value);
    }
    error
}

/// Prints help, the version, or what is wrong with the arguments: as JSON if that was asked for.
fn not_understood(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || !std::env::args_os().any(|argument| argument == "--json") {
        let _ = error.print();
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    }
    let text = error.render().to_string();
    // What is missing is listed in lines of its own.
    let said: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let message = said.join(" ").trim_start_matches("error: ").to_owned();
    ui::Ui::new(true, false)
        .failure(&Failure::usage(message).hint("`stagepost --help` lists what can be typed"))
}
