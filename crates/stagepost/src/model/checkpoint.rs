//! An immutable, sealed record of a point in a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Artifact, CheckpointId, Hash, Kind, Label, RunId, Snapshot, Timestamp, canonical, seal};

/// A checkpoint as its maker describes it, before it has its place in the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The id.
    pub id: CheckpointId,
    /// The run it belongs to.
    pub run: RunId,
    /// What it follows.
    pub parent: Parent,
    /// When it was made.
    pub created_at: Timestamp,
    /// What it holds.
    pub content: Content,
}

/// What a new checkpoint follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Parent {
    /// The newest checkpoint of the run, if there is one.
    #[default]
    Head,
    /// A certain checkpoint, also of another run: a fork.
    Checkpoint(CheckpointId),
}

/// What a checkpoint holds, apart from its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Content {
    /// What point of the run it marks.
    pub kind: Kind,
    /// What it is, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Names given to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
    /// What else its maker wants to keep with it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The files as they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
    /// Its named payloads, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
}

impl Content {
    /// Makes content of the given kind that holds nothing yet.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            description: String::new(),
            labels: Vec::new(),
            metadata: Map::new(),
            snapshot: None,
            artifacts: Vec::new(),
        }
    }
}

/// An immutable, sealed record of a point in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// The id.
    pub id: CheckpointId,
    /// The run it belongs to.
    pub run: RunId,
    /// Its number in the run, from 1, without gaps.
    pub seq: u64,
    /// What it follows: the checkpoint before it in the run, or the one it was forked from.
    pub parent: Option<CheckpointId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// What it holds.
    #[serde(flatten)]
    pub content: Content,
    /// The hash over all the above and the parent's seal.
    pub seal: Hash,
}

impl Checkpoint {
    /// Gives a draft its place and seals it. `before` is the parent's seal, or the run's for a first checkpoint.
    pub fn seal(draft: Draft, seq: u64, parent: Option<CheckpointId>, before: &Hash) -> Self {
        let Draft { id, run, parent: _, created_at, content } = draft;
        let mut sealed = Self { id, run, seq, parent, created_at, content, seal: Hash::from_bytes([0; 32]) };
        sealed.seal = sealed.expected_seal(before);
        sealed
    }

    /// Computes the seal that this record must carry after `before`.
    pub fn expected_seal(&self, before: &Hash) -> Hash {
        let mut record = serde_json::to_value(self).expect("a checkpoint has string keys only");
        if let Some(members) = record.as_object_mut() {
            members.shift_remove("seal");
        }
        seal::seal(seal::CHECKPOINT, &canonical(&record), Some(before))
    }

    /// Finds an artifact by name.
    pub fn artifact(&self, name: &str) -> Option<&Artifact> {
        self.content.artifacts.iter().find(|artifact| artifact.name.as_str() == name)
    }

    /// Says whether someone called this point good: by label, or by what it marks.
    pub fn is_good(&self) -> bool {
        self.content.kind.is_good() || self.content.labels.iter().any(|label| label.name() == Label::GOOD)
    }
}

/// What is left of a checkpoint that was pruned: enough for the chain to verify.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stub {
    /// The id.
    pub id: CheckpointId,
    /// The run it belonged to.
    pub run: RunId,
    /// Its number in the run.
    pub seq: u64,
    /// Its seal.
    pub seal: Hash,
}
