//! Names of things, as types. Text from outside becomes one of these at the border or is refused there.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// Identifies one checkpoint: a UUID, version 7 for those made here (imported ones keep their own).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CheckpointId(Uuid);

impl CheckpointId {
    /// Wraps a UUID.
    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// Returns the UUID.
    pub fn as_uuid(&self) -> &Uuid {
        &self.0
    }
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for CheckpointId {
    type Err = InvalidId;

    /// Accepts the hyphenated form only, in lower or upper case: one spelling in scripts and columns.
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        if text.len() != 36 {
            return Err(InvalidId::new("a checkpoint id", text, "a UUID has 36 characters"));
        }
        Uuid::try_parse(text)
            .map(Self)
            .map_err(|_| InvalidId::new("a checkpoint id", text, "it is not a UUID"))
    }
}

/// Names a run within a project.
///
/// A run id may become part of a path, a ref or a column on a terminal, so the type refuses everything that
/// could act there: path separators, leading dots and dashes, control characters, white space, and more than
/// 128 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(String);

impl RunId {
    /// The longest run id, in bytes.
    pub const MAX_BYTES: usize = 128;

    /// Checks `text` and makes it a run id.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
        let text = text.into();
        match name_fault(&text, Self::MAX_BYTES) {
            Some(why) => Err(InvalidId::new("a run id", &text, why)),
            None => Ok(Self(text)),
        }
    }

    /// Says whether a new run may be called so. Runs that are there keep their names, so this is no part of what makes
    /// a run id.
    pub fn check_new(&self) -> Result<(), InvalidId> {
        let is_own = |own: &str| {
            self.0.strip_prefix(own).is_some_and(|rest| matches!(rest.chars().next(), None | Some('-')))
        };
        let fault = if Self::OWN.into_iter().any(is_own) {
            "runs of this name are made by `save` and `restore` themselves"
        } else if self.0.starts_with('@') {
            "`@` is short for what is newest"
        } else if self.0 == Self::LAST_GOOD {
            "it means a checkpoint already"
        } else {
            return Ok(());
        };
        Err(InvalidId::new("the name of a new run", &self.0, fault))
    }

    /// What the newest checkpoint that someone called good is found by.
    pub(super) const LAST_GOOD: &'static str = "last-good";
    /// What every work tree has runs of: called so, or in a linked one so with a dash and its name.
    const OWN: [&'static str; 2] = [Self::ADHOC, Self::SAFETY];
    /// The run of what is saved by hand.
    pub(crate) const ADHOC: &'static str = "adhoc";
    /// The run of what is saved before a restore.
    pub(crate) const SAFETY: &'static str = "safety";

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Names an artifact within a checkpoint, such as `state` or `plan.json`.
///
/// Slashes are allowed inside (`out/report.txt`), but no part may be empty, `.` or `..`, so that the name can be
/// exported as a relative path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactName(String);

impl ArtifactName {
    /// The longest artifact name, in bytes.
    pub const MAX_BYTES: usize = 255;

    /// Checks `text` and makes it an artifact name.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
        let text = text.into();
        let fault = if text.len() > Self::MAX_BYTES {
            Some("it is longer than 255 bytes")
        } else {
            text.split('/').find_map(|part| name_fault(part, Self::MAX_BYTES))
        };
        match fault {
            Some(why) => Err(InvalidId::new("an artifact name", &text, why)),
            None => Ok(Self(text)),
        }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Says why `text` may not be a name, or `None` if it may.
pub(super) fn name_fault(text: &str, max_bytes: usize) -> Option<&'static str> {
    let unsafe_char = |c: char| c.is_control() || c.is_whitespace() || is_invisible(c);
    match text.chars().next() {
        None => Some("it is empty"),
        Some('.') => Some("it starts with a dot"),
        Some('-') => Some("it starts with a dash"),
        Some(_) if text.len() > max_bytes => Some("it is longer than 128 bytes"),
        Some(_) if text.contains(['/', '\\', ':']) => Some("it contains a path separator"),
        Some(_) if text.chars().any(unsafe_char) => Some("it contains white space or a control character"),
        Some(_) => None,
    }
}

/// Characters that print as nothing or turn the text around: two names could look the same.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{00ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The error for text that may not be an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` cannot be {what}: {why}", text.escape_debug())]
pub struct InvalidId {
    what: &'static str,
    text: String,
    why: &'static str,
}

impl InvalidId {
    pub(super) fn new(what: &'static str, text: &str, why: &'static str) -> Self {
        const SHOWN: usize = 80;
        let mut shown: String = text.chars().take(SHOWN).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        Self { what, text: shown, why }
    }

    /// Says what the text was to be, where a type borrows the rules of another.
    pub(crate) fn named(self, what: &'static str) -> Self {
        Self { what, ..self }
    }
}

macro_rules! text_id {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

text_id!(RunId);
text_id!(ArtifactName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_that_could_act_elsewhere_are_refused() {
        let long = "a".repeat(129);
        for bad in [
            "",
            ".",
            "..",
            ".x",
            "-x",
            "--",
            "a/b",
            "a\\b",
            "C:x",
            "a b",
            "a\nb",
            "a\u{1b}[31m",
            "a\0",
            "a\u{202e}b",
            &long,
        ] {
            assert!(RunId::new(bad).is_err(), "{bad:?} was accepted");
        }
        for good in ["a", "run-001", "7f3a", "überprüfung", "a.b_c+d", &long[1..]] {
            assert!(RunId::new(good).is_ok(), "{good:?} was refused");
        }
    }

    #[test]
    fn a_new_run_takes_no_name_that_runs_are_given_by_us_or_that_means_another() {
        for taken in ["adhoc", "safety", "adhoc-side", "safety-side", "@", "@-", "@x", "last-good"] {
            assert!(RunId::new(taken).unwrap().check_new().is_err(), "{taken:?} was accepted");
        }
        for free in ["adhocracy", "safety.1", "my-safety", "a@b"] {
            assert!(RunId::new(free).unwrap().check_new().is_ok(), "{free:?} was refused");
        }
    }

    #[test]
    fn artifact_names_stay_below_their_folder() {
        for bad in ["", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", "a/.hidden", "a\nb"] {
            assert!(ArtifactName::new(bad).is_err(), "{bad:?} was accepted");
        }
        assert!(ArtifactName::new("out/report.txt").is_ok());
    }

    #[test]
    fn the_error_shows_the_text_escaped_and_short() {
        let error = RunId::new(format!("\u{1b}[2J{}", "x".repeat(500))).unwrap_err().to_string();
        assert!(error.contains("\\u{1b}[2J") && error.len() < 200, "{error}");
    }

    #[test]
    fn checkpoint_ids_have_one_spelling() {
        let id: CheckpointId = "0190163d-8694-739b-aea5-966c26f8ad91".parse().unwrap();
        assert_eq!(id.to_string(), "0190163d-8694-739b-aea5-966c26f8ad91");
        assert!("0190163d8694739baea5966c26f8ad91".parse::<CheckpointId>().is_err());
        assert!("{0190163d-8694-739b-aea5-966c26f8a}".parse::<CheckpointId>().is_err());
    }
}
