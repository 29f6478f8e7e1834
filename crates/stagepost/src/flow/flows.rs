//! The flow runs of a project: started, gone on with, forked, cancelled.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value};

use super::attempts::{self, Attempts, Begun};
use super::cleanup::is_gone;
use super::definition::{Flow, Invalid};
use super::happened::{Definition, End, Happened};
use super::hold::{self, Hold};
use super::kept::{self, KeptStep};
use super::resume::{self, Resume};
use super::reuse::Plan;
use super::runner::{Drive, Outcome, Runner, mark, marked_variable};
use super::schedule::Known;
use super::state::{RunState, Status, StepState};
use super::view::{self, Publisher};
use super::watch::Progress;
use super::{Error, foresee, prune};
use crate::gate::{Gates, Origin};
use crate::model::{Run as RunRecord, RunId, RunKind, has_tokens};
use crate::process::{self, Cancel};
use crate::project::Project;
use crate::store::{Batch, Expect, NewEntry};

/// The flow runs of a project.
#[derive(Debug, Clone, Copy)]
pub struct Flows<'p> {
    pub(super) project: &'p Project,
}

/// The member of a run that its keys are made from: the same wherever the project is moved to.
const ORIGIN: &str = "origin";

/// A flow to run, with the text that it was read from.
#[derive(Debug, Clone)]
pub struct Source {
    /// The flow.
    pub flow: Flow,
    /// As it was written.
    pub definition: Definition,
}

impl Source {
    /// Reads a flow from its text.
    pub fn read(text: &str, path: Option<String>) -> Result<Self, Invalid> {
        let flow = Flow::read(text)?;
        let definition = Definition { name: flow.name.clone(), text: text.to_owned(), path };
        Ok(Self { flow, definition })
    }
}

impl<'p> Flows<'p> {
    /// The flow runs of `project`.
    pub fn of(project: &'p Project) -> Self {
        Self { project }
    }

    /// Makes a name for a new run of a flow: its name, and something that was never used.
    pub fn new_id(&self, flow: &Flow) -> Result<RunId, Error> {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let name: String = flow.name.chars().map(plain).take(64).collect();
        let name = name.trim_matches('-');
        let name = if name.is_empty() { "flow" } else { name };
        loop {
            let digits = self.project.new_id().as_uuid().simple().to_string();
            let mut id = RunId::new(format!("{name}-{}", &digits[digits.len() - 8..]))?;
            if id.check_new().is_err() {
                id = RunId::new(format!("flow-{id}"))?;
            }
            if self.project.store().run(&id)?.is_none() {
                return Ok(id);
            }
        }
    }

    /// Starts a run, which must be new, and drives it until it ends, waits or is stopped.
    pub fn start(
        &self,
        id: &RunId,
        source: Source,
        input: Option<Value>,
        drive: Drive<'_>,
    ) -> Result<Outcome, Error> {
        self.check_new(id)?;
        let Source { flow, definition } = source;
        drive.check_secrets(&flow, |_| true)?;
        let hold = Hold::take(self.project, id)?;
        let input = flow.input_with(input);
        check_tokens(Some(&definition), Some(&input))?;
        let input = drive.hidden(flow.steps.iter().flat_map(|step| &step.secrets)).redact_value(input);
        let now = self.project.context().clock.now();
        let run = RunRecord {
            description: flow.name.clone(),
            metadata: self.new_origin(),
            ..RunRecord::new(id.clone(), RunKind::Flow, now)
        };
        let began = Happened::Began {
            definition: Some(definition),
            input: Some(input.clone()),
            who: self.project.context().who.clone(),
        };
        let entries = vec![NewEntry::Run(run), NewEntry::Event(began.event(id, now))];
        let expect = vec![Expect::NewRun(id.clone())];
        let views = Publisher::new(self.project, id, flow.view)?;
        self.project.store().write(Batch { entries, expect, ..Batch::default() })?;
        drive.watch.saw(Progress::Started { run: id });
        self.runner(id, hold, flow, views, drive)?.drive(input, HashMap::new())
    }

    /// Refuses a name that no new run may have.
    fn check_new(&self, id: &RunId) -> Result<(), Error> {
        match self.project.store().run(id)? {
            Some(_) if is_gone(self.project, id)? => Err(Error::NameTaken { run: id.clone() }),
            Some(_) => Err(Error::Exists { run: id.clone() }),
            None => Ok(id.check_new()?),
        }
    }

    /// What tells a run from every other, also from one of the same name at the same place.
    fn new_origin(&self) -> Map<String, Value> {
        Map::from_iter([(ORIGIN.to_owned(), self.project.new_id().to_string().into())])
    }

    /// What the keys of a run are made from. Runs that an earlier version began have nothing but their place.
    fn origin(&self, id: &RunId) -> Result<String, Error> {
        let run = super::history::flow_run(self.project, id)?;
        let own = run.metadata.get(ORIGIN).and_then(Value::as_str);
        Ok(own.map_or_else(|| mark(self.project, id), str::to_owned))
    }

    fn runner<'d>(
        &self,
        id: &RunId,
        hold: Hold,
        flow: Flow,
        views: Publisher,
        drive: Drive<'d>,
    ) -> Result<Runner<'p, 'd>, Error> {
        let folder = hold.folder().to_owned();
        let failed = |source| Error::File { doing: "write to", path: folder.clone(), source };
        Ok(Runner {
            project: self.project,
            id: id.clone(),
            views,
            flow,
            stop: Cancel::new().map_err(failed)?,
            begun: Attempts::open(hold.folder()).map_err(failed)?,
            origin: self.origin(id)?,
            mark: mark(self.project, id),
            drive_mark: self.project.new_id().to_string(),
            drive,
            hold,
            guard: OnceLock::new(),
            before: Mutex::new(HashMap::new()),
        })
    }

    /// Says what going on with a run would do with each step, and does nothing.
    pub fn plan(&self, id: &RunId, resume: &Resume) -> Result<Plan, Error> {
        Ok(self.plan_and_refusal(id, resume)?.0)
    }

    /// As [`Flows::plan`], and why going on so would be refused as things stand, if it would.
    pub fn plan_and_refusal(&self, id: &RunId, resume: &Resume) -> Result<(Plan, Option<Error>), Error> {
        let begun = attempts::read(&hold::folder(self.project, id));
        let prepared = resume::prepare(self.project, id, resume, &begun)?;
        let mut refused = match hold::is_driven(self.project, id) {
            true => Some(hold::held(self.project, id)),
            false => prepared.check(resume).err(),
        };
        let mut plan = prepared.plan.clone();
        let known = prepared.known(self.project, &begun);
        match known.and_then(|known| self.led_back(&prepared, known)) {
            Ok(led_back) => plan.lead_back(&led_back),
            // What is damaged is told by who goes on.
            Err(error) => refused = refused.or(Some(error)),
        }
        Ok((plan, refused))
    }

    fn led_back(
        &self,
        prepared: &resume::Prepared,
        known: HashMap<String, Known>,
    ) -> Result<BTreeMap<String, String>, Error> {
        let state = &prepared.state;
        foresee::given_up_at_once(self.project, &state.run.id, &prepared.flow, &state.input, known)
    }

    /// Goes on with a run after its last completed step.
    pub fn resume(&self, id: &RunId, resume: Resume, drive: Drive<'_>) -> Result<Outcome, Error> {
        super::history::flow_run(self.project, id)?;
        let hold = Hold::take(self.project, id)?;
        hold.is_wanted_again();
        let begun = attempts::read(hold.folder());
        self.end_left_over(id, &begun, &drive)?;
        let mut prepared = resume::prepare(self.project, id, &resume, &begun)?;
        if let Some(rollback) = &prepared.rollback {
            rollback.carry_out(self.project, id, drive.watch)?;
            prepared = resume::prepare(self.project, id, &resume, &begun)?;
        }
        prepared.check(&resume)?;
        drive.check_secrets(&prepared.flow, |step| prepared.is_to_do(&resume, step))?;
        prepared.put_back(self.project)?;
        let input = prepared.state.input.clone();
        let mut known = prepared.known(self.project, &begun)?;
        let views = Publisher::new(self.project, id, prepared.flow.view)?;
        self.write_down(id, prepared.happened)?;
        let mut runner = self.runner(id, hold, prepared.flow, views, drive)?;
        runner.before = Mutex::new(prepared.before);
        for (name, attempt) in prepared.cut_off {
            runner.settle(&name, attempt, &resume, &mut known, &input)?;
        }
        runner.drive(input, known)
    }

    fn write_down(&self, id: &RunId, happened: Vec<Happened>) -> Result<(), Error> {
        for one in &happened {
            if let Happened::Began { definition, input, .. } = one {
                check_tokens(definition.as_ref(), input.as_ref())?;
            }
        }
        let now = self.project.context().clock.now();
        let entries = happened.iter().map(|one| NewEntry::Event(one.event(id, now))).collect();
        self.project.store().write(Batch { entries, ..Batch::default() })?;
        Ok(())
    }

    /// Ends what is left of an earlier drive: nothing of it may run beside us.
    fn end_left_over(&self, id: &RunId, begun: &Begun, drive: &Drive<'_>) -> Result<(), Error> {
        let count = end_left_over(self.project, id, begun, drive.grace)?;
        if count > 0 {
            drive.watch.saw(Progress::EndedLeftOver { count });
        }
        Ok(())
    }

    /// Gives a run up: whoever drives it is asked to stop, and it cannot be resumed.
    pub fn cancel(&self, id: &RunId, why: &str) -> Result<(), Error> {
        super::history::flow_run(self.project, id)?;
        let driver = hold::driver(self.project, id);
        if let Some(driver) = &driver {
            hold::give_up(self.project, id, why)?;
            process::ask_to_stop(driver);
        }
        let hold = self.hold_soon(id)?;
        let state = RunState::load(self.project, id)?;
        if driver.is_some() && state.end == Some(Status::Cancelled) {
            // Whoever drove it has written it down.
            hold.tidy();
            return Ok(());
        }
        if let Some(status) = state.end.filter(|end| matches!(end, Status::Completed | Status::Cancelled)) {
            return Err(Error::Over { run: id.clone(), status });
        }
        let grace = Duration::from_secs(5);
        end_left_over(self.project, id, &attempts::read(hold.folder()), grace)?;
        let outdated = view::begin(self.project, id)?;
        end_cancelled(self.project, id, why)?;
        hold.tidy();
        // It is cancelled; if its files cannot be brought up to date, the mark stays for the next command.
        let _ = view::bring_up(self.project, id, outdated, None);
        Ok(())
    }

    /// Waits for whoever was asked to stop.
    fn hold_soon(&self, id: &RunId) -> Result<Hold, Error> {
        const PATIENCE: Duration = Duration::from_secs(20);
        let begun = std::time::Instant::now();
        loop {
            match Hold::take(self.project, id) {
                Err(Error::Held { .. }) if begun.elapsed() < PATIENCE => {}
                other => return other,
            }
        }
    }

    /// Makes a new run that shares the past of another up to a step, and does nothing yet: resume it.
    pub fn fork(&self, id: &RunId, from: &str, new: &RunId) -> Result<RunRecord, Error> {
        let state = RunState::load(self.project, id)?;
        self.check_new(new)?;
        let source = resume::source_of(&state)?;
        let kept = resume::up_to(&source.flow, from)?;
        let later: Vec<String> = state
            .steps
            .iter()
            .filter(|step| step.current().is_some() && !kept.contains(&owner(&step.step).to_owned()))
            .map(|step| step.step.clone())
            .collect();
        resume::check_there(&source.flow, &state, &kept)?;
        let last = kept
            .iter()
            .filter_map(|step| state.step(step)?.current())
            .max_by_key(|attempt| (attempt.at, attempt.seq))
            .expect("a step that is kept has a result");
        let now = self.project.context().clock.now();
        let run = RunRecord {
            description: source.flow.name.clone(),
            forked_from: Some(last.checkpoint),
            metadata: self.new_origin(),
            ..RunRecord::new(new.clone(), RunKind::Flow, now)
        };
        let who = self.project.context().who.clone();
        let began = Happened::Began { definition: Some(source.definition), input: Some(state.input), who };
        let mut entries = vec![NewEntry::Run(run.clone())];
        // Results whose checkpoints are pruned are not in the past that is shared, so the new run keeps them itself.
        let thinned = |step: &&StepState| step.current().is_some_and(|one| one.thinned);
        let is_kept = |step: &&StepState| kept.contains(&owner(&step.step).to_owned());
        let own: Vec<KeptStep> =
            state.steps.iter().filter(thinned).filter(is_kept).filter_map(KeptStep::of).collect();
        if !own.is_empty() {
            let keeper = kept::draft(self.project.new_id(), new, now, &own);
            entries.push(NewEntry::Checkpoint(keeper));
        }
        entries.push(NewEntry::Event(began.event(new, now)));
        // Someone may have accepted results after the point up to which the past is shared.
        let accepted = |step: &StepState| Some((step.step.clone(), step.accepted.clone()?));
        let accepted: BTreeMap<_, _> = state.steps.iter().filter(is_kept).filter_map(accepted).collect();
        if !accepted.is_empty() {
            entries.push(NewEntry::Event(Happened::Accepted { steps: accepted }.event(new, now)));
        }
        // What ran side by side with the last step, and is not part of what is kept.
        let voided = Happened::Voided {
            steps: later,
            why: format!("forked from `{id}` after step `{from}`"),
            led_to: None,
        };
        entries.push(NewEntry::Event(voided.event(new, now)));
        let expect = vec![Expect::NewRun(new.clone())];
        self.project.store().write(Batch { entries, expect, ..Batch::default() })?;
        Ok(run)
    }

    /// Finds the run that a person means: by its name or the start of it, or `@` for the newest. One that was deleted is
    /// found by its whole name only, and is an error.
    pub fn resolve(&self, name: &str) -> Result<RunId, Error> {
        let flows = self.project.runs()?.into_iter().filter(|run| run.kind == RunKind::Flow);
        let ids: Vec<RunId> = flows.map(|run| run.id).collect();
        let none = || Error::NoSuchRun { name: name.to_owned() };
        if name == "@" {
            return self.there(ids.into_iter().rev()).next().ok_or_else(none)?;
        }
        if let Some(id) = ids.iter().find(|id| id.as_str() == name) {
            return match is_gone(self.project, id)? {
                true => Err(Error::Deleted { run: id.clone() }),
                false => Ok(id.clone()),
            };
        }
        if let Some(run) =
            RunId::new(name).ok().map(|id| self.project.store().run(&id)).transpose()?.flatten()
        {
            return Err(Error::NotAFlow { run: run.id, kind: run.kind });
        }
        let starts = ids.into_iter().filter(|id| id.as_str().starts_with(name));
        let mut found: Vec<RunId> = self.there(starts).collect::<Result<_, _>>()?;
        match found.len() {
            1 if !name.is_empty() => Ok(found.remove(0)),
            0 => Err(none()),
            _ => Err(Error::Ambiguous { name: name.to_owned(), candidates: found }),
        }
    }

    /// Those of some runs that were not deleted.
    fn there(&self, ids: impl Iterator<Item = RunId>) -> impl Iterator<Item = Result<RunId, Error>> {
        ids.filter_map(|id| match is_gone(self.project, &id) {
            Ok(true) => None,
            Ok(false) => Some(Ok(id)),
            Err(error) => Some(Err(error)),
        })
    }
}

/// Writes down that a run is given up, and with it what it asks.
pub(super) fn end_cancelled(project: &Project, id: &RunId, why: &str) -> Result<(), Error> {
    let gates = Gates::of(project);
    for gate in gates.waiting()?.into_iter().filter(|gate| gate.of.run == *id) {
        let cancelled = gates.cancel(&gate.id, &format!("run {id} is cancelled"), Origin::Program);
        // Somebody may have answered it just now.
        if cancelled.is_err() && gates.waiting()?.iter().any(|one| one.id == gate.id) {
            cancelled?;
        }
    }
    let why = Some(why.to_owned()).filter(|why| !why.is_empty());
    prune::end(project, id, End::Cancelled, why, None)
}

/// Ends the groups and the processes that an earlier drive left, with what they started, and says how many there were.
pub(super) fn end_left_over(
    project: &Project,
    id: &RunId,
    begun: &Begun,
    grace: Duration,
) -> Result<usize, Error> {
    if !begun.has_run {
        return Ok(0);
    }
    let groups: Vec<_> = begun.processes.iter().map(|(_, process)| process.clone()).collect();
    let mark = marked_variable(&mark(project, id));
    process::end_left(&groups, &mark, grace).map_err(|source| Error::LeftOver { source })
}

/// The step that an item belongs to.
pub(super) fn owner(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

/// What is known of a step from its history and from what was begun.
pub(super) fn known_of(step: Option<&StepState>, begun: u32) -> Known {
    Known {
        attempt: step.and_then(StepState::last).map_or(0, |attempt| attempt.attempt).max(begun),
        failures: step.map_or(0, |step| step.failures),
        generation: step.map_or(0, |step| step.generation),
        ..Known::default()
    }
}

/// A definition and an input are stored as they are, or the run could not go on; so they must not hold tokens.
fn check_tokens(definition: Option<&Definition>, input: Option<&Value>) -> Result<(), Error> {
    if definition.is_some_and(|definition| has_tokens(&definition.text)) {
        return Err(Error::Token { what: "the flow file" });
    }
    if input.is_some_and(|input| has_tokens(&input.to_string())) {
        return Err(Error::Token { what: "the input of the run" });
    }
    Ok(())
}
