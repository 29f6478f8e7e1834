//! How long something may take, as a file says it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::project::parse_duration;

/// How long a command may take: `500ms`, `90s`, `15m`, `2h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^[0-9]+(ms|s|m|h|d|w)$"))]
pub struct TimeLimit(Duration);

impl TryFrom<String> for TimeLimit {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let read = parse_duration(&text).filter(|limit| !limit.is_zero());
        let wrong = || format!("`{}` is no duration such as 90s, 15m or 2h", text.escape_debug());
        read.map(Self).ok_or_else(wrong)
    }
}

impl From<TimeLimit> for String {
    fn from(TimeLimit(limit): TimeLimit) -> Self {
        match (limit.as_secs(), limit.subsec_millis()) {
            (seconds, 0) => format!("{seconds}s"),
            _ => format!("{}ms", limit.as_millis()),
        }
    }
}

impl From<TimeLimit> for Duration {
    fn from(TimeLimit(limit): TimeLimit) -> Self {
        limit
    }
}
