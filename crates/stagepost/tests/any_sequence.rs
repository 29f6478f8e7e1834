//! Any sequence of what people do with files and checkpoints, crashes and a clock that jumps among it, against a model
//! in memory.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use stagepost::model::{Checkpoint, CheckpointId, Kind, Timestamp};
use stagepost::project::{Clock, Error, Files, NewArtifact, Project, Save, Settings, Wish};
use stagepost::retention::Policy;
use stagepost::store::{Found, Query};
use stagepost_testutil::TempProject;

/// One thing that someone does, or that happens.
#[derive(Debug, Clone)]
enum Deed {
    Write(usize, u8),
    Remove(usize),
    Save {
        state: Option<u8>,
        label: bool,
    },
    Restore(usize),
    Undo,
    Redo,
    Pin(usize),
    Unpin(usize),
    Collect {
        keep: usize,
    },
    /// The program ends and another one begins.
    Reopen,
    /// The machine's clock is set, by so many years.
    Clock(i64),
    /// The program is killed between two things, and somebody goes on from the files it left.
    Crash,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => (0..PATHS.len(), any::<u8>()).prop_map(|(path, content)| Deed::Write(path, content)),
        2 => (0..PATHS.len()).prop_map(Deed::Remove),
        5 => (prop::option::of(any::<u8>()), prop::bool::weighted(0.2))
            .prop_map(|(state, label)| Deed::Save { state, label }),
        4 => any::<usize>().prop_map(Deed::Restore),
        3 => Just(Deed::Undo),
        2 => Just(Deed::Redo),
        1 => any::<usize>().prop_map(Deed::Pin),
        1 => any::<usize>().prop_map(Deed::Unpin),
        1 => (1usize..5).prop_map(|keep| Deed::Collect { keep }),
        1 => Just(Deed::Reopen),
        1 => (-20i64..20).prop_map(Deed::Clock),
        1 => Just(Deed::Crash),
    ]
}

const PATHS: [&str; 5] = ["a.txt", "b c.txt", "folder/d.txt", "folder/deep/e.txt", "\u{e9}.txt"];

type Tree = BTreeMap<String, String>;

/// A clock that is where someone set it.
struct Set(Arc<AtomicI64>);

impl Clock for Set {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.fetch_add(7, Ordering::Relaxed)).unwrap()
    }
}

/// What should be true.
struct Saved {
    id: CheckpointId,
    seq: u64,
    files: Tree,
    state: Option<Vec<u8>>,
    labelled: bool,
    pinned: bool,
}

struct World {
    temp: TempProject,
    root: PathBuf,
    crashes: usize,
    clock: Arc<AtomicI64>,
    project: Option<Project>,
    files: Tree,
    saved: Vec<Saved>,
    saves: u64,
    undo: Vec<Tree>,
    redo: Vec<Tree>,
}

impl World {
    fn new(git: bool) -> Self {
        let temp = if git { TempProject::git() } else { TempProject::plain() };
        let root = temp.root().to_owned();
        let mut world = Self {
            temp,
            root,
            crashes: 0,
            clock: Arc::new(AtomicI64::new(1_769_846_400_000_000)),
            project: None,
            files: Tree::new(),
            saved: Vec::new(),
            saves: 0,
            undo: Vec::new(),
            redo: Vec::new(),
        };
        world.reopen();
        world
    }

    fn reopen(&mut self) {
        self.project = None;
        let clock = Box::new(Set(self.clock.clone()));
        let project = self.temp.open_by(&self.root, Settings::default(), clock);
        assert_eq!(project.recover().unwrap(), None, "nothing was cut off in the middle");
        self.project = Some(project);
    }

    fn project(&self) -> &Project {
        self.project.as_ref().unwrap()
    }

    fn act(&mut self, deed: &Deed) {
        match deed {
            Deed::Write(path, content) => self.write(PATHS[*path], &content.to_string().repeat(3)),
            Deed::Remove(path) => self.remove(PATHS[*path]),
            Deed::Save { state, label } => self.save(*state, *label),
            Deed::Restore(which) => self.restore(*which),
            Deed::Undo => self.undo(),
            Deed::Redo => self.redo(),
            Deed::Pin(which) => self.pin(*which, true),
            Deed::Unpin(which) => self.pin(*which, false),
            Deed::Collect { keep } => self.collect(*keep),
            Deed::Reopen => self.reopen(),
            Deed::Clock(years) => {
                self.clock.fetch_add(years * 365 * 86_400_000_000, Ordering::Relaxed);
            }
            Deed::Crash => self.crash(),
        }
    }

    fn write(&mut self, path: &str, content: &str) {
        let place = self.root.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
        self.files.insert(path.to_owned(), content.to_owned());
    }

    fn remove(&mut self, path: &str) {
        if self.files.remove(path).is_some() {
            fs::remove_file(self.root.join(path)).unwrap();
        }
    }

    fn save(&mut self, state: Option<u8>, labelled: bool) {
        let state = state
            .map(|length| serde_json::to_vec(&vec!["a message of a conversation"; length.into()]).unwrap());
        let saved = self.project().save(Save {
            files: Some(Files::default()),
            labels: if labelled { vec!["kept".parse().unwrap()] } else { Vec::new() },
            artifacts: state.clone().map(NewArtifact::state).into_iter().collect(),
            ..Save::default()
        });
        let saved = saved.unwrap();
        self.saves += 1;
        assert_eq!(saved.seq, self.saves, "no gap, whatever the clock says");
        self.saved.push(Saved {
            id: saved.id,
            seq: saved.seq,
            files: self.files.clone(),
            state,
            labelled,
            pinned: false,
        });
    }

    fn checkpoint(&self, id: &CheckpointId) -> Checkpoint {
        self.project().store().checkpoint(id).unwrap().and_then(Found::live).unwrap()
    }

    fn restore(&mut self, which: usize) {
        if self.saved.is_empty() {
            return;
        }
        let saved = &self.saved[which % self.saved.len()];
        let target = saved.files.clone();
        let outcome = self.project().restore(&self.checkpoint(&saved.id), &Wish::default()).unwrap();
        assert_eq!(outcome.done.is_some(), target != self.files);
        if outcome.done.is_some() {
            self.undo.push(std::mem::replace(&mut self.files, target));
            self.redo.clear();
        }
    }

    fn undo(&mut self) {
        match (self.project().undo(), self.undo.pop()) {
            (Ok(_), Some(before)) => self.redo.push(std::mem::replace(&mut self.files, before)),
            (Err(Error::NothingToUndo), None) => {}
            (got, expected) => panic!("undo gave {got:?}, not {expected:?}"),
        }
    }

    fn redo(&mut self) {
        match (self.project().redo(), self.redo.pop()) {
            (Ok(_), Some(after)) => self.undo.push(std::mem::replace(&mut self.files, after)),
            (Err(Error::NothingToRedo), None) => {}
            (got, expected) => panic!("redo gave {got:?}, not {expected:?}"),
        }
    }

    fn pin(&mut self, which: usize, pinned: bool) {
        if self.saved.is_empty() {
            return;
        }
        let which = which % self.saved.len();
        let checkpoint = self.checkpoint(&self.saved[which].id);
        let project = self.project();
        let changed = if pinned { project.pin(&checkpoint) } else { project.unpin(&checkpoint) }.unwrap();
        assert_eq!(changed, self.saved[which].pinned != pinned);
        self.saved[which].pinned = pinned;
    }

    fn collect(&mut self, keep: usize) {
        let policy = Policy { keep_last: Some(keep), ..Policy::default() };
        let plan = self.project().plan_gc(&policy).unwrap();
        self.project().apply_gc(&plan).unwrap();
        let surplus = self.saved.len().saturating_sub(keep);
        let newest = self.saved.split_off(surplus);
        self.saved.retain(|saved| saved.labelled || saved.pinned);
        self.saved.extend(newest);
    }

    /// Goes on in a copy of everything as it is on disk while the program still runs.
    fn crash(&mut self) {
        self.crashes += 1;
        let image = self.temp.beside(&format!("after-crash-{}", self.crashes));
        copy_tree(&self.root, &image);
        self.root = image;
        self.reopen();
    }

    /// Compares everything with the model.
    fn check(&self) {
        assert_eq!(tree(&self.root), self.files, "the files");
        let listed =
            self.project().log(&Query { run: Some(self.project().adhoc_run()), ..Query::default() }).unwrap();
        assert!(listed.iter().all(|one| one.content.kind == Kind::Manual));
        let listed: Vec<_> =
            listed.iter().rev().map(|one| (one.id, one.seq, !one.content.labels.is_empty())).collect();
        let expected: Vec<_> = self.saved.iter().map(|saved| (saved.id, saved.seq, saved.labelled)).collect();
        assert_eq!(listed, expected, "the checkpoints, in the order in which they were made");
    }

    /// Every checkpoint that is there can be had back, whole.
    fn check_all(&mut self) {
        assert!(self.project().verify().unwrap().is_sound());
        for at in 0..self.saved.len() {
            let saved = &self.saved[at];
            if let Some(state) = &saved.state {
                assert_eq!(self.project().load(&self.checkpoint(&saved.id), "state").unwrap(), *state);
            }
            self.restore(at);
            self.check();
        }
    }
}

fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if name == ".git" || name == ".stagepost" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    found
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// How many sequences are tried.
fn cases() -> u32 {
    if std::env::var_os("STAGEPOST_FULL").is_some() { 500 } else { 12 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_does_what_the_model_says(git in any::<bool>(), deeds in prop::collection::vec(deed(), 1..28)) {
        let mut world = World::new(git);
        for deed in &deeds {
            world.act(deed);
            world.check();
        }
        world.check_all();
    }
}

#[test]
fn a_clock_that_jumps_changes_neither_order_nor_what_is_kept() {
    const YEAR: i64 = 365 * 86_400_000_000;
    let mut world = World::new(true);
    // Ten years back, ten forward, beyond 2038, and backwards between two saves.
    for (number, years) in [0, -10, 20, 5, -30, 1].into_iter().enumerate() {
        world.clock.fetch_add(years * YEAR, Ordering::Relaxed);
        world.write("a.txt", &format!("version {number}"));
        world.save(Some(9), false);
        world.check();
        world.reopen();
    }
    let ids: Vec<_> = world.saved.iter().map(|saved| saved.id).collect();
    assert_eq!(world.project().resolve("@").unwrap().id, ids[5]);
    assert_eq!(world.project().resolve("@-").unwrap().id, ids[4]);
    world.restore(1);
    world.undo();
    world.collect(3);
    world.check_all();
}

#[test]
fn a_clock_far_ahead_does_not_make_everything_old() {
    const YEAR: i64 = 365 * 86_400_000_000;
    let mut world = World::new(true);
    for number in 0..3 {
        world.write("a.txt", &format!("version {number}"));
        world.save(None, false);
    }
    world.clock.fetch_add(10 * YEAR, Ordering::Relaxed);
    let policy = Policy { max_age: Some(Duration::from_secs(30 * 86_400)), ..Policy::default() };
    let plan = world.project().plan_gc(&policy).unwrap();
    world.project().apply_gc(&plan).unwrap();
    let newest = world.saved.pop().unwrap();
    assert_eq!(
        world.project().resolve("@").unwrap().id,
        newest.id,
        "the newest of a run stays, however old it seems"
    );
}
