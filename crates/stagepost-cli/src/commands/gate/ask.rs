use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use stagepost::gate::{
    self, Ask, Asker, Bounds, Gate, GateId, Gates, Lines, Message, Options, Origin, Outcome, Pending,
    Program, Prompt,
};
use stagepost::model::{RunId, RunKind};
use stagepost::reply::Choice;

use super::parse::{Asked, read_options};
use super::{end, menu, parse_duration, show};
use crate::app::App;
use crate::failure::{Code, Failure};
use crate::input;
use crate::ui::Form;

/// Ask a question: it is stored first, then asked here if a person is at a terminal
///
/// Ends with 0 only if it was agreed to or something was chosen, with 6 while it waits, and with 7 for every other
/// answer. Asked again under the same --id it finds the answer, unless what is shown changed: then it asks again.
#[derive(Debug, clap::Args)]
pub(crate) struct AskArgs {
    /// The question, in words
    question: Option<String>,
    #[command(flatten)]
    how: Asked,
    /// What leads up to the question
    #[arg(long, short, value_name = "TEXT", default_value = "", hide_default_value = true)]
    message: String,
    /// What it is about: a JSON file, `-` for standard input
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Something that can be chosen
    #[arg(long = "option", value_name = "[ID=]LABEL")]
    option: Vec<String>,
    /// What can be chosen: a file with a JSON list of labels or {id, label, description}, or one label per line
    #[arg(long, value_name = "FILE")]
    options: Option<PathBuf>,
    /// What to call the gate
    #[arg(long, value_name = "GATE")]
    id: Option<String>,
    /// The run that waits for it
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// How long an answer is waited for, such as 2h; then it counts as --on-expiry
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    expires: Option<Duration>,
    /// What it counts as when nobody answered in time; never a yes
    #[arg(long, value_name = "reject|cancel|back", default_value = "reject", value_parser = outcome)]
    on_expiry: Outcome,
    /// How often it is asked again here before it stays waiting
    #[arg(long, value_name = "N", default_value_t = 3)]
    tries: u32,
    /// Keep the files as they are now with the question, so that going back can put them back
    #[arg(long)]
    files: bool,
    #[command(flatten)]
    who: Who,
    /// If nobody answered here, wait for an answer from elsewhere: for so long, or without end
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, value_parser = parse_duration)]
    wait: Option<Option<Duration>>,
}

/// Whoever is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Who {
    /// Do not ask here, even at a terminal
    #[arg(long)]
    pending: bool,
    /// Read answers from standard input though it is no terminal, one per line
    #[arg(long, conflicts_with = "pending")]
    stdin: bool,
    /// Ask through a program: it reads the question as JSON and prints the answer in words
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["pending", "stdin"])]
    via: Option<String>,
    /// How long a program may take that asks or works, such as 90s; then it is ended, and what it was to do is not done
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
}

pub(crate) fn run(app: &App, args: AskArgs) -> Result<(), Failure> {
    let project = app.open_to_write()?;
    let gates = Gates::of(&project);
    let reads_data = args.data.as_deref() == Some(Path::new("-"));
    let (wait, mut asker) = (args.wait, args.who.asker(app, !reads_data));
    let mut gate = gates.ask(args.into_ask()?)?;
    if gate.is_waiting() {
        gate = heard(app, gates.converse(gate.clone(), &mut *asker), &gate)?;
    }
    if let (true, Some(patience)) = (gate.is_waiting(), wait) {
        app.ui.say(show::outcome(&gate));
        gate = gates.wait(&gate.id, patience)?;
    }
    show::result(app, &gate)?;
    end(&gate)
}

/// Someone who leaves with Ctrl-C has said nothing: the gate waits on.
fn heard(app: &App, answered: Result<Gate, gate::Error>, gate: &Gate) -> Result<Gate, Failure> {
    match answered {
        Err(gate::Error::Asker { source, .. }) if source.kind() == io::ErrorKind::Interrupted => {
            app.ui.say(show::outcome(gate));
            Err(Failure::told(Code::Interrupted))
        }
        other => Ok(other?),
    }
}

impl Who {
    /// Whoever can be asked here. Without a terminal that is nobody: an answer is never made up.
    pub(super) fn asker(&self, app: &App, has_input: bool) -> Box<dyn Asker> {
        if let Some(command) = &self.via {
            let argv = ["sh", "-c", command].map(str::to_owned).to_vec();
            return Box::new(Program { argv, origin: Origin::Program, bounds: self.bounds() });
        }
        if self.stdin && has_input {
            let origin = super::origin(None);
            return Box::new(Lines { input: io::stdin().lock(), show: quietly, origin });
        }
        let person = io::stdin().is_terminal() && io::stderr().is_terminal() && app.ui.form == Form::Text;
        if person && has_input && !self.pending && menu::is_comfortable() {
            return Box::new(menu::Keys);
        }
        if person && has_input && !self.pending {
            return Box::new(Lines { input: io::stdin().lock(), show: aloud, origin: Origin::Person });
        }
        Box::new(Pending)
    }
}

impl Who {
    /// How programs are run: in time, and with what they say beside their answer on our standard error.
    pub(super) fn bounds(&self) -> Bounds {
        let told = |bytes: &[u8]| {
            // Whoever closed our standard error does not want to know.
            let _ = io::stderr().lock().write_all(bytes);
        };
        Bounds { timeout: self.timeout, told }
    }
}

impl AskArgs {
    fn into_ask(self) -> Result<Ask, Failure> {
        self.how.check()?;
        let mut prompt = Prompt::new(self.how.kind);
        prompt.message = self.message;
        prompt.question = self.question.unwrap_or_default();
        prompt.data = self.data.as_deref().map(read_data).transpose()?.unwrap_or_default();
        prompt.options = self.options.as_deref().map(read_options).transpose()?.unwrap_or_default().0;
        prompt.options.extend(self.option.iter().map(|text| choice(text)));
        prompt.options = Options::of(prompt.options).0;
        prompt.multiple = self.how.multiple;
        prompt.risk = self.how.risk;
        prompt.phrase = self.how.phrase;
        prompt.languages = self.how.languages;
        prompt.tries = self.tries;
        Ok(Ask {
            id: self.id.map(GateId::new).transpose()?,
            run: self.run.map(|run| RunId::new(run).map(|run| (run, RunKind::Adhoc))).transpose()?,
            prompt,
            expires: self.expires.map(|after| (after, self.on_expiry)),
            files: self.files,
        })
    }
}

/// What was typed before a person could read the question is no answer to it.
pub(super) fn forget_what_was_typed() {
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// Shows the message to a person and where to type.
pub(super) fn aloud(_: &Gate, message: &Message) -> io::Result<()> {
    forget_what_was_typed();
    let mut out = anstream::stderr().lock();
    show::message(&mut out, message)?;
    write!(out, "> ").and_then(|()| out.flush())
}

/// Nobody looks at the message, but whoever reads the log may want to know what was not understood.
fn quietly(gate: &Gate, message: &Message) -> io::Result<()> {
    match message.misunderstood.as_ref().filter(|_| !gate.unclear.is_empty()) {
        Some(misunderstood) => writeln!(io::stderr().lock(), "{}", crate::ui::printable(misunderstood)),
        None => Ok(()),
    }
}

fn choice(text: &str) -> Choice {
    match text.split_once('=') {
        Some((id, label)) if !id.is_empty() && !id.contains(char::is_whitespace) => Choice::new(id, label),
        _ => Choice::new(text, text),
    }
}

/// Reads JSON from a file or standard input.
pub(super) fn read_data(path: &Path) -> Result<serde_json::Value, Failure> {
    let bytes = input::read(path, input::MOST).map_err(|error| Failure::file("read", path, error))?;
    input::json(&bytes)
        .map_err(|error| Failure::usage(format!("{} cannot be taken as JSON: {error}", path.display())))
}

fn outcome(text: &str) -> Result<Outcome, String> {
    match text {
        "reject" => Ok(Outcome::Reject),
        "cancel" => Ok(Outcome::Cancel),
        "back" => Ok(Outcome::Back),
        _ => Err("nobody answering counts as reject, cancel or back, and never as a yes".to_owned()),
    }
}
