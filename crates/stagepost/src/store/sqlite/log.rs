//! Making what was committed durable: one sync of SQLite's log for all who wait for it.
//!
//! Where several write, they commit without a sync, so that the next transaction can go on while the log is synced here.
//! Nobody is told that something was written before the log is on the disk up to it. Others may see it a moment sooner;
//! what they write comes after it in the log, so it cannot be durable without it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rusqlite::Connection;

use super::super::Error;
use super::head::HeadFile;
use super::{db, lock, open};
use crate::model::Hash;

/// The log of a store, as a writer sees it.
pub(super) struct Log {
    path: PathBuf,
    /// Opened at the first sync: SQLite makes the file, and keeps it while the writer's connection is open.
    file: Mutex<Option<File>>,
    pub(super) head: HeadFile,
    /// A sync failed. The system may have given up on what it could not write, so that later syncs mean nothing for it.
    doubtful: AtomicBool,
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
        })
    }

    fn sync(&self) -> Result<(), Error> {
        let failed = || open::failed("sync", &self.path);
        if self.doubtful.load(Ordering::Acquire) {
            return Err(failed()(io::Error::other("what was written before could not be synced")));
        }
        let mut file = lock(&self.file);
        let file = match &mut *file {
            Some(file) => file,
            none => none.insert(open::existing_file(&self.path).map_err(failed())?),
        };
        file.sync_data().map_err(failed())
    }

    /// After a failed sync, has everything in the log copied to the database and synced there. Says whether that could
    /// be done; not while another process is in the way.
    pub(super) fn make_sound(&self, connection: &Connection) -> Result<bool, Error> {
        if self.doubtful.load(Ordering::Acquire) {
            let copied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
            let in_the_way: bool = copied.map_err(db("mend the log"))?;
            self.doubtful.store(in_the_way, Ordering::Release);
        }
        Ok(!self.doubtful.load(Ordering::Acquire))
    }
}

impl Mark {
    /// Makes everything up to here durable, and notes how long the journal is.
    pub(super) fn sync(&self) -> Result<(), Error> {
        let synced = if self.synced { Ok(()) } else { self.log.sync() };
        match &synced {
            Ok(()) => self.log.head.write(self.position, &self.chain),
            Err(_) => self.log.doubtful.store(true, Ordering::Release),
        }
        synced
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
}
