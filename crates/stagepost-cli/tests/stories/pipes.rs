//! Pipes and devices where the store keeps a file: nobody waits for them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::support::{PROGRAM, Ran, TempProject};

/// A project with everything in its store that commands leave there.
fn lived_in() -> TempProject {
    let project = TempProject::new();
    for (key, value) in [("user.name", "Ada"), ("user.email", "ada@example.com")] {
        assert!(project.tool("git", ["config", key, value]).status().unwrap().success());
    }
    project.write("a.txt", "one");
    project.write("state.json", "x".repeat(20_000));
    project.save("first", &["--artifact", "state=state.json"]);
    project.ok(&[
        "session",
        "create",
        "--session-id",
        "s1",
        "--description",
        "d",
        "--phase",
        "plan",
        "--no-commit",
    ]);
    project.ok(&["task", "save", "--task", "1", "--stage", "start", "-m", "begun", "--no-commit"]);
    project.ok(&["task", "note", "--task", "1", "so far"]);
    project.write(
        "flow.yaml",
        "name: f\nsteps:\n  - {id: a, run: 'true'}\n  - {id: b, ask: {kind: confirm_intent, message: 'Go on?'}}\n",
    );
    project.run(&["flow", "run", "flow.yaml", "--run-id", "f1"]);
    project.write("a.txt", "two");
    project.save("second", &[]);
    project
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => files_below(&entry.path(), found),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
}

/// Runs a command that must not take long, nor much memory.
fn in_time(project: &TempProject, args: &str, odd: &Path) -> Ran {
    let line = format!("ulimit -v 4000000; exec timeout 20 {PROGRAM} {args}");
    let ran = Ran::of(project.tool("/bin/sh", ["-c", &line]).output());
    assert!(ran.code != 124, "`{args}` waits for {}", odd.display());
    ran
}

const COMMANDS: &[&str] = &[
    "log",
    "--quiet save -m more --artifact state=state.json",
    "session create --session-id s1 --description e --phase plan --no-commit",
    "task note --task 1 more",
    "flow show f1",
    "flow resume f1",
    "flow cancel f1",
    "restore @- --yes",
    "verify",
    "gc",
    "doctor --fix",
];

#[test]
fn no_command_waits_for_a_pipe_or_a_device_where_the_store_keeps_a_file() {
    let project = lived_in();
    let aside = project.home().join("aside");
    let copy = |from: &Path, to: &Path| {
        let _ = fs::remove_dir_all(to);
        assert!(project.tool("cp", [Path::new("-a"), from, to]).status().unwrap().success());
    };
    let mut files = Vec::new();
    files_below(&project.store, &mut files);
    assert!(files.len() > 10, "{files:?}");
    copy(&project.store, &aside);
    for file in files {
        for pipe in [true, false] {
            fs::remove_file(&file).unwrap();
            if pipe {
                assert!(project.tool("mkfifo", [&file]).status().unwrap().success());
            } else {
                symlink("/dev/zero", &file).unwrap();
            }
            for command in COMMANDS {
                in_time(&project, command, &file);
            }
            copy(&aside, &project.store);
        }
    }
}

#[test]
fn a_pipe_in_place_of_the_noted_end_of_the_journal_is_named_by_whoever_would_write_it() {
    let project = lived_in();
    let head = project.store.join("head");
    fs::remove_file(&head).unwrap();
    assert!(project.tool("mkfifo", [&head]).status().unwrap().success());
    assert_eq!(in_time(&project, "log", &head).code, 0);
    let refused = in_time(&project, "save -m more", &head);
    refused.fails(1, &["stagepost/head", "a pipe or a device, not a regular file"]);
    fs::remove_file(&head).unwrap();
    project.save("more", &[]);
}
