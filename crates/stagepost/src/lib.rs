//! Checkpoints for AI-agent work: a run can always be looked at, compared, restored, resumed and decided again.
//!
//! Start at [`project::Project`]. Below it are [`model`] (what is kept), [`store`] (where), [`snapshot`] (files, in
//! git), [`retention`] (for how long), [`reply`] (understanding an answer) and [`formats`] (files of other systems); on
//! it stand [`session`], [`task`], [`plan`] and [`gate`]. The library never prints, reads the environment or exits; clock
//! and ids are handed in.

mod bounded;
pub mod lock;
pub mod model;
mod private;
pub mod process;
mod yaml;

pub mod formats;
pub mod reply;
pub mod retention;
pub mod snapshot;
pub mod store;

pub mod project;

pub mod gate;
pub mod plan;
pub mod session;
pub mod task;

pub mod flow;

/// Has the blocks of the README that are Rust compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
