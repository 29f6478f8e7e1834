//! What a restore will do to the files: decided before anything is touched, and the same for a dry run.
//!
//! Pure. The rule behind all of it: a file whose content is in no checkpoint is neither overwritten nor deleted.
//! If the target does not need its place, it is left and reported; if it does, the restore is refused.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::compare::{Change, Side};
use super::tree::EntryMode;
use crate::model::{ObjectId, RepoPath, SkipReason, Skipped};

/// What a restore will do to the files of a work tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FilePlan {
    /// Files that will be written, in the order of their paths.
    pub writes: Vec<Write>,
    /// Files that will be deleted; the safety snapshot holds each.
    pub deletes: Vec<Delete>,
    /// Files that differ from the target and stay as they are.
    pub left: Vec<Left>,
    /// Paths that were asked for and are neither there now nor in the target.
    pub unknown: Vec<RepoPath>,
    /// Ignored files in the way of a write: they must be captured by force before the restore may go on.
    pub capture_first: Vec<RepoPath>,
    /// Why the restore must not be done at all; nothing is touched unless this is empty.
    pub refusals: Vec<Refusal>,
}

/// A file that a restore will write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Write {
    /// Where.
    pub path: RepoPath,
    /// What is there now, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Side>,
    /// What will be there.
    pub content: Side,
}

/// A file that a restore will delete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delete {
    /// Where.
    pub path: RepoPath,
    /// What is there now.
    pub content: Side,
}

/// A file that a restore leaves although the target has it otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Where.
    pub path: RepoPath,
    /// Why.
    pub reason: LeftReason,
}

/// Says why a restore leaves a file alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LeftReason {
    /// It is, or was, a repository of its own; those are never entered.
    Submodule,
    /// No snapshot of now could hold it.
    NotHeldNow(SkipReason),
    /// It was there when the target was taken, but the target could not hold it.
    NotHeldThen(SkipReason),
    /// The ignore rules that the target holds leave it out, so it may have been there when the target was taken.
    IgnoredThen,
    /// It is ignored, so no snapshot holds it, and the rules of the target do not ignore it.
    IgnoredNow,
    /// It was ignored until a restore took the rules away, and no checkpoint that somebody asked for holds it.
    IgnoredBefore,
    /// It is one of Stagepost's own records.
    OwnRecord,
    /// git was told not to look at it, and what stands there is in no snapshot.
    Unwatched,
    /// git was told not to look at it, and it is not there; whoever names it gets it back.
    Missing,
}

impl fmt::Display for LeftReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Submodule => f.write_str("a repository of its own"),
            Self::NotHeldNow(SkipReason::Secret) => {
                f.write_str("it looks like a secret, and is in no checkpoint")
            }
            Self::NotHeldNow(reason) => write!(f, "no checkpoint can hold it: {}", why(*reason)),
            Self::NotHeldThen(reason) => write!(f, "the checkpoint did not hold it: {}", why(*reason)),
            Self::IgnoredThen => f.write_str("the checkpoint's own rules ignore it"),
            Self::IgnoredNow => {
                f.write_str("it is ignored, so no checkpoint holds it; after this nothing ignores it")
            }
            Self::IgnoredBefore => f.write_str(
                "it was ignored until a restore took the rules away, and no checkpoint of yours holds it",
            ),
            Self::OwnRecord => f.write_str("one of Stagepost's own records"),
            Self::Unwatched => {
                f.write_str("no checkpoint holds it: git is told not to look at it (`git update-index`)")
            }
            Self::Missing => {
                f.write_str("it is not there, and git is told not to look at it; name it to get it back")
            }
        }
    }
}

fn why(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::TooLarge => "too large",
        SkipReason::Unreadable => "not readable",
        SkipReason::Special => "not a file",
        SkipReason::NestedUnborn => "a repository without a commit",
        SkipReason::InvalidName => "its name cannot be in a repository",
        SkipReason::Secret => "it looks like a secret",
    }
}

/// Why a restore is not done; nothing was touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[non_exhaustive]
pub enum Refusal {
    /// The target holds a path that must never be written.
    #[error("the checkpoint holds `{path}`, which must not be written")]
    UnsafePath {
        /// The path.
        path: RepoPath,
    },
    /// The target needs a place taken by something that no checkpoint can hold.
    #[error("`{path}` is in the way and no checkpoint can hold it: {}", why(*reason))]
    NotHeld {
        /// What is in the way.
        path: RepoPath,
        /// Why no checkpoint holds it.
        reason: SkipReason,
    },
    /// The target needs a place inside, or instead of, another repository.
    #[error("`{path}` is a repository of its own and is in the way")]
    NestedRepository {
        /// Where the other repository is.
        path: RepoPath,
    },
    /// The mode needs a git repository.
    #[error("there is no git repository here: only files can be restored")]
    NoRepository,
    /// The mode is for the whole project.
    #[error("single paths can only be restored as files")]
    PathsNeedFiles,
    /// The target does not know what the index held.
    #[error("the checkpoint holds no index: it was taken in the middle of a conflict")]
    NoIndex,
    /// What is there now has conflicts in its index, which no checkpoint could bring back.
    #[error("the index has conflicts, which no checkpoint can hold")]
    Conflicts,
    /// A merge, rebase or the like is going on.
    #[error("a {operation} is in progress")]
    InProgress {
        /// What is going on.
        operation: &'static str,
    },
    /// Another git process works on the index.
    #[error("the index is locked by another git process (`index.lock` exists)")]
    IndexLocked,
    /// HEAD is not where the safety snapshot saw it.
    #[error("HEAD has moved since the safety checkpoint")]
    HeadMoved,
    /// The commit that HEAD named is not in the repository any more.
    #[error(
        "commit {commit}, which HEAD named then, is gone; the files can still be restored (`--mode files`)"
    )]
    HeadGone {
        /// The commit.
        commit: ObjectId,
    },
    /// The target's branch now names a commit that the safety snapshot would not keep.
    #[error("branch `{branch}` has moved on since the checkpoint and is not checked out; switch to it first")]
    BranchMoved {
        /// The branch.
        branch: String,
    },
    /// The target's branch is checked out in another work tree.
    #[error("branch `{branch}` is checked out in another work tree")]
    BranchElsewhere {
        /// The branch.
        branch: String,
    },
}

/// Something on disk where the target needs a place and the snapshot of now holds nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Obstacle {
    /// Where it is: the place itself, a parent of it, or a file below it.
    pub(crate) path: RepoPath,
    /// What it is.
    pub(crate) kind: ObstacleKind,
}

/// What an obstacle is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum ObstacleKind {
    /// A file or link that could be captured if asked for.
    Ignored,
    /// A repository of its own.
    Repository,
    /// Something that cannot be captured.
    NotHeld(SkipReason),
}

/// Everything the decision rests on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Facts<'a> {
    /// How the target differs from what is there now.
    pub(crate) changes: &'a [Change],
    /// The files and folders asked for; none means all.
    pub(crate) paths: &'a [RepoPath],
    /// What is in the way.
    pub(crate) obstacles: &'a [Obstacle],
    /// Files that git was told not to look at and that stand there as in neither snapshot.
    pub(crate) unwatched: &'a [RepoPath],
    /// Files that git was told not to look at and that are not there.
    pub(crate) missing: &'a [RepoPath],
    /// What the snapshot of now does not hold.
    pub(crate) skipped_now: &'a [Skipped],
    /// What the target does not hold.
    pub(crate) skipped_then: &'a [Skipped],
    /// Files of now that the target's own ignore rules leave out, in order.
    pub(crate) ignored_then: &'a [RepoPath],
    /// Files of now that stay although the target does not have them, in order.
    pub(crate) kept: &'a [RepoPath],
    /// Stagepost's own records.
    pub(crate) own_records: &'a [RepoPath],
}

/// Decides what a restore does to the files.
pub(crate) fn decide(facts: Facts<'_>) -> FilePlan {
    let mut plan = FilePlan::default();
    let places = Places::of(facts.changes);
    for change in selected(facts.changes, facts.paths) {
        decide_path(&mut plan, change, &facts, &places);
    }
    decide_obstacles(&mut plan, &facts);
    // What git does not look at may differ from the target although neither snapshot shows it.
    let told: HashSet<_> = plan.left.iter().map(|left| left.path.clone()).collect();
    let untold = facts.unwatched.iter().filter(|path| !told.contains(*path));
    plan.left.extend(untold.map(|path| Left { path: path.clone(), reason: LeftReason::Unwatched }));
    plan.left
        .extend(facts.missing.iter().map(|path| Left { path: path.clone(), reason: LeftReason::Missing }));
    let reported = plan.left.iter().map(|left| &left.path).chain(&plan.capture_first);
    let reported: HashSet<_> = reported.cloned().collect();
    let left_out = facts.skipped_now.iter().filter(|skipped| !reported.contains(&skipped.path));
    let asked = left_out.filter(|skipped| is_asked(&skipped.path, facts.paths));
    plan.left.extend(
        asked.map(|skipped| Left {
            path: skipped.path.clone(),
            reason: LeftReason::NotHeldNow(skipped.reason),
        }),
    );
    plan.left.sort_by(|a, b| a.path.cmp(&b.path));
    plan
}

/// The changes asked for, and with them the files that stand where a folder must be for one of them.
pub(crate) fn selected<'a>(changes: &'a [Change], paths: &[RepoPath]) -> Vec<&'a Change> {
    let asked = |change: &&Change| is_asked(&change.path, paths);
    if paths.is_empty() {
        return changes.iter().collect();
    }
    let written = changes.iter().filter(asked).filter(|change| change.new.is_some());
    let folders: BTreeSet<&[u8]> = written.flat_map(|change| ancestors(change.path.as_bytes())).collect();
    let blocks = |change: &&Change| change.new.is_none() && folders.contains(change.path.as_bytes());
    changes.iter().filter(|change| asked(change) || blocks(change)).collect()
}

/// The folders above a path, nearest last, without the root.
pub(crate) fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(slash, _)| &path[..slash])
}

/// The places that the target needs.
struct Places<'a> {
    /// Files and links of the target that differ.
    written: HashSet<&'a [u8]>,
    /// The folders above them.
    folders: HashSet<&'a [u8]>,
    /// Repositories of the target that differ.
    repositories: HashSet<&'a [u8]>,
}

impl<'a> Places<'a> {
    fn of(changes: &'a [Change]) -> Self {
        let new = || changes.iter().filter_map(|change| Some((change.path.as_bytes(), change.new.as_ref()?)));
        let written: HashSet<_> =
            new().filter(|(_, side)| !is_submodule(side)).map(|(path, _)| path).collect();
        let folders = written.iter().flat_map(|path| ancestors(path)).collect();
        let repositories = new().filter(|(_, side)| is_submodule(side)).map(|(path, _)| path).collect();
        Self { written, folders, repositories }
    }

    /// Says whether the target has a file where a path leads through a folder, or the other way round.
    fn needs(&self, path: &[u8]) -> bool {
        self.folders.contains(path) || ancestors(path).any(|above| self.written.contains(above))
    }

    /// Says whether a path leads into a repository of the target.
    fn is_in_repository(&self, path: &[u8]) -> bool {
        ancestors(path).any(|above| self.repositories.contains(above))
    }
}

fn decide_path(plan: &mut FilePlan, change: &Change, facts: &Facts<'_>, places: &Places<'_>) {
    let left = |reason| Left { path: change.path.clone(), reason };
    if is_own_record(&change.path, facts.own_records) {
        return plan.left.push(left(LeftReason::OwnRecord));
    }
    if facts.unwatched.contains(&change.path) {
        return plan.left.push(left(LeftReason::Unwatched));
    }
    if facts.missing.contains(&change.path) {
        return;
    }
    match (&change.old, &change.new) {
        (_, Some(_)) if !change.path.is_safe() => {
            plan.refusals.push(Refusal::UnsafePath { path: change.path.clone() });
        }
        (Some(before), Some(after)) if is_submodule(before) && !is_submodule(after) => {
            plan.refusals.push(Refusal::NestedRepository { path: change.path.clone() });
        }
        (Some(side), _) | (_, Some(side)) if is_submodule(side) => {
            plan.left.push(left(LeftReason::Submodule))
        }
        (_, Some(after)) if is_submodule(after) => plan.left.push(left(LeftReason::Submodule)),
        (before, Some(after)) => plan.writes.push(Write {
            path: change.path.clone(),
            replaces: before.clone(),
            content: after.clone(),
        }),
        (Some(before), None) => match why_left(&change.path, facts, places) {
            Some(reason) => plan.left.push(left(reason)),
            None => plan.deletes.push(Delete { path: change.path.clone(), content: before.clone() }),
        },
        (None, None) => {}
    }
}

/// Says why a file that the target does not hold is not deleted, if so: it may have been there all the same.
fn why_left(path: &RepoPath, facts: &Facts<'_>, places: &Places<'_>) -> Option<LeftReason> {
    let not_held = not_held(path, facts.skipped_then).map(LeftReason::NotHeldThen);
    let is_free = || !places.needs(path.as_bytes());
    let ignored = || facts.ignored_then.binary_search(path).is_ok().then_some(LeftReason::IgnoredThen);
    let kept = || facts.kept.binary_search(path).is_ok().then_some(LeftReason::IgnoredBefore);
    let repository = || places.is_in_repository(path.as_bytes()).then_some(LeftReason::Submodule);
    not_held.or_else(|| ignored().or_else(kept).filter(|_| is_free())).or_else(repository)
}

/// A write beneath what is a repository now, or where something unheld stands, cannot be done.
fn decide_obstacles(plan: &mut FilePlan, facts: &Facts<'_>) {
    let now_repositories =
        facts.changes.iter().filter(|change| change.old.as_ref().is_some_and(is_submodule));
    for repository in now_repositories {
        let inside = |write: &&Write| write.path.is_within(&repository.path) && write.path != repository.path;
        if plan.writes.iter().any(|write| inside(&write)) {
            plan.refusals.push(Refusal::NestedRepository { path: repository.path.clone() });
        }
    }
    for obstacle in facts.obstacles {
        let path = obstacle.path.clone();
        match obstacle.kind {
            ObstacleKind::Ignored => plan.capture_first.push(path),
            ObstacleKind::Repository => plan.refusals.push(Refusal::NestedRepository { path }),
            ObstacleKind::NotHeld(reason) => plan.refusals.push(Refusal::NotHeld { path, reason }),
        }
    }
}

fn is_submodule(version: &Side) -> bool {
    version.mode == EntryMode::Submodule
}

pub(crate) fn is_asked(path: &RepoPath, paths: &[RepoPath]) -> bool {
    paths.is_empty() || paths.iter().any(|folder| path.is_within(folder))
}

fn is_own_record(path: &RepoPath, own_records: &[RepoPath]) -> bool {
    let first = path.parts().next().unwrap_or_default();
    first.eq_ignore_ascii_case(b".stagepost") || own_records.iter().any(|record| path.is_within(record))
}

fn not_held(path: &RepoPath, skipped: &[Skipped]) -> Option<SkipReason> {
    skipped.iter().find(|skipped| path.is_within(&skipped.path)).map(|skipped| skipped.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(mode: EntryMode, content: u8) -> Option<Side> {
        Some(Side { mode, id: ObjectId::from_bytes(&[content; 20]).unwrap() })
    }

    fn file(content: u8) -> Option<Side> {
        version(EntryMode::File, content)
    }

    fn change(path: &str, before: Option<Side>, after: Option<Side>) -> Change {
        Change { path: path.into(), old: before, new: after }
    }

    fn skipped(path: &str, reason: SkipReason) -> Skipped {
        Skipped { path: path.into(), size: 1, reason }
    }

    fn paths<'a>(found: impl IntoIterator<Item = &'a RepoPath>) -> Vec<String> {
        found.into_iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_differs_is_written_and_what_is_new_is_deleted() {
        let changes = [change("a", file(1), file(2)), change("b", file(1), None), change("c", None, file(3))];
        let plan = decide(Facts { changes: &changes, ..Facts::default() });
        assert_eq!(paths(plan.writes.iter().map(|write| &write.path)), ["a", "c"]);
        assert_eq!(paths(plan.deletes.iter().map(|delete| &delete.path)), ["b"]);
        assert!(plan.left.is_empty() && plan.refusals.is_empty());
    }

    #[test]
    fn only_the_paths_asked_for_and_what_blocks_them() {
        let changes = [
            change("d", file(1), None),
            change("d/x", None, file(2)),
            change("d/y", None, file(2)),
            change("dx", file(1), None),
        ];
        let plan = decide(Facts { changes: &changes, paths: &["d/x".into()], ..Facts::default() });
        assert_eq!(paths(plan.writes.iter().map(|write| &write.path)), ["d/x"]);
        assert_eq!(paths(plan.deletes.iter().map(|delete| &delete.path)), ["d"]);
    }

    #[test]
    fn what_the_target_could_not_hold_is_not_deleted() {
        let changes = [change("big", file(1), None), change("nested/a", file(1), None)];
        let then = [skipped("big", SkipReason::TooLarge), skipped("nested", SkipReason::NestedUnborn)];
        let plan = decide(Facts { changes: &changes, skipped_then: &then, ..Facts::default() });
        assert!(plan.deletes.is_empty());
        assert_eq!(plan.left[0].reason, LeftReason::NotHeldThen(SkipReason::TooLarge));
        assert_eq!(plan.left.len(), 2);
    }

    #[test]
    fn what_no_snapshot_can_hold_is_reported() {
        let now = [skipped("big", SkipReason::TooLarge), skipped("other/big", SkipReason::Unreadable)];
        let plan = decide(Facts { skipped_now: &now, ..Facts::default() });
        assert_eq!(plan.left.len(), 2);
        let plan = decide(Facts { skipped_now: &now, paths: &["other".into()], ..Facts::default() });
        assert_eq!(paths(plan.left.iter().map(|left| &left.path)), ["other/big"]);
    }

    #[test]
    fn paths_that_must_not_be_written_refuse_the_whole_restore() {
        for path in [".git/hooks/x", "a/../b", ".GIT/x"] {
            let plan = decide(Facts { changes: &[change(path, None, file(1))], ..Facts::default() });
            assert_eq!(plan.refusals, [Refusal::UnsafePath { path: path.into() }]);
            assert!(plan.writes.is_empty());
        }
    }

    #[test]
    fn repositories_are_left_or_refused() {
        let submodule = |content| version(EntryMode::Submodule, content);
        let changes = [change("moved", submodule(1), submodule(2)), change("gone", submodule(1), None)];
        let plan = decide(Facts { changes: &changes, ..Facts::default() });
        assert!(plan.left.len() == 2 && plan.writes.is_empty() && plan.deletes.is_empty());

        let changes = [change("sub", submodule(1), None), change("sub/x", None, file(1))];
        let plan = decide(Facts { changes: &changes, ..Facts::default() });
        assert_eq!(plan.refusals, [Refusal::NestedRepository { path: "sub".into() }]);

        let plan = decide(Facts { changes: &[change("sub", submodule(1), file(2))], ..Facts::default() });
        assert_eq!(plan.refusals, [Refusal::NestedRepository { path: "sub".into() }]);
    }

    #[test]
    fn own_records_are_never_rolled_back() {
        let changes = [
            change(".stagepost/store.db", file(1), file(2)),
            change("views/log.json", file(1), None),
            change("a", None, file(1)),
        ];
        let plan = decide(Facts { changes: &changes, own_records: &["views".into()], ..Facts::default() });
        assert_eq!(plan.left.iter().filter(|left| left.reason == LeftReason::OwnRecord).count(), 2);
        assert!(plan.writes.len() == 1 && plan.deletes.is_empty());
    }

    #[test]
    fn obstacles_are_captured_first_or_refused() {
        let obstacle = |path: &str, kind| Obstacle { path: path.into(), kind };
        let obstacles = [
            obstacle("log", ObstacleKind::Ignored),
            obstacle("big", ObstacleKind::NotHeld(SkipReason::TooLarge)),
            obstacle("nested", ObstacleKind::Repository),
        ];
        let plan = decide(Facts { obstacles: &obstacles, ..Facts::default() });
        assert_eq!(paths(&plan.capture_first), ["log"]);
        assert_eq!(plan.refusals.len(), 2);
    }
}
