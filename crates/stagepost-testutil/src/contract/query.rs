//! Finding things again, among those that were written just now and long ago.

use serde_json::json;
use stagepost::model::{Checkpoint, CheckpointId, Event, Kind, Phase, Reason, RunId, Timestamp, Topic};
use stagepost::store::{Error, EventQuery, Found, Query, Store};

use crate::{Story, label, run_id};

fn ids(store: &dyn Store, query: &Query) -> Vec<CheckpointId> {
    store.list(query).unwrap().into_iter().map(|one| one.checkpoint.id).collect()
}

fn newest_first(saved: &[Checkpoint]) -> Vec<CheckpointId> {
    saved.iter().rev().map(|one| one.id).collect()
}

/// Saves checkpoints in two runs, every third in the second.
fn two_runs(story: &Story<'_>, count: usize) -> (RunId, RunId, Vec<Checkpoint>) {
    let (a, b) = (story.run("a"), story.run("b"));
    let saved = (0..count).map(|n| story.save(if n % 3 == 2 { &b } else { &a }, &format!("number {n}")));
    let saved = saved.collect();
    (a, b, saved)
}

/// Lists are newest first in the order of appending, whatever the clock said.
pub fn lists_are_newest_first(store: &dyn Store) {
    let story = Story::new(store);
    let (a, b, mut saved) = two_runs(&story, 230);
    let mut late = story.draft(&a, "its clock is behind");
    late.created_at = saved[0].created_at;
    saved.push(story.save_draft(late));
    assert_eq!(ids(store, &Query::default()), newest_first(&saved));
    for run in [a, b] {
        let of_run: Vec<_> = saved.iter().filter(|one| one.run == run).cloned().collect();
        let query = Query { run: Some(run.clone()), ..Query::default() };
        assert_eq!(ids(store, &query), newest_first(&of_run));
        let query = Query { limit: Some(7), ..query };
        assert_eq!(ids(store, &query), newest_first(&of_run)[..7]);
    }
    assert_eq!(ids(store, &Query { limit: Some(0), ..Query::default() }), []);
}

/// A list can be gone through in parts of any size.
pub fn lists_go_on_where_they_ended(store: &dyn Store) {
    let story = Story::new(store);
    let (a, _, saved) = two_runs(&story, 220);
    for (run, size) in [(None, 1), (None, 64), (Some(a.clone()), 13), (Some(a), 200)] {
        let wanted: Vec<_> =
            saved.iter().filter(|one| run.as_ref().is_none_or(|run| one.run == *run)).cloned().collect();
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let query = Query { run: run.clone(), before, limit: Some(size), ..Query::default() };
            let part = store.list(&query).unwrap();
            let Some(last) = part.last() else { break };
            before = Some(last.position);
            seen.extend(part.iter().map(|one| one.checkpoint.id));
        }
        assert_eq!(seen, newest_first(&wanted));
    }
}

/// A label is found by its name alone, or by name and value, in one run or in all.
pub fn labels_are_found(store: &dyn Store) {
    let story = Story::new(store);
    let (a, b) = (story.run("a"), story.run("b"));
    let old = story.save_labelled(&a, &["release=1", "kept"]);
    let odd = story.save_labelled(&a, &["release=1=x"]);
    (0..100).for_each(|_| drop(story.save(&a, "")));
    let other = story.save_labelled(&b, &["release=2", "good"]);
    (0..100).for_each(|_| drop(story.save(&b, "")));
    let new = story.save_labelled(&a, &["release=1", "good"]);
    let found = |text: &str, run: Option<&RunId>, good| {
        ids(store, &Query { label: Some(label(text)), run: run.cloned(), good, ..Query::default() })
    };
    assert_eq!(found("release", None, false), [new.id, other.id, odd.id, old.id]);
    assert_eq!(found("release=1", None, false), [new.id, old.id]);
    assert_eq!(found("release=1=x", None, false), [odd.id]);
    assert_eq!(found("release", Some(&b), false), [other.id]);
    assert_eq!(found("release", None, true), [new.id, other.id]);
    assert_eq!(found("release", Some(&a), true), [new.id]);
    assert_eq!(found("rel", None, false), []);
    assert_eq!(found("kept=1", None, false), []);
    let query = Query { label: Some(label("release")), limit: Some(1), ..Query::default() };
    assert_eq!(ids(store, &query), [new.id]);
}

/// Two labels of one name on one checkpoint are both found, and nothing else breaks.
pub fn labels_of_one_name_stand_side_by_side(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let both = story.save_labelled(&run, &["ticket=1", "ticket=2", "ticket=1"]);
    (0..130).for_each(|_| drop(story.save(&run, "")));
    for text in ["ticket", "ticket=1", "ticket=2"] {
        assert_eq!(ids(store, &Query { label: Some(label(text)), ..Query::default() }), [both.id]);
    }
}

/// Those that someone called good are found, whether by label or by what they mark.
pub fn good_ones_are_found(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let mut good = Vec::new();
    for n in 0..210 {
        match n % 70 {
            3 => good.push(story.save_labelled(&run, &["good"])),
            5 => {
                let mut draft = story.draft(&run, "safe");
                draft.content.kind = Kind::Phase { phase: Phase::Plan, reason: Reason::SafeState };
                good.push(story.save_draft(draft));
            }
            _ => drop(story.save_labelled(&run, &["other"])),
        }
    }
    assert_eq!(ids(store, &Query { good: true, ..Query::default() }), newest_first(&good));
    let query = Query { good: true, limit: Some(1), run: Some(run), ..Query::default() };
    assert_eq!(ids(store, &query), newest_first(&good)[..1]);
}

/// Those made since a moment are found wherever they stand: clocks go backwards.
pub fn those_since_a_moment_are_found(store: &dyn Store) {
    let story = Story::new(store);
    let (a, b) = (story.run("a"), story.run("b"));
    let mut saved = Vec::new();
    for n in 0..230 {
        let mut draft = story.draft(if n % 3 == 2 { &b } else { &a }, "by some clock");
        draft.created_at = Timestamp::from_micros(1_000_000 + (n * 37) % 100).unwrap();
        draft.content.labels = if n % 2 == 0 { vec![label("even")] } else { Vec::new() };
        saved.push(story.save_draft(draft));
    }
    for micros in [0, 1_000_050, 1_000_099, 1_000_100] {
        let since = Timestamp::from_micros(micros).unwrap();
        let newer: Vec<_> = saved.iter().filter(|one| one.created_at >= since).cloned().collect();
        let all = Query { since: Some(since), ..Query::default() };
        assert_eq!(ids(store, &all), newest_first(&newer), "{micros}");
        let first = newest_first(&newer).into_iter().take(7).collect::<Vec<_>>();
        assert_eq!(ids(store, &Query { limit: Some(7), ..all.clone() }), first, "{micros}");
        let of_b: Vec<_> = newer.iter().filter(|one| one.run == b).cloned().collect();
        let query = Query { run: Some(b.clone()), ..all.clone() };
        assert_eq!(ids(store, &query), newest_first(&of_b), "{micros}");
        let even = |one: &&Checkpoint| !one.content.labels.is_empty();
        let labelled: Vec<_> = newer.iter().filter(even).cloned().collect();
        let query = Query { label: Some(label("even")), ..all };
        assert_eq!(ids(store, &query), newest_first(&labelled), "{micros}");
    }
}

/// A checkpoint is found by id and by its place, old or new.
pub fn places_are_found(store: &dyn Store) {
    let story = Story::new(store);
    let (a, b, saved) = two_runs(&story, 205);
    for one in &saved {
        assert_eq!(store.checkpoint(&one.id).unwrap().unwrap().live().as_ref(), Some(one));
        assert_eq!(store.at(&one.run, one.seq).unwrap().unwrap().live().as_ref(), Some(one));
    }
    for run in [&a, &b] {
        let last = saved.iter().rfind(|one| one.run == *run).unwrap();
        assert_eq!(store.head(run).unwrap().unwrap().id(), last.id);
        for seq in [0, last.seq + 1, u64::MAX, i64::MAX as u64] {
            assert_eq!(store.at(run, seq).unwrap(), None, "{seq}");
        }
    }
}

/// Ids are found by how they begin, as printed.
pub fn prefixes_are_matched(store: &dyn Store) {
    let story = Story::new(store);
    let (_, _, saved) = two_runs(&story, 215);
    for one in [&saved[0], &saved[100], &saved[214]] {
        let text = one.id.to_string();
        for length in [8, 9, 13, 14, 20, 24, 36] {
            assert_eq!(store.matching(&text[..length], 10).unwrap(), [one.id], "{}", &text[..length]);
        }
    }
    for prefix in ["", "a", "0", "f"] {
        let mut expected: Vec<_> =
            saved.iter().map(|one| one.id).filter(|id| id.to_string().starts_with(prefix)).collect();
        expected.sort();
        let mut found = store.matching(prefix, 1000).unwrap();
        found.sort();
        assert_eq!(found, expected);
        assert_eq!(store.matching(prefix, 2).unwrap().len(), 2.min(expected.len()));
    }
    let upper = saved.iter().map(|one| one.id.to_string()[..8].to_uppercase());
    for bad in upper.filter(|text| text.bytes().any(|b| b.is_ascii_uppercase())).take(3) {
        assert_eq!(store.matching(&bad, 10).unwrap(), []);
    }
    for bad in ["x", "123456789", "-", "é", "12345678-", "%", "12345678-0000-7000-8000-0000000000001"] {
        let found = store.matching(bad, 10).unwrap();
        assert!(found.iter().all(|id| id.to_string().starts_with(bad)), "{bad}");
    }
}

/// Runs are listed in the order in which they were started, with the place of their newest checkpoint.
pub fn runs_are_listed(store: &dyn Store) {
    let story = Story::new(store);
    let names: Vec<_> = (0..90).map(|n| story.run(&format!("run-{}", 89 - n))).collect();
    let mut newest = vec![0; 90];
    for n in [3, 88, 3, 5] {
        newest[n] = story
            .write(vec![stagepost::store::NewEntry::Checkpoint(story.draft(&names[n], ""))])
            .unwrap()
            .position;
    }
    let listed: Vec<_> = store.runs().unwrap().into_iter().map(|(run, newest)| (run.id, newest)).collect();
    assert_eq!(listed, names.into_iter().zip(newest).collect::<Vec<_>>());
}

/// Events of one topic and key form a line, oldest first.
pub fn events_form_lines(store: &dyn Store) {
    let story = Story::new(store);
    for n in 0..220 {
        let key = if n % 2 == 0 { "even" } else { "odd" };
        story.happen(Topic::Note, key, &n.to_string());
        story.happen(Topic::Pin, "even", "another topic");
    }
    let texts = |query: EventQuery| -> Vec<String> {
        let events = store.events(&query).unwrap();
        assert!(events.is_sorted_by_key(|(position, _)| *position));
        events.into_iter().map(|(_, event)| event.body["text"].as_str().unwrap().to_owned()).collect()
    };
    let all: Vec<_> = (0..220).map(|n: usize| n.to_string()).collect();
    let odd: Vec<_> = all.iter().skip(1).step_by(2).cloned().collect();
    assert_eq!(texts(EventQuery::all(Topic::Note)), all);
    assert_eq!(texts(EventQuery { key: Some("odd".into()), ..EventQuery::all(Topic::Note) }), odd);
    assert_eq!(texts(EventQuery::latest(Topic::Note, "odd")), ["219"]);
    assert_eq!(texts(EventQuery { last: Some(100), ..EventQuery::all(Topic::Note) }), all[120..]);
    assert_eq!(texts(EventQuery::latest(Topic::Note, "od")), [""; 0]);
    assert_eq!(texts(EventQuery::all(Topic::Gate)), [""; 0]);
}

/// Keys may hold anything, and no key is taken for another.
pub fn keys_of_events_are_exact(store: &dyn Store) {
    let story = Story::new(store);
    let keys = ["", "a", "a\n", "a\r", "a\\n", "\t", "a\tb", "a\0", "=good", "é", "a\n\nb", "A", "%"];
    for round in 0..12 {
        for key in keys {
            story.happen(Topic::Note, key, &format!("{round} {key}"));
        }
    }
    for key in keys {
        let line =
            store.events(&EventQuery { key: Some(key.into()), ..EventQuery::all(Topic::Note) }).unwrap();
        assert_eq!(line.len(), 12, "{key:?}");
        let latest = store.events(&EventQuery::latest(Topic::Note, key)).unwrap();
        assert_eq!(latest[0].1.body["text"], format!("11 {key}"));
    }
    assert_eq!(story.damage(), [""; 0]);
}

/// An empty store answers every question.
pub fn nothing_is_found_where_nothing_is(store: &dyn Store) {
    let story = Story::new(store);
    let none = run_id("none");
    assert_eq!(store.checkpoint(&story.script.id()).unwrap(), None);
    assert_eq!(store.head(&none).unwrap(), None);
    assert_eq!(store.at(&none, 1).unwrap(), None);
    assert_eq!(store.run(&none).unwrap(), None);
    assert_eq!(store.runs().unwrap(), []);
    assert_eq!(store.matching("", 5).unwrap(), []);
    assert_eq!(ids(store, &Query { run: Some(none), ..Query::default() }), []);
    assert_eq!(ids(store, &Query::default()), []);
    assert_eq!(store.events(&EventQuery::all(Topic::Note)).unwrap(), []);
    assert_eq!(store.usage().unwrap().entries, 0);
    assert_eq!(store.collect().unwrap().blobs, 0);
    assert_eq!(story.damage(), [""; 0]);
}

/// A pruned checkpoint leaves a stub, is listed no more, and what follows it still verifies.
pub fn pruned_ones_become_stubs(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let saved: Vec<_> = (0..100).map(|_| story.save_labelled(&run, &["good", "x=1"])).collect();
    let gone: Vec<_> = saved.iter().filter(|one| one.seq % 4 == 0).collect();
    story.prune(&gone).unwrap();
    let kept: Vec<_> = saved.iter().filter(|one| one.seq % 4 != 0).cloned().collect();
    for query in [
        Query::default(),
        Query { run: Some(run.clone()), ..Query::default() },
        Query { label: Some(label("x")), ..Query::default() },
        Query { good: true, ..Query::default() },
    ] {
        assert_eq!(ids(store, &query), newest_first(&kept));
        assert_eq!(ids(store, &Query { limit: Some(9), ..query }), newest_first(&kept)[..9]);
    }
    for one in gone {
        let Some(Found::Pruned(stub)) = store.checkpoint(&one.id).unwrap() else { panic!("no stub") };
        assert_eq!((stub.id, &stub.run, stub.seq, stub.seal), (one.id, &one.run, one.seq, one.seal));
        assert_eq!(store.at(&run, one.seq).unwrap(), Some(Found::Pruned(stub)));
        assert_eq!(store.matching(&one.id.to_string()[..8], 2).unwrap(), [one.id]);
    }
    assert!(matches!(store.head(&run).unwrap(), Some(Found::Pruned(_))), "the newest one was pruned too");
    assert_eq!(story.save(&run, "goes on").parent, Some(saved[99].id));
    story.prune(&[&saved[3]]).unwrap();
    assert_eq!(story.damage(), [""; 0]);
    let mut audited = None;
    store.audit(&mut |_| ()).map(|found| audited = Some(found)).unwrap();
    assert_eq!(audited.map(|found| (found.checkpoints, found.stubs)), Some((76, 25)));
}

/// The event of a pruning must list what is pruned, or the pruning is refused.
pub fn pruning_says_what_it_does(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let (a, b) = (story.save(&run, "a"), story.save(&run, "b"));
    let event = |topic, body| Event { topic, key: "gc".to_owned(), at: story.script.now(), body };
    for event in [
        event(Topic::Prune, json!({ "checkpoints": [a.id] })),
        event(Topic::Prune, json!({})),
        event(Topic::Note, json!({ "checkpoints": [a.id, b.id] })),
    ] {
        let result = store.prune(&[a.id, b.id], event);
        assert!(matches!(result, Err(Error::Refused { .. })), "{result:?}");
    }
    assert_eq!(ids(store, &Query::default()), [b.id, a.id]);
    assert_eq!(store.events(&EventQuery::all(Topic::Prune)).unwrap(), []);
}

/// A pruning that names an unknown checkpoint is refused as a whole.
pub fn pruning_what_is_not_there_changes_nothing(store: &dyn Store) {
    let story = Story::new(store);
    let run = story.run("a");
    let saved = story.save(&run, "");
    let mut unknown = saved.clone();
    unknown.id = story.script.id();
    let result = story.prune(&[&saved, &unknown]);
    assert!(matches!(result, Err(Error::MissingCheckpoint { id }) if id == unknown.id), "{result:?}");
    assert_eq!(ids(store, &Query::default()), [saved.id]);
    assert_eq!(store.events(&EventQuery::all(Topic::Prune)).unwrap(), []);
}
