//! `docs/cli.md`, written from what the program accepts. A test keeps the file true.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory};

use crate::args::Cli;

const BEFORE: &str = "\
<!-- Written by a test from the program itself: UPDATE_DOCS=1 cargo test -p stagepost-cli reference -->

# Commands

Results go to standard output, everything else to standard error. `--json` prints one object with `\"schema\": 1`;
`stagepost schema` prints the shapes. Text is for people and may change; JSON, ids and exit codes are for scripts.

| exit code | means |
|---|---|
| 0 | done |
| 1 | failed |
| 2 | not understood: a wrong argument, setting or JSON |
| 3 | not found, or the name means several things |
| 4 | refused: it would overwrite, conflict, or the store is newer than the program |
| 5 | something stored is not as it was written |
| 6 | a gate waits for its answer |
| 7 | a gate was answered with anything but a yes or a choice, was cancelled, or expired |
| 75 | another process kept the store busy for too long |
| 130 | interrupted, such as with Ctrl-C |
";

fn reference() -> String {
    let mut whole = Cli::command();
    whole.build();
    let mut page = BEFORE.to_owned();
    section(&mut page, &whole, "stagepost", "## ");
    below(&mut page, &whole, "stagepost", 2);
    page
}

/// The sections of everything below a command, one heading deeper at each step.
fn below(page: &mut String, command: &Command, name: &str, depth: usize) {
    let listed = |inner: &&Command| !inner.is_hide_set() && inner.get_name() != "help";
    for inner in command.get_subcommands().filter(listed) {
        let name = format!("{name} {}", inner.get_name());
        section(page, inner, &name, &format!("{} ", "#".repeat(depth)));
        below(page, inner, &name, depth + 1);
    }
}

fn section(page: &mut String, command: &Command, name: &str, heading: &str) {
    let mut command = command.clone();
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.render_usage().to_string().replace("Usage: ", "");
    let _ = write!(page, "\n{heading}{name}\n\n{about}\n\n```text\n{}\n```\n", usage.trim());
    // What every command accepts is listed once.
    let is_whole = name == "stagepost";
    let listed: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version"))
        .filter(|arg| is_whole || !arg.is_global_set())
        .collect();
    if !listed.is_empty() {
        page.push('\n');
    }
    for arg in listed {
        let _ = writeln!(page, "- `{}`: {}{}", shape(arg), help(arg), values(arg));
    }
}

fn shape(arg: &Arg) -> String {
    let value = arg.get_value_names().filter(|_| arg.get_action().takes_values());
    let value = value.map(|names| names.join(" ")).unwrap_or_default();
    if arg.is_positional() {
        return if arg.is_required_set() { format!("<{value}>") } else { format!("[{value}]") };
    }
    let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let long = arg.get_long().map(|long| format!("--{long}")).unwrap_or_default();
    format!("{short}{long} {value}").trim_end().to_owned()
}

fn help(arg: &Arg) -> String {
    arg.get_help().map(|help| help.to_string().replace('\n', " ")).unwrap_or_default()
}

fn values(arg: &Arg) -> String {
    let possible = arg.get_possible_values();
    let shown: Vec<String> = possible
        .iter()
        .filter(|_| arg.get_action().takes_values())
        .map(|value| match value.get_help() {
            Some(help) => format!("\n  - `{}`: {help}", value.get_name()),
            None => format!("\n  - `{}`", value.get_name()),
        })
        .collect();
    let default = arg.get_default_values().first().filter(|_| !arg.is_hide_default_value_set());
    let default = default
        .filter(|_| arg.get_action().takes_values())
        .map(|value| format!(" (default `{}`)", value.to_string_lossy()));
    format!("{}{}", default.unwrap_or_default(), shown.concat())
}

#[test]
fn the_reference_is_true() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, reference()).expect("the page can be written");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == reference(),
        "docs/cli.md is not what the program says: run this test with UPDATE_DOCS=1"
    );
}

#[test]
fn the_arguments_are_sound() {
    Cli::command().debug_assert();
}
