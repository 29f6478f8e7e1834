//! Reading what programs of this family left, whatever is missing in it.

use serde_json::{Map, Value};

use super::{Form, Status, verify};
use crate::bounded;

/// A file that is larger was not written by such a program; a compressed one may not grow beyond it.
pub const MOST_BYTES: u64 = 64 << 20;

/// Which kind of checkpoint a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `checkpoint-step-*.json`, with a copy of the run's record and registry.
    Step,
    /// What the published schema describes: completed steps, and artifacts with their hashes.
    Described,
    /// `chk-*.json.gz`: a phase and the number of a step in it.
    Compressed,
    /// What is left when memory runs out.
    Pressure,
}

impl Shape {
    /// The members that are known of each shape; others are the writer's own.
    fn known(self) -> &'static [&'static str] {
        match self {
            Shape::Step => &[
                "checkpoint_id",
                "run_id",
                "workflow_id",
                "step",
                "timestamp",
                "run_record",
                "artifact_registry",
                "step_state",
                "artifacts_at_checkpoint",
                "validation_summary",
                "recovery_instructions",
                "metadata",
            ],
            Shape::Described => &[
                "checkpoint_id",
                "run_id",
                "workflow",
                "step",
                "timestamp",
                "status",
                "completed_steps",
                "artifacts",
                "phase",
                "state",
                "recovery_instructions",
                "metadata",
            ],
            Shape::Compressed => &[
                "id",
                "workflowName",
                "workflowVersion",
                "createdAt",
                "phase",
                "stepIndex",
                "context",
                "stepResults",
                "metadata",
            ],
            Shape::Pressure => &["workflowId", "step", "state", "timestamp", "memoryUsage"],
        }
    }
}

/// A checkpoint that another program left.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Which kind it is.
    pub shape: Shape,
    /// Its id there.
    pub id: String,
    /// The run it belongs to.
    pub run: String,
    /// The workflow that the run follows.
    pub workflow: String,
    /// The step it was made after, as it is numbered there.
    pub step: String,
    /// What that step is called.
    pub step_name: Option<String>,
    /// When it was made.
    pub timestamp: String,
    /// Whether it can be trusted: `ok`, `mismatch(checksum)` or `unverifiable`.
    pub integrity: String,
    /// What was noticed.
    pub findings: Vec<String>,
    /// Members that only its writer knows.
    pub extra: Map<String, Value>,
    /// Our own checkpoint of which this is a view.
    pub own: Option<String>,
}

impl Record {
    /// Reads a checkpoint of any shape; the error says why it is none.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, String> {
        let plain;
        let (bytes, is_compressed) = match name.ends_with(".gz") {
            true => {
                plain = decompress(bytes)?;
                (plain.as_slice(), true)
            }
            false => (bytes, false),
        };
        let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let Value::Object(members) = &value else { return Err("it is no JSON object".to_owned()) };
        let has = |key: &str| members.contains_key(key);
        let shape = if is_compressed || (has("workflowName") && has("stepIndex")) {
            Shape::Compressed
        } else if has("memoryUsage") && has("workflowId") {
            Shape::Pressure
        } else if has("checkpoint_id") && (has("run_record") || has("step_state") || has("artifact_registry"))
        {
            Shape::Step
        } else if has("checkpoint_id") && has("run_id") {
            Shape::Described
        } else {
            return Err("it is no checkpoint of a run".to_owned());
        };
        Ok(Self::of(shape, name, &value, bytes))
    }

    fn of(shape: Shape, name: &str, value: &Value, bytes: &[u8]) -> Self {
        let stem = name.trim_end_matches(".gz").trim_end_matches(".json");
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let (id, run, workflow) = match shape {
            Shape::Step => (text("checkpoint_id"), text("run_id"), text("workflow_id")),
            Shape::Described => (text("checkpoint_id"), text("run_id"), text("workflow")),
            Shape::Compressed => (text("id"), text("workflowName"), text("workflowName")),
            Shape::Pressure => (None, text("workflowId"), text("workflowId")),
        };
        let step = match shape {
            Shape::Compressed => shown(&value["stepIndex"]),
            _ => shown(&value["step"]),
        };
        let step_name = match shape {
            Shape::Step => value["step_state"]["step_name"].as_str().map(str::to_owned),
            Shape::Compressed => text("phase").map(|phase| format!("{phase}-{step}")),
            Shape::Described => text("phase"),
            Shape::Pressure => None,
        };
        let timestamp = text(if shape == Shape::Compressed { "createdAt" } else { "timestamp" });
        let (integrity, findings) = trust(shape, value, bytes);
        let extra =
            value.as_object().into_iter().flatten().filter(|(key, _)| !shape.known().contains(&key.as_str()));
        Self {
            shape,
            // Two files of one name do not exist; two ids may, when both are made from the same millisecond.
            id: id.unwrap_or_else(|| stem.to_owned()),
            run: run.unwrap_or_default(),
            workflow: workflow.unwrap_or_default(),
            step,
            step_name,
            timestamp: timestamp.unwrap_or_default(),
            integrity,
            findings,
            extra: extra.map(|(key, value)| (key.clone(), value.clone())).collect(),
            own: value["metadata"]["checkpoint"].as_str().map(str::to_owned),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => "0".to_owned(),
    }
}

fn trust(shape: Shape, value: &Value, bytes: &[u8]) -> (String, Vec<String>) {
    let mut findings = Vec::new();
    let integrity = match verify(bytes) {
        Some(Some(form)) => {
            if form == Form::Body {
                findings.push(form.describe().to_owned());
            }
            "ok"
        }
        Some(None) => "mismatch(checksum)",
        None => "unverifiable",
    };
    if shape == Shape::Described
        && let Some(status @ ("expired" | "invalidated")) = value["status"].as_str()
    {
        findings.push(format!("it says that it is {status}"));
    }
    (integrity.to_owned(), findings)
}

/// Unpacks a compressed checkpoint, up to a bound.
pub fn decompress(bytes: &[u8]) -> Result<Vec<u8>, String> {
    bounded::read(flate2::read::GzDecoder::new(bytes), MOST_BYTES).map_err(|error| error.to_string())
}

/// The record of a run that another program left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// The run.
    pub run: String,
    /// The workflow that it follows.
    pub workflow: String,
    /// What was asked for, in words.
    pub request: String,
    /// How it stands, as it says itself.
    pub status: String,
    /// When it was made.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// Whether we wrote the file, and of which run.
    pub own: Option<String>,
}

impl RunRecord {
    /// Reads a `run.json`; the error says why it is none.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let run = value["run_id"].as_str().ok_or_else(|| "it has no `run_id`".to_owned())?;
        if value.get("status").is_none() && value.get("current_step").is_none() {
            return Err("it says neither how the run stands nor at which step".to_owned());
        }
        let about = &value["metadata"];
        let workflow = value.get("workflow_id").or_else(|| value.get("workflow")).unwrap_or(&Value::Null);
        Ok(Self {
            run: run.to_owned(),
            workflow: text(workflow),
            request: text(about.get("user_request").or_else(|| value.get("goal")).unwrap_or(&Value::Null)),
            status: text(&value["status"]),
            created_at: text(&value["created_at"]),
            updated_at: text(&value["updated_at"]),
            own: (about["created_by"] == super::OURS).then(|| text(&about["run"])),
        })
    }

    /// How it stands, if that is one of the known words.
    pub fn standing(&self) -> Option<Status> {
        match self.status.as_str() {
            "error" => Some(Status::Failed),
            word => serde_json::from_value(word.into()).ok(),
        }
    }
}
