//! Rows of the journal and what they mean.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::model::{Checkpoint, CheckpointId, Content, Event, Hash, Run, RunId, Stub, Timestamp};
use crate::store::{Error, Found};

use super::super::blob::{decode, encode};
use super::db;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Run = 1,
    Checkpoint = 2,
    Event = 3,
}

/// The tag under which good checkpoints are found. Labels cannot hold white space, so it is nobody's label.
pub(super) const GOOD_TAG: &str = "\tgood";

/// One row of the journal.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) position: i64,
    pub(super) class: i64,
    pub(super) run: i64,
    pub(super) seq: i64,
    pub(super) id: Option<CheckpointId>,
    pub(super) parent: Option<CheckpointId>,
    pub(super) at: i64,
    pub(super) tags: Option<String>,
    pub(super) body: Option<Vec<u8>>,
    pub(super) seal: Hash,
}

pub(super) const COLUMNS: &str = "position, class, run, seq, id, parent, at, tags, body, seal";

impl Entry {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            position: row.get(0)?,
            class: row.get(1)?,
            run: row.get(2)?,
            seq: row.get(3)?,
            id: row.get::<_, Option<[u8; 16]>>(4)?.map(id_from),
            parent: row.get::<_, Option<[u8; 16]>>(5)?.map(id_from),
            at: row.get(6)?,
            tags: row.get(7)?,
            body: row.get(8)?,
            seal: Hash::from_bytes(row.get(9)?),
        })
    }

    pub(super) fn insert(&self, connection: &Connection) -> Result<(), Error> {
        const SQL: &str = "INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let mut statement = connection.prepare_cached(SQL).map_err(db("append"))?;
        let values = params![
            self.position,
            self.class,
            self.run,
            self.seq,
            self.id.as_ref().map(|id| id.as_uuid().as_bytes()),
            self.parent.as_ref().map(|id| id.as_uuid().as_bytes()),
            self.at,
            self.tags,
            self.body,
            self.seal.as_bytes(),
        ];
        statement.execute(values).map_err(db("append"))?;
        Ok(())
    }

    pub(super) fn is(&self, class: Class) -> bool {
        self.class == class as i64
    }

    fn what(&self) -> String {
        match (&self.id, self.class) {
            (Some(id), _) => format!("checkpoint {id}"),
            (None, class) if class == Class::Run as i64 => format!("the record of run number {}", self.run),
            (None, _) => format!("entry {}", self.position),
        }
    }

    pub(super) fn damaged(&self, why: &str) -> Error {
        Error::Damaged { what: format!("{}: {why}", self.what()) }
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let body = self.body.as_deref().ok_or_else(|| self.damaged("its body is gone"))?;
        let text = unpack(body).map_err(|_| self.damaged("its body cannot be unpacked"))?;
        serde_json::from_slice(&text).map_err(|_| self.damaged("its body cannot be read"))
    }

    fn time(&self) -> Result<Timestamp, Error> {
        Timestamp::from_micros(self.at).map_err(|_| self.damaged("its time is impossible"))
    }

    /// Reads a run and checks its seal.
    pub(super) fn to_run(&self) -> Result<Run, Error> {
        let run: Run = self.parse()?;
        if run.seal() != self.seal {
            return Err(self.damaged("it does not fit its seal"));
        }
        Ok(run)
    }

    /// Reads an event and checks its seal.
    pub(super) fn to_event(&self) -> Result<Event, Error> {
        let event: Event = self.parse()?;
        if event.seal() != self.seal {
            return Err(self.damaged("it does not fit its seal"));
        }
        Ok(event)
    }

    /// Reads what a checkpoint holds, without checking its seal.
    pub(super) fn content(&self) -> Result<Content, Error> {
        self.parse()
    }

    /// Reads a checkpoint and checks its seal against that of its parent.
    pub(super) fn to_checkpoint(&self, run: RunId, before: &Before) -> Result<Checkpoint, Error> {
        let content = self.content()?;
        let id = self.id.ok_or_else(|| self.damaged("its id is gone"))?;
        let seq = u64::try_from(self.seq).map_err(|_| self.damaged("its number is impossible"))?;
        let (created_at, seal) = (self.time()?, self.seal);
        let checkpoint = Checkpoint { id, run, seq, parent: before.parent, created_at, content, seal };
        if checkpoint.expected_seal(&before.seal) != seal {
            return Err(self.damaged("it does not fit its seal"));
        }
        Ok(checkpoint)
    }

    pub(super) fn to_stub(&self, run: RunId) -> Result<Stub, Error> {
        let id = self.id.ok_or_else(|| self.damaged("its id is gone"))?;
        let seq = u64::try_from(self.seq).map_err(|_| self.damaged("its number is impossible"))?;
        Ok(Stub { id, run, seq, seal: self.seal })
    }
}

/// What a checkpoint is sealed after.
#[derive(Debug, Clone)]
pub(super) struct Before {
    pub(super) parent: Option<CheckpointId>,
    pub(super) seal: Hash,
}

pub(super) fn id_from(bytes: [u8; 16]) -> CheckpointId {
    CheckpointId::from_uuid(uuid::Uuid::from_bytes(bytes))
}

/// Bodies are packed from here on; a packed one starts with zstd's magic, which no JSON text does.
const PACK_FROM: usize = 400;
const PACKED: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// No body is longer: the size comes from the file and must not make us ask for all memory.
const LONGEST_BODY: usize = 256 << 20;

pub(super) fn pack(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    let text = serde_json::to_vec(value).expect("records have string keys only");
    if text.len() > LONGEST_BODY {
        return Err(Error::Refused { what: format!("the record has {} bytes", text.len()) });
    }
    if text.len() < PACK_FROM {
        return Ok(text);
    }
    Ok(match encode(&text) {
        std::borrow::Cow::Owned(packed) => [&(text.len() as u32).to_le_bytes()[..], &packed].concat(),
        std::borrow::Cow::Borrowed(_) => text,
    })
}

fn unpack(body: &[u8]) -> std::io::Result<Vec<u8>> {
    match body.split_first_chunk::<4>() {
        Some((size, packed)) if packed.starts_with(&PACKED) => {
            let size = u32::from_le_bytes(*size) as usize;
            if size > LONGEST_BODY {
                return Err(std::io::ErrorKind::InvalidData.into());
            }
            let mut out = Vec::new();
            decode(packed, size, &mut out)?;
            Ok(out)
        }
        _ => Ok(body.to_vec()),
    }
}

/// The tags by which a checkpoint is found: its labels with and without value, and whether it is good.
pub(super) fn checkpoint_tags(checkpoint: &Checkpoint) -> Option<String> {
    if checkpoint.content.labels.is_empty() {
        return checkpoint.is_good().then(|| GOOD_TAG.to_owned());
    }
    let mut tags = BTreeSet::new();
    for label in &checkpoint.content.labels {
        tags.insert(format!("={}", label.name()));
        if label.value().is_some() {
            tags.insert(format!("={label}"));
        }
    }
    if checkpoint.is_good() {
        tags.insert(GOOD_TAG.to_owned());
    }
    (!tags.is_empty()).then(|| tags.into_iter().collect::<Vec<_>>().join("\n"))
}

/// The tag by which an event is found. A line end in a key would look like the end of the tag.
pub(super) fn event_tag(topic: crate::model::Topic, key: &str) -> String {
    format!("{}\t{}", topic.as_str(), key.replace('\\', "\\\\").replace('\n', "\\n"))
}

/// Reads entries by position, with the names of runs and the seals before them.
pub(super) struct Journal<'a>(pub(super) &'a Connection);

impl Journal<'_> {
    pub(super) fn entry(&self, position: i64) -> Result<Option<Entry>, Error> {
        const SQL: &str = "SELECT position, class, run, seq, id, parent, at, tags, body, seal FROM entries \
                           WHERE position = ?1";
        let mut statement = self.0.prepare_cached(SQL).map_err(db("read an entry"))?;
        statement.query_row([position], Entry::read).optional().map_err(db("read an entry"))
    }

    pub(super) fn run_name(&self, number: i64) -> Result<RunId, Error> {
        let mut statement =
            self.0.prepare_cached("SELECT name FROM runs WHERE number = ?1").map_err(db("read a run"))?;
        let name: Option<String> =
            statement.query_row([number], |row| row.get(0)).optional().map_err(db("read a run"))?;
        name.and_then(|name| RunId::new(name).ok())
            .ok_or_else(|| Error::Damaged { what: format!("run number {number} has no sound name") })
    }

    /// Finds the place of a checkpoint: in the table that follows in bulk, or among those it does not have yet.
    pub(super) fn position_of(&self, id: &CheckpointId) -> Result<Option<i64>, Error> {
        const SQL: &str = "SELECT position FROM by_id WHERE id = ?1 UNION ALL SELECT position FROM entries \
                           WHERE position > (SELECT entries FROM state) AND id = ?1 LIMIT 1";
        self.one(SQL, params![id.as_uuid().as_bytes()])
    }

    /// As `position_of`, but only in the table that follows in bulk.
    pub(super) fn indexed_position(&self, id: &CheckpointId) -> Result<Option<i64>, Error> {
        self.one("SELECT position FROM by_id WHERE id = ?1", params![id.as_uuid().as_bytes()])
    }

    pub(super) fn position_at(&self, run: i64, seq: i64) -> Result<Option<i64>, Error> {
        if seq < 1 {
            return Ok(None);
        }
        const SQL: &str = "SELECT position FROM by_run WHERE run = ?1 AND seq = ?2 UNION ALL SELECT position \
                           FROM entries WHERE position > (SELECT entries FROM state) AND run = ?1 AND seq = ?2 LIMIT 1";
        self.one(SQL, params![run, seq])
    }

    /// Finds the newest checkpoint of a run: its place and `seq`.
    pub(super) fn head_of(&self, run: i64) -> Result<Option<(i64, i64)>, Error> {
        const SQL: &str = "SELECT position, seq FROM (SELECT position, seq FROM entries WHERE position > \
                           (SELECT entries FROM state) AND run = ?1 AND seq > 0 ORDER BY position DESC LIMIT 1) \
                           UNION ALL SELECT position, seq FROM (SELECT position, seq FROM by_run WHERE run = ?1 \
                           ORDER BY seq DESC LIMIT 1) LIMIT 1";
        let mut statement = self.0.prepare_cached(SQL).map_err(db("look up a run"))?;
        let row = statement.query_row([run], |row| Ok((row.get(0)?, row.get(1)?)));
        row.optional().map_err(db("look up a run"))
    }

    pub(super) fn run_number(&self, run: &RunId) -> Result<Option<(i64, i64)>, Error> {
        let mut statement = self
            .0
            .prepare_cached("SELECT number, position FROM runs WHERE name = ?1")
            .map_err(db("look up a run"))?;
        let row = statement.query_row([run.as_str()], |row| Ok((row.get(0)?, row.get(1)?)));
        row.optional().map_err(db("look up a run"))
    }

    fn one(&self, sql: &str, values: impl rusqlite::Params) -> Result<Option<i64>, Error> {
        let mut statement = self.0.prepare_cached(sql).map_err(db("look up a checkpoint"))?;
        statement.query_row(values, |row| row.get(0)).optional().map_err(db("look up a checkpoint"))
    }

    /// Finds what a checkpoint must be sealed after.
    pub(super) fn before(&self, entry: &Entry) -> Result<Before, Error> {
        let gone = || entry.damaged("what it follows is gone");
        let position = match (entry.parent, entry.seq) {
            (Some(parent), _) => self.position_of(&parent)?.ok_or_else(gone)?,
            (None, ..=1) => return self.run_start(entry),
            (None, seq) => self.position_at(entry.run, seq - 1)?.ok_or_else(gone)?,
        };
        let parent = self.entry(position)?.ok_or_else(gone)?;
        Ok(Before { parent: parent.id, seal: parent.seal })
    }

    fn run_start(&self, entry: &Entry) -> Result<Before, Error> {
        let gone = || entry.damaged("the record of its run is gone");
        let mut statement = self
            .0
            .prepare_cached(
                "SELECT e.seal FROM runs r JOIN entries e ON e.position = r.position WHERE r.number = ?1",
            )
            .map_err(db("read a run"))?;
        let seal: Option<[u8; 32]> =
            statement.query_row([entry.run], |row| row.get(0)).optional().map_err(db("read a run"))?;
        Ok(Before { parent: None, seal: Hash::from_bytes(seal.ok_or_else(gone)?) })
    }

    /// Finds a checkpoint, or its stub, by id.
    pub(super) fn checkpoint(&self, id: &CheckpointId) -> Result<Option<Found>, Error> {
        let Some(position) = self.position_of(id)? else { return Ok(None) };
        let gone = || Error::Damaged { what: format!("checkpoint {id}: its entry is gone") };
        let entry = self.entry(position)?.filter(|entry| entry.id == Some(*id)).ok_or_else(gone)?;
        self.to_found(&entry).map(Some)
    }

    /// Reads the checkpoint, or its stub, at a position that was found for a place in a run.
    pub(super) fn found_at(&self, position: i64, run: i64, seq: i64) -> Result<Option<Found>, Error> {
        let gone = || Error::Damaged { what: format!("checkpoint {seq} of run number {run} is gone") };
        let sought = |entry: &Entry| entry.run == run && entry.seq == seq;
        let entry = self.entry(position)?.filter(sought).ok_or_else(gone)?;
        self.to_found(&entry).map(Some)
    }

    pub(super) fn to_found(&self, entry: &Entry) -> Result<Found, Error> {
        self.to_found_after(entry, self.run_name(entry.run)?, None)
    }

    /// As `to_found`, where the name of the run is known, and perhaps the entry before it in the run.
    pub(super) fn to_found_after(
        &self,
        entry: &Entry,
        run: RunId,
        older: Option<&Entry>,
    ) -> Result<Found, Error> {
        if entry.body.is_none() {
            return Ok(Found::Pruned(entry.to_stub(run)?));
        }
        let is_before = |older: &&Entry| {
            older.is(Class::Checkpoint) && older.run == entry.run && older.seq + 1 == entry.seq
        };
        let before = match older.filter(is_before).filter(|_| entry.parent.is_none()) {
            Some(older) => Before { parent: older.id, seal: older.seal },
            None => self.before(entry)?,
        };
        Ok(Found::Live(Box::new(entry.to_checkpoint(run, &before)?)))
    }
}
