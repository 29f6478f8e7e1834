use stagepost::model::{Phase, Progress, Reason, RollbackMode, RunId, Stage};
use stagepost::project::BranchError;
use stagepost::session::{Changes, Error, Failure, Finding, NewCheckpoint, Session, Status, Tag};
use stagepost::task::{self, Task};
use stagepost::{project, store::Query};
use stagepost_testutil::TempProject;

use crate::support::*;

#[test]
fn a_checkpoint_commits_everything_and_tags_it() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    home.write("a.txt", "two\n").write("new/b.txt", "untracked\n");
    let made = create(&session, "both files");

    assert_eq!(made.commit().unwrap().as_str(), head(&home));
    assert_eq!(home.run_git(&["status", "--porcelain"]), "");
    assert_eq!(home.run_git(&["show", "HEAD:new/b.txt"]), "untracked");
    assert_eq!(home.run_git(&["log", "-1", "--format=%s%n%an"]), "checkpoint: both files\nAda");
    let tag = format!("checkpoint-{}", made.id());
    assert_eq!(tags(&home), [&*tag]);
    assert_eq!(home.run_git(&["cat-file", "-t", &tag]), "tag");
    assert_eq!(home.run_git(&["tag", "-l", "--format=%(contents:subject)"]), "Checkpoint: both files");
    let snapshot = made.record().content.snapshot.clone().unwrap();
    assert_eq!(snapshot.head.unwrap().as_str(), head(&home));
    assert_eq!(snapshot.tree.as_str(), home.run_git(&["rev-parse", "HEAD^{tree}"]));
    assert!(project.verify().unwrap().damage.is_empty());
}

#[test]
fn a_clean_tree_is_tagged_without_a_commit() {
    let home = repository();
    let project = home.open();
    let before = head(&home);
    let made = create(&start(&project), "nothing changed");
    assert_eq!((made.commit().unwrap().as_str(), head(&home)), (before.as_str(), before.clone()));
    assert_eq!(made.entry().commit_message, None);
}

#[test]
fn off_the_branch_nothing_of_the_users_moves() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    home.write("a.txt", "two\n").write("b.txt", "new\n");
    let (before, status) = (head(&home), home.run_git(&["status", "--porcelain"]));
    let made = create_off(&session, "off");
    assert_eq!((head(&home), home.run_git(&["status", "--porcelain"])), (before, status));
    let tag = format!("checkpoint-{}", made.id());
    assert_eq!(home.run_git(&["show", &format!("{tag}^{{commit}}:b.txt")]), "new");
    assert_eq!(home.run_git(&["rev-parse", &format!("{tag}^{{commit}}")]), made.commit().unwrap().as_str());

    home.write("a.txt", "three\n").remove("b.txt");
    hard(&session, &made);
    assert_eq!((home.read("a.txt").unwrap(), home.read("b.txt").unwrap()), ("two\n".into(), "new\n".into()));
}

#[test]
fn hard_goes_back_with_files_and_branch_and_undo_brings_it_all_back() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    let first = create(&session, "first");
    home.write("a.txt", "two\n").write("b.txt", "b\n");
    let second = create(&session, "second");
    home.write("c.txt", "uncommitted\n");
    hard(&session, &first);
    assert_eq!(head(&home), first.commit().unwrap().as_str());
    assert_eq!(home.run_git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(
        (home.read("a.txt").unwrap(), home.read("b.txt"), home.read("c.txt")),
        ("one\n".into(), None, None)
    );
    assert_eq!(home.run_git(&["status", "--porcelain"]), "");
    project.undo().unwrap();
    assert_eq!(head(&home), second.commit().unwrap().as_str());
    assert_eq!(home.read("c.txt").unwrap(), "uncommitted\n");
}

#[test]
fn mixed_moves_the_branch_and_leaves_the_files() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    let first = create(&session, "first");
    home.write("a.txt", "two\n");
    create(&session, "second");
    let done = session.rollback(&first.id().to_string(), RollbackMode::Mixed, Changes::Refuse).unwrap();
    assert!(done.success);
    assert_eq!(done.head_after.unwrap(), first.commit().unwrap().as_str());
    assert_eq!(home.read("a.txt").unwrap(), "two\n");
    assert_eq!(home.run_git(&["status", "--porcelain"]), " M a.txt");
}

#[test]
fn mixed_refuses_uncommitted_changes_unless_they_may_stay_and_records_both() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    let first = create(&session, "first");
    home.write("a.txt", "two\n");
    let id = first.id().to_string();
    let refused = session.rollback(&id, RollbackMode::Mixed, Changes::Refuse);
    assert!(matches!(refused, Err(Error::Dirty { files: 1 })), "{refused:?}");
    session.rollback(&id, RollbackMode::Mixed, Changes::Keep).unwrap();
    assert_eq!(home.read("a.txt").unwrap(), "two\n");

    let history = session.history().unwrap();
    assert_eq!(history.iter().map(|one| one.success).collect::<Vec<_>>(), [false, true]);
    assert_eq!(history[0].errors, ["there are uncommitted changes"]);
    assert!(history[0].error.as_ref().unwrap().contains("uncommitted"));
    assert_eq!(session.get(&id).unwrap().rollbacks(), 1);
}

#[test]
fn lists_are_newest_first_and_survive_another_opening() {
    let home = repository();
    let ids: Vec<String> = {
        let project = home.open();
        let session = Session::open_or_start(&project, &RunId::new("example-session").unwrap()).unwrap();
        ["one", "two", "three"].iter().map(|text| create(&session, text).id().to_string()).collect()
    };
    let project = home.open();
    let session = Session::open(&project, &RunId::new("example-session").unwrap()).unwrap();
    let listed: Vec<_> = session.list().unwrap().iter().map(|one| one.id().to_string()).collect();
    assert_eq!(listed, ids.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(session.get(&ids[1]).unwrap().record().content.description, "two");
}

#[test]
fn what_is_not_there_is_not_found() {
    let home = repository();
    let project = home.open();
    let unknown = RunId::new("nobody").unwrap();
    assert!(matches!(Session::open(&project, &unknown), Err(Error::NoSession { .. })));
    let (one, other) = (start(&project), start(&project));
    let made = create(&one, "of one");
    for name in ["0190163d-8694-739b-aea5-966c26f8ad91", "nonsense", "@", &made.id().to_string()] {
        let found = other.get(name);
        assert!(matches!(found, Err(Error::NotFound { .. })), "{name}: {found:?}");
    }
}

#[test]
fn deleting_takes_the_tag_unless_it_is_to_stay() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    let (first, second) = (create(&session, "first"), create(&session, "second"));
    session.delete(&first.id().to_string(), Tag::Delete).unwrap();
    session.delete(&second.id().to_string(), Tag::Keep).unwrap();
    assert_eq!(tags(&home), [format!("checkpoint-{}", second.id())]);
    assert!(session.list().unwrap().is_empty());
    assert!(matches!(session.get(&first.id().to_string()), Err(Error::NotFound { .. })));
    assert_eq!(view(&home, &session, "checkpoints.json")["checkpoints"], serde_json::json!([]));
    assert!(project.verify().unwrap().damage.is_empty());
}

#[test]
fn statistics_follow_by_themselves() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    let first = create(&session, "first");
    let progress = Progress { tasks_completed: Some(4), decisions_made: Some(2), ..Progress::default() };
    let new = NewCheckpoint { progress: Some(progress), ..NewCheckpoint::new(Phase::Validate, "second") };
    session.create(new).unwrap();
    hard(&session, &first);
    create_as(&session, "recovered", Reason::ErrorRecovery);
    let metadata = session.metadata().unwrap();
    let statistics = &metadata["statistics"];
    assert_eq!(statistics["checkpoints_created"], 3);
    assert_eq!(statistics["completed_tasks"], 4);
    assert_eq!(statistics["decisions_made"], 2);
    assert_eq!(statistics["error_recovery_count"], 1);
    assert!(statistics["duration_seconds"].as_u64().unwrap() > 0);
    assert_eq!(metadata["status"], "implementing");
    assert_eq!(metadata["feature_request"], "make it so");
    assert_eq!(metadata["git_context"]["branch"], "main");
    session.set_status(Status::Completed).unwrap();
    let metadata = view(&home, &session, "metadata.json");
    assert_eq!(metadata["status"], "completed");
    assert!(metadata["completed_at"].is_string());
}

#[test]
fn a_merge_in_progress_refuses_checkpoints_and_rollbacks() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    let first = create(&session, "first");
    home.run_git(&["switch", "-qc", "other"]);
    home.write("a.txt", "theirs\n");
    home.run_git(&["commit", "-qam", "theirs"]);
    home.run_git(&["switch", "-q", "main"]);
    home.write("a.txt", "ours\n");
    home.run_git(&["commit", "-qam", "ours"]);
    let merge =
        std::process::Command::new("git").current_dir(home.root()).args(["merge", "-q", "other"]).output();
    assert!(!merge.unwrap().status.success());

    let validation = Session::validate(&project, None).unwrap();
    assert_eq!(validation.errors, [Finding::InProgress("merge"), Finding::Conflicts]);
    assert!(!validation.is_valid && validation.has_uncommitted_changes);
    let before = (head(&home), tags(&home));
    let refused = session.create(NewCheckpoint::new(Phase::Implement, "no"));
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    let refused = session.rollback(&first.id().to_string(), RollbackMode::Hard, Changes::Refuse);
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    assert_eq!((head(&home), tags(&home)), before);
    assert_eq!(session.history().unwrap()[0].errors, ["a merge is in progress"]);
}

#[test]
fn conflicts_without_a_merge_refuse_too() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    home.write("a.txt", "stashed\n");
    home.run_git(&["stash", "-q"]);
    home.write("a.txt", "other\n");
    home.run_git(&["commit", "-qam", "other"]);
    let popped = std::process::Command::new("git").current_dir(home.root()).args(["stash", "pop"]).output();
    assert!(!popped.unwrap().status.success());
    let refused = session.create(NewCheckpoint::new(Phase::Implement, "no"));
    assert!(
        matches!(&refused, Err(Error::Invalid { findings }) if findings == &[Finding::Conflicts]),
        "{refused:?}"
    );
    assert_eq!(tags(&home), Vec::<String>::new());
}

#[test]
fn warnings_do_not_refuse() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    home.run_git(&["switch", "-q", "--detach"]);
    home.write("a.txt", "two\n");
    let validation = Session::validate(&project, None).unwrap();
    assert_eq!(validation.warnings, [Finding::Detached, Finding::Uncommitted]);
    assert_eq!(validation.git_status, " M a.txt\n");
    let made = create(&session, "detached");
    assert_eq!(made.commit().unwrap().as_str(), head(&home));
}

#[test]
fn a_commit_that_fails_leaves_no_tag_no_record_and_the_index_as_it_was() {
    let home = repository();
    home.write("staged.txt", "staged\n");
    home.run_git(&["add", "staged.txt"]);
    home.write("a.txt", "two\n");
    let project = home.open();
    let session = start(&project);
    let status = home.run_git(&["--no-optional-locks", "status", "--porcelain"]);
    let refs = home.run_git(&["for-each-ref"]);
    // With the index newer than the file, git would take a change of the same second and size for none.
    let index = || home.root().join(".git/index").metadata().unwrap().modified().unwrap();
    let time = index();
    let unchanged = |why: &str| {
        assert_eq!(index(), time, "{why}");
        assert_eq!(home.run_git(&["--no-optional-locks", "status", "--porcelain"]), status, "{why}");
        assert_eq!(home.run_git(&["for-each-ref", "refs/heads", "refs/tags"]), refs, "{why}");
        assert!(session.list().unwrap().is_empty(), "{why}");
        assert!(project.log(&Query::default()).unwrap().is_empty(), "{why}");
        assert_eq!(project.snapshots().unwrap().held().unwrap().len(), 0, "{why}");
    };
    let branch_error = |result: Result<_, Error>| match result {
        Err(Error::Project(project::Error::Branch(error))) => error,
        other => panic!("{other:?}"),
    };
    let attempt = || branch_error(session.create(NewCheckpoint::new(Phase::Implement, "x")));

    hook(&home, "pre-commit", "echo not today >&2; exit 1");
    let error = attempt();
    assert!(
        matches!(&error, BranchError::Hook { hook: "pre-commit", message } if message == "not today"),
        "{error:?}"
    );
    unchanged("a hook");

    hook(&home, "pre-commit", "git reset -q --hard; git rm -q --cached staged.txt 2>/dev/null; exit 0");
    std::fs::remove_file(home.root().join(".git/hooks/pre-commit")).unwrap();
    for signs in ["commit.gpgSign", "tag.gpgSign"] {
        refuse_to_sign(&home, signs);
        let error = attempt();
        let told = matches!(&error, BranchError::Signing { message } if message.contains("no key today"));
        assert!(told, "{signs}: {error:?}");
        unchanged(signs);
        home.run_git(&["config", "--unset", signs]);
    }
    forget_identity(&home);
    assert!(matches!(attempt(), BranchError::NoIdentity { .. }));
    unchanged("no identity");
}

#[test]
fn a_first_commit_whose_tag_cannot_be_signed_is_taken_back() {
    let home = TempProject::git();
    home.write("a.txt", "one\n");
    let project = home.open();
    refuse_to_sign(&home, "tag.gpgSign");
    let session = start(&project);
    let refused = session.create(NewCheckpoint::new(Phase::Implement, "x"));
    let Err(Error::Project(project::Error::Branch(error))) = refused else { panic!("{refused:?}") };
    assert!(matches!(error, BranchError::Signing { .. }), "{error:?}");
    assert_eq!(home.run_git(&["for-each-ref", "refs/heads", "refs/tags"]), "");
    assert_eq!(home.run_git(&["status", "--porcelain"]), "?? a.txt");
    // Nothing is in the way of the next attempt.
    home.run_git(&["config", "--unset", "tag.gpgSign"]);
    let made = create(&session, "signed by nobody");
    assert_eq!(made.commit().unwrap().as_str(), head(&home));
}

#[test]
fn a_task_whose_tag_cannot_be_signed_keeps_the_older_tag() {
    let home = repository();
    let project = home.open();
    let task = Task::new(&project, 1).unwrap();
    let saved = task.save(task::NewCheckpoint::new(Stage::Start, "saved")).unwrap();
    home.write("a.txt", "two\n");
    let (before, tag) = (head(&home), home.run_git(&["rev-parse", "checkpoint-t1-start"]));
    refuse_to_sign(&home, "tag.gpgSign");
    let refused = task.save(task::NewCheckpoint::new(Stage::Start, "again"));
    let Err(task::Error::Project(project::Error::Branch(error))) = refused else { panic!("{refused:?}") };
    assert!(matches!(error, BranchError::Signing { .. }), "{error:?}");
    assert_eq!((head(&home), home.run_git(&["rev-parse", "checkpoint-t1-start"])), (before, tag));
    assert_eq!(home.run_git(&["status", "--porcelain"]), " M a.txt");
    assert_eq!(task.history().unwrap()[0].record().id, saved.record().id);
}

#[test]
fn a_hook_that_takes_the_changes_back_leaves_nothing_to_commit() {
    let home = repository();
    home.write("a.txt", "two\n");
    let project = home.open();
    let session = start(&project);
    let refused = || {
        let refused = session.create(NewCheckpoint::new(Phase::Implement, "x"));
        assert!(tags(&home).is_empty() && session.list().unwrap().is_empty());
        let Err(Error::Project(project::Error::Branch(error))) = refused else { panic!("{refused:?}") };
        error
    };
    hook(&home, "pre-commit", "git reset -q; exit 1");
    let error = refused();
    assert!(matches!(error, BranchError::Hook { hook: "pre-commit", .. }), "{error:?}");
    hook(&home, "pre-commit", "git reset -q");
    hook(&home, "commit-msg", "echo asked >> asked");
    let error = refused();
    assert!(matches!(error, BranchError::NothingToCommit), "{error:?}");
    assert_eq!(home.read("asked"), None);
}

#[test]
fn a_hook_that_changes_files_is_captured_as_it_left_them() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    hook(&home, "pre-commit", "echo formatted > a.txt; git add a.txt; echo stray > stray.txt");
    home.write("a.txt", "raw\n");
    let made = create(&session, "formatted");
    assert_eq!(home.run_git(&["show", "HEAD:a.txt"]), "formatted");
    home.write("a.txt", "later\n").remove("stray.txt");
    hard(&session, &made);
    assert_eq!(
        (home.read("a.txt").unwrap(), home.read("stray.txt").unwrap()),
        ("formatted\n".into(), "stray\n".into())
    );
}

#[test]
fn odd_changes_are_committed_as_git_would() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    home.write("dir/file", "x\n").write("odd *[name]?\n.txt", "odd\n").write("-rf", "dash\n");
    create(&session, "odd names");
    assert_eq!(home.run_git(&["status", "--porcelain"]), "");
    // A file becomes a folder, a folder a file, something staged is gone again, something removed from the index stays.
    home.remove("a.txt").write("a.txt/inside", "y\n").remove("dir/file");
    std::fs::remove_dir(home.root().join("dir")).unwrap();
    home.write("dir", "a file now\n").write("staged", "s\n");
    home.run_git(&["add", "staged"]);
    home.remove("staged");
    home.run_git(&["rm", "-q", "--cached", "--", "-rf"]);
    let made = create(&session, "turned round");
    assert_eq!(home.run_git(&["status", "--porcelain"]), "");
    assert_eq!(home.run_git(&["show", "HEAD:-rf"]), "dash");
    assert_eq!(home.run_git(&["show", "HEAD:dir"]), "a file now");
    let tree = &made.record().content.snapshot.as_ref().unwrap().tree;
    assert_eq!(tree.as_str(), home.run_git(&["rev-parse", "HEAD^{tree}"]));
}

#[test]
fn before_the_first_commit_a_checkpoint_makes_it() {
    let home = stagepost_testutil::TempProject::git();
    home.write("a.txt", "one\n");
    let project = home.open();
    let made = create(&start(&project), "the first");
    assert_eq!(made.commit().unwrap().as_str(), head(&home));
}

#[test]
fn a_failure_that_calls_for_it_goes_back_to_the_last_good_checkpoint() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    let good = create_as(&session, "good", Reason::SafeState);
    home.write("a.txt", "doubtful\n");
    create(&session, "doubtful");
    let failure = Failure { attempts: 1, ..Failure::default() };
    assert_eq!(session.rollback_if_needed(&failure).unwrap(), None);
    let failure = Failure { attempts: 3, ..failure };
    let done = session.rollback_if_needed(&failure).unwrap().unwrap();
    assert_eq!(done.checkpoint, good.id().to_string());
    assert_eq!(home.read("a.txt").unwrap(), "one\n");
}

#[test]
fn the_test_command_is_told_with_its_result() {
    let home = repository();
    let project = home.open();
    let passing = Session::validate(&project, Some("test -f a.txt && echo fine")).unwrap();
    let run = passing.test_run.unwrap();
    assert_eq!((passing.tests_passing, run.exit_code, run.output.as_str()), (Some(true), Some(0), "fine\n"));
    assert!(run.duration_seconds > 0.0);
    let failing = Session::validate(&project, Some("exit 3")).unwrap();
    assert_eq!((failing.tests_passing, failing.is_valid), (Some(false), true));
}

#[test]
fn a_folder_without_git_is_not_valid() {
    let home = stagepost_testutil::TempProject::plain();
    let project = home.open();
    assert_eq!(Session::validate(&project, None).unwrap().errors, [Finding::NotARepository]);
    let refused = start(&project).create(NewCheckpoint::new(Phase::Plan, "x"));
    assert!(matches!(refused, Err(Error::Invalid { .. })));
}
