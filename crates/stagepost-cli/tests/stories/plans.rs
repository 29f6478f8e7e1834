//! Plans as typed: the loop, recording, looking, comparing, moving in and out.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{PROGRAM, Ran, TempProject, soon};

const PLANNER: &str = r#"
request=$(cat)
n=$STAGEPOST_ITERATION
printf '{"sections": [%s], "tokens": 100}' "$(seq -s, 1 "$n")"
echo "$n" >> planned.txt
"#;

const JUDGE: &str = r#"
cat > /dev/null
n=$STAGEPOST_ITERATION
printf '{"score": %s, "reasoning": "so", "feedback": "longer than %s", "tokens": 10, "score_breakdown": {"length": %s}}' $((3 + n)) "$n" "$n"
echo "$n" >> judged.txt
"#;

/// A repository with a planner, a judge whose scores rise from 4, and a job.
fn studio(more: Value) -> TempProject {
    let project = TempProject::new();
    project.write("planner.sh", PLANNER);
    project.write("judge.sh", JUDGE);
    write_job(&project, more);
    project
}

fn write_job(project: &TempProject, more: Value) {
    let mut job = json!({
        "project_name": "my_song",
        "output_dir": "artifacts/my_song",
        "checkpoint": true,
        "planner": ["sh", "planner.sh"],
        "judge": "sh judge.sh",
    });
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    project.write("job.json", job.to_string());
}

fn lines(project: &TempProject, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(project.folder.join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// What a line of shell prints in the project.
fn shell(project: &TempProject, line: &str) -> String {
    Ran::of(project.tool("bash", ["-c", line]).output()).out
}

/// Says whether a process is there and more than a zombie, which its new parent may never look at.
fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn a_job_is_driven_to_approval_and_reviewed_as_the_design_says() {
    let project = studio(json!({"max_iterations": 5}));
    let outcome = project.json(&["plan", "run", "job.json"]);
    let run = outcome["run"].as_str().unwrap();
    assert_eq!(
        (&outcome["approved"], &outcome["iterations"], &outcome["tokens"]),
        (&json!(true), &json!(4), &json!(440))
    );
    assert_eq!(
        (&outcome["best"], &outcome["score"], &outcome["verdict"]),
        (&json!(4), &json!(7), &json!("APPROVE"))
    );
    // The commands of the design's "Reviewing Iterations".
    let raw = shell(&project, "ls artifacts/my_song/checkpoints/plans/*_iter*_raw.json");
    let expected: Vec<String> = (1..=4)
        .map(|n| format!("artifacts/my_song/checkpoints/plans/my_song_{run}_iter0{n}_raw.json"))
        .collect();
    assert_eq!(raw.lines().collect::<Vec<_>>(), expected);
    let evaluations = shell(&project, "ls artifacts/my_song/checkpoints/plans/*_iter*_evaluation.json");
    assert_eq!(evaluations.lines().count(), 4);
    let second = shell(
        &project,
        &format!("cat artifacts/my_song/checkpoints/plans/my_song_{run}_iter02_evaluation.json"),
    );
    let second: Value = serde_json::from_str(&second).unwrap();
    assert_eq!(
        (&second["iteration"], &second["score"], &second["decision"]),
        (&json!(2), &json!(5), &json!("SOFT_FAIL"))
    );

    let listed = project.json(&["plan", "list"]);
    assert_eq!((&listed["runs"][0]["run"], &listed["runs"][0]["status"]), (&json!(run), &json!("success")));
    let shown = project.ok(&["plan", "show", run]);
    assert!(shown.contains("success") && shown.contains("*   4  7/10 APPROVE"), "{shown}");
    let scores = project.ok(&["plan", "scores", run]);
    assert!(scores.contains("▄▅▅▆") && scores.contains("7/10 APPROVE  best"), "{scores}");
    assert_eq!(project.ok(&["plan", "scores", run, "--plot", "text"]), "▄▅▅▆\n");
    project.run(&["--json", "plan", "scores", run, "--plot", "text"]).fails(2, &[]);
    project.ok(&["plan", "scores", run, "--plot", "svg", "--output", "scores.svg"]);
    assert!(lines(&project, "scores.svg")[0].starts_with("<svg "));
    let compared = project.ok(&["plan", "compare", run, "1", "3"]);
    for part in
        ["longer than 1", "│ longer than 3", "length  1 → 3  +2", "plan  2 changes", "+ /sections/1  2"]
    {
        assert!(compared.contains(part), "no `{part}` in {compared}");
    }
    let best = project.ok(&["plan", "best", run, "--plan"]);
    assert_eq!(serde_json::from_str::<Value>(&best).unwrap()["sections"], json!([1, 2, 3, 4]));
    // Nothing of it is in the way of anything else.
    let status = shell(&project, "git status --porcelain");
    assert!(!status.contains("artifacts"), "{status}");
    project.ok(&["verify"]);
}

#[test]
fn what_is_not_approved_ends_with_1_and_goes_on_when_it_is_given_more() {
    let project = studio(json!({"max_iterations": 2}));
    let ran = project.run(&["plan", "run", "job.json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.out.contains("not approved")
            && ran.out.contains("max iterations reached; the best is iteration 2 with 5/10 SOFT_FAIL"),
        "{ran:?}"
    );
    let run = project.ok(&["--quiet", "plan", "list"]).trim_end().to_owned();
    write_job(&project, json!({"max_iterations": 9}));
    let ran = project.run(&["plan", "run", "job.json", "--resume", &run]);
    assert_eq!((ran.code, ran.out.contains("approved in iteration 4")), (0, true), "{ran:?}");
    assert_eq!(lines(&project, "planned.txt"), ["1", "2", "3", "4"], "nobody was asked twice");
    // Without the job file, the job that the run was begun with counts.
    assert_eq!(project.run(&["plan", "run", "--resume", &run[..5]]).code, 0);
    // Without --resume it is a new run.
    project.ok(&["plan", "run", "job.json"]);
    assert_eq!(project.ok(&["--quiet", "plan", "list"]).lines().count(), 2);
}

#[test]
fn a_changed_job_is_refused_unless_it_is_accepted() {
    let project = studio(json!({"max_iterations": 1}));
    project.run(&["plan", "run", "job.json"]);
    let run = project.ok(&["--quiet", "plan", "list"]).trim_end().to_owned();
    write_job(&project, json!({"max_iterations": 9, "input": {"song": "other"}}));
    let refused = project.run(&["plan", "run", "job.json", "--resume", &run]);
    refused.fails(4, &["the job changed since run", ": input", "--accept-changes"]);
    assert_eq!(project.run(&["plan", "run", "job.json", "--resume", &run, "--accept-changes"]).code, 0);
}

#[test]
fn a_failing_planner_is_told_and_the_run_is_resumable() {
    let project = studio(json!({"retry": {"attempts": 2, "backoff": "1ms"}}));
    project.write("planner.sh", "echo 'no idea' >&2; exit 1");
    let failed = project.run(&["plan", "run", "job.json"]);
    failed.fails(
        1,
        &["the planner failed in iteration 1", "exit code 1", "no idea", "trying again", "--resume"],
    );
    let run = project.ok(&["--quiet", "plan", "list"]).trim_end().to_owned();
    let shown = project.ok(&["plan", "show", &run]);
    assert!(shown.contains("failed") && shown.contains("planner failed (attempt 2"), "{shown}");
    let steps = project.json(&["plan", "show", &run]);
    let failure = steps["steps"][0]["checkpoints"][0]["id"].as_str().unwrap();
    assert_eq!(project.ok(&["show", failure, "--artifact", "stderr"]), "no idea\n");
    project.write("planner.sh", PLANNER);
    write_job(&project, json!({"max_iterations": 4}));
    assert_eq!(project.run(&["plan", "run", "job.json", "--resume", &run]).code, 0);
}

#[test]
fn killed_in_the_middle_it_leaves_nothing_running_and_goes_on() {
    let project = studio(json!({"max_iterations": 4}));
    project.write("judge.sh", format!("[ \"$STAGEPOST_ITERATION\" != 2 ] || [ -e again ] || {{ echo $$ > judge.pid; sleep 600; }}\n{JUDGE}"));
    let mut child = project
        .tool(PROGRAM, ["plan", "run", "job.json"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = loop {
        match lines(&project, "judge.pid").first() {
            Some(pid) => break pid.clone(),
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let run = project.ok(&["--quiet", "plan", "list"]).trim_end().to_owned();
    let row = || project.json(&["plan", "list"])["runs"][0]["status"].clone();
    assert_eq!(row(), "running");
    assert!(is_running(&pid));
    project.run(&["plan", "run", "job.json", "--resume", &run]).fails(75, &["another process drives run"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(row(), "interrupted");
    assert!(soon(|| !is_running(&pid)), "the judge is still running");
    project.write("again", "");
    assert_eq!(project.run(&["plan", "run", "job.json", "--resume", &run]).code, 0);
    assert_eq!(lines(&project, "planned.txt"), ["1", "2", "3", "4"]);
    assert_eq!(lines(&project, "judged.txt"), ["1", "2", "3", "4"]);
}

#[test]
fn asked_to_stop_it_ends_its_programs_and_can_go_on() {
    let project = studio(json!({"max_iterations": 4}));
    project
        .write("planner.sh", format!("[ -e again ] || {{ echo $$ > planner.pid; sleep 600; }}\n{PLANNER}"));
    let child = project
        .tool(PROGRAM, ["plan", "run", "job.json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while lines(&project, "planner.pid").is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
    shell(&project, &format!("kill -INT {}", child.id()));
    let ran = Ran::of(child.wait_with_output());
    ran.fails(130, &["was stopped", "--resume"]);
    assert!(!is_running(&lines(&project, "planner.pid")[0]));
    let run = project.ok(&["--quiet", "plan", "list"]).trim_end().to_owned();
    assert_eq!(project.json(&["plan", "list"])["runs"][0]["status"], "interrupted");
    project.write("again", "");
    assert_eq!(project.run(&["plan", "run", "--resume", &run]).code, 0);
}

#[test]
fn someone_else_s_loop_records_through_commands() {
    let project = TempProject::new();
    let run =
        project.ok(&["plan", "start", "--project", "my_song", "--output-dir", "out"]).trim_end().to_owned();
    assert_eq!(run.len(), 8);
    let record = |number: &str, part: &str, text: &str| {
        let args = ["plan", "record", "--run", &run, "--iteration", number, "--type", part, "-"];
        project.run_on(text, &args)
    };
    assert_eq!(record("1", "raw", r#"{"plan": {"energy": NaN}}"#).code, 0);
    assert_eq!(record("1", "evaluation", r#"{"evaluation": {"decision": "SOFT_FAIL", "score": 6}}"#).code, 0);
    record("1", "raw", r#"{"plan": {}}"#).fails(4, &["iteration 1", "another `raw` already"]);
    record("2", "raw", "[1]").fails(2, &["not a JSON object"]);
    record("2", "raw", "nonsense").fails(2, &["the payload of `raw` is not JSON"]);
    record("2", "../evil", "{}").fails(2, &["cannot be a type of checkpoint"]);
    record("0", "raw", "{}").fails(2, &["counted from 1"]);
    let aux = project.run_on("{\"tempo\": 1}", &["plan", "record", "--run", &run, "--type", "audio", "-"]);
    assert_eq!(aux.code, 0, "{aux:?}");
    let finish = ["plan", "finish", "--run", &run, "--status", "INCOMPLETE", "-"];
    assert_eq!(project.run_on(r#"{"plan": {}, "reason": "gave up"}"#, &finish).code, 0);
    project
        .run_on("{}", &["plan", "finish", "--run", &run, "--status", "DONE", "-"])
        .fails(2, &["SUCCESS or INCOMPLETE"]);
    let raw = std::fs::read_to_string(
        project.folder.join(format!("out/checkpoints/plans/my_song_{run}_iter01_raw.json")),
    )
    .unwrap();
    assert!(raw.ends_with("\"energy\": NaN\n  }\n}"), "{raw}");
    assert!(project.folder.join("out/checkpoints/my_song_audio.json").exists());
    // What we print is JSON to everyone.
    let best = project.json(&["plan", "best", "--project", "my_song"]);
    assert_eq!((&best["plan"], &best["score"]), (&json!({"energy": null}), &json!(6)));
    assert_eq!(project.json(&["plan", "list"])["runs"][0]["reason"], "gave up");
}

#[test]
fn wrong_input_is_named() {
    let project = studio(json!({}));
    project.run(&["plan", "run", "missing.json"]).fails(3, &["failed to read missing.json"]);
    project.write("bad.json", "{\"planner\": 7}");
    project.run(&["plan", "run", "bad.json"]).fails(2, &["the job cannot be read", "schema plan-job"]);
    write_job(&project, json!({"output_dir": null}));
    project.run(&["plan", "run", "job.json"]).fails(2, &["`output_dir` is missing", "\"checkpoint\": false"]);
    assert!(!project.folder.join("None").exists());
    write_job(&project, json!({"output_dir": "../../elsewhere"}));
    project.run(&["plan", "run", "job.json"]).fails(2, &["leads out of the project"]);
    project.run(&["plan", "start", "--project", "p", "--output-dir", "."]).fails(2, &["the project itself"]);
    write_job(&project, json!({"planner": ""}));
    project.run(&["plan", "run", "job.json"]).fails(2, &["`planner` is missing"]);
    write_job(&project, json!({"timeout": "soon"}));
    project.run(&["plan", "run", "job.json"]).fails(2, &["`timeout` is no length of time"]);
    write_job(&project, json!({"max_iteration": 4}));
    let ran = project.run(&["plan", "run", "job.json"]);
    assert!(ran.err.contains("a member `max_iteration` that means nothing here"), "{ran:?}");
    let run = project.ok(&["--quiet", "plan", "list"]).trim_end().to_owned();
    project.run(&["plan", "show", "nothing"]).fails(3, &["no run of a plan called `nothing`", "plan list"]);
    project.run(&["plan", "compare", &run, "1", "99"]).fails(3, &["has no iteration 99"]);
    project.run(&["plan", "compare", "1", "2"]).fails(2, &["names no run"]);
    project.run(&["plan", "prune"]).fails(2, &["--keep"]);
    let error: Value =
        serde_json::from_str(&project.run(&["--json", "plan", "show", "nothing"]).out).unwrap();
    assert_eq!(error["error"]["code"], "not_found");
}

#[test]
fn old_iterations_are_archived_and_a_dry_run_says_the_same() {
    let project = studio(json!({"max_iterations": 3}));
    project.run(&["plan", "run", "job.json"]);
    let dry = project.ok(&["--quiet", "plan", "prune", "--keep", "1", "--dry-run"]);
    assert_eq!(dry.lines().count(), 2);
    let said = project.ok(&["plan", "prune", "--keep", "1", "--archive", "archive"]);
    assert!(said.ends_with("gave up 2 iterations, 1 stay\n"), "{said}");
    let kept = shell(
        &project,
        "find archive -type f | sort | sed 's/_[0-9a-f]\\{8\\}_/_RUN_/; s/manifest-[0-9]*/manifest/'",
    );
    assert_eq!(
        kept.lines().collect::<Vec<_>>(),
        [
            "archive/manifest.json",
            "archive/my_song/checkpoints/plans/my_song_RUN_iter01_evaluation.json",
            "archive/my_song/checkpoints/plans/my_song_RUN_iter01_raw.json",
            "archive/my_song/checkpoints/plans/my_song_RUN_iter02_evaluation.json",
            "archive/my_song/checkpoints/plans/my_song_RUN_iter02_raw.json",
        ]
    );
    assert_eq!(
        shell(&project, "ls artifacts/my_song/checkpoints/plans/*_iter*_raw.json | wc -l").trim(),
        "1"
    );
    project.ok(&["verify"]);
    project.ok(&["gc"]);
}

#[test]
fn runs_move_from_one_project_to_another() {
    let project = studio(json!({"max_iterations": 5}));
    project.ok(&["plan", "run", "job.json"]);
    let export = project.home().join("export");
    let files = project.ok(&["export", "--format", "plans", "--to", export.to_str().unwrap()]);
    assert_eq!(files.lines().count(), 11, "{files}");
    let other = TempProject::new();
    let taken = other.ok(&["import", export.to_str().unwrap()]);
    assert!(taken.ends_with("imported 11 of 11 checkpoints\n"), "{taken}");
    assert!(other.ok(&["import", export.to_str().unwrap()]).ends_with("imported 0 of 11 checkpoints\n"));
    let run = other.ok(&["--quiet", "plan", "list"]).trim_end().to_owned();
    assert_eq!(project.ok(&["plan", "scores", &run]), other.ok(&["plan", "scores", &run]));
    let again = other.home().join("again");
    other.ok(&["export", "--format", "plans", "--to", again.to_str().unwrap()]);
    let differs =
        project.tool("diff", ["-r", export.to_str().unwrap(), again.to_str().unwrap()]).output().unwrap();
    assert!(differs.status.success(), "{}", String::from_utf8_lossy(&differs.stdout));
}

#[test]
fn the_job_fits_its_schema_and_reads_from_standard_input() {
    let project = studio(json!({"max_iterations": 5}));
    let schema: Value = serde_json::from_str(&project.ok(&["schema", "plan-job"])).unwrap();
    let job = std::fs::read_to_string(project.folder.join("job.json")).unwrap();
    let value: Value = serde_json::from_str(&job).unwrap();
    for name in value.as_object().unwrap().keys() {
        assert!(schema["properties"].get(name).is_some(), "{name}");
    }
    let mut command = project.tool(PROGRAM, ["--quiet", "plan", "run", "-"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(job.as_bytes()).unwrap();
    let ran = Ran::of(child.wait_with_output());
    assert_eq!((ran.code, ran.out.trim_end().len()), (0, 8), "{ran:?}");
}
