//! Payloads: in, out, kept once, collected.

use std::io::{self, Read};

use stagepost::model::{BlobRef, Hash};
use stagepost::store::blob::Cut;
use stagepost::store::{Batch, Error, NewEntry, Store};

use crate::{Story, artifact, conversation};

fn read_all(store: &dyn Store, blob: &BlobRef) -> Vec<u8> {
    let mut bytes = Vec::new();
    store.open(blob).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

fn noise(size: usize, seed: u64) -> Vec<u8> {
    let mut hasher = blake3_like(seed);
    (0..size).map(|_| hasher()).collect()
}

fn blake3_like(seed: u64) -> impl FnMut() -> u8 {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    }
}

/// Payloads of any size and content come back as they were.
pub fn payloads_come_back(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000)).into_bytes();
    let broken = b"{\"never\": \"closed, \\\" \\".repeat(400);
    let mut payloads = vec![Vec::new(), b"x".to_vec(), deep, broken, conversation(40, false)];
    payloads.extend([4095, 4096, 4097, 70_000, 300_000].map(|size| noise(size, 1)));
    payloads.push(vec![7; 200_000]);
    // A text in quotes has no place where an element ends.
    payloads.extend(
        [65_533, 65_534, 65_535, 5 << 20].map(|size| format!("\"{}\"", "w".repeat(size)).into_bytes()),
    );
    for cut in [Cut::Json, Cut::Content] {
        for bytes in &payloads {
            let payload = store.prepare(bytes.clone(), cut, None);
            let blob = payload.blob();
            assert_eq!((blob.size, blob.hash), (bytes.len() as u64, Hash::of(bytes)));
            let mut draft = story.draft(&run, "");
            draft.content.artifacts = vec![artifact("a", blob)];
            let entries = vec![NewEntry::Checkpoint(draft)];
            store.write(Batch { payloads: vec![payload], entries, expect: Vec::new() }).unwrap();
            assert_eq!(&store.load(&blob).unwrap(), bytes);
            assert_eq!(&read_all(store, &blob), bytes);
        }
    }
    assert_eq!(story.damage(), [""; 0]);
}

/// A payload that is there already costs nothing.
pub fn the_same_payload_is_kept_once(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let bytes = noise(2_000_000, 2);
    let blob = story.save_state(&run, bytes.clone(), None).content.artifacts[0].blob;
    let before = store.usage().unwrap().bytes;
    for _ in 0..10 {
        story.save_state(&run, bytes.clone(), None);
        assert_eq!(store.put(&mut &bytes[..], Cut::Json).unwrap(), blob);
    }
    assert!(store.usage().unwrap().bytes < before + 1_000_000);
}

/// A stream of any length goes in and comes out.
pub fn streams_come_back(store: &dyn Store) {
    let _hold = store.hold().unwrap();
    for size in [0, 1, 4096, 5 << 20, (9 << 20) + 17] {
        for cut in [Cut::Json, Cut::Content] {
            let bytes = if cut == Cut::Json { conversation(size / 1000, false) } else { noise(size, 3) };
            let mut slow = Slowly(&bytes);
            let blob = store.put(&mut slow, cut).unwrap();
            assert_eq!((blob.size, blob.hash), (bytes.len() as u64, Hash::of(&bytes)));
            assert!(read_all(store, &blob) == bytes && store.load(&blob).unwrap() == bytes);
        }
    }
}

/// Hands out a few bytes at a time, as pipes do.
struct Slowly<'a>(&'a [u8]);

impl Read for Slowly<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = out.len().min(self.0.len()).min(60_001);
        self.0.read(&mut out[..count])
    }
}

/// A payload that is not there is named.
pub fn missing_payloads_are_named(store: &dyn Store) {
    for size in [3, 100_000] {
        let blob = BlobRef { size, hash: Hash::of(b"nothing") };
        assert!(matches!(store.load(&blob), Err(Error::MissingBlob { blob: named }) if named == blob));
        assert!(matches!(store.open(&blob), Err(Error::MissingBlob { .. })));
    }
}

/// Several payloads come back in the order in which they are asked for, however they were written.
pub fn many_payloads_come_back_in_order(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let bytes = |n: usize| noise(if n % 50 == 7 { 9_000 } else { 300 + n }, n as u64);
    let save = |n| story.save_state(&run, bytes(n), None);
    let saved: Vec<_> = (0..300).map(save).collect();
    let ask = |numbers: Vec<usize>| {
        let blobs: Vec<_> = numbers.iter().map(|n| saved[*n].content.artifacts[0].blob).collect();
        (store.load_all(&blobs), numbers)
    };
    let all = |numbers: Vec<usize>| {
        let (loaded, numbers) = ask(numbers);
        assert!(loaded.unwrap().into_iter().eq(numbers.into_iter().map(bytes)));
    };
    all((0..300).collect());
    all((0..300).rev().collect());
    all(vec![3, 3, 4, 4, 200, 5, 7, 8, 299]);
    all(Vec::new());
    // Numbers that were given up leave gaps.
    let gone: Vec<_> = saved.iter().filter(|one| one.seq % 3 == 0).collect();
    story.prune(&gone).unwrap();
    store.collect().unwrap();
    all((0..300).filter(|n| saved[*n].seq % 3 != 0).collect());
    let (loaded, _) = ask((0..300).collect());
    assert!(matches!(loaded, Err(Error::MissingBlob { .. })), "{loaded:?}");
}

/// A list that grows step by step comes back at every step, and is not stored again at every step.
pub fn a_growing_list_comes_back_at_every_step(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let (mut base, mut blobs) = (None, Vec::new());
    for step in 1..=120 {
        let saved = story.save_state(&run, conversation(step, true), base);
        base = Some(saved.content.artifacts[0].blob);
        blobs.extend(base);
    }
    for (step, blob) in (1..).zip(&blobs) {
        assert_eq!(store.load(blob).unwrap(), conversation(step, true), "step {step}");
    }
    assert_eq!(read_all(store, &blobs[119]), conversation(120, true));
    assert_eq!(story.damage(), [""; 0]);
}

/// Collecting drops what nothing refers to and nothing else, and says what it did.
pub fn collection_keeps_what_is_referred_to(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let saved: Vec<_> = (0..80).map(|n| story.save_state(&run, noise(20_000, n), None)).collect();
    let small: Vec<_> = (0..80).map(|n| story.save_state(&run, noise(100, n), None)).collect();
    let gone: Vec<_> = saved.iter().chain(&small).filter(|one| one.seq % 2 == 0).collect();
    story.prune(&gone).unwrap();
    let collected = store.collect().unwrap();
    assert!(collected.pieces >= 80 && collected.blobs >= 40, "{collected:?}");
    assert!(collected.bytes > 500_000, "{collected:?}");
    for one in saved.iter().chain(&small) {
        let loaded = store.load(&one.content.artifacts[0].blob);
        assert_eq!(loaded.is_ok(), one.seq % 2 == 1, "{loaded:?}");
    }
    assert_eq!(story.damage(), [""; 0]);
    let again = store.collect().unwrap();
    assert_eq!((again.blobs, again.pieces), (0, 0));
    let back = story.save_state(&run, noise(20_000, 1), None);
    assert_eq!(store.load(&back.content.artifacts[0].blob).unwrap(), noise(20_000, 1));
    assert_eq!(story.damage(), [""; 0]);
}

/// Payloads that share pieces with dropped ones, or whose list is told by way of a dropped one, stay whole.
pub fn collection_keeps_shared_pieces_and_bases(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let (mut base, mut saved) = (None, Vec::new());
    for step in 1..=100 {
        let one = story.save_state(&run, conversation(step, false), base);
        base = Some(one.content.artifacts[0].blob);
        saved.push(one);
    }
    for kept in [3, 10, 50] {
        let gone: Vec<_> = saved.iter().filter(|one| one.seq % kept != 0).collect();
        story.prune(&gone).unwrap();
        store.collect().unwrap();
        saved.retain(|one| one.seq % kept == 0);
        for one in &saved {
            let bytes = store.load(&one.content.artifacts[0].blob).unwrap();
            assert_eq!(bytes, conversation(one.seq as usize, false), "step {}", one.seq);
        }
        let next = story.save_state(&run, conversation(101, false), base);
        assert_eq!(store.load(&next.content.artifacts[0].blob).unwrap(), conversation(101, false));
        assert_eq!(story.damage(), [""; 0]);
    }
}

/// What a holder has put in is not collected.
pub fn holders_keep_payloads(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let (a, b) = (store.hold().unwrap(), store.hold().unwrap());
    let blob = store.put(&mut &noise(50_000, 5)[..], Cut::Content).unwrap();
    for hold in [a, b] {
        assert!(matches!(store.collect(), Err(Error::Busy { .. })));
        drop(hold);
    }
    let mut draft = story.draft(&run, "");
    draft.content.artifacts = vec![artifact("a", blob)];
    story.save_draft(draft);
    store.collect().unwrap();
    assert_eq!(store.load(&blob).unwrap(), noise(50_000, 5));
    let left = store.put(&mut &noise(60_000, 6)[..], Cut::Content).unwrap();
    assert_eq!(store.collect().unwrap().blobs, 1);
    assert!(matches!(store.load(&left), Err(Error::MissingBlob { .. })));
}

/// Who wants to be alone waits for those who hold, and those who come meanwhile wait for it.
pub fn one_who_wants_to_be_alone_waits(store: &dyn Store) {
    let pause = || std::thread::sleep(std::time::Duration::from_millis(30));
    std::thread::scope(|scope| {
        let hold = store.hold().unwrap();
        scope.spawn(move || {
            pause();
            drop(hold);
        });
        let alone = store.alone().unwrap();
        scope.spawn(move || {
            pause();
            drop(alone);
        });
        drop(store.hold().unwrap());
    });
}

/// What is put in under a hold is there as long as it lasts, whoever collects meanwhile.
pub fn collections_beside_holders_take_nothing_of_theirs(store: &dyn Store) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for number in 0..20 {
                    let bytes = noise(5_000, thread * 1000 + number);
                    let hold = store.hold().unwrap();
                    let blob = store.put(&mut &bytes[..], Cut::Content).unwrap();
                    std::thread::yield_now();
                    assert_eq!(store.load(&blob).unwrap(), bytes);
                    drop(hold);
                }
            });
        }
        for _ in 0..20 {
            // Someone may hold for longer than a collection waits.
            assert!(matches!(store.collect(), Ok(_) | Err(Error::Busy { .. })));
        }
    });
}

/// A stream that breaks off stores no payload.
pub fn a_failed_source_is_an_error(store: &dyn Store) {
    struct Breaks(usize);
    impl Read for Breaks {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::other("the pipe broke"));
            }
            let count = out.len().min(self.0);
            out[..count].fill(9);
            self.0 -= count;
            Ok(count)
        }
    }
    for size in [0, 10, 6 << 20] {
        let result = store.put(&mut Breaks(size), Cut::Content);
        assert!(matches!(result, Err(Error::Source(_))), "{result:?}");
    }
    assert_eq!(Story::new(store).damage(), [""; 0]);
}

/// A payload whose batch failed can be written later, and was never there before.
pub fn a_payload_that_was_taken_back_is_not_there(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let taken = story.draft(&run, "taken");
    story.save_draft(taken.clone());
    let payload = store.prepare(conversation(20, false), Cut::Json, None);
    let blob = payload.blob();
    let batch = |id| {
        let mut draft = taken.clone();
        draft.id = id;
        draft.content.artifacts = vec![artifact("state", blob)];
        let entries = vec![NewEntry::Checkpoint(draft)];
        Batch { payloads: vec![payload.clone()], entries, expect: Vec::new() }
    };
    assert!(store.write(batch(taken.id)).is_err());
    assert!(matches!(store.load(&blob), Err(Error::MissingBlob { .. })));
    story.save_state(&run, conversation(10, true), None);
    story.save_state(&run, conversation(21, false), Some(blob));
    store.write(batch(story.script.id())).unwrap();
    assert_eq!(store.load(&blob).unwrap(), conversation(20, false));
    assert_eq!(story.damage(), [""; 0]);
}
