use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use stagepost::plan::{self, Plan, Policy, Pruned, Pruning};
use stagepost::project::parse_duration;

use crate::app::App;
use crate::failure::Failure;
use crate::json::Output;
use crate::ui::{self, BOLD, DIM, Form};

/// Give up old iterations; finals and best attempts stay
///
/// Stubs are left, so that `verify` still holds; `stagepost gc` gives the room back. With --archive, everything that goes
/// is written there first, with a list of the files and their hashes; `stagepost import` reads it again.
#[derive(Debug, clap::Args)]
pub(crate) struct PruneArgs {
    /// Only in this run; without it, in all
    run: Option<String>,
    /// Keep the newest so many iterations of each run
    #[arg(long, value_name = "N", required_unless_present = "max_age")]
    keep: Option<usize>,
    /// Give up what is older than this, such as 30d
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    max_age: Option<Duration>,
    /// Write what goes below this folder first
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,
    /// Only print what would go
    #[arg(long)]
    dry_run: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "a length of time is such as 30d, 12h or 90s".to_owned())
}

#[derive(Serialize)]
struct Body<'a> {
    dry_run: bool,
    #[serde(flatten)]
    pruning: &'a Pruning,
    #[serde(flatten)]
    done: &'a Pruned,
}

pub(crate) fn run(app: &App, args: &PruneArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let run = args.run.as_deref().map(|name| Plan::find(&project, name)).transpose()?;
    let policy = Policy { keep: args.keep, max_age: args.max_age };
    let pruning = plan::plan_prune(&project, run.as_ref().map(Plan::id), &policy)?;
    let archive = args.archive.as_ref().map(|folder| app.folder().join(folder));
    let done = if args.dry_run {
        Pruned::default()
    } else {
        plan::apply_prune(&project, &pruning, archive.as_deref())?
    };
    for path in &done.left {
        app.ui.warn(format!("left {}: it was changed", ui::printable(&path.to_string_lossy())));
    }
    match app.ui.form {
        Form::Json => {
            app.ui.json(&Output::new(Body { dry_run: args.dry_run, pruning: &pruning, done: &done }))
        }
        Form::Quiet => {
            pruning.prune.iter().try_for_each(|gone| app.ui.line(format!("{}:{}", gone.run, gone.iteration)))
        }
        Form::Text => {
            for gone in &pruning.prune {
                let why = match gone.why {
                    plan::Cause::Surplus => "more than are kept",
                    _ => "too old",
                };
                app.ui.line(format!(
                    "{BOLD}{}:{}{BOLD:#}  {}  {DIM}{why}{DIM:#}",
                    gone.run,
                    gone.iteration,
                    ui::bytes(gone.bytes)
                ))?;
            }
            let verb = if args.dry_run { "would give up" } else { "gave up" };
            let spared =
                if pruning.spared > 0 { format!(" ({} spared)", pruning.spared) } else { String::new() };
            app.ui.line(format!(
                "{verb} {}, {} stay{spared}",
                ui::count(pruning.prune.len(), "iteration"),
                pruning.kept
            ))
        }
    }
}
