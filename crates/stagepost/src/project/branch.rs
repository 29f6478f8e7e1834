//! Acting as the user through git: a commit on the branch and annotated tags, with their hooks, identity and signing.
//!
//! What fails is told as what it is, and leaves index and branch as they were.

mod commit;
mod hooks;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::Project;
use super::cut_off::tag_ref;
use crate::model::{ObjectId, RepoPath};
use crate::process::Guard;
use crate::snapshot::{AT_WORK, Copy, Move, Operation, RefError, Snapshots, at_work, reference};
use hooks::{Change, HOOKS, OF_REFS, is_run};

/// What went wrong when git acted as the user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BranchError {
    /// There is no git repository.
    #[error("{} is not a git repository", root.display())]
    NoRepository {
        /// The folder.
        root: PathBuf,
    },
    /// The repository is in the middle of something that a commit would end.
    #[error("the repository is in the middle of a {operation}")]
    InProgress {
        /// What it is in the middle of.
        operation: &'static str,
    },
    /// The index has conflicts.
    #[error("the index has conflicts")]
    Conflicts,
    /// git does not know who the user is.
    #[error("git does not know who commits: {message}")]
    NoIdentity {
        /// What git said.
        message: String,
    },
    /// A hook refused.
    #[error("the hook `{hook}` refused the commit: {message}")]
    Hook {
        /// The hook.
        hook: &'static str,
        /// What it said.
        message: String,
    },
    /// The commit could not be signed.
    #[error("the commit or tag could not be signed: {message}")]
    Signing {
        /// What git said.
        message: String,
    },
    /// There was nothing to commit after all.
    #[error("there is nothing to commit")]
    NothingToCommit,
    /// Somebody else committed or switched branches meanwhile, or is about to.
    #[error("somebody else moved HEAD while the commit was made")]
    Meanwhile {
        /// What is not where it was.
        source: RefError,
    },
    /// HEAD, a branch or a tag could not be changed.
    #[error("failed to change refs")]
    Refs {
        /// Why.
        source: RefError,
    },
    /// git refused for another reason.
    #[error("git failed to {doing}: {message}")]
    Failed {
        /// What was attempted.
        doing: &'static str,
        /// What git said.
        message: String,
    },
    /// A tag could not be made durable.
    #[error("failed to sync the tags")]
    Sync {
        /// Why.
        source: io::Error,
    },
    /// git could not be started.
    #[error("failed to start git to {doing}")]
    Start {
        /// What was attempted.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl From<RefError> for BranchError {
    fn from(error: RefError) -> Self {
        match error {
            source @ (RefError::Moved { .. } | RefError::Locked { .. }) => Self::Meanwhile { source },
            source => Self::Refs { source },
        }
    }
}

/// Names what a repository is in the middle of.
pub fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Merge => "merge",
        Operation::Rebase => "rebase",
        Operation::ApplyMailbox => "patch series (git am)",
        Operation::CherryPick => "cherry-pick",
        Operation::Revert => "revert",
        Operation::Bisect => "bisection",
    }
}

/// What git is asked for, as it is told when it fails.
const COMMIT: &str = "commit";
const TAG: &str = "tag the checkpoint";

/// A commit and its branch are on disk when git ends.
const DURABLE: [&str; 2] = ["-c", "core.fsync=committed"];

/// Hooks are told of refs here, not by git.
const UNTOLD: [&str; 2] = ["-c", "core.hooksPath=/dev/null"];

/// The words are someone's: a line that begins with `#` is no comment.
const VERBATIM: &str = "--cleanup=verbatim";

/// What git runs for a repository when it only looks or takes back: nothing.
const ALONE: [&str; 8] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "log.showSignature=false",
    "-c",
    "protocol.allow=never",
];

/// git, acting as the user in the repository of a project.
pub(super) struct UserGit<'a> {
    project: &'a Project,
    index: Option<PathBuf>,
    author: Option<Author>,
}

/// Whom git takes for the author of a commit, and when, as it is told.
type Author = [(&'static str, String); 3];

impl Project {
    pub(super) fn user_git(&self) -> Result<UserGit<'_>, BranchError> {
        if self.place.git.is_none() {
            return Err(BranchError::NoRepository { root: self.place.root.clone() });
        }
        Ok(UserGit { project: self, index: None, author: None })
    }
}

impl UserGit<'_> {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.context.git.as_user(&self.project.place.root);
        command.args(args).env(AT_WORK, at_work());
        self.with_own(command)
    }

    /// The same program, told of the index and the author.
    fn with_own(&self, mut command: Command) -> Command {
        command.envs(self.index.as_ref().map(|index| ("GIT_INDEX_FILE", index)));
        command.envs(self.author.iter().flatten().map(|(name, value)| (name, value)));
        command
    }

    /// git that runs nothing the repository names: only what the user asks for may do that.
    fn alone(&self, args: &[&str]) -> Command {
        let mut command = self.command(&ALONE);
        command.args(args).env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_LAZY_FETCH", "1");
        command
    }

    fn snapshots(&self) -> Result<&Snapshots, BranchError> {
        let none = |_| BranchError::NoRepository { root: self.project.place.root.clone() };
        self.project.snapshots().map_err(none)
    }

    fn run(&self, doing: &'static str, mut command: Command, input: &[u8]) -> Result<Output, BranchError> {
        let start = |source| BranchError::Start { doing, source };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(start)?;
        let mut stdin = child.stdin.take();
        std::thread::scope(|scope| {
            // git may end before it has read everything; its status says so better than a broken pipe.
            scope.spawn(move || stdin.as_mut().map(|stdin| stdin.write_all(input)));
            child.wait_with_output().map_err(start)
        })
    }

    /// The same git with another index.
    pub(super) fn with_index(self, index: &Path) -> Self {
        Self { index: Some(index.to_owned()), ..self }
    }

    /// Stages what differs and commits it. `paths` names what differs; without them git looks itself. `tell` is told of a
    /// commit that does not have this message, before a branch names it.
    pub(super) fn commit<E: From<BranchError>>(
        &self,
        paths: Option<&[RepoPath]>,
        message: &str,
        tell: impl FnOnce(&ObjectId) -> Result<(), E>,
    ) -> Result<(), E> {
        self.stage(paths)?;
        let made = self.make(message)?;
        if made.reworded {
            tell(&made.commit)?;
        }
        Ok(self.move_to(&made)?)
    }

    /// Returns the parents of a commit as git lists them, its tree and its message.
    pub(super) fn read_commit(&self, commit: &ObjectId) -> Result<(String, String, String), BranchError> {
        let text =
            self.ask("read a commit", &["show", "--no-patch", "--format=%P%n%T%n%B", commit.as_str()])?;
        let mut parts = text.splitn(3, '\n').map(str::to_owned);
        let mut next = || parts.next().unwrap_or_default();
        Ok((next(), next(), next()))
    }

    /// Lets a tag name again what it named before, without its message being made anew.
    pub(super) fn put_tag_back(&self, name: &str, object: &ObjectId) -> Result<(), BranchError> {
        let doing = "put a tag back";
        let name = tag_ref(name.to_owned());
        if let Ok(snapshots) = self.project.snapshots()
            && let Ok(now) = snapshots.user_ref(&name)
            && let Ok(Move::Done) = snapshots.put_user_ref(&name, now.as_ref(), object)
        {
            return Ok(());
        }
        let args = ["update-ref", &name, object.as_str()];
        succeeded(doing, &self.change_refs(doing, || self.alone(&args))?)
    }

    fn stage(&self, paths: Option<&[RepoPath]>) -> Result<(), BranchError> {
        let doing = "stage the files";
        if let Some(paths) = paths {
            let mut command = self.command(&["add", "-A", "--pathspec-from-file=-", "--pathspec-file-nul"]);
            command.env("GIT_LITERAL_PATHSPECS", "1");
            let input: Vec<u8> = paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
            if self.run(doing, command, &input)?.status.success() {
                return Ok(());
            }
        }
        let answer = self.run(doing, self.command(&["add", "-A"]), b"")?;
        succeeded(doing, &answer)
    }

    /// Sees to it that no lock is left if everything is killed while git itself moves HEAD and its branch.
    fn guard_head(&self) -> Option<Guard> {
        let snapshots = self.snapshots().ok()?;
        let branch = snapshots.state_of_repository().ok()?.branch;
        snapshots.guard_refs(&branch.iter().map(|branch| reference(branch)).collect::<Vec<_>>())
    }

    /// Makes an annotated tag, in the place of an older one of that name if `replace` is set.
    pub(super) fn tag(
        &self,
        name: &str,
        commit: &ObjectId,
        message: &str,
        replace: bool,
    ) -> Result<(), BranchError> {
        let mut args = vec![DURABLE[0], DURABLE[1], "tag", "--annotate", VERBATIM, "--file=-"];
        args.extend(replace.then_some("--force"));
        args.extend([name, commit.as_str()]);
        let answer = self.make_tag(name, &args, &whole_lines(message))?;
        if !answer.status.success() {
            return Err(self.explain(TAG, &answer));
        }
        self.sync_tags().map_err(|source| BranchError::Sync { source })
    }

    /// Has git change refs: where they are tables, in a copy that takes their place.
    fn change_refs(&self, doing: &'static str, git: impl Fn() -> Command) -> Result<Output, BranchError> {
        let in_copy = |copy: &Copy| {
            let mut command = git();
            command.envs(copy.variables());
            self.run(doing, command, b"")
        };
        match self.snapshots()?.change_tables(in_copy)? {
            Some(answer) => Ok(answer),
            None => self.run(doing, git(), b""),
        }
    }

    /// Has git make a tag. Where refs are tables, the hook that is told of them is not where git looks for it then.
    fn make_tag(&self, name: &str, args: &[&str], message: &[u8]) -> Result<Output, BranchError> {
        let snapshots = self.snapshots()?;
        if !snapshots.keeps_tables() {
            return self.run(TAG, self.command(args), message);
        }
        let (name, hooks) = (tag_ref(name.to_owned()), self.hooks()?);
        let tell = |state, made: &ObjectId| self.tell_of(&hooks, state, &[(&name, None, Some(made))]);
        let mut told = None;
        let made = snapshots.change_tables(|copy| {
            let run = |args: &[&str]| {
                let mut command = self.command(&UNTOLD);
                command.args(args).envs(copy.variables());
                self.run(TAG, command, message)
            };
            let answer = run(args)?;
            if answer.status.success() && hooks.contain(OF_REFS) {
                let found = run(&["rev-parse", &name])?;
                let found = String::from_utf8_lossy(&found.stdout)
                    .trim()
                    .parse()
                    .map_err(|_| BranchError::Failed { doing: TAG, message: said(&found) })?;
                tell("prepared", &found)?;
                told = Some(found);
            }
            Ok::<_, BranchError>(answer)
        });
        if let Some(object) = told {
            // It has no say any more.
            let _ = tell(if made.is_ok() { "committed" } else { "aborted" }, &object);
        }
        made?.map_or_else(|| self.run(TAG, self.command(args), message), Ok)
    }

    /// git syncs files but not the folders that name them.
    fn sync_tags(&self) -> io::Result<()> {
        let Some(git) = &self.project.place.git else { return Ok(()) };
        match fs::File::open(git.common_dir.join("refs").join("tags")) {
            Ok(folder) => folder.sync_all(),
            // Other kinds of repositories keep refs elsewhere, and git syncs that.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes tags; those that are not there are deleted already.
    pub(super) fn delete_tags(&self, names: &[String]) -> Result<(), BranchError> {
        if names.is_empty() {
            return Ok(());
        }
        let refs: Vec<_> = names.iter().cloned().map(tag_ref).collect();
        let changes: Vec<Change<'_>> = refs.iter().map(|name| (name.as_str(), None, None)).collect();
        self.telling_of(&self.hooks()?, &changes, || self.delete_here(names))
    }

    /// Deletes tags without a lock where they are files.
    fn delete_here(&self, names: &[String]) -> Result<(), BranchError> {
        let refs: Vec<_> = names.iter().cloned().map(tag_ref).collect();
        Ok(self.snapshots()?.delete_user_refs(&refs)?)
    }

    /// Deletes a tag that was made by something that did not get through.
    pub(super) fn take_tag_back(&self, name: &str) -> Result<(), BranchError> {
        self.delete_here(&[name.to_owned()])
    }

    /// Lists tags that start with `prefix`: name, commit, time in seconds, and the first lines of the message.
    pub(super) fn tags(&self, prefix: &str) -> Result<Vec<Tag>, BranchError> {
        let doing = "list tags";
        let format = "--format=%(refname:strip=2)%00%(objectname)%00%(*objectname)%00\
                      %(creatordate:unix)%00%(contents:subject)%00%(contents:body)%01";
        let pattern = format!("refs/tags/{prefix}*");
        let answer = self.run(doing, self.alone(&["for-each-ref", format, &pattern]), b"")?;
        succeeded(doing, &answer)?;
        let text = String::from_utf8_lossy(&answer.stdout);
        Ok(text.split('\u{1}').filter_map(Tag::parse).collect())
    }

    /// Returns the whole name of a commit that is there.
    pub(super) fn find_commit(&self, name: &str) -> Result<Option<ObjectId>, BranchError> {
        let wanted = format!("{name}^{{commit}}");
        let args = ["rev-parse", "--quiet", "--verify", "--end-of-options", &wanted];
        let answer = self.run("find a commit", self.alone(&args), b"")?;
        Ok(String::from_utf8_lossy(&answer.stdout).trim().parse().ok())
    }

    /// Runs a subcommand that only reads and returns what it prints.
    pub(super) fn ask(&self, doing: &'static str, args: &[&str]) -> Result<String, BranchError> {
        let answer = self.run(doing, self.alone(args), b"")?;
        succeeded(doing, &answer)?;
        Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
    }

    /// Finds out why git refused, by asking it rather than by reading its words, which depend on the language.
    fn explain(&self, doing: &'static str, answer: &Output) -> BranchError {
        let message = said(answer);
        let silent = |args: &[&str]| self.run(doing, self.alone(args), b"").map(|answer| answer.status);
        let fails = |args: &[&str]| silent(args).is_ok_and(|status| !status.success());
        if fails(&["var", "GIT_COMMITTER_IDENT"]) || fails(&["var", "GIT_AUTHOR_IDENT"]) {
            return BranchError::NoIdentity { message };
        }
        let tells = ["gpg", "sign the data", "ssh-keygen"].iter().any(|word| message.contains(word));
        let setting = if doing == TAG { "tag.gpgSign" } else { "commit.gpgSign" };
        let is_on = || {
            let asked = self.ask("read a setting", &["config", "--type=bool", "--get", setting]);
            asked.is_ok_and(|value| value.trim_end() == "true")
        };
        if tells && is_on() {
            return BranchError::Signing { message };
        }
        if doing == COMMIT {
            if silent(&["diff", "--cached", "--quiet"]).is_ok_and(|status| status.success()) {
                return BranchError::NothingToCommit;
            }
            if let Some(hook) = self.hook() {
                return BranchError::Hook { hook, message };
            }
        }
        // Words depend on the language and on the program that signs; nothing else is left that could refuse.
        if is_on() {
            return BranchError::Signing { message };
        }
        BranchError::Failed { doing, message }
    }

    /// The first hook that could have refused a commit.
    fn hook(&self) -> Option<&'static str> {
        let folder = self.hooks_folder().ok()?;
        HOOKS.into_iter().find(|name| *name != "post-commit" && is_run(&folder.join(name)))
    }
}

/// An annotated or plain tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) name: String,
    pub(super) commit: ObjectId,
    pub(super) seconds: i64,
    pub(super) message: String,
}

impl Tag {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.trim_start_matches('\n').split('\0');
        let mut next = || fields.next();
        let (name, own, peeled, seconds) = (next()?, next()?, next()?, next()?);
        let (subject, body) = (next()?, next().unwrap_or_default());
        let commit = if peeled.is_empty() { own } else { peeled };
        let message = [subject, body.trim_end()].join("\n\n").trim_end().to_owned();
        Some(Self {
            name: name.to_owned(),
            commit: commit.parse().ok()?,
            seconds: seconds.parse().unwrap_or(0),
            message,
        })
    }
}

/// A message as git ends it.
fn whole_lines(message: &str) -> Vec<u8> {
    format!("{}\n", message.trim_end()).into_bytes()
}

fn succeeded(doing: &'static str, answer: &Output) -> Result<(), BranchError> {
    if answer.status.success() {
        return Ok(());
    }
    Err(BranchError::Failed { doing, message: said(answer) })
}

/// What git and its hooks said, in one line.
fn said(answer: &Output) -> String {
    let text = [&answer.stderr[..], &answer.stdout[..]].concat();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() { answer.status.to_string() } else { lines.join(" / ") }
}
