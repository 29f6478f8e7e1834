//! Payloads that are larger than memory should have to hold.

use std::io::{self, Read};

use stagepost::store::blob::Cut;
use stagepost::store::{SqliteStore, Store};
use stagepost_testutil::{Story, artifact};

use crate::Place;
use crate::processes::{again, child_store};

/// How many MiB go through; 1024 in full.
const SIZE: &str = "STAGEPOST_LARGE_MIB";

/// Noise that needs no memory.
struct Noise {
    left: u64,
    state: u64,
}

impl Read for Noise {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = out.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        for chunk in out[..count].chunks_mut(8) {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            chunk.copy_from_slice(&self.state.to_le_bytes()[..chunk.len()]);
        }
        self.left -= count as u64;
        Ok(count)
    }
}

#[test]
fn a_large_artifact_is_never_in_memory_as_a_whole() {
    // Memory is that of a whole process, so it is measured in one that does nothing else.
    if let Some(store) = child_store() {
        return stream_through(&store);
    }
    let place = Place::new();
    let done = again("large::a_large_artifact_is_never_in_memory_as_a_whole", &place, None).output().unwrap();
    assert!(
        done.status.success(),
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(String::from_utf8_lossy(&done.stdout).contains("1 passed"), "the child did not run this test");
}

fn stream_through(store: &SqliteStore) {
    let size = std::env::var(SIZE).map_or(96, |text| text.parse::<u64>().unwrap()) << 20;
    let story = Story::new(store);
    let run = story.run("a");
    let before = peak_memory();
    let hold = store.hold().unwrap();
    let blob = store.put(&mut Noise { left: size, state: 1 }, Cut::Content).unwrap();
    let mut draft = story.draft(&run, "large");
    draft.content.artifacts = vec![artifact("large", blob)];
    story.save_draft(draft);
    drop(hold);
    assert_eq!(blob.size, size);
    let (mut stream, mut expected) = (store.open(&blob).unwrap(), Noise { left: size, state: 1 });
    let (mut a, mut b) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut left = size;
    while left > 0 {
        stream.read_exact(&mut a).unwrap();
        expected.read_exact(&mut b).unwrap();
        assert!(a == b);
        left -= a.len() as u64;
    }
    assert_eq!(stream.read(&mut a).unwrap(), 0);
    assert_eq!(story.damage(), [""; 0]);
    let grown = peak_memory() - before;
    assert!(grown < 48 << 20, "memory grew by {} MiB", grown >> 20);
}

/// The most memory this process has had, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
