//! What to keep. A policy and the facts give a plan of deletions; nothing is deleted here.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde::Serialize;

use crate::model::{BlobRef, CheckpointId, RunId, Timestamp};

/// How much to keep. Limits add up: what any of them gives up goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// Give up all but the newest so many of each run.
    pub keep_last: Option<usize>,
    /// Give up what is older than this.
    pub max_age: Option<Duration>,
    /// Give up the oldest until the payloads of the rest take no more than so many bytes.
    pub max_size: Option<u64>,
}

/// What is known of a checkpoint, in the order of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The checkpoint.
    pub id: CheckpointId,
    /// Its run.
    pub run: RunId,
    /// Its number in the run.
    pub seq: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// Why it must stay, if it must: it is pinned, labelled or still needed.
    pub protected: Option<Protection>,
    /// Its payloads.
    pub blobs: Vec<BlobRef>,
}

/// Why a checkpoint stays whatever the policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Someone pinned it.
    Pinned,
    /// It has a label.
    Labelled,
    /// Undoing a restore or resuming a run needs it.
    Needed,
}

/// Why a checkpoint goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Its run has newer ones than are kept.
    Surplus,
    /// It is too old.
    Age,
    /// There is no room for it.
    Size,
}

/// What goes and what stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct Plan {
    /// The checkpoints that go, oldest first.
    pub prune: Vec<Pruned>,
    /// How many stay.
    pub kept: usize,
    /// How many of those stay although the policy gave them up.
    pub spared: usize,
    /// Bytes of payloads that nothing will refer to any more, before compression.
    pub freed: u64,
}

/// A checkpoint that goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// The checkpoint.
    pub id: CheckpointId,
    /// Its run.
    pub run: RunId,
    /// Its number in the run.
    pub seq: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// Why it goes.
    pub why: Cause,
}

impl Policy {
    /// Decides what goes. `facts` are in the order of the journal. The newest checkpoint of each run always stays:
    /// without it, there would be nothing to go on from.
    pub fn plan(&self, facts: &[Fact], now: Timestamp) -> Plan {
        let newest = ranks(facts);
        let mut causes: Vec<Option<Cause>> = Vec::with_capacity(facts.len());
        for (fact, rank) in facts.iter().zip(&newest) {
            let surplus = self.keep_last.is_some_and(|keep| *rank >= keep);
            let old = self.max_age.is_some_and(|age| fact.created_at.until(now) > age);
            causes.push(if surplus { Some(Cause::Surplus) } else { old.then_some(Cause::Age) });
        }
        let spare = |index: usize| facts[index].protected.is_some() || newest[index] == 0;
        let spared = (0..facts.len()).filter(|index| causes[*index].is_some() && spare(*index)).count();
        (0..facts.len()).filter(|index| spare(*index)).for_each(|index| causes[index] = None);
        self.make_room(facts, &mut causes, spare);
        let freed = bytes_freed(facts, &causes);
        let pruned = facts.iter().zip(&causes).filter_map(|(fact, cause)| {
            let Fact { id, run, seq, created_at, .. } = fact.clone();
            cause.map(|why| Pruned { id, run, seq, created_at, why })
        });
        let prune: Vec<Pruned> = pruned.collect();
        Plan { kept: facts.len() - prune.len(), prune, spared, freed }
    }

    fn make_room(&self, facts: &[Fact], causes: &mut [Option<Cause>], spare: impl Fn(usize) -> bool) {
        let Some(limit) = self.max_size else { return };
        let own = bytes_by_last_user(facts, causes);
        let mut total: u64 = own.iter().sum();
        for index in 0..facts.len() {
            if total <= limit {
                return;
            }
            if causes[index].is_none() && !spare(index) {
                causes[index] = Some(Cause::Size);
                total -= own[index];
            }
        }
    }
}

/// For each checkpoint, how many newer ones its run has.
fn ranks(facts: &[Fact]) -> Vec<usize> {
    let mut seen: HashMap<&RunId, usize> = HashMap::new();
    let mut ranks: Vec<usize> = facts
        .iter()
        .rev()
        .map(|fact| {
            let count = seen.entry(&fact.run).or_default();
            *count += 1;
            *count - 1
        })
        .collect();
    ranks.reverse();
    ranks
}

/// Counts each payload at the newest checkpoint that stays and uses it: going from the oldest, that is the one
/// whose going frees it.
fn bytes_by_last_user(facts: &[Fact], causes: &[Option<Cause>]) -> Vec<u64> {
    let mut counted = HashSet::new();
    let mut own = vec![0; facts.len()];
    for index in (0..facts.len()).rev().filter(|index| causes[*index].is_none()) {
        own[index] =
            facts[index].blobs.iter().filter(|blob| counted.insert(**blob)).map(|blob| blob.size).sum();
    }
    own
}

fn bytes_freed(facts: &[Fact], causes: &[Option<Cause>]) -> u64 {
    let blobs = |goes: bool| -> HashSet<BlobRef> {
        let chosen = facts.iter().zip(causes).filter(|(_, cause)| cause.is_some() == goes);
        chosen.flat_map(|(fact, _)| fact.blobs.iter().copied()).collect()
    };
    blobs(true).difference(&blobs(false)).map(|blob| blob.size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Hash;

    fn fact(number: u64, run: &str, day: i64) -> Fact {
        let blob = BlobRef { size: 100, hash: Hash::of(&number.to_le_bytes()) };
        Fact {
            id: CheckpointId::from_uuid(uuid::Uuid::from_u128(number.into())),
            run: RunId::new(run).unwrap(),
            seq: number,
            created_at: Timestamp::from_micros(day * 86_400_000_000).unwrap(),
            protected: None,
            blobs: vec![blob],
        }
    }

    fn pruned(plan: &Plan) -> Vec<(u64, Cause)> {
        plan.prune.iter().map(|pruned| (pruned.seq, pruned.why)).collect()
    }

    #[test]
    fn each_run_keeps_its_newest_and_nothing_is_counted_twice() {
        let facts: Vec<Fact> =
            (1..=6).map(|n| fact(n, if n % 2 == 0 { "a" } else { "b" }, n as i64)).collect();
        let policy =
            Policy { keep_last: Some(2), max_age: Some(Duration::from_secs(4 * 86_400)), max_size: None };
        let plan = policy.plan(&facts, Timestamp::from_micros(8 * 86_400_000_000).unwrap());
        assert_eq!(pruned(&plan), [(1, Cause::Surplus), (2, Cause::Surplus), (3, Cause::Age)]);
        assert_eq!((plan.kept, plan.freed), (3, 300));
    }

    #[test]
    fn the_newest_of_a_run_and_what_is_protected_stay() {
        let mut facts: Vec<Fact> = (1..=4).map(|n| fact(n, "a", 0)).collect();
        facts[1].protected = Some(Protection::Pinned);
        let policy = Policy { keep_last: Some(0), max_age: Some(Duration::ZERO), max_size: Some(0) };
        let plan = policy.plan(&facts, Timestamp::from_micros(86_400_000_000).unwrap());
        assert_eq!(pruned(&plan), [(1, Cause::Surplus), (3, Cause::Surplus)]);
        assert_eq!((plan.kept, plan.spared), (2, 2));
    }

    #[test]
    fn room_is_made_from_the_oldest_and_shared_payloads_count_once() {
        let mut facts: Vec<Fact> = (1..=5).map(|n| fact(n, "a", 0)).collect();
        facts[4].blobs = facts[0].blobs.clone();
        let policy = Policy { max_size: Some(200), ..Policy::default() };
        let plan = policy.plan(&facts, Timestamp::from_micros(0).unwrap());
        assert_eq!(pruned(&plan), [(1, Cause::Size), (2, Cause::Size), (3, Cause::Size)]);
        assert_eq!(plan.freed, 200);
    }

    #[test]
    fn a_clock_that_went_back_makes_nothing_old() {
        let facts = vec![fact(1, "a", 100), fact(2, "a", 1)];
        let policy = Policy { max_age: Some(Duration::from_secs(86_400)), ..Policy::default() };
        assert!(policy.plan(&facts, Timestamp::from_micros(0).unwrap()).prune.is_empty());
    }
}
