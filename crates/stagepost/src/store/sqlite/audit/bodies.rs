//! What the bodies of entries say.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::{Connection, params};

use super::super::super::check::pruned_by;
use super::super::super::{Audited, Damage, Error};
use super::super::row::{COLUMNS, Class, Entry, checkpoint_tags, event_tag};
use super::moment::Moment;
use super::outline::{Outline, Place};
use super::{check_database, each_row};
use crate::model::{BlobRef, CheckpointId};

/// So many entries are read at a time by one thread.
const CHUNK: usize = 512;

#[derive(Default)]
pub(super) struct Bodies {
    pub(super) audited: Audited,
    pub(super) damage: Vec<Damage>,
    pub(super) payloads: Vec<(BlobRef, Damage)>,
    pub(super) pruned: HashSet<CheckpointId>,
    pub(super) tags: Vec<(String, i64)>,
}

impl Bodies {
    /// Reads all bodies on all cores; one of them looks at the database file first.
    pub(super) fn read(moment: &Moment, outline: &Outline) -> Result<Self, Error> {
        let next = AtomicUsize::new(0);
        let parts = moment.in_parallel(|index, connection| {
            let mut bodies = Bodies::default();
            if index == 0 {
                bodies.damage = check_database(connection);
            }
            while let Some(places) = chunk(&outline.places, &next) {
                bodies.read_chunk(connection, outline, places);
            }
            Ok(bodies)
        })?;
        let mut all = Bodies::default();
        parts.into_iter().for_each(|part| all.merge(part));
        Ok(all)
    }

    fn read_chunk(&mut self, connection: &Connection, outline: &Outline, places: &[Place]) {
        let (Some(first), Some(last)) = (places.first(), places.last()) else { return };
        let sql = format!("SELECT {COLUMNS} FROM entries WHERE position BETWEEN ?1 AND ?2");
        let values = params![first.position, last.position];
        let mut damage = std::mem::take(&mut self.damage);
        each_row(connection, &sql, values, "an entry", &mut damage, Entry::read, |entry, damage| {
            damage.extend(self.check(outline, &entry));
        });
        self.damage = damage;
    }

    fn check(&mut self, outline: &Outline, entry: &Entry) -> Option<Damage> {
        let outcome = if entry.is(Class::Checkpoint) {
            self.check_checkpoint(outline, entry)
        } else if entry.is(Class::Event) {
            self.check_event(entry)
        } else if entry.is(Class::Run) {
            check_run(outline, entry)
        } else {
            Err(entry.damaged("it is of no known class"))
        };
        let run = outline.runs.get(&entry.run).map(|row| row.name.clone());
        let error = outcome.err()?;
        Some(Damage { run, checkpoint: entry.id, artifact: None, what: error.to_string(), derived: false })
    }

    fn check_checkpoint(&mut self, outline: &Outline, entry: &Entry) -> Result<(), Error> {
        if entry.body.is_none() {
            self.audited.stubs += 1;
            let sound = entry.at == 0 && entry.tags.is_none();
            return if sound { Ok(()) } else { Err(entry.damaged("it was pruned, but not as we do it")) };
        }
        self.audited.checkpoints += 1;
        let run = outline.runs.get(&entry.run).ok_or_else(|| entry.damaged("its run is gone"))?;
        let before = outline.before(entry).ok_or_else(|| entry.damaged("what it follows is gone"))?;
        let checkpoint = entry.to_checkpoint(run.name.clone(), &before)?;
        if outline.names_its_parent_in_vain(entry) {
            return Err(entry.damaged("it names its parent where we would not"));
        }
        for artifact in &checkpoint.content.artifacts {
            let user = Damage { artifact: Some(artifact.name.to_string()), ..Damage::of(&checkpoint, "") };
            self.payloads.push((artifact.blob, user));
        }
        self.check_tags(entry, checkpoint_tags(&checkpoint))
    }

    fn check_event(&mut self, entry: &Entry) -> Result<(), Error> {
        self.audited.events += 1;
        let event = entry.to_event()?;
        self.pruned.extend(pruned_by(&event));
        self.check_tags(entry, Some(event_tag(event.topic, &event.key)))?;
        let placed = (entry.run, entry.seq, entry.id, entry.parent, entry.at);
        only_if(placed == (0, 0, None, None, event.at.as_micros()), entry)
    }

    /// What an entry is found by is not sealed: it must be what the record says.
    fn check_tags(&mut self, entry: &Entry, expected: Option<String>) -> Result<(), Error> {
        for tag in expected.iter().flat_map(|tags| tags.split('\n')) {
            self.tags.push((tag.to_owned(), entry.position));
        }
        if entry.tags == expected {
            Ok(())
        } else {
            Err(entry.damaged("it is filed under other names than it has"))
        }
    }

    fn merge(&mut self, other: Bodies) {
        self.audited.checkpoints += other.audited.checkpoints;
        self.audited.stubs += other.audited.stubs;
        self.audited.events += other.audited.events;
        self.damage.extend(other.damage);
        self.payloads.extend(other.payloads);
        self.pruned.extend(other.pruned);
        self.tags.extend(other.tags);
    }
}

fn check_run(outline: &Outline, entry: &Entry) -> Result<(), Error> {
    let run = entry.to_run()?;
    if outline.runs.get(&entry.run).is_none_or(|row| row.name != run.id) {
        return Err(entry.damaged("its name is not the one it was given"));
    }
    let placed = (entry.seq, entry.id, entry.parent, &entry.tags, entry.at);
    only_if(placed == (0, None, None, &None, run.created_at.as_micros()), entry)
}

/// Columns that the record itself has too, or that its class does not use, are not sealed.
fn only_if(sound: bool, entry: &Entry) -> Result<(), Error> {
    if sound { Ok(()) } else { Err(entry.damaged("it is filed with other particulars than it has")) }
}

/// Takes the next chunk that nobody has taken.
pub(super) fn chunk<'a, T>(all: &'a [T], next: &AtomicUsize) -> Option<&'a [T]> {
    let start = next.fetch_add(CHUNK, Ordering::Relaxed).min(all.len());
    let chunk = &all[start..(start + CHUNK).min(all.len())];
    (!chunk.is_empty()).then_some(chunk)
}
