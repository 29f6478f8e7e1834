//! Taking in what the original programs left, broken or not, and writing it for them again.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use stagepost::formats::Format;
use stagepost::lock::Lock;
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
fn an_import_that_was_cut_off_before_its_record_is_no_obstacle_to_the_next() {
    let home = repository();
    left_by_maestro(&home);
    home.run_git(&["update-ref", &format!("refs/stagepost/main/{ONE}"), "HEAD"]);
    let project = home.open();
    assert_eq!(import(&project, &home), 3);
    assert_eq!(import(&project, &home), 0);
}

#[test]
fn what_another_import_took_in_meanwhile_is_known_and_stays() {
    let home = repository();
    left_by_maestro(&home);
    let (project, other) = (home.open(), home.open());
    let plan = project.plan_import(home.root(), None).unwrap();
    assert_eq!(import(&other, &home), 3);
    assert_eq!(project.apply_import(&plan).unwrap(), 0);
    let session = RunId::new("example-session").unwrap();
    let made = Session::open(&project, &session).unwrap().get(ONE).unwrap();
    let kept = home.run_git(&["rev-parse", &format!("refs/stagepost/main/{ONE}")]);
    assert_eq!(kept, made.record().content.snapshot.as_ref().unwrap().commit.as_str());
    assert_eq!(Session::open(&project, &session).unwrap().list().unwrap().len(), 3);
}

#[test]
fn two_imports_at_once_do_not_get_into_each_others_way() {
    let home = repository();
    left_by_maestro(&home);
    let project = home.open();
    let plan = project.plan_import(home.root(), None).unwrap();
    let lock = Lock::take(&project.place().store.join("import.lock"), Duration::ZERO).unwrap();
    let other = impatient(&home);
    assert!(matches!(other.apply_import(&plan), Err(Error::Lock(_))));
    assert!(home.run_git(&["for-each-ref", "refs/stagepost"]).is_empty(), "it did nothing yet");
    drop(lock);
    assert_eq!(other.apply_import(&plan).unwrap(), 3);
}

#[test]
fn an_import_that_cannot_keep_files_fails_instead_of_leaving_them_out() {
    let home = repository();
    left_by_maestro(&home);
    let project = home.open();
    let plan = project.plan_import(home.root(), None).unwrap();
    let snapshots = project.place().store.join("snapshots");
    fs::write(&snapshots, "in the way").unwrap();
    let failed = project.apply_import(&plan);
    assert!(matches!(failed, Err(Error::Snapshots(_))), "{failed:?}");
    fs::remove_file(snapshots).unwrap();
    assert_eq!(import(&project, &home), 3, "nothing of it was taken in");
    let session = Session::open(&project, &RunId::new("example-session").unwrap()).unwrap();
    assert!(session.get(ONE).unwrap().record().content.snapshot.is_some());
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
    // What lies beside a log and cannot be read does not go unsaid either.
    home.write(
        ".flow/maestro/sessions/torn/checkpoints.json",
        r#"{"session_id": "torn", "checkpoints": []}"#,
    );
    home.write(".flow/maestro/sessions/torn/metadata.json", "{\"status\": \"comp");
    home.write(
        ".flow/maestro/sessions/torn/rollback_history.json",
        r#"{"rollback_operations": [7, {"success": true}]}"#,
    );
    let damaged = project.plan_import(home.root(), None).unwrap().unreadable;
    let named: Vec<_> = damaged.iter().map(|one| one.path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(named, ["metadata.json", "rollback_history.json", "rollback_history.json"]);
    fs::remove_dir_all(home.root().join(".flow/maestro/sessions/torn")).unwrap();
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

#[test]
fn lines_of_progress_from_elsewhere_come_in_as_they_are_and_once() {
    let home = repository();
    let project = home.open();
    let task = Task::new(&project, 7).unwrap();
    task.log_progress("ours").unwrap();
    let there = home.beside("there");
    fs::create_dir(&there).unwrap();
    let lines = "[2024-01-07 13:00:00 UTC] [Task 7] began\r\n\n  by hand\n\
                 [2024-01-07 13:00:00 UTC] twice\n[2024-01-07 13:00:00 UTC] twice\n[2024-02-30 99:00:00 UTC] no such day";
    fs::write(there.join("agent-progress.txt"), lines).unwrap();
    let plan = project.plan_import(&there, Some(Format::Tasks)).unwrap();
    assert_eq!((plan.items.len(), plan.progress[0].lines, plan.progress[0].new), (0, 5, 5));
    project.apply_import(&plan).unwrap();

    let all = task::recent_progress(&project, 99).unwrap();
    assert_eq!(
        all[1..],
        [
            "[2024-01-07 13:00:00 UTC] [Task 7] began",
            "  by hand",
            "[2024-01-07 13:00:00 UTC] twice",
            "[2024-01-07 13:00:00 UTC] twice",
            "[2024-02-30 99:00:00 UTC] no such day",
        ]
    );
    assert_eq!(task.progress().unwrap().len(), 2);
    let notes = project.store().events(&stagepost::store::EventQuery::all(stagepost::model::Topic::Note));
    assert_eq!(notes.unwrap()[1].1.at, "2024-01-07T13:00:00Z".parse().unwrap());

    // Again, and by the name of the file: nothing is new, and that is no error.
    for path in [there.clone(), there.join("agent-progress.txt")] {
        let again = project.plan_import(&path, None).unwrap();
        assert_eq!((again.progress[0].lines, again.progress[0].new), (5, 0));
        assert_eq!(project.apply_import(&again).unwrap(), 0);
    }
    assert_eq!(task::recent_progress(&project, 99).unwrap(), all);
    assert_eq!(fs::read_to_string(there.join("agent-progress.txt")).unwrap(), lines);
}

#[test]
fn members_that_nobody_knows_survive_import_and_export() {
    let home = repository();
    let there = home.beside("there/.flow/maestro/sessions/theirs");
    fs::create_dir_all(&there).unwrap();
    let entry = json!({"checkpoint_id": ONE, "commit_sha": "abc1234", "timestamp": "2024-01-07T13:00:00Z",
        "description": "d", "phase": "plan", "own_entry": 1});
    let operation = json!({"operation_id": "op", "timestamp": "2024-01-07T14:00:00Z", "checkpoint_id": ONE,
        "rollback_mode": "hard", "success": false, "own_operation": ["x"]});
    let files = [
        (
            "checkpoints.json",
            json!({"$schema": "theirs", "session_id": "theirs", "checkpoints": [entry],
            "own_log": {"checkpoints": []}, "summary": {}}),
        ),
        (
            "rollback_history.json",
            json!({"session_id": "theirs", "rollback_operations": [operation],
            "own_history": null}),
        ),
        (
            "metadata.json",
            json!({"session_id": "theirs", "feature_request": "r", "status": "completed",
            "updated_at": "2024-01-07T15:00:00Z", "completed_at": "2024-01-07T16:00:00Z",
            "statistics": {"total_tasks": 9, "failed_tasks": 2, "own_count": 4, "checkpoints_created": 70},
            "configuration": {"max_iterations": 8}, "own_about": [1, {"two": 3}]}),
        ),
    ];
    for (name, value) in &files {
        fs::write(there.join(name), value.to_string()).unwrap();
    }
    let project = home.open();
    let sessions = home.beside("there");
    for expected in [1, 0] {
        let plan = project.plan_import(&sessions, None).unwrap();
        assert_eq!(project.apply_import(&plan).unwrap(), expected);
    }
    let out = home.beside("out");
    session::export(&project, &out).unwrap();
    let read = |name: &str| -> Value {
        let file = out.join(".flow/maestro/sessions/theirs").join(name);
        serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
    };
    let (log, history, about) =
        (read("checkpoints.json"), read("rollback_history.json"), read("metadata.json"));
    assert_eq!((&log["$schema"], &log["own_log"]), (&json!("theirs"), &json!({"checkpoints": []})));
    assert_eq!(
        (&log["checkpoints"][0]["own_entry"], &log["summary"]["total_checkpoints"]),
        (&json!(1), &json!(1))
    );
    assert!(history.as_object().unwrap().contains_key("own_history"), "{history}");
    assert_eq!(history["rollback_operations"][0]["own_operation"], json!(["x"]));
    assert_eq!(history["rollback_operations"].as_array().unwrap().len(), 1);
    assert_eq!(about["own_about"], json!([1, {"two": 3}]));
    assert_eq!(about["configuration"], json!({"max_iterations": 8}));
    assert_eq!(
        (&about["status"], &about["completed_at"]),
        (&json!("completed"), &json!("2024-01-07T16:00:00Z"))
    );
    let counts = &about["statistics"];
    assert_eq!(
        (&counts["total_tasks"], &counts["failed_tasks"], &counts["own_count"]),
        (&json!(9), &json!(2), &json!(4))
    );
    assert_eq!(counts["checkpoints_created"], 1, "what can be counted is counted");
}

#[test]
fn a_session_that_was_paused_stays_so_though_its_checkpoints_are_newer() {
    let home = repository();
    let there = home.beside("there/.flow/maestro/sessions/theirs");
    fs::create_dir_all(&there).unwrap();
    let entry = json!({"checkpoint_id": ONE, "commit_sha": "abc1234", "timestamp": "2024-01-07T13:00:00Z",
        "description": "d", "phase": "validate"});
    let log = json!({"session_id": "theirs", "checkpoints": [entry]});
    let about = json!({"session_id": "theirs", "status": "paused", "updated_at": "2024-01-07T12:00:00Z"});
    fs::write(there.join("checkpoints.json"), log.to_string()).unwrap();
    fs::write(there.join("metadata.json"), about.to_string()).unwrap();
    let project = home.open();
    let plan = project.plan_import(&home.beside("there"), None).unwrap();
    project.apply_import(&plan).unwrap();
    let out = home.beside("out");
    session::export(&project, &out).unwrap();
    let read = |name: &str| -> Value {
        let file = out.join(".flow/maestro/sessions/theirs").join(name);
        serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
    };
    assert_eq!(read("metadata.json")["status"], "paused");
    assert_eq!(
        read("checkpoints.json")["summary"]["latest_checkpoint"],
        Value::Null,
        "its commit is not here"
    );
}

#[test]
fn nothing_of_an_entry_is_lost_and_what_is_no_entry_is_told() {
    let home = repository();
    let entry = |text: &str| {
        json!({"checkpoint_id": "cp-1700000000", "timestamp": "2024-01-07T13:00:00Z", "description": text,
               "phase": "plan", "tags": ["checkpoint-cp-1700000000", "release"],
               "state_snapshot": {"tests_passing": 3, "tasks_completed": "many", "coverage": 0.5}})
    };
    let log = json!({"session_id": "s", "checkpoints": [entry("one"), 7, entry("two")]});
    let folder = home.beside("sessions/s");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("checkpoints.json"), log.to_string()).unwrap();
    let project = home.open();
    let plan = project.plan_import(&folder, None).unwrap();
    assert_eq!(
        plan.unreadable.iter().map(|one| one.why.as_str()).collect::<Vec<_>>(),
        ["entry 2 is no object"]
    );
    assert_eq!(project.apply_import(&plan).unwrap(), 2);

    let session = Session::open(&project, &RunId::new("s").unwrap()).unwrap();
    for one in session.list().unwrap() {
        let shown = serde_json::to_value(session.get(&one.id().to_string()).unwrap().entry()).unwrap();
        assert_eq!(shown["tags"], entry("")["tags"]);
        assert_eq!(shown["state_snapshot"], entry("")["state_snapshot"]);
    }
    let refused = session.get("cp-1700000000").unwrap_err();
    assert_eq!(refused.to_string(), "session `s` has 2 checkpoints `cp-1700000000`");
}

#[test]
fn entries_and_tags_that_are_of_no_task_or_stage_are_told() {
    let home = repository();
    let list = json!([{"task_id": "five", "stage": "start"}, {"task_id": 1, "stage": "start"}]);
    home.write(".checkpoint-metadata.json", &list.to_string());
    for tag in ["checkpoint-t1-later", "checkpoint-today-or-never"] {
        home.run_git(&["tag", tag]);
    }
    let plan = home.open().plan_import(home.root(), None).unwrap();
    let told: Vec<_> = plan.unreadable.iter().map(|one| one.why.as_str()).collect();
    assert_eq!(told, ["entry 1 names no task or no stage that is known", "its stage is not known"]);
    assert_eq!(plan.items.len(), 1);
}
