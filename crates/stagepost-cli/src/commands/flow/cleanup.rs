use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use stagepost::flow::cleanup::{self, Policy, Reason, Report, Seen};
use stagepost::model::RunId;
use stagepost::project::WholeFile;

use crate::app::App;
use crate::failure::{Code, Failure};
use crate::json::Output;
use crate::ui::{self, BOLD, DIM, Form};

/// Delete runs that failed, were given up or were killed long ago
///
/// Never one that is running, waits for a person, or is complete. What was done is told in a Markdown report.
#[derive(Debug, clap::Args)]
pub(crate) struct CleanupArgs {
    /// Only runs to which nothing happened for more than so many days
    #[arg(long, value_name = "DAYS", default_value_t = 7)]
    max_age_days: u64,
    /// Only print what would be deleted
    #[arg(long)]
    dry_run: bool,
    /// Write the report to this file; without it, to .claude/context/reports/checkpoint-cleanup-report.md, but not on a dry run
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Only look at this run
    #[arg(long, value_name = "RUN")]
    run_id: Option<RunId>,
}

#[derive(Serialize)]
struct Body<'a> {
    dry_run: bool,
    scanned: usize,
    deleted: &'a [Seen],
    kept: Vec<Stays<'a>>,
    /// Bytes that came back; on a dry run, at most so many would.
    bytes: u64,
    report: Option<PathBuf>,
}

#[derive(Serialize)]
struct Stays<'a> {
    #[serde(flatten)]
    seen: &'a Seen,
    why: Reason,
}

pub(crate) fn run(app: &App, args: &CleanupArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let max_age = Duration::from_secs(args.max_age_days.saturating_mul(86_400));
    let policy = Policy { max_age, only: args.run_id.clone() };
    // Before any run is deleted: it ends with a collection, which would be refused.
    project.refuse_after_a_loss()?;
    let plan = cleanup::plan(&project, &policy)?;
    if let (Some(run), true) = (&args.run_id, plan.delete.is_empty() && plan.keep.is_empty()) {
        return Err(Failure::new(Code::NotFound, format!("no flow run is called `{run}`")));
    }
    let place = args.report.as_ref().map(|path| app.folder().join(path));
    let failed = |path: &Path, error| Failure::file("write the report to", path, error);
    // Before anything is deleted: once it is, nobody could say what.
    let begin = |path: PathBuf| match WholeFile::replace(&path) {
        Ok(file) => Ok((path, file)),
        Err(error) => Err(failed(&path, error)),
    };
    let begun = place.map(begin).transpose()?;
    let now = project.context().clock.now();
    let (deleted, kept, bytes, report) = if args.dry_run {
        let report = Report::of_plan(&plan, max_age, now);
        let bytes = plan.delete.iter().map(|seen| seen.bytes).sum();
        (plan.delete, plan.keep, bytes, report)
    } else {
        let done = cleanup::apply(&project, &plan)?;
        let report = Report::of_done(&done, max_age, now);
        (done.deleted, done.kept, done.bytes, report)
    };
    let path = match begun {
        Some((path, mut file)) => {
            let written = file.write_all(report.markdown().as_bytes()).and_then(|()| file.finish());
            written.map_err(|error| failed(&path, error))?;
            Some(path)
        }
        None if args.dry_run => None,
        None => Some(cleanup::write_report(&project, &report)?),
    };
    let body = Body {
        dry_run: args.dry_run,
        scanned: deleted.len() + kept.len(),
        deleted: &deleted,
        kept: kept.iter().map(|(seen, why)| Stays { seen, why: *why }).collect(),
        bytes,
        report: path,
    };
    show(app, &body)
}

fn show(app: &App, body: &Body<'_>) -> Result<(), Failure> {
    match app.ui.form {
        Form::Json => return app.ui.json(&Output::new(body)),
        Form::Quiet => {
            return body.deleted.iter().try_for_each(|seen| app.ui.line(ui::printable(seen.run.as_str())));
        }
        Form::Text => {}
    }
    let verb = if body.dry_run { "would delete" } else { "deleted" };
    for seen in body.deleted {
        app.ui.line(format!("{verb} {}", describe(seen)))?;
    }
    for Stays { seen, why } in &body.kept {
        app.ui.line(format!("kept {}: {}", describe(seen), why.describe()))?;
    }
    let at_most = if body.dry_run { "at most " } else { "" };
    app.ui.line(format!(
        "{} scanned, {} {verb}, {at_most}{} {}",
        ui::count(body.scanned, "run"),
        body.deleted.len(),
        ui::bytes(body.bytes),
        if body.dry_run { "would come back" } else { "came back" },
    ))?;
    match &body.report {
        Some(path) => app.ui.say(format!("wrote {}", path.display())),
        None => app.ui.say("nothing was changed (dry run)"),
    }
    Ok(())
}

fn describe(seen: &Seen) -> String {
    format!(
        "{BOLD}{}{BOLD:#}  {}  {DIM}{}, {}{DIM:#}",
        ui::printable(seen.run.as_str()),
        seen.status,
        ui::count(usize::try_from(seen.age_days).unwrap_or(usize::MAX), "day"),
        ui::bytes(seen.bytes)
    )
}
