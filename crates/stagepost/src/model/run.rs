//! One attempt at something.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{CheckpointId, Hash, RunId, RunKind, Timestamp, canonical, seal};

/// One attempt at something: the line that checkpoints stand on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The name, unique in the project.
    pub id: RunId,
    /// What it is an attempt at.
    pub kind: RunKind,
    /// When it was started.
    pub created_at: Timestamp,
    /// What it is about, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What else its maker wants to keep with it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The checkpoint whose past this run shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<CheckpointId>,
}

impl Run {
    /// Makes a run that has nothing but its name and kind.
    pub fn new(id: RunId, kind: RunKind, created_at: Timestamp) -> Self {
        Self { id, kind, created_at, description: String::new(), metadata: Map::new(), forked_from: None }
    }

    /// Computes the seal that the first checkpoint of the run is chained to.
    pub fn seal(&self) -> Hash {
        let record = serde_json::to_value(self).expect("a run has string keys only");
        seal::seal(seal::RUN, None, |out| out.push_str(&canonical(&record)))
    }
}
