//! What is wrong with a flow file, and where.

use std::fmt;

use serde::Serialize;

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

fn shown(faults: &[Fault]) -> String {
    let lines: Vec<String> = faults.iter().map(Fault::to_string).collect();
    lines.join("; ")
}
