//! Taking in what the original programs left, broken or not, and writing it for them again.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use stagepost::formats::Format;
use stagepost::model::{Imported, Phase, Reason, RollbackMode, RunId, Stage};
use stagepost::project::{Error, Project};
use stagepost::session::{self, Changes, NewCheckpoint, Session};
use stagepost::task::{self, Rollback, Task};
use stagepost_testutil::TempProject;

use crate::support::*;

const ONE: &str = "3f2b8a52-6c1e-4a7e-9a62-0d4a5a3c8f01";
const TWO: &str = "3f2b8a52-6c1e-4a7e-9a62-0d4a5a3c8f02";

/// What the first program leaves after two checkpoints: the text of git's answer where a commit should be.
fn left_by_maestro(home: &TempProject) {
    home.write("a.txt", "two\n");
    home.run_git(&["commit", "-qam", "checkpoint: first"]);
    home.run_git(&["tag", "-a", &format!("checkpoint-{ONE}"), "-m", "Checkpoint: first"]);
    let short = home.run_git(&["rev-parse", "--short", "HEAD"]);
    home.write("a.txt", "three\n");
    home.run_git(&["commit", "-qam", "later"]);
    let printed = |text: &str| format!("[main {short}] checkpoint: {text}\n 1 file changed, 1 insertion(+)");
    let entry = |id: &str, sha: String, text: &str| {
        json!({"checkpoint_id": id, "commit_sha": sha, "timestamp": "2024-01-07T13:00:00Z", "description": text,
               "phase": "plan", "checkpoint_type": "phase_complete", "tags": [format!("checkpoint-{id}")],
               "rollback_used": false, "rollback_count": 0, "their_own": {"kept": [1, 2]}})
    };
    let log = json!({
        "session_id": "example-session", "generated_at": "2024-01-07T12:59:59.5Z",
        "checkpoints": [
            entry(ONE, printed("first"), "tagged, but the sha is text"),
            entry(TWO, printed("second"), "only the text is left"),
            {"checkpoint_id": "cp-1700000000", "commit_sha": "abc1234", "phase": "dreaming", "description": "lost"},
        ],
        "summary": {"total_checkpoints": 99},
    });
    let folder = ".flow/maestro/sessions/example-session";
    home.write(&format!("{folder}/checkpoints.json"), &serde_json::to_string_pretty(&log).unwrap());
    let history = json!({"session_id": "example-session", "rollback_operations": [
        {"operation_id": "op-1", "timestamp": "2024-01-07T14:00:00Z", "checkpoint_id": ONE, "rollback_mode": "hard",
         "success": false, "error_message": "Cannot do hard reset with paths"}]});
    home.write(&format!("{folder}/rollback_history.json"), &history.to_string());
    home.write(&format!("{folder}/metadata.json"), &json!({"feature_request": "their request"}).to_string());
}

fn import(project: &Project, home: &TempProject) -> usize {
    let plan = project.plan_import(home.root(), None).unwrap();
    project.apply_import(&plan).unwrap()
}

#[test]
fn broken_sessions_come_in_flagged_and_can_be_rolled_back_to() {
    let home = repository();
    left_by_maestro(&home);
    let folder = home.root().join(".flow/maestro/sessions/example-session");
    let original = fs::read(folder.join("checkpoints.json")).unwrap();
    let project = home.open();
    let plan = project.plan_import(home.root(), None).unwrap();
    let told: Vec<_> =
        plan.items.iter().map(|item| (item.integrity.as_str(), item.commit.as_str())).collect();
    assert_eq!(
        told,
        [
            ("mismatch(commit)", "resolved-from-tag"),
            ("mismatch(commit)", "resolved-from-text"),
            ("unverifiable", "missing")
        ]
    );
    assert_eq!(plan.items[2].findings.len(), 2, "{:?}", plan.items[2].findings);
    assert_eq!(project.apply_import(&plan).unwrap(), 3);
    assert_eq!(fs::read(folder.join("checkpoints.json")).unwrap(), original);

    let session = Session::open(&project, &RunId::new("example-session").unwrap()).unwrap();
    let made = session.get(ONE).unwrap();
    assert_eq!(project.load(made.record(), "source").unwrap(), original);
    assert_eq!(Imported::of(made.record()).unwrap().extra["their_own"]["kept"], json!([1, 2]));
    assert_eq!(session.history().unwrap()[0].error.as_deref(), Some("Cannot do hard reset with paths"));
    session.rollback(ONE, RollbackMode::Hard, Changes::Refuse).unwrap();
    assert_eq!(home.read("a.txt").unwrap(), "two\n");
    assert_eq!(home.run_git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    let lost = session.rollback("cp-1700000000", RollbackMode::Hard, Changes::Refuse);
    assert!(matches!(lost, Err(session::Error::Lost { .. })), "{lost:?}");
    assert!(project.verify().unwrap().damage.is_empty());
}

#[test]
fn importing_again_takes_in_nothing_twice() {
    let home = repository();
    left_by_maestro(&home);
    let project = home.open();
    assert_eq!(import(&project, &home), 3);
    assert_eq!(import(&project, &home), 0);
    let session = Session::open(&project, &RunId::new("example-session").unwrap()).unwrap();
    assert_eq!(session.list().unwrap().len(), 3);
    assert_eq!(session.history().unwrap().len(), 1);
    create(&session, "ours");
    // The files are views of our own now, and still nothing is new.
    assert_eq!(import(&project, &home), 0);
    assert_eq!(session.list().unwrap().len(), 4);
}

#[test]
fn tasks_come_in_by_their_tags_although_the_list_was_rolled_back() {
    let home = repository();
    for (stage, content) in [("start", "s\n"), ("implementation", "i\n")] {
        home.write("a.txt", content);
        home.run_git(&["commit", "-qam", "Checkpoint: x"]);
        home.run_git(&["tag", "-a", &format!("checkpoint-t1-{stage}"), "-m", &format!("at {stage}")]);
    }
    let start = home.run_git(&["rev-parse", "checkpoint-t1-start^{commit}"]);
    let list = json!([{"task_id": 1, "stage": "start", "commit_hash": start, "description": "listed",
        "timestamp": "2024-01-07T13:00:00.000001", "metadata": {"k": 1}, "theirs": true},
        {"task_id": 2, "stage": "validated", "commit_hash": "0".repeat(40), "description": "gone", "timestamp": "?"}]);
    home.write(".checkpoint-metadata.json", &serde_json::to_string_pretty(&list).unwrap());
    let project = home.open();
    let plan = project.plan_import(home.root(), None).unwrap();
    let told: BTreeMap<_, _> =
        plan.items.iter().map(|item| (item.id.as_str(), item.commit.as_str())).collect();
    let expected =
        [("t1-start", "recorded"), ("t1-implementation", "resolved-from-tag"), ("t2-validated", "missing")];
    assert_eq!(told, expected.into_iter().collect());
    project.apply_import(&plan).unwrap();
    assert_eq!(project.apply_import(&project.plan_import(home.root(), None).unwrap()).unwrap(), 0);

    let task = Task::new(&project, 1).unwrap();
    assert_eq!(task.recovery_options().unwrap().len(), 2);
    let listed = task.recovery_options().unwrap();
    let start = listed.iter().find(|one| one.stage() == Stage::Start).unwrap();
    assert!(Imported::of(start.record()).unwrap().tz_assumed);
    task.rollback_to(Stage::Start, Rollback::Hard).unwrap();
    assert_eq!(home.read("a.txt").unwrap(), "s\n");
    let list: Value = serde_json::from_str(&home.read(".checkpoint-metadata.json").unwrap()).unwrap();
    let start = list.as_array().unwrap().iter().find(|one| one["stage"] == "start").unwrap().clone();
    assert_eq!((&start["theirs"], &start["metadata"]["k"]), (&json!(true), &json!(1)));
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_comes_in() {
    let home = repository();
    left_by_maestro(&home);
    home.write(".flow/maestro/sessions/torn/checkpoints.json", "{\"session_id\": \"torn\", \"checkp");
    let project = home.open();
    let plan = project.plan_import(home.root(), None).unwrap();
    assert_eq!((plan.items.len(), plan.unreadable.len()), (3, 1));
    assert!(plan.unreadable[0].path.ends_with("torn/checkpoints.json"));
    let empty = home.beside("empty");
    fs::create_dir(&empty).unwrap();
    assert!(matches!(project.plan_import(&empty, None), Err(Error::NothingToImport { .. })));
    assert!(matches!(
        project.plan_import(home.root(), Some(Format::Tasks)),
        Err(Error::NothingToImport { .. })
    ));
}

/// What the first program's reader demands of a log.
fn read_as_maestro(log: &Value) -> Vec<(String, String, Phase, Reason)> {
    let read = |one: &Value| {
        let text = |key: &str| one[key].as_str().unwrap_or_else(|| panic!("{key} is missing")).to_owned();
        let reason = one.get("checkpoint_type").map_or("manual", |reason| reason.as_str().unwrap());
        text("timestamp");
        text("description");
        (text("checkpoint_id"), text("commit_sha"), text("phase").parse().unwrap(), reason.parse().unwrap())
    };
    log["checkpoints"].as_array().unwrap().iter().map(read).collect()
}

#[test]
fn exports_are_what_the_original_readers_accept() {
    let home = repository();
    left_by_maestro(&home);
    let project = home.open();
    import(&project, &home);
    let session = Session::open(&project, &RunId::new("example-session").unwrap()).unwrap();
    let made = session.create(NewCheckpoint::new(Phase::Validate, "ours")).unwrap();
    let task = Task::new(&project, 5).unwrap();
    task.save(task::NewCheckpoint::new(Stage::Validated, "done")).unwrap();
    task.log_progress("all done").unwrap();

    let out = home.beside("out");
    session::export(&project, &out).unwrap();
    task::export(&project, &out).unwrap();
    let file = out.join(".flow/maestro/sessions/example-session/checkpoints.json");
    let log: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let read = read_as_maestro(&log);
    assert_eq!(read.len(), 4);
    assert_eq!(read[0].1, home.run_git(&["rev-parse", &format!("checkpoint-{ONE}^{{commit}}")]));
    assert_eq!(read[0].0, ONE);
    assert_eq!(read[3], (made.id().to_string(), head(&home), Phase::Validate, Reason::Manual));
    assert_eq!(log["checkpoints"][0]["their_own"], json!({"kept": [1, 2]}));
    assert_eq!(log["summary"]["total_checkpoints"], 4);

    let list: Value =
        serde_json::from_slice(&fs::read(out.join(".checkpoint-metadata.json")).unwrap()).unwrap();
    assert_eq!((&list[0]["task_id"], &list[0]["stage"]), (&json!(5), &json!("validated")));
    assert!(fs::read_to_string(out.join("agent-progress.txt")).unwrap().contains("[Task 5] all done"));

    // The same again is fine; something else in the way is not overwritten.
    task::export(&project, &out).unwrap();
    fs::write(out.join(".checkpoint-metadata.json"), "mine").unwrap();
    assert!(task::export(&project, &out).is_err());

    // What was exported comes in elsewhere, though the commits are not there.
    let other = repository();
    let plan = other.open().plan_import(&out.join(".flow/maestro/sessions"), None).unwrap();
    assert_eq!(plan.items.len(), 4);
    assert!(plan.items.iter().all(|item| item.commit == "missing"));
}
