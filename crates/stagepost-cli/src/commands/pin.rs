use stagepost::model::Checkpoint;
use stagepost::project::Project;

use crate::app::App;
use crate::failure::Failure;
use crate::ui::BOLD;

#[derive(Debug, clap::Args)]
pub(crate) struct PinArgs {
    /// The checkpoint
    #[arg(default_value = "@", value_name = "CHECKPOINT")]
    checkpoint: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UnpinArgs {
    /// The checkpoint
    #[arg(default_value = "@", value_name = "CHECKPOINT")]
    checkpoint: String,
}

pub(crate) fn pin(app: &App, args: &PinArgs) -> Result<(), Failure> {
    change(app, &args.checkpoint, Project::pin, ["pinned", "was pinned already:"])
}

pub(crate) fn unpin(app: &App, args: &UnpinArgs) -> Result<(), Failure> {
    change(app, &args.checkpoint, Project::unpin, ["unpinned", "was not pinned:"])
}

type Set = fn(&Project, &Checkpoint) -> Result<bool, stagepost::project::Error>;

fn change(app: &App, name: &str, set: Set, [done, nothing]: [&str; 2]) -> Result<(), Failure> {
    let project = app.open()?;
    let checkpoint = project.resolve(name)?;
    let changed = set(&project, &checkpoint)?;
    app.ui.checkpoint(&project, &checkpoint, |id| {
        format!("{} {BOLD}{id}{BOLD:#}", if changed { done } else { nothing })
    })
}
