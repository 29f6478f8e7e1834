//! What can go wrong with a gate.

use super::{Answer, GateId, Outcome};
use crate::model::Timestamp;
use crate::project;
use crate::store;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The project failed.
    #[error(transparent)]
    Project(#[from] project::Error),
    /// There is no such gate.
    #[error("no gate is called `{}`", name.escape_debug())]
    NotFound {
        /// The name.
        name: String,
    },
    /// Several gates answer to a name.
    #[error("`{}` means {} gates", name.escape_debug(), candidates.len())]
    Ambiguous {
        /// The name.
        name: String,
        /// Those that answer to it.
        candidates: Vec<GateId>,
    },
    /// Somebody answered before.
    #[error("gate `{id}` was answered by {} at {}: {} (`{}`)", answer.by.escape_debug(), answer.at, answer.reply.action, answer.words.escape_debug())]
    Answered {
        /// The gate.
        id: GateId,
        /// The answer that holds.
        answer: Box<Answer>,
    },
    /// The question was withdrawn.
    #[error("gate `{id}` was cancelled by {} at {at}", by.escape_debug())]
    Cancelled {
        /// The gate.
        id: GateId,
        /// Who withdrew it.
        by: String,
        /// When.
        at: Timestamp,
    },
    /// Nobody answered in time.
    #[error("gate `{id}` expired at {at} and counts as {}", outcome.name())]
    Expired {
        /// The gate.
        id: GateId,
        /// When.
        at: Timestamp,
        /// What it counts as.
        outcome: Outcome,
    },
    /// Someone went back to an earlier gate.
    #[error("gate `{id}` is void: {} went back to `{back_to}` at {at}", by.escape_debug())]
    Void {
        /// The gate.
        id: GateId,
        /// Who went back.
        by: String,
        /// To which gate.
        back_to: GateId,
        /// When.
        at: Timestamp,
    },
    /// The gate waits; there is nothing to open again.
    #[error("gate `{id}` is waiting for its answer")]
    StillWaiting {
        /// The gate.
        id: GateId,
    },
    /// What the answer was given to is not what is asked now.
    #[error("what gate `{id}` asks has changed since it was shown")]
    Changed {
        /// The gate.
        id: GateId,
    },
    /// The question could not be answered as it stands.
    #[error("this cannot be asked: {what}")]
    Invalid {
        /// What is wrong with it.
        what: String,
    },
    /// A part of the question would be shown as `***`: nobody would know what a yes to it means.
    #[error("this cannot be asked: {what} has what looks like a token in it, and would be shown as `***`")]
    Unseen {
        /// Which part.
        what: String,
    },
    /// A text that was asked for would be stored and handed back as `***`.
    #[error("gate `{id}` cannot take this answer: it looks like a token, and would be handed back as `***`")]
    TokenAnswer {
        /// The gate.
        id: GateId,
    },
    /// What is stored of a gate cannot be read.
    #[error("what is stored of gate `{}` cannot be read", id.escape_debug())]
    Unreadable {
        /// The gate.
        id: String,
        /// Why.
        source: serde_json::Error,
    },
    /// An asker failed.
    #[error("failed to ask gate `{id}`")]
    Asker {
        /// The gate.
        id: GateId,
        /// Why.
        source: std::io::Error,
    },
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Error::Project(error.into())
    }
}

impl Error {
    /// Says whether somebody or something else was first: nothing was changed by this attempt.
    pub fn is_too_late(&self) -> bool {
        matches!(
            self,
            Error::Answered { .. } | Error::Cancelled { .. } | Error::Expired { .. } | Error::Void { .. }
        )
    }

    /// Says whether the store changed in between.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Error::Project(project::Error::Store(store::Error::Conflict { .. })))
    }
}
