//! Repositories for the tests of what moves refs.

use std::path::Path;
use std::process::Command;

use super::{GitProgram, Keep, Open, Snapshots, Way};

/// Runs git as somebody and returns what it printed.
pub(super) fn git(root: &Path, args: &[&str]) -> String {
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    let output = Command::new("git").current_dir(root).args(identity).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A repository with two commits on its branch, made in a way of its own.
pub(super) fn repository(made: &[&str]) -> (tempfile::TempDir, Snapshots) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    git(root, &[&["init", "-q", "-b", "main"], made].concat());
    for message in ["first", "second"] {
        git(root, &["commit", "-q", "--allow-empty", "-m", message]);
    }
    let open = Open {
        root: root.into(),
        state_dir: root.join(".git/stagepost"),
        keep: Keep::Repository,
        git: GitProgram::new("git", [("PATH".into(), env!("PATH").into())]),
        exclude: vec![],
        way: Way::Fastest,
    };
    let snapshots = Snapshots::open(open).unwrap();
    (folder, snapshots)
}
