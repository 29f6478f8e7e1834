//! What is to be planned, by whom, and how far it may go.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::part::check_project;
use super::{Command, Error, Words};
use crate::formats::plans::Thresholds;
use crate::model::{Hash, canonical};
use crate::project::{OWN_FOLDER, parse_duration, parse_size};

/// What is to be planned, by whom, and how far it may go: the job file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Job {
    /// The name that the files begin with; without one, the last folder of `output_dir`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_name: Option<String>,
    /// Where the files go: inside the project, or an absolute path elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_dir: Option<PathBuf>,
    /// Whether there are files at all. The store keeps everything either way.
    pub checkpoint: bool,
    /// Who makes plans: a line for the shell, or a program with its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planner: Option<Words>,
    /// Who judges plans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<Words>,
    /// Who says whether a plan may be judged at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validator: Option<Words>,
    /// What it is about: any JSON, handed to planner, validator and judge.
    pub input: Value,
    /// How many iterations there may be.
    pub max_iterations: u32,
    /// From which score on a plan is approved: of 10, or of 100 if it is more than 10.
    pub approve_at: f64,
    /// From which score on a plan needs work only.
    pub soft_fail_at: f64,
    /// What becomes of a plan that will not do.
    pub on_hard_fail: HardFail,
    /// How many tokens may be spent, as counted by `tokens` in the answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<u64>,
    /// How long planner, validator and judge may take together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_budget: Option<Span>,
    /// How long each call may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// How often a call that failed is made again.
    pub retry: Retry,
    /// How many bytes an answer may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<Size>,
    /// Members that are not known here.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Default for Job {
    fn default() -> Self {
        let Thresholds { approve_at, soft_fail_at } = Thresholds::default();
        Self {
            project_name: None,
            output_dir: None,
            checkpoint: true,
            planner: None,
            judge: None,
            validator: None,
            input: Value::Null,
            max_iterations: 3,
            approve_at,
            soft_fail_at,
            on_hard_fail: HardFail::Revise,
            token_budget: None,
            time_budget: None,
            timeout: None,
            retry: Retry::default(),
            max_output: None,
            more: Map::new(),
        }
    }
}

/// What becomes of a plan that will not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HardFail {
    /// The planner gets it back, as one that needs work.
    #[default]
    Revise,
    /// The planner begins anew: it hears what was said, and does not get the plan back.
    Restart,
    /// The run ends with the best attempt.
    Stop,
}

/// How often a call that failed is made again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// How many attempts there are in all.
    pub attempts: u32,
    /// How long to wait before the second one; each wait after that is twice as long.
    pub backoff: Span,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 1, backoff: Span::Seconds(1.0) }
    }
}

/// A length of time: `90`, `1.5` (seconds) or `500ms`, `90s`, `5m`, `2h`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Span {
    /// Seconds.
    Seconds(f64),
    /// A number with a unit.
    Text(String),
}

impl Span {
    /// Returns how long it is; `None` if it is no length of time.
    pub fn duration(&self) -> Option<Duration> {
        match self {
            Span::Seconds(seconds) => Duration::try_from_secs_f64(*seconds).ok(),
            Span::Text(text) => parse_duration(text),
        }
    }
}

/// A number of bytes: `1000` or `4K`, `64M`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Size {
    /// Bytes.
    Bytes(u64),
    /// A number with a unit.
    Text(String),
}

impl Size {
    /// Returns how many bytes it is; `None` if it is no number of bytes.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Size::Bytes(bytes) => Some(*bytes),
            Size::Text(text) => parse_size(text),
        }
    }
}

impl Job {
    /// Reads a job file and checks it.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let job: Self = serde_json::from_slice(bytes).map_err(Error::JobJson)?;
        job.check()?;
        Ok(job)
    }

    /// Says what is wrong with it, apart from commands, which a program may not need.
    pub fn check(&self) -> Result<(), Error> {
        let spans = [("timeout", self.timeout.as_ref()), ("time_budget", self.time_budget.as_ref())];
        let spans = spans.into_iter().chain([("retry.backoff", Some(&self.retry.backoff))]);
        let bad_span =
            spans.filter_map(|(name, span)| Some((name, span?))).find(|(_, span)| span.duration().is_none());
        let (approve, soft) = (self.approve_at, self.soft_fail_at);
        let why = if let Some((name, _)) = bad_span {
            format!("`{name}` is no length of time such as 90, \"500ms\" or \"5m\"")
        } else if self.max_output.as_ref().is_some_and(|size| size.bytes().is_none()) {
            "`max_output` is no size such as 1000000 or \"64M\"".to_owned()
        } else if self.max_iterations == 0 {
            "`max_iterations` is 0".to_owned()
        } else if self.retry.attempts == 0 {
            "`retry.attempts` is 0".to_owned()
        } else if !(approve.is_finite()
            && soft.is_finite()
            && 0.0 <= soft
            && soft <= approve
            && approve <= 100.0)
        {
            format!("`soft_fail_at` ({soft}) and `approve_at` ({approve}) must rise from 0 to at most 100")
        } else {
            return self.name().map(drop);
        };
        Err(Error::Job { why })
    }

    /// Returns the name that the files begin with.
    pub fn name(&self) -> Result<String, Error> {
        let folder = || Some(self.output_dir.as_ref()?.file_name()?.to_string_lossy().into_owned());
        let name = self.project_name.clone().or_else(folder);
        let name = name.ok_or_else(|| Error::Job { why: "`project_name` is missing".to_owned() })?;
        check_project(&name)?;
        Ok(name)
    }

    pub(super) fn thresholds(&self) -> Thresholds {
        Thresholds { approve_at: self.approve_at, soft_fail_at: self.soft_fail_at }
    }

    /// Returns the commands of the job, to run in a folder: planner, judge, validator.
    pub fn commands(&self, folder: &Path) -> Result<(Command, Command, Option<Command>), Error> {
        let missing = |name: &str| Error::Job { why: format!("`{name}` is missing") };
        let command = |words: &Words| {
            let most = self.max_output.as_ref().and_then(Size::bytes).unwrap_or(Command::MOST);
            Command::new(words, folder).timeout(self.timeout.as_ref().and_then(Span::duration)).most(most)
        };
        let given = |words: &Option<Words>| words.as_ref().filter(|words| !words.is_empty()).map(command);
        let planner = given(&self.planner).ok_or_else(|| missing("planner"))?;
        let judge = given(&self.judge).ok_or_else(|| missing("judge"))?;
        Ok((planner, judge, given(&self.validator)))
    }

    /// Hashes whatever decides about the result, member by member. How far a run may go is not part of it: a run that
    /// ended too early may be given more.
    pub(super) fn fingerprint(&self) -> Map<String, Value> {
        let parts = json!({
            "project_name": self.name().ok(),
            "planner": self.planner,
            "judge": self.judge,
            "validator": self.validator,
            "input": self.input,
            "approve_at": self.approve_at,
            "soft_fail_at": self.soft_fail_at,
            "on_hard_fail": self.on_hard_fail,
        });
        let Value::Object(parts) = parts else { return Map::new() };
        let hashed = |value: Value| json!(Hash::of(canonical(&value).as_bytes()));
        parts.into_iter().map(|(name, value)| (name, hashed(value))).collect()
    }
}

/// Finds the output folder: relative to the project if it is inside, absolute if someone named it so.
pub(super) fn output_folder(root: &Path, given: &Path) -> Result<String, Error> {
    let outside = || Error::Outside { path: given.to_owned() };
    let mut folder = PathBuf::new();
    for part in given.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if !folder.pop() => return Err(outside()),
            Component::ParentDir => {}
            other => folder.push(other),
        }
    }
    let inside = folder.strip_prefix(root).map(Path::to_owned).unwrap_or(folder);
    let own = inside
        .components()
        .next()
        .is_some_and(|first| [".git", OWN_FOLDER].iter().any(|own| first.as_os_str() == *own));
    if own || given.as_os_str().is_empty() {
        return Err(outside());
    }
    inside.into_os_string().into_string().map_err(|_| outside())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_leads_out_is_refused_unless_it_is_named_in_full() {
        let root = Path::new("/home/ada/shop");
        let folder = |given: &str| output_folder(root, Path::new(given)).ok();
        assert_eq!(folder("artifacts/./my_song").as_deref(), Some("artifacts/my_song"));
        assert_eq!(folder("/home/ada/shop/out").as_deref(), Some("out"));
        assert_eq!(folder("/srv/plans").as_deref(), Some("/srv/plans"));
        for outside in ["../out", "a/../../b", ".git/x", "/home/ada/shop/.git", ".stagepost/x", ""] {
            assert_eq!(folder(outside), None, "{outside}");
        }
    }

    #[test]
    fn what_decides_about_the_result_is_in_the_fingerprint_and_limits_are_not() {
        let job = Job { project_name: Some("x".into()), ..Job::default() };
        let changed = |other: Job| job.fingerprint() != other.fingerprint();
        assert!(!changed(Job { max_iterations: 9, token_budget: Some(1), checkpoint: false, ..job.clone() }));
        assert!(changed(Job { input: json!({"a": 1}), ..job.clone() }));
        assert!(changed(Job { approve_at: 8.0, ..job.clone() }));
        assert!(changed(Job { judge: Some(Words::Line("x".into())), ..job.clone() }));
    }
}
