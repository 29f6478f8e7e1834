//! Sessions and tasks beside what others do: other things in their run, several processes, collections.

use stagepost::model::{Phase, RollbackMode, RunId, RunKind, Stage};
use stagepost::project::{Project, Save};
use stagepost::retention::Policy;
use stagepost::session::{self, Changes, Error, NewCheckpoint as NewPhase, Session, Tag};
use stagepost::task::{self, NewCheckpoint, Rollback, Task};

use crate::support::*;

/// Saves something by hand into a run, as a decision at a gate does too.
fn save_into(project: &Project, run: &RunId, kind: RunKind) -> String {
    let save = Save { run: Some((run.clone(), kind)), description: "a decision".into(), ..Save::default() };
    project.save(save).unwrap().id.to_string()
}

#[test]
fn what_else_is_in_the_run_of_a_session_is_no_checkpoint_of_it() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    let first = create(&session, "first");
    let decision = save_into(&project, session.id(), RunKind::Session);
    let second = create(&session, "second");
    save_into(&project, session.id(), RunKind::Session);

    let listed: Vec<_> = session.list().unwrap().iter().map(|one| one.id()).collect();
    assert_eq!(listed, [second.id(), first.id()]);
    let summary = session.summary().unwrap();
    assert_eq!(summary.total_checkpoints, 2);
    assert_eq!(summary.latest_checkpoint.as_deref(), Some(second.entry().commit_sha.as_str()));
    assert_eq!(session.metadata().unwrap()["statistics"]["checkpoints_created"], 2);
    let third = create(&session, "third");
    let shown = view(&home, &session, "checkpoints.json");
    assert_eq!(shown["checkpoints"].as_array().unwrap().len(), 3);
    assert_eq!(shown["summary"]["latest_checkpoint"], third.entry().commit_sha.as_str());

    let refused = session.delete(&decision, Tag::Delete);
    assert!(matches!(refused, Err(Error::NotFound { .. })), "{refused:?}");
    assert!(session.get(&decision).is_err());
    assert!(project.resolve(&decision).is_ok());
}

#[test]
fn the_newest_checkpoint_of_a_task_is_the_newest_of_a_stage() {
    let home = repository();
    let project = home.open();
    let task = Task::new(&project, 5).unwrap();
    let made = task.save(NewCheckpoint::new(Stage::Start, "begin")).unwrap();
    save_into(&project, &RunId::new("task-5").unwrap(), RunKind::Task);
    assert_eq!(task.latest().unwrap().unwrap().record().id, made.record().id);
}

#[test]
fn several_that_begin_one_session_at_once_all_get_their_checkpoint() {
    let home = repository();
    home.open();
    let id = RunId::new("at-once").unwrap();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (home, id) = (&home, &id);
            scope.spawn(move || {
                let project = home.open();
                let session = Session::open_or_start(&project, id).unwrap();
                create_off(&session, &format!("number {number}"));
            });
        }
    });
    let project = home.open();
    let session = Session::open(&project, &id).unwrap();
    assert_eq!(session.list().unwrap().len(), 4);
    assert_eq!(view(&home, &session, "checkpoints.json")["summary"]["total_checkpoints"], 4);
}

#[test]
fn a_name_that_belongs_to_something_else_is_told_as_that() {
    let home = repository();
    let project = home.open();
    project.save(Save::default()).unwrap();
    let refused = Session::open_or_start(&project, &project.adhoc_run()).unwrap_err();
    assert_eq!(refused.to_string(), "`adhoc` is not a session: its kind is adhoc");
}

#[test]
fn a_session_whose_first_checkpoint_failed_is_not_there() {
    let home = repository();
    home.write("a.txt", "two\n");
    hook(&home, "pre-commit", "exit 1");
    let project = home.open();
    let id = RunId::new("never").unwrap();
    let session = Session::open_or_start(&project, &id).unwrap();
    session.create(NewPhase::new(Phase::Plan, "refused")).unwrap_err();
    assert!(Session::all(&project).unwrap().is_empty());
    assert!(!home.root().join(".flow").exists());
    assert!(project.stale_views().is_empty());
}

#[test]
fn after_a_collection_the_files_show_what_is_left_and_tags_stay() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    let task = Task::new(&project, 1).unwrap();
    for (number, stage) in Stage::ALL.iter().enumerate() {
        home.write("a.txt", &format!("{number}\n"));
        create(&session, "work");
        task.save(NewCheckpoint::new(*stage, "work")).unwrap();
    }
    let policy = Policy { keep_last: Some(1), ..Policy::default() };
    project.apply_gc(&project.plan_gc(&policy).unwrap()).unwrap();
    assert_eq!(
        project.stale_views().len(),
        2,
        "whoever collects can be cut off before the files are written"
    );
    session::catch_up(&project).unwrap();
    task::catch_up(&project).unwrap();
    assert!(project.stale_views().is_empty());
    assert_eq!(view(&home, &session, "checkpoints.json")["summary"]["total_checkpoints"], 1);
    let tasks: Vec<serde_json::Value> =
        serde_json::from_str(&home.read(".checkpoint-metadata.json").unwrap()).unwrap();
    assert_eq!(tasks.len(), 1);
    assert_eq!(tags(&home).len(), 8);
}

#[test]
fn a_rollback_moves_the_branch_that_is_checked_out_and_switches_to_no_other() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    let task = Task::new(&project, 1).unwrap();
    home.run_git(&["switch", "-qc", "feature"]);
    home.write("a.txt", "two\n");
    let made = create(&session, "on the feature");
    task.save(NewCheckpoint::new(Stage::Start, "there too")).unwrap();
    let there = head(&home);
    home.run_git(&["switch", "-q", "main"]);
    let before = head(&home);
    // Where the other branch is does not matter: it is not touched.
    home.run_git(&["worktree", "add", "-q", &home.beside("linked").to_string_lossy(), "feature"]);

    let done = session.rollback(&made.id().to_string(), RollbackMode::Hard, Changes::Refuse).unwrap();
    assert_eq!(done.warnings, ["the checkpoint was made on branch `feature`"]);
    let now = || (home.run_git(&["symbolic-ref", "--short", "HEAD"]), head(&home));
    assert_eq!(now(), ("main".to_owned(), there.clone()));
    project.undo().unwrap();
    assert_eq!(now(), ("main".to_owned(), before));
    task.rollback_to(Stage::Start, Rollback::Soft).unwrap();
    assert_eq!(now(), ("main".to_owned(), there.clone()));
    assert_eq!(home.run_git(&["rev-parse", "feature"]), there);
}

#[test]
fn a_commit_that_somebody_makes_during_ours_stays_and_ours_is_refused() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    sign_after(&home, "unset GIT_INDEX_FILE; git -c commit.gpgSign=false commit -q --allow-empty -m theirs");
    home.write("a.txt", "two\n");
    let refused = session.create(NewPhase::new(Phase::Implement, "ours")).unwrap_err();
    assert!(format!("{refused:?}").contains("Meanwhile"), "{refused:?}");

    assert_eq!(home.run_git(&["log", "--format=%s", "main"]), "theirs\nfirst");
    assert_eq!(home.run_git(&["status", "--short"]), " M a.txt");
    assert_eq!((session.list().unwrap().len(), tags(&home).len()), (0, 0));
    home.run_git(&["config", "commit.gpgSign", "false"]);
    create(&session, "ours");
    assert_eq!(home.run_git(&["log", "--format=%s", "main"]), "checkpoint: ours\ntheirs\nfirst");
}
