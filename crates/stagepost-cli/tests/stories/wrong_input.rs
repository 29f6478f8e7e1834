//! Input that cannot be meant: a clear message, the right exit code, nothing changed, never a panic.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use serde_json::{Value, json};

use crate::support::{PROGRAM, Ran, TempProject, contents};

/// A project with one checkpoint, to see that a refused command adds nothing to it.
fn saved() -> TempProject {
    let project = TempProject::new();
    project.save("first", &[]);
    project
}

fn still_one(project: &TempProject) {
    assert_eq!(project.ok(&["--quiet", "log", "--all"]).lines().count(), 1, "something was saved");
}

#[test]
fn words_that_no_command_knows() {
    let project = saved();
    for args in [
        &["sav"][..],
        &["save", "--nothing"],
        &["log", "-n", "many"],
        &["show", "--output", "x"],
        &["schema", "nothing"],
        &["save", "--artifact", "no-equals-sign"],
        &["save", "--label", ""],
        &["--busy-timeout", "soon", "log"],
    ] {
        let ran = project.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
        assert!(ran.out.is_empty() && ran.err.starts_with("error:"), "{args:?}: {ran:?}");
    }
    for args in [&["--json", "sav"][..], &["--json", "--quiet", "log"]] {
        let ran = project.run(args);
        let error: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((ran.code, &error["error"]["code"]), (2, &json!("usage")));
    }
    still_one(&project);
}

#[test]
fn names_that_could_act_elsewhere() {
    let project = saved();
    project.write("f", "x");
    for bad in
        ["..", "../x", "a/b", ".hidden", "a\nb", "\u{1b}[31mred", "a b", "a\u{202e}b", &"x".repeat(129)]
    {
        let named = [
            vec!["save".to_owned(), "--run".to_owned(), bad.to_owned()],
            vec!["save".to_owned(), "--label".to_owned(), bad.to_owned()],
            vec!["log".to_owned(), "--run".to_owned(), bad.to_owned()],
            vec!["log".to_owned(), "--label".to_owned(), bad.to_owned()],
        ];
        for args in named {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let ran = project.run(&args);
            ran.fails(2, &["cannot be"]);
            assert!(!ran.err.contains('\u{1b}') && !ran.err.contains('\u{202e}'), "{:?}", ran.err);
        }
        project.run(&["show", bad]).fails(3, &["no checkpoint is called"]);
    }
    for bad in ["../x=f", "/etc/x=f", "a/../b=f", "a\nb=f", "=f", "-x=f", "\u{1b}[2J=f"] {
        project.run(&["save", &format!("--artifact={bad}")]).fails(2, &["cannot be an artifact name"]);
    }
    project
        .run(&["save", "--artifact", "a=f", "--artifact", "a=f"])
        .fails(2, &["two artifacts are called `a`"]);
    still_one(&project);
}

#[test]
fn text_is_kept_as_it_is_and_printed_safely() {
    let project = TempProject::new();
    let wild = "first\u{1b}[31m line\nsecond\u{7} line \u{202e}reversed";
    project.save(wild, &["--metadata", "{\"key\\u001b\": \"\\u001b[2J\"}"]);
    for command in [&["log"][..], &["show"], &[]] {
        let text = project.ok(command);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    }
    assert_eq!(project.json(&["show"])["checkpoint"]["description"], json!(wild));
}

#[test]
fn json_that_is_none() {
    let project = saved();
    for bad in ["", "{", "{\"a\": }", "nul", "[1, 2", "{\"a\": 1} x", "\u{feff}{}"] {
        let ran = project.run_on(bad, &["save", "--state", "-"]);
        ran.fails(2, &["is not valid JSON", "line"]);
    }
    for bad in ["", "[]", "1", "{", "{\"a\": }"] {
        project.run(&["save", "--metadata", bad]).fails(2, &["--metadata must be a JSON object"]);
    }
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    project.run_on(&deep, &["save", "--state", "-"]).fails(2, &["is not valid JSON", "recursion limit"]);
    project
        .run(&["save", "--metadata", &format!("{{\"a\": {deep}}}")])
        .fails(2, &["--metadata", "recursion limit"]);
    still_one(&project);
    // As a file it is only bytes, and those come back as they were.
    project.write("deep.json", &deep);
    project.save("deep", &["--artifact", "deep=deep.json"]);
    assert_eq!(project.ok(&["show", "--artifact", "deep"]), deep);
    project.save("again", &["--artifact", "deep=deep.json"]);
    project.ok(&["diff"]);
}

#[test]
fn files_that_are_not_there() {
    let project = saved();
    project.run(&["save", "--state", "none.json"]).fails(3, &["none.json", "No such file"]);
    project.run(&["save", "--artifact", "a=none.txt"]).fails(3, &["none.txt", "No such file"]);
    fs::create_dir(project.folder.join("folder")).unwrap();
    project.run(&["save", "--artifact", "a=folder"]).fails(1, &["folder"]);
    project.run(&["save", "--state", "folder"]).fails(1, &["folder"]);
    project.write("file", "x");
    project.run(&["save", "--include-ignored", "file/beneath"]).fails(3, &["file/beneath"]);
    still_one(&project);
}

#[test]
fn what_no_snapshot_holds_cannot_be_asked_for() {
    let project = saved();
    assert!(project.tool("git", ["init", "--quiet", "nested"]).status().unwrap().success());
    project.write("nested/file", "x");
    project.write("file", "x");
    std::os::unix::fs::symlink(project.home(), project.folder.join("link")).unwrap();
    fs::write(project.home().join("file"), "x").unwrap();
    for (path, why) in [
        (".git", "it belongs to git"),
        (".git/config", "it belongs to git"),
        (".git/stagepost/store.db", "it belongs to git"),
        ("nested/.git/config", "it belongs to git"),
        ("nested/file", "it is in a repository of its own"),
        ("link/file", "a link leads there"),
        ("../home/file", "is not inside the project"),
    ] {
        let refused = project.run(&["save", "--include-ignored", "file", "--include-ignored", path]);
        refused.fails(2, &[path, why]);
    }
    still_one(&project);
    project.ok(&["save", "--include-ignored", "link", "--include-ignored", "."]);

    let plain = TempProject::plain();
    plain.ok(&["init"]);
    plain.run(&["save", "--include-ignored", ".stagepost"]).fails(2, &["it belongs to the store"]);
    assert_eq!(plain.ok(&["--quiet", "log"]), "");
}

#[test]
fn no_store_is_made_for_what_cannot_be_saved() {
    let project = TempProject::new();
    project.run(&["save", "--artifact", "a=none.txt"]).fails(3, &["none.txt", "No such file"]);
    project.run_on("{bad", &["save", "--state", "-"]).fails(2, &["is not valid JSON"]);
    project.write("a", "x");
    project
        .run(&["save", "--artifact", "a=a", "--artifact", "a=a"])
        .fails(2, &["two artifacts are called `a`"]);
    project.run(&["import", "nowhere"]).fails(3, &["failed to import nowhere", "No such file"]);
    project.run(&["import", "."]).fails(3, &["nothing to import"]);
    project.run(&["import", "--format", "tasks", "."]);
    let entry = json!({"task_id": 1, "stage": "start", "commit_hash": "0".repeat(40), "description": "begun",
        "timestamp": "2026-01-01T00:00:00", "metadata": {}});
    project.write("old/.checkpoint-metadata.json", json!([entry]).to_string());
    assert!(project.ok(&["import", "--dry-run", "old"]).contains("would import 1 of 1 checkpoint"));
    assert!(!project.store.exists());
    assert!(project.ok(&["import", "old"]).contains("imported 1 of 1 checkpoint"));
    assert!(project.ok(&["import", "--dry-run", "old"]).contains("would import 0 of 1 checkpoint"));
}

#[test]
fn settings_that_are_none() {
    let project = saved();
    for (text, said) in [
        ("retension.keep = 3", "there is no setting `retension.keep`"),
        ("retention.keep = \"many\"", "must be"),
        ("this is not toml", "not valid TOML"),
    ] {
        project.write("stagepost.toml", text);
        project.run(&["log"]).fails(2, &[said, "stagepost.toml"]);
    }
}

/// Runs the program as somebody who may not write where the test may: permissions do not bind the superuser.
fn as_a_guest(project: &TempProject, args: &[&str]) -> Ran {
    let mut command = project.tool(PROGRAM, args);
    if may_write_anywhere(project) {
        let copy = project.home().join("stagepost");
        if !copy.exists() {
            // Another process copies it: a file that this one has open for writing could not be run if another test
            // starts a program just then.
            let copied = std::process::Command::new("cp").arg(PROGRAM).arg(&copy).status();
            assert!(copied.unwrap().success());
        }
        let around = project.home().parent().unwrap().to_owned();
        for folder in [around, project.home()] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        }
        command = project.tool(&copy, args);
        command.uid(65_534).gid(65_534);
    }
    Ran::of(command.output())
}

fn may_write_anywhere(project: &TempProject) -> bool {
    let locked = project.home().join("locked");
    if !locked.exists() {
        fs::create_dir(&locked).unwrap();
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    }
    let probe = locked.join("probe");
    let written = fs::write(&probe, "").is_ok();
    let _ = fs::remove_file(probe);
    written
}

fn close(path: &std::path::Path, folders: u32, files: u32) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            close(&entry.unwrap().path(), folders, files);
        }
        fs::set_permissions(path, fs::Permissions::from_mode(folders)).unwrap();
    } else {
        fs::set_permissions(path, fs::Permissions::from_mode(files)).unwrap();
    }
}

#[test]
fn a_folder_that_cannot_be_written() {
    let project = TempProject::new();
    close(&project.folder, 0o555, 0o444);
    as_a_guest(&project, &["save", "-m", "x"])
        .fails(1, &["failed to make the folder", "Permission denied", "who owns"]);
    close(&project.folder, 0o755, 0o644);
    let plain = TempProject::plain();
    close(&plain.folder, 0o555, 0o444);
    as_a_guest(&plain, &["init"]).fails(1, &["failed to make the folder", "Permission denied"]);
    close(&plain.folder, 0o755, 0o644);
}

#[test]
fn a_store_that_cannot_be_written_or_read() {
    let project = saved();
    close(&project.folder, 0o555, 0o444);
    let before = contents(&project.folder);
    let ran = as_a_guest(&project, &["save", "-m", "x"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let swept = as_a_guest(&project, &["gc", "--keep", "1"]);
    assert_eq!((swept.code, swept.out.contains("pruned, ")), (1, false), "{swept:?}");
    assert!(ran.err.contains("hint:"), "{ran:?}");
    let read = as_a_guest(&project, &["log"]);
    assert!([0, 1].contains(&read.code), "{read:?}");
    let restored = as_a_guest(&project, &["restore", "@", "--yes"]);
    restored.fails(1, &["failed to keep other processes", "Permission denied", "who owns"]);
    assert!(!restored.err.contains("another process"), "{restored:?}");
    let looked = as_a_guest(&project, &["doctor"]);
    looked.fails(1, &["something needs a person", "can be written"]);
    assert!(looked.out.contains("bad      writable     the store cannot be written: "), "{looked:?}");
    assert!(!looked.err.contains("damaged"), "nothing is: {looked:?}");
    assert_eq!(contents(&project.folder), before);
    close(&project.store, 0o700, 0o600);
    if may_write_anywhere(&project) {
        as_a_guest(&project, &["log"]).fails(1, &["failed to", "Permission denied"]);
    }
    close(&project.folder, 0o755, 0o644);
}

#[test]
fn what_is_missing_is_named_in_json_too() {
    let project = TempProject::new();
    let ran = project.run(&["--json", "restore"]);
    let error: Value = serde_json::from_str(&ran.out).unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    assert_eq!(message, "the following required arguments were not provided: <CHECKPOINT>");
}

#[test]
fn a_file_is_no_folder_to_work_in() {
    let project = saved();
    project.write("f", "x");
    project.run(&["-C", "f", "log"]).fails(1, &["failed to open the folder", "f", "not a directory"]);
}

#[test]
fn whole_numbers_of_any_length_come_back_or_are_refused() {
    let project = saved();
    let state =
        |last: &str| format!(r#"{{"n": 12345678901234567890123456789{last}, "u": 18446744073709551615}}"#);
    project.write("s.json", state("0"));
    let first = project.save("one", &["--state", "s.json"]);
    assert_eq!(project.ok(&["show", &first, "--artifact", "state"]), state("0"));
    project.write("s.json", state("1"));
    let second = project.save("two", &["--state", "s.json"]);
    let differs = project.ok(&["diff", &first, &second, "--artifact", "state"]);
    assert!(differs.contains("-{\"n\": 123456789012345678901234567890"), "{differs}");
    assert!(differs.contains("+{\"n\": 123456789012345678901234567891"), "{differs}");
    // What becomes a part of a record would be rounded, and a yes to one question be a yes to another.
    let given = state("0");
    let said = ["123456789012345678901234567890", "more than 64 bits"];
    project.run(&["save", "--metadata", &given]).fails(2, &said);
    project
        .run(&["task", "save", "--task", "1", "--stage", "start", "-m", "x", "--metadata", &given])
        .fails(2, &said);
    project
        .run(&["gate", "ask", "Go?", "--data", "s.json"])
        .fails(2, &["12345678901234567890123456789", "64 bits"]);
    project.ok(&[
        "save",
        "--metadata",
        r#"{"u": 18446744073709551615, "t": "123456789012345678901234567890"}"#,
    ]);
    // Files of plans have them as they were given.
    let run = project.ok(&["--quiet", "plan", "start", "--project", "song", "--output-dir", "out"]);
    project.write("p.json", format!(r#"{{"plan": {given}}}"#));
    project.ok(&["plan", "record", "--run", run.trim(), "--type", "raw", "--iteration", "1", "p.json"]);
    let view = std::fs::read_to_string(project.folder.join("out/checkpoints/plans/song_raw.json")).unwrap();
    assert!(view.contains(r#""n": 123456789012345678901234567890,"#), "{view}");
    // An import keeps the file, and says that its record is not exact.
    let entry = format!(
        r#"[{{"task_id": 3, "stage": "start", "commit_hash": "", "description": "d", "timestamp": "2026-01-01T00:00:00", "metadata": {given}}}]"#
    );
    project.write("old/.checkpoint-metadata.json", &entry);
    let taken = project.json(&["import", "old"]);
    assert!(taken["items"][0]["findings"].to_string().contains("more than 64 bits"), "{taken}");
    assert_eq!(project.ok(&["show", "task-3", "--artifact", "source"]), entry);
}
