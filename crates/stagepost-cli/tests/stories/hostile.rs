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

#[test]
fn what_was_stored_is_printed_without_what_a_terminal_obeys() {
    let project = TempProject::new();
    for setting in [["user.name", "Ada"], ["user.email", "ada@example.org"]] {
        assert!(project.tool("git", [&["config"], &setting[..]].concat()).status().unwrap().success());
    }
    project.write("a.txt", "one");
    let evil = "\u{1b}[31m\u{9b}2J\u{202e}evil\r\n# heading\u{7}";
    project.ok(&["save", "-m", evil]);
    let session = project.ok(&["--quiet", "session", "start", "--request", evil]);
    let session = session.trim();
    project.ok(&[
        "session",
        "create",
        "--session-id",
        session,
        "--description",
        evil,
        "--phase",
        "plan",
        "--no-commit",
    ]);
    project.ok(&["task", "save", "--task", "1", "--stage", "start", "-m", evil, "--no-commit"]);
    project.ok(&["task", "note", "--task", "1", evil]);
    project.run(&["gate", "ask", "--id", "g", evil]);
    project.write(&format!("{}.txt", evil.replace('/', "")), "a name");
    project.ok(&["save", "-m", "with a name"]);
    let shown: &[&[&str]] = &[
        &[],
        &["log"],
        &["log", "--all"],
        &["show", "@"],
        &["diff", "@-", "@"],
        &["diff", "--stat"],
        &["session", "list", "--session-id", session],
        &["session", "summary", "--session-id", session],
        &["task", "list"],
        &["task", "progress"],
        &["task", "latest", "--task", "1"],
        &["gate", "list"],
        &["gate", "show", "g"],
        &["restore", "@-", "--dry-run"],
        &["verify"],
        &["doctor"],
        &["gc", "--dry-run"],
    ];
    for command in shown {
        let ran = project.run(command);
        assert_eq!(obeyed(&ran.out).or(obeyed(&ran.err)), None, "{command:?}: {ran:?}");
    }
}

/// What in a text a terminal would obey, if anything.
fn obeyed(text: &str) -> Option<char> {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
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
