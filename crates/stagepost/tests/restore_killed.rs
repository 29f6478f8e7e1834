//! A restore cut off at every step: the next command finishes it or takes it back, exactly.

#![allow(clippy::unwrap_used, reason = "tests may stop at any fault")]

mod restore_support;
mod snapshot_support;

use std::fs;

use restore_support::{assert_no_leftovers, between, cut_off, everything, go_on};
use snapshot_support::Fixture;
use stagepost::model::Snapshot;
use stagepost::snapshot::restore::{Mode, Restore, RestoreError};

/// A story with every kind of change in it, in files, index and HEAD.
fn story() -> (Fixture, Snapshot, Snapshot) {
    let fixture = Fixture::new();
    fixture.write("x", "a file").write("y/one", "1").write("y/two/three", "3").write("gone/soon", "x");
    fixture.write("staged", "staged").git(&["add", "staged"]);
    let first = fixture.capture();
    fixture.remove("x").remove("y").remove("gone").write("x/inner", "now a folder").write("y", "now a file");
    fixture.write("a.txt", "changed").executable("dir/b.txt").link("link", "dir").write("new/er", "x");
    fixture.write(".gitattributes", "*.txt text eol=crlf\n").write("dir/deep/c.txt", "three\r\n");
    fixture.git(&["switch", "-q", "-c", "feature"]);
    fixture.commit("second");
    fixture.write("staged", "otherwise").git(&["add", "staged"]);
    let second = fixture.capture();
    (fixture, first, second)
}

/// Everything there is: files, index, HEAD.
fn state(fixture: &Fixture) -> (Vec<(String, String)>, String, String) {
    let index = fixture.git(&["ls-files", "-s"]);
    let head = format!(
        "{} {}",
        fixture.git(&["rev-parse", "HEAD"]),
        fs::read_to_string(fixture.root.join(".git/HEAD")).unwrap()
    );
    (everything(&fixture.root), index, head)
}

#[test]
fn cut_off_at_every_step_it_is_finished_or_taken_back() {
    let (fixture, first, second) = story();
    let snapshots = fixture.open();
    let there = between(&second, &first, Mode::Hard);
    let at_second = state(&fixture);
    snapshots.finish_restore(&there, &mut go_on).unwrap();
    let at_first = state(&fixture);
    snapshots.revert_restore(&there, &mut go_on).unwrap();
    assert_eq!(state(&fixture), at_second);

    let mut steps = 0;
    while cut_off(&snapshots, &there, steps) {
        snapshots.revert_restore(&there, &mut go_on).unwrap();
        assert_eq!(state(&fixture), at_second, "reverted after {steps} steps");
        assert_no_leftovers(&fixture);

        cut_off(&snapshots, &there, steps);
        snapshots.finish_restore(&there, &mut go_on).unwrap();
        assert_eq!(state(&fixture), at_first, "finished after {steps} steps");
        assert_no_leftovers(&fixture);
        snapshots.revert_restore(&there, &mut go_on).unwrap();
        steps += 1;
    }
    assert!(steps > 15, "only {steps} steps");
    assert_eq!(state(&fixture), at_first);
}

#[test]
fn a_revert_that_is_cut_off_too_is_finished_by_the_next() {
    let (fixture, first, second) = story();
    let snapshots = fixture.open();
    let (there, back) = (between(&second, &first, Mode::Hard), between(&first, &second, Mode::Hard));
    let at_second = state(&fixture);
    for steps in [3, 7, 11, 15] {
        for more in [1, 4, 9] {
            cut_off(&snapshots, &there, steps);
            cut_off(&snapshots, &back, more);
            snapshots.revert_restore(&there, &mut go_on).unwrap();
            assert_eq!(state(&fixture), at_second, "{steps} forward, {more} back");
            assert_no_leftovers(&fixture);
        }
    }
}

#[test]
fn the_restore_can_be_written_down_and_read_back() {
    let (fixture, first, second) = story();
    let there = Restore { paths: vec!["dir".into()], ..between(&second, &first, Mode::Files) };
    let text = serde_json::to_string(&there).unwrap();
    assert_eq!(serde_json::from_str::<Restore>(&text).unwrap(), there);
    drop(fixture);
}

#[test]
fn a_lock_that_a_killed_restore_left_is_known_as_ours() {
    let (fixture, first, second) = story();
    let git_dir = fixture.root.join(".git");
    let beside = git_dir.join("index.stagepost-restore");
    fs::copy(git_dir.join("index"), &beside).unwrap();
    fs::hard_link(&beside, git_dir.join("index.lock")).unwrap();
    let restore = between(&second, &first, Mode::Hard);
    fixture.open().finish_restore(&restore, &mut go_on).unwrap();
    assert_no_leftovers(&fixture);

    fs::write(git_dir.join("index.lock"), "someone else's").unwrap();
    let back = between(&first, &second, Mode::Hard);
    let error = fixture.open().finish_restore(&back, &mut go_on).unwrap_err();
    assert!(matches!(error, RestoreError::IndexLocked | RestoreError::Refused { .. }), "{error:?}");
    assert!(git_dir.join("index.lock").exists());
}
