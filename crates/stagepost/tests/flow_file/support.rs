//! Runs of flows, and files as the original programs write them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use stagepost::flow::{Drive, Error, Flows, Outcome, Resume, Source};
use stagepost::model::Timestamp;
use stagepost::process::Cancel;
use stagepost::project::{Clock, Context, Place, Project, RandomIds, Settings};
use stagepost::snapshot::GitProgram;
use stagepost_testutil::{TempProject, run_id};

/// Runs a flow that is new.
pub(crate) fn start(project: &Project, run: &str, flow: &str) -> Outcome {
    let source = Source::read(flow, None).unwrap_or_else(|error| panic!("{error:?}"));
    Flows::of(project).start(&run_id(run), source, None, drive()).unwrap()
}

/// Goes on with a run.
pub(crate) fn resume(project: &Project, run: &str) -> Result<Outcome, Error> {
    Flows::of(project).resume(&run_id(run), Resume::default(), drive())
}

fn drive() -> Drive<'static> {
    let mut drive = Drive::new(Cancel::new().unwrap());
    drive.grace = Duration::from_millis(300);
    drive
}

/// A flow of so many steps; each leaves a file.
pub(crate) fn flow_of(steps: usize) -> String {
    let step = |at: usize| {
        let line = format!("echo {at} > out{at}.txt");
        format!("- {{ id: s{at}, run: \"{line}\", outputs: [out{at}.txt] }}\n")
    };
    format!("name: demo\nsteps:\n{}", (1..=steps).map(step).collect::<String>())
}

/// Opens the project so many days later.
pub(crate) fn open_later(home: &TempProject, days: i64) -> Project {
    struct Later(i64);
    impl Clock for Later {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(1_769_846_400_000_000 + self.0 * 86_400_000_000).unwrap()
        }
    }
    let place = Place::find(home.root()).unwrap().unwrap();
    let context = Context {
        clock: Box::new(Later(days)),
        ids: Box::new(RandomIds::default()),
        who: "ada".to_owned(),
        git: GitProgram::new("git", std::env::vars_os()),
    };
    Project::init(place, Settings::default(), context).unwrap()
}

/// The files in a folder, by name.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn read_json(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A checkpoint as the original program writes it: its checksum leaves `metadata` out.
pub(crate) fn as_they_write(run: &str, step: u64, at: &str) -> Value {
    let mut checkpoint = json!({
        "checkpoint_id": format!("checkpoint-step-{step}-{}", 1_736_330_000_000_u64 + step),
        "run_id": run, "workflow_id": "demo-flow", "step": step, "timestamp": at,
        "run_record": {"run_id": run, "status": "in_progress", "current_step": step},
        "artifact_registry": {"artifacts": {"plan.md": {"name": "plan.md", "step": 1}}},
        "step_state": {"step_name": format!("Schritt-{step} – \"prüfen\""), "agent": "developer", "artifacts": [], "validation_status": "pass"},
        "artifacts_at_checkpoint": ["plan.md"],
        "validation_summary": {"total_artifacts": 1, "validated_artifacts": 0, "failed_validations": 0},
        "recovery_instructions": ["a", "b", "c", "d"],
        "their_own": {"kept": [1, 2.5, {"x": null}]},
    });
    let sum = sha256(&checkpoint.to_string());
    checkpoint["metadata"] = json!({"checksum": sum, "created_by": "checkpoint-manager", "version": "1.0"});
    checkpoint
}

pub(crate) fn run_record(run: &str, status: &str, updated_at: &str) -> Value {
    json!({
        "run_id": run, "workflow_id": "demo-flow", "selected_workflow": "demo-flow", "current_step": 2, "status": status,
        "created_at": "2025-01-08T09:00:00.000Z", "updated_at": updated_at,
        "metadata": {"user_request": "their request"}, "their_own": true,
    })
}

/// Runs a program on a text, if it is installed; otherwise says so.
pub(crate) fn independent(program: &str, args: &[&str], input: &str) -> Option<String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        eprintln!("skipped: {program} is not installed");
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// What the original validator does, written again from its description: everything but `metadata.checksum`.
pub(crate) const VALIDATOR: &str = r#"
const text = require("fs").readFileSync(0, "utf8");
const checkpoint = JSON.parse(text);
const { checksum, ...metadata } = checkpoint.metadata;
const hash = require("crypto").createHash("sha256");
const sum = hash.update(JSON.stringify({ ...checkpoint, metadata })).digest("hex");
process.stdout.write(sum === checksum ? "valid" : "Checksum mismatch");
"#;

/// The same by a program that knows nothing but the description.
pub(crate) const IN_PYTHON: &str = r#"
import hashlib, json, sys
checkpoint = json.load(sys.stdin)
checksum = checkpoint["metadata"].pop("checksum")
text = json.dumps(checkpoint, separators=(",", ":"), ensure_ascii=False)
sys.stdout.write("valid" if hashlib.sha256(text.encode()).hexdigest() == checksum else "mismatch")
"#;
