//! What only the store on disk promises: files, processes, damage.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod copies;
mod damage;
mod files;
mod large;
mod processes;
mod tamper;

use std::path::{Path, PathBuf};
use std::time::Duration;

use stagepost::model::{Checkpoint, Topic};
use stagepost::store::{Error, OpenOptions, SqliteStore, Store};
use stagepost_testutil::{Story, conversation};

/// A folder for a store that goes away with the test.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("store")
    }

    fn database(&self) -> PathBuf {
        self.folder().join("store.db")
    }

    fn open(&self) -> SqliteStore {
        try_open(&self.folder(), true).unwrap()
    }

    /// Opens the database behind the store's back.
    fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.database()).unwrap()
    }

    /// The same store, without its plain copies: they would hide what is wrong with the database.
    fn copy_of(other: &Place) -> Self {
        let place = Self::new();
        std::fs::create_dir(place.folder()).unwrap();
        let files = std::fs::read_dir(other.folder()).unwrap().map(|file| file.unwrap());
        for file in files.filter(|file| file.file_type().unwrap().is_file()) {
            std::fs::copy(file.path(), place.folder().join(file.file_name())).unwrap();
        }
        place
    }
}

fn try_open(folder: &Path, create: bool) -> Result<SqliteStore, Error> {
    SqliteStore::open(folder, &OpenOptions { create, busy: Duration::from_millis(400) })
}

/// Fills a store with some of everything: two runs and a fork, labels, events, stubs, payloads of one piece and of
/// many, old entries that the tables `by_*` have and new ones that they do not have yet.
fn some_of_everything(place: &Place) -> Vec<Checkpoint> {
    let store = place.open();
    let story = Story::new(&store);
    let (a, b) = (story.run("a"), story.run("b"));
    let (mut saved, mut base) = (Vec::new(), None);
    for n in 0..40 {
        saved.push(story.save_labelled(&a, if n % 5 == 0 { &["good", "at=5"] } else { &[] }));
        let state = story.save_state(&b, conversation(5 + n, false), base);
        base = Some(state.content.artifacts[0].blob);
        saved.push(state);
        story.happen(Topic::Note, "a", "a line of progress");
    }
    let mut fork = story.draft(&a, "fork");
    fork.parent = stagepost::model::Parent::Checkpoint(saved[7].id);
    saved.push(story.save_draft(fork));
    let gone = [saved.remove(10), saved.remove(20)];
    story.prune(&[&gone[0], &gone[1]]).unwrap();
    // The lookup tables know all of this, and nothing of what follows.
    store.rebuild().unwrap();
    for n in 0..8 {
        saved.push(story.save_state(&a, format!("\"small {n}\"").into_bytes(), None));
        story.happen(Topic::Pin, "b", "pinned");
    }
    assert_eq!(story.damage(), [""; 0]);
    saved
}
