//! Steps in code and in the shell.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use stagepost::flow::{Drive, Flows, Options, Outcome, Run, Source};
use stagepost::model::RunId;
use stagepost::process::{Cancel, Limits, Program};

use crate::{floor, folder, mean, open, payload, percentile};

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

fn size_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(
            |entry| {
                if entry.path().is_dir() { size_of(&entry.path()) } else { entry.metadata().unwrap().len() }
            },
        )
        .sum()
}

pub(crate) fn steps() {
    const STEPS: usize = 10_000;
    let (a, b) = (folder(), folder());
    let project = open(a.path());
    let bare = floor::open(&b.path().join("floor.db"));
    let run = Run::start(&project, &RunId::new("bench").unwrap(), Options::default()).unwrap();
    let before = size_of(a.path());
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    for number in 0..STEPS {
        let (text, name) = (payload(number), format!("step-{number}"));
        let copy = text.clone();
        floors.push(timed(|| floor::commit(&bare, text.as_bytes())));
        ours.push(timed(|| drop(run.step(&name, || Ok::<_, std::io::Error>(copy.clone())).unwrap())));
    }
    for (what, part) in [("first 1,000", 0..1000), ("all", 0..STEPS)] {
        let (mut ours, mut floors) = (ours[part.clone()].to_vec(), floors[part].to_vec());
        let (our, floor) = (percentile(&mut ours, 50), percentile(&mut floors, 50));
        println!(
            "{what:12} a step {our:>8.1?} (mean {:.1?})  bare commit {floor:>8.1?} (mean {:.1?})  ratio p50 {:.2}, mean {:.2}  (at most 1.3)",
            mean(&ours),
            mean(&floors),
            our.as_secs_f64() / floor.as_secs_f64(),
            mean(&ours).as_secs_f64() / mean(&floors).as_secs_f64()
        );
    }
    let tenth = |range: std::ops::Range<usize>| percentile(&mut ours[range].to_vec(), 50);
    println!("flat: first 500 {:.1?}, last 500 {:.1?}", tenth(0..500), tenth(STEPS - 500..STEPS));
    // The log of the database is emptied when it is closed.
    run.finish().unwrap();
    drop(project);
    let each = (size_of(a.path()) - before.min(size_of(a.path()))) as f64 / STEPS as f64;
    println!("on disk: {each:.0} bytes a step  (at most 1,800)");
    count_syncs();
}

/// Counts the syncs of 100 and of 200 steps: what the start costs falls out.
fn count_syncs() {
    let syncs = |steps: usize| {
        let folder = folder();
        let (log, root) = (folder.path().join("syncs"), folder.path().join("project"));
        std::fs::create_dir(&root).unwrap();
        let status = Command::new("strace")
            .args(["-f", "-e", "trace=fsync,fdatasync,msync,sync_file_range", "-o"])
            .arg(&log)
            .arg(std::env::current_exe().unwrap())
            .args(["--as-steps", root.to_str().unwrap(), &steps.to_string()])
            .status();
        status.ok().filter(|status| status.success())?;
        Some(std::fs::read_to_string(log).unwrap().lines().filter(|line| line.contains("sync(")).count())
    };
    match (syncs(100), syncs(200)) {
        (Some(few), Some(more)) => println!("syncs: {:.2} a step  (exactly 1)", (more - few) as f64 / 100.0),
        _ => println!("syncs: strace is not installed"),
    }
}

pub(crate) fn many() {
    const RUNS: usize = 50;
    const EACH: usize = 20;
    let per_step = |total: Duration| total.as_secs_f64() * 1e6 / (RUNS * EACH) as f64;
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..15 {
        let a = folder();
        let project = open(a.path());
        let ids: Vec<RunId> = (0..RUNS).map(|n| RunId::new(format!("run-{n}")).unwrap()).collect();
        let runs: Vec<Run<'_>> =
            ids.iter().map(|id| Run::start(&project, id, Options::default()).unwrap()).collect();
        ours.push(timed(|| {
            std::thread::scope(|threads| {
                for (n, run) in runs.iter().enumerate() {
                    threads.spawn(move || {
                        for step in 0..EACH {
                            let text = payload(n * 1000 + step);
                            run.step(&format!("step-{step}"), || Ok::<_, std::io::Error>(text.clone()))
                                .unwrap();
                        }
                    });
                }
            });
        }));
        floors.push(writer_thread(RUNS, EACH));
    }
    let (ours, floors) = (percentile(&mut ours, 50), percentile(&mut floors, 50));
    println!(
        "50 runs x 20 steps: {:.1} us a step; a bare writer thread {:.1} us; ratio {:.2}  (at most 30 where the floor is 19: 1.58)",
        per_step(ours),
        per_step(floors),
        ours.as_secs_f64() / floors.as_secs_f64()
    );
}

/// One thread that writes for all, as many rows in a commit as are waiting.
fn writer_thread(threads: usize, each: usize) -> Duration {
    let b = folder();
    let mut bare = floor::open(&b.path().join("floor.db"));
    let (queue, ready, over) =
        (Mutex::new(VecDeque::<(Vec<u8>, Sender<()>)>::new()), Condvar::new(), AtomicBool::new(false));
    timed(|| {
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                loop {
                    let mut waiting = queue.lock().unwrap();
                    while waiting.is_empty() && !over.load(Ordering::Relaxed) {
                        waiting = ready.wait_timeout(waiting, Duration::from_millis(1)).unwrap().0;
                    }
                    let round: Vec<_> = waiting.drain(..).collect();
                    drop(waiting);
                    if round.is_empty() {
                        return;
                    }
                    let (bodies, done): (Vec<_>, Vec<_>) = round.into_iter().unzip();
                    floor::commit_all(&mut bare, &bodies);
                    done.iter().for_each(|done| done.send(()).unwrap());
                }
            });
            std::thread::scope(|inner| {
                for n in 0..threads {
                    let (queue, ready) = (&queue, &ready);
                    inner.spawn(move || {
                        for step in 0..each {
                            let (send, receive) = channel();
                            queue.lock().unwrap().push_back((payload(n * 1000 + step).into_bytes(), send));
                            ready.notify_one();
                            receive.recv().unwrap();
                        }
                    });
                }
            });
            over.store(true, Ordering::Relaxed);
            writer.join().unwrap();
        });
    })
}

pub(crate) fn shell() {
    const STEPS: usize = 200;
    let steps: Vec<String> = (0..STEPS).map(|n| format!("  - {{id: s{n}, run: 'true'}}\n")).collect();
    let text = format!("name: bench\nview: false\nsteps:\n{}", steps.concat());
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    for round in 0..5 {
        let (a, b) = (folder(), folder());
        let project = open(a.path());
        let source = Source::read(&text, None).unwrap();
        let id = RunId::new(format!("run-{round}")).unwrap();
        ours.push(timed(|| {
            let drive = Drive::new(Cancel::new().unwrap());
            let outcome = Flows::of(&project).start(&id, source, None, drive).unwrap();
            assert_eq!(outcome, Outcome::Completed);
        }));
        let (bare, cancel) = (floor::open(&b.path().join("floor.db")), Cancel::new().unwrap());
        floors.push(timed(|| {
            for n in 0..STEPS {
                let program = Program::shell("true");
                let limits = Limits::default();
                let done = stagepost::process::run(&program, &limits, &cancel, &mut |_| {}, &mut |_, _| {});
                assert!(done.unwrap().ended.is_success());
                floor::commit(&bare, &payload(n).as_bytes()[..300]);
            }
        }));
    }
    let (ours, floors) =
        (percentile(&mut ours, 50) / STEPS as u32, percentile(&mut floors, 50) / STEPS as u32);
    println!(
        "a shell step {ours:.1?}, spawn + capture + commit {floors:.1?}, ratio {:.2}  (at most 1.3)",
        ours.as_secs_f64() / floors.as_secs_f64()
    );
}
