//! Work trees for tests of snapshots, and git beside them as the measure.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use stagepost::model::{CheckpointId, Snapshot};
use stagepost::snapshot::{Capture, GitProgram, Keep, Open, Snapshots, Way};

/// A temporary folder with a home of its own, and usually a repository.
pub struct Fixture {
    pub folder: tempfile::TempDir,
    pub root: PathBuf,
}

impl Fixture {
    /// A folder without git.
    pub fn bare() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let root = base.join("work");
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(base.join("home")).unwrap();
        fs::write(base.join("home/.gitconfig"), "[user]\nname=t\nemail=t@t\n[init]\ndefaultBranch=main\n")
            .unwrap();
        Self { folder, root }
    }

    /// A repository without a commit.
    pub fn unborn(args: &[&str]) -> Self {
        let fixture = Self::bare();
        fixture.git(&[&["init", "-q"], args].concat());
        fixture
    }

    /// A repository with a commit of some files.
    pub fn new() -> Self {
        let fixture = Self::unborn(&[]);
        fixture.write("a.txt", "one\n").write("dir/b.txt", "two\n").write("dir/deep/c.txt", "three\n");
        fixture.write("run.sh", "#!/bin/sh\n").executable("run.sh").link("link", "a.txt");
        fixture.commit("first");
        fixture
    }

    pub fn base(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub fn write(&self, path: impl AsRef<OsStr>, content: impl AsRef<[u8]>) -> &Self {
        let path = self.root.join(path.as_ref());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub fn executable(&self, path: &str) -> &Self {
        fs::set_permissions(self.root.join(path), fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    pub fn link(&self, path: &str, target: &str) -> &Self {
        let _ = fs::remove_file(self.root.join(path));
        symlink(target, self.root.join(path)).unwrap();
        self
    }

    pub fn remove(&self, path: &str) -> &Self {
        let path = self.root.join(path);
        if path.symlink_metadata().unwrap().is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        }
        .unwrap();
        self
    }

    pub fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new("git");
        command.env_clear().envs(self.environment()).current_dir(folder);
        command
    }

    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut variables = vec![
            ("HOME".into(), self.base().join("home").into_os_string()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ];
        variables.extend(std::env::var_os("PATH").map(|path| ("PATH".into(), path)));
        variables
    }

    pub fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.root, args)
    }

    pub fn git_in(&self, folder: &Path, args: &[&str]) -> String {
        let output = self.command(folder).args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub fn commit(&self, message: &str) -> &Self {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
        self
    }

    pub fn open(&self) -> Snapshots {
        self.open_as(&self.root, Keep::Repository, Way::Fastest)
    }

    pub fn open_as(&self, root: &Path, keep: Keep, way: Way) -> Snapshots {
        let common =
            self.command(root).args(["rev-parse", "--path-format=absolute", "--git-common-dir"]).output();
        let common = String::from_utf8(common.unwrap().stdout).unwrap();
        let state_dir = match common.trim() {
            "" => root.join(".stagepost"),
            common => Path::new(common).join("stagepost"),
        };
        let git = GitProgram::new("git", self.environment());
        Snapshots::open(Open { root: root.into(), state_dir, keep, git, exclude: vec![], way }).unwrap()
    }

    pub fn capture(&self) -> Snapshot {
        self.open().capture(&id(), &Capture::default()).unwrap()
    }

    /// The tree of `git add -A` on a copy of the index, its objects thrown away.
    pub fn oracle(&self) -> String {
        self.oracle_in(&self.root)
    }

    pub fn oracle_in(&self, root: &Path) -> String {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path().join("index");
        let git_dir = self.git_in(root, &["rev-parse", "--absolute-git-dir"]);
        let common = self.git_in(root, &["rev-parse", "--path-format=absolute", "--git-common-dir"]);
        let original = Path::new(&git_dir).join("index");
        if original.exists() {
            fs::copy(&original, &index).unwrap();
            let times = original.metadata().unwrap().modified().unwrap();
            fs::File::options().write(true).open(&index).unwrap().set_modified(times).unwrap();
        }
        let run = |args: &[&str]| {
            let mut command = self.command(root);
            command.env("GIT_INDEX_FILE", &index).env("GIT_OBJECT_DIRECTORY", folder.path());
            command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", Path::new(&common).join("objects"));
            let output = command.args(args).output().unwrap();
            assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        run(&["-c", "core.splitIndex=false", "add", "-A"]);
        run(&["write-tree"])
    }

    /// Captures and checks that the tree is git's, through both ways.
    #[track_caller]
    pub fn assert_exact(&self) -> Snapshot {
        let expected = self.oracle();
        let snapshot = self.capture();
        let plumbing = self.open_as(&self.root, Keep::Repository, Way::GitProgram);
        let plumbed = plumbing.capture(&id(), &Capture::default()).unwrap();
        for (way, tree) in [("the git program", &plumbed.tree), ("the fastest way", &snapshot.tree)] {
            assert_eq!(tree.as_str(), expected, "{way}: {}", self.explain(&expected, tree.as_str()));
        }
        assert_eq!(snapshot.files, plumbed.files);
        assert_eq!(snapshot.index_tree, plumbed.index_tree);
        plumbing.check(&snapshot).unwrap();
        snapshot
    }

    pub fn explain(&self, expected: &str, found: &str) -> String {
        let index = self.base().join("explained-index");
        let original = self.root.join(".git/index");
        let _ = fs::copy(&original, &index);
        let times = original.metadata().and_then(|metadata| metadata.modified());
        if let (Ok(times), Ok(file)) = (times, fs::File::options().write(true).open(&index)) {
            file.set_modified(times).unwrap();
        }
        let _ = self.command(&self.root).env("GIT_INDEX_FILE", &index).args(["add", "-A"]).output();
        let _ = self.command(&self.root).env("GIT_INDEX_FILE", &index).arg("write-tree").output();
        let output = self.command(&self.root).args(["diff-tree", "-r", expected, found]).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }
}

pub fn id() -> CheckpointId {
    CheckpointId::from_uuid(uuid::Uuid::now_v7())
}

pub fn bytes(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}
