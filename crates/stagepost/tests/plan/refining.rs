//! The loop: who is asked what, and how it ends.

use serde_json::{Value, json};
use stagepost::formats::plans::Verdict;
use stagepost::plan::{Agents, Error, HardFail, Plan, Progress, Retry, Span, Standing};
use stagepost_testutil::TempProject;

use crate::support::{Told, drive, job, judge, new, planner, resume, scored, watch};

#[test]
fn it_goes_round_until_a_plan_is_approved() {
    let home = TempProject::git();
    let outcome = scored(&home.open(), &new(&job()), &[4.0, 6.0, 7.0]).unwrap();
    assert!(outcome.approved);
    assert_eq!((outcome.iterations, outcome.best, outcome.tokens), (3, Some(3), 330));
    assert_eq!(outcome.last["status"], "SUCCESS");
    assert_eq!(outcome.last["plan"]["sections"].as_array().unwrap().len(), 3);
    assert_eq!(outcome.last["evaluation"]["score"], 7.0);
    assert_eq!(outcome.run.as_str().len(), 8);
    assert!(outcome.run.as_str().bytes().all(|byte| byte.is_ascii_hexdigit()));
}

#[test]
fn the_best_attempt_is_kept_when_nothing_is_approved() {
    let home = TempProject::git();
    let project = home.open();
    let outcome = scored(&project, &new(&job()), &[4.0, 6.5, 6.0]).unwrap();
    assert!(!outcome.approved);
    assert_eq!((outcome.best, outcome.reason.as_deref()), (Some(2), Some("max iterations reached")));
    let last = &outcome.last;
    assert_eq!((&last["status"], &last["best_score"]), (&json!("INCOMPLETE"), &json!(6.5)));
    assert_eq!(
        last["plan"]["sections"].as_array().unwrap().len(),
        2,
        "the plan of the best, not of the last"
    );
    assert!(last.get("evaluation").is_none());
    let history = Plan::open(&project, &outcome.run).unwrap().history().unwrap();
    assert_eq!(Standing::of(&project, &history), Standing::Incomplete);
    assert_eq!(
        history.iteration(1).unwrap().judgement.as_ref().unwrap().scored.verdict,
        Some(Verdict::HardFail)
    );
}

#[test]
fn the_planner_hears_what_the_judge_said() {
    let home = TempProject::git();
    let mut planner = Told::saying([json!({"sections": [1]}), json!({"sections": [1, 2]})]);
    let mut judge = Told::saying([
        json!({"decision": "SOFT_FAIL", "score": 6, "feedback_for_planner": "slower", "issues": [
            {"severity": "ERROR", "category": "pace", "message": "too fast", "fix_hint": "halve the tempo"},
        ]}),
        json!({"decision": "APPROVE", "score": 9}),
    ]);
    let job = stagepost::plan::Job { input: json!({"song": "x"}), ..job() };
    let outcome = drive(&home.open(), &new(&job), &mut planner, &mut judge).unwrap();
    let run = outcome.run.as_str();
    assert_eq!(
        planner.asked[0],
        json!({"run_id": run, "iteration": 1, "input": {"song": "x"}, "previous": null, "feedback": null, "revision_request": null})
    );
    let second = &planner.asked[1];
    assert_eq!((&second["iteration"], &second["feedback"]), (&json!(2), &json!("slower")));
    assert_eq!(second["previous"]["plan"], json!({"sections": [1]}));
    assert_eq!(second["previous"]["evaluation"]["score"], 6);
    assert_eq!(second["revision_request"]["priority"], "HIGH");
    assert_eq!(second["revision_request"]["specific_fixes"], json!(["halve the tempo"]));
    assert_eq!(
        judge.asked[1],
        json!({"run_id": run, "iteration": 2, "input": {"song": "x"}, "plan": {"sections": [1, 2]}})
    );
}

#[test]
fn a_plan_that_is_not_valid_is_not_judged_and_the_planner_hears_why() {
    let home = TempProject::git();
    let project = home.open();
    let mut planner = Told::saying([json!({"bad": 1}), json!({"good": 1})]);
    let mut validator =
        Told::saying([json!({"valid": false, "errors": ["no title"]}), json!({"valid": true})]);
    let mut judge = Told::saying([json!({"score": 8})]);
    let agents = Agents { planner: &mut planner, validator: Some(&mut validator), judge: &mut judge };
    let mut seen = Vec::new();
    let outcome = watch(&project, &new(&job()), agents, &mut |progress| {
        if let Progress::Validated { iteration, errors } = progress {
            seen.push((*iteration, errors.is_none()));
        }
    });
    let outcome = outcome.unwrap();
    assert_eq!((outcome.approved, outcome.iterations, seen), (true, 2, vec![(1, false), (2, true)]));
    assert_eq!(planner.asked[1]["feedback"], json!(["no title"]));
    assert_eq!(planner.asked[1]["previous"], json!({"plan": {"bad": 1}, "evaluation": null}));
    assert_eq!(judge.asked.len(), 1);
    let history = Plan::open(&project, &outcome.run).unwrap().history().unwrap();
    let first = history.iteration(1).unwrap();
    assert!(first.raw.is_some() && first.judgement.is_none());
    assert_eq!(first.validation.as_ref().unwrap().errors, ["no title"]);
}

#[test]
fn what_will_not_do_is_revised_begun_anew_or_ends_the_run_as_the_job_says() {
    let second_request = |on_hard_fail| {
        let home = TempProject::git();
        let mut planner = Told::saying([json!({"a": 1}), json!({"a": 2})]);
        let mut judge = Told::saying([json!({"score": 1, "feedback": "no"}), json!({"score": 8})]);
        let job = stagepost::plan::Job { on_hard_fail, ..job() };
        let outcome = drive(&home.open(), &new(&job), &mut planner, &mut judge).unwrap();
        (
            outcome.approved,
            outcome.reason,
            planner.asked.get(1).map(|asked| asked["previous"].clone()),
            planner.asked.get(1).map(|asked| asked["feedback"].clone()),
        )
    };
    let (approved, _, previous, _) = second_request(HardFail::Revise);
    assert_eq!((approved, &previous.unwrap()["plan"]), (true, &json!({"a": 1})));
    let (approved, _, previous, feedback) = second_request(HardFail::Restart);
    assert_eq!((approved, previous, feedback), (true, Some(Value::Null), Some(json!("no"))));
    let (approved, reason, previous, _) = second_request(HardFail::Stop);
    assert_eq!((approved, reason.as_deref(), previous), (false, Some("hard fail"), None));
}

#[test]
fn a_budget_of_tokens_or_time_ends_it_with_the_best_so_far() {
    let home = TempProject::git();
    let project = home.open();
    let tokens = stagepost::plan::Job { token_budget: Some(200), max_iterations: 9, ..job() };
    let outcome = scored(&project, &new(&tokens), &[6.0; 9]).unwrap();
    assert_eq!(
        (outcome.iterations, outcome.tokens, outcome.reason.as_deref()),
        (2, 210, Some("token budget exceeded"))
    );
    assert_eq!(outcome.best, Some(1));
    // The scripted clock moves by a second each time it is asked: every call takes one.
    let time =
        stagepost::plan::Job { time_budget: Some(Span::Text("5s".into())), max_iterations: 9, ..job() };
    let outcome = scored(&project, &new(&time), &[6.0; 9]).unwrap();
    assert_eq!((outcome.iterations, outcome.reason.as_deref()), (3, Some("time budget exceeded")));
    assert_eq!(outcome.best, Some(1));
    let never = stagepost::plan::Job { token_budget: Some(0), ..job() };
    let outcome = scored(&project, &new(&never), &[]).unwrap();
    assert_eq!((outcome.iterations, &outcome.last["plan"]), (0, &Value::Null));
}

#[test]
fn a_run_that_ended_too_early_goes_on_when_it_is_given_more() {
    let home = TempProject::git();
    let project = home.open();
    let first = scored(&project, &new(&job()), &[4.0, 5.0, 6.0]).unwrap();
    let more = stagepost::plan::Job { max_iterations: 5, ..job() };
    let outcome = scored(&project, &resume(&more, &first.run), &[4.0, 5.0, 6.0, 8.0]).unwrap();
    assert_eq!((outcome.approved, outcome.iterations, outcome.best), (true, 4, Some(4)));
    let again =
        drive(&project, &resume(&more, &first.run), &mut Told::saying([]), &mut Told::saying([])).unwrap();
    assert_eq!(again.last, outcome.last, "a run that is approved is over");
}

#[test]
fn who_fails_is_asked_again_as_often_as_the_job_says() {
    let home = TempProject::git();
    let project = home.open();
    let retry = Retry { attempts: 3, backoff: Span::Text("1ms".into()) };
    let job = stagepost::plan::Job { retry, ..job() };
    let mut planner = Told::new([Err("first"), Err("second"), Ok(json!({"a": 1}))]);
    // A judgement without a verdict is no answer.
    let mut judge = Told::saying([json!({"comment": "hm"}), json!({"score": 8})]);
    let outcome = drive(&project, &new(&job), &mut planner, &mut judge).unwrap();
    assert!(outcome.approved);
    let history = Plan::open(&project, &outcome.run).unwrap().history().unwrap();
    let calls: Vec<_> =
        history.iteration(1).unwrap().failures.iter().filter_map(stagepost::plan::Call::of).collect();
    let told: Vec<_> =
        calls.iter().map(|call| (call.role.as_str(), call.attempt, call.fault.as_deref().unwrap())).collect();
    assert_eq!(
        told,
        [
            ("planner", 1, "first"),
            ("planner", 2, "second"),
            ("judge", 1, "it says neither a decision nor a score")
        ]
    );
}

#[test]
fn a_run_whose_planner_fails_can_be_resumed() {
    let home = TempProject::git();
    let project = home.open();
    let mut planner = Told::new([Ok(json!({"a": 1})), Err("out of memory"), Ok(json!({"a": 2}))]);
    let failed = drive(&project, &new(&job()), &mut planner, &mut judge(&[5.0, 8.0])).unwrap_err();
    let Error::Agent { run, iteration: 2, what, .. } = failed else { panic!("{failed:?}") };
    assert_eq!(what, "out of memory");
    let history = Plan::open(&project, &run).unwrap().history().unwrap();
    assert_eq!(Standing::of(&project, &history), Standing::Failed);
    let outcome = drive(&project, &resume(&job(), &run), &mut planner, &mut judge(&[5.0, 8.0])).unwrap();
    assert_eq!((outcome.approved, outcome.iterations, planner.asked.len()), (true, 2, 3));
}

#[test]
fn a_job_that_cannot_work_is_refused_before_anything_is_recorded() {
    let home = TempProject::git();
    let project = home.open();
    let base = job();
    let wrong = [
        stagepost::plan::Job { max_iterations: 0, ..base.clone() },
        stagepost::plan::Job { approve_at: 4.0, ..base.clone() },
        stagepost::plan::Job { approve_at: f64::NAN, ..base.clone() },
        stagepost::plan::Job { timeout: Some(Span::Text("soon".into())), ..base.clone() },
        stagepost::plan::Job { timeout: Some(Span::Seconds(-1.0)), ..base.clone() },
        stagepost::plan::Job { project_name: Some("a/b".into()), ..base.clone() },
        stagepost::plan::Job { project_name: None, ..base.clone() },
        stagepost::plan::Job { checkpoint: true, ..base.clone() },
        stagepost::plan::Job { output_dir: Some("../out".into()), checkpoint: true, ..base },
    ];
    for job in wrong {
        assert!(drive(&project, &new(&job), &mut planner, &mut judge(&[8.0])).is_err(), "{job:?}");
    }
    assert!(project.runs().unwrap().is_empty());
}

#[test]
fn a_score_that_is_none_or_off_its_scale_is_told_as_that() {
    let home = TempProject::git();
    let project = home.open();
    let mut job = job();
    job.retry = Retry { attempts: 5, backoff: Span::Text("1ms".into()) };
    let mut judge = Told::saying([
        json!({"score": 12, "score_max": 10, "decision": "APPROVE"}),
        json!({"score": 1e308}),
        json!({"score": "\u{f8ff}NaN\u{f8ff}"}),
        json!({"score": "8"}),
        json!({"score": 8}),
    ]);
    let mut planner = Told::new([Ok(json!({"a": 1}))]);
    let run = drive(&project, &new(&job), &mut planner, &mut judge).unwrap().run;
    let history = Plan::open(&project, &run).unwrap().history().unwrap();
    let told: Vec<_> = history
        .iteration(1)
        .unwrap()
        .failures
        .iter()
        .filter_map(stagepost::plan::Call::of)
        .filter_map(|call| call.fault)
        .collect();
    assert_eq!(
        told,
        [
            "its score 12 is not between 0 and 10",
            "its score 1e+308 is not between 0 and 100",
            "its score NaN is not a number",
            "its score \"8\" is not a number",
        ]
    );
}
