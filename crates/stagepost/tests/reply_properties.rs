//! What holds for every text.

use std::time::Instant;

use proptest::prelude::*;
use stagepost::reply::{Choice, Kind, Language, Question, open_actions, parse};

const LANGUAGES: [Language; 4] = [Language::English, Language::Spanish, Language::French, Language::German];

fn options() -> [Choice; 3] {
    [Choice::new("a", "Red door"), Choice::new("b", "Blue door"), Choice::new("c", "Stairs")]
}

fn affirmative() -> impl Strategy<Value = String> {
    const WORDS: &[&str] =
        &["yes", "ok", "sure", "sounds good", "go ahead", "perfect", "correct", "that works", "👍"];
    prop::collection::vec(prop::sample::select(WORDS), 1..4).prop_map(|words| words.join(", "))
}

fn negator() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &["no", "not", "don't", "never", "nope", "cannot", "isn't", "wrong", "👎", "stop", "cancel"][..],
    )
}

fn reserve() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &["but", "if", "unless", "maybe", "except", "later", "why", "3", "only", "xyzzy", "?"][..],
    )
}

fn consents(text: &str) -> bool {
    parse(text, &Question::new(Kind::Confirm)).action.is_consent()
}

proptest! {
    #[test]
    fn any_text_is_read_with_an_open_action(text in "\\PC{0,80}", question in "\\PC{0,60}") {
        let options = options();
        for kind in Kind::all() {
            let reply = parse(&text, &Question::new(kind).asking(&question).among(&options).in_languages(&LANGUAGES));
            prop_assert!(open_actions(kind).contains(&reply.action));
            prop_assert!(reply.details.option_ids.iter().all(|id| options.iter().any(|option| option.id == *id)));
            prop_assert!((0.0..=1.0).contains(&reply.confidence) && !reply.because.is_empty());
        }
    }

    #[test]
    fn any_bytes_are_harmless(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let text = String::from_utf8_lossy(&bytes);
        for kind in Kind::all() {
            parse(&text, &Question::new(kind).among(&options()));
        }
    }

    #[test]
    fn the_same_words_always_mean_the_same(text in "\\PC{0,60}") {
        let question = Question::new(Kind::Confirm);
        prop_assert_eq!(parse(&text, &question), parse(&text, &question));
    }

    #[test]
    fn affirmatives_consent_and_a_negator_anywhere_ends_it(yes in affirmative(), no in negator(), comma: bool) {
        prop_assert!(consents(&yes), "{}", yes);
        let gap = if comma { ", " } else { " " };
        for text in [format!("{no}{gap}{yes}"), format!("{yes}{gap}{no}"), format!("{yes}{gap}{no}{gap}{yes}")] {
            prop_assert!(!consents(&text), "{}", text);
        }
    }

    #[test]
    fn a_reserve_anywhere_ends_it(yes in affirmative(), reserve in reserve()) {
        for text in [format!("{reserve} {yes}"), format!("{yes} {reserve}"), format!("{yes}, {reserve}, {yes}")] {
            prop_assert!(!consents(&text) || text.starts_with('?'), "{}", text);
        }
    }

    #[test]
    fn control_characters_change_nothing(yes in affirmative(), control in "[\\x00-\\x08\\x0e-\\x1f\\x7f]{1,3}") {
        let (around, between) = (format!("{control}{yes}{control}"), format!("do{control}not{control}{yes}"));
        prop_assert!(consents(&around));
        prop_assert!(!consents(&between));
    }

    #[test]
    fn case_and_space_change_nothing(yes in affirmative(), space in "[ \\t]{1,4}") {
        prop_assert!(consents(&yes.to_uppercase().replace(' ', &space)));
    }
}

#[test]
fn time_grows_with_the_text_and_no_faster() {
    let seconds = |text: &str| {
        let started = Instant::now();
        for kind in [Kind::Confirm, Kind::Choose, Kind::Approve] {
            assert!(!parse(text, &Question::new(kind).asking(text).among(&options())).action.is_consent());
        }
        started.elapsed().as_secs_f64()
    };
    for unit in ["yes ", "a", "no, ", "👍", "don't ", "is it ok? ", "the other one and ", "é", "'"] {
        for bytes in [60 << 10, 1 << 20] {
            let taken = seconds(&unit.repeat(bytes / unit.len()));
            assert!(taken < 10.0, "{bytes} bytes of `{unit}` took {taken} s");
        }
    }
}
