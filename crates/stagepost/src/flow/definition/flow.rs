//! The whole of a flow file.

use serde_json::Value;

use super::{Step, StepId};

/// A flow: what its file says, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// What it is called.
    pub name: String,
    /// What it is for, in words.
    pub description: String,
    /// What the steps are given to begin with; [`Flow::input_with`] puts what a caller gives over it.
    pub input: Value,
    /// How much of a run is kept.
    pub retention: Retention,
    /// Whether files that other tools read are published after each step.
    pub view: bool,
    /// The steps, in the order of the file. The environment of the flow is part of each.
    pub steps: Vec<Step>,
}

/// How much of a run is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// So many checkpoints of a run are kept, beside those that are needed to resume.
    pub keep_last: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { keep_last: 5 }
    }
}

impl Flow {
    /// Finds a step.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id.as_str() == id)
    }

    /// Returns the number of a step, from 1, in the order of the file.
    pub fn number(&self, id: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.id.as_str() == id).map(|index| index + 1)
    }

    /// Returns the steps that need `id` directly.
    pub fn dependents<'f>(&'f self, id: &'f StepId) -> impl Iterator<Item = &'f Step> {
        self.steps.iter().filter(move |step| step.needs.contains(id))
    }

    /// Returns the steps so that each comes after what it needs, and otherwise as in the file.
    pub fn order(&self) -> Vec<&Step> {
        let order = super::graph::order(&self.steps).expect("needs that form a circle are refused when read");
        order.into_iter().map(|index| &self.steps[index]).collect()
    }

    /// Puts what a caller gives over the input of the file: member by member where both are objects.
    pub fn input_with(&self, given: Option<Value>) -> Value {
        match (self.input.clone(), given) {
            (input, None) => input,
            (Value::Object(mut input), Some(Value::Object(given))) => {
                input.extend(given);
                Value::Object(input)
            }
            (_, Some(given)) => given,
        }
    }
}
