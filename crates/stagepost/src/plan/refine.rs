//! The loop: propose, validate, judge, until approved or out of iterations or budget.
//!
//! Each answer is a checkpoint before the next call is made, so a run that was cut off anywhere goes on there, and nobody
//! is asked again for what is recorded. [`decide`](super::decide) says what comes next; this carries it out.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use super::decide::{Action, Ending, Rules, decide};
use super::driver::drive;
use super::history::{Begun, Call, History, payload_of, value_of};
use super::job::{HardFail, Span};
use super::part::{FAILURE, JOB, VALIDATION};
use super::record::Beside;
use super::{Agents, Error, Fault, Job, Payload, Plan, Previous, Reply, Request, Role, Settings};
use crate::formats::plans::{self, RevisionRequest, Scored, Verdict};
use crate::model::{Checkpoint, RunId};
use crate::process::Cancel;
use crate::project::Project;
use crate::store::Expect;

/// Which run to drive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Which {
    /// A new one.
    #[default]
    New,
    /// One that was begun before.
    Resume(RunId),
    /// This one, whether it was begun or not: for those who have to know its name beforehand.
    Named(RunId),
}

/// What the loop is to do.
#[derive(Debug, Clone, Default)]
pub struct Refine {
    /// The job.
    pub job: Job,
    /// The run.
    pub which: Which,
    /// Go on although the job changed since the run was begun.
    pub accept_changes: bool,
}

/// What goes on in the loop, for those who watch.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// The run is there.
    Begun {
        /// The run.
        run: &'a RunId,
        /// Whether it goes on from before.
        resumed: bool,
    },
    /// Someone is about to be asked.
    Calling {
        /// Who.
        role: Role,
        /// In which iteration.
        iteration: u32,
        /// Which attempt it is.
        attempt: u32,
    },
    /// A call failed.
    Failed {
        /// Who failed.
        role: Role,
        /// In which iteration.
        iteration: u32,
        /// How.
        what: &'a str,
        /// Whether it is tried again.
        again: bool,
    },
    /// A plan was made.
    Proposed {
        /// In which iteration.
        iteration: u32,
    },
    /// A validator spoke.
    Validated {
        /// In which iteration.
        iteration: u32,
        /// What is wrong; `None` if nothing is.
        errors: Option<&'a [String]>,
    },
    /// A judge spoke.
    Judged {
        /// In which iteration.
        iteration: u32,
        /// What it thinks.
        scored: Scored,
    },
}

/// How a run ended.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The run.
    pub run: RunId,
    /// Whether its plan was approved.
    pub approved: bool,
    /// Why it ended without an approved plan.
    pub reason: Option<String>,
    /// How many iterations there were.
    pub iterations: u32,
    /// The best of them.
    pub best: Option<u32>,
    /// What the judge thinks of the best.
    #[serde(flatten)]
    pub scored: Option<Scored>,
    /// How many tokens were spent.
    pub tokens: u64,
    /// How long all calls took.
    pub seconds: f64,
    /// The checkpoint of the end.
    pub checkpoint: Checkpoint,
    /// The final payload: status, plan and the rest.
    #[serde(rename = "final")]
    pub last: Value,
}

/// Drives a run of propose and judge to its end. Started again for the same run, it goes on where it was.
pub fn refine(
    project: &Project,
    refine: &Refine,
    agents: Agents<'_>,
    cancel: &Cancel,
    observer: &mut dyn FnMut(&Progress<'_>),
) -> Result<Outcome, Error> {
    refine.job.check()?;
    let (plan, resumed) = find(project, refine)?;
    let _wheel = drive(project, plan.id())?;
    let history = plan.history()?;
    let rules = Rules::of(&refine.job, agents.validator.is_some());
    let mut drive = Drive { plan, history, rules, job: &refine.job, agents, cancel, observer };
    let run = drive.plan.id().clone();
    if drive.history.is_only_its_end() {
        // How it came to its end was given up. To go on would be to begin anew, and to push the end out of what is kept.
        (drive.observer)(&Progress::Begun { run: &run, resumed });
        return drive.outcome();
    }
    drive.take_job(refine)?;
    if decide(&drive.history, &drive.rules) != Action::Done {
        // Until it is over, no collection gives up anything of it.
        project.unfinished(&run)?;
    }
    (drive.observer)(&Progress::Begun { run: &run, resumed });
    loop {
        match decide(&drive.history, &drive.rules) {
            Action::Done => {
                project.finished(&run)?;
                return drive.outcome();
            }
            Action::Finish(ending) => drive.finish(ending)?,
            Action::Propose(iteration) => drive.propose(iteration)?,
            Action::Validate(iteration) => drive.validate(iteration)?,
            Action::Judge(iteration) => drive.judge(iteration)?,
        }
    }
}

fn find<'p>(project: &'p Project, refine: &Refine) -> Result<(Plan<'p>, bool), Error> {
    let settings = || -> Result<Settings, Error> {
        let Job { output_dir, checkpoint, .. } = refine.job.clone();
        Ok(Settings { project_name: refine.job.name()?, output_dir, checkpoint })
    };
    let (mut plan, resumed) = match &refine.which {
        Which::New => (Plan::start_run(project, &settings()?)?, false),
        Which::Resume(id) => (Plan::open(project, id)?, true),
        Which::Named(id) => (Plan::open_or_start(project, id, &settings()?)?, true),
    };
    // Where the files go was settled when the run was begun; that there are none can be said later.
    plan.about.checkpoint &= refine.job.checkpoint;
    Ok((plan, resumed))
}

struct Drive<'a, 'g, 'p> {
    plan: Plan<'p>,
    history: History,
    rules: Rules,
    job: &'a Job,
    agents: Agents<'g>,
    cancel: &'a Cancel,
    observer: &'a mut dyn FnMut(&Progress<'_>),
}

impl Drive<'_, '_, '_> {
    /// Records the job of a new run, or compares it with the one the run was begun with.
    fn take_job(&mut self, refine: &Refine) -> Result<(), Error> {
        let now = Begun { fingerprint: self.job.fingerprint(), thresholds: self.job.thresholds() };
        let what = match &self.history.begun {
            Some(before) => {
                let differs = |name: &&String| before.fingerprint.get(*name) != now.fingerprint.get(*name);
                now.fingerprint.keys().filter(differs).cloned().collect()
            }
            None if self.history.iterations.is_empty() => vec!["new".to_owned()],
            None => vec!["it was begun without a job".to_owned()],
        };
        let fresh = self.history.begun.is_none() && self.history.iterations.is_empty();
        if what.is_empty() {
            return Ok(());
        }
        if !fresh && !refine.accept_changes {
            return Err(Error::Changed { run: self.plan.id().clone(), what });
        }
        let job = serde_json::to_value(self.job).expect("a job has string keys only");
        let description = self.plan.about.project.clone();
        self.record(
            0,
            JOB,
            job.into(),
            Beside { description, metadata: now.metadata(), ..Beside::default() },
        )?;
        // Judgements are read by what the job demands now.
        self.history = self.plan.history()?;
        Ok(())
    }

    fn record(&mut self, iteration: u32, part: &str, payload: Payload, beside: Beside) -> Result<(), Error> {
        let expect = Expect::Head(self.plan.id().clone(), self.history.head);
        let saved = self.plan.save(iteration, part, payload, beside, expect)?;
        self.history.add(self.plan.project, saved)
    }

    /// What is saved with an answer: whose it is, what it cost, and what was said beside it.
    fn beside(&self, told: &str, call: &Call, artifacts: Vec<(&'static str, Vec<u8>)>) -> Beside {
        let project = &self.plan.about.project;
        let description = if told.is_empty() { project.clone() } else { format!("{project}: {told}") };
        Beside { description, metadata: call.metadata(), artifacts }
    }

    fn propose(&mut self, iteration: u32) -> Result<(), Error> {
        let project = self.plan.project;
        let before = self.history.iterations.range(..iteration).next_back().map(|(_, one)| one.clone());
        let before = before.filter(|one| one.raw.is_some());
        let restart = self.rules.on_hard_fail == HardFail::Restart
            && before.as_ref().and_then(|one| one.verdict()) == Some(Verdict::HardFail);
        let plan =
            before.as_ref().filter(|_| !restart).map(|one| self.history.plan(project, one)).transpose()?;
        let said = before.as_ref().and_then(|one| one.judgement.as_ref());
        let refused = before.as_ref().and_then(|one| one.validation.as_ref()).filter(|said| !said.valid);
        let (feedback, revision) = match (said, refused) {
            (Some(said), _) => (plans::feedback(&said.evaluation), said.revision()),
            (None, Some(refused)) => {
                let said = plans::feedback(&refused.answer);
                let errors = || json!(refused.errors);
                (if said.is_null() { errors() } else { said }, RevisionRequest::of(&refused.answer, None))
            }
            (None, None) => (Value::Null, None),
        };
        let evaluation = said.map(|said| &said.evaluation);
        let previous = plan.as_ref().map(|plan| Previous { plan, evaluation });
        let (reply, call) =
            self.call(Role::Planner, iteration, None, previous, &feedback, revision.as_ref(), |_| Ok(()))?;
        let beside = self.beside("", &call, vec![("stderr", reply.aside)]);
        self.record(iteration, plans::RAW, reply.payload.as_member("plan"), beside)?;
        (self.observer)(&Progress::Proposed { iteration });
        Ok(())
    }

    fn validate(&mut self, iteration: u32) -> Result<(), Error> {
        let plan = self.history.plan(self.plan.project, self.history.iteration(iteration)?)?;
        let (reply, call) =
            self.call(Role::Validator, iteration, Some(&plan), None, &Value::Null, None, |answer| {
                let said = "it must say {\"valid\": true} or {\"valid\": false}";
                plans::validity_of(answer).map(drop).ok_or_else(|| said.to_owned())
            })?;
        let beside = self.beside("", &call, vec![("stderr", reply.aside)]);
        self.record(iteration, VALIDATION, reply.payload, beside)?;
        let said = self.history.iteration(iteration)?.validation.clone();
        let errors = said.as_ref().filter(|said| !said.valid).map(|said| said.errors.as_slice());
        (self.observer)(&Progress::Validated { iteration, errors });
        Ok(())
    }

    fn judge(&mut self, iteration: u32) -> Result<(), Error> {
        let plan = self.history.plan(self.plan.project, self.history.iteration(iteration)?)?;
        let bar = self.job.thresholds();
        let (reply, call) =
            self.call(Role::Judge, iteration, Some(&plan), None, &Value::Null, None, |answer| {
                plans::fault_of(answer, &Scored::of(answer, Some(&bar))).map_or(Ok(()), Err)
            })?;
        let scored = Scored::of(reply.payload.value(), Some(&bar));
        let payload = plans::evaluation(reply.payload.value(), &plan, &scored);
        let told = scored.verdict.map_or_else(String::new, |verdict| verdict.to_string());
        let beside = self.beside(&told, &call, vec![("stderr", reply.aside)]);
        self.record(iteration, plans::EVALUATION, payload.into(), beside)?;
        (self.observer)(&Progress::Judged { iteration, scored });
        Ok(())
    }

    /// Asks someone until there is a usable answer, or no attempt is left. What failed is recorded.
    #[expect(clippy::too_many_arguments, reason = "the parts of one request, of which each role has its own")]
    fn call(
        &mut self,
        role: Role,
        iteration: u32,
        plan: Option<&Value>,
        previous: Option<Previous<'_>>,
        feedback: &Value,
        revision: Option<&RevisionRequest>,
        usable: impl Fn(&Value) -> Result<(), String>,
    ) -> Result<(Reply, Call), Error> {
        let run = self.plan.id().clone();
        let before = self.history.iterations.get(&iteration).map_or(0, |one| one.failed(role));
        for tried in 1..=self.job.retry.attempts {
            let attempt = before + tried;
            self.stop_if_asked()?;
            (self.observer)(&Progress::Calling { role, iteration, attempt });
            let limit = self.rules.time_left(&self.history);
            let request = Request {
                run: &run,
                role,
                iteration,
                attempt,
                input: &self.job.input,
                plan,
                previous,
                feedback,
                revision,
                limit,
            };
            let (answer, seconds) = self.timed(&request);
            let answer = answer.and_then(|reply| usable_or_fault(reply, &usable));
            let fault = match answer {
                Ok(reply) => {
                    let tokens = plans::tokens_of(reply.payload.value());
                    return Ok((reply, self.spent(role, attempt, seconds, tokens, None)));
                }
                Err(fault) if fault.cancelled => return Err(Error::Cancelled { run }),
                Err(fault) => fault,
            };
            let again = tried < self.job.retry.attempts;
            self.record_fault(role, iteration, attempt, seconds, &fault)?;
            (self.observer)(&Progress::Failed { role, iteration, what: &fault.what, again });
            if !again {
                return Err(Error::Agent { run, role, iteration, what: fault.what });
            }
            self.pause(tried)?;
        }
        Err(Error::Job { why: "`retry.attempts` is 0".to_owned() })
    }

    fn timed(&mut self, request: &Request<'_>) -> (Result<Reply, Fault>, f64) {
        let clock = &self.plan.project.context().clock;
        let begun = clock.now();
        let answer = match self.agents.get(request.role) {
            Some(agent) => agent.call(request, self.cancel).map(Reply::without_tokens),
            None => Err(Fault { what: "there is none".to_owned(), ..Fault::default() }),
        };
        (answer.map_err(Fault::without_tokens), begun.until(clock.now()).as_secs_f64())
    }

    fn spent(&self, role: Role, attempt: u32, seconds: f64, tokens: u64, fault: Option<String>) -> Call {
        let total_tokens = self.history.tokens.saturating_add(tokens);
        Call {
            role,
            attempt,
            seconds,
            tokens,
            total_seconds: self.history.seconds + seconds,
            total_tokens,
            fault,
        }
    }

    fn record_fault(
        &mut self,
        role: Role,
        iteration: u32,
        attempt: u32,
        seconds: f64,
        fault: &Fault,
    ) -> Result<(), Error> {
        let what = json!({"role": role, "attempt": attempt, "what": fault.what});
        let call = self.spent(role, attempt, seconds, 0, Some(fault.what.clone()));
        let artifacts = vec![("stdout", fault.out.clone()), ("stderr", fault.aside.clone())];
        let beside = self.beside(&format!("{role}: {}", fault.what), &call, artifacts);
        self.record(iteration, FAILURE, what.into(), beside)
    }

    fn stop_if_asked(&self) -> Result<(), Error> {
        if self.cancel.is_cancelled() {
            Err(Error::Cancelled { run: self.plan.id().clone() })
        } else {
            Ok(())
        }
    }

    /// Waits before the next attempt, each time twice as long, and hears a wish to stop meanwhile.
    fn pause(&self, tried: u32) -> Result<(), Error> {
        const LOOK: Duration = Duration::from_millis(50);
        let first = Span::duration(&self.job.retry.backoff).unwrap_or_default();
        let wait = first.saturating_mul(1 << (tried - 1).min(16));
        let begun = Instant::now();
        while begun.elapsed() < wait {
            self.stop_if_asked()?;
            std::thread::sleep(LOOK.min(wait.saturating_sub(begun.elapsed())));
        }
        self.stop_if_asked()
    }

    fn finish(&mut self, ending: Ending) -> Result<(), Error> {
        let project = self.plan.project;
        let iterations = self.history.iterations.keys().next_back().copied().unwrap_or(0);
        let chosen = match ending {
            Ending::Approved(number) => self.history.iterations.get(&number),
            _ => self.history.best_effort(),
        };
        let plan = match chosen.and_then(|one| one.raw.as_ref()) {
            Some(raw) => plans::plan_of(&value_of(project, raw)?).clone(),
            None => Value::Null,
        };
        let said = chosen.and_then(|one| one.judgement.as_ref());
        let known = plans::Ending {
            plan: &plan,
            iterations,
            total_tokens: self.history.tokens,
            // Sums of parts of seconds have many digits, and none of them means anything.
            duration_seconds: (self.history.seconds * 1000.0).round() / 1000.0,
        };
        let payload = match (ending, said) {
            (Ending::Approved(_), Some(said)) => known.success(&said.evaluation),
            _ => known.incomplete(said.and_then(|said| said.scored.score), ending.reason()),
        };
        let description = format!("{}: {}", self.plan.about.project, ending.reason());
        self.record(0, plans::FINAL, payload.into(), Beside { description, ..Beside::default() })
    }

    fn outcome(&self) -> Result<Outcome, Error> {
        let history = &self.history;
        let end = history.end.as_ref().ok_or_else(|| history.missing("end".to_owned()))?;
        let last =
            payload_of(self.plan.project, &end.checkpoint)?.map_or(Value::Null, |payload| payload.finite());
        let told = last["iterations"].as_u64().and_then(|told| u32::try_from(told).ok());
        let best = history.best();
        Ok(Outcome {
            run: history.run.id.clone(),
            approved: end.approved,
            reason: end.reason.clone(),
            iterations: history.iterations.keys().next_back().copied().or(told).unwrap_or(0),
            best: best.map(|one| one.number),
            scored: best.and_then(|one| one.judgement.as_ref()).map(|said| said.scored),
            tokens: history.tokens,
            seconds: history.seconds,
            checkpoint: end.checkpoint.clone(),
            last,
        })
    }
}

fn usable_or_fault(reply: Reply, usable: impl Fn(&Value) -> Result<(), String>) -> Result<Reply, Fault> {
    match usable(reply.payload.value()) {
        Ok(()) => Ok(reply),
        Err(what) => {
            Err(Fault { what, out: reply.payload.bytes().to_vec(), aside: reply.aside, cancelled: false })
        }
    }
}
