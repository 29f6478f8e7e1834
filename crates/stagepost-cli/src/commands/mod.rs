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
use crate::args::{Command, Late};
use crate::failure::Failure;

/// Carries out what was typed.
pub(crate) fn run(app: &mut App, command: Option<Command>) -> Result<(), Failure> {
    match command {
        None => status::run(app, &status::StatusArgs {}),
        Some(Command::Status(Late(args))) => status::run(app, &args),
        Some(Command::Init(Late(args))) => init::run(app, &args),
        Some(Command::Save(Late(args))) => save::run(app, args),
        Some(Command::Log(Late(args))) => log::run(app, &args),
        Some(Command::Show(Late(args))) => show::run(app, &args),
        Some(Command::Diff(Late(args))) => diff::run(app, &args),
        Some(Command::Restore(Late(args))) => restore::run(app, &args),
        Some(Command::Undo(Late(args))) => restore::undo(app, &args),
        Some(Command::Redo(Late(args))) => restore::redo(app, &args),
        Some(Command::Flow(Late(command))) => flow::run(app, command),
        Some(Command::Gate(Late(command))) => gate::run(app, command),
        Some(Command::Verify(Late(args))) => verify::run(app, &args),
        Some(Command::Gc(Late(args))) => gc::run(app, &args),
        Some(Command::Pin(Late(args))) => pin::pin(app, &args),
        Some(Command::Unpin(Late(args))) => pin::unpin(app, &args),
        Some(Command::Session(Late(args))) => session::run(app, args),
        Some(Command::Task(Late(args))) => task::run(app, args),
        Some(Command::Plan(Late(command))) => plan::run(app, command),
        Some(Command::Import(Late(args))) => import::run(app, &args),
        Some(Command::Export(Late(args))) => import::export(app, &args),
        Some(Command::Doctor(Late(args))) => doctor::run(app, &args),
        Some(Command::Config(Late(args))) => config::run(app, &args),
        Some(Command::Completions(Late(args))) => completions::run(app, &args),
        Some(Command::Schema(Late(args))) => schema::run(app, &args),
        Some(Command::Demo(Late(args))) => demo::run(app, &args),
    }
}
