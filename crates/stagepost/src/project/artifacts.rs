//! Getting payloads back.

use std::io::Read;

use serde_json::Value;

use super::{Error, Project};
use crate::model::{Artifact, Checkpoint, RunId, beyond_64_bits};
use crate::store::Query;

/// One version of an artifact in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The checkpoint that brought it.
    pub checkpoint: Checkpoint,
    /// The artifact there.
    pub artifact: Artifact,
}

impl Project {
    /// Reads an artifact of a checkpoint.
    pub fn load(&self, checkpoint: &Checkpoint, name: &str) -> Result<Vec<u8>, Error> {
        Ok(self.store.load(&artifact(checkpoint, name)?.blob)?)
    }

    /// Reads an artifact of a checkpoint as a stream; the last read fails if it is not what was saved.
    pub fn open_artifact(&self, checkpoint: &Checkpoint, name: &str) -> Result<Box<dyn Read + '_>, Error> {
        Ok(self.store.open(&artifact(checkpoint, name)?.blob)?)
    }

    /// Reads an artifact of a checkpoint as JSON. A whole number of more than 64 bits is an error, for a value would hold
    /// another one; [`Project::load`] returns the very bytes that were saved.
    pub fn load_json(&self, checkpoint: &Checkpoint, name: &str) -> Result<Value, Error> {
        let bytes = self.load(checkpoint, name)?;
        let read = match beyond_64_bits(&bytes) {
            Some(number) => Err(too_large(number)),
            None => serde_json::from_slice(&bytes),
        };
        read.map_err(|source| Error::InvalidJson { name: name.to_owned(), source })
    }

    /// Finds the newest version of an artifact in a run.
    pub fn latest(&self, run: &RunId, name: &str) -> Result<Option<Version>, Error> {
        self.versions(run, name, Some(1)).map(|mut versions| versions.pop())
    }

    /// Lists the versions of an artifact in a run, newest first. Checkpoints that did not change it are left out.
    pub fn history(&self, run: &RunId, name: &str) -> Result<Vec<Version>, Error> {
        self.versions(run, name, None)
    }

    fn versions(&self, run: &RunId, name: &str, limit: Option<usize>) -> Result<Vec<Version>, Error> {
        const PAGE: usize = 64;
        let (mut versions, mut before) = (Vec::<Version>::new(), None);
        loop {
            let query = Query { run: Some(run.clone()), before, limit: Some(PAGE), ..Query::default() };
            let page = self.store.list(&query)?;
            for listed in &page {
                let Some(artifact) = listed.checkpoint.artifact(name).cloned() else { continue };
                // The same bytes as in the next newer version: that version came with this older checkpoint.
                if versions.last().is_some_and(|newer| newer.artifact.blob == artifact.blob) {
                    versions.pop();
                }
                if limit.is_some_and(|limit| versions.len() >= limit) {
                    return Ok(versions);
                }
                versions.push(Version { checkpoint: listed.checkpoint.clone(), artifact });
                if limit == Some(1) {
                    return Ok(versions);
                }
            }
            match page.last() {
                Some(last) if page.len() == PAGE => before = Some(last.position),
                _ => return Ok(versions),
            }
        }
    }
}

fn too_large(number: &str) -> serde_json::Error {
    serde::de::Error::custom(format!("the whole number {number} has more than 64 bits and would be rounded"))
}

fn artifact<'a>(checkpoint: &'a Checkpoint, name: &str) -> Result<&'a Artifact, Error> {
    checkpoint.artifact(name).ok_or_else(|| Error::NoArtifact { id: checkpoint.id, name: name.to_owned() })
}
