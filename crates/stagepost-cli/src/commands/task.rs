use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;
use stagepost::formats::tasks::Entry;
use stagepost::model::Stage;
use stagepost::task::{self, ErrorKind, Flags, Limits, NewCheckpoint, Rollback, Task};

use crate::app::App;
use crate::failure::{Code, Failure};
use crate::input;
use crate::json::Output;
use crate::ui::{self, BOLD, DIM, Form};

#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    #[command(subcommand)]
    command: TaskCommand,
}

#[derive(Debug, Subcommand)]
enum TaskCommand {
    Save(SaveArgs),
    List(ListArgs),
    Latest(LatestArgs),
    Rollback(RollbackArgs),
    Recover(RecoverArgs),
    Note(NoteArgs),
    Progress(ProgressArgs),
    Cleanup(CleanupArgs),
}

/// Save a stage of a task; its tag moves here
#[derive(Debug, Args)]
struct SaveArgs {
    /// The number of the task
    #[arg(long, value_name = "N")]
    task: u64,
    /// The stage: start, implementation, pre-validation or validated
    #[arg(long)]
    stage: String,
    /// What it is, in words
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    message: String,
    /// Keep a JSON object with it
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Do not commit to the branch: capture the files beside it and tag that
    #[arg(long)]
    no_commit: bool,
}

/// List the newest checkpoint of each stage
#[derive(Debug, Args)]
struct ListArgs {
    /// Only of this task
    #[arg(long, value_name = "N")]
    task: Option<u64>,
}

/// Print the newest checkpoint of a task
#[derive(Debug, Args)]
struct LatestArgs {
    /// The number of the task
    #[arg(long, value_name = "N")]
    task: u64,
}

/// Go back to a stage; `stagepost undo` takes it back
#[derive(Debug, Args)]
struct RollbackArgs {
    /// The number of the task
    #[arg(long, value_name = "N")]
    task: u64,
    /// The stage: start, implementation, pre-validation or validated
    #[arg(long)]
    stage: String,
    /// Put the files back too; without this, the branch goes back and the files stay
    #[arg(long)]
    hard: bool,
}

/// Go back to the stage that a kind of error calls for, and note why
#[derive(Debug, Args)]
struct RecoverArgs {
    /// The number of the task
    #[arg(long, value_name = "N")]
    task: u64,
    /// What went wrong: implementation, validation or other
    #[arg(long, value_name = "KIND")]
    error: String,
    /// What went wrong, in words
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    message: Option<String>,
}

/// Note progress
#[derive(Debug, Args)]
struct NoteArgs {
    /// The task it is about
    #[arg(long, value_name = "N")]
    task: Option<u64>,
    /// What to note
    #[arg(value_name = "TEXT")]
    text: String,
}

/// Print notes of progress
#[derive(Debug, Args)]
struct ProgressArgs {
    /// All notes of this task
    #[arg(long, value_name = "N")]
    task: Option<u64>,
    /// The newest so many lines
    #[arg(long, value_name = "N")]
    lines: Option<usize>,
}

/// Give up old checkpoints of tasks
#[derive(Debug, Args)]
struct CleanupArgs {
    /// Keep the newest so many of each task
    #[arg(long, value_name = "N", default_value_t = 5)]
    max_per_task: usize,
    /// Give up what is older than this
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    max_age_days: u64,
    /// Only print what would go
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(app: &App, args: TaskArgs) -> Result<(), Failure> {
    match args.command {
        TaskCommand::Save(args) => save(app, args),
        TaskCommand::List(args) => list(app, &args),
        TaskCommand::Latest(args) => latest(app, &args),
        TaskCommand::Rollback(args) => rollback(app, &args),
        TaskCommand::Recover(args) => recover(app, &args),
        TaskCommand::Note(args) => note(app, &args),
        TaskCommand::Progress(args) => progress(app, &args),
        TaskCommand::Cleanup(args) => cleanup(app, &args),
    }
}

#[derive(Serialize)]
struct One<'a> {
    checkpoint: &'a Entry,
}

#[derive(Serialize)]
struct Many<'a> {
    checkpoints: &'a [Entry],
}

fn show(app: &App, checkpoint: &task::Checkpoint) -> Result<(), Failure> {
    let entry = checkpoint.entry();
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(One { checkpoint: &entry })),
        Form::Quiet => app.ui.line(checkpoint.record().id.to_string()),
        Form::Text => app.ui.line(describe(&entry)),
    }
}

fn describe(entry: &Entry) -> String {
    format!(
        "{BOLD}task {} {}{BOLD:#}  {}  {}  {DIM}{}{DIM:#}",
        entry.task_id,
        entry.stage,
        entry.commit_hash.get(..10).unwrap_or("no commit"),
        entry.timestamp,
        ui::headline(&entry.description, 60)
    )
}

fn save(app: &App, args: SaveArgs) -> Result<(), Failure> {
    let stage: Stage = args.stage.parse()?;
    let metadata = match &args.metadata {
        Some(text) => input::json(text.as_bytes())
            .map_err(|error| Failure::usage(format!("--metadata must be a JSON object: {error}")))?,
        None => serde_json::Map::new(),
    };
    let project = app.open_to_write()?;
    let new =
        NewCheckpoint { metadata, on_branch: !args.no_commit, ..NewCheckpoint::new(stage, args.message) };
    show(app, &Task::new(&project, args.task)?.save(new)?)
}

fn list(app: &App, args: &ListArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let listed = match args.task {
        Some(number) => Task::new(&project, number)?.recovery_options()?,
        None => Task::list(&project)?,
    };
    let entries: Vec<Entry> = listed.iter().map(task::Checkpoint::entry).collect();
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(Many { checkpoints: &entries })),
        Form::Quiet => listed.iter().try_for_each(|one| app.ui.line(one.record().id.to_string())),
        Form::Text => entries.iter().try_for_each(|entry| app.ui.line(describe(entry))),
    }
}

fn latest(app: &App, args: &LatestArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let latest = Task::new(&project, args.task)?.latest()?;
    show(app, &latest.ok_or_else(|| no_checkpoint(args.task))?)
}

fn no_checkpoint(task: u64) -> Failure {
    Failure::new(Code::NotFound, format!("task {task} has no checkpoint"))
        .hint("`stagepost task list` lists what there is")
}

#[derive(Serialize)]
struct Back<'a> {
    restore: &'a stagepost::project::RestoreOutcome,
}

fn rollback(app: &App, args: &RollbackArgs) -> Result<(), Failure> {
    let stage: Stage = args.stage.parse()?;
    let project = app.open()?;
    let how = if args.hard { Rollback::Hard } else { Rollback::Soft };
    let outcome = Task::new(&project, args.task)?.rollback_to(stage, how)?;
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(Back { restore: &outcome })),
        Form::Quiet => app.ui.line(outcome.safety.to_string()),
        Form::Text => app.ui.line(format!("task {} is back at `{stage}`", args.task)),
    }
}

#[derive(Serialize)]
struct RecoveredBody<'a> {
    checkpoint: &'a Entry,
    flags: Flags,
    error_message: Option<&'a str>,
    restore: &'a stagepost::project::RestoreOutcome,
}

fn recover(app: &App, args: &RecoverArgs) -> Result<(), Failure> {
    let kind: ErrorKind = args.error.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    let project = app.open()?;
    let recovered = Task::new(&project, args.task)?.recover(kind, args.message.as_deref())?;
    let recovered = recovered.ok_or_else(|| no_checkpoint(args.task))?;
    let entry = recovered.target.entry();
    let body = RecoveredBody {
        checkpoint: &entry,
        flags: recovered.flags,
        error_message: args.message.as_deref(),
        restore: &recovered.restore,
    };
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(body)),
        Form::Quiet => app.ui.line(recovered.restore.safety.to_string()),
        Form::Text => app.ui.line(format!("recovered task {} to `{}`", args.task, entry.stage)),
    }
}

fn note(app: &App, args: &NoteArgs) -> Result<(), Failure> {
    if args.text.trim().is_empty() {
        return Err(Failure::usage("a note without words says nothing".to_owned()));
    }
    let project = app.open_to_write()?;
    match args.task {
        Some(number) => Task::new(&project, number)?.log_progress(&args.text)?,
        None => task::log_progress(&project, &args.text)?,
    }
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(Lines { lines: task::recent_progress(&project, 1)? })),
        _ => Ok(()),
    }
}

#[derive(Serialize)]
struct Lines {
    lines: Vec<String>,
}

fn progress(app: &App, args: &ProgressArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let mut lines = match args.task {
        Some(number) => Task::new(&project, number)?.progress()?,
        None => task::recent_progress(&project, args.lines.unwrap_or(20))?,
    };
    lines.drain(..lines.len().saturating_sub(args.lines.unwrap_or(usize::MAX)));
    if app.ui.form == Form::Json {
        return app.ui.json(&Output::new(Lines { lines }));
    }
    lines.iter().try_for_each(|line| app.ui.line(ui::printable(line)))
}

#[derive(Serialize)]
struct CleanupBody<'a> {
    dry_run: bool,
    #[serde(flatten)]
    plan: &'a task::CleanupPlan,
    bytes_freed: u64,
}

fn cleanup(app: &App, args: &CleanupArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let max_age = Duration::from_secs(args.max_age_days.saturating_mul(86_400));
    let plan = task::plan_cleanup(&project, &Limits { per_task: args.max_per_task, max_age })?;
    let freed = if args.dry_run { 0 } else { task::apply_cleanup(&project, &plan)?.collected.bytes };
    match app.ui.form {
        Form::Json => {
            app.ui.json(&Output::new(CleanupBody { dry_run: args.dry_run, plan: &plan, bytes_freed: freed }))
        }
        Form::Quiet => plan.remove.iter().try_for_each(|one| app.ui.line(one.id.to_string())),
        Form::Text => {
            let verb = if args.dry_run { "would remove" } else { "removed" };
            for one in &plan.remove {
                app.ui.line(format!("{verb} task {} {} ({})", one.task, one.stage, why(one.why)))?;
            }
            app.ui.line(format!("{verb} {}, kept {}", ui::count(plan.remove.len(), "checkpoint"), plan.keep))
        }
    }
}

fn why(why: task::Why) -> &'static str {
    match why {
        task::Why::Old => "too old",
        task::Why::Surplus => "enough newer ones",
    }
}
