//! Planners that hang, talk nonsense, talk too much or die: told clearly, recorded, retried, and the run goes on later.

use std::time::Duration;

use serde_json::json;
use stagepost::model::Checkpoint;
use stagepost::plan::{Call, Command, Error, Job, Plan, Retry, Span, Standing, Words};
use stagepost::process::Cancel;
use stagepost::project::Project;
use stagepost_testutil::TempProject;

use crate::support::{drive, job, judge, new, resume};

fn command(home: &TempProject, line: &str) -> Command {
    Command::new(&Words::Line(line.to_owned()), home.root()).timeout(Some(Duration::from_secs(20)))
}

fn twice() -> Job {
    Job { retry: Retry { attempts: 2, backoff: Span::Text("1ms".into()) }, ..job() }
}

/// Runs a planner that fails; both attempts must be recorded, and a sound planner must be able to go on.
fn fails(home: &TempProject, planner: &mut Command) -> (String, Checkpoint) {
    let project = home.open();
    let failed = drive(&project, &new(&twice()), planner, &mut judge(&[8.0])).unwrap_err();
    let Error::Agent { run, iteration: 1, what, .. } = failed else { panic!("{failed:?}") };
    let history = Plan::open(&project, &run).unwrap().history().unwrap();
    assert_eq!(Standing::of(&project, &history), Standing::Failed);
    let failures = history.iteration(1).unwrap().failures.clone();
    let attempts: Vec<_> = failures.iter().filter_map(Call::of).map(|call| call.attempt).collect();
    assert_eq!(attempts, [1, 2], "each attempt is recorded");
    let mut sound = command(home, "echo '{\"sections\": []}'");
    let outcome = drive(&project, &resume(&twice(), &run), &mut sound, &mut judge(&[8.0])).unwrap();
    assert!(outcome.approved, "and the run is resumable");
    (what, failures[1].clone())
}

fn text(project: &Project, checkpoint: &Checkpoint, name: &str) -> String {
    String::from_utf8_lossy(&project.load(checkpoint, name).unwrap()).into_owned()
}

#[test]
fn one_that_hangs_is_ended() {
    let home = TempProject::git();
    let mut planner = command(&home, "echo begun; echo waiting >&2; sleep 600 & sleep 600")
        .timeout(Some(Duration::from_millis(300)));
    let (what, failure) = fails(&home, &mut planner);
    assert_eq!(what, "it took longer than 300ms and was ended; its last words: waiting");
    assert_eq!(text(&home.open(), &failure, "stdout"), "begun\n");
}

#[test]
fn one_that_prints_no_json_is_quoted() {
    let home = TempProject::git();
    let (what, failure) = fails(&home, &mut command(&home, "echo 'Sure! Here is your plan:'"));
    assert!(
        what.starts_with("what it printed is not JSON")
            && what.ends_with("it begins with `Sure! Here is your plan:\\n`"),
        "{what}"
    );
    assert_eq!(text(&home.open(), &failure, "stdout"), "Sure! Here is your plan:\n");
    let (what, _) = fails(&home, &mut command(&home, "true"));
    assert_eq!(what, "it printed nothing");
}

#[test]
fn one_that_prints_a_hundred_megabytes_is_told_so_and_not_kept() {
    let home = TempProject::git();
    let (what, failure) = fails(&home, &mut command(&home, "head -c 104857600 /dev/zero").most(64 << 20));
    assert_eq!(what, "it printed 104857600 bytes, and an answer may have 67108864");
    let kept = failure.artifact("stdout").unwrap().blob.size;
    assert!(kept < 200_000, "{kept} bytes were kept");
}

#[test]
fn one_that_prints_without_end_is_ended() {
    let home = TempProject::git();
    let (what, _) = fails(&home, &mut command(&home, "yes").most(1 << 10));
    let told = what.starts_with("it had printed ")
        && what.ends_with(" bytes when it was ended, and an answer may have 1024");
    assert!(told, "{what}");
}

#[test]
fn one_that_fails_is_told_with_its_last_words() {
    let home = TempProject::git();
    let (what, failure) = fails(
        &home,
        &mut command(&home, "echo 'half a plan'; echo 'Traceback' >&2; echo 'KeyError: tempo' >&2; exit 1"),
    );
    assert_eq!(what, "it ended with exit code 1; its last words: KeyError: tempo");
    assert_eq!(text(&home.open(), &failure, "stderr"), "Traceback\nKeyError: tempo\n");
    let (what, _) =
        fails(&home, &mut Command::new(&Words::List(vec!["./no-such-planner".into()]), home.root()));
    assert!(what.starts_with("failed to start `./no-such-planner`: "), "{what}");
}

#[test]
fn one_that_dies_by_a_signal_is_told_by_which() {
    let home = TempProject::git();
    let (what, _) = fails(&home, &mut command(&home, "kill -SEGV $$"));
    assert_eq!(what, "it was ended by signal 11 (SIGSEGV)");
}

#[test]
fn a_judge_that_fails_leaves_the_plan_and_is_asked_alone_when_it_is_resumed() {
    let home = TempProject::git();
    let project = home.open();
    let count = home.root().join("asked");
    let mut planner = command(&home, &format!("echo x >> {}; echo '{{\"a\": 1}}'", count.display()));
    let failed = drive(&project, &new(&job()), &mut planner, &mut command(&home, "exit 3")).unwrap_err();
    let Error::Agent { run, what, .. } = failed else { panic!("{failed:?}") };
    assert_eq!(what, "it ended with exit code 3");
    drive(&project, &resume(&job(), &run), &mut planner, &mut command(&home, "echo '{\"score\": 9}'"))
        .unwrap();
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\n", "the planner was asked once");
}

#[test]
fn a_program_reads_the_request_and_knows_where_it_is() {
    let home = TempProject::git();
    let project = home.open();
    let mut planner = command(&home, "cat > request.json; echo \"{\\\"run\\\": \\\"$STAGEPOST_PLAN_RUN\\\", \\\"n\\\": $STAGEPOST_ITERATION, \\\"role\\\": \\\"$STAGEPOST_ROLE $EXTRA\\\"}\"")
        .with_environment([("EXTRA".into(), "given".into())]);
    let outcome = drive(&project, &new(&job()), &mut planner, &mut judge(&[8.0])).unwrap();
    assert_eq!(outcome.last["plan"], json!({"run": outcome.run, "n": 1, "role": "planner given"}));
    let request: serde_json::Value = serde_json::from_str(&home.read("request.json").unwrap()).unwrap();
    assert_eq!(request["run_id"], json!(outcome.run));
}

#[test]
fn a_large_plan_goes_through_whole() {
    let home = TempProject::git();
    let line = "printf '{\"text\": \"'; head -c 3000000 /dev/zero | tr '\\0' x; printf '\"}'";
    let outcome = drive(
        &home.open(),
        &new(&job()),
        &mut command(&home, line),
        &mut command(&home, "wc -c | sed 's/.*/{\"score\": 8, \"bytes\": &}/'"),
    )
    .unwrap();
    assert_eq!(outcome.last["plan"]["text"].as_str().unwrap().len(), 3_000_000);
    assert!(outcome.last["evaluation"]["bytes"].as_u64().unwrap() > 3_000_000);
}

#[test]
fn a_wish_to_stop_ends_the_planner_and_records_no_failure() {
    let home = TempProject::git();
    let project = home.open();
    let cancel = Cancel::new().unwrap();
    let (mut planner, mut judge) = (command(&home, "touch begun; sleep 600"), judge(&[8.0]));
    let agents = stagepost::plan::Agents::new(&mut planner, &mut judge);
    let stopped = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !home.root().join("begun").exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            cancel.cancel();
        });
        stagepost::plan::refine(&project, &new(&job()), agents, &cancel, &mut |_| {}).unwrap_err()
    });
    let Error::Cancelled { run } = stopped else { panic!("{stopped:?}") };
    let history = Plan::open(&project, &run).unwrap().history().unwrap();
    assert_eq!(Standing::of(&project, &history), Standing::Interrupted);
    assert!(history.iterations.is_empty());
}
