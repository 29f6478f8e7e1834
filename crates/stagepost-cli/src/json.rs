//! What `--json` prints. These shapes are as stable as an API; `stagepost schema` prints their JSON Schemas.

use schemars::JsonSchema;
use serde::Serialize;
use stagepost::model::{Checkpoint, CheckpointId};

use crate::failure::Failure;

/// The version of these shapes.
pub(crate) const SCHEMA: u32 = 1;

/// Printed by `save` and `show`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CheckpointOutput<'a> {
    pub(crate) schema: u32,
    pub(crate) checkpoint: &'a Checkpoint,
    /// Whether it stays whatever the policy of `gc` says.
    pub(crate) pinned: bool,
}

/// Printed by `log`, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LogOutput<'a> {
    pub(crate) schema: u32,
    pub(crate) checkpoints: &'a [Checkpoint],
    /// Those of them that are pinned.
    pub(crate) pinned: &'a [CheckpointId],
    /// Records that are not as they were written, and are not among the checkpoints.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) damaged: &'a [DamagedRecord],
}

/// A record that is not as it was written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DamagedRecord {
    /// Its place in the store.
    pub(crate) position: u64,
    /// What is wrong with it.
    pub(crate) what: String,
}

/// Printed when a command fails.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorOutput {
    schema: u32,
    error: ErrorBody,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ErrorBody {
    /// `failed`, `usage`, `not_found`, `refused`, `integrity`, `waiting`, `declined`, `busy` or `interrupted`.
    code: String,
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl From<&Failure> for ErrorOutput {
    fn from(failure: &Failure) -> Self {
        let Failure { code, message, causes, hint } = failure;
        let body = ErrorBody {
            code: code.name().to_owned(),
            message: message.clone(),
            causes: causes.clone(),
            hint: hint.clone(),
        };
        Self { schema: SCHEMA, error: body }
    }
}

/// Any other result: its members beside the version.
#[derive(Debug, Serialize)]
pub(crate) struct Output<T: Serialize> {
    schema: u32,
    #[serde(flatten)]
    body: T,
}

impl<T: Serialize> Output<T> {
    pub(crate) fn new(body: T) -> Self {
        Self { schema: SCHEMA, body }
    }
}
