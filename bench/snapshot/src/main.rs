//! Snapshots beside git: 13 changes, and none, among 1,000, 10,000 and 50,000 files.
//!
//! ```text
//! cargo run --release -p stagepost-bench-snapshot [-- [--rounds N] [FILES…]]
//! ```
//!
//! Each way works on its own copy of the same repository and is a process of its own each time, start included:
//! ours, durable; the seeds' (`git add -A && git commit && git tag -a`, not durable); git with a private index.
//! Their order changes from round to round. Read the ratios of the medians, not the times.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that prints, and may stop at any fault"
)]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stagepost::model::CheckpointId;
use stagepost::snapshot::{Capture, GitProgram, Keep, Open, Snapshots, Way};

fn main() {
    let mut args = std::env::args().skip(1).peekable();
    if args.next_if_eq("--capture").is_some() {
        return capture(Path::new(&args.next().unwrap()));
    }
    let rounds = args.next_if_eq("--rounds").and_then(|_| args.next()?.parse().ok()).unwrap_or(11);
    let mut sizes: Vec<usize> = args.filter_map(|size| size.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![1_000, 10_000, 50_000];
    }
    println!(
        "{:>7}  {:10} {:>9} {:>9} {:>9}   {:>12} {:>12}",
        "files", "", "ours ms", "seeds ms", "index ms", "seeds / ours", "index / ours"
    );
    for files in sizes {
        compare(files, rounds);
    }
}

/// One capture, as a process of its own.
fn capture(root: &Path) {
    let git = GitProgram::new("git", std::env::vars_os());
    let open = Open {
        root: root.into(),
        state_dir: root.join(".git/stagepost"),
        keep: Keep::Repository,
        git,
        exclude: vec![],
        way: Way::Fastest,
    };
    let id = CheckpointId::from_uuid(uuid::Uuid::now_v7());
    Snapshots::open(open).unwrap().capture(&id, &Capture::default()).unwrap();
}

#[derive(Clone, Copy, PartialEq)]
enum Rival {
    Ours,
    Seeds,
    PrivateIndex,
}

const RIVALS: [Rival; 3] = [Rival::Ours, Rival::Seeds, Rival::PrivateIndex];

fn compare(files: usize, rounds: usize) {
    let folder = tempfile::tempdir().unwrap();
    let places: Vec<PathBuf> = (0..3).map(|number| folder.path().join(format!("copy{number}"))).collect();
    for place in &places {
        make(place, files);
    }
    let mut changed = [const { Vec::new() }; 3];
    let mut unchanged = [const { Vec::new() }; 3];
    for round in 0..rounds + 2 {
        for turn in 0..3 {
            let number = (turn + round) % 3;
            let (place, rival) = (&places[number], RIVALS[number]);
            change(place, files, round);
            std::thread::sleep(Duration::from_millis(30));
            let first = snapshot(rival, place, round * 2);
            let second = snapshot(rival, place, round * 2 + 1);
            // The first rounds fill caches.
            if round >= 2 {
                changed[number].push(first);
                unchanged[number].push(second);
            }
        }
    }
    report(files, "13 changed", changed);
    report(files, "none", unchanged);
}

fn report(files: usize, what: &str, mut times: [Vec<f64>; 3]) {
    let medians = times.each_mut().map(|times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    let [ours, seeds, index] = medians;
    println!(
        "{files:>7}  {what:10} {ours:>9.1} {seeds:>9.1} {index:>9.1}   {:>11.1}x {:>11.1}x",
        seeds / ours,
        index / ours
    );
}

/// A repository with nine files a folder, three levels deep.
fn make(root: &Path, files: usize) {
    for number in 0..files {
        let path = path_of(root, number);
        if number % 9 == 0 {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        let line = format!("line of file {number}, which is like many others\n");
        fs::write(path, line.repeat(1 + number % 40)).unwrap();
    }
    fs::write(root.join(".gitignore"), "*.log\ntarget/\n").unwrap();
    for args in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "first"], &["gc", "-q"]] {
        git(root, args, &[]);
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
        if path.exists() {
            fs::write(path, format!("changed in round {round}\n").repeat(20)).unwrap();
        }
    }
    for step in 0..2 {
        fs::write(root.join(format!("part1/new-{round}-{step}.txt")), format!("new {round} {step}\n"))
            .unwrap();
    }
    let gone = (round * 37 + 5) % files;
    let _ = fs::remove_file(path_of(root, gone));
}

fn snapshot(rival: Rival, root: &Path, number: usize) -> f64 {
    let begun = Instant::now();
    match rival {
        Rival::Ours => {
            let status = Command::new(std::env::current_exe().unwrap()).arg("--capture").arg(root).status();
            assert!(status.unwrap().success());
        }
        Rival::Seeds => {
            git(root, &["add", "-A"], &[]);
            git(root, &["commit", "-q", "--allow-empty", "-m", "checkpoint"], &[]);
            git(root, &["tag", "-a", &format!("checkpoint-{number}"), "-m", "checkpoint"], &[]);
        }
        Rival::PrivateIndex => private_index(root, number),
    }
    begun.elapsed().as_secs_f64() * 1000.0
}

fn private_index(root: &Path, number: usize) {
    let index = root.join(".git/private-index");
    if !index.exists() {
        fs::copy(root.join(".git/index"), &index).unwrap();
    }
    let variables = [("GIT_INDEX_FILE", index.into_os_string())];
    git(root, &["add", "-A"], &variables);
    let tree = git(root, &["write-tree"], &variables);
    let commit = git(root, &["commit-tree", "-p", "HEAD", "-m", "checkpoint", &tree], &variables);
    git(root, &["update-ref", &format!("refs/private/{number}"), &commit], &[]);
}

fn git(root: &Path, args: &[&str], variables: &[(&str, OsString)]) -> String {
    let mut command = Command::new("git");
    command.current_dir(root).args([
        "-c",
        "user.name=bench",
        "-c",
        "user.email=bench@localhost",
        "-c",
        "gc.auto=0",
    ]);
    command.envs(variables.iter().map(|(name, value)| (name, value))).args(args).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
