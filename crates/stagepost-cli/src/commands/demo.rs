use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Serialize;

use crate::app::App;
use crate::failure::{Code, Failure};
use crate::json::Output;
use crate::ui::{self, BOLD, CYAN, DIM, Form, GREEN, Ui};

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Keep the project to look around in
    #[arg(long)]
    keep: bool,
}

#[derive(Serialize)]
struct Body {
    commands: usize,
    seconds: f64,
    kept: Option<String>,
}

pub(crate) fn run(app: &App, args: &DemoArgs) -> Result<(), Failure> {
    let (mut stage, started) = (Stage::build(&app.ui)?, Instant::now());
    let told = story(&mut stage);
    let (commands, seconds) = (stage.commands, started.elapsed().as_secs_f64());
    let kept = stage.leave(args.keep)?;
    told?;
    match app.ui.form {
        Form::Json => app.ui.json(&Output::new(Body { commands, seconds, kept })),
        Form::Quiet => kept.iter().try_for_each(|folder| app.ui.line(folder)),
        Form::Text => {
            let what = match &kept {
                Some(folder) => format!("The project is kept in {}", ui::printable(folder)),
                None => "The project is gone again".to_owned(),
            };
            app.ui.line(format!("\n{GREEN}{commands} commands, all as told.{GREEN:#} {what}."))
        }
    }
}

/// A sentence that is short enough to be stored as it is, so that a byte of it can be found in the file.
const NOTES: &str = "Ship on Tuesday, never on a Friday.";

const CART: &str = "fn total(prices: &[u32]) -> u32 {\n    prices.iter().sum()\n}\n";

const RELEASE: &str = "\
name: release
steps:
  - id: collect
    run: echo collected
  - id: publish
    run: test -f approved || { echo nobody approved; exit 1; }; echo published
";

fn story(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.say("An agent works in a repository. Files and state are saved at every step.")?;
    stage.write("src/cart.rs", CART)?;
    stage.write("state.json", r#"{"step": 1, "done": ["plan"]}"#)?;
    stage
        .run("save -m 'the cart adds up' --state state.json --label good")?
        .succeeds(&["adhoc/1", "2 files"])?;
    stage.write("notes.md", NOTES)?;
    stage.write("state.json", r#"{"step": 2, "done": ["plan", "build"]}"#)?;
    stage
        .run("save -m 'built, with notes' --state state.json --artifact notes=notes.md")?
        .succeeds(&["adhoc/2", "2 artifacts"])?;
    stage.run("diff @- @ --artifact state")?.succeeds(&["/step  1 → 2", "+ /done/1  \"build\""])?;

    stage.say("Then a shell command goes wrong. No editor saw it, but nothing is lost.")?;
    stage.wreck()?;
    stage.run("diff --stat")?.succeeds(&["src/cart.rs", "build.log"])?;
    stage.run("restore @ --yes")?.succeeds(&["1 file written, 1 deleted", "stagepost undo"])?;
    stage.holds("src/cart.rs", Some(CART))?;

    stage.say("Going back is saved too, so it can be undone, and the undoing as well.")?;
    stage.run("undo")?.succeeds(&["restored"])?;
    stage.holds("src/cart.rs", None)?;
    stage.run("redo")?.succeeds(&["restored"])?;
    stage.holds("src/cart.rs", Some(CART))?;

    stage.say(
        "A pipeline breaks at its second step. It goes on there, and what was done is not done again.",
    )?;
    stage.write("release.yaml", RELEASE)?;
    stage.run("flow run release.yaml --run-id release")?.fails(1, &["collected", "nobody approved"])?;
    stage.write("approved", "by Ada\n")?;
    stage.run("flow resume release")?.succeeds(&["published", "completed"])?;

    stage.say("A question waits for a person, whoever asked may be gone. A condition is no consent.")?;
    stage.run("gate ask --id ship 'Ship the cart on Tuesday?'")?.fails(6, &["gate ship waits"])?;
    stage.run("gate answer ship 'yes, but on Wednesday'")?.succeeds(&["refine"])?;

    stage.say("A disk goes bad: one bit of the store changes. Nothing that was saved is taken on trust.")?;
    stage.flip_a_bit()?;
    stage.run("verify")?.fails(5, &["damaged", "artifact notes"])?;

    stage.say("The damage has a name, and everything else can still be read.")?;
    stage.run("show adhoc/2 --artifact notes")?.fails(5, &["damaged"])?;
    stage.run("show good --artifact state")?.succeeds(&[r#"{"step": 1, "done": ["plan"]}"#])?;

    stage.say("The bit is put back, as from a backup, and the seals agree again.")?;
    stage.flip_a_bit()?;
    stage.run("verify")?.succeeds(&["all as it was written: "])?;
    stage.run("log")?.succeeds(&["built, with notes", "the cart adds up [good]"])
}

/// The project that the story plays in.
struct Stage<'a> {
    ui: &'a Ui,
    around: tempfile::TempDir,
    folder: PathBuf,
    program: PathBuf,
    commands: usize,
}

/// How a command of the story ended.
struct Ended {
    line: String,
    code: Option<i32>,
    printed: String,
}

impl<'a> Stage<'a> {
    fn build(ui: &'a Ui) -> Result<Self, Failure> {
        let around = tempfile::Builder::new().prefix("stagepost-demo-").tempdir()?;
        let folder = around.path().join("project");
        fs::create_dir(&folder).map_err(|error| Failure::file("make the folder", &folder, error))?;
        let program = std::env::current_exe()?;
        let stage = Self { ui, around, folder, program, commands: 0 };
        // Without git the project has a store of its own; the story is the same.
        let in_git = stage.command("git").args(["init", "--quiet"]).stderr(Stdio::null()).status();
        if !in_git.is_ok_and(|status| status.success()) {
            stage.command(&stage.program).args(["--quiet", "init"]).status()?;
        }
        Ok(stage)
    }

    /// A program in the project's folder that sees nothing of the user's own settings.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).env_clear().stdin(Stdio::null());
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.env("HOME", self.around.path()).env("USER", "demo").env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    fn tell(&self, text: impl AsRef<str>) -> Result<(), Failure> {
        if self.ui.form == Form::Text { self.ui.line(text) } else { Ok(()) }
    }

    fn say(&self, text: &str) -> Result<(), Failure> {
        self.tell(format!("\n{CYAN}# {text}{CYAN:#}"))
    }

    /// Runs a line as it would be typed after `stagepost`.
    fn run(&mut self, line: &str) -> Result<Ended, Failure> {
        self.commands += 1;
        self.tell(format!("{BOLD}$ stagepost {line}{BOLD:#}"))?;
        let output = self.command(&self.program).args(words(line)).output()?;
        let mut printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if !printed.is_empty() && !printed.ends_with('\n') {
            printed.push('\n');
        }
        printed.push_str(&String::from_utf8_lossy(&output.stderr));
        self.tell(ui::printable_lines(printed.trim_end()))?;
        if !output.status.success() {
            self.tell(format!("{DIM}({}){DIM:#}", output.status))?;
        }
        Ok(Ended { line: line.to_owned(), code: output.status.code(), printed })
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.folder.join(name);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(&path, text)).map_err(|error| Failure::file("write", &path, error))
    }

    /// What a careless shell command does.
    fn wreck(&self) -> Result<(), Failure> {
        self.tell(format!("{BOLD}$ rm -r src; echo 'all gone' > build.log{BOLD:#}"))?;
        let source = self.folder.join("src");
        fs::remove_dir_all(&source).map_err(|error| Failure::file("remove", &source, error))?;
        self.write("build.log", "all gone\n")
    }

    /// Checks that a file is as the story says: with this text, or not there.
    fn holds(&self, name: &str, expected: Option<&str>) -> Result<(), Failure> {
        match (fs::read_to_string(self.folder.join(name)).ok().as_deref() == expected, expected) {
            (true, Some(_)) => self.tell(format!("{DIM}({name} is there){DIM:#}")),
            (true, None) => self.tell(format!("{DIM}({name} is gone){DIM:#}")),
            (false, _) => Err(Failure::new(
                Code::Failed,
                format!("the demo did not go as told: {name} is not as it should be"),
            )),
        }
    }

    /// Changes one bit of the notes where the store keeps them; a second time changes it back.
    fn flip_a_bit(&self) -> Result<(), Failure> {
        // What was saved lately is in the log of the database until there is more of it, or it is tidied up.
        self.command(&self.program).args(["--quiet", "gc"]).status()?;
        let git = self.folder.join(".git/stagepost/store.db");
        let path = if git.exists() { git } else { self.folder.join(".stagepost/store.db") };
        let failed = |error| Failure::file("alter", &path, error);
        let mut bytes = fs::read(&path).map_err(failed)?;
        let rest = &NOTES.as_bytes()[1..];
        let Some(at) = bytes.windows(rest.len()).position(|window| window == rest) else {
            return Err(Failure::new(Code::Failed, "the notes are not where the demo looks for them"));
        };
        bytes[at - 1] ^= 1;
        fs::write(&path, bytes).map_err(failed)?;
        self.tell(format!("{DIM}(store.db: bit 0 of byte {} is changed){DIM:#}", at - 1))
    }

    /// Ends the story; the project goes unless it is to be kept.
    fn leave(self, keep: bool) -> Result<Option<String>, Failure> {
        if keep {
            let _ = self.around.keep();
            return Ok(Some(self.folder.display().to_string()));
        }
        let path = self.around.path().to_owned();
        self.around.close().map_err(|error| Failure::file("remove", &path, error))?;
        Ok(None)
    }
}

impl Ended {
    fn succeeds(&self, parts: &[&str]) -> Result<(), Failure> {
        self.fails(0, parts)
    }

    /// Checks that the command ended with `code` and printed all of `parts`.
    fn fails(&self, code: i32, parts: &[&str]) -> Result<(), Failure> {
        let wrong = |what: String| {
            Failure::new(
                Code::Failed,
                format!("the demo did not go as told: `stagepost {}` {what}", self.line),
            )
            .hint("run it again with --keep to look around, and please report it")
        };
        if self.code != Some(code) {
            let ended = self.code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
            return Err(wrong(format!("ended with {ended} instead of {code}")));
        }
        match parts.iter().find(|part| !self.printed.contains(**part)) {
            Some(part) => Err(wrong(format!("did not print `{part}`"))),
            None => Ok(()),
        }
    }
}

/// Takes a line apart as a shell would, as far as the story needs it: words, and words in single quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().expect("there is always a last word").push(c),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart_as_a_shell_would() {
        assert_eq!(words("save -m 'two words' --label good"), ["save", "-m", "two words", "--label", "good"]);
    }

    #[test]
    fn an_outcome_that_is_not_as_told_is_a_failure() {
        let ended = Ended { line: "verify".to_owned(), code: Some(0), printed: "all well".to_owned() };
        assert!(ended.succeeds(&["all well"]).is_ok());
        for wrong in [ended.fails(5, &[]), ended.succeeds(&["damaged"])] {
            let failure = wrong.unwrap_err();
            assert_eq!(failure.code, Code::Failed);
            assert!(failure.message.contains("`stagepost verify`"), "{}", failure.message);
        }
    }
}
