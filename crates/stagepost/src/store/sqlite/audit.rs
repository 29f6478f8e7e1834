//! Reading everything again.
//!
//! First the journal is read in order, without bodies: places, the chain, the end. Then all cores read bodies and
//! compute seals, and after that payloads. Every damage is reported and nothing stops the rest from being read.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, params};

use super::super::{Audited, Damage, Error};
use super::row::{Before, COLUMNS, Class, Entry, checkpoint_tags, event_tag, id_from};
use super::write::{read_state, remembered_head, short};
use super::{SqliteStore, db, lock};
use crate::model::{BlobRef, CheckpointId, Hash, RunId, Topic, chain, chain_start};

/// The journal without bodies.
#[derive(Default)]
struct Outline {
    places: Vec<Place>,
    by_id: HashMap<CheckpointId, usize>,
    by_run: HashMap<(i64, i64), usize>,
    run_start: HashMap<i64, Hash>,
    run_names: HashMap<i64, RunId>,
    chain: Option<Hash>,
}

struct Place {
    position: i64,
    class: i64,
    run: i64,
    seq: i64,
    id: Option<CheckpointId>,
    seal: Hash,
    pruned: bool,
}

/// What the bodies say.
#[derive(Default)]
struct Bodies {
    audited: Audited,
    damage: Vec<Damage>,
    payloads: Vec<(BlobRef, Damage)>,
    pruned: HashSet<CheckpointId>,
    tags: Vec<(String, i64)>,
}

impl SqliteStore {
    pub(super) fn audit_all(&self, report: &mut dyn FnMut(Damage)) -> Result<Audited, Error> {
        let mut found = Vec::new();
        self.read(|connection| check_database(connection, &mut found))?;
        let outline = self.read(|connection| Outline::read(connection, &mut found))?;
        self.check_end(&outline, &mut found)?;
        let mut bodies = self.read_bodies(&outline)?;
        found.append(&mut bodies.damage);
        outline.check_stubs(&bodies, &mut found);
        self.check_payloads(&mut bodies, &mut found)?;
        self.read(|connection| check_tables(connection, &outline, &bodies, &mut found))?;
        found.into_iter().for_each(report);
        Ok(bodies.audited)
    }

    /// Compares the end of the journal with what was remembered of it.
    fn check_end(&self, outline: &Outline, found: &mut Vec<Damage>) -> Result<(), Error> {
        let Some((position, remembered)) = remembered_head(&self.folder) else { return Ok(()) };
        let mut so_far = chain_start();
        for (expected, place) in (1..=position).zip(&outline.places) {
            if place.position != expected {
                break;
            }
            so_far = chain(&so_far, &place.seal);
        }
        let last = outline.places.last().map_or(0, |place| place.position);
        if last < position {
            found.push(Damage::general(format!(
                "the journal ends at entry {last}, but entry {position} was written"
            )));
        } else if so_far != remembered {
            found.push(Damage::general(format!(
                "the journal up to entry {position} is not the one that was written"
            )));
        }
        Ok(())
    }

    /// Reads all bodies on all cores.
    fn read_bodies(&self, outline: &Outline) -> Result<Bodies, Error> {
        const CHUNK: usize = 512;
        let (all, next) = (Mutex::new(Bodies::default()), AtomicUsize::new(0));
        let work = || -> Result<(), Error> {
            let mut bodies = Bodies::default();
            loop {
                let start = next.fetch_add(CHUNK, Ordering::Relaxed);
                let Some(places) = outline.places.get(start..(start + CHUNK).min(outline.places.len()))
                else {
                    break;
                };
                if places.is_empty() {
                    break;
                }
                self.read(|connection| bodies.read(connection, outline, places))?;
            }
            all.lock().unwrap_or_else(PoisonError::into_inner).merge(bodies);
            Ok(())
        };
        in_parallel(work)?;
        Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Hashes every payload that a checkpoint refers to, once, on all cores.
    fn check_payloads(&self, bodies: &mut Bodies, found: &mut Vec<Damage>) -> Result<(), Error> {
        let mut users: HashMap<BlobRef, Vec<Damage>> = HashMap::new();
        for (blob, user) in bodies.payloads.drain(..) {
            users.entry(blob).or_default().push(user);
        }
        let blobs: Vec<BlobRef> = users.keys().copied().collect();
        let (next, broken, bytes) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(0u64));
        in_parallel(|| {
            let mut read = 0;
            while let Some(blob) = blobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                match self.check_payload(blob) {
                    Ok(()) => read += blob.size,
                    Err(error) => lock(&broken).push((*blob, error.to_string())),
                }
            }
            *lock(&bytes) += read;
            Ok(())
        })?;
        bodies.audited.blobs = blobs.len() as u64;
        bodies.audited.bytes = *lock(&bytes);
        for (blob, what) in lock(&broken).drain(..) {
            let named = users.remove(&blob).unwrap_or_default();
            found.extend(named.into_iter().map(|user| Damage { what: what.clone(), ..user }));
        }
        Ok(())
    }

    fn check_payload(&self, blob: &BlobRef) -> Result<(), Error> {
        let mut stream = self.open_stream(blob)?;
        let copied = std::io::copy(&mut stream, &mut std::io::sink());
        copied.map(drop).map_err(|error| match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Error::Source(error),
        })
    }
}

/// Runs `work` on all cores until each has returned.
fn in_parallel(work: impl Fn() -> Result<(), Error> + Sync) -> Result<(), Error> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..cores).map(|_| scope.spawn(&work)).collect();
        let mine = work();
        others.into_iter().try_fold((), |(), other| other.join().unwrap_or(Err(Error::WriterLost))).and(mine)
    })
}

fn check_database(connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Error> {
    let mut statement = connection.prepare("PRAGMA quick_check(20)").map_err(db("check"))?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0));
    match rows.and_then(Iterator::collect::<Result<Vec<_>, _>>) {
        Ok(lines) => {
            let faults = lines.into_iter().filter(|line| line != "ok");
            found.extend(faults.map(|line| {
                Damage::general(format!("the database file is damaged: {}", line.replace('\n', " ")))
            }));
        }
        Err(error) => found.push(Damage::general(format!("the database file is damaged: {error}"))),
    }
    Ok(())
}

impl Outline {
    fn read(connection: &Connection, found: &mut Vec<Damage>) -> Result<Self, Error> {
        let mut outline = Self::default();
        outline.read_runs(connection, found)?;
        const SQL: &str =
            "SELECT position, class, run, seq, id, seal, body IS NULL FROM entries ORDER BY position";
        let mut statement = connection.prepare(SQL).map_err(db("read the journal"))?;
        let mut rows = statement.query([]).map_err(db("read the journal"))?;
        loop {
            match rows.next() {
                Ok(Some(row)) => match Place::read(row) {
                    Ok(place) => outline.add(place, found),
                    Err(error) => found
                        .push(Damage::general(format!("an entry of the journal cannot be read: {error}"))),
                },
                Ok(None) => break,
                Err(error) => {
                    found.push(Damage::general(format!("the journal cannot be read to its end: {error}")));
                    break;
                }
            }
        }
        outline.check_chain(connection, found)?;
        Ok(outline)
    }

    fn read_runs(&mut self, connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Error> {
        let mut statement =
            connection.prepare("SELECT number, name FROM runs").map_err(db("read the runs"))?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)));
        for row in rows.map_err(db("read the runs"))? {
            let sound = row.map_err(|error| error.to_string()).and_then(|(number, name)| {
                RunId::new(name).map(|name| (number, name)).map_err(|error| error.to_string())
            });
            match sound {
                Ok((number, name)) => drop(self.run_names.insert(number, name)),
                Err(error) => {
                    found.push(Damage::general(format!("the name of a run cannot be read: {error}")))
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, place: Place, found: &mut Vec<Damage>) {
        let index = self.places.len();
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
            self.run_start.insert(place.run, place.seal);
        }
        if place.class == Class::Checkpoint as i64 {
            if place.seq > 1 && !self.by_run.contains_key(&(place.run, place.seq - 1)) {
                found
                    .push(self.damage(&place, format!("checkpoint {} of its run is missing", place.seq - 1)));
            }
            if let Some(id) = place.id {
                self.by_id.insert(id, index);
            }
            self.by_run.insert((place.run, place.seq), index);
        }
        self.places.push(place);
    }

    /// The chain up to the last entry that the tables `by_*` follow must be the one noted then.
    fn check_chain(&mut self, connection: &Connection, found: &mut Vec<Damage>) -> Result<(), Error> {
        let (indexed, noted) = match read_state(connection) {
            Ok(state) => state,
            Err(error) => {
                found.push(Damage::general(format!("the state of the store cannot be read: {error}")));
                return Ok(());
            }
        };
        let before = self.places.iter().take_while(|place| place.position <= indexed.entries);
        let so_far = before.fold(chain_start(), |so_far, place| chain(&so_far, &place.seal));
        if so_far != noted {
            found.push(Damage::general(format!(
                "the chain of seals up to entry {} is broken",
                indexed.entries
            )));
        }
        self.chain = Some(so_far);
        Ok(())
    }

    fn damage(&self, place: &Place, what: String) -> Damage {
        Damage {
            run: self.run_names.get(&place.run).cloned(),
            checkpoint: place.id,
            artifact: None,
            what,
            derived: false,
        }
    }

    /// Finds what a checkpoint must be sealed after.
    fn before(&self, entry: &Entry) -> Option<Before> {
        let index = match (entry.parent, entry.seq) {
            (Some(parent), _) => self.by_id.get(&parent)?,
            (None, ..=1) => return Some(Before { parent: None, seal: *self.run_start.get(&entry.run)? }),
            (None, seq) => self.by_run.get(&(entry.run, seq - 1))?,
        };
        let parent = &self.places[*index];
        Some(Before { parent: parent.id, seal: parent.seal })
    }

    /// A checkpoint without a body is sound only if an event says that it was pruned.
    fn check_stubs(&self, bodies: &Bodies, found: &mut Vec<Damage>) {
        let stubs =
            self.places.iter().filter(|place| place.class == Class::Checkpoint as i64 && place.pruned);
        for stub in stubs.filter(|stub| stub.id.is_none_or(|id| !bodies.pruned.contains(&id))) {
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

impl Bodies {
    fn read(&mut self, connection: &Connection, outline: &Outline, places: &[Place]) -> Result<(), Error> {
        let (Some(first), Some(last)) = (places.first(), places.last()) else { return Ok(()) };
        let sql = format!("SELECT {COLUMNS} FROM entries WHERE position BETWEEN ?1 AND ?2");
        let mut statement = connection.prepare_cached(&sql).map_err(db("read the journal"))?;
        let mut rows =
            statement.query(params![first.position, last.position]).map_err(db("read the journal"))?;
        loop {
            match rows.next() {
                Ok(Some(row)) => match Entry::read(row) {
                    Ok(entry) => self.check(outline, &entry),
                    Err(error) => {
                        self.damage.push(Damage::general(format!("an entry cannot be read: {error}")))
                    }
                },
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.damage.push(Damage::general(format!("entries cannot be read: {error}")));
                    return Ok(());
                }
            }
        }
    }

    fn check(&mut self, outline: &Outline, entry: &Entry) {
        let outcome = if entry.is(Class::Checkpoint) {
            self.check_checkpoint(outline, entry)
        } else if entry.is(Class::Event) {
            self.check_event(entry)
        } else if entry.is(Class::Run) {
            entry.to_run().and_then(|run| match outline.run_names.get(&entry.run) {
                Some(name) if *name == run.id => Ok(()),
                _ => Err(entry.damaged("its name is not the one it was given")),
            })
        } else {
            Err(entry.damaged("it is of no known class"))
        };
        if let Err(error) = outcome {
            let run = outline.run_names.get(&entry.run).cloned();
            self.damage.push(Damage {
                run,
                checkpoint: entry.id,
                artifact: None,
                what: error.to_string(),
                derived: false,
            });
        }
    }

    fn check_checkpoint(&mut self, outline: &Outline, entry: &Entry) -> Result<(), Error> {
        if entry.body.is_none() {
            self.audited.stubs += 1;
            return Ok(());
        }
        self.audited.checkpoints += 1;
        let run =
            outline.run_names.get(&entry.run).cloned().ok_or_else(|| entry.damaged("its run is gone"))?;
        let before = outline.before(entry).ok_or_else(|| entry.damaged("what it follows is gone"))?;
        let checkpoint = entry.to_checkpoint(run, &before)?;
        self.check_tags(entry, checkpoint_tags(&checkpoint))?;
        for artifact in &checkpoint.content.artifacts {
            let user = Damage { artifact: Some(artifact.name.to_string()), ..Damage::of(&checkpoint, "") };
            self.payloads.push((artifact.blob, user));
        }
        Ok(())
    }

    fn check_event(&mut self, entry: &Entry) -> Result<(), Error> {
        self.audited.events += 1;
        let event = entry.to_event()?;
        if event.topic == Topic::Prune {
            let ids = event.body["checkpoints"].as_array().into_iter().flatten();
            self.pruned.extend(ids.filter_map(|id| id.as_str()?.parse::<CheckpointId>().ok()));
        }
        self.check_tags(entry, Some(event_tag(event.topic, &event.key)))
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

/// The tables `by_*` hold nothing that cannot be made again, but a wrong row would find the wrong thing.
fn check_tables(
    connection: &Connection,
    outline: &Outline,
    bodies: &Bodies,
    found: &mut Vec<Damage>,
) -> Result<(), Error> {
    let Ok((indexed, _)) = read_state(connection) else { return Ok(()) };
    let followed =
        |place: &&Place| place.class == Class::Checkpoint as i64 && place.position <= indexed.entries;
    let ids: HashSet<(CheckpointId, i64)> = outline
        .places
        .iter()
        .filter(followed)
        .filter_map(|place| Some((place.id?, place.position)))
        .collect();
    let runs: HashSet<(i64, i64, i64)> =
        outline.places.iter().filter(followed).map(|place| (place.run, place.seq, place.position)).collect();
    let tags: HashSet<(&str, i64)> = bodies
        .tags
        .iter()
        .filter(|(_, at)| *at <= indexed.entries)
        .map(|(tag, at)| (tag.as_str(), *at))
        .collect();
    let mut check = |table: &str, sound: Result<bool, rusqlite::Error>| match sound {
        Ok(true) => {}
        Ok(false) => found.push(Damage {
            derived: true,
            ..Damage::general(format!("the lookup table `{table}` does not fit the journal"))
        }),
        Err(error) => found.push(Damage {
            derived: true,
            ..Damage::general(format!("the table `{table}` cannot be read: {error}"))
        }),
    };
    check(
        "by_id",
        same(connection, "SELECT id, position FROM by_id", ids.len(), |row| {
            Ok(ids.contains(&(id_from(row.get(0)?), row.get(1)?)))
        }),
    );
    check(
        "by_run",
        same(connection, "SELECT run, seq, position FROM by_run", runs.len(), |row| {
            Ok(runs.contains(&(row.get(0)?, row.get(1)?, row.get(2)?)))
        }),
    );
    check(
        "by_tag",
        same(connection, "SELECT tag, position FROM by_tag", tags.len(), |row| {
            Ok(tags.contains(&(row.get::<_, String>(0)?.as_str(), row.get(1)?)))
        }),
    );
    for (table, rows, upto) in [("by_piece", "pieces", indexed.pieces), ("by_blob", "blobs", indexed.blobs)] {
        check(table, same_hashes(connection, table, rows, upto));
    }
    Ok(())
}

fn same(
    connection: &Connection,
    sql: &str,
    expected: usize,
    sound: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<bool>,
) -> rusqlite::Result<bool> {
    let (mut statement, mut count) = (connection.prepare(sql)?, 0);
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        count += 1;
        if !sound(row)? {
            return Ok(false);
        }
    }
    Ok(count == expected)
}

fn same_hashes(connection: &Connection, table: &str, rows: &str, upto: i64) -> rusqlite::Result<bool> {
    let sql = format!("SELECT hash, number FROM {rows} WHERE number <= {upto}");
    let mut statement = connection.prepare(&sql)?;
    let expected: HashSet<(i64, i64)> = statement
        .query_map([], |row| Ok((short(&Hash::from_bytes(row.get(0)?)), row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    same(connection, &format!("SELECT hash, number FROM {table}"), expected.len(), |row| {
        Ok(expected.contains(&(row.get(0)?, row.get(1)?)))
    })
}
