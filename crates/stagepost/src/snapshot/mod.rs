//! Work trees kept in git: every file as it was, in a commit that is in nobody's way.
//!
//! A snapshot is a commit shaped like a stash: its tree is the work tree (untracked files included), its parents are
//! HEAD (if any) and a commit of the index. `refs/stagepost/<worktree>/<checkpoint id>` points at it, so git keeps
//! it, and `git show`, `git diff` and `git checkout <ref> -- <path>` work on it.
//!
//! This module knows no runs and no SQL, prints nothing, and reads neither the environment nor the wall clock. It
//! never changes the user's HEAD, index, branches, stash, configuration or hooks, and runs no program that only a
//! repository's configuration names. What it returns as captured is on disk.

mod adopt;
mod beneath;
mod blocks;
mod capture;
mod check;
mod commit;
mod compare;
mod conflicts;
mod convert;
pub mod diff;
mod durable;
mod exchange;
mod fast;
mod filter;
mod git;
mod growth;
mod guard;
mod hold;
mod index;
mod lines;
mod marks;
mod moving;
mod objects;
mod pack;
mod plan;
mod plumbing;
mod quarantine;
mod queue;
mod refs;
mod release;
mod rename;
mod repository;
pub mod restore;
mod rules;
mod secret;
mod sink;
mod stale;
mod stamp;
mod state;
mod tables;
#[cfg(test)]
mod testing;
mod tree;
mod walk;

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub use adopt::Adopt;
pub use capture::{Capture, CaptureError, Consent, Look, Secrets};
pub use check::Damage;
pub use commit::{Commit, Signature};
pub use compare::{Change, Side};
pub use convert::Converter;
pub use git::{GitError, GitProgram};
pub use guard::Refusal;
pub(crate) use moving::{Move, Told};
pub use objects::{ObjectError, ObjectKind, Objects};
pub use refs::RefError;
pub use release::ReleaseError;
pub use repository::{Operation, RepositoryState};
pub(crate) use stale::{AT_WORK, at_work};
pub(crate) use tables::Copy;
pub use tree::{EntryMode, TreeEntry};

use crate::bounded;
use crate::lock::Lock;
use crate::model::{CheckpointId, FileCounts, ObjectId, RepoPath, Snapshot};
use crate::private;
use capture::{Deadline, Found};
use git::{Git, Trust};
use refs::Refs;
use repository::{HashKind, RefKind, Repository};
use sink::Sink;

/// Where snapshots are taken and kept.
#[derive(Debug, Clone)]
pub struct Open {
    /// The root of the work tree.
    pub root: PathBuf,
    /// Our private folder, such as `<git common dir>/stagepost`.
    pub state_dir: PathBuf,
    /// Where objects and refs go.
    pub keep: Keep,
    /// git, and what it may know of the outside.
    pub git: GitProgram,
    /// Paths that are never in a snapshot: views and the store. `.stagepost` always is one.
    pub exclude: Vec<RepoPath>,
    /// How work trees are searched.
    pub way: Way,
}

/// Says where objects and refs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// In the user's repository; a folder without one, or one whose refs are no files, gets a private one.
    Repository,
    /// In a repository of our own in the state folder.
    Private,
}

/// Says how work trees are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The fastest way that gives git's result.
    Fastest,
    /// Through the git program: slower, same result.
    GitProgram,
}

/// The snapshots of one work tree.
pub struct Snapshots {
    root: PathBuf,
    exclude: Vec<RepoPath>,
    /// The repository that the work tree belongs to, if any.
    user: Option<Repository>,
    /// The repository that holds objects and refs: the user's, or our own.
    store: Repository,
    /// git as it sees the work tree.
    rules_git: Git,
    /// git as it sees the store alone.
    store_git: Git,
    objects: Objects,
    /// The store's objects, read directly where the formats are known and git need not be asked.
    odb: Option<Mutex<gix::odb::Handle>>,
    refs: Refs,
    user_refs: Refs,
    /// Where snapshots were kept while the setting was another one.
    elsewhere: Option<(Repository, Refs)>,
    /// Where this work tree's lock and state are.
    folder: PathBuf,
    /// The list of the checkpoints that a ref was made for since the last collection.
    made: PathBuf,
}

impl std::fmt::Debug for Snapshots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshots")
            .field("root", &self.root)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl Snapshots {
    /// Opens the snapshots of a work tree; only the state folder is written to.
    pub fn open(options: Open) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Root { root: options.root.clone(), source };
        let root = fs::canonicalize(&options.root).map_err(failed)?;
        let user = Repository::find(&root).map_err(failed)?;
        if let Some(elsewhere) = user.as_ref().and_then(|user| user.work_tree.as_ref())
            && fs::canonicalize(elsewhere).ok().as_ref() != Some(&root)
        {
            return Err(OpenError::Elsewhere { root, work_tree: elsewhere.clone() });
        }
        if user.as_ref().is_some_and(|user| user.bare && user.work_tree.is_none()) {
            return Err(OpenError::Bare { root });
        }
        let store = match (&user, options.keep) {
            // A lock on refs that are no files stops everybody, and a git that is killed leaves it.
            (Some(user), Keep::Repository) if user.refs == RefKind::Files => user.clone(),
            _ => private_store(&options.state_dir, user.as_ref().map(|user| user.hash))?,
        };
        let worktree = user.as_ref().map_or_else(|| "main".to_owned(), |user| user.worktree.clone());
        let folder = options.state_dir.join("snapshots").join(&worktree);
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|source| OpenError::State { path: folder.clone(), source })?;
        let rules = user.as_ref().unwrap_or(&store).clone();
        let rules_git = Git::new(options.git.clone(), &rules.git_dir, &root);
        let elsewhere = elsewhere(&options.state_dir, user.as_ref(), &store);
        let elsewhere = elsewhere.map(|repository| {
            let git = Git::new(options.git.clone(), &repository.git_dir, &root);
            (repository.clone(), Refs::new(git, repository, worktree.clone()))
        });
        let store_git = Git::new(options.git, &store.git_dir, &root);
        let mut exclude = options.exclude;
        exclude.push(RepoPath::from(".stagepost"));
        let ours = user.iter().flat_map(|user| [&user.git_dir, &user.common_dir]).chain([&options.state_dir]);
        exclude.extend(ours.filter_map(|folder| within(&root, folder)));
        let mut snapshots = Self {
            objects: Objects::new(store_git.clone()),
            odb: None,
            refs: Refs::new(store_git.clone(), store.clone(), worktree.clone()),
            user_refs: Refs::new(rules_git.clone(), rules, worktree),
            root,
            elsewhere,
            exclude,
            user,
            store,
            rules_git,
            store_git,
            folder,
            made: options.state_dir.join("snapshots").join("made"),
        };
        snapshots.connect(options.way);
        Ok(snapshots)
    }

    /// Decides how objects are read: directly, or through git.
    fn connect(&mut self, way: Way) {
        let folders = self.object_dirs();
        let git = self.store_git.with("GIT_ALTERNATE_OBJECT_DIRECTORIES", quarantine::join(&folders));
        let known = self.user.iter().chain([&self.store]).all(|repository| repository.needs_git.is_none());
        let open = |folder: &PathBuf| gix::odb::at(folder.clone(), gix::hash::Kind::Sha1);
        let odbs: io::Result<Vec<_>> = folders.iter().map(open).collect();
        self.objects = match odbs {
            Ok(odbs) if known && way == Way::Fastest => {
                self.odb = odbs.first().cloned().map(Mutex::new);
                Objects::direct(git, folders, odbs)
            }
            _ => Objects::new(git),
        };
    }

    /// Returns the root of the work tree, with symbolic links resolved.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the git folder of the work tree's repository; `None` in a folder without git.
    pub fn git_dir(&self) -> Option<&Path> {
        self.user.as_ref().map(|user| user.git_dir.as_path())
    }

    /// Returns the name of the work tree: `main`, or `worktrees/<name>` for a linked one.
    pub fn worktree(&self) -> &str {
        self.user.as_ref().map_or("main", |user| &user.worktree)
    }

    /// Returns the objects that snapshots are made of.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Returns the ref of a checkpoint's snapshot.
    pub fn ref_name(&self, id: &CheckpointId) -> String {
        self.refs.name_of(id)
    }

    /// Returns where the repository stands.
    pub fn state_of_repository(&self) -> Result<RepositoryState, RefError> {
        let Some(user) = &self.user else {
            return Ok(RepositoryState { head: None, branch: None, operation: None });
        };
        let (head, branch) = self.user_refs.head()?;
        Ok(RepositoryState { head, branch, operation: user.operation() })
    }

    /// Returns what `git status --porcelain` prints, with no program run but filters that the user trusts.
    pub fn git_status(&self) -> Result<String, CaptureError> {
        let mut settings = Trust::read(&self.rules_git)?.overrides;
        settings.push(("status.submoduleSummary".to_owned(), "false".to_owned()));
        let answer = self.rules_git.configured(settings).run(&["status", "--porcelain"], b"")?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Returns what a ref of the user's repository names; an annotated tag is not followed.
    pub fn user_ref(&self, name: &str) -> Result<Option<ObjectId>, RefError> {
        if self.user.is_some() { self.user_refs.read(name) } else { Ok(None) }
    }

    /// Captures the work tree as the snapshot of a checkpoint: on disk when it returns, and when it fails, nothing
    /// was added.
    pub fn capture(&self, id: &CheckpointId, options: &Capture) -> Result<Snapshot, CaptureError> {
        self.capture_as(id, true, options).map(|(snapshot, _)| snapshot)
    }

    /// Captures as [`capture`](Self::capture) does. Unless `named`, the checkpoint's ref is left to be made where
    /// something else keeps the objects reachable for now; says whether it was made.
    fn capture_as(
        &self,
        id: &CheckpointId,
        named: bool,
        options: &Capture,
    ) -> Result<(Snapshot, bool), CaptureError> {
        let deadline = Deadline::start(options.deadline);
        let _lock = self.begin(options)?;
        let state = self.state_of_repository()?;
        let latest = self.refs.read(&self.refs.latest_name())?;
        if let Some(odb) = &self.odb {
            let sink = Sink::to_pack(handle_of(odb));
            if let Some(quick) = self.find_fast(options, deadline, &state, latest.as_ref(), &sink)? {
                let id = named.then_some(id);
                return Ok((self.keep_quick(id, options, state, latest, quick, sink)?, named));
            }
        }
        let captured = self.capture_by_git(id, options, deadline, state, latest);
        captured.map(|snapshot| (snapshot, true)).map_err(|error| self.blame(deadline, error))
    }

    /// Captures through the git program, which is ended when the deadline passes.
    fn capture_by_git(
        &self,
        id: &CheckpointId,
        options: &Capture,
        deadline: Deadline,
        state: RepositoryState,
        latest: Option<ObjectId>,
    ) -> Result<Snapshot, CaptureError> {
        let plumbed = self.plumb(options, deadline)?;
        let objects = Objects::new(plumbed.git.clone());
        let (_, counts) = self.compare(&objects, &state, &plumbed.found)?;
        deadline.check()?;
        let commit = match self.same_as(latest.as_ref(), &state, &plumbed.found)? {
            Some(commit) => commit,
            None => self.commit_plumbed(&plumbed, &state, options)?,
        };
        // `latest` keeps reachable what the state of the fast way names; where there is one, it stays.
        let moves = !self.has_state() && latest.as_ref() != Some(&commit);
        self.point(Some(id), moves.then_some(latest), &commit)?;
        let plumbing::Plumbed { found, quarantine, .. } = plumbed;
        // Merging has a quarantine of its own, and making one removes all others.
        drop(quarantine);
        self.tidy();
        self.objects.refresh();
        Ok(self.describe(commit, state, found, counts))
    }

    /// Keeps what the fast way found: one pack, then the refs, then the state.
    fn keep_quick(
        &self,
        id: Option<&CheckpointId>,
        options: &Capture,
        state: RepositoryState,
        latest: Option<ObjectId>,
        quick: fast::Quick,
        sink: Sink,
    ) -> Result<Snapshot, CaptureError> {
        let (commit, counts) = match &quick.same {
            Some((commit, counts)) => (commit.clone(), *counts),
            None => {
                let commit = self.commit(&quick.found, &state, options, |bytes| {
                    Ok(fast::name(sink.add(ObjectKind::Commit, bytes)))
                })?;
                let packed = sink.finish(&self.store.objects_dir())?;
                let counts = self.count_quick(&quick, &state)?;
                if packed {
                    self.tidy();
                }
                (commit, counts)
            }
        };
        let moved = latest.as_ref() != Some(&commit);
        self.point(id, moved.then_some(latest), &commit)?;
        self.remember(&quick, &commit, state.head.as_ref(), counts);
        Ok(self.describe(commit, state, quick.found, counts))
    }

    /// Makes the checkpoint's ref, and moves `latest` on from where it was if it is given.
    fn point(
        &self,
        id: Option<&CheckpointId>,
        latest: Option<Option<ObjectId>>,
        commit: &ObjectId,
    ) -> Result<(), CaptureError> {
        let latest = latest.map(|old| (self.refs.latest_name(), old));
        let own = id.map(|id| (self.own_ref(id), None));
        let swaps: Vec<_> =
            latest.iter().chain(&own).map(|(name, old)| (name.as_str(), old.as_ref())).collect();
        Ok(self.refs.swap_all(&swaps, commit)?)
    }

    /// Finds what a capture would hold, and writes nothing that stays.
    pub fn look(&self, options: &Capture) -> Result<Look, CaptureError> {
        let deadline = Deadline::start(options.deadline);
        let _lock = self.begin(options)?;
        let state = self.state_of_repository()?;
        if let Some(odb) = &self.odb {
            let latest = self.refs.read(&self.refs.latest_name())?;
            let sink = Sink::to_memory(handle_of(odb));
            if let Some(quick) = self.find_fast(options, deadline, &state, latest.as_ref(), &sink)? {
                self.objects.set_pending(sink.into_pending());
                let (changes, files) = self.compare(&self.objects, &state, &quick.found)?;
                return Ok(self.show(state, quick.found, changes, files));
            }
        }
        let plumbed = self.plumb(options, deadline).map_err(|error| self.blame(deadline, error))?;
        let objects = Objects::new(plumbed.git.clone());
        let (changes, files) = self.compare(&objects, &state, &plumbed.found)?;
        let mut pending = sink::Pending::new();
        for id in plumbed.quarantine.written()? {
            pending.extend(objects.find(&id)?.map(|object| (id, object)));
        }
        self.objects.set_pending(pending);
        Ok(self.show(state, plumbed.found, changes, files))
    }

    fn show(&self, state: RepositoryState, found: Found, changes: Vec<Change>, files: FileCounts) -> Look {
        let Found { tree, index_tree, marks, skipped, included, notes, .. } = found;
        let RepositoryState { head, branch, .. } = state;
        Look { tree, index_tree, marks, head, branch, changes, files, skipped, included, notes }
    }

    /// Says why git was late, where that can be told: it waits for ever for rules that are a pipe.
    fn blame(&self, deadline: Deadline, error: CaptureError) -> CaptureError {
        let error = deadline.blame(error);
        let odd = matches!(error, CaptureError::Deadline { .. }).then(|| self.odd_rules()).flatten();
        odd.map_or(error, |odd| CaptureError::io("read", &odd)(crate::bounded::no_file()))
    }

    /// Finds an ignore or attribute file of the work tree that is a pipe.
    fn odd_rules(&self) -> Option<PathBuf> {
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            let odd = [".gitignore", ".gitattributes"].map(|name| folder.join(name));
            if let Some(odd) = odd.into_iter().find(|path| !path.is_symlink() && repository::is_odd(path)) {
                return Some(odd);
            }
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            folders.extend(below.filter(|entry| entry.file_name() != ".git").map(|entry| entry.path()));
        }
        None
    }

    /// Locks this work tree's state and checks what can be checked before looking at files.
    fn begin(&self, options: &Capture) -> Result<Lock, CaptureError> {
        guard::before(&self.root, &self.store.common_dir, self.rules_git.program(), options)
            .map_err(|source| self.refused(source))?;
        for path in &options.include_ignored {
            if let Some(why) = self.never_held(path) {
                return Err(CaptureError::NeverHeld { path: path.clone(), why });
            }
        }
        let lock = Lock::take(&self.folder.join("lock"), options.patience)?;
        self.reconnect();
        Ok(lock)
    }

    /// Opens the object store anew: a handle has room for as many packs as there were when it was opened, and some,
    /// and a process that captures for long makes more.
    fn reconnect(&self) {
        if let Some(odb) = &self.odb
            && let Ok(fresh) = gix::odb::at(self.store.objects_dir(), gix::hash::Kind::Sha1)
        {
            *odb.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        }
    }

    fn refused(&self, source: Refusal) -> CaptureError {
        CaptureError::Refused { root: self.root.clone(), source }
    }

    /// Says whether objects are kept apart from the user's repository.
    fn is_apart(&self) -> bool {
        self.user.as_ref().is_some_and(|user| user.common_dir != self.store.common_dir)
    }

    /// Says why no snapshot holds what is at a path, however it is asked for.
    fn never_held(&self, path: &RepoPath) -> Option<&'static str> {
        if path.parts().any(|part| part.eq_ignore_ascii_case(b".git")) {
            return Some("it belongs to git");
        }
        if self.is_ours(path) {
            return Some("it belongs to the store or is derived from it");
        }
        plan::ancestors(path.as_bytes()).find_map(|folder| {
            let folder = quarantine::on_disk(&self.root, folder);
            let is_link = fs::symlink_metadata(&folder).is_ok_and(|found| found.is_symlink());
            let is_repository = || fs::symlink_metadata(folder.join(".git")).is_ok();
            match is_link {
                true => Some("a link leads there"),
                false => is_repository().then_some("it is in a repository of its own"),
            }
        })
    }

    fn is_ours(&self, path: &RepoPath) -> bool {
        self.exclude.iter().any(|ours| path.is_within(ours))
    }

    fn compare(
        &self,
        objects: &Objects,
        state: &RepositoryState,
        found: &Found,
    ) -> Result<(Vec<Change>, FileCounts), CaptureError> {
        let head = state.head.as_ref().map(|head| objects.commit(head)).transpose()?;
        let mut changes = objects.diff_trees(head.as_ref().map(|head| &head.tree), Some(&found.tree))?;
        changes.retain(|change| !self.is_ours(&change.path));
        let counts = compare::count(&changes, found.total);
        Ok((changes, counts))
    }

    /// Returns the latest snapshot's commit if this one would be the same.
    fn same_as(
        &self,
        latest: Option<&ObjectId>,
        state: &RepositoryState,
        found: &Found,
    ) -> Result<Option<ObjectId>, CaptureError> {
        let Some(latest) = latest else { return Ok(None) };
        let Ok(commit) = self.objects.commit(latest) else { return Ok(None) };
        if commit.tree != found.tree {
            return Ok(None);
        }
        let head = if self.is_apart() { None } else { state.head.as_ref() };
        let mut parents = commit.parents.iter();
        if head.is_some() && parents.next() != head {
            return Ok(None);
        }
        let index = match parents.next() {
            Some(index) => Some(self.objects.commit(index)?),
            None => None,
        };
        let same = index.is_none_or(|index| {
            index.parents.first() == head && Some(&index.tree) == found.index_tree.as_ref()
        });
        let same = same
            && commit.parents.len() == usize::from(head.is_some()) + usize::from(found.index_tree.is_some());
        Ok(same.then(|| latest.clone()))
    }

    fn commit_plumbed(
        &self,
        plumbed: &plumbing::Plumbed,
        state: &RepositoryState,
        options: &Capture,
    ) -> Result<ObjectId, CaptureError> {
        let commit = self.commit(&plumbed.found, state, options, |bytes| {
            let answer = plumbed.git.run(&["hash-object", "-t", "commit", "-w", "--stdin"], bytes)?;
            let id = String::from_utf8_lossy(&answer).trim().parse();
            Ok(id.map_err(|_| GitError::Answer { command: "hash-object".to_owned() })?)
        })?;
        self.keep_plumbed(plumbed)?;
        Ok(commit)
    }

    /// Writes the commit of a snapshot and that of its index.
    fn commit(
        &self,
        found: &Found,
        state: &RepositoryState,
        options: &Capture,
        write: impl Fn(&[u8]) -> Result<ObjectId, CaptureError>,
    ) -> Result<ObjectId, CaptureError> {
        // A private store does not have the user's commits, and a parent must be there.
        let head = if self.is_apart() { None } else { state.head.as_ref() };
        let index = match &found.index_tree {
            Some(tree) => Some(write(&commit::compose(tree, head.as_slice(), &options.author, "index"))?),
            None => None,
        };
        let parents: Vec<_> = head.into_iter().chain(&index).collect();
        write(&commit::compose(&found.tree, &parents, &options.author, &options.description))
    }

    fn describe(
        &self,
        commit: ObjectId,
        state: RepositoryState,
        found: Found,
        files: FileCounts,
    ) -> Snapshot {
        let Found { tree, index_tree, marks, skipped, included, notes, .. } = found;
        let RepositoryState { head, branch, .. } = state;
        let worktree = self.worktree().to_owned();
        Snapshot { commit, tree, index_tree, marks, head, branch, worktree, files, skipped, included, notes }
    }
}

/// Returns the ref of a branch. HEAD can name a ref outside `refs/heads/`; such a one is kept with its whole name.
pub(crate) fn reference(branch: &str) -> String {
    if branch.starts_with("refs/") { branch.to_owned() } else { format!("refs/heads/{branch}") }
}

/// Where a folder is in a work tree, if it is in it and not in its `.git`.
fn within(root: &Path, folder: &Path) -> Option<RepoPath> {
    let folder = fs::canonicalize(folder).ok()?;
    let path = folder.strip_prefix(root).ok().filter(|path| !path.starts_with(".git"))?;
    let path = path.as_os_str().as_bytes();
    (!path.is_empty()).then(|| RepoPath::from_bytes(path))
}

/// The repository of snapshots that are kept apart from the user's.
const PRIVATE: &str = "snapshots.git";
/// What its HEAD says.
const NO_BRANCH: &str = "ref: refs/heads/none\n";

/// Makes our own repository in the state folder, or finds it there. It has no work tree and no alternates: a gc of
/// the user's repository could take away what those lend. Its objects are named as the user's are.
fn private_store(state_dir: &Path, users: Option<HashKind>) -> Result<Repository, OpenError> {
    let git_dir = state_dir.join(PRIVATE);
    let failed = |source| OpenError::State { path: git_dir.clone(), source };
    // Whoever was killed while it was made left less than this.
    let is_made = bounded::read_file(&git_dir.join("HEAD")).is_ok_and(|head| head.len() >= NO_BRANCH.len());
    if !is_made {
        for folder in ["objects/pack", "objects/info", "refs/heads", "info"] {
            private::folders(&git_dir.join(folder)).map_err(failed)?;
        }
        // git makes files there as private as the folder around them.
        let (version, extensions) = match users {
            Some(HashKind::Sha256) => (1, "[extensions]\n\tobjectformat = sha256\n"),
            _ => (0, ""),
        };
        let config = format!(
            "[core]\n\trepositoryformatversion = {version}\n\tbare = true\n\tsharedRepository = 0600\n[gc]\n\tauto = 0\n{extensions}"
        );
        // git takes it for a repository once it has a HEAD, so that comes last and as a whole.
        let (settings, head) = (git_dir.join("config"), git_dir.join("HEAD.new"));
        private::write(&settings, &config).map_err(failed)?;
        private::write(&head, NO_BRANCH).map_err(failed)?;
        let open = |path: &PathBuf| fs::File::open(path).map_err(failed);
        durable::sync_files(&[&open(&settings)?, &open(&head)?]).map_err(failed)?;
        fs::rename(&head, git_dir.join("HEAD")).map_err(failed)?;
        durable::sync_folder(&git_dir).map_err(failed)?;
    }
    let store = Repository::at(fs::canonicalize(&git_dir).map_err(failed)?).map_err(failed)?;
    if users.is_some_and(|hash| hash != store.hash) {
        return Err(failed(io::Error::other("its objects are named in another way than the repository's")));
    }
    Ok(store)
}

/// The repository that held snapshots while the setting was another one, if there is one: the user's for a private store,
/// and the private one for the user's.
fn elsewhere(state_dir: &Path, user: Option<&Repository>, store: &Repository) -> Option<Repository> {
    let user = user?;
    let private = || Repository::at(fs::canonicalize(state_dir.join(PRIVATE)).ok()?).ok();
    let other = if user.common_dir == store.common_dir { private()? } else { user.clone() };
    // Where objects have other names, none of them are snapshots of here.
    (other.hash == store.hash).then_some(other)
}

fn handle_of(odb: &Mutex<gix::odb::Handle>) -> gix::odb::Handle {
    odb.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// What a snapshot says of a filter that only the repository names.
fn note_refused(driver: &str) -> String {
    format!(
        "the filter `{}` is named by the repository only and was not run: raw bytes kept",
        driver.escape_debug()
    )
}

/// The error of opening snapshots.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The work tree or its repository could not be read.
    #[error("failed to open the work tree {}", root.display())]
    Root {
        /// The work tree.
        root: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The repository's configuration says that its files are somewhere else.
    #[error("refused to work on {}: `core.worktree` says that its files are in {}", root.display(), work_tree.display())]
    Elsewhere {
        /// The folder that holds the repository.
        root: PathBuf,
        /// What the configuration names.
        work_tree: PathBuf,
    },
    /// The repository has no work tree.
    #[error("refused to work on {}: its repository is bare, so it has no files of its own", root.display())]
    Bare {
        /// The folder that holds the repository.
        root: PathBuf,
    },
    /// Our own folder could not be used.
    #[error("failed to use {}", path.display())]
    State {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
