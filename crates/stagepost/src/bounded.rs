//! Reading what may be of any size and of any kind: what fits is read whole, the rest must not cost all memory, and nobody waits
//! for a pipe.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Reads all of a source, if that is not more than `most` bytes.
pub(crate) fn read(source: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// Reads a file that had `size` bytes to its end. Asked for one byte more than there are, the system says with the last of them that
/// it was the last.
pub(crate) fn read_sized(mut file: impl Read, size: u64) -> io::Result<Vec<u8>> {
    // What a file says of its size costs no memory before it is true.
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX).min(1 << 26) + 1];
    let mut filled = 0;
    loop {
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if filled as u64 == size {
            break;
        }
        if filled == bytes.len() {
            bytes.resize(2 * filled, 0);
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Opens a file to be read. A pipe or a device in its place is an error, for whoever opened it would wait for somebody.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_as(OpenOptions::new().read(true), path)
}

/// Opens a file as these options say. A pipe or a device in its place is an error, whoever is at its other end.
pub(crate) fn open_as(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    open_with(options, 0, path)
}

/// As [`open_as`], with more flags of open(2).
pub(crate) fn open_with(options: &mut OpenOptions, flags: i32, path: &Path) -> io::Result<File> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = match options.custom_flags(flags | nonblocking).open(path) {
        // What is said of a pipe that nobody reads from, and of a socket.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            return Err(no_file());
        }
        opened => opened?,
    };
    match file.metadata()?.file_type() {
        kind if kind.is_file() => Ok(file),
        kind if kind.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(no_file()),
    }
}

/// Reads all of a file that is one.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads all of a file of text that is one.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// The error of a pipe or a device where a file belongs.
pub(crate) fn no_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe or a device, not a regular file")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out a few bytes at a time, and now and then none because of a signal.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            if self.1.is_multiple_of(3) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let most = into.len().min(7);
            self.0.read(&mut into[..most])
        }
    }

    #[test]
    fn a_file_is_read_to_its_end_whatever_it_said_of_its_size() {
        let text: Vec<u8> = (0..100).collect();
        for length in [0, 1, 7, 8, 99, 100] {
            for size in [0, 1, 6, 50, 99, 100, 101, 5000] {
                let all = &text[..length];
                assert_eq!(read_sized(all, size).unwrap(), all, "{length} of {size}");
                // What comes in parts and grows meanwhile may seem to end where it was said to.
                let slowly = read_sized(Slow(all, 0), size).unwrap();
                let ends = slowly.len() == length || slowly.len() as u64 == size;
                assert!(all.starts_with(&slowly) && ends, "{length} of {size}");
            }
        }
    }
}
