//! One parallel walk over a work tree: one `lstat` per file, folders listed again only if their own times changed,
//! and only files that differ from the state are read.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use rustix::fs::{FileType, RawDir};
use rustix::io::Errno;

use super::beneath::Root;
use super::capture::{Capture, CaptureError, Deadline};
use super::hold::{Held, Holder};
use super::index::Index;
use super::queue::{Job, Queue};
use super::rules::{Rules, is_plain};
use super::secret::is_secret;
use super::sink::Sink;
use super::stamp::{Fingerprint, Nature, Stamp, look_at};
use super::state::{Entry, Id, Kind, NO_ID, Record, State, join};
use super::{guard, repository};
use crate::bounded;
use crate::model::{RepoPath, SkipReason, Skipped};

/// How much of the state a walk believes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Belief {
    /// All of it: the rules and the tracked paths are the same.
    Everything,
    /// What files contain, but not which files there are: other paths are tracked now.
    Content,
    /// Nothing: the rules differ, or the state is of no use.
    Nothing,
}

/// What all threads of a walk share.
pub(super) struct Walk<'a> {
    pub(super) root: &'a Path,
    pub(super) state: &'a State<'a>,
    pub(super) belief: Belief,
    pub(super) rules: &'a Rules,
    pub(super) index: &'a LazyIndex<'a>,
    /// Whether new folders must be looked up in the index.
    pub(super) ask_index: bool,
    pub(super) sink: &'a Sink,
    pub(super) odb: &'a Mutex<gix::odb::Handle>,
    pub(super) exclude: &'a [RepoPath],
    pub(super) options: &'a Capture,
    pub(super) deadline: Deadline,
    /// When the walk began, by the file system's clock.
    pub(super) moment: i64,
    /// Resolves the commit of a repository within the work tree.
    pub(super) nested_head: &'a (dyn Fn(&Path) -> Option<Id> + Sync),
    pub(super) untracked: AtomicUsize,
    /// Something was believed that is not so.
    pub(super) misled: AtomicBool,
    /// There is a file that only git converts as git does.
    pub(super) needs_git: AtomicBool,
}

/// The index, read when it is first needed.
pub(super) struct LazyIndex<'a> {
    path: Option<&'a Path>,
    index: OnceLock<Option<Index>>,
}

impl<'a> LazyIndex<'a> {
    pub(super) fn new(path: Option<&'a Path>) -> Self {
        Self { path, index: OnceLock::new() }
    }

    /// Returns the index, or `None` if there is none that can be read: nothing is tracked then.
    pub(super) fn get(&self) -> Option<&Index> {
        self.index.get_or_init(|| self.path.and_then(|path| Index::read(path).ok())).as_ref()
    }

    /// Returns the index if it was read already.
    pub(super) fn loaded(&self) -> Option<&Index> {
        self.index.get()?.as_ref()
    }
}

/// What became of a folder.
#[derive(Debug)]
pub(super) enum Outcome<'a> {
    /// Its entries, with what changed in them, and how it was; folders among them may change yet.
    Listed { stamp: Fingerprint, entries: Vec<Entry>, record: Option<Record<'a>> },
    /// It is not there any more.
    Gone,
    /// It is a repository of its own, with this commit if it has one.
    Repository(Option<Id>),
}

/// What a walk found: folders that differ from the state, and what was left out.
#[derive(Debug, Default)]
pub(super) struct Findings<'a> {
    pub(super) folders: HashMap<Vec<u8>, Outcome<'a>>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) notes: Vec<String>,
}

/// Why a walk ended early.
pub(super) enum Stopped {
    /// An ignore or attribute file changed, or the state is damaged: the walk must be done again, believing nothing.
    Misled,
    /// Only git can take some file in.
    NeedsGit,
    Failed(CaptureError),
}

impl From<CaptureError> for Stopped {
    fn from(error: CaptureError) -> Self {
        Self::Failed(error)
    }
}

impl<'a> Walk<'a> {
    /// Walks the whole work tree with as many threads as there are processors.
    pub(super) fn run(&self) -> Result<Findings<'a>, Stopped> {
        let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8);
        let record = if self.belief == Belief::Nothing { None } else { self.state.root() };
        let queue = Queue::new(Job { path: vec![], record, tracked_only: false });
        let results: Vec<_> = std::thread::scope(|scope| {
            let work = || Worker::new(self, &queue).run();
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = others
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(thread_died(self.root))));
            std::iter::once(own).chain(others).collect()
        });
        // What a thread failed of may be what it was led to believe.
        if self.misled.load(Ordering::Relaxed) {
            return Err(Stopped::Misled);
        }
        if self.needs_git.load(Ordering::Relaxed) {
            return Err(Stopped::NeedsGit);
        }
        let mut all = Findings::default();
        for result in results {
            let found = result?;
            all.folders.extend(found.folders);
            all.skipped.extend(found.skipped);
            all.notes.extend(found.notes);
        }
        Ok(all)
    }

    fn is_ours(&self, path: &[u8]) -> bool {
        let path = RepoPath::from_bytes(path);
        self.exclude.iter().any(|ours| path.is_within(ours))
    }

    /// Counts a file that git does not track.
    fn count_untracked(&self) -> Result<(), Stopped> {
        let found = self.untracked.fetch_add(1, Ordering::Relaxed) + 1;
        guard::untracked(found, self.options)
            .map_err(|source| CaptureError::Refused { root: self.root.into(), source }.into())
    }
}

/// Lists a folder, in the order of the names.
fn names_in(folder: &OwnedFd, room: &mut [MaybeUninit<u8>]) -> Result<Vec<(Vec<u8>, FileType)>, Errno> {
    let mut names = Vec::new();
    let mut listing = RawDir::new(folder, room);
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push((name.to_vec(), entry.file_type()));
        }
    }
    names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    Ok(names)
}

fn thread_died(root: &Path) -> Stopped {
    CaptureError::io("walk", root)(std::io::Error::other("a thread of the walk died")).into()
}

/// One thread of a walk.
struct Worker<'w, 'a> {
    walk: &'w Walk<'a>,
    holder: Holder<'w>,
    findings: Findings<'a>,
    queue: &'w Queue<'a>,
    listing: Vec<MaybeUninit<u8>>,
    /// Room for a path.
    path: Vec<u8>,
}

impl<'w, 'a> Worker<'w, 'a> {
    fn new(walk: &'w Walk<'a>, queue: &'w Queue<'a>) -> Self {
        let listing = vec![MaybeUninit::uninit(); 1 << 15];
        Self { walk, holder: Holder::new(walk), findings: Findings::default(), queue, listing, path: vec![] }
    }

    fn run(mut self) -> Result<Findings<'a>, Stopped> {
        let queue = self.queue;
        // One for each thread: threads that share a handle wait for each other in the kernel.
        let root = match Root::open(self.walk.root) {
            Ok(root) => root,
            Err(error) => {
                let failed = CaptureError::io("open", self.walk.root)(std::io::Error::other(error));
                return queue.stop(Err(failed.into()));
            }
        };
        let mut own = Vec::new();
        while let Some(job) = queue.next(&mut own) {
            if let Err(stopped) = self
                .walk
                .deadline
                .check()
                .map_err(Stopped::from)
                .and_then(|()| self.folder(&root, job, &mut own))
            {
                return queue.stop(Err(stopped));
            }
            if self.walk.misled.load(Ordering::Relaxed) || self.walk.needs_git.load(Ordering::Relaxed) {
                return queue.stop(Ok(self.finish()));
            }
            queue.done(&mut own);
        }
        Ok(self.finish())
    }

    fn finish(mut self) -> Findings<'a> {
        self.findings.skipped.append(&mut self.holder.skipped);
        self.findings.notes.append(&mut self.holder.notes);
        self.findings
    }

    /// Looks at one folder, and adds those below it to `own`.
    fn folder(&mut self, root: &Root, job: Job<'a>, own: &mut Vec<Job<'a>>) -> Result<(), Stopped> {
        let folder = match root.descend(&job.path) {
            Ok(folder) => folder,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return self.put(job, Outcome::Gone),
            Err(Errno::ACCESS | Errno::PERM | Errno::NAMETOOLONG) => {
                self.holder.skip(&job.path, 0, SkipReason::Unreadable);
                let (stamp, record) = (Fingerprint::NEVER, job.record);
                return self.put(job, Outcome::Listed { stamp, entries: vec![], record });
            }
            Err(error) => return Err(self.failed("open", &job.path, error)),
        };
        let stat = rustix::fs::fstat(&folder).map_err(|error| self.failed("look at", &job.path, error))?;
        let stamp = Stamp::of(&stat);
        match job.record {
            Some(record) if self.walk.belief == Belief::Everything && record.stamp == stamp.fingerprint() => {
                self.check(&folder, job, record, own)
            }
            _ => self.list(&folder, job, stamp.if_older_than(self.walk.moment), own),
        }
    }

    fn put(&mut self, job: Job<'a>, outcome: Outcome<'a>) -> Result<(), Stopped> {
        self.findings.folders.insert(job.path, outcome);
        Ok(())
    }

    fn failed(&self, attempted: &'static str, path: &[u8], error: Errno) -> Stopped {
        CaptureError::io(attempted, &self.walk.root.join(OsStr::from_bytes(path)))(error.into()).into()
    }

    /// Looks at the entries of a folder that has the same entries as before.
    fn check(
        &mut self,
        folder: &OwnedFd,
        job: Job<'a>,
        record: Record<'a>,
        own: &mut Vec<Job<'a>>,
    ) -> Result<(), Stopped> {
        let mut changes: Vec<(usize, Option<Entry>)> = Vec::new();
        for (position, entry) in record.entries().enumerate() {
            match entry.kind {
                Kind::Folder | Kind::TrackedFolder => {
                    let record = self.below(&entry);
                    // Another thread has nothing to do, and there is nothing yet to give it.
                    let shared = own.len() < 2 && self.queue.is_hungry();
                    if shared || !self.is_untouched(folder, entry.name, record) {
                        let path = join(&job.path, entry.name);
                        own.push(Job { path, record, tracked_only: entry.kind == Kind::TrackedFolder });
                    }
                }
                Kind::IgnoredFolder => {}
                _ => match self.recheck(folder, &job, &entry)? {
                    Recheck::Same => {}
                    Recheck::Now(now) => changes.push((position, now)),
                    Recheck::Folder => return self.list(folder, job, Fingerprint::NEVER, own),
                },
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        let mut entries: Vec<_> = record.entries().map(|entry| Some(entry.to_owned())).collect();
        for (position, change) in changes {
            entries[position] = change;
        }
        let (stamp, entries) = (record.stamp, entries.into_iter().flatten().collect());
        self.put(job, Outcome::Listed { stamp, entries, record: Some(record) })
    }

    /// Says that a small folder without folders in it is as it was, looked at through the one above it: opening each
    /// costs more than the longer names do. A no says nothing yet; the folder is then looked at by itself.
    fn is_untouched(&mut self, above: &OwnedFd, name: &[u8], record: Option<Record<'a>>) -> bool {
        let Some(record) = record.filter(|record| record.is_small()) else { return false };
        let stamp_of =
            |path: &[u8]| look_at(above, path).ok().flatten().map(|stat| Stamp::of(&stat).fingerprint());
        if stamp_of(name) != Some(record.stamp) {
            return false;
        }
        self.path.clear();
        self.path.extend_from_slice(name);
        self.path.push(b'/');
        record.entries().all(|entry| match entry.kind {
            Kind::File | Kind::Executable | Kind::Link => {
                self.path.truncate(name.len() + 1);
                self.path.extend_from_slice(entry.name);
                stamp_of(&self.path) == Some(entry.stamp)
            }
            Kind::IgnoredFile => !is_rule_file(entry.name),
            Kind::IgnoredFolder => true,
            _ => false,
        })
    }

    /// Returns a folder as it was. If a record that must be there is not, no other one is believed either.
    fn below(&self, entry: &Entry<&[u8]>) -> Option<Record<'a>> {
        let record = self.walk.state.below(entry);
        if record.is_none() && entry.place() != 0 {
            self.walk.misled.store(true, Ordering::Relaxed);
        }
        record
    }

    /// Looks at one name that was there before.
    fn recheck(&mut self, folder: &OwnedFd, job: &Job<'a>, entry: &Entry<&[u8]>) -> Result<Recheck, Stopped> {
        if matches!(entry.kind, Kind::Nested | Kind::Submodule) {
            return Ok(self.recheck_nested(job, entry));
        }
        if entry.kind == Kind::IgnoredFile && !is_rule_file(entry.name) {
            return Ok(Recheck::Same);
        }
        let stat = look_at(folder, entry.name)
            .map_err(|error| self.failed("look at", &join(&job.path, entry.name), error))?;
        let Some(stat) = stat else {
            self.note_rule_file(entry.name);
            return Ok(Recheck::Now(None));
        };
        let stamp = Stamp::of(&stat);
        if stamp.fingerprint() == entry.stamp && entry.kind != Kind::Unheld {
            return Ok(Recheck::Same);
        }
        let nature = Nature::of(&stat);
        if nature == Nature::Folder {
            return Ok(Recheck::Folder);
        }
        if entry.kind == Kind::Secret && nature != Nature::Link {
            // What git tracks is the same as before, so this one is still not tracked.
            self.holder.skip(&join(&job.path, entry.name), stamp.size, SkipReason::Secret);
            return Ok(Recheck::Same);
        }
        if entry.kind == Kind::IgnoredFile {
            self.note_rule_file(entry.name);
            return Ok(Recheck::Same);
        }
        let path = join(&job.path, entry.name);
        let now = self.hold(folder, &path, entry.name, stamp, nature)?;
        if now.as_ref().is_none_or(|now| now.id != entry.id) {
            self.note_rule_file(entry.name);
        }
        let same = now
            .as_ref()
            .is_some_and(|now| now.kind == entry.kind && now.id == entry.id && now.stamp == entry.stamp);
        Ok(if same { Recheck::Same } else { Recheck::Now(now) })
    }

    fn recheck_nested(&self, job: &Job<'a>, entry: &Entry<&[u8]>) -> Recheck {
        let place = self.walk.root.join(OsStr::from_bytes(&join(&job.path, entry.name)));
        match (self.walk.nested_head)(&place) {
            Some(id) if id == entry.id => Recheck::Same,
            Some(id) => Recheck::Now(Some(Entry { id, ..entry.to_owned() })),
            // A submodule that is not checked out is what the index says.
            None if entry.kind == Kind::Submodule && place.is_dir() => {
                let path = join(&job.path, entry.name);
                match self.walk.index.get().and_then(|index| index.submodule(&path)) {
                    Some(id) if id != entry.id => Recheck::Now(Some(Entry { id, ..entry.to_owned() })),
                    _ => Recheck::Same,
                }
            }
            None => Recheck::Folder,
        }
    }

    /// An ignore or attribute file that differs makes everything below it uncertain.
    fn note_rule_file(&self, name: &[u8]) {
        if is_rule_file(name) && self.walk.belief != Belief::Nothing {
            self.walk.misled.store(true, Ordering::Relaxed);
        }
    }

    /// Lists a folder and decides about each name.
    fn list(
        &mut self,
        folder: &OwnedFd,
        job: Job<'a>,
        stamp: Fingerprint,
        own: &mut Vec<Job<'a>>,
    ) -> Result<(), Stopped> {
        let names = self.names(folder, &job)?;
        if let Some((name, _)) = names.iter().find(|(name, kind)| self.is_odd_rules(&job, name, *kind)) {
            let place = self.walk.root.join(OsStr::from_bytes(&join(&job.path, name)));
            if repository::is_odd(&place) && !place.is_symlink() {
                return Err(CaptureError::io("read", &place)(bounded::no_file()).into());
            }
            // git does not follow a link there.
            self.walk.needs_git.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let is_repository = |name: &(Vec<u8>, FileType)| name.0 == b".git";
        let maybe = !job.path.is_empty() && names.iter().any(is_repository);
        if let Some(outcome) = maybe.then(|| self.nested(&job)).flatten() {
            return self.put(job, outcome);
        }
        // It may become a repository without a trace in its own times.
        let stamp = if maybe { Fingerprint::NEVER } else { stamp };
        let old: HashMap<&[u8], Entry<&[u8]>> =
            job.record.iter().flat_map(Record::entries).map(|entry| (entry.name, entry)).collect();
        let mut entries = Vec::with_capacity(names.len());
        for (name, file_type) in names {
            if name == b".git" {
                continue;
            }
            let path = join(&job.path, &name);
            if !self.walk.is_ours(&path) {
                entries.extend(self.decide(folder, &job, path, name, file_type, &old, own)?);
            }
        }
        let gone = old.values().filter(|entry| is_rule_file(entry.name));
        if gone.into_iter().any(|entry| !entries.iter().any(|now| now.name == entry.name)) {
            self.note_rule_file(b".gitignore");
        }
        let record = job.record;
        self.put(job, Outcome::Listed { stamp, entries, record })
    }

    /// Says whether a name is that of an ignore or attribute file that cannot simply be read, such as a pipe.
    fn is_odd_rules(&self, job: &Job<'a>, name: &[u8], file_type: FileType) -> bool {
        let place = || self.walk.root.join(OsStr::from_bytes(&join(&job.path, name)));
        is_rule_file(name)
            && !matches!(file_type, FileType::RegularFile | FileType::Directory)
            && !is_plain(&place())
    }

    fn names(&mut self, folder: &OwnedFd, job: &Job<'a>) -> Result<Vec<(Vec<u8>, FileType)>, Stopped> {
        match names_in(folder, &mut self.listing) {
            // It was removed since it was opened, with everything in it.
            Err(Errno::NOENT) if !job.path.is_empty() => Ok(Vec::new()),
            listed => listed.map_err(|error| self.failed("list", &job.path, error)),
        }
    }

    /// Says what a folder with a `.git` in it is, if it is a repository of its own.
    fn nested(&mut self, job: &Job<'a>) -> Option<Outcome<'a>> {
        let place = self.walk.root.join(OsStr::from_bytes(&job.path));
        repository::git_dir_of(&place).ok()??;
        if job.tracked_only || self.walk.index.get().is_some_and(|index| index.tracks_below(&job.path)) {
            return None;
        }
        let head = (self.walk.nested_head)(&place);
        if head.is_none() {
            self.holder.skip(&job.path, 0, SkipReason::NestedUnborn);
        }
        Some(Outcome::Repository(head))
    }

    /// Decides what a name becomes: an entry, a folder to walk, or nothing.
    #[expect(clippy::too_many_arguments, reason = "each is a fact about one name")]
    fn decide(
        &mut self,
        folder: &OwnedFd,
        job: &Job<'a>,
        path: Vec<u8>,
        name: Vec<u8>,
        file_type: FileType,
        old: &HashMap<&[u8], Entry<&[u8]>>,
        own: &mut Vec<Job<'a>>,
    ) -> Result<Option<Entry>, Stopped> {
        let known = old.get(name.as_slice());
        let (mut stat, mut is_folder) = (None, file_type == FileType::Directory);
        if file_type == FileType::Unknown {
            stat = look_at(folder, &name).map_err(|error| self.failed("look at", &path, error))?;
            is_folder = stat.as_ref().is_some_and(|stat| Nature::of(stat) == Nature::Folder);
        }
        let kind = match known {
            Some(entry) if self.walk.belief == Belief::Everything && fits(entry.kind, is_folder) => {
                entry.kind
            }
            _ => self.classify(job, &path, is_folder)?,
        };
        let entry = |kind, stamp, id| Entry { kind, name: name.clone(), stamp, id };
        match kind {
            Kind::Folder | Kind::TrackedFolder => {
                let was = known.filter(|known| known.kind == kind && self.walk.belief != Belief::Nothing);
                let now = entry(
                    kind,
                    was.map_or(Fingerprint::NEVER, |was| was.stamp),
                    was.map_or(NO_ID, |was| was.id),
                );
                let record = was.and_then(|was| self.below(was));
                own.push(Job { record, path, tracked_only: kind == Kind::TrackedFolder });
                return Ok(Some(now));
            }
            Kind::IgnoredFolder => return Ok(Some(entry(kind, Fingerprint::NEVER, NO_ID))),
            Kind::IgnoredFile if !is_rule_file(&name) => {
                return Ok(Some(entry(kind, Fingerprint::NEVER, NO_ID)));
            }
            Kind::Submodule => {
                let place = self.walk.root.join(OsStr::from_bytes(&path));
                let tracked = || self.walk.index.get().and_then(|index| index.submodule(&path));
                let id = (self.walk.nested_head)(&place).or_else(tracked);
                return Ok(id.map(|id| entry(kind, Fingerprint::NEVER, id)));
            }
            Kind::Nested => {
                own.push(Job { record: None, path, tracked_only: false });
                return Ok(Some(entry(Kind::Folder, Fingerprint::NEVER, NO_ID)));
            }
            _ => {}
        }
        if stat.is_none() {
            stat = look_at(folder, &name).map_err(|error| self.failed("look at", &path, error))?;
        }
        let Some(stat) = stat else { return Ok(None) };
        let (stamp, nature) = (Stamp::of(&stat), Nature::of(&stat));
        if kind == Kind::IgnoredFile {
            if known.is_none_or(|known| known.stamp != stamp.fingerprint()) {
                self.note_rule_file(&name);
            }
            return Ok(Some(entry(kind, stamp.if_older_than(self.walk.moment), NO_ID)));
        }
        let believed = known.filter(|known| {
            self.walk.belief != Belief::Nothing && known.stamp == stamp.fingerprint()
                && known.kind.is_held()
                // Whether it is tracked may have changed.
                && !is_secret(&path)
        });
        if let Some(known) = believed {
            return Ok(Some(known.to_owned()));
        }
        let now = self.hold(folder, &path, &name, stamp, nature)?;
        if known.map(|known| known.id) != now.as_ref().map(|now| now.id) {
            self.note_rule_file(&name);
        }
        Ok(now)
    }

    /// Ignore files are looked for by their whole names, which may be too long where the folder's is not. git uses shorter ones.
    fn without_rules(&self, path: &[u8], error: std::io::Error) -> Stopped {
        if Errno::from_io_error(&error) == Some(Errno::NAMETOOLONG) {
            return Stopped::NeedsGit;
        }
        let place = self.walk.root.join(OsStr::from_bytes(path));
        CaptureError::io("apply ignore rules to", &place)(error).into()
    }

    /// Decides about a name that was not there before.
    fn classify(&mut self, job: &Job<'a>, path: &[u8], is_folder: bool) -> Result<Kind, Stopped> {
        let index = || self.walk.index.get();
        if is_folder && self.walk.ask_index && index().is_some_and(|index| index.submodule(path).is_some()) {
            return Ok(Kind::Submodule);
        }
        let ignored = job.tracked_only
            || self.holder.is_ignored(path, is_folder).map_err(|error| self.without_rules(path, error))?;
        Ok(match (ignored, is_folder) {
            (false, true) => Kind::Folder,
            (true, true) if index().is_some_and(|index| index.tracks_below(path)) => Kind::TrackedFolder,
            (true, true) => Kind::IgnoredFolder,
            (false, false) => {
                if self.walk.index.loaded().is_none_or(|index| index.tracks(path).is_none()) {
                    self.walk.count_untracked()?;
                }
                Kind::File
            }
            (true, false) if index().is_some_and(|index| index.tracks(path).is_some()) => Kind::File,
            (true, false) => Kind::IgnoredFile,
        })
    }

    fn hold(
        &mut self,
        folder: &OwnedFd,
        path: &[u8],
        name: &[u8],
        stamp: Stamp,
        nature: Nature,
    ) -> Result<Option<Entry>, Stopped> {
        let held = self.holder.hold(folder.as_fd(), path, name, stamp, nature);
        Ok(match held.map_err(Stopped::Failed)? {
            Held::As { kind, stamp, id } => Some(Entry { kind, name: name.to_vec(), stamp, id }),
            Held::Not => Some(Entry::left_out(Kind::Unheld, name)),
            Held::Secret => Some(Entry::left_out(Kind::Secret, name)),
            Held::Gone => None,
        })
    }
}

/// What a second look at a name gave.
enum Recheck {
    Same,
    Now(Option<Entry>),
    /// It is a folder now: the listing is out of date.
    Folder,
}

/// Says whether what a name was can still be what it is.
fn fits(kind: Kind, is_folder: bool) -> bool {
    let was_folder = matches!(
        kind,
        Kind::Folder | Kind::TrackedFolder | Kind::IgnoredFolder | Kind::Nested | Kind::Submodule
    );
    was_folder == is_folder
}

fn is_rule_file(name: &[u8]) -> bool {
    name == b".gitignore" || name == b".gitattributes"
}
