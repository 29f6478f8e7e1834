//! Flows that ask a person, or propose and judge.

use stagepost::flow::{Outcome, Resume, Status, Verdict};
use stagepost::gate::{Ask, Gates, Origin, Prompt, Said};
use stagepost::reply::Kind;

use crate::support::Story;

const FLOW: &str = r#"
name: notes
steps:
  - {id: draft, run: 'echo draft >> log; printf ''{"text": "v%s"}'' "$STAGEPOST_ATTEMPT" > "$STAGEPOST_OUTPUT"'}
  - id: approve
    ask:
      kind: approve
      message: Publish these notes?
      data: draft.output
      on: {approve: publish, refine: draft}
  - {id: publish, run: 'echo publish >> log'}
"#;

fn answer(story: &Story, words: &str) {
    let gates = Gates::of(&story.project);
    let gate = gates.waiting().unwrap().remove(0);
    gates.answer(&gate.id, &Said::new(words, Origin::Person)).unwrap();
}

#[test]
fn a_question_waits_and_its_answer_leads_on() {
    let story = Story::new();
    let waiting = Outcome::Waiting { step: "approve".to_owned(), gate: "r.approve".to_owned() };
    assert_eq!(story.start(FLOW).unwrap(), waiting);
    assert_eq!(story.state().status, Status::Waiting);
    assert_eq!(story.resume(Resume::default()).unwrap(), waiting, "silence is no consent");
    answer(&story, "yes, approve");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "draft publish");
}

#[test]
fn going_back_does_the_work_again_and_asks_again() {
    let story = Story::new();
    story.start(FLOW).unwrap();
    answer(&story, "please make it shorter");
    let waiting = Outcome::Waiting { step: "approve".to_owned(), gate: "r.approve.2".to_owned() };
    assert_eq!(story.resume(Resume::default()).unwrap(), waiting);
    assert_eq!(story.lines("log"), "draft draft");
    answer(&story, "approve");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "draft draft publish");
    assert_eq!(
        story.state().step("approve").unwrap().attempts.len(),
        2,
        "the first answer is in the history"
    );
}

#[test]
fn a_no_ends_the_run_and_opening_the_gate_again_lets_it_go_on() {
    let story = Story::new();
    story.start(FLOW).unwrap();
    answer(&story, "no, reject it");
    let declined = story.resume(Resume::default()).unwrap();
    assert!(matches!(declined, Outcome::Declined { .. }), "{declined:?}");
    assert_eq!(story.state().status, Status::Declined);
    let gates = Gates::of(&story.project);
    gates.reopen(&"r.approve".parse().unwrap(), "second thoughts").unwrap();
    assert!(matches!(story.resume(Resume::default()).unwrap(), Outcome::Waiting { .. }));
    answer(&story, "approve");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
}

#[test]
fn an_answer_that_is_taken_back_later_makes_the_run_wait_again() {
    let story = Story::new();
    story.start(FLOW).unwrap();
    answer(&story, "approve");
    story.resume(Resume::default()).unwrap();
    Gates::of(&story.project).reopen(&"r.approve".parse().unwrap(), "wait").unwrap();
    let again = story.resume(Resume::default()).unwrap();
    assert!(matches!(again, Outcome::Waiting { .. }), "{again:?}");
    assert_eq!(story.lines("log"), "draft publish");
}

const REFINE: &str = r#"
name: refined
steps:
  - {id: topic, run: 'printf "{\"topic\": \"maps\"}" > "$STAGEPOST_OUTPUT"'}
  - id: draft
    refine:
      planner: 'echo plan >> log; test -z "$FAIL"; printf "{\"v\": %s, \"key\": \"%s\"}" "$STAGEPOST_ITERATION" "$TOKEN"'
      judge: 'echo judge >> log; printf "{\"score\": %s}" $((5 + 2 * STAGEPOST_ITERATION))'
      max_iterations: 3
      approve_at: 9
    secrets: [TOKEN]
  - {id: use, if: 'draft.approved', run: 'cat "$STAGEPOST_INPUT" > seen.json'}
"#;

#[test]
fn a_step_proposes_and_judges_until_it_is_good_enough() {
    let mut story = Story::new();
    story.secrets.insert("TOKEN".to_owned(), "hush-hush".to_owned());
    assert_eq!(story.start(REFINE).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "plan judge plan judge");
    let seen: serde_json::Value = serde_json::from_str(&story.home.read("seen.json").unwrap()).unwrap();
    assert_eq!(seen["draft"]["iterations"], 2);
    assert_eq!(seen["draft"]["final"]["plan"]["v"], 2, "{seen}");
    assert_eq!(seen["draft"]["final"]["plan"]["key"], "***", "a secret is stored nowhere");
}

#[test]
fn what_was_proposed_before_a_failure_is_not_proposed_again() {
    let mut story = Story::new();
    story.secrets.insert("TOKEN".to_owned(), "hush-hush".to_owned());
    let broken =
        REFINE.replace("echo judge >> log;", "echo judge >> log; test $STAGEPOST_ITERATION = 1 || exit 1;");
    assert!(matches!(story.start(&broken).unwrap(), Outcome::Failed { .. }));
    assert_eq!(story.lines("log"), "plan judge plan judge");
    assert_eq!(story.resume_as(REFINE, Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "plan judge plan judge judge");
}

#[test]
fn a_plan_knows_where_an_answer_leads_back_to() {
    let story = Story::new();
    story.start(FLOW).unwrap();
    assert!(story.plan().step("draft").unwrap().is_reuse());
    answer(&story, "please make it shorter");
    let plan = story.plan();
    let Some(Verdict::LedBack { why }) = plan.step("draft") else { panic!("{plan:?}") };
    assert_eq!(why, "step `approve` was answered with refine");
    story.resume(Resume::default()).unwrap();
    assert!(story.plan().step("draft").unwrap().is_reuse(), "that was done");
    answer(&story, "approve");
    assert!(story.plan().step("draft").unwrap().is_reuse(), "a yes leads on");
}

#[test]
fn an_answer_to_a_question_of_the_same_name_that_is_not_of_the_run_is_not_taken() {
    let story = Story::new();
    let flow = "name: x\nsteps:\n  - {id: ok, ask: {kind: confirm, message: Go?}}\n  - {id: go, run: 'echo go >> log'}\n";
    let gates = Gates::of(&story.project);
    let prompt = Prompt::new(Kind::Confirm).asking("Go?");
    gates.ask(Ask::new(prompt).named("r.ok".parse().unwrap())).unwrap();
    answer(&story, "yes");
    assert!(matches!(story.start(flow).unwrap(), Outcome::Failed { .. }));
    assert_eq!(story.lines("log"), "");
}
