use stagepost::project::{Change, Diff, Difference};

use crate::app::App;
use crate::failure::Failure;
use crate::json::Output;
use crate::ui::{self, BOLD, Form, GREEN, RED, YELLOW};

/// Show what differs between two checkpoints
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// The older checkpoint
    #[arg(default_value = "@-", value_name = "A")]
    before: String,
    /// The newer checkpoint
    #[arg(default_value = "@", value_name = "B")]
    after: String,
    /// Only this artifact
    #[arg(long, value_name = "NAME")]
    artifact: Vec<String>,
    /// Only say how much differs
    #[arg(long)]
    stat: bool,
}

pub(crate) fn run(app: &App, args: &DiffArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let (before, after) = (project.resolve(&args.before)?, project.resolve(&args.after)?);
    let diff = project.diff(&before, &after, &args.artifact)?;
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(diff)),
        Form::Quiet => diff.artifacts.iter().try_for_each(|change| app.ui.line(ui::printable(&change.name))),
        Form::Text => text(app, &diff, args.stat),
    }
}

fn text(app: &App, diff: &Diff, stat: bool) -> Result<(), Failure> {
    if diff.artifacts.is_empty() {
        app.ui.say("no artifact differs");
    }
    for change in &diff.artifacts {
        let name = ui::printable(&change.name).into_owned();
        let size = |size: Option<u64>| size.map_or_else(|| "-".to_owned(), ui::bytes);
        let sizes = format!("{} → {}", size(change.size_before), size(change.size_after));
        let summary = match &change.difference {
            Difference::Added => "added".to_owned(),
            Difference::Removed => "removed".to_owned(),
            Difference::Json(changes) => ui::count(changes.len(), "change"),
            Difference::Text(text) => {
                ui::count(text.lines().filter(|line| is_change(line)).count(), "changed line")
            }
            _ => "differs".to_owned(),
        };
        app.ui.line(format!("{BOLD}{name}{BOLD:#}  {sizes}  {summary}"))?;
        match &change.difference {
            Difference::Json(changes) if !stat => {
                changes.iter().try_for_each(|change| app.ui.line(json_line(change)))?
            }
            Difference::Text(text) if !stat => {
                text.lines().try_for_each(|line| app.ui.line(text_line(line)))?
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_change(line: &str) -> bool {
    (line.starts_with('+') || line.starts_with('-')) && !line.starts_with("+++") && !line.starts_with("---")
}

fn json_line(change: &Change) -> String {
    let path = |path: &str| if path.is_empty() { "/".to_owned() } else { ui::printable(path).into_owned() };
    let value = |value: &serde_json::Value| ui::headline(&value.to_string(), 100);
    match change {
        Change::Added { path: at, value: new } => format!("  {GREEN}+ {}  {}{GREEN:#}", path(at), value(new)),
        Change::Removed { path: at, value: old } => format!("  {RED}- {}  {}{RED:#}", path(at), value(old)),
        Change::Changed { path: at, before, after } => {
            format!("  {YELLOW}~ {}{YELLOW:#}  {} → {}", path(at), value(before), value(after))
        }
    }
}

fn text_line(line: &str) -> String {
    let safe = ui::printable_lines(line);
    match line.as_bytes().first() {
        Some(b'+') => format!("{GREEN}{safe}{GREEN:#}"),
        Some(b'-') => format!("{RED}{safe}{RED:#}"),
        _ => safe,
    }
}
