//! Recording a run: starting it, writing its payloads, ending it.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::history::{About, History, payload_of};
use super::job::output_folder;
use super::part::{JOB, check_project};
use super::{Error, Job, Part, Payload};
use crate::formats::plans;
use crate::model::{ArtifactName, Checkpoint, Kind, Run, RunId, RunKind, redact_text};
use crate::project::{self, NewArtifact, Project, Save, Source};
use crate::store::{self, Batch, Expect, NewEntry, Query};

/// What a run is about and where its files go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name that its files begin with.
    pub project_name: String,
    /// Where its files go.
    pub output_dir: Option<PathBuf>,
    /// Whether it has files. The store keeps everything either way.
    pub checkpoint: bool,
}

/// A run of propose and judge.
#[derive(Debug, Clone)]
pub struct Plan<'p> {
    pub(super) project: &'p Project,
    pub(super) run: Run,
    pub(super) about: About,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Its plan was approved.
    Success,
    /// The best attempt is kept.
    Incomplete,
}

impl Status {
    /// Returns the name used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Success => "SUCCESS",
            Status::Incomplete => "INCOMPLETE",
        }
    }
}

/// What is saved with a payload.
#[derive(Debug, Default)]
pub(super) struct Beside {
    pub(super) description: String,
    pub(super) metadata: Map<String, Value>,
    pub(super) artifacts: Vec<(&'static str, Vec<u8>)>,
}

impl<'p> Plan<'p> {
    /// Starts a run under a new id of eight hexadecimal digits.
    pub fn start_run(project: &'p Project, settings: &Settings) -> Result<Self, Error> {
        let about = about(project, settings)?;
        loop {
            let digits = project.new_id().as_uuid().simple().to_string();
            let id = RunId::new(&digits[digits.len() - 8..])?;
            match Self::begin(project, id, about.clone()) {
                Err(Error::Project(project::Error::Store(store::Error::Conflict { .. }))) => {}
                other => return other,
            }
        }
    }

    /// Opens a run that was started before.
    pub fn open(project: &'p Project, id: &RunId) -> Result<Self, Error> {
        let run = project.store().run(id)?.filter(|run| run.kind == RunKind::Plan);
        let run = run.ok_or_else(|| Error::NoRun { run: id.to_string() })?;
        Ok(Self { project, about: About::of(&run), run })
    }

    /// Finds a run by its id or the start of it.
    pub fn find(project: &'p Project, name: &str) -> Result<Self, Error> {
        let missing = || Error::NoRun { run: name.to_owned() };
        match RunId::new(name).map(|id| Self::open(project, &id)) {
            Ok(Err(Error::NoRun { .. })) | Err(_) => {}
            Ok(other) => return other,
        }
        let mut starting =
            Self::all(project)?.into_iter().filter(|plan| plan.id().as_str().starts_with(name));
        match (starting.next(), starting.next()) {
            (Some(only), None) if name.len() >= 3 => Ok(only),
            _ => Err(missing()),
        }
    }

    pub(super) fn open_or_start(
        project: &'p Project,
        id: &RunId,
        settings: &Settings,
    ) -> Result<Self, Error> {
        match Self::open(project, id) {
            Err(Error::NoRun { .. }) => Self::begin(project, id.clone(), about(project, settings)?),
            other => other,
        }
    }

    fn begin(project: &'p Project, id: RunId, mut about: About) -> Result<Self, Error> {
        // Files are named after it, now and when it is read again: the store would take a token out.
        redact_text(&mut about.project);
        let mut run = Run::new(id.clone(), RunKind::Plan, project.context().clock.now());
        run.description = about.project.clone();
        about.put(&mut run);
        let entries = vec![NewEntry::Run(run.clone())];
        project.store().write(Batch { entries, expect: vec![Expect::NewRun(id)], ..Batch::default() })?;
        Ok(Self { project, run, about })
    }

    /// Lists the runs of a project, oldest first.
    pub fn all(project: &'p Project) -> Result<Vec<Self>, Error> {
        let runs = project.runs()?.into_iter().filter(|run| run.kind == RunKind::Plan);
        Ok(runs.map(|run| Self { project, about: About::of(&run), run }).collect())
    }

    /// Returns the id.
    pub fn id(&self) -> &RunId {
        &self.run.id
    }

    /// Returns what the run is about.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Reads everything of the run.
    pub fn history(&self) -> Result<History, Error> {
        History::read(self.project, &self.run.id)
    }

    /// Reads the job that the run was begun with.
    pub fn job(&self) -> Result<Job, Error> {
        let history = self.history()?;
        let missing = || history.missing("job".to_owned());
        let recorded = history.core.get(JOB).ok_or_else(missing)?;
        Job::read(&self.project.load(recorded, JOB)?)
    }

    /// Records a payload of an iteration. What is recorded stays: the same again changes nothing, and something else in
    /// its place is refused.
    pub fn write_iteration_checkpoint(
        &self,
        part: &Part,
        payload: impl Into<Payload>,
        iteration: u32,
    ) -> Result<Checkpoint, Error> {
        if iteration == 0 {
            return Err(Error::IterationZero);
        }
        let payload = checked(part.as_str(), payload.into())?;
        loop {
            let (head, recorded) = self.recorded(iteration, part.as_str())?;
            if let Some(recorded) = recorded {
                return self.same(recorded, iteration, part, &payload);
            }
            let expect = Expect::Head(self.run.id.clone(), head);
            match self.save(iteration, part.as_str(), payload.clone(), self.beside(), expect) {
                Err(Error::Project(project::Error::Store(store::Error::Conflict { .. }))) => {}
                other => return other,
            }
        }
    }

    /// Records a payload that belongs to the whole run. The newest of a type counts; older ones stay in the store.
    pub fn write_checkpoint(&self, part: &Part, payload: impl Into<Payload>) -> Result<Checkpoint, Error> {
        let payload = checked(part.as_str(), payload.into())?;
        loop {
            let (head, _) = self.recorded(0, part.as_str())?;
            let expect = Expect::Head(self.run.id.clone(), head);
            match self.save(0, part.as_str(), payload.clone(), self.beside(), expect) {
                Err(Error::Project(project::Error::Store(store::Error::Conflict { .. }))) => {}
                other => return other,
            }
        }
    }

    /// Ends the run with its final payload.
    pub fn finish(&self, status: Status, payload: impl Into<Payload>) -> Result<Checkpoint, Error> {
        let payload = checked(plans::FINAL, payload.into())?;
        let stated = payload.value()["status"].as_str();
        let payload = match stated {
            Some(stated) if stated == status.as_str() => payload,
            _ => {
                let mut whole = Map::from_iter([("status".to_owned(), json!(status.as_str()))]);
                let given = payload.value().as_object().cloned().unwrap_or_default();
                whole.extend(given.into_iter().filter(|(name, _)| name != "status"));
                Value::Object(whole).into()
            }
        };
        self.write_checkpoint(&Part::last(), payload)
    }

    fn beside(&self) -> Beside {
        Beside { description: self.about.project.clone(), ..Beside::default() }
    }

    /// The place of the newest checkpoint, and what is recorded of a part of an iteration.
    fn recorded(&self, iteration: u32, part: &str) -> Result<(u64, Option<Checkpoint>), Error> {
        // The end first: what comes after it makes the save that expects it fail, and all this is looked at again.
        let head = self.project.store().head(&self.run.id)?.map_or(0, |newest| newest.seq());
        let query = Query { run: Some(self.run.id.clone()), ..Query::default() };
        let wanted = Kind::Iteration { iteration, part: part.to_owned() };
        let found = self.project.log(&query)?.into_iter().find(|one| one.content.kind == wanted);
        Ok((head, found))
    }

    fn same(
        &self,
        recorded: Checkpoint,
        iteration: u32,
        part: &Part,
        given: &Payload,
    ) -> Result<Checkpoint, Error> {
        let known = payload_of(self.project, &recorded)?;
        if known.is_some_and(|known| known.value() == given.value()) {
            return Ok(recorded);
        }
        Err(Error::Recorded { run: self.run.id.clone(), iteration, part: part.to_string() })
    }

    /// Saves a payload and brings the files up to date.
    pub(super) fn save(
        &self,
        iteration: u32,
        part: &str,
        payload: Payload,
        beside: Beside,
        expect: Expect,
    ) -> Result<Checkpoint, Error> {
        let outdated = self.begin_view()?;
        let name = |name: &str| ArtifactName::new(name).map_err(project::Error::from);
        let mut artifacts =
            vec![NewArtifact { name: name(part)?, source: Source::Bytes(payload.into_bytes()) }];
        for (beside, bytes) in beside.artifacts.into_iter().filter(|(_, bytes)| !bytes.is_empty()) {
            artifacts.push(NewArtifact { name: name(beside)?, source: Source::Bytes(bytes) });
        }
        let save = Save {
            run: Some((self.run.id.clone(), RunKind::Plan)),
            kind: Some(Kind::Iteration { iteration, part: part.to_owned() }),
            description: beside.description,
            metadata: beside.metadata,
            artifacts,
            expect: vec![expect],
            tight: true,
            ..Save::default()
        };
        let saved = self.project.save(save);
        match (&saved, outdated) {
            (Ok(saved), Some(outdated)) => self.publish(outdated, Some(saved))?,
            (Err(_), Some(outdated)) => self.project.leave_view(outdated),
            (_, None) => {}
        }
        Ok(saved?)
    }
}

/// A payload is spread into an envelope, so it has to be an object.
fn checked(part: &str, payload: Payload) -> Result<Payload, Error> {
    let payload = payload.without_tokens();
    if payload.value().is_object() { Ok(payload) } else { Err(Error::NoObject { part: part.to_owned() }) }
}

fn about(project: &Project, settings: &Settings) -> Result<About, Error> {
    check_project(&settings.project_name)?;
    let folder = settings.output_dir.as_ref().filter(|folder| !folder.as_os_str().is_empty());
    if settings.checkpoint && folder.is_none() {
        return Err(Error::NoOutputDir);
    }
    let output_dir = folder.map(|folder| output_folder(&project.place().root, folder)).transpose()?;
    Ok(About { project: settings.project_name.clone(), output_dir, checkpoint: settings.checkpoint })
}
