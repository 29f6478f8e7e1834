//! What a payload of a run is called.

use std::fmt;
use std::str::FromStr;

use super::Error;
use crate::formats::plans;

/// The type of a payload: `raw`, `evaluation`, `final`, `implementation`, `sequence`, `audio`, or a name of one's own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part(String);

/// What the loop keeps for itself: the job, what validators said, and what failed.
pub(super) const JOB: &str = "job";
pub(super) const VALIDATION: &str = "validation";
pub(super) const FAILURE: &str = "failure";

macro_rules! known {
    ($($(#[$doc:meta])* $name:ident = $text:expr;)+) => {
        impl Part {
            $($(#[$doc])* pub fn $name() -> Self { Self($text.to_owned()) })+
        }
    };
}

known! {
    /// A plan as the planner made it.
    raw = plans::RAW;
    /// What the judge said.
    evaluation = plans::EVALUATION;
    /// The approved plan, or the best attempt. (`final` is a word of the language.)
    last = plans::FINAL;
    /// A plan made concrete.
    implementation = plans::IMPLEMENTATION;
    /// Compiled sequence data.
    sequence = plans::SEQUENCE;
    /// Audio features.
    audio = plans::AUDIO;
}

impl Part {
    /// Checks `text` and makes it the name of a type. It becomes part of the name of a file.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        let fault = match text.as_str() {
            JOB | VALIDATION | FAILURE => Some("that name is taken by the program itself"),
            _ if text.len() > 64 => Some("it is longer than 64 bytes"),
            _ if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) => {
                Some("it may have letters, digits, dots, dashes and underscores only")
            }
            _ if !text.starts_with(|first: char| first.is_ascii_alphanumeric()) => {
                Some("it must begin with a letter or digit")
            }
            _ => None,
        };
        match fault {
            Some(why) => Err(Error::Name { what: "a type of checkpoint", text, why }),
            None => Ok(Self(text)),
        }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Part {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

/// Checks the name of a project: it begins the names of its files.
pub(super) fn check_project(text: &str) -> Result<(), Error> {
    let why = match text.chars().next() {
        None => "it is empty",
        Some('.') => "it starts with a dot",
        Some('-') => "it starts with a dash",
        Some(_) if text.len() > 100 => "it is longer than 100 bytes",
        Some(_) if text.contains(['/', '\\']) => "it contains a path separator",
        Some(_) if text.chars().any(char::is_control) => "it contains a control character",
        Some(_) => return Ok(()),
    };
    Err(Error::Name { what: "the name of a project", text: text.to_owned(), why })
}
