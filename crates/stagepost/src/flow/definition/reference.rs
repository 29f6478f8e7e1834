//! References: where a value comes from, as a dotted path such as `draft.final` or `input.files.0`.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

/// A dotted path into what is known when a step begins: `input…`, `item…`, `index`, or a step's id and a member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference(Vec<String>);

/// More parts than this nobody writes by hand.
const MOST_PARTS: usize = 32;

impl Reference {
    /// Returns the first part: `input`, `item`, `index`, or the id of a step.
    pub fn head(&self) -> &str {
        &self.0[0]
    }

    /// Looks the value up; a part that is a number takes that element of a list. What is not there is `None`.
    pub fn find<'v>(&self, document: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(document, |value, part| match value {
            Value::Array(list) => list.get(part.parse::<usize>().ok()?),
            value => value.get(part),
        })
    }

    /// Says whether a character may be part of a reference.
    pub(super) fn may_contain(c: char) -> bool {
        c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
    }
}

impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        let invalid = |why| InvalidReference { text: text.chars().take(80).collect(), why };
        let parts: Vec<String> = text.split('.').map(str::to_owned).collect();
        if parts.iter().any(String::is_empty) {
            return Err(invalid("a part between its dots is empty"));
        }
        if !text.chars().all(Self::may_contain) {
            return Err(invalid("it may have letters, digits, `_`, `-` and dots only"));
        }
        if text.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
            && parts[0].parse::<f64>().is_ok()
        {
            return Err(invalid("it starts with a number"));
        }
        if parts.len() > MOST_PARTS {
            return Err(invalid("it has too many parts"));
        }
        Ok(Self(parts))
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// The error for text that is no reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no reference: {why}", text.escape_debug())]
pub struct InvalidReference {
    text: String,
    why: &'static str,
}

/// A value that is written in the file, or that is looked up when the step begins.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// It is written in the file.
    Literal(Value),
    /// It is looked up.
    Reference(Reference),
}

impl Source {
    /// Returns the value; `None` if it is looked up and not there.
    pub fn value(&self, document: &Value) -> Option<Value> {
        match self {
            Source::Literal(value) => Some(value.clone()),
            Source::Reference(reference) => reference.find(document).cloned(),
        }
    }

    pub(super) fn canonical(&self) -> Value {
        match self {
            Source::Literal(value) => json!({ "value": value }),
            Source::Reference(reference) => json!({ "from": reference.to_string() }),
        }
    }
}
