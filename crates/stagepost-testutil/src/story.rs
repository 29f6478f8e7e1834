//! Short ways to say what a test does to a store.

use serde_json::json;
use stagepost::model::{
    Artifact, ArtifactName, BlobRef, Checkpoint, Content, Draft, Event, Kind, Label, MediaType, Parent, Run,
    RunId, RunKind, Topic,
};
use stagepost::store::blob::Cut;
use stagepost::store::{Batch, Error, NewEntry, Store, Written};

use crate::Script;

/// A store, and what happens to it.
pub struct Story<'a> {
    /// The store.
    pub store: &'a dyn Store,
    /// Where times and ids come from.
    pub script: Script,
}

impl<'a> Story<'a> {
    /// Begins a story.
    pub fn new(store: &'a dyn Store) -> Self {
        Self { store, script: Script::new() }
    }

    /// Begins a story whose ids follow each other as those of one machine do.
    pub fn in_order(store: &'a dyn Store) -> Self {
        Self { store, script: Script::in_order() }
    }

    /// Goes on with ids that another story does not use.
    pub fn after(store: &'a dyn Store, ids: u64) -> Self {
        Self { store, script: Script::after(ids) }
    }

    /// Starts a run.
    pub fn run(&self, name: &str) -> RunId {
        let run = Run::new(run_id(name), RunKind::Adhoc, self.script.now());
        self.write(vec![NewEntry::Run(run)]).expect("a run can be started");
        run_id(name)
    }

    /// Makes a draft that holds nothing but a description.
    pub fn draft(&self, run: &RunId, description: &str) -> Draft {
        let content = Content { description: description.to_owned(), ..Content::new(Kind::Manual) };
        Draft {
            id: self.script.id(),
            run: run.clone(),
            parent: Parent::Head,
            created_at: self.script.now(),
            content,
        }
    }

    /// Saves a checkpoint without payloads.
    pub fn save(&self, run: &RunId, description: &str) -> Checkpoint {
        self.save_draft(self.draft(run, description))
    }

    /// Saves a checkpoint with labels.
    pub fn save_labelled(&self, run: &RunId, labels: &[&str]) -> Checkpoint {
        let mut draft = self.draft(run, "labelled");
        draft.content.labels = labels.iter().map(|text| label(text)).collect();
        self.save_draft(draft)
    }

    /// Saves a draft as it is.
    pub fn save_draft(&self, draft: Draft) -> Checkpoint {
        let written = self.write(vec![NewEntry::Checkpoint(draft)]).expect("a sound draft is written");
        one(written)
    }

    /// Saves a checkpoint with one JSON payload named `state`.
    pub fn save_state(&self, run: &RunId, bytes: Vec<u8>, base: Option<BlobRef>) -> Checkpoint {
        one(self.try_save_state(run, bytes, base).expect("a state can be saved"))
    }

    /// As `save_state`, where it may fail.
    pub fn try_save_state(
        &self,
        run: &RunId,
        bytes: Vec<u8>,
        base: Option<BlobRef>,
    ) -> Result<Written, Error> {
        let payload = self.store.prepare(bytes, Cut::Json, base);
        let mut draft = self.draft(run, "state");
        draft.content.artifacts = vec![artifact("state", payload.blob())];
        let entries = vec![NewEntry::Checkpoint(draft)];
        self.store.write(Batch { payloads: vec![payload], entries, expect: Vec::new() })
    }

    /// Appends entries.
    pub fn write(&self, entries: Vec<NewEntry>) -> Result<Written, Error> {
        self.store.write(Batch { entries, ..Batch::default() })
    }

    /// Makes an event.
    pub fn event(&self, topic: Topic, key: &str, text: &str) -> Event {
        Event { topic, key: key.to_owned(), at: self.script.now(), body: json!({ "text": text }) }
    }

    /// Appends an event and returns its position.
    pub fn happen(&self, topic: Topic, key: &str, text: &str) -> u64 {
        let event = self.event(topic, key, text);
        self.write(vec![NewEntry::Event(event)]).expect("an event can be appended").position
    }

    /// Prunes checkpoints.
    pub fn prune(&self, checkpoints: &[&Checkpoint]) -> Result<(), Error> {
        let ids: Vec<_> = checkpoints.iter().map(|checkpoint| checkpoint.id).collect();
        let body = json!({ "checkpoints": ids });
        let event = Event { topic: Topic::Prune, key: "gc".to_owned(), at: self.script.now(), body };
        self.store.prune(&ids, event)
    }

    /// Audits the store and returns what was found, one line each.
    pub fn damage(&self) -> Vec<String> {
        let mut found = Vec::new();
        let audited = self.store.audit(&mut |damage| found.push(damage_line(&damage)));
        audited.expect("an audit reports what it finds and goes on");
        found
    }
}

/// Writes damage as a line: where, and what.
pub fn damage_line(damage: &stagepost::store::Damage) -> String {
    let run = damage.run.as_ref().map_or(String::new(), |run| format!("run {run}, "));
    let id = damage.checkpoint.as_ref().map_or(String::new(), |id| format!("checkpoint {id}, "));
    let name = damage.artifact.as_ref().map_or(String::new(), |name| format!("artifact {name}, "));
    format!("{run}{id}{name}{}", damage.what)
}

/// Makes a run id of text that is one.
pub fn run_id(text: &str) -> RunId {
    RunId::new(text).expect("a sound run id")
}

/// Makes a label of text that is one.
pub fn label(text: &str) -> Label {
    text.parse().expect("a sound label")
}

/// Makes a JSON artifact.
pub fn artifact(name: &str, blob: BlobRef) -> Artifact {
    let name = ArtifactName::new(name).expect("a sound artifact name");
    Artifact { name, media: MediaType::json(), blob }
}

/// Returns the only checkpoint that was written.
pub fn one(written: Written) -> Checkpoint {
    let mut checkpoints = written.checkpoints;
    assert_eq!(checkpoints.len(), 1);
    checkpoints.remove(0)
}

/// A JSON list of messages, about a kilobyte each: words, or noise that cannot be compressed.
pub fn conversation(messages: usize, noise: bool) -> Vec<u8> {
    let text = (0..messages).map(|n| format!(r#"{{"role":"user","content":"{}"}}"#, message(n, noise)));
    format!("[{}]", text.collect::<Vec<_>>().join(",")).into_bytes()
}

/// One message of about a kilobyte.
pub fn message(number: usize, noise: bool) -> String {
    const WORDS: [&str; 24] = [
        "the", "run", "failed", "because", "test", "expected", "file", "was", "not", "found", "in", "folder",
        "please", "check", "whether", "parser", "handles", "empty", "input", "before", "we", "merge", "this",
        "change",
    ];
    let mut state = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut text = String::new();
    while text.len() < 980 {
        if noise {
            text.extend((0..8).map(|_| char::from(b'0' + (next() % 75) as u8)).filter(|c| *c != '\\'));
        } else {
            text.push_str(WORDS[(next() % 24) as usize]);
            text.push(' ');
        }
    }
    text
}
