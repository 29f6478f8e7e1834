//! The files of a store: who may read them, and what is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use stagepost::store::{Error, NewEntry, Query, SqliteStore, Store};
use stagepost_testutil::Story;

use crate::processes::{again, child_store};
use crate::{Place, some_of_everything, try_open};

/// What a folder holds, to compare before and after.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    let (folders, files): (Vec<_>, Vec<_>) =
        files.map(|file| file.unwrap().path()).partition(|path| path.is_dir());
    let mut files: Vec<_> = files
        .iter()
        .map(|file| (file.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(file).unwrap()))
        .collect();
    files.extend(folders.iter().flat_map(|folder| contents(folder)));
    files.sort();
    files
}

#[test]
fn nobody_else_may_read_the_files_whatever_the_umask() {
    if let Some(store) = child_store() {
        die_with_an_open_store(&store);
    }
    for umask in ["000", "022", "077", "777"] {
        let place = Place::new();
        let done = again("files::nobody_else_may_read_the_files_whatever_the_umask", &place, Some(umask))
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&place.folder()), 0o700, "umask {umask}");
        let files = fs::read_dir(place.folder()).unwrap().map(|file| file.unwrap().path());
        let modes: Vec<_> = files.map(|file| (mode(&file), file)).collect();
        assert!(modes.len() >= 5, "{modes:?}");
        assert!(modes.iter().all(|(mode, _)| *mode == 0o600), "umask {umask}: {modes:?}");
    }
}

/// Leaves the files that a running program has.
fn die_with_an_open_store(store: &SqliteStore) -> ! {
    Story::new(store).run("a");
    let _hold = store.hold().unwrap();
    std::process::exit(0);
}

#[test]
fn nothing_is_saved_to_a_store_that_was_taken_away() {
    let place = Place::new();
    let store = place.open();
    let story = Story::new(&store);
    let run = story.run("a");
    story.save(&run, "one");
    let aside = place.folder().with_extension("aside");
    fs::rename(place.folder(), &aside).unwrap();
    let lost = story.write(vec![NewEntry::Checkpoint(story.draft(&run, "two"))]);
    assert!(matches!(lost, Err(Error::Gone { .. })), "{lost:?}");
    fs::rename(&aside, place.folder()).unwrap();
    story.save(&run, "three");
    assert_eq!(store.list(&Query::default()).unwrap().len(), 2);
}

#[test]
fn a_store_that_was_being_made_is_not_there_yet_and_is_made_anew() {
    let place = Place::new();
    fs::create_dir(place.folder()).unwrap();
    for name in ["store.db.new", "store.db.new-journal", "store.db.new-wal", "store.db.new-shm"] {
        fs::write(place.folder().join(name), "half of a database, cut off").unwrap();
    }
    let error = try_open(&place.folder(), false).unwrap_err();
    assert!(matches!(&error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound));
    let story = &place.open();
    Story::new(story).run("a");
    let left = contents(&place.folder()).into_iter().filter(|(name, _)| name.contains("new")).count();
    assert_eq!((story.runs().unwrap().len(), left), (1, 0));
}

#[test]
fn a_store_from_the_future_is_refused() {
    let place = Place::new();
    some_of_everything(&place);
    place.raw().pragma_update(None, "user_version", 7).unwrap();
    let before = contents(&place.folder());
    let error = try_open(&place.folder(), true).unwrap_err();
    assert!(matches!(error, Error::TooNew { found: 7, known: 1, .. }), "{error}");
    assert_eq!(contents(&place.folder()), before);
}

#[test]
fn what_is_not_a_store_is_refused_and_left_alone() {
    let other = |sql: &str| {
        let place = Place::new();
        fs::create_dir(place.folder()).unwrap();
        place.raw().execute_batch(sql).unwrap();
        place
    };
    let text = Place::new();
    fs::create_dir(text.folder()).unwrap();
    fs::write(text.database(), "dear diary\n".repeat(900)).unwrap();
    for place in [
        text,
        other("CREATE TABLE notes (text)"),
        other("CREATE TABLE notes (text); PRAGMA user_version = 1"),
        other("CREATE TABLE notes (text); PRAGMA user_version = 1; PRAGMA application_id = 77"),
    ] {
        let before = contents(&place.folder());
        for create in [true, false] {
            let error = try_open(&place.folder(), create).unwrap_err();
            assert!(matches!(error, Error::NotAStore { .. }), "{error}");
        }
        assert_eq!(contents(&place.folder()), before);
    }
}

#[test]
fn what_is_missing_is_named() {
    let place = Place::new();
    let message =
        |error: Error| format!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string));
    let error = message(try_open(&place.folder(), false).unwrap_err());
    assert!(error.contains("store") && error.contains("No such file"), "{error}");
    fs::create_dir(place.folder()).unwrap();
    let error = message(try_open(&place.folder(), false).unwrap_err());
    assert!(error.contains("store.db") && error.contains("No such file"), "{error}");
    let error = message(try_open(&place.folder().join("a/b"), true).unwrap_err());
    assert!(error.contains("a/b") && error.contains("No such file"), "{error}");
    assert_eq!(contents(&place.folder()), []);
    fs::write(place.folder().join("file"), "").unwrap();
    let error = message(try_open(&place.folder().join("file"), true).unwrap_err());
    assert!(error.contains("Not a directory"), "{error}");
}

#[test]
fn an_empty_file_becomes_a_store_only_if_it_never_was_one() {
    let place = Place::new();
    fs::create_dir(place.folder()).unwrap();
    fs::write(place.database(), "").unwrap();
    assert!(matches!(try_open(&place.folder(), false), Err(Error::NotAStore { .. })));
    assert_eq!(contents(&place.folder()), [("store.db".to_owned(), Vec::new())]);
    some_of_everything(&place);

    fs::write(place.database(), "").unwrap();
    let before = contents(&place.folder());
    let error = try_open(&place.folder(), true).unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("entries were written"), "{error}");
    assert_eq!(contents(&place.folder()), before);
}

#[test]
fn a_symlink_in_place_of_a_file_is_not_followed() {
    for name in ["store.db", "head", "hold.lock"] {
        let (place, target) = (Place::new(), tempfile::NamedTempFile::new().unwrap());
        drop(place.open());
        fs::remove_file(place.folder().join(name)).ok();
        std::os::unix::fs::symlink(target.path(), place.folder().join(name)).unwrap();
        let used = try_open(&place.folder(), true).and_then(|store| {
            let _hold = store.hold()?;
            store.write(Default::default())
        });
        assert!(used.is_err(), "{name}");
        assert_eq!(fs::metadata(target.path()).unwrap().len(), 0, "{name}");
    }
}

#[test]
fn a_truncated_database_is_an_error_and_nothing_is_changed() {
    let whole = Place::new();
    let saved = some_of_everything(&whole);
    let bytes = fs::read(whole.database()).unwrap();
    let pages = (0..bytes.len()).step_by(4096);
    let odd = [1, 15, 16, 50, 99, 100, 101, 511, 4095, 4097, 9000, bytes.len() - 1, bytes.len() - 4096];
    for length in pages.chain(odd) {
        let place = Place::copy_of(&whole);
        fs::write(place.database(), &bytes[..length]).unwrap();
        let error = try_open(&place.folder(), true).and_then(|store| {
            saved.iter().try_for_each(|one| store.checkpoint(&one.id).map(drop))?;
            store.list(&Query::default())?;
            // A last page that is cut short reads as if it ended in zeros.
            assert_ne!(Story::new(&store).damage(), [""; 0], "{length}");
            Ok(())
        });
        if let Err(error) = error {
            assert!(error.is_damage(), "{length}: {error}");
        }
        assert_eq!(fs::read(place.database()).unwrap().len(), length);
    }
}

#[test]
fn a_short_log_stays_for_the_next_and_a_long_one_does_not() {
    let place = Place::new();
    let log = || fs::metadata(place.folder().join("store.db-wal")).map_or(0, |log| log.len());
    let save = |from: u64, count: usize| {
        let store = place.open();
        let story = Story::after(&store, from);
        let run = story.run("a");
        (0..count).for_each(|_| drop(story.save(&run, "some")));
        log()
    };
    let open = save(0, 3);
    assert!(open > 0 && log() == open, "closing did something to the log");
    let database = fs::read(place.database()).unwrap();
    assert!(save(10, 3) > open, "the next does not write on");
    assert!(fs::read(place.database()).unwrap() == database, "it was copied");
    drop(place.open());
    assert!(log() > open, "whoever only reads leaves it too");

    save(20, 120);
    assert_eq!(log(), 0, "a long one is copied and removed");
    let store = place.open();
    assert_eq!(Story::new(&store).damage(), [""; 0]);
    assert_eq!(store.usage().unwrap().entries, 127);
    drop(store);
    assert_eq!(log(), 0, "an empty one is removed");
}

#[test]
fn the_log_of_a_database_that_is_gone_is_not_read_with_a_new_one() {
    let place = Place::new();
    {
        let store = place.open();
        let story = Story::new(&store);
        let run = story.run("a");
        story.save(&run, "in the log");
    }
    assert!(place.folder().join("store.db-wal").exists());
    fs::remove_file(place.database()).unwrap();
    assert!(
        try_open(&place.folder(), true).is_err_and(|error| error.is_damage()),
        "it is known what is gone"
    );
    fs::remove_file(place.folder().join("head")).unwrap();
    let store = place.open();
    assert_eq!((store.usage().unwrap().entries, Story::new(&store).damage().len()), (0, 0));
}

#[test]
fn a_lost_end_of_the_log_is_found() {
    let place = Place::new();
    let store = place.open();
    let story = Story::new(&store);
    let run = story.run("a");
    (0..5).for_each(|_| drop(story.save(&run, "")));
    let copy = Place::copy_of(&place);
    let log = copy.folder().join("store.db-wal");
    let length = fs::metadata(&log).unwrap().len();
    fs::remove_file(copy.folder().join("store.db-shm")).ok();
    fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(length - 10).unwrap();
    let store = copy.open();
    assert_eq!(store.lost().unwrap(), 1);
    let story = Story::after(&store, 100);
    assert_eq!(story.damage(), ["the journal ends at entry 5, but entry 6 was written"]);
    // Writing on does not hide the loss, until someone says that it is known.
    (0..5).for_each(|_| drop(story.save(&run, "")));
    assert_eq!(story.damage(), ["the journal up to entry 6 is not the one that was written"]);
    store.rebuild().unwrap();
    assert_eq!(story.damage(), [""; 0]);
}
