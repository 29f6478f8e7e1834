//! Sessions and tasks as typed: every command of the two designs' usage, with the same flags.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use stagepost::lock::Lock;

use crate::support::{PROGRAM, TempProject, contents, soon};

/// A repository with one commit and someone who makes commits.
fn repository() -> TempProject {
    let project = TempProject::new();
    project.write("a.txt", "one\n");
    git(&project, &["config", "user.name", "Ada"]);
    git(&project, &["config", "user.email", "ada@example.org"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "first"]);
    project
}

fn git(project: &TempProject, args: &[&str]) -> String {
    let output = project.tool("git", args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// Runs a command that must print JSON without a wrapper.
fn bare(project: &TempProject, args: &[&str]) -> Value {
    let text = project.ok(args);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

#[test]
fn every_command_of_the_first_design_works_with_its_flags() {
    let project = repository();
    let session = project.ok(&["session", "start", "--request", "Implement feature"]);
    let session = session.trim_end();
    let of = ["--session-id", session];
    project.write("a.txt", "two\n");
    let create = [
        "session",
        "create",
        "--session-id",
        session,
        "--description",
        "Planning complete",
        "--phase",
        "plan",
        "--checkpoint-type",
        "phase_complete",
        "--tasks-completed",
        "3",
        "--tests-failing",
        "0",
    ];
    let made = bare(&project, &create);
    assert_eq!((&made["phase"], &made["checkpoint_type"]), (&json!("plan"), &json!("phase_complete")));
    assert_eq!(made["state_snapshot"], json!({"tasks_completed": 3, "tests_failing": 0}));
    assert_eq!(made["commit_sha"].as_str().unwrap(), git(&project, &["rev-parse", "HEAD"]));
    let id = made["checkpoint_id"].as_str().unwrap();

    let listed = bare(&project, &[&["session", "list"], &of[..]].concat());
    assert_eq!(listed, json!([made]));
    let pretty = project.ok(&[&["session", "list"], &of[..], &["--output", "pretty"]].concat());
    assert!(pretty.contains("Planning complete") && serde_json::from_str::<Value>(&pretty).is_err());
    let of_checkpoint = [&of[..], &["--checkpoint-id", id]].concat();
    assert_eq!(bare(&project, &[&["session", "get"], &of_checkpoint[..]].concat()), made);

    project.write("a.txt", "broken\n");
    let dry =
        project.ok(&[&["session", "rollback"], &of_checkpoint[..], &["--hard-reset", "--dry-run"]].concat());
    assert!(dry.contains("write"), "{dry}");
    let done = bare(&project, &[&["session", "rollback"], &of_checkpoint[..], &["--hard-reset"]].concat());
    assert_eq!((&done["success"], &done["rollback_mode"]), (&json!(true), &json!("hard")));
    assert_eq!(std::fs::read_to_string(project.folder.join("a.txt")).unwrap(), "two\n");
    assert_eq!(bare(&project, &[&["session", "history"], &of[..]].concat()), json!([done]));

    let summary = bare(&project, &[&["session", "summary"], &of[..]].concat());
    assert_eq!(summary["checkpoints_by_type"], json!({"phase_complete": 1}));
    assert_eq!(summary["checkpoints_used_for_rollback"], 1);
    let validation = bare(&project, &["session", "validate"]);
    assert_eq!((&validation["is_valid"], &validation["tests_passing"]), (&json!(true), &Value::Null));
    let validation = bare(&project, &["session", "validate", "--test-command", "exit 1"]);
    assert_eq!(validation["tests_passing"], false);

    project.ok(&[&["session", "delete"], &of_checkpoint[..], &["--keep-tag"]].concat());
    assert_eq!(git(&project, &["tag"]), format!("checkpoint-{id}"));
    assert_eq!(bare(&project, &[&["session", "list"], &of[..]].concat()), json!([]));
    let status = bare(&project, &[&["session", "status"], &of[..], &["--set", "completed"]].concat());
    assert_eq!(
        (&status["status"], &status["feature_request"]),
        (&json!("completed"), &json!("Implement feature"))
    );
}

#[test]
fn a_session_that_nobody_started_begins_with_its_first_checkpoint() {
    let project = repository();
    let id = "8b5ad9c8-94b4-4a7f-90c5-17a4b6a0a001";
    let create = [
        "session",
        "create",
        "--session-id",
        id,
        "--description",
        "d",
        "--phase",
        "implement",
        "--no-commit",
    ];
    bare(&project, &create);
    assert!(project.folder.join(format!(".flow/maestro/sessions/{id}/checkpoints.json")).is_file());
    assert_eq!(git(&project, &["status", "--porcelain"]), "");
}

#[test]
fn what_is_wrong_has_its_exit_code() {
    let project = repository();
    let list = |id: &str| project.run(&["session", "list", "--session-id", id]);
    project.save("makes the store", &["--no-files"]);
    assert_eq!(list("nobody").code, 3);
    assert_eq!(list("../../etc").code, 2);
    let create = |more: &[&str]| {
        project.run(
            &[&["session", "create", "--session-id", "s", "--description", "d", "--phase"], more].concat(),
        )
    };
    assert_eq!(create(&["dreaming"]).code, 2);
    assert_eq!(create(&["plan", "--checkpoint-type", "whim"]).code, 2);
    let made: Value = serde_json::from_str(&create(&["plan"]).out).unwrap();
    let id = made["checkpoint_id"].as_str().unwrap();
    project.write("a.txt", "dirty\n");
    let back = ["session", "rollback", "--session-id", "s", "--checkpoint-id", id];
    let refused = project.run(&back);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.err.contains("--hard-reset"), "{}", refused.err);
    project.ok(&[&back[..], &["--keep-changes"]].concat());
    assert_eq!(project.run(&["session", "get", "--session-id", "s", "--checkpoint-id", "none"]).code, 3);

    git(&project, &["config", "--unset", "user.name"]);
    git(&project, &["config", "--unset", "user.email"]);
    git(&project, &["config", "user.useConfigOnly", "true"]);
    let refused = create(&["plan"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("user.name"), "{}", refused.err);
}

#[test]
fn the_rule_can_be_asked() {
    let project = repository();
    let ask = |more: &[&str]| bare(&project, &[&["session", "should-rollback"], more].concat());
    assert_eq!(ask(&["--attempts", "3"])["should_rollback"], true);
    assert_eq!(ask(&["--attempts", "1", "--category", "transient"])["should_rollback"], false);
    let halfway = ["--category", "resource_exhausted", "--partial-progress"];
    assert_eq!(ask(&halfway)["reason"], "a resource ran out halfway");
}

#[test]
fn a_task_from_its_start_to_its_cleanup() {
    let project = repository();
    let save = |stage: &str, more: &[&str]| {
        project.json(&[&["task", "save", "--task", "7", "--stage", stage, "-m", stage], more].concat())
    };
    save("start", &["--metadata", "{\"by\": \"ada\"}"]);
    project.write("a.txt", "done\n");
    let made = save("implementation", &[]);
    assert_eq!(made["checkpoint"]["commit_hash"].as_str().unwrap(), git(&project, &["rev-parse", "HEAD"]));
    assert_eq!(project.json(&["task", "latest", "--task", "7"])["checkpoint"], made["checkpoint"]);
    let listed = project.json(&["task", "list"]);
    assert_eq!(listed["checkpoints"][0]["metadata"], json!({"by": "ada"}));
    project.ok(&["task", "note", "--task", "7", "half way"]);
    project.ok(&["task", "rollback", "--task", "7", "--stage", "start", "--hard"]);
    assert_eq!(std::fs::read_to_string(project.folder.join("a.txt")).unwrap(), "one\n");
    let recovered =
        project.json(&["task", "recover", "--task", "7", "--error", "validation", "--message", "red"]);
    assert_eq!(recovered["checkpoint"]["stage"], "implementation");
    assert_eq!(recovered["flags"]["is_started"], false);
    let progress = project.ok(&["task", "progress", "--task", "7"]);
    assert!(progress.contains("[Task 7] half way") && progress.contains("validation: red"), "{progress}");
    assert_eq!(project.ok(&["task", "progress", "--lines", "1"]).lines().count(), 1);
    let planned = project.json(&["task", "cleanup", "--max-per-task", "1", "--dry-run"]);
    assert_eq!((planned["remove"].as_array().unwrap().len(), &planned["keep"]), (1, &json!(1)));
    project.ok(&["task", "cleanup", "--max-per-task", "1"]);
    assert_eq!(git(&project, &["tag"]), "checkpoint-t7-implementation");
    assert_eq!(project.run(&["task", "rollback", "--task", "7", "--stage", "start"]).code, 3);
    assert_eq!(project.run(&["task", "recover", "--task", "9", "--error", "other"]).code, 3);
    assert_eq!(project.run(&["task", "save", "--task", "7", "--stage", "nowhere", "-m", "x"]).code, 2);
    let log = project.ok(&["log", "--run", "task-7"]);
    assert!(log.contains("implementation"), "{log}");
}

#[test]
fn exports_come_back_in() {
    let project = repository();
    project.ok(&["session", "create", "--session-id", "s", "--description", "d", "--phase", "plan"]);
    project.ok(&["task", "save", "--task", "1", "--stage", "start", "-m", "t"]);
    project.ok(&["export", "--format", "maestro", "--to", "../out"]);
    project.ok(&["export", "--format", "tasks", "--to", "../out"]);
    let known = project.json(&["import", "../out", "--dry-run"]);
    let items = known["items"].as_array().unwrap();
    assert_eq!(items.len(), 2, "{known}");
    assert!(items.iter().all(|item| item["known"] == true), "{known}");
    assert_eq!(project.run(&["import", "a.txt"]).code, 3);
    assert_eq!(project.run(&["import", ".", "--format", "dreams"]).code, 2);
}

#[test]
fn an_import_that_could_not_read_everything_is_not_done() {
    let project = repository();
    let step = |number: u32| {
        json!({"checkpoint_id": format!("checkpoint-step-{number}-1"), "run_id": "run-1", "workflow_id": "w",
            "step": number, "timestamp": format!("2026-01-01T00:00:{number:02}.000Z"), "metadata": {}})
    };
    project.write("old/checkpoint-step-2-1.json", step(2).to_string());
    project.write("old/checkpoint-step-10-1.json", step(10).to_string());
    assert!(project.ok(&["import", "old", "--dry-run"]).contains("would import 2 of 2 checkpoints"));

    // Nothing of it can be read: nothing is taken in, and nothing is said to be done.
    for (file, bytes) in [
        ("bad/checkpoints.json", r#"{"session_id": "s", "checkpoints": ["#),
        ("bad/checkpoint-step-1-1.json", "{bad"),
        ("bad/chk-1-abcdef.json.gz", "not compressed"),
    ] {
        project.write(file, bytes);
        project.run(&["import", file]).fails(1, &["nothing was imported", "cannot be read", file]);
        project.run(&["import", file, "--dry-run"]).fails(1, &["nothing would be imported"]);
        let ran = project.run(&["--json", "import", file]);
        let told: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((ran.code, told["imported"].as_u64()), (1, Some(0)), "{told}");
        assert!(told["unreadable"][0]["path"].as_str().unwrap().ends_with(file), "{told}");
    }
    project.run(&["import", "bad"]).fails(1, &["the 3 things named above"]);

    // What can be read comes in, in the order of its steps, and what cannot is named.
    project.write("old/checkpoint-step-3-1.json", "{bad");
    let ran = project.run(&["import", "old"]);
    assert!(ran.out.ends_with("imported 2 of 2 checkpoints\n"), "{}", ran.out);
    ran.fails(1, &["checkpoint-step-3-1.json cannot be read", "not everything was imported"]);
    let log = project.json(&["log", "--run", "run-1"]);
    assert_eq!(log["checkpoints"][0]["kind"]["step"], "step-10", "{log}");
    project.write("old/checkpoint-step-3-1.json", step(3).to_string());
    assert!(project.ok(&["import", "old"]).contains("imported 1 of 3 checkpoints"));
}

/// Runs a command while somebody else holds the lock of the views, and kills it once its record is there: between the
/// record and the view.
pub(crate) fn killed_before_its_view(project: &TempProject, args: &[&str], run: &str) {
    let count = || project.json(&["log", "--run", run])["checkpoints"].as_array().unwrap().len();
    let before = count();
    let lock = Lock::take(&project.store.join("views.lock"), Duration::from_secs(60)).unwrap();
    let args = [&["--busy-timeout", "60s"], args].concat();
    let mut child = project.tool(crate::support::PROGRAM, &args).stdout(Stdio::null()).spawn().unwrap();
    let database = project.database();
    let written = || {
        database
            .query_row("SELECT max(position) FROM entries WHERE class = 2", [], |row| row.get::<_, i64>(0))
    };
    let (start, deadline) = (written().unwrap(), std::time::Instant::now() + Duration::from_secs(60));
    while written().unwrap() == start && std::time::Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    let ended = child.wait().unwrap();
    assert!(!ended.success(), "it was not killed but ended with {ended}");
    drop(lock);
    assert_eq!(count(), before + 1, "the record is there");
}

#[test]
fn a_session_killed_before_its_files_were_written_is_mended_by_the_next_command() {
    let project = repository();
    let create =
        ["session", "create", "--session-id", "s", "--phase", "plan", "--no-commit", "--description"];
    project.ok(&[&create[..], &["first"]].concat());
    let file = project.folder.join(".flow/maestro/sessions/s/checkpoints.json");
    let listed = || -> Value { serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap() };
    let stale = listed();
    killed_before_its_view(&project, &[&create[..], &["second"]].concat(), "s");
    assert_eq!(listed()["checkpoints"].as_array().unwrap().len(), 2, "was {stale}");
    assert_eq!(listed()["checkpoints"][1]["description"], "second");
    assert_eq!(std::fs::read_dir(project.store.join("views.pending")).unwrap().count(), 0);
}

#[test]
fn a_task_killed_before_its_files_were_written_is_mended_by_the_next_command() {
    let project = repository();
    let save = ["task", "save", "--task", "1", "--no-commit", "--stage"];
    project.ok(&[&save[..], &["start", "-m", "first"]].concat());
    killed_before_its_view(&project, &[&save[..], &["validated", "-m", "second"]].concat(), "task-1");
    let list = std::fs::read(project.folder.join(".checkpoint-metadata.json")).unwrap();
    let list: Value = serde_json::from_slice(&list).unwrap();
    assert_eq!(list[1]["stage"], "validated");
}

/// A hook that kills git and whoever started it, as when a machine runs out of memory.
const KILLER: &str = "#!/bin/sh\n\
    case \"$1\" in committed|aborted) exit 0;; prepared) grep -q refs/heads/ || exit 0;; esac\n\
    program=$(ps -o ppid= -p $PPID || cut -d' ' -f4 /proc/$PPID/stat)\n\
    kill -9 $program $PPID\n";

#[test]
fn a_checkpoint_that_is_cut_off_is_taken_back_whole_and_git_is_free_again() {
    use std::os::unix::fs::PermissionsExt;
    for hook in ["pre-commit", "reference-transaction", "post-commit"] {
        let project = repository();
        project.write("a.txt", "two\n");
        project.write("b.txt", "staged\n");
        git(&project, &["add", "b.txt"]);
        project.ok(&["init"]);
        let stands = || {
            let told = [
                vec!["rev-parse", "HEAD"],
                vec!["ls-files", "-s"],
                vec!["status", "--porcelain"],
                vec!["tag"],
            ];
            told.map(|args| git(&project, &args))
        };
        let before = stands();
        let path = project.write(&format!(".git/hooks/{hook}"), KILLER);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let create = ["session", "create", "--session-id", "s", "--description", "d", "--phase", "plan"];
        let killed = project.tool(PROGRAM, create).output().unwrap();
        assert!(killed.status.code().is_none() && killed.stdout.is_empty(), "{hook}: {killed:?}");
        std::fs::remove_file(&path).unwrap();
        assert!(!project.folder.join(".git/index.lock").exists(), "{hook}");
        // Whoever has given up on us may go on with git alone.
        let left = |name: &str| project.folder.join(".git").join(name).exists();
        assert!(soon(|| !left("HEAD.lock") && !left("refs/heads/main.lock")), "{hook}: git is blocked");

        let next = project.run(&["log", "--all"]);
        assert!(next.code == 0 && next.err.contains("had been cut off"), "{hook}: {next:?}");
        assert_eq!(stands(), before, "{hook}");
        git(&project, &["commit", "-qam", "the user's own"]);
        let made = bare(&project, &create);
        assert_eq!(made["commit_sha"].as_str().unwrap(), git(&project, &["rev-parse", "HEAD"]), "{hook}");
        assert_eq!(project.ok(&["log", "--all", "-q"]).lines().count(), 1, "{hook}");
    }
}

#[test]
fn a_decision_in_the_run_of_a_session_or_task_is_none_of_its_checkpoints() {
    let project = repository();
    let session = project.ok(&["session", "start"]).trim_end().to_owned();
    let create =
        ["session", "create", "--session-id", &session, "--description", "d", "--phase", "implement"];
    let made = bare(&project, &create);
    project.ok(&["task", "save", "--task", "5", "--stage", "start", "-m", "begin"]);
    for (run, gate) in [(session.as_str(), "g"), ("task-5", "h")] {
        assert_eq!(project.run(&["gate", "ask", "Go on?", "--run", run, "--id", gate, "--files"]).code, 6);
        project.ok(&["gate", "answer", gate, "yes"]);
    }
    assert_eq!(bare(&project, &["session", "list", "--session-id", &session]), json!([made]));
    let summary = bare(&project, &["session", "summary", "--session-id", &session]);
    assert_eq!(summary["latest_checkpoint"], made["commit_sha"]);
    let latest = project.json(&["task", "latest", "--task", "5"]);
    assert_eq!(latest["checkpoint"]["description"], "begin");
}

#[test]
fn many_processes_that_begin_one_session_at_once_all_get_their_checkpoint() {
    let project = repository();
    let create =
        ["session", "create", "--session-id", "P", "--description", "d", "--phase", "plan", "--no-commit"];
    let start =
        || project.tool(PROGRAM, create).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let children: Vec<_> = (0..6).map(|_| start()).collect();
    for child in children {
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    let listed = bare(&project, &["session", "list", "--session-id", "P"]);
    assert_eq!(listed.as_array().unwrap().len(), 6);
    project.save("by hand", &[]);
    let taken =
        project.run(&["session", "create", "--session-id", "adhoc", "--description", "d", "--phase", "plan"]);
    taken.fails(4, &["`adhoc` is not a session", "take another id"]);
}

#[test]
fn a_collection_brings_the_files_of_a_session_up_to_date() {
    let project = repository();
    for number in 0..3 {
        project.write("a.txt", format!("{number}"));
        project.ok(&["session", "create", "--session-id", "S", "--description", "d", "--phase", "plan"]);
    }
    project.ok(&["gc", "--keep", "1"]);
    let shown = std::fs::read(project.folder.join(".flow/maestro/sessions/S/checkpoints.json")).unwrap();
    let shown: Value = serde_json::from_slice(&shown).unwrap();
    assert_eq!(shown["summary"]["total_checkpoints"], 1);
    assert_eq!(git(&project, &["tag"]).lines().count(), 3);
}

#[test]
fn a_dry_run_is_refused_as_the_rollback_would_be_and_speaks_json() {
    let project = repository();
    let create = ["session", "create", "--session-id", "S", "--description", "d", "--phase", "plan"];
    let made = bare(&project, &create);
    let back = [
        "session",
        "rollback",
        "--session-id",
        "S",
        "--checkpoint-id",
        made["checkpoint_id"].as_str().unwrap(),
    ];
    project.write("a.txt", "changed\n");
    for more in [&["--dry-run"][..], &[]] {
        project
            .run(&[&back[..], more].concat())
            .fails(4, &["uncommitted changes in 1 file", "--keep-changes"]);
    }
    assert_eq!(bare(&project, &["session", "history", "--session-id", "S"]).as_array().unwrap().len(), 1);
    for more in [&["--keep-changes"][..], &["--hard-reset", "--output", "json"]] {
        let plan = bare(&project, &[&back[..], more, &["--dry-run"]].concat());
        assert_eq!((&plan["dry_run"], &plan["plan"]["refusals"]), (&json!(true), &json!([])), "{plan}");
    }
    let text = project.ok(&[&back[..], &["--hard-reset", "--dry-run", "--output", "pretty"]].concat());
    assert!(text.contains("write   a.txt"), "{text}");
}

#[test]
fn a_git_that_outlives_the_one_who_started_it_is_waited_for() {
    use std::os::unix::fs::PermissionsExt;
    let project = repository();
    project.ok(&["session", "start"]);
    let before = git(&project, &["rev-parse", "HEAD"]);
    let hook = project.write(".git/hooks/pre-commit", "#!/bin/sh\ntouch .git/begun\nsleep 1\n");
    std::fs::set_permissions(hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    project.write("a.txt", "two\n");
    let create = ["session", "create", "--session-id", "S", "--description", "d", "--phase", "plan"];
    let mut command = project.tool(PROGRAM, create);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !project.folder.join(".git/begun").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let listed = project.run(&["log"]);
    assert!(listed.err.contains("took back the checkpoint"), "{listed:?}");
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(git(&project, &["rev-parse", "HEAD"]), before);
    assert_eq!(git(&project, &["status", "--porcelain"]), " M a.txt");
    assert_eq!(git(&project, &["tag"]), "");
    project.ok(&create);
}

#[test]
fn a_session_is_started_in_json_where_that_is_asked_for() {
    let project = repository();
    for args in [&["--json", "session", "start"][..], &["session", "start", "--output", "json"]] {
        let started = bare(&project, args);
        project.ok(&["session", "list", "--session-id", started["session_id"].as_str().unwrap()]);
    }
}

#[test]
fn what_is_empty_is_not_put_in_brackets_and_hints_can_be_followed() {
    let project = repository();
    let session = project.ok(&["session", "start"]).trim_end().to_owned();
    let of = ["--session-id", &session, "--output", "pretty"];
    let summary = project.ok(&[&["session", "summary"], &of[..]].concat());
    assert_eq!(summary, "0 checkpoints, 0 used for rollback, latest none\n");
    let status = project.ok(&[&["session", "status"], &of[..]].concat());
    assert_eq!(status, format!("{session} (initializing)\n"));

    project.ok(&["task", "save", "--task", "1", "--stage", "start", "-m", "begin"]);
    let told = project.json(&["task", "recover", "--task", "1", "--error", "other", "-m", "it broke"]);
    assert_eq!(told["error_message"], "it broke");

    project.write("note.txt", "nothing");
    project.run(&["import", "note.txt"]).fails(3, &["maestro, tasks, runs or plans"]);
    git(&project, &["branch", "-M", "main"]);
    git(&project, &["checkout", "-qb", "other"]);
    for (branch, text) in [("other", "theirs\n"), ("main", "ours\n")] {
        git(&project, &["checkout", "-q", branch]);
        project.write("a.txt", text);
        git(&project, &["commit", "-qam", "change"]);
    }
    assert!(!project.tool("git", ["merge", "-q", "other"]).status().unwrap().success());
    let save = ["task", "save", "--task", "1", "--stage", "start", "-m", "x", "--no-commit"];
    let refused = project.run(&save);
    refused.fails(4, &["the index has conflicts", "resolve them"]);
    assert!(!refused.err.contains("--no-commit"), "{}", refused.err);
}

#[test]
fn looking_at_a_view_drives_no_terminal_and_the_store_keeps_what_was_said() {
    const EVIL: &str = "\u{1b}[31m\u{9b}2J\u{202e}evil\u{7}\u{7f}\rback";
    let project = repository();
    project.ok(&["session", "create", "--session-id", "s", "--description", EVIL, "--phase", "plan"]);
    project.ok(&["task", "save", "--task", "1", "--stage", "start", "-m", EVIL]);
    project.ok(&["task", "note", "--task", "1", EVIL]);
    let run = project.ok(&["--quiet", "plan", "start", "--project", "song", "--output-dir", "out"]);
    project.write("p.json", json!({"plan": {EVIL: EVIL}}).to_string());
    project.ok(&["plan", "record", "--run", run.trim(), "--type", "raw", "--iteration", "1", "p.json"]);
    // Lines of somebody else's, and of a view from before, are known again and shown as well.
    let progress = project.folder.join("agent-progress.txt");
    let before = std::fs::read_to_string(&progress).unwrap();
    let raw = before.trim_end().split_once(" [Task 1] ").unwrap().0;
    std::fs::write(&progress, format!("{raw} [Task 1] {EVIL}\ntheirs {EVIL}\n")).unwrap();
    project.ok(&["task", "note", "more"]);
    project.ok(&["task", "note", "again"]);
    let lines = std::fs::read_to_string(&progress).unwrap();
    assert_eq!(lines.lines().count(), 4, "{lines}");
    assert!(lines.contains(r"theirs \u{1b}[31m\u{9b}2J\u{202e}evil\u{7}\u{7f}\rback"), "{lines}");
    for format in ["maestro", "tasks", "plans"] {
        project.ok(&["export", "--format", format, "--to", "../exported"]);
    }
    let drives = |c: &char| (c.is_control() && *c != '\n') || ('\u{2028}'..='\u{202e}').contains(c);
    let views = [".flow", "out", "../exported"].map(|name| contents(&project.folder.join(name)));
    for (path, bytes) in views.into_iter().flatten() {
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.chars().find(drives), None, "{}", path.display());
    }
    assert_eq!(lines.chars().find(drives), None, "{lines:?}");
    let raw = project.folder.join(format!("out/checkpoints/plans/song_{}_iter01_raw.json", run.trim()));
    let told: Value = serde_json::from_slice(&std::fs::read(raw).unwrap()).unwrap();
    assert_eq!(told["plan"][EVIL], EVIL);
}
