//! Where a work tree's repository is and what kind it is, found without running anything.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::bounded;
use crate::model::ObjectId;

/// How names of objects are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HashKind {
    Sha1,
    Sha256,
}

impl HashKind {
    /// Returns how many bytes a name has.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

/// How refs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefKind {
    Files,
    Reftable,
}

/// A git repository on disk.
#[derive(Debug, Clone)]
pub(super) struct Repository {
    pub(super) git_dir: PathBuf,
    pub(super) common_dir: PathBuf,
    /// `main`, or `worktrees/<name>` for a linked work tree.
    pub(super) worktree: String,
    pub(super) hash: HashKind,
    pub(super) refs: RefKind,
    /// Something only git itself can deal with: an extension, a promisor, alternates of unknown kind.
    pub(super) needs_git: Option<String>,
    /// Where its configuration says that its work tree is.
    pub(super) work_tree: Option<PathBuf>,
    /// Its configuration says that it has none, and this is not a linked one.
    pub(super) bare: bool,
    /// It is a partial clone: some of its objects are with a remote.
    pub(super) partial: bool,
}

impl Repository {
    /// Finds the repository whose work tree has its root at `root`, or `None` if `root` is no such root.
    pub(super) fn find(root: &Path) -> io::Result<Option<Self>> {
        match git_dir_of(root)? {
            Some(git_dir) => Self::at(git_dir).map(Some),
            None => Ok(None),
        }
    }

    /// Reads what kind of repository is at `git_dir`.
    pub(super) fn at(git_dir: PathBuf) -> io::Result<Self> {
        refuse_odd(&git_dir, &OWN)?;
        let common_dir = match read_line(&git_dir.join("commondir"))? {
            Some(path) => fs::canonicalize(git_dir.join(path_of(&path)))?,
            None => git_dir.clone(),
        };
        let worktree = match git_dir.file_name() {
            Some(name) if git_dir != common_dir => format!("worktrees/{}", ref_safe(name)),
            _ => "main".to_owned(),
        };
        refuse_odd(&common_dir, &SHARED)?;
        let config = bounded::read_file(&common_dir.join("config")).or_else(absent_is_empty)?;
        let mut repository = Self {
            git_dir,
            common_dir,
            worktree,
            hash: HashKind::Sha1,
            refs: RefKind::Files,
            needs_git: None,
            work_tree: None,
            bare: false,
            partial: false,
        };
        repository.read_config(&config)?;
        Ok(repository)
    }

    fn read_config(&mut self, config: &[u8]) -> io::Result<()> {
        let Ok(file) = gix::config::File::try_from(String::from_utf8_lossy(config).as_ref()) else {
            self.needs_git = Some("a configuration only git can read".to_owned());
            return Ok(());
        };
        self.read_extensions(&file);
        // For a linked work tree git goes by its `.git` file, and by settings of its own alone.
        if self.git_dir == self.common_dir {
            self.read_work_tree(&file);
        }
        if file.boolean("extensions.worktreeConfig").ok().flatten() == Some(true) {
            let own = bounded::read_file(&self.git_dir.join("config.worktree")).or_else(absent_is_empty)?;
            if let Ok(own) = gix::config::File::try_from(String::from_utf8_lossy(&own).as_ref()) {
                self.read_work_tree(&own);
            }
        }
        Ok(())
    }

    fn read_work_tree(&mut self, config: &gix::config::File) {
        if let Some(path) = config.string("core.worktree") {
            self.work_tree = Some(self.git_dir.join(path_of(&path)));
        }
        self.bare = config.boolean("core.bare").ok().flatten().unwrap_or(self.bare);
    }

    fn read_extensions(&mut self, file: &gix::config::File) {
        for section in file.sections_by_name("extensions").into_iter().flatten() {
            for name in section.value_names() {
                let name = name.to_string().to_ascii_lowercase();
                let value = section.value(name.as_str()).map_or_else(String::new, |value| value.to_string());
                match (name.as_str(), value.to_ascii_lowercase().as_str()) {
                    ("objectformat", "sha256") => self.hash = HashKind::Sha256,
                    ("objectformat", "sha1") | ("refstorage", "files") => {}
                    ("refstorage", "reftable") => self.refs = RefKind::Reftable,
                    ("worktreeconfig" | "noop" | "noop-v1" | "preciousobjects" | "relativeworktrees", _) => {}
                    (other, _) => {
                        self.partial |= other == "partialclone";
                        self.needs_git = Some(format!("the extension `{other}`"));
                    }
                }
            }
        }
        let remotes = file.sections_by_name("remote").into_iter().flatten();
        let named = remotes.filter_map(|section| section.header().subsection_name().map(ToString::to_string));
        let is_promisor =
            |name: String| file.boolean(format!("remote.{name}.promisor").as_str()).ok().flatten();
        self.partial |= named.filter_map(is_promisor).any(|promisor| promisor);
        if self.hash == HashKind::Sha256 || self.refs == RefKind::Reftable {
            self.needs_git = Some("its kind of object names or refs".to_owned());
        }
    }

    pub(super) fn objects_dir(&self) -> PathBuf {
        self.common_dir.join("objects")
    }

    /// Names what the repository is in the middle of, if anything.
    pub(super) fn operation(&self) -> Option<Operation> {
        let markers = [
            ("rebase-merge", Operation::Rebase),
            ("rebase-apply/applying", Operation::ApplyMailbox),
            ("rebase-apply", Operation::Rebase),
            ("MERGE_HEAD", Operation::Merge),
            ("CHERRY_PICK_HEAD", Operation::CherryPick),
            ("REVERT_HEAD", Operation::Revert),
            ("BISECT_LOG", Operation::Bisect),
        ];
        markers.into_iter().find(|(name, _)| self.git_dir.join(name).exists()).map(|(_, operation)| operation)
    }
}

/// What a repository can be in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// `git merge` with conflicts, or before its commit.
    Merge,
    /// `git rebase`.
    Rebase,
    /// `git am`.
    ApplyMailbox,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
    /// `git bisect`.
    Bisect,
}

/// Where a repository stands: HEAD, its branch, and what it is in the middle of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepositoryState {
    /// The commit that HEAD names; absent before the first one and in a folder without git.
    pub head: Option<ObjectId>,
    /// The branch that HEAD names, without `refs/heads/`; absent when detached.
    pub branch: Option<String>,
    /// What it is in the middle of.
    pub operation: Option<Operation>,
}

/// Returns the git folder of the work tree at `root`, following a `.git` file as git does.
pub(super) fn git_dir_of(root: &Path) -> io::Result<Option<PathBuf>> {
    let dot_git = root.join(".git");
    let kind = match fs::metadata(&dot_git) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    if kind.is_dir() {
        let looks_right = dot_git.join("HEAD").symlink_metadata().is_ok() && dot_git.join("objects").is_dir();
        return if looks_right { fs::canonicalize(dot_git).map(Some) } else { Ok(None) };
    }
    if !kind.is_file() {
        return Ok(None);
    }
    let target = read_line(&dot_git)?.and_then(|line| line.strip_prefix(b"gitdir: ").map(<[u8]>::to_vec));
    match target.map(|path| fs::canonicalize(root.join(path_of(&path)))) {
        Some(Ok(git_dir)) if git_dir.join("HEAD").symlink_metadata().is_ok() => Ok(Some(git_dir)),
        _ => Ok(None),
    }
}

/// Files of a work tree that git, or what reads git's files for us, would wait for if they were pipes.
const OWN: [&str; 4] = ["HEAD", "index", "commondir", "config.worktree"];
/// The same of a repository.
const SHARED: [&str; 6] =
    ["config", "packed-refs", "shallow", "info/exclude", "info/attributes", "objects/info/alternates"];

/// Refuses a pipe or a device where one of these files belongs.
fn refuse_odd(folder: &Path, names: &[&str]) -> io::Result<()> {
    let Some(odd) = names.iter().map(|name| folder.join(name)).find(|path| is_odd(path)) else {
        return Ok(());
    };
    let said = format!("{} is a pipe or a device, not a regular file", odd.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, said))
}

/// Says whether a pipe or a device is at a path. The one that is always empty is as good as a file.
pub(super) fn is_odd(path: &Path) -> bool {
    let is_empty = || fs::canonicalize(path).is_ok_and(|path| path == Path::new("/dev/null"));
    fs::metadata(path).is_ok_and(|found| {
        let kind = found.file_type();
        kind.is_fifo() || (kind.is_char_device() || kind.is_block_device()) && !is_empty()
    })
}

/// Reads the first line of a small file; `None` if there is no such file.
pub(super) fn read_line(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match bounded::read_file(path) {
        Ok(bytes) => {
            Ok(Some(bytes.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or(&[]).to_vec()))
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn absent_is_empty(error: io::Error) -> io::Result<Vec<u8>> {
    if error.kind() == io::ErrorKind::NotFound { Ok(vec![]) } else { Err(error) }
}

fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Makes a folder's name fit for a ref: git made it so already, but a folder can be renamed by hand.
fn ref_safe(name: &OsStr) -> String {
    let safe = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '+') { c } else { '-' };
    name.to_string_lossy().chars().map(safe).collect()
}
