//! Every store keeps the same promises.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::time::Duration;

use stagepost::store::{MemoryStore, OpenOptions, SqliteStore, Store};

mod memory {
    use super::*;

    stagepost_testutil::contract_tests!(MemoryStore::new, |store| -> &dyn Store { store });
}

mod sqlite {
    use super::*;

    fn make() -> (tempfile::TempDir, SqliteStore) {
        let folder = tempfile::tempdir().unwrap();
        let options = OpenOptions { create: true, busy: Duration::from_millis(300) };
        let store = SqliteStore::open(&folder.path().join("store"), &options).unwrap();
        (folder, store)
    }

    fn store(made: &(tempfile::TempDir, SqliteStore)) -> &dyn Store {
        &made.1
    }

    stagepost_testutil::contract_tests!(make, store);
}
