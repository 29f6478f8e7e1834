//! Filter programs that the user's or the system's configuration names.
//!
//! They run as git runs them, through the shell and at the root of the work tree, but with no more of the environment
//! than git gets from us, within the capture's deadline, and with nothing left running.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use gix::bstr::ByteSlice;

use super::capture::Deadline;
use super::git::GitProgram;
use super::repository::Repository;
use crate::process::{self, Cancel, Limits, Program};

/// How long a filter has to end once it is asked to; then it is killed.
const GRACE: Duration = Duration::from_secs(1);

/// One filter, by the lines of shell that are configured for it.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    pub(super) name: String,
    pub(super) clean: Option<Vec<u8>>,
    pub(super) smudge: Option<Vec<u8>>,
    /// A program that converts many files; only git speaks with those.
    pub(super) process: Option<Vec<u8>>,
    /// Whether git writes no file without it.
    pub(super) required: bool,
}

/// The filters of one work tree.
#[derive(Debug, Clone)]
pub(super) struct Filters {
    all: Vec<Filter>,
    root: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl Filters {
    pub(super) fn new(all: Vec<Filter>, root: PathBuf, repository: &Repository, git: &GitProgram) -> Self {
        let own = [("GIT_DIR", repository.git_dir.as_os_str()), ("GIT_WORK_TREE", root.as_os_str())];
        let own = own.map(|(name, value)| (OsString::from(name), value.to_owned()));
        let environment = git.environment.clone().into_iter().chain(own).collect();
        Self { all, root, environment }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Says whether only git can run one of them: it can do without a program that converts single files.
    pub(super) fn needs_git(&self) -> bool {
        let alone = |filter: &Filter| filter.clean.is_none() || filter.smudge.is_none();
        self.all.iter().any(|filter| filter.process.is_some() && alone(filter))
    }

    /// Converts a file's bytes to what git stores.
    pub(super) fn clean(
        &self,
        name: &str,
        path: &[u8],
        bytes: Vec<u8>,
        deadline: Deadline,
    ) -> io::Result<Vec<u8>> {
        match self.named(name).and_then(|filter| filter.clean.as_deref()) {
            Some(line) => self.run(line, path, bytes, deadline),
            None => Ok(bytes),
        }
    }

    /// Converts what git stores to a file's bytes.
    pub(super) fn smudge(&self, name: &str, path: &[u8], bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        match self.named(name).and_then(|filter| filter.smudge.as_deref()) {
            Some(line) => self.run(line, path, bytes, Deadline::NONE),
            None if self.is_required(name) => Err(io::Error::other("the filter cannot write files")),
            None => Ok(bytes),
        }
    }

    /// Says whether git writes no file without this filter.
    pub(super) fn is_required(&self, name: &str) -> bool {
        self.named(name).is_some_and(|filter| filter.required)
    }

    fn named(&self, name: &str) -> Option<&Filter> {
        self.all.iter().find(|filter| filter.name == name)
    }

    fn run(&self, line: &[u8], path: &[u8], input: Vec<u8>, deadline: Deadline) -> io::Result<Vec<u8>> {
        let line = OsString::from_vec(line.replace(b"%f", quoted(path)));
        let program = Program {
            folder: Some(self.root.clone()),
            alone: true,
            set: self.environment.clone(),
            input,
            ..Program::new([OsStr::new("/bin/sh"), OsStr::new("-c"), &line])
        };
        let limits = Limits { timeout: deadline.left(), grace: GRACE, keep: usize::MAX, most: None };
        let done = process::run(&program, &limits, &Cancel::new()?, &mut |_| {}, &mut |_, _| {});
        let done = done.map_err(io::Error::other)?;
        match done.ended.is_success() {
            true => Ok(done.out.bytes()),
            false => Err(io::Error::other(format!("the filter ended with {}", done.ended))),
        }
    }
}

/// Makes a path one word of the shell.
fn quoted(path: &[u8]) -> Vec<u8> {
    [b"'", path.replace(b"'", br"'\''").as_slice(), b"'"].concat()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_path_is_one_word_whatever_is_in_it() {
        let program = Program::new([
            OsStr::new("/bin/sh"),
            OsStr::new("-c"),
            OsStr::from_bytes(&[b"printf %s ".as_slice(), &quoted(b"a 'b' $(c) \\d")].concat()),
        ]);
        let done =
            process::run(&program, &Limits::default(), &Cancel::new().unwrap(), &mut |_| {}, &mut |_, _| {});
        assert_eq!(done.unwrap().out.bytes(), b"a 'b' $(c) \\d");
    }
}
