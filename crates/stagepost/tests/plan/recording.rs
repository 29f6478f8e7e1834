//! Runs that someone else's loop makes.

use serde_json::json;
use stagepost::plan::{Error, Part, Payload, Plan, Settings, Standing, Status};
use stagepost::project::Project;
use stagepost_testutil::TempProject;

fn start(project: &Project) -> Plan<'_> {
    let settings = Settings {
        project_name: "my_song".into(),
        output_dir: Some("artifacts/my_song".into()),
        checkpoint: true,
    };
    Plan::start_run(project, &settings).unwrap()
}

fn plans(home: &TempProject, file: &str) -> Option<String> {
    home.read(&format!("artifacts/my_song/checkpoints/plans/{file}"))
}

#[test]
fn iterations_are_preserved_and_core_types_overwritten() {
    let home = TempProject::git();
    let project = home.open();
    let plan = start(&project);
    let run = plan.id().clone();
    for number in 1..=2 {
        plan.write_iteration_checkpoint(&Part::raw(), json!({"plan": {"n": number}}), number).unwrap();
        plan.write_iteration_checkpoint(
            &Part::evaluation(),
            json!({"evaluation": {"score": 4 + number}}),
            number,
        )
        .unwrap();
    }
    plan.write_checkpoint(&Part::audio(), json!({"tempo": 120})).unwrap();
    plan.write_checkpoint(&Part::audio(), json!({"tempo": 121})).unwrap();
    plan.write_checkpoint(&Part::sequence(), json!({"frames": []})).unwrap();
    plan.write_checkpoint(&"lyrics".parse().unwrap(), json!({"text": "é"})).unwrap();
    assert_eq!(Standing::of(&project, &plan.history().unwrap()), Standing::Open);
    plan.finish(Status::Success, json!({"plan": {"n": 2}, "iterations": 2})).unwrap();

    assert!(plans(&home, &format!("my_song_{run}_iter01_raw.json")).unwrap().contains("\"n\": 1"));
    assert!(plans(&home, "my_song_raw.json").unwrap().contains("\"n\": 2"));
    assert_eq!(
        plans(&home, "my_song_evaluation.json").unwrap(),
        "{\n  \"evaluation\": {\n    \"score\": 6\n  }\n}"
    );
    assert_eq!(
        home.read("artifacts/my_song/checkpoints/my_song_audio.json").unwrap(),
        "{\n  \"tempo\": 121\n}"
    );
    assert!(home.read("artifacts/my_song/checkpoints/my_song_sequence.json").is_some());
    assert_eq!(plans(&home, "my_song_lyrics.json").unwrap(), "{\n  \"text\": \"é\"\n}");
    assert!(
        plans(&home, "my_song_final.json").unwrap().starts_with("{\n  \"status\": \"SUCCESS\",\n  \"plan\"")
    );

    let history = plan.history().unwrap();
    assert_eq!(Standing::of(&project, &history), Standing::Success);
    assert_eq!(history.best().unwrap().number, 2);
    assert!(project.verify().unwrap().damage.is_empty());
}

#[test]
fn what_is_recorded_stays() {
    let home = TempProject::git();
    let project = home.open();
    let plan = start(&project);
    let first = plan.write_iteration_checkpoint(&Part::raw(), json!({"plan": 1}), 1).unwrap();
    let same = plan
        .write_iteration_checkpoint(&Part::raw(), Payload::read(b"{ \"plan\" : 1 }".to_vec()).unwrap(), 1)
        .unwrap();
    assert_eq!(same.id, first.id, "the same again changes nothing");
    let other = plan.write_iteration_checkpoint(&Part::raw(), json!({"plan": 2}), 1).unwrap_err();
    assert!(matches!(other, Error::Recorded { iteration: 1, .. }), "{other:?}");
    assert!(plan.write_iteration_checkpoint(&Part::raw(), json!({"plan": 2}), 0).is_err());
    assert!(matches!(plan.write_checkpoint(&Part::raw(), json!([1])), Err(Error::NoObject { .. })));
    for taken in ["job", "failure", "validation", "a/b", "../x", "", ".hidden", "a b"] {
        assert!(taken.parse::<Part>().is_err(), "{taken}");
    }
}

#[test]
fn two_processes_that_record_the_same_iteration_do_not_both_write_it() {
    let home = TempProject::git();
    let project = home.open();
    let run = start(&project).id().clone();
    let outcomes: Vec<bool> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|number| {
                let (home, run) = (&home, run.clone());
                scope.spawn(move || {
                    let project = home.open();
                    let plan = Plan::open(&project, &run).unwrap();
                    plan.write_iteration_checkpoint(&Part::raw(), json!({"plan": number}), 1).is_ok()
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert_eq!(outcomes.iter().filter(|written| **written).count(), 1, "{outcomes:?}");
    let listed = project.log(&stagepost::store::Query { run: Some(run), ..Default::default() }).unwrap();
    assert_eq!(listed.len(), 1);
}

#[test]
fn numbers_that_json_does_not_have_are_kept_byte_for_byte() {
    let home = TempProject::git();
    let project = home.open();
    let plan = start(&project);
    let given = b"{\"plan\": {\"energy\": [NaN, 0.50, -Infinity], \"note\": \"NaN\"}}";
    let saved =
        plan.write_iteration_checkpoint(&Part::raw(), Payload::read(given.to_vec()).unwrap(), 1).unwrap();
    assert_eq!(project.load(&saved, "raw").unwrap(), given);
    let file = plans(&home, &format!("my_song_{}_iter01_raw.json", plan.id())).unwrap();
    assert!(
        file.contains("      NaN,\n      0.5,\n      -Infinity\n"),
        "as the original program writes it: {file}"
    );
    let history = plan.history().unwrap();
    let read = history.plan(&project, history.iteration(1).unwrap()).unwrap();
    assert_eq!(read, json!({"energy": [null, 0.5, null], "note": "NaN"}), "for everyone else");
    let same =
        plan.write_iteration_checkpoint(&Part::raw(), Payload::read(given.to_vec()).unwrap(), 1).unwrap();
    assert_eq!(same.id, saved.id);
    let other = plan.write_iteration_checkpoint(
        &Part::raw(),
        json!({"plan": {"energy": [null, 0.5, null], "note": "NaN"}}),
        1,
    );
    assert!(other.is_err(), "null is not NaN");
}

#[test]
fn files_go_where_the_job_says_or_nowhere() {
    let home = TempProject::git();
    let project = home.open();
    let settings = |output_dir: Option<&str>, checkpoint| Settings {
        project_name: "my_song".into(),
        output_dir: output_dir.map(Into::into),
        checkpoint,
    };
    assert!(matches!(Plan::start_run(&project, &settings(None, true)), Err(Error::NoOutputDir)));
    assert!(matches!(Plan::start_run(&project, &settings(Some(""), true)), Err(Error::NoOutputDir)));
    assert!(matches!(
        Plan::start_run(&project, &settings(Some("../elsewhere"), true)),
        Err(Error::Outside { .. })
    ));
    let off = Plan::start_run(&project, &settings(Some("out"), false)).unwrap();
    off.write_iteration_checkpoint(&Part::raw(), json!({"plan": 1}), 1).unwrap();
    assert!(!home.root().join("out").exists() && !home.root().join("None").exists());

    // Someone who names a folder in full may have the files anywhere; what stood there is kept.
    let elsewhere = home.beside("elsewhere");
    std::fs::create_dir_all(elsewhere.join("checkpoints/plans")).unwrap();
    std::fs::write(elsewhere.join("checkpoints/plans/my_song_raw.json"), "of someone else").unwrap();
    let outside = Plan::start_run(&project, &settings(elsewhere.to_str(), true)).unwrap();
    outside.write_iteration_checkpoint(&Part::raw(), json!({"plan": 1}), 1).unwrap();
    let written = std::fs::read_to_string(elsewhere.join("checkpoints/plans/my_song_raw.json")).unwrap();
    assert_eq!(written, "{\n  \"plan\": 1\n}");
    let kept = std::fs::read_dir(project.place().store.join("views.original")).unwrap();
    let kept: Vec<_> = kept.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    assert_eq!(kept, ["of someone else"]);
    assert_eq!(home.run_git(&["status", "--porcelain"]), "");
}
