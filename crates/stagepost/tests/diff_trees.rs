//! Comparing snapshots: as data, as a patch that git takes, and as numbers that are git's.

#![allow(clippy::unwrap_used, reason = "tests may stop at any fault")]

mod snapshot_support;

use std::fs;
use std::process::Stdio;

use snapshot_support::{Fixture, bytes};
use stagepost::model::Snapshot;
use stagepost::snapshot::Capture;
use stagepost::snapshot::diff::{ContentDiff, Detail, Diff, DiffOptions, Status, Tag};

fn diff(fixture: &Fixture, old: &Snapshot, new: &Snapshot, options: &DiffOptions) -> Diff {
    fixture.open().diff(Some(&old.tree), Some(&new.tree), options).unwrap()
}

fn patch(diff: &Diff) -> Vec<u8> {
    let mut text = Vec::new();
    diff.patch(&mut |_, piece| text.extend_from_slice(piece));
    text
}

fn stat(diff: &Diff) -> String {
    let mut text = Vec::new();
    diff.stat(80, &mut |_, piece| text.extend_from_slice(piece));
    String::from_utf8(text).unwrap()
}

/// Applies a patch to a tree with git itself, and returns the tree that comes out.
fn applied(fixture: &Fixture, tree: &Snapshot, patch: &[u8]) -> String {
    let index = fixture.base().join("apply.index");
    let _ = fs::remove_file(&index);
    let run = |args: &[&str], input: &[u8]| {
        use std::io::Write;
        let mut command = fixture.command(&fixture.root);
        command.args(args).env("GIT_INDEX_FILE", &index);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}\n{}", String::from_utf8_lossy(patch));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    run(&["read-tree", tree.tree.as_str()], b"");
    if !patch.is_empty() {
        run(&["apply", "--cached", "--unidiff-zero", "-"], patch);
    }
    run(&["write-tree"], b"")
}

#[test]
fn git_takes_the_patch_and_gets_the_same_tree() {
    let fixture = Fixture::new();
    let long: String = (0..200).map(|n| format!("line {n}\n")).collect();
    fixture
        .write("long.txt", &long)
        .write("moved.txt", &long)
        .write("no-end", "last line")
        .write("empty", "");
    fixture.write("becomes-link", "x\n").write("with space.txt", "1\n").write(bytes(b"odd\n\"name"), "1\n");
    fixture.write(bytes("ünï".as_bytes()), "1\n").write("gone", "1\n2\n");
    let old = fixture.capture();
    fixture
        .write("long.txt", long.replace("line 5\n", "five\n").replace("line 150\n", ""))
        .remove("moved.txt");
    fixture.write("sub/moved to.txt", long.replace("line 77\n", "LINE 77\n")).write("no-end", "last line\n");
    fixture.remove("becomes-link").link("becomes-link", "a.txt").write("empty", "not any more");
    fixture
        .write("with space.txt", "2\n")
        .write(bytes(b"odd\n\"name"), "2\n")
        .write(bytes("ünï".as_bytes()), "2\n");
    fixture.remove("gone").executable("a.txt").write("new", "a\nb\nc").write("new-empty", "");
    let new = fixture.capture();

    for context in [0, 1, 3, 10] {
        let options = DiffOptions { detail: Detail::Lines { context }, ..DiffOptions::default() };
        let there = patch(&diff(&fixture, &old, &new, &options));
        assert_eq!(applied(&fixture, &old, &there), new.tree.as_str(), "context {context}");
        let back = patch(&diff(&fixture, &new, &old, &options));
        assert_eq!(applied(&fixture, &new, &back), old.tree.as_str(), "context {context}");
    }
    let without = DiffOptions { renames: false, ..DiffOptions::default() };
    let there = patch(&diff(&fixture, &old, &new, &without));
    assert_eq!(applied(&fixture, &old, &there), new.tree.as_str());
}

#[test]
fn the_numbers_are_those_of_git() {
    let fixture = Fixture::new();
    let text = |from: u32, to: u32| (from..to).map(|n| format!("some line {n}\n")).collect::<String>();
    fixture.write("one", text(0, 100)).write("two", text(0, 50)).write("three", "x\n").write("bin", b"a\0b");
    let old = fixture.capture();
    fixture.write("one", text(20, 130)).remove("two").write("renamed", text(0, 48)).remove("three");
    fixture.write("bin", b"a\0bc").write("four", "1\n2\n");
    let new = fixture.capture();
    let options = DiffOptions { detail: Detail::Counts, ..DiffOptions::default() };
    let found = diff(&fixture, &old, &new, &options);
    let mut ours: Vec<String> = found
        .files
        .iter()
        .map(|file| match file.content {
            ContentDiff::Binary { .. } => format!("-\t-\t{}", file.path),
            _ => format!("{}\t{}\t{}", file.counts().added, file.counts().deleted, name(file)),
        })
        .collect();
    let git = fixture.git(&["diff-tree", "-r", "-M", "--numstat", old.tree.as_str(), new.tree.as_str()]);
    let mut git: Vec<String> = git.lines().map(str::to_owned).collect();
    ours.sort();
    git.sort();
    assert_eq!(ours, git);
    let short = fixture.git(&["diff-tree", "-r", "-M", "--shortstat", old.tree.as_str(), new.tree.as_str()]);
    assert_eq!(stat(&found).lines().last().unwrap().trim(), short.trim());
}

#[test]
fn the_lines_of_files_are_those_of_git() {
    let fixture = Fixture::new();
    let text = |from: u32, to: u32| (from..to).map(|n| format!("some line {n}\n")).collect::<String>();
    let long = "a/very/long/path/that/goes/on/and/on/for/quite/a/while/indeed/with_a_long_name.txt";
    let stat_of_git = |old: &stagepost::model::Snapshot, new: &stagepost::model::Snapshot| {
        let args = ["-c", "core.quotePath=false", "diff-tree", "-r", "-M", "--stat=80"];
        fixture.git(&[&args[..], &[old.tree.as_str(), new.tree.as_str()]].concat())
    };
    let shows_as_git = |old: &_, new: &_| {
        let options = DiffOptions { detail: Detail::Counts, ..DiffOptions::default() };
        assert_eq!(stat(&diff(&fixture, old, new, &options)).trim(), stat_of_git(old, new));
    };
    fixture.write(long, text(0, 30)).write("one", text(0, 300)).write("s/moved", text(0, 50));
    fixture.write("x/deep/there", text(100, 150)).write("日本語ファイル.txt", "a\n").write("t\there", "a\n");
    let first = fixture.capture();
    fixture
        .write(long, text(10, 31))
        .write("日本語ファイル.txt", "b\n")
        .write("t\there", "b\n")
        .write("empty", "");
    let second = fixture.capture();
    fixture.write("one", text(150, 400)).remove("s/moved").write("s/renamed", text(0, 49));
    fixture
        .remove("x/deep/there")
        .write("x/other/there", text(100, 150))
        .write("bin", b"a\0b")
        .executable("a.txt");
    let third = fixture.capture();
    shows_as_git(&first, &second);
    shows_as_git(&second, &third);
    shows_as_git(&first, &third);
    shows_as_git(&third, &first);
}

fn name(file: &stagepost::snapshot::diff::FileDiff) -> String {
    match &file.old_path {
        Some(old) => format!("{old} => {}", file.path),
        None => file.path.to_string(),
    }
}

#[test]
fn renames_are_found_exactly_and_by_likeness() {
    let fixture = Fixture::new();
    let long: String = (0..100).map(|n| format!("line {n}\n")).collect();
    fixture.write("exact", &long).write("edited", long.replace("line", "other"));
    let old = fixture.capture();
    fixture.remove("exact").remove("edited").write("dir/exact", &long);
    fixture
        .write("rewritten", long.replace("line", "other").replace("other 5", "new 5"))
        .write("unlike", "x\n");
    let new = fixture.capture();
    let found = diff(&fixture, &old, &new, &DiffOptions::default());
    let of = |path: &str| found.files.iter().find(|file| file.path.as_bytes() == path.as_bytes()).unwrap();
    assert_eq!((of("dir/exact").status, of("dir/exact").similarity), (Status::Renamed, Some(100)));
    assert_eq!(of("dir/exact").content, ContentDiff::Same);
    assert_eq!(of("rewritten").old_path.as_ref().unwrap().as_bytes(), b"edited");
    assert_eq!(of("unlike").status, Status::Added);
    assert_eq!(found.files.len(), 3);
}

#[test]
fn only_what_was_asked_for_is_compared() {
    let fixture = Fixture::new();
    let old = fixture.capture();
    fixture.write("a.txt", "x").write("dir/b.txt", "x").write("dir/deep/c.txt", "x");
    let new = fixture.capture();
    let options = DiffOptions { paths: vec!["dir".into()], ..DiffOptions::default() };
    let paths: Vec<_> =
        diff(&fixture, &old, &new, &options).files.iter().map(|file| file.path.to_string()).collect();
    assert_eq!(paths, ["dir/b.txt", "dir/deep/c.txt"]);
}

#[test]
fn a_snapshot_is_compared_with_now_without_keeping_anything() {
    let fixture = Fixture::new();
    let old = fixture.capture();
    fixture.write("a.txt", "one\nand now more\n").write("new", "x\n");
    let snapshots = fixture.open();
    let now = snapshots.look(&Capture::default()).unwrap();
    let found = snapshots.diff(Some(&old.tree), Some(&now.tree), &DiffOptions::default()).unwrap();
    assert_eq!((found.totals.added, found.totals.deleted), (2, 0));
    let text = String::from_utf8(patch(&found)).unwrap();
    assert!(text.contains("\n+and now more\n"), "{text}");
}

#[test]
fn binary_files_modes_links_and_submodules_are_named() {
    let fixture = Fixture::new();
    fixture.write("bin", b"a\0b");
    let sub = fixture.root.join("sub");
    fs::create_dir(&sub).unwrap();
    fixture.git_in(&sub, &["init", "-q"]);
    fixture.git_in(&sub, &["commit", "-q", "--allow-empty", "-m", "1"]);
    let old = fixture.capture();
    fixture.write("bin", b"a\0bcd").executable("a.txt").link("link", "dir");
    fixture.git_in(&sub, &["commit", "-q", "--allow-empty", "-m", "2"]);
    let new = fixture.capture();
    let text = String::from_utf8(patch(&diff(&fixture, &old, &new, &DiffOptions::default()))).unwrap();
    for expected in [
        "Binary files a/bin and b/bin differ\n",
        "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n",
        "-Subproject commit ",
        "+Subproject commit ",
        "@@ -1 +1 @@\n-a.txt\n\\ No newline at end of file\n+dir\n",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
}

#[test]
fn the_text_comes_in_pieces_to_colour() {
    let fixture = Fixture::new();
    let old = fixture.capture();
    fixture.write("a.txt", "two\n");
    let new = fixture.capture();
    let mut tags = Vec::new();
    diff(&fixture, &old, &new, &DiffOptions::default()).patch(&mut |tag, _| tags.push(tag));
    assert_eq!(tags, [Tag::File, Tag::Meta, Tag::Meta, Tag::Meta, Tag::Range, Tag::Deleted, Tag::Added]);
}

#[test]
fn the_same_is_there_as_json() {
    let fixture = Fixture::new();
    let old = fixture.capture();
    fixture.write("a.txt", "one\ntwo").remove("dir/b.txt");
    let new = fixture.capture();
    let json = serde_json::to_value(diff(&fixture, &old, &new, &DiffOptions::default())).unwrap();
    let file = &json["files"][0];
    assert_eq!((&file["path"], &file["status"]), (&"a.txt".into(), &"modified".into()));
    assert_eq!((&file["content"]["kind"], &file["content"]["added"]), (&"text".into(), &1.into()));
    let line = &file["content"]["hunks"][0]["lines"][1];
    assert_eq!(line, &serde_json::json!({ "kind": "added", "text": "two", "no_newline": true }));
    assert_eq!(json["files"][1]["status"], "deleted");
    assert_eq!(json["totals"], serde_json::json!({ "added": 1, "deleted": 1 }));
}

#[test]
fn nothing_differs_from_itself() {
    let fixture = Fixture::new();
    let one = fixture.capture();
    let found = diff(&fixture, &one, &one, &DiffOptions::default());
    assert!(found.files.is_empty() && patch(&found).is_empty() && stat(&found).is_empty());
}
