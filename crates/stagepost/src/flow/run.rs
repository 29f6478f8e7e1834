//! Steps in code: each is done once, whatever happens to the program.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::attempts::{self, Attempts};
use super::definition::Retry;
use super::ended::Ended;
use super::happened::{End, Happened};
use super::hold::Hold;
use super::memory::{Ahead, Kept, Memory, check_in_code};
use super::record::{RESULT, Record};
use super::{Error, prune};
use crate::model::{ArtifactName, Kind, Run as RunRecord, RunId, RunKind, StepStatus};
use crate::project::{NewArtifact, Project, Save, Source, WrittenJson};
use crate::store::{Batch, Expect, NewEntry};

/// How a run in code is driven.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What the run is given to begin with; kept with it.
    pub input: Value,
    /// So many checkpoints are kept when the run is finished; without a number, all.
    pub keep_last: Option<usize>,
}

/// How a step in code is done.
#[derive(Debug, Clone, Default)]
pub struct StepOptions {
    /// How often it is tried.
    pub retry: Retry,
    /// How long an attempt may take. Code cannot be stopped from outside: a result that comes later is refused.
    pub timeout: Option<Duration>,
}

/// A run that this program drives.
///
/// Threads may share it; steps that they end at the same time share the cost of being made durable.
///
/// ```
/// # let home = stagepost_testutil::TempProject::git();
/// # let project = &home.open();
/// use stagepost::flow::{Options, Run};
/// use stagepost::model::RunId;
///
/// let id = RunId::new("nightly-1")?;
/// let run = Run::open(project, &id, Options::default())?;
/// let words: Vec<String> = run.step("collect", || Ok::<_, std::io::Error>(vec!["a".into(), "b".into()]))?;
/// let count: usize = run.step("count", || Ok::<_, std::io::Error>(words.len()))?;
/// run.finish()?;
///
/// // Another program that opens the same run gets what was recorded.
/// let again = Run::open(project, &id, Options::default())?;
/// let recorded = again.step("count", || -> Result<usize, std::io::Error> { unreachable!("it was done") })?;
/// assert_eq!(recorded, count);
/// # Ok::<(), stagepost::flow::Error>(())
/// ```
#[derive(Debug)]
pub struct Run<'p> {
    project: &'p Project,
    id: RunId,
    hold: Hold,
    begun: Attempts,
    options: Options,
    memory: Mutex<Memory>,
    ahead: Mutex<Ahead>,
}

impl<'p> Run<'p> {
    /// Starts a run, which must be new.
    pub fn start(project: &'p Project, id: &RunId, options: Options) -> Result<Self, Error> {
        if project.store().run(id)?.is_some() {
            return Err(Error::Exists { run: id.clone() });
        }
        Self::open(project, id, options)
    }

    /// Goes on with a run, or starts it. Another process must not be driving it.
    pub fn open(project: &'p Project, id: &RunId, options: Options) -> Result<Self, Error> {
        // Before anything is made on its behalf: it may be somebody else's.
        match project.store().run(id)? {
            Some(_) => check_in_code(project, id)?,
            None => id.check_new()?,
        }
        let hold = Hold::take(project, id)?;
        let begun = Attempts::open(hold.folder()).map_err(|source| Error::File {
            doing: "write to",
            path: hold.folder().to_owned(),
            source,
        })?;
        let memory = match project.store().run(id)? {
            Some(run) => Memory::load(project, &run, attempts::read(hold.folder()), &begun)?,
            None => {
                begin(project, id, &options)?;
                Memory::default()
            }
        };
        let (memory, ahead) = (Mutex::new(memory), Mutex::default());
        Ok(Self { project, id: id.clone(), hold, begun, options, memory, ahead })
    }

    /// Returns the name of the run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Does a step, or returns its recorded result. When this returns, the result is durable.
    pub fn step<T, E>(&self, name: &str, mut work: impl FnMut() -> Result<T, E>) -> Result<T, Error>
    where
        T: Serialize + DeserializeOwned,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.step_with(name, &StepOptions::default(), |_| work())
    }

    /// As [`Run::step`], with retries and a time limit. The work is told which attempt it is.
    pub fn step_with<T, E>(
        &self,
        name: &str,
        options: &StepOptions,
        mut work: impl FnMut(u32) -> Result<T, E>,
    ) -> Result<T, Error>
    where
        T: Serialize + DeserializeOwned,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        check_name(name)?;
        let known = || self.memory().known.get(name).copied().unwrap_or_default();
        if let Some(result) = known().result {
            return self.recorded(name, result);
        }
        let _running = Running::of(self, name)?;
        // Another thread may have done it between the two looks.
        let known = known();
        if let Some(result) = known.result {
            return self.recorded(name, result);
        }
        if let Some(checkpoint) = known.gone {
            // It was done: to do it again is not what was asked for.
            return Err(Error::Pruned { step: name.to_owned(), checkpoint });
        }
        let (mut attempt, mut failures) = (known.attempt, known.failures);
        loop {
            attempt += 1;
            let failed = match self.attempt(name, attempt, options.timeout, &mut work)? {
                Ok(value) => return Ok(value),
                Err(failed) => failed,
            };
            failures += 1;
            if !options.retry.again(failures, None) {
                return Err(Error::Step { step: name.to_owned(), attempt, source: failed });
            }
            std::thread::sleep(options.retry.wait_after(failures));
        }
    }

    /// Names steps below a name: `run.within("build").step("test", …)` is the step `build/test`.
    pub fn within<'r>(&'r self, name: &str) -> Within<'r, 'p> {
        Within { run: self, prefix: format!("{name}/") }
    }

    /// Does a step that consists of steps. They are told apart by its name, and once it is done they are not looked
    /// at any more.
    pub fn nested<T, E>(
        &self,
        name: &str,
        mut work: impl FnMut(&Within<'_, 'p>) -> Result<T, E>,
    ) -> Result<T, Error>
    where
        T: Serialize + DeserializeOwned,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let inner = self.within(name);
        self.step(name, || work(&inner))
    }

    /// Ends the run as completed.
    pub fn finish(self) -> Result<(), Error> {
        self.end(End::Completed, None)
    }

    /// Ends the run as failed. It can be opened again and goes on with the steps that are missing.
    pub fn fail(self, why: &str) -> Result<(), Error> {
        self.end(End::Failed, Some(why.to_owned()))
    }

    fn end(self, status: End, why: Option<String>) -> Result<(), Error> {
        if !self.memory().over {
            prune::end(self.project, &self.id, status, why, self.options.keep_last)?;
        }
        self.hold.tidy();
        Ok(())
    }

    fn recorded<T: DeserializeOwned>(&self, name: &str, result: Kept) -> Result<T, Error> {
        let bytes = {
            let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
            ahead.load(self.project.store(), result, |from| self.memory().next_results(from))?
        };
        serde_json::from_slice(&bytes).map_err(|source| Error::OtherShape { step: name.to_owned(), source })
    }

    /// Does the work once, and writes down how it ended. The inner error is the work's own.
    fn attempt<T: Serialize, E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        &self,
        name: &str,
        attempt: u32,
        limit: Option<Duration>,
        work: &mut impl FnMut(u32) -> Result<T, E>,
    ) -> Result<Result<T, Box<dyn std::error::Error + Send + Sync>>, Error> {
        self.reopen()?;
        let path = || self.hold.folder().to_owned();
        self.begun.start(name, attempt).map_err(|source| Error::File {
            doing: "write to",
            path: path(),
            source,
        })?;
        let begun = Instant::now();
        let done = work(attempt).map_err(Into::into);
        let took = begun.elapsed();
        let over = limit.filter(|limit| took > *limit);
        let done = match over {
            Some(limit) => Err(Error::TookTooLong { step: name.to_owned(), limit }.into()),
            None => done,
        };
        let mut record =
            Record { took_us: took.as_micros().try_into().unwrap_or(u64::MAX), ..Record::default() };
        match done {
            Ok(value) => {
                let json = WrittenJson::of(&value);
                let json = json.map_err(|source| Error::Unkeepable { step: name.to_owned(), source })?;
                self.save(name, attempt, StepStatus::Completed, &record, Some(json))?;
                Ok(Ok(value))
            }
            Err(failed) => {
                record.timed_out = over.is_some();
                record.error = Some(said(&*failed));
                self.save(name, attempt, StepStatus::Failed, &record, None)?;
                Ok(Err(failed))
            }
        }
    }

    /// A run that had ended goes on: someone asks for a step that it does not have.
    fn reopen(&self) -> Result<(), Error> {
        let mut memory = self.memory();
        if std::mem::take(&mut memory.over) {
            let who = self.project.context().who.clone();
            let began = Happened::Began { definition: None, input: None, who };
            let event = began.event(&self.id, self.project.context().clock.now());
            let entries = vec![NewEntry::Event(event)];
            self.project.store().write(Batch { entries, ..Batch::default() })?;
        }
        Ok(())
    }

    fn save(
        &self,
        name: &str,
        attempt: u32,
        status: StepStatus,
        record: &Record,
        result: Option<WrittenJson>,
    ) -> Result<(), Error> {
        let artifacts = result.map(|json| NewArtifact {
            name: ArtifactName::new(RESULT).expect("`result` is a name"),
            source: Source::Written(json),
        });
        let saved = self.project.save(Save {
            run: Some((self.id.clone(), RunKind::Flow)),
            begun: true,
            kind: Some(Kind::Step { step: name.to_owned(), status, attempt }),
            metadata: record.metadata(),
            artifacts: artifacts.into_iter().collect(),
            ..Save::default()
        })?;
        if let Some(ended) = Ended::of(&saved) {
            self.begun.ended(&ended);
            self.memory().ended(ended);
        }
        Ok(())
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes down that a run begins.
fn begin(project: &Project, id: &RunId, options: &Options) -> Result<(), Error> {
    let now = project.context().clock.now();
    let input = Some(options.input.clone()).filter(|input| !input.is_null());
    let began = Happened::Began { definition: None, input, who: project.context().who.clone() };
    let entries = vec![
        NewEntry::Run(RunRecord::new(id.clone(), RunKind::Flow, now)),
        NewEntry::Event(began.event(id, now)),
    ];
    let expect = vec![Expect::NewRun(id.clone())];
    project.store().write(Batch { entries, expect, ..Batch::default() })?;
    Ok(())
}

/// A step that runs in this program, until it is dropped.
struct Running<'r, 'p> {
    run: &'r Run<'p>,
    name: &'r str,
}

impl<'r, 'p> Running<'r, 'p> {
    fn of(run: &'r Run<'p>, name: &'r str) -> Result<Self, Error> {
        if !run.memory().running.insert(name.to_owned()) {
            return Err(Error::Running { step: name.to_owned() });
        }
        Ok(Self { run, name })
    }
}

impl Drop for Running<'_, '_> {
    fn drop(&mut self) {
        self.run.memory().running.remove(self.name);
    }
}

/// Names steps below a name.
#[derive(Debug)]
pub struct Within<'r, 'p> {
    run: &'r Run<'p>,
    prefix: String,
}

impl Within<'_, '_> {
    /// As [`Run::step`], below the name.
    pub fn step<T, E>(&self, name: &str, work: impl FnMut() -> Result<T, E>) -> Result<T, Error>
    where
        T: Serialize + DeserializeOwned,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.run.step(&format!("{}{name}", self.prefix), work)
    }

    /// As [`Run::step_with`], below the name.
    pub fn step_with<T, E>(
        &self,
        name: &str,
        options: &StepOptions,
        work: impl FnMut(u32) -> Result<T, E>,
    ) -> Result<T, Error>
    where
        T: Serialize + DeserializeOwned,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.run.step_with(&format!("{}{name}", self.prefix), options, work)
    }

    /// Names steps below a further name.
    pub fn within(&self, name: &str) -> Self {
        Self { run: self.run, prefix: format!("{}{name}/", self.prefix) }
    }
}

/// An error with all its causes, once.
pub(super) fn said(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// A name may become a line of a file and a column on a terminal.
pub(super) fn check_name(step: &str) -> Result<(), Error> {
    let why = if step.is_empty() || step.split('/').any(str::is_empty) {
        "a part of it is empty"
    } else if step.len() > 255 {
        "it is longer than 255 bytes"
    } else if step.chars().any(char::is_control) {
        "it has control characters"
    } else {
        return Ok(());
    };
    Err(Error::StepName { step: step.to_owned(), why })
}
