//! Flows: steps that survive a crash.

pub mod definition;
