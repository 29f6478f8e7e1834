//! Checkpoints for AI-agent work.

pub mod model;
pub mod reply;
