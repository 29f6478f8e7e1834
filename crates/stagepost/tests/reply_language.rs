//! What people say, phenomenon by phenomenon; every sentence is made up for this page.

use stagepost::reply::{Action, Choice, Kind, Language, Question, Reply, Risk, open_actions, parse};

fn confirm(text: &str) -> Reply {
    parse(text, &Question::new(Kind::Confirm))
}

fn confirm_asked(question: &str, text: &str) -> Reply {
    parse(text, &Question::new(Kind::Confirm).asking(question))
}

#[track_caller]
fn assert_all(expected: Action, texts: &[&str]) {
    for text in texts {
        let reply = confirm(text);
        assert_eq!(reply.action, expected, "`{text}`: {}", reply.because);
    }
}

#[track_caller]
fn assert_never_consent(texts: &[&str]) {
    for text in texts {
        let reply = confirm(text);
        assert!(!reply.action.is_consent(), "`{text}`: {}", reply.because);
    }
}

#[test]
fn plain_agreement() {
    assert_all(
        Action::Confirm,
        &["yes", "Yep!", "ok", "sure thing", "YES PLEASE", "yesss", "okaaay", "y", "lgtm"],
    );
    assert_all(
        Action::Confirm,
        &["sounds good to me", "that’s exactly what I wanted", "ship it", "fine by me"],
    );
    assert_all(
        Action::Confirm,
        &["👍", "👍🏿", "✅ thanks", "ok 👌", "+1", "of course", "go for it", "absolutely"],
    );
}

/// Reads a file of replies, each with the question that it answers.
fn replies(file: &str) -> Vec<(Option<&str>, &str)> {
    let mut question = None;
    let mut replies = Vec::new();
    for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix('?') {
            Some(asked) => question = Some(asked.trim()).filter(|asked| !asked.is_empty()),
            None => replies.push((question, line)),
        }
    }
    replies
}

fn asked<'a>(kind: Kind, question: Option<&'a str>) -> Question<'a> {
    let plain = Question::new(kind);
    question.map_or(plain, |question| plain.asking(question))
}

#[test]
fn hundreds_of_ways_to_agree_are_understood() {
    let all = replies(include_str!("replies/consent.txt"));
    assert!(all.len() > 600, "{}", all.len());
    for (question, text) in all {
        let reply = parse(text, &asked(Kind::Confirm, question));
        assert_eq!(reply.action, Action::Confirm, "{question:?} `{text}`: {}", reply.because);
    }
}

#[test]
fn hundreds_of_ways_not_to_agree_are_never_a_consent() {
    let all = replies(include_str!("replies/no_consent.txt"));
    assert!(all.len() > 400, "{}", all.len());
    for (question, text) in all {
        for kind in [Kind::Confirm, Kind::Approve] {
            let reply = parse(text, &asked(kind, question));
            assert!(!reply.action.is_consent(), "{kind} {question:?} `{text}`: {}", reply.because);
        }
    }
}

/// Reads the file of sentences near a yes: language, whether it is one, words.
fn near_yes() -> Vec<(Language, bool, String)> {
    let mut language = Language::English;
    let mut cases = Vec::new();
    let file = include_str!("replies/near_yes.txt");
    for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(code) = line.strip_prefix('@') {
            language = Language::from_code(code).expect("a language there is");
            continue;
        }
        let (yes, text) = (line.starts_with("+ "), &line[2..]);
        assert!(yes || line.starts_with("- "), "{line}");
        cases.push((language, yes, text.replace("\\n", "\n")));
    }
    cases
}

#[test]
fn a_yes_is_given_here_and_now_by_the_one_who_is_asked() {
    let cases = near_yes();
    assert!(cases.len() > 800, "{}", cases.len());
    for (language, yes, text) in cases {
        let languages = [language];
        for question in [None, Some("Deploy version 7 to production?"), Some("Shall I deploy it?")] {
            for kind in [Kind::Confirm, Kind::Approve] {
                let reply = parse(&text, &asked(kind, question).in_languages(&languages));
                let consents = reply.action.is_consent();
                assert_eq!(consents, yes, "{language:?} {kind} {question:?} `{text}`: {}", reply.because);
            }
        }
    }
}

#[test]
fn what_is_quoted_or_struck_out_is_not_said() {
    let choices = [Choice::new("a", "Alpha"), Choice::new("b", "Beta")];
    let choose = |text: &str| parse(text, &Question::new(Kind::Choose).among(&choices)).action;
    assert_eq!(choose("> 2"), Action::Clarify);
    assert_eq!(choose("~~Alpha~~"), Action::Clarify);
    assert_eq!(choose("~~Alpha~~ Beta"), Action::Clarify);
    assert_eq!(choose("> Beta\nBeta"), Action::Select);
    // Text that was asked for may well be a quotation.
    assert_eq!(parse("> be brave", &Question::new(Kind::Input)).action, Action::Confirm);
    let mut risky = Question::new(Kind::Confirm);
    (risky.risk, risky.phrase) = (Risk::High, Some("deploy 7f3a"));
    assert_eq!(parse("deploy 7f3a", &risky).action, Action::Confirm);
    assert_eq!(parse("> deploy 7f3a", &risky).action, Action::Clarify);
}

#[test]
fn hundreds_of_ways_to_refuse_are_understood() {
    let all = replies(include_str!("replies/refusals.txt"));
    assert!(all.len() > 350, "{}", all.len());
    for (question, text) in all {
        let reply = parse(text, &asked(Kind::Confirm, question));
        let refused = matches!(reply.action, Action::Reject | Action::Cancel);
        assert!(refused, "{question:?} `{text}` is read as {}: {}", reply.action, reply.because);
    }
}

#[test]
fn a_yes_to_a_question_that_asks_which_or_what_answers_nothing() {
    let open = [
        "Tea or coffee?",
        "Should I keep it, or throw it away?",
        "Which city?",
        "For how many people?",
        "Tell me what time suits you.",
        "Shall we go on Monday? From which station?",
    ];
    for question in open {
        for text in ["yes", "ok", "sounds good", "go ahead", "sure, please do", "perfect"] {
            for kind in [Kind::Confirm, Kind::Approve] {
                let reply = parse(text, &Question::new(kind).asking(question));
                assert_eq!(reply.action, Action::Clarify, "{kind} {question} `{text}`: {}", reply.because);
            }
        }
        assert!(!parse("no", &Question::new(Kind::Confirm).asking(question)).action.is_consent());
    }
    let closed = [
        "Proceed, yes or no?",
        "It takes two or three minutes. Go on?",
        "Delete the files that are old or empty?",
        "Is it right or not?",
        "What about Rome?",
        "How does that sound?",
    ];
    for question in closed {
        assert_eq!(confirm_asked(question, "yes").action, Action::Confirm, "{question}");
    }
    // Whoever approves in so many words means the whole of it.
    let question = Question::new(Kind::Approve).asking("Deploy on Monday or on Tuesday?");
    assert_eq!(parse("approved", &question).action, Action::Approve);
}

#[test]
fn alternatives_are_seen_in_every_language() {
    let asked = [
        (Language::Spanish, "¿Té o café?", "sí"),
        (Language::French, "Thé ou café ?", "oui"),
        (Language::German, "Tee oder Kaffee?", "ja"),
        (Language::Spanish, "¿Cuántos billetes?", "sí"),
        (Language::French, "Quelle ville ?", "oui"),
        (Language::German, "Welche Stadt?", "ja, gerne"),
    ];
    for (language, question, text) in asked {
        let languages = [language];
        let question = Question::new(Kind::Confirm).asking(question).in_languages(&languages);
        assert_eq!(parse(text, &question).action, Action::Clarify, "{text}");
        let plain = Question::new(Kind::Confirm).asking("Ok?").in_languages(&languages);
        assert_eq!(parse(text, &plain).action, Action::Confirm, "{text}");
    }
}

#[test]
fn a_bare_yes_or_no_to_a_negative_question_can_mean_either() {
    for question in
        ["Don't you want a backup?", "You don't need a receipt?", "Shouldn't we wait?", "Do you not agree?"]
    {
        for text in ["yes", "no", "nope", "ok", "yes please"] {
            assert_eq!(confirm_asked(question, text).action, Action::Clarify, "{question} `{text}`");
        }
        assert_eq!(confirm_asked(question, "no, do not do it").action, Action::Reject, "{question}");
    }
    assert_eq!(confirm_asked("Don't you want a backup?", "yes, I do").action, Action::Confirm);
    assert_eq!(confirm_asked("Why don't we start?", "yes").action, Action::Confirm);
    assert_eq!(confirm_asked("That is right, isn't it?", "yes").action, Action::Confirm);
}

#[test]
fn plain_refusal() {
    assert_all(Action::Reject, &["no", "nope", "absolutely not", "I'd rather not", "👎", "not now", "-1"]);
    assert_all(Action::Reject, &["that is wrong", "this isn't right", "I disapprove", "nah, we're good"]);
    assert_all(Action::Reject, &["maybe another time", "I don't want that", "none of these", "not a chance"]);
    assert_all(Action::Cancel, &["cancel", "stop it", "never mind", "forget it", "please abort"]);
}

#[test]
fn negation_reaches_as_far_as_its_clause() {
    assert_all(Action::Confirm, &["no more research, go ahead", "not bad at all", "no objections"]);
    assert_never_consent(&[
        "don't proceed",
        "do not go ahead",
        "not ok",
        "I can't say it is fine",
        "never approve that",
    ]);
    assert_never_consent(&["yes, no, stop", "ok, don't", "hardly perfect", "that is anything but fine"]);
}

#[test]
fn conditions_contrasts_and_hedges_hold_back() {
    assert_never_consent(&[
        "yes if the tests pass",
        "ok once Ana agrees",
        "yes, unless it rains",
        "sure, after lunch",
    ]);
    assert_never_consent(&[
        "yes but",
        "fine, except the title",
        "good, though slow",
        "mostly good",
        "almost perfect",
    ]);
    assert_never_consent(&[
        "I guess so",
        "probably fine",
        "maybe yes",
        "I think it is right",
        "yes in principle",
    ]);
    assert_never_consent(&[
        "he said yes",
        "they approved it",
        "too good to be true",
        "you are right to worry",
    ]);
    assert_never_consent(&["yeah right", "say yes", "I have a good idea", "I am right", "I would approve"]);
}

#[test]
fn a_question_is_no_answer() {
    assert_all(
        Action::RequestMore,
        &["why?", "what does it cost?", "is that ok?", "can you explain it", "ok?"],
    );
    assert_never_consent(&["yes?", "right?", "are you sure", "did you approve it", "is it fine"]);
}

#[test]
fn numbers_are_never_only_a_yes() {
    assert_never_consent(&["yes, 3", "ok for two people", "sure, at 5:30", "yes on the 4th"]);
}

#[test]
fn changes_are_refinements_with_their_words() {
    let changes = [
        ("yes but move the lunch stop", "move the lunch stop"),
        ("actually, make it 60 km", "make it 60 km"),
        ("no, use the blue theme", "use the blue theme"),
        ("ok, except the last paragraph", "except the last paragraph"),
        ("yes, except the last step", "except the last step"),
        ("approved, apart from the previous page", "apart from the previous page"),
    ];
    for (text, change) in changes {
        let reply = confirm(text);
        assert_eq!(reply.action, Action::Refine, "`{text}`: {}", reply.because);
        assert_eq!(reply.details.text.as_deref(), Some(change));
    }
}

#[test]
fn going_back_says_where_to() {
    assert_all(Action::Back, &["go back", "previous step please", "let's start over", "undo"]);
    assert_eq!(confirm("back to the outline, please").details.back_to.as_deref(), Some("outline"));
}

#[test]
fn greetings_thanks_and_off_topic_are_asked_again() {
    assert_all(
        Action::Clarify,
        &["hello", "good morning", "thanks", "the weather is grey", "have a great day"],
    );
    assert_all(Action::Clarify, &["", "   ", "...", "🦀", "hmm"]);
}

#[test]
fn the_questions_own_words_add_nothing() {
    let question = "Deploy version 7 to production?";
    for text in
        ["yes, deploy it", "deploy", "please deploy to production", "ok, release it", "you can deploy it"]
    {
        assert_eq!(confirm_asked(question, text).action, Action::Confirm, "{text}");
    }
    for text in
        ["yes, delete it", "yes, to staging", "production is fine", "I can deploy it", "deploy version 8"]
    {
        assert!(!confirm_asked(question, text).action.is_consent(), "{text}");
    }
}

#[test]
fn repeating_a_thing_that_was_left_out_is_no_yes() {
    let without = "Publish it without the photos?";
    assert!(!confirm_asked(without, "yes, with the photos").action.is_consent());
    assert_eq!(confirm_asked(without, "yes, publish it").action, Action::Confirm);
    assert!(!confirm_asked("Use the red or the blue one?", "yes, red").action.is_consent());
}

#[test]
fn praise_answers_an_offer_of_help_with_no() {
    let question = "Is there anything else I can do for you?";
    assert_eq!(confirm_asked(question, "That's all, thanks").action, Action::Reject);
    assert!(!confirm_asked(question, "great, thank you").action.is_consent());
    assert_eq!(confirm_asked(question, "yes please").action, Action::Confirm);
}

#[test]
fn several_questions_need_a_plain_yes() {
    let question = "Is the green one ok? And shall it go to Ana?";
    assert_eq!(confirm_asked(question, "yes").action, Action::Confirm);
    assert!(!confirm_asked(question, "yes, green is fine").action.is_consent());
}

#[test]
fn a_language_that_is_not_switched_on_gives_no_consent() {
    assert_never_consent(&[
        "sí",
        "si, claro",
        "oui",
        "d'accord",
        "ja, gerne",
        "ja",
        "perfekt",
        "correcto",
        "da",
    ]);
    assert_never_consent(&[
        "да",
        "はい",
        "sim",
        "ναι",
        "sì, va bene",
        "bien sûr",
        "jawohl",
        "exacto",
        "confirmo",
    ]);
    assert!(
        !parse("yes", &Question::new(Kind::Confirm).in_languages(&[Language::German])).action.is_consent()
    );
    assert!(!parse("yes", &Question::new(Kind::Confirm).in_languages(&[])).action.is_consent());
}

#[track_caller]
fn assert_in(language: Language, expected: Action, texts: &[&str]) {
    for text in texts {
        let languages = [Language::English, language];
        let reply = parse(text, &Question::new(Kind::Confirm).in_languages(&languages));
        assert_eq!(reply.action, expected, "`{text}`: {}", reply.because);
    }
}

#[test]
fn spanish_when_switched_on() {
    assert_in(
        Language::Spanish,
        Action::Confirm,
        &["Sí, por favor", "de acuerdo", "perfecto, adelante", "claro que sí"],
    );
    assert_in(Language::Spanish, Action::Reject, &["no, gracias", "no está bien", "ahora no"]);
    assert_in(Language::Spanish, Action::Back, &["volver atrás"]);
    assert_in(Language::Spanish, Action::Cancel, &["cancelar"]);
}

#[test]
fn french_when_switched_on() {
    assert_in(Language::French, Action::Confirm, &["oui, merci", "d’accord", "c'est parfait", "vas-y"]);
    assert_in(Language::French, Action::Reject, &["non merci", "pas d'accord", "pas maintenant"]);
    assert_in(Language::French, Action::Back, &["retour"]);
    assert_in(Language::French, Action::Cancel, &["annuler"]);
}

#[test]
fn german_when_switched_on() {
    assert_in(Language::German, Action::Confirm, &["Ja, bitte", "passt so", "in Ordnung", "mach weiter"]);
    assert_in(Language::German, Action::Reject, &["nein", "nein danke", "das ist falsch", "ja, aber später"]);
    assert_in(Language::German, Action::Back, &["zurück"]);
    assert_in(Language::German, Action::Cancel, &["abbrechen"]);
}

#[test]
fn numbers_of_other_languages_choose() {
    let options = [Choice::new("n", "North"), Choice::new("s", "South"), Choice::new("w", "West")];
    let second =
        [(Language::Spanish, "la segunda"), (Language::French, "deux"), (Language::German, "Nummer zwei")];
    for (language, text) in second {
        let reply = parse(text, &Question::new(Kind::Choose).among(&options).in_languages(&[language]));
        assert_eq!(reply.details.option_ids, ["s"], "`{text}`: {}", reply.because);
    }
}

#[test]
fn high_risk_needs_the_exact_words() {
    let question = Question { risk: Risk::High, phrase: Some("deploy 7f3a"), ..Question::new(Kind::Approve) };
    assert_eq!(parse(" deploy  7f3a ", &question).action, Action::Approve);
    for text in ["yes", "deploy", "deploy 7f3b", "Deploy 7F3A", "approve", "👍"] {
        assert!(!parse(text, &question).action.is_consent(), "{text}");
    }
    assert_eq!(parse("no", &question).action, Action::Reject);
    assert_eq!(parse("go back", &question).action, Action::Back);
    assert!(!parse("yes", &Question { phrase: None, ..question }).action.is_consent());
}

#[test]
fn low_risk_forgives_a_hedge_but_no_contrast() {
    let question = Question { risk: Risk::Low, ..Question::new(Kind::Confirm) };
    assert_eq!(parse("I think that's fine", &question).action, Action::Confirm);
    for text in ["I don't think that's fine", "yes, but later", "maybe", "fine if it rains"] {
        assert!(!parse(text, &question).action.is_consent(), "{text}");
    }
}

#[test]
fn at_low_risk_another_s_yes_an_old_one_or_scorn_is_none_either() {
    let asked = Question::new(Kind::Confirm).asking("Deploy version 7 to production?");
    let question = Question { risk: Risk::Low, ..asked };
    for text in [
        "he's fine with it",
        "she's ok with that",
        "everyone approved",
        "somebody approve",
        "they said ok",
        "I used to agree",
        "great, just great",
        "yes, as if",
        "make sure it's ok",
        "ok let's talk",
        "approved in part",
        "I agree with the concerns",
        "ok, I'm worried",
        "like hell yes",
    ] {
        let reply = parse(text, &question);
        assert!(!reply.action.is_consent(), "{text}: {}", reply.because);
    }
    for text in
        ["I think that's fine", "yes I guess", "probably yes", "yes, technically", "I'm pretty sure, yes"]
    {
        assert_eq!(parse(text, &question).action, Action::Confirm, "{text}");
    }
    for (language, text) in [
        (Language::German, "ist das gut"),
        (Language::Spanish, "ya vale"),
        (Language::French, "oui et alors"),
    ] {
        assert!(!parse(text, &question.in_languages(&[language])).action.is_consent(), "{text}");
    }
}

#[test]
fn only_open_actions_are_returned() {
    let texts =
        ["yes", "no", "stop", "back", "more please", "yes but bigger", "2", "why?", "hello", "none", "all"];
    let options = [Choice::new("a", "Apple"), Choice::new("b", "Pear")];
    for kind in Kind::all() {
        for text in texts {
            let reply = parse(text, &Question::new(kind).among(&options));
            assert!(open_actions(kind).contains(&reply.action), "{kind} `{text}` {}", reply.action);
        }
    }
}

#[test]
fn text_is_the_answer_where_text_is_asked_for() {
    let reply = parse("  Ada Lovelace ", &Question::new(Kind::Input));
    assert_eq!((reply.action, reply.details.text.as_deref()), (Action::Confirm, Some("Ada Lovelace")));
    assert_eq!(parse("cancel", &Question::new(Kind::Input)).action, Action::Cancel);
    assert_eq!(parse("", &Question::new(Kind::Input)).action, Action::Clarify);
}

#[test]
fn unclear_replies_say_what_they_could_have_meant() {
    let reply = confirm("yes, in principle");
    assert_eq!(reply.action, Action::Clarify);
    assert_eq!(reply.details.could_mean, ["confirm", "refine"]);
    assert_eq!(reply.details.text.as_deref(), Some("yes, in principle"));
}

#[test]
fn kinds_are_read_in_both_spellings() {
    for kind in Kind::all() {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    assert_eq!("confirmIntent".parse(), Ok(Kind::ConfirmIntent));
    assert!("ConfirmIntent".parse::<Kind>().is_err());
}

#[test]
fn the_reason_names_the_words_that_were_said() {
    let because = |text: &str| confirm(text).because;
    assert!(because("I'd like that").starts_with("`i'd like that` agrees"), "{}", because("I'd like that"));
    assert!(because("I approve").starts_with("`i approve` agrees"), "{}", because("I approve"));
    assert!(because("that is right").starts_with("`right` agrees"), "{}", because("that is right"));
    assert!(because("please go back").starts_with("`go back` goes back"), "{}", because("please go back"));
    assert!(because("yes, I may").contains("`i may` (hedge)"), "{}", because("yes, I may"));
}
