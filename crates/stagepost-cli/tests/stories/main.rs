//! The commands, told as short stories through the real program, in temporary folders with real git.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../support/mod.rs"]
mod support;

mod bombs;
mod damage;
mod everyday;
mod flow_files;
mod flow_names;
mod flows;
mod gates;
mod going_back;
mod hostile;
mod hostile_git;
mod keeping;
mod names;
mod pipes;
mod plans;
mod schemas;
mod secrets;
mod sessions;
mod settings;
mod wrong_input;
