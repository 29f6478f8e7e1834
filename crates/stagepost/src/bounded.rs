//! Reading what may be of any size: what fits is read whole, and the rest must not cost all memory.

use std::io::{self, Read};

/// Reads all of a source, if that is not more than `most` bytes.
pub(crate) fn read(source: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}
