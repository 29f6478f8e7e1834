//! Choosing in plain words: the right option, several, or a question back; never a wrong one.

use stagepost::reply::{Action, Choice, Kind, Question, Reply, parse};

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
