//! When a failure is to be answered with a rollback.

use std::fmt;

use serde::Serialize;

/// What is known of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// How often it was tried.
    pub attempts: u32,
    /// How often it may be tried.
    pub max_attempts: u32,
    /// What sort of error it was, such as `transient`, `permanent`, `resource_exhausted` or `validation_failed`.
    pub category: String,
    /// The error itself, such as `disk_full`.
    pub error_type: String,
    /// Whether some of the work was done.
    pub has_partial_progress: bool,
}

impl Default for Failure {
    fn default() -> Self {
        let (category, error_type) = (String::new(), String::new());
        Self { attempts: 0, max_attempts: 3, category, error_type, has_partial_progress: false }
    }
}

/// Why a rollback is called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Trigger {
    /// It was tried often enough.
    OutOfAttempts,
    /// Trying again cannot help.
    Permanent,
    /// Something ran out halfway.
    ExhaustedHalfway,
    /// Validation failed twice.
    ValidationFailedAgain,
    /// An error after which nothing on disk can be trusted.
    Critical,
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Trigger::OutOfAttempts => "it was tried as often as allowed",
            Trigger::Permanent => "the error is permanent",
            Trigger::ExhaustedHalfway => "a resource ran out halfway",
            Trigger::ValidationFailedAgain => "validation failed more than once",
            Trigger::Critical => "after such an error the files cannot be trusted",
        })
    }
}

/// Errors that call for a rollback by themselves.
const CRITICAL: [&str; 5] =
    ["disk_full", "permission_denied", "corruption", "database_connection_lost", "network_partition"];

/// Decides whether a failure calls for a rollback, and why.
pub fn should_rollback(failure: &Failure) -> Option<Trigger> {
    let kind = failure.error_type.to_ascii_lowercase();
    let is = |word: &str| failure.category.eq_ignore_ascii_case(word) || kind == word;
    if failure.attempts >= failure.max_attempts {
        Some(Trigger::OutOfAttempts)
    } else if is("permanent") {
        Some(Trigger::Permanent)
    } else if is("resource_exhausted") && failure.has_partial_progress {
        Some(Trigger::ExhaustedHalfway)
    } else if is("validation_failed") && failure.attempts >= 2 {
        Some(Trigger::ValidationFailedAgain)
    } else {
        CRITICAL.iter().any(|word| kind.contains(word)).then_some(Trigger::Critical)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_and_its_edge() {
        let failure = |attempts, category: &str, error_type: &str, has_partial_progress| Failure {
            attempts,
            category: category.into(),
            error_type: error_type.into(),
            has_partial_progress,
            ..Failure::default()
        };
        let cases = [
            (failure(2, "transient", "timeout", true), None),
            (failure(3, "transient", "timeout", false), Some(Trigger::OutOfAttempts)),
            (failure(0, "permanent", "x", false), Some(Trigger::Permanent)),
            (failure(1, "resource_exhausted", "x", false), None),
            (failure(1, "resource_exhausted", "x", true), Some(Trigger::ExhaustedHalfway)),
            (failure(1, "validation_failed", "x", true), None),
            (failure(2, "validation_failed", "x", false), Some(Trigger::ValidationFailedAgain)),
            (failure(0, "", "os: Disk_Full (28)", false), Some(Trigger::Critical)),
            (failure(0, "", "", false), None),
        ];
        for (failure, expected) in cases {
            assert_eq!(should_rollback(&failure), expected, "{failure:?}");
        }
    }
}
