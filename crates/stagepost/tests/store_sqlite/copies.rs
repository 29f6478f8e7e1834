//! Plain copies of large payloads: used where they are right, never believed where they are not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use stagepost::model::BlobRef;
use stagepost::store::Store;
use stagepost_testutil::{Story, conversation};

use crate::Place;

fn copies(place: &Place) -> Vec<PathBuf> {
    let found = fs::read_dir(place.folder().join("copies")).into_iter().flatten();
    found.map(|copy| copy.unwrap().path()).collect()
}

/// Saves a state that grows, from its own handle each time, as a program that is started for each step does.
fn grown(place: &Place, lengths: impl IntoIterator<Item = usize>) -> BlobRef {
    let mut base = None;
    for (ids, length) in lengths.into_iter().enumerate() {
        let store = place.open();
        let story = Story::after(&store, ids as u64 * 10);
        base = Some(
            story.save_state(&story.run("a"), conversation(length, true), base).content.artifacts[0].blob,
        );
    }
    base.unwrap()
}

/// Takes all pieces away, so that only a copy can be read.
fn without_pieces(place: &Place) {
    place.raw().execute_batch("DELETE FROM pieces").unwrap();
}

#[test]
fn a_state_that_grows_has_one_copy_of_its_latest() {
    let place = Place::new();
    let latest = grown(&place, (1..40).chain([41, 60]));
    assert_eq!(copies(&place).len(), 1);
    let copy = &copies(&place)[0];
    assert_eq!(fs::read(copy).unwrap(), conversation(60, true));
    assert_eq!(fs::metadata(copy).unwrap().permissions().mode() & 0o777, 0o600);
    without_pieces(&place);
    assert_eq!(place.open().load(&latest).unwrap(), conversation(60, true), "the copy is what is read");
}

#[test]
fn a_copy_that_is_not_what_was_written_is_never_read() {
    let place = Place::new();
    let latest = grown(&place, [20, 40]);
    let copy = copies(&place).remove(0);
    let sound = fs::read(&copy).unwrap();
    let mut flipped = sound.clone();
    flipped[20_000] ^= 1;
    for wrong in [flipped, sound[..sound.len() - 1].to_vec(), [&sound[..], b" "].concat(), Vec::new()] {
        fs::write(&copy, wrong).unwrap();
        assert_eq!(place.open().load(&latest).unwrap(), sound);
        assert!(!copy.exists(), "what is wrong goes");
    }
    std::os::unix::fs::symlink("/etc/passwd", &copy).unwrap();
    assert_eq!(place.open().load(&latest).unwrap(), sound);
}

#[test]
fn a_state_that_changes_everywhere_has_no_copy() {
    let place = Place::new();
    let store = place.open();
    let story = Story::new(&store);
    let run = story.run("a");
    let mut base = None;
    for n in 0..6 {
        let state = serde_json::to_vec(&vec![format!("{n} {}", "x".repeat(1000)); 200]).unwrap();
        base = Some(story.save_state(&run, state, base).content.artifacts[0].blob);
    }
    assert_eq!(copies(&place), [""; 0].map(PathBuf::from));
}

#[test]
fn a_collection_lets_copies_go() {
    let place = Place::new();
    let latest = grown(&place, [20, 40]);
    let store = place.open();
    store.collect().unwrap();
    assert_eq!(copies(&place), [""; 0].map(PathBuf::from), "they could be of what was given up");
    assert_eq!(store.load(&latest).unwrap(), conversation(40, true));
}

#[test]
fn there_are_never_many_copies() {
    let place = Place::new();
    let store = place.open();
    let story = Story::new(&store);
    for n in 0..40 {
        let run = story.run(&format!("run-{n}"));
        story.save_state(&run, conversation(20 + n, true), None);
    }
    assert_eq!(copies(&place).len(), 16);
}
