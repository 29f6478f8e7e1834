//! Dropping what no checkpoint refers to.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, params};
use rustix::fs::FlockOperation;

use super::super::blob::PieceList;
use super::super::{Collected, Error};
use super::copies::Copies;
use super::follow::short;
use super::reading::{is_whole, read_list};
use super::row::{Before, COLUMNS, Class, Entry, Journal};
use super::writer::{Job, Outcome, Writing};
use super::{SqliteStore, db, open};
use crate::lock::Locked;
use crate::model::{Checkpoint, Hash};

/// Whoever puts payloads before the checkpoint that refers to them holds this file shared.
const HOLD_FILE: &str = "hold.lock";

/// Waits until nobody else holds it in a way that excludes this one.
pub(super) fn hold(folder: &Path, operation: FlockOperation, busy: Duration) -> Result<Locked, Error> {
    let path = folder.join(HOLD_FILE);
    let locked = Locked::wait(open::private_file(&path)?, operation, busy);
    locked.map_err(open::failed("lock", &path))?.ok_or(Error::Busy { waited: busy })
}

impl SqliteStore {
    pub(super) fn collect_blobs(&self) -> Result<Collected, Error> {
        let before = open::size_on_disk(&self.folder);
        let held = hold(&self.folder, FlockOperation::NonBlockingLockExclusive, self.busy)?;
        // Most of the journal is read without the write lock; the sweep reads only what came meanwhile.
        let mut marked = Marked::default();
        self.read(|connection| marked.mark(connection))?;
        let outcome = self.submit(Job::new(move |writing| writing.sweep(marked)))?;
        drop(held);
        self.recent.clear();
        Copies::beside(&self.folder).clear();
        self.shrink()?;
        let (blobs, pieces) = match outcome {
            Outcome::Collected(blobs, pieces) => (blobs, pieces),
            _ => (0, 0),
        };
        Ok(Collected { blobs, pieces, bytes: before.saturating_sub(open::size_on_disk(&self.folder)) })
    }

    /// Gives free pages back to the file system. Readers elsewhere may keep it from happening; then it happens
    /// next time.
    fn shrink(&self) -> Result<(), Error> {
        self.lend(|connection| {
            let mut statement = connection.prepare("PRAGMA incremental_vacuum").map_err(db("shrink"))?;
            let mut rows = statement.query([]).map_err(db("shrink"))?;
            loop {
                match rows.next() {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                        return Ok(());
                    }
                    Err(error) => return Err(db("shrink")(error)),
                }
            }
            drop(rows);
            let checkpoint = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            match checkpoint {
                Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => Ok(()),
                other => other.map_err(db("shrink")),
            }
        })
    }
}

/// The payloads that checkpoints refer to, up to a position of the journal.
#[derive(Default)]
struct Marked {
    position: i64,
    whole: HashSet<Hash>,
    lists: HashSet<Hash>,
    /// The newest entry of each run so far, which the next one is sealed after.
    before: HashMap<i64, Before>,
}

impl Marked {
    /// Reads on to the end of the journal. Damage stops the collection: what a damaged record referred to cannot be
    /// known, so all is kept.
    fn mark(&mut self, connection: &Connection) -> Result<(), Error> {
        let sql = format!("SELECT {COLUMNS} FROM entries WHERE position > ?1 ORDER BY position");
        let mut statement = connection.prepare(&sql).map_err(db("mark payloads"))?;
        let mut rows = statement.query([self.position]).map_err(db("mark payloads"))?;
        while let Some(row) = rows.next().map_err(db("mark payloads"))? {
            let entry = Entry::read(row).map_err(db("mark payloads"))?;
            if entry.position != self.position + 1 {
                let what = format!("entry {} is missing from the journal", self.position + 1);
                return Err(Error::Damaged { what });
            }
            self.position = entry.position;
            if entry.is(Class::Checkpoint) && entry.body.is_some() {
                self.mark_one(&self.sealed(connection, &entry)?);
            }
            if !entry.is(Class::Event) {
                self.before.insert(entry.run, Before { parent: entry.id, seal: entry.seal });
            }
        }
        Ok(())
    }

    fn sealed(&self, connection: &Connection, entry: &Entry) -> Result<Checkpoint, Error> {
        let journal = Journal(connection);
        let gone = || entry.damaged("what it follows is gone");
        let before = match entry.parent {
            Some(_) => journal.before(entry)?,
            None => self.before.get(&entry.run).cloned().ok_or_else(gone)?,
        };
        entry.to_checkpoint(journal.run_name(entry.run)?, &before)
    }

    fn mark_one(&mut self, checkpoint: &Checkpoint) {
        for artifact in &checkpoint.content.artifacts {
            let set = if is_whole(&artifact.blob) { &mut self.whole } else { &mut self.lists };
            set.insert(artifact.blob.hash);
        }
    }
}

impl Writing<'_> {
    fn sweep(&mut self, mut marked: Marked) -> Result<Outcome, Error> {
        marked.mark(self.connection)?;
        // The tables that follow in bulk are brought up to date first, so that every row to drop is in them.
        self.follow_now()?;
        let (keep, drop): (Vec<_>, Vec<_>) =
            all_lists(self.connection)?.into_iter().partition(|list| marked.lists.contains(&list.hash));
        let kept = self.keep_lists(&keep)?;
        for list in &drop {
            self.drop_row(DROP_BLOB, list.number, &list.hash)?;
        }
        let mut pieces = all_pieces(self.connection)?;
        pieces.retain(|(number, hash)| !kept.contains(number) && !marked.whole.contains(hash));
        for (number, hash) in &pieces {
            self.drop_row(DROP_PIECE, *number, hash)?;
        }
        Ok(Outcome::Collected(drop.len() as u64, pieces.len() as u64))
    }

    /// Lets go of lists that will be dropped, and returns the pieces that the kept ones name. A list has a higher
    /// number than the one it is a difference to, so the depths come out right in the order of numbers.
    fn keep_lists(&self, keep: &[ListRow]) -> Result<HashSet<i64>, Error> {
        let (mut kept, mut depths) = (HashSet::new(), HashMap::new());
        for list in keep {
            let pieces = read_list(self.connection, list.number)?.pieces;
            kept.extend(pieces.iter().copied());
            let depth = list.base.map_or(Some(0), |base| depths.get(&base).map(|depth| depth + 1));
            match depth {
                None => write_whole_list(self.connection, list.number, pieces)?,
                Some(depth) if depth != list.depth => write_depth(self.connection, list.number, depth)?,
                Some(_) => {}
            }
            depths.insert(list.number, depth.unwrap_or(0));
        }
        Ok(kept)
    }

    fn drop_row(&self, [row, index]: [&str; 2], number: i64, hash: &Hash) -> Result<(), Error> {
        let mut statement = self.connection.prepare_cached(row).map_err(db("drop a payload"))?;
        statement.execute([number]).map_err(db("drop a payload"))?;
        let mut statement = self.connection.prepare_cached(index).map_err(db("drop a payload"))?;
        statement.execute(params![short(hash), number]).map(drop).map_err(db("drop a payload"))
    }
}

const DROP_BLOB: [&str; 2] =
    ["DELETE FROM blobs WHERE number = ?1", "DELETE FROM by_blob WHERE hash = ?1 AND number = ?2"];
const DROP_PIECE: [&str; 2] =
    ["DELETE FROM pieces WHERE number = ?1", "DELETE FROM by_piece WHERE hash = ?1 AND number = ?2"];

/// A row of the table of lists, without the list.
pub(super) struct ListRow {
    pub(super) number: i64,
    pub(super) hash: Hash,
    pub(super) size: i64,
    pub(super) base: Option<i64>,
    pub(super) depth: i64,
}

/// Reads the rows of all lists, in the order of their numbers.
pub(super) fn all_lists(connection: &Connection) -> Result<Vec<ListRow>, Error> {
    const SQL: &str = "SELECT number, hash, size, base, depth FROM blobs ORDER BY number";
    let mut statement = connection.prepare_cached(SQL).map_err(db("list payloads"))?;
    let rows = statement.query_map([], |row| {
        let (number, hash) = (row.get(0)?, Hash::from_bytes(row.get(1)?));
        Ok(ListRow { number, hash, size: row.get(2)?, base: row.get(3)?, depth: row.get(4)? })
    });
    rows.and_then(Iterator::collect).map_err(db("list payloads"))
}

/// Lists the numbers and hashes of all pieces.
fn all_pieces(connection: &Connection) -> Result<Vec<(i64, Hash)>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT number, hash FROM pieces").map_err(db("list pieces"))?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, Hash::from_bytes(row.get(1)?))));
    rows.and_then(Iterator::collect).map_err(db("list pieces"))
}

/// Writes a list again without a base.
pub(super) fn write_whole_list(connection: &Connection, number: i64, pieces: Vec<i64>) -> Result<(), Error> {
    let mut statement = connection
        .prepare_cached("UPDATE blobs SET base = NULL, depth = 0, list = ?2 WHERE number = ?1")
        .map_err(db("rewrite a list"))?;
    statement.execute(params![number, PieceList(pieces).encode(&[])]).map(drop).map_err(db("rewrite a list"))
}

fn write_depth(connection: &Connection, number: i64, depth: i64) -> Result<(), Error> {
    let mut statement = connection
        .prepare_cached("UPDATE blobs SET depth = ?2 WHERE number = ?1")
        .map_err(db("rewrite a list"))?;
    statement.execute([number, depth]).map(drop).map_err(db("rewrite a list"))
}
