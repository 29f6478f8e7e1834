//! Other ways for a run: `flow fork`, `flow cancel`.

use serde::Serialize;
use stagepost::flow::{Flows, RunState, Source};
use stagepost::model::RunId;

use super::look;
use crate::app::App;
use crate::failure::Failure;
use crate::json::Output;
use crate::ui::Form;

/// Make a new run that shares the past of another up to a step
///
/// Nothing is run: `flow resume` of the new run goes on after that step.
#[derive(Debug, clap::Args)]
pub(crate) struct ForkArgs {
    /// The run: its name or the start of it, `@` for the newest
    #[arg(value_name = "RUN")]
    run: String,
    /// The last step that is shared, by its id or number
    #[arg(long, value_name = "STEP")]
    from_step: String,
    /// What to call the new run; without a name it gets a new one
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
}

/// Give a run up: whoever drives it is stopped, and it cannot be resumed
#[derive(Debug, clap::Args)]
pub(crate) struct CancelArgs {
    /// The run: its name or the start of it, `@` for the newest
    #[arg(value_name = "RUN")]
    run: String,
    /// Why
    #[arg(long, short, value_name = "TEXT", default_value = "", hide_default_value = true)]
    message: String,
}

#[derive(Serialize)]
struct Forked<'a> {
    run: &'a RunId,
    from: &'a RunId,
    checkpoint: Option<stagepost::model::CheckpointId>,
}

pub(crate) fn fork(app: &App, args: &ForkArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let flows = Flows::of(&project);
    let from = flows.resolve(&args.run)?;
    let new = match &args.run_id {
        Some(id) => RunId::new(id.as_str())?,
        None => {
            let definition = RunState::load(&project, &from)?.definition;
            let missing = || stagepost::flow::Error::InCode { run: from.clone() };
            let text = definition.ok_or_else(missing)?.text;
            let read = Source::read(&text, None).map_err(|invalid| stagepost::flow::Error::Definition {
                run: from.clone(),
                source: Box::new(invalid),
            });
            flows.new_id(&read?.flow)?
        }
    };
    let run = flows.fork(&from, &args.from_step, &new)?;
    match app.ui.form {
        Form::Json => {
            app.ui.json(&Output::new(Forked { run: &run.id, from: &from, checkpoint: run.forked_from }))
        }
        Form::Quiet => app.ui.line(run.id.as_str()),
        Form::Text => app.ui.line(format!(
            "run {} shares the past of {from} up to step {}\nnext: stagepost flow resume {}",
            run.id, args.from_step, run.id
        )),
    }
}

pub(crate) fn cancel(app: &App, args: &CancelArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let flows = Flows::of(&project);
    let id = flows.resolve(&args.run)?;
    flows.cancel(&id, &args.message)?;
    look::print_state(app, &project, &id)
}
