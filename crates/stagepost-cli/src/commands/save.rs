use std::io::Read;
use std::path::PathBuf;

use stagepost::model::{ArtifactName, Label, RunId, RunKind};
use stagepost::project::{NewArtifact, Save, Source};

use crate::app::App;
use crate::failure::Failure;
use crate::ui::{self, BOLD};

/// Save a checkpoint
#[derive(Debug, clap::Args)]
pub(crate) struct SaveArgs {
    /// What it is, in words
    #[arg(long, short, value_name = "TEXT", default_value = "", hide_default_value = true)]
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
    /// Save it in this run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

pub(crate) fn run(app: &App, args: SaveArgs) -> Result<(), Failure> {
    let save = args.into_save()?;
    let project = app.open_to_write()?;
    let saved = project.save(save)?;
    app.ui.checkpoint(&project, &saved, |id| {
        let kept = match saved.content.artifacts.len() {
            0 => String::new(),
            kept => format!(" with {}", ui::count(kept, "artifact")),
        };
        format!("saved {BOLD}{id}{BOLD:#} as {}/{}{kept}", ui::printable(saved.run.as_str()), saved.seq)
    })
}

impl SaveArgs {
    fn into_save(self) -> Result<Save, Failure> {
        let labels = self.label.iter().map(|label| label.parse::<Label>()).collect::<Result<_, _>>()?;
        let mut artifacts = self.artifact.iter().map(|text| artifact(text)).collect::<Result<Vec<_>, _>>()?;
        artifacts.extend(self.state.as_deref().map(read_state).transpose()?);
        let metadata = match &self.metadata {
            Some(text) => serde_json::from_str(text)
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
