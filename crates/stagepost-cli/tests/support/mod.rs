//! A project in a temporary folder, and the real program to run in it.
#![allow(dead_code, reason = "every test file uses its own part of this")]

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_stagepost");

/// A throw-away project with a home folder of its own beside it.
pub(crate) struct TempProject {
    around: TempDir,
    /// The folder of the project.
    pub(crate) folder: PathBuf,
    /// Where the store is, or will be.
    pub(crate) store: PathBuf,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl TempProject {
    /// A git repository without any commit.
    pub(crate) fn new() -> Self {
        let project = Self::plain();
        let made = project.tool("git", ["init", "--quiet", "."]).output().expect("git is installed");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self { store: project.folder.join(".git/stagepost"), ..project }
    }

    /// A folder that is no git repository.
    pub(crate) fn plain() -> Self {
        let around = TempDir::new().expect("there is room for temporary files");
        let folder = around.path().join("project");
        for folder in [&folder, &around.path().join("home")] {
            fs::create_dir(folder).expect("the folder is new");
        }
        Self { store: folder.join(".stagepost"), folder, around }
    }

    /// The home folder of the one who runs the commands.
    pub(crate) fn home(&self) -> PathBuf {
        self.around.path().join("home")
    }

    /// A program in the project's folder, with nothing of the environment but what is given here.
    pub(crate) fn tool(
        &self,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("USER", "ada")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null());
        command
    }

    /// Runs `stagepost` with these arguments.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.tool(PROGRAM, args).output())
    }

    /// Runs `stagepost` with variables.
    pub(crate) fn run_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Ran {
        Ran::of(self.tool(PROGRAM, args).envs(variables.iter().copied()).output())
    }

    /// Runs `stagepost` and hands it a text on standard input.
    pub(crate) fn run_on(&self, input: &str, args: &[&str]) -> Ran {
        let mut command = self.tool(PROGRAM, args);
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.expect("the program starts");
        // A program that refuses early does not read all of it.
        let _ = child.stdin.take().expect("it was piped").write_all(input.as_bytes());
        Ran::of(child.wait_with_output())
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
        ran.out
    }

    /// Runs a command with `--json` that must succeed.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let text = self.ok(&[&["--json"], args].concat());
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
        assert_eq!(value["schema"], 1, "{text}");
        value
    }

    /// Saves a checkpoint and returns its id.
    pub(crate) fn save(&self, message: &str, more: &[&str]) -> String {
        self.ok(&[&["--quiet", "save", "-m", message], more].concat()).trim_end().to_owned()
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().expect("it is inside")).expect("the folder can be made");
        fs::write(&path, text).expect("the file can be written");
        path
    }

    /// Opens the database of the store, as someone who damages it would.
    /// Has everything in one file: what was saved lately is in the log of the database.
    pub(crate) fn fold(&self) {
        self.database().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("nobody has it open");
    }

    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.store.join("store.db")).expect("the store is there")
    }
}

impl Ran {
    /// Reads how a command ended. No command may ever panic, or be ended by a signal.
    pub(crate) fn of(output: std::io::Result<Output>) -> Self {
        let Output { status, stdout, stderr } = output.expect("the program starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("what is printed is text");
        let (out, err) = (text(stdout), text(stderr));
        assert!(!err.contains("panicked"), "{err}");
        Self { code: status.code().unwrap_or_else(|| panic!("{status}: {err}")), out, err }
    }

    /// Checks that it failed with `code` and said all of `parts`.
    pub(crate) fn fails(&self, code: i32, parts: &[&str]) -> &Self {
        assert_eq!(self.code, code, "{self:?}");
        for part in parts {
            assert!(self.err.contains(part), "no `{part}` in: {}", self.err);
        }
        self
    }
}

/// Replaces what differs from run to run: ids, seals, times, sizes, and the spaces that follow from their width.
pub(crate) fn masked(text: &str) -> String {
    text.lines().map(masked_line).collect::<Vec<_>>().join("\n")
}

fn masked_line(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut masked: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_unit = matches!(bare, "B" | "KiB" | "MiB");
        if is_unit && masked.last().is_some_and(|last| last.trim_start_matches('(').parse::<f64>().is_ok()) {
            let number = masked.pop().unwrap_or_default();
            let open = if number.starts_with('(') { "(" } else { "" };
            masked.push(format!("{open}{}", word.replace(bare, "SIZE")));
        } else if is_id(bare.split(':').next().unwrap_or(bare)) {
            // Also the start of `ID:2`, the second of something.
            masked.push(word.replace(bare.split(':').next().unwrap_or(bare), "ID"));
        } else if bare.len() == 27 && bare.ends_with('Z') && bare.contains('T') {
            masked.push(word.replace(bare, "TIME"));
        } else {
            masked.push(word.to_owned());
        }
    }
    masked.join(" ")
}

fn is_id(word: &str) -> bool {
    let digits = word.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b) || b == b'-');
    word.len() >= 8 && digits && word.bytes().any(|b| b.is_ascii_digit())
}

/// Every file below a folder with its content: what must not change when a command is refused.
pub(crate) fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be listed") {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            let bytes = fs::read(&path).expect("the file can be read");
            all.push((path, bytes));
        }
    }
    all.sort();
    all
}

/// Waits until something is so; `false` if it never is.
pub(crate) fn soon(is_so: impl Fn() -> bool) -> bool {
    (0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        is_so()
    })
}
