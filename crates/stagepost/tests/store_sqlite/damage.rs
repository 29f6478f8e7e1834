//! Bytes of the file change by themselves.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use stagepost::model::{Checkpoint, Topic};
use stagepost::store::{EventQuery, Found, Query, Store};
use stagepost_testutil::{Story, conversation};

use crate::{Place, try_open};

/// Every how many bytes one is changed; 1 takes some minutes.
const STRIDE: &str = "STAGEPOST_FLIP_STRIDE";

fn small_store(place: &Place) -> Vec<(Checkpoint, Option<Vec<u8>>)> {
    let store = place.open();
    let story = Story::new(&store);
    let run = story.run("a");
    let mut saved = Vec::new();
    for n in 0..34 {
        saved.push((story.save_labelled(&run, &["good"]), None));
        if n % 8 == 0 {
            let bytes = conversation(5 + n / 8, n % 16 == 0);
            saved.push((story.save_state(&run, bytes.clone(), None), Some(bytes.clone())));
            saved.push((story.save_state(&run, bytes[..900].to_vec(), None), Some(bytes[..900].to_vec())));
        }
        story.happen(Topic::Note, "a", "progress");
    }
    saved
}

#[test]
fn no_changed_byte_becomes_wrong_data() {
    let place = Place::new();
    let saved = small_store(&place);
    let bytes = std::fs::read(place.database()).unwrap();
    let stride = std::env::var(STRIDE).map_or(257, |text| text.parse().unwrap());
    let file = OpenOptions::new().write(true).open(place.database()).unwrap();
    let (mut unnoticed, mut tried) = (0, 0);
    for at in (0..bytes.len()).step_by(stride).chain((0..100).step_by(stride.min(7))) {
        let mask = if at % 3 == 0 { 0xff } else { 1 << (at % 8) };
        file.write_all_at(&[bytes[at] ^ mask], at as u64).unwrap();
        unnoticed += usize::from(!check(&place, &saved, at));
        tried += 1;
        file.write_all_at(&[bytes[at]], at as u64).unwrap();
    }
    assert_eq!(std::fs::read(place.database()).unwrap(), bytes, "reading changed the file");
    // Most of a page that is not full is not used for anything.
    assert!(unnoticed < tried, "{unnoticed} of {tried} were not noticed");
    assert_eq!(Story::new(&place.open()).damage(), [""; 0]);
}

/// Reads everything. What differs from what was saved must be an error, what is missing must be reported.
fn check(place: &Place, saved: &[(Checkpoint, Option<Vec<u8>>)], at: usize) -> bool {
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
    assert!(noticed || (!failed && found == 2 * saved.len() + 34), "byte {at}: {found}, {failed}");
    noticed
}
