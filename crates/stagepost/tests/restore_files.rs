//! Restoring files: what is written, what is deleted, and what is never touched.

#![allow(clippy::unwrap_used, reason = "tests may stop at any fault")]

mod restore_support;
mod snapshot_support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use restore_support::{assert_is, assert_no_leftovers, between, everything, go_on, restore};
use snapshot_support::{Fixture, bytes, id};
use stagepost::model::{RepoPath, SkipReason};
use stagepost::snapshot::restore::{Left, LeftReason, Mode, Refusal, Restore, RestoreError};
use stagepost::snapshot::{Capture, Keep, Secrets, Way};

#[test]
fn very_many_files_in_very_many_folders_come_back() {
    let fixture = Fixture::new();
    let write = |text: &str| {
        for number in 0..150 {
            fixture.write(format!("many/{number}/one.txt"), format!("{text} {number}"));
            fixture.write(format!("many/{number}/two.txt"), format!("{text}, too"));
        }
    };
    write("first");
    let target = fixture.capture();
    write("second");
    fs::remove_dir_all(fixture.root.join("many/7")).unwrap();
    let snapshots = fixture.open();
    for path in ["many/8/one.txt", "gone/1"] {
        fixture.write(path, "third");
    }
    let (safety, restored) = restore(&snapshots, &target, Mode::Files, &[]).ok();
    assert_eq!((restored.written, restored.deleted), (300, 1));
    assert_is(&fixture, &target);
    assert_no_leftovers(&fixture);
    restore(&snapshots, &safety, Mode::Files, &[]).ok();
    assert_is(&fixture, &safety);
}

#[test]
fn an_agent_made_a_mess_and_everything_comes_back() {
    let fixture = Fixture::new();
    fixture.write("notes.txt", "mine, untracked\n");
    let good = fixture.capture();
    let before = everything(&fixture.root);
    let untouched = fs::metadata(fixture.root.join("dir/b.txt")).unwrap();

    fixture.write("a.txt", "broken").remove("notes.txt").remove("dir/deep");
    fixture.write("new/deeper/junk.txt", "junk").link("link", "elsewhere");
    fs::set_permissions(fixture.root.join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    let snapshots = fixture.open();
    let (safety, restored) = restore(&snapshots, &good, Mode::Files, &[]).ok();

    assert_is(&fixture, &good);
    assert_eq!(everything(&fixture.root), before, "empty folders that were left, or other differences");
    assert_eq!((restored.written, restored.deleted), (5, 1));
    let same = fs::metadata(fixture.root.join("dir/b.txt")).unwrap();
    assert_eq!((untouched.ino(), untouched.mtime_nsec()), (same.ino(), same.mtime_nsec()));
    assert_no_leftovers(&fixture);

    restore(&snapshots, &safety, Mode::Files, &[]).ok();
    assert_is(&fixture, &safety);
    restore(&snapshots, &good, Mode::Files, &[]).ok();
    assert_is(&fixture, &good);
}

#[test]
fn nothing_of_the_repository_moves_when_files_are_restored() {
    let fixture = Fixture::new();
    let good = fixture.capture();
    fixture.write("a.txt", "staged").git(&["add", "a.txt"]);
    fixture.write("a.txt", "and edited");
    let index = fs::read(fixture.root.join(".git/index")).unwrap();
    let head = fixture.git(&["reflog"]);
    restore(&fixture.open(), &good, Mode::Files, &[]).ok();
    assert_eq!(fs::read(fixture.root.join(".git/index")).unwrap(), index);
    assert_eq!(fixture.git(&["reflog"]), head);
    assert_eq!(fs::read(fixture.root.join("a.txt")).unwrap(), b"one\n");
}

#[test]
fn single_files_and_folders_come_back_alone() {
    let fixture = Fixture::new();
    let good = fixture.capture();
    fixture.write("a.txt", "x").write("dir/b.txt", "x").write("dir/deep/c.txt", "x").write("dir/new", "x");
    let snapshots = fixture.open();
    restore(&snapshots, &good, Mode::Files, &["dir/deep"]).ok();
    assert_eq!(fs::read(fixture.root.join("dir/deep/c.txt")).unwrap(), b"three\n");
    assert_eq!(fs::read(fixture.root.join("dir/b.txt")).unwrap(), b"x");
    restore(&snapshots, &good, Mode::Files, &["dir"]).ok();
    assert_eq!(fs::read(fixture.root.join("dir/b.txt")).unwrap(), b"two\n");
    assert!(!fixture.root.join("dir/new").exists());
    assert_eq!(fs::read(fixture.root.join("a.txt")).unwrap(), b"x");
}

#[test]
fn files_and_folders_change_places_both_ways() {
    let fixture = Fixture::new();
    fixture.write("x", "a file").write("y/one", "1").write("y/two/three", "3").link("z", "y");
    let first = fixture.capture();
    fixture.remove("x").remove("y").remove("z");
    fixture
        .write("x/inner/deep", "now a folder")
        .write("y", "now a file")
        .write("z/inside", "no link any more");
    fs::create_dir_all(fixture.root.join("x/empty/er")).unwrap();
    let second = fixture.capture();
    let snapshots = fixture.open();
    restore(&snapshots, &first, Mode::Files, &[]).ok();
    assert_is(&fixture, &first);
    restore(&snapshots, &second, Mode::Files, &[]).ok();
    assert_is(&fixture, &second);
    restore(&snapshots, &first, Mode::Files, &["y/two"]).ok();
    assert_eq!(fs::read(fixture.root.join("y/two/three")).unwrap(), b"3");
}

#[test]
fn odd_names_survive() {
    let fixture = Fixture::new();
    let names: [&[u8]; 6] =
        [b"with space", b"new\nline", b"\xff\xfe", b"-dash", b"dir/ \xc3\x28", b"quote\"'\\"];
    for name in names {
        fixture.write(bytes(name), "first");
    }
    let first = fixture.capture();
    for name in names {
        fixture.write(bytes(name), "second");
    }
    fixture.write(bytes(b"more\xff\n"), "third");
    restore(&fixture.open(), &first, Mode::Files, &[]).ok();
    assert_is(&fixture, &first);
}

#[test]
fn ignored_files_are_left_unless_the_target_needs_their_place() {
    let fixture = Fixture::new();
    let good = fixture.capture();
    fixture.write("log", "kept by the target").write("out/a", "kept too");
    let with_log = fixture.capture();
    fixture.remove("log").remove("out");
    fixture.write(".gitignore", "log\nout\nsecret\n").write("secret", "never seen");
    fixture.write("log", "ignored now").write("out", "a file where a folder was");
    let snapshots = fixture.open();

    let (_, restored) = restore(&snapshots, &good, Mode::Files, &[]).ok();
    assert_eq!(fs::read(fixture.root.join("secret")).unwrap(), b"never seen");
    assert_eq!(fs::read(fixture.root.join("log")).unwrap(), b"ignored now");
    assert_eq!(restored.deleted, 1, "only .gitignore");

    fixture.write(".gitignore", "log\nout\nsecret\n");
    let (safety, _) = restore(&snapshots, &with_log, Mode::Files, &[]).ok();
    assert_eq!(fs::read(fixture.root.join("log")).unwrap(), b"kept by the target");
    assert_eq!(fs::read(fixture.root.join("out/a")).unwrap(), b"kept too");
    assert_eq!(fs::read(fixture.root.join("secret")).unwrap(), b"never seen");

    restore(&snapshots, &safety, Mode::Files, &[]).ok();
    assert_eq!(fs::read(fixture.root.join("log")).unwrap(), b"ignored now");
    assert_eq!(fs::read(fixture.root.join("out")).unwrap(), b"a file where a folder was");
}

#[test]
fn a_plan_that_ignored_files_stand_against_is_not_applied() {
    let fixture = Fixture::new();
    fixture.write("log", "wanted");
    let target = fixture.capture();
    fixture.write(".gitignore", "log\n").write("log", "in no checkpoint");
    let snapshots = fixture.open();
    fixture.git(&["rm", "-q", "--cached", "--ignore-unmatch", "log"]);
    let now = snapshots.look(&Capture::default()).unwrap();
    let plan = snapshots
        .plan_restore(&Restore { from: (&now).into(), ..between(&target, &target, Mode::Files) })
        .unwrap();
    assert_eq!(plan.files.capture_first, [RepoPath::from("log")]);
    let refused = snapshots.apply_restore(&plan, &mut go_on).unwrap_err();
    assert!(matches!(refused, RestoreError::CaptureFirst { .. }) && refused.nothing_was_touched());
    assert_eq!(fs::read(fixture.root.join("log")).unwrap(), b"in no checkpoint");
}

#[test]
fn a_folder_full_of_ignored_files_is_captured_before_a_file_takes_its_place() {
    let fixture = Fixture::new();
    fixture.write("build", "a file");
    let target = fixture.capture();
    fixture.remove("build").write(".gitignore", "build/\n");
    fixture.write("build/x/one", "1").write("build/two", "2");
    let snapshots = fixture.open();
    let (safety, _) = restore(&snapshots, &target, Mode::Files, &[]).ok();
    assert_eq!(fs::read(fixture.root.join("build")).unwrap(), b"a file");
    restore(&snapshots, &safety, Mode::Files, &[]).ok();
    assert_eq!(fs::read(fixture.root.join("build/x/one")).unwrap(), b"1");
    assert_eq!(fs::read(fixture.root.join("build/two")).unwrap(), b"2");
}

#[test]
fn what_is_too_large_is_left_or_refuses_the_restore() {
    let fixture = Fixture::new();
    fixture.write("data", "small then");
    let target = fixture.capture();
    fixture.write("data", "x".repeat(2000)).write("other", "y".repeat(2000)).write("a.txt", "changed");
    let snapshots = fixture.open();
    let small = Capture { max_file_size: 1000, ..Capture::default() };
    let safety = snapshots.capture(&id(), &small).unwrap();
    assert_eq!(safety.skipped.len(), 2);

    let plan = snapshots.plan_restore(&between(&safety, &target, Mode::Files)).unwrap();
    assert_eq!(plan.refusals(), [Refusal::NotHeld { path: "data".into(), reason: SkipReason::TooLarge }]);
    assert!(matches!(snapshots.apply_restore(&plan, &mut go_on), Err(RestoreError::Refused { .. })));
    assert_eq!(fs::read(fixture.root.join("a.txt")).unwrap(), b"changed");

    let only_a =
        Restore { paths: vec!["a.txt".into(), "other".into()], ..between(&safety, &target, Mode::Files) };
    let plan = snapshots.plan_restore(&only_a).unwrap();
    assert_eq!(plan.files.left[0].reason, LeftReason::NotHeldNow(SkipReason::TooLarge));
    snapshots.apply_restore(&plan, &mut go_on).unwrap();
    assert_eq!(fs::read(fixture.root.join("a.txt")).unwrap(), b"one\n");
    assert_eq!(fs::metadata(fixture.root.join("other")).unwrap().len(), 2000);
}

#[test]
fn what_the_target_skipped_is_not_deleted() {
    let fixture = Fixture::new();
    fixture.write("data", "x".repeat(2000));
    let snapshots = fixture.open();
    let target = snapshots.capture(&id(), &Capture { max_file_size: 1000, ..Capture::default() }).unwrap();
    fixture.write("a.txt", "changed");
    let outcome = restore(&snapshots, &target, Mode::Files, &[]);
    assert_eq!(outcome.plan.files.left[0].reason, LeftReason::NotHeldThen(SkipReason::TooLarge));
    outcome.ok();
    assert!(fixture.root.join("data").exists());
}

#[test]
fn a_file_changed_after_the_safety_snapshot_stops_the_restore() {
    let fixture = Fixture::new();
    let good = fixture.capture();
    fixture.write("a.txt", "one").write("dir/b.txt", "two").write("new", "three");
    let snapshots = fixture.open();
    let safety = fixture.capture();
    let plan = snapshots.plan_restore(&between(&safety, &good, Mode::Files)).unwrap();
    fixture.write("dir/b.txt", "typed just now");
    let before = everything(&fixture.root);
    let error = snapshots.apply_restore(&plan, &mut go_on).unwrap_err();
    assert!(matches!(&error, RestoreError::Changed { path } if path.as_bytes() == b"dir/b.txt"), "{error}");
    assert_eq!(everything(&fixture.root), before);
}

#[test]
fn a_file_changed_in_the_middle_is_kept_and_the_rest_goes_back() {
    let fixture = Fixture::new();
    let good = fixture.capture();
    fixture.write("a.txt", "x").write("dir/b.txt", "x").write("new", "x").write("run.sh", "x");
    let snapshots = fixture.open();
    let safety = fixture.capture();
    let restore = between(&safety, &good, Mode::Files);
    let plan = snapshots.plan_restore(&restore).unwrap();
    let root = fixture.root.clone();
    let mut type_meanwhile = |path: &RepoPath| {
        if path.as_bytes() == b"new" {
            fs::write(root.join("dir/b.txt"), "typed just now").unwrap();
        }
        std::ops::ControlFlow::Continue(())
    };
    let error = snapshots.apply_restore(&plan, &mut type_meanwhile).unwrap_err();
    assert!(matches!(&error, RestoreError::Changed { path } if path.as_bytes() == b"dir/b.txt"), "{error}");

    let reverted = snapshots.revert_restore(&restore, &mut go_on).unwrap();
    assert_eq!(reverted.changed, [RepoPath::from("dir/b.txt")]);
    assert_eq!(fs::read(fixture.root.join("dir/b.txt")).unwrap(), b"typed just now");
    for path in ["a.txt", "new", "run.sh"] {
        assert_eq!(fs::read(fixture.root.join(path)).unwrap(), b"x", "{path}");
    }
    assert_no_leftovers(&fixture);
}

#[test]
fn a_file_that_was_edited_just_now_is_not_deleted() {
    let fixture = Fixture::new();
    let good = fixture.capture();
    fixture.write("new", "known").write("other", "known");
    let snapshots = fixture.open();
    let plan = snapshots.plan_restore(&between(&fixture.capture(), &good, Mode::Files)).unwrap();
    let root = fixture.root.clone();
    let mut edit = |path: &RepoPath| {
        if path.as_bytes() == b"new" {
            fs::write(root.join("new"), "typed just now").unwrap();
        }
        std::ops::ControlFlow::Continue(())
    };
    let error = snapshots.apply_restore(&plan, &mut edit).unwrap_err();
    assert!(matches!(&error, RestoreError::Changed { path } if path.as_bytes() == b"new"), "{error}");
    assert_eq!(fs::read(fixture.root.join("new")).unwrap(), b"typed just now");
}

#[test]
fn files_with_several_names_are_restored_the_first_time() {
    let fixture = Fixture::new();
    let names: Vec<String> = (0..40).map(|number| format!("same/{number}")).collect();
    let link = |from: &str, to: &str| fs::hard_link(fixture.root.join(from), fixture.root.join(to)).unwrap();
    fixture.write("same/0", "one\n");
    names[1..].iter().for_each(|name| link("same/0", name));
    let good = fixture.capture();
    fixture.write("same/0", "two\n").write("new", "x").executable("a.txt");
    ["new2", "new3", "new4"].iter().for_each(|name| link("new", name));
    link("link", "link2");
    link("a.txt", "copy");
    let snapshots = fixture.open();
    let (safety, restored) = restore(&snapshots, &good, Mode::Files, &[]).ok();
    assert_eq!((restored.written, restored.deleted), (41, 6));
    assert_is(&fixture, &good);
    restore(&snapshots, &safety, Mode::Files, &[]).ok();
    assert_is(&fixture, &safety);
}

#[test]
fn the_mode_of_one_name_is_not_that_of_another() {
    let fixture = Fixture::new();
    fixture.write("b", "same\n").write("c", "same\n").executable("c");
    let good = fixture.capture();
    fs::remove_file(fixture.root.join("b")).unwrap();
    fs::hard_link(fixture.root.join("c"), fixture.root.join("b")).unwrap();
    restore(&fixture.open(), &good, Mode::Files, &[]).ok();
    assert_is(&fixture, &good);
}

#[test]
fn a_file_with_several_names_that_was_edited_just_now_is_kept() {
    let fixture = Fixture::new();
    let good = fixture.capture();
    fixture.write("new", "known");
    fs::hard_link(fixture.root.join("new"), fixture.root.join("other")).unwrap();
    let snapshots = fixture.open();
    let plan = snapshots.plan_restore(&between(&fixture.capture(), &good, Mode::Files)).unwrap();
    let file = fs::File::options().write(true).open(fixture.root.join("new")).unwrap();
    let times = file.metadata().unwrap().modified().unwrap();
    // As long as before and with the same time: only the time of the inode tells.
    let mut edit = |path: &RepoPath| {
        fs::write(fixture.root.join("new"), "typed").unwrap();
        file.set_modified(times).unwrap();
        go_on(path)
    };
    let error = snapshots.apply_restore(&plan, &mut edit).unwrap_err();
    assert!(matches!(&error, RestoreError::Changed { .. }), "{error}");
    for name in ["new", "other"] {
        assert_eq!(fs::read(fixture.root.join(name)).unwrap(), b"typed", "{name}");
    }
}

#[test]
fn a_parent_swapped_for_a_link_writes_nothing_outside() {
    let fixture = Fixture::new();
    let good = fixture.capture();
    fixture.write("dir/b.txt", "x").remove("dir/deep");
    let snapshots = fixture.open();
    let safety = fixture.capture();
    let plan = snapshots.plan_restore(&between(&safety, &good, Mode::Files)).unwrap();
    let outside = fixture.base().join("outside");
    fs::rename(fixture.root.join("dir"), &outside).unwrap();
    symlink(&outside, fixture.root.join("dir")).unwrap();
    let before = everything(&outside);

    assert!(snapshots.apply_restore(&plan, &mut go_on).is_err());
    assert!(snapshots.finish_restore(plan.restore(), &mut go_on).is_err());
    let reverted = snapshots.revert_restore(plan.restore(), &mut go_on).unwrap();
    assert_eq!(reverted.changed, [RepoPath::from("dir/b.txt")]);
    assert_eq!(everything(&outside), before);
}

#[test]
fn a_parent_swapped_for_a_link_in_the_middle_writes_nothing_outside() {
    let fixture = Fixture::new();
    let good = fixture.capture();
    fixture.write("a.txt", "x").remove("dir");
    let snapshots = fixture.open();
    let safety = fixture.capture();
    let plan = snapshots.plan_restore(&between(&safety, &good, Mode::Files)).unwrap();
    let outside = fixture.base().join("outside");
    fs::create_dir(&outside).unwrap();
    let (root, target) = (fixture.root.clone(), outside.clone());
    let mut swap = |_: &RepoPath| {
        let _ = symlink(&target, root.join("dir"));
        std::ops::ControlFlow::Continue(())
    };
    let error = snapshots.apply_restore(&plan, &mut swap).unwrap_err();
    assert!(matches!(error, RestoreError::Changed { .. }), "{error}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn hostile_trees_are_refused_as_a_whole() {
    let fixture = Fixture::new();
    let good = fixture.capture();
    let blob = fixture.git(&["rev-parse", "HEAD:a.txt"]);
    for path in [".git/hooks/post-checkout", ".GIT/config", "sub/.git/config", "git~1/x", ".git /x"] {
        let tree = hostile_tree(&fixture, path, &blob);
        let mut target = good.clone();
        target.tree = tree.parse().unwrap();
        let outcome = restore(&fixture.open(), &target, Mode::Files, &[]);
        assert!(
            outcome.plan.refusals().contains(&Refusal::UnsafePath { path: path.into() }),
            "{path}: {:?}",
            outcome.plan.refusals()
        );
        assert!(matches!(outcome.restored, Err(RestoreError::Refused { .. })));
        let forced = Restore { paths: vec![], ..between(&outcome.safety, &target, Mode::Files) };
        assert!(fixture.open().finish_restore(&forced, &mut go_on).is_err());
        assert_is(&fixture, &good);
        assert!(!fixture.root.join(".git/hooks/post-checkout").exists());
    }
}

/// Writes tree objects that git itself would refuse to make.
fn hostile_tree(fixture: &Fixture, path: &str, blob: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    let (mut mode, mut id) = ("100644", blob.to_owned());
    while let Some(name) = parts.pop() {
        let digest =
            (0..20).map(|n| u8::from_str_radix(&id[2 * n..2 * n + 2], 16).unwrap()).collect::<Vec<_>>();
        let entry = [format!("{mode} {name}\0").as_bytes(), &digest].concat();
        let file = fixture.base().join("entry");
        fs::write(&file, entry).unwrap();
        id = fixture.git(&["hash-object", "-t", "tree", "-w", "--literally", file.to_str().unwrap()]);
        mode = "40000";
    }
    id
}

#[test]
fn trees_with_climbing_names_are_refused() {
    let fixture = Fixture::new();
    let good = fixture.capture();
    let blob = fixture.git(&["rev-parse", "HEAD:a.txt"]);
    for path in ["dir/../escaped", "./x", "dir//x"] {
        let mut target = good.clone();
        target.tree = hostile_tree(&fixture, path, &blob).parse().unwrap();
        let outcome = restore(&fixture.open(), &target, Mode::Files, &[]);
        assert!(outcome.restored.is_err(), "{path}");
        assert_is(&fixture, &good);
        assert!(!fixture.base().join("escaped").exists());
    }
}

#[test]
fn nested_repositories_are_never_entered() {
    let fixture = Fixture::new();
    fixture.write("sub/plain", "a plain folder then");
    let plain = fixture.capture();
    fixture.remove("sub");
    fs::create_dir(fixture.root.join("sub")).unwrap();
    let sub = fixture.root.join("sub");
    fixture.git_in(&sub, &["init", "-q"]);
    fixture.write("sub/mine", "in a repository of its own");
    fixture.git_in(&sub, &["add", "-A"]);
    fixture.git_in(&sub, &["commit", "-q", "-m", "inner"]);
    let nested = fixture.capture();
    let snapshots = fixture.open();
    let outcome = restore(&snapshots, &plain, Mode::Files, &[]);
    assert_eq!(outcome.plan.refusals(), [Refusal::NestedRepository { path: "sub".into() }]);

    fixture.write("sub/mine", "more").write("a.txt", "x");
    fixture.git_in(&sub, &["commit", "-q", "-a", "-m", "inner 2"]);
    let outcome = restore(&snapshots, &nested, Mode::Files, &[]);
    assert_eq!(outcome.plan.files.left[0].reason, LeftReason::Submodule);
    outcome.ok();
    assert_eq!(fs::read(fixture.root.join("a.txt")).unwrap(), b"one\n");
    assert_eq!(fs::read(fixture.root.join("sub/mine")).unwrap(), b"more");
}

#[test]
fn a_folder_without_git_is_restored_too() {
    let fixture = Fixture::bare();
    fixture.write("a", "1").write("b/c", "2");
    let snapshots = fixture.open();
    let first = snapshots.capture(&id(), &Capture::default()).unwrap();
    fixture.write("a", "changed").remove("b").write("d", "new");
    let (safety, _) = restore(&snapshots, &first, Mode::Files, &[]).ok();
    assert_eq!(everything(&fixture.root).len(), 3);
    assert_eq!(fs::read(fixture.root.join("b/c")).unwrap(), b"2");
    restore(&snapshots, &safety, Mode::Files, &[]).ok();
    assert_eq!(fs::read(fixture.root.join("d")).unwrap(), b"new");
    assert!(!fixture.root.join(".git").exists());

    let outcome = restore(&snapshots, &first, Mode::Hard, &[]);
    assert_eq!(outcome.plan.refusals(), [Refusal::NoRepository]);
}

#[test]
fn conversions_are_those_of_the_target() {
    let fixture = Fixture::new();
    fixture.write("t.txt", "a\nb\n").write("u.txt", "c\nd\n");
    let lf = fixture.capture();
    fixture
        .write(".gitattributes", "*.txt text eol=crlf\n")
        .write("t.txt", "a\r\nb\r\nc\r\n")
        .write("u.txt", "c\r\nd\r\n");
    let crlf = fixture.capture();
    let snapshots = fixture.open();
    restore(&snapshots, &lf, Mode::Files, &[]).ok();
    assert_is(&fixture, &lf);
    assert_eq!(fs::read(fixture.root.join("t.txt")).unwrap(), b"a\nb\n");
    restore(&snapshots, &crlf, Mode::Files, &[]).ok();
    assert_is(&fixture, &crlf);
    assert_eq!(fs::read(fixture.root.join("t.txt")).unwrap(), b"a\r\nb\r\nc\r\n");
}

#[test]
fn a_private_store_restores_as_well() {
    let fixture = Fixture::new();
    let snapshots = fixture.open_as(&fixture.root, Keep::Private, Way::Fastest);
    let good = snapshots.capture(&id(), &Capture::default()).unwrap();
    fixture.write("a.txt", "x").remove("dir").write("new", "y");
    let (safety, _) = restore(&snapshots, &good, Mode::Files, &[]).ok();
    assert_is(&fixture, &good);
    restore(&snapshots, &safety, Mode::Files, &[]).ok();
    assert_is(&fixture, &safety);
}

#[test]
fn what_git_was_told_not_to_look_at_is_left() {
    let fixture = Fixture::new();
    let first = fixture.capture();
    fixture.write("a.txt", "committed").write("dir/b.txt", "committed").commit("second");
    fixture.git(&["update-index", "--assume-unchanged", "a.txt"]);
    fixture.git(&["update-index", "--skip-worktree", "dir/b.txt"]);
    fixture.write("a.txt", "a local secret").remove("dir/b.txt").write("run.sh", "changed");
    let outcome = restore(&fixture.open(), &first, Mode::Files, &[]);
    let left = |path: &str, reason| Left { path: path.into(), reason };
    assert_eq!(
        outcome.plan.files.left,
        [left("a.txt", LeftReason::Unwatched), left("dir/b.txt", LeftReason::Missing)]
    );
    assert_eq!(outcome.plan.files.writes.len(), 1);
    let (_, restored) = outcome.ok();
    assert_eq!(restored.unwatched, [RepoPath::from("a.txt")]);
    assert_eq!(fs::read(fixture.root.join("a.txt")).unwrap(), b"a local secret");
    assert!(!fixture.root.join("dir/b.txt").exists());
    assert_eq!(fs::read(fixture.root.join("run.sh")).unwrap(), b"#!/bin/sh\n");
}

#[test]
fn what_git_was_told_not_to_look_at_is_told_also_where_no_snapshot_differs() {
    let fixture = Fixture::new();
    let first = fixture.capture();
    fixture.git(&["update-index", "--skip-worktree", "a.txt"]);
    fixture.git(&["update-index", "--assume-unchanged", "run.sh", "dir/b.txt"]);
    fixture.write("a.txt", "a local secret").remove("dir/b.txt");
    let left = [
        Left { path: "a.txt".into(), reason: LeftReason::Unwatched },
        Left { path: "dir/b.txt".into(), reason: LeftReason::Missing },
    ];
    for (paths, left) in [(&[][..], &left[..]), (&["a.txt"], &left[..1]), (&["dir/deep", "run.sh"], &[])] {
        let outcome = restore(&fixture.open(), &first, Mode::Files, paths);
        assert_eq!(outcome.plan.files.left, left, "{paths:?}");
        assert!(outcome.plan.is_empty());
    }
    assert_eq!(fs::read(fixture.root.join("a.txt")).unwrap(), b"a local secret");
    // Whoever names it gets it back.
    let (_, restored) = restore(&fixture.open(), &first, Mode::Files, &["dir"]).ok();
    assert_eq!((restored.written, fs::read(fixture.root.join("dir/b.txt")).unwrap()), (1, b"two\n".to_vec()));
    assert!(restore(&fixture.open(), &first, Mode::Files, &["dir"]).plan.is_empty());
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_not_missed_and_comes_back_by_name() {
    let fixture = Fixture::new();
    let first = fixture.capture();
    fixture.write("dir/b.txt", "committed").write("a.txt", "committed").commit("second");
    fixture.git(&["sparse-checkout", "set", "--no-cone", "/a.txt"]);
    assert!(!fixture.root.join("dir").exists());
    let outcome = restore(&fixture.open(), &first, Mode::Files, &[]);
    assert_eq!(outcome.plan.files.left, []);
    assert_eq!(outcome.ok().1.written, 1);
    assert!(!fixture.root.join("dir").exists());
    let (_, restored) = restore(&fixture.open(), &first, Mode::Files, &["dir/b.txt"]).ok();
    assert_eq!((restored.written, fs::read(fixture.root.join("dir/b.txt")).unwrap()), (1, b"two\n".to_vec()));
}

#[test]
fn where_links_cannot_stand_files_stand_for_them() {
    let fixture = Fixture::new();
    fixture.git(&["config", "core.symlinks", "false"]);
    fixture.remove("link").write("link", "a.txt");
    let first = fixture.capture();
    fixture.write("link", "run.sh");
    let snapshots = fixture.open();
    let (second, restored) = restore(&snapshots, &first, Mode::Files, &[]).ok();
    assert_eq!(restored.written, 1);
    let stands = |text: &str| {
        assert!(fixture.root.join("link").symlink_metadata().unwrap().is_file());
        assert_eq!(fs::read(fixture.root.join("link")).unwrap(), text.as_bytes());
    };
    stands("a.txt");
    assert_eq!(fixture.git(&["status", "--short"]), "");
    restore(&snapshots, &second, Mode::Files, &[]).ok();
    stands("run.sh");
    fixture.remove("link");
    restore(&snapshots, &first, Mode::Files, &[]).ok();
    stands("a.txt");
}

#[test]
fn folders_with_names_as_long_as_can_be_stop_nothing() {
    let fixture = Fixture::new();
    let first = fixture.capture();
    for longest in [4085, 4093] {
        let mut folder = fixture.root.join("copy");
        while folder.as_os_str().len() + 102 < longest {
            folder.push("c".repeat(50));
        }
        folder.push("c".repeat(longest - folder.as_os_str().len() - 1));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("f"), "x").unwrap();
        fixture.assert_exact();
        let (safety, restored) = restore(&fixture.open(), &first, Mode::Files, &[]).ok();
        assert!((restored.deleted, fixture.root.join("copy").exists()) == (1, false), "{longest}");
        restore(&fixture.open(), &safety, Mode::Files, &[]).ok();
        assert_eq!(fs::read(folder.join("f")).unwrap(), b"x");
        fixture.remove("copy");
    }
}

#[test]
fn modes_that_git_does_not_mind_are_no_change() {
    let fixture = Fixture::new();
    fixture.git(&["config", "core.fileMode", "false"]);
    fixture.write("run.sh", "first");
    let first = fixture.capture();
    fixture.write("run.sh", "second");
    fs::set_permissions(fixture.root.join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    restore(&fixture.open(), &first, Mode::Files, &[]).ok();
    assert_eq!(fs::read(fixture.root.join("run.sh")).unwrap(), b"first");
    assert_is(&fixture, &first);
}

#[test]
fn a_path_that_nobody_knows_is_named() {
    let fixture = Fixture::new();
    let first = fixture.capture();
    let outcome =
        restore(&fixture.open(), &first, Mode::Files, &["dir", "dir/deep/c.txt", "nowhere", "a.txt/x"]);
    assert_eq!(outcome.plan.files.unknown, [RepoPath::from("nowhere"), RepoPath::from("a.txt/x")]);
}

#[test]
fn files_convert_as_git_converts_them() {
    let fixture = Fixture::new();
    fixture.git(&["config", "--global", "filter.rot.clean", "tr a-m n-z"]);
    fixture.git(&["config", "--global", "filter.rot.smudge", "tr n-z a-m"]);
    fixture.write(
        ".gitattributes",
        "*.crlf text eol=crlf\n*.id ident\n*.utf16 working-tree-encoding=UTF-16LE\n*.rot filter=rot\n",
    );
    let utf16: Vec<u8> = "grüße\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let contents: [(&str, &[u8]); 4] =
        [("a.crlf", b"one\r\ntwo\r\n"), ("b.id", b"$Id$\n"), ("c.utf16", &utf16), ("d.rot", b"abc\n")];
    for (path, content) in contents {
        fixture.write(path, content);
    }
    fixture.commit("converted");
    let first = fixture.capture();
    for (path, _) in contents {
        fixture.remove(path);
    }
    fixture.git(&["checkout", "-q", "--", "."]);
    let by_git = everything(&fixture.root);
    for (path, _) in contents {
        fixture.write(path, "other\n");
    }
    fixture.remove("c.utf16");
    restore(&fixture.open(), &first, Mode::Files, &[]).ok();
    assert_eq!(everything(&fixture.root), by_git);
    assert_is(&fixture, &first);
}

#[test]
fn line_ends_become_what_git_makes_of_them() {
    let contents: [&[u8]; 7] =
        [b"a\nb\n", b"a\r\nb\n", b"a\r\nb\r\n", b"a\rb\n", b"a\0\nb\n", b"", b"no end"];
    let attributes =
        ["", "text", "text=auto", "-text", "eol=crlf", "text eol=lf", "text=auto eol=crlf", "crlf=input"];
    for setting in ["core.autocrlf=true", "core.autocrlf=input", "core.eol=crlf", "core.eol=lf"] {
        let fixture = Fixture::new();
        for (kind, _) in attributes.iter().enumerate() {
            for (number, content) in contents.iter().enumerate() {
                fixture.write(format!("{kind}/{number}"), content);
            }
        }
        fixture.commit("as they are");
        let rules: String =
            attributes.iter().enumerate().map(|(kind, rule)| format!("{kind}/* {rule}\n")).collect();
        fixture.write(".git/info/attributes", rules);
        let (key, value) = setting.split_once('=').unwrap();
        fixture.git(&["config", key, value]);
        let clear = || {
            for kind in 0..attributes.len() {
                fixture.remove(&kind.to_string());
            }
        };
        clear();
        fixture.git(&["checkout", "-q", "--", "."]);
        let by_git = everything(&fixture.root);
        clear();
        let mut target = fixture.capture();
        target.tree = fixture.git(&["rev-parse", "HEAD^{tree}"]).parse().unwrap();
        restore(&fixture.open(), &target, Mode::Files, &[]).ok();
        assert_eq!(everything(&fixture.root), by_git, "{setting}");
    }
}

#[test]
fn a_required_filter_that_fails_fails_the_restore_before_anything_is_touched() {
    let fails = "test ! -e ../broken && tr N-Z A-M";
    for smudge in [Some(fails), None] {
        for way in [Way::Fastest, Way::GitProgram] {
            let fixture = Fixture::new();
            let config = |key: &str, value: &str| fixture.git(&["config", "--global", key, value]);
            config("filter.rot.clean", "tr A-M N-Z");
            smudge.map(|smudge| config("filter.rot.smudge", smudge));
            config("filter.rot.required", "true");
            fixture.write(".gitattributes", "*.rot filter=rot\n").write("x.rot", "ABC\n").write("y", "1");
            let snapshots = fixture.open_as(&fixture.root, Keep::Repository, way);
            let good = snapshots.capture(&id(), &Capture::default()).unwrap();
            fixture.write("x.rot", "LMA\n").write("y", "2").write("new", "x").write("../broken", "");
            for attributes in ["*.rot filter=rot\n", "*.rot filter=rot\n*.o -text\n"] {
                fixture.write(".gitattributes", attributes);
                let before = everything(&fixture.root);
                let error = restore(&snapshots, &good, Mode::Files, &[]).restored.unwrap_err();
                let (named, told) = (error.to_string(), error.nothing_was_touched());
                assert!(named.contains("`rot`") && named.contains("`x.rot`") && told, "{error:?}");
                assert_eq!(everything(&fixture.root), before, "{way:?}");
            }
            fixture.remove("../broken");
            if smudge.is_some() {
                restore(&snapshots, &good, Mode::Files, &[]).ok();
                assert_eq!(fs::read(fixture.root.join("x.rot")).unwrap(), b"ABC\n");
            }
        }
    }
}

#[test]
fn what_was_private_stays_private() {
    let fixture = Fixture::new();
    fixture.write("secret", "first");
    fs::set_permissions(fixture.root.join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    let first = fixture.capture();
    fixture.write("secret", "second");
    restore(&fixture.open(), &first, Mode::Files, &[]).ok();
    let mode = fs::metadata(fixture.root.join("secret")).unwrap().permissions().mode();
    assert_eq!((mode & 0o777, fs::read(fixture.root.join("secret")).unwrap()), (0o600, b"first".to_vec()));
}

#[test]
fn a_secret_that_is_missing_comes_back_readable_by_its_owner_alone() {
    let fixture = Fixture::new();
    let mode_of = |name: &str| fs::metadata(fixture.root.join(name)).unwrap().permissions().mode() & 0o777;
    fixture.write("kept/.env", "git tracks it").git(&["add", "."]);
    fixture.write("notes", "of no secret").write(".env", "token").write("keys/run.key", "token");
    fixture.executable("keys/run.key");
    let as_new = mode_of("notes");
    assert_ne!(as_new, 0o600, "whoever runs this has an umask that tells nothing");
    fs::set_permissions(fixture.root.join(".env"), fs::Permissions::from_mode(0o600)).unwrap();
    let asked = Capture { secrets: Secrets::Include, ..Capture::default() };
    for (keep, way) in [(Keep::Repository, Way::Fastest), (Keep::Private, Way::GitProgram)] {
        let snapshots = fixture.open_as(&fixture.root, keep, way);
        let with = snapshots.capture(&id(), &asked).unwrap();
        fixture.remove(".env").remove("keys").remove("notes").remove("kept");
        restore(&snapshots, &with, Mode::Files, &[]).ok();
        assert_eq!((mode_of(".env"), mode_of("keys/run.key")), (0o600, 0o700), "{keep:?} {way:?}");
        assert_eq!((mode_of("notes"), mode_of("kept/.env")), (as_new, as_new), "{keep:?} {way:?}");

        // Whoever gave others a look at a secret that is there meant it.
        fixture.write(".env", "another token");
        fs::set_permissions(fixture.root.join(".env"), fs::Permissions::from_mode(0o640)).unwrap();
        restore(&snapshots, &with, Mode::Files, &[]).ok();
        assert_eq!(mode_of(".env"), 0o640, "{keep:?} {way:?}");
        fs::set_permissions(fixture.root.join(".env"), fs::Permissions::from_mode(0o600)).unwrap();
    }
}

#[test]
fn a_secret_that_was_left_out_is_not_deleted_and_is_held_before_it_is_overwritten() {
    let fixture = Fixture::new();
    let snapshots = fixture.open();
    let without = fixture.capture();
    fixture.write("conf/.env", "old token");
    let asked = Capture { secrets: Secrets::Include, ..Capture::default() };
    let with = snapshots.capture(&id(), &asked).unwrap();
    fixture.write("conf/.env", "new token").write("a.txt", "changed");

    let outcome = restore(&snapshots, &without, Mode::Files, &[]);
    assert_eq!(outcome.plan.files.left[0].reason, LeftReason::NotHeldNow(SkipReason::Secret));
    outcome.ok();
    assert_eq!(fs::read(fixture.root.join("a.txt")).unwrap(), b"one\n");
    assert_eq!(fs::read(fixture.root.join("conf/.env")).unwrap(), b"new token");

    fixture.write("a.txt", "changed again");
    let (safety, _) = restore(&snapshots, &with, Mode::Files, &[]).ok();
    assert_eq!(fs::read(fixture.root.join("conf/.env")).unwrap(), b"old token");
    restore(&snapshots, &safety, Mode::Files, &[]).ok();
    assert_eq!(fs::read(fixture.root.join("conf/.env")).unwrap(), b"new token");
    assert_eq!(fs::read(fixture.root.join("a.txt")).unwrap(), b"changed again");
}

#[test]
fn what_does_not_read_back_as_it_was_written_is_an_error() {
    let fixture = Fixture::new();
    let good = fixture.capture();
    fixture.write("dir/b.txt", "broken");
    let snapshots = fixture.open();
    let safety = fixture.capture();
    let restore = between(&safety, &good, Mode::Files);
    let plan = snapshots.plan_restore(&restore).unwrap();
    // Between writing beside the place and putting it there, the disk turns one byte.
    let mut spoil = |path: &RepoPath| {
        for entry in fs::read_dir(fixture.root.join("dir")).unwrap().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(b".stagepost-restore-") {
                assert_eq!(*path, RepoPath::from("dir/b.txt"));
                fs::write(entry.path(), "twp\n").unwrap();
            }
        }
        go_on(path)
    };
    let error = snapshots.apply_restore(&plan, &mut spoil).unwrap_err();
    assert!(
        matches!(&error, RestoreError::NotAsWritten { path } if *path == "dir/b.txt".into()),
        "{error:?}"
    );
}
