use std::path::PathBuf;

use serde::Serialize;
use stagepost::model::Checkpoint;
use stagepost::project::{Project, WholeFile};

use super::log::pinned;
use super::save::{files_line, reason};
use crate::app::App;
use crate::failure::{Code, Failure};
use crate::json::{LogOutput, Output, SCHEMA};
use crate::ui::{self, BOLD, DIM, Form};

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The checkpoint
    #[arg(default_value = "@", value_name = "CHECKPOINT")]
    checkpoint: String,
    /// Print this artifact as it was saved
    #[arg(long, value_name = "NAME")]
    artifact: Option<String>,
    /// Write the artifact to this file instead, which must not be there
    #[arg(long, short, value_name = "FILE", requires = "artifact")]
    output: Option<PathBuf>,
    /// List the versions of the artifact in the checkpoint's run
    #[arg(long, requires = "artifact", conflicts_with = "output")]
    history: bool,
}

#[derive(Serialize)]
struct Extracted<'a> {
    artifact: &'a str,
    path: String,
    bytes: u64,
}

pub(crate) fn run(app: &App, args: &ShowArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let checkpoint = project.resolve(&args.checkpoint)?;
    match (&args.artifact, &args.output) {
        (Some(name), _) if args.history => history(app, &project, &checkpoint, name),
        (Some(name), Some(output)) => extract(app, &project, &checkpoint, name, output),
        (Some(name), None) => app.ui.raw(&mut project.open_artifact(&checkpoint, name)?),
        (None, _) => {
            let pinned = project.is_pinned(&checkpoint)?;
            app.ui.checkpoint(&project, &checkpoint, |_| text(&checkpoint, pinned))
        }
    }
}

fn text(checkpoint: &Checkpoint, pinned: bool) -> String {
    let content = &checkpoint.content;
    let mut lines = vec![format!("{BOLD}checkpoint {}{BOLD:#}", checkpoint.id)];
    let mut row = |name: &str, value: String| lines.push(format!("{DIM}{name:<12}{DIM:#}{value}"));
    row("run", format!("{}/{}", ui::printable(checkpoint.run.as_str()), checkpoint.seq));
    row("kind", ui::printable(&content.kind.to_string()).into_owned());
    row("created", checkpoint.created_at.to_string());
    if let Some(parent) = checkpoint.parent {
        row("parent", parent.to_string());
    }
    if !content.labels.is_empty() {
        row("labels", content.labels.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    }
    if pinned {
        row("pinned", "yes".to_owned());
    }
    for (name, value) in &content.metadata {
        row("metadata", format!("{} = {}", ui::printable(name), ui::headline(&value.to_string(), 80)));
    }
    if let Some(snapshot) = &content.snapshot {
        row("files", files_line(&snapshot.files));
        row("commit", format!("{}  {DIM}(plain git can read it){DIM:#}", snapshot.commit));
        row("head", snapshot.head.as_ref().map_or_else(|| "no commit yet".to_owned(), ToString::to_string));
        row(
            "branch",
            snapshot
                .branch
                .as_ref()
                .map_or_else(|| "detached".to_owned(), |branch| ui::printable(branch).into_owned()),
        );
        for left in &snapshot.skipped {
            row(
                "left out",
                format!(
                    "{}  {}  {}",
                    ui::printable(&left.path.to_string()),
                    ui::bytes(left.size),
                    reason(left.reason)
                ),
            );
        }
        snapshot
            .included
            .iter()
            .for_each(|path| row("ignored", ui::printable(&path.to_string()).into_owned()));
        snapshot.notes.iter().for_each(|note| row("note", ui::printable(note).into_owned()));
    }
    for artifact in &content.artifacts {
        row(
            "artifact",
            format!(
                "{}  {}  {}",
                ui::printable(artifact.name.as_str()),
                ui::bytes(artifact.blob.size),
                ui::printable(artifact.media.as_str())
            ),
        );
    }
    row("seal", checkpoint.seal.to_string());
    if !content.description.is_empty() {
        lines.push(String::new());
        lines.extend(content.description.lines().map(|line| format!("    {}", ui::printable(line))));
    }
    lines.join("\n")
}

/// Writes an artifact to a new file; a file that turns out to be damaged is not left behind.
fn extract(
    app: &App,
    project: &Project,
    checkpoint: &Checkpoint,
    name: &str,
    output: &std::path::Path,
) -> Result<(), Failure> {
    let mut source = project.open_artifact(checkpoint, name)?;
    let failed = |error: std::io::Error| {
        let there = error.kind() == std::io::ErrorKind::AlreadyExists;
        let failure = Failure::file("make", output, error);
        if there { failure.hint("choose another name: files are never overwritten") } else { failure }
    };
    let mut file = WholeFile::fresh(output).map_err(failed)?;
    let copied = std::io::copy(&mut source, &mut file);
    let bytes = copied.map_err(|error| Failure::reading(error, output))?;
    file.finish().map_err(failed)?;
    let path = output.display().to_string();
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(Extracted { artifact: name, path, bytes })),
        Form::Quiet => Ok(()),
        Form::Text => app.ui.line(format!("wrote {} to {}", ui::bytes(bytes), ui::printable(&path))),
    }
}

fn history(app: &App, project: &Project, checkpoint: &Checkpoint, name: &str) -> Result<(), Failure> {
    let versions = project.history(&checkpoint.run, name)?;
    if versions.is_empty() {
        let run = ui::printable(checkpoint.run.as_str());
        let what = format!("no checkpoint of run {run} has an artifact `{}`", name.escape_debug());
        return Err(Failure::new(Code::NotFound, what).hint("`stagepost show ID` lists the artifacts"));
    }
    let checkpoints: Vec<Checkpoint> = versions.into_iter().map(|version| version.checkpoint).collect();
    match app.ui.form {
        Form::Json => {
            let pinned = pinned(project, &checkpoints)?;
            let body = LogOutput { schema: SCHEMA, checkpoints: &checkpoints, pinned: &pinned, damaged: &[] };
            app.ui.json(&body)
        }
        Form::Quiet => checkpoints.iter().try_for_each(|one| app.ui.line(one.id.to_string())),
        Form::Text => checkpoints.iter().try_for_each(|one| {
            let size = one.artifact(name).map_or(0, |artifact| artifact.blob.size);
            app.ui.line(format!(
                "{BOLD}{}{BOLD:#}  {}/{}  {}",
                project.short_id(&one.id)?,
                ui::printable(one.run.as_str()),
                one.seq,
                ui::bytes(size)
            ))
        }),
    }
}
