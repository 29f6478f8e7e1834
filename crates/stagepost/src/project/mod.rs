//! One opened project: where the parts are joined.
//!
//! Every checkpoint of every kind is made by [`Project::save`], and every way back starts at
//! [`Project::resolve`]. Sessions, tasks, flows, plans and gates are built on this and on nothing below it.

mod artifacts;
mod branch;
mod context;
mod cut_off;
mod diff;
mod doctor;
mod error;
mod files;
mod gc;
mod gone;
mod import;
mod marked;
mod outdated;
mod pins;
mod place;
mod resolve;
mod restore;
mod save;
mod settings;
mod status;
mod unfinished;
mod verify;
mod views;
mod whole_file;

use std::sync::{Arc, OnceLock};

pub use artifacts::Version;
pub use branch::{BranchError, operation_name};
pub use context::{Clock, Context, Ids, RandomIds, SystemClock};
pub(crate) use diff::json_changes;
pub use diff::{ArtifactChange, Change, Diff, Difference};
pub use doctor::{Check, Health};
pub use error::Error;
pub use files::Files;
pub(crate) use gc::KEPT_STEPS;
pub use gc::{GcPlan, Swept};
pub use gone::GoneStep;
pub use import::{ImportItem, ImportPlan, ProgressFile, Unreadable};
pub use marked::Marking;
pub use outdated::Outdated;
pub use place::{FindError, GitPlace, OWN_FOLDER, Place};
pub use restore::{Interrupted, Recovery, RestoreOutcome, RestoreRecord, Verb, Wish};
pub use save::{NewArtifact, Save, Source, WrittenJson};
pub use settings::{Layer, Origin, Settings, SettingsError, StoreKind, parse_duration, parse_size};
pub use status::Status;
pub(crate) use status::size_of;
pub use verify::Verified;
pub use views::{View, export_file};
pub use whole_file::{WholeFile, write_whole};

use crate::model::{Checkpoint, Run, RunId};
use crate::private;
use crate::snapshot::{Consent, Snapshots};
use crate::store::{self, Listed, OpenOptions, Query, SqliteStore, Store};

/// An opened project.
pub struct Project {
    place: Place,
    settings: Settings,
    context: Context,
    store: Arc<dyn Store>,
    snapshots: OnceLock<Snapshots>,
    consent: Consent,
}

impl std::fmt::Debug for Project {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Project").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Project {
    /// Opens the project at `place`, whose store must be there.
    pub fn open(place: Place, settings: Settings, context: Context) -> Result<Self, Error> {
        Self::with_options(place, settings, context, false)
    }

    /// Opens the project at `place` and makes its store if there is none.
    pub fn init(place: Place, settings: Settings, context: Context) -> Result<Self, Error> {
        Self::with_options(place, settings, context, true)
    }

    /// Opens the project at `place` with a new store where the database of the old one was deleted, and goes on without it. The
    /// files of its checkpoints stay in git: it may come back.
    pub fn begin_anew(place: Place, settings: Settings, context: Context) -> Result<Self, Error> {
        let options = OpenOptions { create: true, busy: settings.busy_timeout };
        let store = Arc::new(SqliteStore::begin_anew(&place.store, &options)?);
        let project = Self::with_store(place, settings, context, store);
        if let Ok(snapshots) = project.snapshots() {
            snapshots.forget_made();
        }
        Ok(project)
    }

    fn with_options(place: Place, settings: Settings, context: Context, create: bool) -> Result<Self, Error> {
        let options = OpenOptions { create, busy: settings.busy_timeout };
        let store = Arc::new(SqliteStore::open(&place.store, &options)?);
        if create && place.git.is_none() {
            hide_from_git(&place.store);
        }
        Ok(Self { place, settings, context, store, snapshots: OnceLock::new(), consent: Consent::No })
    }

    /// Joins a project from parts: for stores other than the one on disk.
    pub fn with_store(place: Place, settings: Settings, context: Context, store: Arc<dyn Store>) -> Self {
        Self { place, settings, context, store, snapshots: OnceLock::new(), consent: Consent::No }
    }

    /// Takes note of whether a person agreed to look at and capture a home folder or absurdly many files: for all that
    /// is done with this project from now on.
    #[must_use]
    pub fn with_consent(self, consent: Consent) -> Self {
        Self { consent, ..self }
    }

    /// Returns where the project is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Returns what was configured.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns what the world around it handed in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the store, for those who need more than the project offers.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Lists checkpoints, newest first.
    pub fn log(&self, query: &Query) -> Result<Vec<Checkpoint>, Error> {
        Ok(self.store.list(query)?.into_iter().map(|Listed { checkpoint, .. }| checkpoint).collect())
    }

    /// Lists runs in the order in which they were started.
    pub fn runs(&self) -> Result<Vec<Run>, Error> {
        Ok(self.store.runs()?.into_iter().map(|(run, _)| run).collect())
    }

    /// Finds a run.
    pub fn run(&self, id: &RunId) -> Result<Run, Error> {
        let missing = || store::Error::MissingRun { run: id.clone() };
        Ok(self.store.run(id)?.ok_or_else(missing)?)
    }
}

/// Has git pass over a store in the work tree, should the folder become a repository one day.
fn hide_from_git(store: &std::path::Path) {
    if let Ok(mut file) = private::create(&store.join(".gitignore")) {
        // If this fails, git shows the folder, and nothing else happens.
        let _ = std::io::Write::write_all(&mut file, b"*\n");
    }
}
