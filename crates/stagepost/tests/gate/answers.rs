//! Answering: once, to what was shown, and understood or asked again.

use std::sync::Barrier;

use stagepost::gate::{Ask, Error, Gates, Heard, Origin, Prompt, Said, State, Verdict};
use stagepost::model::Kind as CheckpointKind;
use stagepost::reply::{Action, Choice, Kind, Risk};

use crate::support::{TempGates, id};

fn person(words: &str) -> Said {
    Said::new(words, Origin::Person)
}

#[test]
fn an_answer_says_who_when_in_which_words_and_how_it_was_understood() {
    let temp = TempGates::new();
    let asked = temp.deploy("d");
    assert!(asked.is_waiting());
    temp.hands.move_by(60);
    let gate = temp.say("d", "yes, deploy it");
    let answer = gate.answer().expect("it was answered");
    assert_eq!((answer.by.as_str(), answer.words.as_str()), ("ada", "yes, deploy it"));
    assert_eq!((answer.reply.action, answer.origin), (Action::Confirm, Origin::Person));
    assert_eq!(answer.at.to_string(), "2026-01-31T08:01:00.000000Z");
    assert!(!answer.reply.because.is_empty());
    assert_eq!(gate.verdict(), Verdict::Yes);
    assert_eq!(temp.gates().waiting().unwrap(), []);
}

#[test]
fn an_answer_is_a_checkpoint_of_the_run() {
    let temp = TempGates::new();
    let gate = {
        temp.deploy("d");
        temp.say("d", "no")
    };
    let checkpoint = temp.project.resolve(&gate.checkpoint().unwrap().to_string()).unwrap();
    let expected = CheckpointKind::Decision { gate: "d".to_owned(), answer: "reject".to_owned() };
    assert_eq!((checkpoint.content.kind, checkpoint.run.as_str()), (expected, "adhoc"));
    assert_eq!(checkpoint.content.metadata["words"], "no");
    let mut damage = Vec::new();
    temp.project.store().audit(&mut |found| damage.push(found)).unwrap();
    assert_eq!(damage, []);
}

#[test]
fn of_two_answers_one_wins_and_the_other_is_told_by_whom() {
    let temp = TempGates::new();
    for round in 0..10 {
        let name = format!("race-{round}");
        temp.deploy(&name);
        let start = Barrier::new(6);
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..6)
                .map(|number| {
                    let (temp, name, start) = (&temp, &name, &start);
                    scope.spawn(move || {
                        let project = temp.as_someone(&format!("person-{number}"));
                        let words = if number % 2 == 0 { "yes" } else { "no" };
                        start.wait();
                        Gates::of(&project).answer(&id(name), &person(words))
                    })
                })
                .collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let won: Vec<String> = outcomes.iter().flatten().map(winner).collect();
        assert_eq!(won.len(), 1, "{outcomes:?}");
        for error in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
            assert!(matches!(error, Error::Answered { answer, .. } if answer.by == won[0]), "{error}");
            assert!(error.to_string().contains(&won[0]), "{error}");
        }
    }
}

fn winner(heard: &Heard) -> String {
    let Heard::Answered(gate) = heard else { panic!("{heard:?}") };
    gate.answer().expect("it won").by.clone()
}

#[test]
fn many_gates_are_asked_and_answered_at_once() {
    let temp = TempGates::new();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let temp = &temp;
            scope.spawn(move || {
                let (project, name) = (temp.as_someone("x"), format!("many-{number}"));
                let gates = Gates::of(&project);
                gates.ask(Ask::new(Prompt::new(Kind::Confirm)).named(id(&name))).unwrap();
                if number % 2 == 0 {
                    gates.answer(&id(&name), &person("yes")).unwrap();
                }
            });
        }
    });
    let mut waiting: Vec<String> =
        temp.gates().waiting().unwrap().iter().map(|gate| gate.id.to_string()).collect();
    waiting.sort();
    assert_eq!(waiting, ["many-1", "many-3", "many-5", "many-7"]);
}

#[test]
fn what_is_not_understood_is_kept_and_the_gate_waits_on() {
    let temp = TempGates::new();
    temp.deploy("d");
    for words in ["maybe", "hello", "", "yes if the tests pass"] {
        let heard = temp.gates().answer(&id("d"), &person(words)).unwrap();
        assert!(matches!(heard, Heard::Unclear(ref gate, _) if gate.is_waiting()), "{words}: {heard:?}");
    }
    let gate = temp.gates().get(&id("d")).unwrap();
    assert_eq!(gate.unclear.len(), 4);
    assert_eq!(temp.say("d", "yes").verdict(), Verdict::Yes);
}

#[test]
fn an_approval_holds_for_what_was_shown_and_for_nothing_else() {
    let temp = TempGates::new();
    let prompt = |version: u32| Prompt::new(Kind::Approve).about(serde_json::json!({ "version": version }));
    temp.ask("release", prompt(7));
    let approved = temp.say("release", "approved");
    assert!(approved.holds_for(&prompt(7).shown()) && !approved.holds_for(&prompt(8).shown()));

    assert_eq!(temp.ask("release", prompt(7)), approved, "asked again, the same thing finds its answer");
    let changed = temp.ask("release", prompt(8));
    assert!(changed.is_waiting(), "what changed is asked again");
    assert_eq!(changed.void_answers.len(), 1, "the old answer is kept");
    let stale = Said { seen: Some(approved.shown), ..person("yes") };
    let refused = temp.gates().answer(&id("release"), &stale).unwrap_err();
    assert!(matches!(refused, Error::Changed { .. }), "{refused}");
    assert_eq!(temp.say("release", "yes").verdict(), Verdict::Yes);
}

#[test]
fn where_much_is_at_stake_only_the_exact_words_agree() {
    let temp = TempGates::new();
    let mut prompt = Prompt::new(Kind::Confirm).asking("Deploy 7f3a to production?");
    (prompt.risk, prompt.phrase) = (Risk::High, Some("deploy 7f3a".to_owned()));
    temp.ask("high", prompt.clone());
    for words in ["yes", "deploy", "Deploy 7f3a", "deploy 7f3b", "yes, deploy 7f3a"] {
        let heard = temp.gates().answer(&id("high"), &person(words)).unwrap();
        assert!(matches!(heard, Heard::Unclear(..)), "{words}: {heard:?}");
    }
    assert_eq!(temp.say("high", "deploy 7f3a").verdict(), Verdict::Yes);

    // Whoever says which words agree wants no others to, and need not say that much is at stake.
    prompt.risk = Risk::Normal;
    assert_eq!(temp.ask("said", prompt.clone()).prompt.risk, Risk::High);
    assert!(matches!(temp.gates().answer(&id("said"), &person("yes")).unwrap(), Heard::Unclear(..)));
    assert_eq!(temp.say("said", "deploy 7f3a").verdict(), Verdict::Yes);
    prompt.risk = Risk::Low;
    assert!(matches!(temp.gates().ask(Ask::new(prompt.clone())), Err(Error::Invalid { .. })));

    (prompt.risk, prompt.phrase) = (Risk::High, None);
    let made = temp.ask("made", prompt.clone()).prompt.phrase.expect("words are made from the hash");
    assert!(made.starts_with("confirm ") && made.len() == 12, "{made}");
    assert_eq!(temp.say("made", &made).verdict(), Verdict::Yes);
    prompt.question = "Something else?".to_owned();
    assert_ne!(temp.ask("other", prompt).prompt.phrase, Some(made), "other things have other words");

    let mut choice = Prompt::new(Kind::Choose).among(vec![Choice::new("a", "A")]);
    choice.risk = Risk::High;
    assert!(matches!(temp.gates().ask(Ask::new(choice)), Err(Error::Invalid { .. })));
}

#[test]
fn a_lenient_reading_takes_a_hedged_yes() {
    let temp = TempGates::new();
    let mut prompt = Prompt::new(Kind::Confirm).asking("Rename the file?");
    prompt.risk = Risk::Low;
    temp.ask("low", prompt);
    assert_eq!(temp.say("low", "I think that's fine").verdict(), Verdict::Yes);
}

#[test]
fn only_a_yes_or_a_choice_lets_the_run_go_on() {
    let temp = TempGates::new();
    for (number, (words, verdict, action)) in [
        ("yes", Verdict::Yes, Action::Confirm),
        ("no", Verdict::No, Action::Reject),
        ("yes but move the lunch stop", Verdict::No, Action::Refine),
        ("tell me more about the costs", Verdict::No, Action::RequestMore),
        ("go back", Verdict::No, Action::Back),
        ("cancel", Verdict::No, Action::Cancel),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("g{number}");
        temp.deploy(&name);
        let gate = temp.say(&name, words);
        assert_eq!((gate.verdict(), gate.action()), (verdict, Some(action)), "{words}");
    }
}

#[test]
fn a_choice_returns_the_ids_of_the_candidates() {
    let temp = TempGates::new();
    let data = serde_json::json!({"candidates": [
        {"id": "route-1", "name": "Coastal Loop", "distance": 62, "elevation": 300},
        {"id": "route-2", "name": "Mountain Pass", "distance": 80, "elevation": 1900},
    ]});
    for (number, words) in
        ["2", "Mountain Pass", "the second one", "route #2", "option 2", "the mountian one"]
            .iter()
            .enumerate()
    {
        let name = format!("s{number}");
        temp.ask(&name, Prompt::new(Kind::SelectRoute).about(data.clone()));
        let gate = temp.say(&name, words);
        assert_eq!(gate.answer().unwrap().reply.details.option_ids, ["route-2"], "{words}");
    }
    temp.ask("neither", Prompt::new(Kind::SelectRoute).about(data));
    let heard = temp.gates().answer(&id("neither"), &person("neither route works for me")).unwrap();
    assert!(matches!(heard, Heard::Unclear(..)), "{heard:?}");
}

#[test]
fn where_an_answer_comes_from_is_kept_and_silence_cannot_be_said() {
    let temp = TempGates::new();
    for origin in [Origin::Person, Origin::Program, Origin::Policy] {
        temp.deploy(origin.name());
        let said = Said { by: Some("bot".to_owned()), ..Said::new("yes", origin) };
        temp.gates().answer(&id(origin.name()), &said).unwrap();
        let gate = temp.gates().get(&id(origin.name())).unwrap();
        assert_eq!((gate.answer().unwrap().origin, &*gate.answer().unwrap().by), (origin, "bot"));
    }
    temp.deploy("silence");
    let said = Said::new("yes", Origin::Timeout);
    assert!(temp.gates().answer(&id("silence"), &said).is_err());
    assert_eq!(temp.gates().get(&id("silence")).unwrap().state, State::Waiting);
}

#[test]
fn the_outcomes_of_the_original_design_are_kept_and_mended() {
    use Action::{Approve, Back, Cancel, Clarify, Confirm, Refine, RequestMore};
    for (kind, words, expected) in [
        (Kind::ConfirmIntent, "looks good, proceed", Confirm),
        (Kind::ConfirmIntent, "Actually, I want to avoid Highway 1", Clarify),
        (Kind::ConfirmIntent, "No, that's incorrect", Clarify),
        (Kind::ConfirmIntent, "that is not correct", Clarify),
        (Kind::ConfirmIntent, "don't proceed", Clarify),
        (Kind::ConfirmIntent, "same as yesterday but longer", Clarify),
        (Kind::ConfirmIntent, "looks good", Confirm),
        (Kind::ConfirmIntent, "ok", Confirm),
        (Kind::ConfirmIntent, "y", Confirm),
        (Kind::PresentFindings, "Can you research more about water stops?", RequestMore),
        (Kind::PresentFindings, "no, stop", Cancel),
        (Kind::PresentFindings, "cancel", Cancel),
        (Kind::PresentFindings, "go back", Back),
        (Kind::PresentFindings, "no more research, go ahead", Confirm),
        (Kind::RefineRoute, "looks good, proceed", Confirm),
        (Kind::RefineRoute, "I disapprove", Refine),
        (Kind::RefineRoute, "go back to selection", Back),
        (Kind::RefineRoute, "yes but move the lunch stop", Refine),
        (Kind::PresentFinal, "yes, generate the GPX", Approve),
        (Kind::PresentFinal, "Can you adjust the clothing recommendations?", Refine),
        (Kind::PresentFinal, "yes, but change the cafe", Refine),
        (Kind::PresentFinal, "do not generate yet", Clarify),
    ] {
        let reply = Prompt::new(kind).parse(words);
        assert_eq!(reply.action, expected, "`{words}` at {kind}: {}", reply.because);
    }
}
