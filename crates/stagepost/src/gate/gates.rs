//! The gates of a project: asked, found, listed, withdrawn.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::record::{Deadline, Moment, Of, Origin};
use super::{Error, Gate, GateId, Outcome, Prompt, State};
use crate::model::{CheckpointId, Event, Kind, Run, RunId, RunKind, Timestamp, Topic, WAITING_GATES};
use crate::project::{Files, Project, Save};
use crate::store::{Batch, EventQuery, Expect, NewEntry};

/// The gates of a project.
#[derive(Debug, Clone, Copy)]
pub struct Gates<'p> {
    pub(super) project: &'p Project,
}

/// What to ask, and for whom.
#[derive(Debug, Clone)]
pub struct Ask {
    /// What to call the gate; without a name it gets a new one.
    pub id: Option<GateId>,
    /// The run that waits for it; without one the gate stands by itself.
    pub run: Option<(RunId, RunKind)>,
    /// What is asked.
    pub prompt: Prompt,
    /// How long to wait for an answer, and what it counts as if there is none.
    pub expires: Option<(Duration, Outcome)>,
    /// Whether the files are captured, so that going back can put them back.
    pub files: bool,
}

impl Ask {
    /// Asks something that stands by itself and does not expire.
    pub fn new(prompt: Prompt) -> Self {
        Self { id: None, run: None, prompt, expires: None, files: false }
    }

    /// Gives the gate a name: asking the same thing again under it finds the answer.
    #[must_use]
    pub fn named(mut self, id: GateId) -> Self {
        self.id = Some(id);
        self
    }

    /// Says which run waits for it.
    #[must_use]
    pub fn of(mut self, run: RunId, kind: RunKind) -> Self {
        self.run = Some((run, kind));
        self
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Index {
    waiting: Vec<GateId>,
}

/// So many losses in a row mean that something else is wrong.
const MOST_RETRIES: usize = 200;

impl<'p> Gates<'p> {
    /// The gates of `project`.
    pub fn of(project: &'p Project) -> Self {
        Self { project }
    }

    /// Asks: when this returns, the question is stored and can be answered from anywhere.
    ///
    /// Where a gate of that name exists and asked the same, it is returned as it stands, with its answer: a run that
    /// was killed finds what it had asked. If what is shown changed since, it is asked again, and an answer to what was
    /// shown before does not hold.
    pub fn ask(&self, ask: Ask) -> Result<Gate, Error> {
        let prompt = ask.prompt.clone().complete()?;
        let shown = prompt.shown();
        let id = ask.id.clone().map_or_else(|| self.unused_id(), Ok)?;
        self.until_won(|| {
            let known = self.find(&id)?;
            if let Some(gate) = known.as_ref().filter(|gate| gate.shown == shown)
                && !matches!(gate.state, State::Void { .. })
            {
                return Ok(gate.clone());
            }
            if known.is_none() && id.as_str().starts_with('@') {
                let what =
                    format!("`{id}` cannot be the name of a gate: `@` is short for the one that waits");
                return Err(Error::Invalid { what });
            }
            self.store_question(&id, known.as_ref(), &ask, &prompt)?;
            self.get(&id)
        })
    }

    /// A new name. One that is taken by chance must not bring its answer along.
    fn unused_id(&self) -> Result<GateId, Error> {
        loop {
            let id = GateId::fresh(&self.project.context().ids.checkpoint(self.now()));
            if self.find(&id)?.is_none() {
                return Ok(id);
            }
        }
    }

    fn store_question(
        &self,
        id: &GateId,
        known: Option<&Gate>,
        ask: &Ask,
        prompt: &Prompt,
    ) -> Result<(), Error> {
        let now = self.now();
        let of = self.run_for(ask)?;
        let files = ask.files.then(|| self.project.context().ids.checkpoint(now));
        let moment = Moment::Asked {
            prompt: Box::new(prompt.without_tokens()),
            of: of.clone(),
            by: self.project.context().who.clone(),
            shown: prompt.shown(),
            deadline: ask.expires.map(|(after, outcome)| deadline(now, after, outcome)),
            files,
        };
        let line = Line { id, position: known.map_or(0, |gate| gate.position) };
        self.append(&line, &of, moment, Some(true), files.map(|files| (files, "asked".to_owned())))
    }

    fn run_for(&self, ask: &Ask) -> Result<Of, Error> {
        let Some((run, kind)) = &ask.run else {
            return Ok(Of { run: self.project.adhoc_run(), kind: RunKind::Adhoc, alone: true });
        };
        if *run != self.project.adhoc_run() {
            self.project.check_new_run(run)?;
        }
        let known = self.project.store().run(run)?;
        Ok(Of { run: run.clone(), kind: known.map_or(*kind, |run| run.kind), alone: false })
    }

    /// Finds a gate by its whole name.
    pub fn get(&self, id: &GateId) -> Result<Gate, Error> {
        self.find(id)?.ok_or_else(|| Error::NotFound { name: id.to_string() })
    }

    pub(super) fn find(&self, id: &GateId) -> Result<Option<Gate>, Error> {
        let query = EventQuery { topic: Topic::Gate, key: Some(id.to_string()), last: None };
        Gate::of_events(id, self.project.store().events(&query)?)
    }

    /// Finds the gate that a person means: by its name or the start of it, or `@` for the only one that waits.
    pub fn resolve(&self, name: &str) -> Result<Gate, Error> {
        let not_found = || Error::NotFound { name: name.to_owned() };
        if name != "@"
            && let Some(gate) = GateId::new(name).ok().map(|id| self.find(&id)).transpose()?.flatten()
        {
            return Ok(gate);
        }
        let starts = |id: &GateId| name == "@" || (!name.is_empty() && id.as_str().starts_with(name));
        let waiting = self.known_to_wait()?.into_iter().map(|gate| gate.id);
        let mut candidates: Vec<GateId> = waiting.filter(starts).collect();
        if candidates.is_empty() && name != "@" {
            candidates = self.all()?.into_iter().map(|gate| gate.id).filter(starts).collect();
        }
        match &candidates[..] {
            [] => Err(not_found()),
            [only] => self.get(only),
            _ => Err(Error::Ambiguous { name: name.to_owned(), candidates }),
        }
    }

    /// Lists the gates that wait, in the order in which they were asked. It takes the same time whatever the history.
    pub fn waiting(&self) -> Result<Vec<Gate>, Error> {
        let now = self.now();
        let settled = |gate: Gate| if gate.is_due(now) { self.settled(&gate.id) } else { Ok(gate) };
        let gates = self.known_to_wait()?.into_iter().map(settled).collect::<Result<Vec<_>, _>>()?;
        Ok(gates.into_iter().filter(Gate::is_waiting).collect())
    }

    /// The gates of the list of those that wait. Earlier versions wrote `***` there for a name that looked like a token: what
    /// is not known is passed over.
    fn known_to_wait(&self) -> Result<Vec<Gate>, Error> {
        let mut known = Vec::new();
        for id in self.index()?.1 {
            known.extend(self.find(&id)?);
        }
        Ok(known)
    }

    /// Lists every gate there ever was, in the order in which they were first asked.
    pub fn all(&self) -> Result<Vec<Gate>, Error> {
        let mut lines: BTreeMap<String, Vec<(u64, Event)>> = BTreeMap::new();
        for (position, event) in self.project.store().events(&EventQuery::all(Topic::Gate))? {
            if event.key != WAITING_GATES {
                lines.entry(event.key.clone()).or_default().push((position, event));
            }
        }
        let mut gates = Vec::with_capacity(lines.len());
        for (key, events) in lines {
            let first = events.first().map_or(0, |(position, _)| *position);
            let id = GateId::new(&key).map_err(|_| Error::NotFound { name: key })?;
            gates.extend(Gate::of_events(&id, events)?.map(|gate| (first, gate)));
        }
        gates.sort_by_key(|(first, _)| *first);
        Ok(gates.into_iter().map(|(_, gate)| gate).collect())
    }

    /// Lists what happened to a gate, oldest first.
    pub fn history(&self, id: &GateId) -> Result<Vec<(Timestamp, Moment)>, Error> {
        let query = EventQuery { topic: Topic::Gate, key: Some(id.to_string()), last: None };
        let unreadable = |source| Error::Unreadable { id: id.to_string(), source };
        let events = self.project.store().events(&query)?.into_iter();
        events
            .map(|(_, event)| Ok((event.at, serde_json::from_value(event.body).map_err(unreadable)?)))
            .collect()
    }

    /// Withdraws a question.
    pub fn cancel(&self, id: &GateId, why: &str, origin: Origin) -> Result<Gate, Error> {
        self.until_won(|| {
            let gate = self.settled(id)?;
            if let Some(error) = gate.too_late() {
                return Err(error);
            }
            let by = self.project.context().who.clone();
            self.conclude(&gate, "cancelled", |checkpoint| Moment::Cancelled {
                by,
                why: why.to_owned(),
                origin,
                checkpoint,
            })?;
            self.get(id)
        })
    }

    /// Returns a gate; one whose time is over has that written down first.
    pub fn settled(&self, id: &GateId) -> Result<Gate, Error> {
        self.until_won(|| {
            let gate = self.get(id)?;
            let Some(deadline) = gate.deadline.filter(|_| gate.is_due(self.now())) else { return Ok(gate) };
            let outcome = deadline.outcome;
            self.conclude(&gate, &format!("expired, {}", outcome.name()), |checkpoint| Moment::Expired {
                outcome,
                origin: Origin::Timeout,
                checkpoint,
            })?;
            self.get(id)
        })
    }

    pub(super) fn now(&self) -> Timestamp {
        self.project.context().clock.now()
    }

    /// Writes down how a gate ended, with a checkpoint of its run, unless something else happened to it meanwhile.
    pub(super) fn conclude(
        &self,
        gate: &Gate,
        answer: &str,
        moment: impl FnOnce(CheckpointId) -> Moment,
    ) -> Result<(), Error> {
        let checkpoint = self.project.context().ids.checkpoint(self.now());
        let line = Line { id: &gate.id, position: gate.position };
        self.append(&line, &gate.of, moment(checkpoint), Some(false), Some((checkpoint, answer.to_owned())))
    }

    /// Appends one moment to the line of a gate, in one step with the list of those that wait and, where there is
    /// one, the checkpoint of it.
    pub(super) fn append(
        &self,
        line: &Line<'_>,
        of: &Of,
        moment: Moment,
        waits: Option<bool>,
        checkpoint: Option<(CheckpointId, String)>,
    ) -> Result<(), Error> {
        let mut expect = vec![line.expect()];
        let is_question = matches!(moment, Moment::Asked { .. });
        let metadata = metadata(&moment);
        let mut events = vec![self.event(line.id.as_str(), &moment)];
        if let Some(waits) = waits {
            let (expected, event) = self.index_with(&[(line.id.clone(), waits)])?;
            expect.push(expected);
            events.push(event);
        }
        let Some((id, answer)) = checkpoint else {
            let run = NewEntry::Run(Run::new(of.run.clone(), of.kind, self.now()));
            let entries = std::iter::once(run).chain(events.into_iter().map(NewEntry::Event)).collect();
            self.project.store().write(Batch { entries, expect, ..Batch::default() })?;
            return Ok(());
        };
        self.project.save(Save {
            run: Some((of.run.clone(), of.kind)),
            description: format!("gate {}: {answer}", line.id),
            kind: Some(Kind::Decision { gate: line.id.to_string(), answer }),
            metadata,
            files: is_question.then(Files::default),
            id: Some(id),
            events,
            expect,
            ..Save::default()
        })?;
        Ok(())
    }

    pub(super) fn event(&self, key: &str, body: &impl Serialize) -> Event {
        let body = serde_json::to_value(body).expect("what happens to a gate has string keys only");
        Event { topic: Topic::Gate, key: key.to_owned(), at: self.now(), body }
    }

    /// Which gates wait, and where that is written.
    fn index(&self) -> Result<(u64, Vec<GateId>), Error> {
        let Some((position, event)) =
            self.project.store().events(&EventQuery::latest(Topic::Gate, WAITING_GATES))?.pop()
        else {
            return Ok((0, Vec::new()));
        };
        let unreadable = |source| Error::Unreadable { id: WAITING_GATES.to_owned(), source };
        let index: Index = serde_json::from_value(event.body).map_err(unreadable)?;
        Ok((position, index.waiting))
    }

    /// The list of those that wait after some changed, and that it must not have changed otherwise.
    pub(super) fn index_with(&self, changed: &[(GateId, bool)]) -> Result<(Expect, Event), Error> {
        let (position, mut waiting) = self.index()?;
        waiting.retain(|id| changed.iter().all(|(other, _)| other != id));
        waiting.extend(changed.iter().filter(|(_, waits)| *waits).map(|(id, _)| id.clone()));
        let expect = Expect::LatestEvent(Topic::Gate, WAITING_GATES.to_owned(), position);
        Ok((expect, self.event(WAITING_GATES, &Index { waiting })))
    }

    /// Looks and writes again whenever somebody else wrote in between.
    pub(super) fn until_won<T>(&self, mut attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        let mut lost = 0;
        loop {
            match attempt() {
                Err(error) if error.is_conflict() && lost < MOST_RETRIES => lost += 1,
                other => return other,
            }
        }
    }
}

/// The line of events of one gate, and how far it was read.
pub(super) struct Line<'a> {
    pub(super) id: &'a GateId,
    pub(super) position: u64,
}

impl Line<'_> {
    pub(super) fn expect(&self) -> Expect {
        Expect::LatestEvent(Topic::Gate, self.id.to_string(), self.position)
    }
}

/// What of a moment is worth finding in the log, without looking at the gate.
fn metadata(moment: &Moment) -> serde_json::Map<String, serde_json::Value> {
    let mut metadata = serde_json::Map::new();
    if let Moment::Answered(answer) = moment {
        metadata.insert("words".to_owned(), answer.words.clone().into());
        metadata.insert("by".to_owned(), answer.by.clone().into());
        metadata.insert("origin".to_owned(), answer.origin.name().into());
        metadata.insert("because".to_owned(), answer.reply.because.clone().into());
        metadata.insert("shown".to_owned(), answer.shown.to_string().into());
        if !answer.reply.details.option_ids.is_empty() {
            metadata.insert("option_ids".to_owned(), answer.reply.details.option_ids.clone().into());
        }
    }
    metadata
}

fn deadline(now: Timestamp, after: Duration, outcome: Outcome) -> Deadline {
    let micros = i64::try_from(after.as_micros()).unwrap_or(i64::MAX);
    let at = Timestamp::from_micros(now.as_micros().saturating_add(micros));
    // A wait beyond the end of all calendars ends with them.
    Deadline { at: at.unwrap_or_else(|_| jiff::Timestamp::MAX.into()), outcome }
}
