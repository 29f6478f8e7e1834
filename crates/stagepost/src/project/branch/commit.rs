//! A commit as git makes it, hooks included, whose branch is moved here: a git that is killed while it moves a branch leaves a
//! lock that stops every other git.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::hooks::Hooks;
use super::{Author, BranchError, COMMIT, DURABLE, UNTOLD, UserGit, said, whole_lines};
use crate::bounded;
use crate::model::ObjectId;
use crate::snapshot::{Move, RefError, Snapshots, Told, reference};

/// A message that a hook wrote is not longer than this.
const LONGEST_MESSAGE: u64 = 64 << 20;

/// A commit that no branch names yet.
pub(super) struct Made {
    pub(super) commit: ObjectId,
    /// A hook gave it another message.
    pub(super) reworded: bool,
    head: Option<ObjectId>,
    branch: Option<String>,
    told: Told,
    hooks: Hooks,
    author: Option<Author>,
}

/// What the configuration says of commits.
#[derive(Debug, PartialEq, Eq)]
struct Habits {
    signs_commits: bool,
    keeps_logs: bool,
    names_hooks_folder: bool,
    names_hooks: bool,
}

impl UserGit<'_> {
    /// Has git make the commit of what is staged, with the hooks that come before it.
    pub(super) fn make(&self, message: &str) -> Result<Made, BranchError> {
        let snapshots = self.snapshots()?;
        let habits = self.habits()?;
        let hooks = self.find_hooks(habits.names_hooks_folder, habits.names_hooks)?;
        let state = snapshots.state_of_repository()?;
        let (head, branch) = (state.head, state.branch);
        let author = if hooks.is_empty() { None } else { self.author()? };
        let git = self.by(author);
        git.run_hook(&hooks, "pre-commit", &[], b"")?;
        let tree = git.made(&["write-tree"], b"")?;
        let given = whole_lines(message);
        let text = git.worded(&hooks, &tree, head.as_ref(), &given)?;
        let mut args = vec!["commit-tree", "-F", "-"];
        args.extend(habits.signs_commits.then_some("-S"));
        args.extend(head.iter().flat_map(|head| ["-p", head.as_str()]));
        args.push(tree.as_str());
        let commit = git.made(&args, &text)?;
        let who = git.committer(&commit, head.as_ref())?;
        let initial = if head.is_none() { " (initial)" } else { "" };
        let first = String::from_utf8_lossy(&text);
        let message = format!("commit{initial}: {}", first.lines().next().unwrap_or_default());
        let told = Told { who, message, begins: habits.keeps_logs };
        Ok(Made { commit, reworded: text != given, head, branch, told, hooks, author: git.author })
    }

    /// Has the branch name a commit, puts away what a merge left, and tells the hook that comes after.
    pub(super) fn move_to(&self, made: &Made) -> Result<(), BranchError> {
        let snapshots = self.snapshots()?;
        let git = self.by(made.author.clone());
        let (old, new) = (made.head.as_ref(), Some(&made.commit));
        let branch = made.branch.as_ref().map(|branch| reference(branch));
        // git says where a branch was, and of HEAD only if that names no branch.
        let changes = match &branch {
            Some(branch) => vec![("HEAD", None, new), (branch, old, new)],
            None => vec![("HEAD", old, new)],
        };
        git.telling_of(&made.hooks, &changes, || {
            match snapshots.advance(old, &made.commit, &made.told)? {
                Move::Done => Ok(()),
                Move::NeedsGit => self.move_with_git(made),
            }
        })?;
        snapshots.put_merge_away()?;
        self.remember_resolutions();
        // It has no say any more.
        let _ = git.run_hook(&made.hooks, "post-commit", &[], b"");
        Ok(())
    }

    /// Has git remember how conflicts were resolved (`rerere`), as it does at the end of a commit. If that fails, it is done by
    /// the next one.
    fn remember_resolutions(&self) {
        let Some(copy) = self.snapshots().ok().and_then(Snapshots::copy_conflicts) else { return };
        let mut command = self.command(&["-c", "rerere.autoUpdate=false", "rerere"]);
        command.envs(copy.variables());
        if self.run(COMMIT, command, b"").is_ok_and(|answer| answer.status.success()) {
            copy.take_place();
        }
    }

    /// The hook of refs has been told.
    fn move_with_git(&self, made: &Made) -> Result<(), BranchError> {
        let none = "0".repeat(made.commit.as_str().len());
        let old = made.head.as_ref().map_or(none.as_str(), ObjectId::as_str);
        let mut args = [DURABLE, UNTOLD].concat();
        args.extend(["update-ref", "-m", &made.told.message, "HEAD", made.commit.as_str(), old]);
        let _guard = if self.snapshots()?.keeps_tables() { None } else { self.guard_head() };
        let answer = self.change_refs(COMMIT, || self.command(&args))?;
        if answer.status.success() {
            return Ok(());
        }
        let now = self.project.snapshots().ok().and_then(|snapshots| snapshots.state_of_repository().ok());
        if let Some(now) = now.filter(|now| now.head != made.head) {
            let source = RefError::Moved { name: "HEAD".to_owned(), found: now.head };
            return Err(BranchError::Meanwhile { source });
        }
        Err(BranchError::Failed { doing: COMMIT, message: said(&answer) })
    }

    /// Has git make an object, durably, and returns its name.
    fn made(&self, args: &[&str], input: &[u8]) -> Result<ObjectId, BranchError> {
        let doing = "make the commit";
        let mut command = self.command(&DURABLE);
        command.args(args);
        let answer = self.run(doing, command, input)?;
        let id = String::from_utf8_lossy(&answer.stdout).trim().parse();
        id.ok().filter(|_| answer.status.success()).ok_or_else(|| self.explain(doing, &answer))
    }

    /// Returns who made a commit and when, as a reflog says it; an error if it changes nothing.
    fn committer(&self, commit: &ObjectId, head: Option<&ObjectId>) -> Result<String, BranchError> {
        let mut args = vec!["-c", "i18n.logOutputEncoding=UTF-8", "show", "--no-patch", "--date=raw"];
        args.extend(["--format=%T%x00%cn <%ce> %cd%x00", commit.as_str()]);
        args.extend(head.map(ObjectId::as_str));
        let text = self.ask("read a commit", &args)?;
        let mut fields = text.split('\0').map(str::trim_start);
        let (tree, who, before) = (fields.next(), fields.next().unwrap_or_default(), fields.next());
        if head.is_some() && tree == before {
            return Err(BranchError::NothingToCommit);
        }
        Ok(who.to_owned())
    }

    /// Reads what the configuration says of commits.
    fn habits(&self) -> Result<Habits, BranchError> {
        let doing = "read the configuration";
        let answer = self.run(doing, self.command(&["config", "--list", "-z"]), b"")?;
        super::succeeded(doing, &answer)?;
        Ok(Habits::of(&String::from_utf8_lossy(&answer.stdout)))
    }

    /// Finds the hooks that have a say in what becomes of a ref.
    pub(super) fn hooks(&self) -> Result<Hooks, BranchError> {
        let habits = self.habits()?;
        self.find_hooks(habits.names_hooks_folder, habits.names_hooks)
    }

    /// The same git, with an author whom hooks are told.
    fn by(&self, author: Option<Author>) -> Self {
        Self { project: self.project, index: self.index.clone(), author }
    }

    /// Returns who commits, at one moment for all that is to come.
    fn author(&self) -> Result<Option<Author>, BranchError> {
        let doing = "find out who commits";
        let answer = self.run(doing, self.alone(&["var", "GIT_AUTHOR_IDENT"]), b"")?;
        if !answer.status.success() {
            return Err(self.explain(doing, &answer));
        }
        let line = String::from_utf8_lossy(&answer.stdout);
        let parts =
            line.trim_end().rsplit_once("> ").and_then(|(who, at)| Some((who.rsplit_once(" <")?, at)));
        Ok(parts.map(|((name, address), at)| {
            [
                ("GIT_AUTHOR_NAME", name.to_owned()),
                ("GIT_AUTHOR_EMAIL", address.to_owned()),
                ("GIT_AUTHOR_DATE", format!("@{at}")),
            ]
        }))
    }

    /// Returns what the hooks made of a message.
    fn worded(
        &self,
        hooks: &Hooks,
        tree: &ObjectId,
        head: Option<&ObjectId>,
        given: &[u8],
    ) -> Result<Vec<u8>, BranchError> {
        let is_read =
            ["prepare-commit-msg", "commit-msg", "post-commit"].iter().any(|name| hooks.contain(name));
        let git_dir = self.project.snapshots().ok().and_then(|snapshots| snapshots.git_dir());
        let Some(git_dir) = git_dir.filter(|_| is_read) else { return Ok(given.to_owned()) };
        if let Some(head) = head
            && self.ask("read a commit", &["show", "--no-patch", "--format=%T", head.as_str()])?.trim()
                == tree.as_str()
        {
            return Err(BranchError::NothingToCommit);
        }
        let path = git_dir.join("COMMIT_EDITMSG");
        let failed = |error: io::Error| {
            let message = format!("the message {}: {error}", path.display());
            BranchError::Failed { doing: COMMIT, message }
        };
        write_anew(&path, given).map_err(failed)?;
        let root = &self.project.place.root;
        let shown = path.strip_prefix(root).unwrap_or(&path);
        let shown = shown.as_os_str();
        self.run_hook(hooks, "prepare-commit-msg", &[shown, OsStr::new("message")], b"")?;
        self.run_hook(hooks, "commit-msg", &[shown], b"")?;
        let read = bounded::open(&path).and_then(|file| bounded::read(file, LONGEST_MESSAGE));
        let text = read.map_err(failed)?;
        if text.is_empty() {
            let message = "a hook left no message".to_owned();
            return Err(BranchError::Failed { doing: COMMIT, message });
        }
        Ok(text)
    }
}

impl Habits {
    /// Reads what `git config --list -z` prints.
    fn of(list: &str) -> Self {
        let mut habits =
            Self { signs_commits: false, keeps_logs: true, names_hooks_folder: false, names_hooks: false };
        for entry in list.split_terminator('\0') {
            let (name, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            let is_on = !matches!(value.to_ascii_lowercase().as_str(), "false" | "no" | "off" | "0" | "");
            match name {
                "core.hookspath" => habits.names_hooks_folder = true,
                name if name.starts_with("hook.") => habits.names_hooks = true,
                "commit.gpgsign" => habits.signs_commits = is_on,
                "core.logallrefupdates" => habits.keeps_logs = is_on,
                _ => {}
            }
        }
        habits
    }
}

/// Writes a file that is not yet there; what had its name is no longer its name, a link neither.
fn write_anew(path: &Path, text: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_of_a_setting_counts_and_a_name_alone_is_a_yes() {
        let of = |list| {
            let habits = Habits::of(list);
            (habits.signs_commits, habits.keeps_logs, habits.names_hooks_folder, habits.names_hooks)
        };
        assert_eq!(of(""), (false, true, false, false));
        assert_eq!(of("commit.gpgsign\nfalse\0commit.gpgsign\0"), (true, true, false, false));
        assert_eq!(of("commit.gpgsign\ntrue\0commit.gpgsign\nOff\0"), (false, true, false, false));
        assert_eq!(of("core.logallrefupdates\nfalse\0"), (false, false, false, false));
        assert_eq!(of("core.hookspath\nhooks\0hook.lint.command\nlint\0"), (false, true, true, true));
    }
}
