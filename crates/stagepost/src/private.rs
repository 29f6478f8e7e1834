//! Files and folders that only their owner may read, whatever the umask says.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::bounded;

/// Makes a folder with those above it; what is there stays as it is.
pub(crate) fn folders(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes a file from its beginning.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    bounded::open_as(&mut options, path)?.write_all(bytes.as_ref())
}

/// Makes a file that is not there.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Adds to a file at its end.
pub(crate) fn append(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    bounded::open_as(&mut options, path)?.write_all(text.as_bytes())
}
