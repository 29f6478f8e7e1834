//! What a snapshot holds: the tree is git's own, whatever is in the work tree.

mod snapshot_support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use snapshot_support::{Fixture, bytes, id};
use stagepost::model::{RepoPath, SkipReason};
use stagepost::snapshot::{Capture, EntryMode, GitProgram, Keep, Open, Operation, Snapshots, Way};

#[test]
fn a_clean_work_tree() {
    let fixture = Fixture::new();
    let snapshot = fixture.assert_exact();
    assert_eq!(snapshot.tree.as_str(), fixture.git(&["rev-parse", "HEAD^{tree}"]));
    assert_eq!(snapshot.branch.as_deref(), Some("main"));
    assert_eq!(snapshot.files.total, 5);
}

#[test]
fn changed_deleted_new_and_odd_files() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "other\n").remove("dir/b.txt").write("new/file", "").write("with space", "x");
    fixture.write("new\nline", "x").write(bytes(b"bad\xff\xfeutf8"), "x").executable("a.txt");
    fixture.link("dangling", "nowhere").remove("run.sh").write("run.sh/inside", "was a file");
    fixture.remove("dir/deep").write("dir/deep", "was a folder");
    let snapshot = fixture.assert_exact();
    assert_eq!((snapshot.files.modified, snapshot.files.deleted), (1, 3));
}

#[test]
fn line_ends_ident_and_encodings() {
    let fixture = Fixture::new();
    fixture.write(
        ".gitattributes",
        "*.txt text\n*.auto text=auto\n*.id ident\n*.u16 working-tree-encoding=UTF-16\n",
    );
    fixture.write("sub/.gitattributes", "*.txt -text\nmacro.txt text eol=crlf\n");
    fixture
        .write("crlf.txt", "a\r\nb\r\n")
        .write("x.auto", "a\r\n")
        .write("bin.auto", "a\r\n\0")
        .write("y.id", "$Id: 12 $\n");
    fixture.write("sub/raw.txt", "a\r\n").write("sub/macro.txt", "a\r\n").write("z.u16", b"\xff\xfea\0\n\0");
    fixture.assert_exact();
    fixture.git(&["config", "core.autocrlf", "true"]);
    fixture.write("more", "a\r\n");
    fixture.assert_exact();
    fixture.write(".gitattributes", "* -text\n");
    fixture.assert_exact();
    fixture.remove(".gitattributes").write("more", "b\r\n");
    fixture.assert_exact();
}

#[test]
fn every_encoding_is_read_as_git_reads_it_and_comes_back_byte_by_byte() {
    // What the tables of browsers have otherwise than those of iconv, and byte order marks.
    let files: [(&str, &[u8]); 6] = [
        ("SHIFT-JIS", b"10\x81\x6020 \x82\xa0\n"),
        ("UTF-16", b"\xfe\xff\0h\0i\0\n"),
        ("ISO-8859-1", b"\x80\x9f\xe9\n"),
        ("ISO-8859-9", b"\xd0\xfd\x80\n"),
        ("EUC-JP", b"\xa1\xc1\n"),
        ("CP932", b"\x81\x60\x81\x7c\n"),
    ];
    for (encoding, content) in files {
        let fixture = Fixture::new();
        fixture.write(".gitattributes", format!("*.enc working-tree-encoding={encoding}\n"));
        fixture.write("old.enc", content).commit("encoded").write("new.enc", content);
        let snapshot = fixture.assert_exact();
        let snapshots = fixture.open();
        let changes = snapshots.objects().diff_trees(None, Some(&snapshot.tree)).unwrap();
        let new = changes.iter().find(|change| change.path == "new.enc".into()).unwrap().new.clone().unwrap();
        let back = snapshots.to_worktree(&"new.enc".into(), EntryMode::File, &new.id).unwrap();
        if encoding != "UTF-16" {
            // git writes UTF-16 in the order of the machine, whatever it read.
            assert_eq!(back, content, "{encoding}");
        }
    }
}

#[test]
fn attributes_of_the_repository_itself_beat_those_of_every_folder() {
    let fixture = Fixture::new();
    fixture.write("img/.gitattributes", "* text\n").write("img/p.png", b"\x89PNG\r\n\x1a\nabc\r\n");
    fixture.assert_exact();
    fixture.write(".git/info/attributes", "*.png -text\n");
    fixture.assert_exact();
    fixture.write("img/p.png", b"\x89PNG\r\nother\r\n").write("img/q.png", "a\r\n");
    fixture.assert_exact();
    fixture.remove(".git/info/attributes");
    fixture.assert_exact();
}

#[test]
fn a_large_file_that_git_holds_is_held_also_right_after_it_was_checked_out() {
    let fixture = Fixture::new();
    fixture.write("big", vec![b'x'; 4000]).commit("big");
    let options = Capture { max_file_size: 2000, ..Capture::default() };
    let capture = || fixture.open().capture(&id(), &options).unwrap();
    let snapshot = capture();
    assert_eq!(snapshot.tree.as_str(), fixture.oracle());
    assert!(snapshot.skipped.is_empty(), "{:?}", snapshot.skipped);
    fixture.write("big", vec![b'y'; 4000]);
    let skipped = capture().skipped;
    assert_eq!(skipped.iter().map(|skipped| skipped.reason).collect::<Vec<_>>(), [SkipReason::TooLarge]);
}

#[test]
fn a_repository_that_appears_in_a_folder_is_noticed() {
    let fixture = Fixture::new();
    fixture.write("sub/x", "x");
    std::fs::create_dir(fixture.root.join("sub/.git")).unwrap();
    fixture.assert_exact();
    // The folder is old enough to be believed, and only what is in its `.git` changes.
    std::thread::sleep(std::time::Duration::from_millis(30));
    fixture.assert_exact();
    let sub = fixture.root.join("sub");
    for args in [&["init", "-q"][..], &["add", "x"], &["commit", "-qm", "x"]] {
        fixture.git_in(&sub, args);
    }
    fixture.assert_exact();
}

#[test]
fn a_submodule_that_was_emptied_is_what_the_index_says() {
    let fixture = Fixture::new();
    let other = fixture.base().join("other");
    std::fs::create_dir(&other).unwrap();
    for args in [&["init", "-q"][..], &["commit", "-q", "--allow-empty", "-m", "one"]] {
        fixture.git_in(&other, args);
    }
    let other = other.to_str().unwrap();
    fixture.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other, "sub"]);
    fixture.commit("sub");
    fixture.git_in(&fixture.root.join("sub"), &["commit", "-q", "--allow-empty", "-m", "two"]);
    fixture.assert_exact();
    fixture.remove("sub/.git");
    fixture.assert_exact();
}

#[test]
fn ignore_rules_of_all_kinds() {
    let fixture = Fixture::new();
    fixture.write("../home/.config/git/ignore", "*.global\n").write(".git/info/exclude", "*.local\n");
    fixture.write(".gitignore", "*.log\nbuild/\n/root-only\n!important.log\n");
    fixture.write("sub/.gitignore", "!*.log\nsecret\n");
    for name in [
        "a.global",
        "b.local",
        "c.log",
        "important.log",
        "build/x",
        "root-only",
        "sub/root-only",
        "sub/d.log",
    ] {
        fixture.write(name, name);
    }
    fixture.write("sub/secret", "x").write("sub/build", "a file of that name").write("sub/deep/build/y", "z");
    fixture.assert_exact();
    fixture.git(&["add", "-f", "c.log", "build/x"]);
    fixture.assert_exact();
    fixture.write("build/x", "changed").write("build/other", "still ignored");
    fixture.assert_exact();
    fixture.write("sub/.gitignore", "*\n").write("sub/new", "ignored now");
    fixture.assert_exact();
    fixture.git(&["config", "core.excludesFile", "../home/other"]);
    fixture.write("../home/other", "a.txt\nnew*\n").write("new-one", "x");
    fixture.assert_exact();
}

#[test]
fn split_indexes_and_version_four() {
    let fixture = Fixture::new();
    fixture.git(&["update-index", "--split-index"]);
    fixture.write("a.txt", "changed").write("new", "x");
    fixture.assert_exact();
    fixture.git(&["add", "new"]);
    fixture.assert_exact();
    fixture.git(&["update-index", "--no-split-index", "--index-version", "4"]);
    fixture.write("a.txt", "again").remove("new");
    fixture.assert_exact();
}

#[test]
fn intent_to_add_and_staged_deletions() {
    let fixture = Fixture::new();
    fixture.write("planned", "x").write("empty", "");
    fixture.git(&["add", "-N", "planned", "empty"]);
    fixture.git(&["rm", "-q", "--cached", "a.txt"]);
    fixture.assert_exact();
    fixture.remove("planned");
    fixture.assert_exact();
}

#[test]
fn nested_repositories_and_submodules_are_recorded_and_never_entered() {
    let fixture = Fixture::new();
    let nested = fixture.root.join("nested");
    fixture.write("nested/file", "inside");
    fixture.git_in(&nested, &["init", "-q"]);
    let snapshot = fixture.capture();
    assert_eq!(snapshot.skipped.len(), 1, "an unborn repository is listed: {:?}", snapshot.skipped);
    fixture.git_in(&nested, &["add", "-A"]);
    fixture.git_in(&nested, &["commit", "-qm", "inner"]);
    fixture.assert_exact();
    fixture.write("nested/file", "dirty");
    fixture.assert_exact();
    fixture.git_in(&nested, &["commit", "-qam", "more"]);
    fixture.assert_exact();

    let library = fixture.base().join("library");
    std::fs::create_dir(&library).unwrap();
    fixture.git_in(&library, &["init", "-q"]);
    fixture.git_in(&library, &["commit", "-q", "--allow-empty", "-m", "library"]);
    fixture.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        library.to_str().unwrap(),
        "lib",
    ]);
    fixture.assert_exact();
    fixture.commit("with submodule");
    fixture.write("lib/dirty", "x");
    fixture.assert_exact();
    fixture.git_in(&fixture.root.join("lib"), &["commit", "-q", "--allow-empty", "-m", "moved on"]);
    fixture.assert_exact();
    fixture.git(&["submodule", "--quiet", "deinit", "-f", "lib"]);
    fixture.assert_exact();
    fixture.remove("lib");
    fixture.assert_exact();
    fixture.remove("nested/.git");
    fixture.assert_exact();
}

#[test]
fn linked_worktrees_have_one_store_and_separate_histories() {
    let fixture = Fixture::new();
    let linked = fixture.base().join("linked");
    fixture.git(&["worktree", "add", "-q", "-b", "other", linked.to_str().unwrap()]);
    fixture.write("../linked/a.txt", "changed there").write("../linked/new", "x").write("here", "x");
    let snapshots = fixture.open_as(&linked, Keep::Repository, Way::Fastest);
    let snapshot = snapshots.capture(&id(), &Capture::default()).unwrap();
    assert_eq!(snapshot.tree.as_str(), fixture.oracle_in(&linked));
    assert_eq!((snapshot.worktree.as_str(), snapshot.branch.as_deref()), ("worktrees/linked", Some("other")));
    assert_eq!(fixture.assert_exact().worktree, "main");
    let refs = fixture.git(&["for-each-ref", "--format=%(refname)", "refs/stagepost"]);
    assert!(
        refs.contains("refs/stagepost/worktrees/linked/") && refs.contains("refs/stagepost/main/"),
        "{refs}"
    );
}

#[test]
fn before_the_first_commit_detached_and_in_the_middle_of_a_merge() {
    let fixture = Fixture::unborn(&[]);
    fixture.assert_exact();
    fixture.write("first", "x");
    let snapshot = fixture.assert_exact();
    assert_eq!((snapshot.head.is_none(), snapshot.branch.as_deref()), (true, Some("main")));
    fixture.commit("first");
    fixture.git(&["checkout", "-q", "--detach"]);
    assert_eq!(fixture.assert_exact().branch, None);
    fixture.git(&["checkout", "-q", "-b", "side"]);
    fixture.write("first", "side").commit("side");
    fixture.git(&["checkout", "-q", "main"]);
    fixture.write("first", "main").commit("main");
    assert!(!fixture.command(&fixture.root).args(["merge", "-q", "side"]).status().unwrap().success());
    let snapshot = fixture.assert_exact();
    assert_eq!((snapshot.index_tree, snapshot.notes.len()), (None, 1));
    assert_eq!(fixture.open().state_of_repository().unwrap().operation, Some(Operation::Merge));
}

#[test]
fn sparse_checkouts_and_files_git_is_told_not_to_look_at() {
    let fixture = Fixture::new();
    fixture.git(&["update-index", "--assume-unchanged", "a.txt"]);
    fixture.write("a.txt", "nobody looks").write("new", "x");
    fixture.assert_exact();
    fixture.git(&["update-index", "--no-assume-unchanged", "a.txt"]);
    fixture.assert_exact();
    fixture.commit("more");
    fixture.git(&["sparse-checkout", "set", "dir/deep"]);
    fixture.write("dir/deep/c.txt", "changed").write("dir/deep/new", "x");
    fixture.assert_exact();
    fixture.git(&["sparse-checkout", "reapply", "--sparse-index"]);
    fixture.assert_exact();
}

#[test]
fn repositories_of_other_kinds() {
    // Where all refs share one lock, ours are kept apart: who is killed while holding it would stop everybody.
    for (kind, shares) in [("--object-format=sha256", true), ("--ref-format=reftable", false)] {
        let fixture = Fixture::unborn(&[kind]);
        fixture.write("a", "x").write("dir/b", "y").commit("first").write("a", "changed").write("c", "new");
        let snapshot = fixture.assert_exact();
        let apart = format!("--git-dir={}", fixture.root.join(".git/stagepost/snapshots.git").display());
        let place = if shares { "--no-pager" } else { &apart };
        let refs = fixture.git(&[place, "for-each-ref", "--format=%(objectname)", "refs/stagepost"]);
        assert!(refs.contains(snapshot.commit.as_str()), "{refs}");
        assert_eq!(fixture.git(&["for-each-ref", "refs/stagepost"]).is_empty(), !shares, "{kind}");
        assert_eq!(snapshot.files.added, 1);
    }
}

#[test]
fn filters_run_where_the_user_names_them() {
    let fixture = Fixture::new();
    fixture.git(&["config", "--global", "filter.upper.clean", "tr a-z A-Z"]);
    fixture.git(&["config", "--global", "filter.upper.smudge", "tr A-Z a-z"]);
    fixture.write(".gitattributes", "*.up filter=upper\n").write("x.up", "hello\n");
    let snapshot = fixture.assert_exact();
    assert!(snapshot.notes.is_empty());
    let blob = fixture.git(&["rev-parse", &format!("{}:x.up", snapshot.tree)]);
    let snapshots = fixture.open();
    let back = snapshots.to_worktree(&"x.up".into(), EntryMode::File, &blob.parse().unwrap()).unwrap();
    assert_eq!(back, b"hello\n");
}

#[test]
fn a_filter_that_only_the_repository_names_or_that_fails_keeps_the_raw_bytes_and_is_noted() {
    for (scope, command) in [("--local", "touch ran; tr a-z A-Z"), ("--global", "false")] {
        let fixture = Fixture::new();
        fixture.git(&["config", scope, "filter.evil.clean", command]);
        fixture.git(&["config", scope, "filter.evil.required", "true"]);
        fixture.write(".gitattributes", "*.up filter=evil\n").write("x.up", "hello\n");
        for way in [Way::Fastest, Way::GitProgram] {
            let snapshot = fixture
                .open_as(&fixture.root, Keep::Repository, way)
                .capture(&id(), &Capture::default())
                .unwrap();
            assert_eq!(
                fixture.git(&["show", &format!("{}:x.up", snapshot.tree)]),
                "hello",
                "{scope} {way:?}"
            );
            assert!(!fixture.root.join("ran").exists(), "{way:?} ran what the repository named");
            assert_eq!(snapshot.notes.len(), 1, "{scope} {way:?} {:?}", snapshot.notes);
        }
    }
}

#[test]
fn large_files_are_listed_and_left_out() {
    let fixture = Fixture::new();
    fixture.write("big", vec![b'x'; 2000]).write("a.txt", vec![b'y'; 3000]).write("small", "x");
    for way in [Way::Fastest, Way::GitProgram] {
        let options = Capture { max_file_size: 1000, ..Capture::default() };
        let snapshot =
            fixture.open_as(&fixture.root, Keep::Repository, way).capture(&id(), &options).unwrap();
        let skipped: Vec<_> =
            snapshot.skipped.iter().map(|skipped| (skipped.path.to_string(), skipped.size)).collect();
        assert_eq!(skipped, [("a.txt".to_owned(), 3000), ("big".to_owned(), 2000)], "{way:?}");
        let names = fixture.git(&["ls-tree", "-r", "--name-only", snapshot.tree.as_str()]);
        assert!(
            names.contains("small") && !names.contains("big") && !names.contains("a.txt"),
            "{way:?} {names}"
        );
    }
}

#[test]
fn pipes_and_sockets_are_listed_and_left_out() {
    let fixture = Fixture::new();
    fixture.write(".gitignore", "ignored*\n").write("ignored/x", "x").write("new/x", "x");
    let pipe = |path: &str| {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            fixture.root.join(path),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap()
    };
    ["pipe", "dir/pipe", "new/pipe", "ignored-pipe", "ignored/pipe"].into_iter().for_each(pipe);
    let _socket = std::os::unix::net::UnixListener::bind(fixture.root.join("s")).unwrap();
    for way in [Way::Fastest, Way::GitProgram, Way::Fastest] {
        let snapshots = fixture.open_as(&fixture.root, Keep::Repository, way);
        let snapshot = snapshots.capture(&id(), &Capture::default()).unwrap();
        let skipped: Vec<_> = snapshot.skipped.iter().map(|one| (one.path.to_string(), one.reason)).collect();
        let expected =
            ["dir/pipe", "new/pipe", "pipe", "s"].map(|name| (name.to_owned(), SkipReason::Special));
        assert_eq!(skipped, expected, "{way:?}");
    }
    fixture.assert_exact();
}

#[test]
fn ignored_files_come_along_when_they_are_asked_for() {
    let fixture = Fixture::new();
    fixture
        .write(".gitignore", "*.env\nout/\n")
        .write("x.env", "secret")
        .write("out/a", "1")
        .write("out/b", "2");
    let before = fixture.assert_exact();
    let options =
        Capture { include_ignored: vec!["out".into()], force: vec!["x.env".into()], ..Capture::default() };
    let snapshot = fixture.open().capture(&id(), &options).unwrap();
    let included: Vec<_> = snapshot.included.iter().map(ToString::to_string).collect();
    assert_eq!(included, ["out/a", "out/b", "x.env"]);
    assert_eq!(fixture.git(&["show", &format!("{}:out/b", snapshot.tree)]), "2");
    assert_eq!(fixture.assert_exact().tree, before.tree, "the next one is without them");
}

#[test]
fn git_is_not_asked_about_each_ignored_file_by_itself() {
    let fixture = Fixture::new();
    fixture.write(".gitignore", "out/\n");
    let force: Vec<_> = (0..300).map(|number| RepoPath::from(format!("out/{number}").as_str())).collect();
    for path in &force {
        fixture.write(path.to_string(), path.to_string());
    }
    let (program, calls) = (fixture.base().join("git"), fixture.base().join("calls"));
    fs::write(&program, format!("#!/bin/sh\necho >> '{}'\nexec git \"$@\"\n", calls.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let snapshots = Snapshots::open(Open {
        root: fixture.root.clone(),
        state_dir: fixture.root.join(".git/stagepost"),
        keep: Keep::Repository,
        git: GitProgram::new(program, fixture.environment()),
        exclude: vec![],
        way: Way::Fastest,
    });
    let options = Capture { force: force.clone(), ..Capture::default() };
    let snapshot = snapshots.unwrap().capture(&id(), &options).unwrap();
    assert_eq!(snapshot.included.len(), force.len());
    let calls = fs::read_to_string(calls).unwrap().lines().count();
    assert!(calls < 100, "{calls} times");
}

#[test]
fn our_own_files_are_never_in_a_snapshot() {
    let fixture = Fixture::new();
    let before = fixture.assert_exact();
    fixture.write(".stagepost/store", "ours");
    assert_eq!(fixture.capture().tree, before.tree);
    let plumbing = fixture.open_as(&fixture.root, Keep::Repository, Way::GitProgram);
    assert_eq!(plumbing.capture(&id(), &Capture::default()).unwrap().tree, before.tree);
}

#[test]
fn without_git_a_private_repository_serves_and_no_git_folder_appears() {
    let fixture = Fixture::bare();
    fixture.write("a", "x").write("dir/b", "y").write(".gitignore", "*.log\n").write("c.log", "z");
    let snapshots = fixture.open();
    let first = snapshots.capture(&id(), &Capture::default()).unwrap();
    assert_eq!((first.files.total, first.files.added, first.head.is_none()), (3, 3, true));
    fixture.write("a", "changed").remove("dir/b");
    let second = snapshots.capture(&id(), &Capture::default()).unwrap();
    assert_eq!(second.files.total, 2);
    snapshots.check(&first).unwrap();
    snapshots.check(&second).unwrap();
    let plumbed = fixture.open_as(&fixture.root, Keep::Private, Way::GitProgram);
    assert_eq!(plumbed.capture(&id(), &Capture::default()).unwrap().tree, second.tree);
    assert!(!fixture.root.join(".git").exists());
}

#[test]
fn a_private_store_leaves_the_repository_without_a_trace() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "changed").write("new", "x");
    let objects = fixture.git(&["count-objects", "-v"]);
    let snapshots = fixture.open_as(&fixture.root, Keep::Private, Way::Fastest);
    let snapshot = snapshots.capture(&id(), &Capture::default()).unwrap();
    assert_eq!(snapshot.tree.as_str(), fixture.oracle());
    assert_eq!(fixture.git(&["count-objects", "-v"]), objects);
    assert_eq!(fixture.git(&["for-each-ref", "refs/stagepost"]), "");
    snapshots.check(&snapshot).unwrap();
    fixture.git(&["commit", "-qam", "elsewhere"]);
    fixture.git(&["reset", "-q", "--hard", "HEAD~1"]);
    fixture.git(&["reflog", "expire", "--expire=now", "--all"]);
    fixture.git(&["gc", "-q", "--prune=now"]);
    snapshots.check(&snapshot).unwrap();
}

#[test]
fn what_cannot_be_converted_is_kept_raw_and_noted() {
    let fixture = Fixture::new();
    fixture
        .write(".gitattributes", "*.u16 working-tree-encoding=UTF-16\n")
        .write("bad.u16", b"a\0b")
        .write("fine", "x");
    for way in [Way::Fastest, Way::GitProgram] {
        let snapshots = fixture.open_as(&fixture.root, Keep::Repository, way);
        let snapshot = snapshots.capture(&id(), &Capture::default()).unwrap();
        let changes = snapshots.objects().diff_trees(None, Some(&snapshot.tree)).unwrap();
        let bad = changes.iter().find(|change| change.path == "bad.u16".into()).unwrap().new.clone().unwrap();
        assert_eq!(snapshots.objects().blob(&bad.id).unwrap(), b"a\0b", "{way:?}");
        assert_eq!(snapshot.notes, ["the conversion of `bad.u16` failed: raw bytes kept"], "{way:?}");
    }
}
