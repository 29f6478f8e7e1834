//! Each defect of the first design: the same situation, and the right outcome.

use stagepost::model::{Phase, Reason, RollbackMode};
use stagepost::session::{Changes, Failure, NewCheckpoint, Session, Tag, should_rollback};

use crate::support::*;

#[test]
fn d1_1_commit_sha_is_a_commit_and_every_rollback_to_it_works() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    home.write("a.txt", "dirty\n");
    let made = create(&session, "first");
    let entry = made.entry();
    assert_eq!(entry.commit_sha, head(&home));
    assert_eq!(entry.commit_sha.len(), 40);
    home.write("a.txt", "worse\n");
    hard(&session, &made);
    assert_eq!(home.read("a.txt").unwrap(), "dirty\n");
}

#[test]
fn d1_2_untracked_files_are_in_the_checkpoint() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    home.write("never/added.txt", "precious\n");
    for made in [create_off(&session, "off"), create(&session, "on")] {
        home.remove("never/added.txt");
        hard(&session, &made);
        assert_eq!(home.read("never/added.txt").unwrap(), "precious\n");
    }
}

#[test]
fn d1_3_its_own_log_never_makes_the_tree_dirty_so_mixed_goes_back() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    let first = create(&session, "first");
    home.write("a.txt", "two\n");
    create(&session, "second");
    assert_eq!(home.run_git(&["status", "--porcelain"]), "");
    assert!(!Session::validate(&project, None).unwrap().has_uncommitted_changes);
    session.rollback(&first.id().to_string(), RollbackMode::Mixed, Changes::Refuse).unwrap();
    assert_eq!(home.read(".gitignore"), None);
}

#[test]
fn d1_4_tests_passing_is_unknown_unless_a_test_command_ran() {
    let home = repository();
    let project = home.open();
    assert_eq!(Session::validate(&project, None).unwrap().tests_passing, None);
    assert_eq!(Session::validate(&project, Some("false")).unwrap().tests_passing, Some(false));
    assert_eq!(Session::validate(&project, Some("true")).unwrap().tests_passing, Some(true));
}

#[test]
fn d1_5_the_summary_counts_checkpoints_and_forgets_deleted_ones() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    let safe = create_as(&session, "safe", Reason::SafeState);
    let manual = create(&session, "manual");
    for _ in 0..3 {
        hard(&session, &safe);
    }
    hard(&session, &manual);
    assert_eq!(session.get(&safe.id().to_string()).unwrap().rollbacks(), 3);
    assert_eq!(session.summary().unwrap().checkpoints_used_for_rollback, 2);
    session.delete(&safe.id().to_string(), Tag::Delete).unwrap();
    let summary = session.summary().unwrap();
    assert_eq!(summary.checkpoints_used_for_rollback, 1);
    assert_eq!(summary.checkpoints_by_type.keys().collect::<Vec<_>>(), ["manual"]);
    assert_eq!(summary.total_checkpoints, 1);
    assert_eq!(session.history().unwrap().len(), 4);
}

#[test]
fn d1_6_what_came_before_a_risky_operation_is_kept() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    home.write("a.txt", "two\n");
    let new = NewCheckpoint {
        reason: Reason::PreRiskyOperation,
        operation: Some("migration".into()),
        ..NewCheckpoint::new(Phase::Implement, "before it")
    };
    let made = session.create(new).unwrap();
    let entry = session.get(&made.id().to_string()).unwrap().entry();
    assert_eq!(entry.operation_context.unwrap(), "migration");
    assert_eq!(entry.commit_message.unwrap(), "checkpoint: Auto-commit before migration");
    let subject = home.run_git(&["tag", "-l", "--format=%(contents:subject)"]);
    assert_eq!(subject, "Pre-operation Checkpoint: migration - before it");
    assert_eq!(view(&home, &session, "checkpoints.json")["checkpoints"][0]["operation_context"], "migration");
}

#[test]
fn d1_7_what_the_rule_calls_for_can_be_done() {
    let home = repository();
    let project = home.open();
    let session = start(&project);
    create_as(&session, "good", Reason::PhaseComplete);
    home.write("a.txt", "half a write");
    let failure = Failure { error_type: "disk_full".into(), ..Failure::default() };
    assert!(should_rollback(&failure).is_some());
    assert!(session.rollback_if_needed(&failure).unwrap().unwrap().success);
    assert_eq!(home.read("a.txt").unwrap(), "one\n");
}
