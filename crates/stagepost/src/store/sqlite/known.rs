//! What the writer knows of the end of the journal. It holds as long as nobody else writes; then it is read again.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use super::super::Error;
use super::row::{Before, id_from};
use super::{column, db};
use crate::model::{CheckpointId, Hash, RunId, chain};

pub(super) struct Known {
    /// Changes when another process has written.
    pub(super) version: i64,
    pub(super) position: i64,
    pub(super) chain: Hash,
    /// How far the tables `by_*` are.
    pub(super) indexed: Indexed,
    /// The highest numbers in use.
    pub(super) last_piece: i64,
    pub(super) last_blob: i64,
    /// How far the journal was read; what comes after that was written here.
    pub(super) read: i64,
    /// What was written here and the tables `by_*` do not have yet, in the order of the journal.
    pub(super) behind: Vec<Behind>,
    /// What the tables `by_*` do not have yet.
    pub(super) ids: HashSet<CheckpointId>,
    /// The highest id that `by_id` has.
    pub(super) highest_id: Option<CheckpointId>,
    pub(super) pieces: HashMap<Hash, Stored>,
    pub(super) blobs: HashMap<Hash, Stored>,
    pub(super) heads: HashMap<RunId, Head>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Indexed {
    pub(super) entries: i64,
    pub(super) pieces: i64,
    pub(super) blobs: i64,
}

/// A piece or payload that is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored {
    pub(super) number: i64,
    pub(super) size: i64,
}

/// What the tables `by_*` will say of an entry.
#[derive(Debug)]
pub(super) struct Behind {
    pub(super) position: i64,
    pub(super) run: i64,
    pub(super) seq: i64,
    pub(super) id: Option<CheckpointId>,
    pub(super) tags: Option<String>,
}

/// The end of a run.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) number: i64,
    pub(super) seq: i64,
    pub(super) before: Before,
}

impl Known {
    pub(super) fn load(connection: &Connection, version: i64) -> Result<Self, Error> {
        let (indexed, chain) = read_state(connection)?;
        // Numbers of dropped rows are not used again: the tables `by_*` count as complete up to them.
        let last = |sql, indexed: i64| {
            column(connection, sql, []).map(|found| found.first().copied().unwrap_or(0).max(indexed))
        };
        let mut known = Self {
            position: indexed.entries,
            chain,
            indexed,
            last_piece: last("SELECT coalesce(max(number), 0) FROM pieces", indexed.pieces)?,
            last_blob: last("SELECT coalesce(max(number), 0) FROM blobs", indexed.blobs)?,
            highest_id: highest_id(connection)?,
            pieces: stored(
                connection,
                "SELECT hash, number, size FROM pieces WHERE number > ?1",
                indexed.pieces,
            )?,
            blobs: stored(
                connection,
                "SELECT hash, number, size FROM blobs WHERE number > ?1",
                indexed.blobs,
            )?,
            ..Self::nothing(version)
        };
        known.read_journal_end(connection)?;
        known.check_end(connection)?;
        Ok(known)
    }

    /// What is known before anything is read, and of a store whose tables are about to be made again.
    pub(super) fn nothing(version: i64) -> Self {
        Self {
            version,
            position: 0,
            chain: crate::model::chain_start(),
            indexed: Indexed { entries: 0, pieces: 0, blobs: 0 },
            last_piece: 0,
            last_blob: 0,
            read: 0,
            behind: Vec::new(),
            ids: HashSet::new(),
            highest_id: None,
            pieces: HashMap::new(),
            blobs: HashMap::new(),
            heads: HashMap::new(),
        }
    }

    fn read_journal_end(&mut self, connection: &Connection) -> Result<(), Error> {
        const SQL: &str = "SELECT position, id, seal FROM entries WHERE position > ?1 ORDER BY position";
        let mut statement = connection.prepare_cached(SQL).map_err(db("read"))?;
        let mut rows = statement.query([self.indexed.entries]).map_err(db("read"))?;
        while let Some(row) = rows.next().map_err(db("read"))? {
            let id: Option<[u8; 16]> = row.get(1).map_err(db("read"))?;
            let seal = Hash::from_bytes(row.get(2).map_err(db("read"))?);
            self.position = row.get(0).map_err(db("read"))?;
            self.chain = chain(&self.chain, &seal);
            self.ids.extend(id.map(id_from));
        }
        self.read = self.position;
        Ok(())
    }

    /// If the state were ahead of the journal, new entries would be written where nobody looks for them.
    fn check_end(&self, connection: &Connection) -> Result<(), Error> {
        let last = column(connection, "SELECT coalesce(max(position), 0) FROM entries", [])?;
        if last.first() == Some(&self.position) && self.indexed.entries >= 0 {
            return Ok(());
        }
        let what = "the state of the store is ahead of its journal; `doctor --fix` makes it again".to_owned();
        Err(Error::Damaged { what })
    }
}

/// Reads how far the tables `by_*` are, and the chain up to there.
pub(super) fn read_state(connection: &Connection) -> Result<(Indexed, Hash), Error> {
    let mut statement = connection
        .prepare_cached("SELECT entries, pieces, blobs, chain FROM state")
        .map_err(db("read the state of the store"))?;
    let row = statement.query_row([], |row| {
        let indexed = Indexed { entries: row.get(0)?, pieces: row.get(1)?, blobs: row.get(2)? };
        Ok((indexed, Hash::from_bytes(row.get(3)?)))
    });
    row.map_err(db("read the state of the store"))
}

fn highest_id(connection: &Connection) -> Result<Option<CheckpointId>, Error> {
    let mut statement = connection.prepare_cached("SELECT max(id) FROM by_id").map_err(db("read"))?;
    let id: Option<[u8; 16]> = statement.query_row([], |row| row.get(0)).map_err(db("read"))?;
    Ok(id.map(id_from))
}

fn stored(connection: &Connection, sql: &str, after: i64) -> Result<HashMap<Hash, Stored>, Error> {
    let mut statement = connection.prepare_cached(sql).map_err(db("read"))?;
    let rows = statement.query_map([after], |row| {
        Ok((Hash::from_bytes(row.get(0)?), Stored { number: row.get(1)?, size: row.get(2)? }))
    });
    rows.and_then(Iterator::collect).map_err(db("read"))
}
