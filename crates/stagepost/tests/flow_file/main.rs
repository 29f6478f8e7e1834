//! Flow files: what they say, what is wrong with them and where, how they look as a graph, and their runs as the files
//! of the design they follow.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "a test says why it was skipped")]

mod conditions;
mod faults;
mod graphs;
mod reading;

mod cleanups;
mod imports;
mod support;
mod views;
