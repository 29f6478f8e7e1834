//! What fuzzers call: each takes any bytes, and must neither panic nor break what it promises.
//!
//! The programs under `fuzz/` hand these to libFuzzer; a short run over changed examples is a test of every build.

use std::str::FromStr;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use stagepost::flow::definition::Flow;
use stagepost::formats::Format;
use stagepost::gate::journey::Journey;
use stagepost::model::{
    ArtifactName, Checkpoint, CheckpointId, Event, Hash, Label, ObjectId, RepoPath, Run, RunId, Timestamp,
    canonical,
};
use stagepost::reply::{self, Action, Choice, Question};

use crate::TempProject;

/// A fuzz target.
pub type Target = fn(&[u8]);

/// Every target with its name and examples to start from.
pub const TARGETS: &[(&str, Target, &[&str])] = &[
    ("record", record, RECORDS),
    ("import", import, IMPORTS),
    ("flow_file", flow_file, FLOWS),
    ("journey", journey, JOURNEYS),
    ("reply", reply, REPLIES),
    ("ids", ids, IDS),
];

/// Writes the examples of a target to where a fuzzer starts from, below the current folder.
pub fn write_examples(name: &str) {
    let folder = std::path::Path::new("corpus").join(name);
    std::fs::create_dir_all(&folder).expect("folders can be made");
    let examples = TARGETS.iter().filter(|(target, ..)| *target == name).flat_map(|(.., examples)| *examples);
    for (number, example) in examples.enumerate() {
        let path = folder.join(format!("example-{number}"));
        std::fs::write(path, example).expect("files can be written");
    }
}

/// Records of the journal: what can be read can be written, means the same again and keeps its seal.
pub fn record(bytes: &[u8]) {
    if let Some([mut first, mut again]) = read_twice::<Checkpoint>(bytes) {
        let before = Hash::of(b"before");
        assert_eq!(again.expected_seal(&before), first.expected_seal(&before));
        assert_eq!(members(&mut again.content.metadata), members(&mut first.content.metadata));
        assert_eq!(again, first);
    }
    if let Some([mut first, mut again]) = read_twice::<Event>(bytes) {
        assert_eq!(again.seal(), first.seal());
        assert_eq!(canonical(&again.body.take()), canonical(&first.body.take()));
        assert_eq!(again, first);
    }
    if let Some([mut first, mut again]) = read_twice::<Run>(bytes) {
        assert_eq!(again.seal(), first.seal());
        assert_eq!(members(&mut again.metadata), members(&mut first.metadata));
        assert_eq!(again, first);
    }
}

/// Reads a record, and once more from what is written of it.
fn read_twice<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<[T; 2]> {
    let first: T = serde_json::from_slice(bytes).ok()?;
    let text = canonical(&serde_json::to_value(&first).expect("a record has string keys only"));
    let again = serde_json::from_str(&text).expect("what we write can be read");
    Some([first, again])
}

/// Takes what a maker kept with a record, as it is written: there a number has one spelling, so that `2.0` comes back as `2`.
fn members(metadata: &mut Map<String, Value>) -> String {
    canonical(&Value::Object(std::mem::take(metadata)))
}

/// Files of other systems: an import is planned, or refused with an error; what is planned can be taken in.
pub fn import(bytes: &[u8]) {
    const NAMES: &[&str] = &[
        "checkpoints.json",
        ".checkpoint-metadata.json",
        "agent-progress.txt",
        "run.json",
        "checkpoints/checkpoint-step-3-1736300000000.json",
        "chk-1736300000000-abc123.json.gz",
        "checkpoints/plans/song_a3f9b2c1_iter01_raw.json",
        "checkpoints/plans/song_final.json",
    ];
    let (which, content) = bytes.split_first().unwrap_or((&0, &[]));
    let temp = TempProject::plain();
    let name = format!("old/{}", NAMES[usize::from(*which) % NAMES.len()]);
    let path = temp.root().join(&name);
    std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("folders can be made");
    std::fs::write(&path, content).expect("files can be written");
    let project = temp.open();
    for format in std::iter::once(None).chain(Format::ALL.iter().copied().map(Some)) {
        if let Ok(plan) = project.plan_import(&temp.root().join("old"), format) {
            let _ = project.apply_import(&plan);
        }
    }
    assert_eq!(std::fs::read(&path).expect("it is still there"), content, "sources are never touched");
    assert!(project.verify().expect("the store can be read").is_sound());
}

/// Flow files: read, or refused with a place that is in the file.
pub fn flow_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = Flow::read(text);
}

/// Journey files.
pub fn journey(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = Journey::read(text);
}

/// Replies: the same words are read the same way, with a reason, and only what was offered can be chosen.
pub fn reply(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let options = [Choice::new("route-1", "Coastal Loop"), Choice::new("route-2", "Mountain Pass")];
    for kind in reply::Kind::all() {
        let question = Question { options: &options, ..Question::new(kind) };
        let read = reply::parse(text, &question);
        assert_eq!(read, reply::parse(text, &question));
        assert!(!read.because.is_empty());
        assert!(read.details.option_ids.iter().all(|id| options.iter().any(|option| option.id == *id)));
        let says_nothing = !text.chars().any(|c| c.is_alphanumeric() || !c.is_ascii());
        assert!(!says_nothing || !matches!(read.action, Action::Confirm | Action::Approve), "{text:?}");
    }
}

/// Ids and names: what is accepted is printed as it was and is no path to anywhere else.
pub fn ids(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(run) = RunId::new(text) {
        assert!(
            run.as_str() == text && !text.contains('/') && !text.starts_with(['.', '-']) && text.len() <= 128
        );
    }
    if let Ok(name) = ArtifactName::new(text) {
        assert!(name.as_str() == text && !text.split('/').any(|part| part == ".."));
    }
    fn there_and_back<T: FromStr + ToString + PartialEq>(text: &str) {
        if let Ok(value) = text.parse::<T>() {
            assert!(value.to_string().parse::<T>().is_ok_and(|again| again == value), "{text:?}");
        }
    }
    there_and_back::<CheckpointId>(text);
    there_and_back::<Hash>(text);
    there_and_back::<Label>(text);
    there_and_back::<ObjectId>(text);
    there_and_back::<Timestamp>(text);
    let path = RepoPath::from(text);
    assert_eq!(
        serde_json::to_string(&path).ok().and_then(|text| serde_json::from_str(&text).ok()),
        Some(path)
    );
}

const RECORDS: &[&str] = &[
    r#"{"id":"01a1e1a5-7193-76b8-bde5-2c9d98a43b0e","run":"adhoc","seq":1,"parent":null,"created_at":"2026-11-15T23:57:58.547236Z","kind":{"type":"step","step":"collect","status":"completed","attempt":1},"description":"a","labels":["good"],"metadata":{"a":[1,2.5,null,2.0,-0.0,1E3,1e19,1152921504606846976.0,1e300]},"snapshot":{"commit":"44f3028fb11332982fd3302eda2d5da18945c965","tree":"08f890657496fc9bee05aabfc025bcb884c4f89d","index_tree":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","branch":"master","worktree":"main","files":{"total":1,"added":1,"modified":0,"deleted":0}},"artifacts":[{"name":"state","media":"application/json","size":516390,"blob":"da772a7ba402578b1dea30a06d75557bb5b6a47f0f6d63aabdafb55fb94fdcfd"}],"seal":"1e303d2d244470f43c340658426dc73e419a8747278d345dd4992ad7adc331bc"}"#,
    r#"{"topic":"note","key":"a","at":"2026-01-31T08:00:00.000000Z","body":{"text":"x","n":2.0}}"#,
    r#"{"id":"adhoc","kind":"adhoc","created_at":"2026-01-31T08:00:00.000000Z","metadata":{"n":2.0}}"#,
];

const IMPORTS: &[&str] = &[
    "\u{0}{\"session_id\":\"s\",\"generated_at\":\"2025-01-01T00:00:00Z\",\"checkpoints\":[{\"checkpoint_id\":\"c\",\"commit_sha\":\"abcdef1\",\"timestamp\":\"2025-01-01T00:00:00Z\",\"description\":\"d\",\"phase\":\"plan\"}]}",
    "\u{1}[{\"task_id\":1,\"stage\":\"start\",\"commit_hash\":\"0123456789012345678901234567890123456789\",\"description\":\"d\",\"timestamp\":\"2025-01-01T00:00:00\",\"metadata\":{}}]",
    "\u{2}[2025-01-01 00:00:00 UTC] [Task 1] begun\n",
    "\u{3}{\"run_id\":\"run-1\",\"workflow_id\":\"w\",\"current_step\":3,\"status\":\"failed\",\"created_at\":\"2025-01-01T00:00:00Z\"}",
    "\u{4}{\"checkpoint_id\":\"c\",\"run_id\":\"run-1\",\"workflow_id\":\"w\",\"step\":3,\"timestamp\":\"2025-01-01T00:00:00.000Z\",\"run_record\":{},\"artifact_registry\":{},\"step_state\":{},\"metadata\":{\"checksum\":\"x\"}}",
    "\u{6}{\"run_id\":\"a3f9b2c1\",\"iteration\":1,\"checkpoint_type\":\"raw\",\"plan\":{\"sections\":[NaN]}}",
    "\u{7}{\"status\":\"SUCCESS\",\"plan\":{},\"iterations\":3,\"total_tokens\":15420,\"duration_seconds\":12.5}",
];

const FLOWS: &[&str] = &[
    "name: a\nsteps:\n  - id: one\n    run: ./x.sh\n    outputs: [a.json]\n  - id: two\n    needs: [one]\n    if: one.exit == 0 && !input.dry\n    run: [a, b]\n    retry: { attempts: 3, backoff: 2s }\n    timeout: 5m\n",
    "name: b\nsteps:\n  - id: draft\n    refine: { planner: ./p, judge: ./j, max_iterations: 3 }\n  - id: approve\n    ask: { kind: confirm, message: \"Go?\", on: { confirm: draft } }\n",
    "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
];

const JOURNEYS: &[&str] = &[
    "name: trip\nstops:\n  - name: ask\n    ask: { kind: confirm, message: \"Go?\" }\n    on: { confirm: done }\n",
];

const REPLIES: &[&str] = &[
    "yes",
    "No, that's incorrect",
    "yes but move the lunch stop",
    "the second one",
    "route #2",
    "go back to selection",
    "no more research, go ahead",
    "don't proceed",
    "I disapprove",
    "👍",
    "sí, adelante",
    "actually, make it 60 km",
    "what is the weather?",
];

const IDS: &[&str] = &[
    "01985c1e-4a00-7000-8000-000000000001",
    "adhoc",
    "release=1.2",
    "2026-01-31T08:00:00.000000Z",
    "a/b.json",
    "0123456789012345678901234567890123456789",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of numbers that is the same everywhere.
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self, below: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as usize % below.max(1)
        }
    }

    /// Changes an example as fuzzers do: bytes, pieces doubled or cut out, another example in the middle.
    fn changed(numbers: &mut Numbers, examples: &[&str]) -> Vec<u8> {
        const BITS: &[&str] = &[
            "{", "}", "[", "]", "\"", "\\", "\n", ":", "null", "-1", "1e999", "NaN", "\u{0}", "\u{1b}[",
            "../", "é", "&a ", "*a",
        ];
        let mut bytes = examples[numbers.next(examples.len())].as_bytes().to_vec();
        for _ in 0..=numbers.next(6) {
            let (at, end) = (numbers.next(bytes.len() + 1), numbers.next(bytes.len() + 1));
            let (at, end) = (at.min(end), at.max(end));
            match numbers.next(5) {
                0 if at < bytes.len() => bytes[at] ^= 1 << numbers.next(8),
                1 => drop(bytes.drain(at..end)),
                2 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
                3 => drop(bytes.splice(at..at, BITS[numbers.next(BITS.len())].bytes())),
                _ => drop(bytes.splice(at..end, examples[numbers.next(examples.len())].bytes())),
            }
        }
        bytes
    }

    #[test]
    fn the_examples_are_what_they_should_be() {
        assert!(serde_json::from_str::<Checkpoint>(RECORDS[0]).is_ok());
        assert!(serde_json::from_str::<Event>(RECORDS[1]).is_ok());
        assert!(serde_json::from_str::<Run>(RECORDS[2]).is_ok());
        assert!(FLOWS[..2].iter().all(|flow| Flow::read(flow).is_ok()));
    }

    #[test]
    fn no_target_breaks_in_a_short_run() {
        for (name, target, examples) in TARGETS {
            let rounds = if *name == "import" { 60 } else { 3_000 };
            let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
            examples.iter().for_each(|example| target(example.as_bytes()));
            for _ in 0..rounds {
                target(&changed(&mut numbers, examples));
            }
        }
    }
}
