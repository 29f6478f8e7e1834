//! Schema: what is printed is what the schemas promise.

use serde_json::{Value, json};

use crate::support::TempProject;

#[test]
fn what_is_printed_fits_its_schema() {
    let project = TempProject::new();
    project.write("state.json", "{\"a\": [1, 2]}");
    let saved = project.json(&[
        "save",
        "-m",
        "x",
        "--state",
        "state.json",
        "--label",
        "good",
        "--metadata",
        "{\"k\": 1}",
    ]);
    let log = project.json(&["log"]);
    let error: Value = serde_json::from_str(&project.run(&["--json", "show", "nothing"]).out).unwrap();
    let schema = |name: &str| -> Value { serde_json::from_str(&project.ok(&["schema", name])).unwrap() };
    for (name, value) in [
        ("checkpoint", &saved["checkpoint"]),
        ("show", &saved),
        ("show", &project.json(&["show"])),
        ("log", &log),
        ("error", &error),
        ("run", &json!({"id": "adhoc", "kind": "adhoc", "created_at": "2026-01-02T03:04:05.000006Z"})),
    ] {
        let schema = schema(name);
        assert_eq!(faults(&schema, &schema, value, "$"), Vec::<String>::new(), "{name}");
    }
    assert_eq!(schema("event")["type"], json!("object"));
}

#[test]
fn gates_questions_answers_and_journeys_fit_their_schemas() {
    let project = TempProject::new();
    let schema = |name: &str| -> Value { serde_json::from_str(&project.ok(&["schema", name])).unwrap() };
    let via = project.folder.join("question.json");
    let ask = [
        "--json", "gate", "ask", "Which?", "--kind", "choose", "--option", "n=North", "--option", "South",
        "--id", "g",
    ];
    let through = format!("cat > {}; echo north", via.display());
    let asked = project.run(&[&ask[..], &["--via", &through]].concat());
    let asked: Value = serde_json::from_str(&asked.out).unwrap();
    let waiting = project.run(&["--json", "gate", "ask", "And?", "--id", "h"]);
    let waiting: Value = serde_json::from_str(&waiting.out).unwrap();
    let question: Value = serde_json::from_slice(&std::fs::read(via).unwrap()).unwrap();
    let whole = json!({"name": "j", "timeout": "2m", "stops": [
        {"id": "w", "run": ["true"], "timeout": "90s"}, {"id": "v", "run": "true", "next": "a"},
        {"id": "a", "ask": {"kind": "choose", "options": ["x", {"id": "y", "label": "Y"}]}, "on": {"select": "end"}}]});
    let built_in = json!({"journey": "route", "work": {"query": "true"}});
    for (name, value) in [
        ("gate", &asked["gate"]),
        ("gate", &waiting["gate"]),
        ("question", &question),
        ("answer", &asked["gate"]["answer"]),
        ("journey", &whole),
        ("journey", &built_in),
    ] {
        let schema = schema(name);
        assert_eq!(faults(&schema, &schema, value, "$"), Vec::<String>::new(), "{name}: {value}");
    }
    let journey = schema("journey");
    for wrong in [
        json!({"name": "j"}),
        json!({"name": "j", "stops": [{"id": 1}]}),
        json!({"name": "j", "stops": [], "x": 1}),
    ] {
        assert!(!faults(&journey, &journey, &wrong, "$").is_empty(), "{wrong}");
    }
}

#[test]
fn a_flow_file_fits_its_schema_if_it_is_accepted() {
    let project = TempProject::new();
    let schema: Value = serde_json::from_str(&project.ok(&["schema", "flow"])).unwrap();
    let whole = json!({"name": "f", "version": 1, "description": "d", "view": true, "retention": {"keep_last": 3}, "steps": [
        {"id": "a", "name": "n", "run": "true", "ask": null, "inputs": ["i"], "outputs": ["o", {"name": "r", "path": "p"}],
         "cwd": ".", "timeout": "5m", "retry": {"attempts": 2, "backoff": "1s"}, "on_failure": "stop", "effects": "none"},
        {"id": "b", "ask": {"kind": "approve", "on": {"approve": "c"}, "languages": ["en"], "risk": "low"}},
        {"id": "c", "refine": {"planner": "p", "judge": ["j"], "validator": "v", "approve_at": 8}},
    ]});
    let nothing = [
        "/version",
        "/description",
        "/view",
        "/retention",
        "/steps/0/name",
        "/steps/0/inputs",
        "/steps/0/outputs",
        "/steps/0/cwd",
        "/steps/0/timeout",
        "/steps/0/retry",
        "/steps/0/retry/backoff",
        "/steps/0/on_failure",
        "/steps/0/effects",
        "/steps/0/outputs/1/name",
        "/steps/1/ask/on",
        "/steps/1/ask/languages",
        "/steps/1/ask/risk",
        "/steps/2/refine/validator",
        "/steps/2/refine/approve_at",
    ];
    let good = nothing.map(|place| (place, json!(null))).into_iter().chain([
        ("/name", json!(false)),
        ("/steps/0/name", json!(1)),
        ("/steps/0/inputs/0", json!(2024)),
        ("/steps/0/outputs/0", json!(1.5)),
        ("/steps/0/cwd", json!(7)),
    ]);
    let bad = [
        ("/name", json!(null)),
        ("/steps/0/id", json!(null)),
        ("/steps/0/run", json!(null)),
        ("/steps/1/ask/languages/0", json!("xx")),
        ("/steps/2/refine/planner", json!(null)),
    ];
    let judge = |place: &str, value: Value| {
        let mut altered = whole.clone();
        *altered.pointer_mut(place).unwrap_or_else(|| panic!("no {place}")) = value;
        project.write("flow.json", altered.to_string());
        let checked = project.run(&["flow", "check", "flow.json"]);
        (checked.code == 0, checked.err, faults(&schema, &schema, &altered, "$"))
    };
    for (place, value) in good {
        let (accepted, why, faults) = judge(place, value.clone());
        assert!(accepted && faults.is_empty(), "{place}: {value}: {why} {faults:?}");
    }
    for (place, value) in bad {
        let (accepted, _, faults) = judge(place, value.clone());
        assert!(!accepted && !faults.is_empty(), "{place}: {value}");
    }
}

#[test]
fn the_check_itself_finds_what_does_not_fit() {
    let project = TempProject::new();
    let saved = project.json(&["save", "-m", "x"]);
    let schema: Value = serde_json::from_str(&project.ok(&["schema", "show"])).unwrap();
    let wrong = [
        ("/checkpoint/seq", json!("1")),
        ("/checkpoint/kind", json!({"type": "none"})),
        ("/schema", json!(null)),
    ];
    for (place, value) in wrong {
        let mut altered = saved.clone();
        *altered.pointer_mut(place).unwrap() = value;
        assert!(!faults(&schema, &schema, &altered, "$").is_empty(), "{place}");
    }
    let mut altered = saved;
    altered["checkpoint"].as_object_mut().unwrap().remove("seal");
    assert!(!faults(&schema, &schema, &altered, "$").is_empty());
}

/// The part of JSON Schema that our schemas use.
fn faults(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(target) = schema["$ref"].as_str() {
        let part = root.pointer(target.trim_start_matches('#')).expect("references lead somewhere");
        found.extend(faults(root, part, value, at));
    }
    if let Some(types) = schema.get("type") {
        let allowed = |one: &Value| is_type(value, one.as_str().unwrap_or_default());
        let fits = types.as_array().map_or_else(|| allowed(types), |types| types.iter().any(allowed));
        found.extend((!fits).then(|| format!("{at}: {value} is not {types}")));
    }
    if let Some(constant) = schema.get("const").filter(|constant| *constant != value) {
        found.push(format!("{at}: {value} is not {constant}"));
    }
    if let Some(values) = schema["enum"].as_array().filter(|values| !values.contains(value)) {
        found.push(format!("{at}: {value} is none of {values:?}"));
    }
    for choice in ["anyOf", "oneOf"] {
        let Some(parts) = schema[choice].as_array() else { continue };
        let fit = parts.iter().any(|part| faults(root, part, value, at).is_empty());
        found.extend((!fit).then(|| format!("{at}: {value} fits no part of {choice}")));
    }
    if let Some(not) = schema.get("not").filter(|not| not.get("pattern").is_none()) {
        found.extend(faults(root, not, value, at).is_empty().then(|| format!("{at}: {value} fits {not}")));
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        found.extend(faults(root, part, value, at));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let is_missing = value.is_object() && value.get(name).is_none();
        found.extend(is_missing.then(|| format!("{at}: no `{name}`")));
    }
    for (name, part) in schema["properties"].as_object().into_iter().flatten() {
        found.extend(
            value.get(name).into_iter().flat_map(|value| faults(root, part, value, &format!("{at}.{name}"))),
        );
    }
    if schema["additionalProperties"] == false {
        let known = |name: &String| schema["properties"].get(name).is_some();
        let unknown =
            value.as_object().into_iter().flatten().map(|(name, _)| name).filter(|name| !known(name));
        found.extend(unknown.map(|name| format!("{at}: `{name}` is not known")));
    }
    if let (Some(part), Some(items)) = (schema.get("items"), value.as_array()) {
        let each = items.iter().enumerate();
        found.extend(each.flat_map(|(index, item)| faults(root, part, item, &format!("{at}[{index}]"))));
    }
    found
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}
