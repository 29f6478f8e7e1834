//! The demo is true, quick, and leaves nothing behind.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{PROGRAM, Ran, TempProject};

/// Runs the demo with temporary folders in a place that can be looked at.
fn demo(project: &TempProject, args: &[&str]) -> Ran {
    let temporary = project.home().join("tmp");
    let _ = std::fs::create_dir(&temporary);
    Ran::of(project.tool(PROGRAM, args).env("TMPDIR", temporary).output())
}

fn left_behind(project: &TempProject) -> usize {
    std::fs::read_dir(project.home().join("tmp")).unwrap().count()
}

#[test]
fn the_demo_tells_a_true_story_and_cleans_up() {
    let project = TempProject::plain();
    let ran = demo(&project, &["demo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for part in [
        "$ stagepost save",
        "$ stagepost restore",
        "$ stagepost undo",
        "$ stagepost flow resume",
        "$ stagepost gate answer",
        "$ stagepost verify",
        "damaged",
        "$ stagepost log",
        "all as told",
    ] {
        assert!(ran.out.contains(part), "no `{part}` in {}", ran.out);
    }
    assert_eq!(left_behind(&project), 0);
    assert_eq!(std::fs::read_dir(&project.folder).unwrap().count(), 0, "it wrote where it was called");
}

#[test]
fn the_demo_can_be_kept_and_counted() {
    let project = TempProject::plain();
    let ran = demo(&project, &["--json", "demo", "--keep"]);
    let body: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert!(body["commands"].as_u64().unwrap() > 5, "{body}");
    let kept = body["kept"].as_str().unwrap();
    let kinds = |run| project.ok(&["-C", kept, "--quiet", "log", "--run", run]).lines().count();
    assert_eq!(
        (kinds("adhoc"), kinds("release")),
        (3, 3),
        "two saves and an answer; a step, its failure and its success"
    );
}

#[test]
fn the_demo_does_not_see_the_settings_of_whoever_runs_it() {
    let project = TempProject::new();
    project.write("stagepost.toml", "nonsense");
    let ran = Ran::of(
        project
            .tool(PROGRAM, ["--quiet", "demo"])
            .env("STAGEPOST_BUSY_TIMEOUT", "nonsense")
            .env("GIT_DIR", "/nowhere")
            .output(),
    );
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{ran:?}");
}

#[test]
fn without_git_the_story_is_the_same() {
    let project = TempProject::plain();
    let ran = Ran::of(project.tool(PROGRAM, ["demo"]).env("PATH", "/nowhere").output());
    assert_eq!(ran.code, 0, "{ran:?}");
}
