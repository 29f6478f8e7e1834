//! What Stagepost keeps, as plain values. Nothing here reads or writes anything.

mod id;
mod schema;
mod time;
mod token;

mod artifact;
mod kind;
mod label;
mod snapshot;

mod checkpoint;
mod event;
mod mark;
mod run;

mod canonical;
mod exact;
mod seal;

pub use artifact::{Artifact, BlobRef, Hash, InvalidHash, MediaType};
pub use canonical::canonical;
pub use checkpoint::{Checkpoint, Content, Draft, Parent, Stub, Unplaced};
pub use event::{Event, Topic, WAITING_GATES};
pub use exact::beyond_64_bits;
pub(crate) use exact::{is_beyond_64_bits, may_have_one, number_at};
pub use id::{ArtifactName, CheckpointId, InvalidId, RunId};
pub use kind::{Kind, Phase, Reason, RunKind, Stage, StepStatus, UnknownName};
pub use label::Label;
pub use mark::{Imported, Mark, Progress, Rollback, RollbackMode};
pub use run::Run;
pub use seal::{chain, chain_start};
pub use snapshot::{
    FileCounts, IndexMarks, InvalidObjectId, ObjectId, RepoPath, SkipReason, Skipped, Snapshot,
};
pub use time::{InvalidTimestamp, Timestamp};
pub(crate) use token::TokenStream;
pub use token::{has_tokens, redact_members, redact_text, redact_value, without_tokens, without_tokens_in};
