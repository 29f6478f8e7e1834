//! Tasks with stages: `.checkpoint-metadata.json`, tags `checkpoint-t<task>-<stage>`, `agent-progress.txt`.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::json::naive;
use super::shown::shown;
use crate::model::{Checkpoint, Event, Imported, Kind, Mark, Stage, Timestamp, Topic};

/// The list of checkpoints.
pub const LIST: &str = ".checkpoint-metadata.json";
/// The lines of progress.
pub const PROGRESS: &str = "agent-progress.txt";

/// The mark of these files while they are out of date. No run can have this name: it holds a colon.
pub const VIEWS: &str = "tasks:";

/// The metadata member that holds what the caller gave.
pub const GIVEN: &str = "given";

/// Returns the tag of a stage of a task.
pub fn tag(task: u64, stage: Stage) -> String {
    format!("checkpoint-t{task}-{stage}")
}

/// Reads a tag.
pub fn parse_tag(tag: &str) -> Option<(u64, Stage)> {
    let (task, stage) = tag.strip_prefix("checkpoint-t")?.split_once('-')?;
    Some((task.parse().ok()?, stage.parse().ok()?))
}

/// Says whether a tag names a task, whatever stage it names.
pub fn is_of_task(tag: &str) -> bool {
    let task = tag.strip_prefix("checkpoint-t").and_then(|rest| rest.split_once('-'));
    task.is_some_and(|(task, _)| task.parse::<u64>().is_ok())
}

/// Returns the message of the commit on the branch.
pub fn commit_message(description: &str) -> String {
    format!("Checkpoint: {description}")
}

/// Says whether a file is a list of checkpoints.
pub fn is_list(name: &str, bytes: &[u8]) -> bool {
    let is_entry = |entry: &Value| entry["task_id"].is_number() && entry["stage"].is_string();
    name.ends_with(".json")
        && serde_json::from_slice::<Vec<Value>>(bytes)
            .is_ok_and(|list| list.iter().all(is_entry) && (!list.is_empty() || name == LIST))
}

/// A checkpoint as the list has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The number of the task.
    pub task_id: u64,
    /// The stage.
    pub stage: Stage,
    /// The commit.
    pub commit_hash: String,
    /// What it is, in words.
    pub description: String,
    /// When it was made, in UTC without a zone.
    pub timestamp: String,
    /// What the caller gave.
    pub metadata: Map<String, Value>,
    /// Members that only their writer knows.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Entry {
    /// Describes a checkpoint of a task; `None` if it is none.
    pub fn of(checkpoint: &Checkpoint) -> Option<Self> {
        let Kind::Stage { task, stage } = checkpoint.content.kind else { return None };
        let given = checkpoint.content.metadata.get(GIVEN).and_then(Value::as_object);
        Some(Self {
            task_id: task,
            stage,
            commit_hash: Mark::of(checkpoint).commit.map_or_else(String::new, |commit| commit.to_string()),
            description: checkpoint.content.description.clone(),
            timestamp: naive(checkpoint.created_at),
            metadata: given.cloned().unwrap_or_default(),
            extra: Imported::of(checkpoint).map(|from| from.extra).unwrap_or_default(),
        })
    }

    /// Reads an entry whatever is missing in it; without a task and a stage it is none.
    pub fn read(value: &Value) -> Option<Self> {
        let mut members = value.as_object()?.clone();
        let task_id = members.shift_remove("task_id")?.as_u64()?;
        let stage = members.shift_remove("stage")?.as_str()?.parse().ok()?;
        let mut text = |key: &str| match members.shift_remove(key) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let (commit_hash, description) = (text("commit_hash"), text("description"));
        let timestamp = text("timestamp");
        let metadata = match members.shift_remove("metadata") {
            Some(Value::Object(metadata)) => metadata,
            _ => Map::new(),
        };
        Some(Self { task_id, stage, commit_hash, description, timestamp, metadata, extra: members })
    }
}

/// A line of progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When it was written.
    pub at: Timestamp,
    /// The task it is about.
    pub task: Option<u64>,
    /// What it says.
    pub text: String,
}

impl Line {
    /// Writes a note as lines: each line of its text becomes one, so that none is lost to whoever reads line by line.
    pub fn write(&self) -> Vec<String> {
        let time = jiff::Timestamp::from(self.at).strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
        // Task 0 has no prefix in the format: a number that is not there reads the same as 0.
        let task = self.task.filter(|task| *task != 0).map(|task| format!("[Task {task}] "));
        let task = task.unwrap_or_default();
        let text = if self.text.is_empty() { "" } else { self.text.as_str() };
        text.split('\n')
            .map(|part| format!("[{time}] {task}{}", shown(part.trim_end_matches('\r'))))
            .collect()
    }

    /// Reads a line; `None` if it is not in the format.
    pub fn read(line: &str) -> Option<Self> {
        let (time, rest) = line.strip_prefix('[')?.split_once("] ")?;
        let (date, clock) = time.strip_suffix(" UTC")?.split_once(' ')?;
        let at = format!("{date}T{clock}Z").parse().ok()?;
        let task = rest.strip_prefix("[Task ").and_then(|rest| rest.split_once("] "));
        let (task, text) = match task.and_then(|(task, text)| Some((task.parse().ok()?, text))) {
            Some((task, text)) => (Some(task), text),
            None => (None, rest),
        };
        Some(Self { at, task, text: text.to_owned() })
    }
}

/// The key of notes that are about no task.
pub const GENERAL: &str = "progress";

/// What a note of progress says, as the journal has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Note {
    /// Text that was logged here.
    Text {
        /// The text.
        text: String,
    },
    /// A line that someone else wrote into the file, as it was.
    Line {
        /// The line.
        line: String,
    },
}

impl Note {
    /// The event that keeps the note.
    pub fn event(&self, key: String, at: Timestamp) -> Event {
        let body = serde_json::to_value(self).expect("a note has string keys only");
        Event { topic: Topic::Note, key, at, body }
    }

    /// The event that keeps a line of someone else's file: with the time it names, else with this one.
    pub fn of_line(line: &str, now: Timestamp) -> Event {
        let at = Line::read(line).map_or(now, |line| line.at);
        Note::Line { line: line.to_owned() }.event(GENERAL.to_owned(), at)
    }
}

/// Reads the number from the name of a task's run.
pub fn number_of(run: &str) -> Option<u64> {
    run.strip_prefix("task-")?.parse().ok()
}

/// The lines of a note, as they are shown; none if the event is no note of ours.
pub fn lines_of(event: &Event) -> Vec<String> {
    let task = number_of(&event.key);
    if task.is_none() && event.key != GENERAL {
        return Vec::new();
    }
    match serde_json::from_value(event.body.clone()) {
        Ok(Note::Text { text }) => Line { at: event.at, task, text }.write(),
        Ok(Note::Line { line }) => vec![shown(&line).into_owned()],
        Err(_) => Vec::new(),
    }
}

/// The lines of a file that are not known yet. One that is there twice must be known twice.
pub fn new_lines(file: &str, known: impl IntoIterator<Item = String>) -> Vec<&str> {
    let mut counts = HashMap::<String, usize>::new();
    known.into_iter().for_each(|line| *counts.entry(line).or_default() += 1);
    let mut is_new = |line: &&str| match counts.get_mut(shown(line).as_ref()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => !line.is_empty(),
    };
    file.lines().filter(|line| is_new(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_read_back() {
        for stage in Stage::ALL {
            assert_eq!(parse_tag(&tag(12, *stage)), Some((12, *stage)));
        }
        for other in ["checkpoint-0190163d", "checkpoint-t1-later", "checkpoint-tx-start", "v1"] {
            assert_eq!(parse_tag(other), None, "{other}");
        }
    }

    #[test]
    fn lines_read_back_and_have_no_prefix_without_a_task() {
        let at = "2026-01-31T08:00:00Z".parse().unwrap();
        let line = Line { at, task: Some(7), text: "did it\nand that".into() };
        let written = line.write();
        assert_eq!(written[0], "[2026-01-31 08:00:00 UTC] [Task 7] did it");
        assert_eq!(Line::read(&written[1]), Some(Line { text: "and that".into(), ..line.clone() }));
        for task in [None, Some(0)] {
            assert_eq!(Line { at, task, text: "x".into() }.write(), ["[2026-01-31 08:00:00 UTC] x"]);
        }
        assert_eq!(Line::read("by hand"), None);
    }
}
