//! Reading a journey from a file, JSON or YAML, and telling where it is wrong.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::{Journey, Run, Task, TimeLimit, route};

/// A larger file is no description of a journey.
const MOST_BYTES: usize = 1 << 20;

/// A journey as a file describes it: stop by stop, or a built-in one with the commands for its work.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum File {
    /// Stop by stop.
    Whole(Journey),
    /// A built-in one.
    BuiltIn(BuiltIn),
}

/// A built-in journey with its commands.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BuiltIn {
    /// Which one: `route`.
    journey: String,
    /// What to call it instead.
    #[serde(default)]
    name: Option<String>,
    /// The command for each stop where something is done.
    work: BTreeMap<String, Run>,
    /// Whether the files are kept with every question, so that going back can put them back.
    #[serde(default)]
    files: bool,
    /// What the work gets to begin with.
    #[serde(default)]
    input: Value,
    /// How long a command may take.
    #[serde(default)]
    timeout: Option<TimeLimit>,
}

/// A place in a file; both count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// The error for a description that cannot be read or leads nowhere.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// It cannot be read.
    #[error("the journey cannot be read: {}{what}", shown(place))]
    Unreadable {
        /// Where.
        place: Option<Place>,
        /// Why.
        what: String,
    },
    /// It leads nowhere.
    #[error("the journey cannot be travelled: {}{what}", shown(place))]
    Leads {
        /// Where, if it was read from a file.
        place: Option<Place>,
        /// Why.
        what: String,
    },
}

fn shown(place: &Option<Place>) -> String {
    place.map_or_else(String::new, |place| format!("{place}: "))
}

impl Journey {
    /// Reads a journey from JSON or YAML and checks that every answer leads somewhere.
    pub fn read(text: &str) -> Result<Self, Invalid> {
        #[derive(Deserialize)]
        struct Head {
            journey: Option<IgnoredAny>,
        }
        if text.len() > MOST_BYTES {
            let what = format!("it has {} bytes, a journey may have {MOST_BYTES}", text.len());
            return Err(Invalid::Unreadable { place: None, what });
        }
        let journey = match parse::<Head>(text)?.journey {
            None => parse::<Journey>(text)?,
            Some(_) => parse::<BuiltIn>(text)?.build(text)?,
        };
        if let Some(fault) = journey.first_fault() {
            let place = fault.stop.and_then(|stop| place_of(text, "id", &stop));
            return Err(Invalid::Leads { place, what: fault.what });
        }
        journey.checked()
    }
}

impl BuiltIn {
    fn build(self, text: &str) -> Result<Journey, Invalid> {
        let mut journey = match self.journey.as_str() {
            "route" => route(),
            other => {
                let what = format!("there is no journey `{}`", other.escape_debug());
                return Err(Invalid::Leads { place: place_of(text, "journey", other), what });
            }
        };
        journey.name = self.name.unwrap_or(journey.name);
        (journey.files, journey.input, journey.timeout) = (self.files, self.input, self.timeout);
        for (id, command) in self.work {
            let stop = journey.stops.iter_mut().find(|stop| stop.id == id).map(|stop| &mut stop.task);
            let Some(Task::Run { run, .. }) = stop else {
                let what = format!("nothing is done at `{}`", id.escape_debug());
                return Err(Invalid::Leads { place: place_of(text, &id, ""), what });
            };
            *run = command;
        }
        Ok(journey)
    }
}

/// Reads JSON where the text begins like it, YAML otherwise. JSON is read as JSON because not every escape of it is one
/// of YAML.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Invalid> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| {
            let place = Place { line: error.line() as u64, column: error.column() as u64 };
            let suffix = format!(" at line {} column {}", place.line, place.column);
            unreadable(place, &error.to_string(), &suffix)
        });
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: 64, max_documents: 1, max_nodes: 100_000 },
        // `yes` and `no` are words that people answer with, `on` is a member of a stop.
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let (location, what) = crate::yaml::complaint(&error);
        unreadable(Place { line: location.line(), column: location.column() }, &what, "")
    })
}

fn unreadable(place: Place, message: &str, suffix: &str) -> Invalid {
    let what = message.strip_suffix(suffix).unwrap_or(message).to_owned();
    Invalid::Unreadable { place: Some(place).filter(|place| place.line > 0), what }
}

/// Looks for where a member has a value, in JSON or YAML.
fn place_of(text: &str, member: &str, value: &str) -> Option<Place> {
    let quotes = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ':' | ',' | '{' | '}' | '[' | ']');
    let find = |line: &str| {
        line.match_indices(member).find_map(|(at, _)| {
            let rest = &line[at + member.len()..];
            let told = rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':');
            let after = rest.trim_start_matches(quotes);
            let whole = after
                .strip_prefix(value)
                .is_some_and(|end| value.is_empty() || end.is_empty() || end.starts_with(quotes));
            let column = if value.is_empty() { at } else { line.len() - after.len() };
            (told && whole).then(|| line[..column].chars().count() as u64 + 1)
        })
    };
    let mut lines = text.lines().zip(1..);
    lines.find_map(|(line, number)| Some(Place { line: number, column: find(line)? }))
}
