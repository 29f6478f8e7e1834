//! Waiting for an answer that comes from elsewhere.

use std::time::{Duration, Instant};

use super::{Error, Gate, GateId, Gates};
use crate::model::Topic;
use crate::store::EventQuery;

/// The first nap: someone who answers at once is heard at once.
const SHORTEST: Duration = Duration::from_millis(5);
/// The longest: four looks a second at one row cost nothing that can be measured.
const LONGEST: Duration = Duration::from_millis(250);

impl Gates<'_> {
    /// Waits until the gate does not wait any more, or until `patience` is over.
    ///
    /// It looks at the newest event of the gate with growing naps, up to a quarter of a second. That works on every
    /// file system and for every store, which notices of the operating system do not. The patience is measured by a
    /// clock that nobody can move.
    pub fn wait(&self, id: &GateId, patience: Option<Duration>) -> Result<Gate, Error> {
        let (begun, mut nap) = (Instant::now(), SHORTEST);
        loop {
            let gate = self.settled(id)?;
            // Only the newest place is looked at while nothing happens; the question may be long.
            while self.is_still(&gate)? && patience.is_none_or(|patience| begun.elapsed() + nap < patience) {
                std::thread::sleep(nap);
                nap = (nap * 5 / 4).min(LONGEST);
            }
            let left = patience.map(|patience| patience.saturating_sub(begun.elapsed()));
            if !gate.is_waiting() || left.is_some_and(|left| left.is_zero()) {
                return Ok(gate);
            }
            std::thread::sleep(left.map_or(nap, |left| nap.min(left)));
        }
    }

    /// Whether nothing has happened to a waiting gate since it was read.
    fn is_still(&self, gate: &Gate) -> Result<bool, Error> {
        let query = EventQuery::latest(Topic::Gate, gate.id.as_str());
        let newest = self.project.store().events(&query)?.pop().map_or(0, |(position, _)| position);
        Ok(gate.is_waiting() && newest == gate.position && !gate.is_due(self.now()))
    }
}
