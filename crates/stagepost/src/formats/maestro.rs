//! Sessions with phases, as Maestro keeps them in `.flow/maestro/sessions/<id>/`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::json::zoned;
use crate::model::{
    Checkpoint, Imported, Kind, Mark, Phase, Progress, Reason, Rollback, RollbackMode, Run, Timestamp,
};

/// The folder of all sessions.
pub const SESSIONS: &str = ".flow/maestro/sessions";
/// The older folder: one file for each session.
pub const OLDER: &str = ".flow/maestro/checkpoints";
/// The log of a session's checkpoints.
pub const CHECKPOINTS: &str = "checkpoints.json";
/// The log of its rollbacks.
pub const HISTORY: &str = "rollback_history.json";
/// What the session is about.
pub const METADATA: &str = "metadata.json";

/// Returns where a file of a session is.
pub fn path(session: &str, file: &str) -> String {
    format!("{SESSIONS}/{session}/{file}")
}

/// Returns the tag of a checkpoint.
pub fn tag(checkpoint_id: &str) -> String {
    format!("checkpoint-{checkpoint_id}")
}

/// Returns the message of the tag.
pub fn tag_message(description: &str, operation: Option<&str>) -> String {
    match operation {
        Some(operation) => format!("Pre-operation Checkpoint: {operation} - {description}"),
        None => format!("Checkpoint: {description}"),
    }
}

/// Returns the message of the commit on the branch.
pub fn commit_message(description: &str, operation: Option<&str>) -> String {
    match operation {
        Some(operation) => format!("checkpoint: Auto-commit before {operation}"),
        None => format!("checkpoint: {description}"),
    }
}

/// Says whether a file is a log of checkpoints.
pub fn is_log(name: &str, bytes: &[u8]) -> bool {
    name.ends_with(".json")
        && serde_json::from_slice::<Value>(bytes)
            .is_ok_and(|log| log["checkpoints"].is_array() && log["session_id"].is_string())
}

/// A checkpoint as the log has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// A UUID; older ones are `cp-<seconds>`.
    pub checkpoint_id: String,
    /// The commit.
    pub commit_sha: String,
    /// When it was made.
    pub timestamp: String,
    /// What it is, in words.
    pub description: String,
    /// The phase.
    pub phase: String,
    /// Why it was made.
    pub checkpoint_type: String,
    /// The message of the commit, if one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_message: Option<String>,
    /// How far the session was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_snapshot: Option<State>,
    /// Tags and free labels.
    pub tags: Vec<String>,
    /// Whether a rollback went to it.
    pub rollback_used: bool,
    /// How many did.
    pub rollback_count: u64,
    /// What came before a risky operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_context: Option<Value>,
    /// Members that only their writer knows.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// How far a session was.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct State {
    /// What is counted.
    #[serde(flatten)]
    pub progress: Progress,
    /// Members that only their writer knows.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The metadata member that holds what a checkpoint was made before.
pub const OPERATION: &str = "operation";
/// The metadata member that holds the tags that an entry had, where there is more to say than which one is ours.
pub const TAGS: &str = "tags";
/// The metadata member that holds what only its writer knows about how far the session was.
pub const STATE: &str = "state";

impl Entry {
    /// Describes a checkpoint that `rollbacks` successful rollbacks went to; `None` if it is of no phase.
    pub fn of(checkpoint: &Checkpoint, rollbacks: u64) -> Option<Self> {
        let Kind::Phase { phase, reason } = checkpoint.content.kind else { return None };
        let mark = Mark::of(checkpoint);
        let imported = Imported::of(checkpoint);
        let (original, extra) = imported.map(|from| (from.id, from.extra)).unzip();
        let labels = checkpoint.content.labels.iter().map(ToString::to_string);
        let metadata = &checkpoint.content.metadata;
        let tags = metadata.get(TAGS).map_or_else(|| mark.tag.into_iter().collect(), texts);
        Some(Self {
            checkpoint_id: original.unwrap_or_else(|| checkpoint.id.to_string()),
            commit_sha: mark.commit.map_or_else(String::new, |commit| commit.to_string()),
            timestamp: zoned(checkpoint.created_at),
            description: checkpoint.content.description.clone(),
            phase: phase.to_string(),
            checkpoint_type: reason.to_string(),
            commit_message: mark.message,
            state_snapshot: Progress::of(checkpoint).map(|progress| State {
                progress,
                extra: metadata.get(STATE).and_then(Value::as_object).cloned().unwrap_or_default(),
            }),
            tags: tags.into_iter().chain(labels).collect(),
            rollback_used: rollbacks > 0,
            rollback_count: rollbacks,
            operation_context: metadata.get(OPERATION).cloned(),
            extra: extra.unwrap_or_default(),
        })
    }

    /// Reads an entry whatever is missing or wrong in it; only what is no object is none.
    pub fn read(value: &Value) -> Option<Self> {
        let mut members = value.as_object()?.clone();
        let mut text = |key: &str| match members.shift_remove(key) {
            Some(Value::String(text)) => Some(text),
            Some(Value::Null) | None => None,
            Some(other) => Some(other.to_string()),
        };
        let entry = Self {
            checkpoint_id: text("checkpoint_id").unwrap_or_default(),
            commit_sha: text("commit_sha").unwrap_or_default(),
            timestamp: text("timestamp").unwrap_or_default(),
            description: text("description").unwrap_or_default(),
            phase: text("phase").unwrap_or_default(),
            checkpoint_type: text("checkpoint_type").unwrap_or_else(|| Reason::Manual.to_string()),
            commit_message: text("commit_message"),
            state_snapshot: None,
            tags: vec![],
            rollback_used: false,
            rollback_count: 0,
            operation_context: None,
            extra: Map::new(),
        };
        let state = members.shift_remove("state_snapshot").and_then(|state| State::read(&state));
        let tags = members.shift_remove("tags");
        let count = members.shift_remove("rollback_count").and_then(|count| count.as_u64());
        Some(Self {
            state_snapshot: state,
            tags: tags.as_ref().map(texts).unwrap_or_default(),
            rollback_used: members.shift_remove("rollback_used") == Some(Value::Bool(true)),
            rollback_count: count.unwrap_or(0),
            operation_context: members.shift_remove("operation_context"),
            extra: members,
            ..entry
        })
    }

    /// Finds the commit in text that git printed on committing, such as `[main 1a2b3c4] checkpoint: …`.
    pub fn commit_in_text(&self) -> Option<&str> {
        let inside = self.commit_sha.strip_prefix('[')?.split(']').next()?;
        let sha = inside.rsplit(' ').next()?;
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        ((7..=40).contains(&sha.len()) && sha.bytes().all(hex)).then_some(sha)
    }
}

/// The texts in a list.
fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

impl State {
    /// What is not counted, or no number, is kept as it is.
    fn read(value: &Value) -> Option<Self> {
        let progress = read_progress(value)?;
        let counted = serde_json::to_value(progress).expect("it has string keys only");
        let is_counted = |key: &str| counted.get(key).is_some();
        let members = value.as_object().into_iter().flatten();
        let extra =
            members.filter(|(key, _)| !is_counted(key)).map(|(key, value)| (key.clone(), value.clone()));
        Some(Self { progress, extra: extra.collect() })
    }
}

/// Reads progress number by number: what is no number is unknown.
pub fn read_progress(state: &Value) -> Option<Progress> {
    let members = state.as_object().filter(|members| !members.is_empty())?;
    let number = |key: &str| members.get(key).and_then(Value::as_u64);
    Some(Progress {
        tasks_completed: number("tasks_completed"),
        decisions_made: number("decisions_made"),
        files_modified: number("files_modified"),
        files_created: number("files_created"),
        tests_passing: number("tests_passing"),
        tests_failing: number("tests_failing"),
    })
}

/// The log of a session's checkpoints, in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Log {
    /// The session.
    pub session_id: String,
    /// When the session was started.
    pub generated_at: String,
    /// The checkpoints.
    pub checkpoints: Vec<Entry>,
    /// What they come to.
    pub summary: Summary,
    /// Members that only their writer knows.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Where the members that only their writer knows are kept with a run, by the file that they stand in.
const EXTRA: &str = "extra";

/// Keeps the members of a session's file that nobody here knows, so that they can be written again.
pub fn keep_unknown(run: &mut Run, file: &str, value: &Value) {
    let known: &[&str] = match file {
        CHECKPOINTS => &["session_id", "generated_at", "checkpoints", "summary"],
        HISTORY => &["session_id", "generated_at", "rollback_operations", "last_updated"],
        _ => ABOUT,
    };
    let unknown = others(value, known);
    if !unknown.is_empty() {
        let kept = run.metadata.entry(EXTRA).or_insert_with(|| Value::Object(Map::new()));
        kept[file] = Value::Object(unknown);
    }
}

/// The members of an object that are not among those known.
fn others(value: &Value, known: &[&str]) -> Map<String, Value> {
    let members = value.as_object().into_iter().flatten();
    let unknown = members.filter(|(key, _)| !known.contains(&key.as_str()));
    unknown.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Returns the members of a session's file that only their writer knows.
pub fn unknown(run: &Run, file: &str) -> Map<String, Value> {
    let kept = run.metadata.get(EXTRA).and_then(|extra| extra.get(file));
    kept.and_then(Value::as_object).cloned().unwrap_or_default()
}

/// The members of `metadata.json` that are derived, or kept each by itself.
const ABOUT: &[&str] = &[
    "session_id",
    "feature_request",
    "status",
    "current_phase",
    "created_at",
    "updated_at",
    "completed_at",
    "git_context",
    "prd_reference",
    "statistics",
];

/// What the checkpoints of a session come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// How many there are.
    pub total_checkpoints: usize,
    /// How many of each type there are; a type without any is left out.
    pub checkpoints_by_type: BTreeMap<String, usize>,
    /// How many of them a rollback went to.
    pub checkpoints_used_for_rollback: usize,
    /// The commit of the newest; none if it was imported and is gone.
    pub latest_checkpoint: Option<String>,
}

impl Summary {
    /// Sums up entries, which are in the order in which they were made.
    pub fn of(entries: &[Entry]) -> Self {
        let mut by_type = BTreeMap::new();
        for entry in entries {
            *by_type.entry(entry.checkpoint_type.clone()).or_insert(0) += 1;
        }
        Self {
            total_checkpoints: entries.len(),
            checkpoints_by_type: by_type,
            checkpoints_used_for_rollback: entries.iter().filter(|entry| entry.rollback_used).count(),
            latest_checkpoint: entries
                .last()
                .map(|entry| entry.commit_sha.clone())
                .filter(|commit| !commit.is_empty()),
        }
    }
}

/// The log of a session's rollbacks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// The session.
    pub session_id: String,
    /// When the session was started.
    pub generated_at: String,
    /// Every rollback, also those that failed, oldest first.
    pub rollback_operations: Vec<Operation>,
    /// When the newest was.
    pub last_updated: String,
    /// Members that only their writer knows.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

const OPERATION_MEMBERS: &[&str] = &[
    "operation_id",
    "timestamp",
    "session_id",
    "checkpoint_id",
    "checkpoint_description",
    "checkpoint_sha",
    "rollback_mode",
    "pre_rollback_head",
    "post_rollback_head",
    "validation_passed",
    "state_snapshot_restored",
    "validation_errors",
    "validation_warnings",
    "success",
    "error_message",
];

/// A rollback as the log has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "a mirror: the members are those of `Rollback`")]
pub struct Operation {
    pub operation_id: String,
    pub timestamp: String,
    pub session_id: String,
    pub checkpoint_id: String,
    pub checkpoint_description: String,
    pub checkpoint_sha: Option<String>,
    pub rollback_mode: RollbackMode,
    pub pre_rollback_head: Option<String>,
    pub post_rollback_head: Option<String>,
    pub validation_passed: bool,
    pub state_snapshot_restored: Option<Progress>,
    pub validation_errors: Vec<String>,
    pub validation_warnings: Vec<String>,
    pub success: bool,
    pub error_message: Option<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Operation {
    /// Describes a rollback of a session.
    pub fn of(session: &str, rollback: &Rollback) -> Self {
        Self {
            operation_id: rollback.id.clone(),
            timestamp: zoned(rollback.at),
            session_id: session.to_owned(),
            checkpoint_id: rollback.checkpoint.clone(),
            checkpoint_description: rollback.description.clone(),
            checkpoint_sha: rollback.commit.clone(),
            rollback_mode: rollback.mode,
            pre_rollback_head: rollback.head_before.clone(),
            post_rollback_head: rollback.head_after.clone(),
            validation_passed: rollback.errors.is_empty(),
            state_snapshot_restored: rollback.progress.filter(|_| rollback.success),
            validation_errors: rollback.errors.clone(),
            validation_warnings: rollback.warnings.clone(),
            success: rollback.success,
            error_message: rollback.error.clone(),
            extra: rollback.extra.clone(),
        }
    }

    /// Reads a rollback leniently; `now` stands in for a time that cannot be read.
    pub fn read(value: &Value, now: Timestamp) -> Option<Rollback> {
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let texts = |key: &str| {
            let items = value[key].as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let hard = value["rollback_mode"] == "hard";
        Some(Rollback {
            id: text("operation_id")?,
            at: text("timestamp").and_then(|text| super::parse_time(&text)).map_or(now, |(time, _)| time),
            checkpoint: text("checkpoint_id").unwrap_or_default(),
            description: text("checkpoint_description").unwrap_or_default(),
            commit: text("checkpoint_sha"),
            mode: if hard { RollbackMode::Hard } else { RollbackMode::Mixed },
            head_before: text("pre_rollback_head"),
            head_after: text("post_rollback_head"),
            progress: read_progress(&value["state_snapshot_restored"]),
            errors: texts("validation_errors"),
            warnings: texts("validation_warnings"),
            success: value["success"] == true,
            error: text("error_message"),
            extra: others(value, OPERATION_MEMBERS),
        })
    }
}

/// The statistics of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "a mirror: the names say it")]
pub struct Statistics {
    pub total_tasks: u64,
    pub completed_tasks: u64,
    pub failed_tasks: u64,
    pub decisions_made: u64,
    pub checkpoints_created: u64,
    pub error_recovery_count: u64,
    pub duration_seconds: u64,
}

/// What a session is about, as `metadata.json` has it. Members of the run's metadata are written as they are.
pub fn metadata(
    run: &Run,
    status: &str,
    phase: Option<Phase>,
    updated_at: Timestamp,
    completed_at: Option<Timestamp>,
    statistics: Statistics,
) -> Value {
    let member = |key: &str| run.metadata.get(key).cloned().unwrap_or(Value::Null);
    let mut metadata = serde_json::json!({
        "session_id": run.id,
        "feature_request": run.description,
        "status": status,
        "current_phase": phase,
        "created_at": zoned(run.created_at),
        "updated_at": zoned(updated_at),
        "completed_at": completed_at.map(zoned),
        "git_context": member("git_context"),
        "prd_reference": member("prd_reference"),
        "statistics": statistics,
        "configuration": {
            "max_iterations": 3,
            "timeout_minutes": 120,
            "auto_checkpoint": true,
            "error_recovery_enabled": true,
        },
    });
    // Counts that nobody here keeps, and what only their writer knows, are those that came in.
    for (key, value) in run.metadata.get("statistics").and_then(Value::as_object).into_iter().flatten() {
        let derived = metadata["statistics"].get(key).is_some();
        if !derived || matches!(key.as_str(), "total_tasks" | "failed_tasks") {
            metadata["statistics"][key] = value.clone();
        }
    }
    for (key, value) in unknown(run, METADATA) {
        metadata[key] = value;
    }
    metadata
}
