//! Flow files that are run, stopped and gone on with.

use serde_json::json;
use stagepost::flow::{Again, Decided, Error, Outcome, Resume, Status, Verdict};
use stagepost::model::StepStatus;

use crate::support::Story;

const THREE: &str = r#"
name: three
steps:
  - id: one
    run: 'echo one >> log; printf ''{"n": 1}'' > "$STAGEPOST_OUTPUT"'
  - id: two
    run: 'echo two >> log; cat "$STAGEPOST_INPUT" > seen.json; test ! -e fail'
  - id: three
    run: [sh, -c, 'echo three >> log; echo "$STAGEPOST_STEP $STAGEPOST_ATTEMPT $STAGEPOST_RUN"']
"#;

#[test]
fn steps_run_in_order_and_hand_results_on() {
    let story = Story::new();
    assert_eq!(story.start(THREE).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "one two three");
    let seen: serde_json::Value = serde_json::from_str(&story.home.read("seen.json").unwrap()).unwrap();
    assert_eq!((&seen["one"]["n"], &seen["one"]["status"]), (&json!(1), &json!("completed")));
    assert_eq!(String::from_utf8(story.output("three")).unwrap(), "three 1 r\n");
    let state = story.state();
    assert_eq!((state.status, state.steps.len()), (Status::Completed, 3));
    assert!(!story.project.place().store.join("flow/r").exists(), "nothing is left beside the store");
}

#[test]
fn a_failed_run_goes_on_after_the_last_completed_step() {
    let story = Story::new();
    story.home.write("fail", "");
    let failed = Outcome::Failed { why: "step `two` failed: exit code 1".to_owned() };
    assert_eq!(story.start(THREE).unwrap(), failed);
    assert_eq!(story.state().status, Status::Failed);
    story.home.remove("fail");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "one two two three");
    let again = story.resume(Resume::default()).unwrap_err();
    assert_eq!(again.to_string(), "run `r` is completed already");
    let attempts: Vec<_> = story.state().step("two").unwrap().attempts.iter().map(|one| one.status).collect();
    assert_eq!(attempts, [StepStatus::Failed, StepStatus::Completed]);
}

#[test]
fn a_changed_definition_of_a_completed_step_is_refused_or_done_again() {
    let story = Story::new();
    story.home.write("fail", "");
    story.start(THREE).unwrap();
    story.home.remove("fail");
    let changed = THREE.replace("echo one >>", "echo uno >>");
    let refused = story.resume_as(&changed, Resume::default()).unwrap_err();
    assert_eq!(refused.to_string(), "a step of run `r` changed since it was done: one");
    let accepted = Resume { accept_changes: true, ..Resume::default() };
    assert_eq!(story.resume_as(&changed, accepted).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "one two uno two three");
    assert_eq!(story.state().step("one").unwrap().attempts.len(), 2, "the old result stays in the history");
}

#[test]
fn a_change_of_a_step_that_was_not_done_is_just_used() {
    let story = Story::new();
    story.home.write("fail", "");
    story.start(THREE).unwrap();
    let mended = THREE.replace("test ! -e fail", "true");
    assert_eq!(story.resume_as(&mended, Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "one two two three");
}

#[test]
fn resuming_after_a_step_does_the_later_ones_again() {
    let story = Story::new();
    story.start(THREE).unwrap();
    let after = |step: &str| Resume { after: Some(step.to_owned()), ..Resume::default() };
    assert_eq!(story.resume(after("one")).unwrap(), Outcome::Completed);
    assert_eq!(story.resume(after("2")).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "one two three two three three");
    let unknown = story.resume(after("nine")).unwrap_err();
    assert!(matches!(&unknown, Error::NoStep { known, .. } if known.len() == 3), "{unknown}");
}

const DIAMOND: &str = r#"
name: diamond
steps:
  - {id: top, run: 'echo top >> log'}
  - {id: left, needs: [top], run: 'echo left >> log'}
  - {id: right, needs: [top], inputs: [in.txt], run: 'echo right >> log'}
  - {id: bottom, needs: [left, right], run: 'echo bottom >> log'}
"#;

#[test]
fn a_step_is_done_again_with_or_without_what_depends_on_it() {
    let story = Story::new();
    story.home.write("in.txt", "1");
    story.start(DIAMOND).unwrap();
    let again = |only| Resume { again: Some(Again { step: "left".to_owned(), only }), ..Resume::default() };
    story.resume(again(false)).unwrap();
    assert_eq!(story.lines("log"), "top left right bottom left bottom");
    story.resume(again(true)).unwrap();
    assert_eq!(story.lines("log"), "top left right bottom left bottom left");
    // What was left alone on purpose is not found stale later.
    assert!(matches!(story.resume(Resume::default()), Err(Error::Over { .. })));
}

#[test]
fn a_changed_input_file_makes_its_reader_and_what_depends_on_it_run_again() {
    let story = Story::new();
    story.home.write("in.txt", "1");
    story.start(DIAMOND).unwrap();
    story.home.write("in.txt", "2");
    let plan = stagepost::flow::Flows::of(&story.project).plan(&story.id, &Resume::default()).unwrap();
    assert_eq!(plan.step("right"), Some(&Verdict::Changed { parts: vec!["file in.txt".to_owned()] }));
    assert_eq!(plan.step("bottom"), Some(&Verdict::Downstream { of: "right".to_owned() }));
    assert_eq!(plan.step("left"), Some(&Verdict::Reuse { attempt: 1 }));
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "top left right bottom right bottom");
}

#[test]
fn independent_steps_run_side_by_side() {
    let mut story = Story::new();
    story.jobs = 2;
    // Each waits for the other: one at a time, neither would end.
    let flow = r#"
name: pair
steps:
  - {id: a, needs: [], timeout: 20s, run: 'touch a; until test -e b; do sleep 0.01; done'}
  - {id: b, needs: [], timeout: 20s, run: 'touch b; until test -e a; do sleep 0.01; done'}
"#;
    assert_eq!(story.start(flow).unwrap(), Outcome::Completed);
}

#[test]
fn a_failed_step_ends_its_siblings() {
    let mut story = Story::new();
    story.jobs = 2;
    let flow = r#"
name: pair
steps:
  - {id: bad, needs: [], run: 'until test -e ready; do sleep 0.01; done; exit 3'}
  - {id: long, needs: [], run: 'touch ready; sleep 600'}
"#;
    let failed = Outcome::Failed { why: "step `bad` failed: exit code 3".to_owned() };
    assert_eq!(story.start(flow).unwrap(), failed);
    let state = story.state();
    assert_eq!(state.step("long").unwrap().last().unwrap().status, StepStatus::Cancelled);
    assert_eq!(state.step("bad").unwrap().last().unwrap().record.exit, Some(3));
}

#[test]
fn retries_wait_and_stop_at_codes_that_do_not_count() {
    let story = Story::new();
    let flow = r#"
name: flaky
steps:
  - id: a
    run: 'echo x >> log; test "$STAGEPOST_ATTEMPT" -ge 3 || exit 75'
    retry: {attempts: 5, backoff: 1ms, on_exit: [75]}
  - id: b
    run: 'echo y >> log; exit 2'
    retry: {attempts: 5, backoff: 1ms, on_exit: [75]}
"#;
    assert!(matches!(story.start(flow).unwrap(), Outcome::Failed { .. }));
    assert_eq!(story.lines("log"), "x x x y");
}

#[test]
fn ends_are_told_apart() {
    let story = Story::new();
    let flow = r#"
name: ends
steps:
  - {id: signal, on_failure: continue, run: 'kill -SEGV $$'}
  - {id: late, on_failure: continue, timeout: 50ms, run: 'sleep 600'}
  - {id: absent, on_failure: continue, run: [./no-such-program]}
  - {id: judged, if: 'signal.status == "failed" && late.exit == null', run: 'echo judged'}
  - {id: left-out, if: 'judged.status == "failed"', run: 'echo no'}
"#;
    assert_eq!(story.start(flow).unwrap(), Outcome::Completed);
    let state = story.state();
    let record = |step: &str| state.step(step).unwrap().last().unwrap().record.clone();
    assert_eq!(record("signal").error.as_deref(), Some("signal 11 (SIGSEGV)"));
    assert!(record("late").timed_out);
    assert!(record("absent").error.unwrap().starts_with("failed to start `./no-such-program`: "));
    assert_eq!(state.step("judged").unwrap().last().unwrap().status, StepStatus::Completed);
    assert_eq!(state.step("left-out").unwrap().last().unwrap().status, StepStatus::Skipped);
}

#[test]
fn a_failure_leads_elsewhere_and_leaves_out_what_lies_between() {
    let story = Story::new();
    let flow = r#"
name: elsewhere
steps:
  - {id: a, on_failure: tidy, run: 'echo a >> log; exit 1'}
  - {id: b, run: 'echo b >> log'}
  - {id: tidy, run: 'echo tidy >> log'}
"#;
    let flow = flow.replace("on_failure: tidy", "on_failure: {goto: tidy}");
    assert_eq!(story.start(&flow).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "a tidy");
    assert_eq!(story.state().step("b").unwrap().last().unwrap().status, StepStatus::Skipped);
}

#[test]
fn a_failure_that_is_rolled_back_leaves_the_files_as_they_were() {
    let story = Story::new();
    story.home.write("kept.txt", "before");
    let flow = r#"
name: careful
steps:
  - {id: a, on_failure: rollback, run: 'echo after > kept.txt; echo new > new.txt; exit 1'}
"#;
    assert!(matches!(story.start(flow).unwrap(), Outcome::Failed { .. }));
    assert_eq!(story.home.read("kept.txt").as_deref(), Some("before"));
    assert_eq!(story.home.read("new.txt"), None);
}

#[test]
fn a_step_is_done_for_each_of_a_list_and_finished_items_are_not_done_again() {
    let mut story = Story::new();
    story.jobs = 4;
    let flow = r#"
name: each
steps:
  - id: list
    run: 'printf ''["a", "b", "c"]'' > "$STAGEPOST_OUTPUT"'
  - id: work
    for_each: {list: list.output, side_by_side: 2}
    run: |
      item=$(sed 's/.*"item":"\([a-z]\)".*/\1/' "$STAGEPOST_INPUT")
      echo "$item" >> log
      if test "$item" = c && test ! -e ok; then exit 1; fi
      printf '"did %s"' "$item" > "$STAGEPOST_OUTPUT"
  - id: all
    run: 'cat "$STAGEPOST_INPUT" > seen.json'
"#;
    assert!(matches!(story.start(flow).unwrap(), Outcome::Failed { .. }));
    story.home.write("ok", "");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    let mut done: Vec<String> = story.lines("log").split(' ').map(str::to_owned).collect();
    done.sort();
    assert_eq!(done, ["a", "b", "c", "c"]);
    let seen: serde_json::Value = serde_json::from_str(&story.home.read("seen.json").unwrap()).unwrap();
    assert_eq!(seen["work"]["output"], json!(["did a", "did b", "did c"]));
}

#[test]
fn files_that_a_step_leaves_are_kept_checked_and_put_back() {
    let story = Story::new();
    let flow = r#"
name: files
steps:
  - {id: make, outputs: [out/report.txt], run: 'mkdir -p out; echo hello > out/report.txt; echo make >> log'}
  - {id: use, run: 'echo use >> log; cat out/report.txt; test ! -e fail'}
"#;
    story.home.write("fail", "");
    story.start(flow).unwrap();
    story.home.remove("fail").remove("out/report.txt");
    assert_eq!(
        story.resume(Resume::default()).unwrap(),
        Outcome::Completed,
        "a file that is gone is put back"
    );
    assert_eq!(story.lines("log"), "make use use");
    assert_eq!(story.output("use"), b"hello\n");
    story.home.write("out/report.txt", "tampered");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed, "another file is made again");
    assert_eq!(story.lines("log"), "make use use make use");
    let missing = flow.replace("echo hello > out/report.txt;", "").replace("name: files", "name: none");
    let other = Story::new();
    let why = "step `make` failed: its output `out/report.txt` is not there".to_owned();
    assert_eq!(other.start(&missing).unwrap(), Outcome::Failed { why });
}

#[test]
fn a_secret_that_one_step_wrote_down_is_shown_and_kept_by_no_other() {
    let mut story = Story::new();
    story.secrets.insert("TOKEN".to_owned(), "s3cr3t \"value\"\nsecond line".to_owned());
    let flow = r#"
name: secret
steps:
  - id: a
    secrets: [TOKEN]
    run: 'printf %s "$TOKEN" > token'
  - id: b
    run: |
      echo "is ${TOKEN-unknown}"; cat token; echo; tail -n 1 token
      printf '{"token": "s3cr3t \\"value\\"\\nsecond line"}' | tee "$STAGEPOST_OUTPUT"
  - id: c
    outputs: [token]
    run: 'true'
"#;
    let why = "step `c` failed: its output `token` holds a secret".to_owned();
    assert_eq!(story.start(flow).unwrap(), Outcome::Failed { why });
    let output = String::from_utf8(story.output("b")).unwrap();
    assert_eq!(output, "is unknown\n***\n***{\"token\": \"***\"}");
    assert!(!story.watch.take().iter().any(|line| line.contains("s3cr3t") || line.contains("second line")));
}

#[test]
fn secrets_are_stored_nowhere_and_shown_to_nobody() {
    let mut story = Story::new();
    story.secrets.insert("TOKEN".to_owned(), "s3cr3t-value".to_owned());
    let flow = r#"
name: secret
steps:
  - id: a
    secrets: [TOKEN]
    run: |
      printf 's3cr3t'; sleep 0.05; printf -- '-value and %s\n' "$TOKEN"
      printf '{"token": "%s", "escaped": "s3cr3t\\u002dvalue"}' "$TOKEN" > "$STAGEPOST_OUTPUT"
  - id: b
    run: 'test -z "$TOKEN"; cat "$STAGEPOST_INPUT"'
  - id: c
    secrets: [TOKEN]
    outputs: [leak]
    run: 'echo "$TOKEN" > leak'
"#;
    let why = "step `c` failed: its output `leak` holds a secret".to_owned();
    assert_eq!(story.start(flow).unwrap(), Outcome::Failed { why });
    assert_eq!(story.output("a"), b"*** and ***\n");
    let printed = story.watch.take().join("");
    assert!(!printed.contains("s3cr3t") && printed.contains("*** and ***"), "{printed}");
    let b = String::from_utf8(story.output("b")).unwrap();
    assert!(b.contains(r#""token":"***""#) && b.contains(r#""escaped":"***""#), "{b}");
    let other = Story::new();
    let refused = other.start(flow).unwrap_err().to_string();
    assert_eq!(refused, "not set in the environment: the secret `TOKEN` of step `a`");
}

#[test]
fn a_secret_that_is_not_set_is_told_before_the_first_step() {
    let mut story = Story::new();
    let flow = r#"
name: secrets
secrets: [FIRST]
input: { publish: true }
steps:
  - {id: a, run: 'echo a >> log'}
  - {id: b, secrets: [SECOND], run: 'echo b >> log; test -e fixed'}
  - {id: c, secrets: [THIRD], if: input.publish, run: 'echo c >> log'}
"#;
    let refused = story.start(flow).unwrap_err();
    let expected =
        "not set in the environment: the secret `FIRST` of step `a`, the secret `SECOND` of step `b`";
    assert_eq!(refused.to_string(), expected);
    assert!(!story.home.root().join("log").exists());
    story.secrets.extend(["FIRST", "SECOND"].map(|name| (name.to_owned(), "s3cr3t-value".to_owned())));
    let why = "step `b` failed: exit code 1".to_owned();
    assert_eq!(story.start(flow).unwrap(), Outcome::Failed { why });

    // What is done is not asked for its secrets; what is still to do is.
    let second = story.secrets.remove("SECOND").unwrap();
    let refused = story.resume(Resume::default()).unwrap_err();
    assert_eq!(refused.to_string(), "not set in the environment: the secret `SECOND` of step `b`");
    story.secrets.insert("SECOND".to_owned(), second);
    story.home.write("fixed", "");
    let why = "step `c` failed: the secret `THIRD` is not set in the environment".to_owned();
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Failed { why });
    assert_eq!(std::fs::read_to_string(story.home.root().join("log")).unwrap(), "a\nb\nb\n");
    story.secrets.remove("SECOND");
    story.secrets.insert("THIRD".to_owned(), "another".to_owned());
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
}

#[test]
fn a_step_that_may_be_done_once_only_waits_for_a_person_when_it_was_cut_off() {
    let flow = r#"
name: once
steps:
  - {id: pay, effects: once, run: 'echo paid >> log; sleep 600'}
  - {id: after, run: 'echo after >> log'}
"#;
    let decide = |decided: Decided| {
        let mut story = Story::new();
        std::thread::scope(|threads| {
            let started = threads.spawn(|| story.start(flow).unwrap());
            while story.lines("log").is_empty() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            story.cancel.cancel();
            assert_eq!(started.join().unwrap(), Outcome::Interrupted);
        });
        assert_eq!(story.state().status, Status::Interrupted);
        story.cancel = stagepost::process::Cancel::new().unwrap();
        let refused = story.resume(Resume::default()).unwrap_err();
        assert!(matches!(refused, Error::Once { attempt: 1, .. }), "{refused}");
        let short = flow.replace("; sleep 600", "");
        let resume = Resume { decided: vec![("pay".to_owned(), decided)], ..Resume::default() };
        assert_eq!(story.resume_as(&short, resume).unwrap(), Outcome::Completed);
        story.lines("log")
    };
    assert_eq!(decide(Decided::Done), "paid after");
    assert_eq!(decide(Decided::Redo), "paid paid after");
}

#[test]
fn the_check_of_a_step_that_was_cut_off_decides_whether_it_had_happened() {
    // The check looks at what the step does, as the world would show it.
    let flow = r#"
name: once
steps:
  - {id: before, run: 'echo 7 > "$STAGEPOST_OUTPUT"'}
  - id: pay
    effects: once
    run: 'echo begun >> log; test ! -e paying || echo "$STAGEPOST_KEY" > paid; test -e short || sleep 600'
    verify: 'echo "asked $STAGEPOST_STEP" >> log; test -e paid'
  - {id: after, run: 'echo after >> log'}
"#;
    let cut_off = |paying: bool| {
        let mut story = Story::new();
        if paying {
            story.home.write("paying", "");
        }
        std::thread::scope(|threads| {
            let started = threads.spawn(|| story.start(flow).unwrap());
            while story.lines("log").is_empty() || (paying && story.lines("paid").is_empty()) {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            story.cancel.cancel();
            assert_eq!(started.join().unwrap(), Outcome::Interrupted);
        });
        story.cancel = stagepost::process::Cancel::new().unwrap();
        story.home.write("short", "").write("paying", "");
        assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
        story
    };
    let had_happened = cut_off(true);
    assert_eq!(had_happened.lines("log"), "begun asked pay after");
    let state = had_happened.state();
    let end = state.step("pay").unwrap().current().unwrap();
    assert_eq!(end.record.notes, ["it was cut off; its check said that it had been done"]);
    assert_eq!(cut_off(false).lines("log"), "begun asked pay begun asked pay after");
}

#[test]
fn the_key_of_a_step_is_the_same_until_it_is_done_again_on_purpose() {
    let story = Story::new();
    let flow = r#"
name: keys
steps:
  - id: a
    run: 'echo "$STAGEPOST_KEY" >> log; test "$STAGEPOST_ATTEMPT" -ge 3'
    retry: {attempts: 2, backoff: 1ms}
"#;
    story.start(flow).unwrap();
    story.resume(Resume::default()).unwrap();
    let again = Again { step: "a".to_owned(), only: false };
    story.resume(Resume { again: Some(again), ..Resume::default() }).unwrap();
    let log = story.lines("log");
    let keys: Vec<&str> = log.split(' ').collect();
    assert_eq!(keys.len(), 4);
    assert!(keys[0] == keys[1] && keys[1] == keys[2] && keys[2] != keys[3], "{keys:?}");
}
