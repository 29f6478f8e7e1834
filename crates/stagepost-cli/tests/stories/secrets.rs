//! Secrets: what is named as one, and what looks like one, is in no byte that is stored, and nobody else can read the rest.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use stagepost::model::Topic;
use stagepost::store::{EventQuery, Found, OpenOptions, Query, SqliteStore, Store};

use crate::support::{PROGRAM, Ran, TempProject, contents};

fn git(project: &TempProject, args: &[&str]) -> Vec<u8> {
    let output = project.tool("git", args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn repository() -> TempProject {
    let project = TempProject::new();
    git(&project, &["config", "user.name", "Ada"]);
    git(&project, &["config", "user.email", "ada@example.org"]);
    project.write("a.txt", "one\n");
    // What tests hand over is a file of the user's; those are kept as they are.
    project.write(".gitignore", "given*\n");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "first"]);
    project
}

/// Tokens of several services, and a key. Put together here, so that nobody who looks for tokens finds this file.
fn tokens() -> Vec<String> {
    let tail = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0";
    let mut all: Vec<String> =
        ["ghp_", "github_pat_", "glpat-", "xoxb-", "sk-", "sk-proj-", "sk-ant-", "hf_", "npm_", "AIza"]
            .iter()
            .map(|start| format!("{start}{tail}"))
            .collect();
    all.push(["AK", "IA", "QWERTY1234ASDFGH"].concat());
    all.push(format!("eyJ{tail}.eyJ{tail}.{tail}"));
    all.push(format!("-----BEGIN PRIVATE KEY-----\n{tail}\n{tail}\n-----END PRIVATE KEY-----"));
    all
}

/// What must not be found of a token: its middle, which no shape has in common with anything else.
const MIDDLES: [&str; 2] = ["c3D4e5F6g7H8i9J0", "RTY1234ASD"];

/// Every byte there is: files, payloads and records as they are unpacked, objects of git, and the work tree's views.
fn stored(project: &TempProject) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = contents(&project.folder)
        .into_iter()
        .filter(|(path, _)| !path.ends_with("given.json") && !path.to_string_lossy().contains("/given/"))
        .map(|(path, bytes)| (path.display().to_string(), bytes))
        .collect();
    let objects = git(project, &["cat-file", "--batch-all-objects", "--batch", "--buffer"]);
    all.push(("the objects of git".to_owned(), objects));
    let options = OpenOptions { create: false, busy: Duration::from_secs(5) };
    let store = SqliteStore::open(&project.store, &options).unwrap();
    for listed in store.list(&Query::default()).unwrap() {
        let checkpoint = listed.checkpoint;
        all.push((format!("checkpoint {}", checkpoint.id), serde_json::to_vec(&checkpoint).unwrap()));
        for artifact in &checkpoint.content.artifacts {
            let bytes = store.load(&artifact.blob).unwrap();
            all.push((format!("{} of {}", artifact.name, checkpoint.content.description), bytes));
        }
        if let Some(run) = store.run(&checkpoint.run).unwrap() {
            all.push((format!("run {}", checkpoint.run), serde_json::to_vec(&run).unwrap()));
        }
        assert!(matches!(store.checkpoint(&checkpoint.id), Ok(Some(Found::Live(_)))));
    }
    for topic in
        [Topic::Note, Topic::Gate, Topic::Run, Topic::Restore, Topic::Mark, Topic::Import, Topic::Pin]
    {
        for (position, event) in store.events(&EventQuery::all(topic)).unwrap() {
            all.push((format!("event {position}"), serde_json::to_vec(&event).unwrap()));
        }
    }
    all
}

#[track_caller]
fn assert_nowhere(project: &TempProject, secrets: &[&str]) {
    for (place, bytes) in stored(project) {
        for secret in secrets {
            let found = bytes.windows(secret.len()).position(|window| window == secret.as_bytes());
            let around = found.map(|at| &bytes[at.saturating_sub(80)..(at + 40).min(bytes.len())]);
            assert_eq!(around.map(String::from_utf8_lossy), None, "{secret} is in {place}");
        }
    }
}

#[test]
fn what_looks_like_a_token_is_stored_nowhere() {
    let project = repository();
    for (number, token) in tokens().into_iter().enumerate() {
        let text = format!("before {token} after");
        let (text, number) = (text.as_str(), number.to_string());
        project.write("a.txt", &number);
        let metadata = serde_json::json!({"key": text, "list": [text]}).to_string();
        project.ok(&["save", "-m", text, "--metadata", &metadata]);
        let session = project.ok(&["--quiet", "session", "start", "--request", text]);
        project.write("a.txt", format!("{number}, in a session"));
        let create =
            ["session", "create", "--session-id", session.trim(), "--phase", "plan", "--description", text];
        project.ok(&create);
        project.ok(&[
            "session",
            "validate",
            "--test-command",
            &format!("echo '{}'", token.replace('\n', " ")),
        ]);
        project.write("a.txt", format!("{number}, in a task"));
        project.ok(&["task", "save", "--task", "1", "--stage", "start", "-m", text]);
        project.ok(&["task", "note", "--task", "1", text]);
        project.ok(&["task", "note", text]);
        project.ok(&["task", "recover", "--task", "1", "--error", "implementation", "-m", text]);
        let gate = format!("g{number}");
        project
            .run(&["gate", "ask", "--kind", "input", "--id", &gate, text])
            .fails(4, &["looks like a token"]);
        project.run(&["gate", "ask", "--kind", "input", "--id", &gate, "--message", text]);
        project.run(&["gate", "answer", &gate, text]).fails(4, &["looks like a token"]);
        project.run(&["gate", "ask", "--kind", "approve", "--id", &gate, "--message", text]);
        project.ok(&["gate", "answer", &gate, &format!("no, {text}")]);
        plans(&project, &token);
        flows(&project, &token, &number);
    }
    assert_nowhere(&project, &MIDDLES);
    project.ok(&["verify"]);
    let out = project.home().join("out");
    project.ok(&["export", "--format", "maestro", "--to", out.to_str().unwrap()]);
    for (path, bytes) in contents(&out) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(MIDDLES.iter().all(|middle| !text.contains(middle)), "{}", path.display());
    }
}

#[test]
fn names_of_metadata_and_labels_hold_no_tokens() {
    let project = repository();
    let token = &tokens()[0];
    let metadata = serde_json::json!({token: 1, "a": {token: 2}}).to_string();
    let saved = project.json(&["save", "-m", "x", "--metadata", &metadata]);
    let kept = serde_json::json!({"***": 1, "a": {"***": 2}});
    assert_eq!(saved["checkpoint"]["metadata"], kept, "{saved}");
    for label in [token.clone(), format!("key={token}")] {
        let ran = project.run(&["save", "-m", "y", "--label", "fine", "--label", &label]);
        ran.fails(4, &["label 2 looks like a token", "nothing was saved"]);
        assert!(!ran.err.contains(MIDDLES[0]), "{ran:?}");
    }
    assert_eq!(project.ok(&["--quiet", "log"]).lines().count(), 1);
    assert_nowhere(&project, &MIDDLES);
}

#[test]
fn files_show_what_the_store_holds() {
    let project = repository();
    let token = &tokens()[0];
    git(&project, &["checkout", "-q", "-b", token]);
    let text = format!("use {token}");
    let session = project.ok(&["--quiet", "session", "start", "--request", &text]);
    let create = ["session", "create", "--session-id", "mine", "--phase", "plan", "--description", &text];
    project.ok(&create);
    let run = project.ok(&["--quiet", "plan", "start", "--project", token, "--output-dir", "plans"]);
    project.write("given.json", "{}");
    project.ok(&["plan", "record", "--run", run.trim(), "--iteration", "1", "--type", "raw", "given.json"]);
    let mut seen = 0;
    for folder in [".flow", ".claude", "plans"].map(|name| project.folder.join(name)) {
        for (path, bytes) in if folder.exists() { contents(&folder) } else { Vec::new() } {
            let shown = format!("{} {}", path.display(), String::from_utf8_lossy(&bytes));
            assert!(!shown.contains(MIDDLES[0]), "{shown}");
            seen += usize::from(shown.contains(session.trim()) && shown.contains("use ***"));
        }
    }
    assert!(seen > 0, "the request is shown, without the token");
}

fn plans(project: &TempProject, token: &str) {
    let payload =
        serde_json::json!({"plan": {"sections": [token], "why": format!("as {token}")}}).to_string();
    project.write("given.json", &payload);
    let run = project.ok(&["--quiet", "plan", "start", "--project", "p", "--output-dir", "plans"]);
    let record = ["plan", "record", "--run", run.trim(), "--iteration", "1", "--type", "raw", "given.json"];
    project.ok(&record);
    project.ok(&["plan", "finish", "--run", run.trim(), "--status", "SUCCESS", "given.json"]);
    project.write("given/job.json", r#"{"project_name": "p", "output_dir": "plans", "planner": "cat given.json given.json >&2; cat given.json", "judge": "cat given.json >&2; echo '{\"score\": 9}'"}"#);
    project.ok(&["plan", "run", "given/job.json"]);
    project.write("given/job.json", r#"{"project_name": "p", "checkpoint": false, "planner": "cat given.json >&2; exit 3", "judge": "true"}"#);
    assert_eq!(project.run(&["plan", "run", "given/job.json"]).code, 1);
}

/// What steps print, in pieces too, hand on, and say when they fail.
fn flows(project: &TempProject, token: &str, number: &str) {
    let flow = r#"
name: talks
steps:
  - id: prints
    run: 'cat given.json; cat given.json >&2; head -c 20 given/token; sleep 0.05; tail -c +21 given/token; cp given.json $STAGEPOST_OUTPUT'
    snapshot: true
  - id: fails
    run: 'cat given/token >&2; exit 4'
"#;
    project.write("given/token", token);
    project.write("flow.yaml", flow);
    let ran = project.run(&["flow", "run", "flow.yaml", "--run-id", &format!("r{number}")]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(MIDDLES.iter().all(|middle| !ran.err.contains(middle) && !ran.out.contains(middle)), "{ran:?}");
    let ran =
        project.run(&["flow", "run", "flow.yaml", "--input", &serde_json::json!({"key": token}).to_string()]);
    ran.fails(4, &["token", "secrets:"]);
    let word = token.split_whitespace().next().unwrap();
    if !word.starts_with('-') {
        project.write(
            "given/flow.yaml",
            format!("name: f\nenv: {{KEY: {word}}}\nsteps:\n  - {{id: a, run: 'true'}}\n"),
        );
        project.run(&["flow", "run", "given/flow.yaml"]).fails(4, &["token", "secrets:"]);
    }
    fs::remove_file(project.folder.join("given/token")).unwrap();
    fs::remove_dir_all(project.folder.join("given")).unwrap();
    fs::remove_file(project.folder.join("given.json")).unwrap();
}

#[test]
fn a_secret_of_a_step_is_stored_and_shown_nowhere() {
    let project = repository();
    let flow = r#"
name: secretive
secrets: [PASSWORD]
steps:
  - id: prints
    run: 'echo "$PASSWORD"; echo "$PASSWORD" >&2; echo "{\"a\": [\"$PASSWORD\"], \"$PASSWORD\": 1}" > $STAGEPOST_OUTPUT'
    verify: 'echo "$PASSWORD" >&2'
    secrets: [PASSWORD]
    snapshot: true
  - id: refines
    secrets: [PASSWORD]
    refine:
      planner: 'echo "$PASSWORD" >&2; echo "{\"plan\": \"$PASSWORD\"}"'
      judge: 'echo "$PASSWORD" >&2; echo "{\"score\": 9, \"reasoning\": \"$PASSWORD\"}"'
      max_iterations: 1
  - id: fails
    secrets: [PASSWORD]
    run: 'echo "$PASSWORD"; exit 3'
"#;
    let flow = if project_takes_secrets_at_the_top(&project) {
        flow.to_owned()
    } else {
        flow.replace("secrets: [PASSWORD]\nsteps", "steps")
    };
    project.write("flow.yaml", flow);
    let secret = "correct horse battery";
    let ran = project.run_with(&[("PASSWORD", secret)], &["flow", "run", "flow.yaml", "--run-id", "r"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("***") && !ran.err.contains(secret) && !ran.out.contains(secret), "{ran:?}");
    let ran = project.run_with(&[("PASSWORD", secret)], &["flow", "show", "r", "--json"]);
    assert!(!ran.out.contains(secret), "{ran:?}");
    assert_nowhere(&project, &[secret]);
}

fn project_takes_secrets_at_the_top(project: &TempProject) -> bool {
    project.write("flow.yaml", "name: f\nsecrets: [A]\nsteps:\n  - {id: a, run: 'true'}\n");
    project.run(&["flow", "check", "flow.yaml"]).code == 0
}

#[test]
fn files_that_hold_secrets_are_left_out_and_listed() {
    let project = repository();
    for name in [".env", ".env.local", "deploy.pem", "folder/id_ed25519", ".npmrc"] {
        project.write(name, "correct horse battery");
    }
    project.write("flow.yaml", "name: f\nsteps:\n  - {id: a, run: 'true', snapshot: true}\n");
    let ran = project.run(&["save", "-m", "x"]);
    for name in [".env", ".env.local", "deploy.pem", "folder/id_ed25519", ".npmrc"] {
        assert!(ran.err.contains(&format!("left out {name} ")), "{}", ran.err);
    }
    project.ok(&["flow", "run", "flow.yaml"]);
    project.ok(&["task", "save", "--task", "1", "--stage", "start", "-m", "x", "--no-commit"]);
    project.ok(&["restore", "@", "--yes"]);
    let objects = git(&project, &["cat-file", "--batch-all-objects", "--batch", "--buffer"]);
    assert!(!String::from_utf8_lossy(&objects).contains("correct horse"));
    project.ok(&["save", "-m", "asked for", "--include-secrets"]);
    let objects = git(&project, &["cat-file", "--batch-all-objects", "--batch", "--buffer"]);
    assert!(String::from_utf8_lossy(&objects).contains("correct horse"));
}

/// Runs the program under a umask.
fn under(project: &TempProject, umask: &str, args: &[&str]) -> Ran {
    let line = format!("umask {umask}; exec \"$0\" \"$@\"");
    let all = ["-c", &line, PROGRAM].into_iter().chain(args.iter().copied());
    Ran::of(project.tool("sh", all).output())
}

#[test]
fn only_the_owner_may_read_whatever_the_umask() {
    for (umask, plain) in [("000", false), ("000", true), ("077", false), ("022", true)] {
        let project = if plain { TempProject::plain() } else { repository() };
        project.write("a.txt", "one");
        project.write("flow.yaml", "name: f\nsteps:\n  - {id: a, run: 'echo 1 > $STAGEPOST_OUTPUT', snapshot: true}\n  - {id: b, run: 'false'}\n");
        let state = serde_json::json!({"text": "word ".repeat(40_000)}).to_string();
        project.write("state.json", state);
        if !plain {
            project.write("agent-progress.txt", "[2025-01-01 00:00:00 UTC] [Task 1] theirs\n");
        }
        let mut commands: Vec<&[&str]> = vec![
            &["init"],
            &["save", "-m", "x", "--state", "state.json"],
            &["save", "-m", "y", "--state", "state.json"],
            &["restore", "@-", "--yes"],
            &["flow", "run", "flow.yaml", "--run-id", "r"],
            &["gate", "ask", "--id", "g", "really?"],
            &["plan", "start", "--project", "p", "--output-dir", "plans"],
            &["gc", "--keep", "2"],
            &["doctor", "--fix"],
        ];
        if !plain {
            commands.extend([
                &["session", "create", "--session-id", "s", "--description", "d", "--phase", "plan"][..],
                &["task", "save", "--task", "1", "--stage", "start", "-m", "x"],
                &["task", "note", "text"],
            ]);
        }
        for args in commands {
            let ran = under(&project, umask, args);
            assert!(matches!(ran.code, 0 | 1 | 6), "{args:?}: {ran:?}");
        }
        let views = [".flow", ".claude", "plans", ".checkpoint-metadata.json", "agent-progress.txt"];
        let places = views.iter().map(|name| project.folder.join(name)).chain([project.store.clone()]);
        let mut open = Vec::new();
        places.filter(|place| place.exists()).for_each(|place| open_to_others(&place, &mut open));
        assert_eq!(open, [""; 0], "umask {umask}, plain {plain}");
    }
}

/// What is open to others than the owner.
fn open_to_others(path: &Path, found: &mut Vec<String>) {
    let about = fs::symlink_metadata(path).unwrap();
    if about.permissions().mode() & 0o077 != 0 {
        found.push(format!("{} {:o}", path.display(), about.permissions().mode() & 0o777));
    }
    if about.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| open_to_others(&entry.unwrap().path(), found));
    }
}
