//! What is stored of a gate. The golden file is added to, never edited: stores in the world hold these.

use serde_json::Value;
use stagepost::gate::Moment;

#[test]
fn every_moment_that_was_ever_written_is_read() {
    let text = include_str!("goldens/moments.json");
    let written: Vec<Value> = serde_json::from_str(text).unwrap();
    let mut names = Vec::new();
    for one in written {
        let moment: Moment =
            serde_json::from_value(one.clone()).unwrap_or_else(|error| panic!("{error} in {one}"));
        assert_eq!(serde_json::to_value(&moment).unwrap(), one, "it is written as it was read");
        names.push(moment.name());
    }
    assert_eq!(names, ["asked", "unclear", "answered", "expired", "cancelled", "reopened", "voided"]);
}

#[test]
fn a_question_of_a_newer_program_is_refused_and_not_half_read() {
    let text =
        include_str!("goldens/moments.json").replacen("\"tries\": 3", "\"tries\": 3, \"quorum\": 2", 1);
    let written: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(serde_json::from_value::<Moment>(written[0].clone()).is_err());
}
