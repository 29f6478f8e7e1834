//! How a run came to where it stands, in the words of the format and in an order that it allows.

use serde_json::Map;

use super::super::{End, Happened, Moment, RunState, Status};
use crate::formats::runs::{self, Transition, iso, way};
use crate::model::{Kind, Timestamp};

/// Says how a run stands, in the words of the format.
pub(super) fn standing(status: Status) -> runs::Status {
    match status {
        Status::Running => runs::Status::InProgress,
        Status::Interrupted => runs::Status::Paused,
        Status::Waiting => runs::Status::AwaitingApproval,
        Status::Completed => runs::Status::Completed,
        Status::Failed => runs::Status::Failed,
        Status::Declined | Status::Cancelled => runs::Status::Cancelled,
    }
}

struct Path {
    current: runs::Status,
    transitions: Vec<Transition>,
}

/// Tells every change of status. Where the format does not allow a change, it is made in several.
pub(super) fn transitions(moments: &[Moment], state: &RunState) -> Vec<Transition> {
    let mut path = Path { current: runs::Status::Pending, transitions: Vec::new() };
    for moment in moments {
        match moment {
            Moment::Happened { at, happened, .. } => match happened {
                Happened::Began { who, .. } => {
                    path.go(runs::Status::InProgress, *at, &format!("driven by {who}"))
                }
                Happened::Waiting { step, .. } => {
                    path.go(runs::Status::AwaitingApproval, *at, &format!("step {step} waits for a person"));
                }
                Happened::Ended { status, why, .. } => {
                    path.go(ended(*status), *at, why.as_deref().unwrap_or("the run ended"));
                }
                _ => {}
            },
            Moment::Checkpoint { checkpoint, .. } if is_progress(&checkpoint.content.kind) => {
                path.go(runs::Status::InProgress, checkpoint.created_at, "a step ended");
            }
            Moment::Gone { gone, .. } => path.go(runs::Status::InProgress, gone.at, "a step ended"),
            Moment::Checkpoint { .. } => {}
        }
    }
    let why = state.why.as_deref().unwrap_or("nobody drives it");
    path.go(standing(state.status), state.changed_at, why);
    path.transitions
}

fn ended(status: End) -> runs::Status {
    standing(status.into())
}

fn is_progress(kind: &Kind) -> bool {
    matches!(kind, Kind::Step { .. } | Kind::Decision { .. })
}

impl Path {
    fn go(&mut self, to: runs::Status, at: Timestamp, reason: &str) {
        // After an end nothing may follow. A run that someone goes on with had not ended.
        while self.current != to && self.current.is_final() {
            match self.transitions.pop() {
                Some(last) => self.current = last.from,
                None => return,
            }
        }
        for next in way(self.current, to).unwrap_or_default() {
            self.transitions.push(Transition {
                from: self.current,
                to: next,
                timestamp: iso(at),
                reason: reason.to_owned(),
                metadata: Map::new(),
            });
            self.current = next;
        }
    }
}
