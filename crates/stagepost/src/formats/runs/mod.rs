//! Runs of an agent workflow: `run.json`, `artifact-registry.json`, `checkpoints/checkpoint-step-*.json`, and the files
//! that programs of the same family write beside them.
//!
//! What they say about themselves is not always so. A checksum is looked for in two places: over everything but
//! `metadata`, which is what the program writes, and over everything but `metadata.checksum`, which is what its
//! validator expects. We write the second kind, so that the validator accepts it.

mod checksum;
mod javascript;
mod read;
mod shapes;
mod status;

pub use checksum::{Form, checksum, minified, sealed, verify};
pub use javascript::{compact, pretty};
pub use read::{MOST_BYTES, Record, RunRecord, Shape, decompress};
pub use shapes::{
    Checkpoint, Entry, EntryMetadata, Owners, Registry, Retries, RunFile, RunMetadata, StepState, Summary,
    Times, Transition, instructions,
};
pub use status::{Status, way};

use crate::model::{Hash, Timestamp};

/// Where runs are, relative to a project.
pub const RUNS: &str = ".claude/context/runs";
/// Where programs that do not follow the documentation have them.
pub const RUNTIME: &str = ".claude/context/runtime/runs";
/// Where checkpoints of the newer kind are.
pub const COMPRESSED: &str = ".claude/context/checkpoints";
/// Where a checkpoint is left when memory runs out.
pub const PRESSURE: &str = ".claude/context/runtime/checkpoints";
/// Where the report of a cleanup goes.
pub const REPORT: &str = ".claude/context/reports/checkpoint-cleanup-report.md";

/// The record of a run.
pub const RUN: &str = "run.json";
/// What a run made.
pub const REGISTRY: &str = "artifact-registry.json";
/// The folder of a run's checkpoints.
pub const CHECKPOINTS: &str = "checkpoints";

/// So many checkpoints of a run are there as files.
pub const KEPT: usize = 5;

/// Who wrote a file, so that our own are known again.
pub const OURS: &str = "stagepost";

/// Names the folder of a run. The programs that read it accept letters, digits and dashes only; what has others gets a
/// hash, so that two runs never share a folder.
pub fn folder(run: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if !run.is_empty() && run.len() <= 128 && run.chars().all(plain) {
        return run.to_owned();
    }
    let safe: String = run.chars().map(|c| if plain(c) { c } else { '-' }).take(100).collect();
    format!("{safe}-{}", &Hash::of(run.as_bytes()).to_string()[..8])
}

/// Returns the path of a file of a run, relative to a project.
pub fn path(run: &str, file: &str) -> String {
    format!("{RUNS}/{}/{file}", folder(run))
}

/// Names the file of a checkpoint, without its extension; that is also its id.
pub fn checkpoint_name(step: usize, at: Timestamp) -> String {
    format!("checkpoint-step-{step}-{}", at.as_micros().div_euclid(1000))
}

/// Writes a time as `Date.prototype.toISOString` does.
pub fn iso(time: Timestamp) -> String {
    let text = time.to_string();
    let cut = text.find('.').map_or(text.len(), |dot| dot + 4);
    format!("{}Z", text[..cut.min(text.len())].trim_end_matches('Z'))
}

/// Says whether a file belongs to this family, from its name and its content.
pub fn is_one(name: &str, bytes: &[u8]) -> bool {
    if name.ends_with(".json.gz") {
        return name.starts_with("chk-") || Record::read(name, bytes).is_ok();
    }
    if !name.ends_with(".json") {
        return false;
    }
    if name.starts_with("checkpoint-step-") || name == REGISTRY {
        return true;
    }
    Record::read(name, bytes).is_ok() || (name == RUN && RunRecord::read(bytes).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_milliseconds_as_in_javascript() {
        for (time, expected) in [
            ("2025-01-08T10:00:00Z", "2025-01-08T10:00:00.000Z"),
            ("2025-01-08T10:00:00.123456Z", "2025-01-08T10:00:00.123Z"),
        ] {
            assert_eq!(iso(time.parse().unwrap()), expected);
        }
    }

    #[test]
    fn a_folder_is_one_that_its_readers_accept_and_no_two_runs_share_it() {
        assert_eq!(folder("run-001"), "run-001");
        let (first, second) = (folder("a.b"), folder("a_b"));
        assert_ne!(first, second);
        for name in [first, second, folder(&"ü".repeat(64))] {
            assert!(
                name.len() <= 128 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
                "{name}"
            );
        }
    }
}
