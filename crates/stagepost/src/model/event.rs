//! Things that happened beside checkpoints: notes, restores, pins, prunings, answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Hash, Timestamp, canonical, seal};

/// Something that happened. Events are appended and never changed; what is true now is derived from them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// What sort of thing happened.
    pub topic: Topic,
    /// What it happened to, such as a checkpoint id or a run id. Events of one topic and key form a line.
    pub key: String,
    /// When it happened.
    pub at: Timestamp,
    /// The details.
    pub body: Value,
}

impl Event {
    /// Computes the seal of the event.
    pub fn seal(&self) -> Hash {
        let record = serde_json::to_value(self).expect("an event has string keys only");
        seal::seal(seal::EVENT, None, |out| out.push_str(&canonical(&record)))
    }
}

/// The line of [`Topic::Gate`] that says which gates wait, so that nobody has to read all that were ever asked. No gate
/// can be called so.
pub const WAITING_GATES: &str = ".waiting";

/// What sort of thing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Topic {
    /// A line of progress; keyed by run.
    Note,
    /// A checkpoint was pinned or unpinned; keyed by checkpoint.
    Pin,
    /// Checkpoints were pruned to stubs; keyed by the word `gc`.
    Prune,
    /// A restore began or ended; keyed by the worktree it changed.
    Restore,
    /// A gate was asked, answered, cancelled or reopened; keyed by gate.
    Gate,
    /// A run began, stopped or ended; keyed by run.
    Run,
    /// Something was imported; keyed by its source.
    Import,
    /// A checkpoint with a commit or tag began, or was taken back; keyed by the worktree.
    Mark,
}

impl Topic {
    /// Returns the name used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Topic::Note => "note",
            Topic::Pin => "pin",
            Topic::Prune => "prune",
            Topic::Restore => "restore",
            Topic::Gate => "gate",
            Topic::Run => "run",
            Topic::Import => "import",
            Topic::Mark => "mark",
        }
    }
}
