//! Verify, doctor, and stores that are not as they were written.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::{PROGRAM, Ran, TempProject, contents};

const NOTES: &str = "Ship it on Tuesday, not before.";

fn saved() -> (TempProject, Vec<String>) {
    let project = TempProject::new();
    project.write("plan.txt", "a plan that is something else");
    project.write("notes.txt", NOTES);
    let first = project.save("plan", &["--artifact", "plan=plan.txt"]);
    let second = project.save("notes", &["--artifact", "notes=notes.txt"]);
    (project, vec![first, second])
}

#[test]
fn a_sound_store_is_called_sound() {
    let (project, _) = saved();
    let text = project.ok(&["verify"]);
    assert!(text.starts_with("all as it was written: 2 checkpoints, 1 snapshot, 2 payloads"), "{text}");
    let verified = project.json(&["verify"]);
    assert_eq!((&verified["sound"], &verified["damage"]), (&json!(true), &json!([])));
    assert_eq!(project.ok(&["--quiet", "verify"]), "");
    assert_eq!(project.json(&["doctor"])["checks"].as_array().unwrap().len(), 6);
    assert_eq!(project.ok(&["doctor"]).matches("good").count(), 6);
    assert_eq!(project.ok(&["--quiet", "doctor"]), "");
}

#[test]
fn on_a_full_disk_what_was_saved_can_be_read_and_nothing_is_called_saved() {
    let (project, ids) = saved();
    // No file may become longer than a few blocks, so there is no room for what connections share.
    let cramped = |args: &str| {
        let line = format!("trap '' XFSZ; ulimit -f 16; exec {PROGRAM} {args}");
        Ran::of(project.tool("/bin/sh", ["-c", &line]).output())
    };
    for whole in [false, true] {
        if whole {
            project.fold();
        }
        for name in ["store.db-shm", "store.db-wal"].into_iter().filter(|name| whole || name.ends_with("shm"))
        {
            let _ = fs::remove_file(project.store.join(name));
        }
        let listed = cramped("--quiet log");
        assert_eq!((listed.code, listed.out.lines().count()), (0, 2), "{listed:?}");
        assert!(cramped("show --artifact notes").out.contains(NOTES));
        assert_eq!(cramped("verify").code, 0);
        assert_eq!(cramped("").code, 0);
        let refused = cramped("save -m more --no-files");
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.err.contains("check that the disk is not full"), "{refused:?}");
        assert_eq!(project.ok(&["--quiet", "log"]).lines().next(), Some(ids[1].as_str()));
    }
}

#[test]
fn a_file_that_someone_names_is_written_as_a_whole_or_not_at_all() {
    let project = TempProject::new();
    let steps: String = (0..40).map(|n| format!("  - {{id: step-{n}, run: 'false'}}\n")).collect();
    project.write("flow.yaml", format!("name: f\nsteps:\n{steps}"));
    for n in 0..12 {
        let run = format!("a-run-with-a-name-that-makes-the-report-longer-{n}");
        project.run(&["flow", "run", "flow.yaml", "--run-id", &run]).fails(1, &[]);
    }
    let plan = project.ok(&["--quiet", "plan", "start", "--project", "p"]);
    let scores = format!("plan scores {} --plot svg --output", plan.trim());
    project.write("large.txt", "x".repeat(20_000));
    project.save("large", &["--artifact", "large=large.txt"]);
    project.fold();
    let cramped = |args: &str| {
        let line = format!("trap '' XFSZ; ulimit -f 1; exec {PROGRAM} {args}");
        Ran::of(project.tool("/bin/sh", ["-c", &line]).output())
    };
    let out = project.home().join("out");
    fs::create_dir(&out).unwrap();
    let file = out.join("file");
    for (args, may_replace) in [
        ("flow graph flow.yaml --format svg -o", true),
        ("flow cleanup --max-age-days 0 --dry-run --report", true),
        (scores.as_str(), true),
        ("show @ --artifact large -o", false),
        ("export --format runs --to", false),
    ] {
        let refused = cramped(&format!("{args} {}", file.display()));
        assert!(refused.code != 0 && refused.err.contains("File too large"), "{args}: {refused:?}");
        assert_eq!(
            fs::read_dir(&out).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_file()).count(),
            0,
            "{args}"
        );
        let _ = fs::remove_dir_all(&file);
        if may_replace {
            fs::write(&file, "old").unwrap();
            assert_ne!(cramped(&format!("{args} {}", file.display())).code, 0);
            assert_eq!(
                (fs::read_dir(&out).unwrap().count(), fs::read(&file).unwrap()),
                (1, b"old".to_vec()),
                "{args}"
            );
            fs::remove_file(&file).unwrap();
            project.ok(&[&args.split(' ').collect::<Vec<_>>()[..], &[file.to_str().unwrap()]].concat());
            assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "{args}");
            fs::remove_file(&file).unwrap();
        }
    }
}

#[test]
fn one_altered_byte_of_a_payload_is_named() {
    let (project, ids) = saved();
    project.fold();
    let path = project.store.join("store.db");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes
        .windows(NOTES.len())
        .position(|window| window == NOTES.as_bytes())
        .expect("it is stored as it is");
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();

    let verified = project.run(&["verify"]);
    verified.fails(5, &["not as it was written", "can still be read"]);
    assert!(
        verified.out.contains(&format!("run adhoc, checkpoint {}, artifact notes", ids[1])),
        "{}",
        verified.out
    );
    assert_eq!(project.run(&["--quiet", "verify"]).out.trim(), ids[1]);
    let json = project.run(&["--json", "verify"]);
    let report: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((json.code, &report["sound"]), (5, &json!(false)));
    assert_eq!(report["damage"][0]["artifact"], json!("notes"));

    let shown = project.run(&["show", "--artifact", "notes"]);
    shown.fails(5, &["stagepost verify"]);
    project.run(&["show", "--artifact", "notes", "-o", "out.txt"]).fails(5, &[]);
    assert!(!project.folder.join("out.txt").exists(), "half a file was left behind");
    assert!(
        project.ok(&["show", "@-", "--artifact", "plan"]).contains("something else"),
        "the rest stays readable"
    );
    project.run(&["doctor", "--fix"]).fails(5, &["needs a person"]);
    assert_eq!(project.ok(&["--quiet", "log"]).lines().count(), 2);
}

#[test]
fn checkpoints_that_are_gone_are_told_of_by_every_command() {
    let (project, _) = saved();
    let log = project.store.join("store.db-wal");
    let length = fs::metadata(&log).unwrap().len();
    fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(length - 1).unwrap();
    for command in [&["log"][..], &["show"], &[], &["diff", "--stat"]] {
        let ran = project.run(command);
        assert!(
            ran.err.contains("its last entry is gone; `stagepost verify` says more"),
            "{command:?}: {ran:?}"
        );
    }
    project.run(&["verify"]).fails(5, &[]);
    let found = project.run(&["doctor"]);
    found.fails(5, &[]);
    assert!(found.out.contains("the end is gone, 1 entry: look for a copy"), "{}", found.out);
    // A person who knows of it says so.
    assert!(project.ok(&["doctor", "--fix"]).contains("it goes on without its end, 1 entry"));
    assert!(!project.run(&["log"]).err.contains("gone"));
    project.ok(&["verify"]);
}

#[test]
fn a_missing_payload_is_named() {
    let (project, ids) = saved();
    let database = project.database();
    database.execute_batch("DELETE FROM pieces WHERE number = (SELECT max(number) FROM pieces)").unwrap();
    drop(database);
    let verified = project.run(&["verify"]);
    verified.fails(5, &[]);
    assert!(verified.out.contains(&ids[1]) && verified.out.contains("artifact notes"), "{}", verified.out);
    project.run(&["show", "--artifact", "notes"]).fails(5, &["stagepost verify"]);
    assert!(project.ok(&["show", "@-", "--artifact", "plan"]).contains("something else"));
}

#[test]
fn a_record_that_was_altered_or_dropped_is_found() {
    for sql in [
        "UPDATE entries SET at = at + 1 WHERE position = 2",
        "DELETE FROM entries WHERE position = 2",
        "DELETE FROM entries WHERE position = 3",
        "UPDATE entries SET seal = zeroblob(32) WHERE position = 3",
        "UPDATE entries SET body = NULL WHERE position = 3",
    ] {
        let (project, _) = saved();
        project.database().execute_batch(sql).unwrap();
        let verified = project.run(&["verify"]);
        assert_eq!(verified.code, 5, "{sql}: {verified:?}");
        assert!(verified.out.contains("damaged"), "{sql}: {verified:?}");
    }
}

#[test]
fn wrong_lookup_tables_are_made_again() {
    let (project, _) = saved();
    let wrong = "INSERT INTO by_id VALUES (zeroblob(16), 2)";
    project.database().execute_batch(wrong).unwrap();
    project.run(&["verify"]).fails(5, &["doctor --fix"]);
    let found = project.run(&["doctor"]);
    found.fails(1, &["not in order", "doctor --fix"]);
    assert!(found.out.contains("fixable  tables"), "{}", found.out);
    assert!(project.ok(&["doctor", "--fix"]).contains("fixed    tables"));
    project.ok(&["verify"]);
    project.ok(&["doctor"]);
}

#[test]
fn open_permissions_are_closed_again() {
    let (project, _) = saved();
    let set =
        |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    set(&project.store, 0o755);
    set(&project.store.join("store.db"), 0o644);
    let found = project.run(&["doctor"]);
    found.fails(1, &["doctor --fix"]);
    assert!(found.out.contains("fixable  permissions"), "{}", found.out);
    let fixed = project.json(&["doctor", "--fix"]);
    assert_eq!(fixed["checks"][0]["health"], json!("fixed"));
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&project.store), mode(&project.store.join("store.db"))), (0o700, 0o600));
}

#[test]
fn a_store_from_the_future_is_left_alone() {
    let (project, _) = saved();
    project.database().execute_batch("PRAGMA user_version = 99").unwrap();
    let before = contents(&project.store);
    for command in [&["log"][..], &["save", "-m", "x"], &["verify"], &["gc"], &["doctor", "--fix"], &[]] {
        project.run(command).fails(4, &["has format 99", "newer stagepost", "nothing was changed"]);
    }
    assert_eq!(contents(&project.store), before);
}

#[test]
fn a_truncated_database_never_panics_and_never_lies() {
    let (project, _) = saved();
    project.fold();
    let path = project.store.join("store.db");
    let whole = fs::read(&path).unwrap();
    for length in [1, 50, 100, 512, 4096, 8192, whole.len() / 2, whole.len() - 4096, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        let _ = fs::remove_file(project.store.join("store.db-wal"));
        let _ = fs::remove_file(project.store.join("store.db-shm"));
        let verified = project.run(&["verify"]);
        assert_eq!(verified.code, 5, "{length} bytes left: {verified:?}");
        for command in [&["log"][..], &["show"], &[], &["gc"], &["diff"], &["doctor"]] {
            let ran = project.run(command);
            assert!([0, 1, 3, 5].contains(&ran.code), "{length} bytes left, {command:?}: {ran:?}");
        }
    }
}

#[test]
fn an_empty_or_foreign_file_is_no_store() {
    let (project, _) = saved();
    project.fold();
    let path = project.store.join("store.db");
    fs::write(&path, "").unwrap();
    project.run(&["log"]).fails(5, &["not a stagepost store"]);
    fs::write(&path, "hello, I am a text file that is longer than a header".repeat(50)).unwrap();
    for command in [&["log"][..], &["save", "-m", "x"], &["verify"]] {
        project.run(command).fails(5, &["not a stagepost store", "copy of the store"]);
    }
    fs::remove_file(&path).unwrap();
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    project.run(&["save", "-m", "x"]).fails(5, &["not a stagepost store"]);
}

#[test]
fn a_busy_store_ends_in_75() {
    let (project, _) = saved();
    let other = project.database();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let ran = project.run(&["--busy-timeout", "50ms", "save", "-m", "x"]);
    ran.fails(75, &["another process kept the store busy", "--busy-timeout"]);
    assert_eq!(project.ok(&["--quiet", "log"]).lines().count(), 2, "reading does not wait for writers");
    other.execute_batch("ROLLBACK").unwrap();
    project.save("x", &[]);
}

#[test]
fn one_damaged_record_does_not_hide_the_others() {
    let (project, ids) = saved();
    let third = project.save("third", &[]);
    let sql = "UPDATE entries SET body = CAST(substr(body, 1, length(body) - 1) || 'x' AS BLOB) WHERE id = unhex(?1)";
    let changed = project.database().execute(sql, [ids[1].replace('-', "")]).unwrap();
    assert_eq!(changed, 1);
    let log = project.run(&["log"]);
    log.fails(5, &["not listed, because it is damaged", "stagepost verify"]);
    assert!(
        log.out.contains("third") && log.out.contains("plan") && !log.out.contains("notes"),
        "{}",
        log.out
    );
    let quiet = project.run(&["--quiet", "log", "-n", "2"]);
    assert_eq!((quiet.code, quiet.out), (5, format!("{third}\n{}\n", ids[0])));
    let json = project.run(&["--json", "log"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["checkpoints"].as_array().unwrap().len(), 2);
    assert_eq!(json["damaged"].as_array().unwrap().len(), 1);
    assert_eq!(project.run(&["--quiet", "log", "-n", "1"]).code, 0, "what was not looked at is not judged");
}

#[test]
fn lost_files_of_a_checkpoint_are_damage() {
    let project = TempProject::new();
    project.write("a.txt", "one\n");
    project.save("first", &[]);
    project.write("a.txt", "two\n");
    let packs = project.folder.join(".git/objects/pack");
    fs::remove_dir_all(packs).expect("the packs can be lost");
    for args in [&["restore", "@"][..], &["restore", "@", "--dry-run"], &["diff", "@"]] {
        project.run(args).fails(5, &["is missing", "stagepost verify"]);
    }
    project.run(&["verify"]).fails(5, &["is not as it was written"]);
}

#[test]
fn a_database_that_cannot_be_read_at_all_says_what_can_be_done() {
    let (project, _) = saved();
    let path = project.store.join("store.db");
    let mut bytes = fs::read(&path).unwrap();
    bytes[100..].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    for command in [&["log"][..], &["verify"], &["doctor"], &["save"]] {
        let ran = project.run(command);
        ran.fails(
            5,
            &["the database of the store is damaged", "malformed", "refs/stagepost", "move it away"],
        );
        assert!(!ran.err.contains("could not open") && !ran.err.contains("`stagepost verify`"), "{ran:?}");
    }
    fs::rename(&project.store, project.folder.join(".git/broken")).unwrap();
    project.save("a new beginning", &[]);
    project.ok(&["verify"]);
}

#[test]
fn a_snapshot_whose_root_is_gone_is_named_without_an_empty_path() {
    let project = TempProject::new();
    project.write("a", "one");
    project.save("files", &[]);
    let refs =
        project.tool("git", ["for-each-ref", "--format=%(refname)", "refs/stagepost"]).output().unwrap();
    assert!(!refs.stdout.is_empty());
    fs::remove_dir_all(project.folder.join(".git/objects")).unwrap();
    fs::create_dir(project.folder.join(".git/objects")).unwrap();
    let ran = project.run(&["verify"]);
    ran.fails(5, &["one thing in the store"]);
    assert!(ran.out.contains("damaged") && !ran.out.contains("``"), "{ran:?}");
    let ran = project.run(&["doctor"]);
    assert!(ran.out.contains("one thing is damaged"), "{ran:?}");
}

/// A project whose three newest checkpoints are gone with the log of the database; also the refs that keep their files.
fn without_its_end() -> (TempProject, String) {
    let project = TempProject::new();
    for text in ["1", "2", "3"] {
        project.write("f", text);
        project.save(text, &[]);
    }
    let refs = refs(&project);
    assert_eq!(refs.lines().count(), 3, "{refs}");
    fs::rename(project.store.join("store.db-wal"), project.home().join("wal")).unwrap();
    (project, refs)
}

/// The refs that keep the files of checkpoints. That of the latest moves with every save.
fn refs(project: &TempProject) -> String {
    let listed = project.tool("git", ["for-each-ref", "refs/stagepost"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    listed.lines().filter(|line| !line.ends_with("/latest")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn nothing_is_collected_while_the_end_is_lost() {
    let (project, kept) = without_its_end();
    for args in [&["gc"][..], &["gc", "--keep", "1"], &["gc", "--dry-run"], &["flow", "cleanup"]] {
        let ran = project.run(args);
        ran.fails(5, &["failed to collect", "entries", "nothing was deleted", "doctor --fix"]);
        assert_eq!(refs(&project), kept, "{args:?}");
    }
    // The log comes back, and with it everything.
    fs::rename(project.home().join("wal"), project.store.join("store.db-wal")).unwrap();
    project.ok(&["verify"]);
    project.ok(&["gc"]);
    assert_eq!(refs(&project), kept);
}

#[test]
fn files_of_lost_checkpoints_stay_when_the_journal_goes_on() {
    let (project, kept) = without_its_end();
    project.ok(&["doctor", "--fix"]);
    project.ok(&["gc"]);
    assert_eq!(refs(&project), kept, "a copy of the store may come back");

    let (project, kept) = without_its_end();
    (0..6).for_each(|number| {
        project.write("f", format!("again {number}"));
        project.save("again", &[]);
    });
    let ran = project.run(&["gc"]);
    assert!(kept.lines().all(|line| refs(&project).contains(line)), "{ran:?}");
}

#[test]
fn a_database_that_was_deleted_is_missed() {
    let project = TempProject::new();
    project.write("f", "1");
    project.save("one", &[]);
    let (kept, database) = (refs(&project), project.store.join("store.db"));
    fs::rename(&database, project.home().join("store.db")).unwrap();
    for args in [&[][..], &["status"], &["verify"], &["doctor"], &["log"], &["gc"], &["save", "-m", "two"]] {
        project.run(args).fails(5, &["the database of the store", "is gone", "doctor --fix"]);
        assert_eq!(project.run(&[&["--json"], args].concat()).code, 5, "{args:?}");
    }
    assert!(!database.exists());
    // It comes back.
    fs::rename(project.home().join("store.db"), &database).unwrap();
    project.ok(&["verify"]);
    fs::remove_file(&database).unwrap();
    // A person who knows of it says so.
    let fixed = project.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code, 0, "{fixed:?}");
    assert!(fixed.err.contains("goes on without its database"), "{fixed:?}");
    project.ok(&["verify"]);
    project.ok(&["gc"]);
    assert_eq!(refs(&project), kept, "the files of what is gone stay");
    project.save("two", &[]);
    assert_eq!(project.ok(&["--quiet", "log"]).lines().count(), 1);
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_with_a_name() {
    let project = TempProject::new();
    project.save("before", &[]);
    // What cannot be compressed: the numbers of a small generator.
    let noise = |state: &mut u32| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (*state >> 24) as u8
    };
    let mut state = 7;
    let large: Vec<u8> = (0..200_000).map(|_| noise(&mut state)).collect();
    project.write("large.bin", &large);
    let limited = |args: &[&str]| {
        let all =
            ["-c", "ulimit -f 100; exec \"$0\" \"$@\"", PROGRAM].into_iter().chain(args.iter().copied());
        Ran::of(project.tool("sh", all).output())
    };
    limited(&["save", "-m", "too large"]).fails(1, &["File too large"]);
    let packs = fs::read_dir(project.folder.join(".git/objects/pack")).unwrap();
    let left = packs.filter(|one| one.as_ref().unwrap().file_name().to_string_lossy().starts_with("tmp_"));
    assert_eq!(left.count(), 0, "nothing of it is left");
    let saved = project.save("there is room again", &[]);
    fs::remove_file(project.folder.join("large.bin")).unwrap();
    limited(&["restore", &saved, "--yes"]).fails(1, &["File too large"]);
    assert!(!project.folder.join("large.bin").exists());
    project.ok(&["restore", &saved, "--yes"]);
    assert_eq!(fs::read(project.folder.join("large.bin")).unwrap(), large);
    project.ok(&["verify"]);
}
