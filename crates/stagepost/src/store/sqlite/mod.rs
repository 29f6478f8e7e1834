//! The store on disk: one SQLite database in WAL mode with `synchronous=FULL`.
//!
//! What always holds: an entry is appended after everything it refers to, in the same transaction or before; a
//! transaction is durable when it is reported; nothing in the journal is changed but by pruning, and then an event
//! says so. The order of writes and what a crash leaves at each point is in `docs/storage-format.md`.

mod audit;
mod blobs;
mod collect;
mod group;
mod open;
mod row;
mod schema;
mod write;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, params};

use super::blob::{Cut, Prepared};
use super::{
    Audited, Batch, Collected, Damage, Error, EventQuery, Found, Hold, Listed, Query, Store, Usage, Written,
};
use crate::model::{BlobRef, CheckpointId, Event, Run, RunId};
use blobs::Recent;
use group::Group;
pub use open::OpenOptions;
use row::{GOOD_TAG, Journal, event_tag};
use write::{Job, Outcome, Writer};

/// A store in a folder of its own.
pub struct SqliteStore {
    folder: PathBuf,
    busy: Duration,
    readers: Mutex<Vec<Connection>>,
    writer: Mutex<Option<Writer>>,
    group: Group<Job, Result<Outcome, Error>>,
    recent: Arc<Recent>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the store in `folder`.
    pub fn open(folder: &Path, options: &OpenOptions) -> Result<Self, Error> {
        let (folder, reader) = open::first(folder, options)?;
        Ok(Self {
            folder,
            busy: options.busy,
            readers: Mutex::new(vec![reader]),
            writer: Mutex::new(None),
            group: Group::new(),
            recent: Arc::new(Recent::default()),
        })
    }

    /// Returns the folder that the store lives in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Lends a connection for reading; several threads get one each.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        let idle = lock(&self.readers).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => open::connect(&self.folder, self.busy)?,
        };
        let result = work(&connection);
        lock(&self.readers).push(connection);
        result
    }

    /// Has a job carried out in a transaction, together with those of other threads.
    fn submit(&self, job: Job) -> Result<Outcome, Error> {
        let lead = |jobs: Vec<Job>| {
            let mut slot = lock(&self.writer);
            let writer = match slot.take() {
                Some(writer) => Ok(writer),
                None => Writer::open(&self.folder, self.busy, self.recent.clone()),
            };
            match writer {
                Ok(writer) => slot.insert(writer).run(jobs),
                Err(error) => write::all_failed(error, jobs.len()),
            }
        };
        self.group.submit(job, lead).unwrap_or(Err(Error::WriterLost))
    }

    /// Lists entries by position, newest first, from one of three sources.
    fn positions(&self, connection: &Connection, query: &Query) -> Result<Vec<i64>, Error> {
        let before = query.before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
        // Stubs are left out afterwards, so one cannot stop at the limit here when there is one.
        let limit = query.limit.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(-1);
        let tag = match (&query.label, query.good) {
            (Some(label), _) => Some(format!("={label}")),
            (None, true) => Some(GOOD_TAG.to_owned()),
            (None, false) => None,
        };
        let run = match &query.run {
            Some(run) => match Journal(connection).run_number(run)? {
                Some((number, _)) => Some(number),
                None => return Ok(Vec::new()),
            },
            None => None,
        };
        let (sql, values): (&str, Vec<rusqlite::types::Value>) = match (tag, run) {
            (Some(tag), run) => (BY_TAG, vec![before.into(), limit.into(), tag.into(), run.into()]),
            (None, Some(run)) => (BY_RUN, vec![before.into(), limit.into(), run.into()]),
            (None, None) => (BY_POSITION, vec![before.into(), limit.into()]),
        };
        let mut statement = connection.prepare_cached(sql).map_err(db("list checkpoints"))?;
        let rows = statement.query_map(rusqlite::params_from_iter(values), |row| row.get(0));
        rows.and_then(Iterator::collect).map_err(db("list checkpoints"))
    }
}

const BY_POSITION: &str = "SELECT position FROM entries WHERE class = 2 AND position < ?1 AND body IS NOT NULL \
     ORDER BY position DESC LIMIT ?2";
const BY_RUN: &str = "SELECT position FROM (SELECT position FROM entries WHERE position > (SELECT entries FROM state) \
     AND run = ?3 AND seq > 0 AND position < ?1 AND body IS NOT NULL UNION ALL \
     SELECT * FROM (SELECT b.position FROM by_run b JOIN entries e ON e.position = b.position WHERE b.run = ?3 \
     AND b.position < ?1 AND e.body IS NOT NULL ORDER BY b.seq DESC LIMIT ?2)) ORDER BY position DESC LIMIT ?2";
const BY_TAG: &str = "SELECT position FROM (SELECT position, run FROM entries WHERE position > \
     (SELECT entries FROM state) AND class = 2 AND instr(char(10) || tags || char(10), char(10) || ?3 || char(10)) > 0 \
     AND position < ?1 AND body IS NOT NULL AND (?4 IS NULL OR run = ?4) UNION ALL \
     SELECT * FROM (SELECT b.position, e.run FROM by_tag b JOIN entries e ON e.position = b.position \
     WHERE b.tag = ?3 AND b.position < ?1 AND e.body IS NOT NULL AND (?4 IS NULL OR e.run = ?4) \
     ORDER BY b.position DESC LIMIT ?2)) ORDER BY position DESC LIMIT ?2";
const EVENTS_OF_KEY: &str = "SELECT position FROM (SELECT position FROM entries WHERE position > \
     (SELECT entries FROM state) AND class = 3 AND tags = ?1 UNION ALL \
     SELECT * FROM (SELECT position FROM by_tag WHERE tag = ?1 ORDER BY position DESC LIMIT ?2)) \
     ORDER BY position DESC LIMIT ?2";
const EVENTS_OF_TOPIC: &str = "SELECT position FROM (SELECT position FROM entries WHERE position > \
     (SELECT entries FROM state) AND class = 3 AND tags >= ?1 AND tags < ?3 UNION ALL \
     SELECT position FROM by_tag WHERE tag >= ?1 AND tag < ?3) ORDER BY position DESC LIMIT ?2";

impl Store for SqliteStore {
    fn write(&self, mut batch: Batch) -> Result<Written, Error> {
        self.pack_ahead(&mut batch)?;
        match self.submit(Box::new(move |writing| writing.append(batch).map(Outcome::Written)))? {
            Outcome::Written(written) => Ok(written),
            _ => Err(Error::WriterLost),
        }
    }

    fn checkpoint(&self, id: &CheckpointId) -> Result<Option<Found>, Error> {
        self.read(|connection| {
            let journal = Journal(connection);
            journal.position_of(id)?.map_or(Ok(None), |position| journal.found(position))
        })
    }

    fn matching(&self, prefix: &str, limit: usize) -> Result<Vec<CheckpointId>, Error> {
        let Some((low, high)) = id_range(prefix) else { return Ok(Vec::new()) };
        const SQL: &str = "SELECT id FROM by_id WHERE id BETWEEN ?1 AND ?2 UNION SELECT id FROM entries \
                           WHERE position > (SELECT entries FROM state) AND id BETWEEN ?1 AND ?2 LIMIT ?3";
        self.read(|connection| {
            let mut statement = connection.prepare_cached(SQL).map_err(db("look up a checkpoint"))?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![low, high, limit], |row| row.get(0).map(row::id_from));
            rows.and_then(Iterator::collect).map_err(db("look up a checkpoint"))
        })
    }

    fn at(&self, run: &RunId, seq: u64) -> Result<Option<Found>, Error> {
        self.read(|connection| {
            let journal = Journal(connection);
            let Some((number, _)) = journal.run_number(run)? else { return Ok(None) };
            let seq = i64::try_from(seq).unwrap_or(i64::MAX).max(1);
            journal.position_at(number, seq)?.map_or(Ok(None), |position| journal.found(position))
        })
    }

    fn head(&self, run: &RunId) -> Result<Option<Found>, Error> {
        self.read(|connection| {
            let journal = Journal(connection);
            let Some((number, _)) = journal.run_number(run)? else { return Ok(None) };
            journal.head_of(number)?.map_or(Ok(None), |(position, _)| journal.found(position))
        })
    }

    fn list(&self, query: &Query) -> Result<Vec<Listed>, Error> {
        self.read(|connection| {
            let journal = Journal(connection);
            let mut listed = Vec::new();
            for position in self.positions(connection, query)? {
                if let Some(Found::Live(checkpoint)) = journal.found(position)? {
                    let position = u64::try_from(position).unwrap_or(0);
                    listed.push(Listed { position, checkpoint: *checkpoint });
                }
            }
            Ok(listed)
        })
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
        let limit = query.last.and_then(|last| i64::try_from(last).ok()).unwrap_or(-1);
        let topic = query.topic.as_str();
        self.read(|connection| {
            let positions: Vec<i64> = match &query.key {
                Some(key) => column(connection, EVENTS_OF_KEY, params![event_tag(query.topic, key), limit])?,
                None => {
                    let (low, high) = (format!("{topic}\t"), format!("{topic}\n"));
                    column(connection, EVENTS_OF_TOPIC, params![low, limit, high])?
                }
            };
            let mut events = Vec::with_capacity(positions.len());
            for position in positions.into_iter().rev() {
                let gone = || Error::Damaged { what: format!("entry {position} is gone") };
                let event = Journal(connection).entry(position)?.ok_or_else(gone)?.to_event()?;
                if query.key.as_ref().is_none_or(|key| event.key == *key) {
                    events.push((u64::try_from(position).unwrap_or(0), event));
                }
            }
            Ok(events)
        })
    }

    fn prepare(&self, bytes: Vec<u8>, cut: Cut, base: Option<BlobRef>) -> Prepared {
        let previous = base.and_then(|base| self.recent.get(&base));
        Prepared::new(bytes, cut, base, previous.as_ref().map(|recent| &recent.prepared))
    }

    fn put(&self, source: &mut dyn Read, cut: Cut) -> Result<BlobRef, Error> {
        self.put_stream(source, cut)
    }

    fn hold(&self) -> Result<Hold, Error> {
        let file = collect::hold_file(&self.folder)?;
        collect::lock_shared(&file, self.busy, &self.folder)?;
        Ok(Hold(Box::new(file)))
    }

    fn open(&self, blob: &BlobRef) -> Result<Box<dyn Read + '_>, Error> {
        self.open_stream(blob)
    }

    fn load(&self, blob: &BlobRef) -> Result<Vec<u8>, Error> {
        match self.recent.get(blob) {
            Some(recent) => Ok(recent.prepared.bytes.to_vec()),
            None => self.load_stored(blob),
        }
    }

    fn prune(&self, ids: &[CheckpointId], event: Event) -> Result<(), Error> {
        let ids = ids.to_vec();
        self.submit(Box::new(move |writing| writing.prune(&ids, event).map(|()| Outcome::Done))).map(drop)
    }

    fn collect(&self) -> Result<Collected, Error> {
        self.collect_blobs()
    }

    fn audit(&self, report: &mut dyn FnMut(Damage)) -> Result<Audited, Error> {
        self.audit_all(report)
    }

    fn rebuild(&self) -> Result<(), Error> {
        self.submit(Box::new(|writing| writing.rebuild())).map(drop)
    }

    fn usage(&self) -> Result<Usage, Error> {
        let entries: i64 = self.read(|connection| {
            let newest = column(connection, "SELECT coalesce(max(position), 0) FROM entries", [])?;
            Ok(newest.first().copied().unwrap_or(0))
        })?;
        Ok(Usage { entries: u64::try_from(entries).unwrap_or(0), bytes: open::size_on_disk(&self.folder) })
    }
}

/// Reads one column of numbers.
fn column(connection: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<Vec<i64>, Error> {
    let mut statement = connection.prepare_cached(sql).map_err(db("read"))?;
    let rows = statement.query_map(values, |row| row.get(0));
    rows.and_then(Iterator::collect).map_err(db("read"))
}

/// The lowest and highest id with a prefix of the printed form; `None` if no id can have it.
fn id_range(prefix: &str) -> Option<([u8; 16], [u8; 16])> {
    const FORM: &str = "00000000-0000-0000-0000-000000000000";
    if prefix.len() > FORM.len() || !prefix.is_ascii() {
        return None;
    }
    let fill = |digit: char| -> Option<[u8; 16]> {
        let filled = FORM.chars().enumerate().map(|(at, form)| match (prefix.as_bytes().get(at), form) {
            (Some(given), _) => char::from(*given),
            (None, '-') => '-',
            (None, _) => digit,
        });
        filled.collect::<String>().parse::<CheckpointId>().ok().map(|id| *id.as_uuid().as_bytes())
    };
    Some((fill('0')?, fill('f')?))
}

/// Names what was attempted in an error of the database.
fn db(doing: &'static str) -> impl Fn(rusqlite::Error) -> Error {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseCorrupt, DatabaseLocked, NotADatabase};
    move |source| match source.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => {
            Error::Damaged { what: format!("the database could not {doing}: {source}") }
        }
        Some(DatabaseBusy | DatabaseLocked) => Error::Busy { waited: Duration::ZERO },
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
