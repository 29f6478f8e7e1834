//! Every block of the README is run, from top to bottom in one project, and must print what it says.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use support::{PROGRAM, TempProject, masked};

/// Stands in for cargo: building takes too long for a test, but what is built must be there.
const CARGO: &str = r#"#!/bin/bash
case "$*" in
    'run --release -- '*) shift 3; exec stagepost "$@" ;;
    'install --locked --path '*) test -f "$ROOT/$4/Cargo.toml" ;;
    *) echo "unexpected: cargo $*" >&2; exit 1 ;;
esac
"#;

#[test]
fn every_block_of_the_readme_does_what_it_says() {
    let page = fs::read_to_string(root().join("README.md")).unwrap();
    let blocks = blocks(&page);
    assert!(blocks.iter().filter(|block| block.language == "console").count() >= 3, "where are the blocks?");
    let project = TempProject::new();
    let tools = tools(&project);
    for block in &blocks {
        match block.language {
            "console" => scene(&project, &tools, block),
            "sh" => drop(shell(&project, &tools, block.text, block.line)),
            "rust" => {} // a documentation test of the library
            other => panic!("README.md:{}: nobody runs blocks of `{other}`", block.line),
        }
    }
}

#[test]
fn links_lead_somewhere() {
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        let page = fs::read_to_string(root().join(name)).unwrap();
        for target in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            if !target.contains("://") && !file.is_empty() {
                assert!(root().join(file).exists(), "{name}: {target}");
            }
        }
    }
}

struct Block<'a> {
    language: &'a str,
    text: &'a str,
    line: usize,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut parts = page.split("```");
    let mut line = parts.next().unwrap_or_default().matches('\n').count() + 1;
    while let Some(inside) = parts.next() {
        let (language, text) = inside.split_once('\n').expect("a block has lines");
        found.push(Block { language: language.trim(), text, line });
        line += inside.matches('\n').count() + parts.next().unwrap_or_default().matches('\n').count();
    }
    found
}

/// A folder with `stagepost` and a stand-in for cargo, to put first on the path.
fn tools(project: &TempProject) -> PathBuf {
    let folder = project.home().join("bin");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(PROGRAM, folder.join("stagepost")).unwrap();
    fs::write(folder.join("cargo"), CARGO).unwrap();
    fs::set_permissions(folder.join("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Commands after `$ `, each followed by what it prints.
fn scene(project: &TempProject, tools: &Path, block: &Block<'_>) {
    let mut lines = block.text.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        let line_number = block.line + 1 + at;
        let command =
            line.strip_prefix("$ ").unwrap_or_else(|| panic!("README.md:{line_number}: no command"));
        let mut expected = Vec::new();
        while let Some((_, printed)) = lines.next_if(|(_, line)| !line.starts_with("$ ")) {
            expected.push(printed);
        }
        let printed = shell(project, tools, command, line_number);
        let folder = project.folder.to_str().unwrap();
        let printed = masked(&printed.replace(folder, "/home/ada/shop"));
        assert_eq!(printed, masked(&expected.join("\n")), "README.md:{line_number}: {command}");
    }
}

fn shell(project: &TempProject, tools: &Path, script: &str, line: usize) -> String {
    let mut path = tools.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let script = format!("exec 2>&1; set -euo pipefail\n{script}");
    let mut command = project.tool("bash", ["-c", &script]);
    let ran = command.env("PATH", path).env("ROOT", root()).output().expect("bash is installed");
    let printed = String::from_utf8(ran.stdout).expect("what is printed is text");
    assert!(ran.status.success(), "README.md:{line}: {}\n{printed}", ran.status);
    printed.trim_end().to_owned()
}
