use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;
use stagepost::model::{Checkpoint, Timestamp};
use stagepost::plan::{About, Call, History, Iteration, Plan, Point, Scores, Standing};
use stagepost::project::{Project, write_whole};

use super::{number, score_text};
use crate::app::App;
use crate::failure::{Code, Failure};
use crate::json::Output;
use crate::ui::{self, BOLD, DIM, Form, GREEN, RED, YELLOW};

/// List the runs, newest first
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Only those of this project
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
}

/// Show a run: its iterations, what failed, how it ended
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The run
    run: String,
    /// One iteration, with its plan and what was said of it
    #[arg(long, value_name = "N")]
    iteration: Option<u32>,
}

/// Show how the scores of a run went
#[derive(Debug, clap::Args)]
pub(crate) struct ScoresArgs {
    /// The run
    run: String,
    /// A picture instead of a table: svg or text
    #[arg(long, value_name = "KIND")]
    plot: Option<Plot>,
    /// Write the picture to this file
    #[arg(long, value_name = "FILE", requires = "plot")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Plot {
    /// A picture for a browser or a document
    Svg,
    /// One line of bars
    Text,
}

/// Show the best attempt of a run, or of all runs of a project
#[derive(Debug, clap::Args)]
pub(crate) struct BestArgs {
    /// The run
    #[arg(required_unless_present = "project")]
    run: Option<String>,
    /// All runs of this project
    #[arg(long, value_name = "NAME", conflicts_with = "run")]
    project: Option<String>,
    /// Print the plan alone, as JSON
    #[arg(long)]
    plan: bool,
}

#[derive(Serialize)]
struct Row {
    run: String,
    #[serde(flatten)]
    about: About,
    created_at: Timestamp,
    status: Standing,
    iterations: usize,
    best: Option<u32>,
    #[serde(flatten)]
    scored: Option<stagepost::formats::plans::Scored>,
    tokens: u64,
    seconds: f64,
    reason: Option<String>,
    thresholds: stagepost::formats::plans::Thresholds,
}

impl Row {
    fn of(project: &Project, history: &History) -> Self {
        let best = history.best();
        Self {
            run: history.run.id.to_string(),
            about: history.about.clone(),
            created_at: history.run.created_at,
            status: Standing::of(project, history),
            iterations: history.iterations.len(),
            best: best.map(|one| one.number),
            scored: best.and_then(|one| one.judgement.as_ref()).map(|said| said.scored),
            tokens: history.tokens,
            seconds: history.seconds,
            reason: history.end.as_ref().and_then(|end| end.reason.clone()),
            thresholds: history.thresholds(),
        }
    }
}

fn status_text(status: Standing) -> String {
    let style = match status {
        Standing::Success => GREEN,
        Standing::Failed | Standing::Interrupted => RED,
        Standing::Incomplete => YELLOW,
        _ => BOLD,
    };
    format!("{style}{:<11}{style:#}", status.as_str())
}

#[derive(Serialize)]
struct Rows {
    runs: Vec<Row>,
}

pub(crate) fn list(app: &App, args: &ListArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let wanted = |plan: &Plan<'_>| args.project.as_ref().is_none_or(|name| plan.about().project == *name);
    let mut runs = Vec::new();
    for plan in Plan::all(&project)?.iter().rev().filter(|plan| wanted(plan)) {
        runs.push(Row::of(&project, &plan.history()?));
    }
    let now = project.context().clock.now();
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(Rows { runs })),
        Form::Quiet => runs.iter().try_for_each(|row| app.ui.line(&row.run)),
        Form::Text if runs.is_empty() => {
            app.ui.say("there are no runs of plans");
            Ok(())
        }
        Form::Text => runs.iter().try_for_each(|row| {
            let best = row.best.map(|best| format!("best {best}: {}", score_text(row.scored.as_ref())));
            app.ui.line(format!(
                "{BOLD}{}{BOLD:#}  {}  {:<20}  {:<13}  {}  {DIM}{}{DIM:#}",
                row.run,
                status_text(row.status),
                ui::headline(&row.about.project, 20),
                ui::count(row.iterations, "iteration"),
                best.unwrap_or_else(|| "not judged".to_owned()),
                ui::ago(row.created_at, now)
            ))
        }),
    }
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    row: Row,
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    #[serde(flatten)]
    point: Point,
    checkpoints: Vec<Recorded>,
}

#[derive(Serialize)]
struct Recorded {
    id: String,
    #[serde(rename = "type")]
    part: String,
    created_at: Timestamp,
    #[serde(flatten)]
    call: Option<Call>,
}

impl Recorded {
    fn of(checkpoint: &Checkpoint) -> Self {
        let part = checkpoint.content.kind.to_string().rsplit(' ').next().unwrap_or_default().to_owned();
        let (id, created_at) = (checkpoint.id.to_string(), checkpoint.created_at);
        Self { id, part, created_at, call: Call::of(checkpoint) }
    }
}

pub(crate) fn show(app: &App, args: &ShowArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let history = Plan::find(&project, &args.run)?.history()?;
    match args.iteration {
        Some(number) => show_iteration(app, &project, &history, number),
        None => show_run(app, &project, &history),
    }
}

fn show_run(app: &App, project: &Project, history: &History) -> Result<(), Failure> {
    let row = Row::of(project, history);
    let step = |point: Point| {
        let one = history.iterations.get(&point.iteration);
        Step {
            checkpoints: one.into_iter().flat_map(Iteration::checkpoints).map(Recorded::of).collect(),
            point,
        }
    };
    let steps: Vec<Step> = Scores::of(history).points.into_iter().map(step).collect();
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(Shown { row, steps })),
        Form::Quiet => {
            steps.iter().flat_map(|step| &step.checkpoints).try_for_each(|one| app.ui.line(&one.id))
        }
        Form::Text => {
            app.ui.line(format!(
                "{BOLD}{}{BOLD:#}  {}  {}",
                row.run,
                status_text(row.status),
                ui::printable(&row.about.project)
            ))?;
            if let Some(reason) = &row.reason {
                app.ui.line(format!("ended    {}", ui::printable(reason)))?;
            }
            app.ui.line(format!("spent    {} tokens, {}", row.tokens, spent(row.seconds)))?;
            steps.iter().try_for_each(|step| step_lines(app, project, history, step, row.best))
        }
    }
}

fn spent(seconds: f64) -> String {
    format!("{} s", number(seconds))
}

fn step_lines(
    app: &App,
    project: &Project,
    history: &History,
    step: &Step,
    best: Option<u32>,
) -> Result<(), Failure> {
    let point = &step.point;
    let mark = if best == Some(point.iteration) { "*" } else { " " };
    let told = point.gap.map_or_else(|| score_text(point.scored.as_ref()), str::to_owned);
    app.ui.line(format!("{mark} {:>3}  {told:<20} {DIM}{}{DIM:#}", point.iteration, spent(point.seconds)))?;
    let Some(one) = history.iterations.get(&point.iteration) else { return Ok(()) };
    for checkpoint in &one.failures {
        let Some(call) = Call::of(checkpoint) else { continue };
        let (id, what) = (project.short_id(&checkpoint.id)?, call.fault.unwrap_or_default());
        app.ui.line(format!(
            "       {RED}{} failed{RED:#} (attempt {}, {id}): {}",
            call.role,
            call.attempt,
            ui::printable(&what)
        ))?;
    }
    let mut errors = one.validation.iter().flat_map(|said| &said.errors);
    errors.try_for_each(|error| {
        app.ui.line(format!("       {YELLOW}not valid{YELLOW:#}: {}", ui::headline(error, 100)))
    })
}

#[derive(Serialize)]
struct Whole<'a> {
    run: &'a str,
    #[serde(flatten)]
    step: Step,
    plan: Value,
    evaluation: Option<&'a Value>,
}

fn whole<'a>(project: &Project, history: &'a History, number: u32) -> Result<Whole<'a>, Failure> {
    let one = history.iteration(number)?;
    let mut points = Scores::of(history).points.into_iter();
    let point = points
        .find(|point| point.iteration == number)
        .ok_or_else(|| Failure::new(Code::NotFound, "there is no such iteration"))?;
    let plan = if one.raw.is_some() { history.plan(project, one)? } else { Value::Null };
    let step = Step { point, checkpoints: one.checkpoints().map(Recorded::of).collect() };
    Ok(Whole {
        run: history.run.id.as_str(),
        step,
        plan,
        evaluation: one.judgement.as_ref().map(|said| &said.evaluation),
    })
}

fn show_iteration(app: &App, project: &Project, history: &History, number: u32) -> Result<(), Failure> {
    let whole = whole(project, history, number)?;
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(whole)),
        Form::Quiet => whole.step.checkpoints.iter().try_for_each(|one| app.ui.line(&one.id)),
        Form::Text => {
            step_lines(app, project, history, &whole.step, history.best().map(|one| one.number))?;
            app.ui.line(format!("{BOLD}plan{BOLD:#}"))?;
            app.ui.line(ui::printable_lines(&pretty(&whole.plan)))?;
            match whole.evaluation {
                Some(evaluation) => {
                    app.ui.line(format!("{BOLD}evaluation{BOLD:#}"))?;
                    app.ui.line(ui::printable_lines(&pretty(evaluation)))
                }
                None => Ok(()),
            }
        }
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

pub(crate) fn scores(app: &App, args: &ScoresArgs) -> Result<(), Failure> {
    if args.plot.is_some() && app.ui.form == Form::Json {
        return Err(Failure::usage("--plot draws and --json does not: use one of them".to_owned()));
    }
    let project = app.open()?;
    let scores = Scores::of(&Plan::find(&project, &args.run)?.history()?);
    let picture = match args.plot {
        Some(Plot::Svg) => scores.svg(),
        Some(Plot::Text) => format!("{}\n", scores.sparkline()),
        None if app.ui.form == Form::Json => return app.ui.json(&Output::new(scores)),
        None => return table(app, &scores),
    };
    match &args.output {
        Some(path) => {
            let path = app.folder().join(path);
            write_whole(&path, picture.as_bytes()).map_err(|error| Failure::file("write", &path, error))
        }
        None => app.ui.text(&picture),
    }
}

fn table(app: &App, scores: &Scores) -> Result<(), Failure> {
    if app.ui.form == Form::Quiet {
        let mut judged = scores.points.iter().filter_map(|point| point.scored?.score);
        return judged.try_for_each(|score| app.ui.line(number(score)));
    }
    app.ui.line(format!(
        "{BOLD}{}{BOLD:#}  {}  {DIM}approve {}, soft fail {}{DIM:#}",
        scores.run,
        scores.sparkline(),
        number(scores.thresholds.approve_at),
        number(scores.thresholds.soft_fail_at)
    ))?;
    for point in &scores.points {
        let told = point.gap.map_or_else(|| score_text(point.scored.as_ref()), |gap| format!("-  {gap}"));
        let best = if scores.best == Some(point.iteration) { "  best" } else { "" };
        app.ui.line(format!("{:>4}  {told}{GREEN}{best}{GREEN:#}", point.iteration))?;
    }
    Ok(())
}

pub(crate) fn best(app: &App, args: &BestArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let runs = match (&args.run, &args.project) {
        (Some(run), _) => vec![Plan::find(&project, run)?],
        (None, name) => {
            let named = |plan: &Plan<'_>| Some(&plan.about().project) == name.as_ref();
            Plan::all(&project)?.into_iter().filter(named).collect()
        }
    };
    let histories = runs.iter().map(Plan::history).collect::<Result<Vec<_>, _>>()?;
    let nothing =
        || Failure::new(Code::NotFound, "there is no plan yet").hint("`stagepost plan list` lists the runs");
    let history = History::best_of(&histories).ok_or_else(nothing)?;
    let best = history.best().or_else(|| history.best_effort());
    let number = best.map(|one| one.number).ok_or_else(nothing)?;
    let whole = whole(&project, history, number)?;
    if args.plan && app.ui.form != Form::Quiet {
        return app.ui.line(ui::escaped(&pretty(&whole.plan)));
    }
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(whole)),
        Form::Quiet => app.ui.line(format!("{}:{number}", whole.run)),
        Form::Text => {
            let score = score_text(whole.step.point.scored.as_ref());
            app.ui.line(format!(
                "{BOLD}{}:{number}{BOLD:#}  {score}  {}",
                whole.run,
                ui::printable(&history.about.project)
            ))?;
            app.ui.line(ui::printable_lines(&pretty(&whole.plan)))
        }
    }
}
