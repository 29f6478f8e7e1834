//! A step that proposes and judges until it is good enough.

use std::ffi::OsString;
use std::time::Instant;

use serde_json::{Value, json};

use super::attempt::{Attempt, Done, artifact};
use super::definition::{Command, Refine};
use super::record::RESULT;
use super::redact::Secrets;
use super::runner::Runner;
use super::{Error, made_of};
use crate::model::{Hash, RunId, StepStatus};
use crate::plan::{self, Agent, Agents, Fault, Job, Reply, Request, Which, Words};
use crate::process::Cancel;
use crate::project::Source;

/// The plan run of a step: it goes on where it was, unless the step is done again on purpose.
fn plan_run(run: &RunId, attempt: &Attempt<'_>) -> RunId {
    let name = format!("{run}.{}.{}", attempt.name.replace('/', "."), &attempt.key[..8]);
    let short = || format!("refine-{}", &Hash::of(name.as_bytes()).to_string()[..32]);
    RunId::new(name.clone()).unwrap_or_else(|_| RunId::new(short()).expect("digits are a name"))
}

fn words(command: &Command) -> Words {
    match command {
        Command::Shell(line) => Words::Line(line.clone()),
        Command::Argv(argv) => Words::List(argv.clone()),
    }
}

/// A command whose answers are kept without the secrets that it was given.
struct Discreet<'s> {
    command: plan::Command,
    secrets: &'s Secrets,
}

impl Agent for Discreet<'_> {
    fn call(&mut self, request: &Request<'_>, cancel: &Cancel) -> Result<Reply, Fault> {
        match self.command.call(request, cancel) {
            Ok(Reply { payload, aside }) => {
                let (aside, said) = (self.secrets.redact(&aside), payload.finite());
                let clean = self.secrets.redact_value(said.clone());
                // What has no secret in it is kept as it was written, byte for byte.
                Ok(Reply { payload: if clean == said { payload } else { clean.into() }, aside })
            }
            Err(fault) => Err(Fault {
                what: self.secrets.redact_text(&fault.what),
                out: self.secrets.redact(&fault.out),
                aside: self.secrets.redact(&fault.aside),
                cancelled: fault.cancelled,
            }),
        }
    }
}

impl Runner<'_, '_> {
    /// Proposes and judges until it is good enough, or as often as may be. What was proposed before a crash stays.
    pub(super) fn refine(&self, attempt: &Attempt<'_>, refine: &Refine) -> Result<Done, Error> {
        let secrets = match self.secrets_of(attempt.step) {
            Ok(secrets) => secrets,
            Err(missing) => return Ok(Done::refused(missing)),
        };
        let input = match &refine.input {
            None => attempt.document.clone(),
            Some(source) => match source.value(&attempt.document) {
                Some(input) => input,
                None => return Ok(Done::refused("the input of its planner is not there")),
            },
        };
        let job = Job {
            project_name: Some(attempt.step.id.to_string()),
            checkpoint: false,
            planner: Some(words(&refine.planner)),
            judge: Some(words(&refine.judge)),
            validator: refine.validator.as_ref().map(words),
            input,
            max_iterations: refine.max_iterations,
            approve_at: refine.approve_at,
            soft_fail_at: refine.soft_fail_at,
            token_budget: refine.token_budget,
            ..Job::default()
        };
        let fingerprint =
            made_of::fingerprint(attempt.step, &self.project.place().root, attempt.item.as_ref());
        let begun = Instant::now();
        let refined = self.propose_and_judge(attempt, refine, job, &secrets);
        if refined.is_err() {
            self.end_attempt(attempt).map_err(|source| Error::LeftOver { source })?;
        }
        let mut done = Done::refused("");
        (done.record, done.hopeless) = (self.record(attempt, begun.elapsed(), fingerprint), false);
        match refined {
            Ok(outcome) => {
                done.result = handed_on(&outcome);
                let json = serde_json::to_vec(&done.result).expect("a value has string keys only");
                done.artifacts.push(artifact(RESULT, Source::Json(json)));
                done.status = StepStatus::Completed;
                if !outcome.approved {
                    let why = outcome.reason.as_deref().unwrap_or("it was not good enough");
                    done.record.notes.push(format!("not approved: {why}"));
                }
            }
            Err(plan::Error::Cancelled { .. }) => done.status = StepStatus::Cancelled,
            Err(plan::Error::Project(error)) => return Err(error.into()),
            Err(error) => done.record.error = Some(super::run::said(&error)),
        }
        Ok(done)
    }

    fn propose_and_judge(
        &self,
        attempt: &Attempt<'_>,
        refine: &Refine,
        job: Job,
        secrets: &[(OsString, OsString)],
    ) -> Result<plan::Outcome, plan::Error> {
        self.guard();
        let hidden = self.hidden();
        let root = &self.project.place().root;
        let folder = attempt.step.cwd.as_ref().map_or_else(|| root.clone(), |cwd| root.join(cwd));
        let (planner, judge, validator) = job.commands(&folder)?;
        let agent = |command: plan::Command| Discreet {
            command: command
                .timeout(refine.timeout.or(attempt.step.timeout))
                .with_environment(self.environment(attempt, secrets)),
            secrets: &hidden,
        };
        let (mut planner, mut judge, mut validator) = (agent(planner), agent(judge), validator.map(agent));
        let mut agents = Agents::new(&mut planner, &mut judge);
        agents.validator = validator.as_mut().map(|validator| validator as &mut dyn Agent);
        let which = Which::Named(plan_run(&self.id, attempt));
        let refine = plan::Refine { job, which, accept_changes: true };
        plan::refine(self.project, &refine, agents, &self.stop, &mut |_| {})
    }
}

/// What is handed on to the steps after it.
fn handed_on(outcome: &plan::Outcome) -> Value {
    json!({
        "approved": outcome.approved,
        "reason": outcome.reason,
        "iterations": outcome.iterations,
        "best": outcome.best,
        "scored": outcome.scored,
        "tokens": outcome.tokens,
        "run": outcome.run,
        "final": outcome.last,
    })
}
