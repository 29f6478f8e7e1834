//! What a command works with: the project around the current folder, and the printer.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use stagepost::model::RepoPath;
use stagepost::project::{Context, Interrupted, Layer, Origin, Place, Project, Recovery, Settings};
use stagepost::snapshot::GitProgram;
use stagepost::store::MemoryStore;
use stagepost::{flow, plan, session, task};

use crate::args::Global;
use crate::failure::{Code, Failure};
use crate::input;
use crate::ui::{self, Ui};

pub(crate) struct App {
    pub(crate) ui: Ui,
    folder: PathBuf,
    busy_timeout: Option<String>,
}

impl App {
    pub(crate) fn new(global: &Global) -> Self {
        let folder = global.directory.clone().unwrap_or_else(|| PathBuf::from("."));
        Self { ui: Ui::new(global.json, global.quiet), folder, busy_timeout: global.busy_timeout.clone() }
    }

    /// The folder the command works in.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the project is that the current folder belongs to.
    pub(crate) fn find(&self) -> Result<Place, Failure> {
        Place::find(&self.folder)?.ok_or_else(|| Failure::no_project(&self.folder))
    }

    /// Opens the project; its store must be there.
    pub(crate) fn open(&self) -> Result<Project, Failure> {
        let place = self.find()?;
        if !place.has_store() {
            return Err(Failure::no_store(&place));
        }
        self.open_at(place, Project::open)
    }

    /// Opens the project to write to it. In a git repository the store is made when it is first needed: it lies
    /// inside `.git`, where it is in nobody's way.
    pub(crate) fn open_to_write(&self) -> Result<Project, Failure> {
        let place = self.find()?;
        if place.git.is_none() && !place.has_store() {
            return Err(Failure::no_store(&place));
        }
        self.open_at(place, Project::init)
    }

    /// Opens the project to see what would be written to it. No store is made for that: where there is none, it is as if
    /// there were an empty one.
    pub(crate) fn open_to_look(&self) -> Result<Project, Failure> {
        let place = self.find()?;
        if place.git.is_none() || place.has_store() {
            return self.open_to_write();
        }
        let empty = |place, settings, context| -> Result<_, Failure> {
            Ok(Project::with_store(place, settings, context, Arc::new(MemoryStore::new())))
        };
        self.open_at(place, empty)
    }

    /// Opens the project at a place in one way or another.
    pub(crate) fn open_at<E>(
        &self,
        place: Place,
        open: impl Fn(Place, Settings, Context) -> Result<Project, E>,
    ) -> Result<Project, Failure>
    where
        Failure: From<E>,
    {
        let settings = self.settings(Some(&place.root))?;
        let git = GitProgram::new("git", std::env::vars_os());
        let project = open(place, settings, Context::system(who(), git))?;
        self.warn_of_loss(&project);
        if let Some(recovery) = project.recover()? {
            self.recovered(&project, &recovery)?;
        }
        self.catch_up(&project);
        Ok(project)
    }

    /// Says that checkpoints are gone which were saved once: what is newest is not what it was.
    fn warn_of_loss(&self, project: &Project) {
        // A store that cannot be read says so to whoever reads it.
        if let Ok(lost @ 1..) = project.lost() {
            let gone = if lost == 1 { "entry is".to_owned() } else { format!("{lost} entries are") };
            self.ui.warn(format!("the store is damaged: its last {gone} gone; `stagepost verify` says more"));
        }
    }

    /// Brings files up to date that a crash or a collection left behind. They are only views: failing to is no reason to
    /// stop.
    pub(crate) fn catch_up(&self, project: &Project) {
        let sessions = session::catch_up(project).map(drop).map_err(Failure::from);
        let tasks = task::catch_up(project).map(drop).map_err(Failure::from);
        let plans = plan::catch_up(project).map(drop).map_err(Failure::from);
        let runs = flow::view::catch_up(project).map(drop).map_err(Failure::from);
        for failure in [sessions, tasks, plans, runs].into_iter().filter_map(Result::err) {
            // They tell of what an earlier command did; this one may do nothing at all.
            let why = if failure.causes.is_empty() { failure.message } else { failure.causes.join(": ") };
            self.ui
                .warn(format!("files that show what is recorded are out of date: {}", ui::printable(&why)));
        }
    }

    /// Says what became of a restore that had been cut off.
    fn recovered(&self, project: &Project, recovery: &Recovery) -> Result<(), Failure> {
        if let Interrupted::Checkpoint { tag } = &recovery.of {
            self.ui.warn(format!("took back the checkpoint {} that had been cut off", ui::printable(tag)));
            return Ok(());
        }
        let id = project.short_id(&recovery.target)?;
        let what = if recovery.finished { "finished" } else { "took back" };
        self.ui.warn(format!("{what} the restore of {id} that had been cut off"));
        for path in &recovery.left {
            self.ui.warn(format!("left {}: it was changed meanwhile", ui::printable(&path.to_string())));
        }
        Ok(())
    }

    /// Paths that a person typed, as the project names them; none if one of them is the whole project.
    pub(crate) fn repo_paths(&self, project: &Project, typed: &[PathBuf]) -> Result<Vec<RepoPath>, Failure> {
        let named = typed.iter().map(|path| self.repo_path(project, path)).collect::<Result<Vec<_>, _>>()?;
        Ok(if named.iter().any(|path| path.as_bytes().is_empty()) { Vec::new() } else { named })
    }

    /// A path that a person typed, as the project names it; empty for the project itself.
    pub(crate) fn repo_path(&self, project: &Project, typed: &Path) -> Result<RepoPath, Failure> {
        let root = &project.place().root;
        let folder = std::fs::canonicalize(&self.folder)
            .map_err(|error| Failure::file("open the folder", &self.folder, error))?;
        let inside = inside(root, &unwound(&folder.join(typed))).ok_or_else(|| {
            Failure::usage(format!("{} is not inside the project {}", typed.display(), root.display()))
        })?;
        Ok(RepoPath::from_bytes(inside.as_os_str().as_bytes()))
    }

    /// As [`App::repo_path`], but something must be there.
    pub(crate) fn existing_path(&self, project: &Project, typed: &Path) -> Result<RepoPath, Failure> {
        let path = self.repo_path(project, typed)?;
        let found = self.folder.join(typed).symlink_metadata();
        found.map(|_| path).map_err(|error| match error.kind() {
            // There is nothing beneath a file.
            std::io::ErrorKind::NotADirectory => {
                Failure::file("find", typed, std::io::ErrorKind::NotFound.into())
            }
            _ => Failure::file("find", typed, error),
        })
    }

    /// Reads the settings: user file, project file, environment, flags.
    pub(crate) fn settings(&self, root: Option<&Path>) -> Result<Settings, Failure> {
        let layers = self.layers(root).into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(Settings::from_layers(&layers)?)
    }

    /// Reads the settings as far as they are sound, and says what is wrong with the rest.
    pub(crate) fn sound_settings(&self, root: Option<&Path>) -> (Settings, Vec<Failure>) {
        let (mut layers, mut wrong) = (Vec::new(), Vec::new());
        for layer in self.layers(root) {
            match layer {
                Ok(layer) => layers.push(layer),
                Err(failure) => wrong.push(failure),
            }
        }
        let (settings, faults) = Settings::without_faults(layers);
        wrong.extend(faults.into_iter().map(Failure::from));
        (settings, wrong)
    }

    fn layers(&self, root: Option<&Path>) -> Vec<Result<Layer, Failure>> {
        let user = user_file().and_then(|path| read_layer(Origin::User, &path).transpose());
        let project =
            root.and_then(|root| read_layer(Origin::Project, &root.join("stagepost.toml")).transpose());
        let mut layers: Vec<_> = user.into_iter().chain(project).collect();
        layers.push(Ok(Layer::from_environment(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        )));
        layers.push(Ok(Layer::from_flags(self.busy_timeout.clone().map(|value| ("busy_timeout", value)))));
        layers
    }
}

/// A path without `..`. What a link leads to decides where `..` goes from there.
fn unwound(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                whole = std::fs::canonicalize(&whole).unwrap_or(whole);
                whole.pop();
            }
            other => whole.push(other),
        }
    }
    whole
}

/// Where a path is inside the project. Links lead to the project, but are not followed in it: there they are files
/// themselves, or stand where the checkpoint has a folder.
fn inside(root: &Path, path: &Path) -> Option<PathBuf> {
    let above: Vec<&Path> = path.ancestors().collect();
    above.into_iter().rev().find_map(|above| {
        let real = std::fs::canonicalize(above).ok()?;
        Some(real.strip_prefix(root).ok()?.join(path.strip_prefix(above).ok()?))
    })
}

/// The user's own settings, if there is a place for them.
fn user_file() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(base.join("stagepost").join("config.toml"))
}

/// More than anyone has to set.
const MOST_SETTINGS: u64 = 1 << 20;

fn read_layer(origin: Origin, path: &Path) -> Result<Option<Layer>, Failure> {
    match input::read_file(path, MOST_SETTINGS) {
        Ok(text) => Ok(Some(Layer::from_toml(origin, &text)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(Failure { code: Code::Failed, ..Failure::file("read the settings in", path, error) })
        }
    }
}

/// Who is at work, for the records.
fn who() -> String {
    let name = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    name("STAGEPOST_USER")
        .or_else(|| name("USER"))
        .or_else(|| name("LOGNAME"))
        .unwrap_or_else(|| "unknown".to_owned())
}
