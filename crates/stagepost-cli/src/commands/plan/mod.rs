//! Plans: `plan` and its commands.

mod compare;
mod look;
mod prune;
mod record;
mod run;

use std::path::Path;

use stagepost::formats::plans::Scored;
use stagepost::plan::{self, Payload};

use crate::app::App;
use crate::failure::Failure;
use crate::input;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum PlanCommand {
    Run(run::RunArgs),
    Start(record::StartArgs),
    Record(record::RecordArgs),
    Finish(record::FinishArgs),
    List(look::ListArgs),
    Show(look::ShowArgs),
    Scores(look::ScoresArgs),
    Compare(compare::CompareArgs),
    Best(look::BestArgs),
    Prune(prune::PruneArgs),
}

pub(crate) fn run(app: &App, command: PlanCommand) -> Result<(), Failure> {
    match command {
        PlanCommand::Run(args) => run::run(app, &args),
        PlanCommand::Start(args) => record::start(app, &args),
        PlanCommand::Record(args) => record::record(app, &args),
        PlanCommand::Finish(args) => record::finish(app, &args),
        PlanCommand::List(args) => look::list(app, &args),
        PlanCommand::Show(args) => look::show(app, &args),
        PlanCommand::Scores(args) => look::scores(app, &args),
        PlanCommand::Compare(args) => compare::run(app, &args),
        PlanCommand::Best(args) => look::best(app, &args),
        PlanCommand::Prune(args) => prune::run(app, &args),
    }
}

/// `6/10 SOFT_FAIL`, or what is known of it.
fn score_text(scored: Option<&Scored>) -> String {
    let Some(scored) = scored else { return "not judged".to_owned() };
    let score = scored.score.map(|score| format!("{}/{}", number(score), number(scored.score_max)));
    let verdict = scored.verdict.map(|verdict| verdict.to_string());
    [score, verdict].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// A number with at most two digits after the point.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Reads a file, or standard input for `-`.
fn read_bytes(app: &App, path: &Path) -> Result<Vec<u8>, Failure> {
    let place = if path.as_os_str() == "-" { path.to_owned() } else { app.folder().join(path) };
    input::read(&place, input::MOST_PAYLOAD).map_err(|error| Failure::file("read", path, error))
}

/// Reads a payload from a file or standard input.
fn read_payload(app: &App, path: &Path, part: &str) -> Result<Payload, Failure> {
    let bytes = read_bytes(app, path)?;
    Payload::read(bytes).map_err(|source| plan::Error::Payload { part: part.to_owned(), source }.into())
}
