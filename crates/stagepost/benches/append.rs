//! A durable append beside its floor, with Criterion's statistics: `cargo bench -p stagepost --bench append`.
//! `report.rs` prints the same as ratios, and the other figures of the store.

#![allow(missing_docs, reason = "Criterion's macros make undocumented functions")]

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rusqlite::Connection;
use stagepost::store::{OpenOptions, SqliteStore};
use stagepost_testutil::{Story, message};

const WRITERS: usize = 8;

/// The floor: one bare commit of 1 KB, durable as ours.
fn bare(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("a database can be made");
    connection.busy_timeout(Duration::from_secs(20)).expect("a time-out can be set");
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, body BLOB NOT NULL)",
        )
        .expect("a table can be made");
    connection
}

fn commit(connection: &Connection, body: &[u8]) {
    let mut insert =
        connection.prepare_cached("INSERT INTO rows (body) VALUES (?1)").expect("the table is there");
    insert.execute([body]).expect("a row can be added");
}

fn payload() -> Vec<u8> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{{\"n\":{number},\"text\":\"{}\"}}", message(number, true)).into_bytes()
}

fn one_writer(criterion: &mut Criterion) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made");
    let options = OpenOptions { create: true, ..OpenOptions::default() };
    let store = SqliteStore::open(&folder.path().join("store"), &options).expect("a store can be made");
    let (story, floor) = (Story::in_order(&store), bare(&folder.path().join("floor.db")));
    let run = story.run("a");
    let mut group = criterion.benchmark_group("one writer, 1 KB");
    group.bench_function("a bare commit", |bench| {
        bench.iter_with_setup(payload, |body| commit(&floor, &body))
    });
    group.bench_function("a checkpoint", |bench| {
        bench.iter_with_setup(payload, |body| story.save_state(&run, body, None));
    });
    group.finish();
}

fn eight_writers(criterion: &mut Criterion) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made");
    let options = OpenOptions { create: true, ..OpenOptions::default() };
    let store = SqliteStore::open(&folder.path().join("store"), &options).expect("a store can be made");
    let story = Story::in_order(&store);
    let runs: Vec<_> = (0..WRITERS).map(|writer| story.run(&format!("run-{writer}"))).collect();
    let path = folder.path().join("floor.db");
    let connections: Vec<_> = (0..WRITERS).map(|_| Mutex::new(bare(&path))).collect();
    let mut group = criterion.benchmark_group("eight writers, 1 KB");
    group.throughput(Throughput::Elements(WRITERS as u64));
    group.bench_function("bare commits, a connection each", |bench| {
        bench.iter_custom(|rounds| {
            in_threads(rounds, |writer, rounds| {
                let connection = connections[writer].lock().expect("each has its own");
                (0..rounds).for_each(|_| commit(&connection, &payload()));
            })
        });
    });
    group.bench_function("checkpoints", |bench| {
        bench.iter_custom(|rounds| {
            in_threads(rounds, |writer, rounds| {
                (0..rounds).for_each(|_| drop(story.save_state(&runs[writer], payload(), None)));
            })
        });
    });
    group.finish();
}

fn in_threads(rounds: u64, work: impl Fn(usize, u64) + Sync) -> Duration {
    let started = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let work = &work;
            scope.spawn(move || work(writer, rounds));
        }
    });
    started.elapsed()
}

criterion_group! {
    name = append;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(4));
    targets = one_writer, eight_writers
}
criterion_main!(append);
