//! What a checkpoint may be called.

use serde_json::json;

use crate::support::TempProject;

#[test]
fn every_name_finds_its_checkpoint() {
    let project = TempProject::new();
    let first = project.save("one", &["--label", "good"]);
    let second = project.save("two", &["--label", "release=1.2", "--run", "build"]);
    let third = project.save("three", &["--run", "build"]);
    let cases = [
        ("@", &third),
        ("@-", &second),
        ("@--", &first),
        ("@-2", &first),
        ("last-good", &first),
        ("good", &first),
        ("release", &second),
        ("release=1.2", &second),
        ("build/1", &second),
        ("build/2", &third),
        ("build", &third),
        ("adhoc", &first),
        (&third, &third),
        (&third[..35], &third),
    ];
    for (name, id) in cases {
        assert_eq!(project.ok(&["--quiet", "show", name]).trim(), id, "{name}");
    }
    assert_eq!(project.ok(&["--quiet", "show", &first.to_uppercase()]).trim(), first);
    for name in [
        "@-9",
        "release=2",
        "build/3",
        "nothing",
        "0000",
        "build/x",
        "@x",
        "00000000-0000-0000-0000-000000000000",
    ] {
        project.run(&["show", name]).fails(3, &["no checkpoint is called", name, "log --all"]);
    }
}

#[test]
fn nothing_is_called_what_means_something_else() {
    let project = TempProject::new();
    for run in ["last-good", "@", "@x"] {
        project.run(&["save", "--run", run]).fails(2, &["cannot be the name of a new run", run]);
        project.run(&["gate", "ask", "Go?", "--run", run]).fails(2, &["cannot be the name of a new run"]);
    }
    for gate in ["@", "@x"] {
        project.run(&["gate", "ask", "Go?", "--id", gate]).fails(2, &["cannot be the name of a gate", gate]);
    }
    assert_eq!(project.json(&["gate", "list", "--all"])["gates"], json!([]));
    assert_eq!(project.run(&["gate", "ask", "Go?", "--id", "a@b"]).code, 6);
    assert_eq!(project.run(&["gate", "answer", "@", "yes"]).code, 0);
}

#[test]
fn a_short_id_as_printed_always_works_again() {
    let project = TempProject::new();
    let ids: Vec<String> = (0..6).map(|count| project.save(&format!("save {count}"), &[])).collect();
    let text = project.ok(&["log"]);
    for (line, id) in text.lines().zip(ids.iter().rev()) {
        let short = line.split_whitespace().next().unwrap();
        assert!(short.len() >= 8 && id.starts_with(short), "{line}");
        assert_eq!(project.ok(&["--quiet", "show", short]).trim(), id);
    }
}

#[test]
fn an_ambiguous_start_lists_what_it_could_mean() {
    let project = TempProject::new();
    let (first, second) = (project.save("one", &[]), project.save("two", &[]));
    let common = first.bytes().zip(second.bytes()).take_while(|(a, b)| a == b).count();
    let start = &first[..common.min(8)];
    project.run(&["show", start]).fails(3, &["the start of 2 checkpoint ids", &first, &second]);
    let ran = project.run(&["--json", "show", start]);
    assert_eq!((ran.code, ran.err.as_str()), (3, ""));
    let error: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&error["schema"], &error["error"]["code"]), (&json!(1), &json!("not_found")));
    assert!(error["error"]["hint"].as_str().unwrap().contains(&second));
}

#[test]
fn with_one_checkpoint_there_is_no_one_before_it() {
    let project = TempProject::new();
    project.save("only", &[]);
    project.run(&["diff", "@-", "@"]).fails(3, &["no checkpoint is called `@-`"]);
}

#[test]
fn a_label_that_means_something_else_already_is_refused() {
    let project = TempProject::new();
    let id = project.save("first", &[]);
    for bad in ["last-good", "@", "@-", "@--", "@-3", &id] {
        project.run(&["save", "--label", bad]).fails(2, &["cannot be a label", "means"]);
    }
    project.run(&["save", "--label", "a b"]).fails(2, &["cannot be a label"]);
    project.run(&["save", "--label", "a=b c"]).fails(2, &["cannot be a label"]);
    project.run(&["log", "--label", "a b"]).fails(2, &["cannot be a label"]);
    assert_eq!(project.ok(&["--quiet", "log"]).lines().count(), 1);
    for good in ["@home", "last-good=yes", "good"] {
        let id = project.save("labelled", &["--label", good]);
        assert_eq!(project.ok(&["--quiet", "show", good]).trim(), id);
    }
}
