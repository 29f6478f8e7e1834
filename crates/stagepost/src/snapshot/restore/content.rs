//! Content on its way into and out of a work tree, and what putting files in place needs to know of it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::error::RestoreError;
use super::task::End;
use crate::model::{ObjectId, RepoPath};
use crate::snapshot::Snapshots;
use crate::snapshot::compare::Side;
use crate::snapshot::convert::Converter;
use crate::snapshot::git::{Git, GitError};
use crate::snapshot::objects::ObjectKind;
use crate::snapshot::secret::is_secret;
use crate::snapshot::tree::EntryMode;

/// Content by its name, for any thread.
pub(super) trait Content: Sync {
    /// What goes wrong.
    type Error: Send;

    /// Returns the bytes to put at `path`: the blob, converted as git converts on checkout. The blob *must* be
    /// checked against its name.
    fn for_work_tree(&self, path: &RepoPath, mode: EntryMode, id: &ObjectId) -> Result<Vec<u8>, Self::Error>;

    /// Says whether `bytes` at `path` are what `id` names, as git converts on add at that end of the restore.
    fn is(&self, end: End, path: &RepoPath, bytes: &[u8], id: &ObjectId) -> Result<bool, Self::Error>;

    /// Tries the filters that these files cannot be written without, while nothing is touched yet.
    fn try_filters(&self, files: &[(&RepoPath, &Side)]) -> Result<(), Self::Error>;

    /// Returns the name of `bytes` as they are.
    fn name_of(&self, bytes: &[u8]) -> Result<ObjectId, Self::Error>;

    /// Says whether git takes the right to execute from the work tree; where it does not, nobody else can.
    fn minds_modes(&self) -> Result<bool, Self::Error>;

    /// Says whether links can stand in the work tree; where they cannot, a file with what the link says stands for each.
    fn has_links(&self) -> Result<bool, Self::Error>;

    /// Says whether git was told not to look at this path in the work tree: its snapshot may hold something else
    /// than what stands there.
    fn is_unwatched(&self, path: &RepoPath) -> Result<bool, Self::Error>;

    /// Says whether what is put at this path is a secret: it looks like one, and git did not track it.
    fn is_secret(&self, path: &RepoPath) -> Result<bool, Self::Error>;
}

/// Whose attributes say how files are converted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Attributes<'a> {
    /// The work tree's, which the restore does not change.
    WorkTree,
    /// The work tree's, which the restore changes as it goes.
    WorkTreeChanging,
    /// Those of the trees at either end, whatever stands in the work tree halfway.
    Trees { before: &'a ObjectId, after: &'a ObjectId },
}

/// Content as the repository converts it: directly where that is possible, else by git.
pub(super) struct Conversion<'a> {
    snapshots: &'a Snapshots,
    attributes: Attributes<'a>,
    /// The tree of the index at the end that is put back.
    index: Option<&'a ObjectId>,
    /// Made when a file needs one and all others are at work.
    converters: Mutex<Vec<Converter<'a>>>,
    /// Asked when the first link is to stand there.
    has_links: OnceLock<bool>,
}

impl<'a> Conversion<'a> {
    pub(super) fn new(
        snapshots: &'a Snapshots,
        attributes: Attributes<'a>,
        index: Option<&'a ObjectId>,
    ) -> Self {
        Self { snapshots, attributes, index, converters: Mutex::default(), has_links: OnceLock::new() }
    }

    /// Asks a converter that nobody else is asking at the moment.
    fn converter<T>(&self, ask: impl FnOnce(&mut Converter<'a>) -> T) -> T {
        let idle = || self.converters.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut converter = taken.unwrap_or_else(|| self.snapshots.converter());
        let answer = ask(&mut converter);
        idle().push(converter);
        answer
    }

    /// Whether the converter's rules, which it reads once, are right for the whole restore.
    fn is_steady(&self) -> bool {
        matches!(self.attributes, Attributes::WorkTree)
    }

    fn git(&self, end: End) -> Result<Git, GitError> {
        self.converter(|converter| Ok(self.with_attributes(converter.program()?, end)))
    }

    fn with_attributes(&self, git: &Git, end: End) -> Git {
        let git = git.clone();
        match (self.attributes, end) {
            (Attributes::WorkTree | Attributes::WorkTreeChanging, _) => git,
            (Attributes::Trees { before, .. }, End::Before) => git.with("GIT_ATTR_SOURCE", before.as_str()),
            (Attributes::Trees { after, .. }, End::After) => git.with("GIT_ATTR_SOURCE", after.as_str()),
        }
    }

    fn is_off(&self, setting: &str) -> Result<bool, GitError> {
        let answer = self.snapshots.rules_git.try_run(&["config", "--type=bool", "--get", setting], b"")?;
        Ok(answer.stdout.trim_ascii() == b"false")
    }

    /// Returns which of these paths cannot be written without a filter, and without which.
    fn required_filters(&self, paths: &[&RepoPath]) -> Result<BTreeMap<RepoPath, String>, RestoreError> {
        if self.is_steady() {
            let directly: Option<Vec<_>> = self
                .converter(|converter| paths.iter().map(|path| converter.required_directly(path)).collect());
            if let Some(filters) = directly {
                let found = paths.iter().zip(filters);
                return Ok(found.filter_map(|(path, filter)| Some(((*path).clone(), filter?))).collect());
            }
        }
        let required = self.converter(|converter| converter.required().map(<[_]>::to_vec))?;
        if required.is_empty() {
            return Ok(BTreeMap::new());
        }
        let list: Vec<u8> = paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
        let answer = self.git(End::After)?.run(&["check-attr", "-z", "--stdin", "filter"], &list)?;
        let fields: Vec<&[u8]> = answer.split(|byte| *byte == 0).collect();
        let named = fields.chunks_exact(3).map(|field| (field[0], String::from_utf8_lossy(field[2])));
        let needed = named.filter(|(_, filter)| required.iter().any(|name| name == filter));
        Ok(needed.map(|(path, filter)| (RepoPath::from_bytes(path), filter.into_owned())).collect())
    }

    fn converted_name_of(&self, end: End, path: &RepoPath, bytes: &[u8]) -> Result<ObjectId, RestoreError> {
        let path = [b"--path=", path.as_bytes()].concat();
        let args = [OsStr::new("hash-object"), OsStr::from_bytes(&path), OsStr::new("--stdin")];
        let answer = self.git(end)?.run(&args, bytes)?;
        let id = String::from_utf8_lossy(&answer).trim().parse();
        Ok(id.map_err(|_| GitError::Answer { command: "hash-object".to_owned() })?)
    }

    fn converted(&self, path: &RepoPath, id: &ObjectId) -> Result<Vec<u8>, RestoreError> {
        let path = [b"--path=", path.as_bytes()].concat();
        let args = ["cat-file", "--filters"].map(OsStr::new);
        let args = [args[0], args[1], OsStr::from_bytes(&path), OsStr::new(id.as_str())];
        let git = self.converter(|converter| {
            converter.writing_program().map(|git| self.with_attributes(git, End::After))
        })?;
        Ok(git.run(&args, b"")?)
    }
}

impl Content for Conversion<'_> {
    type Error = RestoreError;

    fn for_work_tree(
        &self,
        path: &RepoPath,
        mode: EntryMode,
        id: &ObjectId,
    ) -> Result<Vec<u8>, RestoreError> {
        let bytes = self.snapshots.objects.blob(id)?;
        if self.name_of(&bytes)? != *id {
            return Err(RestoreError::Damaged { path: path.clone(), id: id.clone() });
        }
        match mode {
            EntryMode::Link => Ok(bytes),
            _ if self.is_steady() => Ok(self.converter(|converter| converter.convert_read(path, id, bytes))?),
            _ => self.converted(path, id),
        }
    }

    fn is(&self, end: End, path: &RepoPath, bytes: &[u8], id: &ObjectId) -> Result<bool, RestoreError> {
        if self.is_steady() && self.converter(|converter| converter.is_surely(path, bytes, id)) {
            return Ok(true);
        }
        Ok(self.converted_name_of(end, path, bytes)? == *id)
    }

    fn try_filters(&self, files: &[(&RepoPath, &Side)]) -> Result<(), RestoreError> {
        let files: Vec<_> = files.iter().filter(|(_, side)| side.mode != EntryMode::Link).collect();
        if files.is_empty() {
            return Ok(());
        }
        let required = self.required_filters(&files.iter().map(|(path, _)| *path).collect::<Vec<_>>())?;
        for (path, side) in files {
            if let Some(filter) = required.get(path) {
                // What comes out may be large and many: it is made again when it is written.
                self.for_work_tree(path, side.mode, &side.id).map_err(|source| RestoreError::Filter {
                    path: (*path).clone(),
                    filter: filter.clone(),
                    source: Box::new(source),
                })?;
            }
        }
        Ok(())
    }

    fn name_of(&self, bytes: &[u8]) -> Result<ObjectId, RestoreError> {
        Ok(self.snapshots.name_of(ObjectKind::Blob, bytes)?)
    }

    fn minds_modes(&self) -> Result<bool, RestoreError> {
        Ok(!self.is_off("core.fileMode")?)
    }

    fn has_links(&self) -> Result<bool, RestoreError> {
        match self.has_links.get() {
            Some(known) => Ok(*known),
            None => {
                let found = !self.is_off("core.symlinks")?;
                Ok(*self.has_links.get_or_init(|| found))
            }
        }
    }

    fn is_unwatched(&self, path: &RepoPath) -> Result<bool, RestoreError> {
        if self.snapshots.user.is_none() {
            return Ok(false);
        }
        let args = ["ls-files", "-z", "-v", "--"].map(OsStr::new);
        let args = [args[0], args[1], args[2], args[3], OsStr::from_bytes(path.as_bytes())];
        let answer = self.snapshots.rules_git.run(&args, b"")?;
        // small letters: assumed unchanged; S: outside a sparse checkout
        Ok(answer.first().is_some_and(|tag| tag.is_ascii_lowercase() || *tag == b'S'))
    }

    fn is_secret(&self, path: &RepoPath) -> Result<bool, RestoreError> {
        if !is_secret(path.as_bytes()) {
            return Ok(false);
        }
        let is_tracked = self.index.map(|index| self.snapshots.holds(index, path)).transpose()?;
        Ok(is_tracked != Some(true))
    }
}
