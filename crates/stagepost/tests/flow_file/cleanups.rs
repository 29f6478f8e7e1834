//! Old runs that failed are given up; everything else stays, and the report says why.

use std::fs;
use std::time::Duration;

use stagepost::flow::cleanup::{self, Fact, Policy, Reason, Report};
use stagepost::flow::{Error, Flows, Outcome, RunState, Status};
use stagepost::model::Timestamp;
use stagepost_testutil::{TempProject, run_id};

use crate::support::*;

const FAILS: &str = "name: demo\nsteps: [{id: a, run: 'head -c 200000 /dev/urandom > big.bin', outputs: [big.bin]}, {id: b, run: 'test -e go'}]";

fn day(count: i64) -> Timestamp {
    Timestamp::from_micros(count * 86_400_000_000).unwrap()
}

fn fact(run: &str, status: Status, changed: i64) -> Fact {
    Fact { run: run_id(run), status, changed_at: day(changed), bytes: 450 * 1024, protected: None }
}

#[test]
fn only_old_runs_that_ended_badly_or_were_killed_go() {
    let mut forked = fact("forked", Status::Failed, 0);
    forked.protected = Some(Reason::Forked);
    let facts = [
        fact("killed", Status::Interrupted, 1),
        fact("run-001", Status::Failed, 0),
        fact("given-up", Status::Cancelled, 2),
        fact("turned-down", Status::Declined, 2),
        fact("recent", Status::Failed, 5),
        fact("cut-off", Status::Interrupted, 9),
        fact("busy", Status::Running, 0),
        fact("asks", Status::Waiting, 0),
        fact("done", Status::Completed, 0),
        forked,
    ];
    let plan = Policy::default().plan(&facts, day(10));
    let gone: Vec<&str> = plan.delete.iter().map(|seen| seen.run.as_str()).collect();
    assert_eq!(gone, ["run-001", "killed", "given-up", "turned-down"]);
    let kept: Vec<(&str, Reason)> = plan.keep.iter().map(|(seen, why)| (seen.run.as_str(), *why)).collect();
    assert_eq!(
        kept,
        [
            ("asks", Reason::Waiting),
            ("busy", Reason::Running),
            ("done", Reason::Completed),
            ("forked", Reason::Forked),
            ("recent", Reason::Recent),
            ("cut-off", Reason::Recent),
        ]
    );
    let strict = Policy { max_age: Duration::from_secs(3 * 86_400), ..Policy::default() };
    assert!(strict.plan(&facts, day(10)).delete.iter().any(|seen| seen.run.as_str() == "recent"));
}

#[test]
fn the_report_is_as_the_design_has_it() {
    let plan = Policy::default()
        .plan(&[fact("run-001", Status::Failed, 0), fact("r_2", Status::Running, 9)], day(10));
    let report = Report::of_plan(&plan, Duration::from_secs(7 * 86_400), day(10)).markdown();
    let expected = "\
# Checkpoint Cleanup Report

**Date**: 1970-01-11T00:00:00.000Z
**Mode**: Dry run (nothing was deleted)
**Max Age**: 7 days

## Summary

- Runs scanned: 2
- Runs to clean: 1
- Disk space to free, at most: 450 KB

## Runs to delete

1. run-001 (failed, age: 10 days, size: 450 KB)

## Kept runs

1. r\\_2 (running, age: 1 day, size: 450 KB): somebody drives it
";
    assert_eq!(report, expected);
}

#[test]
fn cleanup_test_d3_6_old_failed_runs_are_found_and_deleted_and_their_room_comes_back() {
    let home = TempProject::git();
    let project = home.open();
    assert!(matches!(start(&project, "bad", FAILS), Outcome::Failed { .. }));
    assert_eq!(start(&project, "good", &flow_of(2)), Outcome::Completed);
    drop(project);
    let folder = home.root().join(".claude/context/runs");

    let later = open_later(&home, 8);
    let plan = cleanup::plan(&later, &Policy::default()).unwrap();
    let gone: Vec<&str> = plan.delete.iter().map(|seen| seen.run.as_str()).collect();
    assert_eq!(gone, ["bad"]);
    assert!(plan.delete[0].bytes > 200_000 && plan.delete[0].age_days == 7, "{plan:?}");
    assert!(folder.join("bad/run.json").exists(), "a plan deletes nothing");

    let cleaned = cleanup::apply(&later, &plan).unwrap();
    assert!(cleaned.bytes > 150_000, "{cleaned:?}");
    assert_eq!(names(&folder), ["good"], "the files of a deleted run go");
    assert!(!later.place().store.join("flow/bad").exists());
    assert!(later.verify().unwrap().damage.is_empty(), "the journal still verifies");
    let report = Report::of_done(&cleaned, Duration::from_secs(7 * 86_400), day(8));
    let path = cleanup::write_report(&later, &report).unwrap();
    assert!(path.ends_with(".claude/context/reports/checkpoint-cleanup-report.md"));
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains("- Runs scanned: 2") && text.contains("1. bad (failed, age: 7 days"), "{text}");

    let again = cleanup::plan(&later, &Policy::default()).unwrap();
    assert!(again.delete.is_empty() && again.keep.len() == 1, "{again:?}");
    assert!(cleanup::is_deleted(&later, &run_id("bad")).unwrap());

    // Its results are gone: going on would do completed steps again without a word.
    home.write("go", "");
    let refused = resume(&later, "bad");
    assert!(matches!(&refused, Err(Error::Deleted { run }) if *run == run_id("bad")), "{refused:?}");
}

#[test]
fn a_run_that_someone_went_on_with_meanwhile_stays() {
    let home = TempProject::git();
    let project = home.open();
    start(&project, "bad", FAILS);
    drop(project);
    let later = open_later(&home, 8);
    let plan = cleanup::plan(&later, &Policy::default()).unwrap();
    home.write("go", "");
    assert_eq!(resume(&later, "bad").unwrap(), Outcome::Completed);
    let cleaned = cleanup::apply(&later, &plan).unwrap();
    assert!(cleaned.deleted.is_empty(), "{cleaned:?}");
    assert_eq!(RunState::load(&later, &run_id("bad")).unwrap().status, Status::Completed);
}

#[test]
fn a_past_that_another_run_shares_and_what_someone_pinned_stay() {
    let home = TempProject::git();
    let project = home.open();
    start(&project, "bad", FAILS);
    start(&project, "dear", FAILS);
    let flows = Flows::of(&project);
    flows.fork(&run_id("bad"), "a", &run_id("fork")).unwrap();
    let state = RunState::load(&project, &run_id("dear")).unwrap();
    let checkpoint = state.step("a").unwrap().current().unwrap().checkpoint;
    project.pin(&project.resolve(&checkpoint.to_string()).unwrap()).unwrap();
    drop(project);
    let later = open_later(&home, 30);
    let plan = cleanup::plan(&later, &Policy::default()).unwrap();
    let why = |run: &str| plan.keep.iter().find(|(seen, _)| seen.run.as_str() == run).map(|(_, why)| *why);
    assert_eq!((why("bad"), why("dear")), (Some(Reason::Forked), Some(Reason::Pinned)));
}

#[test]
fn one_run_can_be_looked_at_alone() {
    let home = TempProject::git();
    let project = home.open();
    start(&project, "one", FAILS);
    start(&project, "two", FAILS);
    drop(project);
    let later = open_later(&home, 8);
    let policy = Policy { only: Some(run_id("two")), ..Policy::default() };
    let plan = cleanup::plan(&later, &policy).unwrap();
    assert_eq!(plan.delete.len() + plan.keep.len(), 1);
    assert_eq!(plan.delete[0].run, run_id("two"));
}
