use std::path::PathBuf;

use serde::Serialize;
use stagepost::flow::definition::{Invalid, token_in};

use super::file;
use crate::app::App;
use crate::failure::Failure;
use crate::json::Output;
use crate::ui::{self, Form};

/// Check a flow file without running anything
///
/// Ends with 2 and says every line and column where something is wrong.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The flow file, YAML or JSON; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Serialize)]
struct Body<'a> {
    valid: bool,
    name: &'a str,
    steps: Vec<&'a str>,
}

pub(crate) fn run(app: &App, args: &CheckArgs) -> Result<(), Failure> {
    let (text, flow) = file::read(app, &args.file)?;
    if let Some(fault) = token_in(&text) {
        return Err(file::not_valid(&args.file, &Invalid { faults: vec![fault] }));
    }
    let steps: Vec<&str> = flow.order().iter().map(|step| step.id.as_str()).collect();
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(Body { valid: true, name: &flow.name, steps })),
        Form::Quiet => steps.iter().try_for_each(|step| app.ui.line(step)),
        Form::Text => app.ui.line(format!(
            "{} is a valid flow: {}, {}",
            args.file.display(),
            ui::printable(&flow.name),
            ui::count(steps.len(), "step")
        )),
    }
}
