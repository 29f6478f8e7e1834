//! Status, init, save, log, show, diff: what people do all day.

use serde_json::json;

use crate::support::{PROGRAM, Ran, TempProject, masked};

#[test]
fn what_is_said_may_begin_as_an_option_does() {
    let project = TempProject::new();
    project.save("- the parser\n- the tests", &[]);
    project.ok(&["save", "-m", "--- so far ---"]);
    let said = project.json(&["log"]);
    assert_eq!(said["checkpoints"][0]["description"], json!("--- so far ---"));
    assert_eq!(said["checkpoints"][1]["description"], json!("- the parser\n- the tests"));
}

#[test]
fn an_empty_folder_with_the_name_of_ours_is_no_store_in_a_repository() {
    let project = TempProject::new();
    std::fs::create_dir(project.folder.join(".stagepost")).unwrap();
    project.save("first", &[]);
    assert!(project.store.join("store.db").is_file(), "it is where git cannot clean it away");
    assert_eq!(project.ok(&["--quiet", "log"]).lines().count(), 1);
}

#[test]
fn a_repository_needs_no_setting_up() {
    let project = TempProject::new();
    assert!(project.ok(&[]).contains("nothing saved yet"));
    let before = project.json(&["status"]);
    assert_eq!((&before["latest"], &before["bytes"]), (&json!(null), &json!(0)));
    assert!(!project.store.exists(), "looking must not make a store");

    assert_eq!(masked(&project.ok(&["save", "-m", "first"])), "saved ID as adhoc/1 with 0 files");
    let status = masked(&project.ok(&[]));
    assert!(status.contains("store .git/stagepost (SIZE)"), "{status}");
    assert!(status.ends_with("latest ID adhoc/1 just now first"), "{status}");
    assert_eq!(project.ok(&["status"]), project.ok(&[]));
    let tracked = project.tool("git", ["status", "--porcelain"]).output().unwrap();
    assert!(tracked.stdout.is_empty(), "the store shows in git status");
}

#[test]
fn status_in_numbers_and_ids() {
    let project = TempProject::new();
    let good = project.save("works", &["--label", "good"]);
    let latest = project.save("tries something", &[]);
    assert_eq!(project.ok(&["--quiet"]).trim(), latest);
    let status = project.json(&[]);
    assert_eq!((&status["latest"]["id"], &status["last_good"]["id"]), (&json!(latest), &json!(good)));
    assert_eq!(status["entries"], 3);
    assert!(status["bytes"].as_u64().unwrap() > 0);
}

#[test]
fn a_plain_folder_is_asked_for_once() {
    let project = TempProject::plain();
    project.run(&["save", "-m", "x"]).fails(3, &["no project around", "stagepost init"]);
    project.run(&[]).fails(3, &["stagepost init"]);
    assert!(project.ok(&["init"]).starts_with("made the store "));
    assert!(project.ok(&["init"]).contains("there already"));
    assert_eq!(project.json(&["init"])["made"], json!(false));
    assert_eq!(project.ok(&["--quiet", "init"]), "");
    project.save("first", &[]);
    let files = |folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let names: Vec<std::ffi::OsString> = files(&project.folder);
    assert_eq!(names, [".stagepost"], "init wrote something else");
}

#[test]
fn the_store_belongs_to_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let project = TempProject::new();
    project.save("secret", &[]);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&project.store), 0o700);
    for file in std::fs::read_dir(&project.store).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
    }
}

#[test]
fn from_a_folder_below_and_from_elsewhere() {
    let project = TempProject::new();
    project.write("src/deep/file", "x");
    let id = project.save("first", &[]);
    for folder in ["src/deep", "src"] {
        assert_eq!(project.ok(&["-C", folder, "--quiet", "log"]).trim(), id);
    }
    let folder = project.folder.to_str().unwrap().to_owned();
    let elsewhere = TempProject::plain();
    assert_eq!(elsewhere.ok(&["--quiet", "-C", &folder, "log"]).trim(), id);
    elsewhere.run(&["-C", "not/there", "log"]).fails(3, &["failed to open the folder", "not/there"]);
}

#[test]
fn all_work_trees_share_one_store() {
    let project = TempProject::new();
    let git = |args: &[&str]| {
        let done = project.tool("git", args).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "c"]);
    git(&["worktree", "add", "--quiet", "../other"]);
    project.save("in the main one", &[]);
    assert_eq!(
        masked(&project.ok(&["-C", "../other", "save", "-m", "x"])),
        "saved ID as adhoc-other/1 with 0 files"
    );
    assert_eq!(project.ok(&["--quiet", "log", "--all"]).lines().count(), 2);
    assert_eq!(project.ok(&["--quiet", "log"]).lines().count(), 1, "each work tree has its own line");
}

#[test]
fn save_keeps_files_state_metadata_and_labels() {
    let project = TempProject::new();
    project.write("notes.md", "# Notes\n");
    project.write("raw.bin", [0xff, 0x00, 0xfe]);
    let args = ["save", "-m", "all of it", "--artifact", "notes=notes.md", "--artifact", "out/raw=raw.bin"];
    let more =
        ["--state", "-", "--metadata", "{\"tokens\": 12}", "--label", "good", "--label", "release=1.2"];
    let saved =
        project.run_on("{\"step\": 1}", &[&["--json"], &args[..], &more[..], &["--run", "tuesday"]].concat());
    assert_eq!(saved.code, 0, "{saved:?}");
    let value: serde_json::Value = serde_json::from_str(&saved.out).unwrap();
    let checkpoint = &value["checkpoint"];
    assert_eq!(
        (&value["schema"], &checkpoint["run"], &checkpoint["seq"]),
        (&json!(1), &json!("tuesday"), &json!(1))
    );
    assert_eq!(checkpoint["metadata"], json!({"tokens": 12}));
    assert_eq!(checkpoint["labels"], json!(["good", "release=1.2"]));
    let media = |at: usize| checkpoint["artifacts"][at]["media"].as_str().unwrap();
    assert_eq!(media(0), "text/plain; charset=utf-8");
    assert_eq!((media(1), media(2)), ("application/octet-stream", "application/json"));

    assert_eq!(project.json(&["show"]), value);
    assert_eq!(project.ok(&["--quiet", "show"]).trim(), checkpoint["id"].as_str().unwrap());
    let shown = masked(&project.ok(&["show"]));
    for line in ["run tuesday/1", "labels good, release=1.2", "metadata tokens = 12", "artifact out/raw SIZE"]
    {
        assert!(shown.contains(line), "no `{line}` in {shown}");
    }
    assert_eq!(project.ok(&["show", "--artifact", "notes"]), "# Notes\n");
    assert_eq!(project.ok(&["show", "--artifact", "state"]), "{\"step\": 1}");
}

#[test]
fn an_artifact_goes_to_a_new_file_only() {
    let project = TempProject::new();
    let original = project.write("raw.bin", [0xff, 0x00, 0xfe]);
    project.save("bytes", &["--artifact", "raw=raw.bin"]);
    let written = project.json(&["show", "--artifact", "raw", "-o", "copy.bin"]);
    assert_eq!((&written["artifact"], &written["bytes"]), (&json!("raw"), &json!(3)));
    assert_eq!(std::fs::read(project.folder.join("copy.bin")).unwrap(), std::fs::read(original).unwrap());
    project.write("mine.txt", "mine");
    project.run(&["show", "--artifact", "raw", "-o", "mine.txt"]).fails(4, &["mine.txt", "another name"]);
    assert_eq!(std::fs::read(project.folder.join("mine.txt")).unwrap(), b"mine");
    project.run(&["show", "--artifact", "none"]).fails(3, &["no artifact `none`", "lists the artifacts"]);
}

#[test]
fn log_is_newest_first_and_can_be_narrowed() {
    let project = TempProject::new();
    let first = project.save("one", &["--label", "good"]);
    let second = project.save("two", &["--run", "b"]);
    let third = project.save("three", &["--label", "good"]);
    let ids = |args: &[&str]| -> Vec<String> {
        project.ok(&[&["--quiet", "log"], args].concat()).lines().map(str::to_owned).collect()
    };
    assert_eq!(ids(&[]), [&*third, &*second, &*first]);
    assert_eq!(ids(&["--run", "b"]), [&*second]);
    assert_eq!(ids(&["--label", "good"]), [&*third, &*first]);
    assert_eq!(ids(&["-n", "1"]), [&*third]);
    assert_eq!(ids(&["-n", "0", "--all"]).len(), 3);
    assert_eq!(ids(&["--since", "1h"]).len(), 3);
    assert_eq!(ids(&["--since", "0s"]), [""; 0]);
    let listed = project.json(&["log"]);
    assert_eq!(listed["checkpoints"].as_array().unwrap().len(), 3);
    assert_eq!(listed["checkpoints"][0]["id"], json!(third));
    let text = masked(&project.ok(&["log"]));
    assert_eq!(text.lines().next(), Some("ID just now adhoc/2 manual three [good]"));
    project.run(&["log", "--run", "c"]).fails(3, &["run `c` is not in the store"]);
    project.run(&["log", "--since", "yesterday"]).fails(2, &["`yesterday` is not a duration", "2d"]);
}

#[test]
fn diff_names_every_path_that_changed() {
    let project = TempProject::new();
    project.write("state.json", r#"{"step": 1, "done": ["plan"], "old": true}"#);
    project.write("notes.txt", "one\ntwo\nthree\n");
    project.save("before", &["--state", "state.json", "--artifact", "notes=notes.txt"]);
    project.write("state.json", r#"{"step": 2, "done": ["plan", "build"]}"#);
    project.write("notes.txt", "one\n2\nthree\n");
    project.save(
        "after",
        &["--state", "state.json", "--artifact", "notes=notes.txt", "--artifact", "new=notes.txt"],
    );
    let text = project.ok(&["diff", "@-", "@"]);
    for line in ["  ~ /step  1 → 2", "  + /done/1  \"build\"", "  - /old  true", "-two", "+2", "added"] {
        assert!(text.contains(line), "no `{line}` in {text}");
    }
    assert_eq!(project.ok(&["diff", "--quiet", "@-", "@"]), "notes.txt\nstate.json\nnew\nnotes\nstate\n");
    let stat = masked(&project.ok(&["diff", "@-", "@", "--stat", "--artifact", "state"]));
    assert_eq!(stat, "state SIZE → SIZE 3 changes");
    let diff = project.json(&["diff", "@-", "@", "--artifact", "state"]);
    assert_eq!(diff["artifacts"][0]["as"], json!("json"));
    assert_eq!(diff["artifacts"][0]["changes"].as_array().unwrap().len(), 3);
    assert_eq!(project.json(&["diff", "@", "@"])["artifacts"], json!([]));
}

#[test]
fn a_file_that_became_too_large_is_named_and_not_called_deleted() {
    let project = TempProject::new();
    project.write("stagepost.toml", "[snapshot]\nmax_file_size = \"1K\"\n");
    project.write("log.txt", "small\n");
    project.save("small", &[]);
    project.write("log.txt", "x".repeat(2000));
    for args in [&["diff", "@"][..], &["diff", "@", "--stat"]] {
        let ran = project.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{ran:?}");
        assert!(ran.err.contains("left out log.txt") && !ran.err.contains("nothing differs"), "{ran:?}");
    }
    let found = project.json(&["diff", "@"]);
    assert_eq!(found["files"]["files"], json!([]));
    assert_eq!(found["files"]["left_out"][0]["path"], json!("log.txt"));
    project.save("large", &[]);
    project.write("log.txt", "small again\n");
    let ran = project.run(&["diff", "@"]);
    assert!(ran.out.is_empty() && ran.err.contains("left out log.txt"), "{ran:?}");
}

#[test]
fn the_history_of_an_artifact_leaves_out_what_did_not_change_it() {
    let project = TempProject::new();
    for (count, state) in ["1", "1", "2"].iter().enumerate() {
        project.write("state.json", state);
        project.save(&format!("save {count}"), &["--state", "state.json"]);
    }
    let versions = project.json(&["show", "--artifact", "state", "--history"]);
    let seqs: Vec<_> =
        versions["checkpoints"].as_array().unwrap().iter().map(|one| one["seq"].clone()).collect();
    assert_eq!(seqs, [json!(3), json!(1)]);
    let text = masked(&project.ok(&["show", "--artifact", "state", "--history"]));
    assert_eq!(text, "ID adhoc/3 SIZE\nID adhoc/1 SIZE");
}

#[test]
fn colour_is_for_terminals_and_a_reader_may_leave() {
    let project = TempProject::new();
    (0..5).for_each(|_| drop(project.save("x", &[])));
    assert!(!project.ok(&["log"]).contains('\u{1b}'));
    let line = format!("'{PROGRAM}' log | head -n 1; exit ${{PIPESTATUS[0]}}");
    let piped = project.tool("bash", ["-c", &line]).output().unwrap();
    assert!(piped.status.success(), "{piped:?}");
}

#[test]
fn completions_for_every_shell() {
    let project = TempProject::plain();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = project.ok(&["completions", shell]);
        assert!(script.contains("stagepost") && script.contains("verify"), "{shell}");
    }
    project.run(&["completions", "tcsh"]).fails(2, &["tcsh", "possible values"]);
}

#[test]
fn help_and_version_are_results() {
    let project = TempProject::plain();
    assert_eq!(project.ok(&["--version"]), format!("stagepost {}\n", env!("CARGO_PKG_VERSION")));
    let commands =
        ["status", "init", "save", "log", "show", "diff", "verify", "gc", "pin", "unpin", "doctor"];
    for command in commands.iter().chain(&["config", "completions", "schema", "demo"]) {
        assert!(project.ok(&["--help"]).contains(command), "{command}");
        let help = project.ok(&[command, "--help"]);
        assert!(help.contains("Usage:"), "{command}");
        assert_eq!(project.ok(&["help", command]), help);
        let everywhere = help.find("Options of every command:").expect(command);
        assert!(everywhere > help.find("\nOptions:").expect(command), "{command}");
    }
}

#[test]
fn an_artifact_that_nobody_has_is_not_found_and_now_has_none() {
    let project = TempProject::new();
    project.write("state.json", "{}");
    project.save("one", &["--state", "state.json"]);
    project.save("two", &[]);
    project.run(&["diff", "@-", "@", "--artifact", "typo"]).fails(3, &["no artifact `typo`"]);
    project.ok(&["diff", "@-", "@", "--artifact", "state"]);
    for args in [&["diff", "--artifact", "state"][..], &["diff", "@-", "--artifact", "state"]] {
        project.run(args).fails(2, &["--artifact", "two checkpoints"]);
    }
    project.run(&["diff", "@-", "@", "state.json", "--artifact", "state"]).fails(2, &["--artifact"]);
}

#[test]
fn what_was_made_for_safety_is_listed_by_its_run() {
    let project = TempProject::new();
    project.write("a", "one");
    project.save("first", &[]);
    project.write("a", "two");
    let safety = project.ok(&["--quiet", "restore", "@"]);
    assert_eq!(project.ok(&["--quiet", "log", "--run", "safety"]), safety);
}

#[test]
fn pins_are_shown() {
    let project = TempProject::new();
    let (first, second) = (project.save("one", &[]), project.save("two", &["--label", "good"]));
    assert_eq!(project.json(&["show", &first])["pinned"], json!(false));
    assert_eq!(project.json(&["log"])["pinned"], json!([]));
    assert_eq!(project.json(&["pin", &second])["pinned"], json!(true));
    project.ok(&["pin", &first]);
    assert_eq!(project.json(&["show", &first])["pinned"], json!(true));
    assert_eq!(project.json(&["log"])["pinned"], json!([second, first]));
    let text = masked(&project.ok(&["log"]));
    assert_eq!(
        text,
        "ID just now adhoc/2 manual two [good] [pinned]\nID just now adhoc/1 manual one [pinned]"
    );
    assert!(masked(&project.ok(&["show"])).contains("\npinned yes"));
    project.ok(&["unpin"]);
    assert!(!project.ok(&["show"]).contains("pinned"));
    assert_eq!(project.json(&["log"])["pinned"], json!([first]));
}

#[test]
fn what_cannot_be_printed_is_told_with_what_was_done() {
    let project = TempProject::new();
    let full = |line: &str| {
        let line = format!("'{PROGRAM}' {line} >/dev/full");
        Ran::of(project.tool("bash", ["-c", &line]).output())
    };
    full("save -m x").fails(1, &["failed to print", "No space left", "is saved"]);
    let id = project.ok(&["--quiet", "log"]);
    full("save --json -m x").fails(1, &["is saved"]);
    full("log").fails(1, &["failed to print", "No space left"]);
    assert!(!id.is_empty() && project.ok(&["--quiet", "log"]).lines().count() == 2);
    let line = format!("'{PROGRAM}' completions zsh | head -n 1; exit ${{PIPESTATUS[0]}}");
    let piped = project.tool("bash", ["-c", &line]).output().unwrap();
    assert!(piped.status.success() && piped.stderr.is_empty(), "{piped:?}");
}

#[test]
fn a_thing_is_one_and_columns_are_straight() {
    let project = TempProject::new();
    project.save("one", &["--no-files"]);
    let text = project.ok(&["doctor"]);
    assert!(text.contains("1 checkpoint and 0 payloads"), "{text}");
    for run in ["b", "b", "longer", "longer"] {
        project.save("x", &["--no-files", "--run", run]);
    }
    let text = project.ok(&["gc", "--dry-run", "--keep", "1"]);
    let places: std::collections::BTreeSet<_> =
        text.lines().filter_map(|line| line.find("just now")).collect();
    assert_eq!((text.lines().count(), places.len()), (3, 1), "{text}");
}

#[test]
fn a_reader_that_leaves_changes_nothing_of_how_a_command_ends() {
    let project = TempProject::new();
    let unread = |args: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Ran::of(project.tool(PROGRAM, args).stdout(writer).output())
    };
    let silent = |ran: Ran| if ran.err.is_empty() { ran.code } else { panic!("{ran:?}") };
    assert_eq!(silent(unread(&["gate", "ask", "--id", "n", "Drop the database?"])), 6);
    assert_eq!(silent(unread(&["gate", "wait", "n", "--timeout", "10ms"])), 6);
    project.ok(&["gate", "answer", "n", "no"]);
    for form in [&[][..], &["--json"], &["--quiet"]] {
        let ask = [form, &["gate", "ask", "--id", "n", "Drop the database?"]].concat();
        assert_eq!(silent(unread(&ask)), 7, "{form:?}");
        assert_eq!(silent(unread(&[form, &["gate", "wait", "n"]].concat())), 7, "{form:?}");
    }
    assert_eq!(silent(unread(&["--json", "show", "nosuch"])), 3);
    assert_eq!(silent(unread(&["log", "--all"])), 0);

    project.write("flow.yaml", "name: f\nsteps:\n  - {id: one, run: 'exit 1'}\n");
    assert_eq!(unread(&["flow", "run", "flow.yaml", "--run-id", "r"]).code, 1);
    assert_eq!(unread(&["flow", "resume", "r"]).code, 1);

    // What a command does is done, whoever reads of it.
    (0..3).for_each(|_| drop(project.save("x", &["--run", "many"])));
    assert_eq!(unread(&["gc", "--keep", "1"]).code, 0);
    assert_eq!(project.ok(&["--quiet", "log", "--run", "many"]).lines().count(), 1);
    project.write("payload.txt", "something to be kept");
    project.save("x", &["--artifact", "p=payload.txt"]);
    project.database().execute_batch("DELETE FROM pieces").unwrap();
    assert_eq!(unread(&["verify"]).code, 5);
    assert_eq!(unread(&["--json", "verify"]).code, 5);
}

#[test]
fn a_diff_without_names_is_to_the_newest_checkpoint_that_holds_files() {
    let project = TempProject::new();
    project.write("a.txt", "one\n");
    project.save("files", &[]);
    project.ok(&["save", "--no-files", "-m", "no files"]);
    project.run(&["gate", "ask", "--id", "g", "Go on?"]);
    project.ok(&["gate", "answer", "g", "yes"]);
    project.write("a.txt", "two\n");
    assert!(project.ok(&["diff"]).contains("-one\n+two"));
    assert_eq!(project.ok(&["--quiet", "diff", "a.txt"]), "a.txt\n");

    let empty = TempProject::new();
    empty.ok(&["save", "--no-files", "-m", "no files"]);
    assert_eq!(empty.run(&["diff"]).code, 3);
}

#[test]
fn what_is_not_there_is_said_and_lines_end_where_their_words_end() {
    let project = TempProject::new();
    project.write("a.txt", "a");
    project.save("", &["--label", "good", "--artifact", "a=a.txt"]);
    project.save("", &[]);
    project
        .run(&["show", "--artifact", "b", "--history"])
        .fails(3, &["no checkpoint of run adhoc has an artifact `b`", "lists the artifacts"]);
    let nowhere = project.run(&["show", "@-", "--artifact", "a", "-o", "none/a.txt"]);
    nowhere.fails(3, &["failed to make none/a.txt"]);
    assert!(!nowhere.err.contains("overwritten"), "{nowhere:?}");
    let exported = project.run(&["export", "--format", "runs", "--to", "out"]);
    assert_eq!((exported.code, exported.err.as_str()), (0, "there is nothing to export as runs\n"));
    let listed = project.ok(&["log"]);
    assert!(listed.contains("manual  [good]\n"), "{listed}");
    for line in listed.lines().chain(project.ok(&[]).lines()) {
        assert_eq!(line, line.trim_end());
    }
}
