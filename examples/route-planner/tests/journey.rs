//! The whole way, answered by a script, from elsewhere, and after kills.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stagepost::gate::{GateId, Gates, Heard, Origin, Said};
use stagepost::project::{Context, Place, Project, Settings};
use stagepost::snapshot::GitProgram;
use tempfile::TempDir;

const QUERY: &str = "40 km from Millbrook, avoid Highway 1";

fn planner(folder: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_route-planner"));
    command.args(more).arg(folder).arg(QUERY).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

fn run(folder: &Path, more: &[&str]) -> (i32, String) {
    let done = planner(folder, more).output().expect("it starts");
    (done.status.code().expect("it was not killed"), String::from_utf8_lossy(&done.stdout).into_owned())
}

fn project(folder: &Path) -> Project {
    let context = Context::system("ada", GitProgram::new("git", std::env::vars_os()));
    Project::open(Place::without_git(folder), Settings::default(), context).expect("it was made")
}

fn say(folder: &Path, gate: &str, words: &str) {
    let project = project(folder);
    let id = GateId::new(format!("route.{gate}")).expect("a name");
    let heard = Gates::of(&project).answer(&id, &Said::new(words, Origin::Person)).expect("it waits");
    assert!(matches!(heard, Heard::Answered(_)), "{words}: {heard:?}");
}

fn check_gpx(folder: &Path) {
    let file = std::fs::File::open(folder.join("route.gpx")).expect("it was written");
    let gpx = gpx::read(file).expect("it is GPX");
    let points = &gpx.tracks[0].segments[0].points;
    assert!(points.len() >= 4 && points[0].point() == points[points.len() - 1].point(), "it is no loop");
    assert!(points.iter().all(|point| point.elevation.is_some()));
}

#[test]
fn five_answers_make_a_route() {
    let folder = TempDir::new().unwrap();
    let answers = folder.path().join("answers.txt");
    std::fs::write(&answers, "yes\nlooks good\nthe second one\nyes\nyes, generate the GPX\n").unwrap();
    let (code, out) = run(folder.path(), &["--answers", answers.to_str().unwrap()]);
    assert_eq!(code, 0, "{out}");
    check_gpx(folder.path());
}

#[test]
fn it_goes_on_after_a_kill_at_every_gate() {
    let folder = TempDir::new().unwrap();
    let way = [
        ("confirm_intent.1", "Actually, make it 55 km"),
        ("confirm_intent.2", "yes"),
        ("present_findings.1", "Can you research more about water stops?"),
        ("present_findings.2", "go ahead"),
        ("select_route.1", "1"),
        ("refine_route.1", "go back"),
        ("select_route.1", "the third one"),
        ("refine_route.1", "yes but move the lunch stop"),
        ("refine_route.2", "looks good"),
        ("present_final.1", "yes, generate the GPX"),
    ];
    for (gate, words) in way {
        let mut asking = planner(folder.path(), &["--wait"]).spawn().expect("it starts");
        until_waiting(folder.path(), gate);
        asking.kill().expect("it runs");
        asking.wait().expect("it was killed");
        say(folder.path(), gate, words);
    }
    assert!(!folder.path().join("route.gpx").exists(), "nobody has generated it yet");
    let (code, out) = run(folder.path(), &[]);
    assert_eq!(code, 0, "{out}");
    check_gpx(folder.path());
    assert_eq!(run(folder.path(), &[]).0, 0, "at its end it stays");
}

fn until_waiting(folder: &Path, gate: &str) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        let place = Place::without_git(folder);
        if place.has_store() {
            let context = Context::system("ada", GitProgram::new("git", std::env::vars_os()));
            let opened = Project::open(place, Settings::default(), context);
            let waiting =
                opened.ok().and_then(|project| Gates::of(&project).waiting().ok()).unwrap_or_default();
            if waiting.iter().any(|one| one.id.as_str() == format!("route.{gate}")) {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("`{gate}` was never asked");
}

#[test]
fn nobody_there_means_waiting_and_cancel_ends_it() {
    let folder = TempDir::new().unwrap();
    let (code, out) = run(folder.path(), &[]);
    assert_eq!(code, 6, "{out}");
    assert!(out.starts_with("route.confirm_intent.1"), "{out}");
    say(folder.path(), "confirm_intent.1", "cancel");
    assert_eq!(run(folder.path(), &[]).0, 7);
    assert!(!folder.path().join("route.gpx").exists());
}
