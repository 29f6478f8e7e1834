//! Each defect of the second design: the same situation, and the right outcome.

use std::time::Duration;

use stagepost::model::Stage;
use stagepost::project::{self, BranchError};
use stagepost::task::{self, Error, Limits, NewCheckpoint, Rollback, Task};
use stagepost_testutil::TempProject;

use crate::support::*;

fn five_checkpoints(home: &TempProject, project: &project::Project) {
    let (one, two) = (Task::new(project, 1).unwrap(), Task::new(project, 2).unwrap());
    for (number, stage) in Stage::ALL.iter().enumerate() {
        home.write("a.txt", &format!("{number}\n"));
        one.save(NewCheckpoint::new(*stage, "work")).unwrap();
        one.log_progress(&format!("reached {stage}")).unwrap();
    }
    home.write("b.txt", "b\n");
    two.save(NewCheckpoint::new(Stage::Start, "more work")).unwrap();
}

fn listed(home: &TempProject) -> usize {
    let list: serde_json::Value =
        serde_json::from_str(&home.read(".checkpoint-metadata.json").unwrap()).unwrap();
    list.as_array().unwrap().len()
}

#[test]
fn d2_1_the_list_of_checkpoints_is_never_rolled_back() {
    let home = repository();
    let project = home.open();
    five_checkpoints(&home, &project);
    Task::new(&project, 1).unwrap().rollback_to(Stage::Implementation, Rollback::Hard).unwrap();
    assert_eq!((listed(&home), tags(&home).len()), (5, 5));
    assert_eq!(home.run_git(&["ls-files", ".checkpoint-metadata.json"]), "");
    assert_eq!(home.run_git(&["status", "--porcelain"]), "");
}

#[test]
fn d2_1_a_list_that_someone_committed_is_not_rolled_back_either() {
    let home = repository();
    home.write(".checkpoint-metadata.json", "[]")
        .write("agent-progress.txt", "[2024-01-01 00:00:00 UTC] old\n");
    home.run_git(&["add", "-A"]);
    home.run_git(&["commit", "-qm", "as the old program did"]);
    let project = home.open();
    five_checkpoints(&home, &project);
    Task::new(&project, 1).unwrap().rollback_to(Stage::Start, Rollback::Hard).unwrap();
    assert_eq!(listed(&home), 5);
    assert_eq!(home.read("agent-progress.txt").unwrap().lines().count(), 5);
    assert_eq!(home.read("a.txt").unwrap(), "0\n");
}

#[test]
fn d2_2_no_line_of_progress_is_lost_to_a_rollback() {
    let home = repository();
    let project = home.open();
    five_checkpoints(&home, &project);
    let before = home.read("agent-progress.txt").unwrap();
    assert_eq!(before.lines().count(), 4);
    Task::new(&project, 1).unwrap().rollback_to(Stage::Start, Rollback::Hard).unwrap();
    assert_eq!(home.read("agent-progress.txt").unwrap(), before);
}

#[test]
fn d2_3_cleanup_counts_each_checkpoint_once_and_takes_everything_of_it() {
    let home = repository();
    let project = home.open();
    five_checkpoints(&home, &project);
    // Everything is too old, and three of the first task are surplus as well.
    let plan = task::plan_cleanup(&project, &Limits { per_task: 1, max_age: Duration::ZERO }).unwrap();
    assert_eq!(plan.remove.len(), 5);
    let cleaned = task::apply_cleanup(&project, &plan).unwrap();
    assert_eq!(cleaned.removed, 5);
    assert_eq!((listed(&home), tags(&home).len()), (0, 0));
    assert_eq!(project.snapshots().unwrap().held().unwrap().len(), 0);
    assert!(Task::list(&project).unwrap().is_empty());
}

#[test]
fn d2_4_soft_never_detaches_head() {
    let home = repository();
    let project = home.open();
    five_checkpoints(&home, &project);
    Task::new(&project, 1).unwrap().rollback_to(Stage::Implementation, Rollback::Soft).unwrap();
    assert_eq!(home.run_git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(head(&home), home.run_git(&["rev-parse", "checkpoint-t1-implementation^{commit}"]));
    assert_eq!(home.read("a.txt").unwrap(), "3\n");
}

#[test]
fn d2_5_a_commit_that_fails_tags_nothing() {
    let home = repository();
    home.write("a.txt", "two\n");
    forget_identity(&home);
    let project = home.open();
    let task = Task::new(&project, 1).unwrap();
    let refused = task.save(NewCheckpoint::new(Stage::Start, "x"));
    assert!(
        matches!(&refused, Err(Error::Project(project::Error::Branch(BranchError::NoIdentity { .. })))),
        "{refused:?}"
    );
    assert!(tags(&home).is_empty() && task.latest().unwrap().is_none());
    assert_eq!(home.run_git(&["status", "--porcelain"]), " M a.txt");
}

#[test]
fn d2_6_a_repository_without_a_commit_is_no_obstacle() {
    let home = TempProject::git();
    let project = home.open();
    let task = Task::new(&project, 1).unwrap();
    let empty = task.save(NewCheckpoint::new(Stage::Start, "nothing yet")).unwrap();
    assert!(empty.commit().is_some());
    home.write("a.txt", "one\n");
    let first = task.save(NewCheckpoint::new(Stage::Implementation, "first")).unwrap();
    assert_eq!(first.commit().unwrap().as_str(), head(&home));
    task.rollback_to(Stage::Start, Rollback::Hard).unwrap();
    assert_eq!(home.read("a.txt"), None);
    task.rollback_to(Stage::Implementation, Rollback::Hard).unwrap();
    assert_eq!(
        (home.read("a.txt").unwrap().as_str(), head(&home).as_str()),
        ("one\n", first.commit().unwrap().as_str())
    );
}
