use std::path::PathBuf;

use serde::Serialize;
use stagepost::formats::Format;
use stagepost::project::{ImportItem, ImportPlan};
use stagepost::{flow, plan, session, task};

use crate::app::App;
use crate::failure::{Code, Failure};
use crate::json::Output;
use crate::ui::{self, BOLD, DIM, Form};

#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// A file, a folder of them, or a project
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// The format: maestro, tasks, runs or plans; without it, each file is looked at
    #[arg(long)]
    format: Option<String>,
    /// Only print what would be taken in
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// The format: maestro, tasks, runs or plans
    #[arg(long)]
    format: String,
    /// The folder to write below
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

#[derive(Serialize)]
struct ImportBody<'a> {
    dry_run: bool,
    imported: usize,
    #[serde(flatten)]
    plan: &'a ImportPlan,
}

pub(crate) fn run(app: &App, args: &ImportArgs) -> Result<(), Failure> {
    let format = args.format.as_deref().map(parse).transpose()?;
    let path = app.folder().join(&args.path);
    std::fs::metadata(&path).map_err(|error| Failure::file("import", &args.path, error))?;
    let project = app.open_to_look()?;
    let plan = project.plan_import(&path, format)?;
    let imported = if args.dry_run || (plan.items.is_empty() && plan.progress.is_empty()) {
        0
    } else if project.place().has_store() {
        project.apply_import(&plan)?
    } else {
        app.open_to_write()?.apply_import(&plan)?
    };
    for one in &plan.unreadable {
        app.ui.warn(format!("{} cannot be read: {}", one.path.display(), ui::printable(&one.why)));
    }
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(ImportBody { dry_run: args.dry_run, imported, plan: &plan })),
        Form::Quiet => plan.items.iter().try_for_each(|item| app.ui.line(ui::printable(&item.id))),
        Form::Text => {
            plan.items.iter().try_for_each(|item| app.ui.line(describe(item)))?;
            let verb = if args.dry_run { "would import" } else { "imported" };
            plan.progress.iter().try_for_each(|file| {
                let lines = ui::count(file.lines, "line");
                app.ui.line(format!("{verb} {} of {lines} of {}", file.new, file.path.display()))
            })?;
            let new = plan.items.iter().filter(|item| !item.known).count();
            let line = format!("{verb} {} of {}", new, ui::count(plan.items.len(), "checkpoint"));
            if plan.items.is_empty() { Ok(()) } else { app.ui.line(line) }
        }
    }?;
    if plan.unreadable.is_empty() { Ok(()) } else { Err(not_all(app, &plan, args.dry_run)) }
}

/// Says that something was left out: an import that did not read everything is not done.
fn not_all(app: &App, plan: &ImportPlan, dry_run: bool) -> Failure {
    if app.ui.form == Form::Json {
        return Failure::told(Code::Failed);
    }
    let left = match plan.unreadable.len() {
        1 => "what is named above".to_owned(),
        many => format!("the {many} things named above"),
    };
    let (nothing, would) =
        (plan.items.is_empty() && plan.progress.is_empty(), if dry_run { "would be" } else { "was" });
    let message = if nothing {
        format!("nothing {would} imported: {left} cannot be read")
    } else {
        format!("not everything {would} imported: {left} cannot be read")
    };
    Failure::new(Code::Failed, message)
        .hint("mend or move it, and import again: only what is new is taken in")
}

fn parse(text: &str) -> Result<Format, Failure> {
    let known: Vec<&str> = Format::ALL.iter().map(|format| format.as_str()).collect();
    text.parse()
        .map_err(|error| Failure::usage(format!("{error}")).hint(format!("formats: {}", known.join(", "))))
}

fn describe(item: &ImportItem) -> String {
    let state = if item.known { "known" } else { "new" };
    let mut flags = vec![item.integrity.clone()];
    flags.extend(Some(item.commit.clone()).filter(|commit| commit != "none"));
    flags.extend(item.findings.iter().cloned());
    format!(
        "{state:<5} {BOLD}{}{BOLD:#} {}  {}  {DIM}{}{DIM:#}",
        ui::printable(&item.run),
        ui::printable(&item.id),
        ui::headline(&item.description, 50),
        ui::printable(&flags.join(", "))
    )
}

#[derive(Serialize)]
struct ExportBody {
    files: Vec<PathBuf>,
}

pub(crate) fn export(app: &App, args: &ExportArgs) -> Result<(), Failure> {
    let format = parse(&args.format)?;
    let project = app.open()?;
    let folder = app.folder().join(&args.to);
    let files = match format {
        Format::Maestro => session::export(&project, &folder)?,
        Format::Tasks => task::export(&project, &folder)?,
        Format::Runs => flow::export(&project, &folder)?,
        Format::Plans => plan::export(&project, &folder)?,
        other => return Err(Failure::usage(format!("{other} cannot be exported yet"))),
    };
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(ExportBody { files })),
        Form::Text if files.is_empty() => {
            app.ui.say(format!("there is nothing to export as {format}"));
            Ok(())
        }
        _ => files.iter().try_for_each(|file| app.ui.line(ui::printable(&file.to_string_lossy()))),
    }
}
