//! Capturing through the git program with a private index.
//!
//! This is the way for every repository whose formats only git itself knows, and the measure for the faster way:
//! what it finds is what `git add -A` would have staged.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::PathBuf;

use super::capture::{Capture, CaptureError, Deadline, Found, Secrets};
use super::git::{Git, GitError, Trust};
use super::guard;
use super::marks::IndexFile;
use super::quarantine::{Quarantine, copy_index, on_disk};
use super::repository;
use super::secret::is_secret;
use super::state::join;
use super::{Snapshots, refs::Refs};
use crate::model::{IndexMarks, ObjectId, RepoPath, SkipReason, Skipped};

/// How often files that change while they are read are read again.
const ROUNDS: usize = 5;

/// How many paths that were asked for git is told of at once: each is an argument, and there may be thousands.
const ASKED_AT_ONCE: usize = 256;

/// A work tree found through git: what it holds, where its new objects are, and git bound to them.
pub(super) struct Plumbed {
    pub(super) found: Found,
    pub(super) quarantine: Quarantine,
    pub(super) git: Git,
}

impl Snapshots {
    /// Finds what the work tree holds; the caller holds the lock.
    pub(super) fn plumb(&self, options: &Capture, deadline: Deadline) -> Result<Plumbed, CaptureError> {
        let quarantine = Quarantine::make(&self.folder)?;
        let rules_git = self.rules_git.until(deadline);
        let trust = Trust::read(&rules_git)?;
        let index = quarantine.path().join("index");
        let git = quarantine.bind(&rules_git, &self.object_dirs()).configured(trust.overrides.clone());
        let git = git.with("GIT_INDEX_FILE", &index);
        if let Some(user) = &self.user {
            copy_index(&user.git_dir.join("index"), &index)?;
        }
        let mut search = Search::new(self, &git, options, deadline);
        let index_tree = search.index_tree()?;
        let marks = match (&self.user, &index_tree) {
            (Some(user), Some(_)) => git.index_marks(&IndexFile::new(user, index.clone()))?,
            _ => IndexMarks::default(),
        };
        search.stage()?;
        search.note_filters(&trust);
        let tree = git.write_tree()?.ok_or_else(|| GitError::Answer { command: "write-tree".to_owned() })?;
        let total = git.run(&["ls-files", "-z"], b"")?.iter().filter(|byte| **byte == 0).count() as u64;
        let Search { skipped, included, notes, .. } = search;
        let found = Found {
            tree,
            index_tree,
            marks,
            total,
            skipped: skipped.into_iter().collect(),
            included: included.into_iter().collect(),
            notes: notes.into_iter().collect(),
        };
        Ok(Plumbed { found, quarantine, git })
    }

    /// Where objects can be read: the store's, the user's if that is another one, and where they were kept before.
    pub(super) fn object_dirs(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.store.objects_dir()];
        let others = self.user.iter().chain(self.elsewhere.iter().map(|(repository, _)| repository));
        for folder in others.map(repository::Repository::objects_dir) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        folders
    }

    /// Moves the objects that a snapshot needs to where they stay.
    pub(super) fn keep_plumbed(&self, plumbed: &Plumbed) -> Result<(), CaptureError> {
        let mut ids = plumbed.quarantine.written()?;
        if self.is_apart() {
            ids.extend(self.missing_of(plumbed)?);
        }
        ids.sort();
        ids.dedup();
        plumbed.quarantine.keep(&plumbed.git, &ids, &self.store.objects_dir()).map(drop)?;
        self.objects.refresh();
        Ok(())
    }

    /// Lists what a private store lacks of a snapshot, because the user's repository has it.
    fn missing_of(&self, plumbed: &Plumbed) -> Result<Vec<ObjectId>, CaptureError> {
        let mut wanted = BTreeSet::new();
        for tree in [Some(&plumbed.found.tree), plumbed.found.index_tree.as_ref()].into_iter().flatten() {
            wanted.insert(tree.to_string());
            let list =
                plumbed.git.run(&["ls-tree", "-r", "-t", "-z", "--end-of-options", tree.as_str()], b"")?;
            for entry in String::from_utf8_lossy(&list).split('\0') {
                let mut words = entry.split(['\t', ' ']).skip(1);
                if let (Some("blob" | "tree"), Some(id)) = (words.next(), words.next()) {
                    wanted.insert(id.to_owned());
                }
            }
        }
        let list: String = wanted.iter().map(|id| format!("{id}\n")).collect();
        let answer = self.store_git.run(&["cat-file", "--batch-check"], list.as_bytes())?;
        let text = String::from_utf8_lossy(&answer);
        let missing = text.lines().filter_map(|line| line.strip_suffix(" missing"));
        Ok(missing.filter_map(|id| id.parse().ok()).collect())
    }
}

impl Git {
    /// Writes the private index as a tree; `None` if it has conflicts.
    fn write_tree(&self) -> Result<Option<ObjectId>, GitError> {
        let args = ["write-tree", "--missing-ok"];
        let answer = self.try_run(&args, b"")?;
        if answer.status.success() {
            let id = String::from_utf8_lossy(&answer.stdout).trim().parse();
            return id.map(Some).map_err(|_| GitError::Answer { command: "write-tree".to_owned() });
        }
        let unmerged = String::from_utf8_lossy(&answer.stderr).contains("unmerged");
        if unmerged { Ok(None) } else { Err(answer.into_error(&args)) }
    }
}

/// One search through a work tree.
struct Search<'a> {
    snapshots: &'a Snapshots,
    git: &'a Git,
    options: &'a Capture,
    deadline: Deadline,
    skipped: BTreeSet<Skipped>,
    included: BTreeSet<RepoPath>,
    notes: BTreeSet<String>,
    staged: BTreeSet<RepoPath>,
    /// Files that were taken without conversion; git goes on to call them modified.
    raw: BTreeSet<RepoPath>,
}

impl<'a> Search<'a> {
    fn new(snapshots: &'a Snapshots, git: &'a Git, options: &'a Capture, deadline: Deadline) -> Self {
        let (skipped, included, notes, staged, raw) = Default::default();
        Self { snapshots, git, options, deadline, skipped, included, notes, staged, raw }
    }

    fn index_tree(&mut self) -> Result<Option<ObjectId>, CaptureError> {
        if self.snapshots.user.is_none() {
            return Ok(None);
        }
        let tree = self.git.write_tree()?;
        if tree.is_none() {
            self.notes.insert("the index has conflicts and is not in the snapshot".to_owned());
        }
        Ok(tree)
    }

    /// Brings the private index up to date with the work tree. Files that change meanwhile are read again.
    fn stage(&mut self) -> Result<(), CaptureError> {
        let mut removed = self.tracked_of_ours()?;
        let mut paths = self.modified()?;
        paths.extend(self.untracked()?);
        self.skip_special()?;
        for round in 0..ROUNDS {
            self.deadline.check()?;
            let (present, gone): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| self.wanted(path));
            removed.extend(gone);
            self.update(&present, &removed)?;
            self.staged.extend(present);
            // git notes a file's times before it reads it, so what changed meanwhile shows as modified.
            paths = self.modified()?;
            paths.retain(|path| !removed.contains(path) && !self.raw.contains(path));
            if paths.is_empty() {
                return Ok(());
            }
            if round + 1 == ROUNDS {
                self.notes
                    .extend(paths.iter().map(|path| format!("`{path}` kept changing while it was read")));
            }
        }
        Ok(())
    }

    fn update(&mut self, present: &[RepoPath], removed: &[RepoPath]) -> Result<(), CaptureError> {
        let list: Vec<u8> = present.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
        let args = ["update-index", "-z", "--add", "--remove", "--replace", "--stdin"];
        let answer = self.git.try_run(&args, &list)?;
        if !answer.status.success() {
            // One file that cannot be converted fails them all; alone, each shows whether it is the one.
            return match present {
                [path] => self.keep_raw(path, answer.into_error(&args)),
                _ => {
                    present.chunks(present.len().div_ceil(2)).try_for_each(|half| self.update(half, removed))
                }
            };
        }
        if String::from_utf8_lossy(&answer.stderr).contains("external filter") {
            self.notes.insert("a filter program failed: raw bytes kept".to_owned());
        }
        if !removed.is_empty() {
            let list: Vec<u8> = removed.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
            self.git.run(&["update-index", "-z", "--force-remove", "--stdin"], &list)?;
        }
        Ok(())
    }

    /// Takes a file's bytes as they are, because git refused to convert them with `refusal`.
    fn keep_raw(&mut self, path: &RepoPath, refusal: GitError) -> Result<(), CaptureError> {
        let file = on_disk(&self.snapshots.root, path.as_bytes());
        let metadata = fs::symlink_metadata(&file).ok().filter(fs::Metadata::is_file);
        let (Some(metadata), Ok(bytes)) = (metadata, fs::read(&file)) else { return Err(refusal.into()) };
        let id = self.git.run(&["hash-object", "-w", "--no-filters", "--stdin"], &bytes)?;
        let mode = if metadata.permissions().mode() & 0o100 == 0 { "100644" } else { "100755" };
        let line = format!("{mode} {}\t", String::from_utf8_lossy(&id).trim());
        let line = [line.as_bytes(), path.as_bytes(), b"\0"].concat();
        self.git.run(&["update-index", "-z", "--add", "--replace", "--index-info"], &line)?;
        self.raw.insert(path.clone());
        self.notes.insert(format!("the conversion of `{path}` failed: raw bytes kept"));
        Ok(())
    }

    /// Lists tracked files that differ from the private index, deleted ones included.
    fn modified(&self) -> Result<Vec<RepoPath>, CaptureError> {
        let args = ["diff-files", "-z", "--name-only", "--no-ext-diff", "--ignore-submodules=dirty"];
        let mut paths = split(&self.git.run(&args, b"")?);
        paths.dedup();
        Ok(paths)
    }

    /// Lists files that git would add, and ignored ones that were asked for.
    fn untracked(&mut self) -> Result<Vec<RepoPath>, CaptureError> {
        let args = ["ls-files", "-z", "-o", "--exclude-standard"];
        let answer = self.git.try_run(&args, b"")?;
        if !answer.status.success() {
            return Err(answer.into_error(&args).into());
        }
        self.skip_unreadable_folders(&answer.stderr);
        let mut paths = split(&answer.stdout);
        paths.retain(|path| !self.snapshots.is_ours(path));
        guard::untracked(paths.len(), self.options).map_err(|source| self.snapshots.refused(source))?;
        self.leave_secrets_out(&mut paths);
        let known: BTreeSet<_> = paths.iter().cloned().collect();
        let asked = self.asked_for();
        for batch in asked.chunks(ASKED_AT_ONCE) {
            let args = ["ls-files", "-z", "-o", "--"].map(OsStr::new).into_iter();
            let args: Vec<_> = args.chain(batch.iter().map(|path| argument(path))).collect();
            let found = split(&self.git.run(&args, b"")?).into_iter();
            let new = found.filter(|path| !known.contains(path) && !self.snapshots.is_ours(path));
            paths.extend(new.filter(|path| self.included.insert(path.clone())));
        }
        Ok(paths)
    }

    /// Takes out files that look like secrets, and lists them, unless they were asked for.
    fn leave_secrets_out(&mut self, untracked: &mut Vec<RepoPath>) {
        if self.options.secrets == Secrets::Include {
            return;
        }
        let asked = self.asked_for();
        untracked.retain(|path| {
            let file = on_disk(&self.snapshots.root, path.as_bytes());
            let found = fs::symlink_metadata(file).ok().filter(fs::Metadata::is_file);
            let wanted = || asked.iter().any(|asked| path.is_within(asked));
            match found.filter(|_| is_secret(path.as_bytes()) && !wanted()) {
                Some(found) => {
                    let (path, size) = (path.clone(), found.len());
                    self.skipped.insert(Skipped { path, size, reason: SkipReason::Secret });
                    false
                }
                None => true,
            }
        });
    }

    fn asked_for(&self) -> Vec<&'a RepoPath> {
        self.options.include_ignored.iter().chain(&self.options.force).collect()
    }

    /// Lists tracked files that are our own and stay out of snapshots.
    fn tracked_of_ours(&self) -> Result<Vec<RepoPath>, CaptureError> {
        let mut args = ["ls-files", "-z", "--"].map(OsStr::new).to_vec();
        args.extend(self.snapshots.exclude.iter().map(argument));
        Ok(split(&self.git.run(&args, b"")?))
    }

    /// Says whether a path goes into the private index as it is on disk (or is gone from it); what does not is
    /// noted as skipped.
    fn wanted(&mut self, path: &RepoPath) -> bool {
        if self.is_beyond_link(path) {
            return false;
        }
        match self.fault(path) {
            Some((reason, size)) => {
                self.included.remove(path);
                self.skipped.insert(Skipped { path: path.clone(), size, reason });
                false
            }
            None => true,
        }
    }

    /// Says whether a link stands where a folder above the path was: the path is gone then.
    fn is_beyond_link(&self, path: &RepoPath) -> bool {
        let bytes = path.as_bytes();
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(position, _)| position);
        let mut folders = ends.map(|end| on_disk(&self.snapshots.root, &bytes[..end]));
        folders.any(|folder| fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_symlink()))
    }

    fn fault(&self, path: &RepoPath) -> Option<(SkipReason, u64)> {
        let file = on_disk(&self.snapshots.root, path.as_bytes());
        let metadata = fs::symlink_metadata(&file).ok()?;
        let (kind, size) = (metadata.file_type(), metadata.len());
        if !path.is_safe() {
            return Some((SkipReason::InvalidName, size));
        }
        if kind.is_dir() {
            return self.is_unborn(&file).then_some((SkipReason::NestedUnborn, 0));
        }
        if is_special(kind) {
            return Some((SkipReason::Special, 0));
        }
        if kind.is_file() && size > self.options.max_file_size && !self.options.force.contains(path) {
            return Some((SkipReason::TooLarge, size));
        }
        (kind.is_file() && fs::File::open(&file).is_err()).then_some((SkipReason::Unreadable, size))
    }

    /// Says whether a folder is a repository of its own that has no commit yet.
    fn is_unborn(&self, folder: &std::path::Path) -> bool {
        let Ok(Some(git_dir)) = repository::git_dir_of(folder) else { return false };
        let Ok(nested) = repository::Repository::at(git_dir) else { return true };
        let git = Git::new(self.git.program().clone(), &nested.git_dir, folder);
        !matches!(Refs::new(git, nested, "main".to_owned()).head(), Ok((Some(_), _)))
    }

    /// Lists pipes, sockets and devices, which git passes over without a word.
    fn skip_special(&mut self) -> Result<(), CaptureError> {
        let args = ["ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory"];
        let ignored: BTreeSet<RepoPath> = split(&self.git.run(&args, b"")?).into_iter().collect();
        let mut found = Vec::new();
        let mut folders = vec![Vec::new()];
        while let Some(folder) = folders.pop() {
            self.deadline.check()?;
            let entries = fs::read_dir(on_disk(&self.snapshots.root, &folder)).into_iter().flatten();
            for entry in entries.flatten() {
                let path = join(&folder, entry.file_name().as_bytes());
                match entry.file_type() {
                    Ok(kind) if is_special(kind) => found.push(RepoPath::from_bytes(path)),
                    Ok(kind) if kind.is_dir() && self.is_searched(&entry, &path, &ignored) => {
                        folders.push(path)
                    }
                    _ => {}
                }
            }
        }
        let ignored = self.ignored_of(&found)?;
        let special = found.into_iter().filter(|path| !ignored.contains(path));
        self.skipped.extend(special.map(|path| Skipped { path, size: 0, reason: SkipReason::Special }));
        Ok(())
    }

    fn ignored_of(&self, paths: &[RepoPath]) -> Result<BTreeSet<RepoPath>, CaptureError> {
        if paths.is_empty() {
            return Ok(BTreeSet::new());
        }
        // This command takes no literal paths, but what begins with a dot has no other meaning.
        let list: Vec<u8> = paths.iter().flat_map(|path| [b"./", path.as_bytes(), b"\0"].concat()).collect();
        let git = self.git.with("GIT_LITERAL_PATHSPECS", "0");
        // its status says whether any is ignored
        let answer = git.try_run(&["check-ignore", "-z", "--stdin"], &list)?.stdout;
        let paths = answer.split(|byte| *byte == 0).filter_map(|path| path.strip_prefix(b"./"));
        Ok(paths.map(RepoPath::from_bytes).collect())
    }

    /// Says whether git looks for files in a folder.
    fn is_searched(&self, folder: &fs::DirEntry, path: &[u8], ignored: &BTreeSet<RepoPath>) -> bool {
        let repo_path = RepoPath::from_bytes(path);
        folder.file_name() != ".git"
            && !ignored.contains(&repo_path)
            && !self.snapshots.is_ours(&repo_path)
            && !matches!(repository::git_dir_of(&folder.path()), Ok(Some(_)))
    }

    fn skip_unreadable_folders(&mut self, stderr: &[u8]) {
        for line in String::from_utf8_lossy(stderr).lines() {
            let path = line
                .strip_prefix("warning: could not open directory '")
                .and_then(|rest| rest.split_once("/': "));
            if let Some((path, _)) = path {
                self.skipped.insert(Skipped {
                    path: RepoPath::from(path),
                    size: 0,
                    reason: SkipReason::Unreadable,
                });
            }
        }
    }

    /// Notes filters that were not run because only the repository names them.
    fn note_filters(&mut self, trust: &Trust) {
        if trust.refused.is_empty() || self.staged.is_empty() {
            return;
        }
        let list: Vec<u8> = self.staged.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
        let Ok(answer) = self.git.run(&["check-attr", "-z", "--stdin", "filter"], &list) else { return };
        let values: BTreeSet<_> = answer.split(|byte| *byte == 0).skip(2).step_by(3).collect();
        for driver in trust.refused.iter().filter(|driver| values.contains(driver.as_bytes())) {
            self.notes.insert(super::note_refused(driver));
        }
    }
}

/// Splits git's NUL-separated paths; the slash after a nested repository goes.
fn split(bytes: &[u8]) -> Vec<RepoPath> {
    let paths = bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    paths.map(|path| RepoPath::from_bytes(path.strip_suffix(b"/").unwrap_or(path))).collect()
}

fn is_special(kind: fs::FileType) -> bool {
    kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device()
}

fn argument(path: &RepoPath) -> &OsStr {
    // git takes no empty path for the whole of the work tree.
    if path.as_bytes().is_empty() { OsStr::new(".") } else { OsStr::from_bytes(path.as_bytes()) }
}
