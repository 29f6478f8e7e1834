//! What a step is made from: its definition, and the files that it reads and leaves.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Fingerprint;
use super::definition::Step;
use crate::bounded;
use crate::model::Hash;

/// Computes the fingerprint of a step as it would begin now.
pub(super) fn fingerprint(step: &Step, root: &Path, item: Option<&Value>) -> Fingerprint {
    fingerprint_with(step, root, item, &HashMap::new())
}

/// As [`fingerprint`], when files that are gone will have been put back, whose hashes are given.
pub(super) fn fingerprint_with(
    step: &Step,
    root: &Path,
    item: Option<&Value>,
    back: &HashMap<PathBuf, Back>,
) -> Fingerprint {
    let mut fingerprint = Fingerprint::default();
    if let Value::Object(members) = step.canonical() {
        for (name, value) in members {
            let nothing = value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(serde_json::Map::is_empty);
            if !nothing {
                fingerprint.add_value(if name == "action" { "command" } else { &name }, &value);
            }
        }
    }
    // What it leaves itself is checked as such; it cannot be what it was before.
    let own: Vec<PathBuf> = step.outputs.iter().map(|output| root.join(&output.path)).collect();
    let files = Files { back, without: &own };
    for path in step.inputs.iter().filter(|path| !own.contains(&root.join(path))) {
        // A file that cannot be read is as good as another one: the step will say what is wrong with it.
        let hash = files
            .hash_of(&root.join(path))
            .map_or_else(|error| error.kind().to_string(), |hash| hash.to_string());
        fingerprint.add(file_part(path), hash.as_bytes());
    }
    if let Some(item) = item {
        fingerprint.add_value("item", item);
    }
    fingerprint
}

/// The name of the part that is a file.
pub(super) fn file_part(path: &str) -> String {
    format!("file {path}")
}

/// Says whether a part of a fingerprint is a file: it changed by itself, nobody changed the flow.
pub(super) fn is_file_part(part: &str) -> bool {
    part.starts_with("file ")
}

/// Hashes a file, or everything in a folder.
pub(super) fn hash_of(path: &Path) -> io::Result<Hash> {
    Files { back: &HashMap::new(), without: &[] }.hash_of(path)
}

/// A file that is gone and will have been put back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Back {
    pub(super) hash: Hash,
    pub(super) is_executable: bool,
}

/// Files as they will be.
struct Files<'f> {
    /// Files that are gone and will have been put back.
    back: &'f HashMap<PathBuf, Back>,
    /// Files that do not count.
    without: &'f [PathBuf],
}

impl Files<'_> {
    fn hash_of(&self, path: &Path) -> io::Result<Hash> {
        if let Some(back) = self.back.get(path) {
            return Ok(back.hash);
        }
        // A folder that is gone is there again with the first file that is put back into it.
        let mut names: BTreeSet<PathBuf> = self.back.keys().filter_map(|one| child_of(path, one)).collect();
        match fs::metadata(path) {
            Ok(about) if !about.is_dir() => return hash_file(path),
            Err(error) if names.is_empty() || error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
            Ok(_) => {
                for entry in fs::read_dir(path)? {
                    names.insert(entry?.path());
                }
            }
        }
        let mut all = Vec::new();
        for name in names.iter().filter(|name| !self.without.contains(name)) {
            all.extend_from_slice(name.file_name().unwrap_or_default().as_encoded_bytes());
            all.push(0);
            all.extend_from_slice(self.hash_within(name)?.as_bytes());
        }
        Ok(Hash::of(&all))
    }

    /// Hashes what lies in a folder: what it is counts too. A plain file is what it holds, as it was in every version.
    fn hash_within(&self, path: &Path) -> io::Result<Hash> {
        let tagged = |tag: &[u8], rest: &[u8]| Hash::of(&[tag, rest].concat());
        let executable = |hash: Hash| tagged(b"executable\0", hash.as_bytes());
        match (fs::symlink_metadata(path), self.back.get(path)) {
            (_, Some(back)) if back.is_executable => Ok(executable(back.hash)),
            // A link is what it says: following one out of the folder could go on for ever.
            (Ok(about), None) if about.is_symlink() => {
                Ok(tagged(b"link\0", fs::read_link(path)?.as_os_str().as_encoded_bytes()))
            }
            (Ok(about), None) if about.is_file() && about.permissions().mode() & 0o100 != 0 => {
                Ok(executable(hash_file(path)?))
            }
            // A pipe, a socket or a device holds nothing that could be hashed.
            (Ok(about), None) if !about.is_file() && !about.is_dir() => Ok(Hash::of(b"special\0")),
            _ => self.hash_of(path),
        }
    }
}

/// What lies directly in `folder` and is `path` or holds it.
fn child_of(folder: &Path, path: &Path) -> Option<PathBuf> {
    Some(folder.join(path.strip_prefix(folder).ok()?.components().next()?))
}

fn hash_file(path: &Path) -> io::Result<Hash> {
    let (mut file, mut hasher) = (bounded::open(path)?, blake3::Hasher::new());
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().into()),
            count => drop(hasher.update(&buffer[..count])),
        }
    }
}

/// Finds a file that a step leaves. It must be a file, and in the project.
pub(super) fn find_output(root: &Path, path: &str) -> Result<PathBuf, String> {
    let shown = || format!("`{}`", path.escape_debug());
    let inside = |path: PathBuf| -> io::Result<Option<PathBuf>> {
        let (path, root) = (fs::canonicalize(path)?, fs::canonicalize(root)?);
        Ok(Some(path).filter(|path| path.starts_with(root)))
    };
    match inside(root.join(path)) {
        Ok(Some(found)) if found.is_file() => Ok(found),
        Ok(Some(_)) => Err(format!("its output {} is no file", shown())),
        Ok(None) => Err(format!("its output {} lies outside the project", shown())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(format!("its output {} is not there", shown()))
        }
        Err(error) => Err(format!("its output {} cannot be read: {error}", shown())),
    }
}
