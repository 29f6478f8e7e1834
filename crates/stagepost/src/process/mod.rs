//! Running another program: in a process group of its own, bounded in time and in what is kept of its output.
//!
//! It knows neither runs nor steps. What always holds: when [`run`] returns, no process of the program's group is alive,
//! however it ended, and if it was ended, none that it started elsewhere and that can be told by its parents. A process that
//! left the group can be found by a mark in its environment ([`marked`]), and a
//! [`Guard`] ends those that are marked when this process is killed.

mod cancel;
mod captured;
mod family;
mod group;
mod guard;
mod program;
mod run;

pub use cancel::Cancel;
pub use captured::Captured;
pub use group::{Identity, ask_to_stop, end_group, end_left, end_marked, marked};
pub use guard::Guard;
pub use program::{Limits, Program};
pub use run::{Ended, Error, Finished, Output, run};
