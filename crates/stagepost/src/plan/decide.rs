//! What comes next in a run. Nothing is done here.

use std::time::Duration;

use super::history::{History, Iteration};
use super::job::{HardFail, Job, Span};
use crate::formats::plans::Verdict;

/// How far a run may go.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rules {
    pub(super) max_iterations: u32,
    pub(super) token_budget: Option<u64>,
    pub(super) time_budget: Option<Duration>,
    pub(super) on_hard_fail: HardFail,
    pub(super) validates: bool,
}

impl Rules {
    pub(super) fn of(job: &Job, validates: bool) -> Self {
        Self {
            max_iterations: job.max_iterations,
            token_budget: job.token_budget,
            time_budget: job.time_budget.as_ref().and_then(Span::duration),
            on_hard_fail: job.on_hard_fail,
            validates,
        }
    }

    /// How long calls may still take.
    pub(super) fn time_left(&self, history: &History) -> Option<Duration> {
        let spent = Duration::try_from_secs_f64(history.seconds).unwrap_or(Duration::MAX);
        self.time_budget.map(|budget| budget.saturating_sub(spent))
    }
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Ask the planner.
    Propose(u32),
    /// Ask the validator.
    Validate(u32),
    /// Ask the judge.
    Judge(u32),
    /// Record the end.
    Finish(Ending),
    /// Nothing: the run has ended.
    Done,
}

/// Why a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Approved(u32),
    MaxIterations,
    TokenBudget,
    TimeBudget,
    HardFail,
}

impl Ending {
    /// In words, as kept with a best attempt.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Ending::Approved(_) => "approved",
            Ending::MaxIterations => "max iterations reached",
            Ending::TokenBudget => "token budget exceeded",
            Ending::TimeBudget => "time budget exceeded",
            Ending::HardFail => "hard fail",
        }
    }
}

/// Decides what comes next. A run that ended without an approved plan goes on if it is given more.
pub(super) fn decide(history: &History, rules: &Rules) -> Action {
    let next = next(history, rules);
    match (&history.end, next) {
        (Some(end), _) if end.approved => Action::Done,
        (Some(_), Action::Finish(ending)) if !matches!(ending, Ending::Approved(_)) => Action::Done,
        _ => next,
    }
}

fn next(history: &History, rules: &Rules) -> Action {
    let Some(last) = history.iterations.values().next_back() else {
        return within(history, rules).unwrap_or(Action::Propose(1));
    };
    if last.verdict() == Some(Verdict::Approve) {
        return Action::Finish(Ending::Approved(last.number));
    }
    let wanted = after(last, rules);
    if matches!(wanted, Action::Finish(_)) { wanted } else { within(history, rules).unwrap_or(wanted) }
}

/// What follows from the newest iteration alone.
fn after(last: &Iteration, rules: &Rules) -> Action {
    let number = last.number;
    let invalid = last.validation.as_ref().is_some_and(|said| !said.valid);
    if last.raw.is_none() && last.judgement.is_none() {
        return Action::Propose(number);
    }
    if rules.validates && last.validation.is_none() && last.judgement.is_none() {
        return Action::Validate(number);
    }
    if last.judgement.is_none() && !invalid {
        return Action::Judge(number);
    }
    if last.verdict() == Some(Verdict::HardFail) && rules.on_hard_fail == HardFail::Stop {
        return Action::Finish(Ending::HardFail);
    }
    if number >= rules.max_iterations {
        Action::Finish(Ending::MaxIterations)
    } else {
        Action::Propose(number + 1)
    }
}

/// Ends what has no budget left.
fn within(history: &History, rules: &Rules) -> Option<Action> {
    if rules.token_budget.is_some_and(|budget| history.tokens >= budget) {
        return Some(Action::Finish(Ending::TokenBudget));
    }
    let out_of_time = rules.time_left(history).is_some_and(|left| left.is_zero());
    out_of_time.then_some(Action::Finish(Ending::TimeBudget))
}
