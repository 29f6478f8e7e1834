//! Gc, pin, unpin: what stays and what goes.

use serde_json::{Value, json};

use crate::support::TempProject;

/// Five checkpoints in one run: the first pinned, the second labelled.
fn five() -> (TempProject, Vec<String>) {
    let project = TempProject::new();
    let save = |count: usize| {
        project.write(
            "state.json",
            format!("{{\"count\": {count}, \"text\": \"{}\"}}", "x".repeat(count * 100)),
        );
        let label: &[&str] = if count == 2 { &["--label", "keep"] } else { &[] };
        project.save(&format!("save {count}"), &[&["--state", "state.json"], label].concat())
    };
    let ids: Vec<String> = (1..=5).map(save).collect();
    assert!(project.ok(&["pin", &ids[0]]).starts_with("pinned "));
    (project, ids)
}

fn pruned(plan: &Value) -> Vec<String> {
    let ids = plan["prune"].as_array().expect("a plan lists what goes").iter();
    ids.map(|one| one["id"].as_str().expect("ids are text").to_owned()).collect()
}

#[test]
fn the_dry_run_prints_exactly_what_apply_does() {
    let (project, ids) = five();
    let lines = |text: String| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let dry = lines(project.ok(&["gc", "--dry-run", "--keep", "1"]));
    let dry_json = project.json(&["gc", "--dry-run", "--keep", "1"]);
    assert_eq!(pruned(&dry_json), &ids[2..4]);
    assert_eq!(
        (&dry_json["dry_run"], &dry_json["kept"], &dry_json["bytes"]),
        (&json!(true), &json!(3), &json!(null))
    );
    assert_eq!(lines(project.ok(&["--quiet", "gc", "--dry-run", "--keep", "1"])), &ids[2..4]);
    assert_eq!(project.ok(&["--quiet", "log"]).lines().count(), 5, "a dry run changed something");

    assert_eq!(lines(project.ok(&["gc", "--keep", "1"])), dry);
    let left: Vec<String> = lines(project.ok(&["--quiet", "log"]));
    assert_eq!(left, [&*ids[4], &*ids[1], &*ids[0]]);
    assert_eq!(pruned(&project.json(&["gc", "--keep", "1"])), [""; 0]);
    assert_eq!(project.json(&["verify"])["stubs"], json!(2));
}

#[test]
fn a_pruned_checkpoint_says_that_it_was_pruned() {
    let (project, ids) = five();
    project.ok(&["gc", "--keep", "1"]);
    for name in [ids[2].as_str(), "adhoc/3"] {
        project.run(&["show", name]).fails(3, &["was pruned", "pin or label"]);
    }
    project.run(&["diff", "adhoc/3", "@"]).fails(3, &["was pruned"]);
    assert_eq!(project.ok(&["--quiet", "show", "@-"]).trim(), ids[1], "stubs are stepped over");
    assert_eq!(
        project.ok(&["show", "@", "--artifact", "state"]).len(),
        "{\"count\": 5, \"text\": \"\"}".len() + 500
    );
}

#[test]
fn pins_come_and_go() {
    let (project, ids) = five();
    assert!(project.ok(&["pin", &ids[0]]).starts_with("was pinned already: "));
    assert_eq!(project.json(&["unpin", &ids[0]])["checkpoint"]["id"], json!(ids[0]));
    assert!(project.ok(&["unpin", &ids[0]]).starts_with("was not pinned: "));
    assert_eq!(pruned(&project.json(&["gc", "--keep", "1"])), [&*ids[0], &*ids[2], &*ids[3]]);
    assert_eq!(project.ok(&["--quiet", "pin"]).trim(), ids[4]);
    project.run(&["pin", "nothing"]).fails(3, &["no checkpoint is called"]);
}

#[test]
fn without_a_policy_nothing_is_given_up() {
    let (project, _) = five();
    assert_eq!(pruned(&project.json(&["gc"])), [""; 0]);
    assert_eq!(project.json(&["gc", "--max-age", "30d"])["kept"], json!(5));
    assert_eq!(project.json(&["gc", "--max-size", "1G", "--dry-run"])["kept"], json!(5));
}

#[test]
fn the_policy_may_come_from_the_settings() {
    let (project, ids) = five();
    project.write("stagepost.toml", "[retention]\nkeep = 1\n");
    assert_eq!(pruned(&project.json(&["gc", "--dry-run"])), &ids[2..4]);
    assert_eq!(pruned(&project.json(&["gc", "--dry-run", "--keep", "2"])), &ids[2..3]);
}

#[test]
fn room_is_made_and_given_back() {
    let project = TempProject::new();
    let noise = |seed: u64| -> String {
        let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let next = |state: &mut u64| {
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            format!("{state:016x}")
        };
        (0..16_384).map(|_| next(&mut state)).collect()
    };
    for seed in 0..4 {
        project.write("big.txt", noise(seed));
        project.save("big", &["--artifact", "big=big.txt"]);
    }
    let done = project.json(&["gc", "--max-size", "300K"]);
    assert_eq!(pruned(&done).len(), 3);
    assert!(done["bytes"].as_u64().unwrap() > 300_000, "{done}");
    assert_eq!(project.ok(&["show", "--artifact", "big"]), noise(3));
}

#[test]
fn limits_that_are_none_are_refused() {
    let (project, _) = five();
    project.run(&["gc", "--max-age", "soon"]).fails(2, &["`soon` is not like 30d"]);
    project.run(&["gc", "--max-size", "2X"]).fails(2, &["`2X` is not like 2G"]);
    project.run(&["gc", "--keep=-1"]).fails(2, &["--keep"]);
}
