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

const FOLLOW_IDS: &str = "INSERT INTO by_id SELECT id, position FROM entries \
                          WHERE position > ?1 AND position <= ?2 AND id IS NOT NULL";
const FOLLOW_RUNS: &str = "INSERT INTO by_run SELECT run, seq, position FROM entries \
                           WHERE position > ?1 AND position <= ?2 AND seq > 0";
/// Entries with one tag, which are most of those that have any.
const FOLLOW_TAG: &str = "INSERT INTO by_tag SELECT tags, position FROM entries WHERE position > ?1 \
                          AND position <= ?2 AND tags IS NOT NULL AND instr(tags, char(10)) = 0";
const ADD_TAG: &str = "INSERT INTO by_tag VALUES (?1, ?2)";

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
        let between = [self.known.indexed.entries, self.known.read];
        if between[0] < between[1] {
            self.note(FOLLOW_IDS, between)?;
            self.note(FOLLOW_RUNS, between)?;
            self.index_tags(between)?;
        }
        self.index_behind()?;
        let (position, chain) = (self.known.position, self.known.chain);
        self.note("UPDATE state SET entries = ?1, chain = ?2", params![position, chain.as_bytes()])?;
        self.known.indexed.entries = position;
        self.known.behind.clear();
        self.known.highest_id = self.known.ids.drain().max().max(self.known.highest_id);
        Ok(())
    }

    fn note(&self, sql: &str, values: impl rusqlite::Params) -> Result<(), Error> {
        let mut statement = self.connection.prepare_cached(sql).map_err(db("index"))?;
        statement.execute(values).map(drop).map_err(db("index"))
    }

    /// Adds what was written here, which need not be read again for that.
    fn index_behind(&mut self) -> Result<(), Error> {
        let statement = |sql| self.connection.prepare_cached(sql).map_err(db("index"));
        let behind = &mut self.known.behind;
        let mut insert = statement("INSERT INTO by_id VALUES (?1, ?2)")?;
        for one in behind.iter() {
            if let Some(id) = &one.id {
                insert.execute(params![id.as_uuid().as_bytes(), one.position]).map_err(db("index"))?;
            }
        }
        // In the order of the table, each of its pages is visited once.
        behind.sort_unstable_by_key(|one| (one.run, one.seq));
        let mut insert = statement("INSERT INTO by_run VALUES (?1, ?2, ?3)")?;
        for one in behind.iter().filter(|one| one.seq > 0) {
            insert.execute([one.run, one.seq, one.position]).map_err(db("index"))?;
        }
        behind.sort_unstable_by(|a, b| (&a.tags, a.position).cmp(&(&b.tags, b.position)));
        let mut insert = statement(ADD_TAG)?;
        for one in behind.iter() {
            for tag in one.tags.iter().flat_map(|tags| tags.split('\n')) {
                insert.execute(params![tag, one.position]).map_err(db("index"))?;
            }
        }
        Ok(())
    }

    fn index_tags(&self, between: [i64; 2]) -> Result<(), Error> {
        const SQL: &str = "SELECT position, tags FROM entries WHERE position > ?1 AND position <= ?2 \
                           AND instr(tags, char(10)) > 0";
        self.note(FOLLOW_TAG, between)?;
        let mut statement = self.connection.prepare_cached(SQL).map_err(db("index"))?;
        let mut insert = self.connection.prepare_cached(ADD_TAG).map_err(db("index"))?;
        let mut rows = statement.query(between).map_err(db("index"))?;
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

#[cfg(test)]
mod tests {
    use rusqlite::types::Value;
    use serde_json::json;

    use super::super::writer::Job;
    use super::super::{OpenOptions, SqliteStore, open};
    use super::*;
    use crate::model::{
        CheckpointId, Content, Draft, Event, Kind, Parent, Run, RunId, RunKind, Timestamp, Topic,
    };
    use crate::store::{Batch, NewEntry, Store};

    fn rows(store: &SqliteStore, table: &str) -> Vec<Vec<Value>> {
        let connection = rusqlite::Connection::open(store.folder().join(open::DATABASE)).unwrap();
        let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
        let columns = statement.column_count();
        let row = |row: &rusqlite::Row<'_>| (0..columns).map(|column| row.get(column)).collect();
        statement.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap()
    }

    fn save(store: &SqliteStore, number: u32) -> CheckpointId {
        let now = Timestamp::from_micros(0).unwrap();
        let run = RunId::new(format!("run-{}", number % 3)).unwrap();
        let mut content = Content::new(Kind::Manual);
        if number.is_multiple_of(2) {
            content.labels = vec!["good".parse().unwrap(), format!("n={}", number % 5).parse().unwrap()];
        }
        let id = CheckpointId::from_uuid(uuid::Uuid::from_u128(u128::from(number)));
        let payload = store.prepare(number.to_le_bytes().to_vec(), crate::store::blob::Cut::Content, None);
        let entries = vec![
            NewEntry::Run(Run::new(run.clone(), RunKind::Flow, now)),
            NewEntry::Checkpoint(Draft { id, run, parent: Parent::Head, created_at: now, content }),
            NewEntry::Event(Event { topic: Topic::Note, key: "k".into(), at: now, body: json!(number) }),
        ];
        store.write(Batch { payloads: vec![payload], entries, ..Batch::default() }).unwrap();
        id
    }

    fn prune(store: &SqliteStore, id: CheckpointId) {
        let body = json!({ "checkpoints": [id] });
        let at = Timestamp::from_micros(0).unwrap();
        store.prune(&[id], Event { topic: Topic::Prune, key: "gc".to_owned(), at, body }).unwrap();
    }

    #[test]
    fn what_follows_is_what_is_made_anew_whoever_wrote_it_and_also_after_pruning() {
        const TABLES: [&str; 6] = ["by_id", "by_run", "by_tag", "by_piece", "by_blob", "state"];
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let options = OpenOptions { create: true, ..OpenOptions::default() };
            SqliteStore::open(folder.path(), &options).unwrap()
        };
        let (store, other) = (open(), open());
        for number in 0..40 {
            save(&store, number);
        }
        for number in 40..50 {
            save(&other, number);
        }
        prune(&store, save(&store, 60));
        for number in 61..90 {
            save(&store, number);
        }
        let behind = rows(&store, "state")[0][1].clone();
        assert_ne!(behind, Value::Integer(0), "nothing has followed yet");
        store.submit(Job::new(|writing| writing.follow_now().map(|()| Outcome::Done))).unwrap();
        let followed = TABLES.map(|table| rows(&store, table));
        assert!(followed[..4].iter().all(|rows| rows.len() > 50), "{followed:?}");
        store.rebuild().unwrap();
        assert_eq!(TABLES.map(|table| rows(&store, table)), followed);
    }
}
