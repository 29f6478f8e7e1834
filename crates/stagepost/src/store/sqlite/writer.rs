//! The one connection that writes, and its transactions.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::super::{Error, Written};
use super::append::PackedBatch;
use super::copies::Copies;
use super::known::Known;
use super::log::{Log, Mark};
use super::recent::{Recent, RecentBlob};
use super::{db, open};

/// Something to do in a transaction.
pub(super) enum Job {
    /// Appends to the journal. What could keep it from that is looked for first, so that nothing has to be taken back.
    Append(PackedBatch),
    /// Whatever else; if it fails, what it wrote is taken back.
    Other(Box<Work>),
    /// As another, and it mends what `Known::load` would refuse to work with.
    Mending(Box<Work>),
}

type Work = dyn FnOnce(&mut Writing<'_>) -> Result<Outcome, Error> + Send;

impl Job {
    pub(super) fn new(
        work: impl FnOnce(&mut Writing<'_>) -> Result<Outcome, Error> + Send + 'static,
    ) -> Self {
        Self::Other(Box::new(work))
    }

    pub(super) fn mending(
        work: impl FnOnce(&mut Writing<'_>) -> Result<Outcome, Error> + Send + 'static,
    ) -> Self {
        Self::Mending(Box::new(work))
    }
}

/// What a job gives back.
#[derive(Debug)]
pub(super) enum Outcome {
    Written(Written),
    Numbers(Vec<i64>),
    Collected(u64, u64),
    Rebuilt,
    Done,
}

/// A result for each job.
pub(super) type Results = Vec<Result<Outcome, Error>>;

pub(super) struct Writer {
    connection: Connection,
    file: Opened,
    busy: Duration,
    recent: Arc<Recent>,
    /// Payloads of the transaction under way.
    pending: Vec<Arc<RecentBlob>>,
    known: Option<Known>,
    log: Arc<Log>,
    copies: Copies,
    /// A commit syncs the log.
    syncs: bool,
}

/// A transaction under way.
pub(super) struct Writing<'a> {
    pub(super) connection: &'a Connection,
    pub(super) known: &'a mut Known,
    pub(super) recent: &'a Recent,
    /// What becomes recent when the transaction is committed, and not before: it may be taken back.
    pub(super) pending: &'a mut Vec<Arc<RecentBlob>>,
}

impl Writer {
    pub(super) fn open(folder: &Path, busy: Duration, recent: Arc<Recent>) -> Result<Self, Error> {
        let mut connection = open::connect_writer(folder)?;
        let file = Opened::new(folder.join(open::DATABASE));
        let log = Arc::new(Log::open(folder)?);
        log.watch(&mut connection).map_err(db("open the database"))?;
        let copies = Copies::beside(folder);
        Ok(Self {
            connection,
            file,
            busy,
            recent,
            pending: Vec::new(),
            known: None,
            log,
            copies,
            syncs: true,
        })
    }

    /// Carries out jobs in one transaction. Each succeeds or fails by itself. What succeeded is durable when the log
    /// has been synced up to the mark; a writer that is `alone` has nobody to go on meanwhile, so the commit does that,
    /// and takes everything back if it fails.
    pub(super) fn run(&mut self, jobs: Vec<Job>, alone: bool) -> (Results, Option<Mark>) {
        let (count, mends) = (jobs.len(), jobs.iter().any(|job| matches!(job, Job::Mending(_))));
        if let Err(error) = self.begin(alone).and_then(|()| self.refresh(mends)) {
            self.abandon();
            return (all_failed(error, count), None);
        }
        let (mut results, mut broken) = (Results::with_capacity(count), None);
        for job in jobs {
            if let Some(why) = &broken {
                results.push(Err(again(why)));
                continue;
            }
            let result = self.run_one(job, count > 1);
            if self.connection.is_autocommit() {
                broken = result.as_ref().err().map(again);
            }
            results.push(result);
        }
        if results.iter().all(Result::is_err) {
            self.abandon();
            return (results, None);
        }
        if let Some(why) = broken {
            // The database failed one of them in the middle; what was written for the others is gone with it.
            self.abandon();
            return (fail_all(results, why), None);
        }
        if results.iter().any(|result| matches!(result, Ok(Outcome::Rebuilt))) {
            self.log.head.thaw();
        }
        match self.finish() {
            Ok(mark) => {
                if alone {
                    self.log.keep_short(&self.connection);
                }
                (results, Some(mark))
            }
            Err(error) => {
                self.abandon();
                (fail_all(results, error), None)
            }
        }
    }

    /// Takes the write lock, waiting for other processes in short naps: SQLite's own waits grow so long that
    /// some process starves.
    fn begin(&mut self, syncs: bool) -> Result<(), Error> {
        // A leader that was lost in the middle left its transaction open.
        self.roll_back();
        self.set_syncs(syncs)?;
        self.log.copy_rest(&self.connection);
        let started = Instant::now();
        while !(self.log.make_sound(&self.connection)? && self.take_lock()?) {
            if started.elapsed() >= self.busy {
                return Err(Error::Busy { waited: self.busy });
            }
            std::thread::sleep(nap(started.elapsed()));
        }
        self.file.check()
    }

    /// Sets whether a commit syncs the log, which cannot be changed inside a transaction.
    fn set_syncs(&mut self, syncs: bool) -> Result<(), Error> {
        if self.syncs != syncs {
            let sql = if syncs { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" };
            execute(&self.connection, sql).map_err(db("begin to write"))?;
            self.syncs = syncs;
        }
        Ok(())
    }

    /// Says whether the lock was free.
    fn take_lock(&self) -> Result<bool, Error> {
        match execute(&self.connection, "BEGIN IMMEDIATE") {
            Ok(()) => Ok(true),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => Ok(false),
            Err(error) => Err(db("begin to write")(error)),
        }
    }

    /// Reads the end of the journal again if another process has written.
    fn refresh(&mut self, mends: bool) -> Result<(), Error> {
        let mut statement = self.connection.prepare_cached("PRAGMA data_version").map_err(db("read"))?;
        let version = statement.query_row([], |row| row.get(0)).map_err(db("read"))?;
        if self.known.as_ref().is_none_or(|known| known.version != version) {
            let known = match Known::load(&self.connection, version) {
                Err(_) if mends => Known::nothing(version),
                loaded => loaded?,
            };
            self.log.head.compare(known.position, &known.chain);
            self.known = Some(known);
        }
        Ok(())
    }

    fn run_one(&mut self, job: Job, shared: bool) -> Result<Outcome, Error> {
        // A failed write may have ended the transaction; nothing more may be written as if it were open.
        let Some(known) = self.known.take().filter(|_| !self.connection.is_autocommit()) else {
            return Err(Error::WriterLost);
        };
        match job {
            Job::Append(batch) => self.append(batch, known, shared),
            Job::Other(work) | Job::Mending(work) if shared => self.guarded(work, known),
            Job::Other(work) | Job::Mending(work) => self.carry_out(known, work),
        }
    }

    /// Does some work that nothing else is lost with if it fails.
    fn carry_out(
        &mut self,
        mut known: Known,
        work: impl FnOnce(&mut Writing<'_>) -> Result<Outcome, Error>,
    ) -> Result<Outcome, Error> {
        let outcome = work(&mut self.writing(&mut known))?;
        self.known = Some(known);
        Ok(outcome)
    }

    /// Appends a batch. If others share the transaction, it is looked at before anything is written; what fails then has
    /// changed nothing. If the database fails after that, the transaction is over for all.
    fn append(&mut self, batch: PackedBatch, mut known: Known, shared: bool) -> Result<Outcome, Error> {
        if shared && let Err(error) = self.writing(&mut known).look_at(&batch) {
            self.known = Some(known);
            return Err(error);
        }
        let result = self.carry_out(known, |writing| writing.append(batch).map(Outcome::Written));
        if result.is_err() {
            self.roll_back();
        }
        result
    }

    /// Does some work in a savepoint.
    fn guarded(&mut self, work: Box<Work>, mut known: Known) -> Result<Outcome, Error> {
        let savepoint = |connection: &Connection, sql| execute(connection, sql).map_err(db("write"));
        savepoint(&self.connection, "SAVEPOINT job")?;
        let (version, pending) = (known.version, self.pending.len());
        let result = work(&mut self.writing(&mut known));
        if result.is_ok() {
            savepoint(&self.connection, "RELEASE job")?;
            self.known = Some(known);
        } else {
            self.pending.truncate(pending);
            // What is known may include what is taken back here. If that fails, nothing is known any more, and
            // the whole transaction fails.
            let undone = savepoint(&self.connection, "ROLLBACK TO job")
                .and_then(|()| savepoint(&self.connection, "RELEASE job"));
            self.known = undone.and_then(|()| Known::load(&self.connection, version)).ok();
        }
        result
    }

    fn writing<'a>(&'a mut self, known: &'a mut Known) -> Writing<'a> {
        Writing { connection: &self.connection, known, recent: &self.recent, pending: &mut self.pending }
    }

    fn finish(&mut self) -> Result<Mark, Error> {
        let Some(known) = self.known.as_mut() else { return Err(Error::WriterLost) };
        let mut writing =
            Writing { connection: &self.connection, known, recent: &self.recent, pending: &mut self.pending };
        writing.follow()?;
        let committed = stagepost_vfs::gathered(|| execute(&self.connection, "COMMIT"));
        if committed.is_err() {
            // What it wrote may be whole in the log, and whoever reads the log anew would take it for committed.
            self.log.doubt();
        }
        committed.map_err(db("commit"))?;
        for blob in self.pending.drain(..) {
            let base = blob.prepared.base.and_then(|base| self.recent.bytes(&base));
            self.copies.keep(&blob.prepared, base.as_ref().map(|base| base.as_slice()));
            self.recent.keep(blob);
        }
        let known = self.known.as_ref().ok_or(Error::WriterLost)?;
        let log = self.log.clone();
        Ok(Mark { log, position: known.position, chain: known.chain, synced: self.syncs })
    }

    /// Says whether the log holds what was reported and nothing else, and mends it if it does not.
    pub(super) fn is_sound(&self) -> bool {
        !self.log.is_doubtful() || self.log.make_sound(&self.connection).unwrap_or(false)
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn abandon(&mut self) {
        self.known = None;
        self.roll_back();
    }

    fn roll_back(&mut self) {
        self.pending.clear();
        if !self.connection.is_autocommit() {
            self.known = None;
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

/// The file that was opened. One that was removed can still be written to, and nobody would ever read it.
struct Opened {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl Opened {
    fn new(path: PathBuf) -> Self {
        // The process may go to another folder.
        let path = path.canonicalize().unwrap_or(path);
        Self { identity: identity(&path), path }
    }

    fn check(&self) -> Result<(), Error> {
        let there = identity(&self.path);
        if there == self.identity { Ok(()) } else { Err(Error::Gone { path: self.path.clone() }) }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// How long to wait before the next try. The longer someone has waited the more often they try, so that they are
/// in front of those who have just come.
fn nap(waited: Duration) -> Duration {
    let micros = match waited.as_millis() {
        0..2 => 500,
        2..10 => 250,
        _ => 60,
    };
    Duration::from_micros(micros)
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

/// The same failure for everyone who shared the transaction.
pub(super) fn all_failed(error: Error, count: usize) -> Results {
    let others: Vec<_> = (1..count).map(|_| Err(again(&error))).collect();
    std::iter::once(Err(error)).chain(others).collect()
}

/// Makes failures of what had succeeded.
pub(super) fn fail_all(results: Results, error: Error) -> Results {
    let failed = all_failed(error, results.len());
    results.into_iter().zip(failed).map(|(result, failed)| result.and(failed)).collect()
}

/// The same failure once more.
pub(super) fn again(error: &Error) -> Error {
    match error {
        Error::Busy { waited } => Error::Busy { waited: *waited },
        Error::Gone { path } => Error::Gone { path: path.clone() },
        Error::Damaged { what } => Error::Damaged { what: what.clone() },
        Error::Malformed { doing, why } => Error::Malformed { doing, why: why.clone() },
        Error::Database { doing, source: rusqlite::Error::SqliteFailure(code, text) } => {
            Error::Database { doing, source: rusqlite::Error::SqliteFailure(*code, text.clone()) }
        }
        Error::Io { doing, path, source } => {
            let source =
                source.raw_os_error().map_or(source.kind().into(), std::io::Error::from_raw_os_error);
            Error::Io { doing, path: path.clone(), source }
        }
        _ => Error::WriterLost,
    }
}

#[cfg(test)]
mod tests {
    use super::super::append::Packed;
    use super::super::{OpenOptions, SqliteStore, lock};
    use super::*;
    use crate::model::{
        Artifact, ArtifactName, BlobRef, CheckpointId, Content, Draft, Hash, Kind, MediaType, Parent, Run,
        RunId, RunKind, Timestamp,
    };
    use crate::store::{Batch, Expect, NewEntry, Store};

    fn id(number: u128) -> CheckpointId {
        CheckpointId::from_uuid(uuid::Uuid::from_u128(number))
    }

    fn run(name: &str, kind: RunKind) -> NewEntry {
        NewEntry::Run(Run::new(RunId::new(name).unwrap(), kind, Timestamp::from_micros(0).unwrap()))
    }

    fn draft(name: &str, number: u128) -> Draft {
        Draft {
            id: id(number),
            run: RunId::new(name).unwrap(),
            parent: Parent::Head,
            created_at: Timestamp::from_micros(0).unwrap(),
            content: Content::new(Kind::Manual),
        }
    }

    fn append(entries: Vec<NewEntry>, expect: Vec<Expect>) -> Job {
        let records = entries.into_iter().map(|entry| Packed::of(entry).unwrap()).collect();
        Job::Append(PackedBatch { expect, payloads: Vec::new(), records })
    }

    /// Has jobs carried out as if as many threads had come with them.
    fn together(store: &SqliteStore, jobs: Vec<Job>) -> Results {
        let (results, mark) = lock(&store.writer).as_mut().unwrap().run(jobs, false);
        if let Some(mark) = mark {
            mark.sync().unwrap();
        }
        results
    }

    fn store_with_a_run(folder: &Path) -> SqliteStore {
        let options = OpenOptions { create: true, ..OpenOptions::default() };
        let store = SqliteStore::open(folder, &options).unwrap();
        let entries = vec![run("r", RunKind::Flow), NewEntry::Checkpoint(draft("r", 1))];
        store.write(Batch { entries, ..Batch::default() }).unwrap();
        store
    }

    #[test]
    fn one_that_cannot_be_appended_does_not_take_the_others_along() {
        let folder = tempfile::tempdir().unwrap();
        let store = store_with_a_run(folder.path());
        let checkpoint = |draft: Draft| vec![NewEntry::Checkpoint(draft)];
        let artifact = Artifact {
            name: ArtifactName::new("a").unwrap(),
            media: MediaType::bytes(),
            blob: BlobRef { size: 1, hash: Hash::of(b"x") },
        };
        let mut with_artifact = draft("r", 10);
        with_artifact.content.artifacts.push(artifact);
        let after = |number| Draft { parent: Parent::Checkpoint(id(number)), ..draft("r", 11) };
        let twice = vec![NewEntry::Checkpoint(draft("r", 12)), NewEntry::Checkpoint(draft("r", 12))];
        let two_kinds = vec![run("new", RunKind::Flow), run("new", RunKind::Task)];
        let refused = [
            checkpoint(draft("r", 1)),
            checkpoint(draft("nobody", 13)),
            checkpoint(with_artifact),
            checkpoint(after(99)),
            twice,
            vec![run("r", RunKind::Task)],
            two_kinds,
        ];
        let count = refused.len();
        let mut jobs = vec![append(checkpoint(draft("r", 2)), vec![])];
        jobs.extend(refused.into_iter().map(|entries| append(entries, vec![])));
        jobs.push(append(checkpoint(draft("r", 14)), vec![Expect::Head(RunId::new("r").unwrap(), 1)]));
        jobs.push(append(checkpoint(draft("r", 3)), vec![]));
        let all_new = vec![
            run("new", RunKind::Flow),
            NewEntry::Checkpoint(draft("new", 20)),
            NewEntry::Checkpoint(Draft { parent: Parent::Checkpoint(id(20)), ..draft("new", 21) }),
        ];
        jobs.push(append(all_new, vec![]));
        let sound: Vec<bool> = together(&store, jobs).iter().map(Result::is_ok).collect();
        let expected = [vec![true], vec![false; count + 1], vec![true, true]].concat();
        assert_eq!(sound, expected);
        for (name, length) in [("r", 3), ("new", 2)] {
            let head = store.head(&RunId::new(name).unwrap()).unwrap().unwrap().live().unwrap();
            assert_eq!(head.seq, length);
        }
        let mut damage = Vec::new();
        store.audit(&mut |one| damage.push(one)).unwrap();
        assert!(damage.is_empty(), "{damage:?}");
    }

    #[test]
    fn if_the_database_fails_one_in_the_middle_nothing_of_any_is_written_and_all_are_told_why() {
        let folder = tempfile::tempdir().unwrap();
        let store = store_with_a_run(folder.path());
        let other = Connection::open(folder.path().join(open::DATABASE)).unwrap();
        let fails = "CREATE TRIGGER fails BEFORE INSERT ON entries WHEN NEW.seq = 3
                     BEGIN SELECT RAISE(ABORT, 'no room'); END";
        other.execute_batch(fails).unwrap();
        let job = |number| append(vec![NewEntry::Checkpoint(draft("r", number))], vec![]);
        for result in together(&store, vec![job(2), job(3), job(4)]) {
            let error = result.unwrap_err();
            assert!(format!("{error:?}").contains("no room"), "{error:?}");
        }
        assert_eq!(store.usage().unwrap().entries, 2);
        other.execute_batch("DROP TRIGGER fails").unwrap();
        assert!(together(&store, vec![job(2), job(3)]).iter().all(Result::is_ok));
        assert_eq!(store.usage().unwrap().entries, 4);
    }

    #[test]
    fn a_log_that_may_hold_what_failed_does_not_stay() {
        let folder = tempfile::tempdir().unwrap();
        let log = || std::fs::metadata(folder.path().join(open::LOG)).map_or(0, |log| log.len());
        let write = || {
            let options = OpenOptions { create: true, ..OpenOptions::default() };
            let store = SqliteStore::open(folder.path(), &options).unwrap();
            store.rebuild().unwrap();
            store
        };
        drop(write());
        assert_ne!(log(), 0);
        let store = write();
        lock(&store.writer).as_ref().unwrap().log.doubt();
        let other = SqliteStore::open(folder.path(), &OpenOptions::default()).unwrap();
        drop(store);
        assert_eq!(log(), 0, "somebody else has it open, and it is emptied all the same");
        drop(other);
    }
}
