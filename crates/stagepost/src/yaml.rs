//! What is wrong with a text in YAML, in words for whoever wrote it.

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Location};

/// Where and what.
pub(crate) fn complaint(error: &Error) -> (Location, String) {
    let error = error.without_snippet();
    let location = error.location().unwrap_or(Location::UNKNOWN);
    (location, said(error, location))
}

fn said(error: &Error, location: Location) -> String {
    match error {
        Error::AliasError { error, .. } => said(error.without_snippet(), location),
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("`{key}` is there twice"),
        Error::DuplicateMappingKey { key: None, .. } => "a key is there twice".to_owned(),
        Error::MultipleDocuments { .. } | Error::Budget { breach: BudgetBreach::Documents { .. }, .. } => {
            "a second document begins here; one is expected".to_owned()
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => "it nests too deep".to_owned(),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::Budget { breach: BudgetBreach::Aliases { .. } | BudgetBreach::Anchors { .. }, .. } => {
            "its aliases stand for more than is allowed".to_owned()
        }
        Error::Budget { .. } => "it holds more than is allowed".to_owned(),
        _ => {
            let text = error.to_string();
            let suffix = format!(" at line {}, column {}", location.line(), location.column());
            match text.strip_suffix(&suffix).unwrap_or(&text) {
                "recursion limit exceeded" => "it nests too deep".to_owned(),
                text => text.to_owned(),
            }
        }
    }
}
