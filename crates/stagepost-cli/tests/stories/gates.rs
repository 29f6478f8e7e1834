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

/// Reads the number that a program wrote to a file, once it is there.
fn number_in(file: &std::path::Path) -> i32 {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        match std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()) {
            Some(number) => return number,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    panic!("{} was never written", file.display());
}

#[test]
fn killed_while_a_program_asks_the_gate_stays_and_the_program_does_not() {
    let project = TempProject::new();
    let asks = "(sleep 600 & echo $! > grandchild; wait) & echo $$ > child; wait; echo yes";
    let mut asker = started(&project, &["gate", "ask", "Deploy?", "--id", "v", "--via", asks]);
    let numbers = ["child", "grandchild"].map(|name| number_in(&project.folder.join(name)));
    let all = numbers.map(stagepost::process::Identity::of);
    assert!(all.iter().all(stagepost::process::Identity::is_alive), "{all:?}");
    asker.kill().unwrap();
    asker.wait().unwrap();
    let begun = Instant::now();
    while all.iter().any(stagepost::process::Identity::is_alive) {
        assert!(begun.elapsed() < Duration::from_secs(20), "left behind: {all:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(project.ok(&["--quiet", "gate", "list"]).trim(), "v");
    project.ok(&["gate", "answer", "v", "yes"]);
    project.ok(&["verify"]);
}

#[test]
fn a_journey_that_nobody_finishes_is_given_up() {
    let project = TempProject::new();
    let text = r#"{"name": "note", "stops": [
        {"id": "draft", "run": "echo '{}'"},
        {"id": "ok", "ask": {"kind": "approve", "question": "Send it?"}, "data": "draft", "on": {"approve": "end"}}
    ]}"#;
    let file = project.write("journey.json", text);
    let run = ["gate", "journey", "run", file.to_str().unwrap()];
    assert_eq!(project.run(&run).code, 6);
    assert_eq!(project.ok(&["gate", "journey", "list"]).trim(), "note  waits at note.ok.1");
    project.run(&["gate", "journey", "abandon", "other"]).fails(3, &["no journey `other`", "journey list"]);
    let told = project.ok(&["gate", "journey", "abandon", "note", "--why", "out of date"]);
    assert!(told.contains("note.ok.1 is cancelled") && told.contains("given up"), "{told}");
    assert!(project.ok(&["--quiet", "gate", "journey", "list"]).is_empty());
    let none = project.run(&["gate", "journey", "list"]);
    assert!(none.code == 0 && none.err.contains("no journey"), "{none:?}");
    assert!(project.ok(&["gate", "show", "note.ok.1"]).contains("out of date"));
    project.run(&["gate", "journey", "abandon", "note"]).fails(3, &["no journey `note`"]);
    assert_eq!(project.run(&run).code, 7, "it was given up there");
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

/// Plays a person at a terminal: waits for a text on the screen, then presses keys, in turn. Prints how the program ended,
/// whether the terminal is as it was, and what was on the screen.
const PERSON: &str = r#"
import json, os, pty, re, select, signal, sys, termios, time
script, argv = json.loads(sys.argv[1]), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(argv[0], argv)
before = termios.tcgetattr(terminal)
seen, start, deadline = '', 0, time.time() + 60
def read():
    global seen
    if select.select([terminal], [], [], 0.05)[0]:
        try:
            seen += os.read(terminal, 65536).decode(errors='replace')
        except OSError:
            return False
    return time.time() < deadline
for text, keys in script:
    while text not in seen[start:] and read():
        pass
    start = len(seen)
    # The question forgets what was typed before it was shown; letters come after that.
    time.sleep(0.3)
    if keys == 'TERM':
        os.kill(pid, signal.SIGTERM)
    else:
        os.write(terminal, keys.encode())
while read():
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        break
else:
    os.kill(pid, signal.SIGKILL)
    done, status = os.waitpid(pid, 0)
read()
try:
    same = termios.tcgetattr(terminal)[3] == before[3]
except termios.error:
    same = None
code = os.waitstatus_to_exitcode(status)
print(json.dumps({'code': code, 'same': same, 'screen': seen}))
"#;

pub(crate) fn at_a_terminal(
    project: &TempProject,
    term: &str,
    script: serde_json::Value,
    args: &[&str],
) -> serde_json::Value {
    let script = script.to_string();
    let whole = [&["-c", PERSON, &script, crate::support::PROGRAM][..], args].concat();
    let ran = project.tool("python3", &whole).env("TERM", term).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

/// Nobody can play a person where Python is not installed. `scripts/test` installs it and lets nothing be skipped.
#[allow(clippy::print_stderr, reason = "a story that is not told has to say so")]
pub(crate) fn has_python(project: &TempProject) -> bool {
    let found = project.tool("python3", ["-c", "import pty"]).output().is_ok_and(|ran| ran.status.success());
    assert!(found || std::env::var_os("STAGEPOST_SKIP_NOTHING").is_none(), "python3 is missing");
    if !found {
        eprintln!("skipped: python3 is missing, so nobody plays a person at a terminal");
    }
    found
}

#[test]
fn at_a_terminal_answers_are_picked_with_keys() {
    let project = TempProject::new();
    if !has_python(&project) {
        return;
    }
    let choose = [
        "gate", "ask", "Where?", "--kind", "choose", "--option", "n=North", "--option", "s=South",
        "--option", "w=West",
    ];
    let ask = |id: &str, term: &str, keys: &[(&str, &str)], more: &[&str]| {
        let done = at_a_terminal(&project, term, json!(keys), &[&choose[..], &["--id", id], more].concat());
        let shown: Value = serde_json::from_str(&project.run(&["--json", "gate", "show", id]).out).unwrap();
        (done, shown["gate"].clone())
    };
    let taken = |gate: &Value| gate["answer"]["reply"]["details"]["option_ids"].clone();

    let (done, gate) = ask("down", "xterm", &[("Enter says it", "\u{1b}[B\r")], &[]);
    assert_eq!((&done["code"], &done["same"]), (&json!(0), &json!(true)), "{done}");
    assert_eq!((taken(&gate), &gate["answer"]["origin"]), (json!(["s"]), &json!("person")));
    let (done, gate) = ask("text", "xterm", &[("Enter says it", "we\r")], &[]);
    assert_eq!((&done["code"], taken(&gate)), (&json!(0), json!(["w"])), "{done}");
    let (done, gate) = ask("several", "xterm", &[("space marks", " jj \r")], &["--multiple"]);
    assert_eq!((&done["code"], taken(&gate)), (&json!(0), json!(["n", "w"])), "{done}");
    let (done, gate) = ask("plain", "xterm", &[("Enter says it", "\u{1b}"), ("> ", "the second one\r")], &[]);
    assert_eq!((&done["code"], taken(&gate)), (&json!(0), json!(["s"])), "{done}");
    let (done, gate) = ask("dumb", "dumb", &[("> ", "3\r")], &[]);
    assert_eq!((&done["code"], taken(&gate)), (&json!(0), json!(["w"])), "{done}");
    assert!(!done["screen"].as_str().unwrap().contains('\u{1b}'), "{done}");
}

#[test]
fn leaving_the_menu_leaves_the_gate_waiting_and_the_terminal_as_it_was() {
    let project = TempProject::new();
    if !has_python(&project) {
        return;
    }
    for (id, keys, code) in [("c", "\u{3}", 130), ("d", "\u{4}", 6), ("t", "TERM", -15)] {
        let done = at_a_terminal(
            &project,
            "xterm",
            json!([["Enter says it", keys]]),
            &["gate", "ask", "Deploy?", "--id", id],
        );
        assert_eq!((&done["code"], &done["same"]), (&json!(code), &json!(true)), "{id}: {done}");
        let shown: Value = serde_json::from_str(&project.run(&["--json", "gate", "show", id]).out).unwrap();
        assert_eq!(shown["gate"]["state"], "waiting", "{id}");
    }
}

#[test]
fn options_after_the_words_of_an_answer_are_options() {
    let project = TempProject::new();
    for id in ["a", "b", "c", "d"] {
        project.run(&["gate", "ask", "Who reviews it?", "--kind", "input", "--id", id]);
    }
    let said = |id: &str| {
        let answer = project.json(&["gate", "show", id])["gate"]["answer"].clone();
        (answer["words"].as_str().unwrap().to_owned(), answer["by"].as_str().unwrap().to_owned())
    };
    project.ok(&["gate", "answer", "a", "Ann Lee", "--by", "bob"]);
    assert_eq!(said("a"), ("Ann Lee".to_owned(), "bob".to_owned()));
    let quiet = project.ok(&["gate", "answer", "b", "Ann", "Lee", "--by", "bob", "--origin", "policy", "-q"]);
    assert_eq!(quiet.trim(), "b");
    assert_eq!(said("b"), ("Ann Lee".to_owned(), "bob".to_owned()));
    project.run(&["gate", "answer", "c", "Ann", "--bye"]).fails(2, &["--bye"]);
    project.ok(&["gate", "answer", "c", "--by", "bob", "--", "--by", "Ann"]);
    assert_eq!(said("c"), ("--by Ann".to_owned(), "bob".to_owned()));
    project.ok(&["gate", "answer", "d", "-1"]);
    assert_eq!(said("d").0, "-1");
}

#[test]
fn a_gate_in_another_language_takes_the_words_it_offers() {
    let project = TempProject::new();
    project.run(&["gate", "ask", "Weiter?", "--id", "l", "--lang", "de"]);
    let shown = project.ok(&["gate", "show", "l", "--form", "text"]);
    assert!(shown.contains("ja") && shown.contains("nein") && !shown.contains("yes"), "{shown}");
    assert_eq!(project.run(&["gate", "answer", "l", "yes"]).code, 6);
    project.ok(&["gate", "answer", "l", "ja"]);
    assert_eq!(project.run(&["gate", "wait", "l", "--timeout", "10ms"]).code, 0);
}

#[test]
fn why_a_gate_was_opened_again_is_shown() {
    let project = TempProject::new();
    project.run(&["gate", "ask", "Go?", "--id", "w"]);
    project.ok(&["gate", "answer", "w", "yes"]);
    project.ok(&["gate", "reopen", "w", "--why", "the plan has a hole"]);
    assert!(project.ok(&["gate", "show", "w"]).contains("the plan has a hole"));
    assert_eq!(project.json(&["gate", "show", "w"])["gate"]["reopened"]["why"], "the plan has a hole");
}

#[test]
fn gates_are_listed_in_columns_and_shown_as_json_in_every_form() {
    let project = TempProject::new();
    project.run(&["gate", "ask", "Go on?", "--id", "a"]);
    project.run(&["gate", "ask", "Go on?", "--id", "much-longer"]);
    let listed = project.ok(&["gate", "list"]);
    let columns: Vec<_> = listed.lines().map(|line| line.find("waiting")).collect();
    assert!(columns.len() == 2 && columns[0] == columns[1], "{listed}");
    for form in ["text", "markdown"] {
        let shown = project.json(&["gate", "show", "a", "--form", form]);
        assert!(shown["text"].as_str().unwrap().contains("Go on?"), "{shown}");
    }
    project.run(&["gate", "ask", "Go?", "--id", "a/b"]).fails(2, &["cannot be the name of a gate"]);
}

/// What looks like a token, and is not stored: one per number.
fn lookalike(number: u32) -> String {
    format!("ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6{number:04}")
}

#[test]
fn a_yes_holds_for_what_was_really_asked() {
    let project = TempProject::new();
    let (one, other) = (lookalike(1), lookalike(2));
    let ask =
        |message: &str| project.run(&["gate", "ask", "--id", "q", "Go on?", "-m", message, "--pending"]);
    assert_eq!(ask(&one).code, 6);
    project.ok(&["gate", "answer", "q", "yes"]);
    assert_eq!(ask(&one).code, 0, "the same finds its answer");
    assert_eq!(ask(&other).code, 6, "something else is asked again");
    let data = |token: &str| {
        project.write("data.json", json!({"branch": token}).to_string());
        project.run(&["gate", "ask", "--id", "d", "Delete it?", "--data", "data.json", "--pending"])
    };
    assert_eq!(data(&one).code, 6);
    project.ok(&["gate", "answer", "d", "yes"]);
    assert_eq!((data(&one).code, data(&other).code), (0, 6));
    let shown = project.ok(&["--json", "gate", "list", "--all"]);
    assert!(shown.contains("***") && !shown.contains("a1B2c3"), "{shown}");
    project.ok(&["verify"]);
}

#[test]
fn what_a_person_could_not_see_is_not_asked() {
    let project = TempProject::new();
    let (one, other) = (lookalike(1), lookalike(2));
    let refused = |what: &str, args: &[&str]| {
        let ran = project.run(&[&["gate", "ask", "--id", "q", "--pending"], args].concat());
        ran.fails(4, &["this cannot be asked", what, "looks like a token"]);
        assert!(!ran.err.contains("a1B2c3"), "{ran:?}");
    };
    refused("the question", &[&format!("Delete the branch {one}?")]);
    refused("option 2", &["Which?", "--kind", "choose", "--option", "none", "--option", &one]);
    refused("option 1", &["Which?", "--kind", "choose", "--option", &one, "--option", &other]);
    refused("option 1", &["Which?", "--kind", "choose", "--option", &format!("{one}=first")]);
    refused("option 2", &["Which?", "--kind", "choose", "--option", "a=the ***", "--option", "b=the ***"]);
    refused("the phrase", &["Delete?", "--risk", "high", "--phrase", &format!("delete {one}")]);
    assert_eq!(project.ok(&["--quiet", "gate", "list", "--all"]), "");

    assert_eq!(project.run(&["gate", "ask", "--id", "i", "Which key?", "--kind", "input"]).code, 6);
    project.run(&["gate", "answer", "i", &one]).fails(4, &["gate `i` cannot take this answer", "its name"]);
    assert_eq!(project.run(&["gate", "wait", "i", "--timeout", "10ms"]).code, 6, "it waits on");
    project.ok(&["gate", "answer", "i", "DEPLOY_KEY"]);
}

#[test]
fn a_name_that_looks_like_a_token_is_still_a_name() {
    let project = TempProject::new();
    let run = lookalike(1);
    let gate = format!("{run}.g");
    for text in ["1", "2", "3"] {
        project.write("f", text);
        project.save(text, &["--run", &run]);
    }
    assert_eq!(project.run(&["gate", "ask", "--id", &gate, "--run", &run, "ok?", "--pending"]).code, 6);
    assert!(project.ok(&[]).contains(&gate));
    assert_eq!(project.ok(&["--quiet", "gate", "list"]).trim(), gate);
    assert_eq!(project.json(&["gate", "show", "@"])["gate"]["of"]["run"], run.as_str());
    project.ok(&["gc", "--keep", "1"]);
    assert_eq!(project.ok(&["--quiet", "log", "--run", &run]).lines().count(), 3, "its gate waits");
    project.ok(&["gate", "answer", "@", "yes"]);
    assert_eq!(project.ok(&["--quiet", "gate", "list"]), "");
}

#[test]
fn a_list_of_waiting_gates_with_a_name_that_was_taken_out_is_read() {
    use stagepost::model::{Event, Topic, WAITING_GATES};
    use stagepost::store::{Batch, NewEntry, OpenOptions, SqliteStore, Store};
    let project = TempProject::new();
    assert_eq!(project.run(&["gate", "ask", "--id", "g", "ok?", "--pending"]).code, 6);
    let store = SqliteStore::open(&project.store, &OpenOptions::default()).unwrap();
    let at = stagepost::project::Clock::now(&stagepost::project::SystemClock);
    let body = json!({"waiting": ["***.g", "g"]});
    let event = Event { topic: Topic::Gate, key: WAITING_GATES.to_owned(), at, body };
    store.write(Batch { entries: vec![NewEntry::Event(event)], ..Batch::default() }).unwrap();
    drop(store);
    assert!(project.ok(&[]).contains("ok?"));
    assert_eq!(project.ok(&["--quiet", "gate", "list"]).trim(), "g");
    assert_eq!(project.json(&["gate", "show", "@"])["gate"]["id"], "g");
    project.ok(&["gate", "answer", "@", "yes"]);
    assert_eq!(project.ok(&["--quiet", "gate", "list"]), "");
}

#[test]
fn a_run_that_waits_is_not_called_by_what_is_short_for_another() {
    let project = TempProject::new();
    let refused = project.run(&["gate", "ask", "Deploy?", "--run", "@x"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("`@x` cannot be the name of a new run"), "{}", refused.err);
    assert_eq!(project.ok(&["--quiet", "gate", "list"]), "");
    assert_eq!(project.run(&["gate", "ask", "Deploy?", "--run", "adhoc"]).code, 6);
}

#[test]
fn where_words_are_given_that_agree_a_yes_does_not() {
    let project = TempProject::new();
    assert_eq!(project.run(&["gate", "ask", "Drop it?", "--id", "drop", "--phrase", "drop prod"]).code, 6);
    assert_eq!(project.run(&["gate", "answer", "drop", "yes"]).code, 6);
    project.ok(&["gate", "answer", "drop", "drop prod"]);
    assert_eq!(project.run(&["gate", "wait", "drop"]).code, 0);
    let parsed = project.run_on("yes\ndrop prod\n", &["gate", "parse", "--phrase", "drop prod"]);
    let actions: Vec<Value> = lines(&parsed).iter().map(|reply| reply["action"].clone()).collect();
    assert_eq!(actions, [json!("clarify"), json!("confirm")]);
    let low = project.run(&["gate", "ask", "Drop it?", "--risk", "low", "--phrase", "drop prod"]);
    assert_eq!(low.code, 2, "{low:?}");
}

#[test]
fn what_was_said_on_several_lines_is_shown_whole() {
    let project = TempProject::new();
    project.run(&["gate", "ask", "Go on?", "--id", "g"]);
    let told = project.ok(&["gate", "answer", "g", "yes\nno, stop"]);
    assert!(told.contains("“yes / no, stop”"), "{told}");
    assert_eq!(project.ok(&["gate", "show", "g"]).matches("“yes / no, stop”").count(), 2);
}

#[test]
fn several_can_be_chosen_only_where_something_is() {
    let project = TempProject::new();
    for kind in ["confirm", "approve", "input"] {
        let ran = project.run(&["gate", "ask", "Go?", "--multiple", "--kind", kind]);
        ran.fails(2, &["--multiple is for choosing", kind, "--kind choose"]);
        let ran = project.run_on("yes\n", &["gate", "parse", "--multiple", "--kind", kind]);
        ran.fails(2, &["--multiple is for choosing"]);
    }
    assert_eq!(project.json(&["gate", "list", "--all"])["gates"], json!([]));
    let several = ["gate", "ask", "Which?", "--id", "g", "--multiple", "--kind", "choose"];
    assert_eq!(project.run(&[&several[..], &["--option", "red", "--option", "blue"]].concat()).code, 6);
    assert!(project.ok(&["gate", "show", "g", "--form", "ask"]).contains(r#""multiSelect": true"#));
}
