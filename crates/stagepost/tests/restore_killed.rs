//! A restore cut off at every step: the next command finishes it or takes it back, exactly.

#![allow(clippy::unwrap_used, reason = "tests may stop at any fault")]

mod restore_support;
mod snapshot_support;

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use restore_support::{assert_is, assert_no_leftovers, between, cut_off, everything, go_on};
use snapshot_support::Fixture;
use stagepost::model::Snapshot;
use stagepost::snapshot::restore::{Mode, Recovered, Restore, RestoreError};
use stagepost::snapshot::{GitProgram, Keep, Open, Snapshots, Way};

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
fn of_very_many_files_what_is_sooner_done_is_done() {
    let fixture = Fixture::new();
    let write = |text: &str| {
        for number in 0..1200 {
            fixture.write(format!("many/{}/{number}", number % 5), text);
        }
        fixture.capture()
    };
    let (first, second) = (write("one"), write("two"));
    let (at_second, snapshots) = (everything(&fixture.root), fixture.open());
    let there = between(&second, &first, Mode::Files);
    // Each is written beside its place before the first of them takes it.
    for (placed, finishes) in [(0, false), (300, false), (900, true), (1199, true)] {
        assert!(cut_off(&snapshots, &there, 1200 + placed));
        let recovered = snapshots.recover_restore(&there, &mut go_on).unwrap();
        let finished = matches!(recovered, Recovered::Finished(_));
        assert_eq!(finished, finishes, "{placed} were in place");
        assert_no_leftovers(&fixture);
        match finished {
            true => assert_is(&fixture, &first),
            false => assert_eq!(everything(&fixture.root), at_second),
        }
        snapshots.revert_restore(&there, &mut go_on).unwrap();
        assert_eq!(everything(&fixture.root), at_second);
    }
}

#[test]
fn a_large_restore_that_cannot_be_taken_back_is_finished() {
    let fixture = Fixture::new();
    let write = |text: &str| {
        for number in 1000..2200 {
            fixture.write(format!("f{number}"), format!("{text} {number}"));
        }
        fixture.capture()
    };
    let (first, mut second) = (write("one"), write("two"));
    let snapshots = fixture.open();
    assert!(cut_off(&snapshots, &between(&second, &first, Mode::Files), 1200 + 100));
    assert_eq!(fs::read_to_string(fixture.root.join("f1000")).unwrap(), "one 1000");
    let f1000 = fixture.git(&["rev-parse", &format!("{}:f1000", second.tree)]);
    second.tree = with_a_blob_missing(&fixture, second.tree.as_str(), &f1000).parse().unwrap();
    let there = between(&second, &first, Mode::Files);
    let recovered = snapshots.recover_restore(&there, &mut go_on).unwrap();
    assert!(matches!(recovered, Recovered::Finished(_)), "{recovered:?}");
    assert_is(&fixture, &first);
    assert_no_leftovers(&fixture);
}

/// A tree as another one, but for a blob that is nowhere.
fn with_a_blob_missing(fixture: &Fixture, tree: &str, blob: &str) -> String {
    let entries = fixture.git(&["ls-tree", tree]).replace(blob, &"1".repeat(40)).replace('\n', "\0");
    let file = fixture.base().join("entries");
    fs::write(&file, entries + "\0").unwrap();
    output_of(fixture.command(&fixture.root).args(["mktree", "--missing", "-z"]), &file)
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

#[test]
fn a_target_that_is_damaged_is_taken_back() {
    let fixture = Fixture::new();
    let good = fixture.capture();
    fixture.write("new", "x").write("a.txt", "changed").write("other", "y");
    let safety = fixture.capture();
    let before = everything(&fixture.root);
    let a = fixture.git(&["rev-parse", "HEAD:a.txt"]);
    let mut target = good.clone();
    target.tree = with_a_blob_missing(&fixture, good.tree.as_str(), &a).parse().unwrap();

    let snapshots = fixture.open();
    let plan = snapshots.plan_restore(&between(&safety, &target, Mode::Files)).unwrap();
    let error = snapshots.apply_restore(&plan, &mut go_on).unwrap_err();
    assert!(matches!(error, RestoreError::Object(_)), "{error:?}");
    snapshots.revert_restore(plan.restore(), &mut go_on).unwrap();
    assert_eq!(everything(&fixture.root), before);
    assert_no_leftovers(&fixture);
}

fn output_of(command: &mut std::process::Command, input: &std::path::Path) -> String {
    let output = command.stdin(fs::File::open(input).unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Where the process that is killed finds its restore.
const ERRAND: &str = "RESTORE_ERRAND";

/// What the killed process runs.
fn restore_in(root: std::path::PathBuf) {
    let restore: Restore = serde_json::from_slice(&fs::read(root.join("../restore.json")).unwrap()).unwrap();
    let open = Open {
        state_dir: root.join(".git/stagepost"),
        root,
        keep: Keep::Repository,
        git: GitProgram::new("git", std::env::vars_os()),
        exclude: vec![],
        way: Way::Fastest,
    };
    Snapshots::open(open).unwrap().finish_restore(&restore, &mut go_on).unwrap();
}

#[test]
fn killed_for_real_it_is_finished_or_taken_back() {
    if let Some(root) = std::env::var_os(ERRAND) {
        return restore_in(root.into());
    }
    let (fixture, first, second) = story();
    let snapshots = fixture.open();
    let there = between(&second, &first, Mode::Hard);
    let at_second = state(&fixture);
    snapshots.finish_restore(&there, &mut go_on).unwrap();
    let at_first = state(&fixture);
    snapshots.revert_restore(&there, &mut go_on).unwrap();
    fs::write(fixture.base().join("restore.json"), serde_json::to_vec(&there).unwrap()).unwrap();

    let start = || {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.env_clear().envs(fixture.environment()).env(ERRAND, &fixture.root);
        command.args(["--exact", "killed_for_real_it_is_finished_or_taken_back"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    for round in 0..14 {
        let mut child = start();
        std::thread::sleep(Duration::from_millis(5 + 15 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        // a git that it started may still be at work on its own lock for a moment
        std::thread::sleep(Duration::from_millis(60));
        if round % 2 == 0 {
            snapshots.finish_restore(&there, &mut go_on).unwrap();
            assert_eq!(state(&fixture), at_first, "finished in round {round}");
        }
        snapshots.revert_restore(&there, &mut go_on).unwrap();
        assert_eq!(state(&fixture), at_second, "reverted in round {round}");
        assert_no_leftovers(&fixture);
    }
    assert!(start().wait().unwrap().success());
    assert_eq!(state(&fixture), at_first, "left alone it comes to its end");
}
