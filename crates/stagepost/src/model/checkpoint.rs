//! An immutable, sealed record of a point in a run.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::canonical::{write_list, write_object, write_shown, write_string};
use super::{Artifact, CheckpointId, Hash, Kind, Label, RunId, Snapshot, Timestamp, canonical, seal};

/// A checkpoint as its maker describes it, before it has its place in the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The id.
    pub id: CheckpointId,
    /// The run it belongs to.
    pub run: RunId,
    /// What it follows.
    pub parent: Parent,
    /// When it was made.
    pub created_at: Timestamp,
    /// What it holds.
    pub content: Content,
}

/// What a new checkpoint follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Parent {
    /// The newest checkpoint of the run, if there is one.
    #[default]
    Head,
    /// A certain checkpoint, also of another run: a fork.
    Checkpoint(CheckpointId),
}

/// What a checkpoint holds, apart from its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Content {
    /// What point of the run it marks.
    pub kind: Kind,
    /// What it is, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Names given to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
    /// What else its maker wants to keep with it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The files as they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
    /// Its named payloads, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
}

impl Content {
    /// Makes content of the given kind that holds nothing yet.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            description: String::new(),
            labels: Vec::new(),
            metadata: Map::new(),
            snapshot: None,
            artifacts: Vec::new(),
        }
    }
}

/// An immutable, sealed record of a point in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// The id.
    pub id: CheckpointId,
    /// The run it belongs to.
    pub run: RunId,
    /// Its number in the run, from 1, without gaps.
    pub seq: u64,
    /// What it follows: the checkpoint before it in the run, or the one it was forked from.
    pub parent: Option<CheckpointId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// What it holds.
    #[serde(flatten)]
    pub content: Content,
    /// The hash over all the above and the parent's seal.
    pub seal: Hash,
}

/// A record in canonical form but for its place in the run, which is known last: whoever gives it one, while others wait,
/// need not write the rest.
#[derive(Debug, Clone)]
pub struct Unplaced {
    /// What comes before the place, in the order of the members.
    before: String,
    after: String,
}

impl Unplaced {
    /// Writes the record of a draft.
    pub fn of(draft: &Draft) -> Self {
        Self::write(&draft.id, &draft.created_at, &draft.content)
    }

    /// Writes it member by member in their order: this is done for every checkpoint that is written or read, and a detour by
    /// way of a JSON value costs several times as much.
    fn write(id: &CheckpointId, created_at: &Timestamp, content: &Content) -> Self {
        let mut out = String::with_capacity(512);
        let mut sign = '{';
        let mut name = |out: &mut String, name: &str| {
            out.push(std::mem::replace(&mut sign, ','));
            out.push_str(name);
        };
        if !content.artifacts.is_empty() {
            name(&mut out, "\"artifacts\":");
            write_list(&mut out, &content.artifacts, Artifact::write_canonical);
        }
        name(&mut out, "\"created_at\":");
        write_shown(&mut out, created_at);
        if !content.description.is_empty() {
            name(&mut out, "\"description\":");
            write_string(&mut out, &content.description);
        }
        name(&mut out, "\"id\":");
        write_shown(&mut out, id);
        name(&mut out, "\"kind\":");
        content.kind.write_canonical(&mut out);
        if !content.labels.is_empty() {
            name(&mut out, "\"labels\":");
            write_list(&mut out, &content.labels, |label, out| write_string(out, &label.to_string()));
        }
        if !content.metadata.is_empty() {
            name(&mut out, "\"metadata\":");
            write_object(&mut out, &content.metadata);
        }
        let snapshot = |snapshot| {
            let value = serde_json::to_value(snapshot).expect("a snapshot has string keys only");
            format!(",\"snapshot\":{}", canonical(&value))
        };
        Self { before: out, after: content.snapshot.as_ref().map(snapshot).unwrap_or_default() }
    }

    /// Writes the whole record, without its seal.
    fn write_placed(&self, out: &mut String, run: &RunId, seq: u64, parent: Option<&CheckpointId>) {
        out.push_str(&self.before);
        out.push_str(",\"parent\":");
        match parent {
            Some(parent) => write_shown(out, parent),
            None => out.push_str("null"),
        }
        out.push_str(",\"run\":");
        write_string(out, run.as_str());
        let _ = write!(out, ",\"seq\":{seq}");
        out.push_str(&self.after);
        out.push('}');
    }
}

impl Checkpoint {
    /// Gives a draft its place and seals it. `before` is the parent's seal, or the run's for a first checkpoint.
    pub fn seal(draft: Draft, seq: u64, parent: Option<CheckpointId>, before: &Hash) -> Self {
        let unplaced = Unplaced::of(&draft);
        Self::place(draft, &unplaced, seq, parent, before)
    }

    /// As [`Checkpoint::seal`], for a draft whose record was written before: `unplaced` *must* be of this draft.
    pub fn place(
        draft: Draft,
        unplaced: &Unplaced,
        seq: u64,
        parent: Option<CheckpointId>,
        before: &Hash,
    ) -> Self {
        let Draft { id, run, parent: _, created_at, content } = draft;
        let write = |out: &mut String| unplaced.write_placed(out, &run, seq, parent.as_ref());
        let seal = seal::seal(seal::CHECKPOINT, Some(before), write);
        Self { id, run, seq, parent, created_at, content, seal }
    }

    /// Computes the seal that this record must carry after `before`.
    pub fn expected_seal(&self, before: &Hash) -> Hash {
        seal::seal(seal::CHECKPOINT, Some(before), |out| self.write_canonical(out))
    }

    /// Writes the record without its seal in canonical form.
    fn write_canonical(&self, out: &mut String) {
        let unplaced = Unplaced::write(&self.id, &self.created_at, &self.content);
        unplaced.write_placed(out, &self.run, self.seq, self.parent.as_ref());
    }

    /// Finds an artifact by name.
    pub fn artifact(&self, name: &str) -> Option<&Artifact> {
        self.content.artifacts.iter().find(|artifact| artifact.name.as_str() == name)
    }

    /// Says whether someone called this point good: by label, or by what it marks.
    pub fn is_good(&self) -> bool {
        self.content.kind.is_good() || self.content.labels.iter().any(|label| label.name() == Label::GOOD)
    }
}

/// What is left of a checkpoint that was pruned: enough for the chain to verify.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stub {
    /// The id.
    pub id: CheckpointId,
    /// The run it belonged to.
    pub run: RunId,
    /// Its number in the run.
    pub seq: u64,
    /// Its seal.
    pub seal: Hash,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ArtifactName, BlobRef, FileCounts, MediaType, Phase, Reason, Stage, StepStatus};
    use serde_json::json;

    fn kinds() -> Vec<Kind> {
        let text = "\"odd\\ \u{1f600}\n".to_owned();
        vec![
            Kind::Manual,
            Kind::State,
            Kind::Phase { phase: Phase::Plan, reason: Reason::SafeState },
            Kind::Stage { task: u64::MAX, stage: Stage::PreValidation },
            Kind::Step { step: text.clone(), status: StepStatus::Failed, attempt: 3 },
            Kind::Iteration { iteration: 2, part: "raw".to_owned() },
            Kind::Decision { gate: "g".to_owned(), answer: text.clone() },
            Kind::Safety { before: text },
        ]
    }

    fn checkpoint(kind: Kind, full: bool) -> Checkpoint {
        let mut content = Content::new(kind);
        if full {
            content.description = "tab\there, \u{7f} and \u{e9}".to_owned();
            content.labels = vec!["good".parse().unwrap(), "a=b=c".parse().unwrap()];
            let odd =
                json!({"b": [1, 2.5, -0.0, 1e21, null], "a": {"\u{fb33}": 1, "\u{1f600}": 2}, "": "\u{0}"});
            content.metadata = odd.as_object().cloned().unwrap();
            for name in ["a", "b/c"] {
                let name = ArtifactName::new(name).unwrap();
                let blob = BlobRef { size: 7, hash: Hash::of(b"x") };
                content.artifacts.push(Artifact { name, media: MediaType::text(), blob });
            }
        }
        let id: CheckpointId = "0190163d-8694-739b-aea5-966c26f8ad91".parse().unwrap();
        let created_at = "2026-01-31T08:00:00.000001Z".parse().unwrap();
        let run = RunId::new("r-\u{fc}\"").unwrap();
        let seal = Hash::of(b"seal");
        Checkpoint { id, run, seq: 12, parent: full.then_some(id), created_at, content, seal }
    }

    fn snapshot() -> Snapshot {
        let id: crate::model::ObjectId = "89abcdef0123456789abcdef0123456789abcdef".parse().unwrap();
        Snapshot {
            commit: id.clone(),
            tree: id.clone(),
            index_tree: Some(id),
            marks: Default::default(),
            head: None,
            branch: Some("main".to_owned()),
            worktree: "main".to_owned(),
            files: FileCounts { total: 3, added: 1, modified: 0, deleted: 2 },
            skipped: vec![],
            included: vec!["x\\y".into()],
            notes: vec!["odd \u{1}".to_owned()],
        }
    }

    #[test]
    fn the_direct_form_is_the_canonical_form() {
        for (kind, full) in kinds().into_iter().flat_map(|kind| [(kind.clone(), false), (kind, true)]) {
            let mut checkpoint = checkpoint(kind, full);
            checkpoint.content.snapshot = full.then(snapshot);
            let mut record = serde_json::to_value(&checkpoint).unwrap();
            record.as_object_mut().unwrap().shift_remove("seal");
            let mut direct = String::new();
            checkpoint.write_canonical(&mut direct);
            assert_eq!(direct, canonical(&record));
        }
    }

    #[test]
    fn a_seal_never_changes() {
        let before = Hash::of(b"before");
        let seals =
            [false, true].map(|full| checkpoint(Kind::Manual, full).expected_seal(&before).to_string());
        let known = [
            "762bd7c839c3e1eaae5b41559a2842581b942cc9620adeb350ca5fcde201d43b",
            "8c68e354586623e3396659577a0ca673d7367d1122e6c86ac16f57cfeddee883",
        ];
        assert_eq!(seals, known);
    }
}
