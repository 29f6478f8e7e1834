//! Restores beside git: 13 changes taken back, among 1,000, 10,000 and 50,000 files, with what makes it reversible.
//!
//! ```text
//! cargo run --release -p stagepost-bench-restore [-- [--rounds N] [FILES…]]
//! ```
//!
//! Both ways work on their own copy of the same repository and are processes of their own each time, start
//! included. Ours: a safety snapshot, the plan, the files, read back and durable. The seeds': `git add -A && git
//! commit && git tag -a`, then `git reset --hard` to the first tag, not durable. Their order changes from round to
//! round. Read the ratios of the medians, not the times.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that prints, and may stop at any fault"
)]

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stagepost::model::{CheckpointId, Snapshot};
use stagepost::snapshot::restore::{Mode, Point, Restore};
use stagepost::snapshot::{Capture, GitProgram, Keep, Open, Snapshots, Way};

fn main() {
    let mut args = std::env::args().skip(1).peekable();
    if args.next_if_eq("--capture").is_some() {
        return capture(Path::new(&args.next().unwrap()));
    }
    if args.next_if_eq("--restore").is_some() {
        return restore(Path::new(&args.next().unwrap()));
    }
    let rounds = args.next_if_eq("--rounds").and_then(|_| args.next()?.parse().ok()).unwrap_or(11);
    let mut sizes: Vec<usize> = args.filter_map(|size| size.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![1_000, 10_000, 50_000];
    }
    println!("{:>7} {:>9} {:>9}   {:>12}", "files", "ours ms", "seeds ms", "seeds / ours");
    for files in sizes {
        compare(files, rounds);
    }
}

fn open(root: &Path) -> Snapshots {
    let open = Open {
        root: root.into(),
        state_dir: root.join(".git/stagepost"),
        keep: Keep::Repository,
        git: GitProgram::new("git", std::env::vars_os()),
        exclude: vec![],
        way: Way::Fastest,
    };
    Snapshots::open(open).unwrap()
}

fn take(snapshots: &Snapshots) -> Snapshot {
    let id = CheckpointId::from_uuid(uuid::Uuid::now_v7());
    snapshots.capture(&id, &Capture::default()).unwrap()
}

/// The snapshot to go back to; its record is kept beside the repository, as a store would.
fn capture(root: &Path) {
    let snapshot = take(&open(root));
    fs::write(root.with_extension("json"), serde_json::to_vec(&snapshot).unwrap()).unwrap();
}

/// One restore with its safety snapshot, as a process of its own.
fn restore(root: &Path) {
    let target: Snapshot = serde_json::from_slice(&fs::read(root.with_extension("json")).unwrap()).unwrap();
    let snapshots = open(root);
    let safety = take(&snapshots);
    let restore = Restore {
        from: Point::from(&safety),
        to: Point::from(&target),
        mode: Mode::Hard,
        paths: vec![],
        makes_branch: false,
    };
    let plan = snapshots.plan_restore(&restore).unwrap();
    let restored = snapshots.apply_restore(&plan, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(restored.written + restored.deleted > 0);
}

fn compare(files: usize, rounds: usize) {
    let folder = tempfile::tempdir().unwrap();
    let places = ["ours", "seeds"].map(|name| folder.path().join(name));
    for place in &places {
        make(place, files);
    }
    ours(&places[0], "--capture");
    git(&places[1], &["tag", "-a", "good", "-m", "good"]);
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..rounds + 2 {
        for turn in 0..2 {
            let number = (turn + round) % 2;
            change(&places[number], files, round);
            std::thread::sleep(Duration::from_millis(30));
            let begun = Instant::now();
            match number {
                0 => ours(&places[0], "--restore"),
                _ => seeds(&places[1], round),
            }
            // The first rounds fill caches.
            if round >= 2 {
                times[number].push(begun.elapsed().as_secs_f64() * 1000.0);
            }
            assert_eq!(git(&places[number], &["status", "--porcelain"]), "", "not restored");
        }
    }
    let [ours, seeds] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    println!("{files:>7} {ours:>9.1} {seeds:>9.1}   {:>11.1}x", seeds / ours);
}

fn ours(root: &Path, what: &str) {
    let status = Command::new(std::env::current_exe().unwrap()).arg(what).arg(root).status();
    assert!(status.unwrap().success());
}

fn seeds(root: &Path, round: usize) {
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "--allow-empty", "-m", "safety"]);
    git(root, &["tag", "-a", &format!("safety-{round}"), "-m", "safety"]);
    git(root, &["reset", "-q", "--hard", "good"]);
}

/// A repository with nine files a folder, three levels deep.
fn make(root: &Path, files: usize) {
    for number in 0..files {
        let path = path_of(root, number);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let line = format!("line of file {number}, which is like many others\n");
        fs::write(path, line.repeat(1 + number % 40)).unwrap();
    }
    fs::write(root.join(".gitignore"), "*.log\ntarget/\n").unwrap();
    for args in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "first"], &["gc", "-q"]] {
        git(root, args);
    }
}

fn path_of(root: &Path, number: usize) -> PathBuf {
    let folder = number / 9;
    root.join(format!("part{}/group{}/folder{folder}/file{number}.txt", folder % 7, folder % 61))
}

/// Ten files changed, two made, one deleted.
fn change(root: &Path, files: usize, round: usize) {
    for step in 0..10 {
        let path = path_of(root, (round * 131 + step * (files / 11)) % files);
        fs::write(path, format!("changed in round {round}\n").repeat(20)).unwrap();
    }
    for step in 0..2 {
        fs::write(root.join(format!("part1/new-{round}-{step}.txt")), format!("new {round} {step}\n"))
            .unwrap();
    }
    let gone = (round * 37 + 5) % files;
    let _ = fs::remove_file(path_of(root, gone));
}

fn git(root: &Path, args: &[&str]) -> String {
    let identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0"];
    let output = Command::new("git")
        .current_dir(root)
        .args(identity)
        .args(args)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
