//! One attempt at a step that is a program.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::definition::{Command, Effects, OnFailure, Step};
use super::record::{FILES, OUTPUT, RESULT, Record};
use super::redact::{Redactor, Secrets};
use super::runner::Runner;
use super::watch::Progress;
use super::{Error, Fingerprint, made_of};
use crate::bounded;
use crate::model::{ArtifactName, StepStatus, beyond_64_bits};
use crate::private;
use crate::process::{self, Captured, Ended, Finished, Limits, Output, Program};
use crate::project::{NewArtifact, Source};
use crate::store::nests_at_most;

/// A result that is longer is refused: results are for values, files are for the rest.
const LONGEST_RESULT: u64 = 64 << 20;

/// A result that nests deeper is refused: it goes into results of whole lists and into questions, and readers give up at 128.
const DEEPEST_RESULT: usize = 90;

/// What is said of a step that was stopped because it asked on the terminal.
const NO_TERMINAL: &str =
    "it waited for the terminal, which a step cannot have: a question is for an `ask` step";

/// The note of a step that was stopped in the middle and had been done all the same.
pub(super) const WAS_DONE: &str = "it was cut off; its check said that it had been done";

/// An attempt to make.
#[derive(Debug)]
pub(super) struct Attempt<'f> {
    pub(super) step: &'f Step,
    /// The name in the history: of the step, or of an item of it.
    pub(super) name: String,
    pub(super) number: u32,
    /// The same for every attempt at one doing of the step.
    pub(super) key: String,
    /// What it can see.
    pub(super) document: Value,
    pub(super) item: Option<Value>,
    pub(super) consumed: Vec<(String, u32)>,
    /// How many attempts failed before it.
    pub(super) failures: u32,
    pub(super) wait: Duration,
}

impl Attempt<'_> {
    /// Says whether the run goes on from how this ended although it failed.
    pub(super) fn goes_on_from(&self, done: &Done) -> bool {
        let tolerated = matches!(self.step.on_failure, OnFailure::Continue | OnFailure::GoTo(_));
        tolerated && self.is_failure_for_good(done)
    }

    /// Says whether the files are to go back to where the step began.
    pub(super) fn rolls_back_from(&self, done: &Done) -> bool {
        self.step.on_failure == OnFailure::Rollback && self.is_failure_for_good(done)
    }

    fn is_failure_for_good(&self, done: &Done) -> bool {
        let again = self.step.retry.again(self.failures + 1, done.record.exit) && !done.hopeless;
        done.status == StepStatus::Failed && !again
    }
}

/// How an attempt ended, ready to be kept.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) status: StepStatus,
    pub(super) record: Record,
    pub(super) result: Value,
    pub(super) artifacts: Vec<NewArtifact>,
    /// Another attempt would end the same way.
    pub(super) hopeless: bool,
}

impl Done {
    /// One that failed before it began.
    pub(super) fn refused(error: impl Into<String>) -> Self {
        let record = Record { error: Some(error.into()), ..Record::default() };
        Self {
            status: StepStatus::Failed,
            record,
            result: Value::Null,
            artifacts: Vec::new(),
            hopeless: true,
        }
    }
}

impl Done {
    /// Has an attempt fail whose result could not be handed on.
    pub(super) fn refuse_too_deep(&mut self) {
        if nests_at_most(&self.result, DEEPEST_RESULT) {
            return;
        }
        self.result = Value::Null;
        self.artifacts.retain(|artifact| artifact.name.as_str() != RESULT);
        self.status = StepStatus::Failed;
        self.record.error = Some(format!("its result is nested more than {DEEPEST_RESULT} deep"));
    }
}

/// The files by which values go in and come out.
struct Exchange {
    input: PathBuf,
    output: PathBuf,
}

impl Exchange {
    fn open(folder: &Path, attempt: &Attempt<'_>) -> Result<Self, Error> {
        let stem = attempt.name.replace('/', ".");
        let exchange = Self {
            input: folder.join(format!("{stem}.input.json")),
            output: folder.join(format!("{stem}.output.json")),
        };
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::File { doing: "write", path, source }
        };
        let document = serde_json::to_vec(&attempt.document).expect("a document has string keys only");
        // A program may have left anything there, also a folder, a pipe or a link.
        for path in [&exchange.input, &exchange.output] {
            remove(path).map_err(failed(path))?;
        }
        private::write(&exchange.input, document).map_err(failed(&exchange.input))?;
        Ok(exchange)
    }

    /// Reads what the program handed on. Nothing is null.
    fn result(&self) -> Result<Value, String> {
        let unreadable = |error: io::Error| format!("its result cannot be read: {error}");
        let file = match bounded::open(&self.output) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Value::Null),
            opened => opened.map_err(unreadable)?,
        };
        match file.metadata().map_err(unreadable)?.len() {
            0 => return Ok(Value::Null),
            length if length > LONGEST_RESULT => {
                return Err(format!("its result has {length} bytes, more than {LONGEST_RESULT}"));
            }
            _ => {}
        }
        let bytes = bounded::read(file, LONGEST_RESULT).map_err(unreadable)?;
        if let Some(number) = beyond_64_bits(&bytes) {
            return Err(format!(
                "its result has the whole number {number} of more than 64 bits, which would be rounded: write it as a text"
            ));
        }
        serde_json::from_slice(&bytes).map_err(|error| format!("its result is not valid JSON: {error}"))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let _ = remove(&self.input);
        let _ = remove(&self.output);
    }
}

/// Removes whatever is at a path, and follows no link.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// What a program printed, without secrets, in the order in which it came.
struct Printed<'s> {
    redactors: [Redactor<'s>; 2],
    kept: Captured,
}

impl<'s> Printed<'s> {
    fn new(secrets: &'s Secrets, keep: usize) -> Self {
        Self { redactors: [Redactor::new(secrets), Redactor::new(secrets)], kept: Captured::new(keep) }
    }

    fn push(&mut self, output: Output, bytes: &[u8]) -> Vec<u8> {
        let told = self.redactors[usize::from(output == Output::Err)].push(bytes);
        self.kept.push(&told);
        told
    }

    fn finish(&mut self) -> [(Output, Vec<u8>); 2] {
        let [out, err] = &mut self.redactors;
        let rest = [(Output::Out, out.finish()), (Output::Err, err.finish())];
        rest.iter().for_each(|(_, bytes)| self.kept.push(bytes));
        rest
    }
}

impl Runner<'_, '_> {
    /// Makes an attempt at a program. It is not kept yet.
    pub(super) fn run_program(&self, attempt: &Attempt<'_>, command: &Command) -> Result<Done, Error> {
        let step = attempt.step;
        let secrets = match self.secrets_of(step) {
            Ok(secrets) => secrets,
            Err(missing) => return Ok(Done::refused(missing)),
        };
        let root = &self.project.place().root;
        if let Some(cwd) = step.cwd.as_ref().filter(|cwd| !root.join(cwd).is_dir()) {
            return Ok(Done::refused(format!("its folder `{}` is not there", cwd.escape_debug())));
        }
        let fingerprint = made_of::fingerprint(step, root, attempt.item.as_ref());
        let exchange = Exchange::open(self.folder(), attempt)?;
        let program = self.program(attempt, command, &secrets, &exchange);
        let hidden = self.hidden();
        let mut printed = Printed::new(&hidden, self.drive.keep_output);
        let begun = Instant::now();
        let finished = self.follow(attempt, &program, &mut printed);
        let mut record = self.record(attempt, begun.elapsed(), fingerprint);
        let finished = match finished {
            Ok(finished) => finished,
            Err(error) => {
                record.error = Some(hidden.redact_text(&super::run::said(&error)));
                return Ok(Done { record, ..Done::refused("") });
            }
        };
        record.printed = Some(printed.kept.total()).filter(|total| *total > 0);
        let mut done = self.judge(attempt, &finished, record, &exchange, &hidden);
        if done.status == StepStatus::Completed
            && let Some(verify) = &step.verify
        {
            let program = self.program(attempt, verify, &secrets, &exchange);
            let verified = self.follow(attempt, &program, &mut printed);
            if let Some(error) = not_verified(verified, step.verify.as_ref()) {
                (done.status, done.record.error) = (StepStatus::Failed, Some(hidden.redact_text(&error)));
            }
        }
        let stopped = done.record.timed_out || done.record.signal.is_some();
        if stopped && step.effects == Effects::Once && done.status == StepStatus::Failed {
            self.judge_stopped(attempt, &mut done)?;
        }
        let kept = printed.kept.bytes();
        if !kept.is_empty() {
            done.artifacts.push(artifact(OUTPUT, Source::Bytes(kept)));
        }
        Ok(done)
    }

    /// Decides about a step that may be done once only and was stopped in the middle, as going on with the run would: its
    /// `verify` tells, and without one it is not tried again.
    fn judge_stopped(&self, attempt: &Attempt<'_>, done: &mut Done) -> Result<(), Error> {
        match &attempt.step.verify {
            None => done.hopeless = true,
            Some(verify) if self.is_verified(attempt, verify)? => {
                (done.status, done.record.error) = (StepStatus::Completed, None);
                done.record.notes.push(WAS_DONE.to_owned());
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Asks the command that tells whether a step was done. An error is a no.
    pub(super) fn is_verified(&self, attempt: &Attempt<'_>, verify: &Command) -> Result<bool, Error> {
        let Ok(secrets) = self.secrets_of(attempt.step) else { return Ok(false) };
        let exchange = Exchange::open(self.folder(), attempt)?;
        let program = self.program(attempt, verify, &secrets, &exchange);
        let hidden = self.hidden();
        let verified = self.follow(attempt, &program, &mut Printed::new(&hidden, 0));
        Ok(verified.is_ok_and(|finished| finished.ended.is_success()))
    }

    /// What must not be seen of any step: one may have written the secret of another where it can be read.
    pub(super) fn hidden(&self) -> Secrets {
        self.drive.hidden(self.flow.steps.iter().flat_map(|step| &step.secrets))
    }

    /// What comes from outside and is stored nowhere.
    pub(super) fn secrets_of(&self, step: &Step) -> Result<Vec<(OsString, OsString)>, String> {
        let find = |name: &String| match (self.drive.secrets)(name) {
            Some(value) => Ok((name.into(), value)),
            None => Err(format!("the secret `{name}` is not set in the environment")),
        };
        step.secrets.iter().map(find).collect()
    }

    fn program(
        &self,
        attempt: &Attempt<'_>,
        command: &Command,
        secrets: &[(OsString, OsString)],
        exchange: &Exchange,
    ) -> Program {
        let mut program = match command {
            Command::Shell(line) => Program::shell(line),
            Command::Argv(argv) => Program::new(argv),
        };
        let root = &self.project.place().root;
        program.folder = Some(attempt.step.cwd.as_ref().map_or_else(|| root.clone(), |cwd| root.join(cwd)));
        let known = self.flow.steps.iter().flat_map(|step| &step.secrets);
        // A secret goes to those who ask for it, not to their neighbours.
        program.unset = known.filter(|name| !attempt.step.secrets.contains(name)).map(Into::into).collect();
        program.set = self.environment(attempt, secrets);
        let exchanged = [("STAGEPOST_INPUT", &exchange.input), ("STAGEPOST_OUTPUT", &exchange.output)];
        program.set.extend(exchanged.map(|(name, path)| (name.into(), path.as_os_str().to_owned())));
        program
    }

    /// What every program of a step finds in its environment.
    pub(super) fn environment(
        &self,
        attempt: &Attempt<'_>,
        secrets: &[(OsString, OsString)],
    ) -> Vec<(OsString, OsString)> {
        let own: [(&str, OsString); 6] = [
            ("STAGEPOST_RUN", self.id.as_str().into()),
            ("STAGEPOST_STEP", attempt.name.as_str().into()),
            ("STAGEPOST_ATTEMPT", attempt.number.to_string().into()),
            ("STAGEPOST_KEY", attempt.key.as_str().into()),
            ("STAGEPOST_DRIVER", self.mark.as_str().into()),
            ("STAGEPOST_DRIVE", self.drive_mark.as_str().into()),
        ];
        let set = attempt.step.env.iter().map(|(name, value)| (name.into(), value.into()));
        set.chain(secrets.iter().cloned()).chain(own.map(|(name, value)| (name.into(), value))).collect()
    }

    /// Runs a program to its end, and has it seen and kept what it prints.
    fn follow(
        &self,
        attempt: &Attempt<'_>,
        program: &Program,
        printed: &mut Printed<'_>,
    ) -> Result<Finished, process::Error> {
        self.guard();
        let limits = Limits { timeout: attempt.step.timeout, grace: self.drive.grace, keep: 0, most: None };
        let step = attempt.name.as_str();
        let mut leader = None;
        let mut finished = process::run(
            program,
            &limits,
            &self.stop,
            &mut |identity| {
                // Without the line nothing is lost but the way to end it after a crash; the guard still knows the mark.
                let _ = self.begun.process(step, identity);
                leader = Some(identity.clone());
            },
            &mut |output, bytes| {
                let bytes = &printed.push(output, bytes)[..];
                self.drive.watch.saw(Progress::Printed { step, output, bytes });
            },
        );
        if let Some(leader) = leader.filter(|_| finished.is_ok()) {
            self.begun.over(&leader);
        }
        for (output, bytes) in printed.finish() {
            let bytes = &bytes[..];
            if !bytes.is_empty() {
                self.drive.watch.saw(Progress::Printed { step, output, bytes });
            }
        }
        if !finished.as_ref().is_ok_and(|finished| finished.ended.is_success())
            && let Err(source) = self.end_attempt(attempt)
        {
            finished = Err(process::Error::Follow { program: program.name(), source });
        }
        finished
    }

    /// Ends what an attempt that did not succeed left anywhere: it must not go on beside the next one.
    pub(super) fn end_attempt(&self, attempt: &Attempt<'_>) -> io::Result<()> {
        let marks = [
            self.drive_variable(),
            format!("STAGEPOST_STEP={}", attempt.name),
            format!("STAGEPOST_ATTEMPT={}", attempt.number),
        ];
        process::end_marked(&marks.each_ref().map(String::as_str), self.drive.grace).map(drop)
    }

    pub(super) fn record(&self, attempt: &Attempt<'_>, took: Duration, fingerprint: Fingerprint) -> Record {
        Record {
            took_us: took.as_micros().try_into().unwrap_or(u64::MAX),
            consumed: attempt.consumed.iter().cloned().collect(),
            fingerprint: Some(fingerprint),
            ..Record::default()
        }
    }

    /// Decides how an attempt ended, and takes in what it left.
    fn judge(
        &self,
        attempt: &Attempt<'_>,
        finished: &Finished,
        mut record: Record,
        exchange: &Exchange,
        hidden: &Secrets,
    ) -> Done {
        match finished.ended {
            Ended::Exit(code) => record.exit = Some(code),
            Ended::Signal(signal) | Ended::NoTerminal(signal) => record.signal = Some(signal),
            Ended::TimedOut => record.timed_out = true,
            _ => {}
        }
        if finished.left_behind {
            record.notes.push("it left processes behind, which were ended".to_owned());
        }
        let mut done = Done {
            status: StepStatus::Failed,
            record,
            result: Value::Null,
            artifacts: Vec::new(),
            hopeless: false,
        };
        if finished.ended == Ended::Cancelled {
            done.status = StepStatus::Cancelled;
            return done;
        }
        if !finished.ended.is_success() {
            done.record.error = Some(match (finished.ended, attempt.step.timeout) {
                (Ended::TimedOut, Some(limit)) => format!("it took longer than {limit:?}"),
                (Ended::NoTerminal(_), _) => NO_TERMINAL.to_owned(),
                (ended, _) => ended.to_string(),
            });
            return done;
        }
        let taken = exchange
            .result()
            .and_then(|result| Ok((hidden.redact_value(result), self.outputs(attempt.step, hidden)?)));
        match taken {
            Ok((result, left)) => {
                if !result.is_null() {
                    let json = serde_json::to_vec(&result).expect("a value has string keys only");
                    done.artifacts.push(artifact(RESULT, Source::Json(json)));
                }
                done.take(left);
                (done.status, done.result) = (StepStatus::Completed, result);
            }
            Err(error) => done.record.error = Some(hidden.redact_text(&error)),
        }
        done
    }

    /// Takes in the files that a step leaves. One with a secret in it is not taken: it would be stored for good.
    pub(super) fn outputs(&self, step: &Step, hidden: &Secrets) -> Result<Left, String> {
        let mut left = Left::default();
        for output in &step.outputs {
            let path = made_of::find_output(&self.project.place().root, &output.path)?;
            let failed = |error: io::Error| format!("its output cannot be read: {error}");
            let file = bounded::open(&path).map_err(failed)?;
            let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
            if !hidden.is_empty() && hidden.are_read_from(file).map_err(failed)? {
                return Err(format!("its output `{}` holds a secret", output.path.escape_debug()));
            }
            let name =
                ArtifactName::new(format!("{FILES}{}", output.name)).map_err(|error| error.to_string())?;
            left.modes.insert(output.name.to_string(), mode);
            left.artifacts.push(NewArtifact { name, source: Source::File(path) });
        }
        Ok(left)
    }
}

/// The files that a step left.
#[derive(Debug, Default)]
pub(super) struct Left {
    artifacts: Vec<NewArtifact>,
    modes: BTreeMap<String, u32>,
}

impl Done {
    /// Keeps the files that a step left.
    pub(super) fn take(&mut self, left: Left) {
        self.artifacts.extend(left.artifacts);
        self.record.modes = left.modes;
    }
}

pub(super) fn artifact(name: &str, source: Source) -> NewArtifact {
    NewArtifact { name: ArtifactName::new(name).expect("a name of ours is a name"), source }
}

fn not_verified(verified: Result<Finished, process::Error>, command: Option<&Command>) -> Option<String> {
    let shown = command.map(ToString::to_string).unwrap_or_default();
    match verified {
        Ok(finished) if finished.ended.is_success() => None,
        Ok(finished) => Some(format!("`{}` says it was not done: {}", shown.escape_debug(), finished.ended)),
        Err(error) => Some(super::run::said(&error)),
    }
}
