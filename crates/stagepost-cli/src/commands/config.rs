use serde::Serialize;
use stagepost::project::Place;

use crate::app::App;
use crate::failure::{Code, Failure};
use crate::json::Output;
use crate::ui::{self, BOLD, DIM, Form};

#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    /// Print the value of this setting only
    #[arg(value_name = "SETTING")]
    name: Option<String>,
}

#[derive(Serialize)]
struct Setting<'a> {
    name: &'a str,
    value: &'a str,
    origin: String,
    meaning: &'a str,
}

#[derive(Serialize)]
struct Body<'a> {
    settings: Vec<Setting<'a>>,
    /// What is wrong with those that are not as they were set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    wrong: Vec<String>,
}

pub(crate) fn run(app: &App, args: &ConfigArgs) -> Result<(), Failure> {
    let place = Place::find(app.folder())?;
    let (settings, wrong) = app.sound_settings(place.as_ref().map(|place| place.root.as_path()));
    let wanted = settings.list().filter(|(name, ..)| args.name.as_ref().is_none_or(|wanted| wanted == name));
    let list: Vec<Setting<'_>> = wanted
        .map(|(name, value, origin, meaning)| Setting { name, value, origin: origin.to_string(), meaning })
        .collect();
    if list.is_empty() {
        let name = args.name.as_deref().unwrap_or_default();
        return Err(Failure::new(Code::NotFound, format!("there is no setting `{}`", name.escape_debug()))
            .hint("`stagepost config` lists every setting"));
    }
    match (app.ui.form, &args.name) {
        (Form::Json, _) => {
            let wrong = wrong.iter().map(ToString::to_string).collect();
            app.ui.json(&Output::new(Body { settings: list, wrong }))?;
        }
        (_, Some(_)) | (Form::Quiet, _) => {
            list.iter().try_for_each(|setting| app.ui.line(ui::printable(setting.value)))?;
        }
        (Form::Text, None) => {
            let width = list.iter().map(|setting| setting.name.len()).max().unwrap_or(0);
            list.iter().try_for_each(|setting| app.ui.line(line(setting, width)))?;
        }
    }
    named(app, wrong)
}

/// Names what is wrong, and fails if anything is.
fn named(app: &App, wrong: Vec<Failure>) -> Result<(), Failure> {
    let Some(code) = wrong.first().map(|failure| failure.code) else { return Ok(()) };
    if app.ui.form != Form::Json {
        for failure in wrong {
            app.ui.failure(&Failure { hint: None, ..failure });
        }
    }
    Err(Failure::told(code))
}

fn line(setting: &Setting<'_>, width: usize) -> String {
    let value = if setting.value.is_empty() { "-".into() } else { ui::printable(setting.value) };
    format!(
        "{BOLD}{:<width$}{BOLD:#} {value:<10} {DIM}{:<14} {}{DIM:#}",
        setting.name, setting.origin, setting.meaning
    )
}
