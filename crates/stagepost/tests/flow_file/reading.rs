//! What a flow file says.

use std::time::Duration;

use serde_json::json;
use stagepost::flow::definition::{Action, Command, Effects, Flow, OnFailure, Source, StepResult, Target};
use stagepost::flow::definition::{Scope, StepId};
use stagepost::gate::Outcome;
use stagepost::model::StepStatus;
use stagepost::reply;

pub(super) const RELEASE: &str = r#"
name: release-notes
env: { MODEL: small, VERSION: 1.10, DEBUG: false }
retention: { keep_last: 7 }
steps:
  - id: collect
    run: ./collect.sh
    outputs: [commits.json, { name: log, path: .cache/collect.log }]
  - id: draft
    needs: [collect]
    refine:
      planner: ./draft.py
      judge: [python3, judge.py, 3]
      max_iterations: 4
  - id: approve
    ask:
      kind: present_final
      message: "Publish these notes?"
      data: draft.final
      on: { approve: publish, refine: draft, back: collect, cancel: end }
      expires: { after: 2d, as: cancel }
  - id: publish
    name: Put it out
    run: ./publish.sh
    env: { MODEL: large }
    secrets: [TOKEN]
    retry: { attempts: 3, backoff: 2s, on_exit: [1, 75] }
    timeout: 5m
    if: draft.score >= 7 && !input.dry_run
    on_failure: { goto: collect }
    effects: once
    verify: ./is-published.sh
"#;

#[test]
fn a_flow_says_everything_about_its_steps() {
    let flow = Flow::read(RELEASE).unwrap();
    assert_eq!((flow.name.as_str(), flow.retention.keep_last, flow.view), ("release-notes", 7, true));

    let [collect, draft, approve, publish] = flow.steps.as_slice() else { panic!("four steps") };
    assert_eq!(collect.action, Action::Run(Command::Shell("./collect.sh".into())));
    assert_eq!(collect.needs, []);
    let outputs: Vec<(&str, &str)> =
        collect.outputs.iter().map(|output| (output.name.as_str(), output.path.as_str())).collect();
    assert_eq!(outputs, [("commits.json", "commits.json"), ("log", ".cache/collect.log")]);

    let Action::Refine(refine) = &draft.action else { panic!("draft refines") };
    assert_eq!(refine.judge, Command::Argv(vec!["python3".into(), "judge.py".into(), "3".into()]));
    assert_eq!((refine.max_iterations, refine.approve_at, refine.soft_fail_at), (4, 7.0, 5.0));

    let Action::Ask(ask) = &approve.action else { panic!("approve asks") };
    assert_eq!(ask.prompt.kind, reply::Kind::PresentFinal);
    assert_eq!(ask.data, Some(Source::Reference("draft.final".parse().unwrap())));
    assert_eq!(ask.on[3], (reply::Action::Cancel, Target::End));
    assert_eq!(ask.expires, Some((Duration::from_secs(2 * 86_400), Outcome::Cancel)));
    assert_eq!(approve.needs, [StepId::new("draft").unwrap()], "without needs it comes after the one above");

    assert_eq!(publish.name, "Put it out");
    assert_eq!((publish.timeout, publish.retry.attempts), (Some(Duration::from_secs(300)), 3));
    assert_eq!((publish.effects, &publish.secrets), (Effects::Once, &vec!["TOKEN".to_owned()]));
    assert_eq!(publish.on_failure, OnFailure::GoTo(StepId::new("collect").unwrap()));
}

#[test]
fn the_environment_of_the_flow_is_inherited_as_it_is_written() {
    let flow = Flow::read(RELEASE).unwrap();
    let of = |id: &str, name: &str| flow.step(id).unwrap().env[name].clone();
    assert_eq!((of("collect", "MODEL"), of("publish", "MODEL")), ("small".into(), "large".into()));
    assert_eq!((of("draft", "VERSION"), of("draft", "DEBUG")), ("1.10".into(), "false".into()));
}

#[test]
fn json_is_a_flow_file_too() {
    let flow = Flow::read(
        r#"{"name": "x", "steps": [{"id": "a", "run": ["true"]}, {"id": "b", "run": "true", "needs": []}]}"#,
    );
    let flow = flow.unwrap();
    assert!(flow.steps[1].needs.is_empty());
}

#[test]
fn anchors_and_merges_work_as_in_any_yaml() {
    let flow = Flow::read(
        "name: x\nsteps:\n  - &first { id: a, run: 'true', timeout: 5s }\n  - { <<: *first, id: b, needs: [a] }\n",
    );
    assert_eq!(flow.unwrap().steps[1].timeout, Some(Duration::from_secs(5)));
}

#[test]
fn steps_come_after_what_they_need_and_otherwise_as_written() {
    let flow = Flow::read(
        "name: x\nsteps:\n- {id: late, run: a, needs: [middle]}\n- {id: early, run: a, needs: []}\n- {id: middle, run: a, needs: []}\n",
    )
    .unwrap();
    let order: Vec<&str> = flow.order().iter().map(|step| step.id.as_str()).collect();
    assert_eq!(order, ["early", "middle", "late"]);
    assert_eq!((flow.number("late"), flow.number("nobody")), (Some(1), None));
}

#[test]
fn what_is_given_goes_over_the_input_of_the_file() {
    let flow = Flow::read("name: x\ninput: {a: 1, b: 2}\nsteps: [{id: s, run: a}]").unwrap();
    assert_eq!(flow.input_with(None), json!({"a": 1, "b": 2}));
    assert_eq!(flow.input_with(Some(json!({"b": 3}))), json!({"a": 1, "b": 3}));
    assert_eq!(flow.input_with(Some(json!([1]))), json!([1]));
}

#[test]
fn a_fingerprint_changes_with_what_decides_over_the_result_and_with_nothing_else() {
    let of = |extra: &str| {
        let file = format!("name: x\nsteps: [{{id: a, run: 'true'}}, {{id: s, run: make, {extra}}}]");
        Flow::read(&file).unwrap().steps[1].canonical()
    };
    let plain = of("");
    for same in [
        "name: N",
        "description: D",
        "timeout: 5s",
        "retry: {attempts: 3}",
        "on_failure: continue",
        "snapshot: true",
        "effects: once",
    ] {
        assert_eq!(of(same), plain, "{same}");
    }
    for other in [
        "cwd: web",
        "env: {A: b}",
        "secrets: [A]",
        "needs: []",
        "if: input.x",
        "inputs: [a]",
        "outputs: [a]",
        "for_each: {list: [1]}",
    ] {
        assert_ne!(of(other), plain, "{other}");
    }
}

#[test]
fn a_step_sees_the_results_of_others_by_their_names() {
    let mut scope = Scope::new(json!({"tag": "v1"}));
    let output = json!({"score": 8, "status": "mine", "files": ["a", "b"]});
    let result = StepResult { status: StepStatus::Completed, exit: Some(0), attempt: 2, output };
    scope.add(&StepId::new("draft").unwrap(), &result);
    let document = scope.for_item(1, json!("b")).document();
    let find = |reference: &str| Source::Reference(reference.parse().unwrap()).value(&document);
    assert_eq!(find("draft.score"), Some(json!(8)));
    assert_eq!(find("draft.files.1"), Some(json!("b")));
    assert_eq!(find("draft.status"), Some(json!("completed")), "how it ended is not for it to say");
    assert_eq!(find("draft.output.status"), Some(json!("mine")));
    assert_eq!(
        (find("item"), find("index"), find("input.tag")),
        (Some(json!("b")), Some(json!(1)), Some(json!("v1")))
    );
    assert_eq!(find("draft.files.2"), None);
}

#[test]
fn retries_wait_longer_each_time_and_only_after_the_named_codes() {
    let flow = Flow::read(RELEASE).unwrap();
    let retry = &flow.step("publish").unwrap().retry;
    let waits: Vec<u64> = (1..=3).map(|made| retry.wait_after(made).as_secs()).collect();
    assert_eq!(waits, [2, 4, 8]);
    assert!(
        retry.again(1, Some(75))
            && !retry.again(1, Some(2))
            && !retry.again(1, None)
            && !retry.again(3, Some(1))
    );
    assert_eq!(retry.wait_after(u32::MAX).as_secs(), 3600);
}

/// The examples of the documentation: whole flows, or lists of steps.
fn examples() -> Vec<String> {
    let page = include_str!("../../../../docs/flow-file.md");
    let blocks = page.split("```yaml\n").skip(1).filter_map(|block| block.split_once("```"));
    let whole = |block: &str| {
        if block.contains("steps:") { block.to_owned() } else { format!("name: x\nsteps:\n{block}") }
    };
    blocks.map(|(block, _)| whole(block)).collect()
}

#[test]
fn the_examples_of_the_documentation_are_flows() {
    let examples = examples();
    assert!(examples.len() >= 7, "{}", examples.len());
    for example in examples {
        Flow::read(&example).unwrap_or_else(|invalid| panic!("{invalid}\n{example}"));
    }
}

#[test]
fn every_key_is_in_the_documentation_and_in_an_example() {
    let page = include_str!("../../../../docs/flow-file.md");
    let schema = serde_json::to_value(schemars::schema_for!(Flow)).unwrap();
    let all = examples().join("\n");
    let mut keys = Vec::new();
    collect(&schema, &mut keys);
    assert!(keys.len() > 50, "{keys:?}");
    for key in keys {
        assert!(page.contains(&format!("`{key}`")), "`{key}` is not described");
        let is_used = all.contains(&format!("{key}:"));
        assert!(is_used, "`{key}` is in no example");
    }
}

/// The keys of the schema, but not the answers that `on` lists.
fn collect(schema: &serde_json::Value, keys: &mut Vec<String>) {
    match schema {
        serde_json::Value::Object(members) => {
            for (name, value) in members {
                if let (true, Some(properties)) = (name == "properties", value.as_object()) {
                    for (key, inner) in properties {
                        keys.push(key.clone());
                        if key != "on" {
                            collect(inner, keys);
                        }
                    }
                } else if name != "not" {
                    collect(value, keys);
                }
            }
        }
        serde_json::Value::Array(list) => list.iter().for_each(|one| collect(one, keys)),
        _ => {}
    }
}
