//! Flows: steps whose results survive whoever runs them.
//!
//! In code, start at [`Run::open`] and [`Run::step`]: a step that was completed returns its recorded result and is not
//! run again. Flow files are read by [`Source::read`] and driven by [`Flows`]. How a run stands is never written down;
//! [`RunState`] tells it from the [`History`].
//!
//! What always holds:
//! - The end of an attempt, with its result, its payloads and how it ended, is one checkpoint: all of it is there, or
//!   none. When [`Run::step`] returns, it is durable.
//! - One process drives a run. It holds a kernel lock that dies with it, so a run that was killed is known by that, not by
//!   a time or a word in a file.
//! - That an attempt began survives the process, so attempts are counted on and what is left of them is ended first.
//! - A result that holds no more stays in the history.

pub mod definition;

mod fingerprint;
mod happened;
mod history;
mod kept;
mod outline;
mod record;
mod state;

mod attempts;
mod ended;
mod hold;
mod memory;
mod prune;
mod run;

mod made_of;
mod put_back;
mod redact;
mod reuse;
mod schedule;
mod watch;

mod ask;
mod attempt;
mod flows;
mod foresee;
mod refine;
mod resume;
mod rollback;
mod runner;

pub mod cleanup;
pub mod view;

mod export;

mod error;

pub use error::Error;
pub use export::export;
pub use fingerprint::Fingerprint;
pub use flows::{Flows, Source};
pub use happened::{Accepted, Definition, End, Happened};
pub use history::{History, Moment};
pub use hold::{begun, driver, is_driven};
pub use outline::Outline;
pub use record::{FILES, OUTPUT, RESULT, Record};
pub use resume::{Again, Decided, Resume};
pub use reuse::{Plan, Planned, Verdict};
pub use run::{Options, Run, StepOptions, Within};
pub use runner::{Drive, Outcome};
pub use state::{Attempt, RunState, Status, StepState, Summary};
pub use watch::{Progress, Unwatched, Watch};
