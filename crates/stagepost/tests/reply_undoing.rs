//! Questions that stop, refuse, undo or destroy something, and echoes that turn one around or say more or less than it.

use stagepost::reply::{Action, Kind, Language, Question, Reply, parse};

fn asked(kind: Kind, question: &str, text: &str) -> Reply {
    parse(text, &Question::new(kind).asking(question))
}

/// Fails with every reply that is read as something it must not be, not only with the first.
#[track_caller]
fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

const NO_CONSENT: &[(&str, &[&str])] = &[
    (
        "Reject the proposal?",
        &[
            "accept the proposal",
            "I approve",
            "lgtm",
            "approved",
            "I agree with the proposal",
            "no objections",
            "yes, accept it",
            "ok, approved",
            "it's a good proposal",
            "yes, great proposal",
            "yes to the proposal",
            "I vote yes",
        ],
    ),
    (
        "Decline the invitation?",
        &["accept the invitation", "yes, accept the invitation", "I'd love to", "I accept"],
    ),
    (
        "Cancel the order?",
        &[
            "place the order",
            "order it",
            "the order is good",
            "yes, place the order",
            "yes, order it",
            "the order is ok",
            "yes, I want the order",
            "I need the order",
            "looks good",
            "complete the order",
            "confirm the order",
            "I want my order",
        ],
    ),
    (
        "Abort the deployment?",
        &[
            "continue the deployment",
            "deploy",
            "ship it",
            "yes, continue the deployment",
            "ok, ship it",
            "proceed",
            "continue",
            "carry on",
            "the deployment is fine",
            "yes, deploy",
            "looks good to me",
        ],
    ),
    (
        "Should I stop?",
        &[
            "keep going",
            "please continue",
            "yes, keep going",
            "ok, continue",
            "go on",
            "carry on",
            "you're doing great",
            "it's fine",
            "go ahead",
            "proceed",
        ],
    ),
    (
        "Hold the release?",
        &["release it", "yes, release it", "ok, release", "ship it", "the release is good"],
    ),
    ("Pause the migration?", &["continue the migration", "yes, continue the migration", "keep it running"]),
    (
        "Revert the merge?",
        &["merge it", "the merge looks good", "yes, merge it", "ok, merge", "I like the merge"],
    ),
    (
        "Block the merge of this pull request?",
        &["merge it", "I approve the pull request", "approved", "ok, merge it", "the pull request is fine"],
    ),
    ("Roll back the deployment?", &["deploy it", "roll forward", "yes, roll forward", "ok, deploy it"]),
    ("Deny access for Bob?", &["access granted", "granted", "yes, access granted", "permission granted"]),
    (
        "Discard your changes?",
        &[
            "I need my changes",
            "I like my changes",
            "they look good",
            "yes, they look good",
            "yes, I need my changes",
            "my changes are fine",
        ],
    ),
    (
        "Delete the old backups?",
        &[
            "those are good backups",
            "they're good",
            "yes, all backups",
            "delete the backups",
            "yes, delete the backups",
            "yes, delete all backups",
            "yes, they are good",
            "they're ok",
            "the old backups are fine",
            "I like the old backups",
            "yes, I need them",
            "yes we need those",
            "yes, save them",
        ],
    ),
    (
        "Delete branch feature-x?",
        &["delete branch feature-y", "good branch", "yes, delete feature-y", "yes, delete the branches"],
    ),
    (
        "Transfer 100 EUR to Bob?",
        &[
            "yes from Bob",
            "yes 100 EUR to Bob and 100 EUR to Bob",
            "yes, 100 EUR from Bob",
            "transfer 100 EUR from Bob",
            "yes to Bob and to Bob",
        ],
    ),
    (
        "Shall I rewrite the login module?",
        &["it's fine as it is", "I like it as it is", "ok as is", "it's good", "I like it", "I love it"],
    ),
    ("Do you want me to shut down the server?", &["the server is fine", "I need the server", "keep going"]),
    ("Are you sure you want to remove the user accounts?", &["remove the accounts", "the accounts are ok"]),
    ("Should the old branch be removed?", &["looks good", "it's fine", "I like the branch"]),
    ("Proceed with the cancellation?", &["it's a good order", "carry on with the order"]),
    (
        "Please confirm: cancel the order.",
        &["confirm the order", "order confirmed", "yes, go ahead with the order"],
    ),
    ("Skip the tests?", &["run the tests", "yes, tests", "yes, run the tests"]),
    (
        "Remove Bob from the team?",
        &["Bob is great", "yes, remove the team", "yes, to the team", "yes, Bob to the team"],
    ),
    ("Merge main into dev?", &["yes, dev into main", "merge dev into main"]),
    ("Move the file from tmp to home?", &["yes, from home to tmp", "yes, to tmp"]),
    ("Shall we not deploy today?", &["deploy", "yes deploy", "yes, deploy today"]),
];

#[test]
fn words_that_go_on_or_praise_do_not_agree_to_stopping_or_undoing() {
    let mut wrong = Vec::new();
    for (question, texts) in NO_CONSENT {
        for text in *texts {
            for kind in [Kind::Confirm, Kind::Approve] {
                let reply = asked(kind, question, text);
                if reply.action.is_consent() {
                    wrong.push(format!("{kind} {question} `{text}`: {}", reply.because));
                }
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn a_plain_yes_agrees_to_stopping_and_undoing() {
    let plain =
        ["yes", "yes please", "ok", "sure", "do it", "yep", "of course", "👍", "absolutely", "please do"];
    let mut wrong = Vec::new();
    let mut check = |question: &str, text: &str| {
        let reply = asked(Kind::Confirm, question, text);
        if reply.action != Action::Confirm {
            wrong.push(format!("{question} `{text}`: {} {}", reply.action, reply.because));
        }
    };
    let negative = |question: &str| question.contains(" not ");
    for (question, _) in NO_CONSENT.iter().filter(|(question, _)| !negative(question)) {
        plain.iter().for_each(|text| check(question, text));
    }
    let ahead = [
        "Cancel the order?",
        "Reject the proposal?",
        "Decline the invitation?",
        "Revert the merge?",
        "Roll back the deployment?",
        "Deny access for Bob?",
        "Discard your changes?",
        "Delete the old backups?",
        "Delete branch feature-x?",
    ];
    for question in ahead {
        ["go ahead", "yes, go ahead", "please go ahead", "go for it"]
            .iter()
            .for_each(|text| check(question, text));
    }
    for (question, text) in [
        ("Cancel the order?", "yes, cancel it"),
        ("Cancel the order?", "yes, cancel the order"),
        ("Cancel the order?", "yes, please cancel my order"),
        ("Delete the old backups?", "yes please delete them"),
        ("Delete the old backups?", "delete them"),
        ("Delete the old backups?", "delete the old backups"),
        ("Delete the old backups?", "yes, that's right"),
        ("Delete branch feature-x?", "yes, delete feature-x"),
        ("Delete branch feature-x?", "delete branch feature-x"),
        ("Delete branch feature-x?", "yes, delete the branch"),
        ("Abort the deployment?", "yes, abort it"),
        ("Abort the deployment?", "yes, abort the deployment"),
        ("Should I stop?", "yes, stop"),
        ("Should I stop?", "yes, you should"),
        ("Roll back the deployment?", "yes, roll it back"),
        ("Roll back the deployment?", "yes, roll back the deployment"),
        ("Revert the merge?", "yes, revert it"),
        ("Discard your changes?", "yes, discard them"),
        ("Merge main into dev?", "yes, merge main into dev"),
        ("Remove Bob from the team?", "yes, remove Bob"),
        ("Remove Bob from the team?", "yes, remove Bob from the team"),
        ("Move the file from tmp to home?", "yes, from tmp to home"),
        ("Shall I drop the table?", "yes, drop the table"),
        ("Hold the release?", "yes, hold the release"),
        ("Approve the deletion of the logs?", "I approve"),
        ("Cancel the order?", "confirm"),
        ("Cancel the order?", "yes, sounds good"),
        ("Reject the proposal?", "yes, reject it"),
        ("Reject the proposal?", "yes, reject the proposal"),
        ("Decline the invitation?", "yes, decline it"),
        ("Pause the migration?", "yes, pause it"),
        ("Pause the migration?", "pause the migration"),
        ("Transfer 100 EUR to Bob?", "yes, 100 EUR to Bob"),
        ("Shall I rewrite the login module?", "sounds good"),
        ("Shall I rewrite the login module?", "yes, rewrite it"),
        ("This deletes the cache. Continue?", "continue"),
        ("This deletes the cache. Continue?", "yes, continue"),
    ] {
        check(question, text);
    }
    assert_none(&wrong);
}

#[test]
fn refusing_as_asked_is_not_refusing_to() {
    for text in ["yes, reject it", "reject it", "reject", "reject the proposal"] {
        let reply = asked(Kind::Confirm, "Reject the proposal?", text);
        assert_ne!(reply.action, Action::Reject, "`{text}`: {}", reply.because);
    }
    assert_eq!(asked(Kind::Confirm, "Reject the proposal?", "no").action, Action::Reject);
    assert_eq!(asked(Kind::Confirm, "Reject the proposal?", "no, don't reject it").action, Action::Reject);
}

#[test]
fn a_question_is_read_alike_in_every_language() {
    for (question, language, text) in [
        ("Annuler la commande ?", Language::French, "continuez"),
        ("Annuler la commande ?", Language::French, "c'est parfait"),
        ("Soll ich den Zweig löschen?", Language::German, "weiter"),
        ("¿Borrar la rama?", Language::Spanish, "adelante, perfecto"),
        ("Abort the deployment?", Language::French, "continuez"),
    ] {
        let languages = [Language::English, language];
        let question = Question::new(Kind::Confirm).asking(question).in_languages(&languages);
        assert!(!parse(text, &question).action.is_consent(), "`{text}`");
    }
    for (question, language, text) in [
        ("Annuler la commande ?", Language::French, "oui"),
        ("Soll ich den Zweig löschen?", Language::German, "ja"),
        ("¿Borrar la rama?", Language::Spanish, "sí"),
    ] {
        let languages = [language];
        let question = Question::new(Kind::Confirm).asking(question).in_languages(&languages);
        assert!(parse(text, &question).action.is_consent(), "`{text}`");
    }
}
