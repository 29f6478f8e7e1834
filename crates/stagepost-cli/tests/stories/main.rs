//! The commands, told as short stories through the real program, in temporary folders with real git.

#[path = "../support/mod.rs"]
mod support;

mod damage;
mod everyday;
mod gates;
mod keeping;
mod names;
mod schemas;
mod settings;
mod wrong_input;
