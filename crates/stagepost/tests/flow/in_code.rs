//! Steps in code.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use stagepost::flow::cleanup::{self, Policy, is_deleted};
use stagepost::flow::definition::Retry;
use stagepost::flow::{Error, Options, Run, RunState, Status, StepOptions};
use stagepost::model::StepStatus;
use stagepost_testutil::{TempProject, run_id};

fn quick(attempts: u32) -> StepOptions {
    let retry = Retry { attempts, backoff: Duration::ZERO, ..Retry::default() };
    StepOptions { retry, timeout: None }
}

fn ok<T>(value: T) -> io::Result<T> {
    Ok(value)
}

fn no<T>(why: &str) -> io::Result<T> {
    Err(io::Error::other(why.to_owned()))
}

#[test]
fn a_step_that_was_done_is_not_done_again() {
    let home = TempProject::git();
    let (project, id) = (home.open(), run_id("nightly"));
    let done = Cell::new(0);
    for _ in 0..3 {
        // Each round is another program: the run is opened again and was never finished.
        let run = Run::open(&project, &id, Options::default()).unwrap();
        let first: Vec<u32> = run
            .step("first", || {
                ok({
                    done.set(done.get() + 1);
                    vec![1, 2, 3]
                })
            })
            .unwrap();
        let sum: u32 = run
            .step("sum", || {
                ok({
                    done.set(done.get() + 1);
                    first.iter().sum::<u32>()
                })
            })
            .unwrap();
        assert_eq!(sum, 6);
    }
    assert_eq!(done.get(), 2);
    let state = RunState::load(&project, &id).unwrap();
    assert_eq!((state.status, state.steps.len()), (Status::Interrupted, 2));
}

#[test]
fn a_result_too_deep_to_be_read_back_is_refused_and_one_with_many_lists_is_not() {
    let home = TempProject::git();
    let (project, id) = (home.open(), run_id("deep"));
    let nested = |depth| (0..depth).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
    let run = Run::start(&project, &id, Options::default()).unwrap();
    let flat = serde_json::Value::from(vec![serde_json::json!([1]); 300]);
    for (name, value) in [("flat", flat), ("deep", nested(120))] {
        assert_eq!(run.step(name, || ok(value.clone())).unwrap(), value);
    }
    assert!(run.step("too deep", || ok(nested(128))).is_err());
    drop(run);
    let again = Run::open(&project, &id, Options::default()).unwrap();
    assert_eq!(again.step("deep", || no::<serde_json::Value>("it was done")).unwrap(), nested(120));
    assert_eq!(again.step("too deep", || ok(2)).unwrap(), 2, "nothing of it was recorded");
}

#[test]
fn a_finished_run_keeps_its_results_and_goes_on_if_asked_for_more() {
    let home = TempProject::git();
    let (project, id) = (home.open(), run_id("r"));
    let run = Run::start(&project, &id, Options::default()).unwrap();
    run.step("a", || ok(1)).unwrap();
    assert_eq!(RunState::load(&project, &id).unwrap().status, Status::Running);
    run.finish().unwrap();
    assert_eq!(RunState::load(&project, &id).unwrap().status, Status::Completed);
    assert!(matches!(Run::start(&project, &id, Options::default()), Err(Error::Exists { .. })));

    let again = Run::open(&project, &id, Options::default()).unwrap();
    assert_eq!(again.step("a", || no::<i32>("it was done")).unwrap(), 1);
    again.step("b", || ok("more".to_owned())).unwrap();
    drop(again);
    assert_eq!(RunState::load(&project, &id).unwrap().status, Status::Interrupted);
}

#[test]
fn one_program_drives_a_run() {
    let home = TempProject::git();
    let (project, id) = (home.open(), run_id("r"));
    let run = Run::open(&project, &id, Options::default()).unwrap();
    let refused = Run::open(&project, &id, Options::default()).unwrap_err();
    let expected = format!("run `r` is being driven by process {}", std::process::id());
    assert_eq!(refused.to_string(), expected);
    drop(run);
    Run::open(&project, &id, Options::default()).unwrap();
}

#[test]
fn failures_are_kept_and_tried_again_as_often_as_was_said() {
    let home = TempProject::git();
    let (project, id) = (home.open(), run_id("r"));
    let run = Run::open(&project, &id, Options::default()).unwrap();
    let told = Cell::new(Vec::new());
    let tell = |attempt| told.set([told.take(), vec![attempt]].concat());
    let failed = run.step_with("flaky", &quick(2), |attempt| {
        tell(attempt);
        no::<()>("no luck")
    });
    let failed = failed.unwrap_err();
    assert_eq!(failed.to_string(), "step `flaky` failed (attempt 2)");
    assert_eq!(std::error::Error::source(&failed).unwrap().to_string(), "no luck");
    run.fail("no luck").unwrap();

    // Whoever opens it again asks again; the numbers go on.
    let run = Run::open(&project, &id, Options::default()).unwrap();
    let done = run.step_with("flaky", &quick(2), |attempt| {
        tell(attempt);
        if attempt == 3 { no("still none") } else { ok(attempt) }
    });
    assert_eq!(done.unwrap(), 4);
    assert_eq!(told.take(), [1, 2, 3, 4]);
    let state = RunState::load(&project, &id).unwrap();
    let step = state.step("flaky").unwrap();
    let how: Vec<_> = step.attempts.iter().map(|one| (one.attempt, one.status)).collect();
    let failed = StepStatus::Failed;
    assert_eq!(how, [(1, failed), (2, failed), (3, failed), (4, StepStatus::Completed)]);
    assert_eq!(step.attempts[0].record.error.as_deref(), Some("no luck"));
}

#[test]
fn an_attempt_that_was_cut_off_counts() {
    let home = TempProject::git();
    let (project, id) = (home.open(), run_id("r"));
    let run = Run::open(&project, &id, Options::default()).unwrap();
    let cut_off = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = run.step("risky", || -> io::Result<()> { std::panic::resume_unwind(Box::new("killed")) });
    }));
    assert!(cut_off.is_err());
    drop(run);
    let run = Run::open(&project, &id, Options::default()).unwrap();
    assert_eq!(run.step_with("risky", &StepOptions::default(), ok).unwrap(), 2);
}

#[test]
fn a_result_that_comes_too_late_is_refused() {
    let home = TempProject::git();
    let (project, id) = (home.open(), run_id("r"));
    let run = Run::open(&project, &id, Options::default()).unwrap();
    let options = StepOptions { timeout: Some(Duration::from_millis(5)), ..quick(1) };
    let late = run.step_with("slow", &options, |_| {
        std::thread::sleep(Duration::from_millis(20));
        ok(1)
    });
    let source = std::error::Error::source(&late.unwrap_err()).unwrap().to_string();
    assert_eq!(source, "step `slow` took longer than 5ms");
    let state = RunState::load(&project, &id).unwrap();
    assert!(state.step("slow").unwrap().last().unwrap().record.timed_out);
    assert!(state.step("slow").unwrap().current().is_none());
}

#[test]
fn steps_in_steps_and_steps_side_by_side() {
    let home = TempProject::git();
    let (project, id) = (home.open(), run_id("r"));
    let count = AtomicU32::new(0);
    let work = || -> Result<u32, Error> {
        let run = Run::open(&project, &id, Options::default())?;
        let outer = run.nested("outer", |inner| -> Result<u32, Error> {
            let one: u32 = inner.step("one", || {
                count.fetch_add(1, Ordering::Relaxed);
                ok(1)
            })?;
            let two: u32 = inner.within("deep").step("two", || ok(2))?;
            Ok(one + two)
        })?;
        let run = &run;
        let sum: u32 = std::thread::scope(|threads| {
            let started: Vec<_> = (0..8u32)
                .map(|n| threads.spawn(move || run.step(&format!("side/{n}"), || ok(n)).unwrap()))
                .collect();
            started.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        Ok(outer + sum)
    };
    assert_eq!((work().unwrap(), work().unwrap()), (31, 31));
    assert_eq!(count.load(Ordering::Relaxed), 1);
    let state = RunState::load(&project, &id).unwrap();
    for name in ["outer", "outer/one", "outer/deep/two", "side/7"] {
        assert!(state.step(name).is_some_and(|step| step.current().is_some()), "{name}");
    }
}

#[test]
fn the_same_step_twice_at_once_is_refused() {
    let home = TempProject::git();
    let (project, id) = (home.open(), run_id("r"));
    let run = Run::open(&project, &id, Options::default()).unwrap();
    let inner = run.step("a", || run.step("a", || ok(1)));
    assert!(matches!(inner, Err(Error::Step { .. })), "{inner:?}");
}

#[test]
fn a_recorded_result_of_another_shape_is_an_error_and_so_is_a_bad_name() {
    let home = TempProject::git();
    let (project, id) = (home.open(), run_id("r"));
    let run = Run::open(&project, &id, Options::default()).unwrap();
    run.step("a", || ok("text".to_owned())).unwrap();
    let other = run.step("a", || ok(1u32)).unwrap_err();
    assert_eq!(other.to_string(), "the recorded result of step `a` is not what the program expects");
    for bad in ["", "a/", "/a", "a\nb", &"x".repeat(256)] {
        assert!(matches!(run.step(bad, || ok(1)), Err(Error::StepName { .. })), "{bad:?}");
    }
}

#[test]
fn pruning_keeps_the_newest_and_every_result() {
    let home = TempProject::git();
    let (project, id) = (home.open(), run_id("r"));
    let run = Run::open(&project, &id, Options { keep_last: Some(5), ..Options::default() }).unwrap();
    for n in 1..=10u32 {
        run.step(&format!("step-{n}"), || ok(n)).unwrap();
    }
    run.finish().unwrap();
    let state = RunState::load(&project, &id).unwrap();
    let thinned: Vec<bool> = state.steps.iter().map(|step| step.current().unwrap().thinned).collect();
    assert_eq!(thinned.iter().filter(|thinned| **thinned).count(), 5);
    assert!(state.step("step-1").unwrap().current().unwrap().thinned);
    assert!(!state.step("step-6").unwrap().current().unwrap().thinned);
    let run = Run::open(&project, &id, Options::default()).unwrap();
    assert_eq!(run.step("step-1", || no::<u32>("it was done")).unwrap(), 1, "results are not given up");
    let mut damage = 0;
    project.store().audit(&mut |_| damage += 1).unwrap();
    assert_eq!(damage, 0);
}

#[test]
fn a_run_that_follows_a_file_is_not_driven_by_a_program() {
    let story = crate::support::Story::new();
    story.start("name: f\nsteps:\n  - {id: a, run: 'true'}\n").unwrap();
    let error = Run::open(&story.project, &story.id, Options::default()).map(drop).unwrap_err();
    let said = "run `r` follows the flow file of `f`, so no program can do steps in it";
    assert_eq!(error.to_string(), said);
    assert!(!story.project.place().store.join("flow/r").exists(), "nothing is left of the attempt");
}

fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Project(stagepost::project::Error::Store(error)) if error.is_damage())
}

/// Goes on with a run of `count` steps, each of which was done, and returns the attempts of one more step.
fn go_on(home: &TempProject, count: u32) -> u32 {
    // Another process: nothing is remembered from before.
    let (project, id) = (home.open(), run_id("r"));
    let run = Run::open(&project, &id, Options::default()).unwrap();
    for n in 0..count {
        let kept = run.step(&format!("step-{n}"), || no::<u32>("it was done")).unwrap();
        assert_eq!(kept, n);
    }
    run.step_with("next", &quick(1), |attempt| no::<u32>(&attempt.to_string())).unwrap_err();
    RunState::load(&project, &id).unwrap().step("next").unwrap().last().unwrap().attempt
}

#[test]
fn what_is_beside_the_store_only_makes_going_on_quicker() {
    let home = TempProject::git();
    let (project, id) = (home.open(), run_id("r"));
    let run = Run::open(&project, &id, Options::default()).unwrap();
    for n in 0..300u32 {
        run.step(&format!("step-{n}"), || ok(n)).unwrap();
    }
    let lines = project.place().store.join("flow/r/attempts");
    drop(run);
    assert_eq!(go_on(&home, 300), 1);
    let whole = std::fs::read(&lines).unwrap();
    assert!(whole.windows(4).filter(|four| four == b"end\t").count() >= 300);
    let text = String::from_utf8(whole.clone()).unwrap();
    let second = text.split_inclusive('\n').filter(|line| !line.contains("step-1\n")).collect::<String>();
    let damaged = [
        (whole[..whole.len() / 2].to_vec(), 2),
        (second.into_bytes(), 4),
        (whole.iter().map(|byte| byte ^ 0x11).collect(), 6),
        (Vec::new(), 8),
    ];
    for (bytes, attempt) in damaged {
        std::fs::write(&lines, bytes).unwrap();
        assert_eq!(go_on(&home, 300), attempt);
        assert_eq!(go_on(&home, 300), attempt + 1, "what was missing was written down again");
        let text = std::fs::read(&lines).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(text.lines().any(|line| line.starts_with("end\t") && line.ends_with("\tstep-299")));
        std::fs::write(&lines, &whole).unwrap();
    }
}

#[test]
fn damage_is_noticed_before_anything_is_done_or_handed_over() {
    let home = TempProject::git();
    let (project, id) = (home.open(), run_id("r"));
    let run = Run::open(&project, &id, Options::default()).unwrap();
    for n in 0..5u32 {
        run.step(&format!("step-{n}"), || ok(n)).unwrap();
    }
    let database = rusqlite::Connection::open(project.place().store.join("store.db")).unwrap();
    drop(run);
    let wrong = |sql: &str| assert_eq!(database.execute(sql, []).unwrap(), 1);
    wrong("UPDATE pieces SET data = x'39' WHERE number = 3");
    let project = home.open();
    let run = Run::open(&project, &id, Options::default()).unwrap();
    for n in [0, 1, 3, 4] {
        assert_eq!(run.step(&format!("step-{n}"), || no::<u32>("it was done")).unwrap(), n);
    }
    let error = run.step("step-2", || ok(2u32)).unwrap_err();
    assert!(is_damage(&error), "{error}");
    drop(run);
    wrong("UPDATE entries SET body = CAST(replace(body, 'step-4', 'step-5') AS BLOB) WHERE seq = 5");
    let error = Run::open(&home.open(), &id, Options::default()).map(drop).unwrap_err();
    assert!(is_damage(&error), "{error}");
}

#[test]
fn a_step_that_another_thread_has_just_done_is_not_done_again() {
    let home = TempProject::git();
    let project = home.open();
    let run = Run::open(&project, &run_id("r"), Options::default()).unwrap();
    for n in 0..400 {
        let (name, count) = (format!("s{n}"), AtomicU32::new(0));
        let work = || ok(count.fetch_add(1, Ordering::SeqCst));
        // Both ask again and again until it is done; the one gets what the other made.
        let until_done = || while matches!(run.step(&name, work), Err(Error::Running { .. })) {};
        std::thread::scope(|threads| {
            threads.spawn(until_done);
            until_done();
        });
        assert_eq!(count.load(Ordering::SeqCst), 1, "{name}");
    }
}

#[test]
fn a_run_that_was_deleted_before_it_ended_is_there_again_when_it_is_begun_again() {
    let home = TempProject::git();
    let project = home.open();
    let id = run_id("r");
    let run = Run::open(&project, &id, Options::default()).unwrap();
    assert_eq!(run.step("a", || ok(1)).unwrap(), 1);
    drop(run);
    let policy = Policy { max_age: Duration::ZERO, only: None };
    let plan = cleanup::plan(&project, &policy).unwrap();
    assert_eq!(cleanup::apply(&project, &plan).unwrap().deleted.len(), 1);
    let run = Run::open(&project, &id, Options::default()).unwrap();
    assert_eq!(run.step("a", || ok(2)).unwrap(), 2);
    run.finish().unwrap();
    assert!(!is_deleted(&project, &id).unwrap());
    assert_eq!(RunState::load(&project, &id).unwrap().status, Status::Completed);
}
