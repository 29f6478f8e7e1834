//! The one connection that writes.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use super::super::{Batch, Error, Expect, NewEntry, Written};
use super::blobs::Recent;
use super::row::{Before, Class, Entry, Journal, checkpoint_tags, event_tag, pack};
use super::{column, db, open};
use crate::model::{Checkpoint, CheckpointId, Draft, Event, Hash, Parent, Run, RunId, chain, chain_start};

/// Something to do in a transaction.
pub(super) type Job = Box<dyn FnOnce(&mut Writing<'_>) -> Result<Outcome, Error> + Send>;

/// What a job gives back.
#[derive(Debug)]
pub(super) enum Outcome {
    Written(Written),
    Numbers(Vec<i64>),
    Collected(u64, u64),
    Done,
}

/// The tables `by_*` follow when the journal is ahead by so many entries or pieces.
const ENTRIES_AHEAD: i64 = 64;
const PIECES_AHEAD: i64 = 512;

/// The file that remembers how long the journal has been, so that losing its end is noticed.
pub(super) const HEAD_FILE: &str = "head";

pub(super) struct Writer {
    connection: Connection,
    busy: Duration,
    recent: Arc<Recent>,
    known: Option<Known>,
    head: File,
}

/// What the writer knows of the end of the journal. It holds as long as nobody else writes; then it is read again.
pub(super) struct Known {
    /// Changes when another process has written.
    version: i64,
    position: i64,
    chain: Hash,
    /// How far the tables `by_*` are.
    indexed: Indexed,
    /// The highest numbers in use.
    pub(super) last_piece: i64,
    pub(super) last_blob: i64,
    /// What the tables `by_*` do not have yet.
    ids: HashSet<CheckpointId>,
    pub(super) pieces: HashMap<Hash, i64>,
    pub(super) blobs: HashMap<Hash, i64>,
    heads: HashMap<RunId, Head>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Indexed {
    pub(super) entries: i64,
    pub(super) pieces: i64,
    pub(super) blobs: i64,
}

/// The end of a run.
#[derive(Debug, Clone)]
struct Head {
    number: i64,
    seq: i64,
    before: Before,
}

/// A transaction under way.
pub(super) struct Writing<'a> {
    pub(super) connection: &'a Connection,
    pub(super) known: &'a mut Known,
    pub(super) recent: &'a Recent,
}

impl Writer {
    pub(super) fn open(folder: &Path, busy: Duration, recent: Arc<Recent>) -> Result<Self, Error> {
        let connection = open::connect(folder, Duration::ZERO)?;
        let path = folder.join(HEAD_FILE);
        let head =
            File::options().create(true).truncate(false).write(true).read(true).mode(0o600).open(&path);
        Ok(Self { connection, busy, recent, known: None, head: head.map_err(open::failed("open", &path))? })
    }

    /// Carries out jobs in one transaction. Each succeeds or fails by itself; all wait for the same sync.
    pub(super) fn run(&mut self, jobs: Vec<Job>) -> Vec<Result<Outcome, Error>> {
        let count = jobs.len();
        if let Err(error) = self.begin().and_then(|()| self.refresh()) {
            self.abandon();
            return all_failed(error, count);
        }
        let mut results: Vec<_> = jobs.into_iter().map(|job| self.run_one(job, count > 1)).collect();
        if results.iter().all(Result::is_err) {
            self.abandon();
            return results;
        }
        if let Err(error) = self.finish() {
            self.abandon();
            let failed = all_failed(error, count);
            results = results.into_iter().zip(failed).map(|(result, failed)| result.and(failed)).collect();
        }
        results
    }

    /// Takes the write lock, waiting for other processes in short naps: SQLite's own waits grow so long that
    /// some process starves.
    fn begin(&mut self) -> Result<(), Error> {
        let started = Instant::now();
        let mut nap = Duration::from_micros(100);
        loop {
            match self.connection.execute_batch("BEGIN IMMEDIATE") {
                Ok(()) => return Ok(()),
                Err(error) if error.sqlite_error_code() != Some(rusqlite::ErrorCode::DatabaseBusy) => {
                    return Err(db("begin to write")(error));
                }
                Err(_) if started.elapsed() >= self.busy => return Err(Error::Busy { waited: self.busy }),
                Err(_) => std::thread::sleep(nap),
            }
            nap = (nap * 2).min(Duration::from_millis(1));
        }
    }

    /// Reads the end of the journal again if another process has written.
    fn refresh(&mut self) -> Result<(), Error> {
        let mut statement = self.connection.prepare_cached("PRAGMA data_version").map_err(db("read"))?;
        let version = statement.query_row([], |row| row.get(0)).map_err(db("read"))?;
        if self.known.as_ref().is_none_or(|known| known.version != version) {
            self.known = Some(Known::load(&self.connection, version)?);
        }
        Ok(())
    }

    fn run_one(&mut self, job: Job, shared: bool) -> Result<Outcome, Error> {
        // A failed write may have ended the transaction; nothing more may be written as if it were open.
        let Some(known) = self.known.as_mut().filter(|_| !self.connection.is_autocommit()) else {
            return Err(Error::WriterLost);
        };
        let savepoint =
            |sql| if shared { self.connection.execute_batch(sql).map_err(db("write")) } else { Ok(()) };
        savepoint("SAVEPOINT job")?;
        let mut writing = Writing { connection: &self.connection, known, recent: &self.recent };
        let result = job(&mut writing);
        match &result {
            Ok(_) => savepoint("RELEASE job")?,
            Err(_) if shared => {
                savepoint("ROLLBACK TO job; RELEASE job")?;
                // What is known may include what was just taken back.
                let version = known.version;
                *known = Known::load(&self.connection, version)?;
            }
            Err(_) => {}
        }
        result
    }

    fn finish(&mut self) -> Result<(), Error> {
        let Some(known) = self.known.as_mut() else { return Err(Error::WriterLost) };
        Writing { connection: &self.connection, known, recent: &self.recent }.follow()?;
        self.connection.execute_batch("COMMIT").map_err(db("commit"))?;
        remember_head(&self.head, known.position, &known.chain);
        Ok(())
    }

    fn abandon(&mut self) {
        self.known = None;
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

/// The same failure for everyone who shared the transaction.
pub(super) fn all_failed(error: Error, count: usize) -> Vec<Result<Outcome, Error>> {
    let others: Vec<_> = (1..count).map(|_| Err(again(&error))).collect();
    std::iter::once(Err(error)).chain(others).collect()
}

fn again(error: &Error) -> Error {
    match error {
        Error::Busy { waited } => Error::Busy { waited: *waited },
        Error::Damaged { what } => Error::Damaged { what: what.clone() },
        Error::Database { doing, source: rusqlite::Error::SqliteFailure(code, text) } => {
            Error::Database { doing, source: rusqlite::Error::SqliteFailure(*code, text.clone()) }
        }
        _ => Error::WriterLost,
    }
}

/// Writes how long the journal is now. It is not synced and may lag behind after a power cut: then it proves less,
/// never something wrong.
fn remember_head(file: &File, position: i64, chain: &Hash) {
    let mut record = [0; 72];
    record[..8].copy_from_slice(&position.to_le_bytes());
    record[8..40].copy_from_slice(chain.as_bytes());
    let check = Hash::of(&record[..40]);
    record[40..].copy_from_slice(check.as_bytes());
    let _ = file.write_all_at(&record, 0);
}

/// Reads how long the journal was when it was last written, if that is known.
pub(super) fn remembered_head(folder: &Path) -> Option<(i64, Hash)> {
    let record: [u8; 72] = std::fs::read(folder.join(HEAD_FILE)).ok()?.try_into().ok()?;
    if Hash::of(&record[..40]).as_bytes()[..] != record[40..] {
        return None;
    }
    let position = i64::from_le_bytes(record[..8].try_into().ok()?);
    Some((position, Hash::from_bytes(record[8..40].try_into().ok()?)))
}

impl Known {
    fn load(connection: &Connection, version: i64) -> Result<Self, Error> {
        let (indexed, chain) = read_state(connection)?;
        // Numbers of dropped rows are not used again: the tables `by_*` count as complete up to them.
        let last = |sql, indexed: i64| {
            column(connection, sql, []).map(|found| found.first().copied().unwrap_or(0).max(indexed))
        };
        let mut known = Self {
            version,
            position: indexed.entries,
            chain,
            indexed,
            last_piece: last("SELECT coalesce(max(number), 0) FROM pieces", indexed.pieces)?,
            last_blob: last("SELECT coalesce(max(number), 0) FROM blobs", indexed.blobs)?,
            ids: HashSet::new(),
            pieces: numbers_by_hash(
                connection,
                "SELECT hash, number FROM pieces WHERE number > ?1",
                indexed.pieces,
            )?,
            blobs: numbers_by_hash(
                connection,
                "SELECT hash, number FROM blobs WHERE number > ?1",
                indexed.blobs,
            )?,
            heads: HashMap::new(),
        };
        known.read_journal_end(connection)?;
        Ok(known)
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
            self.ids.extend(id.map(super::row::id_from));
        }
        Ok(())
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

fn numbers_by_hash(connection: &Connection, sql: &str, after: i64) -> Result<HashMap<Hash, i64>, Error> {
    let mut statement = connection.prepare_cached(sql).map_err(db("read"))?;
    let rows = statement.query_map([after], |row| Ok((Hash::from_bytes(row.get(0)?), row.get(1)?)));
    rows.and_then(Iterator::collect).map_err(db("read"))
}

impl Writing<'_> {
    /// Appends a batch.
    pub(super) fn append(&mut self, batch: Batch) -> Result<Written, Error> {
        for expectation in &batch.expect {
            self.check(expectation)?;
        }
        for payload in &batch.payloads {
            self.store_payload(payload)?;
        }
        let mut checkpoints = Vec::new();
        for entry in batch.entries {
            match entry {
                NewEntry::Run(run) => self.append_run(&run)?,
                NewEntry::Checkpoint(draft) => checkpoints.push(self.append_checkpoint(draft)?),
                NewEntry::Event(event) => self.append_event(&event)?,
            }
        }
        Ok(Written { checkpoints, position: u64::try_from(self.known.position).unwrap_or(0) })
    }

    fn check(&mut self, expectation: &Expect) -> Result<(), Error> {
        let journal = Journal(self.connection);
        let holds = match expectation {
            Expect::NewRun(run) => journal.run_number(run)?.is_none(),
            Expect::Head(run, seq) => match journal.run_number(run)? {
                Some((number, _)) => {
                    journal.head_of(number)?.map_or(0, |(_, seq)| seq.unsigned_abs()) == *seq
                }
                None => *seq == 0,
            },
            Expect::LatestEvent(topic, key, position) => {
                let newest =
                    column(self.connection, super::EVENTS_OF_KEY, params![event_tag(*topic, key), 1])?;
                newest.first().map_or(0, |newest| newest.unsigned_abs()) == *position
            }
        };
        if holds { Ok(()) } else { Err(Error::Conflict { what: expectation.to_string() }) }
    }

    fn append_run(&mut self, run: &Run) -> Result<(), Error> {
        if let Some((_, position)) = Journal(self.connection).run_number(&run.id)? {
            let gone = || Error::Damaged { what: format!("the record of run `{}` is gone", run.id) };
            let there = Journal(self.connection).entry(position)?.ok_or_else(gone)?.to_run()?;
            let what = || format!("run `{}` is there as a {}, not as a {}", run.id, there.kind, run.kind);
            return if there.kind == run.kind { Ok(()) } else { Err(Error::Conflict { what: what() }) };
        }
        let numbers = column(self.connection, "SELECT coalesce(max(number), 0) + 1 FROM runs", [])?;
        let number = numbers.first().copied().unwrap_or(1);
        let position = self.known.position + 1;
        let mut statement =
            self.connection.prepare_cached("INSERT INTO runs VALUES (?1, ?2, ?3)").map_err(db("append"))?;
        statement.execute(params![number, run.id.as_str(), position]).map_err(db("append"))?;
        let at = run.created_at.as_micros();
        self.journal(Class::Run, at, run.seal(), |entry| {
            entry.run = number;
            entry.body = Some(pack(run));
        })
    }

    fn append_event(&mut self, event: &Event) -> Result<(), Error> {
        self.journal(Class::Event, event.at.as_micros(), event.seal(), |entry| {
            entry.tags = Some(event_tag(event.topic, &event.key));
            entry.body = Some(pack(event));
        })
    }

    fn append_checkpoint(&mut self, draft: Draft) -> Result<Checkpoint, Error> {
        if self.known.ids.contains(&draft.id)
            || Journal(self.connection).indexed_position(&draft.id)?.is_some()
        {
            return Err(Error::Conflict { what: format!("checkpoint {} is there already", draft.id) });
        }
        for artifact in &draft.content.artifacts {
            self.must_have(&artifact.blob)?;
        }
        let head = self.head(&draft.run)?;
        let (before, fork) = match draft.parent {
            Parent::Head => (head.before.clone(), None),
            Parent::Checkpoint(id) => {
                (self.seal_of(&id)?, Some(id).filter(|_| head.before.parent != Some(id)))
            }
        };
        let sealed = Checkpoint::seal(draft, (head.seq + 1).unsigned_abs(), before.parent, &before.seal);
        self.journal(Class::Checkpoint, sealed.created_at.as_micros(), sealed.seal, |entry| {
            entry.run = head.number;
            entry.seq = head.seq + 1;
            entry.id = Some(sealed.id);
            entry.parent = fork;
            entry.tags = checkpoint_tags(&sealed);
            entry.body = Some(pack(&sealed.content));
        })?;
        let before = Before { parent: Some(sealed.id), seal: sealed.seal };
        self.known.heads.insert(sealed.run.clone(), Head { number: head.number, seq: head.seq + 1, before });
        self.known.ids.insert(sealed.id);
        Ok(sealed)
    }

    fn head(&mut self, run: &RunId) -> Result<Head, Error> {
        if let Some(head) = self.known.heads.get(run) {
            return Ok(head.clone());
        }
        let journal = Journal(self.connection);
        let missing = || Error::MissingRun { run: run.clone() };
        let (number, start) = journal.run_number(run)?.ok_or_else(missing)?;
        let (position, seq) = journal.head_of(number)?.unwrap_or((start, 0));
        let gone = || Error::Damaged { what: format!("the newest entry of run `{run}` is gone") };
        let entry = journal.entry(position)?.ok_or_else(gone)?;
        Ok(Head { number, seq, before: Before { parent: entry.id, seal: entry.seal } })
    }

    fn seal_of(&self, id: &CheckpointId) -> Result<Before, Error> {
        let journal = Journal(self.connection);
        let missing = || Error::MissingCheckpoint { id: *id };
        let position = journal.position_of(id)?.ok_or_else(missing)?;
        let entry = journal.entry(position)?.ok_or_else(missing)?;
        Ok(Before { parent: entry.id, seal: entry.seal })
    }

    /// Adds a row to the journal and to the chain.
    fn journal(
        &mut self,
        class: Class,
        at: i64,
        seal: Hash,
        fill: impl FnOnce(&mut Entry),
    ) -> Result<(), Error> {
        let mut entry = Entry {
            position: self.known.position + 1,
            class: class as i64,
            run: 0,
            seq: 0,
            id: None,
            parent: None,
            at,
            tags: None,
            body: None,
            seal,
        };
        fill(&mut entry);
        entry.insert(self.connection)?;
        self.known.position = entry.position;
        self.known.chain = chain(&self.known.chain, &seal);
        Ok(())
    }

    /// Turns checkpoints into stubs and appends the event that says so.
    pub(super) fn prune(&mut self, ids: &[CheckpointId], event: Event) -> Result<(), Error> {
        for id in ids {
            let missing = || Error::MissingCheckpoint { id: *id };
            let position = Journal(self.connection).position_of(id)?.ok_or_else(missing)?;
            self.drop_tags(position)?;
            let mut statement = self
                .connection
                .prepare_cached("UPDATE entries SET body = NULL, tags = NULL WHERE position = ?1")
                .map_err(db("prune"))?;
            statement.execute([position]).map_err(db("prune"))?;
        }
        self.append_event(&event)
    }

    fn drop_tags(&self, position: i64) -> Result<(), Error> {
        let entry = Journal(self.connection).entry(position)?;
        let mut statement = self
            .connection
            .prepare_cached("DELETE FROM by_tag WHERE tag = ?1 AND position = ?2")
            .map_err(db("prune"))?;
        for tag in entry.iter().flat_map(|entry| entry.tags.iter()).flat_map(|tags| tags.split('\n')) {
            statement.execute(params![tag, position]).map_err(db("prune"))?;
        }
        Ok(())
    }

    /// Brings the tables `by_*` up to date if they are far enough behind to be worth it.
    pub(super) fn follow(&mut self) -> Result<(), Error> {
        let (known, indexed) = (&*self.known, self.known.indexed);
        let far = known.position - indexed.entries >= ENTRIES_AHEAD
            || known.last_piece - indexed.pieces >= PIECES_AHEAD
            || known.last_blob - indexed.blobs >= PIECES_AHEAD;
        if far { self.follow_now() } else { Ok(()) }
    }

    pub(super) fn follow_now(&mut self) -> Result<(), Error> {
        let Indexed { entries, pieces, blobs } = self.known.indexed;
        let run = |sql, after: i64| -> Result<(), Error> {
            let mut statement = self.connection.prepare_cached(sql).map_err(db("index"))?;
            statement.execute([after]).map(drop).map_err(db("index"))
        };
        run(
            "INSERT INTO by_id SELECT id, position FROM entries WHERE position > ?1 AND id IS NOT NULL",
            entries,
        )?;
        run(
            "INSERT INTO by_run SELECT run, seq, position FROM entries WHERE position > ?1 AND seq > 0",
            entries,
        )?;
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

    fn index_hashes(&self, sql: &str, numbers: &HashMap<Hash, i64>, after: i64) -> Result<(), Error> {
        let mut insert = self.connection.prepare_cached(sql).map_err(db("index"))?;
        for (hash, number) in numbers.iter().filter(|(_, number)| **number > after) {
            insert.execute(params![short(hash), number]).map_err(db("index"))?;
        }
        Ok(())
    }
}

/// The part of a hash that the tables `by_piece` and `by_blob` are sorted by.
pub(super) fn short(hash: &Hash) -> i64 {
    i64::from_be_bytes(hash.as_bytes()[..8].try_into().expect("a hash has 32 bytes"))
}

impl std::fmt::Display for Expect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Expect::NewRun(run) => write!(f, "run `{run}` is there already"),
            Expect::Head(run, seq) => write!(f, "checkpoint {seq} is no longer the newest of run `{run}`"),
            Expect::LatestEvent(topic, key, _) => {
                write!(f, "something newer happened to {} `{}`", topic.as_str(), key.escape_debug())
            }
        }
    }
}

impl Writing<'_> {
    /// Empties the tables `by_*` and fills them again from the journal.
    pub(super) fn rebuild(&mut self) -> Result<Outcome, Error> {
        let clear = "DELETE FROM by_id; DELETE FROM by_run; DELETE FROM by_tag; DELETE FROM by_piece; DELETE FROM by_blob;
                     UPDATE state SET entries = 0, pieces = 0, blobs = 0";
        self.connection.execute_batch(clear).map_err(db("rebuild tables"))?;
        let mut statement =
            self.connection.prepare_cached("UPDATE state SET chain = ?1").map_err(db("rebuild tables"))?;
        statement.execute([chain_start().as_bytes()]).map_err(db("rebuild tables"))?;
        *self.known = Known::load(self.connection, self.known.version)?;
        self.follow_now()?;
        Ok(Outcome::Done)
    }
}
