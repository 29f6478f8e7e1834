//! The tables, and how an older store becomes a newer one. `docs/storage-format.md` describes every column.

use rusqlite::Connection;

/// The format this program writes, kept in `user_version`.
pub(super) const FORMAT: i64 = MIGRATIONS.len() as i64;

/// Marks the file as ours, kept in `application_id` ("SPst").
pub(super) const APPLICATION: i64 = 0x5350_7374;

/// Each step takes a store from one format to the next. Steps are appended, never changed.
const MIGRATIONS: &[&str] = &[FORMAT_1];

/// The journal and the pieces are written at once; the tables `by_*` follow in bulk (`state` says how far they
/// are), so that a checkpoint changes one page of each table it touches and no index.
const FORMAT_1: &str = "
CREATE TABLE entries (
    position INTEGER PRIMARY KEY,
    class    INTEGER NOT NULL,
    run      INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    id       BLOB,
    parent   BLOB,
    at       INTEGER NOT NULL,
    tags     TEXT,
    body     BLOB,
    seal     BLOB NOT NULL
) STRICT;
CREATE TABLE runs (
    number   INTEGER PRIMARY KEY,
    name     TEXT NOT NULL UNIQUE,
    position INTEGER NOT NULL
) STRICT;
CREATE TABLE pieces (
    number INTEGER PRIMARY KEY,
    hash   BLOB NOT NULL,
    size   INTEGER NOT NULL,
    data   BLOB NOT NULL
) STRICT;
CREATE TABLE blobs (
    number INTEGER PRIMARY KEY,
    hash   BLOB NOT NULL,
    size   INTEGER NOT NULL,
    base   INTEGER,
    depth  INTEGER NOT NULL,
    list   BLOB NOT NULL
) STRICT;
CREATE TABLE by_id (
    id BLOB PRIMARY KEY, position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE by_run (
    run INTEGER NOT NULL, seq INTEGER NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE by_tag (
    tag TEXT NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (tag, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE by_piece (
    hash INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (hash, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE by_blob (
    hash INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (hash, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    entries INTEGER NOT NULL, pieces INTEGER NOT NULL, blobs INTEGER NOT NULL, chain BLOB NOT NULL
) STRICT;
";

/// Brings a store from format `from` to the newest, inside the caller's transaction.
pub(super) fn migrate(connection: &Connection, from: i64) -> rusqlite::Result<()> {
    let done = usize::try_from(from).unwrap_or(0);
    for step in &MIGRATIONS[done.min(MIGRATIONS.len())..] {
        connection.execute_batch(step)?;
    }
    if done == 0 {
        let start = crate::model::chain_start();
        connection.execute("INSERT INTO state VALUES (1, 0, 0, 0, ?1)", [start.as_bytes()])?;
        connection.pragma_update(None, "application_id", APPLICATION)?;
    }
    connection.pragma_update(None, "user_version", FORMAT)
}
