//! Who asks.

use std::io::Cursor;
use std::time::Duration;

use stagepost::gate::{
    Asker, Bounds, Callback, Gate, Key, Lines, Menu, Message, Origin, Pending, Program, Prompt, Said,
    Scripted, Step, Verdict, elicited,
};
use stagepost::reply::{Choice, Kind, Language};

use crate::support::TempGates;

#[test]
fn it_is_asked_again_with_what_was_not_understood() {
    let temp = TempGates::new();
    let mut shown = Vec::new();
    let show = |_: &Gate, message: &Message| {
        shown.push(message.misunderstood.clone());
        Ok(())
    };
    let mut asker = Lines { input: Cursor::new("perhaps\nyes\n"), show, origin: Origin::Person };
    let gate = temp.gates().converse(temp.deploy("d"), &mut asker).unwrap();
    assert_eq!((gate.verdict(), gate.unclear.len()), (Verdict::Yes, 1));
    assert_eq!(shown[0], None);
    let again = shown[1].as_deref().unwrap();
    assert!(again.contains("“perhaps”") && again.contains("did you mean confirm or reject?"), "{again}");
}

#[test]
fn after_so_many_tries_it_stays_waiting() {
    let temp = TempGates::new();
    let mut asker = Scripted::new(["hm", "well", "dunno", "yes"]);
    let gate = temp.gates().converse(temp.deploy("d"), &mut asker).unwrap();
    assert!(gate.is_waiting(), "never a guess");
    assert_eq!((gate.unclear.len(), asker.words.len()), (3, 1));
}

#[test]
fn nobody_there_says_nothing() {
    let temp = TempGates::new();
    let silent: [Box<dyn Asker>; 5] = [
        Box::new(Pending),
        Box::new(Scripted::new(Vec::<String>::new())),
        Box::new(Lines {
            input: Cursor::new(""),
            show: |_: &Gate, _: &Message| Ok(()),
            origin: Origin::Person,
        }),
        Box::new(Program {
            argv: vec!["true".to_owned()],
            origin: Origin::Program,
            bounds: Bounds::default(),
        }),
        Box::new(Program {
            argv: ["sh", "-c", "echo yes; exit 1"].map(str::to_owned).to_vec(),
            origin: Origin::Program,
            bounds: Bounds::default(),
        }),
    ];
    for (number, mut asker) in silent.into_iter().enumerate() {
        let gate = temp.deploy(&format!("d{number}"));
        assert!(temp.gates().converse(gate, &mut *asker).unwrap().is_waiting(), "asker {number}");
    }
}

#[test]
fn a_program_reads_the_question_and_prints_the_words() {
    let temp = TempGates::new();
    let script = r#"grep -q '"question":"Deploy now?"' && echo yes"#;
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    let mut asker = Program { argv, origin: Origin::Program, bounds: Bounds::default() };
    let gate = temp.gates().converse(temp.deploy("d"), &mut asker).unwrap();
    assert_eq!((gate.verdict(), gate.answer().unwrap().origin), (Verdict::Yes, Origin::Program));
}

#[test]
fn a_program_that_takes_too_long_has_not_answered_and_leaves_nothing_behind() {
    let temp = TempGates::new();
    let there = temp.path().join("there");
    let script = format!("echo yes; (sleep 600 & echo $! > {0}; wait) & sleep 600", there.display());
    let argv = ["sh", "-c", &script].map(str::to_owned).to_vec();
    let bounds = Bounds { timeout: Some(Duration::from_secs(1)), ..Bounds::default() };
    let mut asker = Program { argv, origin: Origin::Program, bounds };
    let gate = temp.gates().converse(temp.deploy("d"), &mut asker).unwrap();
    assert!(gate.is_waiting(), "what it printed before is no answer");
    let left = std::fs::read_to_string(there).unwrap();
    let left = stagepost::process::Identity::of(left.trim().parse().unwrap());
    assert!(!left.is_alive(), "{left:?}");
}

#[test]
fn a_flood_is_no_answer() {
    let temp = TempGates::new();
    let argv = ["sh", "-c", "yes | head -c 20000000"].map(str::to_owned).to_vec();
    let mut asker = Program { argv, origin: Origin::Program, bounds: Bounds::default() };
    assert!(temp.gates().converse(temp.deploy("d"), &mut asker).unwrap().is_waiting());
}

#[test]
fn a_kit_gets_its_shape_and_hands_back_a_label() {
    let temp = TempGates::new();
    let options = vec![Choice::new("s", "Staging").described("safe"), Choice::new("p", "Production")];
    let gate = temp.ask("c", Prompt::new(Kind::Choose).asking("Where?").among(options));
    let function = |question: &serde_json::Value| {
        assert_eq!((&question["header"], &question["multiSelect"]), (&"Choose".into(), &false.into()));
        assert_eq!(question["options"][0]["description"], "safe");
        question["options"][1]["label"].as_str().map(str::to_owned)
    };
    let mut asker = Callback { function, origin: Origin::Person };
    let gate = temp.gates().converse(gate, &mut asker).unwrap();
    assert_eq!(gate.answer().unwrap().reply.details.option_ids, ["p"]);
}

#[test]
fn every_answer_that_is_offered_is_understood_as_offered() {
    for kind in Kind::all() {
        let options = match kind {
            Kind::Choose | Kind::SelectRoute => {
                vec![Choice::new("n", "North shore"), Choice::new("s", "South ridge")]
            }
            _ => Vec::new(),
        };
        let prompt = Prompt::new(kind).among(options);
        for offered in Message::of_prompt(&prompt).answers {
            let words = offered.say.replace('…', "water stops");
            let reply = prompt.parse(&words);
            assert_eq!(reply.action, offered.action, "`{words}` at {kind}: {}", reply.because);
            assert_eq!(reply.details.option_ids.first(), offered.option.as_ref(), "`{words}` at {kind}");
        }
    }
}

#[test]
fn what_is_offered_is_in_the_language_of_the_answers() {
    for (language, yes) in [(Language::German, "ja"), (Language::French, "oui"), (Language::Spanish, "sí")] {
        for kind in Kind::all() {
            let options = match kind {
                Kind::Choose | Kind::SelectRoute => {
                    vec![Choice::new("n", "Nordufer"), Choice::new("s", "Südhang")]
                }
                _ => Vec::new(),
            };
            let mut prompt = Prompt::new(kind).among(options);
            prompt.languages = vec![language];
            for offered in Message::of_prompt(&prompt).answers {
                let words = offered.say.replace('…', "xyz");
                let reply = prompt.parse(&words);
                assert_eq!(reply.action, offered.action, "`{words}` at {kind}: {}", reply.because);
                assert_eq!(reply.details.option_ids.first(), offered.option.as_ref(), "`{words}` at {kind}");
                assert_eq!(offered.action.is_consent(), offered.say == yes, "`{words}` at {kind}");
            }
        }
    }
    // Where English counts too, it is offered.
    let mut both = Prompt::new(Kind::Confirm);
    both.languages = vec![Language::German, Language::English];
    assert_eq!(Message::of_prompt(&both).answers[0].say, "yes");
}

#[test]
fn the_menu_says_what_is_understood_in_another_language() {
    let temp = TempGates::new();
    let mut prompt = Prompt::new(Kind::Confirm).asking("Weiter?");
    prompt.languages = vec![Language::German];
    let gate = temp.ask("m", prompt);
    let Step::Said(words) = Menu::of(&gate).unwrap().press(Key::Enter) else { panic!("a row is marked") };
    assert_eq!(words, "ja");
    assert_eq!(temp.say("m", &words).verdict(), Verdict::Yes);
}

#[test]
fn an_elicitation_is_read_as_words() {
    let result = |text: &str| elicited(&serde_json::from_str(text).unwrap());
    assert_eq!(result(r#"{"action": "accept", "content": {"answer": "yes"}}"#).as_deref(), Some("yes"));
    assert_eq!(result(r#"{"action": "decline"}"#).as_deref(), Some("no"));
    assert_eq!(result(r#"{"action": "cancel"}"#), None);
    assert_eq!(result(r#"{"action": "accept", "content": {}}"#), None);
    let both = result(r#"{"action": "accept", "content": {"answer": "yes", "words": "but not on Friday"}}"#)
        .unwrap();
    assert!(!Prompt::new(Kind::Confirm).parse(&both).action.is_consent(), "{both}");
    let several = result(r#"{"action": "accept", "content": {"answer": ["A", "B"]}}"#);
    assert_eq!(several.as_deref(), Some("A and B"));
}

#[test]
fn an_answer_from_elsewhere_beats_the_one_being_typed() {
    let temp = TempGates::new();
    struct Slow<'a>(&'a TempGates);
    impl Asker for Slow<'_> {
        fn ask(&mut self, gate: &Gate) -> std::io::Result<Option<Said>> {
            self.0.say(gate.id.as_str(), "no");
            Ok(Some(Said::new("yes", Origin::Person)))
        }
    }
    let gate = temp.gates().converse(temp.deploy("d"), &mut Slow(&temp)).unwrap();
    assert_eq!(gate.answer().unwrap().words, "no");
}
