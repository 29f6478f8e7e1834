//! Steps of flows beside their floors, in one run.
//!
//! ```text
//! cargo run --release -p stagepost-bench-flow [-- steps | many | shell | kill | processes]
//! ```
//!
//! - `steps`: 10,000 durable steps in code with 1 KB results, beside one bare SQLite commit (WAL, FULL) of 1 KB each, in
//!   turns; how flat that is, how much disk a step takes, and how many syncs (counted with strace where it is installed).
//! - `many`: 50 runs × 20 steps at once, beside a bare writer thread.
//! - `shell`: 200 steps of `true`, beside spawning with capture and one commit each.
//! - `kill`: SIGKILL in the middle of the step after 500 of 1,000 and after 5,000 of 10,000; how soon the next process
//!   begins that step again, from its own start.
//! - `processes`: 8 processes with a run of their own on one store.
//!
//! Read the ratios, not the times.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that prints, and may stop at any fault"
)]

mod floor;
mod kill;
mod steps;

use std::path::Path;
use std::time::Duration;

use stagepost::project::{Context, Place, Project, Settings};
use stagepost::snapshot::GitProgram;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(way) = args.first().filter(|arg| arg.starts_with("--as-")) {
        let stop = args.get(3).map(|stop| stop.parse().unwrap());
        return kill::act(way, Path::new(&args[1]), args[2].parse().unwrap(), stop);
    }
    let parts: [(&str, fn()); 5] = [
        ("steps", steps::steps),
        ("many", steps::many),
        ("shell", steps::shell),
        ("kill", kill::kill),
        ("processes", kill::processes),
    ];
    for (name, part) in parts {
        if args.is_empty() || args.iter().any(|arg| arg == name) {
            println!("\n== {name}");
            part();
        }
    }
}

/// A folder on the disk that the build uses: memory would have no sync.
fn folder() -> tempfile::TempDir {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    tempfile::tempdir_in(here).unwrap()
}

fn open(root: &Path) -> Project {
    let context = Context::system("bench", GitProgram::new("git", std::env::vars_os()));
    Project::init(Place::without_git(root), Settings::default(), context).unwrap()
}

/// About 1 KB that cannot be compressed much.
fn payload(number: usize) -> String {
    let mut state = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut text = String::with_capacity(1024);
    while text.len() < 1000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.extend(
            state.to_le_bytes().map(|byte| char::from(b'0' + byte % 64)).iter().filter(|c| **c != '\\'),
        );
    }
    text
}

fn percentile(times: &mut [Duration], share: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * share / 100]
}

fn mean(times: &[Duration]) -> Duration {
    times.iter().sum::<Duration>() / times.len() as u32
}
