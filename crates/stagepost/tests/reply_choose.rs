//! Choosing in plain words: the right option, several, or a question back; never a wrong one.

use stagepost::reply::{Action, Choice, Kind, Language, Question, Reply, parse};

fn trips() -> Vec<Choice> {
    vec![
        Choice::new("t-17", "Harbour Walk").described("short and level, ends at the lighthouse"),
        Choice::new("t-23", "Castle Ridge").described("steep, wide views"),
        Choice::new("t-42", "Forest Loop").described("shady, a picnic meadow halfway"),
    ]
}

fn choose(text: &str) -> Reply {
    parse(text, &Question::new(Kind::Choose).among(&trips()))
}

fn choose_several(text: &str) -> Reply {
    parse(text, &Question { multiple: true, ..Question::new(Kind::Choose).among(&trips()) })
}

#[track_caller]
fn assert_takes(expected: &str, texts: &[&str]) {
    for text in texts {
        let reply = choose(text);
        assert_eq!(reply.details.option_ids, [expected], "`{text}`: {} {}", reply.action, reply.because);
    }
}

#[track_caller]
fn assert_asks(texts: &[&str]) {
    for text in texts {
        let reply = choose(text);
        assert_eq!(
            reply.action,
            Action::Clarify,
            "`{text}`: {:?} {}",
            reply.details.option_ids,
            reply.because
        );
    }
}

#[test]
fn by_name_part_id_and_description() {
    assert_takes(
        "t-23",
        &["Castle Ridge", "the castle", "ridge please", "I think Castle Ridge would be lovely", "T-23"],
    );
    assert_takes(
        "t-17",
        &["the lighthouse one", "Harbour Walk sounds good, when does it start?", "level one please"],
    );
    assert_takes("t-42", &["how about the forest?", "yes, the forest loop", "no, the forest loop"]);
}

#[test]
fn by_number_ordinal_letter_and_position() {
    assert_takes(
        "t-23",
        &["2", "2.", "#2", "number two", "the second one", "2nd", "b", "option B", "the middle one", "2️⃣"],
    );
    assert_takes("t-42", &["the last one", "third", "I'll take 3", "let's go with three please"]);
    assert_takes("t-17", &["one", "option one", "first please", "a"]);
}

#[test]
fn with_typos_in_longer_words() {
    assert_takes("t-17", &["harbor walk", "the harbuor one"]);
    assert_takes("t-42", &["forrest", "the froest loop"]);
    assert_asks(&["walt", "brige"]);
}

#[test]
fn what_is_not_wanted_is_not_taken() {
    assert_takes(
        "t-17",
        &["harbour rather than castle", "not the castle, the harbour", "the harbour instead of the forest"],
    );
    assert_asks(&[
        "not the castle",
        "anything but the castle",
        "I don't like the forest loop",
        "the castle is too far",
    ]);
}

#[test]
fn one_after_a_determiner_is_no_number() {
    assert_takes("t-42", &["the shady one"]);
    assert_asks(&["the nice one", "that one", "a good one"]);
}

#[test]
fn numbers_of_other_things_choose_nothing() {
    assert_asks(&[
        "0",
        "get me 3",
        "for two",
        "we are 2 people",
        "3 days",
        "7",
        "option 9",
        "on the 2nd of May",
    ]);
    assert_takes("t-23", &["Castle Ridge for 3 people on the 1st"]);
}

#[test]
fn doubt_questions_and_indifference_ask_back() {
    assert_asks(&[
        "maybe the castle",
        "is the castle far?",
        "how long is the forest loop?",
        "either",
        "any is fine",
    ]);
    assert_asks(&[
        "castle or harbour",
        "the first or the second",
        "castle and harbour",
        "yes",
        "surprise me",
    ]);
    assert_eq!(choose("castle or harbour").details.could_mean, ["t-17", "t-23"]);
    assert_eq!(choose("either").details.could_mean, ["t-17", "t-23", "t-42"]);
}

#[test]
fn others_none_back_and_cancel() {
    assert_eq!(choose("do you have any others?").action, Action::RequestMore);
    assert_eq!(choose("none of those, what else is there?").action, Action::RequestMore);
    assert_eq!(choose("none of these").action, Action::Reject);
    assert_eq!(choose("go back").action, Action::Back);
    assert_eq!(choose("cancel").action, Action::Cancel);
}

#[test]
fn several_where_several_are_allowed() {
    assert_eq!(choose_several("castle and harbour").details.option_ids, ["t-17", "t-23"]);
    assert_eq!(choose_several("1 and 3").details.option_ids, ["t-17", "t-42"]);
    assert_eq!(choose_several("1, 2").details.option_ids, ["t-17", "t-23"]);
    assert_eq!(choose_several("all of them").details.option_ids, ["t-17", "t-23", "t-42"]);
    assert_eq!(choose_several("all except the castle").details.option_ids, ["t-17", "t-42"]);
    assert_eq!(choose_several("everything but the forest").details.option_ids, ["t-17", "t-23"]);
    assert_eq!(choose_several("castle or harbour").action, Action::Clarify);
    assert_eq!(choose_several("all except castle and harbour and forest").action, Action::Clarify);
    assert_eq!(choose_several("just the castle").details.option_ids, ["t-23"]);
}

/// Takes options by their places; none is to be asked again.
#[track_caller]
fn assert_places(cases: &[(&str, &[usize])]) {
    for (text, places) in cases {
        let reply = choose_several(text);
        let trips = trips();
        let expected: Vec<&str> = places.iter().map(|place| trips[place - 1].id.as_str()).collect();
        assert_eq!(reply.details.option_ids, expected, "`{text}`: {} {}", reply.action, reply.because);
        let asked = reply.action == Action::Clarify;
        assert_eq!(asked, places.is_empty(), "`{text}`: {} {}", reply.action, reply.because);
    }
}

#[test]
fn what_is_left_out_by_number_or_place_is_not_taken() {
    assert_places(&[
        ("all except 2", &[1, 3]),
        ("all but the last", &[1, 2]),
        ("everything except 3", &[1, 2]),
        ("all apart from 2", &[1, 3]),
        ("all minus 2", &[1, 3]),
        ("all except number 2", &[1, 3]),
        ("all except option two", &[1, 3]),
        ("all except b", &[1, 3]),
        ("all but the second", &[1, 3]),
        ("all but the middle one", &[1, 3]),
        ("every one except the first", &[2, 3]),
        ("all except 1 and 3", &[2]),
        ("all but the first two", &[3]),
        ("all except the last two", &[1]),
        ("all except 2-3", &[1]),
        ("all three", &[1, 2, 3]),
        ("all 3 of them", &[1, 2, 3]),
    ]);
    // How many, and which: in doubt it is asked.
    assert_places(&[
        ("all but one", &[]),
        ("all but 1", &[]),
        ("all except one", &[]),
        ("all but two", &[]),
        ("all two", &[]),
        ("all except 7", &[]),
        ("all except 2 and 7", &[]),
        ("all except 1, 3", &[]),
        ("all the first two", &[]),
        ("all except 2?", &[]),
        ("all?", &[]),
        ("not 2", &[]),
    ]);
}

#[test]
fn a_range_is_every_place_in_it() {
    assert_places(&[
        ("1-3", &[1, 2, 3]),
        ("1 - 3", &[1, 2, 3]),
        ("1–3", &[1, 2, 3]),
        ("1..3", &[1, 2, 3]),
        ("1 to 3", &[1, 2, 3]),
        ("from 1 to 3", &[1, 2, 3]),
        ("1 through 2", &[1, 2]),
        ("options 2 to 3", &[2, 3]),
        ("1st to 3rd", &[1, 2, 3]),
        ("first to last", &[1, 2, 3]),
        ("1 to the last", &[1, 2, 3]),
        ("first three", &[1, 2, 3]),
        ("the first two", &[1, 2]),
        ("the first 2 please", &[1, 2]),
        ("last two", &[2, 3]),
        ("the last 3", &[1, 2, 3]),
        ("top two", &[1, 2]),
        ("bottom two", &[2, 3]),
        ("1 3", &[1, 3]),
        ("1 and 3", &[1, 3]),
    ]);
    assert_places(&[
        ("3-1", &[]),
        ("1-7", &[]),
        ("0-2", &[]),
        ("first five", &[]),
        ("last 9", &[]),
        ("the two first", &[]),
        ("second to last", &[]),
        ("1, 3 and 7", &[]),
        ("1 and 7", &[]),
        ("2 and 0", &[]),
    ]);
    assert_asks(&["1-2", "1 to 3", "first two", "1, 7", "2 or 7"]);
}

#[test]
fn speaking_of_an_option_does_not_take_it() {
    assert_asks(&[
        "2?",
        "2 ?",
        "2!?",
        "#2?",
        "option 2?",
        "the second?",
        "b?",
        "so 2?",
        "hm, 2?",
        "2, right?",
    ]);
    assert_asks(&["2 or?", "2 or", "2 or so", "castle or?", "the castle?", "castle ridge?", "ok, castle?"]);
    assert_asks(&["let me look at 2", "I'll look at 2", "looking at 2", "let me look at the castle"]);
    assert_takes("t-23", &["can I have 2?", "2 looks good", "2 please", "how about the castle?", "2 it is"]);
    assert_takes("t-23", &["I'm looking for the castle", "not 1 or 3, 2", "castle, not harbour or forest"]);
}

#[test]
fn ranges_and_exclusions_in_other_languages() {
    let options = trips();
    let ids = |language: Language, text: &str| {
        let languages = [language];
        let question = Question::new(Kind::Choose).among(&options).in_languages(&languages);
        parse(text, &Question { multiple: true, ..question }).details.option_ids
    };
    for (language, text) in [
        (Language::German, "alle außer 2"),
        (Language::Spanish, "todos excepto 2"),
        (Language::Spanish, "todas menos 2"),
        (Language::French, "tous sauf 2"),
    ] {
        assert_eq!(ids(language, text), ["t-17", "t-42"], "{text}");
    }
    assert_eq!(ids(Language::German, "1 bis 3"), ["t-17", "t-23", "t-42"]);
    assert_eq!(ids(Language::German, "die ersten zwei"), ["t-17", "t-23"]);
    assert_eq!(ids(Language::Spanish, "1 a 3"), ["t-17", "t-23", "t-42"]);
}

#[test]
fn a_label_within_another_is_not_meant() {
    let options = [Choice::new("s", "Storm"), Choice::new("f", "Storm Front"), Choice::new("c", "Calm")];
    let ids = |text: &str| parse(text, &Question::new(Kind::Choose).among(&options)).details.option_ids;
    assert_eq!(ids("Storm Front"), ["f"]);
    assert_eq!(ids("Storm"), ["s"]);
    assert_eq!(ids("front"), ["f"]);
}

#[test]
fn words_every_option_has_name_none() {
    let options = [Choice::new("1a", "Night train north"), Choice::new("1b", "Night train south")];
    let reply = parse("the night train", &Question::new(Kind::Choose).among(&options));
    assert_eq!(reply.action, Action::Clarify);
    let reply = parse("the night train south", &Question::new(Kind::Choose).among(&options));
    assert_eq!(reply.details.option_ids, ["1b"]);
}

#[test]
fn a_label_of_common_words_is_taken_when_it_is_said() {
    let options = [Choice::new("y", "Yes"), Choice::new("n", "No"), Choice::new("l", "Ask me later")];
    for (text, id) in [("yes", "y"), ("No", "n"), ("ask me later", "l")] {
        let reply = parse(text, &Question::new(Kind::Choose).among(&options));
        assert_eq!(reply.details.option_ids, [id], "`{text}`: {}", reply.because);
    }
}

#[test]
fn a_number_that_is_an_id_and_a_place_is_asked_about() {
    let options = [Choice::new("2", "Pear"), Choice::new("1", "Apple"), Choice::new("30", "Plum")];
    let reply = |text: &str| parse(text, &Question::new(Kind::Choose).among(&options));
    assert_eq!(reply("2").details.could_mean, ["2", "1"]);
    assert_eq!(reply("30").details.option_ids, ["30"]);
    assert_eq!(reply("3").details.option_ids, ["30"]);
}

#[test]
fn without_options_nothing_can_be_taken() {
    assert_eq!(parse("2", &Question::new(Kind::Choose)).action, Action::Clarify);
}

#[test]
fn a_letter_that_is_an_id_and_another_place_takes_neither() {
    let choices = [Choice::new("b", "Beta"), Choice::new("a", "Alpha"), Choice::new("c", "Castle")];
    for multiple in [false, true] {
        let question = Question { multiple, ..Question::new(Kind::Choose).among(&choices) };
        for text in ["a", "A", "b", "option a", "a.", "letter b"] {
            let reply = parse(text, &question);
            assert_eq!(reply.action, Action::Clarify, "`{text}`: {:?}", reply.details.option_ids);
        }
        // Where both are the same option nothing is left to ask.
        assert_eq!(parse("c", &question).details.option_ids, ["c"]);
        assert_eq!(parse("Alpha", &question).details.option_ids, ["a"]);
    }
}

#[test]
fn a_number_that_is_an_id_and_another_place_never_takes_both() {
    let choices = [Choice::new("2", "Beta"), Choice::new("1", "Alpha"), Choice::new("3", "Castle")];
    let question = Question { multiple: true, ..Question::new(Kind::Choose).among(&choices) };
    for text in ["1", "1 and 3", "2-3", "1 to 2", "all except 2"] {
        let reply = parse(text, &question);
        assert_eq!(reply.action, Action::Clarify, "`{text}`: {:?}", reply.details.option_ids);
    }
    assert_eq!(parse("3", &question).details.option_ids, ["3"]);
    assert_eq!(parse("the first", &question).details.option_ids, ["2"]);
    assert_eq!(parse("Beta and Alpha", &question).details.option_ids, ["2", "1"]);
}
