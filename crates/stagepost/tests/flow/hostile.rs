//! Steps that do what steps should not.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use stagepost::flow::cleanup::{self, Policy};
use stagepost::flow::{Outcome, Resume};
use stagepost::model::StepStatus;
use stagepost::process;

use crate::support::Story;

fn one(run: &str) -> String {
    format!(
        "name: hostile\nsteps:\n  - id: a\n    timeout: 60s\n    run: |\n      {}\n",
        run.replace('\n', "\n      ")
    )
}

/// Says whether a process is there whose command line has a word.
fn is_alive(word: &str) -> bool {
    let commands = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
    let mut texts = commands.filter_map(|path| std::fs::read(path).ok());
    texts.any(|text| text.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes()))
}

#[test]
fn a_gigabyte_of_output_is_kept_by_its_ends() {
    let story = Story::new();
    let flow = one("echo first; head -c 1073741824 /dev/zero; echo; echo last");
    assert_eq!(story.start(&flow).unwrap(), Outcome::Completed);
    let output = story.output("a");
    assert!(output.len() < (1 << 20) + 100, "{}", output.len());
    assert!(output.starts_with(b"first\n") && output.ends_with(b"\nlast\n"));
    assert_eq!(story.state().step("a").unwrap().last().unwrap().record.printed, Some((1 << 30) + 12));
}

#[test]
fn binary_output_without_an_end_of_line_is_kept_as_it_is() {
    let story = Story::new();
    let flow = one(r"printf '\000\377\033[31m no end'");
    assert_eq!(story.start(&flow).unwrap(), Outcome::Completed);
    assert_eq!(story.output("a"), b"\0\xff\x1b[31m no end");
}

#[test]
fn a_step_that_closes_its_outputs_is_followed_to_its_end() {
    let story = Story::new();
    let flow = one("exec >&- 2>&-; sleep 0.2; touch done; exit 7");
    let failed = Outcome::Failed { why: "step `a` failed: exit code 7".to_owned() };
    assert_eq!(story.start(&flow).unwrap(), failed);
    assert!(story.home.read("done").is_some());
}

#[test]
fn what_a_step_leaves_in_its_group_ends_with_it_and_a_daemon_with_the_run() {
    let story = Story::new();
    // The second step still sees the daemon of the first; nobody sees it after the run.
    let flow = r#"
name: daemons
steps:
  - id: group
    run: 'sleep 611.1 & echo begun'
  - id: daemon
    run: 'setsid sleep 611.2 >/dev/null 2>&1 </dev/null & sleep 0.1'
  - id: later
    run: 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\0" " " | grep -c "sleep 611.2 " ; true'
"#;
    assert_eq!(story.start(flow).unwrap(), Outcome::Completed);
    let state = story.state();
    let notes = &state.step("group").unwrap().last().unwrap().record.notes;
    assert_eq!(notes, &["it left processes behind, which were ended"]);
    assert!(!is_alive("611.1") && !is_alive("611.2"));
}

#[test]
fn a_step_that_ignores_being_asked_is_killed() {
    let story = Story::new();
    let flow = "name: deaf\nsteps:\n  - {id: a, timeout: 100ms, run: 'trap \"\" TERM INT HUP; while :; do sleep 612; done'}\n";
    let why = "step `a` failed: it took longer than 100ms".to_owned();
    assert_eq!(story.start(flow).unwrap(), Outcome::Failed { why });
    assert!(!is_alive("612"));
}

#[test]
fn an_attempt_whose_time_is_over_is_ended_wherever_it_went_before_the_next_begins() {
    // A group of its own; the same without the environment; one that has lost its parents too; one that is deaf.
    let ticking = "while :; do echo $0 >> ticks; sleep 0.02; done";
    for run in [
        format!("timeout 614.1 sh -c '{ticking}' $STAGEPOST_ATTEMPT"),
        format!("timeout 614.2 env -i PATH=/usr/bin:/bin sh -c '{ticking}' $STAGEPOST_ATTEMPT; true"),
        format!("setsid -f sh -c '{ticking}' $STAGEPOST_ATTEMPT; sleep 614.3"),
        format!("timeout 614.4 sh -c 'trap : TERM; {ticking}' $STAGEPOST_ATTEMPT"),
    ] {
        let story = Story::new();
        let flow = format!(
            "name: groups\nsteps:\n  - id: a\n    timeout: 300ms\n    retry: {{attempts: 3, backoff: 10ms}}\n    run: |\n      {}\n",
            run
        );
        assert!(matches!(story.start(&flow).unwrap(), Outcome::Failed { .. }), "{run}");
        let ticks = story.lines("ticks");
        let ticks: Vec<&str> = ticks.split(' ').collect();
        assert!(
            ticks.is_sorted() && ticks.first() == Some(&"1") && ticks.last() == Some(&"3"),
            "{run}: {ticks:?}"
        );
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(story.lines("ticks").split(' ').count(), ticks.len(), "{run}: it goes on after the run");
    }
}

#[test]
fn what_a_failed_attempt_left_in_a_group_of_its_own_is_ended_before_the_next_begins() {
    let story = Story::new();
    let flow = r#"
name: left
steps:
  - id: a
    retry: {attempts: 2, backoff: 1ms}
    run: |
      setsid -f sh -c 'while :; do echo $0 >> ticks; sleep 0.02; done' $STAGEPOST_ATTEMPT >/dev/null 2>&1 </dev/null
      sleep 0.2
      exit 1
"#;
    assert!(matches!(story.start(flow).unwrap(), Outcome::Failed { .. }));
    let ticks = story.lines("ticks");
    assert!(ticks.split(' ').is_sorted() && ticks.ends_with('2'), "{ticks}");
}

#[test]
fn a_result_that_is_no_json_fails_the_step_and_is_tried_again() {
    let story = Story::new();
    let flow = r#"
name: json
steps:
  - id: a
    retry: {attempts: 2, backoff: 1ms}
    run: 'if test "$STAGEPOST_ATTEMPT" = 1; then echo "{" > "$STAGEPOST_OUTPUT"; else echo 7 > "$STAGEPOST_OUTPUT"; fi'
"#;
    assert_eq!(story.start(flow).unwrap(), Outcome::Completed);
    let state = story.state();
    let first = &state.step("a").unwrap().attempts[0];
    assert!(first.record.error.as_ref().unwrap().starts_with("its result is not valid JSON"), "{first:?}");
}

#[test]
fn an_output_that_leads_out_of_the_project_is_not_taken() {
    let story = Story::new();
    let flow = "name: out\nsteps:\n  - {id: a, outputs: [link], run: 'ln -sf /etc/hostname link'}\n";
    let why = "step `a` failed: its output `link` lies outside the project".to_owned();
    assert_eq!(story.start(flow).unwrap(), Outcome::Failed { why });
}

#[test]
fn an_output_is_put_back_with_its_mode() {
    let story = Story::new();
    let make = "umask 022; mkdir -p bin; for m in 755 600 444; do echo $m > bin/$m; chmod $m bin/$m; done";
    let outputs = "outputs: [bin/755, bin/600, bin/444]";
    let flow = format!(
        "name: modes\nsteps:\n  - {{id: a, {outputs}, run: '{make}'}}\n  - {{id: b, run: 'test -e go'}}\n"
    );
    assert!(matches!(story.start(&flow).unwrap(), Outcome::Failed { .. }));
    std::fs::remove_dir_all(story.home.root().join("bin")).unwrap();
    story.home.write("go", "");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.state().step("a").unwrap().attempts.len(), 1, "it is not made again");
    for (name, mode) in [("755", 0o755), ("600", 0o600), ("444", 0o444)] {
        let found = std::fs::metadata(story.home.root().join("bin").join(name)).unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "{name}: {found:o}");
        assert_eq!(story.lines(&format!("bin/{name}")), name);
    }
}

#[test]
fn an_output_is_put_back_through_no_link_that_leads_out_of_the_project() {
    let story = Story::new();
    let flow = "name: out\nsteps:\n  - {id: a, outputs: [bin/deep/tool], run: 'mkdir -p bin/deep; echo a > bin/deep/tool'}\n  - {id: b, run: 'test -e go'}\n";
    assert!(matches!(story.start(flow).unwrap(), Outcome::Failed { .. }));
    let (bin, outside) = (story.home.root().join("bin"), tempfile::tempdir().unwrap());
    std::fs::remove_dir_all(&bin).unwrap();
    symlink(outside.path(), &bin).unwrap();
    story.home.write("go", "");
    let error = story.resume(Resume::default()).unwrap_err();
    assert!(error.to_string().contains("failed to put back"), "{error}");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    // Elsewhere in the project is no harm.
    std::fs::remove_file(&bin).unwrap();
    std::fs::create_dir(story.home.root().join("elsewhere")).unwrap();
    symlink("elsewhere", &bin).unwrap();
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("elsewhere/deep/tool"), "a");
}

/// Runs something that must not hang.
fn in_time<T>(work: impl FnOnce() -> T) -> T {
    let (told, is_over) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|threads| {
        threads.spawn(move || {
            let waited = is_over.recv_timeout(Duration::from_secs(60));
            if waited == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                // A panic would wait for what hangs.
                std::process::abort();
            }
        });
        let done = work();
        drop(told);
        done
    })
}

fn pipe_at(story: &Story, path: &str) {
    let made = std::process::Command::new("mkfifo").arg(story.home.root().join(path)).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_pipe_among_the_inputs_or_in_place_of_an_output_hangs_nobody() {
    let story = Story::new();
    story.home.write("d/a.txt", "a");
    pipe_at(&story, "d/pipe");
    pipe_at(&story, "alone");
    let flow = "name: pipes\nsteps:\n  - {id: a, inputs: [d, alone], outputs: [out], run: 'rm -f out; echo a >> log; echo a > out'}\n  - {id: b, run: 'test -e go'}\n";
    assert!(matches!(in_time(|| story.start(flow)).unwrap(), Outcome::Failed { .. }));
    assert!(in_time(|| story.plan()).step("a").unwrap().is_reuse());
    story.home.write("d/a.txt", "b");
    assert_eq!(story.plan().step("a").unwrap().name(), "changed", "the pipe does not hide the others");
    story.home.write("d/a.txt", "a");
    story.home.remove("out");
    pipe_at(&story, "out");
    assert_eq!(in_time(|| story.plan()).step("a").unwrap().name(), "changed");
    story.home.write("go", "");
    assert_eq!(in_time(|| story.resume(Resume::default())).unwrap(), Outcome::Completed);
    assert_eq!((story.lines("log"), story.lines("out")), ("a a".to_owned(), "a".to_owned()));
}

#[test]
fn what_lies_in_an_input_folder_counts_with_what_it_is() {
    let story = Story::new();
    story.home.write("d/tool", "x");
    story.home.write("d/other", "tool");
    let flow = "name: kinds\nsteps:\n  - {id: a, inputs: [d], run: 'true'}\n  - {id: b, run: 'false'}\n";
    story.start(flow).unwrap();
    let (tool, other) = (story.home.root().join("d/tool"), story.home.root().join("d/other"));
    let is_reused = || story.plan().step("a").unwrap().is_reuse();
    assert!(is_reused());
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!is_reused(), "it can be executed now");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert!(is_reused(), "who may read it does not matter");
    std::fs::remove_file(&other).unwrap();
    symlink("tool", &other).unwrap();
    assert!(!is_reused(), "a link is no file that holds where it leads");
}

#[test]
fn an_executable_that_is_put_back_does_not_make_its_readers_run_again() {
    let story = Story::new();
    let flow = "name: tool\nsteps:\n  - {id: a, outputs: [bin/tool], run: 'mkdir -p bin; echo a > bin/tool; chmod 755 bin/tool'}\n  - {id: b, inputs: [bin], needs: [a], run: 'echo b >> log'}\n  - {id: c, needs: [b], run: 'test -e go'}\n";
    story.start(flow).unwrap();
    story.home.remove("bin/tool");
    story.home.write("go", "");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert_eq!(story.lines("log"), "b");
}

#[test]
fn whatever_a_step_makes_of_its_files_fails_that_attempt_only() {
    let elsewhere = tempfile::tempdir().unwrap();
    let kept = elsewhere.path().join("kept");
    std::fs::write(&kept, "[1]").unwrap();
    let outside = elsewhere.path().display();
    for (spoil, ends) in [
        ("mkdir $STAGEPOST_OUTPUT; touch $STAGEPOST_OUTPUT/x".to_owned(), "is a directory"),
        ("mkfifo $STAGEPOST_OUTPUT".to_owned(), "not a regular file"),
        ("echo '[18446744073709551616]' > $STAGEPOST_OUTPUT".to_owned(), "rounded: write it as a text"),
        (format!("ln -s {outside} $STAGEPOST_OUTPUT"), "is a directory"),
        ("rm $STAGEPOST_INPUT; mkdir $STAGEPOST_INPUT; exit 1".to_owned(), "exit code 1"),
        (format!("ln -sf {outside}/kept $STAGEPOST_INPUT; exit 1"), "exit code 1"),
        ("rm $STAGEPOST_INPUT; mkfifo $STAGEPOST_INPUT; exit 1".to_owned(), "exit code 1"),
    ] {
        let story = Story::new();
        let flow = format!(
            "name: spoilt\nsteps:\n  - id: a\n    retry: {{attempts: 2, backoff: 1ms}}\n    run: |\n      if test $STAGEPOST_ATTEMPT = 1; then {spoil}; exit; fi\n      test -s $STAGEPOST_INPUT; echo 7 > $STAGEPOST_OUTPUT\n"
        );
        assert_eq!(in_time(|| story.start(&flow)).unwrap(), Outcome::Completed, "{spoil}");
        let state = story.state();
        let first = state.step("a").unwrap().attempts[0].record.error.clone().unwrap();
        assert!(first.ends_with(ends), "{spoil}: {first}");
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "[1]", "{spoil}");
    }
}

#[test]
fn what_is_left_of_an_earlier_drive_is_ended_before_going_on() {
    let story = Story::new();
    let flow = "name: left\nsteps:\n  - {id: a, run: 'test -e go || exit 1'}\n";
    story.start(flow).unwrap();
    // A step of a drive that was killed: its group is written down, and it carries the mark of the run.
    let folder = story.project.place().store.join("flow/r");
    std::fs::create_dir_all(&folder).unwrap();
    let mut left = std::process::Command::new("sleep");
    let mut left = std::os::unix::process::CommandExt::process_group(left.arg("613"), 0).spawn().unwrap();
    let who = process::Identity::of(left.id().cast_signed());
    let line = format!("start\t5\ta\nprocess\t{}\t{}\t{}\ta\n", who.pid, who.started, who.boot);
    std::fs::write(folder.join("attempts"), line).unwrap();
    story.home.write("go", "");
    let reaper = std::thread::spawn(move || left.wait());
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
    assert!(!is_alive("613"));
    reaper.join().unwrap().unwrap();
    assert_eq!(story.watch.take().iter().filter(|line| *line == "ended 1").count(), 1);
    let state = story.state();
    let last = state.step("a").unwrap().last().unwrap();
    assert_eq!((last.attempt, last.status), (6, StepStatus::Completed), "attempts are counted on");
}

/// Starts a process in a group whose leader is gone, as daemons are, and returns the number of the group.
fn stranger(seconds: &str) -> i32 {
    let mut leader = std::process::Command::new("sh");
    leader.args(["-c", &format!("sleep {seconds} > /dev/null 2>&1 &")]);
    let mut leader = std::os::unix::process::CommandExt::process_group(&mut leader, 0).spawn().unwrap();
    leader.wait().unwrap();
    while !is_alive(seconds) {
        std::thread::sleep(Duration::from_millis(5));
    }
    leader.id().cast_signed()
}

#[test]
fn a_group_that_was_over_may_have_given_its_number_to_a_stranger() {
    let flow = "name: f\nsteps:\n  - {id: a, run: 'true'}\n  - {id: b, run: 'true'}\n  - {id: c, ask: {}}\n";
    // The runner stops in an orderly way, or is killed.
    for killed in [false, true] {
        let story = Story::new();
        match killed {
            false => drop(story.start(flow).unwrap()),
            true => story.killed_at("b begins (1)", |story| story.start(flow)),
        }
        let path = story.project.place().store.join("flow/r/attempts");
        let lines = std::fs::read_to_string(&path).unwrap();
        let mut numbers = lines.lines().filter_map(|line| line.strip_prefix("process\t")?.split('\t').next());
        let number = numbers.next_back().unwrap().to_owned();
        let stranger = stranger("617.1");
        // As if the kernel had given the number away again.
        let reused = lines.replace(&format!("\t{number}\t"), &format!("\t{stranger}\t"));
        std::fs::write(&path, reused).unwrap();
        story.resume(Resume::default()).unwrap();
        assert!(is_alive("617.1"), "it was none of ours: {lines}");
        process::end_group(stranger, Duration::ZERO).unwrap();
    }
}

#[test]
fn a_cleanup_ends_what_a_killed_run_left_and_what_that_started() {
    let story = Story::new();
    story.start("name: left\nsteps:\n  - {id: a, run: 'exit 1'}\n").unwrap();
    let folder = story.project.place().store.join("flow/r");
    std::fs::create_dir_all(&folder).unwrap();
    // Its environment says nothing, and it has a child in another group.
    let mut left = std::process::Command::new("sh");
    left.env_clear().args(["-c", "timeout 616.1 /bin/sleep 616.2; /bin/sleep 616.3"]);
    let mut left = std::os::unix::process::CommandExt::process_group(&mut left, 0).spawn().unwrap();
    while !is_alive("616.2") {
        std::thread::sleep(Duration::from_millis(5));
    }
    let who = process::Identity::of(left.id().cast_signed());
    let line = format!("start\t5\ta\nprocess\t{}\t{}\t{}\ta\n", who.pid, who.started, who.boot);
    std::fs::write(folder.join("attempts"), line).unwrap();
    let reaper = std::thread::spawn(move || left.wait());
    let policy = Policy { max_age: Duration::ZERO, only: None };
    let plan = cleanup::plan(&story.project, &policy).unwrap();
    assert_eq!(cleanup::apply(&story.project, &plan).unwrap().deleted.len(), 1);
    assert!(!is_alive("616.1") && !is_alive("616.2") && !is_alive("616.3"));
    reaper.join().unwrap().unwrap();
}

#[test]
fn a_wish_to_stop_ends_what_runs_at_once_and_the_run_can_go_on() {
    let mut story = Story::new();
    let flow = "name: stop\nsteps:\n  - {id: a, run: 'touch begun; test -e go || sleep 614'}\n";
    std::thread::scope(|threads| {
        let started = threads.spawn(|| story.start(flow).unwrap());
        while story.home.read("begun").is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        story.cancel.cancel();
        assert_eq!(started.join().unwrap(), Outcome::Interrupted);
    });
    assert!(!is_alive("614"));
    story.cancel = process::Cancel::new().unwrap();
    story.home.write("go", "");
    assert_eq!(story.resume(Resume::default()).unwrap(), Outcome::Completed);
}
