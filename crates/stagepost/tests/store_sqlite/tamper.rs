//! Someone changes the database behind our back, and an audit finds it.

use rusqlite::types::Value;
use stagepost::store::{SqliteStore, Store};
use stagepost_testutil::{Story, conversation};

use crate::{Place, some_of_everything};

fn damage(place: &Place) -> Vec<String> {
    let store = place.open();
    Story::new(&store).damage()
}

/// Carries out SQL on a copy and returns what an audit says.
fn after(whole: &Place, sql: &str) -> Vec<String> {
    let place = Place::copy_of(whole);
    place.raw().execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    damage(&place)
}

#[test]
fn a_store_that_all_cores_read_has_every_damage_named() {
    let place = Place::new();
    let saved = {
        let store = place.open();
        let story = Story::new(&store);
        let run = story.run("a");
        // Enough for a second core: small payloads in a row, and large ones that are cut.
        let payload =
            |n: usize| if n.is_multiple_of(40) { conversation(40 + n, true) } else { conversation(2, true) };
        let save = |n: usize| story.save_state(&run, [payload(n), n.to_string().into_bytes()].concat(), None);
        (0..1_000).map(save).collect::<Vec<_>>()
    };
    assert!(std::fs::metadata(place.database()).unwrap().len() > 2 << 20);
    assert_eq!(damage(&place), Vec::<String>::new());
    place.raw().execute_batch("UPDATE pieces SET data = zeroblob(length(data))").unwrap();
    let store = place.open();
    let mut named = std::collections::HashSet::new();
    store.audit(&mut |damage| named.extend(damage.checkpoint)).unwrap();
    let unnamed: Vec<_> = saved.iter().filter(|one| !named.contains(&one.id)).collect();
    assert!(unnamed.is_empty(), "{} of {} are not named", unnamed.len(), saved.len());
    place.raw().execute_batch("UPDATE entries SET at = at + 1 WHERE class = 2").unwrap();
    let mut broken = std::collections::HashSet::new();
    place.open().audit(&mut |damage| broken.extend(damage.checkpoint)).unwrap();
    assert_eq!(broken.len(), saved.len());
}

#[test]
fn every_column_of_every_table() {
    let whole = Place::new();
    some_of_everything(&whole);
    let raw = whole.raw();
    let names = |sql: &str| -> Vec<String> {
        let mut statement = raw.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let mut tried = 0;
    for table in names("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'") {
        let columns = names(&format!("SELECT name FROM pragma_table_info('{table}')"));
        for column in &columns {
            for row in sample(&raw, &table) {
                let place = Place::copy_of(&whole);
                // A new piece that is a payload is found by its hash alone; its number means nothing yet.
                if table == "pieces" && column == "number" && row > 40 {
                    continue;
                }
                let Some(changed) = change(&place, &table, &columns, column, row) else { continue };
                let found = damage(&place);
                assert!(!found.is_empty(), "{table}.{column} of row {row} was changed: {changed}");
                tried += 1;
            }
        }
    }
    assert!(tried > 150, "{tried}");
}

/// Some rows of a table: the first ones, the last ones and some between.
fn sample(raw: &rusqlite::Connection, table: &str) -> Vec<i64> {
    let count: i64 = raw.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
    let mut rows: Vec<i64> = [0, 1, 2, 3, count / 3, count / 2, count - 19, count - 2, count - 1].to_vec();
    rows.retain(|row| (0..count).contains(row));
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Changes one column of the nth row; `None` if the table does not allow it.
fn change(place: &Place, table: &str, columns: &[String], column: &str, row: i64) -> Option<String> {
    let raw = place.raw();
    let all = columns.join(", ");
    let values: Vec<Value> = raw
        .query_row(&format!("SELECT {all} FROM {table} ORDER BY {all} LIMIT 1 OFFSET {row}"), [], |row| {
            (0..columns.len()).map(|index| row.get(index)).collect()
        })
        .unwrap();
    let index = columns.iter().position(|name| name == column).unwrap();
    let changed = match &values[index] {
        // A higher number there only means that numbers are left out.
        Value::Integer(number) if table == "state" => Value::Integer(number - 1),
        Value::Integer(number) => Value::Integer(number + 1),
        Value::Text(text) => Value::Text(format!("{text}x")),
        Value::Blob(bytes) => {
            let mut bytes = bytes.clone();
            let middle = bytes.len() / 2;
            *bytes.get_mut(middle)? ^= 1;
            Value::Blob(bytes)
        }
        Value::Null if column == "tags" => Value::Text("=x".to_owned()),
        Value::Null if column == "base" => Value::Integer(1),
        Value::Null if column == "body" => Value::Blob(b"{\"kind\":{\"type\":\"manual\"}}".to_vec()),
        Value::Null => Value::Blob(vec![7; 16]),
        Value::Real(_) => return None,
    };
    let conditions: Vec<_> =
        columns.iter().enumerate().map(|(n, name)| format!("{name} IS ?{}", n + 2)).collect();
    let sql = format!("UPDATE {table} SET {column} = ?1 WHERE {}", conditions.join(" AND "));
    let told = format!("{:?} to {changed:?}", values[index]);
    let parameters = rusqlite::params_from_iter(std::iter::once(changed).chain(values));
    match raw.execute(&sql, parameters) {
        Ok(1) => Some(told),
        Ok(other) => panic!("{other} rows of {table}"),
        Err(_) => None,
    }
}

#[test]
fn deleted_rows() {
    let whole = Place::new();
    some_of_everything(&whole);
    for (sql, expected) in [
        ("DELETE FROM entries WHERE position = 50", "entry 50 is missing"),
        ("DELETE FROM entries WHERE position BETWEEN 60 AND 64", "entries 60 to 64 are missing"),
        ("DELETE FROM entries WHERE position = (SELECT max(position) FROM entries)", "but entry"),
        ("DELETE FROM entries WHERE position = 1", "entry 1 is missing"),
        ("DELETE FROM entries WHERE run = 1", "missing from the journal"),
        ("DELETE FROM entries WHERE run = 2; DELETE FROM runs WHERE number = 2;", "missing from the journal"),
        ("DELETE FROM entries", "the journal ends at entry 0"),
        ("DELETE FROM runs WHERE number = 1", "its run is gone"),
        ("DELETE FROM state", "the state of the store cannot be read"),
        ("DELETE FROM pieces WHERE number = 3", "run b, checkpoint"),
        ("DELETE FROM pieces WHERE number = (SELECT max(number) FROM pieces)", "artifact state, payload"),
        ("DELETE FROM blobs WHERE number = 2", "run b, checkpoint"),
        ("DELETE FROM by_id WHERE position = 6", "`by_id`"),
        ("DELETE FROM by_run WHERE position = 6", "`by_run`"),
        ("DELETE FROM by_tag WHERE position IN (SELECT min(position) FROM by_tag)", "`by_tag`"),
        ("DELETE FROM by_piece WHERE number = 3", "`by_piece`"),
        ("DELETE FROM by_blob WHERE number = 1", "`by_blob`"),
    ] {
        let found = after(&whole, sql);
        assert!(found.iter().any(|line| line.contains(expected)), "{sql}: {found:#?}");
    }
}

#[test]
fn swapped_and_blanked_ones() {
    let whole = Place::new();
    let saved = some_of_everything(&whole);
    let swap = |column: &str, a: i64, b: i64| {
        format!(
            "UPDATE entries SET {column} = o.value FROM (SELECT position AS place, {column} AS value FROM entries \
             WHERE position IN ({a}, {b})) o WHERE position IN ({a}, {b}) AND o.place = {a} + {b} - position"
        )
    };
    let places = |a: i64, b: i64| {
        format!(
            "UPDATE entries SET position = -1 WHERE position = {a}; UPDATE entries SET position = {a} WHERE position = {b}; \
             UPDATE entries SET position = {b} WHERE position = -1"
        )
    };
    let last = 2 + 40 * 3 + 2 + 16;
    for (sql, expected) in [
        (swap("body", 3, 6), "does not fit its seal"),
        (swap("body", last - 1, last - 3), "does not fit its seal"),
        (swap("seal", 3, 6), "does not fit its seal"),
        (swap("id", 3, 6), "does not fit its seal"),
        (swap("at", 3, 6), "does not fit its seal"),
        (swap("seq", 3, 6), "does not fit its seal"),
        (swap("run", 3, 4), "does not fit its seal"),
        (places(5, 8), "is broken"),
        (places(3, 6), "checkpoint 1 of its run is missing"),
        (places(last, last - 2), "is not the one that was written"),
        ("UPDATE entries SET body = NULL WHERE position = 6".to_owned(), "it was never pruned"),
        (
            "UPDATE entries SET body = NULL, tags = NULL, at = 0 WHERE position = 6".to_owned(),
            "it was never pruned",
        ),
        ("UPDATE entries SET body = x'' WHERE position = 6".to_owned(), "its body cannot be read"),
        ("UPDATE entries SET body = x'28b52ffd00' WHERE position = 5".to_owned(), "its body cannot be read"),
        (
            "UPDATE entries SET at = 9223372036854775807 WHERE position = 6".to_owned(),
            "its time is impossible",
        ),
        ("UPDATE entries SET seq = -4 WHERE position = 6".to_owned(), "its number is impossible"),
        ("UPDATE entries SET id = x'00' WHERE position = 6".to_owned(), "cannot be read"),
        ("UPDATE by_id SET position = 6 WHERE position = 9".to_owned(), "`by_id`"),
        ("UPDATE by_run SET position = 6 WHERE position = 9".to_owned(), "`by_run`"),
        ("UPDATE by_tag SET position = 6 WHERE position = 5".to_owned(), "`by_tag`"),
        ("UPDATE by_piece SET number = 900 WHERE number = 3".to_owned(), "`by_piece`"),
        ("UPDATE by_blob SET number = 2 WHERE number = 3".to_owned(), "`by_blob`"),
        ("UPDATE runs SET name = 'c' WHERE number = 1".to_owned(), "its name is not the one it was given"),
        ("UPDATE runs SET name = '../c' WHERE number = 1".to_owned(), "run number 1"),
        ("UPDATE blobs SET base = 3 WHERE number = 3".to_owned(), "the list of the pieces"),
        (
            "UPDATE blobs SET base = 9, list = x'ffffffff7f00' WHERE number = 5".to_owned(),
            "the list of the pieces",
        ),
        ("UPDATE pieces SET data = zeroblob(size) WHERE number = 4".to_owned(), "run b, checkpoint"),
        ("UPDATE pieces SET size = 900000000000 WHERE number = 4".to_owned(), "run b, checkpoint"),
    ] {
        let found = after(&whole, &sql);
        assert!(found.iter().any(|line| line.contains(expected)), "{sql}: {found:#?}");
        if sql.contains("UPDATE entries") && sql.ends_with("position = 6") {
            let name = format!("checkpoint {}", saved[2].id);
            assert!(found.iter().any(|line| line.contains(&name) || line.contains("an entry")), "{found:#?}");
        }
    }
}

#[test]
fn what_a_wrong_table_leads_to_is_not_believed() {
    let whole = Place::new();
    let saved = some_of_everything(&whole);
    let after = |sql: &str, read: &dyn Fn(&SqliteStore) -> bool| {
        let place = Place::copy_of(&whole);
        place.raw().execute_batch(sql).unwrap();
        assert!(read(&place.open()), "{sql}");
    };
    let (first, second) = (&saved[0], &saved[2]);
    after("UPDATE by_id SET position = 3 WHERE position = 6", &|store| store.checkpoint(&second.id).is_err());
    after("UPDATE by_run SET position = 3 WHERE position = 6", &|store| store.at(&first.run, 2).is_err());
    after("UPDATE by_tag SET position = 6 WHERE tag = '=at' AND position = 3", &|store| {
        let query = stagepost::store::Query { label: Some("at".parse().unwrap()), ..Default::default() };
        store.list(&query).is_err()
    });
    after(
        "UPDATE by_piece SET number = number + 1 WHERE number = 3; UPDATE by_blob SET number = number + 100",
        &|store| store.load(&saved[1].content.artifacts[0].blob).is_err(),
    );
    after("UPDATE state SET entries = entries + 500", &|store| {
        let story = Story::after(store, 5_000);
        story.write(vec![stagepost::store::NewEntry::Checkpoint(story.draft(&first.run, ""))]).is_err()
    });
}

#[test]
fn tables_are_made_again_from_the_journal() {
    let whole = Place::new();
    let saved = some_of_everything(&whole);
    for sql in [
        "DELETE FROM by_id; DELETE FROM by_run; DELETE FROM by_tag; DELETE FROM by_piece; DELETE FROM by_blob",
        "UPDATE by_id SET position = 6 WHERE position = 9; UPDATE by_tag SET tag = 'x' || tag",
        "DELETE FROM state",
        "UPDATE state SET entries = 9999999",
    ] {
        let place = Place::copy_of(&whole);
        place.raw().execute_batch(sql).unwrap();
        let store = place.open();
        let story = Story::after(&store, 5_000);
        assert!(!story.damage().is_empty(), "{sql}");
        store.rebuild().unwrap();
        assert_eq!(story.damage(), [""; 0], "{sql}");
        assert_eq!(story.save(&saved[0].run, "goes on").seq, 50);
        assert_eq!(story.damage(), [""; 0], "{sql}");
    }
}

#[test]
fn a_collection_stops_at_damage_and_keeps_everything() {
    let whole = Place::new();
    let saved = some_of_everything(&whole);
    let place = Place::copy_of(&whole);
    place.raw().execute_batch("UPDATE entries SET body = x'7b7d' WHERE position = 7").unwrap();
    let store = place.open();
    assert!(store.collect().unwrap_err().is_damage());
    for one in saved.iter().flat_map(|one| &one.content.artifacts) {
        store.load(&one.blob).unwrap();
    }
}

#[test]
fn saving_the_same_bytes_again_mends_damaged_pieces() {
    let place = Place::new();
    let payloads = [b"a small payload".to_vec(), conversation(40, true)];
    let save = |store: &SqliteStore, ids: u64| {
        let story = Story::after(store, ids);
        let run = story.run("r");
        payloads.clone().map(|bytes| story.save_state(&run, bytes, None))
    };
    let first = save(&place.open(), 0);
    for sql in ["UPDATE pieces SET data = zeroblob(length(data))", "UPDATE blobs SET list = x'0000'"] {
        place.raw().execute_batch(sql).unwrap();
        let _ = std::fs::remove_dir_all(place.folder().join("copies"));
        let store = place.open();
        assert!(first.iter().any(|one| store.load(&one.content.artifacts[0].blob).is_err()), "{sql}");
        save(&store, sql.len() as u64 * 100);
        let _ = std::fs::remove_dir_all(place.folder().join("copies"));
        let fresh = place.open();
        for (one, bytes) in first.iter().zip(&payloads) {
            assert_eq!(fresh.load(&one.content.artifacts[0].blob).unwrap(), *bytes, "{sql}");
        }
        assert_eq!(Story::after(&fresh, 9_000).damage(), [""; 0], "{sql}");
    }
}
