//! What a step is made from: its definition, and the files that it reads and leaves.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Fingerprint;
use super::definition::Step;
use crate::model::Hash;

/// Computes the fingerprint of a step as it would begin now.
pub(super) fn fingerprint(step: &Step, root: &Path, item: Option<&Value>) -> Fingerprint {
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
    for path in &step.inputs {
        // A file that cannot be read is as good as another one: the step will say what is wrong with it.
        let hash =
            hash_of(&root.join(path)).map_or_else(|error| error.kind().to_string(), |hash| hash.to_string());
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
    if !fs::metadata(path)?.is_dir() {
        return hash_file(path);
    }
    let mut names: Vec<PathBuf> =
        fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    names.sort();
    let mut all = Vec::new();
    for name in names {
        all.extend_from_slice(name.file_name().unwrap_or_default().as_encoded_bytes());
        all.push(0);
        let is_link = fs::symlink_metadata(&name)?.is_symlink();
        // A link is what it says: following one out of the folder could go on for ever.
        let hash = if is_link {
            Hash::of(fs::read_link(&name)?.as_os_str().as_encoded_bytes())
        } else {
            hash_of(&name)?
        };
        all.extend_from_slice(hash.as_bytes());
    }
    Ok(Hash::of(&all))
}

fn hash_file(path: &Path) -> io::Result<Hash> {
    let (mut file, mut hasher) = (File::open(path)?, blake3::Hasher::new());
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
