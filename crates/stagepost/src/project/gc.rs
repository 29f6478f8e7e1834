//! Giving room back: retention first, then what nothing refers to any more.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;
use serde_json::json;

use super::{Error, Project, gone};
use crate::model::{Checkpoint, CheckpointId, Event, Kind, RunId, RunKind, StepStatus, Topic};
use crate::retention::{Fact, Plan, Policy, Protection};
use crate::store::{Collected, EventQuery, Found, Listed, Query};

/// The member of the metadata that makes a checkpoint one in which a flow keeps results of steps whose checkpoints are
/// pruned.
pub(crate) const KEPT_STEPS: &str = "kept_steps";

/// What a collection would do. Carrying it out does exactly this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GcPlan {
    /// Which checkpoints go, and why.
    #[serde(flatten)]
    pub plan: Plan,
}

/// What a collection did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// How many checkpoints were pruned.
    pub pruned: usize,
    /// What else was dropped.
    pub collected: Collected,
}

impl Project {
    /// Decides what to give up.
    pub fn plan_gc(&self, policy: &Policy) -> Result<GcPlan, Error> {
        self.refuse_after_a_loss()?;
        let pinned = self.pinned()?;
        let mut listed = self.store.list(&Query::default())?;
        listed.reverse();
        let mut needed: HashSet<_> = fork_points(&listed);
        needed.extend(self.needed_for_undo()?);
        needed.extend(self.needed_by_flows(&listed)?);
        let to_go_on = self.needed_to_go_on()?;
        needed.extend(to_go_on.checkpoints);
        let on_the_way = listed.iter().filter(|one| to_go_on.runs.contains(one.checkpoint.run.as_str()));
        needed.extend(on_the_way.map(|one| one.checkpoint.id));
        let facts: Vec<Fact> = listed
            .into_iter()
            .map(|Listed { checkpoint, .. }| Fact {
                protected: if pinned.contains(&checkpoint.id) {
                    Some(Protection::Pinned)
                } else if !checkpoint.content.labels.is_empty() {
                    Some(Protection::Labelled)
                } else {
                    needed.contains(&checkpoint.id).then_some(Protection::Needed)
                },
                id: checkpoint.id,
                seq: checkpoint.seq,
                created_at: checkpoint.created_at,
                blobs: checkpoint.content.artifacts.iter().map(|artifact| artifact.blob).collect(),
                run: checkpoint.run,
            })
            .collect();
        Ok(GcPlan { plan: policy.plan(&facts, self.context.clock.now()) })
    }

    /// Carries a plan out. Views of sessions and tasks that show what goes are left marked as out of date; tags are the
    /// user's and stay.
    pub fn apply_gc(&self, plan: &GcPlan) -> Result<Swept, Error> {
        self.refuse_after_a_loss()?;
        let ids: Vec<_> = plan.plan.prune.iter().map(|pruned| pruned.id).collect();
        let runs: BTreeSet<_> = plan.plan.prune.iter().map(|pruned| &pruned.run).collect();
        let _outdated = self.begin_views_of(&runs)?;
        if !ids.is_empty() {
            // First the word, then the deed: what is told of and still there is read where it is.
            self.tell_of_steps(&runs, &ids.iter().copied().collect())?;
            let body = json!({"checkpoints": ids, "who": self.context.who});
            let event =
                Event { topic: Topic::Prune, key: "gc".to_owned(), at: self.context.clock.now(), body };
            self.store.prune(&ids, event)?;
        }
        // Records first: a kill in between leaves snapshots that nothing refers to, and the next gc finds them.
        let before = self.private_snapshots();
        self.release_orphans()?;
        let freed = before.saturating_sub(self.private_snapshots());
        let collected = self.store.collect()?;
        Ok(Swept { pruned: ids.len(), collected: Collected { bytes: collected.bytes + freed, ..collected } })
    }
}

impl Project {
    /// Returns how many entries are gone from the end of the journal. Where some are, what they refer to is not ours to let
    /// go any more: neither now nor when the journal has grown again, for a copy of the store may come back.
    pub fn lost(&self) -> Result<u64, Error> {
        let lost = self.store.lost()?;
        if lost > 0
            && let Ok(snapshots) = self.snapshots()
        {
            snapshots.forget_made();
        }
        Ok(lost)
    }

    /// Refuses to give anything up while the end of the journal is gone: what seems to be needed by nothing may be needed by
    /// what is lost.
    pub fn refuse_after_a_loss(&self) -> Result<(), Error> {
        match self.lost()? {
            0 => Ok(()),
            entries => Err(Error::Lost { entries }),
        }
    }

    /// Gives up checkpoints that someone asked to delete: stubs are left, and their snapshots are let go. The room
    /// of their payloads comes back with the next collection.
    pub fn forget(&self, ids: &[CheckpointId]) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let with_files = self.with_files(ids)?;
        let body = json!({"checkpoints": ids, "who": self.context.who});
        let event = Event { topic: Topic::Prune, key: "gc".to_owned(), at: self.context.clock.now(), body };
        self.store.prune(ids, event)?;
        if !with_files.is_empty() {
            self.snapshots()?.release(&with_files)?;
        }
        Ok(())
    }

    /// Those of some checkpoints that files were captured with.
    fn with_files(&self, ids: &[CheckpointId]) -> Result<Vec<CheckpointId>, Error> {
        let mut with_files = Vec::new();
        for id in ids {
            let found = self.store.checkpoint(id)?.and_then(Found::live);
            if found.is_some_and(|checkpoint| checkpoint.content.snapshot.is_some()) {
                with_files.push(*id);
            }
        }
        Ok(with_files)
    }

    /// Lets go of snapshots whose checkpoint is pruned or was never written. Whoever is about to write one holds
    /// the store, so there is none of those now. What another store made, which may come back, is not ours to let go.
    fn release_orphans(&self) -> Result<(), Error> {
        let _alone = self.store.alone()?;
        let snapshots = self.snapshots()?;
        let made = snapshots.made();
        let mut orphans = Vec::new();
        for (id, name) in snapshots.held()? {
            match self.store.checkpoint(&id)? {
                Some(Found::Live(_)) => {}
                Some(Found::Pruned(_)) => orphans.push(name),
                None if made.contains(&id) => orphans.push(name),
                None => {}
            }
        }
        snapshots.release_refs(&orphans)?;
        snapshots.forget_made();
        Ok(())
    }
}

impl Project {
    /// What a flow which has not ended would go on from: its own results, of a fork those that it shares, and the files
    /// that steps which are not done go back to if they fail. `listed` is in the order of the journal.
    fn needed_by_flows(&self, listed: &[Listed]) -> Result<HashSet<CheckpointId>, Error> {
        let mut newest: HashMap<&RunId, ByUse<'_>> = HashMap::new();
        let mut places: HashMap<CheckpointId, (&RunId, u64)> = HashMap::new();
        for Listed { checkpoint, .. } in listed {
            places.insert(checkpoint.id, (&checkpoint.run, checkpoint.seq));
            if let Some(purpose) = Use::of(checkpoint) {
                let of_run = newest.entry(&checkpoint.run).or_default();
                of_run.entry(purpose).or_default().push((checkpoint.seq, checkpoint.id));
            }
        }
        let mut needed = HashSet::new();
        for run in self.runs()?.into_iter().filter(|run| run.kind == RunKind::Flow) {
            let end = self.end_of_flow(&run.id)?;
            if end.as_deref().is_some_and(|end| matches!(end, "completed" | "cancelled")) {
                continue;
            }
            let (mut of, mut up_to, mut from) = (Some(run.id.clone()), u64::MAX, run.forked_from);
            while let Some(id) = of.take() {
                // A run that ended has rolled back what was to be, and the past that a fork shares is not its own to.
                let rolls_back = id == run.id && end.is_none();
                let uses = newest.get(&id).into_iter().flatten();
                for (_, held) in uses.filter(|(purpose, _)| rolls_back || !purpose.is_to_roll_back()) {
                    needed.extend(held.iter().rev().find(|(seq, _)| *seq <= up_to).map(|(_, one)| *one));
                }
                if let Some((shared, seq)) = from.take().and_then(|from| places.get(&from)) {
                    (of, up_to) = (Some((*shared).clone()), *seq);
                    from = self.store.run(shared)?.and_then(|run| run.forked_from);
                }
            }
        }
        Ok(needed)
    }

    /// How a flow ended, if that is the last that was written of it.
    fn end_of_flow(&self, run: &RunId) -> Result<Option<String>, Error> {
        let mut latest = self.store.events(&EventQuery::latest(Topic::Run, run.as_str()))?;
        if latest.iter().any(|(_, event)| gone::tells(&event.body)) {
            let query = EventQuery { topic: Topic::Run, key: Some(run.to_string()), last: None };
            latest = self.store.events(&query)?;
            latest.retain(|(_, event)| !gone::tells(&event.body));
        }
        let body = latest.pop().map(|(_, event)| event.body).unwrap_or_default();
        Ok(body["status"].as_str().filter(|_| body["type"] == "ended").map(str::to_owned))
    }
}

/// The checkpoints of a run by what a flow uses them for, oldest first, with their numbers in the run.
type ByUse<'a> = HashMap<Use<'a>, Vec<(u64, CheckpointId)>>;

/// What a flow that goes on uses a checkpoint for; the newest of each is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Use<'a> {
    /// The result of a step; a failure that the run went on from is one too.
    Result(&'a str),
    /// The results of steps whose checkpoints are pruned.
    Kept,
    /// A failure of a step after which the files are to go back.
    RollsBack(&'a str),
    /// The files as they were before something began.
    Before(&'a str),
}

impl<'a> Use<'a> {
    fn of(checkpoint: &'a Checkpoint) -> Option<Self> {
        let says = |name| checkpoint.content.metadata.get(name).is_some_and(|value| value == true);
        match &checkpoint.content.kind {
            Kind::Step { step, status: StepStatus::Completed | StepStatus::Skipped, .. } => {
                Some(Self::Result(step))
            }
            Kind::Step { step, .. } if says("went_on") => Some(Self::Result(step)),
            Kind::Step { step, .. } if says("rolls_back") => Some(Self::RollsBack(step)),
            _ if checkpoint.content.metadata.contains_key(KEPT_STEPS) => Some(Self::Kept),
            Kind::Safety { before } => Some(Self::Before(before)),
            _ => None,
        }
    }

    fn is_to_roll_back(&self) -> bool {
        matches!(self, Self::RollsBack(_) | Self::Before(_))
    }
}

/// Checkpoints that another run goes on from.
fn fork_points(listed: &[Listed]) -> HashSet<CheckpointId> {
    let runs: std::collections::HashMap<_, _> =
        listed.iter().map(|one| (one.checkpoint.id, &one.checkpoint.run)).collect();
    let parents = listed.iter().filter_map(|one| Some((one.checkpoint.parent?, &one.checkpoint.run)));
    parents
        .filter(|(parent, run)| runs.get(parent).is_some_and(|other| other != run))
        .map(|(parent, _)| parent)
        .collect()
}
