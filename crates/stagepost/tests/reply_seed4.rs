//! The outcomes of the route agent's answers: those its own tests fix, and those it got wrong.

use stagepost::reply::{Action, Choice, Details, Kind, Question, Reply, parse};

fn routes() -> Vec<Choice> {
    vec![
        Choice::new("route-1", "Coastal Loop").described("flat, along the sea, 62 km"),
        Choice::new("route-2", "Mountain Pass").described("two long climbs, 80 km"),
        Choice::new("route-3", "River Valley").described("quiet gravel, 55 km"),
    ]
}

fn answer(kind: &str, text: &str) -> Reply {
    let kind: Kind = kind.parse().expect("a kind of the original design");
    parse(text, &Question::new(kind).among(&routes()))
}

#[track_caller]
fn assert_actions(kind: &str, expected: Action, texts: &[&str]) {
    for text in texts {
        let reply = answer(kind, text);
        assert_eq!(reply.action, expected, "`{text}` at {kind}: {}", reply.because);
    }
}

#[track_caller]
fn assert_selects(expected: &str, texts: &[&str]) {
    for text in texts {
        let reply = answer("selectRoute", text);
        assert_eq!(reply.action, Action::Select, "`{text}`: {}", reply.because);
        assert_eq!(reply.details.option_ids, [expected], "`{text}`: {}", reply.because);
    }
}

#[test]
fn outcomes_of_the_original_tests_are_kept() {
    assert_selects("route-2", &["2"]);
    assert_selects("route-1", &["I'd like route 1 please"]);
    assert_actions(
        "confirmIntent",
        Action::Confirm,
        &["looks good, proceed", "yes, that's correct", "yes, proceed"],
    );
    assert_actions("refineRoute", Action::Confirm, &["looks good, proceed", "Looks good, approve"]);
    assert_actions("presentFindings", Action::RequestMore, &["Can you research more about water stops?"]);
    assert_actions("presentFindings", Action::Confirm, &["looks good, proceed"]);
    let approvals = ["yes, generate the GPX", "approve", "Looks good, generate the GPX file"];
    assert_actions("presentFinal", Action::Approve, &approvals);
    assert_actions("presentFinal", Action::Refine, &["Can you adjust the clothing recommendations?"]);
    assert_actions("confirmIntent", Action::Clarify, &["Actually, I want to avoid Highway 1"]);
}

#[test]
fn a_request_for_more_names_its_topic() {
    let reply = answer("presentFindings", "Can you research more about water stops?");
    assert_eq!(reply.details.topics, ["water stops"]);
    let reply = answer("presentFindings", "tell me more about the climbs and the weather");
    assert_eq!(reply.details.topics, ["climbs", "weather"]);
}

#[test]
fn intent_is_not_confirmed_by_its_negation() {
    let negations =
        ["No, that's incorrect", "that is not correct", "don't proceed", "same as yesterday but longer"];
    assert_actions("confirmIntent", Action::Clarify, &negations);
    assert_actions("confirmIntent", Action::Confirm, &["looks good", "ok", "y"]);
}

#[test]
fn findings_are_not_confirmed_by_stopping() {
    assert_actions("presentFindings", Action::Cancel, &["no, stop", "cancel"]);
    assert_actions("presentFindings", Action::Back, &["go back"]);
    assert_actions("presentFindings", Action::Confirm, &["no more research, go ahead"]);
}

#[test]
fn routes_are_taken_by_name_ordinal_and_number_and_return_their_own_ids() {
    let second =
        ["Mountain Pass", "the second one", "2.", "option 2", "route #2", "mountain", "the mountian one"];
    assert_selects("route-2", &second);
    assert_actions(
        "selectRoute",
        Action::Clarify,
        &["neither route works for me", "none of these", "hello", "yes"],
    );
}

#[test]
fn refinements_are_not_confirmed_by_a_no() {
    assert_actions("refineRoute", Action::Refine, &["I disapprove", "yes but move the lunch stop"]);
    assert_actions("refineRoute", Action::Back, &["go back to selection"]);
    assert_eq!(answer("refineRoute", "go back to selection").details.back_to.as_deref(), Some("selection"));
    let reply = answer("refineRoute", "yes but move the lunch stop");
    assert_eq!(reply.details.text.as_deref(), Some("move the lunch stop"));
}

#[test]
fn the_final_route_is_not_approved_by_half_a_yes() {
    assert_actions("presentFinal", Action::Refine, &["yes, but change the cafe"]);
    assert_actions("presentFinal", Action::Clarify, &["do not generate yet"]);
}

#[test]
fn each_point_of_the_journey_knows_its_own_words() {
    let approvals =
        ["generate it", "I approve the final route", "looks good, generate", "write the GPX file"];
    assert_actions("presentFinal", Action::Approve, &approvals);
    assert_actions("presentFindings", Action::Confirm, &["proceed to route generation", "generate routes"]);
    assert_actions("refineRoute", Action::Confirm, &["approve the refinements", "no changes, go ahead"]);
    let changes = [
        "add a coffee stop at km 30",
        "lunch stop at km 40",
        "skip the second climb",
        "less climbing please",
    ];
    assert_actions("refineRoute", Action::Refine, &changes);
    assert_actions(
        "presentFinal",
        Action::Clarify,
        &["generate later", "is the distance right?", "don't generate it"],
    );
}

#[test]
fn a_reply_is_the_json_that_scripts_read() {
    let reply = answer("select_route", "route #2");
    let json = serde_json::to_value(&reply).expect("a reply is plain data");
    assert_eq!(json["action"], "select");
    assert_eq!(json["details"], serde_json::json!({ "option_ids": ["route-2"], "text": "route #2" }));
    assert!(json["confidence"].as_f64().is_some_and(|sure| (0.0..=1.0).contains(&sure)));
    assert!(json["because"].as_str().is_some_and(|because| because.contains("Mountain Pass")));
    let back: Reply = serde_json::from_value(json).expect("what was written can be read");
    let option_ids = vec!["route-2".to_owned()];
    assert_eq!(back.details, Details { option_ids, text: Some("route #2".into()), ..Details::default() });
}
