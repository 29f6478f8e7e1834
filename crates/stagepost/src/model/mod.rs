//! What Stagepost keeps, as plain values. Nothing here reads or writes anything.

mod id;

pub use id::{ArtifactName, CheckpointId, InvalidId, RunId};
