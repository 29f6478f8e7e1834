//! Lines of progress. They are only ever added, and kept where no rollback reaches.

use std::io;

use super::{Error, Task, view};
use crate::bounded;
use crate::formats::tasks::{GENERAL, Note, PROGRESS, lines_of, new_lines};
use crate::model::{Event, Topic};
use crate::project::{self, Project};
use crate::store::{Batch, EventQuery, NewEntry};

/// A file of progress with more than this is something else.
const MOST_BYTES: u64 = 16 << 20;

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
    let outdated = view::claim(project)?;
    let note = Note::Text { text: text.to_owned() };
    write(project, vec![note.event(key, project.context().clock.now())])?;
    view::publish(project, outdated)
}

fn write(project: &Project, notes: Vec<Event>) -> Result<(), Error> {
    let entries = notes.into_iter().map(NewEntry::Event).collect();
    project.store().write(Batch { entries, ..Batch::default() })?;
    Ok(())
}

/// Takes in lines that someone else wrote into the file, so that no view loses them.
pub(super) fn adopt(project: &Project) -> Result<(), Error> {
    let path = project.place().root.join(PROGRESS);
    let bytes = match bounded::open(&path).and_then(|file| bounded::read(file, MOST_BYTES)) {
        Ok(bytes) => bytes,
        Err(source) if source.kind() == io::ErrorKind::FileTooLarge => {
            return Err(project::Error::File { doing: "take in the lines of", path, source }.into());
        }
        Err(_) => return Ok(()),
    };
    let text = String::from_utf8_lossy(&bytes);
    let foreign = new_lines(&text, all_lines(project)?);
    if foreign.is_empty() {
        return Ok(());
    }
    let now = project.context().clock.now();
    write(project, foreign.into_iter().map(|line| Note::of_line(line, now)).collect())
}

/// Returns every line of progress, oldest first.
pub(super) fn all_lines(project: &Project) -> Result<Vec<String>, Error> {
    let query = EventQuery { topic: Topic::Note, key: None, last: None };
    let events = project.store().events(&query)?;
    Ok(events.iter().flat_map(|(_, event)| lines_of(event)).collect())
}
