//! What going on with a run gives up at once, although it holds now: an answer that was given meanwhile leads back, or
//! whoever drove the run was killed before it went where a result led. Nothing is changed.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde_json::Value;

use super::Error;
use super::ask::{answer, gate_id, prompt};
use super::definition::{Action as Does, Flow};
use super::schedule::{Action, Event, Known, Schedule, Unit};
use crate::gate::{self, Gates, Verdict};
use crate::model::{RunId, StepStatus};
use crate::project::Project;

/// Finds the steps that are given up before anything is done, and why. The schedule decides, as it will.
pub(super) fn given_up_at_once(
    project: &Project,
    id: &RunId,
    flow: &Flow,
    input: &Value,
    known: HashMap<String, Known>,
) -> Result<BTreeMap<String, String>, Error> {
    let mut given_up = BTreeMap::new();
    let mut schedule = Schedule::new(flow, input.clone(), 1, known);
    let mut actions = VecDeque::from(schedule.decide(Event::Begin));
    while let Some(action) = actions.pop_front() {
        let event = match action {
            Action::Void { steps, why, .. } => {
                given_up.extend(steps.into_iter().map(|step| (step, why.clone())));
                continue;
            }
            Action::Skip { unit, attempt } => skipped(unit, attempt),
            Action::Ask { step, attempt, generation } => {
                let document = schedule.scope(step).document();
                match answered(project, id, flow, step, attempt, generation, &document)? {
                    Some(event) => event,
                    None => Event::Unanswered { step, gate: String::new() },
                }
            }
            // What comes of these nobody knows.
            _ => continue,
        };
        actions.extend(schedule.decide(event));
    }
    Ok(given_up)
}

fn skipped(unit: Unit, attempt: u32) -> Event {
    Event::Ended {
        unit,
        attempt,
        status: StepStatus::Skipped,
        exit: None,
        output: Value::Null,
        error: None,
        hopeless: true,
    }
}

/// The answer to the question of a step, if there is one to just what would be asked now.
fn answered(
    project: &Project,
    id: &RunId,
    flow: &Flow,
    step: usize,
    attempt: u32,
    generation: u32,
    document: &Value,
) -> Result<Option<Event>, Error> {
    let Does::Ask(ask) = &flow.steps[step].action else { return Ok(None) };
    let Some(prompt) = prompt(ask, document).ok().and_then(|prompt| prompt.complete().ok()) else {
        return Ok(None);
    };
    let gate = match Gates::of(project).get(&gate_id(id, flow.steps[step].id.as_str(), generation)) {
        Ok(gate) if gate.shown == prompt.shown() => gate,
        Ok(_) | Err(gate::Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let agreed = gate.verdict() == Verdict::Yes;
    let event = |action| Event::Answered { step, attempt, action, agreed, output: answer(&gate) };
    Ok(gate.action().map(event))
}
