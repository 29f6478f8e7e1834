use std::io::Read;
use std::path::PathBuf;

use stagepost::model::{ArtifactName, Checkpoint, FileCounts, Label, RunId, RunKind, SkipReason, Skipped};
use stagepost::project::{Files, NewArtifact, Save, Source};

use crate::app::App;
use crate::args::ConsentArg;
use crate::failure::Failure;
use crate::input;
use crate::ui::{self, BOLD};

#[derive(Debug, clap::Args)]
pub(crate) struct SaveArgs {
    /// What it is, in words
    #[arg(
        long,
        short,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    message: String,
    /// Give it a name to find it by: `good`, or with a value `release=1.2`
    #[arg(long, value_name = "NAME[=VALUE]")]
    label: Vec<String>,
    /// Keep a file with it under a name
    #[arg(long, value_name = "NAME=FILE")]
    artifact: Vec<String>,
    /// Keep a JSON file with it as the state; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Keep a JSON object with it
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Keep only what is named here, not the files of the project
    #[arg(long)]
    no_files: bool,
    /// Keep these ignored files or folders too
    #[arg(long, value_name = "PATH", conflicts_with = "no_files")]
    include_ignored: Vec<PathBuf>,
    /// Keep files that look like secrets (`.env`, `*.pem` and the like) too; those that git tracks always are
    #[arg(long, conflicts_with = "no_files")]
    include_secrets: bool,
    #[command(flatten)]
    consent: ConsentArg,
    /// Save it in this run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

pub(crate) fn run(app: &App, args: SaveArgs) -> Result<(), Failure> {
    let (no_files, include_secrets) = (args.no_files, args.include_secrets);
    let consent = (&args.consent).into();
    let ignored = args.include_ignored.clone();
    let mut save = args.into_save()?;
    if !app.find()?.has_store() {
        save.check()?;
    }
    let project = app.open_to_write()?.with_consent(consent);
    if !no_files {
        let include_ignored =
            ignored.iter().map(|path| app.existing_path(&project, path)).collect::<Result<_, _>>()?;
        save.files = Some(Files { include_ignored, include_secrets, ..Files::default() });
    }
    let saved = project.save(save)?;
    tell_left_out(app, &saved);
    let told = app.ui.checkpoint(&project, &saved, |id| {
        let mut kept: Vec<String> = Vec::new();
        kept.extend(saved.content.snapshot.as_ref().map(|snapshot| files_line(&snapshot.files)));
        kept.extend(
            (!saved.content.artifacts.is_empty())
                .then(|| ui::count(saved.content.artifacts.len(), "artifact")),
        );
        let kept = if kept.is_empty() { String::new() } else { format!(" with {}", kept.join(" and ")) };
        format!("saved {BOLD}{id}{BOLD:#} as {}/{}{kept}", ui::printable(saved.run.as_str()), saved.seq)
    });
    told.map_err(|failure| failure.hint(format!("checkpoint {} is saved all the same", saved.id)))
}

/// What the snapshot does not hold is never silent.
fn tell_left_out(app: &App, saved: &Checkpoint) {
    let Some(snapshot) = &saved.content.snapshot else { return };
    snapshot.skipped.iter().for_each(|left| app.ui.warn(left_out_line(left)));
    snapshot.notes.iter().for_each(|note| app.ui.warn(ui::printable(note)));
}

/// One file that is not in a snapshot.
pub(crate) fn left_out_line(left: &Skipped) -> String {
    let path = left.path.to_string();
    format!("left out {} ({}): {}", ui::printable(&path), ui::bytes(left.size), reason(left.reason))
}

/// Why a file is not in a snapshot.
pub(crate) fn reason(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::TooLarge => "larger than `snapshot.max_file_size`",
        SkipReason::Unreadable => "it cannot be read",
        SkipReason::Special => "it is not a file",
        SkipReason::NestedUnborn => "it is a repository without a commit",
        SkipReason::InvalidName => "git can hold no such name",
        SkipReason::Secret => {
            "it looks like a secret; ignore it in git, or keep it with `--include-secrets` or `snapshot.secrets = true`"
        }
        _ => "it cannot be held",
    }
}

/// How many files, and how they differ from HEAD.
pub(crate) fn files_line(files: &FileCounts) -> String {
    let total = ui::count(usize::try_from(files.total).unwrap_or(usize::MAX), "file");
    let changes = [(files.added, "+"), (files.modified, "~"), (files.deleted, "-")];
    let changes: Vec<String> = changes
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, sign)| format!("{sign}{count}"))
        .collect();
    if changes.is_empty() { total } else { format!("{total} ({})", changes.join(" ")) }
}

impl SaveArgs {
    fn into_save(self) -> Result<Save, Failure> {
        let labels = self.label.iter().map(|label| label.parse::<Label>()).collect::<Result<_, _>>()?;
        let mut artifacts = self.artifact.iter().map(|text| artifact(text)).collect::<Result<Vec<_>, _>>()?;
        artifacts.extend(self.state.as_deref().map(read_state).transpose()?);
        let metadata = match &self.metadata {
            Some(text) => input::json(text.as_bytes())
                .map_err(|error| Failure::usage(format!("--metadata must be a JSON object: {error}")))?,
            None => serde_json::Map::new(),
        };
        let run = self.run.map(|run| RunId::new(run).map(|run| (run, RunKind::Adhoc))).transpose()?;
        Ok(Save { run, description: self.message, labels, metadata, artifacts, ..Save::default() })
    }
}

fn artifact(text: &str) -> Result<NewArtifact, Failure> {
    let Some((name, file)) = text.split_once('=') else {
        return Err(Failure::usage(format!("`{}` is not NAME=FILE", text.escape_debug())));
    };
    Ok(NewArtifact { name: ArtifactName::new(name)?, source: Source::File(PathBuf::from(file)) })
}

fn read_state(path: &std::path::Path) -> Result<NewArtifact, Failure> {
    let mut json = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut json).map(drop)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut json)).map(drop)
    };
    read.map_err(|error| Failure::file("read the state", path, error))?;
    Ok(NewArtifact::state(json))
}
