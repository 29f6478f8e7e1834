//! Bytes of the file change by themselves.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use stagepost::model::{Checkpoint, Topic};
use stagepost::store::{EventQuery, Found, Query, Store};
use stagepost_testutil::{Story, conversation};

use crate::{Place, try_open};

/// `STAGEPOST_FULL=1` tries every byte, block and length, and one bit of each byte; `STAGEPOST_EVERY_BIT=1` all eight.
/// Minutes in a release build with a temporary folder in memory.
fn stride(short: usize) -> usize {
    if is_set("STAGEPOST_FULL") { 1 } else { short }
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

/// The files of a store, held in memory, so that a damaged one is made again in no time.
struct Image(Vec<(std::ffi::OsString, Vec<u8>)>);

impl Image {
    fn of(place: &Place) -> Self {
        let files = std::fs::read_dir(place.folder()).unwrap().map(|file| file.unwrap());
        let files = files.filter(|file| file.file_type().unwrap().is_file());
        Self(files.map(|file| (file.file_name(), std::fs::read(file.path()).unwrap())).collect())
    }

    /// Makes a folder hold this and nothing else.
    fn write_to(&self, place: &Place) {
        let _ = std::fs::create_dir(place.folder());
        for there in std::fs::read_dir(place.folder()).unwrap().map(|file| file.unwrap()) {
            if there.file_type().unwrap().is_dir() {
                std::fs::remove_dir_all(there.path()).unwrap();
            } else if !self.0.iter().any(|(name, _)| *name == there.file_name()) {
                std::fs::remove_file(there.path()).unwrap();
            }
        }
        for (name, bytes) in &self.0 {
            std::fs::write(place.folder().join(name), bytes).unwrap();
        }
    }
}

/// How many events a small store has.
const EVENTS: usize = 34;

fn small_store(place: &Place) -> Vec<Saved> {
    let saved = write_small_store(place);
    fold(place);
    saved
}

/// Has everything in the one file that is damaged: what is still in the log would be read from there.
fn fold(place: &Place) {
    place.raw().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
}

fn write_small_store(place: &Place) -> Vec<Saved> {
    let store = place.open();
    let story = Story::new(&store);
    let run = story.run("a");
    let mut saved = Vec::new();
    for n in 0..EVENTS {
        saved.push((story.save_labelled(&run, &["good"]), None));
        if n % 12 == 0 {
            let bytes = conversation(64 + n / 8, n % 24 == 0);
            saved.push((story.save_state(&run, bytes.clone(), None), Some(bytes.clone())));
            saved.push((story.save_state(&run, bytes[..900].to_vec(), None), Some(bytes[..900].to_vec())));
        }
        story.happen(Topic::Note, "a", "progress");
    }
    saved
}

/// Damages copies of a store in many ways, on all cores, and checks each. Says how many damages there were and how many
/// of them nobody noticed, because nothing is lost by them.
fn every(
    points: usize,
    step: usize,
    saved: &[Saved],
    from: &Place,
    damage: impl Fn(&Place, usize) + Sync,
) -> (usize, usize) {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let image = &Image::of(from);
    let of_one = |worker: usize| {
        let (mut tried, mut unnoticed) = (0, 0);
        let place = Place::new();
        for point in (worker * step..points).step_by(step * workers) {
            image.write_to(&place);
            damage(&place, point);
            unnoticed += usize::from(!check(&place, saved, point));
            tried += 1;
        }
        (tried, unnoticed)
    };
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|worker| scope.spawn(move || of_one(worker))).collect();
        let done = started.into_iter().map(|thread| thread.join().unwrap());
        done.fold((0, 0), |(tried, unnoticed), (more, missed)| (tried + more, unnoticed + missed))
    })
}

fn change(place: &Place, at: usize, with: impl FnOnce(&mut [u8]), length: usize) {
    let file = OpenOptions::new().read(true).write(true).open(place.database()).unwrap();
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, at as u64).unwrap();
    with(&mut bytes);
    file.write_all_at(&bytes, at as u64).unwrap();
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures of a full run are worth knowing")]
fn no_flipped_bit_becomes_wrong_data() {
    let place = Place::new();
    let saved = small_store(&place);
    let bytes = std::fs::metadata(place.database()).unwrap().len() as usize;
    let flip = |place: &Place, bit: usize| change(place, bit / 8, |byte| byte[0] ^= 1 << (bit % 8), 1);
    let (tried, unnoticed) = if is_set("STAGEPOST_FULL") && !is_set("STAGEPOST_EVERY_BIT") {
        // Which bit it is differs from byte to byte, without a pattern.
        let any_bit = |byte: usize| byte * 8 + byte.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 61 % 8;
        every(bytes, 1, &saved, &place, |place, byte| flip(place, any_bit(byte)))
    } else {
        every(bytes * 8, stride(4_099), &saved, &place, flip)
    };
    println!("{tried} flipped bits, {unnoticed} of them in bytes that mean nothing");
    // Most of a page that is not full is not used for anything.
    assert!(tried > 300 && unnoticed < tried, "{unnoticed} of {tried} were not noticed");
}

#[test]
fn no_flipped_bit_of_the_header_becomes_wrong_data() {
    let place = Place::new();
    let saved = small_store(&place);
    let (tried, _) = every(100 * 8, stride(5), &saved, &place, |place, bit| {
        change(place, bit / 8, |byte| byte[0] ^= 1 << (bit % 8), 1);
    });
    assert!(tried >= 160);
}

#[test]
fn no_zeroed_block_becomes_wrong_data() {
    let place = Place::new();
    let saved = small_store(&place);
    let size = std::fs::metadata(place.database()).unwrap().len() as usize;
    for block in [512, 1024, 4096] {
        every(size / block, stride(block / 256), &saved, &place, |place, number| {
            change(place, number * block, |bytes| bytes.fill(0), block);
        });
    }
}

#[test]
fn no_cut_off_end_becomes_wrong_data() {
    let place = Place::new();
    let saved = small_store(&place);
    let size = std::fs::metadata(place.database()).unwrap().len() as usize;
    let (tried, unnoticed) = every(size, stride(701), &saved, &place, |place, length| {
        OpenOptions::new().write(true).open(place.database()).unwrap().set_len(length as u64).unwrap();
    });
    assert_eq!((unnoticed, tried > 100), (0, true), "an end that is gone is always noticed");
}

/// A log with an end that is gone reads as if it had never been longer, so that must be told without an audit.
#[test]
fn no_damage_to_the_log_is_passed_over() {
    let place = Place::new();
    {
        let store = place.open();
        let story = Story::new(&store);
        let run = story.run("a");
        (0..8).for_each(|n| drop(story.save_state(&run, conversation(4, n % 2 == 0), None)));
    }
    let log = |place: &Place| place.folder().join("store.db-wal");
    let (image, whole) = (Image::of(&place), std::fs::read(log(&place)).unwrap());
    let copy = Place::new();
    let check = |bytes: &[u8], what: &str| {
        image.write_to(&copy);
        std::fs::write(log(&copy), bytes).unwrap();
        let store = copy.open();
        let lost = store.lost().unwrap();
        assert_eq!(store.usage().unwrap().entries + lost, 9, "{what}");
        assert_eq!(store.list(&Query::default()).unwrap().len() as u64 + lost.min(8), 8, "{what}");
        assert_eq!(Story::new(&store).damage().is_empty(), lost == 0, "{what}");
        lost
    };
    assert_eq!(check(&whole, "as it was"), 0);
    // With steps of seven, each byte has its turn, and each time with another bit.
    let step = if is_set("STAGEPOST_EVERY_BIT") { 1 } else { stride(2_003).max(7) };
    let flips = (0..whole.len() * 8).step_by(step).map(|bit| {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        check(&bytes, &format!("bit {bit}"))
    });
    assert!(flips.filter(|lost| *lost > 0).count() > 20);
    // Its format is in the first page of the database; without the log that page is as the store was made.
    let cuts = (1..whole.len()).step_by(stride(1_021)).map(|length| check(&whole[..length], "cut off"));
    assert!(cuts.min() > Some(0), "an end that is gone is always noticed");
}

#[test]
fn no_old_page_becomes_wrong_data() {
    const PAGE: usize = 1024;
    let place = Place::new();
    small_store(&place);
    let old = std::fs::read(place.database()).unwrap();
    let saved = {
        let store = place.open();
        let story = Story::after(&store, 10_000);
        let run = story.run("a");
        let mut saved = small_store_again(&store);
        for n in 0..60 {
            saved.push((story.save(&run, &format!("later {n}")), None));
        }
        saved
    };
    fold(&place);
    let new = std::fs::read(place.database()).unwrap();
    let differing: Vec<usize> = (0..old.len() / PAGE)
        .filter(|page| old[page * PAGE..][..PAGE] != new[page * PAGE..][..PAGE])
        .collect();
    assert!(differing.len() > 5, "{differing:?}");
    every(differing.len(), 1, &saved, &place, |place, number| {
        let at = differing[number] * PAGE;
        change(place, at, |bytes| bytes.copy_from_slice(&old[at..][..PAGE]), PAGE);
    });
}

/// What a small store holds, read back from it.
fn small_store_again(store: &dyn Store) -> Vec<Saved> {
    let mut listed = store.list(&Query::default()).unwrap();
    listed.reverse();
    let payload =
        |one: &Checkpoint| one.content.artifacts.first().map(|artifact| store.load(&artifact.blob).unwrap());
    listed.into_iter().map(|one| (one.checkpoint.clone(), payload(&one.checkpoint))).collect()
}

#[test]
fn a_deleted_file_is_noticed_or_made_again() {
    let place = Place::new();
    let saved = small_store(&place);
    let files = std::fs::read_dir(place.folder()).unwrap().map(|file| file.unwrap().file_name());
    for file in files.collect::<Vec<_>>() {
        let place = Place::copy_of(&place);
        // Copies of payloads are not copied here; without them everything is read from the database.
        let _ = std::fs::remove_file(place.folder().join(file));
        check(&place, &saved, 0);
    }
    assert!(try_open(&Place::copy_of(&place).folder(), false).is_ok());
}

/// A checkpoint with its payload.
type Saved = (Checkpoint, Option<Vec<u8>>);

/// Reads everything. What differs from what was saved must be an error, what is missing must be reported.
fn check(place: &Place, saved: &[Saved], at: usize) -> bool {
    let Ok(store) = try_open(&place.folder(), false) else { return true };
    let (mut found, mut failed) = (0, false);
    for (expected, payload) in saved {
        match store.checkpoint(&expected.id) {
            Ok(Some(Found::Live(one))) => {
                assert_eq!(&*one, expected, "byte {at}");
                found += 1;
            }
            Ok(_) => {}
            Err(_) => failed = true,
        }
        let Some(payload) = payload else { continue };
        match store.load(&expected.content.artifacts[0].blob) {
            Ok(bytes) => assert!(bytes == *payload, "byte {at}"),
            Err(_) => failed = true,
        }
    }
    match store.list(&Query::default()) {
        Ok(listed) => {
            assert!(
                listed.iter().all(|one| saved.iter().any(|(saved, _)| *saved == one.checkpoint)),
                "byte {at}"
            );
            found += listed.len();
        }
        Err(_) => failed = true,
    }
    match store.events(&EventQuery::all(Topic::Note)) {
        Ok(events) => found += events.len(),
        Err(_) => failed = true,
    }
    let mut damage = 0;
    let audited = store.audit(&mut |_| damage += 1);
    let noticed = damage > 0 || audited.is_err();
    assert!(noticed || (!failed && found == 2 * saved.len() + EVENTS), "byte {at}: {found}, {failed}");
    noticed
}
