//! Flow files through the program: checked, drawn, described; their runs exported, imported and cleaned up.

use std::fs;

use serde_json::Value;

use crate::support::TempProject;

const GOOD: &str = "\
name: release
steps:
  - id: collect
    run: echo one > notes.txt
    outputs: [notes.txt]
  - id: approve
    ask: { kind: approve, message: Publish?, on: { approve: publish, refine: collect } }
  - id: publish
    run: ./publish.sh
";

const WRONG: &str = "\
name: release
steps:
  - id: collect
    run: echo one
    need: [start]
  - id: publish
    needs: [colect]
    run: [./publish.sh]
    timeout: 5
";

#[test]
fn a_flow_file_is_checked_without_a_project_and_every_fault_has_its_place() {
    let project = TempProject::plain();
    project.write("good.yaml", GOOD);
    project.write("wrong.yaml", WRONG);
    assert_eq!(project.ok(&["flow", "check", "good.yaml"]), "good.yaml is a valid flow: release, 3 steps\n");
    assert_eq!(project.ok(&["--quiet", "flow", "check", "good.yaml"]), "collect\napprove\npublish\n");
    assert_eq!(project.json(&["flow", "check", "good.yaml"])["valid"], true);
    project.run(&["flow", "check", "wrong.yaml"]).fails(
        2,
        &[
            "wrong.yaml:5:5: a step has no key `need`; did you mean `needs`?",
            "wrong.yaml:7:13: there is no step `colect`; did you mean `collect`?",
            "wrong.yaml:9:14: `5` is no duration",
            "stagepost schema flow",
        ],
    );
    let told: Value =
        serde_json::from_str(&project.run(&["--json", "flow", "check", "wrong.yaml"]).out).unwrap();
    assert_eq!(told["error"]["code"], "usage");
    assert_eq!(told["error"]["causes"].as_array().unwrap().len(), 3);
    assert_eq!(project.run_on(GOOD, &["flow", "check", "-"]).code, 0);
    assert!(!project.folder.join(".stagepost").exists(), "no store is needed");
}

#[test]
fn what_is_no_flow_file_is_told_so() {
    let project = TempProject::plain();
    project.write("bytes.yaml", b"name: \xff\xfe");
    project.run(&["flow", "check", "nothing.yaml"]).fails(3, &["failed to read the flow nothing.yaml"]);
    project.run(&["flow", "check", "."]).fails(1, &["failed to read the flow ."]);
    project.run(&["flow", "check", "bytes.yaml"]).fails(2, &["is not UTF-8 text"]);
    project.run_on("", &["flow", "check", "-"]).fails(2, &["-:1:1:"]);
    let aliases: String =
        (1..9).map(|n| format!("b{n}: &b{n} [{0}, {0}, {0}, {0}]\n", format!("*b{}", n - 1))).collect();
    for (text, what) in [
        ("name: a\nname: b\n", "-:2:1: `name` is there twice"),
        ("name: a\n---\nname: b\n", "-:2:1: a second document begins here; one is expected"),
        (&format!("name: {}{}", "[".repeat(300), "]".repeat(300)), ": it nests too deep"),
        (&format!("b0: &b0 [x, x, x, x]\n{aliases}"), ": its aliases stand for more than is allowed"),
    ] {
        project.run_on(text, &["flow", "check", "-"]).fails(2, &[what]);
    }
    project.run_on("name: \"a\u{1b}[2Jb\"", &["flow", "check", "-"]).fails(2, &["-:1:"]);
    let huge = format!("name: x\n# {}\n", "y".repeat(3 << 20));
    project.run_on(&huge, &["flow", "check", "-"]).fails(2, &["a flow may have"]);
    project.run(&["flow", "graph", "bytes.yaml", "--format", "png"]).fails(2, &["svg"]);
}

#[test]
fn a_flow_file_is_drawn_as_text_and_as_a_picture() {
    let project = TempProject::plain();
    project.write("good.yaml", GOOD);
    let text = project.ok(&["flow", "graph", "good.yaml"]);
    assert!(text.contains("├─ approve ──> publish") && text.contains("└┄ refine ┄┄> collect"), "{text}");
    let drawn = project.ok(&["flow", "graph", "good.yaml", "--format", "svg"]);
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"));
    let said = project.run(&["flow", "graph", "good.yaml", "--format", "svg", "--output", "flow.svg"]);
    assert_eq!((said.code, said.out.as_str()), (0, ""));
    assert_eq!(fs::read_to_string(project.folder.join("flow.svg")).unwrap(), drawn);
    project.run(&["flow", "graph", "good.yaml", "-o", "no/such/folder.svg"]).fails(3, &["failed to write"]);
}

#[test]
fn the_schema_says_what_a_flow_file_may_have() {
    let project = TempProject::plain();
    let schema: Value = serde_json::from_str(&project.ok(&["schema", "flow"])).unwrap();
    assert_eq!(schema["title"], "Flow");
    assert_eq!(schema["additionalProperties"], false);
    let step = &schema["properties"]["steps"]["items"]["properties"];
    for key in ["run", "ask", "refine", "needs", "for_each", "if", "verify"] {
        assert!(step[key]["description"].is_string(), "{key}");
    }
}

#[test]
fn runs_are_exported_and_come_back_in_another_project() {
    let project = TempProject::new();
    project.write(
        "flow.yaml",
        "name: demo\nsteps: [{id: a, run: 'echo 1 > a.txt', outputs: [a.txt]}, {id: b, run: 'true'}]",
    );
    project.ok(&["flow", "run", "flow.yaml", "--run-id", "run-1"]);
    assert!(project.folder.join(".claude/context/runs/run-1/run.json").exists());
    let listed = project.ok(&["export", "--format", "runs", "--to", "out"]);
    assert_eq!(listed.lines().count(), 4, "{listed}");
    project.run(&["export", "--format", "run", "--to", "out"]).fails(2, &["formats: maestro, tasks, runs"]);

    let other = TempProject::new();
    let from = project.folder.join("out");
    let planned = other.ok(&["import", from.to_str().unwrap(), "--dry-run"]);
    assert!(planned.contains("would import 3 of 3 checkpoints"), "{planned}");
    other.ok(&["import", from.to_str().unwrap()]);
    let again = other.ok(&["import", from.to_str().unwrap()]);
    assert!(again.contains("imported 0 of 3 checkpoints"), "{again}");
    assert!(other.ok(&["flow", "list"]).contains("run-1"));
    assert_eq!(other.run(&["verify"]).code, 0);
}

#[test]
fn old_failed_runs_are_cleaned_up_with_a_report() {
    let project = TempProject::new();
    project.write("fails.yaml", "name: demo\nsteps: [{id: a, run: 'echo 1'}, {id: b, run: 'exit 3'}]");
    project.write("works.yaml", "name: demo\nsteps: [{id: a, run: 'true'}]");
    assert_ne!(project.run(&["flow", "run", "fails.yaml", "--run-id", "bad"]).code, 0);
    project.ok(&["flow", "run", "works.yaml", "--run-id", "good"]);
    let report = project.folder.join(".claude/context/reports/checkpoint-cleanup-report.md");

    let recent = project.json(&["flow", "cleanup"]);
    assert_eq!((&recent["scanned"], recent["deleted"].as_array().unwrap().len()), (&2.into(), 0));
    assert_eq!(recent["kept"][0]["why"], "recent");
    assert!(fs::read_to_string(&report).unwrap().contains("**Max Age**: 7 days"));
    fs::remove_file(&report).unwrap();

    let dry = project.run(&["flow", "cleanup", "--max-age-days", "0", "--dry-run", "--report", "dry.md"]);
    assert_eq!(dry.code, 0, "{dry:?}");
    assert!(dry.out.contains("would delete bad  failed"), "{dry:?}");
    assert!(fs::read_to_string(project.folder.join("dry.md")).unwrap().contains("Dry run"));
    assert!(!report.exists() && project.folder.join(".claude/context/runs/bad/run.json").exists());

    let done = project.ok(&["flow", "cleanup", "--max-age-days", "0"]);
    assert!(done.contains("deleted bad  failed") && done.contains("it is complete"), "{done}");
    assert!(!project.folder.join(".claude/context/runs/bad").exists());
    let text = fs::read_to_string(&report).unwrap();
    assert!(
        text.starts_with("# Checkpoint Cleanup Report\n") && text.contains("- Runs cleaned: 1"),
        "{text}"
    );
    assert_eq!(project.run(&["verify"]).code, 0);
    project.run(&["flow", "cleanup", "--run-id", "nobody"]).fails(3, &["no flow run is called `nobody`"]);
    project.run(&["flow", "cleanup", "--max-age-days", "-1"]).fails(2, &[]);
}

#[test]
fn files_of_a_run_that_were_left_behind_are_mended_by_the_next_command() {
    let project = TempProject::new();
    project.write("works.yaml", "name: demo\nsteps: [{id: a, run: 'true'}]");
    project.ok(&["flow", "run", "works.yaml", "--run-id", "r"]);
    let path = project.folder.join(".claude/context/runs/r/run.json");
    let good = fs::read(&path).unwrap();
    fs::write(&path, "{").unwrap();
    fs::write(project.store.join("views.pending/run:r"), "").unwrap();
    project.ok(&["status"]);
    assert_eq!(fs::read(&path).unwrap(), good);
}

#[test]
fn a_token_in_the_file_is_found_before_it_is_run() {
    let project = TempProject::new();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    project.write("flow.yaml", format!("name: x\nsteps:\n  - {{id: a, run: 'curl -H {token}'}}\n"));
    assert_eq!(project.run(&["flow", "run", "flow.yaml"]).code, 4);
    project.run(&["flow", "check", "flow.yaml"]).fails(2, &["flow.yaml:3:27: this looks like a token"]);
}
