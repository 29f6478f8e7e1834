//! What a gate is called.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{CheckpointId, InvalidId, RunId};

/// Names a gate within a project. The same characters are allowed as in the name of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct GateId(RunId);

impl GateId {
    /// Checks `text` and makes it the name of a gate.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
        RunId::new(text).map(Self).map_err(|fault| fault.named("the name of a gate"))
    }

    /// Makes a short name from an id that was never used: its random end.
    pub(super) fn fresh(id: &CheckpointId) -> Self {
        let digits = id.as_uuid().simple().to_string();
        Self::new(&digits[digits.len() - 8..]).expect("hexadecimal digits are a name")
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for GateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for GateId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Self::new(text)
    }
}
