//! The journal without bodies: places, the chain, the end.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use super::super::super::{Damage, Error};
use super::super::known::{Indexed, read_state};
use super::super::row::{Before, Class, Entry, id_from};
use super::each_row;
use crate::model::{CheckpointId, Hash, RunId, chain, chain_start};

#[derive(Default)]
pub(super) struct Outline {
    pub(super) places: Vec<Place>,
    by_id: HashMap<CheckpointId, usize>,
    by_run: HashMap<(i64, i64), usize>,
    run_start: HashMap<i64, Hash>,
    pub(super) runs: HashMap<i64, RunRow>,
    pub(super) indexed: Option<Indexed>,
}

pub(super) struct Place {
    pub(super) position: i64,
    pub(super) class: i64,
    pub(super) run: i64,
    pub(super) seq: i64,
    pub(super) id: Option<CheckpointId>,
    seal: Hash,
    pruned: bool,
}

pub(super) struct RunRow {
    pub(super) name: RunId,
    position: i64,
}

const PLACES: &str =
    "SELECT position, class, run, seq, id, seal, body IS NULL FROM entries ORDER BY position";

impl Outline {
    pub(super) fn read(
        connection: impl std::ops::Deref<Target = Connection>,
        found: &mut Vec<Damage>,
    ) -> Result<Self, Error> {
        let mut outline = Self::default();
        outline.read_runs(&connection, found);
        each_row(&connection, PLACES, [], "an entry of the journal", found, Place::read, |place, found| {
            outline.add(place, found);
        });
        outline.check_runs(found);
        outline.check_chain(&connection, found);
        Ok(outline)
    }

    fn read_runs(&mut self, connection: &Connection, found: &mut Vec<Damage>) {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?));
        let sql = "SELECT number, name, position FROM runs";
        each_row(connection, sql, [], "the name of a run", found, read, |(number, name, position), found| {
            match RunId::new(name) {
                Ok(name) => drop(self.runs.insert(number, RunRow { name, position })),
                Err(error) => found.push(Damage::general(format!("run number {number}: {error}"))),
            }
        });
    }

    fn add(&mut self, place: Place, found: &mut Vec<Damage>) {
        let expected = self.places.last().map_or(1, |last| last.position + 1);
        if place.position != expected {
            let gap = if place.position == expected + 1 {
                format!("entry {expected} is")
            } else {
                format!("entries {expected} to {} are", place.position - 1)
            };
            found.push(Damage::general(format!("{gap} missing from the journal")));
        }
        if place.class == Class::Run as i64 {
            self.add_run(&place, found);
        } else if place.class == Class::Checkpoint as i64 {
            self.add_checkpoint(&place, found);
        }
        self.places.push(place);
    }

    fn add_run(&mut self, place: &Place, found: &mut Vec<Damage>) {
        self.run_start.insert(place.run, place.seal);
        let row = self.runs.get(&place.run);
        if row.is_none_or(|row| row.position != place.position) {
            let what = format!("the run of entry {} is not listed where it is", place.position);
            found.push(self.damage(place, what));
        }
    }

    fn add_checkpoint(&mut self, place: &Place, found: &mut Vec<Damage>) {
        let index = self.places.len();
        if place.seq > 1 && !self.by_run.contains_key(&(place.run, place.seq - 1)) {
            found.push(self.damage(place, format!("checkpoint {} of its run is missing", place.seq - 1)));
        }
        if self.by_run.insert((place.run, place.seq), index).is_some() {
            found.push(self.damage(place, format!("there is another checkpoint {} of its run", place.seq)));
        }
        if place.id.is_some_and(|id| self.by_id.insert(id, index).is_some()) {
            found.push(self.damage(place, "there is another checkpoint of this id".to_owned()));
        }
    }

    fn check_runs(&self, found: &mut Vec<Damage>) {
        for (number, row) in self.runs.iter().filter(|(number, _)| !self.run_start.contains_key(number)) {
            let what = format!("the record of run number {number} is gone");
            found.push(Damage { run: Some(row.name.clone()), ..Damage::general(what) });
        }
    }

    /// The chain up to the last entry that the tables `by_*` follow must be the one noted then.
    fn check_chain(&mut self, connection: &Connection, found: &mut Vec<Damage>) {
        let (indexed, noted) = match read_state(connection) {
            Ok(state) => state,
            Err(error) => {
                return found
                    .push(Damage::general(format!("the state of the store cannot be read: {error}")));
            }
        };
        let last = self.places.last().map_or(0, |place| place.position);
        if self.chain_to(indexed.entries) != noted || indexed.entries > last || indexed.entries < 0 {
            let what = format!("the chain of seals up to entry {} is broken", indexed.entries);
            found.push(Damage::general(what));
        }
        self.indexed = Some(indexed);
    }

    fn chain_to(&self, position: i64) -> Hash {
        let before = self.places.iter().take_while(|place| place.position <= position);
        before.fold(chain_start(), |so_far, place| chain(&so_far, &place.seal))
    }

    /// Compares the end of the journal with what was remembered of it.
    pub(super) fn check_end(&self, remembered: Option<(i64, Hash)>, found: &mut Vec<Damage>) {
        let Some((position, noted)) = remembered else { return };
        let last = self.places.last().map_or(0, |place| place.position);
        if last < position {
            let what = format!("the journal ends at entry {last}, but entry {position} was written");
            found.push(Damage::general(what));
        } else if self.chain_to(position) != noted {
            let what = format!("the journal up to entry {position} is not the one that was written");
            found.push(Damage::general(what));
        }
    }

    pub(super) fn damage(&self, place: &Place, what: String) -> Damage {
        let run = self.runs.get(&place.run).map(|row| row.name.clone());
        Damage { run, checkpoint: place.id, artifact: None, what, derived: false }
    }

    /// Finds what a checkpoint must be sealed after.
    pub(super) fn before(&self, entry: &Entry) -> Option<Before> {
        let index = match (entry.parent, entry.seq) {
            (Some(parent), _) => self.by_id.get(&parent)?,
            (None, ..=1) => return Some(Before { parent: None, seal: *self.run_start.get(&entry.run)? }),
            (None, seq) => self.by_run.get(&(entry.run, seq - 1))?,
        };
        let parent = &self.places[*index];
        Some(Before { parent: parent.id, seal: parent.seal })
    }

    /// Says whether an entry names as its parent what it would follow anyway.
    pub(super) fn names_its_parent_in_vain(&self, entry: &Entry) -> bool {
        let before = self.by_run.get(&(entry.run, entry.seq - 1)).and_then(|index| self.places[*index].id);
        entry.parent.is_some() && entry.parent == before
    }

    /// A checkpoint without a body is sound only if an event says that it was pruned.
    pub(super) fn check_stubs(&self, pruned: &HashSet<CheckpointId>, found: &mut Vec<Damage>) {
        let stubs =
            self.places.iter().filter(|place| place.class == Class::Checkpoint as i64 && place.pruned);
        for stub in stubs.filter(|stub| stub.id.is_none_or(|id| !pruned.contains(&id))) {
            found.push(self.damage(stub, "its content is gone, and it was never pruned".to_owned()));
        }
    }
}

impl Place {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            position: row.get(0)?,
            class: row.get(1)?,
            run: row.get(2)?,
            seq: row.get(3)?,
            id: row.get::<_, Option<[u8; 16]>>(4)?.map(id_from),
            seal: Hash::from_bytes(row.get(5)?),
            pruned: row.get(6)?,
        })
    }
}
