//! A file as a tree in which everything knows its place.
//!
//! The YAML reader would fill types directly, but an error would then be the first one only, and nothing later could
//! say where a name stood that turned out to mean nothing.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Location, Spanned};

use super::{Invalid, Place};

/// A flow file is written by hand. What is larger was not, and would be kept with every run.
pub(super) const MOST_BYTES: usize = 1 << 20;
const DEEPEST: usize = 48;
const MOST_NODES: usize = 200_000;
/// What aliases may add to a file.
const MOST_REPLAYED: usize = 20_000;

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) content: Content,
    /// Where its text is in the file; numbers are taken from there when a text is wanted, so that `1.10` stays that.
    bytes: Option<Range<usize>>,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) place: Place,
    pub(super) text: String,
}

impl Node {
    /// Reads a file, bounded in size, depth and what aliases may blow it up to.
    pub(super) fn read(source: &str) -> Result<Self, Invalid> {
        let start = Place { line: 1, column: 1 };
        if source.len() > MOST_BYTES {
            let what = format!("the file has {} bytes, a flow may have {MOST_BYTES}", source.len());
            return Err(Invalid::one(start, what));
        }
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_depth: DEEPEST,
                max_nodes: MOST_NODES,
                max_events: 3 * MOST_NODES,
                max_aliases: 2_000,
                max_anchors: 2_000,
                max_documents: 1,
                max_recorded_anchor_bytes: 16 * MOST_BYTES,
                max_total_scalar_bytes: 16 * MOST_BYTES,
            },
            alias_limits: serde_saphyr::alias_limits! {
                max_total_replayed_events: MOST_REPLAYED,
                max_replay_stack_depth: 16,
            },
            strict_booleans: true,
            with_snippet: false,
        };
        serde_saphyr::from_str_with_options::<Node>(source, options).map_err(|error| unreadable(&error))
    }

    /// The text of a number or a truth value as it stands in the file.
    pub(super) fn written<'s>(&self, source: &'s str) -> Option<&'s str> {
        source.get(self.bytes.clone()?).map(str::trim)
    }

    /// The value without places.
    pub(super) fn json(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(truth) => Value::Bool(*truth),
            Content::Number(number) => Value::Number(number.clone()),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(list) => list.iter().map(Node::json).collect(),
            Content::Map(members) => Value::Object(
                members.iter().map(|(key, node)| (key.text.clone(), node.json())).collect::<Map<_, _>>(),
            ),
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self.content {
            Content::Null => "nothing",
            Content::Bool(_) => "true or false",
            Content::Number(_) => "a number",
            Content::Text(_) => "a text",
            Content::List(_) => "a list",
            Content::Map(_) => "members",
        }
    }
}

fn unreadable(error: &serde_saphyr::Error) -> Invalid {
    let (location, what) = crate::yaml::complaint(error);
    Invalid::one(place(location), what)
}

fn place(location: Location) -> Place {
    let bounded = |number: u64| u32::try_from(number).unwrap_or(u32::MAX).max(1);
    Place { line: bounded(location.line()), column: bounded(location.column()) }
}

fn bytes(location: Location) -> Option<Range<usize>> {
    let start = usize::try_from(location.span().byte_offset()?).ok()?;
    let length = usize::try_from(location.span().byte_len()?).ok()?;
    Some(start..start.checked_add(length)?)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, defined } = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self { place: place(referenced), content: value, bytes: bytes(defined) })
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::<String>::deserialize(deserializer)?;
        Ok(Self { place: place(referenced), text: value })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        Content::deserialize(deserializer)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Content, E> {
        Ok(Content::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Content, E> {
        Ok(Content::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Content, E> {
        Ok(Content::Number(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Content, E> {
        Number::from_f64(number).map(Content::Number).ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_i128<E: serde::de::Error>(self, _: i128) -> Result<Content, E> {
        Err(E::custom("the number is too large"))
    }

    fn visit_u128<E: serde::de::Error>(self, _: u128) -> Result<Content, E> {
        Err(E::custom("the number is too large"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Content, E> {
        Ok(Content::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = access.next_element()? {
            list.push(node);
        }
        Ok(Content::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = access.next_key::<Key>()? {
            if key.text.contains('\0') {
                return Err(A::Error::custom("a key contains a NUL character"));
            }
            members.push((key, access.next_value()?));
        }
        Ok(Content::Map(members))
    }
}
