//! The commits that sessions and tasks make as the user: the same as git's own, with everything that has a say in them.

use stagepost::model::Phase;
use stagepost::project::Settings;
use stagepost::session::{NewCheckpoint, Session, Tag};
use stagepost_testutil::TempProject;

use crate::support::*;

#[test]
fn a_commit_is_the_same_as_if_git_made_all_of_it() {
    let seen = |home: &TempProject| {
        let raw = home.run_git(&["cat-file", "commit", "HEAD"]);
        let but_times =
            raw.lines().filter(|line| !line.starts_with("author") && !line.starts_with("committer"));
        let commit: Vec<String> =
            but_times.filter(|line| !line.starts_with("parent")).map(str::to_owned).collect();
        let logs = ["HEAD", "main"].map(|name| home.run_git(&["log", "-g", "--format=%gs, %gn", name]));
        assert_eq!(home.run_git(&["status", "--short"]), "");
        assert_eq!(home.run_git(&["fsck", "--strict"]), "");
        (commit, logs)
    };
    let changed = || {
        let home = repository();
        sign_after(&home, "");
        home.write("a.txt", "two\n").write("sub/b.txt", "new\n");
        home
    };
    let made = |prepare: &dyn Fn(&TempProject)| {
        let home = changed();
        prepare(&home);
        let project = home.open();
        create(&start(&project), "ours");
        seen(&home)
    };
    let theirs = changed();
    theirs.run_git(&["add", "-A"]);
    theirs.run_git(&["commit", "-qm", "checkpoint: ours"]);
    let git = seen(&theirs);
    assert!(git.0.iter().any(|line| line.starts_with("gpgsig")), "{git:?}");
    assert_eq!(made(&|_| ()), git);
    for name in ["pre-commit", "prepare-commit-msg", "commit-msg", "reference-transaction", "post-commit"] {
        assert_eq!(made(&|home| hook(home, name, "exit 0")), git, "{name}");
        let older = |home: &TempProject| {
            home.use_older_git();
            hook(home, name, "exit 0");
        };
        assert_eq!(made(&older), git, "{name}, with an older git");
    }
    assert_eq!(made(&|home| _ = home.run_git(&["config", "hook.one.command", "true"])), git);
}

#[test]
fn hooks_are_run_and_told_what_git_tells_them() {
    told_what_git_tells(&repository());
    let older = repository();
    older.use_older_git();
    told_what_git_tells(&older);
}

fn told_what_git_tells(home: &TempProject) {
    home.write(".gitignore", "told\nhooks/\n");
    home.run_git(&["add", "-A"]);
    home.run_git(&["commit", "-qm", "ignore"]);
    home.run_git(&["config", "core.hooksPath", "hooks"]);
    let names = ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"];
    for name in names {
        let tell = "(echo \"$0 $*\"; pwd; env | grep ^GIT_ | sort; cat; git diff --cached --stat; cat .git/COMMIT_EDITMSG) >> told";
        program(&home.root().join("hooks").join(name), tell);
    }
    // What differs by nature: when, which index, and the message that git left of the commit before.
    let told = || {
        let told = home.read("told").unwrap();
        home.remove("told");
        let same =
            |line: &&str| !["GIT_AUTHOR_DATE=@", "GIT_INDEX_FILE="].iter().any(|own| line.starts_with(own));
        assert_eq!(told.lines().filter(|line| !same(line)).count(), 8, "{told}");
        told.lines()
            .filter(same)
            .filter(|line| !line.starts_with("STAGEPOST"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    home.write("a.txt", "two\n");
    home.run_git(&["add", "-A"]);
    home.write(".git/COMMIT_EDITMSG", "before\n");
    home.run_git(&["commit", "-qm", "checkpoint: ours"]);
    let git = told();
    home.run_git(&["reset", "-q", "--soft", "HEAD~1"]);
    home.write(".git/COMMIT_EDITMSG", "before\n");
    let project = home.open();
    create(&start(&project), "ours");
    let ours = told();
    assert_eq!(ours, git);
    assert!(
        names.iter().all(|name| ours.iter().any(|line| line.starts_with(&format!("hooks/{name}")))),
        "{ours:?}"
    );
}

#[test]
fn the_hook_of_refs_is_told_what_git_tells_it_and_may_refuse() {
    for (detached, older) in [(false, false), (true, false), (false, true)] {
        let home = repository();
        let program = "grep ' HEAD$\\| refs/heads/' | sed \"s/^/$1 /\" >> .git/told";
        hook(&home, "reference-transaction", program);
        if detached {
            home.run_git(&["checkout", "-q", "--detach"]);
        }
        if older {
            home.use_older_git();
        }
        let project = home.open();
        let session = start(&project);
        let told = |make: &dyn Fn()| {
            let names = || (head(&home), "0".repeat(40));
            home.write(".git/told", "");
            let (old, zero) = names();
            make();
            let told = home.read(".git/told").unwrap();
            told.replace(&old, "old").replace(&names().0, "new").replace(&zero, "none")
        };
        home.write("a.txt", "two\n");
        let git = told(&|| _ = home.run_git(&["commit", "-qam", "theirs"]));
        assert!(git.starts_with("prepared ") && git.contains("\ncommitted "), "{git}");
        home.write("a.txt", "three\n");
        assert_eq!(told(&|| _ = create(&session, "ours")), git, "detached: {detached}, older: {older}");

        let before = head(&home);
        hook(&home, "reference-transaction", "grep -q refs/heads/ && echo frozen >&2 && exit 1; exit 0");
        if !detached {
            home.write("a.txt", "four\n");
            let refused = session.create(NewCheckpoint::new(Phase::Implement, "no")).unwrap_err();
            let words = format!("{refused:?}");
            assert!(words.contains("reference-transaction") && words.contains("frozen"), "{words}");
            assert_eq!((head(&home), home.run_git(&["status", "--short"])), (before, " M a.txt".into()));
        }
    }
}

#[test]
fn the_hook_of_refs_is_told_of_tags_that_go_and_may_refuse() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    let kept = create(&session, "one");
    let gone = create(&session, "two");
    hook(&home, "reference-transaction", "test $1 = aborted || sed \"s/^/$1 /\" >> .git/told");
    session.delete(&gone.id().to_string(), Tag::Delete).unwrap();
    let zero = "0".repeat(40);
    let line = |state: &str| format!("{state} {zero} {zero} refs/tags/checkpoint-{}\n", gone.id());
    assert_eq!(home.read(".git/told").unwrap(), line("prepared") + &line("committed"));
    hook(&home, "reference-transaction", "exit 1");
    session.delete(&kept.id().to_string(), Tag::Delete).unwrap_err();
    assert_eq!(tags(&home), [format!("checkpoint-{}", kept.id())]);
    assert_eq!(session.list().unwrap().len(), 1);
}

#[test]
fn refs_in_tables_are_moved_like_files_in_every_work_tree_and_their_hook_is_told() {
    let home = TempProject::plain();
    home.run_git(&["init", "-q", "-b", "main", "--ref-format=reftable"]);
    home.run_git(&["config", "user.name", "Ada"]);
    home.run_git(&["config", "user.email", "ada@example.org"]);
    home.write("a.txt", "one\n");
    home.run_git(&["add", "-A"]);
    home.run_git(&["commit", "-qm", "first"]);
    home.run_git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
    hook(&home, "reference-transaction", "sed \"s/^/$1 /\" >> \"$(git rev-parse --git-common-dir)/told\"");
    for (folder, branch) in [(home.root().to_owned(), "main"), (home.beside("linked"), "side")] {
        let project = home.open_with(&folder, Settings::default());
        let session = Session::start(&project, branch).unwrap();
        let git = |args: &[&str]| {
            let folder = folder.to_str().unwrap();
            home.run_git(&[&["-C", folder][..], args].concat())
        };
        std::fs::write(folder.join("a.txt"), "two\n").unwrap();
        home.write(".git/told", "");
        let kept = create(&session, "two");
        let (new, tag) = (git(&["rev-parse", "HEAD"]), format!("refs/tags/checkpoint-{}", kept.id()));
        let told = home.read(".git/told").unwrap();
        for (name, is) in [("HEAD", &new), (tag.as_str(), &git(&["rev-parse", &tag]))] {
            for state in ["prepared", "committed"] {
                let line = format!("{state} {} {is} {name}", "0".repeat(40));
                assert_eq!(told.lines().filter(|told| **told == line).count(), 1, "{line} in {told}");
            }
        }
        assert_eq!(git(&["log", "-g", "-1", "--format=%gs", branch]), "commit: checkpoint: two");
        assert_eq!(git(&["log", "-g", "-1", "--format=%gs", "HEAD"]), "commit: checkpoint: two");
        std::fs::write(folder.join("a.txt"), "three\n").unwrap();
        let gone = create(&session, "three");
        session.delete(&gone.id().to_string(), Tag::Delete).unwrap();
        assert_eq!(git(&["tag", "--list", &format!("*{}", gone.id())]), "");
        hard(&session, &kept);
        assert_eq!((git(&["rev-parse", branch]), git(&["status", "--short"])), (new, String::new()));
        assert_eq!(git(&["symbolic-ref", "HEAD"]), format!("refs/heads/{branch}"));
        git(&["fsck", "--no-dangling"]);
    }
}

#[test]
fn a_hook_may_reword_and_what_was_reworded_is_taken_back_like_any_other() {
    let home = repository();
    hook(
        &home,
        "prepare-commit-msg",
        "printf 'TICKET-1 %s\\n' \"$(cat \"$1\")\" > \"$1.new\" && mv \"$1.new\" \"$1\"",
    );
    hook(&home, "commit-msg", "grep -q ^TICKET \"$1\" && echo 'Change-Id: I1' >> \"$1\"");
    let project = home.open();
    let session = start(&project);
    home.write("a.txt", "two\n");
    refuse_to_sign(&home, "tag.gpgSign");
    session.create(NewCheckpoint::new(Phase::Implement, "ours")).unwrap_err();
    assert_eq!(home.run_git(&["log", "--format=%s", "main"]), "first");
    assert_eq!(home.run_git(&["status", "--short"]), " M a.txt");
    home.run_git(&["config", "--unset", "tag.gpgSign"]);
    create(&session, "ours");
    assert_eq!(home.run_git(&["log", "-1", "--format=%B"]), "TICKET-1 checkpoint: ours\nChange-Id: I1");
    assert_eq!(home.run_git(&["log", "-g", "-1", "--format=%gs"]), "commit: TICKET-1 checkpoint: ours");
    hook(&home, "commit-msg", ": > \"$1\"");
    home.write("a.txt", "three\n");
    let refused = session.create(NewCheckpoint::new(Phase::Implement, "more")).unwrap_err();
    assert!(format!("{refused:?}").contains("a hook left no message"), "{refused:?}");
}

#[test]
fn the_first_commit_of_all_begins_the_branch_and_its_reflogs() {
    for logs in ["true", "false"] {
        let home = TempProject::git();
        home.run_git(&["config", "core.logAllRefUpdates", logs]);
        home.write("a.txt", "one\n");
        let project = home.open();
        create(&start(&project), "first");
        assert_eq!(home.run_git(&["log", "--format=%s", "main"]), "checkpoint: first");
        assert_eq!(home.root().join(".git/logs/refs/heads/main").exists(), logs == "true");
        assert_eq!(home.run_git(&["status", "--short"]), "");
    }
}

#[test]
fn how_conflicts_were_resolved_is_remembered() {
    let home = repository();
    home.run_git(&["config", "rerere.enabled", "true"]);
    let project = home.open();
    let session = start(&project);
    home.run_git(&["checkout", "-qb", "side"]);
    home.write("a.txt", "theirs\n");
    home.run_git(&["commit", "-qam", "side"]);
    home.run_git(&["checkout", "-q", "main"]);
    home.write("a.txt", "ours\n");
    home.run_git(&["commit", "-qam", "main"]);
    let conflict = std::process::Command::new("git")
        .current_dir(home.root())
        .args(["merge", "--squash", "side"])
        .output();
    assert!(!conflict.unwrap().status.success());
    assert_ne!(home.read(".git/MERGE_RR").unwrap(), "");
    home.write("a.txt", "both\n");
    home.run_git(&["add", "-A"]);
    create(&session, "resolved");
    assert_eq!(home.read(".git/MERGE_RR").unwrap(), "");
    // The same conflict once more is resolved by what git remembers.
    home.run_git(&["reset", "-q", "--hard", "HEAD~1"]);
    let again = std::process::Command::new("git")
        .current_dir(home.root())
        .args(["merge", "--squash", "side"])
        .output();
    assert!(String::from_utf8_lossy(&again.unwrap().stdout).contains("CONFLICT"));
    assert_eq!(home.read("a.txt").unwrap(), "both\n");
}

#[test]
fn what_a_squashed_merge_left_is_put_away() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    home.run_git(&["checkout", "-qb", "side"]);
    home.write("b.txt", "b\n");
    home.run_git(&["add", "-A"]);
    home.run_git(&["commit", "-qm", "side"]);
    home.run_git(&["checkout", "-q", "main"]);
    home.run_git(&["merge", "-q", "--squash", "side"]);
    create(&session, "squashed");
    assert!(!home.root().join(".git/SQUASH_MSG").exists());
}
