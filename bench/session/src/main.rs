//! `session create` beside bare git, and in a session that grows.
//!
//! ```text
//! cargo run --release -p stagepost-bench-session [-- [--rounds N] [--files N]]
//! ```
//!
//! First: 13 changes among 10,000 files, on the branch (durable), beside it (durable), and as the seeds do it
//! (`git add -A && git commit && git tag -a`, not durable). Each works on its own copy of the same repository and is a
//! process of its own each time, start included; their order changes from round to round. Then: `create` and `list`
//! in a session of 10 and of 1,000 checkpoints. Read the ratios of the medians, not the times.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that prints, and may stop at any fault"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stagepost::model::{Phase, RunId};
use stagepost::project::{Context, Place, Project, Settings};
use stagepost::session::{NewCheckpoint, Session};
use stagepost::snapshot::GitProgram;

fn main() {
    let mut args = std::env::args().skip(1).peekable();
    if let Some(way) = args.next_if(|arg| arg.starts_with("--as-")) {
        return act(&way, Path::new(&args.next().unwrap()));
    }
    let rounds = args.next_if_eq("--rounds").and_then(|_| args.next()?.parse().ok()).unwrap_or(11);
    let files = args.next_if_eq("--files").and_then(|_| args.next()?.parse().ok()).unwrap_or(10_000);
    beside_git(files, rounds);
    growing(rounds);
}

fn open(root: &Path) -> Project {
    let place = Place::find(root).unwrap().unwrap();
    let context = Context::system("bench", GitProgram::new("git", std::env::vars_os()));
    Project::init(place, Settings::default(), context).unwrap()
}

/// One command, as a process of its own.
fn act(way: &str, root: &Path) {
    let project = open(root);
    let session = Session::open_or_start(&project, &RunId::new("bench").unwrap()).unwrap();
    if way == "--as-list" {
        println!("{}", session.list_json().unwrap());
        return;
    }
    let new =
        NewCheckpoint { on_branch: way == "--as-branch", ..NewCheckpoint::new(Phase::Implement, "bench") };
    session.create(new).unwrap();
}

const WAYS: [&str; 3] = ["--as-branch", "--as-beside", "git"];

fn beside_git(files: usize, rounds: usize) {
    let folder = tempfile::tempdir().unwrap();
    let places = WAYS.map(|way| folder.path().join(way.trim_start_matches('-')));
    places.iter().for_each(|place| make(place, files));
    let mut times = [const { Vec::new() }; 3];
    for round in 0..rounds + 2 {
        for turn in 0..3 {
            let number = (turn + round) % 3;
            change(&places[number], files, round);
            std::thread::sleep(Duration::from_millis(30));
            let time = measure(|| run(WAYS[number], &places[number], round));
            // The first rounds fill caches.
            if round >= 2 {
                times[number].push(time);
            }
        }
    }
    let [branch, beside, git] = times.map(median);
    println!("{files} files, 13 changed");
    println!("  git add, commit, tag   {git:>8.1} ms");
    println!("  session create         {branch:>8.1} ms   {:>5.2} x git's (at most 1.2)", branch / git);
    println!("  session create beside  {beside:>8.1} ms   {:>5.2} x faster (at least 3)", git / beside);
}

fn growing(rounds: usize) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("growing");
    make(&root, 100);
    let mut medians = Vec::new();
    for (size, way) in [(10, "--as-beside"), (1000, "--as-beside")] {
        grow(&root, size);
        let list = median((0..rounds).map(|round| measure(|| run("--as-list", &root, round))).collect());
        let create = median(
            (0..rounds)
                .map(|round| {
                    fs::write(root.join("changing.txt"), format!("{size} {round}")).unwrap();
                    measure(|| run(way, &root, round))
                })
                .collect(),
        );
        let branch = median(
            (0..rounds)
                .map(|round| {
                    fs::write(root.join("changing.txt"), format!("on {size} {round}")).unwrap();
                    measure(|| run("--as-branch", &root, round))
                })
                .collect(),
        );
        println!(
            "session of {size:>4}: list {list:.1} ms, create {branch:.1} ms, create beside {create:.1} ms"
        );
        medians.push((list, branch, create));
    }
    let ((list, branch, beside), (more_list, more_branch, more_beside)) = (medians[0], medians[1]);
    println!(
        "  1000 / 10: list {:.2}, create {:.2}, create beside {:.2} (each at most 2)",
        more_list / list,
        more_branch / branch,
        more_beside / beside
    );
}

fn grow(root: &Path, size: usize) {
    let project = open(root);
    let session = Session::open_or_start(&project, &RunId::new("bench").unwrap()).unwrap();
    for number in session.list().unwrap().len()..size {
        fs::write(root.join("changing.txt"), number.to_string()).unwrap();
        let new = NewCheckpoint { on_branch: false, ..NewCheckpoint::new(Phase::Plan, "grow") };
        session.create(new).unwrap();
    }
}

fn measure(act: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    act();
    begun.elapsed().as_secs_f64() * 1000.0
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn run(way: &str, root: &Path, number: usize) {
    if way == "git" {
        git(root, &["add", "-A"]);
        git(root, &["commit", "-q", "-m", "checkpoint"]);
        return git(root, &["tag", "-a", &format!("checkpoint-{number}"), "-m", "checkpoint"]);
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let status = command.arg(way).arg(root).stdout(Stdio::null()).status();
    assert!(status.unwrap().success());
}

/// A repository with nine files a folder, three levels deep.
fn make(root: &Path, files: usize) {
    for number in 0..files {
        let path = path_of(root, number);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let line = format!("line of file {number}, which is like many others\n");
        fs::write(path, line.repeat(1 + number % 40)).unwrap();
    }
    git(root, &["init", "-q"]);
    for (key, value) in [("user.name", "bench"), ("user.email", "bench@localhost"), ("gc.auto", "0")] {
        git(root, &["config", key, value]);
    }
    for args in [&["add", "-A"][..], &["commit", "-q", "-m", "first"], &["gc", "-q"]] {
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
        if path.exists() {
            fs::write(path, format!("changed in round {round}\n").repeat(20)).unwrap();
        }
    }
    for step in 0..2 {
        let new = root.join(format!("part1/new-{round}-{step}.txt"));
        fs::write(new, format!("new {round} {step}\n")).unwrap();
    }
    let _ = fs::remove_file(path_of(root, (round * 37 + 5) % files));
}

fn git(root: &Path, args: &[&str]) {
    let output = Command::new("git").current_dir(root).args(args).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}
