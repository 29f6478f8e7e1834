//! What a run that is completed and pruned still knows.

use stagepost::flow::{Again, Error, Flows, Options, Outcome, Resume, Run, RunState};
use stagepost::gate::{Gates, Origin, Said};
use stagepost::retention::Policy;
use stagepost_testutil::run_id;

use crate::support::Story;

fn again(step: &str, only: bool) -> Resume {
    Resume { again: Some(Again { step: step.to_owned(), only }), ..Resume::default() }
}

fn answer(story: &Story, gate: &str, words: &str) {
    Gates::of(&story.project).answer(&gate.parse().unwrap(), &Said::new(words, Origin::Person)).unwrap();
}

/// What going on would do, as one line.
fn plan(story: &Story) -> String {
    let plan = Flows::of(&story.project).plan(&story.id, &Resume::default()).unwrap();
    let told = plan.steps.iter().map(|one| format!("{} {}", one.step, one.verdict.name()));
    told.collect::<Vec<_>>().join(", ")
}

fn steps(count: usize, more: &str) -> String {
    let step =
        |n| format!("  - {{id: s{n}{more}, run: 'echo {n} >> log; echo {n} > \"$STAGEPOST_OUTPUT\"'}}\n");
    format!("name: many\nsteps:\n{}", (1..=count).map(step).collect::<String>())
}

#[test]
fn a_result_that_was_made_again_and_is_kept_is_not_taken_for_the_one_before_it() {
    let story = Story::new();
    let flow = r#"
name: release
steps:
  - {id: a, run: 'echo a >> log'}
  - {id: b, run: 'echo b >> log'}
  - {id: c, run: 'echo c >> log'}
  - {id: ok, ask: {kind: approve, message: Ship?, on: {approve: ship, refine: a}}}
  - {id: ship, needs: [ok], run: 'echo ship >> log; test -e go'}
  - {id: tell, run: 'echo tell >> log'}
"#;
    story.start(flow).unwrap();
    answer(&story, "r.ok", "make it shorter");
    story.resume(Resume::default()).unwrap();
    answer(&story, "r.ok.2", "yes");
    assert!(matches!(story.resume(Resume::default()).unwrap(), Outcome::Failed { .. }));
    story.home.write("go", "");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(plan(&story), "a reuse, b reuse, c reuse, ok reuse, ship reuse, tell reuse");
    assert!(matches!(story.resume(Resume::default()), Err(Error::Over { .. })));
    assert_eq!(story.lines("log"), "a b c a b c ship ship tell");
}

#[test]
fn a_step_that_was_done_again_and_pruned_can_be_forked_from() {
    let story = Story::new();
    story.start(&steps(7, "")).unwrap();
    story.resume(again("s3", false)).unwrap();
    story.resume(again("s1", true)).unwrap();
    assert!(!plan(&story).contains("pruned"), "{}", plan(&story));
    let flows = Flows::of(&story.project);
    flows.fork(&story.id, "s3", &run_id("fork")).unwrap();
    let fork = RunState::load(&story.project, &run_id("fork")).unwrap();
    let held = |step: &str| fork.step(step).unwrap().current().map(|one| (one.attempt, one.pruned));
    assert_eq!([held("s1"), held("s2"), held("s3")], [(2, false), (1, false), (2, false)].map(Some));
    assert_eq!(held("s4"), None);
}

#[test]
fn steps_that_may_be_done_once_only_are_not_done_again_after_pruning() {
    let story = Story::new();
    story.start(&steps(7, ", effects: once")).unwrap();
    story.resume(again("s3", false)).unwrap();
    let longer = steps(8, ", effects: once");
    assert_eq!(story.resume_as(&longer, Resume::default()).unwrap(), Outcome::Completed);
    assert!(matches!(story.resume_as(&longer, Resume::default()), Err(Error::Over { .. })));
    assert_eq!(story.lines("log"), "1 2 3 4 5 6 7 3 4 5 6 7 8");
}

#[test]
fn what_was_given_up_and_pruned_does_not_hold_again() {
    let story = Story::new();
    let flow = r#"
name: led-to-the-end
retention: {keep_last: 2}
steps:
  - {id: ok, ask: {kind: approve, message: Go on?, on: {approve: a, refine: end}}}
  - {id: a, run: 'true'}
  - {id: b, run: 'true'}
  - {id: c, run: 'true'}
"#;
    story.start(flow).unwrap();
    answer(&story, "r.ok", "yes");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    story.resume(again("ok", false)).unwrap();
    answer(&story, "r.ok.2", "make it shorter");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(plan(&story), "ok reuse, a new, b new, c new");
}

#[test]
fn a_fork_keeps_what_it_stands_on_when_that_is_done_again_where_it_came_from() {
    let story = Story::new();
    story.start(&steps(7, "")).unwrap();
    let fork = run_id("fork");
    Flows::of(&story.project).fork(&story.id, "s5", &fork).unwrap();
    for _ in 0..3 {
        story.resume(again("s3", false)).unwrap();
    }
    let state = RunState::load(&story.project, &fork).unwrap();
    for n in 1..=5 {
        let held = state.step(&format!("s{n}")).and_then(|step| step.current()).unwrap();
        assert_eq!((held.attempt, held.pruned), (1, false), "s{n}");
    }
}

#[test]
fn a_doing_on_purpose_has_a_key_of_its_own_also_when_the_kept_result_before_it_is_gone() {
    let story = Story::new();
    let flow = steps(7, "").replace("echo 1 >> log;", "echo \"$STAGEPOST_KEY\" >> keys;");
    story.start(&flow).unwrap();
    for _ in 0..4 {
        story.resume(again("s1", true)).unwrap();
        story.resume(again("s2", false)).unwrap();
    }
    let keys = story.lines("keys");
    let different: std::collections::BTreeSet<&str> = keys.split(' ').collect();
    assert_eq!(different.len(), 5, "{keys}");
}

/// Gives up all but the newest checkpoint of each run.
fn collect(story: &Story) {
    let strict = Policy { keep_last: Some(1), ..Policy::default() };
    let plan = story.project.plan_gc(&strict).unwrap();
    assert!(!plan.plan.prune.is_empty());
    story.project.apply_gc(&plan).unwrap();
}

const ASKS: &str = r#"
name: publish
steps:
  - {id: draft, run: 'echo draft >> log'}
  - {id: ok, ask: {kind: confirm, message: Publish?}}
  - {id: publish, run: 'echo publish >> log'}
"#;

#[test]
fn a_completed_run_that_was_collected_is_not_done_again() {
    let story = Story::new();
    story.start(ASKS).unwrap();
    answer(&story, "r.ok", "yes");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    collect(&story);
    assert_eq!(plan(&story), "draft reuse, ok reuse, publish reuse");
    assert!(matches!(story.resume(Resume::default()), Err(Error::Over { .. })));
    assert_eq!(story.lines("log"), "draft publish");
}

#[test]
fn a_yes_from_before_a_collection_is_no_yes_to_what_is_done_again() {
    for keep_last in ["", "retention: {keep_last: 1}\n"] {
        let story = Story::new();
        story.start(&format!("{}{keep_last}", ASKS)).unwrap();
        answer(&story, "r.ok", "yes");
        story.resume(Resume::default()).unwrap();
        collect(&story);
        let asked = story.resume(again("draft", false)).unwrap();
        assert_eq!(asked, Outcome::Waiting { step: "ok".to_owned(), gate: "r.ok.2".to_owned() });
        assert_eq!(story.lines("log"), "draft publish draft");
        assert_eq!(story.state().step("draft").unwrap().last().unwrap().attempt, 2);
        answer(&story, "r.ok.2", "yes");
        assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    }
}

#[test]
fn a_question_that_is_opened_again_after_a_collection_is_asked_again() {
    let story = Story::new();
    story.start(ASKS).unwrap();
    answer(&story, "r.ok", "yes");
    story.resume(Resume::default()).unwrap();
    collect(&story);
    Gates::of(&story.project).reopen(&"r.ok".parse().unwrap(), "wait").unwrap();
    assert!(matches!(story.resume(Resume::default()).unwrap(), Outcome::Waiting { .. }));
    assert_eq!(story.lines("log"), "draft publish draft", "what is asked about is gone, so it is made again");
}

#[test]
fn what_led_to_the_end_and_what_may_be_done_once_only_is_known_after_a_collection() {
    let story = Story::new();
    let ends = r#"
name: ends
steps:
  - {id: pay, effects: once, run: 'echo pay >> log'}
  - {id: ok, ask: {kind: confirm, message: More?, on: {reject: end}}}
  - {id: more, run: 'echo more >> log'}
"#;
    story.start(ends).unwrap();
    answer(&story, "r.ok", "no");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    let again = Resume { again: Some(Again { step: "ok".to_owned(), only: false }), ..Resume::default() };
    story.resume(again).unwrap();
    answer(&story, "r.ok.2", "no");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    collect(&story);
    assert!(matches!(story.resume(Resume::default()), Err(Error::Over { .. })));
    let changed = ends.replace("echo more", "echo much more");
    assert!(matches!(story.resume_as(&changed, Resume::default()), Err(Error::Over { .. })));
    let other = ends.replace("echo pay", "echo pay more");
    let refused = story.resume_as(&other, Resume::default());
    assert!(matches!(refused, Err(Error::Redefined { .. })), "{refused:?}");
    assert_eq!(story.lines("log"), "pay");
}

#[test]
fn a_step_in_code_that_was_done_and_collected_is_not_done_again() {
    let story = Story::new();
    let done = |name: &str| {
        let run = Run::open(&story.project, &story.id, Options::default()).unwrap();
        let done = run.step(name, || Ok::<_, Error>(format!("did {name}")));
        run.finish().unwrap();
        done
    };
    for name in ["pay", "tell"] {
        assert_eq!(done(name).unwrap(), format!("did {name}"));
    }
    collect(&story);
    assert_eq!(done("tell").unwrap(), "did tell");
    assert!(matches!(done("pay"), Err(Error::Pruned { .. })));
    assert_eq!(done("new").unwrap(), "did new");
}

#[test]
fn what_a_collection_that_was_cut_off_told_of_is_read_where_it_is() {
    let story = Story::new();
    story.start(&steps(3, "")).unwrap();
    let strict = Policy { keep_last: Some(1), ..Policy::default() };
    let plan = story.project.plan_gc(&strict).unwrap();
    story.project.apply_gc(&plan).unwrap();
    let told = stagepost::store::EventQuery {
        topic: stagepost::model::Topic::Run,
        key: Some(story.id.to_string()),
        last: None,
    };
    let event = story.project.store().events(&told).unwrap().pop().unwrap().1;
    assert_eq!(event.body["type"], "pruned");

    let other = Story::new();
    other.start(&steps(3, "")).unwrap();
    let mut body = event.body;
    for (step, one) in body["steps"].as_array_mut().unwrap().iter_mut().zip(&other.state().steps) {
        step["checkpoint"] = one.current().unwrap().checkpoint.to_string().into();
    }
    let entries = vec![stagepost::store::NewEntry::Event(stagepost::model::Event { body, ..event })];
    let batch = stagepost::store::Batch { entries, ..Default::default() };
    other.project.store().write(batch).unwrap();
    assert_eq!(other.state().steps.len(), 3);
    assert!(other.state().steps.iter().all(|step| step.attempts.len() == 1 && !step.attempts[0].pruned));
}
