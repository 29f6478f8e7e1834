use clap::ValueEnum;
use serde::Serialize;
use stagepost::model::RepoPath;
use stagepost::project::{Project, RestoreOutcome, Wish};
use stagepost::snapshot::restore::{Left, Mode, Moved, RestorePlan};

use crate::app::App;
use crate::args::ConsentArg;
use crate::failure::{Code, Failure, refused_hint};
use crate::json::Output;
use crate::ui::{self, BOLD, DIM, Form, GREEN, RED, YELLOW};

#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// The checkpoint
    #[arg(value_name = "CHECKPOINT")]
    checkpoint: String,
    /// Only these files and folders, relative to the current folder
    #[arg(value_name = "PATH")]
    paths: Vec<std::path::PathBuf>,
    /// What to put back
    #[arg(long, value_enum, default_value_t = ModeArg::Files)]
    mode: ModeArg,
    /// Only print what would be done
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before deleting or moving HEAD
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    consent: ConsentArg,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    consent: ConsentArg,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RedoArgs {
    #[command(flatten)]
    consent: ConsentArg,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ModeArg {
    /// The files; HEAD, branch and index stay
    Files,
    /// HEAD, branch and index; the files stay
    Mixed,
    /// All of it
    Hard,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Files => Mode::Files,
            ModeArg::Mixed => Mode::Mixed,
            ModeArg::Hard => Mode::Hard,
        }
    }
}

#[derive(Serialize)]
struct PlanBody<'a> {
    dry_run: bool,
    plan: &'a RestorePlan,
}

#[derive(Serialize)]
struct DoneBody<'a> {
    restore: &'a RestoreOutcome,
}

pub(crate) fn run(app: &App, args: &RestoreArgs) -> Result<(), Failure> {
    let project = app.open()?.with_consent((&args.consent).into());
    let target = project.resolve(&args.checkpoint)?;
    let paths = app.repo_paths(&project, &args.paths)?;
    let wish = Wish { mode: args.mode.into(), paths };
    if args.dry_run {
        return dry_run(app, &project.plan_restore(&target, &wish)?);
    }
    if !args.yes && app.ui.can_ask() {
        let plan = project.plan_restore(&target, &wish)?;
        show(app, &plan)?;
        let needs_consent = !plan.files.deletes.is_empty() || plan.moves.is_some();
        if needs_consent && plan.refusals().is_empty() && !app.ui.ask("go on?")? {
            return Err(Failure::new(Code::Refused, "nothing was changed"));
        }
    }
    done(app, &project, &project.restore(&target, &wish)?, "undo")
}

pub(crate) fn undo(app: &App, args: &UndoArgs) -> Result<(), Failure> {
    let project = app.open()?.with_consent((&args.consent).into());
    done(app, &project, &project.undo()?, "redo")
}

pub(crate) fn redo(app: &App, args: &RedoArgs) -> Result<(), Failure> {
    let project = app.open()?.with_consent((&args.consent).into());
    done(app, &project, &project.redo()?, "undo")
}

pub(crate) fn dry_run(app: &App, plan: &RestorePlan) -> Result<(), Failure> {
    dry_run_as(app, app.ui.form, plan)
}

/// Prints what a restore would do, in this form.
pub(crate) fn dry_run_as(app: &App, form: Form, plan: &RestorePlan) -> Result<(), Failure> {
    match form {
        Form::Json => app.ui.json(&Output::new(PlanBody { dry_run: true, plan }))?,
        _ => show(app, plan)?,
    }
    if plan.refusals().is_empty() {
        app.ui.say("nothing was changed (dry run)");
        return Ok(());
    }
    Err(if form == Form::Json {
        Failure::told(Code::Refused)
    } else {
        Failure::new(Code::Refused, "this restore would be refused").hint(refused_hint(plan.refusals()))
    })
}

fn show(app: &App, plan: &RestorePlan) -> Result<(), Failure> {
    let line = |style: anstyle::Style, word: &str, path: &RepoPath| {
        app.ui.line(format!("{style}{word:<7}{style:#} {}", ui::printable(&path.to_string())))
    };
    plan.files.writes.iter().try_for_each(|write| line(GREEN, "write", &write.path))?;
    plan.files.deletes.iter().try_for_each(|delete| line(RED, "delete", &delete.path))?;
    plan.files.left.iter().try_for_each(|left| app.ui.line(left_line(left)))?;
    if let Some(moves) = &plan.moves {
        let place = |head: Option<&stagepost::model::ObjectId>, branch: Option<&String>| {
            let head = head.map_or_else(|| "no commit".to_owned(), |head| head.as_str()[..10].to_owned());
            branch.map_or(head.clone(), |branch| format!("{} at {head}", ui::printable(branch)))
        };
        let (from, to) = (&moves.from, &moves.to);
        app.ui.line(format!(
            "{YELLOW}move{YELLOW:#}    HEAD and index from {} to {}",
            place(from.head.as_ref(), from.branch.as_ref()),
            place(to.head.as_ref(), to.branch.as_ref())
        ))?;
    }
    plan.refusals().iter().try_for_each(|refusal| {
        app.ui.line(format!("{RED}refused{RED:#} {}", ui::printable(&refusal.to_string())))
    })?;
    if plan.is_empty() && plan.refusals().is_empty() {
        app.ui.say(same(&plan.files.left, "the checkpoint"));
    }
    Ok(())
}

/// Says that there is nothing to do, but for what was left.
fn same(left: &[Left], target: &str) -> String {
    let what = if left.is_empty() { "everything" } else { "everything else" };
    format!("{what} is as in {target}")
}

fn left_line(left: &Left) -> String {
    format!(
        "{YELLOW}left{YELLOW:#}    {}  {DIM}{}{DIM:#}",
        ui::printable(&left.path.to_string()),
        left.reason
    )
}

/// Says what was done, and which command takes it back.
fn done(app: &App, project: &Project, outcome: &RestoreOutcome, back: &str) -> Result<(), Failure> {
    match app.ui.form {
        Form::Json => return app.ui.json(&Output::new(DoneBody { restore: outcome })),
        Form::Quiet => return app.ui.line(outcome.safety.to_string()),
        Form::Text => {}
    }
    outcome.left.iter().try_for_each(|left| app.ui.line(left_line(left)))?;
    let target = project.short_id(&outcome.target)?;
    let Some(done) = &outcome.done else {
        return app.ui.line(same(&outcome.left, &format!("{BOLD}{target}{BOLD:#} already")));
    };
    let mut what =
        vec![format!("{} written", ui::count(done.written, "file")), format!("{} deleted", done.deleted)];
    what.extend((done.head == Moved::Yes).then(|| "HEAD moved".to_owned()));
    what.extend((done.index == Moved::Yes).then(|| "index put back".to_owned()));
    app.ui.line(format!("restored {BOLD}{target}{BOLD:#}: {}", what.join(", ")))?;
    app.ui.say(format!("{DIM}`stagepost {back}` brings back what was there before{DIM:#}"));
    Ok(())
}
