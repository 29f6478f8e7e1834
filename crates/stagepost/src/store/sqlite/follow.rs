//! The tables `by_*`, which follow the journal in bulk.

use std::collections::HashMap;

use rusqlite::params;

use super::super::Error;
use super::db;
use super::known::{Known, Stored};
use super::writer::{Outcome, Writing};
use crate::model::{Hash, chain_start};

/// A table follows when the journal is ahead of it by so many entries or pieces.
const ENTRIES_AHEAD: i64 = 128;
const PIECES_AHEAD: i64 = 512;

const FOLLOW_IDS: &str =
    "INSERT INTO by_id SELECT id, position FROM entries WHERE position > ?1 AND id IS NOT NULL";
const FOLLOW_RUNS: &str =
    "INSERT INTO by_run SELECT run, seq, position FROM entries WHERE position > ?1 AND seq > 0";
/// Entries with one tag, which are most of those that have any.
const FOLLOW_TAG: &str = "INSERT INTO by_tag SELECT tags, position FROM entries WHERE position > ?1 \
                          AND tags IS NOT NULL AND instr(tags, char(10)) = 0";

impl Writing<'_> {
    /// Brings those tables up to date that are far enough behind to be worth it: by themselves, because hashes come in
    /// no order, and few of them change as many pages as many do.
    pub(super) fn follow(&mut self) -> Result<(), Error> {
        let (known, indexed) = (&*self.known, self.known.indexed);
        let entries = known.position - indexed.entries >= ENTRIES_AHEAD;
        let pieces = known.last_piece - indexed.pieces >= PIECES_AHEAD;
        let blobs = known.last_blob - indexed.blobs >= PIECES_AHEAD;
        self.follow_some(entries, pieces, blobs)
    }

    pub(super) fn follow_now(&mut self) -> Result<(), Error> {
        self.follow_some(true, true, true)
    }

    fn follow_some(&mut self, entries: bool, pieces: bool, blobs: bool) -> Result<(), Error> {
        if entries {
            self.follow_entries()?;
        }
        if pieces {
            let after = self.known.indexed.pieces;
            self.index_hashes("INSERT INTO by_piece VALUES (?1, ?2)", &self.known.pieces, after)?;
            self.note("UPDATE state SET pieces = ?1", [self.known.last_piece])?;
            self.known.indexed.pieces = self.known.last_piece;
            self.known.pieces.clear();
        }
        if blobs {
            let after = self.known.indexed.blobs;
            self.index_hashes("INSERT INTO by_blob VALUES (?1, ?2)", &self.known.blobs, after)?;
            self.note("UPDATE state SET blobs = ?1", [self.known.last_blob])?;
            self.known.indexed.blobs = self.known.last_blob;
            self.known.blobs.clear();
        }
        Ok(())
    }

    fn follow_entries(&mut self) -> Result<(), Error> {
        let after = self.known.indexed.entries;
        self.note(FOLLOW_IDS, [after])?;
        self.note(FOLLOW_RUNS, [after])?;
        self.index_tags(after)?;
        let (position, chain) = (self.known.position, self.known.chain);
        self.note("UPDATE state SET entries = ?1, chain = ?2", params![position, chain.as_bytes()])?;
        self.known.indexed.entries = position;
        self.known.highest_id = self.known.ids.drain().max().max(self.known.highest_id);
        Ok(())
    }

    fn note(&self, sql: &str, values: impl rusqlite::Params) -> Result<(), Error> {
        let mut statement = self.connection.prepare_cached(sql).map_err(db("index"))?;
        statement.execute(values).map(drop).map_err(db("index"))
    }

    fn index_tags(&self, after: i64) -> Result<(), Error> {
        const SQL: &str =
            "SELECT position, tags FROM entries WHERE position > ?1 AND instr(tags, char(10)) > 0";
        self.note(FOLLOW_TAG, [after])?;
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
