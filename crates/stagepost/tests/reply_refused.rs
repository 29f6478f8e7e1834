//! Options that are named and not taken.

use stagepost::reply::{Action, Choice, Kind, Question, parse};

#[test]
fn an_option_that_is_avoided_disliked_or_refused_is_not_taken() {
    let options = [
        Choice::new("castle", "castle"),
        Choice::new("harbour", "harbour"),
        Choice::new("city walls", "city walls"),
    ];
    let mut wrong = Vec::new();
    let declined = [
        "castle no",
        "castle, no",
        "castle no thanks",
        "castle? no",
        "castle ❌",
        "castle 👎",
        "❌ castle",
        "☐ castle",
        "✗ castle",
        "[ ] castle",
        "( ) castle",
        "!castle",
        "// castle",
        "<!-- castle -->",
        "avoid the castle",
        "avoid castle",
        "remove the castle",
        "drop the castle",
        "skip the castle",
        "delete the castle",
        "exclude castle",
        "cancel the castle",
        "I dislike the castle",
        "I hate the castle",
        "boycott the castle",
        "castle sucks",
        "castle stinks",
        "castle is closed",
        "the castle is boring",
        "castle is meh",
        "least favourite: castle",
        "my least favourite is the castle",
        "worst: castle",
        "reject the castle",
        "castle is out",
        "castle off the list",
        "2 no",
        "option 2 no",
        "option 2 ❌",
        "avoid 2",
        "remove option 2",
        "skip 2",
        "option 2 sucks",
        "option 2 is closed",
        "2 is closed",
    ];
    for text in declined {
        for multiple in [false, true] {
            let reply = parse(text, &Question { multiple, ..Question::new(Kind::Choose).among(&options) });
            if reply.action == Action::Select {
                wrong.push(format!("`{text}` {multiple}: {:?} {}", reply.details.option_ids, reply.because));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let taken = [
        "castle",
        "the castle",
        "castle please",
        "castle!",
        "yes, castle",
        "[x] castle",
        "1",
        "#1",
        "1)",
        "(1)",
        "castle sounds good",
        "the castle is fine",
        "castle is perfect",
        "no, the castle",
        "I'd like the castle",
        "let's visit the castle",
        "castle 👍",
        "castle, not the harbour",
    ];
    for text in taken {
        let reply = parse(text, &Question::new(Kind::Choose).among(&options));
        assert_eq!(reply.details.option_ids, ["castle"], "`{text}`: {} {}", reply.action, reply.because);
    }
    let question = Question::new(Kind::Choose).asking("Which one should I remove?").among(&options);
    assert_eq!(parse("remove the castle", &question).details.option_ids, ["castle"]);
}
