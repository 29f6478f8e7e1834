//! Flows: steps whose results survive whoever runs them.
//!
//! In code, start at [`Run::open`] and [`Run::step`]: a step that was completed returns its recorded result and is not
//! run again. How a run stands is never written down; [`RunState`] tells it from the [`History`].
//!
//! What always holds:
//! - The end of an attempt, with its result, its payloads and how it ended, is one checkpoint: all of it is there, or
//!   none. When [`Run::step`] returns, it is durable.
//! - One process drives a run. It holds a kernel lock that dies with it, so a run that was killed is known by that, not by
//!   a time or a word in a file.
//! - That an attempt began survives the process, so attempts are counted on and what is left of them is ended first.
//! - A result that holds no more stays in the history.

pub mod definition;

mod attempts;
mod error;
mod fingerprint;
mod happened;
mod history;
mod hold;
mod prune;
mod record;
mod run;
mod state;

pub use error::Error;
pub use fingerprint::Fingerprint;
pub use happened::{Accepted, Definition, End, Happened};
pub use history::{History, Moment};
pub use hold::{driver, is_driven};
pub use record::{FILES, OUTPUT, RESULT, Record};
pub use run::{Options, Run, StepOptions, Within};
pub use state::{Attempt, RunState, Status, StepState, Summary};
