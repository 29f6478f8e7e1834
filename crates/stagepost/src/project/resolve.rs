//! From a name that a person typed to a checkpoint.

use super::{Error, Project};
use crate::model::{Checkpoint, CheckpointId, Kind, Label, RunId, Snapshot};
use crate::store::{Found, Query};

/// Shorter texts are labels or runs, never the start of an id.
const SHORTEST_PREFIX: usize = 4;
/// The shortest id that is shown: the whole time of a UUID of version 7. Its first eight digits change once a minute
/// only, and what was shown must still mean one checkpoint after the next was made.
const SHORTEST_SHOWN: usize = 13;

impl Project {
    /// Finds the checkpoint that `name` means: an id or its start, `@` and `@-`, `last-good`, a label, `run/3`, or
    /// a run for its newest.
    pub fn resolve(&self, name: &str) -> Result<Checkpoint, Error> {
        let not_found = || Error::NotFound { name: name.to_owned() };
        if let Some(back) = steps_back(name) {
            return self.newest(Query::default(), back)?.ok_or_else(not_found);
        }
        if name == "last-good" {
            let query = Query { good: true, ..Query::default() };
            return self.newest(query, 0)?.ok_or_else(not_found);
        }
        if let Ok(id) = name.parse::<CheckpointId>() {
            return live(self.store.checkpoint(&id)?.ok_or_else(not_found)?);
        }
        if let Some((run, seq)) = place_in_run(name) {
            return live(self.store.at(&run, seq)?.ok_or_else(not_found)?);
        }
        if let Some(labelled) = self.by_label(name)? {
            return Ok(labelled);
        }
        if let Some(id) = self.by_prefix(name)? {
            return live(self.store.checkpoint(&id)?.ok_or_else(not_found)?);
        }
        match RunId::new(name) {
            Ok(run) => self.newest_of(run)?.ok_or_else(not_found),
            Err(_) => Err(not_found()),
        }
    }

    /// The newest checkpoint of a run that was not made for safety only, if there is one.
    fn newest_of(&self, run: RunId) -> Result<Option<Checkpoint>, Error> {
        let Some(head) = self.store.head(&run)? else { return Ok(None) };
        let is_meant = |one: &Checkpoint| !matches!(one.content.kind, Kind::Safety { .. });
        if matches!(&head, Found::Live(head) if !is_meant(head)) {
            let query = Query { run: Some(run), limit: Some(16), ..Query::default() };
            if let Some(meant) = self.log(&query)?.into_iter().find(is_meant) {
                return Ok(Some(meant));
            }
        }
        live(head).map(Some)
    }

    /// Says whether a checkpoint belongs to the history of this work tree as a person sees it: not made for safety
    /// only, and not of the files of another work tree.
    pub fn is_of_here(&self, checkpoint: &Checkpoint) -> bool {
        let elsewhere = |snapshot: &Snapshot| snapshot.worktree != self.place.worktree_key();
        let content = &checkpoint.content;
        !matches!(content.kind, Kind::Safety { .. }) && !content.snapshot.as_ref().is_some_and(elsewhere)
    }

    /// Finds the newest checkpoint of this work tree's history that holds files. Answers, steps and what was saved without
    /// files may be newer.
    pub fn newest_with_files(&self) -> Result<Checkpoint, Error> {
        let holds_files = |one: &Checkpoint| one.content.snapshot.is_some();
        let found = self.newest_of_those(Query::default(), 0, holds_files)?;
        // Where none does, the error says so of the newest.
        found.map_or_else(|| self.resolve("@"), Ok)
    }

    /// The newest checkpoint of this work tree's history but `back`, of those that `query` asks for.
    pub(super) fn newest(&self, query: Query, back: usize) -> Result<Option<Checkpoint>, Error> {
        self.newest_of_those(query, back, |_| true)
    }

    fn newest_of_those(
        &self,
        query: Query,
        back: usize,
        counts: impl Fn(&Checkpoint) -> bool,
    ) -> Result<Option<Checkpoint>, Error> {
        let (mut before, mut left) = (None, back);
        let meant = |one: &Checkpoint| self.is_of_here(one) && counts(one);
        loop {
            let query = Query { before, limit: Some(back + 16), ..query.clone() };
            let listed = self.store.list(&query)?;
            let Some(last) = listed.last() else { return Ok(None) };
            before = Some(last.position);
            for one in listed.into_iter().filter(|one| meant(&one.checkpoint)) {
                if left == 0 {
                    return Ok(Some(one.checkpoint));
                }
                left -= 1;
            }
        }
    }

    fn by_label(&self, name: &str) -> Result<Option<Checkpoint>, Error> {
        let Ok(label) = name.parse::<Label>() else { return Ok(None) };
        let query = Query { label: Some(label), ..Query::default() };
        // Several work trees may use the same names; the own history comes first.
        match self.newest(query.clone(), 0)? {
            Some(found) => Ok(Some(found)),
            None => Ok(self.log(&Query { limit: Some(1), ..query })?.pop()),
        }
    }

    fn by_prefix(&self, name: &str) -> Result<Option<CheckpointId>, Error> {
        let prefix = name.to_ascii_lowercase();
        if prefix.len() < SHORTEST_PREFIX || !prefix.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
            return Ok(None);
        }
        let candidates = self.store.matching(&prefix, 10)?;
        match candidates[..] {
            [] => Ok(None),
            [only] => Ok(Some(only)),
            _ => Err(Error::Ambiguous { name: name.to_owned(), candidates }),
        }
    }

    /// Returns the shortest start of the id that means no other checkpoint, of at least twelve digits.
    pub fn short_id(&self, id: &CheckpointId) -> Result<String, Error> {
        let whole = id.to_string();
        for length in SHORTEST_SHOWN..whole.len() {
            let prefix = &whole[..length];
            if !prefix.ends_with('-') && self.store.matching(prefix, 2)?.len() < 2 {
                return Ok(prefix.to_owned());
            }
        }
        Ok(whole)
    }
}

fn live(found: Found) -> Result<Checkpoint, Error> {
    let id = found.id();
    found.live().ok_or(Error::Pruned { id })
}

/// `@` is 0, `@-` 1, `@--` 2, `@-5` 5.
fn steps_back(name: &str) -> Option<usize> {
    let rest = name.strip_prefix('@')?;
    if rest.bytes().all(|b| b == b'-') {
        return Some(rest.len());
    }
    rest.strip_prefix('-')?.parse().ok().filter(|back| *back <= 1_000_000)
}

fn place_in_run(name: &str) -> Option<(RunId, u64)> {
    let (run, seq) = name.rsplit_once('/')?;
    Some((RunId::new(run).ok()?, seq.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_back_are_counted_or_numbered() {
        let cases = [
            ("@", Some(0)),
            ("@-", Some(1)),
            ("@--", Some(2)),
            ("@-7", Some(7)),
            ("@x", None),
            ("-", None),
            ("@-99999999999", None),
        ];
        for (name, back) in cases {
            assert_eq!(steps_back(name), back, "{name}");
        }
    }
}
