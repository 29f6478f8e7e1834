//! HEAD, branch and index: where they are, and whether they may go where a snapshot had them.
//!
//! Pure. The rule: a commit that HEAD or a branch names now stays reachable, because the safety snapshot has it
//! as its parent. A branch that is not checked out has no such keeper, so it is not moved.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::model::{IndexMarks, ObjectId, RepoPath, Snapshot};
use crate::snapshot::capture::Look;
use crate::snapshot::plan::Refusal;
use crate::snapshot::repository::Operation;

/// Where HEAD, its branch and the index are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The commit that HEAD names; absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<ObjectId>,
    /// The branch that HEAD names, without `refs/heads/`; absent when detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The tree of the index; absent without git and while it has conflicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_tree: Option<ObjectId>,
}

impl Position {
    /// Whether HEAD and branch are the same; the index may differ.
    pub(super) fn is_at(&self, other: &Self) -> bool {
        self.head == other.head && self.branch == other.branch
    }
}

impl From<&Snapshot> for Position {
    fn from(snapshot: &Snapshot) -> Self {
        Self {
            head: snapshot.head.clone(),
            branch: snapshot.branch.clone(),
            index_tree: snapshot.index_tree.clone(),
        }
    }
}

impl From<&Look> for Position {
    fn from(look: &Look) -> Self {
        Self { head: look.head.clone(), branch: look.branch.clone(), index_tree: look.index_tree.clone() }
    }
}

/// Whether marks are as a target has them. Files that git is told not to look at keep that mark: someone may rely on it, as they
/// hold what is nowhere else.
pub(super) fn marks_are_as(now: &IndexMarks, to: &IndexMarks) -> bool {
    let has_all = |now: &[RepoPath], to: &[RepoPath]| {
        let now: HashSet<_> = now.iter().collect();
        to.iter().all(|path| now.contains(path))
    };
    now.intent_to_add == to.intent_to_add
        && has_all(&now.assume_unchanged, &to.assume_unchanged)
        && has_all(&now.skip_worktree, &to.skip_worktree)
}

/// What the repository says right now.
#[derive(Debug, Clone, Default)]
pub(super) struct Circumstances {
    /// What HEAD and its branch are.
    pub(super) now: Position,
    /// What it is in the middle of.
    pub(super) operation: Option<Operation>,
    /// Whether another git process works on the index.
    pub(super) index_locked: bool,
    /// The commit that the target's branch names, if that branch exists.
    pub(super) target_tip: Option<ObjectId>,
    /// Whether the target's branch is checked out in another work tree.
    pub(super) elsewhere: bool,
}

/// Says why HEAD, branch and index may not go from `from` to `to`; empty if they may. Being there already is no
/// reason: an interrupted restore goes on from where it was.
pub(super) fn refusals(from: &Position, to: &Position, there: &Circumstances) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    if let Some(operation) = there.operation.and_then(word) {
        refusals.push(Refusal::InProgress { operation });
    }
    if there.index_locked {
        refusals.push(Refusal::IndexLocked);
    }
    if to.index_tree.is_none() {
        refusals.push(Refusal::NoIndex);
    }
    if from.index_tree.is_none() {
        refusals.push(Refusal::Conflicts);
    }
    if there.now.is_at(to) {
        return refusals;
    }
    if !there.now.is_at(from) {
        refusals.push(Refusal::HeadMoved);
    }
    if let Some(branch) = to.branch.clone().filter(|branch| from.branch.as_ref() != Some(branch)) {
        refusals.extend(branch_refusal(branch, to, there));
    }
    refusals
}

fn branch_refusal(branch: String, to: &Position, there: &Circumstances) -> Option<Refusal> {
    if there.elsewhere {
        return Some(Refusal::BranchElsewhere { branch });
    }
    let moved = there.target_tip.is_some() && there.target_tip != to.head;
    moved.then_some(Refusal::BranchMoved { branch })
}

/// A bisection only moves HEAD, which the safety snapshot records; everything else has state that it does not.
fn word(operation: Operation) -> Option<&'static str> {
    match operation {
        Operation::Merge => Some("merge"),
        Operation::Rebase => Some("rebase"),
        Operation::ApplyMailbox => Some("patch series (git am)"),
        Operation::CherryPick => Some("cherry-pick"),
        Operation::Revert => Some("revert"),
        Operation::Bisect => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(branch: Option<&str>, commit: u8) -> Position {
        let id = |byte| ObjectId::from_bytes(&[byte; 20]);
        Position { head: id(commit), branch: branch.map(Into::into), index_tree: id(9) }
    }

    fn there(now: Position) -> Circumstances {
        Circumstances { now, ..Circumstances::default() }
    }

    #[test]
    fn the_branch_that_is_checked_out_may_move() {
        let (from, to) = (at(Some("main"), 1), at(Some("main"), 2));
        assert!(refusals(&from, &to, &there(from.clone())).is_empty());
        assert!(refusals(&from, &to, &there(to.clone())).is_empty());
        assert_eq!(refusals(&from, &to, &there(at(Some("main"), 3))), [Refusal::HeadMoved]);
    }

    #[test]
    fn another_branch_moves_only_where_nothing_is_lost() {
        let (from, to) = (at(Some("feature"), 1), at(Some("main"), 2));
        let with_tip =
            |tip| Circumstances { target_tip: ObjectId::from_bytes(&[tip; 20]), ..there(from.clone()) };
        assert!(refusals(&from, &to, &with_tip(2)).is_empty());
        assert!(refusals(&from, &to, &there(from.clone())).is_empty());
        assert_eq!(refusals(&from, &to, &with_tip(3)), [Refusal::BranchMoved { branch: "main".into() }]);
        let elsewhere = Circumstances { elsewhere: true, ..with_tip(2) };
        assert_eq!(refusals(&from, &to, &elsewhere), [Refusal::BranchElsewhere { branch: "main".into() }]);
    }

    #[test]
    fn what_is_going_on_is_not_disturbed() {
        let (from, to) = (at(Some("main"), 1), at(Some("main"), 2));
        let merging = Circumstances { operation: Some(Operation::Merge), ..there(from.clone()) };
        assert_eq!(refusals(&from, &to, &merging), [Refusal::InProgress { operation: "merge" }]);
        let locked = Circumstances { index_locked: true, ..there(from.clone()) };
        assert_eq!(refusals(&from, &to, &locked), [Refusal::IndexLocked]);
        let conflicted = Position { index_tree: None, ..from.clone() };
        assert_eq!(refusals(&conflicted, &to, &there(from.clone())), [Refusal::Conflicts]);
        assert_eq!(refusals(&to, &conflicted, &there(from)), [Refusal::NoIndex]);
    }
}
