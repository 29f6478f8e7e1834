//! Stories about restores: a work tree, snapshots of it, and the way between them.

#![allow(dead_code, unreachable_pub)]

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use stagepost::model::{RepoPath, Snapshot};
use stagepost::snapshot::restore::{Mode, Point, Restore, RestoreError, RestorePlan, Restored};
use stagepost::snapshot::{Capture, Snapshots};

use crate::snapshot_support::{Fixture, id};

/// A restore from one snapshot to another.
pub fn between(from: &Snapshot, to: &Snapshot, mode: Mode) -> Restore {
    Restore { from: Point::from(from), to: Point::from(to), mode, paths: vec![], makes_branch: false }
}

/// Goes on at every step.
pub fn go_on(_: &RepoPath) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// What a restore with its safety snapshot gave.
pub struct Outcome {
    pub safety: Snapshot,
    pub plan: RestorePlan,
    pub restored: Result<Restored, RestoreError>,
}

impl Outcome {
    #[track_caller]
    pub fn ok(self) -> (Snapshot, Restored) {
        (self.safety, self.restored.unwrap())
    }
}

/// Does what a command does: safety snapshot, again with what is in the way, plan, apply.
pub fn restore(snapshots: &Snapshots, to: &Snapshot, mode: Mode, paths: &[&str]) -> Outcome {
    let paths: Vec<RepoPath> = paths.iter().map(|path| RepoPath::from(*path)).collect();
    let mut safety = snapshots.capture(&id(), &Capture::default()).unwrap();
    let plan = |safety: &Snapshot| {
        snapshots.plan_restore(&Restore { paths: paths.clone(), ..between(safety, to, mode) }).unwrap()
    };
    let mut planned = plan(&safety);
    if !planned.files.capture_first.is_empty() {
        let force = planned.files.capture_first.clone();
        safety = snapshots.capture(&id(), &Capture { force, ..Capture::default() }).unwrap();
        planned = plan(&safety);
    }
    let restored = snapshots.apply_restore(&planned, &mut go_on);
    Outcome { safety, plan: planned, restored }
}

/// Every file and link below the root, outside `.git`, with its content: for comparing whole work trees.
pub fn everything(root: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    visit(root, root, &mut found);
    found.sort();
    found
}

fn visit(root: &Path, folder: &Path, found: &mut Vec<(String, String)>) {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let name = format!("{:?}", path.strip_prefix(root).unwrap());
        if name == "\".git\"" || name == "\".stagepost\"" {
            continue;
        }
        if metadata.is_dir() {
            found.push((name, "folder".into()));
            visit(root, &path, found);
        } else if metadata.is_symlink() {
            found.push((name, format!("-> {:?}", fs::read_link(&path).unwrap())));
        } else {
            let executable = metadata.permissions().mode() & 0o100 != 0;
            found.push((name, format!("{executable} {:?}", fs::read(&path).unwrap())));
        }
    }
}

/// Checks that the work tree, as git sees it, is what a snapshot holds.
#[track_caller]
pub fn assert_is(fixture: &Fixture, snapshot: &Snapshot) {
    assert_eq!(fixture.oracle(), snapshot.tree.as_str());
}

/// No file of an unfinished restore is left anywhere.
#[track_caller]
pub fn assert_no_leftovers(fixture: &Fixture) {
    let left: Vec<_> = everything(&fixture.root)
        .into_iter()
        .filter(|(name, _)| name.contains("stagepost-restore"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    for name in ["index.lock", "index.stagepost-restore", "index.stagepost-restore.lock"] {
        assert!(!fixture.root.join(".git").join(name).exists(), "{name} was left");
    }
}

/// Stops after `steps` steps; says whether it was stopped.
pub fn cut_off(snapshots: &Snapshots, restore: &Restore, steps: usize) -> bool {
    let mut left = steps;
    let mut count_down = |_: &RepoPath| {
        if left == 0 {
            return ControlFlow::Break(());
        }
        left -= 1;
        ControlFlow::Continue(())
    };
    match snapshots.finish_restore(restore, &mut count_down) {
        Ok(_) => false,
        Err(RestoreError::Interrupted) => true,
        Err(error) => panic!("after {steps} steps: {error:?}"),
    }
}
