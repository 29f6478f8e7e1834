//! A store that lives as long as the process: for tests, dry runs and programs that need no more.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{Cursor, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::blob::{Cut, Prepared};
use super::check::{check_prune, check_record, redact_record};
use super::{
    Audited, Batch, Collected, Damage, Error, EventQuery, Expect, Found, Hold, Listed, NewEntry, Query,
    Store, Usage, Written,
};
use crate::model::{BlobRef, Checkpoint, CheckpointId, Draft, Event, Hash, Parent, Run, RunId, Stub, Topic};

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    inner: Mutex<Inner>,
    holders: Arc<Holders>,
}

#[derive(Debug, Default)]
struct Inner {
    journal: Vec<Entry>,
    by_id: HashMap<CheckpointId, usize>,
    runs: HashMap<RunId, (Run, Vec<usize>)>,
    blobs: BTreeMap<BlobRef, Arc<Vec<u8>>>,
}

#[derive(Debug)]
enum Entry {
    Run(Run),
    Checkpoint(Box<Checkpoint>),
    Stub(Stub),
    Event(Event),
}

impl MemoryStore {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes part in holding as soon as `may` says so of the number of those who hold.
    fn take_part(&self, may: fn(usize) -> bool, as_many: usize) -> Result<Holder, Error> {
        let holders = self.holders.count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.holders.changed.wait_timeout_while(holders, PATIENCE, |holders| !may(*holders));
        let (mut holders, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return Err(Error::Busy { waited: PATIENCE });
        }
        *holders += as_many;
        Ok(Holder { of: self.holders.clone(), as_many })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Appends a batch, or takes back what of it was appended.
    fn write(&mut self, mut batch: Batch) -> Result<Written, Error> {
        if let Some(broken) = batch.expect.iter().find(|expectation| !self.holds(expectation)) {
            return Err(Error::Conflict { what: broken.to_string() });
        }
        let (length, mut added) = (self.journal.len(), Vec::new());
        for payload in std::mem::take(&mut batch.payloads) {
            if self.blobs.insert(payload.blob, payload.bytes).is_none() {
                added.push(payload.blob);
            }
        }
        self.append(batch.entries).inspect_err(|_| self.take_back(length, &added))
    }

    fn take_back(&mut self, length: usize, blobs: &[BlobRef]) {
        for entry in self.journal.drain(length..) {
            match entry {
                Entry::Run(run) => drop(self.runs.remove(&run.id)),
                Entry::Checkpoint(one) => {
                    self.by_id.remove(&one.id);
                    self.runs.get_mut(&one.run).and_then(|(_, line)| line.pop());
                }
                Entry::Stub(_) | Entry::Event(_) => {}
            }
        }
        blobs.iter().for_each(|blob| drop(self.blobs.remove(blob)));
    }

    fn append(&mut self, entries: Vec<NewEntry>) -> Result<Written, Error> {
        let mut checkpoints = Vec::new();
        for entry in entries {
            check_record(&entry)?;
            match entry {
                NewEntry::Run(run) => self.append_run(run)?,
                NewEntry::Checkpoint(draft) => checkpoints.push(self.append_checkpoint(draft)?),
                NewEntry::Event(event) => self.journal.push(Entry::Event(event)),
            }
        }
        Ok(Written { checkpoints, position: self.journal.len() as u64 })
    }

    fn holds(&self, expectation: &Expect) -> bool {
        match expectation {
            Expect::NewRun(run) => !self.runs.contains_key(run),
            Expect::Head(run, seq) => self.runs.get(run).map_or(0, |(_, line)| line.len() as u64) == *seq,
            Expect::LatestEvent(topic, key, position) => {
                self.events(*topic, Some(key)).last().map_or(0, |(at, _)| *at) == *position
            }
        }
    }

    fn append_run(&mut self, run: Run) -> Result<(), Error> {
        if let Some((there, _)) = self.runs.get(&run.id) {
            let what =
                || format!("run `{}` is there, and its kind is {}, not {}", run.id, there.kind, run.kind);
            return if there.kind == run.kind { Ok(()) } else { Err(Error::Conflict { what: what() }) };
        }
        self.runs.insert(run.id.clone(), (run.clone(), Vec::new()));
        self.journal.push(Entry::Run(run));
        Ok(())
    }

    fn append_checkpoint(&mut self, draft: Draft) -> Result<Checkpoint, Error> {
        if self.by_id.contains_key(&draft.id) {
            return Err(Error::Conflict { what: format!("checkpoint {} is there already", draft.id) });
        }
        if let Some(missing) = draft.content.artifacts.iter().find(|one| !self.blobs.contains_key(&one.blob))
        {
            return Err(Error::MissingBlob { blob: missing.blob });
        }
        let (run, line) =
            self.runs.get(&draft.run).ok_or_else(|| Error::MissingRun { run: draft.run.clone() })?;
        let (parent, before) = match (draft.parent, line.last()) {
            (Parent::Checkpoint(id), _) => {
                let index = *self.by_id.get(&id).ok_or(Error::MissingCheckpoint { id })?;
                (Some(id), self.seal_at(index))
            }
            (Parent::Head, Some(head)) => (self.found(*head).map(|found| found.id()), self.seal_at(*head)),
            (Parent::Head, None) => (None, run.seal()),
        };
        let sealed = Checkpoint::seal(draft, line.len() as u64 + 1, parent, &before);
        let index = self.journal.len();
        self.by_id.insert(sealed.id, index);
        if let Some((_, line)) = self.runs.get_mut(&sealed.run) {
            line.push(index);
        }
        self.journal.push(Entry::Checkpoint(Box::new(sealed.clone())));
        Ok(sealed)
    }

    fn seal_at(&self, index: usize) -> Hash {
        match &self.journal[index] {
            Entry::Run(run) => run.seal(),
            Entry::Checkpoint(checkpoint) => checkpoint.seal,
            Entry::Stub(stub) => stub.seal,
            Entry::Event(event) => event.seal(),
        }
    }

    fn found(&self, index: usize) -> Option<Found> {
        match self.journal.get(index)? {
            Entry::Checkpoint(checkpoint) => Some(Found::Live(checkpoint.clone())),
            Entry::Stub(stub) => Some(Found::Pruned(stub.clone())),
            _ => None,
        }
    }

    fn events(&self, topic: Topic, key: Option<&String>) -> Vec<(u64, &Event)> {
        let entries = (1..).zip(&self.journal);
        let events = entries.filter_map(|(position, entry)| match entry {
            Entry::Event(event) if event.topic == topic && key.is_none_or(|key| event.key == *key) => {
                Some((position, event))
            }
            _ => None,
        });
        events.collect()
    }

    fn checkpoints(&self) -> impl DoubleEndedIterator<Item = (u64, &Checkpoint)> {
        self.journal.iter().enumerate().filter_map(|(index, entry)| match entry {
            Entry::Checkpoint(checkpoint) => Some((index as u64 + 1, &**checkpoint)),
            _ => None,
        })
    }

    fn prune(&mut self, ids: &[CheckpointId], event: Event) -> Result<(), Error> {
        check_prune(ids, &event)?;
        check_record(&NewEntry::Event(event.clone()))?;
        let indexes: Option<Vec<usize>> = ids.iter().map(|id| self.by_id.get(id).copied()).collect();
        let missing = || ids.iter().copied().find(|id| !self.by_id.contains_key(id));
        let Some(indexes) = indexes else {
            return missing().map_or(Ok(()), |id| Err(Error::MissingCheckpoint { id }));
        };
        for index in indexes {
            if let Entry::Checkpoint(checkpoint) = &self.journal[index] {
                let Checkpoint { id, run, seq, seal, .. } = (**checkpoint).clone();
                self.journal[index] = Entry::Stub(Stub { id, run, seq, seal });
            }
        }
        self.journal.push(Entry::Event(event));
        Ok(())
    }
}

impl Store for MemoryStore {
    fn write(&self, mut batch: Batch) -> Result<Written, Error> {
        batch.entries.iter_mut().for_each(redact_record);
        self.lock().write(batch)
    }

    fn checkpoint(&self, id: &CheckpointId) -> Result<Option<Found>, Error> {
        let inner = self.lock();
        Ok(inner.by_id.get(id).and_then(|index| inner.found(*index)))
    }

    fn matching(&self, prefix: &str, limit: usize) -> Result<Vec<CheckpointId>, Error> {
        let inner = self.lock();
        let mut ids: Vec<_> =
            inner.by_id.keys().copied().filter(|id| id.to_string().starts_with(prefix)).collect();
        ids.sort_unstable();
        ids.truncate(limit);
        Ok(ids)
    }

    fn at(&self, run: &RunId, seq: u64) -> Result<Option<Found>, Error> {
        let inner = self.lock();
        let index = usize::try_from(seq).ok().and_then(|seq| seq.checked_sub(1));
        let place = index.and_then(|index| inner.runs.get(run)?.1.get(index));
        Ok(place.and_then(|place| inner.found(*place)))
    }

    fn head(&self, run: &RunId) -> Result<Option<Found>, Error> {
        let inner = self.lock();
        Ok(inner.runs.get(run).and_then(|(_, line)| inner.found(*line.last()?)))
    }

    fn list(&self, query: &Query) -> Result<Vec<Listed>, Error> {
        let inner = self.lock();
        let wanted = |checkpoint: &Checkpoint| {
            query.run.as_ref().is_none_or(|run| checkpoint.run == *run)
                && query.label.as_ref().is_none_or(|wanted| {
                    checkpoint.content.labels.iter().any(|label| label.answers_to(wanted))
                })
                && (!query.good || checkpoint.is_good())
                && query.since.is_none_or(|since| checkpoint.created_at >= since)
        };
        let before = query.before.unwrap_or(u64::MAX);
        let found = inner.checkpoints().rev().filter(|(position, one)| *position < before && wanted(one));
        let limited = found.take(query.limit.unwrap_or(usize::MAX));
        Ok(limited.map(|(position, one)| Listed { position, checkpoint: one.clone() }).collect())
    }

    fn run(&self, id: &RunId) -> Result<Option<Run>, Error> {
        Ok(self.lock().runs.get(id).map(|(run, _)| run.clone()))
    }

    fn runs(&self) -> Result<Vec<(Run, u64)>, Error> {
        let inner = self.lock();
        let runs = inner.journal.iter().filter_map(|entry| match entry {
            Entry::Run(run) => {
                let line = &inner.runs.get(&run.id)?.1;
                Some((run.clone(), line.last().map_or(0, |index| *index as u64 + 1)))
            }
            _ => None,
        });
        Ok(runs.collect())
    }

    fn events(&self, query: &EventQuery) -> Result<Vec<(u64, Event)>, Error> {
        let inner = self.lock();
        let events = inner.events(query.topic, query.key.as_ref());
        let skipped = events.len().saturating_sub(query.last.unwrap_or(usize::MAX));
        Ok(events.into_iter().skip(skipped).map(|(position, event)| (position, event.clone())).collect())
    }

    fn prepare(&self, bytes: Vec<u8>, cut: Cut, base: Option<BlobRef>) -> Prepared {
        Prepared::of(bytes, cut, base)
    }

    fn put(&self, source: &mut dyn Read, cut: Cut) -> Result<BlobRef, Error> {
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).map_err(Error::Source)?;
        let payload = Prepared::of(bytes, cut, None);
        self.lock().blobs.insert(payload.blob, payload.bytes);
        Ok(payload.blob)
    }

    fn hold(&self) -> Result<Hold, Error> {
        Ok(Hold::new(self.take_part(|holders| holders < ALONE, 1)?))
    }

    fn alone(&self) -> Result<Hold, Error> {
        Ok(Hold::new(self.take_part(|holders| holders == 0, ALONE)?))
    }

    fn open(&self, blob: &BlobRef) -> Result<Box<dyn Read + '_>, Error> {
        Ok(Box::new(Cursor::new(self.load(blob)?)))
    }

    fn load(&self, blob: &BlobRef) -> Result<Vec<u8>, Error> {
        let bytes = self.lock().blobs.get(blob).cloned();
        bytes.map(|bytes| bytes.to_vec()).ok_or(Error::MissingBlob { blob: *blob })
    }

    fn prune(&self, ids: &[CheckpointId], event: Event) -> Result<(), Error> {
        self.lock().prune(ids, event)
    }

    fn collect(&self) -> Result<Collected, Error> {
        let _alone = self.take_part(|holders| holders == 0, ALONE)?;
        let mut inner = self.lock();
        let used: HashSet<BlobRef> = inner
            .checkpoints()
            .flat_map(|(_, one)| one.content.artifacts.iter().map(|artifact| artifact.blob))
            .collect();
        let (before, mut bytes) = (inner.blobs.len(), 0);
        inner.blobs.retain(|blob, _| {
            let keep = used.contains(blob);
            bytes += if keep { 0 } else { blob.size };
            keep
        });
        let blobs = (before - inner.blobs.len()) as u64;
        Ok(Collected { blobs, pieces: blobs, bytes })
    }

    fn audit(&self, report: &mut dyn FnMut(Damage)) -> Result<Audited, Error> {
        let inner = self.lock();
        let count =
            |wanted: fn(&Entry) -> bool| inner.journal.iter().filter(|entry| wanted(entry)).count() as u64;
        let mut audited = Audited {
            stubs: count(|entry| matches!(entry, Entry::Stub(_))),
            events: count(|entry| matches!(entry, Entry::Event(_))),
            ..Audited::default()
        };
        for (_, checkpoint) in inner.checkpoints() {
            audited.checkpoints += 1;
            for artifact in &checkpoint.content.artifacts {
                let sound = inner
                    .blobs
                    .get(&artifact.blob)
                    .is_some_and(|bytes| Hash::of(bytes) == artifact.blob.hash);
                if !sound {
                    let named = Damage {
                        artifact: Some(artifact.name.to_string()),
                        ..Damage::of(checkpoint, "its payload is gone")
                    };
                    report(named);
                }
                audited.blobs += 1;
                audited.bytes += artifact.blob.size;
            }
        }
        Ok(audited)
    }

    fn rebuild(&self) -> Result<(), Error> {
        Ok(())
    }

    fn usage(&self) -> Result<Usage, Error> {
        let inner = self.lock();
        Ok(Usage {
            entries: inner.journal.len() as u64,
            bytes: inner.blobs.keys().map(|blob| blob.size).sum(),
        })
    }
}

/// How long someone waits for those who hold.
const PATIENCE: Duration = Duration::from_secs(1);

/// One who is alone counts for more than can ever hold.
const ALONE: usize = usize::MAX / 2;

#[derive(Debug, Default)]
struct Holders {
    count: Mutex<usize>,
    changed: Condvar,
}

/// A hold that ends when it is dropped.
struct Holder {
    of: Arc<Holders>,
    as_many: usize,
}

impl Drop for Holder {
    fn drop(&mut self) {
        *self.of.count.lock().unwrap_or_else(PoisonError::into_inner) -= self.as_many;
        self.of.changed.notify_all();
    }
}
