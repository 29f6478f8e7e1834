use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use stagepost::gate::Options;
use stagepost::reply::{self, Choice, Kind, Language, Question, Risk};

use crate::app::App;
use crate::failure::Failure;
use crate::input;
use crate::ui;

/// Say how replies would be understood: one reply per line in, one JSON object per line out
#[derive(Debug, clap::Args)]
pub(crate) struct ParseArgs {
    #[command(flatten)]
    how: Asked,
    /// What was asked, in words; an answer may repeat them
    #[arg(long, value_name = "TEXT")]
    question: Option<String>,
    /// What can be chosen: a file with a JSON list of labels or {id, label, description}, or one label per line
    #[arg(long, value_name = "FILE")]
    options: Option<PathBuf>,
    /// Read each line as JSON: {"text", "question"?, "options"?}
    #[arg(long)]
    jsonl: bool,
}

/// How a question is asked, as far as the reading of its answer depends on it.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Asked {
    /// The kind of question: confirm, choose, approve, input, confirm_intent, present_findings, select_route,
    /// refine_route or present_final
    #[arg(long, value_name = "KIND", default_value = "confirm", value_parser = kind)]
    pub(crate) kind: Kind,
    /// Several options may be chosen, where something is
    #[arg(long)]
    pub(crate) multiple: bool,
    /// How much is at stake: low (a hedged yes is a yes), normal, high (only the words of --phrase are a yes)
    #[arg(long, value_name = "RISK", default_value = "normal", value_parser = risk)]
    pub(crate) risk: Risk,
    /// The exact words that agree, such as "deploy 7f3a"; with them the risk is high
    #[arg(long, value_name = "WORDS")]
    pub(crate) phrase: Option<String>,
    /// Languages in which an answer counts: en, es, fr, de
    #[arg(long = "lang", value_name = "LANG,…", default_value = "en", value_delimiter = ',', value_parser = language)]
    pub(crate) languages: Vec<Language>,
}

/// A line of `--jsonl`; its words are borrowed where they hold no escapes.
#[derive(Deserialize)]
struct Line<'l> {
    #[serde(borrow)]
    text: Cow<'l, str>,
    #[serde(default, borrow, alias = "prompt")]
    question: Option<Cow<'l, str>>,
    #[serde(default)]
    options: Option<Options>,
}

pub(crate) fn run(_: &App, args: &ParseArgs) -> Result<(), Failure> {
    args.how.check()?;
    let options = args.options.as_deref().map(read_options).transpose()?.unwrap_or_default();
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        if input.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&bytes);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let reply = args.read(line.strip_suffix('\r').unwrap_or(line), number, &options.0)?;
        if let Err(error) = write(&mut out, &reply) {
            return super::written(Err(error));
        }
    }
    super::written(out.flush())
}

fn write(out: &mut impl Write, reply: &reply::Reply) -> io::Result<()> {
    serde_json::to_writer(&mut *out, reply)?;
    out.write_all(b"\n")
}

impl ParseArgs {
    fn read(&self, line: &str, number: u64, options: &[Choice]) -> Result<reply::Reply, Failure> {
        if !self.jsonl {
            return Ok(self.how.parse(line, self.question.as_deref(), options));
        }
        let line: Line<'_> = serde_json::from_str(line)
            .map_err(|error| Failure::usage(format!("line {number} is no reply in JSON: {error}")))?;
        let question = line.question.as_deref().or(self.question.as_deref());
        let options = line.options.as_ref().map_or(options, |options| &options.0);
        Ok(self.how.parse(&line.text, question, options))
    }
}

impl Asked {
    /// Refuses what does not go together.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.multiple && !matches!(self.kind, Kind::Choose | Kind::SelectRoute) {
            let why = format!("--multiple is for choosing, and nothing is chosen at `{}`", self.kind);
            return Err(Failure::usage(why).hint("take --kind choose with --option, or leave --multiple out"));
        }
        Ok(())
    }

    fn parse(&self, text: &str, question: Option<&str>, options: &[Choice]) -> reply::Reply {
        let question = Question {
            kind: self.kind,
            text: question,
            options,
            multiple: self.multiple,
            risk: self.risk,
            phrase: self.phrase.as_deref(),
            languages: &self.languages,
        };
        reply::parse(text, &question)
    }
}

/// Reads a file of options.
pub(crate) fn read_options(path: &Path) -> Result<Options, Failure> {
    let text = input::read_text(path, input::MOST)
        .map_err(|error| Failure::file("read the options in", path, error))?;
    Options::read(&text)
        .map_err(|error| Failure::usage(format!("{} is no list of options: {error}", path.display())))
}

fn kind(text: &str) -> Result<Kind, String> {
    let known = || Kind::all().map(Kind::name).collect::<Vec<_>>().join(", ");
    text.parse().map_err(|error| format!("{}; there are {}", ui::printable(&format!("{error}")), known()))
}

fn risk(text: &str) -> Result<Risk, String> {
    match text {
        "low" => Ok(Risk::Low),
        "normal" => Ok(Risk::Normal),
        "high" => Ok(Risk::High),
        _ => Err("a risk is low, normal or high".to_owned()),
    }
}

fn language(text: &str) -> Result<Language, String> {
    Language::from_code(text.trim()).ok_or_else(|| "there are en, es, fr and de".to_owned())
}
