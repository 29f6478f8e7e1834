//! The store on disk: one SQLite database in WAL mode, whose log is synced before anything in it is reported.
//!
//! What always holds: an entry is appended after everything it refers to, in the same transaction or before; a
//! transaction is durable when it is reported; nothing in the journal is changed but by pruning, and then an event
//! says so. The order of writes and what a crash leaves at each point is in `docs/storage-format.md`.

mod open;
mod schema;

mod query;
mod reading;
mod recent;
mod row;

mod append;
mod blobs;
mod copies;
mod follow;
mod group;
mod head;
mod known;
mod log;
mod writer;

mod audit;
mod collect;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rustix::fs::FlockOperation;

use super::blob::{Cut, Prepared};
use super::check::redact_record;
use super::{
    Audited, Batch, Collected, Damage, Error, EventQuery, Found, Hold, Listed, Query, Store, Survey, Usage,
    Written,
};
use crate::model::{BlobRef, CheckpointId, Event, Run, RunId};
use append::{Packed, PackedBatch};
use copies::Copies;
use group::Group;
use log::Mark;
pub use open::OpenOptions;
use recent::Recent;
use row::Journal;
use writer::{Job, Outcome, Results, Writer};

/// A store in a folder of its own.
pub struct SqliteStore {
    folder: PathBuf,
    busy: Duration,
    readers: Mutex<Vec<Connection>>,
    writer: Mutex<Option<Writer>>,
    group: Group<Job, Result<Outcome, Error>>,
    recent: Arc<Recent>,
    /// Why it can be read from, by one at a time, and not be written to, if so: the disk is full.
    cramped: Option<Error>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the store in `folder`.
    pub fn open(folder: &Path, options: &OpenOptions) -> Result<Self, Error> {
        let open::First { folder, connection, cramped } = open::first(folder, options)?;
        Ok(Self {
            folder,
            cramped,
            busy: options.busy,
            readers: Mutex::new(vec![connection]),
            writer: Mutex::new(None),
            group: Group::new(),
            recent: Arc::new(Recent::default()),
        })
    }

    /// Returns how many entries were written to the database in `folder`, if it was deleted since.
    pub fn deleted_from(folder: &Path) -> Option<u64> {
        open::deleted(folder)
    }

    /// Opens a new store in `folder`, in the place of one whose database was deleted. What is left of that is put aside.
    pub fn begin_anew(folder: &Path, options: &OpenOptions) -> Result<Self, Error> {
        if Self::deleted_from(folder).is_some() {
            open::put_aside(folder)?;
        }
        Self::open(folder, &OpenOptions { create: true, ..options.clone() })
    }

    /// Returns the folder that the store lives in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Lends a connection for reading; several threads get one each.
    fn lend<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        let idle = lock(&self.readers).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => {
                self.must_have_room()?;
                open::connect(&self.folder, self.busy)?
            }
        };
        let result = work(&connection).map_err(|error| match error {
            Error::Busy { .. } => Error::Busy { waited: self.busy },
            other => other,
        });
        lock(&self.readers).push(connection);
        result
    }

    /// Has `work` see the store as it is at one moment, whatever is written or collected meanwhile.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        self.lend(|connection| {
            let moment = connection.unchecked_transaction().map_err(db("read"))?;
            let result = work(&moment);
            moment.finish().map_err(db("read"))?;
            result
        })
    }

    /// Returns the place of the newest entry of the journal.
    fn newest_position(&self) -> Result<u64, Error> {
        let newest =
            self.read(|connection| column(connection, "SELECT coalesce(max(position), 0) FROM entries", []))?;
        Ok(newest.first().and_then(|newest| u64::try_from(*newest).ok()).unwrap_or(0))
    }

    fn must_have_room(&self) -> Result<(), Error> {
        self.cramped.as_ref().map_or(Ok(()), |why| Err(writer::again(why)))
    }

    /// Has a job carried out in a transaction, together with those of other threads, and waits until it is durable.
    fn submit(&self, job: Job) -> Result<Outcome, Error> {
        self.must_have_room()?;
        let commit = |jobs: Vec<Job>, alone| {
            let mut slot = lock(&self.writer);
            let writer = match slot.take() {
                Some(writer) => Ok(writer),
                None => Writer::open(&self.folder, self.busy, self.recent.clone()),
            };
            match writer {
                Ok(writer) => slot.insert(writer).run(jobs, alone),
                Err(error) => (writer::all_failed(error, jobs.len()), None),
            }
        };
        let mut turn = None;
        let settle = |(results, mark): (Results, Option<Mark>)| match mark.map(|mark| (mark.sync(), mark)) {
            Some((Err(error), _)) => writer::fail_all(results, error),
            Some((Ok(()), mark)) => {
                turn = mark.turn_to_copy();
                results
            }
            None => results,
        };
        let result = self.group.submit(job, commit, settle).unwrap_or(Err(Error::WriterLost));
        if let Some(turn) = turn {
            // What was saved is saved, whatever becomes of this; the next leader tries again.
            let _ = self.lend(|connection| turn.copy(connection));
        }
        result
    }
}

impl Drop for SqliteStore {
    /// Leaves a short log where it is. Copying it to the database and removing it would cost two syncs and two files
    /// to make anew, each time a program has something to say; the next one reads it instead, and the one that finds
    /// it long closes it in full.
    fn drop(&mut self) {
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner);
        let sound = writer.as_ref().is_none_or(Writer::is_sound);
        if !sound || !log::may_stay(&self.folder) {
            return;
        }
        let readers = self.readers.get_mut().unwrap_or_else(PoisonError::into_inner);
        for connection in readers.iter().chain(writer.as_ref().map(Writer::connection)) {
            // If it cannot be said, the log is closed in full.
            let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

impl Store for SqliteStore {
    fn write(&self, mut batch: Batch) -> Result<Written, Error> {
        batch.entries.iter_mut().for_each(redact_record);
        self.pack_ahead(&mut batch)?;
        let Batch { payloads, entries, expect } = batch;
        let mut records = Vec::with_capacity(entries.len());
        for entry in entries {
            records.push(Packed::of(entry)?);
        }
        match self.submit(Job::Append(PackedBatch { expect, payloads, records }))? {
            Outcome::Written(written) => Ok(written),
            _ => Err(Error::WriterLost),
        }
    }

    fn checkpoint(&self, id: &CheckpointId) -> Result<Option<Found>, Error> {
        self.read(|connection| Journal(connection).checkpoint(id))
    }

    fn matching(&self, prefix: &str, limit: usize) -> Result<Vec<CheckpointId>, Error> {
        self.read(|connection| query::matching(connection, prefix, limit))
    }

    fn at(&self, run: &RunId, seq: u64) -> Result<Option<Found>, Error> {
        self.read(|connection| {
            let journal = Journal(connection);
            let (Some((number, _)), Ok(seq)) = (journal.run_number(run)?, i64::try_from(seq)) else {
                return Ok(None);
            };
            journal.position_at(number, seq)?.map_or(Ok(None), |at| journal.found_at(at, number, seq))
        })
    }

    fn head(&self, run: &RunId) -> Result<Option<Found>, Error> {
        self.read(|connection| {
            let journal = Journal(connection);
            let Some((number, _)) = journal.run_number(run)? else { return Ok(None) };
            journal.head_of(number)?.map_or(Ok(None), |(at, seq)| journal.found_at(at, number, seq))
        })
    }

    fn list(&self, query: &Query) -> Result<Vec<Listed>, Error> {
        self.read(|connection| query::list(connection, query))
    }

    fn survey(&self, query: &Query) -> Result<Survey, Error> {
        self.read(|connection| query::survey(connection, query))
    }

    fn run(&self, id: &RunId) -> Result<Option<Run>, Error> {
        self.read(|connection| {
            let journal = Journal(connection);
            let Some((_, position)) = journal.run_number(id)? else { return Ok(None) };
            let gone = || Error::Damaged { what: format!("the record of run `{id}` is gone") };
            journal.entry(position)?.ok_or_else(gone)?.to_run().map(Some)
        })
    }

    fn runs(&self) -> Result<Vec<(Run, u64)>, Error> {
        self.read(|connection| {
            let journal = Journal(connection);
            let mut statement = connection
                .prepare_cached("SELECT number, position FROM runs ORDER BY position")
                .map_err(db("list runs"))?;
            let rows: Vec<(i64, i64)> = statement
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
                .and_then(Iterator::collect)
                .map_err(db("list runs"))?;
            let mut runs = Vec::with_capacity(rows.len());
            for (number, position) in rows {
                let gone = || Error::Damaged { what: format!("the record of run number {number} is gone") };
                let run = journal.entry(position)?.ok_or_else(gone)?.to_run()?;
                let head = journal.head_of(number)?.map_or(0, |(position, _)| position);
                runs.push((run, u64::try_from(head).unwrap_or(0)));
            }
            Ok(runs)
        })
    }

    fn events(&self, query: &EventQuery) -> Result<Vec<(u64, Event)>, Error> {
        self.read(|connection| query::events(connection, query))
    }

    fn prepare(&self, bytes: Vec<u8>, cut: Cut, base: Option<BlobRef>) -> Prepared {
        let previous = base.and_then(|base| self.recent.get(&base));
        Prepared::new(bytes, cut, base, previous.as_ref().map(|recent| &recent.prepared))
    }

    fn put(&self, source: &mut dyn Read, cut: Cut) -> Result<BlobRef, Error> {
        self.put_stream(source, cut)
    }

    fn hold(&self) -> Result<Hold, Error> {
        collect::hold(&self.folder, FlockOperation::NonBlockingLockShared, self.busy).map(Hold::new)
    }

    fn alone(&self) -> Result<Hold, Error> {
        collect::hold(&self.folder, FlockOperation::NonBlockingLockExclusive, self.busy).map(Hold::new)
    }

    fn open(&self, blob: &BlobRef) -> Result<Box<dyn Read + '_>, Error> {
        self.open_stream(blob)
    }

    fn load(&self, blob: &BlobRef) -> Result<Vec<u8>, Error> {
        if let Some(bytes) = self.recent.bytes(blob) {
            return Ok(bytes.to_vec());
        }
        let copied = Copies::beside(&self.folder).load(blob);
        let bytes = copied.map_or_else(|| self.load_stored(blob), Ok)?;
        self.recent.keep_read(blob, &bytes);
        Ok(bytes)
    }

    fn load_all(&self, blobs: &[BlobRef]) -> Result<Vec<Vec<u8>>, Error> {
        self.load_in_order(blobs)
    }

    fn prune(&self, ids: &[CheckpointId], event: Event) -> Result<(), Error> {
        let ids = ids.to_vec();
        self.submit(Job::new(move |writing| writing.prune(&ids, event).map(|()| Outcome::Done))).map(drop)
    }

    fn collect(&self) -> Result<Collected, Error> {
        self.collect_blobs()
    }

    fn audit(&self, report: &mut dyn FnMut(Damage)) -> Result<Audited, Error> {
        self.audit_all(report)
    }

    fn rebuild(&self) -> Result<(), Error> {
        self.submit(Job::mending(|writing| writing.rebuild())).map(drop)
    }

    fn lost(&self) -> Result<u64, Error> {
        // First what was noted, then what there is: whoever writes in between only adds to it.
        let Some((noted, _)) = head::remembered(&self.folder) else { return Ok(0) };
        Ok(u64::try_from(noted).unwrap_or(0).saturating_sub(self.newest_position()?))
    }

    fn usage(&self) -> Result<Usage, Error> {
        Ok(Usage { entries: self.newest_position()?, bytes: open::size_on_disk(&self.folder) })
    }
}

/// Reads one column of numbers.
fn column(connection: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<Vec<i64>, Error> {
    let mut statement = connection.prepare_cached(sql).map_err(db("read"))?;
    let rows = statement.query_map(values, |row| row.get(0));
    rows.and_then(Iterator::collect).map_err(db("read"))
}

/// Names what was attempted in an error of the database.
fn db(doing: &'static str) -> impl Fn(rusqlite::Error) -> Error {
    use rusqlite::ErrorCode::{
        DatabaseBusy, DatabaseCorrupt, DatabaseLocked, FileLockingProtocolFailed, NotADatabase,
    };
    move |source| match source.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => Error::Malformed { doing, why: source.to_string() },
        // The last: another process was at the index of the log for as long as SQLite waits for that.
        Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed) => {
            Error::Busy { waited: Duration::ZERO }
        }
        _ if matches!(
            source,
            rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::FromSqlConversionFailure(..)
        ) =>
        {
            Error::Damaged { what: format!("a stored value has the wrong type ({source})") }
        }
        _ => Error::Database { doing, source },
    }
}

/// A thread that panicked while it held one of these locks left a value that is still whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
