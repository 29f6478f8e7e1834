//! Reading everything again.

use super::{Error, Project};
use crate::store::{Audited, Damage, Listed, Query};

const UNKEPT: &str = "no ref keeps its snapshot, so git may drop it";

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// What was read.
    pub audited: Audited,
    /// How many snapshots of files were read.
    pub snapshots: u64,
    /// What is not as it was written.
    pub damage: Vec<Damage>,
}

impl Verified {
    /// Says whether everything is as it was written.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

impl Project {
    /// Reads everything again: seals, chain, payloads, lookup tables.
    pub fn verify(&self) -> Result<Verified, Error> {
        let mut damage = Vec::new();
        let audited = self.store.audit(&mut |found| damage.push(found))?;
        let snapshots = self.verify_files(&mut damage)?;
        Ok(Verified { audited, snapshots, damage })
    }

    /// Reads the files of every checkpoint again, each set of files once.
    fn verify_files(&self, damage: &mut Vec<Damage>) -> Result<u64, Error> {
        let mut seen = std::collections::HashSet::new();
        let (mut before, mut kept) = (None, None);
        loop {
            let query = Query { before, limit: Some(1000), ..Query::default() };
            let page = match self.store.list(&query) {
                Ok(page) => page,
                // The audit has named it; without the record nothing can be said of its files.
                Err(error) if error.is_damage() => return Ok(seen.len() as u64),
                Err(error) => return Err(error.into()),
            };
            let Some(last) = page.last() else { return Ok(seen.len() as u64) };
            before = Some(last.position);
            for Listed { checkpoint, .. } in page {
                let Some(snapshot) = &checkpoint.content.snapshot else { continue };
                let snapshots = self.snapshots()?;
                if seen.insert(snapshot.commit.clone())
                    && let Err(found) = snapshots.check(snapshot)
                {
                    damage.push(Damage::files(&checkpoint, &found));
                }
                if kept.is_none() {
                    kept = Some(snapshots.kept()?);
                }
                if kept.as_ref().and_then(|kept| kept.get(&checkpoint.id)) != Some(&snapshot.commit) {
                    damage.push(Damage { derived: true, ..Damage::of(&checkpoint, UNKEPT) });
                }
            }
        }
    }
}
