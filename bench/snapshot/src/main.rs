//! Snapshots beside git: 13 changes, and none, among 1,000, 10,000 and 50,000 files.
//!
//! ```text
//! cargo run --release -p stagepost-bench-snapshot [-- [--rounds N] [FILES…]]
//! ```
//!
//! Each way works on its own copy of the same repository and is a process of its own each time, start included:
//! ours, durable; the whole of `stagepost save` with its record in the store, durable, where the program lies beside
//! this one (`cargo build --release -p stagepost-cli`); the seeds' (`git add -A && git commit && git tag -a`, not
//! durable); git with a private index; `jj commit`, where jj is on the `PATH`; and, as the floor, a program that knows
//! every name, asks the kernel once about each with all processors, and does nothing else. Their order changes from
//! round to round. Read the ratios of the medians, not the times.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a program that prints, and may stop at any fault"
)]

use std::collections::{BTreeMap, BTreeSet};
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
    if args.next_if_eq("--look").is_some() {
        return look(Path::new(&args.next().unwrap()));
    }
    let rounds = args.next_if_eq("--rounds").and_then(|_| args.next()?.parse().ok()).unwrap_or(11);
    let mut sizes: Vec<usize> = args.filter_map(|size| size.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![1_000, 10_000, 50_000];
    }
    let rivals: Vec<Rival> = Rival::ALL.into_iter().filter(|rival| rival.is_here()).collect();
    for files in sizes {
        compare(files, rounds, &rivals);
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

/// Where the names are that [`look`] looks at: in each block of lines a folder, then names in it and one level below.
const NAMES: &str = ".git/names";

/// Asks the kernel about every file and folder, once, with as many threads as there are processors.
fn look(root: &Path) {
    let names = fs::read_to_string(root.join(NAMES)).unwrap();
    let groups: Vec<&str> = names.split_terminator("\n\n").collect();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for part in groups.chunks(groups.len().div_ceil(threads)) {
            scope.spawn(move || {
                for group in part {
                    let (folder, names) = group.split_once('\n').unwrap();
                    let folder = fs::File::open(root.join(folder)).unwrap();
                    for name in names.lines() {
                        // What was deleted since costs a look too.
                        let _ = rustix::fs::statat(&folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
                    }
                }
            });
        }
    });
}

/// Writes the names down for [`look`].
fn list_names(root: &Path) {
    let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in git(root, &["ls-files"], &[]).lines() {
        let (above, name) = file.rsplit_once('/').unwrap_or((".", file));
        let (group, folder) = above.rsplit_once('/').unwrap_or((".", above));
        let names = groups.entry(group.to_owned()).or_default();
        names.extend([folder.to_owned(), format!("{folder}/{name}")]);
    }
    let lines = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join("\n");
    let text: String =
        groups.into_iter().map(|(group, names)| format!("{group}\n{}\n\n", lines(names))).collect();
    fs::write(root.join(NAMES), text).unwrap();
}

#[derive(Clone, Copy, PartialEq)]
enum Rival {
    Ours,
    Save,
    Seeds,
    PrivateIndex,
    Jj,
    Looks,
}

impl Rival {
    const ALL: [Rival; 6] =
        [Rival::Ours, Rival::Save, Rival::Seeds, Rival::PrivateIndex, Rival::Jj, Rival::Looks];

    fn name(self) -> &'static str {
        match self {
            Rival::Ours => "capture",
            Rival::Save => "stagepost save",
            Rival::Seeds => "seeds",
            Rival::PrivateIndex => "private index",
            Rival::Jj => "jj commit",
            Rival::Looks => "a look at each",
        }
    }

    /// Says whether it can be measured here, and on standard error if it cannot.
    fn is_here(self) -> bool {
        let found = match self {
            Rival::Save => program().is_file(),
            Rival::Jj => Command::new("jj").arg("--version").stdout(Stdio::null()).status().is_ok(),
            _ => true,
        };
        if !found {
            eprintln!("`{}` is left out: the program is not here", self.name());
        }
        found
    }

    /// Prepares a copy of the repository.
    fn prepare(self, root: &Path) {
        match self {
            Rival::Save => run(Command::new(program()).current_dir(root).args(["--quiet", "init"])),
            Rival::Jj => run(jj(root).args(["git", "init", "--colocate"])),
            Rival::Looks => {
                list_names(root);
                String::new()
            }
            _ => String::new(),
        };
    }
}

/// The command line program, where cargo puts it beside this one.
fn program() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("stagepost")
}

fn compare(files: usize, rounds: usize, rivals: &[Rival]) {
    let folder = tempfile::tempdir().unwrap();
    let places: Vec<PathBuf> = rivals.iter().map(|rival| folder.path().join(rival.name())).collect();
    for (place, rival) in places.iter().zip(rivals) {
        make(place, files);
        rival.prepare(place);
    }
    let (mut changed, mut unchanged) = (vec![vec![]; rivals.len()], vec![vec![]; rivals.len()]);
    for round in 0..rounds + 2 {
        for turn in 0..rivals.len() {
            let number = (turn + round) % rivals.len();
            let (place, rival) = (&places[number], rivals[number]);
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
    report(files, "13 changed", rivals, changed);
    report(files, "none changed", rivals, unchanged);
}

/// Prints the medians, and how many times as long as our capture each takes.
fn report(files: usize, what: &str, rivals: &[Rival], times: Vec<Vec<f64>>) {
    let medians: Vec<f64> = times
        .into_iter()
        .map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        })
        .collect();
    let seeds = rivals.iter().position(|rival| *rival == Rival::Seeds).unwrap();
    println!("{files} files, {what}");
    for (rival, time) in rivals.iter().zip(&medians) {
        println!(
            "  {:16} {time:>8.1} ms   {:>5.2} x our capture   seeds' / this {:>5.2}",
            rival.name(),
            time / medians[0],
            medians[seeds] / time
        );
    }
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
            run(Command::new(std::env::current_exe().unwrap()).arg("--capture").arg(root));
        }
        Rival::Save => {
            run(Command::new(program()).current_dir(root).args(["--quiet", "save", "-m", "checkpoint"]));
        }
        Rival::Seeds => {
            git(root, &["add", "-A"], &[]);
            git(root, &["commit", "-q", "--allow-empty", "-m", "checkpoint"], &[]);
            git(root, &["tag", "-a", &format!("checkpoint-{number}"), "-m", "checkpoint"], &[]);
        }
        Rival::PrivateIndex => private_index(root, number),
        Rival::Jj => _ = run(jj(root).args(["commit", "--quiet", "-m", "checkpoint"])),
        Rival::Looks => {
            run(Command::new(std::env::current_exe().unwrap()).arg("--look").arg(root));
        }
    }
    begun.elapsed().as_secs_f64() * 1000.0
}

fn jj(root: &Path) -> Command {
    let mut command = Command::new("jj");
    command.current_dir(root).args(["--config", "user.name=bench", "--config", "user.email=bench@localhost"]);
    command
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
    command.envs(variables.iter().map(|(name, value)| (name, value))).args(args);
    run(&mut command)
}

/// Runs a program to its end, which must be a good one.
fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
