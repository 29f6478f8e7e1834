//! What going on would do: `flow plan`, `flow why`.

use std::path::PathBuf;

use serde::Serialize;
use stagepost::flow::definition::Flow;
use stagepost::flow::{Flows, Plan, Planned, Resume, RunState, Verdict};
use stagepost::model::RunId;

use super::drive;
use crate::app::App;
use crate::failure::Failure;
use crate::json::Output;
use crate::ui::{self, CYAN, Form};

/// Show what resuming a run would do with each step, and do nothing
///
/// Steps are reuse, new, failed, interrupted, changed (what they are made from), downstream (of a step that is done again),
/// led back to (by an answer or a failure), reopened (their question) or pruned; results of steps that the flow does not have any more are removed.
#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    /// The run: its name or the start of it, `@` for the newest
    #[arg(value_name = "RUN")]
    run: String,
    /// Go on after this step, by its id or number
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
    /// Read the flow from here instead of where it was
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Say why resuming a run would do a step, or not
#[derive(Debug, clap::Args)]
pub(crate) struct WhyArgs {
    /// The run: its name or the start of it, `@` for the newest
    #[arg(value_name = "RUN")]
    run: String,
    /// The step
    #[arg(value_name = "STEP")]
    step: String,
    /// Read the flow from here instead of where it was
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Serialize)]
struct Body<'a> {
    run: Option<&'a RunId>,
    #[serde(flatten)]
    plan: &'a Plan,
}

#[derive(Serialize)]
struct Why<'a> {
    run: &'a RunId,
    step: &'a str,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

pub(crate) fn run(app: &App, args: &PlanArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let id = Flows::of(&project).resolve(&args.run)?;
    let source = drive::source_now(app, &project, &id, args.file.as_deref())?;
    let resume = Resume { source, after: args.step.clone(), ..Resume::default() };
    let (plan, refused) = Flows::of(&project).plan_and_refusal(&id, &resume)?;
    print(app, &id, &plan)?;
    say_refused(app, &plan, refused.as_ref());
    Ok(())
}

/// Says that resuming would do nothing of the plan, as things stand.
fn say_refused(app: &App, plan: &Plan, refused: Option<&stagepost::flow::Error>) {
    if let Some(error) = refused.filter(|_| !plan.is_done()) {
        app.ui.say(format!("nothing of this is done by `flow resume` as things stand: {error}"));
    }
}

pub(crate) fn why(app: &App, args: &WhyArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let id = Flows::of(&project).resolve(&args.run)?;
    let source = drive::source_now(app, &project, &id, args.file.as_deref())?;
    let resume = Resume { source, ..Resume::default() };
    let (plan, refused) = Flows::of(&project).plan_and_refusal(&id, &resume)?;
    let known = || plan.steps.iter().map(|one| one.step.clone()).collect();
    let missing = || stagepost::flow::Error::NoStep { step: args.step.clone(), known: known() };
    let verdict = plan.step(&args.step).ok_or_else(missing)?;
    if app.ui.form == Form::Json {
        return app.ui.json(&Output::new(Why { run: &id, step: &args.step, verdict }));
    }
    app.ui.line(format!("{}: {}", args.step, because(verdict)))?;
    say_refused(app, &plan, refused.as_ref());
    let state = RunState::load(&project, &id)?;
    let last = state.step(&args.step).and_then(|step| step.last());
    match last {
        Some(last) => app.ui.line(format!(
            "attempt {} {} at {} ({}), checkpoint {}",
            last.attempt,
            last.status,
            last.at,
            super::live::duration(last.record.took()),
            project.short_id(&last.checkpoint)?
        )),
        None => Ok(()),
    }
}

/// Prints what going on would do.
pub(super) fn print(app: &App, id: &RunId, plan: &Plan) -> Result<(), Failure> {
    print_plan(app, Some(id), plan)
}

/// Prints what running a flow for the first time would do.
pub(super) fn print_new(app: &App, flow: &Flow) -> Result<(), Failure> {
    let new = |step: &stagepost::flow::definition::Step| Planned {
        step: step.id.to_string(),
        verdict: Verdict::New,
    };
    let plan = Plan { steps: flow.order().into_iter().map(new).collect(), removed: Vec::new() };
    print_plan(app, None, &plan)
}

fn print_plan(app: &App, run: Option<&RunId>, plan: &Plan) -> Result<(), Failure> {
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(Body { run, plan })),
        Form::Quiet => {
            let done = plan.steps.iter().filter(|one| !one.verdict.is_reuse());
            done.into_iter().try_for_each(|one| app.ui.line(&one.step))
        }
        Form::Text => {
            let width = plan.steps.iter().map(|one| one.step.len()).max().unwrap_or(0);
            for Planned { step, verdict } in &plan.steps {
                let pad = " ".repeat(width - step.len());
                app.ui.line(format!("{CYAN}{step}{CYAN:#}{pad}  {}", because(verdict)))?;
            }
            plan.removed.iter().try_for_each(|step| {
                app.ui.line(format!(
                    "{CYAN}{}{CYAN:#}  removed: the flow does not have it any more",
                    ui::printable(step)
                ))
            })
        }
    }
}

/// A verdict in words.
fn because(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Reuse { attempt } => format!("reuse: the result of attempt {attempt} holds"),
        Verdict::New => "new: it is to be done".to_owned(),
        Verdict::Failed { attempt } => format!("failed: attempt {attempt} failed, it is tried again"),
        Verdict::Interrupted { attempt } => format!("interrupted: attempt {attempt} was cut off"),
        Verdict::Changed { parts } => format!("changed: {} differs", ui::printable(&parts.join(", "))),
        Verdict::Downstream { of } => format!("downstream: `{of}` is done again"),
        Verdict::RolledBack { with } => {
            format!(
                "rolled back: its files went back with those of `{}`, it is done again",
                ui::printable(with)
            )
        }
        Verdict::LedBack { why } => format!("led back: {why}"),
        Verdict::Reopened => "reopened: its question is open again".to_owned(),
        Verdict::Pruned => "pruned: its result is needed and was pruned".to_owned(),
        other => other.name().to_owned(),
    }
}
