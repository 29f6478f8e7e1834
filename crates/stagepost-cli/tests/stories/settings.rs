//! Config: which of several places wins.

use serde_json::{Value, json};

use crate::support::TempProject;

fn setting<'a>(listed: &'a Value, name: &str) -> (&'a str, &'a str) {
    let settings = listed["settings"].as_array().expect("settings are a list");
    let one = settings.iter().find(|one| one["name"] == name).expect("the setting is listed");
    (one["value"].as_str().expect("values are text"), one["origin"].as_str().expect("origins are text"))
}

#[test]
fn later_places_win() {
    let project = TempProject::new();
    let keep = |project: &TempProject| {
        let listed = project.json(&["config"]);
        let (value, origin) = setting(&listed, "retention.keep");
        (value.to_owned(), origin.to_owned())
    };
    let is = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
    assert_eq!(keep(&project), is("", "default"));
    project.write("../home/.config/stagepost/config.toml", "[retention]\nkeep = 1\nmax_age = \"30d\"\n");
    assert_eq!(keep(&project), is("1", "user file"));
    project.write("stagepost.toml", "retention.keep = 2\nbusy_timeout = \"2s\"\n");
    assert_eq!(keep(&project), is("2", "stagepost.toml"));
    let ran =
        project.run_with(&[("STAGEPOST_RETENTION_KEEP", "3")], &["--json", "config", "--busy-timeout", "7s"]);
    let listed: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(setting(&listed, "retention.keep"), ("3", "environment"));
    assert_eq!(setting(&listed, "retention.max_age"), ("30d", "user file"));
    assert_eq!(setting(&listed, "busy_timeout"), ("7s", "flag"));
    let ran = project.run_with(&[("STAGEPOST_BUSY_TIMEOUT", "4s")], &["config", "busy_timeout"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "4s\n"));
}

#[test]
fn the_user_file_may_be_elsewhere() {
    let project = TempProject::plain();
    project.write("here/stagepost/config.toml", "busy_timeout = \"1m\"");
    let folder = project.folder.join("here");
    let ran = project.run_with(&[("XDG_CONFIG_HOME", folder.to_str().unwrap())], &["config", "busy_timeout"]);
    assert_eq!(ran.out, "1m\n");
}

#[test]
fn config_lists_or_answers() {
    let project = TempProject::plain();
    let text = project.ok(&["config"]);
    assert_eq!(text.lines().count(), project.json(&["config"])["settings"].as_array().unwrap().len());
    assert!(text.contains("busy_timeout"));
    assert_eq!(project.ok(&["config", "busy_timeout"]), "10s\n");
    assert_eq!(project.json(&["config", "busy_timeout"])["settings"].as_array().unwrap().len(), 1);
    project.run(&["config", "nothing"]).fails(3, &["no setting `nothing`", "lists every setting"]);
    assert_eq!(project.json(&["config"])["settings"][0]["meaning"].as_str().map(str::is_empty), Some(false));
    assert_eq!(json!(1), project.json(&["config"])["schema"]);
}

#[test]
fn config_lists_what_it_can_and_names_what_is_wrong() {
    let project = TempProject::new();
    project.save("first", &[]);
    project.write(
        "stagepost.toml",
        "retention.keep = \"many\"\nretension.keep = 3\nsnapshot.deadline = \"9s\"\n",
    );
    let ran = project.run(&["config"]);
    ran.fails(2, &["`retention.keep` is `many`", "there is no setting `retension.keep`"]);
    assert!(!ran.err.contains("`stagepost config`"), "{ran:?}");
    assert!(ran.out.lines().any(|line| line.contains("snapshot.deadline") && line.contains("9s")), "{ran:?}");
    let listed = project.run(&["--json", "config"]);
    let body: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!((listed.code, setting(&body, "snapshot.deadline")), (2, ("9s", "stagepost.toml")));
    assert_eq!(setting(&body, "retention.keep"), ("", "default"));
    assert_eq!(body["wrong"].as_array().unwrap().len(), 2);
    project.write("stagepost.toml", "a = 1\nstore = [\n");
    let ran = project.run(&["config"]);
    ran.fails(2, &["stagepost.toml", "not valid TOML", "line 2", "array"]);
    assert!(!ran.err.contains("\\n"), "{ran:?}");
    assert!(ran.out.contains("busy_timeout"), "{ran:?}");
    project.run(&["log"]).fails(2, &["not valid TOML", "line 2", "`stagepost config`"]);
}

#[test]
fn config_is_in_columns() {
    let project = TempProject::plain();
    let text = project.ok(&["config"]);
    let places: std::collections::BTreeSet<_> = text.lines().map(|line| line.find("default")).collect();
    assert_eq!(places.len(), 1, "{text}");
}

#[test]
fn a_settings_file_that_is_none_is_refused_at_once() {
    let project = TempProject::new();
    let path = project.folder.join("stagepost.toml");
    let refused = |said: &str| {
        for args in [&["log"][..], &["config"], &["save"]] {
            let ran = project.run(args);
            assert!([1, 2].contains(&ran.code) && ran.err.contains(said), "{args:?}: {ran:?}");
            assert!(ran.err.contains("stagepost.toml"), "{ran:?}");
        }
    };
    project.save("first", &[]);
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    refused("not a file");
    std::fs::remove_file(&path).unwrap();
    assert!(project.tool("mkfifo", [&path]).status().unwrap().success());
    refused("not a file");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    refused("not a file");
    std::fs::remove_dir(&path).unwrap();
    std::fs::File::create(&path).unwrap().set_len(2 << 30).unwrap();
    refused("more than 1 MiB");
}
