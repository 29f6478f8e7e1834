//! Appending to the journal, and pruning it.

use rusqlite::params;

use super::super::blob::Prepared;
use super::super::check::{check_prune, check_record};
use super::super::{Error, Expect, NewEntry, Written};
use super::known::{Behind, Head};
use super::query::newest_of_key;
use super::row::{Before, Class, Entry, Journal, checkpoint_tags, event_tag, pack};
use super::writer::Writing;
use super::{column, db};
use crate::model::{Checkpoint, CheckpointId, Draft, Event, Hash, Parent, Run, RunId, Unplaced, chain};

/// A record to append, as far as it can be written before it has its place.
#[expect(clippy::large_enum_variant, reason = "nearly all are checkpoints")]
pub(super) enum Packed {
    Run(Run, Vec<u8>),
    Checkpoint(Draft, Unplaced, Vec<u8>),
    Event(Event, Vec<u8>),
}

impl Packed {
    /// Packs a record as its row in the journal will have it, or refuses it.
    pub(super) fn of(entry: NewEntry) -> Result<Self, Error> {
        check_record(&entry)?;
        Ok(match entry {
            NewEntry::Run(run) => {
                let body = pack(&run)?;
                Self::Run(run, body)
            }
            NewEntry::Checkpoint(draft) => {
                let (unplaced, body) = (Unplaced::of(&draft), pack(&draft.content)?);
                Self::Checkpoint(draft, unplaced, body)
            }
            NewEntry::Event(event) => {
                let body = pack(&event)?;
                Self::Event(event, body)
            }
        })
    }
}

/// A batch whose records have been packed.
pub(super) struct PackedBatch {
    pub(super) expect: Vec<Expect>,
    pub(super) payloads: Vec<Prepared>,
    pub(super) records: Vec<Packed>,
}

impl Writing<'_> {
    /// Looks for everything that could keep a batch from being appended, and writes nothing: only the database itself can fail
    /// after that.
    pub(super) fn look_at(&mut self, batch: &PackedBatch) -> Result<(), Error> {
        for expectation in &batch.expect {
            self.check(expectation)?;
        }
        for (at, record) in batch.records.iter().enumerate() {
            match record {
                Packed::Run(run, _) => self.look_at_run(run, &batch.records[..at])?,
                Packed::Checkpoint(draft, ..) => {
                    self.look_at_draft(draft, &batch.records[..at], &batch.payloads)?
                }
                Packed::Event(..) => {}
            }
        }
        Ok(())
    }

    fn look_at_run(&self, run: &Run, before: &[Packed]) -> Result<(), Error> {
        let same = |record: &&Packed| matches!(record, Packed::Run(other, _) if other.id == run.id);
        match before.iter().find(same) {
            Some(Packed::Run(there, _)) => must_be_the_same(run, there),
            _ => self.run_there(run).map(drop),
        }
    }

    fn look_at_draft(&self, draft: &Draft, before: &[Packed], payloads: &[Prepared]) -> Result<(), Error> {
        let comes_with = |id: &CheckpointId| {
            before.iter().any(|record| matches!(record, Packed::Checkpoint(other, ..) if other.id == *id))
        };
        if comes_with(&draft.id) || self.is_there(&draft.id)? {
            return Err(there_already(&draft.id));
        }
        for artifact in &draft.content.artifacts {
            if !payloads.iter().any(|payload| payload.blob() == artifact.blob) {
                self.must_have(&artifact.blob)?;
            }
        }
        let begins = |record: &Packed| matches!(record, Packed::Run(run, _) if run.id == draft.run);
        if !before.iter().any(begins) {
            self.head(&draft.run)?;
        }
        match draft.parent {
            Parent::Checkpoint(id) if !comes_with(&id) => self.seal_of(&id).map(drop),
            _ => Ok(()),
        }
    }

    /// Appends a batch.
    pub(super) fn append(&mut self, batch: PackedBatch) -> Result<Written, Error> {
        for expectation in &batch.expect {
            self.check(expectation)?;
        }
        for payload in &batch.payloads {
            self.store_payload(payload)?;
        }
        let mut checkpoints = Vec::with_capacity(batch.records.len());
        for record in batch.records {
            match record {
                Packed::Run(run, body) => self.append_run(&run, body)?,
                Packed::Checkpoint(draft, unplaced, body) => {
                    checkpoints.push(self.append_checkpoint(draft, &unplaced, body)?);
                }
                Packed::Event(event, body) => self.append_event(&event, body)?,
            }
        }
        Ok(Written { checkpoints, position: u64::try_from(self.known.position).unwrap_or(0) })
    }

    fn check(&mut self, expectation: &Expect) -> Result<(), Error> {
        let journal = Journal(self.connection);
        let holds = match expectation {
            Expect::NewRun(run) => journal.run_number(run)?.is_none(),
            Expect::Head(run, seq) => self.newest_seq(run)? == *seq,
            Expect::LatestEvent(topic, key, position) => {
                let newest = newest_of_key(self.connection, *topic, key, 1)?;
                newest.first().map_or(0, |newest| newest.unsigned_abs()) == *position
            }
        };
        if holds { Ok(()) } else { Err(Error::Conflict { what: expectation.to_string() }) }
    }

    fn newest_seq(&self, run: &RunId) -> Result<u64, Error> {
        if let Some(head) = self.known.heads.get(run) {
            return Ok(head.seq.unsigned_abs());
        }
        let journal = Journal(self.connection);
        let Some((number, _)) = journal.run_number(run)? else { return Ok(0) };
        Ok(journal.head_of(number)?.map_or(0, |(_, seq)| seq.unsigned_abs()))
    }

    /// Says whether a run is there. One of another kind must not be.
    fn run_there(&self, run: &Run) -> Result<bool, Error> {
        let Some((_, position)) = Journal(self.connection).run_number(&run.id)? else { return Ok(false) };
        let gone = || Error::Damaged { what: format!("the record of run `{}` is gone", run.id) };
        let there = Journal(self.connection).entry(position)?.ok_or_else(gone)?.to_run()?;
        must_be_the_same(run, &there).map(|()| true)
    }

    fn append_run(&mut self, run: &Run, body: Vec<u8>) -> Result<(), Error> {
        if self.run_there(run)? {
            return Ok(());
        }
        let numbers = column(self.connection, "SELECT coalesce(max(number), 0) + 1 FROM runs", [])?;
        let number = numbers.first().copied().unwrap_or(1);
        let position = self.known.position + 1;
        let mut statement =
            self.connection.prepare_cached("INSERT INTO runs VALUES (?1, ?2, ?3)").map_err(db("append"))?;
        statement.execute(params![number, run.id.as_str(), position]).map_err(db("append"))?;
        let seal = run.seal();
        self.journal(Class::Run, run.created_at.as_micros(), seal, |entry| {
            entry.run = number;
            entry.body = Some(body);
        })?;
        self.known
            .heads
            .insert(run.id.clone(), Head { number, seq: 0, before: Before { parent: None, seal } });
        Ok(())
    }

    fn append_event(&mut self, event: &Event, body: Vec<u8>) -> Result<(), Error> {
        self.journal(Class::Event, event.at.as_micros(), event.seal(), |entry| {
            entry.tags = Some(event_tag(event.topic, &event.key));
            entry.body = Some(body);
        })
    }

    fn append_checkpoint(
        &mut self,
        draft: Draft,
        unplaced: &Unplaced,
        body: Vec<u8>,
    ) -> Result<Checkpoint, Error> {
        if self.is_there(&draft.id)? {
            return Err(there_already(&draft.id));
        }
        for artifact in &draft.content.artifacts {
            self.must_have(&artifact.blob)?;
        }
        let head = self.head(&draft.run)?;
        let (before, fork) = match draft.parent {
            Parent::Head => (head.before.clone(), None),
            Parent::Checkpoint(id) => {
                (self.seal_of(&id)?, Some(id).filter(|_| head.before.parent != Some(id)))
            }
        };
        let seq = (head.seq + 1).unsigned_abs();
        let sealed = Checkpoint::place(draft, unplaced, seq, before.parent, &before.seal);
        self.journal(Class::Checkpoint, sealed.created_at.as_micros(), sealed.seal, |entry| {
            entry.run = head.number;
            entry.seq = head.seq + 1;
            entry.id = Some(sealed.id);
            entry.parent = fork;
            entry.tags = checkpoint_tags(&sealed);
            entry.body = Some(body);
        })?;
        let before = Before { parent: Some(sealed.id), seal: sealed.seal };
        self.known.heads.insert(sealed.run.clone(), Head { number: head.number, seq: head.seq + 1, before });
        self.known.ids.insert(sealed.id);
        Ok(sealed)
    }

    /// Ids begin with the time, so most are higher than all that were indexed, and need not be looked for.
    fn is_there(&self, id: &CheckpointId) -> Result<bool, Error> {
        let known = &*self.known;
        Ok(known.ids.contains(id)
            || (known.highest_id >= Some(*id) && Journal(self.connection).indexed_position(id)?.is_some()))
    }

    fn head(&self, run: &RunId) -> Result<Head, Error> {
        if let Some(head) = self.known.heads.get(run) {
            return Ok(head.clone());
        }
        let journal = Journal(self.connection);
        let missing = || Error::MissingRun { run: run.clone() };
        let (number, start) = journal.run_number(run)?.ok_or_else(missing)?;
        let (position, seq) = journal.head_of(number)?.unwrap_or((start, 0));
        let gone = || Error::Damaged { what: format!("the newest entry of run `{run}` is gone") };
        let entry = journal.entry(position)?.ok_or_else(gone)?;
        Ok(Head { number, seq, before: Before { parent: entry.id, seal: entry.seal } })
    }

    fn seal_of(&self, id: &CheckpointId) -> Result<Before, Error> {
        let journal = Journal(self.connection);
        let missing = || Error::MissingCheckpoint { id: *id };
        let position = journal.position_of(id)?.ok_or_else(missing)?;
        let entry = journal.entry(position)?.ok_or_else(missing)?;
        Ok(Before { parent: entry.id, seal: entry.seal })
    }

    /// Adds a row to the journal and to the chain.
    fn journal(
        &mut self,
        class: Class,
        at: i64,
        seal: Hash,
        fill: impl FnOnce(&mut Entry),
    ) -> Result<(), Error> {
        let mut entry = Entry {
            position: self.known.position + 1,
            class: class as i64,
            run: 0,
            seq: 0,
            id: None,
            parent: None,
            at,
            tags: None,
            body: None,
            seal,
        };
        fill(&mut entry);
        entry.insert(self.connection)?;
        let Entry { position, run, seq, id, tags, .. } = entry;
        self.known.behind.push(Behind { position, run, seq, id, tags });
        self.known.position = position;
        self.known.chain = chain(&self.known.chain, &seal);
        Ok(())
    }

    /// Turns checkpoints into stubs and appends the event that says so.
    pub(super) fn prune(&mut self, ids: &[CheckpointId], event: Event) -> Result<(), Error> {
        check_prune(ids, &event)?;
        for id in ids {
            let missing = || Error::MissingCheckpoint { id: *id };
            let position = Journal(self.connection).position_of(id)?.ok_or_else(missing)?;
            self.drop_tags(position)?;
            self.known
                .behind
                .iter_mut()
                .filter(|one| one.position == position)
                .for_each(|one| one.tags = None);
            let mut statement = self
                .connection
                .prepare_cached("UPDATE entries SET body = NULL, tags = NULL, at = 0 WHERE position = ?1")
                .map_err(db("prune"))?;
            statement.execute([position]).map_err(db("prune"))?;
        }
        check_record(&NewEntry::Event(event.clone()))?;
        self.append_event(&event, pack(&event)?)
    }

    fn drop_tags(&self, position: i64) -> Result<(), Error> {
        let entry = Journal(self.connection).entry(position)?;
        let mut statement = self
            .connection
            .prepare_cached("DELETE FROM by_tag WHERE tag = ?1 AND position = ?2")
            .map_err(db("prune"))?;
        for tag in entry.iter().flat_map(|entry| entry.tags.iter()).flat_map(|tags| tags.split('\n')) {
            statement.execute(params![tag, position]).map_err(db("prune"))?;
        }
        Ok(())
    }
}

fn must_be_the_same(run: &Run, there: &Run) -> Result<(), Error> {
    let what = || format!("run `{}` is there, and its kind is {}, not {}", run.id, there.kind, run.kind);
    if there.kind == run.kind { Ok(()) } else { Err(Error::Conflict { what: what() }) }
}

fn there_already(id: &CheckpointId) -> Error {
    Error::Conflict { what: format!("checkpoint {id} is there already") }
}
