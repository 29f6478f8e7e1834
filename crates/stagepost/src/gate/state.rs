//! A gate as its events tell it. Pure: the same events always give the same gate.

use schemars::JsonSchema;
use serde::Serialize;

use super::record::{Answer, Attempt, Deadline, Moment, Of};
use super::{Error, GateId, Outcome, Prompt};
use crate::model::{CheckpointId, Event, Hash, Timestamp};
use crate::reply::Action;

/// A gate: what is asked, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Gate {
    /// What it is called.
    pub id: GateId,
    /// Where it stands.
    #[serde(flatten)]
    pub state: State,
    /// What is asked.
    pub prompt: Prompt,
    /// The hash of what is shown.
    pub shown: Hash,
    /// The run it belongs to.
    pub of: Of,
    /// Who asked.
    pub asked_by: String,
    /// When it was asked last.
    pub asked_at: Timestamp,
    /// When nobody is waited for any longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// The checkpoint of the files as they were when it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<CheckpointId>,
    /// What was said since and not understood.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub unclear: Vec<Attempt>,
    /// Answers that hold no more, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub void_answers: Vec<Answer>,
    /// Who opened it again last, since it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reopened: Option<Reopening>,
    /// Where its newest event is: who writes the next one says so, and is refused if there is a newer one.
    #[serde(skip)]
    pub(super) position: u64,
    /// Where it was asked last.
    #[serde(skip)]
    pub(super) asked_position: u64,
}

/// That a gate was opened again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Reopening {
    /// Who opened it.
    pub by: String,
    /// Why, in words.
    pub why: String,
    /// When.
    pub at: Timestamp,
}

/// Where a gate stands.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// It waits for its answer.
    Waiting,
    /// It was answered.
    Answered {
        /// The answer.
        answer: Box<Answer>,
    },
    /// Nobody answered in time.
    Expired {
        /// What it counts as.
        outcome: Outcome,
        /// When that was noticed.
        at: Timestamp,
        /// The checkpoint of that.
        checkpoint: CheckpointId,
    },
    /// The question was withdrawn.
    Cancelled {
        /// Who withdrew it.
        by: String,
        /// Why, in words.
        why: String,
        /// When.
        at: Timestamp,
        /// The checkpoint of that.
        checkpoint: CheckpointId,
    },
    /// Someone went back to an earlier gate.
    Void {
        /// Who went back.
        by: String,
        /// To which gate.
        back_to: GateId,
        /// When.
        at: Timestamp,
    },
}

/// What a gate lets its run do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing yet.
    Waiting,
    /// Go on: it was agreed to, something was chosen, or the text that was asked for was given.
    Yes,
    /// Anything else. Nothing may be done because of it that needed a yes.
    No,
}

impl State {
    /// Returns the name of the state.
    pub fn name(&self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Answered { .. } => "answered",
            State::Expired { .. } => "expired",
            State::Cancelled { .. } => "cancelled",
            State::Void { .. } => "void",
        }
    }
}

impl Gate {
    /// Tells the gate from its events, oldest first; `None` if it was never asked.
    pub(super) fn of_events(id: &GateId, events: Vec<(u64, Event)>) -> Result<Option<Gate>, Error> {
        let mut gate = None;
        for (position, event) in events {
            let unreadable = |source| Error::Unreadable { id: id.to_string(), source };
            let moment: Moment = serde_json::from_value(event.body).map_err(unreadable)?;
            gate = Self::after(gate, id, position, event.at, moment);
        }
        Ok(gate)
    }

    fn after(gate: Option<Gate>, id: &GateId, position: u64, at: Timestamp, moment: Moment) -> Option<Gate> {
        if let Moment::Asked { prompt, of, by, shown, deadline, files } = moment {
            let void_answers = gate.map(Gate::put_answer_aside).unwrap_or_default();
            return Some(Gate {
                id: id.clone(),
                state: State::Waiting,
                prompt: *prompt,
                shown,
                of,
                asked_by: by,
                asked_at: at,
                deadline,
                files,
                unclear: Vec::new(),
                void_answers,
                reopened: None,
                position,
                asked_position: position,
            });
        }
        let mut gate = gate?;
        gate.position = position;
        match moment {
            Moment::Asked { .. } => {}
            Moment::Unclear(attempt) => gate.unclear.push(attempt),
            Moment::Answered(answer) => gate.state = State::Answered { answer: Box::new(answer) },
            Moment::Expired { outcome, checkpoint, .. } => {
                gate.state = State::Expired { outcome, at, checkpoint };
            }
            Moment::Cancelled { by, why, checkpoint, .. } => {
                gate.state = State::Cancelled { by, why, at, checkpoint };
            }
            Moment::Reopened { by, why } => {
                gate.reopened = Some(Reopening { by, why, at });
                gate.void_answers = gate.clone().put_answer_aside();
                gate.state = State::Waiting;
                gate.unclear.clear();
                // Whoever opens it again wants an answer, not the old time-out.
                gate.deadline = None;
            }
            Moment::Voided { by, back_to } => {
                gate.void_answers = gate.clone().put_answer_aside();
                gate.state = State::Void { by, back_to, at };
            }
        }
        Some(gate)
    }

    fn put_answer_aside(self) -> Vec<Answer> {
        let mut aside = self.void_answers;
        if let State::Answered { answer } = self.state {
            aside.push(*answer);
        }
        aside
    }

    /// Says whether it waits for its answer.
    pub fn is_waiting(&self) -> bool {
        self.state == State::Waiting
    }

    /// Returns the answer that holds.
    pub fn answer(&self) -> Option<&Answer> {
        match &self.state {
            State::Answered { answer } => Some(answer),
            _ => None,
        }
    }

    /// Returns what is to be done, if that is decided.
    pub fn action(&self) -> Option<Action> {
        match &self.state {
            State::Answered { answer } => Some(answer.reply.action),
            State::Cancelled { .. } | State::Expired { outcome: Outcome::Cancel, .. } => Some(Action::Cancel),
            State::Expired { outcome: Outcome::Reject, .. } => Some(Action::Reject),
            State::Expired { outcome: Outcome::Back, .. } => Some(Action::Back),
            State::Waiting | State::Void { .. } => None,
        }
    }

    /// Returns the checkpoint of how it ended.
    pub fn checkpoint(&self) -> Option<CheckpointId> {
        match &self.state {
            State::Answered { answer } => Some(answer.checkpoint),
            State::Expired { checkpoint, .. } | State::Cancelled { checkpoint, .. } => Some(*checkpoint),
            State::Waiting | State::Void { .. } => None,
        }
    }

    /// Says what the gate lets its run do.
    pub fn verdict(&self) -> Verdict {
        match &self.state {
            State::Waiting => Verdict::Waiting,
            State::Answered { answer } => match answer.reply.action {
                Action::Confirm | Action::Approve | Action::Select if answer.shown == self.shown => {
                    Verdict::Yes
                }
                _ => Verdict::No,
            },
            _ => Verdict::No,
        }
    }

    /// Says whether there is a yes to exactly what would be shown now. Anything that changed since needs another one.
    pub fn holds_for(&self, shown: &Hash) -> bool {
        self.verdict() == Verdict::Yes && self.shown == *shown
    }

    /// Says whether the time to answer is over, though nobody wrote that down yet.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.is_waiting() && self.deadline.is_some_and(|deadline| deadline.at <= now)
    }

    /// Says why it takes no answer; `None` if it does.
    pub(super) fn too_late(&self) -> Option<Error> {
        let id = self.id.clone();
        match &self.state {
            State::Waiting => None,
            State::Answered { answer } => Some(Error::Answered { id, answer: answer.clone() }),
            State::Expired { outcome, at, .. } => Some(Error::Expired { id, at: *at, outcome: *outcome }),
            State::Cancelled { by, at, .. } => Some(Error::Cancelled { id, by: by.clone(), at: *at }),
            State::Void { by, back_to, at } => {
                Some(Error::Void { id, by: by.clone(), back_to: back_to.clone(), at: *at })
            }
        }
    }
}
