//! JSON with the bytes it came in.

use std::borrow::Cow;

use serde_json::Value;

use crate::formats::plans::{self, LenientError};
use crate::model::{redact_value, without_tokens_in};

/// JSON, possibly with Python's `NaN` and `Infinity`, and the very bytes it came in. Those are what is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    bytes: Vec<u8>,
    value: Value,
}

impl Payload {
    /// Reads bytes.
    pub fn read(bytes: Vec<u8>) -> Result<Self, LenientError> {
        let value = plans::read(&bytes)?;
        Ok(Self { bytes, value })
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes out what looks like a token; what has none is kept byte for byte.
    #[must_use]
    pub(super) fn without_tokens(self) -> Self {
        match without_tokens_in(&self.bytes) {
            Cow::Borrowed(_) => self,
            Cow::Owned(clean) => Self::read(clean).unwrap_or_else(|_| {
                let mut value = self.value;
                redact_value(&mut value);
                value.into()
            }),
        }
    }

    /// Returns the value with `null` for numbers that JSON does not have.
    pub fn finite(&self) -> Value {
        plans::finite(&self.value)
    }

    /// Returns the value as it is held here.
    pub(super) fn value(&self) -> &Value {
        &self.value
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Puts it into an object as its only member, byte for byte.
    pub(super) fn as_member(&self, name: &str) -> Self {
        let around = [b"{\"", name.as_bytes(), b"\":", self.bytes.trim_ascii(), b"}"].concat();
        let mut members = serde_json::Map::new();
        members.insert(name.to_owned(), self.value.clone());
        Self { bytes: around, value: members.into() }
    }
}

impl From<Value> for Payload {
    fn from(value: Value) -> Self {
        Self { bytes: plans::compact(&value), value }
    }
}
