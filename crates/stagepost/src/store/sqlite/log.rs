//! Making what was committed durable: one sync of SQLite's log for all who wait for it.
//!
//! Where several write, they commit without a sync, so that the next transaction can go on while the log is synced here.
//! Nobody is told that something was written before the log is on the disk up to it. Others may see it a moment sooner;
//! what they write comes after it in the log, so it cannot be durable without it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::super::Error;
use super::head::HeadFile;
use super::{db, lock, open};
use crate::model::Hash;

/// A log with more pages than this is copied to the database, so that it can start over.
const LONG: i32 = 4000;

/// A log of at most so many bytes stays when a store is closed: some thirty small checkpoints, read in a fraction of a
/// millisecond by whoever opens the store next.
const SHORT: u64 = 128 << 10;

/// Says whether the log may stay when the store is closed. One that holds nothing is removed.
pub(super) fn may_stay(folder: &Path) -> bool {
    folder.join(open::LOG).metadata().is_ok_and(|log| (1..=SHORT).contains(&log.len()))
}

/// The log of a store, as a writer sees it.
pub(super) struct Log {
    path: PathBuf,
    /// Opened at the first sync: SQLite makes the file, and keeps it while the writer's connection is open.
    file: Mutex<Option<File>>,
    pub(super) head: HeadFile,
    /// A sync failed: the system may have given up on what it could not write, so that later syncs mean nothing for it.
    /// Or a commit did: what it wrote may be there, and must not be read as if it were committed.
    doubtful: AtomicBool,
    /// How many pages it has.
    length: AtomicI32,
    copying: Mutex<Copying>,
}

/// Copying a long log to the database. It can start over only when all of it is copied, and where several write there is
/// always more. So one of them copies what there is while the others go on; what came meanwhile is little, and a
/// leader copies that before it begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Copying {
    Idle,
    Begun,
    NearlyDone,
}

/// How far the journal was when a transaction was committed.
pub(super) struct Mark {
    pub(super) log: Arc<Log>,
    pub(super) position: i64,
    pub(super) chain: Hash,
    /// The commit has synced the log.
    pub(super) synced: bool,
}

impl Log {
    pub(super) fn open(folder: &Path) -> Result<Self, Error> {
        Ok(Self {
            path: folder.join(open::LOG),
            file: Mutex::new(None),
            head: HeadFile::open(folder)?,
            doubtful: AtomicBool::new(false),
            length: AtomicI32::new(0),
            copying: Mutex::new(Copying::Idle),
        })
    }

    /// Has the length told by the connection that writes, in place of SQLite's own way to keep the log short.
    pub(super) fn watch(self: &Arc<Self>, connection: &mut Connection) -> rusqlite::Result<()> {
        let log = self.clone();
        connection.wal_hook(Some(move |_: &mut Wal, pages| {
            log.length.store(pages, Ordering::Relaxed);
            Ok(())
        }))
    }

    fn is_long(&self) -> bool {
        self.length.load(Ordering::Relaxed) >= LONG
    }

    /// Copies a long log for a writer that is alone.
    pub(super) fn keep_short(&self, connection: &Connection) {
        if self.is_long() {
            // What was committed is committed; the next commit tries again.
            let _ = copy(connection);
        }
    }

    /// Copies what came while a long log was copied, before anything more is written.
    pub(super) fn copy_rest(&self, connection: &Connection) {
        let nearly_done = *lock(&self.copying) == Copying::NearlyDone;
        if nearly_done {
            let _ = copy(connection);
            *lock(&self.copying) = Copying::Idle;
        }
    }

    fn sync(&self) -> Result<(), Error> {
        let failed = || open::failed("sync", &self.path);
        if self.is_doubtful() {
            return Err(failed()(io::Error::other("what was written before could not be synced")));
        }
        let mut file = lock(&self.file);
        let file = match &mut *file {
            Some(file) => file,
            none => none.insert(open::existing_file(&self.path).map_err(failed())?),
        };
        file.sync_data().map_err(failed())
    }

    /// Takes note that a commit or a sync failed.
    pub(super) fn doubt(&self) {
        self.doubtful.store(true, Ordering::Release);
    }

    pub(super) fn is_doubtful(&self) -> bool {
        self.doubtful.load(Ordering::Acquire)
    }

    /// After a failure, has everything committed in the log copied to the database and synced there, and the log emptied.
    /// Says whether that could be done; not while another process is in the way.
    pub(super) fn make_sound(&self, connection: &Connection) -> Result<bool, Error> {
        if self.is_doubtful() {
            let copied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
            let in_the_way: bool = copied.map_err(db("mend the log"))?;
            self.doubtful.store(in_the_way, Ordering::Release);
        }
        Ok(!self.is_doubtful())
    }
}

/// Copies as much of the log as nobody still reads, without being in anyone's way.
fn copy(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

impl Mark {
    /// Says whether it is for the caller to copy the log, which nobody else does until this is dropped.
    pub(super) fn turn_to_copy(self) -> Option<TurnToCopy> {
        let mut copying = lock(&self.log.copying);
        if self.synced || *copying != Copying::Idle || !self.log.is_long() {
            return None;
        }
        *copying = Copying::Begun;
        drop(copying);
        Some(TurnToCopy(self.log))
    }

    /// Makes everything up to here durable, and notes how long the journal is.
    pub(super) fn sync(&self) -> Result<(), Error> {
        let synced = if self.synced { Ok(()) } else { self.log.sync() };
        match &synced {
            Ok(()) => self.log.head.write(self.position, &self.chain),
            Err(_) => self.log.doubt(),
        }
        synced
    }
}

/// The right to copy the log while others go on writing.
pub(super) struct TurnToCopy(Arc<Log>);

impl TurnToCopy {
    pub(super) fn copy(&self, connection: &Connection) -> Result<(), Error> {
        copy(connection).map_err(db("copy the log"))
    }
}

impl Drop for TurnToCopy {
    /// However it went, the rest is for the next leader.
    fn drop(&mut self) {
        *lock(&self.0.copying) = Copying::NearlyDone;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_failed_sync_the_log_is_copied_before_anything_else_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join(open::DATABASE)).unwrap();
        connection
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n); INSERT INTO t VALUES (1)")
            .unwrap();
        let log = Log::open(folder.path()).unwrap();
        let size = || std::fs::metadata(folder.path().join(open::LOG)).unwrap().len();
        assert!(log.make_sound(&connection).unwrap());
        assert_ne!(size(), 0);

        log.doubtful.store(true, Ordering::Release);
        let reader = Connection::open(folder.path().join(open::DATABASE)).unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM t").unwrap();
        connection.execute_batch("INSERT INTO t VALUES (2)").unwrap();
        assert!(!log.make_sound(&connection).unwrap());
        reader.execute_batch("COMMIT").unwrap();
        assert!(log.make_sound(&connection).unwrap());
        assert_eq!(size(), 0);
    }

    #[test]
    fn a_log_that_cannot_be_synced_is_doubtful() {
        let folder = tempfile::tempdir().unwrap();
        let log = Arc::new(Log::open(folder.path()).unwrap());
        let mark = Mark { log: log.clone(), position: 1, chain: Hash::of(b""), synced: false };
        assert!(matches!(mark.sync(), Err(Error::Io { doing: "sync", .. })));
        assert!(log.doubtful.load(Ordering::Acquire));
        std::fs::write(folder.path().join(open::LOG), "").unwrap();
        assert!(mark.sync().is_err(), "what is there now follows something that may be lost");
    }

    #[test]
    fn one_copies_a_long_log_while_others_write_and_a_leader_copies_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = Connection::open(folder.path().join(open::DATABASE)).unwrap();
        let reader = Connection::open(folder.path().join(open::DATABASE)).unwrap();
        let log = Arc::new(Log::open(folder.path()).unwrap());
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n)").unwrap();
        log.watch(&mut connection).unwrap();
        let write = |pages: i32| {
            connection.execute("INSERT INTO t VALUES (zeroblob(?1))", [pages * 4096]).unwrap();
            log.length.load(Ordering::Relaxed)
        };
        let mark = || Mark { log: log.clone(), position: 0, chain: Hash::of(b""), synced: false };

        assert!(write(1) < 10 && mark().turn_to_copy().is_none());
        assert!(write(LONG) > LONG);
        let turn = mark().turn_to_copy().unwrap();
        assert!(mark().turn_to_copy().is_none(), "two copy");
        log.copy_rest(&connection);
        assert!(write(5) > LONG, "the rest is copied after the turn, not meanwhile");
        drop(turn);
        log.copy_rest(&connection);
        assert!(write(5) < 20);

        write(LONG);
        mark().turn_to_copy().unwrap().copy(&reader).unwrap();
        assert!(write(5) < 20);
    }
}
