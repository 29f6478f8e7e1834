use clap::CommandFactory;
use clap_complete::Shell;

use crate::app::App;
use crate::args::Cli;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(app: &App, args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "stagepost", &mut script);
    app.ui.raw(&mut script.as_slice())
}
