//! The JSON Schema of a flow file, for editors.
//!
//! It is written by hand: the file has shorter forms than the types have, and each key has a sentence for people. A test
//! compares its keys with those that the reader knows.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{Flow, StepId};
use crate::reply::{Action, Kind, open_actions};

impl JsonSchema for Flow {
    fn schema_name() -> Cow<'static, str> {
        "Flow".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::try_from(flow()).expect("an object is a schema")
    }
}

fn described(description: &str, mut schema: Value) -> Value {
    schema["description"] = description.into();
    schema
}

fn object(description: &str, required: &[&str], mut properties: Value) -> Value {
    for (name, property) in properties.as_object_mut().into_iter().flatten() {
        if !required.contains(&name.as_str()) {
            allow_null(property);
        }
    }
    json!({
        "type": "object", "description": description, "required": required, "additionalProperties": false,
        "properties": properties,
    })
}

/// Lets a key stand without a value, which is as good as none.
fn allow_null(schema: &mut Value) {
    for (key, null) in
        [("enum", Value::Null), ("anyOf", json!({ "type": "null" })), ("oneOf", json!({ "type": "null" }))]
    {
        if let Some(several) = schema[key].as_array_mut() {
            return several.push(null);
        }
    }
    match schema.get_mut("type") {
        Some(Value::Array(types)) => types.push("null".into()),
        Some(only) => *only = json!([only, "null"]),
        None => {}
    }
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn flag(description: &str, usual: bool) -> Value {
    json!({ "type": "boolean", "description": description, "default": usual })
}

fn duration(description: &str) -> Value {
    json!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h|d|w)$", "description": description })
}

fn count(description: &str, most: u32) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": most, "description": description })
}

fn list(description: &str, items: Value) -> Value {
    json!({ "type": "array", "description": description, "items": items })
}

fn one_of(description: &str, words: &[&str]) -> Value {
    json!({ "enum": words, "description": description })
}

fn step_id(description: &str) -> Value {
    json!({
        "type": ["string", "integer"], "pattern": "^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$",
        "not": { "enum": StepId::RESERVED }, "description": description,
    })
}

/// A text; numbers and truth values count as they are written.
fn word(description: &str) -> Value {
    json!({ "type": ["string", "number", "boolean"], "description": description })
}

fn path(description: &str) -> Value {
    let mut path = word(description);
    (path["minLength"], path["not"]) = (1.into(), json!({ "pattern": "^/|(^|/)\\.\\.(/|$)" }));
    path
}

fn command(description: &str) -> Value {
    json!({
        "description": description,
        "oneOf": [
            { "type": "string", "minLength": 1, "description": "A line for `sh -c`." },
            { "type": "array", "minItems": 1, "items": { "type": ["string", "number", "boolean"] },
              "description": "A program and its arguments." },
        ],
    })
}

/// A reference, or a value of the file.
fn source(description: &str, literal: &[&str]) -> Value {
    json!({
        "description": description,
        "anyOf": [
            { "type": "string", "pattern": "^[^.\\s]+(\\.[^.\\s]+)*$", "description": "Where it comes from, such as `draft.final`." },
            { "type": literal },
        ],
    })
}

fn variables(description: &str) -> Value {
    json!({
        "type": "object", "description": description,
        "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "not": { "pattern": "^STAGEPOST_" } },
        "additionalProperties": { "type": ["string", "number", "boolean", "null"] },
    })
}

fn secrets(description: &str) -> Value {
    list(description, json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }))
}

pub(super) fn flow() -> Value {
    object(
        "A flow: steps that survive a crash.",
        &["name", "steps"],
        json!({
            "version": { "enum": [1], "description": "The version of this format." },
            "name": word("What the flow is called."),
            "description": text("What it is for."),
            "env": variables("What is added to the environment of every step."),
            "secrets": secrets("Variables that come from outside; their values are stored nowhere."),
            "input": { "description": "What the steps are given to begin with; `--input` goes over it." },
            "retention": retention(),
            "view": flag("Whether files for other tools are published after each step.", true),
            "steps": { "type": "array", "minItems": 1, "items": step(), "description": "The steps." },
        }),
    )
}

pub(super) fn retention() -> Value {
    let keep_last = count("So many checkpoints of a run are kept, beside those needed to resume.", 1_000_000);
    object("How much of a run is kept.", &[], json!({ "keep_last": keep_last }))
}

pub(super) fn step() -> Value {
    let mut step = object(
        "A step: one of `run`, `ask` and `refine`, and when and how.",
        &["id"],
        json!({
            "id": step_id("What everything else calls it."),
            "name": word("What people call it."),
            "description": text("What it is for."),
            "run": command("The command to run."),
            "ask": ask(),
            "refine": refine(),
            "needs": list("The steps that come before it; without this, the one above. `[]`: none.", step_id("A step.")),
            "inputs": list("Files it reads: if one changes, it has to run again.", path("A path within the project.")),
            "outputs": list("Files it leaves, which are kept.", json!({ "anyOf": [path("A path within the project."), output()] })),
            "env": variables("What is added to its environment."),
            "secrets": secrets("Variables that come from outside; their values are stored nowhere."),
            "cwd": path("The folder it runs in, within the project."),
            "timeout": duration("How long an attempt may take."),
            "retry": retry(),
            "if": described("What must hold for it to be run; otherwise it is skipped.", json!({ "type": ["string", "boolean"] })),
            "on_failure": { "description": "What happens when its last attempt failed.", "default": "stop",
                "anyOf": [one_of("What happens.", &["stop", "continue", "rollback"]), on_failure()] },
            "snapshot": flag("Whether the files of the project are captured with its checkpoint.", false),
            "for_each": for_each(),
            "effects": one_of("What running it twice would do; default none.", &["none", "idempotent", "once"]),
            "verify": command("Says, by ending with 0, that the step did what it should."),
        }),
    );
    // Without a value it is as good as none.
    let does = |key: &str| json!({ "required": [key], "properties": { key: { "not": { "type": "null" } } } });
    step["oneOf"] = json!([does("run"), does("ask"), does("refine")]);
    step
}

pub(super) fn output() -> Value {
    let properties =
        json!({ "name": text("What it is kept as."), "path": path("Where it is, within the project.") });
    object("A file under another name.", &["path"], properties)
}

pub(super) fn on_failure() -> Value {
    object("Another step goes on.", &["goto"], json!({ "goto": step_id("The step to go to.") }))
}

pub(super) fn retry() -> Value {
    object(
        "How often it is tried.",
        &["attempts"],
        json!({
            "attempts": count("So many attempts are made in all.", 1000),
            "backoff": duration("How long to wait before the second attempt; default 1s."),
            "factor": { "type": "number", "minimum": 1, "maximum": 100, "default": 2,
                "description": "By what the wait grows from one attempt to the next." },
            "on_exit": list("The exit codes after which it is tried again; default any.",
                json!({ "type": "integer", "minimum": 1, "maximum": 255 })),
        }),
    )
}

pub(super) fn for_each() -> Value {
    object(
        "What it is done for, one by one.",
        &["list"],
        json!({
            "list": source("The list.", &["array"]),
            "side_by_side": count("So many are done at the same time; default 1.", 256),
        }),
    )
}

pub(super) fn ask() -> Value {
    let kinds: Vec<&str> = Kind::all().map(Kind::name).collect();
    let item = json!({ "type": ["string", "number", "object"] });
    object(
        "What a person is asked.",
        &[],
        json!({
            "kind": one_of("The kind of question; default confirm.", &kinds),
            "message": text("What leads up to the question."),
            "question": text("The one question."),
            "data": source("What the question is about.", &["object", "array", "number", "boolean"]),
            "options": { "description": "What can be chosen, or where that comes from.",
                "anyOf": [{ "type": "array", "items": item }, { "type": "string" }] },
            "multiple": flag("Whether several options may be chosen.", false),
            "risk": one_of("How much is at stake.", &["low", "normal", "high"]),
            "phrase": text("The only words that agree; with them the risk is high."),
            "languages": list("The languages in which an answer counts.", one_of("A language.", &["en", "es", "fr", "de"])),
            "unclear": one_of("What an answer that is not understood does.", &["ask_again", "answers"]),
            "tries": count("So often it is asked again; default 3.", 100),
            "on": { "type": "object", "description": "Where answers lead: a step, or `end`.",
                "additionalProperties": false, "properties": transitions() },
            "expires": expires(),
        }),
    )
}

fn transitions() -> Value {
    let mut actions: Vec<Action> = Kind::all().flat_map(open_actions).copied().collect();
    actions.sort_by_key(|action| action.name());
    actions.dedup();
    let target = json!({ "type": ["string", "integer"], "description": "A step, or `end`." });
    Value::Object(
        actions.iter().map(|action| (action.name().to_owned(), target.clone())).collect::<Map<_, _>>(),
    )
}

pub(super) fn expires() -> Value {
    object(
        "How long to wait for an answer.",
        &["after"],
        json!({
            "after": duration("How long."),
            "as": one_of("What it counts as if there is none; default reject.", &["reject", "cancel", "back"]),
        }),
    )
}

pub(super) fn refine() -> Value {
    let score = |description: &str, usual: f64| json!({ "type": "number", "minimum": 0, "maximum": 1_000_000, "default": usual, "description": description });
    object(
        "Proposing and judging until it is good enough.",
        &["planner", "judge"],
        json!({
            "planner": command("Proposes."),
            "judge": command("Judges what was proposed."),
            "validator": command("Checks the form of a proposal before it is judged."),
            "input": source("What the planner gets; default what the needs produced.", &["object", "array", "number", "boolean"]),
            "max_iterations": count("So many proposals are made at most; default 3.", 1000),
            "approve_at": score("From this score on a proposal is approved.", 7.0),
            "soft_fail_at": score("Below this score a proposal failed.", 5.0),
            "token_budget": { "type": "integer", "minimum": 1, "description": "So many tokens may be used in all." },
            "timeout": duration("How long one call of a command may take."),
        }),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::read;
    use super::*;

    #[test]
    fn the_schema_has_the_keys_that_the_reader_knows() {
        let pairs = [
            (flow(), read::FLOW),
            (retention(), read::RETENTION),
            (step(), read::STEP),
            (output(), read::OUTPUT),
            (on_failure(), read::ON_FAILURE),
            (retry(), read::RETRY),
            (for_each(), read::FOR_EACH),
            (ask(), read::ASK),
            (expires(), read::EXPIRES),
            (refine(), read::REFINE),
        ];
        for (schema, known) in pairs {
            let keys: BTreeSet<&str> =
                schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys, known.iter().copied().collect(), "{}", schema["description"]);
        }
    }
}
