//! A store that was written once is read for ever. `golden/format-1` is added to, never edited.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stagepost::model::{Kind, Parent, Phase, Reason, Topic};
use stagepost::store::{EventQuery, OpenOptions, Query, SqliteStore, Store};
use stagepost_testutil::{Story, conversation};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-1")
}

fn expected() -> Value {
    serde_json::from_slice(&std::fs::read(golden().join("expected.json")).unwrap()).unwrap()
}

/// Everything that a store gives back, as JSON.
fn told(store: &dyn Store) -> Value {
    let runs: Vec<_> =
        store.runs().unwrap().into_iter().map(|(run, head)| json!([run, run.seal(), head])).collect();
    let listed = store.list(&Query::default()).unwrap();
    let payloads = listed.iter().flat_map(|one| &one.checkpoint.content.artifacts);
    let payloads: Vec<_> = payloads
        .map(|artifact| {
            let bytes = store.load(&artifact.blob).unwrap();
            json!([artifact.name, bytes.len(), String::from_utf8(bytes).unwrap().get(..60)])
        })
        .collect();
    let checkpoints: Vec<_> = listed.iter().map(|one| json!([one.position, one.checkpoint])).collect();
    let topics = [Topic::Note, Topic::Prune, Topic::Pin];
    let events: Vec<_> =
        topics.iter().flat_map(|topic| store.events(&EventQuery::all(*topic)).unwrap()).collect();
    let audited = store.audit(&mut |damage| panic!("{damage:?}")).unwrap();
    let audited = json!([audited.checkpoints, audited.stubs, audited.events, audited.blobs, audited.bytes]);
    json!({ "runs": runs, "checkpoints": checkpoints, "payloads": payloads, "events": events, "audited": audited })
}

#[test]
fn format_1_is_read_as_it_was_written() {
    let place = tempfile::tempdir().unwrap();
    for name in ["store.db", "head"] {
        std::fs::copy(golden().join(name), place.path().join(name)).unwrap();
    }
    let store = SqliteStore::open(place.path(), &OpenOptions::default()).unwrap();
    assert_eq!(told(&store), expected());
    let story = Story::after(&store, 1000);
    let next = story.save_state(&stagepost_testutil::run_id("plain"), conversation(9, false), None);
    assert_eq!(next.seq, 81);
    assert_eq!(story.damage(), [""; 0]);
}

/// What the golden store of a new format is made with: `write_story` into its folder, and `told` beside it.
#[test]
fn the_story_of_format_1_is_still_written_so_that_it_tells_the_same() {
    let place = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(place.path(), &OpenOptions { create: true, ..OpenOptions::default() });
    let store = store.unwrap();
    write_story(&store);
    assert_eq!(told(&store), expected());
}

fn write_story(store: &SqliteStore) {
    let story = Story::new(store);
    let (plain, other) = (story.run("plain"), story.run("\u{fc}ber"));
    let first = story.save_labelled(&plain, &["good", "release=1.0"]);
    let mut full = story.draft(&other, "everything \"at once\"\n\u{1f600}");
    full.content.kind = Kind::Phase { phase: Phase::Validate, reason: Reason::SafeState };
    let metadata = json!({"big": u64::MAX, "exact": 9_007_199_254_740_993u64, "real": 1.5e-7, "nested": [{"b": 1, "a": null}]});
    full.content.metadata = metadata.as_object().cloned().unwrap();
    full.parent = Parent::Checkpoint(first.id);
    story.save_draft(full);
    let mut base = None;
    for step in 0..79 {
        let bytes = if step % 20 == 0 {
            conversation(4 + step / 20, false)
        } else {
            format!("{{\"step\":{step}}}").into_bytes()
        };
        let saved = story.save_state(&plain, bytes, base);
        base = Some(saved.content.artifacts[0].blob);
        if step == 7 {
            story.prune(&[&saved]).unwrap();
        }
    }
    story.happen(Topic::Note, "plain", "a line\nand another");
    story.happen(Topic::Pin, &first.id.to_string(), "pinned");
}
