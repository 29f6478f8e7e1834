//! A clock and ids that say the same in every run of a test.

use std::sync::atomic::{AtomicU64, Ordering};

use stagepost::model::{CheckpointId, Timestamp};

/// Hands out times and ids, each later than the one before.
#[derive(Debug, Default)]
pub struct Script {
    ticks: AtomicU64,
    ids: AtomicU64,
    in_order: bool,
}

impl Script {
    /// The first time handed out: 2026-01-31T08:00:00Z.
    const START: i64 = 1_769_846_400_000_000;

    /// Starts at the beginning.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts with the ids after `ids`, so that two scripts can write to one store.
    pub fn after(ids: u64) -> Self {
        Self { ticks: AtomicU64::new(ids), ids: AtomicU64::new(ids), in_order: false }
    }

    /// Hands out ids as one machine makes them, which begin with the time; a benchmark needs what users have.
    pub fn in_order() -> Self {
        Self { in_order: true, ..Self::default() }
    }

    /// Returns the next time, a second and a microsecond later than the last.
    pub fn now(&self) -> Timestamp {
        let tick =
            i64::try_from(self.ticks.fetch_add(1, Ordering::Relaxed)).expect("a test ends before that");
        Timestamp::from_micros(Self::START + tick * 1_000_001).expect("a time in this century")
    }

    /// Returns the next id.
    pub fn id(&self) -> CheckpointId {
        let number = self.ids.fetch_add(1, Ordering::Relaxed) + 1;
        // Otherwise scattered over the first digits, so that short prefixes tell them apart.
        let first = if self.in_order { number as u32 } else { (number as u32).wrapping_mul(0x9e37_79b9) };
        let text = format!("{first:08x}-0000-7000-8000-{number:012x}");
        text.parse().expect("the form of a UUID")
    }
}
