use std::path::PathBuf;

use clap::ValueEnum;
use stagepost::flow::definition::Graph;
use stagepost::project::write_whole;

use super::file;
use crate::app::App;
use crate::failure::Failure;
use crate::json::Output;
use crate::ui;

/// Show the steps of a flow file and what leads from one to another
///
/// Solid arrows go to what needs a step; dashed ones to where an answer or a failure leads.
#[derive(Debug, clap::Args)]
pub(crate) struct GraphArgs {
    /// The flow file, YAML or JSON; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// As text or as a picture
    #[arg(long, default_value = "text")]
    format: Form,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Form {
    /// Text for a terminal
    Text,
    /// A picture
    Svg,
}

pub(crate) fn run(app: &App, args: &GraphArgs) -> Result<(), Failure> {
    let (_, flow) = file::read(app, &args.file)?;
    let graph = Graph::of(&flow);
    let drawn = match args.format {
        Form::Text => ui::printable_lines(&graph.text()),
        Form::Svg => graph.svg(),
    };
    let Some(path) = &args.output else {
        return match app.ui.form {
            ui::Form::Json => app.ui.json(&Output::new(serde_json::json!({ "graph": drawn }))),
            _ => app.ui.text(&drawn),
        };
    };
    let path = app.folder().join(path);
    write_whole(&path, drawn.as_bytes()).map_err(|error| Failure::file("write", &path, error))?;
    app.ui.say(format!("wrote {}", path.display()));
    Ok(())
}
