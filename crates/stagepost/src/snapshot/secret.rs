//! Files that usually hold a secret, told by their names.
//!
//! Such a file that git neither ignores nor tracks is in a snapshot only if it is asked for: a snapshot stays for a long
//! time, and goes along with `git push --mirror`. What git tracks is no secret any more. The list is short on purpose,
//! and it is in `docs/snapshots.md`.

/// Whole names.
const NAMES: [&str; 11] = [
    ".env",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
];

/// How names end.
const ENDS: [&str; 4] = [".pem", ".key", ".p12", ".pfx"];

/// What follows `.env.` in files that show how to write a real one.
const SAMPLES: [&str; 5] = ["example", "sample", "template", "dist", "defaults"];

/// Says whether a file of this name, without its folder, usually holds a secret.
pub(super) fn is_secret(name: &[u8]) -> bool {
    // Nearly every name is dismissed here: a walk asks about all of them.
    if !matches!(name.first(), Some(b'.' | b'_' | b'i' | b'I')) && !name.contains(&b'.') {
        return false;
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    if let Some(kind) = name.strip_prefix(".env.") {
        return !SAMPLES.iter().any(|sample| kind == *sample || kind.ends_with(&format!(".{sample}")));
    }
    NAMES.contains(&name.as_str()) || ENDS.iter().any(|end| name.len() > end.len() && name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_by_their_names_and_samples_are_none() {
        for name in [".env", ".env.local", ".ENV", "server.pem", "a.key", "id_ed25519", ".netrc", ".npmrc"] {
            assert!(is_secret(name.as_bytes()), "{name}");
        }
        let samples = [".env.example", ".env.local.sample", ".env.template"];
        for name in
            ["env", "x.env", ".envrc", "id_rsa.pub", ".pem", "key", "monkey", "a.keys"].iter().chain(&samples)
        {
            assert!(!is_secret(name.as_bytes()), "{name}");
        }
    }
}
