//! How a run stands, in the words of this format, and which may follow which.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words of the format say it")]
pub enum Status {
    Pending,
    InProgress,
    AwaitingApproval,
    HandoffPending,
    HandedOff,
    Paused,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    /// Returns the name used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::AwaitingApproval => "awaiting_approval",
            Status::HandoffPending => "handoff_pending",
            Status::HandedOff => "handed_off",
            Status::Paused => "paused",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }

    /// Returns what may follow.
    pub fn next(self) -> &'static [Status] {
        use Status::{
            AwaitingApproval, Cancelled, Completed, Failed, HandedOff, HandoffPending, InProgress, Paused,
            Pending,
        };
        match self {
            Pending => &[InProgress, Cancelled],
            InProgress => &[Paused, AwaitingApproval, HandoffPending, Completed, Failed],
            AwaitingApproval => &[InProgress, Cancelled, Failed],
            HandoffPending => &[HandedOff, InProgress, Failed],
            HandedOff => &[InProgress, Completed, Failed],
            Paused => &[InProgress, Cancelled],
            Failed => &[InProgress, Cancelled],
            Completed | Cancelled => &[],
        }
    }

    /// Says whether nothing may follow.
    pub fn is_final(self) -> bool {
        self.next().is_empty()
    }
}

/// Finds the shortest way from one status to another that the format allows, without the first; `None` if there is
/// none.
pub fn way(from: Status, to: Status) -> Option<Vec<Status>> {
    let mut ways = VecDeque::from([vec![from]]);
    while let Some(so_far) = ways.pop_front() {
        let last = *so_far.last().expect("a way has a beginning");
        if last == to {
            return Some(so_far[1..].to_vec());
        }
        let further = last.next().iter().filter(|next| !so_far.contains(next));
        ways.extend(further.map(|next| [so_far.as_slice(), &[*next]].concat()));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_given_up_is_paused_first() {
        assert_eq!(way(Status::InProgress, Status::Cancelled), Some(vec![Status::Paused, Status::Cancelled]));
        assert_eq!(way(Status::Pending, Status::Failed), Some(vec![Status::InProgress, Status::Failed]));
        assert_eq!(way(Status::Completed, Status::InProgress), None);
        assert_eq!(way(Status::Paused, Status::Paused), Some(Vec::new()));
    }
}
