//! Restore, undo, redo: back, and forward again.

use serde_json::json;

use crate::support::{Ran, TempProject};

/// A saved project that somebody wrecked afterwards.
fn wrecked() -> (TempProject, String) {
    let project = TempProject::new();
    project.write("src/main.rs", "fn main() {}\n");
    project.write("notes.txt", "one\n");
    let id = project.save("works", &["--label", "good"]);
    std::fs::remove_dir_all(project.folder.join("src")).unwrap();
    project.write("notes.txt", "two\n");
    project.write("junk.txt", "junk\n");
    (project, id)
}

fn read(project: &TempProject, name: &str) -> Option<String> {
    std::fs::read_to_string(project.folder.join(name)).ok()
}

fn is_wrecked(project: &TempProject) -> bool {
    let found = (read(project, "src/main.rs"), read(project, "notes.txt"), read(project, "junk.txt"));
    found == (None, Some("two\n".to_owned()), Some("junk\n".to_owned()))
}

fn is_whole(project: &TempProject) -> bool {
    let found = (read(project, "src/main.rs"), read(project, "notes.txt"), read(project, "junk.txt"));
    found == (Some("fn main() {}\n".to_owned()), Some("one\n".to_owned()), None)
}

#[test]
fn back_and_forward_again() {
    let (project, _) = wrecked();
    assert!(project.ok(&["restore", "last-good"]).contains("2 files written, 1 deleted"));
    assert!(is_whole(&project));
    project.ok(&["undo"]);
    assert!(is_wrecked(&project));
    project.ok(&["redo"]);
    assert!(is_whole(&project));
    project.ok(&["undo"]);
    assert!(is_wrecked(&project));
    project.run(&["undo"]).fails(3, &["no restore to undo", "stagepost log --all"]);
    project.ok(&["redo"]);
    project.run(&["redo"]).fails(3, &["no undo to take back", "stagepost log --all"]);
    project.ok(&["verify"]);
}

#[test]
fn the_dry_run_says_what_will_happen_and_does_nothing() {
    let (project, _) = wrecked();
    let plan = project.ok(&["restore", "@", "--dry-run"]);
    assert_eq!(plan, "write   notes.txt\nwrite   src/main.rs\ndelete  junk.txt\n");
    let planned = project.json(&["restore", "@", "--dry-run"]);
    assert_eq!(planned["dry_run"], json!(true));
    assert!(is_wrecked(&project));
    assert_eq!(project.ok(&["--quiet", "log", "--all"]).lines().count(), 1);

    let done = project.json(&["restore", "@"]);
    assert_eq!(
        (&done["restore"]["done"]["written"], &done["restore"]["done"]["deleted"]),
        (&json!(2), &json!(1))
    );
    let safety = done["restore"]["safety"].as_str().unwrap().to_owned();
    assert_eq!(project.json(&["show", &safety])["checkpoint"]["kind"]["type"], json!("safety"));
}

#[test]
fn some_files_only() {
    let (project, _) = wrecked();
    project.ok(&["restore", "@", "notes.txt"]);
    assert_eq!(read(&project, "notes.txt").as_deref(), Some("one\n"));
    assert_eq!(read(&project, "src/main.rs"), None);
    assert_eq!(read(&project, "junk.txt").as_deref(), Some("junk\n"));
    project.run(&["restore", "@", "../elsewhere"]).fails(2, &["not inside the project"]);
    project.run(&["restore", "nothing"]).fails(3, &["no checkpoint is called"]);
}

#[test]
fn the_repository_stays_as_it_was() {
    let (project, _) = wrecked();
    let git = |args: &[&str]| String::from_utf8(project.tool("git", args).output().unwrap().stdout).unwrap();
    project.tool("git", ["add", "notes.txt"]).status().unwrap();
    let before = (git(&["ls-files", "-s"]), git(&["branch", "-a"]), git(&["tag"]), git(&["stash", "list"]));
    project.ok(&["restore", "@"]);
    project.ok(&["undo"]);
    assert_eq!(
        (git(&["ls-files", "-s"]), git(&["branch", "-a"]), git(&["tag"]), git(&["stash", "list"])),
        before
    );
}

#[test]
fn a_checkpoint_without_files_cannot_put_any_back() {
    let (project, _) = wrecked();
    project.save("no files", &["--no-files"]);
    project.run(&["restore", "@"]).fails(3, &["show ID --artifact NAME"]);
    assert!(is_wrecked(&project));
}

#[test]
fn without_git_it_is_the_same() {
    let project = TempProject::plain();
    project.ok(&["init"]);
    project.write("a.txt", "one\n");
    project.save("first", &[]);
    project.write("a.txt", "two\n");
    assert!(project.ok(&["diff"]).contains("-one\n+two\n"));
    project.ok(&["restore", "@"]);
    assert_eq!(read(&project, "a.txt").as_deref(), Some("one\n"));
    project.ok(&["undo"]);
    assert_eq!(read(&project, "a.txt").as_deref(), Some("two\n"));
}

#[test]
fn the_whole_project_can_be_named_and_a_way_round_leads_to_it() {
    let around = |project: &TempProject| project.folder.parent().unwrap().join("round");
    let ways: [fn(&TempProject) -> Ran; 4] = [
        |project| project.run(&["restore", "@", "."]),
        |project| project.run(&["-C", "deep/er", "restore", "@", "../.."]),
        |project| project.run(&["restore", "@", project.folder.to_str().unwrap()]),
        |project| project.run(&["restore", "@", project.folder.with_file_name("round").to_str().unwrap()]),
    ];
    for way in ways {
        let (project, _) = wrecked();
        std::os::unix::fs::symlink(&project.folder, around(&project)).unwrap();
        std::fs::create_dir_all(project.folder.join("deep/er")).unwrap();
        let ran = way(&project);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(is_whole(&project));
    }
    let (project, _) = wrecked();
    std::os::unix::fs::symlink(&project.folder, around(&project)).unwrap();
    std::os::unix::fs::symlink("notes.txt", project.folder.join("link")).unwrap();
    let named = around(&project).join("notes.txt");
    project.ok(&["restore", "@", named.to_str().unwrap()]);
    assert_eq!(read(&project, "notes.txt").as_deref(), Some("one\n"));
    assert_eq!(project.ok(&["--quiet", "diff", "@", "."]), project.ok(&["--quiet", "diff"]));
    std::fs::create_dir(project.folder.join("sub")).unwrap();
    project.save("a link", &[]);
    std::fs::remove_file(project.folder.join("link")).unwrap();
    assert_eq!(project.ok(&["-C", "sub", "--quiet", "diff", "--", ".."]), "link\n");
    // What is tracked is the link, not what it leads to.
    std::os::unix::fs::symlink("elsewhere", project.folder.join("link")).unwrap();
    project.ok(&["restore", "@", around(&project).join("link").to_str().unwrap()]);
    assert_eq!(std::fs::read_link(project.folder.join("link")).unwrap().to_str(), Some("notes.txt"));
    project.run(&["restore", "@", ".."]).fails(2, &["not inside the project"]);
}

#[test]
fn every_ignored_file_can_be_kept_and_one_that_is_not_there_is_told() {
    let project = TempProject::new();
    project.write(".gitignore", "*.log\n");
    project.write("a.log", "one\n");
    project.write("deep/b.log", "one\n");
    project.save("with logs", &["--include-ignored", "."]);
    project.write("a.log", "two\n");
    project.write("deep/b.log", "two\n");
    project.ok(&["restore", "@"]);
    assert_eq!(read(&project, "a.log").as_deref(), Some("one\n"));
    assert_eq!(read(&project, "deep/b.log").as_deref(), Some("one\n"));
    project.run(&["save", "--include-ignored", "c.log"]).fails(3, &["c.log", "No such file"]);
    assert_eq!(project.ok(&["--quiet", "log"]).lines().count(), 1);
}

#[test]
fn what_was_saved_with_consent_can_be_put_back_and_compared() {
    let (project, _) = wrecked();
    let home = project.folder.to_str().unwrap().to_owned();
    let at_home = |args: &[&str]| project.run_with(&[("HOME", &home)], args);
    at_home(&["save"]).fails(4, &["it is the home folder", "--consent"]);
    let few = [("STAGEPOST_SNAPSHOT_MAX_UNTRACKED", "1")];
    for args in [&["diff"][..], &["restore", "@"]] {
        at_home(args).fails(4, &["it is the home folder", "--consent"]);
        project.run_with(&few, args).fails(4, &["untracked files", "--consent", "snapshot.max_untracked"]);
    }
    for (way, is_so) in [
        (&["restore", "@", "--dry-run", "--consent"][..], is_wrecked as fn(&TempProject) -> bool),
        (&["restore", "@", "--consent"], is_whole),
        (&["undo", "--consent"], is_wrecked),
        (&["redo", "--consent"], is_whole),
        (&["diff", "--consent"], is_whole),
    ] {
        let ran = at_home(way);
        assert!(ran.code == 0 && is_so(&project), "{way:?}: {ran:?}");
    }
}

#[test]
fn a_secret_that_was_kept_goes_back_and_forth() {
    let project = TempProject::new();
    project.write(".env", "TOKEN=one\n");
    project.write("other.pem", "one\n");
    project.save("asked for", &["--include-secrets"]);
    project.write(".env", "TOKEN=two\n");
    project.write("since.pem", "two\n");
    let planned = project.run(&["restore", "@", "--dry-run"]);
    assert_eq!(planned.code, 0, "{planned:?}");
    assert!(!planned.out.contains("left    .env"), "{planned:?}");
    let done = project.ok(&["restore", "@"]);
    assert!(done.contains("1 file written"), "{done}");
    assert!(done.contains("since.pem") && !done.contains("no checkpoint can hold"), "{done}");
    assert_eq!(read(&project, ".env").as_deref(), Some("TOKEN=one\n"));
    assert_eq!(read(&project, "since.pem").as_deref(), Some("two\n"));
    project.ok(&["undo"]);
    assert_eq!(read(&project, ".env").as_deref(), Some("TOKEN=two\n"));
    project.ok(&["redo"]);
    assert_eq!(read(&project, ".env").as_deref(), Some("TOKEN=one\n"));
    assert_eq!(read(&project, "since.pem").as_deref(), Some("two\n"));
}

#[test]
fn what_is_said_afterwards_is_true() {
    let (project, _) = wrecked();
    for (way, back) in [
        (&["restore", "@"][..], "`stagepost undo`"),
        (&["undo"], "`stagepost redo`"),
        (&["redo"], "`stagepost undo`"),
    ] {
        let ran = project.run(way);
        assert!(ran.code == 0 && ran.err.contains(back), "{way:?}: {ran:?}");
    }
    project.write("server.pem", "secret\n");
    let ran = project.run(&["restore", "@"]);
    assert!(ran.out.contains("left    server.pem") && !ran.out.contains("everything is"), "{ran:?}");
    assert!(ran.out.contains("everything else is as in"), "{ran:?}");
    let ran = project.run(&["restore", "@", "--dry-run"]);
    assert!(ran.err.contains("everything else is as in") && !ran.err.contains("everything is"), "{ran:?}");
}

#[test]
fn a_refused_restore_says_what_to_do() {
    let (project, _) = wrecked();
    project
        .run(&["restore", "@", "notes.txt", "--mode", "hard"])
        .fails(4, &["`stagepost restore ID` puts only files back"]);
    project.write("big", "small\n");
    project.save("small", &[]);
    project.write("big", "x".repeat(4096));
    let ran = project.run_with(&[("STAGEPOST_SNAPSHOT_MAX_FILE_SIZE", "1K")], &["restore", "@"]);
    ran.fails(4, &["`big` is in the way", "snapshot.max_file_size", "nothing was changed"]);
    let ran = project.run_with(&[("STAGEPOST_SNAPSHOT_MAX_FILE_SIZE", "1K")], &["restore", "@", "--dry-run"]);
    ran.fails(4, &["would be refused", "snapshot.max_file_size"]);
    std::fs::remove_file(project.folder.join("big")).unwrap();
    project.tool("git", ["init", "--quiet", "big"]).output().unwrap();
    project.run(&["restore", "@"]).fails(4, &["repository of its own", "move it away"]);
}
