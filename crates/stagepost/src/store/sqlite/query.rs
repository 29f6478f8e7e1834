//! Looking things up: in the tables that follow in bulk, and then among the entries that they do not have yet.
//!
//! Those tables are believed for finding and never for what is found: an entry that is not what was looked for is
//! damage.

use std::collections::HashMap;

use rusqlite::types::Value;
use rusqlite::{Connection, params};

use super::super::{Error, EventQuery, Found, Listed, Query, Survey};
use super::row::{Entry, GOOD_TAG, Journal, event_tag, id_from};
use super::{column, db};
use crate::model::{Checkpoint, CheckpointId, Event, RunId, Timestamp, Topic};

const BY_POSITION: &str = "SELECT position FROM entries WHERE class = 2 AND position < ?1 AND body IS NOT NULL \
     AND at >= ?3 ORDER BY position DESC LIMIT ?2";
const BY_RUN: &str = "SELECT position FROM (SELECT position FROM entries WHERE position > (SELECT entries FROM state) \
     AND run = ?3 AND seq > 0 AND position < ?1 AND body IS NOT NULL AND at >= ?4 UNION ALL \
     SELECT * FROM (SELECT b.position FROM by_run b JOIN entries e ON e.position = b.position WHERE b.run = ?3 \
     AND b.position < ?1 AND e.body IS NOT NULL AND e.at >= ?4 ORDER BY b.seq DESC LIMIT ?2)) ORDER BY position DESC LIMIT ?2";
/// `?5` is a second tag that must be there too.
const BY_TAG: &str = "SELECT position FROM (SELECT position FROM entries WHERE position > \
     (SELECT entries FROM state) AND class = 2 AND instr(char(10) || tags || char(10), char(10) || ?3 || char(10)) > 0 \
     AND position < ?1 AND body IS NOT NULL AND at >= ?6 AND (?4 IS NULL OR run = ?4) \
     AND (?5 IS NULL OR instr(char(10) || tags || char(10), char(10) || ?5 || char(10)) > 0) UNION ALL \
     SELECT * FROM (SELECT b.position FROM by_tag b JOIN entries e ON e.position = b.position \
     WHERE b.tag = ?3 AND b.position < ?1 AND e.body IS NOT NULL AND e.at >= ?6 AND (?4 IS NULL OR e.run = ?4) \
     AND (?5 IS NULL OR instr(char(10) || e.tags || char(10), char(10) || ?5 || char(10)) > 0) \
     ORDER BY b.position DESC LIMIT ?2)) ORDER BY position DESC LIMIT ?2";
const EVENTS_OF_KEY: &str = "SELECT position FROM (SELECT position FROM entries WHERE position > \
     (SELECT entries FROM state) AND class = 3 AND tags = ?1 UNION ALL \
     SELECT * FROM (SELECT position FROM by_tag WHERE tag = ?1 ORDER BY position DESC LIMIT ?2)) \
     ORDER BY position DESC LIMIT ?2";
const EVENTS_OF_TOPIC: &str = "SELECT position FROM (SELECT position FROM entries WHERE position > \
     (SELECT entries FROM state) AND class = 3 AND tags >= ?1 AND tags < ?3 UNION ALL \
     SELECT position FROM by_tag WHERE tag >= ?1 AND tag < ?3) ORDER BY position DESC LIMIT ?2";
const MATCHING: &str = "SELECT id FROM by_id WHERE id BETWEEN ?1 AND ?2 UNION SELECT id FROM entries \
     WHERE position > (SELECT entries FROM state) AND id BETWEEN ?1 AND ?2 LIMIT ?3";

/// Lists checkpoints, newest first; one that is damaged is an error.
pub(super) fn list(connection: &Connection, query: &Query) -> Result<Vec<Listed>, Error> {
    let found = survey(connection, query)?;
    match found.damaged.into_iter().next() {
        Some((_, what)) => Err(Error::Damaged { what }),
        None => Ok(found.sound),
    }
}

/// Lists checkpoints, newest first, and goes past what is damaged.
pub(super) fn survey(connection: &Connection, query: &Query) -> Result<Survey, Error> {
    let journal = Journal(connection);
    let run = match &query.run {
        Some(run) => match journal.run_number(run)? {
            Some((number, _)) => Some(number),
            None => return Ok(Survey::default()),
        },
        None => None,
    };
    let mut found = Survey::default();
    let places = positions(connection, query, run)?;
    let mut names = HashMap::new();
    let mut ahead: Option<Option<Entry>> = None;
    for (index, place) in places.iter().enumerate() {
        let position = place.unsigned_abs();
        let entry = ahead.take().map_or_else(|| journal.entry(*place), Ok)?;
        // Most often the next in the list is what this one was sealed after, so it need not be looked for.
        let older = places.get(index + 1).map(|next| journal.entry(*next)).transpose()?;
        match listed(&journal, (*place, entry), older.as_ref().and_then(Option::as_ref), &mut names, query) {
            Ok(Some(checkpoint)) => found.sound.push(Listed { position, checkpoint }),
            Ok(None) => {}
            Err(Error::Damaged { what }) => found.damaged.push((position, what)),
            Err(error @ Error::Malformed { .. }) => found.damaged.push((position, error.to_string())),
            Err(error) => return Err(error),
        }
        found.last = Some(position);
        ahead = older;
    }
    Ok(found)
}

/// Reads a checkpoint that was found; none if it is pruned.
fn listed(
    journal: &Journal<'_>,
    (position, entry): (i64, Option<Entry>),
    older: Option<&Entry>,
    names: &mut HashMap<i64, RunId>,
    query: &Query,
) -> Result<Option<Checkpoint>, Error> {
    let gone = || Error::Damaged { what: format!("entry {position} is gone") };
    let entry = entry.ok_or_else(gone)?;
    let run = match names.get(&entry.run) {
        Some(name) => name.clone(),
        None => names.entry(entry.run).or_insert(journal.run_name(entry.run)?).clone(),
    };
    let Found::Live(checkpoint) = journal.to_found_after(&entry, run, older)? else { return Ok(None) };
    if !answers(&checkpoint, query) {
        return Err(entry.damaged("it is found under a name that it does not have"));
    }
    Ok(Some(*checkpoint))
}

/// Says whether a checkpoint is one that was asked for.
fn answers(checkpoint: &Checkpoint, query: &Query) -> bool {
    let labels = &checkpoint.content.labels;
    query.run.as_ref().is_none_or(|run| checkpoint.run == *run)
        && query.label.as_ref().is_none_or(|wanted| labels.iter().any(|label| label.answers_to(wanted)))
        && (!query.good || checkpoint.is_good())
        && query.since.is_none_or(|since| checkpoint.created_at >= since)
}

fn positions(connection: &Connection, query: &Query, run: Option<i64>) -> Result<Vec<i64>, Error> {
    let before = query.before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    let limit = query.limit.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(-1);
    // Times stand beside the records, so that those that are too old are passed over unread.
    let since = query.since.map_or(i64::MIN, Timestamp::as_micros);
    let good = query.good.then(|| GOOD_TAG.to_owned());
    let label = query.label.as_ref().map(|label| format!("={label}"));
    let (tag, also) = if label.is_some() { (label, good) } else { (good, None) };
    let (sql, values): (&str, Vec<Value>) = match (tag, run) {
        (Some(tag), run) => {
            (BY_TAG, vec![before.into(), limit.into(), tag.into(), run.into(), also.into(), since.into()])
        }
        (None, Some(run)) => (BY_RUN, vec![before.into(), limit.into(), run.into(), since.into()]),
        (None, None) => (BY_POSITION, vec![before.into(), limit.into(), since.into()]),
    };
    column(connection, sql, rusqlite::params_from_iter(values))
}

/// Lists the positions of the newest events of a topic and key, newest first.
pub(super) fn newest_of_key(
    connection: &Connection,
    topic: Topic,
    key: &str,
    limit: i64,
) -> Result<Vec<i64>, Error> {
    column(connection, EVENTS_OF_KEY, params![event_tag(topic, key), limit])
}

/// Lists events, oldest first.
pub(super) fn events(connection: &Connection, query: &EventQuery) -> Result<Vec<(u64, Event)>, Error> {
    let limit = query.last.and_then(|last| i64::try_from(last).ok()).unwrap_or(-1);
    let topic = query.topic.as_str();
    let positions = match &query.key {
        Some(key) => newest_of_key(connection, query.topic, key, limit)?,
        None => {
            let (low, high) = (format!("{topic}\t"), format!("{topic}\n"));
            column(connection, EVENTS_OF_TOPIC, params![low, limit, high])?
        }
    };
    let mut events = Vec::with_capacity(positions.len());
    for position in positions.into_iter().rev() {
        let gone = || Error::Damaged { what: format!("entry {position} is gone") };
        let entry = Journal(connection).entry(position)?.ok_or_else(gone)?;
        let event = entry.to_event()?;
        if event.topic != query.topic || query.key.as_ref().is_some_and(|key| event.key != *key) {
            return Err(entry.damaged("it is found under a name that it does not have"));
        }
        events.push((position.unsigned_abs(), event));
    }
    Ok(events)
}

/// Lists ids by how they begin, in their order.
pub(super) fn matching(
    connection: &Connection,
    prefix: &str,
    limit: usize,
) -> Result<Vec<CheckpointId>, Error> {
    let Some((low, high)) = id_range(prefix) else { return Ok(Vec::new()) };
    let mut statement = connection.prepare_cached(MATCHING).map_err(db("look up a checkpoint"))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![low, high, limit], |row| row.get(0).map(id_from));
    rows.and_then(Iterator::collect).map_err(db("look up a checkpoint"))
}

/// The lowest and highest id with a prefix of the printed form; `None` if no id can have it.
fn id_range(prefix: &str) -> Option<([u8; 16], [u8; 16])> {
    const FORM: &str = "00000000-0000-0000-0000-000000000000";
    if prefix.len() > FORM.len() || !prefix.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f' | b'-')) {
        return None;
    }
    let fill = |digit: char| -> Option<[u8; 16]> {
        let filled = FORM.chars().enumerate().map(|(at, form)| match (prefix.as_bytes().get(at), form) {
            (Some(given), _) => char::from(*given),
            (None, '-') => '-',
            (None, _) => digit,
        });
        filled.collect::<String>().parse::<CheckpointId>().ok().map(|id| *id.as_uuid().as_bytes())
    };
    Some((fill('0')?, fill('f')?))
}
