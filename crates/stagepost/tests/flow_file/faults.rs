//! What is wrong with a file is said with its place, all of it at once.

use proptest::prelude::*;
use stagepost::flow::definition::Flow;

/// Everything that is wrong, as `line:column what`.
fn faults(file: &str) -> Vec<String> {
    let invalid = Flow::read(file).expect_err("it should be refused");
    let shown = |fault: &stagepost::flow::definition::Fault| {
        format!("{}:{} {}", fault.place.line, fault.place.column, fault.what)
    };
    invalid.faults.iter().map(shown).collect()
}

/// The file has exactly this fault.
#[track_caller]
fn fault(file: &str, place: &str, part: &str) {
    let found = faults(file);
    assert_eq!(found.len(), 1, "{found:#?}\n{file}");
    assert!(found[0].starts_with(&format!("{place} ")) && found[0].contains(part), "{found:#?}\n{file}");
}

/// A flow whose second step has `lines` at lines 5 and on, in column 5.
fn with_step(lines: &str) -> String {
    let lines: Vec<&str> = lines.lines().collect();
    format!("name: x\nsteps:\n  - {{ id: a, run: 'true' }}\n  - id: b\n    {}\n", lines.join("\n    "))
}

#[test]
fn broken_yaml_has_a_place() {
    for (file, line) in
        [("name: [x\nsteps: 1", 2), ("name: 'x", 1), ("a:\n\tc: d", 2), ("name: x\nname: y\nsteps: []", 2)]
    {
        let found = Flow::read(file).unwrap_err().faults;
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].place.line, line, "{found:?}");
        assert!(!found[0].what.contains("at line"), "{found:?}");
    }
    assert!(Flow::read("").is_err());
    assert!(Flow::read("name: x\nsteps: [{id: a, run: b}]\n---\nname: y").is_err());
}

#[test]
fn keys_that_do_not_exist_are_told_with_what_was_meant() {
    fault("name: x\nsetps: []\nsteps: [{id: a, run: b}]", "2:1", "did you mean `steps`?");
    fault(&with_step("run: make\nneed: [a]"), "6:5", "did you mean `needs`?");
    fault(&with_step("run: make\nretry: { attempts: 2, back-off: 1s }"), "6:27", "did you mean `backoff`?");
    fault(&with_step("run: make\nzebra: 1"), "6:5", "known are id, name");
    fault(&with_step("ask: { kind: aprove }"), "5:18", "did you mean `approve`?");
    fault(&with_step("run: make\non_failure: rolback"), "6:17", "did you mean `rollback`?");
}

#[test]
fn what_is_named_must_exist() {
    fault(&with_step("run: make\nneeds: [a, c]"), "6:16", "there is no step `c`");
    fault(&with_step("run: make\non_failure: { goto: aa }"), "6:25", "did you mean `a`?");
    fault(&with_step("ask:\n  on: { confirm: nowhere }"), "6:22", "there is no step `nowhere`");
    fault(&with_step("run: make\nif: c.exit == 0"), "6:9", "there is no step `c`");
    fault(&with_step("ask: { data: c.final }"), "5:18", "there is no step `c`");
    fault(&with_step("run: make\nfor_each: { list: c.files }"), "6:23", "there is no step `c`");
}

#[test]
fn a_step_cannot_look_at_what_comes_after_it() {
    let file = "name: x\nsteps:\n- { id: a, run: 'true', if: b.exit == 0 }\n- { id: b, run: 'true' }\n";
    fault(file, "3:29", "`b` does not come before `a`");
    let side =
        "name: x\nsteps:\n- { id: a, run: 'true' }\n- { id: b, run: 'true', needs: [], if: a.exit == 0 }\n";
    fault(side, "4:40", "add it to `needs`");
    // An answer can lead back, and then what it said is known.
    let back = "name: x\nsteps:\n- { id: a, run: 'true', if: '!exists(b.action)' }\n- { id: b, ask: { on: { back: a } } }\n";
    Flow::read(back).unwrap();
}

#[test]
fn ids_are_names_and_each_is_there_once() {
    fault("name: x\nsteps:\n  - {id: a, run: b}\n  - {id: a, run: b}", "4:10", "at line 3 already");
    fault("name: x\nsteps: [{id: 'a b', run: b}]", "2:14", "letters, digits");
    fault("name: x\nsteps: [{id: ../a, run: b}]", "2:14", "letters, digits");
    fault("name: x\nsteps: [{id: input, run: b}]", "2:14", "meaning of its own");
    fault("name: x\nsteps: [{run: b}]", "2:9", "needs an `id`");
}

#[test]
fn needs_do_not_form_a_circle() {
    let file = "name: x\nsteps:\n  - {id: a, run: b, needs: [c]}\n  - {id: b, run: b}\n  - {id: c, run: b}\n  - {id: d, run: d}";
    fault(file, "3:29", "a -> c -> b -> a");
    fault("name: x\nsteps: [{id: a, run: b, needs: [a]}]", "2:33", "a -> a");
}

#[test]
fn a_flow_needs_steps_and_a_step_something_to_do() {
    fault("name: x\nsteps: []", "2:8", "no steps");
    fault("name: x", "1:1", "needs `steps`");
    fault("steps: [{id: a, run: b}]", "1:1", "needs a `name`");
    fault("name: x\nsteps: [{id: a}]", "2:9", "needs `run`, `ask` or `refine`");
    fault(&with_step("run: make\nask: {}"), "6:10", "only one of");
    fault(&with_step("run: ''"), "5:10", "empty");
    fault(&with_step("run: []"), "5:10", "empty");
    fault("[1, 2]", "1:1", "a flow with its keys is expected here, not a list");
}

#[test]
fn values_have_the_wanted_kind() {
    fault(&with_step("run: 5"), "5:10", "not a number");
    fault(&with_step("run: true"), "5:10", "put it in quotes");
    fault(&with_step("run: make\nsnapshot: yes"), "6:15", "true or false is expected");
    fault(&with_step("run: make\ntimeout: 5"), "6:14", "`5` is no duration");
    fault(&with_step("run: make\ntimeout: soon"), "6:14", "`soon` is no duration");
    fault(&with_step("run: make\ntimeout: 0s"), "6:14", "at once");
    fault(&with_step("run: make\nretry: { attempts: -1 }"), "6:24", "not -1");
    fault(&with_step("run: make\nretry: { attempts: 0 }"), "6:24", "not 0");
    fault(&with_step("run: make\nretry: { backoff: 1s }"), "6:12", "needs `attempts`");
    fault(&with_step("run: make\nretry: { attempts: 2, on_exit: [0] }"), "6:37", "from 1 to 255");
    fault(&with_step("run: make\nenv: { 'A-B': c }"), "6:12", "no name of a variable");
    fault(&with_step("run: make\nenv: { STAGEPOST_RUN: c }"), "6:12", "cannot be set here");
    fault(&with_step("run: make\nenv: { A: b }\nsecrets: [A]"), "6:10", "is a secret");
    fault(&with_step("run: make\nfor_each: { list: 5 }"), "6:23", "not a number");
    fault(&with_step("run: make\nfor_each: { list: [1], side_by_side: 0 }"), "6:42", "from 1 to 256");
    fault(&with_step("run: make\nif: draft.score >> 5"), "6:22", "a value is expected");
    fault(&with_step("run: make\nif: 'a.exit = 0'"), "6:17", "write `==`");
    fault(&with_step("refine: { planner: a }"), "5:13", "needs a `judge`");
    fault(&with_step("refine: { planner: a, judge: b, approve_at: 3 }"), "5:13", "less than");
    fault(&with_step("ask: { kind: choose }"), "5:10", "needs `options`");
    fault(&with_step("ask: { on: { select: a } }"), "5:18", "nobody can answer `select`");
    fault(&with_step("ask: {}\nretry: { attempts: 2 }"), "6:12", "no meaning where a person is asked");
}

#[test]
fn no_path_leaves_the_project() {
    for path in ["../a", "/etc/passwd", "a/../../b", "a//b", ".git/config", "a/.GIT/x", "''", "\"a\\u0007b\""]
    {
        fault(&with_step(&format!("run: make\noutputs: [{path}]")), "6:15", "no path within the project");
        fault(&with_step(&format!("run: make\ncwd: {path}")), "6:10", "no path within the project");
        fault(&with_step(&format!("run: make\ninputs: [{path}]")), "6:14", "no path within the project");
    }
    fault(&with_step("run: make\noutputs: [.cache/x]"), "6:15", "name it with");
    Flow::read(&with_step("run: make\ncwd: .\noutputs: [./a/b, c]")).unwrap();
}

#[test]
fn everything_that_is_wrong_is_said_from_top_to_bottom() {
    let found = faults("nam: x\nsteps:\n  - {id: a, run: 5}\n  - {id: b, run: c, timeout: x, needs: [q]}\n");
    let places: Vec<&str> = found.iter().filter_map(|fault| fault.split(' ').next()).collect();
    assert_eq!(places, ["1:1", "1:1", "3:18", "4:30", "4:41"], "{found:#?}");
}

#[test]
fn a_file_cannot_use_up_memory_or_the_stack() {
    let mut bomb = String::from("name: x\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let row = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{row}]\n"));
    }
    assert_eq!(Flow::read(&bomb).unwrap_err().faults.len(), 1);
    let deep = format!("name: x\nsteps: {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(Flow::read(&deep).unwrap_err().faults.len(), 1);
    let wide = format!("name: x\ndescription: '{}'\nsteps: []", "y".repeat(2 << 20));
    assert!(Flow::read(&wide).unwrap_err().to_string().contains("a flow may have"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_file_makes_it_panic(cuts in prop::collection::vec((0usize..600, "[ -~\n\u{0}ü]{0,6}"), 1..6)) {
        let mut file = String::from(super::reading::RELEASE);
        for (at, text) in cuts {
            let at = (at..=file.len()).find(|at| file.is_char_boundary(*at)).unwrap_or(file.len());
            let end = (at + 3..=file.len()).find(|at| file.is_char_boundary(*at)).unwrap_or(file.len());
            file.replace_range(at..end.max(at), &text);
        }
        if let Err(invalid) = Flow::read(&file) {
            prop_assert!(!invalid.faults.is_empty());
        }
    }
}
