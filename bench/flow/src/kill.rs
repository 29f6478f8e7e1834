//! Killed in the middle, and many processes at once.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stagepost::flow::{Options, Run, RunState};
use stagepost::model::RunId;

use crate::{folder, open, payload, percentile};

/// One of our own processes: does `steps` steps and says which. In the body of step `stop` it waits to be killed.
pub(crate) fn act(way: &str, root: &Path, steps: usize, stop: Option<usize>) {
    let project = open(root);
    let name = if way == "--as-own" { format!("run-{}", std::process::id()) } else { "bench".to_owned() };
    let run = Run::open(&project, &RunId::new(name).unwrap(), Options::default()).unwrap();
    let mut times = Vec::new();
    for number in 0..steps {
        let begun = Instant::now();
        let text = run.step(&format!("step-{number}"), || {
            if way == "--as-told" {
                println!("{number}");
            }
            while stop == Some(number) {
                std::thread::sleep(Duration::from_secs(1));
            }
            Ok::<_, std::io::Error>(payload(number))
        });
        times.push(begun.elapsed());
        // Making what is compared with costs as much as reading it: a sample has to do.
        let text = text.unwrap();
        assert!(text.len() >= 1000 && (number % 97 != 0 || text == payload(number)), "step {number}");
    }
    run.finish().unwrap();
    if way == "--as-own" {
        let micros: Vec<String> = times.iter().map(|time| time.as_micros().to_string()).collect();
        println!("{}", micros.join(" "));
    }
}

fn command(way: &str, root: &Path, steps: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([way, root.to_str().unwrap(), &steps.to_string()]).stdout(Stdio::piped());
    command
}

pub(crate) fn kill() {
    for (at, steps, bar) in [(500, 1000, 20), (5000, 10_000, 50)] {
        let mut waits = Vec::new();
        for _ in 0..5 {
            let folder = folder();
            let mut first = command("--as-told", folder.path(), steps);
            let mut child = first.arg(at.to_string()).spawn().unwrap();
            let mut begun: Vec<usize> = Vec::new();
            for line in BufReader::new(child.stdout.take().unwrap()).lines() {
                begun.push(line.unwrap().parse().unwrap());
                // It is inside that step now.
                if begun.last() == Some(&at) {
                    child.kill().unwrap();
                }
            }
            child.wait().unwrap();
            let started = Instant::now();
            let mut child = command("--as-told", folder.path(), steps).spawn().unwrap();
            let mut first = None;
            for line in BufReader::new(child.stdout.take().unwrap()).lines() {
                first.get_or_insert_with(|| started.elapsed());
                begun.push(line.unwrap().parse().unwrap());
            }
            assert!(child.wait().unwrap().success());
            waits.push(first.unwrap());
            let count = |number: usize| begun.iter().filter(|other| **other == number).count();
            assert!((0..steps).all(|number| count(number) >= 1), "a step is missing");
            let again: Vec<usize> = (0..steps).filter(|number| count(*number) > 1).collect();
            assert_eq!(again, [at], "exactly the step that was running runs twice");
            let state = RunState::load(&open(folder.path()), &RunId::new("bench").unwrap()).unwrap();
            assert_eq!(state.steps.len(), steps);
        }
        println!(
            "killed inside step {} of {steps}: the next process begins that step after {:.1?} (worst {:.1?}; at most {bar} ms); \
             it alone ran twice, none is missing",
            at + 1,
            percentile(&mut waits, 50),
            percentile(&mut waits, 100)
        );
    }
}

pub(crate) fn processes() {
    const STEPS: usize = 300;
    let folder = folder();
    drop(open(folder.path()));
    let begun = Instant::now();
    let children: Vec<_> =
        (0..8).map(|_| command("--as-own", folder.path(), STEPS).spawn().unwrap()).collect();
    let mut times: Vec<Duration> = Vec::new();
    for child in children {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "a process failed");
        let text = String::from_utf8(done.stdout).unwrap();
        times.extend(text.split_whitespace().map(|word| Duration::from_micros(word.parse().unwrap())));
    }
    let (total, each) = (times.len(), begun.elapsed());
    println!(
        "8 processes, {total} steps in {each:.1?}: p50 {:.1?}, p99 {:.1?} (below 50 ms), worst {:.1?}, no step failed",
        percentile(&mut times, 50),
        percentile(&mut times, 99),
        percentile(&mut times, 100)
    );
}
