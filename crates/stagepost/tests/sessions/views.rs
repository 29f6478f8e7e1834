//! The files in other systems' formats.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use stagepost::model::{Event, Phase, Progress, Reason, RunId, Stage, Topic};
use stagepost::project::Wish;
use stagepost::session::{self, NewCheckpoint, Session};
use stagepost::snapshot::restore::Mode;
use stagepost::store::{Batch, NewEntry};
use stagepost::task::{self, Task};

use crate::support::*;

#[test]
fn the_log_has_the_documented_shape() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    home.write("a.txt", "two\n");
    let progress = Progress { tasks_completed: Some(1), ..Progress::default() };
    let new = NewCheckpoint {
        reason: Reason::PhaseComplete,
        progress: Some(progress),
        ..NewCheckpoint::new(Phase::Plan, "Planning phase completed é")
    };
    let made = session.create(new).unwrap();
    hard(&session, &made);
    let id = made.id().to_string();
    let sha = head(&home);
    let log = view(&home, &session, "checkpoints.json");
    let expected = json!({
        "session_id": session.id(),
        "generated_at": log["generated_at"],
        "checkpoints": [{
            "checkpoint_id": id,
            "commit_sha": sha,
            "timestamp": log["checkpoints"][0]["timestamp"],
            "description": "Planning phase completed é",
            "phase": "plan",
            "checkpoint_type": "phase_complete",
            "commit_message": "checkpoint: Planning phase completed é",
            "state_snapshot": {"tasks_completed": 1},
            "tags": [format!("checkpoint-{id}")],
            "rollback_used": true,
            "rollback_count": 1,
        }],
        "summary": {
            "total_checkpoints": 1,
            "checkpoints_by_type": {"phase_complete": 1},
            "checkpoints_used_for_rollback": 1,
            "latest_checkpoint": sha,
        },
    });
    assert_eq!(log, expected);
    let text = home.read(&format!(".flow/maestro/sessions/{}/checkpoints.json", session.id())).unwrap();
    assert!(text.starts_with("{\n  \"session_id\": \"") && text.ends_with('}') && text.is_ascii());
    assert!(log["generated_at"].as_str().unwrap().ends_with('Z'));

    let history = view(&home, &session, "rollback_history.json");
    let operation = history["rollback_operations"][0].as_object().unwrap();
    let members = [
        "operation_id",
        "timestamp",
        "session_id",
        "checkpoint_id",
        "checkpoint_description",
        "checkpoint_sha",
        "rollback_mode",
        "pre_rollback_head",
        "post_rollback_head",
        "validation_passed",
        "state_snapshot_restored",
        "validation_errors",
        "validation_warnings",
        "success",
        "error_message",
    ];
    assert_eq!(operation.keys().collect::<Vec<_>>(), members);
    assert_eq!((&operation["rollback_mode"], &operation["success"]), (&json!("hard"), &json!(true)));
    assert_eq!(operation["state_snapshot_restored"], json!({"tasks_completed": 1}));
}

#[test]
fn the_list_of_tasks_has_the_documented_shape() {
    let home = repository();
    let project = home.open();
    let task = Task::new(&project, 7).unwrap();
    let metadata = json!({"tests": 3}).as_object().unwrap().clone();
    task.save(task::NewCheckpoint { metadata, ..task::NewCheckpoint::new(Stage::PreValidation, "d") })
        .unwrap();
    let text = home.read(".checkpoint-metadata.json").unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    let timestamp = list[0]["timestamp"].as_str().unwrap();
    assert!(!timestamp.ends_with('Z') && timestamp.contains('T'));
    let expected = format!(
        "[\n  {{\n    \"task_id\": 7,\n    \"stage\": \"pre-validation\",\n    \"commit_hash\": \"{}\",\n    \"description\": \"d\",\n    \"timestamp\": \"{timestamp}\",\n    \"metadata\": {{\n      \"tests\": 3\n    }}\n  }}\n]",
        head(&home)
    );
    assert_eq!(text, expected);
}

#[test]
fn an_independent_reader_accepts_the_files() {
    let script = r#"
import json, sys
from datetime import datetime
from pathlib import Path
root = Path(sys.argv[1])
log = json.loads((root / ".flow/maestro/sessions" / sys.argv[2] / "checkpoints.json").read_text())
for cp in log["checkpoints"]:
    assert set(cp) >= {"checkpoint_id", "commit_sha", "timestamp", "description", "phase", "checkpoint_type", "tags"}
    assert len(cp["commit_sha"]) == 40 and int(cp["commit_sha"], 16)
    datetime.fromisoformat(cp["timestamp"].replace("Z", "+00:00"))
assert log["summary"]["latest_checkpoint"] == log["checkpoints"][-1]["commit_sha"]
assert log["summary"]["total_checkpoints"] == len(log["checkpoints"]) == 2
tasks = json.loads((root / ".checkpoint-metadata.json").read_text())
for cp in tasks:
    assert cp["stage"] in ("start", "implementation", "pre-validation", "validated")
    assert datetime.fromisoformat(cp["timestamp"]).tzinfo is None
    assert cp.get("metadata", {}) == {}
print("read", len(log["checkpoints"]), len(tasks))
"#;
    if Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    let home = repository();
    let project = home.open();
    let session = start(&project);
    create(&session, "one");
    home.write("a.txt", "two\n");
    create(&session, "two");
    Task::new(&project, 1).unwrap().save(task::NewCheckpoint::new(Stage::Start, "t")).unwrap();
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(home.root())
        .arg(session.id().as_str())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "read 2 1\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn views_are_in_no_snapshot_and_no_rollback_touches_them() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    Task::new(&project, 1).unwrap().log_progress("a line").unwrap();
    let first = create(&session, "first");
    let off = create_off(&session, "off");
    for made in [&first, &off] {
        let commit = made.record().content.snapshot.as_ref().unwrap().commit.clone();
        assert_eq!(home.run_git(&["ls-tree", "-r", "--name-only", commit.as_str()]), "a.txt");
    }
    hard(&session, &first);
    assert_eq!(view(&home, &session, "checkpoints.json")["checkpoints"].as_array().unwrap().len(), 2);
    assert_eq!(home.run_git(&["status", "--porcelain", "--untracked-files=all"]), "");
}

#[test]
fn a_view_that_a_crash_left_behind_is_brought_up_to_date_by_the_next_command() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    create(&session, "first");
    let path = format!(".flow/maestro/sessions/{}/checkpoints.json", session.id());
    let stale = home.read(&path).unwrap();
    create(&session, "second");
    let fresh = home.read(&path).unwrap();
    // As if the process had been killed between the record and the view.
    home.write(&path, &stale);
    drop(project.begin_view(session.id().as_str()).unwrap());
    let again = home.open();
    assert_eq!(session::catch_up(&again).unwrap(), [session.id().to_string()]);
    assert_eq!(home.read(&path).unwrap(), fresh);
    assert!(again.stale_views().is_empty());

    drop(project.begin_view("tasks:").unwrap());
    assert!(task::catch_up(&again).unwrap());
    assert!(!task::catch_up(&again).unwrap());
}

#[test]
fn a_rollback_that_was_cut_off_before_its_record_is_told_by_what_became_of_the_files() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    let first = create(&session, "first");
    home.write("a.txt", "two\n");
    create(&session, "second");
    let begun = json!({"type": "rollback_began", "rollback": {
        "id": "op", "at": "2026-01-31T08:00:00Z", "checkpoint": first.id(), "commit": first.commit(),
        "mode": "hard", "head_before": head(&home), "success": false}});
    let at = "2026-01-31T08:00:00Z".parse().unwrap();
    let event = Event { topic: Topic::Run, key: session.id().to_string(), at, body: begun };
    project.store().write(Batch { entries: vec![NewEntry::Event(event)], ..Batch::default() }).unwrap();

    let told = session.history().unwrap().pop().unwrap();
    assert_eq!((told.success, told.error.is_some()), (false, true));
    assert_eq!(session.get(&first.id().to_string()).unwrap().rollbacks(), 0);
    // The next command finished the restore; only the session's own record is missing.
    project.restore(first.record(), &Wish { mode: Mode::Hard, paths: vec![] }).unwrap();
    let told = session.history().unwrap().pop().unwrap();
    assert_eq!((told.success, told.error, told.head_after), (true, None, told.commit));
    assert_eq!(session.get(&first.id().to_string()).unwrap().rollbacks(), 1);
}

#[test]
fn a_tag_whose_deletion_was_cut_off_is_put_back_by_the_next_command() {
    let home = repository();
    let project = home.open();
    let task = Task::new(&project, 1).unwrap();
    let saved = task.save(task::NewCheckpoint::new(Stage::Start, "saved")).unwrap();
    let session = start(&project);
    let created = create(&session, "created");
    let tagged = |name: &str| home.run_git(&["rev-parse", &format!("{name}^{{commit}}")]);
    // As if a cleanup and a deletion had been killed between their tags and their records.
    let names = ["checkpoint-t1-start".to_owned(), created.mark().tag.unwrap()];
    for (name, mark) in names.iter().zip(["tags:tasks:".to_owned(), format!("tags:{}", session.id())]) {
        home.run_git(&["tag", "-d", name]);
        drop(project.begin_view(&mark).unwrap());
    }
    let lock = project.lock_work_tree(Duration::ZERO).unwrap();
    let next = home.open();
    task::catch_up(&next).unwrap();
    session::catch_up(&next).unwrap();
    assert!(tags(&home).is_empty(), "while someone holds the lock, nothing was cut off");
    drop(lock);
    task::catch_up(&next).unwrap();
    session::catch_up(&next).unwrap();
    assert_eq!(tagged(&names[0]), saved.commit().unwrap().as_str());
    assert_eq!(tagged(&names[1]), created.commit().unwrap().as_str());
    assert!(next.stale_views().is_empty());
}

#[test]
fn who_is_refused_leaves_the_mark_of_the_one_that_is_at_work() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    create(&session, "one");
    // Another process has the lock and is about to write a record.
    let lock = project.lock_work_tree(Duration::ZERO).unwrap();
    let keys = ["tasks:".to_owned(), session.id().to_string()];
    let marks = keys.map(|key| project.begin_view(&key).unwrap());
    let other = impatient(&home);
    let refused = session::Session::open(&other, session.id()).unwrap();
    assert!(refused.create(NewCheckpoint::new(Phase::Plan, "two")).is_err());
    let task = Task::new(&other, 1).unwrap();
    assert!(task.save(task::NewCheckpoint::new(Stage::Start, "two")).is_err());
    task.log_progress("writes the same files without that lock").unwrap();
    task::catch_up(&other).unwrap();
    session::catch_up(&other).unwrap();
    assert_eq!(project.stale_views().len(), 2, "{:?}", project.stale_views());
    // It was killed; the next command brings the files up to date.
    drop((lock, marks));
    task::catch_up(&other).unwrap();
    session::catch_up(&other).unwrap();
    assert!(project.stale_views().is_empty());
}

#[test]
fn a_file_that_stood_where_a_view_goes_is_kept() {
    let home = repository();
    let project = home.open();
    home.write(".checkpoint-metadata.json", "[{\"mine\": true}]");
    Task::new(&project, 1).unwrap().save(task::NewCheckpoint::new(Stage::Start, "x")).unwrap();
    let kept = project.place().store.join("views.original/.checkpoint-metadata.json.1");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "[{\"mine\": true}]");
}

#[test]
fn a_view_is_not_written_through_a_link() {
    let home = repository();
    let outside = home.beside("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, home.root().join(".flow")).unwrap();
    let project = home.open();
    let refused = session::Session::start(&project, "x");
    assert!(matches!(refused, Err(session::Error::View { .. })), "{refused:?}");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_log_put_together_from_what_was_cached_is_the_one_derived_anew() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    let path = format!(".flow/maestro/sessions/{}", session.id());
    let cache = project.place().store.join("views.cache").join(session.id().as_str());
    let files = || ["checkpoints", "metadata"].map(|name| home.read(&format!("{path}/{name}.json")).unwrap());
    let check = |why: &str| {
        let (cached, listed) = (files(), session.list_json().unwrap());
        std::fs::remove_file(&cache).unwrap();
        drop(project.begin_view(session.id().as_str()).unwrap());
        session::catch_up(&project).unwrap();
        assert_eq!(files(), cached, "{why}");
        assert_eq!(session.list_json().unwrap(), listed, "{why}");
        let entries: Vec<_> = session.list().unwrap().iter().map(|one| one.entry()).collect();
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed, serde_json::to_value(entries).unwrap(), "{why}");
    };
    check("nothing yet");
    let first = create(&session, "one \"checkpoints\": [] \u{1} \u{e9}\nand more");
    create_as(&session, "two", Reason::ErrorRecovery);
    check("two made");
    hard(&session, &first);
    check("a rollback");
    create_as(&session, "three", Reason::ErrorRecovery);
    check("a recovery");
    session.delete(&first.id().to_string(), session::Tag::Delete).unwrap();
    check("a deletion");
    // A cache that someone altered is not believed.
    let mut bytes = std::fs::read(&cache).unwrap();
    let last = bytes.len() - 5;
    bytes[last] ^= 1;
    std::fs::write(&cache, bytes).unwrap();
    let listed: Value = serde_json::from_str(&session.list_json().unwrap()).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2);
}

#[test]
fn a_view_that_git_tracks_already_is_in_no_commit_of_ours() {
    let home = repository();
    let log = ".flow/maestro/sessions/S/checkpoints.json";
    home.write(log, "{}");
    home.run_git(&["add", "-Af"]);
    home.run_git(&["commit", "-qm", "as the old program did"]);
    let project = home.open();
    let session = Session::open_or_start(&project, &RunId::new("S").unwrap()).unwrap();
    for number in 0..2 {
        home.write("a.txt", &format!("{number}\n"));
        create(&session, "work");
        assert_eq!(home.run_git(&["show", "--name-only", "--format=", "HEAD"]), "a.txt");
    }
    assert_eq!(home.run_git(&["status", "--porcelain"]), format!(" M {log}"));
    home.run_git(&["rm", "-q", "--cached", log]);
    home.run_git(&["commit", "-qm", "it is ours"]);
    assert_eq!(home.run_git(&["status", "--porcelain"]), "");
}
