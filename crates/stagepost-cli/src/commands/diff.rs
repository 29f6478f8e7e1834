use std::io::IsTerminal;
use std::path::PathBuf;

use serde::Serialize;
use stagepost::model::{Checkpoint, RepoPath};
use stagepost::project::{self, ArtifactChange, Change, Difference, Project};
use stagepost::snapshot::diff::{Detail, Diff as FilesDiff, DiffOptions, Tag};

use super::save::left_out_line;
use crate::app::App;
use crate::args::ConsentArg;
use crate::failure::Failure;
use crate::json::Output;
use crate::ui::{self, BOLD, CYAN, Form, GREEN, RED, YELLOW};

#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// The older checkpoint, the newer one (without it: now), then files and folders relative to the current folder
    #[arg(value_name = "A [B] [PATH]")]
    names: Vec<String>,
    /// Only these files and folders
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only this artifact, and no files
    #[arg(long, value_name = "NAME")]
    artifact: Vec<String>,
    /// Only say how much differs
    #[arg(long)]
    stat: bool,
    #[command(flatten)]
    consent: ConsentArg,
}

#[derive(Serialize)]
struct Body {
    files: Option<FilesDiff>,
    artifacts: Vec<ArtifactChange>,
}

pub(crate) fn run(app: &App, args: &DiffArgs) -> Result<(), Failure> {
    let project = app.open()?.with_consent((&args.consent).into());
    let (before, after, paths) = args.understand(app, &project)?;
    if !args.artifact.is_empty() && (after.is_none() || !paths.is_empty()) {
        let what = "--artifact compares two checkpoints, and no files: name both, and no paths";
        return Err(Failure::usage(what));
    }
    let both_hold_files = before.content.snapshot.is_some()
        && after.as_ref().is_none_or(|after| after.content.snapshot.is_some());
    let files = if args.artifact.is_empty() && (both_hold_files || after.is_none()) {
        let detail = if args.stat { Detail::Counts } else { Detail::Lines { context: 3 } };
        Some(project.diff_files(
            &before,
            after.as_ref(),
            &DiffOptions { paths: paths.clone(), detail, ..DiffOptions::default() },
        )?)
    } else {
        None
    };
    let artifacts = match &after {
        Some(after) if paths.is_empty() => project.diff(&before, after, &args.artifact)?.artifacts,
        _ => Vec::new(),
    };
    let body = Body { files, artifacts };
    let left_out = body.files.iter().flat_map(|files| &files.left_out);
    left_out.for_each(|left| app.ui.warn(left_out_line(left)));
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(body)),
        Form::Quiet => {
            let files = body.files.iter().flat_map(|files| &files.files).map(|file| file.path.to_string());
            let artifacts = body.artifacts.iter().map(|change| change.name.clone());
            files.chain(artifacts).try_for_each(|name| app.ui.line(ui::printable(&name)))
        }
        Form::Text => text(app, &body, args.stat),
    }
}

impl DiffArgs {
    /// Tells checkpoints from paths: up to two names of checkpoints come first.
    fn understand(&self, app: &App, project: &Project) -> Result<Compared, Failure> {
        let mut found = Vec::new();
        for name in self.names.iter().take(2) {
            match project.resolve(name) {
                Ok(checkpoint) => found.push(checkpoint),
                Err(project::Error::NotFound { .. })
                    if app.folder().join(name).symlink_metadata().is_ok() =>
                {
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let named = self.names[found.len()..].iter().map(PathBuf::from).chain(self.paths.iter().cloned());
        let paths = app.repo_paths(project, &named.collect::<Vec<_>>())?;
        let mut found = found.into_iter();
        let before = found.next().map_or_else(|| project.newest_with_files(), Ok)?;
        Ok((before, found.next(), paths))
    }
}

type Compared = (Checkpoint, Option<Checkpoint>, Vec<RepoPath>);

/// Prints a patch: escaped and coloured for a person, and as it is for a program such as `git apply`.
fn files(app: &App, diff: &FilesDiff, stat: bool) -> Result<(), Failure> {
    let for_person = std::io::stdout().is_terminal();
    let mut out = Vec::new();
    let mut emit = |tag: Tag, bytes: &[u8]| {
        let style = style_of(tag);
        if for_person || stat {
            let text = ui::printable_lines(&String::from_utf8_lossy(bytes));
            let (text, end) = text.strip_suffix('\n').map_or((text.as_str(), ""), |text| (text, "\n"));
            out.extend_from_slice(format!("{style}{text}{style:#}{end}").as_bytes());
        } else {
            out.extend_from_slice(bytes);
        }
    };
    if stat {
        diff.stat(80, &mut emit)
    } else {
        diff.patch(&mut emit)
    }
    if for_person || stat {
        app.ui.text(&String::from_utf8_lossy(&out))
    } else {
        app.ui.raw(&mut out.as_slice())
    }
}

fn style_of(tag: Tag) -> anstyle::Style {
    match tag {
        Tag::Added => GREEN,
        Tag::Deleted => RED,
        Tag::File => BOLD,
        Tag::Range => CYAN,
        _ => anstyle::Style::new(),
    }
}

fn text(app: &App, diff: &Body, stat: bool) -> Result<(), Failure> {
    let is_empty = |files: &FilesDiff| files.files.is_empty() && files.left_out.is_empty();
    if diff.artifacts.is_empty() && diff.files.as_ref().is_none_or(is_empty) {
        app.ui.say("nothing differs");
    }
    diff.files.as_ref().map_or(Ok(()), |diff| files(app, diff, stat))?;
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

pub(crate) fn json_line(change: &Change) -> String {
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
