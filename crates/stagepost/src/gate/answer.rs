//! Answering: exactly one answer wins, and only to what was shown.

use super::gates::Line;
use super::record::{Attempt, Moment, Origin};
use super::{Answer, Error, Gate, GateId, Gates, Unclear};
use crate::model::{Hash, has_tokens};
use crate::reply::{Action, Kind};

/// What somebody said at a gate.
#[derive(Debug, Clone)]
pub struct Said {
    /// The words.
    pub words: String,
    /// Who said them; without a name, whoever is at work.
    pub by: Option<String>,
    /// Where they come from.
    pub origin: Origin,
    /// The hash of what they saw, if they know it.
    pub seen: Option<Hash>,
}

impl Said {
    /// Words of a certain origin, by whoever is at work.
    pub fn new(words: impl Into<String>, origin: Origin) -> Self {
        Self { words: words.into(), by: None, origin, seen: None }
    }
}

/// What became of words that were said at a gate.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// They are its answer.
    Answered(Box<Gate>),
    /// They were not understood: the gate waits on.
    Unclear(Box<Gate>, Box<Attempt>),
}

/// Longer words are not kept.
const MOST_BYTES: usize = 256 * 1024;

impl Gates<'_> {
    /// Answers a gate in plain words.
    ///
    /// Of several who answer at once exactly one wins; the others are told by whom it was answered
    /// ([`Error::Answered`]). Words that are not understood are kept, and the gate waits on.
    pub fn answer(&self, id: &GateId, said: &Said) -> Result<Heard, Error> {
        if said.origin == Origin::Timeout {
            return Err(Error::Invalid { what: "silence cannot be said".to_owned() });
        }
        if said.words.len() > MOST_BYTES {
            return Err(Error::Invalid { what: format!("an answer may have {MOST_BYTES} bytes") });
        }
        self.until_won(|| {
            let gate = self.settled(id)?;
            if let Some(error) = gate.too_late() {
                return Err(error);
            }
            if said.seen.is_some_and(|seen| seen != gate.shown) {
                return Err(Error::Changed { id: id.clone() });
            }
            // The text is what was asked for; any other answer means the same without its tokens.
            if gate.prompt.kind == Kind::Input && has_tokens(&said.words) {
                return Err(Error::TokenAnswer { id: id.clone() });
            }
            self.take(&gate, said)
        })
    }

    fn take(&self, gate: &Gate, said: &Said) -> Result<Heard, Error> {
        let reply = gate.prompt.parse(&said.words);
        let by = said.by.clone().unwrap_or_else(|| self.project.context().who.clone());
        let (at, words, origin) = (self.now(), said.words.clone(), said.origin);
        let nothing_said = words.trim().is_empty();
        if reply.action == Action::Clarify && (gate.prompt.unclear == Unclear::AskAgain || nothing_said) {
            let attempt = Attempt { by, at, words, reply, origin };
            let line = Line { id: &gate.id, position: gate.position };
            self.append(&line, &gate.of, Moment::Unclear(attempt.clone()), None, None)?;
            return Ok(Heard::Unclear(Box::new(self.get(&gate.id)?), Box::new(attempt)));
        }
        let shown = gate.shown;
        let answer = described(&reply);
        self.conclude(gate, &answer, |checkpoint| {
            Moment::Answered(Answer { by, at, words, reply, origin, shown, checkpoint })
        })?;
        Ok(Heard::Answered(Box::new(self.get(&gate.id)?)))
    }
}

/// The answer in a few words, for the log.
fn described(reply: &crate::reply::Reply) -> String {
    match reply.details.option_ids.as_slice() {
        [] => reply.action.to_string(),
        ids => format!("{} {}", reply.action, ids.join(", ")),
    }
}
