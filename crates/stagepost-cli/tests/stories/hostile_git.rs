//! Repositories whose configuration names programs, against every command.
//!
//! Each setting and hook leaves a file with its own name if it runs. What the commands that act as the user may run is
//! no list of ours: plain git does the same in a copy, and says it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::support::{PROGRAM, Ran, TempProject};

/// Settings of git that name a program.
const PROGRAMS: &[&str] = &[
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "core.sshCommand",
    "core.askPass",
    "core.gitProxy",
    "core.alternateRefsCommand",
    "sequence.editor",
    "diff.external",
    "diff.x.textconv",
    "diff.x.command",
    "diff.tool",
    "merge.x.driver",
    "interactive.diffFilter",
    "gpg.program",
    "gpg.ssh.program",
    "gpg.ssh.defaultKeyCommand",
    "gpg.x509.program",
    "gpg.openpgp.program",
    "credential.helper",
    "uploadpack.packObjectsHook",
    "gc.recentObjectsHook",
    "trailer.x.command",
    "trailer.x.cmd",
    "pager.status",
    "pager.diff",
    "alias.add",
    "alias.commit",
    "alias.tag",
    "alias.status",
    "alias.update-ref",
    "alias.cat-file",
    "alias.read-tree",
    "alias.ls-files",
    "remote.origin.uploadpack",
    "remote.origin.receivepack",
    "submodule.x.update",
];

/// Every hook of git.
const HOOKS: &[&str] = &[
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
    "fsmonitor-watchman",
    "post-index-change",
];

/// How a repository is made hostile.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// In its own configuration, with hooks where git looks for them.
    Direct,
    /// By an included file, with hooks in the work tree and filters that are one long-running process.
    Included,
}

struct Trap<'a> {
    project: &'a TempProject,
    ran: PathBuf,
}

impl<'a> Trap<'a> {
    fn set(project: &'a TempProject, way: Way, sign: bool) -> Self {
        let trap = Self { project, ran: project.home().join("ran") };
        fs::create_dir_all(&trap.ran).unwrap();
        let git = project.folder.join(".git");
        let config = match way {
            Way::Direct => git.join("config"),
            Way::Included => git.join("more"),
        };
        let mut text = fs::read_to_string(&config).unwrap_or_default() + &trap.settings(way);
        if sign {
            text += "[commit]\n\tgpgSign = true\n[tag]\n\tgpgSign = true\n[log]\n\tshowSignature = true\n";
        }
        fs::write(&config, text).unwrap();
        let hooks = match way {
            Way::Direct => git.join("hooks"),
            Way::Included => project.folder.join("tools"),
        };
        fs::create_dir_all(&hooks).unwrap();
        for hook in HOOKS {
            let path = hooks.join(hook);
            fs::write(&path, format!("#!/bin/sh\n{}\n", trap.line(&format!("hook {hook}"), ""))).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        if way == Way::Included {
            let path = git.join("config");
            let include = "[include]\n\tpath = more\n[core]\n\thooksPath = tools\n";
            fs::write(&path, fs::read_to_string(&path).unwrap() + include).unwrap();
        }
        project.write(".gitattributes", "*.txt filter=x diff=x merge=x\n");
        trap
    }

    /// A line of shell that says what ran, and goes on as what it stands for would.
    fn line(&self, name: &str, rest: &str) -> String {
        format!("touch '{}/{name}'{rest}", self.ran.display())
    }

    fn settings(&self, way: Way) -> String {
        let mut text = String::new();
        let mut set = |key: &str, value: &str| {
            let (section, name) = key.rsplit_once('.').unwrap();
            let head = match section.split_once('.') {
                Some((section, sub)) => format!("[{section} \"{sub}\"]"),
                None => format!("[{section}]"),
            };
            text += &format!("{head}\n\t{name} = \"{}\"\n", value.replace('\\', "\\\\").replace('"', "\\\""));
        };
        for key in PROGRAMS {
            let line = self.line(key, if key.starts_with("alias") { "; false" } else { "" });
            // Aliases and helpers are shell only with a mark before them.
            let mark = if ["alias", "credential", "submodule"].iter().any(|start| key.starts_with(start)) {
                "!"
            } else {
                ""
            };
            set(key, &format!("{mark}{line}"));
        }
        let filters: &[&str] = match way {
            Way::Direct => &["clean", "smudge"],
            Way::Included => &["process"],
        };
        for filter in filters {
            set(&format!("filter.x.{filter}"), &self.line(&format!("filter {filter}"), "; exec cat"));
        }
        // Objects that are not there would be fetched by a program.
        set("remote.origin.url", &format!("ext::sh -c \"{}\"", self.line("lazy fetch", "")));
        set("remote.origin.promisor", "true");
        set("protocol.ext.allow", "always");
        text
    }

    /// What ran since the last call.
    fn sprung(&self) -> BTreeSet<String> {
        let entries: Vec<_> = fs::read_dir(&self.ran).unwrap().map(|entry| entry.unwrap()).collect();
        entries.iter().for_each(|entry| fs::remove_file(entry.path()).unwrap());
        entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Runs a command that must succeed, and says what else ran.
    fn runs(&self, args: &[&str]) -> (String, BTreeSet<String>) {
        let ran = self.project.run(args);
        assert!(matches!(ran.code, 0 | 6), "{args:?}: {ran:?}");
        (ran.out.trim_end().to_owned(), self.sprung())
    }

    /// Runs a command that must succeed, and nothing of the repository's with it.
    fn alone(&self, args: &[&str]) -> String {
        let (out, sprung) = self.runs(args);
        assert_eq!(sprung, BTreeSet::new(), "{args:?}");
        out
    }

    /// What plain git runs for the same in a copy of the repository.
    fn gits(&self, line: &str) -> BTreeSet<String> {
        let copy = self.project.home().join("copy");
        let line = format!("cp -a . '{0}' && cd '{0}' && {line}; rm -rf '{0}'", copy.display());
        let ran = Ran::of(self.project.tool("sh", ["-c", &line]).output());
        let sprung = self.sprung();
        assert!(!sprung.is_empty(), "plain git runs what it should not run here: {ran:?}");
        sprung
    }
}

fn git(project: &TempProject, args: &[&str]) -> String {
    let output = project.tool("git", args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// A repository with two commits, checkpoints of every kind, and changes that nobody saved.
fn lived_in() -> (TempProject, String) {
    let project = TempProject::new();
    git(&project, &["config", "user.name", "Ada"]);
    git(&project, &["config", "user.email", "ada@example.org"]);
    for (number, text) in ["one", "two"].iter().enumerate() {
        project.write("a.txt", text);
        project.write(&format!("folder/{number}.txt"), text);
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-qm", text]);
        project.save(text, &["--label", text]);
    }
    let session = project.ok(&["--quiet", "session", "start", "--request", "work"]).trim().to_owned();
    project.write("a.txt", "three");
    create(&project, &session, "implement");
    project.ok(&["task", "save", "--task", "1", "--stage", "start", "-m", "begun"]);
    project.write("a.txt", "four");
    project.write("new.txt", "new");
    (project, session)
}

fn create(project: &TempProject, session: &str, phase: &str) -> String {
    let args = ["session", "create", "--session-id", session, "--description", "d", "--phase", phase];
    let made: serde_json::Value = serde_json::from_str(&project.ok(&args)).unwrap();
    made["checkpoint_id"].as_str().unwrap().to_owned()
}

const FLOW: &str = "name: f\nsteps:\n  - {id: one, run: 'echo one > made.txt', outputs: [made.txt], snapshot: true}\n  \
                    - {id: two, run: 'test ! -e stop.txt', snapshot: true}\n";

#[test]
fn nothing_that_a_repository_names_runs_unless_the_user_commits() {
    for way in [Way::Direct, Way::Included] {
        let (project, session) = lived_in();
        let old = create(&project, &session, "plan");
        project.write("a.txt", "five");
        let trap = Trap::set(&project, way, true);
        let of = ["--session-id", session.as_str()];
        everyday(&trap);
        going_back(&trap);
        sessions_and_tasks(&trap, &of, &old);
        flows_and_plans(&trap);
        moving(&trap);
    }
}

fn everyday(trap: &Trap<'_>) {
    trap.project.write("b.txt", "b");
    for args in [
        &[][..],
        &["init"],
        &["save", "-m", "hostile"],
        &["log", "--all"],
        &["show", "@"],
        &["diff"],
        &["diff", "--stat"],
        &["diff", "one", "two"],
        &["diff", "one"],
        &["pin", "@"],
        &["unpin", "@"],
        &["verify"],
        &["doctor"],
        &["doctor", "--fix"],
        &["config"],
        &["gc", "--dry-run"],
    ] {
        trap.alone(args);
    }
}

fn going_back(trap: &Trap<'_>) {
    for mode in ["files", "mixed", "hard"] {
        trap.project.write("a.txt", mode);
        trap.alone(&["restore", "one", "--mode", mode, "--dry-run"]);
        trap.alone(&["restore", "one", "--mode", mode, "--yes"]);
        // A mixed restore moves HEAD and index, and leaves the files.
        let expected = if mode == "mixed" { mode } else { "one" };
        assert_eq!(fs::read_to_string(trap.project.folder.join("a.txt")).unwrap(), expected);
        trap.alone(&["undo"]);
        trap.alone(&["redo"]);
        trap.alone(&["undo"]);
        assert_eq!(fs::read_to_string(trap.project.folder.join("a.txt")).unwrap(), mode);
    }
    trap.alone(&["restore", "two", "folder", "--yes"]);
}

fn sessions_and_tasks(trap: &Trap<'_>, of: &[&str], old: &str) {
    let session = |args: &[&str]| trap.alone(&[&["session"], args, of].concat());
    let with_id = |args: &[&str]| trap.alone(&[&["session"], args, of, &["--checkpoint-id", old]].concat());
    for args in [&["list"][..], &["history"], &["summary"], &["validate"], &["status"]] {
        session(args);
    }
    with_id(&["get"]);
    trap.alone(&["session", "should-rollback"]);
    for how in ["--keep-changes", "--hard-reset"] {
        trap.project.write("a.txt", how);
        with_id(&["rollback", how]);
    }
    for args in [&["list"][..], &["latest", "--task", "1"], &["progress"], &["note", "--task", "1", "text"]] {
        trap.alone(&[&["task"], args].concat());
    }
    trap.alone(&["task", "rollback", "--task", "1", "--stage", "start", "--hard"]);
    trap.alone(&["task", "recover", "--task", "1", "--error", "implementation", "-m", "broken"]);
    trap.alone(&["task", "cleanup", "--max-per-task", "5"]);
    trap.alone(&["gate", "ask", "really?", "--id", "g", "--files"]);
    for args in [&["list"][..], &["show", "g"], &["answer", "g", "yes"], &["reopen", "g", "--files"]] {
        trap.alone(&[&["gate"], args].concat());
    }
    trap.alone(&["gate", "cancel", "g"]);
}

fn flows_and_plans(trap: &Trap<'_>) {
    let project = trap.project;
    project.write("flow.yaml", FLOW);
    project.write("stop.txt", "stop");
    let ran = project.run(&["flow", "run", "flow.yaml", "--run-id", "r"]);
    assert_eq!((ran.code, trap.sprung()), (1, BTreeSet::new()), "{ran:?}");
    fs::remove_file(project.folder.join("stop.txt")).unwrap();
    for args in [
        &["check", "flow.yaml"][..],
        &["list"],
        &["show", "r"],
        &["plan", "r"],
        &["why", "r", "two"],
        &["resume", "r"],
        &["checkpoints", "r"],
        &["fork", "r", "--from-step", "1"],
        &["graph", "flow.yaml"],
        &["cleanup", "--max-age-days", "0"],
    ] {
        trap.alone(&[&["flow"], args].concat());
    }
    let job = r#"{"project_name": "p", "output_dir": "out", "planner": "echo '{}'", "judge": "echo '{\"score\": 9}'"}"#;
    project.write("job.json", job);
    project.write("plan.json", r#"{"plan": {}}"#);
    trap.alone(&["plan", "run", "job.json"]);
    let run = trap.alone(&["--quiet", "plan", "start", "--project", "p", "--output-dir", "out"]);
    for args in [
        &["record", "--run", &run, "--iteration", "1", "--type", "raw", "plan.json"][..],
        &["finish", "--run", &run, "--status", "SUCCESS", "plan.json"],
        &["list"],
        &["show", &run],
        &["scores", &run],
    ] {
        trap.alone(&[&["plan"], args].concat());
    }
}

fn moving(trap: &Trap<'_>) {
    let out = trap.project.home().join("out");
    trap.alone(&["export", "--format", "maestro", "--to", out.to_str().unwrap()]);
    let found = ["checkpoints.json"].map(|name| find(&out, name));
    let folder = found[0].parent().unwrap();
    trap.alone(&["import", folder.to_str().unwrap(), "--format", "maestro"]);
    trap.alone(&["gc", "--keep", "1"]);
    trap.alone(&["verify"]);
}

fn find(folder: &std::path::Path, name: &str) -> PathBuf {
    let all = crate::support::contents(folder);
    all.into_iter().map(|(path, _)| path).find(|path| path.ends_with(name)).unwrap()
}

#[test]
fn a_commit_of_the_user_runs_what_plain_git_runs_and_no_more() {
    for way in [Way::Direct, Way::Included] {
        for sign in [false, true] {
            let (project, session) = lived_in();
            let id = create(&project, &session, "plan");
            project.write("a.txt", "five");
            let trap = Trap::set(&project, way, sign);
            let gits = trap.gits("git add -A && git commit -qm x; git tag -a t -m t");
            let args =
                ["session", "create", "--session-id", &session, "--description", "d", "--phase", "plan"];
            for args in [&args[..], &["task", "save", "--task", "1", "--stage", "start", "-m", "x"]] {
                let ran = project.run(args);
                assert_eq!(ran.code, if sign { 1 } else { 0 }, "{ran:?}");
                let more: Vec<_> = trap.sprung().difference(&gits).cloned().collect();
                assert_eq!(more, [""; 0], "{way:?} {args:?}: git runs {gits:?}");
                project.write("a.txt", args[0]);
            }
            let gits = trap.gits("git tag -d $(git tag | head -1)");
            let (_, sprung) =
                trap.runs(&["session", "delete", "--session-id", &session, "--checkpoint-id", &id]);
            assert!(sprung.is_subset(&gits), "{sprung:?} and git {gits:?}");
        }
    }
}

#[test]
fn what_was_cut_off_is_taken_back_without_anything_of_the_repositorys() {
    let (project, session) = lived_in();
    let head = || git(&project, &["rev-parse", "HEAD"]);
    let before = head();
    project.write(".git/hooks/post-commit", "#!/bin/sh\nkill -9 $(cat \"$HOME/pid\")\n");
    let hook = project.folder.join(".git/hooks/post-commit");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let line = "echo $$ > \"$HOME/pid\"; exec \"$0\" session create --session-id \"$1\" --description d --phase plan";
    let killed = project.tool("sh", ["-c", line, PROGRAM, &session]).output().unwrap();
    assert_eq!(killed.status.code(), None, "{killed:?}");
    fs::remove_file(hook).unwrap();
    let trap = Trap::set(&project, Way::Direct, true);
    assert_ne!(head(), before, "the commit is there, and no record of it");
    trap.alone(&["log"]);
    assert_eq!(head(), before, "it was taken back");
}

#[test]
fn a_repository_whose_files_are_elsewhere_is_refused() {
    let project = TempProject::new();
    project.write("a.txt", "one\n");
    std::fs::create_dir(project.folder.join("other")).unwrap();
    git(&project, &["config", "core.worktree", "../other"]);
    project.run(&["save", "-m", "x"]).fails(4, &["core.worktree", "other", "git config --unset"]);
    git(&project, &["config", "core.worktree", ".."]);
    project.save("as submodules have it", &[]);
    git(&project, &["config", "core.worktree", "../other"]);
    project.write("a.txt", "two\n");
    project.run(&["restore", "@"]).fails(4, &["core.worktree"]);
    assert_eq!(std::fs::read_to_string(project.folder.join("a.txt")).unwrap(), "two\n");
}
