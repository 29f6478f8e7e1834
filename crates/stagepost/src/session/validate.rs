//! Is the repository in a state for a checkpoint or a rollback? And do the tests pass?

use std::fmt;
use std::path::Path;

use serde::{Serialize, Serializer};

use super::{Error, Session};
use crate::model::without_tokens_in;
use crate::project::{Project, operation_name};
use crate::snapshot::Operation;

/// Less than this many free bytes forbid a checkpoint.
const NEEDED: u64 = 32 << 20;
/// Less than this many are worth a warning.
const ROOMY: u64 = 512 << 20;
/// So much of what a test command printed is kept, from the end.
const TAIL: usize = 4096;

/// Something that forbids a checkpoint or is worth a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// There is no git repository.
    NotARepository,
    /// The repository is in the middle of something.
    InProgress(&'static str),
    /// The index has conflicts.
    Conflicts,
    /// A folder cannot be written.
    NotWritable(&'static str),
    /// Hardly any room is left.
    DiskFull(u64),
    /// Little room is left.
    DiskNearlyFull(u64),
    /// There are uncommitted changes.
    Uncommitted,
    /// HEAD is on no branch.
    Detached,
    /// There is no commit yet.
    NoCommit,
    /// The test command failed.
    TestsFail,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::NotARepository => f.write_str("this is not a git repository"),
            Finding::InProgress(operation) => write!(f, "a {operation} is in progress"),
            Finding::Conflicts => f.write_str("the index has conflicts"),
            Finding::NotWritable(what) => write!(f, "{what} cannot be written"),
            Finding::DiskFull(free) => write!(f, "only {free} bytes are free"),
            Finding::DiskNearlyFull(free) => write!(f, "only {} MiB are free", free >> 20),
            Finding::Uncommitted => f.write_str("there are uncommitted changes"),
            Finding::Detached => f.write_str("HEAD is detached"),
            Finding::NoCommit => f.write_str("there is no commit yet"),
            Finding::TestsFail => f.write_str("the tests fail"),
        }
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What was found about the repository.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Validation {
    /// Whether a checkpoint can be made.
    pub is_valid: bool,
    /// What forbids it.
    pub errors: Vec<Finding>,
    /// What does not forbid it.
    pub warnings: Vec<Finding>,
    /// What `git status --porcelain` prints.
    pub git_status: String,
    /// Whether files differ from HEAD.
    pub has_uncommitted_changes: bool,
    /// Whether the tests pass; unknown unless a test command ran.
    pub tests_passing: Option<bool>,
    /// How the test command went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_run: Option<TestRun>,
}

/// How a test command went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestRun {
    /// The command.
    pub command: String,
    /// Its exit code; absent if a signal ended it.
    pub exit_code: Option<i32>,
    /// How long it took.
    pub duration_seconds: f64,
    /// The end of what it printed.
    pub output: String,
}

impl Session<'_> {
    /// Looks whether a checkpoint can be made, and runs a test command if there is one.
    ///
    /// ```
    /// # let home = stagepost_testutil::TempProject::git();
    /// # let project = &home.open();
    /// use stagepost::session::Session;
    ///
    /// let validation = Session::validate(project, None)?;
    /// assert!(validation.is_valid);
    /// assert_eq!(validation.tests_passing, None);
    /// assert_eq!(Session::validate(project, Some("exit 1"))?.tests_passing, Some(false));
    /// # Ok::<(), stagepost::session::Error>(())
    /// ```
    pub fn validate(project: &Project, test_command: Option<&str>) -> Result<Validation, Error> {
        let mut validation = quick(project)?;
        if project.place().git.is_some() {
            validation.git_status = project.git_status()?;
            validation.judge_status();
        }
        if let Some(command) = test_command {
            let run = run_tests(project, command)?;
            let passing = run.exit_code == Some(0);
            validation.tests_passing = Some(passing);
            validation.warnings.extend((!passing).then_some(Finding::TestsFail));
            validation.test_run = Some(run);
        }
        validation.is_valid = validation.errors.is_empty();
        Ok(validation)
    }
}

impl Validation {
    /// Reads what git's status says: two letters, then the path.
    fn judge_status(&mut self) {
        let states = || self.git_status.lines().filter_map(|line| line.get(..2));
        let conflict = |state: &str| state.contains('U') || matches!(state, "AA" | "DD");
        let conflicts = states().any(conflict);
        self.has_uncommitted_changes = states().next().is_some();
        self.errors.extend(conflicts.then_some(Finding::Conflicts));
        self.warnings.extend(self.has_uncommitted_changes.then_some(Finding::Uncommitted));
    }
}

/// Everything that can be said without looking at the files.
pub(super) fn quick(project: &Project) -> Result<Validation, Error> {
    let mut found = Validation::default();
    let Some(git) = &project.place().git else {
        found.errors.push(Finding::NotARepository);
        return Ok(found);
    };
    let state = project.snapshots()?.state_of_repository().map_err(crate::project::Error::from)?;
    match state.operation {
        Some(Operation::Bisect) => found.warnings.push(Finding::InProgress("bisection")),
        Some(operation) => found.errors.push(Finding::InProgress(operation_name(operation))),
        None => {}
    }
    found.warnings.extend((state.branch.is_none() && state.head.is_some()).then_some(Finding::Detached));
    found.warnings.extend(state.head.is_none().then_some(Finding::NoCommit));
    let folders = [
        (project.place().root.as_path(), "the project's folder"),
        (git.common_dir.as_path(), "the repository"),
        (project.place().store.as_path(), "the store"),
    ];
    let closed = folders.into_iter().filter(|(path, _)| !is_writable(path));
    found.errors.extend(closed.map(|(_, what)| Finding::NotWritable(what)));
    match free_bytes(&git.common_dir) {
        Some(free) if free < NEEDED => found.errors.push(Finding::DiskFull(free)),
        Some(free) if free < ROOMY => found.warnings.push(Finding::DiskNearlyFull(free)),
        _ => {}
    }
    found.is_valid = found.errors.is_empty();
    Ok(found)
}

fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

/// A file system that cannot say has room.
fn free_bytes(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok().filter(|disk| disk.f_blocks > 0)?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

fn run_tests(project: &Project, command: &str) -> Result<TestRun, Error> {
    let context = project.context();
    let began = context.clock.now();
    let mut shell = context.git.program_as_user(Path::new("/bin/sh"), &project.place().root);
    shell.arg("-c").arg(command).stdin(std::process::Stdio::null());
    let output =
        shell.output().map_err(|source| Error::TestCommand { command: command.to_owned(), source })?;
    let printed = [output.stdout, output.stderr].concat();
    let printed = without_tokens_in(&printed);
    let tail = &printed[printed.len().saturating_sub(TAIL)..];
    Ok(TestRun {
        command: command.to_owned(),
        exit_code: output.status.code(),
        duration_seconds: began.until(context.clock.now()).as_secs_f64(),
        output: String::from_utf8_lossy(tail).into_owned(),
    })
}
