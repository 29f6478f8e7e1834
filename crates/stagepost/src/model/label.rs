//! Labels: names that a person gives to a checkpoint.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::id::name_fault;
use super::{CheckpointId, InvalidId, RunId};

/// A label of a checkpoint: `good`, or with a value `release=1.2`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    name: String,
    value: Option<String>,
}

impl Label {
    /// The label that marks a checkpoint as one to go back to.
    pub const GOOD: &'static str = "good";

    /// Returns the part before the equals sign.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the part after the equals sign.
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// Says whether someone who asks for `wanted` means this label: by name alone, or by name and value.
    pub fn answers_to(&self, wanted: &Label) -> bool {
        self.name == wanted.name && (wanted.value.is_none() || self.value == wanted.value)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl FromStr for Label {
    type Err = InvalidId;

    /// Both parts follow the rules of run ids: a label is typed on command lines and shown in columns. What means
    /// something else wherever a checkpoint is named can be no label: nobody would find it.
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let label = Self::read(text)?;
        match is_taken(text) {
            true => Err(InvalidId::new(WHAT, text, "it means a checkpoint already")),
            false => Ok(label),
        }
    }
}

const WHAT: &str = "a label";

impl Label {
    /// Reads a label that was stored, perhaps before some names were refused.
    fn read(text: &str) -> Result<Self, InvalidId> {
        let part = |part| match name_fault(part, RunId::MAX_BYTES) {
            Some(why) => Err(InvalidId::new(WHAT, text, why)),
            None => Ok(part.to_owned()),
        };
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        Ok(Self { name: part(name)?, value: value.map(part).transpose()? })
    }
}

/// Says whether a text means a checkpoint whatever the labels are: `last-good`, `@`, `@-`, `@--`, `@-2`, an id.
fn is_taken(text: &str) -> bool {
    let back = text.strip_prefix('@').map(|back| back.trim_start_matches('-'));
    let digits = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
    let counts = back.is_some_and(|rest| rest.is_empty() || (digits(rest) && text.starts_with("@-")));
    counts || text == RunId::LAST_GOOD || text.parse::<CheckpointId>().is_ok()
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
