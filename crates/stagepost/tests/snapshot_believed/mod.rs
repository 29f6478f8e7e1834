//! What the private state could make a capture overlook.
//!
//! Each story captures once, so that there is a state, and then changes something in a way that leaves as little trace
//! as the file system allows.

use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use stagepost::snapshot::Capture;

use super::snapshot_support::{Fixture, id};

fn state_of(fixture: &Fixture) -> PathBuf {
    fixture.root.join(".git/stagepost/snapshots/main/state")
}

/// Waits until what was changed before counts as old.
fn settle() {
    std::thread::sleep(Duration::from_millis(20));
}

/// A work tree with a state that everything in it is old enough to be believed by.
fn settled() -> Fixture {
    let fixture = Fixture::new();
    fixture.write("dir/deep/d.txt", "four\n").write("new/e.txt", "five\n");
    settle();
    fixture.assert_exact();
    fixture
}

fn modified(path: &Path) -> SystemTime {
    path.metadata().unwrap().modified().unwrap()
}

/// Sets a file's or folder's time of change of content; the time of change of the file itself cannot be set.
fn set_modified(path: &Path, time: SystemTime) {
    File::open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
}

/// Changes something, and gives a file or folder the time that it had before.
fn keeping_time(path: &Path, change: impl FnOnce()) {
    let time = modified(path);
    change();
    set_modified(path, time);
}

#[test]
fn a_folder_in_the_place_of_another_with_its_times() {
    let fixture = settled();
    let [dir, other] = ["dir/deep", "other"].map(|name| fixture.root.join(name));
    let times = [&dir, &fixture.root.join("dir"), &fixture.root].map(|path| modified(path));
    fixture.write("other/c.txt", "THREE").write("other/d.txt", "FOUR").write("other/x.txt", "new");
    fs::rename(&dir, fixture.base().join("away")).unwrap();
    fs::rename(&other, &dir).unwrap();
    for (path, time) in [&dir, &fixture.root.join("dir"), &fixture.root].into_iter().zip(times) {
        set_modified(path, time);
    }
    fixture.assert_exact();
    fs::rename(&dir, &other).unwrap();
    fs::rename(fixture.base().join("away"), &dir).unwrap();
    fixture.assert_exact();
}

#[test]
fn a_file_in_a_folder_whose_time_was_set_back() {
    let fixture = settled();
    for folder in ["dir/deep", "new", ""] {
        let folder = fixture.root.join(folder);
        keeping_time(&folder, || fs::write(folder.join("more.txt"), "more").unwrap());
        fixture.assert_exact();
    }
}

#[test]
fn a_file_whose_size_and_time_are_as_before() {
    let fixture = settled();
    for name in ["a.txt", "dir/deep/d.txt", "new/e.txt"] {
        let path = fixture.root.join(name);
        let length = fs::read(&path).unwrap().len();
        keeping_time(&path, || fs::write(&path, "x".repeat(length)).unwrap());
        fixture.assert_exact();
    }
}

#[test]
fn files_and_folders_from_the_future() {
    let fixture = settled();
    let future = SystemTime::now() + Duration::from_secs(3600);
    let path = fixture.root.join("new/e.txt");
    for content in ["one one", "two two"] {
        fs::write(&path, content).unwrap();
        fs::write(fixture.root.join("new").join(content), content).unwrap();
        set_modified(&path, future);
        set_modified(&fixture.root.join("new"), future);
        fixture.assert_exact();
    }
}

#[test]
fn a_state_that_came_along_with_a_copy() {
    let fixture = settled();
    let copy = fixture.base().join("copy");
    let copied = Command::new("cp").arg("-a").args([&fixture.root, &copy]).status().unwrap();
    assert!(copied.success());
    let path = copy.join("dir/deep/d.txt");
    keeping_time(&path, || fs::write(&path, "FOUR\n").unwrap());
    let moved = fixture.base().join("original");
    fs::rename(&fixture.root, &moved).unwrap();
    fs::rename(&copy, &fixture.root).unwrap();
    fixture.assert_exact();
}

#[test]
fn rules_that_change_in_place() {
    let fixture = settled();
    fixture.write("new/.gitignore", "*.log\n").write("new/x.log", "log").write("new/x.txt", "text");
    fixture.write("new/below/y.txt", "text").write("new/below/y.log", "log");
    settle();
    fixture.assert_exact();
    // As long as before, and no folder is touched.
    fixture.write("new/.gitignore", "*.txt\n");
    fixture.assert_exact();
    fixture.write(".git/info/exclude", "*.log\n");
    fixture.assert_exact();
    fixture.write("../home/.config/git/ignore", "y.*\n");
    fixture.assert_exact();
    fixture.write("new/.gitattributes", "*.txt text eol=crlf\n").write("new/z.txt", "a\r\nb\r\n");
    settle();
    fixture.assert_exact();
    fixture.write("new/.gitattributes", "*.txt -text          \n");
    fixture.assert_exact();
}

#[test]
fn a_state_with_any_byte_damaged() {
    let fixture = settled();
    let expected = fixture.oracle();
    // As many as there are: what git tracks must not be taken for untracked because the state does not know it.
    let options = Capture { max_untracked: 2, ..Capture::default() };
    let capture = || fixture.open().capture(&id(), &options).unwrap().tree;
    capture();
    let sound = fs::read(state_of(&fixture)).unwrap();
    for position in (0..sound.len()).step_by(sound.len() / 40) {
        let mut damaged = sound.clone();
        damaged[position] ^= 0x15;
        fs::write(state_of(&fixture), damaged).unwrap();
        assert_eq!(capture().as_str(), expected, "byte {position}");
    }
    let zeros = vec![0; sound.len() / 3];
    let mut hole = sound.clone();
    hole[8..8 + zeros.len()].copy_from_slice(&zeros);
    fs::write(state_of(&fixture), hole).unwrap();
    assert_eq!(capture().as_str(), expected, "a part that never reached the disk");
}

#[test]
fn a_state_that_lost_what_was_appended_last() {
    let fixture = settled();
    let before = fs::read(state_of(&fixture)).unwrap();
    fixture.write("dir/deep/d.txt", "changed");
    settle();
    fixture.assert_exact();
    let after = fs::read(state_of(&fixture)).unwrap();
    assert!(after.starts_with(&before), "the state was appended to");
    for length in [before.len(), before.len() + 1, after.len() - 1] {
        fs::write(state_of(&fixture), &after[..length]).unwrap();
        fixture.write("new/e.txt", format!("changed {length}"));
        fixture.assert_exact();
    }
}
