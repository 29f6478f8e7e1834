//! What each mode puts back: files, HEAD, branch and index, exactly, and only when nothing is lost.

#![allow(clippy::unwrap_used, reason = "tests may stop at any fault")]

mod restore_support;
mod snapshot_support;

use std::fs;
use std::ops::ControlFlow;

use restore_support::{assert_is, assert_no_leftovers, between, go_on, restore};
use snapshot_support::{Fixture, id};
use stagepost::model::RepoPath;
use stagepost::snapshot::restore::{Mode, Moved, Refusal, RestoreError};
use stagepost::snapshot::{Capture, Keep, Way};

/// Where HEAD is, what is staged and what is not, in git's own words.
fn status(fixture: &Fixture) -> String {
    let head = fs::read_to_string(fixture.root.join(".git/HEAD")).unwrap();
    let commit =
        fixture.command(&fixture.root).args(["rev-parse", "-q", "--verify", "HEAD"]).output().unwrap();
    let commit = String::from_utf8(commit.stdout).unwrap();
    format!("{head}{commit}{}", fixture.git(&["status", "--porcelain=v1", "-uall"]))
}

fn with_staged_and_unstaged() -> Fixture {
    let fixture = Fixture::new();
    fixture.write("a.txt", "staged\n").write("fresh", "staged too\n").git(&["add", "a.txt", "fresh"]);
    fixture.git(&["rm", "-q", "--cached", "dir/b.txt"]);
    fixture.write("a.txt", "staged\nand edited\n").write("untracked", "x");
    fixture
}

#[test]
fn hard_brings_back_staged_and_unstaged_exactly() {
    let fixture = with_staged_and_unstaged();
    let (target, then) = (fixture.capture(), status(&fixture));
    fixture.commit("everything went in");
    fixture.write("a.txt", "more").write("later", "y");
    fixture.git(&["add", "later"]);
    let now = status(&fixture);
    let snapshots = fixture.open();

    let (safety, restored) = restore(&snapshots, &target, Mode::Hard, &[]).ok();
    assert_eq!(status(&fixture), then);
    assert_is(&fixture, &target);
    assert_eq!((restored.head, restored.index), (Moved::Yes, Moved::Yes));
    assert!(fixture.git(&["reflog", "-1"]).contains("restore: moving to"), "{}", fixture.git(&["reflog"]));
    assert!(fixture.git(&["reflog", "-1", "main"]).contains("restore: moving to"));
    assert_no_leftovers(&fixture);

    restore(&snapshots, &safety, Mode::Hard, &[]).ok();
    assert_eq!(status(&fixture), now);
    restore(&snapshots, &target, Mode::Hard, &[]).ok();
    assert_eq!(status(&fixture), then);
    fixture.git(&["fsck", "--strict"]);
}

#[test]
fn mixed_moves_head_and_index_and_no_file() {
    let fixture = with_staged_and_unstaged();
    let target = fixture.capture();
    fixture.commit("everything went in");
    fixture.write("a.txt", "more");
    let files = restore_support::everything(&fixture.root);
    let snapshots = fixture.open();
    let (_, restored) = restore(&snapshots, &target, Mode::Mixed, &[]).ok();
    assert_eq!(restore_support::everything(&fixture.root), files);
    assert_eq!((restored.written, restored.deleted), (0, 0));
    assert_eq!(fixture.git(&["rev-parse", "HEAD"]), target.head.as_ref().unwrap().as_str());
    assert_eq!(fixture.git(&["write-tree"]), target.index_tree.as_ref().unwrap().as_str());
}

#[test]
fn the_index_needs_no_second_look_at_what_was_restored() {
    let fixture = with_staged_and_unstaged();
    let target = fixture.capture();
    fixture.commit("in");
    restore(&fixture.open(), &target, Mode::Hard, &[]).ok();
    let modified = fixture.git(&["diff-files", "--name-only"]);
    assert_eq!(modified, "a.txt", "only what was edited after staging");
}

#[test]
fn another_branch_is_switched_to_and_back() {
    let fixture = Fixture::new();
    let (on_main, then) = (fixture.capture(), status(&fixture));
    fixture.git(&["switch", "-q", "-c", "feature"]);
    fixture.write("a.txt", "feature").commit("on feature");
    let now = status(&fixture);
    let snapshots = fixture.open();
    let (safety, _) = restore(&snapshots, &on_main, Mode::Hard, &[]).ok();
    assert_eq!(status(&fixture), then);
    restore(&snapshots, &safety, Mode::Hard, &[]).ok();
    assert_eq!(status(&fixture), now);

    fixture.git(&["branch", "-q", "-D", "main"]);
    restore(&snapshots, &on_main, Mode::Hard, &[]).ok();
    assert_eq!(status(&fixture), then, "a branch that is gone is made again");
}

#[test]
fn a_branch_that_was_made_again_goes_when_the_restore_is_taken_back() {
    for formats in [&[][..], &["--ref-format=reftable"]] {
        let fixture = Fixture::unborn(formats);
        fixture.write("a.txt", "one").commit("one");
        fixture.git(&["switch", "-q", "-c", "topic"]);
        fixture.write("a.txt", "two").commit("two");
        let target = fixture.capture();
        fixture.git(&["switch", "-q", "main"]);
        fixture.git(&["branch", "-q", "-D", "topic"]);
        let (snapshots, then) = (fixture.open(), status(&fixture));
        let safety = fixture.capture();
        let plan = snapshots.plan_restore(&between(&safety, &target, Mode::Hard)).unwrap();
        let branches = || fixture.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]);

        // Stopped when everything was done.
        let mut steps = 0;
        let stopped = snapshots.apply_restore(&plan, &mut |path| {
            steps += usize::from(*path == RepoPath::from(".git"));
            if steps == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(stopped, Err(RestoreError::Interrupted)));
        assert_eq!(branches(), "main\ntopic");
        snapshots.revert_restore(plan.restore(), &mut go_on).unwrap();
        assert_eq!((branches(), status(&fixture)), ("main".to_owned(), then.clone()));
        snapshots.revert_restore(plan.restore(), &mut go_on).unwrap();

        // Somebody has gone on with it.
        snapshots.apply_restore(&plan, &mut go_on).unwrap();
        fixture.git(&["commit", "-q", "--allow-empty", "-m", "three"]);
        fixture.git(&["switch", "-q", "main"]);
        snapshots.revert_restore(plan.restore(), &mut go_on).unwrap();
        assert_eq!((branches(), status(&fixture)), ("main\ntopic".to_owned(), then));
    }
}

#[test]
fn a_detached_head_and_no_commit_at_all_come_back_too() {
    let fixture = Fixture::unborn(&[]);
    fixture.write("first", "1");
    let (unborn, before_first) = (fixture.capture(), status(&fixture));
    fixture.commit("one");
    fixture.write("second", "2").commit("two");
    fixture.git(&["checkout", "-q", "--detach", "HEAD~1"]);
    let (detached, when_detached) = (fixture.capture(), status(&fixture));
    fixture.git(&["switch", "-q", "main"]);
    let (on_main, when_on_main) = (fixture.capture(), status(&fixture));
    let snapshots = fixture.open();

    restore(&snapshots, &detached, Mode::Hard, &[]).ok();
    assert_eq!(status(&fixture), when_detached);
    restore(&snapshots, &on_main, Mode::Hard, &[]).ok();
    assert_eq!(status(&fixture), when_on_main);
    let (safety, _) = restore(&snapshots, &unborn, Mode::Hard, &[]).ok();
    assert_eq!(status(&fixture), before_first);
    restore(&snapshots, &safety, Mode::Hard, &[]).ok();
    assert_eq!(status(&fixture), when_on_main);
    restore(&snapshots, &detached, Mode::Hard, &[]).ok();
    assert_eq!(status(&fixture), when_detached);
}

#[test]
fn a_branch_whose_new_commits_nobody_holds_is_not_moved() {
    let fixture = Fixture::new();
    let on_main = fixture.capture();
    fixture.write("a.txt", "main moved on").commit("second");
    fixture.git(&["switch", "-q", "-c", "feature"]);
    let outcome = restore(&fixture.open(), &on_main, Mode::Hard, &[]);
    assert_eq!(outcome.plan.refusals(), [Refusal::BranchMoved { branch: "main".into() }]);
    assert!(outcome.restored.unwrap_err().is_conflict());
}

#[test]
fn a_branch_of_another_work_tree_is_not_taken() {
    let fixture = Fixture::new();
    let on_main = fixture.capture();
    fixture.git(&["switch", "-q", "-c", "feature"]);
    let other = fixture.base().join("other");
    fixture.git(&["worktree", "add", "-q", other.to_str().unwrap(), "main"]);
    let outcome = restore(&fixture.open(), &on_main, Mode::Hard, &[]);
    assert_eq!(outcome.plan.refusals(), [Refusal::BranchElsewhere { branch: "main".into() }]);
}

#[test]
fn a_linked_work_tree_has_its_own_head_and_index() {
    let fixture = Fixture::new();
    let other = fixture.base().join("other");
    fixture.git(&["worktree", "add", "-q", "-b", "side", other.to_str().unwrap()]);
    let snapshots = fixture.open_as(&other, Keep::Repository, Way::Fastest);
    let target = snapshots.capture(&id(), &Capture::default()).unwrap();
    fs::write(other.join("a.txt"), "changed").unwrap();
    fixture.git_in(&other, &["commit", "-q", "-a", "-m", "side"]);
    let main = status(&fixture);
    restore(&snapshots, &target, Mode::Hard, &[]).ok();
    assert_eq!(fixture.git_in(&other, &["status", "--porcelain"]), "");
    assert_eq!(fixture.git_in(&other, &["rev-parse", "HEAD"]), target.head.unwrap().as_str());
    assert_eq!(status(&fixture), main);
}

#[test]
fn what_is_going_on_is_refused_and_not_disturbed() {
    let fixture = Fixture::new();
    let target = fixture.capture();
    fixture.git(&["switch", "-q", "-c", "side"]);
    fixture.write("a.txt", "side").commit("side");
    fixture.git(&["switch", "-q", "main"]);
    fixture.write("a.txt", "main").commit("main");
    let merge = fixture.command(&fixture.root).args(["merge", "-q", "side"]).output().unwrap();
    assert!(!merge.status.success());
    let snapshots = fixture.open();
    let outcome = restore(&snapshots, &target, Mode::Hard, &[]);
    assert!(outcome.plan.refusals().contains(&Refusal::InProgress { operation: "merge" }));
    assert!(outcome.plan.refusals().contains(&Refusal::Conflicts));
    assert!(matches!(outcome.restored, Err(RestoreError::Refused { .. })));

    restore(&snapshots, &target, Mode::Files, &[]).ok();
    assert_eq!(fs::read(fixture.root.join("a.txt")).unwrap(), b"one\n");
    assert!(fixture.root.join(".git/MERGE_HEAD").exists());
}

#[test]
fn a_held_index_lock_refuses_before_any_file_is_touched() {
    let fixture = Fixture::new();
    let target = fixture.capture();
    fixture.write("a.txt", "x").commit("second");
    let snapshots = fixture.open();
    let safety = fixture.capture();
    let plan = snapshots.plan_restore(&between(&safety, &target, Mode::Hard)).unwrap();
    fs::write(fixture.root.join(".git/index.lock"), "").unwrap();
    let error = snapshots.apply_restore(&plan, &mut go_on).unwrap_err();
    assert!(error.nothing_was_touched(), "{error}");
    let plan = snapshots.plan_restore(&between(&safety, &target, Mode::Hard)).unwrap();
    assert_eq!(plan.refusals(), [Refusal::IndexLocked]);
    fs::remove_file(fixture.root.join(".git/index.lock")).unwrap();
    assert_is(&fixture, &safety);
}

#[test]
fn a_commit_made_after_the_safety_snapshot_is_not_lost() {
    let fixture = Fixture::new();
    let target = fixture.capture();
    fixture.write("a.txt", "x").commit("second");
    let snapshots = fixture.open();
    let safety = fixture.capture();
    let plan = snapshots.plan_restore(&between(&safety, &target, Mode::Hard)).unwrap();
    fixture.git(&["commit", "-q", "--allow-empty", "-m", "just now"]);
    let head = fixture.git(&["rev-parse", "HEAD"]);
    let error = snapshots.apply_restore(&plan, &mut go_on).unwrap_err();
    assert!(
        matches!(&error, RestoreError::Refused { refusals } if refusals == &[Refusal::HeadMoved]),
        "{error}"
    );
    assert_eq!(fixture.git(&["rev-parse", "HEAD"]), head);
    assert_is(&fixture, &safety);
}

#[test]
fn a_commit_made_in_the_middle_is_not_lost() {
    let fixture = Fixture::new();
    let target = fixture.capture();
    fixture.write("a.txt", "x").commit("second");
    let snapshots = fixture.open();
    let safety = fixture.capture();
    let plan = snapshots.plan_restore(&between(&safety, &target, Mode::Hard)).unwrap();
    let mut made = String::new();
    let mut commit = |path: &RepoPath| {
        if path.as_bytes() == b".git" && made.is_empty() {
            fixture.git(&["commit", "-q", "--allow-empty", "-m", "just now"]);
            made = fixture.git(&["rev-parse", "HEAD"]);
        }
        std::ops::ControlFlow::Continue(())
    };
    let error = snapshots.apply_restore(&plan, &mut commit).unwrap_err();
    assert!(matches!(error, RestoreError::HeadMoved), "{error}");
    assert_eq!(fixture.git(&["rev-parse", "HEAD"]), made);
    let reverted = snapshots.revert_restore(plan.restore(), &mut go_on).unwrap();
    assert_eq!(reverted.head, Moved::Left);
    assert_is(&fixture, &safety);
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
}

#[test]
fn something_staged_in_the_middle_stops_and_is_left_by_the_revert() {
    let fixture = Fixture::new();
    let target = fixture.capture();
    fixture.write("a.txt", "x").git(&["add", "a.txt"]);
    let snapshots = fixture.open();
    let safety = fixture.capture();
    let restore = between(&safety, &target, Mode::Hard);
    fixture.write("other", "y").git(&["add", "other"]);
    let error = snapshots.finish_restore(&restore, &mut go_on).unwrap_err();
    assert!(matches!(error, RestoreError::IndexChanged), "{error}");
    let reverted = snapshots.revert_restore(&restore, &mut go_on).unwrap();
    assert_eq!(reverted.index, Moved::Left);
    assert_eq!(fs::read(fixture.root.join("a.txt")).unwrap(), b"x");
    assert!(fixture.git(&["ls-files"]).contains("other"));
    assert_no_leftovers(&fixture);
}

#[test]
fn single_paths_are_for_files_only() {
    let fixture = Fixture::new();
    let target = fixture.capture();
    let outcome = restore(&fixture.open(), &target, Mode::Hard, &["a.txt"]);
    assert_eq!(outcome.plan.refusals(), [Refusal::PathsNeedFiles]);
}

#[test]
fn a_private_store_gives_back_what_was_staged() {
    let fixture = Fixture::new();
    let snapshots = fixture.open_as(&fixture.root, Keep::Private, Way::Fastest);
    fixture.write("a.txt", "staged only here\n").git(&["add", "a.txt"]);
    let target = snapshots.capture(&id(), &Capture::default()).unwrap();
    let then = status(&fixture);
    fixture.git(&["reset", "-q", "--hard"]);
    fixture.git(&["reflog", "expire", "--expire=all", "--all"]);
    fixture.git(&["gc", "-q", "--prune=now"]);
    restore(&snapshots, &target, Mode::Hard, &[]).ok();
    assert_eq!(status(&fixture), then);
    assert_eq!(fixture.git(&["show", ":a.txt"]), "staged only here");
    fixture.git(&["fsck", "--strict"]);
}

#[test]
fn repositories_that_only_git_understands_are_restored_as_well() {
    let formats = ["--object-format=sha256", "--ref-format=reftable"];
    for (format, keep) in formats.into_iter().flat_map(|f| [(f, Keep::Repository), (f, Keep::Private)]) {
        let fixture = Fixture::unborn(&[format]);
        let snapshots = fixture.open_as(&fixture.root, keep, Way::Fastest);
        fixture.write("a", "1").write("dir/b", "2").commit("first");
        fixture.write("a", "staged").git(&["add", "a"]);
        let target = snapshots.capture(&id(), &Capture::default()).unwrap();
        let state = || {
            (
                restore_support::everything(&fixture.root),
                fixture.git(&["status", "--porcelain"]),
                fixture.git(&["rev-parse", "HEAD"]),
            )
        };
        let then = state();
        fixture.write("c", "3").remove("dir").commit("second");
        let now = state();
        let (safety, _) = restore(&snapshots, &target, Mode::Hard, &[]).ok();
        assert_eq!(state(), then, "{format} {keep:?}");
        restore(&snapshots, &safety, Mode::Hard, &[]).ok();
        assert_eq!(state(), now, "{format} {keep:?}");
    }
}

#[test]
fn what_git_was_told_not_to_look_at_stays_and_is_told_not_to_be_looked_at_after_a_hard_restore() {
    for mark in ["assume-unchanged", "skip-worktree"] {
        let fixture = Fixture::new();
        let target = fixture.capture();
        fixture.write("a.txt", "two\n").write("run.sh", "two\n").commit("second");
        fixture.git(&["update-index", &format!("--{mark}"), "a.txt"]);
        fixture.write("a.txt", "only here\n");
        let marks = || fixture.git(&["ls-files", "-v", "a.txt", "run.sh"]);
        let (now, status_now) = (marks(), status(&fixture));
        let snapshots = fixture.open();
        let outcome = restore(&snapshots, &target, Mode::Hard, &[]);
        assert_eq!(outcome.plan.files.left[0].path, "a.txt".into());
        let (safety, _) = outcome.ok();
        assert_eq!(fixture.git(&["show", ":a.txt"]), "one", "{mark}");
        assert_eq!(fixture.git(&["rev-parse", "HEAD"]), target.head.as_ref().unwrap().as_str());
        assert_eq!(std::fs::read(fixture.root.join("a.txt")).unwrap(), b"only here\n");
        assert_eq!(std::fs::read(fixture.root.join("run.sh")).unwrap(), b"#!/bin/sh\n");
        assert_eq!(marks(), now, "{mark}");
        restore(&snapshots, &safety, Mode::Hard, &[]).ok();
        assert_eq!(status(&fixture), status_now);
        assert_eq!(std::fs::read(fixture.root.join("a.txt")).unwrap(), b"only here\n");
    }
}

#[test]
fn what_is_to_be_added_later_is_still_to_be_added_after_the_index_moved() {
    for mode in [Mode::Hard, Mode::Mixed] {
        let fixture = Fixture::new();
        fixture.write("later.txt", "not yet\n").write(":odd\nname", "").git(&["add", "-N", "later.txt"]);
        fixture.git(&["--literal-pathspecs", "add", "-N", ":odd\nname"]);
        let (target, then) = (fixture.capture(), status(&fixture));
        fixture.write("a.txt", "two\n").git(&["add", "a.txt"]);
        let now = status(&fixture);
        let snapshots = fixture.open();
        let (safety, _) = restore(&snapshots, &target, mode, &[]).ok();
        let expected = if mode == Mode::Hard { then } else { now.replace("M  a.txt", " M a.txt") };
        assert_eq!(status(&fixture), expected, "{mode:?}");
        assert_eq!(fixture.git(&["diff", "--name-only", "--diff-filter=A"]).lines().count(), 2);
        restore(&snapshots, &safety, mode, &[]).ok();
        assert_eq!(status(&fixture), now, "{mode:?}");
        assert_no_leftovers(&fixture);
    }
}

#[test]
fn marks_of_the_index_come_back_with_a_restore_and_its_undo() {
    for (keep, way) in
        [(Keep::Repository, Way::Fastest), (Keep::Repository, Way::GitProgram), (Keep::Private, Way::Fastest)]
    {
        let fixture = Fixture::new();
        let snapshots = fixture.open_as(&fixture.root, keep, way);
        let seen = || {
            let intended = fixture.git(&["diff", "--name-only", "--diff-filter=A"]);
            (fixture.git(&["ls-files", "-v"]), intended, status(&fixture))
        };
        fixture.write("later.txt", "not yet\n");
        let (bare, without) = (snapshots.capture(&id(), &Capture::default()).unwrap(), seen());
        fixture.git(&["add", "-N", "later.txt"]);
        let (target, then) = (snapshots.capture(&id(), &Capture::default()).unwrap(), seen());
        assert_eq!(target.marks.intent_to_add, [RepoPath::from("later.txt")], "{way:?}");
        // The second one has a state to go by.
        assert_eq!(snapshots.capture(&id(), &Capture::default()).unwrap().marks, target.marks, "{way:?}");
        assert_eq!(target.tree.as_str(), fixture.oracle(), "the tree is that of `git add -A`");
        fixture.git(&["rm", "-q", "--cached", "later.txt"]);
        fixture.remove("later.txt");
        let now = seen();
        let (safety, restored) = restore(&snapshots, &target, Mode::Hard, &[]).ok();
        assert_eq!((restored.index, seen()), (Moved::Yes, then.clone()), "{keep:?} {way:?}");
        assert!(restore(&snapshots, &target, Mode::Hard, &[]).plan.is_empty());
        restore(&snapshots, &safety, Mode::Hard, &[]).ok();
        assert_eq!(seen(), now, "{keep:?} {way:?}");
        // What was not to be added then is not to be added again.
        restore(&snapshots, &target, Mode::Hard, &[]).ok();
        restore(&snapshots, &bare, Mode::Hard, &[]).ok();
        assert_eq!(seen(), without, "{keep:?} {way:?}");
        assert_no_leftovers(&fixture);
    }
}

#[test]
fn files_that_git_was_told_not_to_look_at_are_so_again() {
    for mark in ["assume-unchanged", "skip-worktree"] {
        let fixture = Fixture::new();
        fixture.git(&["update-index", &format!("--{mark}"), "a.txt"]);
        let (target, then) = (fixture.capture(), fixture.git(&["ls-files", "-v"]));
        fixture.git(&["update-index", &format!("--no-{mark}"), "a.txt"]);
        let (safety, _) = restore(&fixture.open(), &target, Mode::Mixed, &[]).ok();
        assert_eq!(fixture.git(&["ls-files", "-v"]), then, "{mark}");
        assert_eq!(fixture.git(&["write-tree"]), target.index_tree.unwrap().as_str());
        // Someone may rely on the mark: it is given, never taken.
        assert!(restore(&fixture.open(), &safety, Mode::Mixed, &[]).plan.is_empty());
    }
}
