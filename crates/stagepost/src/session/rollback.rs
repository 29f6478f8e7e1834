//! Going back within a session.

use super::events::Happened;
use super::rule::{Failure, should_rollback};
use super::validate::{Finding, quick};
use super::{Checkpoint, Error, Session};
use crate::model::{self, Progress, Rollback, RollbackMode};
use crate::project::{self, Files, Wish};
use crate::snapshot::restore::{Mode, RestorePlan};

/// Says what becomes of uncommitted changes in a rollback that leaves the files alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Changes {
    /// The rollback is refused.
    #[default]
    Refuse,
    /// They stay in the files, beside everything since the checkpoint.
    Keep,
}

/// What a rollback would do.
pub type Plan = RestorePlan;

impl Session<'_> {
    /// Goes back to a checkpoint and records it, also if it fails. What is there now is in a safety checkpoint first,
    /// so that it can be undone.
    ///
    /// ```
    /// # let home = stagepost_testutil::TempProject::git();
    /// # let project = &home.open();
    /// # let perform_migration = || Err::<(), &str>("no");
    /// use stagepost::model::{Phase, Reason, RollbackMode};
    /// use stagepost::session::{Changes, NewCheckpoint, Session};
    ///
    /// let session = Session::start(project, "Migrate the database")?;
    /// if Session::validate(project, None)?.is_valid {
    ///     let safety = session.create(NewCheckpoint {
    ///         reason: Reason::PreRiskyOperation,
    ///         operation: Some("migration".into()),
    ///         ..NewCheckpoint::new(Phase::Implement, "Before database migration")
    ///     })?;
    ///     home.write("schema.sql", "half a migration");
    ///     if perform_migration().is_err() {
    ///         session.rollback(&safety.id().to_string(), RollbackMode::Hard, Changes::Refuse)?;
    ///         assert!(home.read("schema.sql").is_none());
    ///     }
    /// }
    /// # Ok::<(), stagepost::session::Error>(())
    /// ```
    pub fn rollback(&self, name: &str, mode: RollbackMode, changes: Changes) -> Result<Rollback, Error> {
        let checkpoint = self.get(name)?;
        let mut rollback = self.attempt(&checkpoint, mode)?;
        let outdated = self.project.begin_view(self.run.id.as_str())?;
        let done = self.carry_out(&checkpoint, changes, &mut rollback);
        rollback.head_after = self.head()?;
        rollback.success = done.is_ok();
        rollback.error = done.as_ref().err().map(chain);
        self.say(&Happened::RollbackEnded { rollback: rollback.clone() })?;
        self.publish(outdated)?;
        done.map(|()| rollback)
    }

    /// Decides what a rollback would do, and touches nothing. What the rollback would be refused for refuses this too.
    pub fn plan_rollback(&self, name: &str, mode: RollbackMode, changes: Changes) -> Result<Plan, Error> {
        let checkpoint = self.get(name)?;
        let target = self.judge(&checkpoint, changes, &mut self.attempt(&checkpoint, mode)?)?;
        Ok(self.project.plan_restore(&target, &wish(mode))?)
    }

    /// Rolls back to the newest checkpoint that someone called good, or else to the newest, if the rule says that a
    /// failure calls for it.
    pub fn rollback_if_needed(&self, failure: &Failure) -> Result<Option<Rollback>, Error> {
        if should_rollback(failure).is_none() {
            return Ok(None);
        }
        let all = self.list()?;
        let good = all.iter().find(|one| one.record().is_good());
        let Some(target) = good.or(all.first()) else { return Ok(None) };
        self.rollback(&target.id().to_string(), RollbackMode::Hard, Changes::Keep).map(Some)
    }

    fn attempt(&self, checkpoint: &Checkpoint, mode: RollbackMode) -> Result<Rollback, Error> {
        let record = checkpoint.record();
        Ok(Rollback {
            id: self.project.new_id().to_string(),
            at: self.project.context().clock.now(),
            checkpoint: record.id.to_string(),
            description: record.content.description.clone(),
            commit: checkpoint.commit().map(|commit| commit.to_string()),
            mode,
            head_before: self.head()?,
            head_after: None,
            progress: Progress::of(record),
            errors: Vec::new(),
            warnings: Vec::new(),
            success: false,
            error: None,
            extra: serde_json::Map::new(),
        })
    }

    fn carry_out(
        &self,
        checkpoint: &Checkpoint,
        changes: Changes,
        rollback: &mut Rollback,
    ) -> Result<(), Error> {
        let target = self.judge(checkpoint, changes, rollback)?;
        self.say(&Happened::RollbackBegan { rollback: rollback.clone() })?;
        self.project.restore(&target, &wish(rollback.mode))?;
        Ok(())
    }

    /// Says whether a rollback may be, and to what.
    fn judge(
        &self,
        checkpoint: &Checkpoint,
        changes: Changes,
        rollback: &mut Rollback,
    ) -> Result<model::Checkpoint, Error> {
        let found = quick(self.project)?;
        let texts = |findings: &[Finding]| findings.iter().map(ToString::to_string).collect();
        (rollback.errors, rollback.warnings) = (texts(&found.errors), texts(&found.warnings));
        if !found.errors.is_empty() {
            return Err(Error::Invalid { findings: found.errors });
        }
        if rollback.mode == RollbackMode::Mixed {
            self.judge_changes(changes, rollback)?;
        }
        let target = self.target(checkpoint)?;
        let branch = |record: &model::Checkpoint| record.content.snapshot.as_ref()?.branch.clone();
        let made_on = branch(checkpoint.record()).filter(|made_on| branch(&target).as_ref() != Some(made_on));
        rollback
            .warnings
            .extend(made_on.map(|branch| format!("the checkpoint was made on branch `{branch}`")));
        Ok(target)
    }

    /// Uncommitted changes would be mixed up with everything since the checkpoint.
    fn judge_changes(&self, changes: Changes, rollback: &mut Rollback) -> Result<(), Error> {
        let files = self.project.look(&Files::default())?.changes.len();
        if files == 0 {
            return Ok(());
        }
        let text = Finding::Uncommitted.to_string();
        if changes == Changes::Keep {
            rollback.warnings.push(text);
            return Ok(());
        }
        rollback.errors.push(text);
        Err(Error::Dirty { files })
    }

    /// The checkpoint as a rollback puts it back: whatever branch it was made on, a rollback moves the one that is checked
    /// out, and never detaches HEAD.
    fn target(&self, checkpoint: &Checkpoint) -> Result<model::Checkpoint, Error> {
        let mut target = checkpoint.record().clone();
        let lost = || Error::Lost { checkpoint: checkpoint.entry().checkpoint_id };
        let snapshot = target.content.snapshot.as_mut().ok_or_else(lost)?;
        snapshot.branch = self.state()?.branch;
        Ok(target)
    }

    fn head(&self) -> Result<Option<String>, Error> {
        Ok(self.state()?.head.map(|head| head.to_string()))
    }

    fn state(&self) -> Result<crate::snapshot::RepositoryState, Error> {
        Ok(self.project.snapshots()?.state_of_repository().map_err(project::Error::from)?)
    }
}

fn wish(mode: RollbackMode) -> Wish {
    let mode = match mode {
        RollbackMode::Mixed => Mode::Mixed,
        RollbackMode::Hard => Mode::Hard,
    };
    Wish { mode, paths: Vec::new() }
}

/// An error with all its causes, in one line.
fn chain(error: &Error) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let mut texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}
