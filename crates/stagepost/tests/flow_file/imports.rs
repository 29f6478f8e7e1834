//! Taking in runs that the original programs left, broken or not, and writing them for those programs again.

use std::fs;
use std::io::Write;

use serde_json::{Value, json};
use stagepost::flow::{RunState, Status, export};
use stagepost::formats::Format;
use stagepost::formats::runs::{self, Form};
use stagepost::model::{Imported, Kind};
use stagepost::project::{ImportPlan, Project};
use stagepost_testutil::{TempProject, run_id};

use crate::support::*;

/// What the original program leaves after three steps, one of them damaged, beside a file that is cut off.
fn left_by_them(home: &TempProject, base: &str) {
    let write = |path: &str, value: &Value| {
        home.write(&format!("{base}/run-001/{path}"), &serde_json::to_string_pretty(value).unwrap());
    };
    for step in [1, 2, 10] {
        let checkpoint = as_they_write("run-001", step, &format!("2025-01-08T10:00:{step:02}.000Z"));
        write(&format!("checkpoints/{}.json", checkpoint["checkpoint_id"].as_str().unwrap()), &checkpoint);
    }
    let mut damaged = as_they_write("run-001", 11, "2025-01-08T10:00:11.000Z");
    damaged["step_state"]["agent"] = json!("someone else");
    write("checkpoints/checkpoint-step-11-1736330000011.json", &damaged);
    home.write(
        &format!("{base}/run-001/checkpoints/checkpoint-step-12-1736330000012.json"),
        "{\"checkpoint_id\": \"ch",
    );
    write("run.json", &run_record("run-001", "failed", "2025-01-08T10:01:00.000Z"));
    write("artifact-registry.json", &json!({"run_id": "run-001", "artifacts": {}, "their_own": 1}));
}

fn import(project: &Project, home: &TempProject) -> (ImportPlan, usize) {
    let plan = project.plan_import(home.root(), None).unwrap();
    let count = project.apply_import(&plan).unwrap();
    (plan, count)
}

#[test]
fn runs_come_in_flagged_once_and_in_order_from_both_places() {
    for base in [".claude/context/runs", ".claude/context/runtime/runs"] {
        let home = TempProject::git();
        left_by_them(&home, base);
        let project = home.open();
        let (plan, count) = import(&project, &home);
        let told: Vec<(&str, &str)> =
            plan.items.iter().map(|item| (item.id.as_str(), item.integrity.as_str())).collect();
        assert_eq!(
            told,
            [
                ("checkpoint-step-1-1736330000001", "ok"),
                ("checkpoint-step-2-1736330000002", "ok"),
                ("checkpoint-step-10-1736330000010", "ok"),
                ("checkpoint-step-11-1736330000011", "mismatch(checksum)"),
                ("run-001/run.json", "unverifiable"),
            ]
        );
        assert_eq!(count, 5);
        assert_eq!(import(&project, &home).1, 0, "a second import takes nothing in");

        let state = RunState::load(&project, &run_id("run-001")).unwrap();
        assert_eq!(state.status, Status::Failed);
        assert_eq!(state.steps.len(), 4);
        assert_eq!(state.run.description, "their request");
        let log = project
            .log(&stagepost::store::Query { run: Some(run_id("run-001")), ..Default::default() })
            .unwrap();
        let first = log.last().unwrap();
        assert!(
            matches!(&first.content.kind, Kind::Step { step, attempt: 1, .. } if step.starts_with("Schritt-1 "))
        );
        let file = home.root().join(base).join("run-001/checkpoints/checkpoint-step-1-1736330000001.json");
        assert_eq!(project.load(first, "original").unwrap(), fs::read(file).unwrap());
        assert_eq!(Imported::of(first).unwrap().extra["their_own"], json!({"kept": [1, 2.5, {"x": null}]}));
        assert!(Imported::of(first).unwrap().findings[0].contains("leaves `metadata` out"));
    }
}

#[test]
fn d3_4_one_unreadable_file_is_named_and_the_rest_comes_in() {
    let home = TempProject::git();
    left_by_them(&home, ".claude/context/runs");
    home.write(".claude/context/runs/run-002/run.json", "not json at all");
    home.write(".claude/context/runs/run-002/artifact-registry.json", "{}");
    home.write(".claude/context/checkpoints/chk-1-abcdef.json.gz", "not compressed");
    let project = home.open();
    let (plan, count) = import(&project, &home);
    let names: Vec<String> = plan
        .unreadable
        .iter()
        .map(|one| one.path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names, ["checkpoint-step-12-1736330000012.json", "run.json", "chk-1-abcdef.json.gz"]);
    assert_eq!(count, 5);
}

#[test]
fn what_came_in_goes_out_with_everything_that_only_its_writer_knows_and_a_checksum_that_is_accepted() {
    let home = TempProject::git();
    left_by_them(&home, ".claude/context/runtime/runs");
    let project = home.open();
    import(&project, &home);
    let to = home.beside("exported");
    let written = export(&project, &to).unwrap();
    assert_eq!(written.len(), 6);
    let folder = to.join(".claude/context/runs/run-001");
    for (step, sound) in [(1, true), (2, true), (10, true), (11, false)] {
        let name = format!("checkpoint-step-{step}-{}.json", 1_736_330_000_000_u64 + step);
        let there = fs::read(folder.join("checkpoints").join(&name)).unwrap();
        let before =
            read_json(&home.root().join(".claude/context/runtime/runs/run-001/checkpoints").join(&name));
        let mut after: Value = serde_json::from_slice(&there).unwrap();
        assert_eq!(
            runs::verify(&there),
            Some(sound.then_some(Form::Whole)),
            "what was altered is not made good"
        );
        after["metadata"]["checksum"] = before["metadata"]["checksum"].clone();
        assert_eq!(after, before);
        if let Some(said) = independent("node", &["-e", VALIDATOR], std::str::from_utf8(&there).unwrap()) {
            assert_eq!(said == "valid", sound, "step {step}");
        }
    }
    assert_eq!(read_json(&folder.join("run.json"))["their_own"], true);
    assert_eq!(read_json(&folder.join("artifact-registry.json"))["their_own"], 1);

    let other = TempProject::git();
    let elsewhere = other.open();
    let plan = elsewhere.plan_import(&to, Some(Format::Runs)).unwrap();
    assert_eq!(elsewhere.apply_import(&plan).unwrap(), 5);
    let again = other.beside("again");
    export(&elsewhere, &again).unwrap();
    for file in written {
        let inside = file.strip_prefix(&to).unwrap();
        assert_eq!(fs::read(&file).unwrap(), fs::read(again.join(inside)).unwrap(), "{}", inside.display());
    }
}

#[test]
fn a_record_that_changed_is_taken_in_again_and_tells_how_the_run_stands_now() {
    let home = TempProject::git();
    left_by_them(&home, ".claude/context/runs");
    let project = home.open();
    import(&project, &home);
    let record = run_record("run-001", "completed", "2025-01-08T11:00:00.000Z");
    home.write(".claude/context/runs/run-001/run.json", &record.to_string());
    assert_eq!(import(&project, &home).1, 1);
    assert_eq!(RunState::load(&project, &run_id("run-001")).unwrap().status, Status::Completed);
    let to = home.beside("exported");
    export(&project, &to).unwrap();
    assert_eq!(read_json(&to.join(".claude/context/runs/run-001/run.json"))["status"], "completed");
}

#[test]
fn a_run_of_ours_of_the_same_name_is_left_alone() {
    let home = TempProject::git();
    let project = home.open();
    start(&project, "run-001", &format!("view: false\n{}", flow_of(1)));
    left_by_them(&home, ".claude/context/runs");
    import(&project, &home);
    assert_eq!(RunState::load(&project, &run_id("run-001")).unwrap().status, Status::Completed);
    assert_eq!(RunState::load(&project, &run_id("imported-run-001")).unwrap().status, Status::Failed);
}

#[test]
fn the_other_shapes_of_the_family_come_in_too() {
    let home = TempProject::git();
    let compressed = json!({"id": "chk-1736330000000-ab12cd", "workflowName": "demo", "workflowVersion": "1.0.0",
        "createdAt": "2025-01-08T10:00:00.000Z", "phase": "build", "stepIndex": 3, "context": {"a": 1},
        "stepResults": {}, "metadata": {}});
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(compressed.to_string().as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let path = home.root().join(".claude/context/checkpoints");
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("chk-1736330000000-ab12cd.json.gz"), &gzip).unwrap();
    let pressure = json!({"workflowId": "wf-9", "step": 4, "state": {"reason": "memory_pressure"},
        "timestamp": "2025-01-08T10:00:00.000Z", "memoryUsage": {"heapUsed": 1}});
    home.write(".claude/context/runtime/checkpoints/wf-9.json", &pressure.to_string());
    let described = json!({"checkpoint_id": "checkpoint-after-3", "run_id": "run-7", "workflow": "demo", "step": 3.5,
        "timestamp": "2025-01-08T10:00:00", "status": "expired", "completed_steps": [1, 2, 3], "artifacts": []});
    home.write(".claude/context/runs/run-7/checkpoints/checkpoint-after-3.json", &described.to_string());

    let project = home.open();
    let (plan, count) = import(&project, &home);
    assert_eq!(count, 3, "{plan:#?}");
    let by_run = |run: &str| plan.items.iter().find(|item| item.run == run).unwrap();
    assert_eq!(by_run("run-7").findings, ["it says that it is expired"]);
    assert_eq!(by_run("wf-9").description, "memory ran out at step 4");
    assert_eq!(by_run("demo").id, "chk-1736330000000-ab12cd");
    let to = home.beside("exported");
    export(&project, &to).unwrap();
    assert_eq!(
        fs::read(to.join(".claude/context/checkpoints/chk-1736330000000-ab12cd.json.gz")).unwrap(),
        gzip
    );
    assert!(to.join(".claude/context/runtime/checkpoints/wf-9.json").exists());
    assert!(to.join(".claude/context/runs/run-7/checkpoints/checkpoint-after-3.json").exists());
}

#[test]
fn our_own_files_are_known_again() {
    let home = TempProject::git();
    let project = home.open();
    start(&project, "r1", &flow_of(2));
    let plan = project.plan_import(home.root(), None).unwrap();
    assert!(plan.items.iter().all(|item| item.known), "{:#?}", plan.items);
    assert_eq!(project.apply_import(&plan).unwrap(), 0);

    let other = TempProject::git();
    let elsewhere = other.open();
    let plan = elsewhere.plan_import(home.root(), Some(Format::Runs)).unwrap();
    assert_eq!(elsewhere.apply_import(&plan).unwrap(), 3);
    assert_eq!(RunState::load(&elsewhere, &run_id("r1")).unwrap().status, Status::Completed);
}

#[test]
fn a_name_from_outside_cannot_become_a_place() {
    let home = TempProject::git();
    let mut evil = as_they_write("../../../evil", 1, "2025-01-08T10:00:01.000Z");
    evil["checkpoint_id"] = json!("../../../../escape");
    evil["step_state"]["step_name"] = json!("a\u{1b}[2J");
    home.write(".claude/context/runs/x/checkpoints/checkpoint-step-1-1.json", &evil.to_string());
    let project = home.open();
    let (plan, _) = import(&project, &home);
    assert_eq!(plan.items.len(), 1);
    assert_eq!(plan.items[0].integrity, "mismatch(checksum)");
    let to = home.beside("exported");
    for file in export(&project, &to).unwrap() {
        assert!(file.canonicalize().unwrap().starts_with(to.canonicalize().unwrap()), "{}", file.display());
    }
}
