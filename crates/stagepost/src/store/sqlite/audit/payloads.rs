//! Payloads, hashed again.
//!
//! A payload that is cut is read as a whole. After that, every piece that was not read on the way is checked by
//! itself: among them are all payloads of one piece, which are thus read in the order in which they lie.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use rusqlite::{Connection, params};

use super::super::super::blob::decode;
use super::super::super::{Damage, Error};
use super::super::collect::all_lists;
use super::super::column;
use super::super::known::read_state;
use super::super::reading::{LONGEST_PIECE, check_payload, is_whole, read_list};
use super::bodies::Bodies;
use super::each_row;
use super::moment::Moment;
use crate::model::{BlobRef, Hash};

/// So many pieces are read at a time by one thread.
const CHUNK: i64 = 256;

type Users = HashMap<BlobRef, Vec<Damage>>;

pub(super) fn check(moment: &Moment, bodies: &mut Bodies, found: &mut Vec<Damage>) -> Result<(), Error> {
    let mut users: Users = HashMap::new();
    for (blob, user) in bodies.payloads.drain(..) {
        users.entry(blob).or_default().push(user);
    }
    check_lists(&moment.connection(), found);
    let (whole, cut): (Vec<BlobRef>, Vec<BlobRef>) = users.keys().copied().partition(is_whole);
    let (covered, mut broken) = check_cut(moment, &cut)?;
    let pieces = check_pieces(moment, &covered, &whole.iter().map(|blob| blob.hash).collect())?;
    let is_sound = |blob: &BlobRef| pieces.sound.get(&blob.hash) == Some(&(blob.size as i64));
    let gone = |blob: &BlobRef| (*blob, format!("payload {} is gone or damaged", blob.hash));
    broken.extend(whole.iter().filter(|blob| !is_sound(blob)).map(gone));
    let hurt: HashSet<BlobRef> = broken.iter().map(|(blob, _)| *blob).collect();
    bodies.audited.blobs = users.len() as u64;
    bodies.audited.bytes = users.keys().filter(|blob| !hurt.contains(blob)).map(|blob| blob.size).sum();
    for (blob, what) in broken {
        let named = users.remove(&blob).unwrap_or_default();
        found.extend(named.into_iter().map(|user| Damage { what: what.clone(), ..user }));
    }
    found.extend(pieces.damage);
    Ok(())
}

/// Checks the rows of lists, also of those that nothing refers to: later ones are written as differences to them.
fn check_lists(connection: &Connection, found: &mut Vec<Damage>) {
    let lists = match all_lists(connection) {
        Ok(lists) => lists,
        Err(error) => {
            return found.push(Damage::general(format!("the lists of pieces cannot be read: {error}")));
        }
    };
    let sizes = match piece_sizes(connection) {
        Ok(sizes) => sizes,
        Err(error) => {
            return found.push(Damage::general(format!("the sizes of pieces cannot be read: {error}")));
        }
    };
    let mut depths = HashMap::new();
    for list in &lists {
        let depth = list.base.map_or(Some(0), |base| depths.get(&base).map(|depth| depth + 1));
        depths.insert(list.number, list.depth);
        let size = read_list(connection, list.number).ok().and_then(|list| {
            list.pieces.iter().try_fold(0i64, |sum, piece| sum.checked_add(*sizes.get(piece)?))
        });
        if depth != Some(list.depth) || size != Some(list.size) {
            let what = format!("the list of the pieces of payload {} is damaged", list.hash);
            found.push(Damage::general(what));
        }
    }
}

fn piece_sizes(connection: &Connection) -> Result<HashMap<i64, i64>, Error> {
    let read = super::super::db("read the sizes of pieces");
    let mut statement = connection.prepare_cached("SELECT number, size FROM pieces").map_err(&read)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.and_then(Iterator::collect).map_err(&read)
}

type Broken = Vec<(BlobRef, String)>;

/// Reads payloads that are cut; returns the pieces of sound ones, and the others.
fn check_cut(moment: &Moment, blobs: &[BlobRef]) -> Result<(HashSet<i64>, Broken), Error> {
    let next = AtomicUsize::new(0);
    let parts = moment.in_parallel(|_, connection| {
        let (mut covered, mut broken) = (HashSet::new(), Vec::new());
        while let Some(blob) = blobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            match check_payload(connection, blob) {
                Ok(pieces) => covered.extend(pieces),
                Err(error) => broken.push((*blob, error.to_string())),
            }
        }
        Ok((covered, broken))
    })?;
    let (mut covered, mut broken) = (HashSet::new(), Vec::new());
    for (more, worse) in parts {
        covered.extend(more);
        broken.extend(worse);
    }
    Ok((covered, broken))
}

#[derive(Default)]
struct Pieces {
    /// Those that are payloads by themselves, with their sizes.
    sound: HashMap<Hash, i64>,
    damage: Vec<Damage>,
}

/// Checks each piece by itself, but for those that were read as part of a sound payload.
fn check_pieces(moment: &Moment, covered: &HashSet<i64>, whole: &HashSet<Hash>) -> Result<Pieces, Error> {
    let (last, indexed) = {
        let connection = moment.connection();
        let last = column(&connection, "SELECT coalesce(max(number), 0) FROM pieces", []).unwrap_or_default();
        let indexed = read_state(&connection).map_or(0, |(indexed, _)| indexed.pieces);
        (last.first().copied().unwrap_or(0), indexed)
    };
    let next = AtomicI64::new(0);
    let parts = moment.in_parallel(|_, connection| {
        let mut pieces = Pieces::default();
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            if start > last {
                return Ok(pieces);
            }
            // The hashes of those that `by_piece` knows are compared with it later.
            let known = |number: &i64| *number <= indexed && covered.contains(number);
            pieces.check_chunk(connection, start, known, whole);
        }
    })?;
    let mut all = Pieces::default();
    for part in parts {
        all.sound.extend(part.sound);
        all.damage.extend(part.damage);
    }
    Ok(all)
}

impl Pieces {
    fn check_chunk(
        &mut self,
        connection: &Connection,
        start: i64,
        known: impl Fn(&i64) -> bool,
        whole: &HashSet<Hash>,
    ) {
        const SQL: &str = "SELECT number, hash, size, data FROM pieces WHERE number BETWEEN ?1 AND ?2";
        if (start..start + CHUNK).all(|number| known(&number)) {
            return;
        }
        let (sound, mut raw) = (&mut self.sound, std::cell::RefCell::new(Vec::new()));
        let read = |row: &rusqlite::Row<'_>| {
            let (number, hash, size): (i64, _, i64) =
                (row.get(0)?, Hash::from_bytes(row.get(1)?), row.get(2)?);
            let raw = &mut *raw.borrow_mut();
            raw.clear();
            let length = usize::try_from(size).ok().filter(|size| *size <= LONGEST_PIECE);
            let data = row.get_ref(3)?.as_blob().unwrap_or_default();
            let fits =
                length.is_some_and(|length| decode(data, length, raw).is_ok() && Hash::of(raw) == hash);
            Ok((number, hash, size, fits))
        };
        let values = params![start, start + CHUNK - 1];
        each_row(
            connection,
            SQL,
            values,
            "a piece",
            &mut self.damage,
            read,
            |(number, hash, size, fits), damage| {
                if fits && whole.contains(&hash) {
                    sound.insert(hash, size);
                } else if !fits && !whole.contains(&hash) {
                    damage.push(Damage::general(format!("piece number {number} does not fit its hash")));
                }
            },
        );
        raw.get_mut().clear();
    }
}
