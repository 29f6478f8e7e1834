use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use stagepost::formats::maestro::{Entry, Operation};
use stagepost::model::{Phase, Progress, Reason, RollbackMode, RunId};
use stagepost::session::{Changes, Failure as Trouble, NewCheckpoint, Session, Status, Tag, should_rollback};

use crate::app::App;
use crate::commands::restore;
use crate::failure::Failure;
use crate::ui::{self, BOLD, DIM, Form};

#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    command: SessionCommand,
    /// How to print; piped: json
    #[arg(long, value_enum, global = true)]
    output: Option<OutputArg>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputArg {
    /// For programs
    Json,
    /// For people
    Pretty,
}

#[derive(Debug, Subcommand)]
enum SessionCommand {
    Start(StartArgs),
    Create(CreateArgs),
    /// List the checkpoints of a session, newest first
    List(OfSession),
    /// Print one checkpoint of a session
    Get(OfCheckpoint),
    Rollback(RollbackArgs),
    /// List the rollbacks of a session, oldest first, also those that failed
    #[command(alias = "rollback_history")]
    History(OfSession),
    /// Count the checkpoints of a session by type, and name the newest
    Summary(OfSession),
    Delete(DeleteArgs),
    Validate(ValidateArgs),
    ShouldRollback(ShouldRollbackArgs),
    Status(StatusArgs),
}

/// Start a session and print its id
#[derive(Debug, Args)]
struct StartArgs {
    /// What the session is about
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    request: String,
}

/// Create a checkpoint; the session is started if it is new
#[derive(Debug, Args)]
struct CreateArgs {
    /// The session
    #[arg(long, value_name = "ID")]
    session_id: String,
    /// What the checkpoint is, in words
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    description: String,
    /// The phase: plan, generate_tasks, implement, validate or cleanup
    #[arg(long)]
    phase: String,
    /// Why: phase_complete, task_group_complete, safe_state, pre_risky_operation, error_recovery or manual
    #[arg(long, value_name = "TYPE", default_value = "manual")]
    checkpoint_type: String,
    /// Do not commit to the branch: capture the files beside it and tag that
    #[arg(long)]
    no_commit: bool,
    /// The risky operation that comes next
    #[arg(long, value_name = "TEXT")]
    operation: Option<String>,
    #[command(flatten)]
    progress: ProgressArgs,
}

#[derive(Debug, Args)]
struct ProgressArgs {
    /// Tasks completed so far
    #[arg(long, value_name = "N")]
    tasks_completed: Option<u64>,
    /// Decisions made so far
    #[arg(long, value_name = "N")]
    decisions_made: Option<u64>,
    /// Files modified so far
    #[arg(long, value_name = "N")]
    files_modified: Option<u64>,
    /// Files created so far
    #[arg(long, value_name = "N")]
    files_created: Option<u64>,
    /// Tests that pass
    #[arg(long, value_name = "N")]
    tests_passing: Option<u64>,
    /// Tests that fail
    #[arg(long, value_name = "N")]
    tests_failing: Option<u64>,
}

impl ProgressArgs {
    fn progress(&self) -> Option<Progress> {
        let progress = Progress {
            tasks_completed: self.tasks_completed,
            decisions_made: self.decisions_made,
            files_modified: self.files_modified,
            files_created: self.files_created,
            tests_passing: self.tests_passing,
            tests_failing: self.tests_failing,
        };
        (progress != Progress::default()).then_some(progress)
    }
}

#[derive(Debug, Args)]
struct OfSession {
    /// The session
    #[arg(long, value_name = "ID")]
    session_id: String,
}

#[derive(Debug, Args)]
struct OfCheckpoint {
    /// The session
    #[arg(long, value_name = "ID")]
    session_id: String,
    /// The checkpoint
    #[arg(long, value_name = "ID")]
    checkpoint_id: String,
}

/// Go back to a checkpoint; `stagepost undo` takes it back
#[derive(Debug, Args)]
struct RollbackArgs {
    #[command(flatten)]
    of: OfCheckpoint,
    /// Put the files back too; without this, branch and index go back and the files stay
    #[arg(long)]
    hard_reset: bool,
    /// Go back although there are uncommitted changes: they stay in the files
    #[arg(long, conflicts_with = "hard_reset")]
    keep_changes: bool,
    /// Only print what would be done
    #[arg(long)]
    dry_run: bool,
}

/// Delete a checkpoint
#[derive(Debug, Args)]
struct DeleteArgs {
    #[command(flatten)]
    of: OfCheckpoint,
    /// Leave its tag
    #[arg(long)]
    keep_tag: bool,
}

/// Look whether a checkpoint can be made
#[derive(Debug, Args)]
struct ValidateArgs {
    /// The session; it makes no difference
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,
    /// Run this command with the shell to learn whether the tests pass
    #[arg(long, value_name = "CMD")]
    test_command: Option<String>,
}

/// Ask whether a failure calls for a rollback
#[derive(Debug, Args)]
struct ShouldRollbackArgs {
    /// How often it was tried
    #[arg(long, value_name = "N", default_value_t = 1)]
    attempts: u32,
    /// How often it may be tried
    #[arg(long, value_name = "N", default_value_t = 3)]
    max_attempts: u32,
    /// What sort of error it was, such as transient, permanent, resource_exhausted or validation_failed
    #[arg(long, default_value = "", hide_default_value = true)]
    category: String,
    /// The error itself, such as disk_full
    #[arg(long, default_value = "", hide_default_value = true)]
    error_type: String,
    /// Some of the work was done
    #[arg(long)]
    partial_progress: bool,
}

/// Print what a session is about, where it stands and its statistics; or say how it stands
#[derive(Debug, Args)]
struct StatusArgs {
    #[command(flatten)]
    of: OfSession,
    /// Say that it is over, or waits
    #[arg(long, value_enum)]
    set: Option<StatusArg>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StatusArg {
    /// It is done
    Completed,
    /// It was given up
    Failed,
    /// It waits
    Paused,
}

/// Prints results of this command: text for people, else JSON without a wrapper.
struct Printer<'a> {
    app: &'a App,
    pretty: bool,
    /// JSON was asked for, and not only printed because nobody looks.
    json: bool,
}

impl Printer<'_> {
    fn print(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.pretty { self.app.ui.line(text()) } else { self.app.ui.json(value) }
    }

    fn entry(&self, entry: &Entry) -> Result<(), Failure> {
        if self.app.ui.form == Form::Quiet {
            return self.app.ui.line(&entry.checkpoint_id);
        }
        self.print(entry, || describe(entry))
    }
}

pub(crate) fn run(app: &App, args: SessionArgs) -> Result<(), Failure> {
    let for_people = app.ui.form == Form::Text && app.ui.is_terminal();
    let pretty = args.output.map_or(for_people, |output| output == OutputArg::Pretty);
    let json = app.ui.form == Form::Json || args.output == Some(OutputArg::Json);
    let printer = Printer { app, pretty: pretty && app.ui.form != Form::Json, json };
    match args.command {
        SessionCommand::Start(args) => start(&printer, &args),
        SessionCommand::Create(args) => create(&printer, args),
        SessionCommand::List(args) => list(&printer, &args),
        SessionCommand::Get(args) => get(&printer, &args),
        SessionCommand::Rollback(args) => rollback(&printer, &args),
        SessionCommand::History(args) => history(&printer, &args),
        SessionCommand::Summary(args) => summary(&printer, &args),
        SessionCommand::Delete(args) => delete(&printer, &args),
        SessionCommand::Validate(args) => validate(&printer, &args),
        SessionCommand::ShouldRollback(args) => ask_rule(&printer, args),
        SessionCommand::Status(args) => status(&printer, &args),
    }
}

#[derive(Serialize)]
struct Started<'a> {
    session_id: &'a str,
}

fn start(printer: &Printer<'_>, args: &StartArgs) -> Result<(), Failure> {
    let project = printer.app.open_to_write()?;
    let session = Session::start(&project, &args.request)?;
    if printer.json {
        return printer.app.ui.json(&Started { session_id: session.id().as_str() });
    }
    printer.app.ui.line(session.id().as_str())
}

fn create(printer: &Printer<'_>, args: CreateArgs) -> Result<(), Failure> {
    let (phase, reason) = (args.phase.parse::<Phase>()?, args.checkpoint_type.parse::<Reason>()?);
    let id = RunId::new(args.session_id)?;
    let project = printer.app.open_to_write()?;
    let session = Session::open_or_start(&project, &id)?;
    let made = session.create(NewCheckpoint {
        reason,
        progress: args.progress.progress(),
        operation: args.operation,
        on_branch: !args.no_commit,
        ..NewCheckpoint::new(phase, args.description)
    })?;
    printer.entry(&made.entry())
}

fn list(printer: &Printer<'_>, args: &OfSession) -> Result<(), Failure> {
    let project = printer.app.open()?;
    let session = Session::open(&project, &RunId::new(&*args.session_id)?)?;
    if !printer.pretty && printer.app.ui.form != Form::Quiet {
        return printer.app.ui.line(session.list_json()?);
    }
    let entries: Vec<Entry> = session.list()?.iter().map(|one| one.entry()).collect();
    if printer.app.ui.form == Form::Quiet {
        return entries.iter().try_for_each(|entry| printer.app.ui.line(&entry.checkpoint_id));
    }
    let lines: Vec<String> = entries.iter().map(describe).collect();
    printer.app.ui.line(if lines.is_empty() { "no checkpoints".to_owned() } else { lines.join("\n") })
}

fn get(printer: &Printer<'_>, args: &OfCheckpoint) -> Result<(), Failure> {
    let project = printer.app.open()?;
    let session = Session::open(&project, &RunId::new(&*args.session_id)?)?;
    printer.entry(&session.get(&args.checkpoint_id)?.entry())
}

fn rollback(printer: &Printer<'_>, args: &RollbackArgs) -> Result<(), Failure> {
    let project = printer.app.open()?;
    let session = Session::open(&project, &RunId::new(&*args.of.session_id)?)?;
    let mode = if args.hard_reset { RollbackMode::Hard } else { RollbackMode::Mixed };
    let changes = if args.keep_changes { Changes::Keep } else { Changes::Refuse };
    if args.dry_run {
        let form = if printer.pretty { Form::Text } else { Form::Json };
        let plan = session.plan_rollback(&args.of.checkpoint_id, mode, changes)?;
        return restore::dry_run_as(printer.app, form, &plan);
    }
    let done = session.rollback(&args.of.checkpoint_id, mode, changes)?;
    printer.print(&Operation::of(session.id().as_str(), &done), || {
        format!("went back to {BOLD}{}{BOLD:#}: {}", done.checkpoint, ui::printable(&done.description))
    })
}

fn history(printer: &Printer<'_>, args: &OfSession) -> Result<(), Failure> {
    let project = printer.app.open()?;
    let session = Session::open(&project, &RunId::new(&*args.session_id)?)?;
    let all = session.history()?;
    let operations: Vec<_> = all.iter().map(|one| Operation::of(session.id().as_str(), one)).collect();
    printer.print(&operations, || {
        let line = |one: &Operation| {
            let how = one
                .error_message
                .as_deref()
                .map_or_else(|| "done".to_owned(), |why| format!("failed: {why}"));
            format!("{}  {}  {}", one.timestamp, one.checkpoint_id, ui::printable(&how))
        };
        let lines: Vec<String> = operations.iter().map(line).collect();
        if lines.is_empty() { "no rollbacks".to_owned() } else { lines.join("\n") }
    })
}

fn summary(printer: &Printer<'_>, args: &OfSession) -> Result<(), Failure> {
    let project = printer.app.open()?;
    let summary = Session::open(&project, &RunId::new(&*args.session_id)?)?.summary()?;
    printer.print(&summary, || {
        let types: Vec<String> =
            summary.checkpoints_by_type.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let total = ui::count(summary.total_checkpoints, "checkpoint");
        let latest = summary.latest_checkpoint.as_deref().unwrap_or("none");
        let types = if types.is_empty() { String::new() } else { format!(" ({})", types.join(", ")) };
        format!(
            "{total}{types}, {} used for rollback, latest {latest}",
            summary.checkpoints_used_for_rollback
        )
    })
}

fn delete(printer: &Printer<'_>, args: &DeleteArgs) -> Result<(), Failure> {
    let project = printer.app.open()?;
    let session = Session::open(&project, &RunId::new(&*args.of.session_id)?)?;
    let tag = if args.keep_tag { Tag::Keep } else { Tag::Delete };
    printer.entry(&session.delete(&args.of.checkpoint_id, tag)?.entry())
}

fn validate(printer: &Printer<'_>, args: &ValidateArgs) -> Result<(), Failure> {
    let project = printer.app.open_to_write()?;
    let found = Session::validate(&project, args.test_command.as_deref())?;
    printer.print(&found, || {
        let mut lines = vec![if found.is_valid { "ready".to_owned() } else { "not ready".to_owned() }];
        lines.extend(found.errors.iter().map(|error| format!("error: {error}")));
        lines.extend(found.warnings.iter().map(|warning| format!("warning: {warning}")));
        lines.join("\n")
    })?;
    if found.is_valid { Ok(()) } else { Err(Failure::told(crate::failure::Code::Refused)) }
}

#[derive(Serialize)]
struct Verdict {
    should_rollback: bool,
    reason: Option<String>,
}

fn ask_rule(printer: &Printer<'_>, args: ShouldRollbackArgs) -> Result<(), Failure> {
    let trigger = should_rollback(&Trouble {
        attempts: args.attempts,
        max_attempts: args.max_attempts,
        category: args.category,
        error_type: args.error_type,
        has_partial_progress: args.partial_progress,
    });
    let reason = trigger.map(|trigger| trigger.to_string());
    let verdict = Verdict { should_rollback: reason.is_some(), reason };
    printer.print(&verdict, || match &verdict.reason {
        Some(reason) => format!("yes: {reason}"),
        None => "no".to_owned(),
    })
}

fn status(printer: &Printer<'_>, args: &StatusArgs) -> Result<(), Failure> {
    let project = printer.app.open()?;
    let session = Session::open(&project, &RunId::new(&*args.of.session_id)?)?;
    match args.set {
        Some(StatusArg::Completed) => session.set_status(Status::Completed)?,
        Some(StatusArg::Failed) => session.set_status(Status::Failed)?,
        Some(StatusArg::Paused) => session.set_status(Status::Paused)?,
        None => {}
    }
    let metadata = session.metadata()?;
    printer.print(&metadata, || {
        let text = |key: &str| ui::printable(metadata[key].as_str().unwrap_or("")).into_owned();
        let request = Some(text("feature_request")).filter(|request| !request.is_empty());
        let about = request.map_or_else(String::new, |request| format!(": {request}"));
        format!("{}{about} ({})", session.id(), text("status"))
    })
}

fn describe(entry: &Entry) -> String {
    let commit = entry.commit_sha.get(..10).unwrap_or("no commit");
    format!(
        "{BOLD}{}{BOLD:#}  {} {}  {commit}  {}  {DIM}{}{DIM:#}",
        ui::printable(&entry.checkpoint_id),
        entry.phase,
        entry.checkpoint_type,
        entry.timestamp,
        ui::headline(&entry.description, 60)
    )
}
