//! The tables `by_*`, which follow the journal in bulk.

use std::collections::HashMap;

use rusqlite::params;

use super::super::Error;
use super::db;
use super::known::{Indexed, Known, Stored};
use super::writer::{Outcome, Writing};
use crate::model::{Hash, chain_start};

/// The tables follow when the journal is ahead by so many entries or pieces.
const ENTRIES_AHEAD: i64 = 128;
const PIECES_AHEAD: i64 = 512;

const FOLLOW_IDS: &str =
    "INSERT INTO by_id SELECT id, position FROM entries WHERE position > ?1 AND id IS NOT NULL";
const FOLLOW_RUNS: &str =
    "INSERT INTO by_run SELECT run, seq, position FROM entries WHERE position > ?1 AND seq > 0";

impl Writing<'_> {
    /// Brings the tables up to date if they are far enough behind to be worth it.
    pub(super) fn follow(&mut self) -> Result<(), Error> {
        let (known, indexed) = (&*self.known, self.known.indexed);
        let far = known.position - indexed.entries >= ENTRIES_AHEAD
            || known.last_piece - indexed.pieces >= PIECES_AHEAD
            || known.last_blob - indexed.blobs >= PIECES_AHEAD;
        if far { self.follow_now() } else { Ok(()) }
    }

    pub(super) fn follow_now(&mut self) -> Result<(), Error> {
        let Indexed { entries, pieces, blobs } = self.known.indexed;
        for sql in [FOLLOW_IDS, FOLLOW_RUNS] {
            let mut statement = self.connection.prepare_cached(sql).map_err(db("index"))?;
            statement.execute([entries]).map_err(db("index"))?;
        }
        self.index_tags(entries)?;
        self.index_hashes("INSERT INTO by_piece VALUES (?1, ?2)", &self.known.pieces, pieces)?;
        self.index_hashes("INSERT INTO by_blob VALUES (?1, ?2)", &self.known.blobs, blobs)?;
        let known = &mut *self.known;
        known.indexed = Indexed { entries: known.position, pieces: known.last_piece, blobs: known.last_blob };
        let mut statement = self
            .connection
            .prepare_cached("UPDATE state SET entries = ?1, pieces = ?2, blobs = ?3, chain = ?4")
            .map_err(db("index"))?;
        let values = params![known.position, known.last_piece, known.last_blob, known.chain.as_bytes()];
        statement.execute(values).map_err(db("index"))?;
        (known.ids, known.pieces, known.blobs) = Default::default();
        Ok(())
    }

    fn index_tags(&self, after: i64) -> Result<(), Error> {
        const SQL: &str = "SELECT position, tags FROM entries WHERE position > ?1 AND tags IS NOT NULL";
        let mut statement = self.connection.prepare_cached(SQL).map_err(db("index"))?;
        let mut insert =
            self.connection.prepare_cached("INSERT INTO by_tag VALUES (?1, ?2)").map_err(db("index"))?;
        let mut rows = statement.query([after]).map_err(db("index"))?;
        while let Some(row) = rows.next().map_err(db("index"))? {
            let (position, tags): (i64, String) =
                (row.get(0).map_err(db("index"))?, row.get(1).map_err(db("index"))?);
            for tag in tags.split('\n') {
                insert.execute(params![tag, position]).map_err(db("index"))?;
            }
        }
        Ok(())
    }

    fn index_hashes(&self, sql: &str, stored: &HashMap<Hash, Stored>, after: i64) -> Result<(), Error> {
        let mut rows: Vec<(i64, i64)> = stored
            .iter()
            .filter(|(_, stored)| stored.number > after)
            .map(|(hash, stored)| (short(hash), stored.number))
            .collect();
        // In the order of the table, each of its pages is visited once.
        rows.sort_unstable();
        let mut insert = self.connection.prepare_cached(sql).map_err(db("index"))?;
        for (hash, number) in rows {
            insert.execute([hash, number]).map_err(db("index"))?;
        }
        Ok(())
    }

    /// Empties the tables and fills them again from the journal.
    pub(super) fn rebuild(&mut self) -> Result<Outcome, Error> {
        let clear = "DELETE FROM by_id; DELETE FROM by_run; DELETE FROM by_tag; DELETE FROM by_piece; \
                     DELETE FROM by_blob; DELETE FROM state;";
        self.connection.execute_batch(clear).map_err(db("rebuild tables"))?;
        let mut statement = self
            .connection
            .prepare_cached("INSERT INTO state VALUES (1, 0, 0, 0, ?1)")
            .map_err(db("rebuild tables"))?;
        statement.execute([chain_start().as_bytes()]).map_err(db("rebuild tables"))?;
        *self.known = Known::load(self.connection, self.known.version)?;
        self.follow_now()?;
        Ok(Outcome::Rebuilt)
    }
}

/// The part of a hash that the tables `by_piece` and `by_blob` are sorted by.
pub(super) fn short(hash: &Hash) -> i64 {
    i64::from_be_bytes(hash.as_bytes()[..8].try_into().expect("a hash has 32 bytes"))
}
