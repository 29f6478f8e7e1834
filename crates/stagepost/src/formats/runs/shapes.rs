//! The files of a run, member by member, as they are written.

use serde::Serialize;
use serde_json::{Map, Value};

use super::Status;

/// `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the members are the format's")]
pub struct RunFile {
    pub run_id: String,
    pub workflow_id: String,
    pub selected_workflow: String,
    pub current_step: usize,
    pub status: Status,
    pub created_at: String,
    pub updated_at: String,
    pub task_queue: Vec<Value>,
    pub owners: Owners,
    pub timestamps: Times,
    pub metadata: RunMetadata,
    pub state_transitions: Vec<Transition>,
    pub step_retries: Map<String, Value>,
}

/// Who is at work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the members are the format's")]
pub struct Owners {
    pub orchestrator_session_id: Option<String>,
    pub current_agent: Option<String>,
    pub assigned_agents: Vec<String>,
}

/// When a run came to where it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the members are the format's")]
pub struct Times {
    pub started_at: Option<String>,
    pub last_step_completed_at: Option<String>,
    pub completed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaiting_approval_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<String>,
}

/// What a run is about. The last two members are ours: they say whose file it is, and of which run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the members are the format's")]
pub struct RunMetadata {
    pub user_request: String,
    pub confidence: f64,
    pub missing_inputs: Vec<String>,
    pub created_by: String,
    pub run: String,
}

/// A change of status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the members are the format's")]
pub struct Transition {
    pub from: Status,
    pub to: Status,
    pub timestamp: String,
    pub reason: String,
    pub metadata: Map<String, Value>,
}

/// How often a step failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the members are the format's")]
pub struct Retries {
    pub count: usize,
    pub last_error: Option<String>,
    pub last_attempt: Option<String>,
    pub feedback_injected: bool,
    pub errors: Vec<String>,
}

/// `artifact-registry.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the members are the format's")]
pub struct Registry {
    pub run_id: String,
    pub workflow_id: String,
    pub created_at: String,
    pub updated_at: String,
    pub artifacts: Map<String, Value>,
}

/// An artifact in the registry.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the members are the format's")]
pub struct Entry {
    pub name: String,
    pub step: usize,
    pub agent: String,
    pub path: String,
    pub dependencies: Vec<String>,
    pub version: usize,
    #[serde(rename = "validationStatus")]
    pub validation_status: &'static str,
    pub schema: Option<String>,
    pub gate_path: Option<String>,
    pub reasoning_path: Option<String>,
    pub publishable: bool,
    pub published: bool,
    pub published_at: Option<String>,
    pub publish_targets: Vec<String>,
    pub publish_attempts: Vec<Value>,
    pub publish_status: Option<String>,
    pub publish_error: Option<String>,
    pub created_at: String,
    pub updated_at: String,
    pub metadata: EntryMetadata,
}

/// More about an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the members are the format's")]
pub struct EntryMetadata {
    pub size: u64,
    #[serde(rename = "type")]
    pub media: String,
    pub validation_status: &'static str,
    pub blake3: String,
}

/// `checkpoints/checkpoint-step-*.json`, before its checksum is put in.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the members are the format's")]
pub struct Checkpoint {
    pub checkpoint_id: String,
    pub run_id: String,
    pub workflow_id: String,
    pub step: usize,
    pub timestamp: String,
    pub run_record: RunFile,
    pub artifact_registry: Registry,
    pub step_state: StepState,
    pub artifacts_at_checkpoint: Vec<String>,
    pub validation_summary: Summary,
    pub recovery_instructions: Vec<String>,
    pub metadata: Map<String, Value>,
}

/// The step that a checkpoint was made after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the members are the format's")]
pub struct StepState {
    pub step_name: String,
    pub agent: String,
    pub artifacts: Vec<String>,
    pub validation_status: &'static str,
}

/// How many artifacts were found good.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the members are the format's")]
pub struct Summary {
    pub total_artifacts: usize,
    pub validated_artifacts: usize,
    pub failed_validations: usize,
}

/// What a person can do to go on from a checkpoint: four lines, as the format wants.
pub fn instructions(run: &str, step: usize, name: &str) -> Vec<String> {
    vec![
        format!("Step {step} ({name}) of run {run} is complete."),
        "Check that nothing was altered: stagepost verify".to_owned(),
        format!("Go on after it: stagepost flow resume {run} --step {step}"),
        format!("Look at what was done before: stagepost flow show {run}"),
    ]
}
