//! What a capture must never do, and what must never harm a snapshot.

#![allow(clippy::unwrap_used)]

mod snapshot_believed;
mod snapshot_support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use snapshot_support::{Fixture, id};
use stagepost::model::{SkipReason, Snapshot};
use stagepost::snapshot::{
    Capture, CaptureError, Consent, GitProgram, Keep, Open, OpenError, Refusal, Secrets, Snapshots, Way,
};

/// Every file of the user's repository, but for objects and what is ours.
fn users_files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let ours = path.ends_with(".git/objects")
                || path.ends_with(".git/stagepost")
                || path.ends_with("refs/stagepost");
            match entry.file_type().unwrap() {
                _ if ours => {}
                kind if kind.is_dir() => collect(&path, files),
                _ => drop(files.insert(path.clone(), fs::read(&path).unwrap())),
            }
        }
    }
    let mut files = BTreeMap::new();
    collect(root, &mut files);
    files
}

/// Opens the snapshots of a folder whose git folder is elsewhere.
fn try_open(fixture: &Fixture, git_dir: &str) -> Result<Snapshots, OpenError> {
    Snapshots::open(Open {
        root: fixture.root.clone(),
        state_dir: fixture.root.join(git_dir).join("stagepost"),
        keep: Keep::Repository,
        git: GitProgram::new("git", fixture.environment()),
        exclude: vec![],
        way: Way::Fastest,
    })
}

#[test]
fn a_git_folder_within_the_work_tree_is_in_no_snapshot() {
    let fixture = Fixture::bare();
    fixture.write("git data/mine", "two").git(&["init", "-q", "--separate-git-dir", "git data/here"]);
    fixture.write("a.txt", "one");
    for way in [Way::Fastest, Way::GitProgram] {
        let snapshots = fixture.open_as(&fixture.root, Keep::Repository, way);
        let snapshot = snapshots.capture(&id(), &Capture::default()).unwrap();
        let held = snapshots.objects().diff_trees(None, Some(&snapshot.tree)).unwrap();
        let held: Vec<String> = held.iter().map(|change| change.path.to_string()).collect();
        assert_eq!(held, ["a.txt", "git data/mine"], "{way:?}");
    }
}

#[test]
fn a_bare_repository_is_refused_and_its_work_trees_are_not() {
    let source = Fixture::new();
    let fixture = Fixture::bare();
    fixture.git(&["clone", "-q", "--bare", source.root.to_str().unwrap(), ".bare"]);
    fixture.write(".git", "gitdir: ./.bare\n");
    assert!(matches!(try_open(&fixture, ".bare"), Err(OpenError::Bare { .. })));
    fixture.git(&["worktree", "add", "-q", "wt", "main"]);
    let linked = fixture.root.join("wt");
    let snapshots = fixture.open_as(&linked, Keep::Repository, Way::Fastest);
    let snapshot = snapshots.capture(&id(), &Capture::default()).unwrap();
    assert_eq!(snapshot.tree.as_str(), fixture.oracle_in(&linked));
}

/// Puts a pipe where something else was.
fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
}

#[test]
fn rules_that_are_a_pipe_are_named_and_not_waited_for() {
    for path in [".gitignore", "dir/.gitattributes"] {
        for way in [Way::Fastest, Way::GitProgram] {
            let fixture = Fixture::new();
            pipe(&fixture.root.join(path));
            let snapshots = fixture.open_as(&fixture.root, Keep::Repository, way);
            let options = Capture { deadline: Some(Duration::from_millis(500)), ..Capture::default() };
            let captured = snapshots.capture(&id(), &options);
            assert!(
                matches!(&captured, Err(CaptureError::Io { path: named, .. }) if named.ends_with(path))
                    // git passes over an attribute file that is none.
                    || captured.is_ok() && way == Way::GitProgram,
                "{path} {way:?}: {captured:?}"
            );
        }
    }
}

#[test]
fn files_of_git_that_are_a_pipe_are_named_and_not_waited_for() {
    let files = [
        "HEAD",
        "config",
        "index",
        "packed-refs",
        "info/exclude",
        "info/attributes",
        "objects/info/alternates",
    ];
    for file in files {
        let fixture = Fixture::new();
        pipe(&fixture.root.join(".git").join(file));
        let opened = try_open(&fixture, ".git");
        let Err(OpenError::Root { source, .. }) = &opened else { panic!("{file}: {opened:?}") };
        assert!(source.to_string().contains(file), "{source}");
    }
    let fixture = Fixture::new();
    let snapshots = fixture.open();
    pipe(&fixture.root.join(".git/refs/heads/main"));
    let captured = snapshots.capture(&id(), &Capture::default());
    assert!(matches!(captured, Err(CaptureError::Ref(_))), "{captured:?}");
}

#[test]
fn a_pipe_where_another_repository_would_be_is_a_file_that_cannot_be_held() {
    let fixture = Fixture::new();
    pipe(&fixture.root.join("dir/.git"));
    let snapshot = fixture.open().capture(&id(), &Capture::default()).unwrap();
    let held = fixture.open().objects().diff_trees(None, Some(&snapshot.tree)).unwrap();
    assert!(held.iter().any(|change| change.path == "dir/b.txt".into()));
}

#[test]
fn what_a_partial_clone_left_with_its_remote_is_no_damage_and_what_was_lost_is() {
    let source = Fixture::new();
    source.git(&["config", "uploadpack.allowFilter", "true"]);
    let fixture = Fixture::bare();
    let url = format!("file://{}", source.root.display());
    let clone = ["clone", "-q", "--filter=blob:none", "--no-checkout", &url, "."];
    fixture.git(&clone);
    fixture.git(&["sparse-checkout", "set", "--no-cone", "/a.txt"]);
    fixture.git(&["checkout", "-q"]);
    fixture.write("mine.txt", "only here\n");
    let snapshots = fixture.open();
    let snapshot = snapshots.capture(&id(), &Capture::default()).unwrap();
    snapshots.check(&snapshot).unwrap();
    for pack in
        fs::read_dir(fixture.root.join(".git/objects/pack")).unwrap().map(|entry| entry.unwrap().path())
    {
        let promised = pack.with_extension("promisor").exists();
        if !promised {
            fs::remove_file(pack).unwrap();
        }
    }
    assert!(fixture.open().check(&snapshot).is_err(), "our own objects are with nobody else");
}

const WAYS: [(Keep, Way); 3] =
    [(Keep::Repository, Way::Fastest), (Keep::Repository, Way::GitProgram), (Keep::Private, Way::Fastest)];

#[test]
fn nothing_of_the_users_moves() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "stashed");
    fixture.git(&["stash", "-q"]);
    fixture.git(&["tag", "-a", "-m", "t", "t"]);
    fixture
        .write("a.txt", "staged")
        .write(".git/hooks/post-checkout", "#!/bin/sh\ntouch ran\n")
        .executable(".git/hooks/post-checkout");
    fixture.git(&["add", "a.txt"]);
    fixture.write("a.txt", "not staged").write("new", "x").remove("dir/b.txt");
    let before = users_files(&fixture.root);
    for (keep, way) in WAYS {
        let snapshots = fixture.open_as(&fixture.root, keep, way);
        snapshots.capture(&id(), &Capture::default()).unwrap();
        snapshots.look(&Capture::default()).unwrap();
        assert_eq!(users_files(&fixture.root), before, "{keep:?} {way:?}");
    }
}

#[test]
fn snapshots_survive_gc_and_are_in_nobodys_way() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "changed").write("new", "x");
    let status = fixture.git(&["status", "--short"]);
    let snapshots = fixture.open();
    let first = snapshots.capture(&id(), &Capture::default()).unwrap();
    fixture.write("a.txt", "again");
    let second = snapshots.capture(&id(), &Capture::default()).unwrap();
    fixture.git(&["gc", "-q", "--prune=now"]);
    let fresh = fixture.open();
    fresh.check(&first).unwrap();
    fresh.check(&second).unwrap();
    assert_eq!(fixture.git(&["show", &format!("{}:a.txt", first.commit)]), "changed");
    assert_eq!(fixture.git(&["status", "--short"]), status);
    for args in [&["branch", "-a"][..], &["tag"], &["stash", "list"], &["log", "--oneline", "--branches"]] {
        assert!(!fixture.git(args).contains(&first.commit.as_str()[..7]), "{args:?}");
    }
    let clone = fixture.base().join("clone");
    fixture.git(&["clone", "-q", fixture.root.to_str().unwrap(), clone.to_str().unwrap()]);
    assert_eq!(fixture.git_in(&clone, &["for-each-ref", "refs/stagepost"]), "");
    assert_eq!(fixture.assert_exact().tree, second.tree);
}

#[test]
fn nothing_new_is_written_when_nothing_changed() {
    let fixture = Fixture::new();
    fixture.write("new", "x");
    std::thread::sleep(Duration::from_millis(20));
    let snapshots = fixture.open();
    let first = snapshots.capture(&id(), &Capture::default()).unwrap();
    let objects = fixture.git(&["count-objects", "-v"]);
    let second = snapshots.capture(&id(), &Capture::default()).unwrap();
    assert_eq!((&first.commit, fixture.git(&["count-objects", "-v"])), (&second.commit, objects));
}

#[test]
fn a_lost_state_or_lost_objects_are_noticed() {
    let fixture = Fixture::new();
    fixture.write("new", "untracked");
    let snapshots = fixture.open();
    snapshots.capture(&id(), &Capture::default()).unwrap();
    let state = fixture.root.join(".git/stagepost/snapshots/main/state");
    let mut bytes = fs::read(&state).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&state, bytes).unwrap();
    fixture.assert_exact();
    for name in fixture.git(&["for-each-ref", "--format=%(refname)", "refs/stagepost"]).lines() {
        fixture.git(&["update-ref", "-d", name]);
    }
    for entry in fs::read_dir(fixture.root.join(".git/objects/pack")).unwrap().map(Result::unwrap) {
        if entry.path().extension().is_some_and(|extension| extension == "keep") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    fixture.git(&["gc", "-q", "--prune=now"]);
    let snapshot = fixture.assert_exact();
    fixture.open().check(&snapshot).unwrap();
}

#[test]
fn damage_is_named() {
    let fixture = Fixture::new();
    fixture.write("dir/new", "will be lost");
    let snapshot = fixture.capture();
    let pack = fs::read_dir(fixture.root.join(".git/objects/pack")).unwrap().map(Result::unwrap);
    let pack =
        pack.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|e| e == "idx")).unwrap();
    fs::remove_file(pack).unwrap();
    assert!(fixture.open().check(&snapshot).is_err());
}

#[test]
fn released_snapshots_give_their_space_back() {
    let fixture = Fixture::new();
    let snapshots = fixture.open();
    let (old, new) = (id(), id());
    fixture.write("big", (0..200_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>());
    snapshots.capture(&old, &Capture::default()).unwrap();
    fixture.remove("big").write("a.txt", "newer");
    let kept = snapshots.capture(&new, &Capture::default()).unwrap();
    snapshots.release(&[old]).unwrap();
    fixture.git(&["gc", "-q", "--prune=now"]);
    let size: u64 = fixture
        .git(&["count-objects", "-v"])
        .lines()
        .find_map(|line| line.strip_prefix("size-pack: ")?.parse().ok())
        .unwrap();
    assert!(size < 100, "{size} KiB are left");
    fixture.open().check(&kept).unwrap();
    fixture.assert_exact();
}

#[test]
fn a_pack_that_somebody_was_killed_in_the_middle_of_stops_nobody_and_goes() {
    let fixture = Fixture::new();
    let snapshots = fixture.open();
    let packs = fixture.root.join(".git/objects/pack");
    let mut ids = vec![id(), id(), id()];
    for id in &ids {
        fixture.write("a.txt", id.to_string());
        snapshots.capture(id, &Capture::default()).unwrap();
    }
    for left in [&[".keep"][..], &[".keep", ".pack"]] {
        let name = format!("pack-{}", "a".repeat(40));
        left.iter().for_each(|end| fs::write(packs.join(format!("{name}{end}")), "stagepost\n").unwrap());
        snapshots.release(&[ids.remove(0)]).unwrap();
        left.iter().for_each(|end| assert!(!packs.join(format!("{name}{end}")).exists(), "{end}"));
    }
    fixture.git(&["fsck", "--no-dangling"]);
}

#[test]
fn a_private_repository_that_somebody_was_killed_in_the_making_of_is_made_anew() {
    let fixture = Fixture::new();
    let open = || fixture.open_as(&fixture.root, Keep::Private, Way::Fastest);
    let folder = fixture.root.join(".git/stagepost/snapshots.git");
    for left in ["", "ref: refs/he"] {
        open();
        fs::write(folder.join("HEAD"), left).unwrap();
        fs::write(folder.join("config"), "").unwrap();
        let snapshots = open();
        let ids = [id(), id()];
        for id in &ids {
            fixture.write("a.txt", id.to_string());
            snapshots.capture(id, &Capture::default()).unwrap();
        }
        snapshots.release(&ids[..1]).unwrap();
        fixture.git(&["--git-dir", folder.to_str().unwrap(), "fsck", "--no-dangling"]);
        fs::remove_dir_all(&folder).unwrap();
    }
}

fn count_packs(fixture: &Fixture) -> usize {
    let packs = fs::read_dir(fixture.root.join(".git/objects/pack")).unwrap().map(Result::unwrap);
    packs.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "pack")).count()
}

#[test]
fn many_snapshots_leave_few_packs_and_gc_asleep() {
    let fixture = Fixture::new();
    let snapshots = fixture.open();
    let mut all = Vec::new();
    for number in 0..60 {
        fixture.write("a.txt", format!("version {number}\n")).write(format!("dir/new{number}"), "x");
        all.push(snapshots.capture(&id(), &Capture::default()).unwrap());
    }
    let packs = count_packs(&fixture);
    assert!(packs <= 20, "{packs} packs");
    let fresh = fixture.open();
    all.iter().for_each(|snapshot| fresh.check(snapshot).unwrap());
    let gc =
        fixture.command(&fixture.root).args(["-c", "gc.autoPackLimit=3", "gc", "--auto"]).output().unwrap();
    assert!(gc.stderr.is_empty(), "{}", String::from_utf8_lossy(&gc.stderr));
}

#[test]
fn repositories_that_only_git_understands_have_few_packs_too_and_let_them_go() {
    for kind in ["--object-format=sha256", "--ref-format=reftable"] {
        let fixture = Fixture::unborn(&[kind]);
        let snapshots = fixture.open();
        let mut all = Vec::new();
        for number in 0..17 {
            fixture.write("a.txt", format!("version {number}\n"));
            let id = id();
            all.push((id, snapshots.capture(&id, &Capture::default()).unwrap()));
        }
        let packs = count_packs(&fixture);
        assert!(packs < 16, "{kind}: {packs} packs");
        all.iter().for_each(|(_, snapshot)| snapshots.check(snapshot).unwrap());
        let (last, pruned) = all.split_last().unwrap();
        snapshots.release(&pruned.iter().map(|(id, _)| *id).collect::<Vec<_>>()).unwrap();
        fixture.git(&["gc", "-q", "--prune=now"]);
        fixture.open().check(&last.1).unwrap();
        assert!(fixture.open().check(&pruned[0].1).is_err(), "{kind}: it is still there");
    }
}

#[test]
fn several_captures_at_once_all_succeed() {
    let fixture = Fixture::new();
    fixture.write("new", "x");
    std::thread::scope(|scope| {
        let work = || {
            let snapshots = fixture.open();
            for _ in 0..4 {
                snapshots.capture(&id(), &Capture::default()).unwrap();
            }
        };
        (0..6).for_each(|_| drop(scope.spawn(work)));
    });
    let refs = fixture.git(&["for-each-ref", "refs/stagepost/main"]);
    assert_eq!(refs.lines().count(), 25);
    fixture.git(&["fsck", "--strict"]);
}

#[test]
fn a_busy_lock_ends_in_an_error_that_can_be_tried_again() {
    let fixture = Fixture::new();
    fixture.capture();
    let lock = fs::File::open(fixture.root.join(".git/stagepost/snapshots/main/lock")).unwrap();
    lock.lock().unwrap();
    let options = Capture { patience: Duration::from_millis(50), ..Capture::default() };
    let error = fixture.open().capture(&id(), &options).unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
}

#[test]
fn folders_that_vanish_meanwhile_fail_no_capture() {
    let fixture = Fixture::new();
    let (snapshots, over) = (fixture.open(), AtomicBool::new(false));
    let failed: Vec<_> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for number in 0..5 {
                    fixture.write(format!("made/{number}/deep/f"), "x");
                }
                fixture.remove("made");
            }
        });
        let failed = (0..80).filter_map(|_| snapshots.capture(&id(), &Capture::default()).err()).collect();
        over.store(true, Ordering::Relaxed);
        failed
    });
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn a_file_that_is_written_meanwhile_is_never_torn() {
    let fixture = Fixture::new();
    let path = fixture.root.join("torn");
    let versions: Vec<Vec<u8>> = (0..8_u8).map(|version| vec![b'a' + version; 400_000]).collect();
    fs::write(&path, &versions[0]).unwrap();
    let (over, snapshots) = (AtomicBool::new(false), fixture.open());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for version in versions.iter().cycle().take(2000).take_while(|_| !over.load(Ordering::Relaxed)) {
                fs::write(&path, version).unwrap();
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        for _ in 0..10 {
            let snapshot = snapshots.capture(&id(), &Capture::default()).unwrap();
            let blob = fixture
                .command(&fixture.root)
                .args(["cat-file", "blob", &format!("{}:torn", snapshot.tree)])
                .output()
                .unwrap();
            // Empty is what it is for a moment, whenever it is written anew. A writer that has to wait in the middle of its
            // write leaves whole pages of one version for as long: that was in the file, and cannot be told from the end.
            let started = versions.iter().any(|version| version.starts_with(&blob.stdout));
            let whole = started && (blob.stdout.len() == 400_000 || blob.stdout.len().is_multiple_of(4096));
            assert!(
                whole || snapshot.notes.iter().any(|note| note.contains("torn")),
                "{} bytes",
                blob.stdout.len()
            );
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn homes_and_absurd_numbers_of_files_need_consent() {
    let fixture = Fixture::bare();
    let home = fixture.base().join("home");
    fs::write(home.join("x"), "x").unwrap();
    let refused = |error: CaptureError| match error {
        CaptureError::Refused { source, .. } => source,
        other => panic!("{other:?}"),
    };
    for way in [Way::Fastest, Way::GitProgram] {
        let snapshots = fixture.open_as(&home, Keep::Repository, way);
        assert_eq!(refused(snapshots.capture(&id(), &Capture::default()).unwrap_err()), Refusal::Home);
        let few = Capture { max_untracked: 1, ..Capture::default() };
        fixture.write("1", "").write("2", "");
        let snapshots = fixture.open_as(&fixture.root, Keep::Repository, way);
        let refusal = refused(snapshots.capture(&id(), &few).unwrap_err());
        assert_eq!(refusal, Refusal::TooManyUntracked { found: 2, limit: 1 }, "{way:?}");
        snapshots.capture(&id(), &Capture { consent: Consent::Given, ..few }).unwrap();
    }
}

#[test]
fn the_whole_file_system_needs_consent() {
    let fixture = Fixture::bare();
    let git = GitProgram::new("git", fixture.environment());
    for way in [Way::Fastest, Way::GitProgram] {
        let snapshots = Snapshots::open(Open {
            root: "/".into(),
            state_dir: fixture.base().join("state"),
            keep: Keep::Private,
            git: git.clone(),
            exclude: vec![],
            way,
        });
        // Should it begin after all, it does not go far.
        let options = Capture { deadline: Some(Duration::from_millis(50)), ..Capture::default() };
        let error = snapshots.unwrap().capture(&id(), &options).unwrap_err();
        let refused = matches!(error, CaptureError::Refused { source: Refusal::FileSystem, .. });
        assert!(refused, "{way:?}: {error:?}");
    }
}

#[test]
fn a_nearly_full_disk_is_noticed_before_anything_is_written() {
    let fixture = Fixture::new();
    fixture.write("new", "x");
    let before = fixture.git(&["count-objects", "-v"]);
    for (keep, way) in WAYS {
        let options = Capture { min_free: u64::MAX, ..Capture::default() };
        let error = fixture.open_as(&fixture.root, keep, way).capture(&id(), &options).unwrap_err();
        let full = matches!(
            error,
            CaptureError::Refused { source: Refusal::DiskFull { needed: u64::MAX, free: 1.. }, .. }
        );
        assert!(full, "{keep:?} {way:?}: {error:?}");
    }
    assert_eq!(fixture.git(&["count-objects", "-v"]), before);
    assert_eq!(fixture.git(&["for-each-ref", "refs/stagepost"]), "");
}

/// Says whether a process with this word among its arguments is alive.
fn is_running(word: &str) -> bool {
    let commands = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
    commands
        .filter_map(|path| fs::read(path).ok())
        .any(|line| line.split(|b| *b == 0).any(|w| w == word.as_bytes()))
}

#[test]
fn a_filter_that_hangs_is_ended_with_the_capture() {
    for (number, (keep, way)) in WAYS.into_iter().enumerate() {
        let fixture = Fixture::new();
        let seconds = format!("{}.{number}", 100_000 + std::process::id());
        // It starts another program, and neither cares for being asked.
        let line = format!("trap '' TERM; sleep {seconds} & wait; cat");
        fixture.git(&["config", "--global", "filter.slow.clean", &line]);
        fixture.write(".gitattributes", "*.slow filter=slow\n").write("x.slow", "hello\n");
        let options = Capture { deadline: Some(Duration::from_millis(1500)), ..Capture::default() };
        let error = fixture.open_as(&fixture.root, keep, way).capture(&id(), &options).unwrap_err();
        assert!(matches!(error, CaptureError::Deadline { .. }), "{keep:?} {way:?}: {error:?}");
        assert!(error.is_retryable());
        assert!(!is_running(&seconds), "{keep:?} {way:?} left a filter running");
        assert_eq!(fixture.git(&["for-each-ref", "refs/stagepost"]), "");
    }
}

#[test]
fn filters_know_no_more_of_the_environment_than_git_does() {
    // Whatever runs the tests has variables; these two it has for certain.
    let secret = std::env::vars().find(|(name, _)| name.starts_with("CARGO") || name.starts_with("NEXTEST"));
    let (name, _) = secret.unwrap();
    for (keep, way) in WAYS {
        let fixture = Fixture::new();
        fixture.git(&["config", "--global", "filter.env.clean", "env; pwd"]);
        fixture.write(".gitattributes", "*.e filter=env\n").write("deep/x.e", "hello\n");
        let snapshots = fixture.open_as(&fixture.root, keep, way);
        let snapshot = snapshots.capture(&id(), &Capture::default()).unwrap();
        let changes = snapshots.objects().diff_trees(None, Some(&snapshot.tree)).unwrap();
        let file =
            changes.iter().find(|change| change.path == "deep/x.e".into()).unwrap().new.clone().unwrap();
        let said = String::from_utf8(snapshots.objects().blob(&file.id).unwrap()).unwrap();
        let knows = |name: &str| said.lines().any(|line| line.starts_with(&format!("{name}=")));
        assert!(knows("PATH") && knows("HOME") && knows("GIT_DIR"), "{keep:?} {way:?}: {said}");
        assert!(!knows(&name), "{keep:?} {way:?} passed on {name}: {said}");
        assert!(said.ends_with(&format!("{}\n", fixture.root.display())), "{keep:?} {way:?}: {said}");
    }
}

#[test]
fn a_capture_that_takes_too_long_fails_as_a_whole() {
    let fixture = Fixture::new();
    fixture.write("new", "x");
    for (keep, way) in WAYS {
        let options = Capture { deadline: Some(Duration::ZERO), ..Capture::default() };
        let error = fixture.open_as(&fixture.root, keep, way).capture(&id(), &options).unwrap_err();
        assert!(matches!(error, CaptureError::Deadline { .. }), "{error:?}");
    }
    assert_eq!(fixture.git(&["for-each-ref", "refs/stagepost"]), "");
}

fn left_out(snapshot: &Snapshot) -> Vec<(String, SkipReason)> {
    snapshot.skipped.iter().map(|skipped| (skipped.path.to_string(), skipped.reason)).collect()
}

#[test]
fn secrets_that_git_does_not_track_are_left_out_and_listed() {
    for (keep, way) in WAYS {
        let fixture = Fixture::new();
        fixture.write("kept/.env", "tracked").commit("a tracked one");
        fixture.write(".env", "TOKEN=1").write("keys/server.pem", "private").write(".env.example", "TOKEN=");
        fixture.write("kept/.env", "tracked and changed").link("id_rsa", "elsewhere");
        let snapshots = fixture.open_as(&fixture.root, keep, way);
        let names = |snapshot: &Snapshot| -> Vec<String> {
            let changes = snapshots.objects().diff_trees(None, Some(&snapshot.tree)).unwrap();
            changes.iter().map(|change| change.path.to_string()).filter(|p| !p.ends_with("txt")).collect()
        };
        let secret = SkipReason::Secret;
        let both = vec![(".env".to_owned(), secret), ("keys/server.pem".to_owned(), secret)];
        let held = [".env.example", "id_rsa", "kept/.env", "link", "run.sh"];
        // The second one has a state to go by.
        for _ in 0..2 {
            let snapshot = snapshots.capture(&id(), &Capture::default()).unwrap();
            assert_eq!(left_out(&snapshot), both, "{keep:?} {way:?}");
            assert_eq!(names(&snapshot), held, "{keep:?} {way:?}");
        }
        let asked = Capture { secrets: Secrets::Include, ..Capture::default() };
        let snapshot = snapshots.capture(&id(), &asked).unwrap();
        assert_eq!(left_out(&snapshot), [], "{keep:?} {way:?}");
        assert_eq!(snapshot.tree.as_str(), fixture.oracle(), "{keep:?} {way:?}");
        let snapshot = snapshots.capture(&id(), &Capture::default()).unwrap();
        assert_eq!(left_out(&snapshot), both, "{keep:?} {way:?}: asked for once is not for ever");

        fixture.git(&["add", "-f", ".env"]);
        fixture.git(&["rm", "-q", "--cached", "kept/.env"]);
        let snapshot = snapshots.capture(&id(), &Capture::default()).unwrap();
        let now = vec![("kept/.env".to_owned(), secret), ("keys/server.pem".to_owned(), secret)];
        assert_eq!(left_out(&snapshot), now, "{keep:?} {way:?}: what is tracked counts");
    }
}

#[test]
fn a_file_that_is_a_secret_by_its_folder_is_left_out_unless_git_tracks_it() {
    for (keep, way) in WAYS {
        let fixture = Fixture::new();
        fixture.write("kept/.docker/config.json", "tracked").commit("second");
        fixture.write(".docker/config.json", "token").write("docker/config.json", "none");
        let snapshots = fixture.open_as(&fixture.root, keep, way);
        for _ in 0..2 {
            let snapshot = snapshots.capture(&id(), &Capture::default()).unwrap();
            let left: Vec<_> =
                snapshot.skipped.iter().map(|left| (left.path.to_string(), left.reason)).collect();
            assert_eq!(left, [(".docker/config.json".to_owned(), SkipReason::Secret)], "{keep:?} {way:?}");
            let held = snapshots.objects().diff_trees(None, Some(&snapshot.tree)).unwrap();
            let held: Vec<_> = held.iter().map(|change| change.path.to_string()).collect();
            let held: Vec<_> = held.iter().filter(|path| path.ends_with("config.json")).collect();
            assert_eq!(held, ["docker/config.json", "kept/.docker/config.json"], "{keep:?} {way:?}");
        }
    }
}

#[test]
fn hostile_configuration_runs_nothing() {
    let fixture = Fixture::new();
    let trap = format!("touch {}/ran", fixture.base().display());
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "diff.external",
        "gpg.program",
        "credential.helper",
        "filter.x.clean",
        "filter.x.smudge",
        "filter.x.process",
        "diff.x.textconv",
        "diff.x.command",
        "alias.ls-files",
        "alias.add",
        "sequence.editor",
        "uploadpack.packObjectsHook",
        "core.alternateRefsCommand",
    ] {
        fixture.git(&["config", key, &trap]);
    }
    fixture.git(&["config", "commit.gpgSign", "true"]);
    fixture.git(&["config", "core.hooksPath", "hooks"]);
    for hook in
        ["post-index-change", "reference-transaction", "pre-auto-gc", "post-rewrite", "fsmonitor-watchman"]
    {
        fixture
            .write(format!("hooks/{hook}"), format!("#!/bin/sh\n{trap}\n"))
            .executable(&format!("hooks/{hook}"));
    }
    fixture.write(".gitattributes", "* filter=x diff=x\n").write("a.txt", "changed").write("new", "x");
    for (keep, way) in WAYS {
        let snapshots = fixture.open_as(&fixture.root, keep, way);
        let snapshot = snapshots.capture(&id(), &Capture::default()).unwrap();
        snapshots.look(&Capture::default()).unwrap();
        snapshots.check(&snapshot).unwrap();
        let blob = snapshots.objects().diff_trees(None, Some(&snapshot.tree)).unwrap();
        let file = blob.iter().find(|change| change.path == "a.txt".into()).unwrap().new.clone().unwrap();
        assert_eq!(snapshots.to_worktree(&"a.txt".into(), file.mode, &file.id).unwrap(), b"changed");
        assert!(!fixture.base().join("ran").exists(), "{keep:?} {way:?} ran something");
    }
}

#[test]
fn links_in_place_of_folders_are_not_followed() {
    let fixture = Fixture::new();
    let outside = fixture.base().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("b.txt"), "secret").unwrap();
    fixture.capture();
    fixture.remove("dir").link("dir", "../outside");
    let snapshot = fixture.assert_exact();
    assert!(!fixture.git(&["ls-tree", "-r", snapshot.tree.as_str()]).contains("dir/"));
}

#[test]
fn a_look_writes_nothing_and_its_objects_can_be_read() {
    let fixture = Fixture::new();
    fixture.write("new", "looked at");
    let before = fixture.git(&["count-objects", "-v"]);
    for (keep, way) in WAYS {
        let snapshots = fixture.open_as(&fixture.root, keep, way);
        let look = snapshots.look(&Capture::default()).unwrap();
        assert_eq!(look.tree.as_str(), fixture.oracle());
        let change = look.changes.iter().find(|change| change.path == "new".into()).unwrap();
        assert_eq!(snapshots.objects().blob(&change.new.as_ref().unwrap().id).unwrap(), b"looked at");
        assert_eq!(fixture.git(&["count-objects", "-v"]), before, "{keep:?} {way:?}");
    }
    assert_eq!(fixture.git(&["for-each-ref", "refs/stagepost"]), "");
}

#[test]
fn what_a_killed_capture_left_behind_is_in_nobodys_way() {
    let fixture = Fixture::new();
    fixture.capture();
    let commit = fixture.git(&["rev-parse", "HEAD"]);
    // Killed before and after it wrote into its lock.
    for (held, new) in [("", "x"), (commit.as_str(), "y")] {
        fixture.write(".git/refs/stagepost/main/latest.lock", held).write("new", new);
        fixture
            .write(".git/stagepost/snapshots/main/quarantine-old/objects/x", "")
            .write(".git/stagepost/snapshots/main/state.new", "x");
        let snapshot = fixture.assert_exact();
        fixture.open().check(&snapshot).unwrap();
        assert!(!fixture.root.join(".git/refs/stagepost/main/latest.lock").exists());
    }
}

#[test]
fn snapshots_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<stagepost::snapshot::Snapshots>();
    shared::<stagepost::snapshot::Objects>();
}
