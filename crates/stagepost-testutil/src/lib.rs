//! Throw-away projects, scripted clocks and ids, and the contract suite that every store passes.

pub mod contract;
pub mod fuzz;
mod script;
mod story;
mod temp_project;

pub use script::Script;
pub use story::{Story, artifact, conversation, damage_line, label, message, one, run_id};
pub use temp_project::{TempProject, save_files};
