//! The tables `by_*` hold nothing that cannot be made again, but a wrong row would find the wrong thing.

use std::collections::HashSet;

use rusqlite::Connection;

use super::super::super::Damage;
use super::super::follow::short;
use super::super::row::{Class, id_from};
use super::bodies::Bodies;
use super::outline::{Outline, Place};
use crate::model::{CheckpointId, Hash};

pub(super) fn check(
    connection: impl std::ops::Deref<Target = Connection>,
    outline: &Outline,
    bodies: &Bodies,
    found: &mut Vec<Damage>,
) {
    let connection = &*connection;
    let Some(indexed) = outline.indexed else { return };
    let mut check = |table: &str, sound: rusqlite::Result<bool>| {
        let what = match sound {
            Ok(true) => return,
            Ok(false) => format!("the lookup table `{table}` does not fit the journal"),
            Err(error) => format!("the lookup table `{table}` cannot be read: {error}"),
        };
        found.push(Damage { derived: true, ..Damage::general(what) });
    };
    let followed = || {
        let is_followed =
            |place: &&Place| place.class == Class::Checkpoint as i64 && place.position <= indexed.entries;
        outline.places.iter().filter(is_followed)
    };
    check(
        "by_id",
        ids(connection, followed().filter_map(|place| Some((place.id?, place.position))).collect()),
    );
    check(
        "by_run",
        runs(connection, followed().map(|place| (place.run, place.seq, place.position)).collect()),
    );
    check("by_tag", tags(connection, bodies, indexed.entries));
    check("by_piece", hashes(connection, "by_piece", "pieces", indexed.pieces));
    check("by_blob", hashes(connection, "by_blob", "blobs", indexed.blobs));
}

fn ids(connection: &Connection, expected: HashSet<(CheckpointId, i64)>) -> rusqlite::Result<bool> {
    same(connection, "SELECT id, position FROM by_id", expected.len(), |row| {
        Ok(expected.contains(&(id_from(row.get(0)?), row.get(1)?)))
    })
}

fn runs(connection: &Connection, expected: HashSet<(i64, i64, i64)>) -> rusqlite::Result<bool> {
    same(connection, "SELECT run, seq, position FROM by_run", expected.len(), |row| {
        Ok(expected.contains(&(row.get(0)?, row.get(1)?, row.get(2)?)))
    })
}

fn tags(connection: &Connection, bodies: &Bodies, upto: i64) -> rusqlite::Result<bool> {
    let followed = bodies.tags.iter().filter(|(_, at)| *at <= upto);
    let expected: HashSet<(&str, i64)> = followed.map(|(tag, at)| (tag.as_str(), *at)).collect();
    same(connection, "SELECT tag, position FROM by_tag", expected.len(), |row| {
        let tag = row.get_ref(0)?.as_str()?;
        Ok(expected.contains(&(tag, row.get(1)?)))
    })
}

fn hashes(connection: &Connection, table: &str, rows: &str, upto: i64) -> rusqlite::Result<bool> {
    let mut statement =
        connection.prepare(&format!("SELECT hash, number FROM {rows} WHERE number <= {upto}"))?;
    let expected: HashSet<(i64, i64)> = statement
        .query_map([], |row| Ok((short(&Hash::from_bytes(row.get(0)?)), row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    same(connection, &format!("SELECT hash, number FROM {table}"), expected.len(), |row| {
        Ok(expected.contains(&(row.get(0)?, row.get(1)?)))
    })
}

/// Says whether a table has exactly so many rows and all of them are sound.
fn same(
    connection: &Connection,
    sql: &str,
    expected: usize,
    sound: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<bool>,
) -> rusqlite::Result<bool> {
    let (mut statement, mut count) = (connection.prepare(sql)?, 0);
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        count += 1;
        if !sound(row)? {
            return Ok(false);
        }
    }
    Ok(count == expected)
}
