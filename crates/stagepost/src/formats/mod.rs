//! Files of other systems: exact mirrors of what they write, read leniently and written exactly.
//!
//! Nothing here touches a disk. The names of foreign members appear in these files and nowhere else.

mod json;
pub mod maestro;
pub mod plans;
pub mod runs;
mod shown;
pub mod tasks;

use std::fmt;
use std::str::FromStr;

pub use json::{naive, parse_time, pretty, zoned};
pub use shown::{escaped_without, shown, shown_without};

/// A foreign format that can be imported and exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Format {
    /// Sessions with phases: `.flow/maestro/sessions/<id>/checkpoints.json`.
    Maestro,
    /// Tasks with stages: `.checkpoint-metadata.json` and tags `checkpoint-t*`.
    Tasks,
    /// Runs of a workflow: `.claude/context/runs/<run>/`.
    Runs,
    /// Plans with iterations: `checkpoints/plans/*_iter*_*.json`.
    Plans,
}

impl Format {
    /// Every format.
    pub const ALL: &'static [Format] = &[Format::Maestro, Format::Tasks, Format::Runs, Format::Plans];

    /// Returns the name used in commands and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Maestro => "maestro",
            Format::Tasks => "tasks",
            Format::Runs => "runs",
            Format::Plans => "plans",
        }
    }

    /// Says which format a file is in, from its name and its content.
    pub fn sniff(name: &str, bytes: &[u8]) -> Option<Format> {
        let knows = |format: &&Format| match format {
            Format::Maestro => maestro::is_log(name, bytes),
            Format::Tasks => tasks::is_list(name, bytes),
            Format::Runs => runs::is_one(name, bytes),
            Format::Plans => plans::Name::read(name).is_some(),
        };
        Self::ALL.iter().find(knows).copied()
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let found = Self::ALL.iter().find(|format| format.as_str() == text).copied();
        // The names that the notes on foreign formats use.
        let other = || match text {
            "task-stage" => Some(Format::Tasks),
            "agent-studio" => Some(Format::Runs),
            "twinklr" => Some(Format::Plans),
            _ => None,
        };
        found.or_else(other).ok_or_else(|| UnknownFormat { text: text.to_owned() })
    }
}

/// The error for a name that is no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a format that can be imported or exported", text.escape_debug())]
pub struct UnknownFormat {
    text: String,
}
