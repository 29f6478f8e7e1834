//! One file for each command: parse, call, render.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod flow;
pub(crate) mod gate;
pub(crate) mod gc;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod log;
pub(crate) mod pin;
pub(crate) mod plan;
pub(crate) mod restore;
pub(crate) mod save;
pub(crate) mod schema;
pub(crate) mod session;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod task;
pub(crate) mod verify;

use crate::app::App;
use crate::args::{Command, Everyday};
use crate::failure::Failure;

/// Carries out what was typed.
pub(crate) fn run(app: &mut App, command: Option<Command>) -> Result<(), Failure> {
    match command {
        None => status::run(app, &status::StatusArgs {}),
        Some(Command::Everyday(command)) => everyday(app, command),
        Some(Command::Flow(command)) => flow::run(app, command),
        Some(Command::Gate(command)) => gate::run(app, command),
        Some(Command::Verify(args)) => verify::run(app, &args),
        Some(Command::Gc(args)) => gc::run(app, &args),
        Some(Command::Pin(args)) => pin::pin(app, &args),
        Some(Command::Unpin(args)) => pin::unpin(app, &args),
        Some(Command::Session(args)) => session::run(app, args),
        Some(Command::Task(args)) => task::run(app, args),
        Some(Command::Plan(command)) => plan::run(app, command),
        Some(Command::Import(args)) => import::run(app, &args),
        Some(Command::Export(args)) => import::export(app, &args),
        Some(Command::Doctor(args)) => doctor::run(app, &args),
        Some(Command::Config(args)) => config::run(app, &args),
        Some(Command::Completions(args)) => completions::run(&args),
        Some(Command::Schema(args)) => schema::run(app, &args),
        Some(Command::Demo(args)) => demo::run(app, &args),
    }
}

fn everyday(app: &mut App, command: Everyday) -> Result<(), Failure> {
    match command {
        Everyday::Status(args) => status::run(app, &args),
        Everyday::Init(args) => init::run(app, &args),
        Everyday::Save(args) => save::run(app, args),
        Everyday::Log(args) => log::run(app, &args),
        Everyday::Show(args) => show::run(app, &args),
        Everyday::Diff(args) => diff::run(app, &args),
        Everyday::Restore(args) => restore::run(app, &args),
        Everyday::Undo(args) => restore::undo(app, &args),
        Everyday::Redo(args) => restore::redo(app, &args),
    }
}
