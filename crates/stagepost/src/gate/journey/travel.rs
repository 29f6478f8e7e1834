//! Travelling: what the record says comes next is done, and recorded, until a gate waits or the end is reached.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::replay::{Next, Position, Record, replay};
use super::{Journey, Run, Task};
use crate::gate::outside::{self, MOST_OUTPUT};
use crate::gate::{self, Ask, Asker, Bounds, Gate, GateId, Gates, GoingBack, Prompt};
use crate::model::{Checkpoint, Kind, RunId, RunKind, StepStatus, beyond_64_bits};
use crate::process::{self, Ended};
use crate::project::{self, NewArtifact, Project, Save, Source, Wish};
use crate::store::{self, Expect, Query};

/// Does what is done at the stops of a journey.
pub trait Work {
    /// Does the work of a stop and returns its result. `input` holds the journey's `input`, the `results` so far by stop,
    /// and the `answers` on the way here, oldest first. It may be called again for the same visit if it was cut off.
    fn work(&mut self, stop: &str, input: &Value) -> Result<Value, Box<dyn std::error::Error + Send + Sync>>;
}

impl<F> Work for F
where
    F: FnMut(&str, &Value) -> Result<Value, Box<dyn std::error::Error + Send + Sync>>,
{
    fn work(&mut self, stop: &str, input: &Value) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        self(stop, input)
    }
}

/// Where a traveller arrived.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrived {
    /// At its end, with all results.
    AtTheEnd(serde_json::Map<String, Value>),
    /// At a gate that waits.
    Waiting(Box<Gate>),
    /// At a gate where someone gave it up.
    Stopped(Box<Gate>),
}

/// What went wrong on the way.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A gate failed.
    #[error(transparent)]
    Gate(#[from] gate::Error),
    /// Work failed; the next attempt begins with it.
    #[error("failed to do the work at `{stop}`")]
    Work {
        /// The stop.
        stop: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no such journey to give up.
    #[error("no journey `{run}` is on its way")]
    NotOnItsWay {
        /// The run that was named.
        run: RunId,
    },
}

impl From<project::Error> for Error {
    fn from(error: project::Error) -> Self {
        Error::Gate(error.into())
    }
}

/// A run of a journey.
#[derive(Debug, Clone, Copy)]
pub struct Travel<'a> {
    /// The project that keeps it.
    pub project: &'a Project,
    /// The journey.
    pub journey: &'a Journey,
    /// The run.
    pub run: &'a RunId,
    /// Whether going back also puts the files back as they were when the gate was asked.
    pub restore_files: bool,
}

/// The artifact that holds the result of work.
const RESULT: &str = "result";

impl Travel<'_> {
    /// A result that was stored, perhaps before numbers of more than 64 bits were refused.
    fn result_of(&self, checkpoint: &Checkpoint) -> Result<Value, Error> {
        let bytes = self.project.load(checkpoint, RESULT).map_err(gate::Error::from)?;
        let read = serde_json::from_slice(&bytes);
        let wrong = |source| project::Error::InvalidJson { name: RESULT.to_owned(), source };
        Ok(read.map_err(wrong).map_err(gate::Error::from)?)
    }

    /// Tells where the run stands, and does nothing.
    pub fn position(&self) -> Result<Position, Error> {
        let gates = Gates::of(self.project);
        let (mut results, mut places) = (Vec::new(), HashMap::new());
        let query = Query { run: Some(self.run.clone()), ..Query::default() };
        for checkpoint in self.project.log(&query)?.into_iter().rev() {
            places.insert(checkpoint.id, checkpoint.seq);
            if let Kind::Step { step, status: StepStatus::Completed, .. } = &checkpoint.content.kind {
                results.push((checkpoint.seq, step.clone(), self.result_of(&checkpoint)?));
            }
        }
        let find = |id: &GateId| match gates.find(id)? {
            Some(gate) => gates.settled(&gate.id).map(Some),
            None => Ok(None),
        };
        let record = Record { run: self.run, results, places, gate: &find };
        Ok(replay(self.journey, &record)?)
    }

    /// Goes on until a gate waits, the end is reached, or someone gives it up.
    pub fn go(&self, worker: &mut dyn Work, asker: &mut dyn Asker) -> Result<Arrived, Error> {
        let gates = Gates::of(self.project);
        let mut unheard = None;
        loop {
            // Read first: whoever gets in between makes the work of this round count for nothing.
            let end = self.end()?;
            let position = self.position()?;
            match &position.next {
                Next::Over { .. } => self.project.finished(self.run)?,
                // What is recorded tells where the run stands: none of it may be given up on the way.
                _ => self.project.unfinished(self.run)?,
            }
            match &position.next {
                Next::Work { stop, visit } => self.work(stop, *visit, end, &position, worker)?,
                Next::Ask { gate, prompt, .. } => {
                    let asked = self.ask(gate, prompt, &mut unheard)?;
                    let gate = gates.converse(asked, asker)?;
                    if gate.is_waiting() {
                        return Ok(Arrived::Waiting(Box::new(gate)));
                    }
                }
                Next::Back { to, .. } => drop(self.back_to(to)?),
                Next::Over { stopped_by: None } => return Ok(Arrived::AtTheEnd(position.results)),
                Next::Over { stopped_by: Some(gate) } => {
                    return Ok(Arrived::Stopped(Box::new(gates.get(gate)?)));
                }
            }
        }
    }

    /// Asks at a stop. An answer that does not count any more, because what led to it is gone, is asked for again.
    fn ask(&self, id: &GateId, prompt: &Prompt, unheard: &mut Option<GateId>) -> Result<Gate, Error> {
        let gates = Gates::of(self.project);
        let mut ask = Ask::new(prompt.clone()).named(id.clone()).of(self.run.clone(), RunKind::Adhoc);
        ask.files = self.journey.files;
        let gate = gates.ask(ask)?;
        // The first time somebody may just have answered; the second time the replay does not count it.
        if !gate.is_waiting() && unheard.replace(id.clone()).as_ref() == Some(id) {
            gates.reopen(id, "what led to the answer is gone")?;
            return Ok(gates.get(id)?);
        }
        Ok(gate)
    }

    /// Goes back to a gate: it waits again, later answers are void, and what depends on them will be done again.
    pub fn back_to(&self, gate: &GateId) -> Result<GoingBack, Error> {
        let gates = Gates::of(self.project);
        let files = gates.get(gate)?.files.filter(|_| self.restore_files);
        if let Some(files) = files {
            let target = self.project.resolve(&files.to_string())?;
            self.project.restore(&target, &Wish::default())?;
        }
        Ok(gates.reopen(gate, "someone went back")?)
    }

    /// The number of the newest checkpoint of the run.
    fn end(&self) -> Result<u64, Error> {
        let newest = self.project.store().head(self.run).map_err(gate::Error::from)?;
        Ok(newest.map_or(0, |newest| newest.seq()))
    }

    fn work(
        &self,
        stop: &str,
        visit: u32,
        end: u64,
        position: &Position,
        worker: &mut dyn Work,
    ) -> Result<(), Error> {
        let input = json!({
            "journey": self.journey.name, "run": self.run, "stop": stop, "visit": visit,
            "input": self.journey.input, "results": position.results, "answers": position.given,
        });
        let failed = |source| Error::Work { stop: stop.to_owned(), source };
        let result = worker.work(stop, &input).map_err(failed)?;
        let name = crate::model::ArtifactName::new(RESULT).expect("`result` is a name");
        let source = Source::Json(result.to_string().into_bytes());
        let known = self.project.store().run(self.run).map_err(gate::Error::from)?;
        let saved = self.project.save(Save {
            run: Some((self.run.clone(), known.map_or(RunKind::Adhoc, |run| run.kind))),
            kind: Some(Kind::Step { step: stop.to_owned(), status: StepStatus::Completed, attempt: visit }),
            description: format!("journey {}: {stop}", self.journey.name),
            artifacts: vec![NewArtifact { name, source }],
            expect: vec![Expect::Head(self.run.clone(), end)],
            ..Save::default()
        });
        match saved {
            // Whoever else drives the same run got there first: their result counts, not this one.
            Err(project::Error::Store(store::Error::Conflict { .. })) => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }
}

/// Does the work with the commands of the journey: each reads the input as JSON and writes its result as JSON.
#[derive(Debug, Clone)]
pub struct Commands<'a> {
    /// The journey.
    pub journey: &'a Journey,
    /// Where the commands run.
    pub folder: PathBuf,
    /// How long one may take where the journey does not say, and who hears what it says beside its result.
    pub bounds: Bounds,
}

type Fault = Box<dyn std::error::Error + Send + Sync>;

impl Work for Commands<'_> {
    fn work(&mut self, stop: &str, input: &Value) -> Result<Value, Fault> {
        let (run, own) = match self.journey.stop(stop).map(|stop| &stop.task) {
            Some(Task::Run { run, timeout, .. }) => (run, timeout),
            _ => return Err("no command is given for it".into()),
        };
        let mut program = match run {
            Run::Argv(argv) if !argv.is_empty() => process::Program::new(argv),
            Run::Shell(line) => process::Program::shell(line),
            _ => return Err("no command is given for it".into()),
        };
        program.folder = Some(self.folder.clone());
        program.input = input.to_string().into_bytes();
        let limit = own.or(self.journey.timeout).map(Duration::from).or(self.bounds.timeout);
        let name = program.name();
        let done = outside::run(program, &Bounds { timeout: limit, ..self.bounds })?;
        match done.ended {
            Ended::TimedOut => {
                Err(format!("`{name}` took longer than {:?} and was ended", limit.unwrap_or_default()).into())
            }
            Ended::TooMuch => read_result(&name, None),
            ended if !ended.is_success() => Err(format!("`{name}` ended with {ended}").into()),
            _ => read_result(&name, done.out),
        }
    }
}

fn read_result(name: &str, out: Option<Vec<u8>>) -> Result<Value, Fault> {
    let Some(out) = out else {
        return Err(format!("`{name}` wrote more than {} MiB", MOST_OUTPUT >> 20).into());
    };
    if let Some(number) = beyond_64_bits(&out) {
        let why = "it would be rounded: write it as a text";
        return Err(
            format!("`{name}` wrote the whole number {number} of more than 64 bits, and {why}").into()
        );
    }
    let blank = out.iter().all(u8::is_ascii_whitespace);
    let read = if blank { Ok(Value::Null) } else { serde_json::from_slice(&out) };
    Ok(read.map_err(|error| format!("what `{name}` wrote is not JSON: {error}"))?)
}
