//! Is everything in order, and if not, can it be put in order?

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::Serialize;

use super::{Error, Project, Verified};
use crate::model::{CheckpointId, Snapshot};
use crate::store::{Audited, Found};

/// Something that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How it is.
    pub health: Health,
    /// What was found, in words.
    pub found: String,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// In order.
    Good,
    /// It was not in order, and now it is.
    Fixed,
    /// It is not in order, and `doctor --fix` can put it in order.
    Fixable,
    /// It is not in order, and a person has to decide.
    Bad,
}

const WRITABLE: &str = "writable";

impl Check {
    /// Whether something stored is not as it was written; a store that is whole may still be out of reach.
    pub fn is_damage(&self) -> bool {
        self.health == Health::Bad && self.name != WRITABLE
    }
}

impl Project {
    /// Looks at everything that can go out of order, and puts in order what can be if `fix` is set.
    pub fn doctor(&self, fix: bool) -> Result<Vec<Check>, Error> {
        let journal = self.check_end(fix)?;
        let verified = self.verify()?;
        let permissions = self.check_permissions(fix)?;
        Ok(vec![
            permissions,
            journal,
            self.check_tables(&verified, fix)?,
            self.check_refs(&verified, fix)?,
            check_content(&verified),
            self.check_writable(),
        ])
    }

    /// Nobody else may read what agents and people wrote.
    fn check_permissions(&self, fix: bool) -> Result<Check, Error> {
        let folder = &self.place.store;
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::File { doing: "look at", path: path.clone(), source }
        };
        let mut open = Vec::new();
        let files = std::fs::read_dir(folder)
            .map_err(failed(folder))?
            .filter_map(Result::ok)
            .map(|entry| entry.path());
        for path in files.chain([folder.clone()]) {
            let found = std::fs::symlink_metadata(&path).map_err(failed(&path))?;
            if !found.file_type().is_symlink() && found.permissions().mode() & 0o077 != 0 {
                open.push((path, found.permissions().mode() & 0o700));
            }
        }
        if fix {
            for (path, mode) in &open {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))
                    .map_err(failed(path))?;
            }
        }
        let health = health(open.is_empty(), fix);
        let found = if open.is_empty() {
            "only you can read the store".to_owned()
        } else {
            format!("others can read {} of the store", count(open.len() as u64, "file"))
        };
        Ok(Check { name: "permissions", health, found })
    }

    /// What is gone from the end of the journal cannot be brought back here; to fix it is to go on without it.
    fn check_end(&self, fix: bool) -> Result<Check, Error> {
        let lost = self.lost()?;
        let health = health(lost == 0, fix);
        if health == Health::Fixed {
            self.store.rebuild()?;
        }
        let gone = if lost == 1 { "1 entry".to_owned() } else { format!("{lost} entries") };
        let found = match health {
            Health::Good => "it is as long as it was".to_owned(),
            Health::Fixed => format!("it goes on without its end, {gone}"),
            _ => format!("the end is gone, {gone}: look for a copy of the store first"),
        };
        Ok(Check { name: "journal", health, found })
    }

    fn check_tables(&self, verified: &Verified, fix: bool) -> Result<Check, Error> {
        let wrong = wrong_tables(verified);
        let mut health = health(wrong == 0, fix);
        if health == Health::Fixed {
            self.store.rebuild()?;
            if wrong_tables(&self.verify()?) > 0 {
                health = Health::Bad;
            }
        }
        let found = match wrong {
            0 => "the lookup tables fit the journal".to_owned(),
            1 => "one lookup table does not fit the journal".to_owned(),
            wrong => format!("{wrong} lookup tables do not fit the journal"),
        };
        Ok(Check { name: "tables", health, found })
    }

    /// git drops what no ref keeps.
    fn check_refs(&self, verified: &Verified, fix: bool) -> Result<Check, Error> {
        let derived = verified.damage.iter().filter(|damage| damage.derived);
        let unkept: Vec<_> = derived.filter_map(|damage| damage.checkpoint).collect();
        let mut health = health(unkept.is_empty(), fix);
        for id in unkept.iter().filter(|_| fix) {
            let checkpoint = self.store.checkpoint(id)?.and_then(Found::live);
            let snapshot = checkpoint.and_then(|checkpoint| checkpoint.content.snapshot);
            // One that names something else, or whose commit is gone, is for a person to look at.
            if snapshot.is_some_and(|snapshot| self.keep_again(id, &snapshot).is_err()) {
                health = Health::Bad;
            }
        }
        let found = match unkept.len() {
            0 => "a ref keeps every snapshot".to_owned(),
            some => format!("no ref keeps {}", count(some as u64, "snapshot")),
        };
        Ok(Check { name: "refs", health, found })
    }

    fn keep_again(&self, id: &CheckpointId, snapshot: &Snapshot) -> Result<(), Error> {
        let snapshots = self.snapshots()?;
        snapshots.objects().commit(&snapshot.commit)?;
        Ok(snapshots.name(id, snapshot)?)
    }

    fn check_writable(&self) -> Check {
        // On a full disk a file can often be made; it is what is in it that finds no room.
        let written =
            tempfile::tempfile_in(&self.place.store).and_then(|mut file| file.write_all(&[1; 4096]));
        let (health, found) = match written {
            Ok(()) => (Health::Good, "the store can be written".to_owned()),
            Err(error) => (Health::Bad, format!("the store cannot be written: {error}")),
        };
        Check { name: WRITABLE, health, found }
    }
}

fn check_content(verified: &Verified) -> Check {
    let damage: Vec<_> = verified.damage.iter().filter(|damage| !damage.derived).collect();
    let Audited { checkpoints, blobs, .. } = verified.audited;
    let (health, found) = match damage.first() {
        None => {
            let (checkpoints, blobs) = (count(checkpoints, "checkpoint"), count(blobs, "payload"));
            (Health::Good, format!("{checkpoints} and {blobs} are as they were written"))
        }
        Some(first) => {
            let so_many = match damage.len() {
                1 => "one thing is damaged:".to_owned(),
                many => format!("{many} things are damaged, the first:"),
            };
            (Health::Bad, format!("{so_many} {}", first.what))
        }
    };
    Check { name: "content", health, found }
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn wrong_tables(verified: &Verified) -> usize {
    verified.damage.iter().filter(|damage| damage.derived && damage.checkpoint.is_none()).count()
}

fn health(good: bool, fix: bool) -> Health {
    match (good, fix) {
        (true, _) => Health::Good,
        (false, true) => Health::Fixed,
        (false, false) => Health::Fixable,
    }
}
