use stagepost::model::{Checkpoint, CheckpointId, Label, RunId, Timestamp};
use stagepost::project::{Clock, Project, SystemClock, parse_duration};
use stagepost::store::Query;

use crate::app::App;
use crate::failure::{Code, Failure};
use crate::json::{DamagedRecord, LogOutput, SCHEMA};
use crate::ui::{self, BOLD, CYAN, DIM, Form};

#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// Only those of this run, whatever they were made for
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Only those with this label
    #[arg(long, value_name = "NAME[=VALUE]")]
    label: Option<String>,
    /// Also those of other work trees, and those made before a restore, for safety
    #[arg(long)]
    all: bool,
    /// Only those not older than this, such as 2d
    #[arg(long, value_name = "DURATION")]
    since: Option<String>,
    /// At most so many; 0 for no limit
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    limit: usize,
}

pub(crate) fn run(app: &App, args: &LogArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let (checkpoints, damaged) = args.list(&project)?;
    let pinned = pinned(&project, &checkpoints)?;
    match app.ui.form {
        Form::Json => {
            let (checkpoints, pinned, damaged) = (&checkpoints[..], &pinned[..], &damaged[..]);
            app.ui.json(&LogOutput { schema: SCHEMA, checkpoints, pinned, damaged })?
        }
        Form::Quiet => checkpoints.iter().try_for_each(|one| app.ui.line(one.id.to_string()))?,
        Form::Text => text(app, &project, &checkpoints, &pinned)?,
    }
    if damaged.is_empty() {
        return Ok(());
    }
    for one in &damaged {
        app.ui.warn(format!("not listed, because it is damaged: {}", ui::printable(&one.what)));
    }
    app.ui.say("`stagepost verify` names everything that is damaged");
    Err(Failure::told(Code::Integrity))
}

impl LogArgs {
    fn list(&self, project: &Project) -> Result<(Vec<Checkpoint>, Vec<DamagedRecord>), Failure> {
        let run = self.run.as_ref().map(RunId::new).transpose()?;
        if let Some(run) = &run {
            project.run(run)?;
        }
        let wrong =
            |text: &String| Failure::usage(format!("`{}` is not a duration such as 2d", text.escape_debug()));
        let since =
            self.since.as_ref().map(|text| parse_duration(text).ok_or_else(|| wrong(text))).transpose()?;
        // Further back than times go is no bound.
        let since = since.and_then(|since| {
            let micros = i64::try_from(since.as_micros()).ok()?;
            Timestamp::from_micros(SystemClock.now().as_micros().saturating_sub(micros)).ok()
        });
        let wanted = |one: &Checkpoint| self.all || self.run.is_some() || project.is_of_here(one);
        let label = self.label.as_ref().map(|label| label.parse::<Label>()).transpose()?;
        let limit = if self.limit == 0 { usize::MAX } else { self.limit };
        let (mut found, mut damaged, mut before) = (Vec::new(), Vec::new(), None);
        while found.len() < limit {
            let query = Query {
                run: run.clone(),
                label: label.clone(),
                since,
                before,
                limit: Some(limit.min(1000)),
                ..Query::default()
            };
            let page = project.store().survey(&query)?;
            let Some(last) = page.last else { break };
            before = Some(last);
            found.extend(page.sound.into_iter().map(|one| one.checkpoint).filter(wanted));
            let named = page.damaged.into_iter().map(|(position, what)| DamagedRecord { position, what });
            damaged.extend(named);
        }
        found.truncate(limit);
        Ok((found, damaged))
    }
}

/// The checkpoints of a list that are pinned.
pub(crate) fn pinned(project: &Project, listed: &[Checkpoint]) -> Result<Vec<CheckpointId>, Failure> {
    let pinned = project.pinned()?;
    Ok(listed.iter().map(|one| one.id).filter(|id| pinned.contains(id)).collect())
}

fn text(
    app: &App,
    project: &Project,
    checkpoints: &[Checkpoint],
    pinned: &[CheckpointId],
) -> Result<(), Failure> {
    if checkpoints.is_empty() {
        app.ui.say("nothing to show");
    }
    let now = SystemClock.now();
    let width = |pick: fn(&Checkpoint) -> String| {
        checkpoints.iter().map(|one| pick(one).chars().count()).max().unwrap_or(0)
    };
    let place = |one: &Checkpoint| format!("{}/{}", ui::printable(one.run.as_str()), one.seq);
    let (places, kinds) = (width(place), width(|one| ui::headline(&one.content.kind.to_string(), 32)));
    for one in checkpoints {
        let id = project.short_id(&one.id)?;
        let (place, kind, when) =
            (place(one), ui::headline(&one.content.kind.to_string(), 32), ui::ago(one.created_at, now));
        let labels = one.content.labels.iter().map(ToString::to_string);
        let marks = labels.chain(pinned.contains(&one.id).then(|| "pinned".to_owned()));
        let what = Some(ui::headline(&one.content.description, 60)).filter(|what| !what.is_empty());
        let words: Vec<String> =
            what.into_iter().chain(marks.map(|mark| format!("{CYAN}[{mark}]{CYAN:#}"))).collect();
        let line = format!(
            "{BOLD}{id}{BOLD:#}  {DIM}{when:<14}{DIM:#}  {place:<places$}  {kind:<kinds$}  {}",
            words.join(" ")
        );
        app.ui.line(line.trim_end())?;
    }
    Ok(())
}
