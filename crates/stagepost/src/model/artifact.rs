//! Named payloads of a checkpoint.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ArtifactName;
use super::canonical::write_string;

/// A named payload of a checkpoint; the bytes are kept once, under their hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// The name, unique within the checkpoint.
    pub name: ArtifactName,
    /// What the bytes are.
    pub media: MediaType,
    /// Where the bytes are found.
    #[serde(flatten)]
    pub blob: BlobRef,
}

impl Artifact {
    pub(super) fn write_canonical(&self, out: &mut String) {
        let _ = write!(out, "{{\"blob\":\"{}\",\"media\":", self.blob.hash);
        write_string(out, self.media.as_str());
        out.push_str(",\"name\":");
        write_string(out, self.name.as_str());
        let _ = write!(out, ",\"size\":{}}}", self.blob.size);
    }
}

/// Names stored bytes by their hash and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct BlobRef {
    /// How many bytes there are.
    pub size: u64,
    /// The BLAKE3 hash of the bytes.
    #[serde(rename = "blob")]
    pub hash: Hash,
}

/// What the bytes of an artifact are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct MediaType(String);

impl MediaType {
    /// JSON text.
    pub fn json() -> Self {
        Self("application/json".to_owned())
    }

    /// UTF-8 text.
    pub fn text() -> Self {
        Self("text/plain; charset=utf-8".to_owned())
    }

    /// Bytes of any kind.
    pub fn bytes() -> Self {
        Self("application/octet-stream".to_owned())
    }

    /// Says whether the bytes are JSON.
    pub fn is_json(&self) -> bool {
        self.0 == "application/json" || self.0.ends_with("+json")
    }

    /// Returns the media type as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A BLAKE3 hash, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Hashes `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Wraps the bytes of a hash.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Hands its digits on. They are in every record several times, and this is quicker than one digit after the other.
    fn with_digits<T>(&self, then: impl FnOnce(&str) -> T) -> T {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        then(std::str::from_utf8(&digits).expect("digits are ASCII"))
    }
}

impl From<blake3::Hash> for Hash {
    fn from(hash: blake3::Hash) -> Self {
        Self(*hash.as_bytes())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_digits(|digits| f.write_str(digits))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Hash {
    type Err = InvalidHash;

    fn from_str(text: &str) -> Result<Self, InvalidHash> {
        if text.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(InvalidHash);
        }
        blake3::Hash::from_hex(text).map(Self::from).map_err(|_| InvalidHash)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_digits(|digits| serializer.serialize_str(digits))
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The error for text that is no hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a hash is 64 lower-case hexadecimal digits")]
pub struct InvalidHash;
