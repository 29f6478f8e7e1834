//! Answers and failures that lead elsewhere. What depends on the step that led there is left out, unless it is reached from
//! there.

use stagepost::flow::{Again, Error, Outcome, Resume, Status};
use stagepost::gate::{Gates, Origin, Said};
use stagepost::model::StepStatus;

use crate::support::Story;

fn answer(story: &Story, words: &str) {
    let gates = Gates::of(&story.project);
    let gate = gates.waiting().unwrap().remove(0);
    gates.answer(&gate.id, &Said::new(words, Origin::Person)).unwrap();
}

fn status(story: &Story, step: &str) -> StepStatus {
    story.state().step(step).unwrap().last().unwrap().status
}

fn again(step: &str, only: bool) -> Resume {
    Resume { again: Some(Again { step: step.to_owned(), only }), ..Resume::default() }
}

const ASK: &str = r#"
name: ship
steps:
  - {id: ask, ask: {kind: approve, on: {approve: ship, reject: undo}}}
  - {id: ship, run: 'echo ship >> log'}
  - {id: announce, run: 'echo announce >> log'}
  - {id: undo, needs: [], run: 'echo undo >> log'}
  - {id: tidy, needs: [announce, undo], run: 'echo tidy >> log'}
"#;

#[test]
fn a_no_that_leads_to_an_independent_step_does_not_ship() {
    for jobs in [1, 2] {
        let mut story = Story::new();
        story.jobs = jobs;
        story.start(ASK).unwrap();
        assert_eq!(story.lines("log"), "undo", "it waits for nobody");
        answer(&story, "no");
        assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
        assert_eq!(story.lines("log"), "undo undo tidy");
        assert_eq!(status(&story, "ship"), StepStatus::Skipped);
        assert!(matches!(story.resume(Resume::default()), Err(Error::Over { .. })));
        story.resume(again("undo", false)).unwrap();
        story.resume(again("ship", false)).unwrap();
        assert_eq!(story.lines("log"), "undo undo tidy undo tidy tidy", "the answer still holds");
    }
    let story = Story::new();
    story.start(ASK).unwrap();
    answer(&story, "approve");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "undo ship announce tidy");
}

#[test]
fn a_no_is_not_forgotten_by_a_crash() {
    let story = Story::new();
    story.start(ASK).unwrap();
    answer(&story, "no");
    story.killed_at("ask completed (1)", |story| story.resume(Resume::default()));
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "undo undo tidy");
    assert_eq!(status(&story, "announce"), StepStatus::Skipped);
}

#[test]
fn an_answer_that_leads_back_is_not_forgotten_by_a_crash() {
    let flow = r#"
name: back
steps:
  - {id: draft, run: 'echo draft >> log'}
  - {id: ask, ask: {kind: approve, on: {approve: ship, reject: draft}}}
  - {id: ship, run: 'echo ship >> log'}
"#;
    let story = Story::new();
    story.start(flow).unwrap();
    answer(&story, "no");
    story.killed_at("ask completed (1)", |story| story.resume(Resume::default()));
    assert!(matches!(story.resume(Resume::default()).unwrap(), Outcome::Waiting { .. }));
    answer(&story, "approve");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "draft draft ship");
}

#[test]
fn an_answer_that_leads_to_the_end_stays_the_end() {
    let flow = r#"
name: end
steps:
  - {id: draft, run: 'echo draft >> log'}
  - {id: ask, ask: {kind: approve, on: {reject: end}}}
  - {id: ship, run: 'echo ship >> log'}
"#;
    for killed in [false, true] {
        let story = Story::new();
        story.start(flow).unwrap();
        answer(&story, "no");
        if killed {
            story.killed_at("ask completed (1)", |story| story.resume(Resume::default()));
        }
        assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
        assert!(matches!(story.resume(Resume::default()), Err(Error::Over { .. })));
        assert_eq!(story.state().status, Status::Completed);
        story.resume(again("draft", true)).unwrap();
        assert_eq!(
            story.lines("log"),
            "draft draft",
            "what someone asks for is done, and nothing is shipped"
        );
    }
}

const BUILD: &str = r#"
name: build
steps:
  - {id: prepare, needs: [], run: 'echo prepare >> log'}
  - {id: build, needs: [], on_failure: {goto: TARGET}, run: 'echo build >> log; exit 1'}
  - {id: ship, needs: [build], run: 'echo ship >> log'}
  - {id: alarm, needs: [], run: 'echo alarm >> log'}
"#;

#[test]
fn a_failure_that_leads_to_an_independent_step_does_not_ship() {
    // On to one that is still to come, and back to one that is done.
    for (target, log) in [("alarm", "prepare build alarm"), ("prepare", "prepare build prepare alarm")] {
        let story = Story::new();
        assert_eq!(story.start(&BUILD.replace("TARGET", target)).unwrap(), Outcome::Completed);
        assert_eq!(story.lines("log"), log, "{:?}", story.watch.take());
        assert_eq!(status(&story, "ship"), StepStatus::Skipped);
        assert!(matches!(story.resume(Resume::default()), Err(Error::Over { .. })));
    }
    for target in ["alarm", "prepare"] {
        let mut story = Story::new();
        story.jobs = 2;
        let slow = BUILD.replace("TARGET", target).replace("exit 1", "sleep 0.3; exit 1");
        assert_eq!(story.start(&slow).unwrap(), Outcome::Completed);
        assert_eq!(story.lines("log").matches(target).count(), 2, "{}", story.lines("log"));
        assert!(!story.lines("log").contains("ship"));
    }
}

#[test]
fn a_failure_that_led_elsewhere_is_not_forgotten_by_a_crash() {
    for (target, log) in [("alarm", "prepare build alarm"), ("prepare", "prepare build prepare alarm")] {
        let story = Story::new();
        let flow = BUILD.replace("TARGET", target);
        story.killed_at("build failed (1)", |story| story.start(&flow));
        assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
        assert_eq!(story.lines("log"), log);
    }
}

#[test]
fn what_runs_while_its_past_is_given_up_is_left_out_too() {
    let mut story = Story::new();
    story.jobs = 2;
    // `slow` runs for the first `build` when the gate sends `build` back, whose second attempt fails and leads away.
    let flow = r#"
name: stale
steps:
  - {id: build, needs: [], on_failure: {goto: alarm}, run: 'echo build >> log; test ! -e built && touch built'}
  - {id: slow, needs: [build], run: 'echo slow >> log; touch begun; sleep 0.5'}
  - id: look
    needs: [build]
    on_failure: {goto: build}
    run: 'until test -e begun; do sleep 0.01; done; echo look >> log; exit 1'
  - {id: alarm, needs: [], run: 'echo alarm >> log'}
"#;
    assert_eq!(story.start(flow).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log").matches("slow").count(), 1, "{}", story.lines("log"));
    assert_eq!(status(&story, "slow"), StepStatus::Skipped);
}

const EACH: &str = r#"
name: each
steps:
  - id: work
    for_each: {list: [0, 1, 2, 3], side_by_side: 2}
    on_failure: {goto: fix}
    run: |
      echo "begin $STAGEPOST_STEP" >> log
      if test "$STAGEPOST_STEP" = work/0; then exit 1; fi
      sleep 0.4
      echo "end $STAGEPOST_STEP" >> log
  - {id: use, run: 'echo use >> log'}
  - {id: fix, run: 'echo fix >> log; test -e ok'}
"#;

#[test]
fn a_failed_item_leads_elsewhere_when_the_others_that_run_have_ended() {
    let mut story = Story::new();
    story.jobs = 2;
    assert!(matches!(story.start(EACH).unwrap(), Outcome::Failed { .. }));
    let log = story.lines("log");
    assert!(log.ends_with("end work/1 fix") && !log.contains("work/2") && !log.contains("use"), "{log}");
    story.home.write("ok", "");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), format!("{log} fix"), "the step has its result and is not done again");
    assert!(matches!(story.resume(Resume::default()), Err(Error::Over { .. })));
}

#[test]
fn what_a_later_failure_led_back_to_is_not_left_out_when_the_run_goes_on() {
    // The first leaves out two steps; the last leads back to them, and the second of them fails.
    let flow = r#"
name: revived
steps:
  - {id: first, run: 'exit 1', on_failure: {goto: last}}
  - {id: two, run: 'echo two >> log'}
  - {id: three, run: 'echo three >> log; test -e mended'}
  - {id: last, run: 'echo last >> log; test -e mended', on_failure: {goto: two}}
"#;
    for killed in [false, true] {
        let story = Story::new();
        match killed {
            false => assert!(matches!(story.start(flow).unwrap(), Outcome::Failed { .. })),
            true => story.killed_at("three begins (2)", |story| story.start(flow)),
        }
        story.home.write("mended", "");
        assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
        let log = story.lines("log");
        assert!(log.ends_with("three last"), "{log}");
        assert_eq!(status(&story, "three"), StepStatus::Completed);
    }
}
