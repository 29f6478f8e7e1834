use serde::Serialize;
use stagepost::project::{Check, Health, Project};

use crate::app::App;
use crate::failure::{Code, Failure, ROOM, VERIFY};
use crate::json::Output;
use crate::ui::{self, Form, GREEN, RED, YELLOW};

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Put in order what can be
    #[arg(long)]
    fix: bool,
}

#[derive(Serialize)]
struct Body<'a> {
    checks: &'a [Check],
}

pub(crate) fn run(app: &App, args: &DoctorArgs) -> Result<(), Failure> {
    let project = opened(app, args)?;
    let checks = project.doctor(args.fix)?;
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(Body { checks: &checks }))?,
        Form::Quiet => {}
        Form::Text => checks.iter().try_for_each(|check| app.ui.line(line(check)))?,
    }
    let worst = |health| checks.iter().any(|check| check.health == health);
    match (worst(Health::Bad), worst(Health::Fixable)) {
        (true, _) if checks.iter().any(Check::is_damage) => {
            Err(Failure::new(Code::Integrity, "something needs a person").hint(VERIFY))
        }
        (true, _) => Err(Failure::new(Code::Failed, "something needs a person").hint(ROOM)),
        (_, true) => Err(Failure::new(Code::Failed, "something is not in order")
            .hint("`stagepost doctor --fix` puts it in order")),
        _ => Ok(()),
    }
}

/// A store whose database was deleted cannot be opened; to fix that is to go on without it.
fn opened(app: &App, args: &DoctorArgs) -> Result<Project, Failure> {
    let place = app.find()?;
    let Some(entries) = place.lost_store().filter(|_| args.fix) else { return app.open() };
    let project = app.open_at(place, Project::begin_anew)?;
    let gone = if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") };
    app.ui.warn(format!("the store goes on without its database, {gone}; what was left of it is put aside"));
    Ok(project)
}

fn line(check: &Check) -> String {
    let (style, word) = match check.health {
        Health::Good => (GREEN, "good"),
        Health::Fixed => (YELLOW, "fixed"),
        Health::Fixable => (YELLOW, "fixable"),
        Health::Bad => (RED, "bad"),
    };
    format!("{style}{word:<8}{style:#} {:<12} {}", check.name, ui::printable(&check.found))
}
