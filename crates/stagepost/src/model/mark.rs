//! What sessions and tasks keep with their checkpoints and runs, as typed members of the metadata.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{Checkpoint, ObjectId, Timestamp};

/// How the user's repository knows a checkpoint: the commit, and the tag that names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The commit; absent for an imported checkpoint whose commit is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<ObjectId>,
    /// The tag; absent where no tag could be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The message of the commit that was made on the branch; absent if none was needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Mark {
    const KEY: &'static str = "git";

    /// Returns the mark of a checkpoint; an empty one if it has none.
    pub fn of(checkpoint: &Checkpoint) -> Self {
        member(&checkpoint.content.metadata, Self::KEY).unwrap_or_default()
    }

    /// Puts the mark into metadata.
    pub fn put(&self, metadata: &mut Map<String, Value>) {
        put(metadata, Self::KEY, self);
    }
}

/// How far a session was. What is absent is unknown, which is not the same as none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Progress {
    /// Tasks completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_completed: Option<u64>,
    /// Decisions made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decisions_made: Option<u64>,
    /// Files modified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_modified: Option<u64>,
    /// Files created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_created: Option<u64>,
    /// Tests that pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests_passing: Option<u64>,
    /// Tests that fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests_failing: Option<u64>,
}

impl Progress {
    const KEY: &'static str = "progress";

    /// Returns the progress that a checkpoint recorded, if any.
    pub fn of(checkpoint: &Checkpoint) -> Option<Self> {
        member(&checkpoint.content.metadata, Self::KEY)
    }

    /// Puts the progress into metadata.
    pub fn put(&self, metadata: &mut Map<String, Value>) {
        put(metadata, Self::KEY, self);
    }
}

/// Where something imported comes from, and what was found wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// The format it was in.
    pub format: String,
    /// Its id there.
    pub id: String,
    /// Whether it could be trusted as it was: `ok`, or what was found.
    pub integrity: String,
    /// Where its commit was found: `recorded`, `resolved-from-tag`, `resolved-from-text` or `missing`.
    pub commit: String,
    /// Whether its time had no zone and was taken as UTC.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tz_assumed: bool,
    /// What else was noticed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Members that the format does not know, to be written again by an export.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Imported {
    const KEY: &'static str = "imported";

    /// Returns where a checkpoint was imported from, if it was.
    pub fn of(checkpoint: &Checkpoint) -> Option<Self> {
        member(&checkpoint.content.metadata, Self::KEY)
    }

    /// Puts this into metadata.
    pub fn put(&self, metadata: &mut Map<String, Value>) {
        put(metadata, Self::KEY, self);
    }
}

/// What a rollback puts back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RollbackMode {
    /// Branch and index; the files stay as they are.
    Mixed,
    /// Files, branch and index.
    Hard,
}

/// One rollback of a session, whether it succeeded or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// Its own id.
    pub id: String,
    /// When it began.
    pub at: Timestamp,
    /// The checkpoint that was asked for.
    pub checkpoint: String,
    /// What that checkpoint was, in words.
    #[serde(default)]
    pub description: String,
    /// The commit of that checkpoint.
    #[serde(default)]
    pub commit: Option<String>,
    /// What was put back.
    pub mode: RollbackMode,
    /// Where HEAD was before.
    #[serde(default)]
    pub head_before: Option<String>,
    /// Where HEAD was after.
    #[serde(default)]
    pub head_after: Option<String>,
    /// How far the session was at the checkpoint.
    #[serde(default)]
    pub progress: Option<Progress>,
    /// What forbade it.
    #[serde(default)]
    pub errors: Vec<String>,
    /// What was worth a warning.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Whether it was done.
    pub success: bool,
    /// Why it was not.
    #[serde(default)]
    pub error: Option<String>,
    /// Members of an imported one that only their writer knows.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

fn member<T: DeserializeOwned>(metadata: &Map<String, Value>, key: &str) -> Option<T> {
    metadata.get(key).and_then(|value| T::deserialize(value).ok())
}

fn put(metadata: &mut Map<String, Value>, key: &str, value: &impl Serialize) {
    let value = serde_json::to_value(value).expect("what sessions keep has string keys only");
    metadata.insert(key.to_owned(), value);
}
