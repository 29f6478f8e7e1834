use std::path::PathBuf;

use serde::Serialize;
use stagepost::plan::{Part, Plan, Settings, Status};

use super::read_payload;
use crate::app::App;
use crate::failure::Failure;
use crate::json::Output;
use crate::ui::Form;

/// Start a run that someone else's loop records
#[derive(Debug, clap::Args)]
pub(crate) struct StartArgs {
    /// The name that its files begin with
    #[arg(long, value_name = "NAME")]
    project: String,
    /// Where its files go; without it, there are none
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

/// Record a payload of a run: a JSON object
///
/// With --iteration it is kept for good; recording something else in its place is refused. Without, the newest of a type
/// counts. NaN and Infinity, as Python writes them, are taken and kept byte for byte.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    /// The run
    #[arg(long)]
    run: String,
    /// The number of the iteration, from 1
    #[arg(long, value_name = "N")]
    iteration: Option<u32>,
    /// What it is: raw, evaluation, implementation, sequence, audio, or a name of your own
    #[arg(long = "type", value_name = "TYPE")]
    part: String,
    /// The file, `-` for standard input
    file: PathBuf,
}

/// End a run with its final payload
#[derive(Debug, clap::Args)]
pub(crate) struct FinishArgs {
    /// The run
    #[arg(long)]
    run: String,
    /// How it ended: SUCCESS or INCOMPLETE
    #[arg(long, value_parser = status)]
    status: Status,
    /// The file, `-` for standard input
    file: PathBuf,
}

fn status(text: &str) -> Result<Status, String> {
    match text {
        "SUCCESS" => Ok(Status::Success),
        "INCOMPLETE" => Ok(Status::Incomplete),
        _ => Err("a run ends with SUCCESS or INCOMPLETE".to_owned()),
    }
}

#[derive(Serialize)]
struct Started<'a> {
    run_id: &'a str,
    project: &'a str,
    output_dir: Option<&'a str>,
}

pub(crate) fn start(app: &App, args: &StartArgs) -> Result<(), Failure> {
    let project = app.open_to_write()?;
    let output_dir = match &args.output_dir {
        // What is typed is relative to where it is typed.
        Some(folder) if folder.is_relative() && !folder.as_os_str().is_empty() => {
            let inside = app.repo_path(&project, folder)?.to_string();
            if inside.is_empty() {
                return Err(Failure::usage("--output-dir is the project itself: name a folder inside it"));
            }
            Some(PathBuf::from(inside))
        }
        other => other.clone(),
    };
    let settings =
        Settings { project_name: args.project.clone(), checkpoint: output_dir.is_some(), output_dir };
    let plan = Plan::start_run(&project, &settings)?;
    let about = plan.about();
    let body = Started {
        run_id: plan.id().as_str(),
        project: &about.project,
        output_dir: about.output_dir.as_deref(),
    };
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(body)),
        _ => app.ui.line(plan.id().as_str()),
    }
}

pub(crate) fn record(app: &App, args: &RecordArgs) -> Result<(), Failure> {
    let part: Part = args.part.parse()?;
    let payload = read_payload(app, &args.file, part.as_str())?;
    let project = app.open()?;
    let plan = Plan::find(&project, &args.run)?;
    let saved = match args.iteration {
        Some(iteration) => plan.write_iteration_checkpoint(&part, payload, iteration)?,
        None => plan.write_checkpoint(&part, payload)?,
    };
    app.ui.checkpoint(&project, &saved, |id| {
        format!("recorded {id} as {} of run {}", saved.content.kind, plan.id())
    })
}

pub(crate) fn finish(app: &App, args: &FinishArgs) -> Result<(), Failure> {
    let payload = read_payload(app, &args.file, "final")?;
    let project = app.open()?;
    let plan = Plan::find(&project, &args.run)?;
    let saved = plan.finish(args.status, payload)?;
    app.ui.checkpoint(&project, &saved, |id| {
        format!("recorded {id}: run {} ended with {}", plan.id(), args.status.as_str())
    })
}
