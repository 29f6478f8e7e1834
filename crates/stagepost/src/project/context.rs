//! What a project needs from the world around it, handed in by the front end.

use std::sync::Mutex;
use std::time::SystemTime;

use crate::model::{CheckpointId, Timestamp};
use crate::snapshot::GitProgram;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Returns the time now.
    fn now(&self) -> Timestamp;
}

/// Makes ids.
pub trait Ids: Send + Sync {
    /// Returns an id that was never returned before.
    fn checkpoint(&self, now: Timestamp) -> CheckpointId;
}

/// What a project needs from the world around it.
pub struct Context {
    /// Tells the time.
    pub clock: Box<dyn Clock>,
    /// Makes ids.
    pub ids: Box<dyn Ids>,
    /// Who is at work, as recorded with restores and answers.
    pub who: String,
    /// git, and what it may know of the outside.
    pub git: GitProgram,
}

impl Context {
    /// The machine's clock and random ids.
    pub fn system(who: impl Into<String>, git: GitProgram) -> Self {
        Self { clock: Box::new(SystemClock), ids: Box::new(RandomIds::default()), who: who.into(), git }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("who", &self.who).finish_non_exhaustive()
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        time_of(SystemTime::now())
    }
}

/// A clock may show any time; beyond the year 9999 and before -9999 it is taken to stand still, for such a time cannot be
/// written, and nothing depends on it but ages.
fn time_of(shown: SystemTime) -> Timestamp {
    let beyond = || {
        let late = shown > SystemTime::UNIX_EPOCH;
        if late { jiff::Timestamp::MAX } else { jiff::Timestamp::MIN }
    };
    jiff::Timestamp::try_from(shown).unwrap_or_else(|_| beyond()).into()
}

/// UUIDs of version 7: they sort by time, and within one process they never go backwards.
#[derive(Debug)]
pub struct RandomIds {
    context: Mutex<uuid::ContextV7>,
}

impl Default for RandomIds {
    fn default() -> Self {
        Self { context: Mutex::new(uuid::ContextV7::new()) }
    }
}

impl Ids for RandomIds {
    fn checkpoint(&self, now: Timestamp) -> CheckpointId {
        let micros = u64::try_from(now.as_micros()).unwrap_or(0);
        let (seconds, nanos) = (micros / 1_000_000, u32::try_from(micros % 1_000_000).unwrap_or(0) * 1000);
        let place = {
            let context = self.context.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            uuid::Timestamp::from_unix(&*context, seconds, nanos)
        };
        // The system is asked for the random part after the lock is free, so that threads do not wait for each other's answer.
        CheckpointId::from_uuid(uuid::Uuid::new_v7(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_millisecond_sort_by_age() {
        let (ids, now) = (RandomIds::default(), SystemClock.now());
        let made: Vec<_> = (0..1000).map(|_| ids.checkpoint(now)).collect();
        assert!(made.is_sorted());
        assert!(made.windows(2).all(|pair| pair[0] != pair[1]));
    }
    #[test]
    fn a_clock_that_shows_a_time_beyond_all_dates_stands_still() {
        let seconds = |count| std::time::Duration::from_secs(count);
        let (late, early) = (seconds(300_000_000_000), seconds(400_000_000_000));
        assert_eq!(time_of(SystemTime::UNIX_EPOCH + late), Timestamp::from(jiff::Timestamp::MAX));
        assert_eq!(time_of(SystemTime::UNIX_EPOCH - early), Timestamp::from(jiff::Timestamp::MIN));
        assert_eq!(time_of(SystemTime::UNIX_EPOCH + seconds(1)).as_micros(), 1_000_000);
        let ids = RandomIds::default();
        let end = time_of(SystemTime::UNIX_EPOCH + late);
        assert_ne!(ids.checkpoint(end), ids.checkpoint(end));
    }
}
