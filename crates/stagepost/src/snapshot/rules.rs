//! The rules of a work tree: which files are ignored, and what becomes of content on its way to git and back.
//!
//! They come from the same files as git's: system, user and repository configuration, ignore and attribute files.
//! Filter programs come from the user's and the system's configuration only.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gix::bstr::{BStr, ByteSlice};
use gix::config::{File, Source, file};
use gix::filter::plumbing::{self as filter, eol, pipeline};
use gix::worktree::{Stack, stack};

use super::capture::Deadline;
use super::filter::{Filter, Filters};
use super::git::GitProgram;
use super::repository::{Repository, is_odd};
use crate::bounded;

/// Names what rules are taken to mean. It changes when the same rules would give other objects than before: what was
/// remembered by the old meaning is then not believed.
const MEANING: &[u8] = b"4: places are secrets too";

/// The rules of one work tree, to be bound to a thread as a [`Judge`].
#[derive(Debug)]
pub(super) struct Rules {
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    excludes_file: Option<PathBuf>,
    attribute_files: Vec<PathBuf>,
    filters: Filters,
    /// Filters that only the repository names.
    pub(super) refused: Vec<String>,
    eol: eol::Configuration,
    /// Names everything these rules were made of.
    pub(super) key: [u8; 32],
    /// Why only git itself can apply them, if so.
    pub(super) needs_git: Option<&'static str>,
    /// A pipe or a device that they would have to be read from, which nobody can.
    pub(super) odd: Option<PathBuf>,
}

impl Rules {
    pub(super) fn load(
        root: &Path,
        repository: &Repository,
        branch: Option<&str>,
        git: &GitProgram,
    ) -> Result<Self, gix::Error> {
        let places = Places::new(git);
        if places.files.iter().any(|(file, _)| is_odd(file)) {
            return Err(gix::Error::from_error(bounded::no_file()));
        }
        let config = places.config(repository, branch)?;
        let path = |key: &str| -> Option<PathBuf> {
            let context = gix::config::path::interpolate::Context {
                home_dir: places.home.as_deref(),
                ..Default::default()
            };
            config.path(key)?.interpolate(context).ok().map(|path| root.join(path))
        };
        let user_folder = places.user_folder.as_deref();
        let excludes_file =
            path("core.excludesFile").or_else(|| user_folder.map(|folder| folder.join("ignore")));
        let mut attribute_files = places.system_attributes.clone();
        let user_attributes =
            path("core.attributesFile").or_else(|| user_folder.map(|f| f.join("attributes")));
        attribute_files.extend(user_attributes);
        let (filters, refused) = filters_of(&config);
        let filters = Filters::new(filters, root.into(), repository, git);
        let by_process = filters.needs_git().then_some("a filter that is only a process");
        // They beat the attribute files of every folder, where the rules read here would have them beat the root's alone.
        let info = repository.common_dir.join("info/attributes");
        let by_info = std::fs::metadata(info).is_ok_and(|file| file.len() > 0).then_some("info/attributes");
        let mut rules = Self {
            root: root.into(),
            git_dir: repository.git_dir.clone(),
            common_dir: repository.common_dir.clone(),
            excludes_file,
            attribute_files,
            filters,
            refused,
            eol: eol_of(&config),
            key: [0; 32],
            needs_git: unusual(&config).or(by_process).or(by_info),
            odd: None,
        };
        if !rules.files().iter().all(|file| is_plain(file)) {
            rules.needs_git = Some("rules that are no file");
            rules.odd = rules.files().into_iter().find(|file| is_odd(file));
            return Ok(rules);
        }
        rules.key = rules.key_of(&config.to_bstring());
        Ok(rules)
    }

    /// Every file outside the work tree that has a say, whether it is there or not.
    fn files(&self) -> Vec<PathBuf> {
        let info = self.common_dir.join("info");
        let own = [info.join("exclude"), info.join("attributes")];
        own.iter().chain(&self.excludes_file).chain(&self.attribute_files).cloned().collect()
    }

    /// Names the configuration and the content of every file outside the work tree that has a say.
    fn key_of(&self, config: &[u8]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(MEANING).update(config);
        for path in self.files() {
            let content = std::fs::read(path).unwrap_or_default();
            hasher.update(&(content.len() as u64).to_le_bytes()).update(&content);
        }
        *hasher.finalize().as_bytes()
    }

    /// Binds the rules to one thread. The index is asked for attribute files that the work tree lacks.
    pub(super) fn judge(&self, index: Option<&gix::index::State>) -> io::Result<Judge> {
        let mut buffer = Vec::new();
        let parse = gix::ignore::search::Ignore { support_precious: false };
        let ignored = gix::ignore::Search::from_git_dir(
            &self.common_dir,
            self.excludes_file.clone(),
            &mut buffer,
            parse,
        )?;
        let ignore = stack::state::Ignore::new(
            gix::ignore::Search::default(),
            ignored,
            None,
            stack::state::ignore::Source::WorktreeThenIdMappingIfNotSkipped,
            parse,
        );
        let mut collection = gix::attrs::search::MetadataCollection::default();
        let globals =
            gix::attrs::Search::new_globals(self.attribute_files.iter(), &mut buffer, &mut collection)?;
        let attributes = stack::state::Attributes::new(
            globals,
            Some(self.common_dir.join("info/attributes")),
            stack::state::attributes::Source::WorktreeThenIdMapping,
            collection,
        );
        let state = stack::State::AttributesAndIgnoreStack { attributes, ignore };
        let case = gix::glob::pattern::Case::Sensitive;
        let mappings = match index {
            Some(index) => state.id_mappings_from_index(index, index.path_backing(), case),
            None => vec![],
        };
        let stack = Stack::new(&self.root, state, case, buffer, mappings);
        Ok(Judge { stack, pipeline: self.pipeline(), filters: self.filters.clone() })
    }

    fn pipeline(&self) -> filter::Pipeline {
        let context = gix::command::Context {
            git_dir: Some(self.git_dir.clone()),
            worktree_dir: Some(self.root.clone()),
            stderr: Some(false),
            ..Default::default()
        };
        let options = pipeline::Options {
            // They run outside of it, for what it starts has all of our environment and all the time.
            drivers: vec![],
            eol_config: self.eol,
            crlf_roundtrip_check: pipeline::CrlfRoundTripCheck::Skip,
            ..Default::default()
        };
        filter::Pipeline::new(context, gix::hash::Kind::Sha1, options)
    }
}

/// The attribute that names how a file in the work tree is encoded.
const ENCODING: &str = "working-tree-encoding";

/// The rules as one thread applies them.
pub(super) struct Judge {
    stack: Stack,
    pipeline: filter::Pipeline,
    filters: Filters,
}

/// Reads a blob that the index names: some conversions depend on it.
pub(super) type IndexBlob<'a> = dyn FnMut(&mut Vec<u8>) -> Option<()> + 'a;

impl Judge {
    /// Says whether ignore rules leave a path out.
    pub(super) fn is_ignored(
        &mut self,
        path: &[u8],
        is_folder: bool,
        objects: &dyn gix::objs::Find,
    ) -> io::Result<bool> {
        use gix::index::entry::Mode;
        let mode = if is_folder { Mode::DIR } else { Mode::FILE };
        Ok(self.stack.at_entry(path.as_bstr(), Some(mode), objects)?.is_excluded())
    }

    /// Says whether only git itself converts a path to what git stores: the encodings known here differ from its own in some
    /// characters.
    pub(super) fn needs_git_to_clean(&mut self, path: &[u8], objects: &dyn gix::objs::Find) -> bool {
        self.has_any(path, [ENCODING], objects)
    }

    /// Converts a file's bytes to what git stores.
    pub(super) fn clean(
        &mut self,
        path: &[u8],
        bytes: Vec<u8>,
        index_blob: &mut IndexBlob<'_>,
        objects: &dyn gix::objs::Find,
        deadline: Deadline,
    ) -> Result<Vec<u8>, gix::Error> {
        let bytes = match self.trusted_filter_of(path, objects) {
            Some(name) => self.filters.clean(&name, path, bytes, deadline).map_err(gix::Error::from_error)?,
            None => bytes,
        };
        let place = self.stack.at_entry(path.as_bstr(), None, objects).map_err(gix::Error::from_error)?;
        let outcome = self.pipeline.convert_to_git(
            bytes.as_slice(),
            Path::new(OsStr::from_bytes(path)),
            &mut |_, attributes| _ = place.matching_attributes(attributes),
            &mut |buffer| Ok(index_blob(buffer)),
        )?;
        let mut converted = Vec::new();
        match outcome {
            filter::pipeline::convert::ToGitOutcome::Unchanged(_) => return Ok(bytes),
            filter::pipeline::convert::ToGitOutcome::Buffer(buffer) => converted.extend_from_slice(buffer),
            filter::pipeline::convert::ToGitOutcome::Process(mut reader) => {
                reader.read_to_end(&mut converted).map_err(gix::Error::from_error)?;
            }
        }
        Ok(converted)
    }

    /// Converts a blob to what stands in the work tree.
    pub(super) fn smudge(
        &mut self,
        path: &[u8],
        bytes: Vec<u8>,
        objects: &dyn gix::objs::Find,
    ) -> Result<Vec<u8>, gix::Error> {
        let place = self.stack.at_entry(path.as_bstr(), None, objects).map_err(gix::Error::from_error)?;
        let options = filter::pipeline::convert::to_worktree::Options {
            can_delay: filter::driver::apply::Delay::Forbid,
            unknown_encoding: filter::pipeline::convert::to_worktree::UnknownEncoding::Fail,
        };
        let mut outcome = self.pipeline.convert_to_worktree(
            &bytes,
            path.as_bstr(),
            &mut |_, attributes| _ = place.matching_attributes(attributes),
            options,
        )?;
        let mut converted = Vec::new();
        match outcome.is_changed() {
            true => _ = outcome.read_to_end(&mut converted).map_err(gix::Error::from_error)?,
            false => converted.extend_from_slice(&bytes),
        }
        drop(outcome);
        match self.trusted_filter_of(path, objects) {
            Some(name) => self.filters.smudge(&name, path, converted).map_err(gix::Error::from_error),
            None => Ok(converted),
        }
    }

    /// Returns the filter of a path if git does not write the file without it.
    pub(super) fn required_filter_of(
        &mut self,
        path: &[u8],
        objects: &dyn gix::objs::Find,
    ) -> Option<String> {
        self.trusted_filter_of(path, objects).filter(|name| self.filters.is_required(name))
    }

    /// Returns the filter of a path, if there are any that may run.
    fn trusted_filter_of(&mut self, path: &[u8], objects: &dyn gix::objs::Find) -> Option<String> {
        if self.filters.is_empty() { None } else { self.filter_of(path, objects) }
    }

    /// Says whether only git itself puts a path into the work tree as git does: identifiers are written a space
    /// shorter here, and some encodings not at all.
    pub(super) fn needs_git_for_worktree(&mut self, path: &[u8], objects: &dyn gix::objs::Find) -> bool {
        self.has_any(path, ["ident", ENCODING], objects)
    }

    /// Says whether a path has one of these attributes; also if that cannot be told.
    fn has_any<const N: usize>(
        &mut self,
        path: &[u8],
        attributes: [&str; N],
        objects: &dyn gix::objs::Find,
    ) -> bool {
        let mut outcome = gix::attrs::search::Outcome::default();
        outcome.initialize_with_selection(self.stack.attributes_collection(), attributes);
        let Ok(place) = self.stack.at_entry(path.as_bstr(), None, objects) else { return true };
        place.matching_attributes(&mut outcome);
        outcome.iter_selected().any(|found| {
            !matches!(found.assignment.state, gix::attrs::StateRef::Unset | gix::attrs::StateRef::Unspecified)
        })
    }

    /// Returns the filter that the attributes of a path name, if any.
    pub(super) fn filter_of(&mut self, path: &[u8], objects: &dyn gix::objs::Find) -> Option<String> {
        let mut outcome = gix::attrs::search::Outcome::default();
        outcome.initialize_with_selection(self.stack.attributes_collection(), ["filter"]);
        let place = self.stack.at_entry(path.as_bstr(), None, objects).ok()?;
        place.matching_attributes(&mut outcome);
        let name = outcome.iter_selected().find_map(|found| {
            found.assignment.state.as_bstr().map(|name: &BStr| name.to_str_lossy().into_owned())
        });
        name.filter(|name| !name.is_empty())
    }
}

/// Says whether rules can be read from a path without waiting for somebody: it is a file, or there is nothing. Where it is not,
/// git reads it, and is ended when the capture has to be.
pub(super) fn is_plain(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |found| found.is_file())
}

/// Where configuration is outside the repository.
struct Places {
    home: Option<PathBuf>,
    user_folder: Option<PathBuf>,
    files: Vec<(PathBuf, Source)>,
    system_attributes: Vec<PathBuf>,
}

impl Places {
    fn new(git: &GitProgram) -> Self {
        let variable = |name: &str| git.environment.get(OsStr::new(name)).filter(|value| !value.is_empty());
        let home = variable("HOME").map(PathBuf::from);
        let xdg = variable("XDG_CONFIG_HOME").map(PathBuf::from);
        let user_folder =
            xdg.or_else(|| home.as_ref().map(|home| home.join(".config"))).map(|f| f.join("git"));
        let (mut files, mut system_attributes) = (vec![], vec![]);
        let no_system = variable("GIT_CONFIG_NOSYSTEM").is_some_and(|value| value != "0" && value != "false");
        let etc = system_folder(git, variable("PATH").map(OsStr::new));
        if let Some(path) = variable("GIT_CONFIG_SYSTEM") {
            files.push((PathBuf::from(path), Source::System));
        } else if !no_system {
            files.push((etc.join("gitconfig"), Source::System));
        }
        system_attributes.push(etc.join("gitattributes"));
        match variable("GIT_CONFIG_GLOBAL") {
            Some(path) => files.push((PathBuf::from(path), Source::User)),
            None => {
                files.extend(user_folder.as_ref().map(|folder| (folder.join("config"), Source::Git)));
                files.extend(home.as_ref().map(|home| (home.join(".gitconfig"), Source::User)));
            }
        }
        Self { home, user_folder, files, system_attributes }
    }

    fn config(&self, repository: &Repository, branch: Option<&str>) -> Result<File, gix::Error> {
        let mut files = self.files.clone();
        files.push((repository.common_dir.join("config"), Source::Local));
        files.push((repository.git_dir.join("config.worktree"), Source::Worktree));
        let branch = branch.and_then(|name| gix::refs::FullName::try_from(format!("refs/heads/{name}")).ok());
        let includes = file::includes::Options {
            err_on_missing_config_path: false,
            ..file::includes::Options::follow(
                gix::config::path::interpolate::Context {
                    home_dir: self.home.as_deref(),
                    ..Default::default()
                },
                file::includes::conditional::Context {
                    git_dir: Some(&repository.git_dir),
                    branch_name: branch.as_ref().map(|name| name.as_ref()),
                },
            )
        };
        let options = file::init::Options { includes, lossy: true, ignore_io_errors: false };
        let mut places = files.into_iter().map(|(path, source)| file::Metadata {
            path: Some(path),
            source,
            level: 0,
            trust: gix::sec::Trust::Full,
        });
        let config = File::from_paths_metadata_buf(&mut places, &mut Vec::new(), false, options)?;
        Ok(config.unwrap_or_default())
    }
}

/// Returns the folder of the system's configuration: that of the prefix git is installed below.
fn system_folder(git: &GitProgram, path: Option<&OsStr>) -> PathBuf {
    let found = if git.path.components().count() > 1 {
        Some(git.path.clone())
    } else {
        let folders = path.map(std::env::split_paths).into_iter().flatten();
        folders.map(|folder| folder.join(&git.path)).find(|program| program.is_file())
    };
    let prefix = found.as_deref().and_then(Path::parent).and_then(Path::parent).map(Path::to_owned);
    match prefix {
        Some(prefix) if prefix != Path::new("/usr") && prefix != Path::new("/") => prefix.join("etc"),
        _ => PathBuf::from("/etc"),
    }
}

/// Returns the filters that may run, and the names of those that only the repository configures.
fn filters_of(config: &File) -> (Vec<Filter>, Vec<String>) {
    let (mut filters, mut named) = (Vec::<Filter>::new(), Vec::<String>::new());
    for section in config.sections_by_name("filter").into_iter().flatten() {
        let Some(name) = section.header().subsection_name() else { continue };
        let name = name.to_str_lossy().into_owned();
        named.push(name.clone());
        if !matches!(
            section.meta().source,
            Source::System | Source::Git | Source::User | Source::GitInstallation
        ) {
            continue;
        }
        let position = filters.iter().position(|filter| filter.name == name).unwrap_or_else(|| {
            let required = config.boolean(format!("filter.{name}.required").as_str()).ok().flatten();
            let required = required.unwrap_or_default();
            filters.push(Filter { name, clean: None, smudge: None, process: None, required });
            filters.len() - 1
        });
        let filter = &mut filters[position];
        for (key, slot) in
            [("clean", &mut filter.clean), ("smudge", &mut filter.smudge), ("process", &mut filter.process)]
        {
            if let Some(value) = section.value(key) {
                *slot = Some(value.to_vec()).filter(|value| !value.is_empty());
            }
        }
    }
    named.retain(|name| !filters.iter().any(|filter| filter.name == *name));
    named.sort();
    named.dedup();
    (filters, named)
}

fn eol_of(config: &File) -> eol::Configuration {
    let auto_crlf = match config.string("core.autocrlf").map(|value| value.to_ascii_lowercase()) {
        Some(value) if value == b"input" => eol::AutoCrlf::Input,
        Some(_) if config.boolean("core.autocrlf").ok().flatten() == Some(true) => eol::AutoCrlf::Enabled,
        _ => eol::AutoCrlf::Disabled,
    };
    let eol = match config.string("core.eol").map(|value| value.to_ascii_lowercase()).as_deref() {
        Some(b"lf") => Some(eol::Mode::Lf),
        Some(b"crlf") => Some(eol::Mode::CrLf),
        _ => None,
    };
    eol::Configuration { auto_crlf, eol }
}

/// Names a setting that only git itself knows how to follow.
fn unusual(config: &File) -> Option<&'static str> {
    let is = |key: &str| config.boolean(key).ok().flatten();
    let conditions = config.sections_by_name("includeIf").into_iter().flatten();
    let names =
        conditions.filter_map(|section| section.header().subsection_name().map(|name| name.to_string()));
    let understood =
        |name: &String| ["gitdir:", "gitdir/i:", "onbranch:"].iter().any(|kind| name.starts_with(kind));
    if !names.into_iter().all(|name| understood(&name)) {
        return Some("a conditional include");
    }
    match () {
        () if is("core.fileMode") == Some(false) => Some("core.fileMode"),
        () if is("core.symlinks") == Some(false) => Some("core.symlinks"),
        () if is("core.ignoreCase") == Some(true) => Some("core.ignoreCase"),
        () if is("core.sparseCheckout") == Some(true) => Some("core.sparseCheckout"),
        () if is("core.bare") == Some(true) && config.string("core.worktree").is_some() => {
            Some("core.worktree")
        }
        () if config.string("attr.tree").is_some() => Some("attr.tree"),
        () => None,
    }
}
