//! A throw-away project with real git and a real store.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use stagepost::model::{Checkpoint, Timestamp};
use stagepost::project::{Clock, Context, Files, Place, Project, RandomIds, Save, Settings};
use stagepost::snapshot::GitProgram;

use crate::Script;

/// A folder with a project in it, gone when it is dropped.
pub struct TempProject {
    folder: tempfile::TempDir,
    root: PathBuf,
}

impl TempProject {
    /// A git repository without a commit.
    pub fn git() -> Self {
        let project = Self::plain();
        project.run_git(&["init", "-q", "-b", "main"]);
        project.run_git(&["config", "user.name", "Ada"]);
        project.run_git(&["config", "user.email", "ada@example.org"]);
        project
    }

    /// A folder that is no repository.
    pub fn plain() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let root = std::fs::canonicalize(folder.path()).expect("it is there").join("project");
        std::fs::create_dir(&root).expect("a folder can be made");
        Self { folder, root }
    }

    /// The folder of the project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A folder beside the project that goes with it.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.root.with_file_name(name)
    }

    /// Writes a file, making its folders.
    pub fn write(&self, path: &str, content: &str) -> &Self {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("folders can be made");
        std::fs::write(path, content).expect("a file can be written");
        self
    }

    /// Deletes a file.
    pub fn remove(&self, path: &str) -> &Self {
        std::fs::remove_file(self.root.join(path)).expect("the file is there");
        self
    }

    /// Reads a file; `None` if it is not there.
    pub fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(path)).ok()
    }

    /// Runs git in the project and returns what it printed.
    pub fn run_git(&self, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.current_dir(&self.root).args(args).env_clear().envs(self.environment());
        let output = git.output().expect("git is installed");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?} failed: {error}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let home = self.folder.path().join("home");
        [("PATH", path), ("HOME", home.into()), ("GIT_CONFIG_NOSYSTEM", "1".into())]
            .map(|(name, value)| (name.into(), value))
            .to_vec()
    }

    /// Has the project opened from now on with a git that cannot be asked to run hooks.
    pub fn use_older_git(&self) {
        let refuse = "echo \"git: 'hook' is not a git command\" >&2; exit 1";
        let script = format!(
            "#!/bin/sh\nfor word; do test \"$word\" = hook && {{ {refuse}; }}; done\nexec git \"$@\"\n"
        );
        let path = self.other_git();
        std::fs::write(&path, script).expect("a file can be written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).expect("a file can be made a program");
    }

    fn other_git(&self) -> PathBuf {
        self.beside("older-git")
    }

    /// Opens the project as another process would: with its store, a scripted clock and ids.
    pub fn open(&self) -> Project {
        self.open_with(&self.root, Settings::default())
    }

    /// Opens the project that a folder belongs to, with settings.
    pub fn open_with(&self, folder: &Path, settings: Settings) -> Project {
        self.open_by(folder, settings, Box::new(Scripted(Script::new())))
    }

    /// Opens the project that a folder belongs to, by a clock of its own.
    pub fn open_by(&self, folder: &Path, settings: Settings, clock: Box<dyn Clock>) -> Project {
        let place = Place::find(folder).expect("the folder can be read");
        let place = place.unwrap_or_else(|| Place::without_git(folder));
        let other = self.other_git();
        let git = if other.exists() { other } else { "git".into() };
        let context = Context {
            clock,
            ids: Box::new(RandomIds::default()),
            who: "ada".to_owned(),
            git: GitProgram::new(git, self.environment()),
        };
        Project::init(place, settings, context).expect("the store can be made")
    }
}

/// Saves the files of a project under a description.
pub fn save_files(project: &Project, description: &str) -> Checkpoint {
    let save = Save { description: description.to_owned(), files: Some(Files::default()), ..Save::default() };
    project.save(save).expect("the files can be saved")
}

struct Scripted(Script);

impl Clock for Scripted {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}
