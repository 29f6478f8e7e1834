use serde::Serialize;
use stagepost::project::{Place, Project};

use crate::app::App;
use crate::failure::Failure;
use crate::json::Output;
use crate::ui::{self, Form};

#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {}

#[derive(Serialize)]
struct Body {
    project: String,
    store: String,
    made: bool,
}

pub(crate) fn run(app: &App, _: &InitArgs) -> Result<(), Failure> {
    let here = || {
        std::fs::canonicalize(app.folder())
            .map_err(|error| Failure::file("open the folder", app.folder(), error))
    };
    let place = match Place::find(app.folder())? {
        Some(place) => place,
        None => Place::without_git(&here()?),
    };
    let made = !place.has_store();
    let (root, store) = (place.root.display().to_string(), place.store.display().to_string());
    app.open_at(place, Project::init)?;
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(Body { project: root, store, made })),
        Form::Quiet => Ok(()),
        Form::Text if made => app.ui.line(format!("made the store {}", ui::printable(&store))),
        Form::Text => app.ui.line(format!("the store {} is there already", ui::printable(&store))),
    }
}
