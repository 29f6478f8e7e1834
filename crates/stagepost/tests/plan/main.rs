//! Plans, told as stories: real stores, real programs, in temporary folders.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod files;
mod hostile;
mod imports;
mod looking;
mod recording;
mod refining;
mod resuming;
mod support;
