//! Files that usually hold a secret, told by their names, and where the name alone does not tell by their folders.
//!
//! Such a file that git neither ignores nor tracks is in a snapshot only if it is asked for: a snapshot stays for a long
//! time, and goes along with `git push --mirror`. What git tracks is no secret any more. The list is short on purpose,
//! and it is in `docs/snapshots.md`.

/// Whole names.
const NAMES: [&str; 29] = [
    ".env",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    ".dockercfg",
    ".htpasswd",
    ".vault-token",
    ".git-credentials",
    "credentials",
    "credentials.json",
    "credentials.tfrc.json",
    "secrets.yml",
    "secrets.yaml",
    "secrets.json",
    "secrets.toml",
    "terraform.tfstate",
    "terraform.tfstate.backup",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "id_xmss",
];

/// How names end.
const ENDS: [&str; 8] = [".pem", ".key", ".p12", ".pfx", ".ppk", ".jks", ".keystore", ".kdbx"];

/// How names of JSON files begin that a cloud hands out as keys.
const KEYS: [&str; 4] = ["service-account", "service_account", "client_secret", "gha-creds-"];

/// Names that say so only together with the folders they are in.
const PLACES: [&str; 21] = [
    ".docker/config.json",
    ".kube/config",
    ".oci/config",
    ".config/hub",
    ".config/gh/hosts.yml",
    ".cargo/credentials.toml",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".azure/accesstokens.json",
    ".azure/msal_token_cache.json",
    "gcloud/application_default_credentials.json",
    "gcloud/credentials.db",
    "gcloud/access_tokens.db",
    ".config/doctl/config.yaml",
    ".config/rclone/rclone.conf",
    ".fly/config.yml",
    ".kaggle/kaggle.json",
    ".cache/huggingface/token",
    ".gnupg/secring.gpg",
];

/// What follows `.env.` in files that show how to write a real one.
const SAMPLES: [&str; 5] = ["example", "sample", "template", "dist", "defaults"];

/// Says whether a file at this path usually holds a secret.
pub(super) fn is_secret(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    // Nearly every name is dismissed here: a walk asks about all of them.
    let first = name.first().map(u8::to_ascii_lowercase);
    if !matches!(first, Some(b'.' | b'_' | b'c' | b'h' | b'i' | b't')) && !name.contains(&b'.') {
        return false;
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    if let Some(kind) = name.strip_prefix(".env.") {
        return !is_sample(kind);
    }
    let ends = |end: &&str| name.len() > end.len() && name.ends_with(*end);
    NAMES.contains(&name.as_str()) || ENDS.iter().any(ends) || is_key(&name) || is_place(path, &name)
}

/// Says whether a path ends as one of [`PLACES`] does.
fn is_place(path: &[u8], name: &str) -> bool {
    let named = PLACES.iter().filter(|place| place.rsplit('/').next() == Some(name));
    named.into_iter().any(|place| {
        let before = path.len().checked_sub(place.len()).map(|length| path.split_at(length));
        before.is_some_and(|(before, end)| {
            end.eq_ignore_ascii_case(place.as_bytes()) && matches!(before.last(), None | Some(b'/'))
        })
    })
}

fn is_sample(kind: &str) -> bool {
    SAMPLES.iter().any(|sample| kind == *sample || kind.ends_with(&format!(".{sample}")))
}

/// `service-account-prod.json`; but not `service-account.example.json`.
fn is_key(name: &str) -> bool {
    let stem = name.strip_suffix(".json").filter(|stem| KEYS.iter().any(|key| stem.starts_with(key)));
    stem.is_some_and(|stem| !is_sample(stem) && !stem.ends_with(".schema"))
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

    #[test]
    fn some_names_are_secrets_in_their_folders_alone() {
        for path in [
            ".docker/config.json",
            "home/.Docker/config.json",
            ".kube/config",
            "me/.config/gh/hosts.yml",
            ".config/hub",
            "x/.cache/huggingface/token",
            "deep/down/.env",
        ] {
            assert!(is_secret(path.as_bytes()), "{path}");
        }
        for path in [
            "config.json",
            "docker/config.json",
            "x.docker/config.json",
            ".kube/config/a",
            "gh/hosts.yml",
            "token",
        ] {
            assert!(!is_secret(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn keys_of_clouds_passwords_and_stores_of_keys_are_secrets() {
        let secrets =
            ["credentials", "Credentials.json", "service-account-prod.json", "client_secret_1.json"];
        let kept = ["secrets.yml", "terraform.tfstate", "id_ed25519_sk", "k.ppk", ".htpasswd", "all.kdbx"];
        for name in secrets.iter().chain(&kept) {
            assert!(is_secret(name.as_bytes()), "{name}");
        }
        let others =
            ["credentials.rs", "credentials.md", "secrets.rs", "service-account.ts", "main.tfstate.md"];
        let samples = ["service-account.example.json", "service-account.schema.json", "secrets.yml.example"];
        for name in others.iter().chain(&samples) {
            assert!(!is_secret(name.as_bytes()), "{name}");
        }
    }
}
