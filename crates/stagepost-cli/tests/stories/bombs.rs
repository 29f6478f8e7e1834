//! Input that is small to send and large to read, against every command that reads something, with 512 MiB to do it in.
//!
//! A program that asks for more memory than there is gets ended by the system: no exit code, no word. None of these may.

use std::fs;
use std::path::PathBuf;

use crate::support::{PROGRAM, Ran, TempProject};

/// Runs the program with so little memory that a bomb would end it.
fn narrow(project: &TempProject, args: &[&str]) -> Ran {
    let line = "ulimit -v 524288; exec \"$0\" \"$@\"";
    let all = ["-c", line, PROGRAM].into_iter().chain(args.iter().copied());
    let output = project.tool("sh", all).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).chars().take(400).collect::<String>();
    assert!(output.status.code().is_some(), "{args:?}: {}: {said}", output.status);
    Ran::of(Ok(output))
}

/// It must fail, as one of these, with something to say that fits on a screen.
#[track_caller]
fn refused(project: &TempProject, codes: &[i32], args: &[&str]) {
    let ran = narrow(project, args);
    assert!(codes.contains(&ran.code), "{args:?}: {} {}", ran.code, shown(&ran));
    assert!(!ran.err.trim().is_empty() && ran.err.len() < 20_000, "{args:?}: {}", shown(&ran));
}

fn shown(ran: &Ran) -> String {
    [&ran.out, &ran.err].map(|text| text.chars().take(600).collect::<String>()).join(" / ")
}

const DEEP: usize = 200_000;

fn deep_json() -> String {
    format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP))
}

fn deep_object() -> String {
    format!("{}1{}", "{\"a\":".repeat(DEEP), "}".repeat(DEEP))
}

/// Nine lines that mean a thousand million words.
fn aliases(before: &str) -> String {
    let mut text = format!("{before}\na: &a [x, x, x, x, x, x, x, x, x, x]\n");
    for (name, of) in ('b'..='i').zip('a'..) {
        text += &format!(
            "{name}: &{name} [*{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}]\n"
        );
    }
    text
}

/// A gzip file of zeros: some kilobytes that unpack to more than there is room for.
fn gzip_bomb(project: &TempProject, name: &str) -> PathBuf {
    let path = project.write(name, "");
    let line = format!("head -c 734003200 /dev/zero | gzip -1 > '{}'", path.display());
    assert!(project.tool("sh", ["-c", &line]).status().unwrap().success());
    path
}

/// A zstd frame of a gibibyte, as 8,192 blocks that each say: this byte, 131,072 times.
fn zstd_bomb() -> Vec<u8> {
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    for block in 0..8192u32 {
        let header = (131_072 << 3) | (1 << 1) | u32::from(block == 8191);
        bytes.extend_from_slice(&header.to_le_bytes()[..3]);
        bytes.push(b' ');
    }
    bytes
}

fn project() -> TempProject {
    let project = TempProject::new();
    project.write("a.txt", "one");
    project.save("first", &[]);
    project
}

#[test]
fn json_that_nests_without_end_is_refused_everywhere() {
    let project = project();
    for text in [deep_json(), deep_object()] {
        project.write("deep.json", &text);
        refused(&project, &[2], &["save", "--state", "deep.json"]);
        refused(&project, &[2], &["gate", "ask", "--data", "deep.json", "Go?"]);
        refused(&project, &[2], &["gate", "ask", "--kind", "choose", "--options", "deep.json", "Which?"]);
        refused(&project, &[2], &["gate", "journey", "run", "deep.json"]);
        refused(&project, &[2], &["flow", "check", "deep.json"]);
        refused(&project, &[2], &["flow", "run", "deep.json"]);
        refused(&project, &[2], &["plan", "run", "deep.json"]);
        let run = project.ok(&["--quiet", "plan", "start", "--project", "p"]);
        let record =
            ["plan", "record", "--run", run.trim(), "--iteration", "1", "--type", "raw", "deep.json"];
        refused(&project, &[2], &record);
        let ran = narrow(&project, &["save", "--metadata", &text[..100_000]]);
        ran.fails(2, &["--metadata"]);
        imports(&project, "deep", text.as_bytes());
    }
    let flow = "name: deep\nsteps:\n  - {id: one, run: 'cp deep.json $STAGEPOST_OUTPUT'}\n";
    project.write("flow.yaml", flow);
    refused(&project, &[1], &["flow", "run", "flow.yaml", "--run-id", "deep"]);
    project.write(
        "job.json",
        r#"{"project_name": "p", "checkpoint": false, "planner": "cat deep.json", "judge": "cat deep.json"}"#,
    );
    refused(&project, &[1], &["plan", "run", "job.json"]);
    project.write("stagepost.toml", format!("a = {}", deep_json()));
    refused(&project, &[2], &["log"]);
    fs::remove_file(project.folder.join("stagepost.toml")).unwrap();
    project.ok(&["verify"]);
}

/// Tries bytes as every file of every other system. What cannot be read is listed and nothing is lost by it.
fn imports(project: &TempProject, name: &str, bytes: &[u8]) {
    for (format, file) in [
        ("maestro", "checkpoints.json"),
        ("tasks", ".checkpoint-metadata.json"),
        ("runs", "run.json"),
        ("runs", "checkpoints/checkpoint-step-3-1736300000000.json"),
        ("plans", "checkpoints/plans/song_a3f9b2c1_iter01_raw.json"),
    ] {
        let folder = project.home().join(format!("{name}-{format}"));
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        let folder = folder.to_str().unwrap();
        for args in [&["import", folder, "--format", format][..], &["import", folder]] {
            let ran = narrow(project, args);
            assert!(matches!(ran.code, 0..=5), "{args:?}: {} {}", ran.code, shown(&ran));
        }
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn yaml_that_refers_to_itself_is_refused() {
    let project = project();
    project.write("flow.yaml", aliases("name: bomb"));
    project.write("journey.yaml", aliases("name: bomb"));
    for deep in [false, true] {
        if deep {
            project.write("flow.yaml", format!("name: deep\nsteps: {}", deep_json()));
            project.write("journey.yaml", format!("name: deep\nstops: {}", deep_json()));
        }
        refused(&project, &[2], &["flow", "check", "flow.yaml"]);
        refused(&project, &[2], &["flow", "run", "flow.yaml"]);
        refused(&project, &[2], &["flow", "graph", "flow.yaml"]);
        refused(&project, &[2], &["gate", "journey", "run", "journey.yaml"]);
    }
    let indented: String = (0..3_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    project.write("flow.yaml", indented);
    refused(&project, &[2], &["flow", "check", "flow.yaml"]);
}

#[test]
fn a_hundred_megabytes_of_words_are_taken_in_or_refused() {
    let project = project();
    let words = "word ".repeat(20_000_000);
    let text = serde_json::to_string(&serde_json::json!({
        "name": words, "steps": [], "session_id": "s", "description": words,
    }));
    let text = text.unwrap();
    project.write("large.json", &text);
    for args in [
        &["flow", "check", "large.json"][..],
        &["flow", "run", "large.json"],
        &["gate", "journey", "run", "large.json"],
        &["gate", "ask", "--data", "large.json", "Go?"],
        &["gate", "ask", "--kind", "choose", "--options", "large.json", "Which?"],
        &["plan", "run", "large.json"],
    ] {
        refused(&project, &[2, 4], args);
    }
    imports(&project, "large", text.as_bytes());
    let log = format!(
        "{{\"session_id\": \"s\", \"checkpoints\": [{{\"checkpoint_id\": \"c\", \"commit_sha\": \"abcdef1\", \"timestamp\": \
         \"2025-01-01T00:00:00Z\", \"description\": \"{words}\", \"phase\": \"plan\"}}]}}"
    );
    imports(&project, "log", log.as_bytes());
    // What is taken in by name may be large, and comes back.
    for args in [
        &["save", "-m", "large", "--state", "large.json"][..],
        &["save", "-m", "large", "--artifact", "a=large.json"],
        &["diff"],
        &["show"],
        &["verify"],
        &["restore", "@", "--yes"],
    ] {
        let ran = narrow(&project, args);
        assert_eq!(ran.code, 0, "{args:?}: {}", shown(&ran));
    }
    fs::write(project.folder.join("agent-progress.txt"), &words).unwrap();
    for args in [&["task", "note", "text"][..], &["task", "progress", "--task", "1"]] {
        let ran = narrow(&project, args);
        assert!(matches!(ran.code, 0..=4), "{args:?}: {} {}", ran.code, shown(&ran));
    }
}

#[test]
fn what_never_ends_is_read_to_a_bound() {
    let project = project();
    std::os::unix::fs::symlink("/dev/zero", project.folder.join("endless")).unwrap();
    for args in [
        &["flow", "check", "endless"][..],
        &["gate", "ask", "--data", "endless", "Go?"],
        &["gate", "ask", "--kind", "choose", "--options", "endless", "Which?"],
        &["gate", "parse", "--options", "endless"],
        &["gate", "journey", "run", "endless"],
        &["plan", "run", "endless"],
        &["save", "--state", "endless"],
    ] {
        refused(&project, &[1, 2, 4], args);
    }
    let run = project.ok(&["--quiet", "plan", "start", "--project", "p"]);
    refused(&project, &[1, 2, 4], &["plan", "record", "--run", run.trim(), "--type", "raw", "endless"]);
    refused(&project, &[1, 2, 4], &["plan", "finish", "--run", run.trim(), "--status", "SUCCESS", "endless"]);
    project.write("job.json", r#"{"project_name": "p", "checkpoint": false, "planner": "head -c 700000000 /dev/zero", "judge": "true"}"#);
    refused(&project, &[1], &["plan", "run", "job.json"]);
    let flow = "name: f\nsteps:\n  - {id: one, run: 'head -c 1000000 /dev/zero; truncate -s 2G $STAGEPOST_OUTPUT'}\n";
    project.write("flow.yaml", flow);
    let ran = narrow(&project, &["--quiet", "flow", "run", "flow.yaml"]);
    assert_eq!(ran.code, 1, "{}", shown(&ran));
}

#[test]
fn what_unpacks_to_more_than_there_is_is_not_unpacked() {
    let project = project();
    let folder = "../home/packed/";
    let name = "chk-1736300000000-abc123.json.gz";
    let bomb = gzip_bomb(&project, &format!("{folder}{name}"));
    project.write(&format!("{folder}checkpoints/{name}"), fs::read(bomb).unwrap());
    for args in [&["import", folder][..], &["import", folder, "--format", "runs"]] {
        let ran = narrow(&project, args);
        assert!(matches!(ran.code, 0..=5), "{args:?}: {} {}", ran.code, shown(&ran));
    }
    project.write("state.json", serde_json::json!({"text": "word ".repeat(2_000)}).to_string());
    let saved = project.save("with a state", &["--state", "state.json"]);
    let sizes = ["size", "65536", "65537", "1073741824", "1099511627776", "-1"];
    for size in sizes {
        project.fold();
        let copy = fs::read(project.store.join("store.db")).unwrap();
        let database = project.database();
        database.execute(&format!("UPDATE pieces SET data = ?1, size = {size}"), [zstd_bomb()]).unwrap();
        database
            .execute(&format!("UPDATE blobs SET size = {}", size.replace("size", "size + 1")), [])
            .unwrap();
        drop(database);
        let _ = fs::remove_dir_all(project.store.join("copies"));
        refused(&project, &[5], &["show", &saved, "--artifact", "state"]);
        let ran = narrow(&project, &["verify"]);
        assert_eq!(ran.code, 5, "{size}: {}", shown(&ran));
        let ran = narrow(&project, &["log"]);
        assert_eq!(ran.code, 0, "{size}: {}", shown(&ran));
        fs::write(project.store.join("store.db"), copy).unwrap();
    }
    // A blob of the repository is a stream that unpacks too.
    let objects = project.folder.join(".git/objects");
    let line = "head -c 734003200 /dev/zero | git hash-object -w --stdin";
    let ran = Ran::of(project.tool("sh", ["-c", line]).output());
    let id = ran.out.trim();
    assert!(objects.join(&id[..2]).join(&id[2..]).exists());
    let line =
        format!("git read-tree HEAD 2>/dev/null; git update-index --add --cacheinfo 100644,{id},bomb.txt");
    assert!(project.tool("sh", ["-c", &line]).status().unwrap().success());
    let ran = narrow(&project, &["save", "-m", "with a bomb in the index"]);
    assert_eq!(ran.code, 0, "{}", shown(&ran));
    for args in
        [&["diff"][..], &["diff", "@-", "@"], &["verify"], &["restore", "@", "--mode", "hard", "--yes"]]
    {
        let ran = narrow(&project, args);
        assert!(matches!(ran.code, 0 | 1 | 4 | 5), "{args:?}: {} {}", ran.code, shown(&ran));
    }
}
