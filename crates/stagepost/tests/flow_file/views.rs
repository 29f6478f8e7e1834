//! Runs of flows as the files of the design they follow.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value, json};
use stagepost::flow::{Outcome, view};
use stagepost::formats::runs::{self, Form};
use stagepost_testutil::{TempProject, run_id};

use crate::support::*;

fn folder(home: &TempProject, run: &str) -> PathBuf {
    home.root().join(".claude/context/runs").join(run)
}

fn checkpoints(home: &TempProject, run: &str) -> Vec<String> {
    names(&folder(home, run).join("checkpoints"))
}

/// What each step of the original design may be followed by.
fn may_follow(from: &str, to: &str) -> bool {
    let next: &[&str] = match from {
        "pending" => &["in_progress", "cancelled"],
        "in_progress" => &["awaiting_approval", "handoff_pending", "paused", "completed", "failed"],
        "awaiting_approval" => &["in_progress", "cancelled", "failed"],
        "paused" | "failed" => &["in_progress", "cancelled"],
        _ => &[],
    };
    next.contains(&to)
}

#[track_caller]
fn is_a_legal_path(run: &Value) {
    let transitions = run["state_transitions"].as_array().unwrap();
    let mut current = "pending";
    for transition in transitions {
        let (from, to) = (transition["from"].as_str().unwrap(), transition["to"].as_str().unwrap());
        assert!(from == current && may_follow(from, to), "{transitions:#?}");
        current = to;
    }
    assert_eq!(run["status"], current, "{transitions:#?}");
}

#[test]
fn pruning_test_ten_steps_leave_five_checkpoints_and_the_registry_names_no_other() {
    let home = TempProject::git();
    let project = home.open();
    assert_eq!(start(&project, "r1", &flow_of(10)), Outcome::Completed);

    let left = checkpoints(&home, "r1");
    let steps: Vec<&str> = left.iter().filter_map(|name| name.split('-').nth(2)).collect();
    assert_eq!(steps, ["10", "6", "7", "8", "9"]);
    let registry = read_json(&folder(&home, "r1").join("artifact-registry.json"));
    let named: Vec<&String> = registry["artifacts"].as_object().unwrap().keys().collect();
    assert_eq!(named, ["out6.txt", "out7.txt", "out8.txt", "out9.txt", "out10.txt"]);
    let entry = &registry["artifacts"]["out7.txt"];
    assert_eq!(
        (&entry["step"], &entry["version"], &entry["path"]),
        (&json!(7), &json!(1), &json!("out7.txt"))
    );
    assert_eq!(entry["dependencies"], json!(["out6.txt"]));
}

#[test]
fn d3_1_a_checkpoint_is_accepted_by_the_original_validator_and_by_a_program_that_knows_the_description_only()
{
    let home = TempProject::git();
    let project = home.open();
    let flow = "name: \"Prüfung – \\\"x\\\"\"\nsteps: [{id: a, run: 'echo 1 > ä.txt', outputs: [{name: ä.txt, path: ä.txt}]}, {id: b, run: 'exit 3', retry: {attempts: 2, backoff: 1ms}}]";
    start(&project, "r1", flow);
    let left = checkpoints(&home, "r1");
    assert_eq!(left.len(), 1);
    let path = folder(&home, "r1").join("checkpoints").join(&left[0]);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(runs::verify(text.as_bytes()), Some(Some(Form::Whole)));
    for (program, args) in [("node", ["-e", VALIDATOR]), ("python3", ["-c", IN_PYTHON])] {
        if let Some(said) = independent(program, &args, &text) {
            assert_eq!(said, "valid", "{program}");
        }
        let altered = text.replace("\"step\": 1", "\"step\": 2");
        if let Some(said) = independent(program, &args, &altered) {
            assert_ne!(said, "valid", "{program}");
        }
    }
}

#[test]
fn checksum_test_every_byte_of_a_checkpoint_that_is_altered_is_noticed() {
    let home = TempProject::git();
    let project = home.open();
    start(&project, "r1", &flow_of(1));
    let name = checkpoints(&home, "r1").remove(0);
    let bytes = fs::read(folder(&home, "r1").join("checkpoints").join(name)).unwrap();
    let tokens = runs::minified(&bytes);
    for at in 0..bytes.len() {
        let mut altered = bytes.clone();
        altered[at] ^= 1;
        // White space between tokens says nothing, and no reader could tell.
        let is_same = runs::minified(&altered) == tokens;
        assert!(is_same || runs::verify(&altered) != Some(Some(Form::Whole)), "byte {at}");
    }
}

#[test]
fn d3_2_the_record_inside_a_checkpoint_says_the_same_step_and_status_as_the_checkpoint() {
    let home = TempProject::git();
    let project = home.open();
    start(&project, "r1", &flow_of(4));
    for name in checkpoints(&home, "r1") {
        let checkpoint = read_json(&folder(&home, "r1").join("checkpoints").join(name));
        let mut restored = json!({"current_step": checkpoint["step"], "status": "in_progress"});
        // What the original does: the record is spread over what it just set.
        for (key, value) in checkpoint["run_record"].as_object().unwrap() {
            restored[key] = value.clone();
        }
        assert_eq!(restored["current_step"], checkpoint["step"]);
        assert_eq!(restored["status"], "in_progress");
        is_a_legal_path(&checkpoint["run_record"]);
    }
}

#[test]
fn d3_3_no_registry_names_a_checkpoint_that_is_pruned() {
    let home = TempProject::git();
    let project = home.open();
    start(&project, "r1", &format!("retention: {{ keep_last: 2 }}\n{}", flow_of(6)));
    let left = checkpoints(&home, "r1");
    assert_eq!(left.len(), 2);
    let registry = fs::read_to_string(folder(&home, "r1").join("artifact-registry.json")).unwrap();
    for gone in ["checkpoint-step", "out1.txt", "out4.txt"] {
        assert!(!registry.contains(gone), "{gone} in {registry}");
    }
    for step in ["s5", "s6"] {
        let kept = stagepost::flow::RunState::load(&project, &run_id("r1")).unwrap();
        assert!(kept.step(step).unwrap().current().is_some_and(|attempt| !attempt.pruned), "{step}");
    }
}

#[test]
fn d3_5_a_checkpoint_does_not_grow_with_the_number_of_those_before_it() {
    let home = TempProject::git();
    let project = home.open();
    // Steps that leave nothing: only checkpoints could make it grow.
    let steps: String = (1..=40).map(|at| format!("- {{ id: s{at:02}, run: 'true' }}\n")).collect();
    start(&project, "r1", &format!("name: demo\nretention: {{ keep_last: 40 }}\nsteps:\n{steps}"));
    let left = checkpoints(&home, "r1");
    assert_eq!(left.len(), 40);
    let size = |step: usize| {
        let prefix = format!("checkpoint-step-{step}-");
        let name = left.iter().find(|name| name.starts_with(&prefix)).unwrap();
        fs::metadata(folder(&home, "r1").join("checkpoints").join(name)).unwrap().len()
    };
    assert!(size(39).abs_diff(size(10)) < 16, "{} and {}", size(10), size(39));
}

#[test]
fn the_record_of_a_run_tells_failures_and_only_changes_that_the_design_allows() {
    let home = TempProject::git();
    let project = home.open();
    let flow = "name: demo\ndescription: what for\nsteps: [{id: a, run: 'true'}, {id: b, run: 'test -e go', retry: {attempts: 3, backoff: 1ms}}]";
    assert!(matches!(start(&project, "r1", flow), Outcome::Failed { .. }));
    let path = folder(&home, "r1").join("run.json");
    let run = read_json(&path);
    assert_eq!((&run["status"], &run["current_step"]), (&json!("failed"), &json!(1)));
    assert_eq!(run["step_retries"]["2"]["count"], 3);
    assert_eq!(run["step_retries"]["2"]["errors"].as_array().unwrap().len(), 3);
    assert_eq!(run["metadata"]["user_request"], "what for");
    assert!(run["timestamps"]["failed_at"].is_string() && run["timestamps"]["completed_at"].is_null());
    is_a_legal_path(&run);

    home.write("go", "");
    assert_eq!(resume(&project, "r1").unwrap(), Outcome::Completed);
    let run = read_json(&path);
    assert_eq!((&run["status"], &run["current_step"]), (&json!("completed"), &json!(2)));
    assert!(run["timestamps"].get("failed_at").is_none() && run["timestamps"]["completed_at"].is_string());
    is_a_legal_path(&run);
}

#[test]
fn a_run_that_waits_and_is_given_up_changes_as_the_design_allows() {
    let home = TempProject::git();
    let project = home.open();
    let flow = "name: demo\nsteps: [{id: a, run: 'true'}, {id: b, ask: { message: Go on? }}]";
    assert!(matches!(start(&project, "r1", flow), Outcome::Waiting { .. }));
    let path = folder(&home, "r1").join("run.json");
    assert_eq!(read_json(&path)["status"], "awaiting_approval");
    is_a_legal_path(&read_json(&path));
    stagepost::flow::Flows::of(&project).cancel(&run_id("r1"), "no need").unwrap();
    assert_eq!(read_json(&path)["status"], "cancelled");
    is_a_legal_path(&read_json(&path));
}

#[test]
fn files_that_a_crash_left_behind_are_brought_up_to_date() {
    let home = TempProject::git();
    let project = home.open();
    start(&project, "r1", &flow_of(2));
    let path = folder(&home, "r1").join("run.json");
    let good = fs::read(&path).unwrap();
    fs::write(&path, "{}").unwrap();
    assert!(view::catch_up(&project).unwrap().is_empty(), "nothing says that it is out of date");
    drop(project.begin_view("run:r1").unwrap());
    assert_eq!(view::catch_up(&project).unwrap(), [run_id("r1")]);
    assert_eq!(fs::read(&path).unwrap(), good);
    assert!(view::catch_up(&project).unwrap().is_empty());
}

#[test]
fn a_run_whose_files_could_not_be_marked_as_out_of_date_is_left_as_it_is() {
    let home = TempProject::git();
    let project = home.open();
    let flow = "name: demo\nsteps: [{id: a, run: 'test -f ready'}]";
    assert!(matches!(start(&project, "r1", flow), Outcome::Failed { .. }));
    let path = folder(&home, "r1").join("run.json");
    let usage = || project.store().usage().unwrap().entries;
    let before = (fs::read(&path).unwrap(), usage());
    let marks = project.place().store.join("views.pending");
    fs::remove_dir(&marks).unwrap();
    fs::write(&marks, "no folder").unwrap();
    home.write("ready", "");
    let flows = stagepost::flow::Flows::of(&project);
    let source = stagepost::flow::Source::read(flow, None).unwrap();
    let drive = || stagepost::flow::Drive::new(stagepost::process::Cancel::new().unwrap());
    for refused in [
        resume(&project, "r1").map(drop),
        flows.cancel(&run_id("r1"), "no need"),
        flows.start(&run_id("r2"), source, None, drive()).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(error.to_string().contains("views.pending"), "{error}");
        assert_eq!((fs::read(&path).unwrap(), usage()), before);
    }
    fs::remove_file(&marks).unwrap();
    assert_eq!(resume(&project, "r1").unwrap(), Outcome::Completed);
    assert_eq!(read_json(&path)["status"], "completed");
}

#[test]
fn while_a_step_runs_the_files_tell_of_those_before_it() {
    let home = TempProject::git();
    let project = home.open();
    let flow = "name: demo\nsteps: [{id: a, run: 'true'}, {id: b, run: \"for i in $(seq 400); do grep -s '\\\"current_step\\\": 1' .claude/context/runs/r1/run.json && cp -r .claude/context/runs/r1 seen && exit 0; sleep 0.05; done; exit 1\"}]";
    assert_eq!(start(&project, "r1", flow), Outcome::Completed);
    let seen = home.root().join("seen");
    let run = read_json(&seen.join("run.json"));
    assert_eq!(run["status"], "in_progress");
    is_a_legal_path(&run);
    assert_eq!(names(&seen.join("checkpoints")).len(), 1);
}

#[test]
fn a_flow_can_do_without_files_and_a_run_in_code_has_none() {
    let home = TempProject::git();
    let project = home.open();
    start(&project, "quiet", &format!("view: false\n{}", flow_of(1)));
    let run = stagepost::flow::Run::start(&project, &run_id("code"), Default::default()).unwrap();
    let one: u32 = run.step("a", || Ok::<_, std::io::Error>(1)).unwrap();
    run.finish().unwrap();
    view::publish(&project, &run_id("code")).unwrap();
    assert_eq!(one, 1);
    assert!(!home.root().join(".claude").exists());
}

#[test]
fn files_of_others_in_the_same_place_are_kept_and_git_sees_none_of_ours() {
    let home = TempProject::git();
    let project = home.open();
    let theirs = "{\"run_id\": \"r1\", \"status\": \"failed\"}";
    home.write(".claude/context/runs/r1/run.json", theirs);
    home.write(".claude/context/runs/r1/checkpoints/checkpoint-step-1-1.json", "{\"theirs\": 1}");
    home.write(".claude/context/runs/r1/notes.md", "theirs");
    start(&project, "r1", &flow_of(7));
    assert_eq!(read_json(&folder(&home, "r1").join("run.json"))["status"], "completed");
    assert!(checkpoints(&home, "r1").contains(&"checkpoint-step-1-1.json".to_owned()));
    assert_eq!(home.read(".claude/context/runs/r1/notes.md").unwrap(), "theirs");
    let set_aside = project.place().store.join("views.original");
    let kept: Vec<String> =
        names(&set_aside).iter().map(|name| fs::read_to_string(set_aside.join(name)).unwrap()).collect();
    assert_eq!(kept, [theirs]);
    assert!(!home.run_git(&["status", "--porcelain", "--untracked-files=all"]).contains("run.json"));
}

#[test]
fn a_link_out_of_the_project_is_not_followed() {
    let home = TempProject::git();
    let project = home.open();
    let outside = home.beside("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::create_dir_all(home.root().join(".claude")).unwrap();
    std::os::unix::fs::symlink(&outside, home.root().join(".claude/context")).unwrap();
    let source = stagepost::flow::Source::read(&flow_of(1), None).unwrap();
    let drive = stagepost::flow::Drive::new(stagepost::process::Cancel::new().unwrap());
    let _ = stagepost::flow::Flows::of(&project).start(&run_id("r1"), source, None, drive);
    assert!(view::publish(&project, &run_id("r1")).is_err());
    assert!(names(&outside).is_empty(), "{:?}", names(&outside));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1))]
    #[test]
    fn json_is_written_as_javascript_writes_it(values in prop::collection::vec(any_json(), 300)) {
        let lines: Vec<String> = values.iter().map(Value::to_string).collect();
        let script = r#"
            const lines = require("fs").readFileSync(0, "utf8").split("\n");
            console.log(lines.map(line => JSON.stringify(JSON.parse(line))).join("\n"));
            // What would drive a terminal is escaped where people read it.
            const code = c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0");
            const pretty = line => JSON.stringify(JSON.parse(line), null, 2).replace(/[\u007f\u2028]/g, code);
            console.log(lines.map(pretty).join("\n"));
        "#;
        if let Some(said) = independent("node", &["-e", script], &lines.join("\n")) {
            let mut expected: Vec<String> = values.iter().map(runs::compact).collect();
            expected.extend(values.iter().map(runs::pretty));
            prop_assert_eq!(said.trim_end(), expected.join("\n"));
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
        (-1000i64..1000).prop_map(|number| Value::from(number as f64 / 8.0)),
        "[ -~äß\u{1}\u{7f}\u{2028}😀\\\\\"]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a-c]{1,2}|[0-9]{1,3}|-1|01", inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
