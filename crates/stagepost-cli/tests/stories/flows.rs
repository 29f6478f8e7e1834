//! Flows through the program: started, killed, gone on with, looked at.

use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::{PROGRAM, Ran, TempProject, soon};

const THREE: &str = r#"
name: three
steps:
  - {id: one, run: 'echo one >> log; echo hello'}
  - {id: two, run: 'echo two >> log; test ! -e slow || sleep 633; test ! -e fail'}
  - {id: three, run: 'echo three >> log'}
"#;

fn project(flow: &str) -> TempProject {
    let project = TempProject::new();
    project.write("flow.yaml", flow);
    project
}

fn log(project: &TempProject) -> String {
    let text = std::fs::read_to_string(project.folder.join("log")).unwrap_or_default();
    text.lines().collect::<Vec<_>>().join(" ")
}

/// Starts a command, and waits until a file of the project says something.
fn started(project: &TempProject, args: &[&str], until: &str) -> Child {
    let mut child =
        project.tool(PROGRAM, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for _ in 0..2000 {
        if log(project) == until {
            return child;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("it never got to `{until}`: {}", log(project));
}

/// Says whether a process is there whose command line has a word.
fn is_alive(word: &str) -> bool {
    let commands = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
    let mut texts = commands.filter_map(|path| std::fs::read(path).ok());
    texts.any(|text| text.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes()))
}

fn dies_soon(word: &str) -> bool {
    soon(|| !is_alive(word))
}

#[test]
fn a_flow_that_failed_is_shown_mended_and_gone_on_with() {
    let project = project(THREE);
    project.write("fail", "");
    let ran = project.run(&["flow", "run", "flow.yaml", "--run-id", "r1"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("one | hello") && ran.err.contains("two failed"), "{}", ran.err);
    assert!(ran.out.contains("next: stagepost flow resume r1"), "{}", ran.out);
    let quiet = project.run(&["--quiet", "flow", "resume", "r1"]);
    assert_eq!((quiet.code, quiet.out.as_str()), (1, "r1\n"), "{quiet:?}");
    assert!(quiet.err.contains("run r1 failed"), "{quiet:?}");
    let shown = project.json(&["flow", "show", "r1"]);
    assert_eq!(shown["run"]["status"], "failed");
    let of = |step: usize| shown["run"]["steps"][step]["status"].as_str().unwrap().to_owned();
    assert_eq!([of(0), of(1), of(2)], ["completed", "failed", "pending"]);
    assert_eq!(shown["run"]["steps"][1]["exit"], 1);
    let plan = project.json(&["flow", "plan", "r1"]);
    let verdicts: Vec<&str> =
        plan["steps"].as_array().unwrap().iter().map(|one| one["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["reuse", "failed", "new"]);
    assert!(project.ok(&["flow", "why", "r1", "two"]).starts_with("two: failed: attempt 2 failed"));

    std::fs::remove_file(project.folder.join("fail")).unwrap();
    project.ok(&["flow", "resume", "r1"]);
    assert_eq!(log(&project), "one two two two three");
    assert_eq!(project.ok(&["--quiet", "flow", "list", "--status", "completed"]), "r1\n");
    assert_eq!(project.ok(&["flow", "show", "r1", "--output", "one"]), "hello\n");
    let again = project.run(&["flow", "resume", "r1"]);
    assert_eq!(again.code, 0);
    assert!(again.err.contains("is completed already"), "{}", again.err);
    let kept = project.json(&["flow", "checkpoints", "r1"])["checkpoints"].as_array().unwrap().len();
    assert_eq!(kept, 5, "one for each attempt: one, two, two, two, three");
}

#[test]
fn a_runner_that_is_killed_leaves_nobody_behind_and_the_run_goes_on() {
    let project = project(THREE);
    project.write("slow", "");
    let mut child = started(&project, &["flow", "run", "flow.yaml", "--run-id", "r1"], "one two");
    assert_eq!(project.json(&["flow", "show", "r1"])["run"]["status"], "running");
    project.run(&["flow", "resume", "r1"]).fails(75, &["is being driven by process"]);
    child.kill().unwrap();
    child.wait().unwrap();
    let shown = project.json(&["flow", "show", "r1"]);
    assert_eq!(
        (&shown["run"]["status"], &shown["run"]["steps"][1]["status"]),
        (&"interrupted".into(), &"interrupted".into())
    );
    assert!(dies_soon("633"), "the step outlived its runner");
    std::fs::remove_file(project.folder.join("slow")).unwrap();
    project.ok(&["flow", "run", "flow.yaml", "--resume"]);
    assert_eq!(log(&project), "one two two three");
    let steps = project.json(&["flow", "show", "r1"])["run"]["steps"].clone();
    assert_eq!(
        (&steps[1]["attempt"], &steps[1]["attempts"]),
        (&2.into(), &2.into()),
        "what was cut off counts"
    );
}

#[test]
fn a_runner_that_is_killed_leaves_nobody_behind_who_has_no_environment() {
    // By itself, with somebody in the background, and with most of it in another group.
    for run in [
        "env -i /bin/sh -c 'while :; do echo t >> ticks; /bin/sleep 0.05; done'",
        "env -i /bin/sh -c '(exec /bin/sleep 634.1) & while :; do echo t >> ticks; /bin/sleep 0.05; done'",
        "env -i /usr/bin/timeout 634.2 /bin/sh -c 'while :; do echo t >> ticks; /bin/sleep 0.05; done'",
    ] {
        let project = project(&format!(
            "name: bare\nsteps:\n  - id: a\n    run: |\n      echo begun > log\n      {run}\n"
        ));
        let mut child = started(&project, &["flow", "run", "flow.yaml", "--run-id", "r1"], "begun");
        let ticks = || std::fs::read(project.folder.join("ticks")).unwrap_or_default().len();
        assert!(soon(|| ticks() > 4), "{run}");
        child.kill().unwrap();
        child.wait().unwrap();
        let still = || {
            let before = ticks();
            std::thread::sleep(Duration::from_millis(200));
            ticks() == before
        };
        assert!((0..20).any(|_| still()), "the step outlived its runner: {run}");
        assert!(dies_soon("634.1") && dies_soon("634.2"), "{run}");
    }
}

#[test]
fn a_runner_that_is_killed_takes_no_stranger_along() {
    let project = project(THREE);
    project.write("slow", "");
    let mut child = started(&project, &["flow", "run", "flow.yaml", "--run-id", "r1"], "one two");
    // The number of a group that is over went to a daemon whose leader is gone.
    let mut leader = std::process::Command::new("sh");
    leader.args(["-c", "sleep 635.1 > /dev/null 2>&1 &"]);
    let mut leader = std::os::unix::process::CommandExt::process_group(&mut leader, 0).spawn().unwrap();
    leader.wait().unwrap();
    assert!(soon(|| is_alive("635.1")));
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let who = format!("{}\t1\t{}", leader.id(), boot.trim());
    let lines = project.folder.join(".git/stagepost/flow/r1/attempts");
    let mut lines = std::fs::OpenOptions::new().append(true).open(lines).unwrap();
    std::io::Write::write_all(&mut lines, format!("process\t{who}\tone\nover\t{who}\n").as_bytes()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(dies_soon("633"), "the step outlived its runner");
    std::thread::sleep(Duration::from_millis(300));
    assert!(is_alive("635.1"), "it was none of ours");
    std::process::Command::new("kill").args(["--", &format!("-{}", leader.id())]).status().unwrap();
}

#[test]
fn control_c_ends_the_step_and_says_so() {
    let project = project(THREE);
    project.write("slow", "");
    let child = started(&project, &["flow", "run", "flow.yaml", "--run-id", "r1"], "one two");
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ran = Ran::of(child.wait_with_output());
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(ran.err.contains("two cancelled"), "{}", ran.err);
    assert!(!is_alive("633"));
    assert_eq!(project.json(&["flow", "show", "r1"])["run"]["status"], "interrupted");
}

#[test]
fn cancelling_stops_whoever_drives_the_run_for_good() {
    let project = project(THREE);
    project.write("slow", "");
    let child = started(&project, &["flow", "run", "flow.yaml", "--run-id", "r1"], "one two");
    let cancelled = project.json(&["flow", "cancel", "r1", "-m", "enough"]);
    assert_eq!(
        (&cancelled["run"]["status"], &cancelled["run"]["why"]),
        (&"cancelled".into(), &"enough".into())
    );
    let driver = Ran::of(child.wait_with_output());
    assert_eq!(driver.code, 130);
    assert!(driver.out.contains("cancelled: enough") && !driver.out.contains("next:"), "{driver:?}");
    project.run(&["flow", "resume", "r1"]).fails(4, &["run `r1` is cancelled already", "flow fork r1"]);
}

#[test]
fn a_changed_definition_is_named_and_accepted() {
    let project = project(THREE);
    project.write("fail", "");
    project.run(&["flow", "run", "flow.yaml", "--run-id", "r1"]);
    std::fs::remove_file(project.folder.join("fail")).unwrap();
    project.write("flow.yaml", THREE.replace("echo one >>", "echo uno >>"));
    project.run(&["flow", "resume", "r1"]).fails(4, &["changed since it was done: one", "--accept-changes"]);
    assert!(project.ok(&["flow", "why", "r1", "one"]).starts_with("one: changed: command differs"));
    project.ok(&["flow", "resume", "r1", "--accept-changes"]);
    assert_eq!(log(&project), "one two uno two three");
    project.ok(&["flow", "rerun", "r1", "three"]);
    project.ok(&["flow", "rerun", "r1", "one", "--only"]);
    assert_eq!(log(&project), "one two uno two three three uno");
    project.ok(&["flow", "run", "flow.yaml", "--run-id", "r1", "--resume", "--resume-step", "2"]);
    assert!(log(&project).ends_with("uno three"), "{}", log(&project));
}

#[test]
fn a_fork_shares_the_past() {
    let project = project(THREE);
    project.ok(&["flow", "run", "flow.yaml", "--run-id", "r1"]);
    let forked = project.ok(&["--quiet", "flow", "fork", "r1", "--from-step", "2", "--run-id", "r2"]);
    assert_eq!(forked, "r2\n");
    project.ok(&["flow", "resume", "r2"]);
    assert_eq!(log(&project), "one two three three");
    assert_eq!(project.ok(&["verify", "--quiet"]), "");
}

#[test]
fn a_question_waits_with_its_own_exit_code() {
    let flow = r#"
name: asking
steps:
  - {id: draft, run: 'echo draft >> log'}
  - id: approve
    ask: {kind: approve, message: Publish?}
  - {id: publish, run: 'echo publish >> log'}
"#;
    let project = project(flow);
    let ran = project.run(&["flow", "run", "flow.yaml", "--run-id", "r1"]);
    assert_eq!(ran.code, 6, "{ran:?}");
    assert!(ran.out.contains("stagepost gate answer r1.approve TEXT"), "{}", ran.out);
    project.ok(&["gate", "answer", "r1.approve", "approve"]);
    project.ok(&["flow", "resume", "@"]);
    assert_eq!(log(&project), "draft publish");
    project.run(&["flow", "run", "flow.yaml", "--run-id", "r2"]);
    project.run(&["gate", "answer", "r2.approve", "no, reject"]);
    let declined = project.run(&["flow", "resume", "r2"]);
    assert_eq!(declined.code, 7);
    assert!(declined.out.contains("next: stagepost gate reopen r2.approve, then"), "{declined:?}");
}

#[test]
fn a_folder_that_is_not_there_is_named_and_a_graph_can_be_json() {
    let project = project("name: x\nsteps: [{id: a, cwd: not/there, run: 'true'}]\n");
    let ran = project.run(&["flow", "run", "flow.yaml"]);
    assert!(ran.out.contains("its folder `not/there` is not there"), "{ran:?}");
    let graph = project.json(&["flow", "graph", "flow.yaml"]);
    assert!(graph["graph"].as_str().is_some_and(|drawn| drawn.contains('a')), "{graph}");
}

#[test]
fn damage_is_refused_before_anything_is_done() {
    let project = project(THREE);
    project.write("fail", "");
    project.run(&["flow", "run", "flow.yaml", "--run-id", "r1"]);
    let database = project.database();
    database.execute("UPDATE entries SET body = zeroblob(40) WHERE class = 2 AND seq = 2", []).unwrap();
    let ran = project.run(&["flow", "resume", "r1"]);
    ran.fails(
        5,
        &["run `r1` is damaged: ", "checkpoint ", "the newest sound checkpoint is r1/1 (step one completed)"],
    );
    assert_eq!(log(&project), "one two");
    project.write("other.yaml", "name: other\nsteps: [{id: a, run: 'true'}]\n");
    project.ok(&["flow", "run", "other.yaml", "--run-id", "sound"]);
    let listed = project.run(&["--quiet", "flow", "list"]);
    assert_eq!((listed.code, listed.out.as_str()), (5, "sound\n"), "{}", listed.err);
}

#[test]
fn wrong_input_is_named() {
    let project = project(THREE);
    project.run(&["flow", "run", "nothing.yaml"]).fails(3, &["failed to read the flow nothing.yaml"]);
    project.run(&["flow", "run", "flow.yaml", "--input", "{"]).fails(2, &["--input must be JSON"]);
    let large = r#"{"id": 123456789012345678901}"#;
    let refused = project.run(&["flow", "run", "flow.yaml", "--input", large]);
    refused.fails(2, &["--input", "123456789012345678901 has more than 64 bits"]);
    project.run(&["flow", "run", "flow.yaml", "--run-id", "a/b"]).fails(2, &["cannot be a run id"]);
    project.run(&["flow", "run", "flow.yaml", "--jobs", "0"]).fails(2, &["0 is not in 1.."]);
    project.run(&["flow", "run", "flow.yaml", "--resume"]).fails(3, &["no run of flow `three`"]);
    project.ok(&["flow", "run", "flow.yaml", "--run-id", "r1"]);
    let refused = project.run(&["flow", "run", "flow.yaml", "--run-id", "r1"]);
    refused.fails(4, &["run `r1` is there already"]);
    assert!(refused.err.starts_with("error:"), "a run that does not begin is not announced: {refused:?}");
    project.run(&["flow", "show", "zzz"]).fails(3, &["no flow run is called `zzz`"]);
    project
        .run(&["flow", "rerun", "r1", "nine"])
        .fails(3, &["no step `nine`", "its steps are one, two, three"]);
    project.run(&["flow", "resume", "r1", "--step", "7"]).fails(3, &["no step `7`"]);
    let plan: Value = project.json(&["flow", "run", "flow.yaml", "--dry-run"]);
    assert_eq!(plan["steps"].as_array().unwrap().len(), 3);
    assert_eq!(log(&project), "one two three", "none of these ran anything");
}

/// What a terminal shows after all this was written to it, as far as the program makes use of it.
fn screen(written: &str) -> Vec<String> {
    let (mut rows, mut row, mut column) = (vec![Vec::new()], 0, 0);
    let mut rest = written.chars();
    while let Some(c) = rest.next() {
        match c {
            '\n' => row += 1,
            '\r' => column = 0,
            '\u{1b}' => {
                let codes: String = rest.by_ref().skip(1).take_while(|c| !c.is_ascii_alphabetic()).collect();
                let at = written.len() - rest.as_str().len() - 1;
                match written.as_bytes()[at] {
                    b'K' => rows[row].clear(),
                    b'A' => row -= codes.parse().unwrap_or(1),
                    b'm' | b'l' | b'h' => {}
                    other => panic!("an unknown sequence: {codes}{}", char::from(other)),
                }
            }
            c => {
                let line: &mut Vec<char> = &mut rows[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = c;
                column += 1;
            }
        }
        rows.resize(rows.len().max(row + 1), Vec::new());
    }
    let texts = rows.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

#[test]
fn a_bar_on_a_terminal_tells_how_far_a_flow_is_and_goes_away() {
    let slow =
        "name: slow\nsteps:\n  - {id: one, run: 'sleep 0.3; echo hello'}\n  - {id: two, run: 'sleep 0.3'}\n";
    let project = project(slow);
    if !crate::gates::has_python(&project) {
        return;
    }
    let args = ["flow", "run", "flow.yaml", "--run-id", "r1"];
    let seen = crate::gates::at_a_terminal(&project, "xterm", serde_json::json!([]), &args);
    assert_eq!(seen["code"], 0, "{seen}");
    let written = seen["screen"].as_str().unwrap();
    for bar in [" 0/2 one", " 1/2 two"] {
        assert!(written.contains(bar), "`{bar}` was never shown: {written:?}");
    }
    let shown = screen(written);
    assert!(shown.iter().any(|line| line == "one | hello"), "{shown:#?}");
    assert!(!shown.iter().any(|line| line.contains("/2")), "the bar is gone: {shown:#?}");
}

#[test]
fn a_runner_killed_before_its_files_were_written_is_mended_by_the_next_command() {
    let flow = THREE.replace("echo three >> log", "echo three >> log; sleep 634");
    let project = project(&flow);
    project.write("fail", "");
    assert_eq!(project.run(&["flow", "run", "flow.yaml", "--run-id", "r1"]).code, 1);
    std::fs::remove_file(project.folder.join("fail")).unwrap();
    let path = project.folder.join(".claude/context/runs/r1/run.json");
    let read = || -> Value { serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap() };
    let stale = read();
    crate::sessions::killed_before_its_view(&project, &["flow", "resume", "r1"], "r1");
    assert!(dies_soon("634"), "the step outlived its runner");
    project.ok(&["status"]);
    let now = read();
    assert_ne!(now, stale);
    assert_eq!((&stale["status"], &now["status"]), (&"failed".into(), &"paused".into()), "{now}");
    let checkpoints = std::fs::read_dir(path.with_file_name("checkpoints")).unwrap().flatten();
    let names: Vec<String> = checkpoints.filter_map(|one| one.file_name().into_string().ok()).collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("checkpoint-step-")).count(), 2, "{names:?}");
    assert_eq!(std::fs::read_dir(project.store.join("views.pending")).unwrap().count(), 0);
}

#[test]
fn an_early_step_of_a_pruned_run_can_be_gone_on_from_and_forked() {
    let step =
        |n: usize| format!("  - {{id: s{n}, run: 'echo {n} >> log; echo {n} > \"$STAGEPOST_OUTPUT\"'}}\n");
    let steps: String = (1..=8).map(step).collect();
    let project = project(&format!("name: eight\nsteps:\n{steps}"));
    project.ok(&["flow", "run", "flow.yaml", "--run-id", "r1"]);
    assert!(project.ok(&["flow", "show", "r1"]).contains("pruned but for its result"));
    project.ok(&["flow", "run", "flow.yaml", "--run-id", "r1", "--resume", "--resume-step", "2"]);
    assert_eq!(log(&project), "1 2 3 4 5 6 7 8 3 4 5 6 7 8");
    project.ok(&["flow", "fork", "r1", "--from-step", "1", "--run-id", "r2"]);
    project.ok(&["flow", "resume", "r2"]);
    assert_eq!(log(&project), "1 2 3 4 5 6 7 8 3 4 5 6 7 8 2 3 4 5 6 7 8");
    assert_eq!(project.run(&["verify"]).code, 0);
}

#[test]
fn many_runs_are_listed_without_their_steps_and_deleted_ones_are_not() {
    let project = project(THREE);
    for n in 1..=3 {
        project.ok(&["flow", "run", "flow.yaml", "--run-id", &format!("good-{n}")]);
    }
    project.write("fail", "");
    assert_eq!(project.run(&["flow", "run", "flow.yaml", "--run-id", "bad"]).code, 1);
    assert_eq!(project.ok(&["--quiet", "flow", "list"]), "bad\ngood-3\ngood-2\ngood-1\n");
    assert_eq!(project.ok(&["--quiet", "flow", "list", "-n", "2"]), "bad\ngood-3\n");
    assert_eq!(project.ok(&["--quiet", "flow", "list", "--status", "completed", "-n", "1"]), "good-3\n");
    assert_eq!(project.ok(&["--quiet", "flow", "list", "--flow", "other"]), "");
    assert_eq!(project.ok(&["--quiet", "flow", "list", "--since", "1h", "--status", "failed"]), "bad\n");
    project.ok(&["flow", "cleanup", "--max-age-days", "0"]);
    assert_eq!(project.ok(&["--quiet", "flow", "list"]), "good-3\ngood-2\ngood-1\n");
}

#[test]
fn a_cleanup_that_cannot_report_deletes_nothing_and_a_deleted_fork_protects_nothing() {
    let project = project(THREE);
    project.write("fail", "");
    project.run(&["flow", "run", "flow.yaml", "--run-id", "r1"]);
    let cleanup = ["flow", "cleanup", "--max-age-days", "0"];
    let nowhere = project.run(&["flow", "cleanup", "--max-age-days", "0", "--report", "not/there/x.md"]);
    assert_ne!(nowhere.code, 0, "{nowhere:?}");
    assert_eq!(project.ok(&["--quiet", "flow", "list"]), "r1\n");
    project.ok(&["flow", "fork", "r1", "--from-step", "1", "--run-id", "r2"]);
    assert_eq!(project.run(&["flow", "resume", "r2"]).code, 1);
    assert!(project.ok(&cleanup).contains("another run shares its past"));
    assert_eq!(project.ok(&["--quiet", "flow", "list"]), "r1\n");
    project.ok(&cleanup);
    assert_eq!(project.ok(&["--quiet", "flow", "list"]), "");
}

#[test]
fn a_run_that_is_cancelled_takes_its_question_with_it() {
    let project = project("name: asking\nsteps:\n  - {id: ok, ask: {kind: approve, message: Publish?}}\n");
    assert_eq!(project.run(&["flow", "run", "flow.yaml", "--run-id", "r1"]).code, 6);
    project.ok(&["flow", "cancel", "r1"]);
    assert_eq!(project.ok(&["--quiet", "gate", "list"]), "");
    assert_ne!(project.run(&["gate", "answer", "r1.ok", "approve"]).code, 0);
    assert_eq!(project.json(&["flow", "show", "r1"])["run"]["status"], "cancelled");
}

#[test]
fn what_nobody_can_say_of_a_step_is_refused() {
    let project = project(&THREE.replace("{id: one,", "{id: one, effects: once,"));
    project.write("fail", "");
    project.run(&["flow", "run", "flow.yaml", "--run-id", "r1"]);
    let said = |args: &[&str], sentence: &str| {
        let mut all = vec!["flow", "resume", "r1"];
        all.extend(args);
        project.run(&all).fails(2, &[sentence]);
    };
    said(&["--done", "two"], "without `effects: once`");
    said(&["--redo", "nine"], "the flow has no such step");
    said(&["--done", "one/0"], "it is not done for each of a list");
    said(&["--done", "one", "--redo", "one"], "it cannot have been done and not been done");
    project.run(&["flow", "run", "flow.yaml", "--done", "one"]).fails(2, &["they need --resume"]);
    assert_eq!(log(&project), "one two");
}

#[test]
fn a_step_that_may_be_done_once_only_asks_before_it_is_done_again() {
    let flow = THREE.replace("{id: two,", "{id: two, effects: once, inputs: [in.txt],");
    let project = project(&flow);
    project.ok(&["flow", "run", "flow.yaml", "--run-id", "r1"]);
    project.write("in.txt", "new");
    let refused = project.run(&["flow", "resume", "r1"]);
    refused.fails(4, &["`two` may be done once only and was done", "--done two", "--redo two"]);
    project.ok(&["flow", "resume", "r1", "--redo", "two"]);
    assert_eq!(log(&project), "one two three two three");
}

#[test]
fn a_secret_that_is_given_as_input_is_stored_nowhere() {
    let flow = "name: asking\nsecrets: [WORD]\nsteps:\n  - {id: ok, ask: {kind: approve, data: input.word}}\n  - {id: b, run: 'true'}\n";
    let project = project(flow);
    let args = ["flow", "run", "flow.yaml", "--run-id", "r1", "--input", r#"{"word": "my swordfish-77"}"#];
    let ran = project.tool(PROGRAM, args).env("WORD", "swordfish-77").output();
    assert_eq!(Ran::of(ran).code, 6);
    let shown = project.ok(&["gate", "show", "r1.ok"]);
    assert!(shown.contains("my ***") && !shown.contains("swordfish"), "{shown}");
}

#[test]
fn a_step_that_waits_for_the_terminal_fails_and_says_so() {
    let project = project("name: tty\nsteps:\n  - {id: a, run: 'read answer < /dev/tty'}\n");
    if !crate::gates::has_python(&project) {
        return;
    }
    let args = ["flow", "run", "flow.yaml", "--run-id", "r1"];
    let seen = crate::gates::at_a_terminal(&project, "xterm", serde_json::json!([]), &args);
    assert_eq!(seen["code"], 1, "{seen}");
    let shown = project.ok(&["flow", "show", "r1"]);
    assert!(shown.contains("it waited for the terminal, which a step cannot have"), "{shown}");
}

#[test]
fn a_run_that_was_deleted_is_named_by_nothing_but_its_whole_name() {
    let project = project(THREE);
    project.ok(&["flow", "run", "flow.yaml", "--run-id", "n-1"]);
    project.write("fail", "");
    assert_eq!(project.run(&["flow", "run", "flow.yaml", "--run-id", "n-2"]).code, 1);
    project.ok(&["flow", "cleanup", "--max-age-days", "0"]);
    for name in ["@", "n"] {
        assert_eq!(project.json(&["flow", "show", name])["run"]["id"], "n-1");
    }
    for command in ["show", "checkpoints", "plan", "resume", "cancel"] {
        project.run(&["flow", command, "n-2"]).fails(3, &["run `n-2` was deleted"]);
    }
    project.run(&["flow", "fork", "n-2", "--from-step", "1"]).fails(3, &["run `n-2` was deleted"]);
    let again = project.run(&["flow", "run", "flow.yaml", "--run-id", "n-2"]);
    again.fails(4, &["was deleted", "take another name"]);
    assert!(!again.err.contains("flow resume"), "{}", again.err);
}

#[test]
fn a_key_moves_with_the_project_and_is_no_other_runs() {
    let project = TempProject::new();
    let home = |name: &str| project.folder.join(name).to_str().unwrap().to_owned();
    let flow = "name: pay\nsteps:\n  - {id: pay, run: 'echo $STAGEPOST_KEY >> ../keys; exit 1'}\n";
    let keys = || {
        let text = std::fs::read_to_string(project.folder.join("keys")).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let run = |home: &str, args: &[&str]| {
        assert_eq!(project.run(&[&["-C", home, "flow"], args].concat()).code, 1);
    };
    for _ in 0..2 {
        project.tool("git", ["init", "-q", "here"]).status().unwrap();
        project.write("here/flow.yaml", flow);
        run(&home("here"), &["run", "flow.yaml", "--run-id", "r1"]);
        std::fs::rename(home("here"), home("there")).unwrap();
        run(&home("there"), &["resume", "r1"]);
        std::fs::remove_dir_all(home("there")).unwrap();
    }
    let keys = keys();
    assert_eq!((&keys[0], &keys[2]), (&keys[1], &keys[3]), "the same after a move");
    assert_ne!(keys[0], keys[2], "a new run of the same name at the same place is another one");
}

#[test]
fn a_plan_that_would_be_refused_says_so() {
    let project = project(THREE);
    project.write("fail", "");
    assert_eq!(project.run(&["flow", "run", "flow.yaml", "--run-id", "r1"]).code, 1);
    let refused = |part: &str| {
        for args in [&["flow", "plan", "r1"][..], &["flow", "why", "r1", "two"]] {
            let planned = project.run(args);
            assert_eq!(planned.code, 0, "{planned:?}");
            assert!(
                planned.err.contains("nothing of this is done") && planned.err.contains(part),
                "{planned:?}"
            );
        }
    };
    assert_eq!(project.run(&["flow", "plan", "r1"]).err, "");
    project.write("flow.yaml", THREE.replace("echo hello", "echo other"));
    refused("changed");
    project.write("flow.yaml", THREE);
    std::fs::remove_file(project.folder.join("fail")).unwrap();
    project.write("slow", "");
    let mut child = started(&project, &["flow", "resume", "r1"], "one two two");
    refused("is being driven by process");
    project.ok(&["flow", "cancel", "r1"]);
    child.wait().unwrap();
    refused("is cancelled already");
}

#[test]
fn runs_and_their_checkpoints_are_listed_in_columns() {
    let project = TempProject::new();
    project
        .write("a.yaml", "name: short\nsteps:\n  - {id: one, run: 'true'}\n  - {id: another, run: 'true'}\n");
    project.write("b.yaml", "name: rather-long\nsteps:\n  - {id: one, run: 'false'}\n");
    project.ok(&["flow", "run", "a.yaml", "--run-id", "r"]);
    project.run(&["flow", "run", "b.yaml", "--run-id", "longer"]).fails(1, &["failed"]);
    let straight = |text: &str, column: &str| {
        let places: std::collections::BTreeSet<_> = text.lines().map(|line| line.find(column)).collect();
        assert!(text.lines().count() == 2 && places.len() == 1 && !places.contains(&None), "{text}");
    };
    straight(&project.ok(&["flow", "list"]), "just now");
    straight(&project.ok(&["flow", "checkpoints", "r"]), ", 0 B");
    let again = project.ok(&["flow", "rerun", "r", "one", "--dry-run"]);
    assert!(!again.contains("has not been done"), "it was, and is done again: {again}");
}
