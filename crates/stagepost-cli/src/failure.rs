//! What a person is told when something does not work: what was attempted, why it failed, what to do next.

use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;

use stagepost::gate::{self, journey};
use stagepost::lock::LockError;
use stagepost::model::{InvalidId, SkipReason, UnknownName};
use stagepost::project::{self, BranchError, FindError, Place, SettingsError};
use stagepost::snapshot::restore::{Refusal, RestoreError};
use stagepost::snapshot::{self, CaptureError, OpenError};
use stagepost::{flow, plan, session, store, task};

/// What to do where something stored is not as it was written.
pub(crate) const VERIFY: &str = "`stagepost verify` names everything that is damaged";

/// What to do where the store cannot be written.
pub(crate) const ROOM: &str = "check that the disk is not full and the folder of the store can be written";

/// What to do where the store may not be written.
const OWNER: &str = "check who owns the folder and whether it can be written";

/// A failure with its exit code and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) causes: Vec<String>,
    pub(crate) hint: Option<String>,
}

/// Why the program ends, as scripts see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Refused = 4,
    Integrity = 5,
    Waiting = 6,
    Declined = 7,
    Busy = 75,
    Interrupted = 130,
}

impl Code {
    /// The name of the code in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Code::Failed => "failed",
            Code::Usage => "usage",
            Code::NotFound => "not_found",
            Code::Refused => "refused",
            Code::Integrity => "integrity",
            Code::Waiting => "waiting",
            Code::Declined => "declined",
            Code::Busy => "busy",
            Code::Interrupted => "interrupted",
        }
    }
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), causes: Vec::new(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The whole chain of an error, once.
    fn from_error(code: Code, error: &dyn Error) -> Self {
        let mut causes: Vec<String> = Vec::new();
        let message = short(error.to_string());
        let mut next = error.source();
        while let Some(cause) = next {
            let text = short(cause.to_string());
            if causes.last().unwrap_or(&message) != &text {
                causes.push(text);
            }
            next = cause.source();
        }
        Self { code, message, causes, hint: None }
    }

    pub(crate) fn file(doing: &str, path: &Path, error: std::io::Error) -> Self {
        let mut failure = Self::new(io_code(&error), format!("failed to {doing} {}", path.display()));
        failure.causes.push(error.to_string());
        failure
    }

    pub(crate) fn printing(error: std::io::Error) -> Self {
        let mut failure = Self::new(Code::Failed, "failed to print the result");
        failure.causes.push(error.to_string());
        failure.hint("what the command does was done before that")
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    pub(crate) fn no_project(folder: &Path) -> Self {
        Self::new(Code::NotFound, format!("there is no project around {}", folder.display()))
            .hint("run `stagepost init` in the folder whose work you want to keep")
    }

    pub(crate) fn no_store(place: &Place) -> Self {
        Self::new(Code::NotFound, format!("nothing has been saved in {} yet", place.root.display()))
            .hint("`stagepost save -m TEXT` saves the first checkpoint")
    }
}

impl From<project::Error> for Failure {
    fn from(error: project::Error) -> Self {
        use project::Error as E;
        let (code, hint) = match &error {
            E::Store(store) => return Failure::from_store(store),
            E::Lost { .. } => (
                Code::Integrity,
                Some(
                    "look for a copy of the store first; `stagepost doctor --fix` goes on without what is gone"
                        .to_owned(),
                ),
            ),
            E::NotFound { .. } => {
                (Code::NotFound, Some("`stagepost log --all` lists what there is".to_owned()))
            }
            E::Ambiguous { candidates, .. } => {
                let shown: Vec<String> = candidates.iter().map(ToString::to_string).collect();
                (Code::NotFound, Some(format!("type more of one of these:\n  {}", shown.join("\n  "))))
            }
            E::Pruned { .. } => {
                (Code::NotFound, Some("pin or label a checkpoint to keep it from `gc`".to_owned()))
            }
            E::NoArtifact { .. } => {
                (Code::NotFound, Some("`stagepost show ID` lists the artifacts".to_owned()))
            }
            E::NoFiles { .. } => (
                Code::NotFound,
                Some("`stagepost show ID --artifact NAME` prints what was saved by name".to_owned()),
            ),
            E::UnknownPath { .. } | E::NothingToUndo | E::NothingToRedo => (
                Code::NotFound,
                Some("`stagepost log --all` lists what was there before each restore".to_owned()),
            ),
            E::Restore(error) if error.is_retryable() => {
                (Code::Busy, Some("try again when the other process is done".to_owned()))
            }
            E::Restore(RestoreError::Refused { refusals }) => {
                (Code::Refused, Some(format!("{}; nothing was changed", refused_hint(refusals))))
            }
            E::Restore(error) if error.is_conflict() => (
                Code::Refused,
                Some("nothing was lost: everything is as it was before; try again".to_owned()),
            ),
            E::Restore(error) if error.is_damage() => (Code::Integrity, Some(VERIFY.to_owned())),
            E::Restore(RestoreError::Filter { filter, .. }) => (
                Code::Failed,
                Some(format!(
                    "nothing was changed; `git config filter.{}.smudge` is what must work",
                    filter.escape_debug()
                )),
            ),
            E::Object(error) if error.is_damage() => (Code::Integrity, Some(VERIFY.to_owned())),
            E::Snapshots(OpenError::Elsewhere { .. }) => (
                Code::Refused,
                Some("`git config --unset core.worktree` makes the folder around `.git` the one".to_owned()),
            ),
            E::Snapshots(OpenError::Bare { .. }) => (
                Code::Refused,
                Some("go to one of its work trees: `git worktree list` names them".to_owned()),
            ),
            E::Capture(CaptureError::Refused { source, .. }) => (Code::Refused, Some(consent_hint(source))),
            E::Capture(CaptureError::NeverHeld { .. }) => (
                Code::Usage,
                Some("`--artifact NAME=FILE` keeps any file by a name; nothing was saved".to_owned()),
            ),
            E::Capture(CaptureError::Deadline { .. }) => (
                Code::Failed,
                Some(
                    "give it longer with the setting `snapshot.deadline`, or ignore what need not be kept"
                        .to_owned(),
                ),
            ),
            E::Capture(error) if error.is_retryable() => {
                (Code::Busy, Some("try again, or wait longer with --busy-timeout 60s".to_owned()))
            }
            E::Lock(LockError::Busy { .. }) => {
                (Code::Busy, Some("try again when the other process is done".to_owned()))
            }
            E::Lock(LockError::Open { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
                (Code::Failed, Some(OWNER.to_owned()))
            }
            E::Branch(error) => branch_code(error),
            E::NothingToImport { .. } => (
                Code::NotFound,
                Some("say what it is with --format maestro, tasks, runs or plans".to_owned()),
            ),
            E::TokenLabel { .. } => {
                (Code::Refused, Some("take another name; nothing was saved".to_owned()))
            }
            E::Exists { .. } => (Code::Refused, Some("export to another folder".to_owned())),
            E::InvalidName(_) | E::TwiceNamed { .. } => (Code::Usage, None),
            E::InvalidJson { .. } => {
                (Code::Usage, Some("`--artifact NAME=FILE` keeps files that are not JSON".to_owned()))
            }
            E::File { source, .. } => (io_code(source), None),
            _ => (Code::Failed, None),
        };
        Self { hint, ..Self::from_error(code, &error) }
    }
}

/// What a person can do about the first reason why a restore is refused.
pub(crate) fn refused_hint(refusals: &[Refusal]) -> &'static str {
    match refusals.first() {
        Some(Refusal::NotHeld { reason: SkipReason::TooLarge, .. }) => {
            "move it away, or raise the setting `snapshot.max_file_size`"
        }
        Some(Refusal::NotHeld { .. } | Refusal::NestedRepository { .. }) => {
            "move it away, or restore only the paths that you need"
        }
        Some(Refusal::Conflicts) => "resolve them first; `stagepost restore ID` puts only files back",
        Some(Refusal::InProgress { .. }) => {
            "finish or abort it first; `stagepost restore ID` puts only files back"
        }
        Some(Refusal::IndexLocked | Refusal::HeadMoved) => "try again when the other process is done",
        Some(Refusal::UnsafePath { .. }) | None => "restore only the paths that you need",
        Some(_) => "`stagepost restore ID` puts only files back",
    }
}

/// What a person can do when git refused to act for them.
fn branch_code(error: &BranchError) -> (Code, Option<String>) {
    let (code, hint) = match error {
        BranchError::NoRepository { .. } => (Code::Refused, "`git init` makes it one"),
        BranchError::NoIdentity { .. } => {
            (Code::Failed, "`git config user.name NAME` and `git config user.email ADDRESS` say who you are")
        }
        BranchError::Hook { .. } => {
            (Code::Refused, "do what the hook asks for, or use --no-commit; nothing was changed")
        }
        BranchError::InProgress { .. } => (Code::Refused, "finish or abort it first, or use --no-commit"),
        BranchError::Conflicts => {
            (Code::Refused, "resolve them first; `stagepost save` keeps the files as they are now")
        }
        BranchError::Meanwhile { .. } => (Code::Refused, "nothing was recorded; run it again"),
        BranchError::NothingToCommit => (Code::Refused, "nothing was recorded and nothing was changed"),
        BranchError::Signing { .. } => (Code::Failed, "check your signing key; nothing was recorded"),
        _ => (Code::Failed, "nothing was recorded; `git status` shows where the repository stands"),
    };
    (code, Some(hint.to_owned()))
}

impl From<session::Error> for Failure {
    fn from(error: session::Error) -> Self {
        use session::Error as E;
        let (code, hint) = match error {
            E::Project(error) => return error.into(),
            E::Ambiguous { ref candidates, .. } => {
                let shown: Vec<String> = candidates.iter().map(ToString::to_string).collect();
                let hint = format!("name one of these:\n  {}", shown.join("\n  "));
                return Self::from_error(Code::NotFound, &error).hint(hint);
            }
            E::NoSession { .. } => (Code::NotFound, Some("`stagepost session start` starts one")),
            E::NotFound { .. } => (Code::NotFound, Some("`stagepost session list` lists what there is")),
            E::OtherRun { .. } => (Code::Refused, Some("take another id")),
            E::Lost { .. } => (Code::NotFound, None),
            E::Invalid { .. } => (Code::Refused, Some("`stagepost session validate` shows everything")),
            E::Dirty { .. } => (
                Code::Refused,
                Some(
                    "commit them, keep them in the files with --keep-changes, or put everything back with --hard-reset",
                ),
            ),
            E::View { .. } => (Code::Failed, Some("the next command tries again")),
            E::InvalidName(_) => (Code::Usage, None),
            _ => (Code::Failed, None),
        };
        Self { hint: hint.map(str::to_owned), ..Self::from_error(code, &error) }
    }
}

impl From<task::Error> for Failure {
    fn from(error: task::Error) -> Self {
        use task::Error as E;
        let (code, hint) = match error {
            E::Project(error) => return error.into(),
            E::NotFound { .. } => (Code::NotFound, Some("`stagepost task list` lists what there is")),
            E::Lost { .. } => (Code::NotFound, None),
            E::View { .. } => (Code::Failed, Some("the next command tries again")),
            E::InvalidName(_) => (Code::Usage, None),
            _ => (Code::Failed, None),
        };
        Self { hint: hint.map(str::to_owned), ..Self::from_error(code, &error) }
    }
}

impl From<plan::Error> for Failure {
    fn from(error: plan::Error) -> Self {
        use plan::Error as E;
        let (code, hint) = match error {
            E::Project(error) => return error.into(),
            E::NoRun { .. } => (Code::NotFound, Some("`stagepost plan list` lists the runs")),
            E::NotFound { .. } => (Code::NotFound, Some("`stagepost plan show RUN` lists what there is")),
            E::Job { .. } | E::JobJson(_) => {
                (Code::Usage, Some("`stagepost schema plan-job` describes the job file"))
            }
            E::NoOutputDir => (
                Code::Usage,
                Some("say where with `output_dir`, or turn the files off with `\"checkpoint\": false`"),
            ),
            E::Outside { .. } => (
                Code::Usage,
                Some("name a folder inside the project, or give the whole path of one elsewhere"),
            ),
            E::Changed { .. } => (
                Code::Refused,
                Some("start a new run without --resume, or go on anyway with --accept-changes"),
            ),
            E::Cancelled { .. } => (Code::Interrupted, None),
            E::Driven { .. } => (Code::Busy, Some("try again when the other process is done")),
            E::Ended { .. } | E::Recorded { .. } => {
                (Code::Refused, Some("what is recorded stays: use the next number, or start a new run"))
            }
            E::IterationZero => (Code::Usage, Some("without --iteration it is of the whole run")),
            E::Name { .. } | E::Payload { .. } | E::NoObject { .. } | E::InvalidName(_) => {
                (Code::Usage, None)
            }
            E::View { .. } => (Code::Failed, Some("the next command tries again")),
            _ => (Code::Failed, None),
        };
        Self { hint: hint.map(str::to_owned), ..Self::from_error(code, &error) }
    }
}

/// How a person agrees to what is refused without that.
const AGREE: &str = "agree with `--consent` (of save, diff, restore, undo and redo)";

/// What a person can do about a refused capture.
fn consent_hint(refusal: &snapshot::Refusal) -> String {
    match refusal {
        snapshot::Refusal::DiskFull { .. } => "make room and try again".to_owned(),
        snapshot::Refusal::TooManyUntracked { .. } => {
            format!("ignore what need not be kept, {AGREE}, or raise the setting `snapshot.max_untracked`")
        }
        _ => format!("if that is what you want, {AGREE}"),
    }
}

impl Failure {
    fn from_store(error: &store::Error) -> Self {
        use store::Error as E;
        let (code, hint) = match error {
            E::Busy { .. } => (Code::Busy, Some("try again, or wait longer with --busy-timeout 60s")),
            E::MissingCheckpoint { .. } | E::MissingRun { .. } => {
                (Code::NotFound, Some("`stagepost log --all` lists what there is"))
            }
            E::Conflict { .. } => (Code::Refused, Some("look at the newest state and try again")),
            E::TooNew { .. } => {
                (Code::Refused, Some("use the newer stagepost that wrote it; nothing was changed"))
            }
            E::NotAStore { .. } => (
                Code::Integrity,
                Some("put back a copy of the store, or move its folder away to begin a new one"),
            ),
            E::Malformed { .. } => (
                Code::Integrity,
                Some(
                    "put back a copy of the store's folder, or move it away to begin a new one; the files of its \
                     checkpoints stay in git under refs/stagepost",
                ),
            ),
            E::Deleted { .. } => (
                Code::Integrity,
                Some(
                    "put back a copy of it; `stagepost doctor --fix` begins a new one without it; the files of its \
                     checkpoints stay in git under refs/stagepost",
                ),
            ),
            error if error.is_damage() => (
                Code::Integrity,
                Some("`stagepost verify` names everything that is damaged; the rest stays readable"),
            ),
            E::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                (Code::Failed, Some(OWNER))
            }
            E::Database { .. } => (Code::Failed, Some(ROOM)),
            _ => (Code::Failed, None),
        };
        Self { hint: hint.map(str::to_owned), ..Self::from_error(code, error) }
    }
}

impl From<gate::Error> for Failure {
    fn from(error: gate::Error) -> Self {
        use gate::Error as E;
        let (code, hint) = match error {
            E::Project(error) => return error.into(),
            E::NotFound { .. } => (Code::NotFound, "`stagepost gate list --all` lists every gate".to_owned()),
            E::Ambiguous { ref candidates, .. } => {
                let shown: Vec<String> = candidates.iter().map(ToString::to_string).collect();
                (Code::NotFound, format!("name one of these:\n  {}", shown.join("\n  ")))
            }
            E::Answered { .. } | E::Cancelled { .. } | E::Expired { .. } | E::Void { .. } => {
                (Code::Refused, "`stagepost gate reopen GATE` asks again".to_owned())
            }
            E::Changed { .. } => {
                (Code::Refused, "`stagepost gate show GATE` shows what is asked now".to_owned())
            }
            E::StillWaiting { .. } => {
                (Code::Refused, "`stagepost gate answer GATE TEXT` answers it".to_owned())
            }
            E::Unseen { .. } => {
                (Code::Refused, "ask in other words: a person must see what a yes is to".to_owned())
            }
            E::TokenAnswer { .. } => (
                Code::Refused,
                "hand a token over in the environment or a file, and answer with its name".to_owned(),
            ),
            E::Invalid { .. } => return Self::from_error(Code::Usage, &error),
            E::Unreadable { .. } => (Code::Integrity, VERIFY.to_owned()),
            _ => return Self::from_error(Code::Failed, &error),
        };
        Self { hint: Some(hint), ..Self::from_error(code, &error) }
    }
}

impl From<journey::Error> for Failure {
    fn from(error: journey::Error) -> Self {
        match error {
            journey::Error::Gate(error) => error.into(),
            journey::Error::NotOnItsWay { .. } => Self::from_error(Code::NotFound, &error)
                .hint("`stagepost gate journey list` lists those that are"),
            other => Self::from_error(Code::Failed, &other).hint("run it again: it goes on with that work"),
        }
    }
}

impl From<journey::Invalid> for Failure {
    fn from(error: journey::Invalid) -> Self {
        Self::from_error(Code::Usage, &error)
    }
}

impl From<flow::Error> for Failure {
    fn from(error: flow::Error) -> Self {
        use flow::Error as E;
        let listed = |words: &[String]| words.join(", ");
        let (code, hint) = match error {
            E::Project(error) => return error.into(),
            E::Gate(error) => return error.into(),
            E::NoRun { .. } | E::NoSuchRun { .. } => {
                (Code::NotFound, "`stagepost flow list -n 0` lists every run".to_owned())
            }
            E::Ambiguous { ref candidates, .. } => {
                let shown: Vec<String> = candidates.iter().map(ToString::to_string).collect();
                (Code::NotFound, format!("name one of these:\n  {}", shown.join("\n  ")))
            }
            E::NoStep { ref known, .. } => (Code::NotFound, format!("its steps are {}", listed(known))),
            E::NoResult { ref known, .. } if known.is_empty() => {
                (Code::NotFound, "it has no results: resume it without naming a step".to_owned())
            }
            E::NoResult { ref known, .. } => {
                (Code::NotFound, format!("there are results of {}", listed(known)))
            }
            E::Deleted { .. } => {
                (Code::NotFound, "`stagepost flow run FILE` starts a new one from its first step".to_owned())
            }
            E::NameTaken { .. } => (Code::Refused, "take another name".to_owned()),
            E::Exists { ref run } => (
                Code::Refused,
                format!("`stagepost flow resume {run}` goes on with it, or take another name"),
            ),
            E::Unset { .. } => (Code::Refused, "set them and try again; no step was begun".to_owned()),
            E::Token { .. } => (
                Code::Refused,
                "name the variable under `secrets:` and set it in the environment: it is then stored nowhere"
                    .to_owned(),
            ),
            E::Held { ref run, .. } => {
                (Code::Busy, format!("wait for it, or stop it with `stagepost flow cancel {run}`"))
            }
            E::Over { ref run, .. } => {
                (Code::Refused, format!("`stagepost flow fork {run} --from-step STEP` makes a new run of it"))
            }
            E::Redefined { ref run, .. } => (
                Code::Refused,
                format!(
                    "`stagepost flow why {run} STEP` says what; --accept-changes does them again with all that \
                     depends on them; --step STEP goes on after an earlier one"
                ),
            ),
            E::Once { ref step, .. } => (
                Code::Refused,
                format!(
                    "find out, then resume with --done {step} or --redo {step}; a `verify` command would tell"
                ),
            ),
            E::DoneOnce { ref step, .. } => (
                Code::Refused,
                format!(
                    "resume with --done {step} if its result holds all the same, or --redo {step} to do it again"
                ),
            ),
            E::Damaged { ref newest, .. } => (
                Code::Integrity,
                newest.as_ref().map_or_else(
                    || VERIFY.to_owned(),
                    |newest| {
                        format!(
                            "the newest sound checkpoint is {newest}; `stagepost verify` names all damage"
                        )
                    },
                ),
            ),
            E::NotAFlow { .. } | E::InCode { .. } | E::InvalidName(_) | E::StepName { .. } => {
                return Self::from_error(Code::Usage, &error);
            }
            _ => return Self::from_error(Code::Failed, &error),
        };
        Self { hint: Some(hint), ..Self::from_error(code, &error) }
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        Self::from_store(&error)
    }
}

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        let code = match &error {
            FindError::Folder { source, .. } => io_code(source),
            _ => Code::Failed,
        };
        Self::from_error(code, &error)
    }
}

impl std::fmt::Display for Failure {
    /// What failed and why, in one line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        self.causes.iter().try_for_each(|cause| write!(f, ": {cause}"))
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::from_error(Code::Usage, &error)
            .hint("`stagepost config` lists every setting and where it comes from")
    }
}

impl From<InvalidId> for Failure {
    fn from(error: InvalidId) -> Self {
        Self::from_error(Code::Usage, &error)
    }
}

impl From<UnknownName> for Failure {
    fn from(error: UnknownName) -> Self {
        Self::from_error(Code::Usage, &error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::from_error(Code::Failed, &error)
    }
}

/// Some errors quote the line they are about, however long it is.
fn short(text: String) -> String {
    const LONGEST: usize = 2_000;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// What an error of the operating system means for whoever named the file.
fn io_code(error: &std::io::Error) -> Code {
    match error.kind() {
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::AlreadyExists | ErrorKind::FileTooLarge => Code::Refused,
        _ => Code::Failed,
    }
}

impl Failure {
    /// A failure that was printed already and only needs its exit code.
    pub(crate) fn told(code: Code) -> Self {
        Self::new(code, String::new())
    }

    /// An error while copying a payload out: of the store inside, or of the file.
    pub(crate) fn reading(error: std::io::Error, path: &Path) -> Self {
        match error.downcast::<store::Error>() {
            Ok(error) => Self::from_store(&error),
            Err(error) => Self::file("write", path, error),
        }
    }
}
