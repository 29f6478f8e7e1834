use std::ffi::OsString;
use std::path::{Path, PathBuf};

use stagepost::model::RunId;
use stagepost::plan::{self, Agent, Agents, Command, Job, Outcome, Plan, Progress, Refine, Which};
use stagepost::process::Guard;
use stagepost::project::Project;

use super::{read_bytes, score_text};
use crate::app::App;
use crate::failure::{Code, Failure};
use crate::json::Output;
use crate::signals;
use crate::ui::{self, BOLD, DIM, Form, GREEN, RED, YELLOW};

/// Drive planner and judge until a plan is approved, or iterations or budget run out
///
/// The job is a JSON file; `stagepost schema plan-job` describes it. Every answer is recorded before the next call, so a
/// run that was cut off goes on with --resume. Ends with 0 if the plan was approved, with 1 if it was not.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The job file, `-` for standard input; with --resume, the job that the run was begun with if none is given
    #[arg(value_name = "JOB", required_unless_present = "resume")]
    job: Option<PathBuf>,
    /// Go on with this run: nobody is asked again for what is recorded
    #[arg(long, value_name = "RUN")]
    resume: Option<String>,
    /// Go on although the job changed since the run was begun
    #[arg(long, requires = "resume")]
    accept_changes: bool,
}

pub(crate) fn run(app: &App, args: &RunArgs) -> Result<(), Failure> {
    let given = args.job.as_deref().map(|path| read_job(app, path)).transpose()?;
    let project = app.open_to_write()?;
    let resumed = args.resume.as_deref().map(|name| Plan::find(&project, name)).transpose()?;
    let job = match (given, &resumed) {
        (Some(job), _) => job,
        (None, Some(plan)) => plan.job()?,
        (None, None) => return Err(Failure::usage("there is no job to run")),
    };
    for name in job.more.keys() {
        app.ui.warn(format!("the job has a member `{}` that means nothing here", ui::printable(name)));
    }
    let which = resumed.map_or(Which::New, |plan| Which::Resume(plan.id().clone()));
    let refine = Refine { job, which, accept_changes: args.accept_changes };
    let outcome = drive(app, &project, &refine)?;
    render(app, &outcome)?;
    if outcome.approved { Ok(()) } else { Err(Failure::told(Code::Failed)) }
}

fn read_job(app: &App, path: &Path) -> Result<Job, Failure> {
    Ok(Job::read(&read_bytes(app, path)?)?)
}

fn drive(app: &App, project: &Project, refine: &Refine) -> Result<Outcome, Failure> {
    let (planner, judge, validator) = refine.job.commands(&project.place().root)?;
    // If this process is killed, the guard ends whatever has the mark in its environment.
    let (name, value) = ("STAGEPOST_DRIVER", project.new_id().to_string());
    let _guard = Guard::over(&format!("{name}={value}"))?;
    let marked =
        |command: Command| command.with_environment([(OsString::from(name), OsString::from(&value))]);
    let (mut planner, mut judge, mut validator) = (marked(planner), marked(judge), validator.map(marked));
    let agents = Agents {
        planner: &mut planner,
        judge: &mut judge,
        validator: validator.as_mut().map(|validator| validator as &mut dyn Agent),
    };
    let mut begun: Option<RunId> = None;
    let mut watch = |progress: &Progress<'_>| {
        if let Progress::Begun { run, .. } = progress {
            begun = Some((*run).clone());
        }
        told(app, progress);
    };
    let outcome = signals::listening(|cancel| plan::refine(project, refine, agents, &cancel, &mut watch))?;
    outcome.map_err(|error| with_way_on(error, begun.as_ref()))
}

/// Says how to go on with a run that stopped.
fn with_way_on(error: plan::Error, run: Option<&RunId>) -> Failure {
    let failure = Failure::from(error);
    match run {
        Some(run) if failure.hint.is_none() => failure.hint(format!(
            "`stagepost plan show {run}` shows what was printed; `stagepost plan run JOB --resume {run}` goes on"
        )),
        _ => failure,
    }
}

/// Says what goes on.
fn told(app: &App, progress: &Progress<'_>) {
    match progress {
        Progress::Begun { run, resumed: false } => app.ui.say(format!("run {BOLD}{run}{BOLD:#}")),
        Progress::Begun { run, .. } => app.ui.say(format!("run {BOLD}{run}{BOLD:#} goes on")),
        Progress::Proposed { iteration } => {
            app.ui.say(format!("iteration {iteration}  {DIM}plan made{DIM:#}"))
        }
        Progress::Validated { iteration, errors: None } => {
            app.ui.say(format!("iteration {iteration}  {DIM}valid{DIM:#}"));
        }
        Progress::Validated { iteration, errors: Some(errors) } => {
            let errors = ui::headline(&errors.join("; "), 100);
            app.ui.say(format!("iteration {iteration}  {YELLOW}not valid{YELLOW:#} {errors}"));
        }
        Progress::Judged { iteration, scored } => {
            app.ui.say(format!("iteration {iteration}  {}", score_text(Some(scored))));
        }
        Progress::Failed { role, iteration, what, again } => {
            let again = if *again { ", trying again" } else { "" };
            app.ui.say(format!(
                "iteration {iteration}  {RED}{role} failed{RED:#}{again}: {}",
                ui::printable(what)
            ));
        }
        _ => {}
    }
}

fn render(app: &App, outcome: &Outcome) -> Result<(), Failure> {
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(outcome)),
        Form::Quiet => app.ui.line(outcome.run.to_string()),
        Form::Text => app.ui.line(summary(outcome)),
    }
}

fn summary(outcome: &Outcome) -> String {
    let score = outcome
        .scored
        .as_ref()
        .map(|scored| format!(" with {}", score_text(Some(scored))))
        .unwrap_or_default();
    let best = outcome.best.map_or_else(
        || "nothing was judged".to_owned(),
        |best| format!("the best is iteration {best}{score}"),
    );
    if outcome.approved {
        let best = outcome.best.unwrap_or(outcome.iterations);
        return format!("{GREEN}approved{GREEN:#} in iteration {best} of run {}{score}", outcome.run);
    }
    let reason = outcome.reason.as_deref().unwrap_or("no reason was recorded");
    format!("{RED}not approved{RED:#} in run {}: {}; {best}", outcome.run, ui::printable(reason))
}
