//! Appending to the journal, and pruning it.

use rusqlite::params;

use super::super::check::{check_prune, check_record};
use super::super::{Batch, Error, Expect, NewEntry, Written};
use super::known::Head;
use super::query::newest_of_key;
use super::row::{Before, Class, Entry, Journal, checkpoint_tags, event_tag, pack};
use super::writer::Writing;
use super::{column, db};
use crate::model::{Checkpoint, CheckpointId, Draft, Event, Hash, Parent, Run, RunId, chain};

/// Packs a record as its row in the journal will have it, or refuses it.
pub(super) fn pack_record(entry: &NewEntry) -> Result<Vec<u8>, Error> {
    check_record(entry)?;
    match entry {
        NewEntry::Run(run) => pack(run),
        NewEntry::Checkpoint(draft) => pack(&draft.content),
        NewEntry::Event(event) => pack(event),
    }
}

impl Writing<'_> {
    /// Appends a batch whose records have been packed.
    pub(super) fn append(&mut self, batch: Batch, bodies: Vec<Vec<u8>>) -> Result<Written, Error> {
        for expectation in &batch.expect {
            self.check(expectation)?;
        }
        for payload in &batch.payloads {
            self.store_payload(payload)?;
        }
        let mut checkpoints = Vec::new();
        for (entry, body) in batch.entries.into_iter().zip(bodies) {
            match entry {
                NewEntry::Run(run) => self.append_run(&run, body)?,
                NewEntry::Checkpoint(draft) => checkpoints.push(self.append_checkpoint(draft, body)?),
                NewEntry::Event(event) => self.append_event(&event, body)?,
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

    fn append_run(&mut self, run: &Run, body: Vec<u8>) -> Result<(), Error> {
        if let Some((_, position)) = Journal(self.connection).run_number(&run.id)? {
            let gone = || Error::Damaged { what: format!("the record of run `{}` is gone", run.id) };
            let there = Journal(self.connection).entry(position)?.ok_or_else(gone)?.to_run()?;
            let what =
                || format!("run `{}` is there, and its kind is {}, not {}", run.id, there.kind, run.kind);
            return if there.kind == run.kind { Ok(()) } else { Err(Error::Conflict { what: what() }) };
        }
        let numbers = column(self.connection, "SELECT coalesce(max(number), 0) + 1 FROM runs", [])?;
        let number = numbers.first().copied().unwrap_or(1);
        let position = self.known.position + 1;
        let mut statement =
            self.connection.prepare_cached("INSERT INTO runs VALUES (?1, ?2, ?3)").map_err(db("append"))?;
        statement.execute(params![number, run.id.as_str(), position]).map_err(db("append"))?;
        self.journal(Class::Run, run.created_at.as_micros(), run.seal(), |entry| {
            entry.run = number;
            entry.body = Some(body);
        })
    }

    fn append_event(&mut self, event: &Event, body: Vec<u8>) -> Result<(), Error> {
        self.journal(Class::Event, event.at.as_micros(), event.seal(), |entry| {
            entry.tags = Some(event_tag(event.topic, &event.key));
            entry.body = Some(body);
        })
    }

    fn append_checkpoint(&mut self, draft: Draft, body: Vec<u8>) -> Result<Checkpoint, Error> {
        if self.is_there(&draft.id)? {
            return Err(Error::Conflict { what: format!("checkpoint {} is there already", draft.id) });
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
        let sealed = Checkpoint::seal(draft, (head.seq + 1).unsigned_abs(), before.parent, &before.seal);
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

    fn head(&mut self, run: &RunId) -> Result<Head, Error> {
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
        self.known.position = entry.position;
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
            let mut statement = self
                .connection
                .prepare_cached("UPDATE entries SET body = NULL, tags = NULL, at = 0 WHERE position = ?1")
                .map_err(db("prune"))?;
            statement.execute([position]).map_err(db("prune"))?;
        }
        let body = pack_record(&NewEntry::Event(event.clone()))?;
        self.append_event(&event, body)
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
