//! Names, ids and texts that mean harm, given to every command.
//!
//! Whatever is given: no panic, an exit code that is documented, no file outside of the store, nothing run, and nothing
//! printed that a terminal would obey.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use crate::support::{PROGRAM, Ran, TempProject};

/// Every command that takes a name, an id, a path or a text; `{}` is where it goes.
const COMMANDS: &[&[&str]] = &[
    &["show", "{}"],
    &["log", "--run", "{}"],
    &["log", "--since", "{}"],
    &["diff", "{}"],
    &["diff", "@", "{}"],
    &["restore", "{}", "--yes"],
    &["restore", "@", "{}", "--yes"],
    &["pin", "{}"],
    &["save", "-m", "{}"],
    &["save", "--run", "{}"],
    &["save", "--label", "{}"],
    &["save", "--artifact", "{}"],
    &["save", "--state", "{}"],
    &["gc", "--keep", "{}"],
    &["gc", "--max-age", "{}"],
    &["import", "{}"],
    &["config", "{}"],
    &["schema", "{}"],
    &["completions", "{}"],
    &["session", "start", "--request", "{}"],
    &["session", "create", "--session-id", "{}", "--description", "x", "--phase", "plan"],
    &["session", "create", "--session-id", "s", "--description", "{}", "--phase", "plan", "--no-commit"],
    &["session", "get", "--session-id", "{}", "--checkpoint-id", "{}"],
    &["session", "list", "--session-id", "{}"],
    &["session", "rollback", "--session-id", "{}", "--checkpoint-id", "{}"],
    &["session", "delete", "--session-id", "{}", "--checkpoint-id", "{}"],
    &["task", "save", "--task", "1", "--stage", "{}", "-m", "x"],
    &["task", "save", "--task", "1", "--stage", "start", "-m", "{}", "--no-commit"],
    &["task", "note", "{}"],
    &["task", "note", "--task", "{}", "x"],
    &["task", "recover", "--task", "1", "--error", "{}"],
    &["gate", "ask", "{}"],
    &["gate", "ask", "--id", "{}", "really?"],
    &["gate", "show", "{}"],
    &["gate", "answer", "{}", "yes"],
    &["gate", "cancel", "{}"],
    &["flow", "run", "{}"],
    &["flow", "show", "{}"],
    &["flow", "resume", "{}"],
    &["flow", "fork", "{}", "--from-step", "{}"],
    &["flow", "cancel", "{}"],
    &["plan", "start", "--project", "{}"],
    &["plan", "run", "{}"],
    &["plan", "show", "{}"],
    &["plan", "compare", "{}", "1", "2"],
    &["{}"],
    &["--directory", "{}", "log"],
];

/// About five hundred texts that some program somewhere tripped over.
fn hostile() -> Vec<OsString> {
    let mut texts: Vec<OsString> = Vec::new();
    for control in (1..32u8).chain([127]) {
        texts.push(OsString::from_vec(vec![b'a', control, b'b']));
        texts.push(OsString::from_vec(vec![control]));
    }
    let parts = [
        "..",
        ".",
        "/",
        "//",
        "../..",
        "../../../../tmp/pwned",
        "/etc/passwd",
        ".git",
        ".GIT/config",
        ".git/hooks/x",
        "a/../b",
        "a/./b",
        "~",
        "~root",
        "-",
        "--",
        "-x",
        "--help",
        "--version",
        "--upload-pack=touch pwned",
        "-oProxyCommand=touch pwned",
        "$(touch pwned)",
        "`touch pwned`",
        "; touch pwned",
        "| touch pwned",
        "& touch pwned",
        "\n touch pwned",
        "'; touch pwned; '",
        "\"; touch pwned; \"",
        "${IFS}",
        "$HOME",
        "%s%s%n",
        "%00",
        "{0}",
        "{{7*7}}",
        "' OR '1'='1",
        "'; DROP TABLE entries; --",
        "@{u}",
        "@{-1}",
        "HEAD^{/x}",
        "HEAD~1",
        "refs/heads/main",
        "refs/stagepost/x",
        ":/x",
        ":(top)",
        "a..b",
        "a...b",
        "a.lock",
        "a@{b",
        "a\\b",
        "a:b",
        "a?b",
        "a*b",
        "a[b",
        "con",
        "nul",
        "aux.txt",
        "\u{202e}gpj.exe",
        "\u{2066}x\u{2069}",
        "\u{200b}",
        "\u{feff}x",
        "\u{85}",
        "\u{9b}31m",
        "\u{9d}0;title\u{9c}",
        "\u{1b}[31mred",
        "\u{1b}]0;title\u{7}",
        "\u{1b}]8;;http://x\u{1b}\\",
        "\u{1b}[2J\u{1b}[H",
        "\u{1b}P+q\u{1b}\\",
        "\r\n# fake heading",
        "a\r b",
        "\u{8}\u{8}\u{8}",
        "\u{0300}\u{0301}",
        "e\u{301}",
        "\u{1f469}\u{200d}\u{1f4bb}",
        "null",
        "true",
        "[]",
        "{}",
        "\"",
        "\\",
        "0",
        "-1",
        "99999999999999999999999",
        "1e999",
        "NaN",
        "0x10",
        "1 2",
        " ",
        "\t",
        "",
        "ÿ",
        "ﬀ",
        "İ",
    ];
    texts.extend(parts.iter().map(OsString::from));
    for (before, after) in [("x", ""), ("", "x"), ("run/", ""), ("a=", ""), ("", "/1")] {
        texts.extend(parts.iter().map(|part| OsString::from(format!("{before}{part}{after}"))));
    }
    for bytes in [&b"\xff\xfe"[..], b"a\x80", b"\xc3\x28", b"\xf0\x28\x8c\xbc", b"../\xff", b"\xed\xa0\x80"] {
        texts.push(OsString::from_vec(bytes.to_vec()));
    }
    for length in [127, 128, 129, 255, 256, 4096, 100_000] {
        texts.push("a".repeat(length).into());
        texts.push("../".repeat(length / 3).into());
        texts.push("\u{1b}[".repeat(length / 2).into());
    }
    assert!(texts.len() >= 500, "{}", texts.len());
    texts
}

#[test]
fn no_name_makes_a_command_do_anything_else() {
    let project = TempProject::new();
    project.write("a.txt", "one");
    project.save("first", &[]);
    let texts = hostile();
    let step = if std::env::var_os("STAGEPOST_FULL").is_some() { 1 } else { 41 };
    for (number, command) in COMMANDS.iter().enumerate() {
        for text in texts.iter().skip(number % step).step_by(step) {
            let arguments =
                command.iter().map(|part| if *part == "{}" { text.as_os_str() } else { OsStr::new(part) });
            let ran = Ran::of(project.tool(PROGRAM, arguments).output());
            let told = format!("{command:?} with {text:?}: {ran:?}");
            assert!(matches!(ran.code, 0..=7 | 75), "{told}");
            assert_eq!(obeyed(&ran.out).or(obeyed(&ran.err)), None, "{told}");
            assert_eq!(outside(&project), [""; 0], "{told}");
        }
    }
    assert_eq!(fs::read_to_string(project.folder.join("a.txt")).unwrap(), "one");
    project.ok(&["verify"]);
}

/// Sequences that terminals obey, characters that turn text around, and a line that pretends to be another.
const EVIL: &str = "\u{1b}[31m\u{9b}2J\u{202e}evil\r\n# heading\u{7}\u{7f}\u{200b}";

/// A project with something evil in every text that it can hold, made by commands whose output is looked at too.
fn evil_project() -> (TempProject, String) {
    let project = TempProject::new();
    for setting in [["user.name", "Ada"], ["user.email", "ada@example.org"]] {
        assert!(project.tool("git", [&["config"], &setting[..]].concat()).status().unwrap().success());
    }
    assert!(project.tool("git", ["checkout", "-qb", "br\u{202e}anch\u{9b}"]).status().unwrap().success());
    project.write("a.txt", "one");
    let say = |codes: &[i32], args: &[&str]| says(&project, codes, args);
    let evil_json = serde_json::json!({"text": EVIL, EVIL: [EVIL, {EVIL: 1}]}).to_string();
    project.write("evil.json", &evil_json);
    say(
        &[0],
        &["save", "-m", EVIL, "--metadata", &evil_json, "--state", "evil.json", "--label", "ev\u{e9}l=1"],
    );
    let session = say(&[0], &["--quiet", "session", "start", "--request", EVIL]).trim().to_owned();
    for more in [&["--no-commit"][..], &[]] {
        project.write("a.txt", format!("{more:?}"));
        let create =
            ["session", "create", "--session-id", &session, "--phase", "plan", "--description", EVIL];
        say(&[0], &[&create, more].concat());
        say(&[0], &[&["task", "save", "--task", "1", "--stage", "start", "-m", EVIL], more].concat());
    }
    say(
        &[0],
        &["session", "validate", "--test-command", "cat evil.json; printf '\\033[31m\\302\\233'; false"],
    );
    say(&[0], &["task", "note", "--task", "1", EVIL]);
    say(&[0], &["task", "note", EVIL]);
    say(&[0], &["task", "recover", "--task", "1", "--error", "implementation", "-m", EVIL]);
    gates(&project, &say);
    plans_and_flows(&project, &say);
    project.write(&format!("{}.txt", EVIL.replace('/', "")), format!("{EVIL}\n"));
    project.write("a.txt", format!("{EVIL}\n{EVIL}"));
    say(&[0], &["save", "-m", "with a name and a content"]);
    project.write("a.txt", format!("{EVIL}\nchanged {EVIL}"));
    (project, session)
}

/// Runs a command, and looks at whatever it prints.
#[track_caller]
fn says(project: &TempProject, codes: &[i32], args: &[&str]) -> String {
    let ran = project.run_with(&[("STAGEPOST_USER", EVIL)], args);
    assert!(codes.contains(&ran.code), "{args:?}: {ran:?}");
    assert_eq!(obeyed(&ran.out).or(obeyed(&ran.err)), None, "{args:?}: {ran:?}");
    ran.out
}

fn gates(project: &TempProject, say: &dyn Fn(&[i32], &[&str]) -> String) {
    let options = serde_json::json!([{"id": "a", "label": EVIL, "description": EVIL}, EVIL]).to_string();
    project.write("options.json", options);
    say(&[6], &["gate", "ask", "--id", "g", "--data", "evil.json", EVIL]);
    say(&[2, 6], &["gate", "ask", "--id", "h", "--kind", "choose", "--options", "options.json", EVIL]);
    say(&[6], &["gate", "ask", "--id", "i", "--kind", "input", EVIL]);
    say(&[0, 4], &["gate", "answer", "g", "--by", EVIL, EVIL]);
    say(&[0], &["gate", "answer", "i", "--by", EVIL, EVIL]);
    say(&[6, 7], &["gate", "ask", "--id", "j", "--via", "cat evil.json", EVIL]);
    say(&[0, 1, 6], &["gate", "ask", "--id", "k", "--via", "exit 3", EVIL]);
    say(&[0, 4], &["gate", "cancel", "j"]);
    let journey = format!(
        "name: trip\nstops:\n  - name: ask\n    ask: {{kind: confirm, message: {}}}\n",
        r#""\u202eevil\u009b""#
    );
    project.write("journey.yaml", journey);
    say(&[0, 2, 6], &["gate", "journey", "run", "journey.yaml"]);
}

fn plans_and_flows(project: &TempProject, say: &dyn Fn(&[i32], &[&str]) -> String) {
    let judge = "cat evil.json >&2; sed 's/^{/{\"score\": 2, \"feedback\": \"\u{9b}x\", /' evil.json";
    let job = serde_json::json!({
        "project_name": "p", "checkpoint": false, "max_iterations": 2, "planner": "cat evil.json", "judge": judge,
    });
    project.write("job.json", job.to_string());
    say(&[0, 1], &["plan", "run", "job.json"]);
    let broken = serde_json::json!({
        "project_name": "p\u{202e}q", "checkpoint": false, "planner": "cat evil.json >&2; printf '\u{9b}'; exit 3", "judge": "x",
    });
    project.write("broken.json", broken.to_string());
    say(&[1, 2], &["plan", "run", "broken.json"]);
    let name = r#""fl\u202eow""#;
    let flow = format!(
        "name: {name}\ndescription: {name}\nsteps:\n  - {{id: one, name: {name}, run: \"cat evil.json; cat evil.json >&2; printf          '\\\\033[31m\\\\r\\\\n'; cp evil.json $STAGEPOST_OUTPUT\", snapshot: true}}\n  - {{id: two, run: \"cat evil.json >&2; false\"}}\n"
    );
    project.write("flow.yaml", &flow);
    let ran = project.run(&["flow", "check", "flow.yaml"]);
    if ran.code != 0 {
        // Not every flow has names and descriptions for everything.
        assert_eq!(obeyed(&ran.out).or(obeyed(&ran.err)), None, "{ran:?}");
        let plain =
            flow.replace(&format!("description: {name}\n"), "").replace(&format!(" name: {name},"), "");
        let plain = plain.replace(name, "flow");
        project.write("flow.yaml", plain);
    }
    say(
        &[1],
        &[
            "flow",
            "run",
            "flow.yaml",
            "--run-id",
            "r",
            "--input",
            &serde_json::json!({"a": EVIL}).to_string(),
        ],
    );
    let name = r#""fl\u009bow\u202e\u001b[31m""#;
    project.write("wrong.yaml", format!("name: {name}\nsteps:\n  - {{id: {name}, run: x, {name}: 1}}\n"));
    say(&[2], &["flow", "check", "wrong.yaml"]);
}

#[test]
fn what_was_stored_is_printed_without_what_a_terminal_obeys() {
    let (project, session) = evil_project();
    on_a_terminal(&project);
    let plans = project.ok(&["--quiet", "plan", "list"]);
    let plan = plans.lines().next().unwrap();
    let of = ["--session-id", session.as_str()];
    let shown: &[&[&str]] = &[
        &[],
        &["log"],
        &["log", "--all", "-n", "0"],
        &["show", "@"],
        &["show", "r"],
        &["diff", "--stat"],
        &["diff", "--stat", "@-", "@"],
        &["restore", "@-", "--dry-run"],
        &["session", "list", of[0], of[1]],
        &["session", "summary", of[0], of[1]],
        &["session", "history", of[0], of[1]],
        &["session", "list", of[0], of[1], "--output", "pretty"],
        &["session", "summary", of[0], of[1], "--output", "pretty"],
        &["session", "validate", of[0], of[1]],
        &["session", "status", of[0], of[1]],
        &["task", "list"],
        &["task", "progress"],
        &["task", "latest", "--task", "1"],
        &["gate", "list"],
        &["gate", "list", "--all"],
        &["gate", "show", "g"],
        &["gate", "show", "h"],
        &["gate", "show", "i"],
        &["gate", "reopen", "i"],
        &["flow", "list"],
        &["flow", "show", "r"],
        &["flow", "plan", "r"],
        &["flow", "why", "r", "two"],
        &["flow", "checkpoints", "r"],
        &["flow", "graph", "flow.yaml"],
        &["flow", "resume", "r"],
        &["flow", "fork", "r", "--from-step", "1"],
        &["flow", "cleanup", "--dry-run", "--max-age-days", "0"],
        &["plan", "list"],
        &["plan", "show", plan],
        &["plan", "scores", plan],
        &["plan", "best", plan],
        &["plan", "best", plan, "--plan"],
        &["gate", "parse", "--kind", EVIL],
        &["gate", "ask", "ok?", "--kind", EVIL],
        &["plan", "compare", plan, "1", "2"],
        &["verify"],
        &["doctor"],
        &["config"],
        &["gc", "--dry-run", "--keep", "1"],
        &["restore", "@-", "--yes"],
        &["undo"],
        &["redo"],
        &["export", "--format", "maestro", "--to", "../home/out"],
        &["import", "../home/out", "--dry-run"],
        &["import", "../home/out"],
        &["gc", "--keep", "1"],
    ];
    for form in [&[][..], &["--json"], &["--quiet"]] {
        for command in shown {
            says(&project, &[0, 1, 2, 3, 4, 5, 6, 7], &[form, command].concat());
        }
    }
    // What is damaged, and what refuses, speaks too.
    project.write("stagepost.toml", format!("a = \"{}\"", "\u{202e}\u{9b}"));
    says(&project, &[2], &["log"]);
    project.write("stagepost.toml", format!("{EVIL} = 1"));
    says(&project, &[2], &["log"]);
    fs::remove_file(project.folder.join("stagepost.toml")).unwrap();
    let hook = project.write(
        ".git/hooks/pre-commit",
        "#!/bin/sh\nprintf '\\033[31m\\302\\233\\342\\200\\256no\\n' >&2\nexit 1\n",
    );
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    project.write("a.txt", "refused");
    let create = ["session", "create", of[0], of[1], "--phase", "plan", "--description", "x"];
    says(&project, &[4], &create);
    let database = project.database();
    database.execute("UPDATE entries SET body = NULL WHERE position % 3 = 1", []).unwrap();
    drop(database);
    for command in [&["verify"][..], &["log", "--all"], &["show", "@"], &["doctor"], &["flow", "show", "r"]] {
        says(&project, &[0, 1, 3, 5], command);
    }
}

/// What programs read as it is (patches, payloads) is made safe where a person sees it.
fn on_a_terminal(project: &TempProject) {
    if !Path::new("/usr/bin/script").exists() {
        return;
    }
    for line in [
        "diff",
        "diff @- @",
        "show @- --artifact state",
        "show",
        "log --all",
        "flow show r",
        "gate show i",
        "",
    ] {
        let line = format!("NO_COLOR=1 TERM=dumb '{PROGRAM}' {line}");
        let output = project.tool("/usr/bin/script", ["-qec", &line, "/dev/null"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
        assert!(!text.is_empty(), "{line}");
        assert_eq!(obeyed(&text), None, "{line}: {text:?}");
    }
    // Elsewhere a patch is a patch.
    assert!(project.ok(&["diff"]).contains('\u{9b}'));
}

/// What in a text a terminal would obey, if anything.
fn obeyed(text: &str) -> Option<char> {
    let turns =
        |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().find(|c| (c.is_control() && !matches!(c, '\n' | '\t')) || turns(*c))
}

/// What was made beside the project, or in it but not by us.
fn outside(project: &TempProject) -> Vec<String> {
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        entries.map(|name| name.to_string_lossy().into_owned()).collect()
    };
    let around = names(project.folder.parent().unwrap());
    let within = names(&project.folder);
    let ours = [".git", ".flow", ".claude", "a.txt", ".checkpoint-metadata.json", "agent-progress.txt"];
    let strange = within.into_iter().filter(|name| !ours.contains(&name.as_str()));
    around.into_iter().filter(|name| name != "project" && name != "home").chain(strange).collect()
}
