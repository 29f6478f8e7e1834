//! Going back and forward, with real files, real git and a real store.

use stagepost::model::{Kind, RepoPath, Topic};
use stagepost::project::{Error, Files, Health, Project, Save, Settings, StoreKind, Verb, Wish};
use stagepost::retention::Policy;
use stagepost::snapshot::diff::DiffOptions;
use stagepost::snapshot::restore::{Left, LeftReason, Mode, Refusal, RestoreError};
use stagepost::store::{Batch, EventQuery, NewEntry, Query};
use stagepost_testutil::{TempProject, save_files};

fn whole() -> Wish {
    Wish::default()
}

#[test]
fn a_restore_brings_files_back_and_undo_and_redo_go_both_ways() {
    let temp = TempProject::git();
    let project = temp.write("a.txt", "one").write("gone.txt", "kept").open();
    let first = save_files(&project, "first");
    temp.write("a.txt", "two").write("new/b.txt", "made since").remove("gone.txt");

    let outcome = project.restore(&first, &whole()).unwrap();
    let done = outcome.done.unwrap();
    assert_eq!((done.written, done.deleted), (2, 1));
    assert_eq!(
        (temp.read("a.txt").as_deref(), temp.read("gone.txt").as_deref()),
        (Some("one"), Some("kept"))
    );
    assert!(!temp.root().join("new").exists());

    for _ in 0..3 {
        project.undo().unwrap();
        assert_eq!(temp.read("a.txt").as_deref(), Some("two"));
        assert_eq!(temp.read("new/b.txt").as_deref(), Some("made since"));
        assert_eq!(temp.read("gone.txt"), None);
        project.redo().unwrap();
        assert_eq!(temp.read("a.txt").as_deref(), Some("one"));
        assert_eq!(temp.read("new/b.txt"), None);
    }
    assert!(matches!(project.redo(), Err(Error::NothingToRedo)));
}

#[test]
fn what_was_changed_after_a_restore_comes_back_with_redo() {
    let temp = TempProject::git();
    let project = temp.write("a.txt", "one").open();
    let first = save_files(&project, "first");
    temp.write("a.txt", "two");
    project.restore(&first, &whole()).unwrap();
    temp.write("a.txt", "edited after the restore");
    project.undo().unwrap();
    assert_eq!(temp.read("a.txt").as_deref(), Some("two"));
    project.redo().unwrap();
    assert_eq!(temp.read("a.txt").as_deref(), Some("edited after the restore"));
}

#[test]
fn a_hard_restore_and_its_undo_move_head_and_index_exactly() {
    let temp = TempProject::git();
    temp.write("a.txt", "one").run_git(&["add", "."]);
    temp.run_git(&["commit", "-qm", "one"]);
    temp.write("a.txt", "staged").run_git(&["add", "."]);
    temp.write("a.txt", "unstaged");
    let project = temp.open();
    let point = save_files(&project, "staged and unstaged");
    let seen = |temp: &TempProject| {
        (temp.run_git(&["rev-parse", "HEAD"]), temp.run_git(&["diff", "--cached"]), temp.run_git(&["diff"]))
    };
    let before = seen(&temp);

    temp.run_git(&["commit", "-qam", "two"]);
    temp.write("b.txt", "later").run_git(&["add", "."]);
    let later = seen(&temp);
    project.restore(&point, &Wish { mode: Mode::Hard, paths: vec![] }).unwrap();
    assert_eq!(seen(&temp), before);
    project.undo().unwrap();
    assert_eq!(seen(&temp), later);
    assert_eq!(temp.run_git(&["branch", "--show-current"]), "main");
}

#[test]
fn single_paths_leave_the_rest_alone_and_are_undone_alone() {
    let temp = TempProject::git();
    let project = temp.write("a.txt", "one").write("b.txt", "one").open();
    let first = save_files(&project, "first");
    temp.write("a.txt", "two").write("b.txt", "two");
    project.restore(&first, &Wish { mode: Mode::Files, paths: vec![RepoPath::from("a.txt")] }).unwrap();
    assert_eq!((temp.read("a.txt").as_deref(), temp.read("b.txt").as_deref()), (Some("one"), Some("two")));
    temp.write("b.txt", "three");
    project.undo().unwrap();
    assert_eq!((temp.read("a.txt").as_deref(), temp.read("b.txt").as_deref()), (Some("two"), Some("three")));
}

#[test]
fn what_the_rules_of_the_target_ignore_is_not_deleted() {
    let temp = TempProject::git();
    let project = temp.write("a.txt", "one").open();
    let first = save_files(&project, "without rules");
    temp.write(".gitignore", "data/\n").write("data/db", "precious");
    let second = save_files(&project, "with rules");
    project.restore(&first, &whole()).unwrap();
    assert_eq!((temp.read(".gitignore"), temp.read("data/db").as_deref()), (None, Some("precious")));
    // Nothing ignores it any more, and the checkpoint that undo goes back to does not hold it.
    let undone = project.undo().unwrap();
    assert_eq!(temp.read(".gitignore").as_deref(), Some("data/\n"));
    assert_eq!(temp.read("data/db").as_deref(), Some("precious"));
    assert_eq!(undone.left.len(), 1, "it is told: {:?}", undone.left);

    temp.write(".gitignore", "").write("made.txt", "since");
    let plan = project.plan_restore(&second, &whole()).unwrap();
    assert_eq!(plan.files.deletes.len(), 1, "{plan:?}");
    project.restore(&second, &whole()).unwrap();
    assert_eq!((temp.read("made.txt"), temp.read("data/db").as_deref()), (None, Some("precious")));
}

#[test]
fn a_second_restore_leaves_what_the_first_one_left() {
    for temp in [TempProject::git(), TempProject::plain()] {
        let project = temp.write("a.txt", "one").open();
        let first = save_files(&project, "without rules");
        temp.write("a.txt", "two");
        let other = save_files(&project, "without rules either");
        temp.write(".gitignore", "data/\n*.log\n").write("data/db", "precious").write("sub/x.log", "log");
        let named =
            |left: &[Left]| left.iter().map(|left| (left.path.to_string(), left.reason)).collect::<Vec<_>>();
        let reasons = |reason| [("data".to_owned(), reason), ("sub".to_owned(), reason)];
        let plan = project.plan_restore(&first, &whole()).unwrap();
        assert_eq!(named(&plan.files.left), reasons(LeftReason::IgnoredNow));
        let restored = project.restore(&first, &whole()).unwrap();
        assert_eq!(named(&restored.left), reasons(LeftReason::IgnoredNow));

        let both = [
            ("data/db".to_owned(), LeftReason::IgnoredBefore),
            ("sub/x.log".to_owned(), LeftReason::IgnoredBefore),
        ];
        let again = project.restore(&first, &whole()).unwrap();
        assert_eq!((again.done, named(&again.left)), (None, both.to_vec()));
        assert_eq!(named(&project.restore(&other, &whole()).unwrap().left), both);
        assert_eq!(named(&project.plan_restore(&first, &whole()).unwrap().files.left), both);
        temp.write("made.txt", "since");
        assert_eq!(project.restore(&first, &whole()).unwrap().done.unwrap().deleted, 1);
        assert_eq!(temp.read("data/db").as_deref(), Some("precious"));

        // What a checkpoint that was asked for holds is as any other file.
        save_files(&project, "with all of it");
        let gone = project.restore(&first, &whole()).unwrap();
        assert_eq!((gone.done.unwrap().deleted, temp.read("data/db")), (2, None));
        project.undo().unwrap();
        assert_eq!(temp.read("data/db").as_deref(), Some("precious"));
    }
}

#[test]
fn undo_goes_on_where_a_single_path_is_gone_already() {
    let temp = TempProject::git();
    let project = temp.write("a.txt", "one").write("p.txt", "kept").open();
    let first = save_files(&project, "first");
    let only = |path: &str| Wish { mode: Mode::Files, paths: vec![RepoPath::from(path)] };
    temp.write("a.txt", "two");
    project.restore(&first, &only("a.txt")).unwrap();
    temp.remove("p.txt");
    project.restore(&first, &only("p.txt")).unwrap();
    temp.remove("p.txt");
    project.undo().unwrap();
    assert_eq!(temp.read("p.txt"), None);
    project.undo().unwrap();
    assert_eq!(temp.read("a.txt").as_deref(), Some("two"));
    assert!(matches!(project.restore(&first, &only("never.txt")), Err(Error::UnknownPath { .. })));
}

#[test]
fn undo_takes_away_ignored_files_that_the_restore_wrote() {
    for paths in [vec![], vec![RepoPath::from("build/y")]] {
        let temp = TempProject::git();
        let project = temp.write(".gitignore", "build/\n").write("build/x", "x").write("build/y", "y").open();
        let files = Files { include_ignored: vec![RepoPath::from("build")], ..Files::default() };
        let first = project.save(Save { files: Some(files), ..Save::default() }).unwrap();
        temp.write("build/x", "changed").remove("build/y");
        project.restore(&first, &Wish { mode: Mode::Files, paths: paths.clone() }).unwrap();
        assert_eq!(temp.read("build/y").as_deref(), Some("y"));
        project.undo().unwrap();
        assert_eq!(
            (temp.read("build/x").as_deref(), temp.read("build/y")),
            (Some("changed"), None),
            "{paths:?}"
        );
        project.redo().unwrap();
        assert_eq!(temp.read("build/y").as_deref(), Some("y"), "{paths:?}");
    }
}

#[test]
fn undo_takes_away_what_the_restore_wrote_also_where_rules_come_back_that_ignore_it() {
    let temp = TempProject::git();
    let project = temp.write("a.log", "kept then").open();
    let first = save_files(&project, "without rules");
    temp.remove("a.log").write(".gitignore", "*.log\n").write("b.log", "was there");
    for _ in 0..2 {
        project.restore(&first, &whole()).unwrap();
        assert_eq!((temp.read(".gitignore"), temp.read("a.log").as_deref()), (None, Some("kept then")));
        project.undo().unwrap();
        assert_eq!((temp.read(".gitignore").as_deref(), temp.read("a.log")), (Some("*.log\n"), None));
        assert_eq!(temp.read("b.log").as_deref(), Some("was there"));
    }
    project.redo().unwrap();
    assert_eq!((temp.read("a.log").as_deref(), temp.read(".gitignore")), (Some("kept then"), None));
}

#[test]
fn ignored_files_that_a_checkpoint_holds_are_not_gone_while_they_stand_there() {
    let temp = TempProject::git();
    let project =
        temp.write(".gitignore", "build/\n").write("build/x", "one\n").write("a.log", "log\n").open();
    let files = Files { include_ignored: vec![RepoPath::from("build")], ..Files::default() };
    let first = project.save(Save { files: Some(files), ..Save::default() }).unwrap();
    let differs = || {
        let diff = project.diff_files(&first, None, &DiffOptions::default()).unwrap();
        diff.files.iter().map(|file| format!("{:?} {}", file.status, file.path)).collect::<Vec<_>>()
    };
    assert_eq!(differs(), Vec::<String>::new());
    temp.write(".gitignore", "build/\n*.log\n");
    assert_eq!(differs(), ["Modified .gitignore"]);
    temp.write("build/x", "two\n").remove("a.log");
    assert_eq!(differs(), ["Modified .gitignore", "Deleted a.log", "Modified build/x"]);
}

#[test]
fn a_plan_tells_what_happens_to_ignored_files_in_the_way() {
    let temp = TempProject::git();
    let project = temp.write(".gitignore", "build\n").write("build", "a file").open();
    let files = Files { include_ignored: vec![RepoPath::from("build")], ..Files::default() };
    let first = project.save(Save { files: Some(files), ..Save::default() }).unwrap();
    let plan = project.plan_restore(&first, &whole()).unwrap();
    assert!(plan.is_empty(), "it is as the checkpoint has it: {plan:?}");
    assert!(project.restore(&first, &whole()).unwrap().done.is_none());

    temp.remove("build").write("build/x", "made since");
    let plan = project.plan_restore(&first, &whole()).unwrap();
    let deletes: Vec<_> = plan.files.deletes.iter().map(|delete| delete.path.to_string()).collect();
    assert_eq!((plan.files.writes.len(), deletes), (1, vec!["build/x".to_owned()]));
    let done = project.restore(&first, &whole()).unwrap().done.unwrap();
    assert_eq!((done.written, done.deleted), (1, 1));
}

#[test]
fn what_a_repository_of_its_own_held_is_left_when_it_is_one_no_more() {
    let temp = TempProject::git();
    let project = temp.write("a.txt", "one").write("lib/f", "inner").open();
    let lib = temp.root().join("lib");
    let git = |args: &[&str]| temp.run_git(&[&["-C", lib.to_str().unwrap()], args].concat());
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "inner"]);
    let first = save_files(&project, "with a repository");
    std::fs::remove_dir_all(lib.join(".git")).unwrap();
    project.restore(&first, &whole()).unwrap();
    assert_eq!(temp.read("lib/f").as_deref(), Some("inner"));
}

#[test]
fn a_hard_restore_is_undone_also_after_it_changed_where_snapshots_are_kept() {
    let temp = TempProject::git();
    temp.write("a.txt", "one").run_git(&["add", "."]);
    temp.run_git(&["commit", "-qm", "one"]);
    let first = save_files(&temp.open(), "in the repository");
    let private = || {
        let mut settings = Settings::default();
        settings.store = StoreKind::Private;
        temp.open_with(temp.root(), settings)
    };
    temp.write("b.txt", "staged").run_git(&["add", "b.txt"]);
    private().restore(&first, &Wish { mode: Mode::Hard, paths: vec![] }).unwrap();
    assert_eq!(temp.run_git(&["status", "--porcelain"]), "");
    temp.open().undo().unwrap();
    assert_eq!(temp.run_git(&["status", "--porcelain"]), "A  b.txt");
}

#[test]
fn a_commit_that_is_gone_is_said_before_anything_moves() {
    let temp = TempProject::git();
    let mut settings = Settings::default();
    settings.store = StoreKind::Private;
    let project = temp.write("a.txt", "one").open_with(temp.root(), settings);
    temp.run_git(&["add", "."]);
    temp.run_git(&["commit", "-qm", "one"]);
    temp.write("a.txt", "two").run_git(&["commit", "-qam", "two"]);
    let second = save_files(&project, "second");
    temp.run_git(&["reset", "-q", "--hard", "HEAD~1"]);
    temp.run_git(&["reflog", "expire", "--expire=now", "--all"]);
    temp.run_git(&["gc", "-q", "--prune=now"]);
    let plan = project.plan_restore(&second, &Wish { mode: Mode::Hard, paths: vec![] }).unwrap();
    assert!(matches!(plan.refusals(), [Refusal::HeadGone { .. }]), "{:?}", plan.refusals());
    project.restore(&second, &whole()).unwrap();
    assert_eq!(temp.read("a.txt").as_deref(), Some("two"));
}

#[test]
fn what_was_in_the_way_of_a_single_path_comes_back_with_undo() {
    let temp = TempProject::git();
    let project = temp.write("d/f", "one").open();
    let first = save_files(&project, "first");
    temp.remove("d/f");
    std::fs::remove_dir(temp.root().join("d")).unwrap();
    temp.write("d", "precious");
    for _ in 0..2 {
        project.restore(&first, &Wish { mode: Mode::Files, paths: vec![RepoPath::from("d/f")] }).unwrap();
        assert_eq!(temp.read("d/f").as_deref(), Some("one"));
        project.undo().unwrap();
        assert_eq!(temp.read("d").as_deref(), Some("precious"));
        project.redo().unwrap();
        assert_eq!(temp.read("d/f").as_deref(), Some("one"));
        project.undo().unwrap();
    }
}

#[test]
fn an_ignored_file_in_the_way_is_saved_before_it_is_overwritten() {
    let temp = TempProject::git();
    let project = temp.write("secret.txt", "tracked once").open();
    let first = save_files(&project, "first");
    temp.write(".gitignore", "secret.txt\n").write("secret.txt", "only here");
    project.restore(&first, &whole()).unwrap();
    assert_eq!(temp.read("secret.txt").as_deref(), Some("tracked once"));
    project.undo().unwrap();
    assert_eq!(temp.read("secret.txt").as_deref(), Some("only here"));
}

/// Leaves the store as a kill between the intent and the end of a restore does.
fn cut_off(temp: &TempProject, project: &Project) {
    let events = project.store().events(&EventQuery::all(Topic::Restore)).expect("events can be read");
    let (_, began) = &events[events.len() - 2];
    assert_eq!(began.body["state"], "began");
    project
        .store()
        .write(Batch { entries: vec![NewEntry::Event(began.clone())], ..Batch::default() })
        .expect("the event can be written");
    temp.write("a.txt", "two");
}

#[test]
fn a_restore_that_was_cut_off_is_finished_by_the_next_command() {
    let temp = TempProject::git();
    let project = temp.write("a.txt", "one").write("b.txt", "one").open();
    let first = save_files(&project, "first");
    temp.write("a.txt", "two").write("b.txt", "two");
    project.restore(&first, &whole()).unwrap();
    cut_off(&temp, &project);

    let next = temp.open();
    let recovery = next.recover().unwrap().unwrap();
    assert!(recovery.finished);
    assert_eq!((temp.read("a.txt").as_deref(), temp.read("b.txt").as_deref()), (Some("one"), Some("one")));
    assert_eq!(next.recover().unwrap(), None, "it is over");
    next.undo().unwrap();
    assert_eq!(temp.read("a.txt").as_deref(), Some("two"));
}

#[test]
fn a_restore_that_cannot_be_finished_is_taken_back_and_spares_what_was_changed_meanwhile() {
    let temp = TempProject::git();
    let project = temp.write("a.txt", "one").write("b.txt", "one").open();
    let first = save_files(&project, "first");
    temp.write("a.txt", "two").write("b.txt", "two");
    project.restore(&first, &whole()).unwrap();
    cut_off(&temp, &project);
    temp.write("b.txt", "someone was here");

    let recovery = temp.open().recover().unwrap().unwrap();
    assert!(!recovery.finished);
    assert_eq!(recovery.left, [RepoPath::from("b.txt")]);
    assert_eq!(temp.read("a.txt").as_deref(), Some("two"));
    assert_eq!(temp.read("b.txt").as_deref(), Some("someone was here"));
}

#[test]
fn nothing_of_the_users_moves_when_files_are_saved() {
    let temp = TempProject::git();
    temp.write("a.txt", "one").run_git(&["add", "."]);
    temp.run_git(&["commit", "-qm", "one"]);
    temp.write("a.txt", "two").write("b.txt", "new");
    let seen = |temp: &TempProject| {
        let file = |name: &str| std::fs::read(temp.root().join(".git").join(name)).ok();
        (
            file("HEAD"),
            file("index"),
            file("config"),
            temp.run_git(&["status", "--porcelain"]),
            temp.run_git(&["branch", "-a"]),
            temp.run_git(&["tag"]),
            temp.run_git(&["stash", "list"]),
        )
    };
    temp.run_git(&["status"]);
    let before = seen(&temp);
    save_files(&temp.open(), "first");
    assert_eq!(seen(&temp), before);
}

#[test]
fn gc_lets_snapshots_go_with_their_checkpoints_and_keeps_what_undo_needs() {
    let temp = TempProject::git();
    let project = temp.write("a.txt", "one").open();
    let first = save_files(&project, "first");
    temp.write("a.txt", "two");
    save_files(&project, "second");
    temp.write("a.txt", "three");
    let outcome = project.restore(&first, &whole()).unwrap();

    let plan = project.plan_gc(&Policy { keep_last: Some(1), ..Policy::default() }).unwrap();
    assert_eq!(plan.plan.prune.iter().map(|one| one.id).collect::<Vec<_>>(), [first.id]);
    project.apply_gc(&plan).unwrap();
    let refs = temp.run_git(&["for-each-ref", "--format=%(refname)", "refs/stagepost"]);
    assert!(!refs.contains(&first.id.to_string()), "{refs}");
    assert!(refs.contains(&outcome.safety.to_string()), "{refs}");
    temp.run_git(&["gc", "-q", "--prune=now"]);
    assert!(project.verify().unwrap().is_sound());
    project.undo().unwrap();
    assert_eq!(temp.read("a.txt").as_deref(), Some("three"));
    assert!(matches!(project.resolve(&first.id.to_string()), Err(Error::Pruned { .. })));
}

#[test]
fn a_snapshot_whose_record_was_never_written_is_let_go() {
    let temp = TempProject::git();
    let project = temp.write("a.txt", "one").open();
    save_files(&project, "first");
    let orphan = "0190163d-8694-739b-aea5-966c26f8ad91".parse().unwrap();
    project.snapshots().unwrap().capture(&orphan, &Default::default()).unwrap();
    assert!(project.verify().unwrap().is_sound());
    project.apply_gc(&project.plan_gc(&Policy::default()).unwrap()).unwrap();
    let refs = temp.run_git(&["for-each-ref", "refs/stagepost"]);
    assert!(!refs.contains("0190163d"), "{refs}");
}

#[test]
fn verify_names_a_checkpoint_whose_files_are_damaged() {
    let temp = TempProject::git();
    let project = temp.write("a.txt", "one").open();
    let first = save_files(&project, "first");
    let packs = temp.root().join(".git/objects/pack");
    for pack in std::fs::read_dir(packs).unwrap().map(|entry| entry.unwrap().path()) {
        if pack.extension().is_some_and(|extension| extension == "pack" || extension == "idx") {
            std::fs::remove_file(pack).unwrap();
        }
    }
    let verified = temp.open().verify().unwrap();
    assert_eq!(verified.damage.len(), 1, "{:?}", verified.damage);
    assert_eq!(verified.damage[0].checkpoint, Some(first.id));
}

#[test]
fn verify_names_a_snapshot_that_no_ref_keeps_and_doctor_keeps_it_again() {
    let temp = TempProject::git();
    let project = temp.write("a", "one").open();
    let first = save_files(&project, "first");
    save_files(&project, "second");
    assert!(project.verify().unwrap().is_sound());
    temp.run_git(&["update-ref", "-d", &format!("refs/stagepost/main/{}", first.id)]);
    let damage = project.verify().unwrap().damage;
    assert_eq!(damage.iter().map(|damage| damage.checkpoint).collect::<Vec<_>>(), [Some(first.id)]);
    let health = |fix| {
        let checks = project.doctor(fix).unwrap();
        checks.iter().find(|check| check.name == "refs").unwrap().health
    };
    assert_eq!((health(false), health(true), health(false)), (Health::Fixable, Health::Fixed, Health::Good));
    assert!(project.verify().unwrap().is_sound());
}

#[test]
fn what_another_store_keeps_is_left_by_gc() {
    let temp = TempProject::git();
    let project = temp.write("a", "one").open();
    let old = save_files(&project, "of the store that was here first");
    let store = project.place().store.clone();
    drop(project);
    std::fs::rename(&store, temp.beside("moved")).unwrap();
    let project = temp.write("a", "two").open();
    save_files(&project, "of the new one");
    project.apply_gc(&project.plan_gc(&Policy::default()).unwrap()).unwrap();
    assert!(temp.run_git(&["for-each-ref"]).contains(&old.id.to_string()));
}

#[test]
fn snapshots_are_found_where_they_were_kept_before() {
    let temp = TempProject::git();
    let private = || {
        let mut settings = Settings::default();
        settings.store = StoreKind::Private;
        settings
    };
    let project = temp.write("a", "one").open_with(temp.root(), private());
    let first = save_files(&project, "kept apart");
    let project = temp.write("a", "two").open();
    let second = save_files(&project, "kept in the repository");
    for settings in [Settings::default(), private()] {
        let project = temp.open_with(temp.root(), settings);
        assert!(project.verify().unwrap().is_sound());
        project.restore(&first, &whole()).unwrap();
        assert_eq!(temp.read("a").as_deref(), Some("one"));
        project.restore(&second, &whole()).unwrap();
        assert_eq!(temp.read("a").as_deref(), Some("two"));
    }
}

#[test]
fn a_folder_that_becomes_a_repository_keeps_its_snapshots() {
    let temp = TempProject::plain();
    let project = temp.write("a", "one").open();
    let first = save_files(&project, "before");
    temp.run_git(&["init", "-q"]);
    assert_eq!(temp.run_git(&["status", "--porcelain"]), "?? a");
    let project = temp.write("a", "two").open();
    assert!(project.verify().unwrap().is_sound());
    save_files(&project, "after");
    project.restore(&first, &whole()).unwrap();
    assert_eq!(temp.read("a").as_deref(), Some("one"));
    assert!(project.verify().unwrap().is_sound());
}

#[test]
fn the_size_of_a_store_counts_the_snapshots_that_are_in_it() {
    let temp = TempProject::plain();
    // Each round of a linear generator: nothing that could be packed.
    let mut last = 1_u64;
    let mut next = || {
        last = last.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b' ' + (last >> 57) as u8 % 95)
    };
    let noise: String = (0..300_000).map(|_| next()).collect();
    let project = temp.write("a", &noise).open();
    save_files(&project, "large");
    let before = project.status().unwrap().bytes;
    assert!(before > 100_000, "{before}");
    temp.write("a", "small");
    save_files(&project, "small");
    let policy = Policy { keep_last: Some(1), ..Policy::default() };
    let swept = project.apply_gc(&project.plan_gc(&policy).unwrap()).unwrap();
    assert!(swept.collected.bytes > 100_000, "{swept:?}");
    assert!(project.status().unwrap().bytes + 100_000 < before);
}

#[test]
fn linked_work_trees_share_a_store_and_have_their_own_histories() {
    let temp = TempProject::git();
    temp.write("a.txt", "one").run_git(&["add", "."]);
    temp.run_git(&["commit", "-qm", "one"]);
    let other = temp.beside("other");
    temp.run_git(&["worktree", "add", "-q", "-b", "side", other.to_str().unwrap()]);
    let (main, side) = (temp.open(), temp.open_with(&other, Settings::default()));
    let in_main = save_files(&main, "in main");
    std::fs::write(other.join("a.txt"), "two").unwrap();
    let in_side = save_files(&side, "in side");

    assert_eq!(main.resolve("@").unwrap().id, in_main.id);
    assert_eq!(side.resolve("@").unwrap().id, in_side.id);
    assert_eq!(main.log(&Query::default()).unwrap().len(), 2, "one store");
    let good = |project: &Project, text: &str| {
        let labels = vec!["good".parse().unwrap()];
        let save =
            Save { description: text.into(), labels, files: Some(Files::default()), ..Save::default() };
        project.save(save).unwrap().id
    };
    let good_in_main = good(&main, "good in main");
    assert!(matches!(side.resolve("last-good"), Err(Error::NotFound { .. })), "it is the other's");
    assert_eq!(side.resolve("good").unwrap().id, good_in_main, "a name that only the other has");
    let good_in_side = good(&side, "good in side");
    for (project, id) in [(&main, good_in_main), (&side, good_in_side)] {
        assert_eq!(project.resolve("last-good").unwrap().id, id);
        assert_eq!(project.resolve("good").unwrap().id, id);
    }
    side.restore(&in_main, &whole()).unwrap();
    assert_eq!(std::fs::read_to_string(other.join("a.txt")).unwrap(), "one");
    assert!(matches!(main.undo(), Err(Error::NothingToUndo)));
    side.undo().unwrap();
    assert_eq!(std::fs::read_to_string(other.join("a.txt")).unwrap(), "two");
}

#[test]
fn what_was_done_in_a_removed_work_tree_is_not_undone_in_the_next_of_its_name() {
    let temp = TempProject::git();
    temp.write("a.txt", "one").run_git(&["add", "."]);
    temp.run_git(&["commit", "-qm", "one"]);
    let other = temp.beside("other");
    let path = other.to_str().unwrap();
    temp.run_git(&["worktree", "add", "-q", "--detach", path]);
    let side = temp.open_with(&other, Settings::default());
    let first = save_files(&side, "first");
    std::fs::write(other.join("a.txt"), "two").unwrap();
    side.restore(&first, &whole()).unwrap();
    temp.run_git(&["worktree", "remove", "--force", path]);
    temp.run_git(&["worktree", "add", "-q", "--detach", path]);
    let side = temp.open_with(&other, Settings::default());
    assert!(matches!(side.undo(), Err(Error::NothingToUndo)));
    std::fs::write(other.join("a.txt"), "three").unwrap();
    side.restore(&first, &whole()).unwrap();
    side.undo().unwrap();
    assert_eq!(std::fs::read_to_string(other.join("a.txt")).unwrap(), "three");
}

#[test]
fn a_folder_without_git_works_the_same_and_gets_no_git_folder() {
    let temp = TempProject::plain();
    let project = temp.write("a.txt", "one").open();
    let first = save_files(&project, "first");
    temp.write("a.txt", "two").write("b.txt", "new");
    project.restore(&first, &whole()).unwrap();
    assert_eq!((temp.read("a.txt").as_deref(), temp.read("b.txt")), (Some("one"), None));
    project.undo().unwrap();
    assert_eq!(temp.read("b.txt").as_deref(), Some("new"));
    let hard = project.restore(&first, &Wish { mode: Mode::Hard, paths: vec![] });
    assert!(matches!(hard, Err(Error::Restore(_))), "{hard:?}");
    assert!(!temp.root().join(".git").exists());
    assert!(project.verify().unwrap().is_sound());
}

#[test]
fn every_restore_is_in_the_history_and_safety_is_not_in_the_way() {
    let temp = TempProject::git();
    let project = temp.write("a.txt", "one").open();
    let first = save_files(&project, "first");
    temp.write("a.txt", "two");
    project.restore(&first, &whole()).unwrap();
    project.undo().unwrap();
    let verbs: Vec<Verb> = project.restores().unwrap().into_iter().map(|(_, record)| record.verb).collect();
    assert_eq!(verbs, [Verb::Restore, Verb::Undo]);
    assert_eq!(project.resolve("@").unwrap().id, first.id);
    let kinds = project.log(&Query::default()).unwrap();
    assert_eq!(kinds.iter().filter(|one| matches!(one.content.kind, Kind::Safety { .. })).count(), 2);
}

#[test]
fn a_checkpoint_without_files_cannot_be_restored() {
    let temp = TempProject::git();
    let project = temp.open();
    let saved = project.save(Save::default()).unwrap();
    assert!(matches!(project.restore(&saved, &whole()), Err(Error::NoFiles { .. })));
    assert_eq!(project.log(&Query::default()).unwrap().len(), 1, "there is nothing to be safe from");
}

#[test]
fn what_cannot_be_restored_leaves_no_safety_checkpoint() {
    let temp = TempProject::plain();
    let project = temp.write("a.txt", "one").open();
    let saved = save_files(&project, "first");
    let unknown = Wish { mode: Mode::Files, paths: vec![RepoPath::from("never.txt")] };
    assert!(matches!(project.restore(&saved, &unknown), Err(Error::UnknownPath { .. })));
    let hard = Wish { mode: Mode::Hard, paths: vec![] };
    assert!(matches!(project.restore(&saved, &hard), Err(Error::Restore(_))));
    assert_eq!(project.log(&Query::default()).unwrap().len(), 1);
}

#[test]
fn what_is_in_the_way_of_a_restore_is_told_and_leaves_no_safety_checkpoint() {
    let temp = TempProject::git();
    let project = temp.write("a.txt", "one").write("b.txt", "one").open();
    let first = save_files(&project, "first");
    temp.write("b.txt", "two");
    std::fs::remove_file(temp.root().join("a.txt")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(temp.root().join("a.txt")).status().unwrap();
    assert!(made.success());
    let refs = || temp.run_git(&["for-each-ref", "--format=%(refname)", "refs/stagepost"]);
    let before = refs();
    let refused = project.restore(&first, &whole());
    assert!(matches!(refused, Err(Error::Restore(RestoreError::Refused { .. }))), "{refused:?}");
    assert_eq!(project.log(&Query::default()).unwrap().len(), 1);
    let names = |refs: String| {
        refs.lines().filter(|name| !name.ends_with("/latest")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(refs()), names(before), "a snapshot was left");
    assert_eq!(temp.read("b.txt").as_deref(), Some("two"));

    std::fs::remove_file(temp.root().join("a.txt")).unwrap();
    project.restore(&first, &whole()).unwrap();
    assert_eq!(temp.read("a.txt").as_deref(), Some("one"));
    project.undo().unwrap();
    assert_eq!((temp.read("a.txt"), temp.read("b.txt").as_deref()), (None, Some("two")));
    assert!(project.verify().unwrap().is_sound());
}

#[test]
fn one_process_saves_many_times_while_packs_are_merged() {
    let temp = TempProject::git();
    temp.write("a.txt", "0").write("d/b.txt", "0").run_git(&["add", "."]);
    temp.run_git(&["commit", "-qm", "one"]);
    let project = temp.open();
    let mut saved = Vec::new();
    for number in 1..150 {
        temp.write("a.txt", &number.to_string()).write(&format!("d/{}.txt", number % 7), &number.to_string());
        saved.push(save_files(&project, "one more"));
    }
    project.restore(&saved[3], &whole()).unwrap();
    assert_eq!(temp.read("a.txt").as_deref(), Some("4"));
    assert!(project.verify().unwrap().is_sound());
}

#[test]
fn of_two_restores_at_once_one_waits_and_both_can_be_undone() {
    let temp = TempProject::git();
    for name in 0..40 {
        temp.write(&format!("{name}.txt"), "first");
    }
    let project = temp.open();
    let first = save_files(&project, "first");
    for name in 0..40 {
        temp.write(&format!("{name}.txt"), "second");
    }
    let second = save_files(&project, "second");
    for name in 0..40 {
        temp.write(&format!("{name}.txt"), "third");
    }
    let others = [temp.open(), temp.open()];
    std::thread::scope(|scope| {
        for (project, target) in others.iter().zip([&first, &second]) {
            scope.spawn(move || project.restore(target, &whole()).unwrap());
        }
    });
    let read = || (0..40).map(|name| temp.read(&format!("{name}.txt")).unwrap()).collect::<Vec<_>>();
    let restores = project.restores().unwrap();
    assert_eq!(restores.len(), 2);
    let last = if restores[1].1.target == first.id { "first" } else { "second" };
    assert_eq!(read(), vec![last; 40], "files of both");

    project.undo().unwrap();
    assert_eq!(read(), vec![if last == "first" { "second" } else { "first" }; 40]);
    project.undo().unwrap();
    assert_eq!(read(), vec!["third"; 40]);
}
