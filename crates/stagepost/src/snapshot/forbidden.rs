//! Which names no snapshot may put below a work tree.
//!
//! A tree object can hold any bytes as a name. Names that climb (`..`), start elsewhere (`/x`) or reach the
//! repository itself (`.git` in any spelling that some file system takes for it) are refused before anything
//! is opened, on every platform: a project may be on a disk that folds case or shortens names.

use std::fmt;

/// Why a path may not be touched below a work tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forbidden {
    /// The path, or one of its parts, is empty (`a//b`, `/a`, `a/`).
    Empty,
    /// A part is `.` or `..`.
    Climbs,
    /// A part contains a zero byte.
    ZeroByte,
    /// A part is `.git`, or is taken for it by some file system.
    Repository,
    /// The path is Stagepost's own store.
    OwnStore,
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a part of it is empty",
            Self::Climbs => "a part of it is `.` or `..`",
            Self::ZeroByte => "it contains a zero byte",
            Self::Repository => "it is inside a `.git` folder",
            Self::OwnStore => "it is inside the checkpoint store",
        })
    }
}

/// Says why `path` must not be touched, or `None` if it may.
pub(crate) fn forbidden(path: &[u8]) -> Option<Forbidden> {
    if path.split(|&byte| byte == b'/').next().is_some_and(|first| first.eq_ignore_ascii_case(b".stagepost"))
    {
        return Some(Forbidden::OwnStore);
    }
    path.split(|&byte| byte == b'/').find_map(forbidden_part)
}

fn forbidden_part(part: &[u8]) -> Option<Forbidden> {
    match part {
        b"" => Some(Forbidden::Empty),
        b"." | b".." => Some(Forbidden::Climbs),
        _ if part.contains(&0) => Some(Forbidden::ZeroByte),
        _ if is_dot_git(part) => Some(Forbidden::Repository),
        _ => None,
    }
}

/// Whether some file system takes `part` for `.git`: case is folded, NTFS drops trailing dots and spaces, splits
/// at `:` and `\` and has the short name `git~1`, HFS+ drops invisible characters.
fn is_dot_git(part: &[u8]) -> bool {
    let until_stream = part.split(|byte| matches!(byte, b':' | b'\\')).next().unwrap_or_default();
    let kept = until_stream.iter().rposition(|byte| !matches!(byte, b'.' | b' ')).map_or(0, |last| last + 1);
    let ntfs = &until_stream[..kept];
    let folded = |name: &[u8]| name.eq_ignore_ascii_case(b".git") || name.eq_ignore_ascii_case(b"git~1");
    folded(part) || folded(ntfs) || without_invisible(part).is_some_and(|visible| folded(&visible))
}

/// The name as HFS+ compares it, or `None` if nothing in it is invisible (or it is not text at all).
fn without_invisible(part: &[u8]) -> Option<Vec<u8>> {
    if part.is_ascii() {
        return None;
    }
    let text = std::str::from_utf8(part).ok()?;
    Some(text.chars().filter(|c| !is_ignored_by_hfs(*c)).collect::<String>().into_bytes())
}

fn is_ignored_by_hfs(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_the_repository_is_forbidden() {
        for bad in [
            ".git",
            ".GIT",
            ".gIt/x",
            "a/.git/hooks/x",
            ".git ",
            ".git.",
            ".git. .",
            "git~1",
            "GIT~1/x",
            ".git::$INDEX",
            ".git:x",
            ".git\\config",
            ".g\u{200c}it",
            "\u{feff}.git",
            "a/.Git\u{206f}/config",
        ] {
            assert_eq!(forbidden(bad.as_bytes()), Some(Forbidden::Repository), "{bad:?}");
        }
    }

    #[test]
    fn paths_that_climb_or_start_elsewhere_are_forbidden() {
        for (bad, why) in [
            ("", Forbidden::Empty),
            ("/etc/passwd", Forbidden::Empty),
            ("a//b", Forbidden::Empty),
            ("a/", Forbidden::Empty),
            ("..", Forbidden::Climbs),
            ("a/../b", Forbidden::Climbs),
            ("./a", Forbidden::Climbs),
            ("a\0b", Forbidden::ZeroByte),
            (".stagepost/store.db", Forbidden::OwnStore),
            (".StagePost", Forbidden::OwnStore),
        ] {
            assert_eq!(forbidden(bad.as_bytes()), Some(why), "{bad:?}");
        }
    }

    #[test]
    fn ordinary_names_are_allowed_however_odd() {
        for good in [
            ".gitignore",
            ".github/x",
            "a b",
            "a\nb",
            "git",
            "git~2",
            "...",
            ".git2",
            "a:b",
            "ü",
            "x/.stagepost",
        ] {
            assert_eq!(forbidden(good.as_bytes()), None, "{good:?}");
        }
        assert_eq!(forbidden(b"\xff\xfe"), None);
    }
}
