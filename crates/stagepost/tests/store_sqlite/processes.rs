//! Several handles and processes, also ones that die.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stagepost::store::{Error, NewEntry, OpenOptions, Query, SqliteStore, Store};
use stagepost_testutil::{Story, conversation, message, run_id};

use crate::{Place, try_open};

const FOLDER: &str = "STAGEPOST_TEST_STORE";

/// Runs the test that calls this once more as a process of its own, where [`child_store`] finds the store.
pub(crate) fn again(test: &str, place: &Place, umask: Option<&str>) -> Command {
    let mut command = Command::new("sh");
    let set = umask.map_or(String::new(), |umask| format!("umask {umask}; "));
    command.arg("-c").arg(format!("{set}exec \"$0\" \"$@\"")).arg(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(FOLDER, place.folder());
    command
}

/// Opens the store that the parent named, in a process that [`again`] made.
pub(crate) fn child_store() -> Option<SqliteStore> {
    let folder = std::env::var_os(FOLDER)?;
    let options = OpenOptions { create: true, busy: Duration::from_secs(20) };
    Some(SqliteStore::open(folder.as_ref(), &options).unwrap())
}

#[test]
fn two_handles_take_turns() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    let stories = [Story::new(&one), Story::after(&two, 10_000)];
    let run = stories[0].run("a");
    let (mut base, mut states) = (None, Vec::new());
    for n in 0..150 {
        let story = &stories[n % 2];
        let saved = story.save_state(&run, conversation(n + 1, false), base);
        assert_eq!(saved.seq, n as u64 + 1);
        base = Some(saved.content.artifacts[0].blob);
        states.extend(base);
        if n == 70 {
            let gone: Vec<_> =
                one.list(&Query::default()).unwrap().into_iter().map(|one| one.checkpoint).collect();
            story.prune(&gone.iter().skip(1).collect::<Vec<_>>()).unwrap();
            two.collect().unwrap();
        }
    }
    for (n, blob) in states.iter().enumerate().skip(70) {
        assert_eq!(two.load(blob).unwrap(), conversation(n + 1, false));
        assert_eq!(one.load(blob).unwrap(), conversation(n + 1, false));
    }
    assert_eq!(stories[0].damage(), [""; 0]);
}

#[test]
fn processes_write_at_the_same_time() {
    if let Some(store) = child_store() {
        return write_beside_others(&store);
    }
    let place = Place::new();
    let store = place.open();
    Story::new(&store).run("shared");
    let children: Vec<_> = (1..=3)
        .map(|child| {
            again("processes::processes_write_at_the_same_time", &place, None)
                .env("CHILD", child.to_string())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let listed = store.list(&Query::default()).unwrap();
    assert_eq!(listed.len(), 360);
    assert_eq!(store.at(&run_id("shared"), 180).unwrap().unwrap().live().unwrap().seq, 180);
    assert_eq!(Story::new(&store).damage(), [""; 0]);
}

fn write_beside_others(store: &SqliteStore) {
    let child: u64 = std::env::var("CHILD").unwrap().parse().unwrap();
    let story = Story::after(store, child * 1_000_000);
    let (shared, mine) = (run_id("shared"), story.run(&format!("of-{child}")));
    for n in 0..60 {
        story.save_state(&shared, format!("[{n}]").into_bytes(), None);
        assert_eq!(story.save_state(&mine, conversation(n, false), None).seq, n as u64 + 1);
    }
}

#[test]
fn what_was_acknowledged_survives_being_killed() {
    if let Some(store) = child_store() {
        return write_until_killed(&store);
    }
    for kill_after in [1, 40, 90, 200] {
        let place = Place::new();
        let mut child = again("processes::what_was_acknowledged_survives_being_killed", &place, None)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let told: Vec<String> = lines
            .filter_map(|line| line.split_once("saved ").map(|(_, id)| id.to_owned()))
            .take(kill_after)
            .collect();
        child.kill().unwrap();
        child.wait().unwrap();
        let store = place.open();
        assert_eq!(told.len(), kill_after);
        for id in &told {
            let found = store.checkpoint(&id.parse().unwrap()).unwrap();
            let state = found.unwrap().live().unwrap().content.artifacts[0].blob;
            store.load(&state).unwrap();
        }
        let story = Story::after(&store, 1_000_000);
        assert_eq!(story.damage(), [""; 0]);
        let before = store.head(&run_id("a")).unwrap().unwrap().live().unwrap().seq;
        assert_eq!(story.save(&run_id("a"), "goes on").seq, before + 1);
    }
}

fn write_until_killed(store: &SqliteStore) {
    let mut out = std::io::stdout().lock();
    let story = Story::new(store);
    let run = story.run("a");
    let mut base = None;
    for n in 0.. {
        let saved = story.save_state(&run, conversation(n % 50, true), base);
        base = Some(saved.content.artifacts[0].blob);
        writeln!(out, "saved {}", saved.id).unwrap();
    }
}

#[test]
fn threads_share_transactions() {
    let place = Place::new();
    let store = place.open();
    let story = Story::new(&store);
    let run = story.run("a");
    let before = transactions(&place);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..25).for_each(|_| drop(story.save(&run, ""))));
        }
    });
    let shared = transactions(&place) - before;
    assert!((1..160).contains(&shared), "200 checkpoints were written in {shared} transactions");
}

#[test]
fn an_id_is_used_once_however_long_ago() {
    let place = Place::new();
    let store = place.open();
    let story = Story::new(&store);
    let run = story.run("a");
    let first = story.save(&run, "first");
    for again in [false, true] {
        let mut draft = story.draft(&run, "once more");
        draft.id = first.id;
        let refused = story.write(vec![NewEntry::Checkpoint(draft)]);
        assert!(matches!(refused, Err(Error::Conflict { .. })), "after long: {again}, {refused:?}");
        (0..300).for_each(|_| drop(story.save(&run, "")));
    }
}

#[test]
fn the_log_starts_over_however_many_write() {
    for threads in [1, 8] {
        let place = Place::new();
        let store = place.open();
        let story = Story::new(&store);
        let run = story.run("a");
        // Large ones fill the log sooner: 20 MB in all, where 4 are enough for it to be copied.
        let payload = |number: usize| (0..8).map(|part| message(number * 8 + part, true)).collect::<String>();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (story, run) = (&story, &run);
                scope.spawn(move || {
                    for number in (0..800).skip(thread).step_by(threads) {
                        story.save_state(run, payload(number).into_bytes(), None);
                    }
                });
            }
        });
        let log = std::fs::metadata(place.folder().join("store.db-wal")).unwrap().len();
        assert!(log < 9 << 20, "{threads} threads left a log of {log} bytes");
        assert_eq!(store.list(&Query::default()).unwrap().len(), 800);
    }
}

#[test]
fn threads_are_not_told_that_something_was_saved_before_the_log_is_synced() {
    let place = Place::new();
    let saved = {
        let store = place.open();
        let story = Story::new(&store);
        let run = story.run("a");
        let log = place.folder().join("store.db-wal");
        let aside = log.with_extension("aside");
        // The database goes on writing to it, but nobody else finds it to sync it.
        std::fs::rename(&log, &aside).unwrap();
        let write = |_| story.write(vec![NewEntry::Checkpoint(story.draft(&run, "together"))]);
        let written: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(move || (0..25).map(write).collect::<Vec<_>>())).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let unsynced = |error: &Error| matches!(error, Error::Io { doing: "sync", .. });
        let failed: Vec<_> = written.iter().filter_map(|written| written.as_ref().err()).collect();
        assert!(!failed.is_empty() && failed.iter().all(|error| unsynced(error)), "{failed:?}");
        std::fs::rename(&aside, &log).unwrap();
        let last = story.save(&run, "the log is found again").id;
        let checkpoints = written.into_iter().flatten().flat_map(|written| written.checkpoints);
        checkpoints.map(|checkpoint| checkpoint.id).chain([last]).collect::<Vec<_>>()
    };
    let store = place.open();
    assert!(saved.iter().all(|id| store.checkpoint(id).unwrap().is_some()));
    assert_eq!(Story::new(&store).damage(), [""; 0]);
}

/// Counts the commits in the log: a frame that ends a transaction says how long the database is then.
fn transactions(place: &Place) -> usize {
    let log = std::fs::read(place.folder().join("store.db-wal")).unwrap();
    let salt = &log[16..24];
    let frames = log[32..].chunks_exact(24 + 1024);
    frames.filter(|frame| frame[8..16] == *salt && frame[4..8] != [0; 4]).count()
}

#[test]
fn waiting_for_another_process_ends() {
    let place = Place::new();
    let store = place.open();
    let run = Story::new(&store).run("a");
    let other = place.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let started = Instant::now();
    let story = Story::new(&store);
    let results = std::thread::scope(|scope| {
        let write = || story.write(vec![stagepost::store::NewEntry::Checkpoint(story.draft(&run, ""))]);
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(write)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(started.elapsed() >= Duration::from_millis(400));
    for result in results {
        let error = result.unwrap_err();
        assert!(error.is_retryable() && error.to_string().contains("400ms"), "{error}");
    }
    assert_eq!(store.list(&Query::default()).unwrap(), []);
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(story.save(&run, "").seq, 1);
}

#[test]
fn an_audit_and_readers_go_along_with_writers_and_collections() {
    let place = Place::new();
    let store = place.open();
    let story = Story::new(&store);
    let run = story.run("a");
    let state = story.save_state(&run, conversation(60, false), None).content.artifacts[0].blob;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2u64)
            .map(|thread| {
                let (place, run) = (&place, &run);
                scope.spawn(move || {
                    let options = OpenOptions { create: false, busy: Duration::from_secs(20) };
                    let store = SqliteStore::open(&place.folder(), &options).unwrap();
                    let story = Story::after(&store, 1_000_000 * (thread + 1));
                    for n in 0..60 {
                        let saved = story.save_state(run, conversation(61 + n, false), Some(state));
                        match story.prune(&[&saved]).and_then(|()| store.collect().map(drop)) {
                            Ok(()) | Err(Error::Busy { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            })
            .collect();
        let fresh = try_open(&place.folder(), false).unwrap();
        while !writers.iter().all(|writer| writer.is_finished()) {
            assert_eq!(Story::new(&fresh).damage(), [""; 0]);
            assert_eq!(fresh.load(&state).unwrap(), conversation(60, false));
            assert!(!fresh.list(&Query { limit: Some(5), ..Query::default() }).unwrap().is_empty());
        }
    });
    assert_eq!(story.damage(), [""; 0]);
}
