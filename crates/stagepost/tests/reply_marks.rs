//! Signs that negate, comment out or leave a box open, and words that only say that something was heard.

use stagepost::reply::{Action, Kind, Language, Question, Reply, parse};

fn asked(kind: Kind, question: &str, text: &str) -> Reply {
    parse(text, &Question::new(kind).asking(question))
}

/// Fails with every reply that is read as something it must not be, not only with the first.
#[track_caller]
fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_signature_under_a_plain_yes_takes_nothing_back() {
    let question = "Deploy to production?";
    let mut wrong = Vec::new();
    for text in [
        "Yes\n\n-- \nBob",
        "Yes.\r\n-- \r\nBob Miller\r\nAcme Inc.\r\n",
        "ok, go ahead\n\n--\nBob\nbob@example.com",
    ] {
        let reply = asked(Kind::Confirm, question, text);
        wrong.extend((reply.action != Action::Confirm).then(|| format!("{text:?}: {}", reply.because)));
    }
    for text in [
        "Yes\n\n-- \nNo",
        "Yes\n\n-- \nbut not today",
        "Yes\n\n-- \nwait for me",
        "Yes\n\n-- \nNein",
        "Yes\n\n-- \nOnly to staging",
        "Yes\n\n-- \nrollback first",
        "No\n\n-- \nBob",
        "Maybe\n\n-- \nBob",
        "Yes, but later\n\n-- \nBob",
        "-- \nYes",
        "-- \nBob",
        "> Yes\n-- \nBob",
        "Yes?\n-- \nBob",
    ] {
        let reply = asked(Kind::Confirm, question, text);
        wrong.extend(reply.action.is_consent().then(|| format!("{text:?}: {}", reply.because)));
    }
    assert_none(&wrong);
}

/// Said at any question, none of these agrees.
const NEVER: &[&str] = &[
    "[ ] yes",
    "( ) yes",
    "- [ ] yes",
    "[] yes",
    "() yes",
    "* [ ] yes",
    "☐ yes",
    "!yes",
    "! yes",
    "!!yes",
    "¬yes",
    "¬ yes",
    "~yes",
    "-yes",
    "--yes",
    "!approve",
    "!(yes)",
    "<!-- yes -->",
    "// yes",
    "/* yes */",
    "# yes",
    "-- yes",
    "; yes",
    "% yes",
    "(* yes *)",
    "{# yes #}",
    "</yes>",
    "<del>yes</del>",
    "like I would say yes",
    "yeah, like I would say yes",
    "got it",
    "got it, thanks",
    "understood",
    "well understood",
    "yes\u{202e}on",
    "\u{202e}yes",
    "yes \u{2066}ok\u{2069}",
    "yes\u{8}\u{8}\u{8}ok",
    "yes\u{1b}[2Kok",
    "yes*",
    "yes†",
    "yes‽",
    "yes⁉",
    "__ yes",
    "yes | ok",
    "yes / ok",
    "yes :(",
];

const QUESTIONS: &[&str] = &["Deploy now?", "Cancel the order?", "Shall I go on?", "Is that right?"];

#[test]
fn signs_that_negate_comment_or_leave_a_box_open_are_no_yes() {
    let kinds = [
        Kind::Confirm,
        Kind::Approve,
        Kind::ConfirmIntent,
        Kind::PresentFindings,
        Kind::RefineRoute,
        Kind::PresentFinal,
    ];
    let mut wrong = Vec::new();
    for text in NEVER {
        for kind in kinds {
            for question in QUESTIONS {
                let reply = asked(kind, question, text);
                if reply.action.is_consent() {
                    wrong.push(format!("{kind} {question} `{text}`: {}", reply.because));
                }
            }
            let reply = parse(text, &Question::new(kind));
            if reply.action.is_consent() {
                wrong.push(format!("{kind} `{text}`: {}", reply.because));
            }
        }
    }
    for kind in kinds {
        let reply = parse("it's fine as it is", &Question::new(kind));
        if reply.action.is_consent() {
            wrong.push(format!("{kind} `it's fine as it is`: {}", reply.because));
        }
    }
    assert_none(&wrong);
}

#[test]
fn ordinary_marks_and_ticked_boxes_leave_a_yes_a_yes() {
    let texts = [
        "[x] yes",
        "[X] yes",
        "- [x] yes",
        "[✓] yes",
        "(x) yes",
        "yes!",
        "yes !",
        "Yes!!",
        "**yes**",
        "*yes*",
        "_yes_",
        "* yes",
        "- yes",
        "• yes",
        "\"yes\"",
        "`yes`",
        "“yes”",
        "yes :)",
        "yes, please…",
        "yes – go ahead",
        "yes -- go ahead",
        "yes (please)",
        "yes~",
        "+1",
        ":+1:",
        "👍🏽",
        "yes & thanks",
        "yes\r\n",
        "\u{feff}yes",
        "yes\u{200e}",
    ];
    let mut wrong = Vec::new();
    for text in texts {
        let reply = asked(Kind::Confirm, "Shall I deploy it?", text);
        if reply.action != Action::Confirm {
            wrong.push(format!("`{text}`: {}", reply.because));
        }
    }
    assert_none(&wrong);
}

#[test]
fn a_word_that_is_yes_and_if_agrees_only_by_itself() {
    let all = [
        (Language::French, "si oui", false),
        (Language::French, "si ok", false),
        (Language::French, "si c'est bon", false),
        (Language::French, "si", true),
        (Language::French, "mais si", false),
        (Language::French, "si, oui", true),
        (Language::French, "si si", true),
    ];
    for (language, text, agrees) in all {
        let languages = [language];
        let reply = parse(text, &Question::new(Kind::Confirm).in_languages(&languages));
        assert_eq!(reply.action.is_consent(), agrees, "`{text}`: {}", reply.because);
    }
}
