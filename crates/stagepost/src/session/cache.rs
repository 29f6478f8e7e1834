//! The entries of a session as text, kept from one command to the next, so that a long session costs no more than a
//! short one. It is a cache: what does not fit the store, or was altered, is derived again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::view::count;
use super::{Error, Session};
use crate::formats::maestro::{Entry, Summary};
use crate::formats::pretty;
use crate::model::{Checkpoint, Hash, Kind, Phase, Progress, Reason, Rollback, Timestamp, Topic};
use crate::store::{EventQuery, Found, Query};

/// What the cache was derived from: any change of the session changes it. The seal stands for everything before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Basis {
    seq: u64,
    seal: Option<Hash>,
    happened: u64,
    pruned: u64,
}

/// What the checkpoints of a session come to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Sum {
    by_type: BTreeMap<String, usize>,
    used: usize,
    latest: Option<String>,
    pub(super) phase: Option<Phase>,
    pub(super) progress: Option<Progress>,
    pub(super) last_at: Option<Timestamp>,
    /// Recoveries from errors: each rollback is one, and so is a checkpoint made for one unless it only follows such
    /// a rollback.
    pub(super) recoveries: u64,
    after_rollback: bool,
    /// What else is in the run, such as decisions at gates.
    others: u64,
}

/// The entries of a session, oldest first, as they stand in the log.
#[derive(Debug, Clone)]
pub(super) struct Entries {
    basis: Basis,
    pub(super) sum: Sum,
    pub(super) texts: Vec<String>,
}

/// So many new checkpoints are added to what is cached; with more, everything is derived again.
const FEW: u64 = 32;
/// Stands between entries; JSON has no raw control characters.
const BORDER: char = '\u{1}';

impl Session<'_> {
    /// Returns the entries: from the cache, with what is new added.
    pub(super) fn entries(&self, rollbacks: &[Rollback]) -> Result<Entries, Error> {
        let basis = self.basis()?;
        let cached = self.project.load_cache(self.run.id.as_str()).and_then(|bytes| Entries::parse(&bytes));
        let entries = match cached {
            Some(cached) if cached.basis == basis => return Ok(cached),
            Some(cached) if cached.is_before(&basis) => self.add_new(cached, basis)?,
            _ => self.derive(basis, rollbacks)?,
        };
        self.project.keep_cache(self.run.id.as_str(), &entries.write());
        Ok(entries)
    }

    fn basis(&self) -> Result<Basis, Error> {
        let store = self.project.store();
        let (seq, seal) = match store.head(&self.run.id)? {
            Some(Found::Live(head)) => (head.seq, Some(head.seal)),
            Some(Found::Pruned(stub)) => (stub.seq, Some(stub.seal)),
            None => (0, None),
        };
        let newest = |topic, key: &str| -> Result<u64, Error> {
            let newest = store.events(&EventQuery::latest(topic, key))?;
            Ok(newest.last().map_or(0, |(position, _)| *position))
        };
        let happened = newest(Topic::Run, self.run.id.as_str())?;
        Ok(Basis { seq, seal, happened, pruned: newest(Topic::Prune, "gc")? })
    }

    fn add_new(&self, mut cached: Entries, basis: Basis) -> Result<Entries, Error> {
        let count = usize::try_from(basis.seq - cached.basis.seq).unwrap_or(usize::MAX);
        let query = Query { run: Some(self.run.id.clone()), limit: Some(count), ..Query::default() };
        for new in self.project.log(&query)?.iter().rev() {
            cached.add(new, 0);
        }
        cached.basis = basis;
        Ok(cached)
    }

    fn derive(&self, basis: Basis, rollbacks: &[Rollback]) -> Result<Entries, Error> {
        let query = Query { run: Some(self.run.id.clone()), ..Query::default() };
        let counts = count(rollbacks);
        let mut entries = Entries { basis, sum: Sum::default(), texts: Vec::new() };
        let mut done = rollbacks.iter().filter(|one| one.success).map(|one| one.at).peekable();
        for checkpoint in self.project.log(&query)?.iter().rev() {
            while done.next_if(|at| *at <= checkpoint.created_at).is_some() {
                entries.sum.recovered();
            }
            entries.add(checkpoint, counts.get(&checkpoint.id.to_string()).copied().unwrap_or(0));
        }
        done.for_each(|_| entries.sum.recovered());
        Ok(entries)
    }
}

impl Sum {
    fn recovered(&mut self) {
        self.recoveries += 1;
        self.after_rollback = true;
    }
}

impl Entries {
    fn add(&mut self, checkpoint: &Checkpoint, rollbacks: u64) {
        let sum = &mut self.sum;
        let Some(entry) = Entry::of(checkpoint, rollbacks) else {
            sum.others += 1;
            return;
        };
        *sum.by_type.entry(entry.checkpoint_type.clone()).or_default() += 1;
        sum.used += usize::from(entry.rollback_used);
        sum.latest = Some(entry.commit_sha.clone());
        sum.progress = entry.state_snapshot.as_ref().map(|state| state.progress).or(sum.progress);
        sum.last_at = Some(checkpoint.created_at);
        if let Kind::Phase { phase, reason } = checkpoint.content.kind {
            sum.phase = Some(phase);
            sum.recoveries += u64::from(reason == Reason::ErrorRecovery && !sum.after_rollback);
        }
        sum.after_rollback = false;
        let text = String::from_utf8(pretty(&entry)).expect("JSON is text");
        self.texts.push(text);
    }

    /// Says whether only a few checkpoints came since.
    fn is_before(&self, now: &Basis) -> bool {
        let new = now.seq.checked_sub(self.basis.seq);
        (self.basis.happened, self.basis.pruned) == (now.happened, now.pruned)
            && new.is_some_and(|new| (1..=FEW).contains(&new))
    }

    /// How many there ever were. Of something that was pruned nobody can tell any more what it was: it counts.
    pub(super) fn created(&self) -> u64 {
        self.basis.seq.saturating_sub(self.sum.others)
    }

    pub(super) fn summary(&self) -> Summary {
        Summary {
            total_checkpoints: self.texts.len(),
            checkpoints_by_type: self.sum.by_type.clone(),
            checkpoints_used_for_rollback: self.sum.used,
            latest_checkpoint: self.sum.latest.clone().filter(|commit| !commit.is_empty()),
        }
    }

    fn write(&self) -> Vec<u8> {
        let mut body = serde_json::to_string(&(&self.basis, &self.sum)).expect("it has string keys only");
        for text in &self.texts {
            body.push(BORDER);
            body.push_str(text);
        }
        [Hash::of(body.as_bytes()).as_bytes().as_slice(), body.as_bytes()].concat()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (hash, body) = bytes.split_at_checked(32)?;
        if Hash::of(body).as_bytes() != hash {
            return None;
        }
        let mut parts = std::str::from_utf8(body).ok()?.split(BORDER);
        let (basis, sum) = serde_json::from_str(parts.next()?).ok()?;
        Some(Self { basis, sum, texts: parts.map(str::to_owned).collect() })
    }
}

/// Writes entries as a JSON list whose lines start with `indent`. Line breaks are never inside a JSON string.
pub(super) fn list<'a>(texts: impl Iterator<Item = &'a String>, indent: &str) -> String {
    let inner = format!("\n{indent}  ");
    let shifted: Vec<String> = texts.map(|text| format!("{inner}{}", text.replace('\n', &inner))).collect();
    if shifted.is_empty() { "[]".to_owned() } else { format!("[{}\n{indent}]", shifted.join(",")) }
}
