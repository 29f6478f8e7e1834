//! Points in time, as stored: UTC with microseconds.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time in UTC, exact to the microsecond, written as RFC 3339 (`2026-01-31T08:00:00.000000Z`).
///
/// Order between checkpoints never depends on it: clocks go backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// Makes a timestamp from microseconds since 1970.
    pub fn from_micros(micros: i64) -> Result<Self, InvalidTimestamp> {
        jiff::Timestamp::from_microsecond(micros).map(Self).map_err(|_| InvalidTimestamp(micros.to_string()))
    }

    /// Returns the microseconds since 1970.
    pub fn as_micros(self) -> i64 {
        self.0.as_microsecond()
    }

    /// Returns the milliseconds since 1970, zero for earlier times.
    pub fn as_unix_millis(self) -> u64 {
        u64::try_from(self.0.as_millisecond()).unwrap_or(0)
    }

    /// Returns how long before `later` this was; zero if it was not.
    pub fn until(self, later: Timestamp) -> std::time::Duration {
        let micros = later.as_micros().saturating_sub(self.as_micros());
        std::time::Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }
}

impl From<jiff::Timestamp> for Timestamp {
    /// Drops what is finer than a microsecond.
    fn from(time: jiff::Timestamp) -> Self {
        Self(jiff::Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
    }
}

impl From<Timestamp> for jiff::Timestamp {
    fn from(time: Timestamp) -> Self {
        time.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}", self.0)
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        text.parse::<jiff::Timestamp>().map(Self::from).map_err(|_| InvalidTimestamp(text.to_owned()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The error for text or a number that is no point in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a time such as 2026-01-31T08:00:00Z", .0.escape_debug())]
pub struct InvalidTimestamp(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_six_digits_and_read_back() {
        let time: Timestamp = "2026-01-31T08:00:00.1234567+01:00".parse().unwrap();
        assert_eq!(time.to_string(), "2026-01-31T07:00:00.123456Z");
        assert_eq!(Timestamp::from_micros(time.as_micros()).unwrap(), time);
        assert_eq!(Timestamp::from_micros(0).unwrap().to_string(), "1970-01-01T00:00:00.000000Z");
        assert!(Timestamp::from_micros(i64::MAX).is_err());
    }
}
