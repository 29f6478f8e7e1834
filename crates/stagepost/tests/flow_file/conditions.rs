//! Conditions: what they mean, and what is none.

use proptest::prelude::*;
use serde_json::{Value, json};
use stagepost::flow::definition::Condition;

fn document() -> Value {
    json!({
        "input": {"dry_run": false, "tag": "v1", "none": null, "big": 9007199254740993_u64},
        "collect": {"exit": 0, "files": ["a", "b"]},
        "draft": {"score": 7.5, "final": {"ok": true}},
        "build-it": {"exit": 1},
    })
}

fn holds(text: &str) -> Result<bool, String> {
    let condition = Condition::parse(text).map_err(|error| format!("{}: {error}", error.offset))?;
    condition.holds(&document()).map_err(|error| error.to_string())
}

#[test]
fn conditions_that_hold() {
    for text in [
        "collect.exit == 0",
        "draft.score >= 7 && !input.dry_run",
        "draft.score > 7 && draft.score < 8 || false",
        "draft.final.ok",
        "input.tag == 'v1'",
        "input.tag == \"v1\"",
        "input.tag != 'it\\'s'",
        "exists(input.tag) && !exists(input.none) && !exists(later.exit)",
        "later.exit == null",
        "!later.ok",
        "build-it.exit <= 1",
        "collect.files.1 == 'b'",
        "(true || false) && !(false)",
        "false && false || true",
        "1 == 1.0",
        "-2 < 1e3",
        "input.big > 9007199254740992",
        "'a' < 'b'",
        "(collect.exit == 0) == true",
    ] {
        assert_eq!(holds(text), Ok(true), "{text}");
    }
}

#[test]
fn conditions_that_do_not_hold() {
    for text in [
        "collect.exit != 0",
        "later.score >= 7",
        "later.score < 7",
        "input.none",
        "input.tag == 1",
        "false && nonsense.here == 1",
        "true && (false || !true)",
    ] {
        assert_eq!(holds(text), Ok(false), "{text}");
    }
}

#[test]
fn what_makes_no_sense_is_an_error_and_never_a_no() {
    assert!(holds("input.tag").unwrap_err().contains("neither true nor false"));
    assert!(holds("draft.score > 'x'").unwrap_err().contains("neither less nor greater"));
    assert!(holds("!collect.files").is_err());
}

#[test]
fn what_is_no_condition_says_where_it_stops_being_one() {
    for (text, offset, part) in [
        ("", 0, "a value is expected"),
        ("a.b = 1", 4, "write `==`"),
        ("a.b == ", 7, "a value is expected"),
        ("a.b == 'x", 7, "closing quote"),
        ("(a.b", 4, "`)` is missing"),
        ("a.b)", 3, "not expected"),
        ("a.b & c.d", 4, "write `&&`"),
        ("1 < 2 < 3", 6, "join them"),
        ("size(a.b)", 0, "no function"),
        ("exists(1)", 7, "name of a value"),
        ("a..b", 0, "is empty"),
        ("$a", 0, "without `$`"),
        ("ü.b == 1 ; x", 9, "not expected"),
    ] {
        let error = Condition::parse(text).unwrap_err();
        assert_eq!(error.offset, offset, "{text}: {error}");
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
    let deep = format!("{}true{}", "(".repeat(1000), ")".repeat(1000));
    assert!(Condition::parse(&deep).unwrap_err().to_string().contains("too deeply"));
    assert!(Condition::parse(&"!".repeat(4000)).is_err());
    assert!(Condition::parse(&format!("'{}'", "x".repeat(5000))).is_err());
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[ -~ü]{0,40}|[a.!()&|=<>'\"0-9 ]{0,40}") {
        if let Ok(condition) = Condition::parse(&text) {
            let _ = condition.holds(&document());
            prop_assert!(Condition::parse(condition.text()).is_ok());
        }
    }
}
