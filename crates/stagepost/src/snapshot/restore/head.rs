//! Moving HEAD and its branch, so that the reflogs say what happened: here where that leaves no lock, else through git.

use super::error::RestoreError;
use super::position::{Circumstances, Position};
use super::{Mode, Restore};
use crate::model::ObjectId;
use crate::snapshot::git::GitError;
use crate::snapshot::refs::RefError;
use crate::snapshot::repository::Repository;
use crate::snapshot::{AT_WORK, Move, Snapshots, Told, at_work, reference};

impl Snapshots {
    /// Reads what decides whether HEAD, branch and index may go to `to`.
    pub(super) fn circumstances(
        &self,
        user: &Repository,
        to: &Position,
    ) -> Result<Circumstances, RestoreError> {
        let (head, branch) = self.user_refs.head()?;
        let switches = to.branch.as_ref().filter(|to| branch.as_ref() != Some(to));
        let (target_tip, elsewhere) = match switches {
            Some(branch) => (self.user_refs.read(&reference(branch))?, self.is_checked_out(branch)?),
            None => (None, false),
        };
        let now = Position { head, branch, index_tree: None };
        let index_locked = user.git_dir.join("index.lock").symlink_metadata().is_ok();
        Ok(Circumstances { now, operation: user.operation(), index_locked, target_tip, elsewhere })
    }

    /// Whether some work tree has the branch checked out; this one does not, or nobody would ask.
    fn is_checked_out(&self, branch: &str) -> Result<bool, GitError> {
        let list = self.rules_git.run(&["worktree", "list", "--porcelain", "-z"], b"")?;
        let wanted = format!("branch {}", reference(branch));
        Ok(list.split(|byte| *byte == 0).any(|line| line == wanted.as_bytes()))
    }

    /// Says whether a restore makes the branch that HEAD goes to.
    pub(super) fn makes_branch(&self, restore: &Restore) -> Result<bool, RefError> {
        let (from, to) = (&restore.from.position.branch, &restore.to.position.branch);
        match to.as_ref().filter(|_| restore.mode != Mode::Files && self.user.is_some() && from != to) {
            Some(branch) => Ok(self.user_refs.read(&reference(branch))?.is_none()),
            None => Ok(false),
        }
    }

    /// Takes the branch away that a restore made on its way to `made`, unless somebody has gone on with it.
    pub(super) fn unmake_branch(&self, made: &Position) -> Result<(), RestoreError> {
        let (Some(branch), Some(commit)) = (&made.branch, &made.head) else { return Ok(()) };
        let (_, now) = self.user_refs.head()?;
        let name = reference(branch);
        if now.as_ref() == Some(branch) || self.user_refs.read(&name)?.as_ref() != Some(commit) {
            return Ok(());
        }
        match self.take_branch_away(&name, commit) {
            Ok(Move::Done) | Err(RefError::Moved { .. }) => Ok(()),
            Ok(Move::NeedsGit) => self.update_ref(&name, Some(commit), None),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves HEAD and its branch from `from` to `to`; being there already is fine, being elsewhere is not.
    pub(super) fn move_head(&self, from: &Position, to: &Position) -> Result<bool, RestoreError> {
        let (head, branch) = self.user_refs.head()?;
        let now = Position { head, branch, index_tree: None };
        if now.is_at(to) {
            return Ok(false);
        }
        if !now.is_at(from) {
            return Err(RestoreError::HeadMoved);
        }
        match self.move_without_lock(from, to) {
            Ok(Move::Done) => return Ok(true),
            Ok(Move::NeedsGit) => {}
            Err(RestoreError::Ref(RefError::Moved { .. })) => return Err(RestoreError::HeadMoved),
            Err(error) => return Err(error),
        }
        let branches = [from, to].into_iter().filter_map(|place| place.branch.as_deref().map(reference));
        let _guard = (!self.keeps_tables()).then(|| self.guard_refs(&branches.collect::<Vec<_>>()));
        match &to.branch {
            Some(branch) if from.branch.as_ref() == Some(branch) => {
                self.update_ref(&reference(branch), from.head.as_ref(), to.head.as_ref())?;
            }
            Some(branch) => self.switch(branch, to)?,
            None => self.detach(from, to)?,
        }
        Ok(true)
    }

    /// Moves HEAD and its branch where that can be done without git's lock.
    fn move_without_lock(&self, from: &Position, to: &Position) -> Result<Move, RestoreError> {
        let answer = self.rules_git.try_run(&["var", "GIT_COMMITTER_IDENT"], b"")?;
        if !answer.status.success() {
            return Ok(Move::NeedsGit);
        }
        let who = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        let told = |message| Told { who: who.clone(), message, begins: false };
        let (old, new) = (from.head.as_ref(), to.head.as_ref());
        if let Some(branch) = to.branch.as_ref().filter(|branch| from.branch.as_ref() == Some(branch)) {
            let name = reference(branch);
            return Ok(match (old, new) {
                (_, Some(new)) => self.move_branch(&name, old, new, &told(moving_to(new)))?,
                (Some(old), None) => self.take_branch_away(&name, old)?,
                (None, None) => Move::Done,
            });
        }
        if let Some(branch) = &to.branch {
            let name = reference(branch);
            let made = match (self.user_refs.read(&name)?, new) {
                (None, Some(new)) => self.make_branch(&name, new, &told(moving_to(new)))?,
                (tip, new) if tip.as_ref() != new => return Err(RestoreError::HeadMoved),
                _ => Move::Done,
            };
            if made == Move::NeedsGit {
                return Ok(made);
            }
        }
        let symbolic = |branch: &String| format!("ref: {}", reference(branch));
        let says = |place: &Position| match (&place.branch, &place.head) {
            (Some(branch), _) => Some(symbolic(branch)),
            (None, head) => head.as_ref().map(ToString::to_string),
        };
        let (Some(was), Some(is)) = (says(from), says(to)) else { return Ok(Move::NeedsGit) };
        Ok(self.move_head_to(&was, &is, (old, new), &told(message(to)))?)
    }

    /// Has git move refs, recognised as at work.
    fn move_with_git(&self, args: &[&str], input: &[u8]) -> Result<(), RestoreError> {
        let git = self.rules_git.with(AT_WORK, at_work());
        let moved =
            self.change_tables(|copy| git.in_copy(copy).run(args, input).map_err(RestoreError::from))?;
        if moved.is_none() {
            git.run(args, input)?;
        }
        Ok(())
    }

    /// Points HEAD at a branch, which is made first if it is gone.
    fn switch(&self, branch: &str, to: &Position) -> Result<(), RestoreError> {
        let name = reference(branch);
        let tip = self.user_refs.read(&name)?;
        if tip.is_none() {
            self.update_ref(&name, None, to.head.as_ref())?;
        } else if tip != to.head {
            return Err(RestoreError::HeadMoved);
        }
        self.move_with_git(&["symbolic-ref", "-m", &message(to), "HEAD", &name], b"")
    }

    fn detach(&self, from: &Position, to: &Position) -> Result<(), RestoreError> {
        let Some(head) = &to.head else { return Err(RestoreError::HeadMoved) };
        let message = message(to);
        let mut args =
            vec!["update-ref", "--no-deref", "-m", &message, "--end-of-options", "HEAD", head.as_str()];
        args.extend(from.head.as_ref().map(ObjectId::as_str));
        self.move_with_git(&args, b"")
    }

    /// Moves, makes or deletes a ref if it is where we think it is.
    fn update_ref(
        &self,
        name: &str,
        old: Option<&ObjectId>,
        new: Option<&ObjectId>,
    ) -> Result<(), RestoreError> {
        let Some(length) = old.or(new).map(|id| id.as_str().len()) else { return Ok(()) };
        let zero = "0".repeat(length);
        let text = |id: Option<&ObjectId>| id.map_or_else(|| zero.clone(), ToString::to_string);
        let line = format!("update {name}\0{}\0{}\0", text(new), text(old));
        let message = new.map_or_else(|| "restore: before the first commit".to_owned(), moving_to);
        self.move_with_git(&["update-ref", "-m", &message, "-z", "--stdin"], line.as_bytes())
    }
}

fn message(to: &Position) -> String {
    match (&to.branch, &to.head) {
        (Some(branch), _) => format!("restore: moving to {branch}"),
        (None, Some(head)) => moving_to(head),
        (None, None) => "restore".to_owned(),
    }
}

fn moving_to(head: &ObjectId) -> String {
    format!("restore: moving to {head}")
}
