//! What is kept with the end of an attempt, beside its payloads: the metadata of its checkpoint.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Fingerprint;

/// The artifact that holds the result of a step, as JSON.
pub const RESULT: &str = "result";
/// The artifact that holds what a program printed, as far as it was kept.
pub const OUTPUT: &str = "output";
/// Files that a step declares are artifacts under this folder.
pub const FILES: &str = "files/";

/// What is kept with the end of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// How long it took, in microseconds.
    pub took_us: u64,
    /// The exit code of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The signal that its program died of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Its time was over.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// What went wrong, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Something odd that does not make it fail, such as processes that were left behind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How much its program printed in all, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub printed: Option<u64>,
    /// Which attempts of other steps it was made from.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub consumed: BTreeMap<String, u32>,
    /// What it was made from otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
    /// The modes of the files that it left, by their names, as far as they say who may read, write and execute them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub modes: BTreeMap<String, u32>,
    /// It failed for good, and the run went on as it was told to: that is its result.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub went_on: bool,
    /// It failed for good, and the files are to go back to where it began.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rolls_back: bool,
    /// Where it led instead of to what comes after it: a step, or `end`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub led_to: Option<String>,
    /// The gate that was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
}

impl Record {
    /// Makes the metadata of a checkpoint.
    pub(super) fn metadata(&self) -> Map<String, Value> {
        if *self == (Self { took_us: self.took_us, ..Self::default() }) {
            return Map::from_iter([("took_us".to_owned(), self.took_us.into())]);
        }
        match serde_json::to_value(self) {
            Ok(Value::Object(members)) => members,
            _ => unreachable!("a record is an object with string keys"),
        }
    }

    /// Reads the metadata of a checkpoint; what somebody else wrote there says nothing.
    pub(super) fn of(metadata: &Map<String, Value>) -> Self {
        if let Some(took) = metadata.get("took_us").filter(|_| metadata.len() == 1) {
            return Self { took_us: took.as_u64().unwrap_or(0), ..Self::default() };
        }
        serde_json::from_value(Value::Object(metadata.clone())).unwrap_or_default()
    }

    /// How long it took.
    pub fn took(&self) -> Duration {
        Duration::from_micros(self.took_us)
    }
}
