//! Planners and judges that do as they are told.

use std::collections::VecDeque;

use serde_json::{Value, json};
use stagepost::model::RunId;
use stagepost::plan::{Agent, Agents, Error, Job, Outcome, Progress, Refine, Request, Which, refine};
use stagepost::process::Cancel;
use stagepost::project::Project;

/// A job about a song, without files.
pub(crate) fn job() -> Job {
    Job { project_name: Some("my_song".into()), checkpoint: false, ..Job::default() }
}

/// The same with files.
pub(crate) fn job_with_files() -> Job {
    Job { checkpoint: true, output_dir: Some("artifacts/my_song".into()), ..job() }
}

pub(crate) fn new(job: &Job) -> Refine {
    Refine { job: job.clone(), ..Refine::default() }
}

pub(crate) fn resume(job: &Job, run: &RunId) -> Refine {
    Refine { job: job.clone(), which: Which::Resume(run.clone()), ..Refine::default() }
}

pub(crate) fn named(job: &Job, run: &str) -> Refine {
    Refine { job: job.clone(), which: Which::Named(RunId::new(run).unwrap()), ..Refine::default() }
}

/// Makes a plan with as many sections as there were iterations.
pub(crate) fn planner(request: &Request<'_>) -> Result<Value, String> {
    let sections: Vec<Value> = (1..=request.iteration).map(|number| json!({"id": number})).collect();
    Ok(json!({"sections": sections, "song_structure": {"tempo": 120}, "tokens": 100}))
}

/// A judge that gives these scores, one after the other, with feedback.
pub(crate) fn judge(scores: &[f64]) -> impl FnMut(&Request<'_>) -> Result<Value, String> + use<> {
    let scores = scores.to_vec();
    move |request: &Request<'_>| {
        let score = scores[request.iteration as usize - 1];
        Ok(json!({"score": score, "feedback": format!("after {}", request.iteration), "tokens": 10}))
    }
}

/// Drives a run with a planner and a judge.
pub(crate) fn drive(
    project: &Project,
    what: &Refine,
    planner: &mut dyn Agent,
    judge: &mut dyn Agent,
) -> Result<Outcome, Error> {
    watch(project, what, Agents::new(planner, judge), &mut |_| {})
}

pub(crate) fn watch(
    project: &Project,
    what: &Refine,
    agents: Agents<'_>,
    observer: &mut dyn FnMut(&Progress<'_>),
) -> Result<Outcome, Error> {
    refine(project, what, agents, &Cancel::new().unwrap(), observer)
}

/// Drives a run whose judge gives these scores.
pub(crate) fn scored(project: &Project, what: &Refine, scores: &[f64]) -> Result<Outcome, Error> {
    drive(project, what, &mut planner, &mut judge(scores))
}

/// Someone who gives these answers, one after the other, and remembers what was asked.
pub(crate) struct Told {
    answers: VecDeque<Result<Value, String>>,
    pub(crate) asked: Vec<Value>,
}

impl Told {
    pub(crate) fn new(answers: impl IntoIterator<Item = Result<Value, &'static str>>) -> Self {
        let answers = answers.into_iter().map(|answer| answer.map_err(str::to_owned)).collect();
        Self { answers, asked: Vec::new() }
    }

    pub(crate) fn saying(values: impl IntoIterator<Item = Value>) -> Self {
        Self::new(values.into_iter().map(Ok))
    }
}

impl Agent for Told {
    fn call(
        &mut self,
        request: &Request<'_>,
        _: &Cancel,
    ) -> Result<stagepost::plan::Reply, stagepost::plan::Fault> {
        self.asked.push(request.to_json());
        let answer = self.answers.pop_front().unwrap_or_else(|| Err("nothing more to say".to_owned()));
        let failed = |what| stagepost::plan::Fault { what, ..Default::default() };
        answer.map(Into::into).map_err(failed)
    }
}
