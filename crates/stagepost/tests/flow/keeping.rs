//! What a run that is completed and pruned still knows.

use stagepost::flow::{Again, Error, Flows, Outcome, Resume, RunState};
use stagepost::gate::{Gates, Origin, Said};
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
