//! Driving a run: `flow run`, `flow resume`, `flow rerun`.

use std::path::{Path, PathBuf};

use serde_json::Value;
use stagepost::flow::{
    Again, Decided, Definition, Drive, Error, Flows, Outcome, Outline, Resume, RunState, Source, Status,
    Verdict,
};
use stagepost::model::RunId;
use stagepost::project::Project;

use super::live::Live;
use super::{file, look, plan};
use crate::app::App;
use crate::failure::{Code, Failure};
use crate::input;
use crate::signals;
use crate::ui::{self, Form};

/// Run a flow file
///
/// Every step's end is durable before the next begins: after a crash, `flow resume RUN` goes on after the last completed
/// step. What programs print goes to standard error with the step's name in front, and is kept.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The flow file, YAML or JSON; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What to call the run; without a name it gets a new one
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    /// Go on with the run of that name, or with the newest of this flow
    #[arg(long)]
    resume: bool,
    /// Go on after this step, by its id or number, and do the later ones again
    #[arg(long, value_name = "STEP", requires = "resume")]
    resume_step: Option<String>,
    /// What the steps get to begin with, as JSON; members go over those in the file
    #[arg(long, value_name = "JSON", conflicts_with = "resume")]
    input: Option<String>,
    #[command(flatten)]
    drive: DriveArgs,
}

/// Go on with a run after its last completed step
///
/// A run that was killed, failed, waits for an answer, or was stopped. The flow file is read again if it is there; a changed
/// definition of a completed step is refused unless --accept-changes does it again.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    /// The run: its name or the start of it, `@` for the newest
    #[arg(value_name = "RUN")]
    run: String,
    /// Go on after this step, by its id or number, and do the later ones again
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
    /// Read the flow from here instead of where it was
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    drive: DriveArgs,
}

/// Do one step of a run again, with all that depends on it
#[derive(Debug, clap::Args)]
pub(crate) struct RerunArgs {
    /// The run: its name or the start of it, `@` for the newest
    #[arg(value_name = "RUN")]
    run: String,
    /// The step
    #[arg(value_name = "STEP")]
    step: String,
    /// Leave what depends on it as it is
    #[arg(long)]
    only: bool,
    /// Read the flow from here instead of where it was
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    drive: DriveArgs,
}

#[derive(Debug, clap::Args)]
struct DriveArgs {
    /// So many programs run side by side
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Do steps whose definition changed again, with all that depends on them
    #[arg(long)]
    accept_changes: bool,
    /// A step with `effects: once` that was cut off: it was not done, do it
    #[arg(long, value_name = "STEP")]
    redo: Vec<String>,
    /// A step with `effects: once` that was cut off: it was done
    #[arg(long, value_name = "STEP")]
    done: Vec<String>,
    /// Only print what would be done
    #[arg(long)]
    dry_run: bool,
}

impl DriveArgs {
    fn resume(&self) -> Resume {
        let redo = self.redo.iter().map(|step| (step.clone(), Decided::Redo));
        let done = self.done.iter().map(|step| (step.clone(), Decided::Done));
        Resume {
            accept_changes: self.accept_changes,
            decided: redo.chain(done).collect(),
            ..Resume::default()
        }
    }
}

pub(crate) fn run(app: &App, args: &RunArgs) -> Result<(), Failure> {
    let source = read(app, &args.file)?;
    let project = app.open_to_write()?;
    let source = located(&project, app, &args.file, source);
    if args.resume {
        let id = run_to_resume(&project, args, &source)?;
        let resume = Resume { source: Some(source), after: args.resume_step.clone(), ..args.drive.resume() };
        return go_on(app, &project, &id, resume, &args.drive);
    }
    if !args.drive.done.is_empty() || !args.drive.redo.is_empty() {
        return Err(Failure::usage("--done and --redo say what became of a step before: they need --resume"));
    }
    let input = args.input.as_deref().map(parse_input).transpose()?;
    let flows = Flows::of(&project);
    let id = args.run_id.as_ref().map_or_else(
        || Ok(flows.new_id(&source.flow)?),
        |id| RunId::new(id.as_str()).map_err(Failure::from),
    )?;
    if args.drive.dry_run {
        return plan::print_new(app, &source.flow);
    }
    let live = Live::new(app, source.flow.steps.len(), 0);
    let outcome = driven(&args.drive, &live, |drive| flows.start(&id, source, input, drive));
    live.finish();
    end(app, &project, &id, outcome?)
}

pub(crate) fn resume(app: &App, args: &ResumeArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let id = Flows::of(&project).resolve(&args.run)?;
    let source = source_now(app, &project, &id, args.file.as_deref())?;
    let resume = Resume { source, after: args.step.clone(), ..args.drive.resume() };
    go_on(app, &project, &id, resume, &args.drive)
}

pub(crate) fn rerun(app: &App, args: &RerunArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let id = Flows::of(&project).resolve(&args.run)?;
    let source = source_now(app, &project, &id, args.file.as_deref())?;
    let again = Again { step: args.step.clone(), only: args.only };
    let resume = Resume { source, again: Some(again), ..args.drive.resume() };
    go_on(app, &project, &id, resume, &args.drive)
}

fn go_on(app: &App, project: &Project, id: &RunId, resume: Resume, args: &DriveArgs) -> Result<(), Failure> {
    let flows = Flows::of(project);
    if args.dry_run {
        return plan::print(app, id, &flows.plan(id, &resume).map_err(failure)?);
    }
    let done = flows.plan(id, &resume).map(|plan| {
        (
            plan.steps.len(),
            plan.steps.iter().filter(|one| matches!(one.verdict, Verdict::Reuse { .. })).count(),
        )
    });
    let (steps, done) = done.unwrap_or((0, 0));
    let live = Live::new(app, steps, done);
    let outcome = driven(args, &live, |drive| flows.resume(id, resume, drive));
    live.finish();
    match outcome {
        Err(Error::Over { status: Status::Completed, .. }) => {
            app.ui.say(format!("run {id} is completed already: there is nothing to do"));
            look::print_state(app, project, id)
        }
        outcome => end(app, project, id, outcome.map_err(failure)?),
    }
}

/// What was typed and makes no sense is a matter of usage.
fn failure(error: Error) -> Failure {
    match error {
        Error::Decision { .. } => Failure::usage(error.to_string()),
        other => other.into(),
    }
}

/// Drives with what the front end has: signals, the environment, the screen.
fn driven(
    args: &DriveArgs,
    live: &Live<'_>,
    work: impl FnOnce(Drive<'_>) -> Result<Outcome, Error>,
) -> Result<Outcome, Error> {
    let failed = |source| Error::File { doing: "prepare for signals in", path: ".".into(), source };
    let listened = signals::listening(|cancel| {
        let mut drive = Drive::new(cancel);
        (drive.jobs, drive.watch) = (usize::from(args.jobs), live);
        drive.secrets = &|name| std::env::var_os(name);
        work(drive)
    });
    listened.map_err(failed)?
}

/// Prints how a run stands, and ends with the code that says so.
fn end(app: &App, project: &Project, id: &RunId, outcome: Outcome) -> Result<(), Failure> {
    look::print_state(app, project, id)?;
    let code = match outcome {
        Outcome::Completed => return Ok(()),
        Outcome::Declined { .. } => Code::Declined,
        Outcome::Waiting { .. } => Code::Waiting,
        Outcome::Interrupted | Outcome::Cancelled => Code::Interrupted,
        _ => Code::Failed,
    };
    if app.ui.form == Form::Quiet && code == Code::Failed {
        // Nothing else was said, and an exit code alone is no reason.
        return Err(Failure::new(code, format!("run {id} failed"))
            .hint(format!("`stagepost flow show {id}` says where")));
    }
    Err(Failure::told(code))
}

fn parse_input(text: &str) -> Result<Value, Failure> {
    input::json(text.as_bytes()).map_err(|error| Failure::usage(format!("--input must be JSON: {error}")))
}

fn read(app: &App, path: &Path) -> Result<Source, Failure> {
    let (text, flow) = file::read(app, path)?;
    let definition = Definition { name: flow.name.clone(), text, path: None };
    Ok(Source { flow, definition })
}

/// Keeps where the file was, as seen from the project: resuming looks there.
fn located(project: &Project, app: &App, path: &Path, mut source: Source) -> Source {
    if path != Path::new("-")
        && let Ok(path) = std::fs::canonicalize(app.folder().join(path))
    {
        let inside = path.strip_prefix(&project.place().root).unwrap_or(&path);
        source.definition.path = inside.to_str().map(str::to_owned);
    }
    source
}

/// The flow of a run as its file says now; nothing if there is no file any more: then as it was captured.
pub(super) fn source_now(
    app: &App,
    project: &Project,
    id: &RunId,
    given: Option<&Path>,
) -> Result<Option<Source>, Failure> {
    if let Some(path) = given {
        return Ok(Some(located(project, app, path, read(app, path)?)));
    }
    // What is damaged is told with all there is to say when the run is prepared.
    let definition = RunState::load(project, id).ok().and_then(|state| state.definition);
    let Some(path) = definition.and_then(|definition| definition.path) else { return Ok(None) };
    let path = project.place().root.join(path);
    if !path.is_file() {
        app.ui.say(format!("{} is gone: the flow is taken as the run last followed it", path.display()));
        return Ok(None);
    }
    let path = std::path::absolute(&path)?;
    Ok(Some(located(project, app, &path, read(app, &path)?)))
}

fn run_to_resume(project: &Project, args: &RunArgs, source: &Source) -> Result<RunId, Failure> {
    if let Some(id) = &args.run_id {
        return Ok(Flows::of(project).resolve(id)?);
    }
    let mut newest = None;
    for run in Outline::runs(project)? {
        let outline = Outline::load(project, run)?;
        if outline.flow.as_ref() == Some(&source.definition.name) && !outline.deleted {
            newest = Some(outline.run.id);
            break;
        }
    }
    newest.ok_or_else(|| {
        let name = ui::printable(&source.definition.name).into_owned();
        Failure::new(Code::NotFound, format!("there is no run of flow `{name}` to go on with"))
            .hint("run it without --resume")
    })
}
