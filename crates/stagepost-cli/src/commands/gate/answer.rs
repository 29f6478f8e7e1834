use std::io::Read;

use serde::Serialize;
use stagepost::gate::{Attempt, Gate, Gates, GoingBack, Heard, Message, Origin, Said};
use stagepost::model::Hash;
use stagepost::project::{Project, Wish};

use super::{origin, parse_origin, show};
use crate::app::App;
use crate::failure::{Code, Failure};
use crate::json::Output;
use crate::ui::{self, BOLD, Form};

/// Answer a gate in plain words
///
/// Ends with 0 if the words were understood, whatever they say, and with 6 if they were not: the gate waits on. An answer to a
/// gate that was answered before is refused, and says by whom it was answered.
#[derive(Debug, clap::Args)]
pub(crate) struct AnswerArgs {
    /// The gate: its name or the start of it, or `@` for the only one that waits
    #[arg(value_name = "GATE")]
    gate: String,
    /// The answer, with or without quotes; `-` reads it from standard input, words that begin with a dash follow `--`
    #[arg(value_name = "TEXT", required = true, allow_negative_numbers = true)]
    words: Vec<String>,
    /// Who answers, if not you
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Whose words they are: person (the default at a terminal), program (elsewhere) or policy
    #[arg(long, value_name = "ORIGIN", value_parser = parse_origin)]
    origin: Option<Origin>,
    /// The hash of what was shown; the answer is refused if that changed since
    #[arg(long, value_name = "HASH")]
    shown: Option<Hash>,
}

/// Withdraw a question
#[derive(Debug, clap::Args)]
pub(crate) struct CancelArgs {
    /// The gate: its name or the start of it, or `@` for the only one that waits
    #[arg(value_name = "GATE")]
    gate: String,
    /// Why, in words
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    why: String,
}

/// Go back to a gate: it waits again, and later answers of its run hold no more
#[derive(Debug, clap::Args)]
pub(crate) struct ReopenArgs {
    /// The gate: its name or the start of it
    #[arg(value_name = "GATE")]
    gate: String,
    /// Why, in words
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    why: String,
    /// Also put the files back as they were when it was asked
    #[arg(long)]
    files: bool,
    /// Only say what would become void
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Unclear<'a> {
    gate: &'a Gate,
    unclear: &'a Attempt,
}

pub(crate) fn answer(app: &App, args: &AnswerArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let gates = Gates::of(&project);
    let gate = gates.resolve(&args.gate)?;
    let said =
        Said { words: args.words()?, by: args.by.clone(), origin: origin(args.origin), seen: args.shown };
    match gates.answer(&gate.id, &said)? {
        Heard::Answered(gate) => show::result(app, &gate),
        Heard::Unclear(gate, attempt) => {
            match app.ui.form {
                Form::Json => app.ui.json(&Output::new(Unclear { gate: &gate, unclear: &attempt }))?,
                _ => app.ui.warn(ui::printable(&Message::of(&gate).misunderstood.unwrap_or_default())),
            }
            Err(Failure::told(Code::Waiting))
        }
    }
}

impl AnswerArgs {
    fn words(&self) -> Result<String, Failure> {
        if self.words != ["-"] {
            return Ok(self.words.join(" "));
        }
        let mut words = Vec::new();
        std::io::stdin().lock().take(1 << 20).read_to_end(&mut words)?;
        Ok(String::from_utf8_lossy(&words).trim_end_matches(['\n', '\r']).to_owned())
    }
}

pub(crate) fn cancel(app: &App, args: &CancelArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let gates = Gates::of(&project);
    let gate = gates.resolve(&args.gate)?;
    show::result(app, &gates.cancel(&gate.id, &args.why, origin(None))?)
}

pub(crate) fn reopen(app: &App, args: &ReopenArgs) -> Result<(), Failure> {
    let project = app.open()?;
    let gates = Gates::of(&project);
    let gate = gates.resolve(&args.gate)?;
    let plan = if args.dry_run {
        gates.plan_back(&gate.id)?
    } else {
        // A gate that waits is refused below, before any file is touched.
        if args.files && !gate.is_waiting() {
            put_back(app, &project, &gate)?;
        }
        gates.reopen(&gate.id, &args.why)?
    };
    told(app, &plan, args.dry_run)
}

/// Puts the files back as they were when the gate was asked; what is there now is saved first.
fn put_back(app: &App, project: &Project, gate: &Gate) -> Result<(), Failure> {
    let Some(files) = gate.files else {
        return Err(Failure::new(Code::NotFound, format!("gate `{}` was asked without the files", gate.id))
            .hint("`stagepost gate ask --files` keeps them with the question"));
    };
    let target = project.resolve(&files.to_string())?;
    project.restore(&target, &Wish::default())?;
    app.ui.say(format!(
        "put the files back as they were when {} was asked; `stagepost undo` undoes it",
        gate.id
    ));
    Ok(())
}

fn told(app: &App, plan: &GoingBack, dry_run: bool) -> Result<(), Failure> {
    match app.ui.form {
        Form::Json => return app.ui.json(&Output::new(plan)),
        Form::Quiet => return plan.voids.iter().try_for_each(|gate| app.ui.line(gate.id.to_string())),
        Form::Text => {}
    }
    let (waits, void) =
        if dry_run { ("would wait again", "would be void") } else { ("waits again", "is void") };
    app.ui.line(format!("gate {BOLD}{}{BOLD:#} {waits}", plan.gate.id))?;
    show::rows(&plan.voids).iter().try_for_each(|row| app.ui.line(format!("{void}: {row}")))
}
