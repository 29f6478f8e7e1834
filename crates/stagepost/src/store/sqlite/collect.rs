//! Dropping what no checkpoint refers to.

use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use rustix::fs::FlockOperation;

use super::super::blob::WHOLE;
use super::super::{Collected, Error};
use super::blobs::{all_lists, all_pieces, list_numbers, write_whole_list};
use super::row::{COLUMNS, Entry};
use super::write::{Outcome, Writing, short};
use super::{SqliteStore, db, open};
use crate::model::{Content, Hash};

/// Whoever puts payloads before the checkpoint that refers to them holds this file shared.
const HOLD_FILE: &str = "hold.lock";

pub(super) fn hold_file(folder: &Path) -> Result<File, Error> {
    let path = folder.join(HOLD_FILE);
    let file = File::options().create(true).truncate(false).write(true).read(true).mode(0o600).open(&path);
    file.map_err(open::failed("open", &path))
}

pub(super) fn lock_shared(file: &File, busy: Duration, folder: &Path) -> Result<(), Error> {
    lock(file, FlockOperation::NonBlockingLockShared, busy, folder)
}

fn lock(file: &File, operation: FlockOperation, busy: Duration, folder: &Path) -> Result<(), Error> {
    let started = Instant::now();
    loop {
        match rustix::fs::flock(file, operation) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK) if started.elapsed() < busy => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(Error::Busy { waited: busy }),
            Err(error) => return Err(open::failed("lock", &folder.join(HOLD_FILE))(error.into())),
        }
    }
}

impl SqliteStore {
    pub(super) fn collect_blobs(&self) -> Result<Collected, Error> {
        let before = open::size_on_disk(&self.folder);
        let held = hold_file(&self.folder)?;
        lock(&held, FlockOperation::NonBlockingLockExclusive, self.busy, &self.folder)?;
        // Most of the journal is read without the write lock; the sweep reads only what came meanwhile.
        let mut marked = Marked::default();
        self.read(|connection| marked.mark(connection))?;
        let outcome = self.submit(Box::new(move |writing| writing.sweep(marked)))?;
        drop(held);
        self.recent.clear();
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
        self.read(|connection| {
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
}

impl Marked {
    fn mark(&mut self, connection: &Connection) -> Result<(), Error> {
        let sql =
            format!("SELECT {COLUMNS} FROM entries WHERE position > ?1 AND class = 2 AND body IS NOT NULL");
        let mut statement = connection.prepare(&sql).map_err(db("mark payloads"))?;
        let mut rows = statement.query([self.position]).map_err(db("mark payloads"))?;
        while let Some(row) = rows.next().map_err(db("mark payloads"))? {
            let entry = Entry::read(row).map_err(db("mark payloads"))?;
            self.position = entry.position;
            // Damage stops the collection: what a damaged record referred to cannot be known, so all is kept.
            let content: Content = entry.content()?;
            for artifact in &content.artifacts {
                let set = if artifact.blob.size < WHOLE as u64 { &mut self.whole } else { &mut self.lists };
                set.insert(artifact.blob.hash);
            }
        }
        Ok(())
    }
}

impl Writing<'_> {
    fn sweep(&mut self, mut marked: Marked) -> Result<Outcome, Error> {
        marked.mark(self.connection)?;
        // The tables that follow in bulk are brought up to date first, so that every row to drop is in them.
        self.follow_now()?;
        let (mut kept, mut blobs) = (HashSet::new(), 0);
        let (keep, drop): (Vec<_>, Vec<_>) =
            all_lists(self.connection)?.into_iter().partition(|(_, hash, _)| marked.lists.contains(hash));
        let dropped: HashSet<i64> = drop.iter().map(|(number, ..)| *number).collect();
        for (number, _, base) in keep {
            let pieces = list_numbers(self.connection, number)?;
            kept.extend(pieces.iter().copied());
            if base.is_some_and(|base| dropped.contains(&base)) {
                write_whole_list(self.connection, number, pieces)?;
            }
        }
        for (number, hash, _) in &drop {
            blobs += self.drop_row(
                "DELETE FROM blobs WHERE number = ?1",
                "DELETE FROM by_blob WHERE hash = ?1 AND number = ?2",
                *number,
                hash,
            )?;
        }
        let mut pieces = 0;
        for (number, hash) in all_pieces(self.connection)? {
            if !kept.contains(&number) && !marked.whole.contains(&hash) {
                pieces += self.drop_row(
                    "DELETE FROM pieces WHERE number = ?1",
                    "DELETE FROM by_piece WHERE hash = ?1 AND number = ?2",
                    number,
                    &hash,
                )?;
            }
        }
        Ok(Outcome::Collected(blobs, pieces))
    }

    fn drop_row(&self, row: &str, index: &str, number: i64, hash: &Hash) -> Result<u64, Error> {
        let mut statement = self.connection.prepare_cached(row).map_err(db("drop a payload"))?;
        statement.execute([number]).map_err(db("drop a payload"))?;
        let mut statement = self.connection.prepare_cached(index).map_err(db("drop a payload"))?;
        statement.execute(params![short(hash), number]).map_err(db("drop a payload"))?;
        Ok(1)
    }
}
