//! What is wrong with a flow file, and where.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use crate::model::without_tokens;

/// A place in a file, both from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// One thing that is wrong with a flow file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// What, in words.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// The error for a file that is no flow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the flow file is not valid: {}", shown(faults))]
pub struct Invalid {
    /// Everything that is wrong with it, from top to bottom; there is at least one.
    pub faults: Vec<Fault>,
}

impl Invalid {
    pub(super) fn one(place: Place, what: impl Into<String>) -> Self {
        Self { faults: vec![Fault { place, what: what.into() }] }
    }
}

/// Finds what looks like a token or a private key in the text of a flow: no run can be started from it.
pub fn token_in(text: &str) -> Option<Fault> {
    let clean = without_tokens(text);
    let before = text.char_indices().zip(clean.chars()).find(|((_, one), other)| one != other);
    let at = match (before, &clean) {
        (Some(((at, _), _)), _) => at,
        (None, Cow::Owned(clean)) => clean.len().min(text.len()),
        (None, Cow::Borrowed(_)) => return None,
    };
    let line = text[..at].rsplit('\n').next().unwrap_or_default();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let place =
        Place { line: count(text[..at].matches('\n').count() + 1), column: count(line.chars().count() + 1) };
    let what = "this looks like a token or a private key; list its variable under `secrets`".to_owned();
    Some(Fault { place, what })
}

fn shown(faults: &[Fault]) -> String {
    let lines: Vec<String> = faults.iter().map(Fault::to_string).collect();
    lines.join("; ")
}
