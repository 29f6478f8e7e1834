//! A hundred iterations of a plan of 1 MB of which 1% changes each time: how much room they take in the store, and how
//! long the program takes to compare two of them, start included.
//!
//! ```text
//! cargo build --release && cargo run --release -p stagepost-bench-plan [-- [--iterations N] [--program PATH]]
//! ```
//!
//! Three shapes of plans: many small sections of words, the same with noise that cannot be compressed, and one long list
//! of numbers. Changes are spread over the whole plan. The comparisons are the neighbours, the ends, and pairs between,
//! each a process of its own; read the worst.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that prints, and may stop at any fault"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stagepost::plan::{Part, Plan, Settings};
use stagepost::project::{Context, OWN_FOLDER, Place, Project};
use stagepost::snapshot::GitProgram;

const SIZE: usize = 1 << 20;

fn main() {
    let mut args = std::env::args().skip(1).peekable();
    let iterations = args.next_if_eq("--iterations").and_then(|_| args.next()?.parse().ok()).unwrap_or(100);
    let program = args.next_if_eq("--program").and_then(|_| args.next()).map_or_else(beside, PathBuf::from);
    println!("{iterations} iterations of 1 MB, 1% changed each time");
    println!("{:<10} {:>10} {:>12} {:>12} {:>12}", "plan", "store", "compare p50", "worst", "record p50");
    for shape in [Shape::Words, Shape::Noise, Shape::Numbers] {
        let home = tempfile::tempdir().unwrap();
        let (run, recording) = record(home.path(), shape, iterations);
        let comparing = compare(home.path(), &program, &run, iterations);
        let store = bytes_below(&home.path().join(OWN_FOLDER));
        println!(
            "{:<10} {:>7.2} MB {:>12} {:>12} {:>12}",
            format!("{shape:?}"),
            store as f64 / 1e6,
            millis(median(&comparing)),
            millis(*comparing.iter().max().unwrap()),
            millis(median(&recording))
        );
    }
}

/// The program that was built beside this one.
fn beside() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("stagepost")
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    Words,
    Noise,
    Numbers,
}

/// A plan that changes a little each time it is asked.
struct Changing {
    shape: Shape,
    state: u64,
    parts: Vec<Value>,
}

impl Changing {
    fn new(shape: Shape) -> Self {
        let mut new = Self { shape, state: 0x9e37_79b9_7f4a_7c15, parts: Vec::new() };
        let one = new.part().to_string().len() + 1;
        new.parts = (0..SIZE / one).map(|_| new.part()).collect();
        new
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn part(&mut self) -> Value {
        const WORDS: [&str; 16] = [
            "fade", "verse", "chorus", "bright", "slow", "left", "right", "pulse", "blue", "amber", "sweep",
            "hold", "rise", "beat", "dark", "outro",
        ];
        match self.shape {
            Shape::Numbers => json!(self.next() % 1_000_000),
            Shape::Words => {
                let words: Vec<&str> = (0..24).map(|_| WORDS[(self.next() % 16) as usize]).collect();
                json!({"start": self.next() % 300_000, "effect": words.join(" "), "channels": [1, 2, 3]})
            }
            Shape::Noise => {
                let noise: String = (0..24).map(|_| format!("{:016x}", self.next())).collect();
                json!({"start": self.next() % 300_000, "effect": noise})
            }
        }
    }

    fn change(&mut self) {
        for _ in 0..(self.parts.len() / 100).max(1) {
            let at = (self.next() % self.parts.len() as u64) as usize;
            self.parts[at] = self.part();
        }
    }

    fn plan(&self) -> Value {
        json!({"plan": {"sections": self.parts, "song_structure": {"tempo": 120}}})
    }
}

fn record(root: &Path, shape: Shape, iterations: u32) -> (String, Vec<Duration>) {
    let context = Context::system("bench", GitProgram::new("git", std::env::vars_os()));
    let project = Project::init(Place::without_git(root), Default::default(), context).unwrap();
    let settings = Settings { project_name: "bench".into(), output_dir: None, checkpoint: false };
    let plan = Plan::start_run(&project, &settings).unwrap();
    let mut changing = Changing::new(shape);
    let mut took = Vec::new();
    for number in 1..=iterations {
        let begun = Instant::now();
        plan.write_iteration_checkpoint(&Part::raw(), changing.plan(), number).unwrap();
        took.push(begun.elapsed());
        let score = json!({"evaluation": {"decision": "SOFT_FAIL", "score": 6, "feedback": "livelier"}});
        plan.write_iteration_checkpoint(&Part::evaluation(), score, number).unwrap();
        changing.change();
    }
    (plan.id().to_string(), took)
}

fn compare(root: &Path, program: &Path, run: &str, iterations: u32) -> Vec<Duration> {
    let middle = (iterations / 2).max(1);
    let pairs = [
        (1, 2.min(iterations)),
        (1, iterations),
        (middle, iterations),
        (1, middle),
        (iterations.saturating_sub(1).max(1), iterations),
    ];
    let mut took = Vec::new();
    for _ in 0..3 {
        for (a, b) in pairs {
            let begun = Instant::now();
            let mut command = Command::new(program);
            command.args(["plan", "compare", run, &a.to_string(), &b.to_string()]).current_dir(root);
            assert!(command.stdout(Stdio::null()).status().unwrap().success());
            took.push(begun.elapsed());
        }
    }
    took
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(
            |entry| {
                if entry.path().is_dir() {
                    bytes_below(&entry.path())
                } else {
                    entry.metadata().unwrap().len()
                }
            },
        )
        .sum()
}

fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted[sorted.len() / 2]
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
