//! Commits whose writes are gathered are what they would be without: to others at once, after a crash, and on a full disk.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use stagepost_vfs::{gathered, name};

fn open(path: &Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = Connection::open_with_flags_and_vfs(path, flags, name().unwrap()).unwrap();
    connection.pragma_update(None, "page_size", 1024).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    // A sync would write what is gathered, whatever else does.
    connection.pragma_update(None, "synchronous", "NORMAL").unwrap();
    connection
        .execute_batch("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")
        .unwrap();
    connection
}

/// Adds rows in one transaction; each is a little more than a page.
fn add(connection: &Connection, rows: i64) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    for row in 0..rows {
        let body = vec![u8::try_from(row % 251).unwrap(); 1000];
        connection.prepare_cached("INSERT INTO rows (body) VALUES (?1)")?.execute([body])?;
    }
    gathered(|| connection.execute_batch("COMMIT"))
}

/// Reads what plain SQLite finds.
fn count(connection: &Connection) -> i64 {
    let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    connection.query_row("SELECT count(*) FROM rows WHERE length(body) = 1000", [], |row| row.get(0)).unwrap()
}

/// The files as a crash would leave them: copied, without the index of the log that is only memory.
fn after_a_crash(path: &Path) -> i64 {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    std::fs::copy(path, &copy).unwrap();
    std::fs::copy(path.with_extension("db-wal"), copy.with_extension("db-wal")).unwrap();
    count(&Connection::open(&copy).unwrap())
}

/// How often the process has asked the system to write.
fn writes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("syscw: ")).unwrap().parse().unwrap()
}

#[test]
fn each_commit_is_seen_by_others_at_once_and_is_there_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.db");
    let (writer, reader) = (open(&path), Connection::open(&path).unwrap());
    let mut rows = 0;
    // Around the 128 KiB that SQLite takes at once there is a commit for each number of pages.
    for more in [1, 2, 3, 8, 50].into_iter().chain(55..70).chain(115..135).chain([300, 1000]) {
        add(&writer, more).unwrap();
        rows += more;
        assert_eq!(count(&reader), rows);
        assert_eq!(after_a_crash(&path), rows);
    }
}

#[test]
fn a_transaction_that_did_not_fit_into_memory_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.db");
    let (writer, reader) = (open(&path), Connection::open(&path).unwrap());
    // Pages that were written before the commit are written again, in their places.
    writer.pragma_update(None, "cache_size", 10).unwrap();
    let mut rows = 0;
    for more in [5, 200, 7, 400] {
        add(&writer, more).unwrap();
        rows += more;
        writer
            .execute_batch("BEGIN IMMEDIATE; UPDATE rows SET body = randomblob(1000) WHERE id % 3 = 0")
            .unwrap();
        writer.execute_batch("UPDATE rows SET body = zeroblob(1000) WHERE id % 2 = 0").unwrap();
        gathered(|| writer.execute_batch("COMMIT")).unwrap();
        assert_eq!(count(&reader), rows);
        assert_eq!(after_a_crash(&path), rows);
    }
}

#[test]
fn what_is_taken_back_or_started_over_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.db");
    let (writer, other) = (open(&path), open(&path));
    let mut rows = 0;
    for round in 1..20 {
        writer.pragma_update(None, "cache_size", if round % 2 == 0 { 10 } else { 2000 }).unwrap();
        writer
            .execute_batch(
                "BEGIN IMMEDIATE; DELETE FROM rows; INSERT INTO rows (body) VALUES (zeroblob(900000))",
            )
            .unwrap();
        gathered(|| writer.execute_batch("ROLLBACK")).unwrap();
        add(&other, round).unwrap();
        add(&writer, round).unwrap();
        rows += 2 * round;
        if round % 5 == 0 {
            let copy = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
            assert_eq!(gathered(|| writer.query_row("PRAGMA wal_checkpoint(RESTART)", [], copy)).unwrap(), 0);
        }
        assert_eq!(count(&other), rows);
        assert_eq!(after_a_crash(&path), rows);
    }
}

#[test]
fn a_commit_is_one_write_to_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let writer = open(&folder.path().join("test.db"));
    add(&writer, 20).unwrap();
    let before = writes();
    add(&writer, 20).unwrap();
    let gathered = writes() - before;
    // The one that counts reads a file, so other tests in this process may add a few.
    assert!(gathered <= 4, "{gathered} writes");
}
