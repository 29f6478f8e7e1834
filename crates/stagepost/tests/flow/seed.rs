//! The tests that the seed asks for by name, taken further.

use stagepost::flow::{Drive, Error, Flows, Options, Outcome, Resume, Run, RunState, Status, is_driven};
use stagepost::model::Kind;
use stagepost::process::Cancel;
use stagepost::store::{Found, Query};
use stagepost_testutil::run_id;

use crate::support::Story;

fn chain(steps: usize) -> String {
    let step = |n: usize| {
        format!(
            "  - {{id: s{n}, run: 'echo {n} >> log; echo {n} > \"$STAGEPOST_OUTPUT\"; echo said {n}; test ! -e stop{n}'}}\n"
        )
    };
    format!("name: chain\nsteps:\n{}", (1..=steps).map(step).collect::<String>())
}

#[test]
fn checkpoint_pruning_test() {
    let story = Story::new();
    assert_eq!(story.start(&chain(10)).unwrap(), Outcome::Completed);
    let state = story.state();
    let current = |n: usize| state.step(&format!("s{n}")).unwrap().current().unwrap();
    let found = |n: usize| story.project.store().checkpoint(&current(n).checkpoint).unwrap();
    let left: Vec<usize> = (1..=10).filter(|n| matches!(found(*n), Some(Found::Live(_)))).collect();
    assert_eq!(left, [6, 7, 8, 9, 10], "the last 5 remain");
    assert!(
        (1..=5).all(|n| matches!(found(n), Some(Found::Pruned(_))) && current(n).thinned),
        "stubs are left"
    );
    assert!(
        story.output("s1").is_empty() && !story.output("s10").is_empty(),
        "what they printed is given up"
    );

    // It still goes on after any step, because results are not given up with the checkpoints.
    let after = |step: &str| Resume { after: Some(step.to_owned()), ..Resume::default() };
    assert_eq!(story.resume(after("s8")).unwrap(), Outcome::Completed);
    assert_eq!(story.resume(after("2")).unwrap(), Outcome::Completed);
    assert!(story.lines("log").ends_with(" 10 9 10 3 4 5 6 7 8 9 10"), "{}", story.lines("log"));
    let state = story.state();
    for n in 1..=10 {
        let result = state.step(&format!("s{n}")).unwrap().current().unwrap().artifact("result").unwrap();
        assert_eq!(story.project.store().load(&result.blob).unwrap(), n.to_string().as_bytes());
    }
    let live = story.project.log(&Query { run: Some(story.id.clone()), ..Query::default() }).unwrap();
    let (keepers, steps): (Vec<_>, Vec<_>) =
        live.iter().partition(|one| matches!(one.content.kind, Kind::Safety { .. }));
    assert_eq!((keepers.len(), steps.len()), (1, 5), "5 checkpoints, and one for the results of the others");
    let newest = story.project.resolve(story.id.as_str()).unwrap();
    assert_eq!(
        newest.content.kind.to_string(),
        "step s10 completed (attempt 3)",
        "the run means its last step"
    );
    let mut damage = Vec::new();
    story.project.store().audit(&mut |found| damage.push(found.what)).unwrap();
    assert!(damage.is_empty(), "{damage:?}");

    // A run that has not ended keeps every result that it needs, whatever a collection is told to keep.
    let other = Story::new();
    other.home.write("stop8", "");
    assert!(matches!(other.start(&chain(10)).unwrap(), Outcome::Failed { .. }));
    assert_eq!(other.output("s8"), b"said 8\n", "how it failed is not given up either");
    let policy = stagepost::retention::Policy { keep_last: Some(1), ..Default::default() };
    other.project.apply_gc(&other.project.plan_gc(&policy).unwrap()).unwrap();
    other.home.remove("stop8");
    assert_eq!(other.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(other.lines("log"), "1 2 3 4 5 6 7 8 8 9 10");
}

#[test]
fn a_fork_from_an_early_step_of_a_pruned_run_has_its_results() {
    let story = Story::new();
    assert_eq!(story.start(&chain(10)).unwrap(), Outcome::Completed);
    let flows = Flows::of(&story.project);
    let forks = [("2", "3 4 5 6 7 8 9 10"), ("s7", "8 9 10")];
    let id = |from: &str| run_id(&format!("forked-{from}"));
    for (from, _) in forks {
        flows.fork(&story.id, from, &id(from)).unwrap();
    }
    // Whatever a collection is told to keep, the forks can go on.
    let policy = stagepost::retention::Policy { keep_last: Some(1), ..Default::default() };
    story.project.apply_gc(&story.project.plan_gc(&policy).unwrap()).unwrap();
    for (from, expected) in forks {
        let drive = Drive::new(Cancel::new().unwrap());
        assert_eq!(flows.resume(&id(from), Resume::default(), drive).unwrap(), Outcome::Completed);
        assert!(story.lines("log").ends_with(&format!(" 10 {expected}")), "{}", story.lines("log"));
        let state = RunState::load(&story.project, &id(from)).unwrap();
        let result = state.step("s1").unwrap().current().unwrap().artifact("result").unwrap();
        assert_eq!(story.project.store().load(&result.blob).unwrap(), b"1");
    }
}

#[test]
fn a_fork_keeps_what_it_shares() {
    let story = Story::new();
    story.home.write("stop8", "");
    story.start(&chain(10)).unwrap();
    story.home.remove("stop8");
    let flows = Flows::of(&story.project);
    flows.fork(&story.id, "s3", &run_id("forked")).unwrap();
    // The first one completes and is pruned; what the fork stands on stays.
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    let forked = Story { id: run_id("forked"), ..story };
    assert_eq!(forked.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert!(forked.lines("log").ends_with("10 4 5 6 7 8 9 10"), "{}", forked.lines("log"));
}

/// Changes every byte of a column of some rows in turn, and puts it back.
fn flip(
    database: &rusqlite::Connection,
    table: &str,
    column: &str,
    row: i64,
    mut check: impl FnMut(usize),
) -> usize {
    let (read, write) = (
        format!("SELECT {column} FROM {table} WHERE rowid = ?1"),
        format!("UPDATE {table} SET {column} = ?2 WHERE rowid = ?1"),
    );
    let whole: Vec<u8> = database.query_row(&read, [row], |row| row.get(0)).unwrap();
    for at in 0..whole.len() {
        let mut wrong = whole.clone();
        wrong[at] ^= 1 << (at % 8);
        database.execute(&write, rusqlite::params![row, wrong]).unwrap();
        check(at);
    }
    database.execute(&write, rusqlite::params![row, whole]).unwrap();
    whole.len()
}

#[test]
fn checksum_validation_test() {
    let story = Story::new();
    story.home.write("stop2", "");
    story.start(&chain(2)).unwrap();
    let checkpoint = story.state().step("s1").unwrap().current().unwrap().checkpoint;
    let place = story.project.place().store.join("store.db");
    let database = rusqlite::Connection::open(place).unwrap();
    let row: i64 = database
        .query_row("SELECT position FROM entries WHERE id = ?1", [checkpoint.as_uuid().as_bytes()], |row| {
            row.get(0)
        })
        .unwrap();
    let refused = |what: &str, at: usize| {
        // Another process: nothing is remembered from before.
        let (project, drive) = (story.home.open(), Drive::new(Cancel::new().unwrap()));
        let error = Flows::of(&project)
            .resume(&story.id, Resume::default(), drive)
            .expect_err(&format!("{what}, byte {at} was not noticed"));
        let Error::Damaged { what: named, .. } = &error else { panic!("{what}, byte {at}: {error}") };
        assert!(
            named.contains(&checkpoint.to_string()) || !["body", "payload"].contains(&what),
            "{what}, byte {at}: {named}"
        );
    };
    let bytes = flip(&database, "entries", "body", row, |at| refused("body", at));
    assert!(bytes > 100, "{bytes}");
    assert_eq!(flip(&database, "entries", "seal", row, |at| refused("seal", at)), 32);
    assert_eq!(flip(&database, "entries", "id", row, |at| refused("id", at)), 16);
    for (column, other) in [("at", "at + 1"), ("seq", "seq + 7"), ("run", "run + 7")] {
        let read = format!("SELECT {column} FROM entries WHERE position = ?1");
        let whole: i64 = database.query_row(&read, [row], |row| row.get(0)).unwrap();
        let write = |to: &str| {
            let sql = format!("UPDATE entries SET {column} = {to} WHERE position = ?1");
            assert_eq!(database.execute(&sql, [row]).unwrap(), 1);
        };
        write(other);
        refused(column, 0);
        write(&whole.to_string());
    }
    let piece: i64 = database.query_row("SELECT min(number) FROM pieces", [], |row| row.get(0)).unwrap();
    assert!(flip(&database, "pieces", "data", piece, |at| refused("payload", at)) > 0);
    // As it was, it goes on.
    story.home.remove("stop2");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
}

#[test]
fn workflow_integration_test() {
    let story = Story::new();
    assert_eq!(story.start(&chain(5)).unwrap(), Outcome::Completed);
    let state = story.state();
    let seqs: Vec<u64> = state.steps.iter().map(|step| step.current().unwrap().seq).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5], "one checkpoint after each step");
    assert!(state.steps.iter().all(|step| !step.current().unwrap().pruned));
    let mut damage = Vec::new();
    story.project.store().audit(&mut |found| damage.push(found.what)).unwrap();
    assert!(damage.is_empty(), "{damage:?}");
}

#[test]
fn resume_capability_test() {
    let story = Story::new();
    story.home.write("stop4", "");
    story.start(&chain(5)).unwrap();
    story.home.remove("stop4");
    let resume = Resume { after: Some("3".to_owned()), ..Resume::default() };
    assert_eq!(story.resume(resume).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "1 2 3 4 4 5", "it goes on with step 4");
    let state = story.state();
    let result = state.step("s3").unwrap().current().unwrap().artifact("result").unwrap();
    assert_eq!(story.project.store().load(&result.blob).unwrap(), b"3");
}

#[test]
fn a_cancelled_run_is_not_called_running_because_someone_tidies_up() {
    let story = Story::new();
    story.home.write("stop2", "");
    story.start(&chain(3)).unwrap();
    Flows::of(&story.project).cancel(&story.id, "enough").unwrap();
    let folder = story.project.place().store.join("flow").join(story.id.as_str());
    std::fs::create_dir_all(&folder).unwrap();
    let lock = std::fs::File::create(folder.join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert!(is_driven(&story.project, &story.id));
    assert_eq!(RunState::load(&story.project, &story.id).unwrap().status, Status::Cancelled);
}

#[test]
fn cancelling_is_final_and_a_run_in_code_is_not_resumed_from_outside() {
    let story = Story::new();
    story.home.write("stop2", "");
    story.start(&chain(3)).unwrap();
    let flows = Flows::of(&story.project);
    flows.cancel(&story.id, "enough").unwrap();
    assert!(matches!(flows.cancel(&story.id, "again"), Err(Error::Over { status: Status::Cancelled, .. })));
    assert!(matches!(story.resume(Resume::default()), Err(Error::Over { status: Status::Cancelled, .. })));
    drop(Run::open(&story.project, &run_id("code"), Options::default()).unwrap());
    let code = Story { project: story.home.open(), id: run_id("code"), ..Story::new() };
    assert!(matches!(code.resume(Resume::default()), Err(Error::InCode { .. })));
    flows.cancel(&run_id("code"), "enough").unwrap();
    let state = RunState::load(&story.project, &run_id("code")).unwrap();
    assert_eq!((state.status, state.why.as_deref()), (Status::Cancelled, Some("enough")));
}
