//! Gates through the program: asked here, answered there, and what scripts see.

use std::io::Write;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{PROGRAM, Ran, TempProject};

fn started(project: &TempProject, args: &[&str]) -> Child {
    let mut command = project.tool(PROGRAM, args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

fn until_waiting(project: &TempProject, gate: &str) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        if project.run(&["--quiet", "gate", "list"]).out.lines().any(|line| line == gate) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{gate} was never asked");
}

fn lines(ran: &Ran) -> Vec<Value> {
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.out.lines().map(|line| serde_json::from_str(line).expect("one JSON object per line")).collect()
}

#[test]
fn replies_are_read_one_per_line() {
    let project = TempProject::plain();
    let ran = project.run_on("yes\nno\nyes but at 5\n\nmaybe\n", &["gate", "parse", "--kind", "confirm"]);
    let replies = lines(&ran);
    let actions: Vec<&str> = replies.iter().map(|reply| reply["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["confirm", "reject", "refine", "clarify", "clarify"]);
    for reply in &replies {
        assert!(reply["details"]["option_ids"].is_array() && reply["confidence"].is_number(), "{reply}");
        assert!(reply["because"].is_string() && reply["details"].get("text").is_some(), "{reply}");
    }
    assert!(!project.folder.join(".stagepost").exists(), "no store is needed");
}

#[test]
fn replies_in_json_bring_their_question_and_options() {
    let project = TempProject::plain();
    let input = concat!(
        r#"{"text": "the second one", "options": ["Red", "Blue"]}"#,
        "\n",
        r#"{"text": "blue", "question": "Which?", "options": [{"id": "b", "label": "Blue", "description": "calm"}, "Red"]}"#,
        "\n",
        r#"{"text": "either"}"#,
        "\n",
    );
    let file = project.write("options.json", r#"["Left", {"id": "r", "label": "Right"}]"#);
    let ran = project.run_on(
        input,
        &["gate", "parse", "--kind", "choose", "--jsonl", "--options", file.to_str().unwrap()],
    );
    let ids: Vec<Value> = lines(&ran).iter().map(|reply| reply["details"]["option_ids"].clone()).collect();
    assert_eq!(ids, [json!(["Blue"]), json!(["b"]), json!([])]);
    project.run_on("{\n", &["gate", "parse", "--jsonl"]).fails(2, &["line 1"]);
    project.run_on("x\n", &["gate", "parse", "--kind", "nothing"]).fails(2, &["confirm_intent"]);
    let foreign = project.run_on("sí\nja\n", &["gate", "parse"]);
    assert!(lines(&foreign).iter().all(|reply| reply["action"] == "clarify"));
    assert_eq!(lines(&project.run_on("sí\n", &["gate", "parse", "--lang", "en,es"]))[0]["action"], "confirm");
}

#[test]
fn without_a_terminal_nobody_is_asked_and_nothing_is_made_up() {
    let project = TempProject::new();
    let ran = project.run(&["gate", "ask", "Deploy now?", "--id", "d"]);
    assert_eq!(ran.code, 6, "{ran:?}");
    assert!(ran.out.contains("gate answer d"), "{ran:?}");
    // What happens to be on standard input is no answer unless that is said.
    assert_eq!(project.run_on("yes\n", &["gate", "ask", "Deploy now?", "--id", "d"]).code, 6);
    let status = project.ok(&[]);
    assert!(status.contains("waiting  d  just now  Deploy now?"), "{status}");
    assert_eq!(project.json(&["status"])["waiting"][0]["id"], "d");
    let read = project.run_on("hm\nyes\n", &["gate", "ask", "Deploy now?", "--id", "d", "--stdin"]);
    assert_eq!(read.code, 0, "{read:?}");
    assert_eq!(project.json(&["gate", "show", "d"])["gate"]["answer"]["origin"], "program");
}

#[test]
fn scripts_see_a_yes_as_0_and_everything_else_as_not_0() {
    let project = TempProject::new();
    for (number, (words, code)) in [
        ("yes", 0),
        ("no", 7),
        ("yes but move the lunch stop", 7),
        ("go back", 7),
        ("cancel", 7),
        ("tell me more", 7),
        ("maybe", 6),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("g{number}");
        assert_eq!(project.run(&["gate", "ask", "Go on?", "--id", &id]).code, 6);
        let answered = project.run(&["gate", "answer", &id, words]);
        assert_eq!(answered.code, if code == 6 { 6 } else { 0 }, "{words}: {answered:?}");
        assert_eq!(project.run(&["gate", "wait", &id, "--timeout", "10ms"]).code, code, "{words}");
        assert_eq!(project.run(&["gate", "ask", "Go on?", "--id", &id]).code, code, "asked again: {words}");
    }
    project.run(&["gate", "answer", "nope", "yes"]).fails(3, &["no gate is called `nope`"]);
    project.run(&["gate", "answer", "g0", "no"]).fails(4, &["was answered by ada", "reopen"]);
    project.run(&["gate", "ask", "x?", "--on-expiry", "approve"]).fails(2, &["never as a yes"]);
    project.run(&["gate", "ask", "x?", "--kind", "choose"]).fails(2, &["nothing to choose from"]);
}

#[test]
fn an_answer_comes_from_another_process_while_the_asker_waits() {
    let project = TempProject::new();
    let asker = started(
        &project,
        &[
            "--json",
            "gate",
            "ask",
            "Which?",
            "--kind",
            "choose",
            "--option",
            "s=Staging",
            "--option",
            "p=Production",
            "--id",
            "c",
            "--wait",
        ],
    );
    until_waiting(&project, "c");
    project.ok(&["gate", "answer", "@", "the", "second", "one"]);
    let ran = Ran::of(asker.wait_with_output());
    assert_eq!(ran.code, 0, "{ran:?}");
    let value: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(value["gate"]["answer"]["reply"]["details"]["option_ids"], json!(["p"]));
    assert_eq!((&value["schema"], &value["gate"]["state"]), (&json!(1), &json!("answered")));
}

#[test]
fn the_asker_is_killed_and_the_gate_is_answered_once() {
    let project = TempProject::new();
    let mut asker = started(&project, &["gate", "ask", "Deploy?", "--id", "k", "--wait"]);
    until_waiting(&project, "k");
    asker.kill().unwrap();
    asker.wait().unwrap();
    project.ok(&["gate", "answer", "k", "yes"]);
    project.run(&["gate", "answer", "k", "no"]).fails(4, &["answered by ada"]);
    assert_eq!(
        project.run(&["gate", "ask", "Deploy?", "--id", "k"]).code,
        0,
        "the next one finds the answer"
    );
    project.ok(&["verify"]);
}

#[test]
fn processes_that_answer_at_once_are_told_who_was_first() {
    let project = TempProject::new();
    for round in 0..3 {
        let id = format!("r{round}");
        project.run(&["gate", "ask", "Go?", "--id", &id]);
        let all: Vec<Child> = (0..5)
            .map(|number| started(&project, &["gate", "answer", &id, "--by", &format!("p{number}"), "yes"]))
            .collect();
        let ended: Vec<Ran> = all.into_iter().map(|one| Ran::of(one.wait_with_output())).collect();
        let won = project.json(&["gate", "show", &id])["gate"]["answer"]["by"].as_str().unwrap().to_owned();
        assert_eq!(ended.iter().filter(|ran| ran.code == 0).count(), 1, "{ended:?}");
        for ran in ended.iter().filter(|ran| ran.code != 0) {
            ran.fails(4, &[&format!("was answered by {won}")]);
        }
    }
}

#[test]
fn waiting_costs_no_processor_time() {
    let project = TempProject::new();
    project.run(&["gate", "ask", "Go?", "--id", "w"]);
    let mut waiting = started(&project, &["gate", "wait", "w"]);
    std::thread::sleep(Duration::from_millis(700));
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", waiting.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let before = ticks();
    std::thread::sleep(Duration::from_secs(2));
    let used = ticks() - before;
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    assert!(used <= 2, "{used} ticks of 10 ms in 2 s");
}

#[test]
fn an_expired_gate_takes_its_outcome() {
    let project = TempProject::new();
    let ran = project.run(&[
        "--json",
        "gate",
        "ask",
        "Go?",
        "--id",
        "e",
        "--expires",
        "1s",
        "--on-expiry",
        "cancel",
        "--wait",
    ]);
    assert_eq!(ran.code, 7, "{ran:?}");
    let value: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&value["gate"]["state"], &value["gate"]["outcome"]), (&json!("expired"), &json!("cancel")));
    project.run(&["gate", "answer", "e", "yes"]).fails(4, &["expired", "cancel"]);
    project.ok(&["gate", "reopen", "e"]);
    project.ok(&["gate", "answer", "e", "yes"]);
}

#[test]
fn reopening_says_first_what_becomes_void() {
    let project = TempProject::new();
    project.write("a.txt", "one");
    for id in ["first", "second"] {
        project.run(&["gate", "ask", "Go?", "--id", id, "--run", "r", "--files"]);
        project.ok(&["gate", "answer", id, "yes"]);
        project.write("a.txt", "two");
    }
    let dry = project.ok(&["gate", "reopen", "first", "--dry-run"]);
    assert!(dry.contains("first would wait again") && dry.contains("would be void: second"), "{dry}");
    assert!(project.ok(&["--quiet", "gate", "list"]).is_empty());
    project.ok(&["gate", "reopen", "first", "--files", "--why", "another look"]);
    assert_eq!(std::fs::read_to_string(project.folder.join("a.txt")).unwrap(), "one");
    assert_eq!(project.ok(&["--quiet", "gate", "list"]).trim(), "first");
    assert_eq!(project.run(&["gate", "wait", "second"]).code, 7);
    let shown = project.ok(&["gate", "show", "second"]);
    assert!(shown.contains("is void: ada went back to first") && shown.contains("ada: “yes”"), "{shown}");
}

#[test]
fn a_changed_proposal_is_asked_again() {
    let project = TempProject::new();
    let data = project.write("plan.json", r#"{"version": 7}"#);
    let ask = ["gate", "ask", "Release?", "--kind", "approve", "--id", "p", "--data", data.to_str().unwrap()];
    assert_eq!(project.run(&ask).code, 6);
    let shown = project.json(&["gate", "show", "p"])["gate"]["shown"].as_str().unwrap().to_owned();
    project.ok(&["gate", "answer", "p", "approved"]);
    assert_eq!(project.run(&ask).code, 0);
    project.write("plan.json", r#"{"version": 8}"#);
    assert_eq!(project.run(&ask).code, 6, "the approval was for something else");
    project.run(&["gate", "answer", "p", "--shown", &shown, "yes"]).fails(4, &["has changed since"]);
}

#[test]
fn a_program_asks_for_us() {
    let project = TempProject::new();
    assert_eq!(project.run(&["gate", "ask", "Go?", "--via", "cat > question.json; echo yes"]).code, 0);
    let question = std::fs::read_to_string(project.folder.join("question.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&question).unwrap()["question"], "Go?");
    assert_eq!(project.run(&["gate", "ask", "Go on?", "--via", "exit 3"]).code, 6);
}

#[test]
fn a_journey_goes_on_where_it_was() {
    let project = TempProject::new();
    let text = r#"{"name": "note", "stops": [
        {"id": "draft", "run": "echo x >> drafts; echo '{\"text\": \"hello\"}'"},
        {"id": "ok", "ask": {"kind": "approve", "question": "Send it?"}, "data": "draft", "on": {"approve": "send", "refine": "draft"}},
        {"id": "send", "run": "echo sent > sent; echo '{}'"}
    ]}"#;
    let file = project.write("journey.json", text);
    let run = ["gate", "journey", "run", file.to_str().unwrap()];
    assert_eq!(project.run(&run).code, 6);
    project.ok(&["gate", "answer", "@", "yes but make it shorter"]);
    assert_eq!(project.run(&run).code, 6);
    assert_eq!(project.ok(&["--quiet", "gate", "list"]).trim(), "note.ok.2");
    assert!(!project.folder.join("sent").exists());
    project.ok(&["gate", "answer", "note.ok.2", "yes, send it"]);
    assert_eq!(project.json(&run)["state"], "done");
    assert_eq!(std::fs::read_to_string(project.folder.join("drafts")).unwrap(), "x\nx\n");
    assert_eq!(project.run(&run).code, 0);
    let mut other = std::fs::File::create(project.folder.join("bad.json")).unwrap();
    other.write_all(b"{\"name\": \"x\", \"stops\": []}").unwrap();
    project.run(&["gate", "journey", "run", "bad.json"]).fails(2, &["no stop"]);
}
