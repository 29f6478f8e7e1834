//! Appending.

use serde_json::{Value, json};
use stagepost::model::{BlobRef, Hash, Kind, Parent, Run, RunKind, Topic};
use stagepost::store::blob::Cut;
use stagepost::store::{Batch, Error, Expect, NewEntry, Query, Store};

use crate::{Story, artifact, run_id};

fn is_conflict<T: std::fmt::Debug>(result: Result<T, Error>) {
    assert!(matches!(result, Err(Error::Conflict { .. })), "{result:?}");
}

/// Each checkpoint gets the next number of its own run, whatever else is written.
pub fn seq_has_no_gaps(store: &dyn Store) {
    let story = Story::new(store);
    let (a, b) = (story.run("a"), story.run("b"));
    for n in 1..=150 {
        assert_eq!(story.save(&a, "").seq, n);
        story.happen(Topic::Note, "a", "between");
        if n % 3 == 0 {
            assert_eq!(story.save(&b, "").seq, n / 3);
        }
    }
}

/// A checkpoint follows the newest of its run, or the one it names, also of another run.
pub fn parents_and_forks(store: &dyn Store) {
    let story = Story::new(store);
    let (a, b) = (story.run("a"), story.run("b"));
    let first = story.save(&a, "first");
    let second = story.save(&a, "second");
    assert_eq!((first.parent, second.parent), (None, Some(first.id)));

    let mut draft = story.draft(&a, "back to the first");
    draft.parent = Parent::Checkpoint(first.id);
    let third = story.save_draft(draft);
    assert_eq!((third.seq, third.parent), (3, Some(first.id)));

    let mut draft = story.draft(&b, "fork");
    draft.parent = Parent::Checkpoint(second.id);
    let fork = story.save_draft(draft);
    assert_eq!((fork.seq, fork.parent), (1, Some(second.id)));

    let mut draft = story.draft(&b, "said aloud");
    draft.parent = Parent::Checkpoint(fork.id);
    let next = story.save_draft(draft);
    assert_eq!(next.parent, Some(fork.id));
    for one in [first, second, third, fork, next] {
        assert_eq!(store.checkpoint(&one.id).unwrap().unwrap().live(), Some(one));
    }
    assert_eq!(story.damage(), [""; 0]);
}

/// A checkpoint is sealed after its parent, a first one after its run.
pub fn seals_chain(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let first = story.save(&run, "first");
    let second = story.save(&run, "second");
    let record = store.run(&run).unwrap().unwrap();
    assert_eq!(first.seal, first.expected_seal(&record.seal()));
    assert_eq!(second.seal, second.expected_seal(&first.seal));
    assert_eq!(store.head(&run).unwrap().unwrap().live(), Some(second));
}

/// A batch whose expectations do not hold is refused.
pub fn expectations_are_kept(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let write = |expect| store.write(Batch { expect: vec![expect], ..Batch::default() });
    is_conflict(write(Expect::NewRun(run.clone())));
    is_conflict(write(Expect::Head(run.clone(), 1)));
    is_conflict(write(Expect::Head(run_id("none"), 1)));
    write(Expect::NewRun(run_id("b"))).unwrap();
    write(Expect::Head(run_id("none"), 0)).unwrap();
    for n in 0..130 {
        write(Expect::Head(run.clone(), n)).unwrap();
        story.save(&run, "");
        is_conflict(write(Expect::Head(run.clone(), n)));
    }
    let latest = |key: &str, position| Expect::LatestEvent(Topic::Gate, key.to_owned(), position);
    write(latest("g", 0)).unwrap();
    let mut last = 0;
    for _ in 0..70 {
        write(latest("g", last)).unwrap();
        last = story.happen(Topic::Gate, "g", "asked");
        is_conflict(write(latest("g", 0)));
        is_conflict(write(latest("g", last - 1)));
    }
    story.happen(Topic::Gate, "h", "another key");
    story.happen(Topic::Note, "g", "another topic");
    write(latest("g", last)).unwrap();
}

/// An id is given once, also to a checkpoint that was written long ago or pruned.
pub fn taken_ids_are_refused(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let first = story.draft(&run, "first");
    let written = story.save_draft(first.clone());
    is_conflict(story.write(vec![NewEntry::Checkpoint(first.clone())]));
    let twice = story.draft(&run, "twice in one batch");
    is_conflict(story.write(vec![NewEntry::Checkpoint(twice.clone()), NewEntry::Checkpoint(twice)]));
    (0..140).for_each(|_| drop(story.save(&run, "")));
    is_conflict(story.write(vec![NewEntry::Checkpoint(first.clone())]));
    story.prune(&[&written]).unwrap();
    is_conflict(story.write(vec![NewEntry::Checkpoint(first)]));
}

/// An artifact must name a payload that is there, with its true size.
pub fn unknown_blobs_are_refused(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let small = story.save_state(&run, b"[1]".to_vec(), None).content.artifacts[0].blob;
    let large = story.save_state(&run, crate::conversation(9, false), None).content.artifacts[0].blob;
    let unknown = BlobRef { size: 3, hash: Hash::of(b"???") };
    let refused = |blob: BlobRef| {
        let mut draft = story.draft(&run, "");
        draft.content.artifacts = vec![artifact("x", blob)];
        let result = story.write(vec![NewEntry::Checkpoint(draft)]);
        assert!(matches!(&result, Err(Error::MissingBlob { blob: named }) if *named == blob), "{result:?}");
    };
    refused(unknown);
    refused(BlobRef { size: 30_000, ..unknown });
    refused(BlobRef { size: 4, ..small });
    refused(BlobRef { size: large.size + 1, ..large });
    let mut draft = story.draft(&run, "by reference alone");
    draft.content.artifacts = vec![artifact("a", small), artifact("b", large)];
    assert_eq!(story.save_draft(draft).seq, 3);
}

/// A checkpoint of a run that was never started, or after a parent that is not there, is refused.
pub fn unknown_runs_and_parents_are_refused(store: &dyn Store) {
    let story = Story::new(store);
    let result = story.write(vec![NewEntry::Checkpoint(story.draft(&run_id("none"), ""))]);
    assert!(matches!(result, Err(Error::MissingRun { .. })), "{result:?}");
    let run = story.run("a");
    let mut draft = story.draft(&run, "");
    draft.parent = Parent::Checkpoint(story.script.id());
    let result = story.write(vec![NewEntry::Checkpoint(draft)]);
    assert!(matches!(result, Err(Error::MissingCheckpoint { .. })), "{result:?}");
}

/// A run may be named again with its own kind, and that changes nothing; another kind is a conflict.
pub fn a_run_keeps_its_kind(store: &dyn Store) {
    let story = Story::new(store);
    let mut run = Run::new(run_id("a"), RunKind::Task, story.script.now());
    run.description = "as first told".to_owned();
    story.write(vec![NewEntry::Run(run.clone())]).unwrap();
    let again = Run::new(run_id("a"), RunKind::Task, story.script.now());
    story.write(vec![NewEntry::Run(again)]).unwrap();
    let other = Run::new(run_id("a"), RunKind::Flow, story.script.now());
    is_conflict(story.write(vec![NewEntry::Run(other)]));
    assert_eq!(store.run(&run_id("a")).unwrap(), Some(run));
    assert_eq!(store.usage().unwrap().entries, 1);
}

/// A batch is written as a whole or not at all.
pub fn a_failing_batch_leaves_nothing(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let kept = story.save(&run, "kept");
    let before = store.usage().unwrap().entries;
    let payload = store.prepare(b"\"taken back\"".to_vec(), Cut::Json, None);
    let blob = payload.blob();
    let mut taken = story.draft(&run, "taken");
    taken.id = kept.id;
    let entries = vec![
        NewEntry::Run(Run::new(run_id("b"), RunKind::Adhoc, story.script.now())),
        NewEntry::Checkpoint(story.draft(&run, "taken back")),
        NewEntry::Checkpoint(story.draft(&run_id("b"), "taken back")),
        NewEntry::Event(story.event(Topic::Note, "a", "taken back")),
        NewEntry::Checkpoint(taken),
    ];
    is_conflict(store.write(Batch { payloads: vec![payload], entries, expect: Vec::new() }));
    assert_eq!((store.usage().unwrap().entries, store.lost().unwrap()), (before, 0));
    assert_eq!(store.run(&run_id("b")).unwrap(), None);
    assert_eq!(store.head(&run).unwrap().unwrap().id(), kept.id);
    assert!(matches!(store.load(&blob), Err(Error::MissingBlob { .. })));
    assert_eq!(story.save(&run, "next").seq, 2);
    assert_eq!(story.damage(), [""; 0]);
}

/// Threads whose batches may share a transaction succeed and fail each for itself.
pub fn a_failing_batch_leaves_its_neighbours_alone(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let taken = story.draft(&run, "taken");
    story.save_draft(taken.clone());
    std::thread::scope(|scope| {
        for thread in 0..6u64 {
            let (story, run, taken) = (&story, &run, &taken);
            scope.spawn(move || {
                for n in 0..40 {
                    let text = format!("\"{thread} {n}\"");
                    if thread % 2 == 0 {
                        story.save_state(run, text.into_bytes(), None);
                    } else {
                        let spoiled = vec![
                            NewEntry::Checkpoint(story.draft(run, "taken back")),
                            NewEntry::Checkpoint(taken.clone()),
                        ];
                        is_conflict(story.write(spoiled));
                    }
                }
            });
        }
    });
    let listed = store.list(&Query::default()).unwrap();
    assert_eq!(listed.len(), 121);
    for (seq, one) in (1..).zip(listed.iter().rev()) {
        assert_eq!(one.checkpoint.seq, seq);
        assert_ne!(one.checkpoint.content.description, "taken back");
    }
    assert_eq!(story.damage(), [""; 0]);
}

/// Threads that append to one run get each number once, and everything they were told is there.
pub fn many_threads_append_without_gaps(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let told = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (story, run, told) = (&story, &run, &told);
            scope.spawn(move || {
                for n in 0..40 {
                    let saved = story.save_state(run, format!("[{thread},{n}]").into_bytes(), None);
                    told.lock().unwrap().push(saved);
                }
            });
        }
    });
    let mut told = told.into_inner().unwrap();
    told.sort_by_key(|one| one.seq);
    let mut listed: Vec<_> =
        store.list(&Query::default()).unwrap().into_iter().map(|one| one.checkpoint).collect();
    listed.reverse();
    assert_eq!(listed, told);
    assert!((1..).zip(&told).all(|(seq, one)| one.seq == seq));
}

/// What is too deep to be read back is refused when it is written, and everything less deep comes back.
pub fn records_that_could_not_be_read_back_are_refused(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let nested = |depth: usize| (0..depth).fold(Value::Null, |inner, _| json!([inner]));
    for depth in [1, 90, 120, 124, 125, 126, 127, 128, 129, 400] {
        let mut draft = story.draft(&run, "deep");
        draft.content.metadata.insert("deep".to_owned(), nested(depth));
        match story.write(vec![NewEntry::Checkpoint(draft.clone())]) {
            Ok(_) => {
                let found = store.checkpoint(&draft.id).unwrap().unwrap().live().unwrap();
                assert_eq!(found.content.metadata, draft.content.metadata);
                assert!(depth < 128);
            }
            Err(error) => assert!(depth > 90 && matches!(error, Error::Refused { .. }), "{depth}: {error}"),
        }
        let mut event = story.event(Topic::Note, "a", "");
        event.body = nested(depth);
        match story.write(vec![NewEntry::Event(event)]) {
            Ok(_) => {}
            Err(error) => assert!(depth > 90 && matches!(error, Error::Refused { .. }), "{depth}: {error}"),
        }
    }
    store.events(&stagepost::store::EventQuery::all(Topic::Note)).unwrap();
    assert_eq!(story.damage(), [""; 0]);
}

/// A batch of a run, checkpoints and events appears as one step, in its order.
pub fn several_entries_are_one_step(store: &dyn Store) {
    let story = Story::new(store);
    let run = run_id("a");
    let mut good = story.draft(&run, "good");
    good.content.kind =
        Kind::Step { step: "build".to_owned(), status: stagepost::model::StepStatus::Completed, attempt: 1 };
    let entries = vec![
        NewEntry::Run(Run::new(run.clone(), RunKind::Flow, story.script.now())),
        NewEntry::Checkpoint(story.draft(&run, "one")),
        NewEntry::Event(story.event(Topic::Run, "a", "began")),
        NewEntry::Checkpoint(good),
    ];
    let written = story.write(entries).unwrap();
    assert_eq!(written.position, 4);
    assert_eq!(written.checkpoints[1].parent, Some(written.checkpoints[0].id));
    assert_eq!(store.runs().unwrap().len(), 1);
    assert_eq!(store.runs().unwrap()[0].1, 4);
}
