//! Reading everything again.
//!
//! First the journal is read in order, without bodies: places, the chain, the end. Then all cores read bodies and
//! compute seals, and after that payloads. All of them see the store as it was at one moment, so that writers need
//! not stop. Every damage is reported and nothing stops the rest from being read.

mod bodies;
mod moment;
mod outline;
mod payloads;
mod tables;

use rusqlite::Connection;

use super::super::{Audited, Damage, Error};
use super::head::remembered;
use super::{SqliteStore, column, db};
use bodies::Bodies;
use moment::Moment;
use outline::Outline;

impl SqliteStore {
    pub(super) fn audit_all(&self, report: &mut dyn FnMut(Damage)) -> Result<Audited, Error> {
        let mut found = Vec::new();
        // Read before the journal is: it never tells of more than was committed.
        let remembered = remembered(&self.folder);
        let moment = Moment::take(self)?;
        let outline = Outline::read(moment.connection(), &mut found)?;
        outline.check_end(remembered, &mut found);
        let mut bodies = Bodies::read(&moment, &outline)?;
        found.append(&mut bodies.damage);
        outline.check_stubs(&bodies.pruned, &mut found);
        payloads::check(&moment, &mut bodies, &mut found)?;
        tables::check(moment.connection(), &outline, &bodies, &mut found);
        moment.give_back(self);
        found.into_iter().for_each(report);
        Ok(bodies.audited)
    }
}

/// Has SQLite look at its own file.
fn check_database(connection: &Connection) -> Vec<Damage> {
    let lines = connection.prepare("PRAGMA quick_check(20)").and_then(|mut statement| {
        let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
        rows.collect::<Result<Vec<_>, _>>()
    });
    let damage =
        |line: String| Damage::general(format!("the database file is damaged: {}", line.replace('\n', " ")));
    match lines {
        Ok(lines) => lines.into_iter().filter(|line| line != "ok").map(damage).collect(),
        Err(error) => vec![damage(error.to_string())],
    }
}

/// Reads rows to their end, whatever is wrong with some of them; what cannot be read is reported as `what`.
fn each_row<T>(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    what: &str,
    found: &mut Vec<Damage>,
    read: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    mut each: impl FnMut(T, &mut Vec<Damage>),
) {
    let broken = |error: rusqlite::Error| Damage::general(format!("{what} cannot be read: {error}"));
    let mut statement = match connection.prepare_cached(sql) {
        Ok(statement) => statement,
        Err(error) => return found.push(broken(error)),
    };
    let mut rows = match statement.query(values) {
        Ok(rows) => rows,
        Err(error) => return found.push(broken(error)),
    };
    loop {
        match rows.next() {
            Ok(None) => return,
            Err(error) => return found.push(broken(error)),
            Ok(Some(row)) => match read(row) {
                Ok(value) => each(value, found),
                Err(error) => found.push(broken(error)),
            },
        }
    }
}

/// The error for a thread that was lost.
fn lost<T>() -> Result<T, Error> {
    Err(Error::WriterLost)
}

fn begin(connection: &Connection) -> Result<i64, Error> {
    connection.execute_batch("BEGIN").map_err(db("read"))?;
    let last = column(connection, "SELECT coalesce(max(position), 0) FROM entries", [])?;
    Ok(last.first().copied().unwrap_or(0))
}
