use crate::app::App;
use crate::failure::Failure;

/// Show the main job on a throw-away project
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {}

pub(crate) fn run(_: &App, _: &DemoArgs) -> Result<(), Failure> {
    Ok(())
}
