//! Making everything in a file system durable by one call: for thousands of files that is one wait instead of thousands.

use std::io;
use std::os::fd::AsFd;

/// The device of a folder if one call makes all that is written there durable and tells of every error on the way.
#[cfg(target_os = "linux")]
pub(super) fn device(folder: impl AsFd) -> Option<u64> {
    use rustix::fs::{fstat, fstatfs};
    /// ext4, XFS, btrfs, F2FS and tmpfs. Others may hand the call on to nobody.
    const KNOWN: [u64; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];
    #[allow(clippy::unnecessary_cast)] // the field's type differs between platforms
    let kind = fstatfs(&folder).ok()?.f_type as u64;
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let trusted = KNOWN.contains(&kind) && tells_errors(&release);
    trusted.then(|| fstat(&folder).ok().map(|found| found.st_dev))?
}

#[cfg(not(target_os = "linux"))]
pub(super) fn device(_folder: impl AsFd) -> Option<u64> {
    None
}

/// Waits until everything in the file system of a folder is on disk. To be asked only where there is a [`device`].
#[cfg(target_os = "linux")]
pub(super) fn sync(folder: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::syncfs(folder)?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn sync(_folder: impl AsFd) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Says whether a kernel's `syncfs` tells of what could not be written: Linux 5.8 and later.
#[cfg(target_os = "linux")]
fn tells_errors(release: &str) -> bool {
    let mut parts = release.split(|char: char| !char.is_ascii_digit()).map(str::parse::<u32>);
    matches!((parts.next(), parts.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (5, 8))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_keep_errors_to_themselves_are_not_asked() {
        for release in ["5.8.0", "5.15.0-91-generic", "6.1.0-18-amd64", "6.18.44-fc", "10.0"] {
            assert!(tells_errors(release), "{release}");
        }
        for release in ["5.7.19", "4.19.0-26", "3.10.0-1160.el7", "5", "", "newest"] {
            assert!(!tells_errors(release), "{release}");
        }
    }
}
