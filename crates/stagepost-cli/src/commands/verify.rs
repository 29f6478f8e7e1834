use std::collections::BTreeSet;

use serde::Serialize;
use stagepost::store::Damage;

use crate::app::App;
use crate::failure::{Code, Failure};
use crate::json::Output;
use crate::ui::{self, Form, RED};

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {}

#[derive(Serialize)]
struct Body {
    sound: bool,
    checkpoints: u64,
    stubs: u64,
    events: u64,
    payloads: u64,
    snapshots: u64,
    bytes: u64,
    damage: Vec<DamageBody>,
}

#[derive(Serialize)]
struct DamageBody {
    run: Option<String>,
    checkpoint: Option<String>,
    artifact: Option<String>,
    what: String,
}

impl From<&Damage> for DamageBody {
    fn from(damage: &Damage) -> Self {
        Self {
            run: damage.run.as_ref().map(ToString::to_string),
            checkpoint: damage.checkpoint.as_ref().map(ToString::to_string),
            artifact: damage.artifact.clone(),
            what: damage.what.clone(),
        }
    }
}

pub(crate) fn run(app: &App, _: &VerifyArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let verified = project.verify()?;
    let audited = verified.audited;
    if app.ui.form == Form::Json {
        app.ui.json(&Output::new(Body {
            sound: verified.is_sound(),
            checkpoints: audited.checkpoints,
            stubs: audited.stubs,
            events: audited.events,
            payloads: audited.blobs,
            snapshots: verified.snapshots,
            bytes: audited.bytes,
            damage: verified.damage.iter().map(DamageBody::from).collect(),
        }))?;
        return if verified.is_sound() { Ok(()) } else { Err(Failure::told(Code::Integrity)) };
    }
    if app.ui.form == Form::Quiet {
        let damaged: BTreeSet<_> = verified.damage.iter().filter_map(|damage| damage.checkpoint).collect();
        damaged.iter().try_for_each(|id| app.ui.line(id.to_string()))?;
    } else {
        let lines = verified.damage.iter().map(|damage| format!("{RED}damaged{RED:#}  {}", line(damage)));
        lines.into_iter().try_for_each(|line| app.ui.line(line))?;
    }
    if !verified.is_sound() {
        let hint = if verified.damage.iter().all(|damage| damage.derived) {
            "`stagepost doctor --fix` makes the lookup tables again"
        } else {
            "everything that is not named above can still be read"
        };
        let what = match verified.damage.len() {
            1 => "one thing in the store is not as it was written".to_owned(),
            many => format!("{many} things in the store are not as they were written"),
        };
        return Err(Failure::new(Code::Integrity, what).hint(hint));
    }
    if app.ui.form == Form::Quiet {
        return Ok(());
    }
    app.ui.line(format!(
        "all as it was written: {}, {}, {} ({})",
        ui::count(number(audited.checkpoints), "checkpoint"),
        ui::count(number(verified.snapshots), "snapshot"),
        ui::count(number(audited.blobs), "payload"),
        ui::bytes(audited.bytes)
    ))
}

fn number(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn line(damage: &Damage) -> String {
    let mut place = Vec::new();
    place.extend(damage.run.as_ref().map(|run| format!("run {run}")));
    place.extend(damage.checkpoint.map(|id| format!("checkpoint {id}")));
    place.extend(damage.artifact.as_ref().map(|name| format!("artifact {}", ui::printable(name))));
    let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(", ")) };
    format!("{place}{}", ui::printable(&damage.what))
}
