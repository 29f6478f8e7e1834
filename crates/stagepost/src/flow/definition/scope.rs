//! What conditions and references can see when a step begins.

use serde_json::{Map, Value, json};

use super::StepId;
use crate::model::StepStatus;

/// What is known when a step begins, as one JSON document: `input`, each finished step under its id, and within a
/// `for_each` also `item` and `index`.
#[derive(Debug, Clone, PartialEq)]
pub struct Scope(Map<String, Value>);

/// What a finished step left for those after it.
#[derive(Debug, Clone, PartialEq)]
pub struct StepResult {
    /// How it ended.
    pub status: StepStatus,
    /// Its exit code, if it ran and was not ended by a signal.
    pub exit: Option<i32>,
    /// Which attempt that was, from 1.
    pub attempt: u32,
    /// What it handed on; null if nothing.
    pub output: Value,
}

impl Scope {
    /// Starts with what the run was given.
    pub fn new(input: Value) -> Self {
        Self(Map::from_iter([("input".to_owned(), input)]))
    }

    /// Adds a finished step: its output as `ID.output`, the members of that (if it is an object) also directly below
    /// the id, and over them `status`, `exit` and `attempt`.
    pub fn add(&mut self, step: &StepId, result: &StepResult) {
        let mut members = result.output.as_object().cloned().unwrap_or_default();
        members.insert("output".to_owned(), result.output.clone());
        members.insert("status".to_owned(), json!(result.status));
        members.insert("exit".to_owned(), json!(result.exit));
        members.insert("attempt".to_owned(), json!(result.attempt));
        self.0.insert(step.as_str().to_owned(), Value::Object(members));
    }

    /// Adds what the step is done for now.
    pub fn for_item(&self, index: usize, item: Value) -> Self {
        let mut members = self.0.clone();
        members.insert("item".to_owned(), item);
        members.insert("index".to_owned(), json!(index));
        Self(members)
    }

    /// Returns the document.
    pub fn document(&self) -> Value {
        Value::Object(self.0.clone())
    }
}
