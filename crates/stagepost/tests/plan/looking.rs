//! Looking at runs, comparing them, and giving up what is old.

use std::time::Duration;

use serde_json::{Value, json};
use stagepost::model::RunId;
use stagepost::plan::{Agents, Cause, History, Job, Plan, Policy, Scores, apply_prune, compare, plan_prune};
use stagepost::project::{Change, Project};
use stagepost_testutil::TempProject;

use crate::support::{Told, drive, job, job_with_files, new, scored, watch};

fn history(project: &Project, run: &RunId) -> History {
    Plan::open(project, run).unwrap().history().unwrap()
}

#[test]
fn scores_have_gaps_where_nothing_was_judged() {
    let home = TempProject::git();
    let project = home.open();
    let mut planner = Told::saying((0..4).map(|number| json!({"n": number})));
    let mut validator = Told::saying([true, false, true, true].map(|valid| json!({"valid": valid})));
    let mut judge = Told::saying([json!({"score": 3}), json!({"score": 6}), json!({"score": 6})]);
    let agents = Agents { planner: &mut planner, validator: Some(&mut validator), judge: &mut judge };
    let job = Job { max_iterations: 4, ..job() };
    let run = watch(&project, &new(&job), agents, &mut |_| {}).unwrap().run;
    let scores = Scores::of(&history(&project, &run));
    let shown: Vec<_> = scores
        .points
        .iter()
        .map(|point| (point.iteration, point.scored.and_then(|one| one.score), point.gap))
        .collect();
    assert_eq!(
        shown,
        [(1, Some(3.0), None), (2, None, Some("not valid")), (3, Some(6.0), None), (4, Some(6.0), None)]
    );
    assert_eq!(
        (scores.best, scores.sparkline().as_str()),
        (Some(3), "▃·▅▅"),
        "of two that are as good the first is best"
    );
    let svg = scores.svg();
    assert_eq!((svg.matches("class=\"score\"").count(), svg.matches("class=\"gap\"").count()), (3, 1));
    assert!(svg.contains("approve 7") && svg.contains("soft fail 5") && svg.contains("best 6"), "{svg}");
}

#[test]
fn iterations_are_compared_by_structure_within_a_run_and_across_runs() {
    let home = TempProject::git();
    let project = home.open();
    let run_with = |title: &str, scores: [u32; 2]| {
        let plans = [
            json!({"title": title, "sections": [1, 2, 3]}),
            json!({"title": title, "sections": [0, 1, 2, 3]}),
        ];
        let judged = scores.map(|score| json!({"score": score, "feedback": format!("{title} {score}"), "score_breakdown": {"pace": score}}));
        let job = Job { max_iterations: 2, ..job() };
        drive(&project, &new(&job), &mut Told::saying(plans), &mut Told::saying(judged)).unwrap().run
    };
    let (first, second) = (run_with("a", [5, 6]), run_with("b", [6, 9]));
    let within = compare(&project, (&first, 1), (&first, 2)).unwrap();
    assert_eq!(within.changes, [Change::Added { path: "/sections/0".into(), value: json!(0) }]);
    assert_eq!((&within.a.feedback, &within.b.feedback), (&json!("a 5"), &json!("a 6")));
    assert_eq!(
        (within.breakdown[0].name.as_str(), within.breakdown[0].a, within.breakdown[0].b),
        ("pace", Some(5.0), Some(6.0))
    );
    let across = compare(&project, (&first, 2), (&second, 2)).unwrap();
    assert_eq!(
        across.changes,
        [Change::Changed { path: "/title".into(), before: json!("a"), after: json!("b") }]
    );
    assert!(compare(&project, (&first, 1), (&first, 1)).unwrap().changes.is_empty());
    assert!(compare(&project, (&first, 1), (&first, 9)).is_err());
    let all = [history(&project, &first), history(&project, &second)];
    let best = History::best_of(&all).unwrap();
    assert_eq!((&best.run.id, best.best().unwrap().number), (&second, 2));
}

#[test]
fn old_iterations_go_and_finals_and_the_best_stay() {
    let home = TempProject::git();
    let project = home.open();
    let job = Job { max_iterations: 6, ..job_with_files() };
    let run = scored(&project, &new(&job), &[4.0, 6.0, 5.0, 5.0, 5.0, 5.0]).unwrap().run;
    let policy = Policy { keep: Some(2), max_age: None };
    let pruning = plan_prune(&project, None, &policy).unwrap();
    let gone: Vec<_> = pruning.prune.iter().map(|gone| (gone.iteration, gone.why)).collect();
    assert_eq!(gone, [1, 3, 4].map(|number| (number, Cause::Surplus)));
    assert_eq!((pruning.kept, pruning.spared), (3, 1));
    assert_eq!(plan_prune(&project, None, &policy).unwrap(), pruning, "deciding changes nothing");

    let archive = home.beside("archive");
    let done = apply_prune(&project, &pruning, Some(&archive)).unwrap();
    assert_eq!(done.archived.len(), 7, "three plans, three judgements and the list: {:?}", done.archived);
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(done.archived.last().unwrap()).unwrap()).unwrap();
    let first = &manifest["files"][0];
    let bytes = std::fs::read(archive.join(first["file"].as_str().unwrap())).unwrap();
    assert_eq!(first["blake3"], json!(stagepost::model::Hash::of(&bytes)));

    let history = history(&project, &run);
    assert_eq!(history.iterations.keys().copied().collect::<Vec<_>>(), [2, 5, 6]);
    assert_eq!((history.best().unwrap().number, history.tokens), (2, 660), "what was spent is not forgotten");
    assert!(history.end.is_some());
    let file = |number: u32| {
        home.root()
            .join(format!("artifacts/my_song/checkpoints/plans/my_song_{run}_iter{number:02}_raw.json"))
            .exists()
    };
    assert_eq!([1, 2, 3, 4, 5, 6].map(file), [false, true, false, false, true, true]);
    let mut damage = Vec::new();
    project.store().audit(&mut |found| damage.push(found)).unwrap();
    assert!(damage.is_empty(), "{damage:?}");
    assert!(plan_prune(&project, None, &policy).unwrap().prune.is_empty());
    // Scores still say which iterations there are, and which are not recorded any more.
    let gaps: Vec<_> = Scores::of(&history)
        .points
        .iter()
        .filter(|point| point.gap.is_some())
        .map(|point| point.iteration)
        .collect();
    assert_eq!(gaps, [3, 4]);

    // What was archived can be taken in elsewhere.
    let other = TempProject::git();
    let elsewhere = other.open();
    let plan = elsewhere.plan_import(&archive, Some(stagepost::formats::Format::Plans)).unwrap();
    assert_eq!(elsewhere.apply_import(&plan).unwrap(), 6);
    // And here again, where it went from; once, until it is pruned again.
    for _ in 0..2 {
        let plan = project.plan_import(&archive, None).unwrap();
        assert_eq!(project.apply_import(&plan).unwrap(), 6, "{:?}", plan.items);
        let again = project.plan_import(&archive, None).unwrap();
        assert!(again.items.iter().all(|item| item.known), "{:?}", again.items);
        let back = self::history(&project, &run);
        assert_eq!(back.iterations.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(back.iteration(3).unwrap().judgement.as_ref().unwrap().scored.score, Some(5.0));
        assert_eq!(back.best().unwrap().number, 2);
        apply_prune(&project, &plan_prune(&project, None, &policy).unwrap(), None).unwrap();
        project.apply_gc(&project.plan_gc(&Default::default()).unwrap()).unwrap();
    }
}

#[test]
fn by_age_what_is_new_pinned_or_needed_stays_and_changed_files_are_left() {
    let home = TempProject::git();
    let project = home.open();
    let job = Job { max_iterations: 3, ..job_with_files() };
    let run = scored(&project, &new(&job), &[6.0, 5.0, 5.0]).unwrap().run;
    let pinned = history(&project, &run).iteration(3).unwrap().raw.clone().unwrap();
    project.pin(&pinned).unwrap();
    let changed = format!("artifacts/my_song/checkpoints/plans/my_song_{run}_iter02_raw.json");
    home.write(&changed, "edited");
    assert!(
        plan_prune(&project, None, &Policy { keep: None, max_age: Some(Duration::from_secs(86_400)) })
            .unwrap()
            .prune
            .is_empty()
    );
    let pruning =
        plan_prune(&project, Some(&run), &Policy { keep: None, max_age: Some(Duration::ZERO) }).unwrap();
    assert_eq!(
        pruning.prune.iter().map(|gone| (gone.iteration, gone.why)).collect::<Vec<_>>(),
        [(2, Cause::Age)]
    );
    let done = apply_prune(&project, &pruning, None).unwrap();
    assert_eq!(done.left, [home.root().join(&changed)]);
    assert_eq!(home.read(&changed).as_deref(), Some("edited"));
}

#[test]
fn a_run_that_has_not_ended_keeps_what_it_goes_on_from() {
    let home = TempProject::git();
    let project = home.open();
    let mut planner = Told::new([Ok(json!({"a": 1})), Ok(json!({"a": 2})), Ok(json!({"a": 3})), Err("boom")]);
    let job = Job { max_iterations: 5, ..job() };
    let mut judge = Told::saying([6, 5, 5].map(|score| json!({"score": score})));
    assert!(drive(&project, &new(&job), &mut planner, &mut judge).is_err());
    let pruning = plan_prune(&project, None, &Policy { keep: Some(0), max_age: None }).unwrap();
    let gone: Vec<_> = pruning.prune.iter().map(|gone| gone.iteration).collect();
    assert_eq!(gone, [2, 3], "the best (1) and the newest (4, which has failures only) stay");
}
