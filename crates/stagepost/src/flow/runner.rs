//! Driving a run of a flow: one small loop carries out what the schedule decides.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Scope as Threads;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::attempt::{Attempt, Done, artifact};
use super::attempts::{self, Attempts};
use super::definition::{Action as Does, Effects, Flow, OnFailure, Step};
use super::flows::end_cancelled;
use super::happened::{End, Happened};
use super::hold::Hold;
use super::record::{RESULT, Record};
use super::redact::Secrets;
use super::rollback::{AFTER, Rollback};
use super::schedule::{Action, Event, Known, Schedule, Unit};
use super::state::RunState;
use super::view::Publisher;
use super::watch::{Progress, Watch};
use super::{Error, made_of, prune};
use crate::model::{Checkpoint, Hash, Kind, RunId, RunKind, StepStatus};
use crate::process::{self, Cancel, Guard};
use crate::project::{Files, Project, Save, Source};
use crate::store::{Batch, NewEntry};

/// How a run is driven, as the front end says.
pub struct Drive<'d> {
    /// So many programs run side by side.
    pub jobs: usize,
    /// Asks the run to stop.
    pub cancel: Cancel,
    /// Finds a secret by the name of its variable.
    pub secrets: &'d (dyn Fn(&str) -> Option<OsString> + Sync),
    /// Sees what goes on.
    pub watch: &'d dyn Watch,
    /// So many bytes of what a program prints are kept.
    pub keep_output: usize,
    /// How long a program has, once asked to stop, before it is killed.
    pub grace: Duration,
}

impl std::fmt::Debug for Drive<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive").field("jobs", &self.jobs).finish_non_exhaustive()
    }
}

impl Drive<'_> {
    /// The values of secrets, as far as they are set: none of them may be stored.
    pub(super) fn hidden<'n>(&self, names: impl IntoIterator<Item = &'n String>) -> Secrets {
        let values = names.into_iter().filter_map(|name| (self.secrets)(name));
        Secrets::new(values.map(|value| value.as_encoded_bytes().to_vec()))
    }

    /// Refuses a flow whose steps need what is not set: later it would cost what was done before them. Whether a step with a
    /// condition is done at all shows only then.
    pub(super) fn check_secrets(&self, flow: &Flow, is_to_do: impl Fn(&str) -> bool) -> Result<(), Error> {
        let is_sure = |step: &&Step| step.condition.is_none() && !matches!(step.action, Does::Ask(_));
        let mut unset: Vec<(String, String)> = Vec::new();
        for step in flow.order().into_iter().filter(is_sure).filter(|step| is_to_do(step.id.as_str())) {
            let missing = step.secrets.iter().filter(|name| (self.secrets)(name).is_none());
            let new = missing.filter(|name| !unset.iter().any(|(known, _)| known == *name));
            let new: Vec<_> = new.map(|name| (name.clone(), step.id.to_string())).collect();
            unset.extend(new);
        }
        if unset.is_empty() { Ok(()) } else { Err(Error::Unset { unset }) }
    }
}

impl<'d> Drive<'d> {
    /// One program at a time, unseen, without secrets.
    pub fn new(cancel: Cancel) -> Self {
        Self {
            jobs: 1,
            cancel,
            secrets: &|_| None,
            watch: &super::watch::Unwatched,
            keep_output: 1 << 20,
            grace: Duration::from_secs(5),
        }
    }
}

/// How a drive ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The run is complete.
    Completed,
    /// A step failed.
    Failed {
        /// Why, in words.
        why: String,
    },
    /// Someone said no at a gate.
    Declined {
        /// Why, in words.
        why: String,
    },
    /// The run waits for a person.
    Waiting {
        /// The step.
        step: String,
        /// The gate.
        gate: String,
    },
    /// Someone asked to stop; the run can go on later.
    Interrupted,
    /// Someone gave the run up.
    Cancelled,
}

/// A run of a flow that this process drives.
pub(super) struct Runner<'p, 'd> {
    pub(super) project: &'p Project,
    pub(super) id: RunId,
    pub(super) flow: Flow,
    pub(super) drive: Drive<'d>,
    /// Stops the programs that run: when someone asks, or when one of them failed.
    pub(super) stop: Cancel,
    pub(super) begun: Attempts,
    /// What the keys of its steps are made from.
    pub(super) origin: String,
    /// By this its processes are known, wherever they went.
    pub(super) mark: String,
    /// By this its processes are known from those of an earlier or later drive of the run.
    pub(super) drive_mark: String,
    pub(super) hold: Hold,
    pub(super) guard: OnceLock<Option<Guard>>,
    /// The files as they were before steps and items that are to be rolled back, by their names.
    pub(super) before: Mutex<HashMap<String, Checkpoint>>,
    /// Brings the files up to date that other tools read.
    pub(super) views: Publisher,
}

/// The variable by which the processes of a run are known.
const DRIVER: &str = "STAGEPOST_DRIVER";

/// The mark of the processes of a run: another store may have a run of the same name.
pub(super) fn mark(project: &Project, run: &RunId) -> String {
    let place = project.place().store.as_os_str().as_encoded_bytes();
    let hash = Hash::of(&[place, b"\0", run.as_str().as_bytes()].concat()).to_string();
    hash[..32].to_owned()
}

/// The mark as it stands in an environment.
pub(super) fn marked_variable(mark: &str) -> String {
    format!("{DRIVER}={mark}")
}

type Sent = Result<Event, Error>;

impl Runner<'_, '_> {
    pub(super) fn folder(&self) -> &Path {
        self.hold.folder()
    }

    /// Has a small process end everything if this one is killed. Without one, the next drive ends what is left.
    pub(super) fn guard(&self) {
        // Not the mark of the run: the guard of one that was killed must not end what the next one starts.
        self.guard
            .get_or_init(|| Guard::over_listed(&self.drive_variable(), &attempts::path(self.folder())).ok());
    }

    /// The mark of this drive as it stands in an environment.
    pub(super) fn drive_variable(&self) -> String {
        format!("STAGEPOST_DRIVE={}", self.drive_mark)
    }

    /// Drives the run until it ends, waits or is stopped.
    pub(super) fn drive(self, input: Value, known: HashMap<String, Known>) -> Result<Outcome, Error> {
        let outcome = {
            let mut schedule = Schedule::new(&self.flow, input, self.drive.jobs, known);
            std::thread::scope(|threads| {
                let (send, receive) = channel();
                let (over, is_over) = channel();
                let told = send.clone();
                threads.spawn(|| self.look_after(told, is_over));
                let outcome = self.carry_out(&mut schedule, threads, &send, &receive);
                drop(over);
                // Whatever went wrong, nothing of ours goes on running.
                self.stop.cancel();
                outcome
            })
        };
        // A program that left its group on purpose lives as long as the run is driven, and no longer.
        if self.guard.get().is_some() {
            let ended = process::end_marked(&[&marked_variable(&self.mark)], self.drive.grace);
            ended.map_err(|source| Error::LeftOver { source })?;
        }
        // Without it only more is looked at when the run goes on.
        let _ = self.begun.pause();
        let Self { project, id, flow, guard, hold, views, .. } = self;
        drop(guard);
        let mut outcome = outcome?;
        if let Some(why) = hold.given_up().filter(|_| outcome == Outcome::Interrupted) {
            end_cancelled(project, &id, &why)?;
            outcome = Outcome::Cancelled;
        }
        if matches!(outcome, Outcome::Interrupted | Outcome::Waiting { .. }) {
            drop(hold);
        } else {
            hold.tidy();
        }
        // Only now, when nobody drives it any more, is it told as it stands.
        views.finish(project, &id, &flow);
        Ok(outcome)
    }

    fn carry_out<'s, 'e: 's>(
        &'e self,
        schedule: &mut Schedule<'e>,
        threads: &'s Threads<'s, 'e>,
        send: &Sender<Sent>,
        receive: &Receiver<Sent>,
    ) -> Result<Outcome, Error> {
        let mut events = VecDeque::from([Event::Begin]);
        loop {
            let event = match events.pop_front() {
                Some(event) => event,
                None => receive.recv().unwrap_or_else(|RecvError| unreachable!("we hold the other end"))?,
            };
            let mut actions = schedule.decide(event);
            let alone = actions.pop_if(|action| schedule.awaits_only(action));
            for action in actions {
                if let Some(outcome) = self.act(action, schedule, threads, send, &mut events)? {
                    return Ok(outcome);
                }
            }
            if let Some(Action::Attempt { unit, attempt, generation, wait }) = alone {
                let ended = self.make(unit, &self.attempt(schedule, unit, attempt, generation, wait))?;
                // Who asked to stop was there before the attempt ended by that.
                events.extend(receive.try_iter().collect::<Result<Vec<_>, _>>()?);
                events.push_back(ended);
            }
        }
    }

    /// Looks now and then whether someone wants the run to stop, and brings its files up to date, until it is over.
    fn look_after(&self, send: Sender<Sent>, is_over: Receiver<()>) {
        const LOOK: Duration = Duration::from_millis(20);
        while let Err(RecvTimeoutError::Timeout) = is_over.recv_timeout(LOOK) {
            if self.drive.cancel.is_cancelled() && !self.stop.is_cancelled() {
                let _ = send.send(Ok(Event::Cancelled));
                self.stop.cancel();
            }
            self.views.when_due(self.project, &self.id, &self.flow);
        }
    }

    fn act<'s, 'e: 's>(
        &'e self,
        action: Action,
        schedule: &Schedule<'e>,
        threads: &'s Threads<'s, 'e>,
        send: &Sender<Sent>,
        events: &mut VecDeque<Event>,
    ) -> Result<Option<Outcome>, Error> {
        match action {
            Action::Attempt { unit, attempt, generation, wait } => {
                let attempt = self.attempt(schedule, unit, attempt, generation, wait);
                let send = send.clone();
                threads.spawn(move || {
                    // If nobody listens any more, the drive is over and its error is on its way.
                    let _ = send.send(self.make(unit, &attempt));
                });
            }
            Action::Refuse { unit, attempt, error } => {
                let attempt = self.attempt(schedule, unit, attempt, 0, Duration::ZERO);
                let mut done = Done::refused(error);
                done.record.consumed = attempt.consumed.iter().cloned().collect();
                events.push_back(self.keep(unit, &attempt, done)?);
            }
            Action::Skip { unit, attempt } => {
                let attempt = self.attempt(schedule, unit, attempt, 0, Duration::ZERO);
                events.push_back(self.keep(
                    unit,
                    &attempt,
                    self.plain(&attempt, StepStatus::Skipped, Value::Null),
                )?);
            }
            Action::Join { step, attempt, status, output } => {
                let unit = Unit { step, item: None };
                let attempt = self.attempt(schedule, unit, attempt, 0, Duration::ZERO);
                events.push_back(self.keep(unit, &attempt, self.joined(&attempt, status, output))?);
            }
            Action::Ask { step, attempt, generation } => {
                let unit = Unit { step, item: None };
                let attempt = self.attempt(schedule, unit, attempt, generation, Duration::ZERO);
                events.push_back(self.ask(unit, &attempt, generation)?);
            }
            Action::Void { steps, why, led_to } => {
                self.drive.watch.saw(Progress::Voided { steps: &steps, why: &why });
                self.say(&Happened::Voided { steps, why, led_to })?;
            }
            Action::RollBack { units } => {
                self.roll_back(units.into_iter().map(|unit| schedule.name(unit)).collect())?;
            }
            Action::Stop => self.stop.cancel(),
            Action::End { status, why } => return self.end(status, why).map(Some),
            Action::Wait { step, gate } => {
                let step = self.flow.steps[step].id.to_string();
                self.say(&Happened::Waiting { step: step.clone(), gate: gate.clone() })?;
                return Ok(Some(Outcome::Waiting { step, gate }));
            }
            Action::Interrupt => return Ok(Some(Outcome::Interrupted)),
        }
        Ok(None)
    }

    pub(super) fn attempt<'s>(
        &'s self,
        schedule: &Schedule<'s>,
        unit: Unit,
        number: u32,
        generation: u32,
        wait: Duration,
    ) -> Attempt<'s> {
        let (name, item) = (schedule.name(unit), schedule.item(unit));
        let scope = match item.clone() {
            Some((index, item)) => schedule.scope(unit.step).for_item(index, item),
            None => schedule.scope(unit.step),
        };
        let key = key(&self.origin, &name, generation);
        Attempt {
            step: &self.flow.steps[unit.step],
            name,
            number,
            key,
            document: scope.document(),
            item: item.map(|(_, item)| item),
            consumed: schedule.consumed(unit.step),
            failures: schedule.failures(unit),
            wait,
        }
    }

    /// Makes an attempt and keeps how it ended.
    fn make(&self, unit: Unit, attempt: &Attempt<'_>) -> Sent {
        if !self.waited(attempt.wait) {
            return Ok(ended(
                unit,
                attempt.number,
                &Done { status: StepStatus::Cancelled, ..Done::refused("") },
            ));
        }
        if attempt.step.on_failure == OnFailure::Rollback {
            self.remember_files(attempt)?;
        }
        let begun = match attempt.step.effects {
            Effects::Once => self.begun.start_durably(&attempt.name, attempt.number),
            _ => self.begun.start(&attempt.name, attempt.number),
        };
        begun.map_err(|source| Error::File { doing: "write to", path: self.folder().to_owned(), source })?;
        self.drive.watch.saw(Progress::Began { step: &attempt.name, attempt: attempt.number });
        let mut done = match &attempt.step.action {
            Does::Run(command) => self.run_program(attempt, command)?,
            Does::Refine(refine) => self.refine(attempt, refine)?,
            Does::Ask(_) => unreachable!("a question is asked, not run"),
        };
        done.refuse_too_deep();
        self.keep(unit, attempt, done)
    }

    /// Waits before another attempt; says whether that was to the end.
    fn waited(&self, wait: Duration) -> bool {
        const LOOK: Duration = Duration::from_millis(20);
        let begun = std::time::Instant::now();
        while begun.elapsed() < wait {
            if self.stop.is_cancelled() {
                return false;
            }
            std::thread::sleep(wait.saturating_sub(begun.elapsed()).min(LOOK));
        }
        !self.stop.is_cancelled()
    }

    /// An end that no program made.
    pub(super) fn plain(&self, attempt: &Attempt<'_>, status: StepStatus, result: Value) -> Done {
        let record = Record {
            consumed: attempt.consumed.iter().cloned().collect(),
            fingerprint: Some(made_of::fingerprint(
                attempt.step,
                &self.project.place().root,
                attempt.item.as_ref(),
            )),
            ..Record::default()
        };
        let json = serde_json::to_vec(&result).expect("a value has string keys only");
        let artifacts = if result.is_null() { vec![] } else { vec![artifact(RESULT, Source::Json(json))] };
        Done { status, record, result, artifacts, hopeless: true }
    }

    /// The end of a step that was done for each of a list, with the files that its items left.
    fn joined(&self, attempt: &Attempt<'_>, status: StepStatus, output: Value) -> Done {
        let mut done = self.plain(attempt, status, output);
        let mut step = attempt.step.clone();
        // Each item had to leave them; if there was none to be done, none is there.
        step.outputs.retain(|output| made_of::find_output(&self.project.place().root, &output.path).is_ok());
        if status == StepStatus::Completed {
            match self.outputs(&step, &self.hidden()) {
                Ok(files) => done.take(files),
                Err(error) => (done.status, done.record.error) = (StepStatus::Failed, Some(error)),
            }
        }
        done
    }

    /// Keeps how an attempt ended: one checkpoint, durable when this returns.
    pub(super) fn keep(&self, unit: Unit, attempt: &Attempt<'_>, done: Done) -> Sent {
        let mut done = done;
        done.record.went_on = attempt.goes_on_from(&done);
        done.record.rolls_back = attempt.rolls_back_from(&done);
        if let OnFailure::GoTo(target) = &attempt.step.on_failure
            && done.record.went_on
            && unit.item.is_none()
        {
            done.record.led_to = Some(target.to_string());
        }
        let captures = attempt.step.snapshot && done.status == StepStatus::Completed;
        self.project.save(Save {
            run: Some((self.id.clone(), RunKind::Flow)),
            begun: true,
            kind: Some(Kind::Step {
                step: attempt.name.clone(),
                status: done.status,
                attempt: attempt.number,
            }),
            description: done.record.error.clone().unwrap_or_default(),
            metadata: done.record.metadata(),
            artifacts: std::mem::take(&mut done.artifacts),
            files: captures.then(Files::default),
            ..Save::default()
        })?;
        self.views.changed();
        if done.status == StepStatus::Completed {
            self.before.lock().unwrap_or_else(PoisonError::into_inner).remove(&attempt.name);
        }
        self.drive.watch.saw(Progress::Ended {
            step: &attempt.name,
            attempt: attempt.number,
            status: done.status,
            took: done.record.took(),
            error: done.record.error.as_deref(),
        });
        Ok(ended(unit, attempt.number, &done))
    }

    /// Keeps the files as they are before the first attempt. Later ones, also those after a crash, go back to there too.
    fn remember_files(&self, attempt: &Attempt<'_>) -> Result<(), Error> {
        if self.before.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&attempt.name) {
            return Ok(());
        }
        let after = self.project.store().head(&self.id)?.map_or(0, |head| head.seq());
        let saved = self.project.save(Save {
            run: Some((self.id.clone(), RunKind::Flow)),
            begun: true,
            kind: Some(Kind::Safety { before: before_step(&attempt.name) }),
            metadata: Map::from_iter([(AFTER.to_owned(), after.into())]),
            files: Some(Files::default()),
            ..Save::default()
        })?;
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        before.insert(attempt.name.clone(), saved);
        Ok(())
    }

    fn roll_back(&self, steps: Vec<String>) -> Result<(), Error> {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let remembered: Vec<_> = steps.into_iter().filter_map(|step| before.remove_entry(&step)).collect();
        drop(before);
        if remembered.is_empty() {
            return Ok(());
        }
        match Rollback::of(&self.flow, &RunState::load(self.project, &self.id)?, remembered) {
            Some(rollback) => rollback.carry_out(self.project, &self.id, self.drive.watch),
            None => Ok(()),
        }
    }

    pub(super) fn say(&self, happened: &Happened) -> Result<(), Error> {
        let event = happened.event(&self.id, self.project.context().clock.now());
        self.project.store().write(Batch { entries: vec![NewEntry::Event(event)], ..Batch::default() })?;
        Ok(())
    }

    fn end(&self, status: End, why: Option<String>) -> Result<Outcome, Error> {
        let keep = usize::try_from(self.flow.retention.keep_last).unwrap_or(usize::MAX);
        prune::end(self.project, &self.id, status, why.clone(), Some(keep))?;
        let why = why.unwrap_or_default();
        Ok(match status {
            End::Completed => Outcome::Completed,
            End::Declined => Outcome::Declined { why },
            _ => Outcome::Failed { why },
        })
    }
}

/// What a checkpoint of the files is made before.
pub(super) fn before_step(name: &str) -> String {
    format!("step {name}")
}

fn ended(unit: Unit, attempt: u32, done: &Done) -> Event {
    Event::Ended {
        unit,
        attempt,
        status: done.status,
        exit: done.record.exit,
        output: done.result.clone(),
        error: done.record.error.clone(),
        hopeless: done.hopeless,
    }
}

/// The key of one doing of a step: the same for every attempt at it, another one when it is done again on purpose.
fn key(origin: &str, step: &str, generation: u32) -> String {
    Hash::of(json!([origin, step, generation]).to_string().as_bytes()).to_string()[..32].to_owned()
}
