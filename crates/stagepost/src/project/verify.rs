//! Reading everything again.

use super::{Error, Project};
use crate::store::{Audited, Damage};

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// What was read.
    pub audited: Audited,
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
        Ok(Verified { audited, damage })
    }
}
