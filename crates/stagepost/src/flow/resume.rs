//! Preparing to go on: what holds is checked, what does not is given up.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::PathBuf;

use serde_json::Value;

use super::attempts::Begun;
use super::cleanup::is_deleted;
use super::definition::{Action as Does, Effects, Flow, StepResult, Target};
use super::flows::{Source, known_of, owner};
use super::happened::{Accepted, Happened};
use super::history::{History, Moment};
use super::put_back::put_back;
use super::record::{FILES, RESULT};
use super::reuse::{Now, Plan, Planned, Verdict};
use super::rollback::Rollback;
use super::runner::{Runner, before_step};
use super::schedule::{Known, Led, and_dependents};
use super::state::{Attempt, RunState, Status, StepState};
use super::{Error, Fingerprint, attempt, hold, made_of};
use crate::gate::{GateId, Gates};
use crate::model::{Artifact, Checkpoint, Kind, RunId, StepStatus};
use crate::project::Project;
use crate::store::Found;

/// How to go on with a run.
#[derive(Debug, Clone, Default)]
pub struct Resume {
    /// The flow as it is now; without it, as it was captured.
    pub source: Option<Source>,
    /// Whether steps whose definition changed are done again, with all that depends on them; otherwise that is refused.
    pub accept_changes: bool,
    /// Go on after this step (its id or number), and give up what was done after it.
    pub after: Option<String>,
    /// Do a step again.
    pub again: Option<Again>,
    /// What became of steps that may be done once only and were cut off.
    pub decided: Vec<(String, Decided)>,
}

/// A step to do again.
#[derive(Debug, Clone)]
pub struct Again {
    /// The step.
    pub step: String,
    /// Whether what depends on it stays as it is.
    pub only: bool,
}

/// What a person says of a step that was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// It was not done: do it.
    Redo,
    /// It was done.
    Done,
}

/// What there is to know before going on.
pub(super) struct Prepared {
    pub(super) flow: Flow,
    pub(super) state: RunState,
    pub(super) plan: Plan,
    /// What is written down before anything is done.
    pub(super) happened: Vec<Happened>,
    /// Steps and items that may be done once only and were cut off, with the attempt.
    pub(super) cut_off: Vec<(String, u32)>,
    /// Steps and items that may be done once only, were done, and would be done again, with the attempt.
    once_again: Vec<(String, u32)>,
    /// Whether a person said of some of them that their results hold.
    said: bool,
    /// What must be rolled back before: whoever should have done it was killed.
    pub(super) rollback: Option<Rollback>,
    /// The files as they were before the first attempt at steps that are not done.
    pub(super) before: HashMap<String, Checkpoint>,
    /// What is there now.
    now: Now,
    missing: Vec<(PathBuf, Attempt, Artifact)>,
    ended: Option<Status>,
    /// Whether someone asks for steps to be done again.
    asked: bool,
}

/// The flow that a run follows, as it was captured.
pub(super) fn source_of(state: &RunState) -> Result<Source, Error> {
    let run = || state.run.id.clone();
    let definition = state.definition.clone().ok_or_else(|| Error::InCode { run: run() })?;
    let read = Source::read(&definition.text, definition.path.clone());
    read.map_err(|source| Error::Definition { run: run(), source: Box::new(source) })
}

/// The steps up to one, in the order in which they are done.
pub(super) fn up_to(flow: &Flow, name: &str) -> Result<Vec<String>, Error> {
    let by_number = name.parse::<usize>().ok().filter(|number| *number > 0);
    let order: Vec<String> = match by_number {
        Some(_) => flow.steps.iter().map(|step| step.id.to_string()).collect(),
        None => flow.order().iter().map(|step| step.id.to_string()).collect(),
    };
    let at = order.iter().position(|id| id == name);
    let at = at.or(by_number.map(|number| number - 1)).filter(|at| *at < order.len());
    let at = at.ok_or_else(|| Error::NoStep { step: name.to_owned(), known: order.clone() })?;
    Ok(order[..=at].to_vec())
}

/// Checks that all of `kept` was done, and that there are results of those that the later steps need.
pub(super) fn check_there(flow: &Flow, state: &RunState, kept: &[String]) -> Result<(), Error> {
    let current = |step: &str| state.step(step).and_then(StepState::current);
    let later = flow.steps.iter().filter(|step| !kept.iter().any(|one| one == step.id.as_str()));
    let needed: BTreeSet<&str> = later.flat_map(|step| &step.needs).map(|need| need.as_str()).collect();
    let missing = |step: &str| current(step).is_none_or(|attempt| attempt.pruned && needed.contains(step));
    let Some(step) = kept.iter().find(|step| missing(step)) else { return Ok(()) };
    let there = |one: &&StepState| one.current().is_some_and(|attempt| !attempt.pruned);
    let known = state.steps.iter().filter(there).map(|one| one.step.clone()).collect();
    Err(Error::NoResult { run: state.run.id.clone(), step: step.clone(), known })
}

/// Finds out what holds and what would be done. Nothing is changed.
pub(super) fn prepare(
    project: &Project,
    id: &RunId,
    resume: &Resume,
    begun: &Begun,
) -> Result<Prepared, Error> {
    if is_deleted(project, id)? {
        return Err(Error::Deleted { run: id.clone() });
    }
    let mut history = load_sound(project, id)?;
    let mut before = before_first(&history);
    let mut state = RunState::of(&history, hold::is_driven(project, id));
    let captured = source_of(&state)?;
    let rollback = Rollback::due(&captured.flow, &state, &before, begun);
    if let Some(rollback) = &rollback {
        let (at, happened) = (project.context().clock.now(), rollback.happened());
        history.moments.push(Moment::Happened { position: u64::MAX, at, happened });
        before = before_first(&history);
        state = RunState::of(&history, hold::is_driven(project, id));
    }
    let Source { flow, definition } = resume.source.clone().unwrap_or_else(|| captured.clone());
    check_decided(&flow, &resume.decided)?;
    let changed = Some(definition).filter(|definition| definition.text != captured.definition.text);
    let who = project.context().who.clone();
    let mut happened = vec![Happened::Began { definition: changed, input: None, who }];
    happened.extend(asked_for(&flow, &state, resume)?);
    let (ended, now) = (state.end, project.context().clock.now());
    for one in &happened {
        history.moments.push(Moment::Happened { position: u64::MAX, at: now, happened: one.clone() });
    }
    let mut state = RunState::of(&history, true);
    let (mut known_now, missing) = look(project, &flow, &state)?;
    known_now.begun = begun.attempts.clone();
    let mut plan = Plan::of(&flow, &state, &known_now);
    let is_done = |(name, _): &(String, u32)| decision(resume, name) == Some(Decided::Done);
    let found = once_again(&flow, &state, &plan, &known_now);
    let done: Vec<String> = found.into_iter().filter(is_done).map(|(name, _)| name).collect();
    if !done.is_empty() {
        let accepted = said_done(&flow, &state, &plan, &known_now, &done);
        history.moments.push(Moment::Happened { position: u64::MAX, at: now, happened: accepted.clone() });
        happened.push(accepted);
        done.iter().for_each(|name| drop(known_now.files.remove(name)));
        state = RunState::of(&history, true);
        plan = Plan::of(&flow, &state, &known_now);
    }
    let mut once_again = once_again(&flow, &state, &plan, &known_now);
    once_again.retain(|(name, _)| !done.contains(name));
    let given_up = given_up(&flow, &state, &plan, &done);
    if !given_up.is_empty() {
        let voided = Happened::Voided {
            steps: given_up,
            why: "what they were made from changed".to_owned(),
            led_to: None,
        };
        history.moments.push(Moment::Happened { position: u64::MAX, at: now, happened: voided.clone() });
        happened.push(voided);
        state = RunState::of(&history, true);
    }
    let cut_off = cut_off(&flow, &state, &plan, begun);
    let asked = resume.after.is_some() || resume.again.is_some();
    Ok(Prepared {
        flow,
        state,
        plan,
        happened,
        cut_off,
        once_again,
        said: !done.is_empty(),
        rollback,
        before,
        now: known_now,
        missing,
        ended,
        asked,
    })
}

/// The files as they were before the first attempt at each step that was begun and is not done. A run that ended begins
/// its steps anew.
fn before_first(history: &History) -> HashMap<String, Checkpoint> {
    let mut before = HashMap::new();
    for moment in &history.moments {
        match moment {
            Moment::Checkpoint { checkpoint, .. } => match &checkpoint.content.kind {
                Kind::Safety { before: what } if checkpoint.content.snapshot.is_some() => {
                    before.entry(what.clone()).or_insert_with(|| checkpoint.clone());
                }
                Kind::Step { step, status: StepStatus::Completed | StepStatus::Skipped, .. } => {
                    before.remove(&before_step(step));
                }
                _ => {}
            },
            Moment::Gone { gone, .. } => {
                if matches!(gone.status, StepStatus::Completed | StepStatus::Skipped) {
                    before.remove(&before_step(&gone.step));
                }
            }
            Moment::Happened { happened: Happened::Ended { .. }, .. } => before.clear(),
            Moment::Happened {
                happened: Happened::Voided { steps, .. } | Happened::RolledBack { steps, .. },
                ..
            } => {
                steps.iter().for_each(|step| drop(before.remove(&before_step(step))));
            }
            Moment::Happened { .. } => {}
        }
    }
    let step = |what: String| what.strip_prefix(&before_step("")).map(str::to_owned);
    before.into_iter().filter_map(|(what, checkpoint)| Some((step(what)?, checkpoint))).collect()
}

/// Refuses what nobody can say of a step.
fn check_decided(flow: &Flow, decided: &[(String, Decided)]) -> Result<(), Error> {
    for (name, said) in decided {
        let step = flow.step(owner(name));
        let otherwise = |(other, otherwise): &(String, Decided)| other == name && otherwise != said;
        let why = match step {
            None => "the flow has no such step",
            Some(step) if name.contains('/') && step.for_each.is_none() => {
                "it is not done for each of a list"
            }
            Some(step) if step.effects != Effects::Once => "it is simply run again, without `effects: once`",
            Some(_) if decided.iter().any(otherwise) => "it cannot have been done and not been done",
            Some(_) => continue,
        };
        return Err(Error::Decision { step: name.clone(), why });
    }
    Ok(())
}

/// What someone asks to be given up.
fn asked_for(flow: &Flow, state: &RunState, resume: &Resume) -> Result<Vec<Happened>, Error> {
    let of = |steps: &BTreeSet<String>| -> Vec<String> {
        let gone = |step: &&StepState| step.current().is_some() && steps.contains(owner(&step.step));
        state.steps.iter().filter(gone).map(|step| step.step.clone()).collect()
    };
    let mut happened = Vec::new();
    if let Some(after) = &resume.after {
        let kept = up_to(flow, after)?;
        check_there(flow, state, &kept)?;
        let all = flow.steps.iter().map(|step| step.id.to_string());
        let steps = of(&all.filter(|step| !kept.contains(step)).collect());
        happened.push(Happened::Voided { steps, why: format!("resumed after step `{after}`"), led_to: None });
    }
    if let Some(again) = &resume.again {
        let known = || flow.steps.iter().map(|step| step.id.to_string()).collect();
        let missing = || Error::NoStep { step: again.step.clone(), known: known() };
        let number = flow.number(&again.step).ok_or_else(missing)?;
        let all = if again.only { BTreeSet::from([number - 1]) } else { and_dependents(flow, &[number - 1]) };
        let steps = of(&all.into_iter().map(|step| flow.steps[step].id.to_string()).collect());
        let why = format!("step `{}` is to be done again", again.step);
        happened.push(Happened::Voided { steps, why, led_to: None });
        if again.only {
            happened.extend(spared(flow, state, flow.steps[number - 1].id.as_str()));
        }
    }
    Ok(happened)
}

/// Has what depends on a step hold when that one is done again, however that ends.
fn spared(flow: &Flow, state: &RunState, step: &str) -> Option<Happened> {
    let depends = |other: &str| {
        flow.step(owner(other)).is_some_and(|other| other.needs.iter().any(|need| need.as_str() == step))
    };
    let spare = |other: &StepState| {
        let current = other.current().filter(|_| depends(&other.step))?;
        let before = || Accepted { consumed: current.record.consumed.clone(), ..Accepted::default() };
        let mut accepted = other.accepted.clone().unwrap_or_else(before);
        accepted.spared.insert(step.to_owned());
        Some((other.step.clone(), accepted))
    };
    let steps: BTreeMap<_, _> = state.steps.iter().filter_map(spare).collect();
    (!steps.is_empty()).then_some(Happened::Accepted { steps })
}

/// Results that are there and do not hold, with those of their items.
fn given_up(flow: &Flow, state: &RunState, plan: &Plan, without: &[String]) -> Vec<String> {
    let remade = |step: &str| plan.step(step).is_some_and(Verdict::is_made_again);
    let gone = |step: &&StepState| {
        let is_known = flow.step(owner(&step.step)).is_some() && step.current().is_some();
        is_known && remade(owner(&step.step)) && !without.contains(&step.step)
    };
    state.steps.iter().filter(gone).map(|step| step.step.clone()).collect()
}

/// Steps and items that may be done once only, were done, and would be done again, with the attempt: nobody asked for
/// that, something they were made from changed.
fn once_again(flow: &Flow, state: &RunState, plan: &Plan, now: &Now) -> Vec<(String, u32)> {
    let is_once = |name: &str| flow.step(owner(name)).is_some_and(|step| step.effects == Effects::Once);
    let is_item_of = |name: &str, step: &str| name.contains('/') && owner(name) == step;
    let mut found = Vec::new();
    for step in state.steps.iter().filter(|step| is_once(&step.step)) {
        let (name, id) = (step.step.as_str(), owner(&step.step));
        let current = step.current().filter(|one| one.status == StepStatus::Completed);
        let (Some(verdict), Some(current)) = (plan.step(id), current) else { continue };
        // What was done for each of a list was done by its items, as long as their results are there.
        let mut items = state.steps.iter().filter(|one| is_item_of(&one.step, id));
        let by_items = items.clone().next().is_some()
            && items.all(|one| one.current().is_none_or(|current| !current.pruned));
        let again = match verdict.is_made_again() {
            true => name.contains('/') == by_items,
            false if verdict.is_reuse() => false,
            false => name.contains('/') && !item_holds(flow, state, plan, now, name, current),
        };
        if again {
            found.push((step.step.clone(), current.attempt));
        }
    }
    found
}

/// Has the results of steps and items hold although what they were made from changed: a person says that they were done.
fn said_done(flow: &Flow, state: &RunState, plan: &Plan, now: &Now, names: &[String]) -> Happened {
    let accept = |name: &String| {
        let fingerprint = now.fingerprints.get(owner(name)).cloned();
        let mut accepted = Accepted { fingerprint, ..Accepted::default() };
        for need in flow.step(owner(name)).into_iter().flat_map(|step| &step.needs) {
            let need = need.as_str();
            let known = state.step(need).and_then(StepState::current);
            match plan.step(need) {
                Some(Verdict::Reuse { .. }) => {
                    accepted.consumed.extend(known.map(|one| (need.to_owned(), one.attempt)));
                }
                _ => drop(accepted.spared.insert(need.to_owned())),
            }
        }
        (name.clone(), accepted)
    };
    Happened::Accepted { steps: names.iter().map(accept).collect() }
}

/// What a person says of a step or item, by its own name or that of its step.
fn decision(resume: &Resume, name: &str) -> Option<Decided> {
    let of = |what: &str| resume.decided.iter().find(|(of, _)| of == what).map(|(_, decided)| *decided);
    of(name).or_else(|| of(owner(name)))
}

/// Says whether the result of an item holds as far as what it shares with the others goes.
fn item_holds(flow: &Flow, state: &RunState, plan: &Plan, now: &Now, name: &str, made: &Attempt) -> bool {
    let Some(step) = flow.step(owner(name)) else { return false };
    let accepted = state.step(name).and_then(|item| item.accepted.as_ref());
    let consumed = accepted.map_or(&made.record.consumed, |accepted| &accepted.consumed);
    let same_need = |need: &str| {
        let current = state.step(need).and_then(StepState::current).map(|one| one.attempt);
        let is_same =
            current.as_ref() == consumed.get(need) && plan.step(need).is_some_and(Verdict::is_reuse);
        is_same || accepted.is_some_and(|accepted| accepted.spared.contains(need))
    };
    let its_files = !now.files.contains_key(name);
    let its_needs = step.needs.iter().all(|need| same_need(need.as_str()));
    let before = accepted.and_then(|accepted| accepted.fingerprint.as_ref());
    let before = before.or(made.record.fingerprint.as_ref());
    // Which list it is part of does not matter, only what it is for.
    let is_made_so = match (before, now.fingerprints.get(step.id.as_str())) {
        (Some(before), Some(now)) => {
            before.differences(now).iter().all(|part| part == "item" || part == "for_each")
        }
        _ => true,
    };
    !made.pruned && its_files && its_needs && is_made_so
}

/// Steps and items that may be done once only and were stopped in the middle.
fn cut_off(flow: &Flow, state: &RunState, plan: &Plan, begun: &Begun) -> Vec<(String, u32)> {
    let mut cut_off = Vec::new();
    for step in flow.steps.iter().filter(|step| step.effects == Effects::Once) {
        let id = step.id.as_str();
        match plan.step(id) {
            Some(Verdict::Reuse { .. }) => {}
            _ if step.for_each.is_some() => {
                let names = items(state, begun).into_iter().filter(|name| owner(name) == id);
                cut_off.extend(names.filter_map(|name| {
                    let attempt = in_the_middle(state, begun, &name)?;
                    Some((name, attempt))
                }));
            }
            Some(Verdict::Interrupted { .. } | Verdict::Failed { .. }) => {
                cut_off.extend(in_the_middle(state, begun, id).map(|attempt| (id.to_owned(), attempt)));
            }
            _ => {}
        }
    }
    cut_off
}

/// The newest attempt of a step or item, if nobody knows how far it got.
fn in_the_middle(state: &RunState, begun: &Begun, name: &str) -> Option<u32> {
    let last = state.step(name).and_then(StepState::last);
    let (ended, begun) = (last.map_or(0, |one| one.attempt), begun.attempts.get(name).copied().unwrap_or(0));
    if begun > ended {
        return Some(begun);
    }
    let last = last?;
    let stopped = match last.status {
        StepStatus::Cancelled => true,
        StepStatus::Failed => last.record.timed_out || last.record.signal.is_some(),
        _ => false,
    };
    stopped.then_some(last.attempt)
}

/// The items that are known: they ended, or at least began.
fn items(state: &RunState, begun: &Begun) -> BTreeSet<String> {
    let names = state.steps.iter().map(|step| &step.step).chain(begun.attempts.keys());
    names.filter(|name| name.contains('/')).cloned().collect()
}

/// Looks at what is there now: definitions, files, gates. Also returns files that steps left and that are gone.
#[expect(clippy::type_complexity, reason = "it is taken apart at once")]
fn look(
    project: &Project,
    flow: &Flow,
    state: &RunState,
) -> Result<(Now, Vec<(PathBuf, Attempt, Artifact)>), Error> {
    let root = &project.place().root;
    let mut now = Now::default();
    let mut newest: HashMap<&str, (&str, &Attempt)> = HashMap::new();
    for step in flow.order() {
        let id = step.id.as_str();
        let current = state.step(id).and_then(StepState::current);
        if let Some(current) = current.filter(|_| matches!(step.action, Does::Ask(_)))
            && is_reopened(project, current)?
        {
            now.reopened.push(id.to_owned());
        }
        for output in &step.outputs {
            for (name, made) in makers(state, id) {
                let is_kept = made.artifact(&format!("{FILES}{}", output.name)).is_some();
                let later = newest.get(output.path.as_str()).is_none_or(|(_, other)| other.seq < made.seq);
                if is_kept && later {
                    newest.insert(&output.path, (name, made));
                }
            }
        }
    }
    let mut missing = Vec::new();
    for (path, (id, attempt)) in newest {
        let step = flow.step(owner(id)).expect("it was found above");
        let name = step.outputs.iter().find(|output| output.path == path).map(|output| &output.name);
        let kept = name.and_then(|name| attempt.artifact(&format!("{FILES}{name}")));
        let Some(kept) = kept else { continue };
        match made_of::hash_of(&root.join(path)) {
            Ok(hash) if hash == kept.blob.hash => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing.push((root.join(path), attempt.clone(), kept.clone()));
            }
            _ => now.files.entry(id.to_owned()).or_default().push(made_of::file_part(path)),
        }
    }
    let back = |(path, made, kept): &(PathBuf, Attempt, Artifact)| {
        let is_executable = mode_of(made, kept).is_some_and(|mode| mode & 0o100 != 0);
        (path.clone(), made_of::Back { hash: kept.blob.hash, is_executable })
    };
    let back = missing.iter().map(back).collect();
    for step in &flow.steps {
        let fingerprint = made_of::fingerprint_with(step, root, None, &back);
        now.fingerprints.insert(step.id.to_string(), fingerprint);
    }
    Ok((now, missing))
}

/// The mode of a file that an attempt left; an earlier version did not keep it.
fn mode_of(attempt: &Attempt, kept: &Artifact) -> Option<u32> {
    attempt.record.modes.get(kept.name.as_str().strip_prefix(FILES)?).copied()
}

/// Who left the files of a step: the step, or its items as long as they are not put together.
fn makers<'s>(state: &'s RunState, step: &str) -> Vec<(&'s str, &'s Attempt)> {
    let current = |one: &'s StepState| Some((one.step.as_str(), one.current()?));
    match state.step(step).and_then(current) {
        Some(made) => vec![made],
        None => state.steps.iter().filter(|one| owner(&one.step) == step).filter_map(current).collect(),
    }
}

/// Says whether the answer that a step went on with holds no more.
fn is_reopened(project: &Project, attempt: &Attempt) -> Result<bool, Error> {
    let Some(gate) = attempt.record.gate.as_deref().and_then(|gate| GateId::new(gate).ok()) else {
        return Ok(false);
    };
    let answered = load_result(project, attempt)?;
    match Gates::of(project).get(&gate) {
        // Which answer it was is not known any more; that there is none is.
        Ok(gate) if attempt.pruned => Ok(gate.checkpoint().is_none()),
        Ok(gate) => {
            Ok(gate.checkpoint().map(|id| Value::from(id.to_string())).as_ref() != answered.get("checkpoint"))
        }
        Err(crate::gate::Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Reads the result of an attempt; nothing is null.
fn load_result(project: &Project, attempt: &Attempt) -> Result<Value, Error> {
    let Some(result) = attempt.artifact(RESULT) else { return Ok(Value::Null) };
    let damaged = |what: String| Error::Damaged { run: attempt.run.clone(), what, newest: None };
    let bytes = project.store().load(&result.blob).map_err(|error| match error.is_damage() {
        true => damaged(format!("checkpoint {}: {error}", attempt.checkpoint)),
        false => error.into(),
    })?;
    serde_json::from_slice(&bytes)
        .map_err(|_| damaged(format!("checkpoint {}: its result is no JSON", attempt.checkpoint)))
}

/// Reads the history of a run. If some of it is damaged, says what, and which checkpoint before it is sound.
fn load_sound(project: &Project, id: &RunId) -> Result<History, Error> {
    match History::load(project, id) {
        Err(Error::Project(crate::project::Error::Store(error))) if error.is_damage() => {
            let newest = newest_sound(project, id);
            Err(Error::Damaged { run: id.clone(), what: error.to_string(), newest })
        }
        other => other,
    }
}

/// The newest checkpoint of a run up to which everything can be read.
fn newest_sound(project: &Project, id: &RunId) -> Option<String> {
    let mut newest = None;
    for seq in 1.. {
        match project.store().at(id, seq) {
            Ok(Some(Found::Live(checkpoint))) => {
                let sound =
                    checkpoint.content.artifacts.iter().all(|one| project.store().load(&one.blob).is_ok());
                if !sound {
                    break;
                }
                newest = Some(format!("{id}/{seq} ({})", checkpoint.content.kind));
            }
            Ok(Some(Found::Pruned(_))) => {}
            _ => break,
        }
    }
    newest
}

/// Why a result does not hold, in words.
fn because(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Changed { parts } => format!("{} changed", parts.join(", ")),
        Verdict::Downstream { of } => format!("step `{of}`, which it is made from, is done again"),
        Verdict::Pruned => "its result was pruned".to_owned(),
        _ => "what it was made from changed".to_owned(),
    }
}

impl Prepared {
    /// Refuses what must not be gone on with.
    pub(super) fn check(&self, resume: &Resume) -> Result<(), Error> {
        let run = self.state.run.id.clone();
        match self.ended {
            Some(Status::Completed)
                if !self.asked && !self.said && (self.plan.is_done() || self.led_to_end()) =>
            {
                return Err(Error::Over { run, status: Status::Completed });
            }
            Some(Status::Cancelled) => return Err(Error::Over { run, status: Status::Cancelled }),
            _ => {}
        }
        let redefined = self.plan.redefined();
        if !redefined.is_empty() && !resume.accept_changes {
            return Err(Error::Redefined { run, steps: redefined });
        }
        let is_told = |name: &str| resume.accept_changes || decision(resume, name) == Some(Decided::Redo);
        match self.once_again.iter().find(|(name, _)| !is_told(name)) {
            Some((step, attempt)) => {
                let why = self.plan.step(owner(step)).map_or("what it was made from changed".into(), because);
                Err(Error::DoneOnce { step: step.clone(), attempt: *attempt, why })
            }
            None => Ok(()),
        }
    }

    /// Says whether a step is done when the run goes on, as far as that can be told.
    pub(super) fn is_to_do(&self, resume: &Resume, step: &str) -> bool {
        let holds = self.plan.step(step).is_some_and(Verdict::is_reuse);
        !holds && decision(resume, step) != Some(Decided::Done)
    }

    /// Puts back files that steps left and that are gone.
    pub(super) fn put_back(&self, project: &Project) -> Result<(), Error> {
        let reused = |attempt: &Attempt| {
            let of = self
                .state
                .steps
                .iter()
                .find(|step| step.current().is_some_and(|one| one.checkpoint == attempt.checkpoint));
            of.is_some_and(|step| match step.step.contains('/') {
                true => self.item_holds(&step.step, attempt),
                false => self.plan.step(&step.step).is_some_and(Verdict::is_reuse),
            })
        };
        for (path, attempt, kept) in self.missing.iter().filter(|(_, attempt, _)| reused(attempt)) {
            let failed = |source| Error::File { doing: "put back", path: path.clone(), source };
            let bytes = project.store().load(&kept.blob).map_err(|error| Error::Damaged {
                run: attempt.run.clone(),
                what: format!("checkpoint {}: {error}", attempt.checkpoint),
                newest: None,
            })?;
            put_back(&project.place().root, path, &bytes, mode_of(attempt, kept)).map_err(failed)?;
        }
        Ok(())
    }

    /// What the schedule begins with. Everything that is reused is read, and so checked.
    pub(super) fn known(&self, project: &Project, begun: &Begun) -> Result<HashMap<String, Known>, Error> {
        let mut known = HashMap::new();
        let attempts = |name: &str| begun.attempts.get(name).copied().unwrap_or(0);
        for step in &self.flow.steps {
            let id = step.id.as_str();
            let state = self.state.step(id);
            let mut one = known_of(state, attempts(id));
            if let Some(Verdict::Reuse { attempt }) = self.plan.step(id) {
                let made = state.and_then(|step| step.attempts.iter().find(|one| one.attempt == *attempt));
                one.result = made.map(|made| self.check_payloads(project, made)).transpose()?;
                one.position = made.map_or(0, |made| made.position);
                one.led = made.and_then(|made| self.led(made));
            }
            one.revived =
                self.state.led.iter().filter(|(_, to)| self.is_after(id, to)).map(|(at, _)| *at).max();
            known.insert(id.to_owned(), one);
        }
        for name in items(&self.state, begun) {
            let item = self.state.step(&name);
            let mut one = known_of(item, attempts(&name));
            match item.and_then(StepState::current) {
                Some(made) if self.item_holds(&name, made) => {
                    one.result = Some(self.check_payloads(project, made)?);
                    let made_for = made.record.fingerprint.as_ref().and_then(|print| print.part("item"));
                    one.made_for = made_for.map(str::to_owned);
                }
                // It is done again because what it was made from changed.
                Some(_) => one.generation += 1,
                None => {}
            }
            known.insert(name, one);
        }
        Ok(known)
    }

    /// Says whether a step is another, or depends on it.
    fn is_after(&self, step: &str, other: &str) -> bool {
        let at = |step: &str| self.flow.number(step).map(|number| number - 1);
        let (Some(step), Some(other)) = (at(step), at(other)) else { return false };
        and_dependents(&self.flow, &[other]).contains(&step)
    }

    /// Where a result led.
    fn led(&self, made: &Attempt) -> Option<Led> {
        match made.record.led_to.as_deref()? {
            Target::END if self.asked => Some(Led::PastEnd),
            Target::END => Some(Led::End),
            step => Some(Led::To(step.to_owned())),
        }
    }

    /// Says whether a result that holds led to the end of the run.
    fn led_to_end(&self) -> bool {
        let led = |planned: &Planned| {
            let current = self.state.step(&planned.step).and_then(StepState::current);
            current.is_some_and(|one| one.record.led_to.as_deref() == Some(Target::END))
        };
        self.plan.steps.iter().any(|planned| planned.verdict.is_reuse() && led(planned))
    }

    fn item_holds(&self, name: &str, made: &Attempt) -> bool {
        item_holds(&self.flow, &self.state, &self.plan, &self.now, name, made)
    }

    /// Reads every payload of an attempt that is reused, and returns its result.
    fn check_payloads(&self, project: &Project, made: &Attempt) -> Result<StepResult, Error> {
        for kept in &made.artifacts {
            let copied = project.store().open(&kept.blob).map_err(io::Error::other);
            let copied = copied.and_then(|mut from| io::copy(&mut from, &mut io::sink()));
            copied.map_err(|error| Error::Damaged {
                run: made.run.clone(),
                what: format!("checkpoint {}, artifact {}: {error}", made.checkpoint, kept.name),
                newest: newest_sound(project, &made.run),
            })?;
        }
        let output = load_result(project, made)?;
        Ok(StepResult { status: made.status, exit: made.record.exit, attempt: made.attempt, output })
    }
}

impl Runner<'_, '_> {
    /// Finds out what became of a step or item that may be done once only and was cut off: its `verify` tells, or a
    /// person.
    pub(super) fn settle(
        &self,
        name: &str,
        number: u32,
        resume: &Resume,
        known: &mut HashMap<String, Known>,
        input: &Value,
    ) -> Result<(), Error> {
        let step = owner(name);
        let definition = self.flow.step(step).expect("it is a step of the flow");
        let decided = decision(resume, name);
        let schedule = super::schedule::Schedule::new(&self.flow, input.clone(), 1, known.clone());
        let at = self.flow.number(step).map_or(0, |number| number - 1);
        let item = name.split_once('/').and_then(|(_, item)| item.parse().ok());
        let unit = super::schedule::Unit { step: at, item };
        let attempt = self.attempt(
            &schedule,
            unit,
            number + 1,
            known.get(name).map_or(0, |one| one.generation),
            std::time::Duration::ZERO,
        );
        let done = match (decided, &definition.verify) {
            (Some(Decided::Redo), _) => return Ok(()),
            (Some(Decided::Done), _) => true,
            (None, Some(verify)) => self.is_verified(&attempt, verify)?,
            (None, None) => false,
        };
        if !done {
            return match (decided, &definition.verify) {
                // It says that nothing was done, so doing it is safe.
                (None, Some(_)) => Ok(()),
                _ => Err(Error::Once { step: name.to_owned(), attempt: number }),
            };
        }
        let mut end = self.plain(&attempt, StepStatus::Completed, Value::Null);
        end.record.notes.push(match decided {
            Some(_) => "it was cut off; a person said that it had been done".to_owned(),
            None => attempt::WAS_DONE.to_owned(),
        });
        self.keep(unit, &attempt, attempt::Done { hopeless: false, ..end })?;
        let entry = known.entry(name.to_owned()).or_default();
        entry.attempt = attempt.number;
        entry.made_for = attempt.item.as_ref().map(Fingerprint::hash);
        entry.result = Some(StepResult {
            status: StepStatus::Completed,
            exit: None,
            attempt: attempt.number,
            output: Value::Null,
        });
        Ok(())
    }
}
