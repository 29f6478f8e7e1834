//! What differs between the artifacts of two checkpoints.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use serde::Serialize;
use serde_json::{Map, Value};
use similar::{Algorithm, DiffTag, TextDiff, capture_diff_slices};

use super::{Error, Project};
use crate::model::{Artifact, Checkpoint, beyond_64_bits, canonical};

/// What differs between two checkpoints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diff {
    /// The artifacts that differ, by name.
    pub artifacts: Vec<ArtifactChange>,
}

/// An artifact that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArtifactChange {
    /// Its name.
    pub name: String,
    /// How many bytes it had; `None` if it was not there.
    pub size_before: Option<u64>,
    /// How many bytes it has; `None` if it is gone.
    pub size_after: Option<u64>,
    /// What differs inside.
    #[serde(flatten)]
    pub difference: Difference,
}

/// What differs inside an artifact.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "as", content = "changes", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Difference {
    /// It was not there before.
    Added,
    /// It is gone.
    Removed,
    /// Both are JSON: what differs, by path.
    Json(Vec<Change>),
    /// Both are text: a unified diff.
    Text(String),
    /// At least one is neither, or too large to be compared.
    Bytes,
}

/// A difference between two JSON values; `path` is a JSON Pointer (RFC 6901). Places in lists are counted in the
/// value that has the element.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// Something is there that was not.
    Added {
        /// Where.
        path: String,
        /// What.
        value: Value,
    },
    /// Something is gone.
    Removed {
        /// Where it was.
        path: String,
        /// What it was.
        value: Value,
    },
    /// Something is different.
    Changed {
        /// Where.
        path: String,
        /// What it was.
        before: Value,
        /// What it is.
        after: Value,
    },
}

/// Larger payloads are only said to differ.
const LARGEST_COMPARED: u64 = 64 << 20;

impl Project {
    /// Compares the artifacts of two checkpoints; `only` limits it to some names, which one of the two must have.
    pub fn diff(&self, before: &Checkpoint, after: &Checkpoint, only: &[String]) -> Result<Diff, Error> {
        let is_nowhere = |name: &&String| before.artifact(name).is_none() && after.artifact(name).is_none();
        if let Some(name) = only.iter().find(is_nowhere) {
            return Err(Error::NoArtifact { id: after.id, name: name.clone() });
        }
        let names: BTreeSet<&str> = [before, after]
            .iter()
            .flat_map(|checkpoint| checkpoint.content.artifacts.iter().map(|artifact| artifact.name.as_str()))
            .filter(|name| only.is_empty() || only.iter().any(|wanted| wanted == name))
            .collect();
        let mut artifacts = Vec::new();
        for name in names {
            let (old, new) = (before.artifact(name), after.artifact(name));
            if old.map(|old| old.blob) == new.map(|new| new.blob) {
                continue;
            }
            artifacts.push(ArtifactChange {
                name: name.to_owned(),
                size_before: old.map(|old| old.blob.size),
                size_after: new.map(|new| new.blob.size),
                difference: self.difference(old, new)?,
            });
        }
        Ok(Diff { artifacts })
    }

    fn difference(&self, old: Option<&Artifact>, new: Option<&Artifact>) -> Result<Difference, Error> {
        let (old, new) = match (old, new) {
            (Some(old), Some(new)) => (old, new),
            (None, _) => return Ok(Difference::Added),
            (_, None) => return Ok(Difference::Removed),
        };
        if old.blob.size.max(new.blob.size) > LARGEST_COMPARED {
            return Ok(Difference::Bytes);
        }
        let (before, after) = (self.store.load(&old.blob)?, self.store.load(&new.blob)?);
        // Values would hold such numbers rounded: two that differ would look the same.
        let exact = |bytes: &[u8]| beyond_64_bits(bytes).is_none();
        if old.media.is_json()
            && new.media.is_json()
            && exact(&before)
            && exact(&after)
            && let (Ok(before), Ok(after)) = (serde_json::from_slice(&before), serde_json::from_slice(&after))
        {
            return Ok(Difference::Json(json_changes(&before, &after)));
        }
        match (String::from_utf8(before), String::from_utf8(after)) {
            (Ok(before), Ok(after)) => Ok(Difference::Text(unified(&before, &after))),
            _ => Ok(Difference::Bytes),
        }
    }
}

fn unified(before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().context_radius(3).to_string()
}

/// Lists what differs between two JSON values.
pub(crate) fn json_changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare(&mut changes, "", before, after);
    changes
}

fn compare(changes: &mut Vec<Change>, path: &str, before: &Value, after: &Value) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => compare_objects(changes, path, before, after),
        (Value::Array(before), Value::Array(after)) => compare_lists(changes, path, before, after),
        _ if before == after => {}
        _ => changes.push(Change::Changed {
            path: path.to_owned(),
            before: before.clone(),
            after: after.clone(),
        }),
    }
}

fn compare_objects(
    changes: &mut Vec<Change>,
    path: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) {
    for (name, old) in before {
        let path = member(path, name);
        match after.get(name) {
            Some(new) => compare(changes, &path, old, new),
            None => changes.push(Change::Removed { path, value: old.clone() }),
        }
    }
    for (name, new) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
        changes.push(Change::Added { path: member(path, name), value: new.clone() });
    }
}

/// Matches equal elements first, so that something put in front does not make everything after it differ.
fn compare_lists(changes: &mut Vec<Change>, path: &str, before: &[Value], after: &[Value]) {
    let (mut old, mut new) = (0, 0);
    for (next_old, next_new) in equal_elements(before, after).into_iter().chain([(before.len(), after.len())])
    {
        compare_stretch(changes, path, (before, old..next_old), (after, new..next_new));
        (old, new) = (next_old + 1, next_new + 1);
    }
}

/// Pairs equal elements up, in order. Elements that only one side has cannot be paired and are left out beforehand: with
/// many of them, looking for the shortest way from one list to the other would take long.
fn equal_elements(before: &[Value], after: &[Value]) -> Vec<(usize, usize)> {
    let marks = |list: &[Value]| -> Vec<[u8; 32]> {
        list.iter().map(|item| *blake3::hash(canonical(item).as_bytes()).as_bytes()).collect()
    };
    let (old, new) = (marks(before), marks(after));
    let shared = |list: &[[u8; 32]], other: &[[u8; 32]]| -> (Vec<usize>, Vec<[u8; 32]>) {
        let other: HashSet<&[u8; 32]> = other.iter().collect();
        let found = list.iter().enumerate().filter(|(_, mark)| other.contains(mark));
        found.map(|(place, mark)| (place, *mark)).unzip()
    };
    let ((old_places, old_marks), (new_places, new_marks)) = (shared(&old, &new), shared(&new, &old));
    let ops = capture_diff_slices(Algorithm::Myers, &old_marks, &new_marks).into_iter();
    let equal = ops.filter(|op| op.tag() == DiffTag::Equal);
    equal
        .flat_map(|op| op.old_range().zip(op.new_range()))
        .map(|(old, new)| (old_places[old], new_places[new]))
        .collect()
}

/// Compares what lies between two pairs of equal elements: in order, and what one side has more of.
fn compare_stretch(
    changes: &mut Vec<Change>,
    path: &str,
    (before, old): (&[Value], Range<usize>),
    (after, new): (&[Value], Range<usize>),
) {
    let common = old.len().min(new.len());
    for (a, b) in old.clone().zip(new.clone()) {
        compare(changes, &member(path, &b.to_string()), &before[a], &after[b]);
    }
    for index in old.skip(common) {
        changes
            .push(Change::Removed { path: member(path, &index.to_string()), value: before[index].clone() });
    }
    for index in new.skip(common) {
        changes.push(Change::Added { path: member(path, &index.to_string()), value: after[index].clone() });
    }
}

fn member(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn paths(before: Value, after: Value) -> Vec<String> {
        let shown = |change: Change| match change {
            Change::Added { path, value } => format!("+{path}={value}"),
            Change::Removed { path, value } => format!("-{path}={value}"),
            Change::Changed { path, before, after } => format!("~{path}={before}>{after}"),
        };
        json_changes(&before, &after).into_iter().map(shown).collect()
    }

    #[test]
    fn members_are_compared_by_name_and_paths_are_pointers() {
        let before = json!({"a": 1, "b": {"x/y": [1, 2]}, "gone": null});
        let after = json!({"b": {"x/y": [1, 3]}, "a": 1, "new~": true});
        assert_eq!(paths(before, after), ["~/b/x~1y/1=2>3", "-/gone=null", "+/new~0=true"]);
    }

    #[test]
    fn an_element_put_in_front_is_one_change() {
        let before = json!([{"id": 1}, {"id": 2}, {"id": 3}]);
        let after = json!([{"id": 0}, {"id": 1}, {"id": 2}, {"id": 3, "more": 1}]);
        assert_eq!(paths(before, after), ["+/0={\"id\":0}", "+/3/more=1"]);
    }

    #[test]
    fn equal_values_and_other_types() {
        assert!(paths(json!({"a": [1.0, "x"]}), json!({"a": [1.0, "x"]})).is_empty());
        assert_eq!(paths(json!([]), json!({})), ["~=[]>{}"]);
    }
}
