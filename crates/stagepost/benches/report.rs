//! What the store costs, beside the floor in the same run: `cargo bench -p stagepost --bench report [part…]`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people to read")]

use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use stagepost::model::{BlobRef, RunId};
use stagepost::store::{OpenOptions, Query, SqliteStore, Store};
use stagepost_testutil::{Story, conversation, message};

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let parts: [(&str, fn()); 6] = [
        ("append", append),
        ("writers", writers),
        ("growing", growing),
        ("written", written),
        ("opening", opening),
        ("audit", audit),
    ];
    for (name, part) in parts {
        if asked.is_empty() || asked.iter().any(|one| one == name) {
            println!("\n== {name}");
            part();
        }
    }
}

fn store(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder, &OpenOptions { create: true, busy: Duration::from_secs(10) }).unwrap()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// The floor: a table of rows of 1 KB, one commit each.
fn floor(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(120)).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, body BLOB NOT NULL)",
        )
        .unwrap();
    connection
}

fn commit(connection: &Connection, body: &[u8]) {
    connection.prepare_cached("INSERT INTO rows (body) VALUES (?1)").unwrap().execute([body]).unwrap();
}

fn payload(number: usize) -> Vec<u8> {
    format!("{{\"n\":{number},\"text\":\"{}\"}}", message(number, true)).into_bytes()
}

fn percentile(times: &mut [Duration], share: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * share / 100]
}

fn told(what: &str, times: &mut [Duration]) -> f64 {
    let (middle, high) = (percentile(times, 50), percentile(times, 99));
    let mean = times.iter().sum::<Duration>() / times.len() as u32;
    println!("{what:38} mean {mean:>9.1?}  p50 {middle:>9.1?}  p99 {high:>9.1?}");
    middle.as_secs_f64()
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

/// One writer, in turns with the floor, so that both see the same disk.
fn append() {
    const ROUNDS: usize = 3000;
    let (a, b) = (folder(), folder());
    let (store, bare) = (store(&a.path().join("store")), floor(&b.path().join("floor.db")));
    let story = Story::in_order(&store);
    let run = story.run("a");
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    for number in 0..ROUNDS {
        let body = payload(number);
        let copy = body.clone();
        ours.push(timed(|| drop(story.save_state(&run, copy, None))));
        floors.push(timed(|| commit(&bare, &body)));
    }
    let (ours_mean, floor_mean) = (ours.iter().sum::<Duration>(), floors.iter().sum::<Duration>());
    let ours = told("a checkpoint with 1 KB", &mut ours);
    let floor = told("a bare commit of 1 KB", &mut floors);
    println!(
        "ratio p50 {:.2}  mean {:.2}   (at most 1.5)",
        ours / floor,
        ours_mean.as_secs_f64() / floor_mean.as_secs_f64()
    );
}

fn writers() {
    // Eight write enough for both logs to go round several times: their first turn makes the file grow, which costs
    // more. Of fifty bare committers some would wait for minutes.
    for (threads, each) in [(8, 2000), (50, 100)] {
        let (a, b) = (folder(), folder());
        let store = store(&a.path().join("store"));
        let story = Story::in_order(&store);
        let runs: Vec<RunId> = (0..threads).map(|n| story.run(&format!("run-{n}"))).collect();
        let path = b.path().join("floor.db");
        drop(floor(&path));
        let ours = all_at_once(
            threads,
            |thread, number| {
                story.save_state(&runs[thread], payload(thread * 10_000 + number), None);
            },
            each,
        );
        let connections: Vec<_> = (0..threads).map(|_| std::sync::Mutex::new(floor(&path))).collect();
        let floors = all_at_once(
            threads,
            |thread, number| {
                commit(&connections[thread].lock().unwrap(), &payload(number));
            },
            each,
        );
        println!(
            "{threads} writers: {ours:.0} checkpoints/s, {floors:.0} bare commits/s on own connections, ratio {:.1}  (at least 3)",
            ours / floors
        );
    }
}

/// Runs `work` so often in each thread and returns how often a second.
fn all_at_once(threads: usize, work: impl Fn(usize, usize) + Sync, each: usize) -> f64 {
    let start = Barrier::new(threads + 1);
    let started = std::thread::scope(|scope| {
        for thread in 0..threads {
            let (work, start) = (&work, &start);
            scope.spawn(move || {
                start.wait();
                (0..each).for_each(|number| work(thread, number));
            });
        }
        start.wait();
        Instant::now()
    });
    (threads * each) as f64 / started.elapsed().as_secs_f64()
}

fn growing() {
    const STEPS: usize = 500;
    for noise in [false, true] {
        let place = folder();
        let path = place.path().join("store");
        let (mut base, mut times): (Option<BlobRef>, Vec<Duration>) = (None, Vec::new());
        {
            let store = store(&path);
            let story = Story::in_order(&store);
            let run = story.run("a");
            let states: Vec<_> = (1..=STEPS).map(|step| conversation(step, noise)).collect();
            for state in states {
                let started = Instant::now();
                base = Some(story.save_state(&run, state, base).content.artifacts[0].blob);
                times.push(started.elapsed());
            }
            println!("with the log: {} bytes", store.usage().unwrap().bytes);
        }
        let last = conversation(STEPS, noise);
        let size = store(&path).usage().unwrap().bytes;
        println!(
            "noise {noise}: {size} bytes on disk, {:.2} of the final list  (at most 3)",
            size as f64 / last.len() as f64
        );
        let early = told("steps 1 to 20", &mut times[..20].to_vec());
        let late = told("steps 481 to 500", &mut times[480..].to_vec());
        println!("step 500 to step 5: {:.2}  (at most 3)", late / early);
        read_latest(&path, &base.unwrap(), &last, place.path());
    }
}

/// Reads the latest state for the first time, with and without opening the store, and again from the same handle.
fn read_latest(path: &Path, blob: &BlobRef, bytes: &[u8], place: &Path) {
    let copy = place.join("copy.db");
    commit(&floor(&copy), bytes);
    let plain = |connection: &Connection| {
        let mut statement = connection.prepare_cached("SELECT body FROM rows WHERE id = 1").unwrap();
        let read: Vec<u8> = statement.query_row([], |row| row.get(0)).unwrap();
        assert_eq!(read.len(), bytes.len());
    };
    let (mut fresh, mut fresh_plain, mut warm, mut warm_plain) = (vec![], vec![], vec![], vec![]);
    let (mut first, mut first_plain) = (vec![], vec![]);
    for _ in 0..50 {
        fresh.push(timed(|| assert_eq!(store(path).load(blob).unwrap().len(), bytes.len())));
        fresh_plain.push(timed(|| plain(&Connection::open(&copy).unwrap())));
        let (opened, connection) = (store(path), Connection::open(&copy).unwrap());
        first.push(timed(|| assert_eq!(opened.load(blob).unwrap().len(), bytes.len())));
        first_plain.push(timed(|| plain(&connection)));
    }
    let (kept, connection) = (store(path), Connection::open(&copy).unwrap());
    for _ in 0..200 {
        warm.push(timed(|| assert_eq!(kept.load(blob).unwrap().len(), bytes.len())));
        warm_plain.push(timed(|| plain(&connection)));
    }
    let e = told("first read of the latest", &mut first);
    let f = told("first read of a plain copy", &mut first_plain);
    let a = told("open, read latest, close", &mut fresh);
    let b = told("open, read plain copy, close", &mut fresh_plain);
    let c = told("read latest, same handle", &mut warm);
    let d = told("plain copy, same handle", &mut warm_plain);
    println!("ratio first {:.2}, again {:.2}  (at most 1); with open and close {:.2}", e / f, c / d, a / b);
}

/// Bytes that go to the disk for a small checkpoint.
fn written() {
    for (count, grown) in [(2_000, false), (500, true)] {
        let place = folder();
        let store = store(&place.path().join("store"));
        let story = Story::in_order(&store);
        let run = story.run("a");
        let mut base = None;
        let before = write_bytes();
        for number in 0..count {
            if grown {
                base = Some(
                    story.save_state(&run, conversation(number + 1, true), base).content.artifacts[0].blob,
                );
            } else {
                story.save_state(&run, payload(number), None);
            }
        }
        let each = (write_bytes() - before) / count as u64;
        println!("{count} checkpoints, growing {grown}: {each} bytes written each  (at most 12288)");
    }
}

fn write_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap();
    text.lines().find_map(|line| line.strip_prefix("write_bytes: ")).unwrap().parse().unwrap()
}

/// Makes a store of so many small checkpoints, many to a batch.
fn filled(path: &Path, count: usize) {
    let store = store(path);
    let story = Story::in_order(&store);
    let run = story.run("a");
    for start in (0..count).step_by(500) {
        let mut batch = stagepost::store::Batch::default();
        for number in start..(start + 500).min(count) {
            let payload =
                store.prepare(payload(number)[..300].to_vec(), stagepost::store::blob::Cut::Content, None);
            let mut draft = story.draft(&run, &format!("checkpoint number {number}"));
            draft.content.artifacts = vec![stagepost_testutil::artifact("state", payload.blob())];
            batch.payloads.push(payload);
            batch.entries.push(stagepost::store::NewEntry::Checkpoint(draft));
        }
        store.write(batch).unwrap();
    }
}

fn opening() {
    for count in [1_000, 100_000] {
        let place = folder();
        let path = place.path().join("store");
        filled(&path, count);
        let (mut times, mut by_run) = (Vec::new(), Vec::new());
        for _ in 0..50 {
            times.push(timed(|| {
                let store = store(&path);
                assert_eq!(store.list(&Query { limit: Some(10), ..Query::default() }).unwrap().len(), 10);
            }));
            by_run.push(timed(|| {
                let store = store(&path);
                let run = Some(stagepost_testutil::run_id("a"));
                assert_eq!(
                    store.list(&Query { limit: Some(10), run, ..Query::default() }).unwrap().len(),
                    10
                );
            }));
        }
        told(&format!("open {count}, list the last 10"), &mut times);
        told(&format!("open {count}, list 10 of a run"), &mut by_run);
    }
}

fn audit() {
    let place = folder();
    let path = place.path().join("store");
    filled(&path, 100_000);
    let size = std::fs::metadata(path.join("store.db")).unwrap().len() as f64;
    let store = store(&path);
    for _ in 0..3 {
        let (wall, cpu) = (Instant::now(), cpu_seconds());
        let audited = store.audit(&mut |damage| panic!("{damage:?}")).unwrap();
        let (wall, cpu) = (wall.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        println!(
            "{} checkpoints and {} payloads in {wall:.2} s: {:.0} a second, {:.0} MB/s, {:.2} cores",
            audited.checkpoints,
            audited.blobs,
            audited.checkpoints as f64 / wall,
            size / wall / 1e6,
            cpu / wall
        );
    }
}

fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}
