//! The files of a run, exactly as the design that they follow has them.

use std::path::Path;

use serde_json::{Value, json};
use stagepost::plan::{Agents, Part, Plan, Settings, catch_up, export};
use stagepost_testutil::TempProject;

use crate::support::{Told, drive, job_with_files, named, new, scored, watch};

/// Every file below a folder, in order.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path.to_str().unwrap().to_owned());
        }
    }
    found.sort();
    found
}

fn names(folder: &Path) -> Vec<String> {
    files(folder).into_iter().map(|file| file[folder.to_str().unwrap().len() + 1..].to_owned()).collect()
}

/// The run of the design's examples: two iterations of five sections, approved in the second.
fn example(home: &TempProject) {
    let plan = |tempo: u32| {
        let sections: Vec<Value> =
            ["intro", "verse", "chorus", "verse", "outro"].iter().map(|name| json!({"name": name})).collect();
        json!({"sections": sections, "song_structure": {"tempo": tempo, "title": "Besoin d'été"}})
    };
    let mut planner = Told::saying([plan(120), plan(96)]);
    let mut judge = Told::saying([
        json!({"decision": "SOFT_FAIL", "score": 6, "reasoning": "too fast", "feedback": "slow down", "tokens": 420}),
        json!({"decision": "APPROVE", "score": 8, "reasoning": "fits", "feedback": "", "tokens": 15000}),
    ]);
    let project = home.open();
    let mut job = job_with_files();
    job.project_name = Some("need_a_favor".into());
    job.output_dir = Some("artifacts/need_a_favor".into());
    drive(&project, &named(&job, "a3f9b2c1"), &mut planner, &mut judge).unwrap();
    let plan = Plan::find(&project, "a3f9b2c1").unwrap();
    plan.write_checkpoint(&Part::audio(), json!({"tempo": 96})).unwrap();
    plan.write_checkpoint(&Part::sequence(), json!({"channels": 16})).unwrap();
}

#[test]
fn tree_names_and_contents_are_those_of_the_design() {
    let home = TempProject::git();
    example(&home);
    let root = home.root().join("artifacts");
    assert_eq!(
        names(&root),
        [
            "need_a_favor/checkpoints/need_a_favor_audio.json",
            "need_a_favor/checkpoints/need_a_favor_sequence.json",
            "need_a_favor/checkpoints/plans/need_a_favor_a3f9b2c1_iter01_evaluation.json",
            "need_a_favor/checkpoints/plans/need_a_favor_a3f9b2c1_iter01_raw.json",
            "need_a_favor/checkpoints/plans/need_a_favor_a3f9b2c1_iter02_evaluation.json",
            "need_a_favor/checkpoints/plans/need_a_favor_a3f9b2c1_iter02_raw.json",
            "need_a_favor/checkpoints/plans/need_a_favor_evaluation.json",
            "need_a_favor/checkpoints/plans/need_a_favor_final.json",
            "need_a_favor/checkpoints/plans/need_a_favor_raw.json",
        ]
    );
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan/golden");
    for file in names(&golden) {
        let written = home.read(&format!("artifacts/need_a_favor/checkpoints/plans/{file}")).unwrap();
        assert_eq!(written, std::fs::read_to_string(golden.join(&file)).unwrap(), "{file}");
    }
    assert_eq!(names(&golden).len(), 4);
}

#[test]
fn members_come_in_the_order_of_the_design() {
    let home = TempProject::git();
    example(&home);
    let keys = |file: &str| -> Vec<String> {
        let text = home.read(&format!("artifacts/need_a_favor/checkpoints/plans/{file}")).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        value.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(
        keys("need_a_favor_a3f9b2c1_iter01_raw.json"),
        ["run_id", "iteration", "checkpoint_type", "plan"]
    );
    assert_eq!(
        keys("need_a_favor_a3f9b2c1_iter01_evaluation.json"),
        ["run_id", "iteration", "checkpoint_type", "evaluation", "plan_sections", "score", "decision"]
    );
    assert_eq!(
        keys("need_a_favor_final.json"),
        ["status", "plan", "evaluation", "iterations", "total_tokens", "duration_seconds"]
    );
}

#[test]
fn a_failed_validation_leaves_a_plan_without_an_evaluation() {
    let home = TempProject::git();
    let mut planner = Told::saying([json!({"bad": 1}), json!({"good": 1})]);
    let mut validator = Told::saying([json!({"valid": false}), json!({"valid": true})]);
    let mut judge = Told::saying([json!({"score": 8})]);
    let agents = Agents { planner: &mut planner, validator: Some(&mut validator), judge: &mut judge };
    watch(&home.open(), &named(&job_with_files(), "a3f9b2c1"), agents, &mut |_| {}).unwrap();
    assert_eq!(
        names(&home.root().join("artifacts/my_song/checkpoints/plans")),
        [
            "my_song_a3f9b2c1_iter01_raw.json",
            "my_song_a3f9b2c1_iter02_evaluation.json",
            "my_song_a3f9b2c1_iter02_raw.json",
            "my_song_evaluation.json",
            "my_song_final.json",
            "my_song_raw.json",
        ]
    );
}

#[test]
fn two_runs_of_one_project_leave_each_other_s_iterations_alone() {
    let home = TempProject::git();
    let project = home.open();
    let folder = home.root().join("artifacts/my_song/checkpoints/plans");
    let first = scored(&project, &new(&job_with_files()), &[6.0, 8.0]).unwrap();
    let before: Vec<_> = files(&folder)
        .into_iter()
        .filter(|file| file.contains("_iter"))
        .map(|file| (std::fs::read(&file).unwrap(), file))
        .collect();
    assert_eq!(before.len(), 4);
    // The second is judged by someone else: its core files say 9, and the first run's iterations stay.
    let second = scored(&project, &new(&job_with_files()), &[9.0]).unwrap();
    assert_ne!(first.run, second.run);
    assert!(before.iter().all(|(bytes, file)| std::fs::read(file).unwrap() == *bytes));
    let core = || home.read("artifacts/my_song/checkpoints/plans/my_song_evaluation.json").unwrap();
    assert!(core().contains("\"score\": 9"));
    // The older run writes again: the files without a run in their name belong to the newest.
    Plan::find(&project, first.run.as_str())
        .unwrap()
        .write_iteration_checkpoint(&Part::evaluation(), json!({"score": 1}), 7)
        .unwrap();
    assert!(core().contains("\"score\": 9"));
    assert!(folder.join(format!("my_song_{}_iter07_evaluation.json", first.run)).exists());
}

/// A run with one iteration, and where the file of it is.
fn one_iteration(project: &stagepost::project::Project) -> (Plan<'_>, String) {
    let settings =
        Settings { project_name: "my_song".into(), output_dir: Some("out".into()), checkpoint: true };
    let plan = Plan::start_run(project, &settings).unwrap();
    plan.write_iteration_checkpoint(&Part::raw(), json!({"plan": 1}), 1).unwrap();
    let file = format!("out/checkpoints/plans/my_song_{}_iter01_raw.json", plan.id());
    (plan, file)
}

#[test]
fn files_that_a_crash_left_behind_are_caught_up_with() {
    let home = TempProject::git();
    let project = home.open();
    let (plan, file) = one_iteration(&project);
    // As if it had been killed after the record and before the file.
    home.remove(&file);
    drop(project.begin_view(plan.id().as_str()).unwrap());
    plan.write_iteration_checkpoint(&Part::raw(), json!({"plan": 2}), 2).unwrap();
    assert!(home.read(&file).is_some(), "the next record brings all files up to date");
    home.remove(&file);
    drop(project.begin_view(plan.id().as_str()).unwrap());
    assert_eq!(catch_up(&project).unwrap(), [plan.id().to_string()]);
    assert!(home.read(&file).is_some());
    assert!(catch_up(&project).unwrap().is_empty());
}

#[test]
fn files_of_one_that_is_killed_while_others_record_are_caught_up_with() {
    let home = TempProject::git();
    let project = home.open();
    let (plan, file) = one_iteration(&project);
    home.remove(&file);
    // Another process has written its record and not yet its file.
    let at_work = project.begin_view(plan.id().as_str()).unwrap();
    assert!(catch_up(&project).unwrap().is_empty(), "it is still at work");
    plan.write_iteration_checkpoint(&Part::raw(), json!({"plan": 2}), 2).unwrap();
    assert!(!project.stale_views().is_empty(), "the mark of the other is left");
    home.remove(&file);
    drop(at_work);
    assert_eq!(catch_up(&project).unwrap(), [plan.id().to_string()]);
    assert!(home.read(&file).is_some());
    // One that came later and was killed is noticed by the one that came first.
    let first = project.begin_view(plan.id().as_str()).unwrap();
    drop(project.begin_view(plan.id().as_str()).unwrap());
    assert!(!first.is_only());
    project.leave_view(first);
    assert_eq!(catch_up(&project).unwrap(), [plan.id().to_string()]);
}

#[test]
fn views_are_in_no_snapshot_and_make_no_tree_dirty() {
    let home = TempProject::git();
    example(&home);
    assert_eq!(home.run_git(&["status", "--porcelain"]), "");
    let project = home.open();
    let saved = stagepost_testutil::save_files(&project, "now");
    assert_eq!(saved.content.snapshot.unwrap().files.total, 0);
}

#[test]
fn a_link_that_leads_out_is_not_written_through() {
    let home = TempProject::git();
    let outside = home.beside("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, home.root().join("artifacts")).unwrap();
    let error = scored(&home.open(), &new(&job_with_files()), &[8.0]).unwrap_err();
    assert!(matches!(error, stagepost::plan::Error::View { .. }), "{error:?}");
    assert!(files(&outside).is_empty());
}

#[test]
fn an_export_has_the_same_files() {
    let home = TempProject::git();
    example(&home);
    let to = home.beside("export");
    export(&home.open(), &to).unwrap();
    let (written, shown) = (names(&to), names(&home.root().join("artifacts")));
    assert_eq!(written, shown);
    for file in written {
        let read = |root: &Path| std::fs::read(root.join(&file)).unwrap();
        assert_eq!(read(&to), read(&home.root().join("artifacts")), "{file}");
    }
}
