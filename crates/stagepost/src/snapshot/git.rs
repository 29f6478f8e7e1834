//! Running the git program so that nothing a repository says can make it run anything else.
//!
//! The environment is empty but for what the front end hands in and what is set here; hooks, fsmonitor, pager,
//! editor, signing, network and automatic gc are off; filter programs run only where the user's or the system's
//! configuration names them (see [`Trust`]).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::capture::Deadline;
use super::tables::Copy;
use crate::process::{self, Cancel, Ended, Limits, Program};

/// How long git, and what it started, have to end once they are asked to; then they are killed.
const GRACE: Duration = Duration::from_secs(1);

/// Where git is and what it may know of the outside: handed in by the front end, which reads the environment.
#[derive(Debug, Clone)]
pub struct GitProgram {
    /// The program, such as `git`.
    pub path: PathBuf,
    /// Variables git gets. Only those that say where programs and the user's configuration are pass on:
    /// `PATH`, `HOME`, `XDG_CONFIG_HOME`, `TMPDIR`, `GIT_CONFIG_GLOBAL`, `GIT_CONFIG_SYSTEM`, `GIT_CONFIG_NOSYSTEM`.
    pub environment: BTreeMap<OsString, OsString>,
    users: Everything,
}

/// The user's whole environment: never printed, for it holds secrets.
#[derive(Clone, Default)]
struct Everything(BTreeMap<OsString, OsString>);

impl std::fmt::Debug for Everything {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} variables", self.0.len())
    }
}

/// Variables that tie git to another repository or index than the one it is started in, as in a hook.
const TIES: [&str; 10] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
    "GIT_QUARANTINE_PATH",
    "GIT_INTERNAL_SUPER_PREFIX",
];

impl GitProgram {
    /// The variables of [`GitProgram::environment`] that are passed on.
    pub const PASSED_ON: [&str; 7] = [
        "PATH",
        "HOME",
        "XDG_CONFIG_HOME",
        "TMPDIR",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_SYSTEM",
        "GIT_CONFIG_NOSYSTEM",
    ];

    /// Picks from `variables` what git may know. Front ends call this with their environment.
    pub fn new(path: impl Into<PathBuf>, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let passed_on = |name: &OsStr| Self::PASSED_ON.iter().any(|known| name == *known);
        let users: BTreeMap<_, _> = variables.into_iter().collect();
        let environment = users.iter().filter(|(name, _)| passed_on(name));
        let environment = environment.map(|(name, value)| (name.clone(), value.clone())).collect();
        Self { path: path.into(), environment, users: Everything(users) }
    }

    /// Prepares git to act as the user in `folder`: with their whole environment, so with their hooks, identity and
    /// signing, and bound to no other repository.
    pub fn as_user(&self, folder: &Path) -> Command {
        let mut command = self.program_as_user(&self.path, folder);
        command.stdin(Stdio::null());
        command
    }

    /// Returns where the user's programs are looked for.
    pub(crate) fn search_path(&self) -> OsString {
        self.users.0.get(OsStr::new("PATH")).cloned().unwrap_or_default()
    }

    /// Prepares any program to run as the user in `folder`.
    pub fn program_as_user(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.users.0).current_dir(folder);
        for name in TIES {
            command.env_remove(name);
        }
        command
    }
}

/// Settings that beat the repository's own in every call.
const OVERRIDES: [(&str, &str); 21] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.splitIndex", "false"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.sshCommand", "false"),
    ("core.askPass", ""),
    ("core.safecrlf", "false"),
    ("core.bare", "false"),
    ("core.fsync", "all"),
    ("core.multiPackIndex", "true"),
    ("credential.helper", ""),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("diff.external", ""),
    ("protocol.allow", "never"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("index.threads", "2"),
    ("safe.directory", "*"),
];

/// The git program bound to one repository.
#[derive(Debug, Clone)]
pub(super) struct Git {
    program: GitProgram,
    git_dir: PathBuf,
    work_tree: PathBuf,
    overrides: Vec<(String, String)>,
    variables: Vec<(&'static str, OsString)>,
    /// When it is ended.
    deadline: Deadline,
}

impl Git {
    pub(super) fn new(program: GitProgram, git_dir: &Path, work_tree: &Path) -> Self {
        let overrides = OVERRIDES.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        Self {
            program,
            git_dir: git_dir.into(),
            work_tree: work_tree.into(),
            overrides,
            variables: vec![],
            deadline: Deadline::NONE,
        }
    }

    /// The same, with one more variable.
    pub(super) fn with(&self, name: &'static str, value: impl Into<OsString>) -> Self {
        let mut git = self.clone();
        git.variables.push((name, value.into()));
        git
    }

    /// The same, on a copy of the user's refs.
    pub(super) fn in_copy(&self, copy: &Copy) -> Self {
        let mut git = self.clone();
        git.variables.extend(copy.variables().map(|(name, value)| (name, value.to_owned())));
        git
    }

    /// The same, with the settings `more` on top.
    pub(super) fn configured(&self, more: Vec<(String, String)>) -> Self {
        let mut git = self.clone();
        git.overrides.extend(more);
        git
    }

    /// Returns what git is told of the outside.
    pub(super) fn program(&self) -> &GitProgram {
        &self.program
    }

    /// The same, ended when a capture gives up.
    pub(super) fn until(&self, deadline: Deadline) -> Self {
        Self { deadline, ..self.clone() }
    }

    /// Everything git is told by its environment.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut all: BTreeMap<OsString, OsString> = self.program.environment.clone();
        let mut set = |name: &str, value: OsString| all.insert(name.into(), value);
        set("GIT_DIR", self.git_dir.clone().into());
        set("GIT_WORK_TREE", self.work_tree.clone().into());
        for (name, value) in [
            ("LC_ALL", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_LITERAL_PATHSPECS", "1"),
            ("GIT_ATTR_NOSYSTEM", "0"),
        ] {
            set(name, value.into());
        }
        self.variables.iter().for_each(|(name, value)| _ = set(name, value.clone()));
        set("GIT_CONFIG_COUNT", self.overrides.len().to_string().into());
        for (number, (key, value)) in self.overrides.iter().enumerate() {
            set(&format!("GIT_CONFIG_KEY_{number}"), key.into());
            set(&format!("GIT_CONFIG_VALUE_{number}"), value.into());
        }
        all.into_iter().collect()
    }

    /// Starts git with all three streams piped.
    pub(super) fn spawn<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Child, GitError> {
        let mut command = Command::new(&self.program.path);
        command.env_clear().envs(self.environment()).args(args).current_dir(&self.work_tree);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|source| GitError::Start { program: self.program.path.clone(), source })
    }

    /// Runs git to its end with `input` on its stdin. When this returns, nothing that git started is alive.
    pub(super) fn try_run<A: AsRef<OsStr>>(&self, args: &[A], input: &[u8]) -> Result<Answer, GitError> {
        let words = std::iter::once(self.program.path.as_os_str()).chain(args.iter().map(AsRef::as_ref));
        let program = Program {
            folder: Some(self.work_tree.clone()),
            alone: true,
            set: self.environment(),
            input: input.to_vec(),
            ..Program::new(words)
        };
        let limits = Limits { timeout: self.deadline.left(), grace: GRACE, keep: usize::MAX, most: None };
        let talk = |source| GitError::Talk { command: name_of(args), source };
        let cancel = Cancel::new().map_err(talk)?;
        let finished = process::run(&program, &limits, &cancel, &mut |_| {}, &mut |_, _| {});
        let finished = finished.map_err(|error| match error {
            process::Error::Start { source, .. } => {
                GitError::Start { program: self.program.path.clone(), source }
            }
            process::Error::Follow { source, .. } => talk(source),
        })?;
        let status = match finished.ended {
            Ended::Exit(code) => ExitStatus::from_raw(code << 8),
            Ended::Signal(signal) | Ended::NoTerminal(signal) => ExitStatus::from_raw(signal),
            Ended::TimedOut | Ended::Cancelled | Ended::TooMuch => {
                return Err(GitError::TimedOut { command: name_of(args) });
            }
        };
        Ok(Answer { status, stdout: finished.out.bytes(), stderr: finished.err.bytes() })
    }

    /// Runs git to its end and returns its stdout; a status other than 0 is an error.
    pub(super) fn run<A: AsRef<OsStr>>(&self, args: &[A], input: &[u8]) -> Result<Vec<u8>, GitError> {
        let answer = self.try_run(args, input)?;
        if answer.status.success() { Ok(answer.stdout) } else { Err(answer.into_error(args)) }
    }
}

/// What a run of git gave.
pub(super) struct Answer {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl Answer {
    pub(super) fn into_error<A: AsRef<OsStr>>(self, args: &[A]) -> GitError {
        let message = String::from_utf8_lossy(&self.stderr).trim().escape_debug().to_string();
        GitError::Failed { command: name_of(args), status: self.status, message }
    }
}

fn name_of<A: AsRef<OsStr>>(args: &[A]) -> String {
    args.first().map_or_else(String::new, |name| name.as_ref().to_string_lossy().into_owned())
}

/// The error of a run of the git program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// git could not be started.
    #[error("failed to start {}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// git was started, but talking to it failed.
    #[error("failed to talk to `git {command}`")]
    Talk {
        /// The subcommand.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// git ran and refused.
    #[error("`git {command}` ended with {status}: {message}")]
    Failed {
        /// The subcommand.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it said, control characters escaped.
        message: String,
    },
    /// git was not done when the capture had to be, and was ended.
    #[error("`git {command}` was not done in time")]
    TimedOut {
        /// The subcommand.
        command: String,
    },
    /// git answered something that cannot be understood.
    #[error("`git {command}` gave an answer that cannot be understood")]
    Answer {
        /// The subcommand.
        command: String,
    },
}

/// Says which filter programs may run: those that the user's or the system's configuration names.
#[derive(Debug, Default, Clone)]
pub(super) struct Trust {
    /// Settings that put the trusted values in the place of the repository's.
    pub(super) overrides: Vec<(String, String)>,
    /// Drivers that only the repository names.
    pub(super) refused: Vec<String>,
    /// Trusted drivers without which git does not write a file.
    pub(super) required: Vec<String>,
}

const FILTER_KEYS: [&str; 3] = ["clean", "smudge", "process"];

impl Trust {
    /// Reads which filters are configured, and by whom.
    pub(super) fn read(git: &Git) -> Result<Self, GitError> {
        let answer = git.run(&["config", "--list", "-z", "--show-scope"], b"")?;
        let mut drivers: BTreeMap<String, Driver> = BTreeMap::new();
        let text = String::from_utf8_lossy(&answer);
        let mut fields = text.split('\0');
        while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
            let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            let Some((driver, name)) = key.strip_prefix("filter.").and_then(|rest| rest.rsplit_once('.'))
            else {
                continue;
            };
            let driver = drivers.entry(driver.to_owned()).or_default();
            let by_user = matches!(scope, "system" | "global");
            let side = if by_user { &mut driver.users } else { &mut driver.repositorys };
            side.insert(name.to_owned(), value.to_owned());
        }
        let mut trust = Self::default();
        drivers.into_iter().for_each(|(name, driver)| trust.judge(&name, &driver));
        Ok(trust)
    }

    /// Puts the user's programs in the place of the repository's.
    fn judge(&mut self, name: &str, driver: &Driver) {
        let names_program = |key: &str| driver.users.get(key).is_some_and(|value| !value.is_empty());
        // An empty `process` switches the driver off altogether, so one that the repository adds cannot be undone.
        let overruled = driver.repositorys.contains_key("process") && !driver.users.contains_key("process");
        let trusted = FILTER_KEYS.iter().any(|key| names_program(key)) && !overruled;
        for key in FILTER_KEYS.iter().filter(|key| driver.repositorys.contains_key(**key)) {
            let value = driver.users.get(*key).filter(|_| trusted).cloned().unwrap_or_default();
            self.overrides.push((format!("filter.{name}.{key}"), value));
        }
        // A required filter that fails would fail the whole snapshot; the raw bytes are kept instead.
        self.overrides.push((format!("filter.{name}.required"), "false".to_owned()));
        match trusted {
            true if driver.is_required() => self.required.push(name.to_owned()),
            true => {}
            false => self.refused.push(name.to_owned()),
        }
    }

    /// Returns the settings for writing files: where a required filter fails, git does.
    pub(super) fn for_writing(&self) -> Vec<(String, String)> {
        let required =
            self.required.iter().map(|name| (format!("filter.{name}.required"), "true".to_owned()));
        self.overrides.iter().cloned().chain(required).collect()
    }
}

/// What is configured of one filter driver, and by whom.
#[derive(Debug, Default)]
struct Driver {
    users: BTreeMap<String, String>,
    repositorys: BTreeMap<String, String>,
}

impl Driver {
    fn is_required(&self) -> bool {
        let value = self.repositorys.get("required").or_else(|| self.users.get("required"));
        let value = value.map(|value| value.to_ascii_lowercase()).unwrap_or_default();
        matches!(value.as_str(), "true" | "yes" | "on") || value.parse().is_ok_and(|number: i64| number != 0)
    }
}
