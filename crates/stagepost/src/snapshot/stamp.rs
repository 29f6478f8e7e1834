//! What `lstat` says of a file, as far as it tells whether the content can have changed.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Stat};

/// The times, size and identity of a file. Two equal stamps mean the same content, unless the file was changed in
/// the very tick of the clock in which it was read: see [`Stamp::is_older_than`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    pub(super) modified: i64,
    pub(super) changed: i64,
    pub(super) size: u64,
    pub(super) inode: u64,
}

/// What a name in a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nature {
    File,
    Executable,
    Link,
    Folder,
    Special,
}

impl Stamp {
    pub(super) fn of(stat: &Stat) -> Self {
        let nanoseconds =
            |seconds: i64, rest: u64| seconds.wrapping_mul(1_000_000_000).wrapping_add(rest as i64);
        Self {
            modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            changed: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
            size: stat.st_size as u64,
            inode: stat.st_ino,
        }
    }

    /// Says whether the file was last changed before `moment`, so that any later change shows.
    pub(super) fn is_older_than(&self, moment: i64) -> bool {
        self.changed < moment && self.modified < moment
    }

    /// Returns what to remember of the stamp: if it cannot be trusted later, something that never matches.
    pub(super) fn if_older_than(self, moment: i64) -> Fingerprint {
        if self.is_older_than(moment) { self.fingerprint() } else { Fingerprint::NEVER }
    }

    /// Returns the stamp in eight bytes.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let times = fold(self.modified as u64 ^ MIX[0], self.changed as u64 ^ MIX[1]);
        let file = fold(self.size ^ MIX[2], self.inode ^ MIX[3]);
        let mixed = fold(times ^ MIX[2], file ^ MIX[0]);
        Fingerprint(mixed.max(Fingerprint::NEVER.0 + 1))
    }
}

/// A stamp as the state remembers it. Thirty-two bytes for each file would make the state twice as long, and reading
/// it is most of what a capture does besides looking at files. Two different stamps agree in one of 2^64 cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint(pub(super) u64);

impl Fingerprint {
    /// What no file has: whatever carries it is looked at anew.
    pub(super) const NEVER: Self = Self(0);
}

/// Odd numbers without a pattern.
const MIX: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93];

/// Mixes two numbers so that each bit of the result depends on all of both.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Nature {
    pub(super) fn of(stat: &Stat) -> Self {
        match FileType::from_raw_mode(stat.st_mode) {
            // git looks at the owner's bit alone.
            FileType::RegularFile if stat.st_mode & 0o100 != 0 => Self::Executable,
            FileType::RegularFile => Self::File,
            FileType::Symlink => Self::Link,
            FileType::Directory => Self::Folder,
            _ => Self::Special,
        }
    }
}

/// Looks at a name in an open folder, without following links; `None` if it is not there.
pub(super) fn look_at(folder: impl AsFd, name: &[u8]) -> rustix::io::Result<Option<Stat>> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_of_the_moment_itself_or_later_is_not_remembered() {
        let stamp = |modified, changed| Stamp { modified, changed, size: 9, inode: 7 };
        for young in [stamp(100, 50), stamp(50, 100), stamp(101, 50), stamp(50, 101)] {
            assert_eq!(young.if_older_than(100), Fingerprint::NEVER);
        }
        assert_eq!(stamp(99, 99).if_older_than(100), stamp(99, 99).fingerprint());
    }

    #[test]
    fn each_part_of_a_stamp_shows_in_its_fingerprint() {
        let stamp = Stamp {
            modified: 1_700_000_000_123_456_789,
            changed: 1_700_000_000_123_456_789,
            size: 900,
            inode: 7,
        };
        let others = (0..64).flat_map(|bit| {
            let flipped = 1 << bit;
            [
                Stamp { modified: stamp.modified ^ flipped as i64, ..stamp },
                Stamp { changed: stamp.changed ^ flipped as i64, ..stamp },
                Stamp { size: stamp.size ^ flipped, ..stamp },
                Stamp { inode: stamp.inode ^ flipped, ..stamp },
            ]
        });
        let mut prints: Vec<_> = others.chain([stamp]).map(|stamp| stamp.fingerprint().0).collect();
        prints.sort_unstable();
        prints.dedup();
        assert_eq!(prints.len(), 257);
    }
}
