//! Random work trees, there and back, held to git's own view of them.

#![allow(clippy::unwrap_used, reason = "tests may stop at any fault")]

mod restore_support;
mod snapshot_support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use proptest::prelude::*;
use restore_support::{assert_is, assert_no_leftovers, between, cut_off, everything, go_on, restore};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use snapshot_support::{Fixture, bytes, id};
use stagepost::model::Snapshot;
use stagepost::snapshot::restore::Mode;
use stagepost::snapshot::{Capture, Snapshots};

/// One thing done to a work tree.
#[derive(Debug, Clone)]
enum Deed {
    Write(String, u8),
    Executable(String),
    Link(String, String),
    Remove(String),
    Stage,
    Commit,
}

/// Few names, so that files and folders take each other's places.
fn name() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec!["a", "b", "c d", "e\nf", "ü", "-x", ".h"]);
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.join("/"))
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => (name(), any::<u8>()).prop_map(|(path, content)| Deed::Write(path, content)),
        1 => name().prop_map(Deed::Executable),
        1 => (name(), name()).prop_map(|(path, target)| Deed::Link(path, target)),
        3 => name().prop_map(Deed::Remove),
        1 => Just(Deed::Stage),
        1 => Just(Deed::Commit),
    ]
}

/// Does it as a careless program would: whatever is in the way goes.
fn act(fixture: &Fixture, deed: &Deed) {
    match deed {
        Deed::Write(path, content) => {
            clear(fixture, path);
            fixture.write(bytes(path.as_bytes()), format!("{content}\n").repeat(usize::from(*content % 5)));
        }
        Deed::Executable(path) => {
            let path = fixture.root.join(path);
            if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
                fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        Deed::Link(path, target) => {
            clear(fixture, path);
            symlink(target, fixture.root.join(path)).unwrap();
        }
        Deed::Remove(path) => {
            if fixture.root.join(path).symlink_metadata().is_ok() && !through_link(fixture, path) {
                fixture.remove(path);
            }
        }
        Deed::Stage => drop(fixture.git(&["add", "-A"])),
        Deed::Commit => drop(fixture.git(&["commit", "-q", "--allow-empty", "-m", "x"])),
    }
}

fn through_link(fixture: &Fixture, path: &str) -> bool {
    let slashes = path.match_indices('/').map(|(slash, _)| slash);
    slashes.into_iter().any(|slash| fixture.root.join(&path[..slash]).is_symlink())
}

fn clear(fixture: &Fixture, path: &str) {
    let ends = path.match_indices('/').map(|(slash, _)| slash).chain([path.len()]);
    for end in ends {
        let part = fixture.root.join(&path[..end]);
        let Ok(metadata) = part.symlink_metadata() else { continue };
        if end == path.len() && metadata.is_dir() {
            fs::remove_dir_all(&part).unwrap();
        } else if !metadata.is_dir() {
            fs::remove_file(&part).unwrap();
        }
    }
    fs::create_dir_all(fixture.root.join(path).parent().unwrap()).unwrap();
}

fn state(fixture: &Fixture) -> (Vec<(String, String)>, String, String) {
    let files = everything(&fixture.root).into_iter().filter(|(_, content)| content != "folder").collect();
    (files, fixture.git(&["ls-files", "-s"]), fixture.git(&["rev-parse", "HEAD"]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn there_and_back_again(first in prop::collection::vec(deed(), 1..14), second in prop::collection::vec(deed(), 1..14)) {
        let fixture = Fixture::new();
        first.iter().for_each(|deed| act(&fixture, deed));
        let (a, at_a) = (fixture.capture(), state(&fixture));
        second.iter().for_each(|deed| act(&fixture, deed));
        let (b, at_b) = (fixture.capture(), state(&fixture));
        let snapshots = fixture.open();
        for (target, expected) in [(&a, &at_a), (&b, &at_b), (&a, &at_a)] {
            restore(&snapshots, target, Mode::Hard, &[]).ok();
            assert_is(&fixture, target);
            prop_assert_eq!(&state(&fixture), expected);
        }
        restore(&snapshots, &b, Mode::Files, &[]).ok();
        assert_is(&fixture, &b);
        assert_no_leftovers(&fixture);
    }

    #[test]
    fn cut_off_anywhere_it_is_finished_or_taken_back(
        first in prop::collection::vec(deed(), 1..12),
        second in prop::collection::vec(deed(), 1..12),
        steps in 0usize..30,
    ) {
        let fixture = Fixture::new();
        first.iter().for_each(|deed| act(&fixture, deed));
        let (a, at_a) = (fixture.capture(), state(&fixture));
        second.iter().for_each(|deed| act(&fixture, deed));
        let (b, at_b) = (fixture.capture(), state(&fixture));
        let (snapshots, there) = (fixture.open(), between(&b, &a, Mode::Hard));
        cut_off(&snapshots, &there, steps);
        snapshots.revert_restore(&there, &mut go_on).unwrap();
        prop_assert_eq!(&state(&fixture), &at_b);
        cut_off(&snapshots, &there, steps);
        snapshots.finish_restore(&there, &mut go_on).unwrap();
        prop_assert_eq!(&state(&fixture), &at_a);
        assert_no_leftovers(&fixture);
    }
}

/// Exchanges a folder of the project with a link that leads out of it, again and again, while something is done.
fn while_swapping(folder: &Path, link: &Path, act: impl FnOnce()) -> usize {
    let (over, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // A restore may have just taken the folder away.
                let swapped = renameat_with(CWD, folder, CWD, link, RenameFlags::EXCHANGE);
                swaps.fetch_add(usize::from(swapped.is_ok()), Ordering::Relaxed);
                std::thread::yield_now();
            }
        });
        // The thread must end even if this fails.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        over.store(true, Ordering::Relaxed);
        done.unwrap();
    });
    if folder.is_symlink() {
        renameat_with(CWD, folder, CWD, link, RenameFlags::EXCHANGE).unwrap();
    }
    swaps.into_inner()
}

/// One restore as a command does it; says whether it was done.
fn tried(snapshots: &Snapshots, target: &Snapshot) -> bool {
    let Ok(safety) = snapshots.capture(&id(), &Capture::default()) else { return false };
    let there = between(&safety, target, Mode::Files);
    let Ok(plan) = snapshots.plan_restore(&there) else { return false };
    if snapshots.apply_restore(&plan, &mut go_on).is_ok() {
        return true;
    }
    let _ = snapshots.revert_restore(&there, &mut go_on);
    false
}

#[test]
fn links_swapped_in_while_files_are_captured_and_restored_lead_nowhere() {
    let fixture = Fixture::new();
    let outside = fixture.base().join("outside");
    fs::create_dir_all(outside.join("deep")).unwrap();
    // Where a followed link would make the work tree look as it should, and where it would not.
    for (name, text) in [("b.txt", "two\n"), ("deep/c.txt", "outside\n"), ("only.txt", "outside\n")] {
        fs::write(outside.join(name), text).unwrap();
    }
    let link = fixture.base().join("link");
    symlink(&outside, &link).unwrap();
    let (folder, before) = (fixture.root.join("dir"), everything(&outside));
    let first = fixture.capture();
    fixture
        .write("dir/b.txt", "changed\n")
        .write("dir/deep/c.txt", "changed\n")
        .write("dir/deep/new.txt", "new\n");
    fixture.write("a.txt", "changed\n").remove("link").write("link", "a file now\n");
    let second = fixture.capture();
    let snapshots = fixture.open();
    let rounds = if std::env::var_os("STAGEPOST_FULL").is_some() { 2_000 } else { 60 };
    let (mut done, mut captured) = (0, Vec::new());
    let swaps = while_swapping(&folder, &link, || {
        for round in 0..rounds {
            done += usize::from(tried(&snapshots, if round % 2 == 0 { &first } else { &second }));
            captured.extend(snapshots.capture(&id(), &Capture::default()).ok());
            assert_eq!(everything(&outside), before, "round {round}");
        }
    });
    assert!(swaps > rounds && !captured.is_empty(), "{swaps} swaps, {done} done");
    for snapshot in &captured {
        let files = fixture.git(&["ls-tree", "-r", "--name-only", snapshot.tree.as_str()]);
        assert!(!files.contains("only.txt"), "a capture went through the link: {files}");
    }
    restore(&snapshots, &first, Mode::Files, &[]).ok();
    assert_is(&fixture, &first);
    assert_no_leftovers(&fixture);
}
