use serde::Serialize;
use stagepost::gate::{Gate, Gates};
use stagepost::model::Checkpoint;
use stagepost::project::{Clock, Place, Project, Status, SystemClock};

use super::gate::short_row;
use crate::app::App;
use crate::failure::Failure;
use crate::json::Output;
use crate::ui::{self, BOLD, DIM, Form};

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {}

#[derive(Serialize)]
struct Body<'a> {
    project: String,
    store: String,
    bytes: u64,
    entries: u64,
    latest: Option<&'a Checkpoint>,
    last_good: Option<&'a Checkpoint>,
    waiting: &'a [Gate],
}

pub(crate) fn run(app: &App, _: &StatusArgs) -> Result<(), Failure> {
    let place = app.find()?;
    if !place.has_store() {
        return nothing_yet(app, &place);
    }
    let project = app.open()?;
    let status = project.status()?;
    let waiting = Gates::of(&project).waiting()?;
    match app.ui.form {
        Form::Quiet => status.latest.iter().try_for_each(|latest| app.ui.line(latest.id.to_string())),
        Form::Json => app.ui.json(&Output::new(Body {
            project: project.place().root.display().to_string(),
            store: project.place().store.display().to_string(),
            bytes: status.bytes,
            entries: status.entries,
            latest: status.latest.as_ref(),
            last_good: status.last_good.as_ref(),
            waiting: &waiting,
        })),
        Form::Text => text(app, &project, &status, &waiting),
    }
}

/// A project without a store is a fine place to be: nothing was saved yet.
fn nothing_yet(app: &App, place: &Place) -> Result<(), Failure> {
    let (project, store) = (place.root.display().to_string(), place.store.display().to_string());
    match app.ui.form {
        Form::Quiet => Ok(()),
        Form::Json => app.ui.json(&Output::new(Body {
            project,
            store,
            bytes: 0,
            entries: 0,
            latest: None,
            last_good: None,
            waiting: &[],
        })),
        Form::Text => {
            app.ui.line(format!("{DIM}project  {DIM:#}{}", ui::printable(&project)))?;
            app.ui.line(format!("{DIM}latest   {DIM:#}nothing saved yet: `stagepost save -m TEXT`"))
        }
    }
}

fn text(app: &App, project: &Project, status: &Status, waiting: &[Gate]) -> Result<(), Failure> {
    let place = project.place();
    let store = place.store.strip_prefix(&place.root).unwrap_or(&place.store);
    let row = |name: &str, value: String| app.ui.line(format!("{DIM}{name:<9}{DIM:#}{value}"));
    row("project", ui::printable(&place.root.display().to_string()).into_owned())?;
    row("store", format!("{} ({})", ui::printable(&store.display().to_string()), ui::bytes(status.bytes)))?;
    match &status.latest {
        Some(latest) => row("latest", short(project, latest)?)?,
        None => row("latest", "nothing saved yet: `stagepost save -m TEXT`".to_owned())?,
    }
    match &status.last_good {
        Some(good) if status.last_good != status.latest => row("good", short(project, good)?)?,
        _ => {}
    }
    waiting.iter().try_for_each(|gate| row("waiting", short_row(gate)))
}

fn short(project: &Project, checkpoint: &Checkpoint) -> Result<String, Failure> {
    let id = project.short_id(&checkpoint.id)?;
    let when = ui::ago(checkpoint.created_at, SystemClock.now());
    let what = ui::headline(&checkpoint.content.description, 60);
    let line = format!(
        "{BOLD}{id}{BOLD:#}  {}/{}  {when}  {what}",
        ui::printable(checkpoint.run.as_str()),
        checkpoint.seq
    );
    Ok(line.trim_end().to_owned())
}
