//! Reading files that someone names: whole, but never more than a bound.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use serde::de::DeserializeOwned;
use stagepost::model::beyond_64_bits;

/// More than anything that people write by hand or programs ask with.
pub(crate) const MOST: u64 = 16 << 20;
/// More than a payload that belongs into one record.
pub(crate) const MOST_PAYLOAD: u64 = 64 << 20;

/// Reads a file, or standard input for `-`.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if path.as_os_str() == "-" { whole(io::stdin().lock(), most) } else { whole(File::open(path)?, most) }
}

fn whole(source: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let what = format!("it has more than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// Reads JSON that becomes a part of a record. What would not come back as it was given is refused.
pub(crate) fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    match beyond_64_bits(bytes) {
        Some(number) => Err(format!(
            "the whole number {number} has more than 64 bits and would be rounded; give it as a text, or keep the JSON with `save --state`"
        )),
        None => serde_json::from_slice(bytes).map_err(|error| error.to_string()),
    }
}

/// Reads a file of text that nobody named: one that is none must neither be waited for nor read without end.
pub(crate) fn read_file(path: &Path, most: u64) -> io::Result<String> {
    let open = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    if !open.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    text(whole(open, most)?)
}

/// Reads a file of text, or standard input for `-`.
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    text(read(path, most)?)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
