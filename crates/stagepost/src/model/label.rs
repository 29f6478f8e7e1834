//! Labels: names that a person gives to a checkpoint.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{InvalidId, RunId};

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

    /// Both parts follow the rules of run ids: a label is typed on command lines and shown in columns.
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(RunId::new(value)?.as_str().to_owned())),
            None => (text, None),
        };
        Ok(Self { name: RunId::new(name)?.as_str().to_owned(), value })
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
