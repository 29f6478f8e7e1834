//! What lies below everything: one bare SQLite commit.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

/// A table of rows, durable when an insert returns.
pub(crate) fn open(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(20)).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, body BLOB NOT NULL)",
        )
        .unwrap();
    connection
}

/// One row, one commit.
pub(crate) fn commit(connection: &Connection, body: &[u8]) {
    connection.prepare_cached("INSERT INTO rows (body) VALUES (?1)").unwrap().execute([body]).unwrap();
}

/// Several rows, one commit.
pub(crate) fn commit_all(connection: &mut Connection, bodies: &[Vec<u8>]) {
    let transaction = connection.transaction().unwrap();
    for body in bodies {
        transaction.prepare_cached("INSERT INTO rows (body) VALUES (?1)").unwrap().execute([body]).unwrap();
    }
    transaction.commit().unwrap();
}
