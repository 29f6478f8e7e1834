//! Looking at runs: `flow list`, `flow show`, `flow checkpoints`.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use serde::Serialize;
use stagepost::flow::{self, Flows, Outline, RunState, Source, Status, StepState};
use stagepost::gate::{Gates, Verdict};
use stagepost::model::{Checkpoint, CheckpointId, Kind, RunId, Timestamp};
use stagepost::project::{Clock, Project, SystemClock};
use stagepost::store::Query;

use super::live::duration;
use crate::app::App;
use crate::commands::log::pinned;
use crate::failure::{Code, Failure};
use crate::json::{LogOutput, Output, SCHEMA};
use crate::ui::{self, BOLD, CYAN, DIM, Form, GREEN, RED, YELLOW};

/// List flow runs, newest first
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Only those that stand so; may be given several times
    #[arg(long, value_name = "STATUS", value_parser = statuses())]
    status: Vec<Status>,
    /// Only those of flows with this name
    #[arg(long, value_name = "NAME")]
    flow: Option<String>,
    /// Only those that something happened to not longer ago than this, such as 2d
    #[arg(long, value_name = "DURATION", value_parser = super::parse_duration)]
    since: Option<Duration>,
    /// At most so many; 0 for no limit
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    limit: usize,
}

fn statuses() -> impl clap::builder::TypedValueParser<Value = Status> {
    PossibleValuesParser::new(Status::ALL.iter().map(|status| status.as_str())).map(|text| {
        Status::ALL.iter().copied().find(|status| status.as_str() == text).expect("it was checked")
    })
}

/// Show a run: its steps with attempts, durations and sizes, and what to do next
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The run: its name or the start of it, `@` for the newest
    #[arg(value_name = "RUN")]
    run: String,
    /// Print what a step printed, as far as it was kept
    #[arg(long, value_name = "STEP")]
    output: Option<String>,
}

/// List the checkpoints of a run, newest first
#[derive(Debug, clap::Args)]
pub(crate) struct CheckpointsArgs {
    /// The run: its name or the start of it, `@` for the newest
    #[arg(value_name = "RUN")]
    run: String,
}

#[derive(Serialize)]
struct RunBody {
    id: RunId,
    flow: Option<String>,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<WaitsFor>,
    started_at: Timestamp,
    changed_at: Timestamp,
    ended_at: Option<Timestamp>,
    forked_from: Option<CheckpointId>,
    drives: u32,
    bytes: u64,
    next: Option<String>,
    steps: Vec<StepBody>,
}

#[derive(Serialize)]
struct WaitsFor {
    step: String,
    gate: String,
}

#[derive(Serialize)]
struct StepBody {
    id: String,
    status: String,
    attempts: usize,
    attempt: Option<u32>,
    took_ms: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    checkpoint: Option<CheckpointId>,
    pruned: bool,
    thinned: bool,
    artifacts: Vec<String>,
}

impl StepBody {
    fn of(id: &str, step: Option<&StepState>, begun: Option<u32>, run: Status) -> Self {
        let last = step.and_then(StepState::last);
        let ended = last.map(|attempt| attempt.attempt).unwrap_or(0);
        let runs = begun.filter(|attempt| *attempt > ended);
        let given_up = step.is_some_and(|step| step.current().is_none())
            && last.is_some_and(|attempt| attempt.status.as_str() == "completed");
        let status = match (runs, last) {
            (Some(_), _) if run == Status::Running => "running",
            (Some(_), _) => "interrupted",
            (None, Some(_)) if given_up => "pending",
            (None, Some(last)) => last.status.as_str(),
            (None, None) => "pending",
        };
        Self {
            id: id.to_owned(),
            status: status.to_owned(),
            // They are numbered from 1, and those that were cut off have left nothing but the gap.
            attempts: usize::try_from(runs.unwrap_or(ended)).unwrap_or(usize::MAX),
            attempt: runs.or(last.map(|attempt| attempt.attempt)),
            took_ms: step.map_or(0, |step| step.took().as_millis().try_into().unwrap_or(u64::MAX)),
            bytes: last.map_or(0, |attempt| attempt.bytes()),
            exit: last.and_then(|attempt| attempt.record.exit),
            signal: last.and_then(|attempt| attempt.record.signal),
            error: last.and_then(|attempt| attempt.record.error.clone()),
            notes: last.map(|attempt| attempt.record.notes.clone()).unwrap_or_default(),
            checkpoint: last.map(|attempt| attempt.checkpoint),
            pruned: last.is_some_and(|attempt| attempt.pruned),
            thinned: last.is_some_and(|attempt| attempt.thinned),
            artifacts: last
                .map(|attempt| attempt.artifacts.iter().map(|one| one.name.to_string()).collect())
                .unwrap_or_default(),
        }
    }
}

impl RunBody {
    fn of(project: &Project, state: RunState) -> Self {
        let steps = steps(project, &state);
        let next = next(project, &state);
        Self {
            flow: state.definition.as_ref().map(|definition| definition.name.clone()),
            waits_for: state.waits_for.clone().map(|(step, gate)| WaitsFor { step, gate }),
            started_at: state.started_at(),
            bytes: state.bytes(),
            id: state.run.id,
            status: state.status,
            why: state.why,
            changed_at: state.changed_at,
            ended_at: state.ended_at,
            forked_from: state.run.forked_from,
            drives: state.drives,
            next,
            steps,
        }
    }
}

/// The steps of a run: those of its flow in its order, then whatever else there is.
fn steps(project: &Project, state: &RunState) -> Vec<StepBody> {
    let begun = flow::begun(project, &state.run.id);
    let definition = state.definition.as_ref();
    let flow =
        definition.and_then(|definition| Source::read(&definition.text, None).ok()).map(|one| one.flow);
    let declared: Vec<&str> =
        flow.iter().flat_map(|flow| flow.order()).map(|step| step.id.as_str()).collect();
    let mut found: Vec<&str> = state.steps.iter().map(|step| step.step.as_str()).collect();
    // Items in the order of their list, whichever ended first.
    found.sort_by_key(|step| step.split_once('/').and_then(|(_, item)| item.parse::<usize>().ok()));
    // Each step with its items, which may be many.
    let (mut groups, mut places): (Vec<Vec<&str>>, HashMap<&str, usize>) = (Vec::new(), HashMap::new());
    let mut listed = HashSet::new();
    for name in declared.into_iter().chain(found).filter(|name| listed.insert(*name)) {
        let place = *places.entry(name.split('/').next().unwrap_or(name)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(name);
    }
    let body = |name: &str| StepBody::of(name, state.step(name), begun.get(name).copied(), state.status);
    groups.into_iter().flatten().map(body).collect()
}

/// What a person can do about a run.
fn next(project: &Project, state: &RunState) -> Option<String> {
    let id = &state.run.id;
    let in_code = state.definition.is_none();
    match (state.status, &state.waits_for) {
        (Status::Waiting, Some((_, gate))) => {
            Some(format!("stagepost gate answer {gate} TEXT, then stagepost flow resume {id}"))
        }
        (Status::Interrupted | Status::Failed, _) if in_code => Some("start its program again".to_owned()),
        (Status::Interrupted | Status::Failed | Status::Waiting, _) => {
            Some(format!("stagepost flow resume {id}"))
        }
        (Status::Declined, _) => {
            let gate = declined(project, id).unwrap_or_else(|| "GATE".to_owned());
            Some(format!("stagepost gate reopen {gate}, then stagepost flow resume {id}"))
        }
        _ => None,
    }
}

/// The gate of a run at which someone said no last.
fn declined(project: &Project, run: &RunId) -> Option<String> {
    let gates = Gates::of(project).all().ok()?;
    let no = gates.into_iter().filter(|gate| gate.of.run == *run && gate.verdict() == Verdict::No);
    no.max_by_key(|gate| gate.asked_at).map(|gate| gate.id.to_string())
}

/// The runs that are listed, newest first, and whether some are not because they are damaged.
fn listed(app: &App, project: &Project, args: &ListArgs) -> Result<(Vec<RunState>, bool), Failure> {
    let now = SystemClock.now();
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let (mut states, mut damaged) = (Vec::new(), false);
    for run in Outline::runs(project)? {
        if states.len() == limit {
            break;
        }
        let id = run.id.clone();
        let wanted = Outline::load(project, run).and_then(|outline| is_wanted(project, args, &outline, now));
        let state = wanted.and_then(|wanted| wanted.then(|| RunState::load(project, &id)).transpose());
        match state.map_err(Failure::from) {
            Ok(state) => states.extend(state),
            // One that is damaged must not keep the others from being seen.
            Err(failure) if failure.code == Code::Integrity => {
                let why = ui::printable(&failure.message).into_owned();
                app.ui.warn(format!("not listed, because it is damaged: {id} ({why})"));
                damaged = true;
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok((states, damaged))
}

fn is_wanted(
    project: &Project,
    args: &ListArgs,
    outline: &Outline,
    now: Timestamp,
) -> Result<bool, flow::Error> {
    let status = args.status.is_empty() || args.status.contains(&outline.status);
    let flow = args.flow.is_none() || args.flow == outline.flow;
    if outline.deleted || !status || !flow {
        return Ok(false);
    }
    match args.since {
        Some(since) => Ok(outline.changed_at(project)?.until(now) <= since),
        None => Ok(true),
    }
}

pub(crate) fn list(app: &App, args: &ListArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let (states, damaged) = listed(app, &project, args)?;
    let now = SystemClock.now();
    match app.ui.form {
        Form::Json => {
            let runs: Vec<RunBody> = states.into_iter().map(|state| RunBody::of(&project, state)).collect();
            app.ui.json(&Output::new(serde_json::json!({ "runs": runs })))
        }
        Form::Quiet => states.iter().try_for_each(|state| app.ui.line(state.run.id.as_str())),
        Form::Text => {
            if states.is_empty() {
                app.ui.say("no flow runs");
            }
            let rows: Vec<Row> = states.iter().map(|state| Row::of(state, now)).collect();
            let widths = Row::widths(&rows);
            rows.iter().try_for_each(|row| app.ui.line(row.line(widths)))
        }
    }?;
    if damaged { Err(Failure::told(Code::Integrity)) } else { Ok(()) }
}

/// A run in the list of runs.
struct Row {
    id: String,
    status: &'static str,
    flow: String,
    done: String,
    when: String,
}

impl Row {
    fn of(state: &RunState, now: Timestamp) -> Self {
        let is_done = |step: &&StepState| step.current().is_some() && !step.step.contains('/');
        let done = state.steps.iter().filter(is_done).count();
        let name = state.definition.as_ref().map_or("in code", |definition| &definition.name);
        Self {
            id: state.run.id.to_string(),
            status: state.status.as_str(),
            flow: ui::printable(name).into_owned(),
            done: ui::count(done, "step done").replace("step dones", "steps done"),
            when: ui::ago(state.changed_at, now),
        }
    }

    fn widths(rows: &[Self]) -> [usize; 4] {
        let widest = |pick: fn(&Self) -> &str| rows.iter().map(|row| pick(row).chars().count()).max();
        [widest(|row| &row.id), widest(|row| row.status), widest(|row| &row.flow), widest(|row| &row.done)]
            .map(Option::unwrap_or_default)
    }

    fn line(&self, [ids, statuses, flows, steps]: [usize; 4]) -> String {
        let pad = " ".repeat(statuses - self.status.len());
        format!(
            "{BOLD}{:<ids$}{BOLD:#}  {}{pad}  {:<flows$}  {:<steps$}  {DIM}{}{DIM:#}",
            self.id,
            coloured(self.status),
            self.flow,
            self.done,
            self.when
        )
    }
}

fn coloured(status: &str) -> String {
    let colour = match status {
        "completed" => GREEN,
        "failed" | "declined" | "cancelled" => RED,
        "pending" | "skipped" => DIM,
        _ => YELLOW,
    };
    format!("{colour}{status}{colour:#}")
}

pub(crate) fn show(app: &App, args: &ShowArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let id = Flows::of(&project).resolve(&args.run)?;
    match &args.output {
        Some(step) => output(app, &project, &id, step),
        None => print_state(app, &project, &id),
    }
}

fn output(app: &App, project: &Project, id: &RunId, step: &str) -> Result<(), Failure> {
    let state = RunState::load(project, id)?;
    let known = || state.steps.iter().map(|step| step.step.clone()).collect();
    let missing = || flow::Error::NoStep { step: step.to_owned(), known: known() };
    let last = state.step(step).and_then(StepState::last).ok_or_else(missing)?;
    match last.artifact(flow::OUTPUT) {
        Some(kept) => app.ui.raw(&mut project.store().open(&kept.blob)?),
        None => {
            let pruned = last.pruned || last.thinned;
            let what = if pruned { "what it printed was pruned" } else { "it printed nothing" };
            app.ui.say(format!("step `{step}`: {what}"));
            Ok(())
        }
    }
}

/// Prints how a run stands.
pub(super) fn print_state(app: &App, project: &Project, id: &RunId) -> Result<(), Failure> {
    let body = RunBody::of(project, RunState::load(project, id)?);
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(serde_json::json!({ "run": body }))),
        Form::Quiet => app.ui.line(body.id.as_str()),
        Form::Text => app.ui.text(&text(&body)),
    }
}

fn text(body: &RunBody) -> String {
    let name = body.flow.as_deref().unwrap_or("in code");
    let why = body.why.as_deref().map(|why| format!(": {}", ui::printable(why))).unwrap_or_default();
    let mut lines = vec![format!(
        "{BOLD}{}{BOLD:#}  {}  {}{why}",
        body.id,
        ui::printable(name),
        coloured(body.status.as_str())
    )];
    let width = body.steps.iter().map(|step| step.id.chars().count()).max().unwrap_or(0);
    for step in &body.steps {
        lines.push(format!("  {}{}  {}", step.id, " ".repeat(width - step.id.chars().count()), detail(step)));
    }
    if let Some(next) = &body.next {
        lines.push(format!("next: {CYAN}{next}{CYAN:#}"));
    }
    lines.join("\n") + "\n"
}

fn detail(step: &StepBody) -> String {
    let mut parts = vec![coloured(&step.status)];
    if step.attempts > 1 {
        parts.push(format!("{} attempts", step.attempts));
    }
    if step.took_ms > 0 {
        parts.push(duration(Duration::from_millis(step.took_ms)));
    }
    if step.bytes > 0 {
        parts.push(ui::bytes(step.bytes));
    }
    if step.pruned {
        parts.push("pruned".to_owned());
    }
    if step.thinned {
        parts.push("pruned but for its result".to_owned());
    }
    if let Some(error) = &step.error {
        parts.push(ui::headline(error, 80));
    }
    parts.extend(step.notes.iter().map(|note| ui::headline(note, 80)));
    parts.join(", ")
}

pub(crate) fn checkpoints(app: &App, args: &CheckpointsArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let id = Flows::of(&project).resolve(&args.run)?;
    let found = project.log(&Query { run: Some(id), ..Query::default() })?;
    let place = |one: &Checkpoint| format!("{}/{}", one.run, one.seq);
    let widest = |pick: fn(&Checkpoint) -> String| {
        found.iter().map(|one| pick(one).chars().count()).max().unwrap_or(0)
    };
    let (places, kinds) = (widest(place), widest(short_kind));
    match app.ui.form {
        Form::Json => {
            let pinned = pinned(&project, &found)?;
            app.ui.json(&LogOutput { schema: SCHEMA, checkpoints: &found, pinned: &pinned, damaged: &[] })
        }
        Form::Quiet => found.iter().try_for_each(|one| app.ui.line(one.id.to_string())),
        Form::Text => found.iter().try_for_each(|one| {
            let kind = short_kind(one);
            let bytes: u64 = one.content.artifacts.iter().map(|artifact| artifact.blob.size).sum();
            let files = if one.content.snapshot.is_some() { ", with files" } else { "" };
            app.ui.line(format!(
                "{CYAN}{}{CYAN:#}  {:<places$}  {kind:<kinds$}  {DIM}{}, {}{files}{DIM:#}",
                project.short_id(&one.id)?,
                place(one),
                one.created_at,
                ui::bytes(bytes)
            ))
        }),
    }
}

/// What a checkpoint of a run is, in few words.
fn short_kind(one: &Checkpoint) -> String {
    let kind = match &one.content.kind {
        kind @ (Kind::Step { .. } | Kind::Decision { .. }) => kind.to_string(),
        other => other.as_str().to_owned(),
    };
    ui::printable(&kind).into_owned()
}
