//! Making a checkpoint: the one way there is.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::files::Files;
use super::{Error, Project};
use crate::model::{
    Artifact, ArtifactName, BlobRef, Checkpoint, CheckpointId, Content, Draft, Event, Kind, Label, MediaType,
    Parent, Run, RunId, RunKind, Snapshot, Timestamp, has_tokens,
};
use crate::store::blob::{Cut, WHOLE};
use crate::store::{Batch, Expect, Found, Hold, NewEntry};

/// What to save.
#[derive(Debug, Default)]
pub struct Save {
    /// The run it belongs to and what that is; without one, the run of everything saved by hand.
    pub run: Option<(RunId, RunKind)>,
    /// The record of the run, if this may be what begins it; without one, it says when and what it is.
    pub begins: Option<Run>,
    /// The run is known to be there, so that its record need not be looked at.
    pub begun: bool,
    /// What point of the run it marks; without one, `manual`.
    pub kind: Option<Kind>,
    /// What it follows.
    pub parent: Parent,
    /// What it is, in words.
    pub description: String,
    /// Names to give to it.
    pub labels: Vec<Label>,
    /// What else to keep with it.
    pub metadata: Map<String, Value>,
    /// Its payloads.
    pub artifacts: Vec<NewArtifact>,
    /// How the files are captured with it; without this, they are not.
    pub files: Option<Files>,
    /// The id to give to it, where something else has to name it; without one, a new id.
    pub id: Option<CheckpointId>,
    /// What happened along with it: appended after it, in the same step.
    pub events: Vec<Event>,
    /// What must hold, or nothing is saved.
    pub expect: Vec<Expect>,
    /// Its payloads are read seldom, so that room counts more than time.
    pub tight: bool,
}

/// A payload to save.
#[derive(Debug)]
pub struct NewArtifact {
    /// Its name.
    pub name: ArtifactName,
    /// Where its bytes are.
    pub source: Source,
}

/// Where the bytes of a payload are.
#[derive(Debug)]
pub enum Source {
    /// Here. They are JSON if they can be read as JSON, and text if they are UTF-8.
    Bytes(Vec<u8>),
    /// Here, and they must be JSON.
    Json(Vec<u8>),
    /// Here, and they are JSON.
    Written(WrittenJson),
    /// In a file, of any size.
    File(PathBuf),
}

/// A value as JSON. It was written here, so it need not be read to know that it is JSON.
#[derive(Debug)]
pub struct WrittenJson(Vec<u8>);

impl WrittenJson {
    /// Writes a value.
    pub fn of(value: &impl serde::Serialize) -> Result<Self, serde_json::Error> {
        serde_json::to_vec(value).map(Self)
    }

    /// Says what keeps it from being read back, which can only be its depth.
    fn fault(&self) -> Option<serde_json::Error> {
        if count_opened(&self.0) < SHALLOW { None } else { json_fault(&self.0) }
    }
}

/// Counts the bytes that may open a list or an object. Those two differ in one bit, and counts that fit into a byte are what
/// a processor adds many of at once: this is done for every result of a step.
fn count_opened(json: &[u8]) -> usize {
    let in_part = |part: &[u8]| part.iter().map(|byte| u8::from(byte | 0x20 == b'{')).sum::<u8>();
    json.chunks(usize::from(u8::MAX)).map(|part| usize::from(in_part(part))).sum()
}

/// What opens no more lists and objects than this can be read, however they lie in each other: `serde_json` reads 127.
const SHALLOW: usize = 100;

impl NewArtifact {
    /// The name under which a state is kept.
    pub const STATE: &'static str = "state";

    /// A state: JSON under the name `state`.
    pub fn state(json: Vec<u8>) -> Self {
        Self { name: ArtifactName::new(Self::STATE).expect("`state` is a name"), source: Source::Json(json) }
    }
}

impl Save {
    /// Says what is wrong with the name, the labels and the payloads, without a store: one need not be made for what cannot be
    /// saved.
    pub fn check(&self) -> Result<(), Error> {
        if let (Some((run, _)), None | Some(Kind::Manual)) = (&self.run, &self.kind) {
            run.check_new()?;
        }
        self.check_labels()?;
        for (n, NewArtifact { name, source }) in self.artifacts.iter().enumerate() {
            if self.artifacts[..n].iter().any(|other| other.name == *name) {
                return Err(Error::TwiceNamed { name: name.to_string() });
            }
            match source {
                Source::Json(bytes) => must_be_json(json_fault(bytes), name)?,
                Source::Written(json) => must_be_json(json.fault(), name)?,
                Source::File(path) => drop(open(path)?),
                Source::Bytes(_) => {}
            }
        }
        Ok(())
    }

    /// A label is a name to find a checkpoint by: `***` in the place of a token would find nothing.
    pub(super) fn check_labels(&self) -> Result<(), Error> {
        match self.labels.iter().position(|label| has_tokens(&label.to_string())) {
            None => Ok(()),
            Some(at) => Err(Error::TokenLabel { number: at + 1 }),
        }
    }
}

/// Files from this size on are streamed into the store.
const STREAMED: u64 = 4 << 20;

impl Project {
    /// The run of everything that is saved by hand in this work tree.
    pub fn adhoc_run(&self) -> RunId {
        self.run_of_here(RunId::ADHOC)
    }

    /// A run that each work tree has one of.
    pub(super) fn run_of_here(&self, name: &'static str) -> RunId {
        let linked = self.place.git.as_ref().and_then(|git| git.worktree.as_deref());
        let named = linked.and_then(|worktree| RunId::new(format!("{name}-{worktree}")).ok());
        named.unwrap_or_else(|| RunId::new(name).expect("the name of a run of here is a run id"))
    }

    /// Makes a checkpoint. When this returns, it is durable. If it fails, there is none, not even half of one; only if the
    /// disk fails while several threads save may there be a whole one.
    pub fn save(&self, save: Save) -> Result<Checkpoint, Error> {
        self.check_run(&save)?;
        save.check_labels()?;
        let now = self.context.clock.now();
        let id = save.id.unwrap_or_else(|| self.context.ids.checkpoint(now));
        // From here until the record is written nothing refers to the snapshot; gc must not take it for an orphan.
        let (snapshot, _captured) = match &save.files {
            Some(files) => {
                let held = self.store.hold()?;
                (Some(self.capture(&id, files, &save.description, now)?), Some(held))
            }
            None => (None, None),
        };
        self.append(save, id, now, snapshot)
    }

    /// Refuses a new run that nobody may name so.
    pub(crate) fn check_new_run(&self, run: &RunId) -> Result<(), Error> {
        match run.check_new() {
            Err(fault) if self.store.run(run)?.is_none() => Err(fault.into()),
            _ => Ok(()),
        }
    }

    fn check_run(&self, save: &Save) -> Result<(), Error> {
        match (&save.run, &save.kind) {
            (None, _) | (_, Some(Kind::Safety { .. })) => Ok(()),
            (Some(_), _) if save.begun => Ok(()),
            // What belongs to one of our own runs, such as an answer, may be in it; what is saved by hand is without naming it.
            (Some((run, _)), None | Some(Kind::Manual)) => Ok(run.check_new()?),
            (Some((run, RunKind::Adhoc)), _) if *run == self.adhoc_run() => Ok(()),
            (Some((run, _)), _) => self.check_new_run(run),
        }
    }

    /// Writes the record of a checkpoint whose files are captured. If that fails, they are let go.
    pub(super) fn append(
        &self,
        save: Save,
        id: CheckpointId,
        now: Timestamp,
        snapshot: Option<Snapshot>,
    ) -> Result<Checkpoint, Error> {
        let captured = snapshot.is_some();
        let written = self.write_record(save, id, now, snapshot);
        if written.is_err() && captured && self.is_surely_missing(&id) {
            // Nothing refers to the snapshot; if letting it go fails too, gc will find it.
            let _ = self.snapshots().map(|snapshots| snapshots.release(&[id]));
        }
        written
    }

    /// Says whether a checkpoint that could not be written is not there. One whose log could not be synced may be, and
    /// then it needs what belongs to it.
    pub(super) fn is_surely_missing(&self, id: &CheckpointId) -> bool {
        matches!(self.store.checkpoint(id), Ok(None))
    }

    fn write_record(
        &self,
        save: Save,
        id: CheckpointId,
        now: Timestamp,
        snapshot: Option<Snapshot>,
    ) -> Result<Checkpoint, Error> {
        let (run, run_kind) = save.run.unwrap_or_else(|| (self.adhoc_run(), RunKind::Adhoc));
        // A payload or record takes some hundred bytes, and most often there is one of each.
        let mut batch = Batch {
            payloads: Vec::with_capacity(save.artifacts.len()),
            entries: Vec::with_capacity(2 + save.events.len()),
            expect: save.expect,
        };
        let (artifacts, _held) = self.take_in(save.artifacts, save.tight, &run, &mut batch)?;
        let content = Content {
            kind: save.kind.unwrap_or(Kind::Manual),
            description: save.description,
            labels: save.labels,
            metadata: save.metadata,
            snapshot,
            artifacts,
        };
        if !save.begun {
            let record = save.begins.unwrap_or_else(|| Run::new(run.clone(), run_kind, now));
            batch.entries.push(NewEntry::Run(record));
        }
        batch.entries.push(NewEntry::Checkpoint(Draft {
            id,
            run,
            parent: save.parent,
            created_at: now,
            content,
        }));
        batch.entries.extend(save.events.into_iter().map(NewEntry::Event));
        let mut written = self.store.write(batch)?;
        Ok(written.checkpoints.pop().expect("one checkpoint was written"))
    }

    /// Prepares payloads for a batch. Large files are in the store already when this returns; the hold keeps them
    /// there until the batch is written.
    fn take_in(
        &self,
        new: Vec<NewArtifact>,
        tight: bool,
        run: &RunId,
        batch: &mut Batch,
    ) -> Result<(Vec<Artifact>, Option<Hold>), Error> {
        let (mut artifacts, mut held) = (Vec::<Artifact>::with_capacity(new.len()), None);
        let mut before: Option<Option<Checkpoint>> = None;
        for NewArtifact { name, source } in new {
            if artifacts.iter().any(|other| other.name == name) {
                return Err(Error::TwiceNamed { name: name.to_string() });
            }
            let (media, blob) = match source {
                Source::File(path) if is_large(&path)? => {
                    if held.is_none() {
                        held = Some(self.store.hold()?);
                    }
                    self.stream_in(&path)?
                }
                source => {
                    let (media, bytes) = read(source, &name)?;
                    // What is kept in one piece has nothing to share with what was there before.
                    if bytes.len() >= WHOLE && before.is_none() {
                        before = Some(self.store.head(run)?.and_then(Found::live));
                    }
                    let earlier = before.iter().flatten().find_map(|before| before.artifact(name.as_str()));
                    let base = earlier.map(|artifact| artifact.blob);
                    let payload = self.store.prepare(bytes, cut_of(&media), base);
                    let payload = if tight { payload.tight() } else { payload };
                    let blob = payload.blob();
                    batch.payloads.push(payload);
                    (media, blob)
                }
            };
            artifacts.push(Artifact { name, media, blob });
        }
        artifacts.sort_by(|a, b| a.name.cmp(&b.name));
        Ok((artifacts, held))
    }

    fn stream_in(&self, path: &Path) -> Result<(MediaType, BlobRef), Error> {
        let media =
            if has_json_name(path) && is_json_file(path)? { MediaType::json() } else { MediaType::bytes() };
        let blob = self.store.put(&mut open(path)?, cut_of(&media))?;
        Ok((media, blob))
    }
}

fn cut_of(media: &MediaType) -> Cut {
    if media.is_json() { Cut::Json } else { Cut::Content }
}

fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(|source| Error::File { doing: "open", path: path.to_owned(), source })
}

fn is_large(path: &Path) -> Result<bool, Error> {
    let found = std::fs::metadata(path);
    found.map(|found| found.len() >= STREAMED).map_err(|source| Error::File {
        doing: "read",
        path: path.to_owned(),
        source,
    })
}

fn has_json_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

fn is_json_file(path: &Path) -> Result<bool, Error> {
    let reader = BufReader::with_capacity(1 << 16, open(path)?);
    match serde_json::from_reader::<_, Depth>(reader) {
        Ok(_) => Ok(true),
        Err(error) if error.is_io() => {
            Err(Error::File { doing: "read", path: path.to_owned(), source: error.into() })
        }
        Err(_) => Ok(false),
    }
}

/// Reads a payload and finds out what it is.
fn read(source: Source, name: &ArtifactName) -> Result<(MediaType, Vec<u8>), Error> {
    match source {
        Source::Json(bytes) => {
            must_be_json(json_fault(&bytes), name)?;
            Ok((MediaType::json(), bytes))
        }
        Source::Written(json) => {
            must_be_json(json.fault(), name)?;
            Ok((MediaType::json(), json.0))
        }
        Source::Bytes(bytes) => Ok((media_of(&bytes, true), bytes)),
        Source::File(path) => {
            let mut bytes = Vec::new();
            let read = open(&path)?.read_to_end(&mut bytes);
            read.map_err(|source| Error::File { doing: "read", path: path.clone(), source })?;
            Ok((media_of(&bytes, has_json_name(&path)), bytes))
        }
    }
}

pub(super) fn media_of(bytes: &[u8], may_be_json: bool) -> MediaType {
    if may_be_json && json_fault(bytes).is_none() {
        MediaType::json()
    } else if std::str::from_utf8(bytes).is_ok() {
        MediaType::text()
    } else {
        MediaType::bytes()
    }
}

fn must_be_json(fault: Option<serde_json::Error>, name: &ArtifactName) -> Result<(), Error> {
    fault.map_or(Ok(()), |source| Err(Error::InvalidJson { name: name.to_string(), source }))
}

/// Says what keeps `bytes` from being JSON that can be read back: depth counts too.
fn json_fault(bytes: &[u8]) -> Option<serde_json::Error> {
    // Skipping over values would not notice depth, nor what is wrong inside strings that are not UTF-8.
    serde_json::from_slice::<Depth>(bytes).err()
}

/// Visits everything and keeps nothing.
struct Depth;

impl<'de> serde::Deserialize<'de> for Depth {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Depth)
    }
}

impl<'de> serde::de::Visitor<'de> for Depth {
    type Value = Depth;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Depth, E> {
        Ok(Depth)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Depth, E> {
        Ok(Depth)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Depth, E> {
        Ok(Depth)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Depth, E> {
        Ok(Depth)
    }

    fn visit_str<E>(self, _: &str) -> Result<Depth, E> {
        Ok(Depth)
    }

    fn visit_unit<E>(self) -> Result<Depth, E> {
        Ok(Depth)
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Depth, A::Error> {
        while items.next_element::<Depth>()?.is_some() {}
        Ok(Depth)
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut members: A) -> Result<Depth, A::Error> {
        while members.next_entry::<Depth, Depth>()?.is_some() {}
        Ok(Depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_opens_is_counted_in_parts_of_any_length() {
        for length in [0, 1, 254, 255, 256, 1000] {
            assert_eq!(count_opened(&vec![b'['; length]), length);
            let mixed: Vec<u8> = (0..length).map(|n| b"{x[}]\"\x5a\x5c"[n % 8]).collect();
            let opened = mixed.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
            assert_eq!(count_opened(&mixed), opened);
        }
    }
}
