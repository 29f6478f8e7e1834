//! Taking in what the original program left: three generations, two layouts, sound or broken.

use serde_json::json;
use stagepost::formats::Format;
use stagepost::formats::plans::Verdict;
use stagepost::plan::{History, Plan, Standing, export};
use stagepost::project::{ImportPlan, Project};
use stagepost_testutil::TempProject;

const AT: &str = "artifacts/my_song/checkpoints";

fn import(home: &TempProject, project: &Project) -> ImportPlan {
    let plan = project.plan_import(&home.beside("old"), None).unwrap();
    project.apply_import(&plan).unwrap();
    plan
}

/// Writes a file as the original program would have.
fn old(home: &TempProject, path: &str, text: &str) {
    home.write(&format!("../old/{path}"), text);
}

fn only(project: &Project) -> History {
    let all = Plan::all(project).unwrap();
    assert_eq!(all.len(), 1, "{:?}", all.iter().map(|plan| plan.id().to_string()).collect::<Vec<_>>());
    all[0].history().unwrap()
}

#[test]
fn the_oldest_files_have_no_runs_and_scores_of_a_hundred() {
    let home = TempProject::git();
    old(&home, &format!("{AT}/plans/my_song_raw.json"), r#"{"sections": []}"#);
    old(&home, &format!("{AT}/plans/my_song_implementation.json"), r#"{"steps": []}"#);
    let evaluation = r#"{"overall_score": 90.61, "pass_threshold": true, "category_scores": [{"category": "pace", "score": 88.0}], "summary": "good"}"#;
    old(&home, &format!("{AT}/plans/my_song_evaluation.json"), evaluation);
    old(
        &home,
        &format!("{AT}/plans/my_song_final.json"),
        r#"{"status": "SUCCESS", "plan": {}, "tokens_used": 5, "execution_time_s": 1.5}"#,
    );
    old(&home, &format!("{AT}/my_song_audio.json"), r#"{"tempo": NaN}"#);
    let project = home.open();
    let plan = import(&home, &project);
    assert_eq!(plan.items.len(), 5);
    let history = only(&project);
    assert_eq!(history.about.project, "my_song");
    assert_eq!(Standing::of(&project, &history), Standing::Success);
    assert_eq!((history.tokens, history.seconds), (5, 1.5), "what it cost is told at its end");
    assert_eq!(
        history.core.keys().map(String::as_str).collect::<Vec<_>>(),
        ["audio", "evaluation", "final", "implementation", "raw"]
    );
    let kept = project.load(&history.core["audio"], "original").unwrap();
    assert_eq!(kept, br#"{"tempo": NaN}"#);
}

#[test]
fn iterations_come_with_their_runs_scores_and_verdicts() {
    let home = TempProject::git();
    let file = |number: u32, part: &str, body: &str| {
        let text = format!(
            r#"{{"run_id": "a3f9b2c1", "iteration": {number}, "checkpoint_type": "{part}", {body}}}"#
        );
        old(&home, &format!("{AT}/plans/my_song_a3f9b2c1_iter{number:02}_{part}.json"), &text);
    };
    file(1, "raw", r#""plan": {"a": 1}"#);
    file(
        1,
        "evaluation",
        r#""evaluation": {"decision": "SOFT_FAIL", "score": 6}, "plan_sections": 5, "score": 6, "decision": "SOFT_FAIL""#,
    );
    file(2, "raw", r#""plan": {"a": 2}"#);
    file(3, "raw", r#""plan": {"a": 3}"#);
    file(3, "evaluation", r#""evaluation": {"status": "SOFT_FAIL", "score": 7.5}"#);
    old(
        &home,
        &format!("{AT}/plans/my_song_final.json"),
        r#"{"status": "INCOMPLETE", "plan": {"a": 3}, "reason": "max"}"#,
    );
    let project = home.open();
    import(&home, &project);
    let history = only(&project);
    assert_eq!(history.run.id.as_str(), "a3f9b2c1");
    let told: Vec<_> = history
        .iterations
        .values()
        .map(|one| (one.number, one.judgement.as_ref().and_then(|said| said.scored.verdict)))
        .collect();
    assert_eq!(told, [(1, Some(Verdict::SoftFail)), (2, None), (3, Some(Verdict::Approve))]);
    assert_eq!(
        history.end.as_ref().unwrap().reason.as_deref(),
        Some("max"),
        "what names no run belongs to the newest there"
    );
    let plan = history.plan(&project, history.iteration(2).unwrap()).unwrap();
    assert_eq!(plan, json!({"a": 2}));
}

#[test]
fn importing_again_takes_in_only_what_is_new() {
    let home = TempProject::git();
    let path = |number: u32| format!("{AT}/plans/my_song_a3f9b2c1_iter{number:02}_raw.json");
    let text = |number: u32| {
        format!(
            r#"{{"run_id": "a3f9b2c1", "iteration": {number}, "checkpoint_type": "raw", "plan": {number}}}"#
        )
    };
    old(&home, &path(1), &text(1));
    let project = home.open();
    assert_eq!(import(&home, &project).items.iter().filter(|item| !item.known).count(), 1);
    assert_eq!(import(&home, &project).items.iter().filter(|item| !item.known).count(), 0);
    old(&home, &path(2), &text(2));
    let plan = import(&home, &project);
    assert_eq!(plan.items.iter().map(|item| item.known).collect::<Vec<_>>(), [true, false]);
    assert_eq!(only(&project).iterations.len(), 2);
}

#[test]
fn the_newest_layout_is_found_by_what_lies_beside_it_and_unfinished_entries_are_not_there() {
    let home = TempProject::git();
    let entry = |key: &str, part: &str, artifact: &str, finished: bool| {
        let folder = format!("cache/checkpoints/default/agent.{part}/{key}");
        old(&home, &format!("{folder}/artifact.json"), artifact);
        if finished {
            let meta = format!(
                r#"{{"domain": "checkpoints", "session_id": null, "step_id": "agent.{part}", "step_version": "1", "input_fingerprint": "{key}", "created_at": 1767225600.25, "artifact_model": "dict"}}"#
            );
            old(&home, &format!("{folder}/meta.json"), &meta);
        }
    };
    entry(
        "my_song_a3f9b2c1_iter01",
        "raw",
        r#"{"run_id": "a3f9b2c1", "iteration": 1, "checkpoint_type": "raw", "plan": {"a": 1}}"#,
        true,
    );
    entry(
        "my_song_a3f9b2c1_iter01",
        "evaluation",
        r#"{"run_id": "a3f9b2c1", "iteration": 1, "checkpoint_type": "evaluation", "evaluation": {"status": "APPROVE", "score": 4}}"#,
        true,
    );
    entry("my_song_a3f9b2c1_iter02", "raw", r#"{"plan": "cut off"#, false);
    entry("my_song", "final", r#"{"status": "SUCCESS", "plan": {}}"#, true);
    let project = home.open();
    assert_eq!(import(&home, &project).items.len(), 3);
    let history = only(&project);
    assert_eq!(history.iterations.len(), 1);
    let said = history.iteration(1).unwrap().judgement.as_ref().unwrap();
    assert_eq!(said.scored.verdict, Some(Verdict::HardFail), "the score overrides the status");
    assert_eq!(said.checkpoint.created_at.to_string(), "2026-01-01T00:00:00.250000Z");
    assert!(history.end.is_some());
}

#[test]
fn what_is_broken_is_taken_in_and_flagged() {
    let home = TempProject::git();
    old(
        &home,
        &format!("{AT}/plans/my_song_a3f9b2c1_iter01_raw.json"),
        r#"{"run_id": "a3f9b2c1", "iteration": 1, "plan": {"#,
    );
    old(&home, &format!("{AT}/plans/my_song_a3f9b2c1_iter02_raw.json"), "[1, 2]");
    // The JSON says that there is no run: the project is called so.
    old(
        &home,
        &format!("{AT}/plans/my_song_deadbeef_iter01_raw.json"),
        r#"{"run_id": null, "iteration": 1, "checkpoint_type": "raw", "plan": 1}"#,
    );
    let project = home.open();
    let plan = import(&home, &project);
    let told: Vec<_> = plan.items.iter().map(|item| (item.id.as_str(), item.integrity.as_str())).collect();
    assert_eq!(
        told,
        [
            ("my_song_a3f9b2c1_iter01_raw.json", "mismatch(json)"),
            ("my_song_a3f9b2c1_iter02_raw.json", "mismatch(object)"),
            ("my_song_deadbeef_iter01_raw.json", "ok"),
        ]
    );
    assert_eq!(plan.items[2].findings, ["it names no run"]);
    let projects: Vec<_> =
        Plan::all(&project).unwrap().iter().map(|plan| plan.about().project.clone()).collect();
    assert_eq!(projects, ["my_song", "my_song_deadbeef"]);
    assert_eq!(
        project
            .load(&only_of(&project, "a3f9b2c1").iteration(1).unwrap().raw.clone().unwrap(), "original")
            .unwrap(),
        br#"{"run_id": "a3f9b2c1", "iteration": 1, "plan": {"#
    );
}

fn only_of(project: &Project, run: &str) -> History {
    Plan::find(project, run).unwrap().history().unwrap()
}

#[test]
fn what_was_imported_is_exported_byte_for_byte() {
    let home = TempProject::git();
    let files = [
        (
            format!("{AT}/plans/my_song_a3f9b2c1_iter01_raw.json"),
            "{\"run_id\": \"a3f9b2c1\",\n\"iteration\": 1, \"checkpoint_type\": \"raw\", \"plan\": {\"e\": [NaN, 1.50]}, \"extra\": 1}",
        ),
        (
            format!("{AT}/plans/my_song_iter02_raw.json"),
            "{\"run_id\": null, \"iteration\": 2, \"checkpoint_type\": \"raw\", \"plan\": {}}",
        ),
        (format!("{AT}/plans/my_song_final.json"), "{\"status\": \"SUCCESS\", \"plan\": {}}\n"),
        (format!("{AT}/my_song_audio.json"), "{\"tempo\": Infinity}"),
    ];
    files.iter().for_each(|(path, text)| old(&home, path, text));
    let project = home.open();
    import(&home, &project);
    let to = home.beside("export");
    let written = export(&project, &to).unwrap();
    assert_eq!(written.len(), files.len(), "{written:?}");
    for (path, text) in files {
        let path = to.join(path.strip_prefix("artifacts/").unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{}", path.display());
    }
}

#[test]
fn our_own_files_are_no_news_and_neither_is_their_export() {
    let home = TempProject::git();
    let project = home.open();
    crate::support::scored(&project, &crate::support::new(&crate::support::job_with_files()), &[8.0])
        .unwrap();
    let nothing = project.plan_import(home.root(), None);
    assert!(nothing.is_err(), "{nothing:?}");
    let to = home.beside("export");
    export(&project, &to).unwrap();
    let plan = project.plan_import(&to, Some(Format::Plans)).unwrap();
    assert!(plan.items.iter().all(|item| item.known), "{:?}", plan.items);
}
