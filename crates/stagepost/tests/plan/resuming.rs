//! Cut off anywhere, a run goes on where it was, and nobody is asked twice.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::json;
use stagepost::plan::{Agents, Error, Job, Plan, Request, Standing, Words};
use stagepost_testutil::TempProject;

use crate::support::{drive, job, job_with_files, judge, named, new, planner, resume, scored, watch};

const SCORES: [f64; 3] = [4.0, 6.0, 8.0];

#[test]
fn cut_off_at_any_point_it_goes_on_and_ends_the_same() {
    let whole = TempProject::git();
    let expected = scored(&whole.open(), &named(&job_with_files(), "a3f9b2c1"), &SCORES).unwrap();
    let mut points = 0;
    for at in 1.. {
        let home = TempProject::git();
        let asked = RefCell::new(Vec::new());
        if !run_until(&home, &asked, at) {
            break;
        }
        points += 1;
        let project = home.open();
        if at > 1 {
            let history = Plan::all(&project).unwrap()[0].history().unwrap();
            assert_eq!(Standing::of(&project, &history), Standing::Interrupted, "cut off at {at}");
        }
        assert!(!run_until(&home, &asked, usize::MAX), "it ends");
        let mut calls = asked.into_inner();
        assert_eq!(calls.len(), 6, "cut off at {at}: {calls:?}");
        calls.sort();
        calls.dedup();
        assert_eq!(calls.len(), 6, "cut off at {at}: someone was asked twice");
        let outcome = scored(&home.open(), &named(&job_with_files(), "a3f9b2c1"), &[]).unwrap();
        assert_eq!(outcome.last["plan"], expected.last["plan"]);
        assert_eq!((outcome.iterations, outcome.tokens), (expected.iterations, expected.tokens));
        for file in [
            "my_song_raw",
            "my_song_evaluation",
            "my_song_a3f9b2c1_iter02_raw",
            "my_song_a3f9b2c1_iter03_evaluation",
        ] {
            let path = format!("artifacts/my_song/checkpoints/plans/{file}.json");
            assert_eq!(home.read(&path), whole.read(&path), "cut off at {at}: {file}");
        }
    }
    assert!(points >= 13, "only {points} points were tried");
}

/// Drives the run and dies when something happens for the `at`th time; says whether it died.
fn run_until(home: &TempProject, asked: &RefCell<Vec<(String, u32)>>, at: usize) -> bool {
    let project = home.open();
    let note = |request: &Request<'_>| asked.borrow_mut().push((request.role.to_string(), request.iteration));
    let mut judging = judge(&SCORES);
    let mut planner = |request: &Request<'_>| {
        note(request);
        planner(request)
    };
    let mut judge = |request: &Request<'_>| {
        note(request);
        judging(request)
    };
    let mut events = 0;
    let what = named(&job_with_files(), "a3f9b2c1");
    let ran = catch_unwind(AssertUnwindSafe(|| {
        watch(&project, &what, Agents::new(&mut planner, &mut judge), &mut |_| {
            events += 1;
            // Not a panic message: unwinding is all that is wanted.
            if events == at {
                std::panic::resume_unwind(Box::new("cut off"));
            }
        })
        .unwrap();
    }));
    ran.is_err()
}

#[test]
fn a_changed_job_is_noticed_and_named() {
    let home = TempProject::git();
    let project = home.open();
    let first = scored(&project, &new(&job()), &[4.0, 5.0, 6.0]).unwrap();
    let changed = Job {
        input: json!({"song": "another"}),
        judge: Some(Words::Line("./judge".into())),
        max_iterations: 4,
        ..job()
    };
    let refused = scored(&project, &resume(&changed, &first.run), &[0.0; 4]).unwrap_err();
    let Error::Changed { what, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(what, ["judge", "input"]);
    let mut anyway = resume(&changed, &first.run);
    anyway.accept_changes = true;
    let outcome = scored(&project, &anyway, &[4.0, 5.0, 6.0, 9.0]).unwrap();
    assert_eq!((outcome.approved, outcome.iterations), (true, 4));
    // What was accepted is what counts from now on.
    assert!(scored(&project, &resume(&changed, &first.run), &[]).is_ok());
    assert!(scored(&project, &resume(&job(), &first.run), &[]).is_err());
}

#[test]
fn the_same_job_again_is_a_new_run() {
    let home = TempProject::git();
    let project = home.open();
    let first = scored(&project, &new(&job()), &[8.0]).unwrap();
    let second = scored(&project, &new(&job()), &[8.0]).unwrap();
    assert_ne!(first.run, second.run);
}

#[test]
fn two_cannot_drive_one_run() {
    let home = TempProject::git();
    let (project, other) = (home.open(), home.open());
    let mut refused = None;
    let mut standing = None;
    let mut planner = |request: &Request<'_>| {
        let meanwhile = drive(&other, &resume(&job(), request.run), &mut planner, &mut judge(&[8.0]));
        refused = meanwhile.err();
        let history = Plan::open(&other, request.run).unwrap().history().unwrap();
        standing = Some(Standing::of(&other, &history));
        planner(request)
    };
    let outcome = drive(&project, &new(&job()), &mut planner, &mut judge(&[8.0])).unwrap();
    assert!(outcome.approved);
    assert!(matches!(refused, Some(Error::Driven { .. })), "{refused:?}");
    assert_eq!(standing, Some(Standing::Running));
}

#[test]
fn a_run_that_is_not_there_cannot_be_resumed() {
    let home = TempProject::git();
    let missing = "0badcafe".parse().unwrap();
    let error = scored(&home.open(), &resume(&job(), &missing), &[8.0]).unwrap_err();
    assert!(matches!(error, Error::NoRun { .. }), "{error:?}");
}

#[test]
fn a_run_of_which_a_collection_left_only_the_end_is_not_begun_anew() {
    let strict = stagepost::retention::Policy { keep_last: Some(1), ..Default::default() };
    for scores in [[4.0, 6.0, 8.0], [4.0, 6.5, 6.0]] {
        let home = TempProject::git();
        let project = home.open();
        let before = scored(&project, &new(&job()), &scores).unwrap();
        for _ in 0..2 {
            project.apply_gc(&project.plan_gc(&strict).unwrap()).unwrap();
            // Nobody is there to be asked.
            let after = scored(&project, &resume(&job(), &before.run), &[]).unwrap();
            assert_eq!((after.approved, after.iterations), (before.approved, 3));
            assert_eq!(after.last, before.last, "it is still there, and still the newest");
        }
    }
}
