//! The shape of the library, read from its source: who may import whom, and what it never does.

use std::fs;
use std::path::{Path, PathBuf};

/// Lower levels first. A module imports from lower levels only, never from its own.
const LEVELS: &[&[&str]] = &[
    &["bounded", "yaml"],
    &["private"],
    &["model", "process", "lock"],
    &["store", "snapshot", "reply", "retention", "formats"],
    &["project"],
    &["session", "task", "plan", "gate"],
    &["flow"],
];

/// What belongs to a front end: printing, the environment, ending the process.
const FRONT_END: &[&str] =
    &["println!", "eprintln!", "print!", "eprint!", "dbg!", "std::env", "env::var", "process::exit"];

#[test]
fn imports_follow_the_arrows() {
    let faults = faults_of_all(wrong_arrows);
    assert!(faults.is_empty(), "imports against the arrows:\n{}", faults.join("\n"));
}

#[test]
fn the_library_never_prints_reads_the_environment_or_exits() {
    let faults = faults_of_all(|_, _, code| front_end_habits(code));
    assert!(faults.is_empty(), "what only a front end may do:\n{}", faults.join("\n"));
}

#[test]
fn a_wrong_arrow_is_found_however_it_is_written() {
    for (module, depth, wrong) in [
        ("model", 2, "use crate::store::Store;"),
        ("model", 2, "fn f() { let x = crate::project::Project::open; }"),
        ("store", 2, "use crate::{model::Run, snapshot::Snapshot};"),
        ("store", 3, "use crate::{\n    model,\n    project::{Project, Save},\n};"),
        ("snapshot", 2, "use super::super::store::Store;"),
        ("retention", 1, "use super::formats;"),
        ("session", 2, "pub use crate::task;"),
        ("project", 1, "type T = crate::flow::Runner;"),
        ("novelty", 1, ""),
    ] {
        assert_eq!(wrong_arrows(module, depth, &code_of(wrong)).len(), 1, "{module}: {wrong}");
    }
}

#[test]
fn right_arrows_comments_and_texts_are_left_alone() {
    for (module, depth, right) in [
        ("store", 2, "use crate::model::Run;\nuse crate::store::Error;\nuse super::blob::Cut;"),
        ("store", 3, "use super::super::Error;"),
        ("project", 2, "use crate::{model::{Run, RunId}, retention::Policy, store::Store};"),
        ("flow", 2, "use crate::plan;\nuse crate::gate::Answer;"),
        (
            "model",
            2,
            "// use crate::store::Store;\n/* crate::flow */\n/// See [`crate::project`].\nstruct A;",
        ),
        (
            "model",
            2,
            "const A: &str = \"crate::store\"; const B: &str = r#\"crate::\"flow\"#; const C: char = '\"';",
        ),
        ("model", 2, "fn f<'a>(x: &'a str) -> &'a str { x } use other::store;"),
    ] {
        assert_eq!(wrong_arrows(module, depth, &code_of(right)), Vec::<String>::new(), "{module}: {right}");
    }
}

#[test]
fn the_habits_of_a_front_end_are_found() {
    for wrong in ["fn f() { println!(\"x\") }", "use std::env;", "fn f() { std::process::exit(1) }"] {
        assert_eq!(front_end_habits(&code_of(wrong)).len(), 1, "{wrong}");
    }
    assert!(front_end_habits(&code_of("// println!\nfn f() { say(\"println!\") }")).is_empty());
}

/// Runs a check over every file of the library: it gets the module at the top, how deep the file's own module lies,
/// and the code.
fn faults_of_all(check: impl Fn(&str, usize, &str) -> Vec<String>) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (files, mut faults) = (rust_files(&root), Vec::new());
    assert!(files.len() > 10, "where is the source?");
    for file in files {
        let inside = file.strip_prefix(&root).expect("it was listed below").with_extension("");
        let mut path: Vec<&str> = inside.iter().filter_map(|part| part.to_str()).collect();
        if path.last() == Some(&"mod") {
            path.pop();
        }
        if path == ["lib"] {
            continue;
        }
        let code = code_of(&fs::read_to_string(&file).expect("source files are text"));
        faults.extend(
            check(path[0], path.len(), &code)
                .into_iter()
                .map(|fault| format!("  {}: {fault}", inside.display())),
        );
    }
    faults
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).expect("the source is there");
    for path in entries.map(|entry| entry.expect("the source can be listed").path()) {
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn level(module: &str) -> Option<usize> {
    LEVELS.iter().position(|level| level.contains(&module))
}

fn wrong_arrows(module: &str, depth: usize, code: &str) -> Vec<String> {
    let Some(own) = level(module) else {
        return vec![format!(
            "module `{module}` has no level: give it one in this test and in ARCHITECTURE.md"
        )];
    };
    let root =
        std::iter::once("crate::".to_owned()).chain([format!("{}::", ["super"].repeat(depth).join("::"))]);
    let mut faults = Vec::new();
    for from_root in root {
        for (at, _) in code.match_indices(&from_root) {
            // `super::super::x` is found once, not also inside a longer climb.
            let before = &code[..at];
            if before.ends_with("::") || before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                continue;
            }
            for imported in first_names(&code[at + from_root.len()..]) {
                if imported != module && level(imported).is_some_and(|other| other >= own) {
                    faults.push(format!("`{module}` imports `{imported}`"));
                }
            }
        }
    }
    faults
}

/// The first name of each path: one, or those at the top of a group in braces.
fn first_names(rest: &str) -> Vec<&str> {
    let name = |text: &'_ str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let Some(group) = rest.strip_prefix('{') else { return vec![&rest[..name(rest)]] };
    let (mut names, mut depth, mut at_start) = (Vec::new(), 0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => at_start = true,
            c if at_start && !c.is_whitespace() => {
                names.push(&group[at..at + name(&group[at..])]);
                at_start = false;
            }
            _ => {}
        }
    }
    names
}

fn front_end_habits(code: &str) -> Vec<String> {
    // It only takes a text apart.
    let code = &code.replace("std::env::split_paths", "");
    let used = |habit: &&&str| {
        code.match_indices(**habit)
            .any(|(at, _)| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'))
    };
    let ends_path = |habit: &&&str| habit.contains("::") && code.contains(&format!("std::{habit}"));
    FRONT_END
        .iter()
        .filter(|habit| used(habit) || ends_path(habit))
        .map(|habit| format!("`{habit}`"))
        .collect()
}

/// The text without comments and without what is inside string and character literals.
fn code_of(text: &str) -> String {
    let (mut code, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if c == 'r' && !code.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            raw_string(rest).unwrap_or(0)
        } else if c == '"' {
            string(rest)
        } else if c == '\'' {
            character(rest).unwrap_or(0)
        } else {
            0
        };
        if skipped == 0 {
            code.push(c);
        }
        rest = &rest[skipped.max(if skipped == 0 { c.len_utf8() } else { 0 })..];
    }
    code
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

fn raw_string(rest: &str) -> Option<usize> {
    let hashes = rest[1..].bytes().take_while(|b| *b == b'#').count();
    let inside = rest[1 + hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(inside.find(&end).map_or(rest.len(), |at| 2 + hashes + at + end.len()))
}

/// The length of a character literal; `None` if the quote begins a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    match chars.next()? {
        (_, '\\') => rest[3..].find('\'').map(|at| at + 4),
        _ => chars.next().filter(|(_, c)| *c == '\'').map(|(at, _)| at + 1),
    }
}
