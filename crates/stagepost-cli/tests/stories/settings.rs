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
