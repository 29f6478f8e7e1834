//! A step that asks a person.

use serde_json::{Value, json};

use super::Error;
use super::attempt::{Attempt, Done};
use super::definition::{Action as Does, Ask, Source};
use super::runner::Runner;
use super::schedule::{Event, Unit};
use crate::gate::{self, Gate, GateId, Gates, Options, Prompt, Verdict};
use crate::model::{Hash, RunId, RunKind, StepStatus};

/// The gate of a step. Going back asks anew, under another name: the answer that was given before stays.
pub(super) fn gate_id(run: &RunId, step: &str, generation: u32) -> GateId {
    let name = match generation {
        0 => format!("{run}.{step}"),
        again => format!("{run}.{step}.{}", u64::from(again) + 1),
    };
    let short = || format!("gate-{}", &Hash::of(name.as_bytes()).to_string()[..32]);
    GateId::new(name.clone()).unwrap_or_else(|_| GateId::new(short()).expect("digits are a name"))
}

impl Runner<'_, '_> {
    /// Asks, or finds what was answered.
    pub(super) fn ask(&self, unit: Unit, attempt: &Attempt<'_>, generation: u32) -> Result<Event, Error> {
        let Does::Ask(ask) = &attempt.step.action else { unreachable!("only a question is asked") };
        let prompt = match prompt(ask, &attempt.document) {
            Ok(prompt) => prompt,
            Err(error) => return self.keep(unit, attempt, Done::refused(error)),
        };
        let gates = Gates::of(self.project);
        let id = gate_id(&self.id, &attempt.name, generation);
        let asked = gates.ask(gate::Ask {
            expires: ask.expires,
            ..gate::Ask::new(prompt).named(id.clone()).of(self.id.clone(), RunKind::Flow)
        });
        match asked {
            Ok(_) => {}
            Err(error @ gate::Error::Invalid { .. }) => {
                return self.keep(unit, attempt, Done::refused(error.to_string()));
            }
            Err(error) => return Err(error.into()),
        }
        let gate = gates.settled(&id)?;
        if gate.of.alone || gate.of.run != self.id {
            // Whoever answered that one was not asked by this run, even if the words are the same.
            let what = format!("there is a question `{id}` already, which is not of this run");
            return self.keep(unit, attempt, Done::refused(what));
        }
        let Some(action) = gate.action() else {
            return Ok(Event::Unanswered { step: unit.step, gate: id.to_string() });
        };
        let (agreed, output) = (gate.verdict() == Verdict::Yes, answer(&gate));
        if agreed || ask.on.iter().any(|(on, _)| *on == action) {
            let mut done = self.plain(attempt, StepStatus::Completed, output.clone());
            done.record.gate = Some(id.to_string());
            let led_to = ask.on.iter().find(|(on, _)| *on == action).map(|(_, target)| target);
            done.record.led_to = led_to.map(|target| target.as_str().to_owned());
            self.keep(unit, attempt, done)?;
        }
        Ok(Event::Answered { step: unit.step, attempt: attempt.number, action, agreed, output })
    }
}

/// Completes a question with what other steps left.
pub(super) fn prompt(ask: &Ask, document: &Value) -> Result<Prompt, String> {
    let mut prompt = ask.prompt.clone();
    // Whoever writes only a message that asks has written the question.
    if prompt.question.is_empty() && prompt.message.trim_end().ends_with('?') {
        prompt.question = std::mem::take(&mut prompt.message);
    }
    let find = |what: &str, source: &Option<Source>| match source {
        None => Ok(None),
        Some(source) => source
            .value(document)
            .map(Some)
            .ok_or_else(|| format!("the {what} of its question are not there")),
    };
    if let Some(data) = find("data", &ask.data)? {
        prompt.data = data;
    }
    if let Some(options) = find("options", &ask.options)? {
        let read = Options::read(&options.to_string());
        prompt.options =
            read.map_err(|error| format!("the options of its question cannot be read: {error}"))?.0;
    }
    Ok(prompt)
}

/// What an answer hands on to the steps after it.
pub(super) fn answer(gate: &Gate) -> Value {
    let action = gate.action().map(|action| action.name());
    match gate.answer() {
        Some(answer) => json!({
            "action": action,
            "words": answer.words,
            "option_ids": answer.reply.details.option_ids,
            "text": answer.reply.details.text,
            "by": answer.by,
            "gate": gate.id,
            "checkpoint": gate.checkpoint(),
        }),
        None => json!({ "action": action, "gate": gate.id, "checkpoint": gate.checkpoint() }),
    }
}
