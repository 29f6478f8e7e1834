//! From being asked to being answered, cancelled, expired, reopened or voided.

use std::time::{Duration, Instant};

use stagepost::gate::{Ask, Error, Gates, Origin, Outcome, Prompt, Said, State, Verdict};
use stagepost::model::{RunId, RunKind};
use stagepost::reply::{Action, Choice, Kind};

use crate::support::{TempGates, id};

#[test]
fn a_question_survives_whoever_asked_it() {
    let temp = TempGates::new();
    {
        let asker = temp.as_someone("asker");
        Gates::of(&asker).ask(Ask::new(Prompt::new(Kind::Confirm)).named(id("d"))).unwrap();
    }
    let [gate] = &temp.gates().waiting().unwrap()[..] else { panic!("one gate waits") };
    assert_eq!((gate.id.as_str(), gate.asked_by.as_str()), ("d", "asker"));
}

#[test]
fn a_moved_clock_changes_nothing_for_a_gate_without_a_deadline() {
    let temp = TempGates::new();
    temp.deploy("d");
    for seconds in [-400 * 86_400, 900 * 86_400, -1] {
        temp.hands.move_by(seconds);
        assert!(temp.gates().settled(&id("d")).unwrap().is_waiting());
    }
    temp.hands.move_by(-500 * 86_400);
    assert_eq!(temp.say("d", "yes").verdict(), Verdict::Yes);
    temp.hands.move_by(100);
    let again = temp.gates().answer(&id("d"), &Said::new("no", Origin::Person)).unwrap_err();
    assert!(matches!(again, Error::Answered { .. }), "{again}");
}

#[test]
fn an_expired_gate_takes_its_outcome_and_that_is_never_a_yes() {
    let outcomes =
        [(Outcome::Reject, Action::Reject), (Outcome::Cancel, Action::Cancel), (Outcome::Back, Action::Back)];
    for (outcome, action) in outcomes {
        let temp = TempGates::new();
        let mut ask = Ask::new(Prompt::new(Kind::Approve)).named(id("e"));
        ask.expires = Some((Duration::from_secs(3600), outcome));
        temp.gates().ask(ask).unwrap();
        temp.hands.move_by(3599);
        assert!(temp.gates().settled(&id("e")).unwrap().is_waiting());
        temp.hands.move_by(1);
        let late = temp.gates().answer(&id("e"), &Said::new("yes", Origin::Person)).unwrap_err();
        assert!(matches!(late, Error::Expired { .. }), "{late}");
        let gate = temp.gates().get(&id("e")).unwrap();
        assert_eq!((gate.verdict(), gate.action()), (Verdict::No, Some(action)));
        assert_eq!(temp.gates().waiting().unwrap(), []);
        // Turning the clock back does not bring it back.
        temp.hands.move_by(-7200);
        assert!(matches!(temp.gates().settled(&id("e")).unwrap().state, State::Expired { .. }));
    }
    for word in ["confirm", "approve", "select", "yes"] {
        assert!(serde_json::from_value::<Outcome>(word.into()).is_err(), "{word}");
    }
}

#[test]
fn a_cancelled_gate_takes_no_answer_until_it_is_reopened() {
    let temp = TempGates::new();
    temp.deploy("d");
    let gate = temp.gates().cancel(&id("d"), "not needed", Origin::Person).unwrap();
    assert_eq!((gate.verdict(), gate.action()), (Verdict::No, Some(Action::Cancel)));
    let refused = temp.gates().answer(&id("d"), &Said::new("yes", Origin::Person)).unwrap_err();
    assert!(matches!(refused, Error::Cancelled { ref by, .. } if by == "ada"), "{refused}");
    temp.gates().reopen(&id("d"), "needed after all").unwrap();
    assert_eq!(temp.say("d", "yes").verdict(), Verdict::Yes);
    let names: Vec<&str> =
        temp.gates().history(&id("d")).unwrap().iter().map(|(_, moment)| moment.name()).collect();
    assert_eq!(names, ["asked", "cancelled", "reopened", "answered"]);
}

#[test]
fn going_back_voids_later_answers_of_the_run_and_lists_them_first() {
    let temp = TempGates::new();
    let run = |name: &str| RunId::new(name).unwrap();
    for (name, of) in [("a", "one"), ("b", "one"), ("c", "one"), ("x", "two")] {
        let ask = Ask::new(Prompt::new(Kind::Confirm)).named(id(name)).of(run(of), RunKind::Flow);
        temp.gates().ask(ask).unwrap();
        if name != "c" {
            temp.say(name, "yes");
        }
    }
    temp.deploy("alone");
    let names =
        |voids: &[stagepost::gate::Gate]| voids.iter().map(|gate| gate.id.to_string()).collect::<Vec<_>>();
    let dry = temp.gates().plan_back(&id("a")).unwrap();
    assert_eq!(names(&dry.voids), ["b", "c"]);
    assert!(temp.gates().get(&id("b")).unwrap().answer().is_some(), "a plan changes nothing");

    let done = temp.gates().reopen(&id("a"), "").unwrap();
    assert_eq!(done, dry, "what was planned is what was done");
    let b = temp.gates().get(&id("b")).unwrap();
    assert!(matches!(&b.state, State::Void { back_to, .. } if *back_to == id("a")), "{:?}", b.state);
    assert_eq!(b.void_answers.len(), 1, "the answer is kept");
    assert_eq!(b.verdict(), Verdict::No);
    let refused = temp.gates().answer(&id("c"), &Said::new("yes", Origin::Person)).unwrap_err();
    assert!(matches!(refused, Error::Void { .. }), "{refused}");
    assert_eq!(temp.gates().get(&id("x")).unwrap().verdict(), Verdict::Yes, "another run is not concerned");
    assert_eq!(names(&temp.gates().waiting().unwrap()), ["alone", "a"]);
    let again = Ask::new(Prompt::new(Kind::Confirm)).named(id("b")).of(run("one"), RunKind::Flow);
    assert!(temp.gates().ask(again).unwrap().is_waiting(), "what is void is asked again");
}

#[test]
fn a_gate_by_itself_is_reopened_by_itself() {
    let temp = TempGates::new();
    for name in ["a", "b"] {
        temp.deploy(name);
        temp.say(name, "yes");
    }
    assert_eq!(temp.gates().reopen(&id("a"), "").unwrap().voids, []);
    assert_eq!(temp.gates().get(&id("b")).unwrap().verdict(), Verdict::Yes);
    assert!(matches!(temp.gates().reopen(&id("a"), ""), Err(Error::StillWaiting { .. })));
}

#[test]
fn a_waiting_process_hears_an_answer_from_another() {
    let temp = TempGates::new();
    temp.deploy("d");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            let other = temp.as_someone("grace");
            Gates::of(&other).answer(&id("d"), &Said::new("yes", Origin::Person)).unwrap();
        });
        let gate = temp.gates().wait(&id("d"), Some(Duration::from_secs(20))).unwrap();
        assert_eq!(gate.answer().unwrap().by, "grace");
    });
}

#[test]
fn patience_ends_when_it_was_said_to() {
    let temp = TempGates::new();
    temp.deploy("d");
    let begun = Instant::now();
    assert!(temp.gates().wait(&id("d"), Some(Duration::from_millis(120))).unwrap().is_waiting());
    assert!((100..2000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    assert!(temp.gates().wait(&id("d"), Some(Duration::ZERO)).unwrap().is_waiting());
}

#[test]
fn gates_are_found_by_the_start_of_their_name() {
    let temp = TempGates::new();
    temp.deploy("deploy-1");
    assert_eq!(temp.gates().resolve("@").unwrap().id, id("deploy-1"));
    temp.deploy("deploy-2");
    assert!(matches!(temp.gates().resolve("@"), Err(Error::Ambiguous { .. })));
    assert!(
        matches!(temp.gates().resolve("dep"), Err(Error::Ambiguous { ref candidates, .. }) if candidates.len() == 2)
    );
    assert_eq!(temp.gates().resolve("deploy-2").unwrap().id, id("deploy-2"));
    temp.say("deploy-1", "yes");
    assert_eq!(temp.gates().resolve("dep").unwrap().id, id("deploy-2"), "what waits is meant first");
    assert!(matches!(temp.gates().resolve("none"), Err(Error::NotFound { .. })));
    assert!(matches!(temp.gates().resolve("a/../b"), Err(Error::NotFound { .. })));
}

#[test]
fn what_could_not_be_answered_is_not_asked() {
    let temp = TempGates::new();
    let huge = Prompt::new(Kind::Confirm).about("x".repeat(300_000).into());
    let nothing = Prompt::new(Kind::Choose);
    let blank = Prompt::new(Kind::Choose).among(vec![Choice::new("", "A")]);
    let wrong = Prompt::new(Kind::SelectRoute).about(serde_json::json!({"candidates": 7}));
    let mut silent = Prompt::new(Kind::Confirm);
    silent.languages.clear();
    for prompt in [huge, nothing, blank, wrong, silent] {
        assert!(matches!(temp.gates().ask(Ask::new(prompt)), Err(Error::Invalid { .. })));
    }
    assert_eq!(temp.gates().all().unwrap(), []);
}
