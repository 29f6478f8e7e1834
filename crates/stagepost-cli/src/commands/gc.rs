use serde::Serialize;
use stagepost::project::{Clock, GcPlan, SystemClock, parse_duration, parse_size};
use stagepost::retention::{Cause, Policy, Pruned};

use crate::app::App;
use crate::failure::Failure;
use crate::json::Output;
use crate::ui::{self, BOLD, DIM, Form};

#[derive(Debug, clap::Args)]
pub(crate) struct GcArgs {
    /// Only print what would be done
    #[arg(long)]
    dry_run: bool,
    /// Give up all but the newest so many of each run
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// Give up what is older, such as 30d
    #[arg(long, value_name = "DURATION")]
    max_age: Option<String>,
    /// Give up the oldest until the payloads of the rest fit, such as 2G
    #[arg(long, value_name = "SIZE")]
    max_size: Option<String>,
}

#[derive(Serialize)]
struct Body<'a> {
    dry_run: bool,
    #[serde(flatten)]
    plan: &'a GcPlan,
    /// Bytes by which the store became smaller.
    bytes: Option<u64>,
}

pub(crate) fn run(app: &App, args: &GcArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let plan = project.plan_gc(&args.policy(&project.settings().retention)?)?;
    if app.ui.form == Form::Text {
        show(app, &plan)?;
    }
    let swept = if args.dry_run { None } else { Some(project.apply_gc(&plan)?) };
    app.catch_up(&project);
    // What is called pruned has been.
    if app.ui.form == Form::Text {
        app.ui.line(summary(&plan))?;
    }
    let bytes = swept.as_ref().map(|swept| swept.collected.bytes);
    match (app.ui.form, bytes) {
        (Form::Json, bytes) => {
            app.ui.json(&Output::new(Body { dry_run: args.dry_run, plan: &plan, bytes }))?
        }
        (Form::Quiet, _) => plan.plan.prune.iter().try_for_each(|one| app.ui.line(one.id.to_string()))?,
        (Form::Text, Some(bytes)) => app.ui.say(format!("done: {} came back", ui::bytes(bytes))),
        (Form::Text, None) => app.ui.say("nothing was changed (dry run)"),
    }
    Ok(())
}

impl GcArgs {
    fn policy(&self, configured: &Policy) -> Result<Policy, Failure> {
        let wrong = |text: &String, example: &str| {
            Failure::usage(format!("`{}` is not like {example}", text.escape_debug()))
        };
        let max_age = self
            .max_age
            .as_ref()
            .map(|text| parse_duration(text).ok_or_else(|| wrong(text, "30d")))
            .transpose()?;
        let max_size = self
            .max_size
            .as_ref()
            .map(|text| parse_size(text).ok_or_else(|| wrong(text, "2G")))
            .transpose()?;
        let given = Policy { keep_last: self.keep, max_age, max_size };
        Ok(if given == Policy::default() { *configured } else { given })
    }
}

fn show(app: &App, plan: &GcPlan) -> Result<(), Failure> {
    let now = SystemClock.now();
    let place = |one: &Pruned| format!("{}/{}", ui::printable(one.run.as_str()), one.seq);
    let places = plan.plan.prune.iter().map(|one| place(one).chars().count()).max().unwrap_or(0);
    for one in &plan.plan.prune {
        let why = match one.why {
            Cause::Surplus => "its run has enough newer ones",
            Cause::Age => "too old",
            Cause::Size => "to make room",
        };
        let when = ui::ago(one.created_at, now);
        app.ui.line(format!(
            "prune {BOLD}{}{BOLD:#}  {:<places$}  {DIM}{when:<14}{DIM:#}  {why}",
            one.id,
            place(one)
        ))?;
    }
    Ok(())
}

fn summary(plan: &GcPlan) -> String {
    let freed = if plan.plan.freed > 0 {
        format!(", {} of payloads freed", ui::bytes(plan.plan.freed))
    } else {
        String::new()
    };
    let spared = if plan.plan.spared > 0 {
        format!(" ({} of them pinned, labelled, needed or the newest)", plan.plan.spared)
    } else {
        String::new()
    };
    format!("{} pruned, {} kept{spared}{freed}", plan.plan.prune.len(), plan.plan.kept)
}
