//! The fast way to find what a work tree holds: the walk against the private state, without the git program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::blocks::Blocks;
use super::capture::{Capture, CaptureError, Deadline, Found, Secrets};
use super::git::Git;
use super::growth::{Grown, grow};
use super::index::{self, Index};
use super::refs::Refs;
use super::repository::{self, Repository, RepositoryState};
use super::rules::Rules;
use super::sink::Sink;
use super::state::{Basis, Extent, Id, Journal, NO_ID, State};
use super::walk::{Belief, LazyIndex, Stopped, Walk};
use super::{Snapshots, guard};
use crate::bounded;
use crate::model::{FileCounts, IndexMarks, ObjectId};

/// What the fast way found, and what the state must learn once the snapshot is kept.
pub(super) struct Quick {
    pub(super) found: Found,
    /// The state as it was, for comparing and for the next one.
    pub(super) basis: Basis,
    /// The latest snapshot, if this one would be the same.
    pub(super) same: Option<(ObjectId, FileCounts)>,
    /// The tree of the latest snapshot and how it differs from HEAD, if that is the same now.
    before: Option<(ObjectId, FileCounts)>,
    journal: Journal,
    /// The state file as it was; empty if it was not believed.
    file: Blocks,
    extent: Extent,
}

impl Snapshots {
    fn state_file(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// Says whether a state is kept that `latest` protects.
    pub(super) fn has_state(&self) -> bool {
        self.state_file().exists()
    }

    /// Says for certain that git looks at every file that the index has: the fast way went by this very index.
    pub(super) fn is_all_watched(&self) -> bool {
        let basis = State::parse(&Blocks::open(&self.state_file())).basis;
        let key = self.user.as_ref().and_then(|user| index::key_of(&user.git_dir.join("index")).ok());
        basis.is_some_and(|basis| Some(basis.index) == key)
    }

    /// Finds what the work tree holds, or returns `None` where only the git program can; the caller holds the lock.
    pub(super) fn find_fast(
        &self,
        options: &Capture,
        deadline: Deadline,
        repository: &RepositoryState,
        latest: Option<&ObjectId>,
        sink: &Sink,
    ) -> Result<Option<Quick>, CaptureError> {
        let Some(odb) = self.odb.as_ref().filter(|_| self.is_fit(options)) else { return Ok(None) };
        let rules_repository = self.user.as_ref().unwrap_or(&self.store);
        let branch = repository.branch.as_deref();
        let Ok(mut rules) = Rules::load(&self.root, rules_repository, branch, self.rules_git.program())
        else {
            return Ok(None);
        };
        if let Some(odd) = &rules.odd {
            return Err(CaptureError::io("read", odd)(bounded::no_file()));
        }
        if rules.needs_git.is_some() {
            return Ok(None);
        }
        // What is left out is a rule too: a state made by another one is of no use.
        rules.key[0] ^= u8::from(options.secrets == Secrets::Include);
        let file = Blocks::open(&self.state_file());
        let state = State::parse(&file);
        let index_path = self.user.as_ref().map(|user| user.git_dir.join("index"));
        let index = LazyIndex::new(index_path.as_deref());
        let Some((basis, belief)) =
            self.believe(&state, &rules, &index, index_path.as_deref(), latest, sink)?
        else {
            return Ok(None);
        };
        let mut walk = Walk {
            root: &self.root,
            state: &state,
            belief,
            rules: &rules,
            index: &index,
            ask_index: basis.needs_index,
            sink,
            odb,
            exclude: &self.exclude,
            options,
            deadline,
            moment: self.moment()?,
            nested_head: &|folder| nested_head(&self.rules_git, folder),
            untracked: AtomicUsize::new(0),
            misled: AtomicBool::new(false),
            needs_git: AtomicBool::new(false),
        };
        let findings = match walk.run() {
            Err(Stopped::Misled) => {
                walk.belief = Belief::Nothing;
                index.get();
                walk.untracked = AtomicUsize::new(0);
                walk.misled = AtomicBool::new(false);
                walk.run()
            }
            other => other,
        };
        let mut findings = match findings {
            Ok(findings) => findings,
            Err(Stopped::Failed(error)) => return Err(error),
            Err(Stopped::Misled | Stopped::NeedsGit) => return Ok(None),
        };
        let belief = walk.belief;
        let empty = State::default();
        let grown = grow(&mut findings, if belief == Belief::Nothing { &empty } else { &state }, sink);
        self.check_untracked(&grown, &basis, options)?;
        let found = Found {
            tree: name(grown.tree),
            index_tree: (basis.index_tree != NO_ID).then(|| name(basis.index_tree)),
            marks: IndexMarks {
                intent_to_add: index.loaded().map(Index::intended).unwrap_or_default(),
                ..Default::default()
            },
            total: grown.total,
            skipped: findings.skipped.into_iter().collect::<BTreeSet<_>>().into_iter().collect(),
            included: vec![],
            notes: findings.notes.into_iter().collect::<BTreeSet<_>>().into_iter().collect(),
        };
        let before = before(&state, belief, repository);
        let same = same_as(&state, &basis, &grown, before.as_ref());
        let extent = if belief == Belief::Nothing { Extent::default() } else { state.extent() };
        let file = if belief == Belief::Nothing { Blocks::default() } else { file };
        Ok(Some(Quick { found, basis, same, before, journal: grown.journal, file, extent }))
    }

    /// Counts how what was found differs from HEAD: where the latest snapshot was counted already, from there.
    pub(super) fn count_quick(
        &self,
        quick: &Quick,
        state: &RepositoryState,
    ) -> Result<FileCounts, CaptureError> {
        if let Some((before, counts)) = &quick.before {
            let head = state.head.as_ref().map(|head| self.objects.commit(head)).transpose()?;
            let (head, trees) = (head.as_ref().map(|head| &head.tree), [before, &quick.found.tree]);
            let counts = self.objects.recount(head, trees, *counts, |path| !self.is_ours(path));
            if let Ok(counts) = counts {
                return Ok(FileCounts { total: quick.found.total, ..counts });
            }
        }
        self.compare(&self.objects, state, &quick.found).map(|(_, counts)| counts)
    }

    /// Ignored files are added by the git program, and so is what must be copied from another object store.
    fn is_fit(&self, options: &Capture) -> bool {
        options.include_ignored.is_empty() && options.force.is_empty() && !self.is_apart()
    }

    /// Decides how much of the state to believe, and what the new one will be valid for. `None`: only git can.
    fn believe(
        &self,
        state: &State<'_>,
        rules: &Rules,
        index: &LazyIndex<'_>,
        index_path: Option<&Path>,
        latest: Option<&ObjectId>,
        sink: &Sink,
    ) -> Result<Option<(Basis, Belief)>, CaptureError> {
        let key = match index_path {
            Some(path) => index::key_of(path).map_err(CaptureError::io("read", path))?,
            None => [0; 32],
        };
        let sound = |basis: &&Basis| {
            basis.rules == rules.key
                && latest.is_some_and(|id| id.to_bytes() == basis.commit)
                && sink.exists(&basis.commit)
        };
        let old = state.basis.as_ref().filter(sound);
        if let Some(old) = old.filter(|old| old.index == key) {
            return Ok(Some((old.clone(), Belief::Everything)));
        }
        let mut basis = Basis { rules: rules.key, index: key, ..old.cloned().unwrap_or_default() };
        if index_path.is_some() {
            let Some(index) = index.get() else { return Ok(None) };
            if index.needs_git().is_some() {
                return Ok(None);
            }
            basis.tracked = index.tracked_key();
            basis.tracked_count = index.len();
            basis.index_tree = index.tree(sink);
            if !index.intended().is_empty() {
                // The state has no room for these marks: the index is read again the next time.
                basis.index = key.map(|byte| !byte);
            }
            basis.needs_index = index.has_submodules() || index.lends_attributes(&self.root);
        }
        let belief = match old {
            Some(old) if old.tracked == basis.tracked && old.needs_index == basis.needs_index => {
                Belief::Everything
            }
            Some(_) => Belief::Content,
            None => Belief::Nothing,
        };
        Ok(Some((basis, belief)))
    }

    /// Returns the time by the file system's own clock: what is changed from now on has this time or a later one.
    fn moment(&self) -> Result<i64, CaptureError> {
        let path = self.folder.join("lock");
        let touch = || -> std::io::Result<i64> {
            let file = std::fs::File::options().write(true).open(&path)?;
            let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
            rustix::fs::futimens(
                &file,
                &rustix::fs::Timestamps { last_access: now, last_modification: now },
            )?;
            Ok(super::stamp::Stamp::of(&rustix::fs::fstat(&file)?).modified)
        };
        touch().map_err(CaptureError::io("touch", &path))
    }

    fn check_untracked(&self, grown: &Grown, basis: &Basis, options: &Capture) -> Result<(), CaptureError> {
        let untracked = grown.total.saturating_sub(basis.tracked_count) as usize;
        guard::untracked(untracked, options).map_err(|source| self.refused(source))
    }

    /// Makes the state fit a snapshot that is kept now. It is a cache: what cannot be written is looked at again.
    pub(super) fn remember(
        &self,
        quick: &Quick,
        commit: &ObjectId,
        head: Option<&ObjectId>,
        counts: FileCounts,
    ) {
        let id = |id: &ObjectId| Id::try_from(id.to_bytes()).unwrap_or(NO_ID);
        let basis = Basis {
            commit: id(commit),
            head: head.map_or(NO_ID, id),
            counts: [counts.added, counts.modified, counts.deleted],
            ..quick.basis.clone()
        };
        if quick.extent.store(&quick.file, &self.state_file(), &basis, &quick.journal).is_err() {
            let _ = std::fs::remove_file(self.state_file());
        }
    }
}

/// Returns the tree of the latest snapshot and how it differs from HEAD, if HEAD is where it was then.
fn before(state: &State<'_>, belief: Belief, repository: &RepositoryState) -> Option<(ObjectId, FileCounts)> {
    let old = state.basis.as_ref().filter(|_| belief != Belief::Nothing)?;
    let head = repository.head.as_ref().map_or_else(|| NO_ID.to_vec(), ObjectId::to_bytes);
    let root = state.root().filter(|root| old.head[..] == head[..] && root.tree != NO_ID)?;
    let [added, modified, deleted] = old.counts;
    Some((name(root.tree), FileCounts { total: root.below, added, modified, deleted }))
}

/// Returns the latest snapshot if this one would be the same.
fn same_as(
    state: &State<'_>,
    basis: &Basis,
    grown: &Grown,
    before: Option<&(ObjectId, FileCounts)>,
) -> Option<(ObjectId, FileCounts)> {
    let (old, (tree, counts)) = (state.basis.as_ref()?, before?);
    let same = *tree == name(grown.tree) && old.index_tree == basis.index_tree;
    same.then(|| (name(old.commit), FileCounts { total: grown.total, ..*counts }))
}

pub(super) fn name(id: Id) -> ObjectId {
    ObjectId::from_bytes(&id).expect("20 bytes are a name")
}

/// Returns the commit of a repository within the work tree, without entering it.
fn nested_head(git: &Git, folder: &Path) -> Option<Id> {
    let nested = Repository::at(repository::git_dir_of(folder).ok()??).ok()?;
    let git = Git::new(git.program().clone(), &nested.git_dir, folder);
    let (head, _) = Refs::new(git, nested, "main".to_owned()).head().ok()?;
    Id::try_from(head?.to_bytes()).ok()
}
