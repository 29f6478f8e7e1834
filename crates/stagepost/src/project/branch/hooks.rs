//! Hooks, run around what is done here as git runs them around its own commands.
//!
//! git runs them where it can be asked to (`git hook run --to-stdin`), which knows those that a configuration names too. An older git
//! knows only those in its folder; they are started here.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::io::Errno;

use super::{BranchError, COMMIT, UserGit, said, succeeded};
use crate::model::ObjectId;
use crate::snapshot::{AT_WORK, at_work};

/// The hooks that have a say in a commit.
pub(super) const HOOKS: [&str; 5] =
    ["pre-commit", "prepare-commit-msg", "commit-msg", OF_REFS, "post-commit"];

/// The one that is told of every ref.
pub(super) const OF_REFS: &str = "reference-transaction";

/// The hooks that git would run.
#[derive(Debug, Clone, Default)]
pub(super) struct Hooks {
    names: Vec<&'static str>,
    /// Where they are, if git cannot be asked to run them.
    started_here: Option<PathBuf>,
}

impl Hooks {
    pub(super) fn contain(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// What becomes of one ref: its name, what it names before and what after. Nothing is told as git tells it, by zeros.
pub(super) type Change<'a> = (&'a str, Option<&'a ObjectId>, Option<&'a ObjectId>);

impl UserGit<'_> {
    /// Finds the [`HOOKS`] that git would run. `elsewhere` says that a configuration names their folder, `named` that it names
    /// hooks by themselves.
    pub(super) fn find_hooks(&self, elsewhere: bool, named: bool) -> Result<Hooks, BranchError> {
        let git = self.project.place.git.as_ref().filter(|_| !elsewhere);
        let folder = git.map_or_else(|| self.hooks_folder(), |git| Ok(git.common_dir.join("hooks")))?;
        let names: Vec<_> = HOOKS.into_iter().filter(|name| is_run(&folder.join(name))).collect();
        if names.is_empty() && !named {
            return Ok(Hooks::default());
        }
        if !self.runs_hooks()? {
            return Ok(Hooks { names, started_here: Some(folder) });
        }
        Ok(Hooks { names: if named { HOOKS.to_vec() } else { names }, started_here: None })
    }

    pub(super) fn hooks_folder(&self) -> Result<PathBuf, BranchError> {
        let doing = "find hooks";
        let answer = self.run(doing, self.command(&["rev-parse", "--git-path", "hooks"]), b"")?;
        succeeded(doing, &answer)?;
        let folder = String::from_utf8_lossy(&answer.stdout);
        Ok(self.project.place.root.join(folder.trim_end_matches('\n')))
    }

    /// Says whether this git runs a hook when it is asked to, and gives it something to read.
    fn runs_hooks(&self) -> Result<bool, BranchError> {
        let answer = self.run("ask git for its commands", self.command(&["hook", "-h"]), b"")?;
        let told = [answer.stdout, answer.stderr].concat();
        Ok(String::from_utf8_lossy(&told).contains("--to-stdin"))
    }

    /// Runs a hook, if it is there, as git does.
    pub(super) fn run_hook(
        &self,
        hooks: &Hooks,
        name: &'static str,
        args: &[&OsStr],
        input: &[u8],
    ) -> Result<(), BranchError> {
        if !hooks.contain(name) {
            return Ok(());
        }
        let answer = match &hooks.started_here {
            Some(folder) => self.start_hook(&folder.join(name), args, input)?,
            None => {
                let mut command = self.command(&["hook", "run", "--ignore-missing"]);
                command.args((!input.is_empty()).then_some("--to-stdin=/dev/stdin"));
                command.args([name, "--"]).args(args).env("GIT_EDITOR", ":");
                self.run(COMMIT, command, input)?
            }
        };
        if answer.status.success() {
            return Ok(());
        }
        Err(BranchError::Hook { hook: name, message: said(&answer) })
    }

    /// Starts a hook as a git does that cannot be asked for it: at the root, with git's own programs first in its path.
    fn start_hook(&self, path: &Path, args: &[&OsStr], input: &[u8]) -> Result<Output, BranchError> {
        let place = &self.project.place;
        let programs = self.ask("find git's programs", &["--exec-path"])?;
        let programs = programs.trim_end();
        let mut search = OsString::from(programs);
        search.push(":");
        search.push(self.project.context.git.search_path());
        let prepare = |mut command: Command| {
            command.args(args).env(AT_WORK, at_work()).env("GIT_EDITOR", ":").env("GIT_PREFIX", "");
            command.env("GIT_EXEC_PATH", programs).env("PATH", &search);
            self.with_own(command)
        };
        let git = &self.project.context.git;
        let shown = path.strip_prefix(&place.root).unwrap_or(path);
        match self.run(COMMIT, prepare(git.program_as_user(shown, &place.root)), input) {
            // A script that does not say what runs it is the shell's.
            Err(BranchError::Start { source, .. }) if is_no_program(&source) => {
                let mut shell = git.program_as_user(Path::new("/bin/sh"), &place.root);
                shell.arg(shown);
                self.run(COMMIT, prepare(shell), input)
            }
            done => done,
        }
    }

    /// Does something to refs as git does where a hook is told of it: the hook may refuse, and is told how it went.
    pub(super) fn telling_of<T>(
        &self,
        hooks: &Hooks,
        changes: &[Change<'_>],
        apply: impl FnOnce() -> Result<T, BranchError>,
    ) -> Result<T, BranchError> {
        let done = self.tell_of(hooks, "prepared", changes).and_then(|()| apply());
        // It has no say any more.
        let _ = self.tell_of(hooks, if done.is_ok() { "committed" } else { "aborted" }, changes);
        done
    }

    /// Tells the hook of refs, if it is there, what is about to become of them, or what has.
    pub(super) fn tell_of(
        &self,
        hooks: &Hooks,
        state: &str,
        changes: &[Change<'_>],
    ) -> Result<(), BranchError> {
        if !hooks.contain(OF_REFS) {
            return Ok(());
        }
        let lines = lines_of(changes, self.snapshots()?.name_length());
        self.run_hook(hooks, OF_REFS, &[state.as_ref()], lines.as_bytes())
    }
}

/// What the hook of refs reads, with names of objects of that length.
fn lines_of(changes: &[Change<'_>], length: usize) -> String {
    let zero = "0".repeat(length);
    let text = |id: Option<&ObjectId>| id.map_or_else(|| zero.clone(), ToString::to_string);
    changes.iter().map(|(name, old, new)| format!("{} {} {name}\n", text(*old), text(*new))).collect()
}

/// Says whether git would run this file as a hook.
pub(super) fn is_run(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn is_no_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refs_are_told_line_by_line_and_what_is_not_there_by_zeros() {
        let (one, two): (ObjectId, ObjectId) =
            ("1".repeat(40).parse().unwrap(), "2".repeat(40).parse().unwrap());
        let zero = "0".repeat(40);
        let lines = lines_of(&[("HEAD", None, Some(&two)), ("refs/heads/main", Some(&one), None)], 40);
        assert_eq!(lines, format!("{zero} {two} HEAD\n{one} {zero} refs/heads/main\n"));
    }
}
