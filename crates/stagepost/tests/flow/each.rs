//! Steps that are done for each of a list: cut off, changed, led elsewhere, left out one by one.

use serde_json::json;
use stagepost::flow::{Decided, Error, Outcome, Resume};

use crate::support::Story;

fn result(story: &Story, step: &str) -> serde_json::Value {
    let state = story.state();
    let kept = state.step(step).unwrap().current().unwrap().artifact("result").unwrap().blob;
    serde_json::from_slice(&story.project.store().load(&kept).unwrap()).unwrap()
}

const PAY: &str = r#"
name: pay
steps:
  - id: pay
    effects: once
    for_each: {list: [7, 8]}
    run: 'echo "$STAGEPOST_STEP $STAGEPOST_ATTEMPT" >> log'
  - {id: after, run: 'echo after >> log'}
"#;

#[test]
fn an_item_that_may_be_done_once_only_waits_for_a_person_when_it_was_cut_off() {
    let decide = |decided: Decided, name: &str| {
        let story = Story::new();
        story.killed_at("pay/0 begins (1)", |story| story.start(PAY));
        let refused = story.resume(Resume::default()).unwrap_err();
        assert!(
            matches!(&refused, Error::Once { step, attempt: 1 } if step == "pay/0"),
            "nobody knows what became of it: {refused}"
        );
        let resume = Resume { decided: vec![(name.to_owned(), decided)], ..Resume::default() };
        assert_eq!(story.resume(resume).unwrap(), Outcome::Completed);
        story.lines("log")
    };
    assert_eq!(decide(Decided::Done, "pay/0"), "pay/1 1 after");
    assert_eq!(decide(Decided::Redo, "pay"), "pay/0 2 pay/1 1 after");
}

#[test]
fn the_check_of_an_item_that_was_cut_off_is_asked_first() {
    let flow = PAY.replace(
        "run: 'echo \"$STAGEPOST_STEP",
        "verify: 'grep -q ''\"item\":7'' \"$STAGEPOST_INPUT\" && echo 7 >> asked'\n    run: 'echo \"$STAGEPOST_STEP",
    );
    let flow = flow.replace("list: [7, 8]", "list: [7]");
    let story = Story::new();
    story.killed_at("pay/0 begins (1)", |story| story.start(&flow));
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!((story.lines("asked").as_str(), story.lines("log").as_str()), ("7", "after"));
}

#[test]
fn an_item_that_was_cut_off_counts() {
    let story = Story::new();
    let flow = PAY.replace("effects: once", "effects: idempotent");
    story.killed_at("pay/1 begins (1)", |story| story.start(&flow));
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "pay/0 1 pay/1 2 after");
}

#[test]
fn items_that_would_be_made_otherwise_now_are_made_again() {
    let flow = r#"
name: mixed
env: {WORD: old}
steps:
  - id: work
    for_each: {list: [0, 1, 2]}
    inputs: [in.txt]
    run: |
      echo "$STAGEPOST_STEP $STAGEPOST_KEY" >> log
      printf '"%s %s"' "$WORD" "$(cat in.txt)" > "$STAGEPOST_OUTPUT"
      test -e ok || test "$STAGEPOST_STEP" != work/2
"#;
    let (new, started) = (flow.replace("WORD: old", "WORD: new"), || {
        let story = Story::new();
        story.home.write("in.txt", "1");
        assert!(matches!(story.start(flow).unwrap(), Outcome::Failed { .. }));
        story.home.write("ok", "");
        story
    });
    let story = started();
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log").matches("work/").count(), 4, "what holds is not done again");
    let story = started();
    assert_eq!(story.resume_as(&new, Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(result(&story, "work"), json!(["new 1", "new 1", "new 1"]));
    let log = story.lines("log");
    let keys: Vec<&str> = log.split(' ').skip(1).step_by(2).collect();
    assert_ne!(keys[0], keys[3], "it is done again on purpose: {log}");
    let story = started();
    story.home.write("in.txt", "2");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(result(&story, "work"), json!(["old 2", "old 2", "old 2"]));
}

#[test]
fn files_that_items_leave_are_kept_checked_and_put_back() {
    let flow = r#"
name: files
steps:
  - id: work
    for_each: {list: [0, 1]}
    outputs: [out.txt]
    run: 'echo "$STAGEPOST_STEP" >> log; echo "$STAGEPOST_STEP" >> out.txt; test -e ok || test "$STAGEPOST_STEP" = work/0'
  - {id: use, run: 'echo use >> log; test -e fine'}
"#;
    let story = Story::new();
    assert!(matches!(story.start(flow).unwrap(), Outcome::Failed { .. }));
    story.home.write("ok", "").remove("out.txt");
    assert!(matches!(story.resume(Resume::default()).unwrap(), Outcome::Failed { .. }));
    assert_eq!(story.lines("out.txt"), "work/0 work/1", "what the first item left was put back");
    story.home.remove("out.txt");
    assert!(matches!(story.resume(Resume::default()).unwrap(), Outcome::Failed { .. }));
    assert_eq!(story.lines("out.txt"), "work/0 work/1");
    assert_eq!(story.lines("log"), "work/0 work/1 work/1 use use");
    let registry = story.home.read(".claude/context/runs/r/artifact-registry.json").unwrap();
    assert!(registry.contains("out.txt"), "{registry}");
    story.home.write("out.txt", "tampered").write("fine", "");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(
        story.lines("log"),
        "work/0 work/1 work/1 use use work/0 work/1 use",
        "another file is made again"
    );
}

#[test]
fn a_condition_about_items_is_decided_for_each() {
    let flow = r#"
name: some
steps:
  - id: work
    if: item > 1
    for_each: {list: [1, 2, 3]}
    run: 'echo "$STAGEPOST_STEP" >> log; echo 7 > "$STAGEPOST_OUTPUT"; test -e ok || test "$STAGEPOST_STEP" = work/1'
"#;
    let story = Story::new();
    assert!(matches!(story.start(flow).unwrap(), Outcome::Failed { .. }));
    story.home.write("ok", "");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "work/1 work/2 work/2");
    assert_eq!(result(&story, "work"), json!([null, 7, 7]));
    let senseless = flow.replace("item > 1", "item > 'x'").replace("name: some", "name: other");
    let why = match Story::new().start(&senseless).unwrap() {
        Outcome::Failed { why } => why,
        other => panic!("{other:?}"),
    };
    assert!(why.starts_with("step `work/0` failed: its condition cannot be decided"), "{why}");
    let nothing = "name: x\nsteps:\n  - {id: a, if: item > 1, run: 'true'}\n";
    let fault = stagepost::flow::Source::read(nothing, None).unwrap_err().faults.remove(0);
    assert_eq!((fault.place.line, fault.what.as_str()), (3, "`item` means something within `for_each` only"));
}

#[test]
fn a_result_that_nests_too_deep_to_be_joined_fails_its_item() {
    let story = Story::new();
    let deep = |levels: usize| {
        let result = "[".repeat(levels) + &"]".repeat(levels);
        format!(
            "name: deep\nsteps:\n  - {{id: a, run: 'echo \"{result}\" > $STAGEPOST_OUTPUT', for_each: {{list: [1]}}}}\n  - {{id: b, ask: {{data: a.output}}}}\n"
        )
    };
    let failed =
        Outcome::Failed { why: "step `a/0` failed: its result is nested more than 90 deep".to_owned() };
    assert_eq!(story.start(&deep(91)).unwrap(), failed);
    let waiting = Outcome::Waiting { step: "b".to_owned(), gate: "r.b".to_owned() };
    assert_eq!(story.resume_as(&deep(90), Resume::default()).unwrap(), waiting);
}
