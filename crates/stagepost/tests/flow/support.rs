//! A project, a flow in it, and someone who watches.

use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::Mutex;
use std::time::Duration;

use stagepost::flow::{Drive, Error, Flows, Outcome, Plan, Progress, Resume, RunState, Source, Watch};
use stagepost::model::RunId;
use stagepost::process::Cancel;
use stagepost::project::Project;
use stagepost_testutil::{TempProject, run_id};

/// A project with one run of a flow.
pub(crate) struct Story {
    pub(crate) home: TempProject,
    pub(crate) project: Project,
    pub(crate) id: RunId,
    pub(crate) watch: Lines,
    pub(crate) secrets: HashMap<String, String>,
    pub(crate) jobs: usize,
    pub(crate) cancel: Cancel,
}

impl Story {
    pub(crate) fn new() -> Self {
        let home = TempProject::git();
        let project = home.open();
        let cancel = Cancel::new().unwrap();
        let (watch, secrets) = (Lines::default(), HashMap::new());
        Self { home, project, id: run_id("r"), watch, secrets, jobs: 1, cancel }
    }

    pub(crate) fn source(text: &str) -> Source {
        Source::read(text, None).unwrap_or_else(|error| panic!("{error:?}"))
    }

    fn with_drive<T>(&self, work: impl FnOnce(Drive<'_>) -> T) -> T {
        let secrets = |name: &str| self.secrets.get(name).map(OsString::from);
        let mut drive = Drive::new(self.cancel.clone());
        (drive.jobs, drive.secrets, drive.watch) = (self.jobs, &secrets, &self.watch);
        drive.grace = Duration::from_millis(300);
        work(drive)
    }

    /// Runs a flow that is new.
    pub(crate) fn start(&self, text: &str) -> Result<Outcome, Error> {
        self.with_drive(|drive| Flows::of(&self.project).start(&self.id, Self::source(text), None, drive))
    }

    /// What going on would do.
    pub(crate) fn plan(&self) -> Plan {
        Flows::of(&self.project).plan(&self.id, &Resume::default()).unwrap()
    }

    /// Goes on with the run.
    pub(crate) fn resume(&self, resume: Resume) -> Result<Outcome, Error> {
        self.with_drive(|drive| Flows::of(&self.project).resume(&self.id, resume, drive))
    }

    /// Goes on with the run, with another text of the flow.
    pub(crate) fn resume_as(&self, text: &str, resume: Resume) -> Result<Outcome, Error> {
        self.resume(Resume { source: Some(Self::source(text)), ..resume })
    }

    /// Drives the run until something goes on, and not a moment longer, as if the driver were killed there.
    pub(crate) fn killed_at(&self, line: &str, work: impl FnOnce(&Self) -> Result<Outcome, Error>) {
        *self.watch.1.lock().unwrap() = Some(line.to_owned());
        let driven = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(self)));
        assert!(driven.is_err(), "it never got to `{line}`: {driven:?}");
    }

    pub(crate) fn state(&self) -> RunState {
        RunState::load(&self.project, &self.id).unwrap()
    }

    /// Lines of a file of the project, joined by a blank.
    pub(crate) fn lines(&self, path: &str) -> String {
        self.home.read(path).unwrap_or_default().lines().collect::<Vec<_>>().join(" ")
    }

    /// What is kept of what a step printed.
    pub(crate) fn output(&self, step: &str) -> Vec<u8> {
        let state = self.state();
        let attempt = state.step(step).unwrap().last().unwrap();
        let kept = attempt.artifact("output").map(|kept| self.project.store().load(&kept.blob).unwrap());
        kept.unwrap_or_default()
    }
}

/// Writes down what goes on. Dies when it sees the line that it is to die of.
#[derive(Default)]
pub(crate) struct Lines(Mutex<Vec<String>>, Mutex<Option<String>>);

impl Lines {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Watch for Lines {
    fn saw(&self, progress: Progress<'_>) {
        let line = match progress {
            Progress::Began { step, attempt } => format!("{step} begins ({attempt})"),
            Progress::Ended { step, status, attempt, .. } => format!("{step} {status} ({attempt})"),
            Progress::Printed { step, bytes, .. } => format!("{step}: {}", String::from_utf8_lossy(bytes)),
            Progress::Voided { steps, .. } => format!("void: {}", steps.join(" ")),
            Progress::EndedLeftOver { count } => format!("ended {count}"),
            Progress::RolledBack { step } => format!("rolled back {step}"),
            _ => "?".to_owned(),
        };
        let dies = self.1.lock().unwrap().take_if(|of| *of == line).is_some();
        self.0.lock().unwrap().push(line);
        if dies {
            std::panic::resume_unwind(Box::new("killed"));
        }
    }
}
