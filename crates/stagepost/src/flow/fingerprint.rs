//! What a result was made from, in parts that can be compared.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{Hash, canonical};

/// What a result was made from: a short hash for each part, so that a difference can be named.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint {
    parts: BTreeMap<String, String>,
}

impl Fingerprint {
    /// Adds a part.
    pub fn add(&mut self, part: impl Into<String>, content: &[u8]) {
        let hash = Hash::of(content).to_string();
        self.parts.insert(part.into(), hash[..16].to_owned());
    }

    /// Adds a part that is a value.
    pub(super) fn add_value(&mut self, part: impl Into<String>, value: &Value) {
        self.parts.insert(part.into(), Self::hash(value));
    }

    /// The short hash of a value.
    pub(super) fn hash(value: &Value) -> String {
        Hash::of(canonical(value).as_bytes()).to_string()[..16].to_owned()
    }

    /// Returns the short hash of a part.
    pub(super) fn part(&self, name: &str) -> Option<&str> {
        self.parts.get(name).map(String::as_str)
    }

    /// Names the parts in which two differ, also those that only one has.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let names = self.parts.keys().chain(other.parts.keys());
        let differs = |name: &&String| self.parts.get(*name) != other.parts.get(*name);
        let mut names: Vec<String> = names.filter(differs).cloned().collect();
        names.sort();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_named_wherever_it_is() {
        let mut one = Fingerprint::default();
        one.add("command", b"a");
        one.add("file x", b"1");
        let mut other = Fingerprint::default();
        other.add("command", b"b");
        other.add("file y", b"1");
        assert_eq!(one.differences(&other), ["command", "file x", "file y"]);
        assert!(one.differences(&one.clone()).is_empty());
    }
}
