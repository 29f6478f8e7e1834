//! Lines of progress. They are only ever added, and kept where no rollback reaches.

use serde::{Deserialize, Serialize};

use super::{Error, Task, number_of, view};
use crate::formats::tasks::Line;
use crate::model::{Event, Topic};
use crate::project::Project;
use crate::store::{Batch, EventQuery, NewEntry};

/// The key of notes that are about no task.
const GENERAL: &str = "progress";

/// What a note says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Note {
    /// Text that was logged here.
    Text { text: String },
    /// A line that someone else wrote into the file, as it was.
    Line { line: String },
}

/// Notes progress that is about no task.
pub fn log_progress(project: &Project, text: &str) -> Result<(), Error> {
    note(project, GENERAL.to_owned(), text)
}

/// Returns the newest `lines` lines of progress, oldest first.
pub fn recent_progress(project: &Project, lines: usize) -> Result<Vec<String>, Error> {
    adopt(project)?;
    let mut all = all_lines(project)?;
    all.drain(..all.len().saturating_sub(lines));
    Ok(all)
}

impl Task<'_> {
    /// Notes progress of this task.
    pub fn log_progress(&self, text: &str) -> Result<(), Error> {
        note(self.project, self.run.to_string(), text)
    }

    /// Returns all lines of progress of this task, oldest first.
    pub fn progress(&self) -> Result<Vec<String>, Error> {
        adopt(self.project)?;
        let marker = format!("[Task {}]", self.number);
        let query = EventQuery { topic: Topic::Note, key: None, last: None };
        let events = self.project.store().events(&query)?.into_iter().map(|(_, event)| event);
        let own = |event: &Event| event.key == self.run.as_str();
        let lines = events.flat_map(|event| {
            let all = own(&event);
            lines_of(&event)
                .into_iter()
                .filter(move |_| all || event.key == GENERAL)
                .map(move |line| (all, line))
        });
        Ok(lines.filter(|(all, line)| *all || line.contains(&marker)).map(|(_, line)| line).collect())
    }
}

fn note(project: &Project, key: String, text: &str) -> Result<(), Error> {
    view::claim(project)?;
    write(project, vec![(key, Note::Text { text: text.to_owned() })])?;
    view::publish(project)
}

fn write(project: &Project, notes: Vec<(String, Note)>) -> Result<(), Error> {
    let at = project.context().clock.now();
    let events = notes.into_iter().map(|(key, note)| {
        let body = serde_json::to_value(note).expect("a note has string keys only");
        NewEntry::Event(Event { topic: Topic::Note, key, at, body })
    });
    project.store().write(Batch { entries: events.collect(), ..Batch::default() })?;
    Ok(())
}

/// Takes in lines that someone else wrote into the file, so that no view loses them.
pub(super) fn adopt(project: &Project) -> Result<(), Error> {
    let path = project.place().root.join(crate::formats::tasks::PROGRESS);
    let Ok(bytes) = std::fs::read(path) else { return Ok(()) };
    let text = String::from_utf8_lossy(&bytes);
    let mut known = std::collections::HashMap::<String, usize>::new();
    for line in all_lines(project)? {
        *known.entry(line).or_default() += 1;
    }
    let mut is_foreign = |line: &&str| match known.get_mut(*line) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => !line.is_empty(),
    };
    let foreign: Vec<_> = text.lines().filter(|line| is_foreign(line)).collect();
    if foreign.is_empty() {
        return Ok(());
    }
    let note = |line: &str| (GENERAL.to_owned(), Note::Line { line: line.to_owned() });
    write(project, foreign.into_iter().map(note).collect())
}

/// Returns every line of progress, oldest first.
pub(super) fn all_lines(project: &Project) -> Result<Vec<String>, Error> {
    let query = EventQuery { topic: Topic::Note, key: None, last: None };
    let events = project.store().events(&query)?;
    Ok(events.iter().flat_map(|(_, event)| lines_of(event)).collect())
}

/// The lines of a note; none if the event is no note of ours.
fn lines_of(event: &Event) -> Vec<String> {
    let task = number_of(&event.key);
    if task.is_none() && event.key != GENERAL {
        return Vec::new();
    }
    match serde_json::from_value(event.body.clone()) {
        Ok(Note::Text { text }) => Line { at: event.at, task, text }.write(),
        Ok(Note::Line { line }) => vec![line],
        Err(_) => Vec::new(),
    }
}
