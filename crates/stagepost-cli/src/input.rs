//! Reading files that someone names: whole, but never more than a bound.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// More than anything that people write by hand or programs ask with.
pub(crate) const MOST: u64 = 16 << 20;
/// More than a payload that belongs into one record.
pub(crate) const MOST_PAYLOAD: u64 = 64 << 20;

/// Reads a file, or standard input for `-`.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        io::stdin().lock().take(most + 1).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > most {
        let what = format!("it has more than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// Reads a file of text, or standard input for `-`.
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let bytes = read(path, most)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
