//! Who asks: someone at a terminal, another program, a callback, a script, or nobody here.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use serde_json::Value;

use super::answer::{Heard, Said};
use super::outside::{self, Bounds};
use super::record::Origin;
use super::{Error, Gate, Gates, Message};
use crate::process::{self, Ended};

/// Asks somebody. It is called again, with what was not understood in the gate, until the answer is clear or the
/// tries of the question are used up.
pub trait Asker {
    /// Asks, and returns what was said; `None` if nobody is there to say anything. An asker *must not* make up an
    /// answer, and *must* say truly where it comes from.
    fn ask(&mut self, gate: &Gate) -> io::Result<Option<Said>>;
}

impl Gates<'_> {
    /// Has a waiting gate asked until it is answered, nobody says anything, or the tries are used up. It may still
    /// wait afterwards; there is never a guess.
    pub fn converse(&self, gate: Gate, asker: &mut dyn Asker) -> Result<Gate, Error> {
        let mut gate = gate;
        for _ in 0..gate.prompt.tries.max(1) {
            if !gate.is_waiting() {
                break;
            }
            let id = gate.id.clone();
            let said = asker.ask(&gate).map_err(|source| Error::Asker { id, source })?;
            let Some(said) = said else { break };
            let said = Said { seen: Some(said.seen.unwrap_or(gate.shown)), ..said };
            gate = match self.answer(&gate.id, &said) {
                Ok(Heard::Answered(gate) | Heard::Unclear(gate, _)) => *gate,
                // Somebody else was faster: their answer holds.
                Err(error) if error.is_too_late() => return self.get(&gate.id),
                // What is asked changed while it was read: what was said was said about something else.
                Err(Error::Changed { .. }) => self.get(&gate.id)?,
                Err(error) => return Err(error),
            };
        }
        Ok(gate)
    }
}

/// Nobody is asked here: the gate waits for another process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pending;

impl Asker for Pending {
    fn ask(&mut self, _: &Gate) -> io::Result<Option<Said>> {
        Ok(None)
    }
}

/// Shows the message and reads a line.
pub struct Lines<R, S> {
    /// Where lines are read from.
    pub input: R,
    /// Shows a message.
    pub show: S,
    /// Whether a person types them.
    pub origin: Origin,
}

impl<R: BufRead, S: FnMut(&Gate, &Message) -> io::Result<()>> Asker for Lines<R, S> {
    fn ask(&mut self, gate: &Gate) -> io::Result<Option<Said>> {
        (self.show)(gate, &Message::of(gate))?;
        let mut line = Vec::new();
        let most = 256 * 1024;
        if self.input.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let words = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
        Ok(Some(Said::new(words, self.origin)))
    }
}

/// Hands the question to a function, such as an agent kit's way to ask the user.
pub struct Callback<F> {
    /// Gets the question in the kits' shape and returns the words, or nothing.
    pub function: F,
    /// Whose words they are.
    pub origin: Origin,
}

impl<F: FnMut(&Value) -> Option<String>> Asker for Callback<F> {
    fn ask(&mut self, gate: &Gate) -> io::Result<Option<Said>> {
        Ok((self.function)(&Message::ask_user(gate)).map(|words| Said::new(words, self.origin)))
    }
}

/// Runs a program that reads the question as JSON and prints the answer in words. Nothing printed, an exit code other
/// than 0, or no end in time means that nobody answered. It runs in a group of its own, so it cannot read from the
/// terminal, and nothing of it is left afterwards.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Whose words it hands on.
    pub origin: Origin,
    /// How long it may take, and who hears what it says beside the answer.
    pub bounds: Bounds,
}

impl Asker for Program {
    fn ask(&mut self, gate: &Gate) -> io::Result<Option<Said>> {
        if self.argv.is_empty() {
            return Ok(None);
        }
        let mut program = process::Program::new(&self.argv);
        program.input = Message::ask_user(gate).to_string().into_bytes();
        let done = outside::run(program, &self.bounds).map_err(io::Error::other)?;
        if done.ended == Ended::TimedOut {
            (self.bounds.told)(b"nobody answered in time: the program that was asked has been ended\n");
        }
        let words = String::from_utf8_lossy(&done.out.unwrap_or_default()).trim().to_owned();
        let answered = done.ended.is_success() && !words.is_empty();
        Ok(answered.then(|| Said::new(words, self.origin)))
    }
}

/// Says what was written down before, then nothing.
#[derive(Debug, Clone)]
pub struct Scripted {
    /// What is left to say.
    pub words: VecDeque<String>,
    /// Whose words they are.
    pub origin: Origin,
}

impl Scripted {
    /// Says these one after the other, as a program.
    pub fn new(words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { words: words.into_iter().map(Into::into).collect(), origin: Origin::Program }
    }
}

impl Asker for Scripted {
    fn ask(&mut self, _: &Gate) -> io::Result<Option<Said>> {
        Ok(self.words.pop_front().map(|words| Said::new(words, self.origin)))
    }
}
