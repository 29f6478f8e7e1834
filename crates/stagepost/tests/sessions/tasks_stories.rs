use std::time::Duration;

use stagepost::model::Stage;
use stagepost::project::{self, BranchError};
use stagepost::task::{self, Error, ErrorKind, Flags, Limits, NewCheckpoint, Rollback, Task, Why};

use crate::support::*;

fn save(task: &Task<'_>, stage: Stage, text: &str) -> task::Checkpoint {
    task.save(NewCheckpoint::new(stage, text)).unwrap()
}

#[test]
fn saving_a_stage_again_moves_the_tag_and_keeps_the_older_checkpoint() {
    let home = repository();
    let project = home.open();
    let task = Task::new(&project, 1).unwrap();
    home.write("a.txt", "try one\n");
    let first = save(&task, Stage::Implementation, "try one");
    home.write("a.txt", "try two\n");
    let second = save(&task, Stage::Implementation, "try two");
    assert_eq!(tags(&home), ["checkpoint-t1-implementation"]);
    let tagged = home.run_git(&["rev-parse", "checkpoint-t1-implementation^{commit}"]);
    assert_eq!(tagged, second.commit().unwrap().as_str());
    assert_eq!(task.recovery_options().unwrap().len(), 1);
    assert_eq!(task.history().unwrap().len(), 2);
    let older = project.resolve(&first.record().id.to_string()).unwrap();
    project.restore(&older, &project::Wish::default()).unwrap();
    assert_eq!(home.read("a.txt").unwrap(), "try one\n");
}

#[test]
fn the_list_is_in_order_of_saving_and_the_latest_is_last() {
    let home = repository();
    let project = home.open();
    let (one, two) = (Task::new(&project, 1).unwrap(), Task::new(&project, 2).unwrap());
    save(&one, Stage::Start, "one");
    save(&two, Stage::Start, "two");
    save(&one, Stage::Implementation, "one done");
    save(&one, Stage::Start, "one again");
    let listed: Vec<_> = Task::list(&project).unwrap().iter().map(|one| (one.task(), one.stage())).collect();
    assert_eq!(listed, [(2, Stage::Start), (1, Stage::Implementation), (1, Stage::Start)]);
    assert_eq!(one.latest().unwrap().unwrap().record().content.description, "one again");
    assert_eq!(Task::new(&project, 9).unwrap().latest().unwrap(), None);
    assert_eq!(Task::all(&project).unwrap().len(), 2);
}

#[test]
fn soft_keeps_the_files_and_hard_does_not() {
    let home = repository();
    let project = home.open();
    let task = Task::new(&project, 3).unwrap();
    let start = save(&task, Stage::Start, "start");
    home.write("a.txt", "done\n");
    save(&task, Stage::Implementation, "done");
    task.rollback_to(Stage::Start, Rollback::Soft).unwrap();
    assert_eq!(
        (head(&home).as_str(), home.read("a.txt").unwrap().as_str()),
        (start.commit().unwrap().as_str(), "done\n")
    );
    task.rollback_to(Stage::Start, Rollback::Hard).unwrap();
    assert_eq!(home.read("a.txt").unwrap(), "one\n");
    let missing = task.rollback_to(Stage::Validated, Rollback::Hard);
    assert!(matches!(missing, Err(Error::NotFound { task: 3, stage: Stage::Validated })));
}

#[test]
fn errors_lead_back_to_the_stage_they_call_for() {
    let home = repository();
    let project = home.open();
    let task = Task::new(&project, 1).unwrap();
    assert!(task.recover(ErrorKind::Other, None).unwrap().is_none());
    for (stage, text) in [(Stage::Start, "s"), (Stage::Implementation, "i"), (Stage::PreValidation, "p")] {
        home.write("a.txt", text);
        save(&task, stage, text);
    }
    assert_eq!(task.flags().unwrap(), Flags { is_started: true, is_complete: true, is_validated: false });
    for (error, content) in
        [(ErrorKind::Other, "p"), (ErrorKind::Validation, "i"), (ErrorKind::Implementation, "s")]
    {
        home.write("a.txt", "broken");
        let recovered = task.recover(error, Some("it broke")).unwrap().unwrap();
        assert_eq!(home.read("a.txt").unwrap(), content, "{error}");
        assert_eq!(recovered.flags, Flags::default());
    }
    let progress = task.progress().unwrap();
    assert_eq!(progress.len(), 3);
    assert!(
        progress[1].ends_with("[Task 1] recovered from a failure (validation: it broke) to `implementation`"),
        "{}",
        progress[1]
    );
    save(&task, Stage::Start, "again");
    assert_eq!(task.flags().unwrap(), Flags { is_started: true, ..Flags::default() });
}

#[test]
fn without_the_stage_it_calls_for_an_error_leads_back_to_the_newest() {
    let home = repository();
    let project = home.open();
    let task = Task::new(&project, 1).unwrap();
    save(&task, Stage::Validated, "v");
    let recovered = task.recover(ErrorKind::Implementation, None).unwrap().unwrap();
    assert_eq!(recovered.target.stage(), Stage::Validated);
}

#[test]
fn notes_are_listed_by_task_and_by_age() {
    let home = repository();
    let project = home.open();
    let (one, ten) = (Task::new(&project, 1).unwrap(), Task::new(&project, 10).unwrap());
    one.log_progress("first\nwith a second line").unwrap();
    ten.log_progress("other").unwrap();
    task::log_progress(&project, "about nothing").unwrap();
    assert_eq!(one.progress().unwrap().len(), 2);
    assert_eq!(ten.progress().unwrap(), [task::recent_progress(&project, 2).unwrap()[0].clone()]);
    assert!(task::recent_progress(&project, 1).unwrap()[0].ends_with("UTC] about nothing"));
    assert_eq!(task::recent_progress(&project, 99).unwrap().len(), 4);
}

#[test]
fn lines_that_someone_else_wrote_are_kept_in_their_place() {
    let home = repository();
    let project = home.open();
    home.write("agent-progress.txt", "written by hand\n");
    let task = Task::new(&project, 4).unwrap();
    task.log_progress("ours").unwrap();
    let text = home.read("agent-progress.txt").unwrap();
    home.write(
        "agent-progress.txt",
        &format!("{text}[2024-01-01 00:00:00 UTC] [Task 4] by another program\n"),
    );
    task.log_progress("ours again").unwrap();
    let text = home.read("agent-progress.txt").unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert_eq!(lines[0], "written by hand");
    assert!(lines[1].ends_with("[Task 4] ours") && lines[2].ends_with("by another program"), "{text}");
    assert_eq!(task.progress().unwrap().len(), 3);
}

#[test]
fn cleanup_gives_up_what_is_old_or_surplus_and_keeps_what_is_pinned() {
    let home = repository();
    let project = home.open();
    let (one, two) = (Task::new(&project, 1).unwrap(), Task::new(&project, 2).unwrap());
    for number in 0..4 {
        home.write("a.txt", &format!("{number}\n"));
        save(&one, Stage::ALL[number], "x");
    }
    save(&two, Stage::Start, "y");
    project.pin(one.recovery_options().unwrap()[0].record()).unwrap();
    let limits = Limits { per_task: 2, max_age: Duration::from_secs(86_400) };
    let plan = task::plan_cleanup(&project, &limits).unwrap();
    assert_eq!(plan.remove.len(), 1);
    assert_eq!(
        (plan.remove[0].stage, plan.remove[0].why, plan.keep),
        (Stage::Implementation, Why::Surplus, 4)
    );
    assert_eq!(Task::list(&project).unwrap().len(), 5);
    assert_eq!(task::apply_cleanup(&project, &plan).unwrap().removed, 1);
    assert_eq!(Task::list(&project).unwrap().len(), 4);
    assert_eq!(tags(&home).len(), 4);
    assert!(project.verify().unwrap().damage.is_empty());
}

#[test]
fn cleanup_keeps_the_tag_that_moved_on() {
    let home = repository();
    let project = home.open();
    let task = Task::new(&project, 1).unwrap();
    for number in 0..3 {
        home.write("a.txt", &format!("{number}\n"));
        save(&task, Stage::Start, "again");
    }
    let plan = task::plan_cleanup(&project, &Limits { per_task: 1, ..Limits::default() }).unwrap();
    assert_eq!(plan.remove.iter().map(|one| one.tag.clone()).collect::<Vec<_>>(), [None, None]);
    task::apply_cleanup(&project, &plan).unwrap();
    assert_eq!(tags(&home), ["checkpoint-t1-start"]);
    task.rollback_to(Stage::Start, Rollback::Hard).unwrap();
}

#[test]
fn a_save_that_fails_leaves_the_older_tag_where_it_was() {
    let home = repository();
    let project = home.open();
    let task = Task::new(&project, 1).unwrap();
    let first = save(&task, Stage::Start, "first");
    home.write("a.txt", "two\n");
    hook(&home, "pre-commit", "exit 1");
    let refused = task.save(NewCheckpoint::new(Stage::Start, "second"));
    assert!(matches!(refused, Err(Error::Project(project::Error::Branch(BranchError::Hook { .. })))));
    assert_eq!(
        home.run_git(&["rev-parse", "checkpoint-t1-start^{commit}"]),
        first.commit().unwrap().as_str()
    );
    assert_eq!(task.history().unwrap().len(), 1);
}

#[test]
fn cleanup_leaves_a_tag_that_a_checkpoint_got_after_it_was_planned() {
    let home = repository();
    let project = home.open();
    let task = Task::new(&project, 1).unwrap();
    for (number, stage) in [Stage::Start, Stage::Implementation].into_iter().enumerate() {
        home.write("a.txt", &format!("{number}\n"));
        save(&task, stage, "planned");
    }
    let plan = task::plan_cleanup(&project, &Limits { per_task: 1, ..Limits::default() }).unwrap();
    assert_eq!(plan.remove[0].tag.as_deref(), Some("checkpoint-t1-start"));
    home.write("a.txt", "later\n");
    let later = save(&task, Stage::Start, "later");
    task::apply_cleanup(&project, &plan).unwrap();
    assert_eq!(tags(&home), ["checkpoint-t1-implementation", "checkpoint-t1-start"]);
    assert_eq!(
        home.run_git(&["rev-parse", "checkpoint-t1-start^{commit}"]),
        later.commit().unwrap().as_str()
    );
}

#[test]
fn who_is_refused_while_tags_are_deleted_does_not_bring_them_back() {
    let home = repository();
    let project = impatient(&home);
    let task = Task::new(&project, 1).unwrap();
    save(&task, Stage::Start, "one");
    // In the middle of a cleanup: it holds the lock, the tag is gone, the record is not.
    let cleaning = home.open();
    let lock = cleaning.lock_work_tree(Duration::ZERO).unwrap();
    home.run_git(&["tag", "-d", "checkpoint-t1-start"]);
    assert!(task.save(NewCheckpoint::new(Stage::Validated, "two")).is_err());
    assert!(tags(&home).is_empty(), "{:?}", tags(&home));
    drop(lock);
}

#[test]
fn lines_that_look_like_comments_stay_in_messages() {
    let home = repository();
    let project = home.open();
    home.write("a.txt", "two\n");
    let words = "# Fix issue\n\n# and another";
    Task::new(&project, 1).unwrap().save(NewCheckpoint::new(Stage::Start, words)).unwrap();
    assert_eq!(home.run_git(&["tag", "-l", "--format=%(contents)"]).trim_end(), words);
    assert_eq!(home.run_git(&["log", "-1", "--format=%B"]).trim_end(), format!("Checkpoint: {words}"));
    home.write("a.txt", "three\n");
    create(&start(&project), "first\n# second");
    assert_eq!(home.run_git(&["log", "-1", "--format=%B"]).trim_end(), "checkpoint: first\n# second");
}
