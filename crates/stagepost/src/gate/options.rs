//! Options as they are handed in: a label, or more about it.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::reply::Choice;

/// What can be chosen, read from a list of labels or of objects with `id`, `label` and `description`.
///
/// An option without an id answers to its label: that is what a reply returns. Ids are made unique.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options(pub Vec<Choice>);

/// An option as it is handed in.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Given {
    Label(String),
    Number(serde_json::Number),
    Whole {
        #[serde(default)]
        id: Option<Name>,
        #[serde(default, alias = "name", alias = "title")]
        label: String,
        #[serde(default)]
        description: String,
    },
}

/// An id may be a number; it is handed back as text.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Name {
    Text(String),
    Number(serde_json::Number),
}

impl From<Given> for Choice {
    fn from(given: Given) -> Self {
        match given {
            Given::Label(label) => Choice::new(label.clone(), label),
            Given::Number(number) => Choice::new(number.to_string(), number.to_string()),
            Given::Whole { id, label, description } => {
                let id = match id {
                    Some(Name::Text(id)) => id,
                    Some(Name::Number(id)) => id.to_string(),
                    None => label.clone(),
                };
                let label = if label.is_empty() { id.clone() } else { label };
                Choice { id, label, description }
            }
        }
    }
}

impl<'de> Deserialize<'de> for Options {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Vec::<Given>::deserialize(deserializer)?;
        Ok(Self::of(given.into_iter().map(Choice::from)))
    }
}

impl Options {
    /// Takes choices over and gives a second one of the same id another.
    pub fn of(choices: impl IntoIterator<Item = Choice>) -> Self {
        let mut options: Vec<Choice> = Vec::new();
        for mut choice in choices {
            let taken = |id: &str| options.iter().any(|other| other.id == id);
            if let Some(count) = taken(&choice.id).then_some(2..) {
                let wanted = choice.id.clone();
                let mut free = count.map(|count| format!("{wanted} ({count})")).filter(|id| !taken(id));
                choice.id = free.next().unwrap_or(wanted);
            }
            options.push(choice);
        }
        Self(options)
    }

    /// Reads a file of options: a JSON list, or one label per line.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        if text.trim_start().starts_with('[') {
            return serde_json::from_str(text);
        }
        let labels = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Ok(Self::of(labels.map(|label| Choice::new(label, label))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_objects_are_options() {
        let text =
            r#"["North", {"id": "s", "label": "South", "description": "warm"}, {"label": "North"}, 7]"#;
        let Options(read) = Options::read(text).unwrap();
        let expected = [
            Choice::new("North", "North"),
            Choice::new("s", "South").described("warm"),
            Choice::new("North (2)", "North"),
            Choice::new("7", "7"),
        ];
        assert_eq!(read, expected);
        let Options(lines) = Options::read("North\n\n  South \n").unwrap();
        assert_eq!(lines, [Choice::new("North", "North"), Choice::new("South", "South")]);
        assert!(Options::read("[1, {\"id\": []}]").is_err());
    }
}
