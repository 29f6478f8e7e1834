//! What is done again, and what is not, when a run goes on.

use std::collections::BTreeSet;

use stagepost::flow::{Again, Decided, Error, Flows, Outcome, Resume, Verdict};
use stagepost::retention::Policy;
use stagepost::store::Query;

use crate::support::Story;

#[test]
fn a_failure_that_the_run_went_on_from_is_a_result_like_any_other() {
    let story = Story::new();
    let flow = r#"
name: tolerant
steps:
  - {id: lint, on_failure: continue, run: 'echo lint >> log; exit 1'}
  - {id: style, on_failure: continue, run: 'echo style >> log; exit 1'}
  - {id: pay, run: 'echo pay >> log'}
  - {id: test, run: 'echo test >> log; test -e ok'}
  - {id: tell, on_failure: continue, run: 'echo tell >> log; exit 1', retry: {attempts: 2, backoff: 1ms}}
"#;
    assert!(matches!(story.start(flow).unwrap(), Outcome::Failed { .. }));
    story.home.write("ok", "");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "lint style pay test test tell tell");
    assert!(matches!(story.resume(Resume::default()), Err(Error::Over { .. })), "nothing is left to do");
    let after = Resume { after: Some("style".to_owned()), ..Resume::default() };
    assert_eq!(story.resume(after).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "lint style pay test test tell tell pay test tell tell");
    // Who takes the permission back wants it done.
    let strict = flow.replace("{id: tell, on_failure: continue,", "{id: tell,");
    assert!(matches!(story.resume_as(&strict, Resume::default()).unwrap(), Outcome::Failed { .. }));
}

const CAREFUL: &str = r#"
name: careful
steps:
  - {id: a, run: 'rm -f base.txt; false', retry: {attempts: 2, backoff: 1ms}, on_failure: rollback}
"#;

#[test]
fn a_rollback_goes_back_to_where_the_first_attempt_began() {
    let story = Story::new();
    story.home.write("base.txt", "base");
    assert!(matches!(story.start(CAREFUL).unwrap(), Outcome::Failed { .. }));
    assert_eq!(story.home.read("base.txt").as_deref(), Some("base"));
    // Someone who asks again begins again.
    story.home.write("base.txt", "mended");
    assert!(matches!(story.resume(Resume::default()).unwrap(), Outcome::Failed { .. }));
    assert_eq!(story.home.read("base.txt").as_deref(), Some("mended"));
}

#[test]
fn a_rollback_goes_back_to_where_the_first_attempt_began_also_after_a_crash() {
    let story = Story::new();
    story.home.write("base.txt", "base");
    story.killed_at("a failed (1)", |story| story.start(CAREFUL));
    assert_eq!(story.home.read("base.txt"), None);
    assert!(matches!(story.resume(Resume::default()).unwrap(), Outcome::Failed { .. }));
    assert_eq!(story.home.read("base.txt").as_deref(), Some("base"));
}

/// Gives up all that nothing needs.
fn collect(story: &Story) {
    let strict = Policy { keep_last: Some(1), ..Policy::default() };
    story.project.apply_gc(&story.project.plan_gc(&strict).unwrap()).unwrap();
}

#[test]
fn a_collection_leaves_what_a_run_goes_on_from() {
    let tolerant = r#"
name: tolerant
steps:
  - {id: lint, on_failure: continue, run: 'echo lint >> log; exit 1'}
  - {id: pay, effects: once, run: 'echo pay >> log'}
  - {id: test, run: 'echo test >> log; test -e ok'}
"#;
    let story = Story::new();
    assert!(matches!(story.start(tolerant).unwrap(), Outcome::Failed { .. }));
    collect(&story);
    story.home.write("ok", "");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "lint pay test test", "a failure that it went on from is a result");

    let story = Story::new();
    story.home.write("base.txt", "base");
    story.killed_at("a failed (1)", |story| story.start(CAREFUL));
    collect(&story);
    assert!(matches!(story.resume(Resume::default()).unwrap(), Outcome::Failed { .. }));
    assert_eq!(story.home.read("base.txt").as_deref(), Some("base"), "the files before the step are held");
    let files = |story: &Story| {
        let query = Query { run: Some(story.id.clone()), ..Query::default() };
        story.project.log(&query).unwrap().iter().filter(|one| one.content.snapshot.is_some()).count()
    };
    assert_eq!(files(&story), 1);
    collect(&story);
    assert_eq!(files(&story), 0, "once the run has ended, nobody goes back to them");
}

const CARELESS: &str = r#"
name: careless
steps:
  - {id: a, run: 'cat base.txt; rm -f base.txt; false', on_failure: rollback}
"#;

#[test]
fn a_rollback_that_was_due_when_the_driver_was_killed_is_done_before_the_step_is_tried_again() {
    let story = Story::new();
    story.home.write("base.txt", "base");
    story.killed_at("a failed (1)", |story| story.start(CARELESS));
    assert_eq!(story.home.read("base.txt"), None);
    story.watch.take();
    assert!(matches!(story.resume(Resume::default()).unwrap(), Outcome::Failed { .. }));
    assert_eq!(story.output("a"), b"base");
    let seen = ["rolled back a", "a begins (2)", "a: base", "a failed (2)", "rolled back a"];
    assert_eq!(story.watch.take(), seen);
}

#[test]
fn a_rollback_that_was_done_when_the_driver_was_killed_is_not_done_again() {
    let story = Story::new();
    story.home.write("base.txt", "base");
    story.killed_at("rolled back a", |story| story.start(CARELESS));
    story.home.write("base.txt", "mended");
    assert!(matches!(story.resume(Resume::default()).unwrap(), Outcome::Failed { .. }));
    assert_eq!(story.output("a"), b"mended");
    assert_eq!(story.home.read("base.txt").as_deref(), Some("mended"));
}

#[test]
fn what_was_done_beside_a_step_that_is_rolled_back_is_done_again() {
    let mut story = Story::new();
    story.jobs = 3;
    let flow = r#"
name: siblings
steps:
  - {id: before, run: 'echo before >> before.txt'}
  - {id: a, needs: [before], on_failure: rollback, run: 'touch "$MARK.a"; until test -e "$MARK"; do sleep 0.01; done; sleep 0.3; test -e ok'}
  - {id: b, needs: [before], run: 'until test -e "$MARK.a"; do sleep 0.01; done; echo precious > b.txt'}
  - {id: c, needs: [b], run: 'echo more > c.txt; touch "$MARK"'}
  - {id: pay, needs: [before], effects: once, run: 'echo pay >> "$MARK.paid"'}
"#;
    let mark = tempfile::tempdir().unwrap();
    let flow = flow.replace("$MARK", mark.path().join("mark").to_str().unwrap());
    assert!(matches!(story.start(&flow).unwrap(), Outcome::Failed { .. }));
    assert_eq!(story.home.read("b.txt"), None);
    let plan = Flows::of(&story.project).plan(&story.id, &Resume::default()).unwrap();
    let with = Verdict::RolledBack { with: "a".to_owned() };
    assert_eq!((plan.step("b"), plan.step("c")), (Some(&with), Some(&with)));
    assert!(plan.step("before").unwrap().is_reuse() && plan.step("pay").unwrap().is_reuse());
    story.home.write("ok", "");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!((story.lines("b.txt"), story.lines("c.txt")), ("precious".to_owned(), "more".to_owned()));
    assert_eq!(std::fs::read_to_string(mark.path().join("mark.paid")).unwrap(), "pay\n");
    assert!(matches!(story.resume(Resume::default()), Err(Error::Over { .. })));
}

const PAYING: &str = r#"
name: paying
steps:
  - {id: a, inputs: [in.txt], run: 'echo a >> log; test ! -e bad'}
  - {id: pay, effects: once, inputs: [price.txt], run: 'echo pay >> log'}
  - {id: c, run: 'echo c >> log; test -e go'}
"#;

#[test]
fn what_is_spared_when_a_step_is_done_again_alone_is_spared_until_that_is_done() {
    let only = || Resume { again: Some(Again { step: "a".to_owned(), only: true }), ..Resume::default() };
    let story = Story::new();
    assert!(matches!(story.start(PAYING).unwrap(), Outcome::Failed { .. }));
    assert!(matches!(story.resume(only()).unwrap(), Outcome::Failed { .. }));
    story.home.write("bad", "");
    assert!(matches!(story.resume(only()).unwrap(), Outcome::Failed { .. }));
    story.home.remove("bad");
    story.killed_at("a begins (4)", |story| story.resume(Resume::default()));
    story.home.write("go", "");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log").matches("pay").count(), 1, "{}", story.lines("log"));
    assert!(matches!(story.resume(Resume::default()), Err(Error::Over { .. })));
    // Only until then: from now on it is made from the new result.
    story.home.write("in.txt", "changed");
    assert!(matches!(story.resume(Resume::default()), Err(Error::DoneOnce { .. })));
}

#[test]
fn a_step_that_may_be_done_once_only_and_was_done_is_not_done_again_unasked() {
    let said = |said| Resume { decided: vec![("pay".to_owned(), said)], ..Resume::default() };
    for (file, why) in [
        ("price.txt", "file price.txt changed"),
        ("in.txt", "step `a`, which it is made from, is done again"),
    ] {
        let story = Story::new();
        story.home.write("go", "");
        assert_eq!(story.start(PAYING).unwrap(), Outcome::Completed);
        story.home.write(file, "other");
        let refused = story.resume(Resume::default()).unwrap_err();
        let expected = format!("step `pay` may be done once only and was done (attempt 1), but {why}");
        assert_eq!(refused.to_string(), expected);
        assert_eq!(story.lines("log"), "a pay c", "nothing is done before someone decides");
        assert_eq!(story.resume(said(Decided::Done)).unwrap(), Outcome::Completed);
        assert!(matches!(story.resume(Resume::default()), Err(Error::Over { .. })), "that is not forgotten");
        assert_eq!(story.lines("log").matches("pay").count(), 1);
        story.home.write(file, "another");
        assert_eq!(story.resume(said(Decided::Redo)).unwrap(), Outcome::Completed);
        assert_eq!(story.lines("log").matches("pay").count(), 2);
        assert!(matches!(story.resume(Resume::default()), Err(Error::Over { .. })));
        story.home.write(file, "yet another");
        let accepted = Resume { accept_changes: true, ..Resume::default() };
        assert_eq!(story.resume(accepted).unwrap(), Outcome::Completed);
        assert_eq!(story.lines("log").matches("pay").count(), 3);
    }
}

#[test]
fn items_that_may_be_done_once_only_and_were_done_are_not_done_again_unasked() {
    // Of six items some are pruned when the run is completed; then the whole is decided about.
    for (list, more) in [("[1, 2]", "[1, 2, 3]"), ("[1, 2, 3, 4, 5, 6]", "[1, 2, 3, 4, 5, 6, 7]")] {
        let story = Story::new();
        let flow = r#"
name: items
steps:
  - {id: list, inputs: [in.txt], run: 'cat in.txt > "$STAGEPOST_OUTPUT"'}
  - {id: pay, effects: once, for_each: {list: list.output}, run: 'echo pay >> log'}
"#;
        story.home.write("in.txt", list);
        assert_eq!(story.start(flow).unwrap(), Outcome::Completed);
        let paid = story.lines("log");
        story.home.write("in.txt", more);
        assert!(matches!(story.resume(Resume::default()), Err(Error::DoneOnce { .. })));
        let done = Resume { decided: vec![("pay".to_owned(), Decided::Done)], ..Resume::default() };
        assert_eq!(story.resume(done).unwrap(), Outcome::Completed);
        let expected = if list.len() < 8 { format!("{paid} pay") } else { paid };
        assert_eq!(story.lines("log"), expected);
    }
}

#[test]
fn every_doing_on_purpose_has_a_key_of_its_own_also_when_earlier_ones_are_pruned() {
    let story = Story::new();
    let flow = r#"
name: keys
steps:
  - {id: a, run: 'echo "$STAGEPOST_KEY" >> log'}
  - {id: b, run: 'true'}
"#;
    story.start(flow).unwrap();
    for _ in 0..8 {
        let again = Again { step: "a".to_owned(), only: false };
        story.resume(Resume { again: Some(again), ..Resume::default() }).unwrap();
    }
    let log = story.lines("log");
    let keys: BTreeSet<&str> = log.split(' ').collect();
    assert_eq!(keys.len(), 9, "{log}");
}

#[test]
fn a_changed_definition_is_refused_also_behind_a_step_that_is_new() {
    let story = Story::new();
    let flow = "name: two\nsteps:\n  - {id: a, run: 'echo a >> log'}\n  - {id: b, run: 'test -e ok'}\n";
    story.start(flow).unwrap();
    let other = flow
        .replace("  - {id: a, run: 'echo a", "  - {id: first, run: 'true'}\n  - {id: a, run: 'echo other");
    let refused = story.resume_as(&other, Resume::default()).unwrap_err();
    assert_eq!(refused.to_string(), "a step of run `r` changed since it was done: a");
    story.home.write("ok", "");
    let accepted = Resume { accept_changes: true, ..Resume::default() };
    assert_eq!(story.resume_as(&other, accepted).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "a other");
}

#[test]
fn what_is_put_back_does_not_make_its_readers_run_again() {
    let story = Story::new();
    let flow = r#"
name: readers
steps:
  - {id: make, outputs: [out/a.txt], run: 'mkdir -p out; echo a > out/a.txt; echo make >> log'}
  - {id: file, inputs: [out/a.txt], run: 'echo file >> log'}
  - {id: folder, inputs: [out], run: 'echo folder >> log'}
  - {id: both, inputs: [b.txt, in], outputs: [b.txt, in/c.txt], run: 'echo b >> b.txt; echo c > in/c.txt; echo both >> log'}
  - {id: last, run: 'test -e ok'}
"#;
    story.home.write("b.txt", "").write("in/other.txt", "");
    assert!(matches!(story.start(flow).unwrap(), Outcome::Failed { .. }));
    story.home.remove("out/a.txt").write("ok", "");
    std::fs::remove_dir(story.project.place().root.join("out")).unwrap();
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "make file folder both");
    assert_eq!(story.lines("out/a.txt"), "a");
    story.home.write("b.txt", "tampered");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "make file folder both both", "what it leaves is still checked");
}

#[test]
fn a_rollback_waits_for_those_that_ran_beside_it() {
    let mut story = Story::new();
    story.jobs = 2;
    story.home.write("kept.txt", "before");
    let flow = r#"
name: beside
steps:
  - {id: bad, needs: [], on_failure: rollback, run: 'until test -e begun; do sleep 0.01; done; exit 1'}
  - {id: long, needs: [], run: 'trap "echo late > kept.txt; exit 1" TERM; touch begun; while :; do sleep 0.02; done'}
"#;
    assert!(matches!(story.start(flow).unwrap(), Outcome::Failed { .. }));
    assert_eq!(story.home.read("kept.txt").as_deref(), Some("before"));
}

#[test]
fn a_step_that_may_be_done_once_only_is_not_simply_tried_again_after_its_time_was_over() {
    let flow = r#"
name: once
steps:
  - id: pay
    effects: once
    timeout: 100ms
    retry: {attempts: 2, backoff: 1ms}
    run: 'echo pay >> log; sleep 600'
"#;
    let story = Story::new();
    assert!(matches!(story.start(flow).unwrap(), Outcome::Failed { .. }));
    assert_eq!(story.lines("log"), "pay", "nobody knows whether it was done");
    assert!(matches!(story.resume(Resume::default()), Err(Error::Once { attempt: 1, .. })));
    let with = |verify: &str| {
        let story = Story::new();
        let flow = flow.replace("effects: once", &format!("effects: once\n    verify: '{verify}'"));
        (story.start(&flow).unwrap() == Outcome::Completed, story.lines("log"))
    };
    assert_eq!(with("true"), (true, "pay".to_owned()));
    assert_eq!(with("false"), (false, "pay pay".to_owned()), "it was not done, so it can be tried again");
}
