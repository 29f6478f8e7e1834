//! What Stagepost keeps, as plain values. Nothing here reads or writes anything.

mod id;
mod snapshot;

pub use id::{ArtifactName, CheckpointId, InvalidId, RunId};
pub use snapshot::{FileCounts, InvalidObjectId, ObjectId, RepoPath, SkipReason, Skipped, Snapshot};
