//! Two iterations side by side.

use serde::Serialize;
use serde_json::Value;

use super::Error;
use super::history::{History, Iteration};
use crate::formats::plans::{self, Scored};
use crate::model::{CheckpointId, RunId};
use crate::project::{Change, Project, json_changes};

/// Two iterations side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// One.
    pub a: Side,
    /// The other.
    pub b: Side,
    /// The parts of their scores, by name.
    pub breakdown: Vec<Shift>,
    /// What differs between the plans.
    pub changes: Vec<Change>,
}

/// One of the iterations that are compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// Its run.
    pub run: RunId,
    /// Its number.
    pub iteration: u32,
    /// Where its plan is recorded.
    pub checkpoint: Option<CheckpointId>,
    /// What the judge thinks; `None` if it was not judged.
    #[serde(flatten)]
    pub scored: Option<Scored>,
    /// What the planner was told.
    pub feedback: Value,
}

/// A part of a score on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shift {
    /// Its name.
    pub name: String,
    /// On one side.
    pub a: Option<f64>,
    /// On the other.
    pub b: Option<f64>,
}

/// Compares two iterations, also of different runs.
pub fn compare(project: &Project, a: (&RunId, u32), b: (&RunId, u32)) -> Result<Comparison, Error> {
    let first = History::read(project, a.0)?;
    let other = if a.0 == b.0 { None } else { Some(History::read(project, b.0)?) };
    let second = other.as_ref().unwrap_or(&first);
    let (one, two) = (first.iteration(a.1)?, second.iteration(b.1)?);
    let blob = |one: &Iteration| one.raw.as_ref()?.artifact(plans::RAW).map(|artifact| artifact.blob);
    let changes = if blob(one).is_some() && blob(one) == blob(two) {
        Vec::new()
    } else {
        json_changes(&first.plan(project, one)?, &second.plan(project, two)?)
    };
    Ok(Comparison { a: side(&first, one), b: side(second, two), breakdown: breakdown(one, two), changes })
}

fn side(history: &History, one: &Iteration) -> Side {
    Side {
        run: history.run.id.clone(),
        iteration: one.number,
        checkpoint: one.raw.as_ref().map(|raw| raw.id),
        scored: one.judgement.as_ref().map(|said| said.scored),
        feedback: feedback(one),
    }
}

fn feedback(one: &Iteration) -> Value {
    match (&one.judgement, &one.validation) {
        (Some(said), _) => plans::feedback(&said.evaluation),
        (None, Some(said)) if !said.valid => said.errors.clone().into(),
        _ => Value::Null,
    }
}

fn breakdown(a: &Iteration, b: &Iteration) -> Vec<Shift> {
    let parts = |one: &Iteration| {
        one.judgement.as_ref().map(|said| plans::breakdown(&said.evaluation)).unwrap_or_default()
    };
    let (one, two) = (parts(a), parts(b));
    let value = |parts: &[(String, f64)], name: &str| {
        parts.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    };
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in one.iter().chain(&two) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
        .into_iter()
        .map(|name| Shift { name: name.clone(), a: value(&one, name), b: value(&two, name) })
        .collect()
}
