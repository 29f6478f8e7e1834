//! What every part of the reader needs: faults, and values of a wanted kind.

use std::time::Duration;

use serde::de::DeserializeOwned;

use super::super::node::{Content, Key, Node};
use super::super::{Command, Fault, Place, Reference, Source, StepId};
use crate::project::parse_duration;

/// Collects what is wrong, and what is named and has to exist.
pub(in super::super) struct Reader<'s> {
    source: &'s str,
    pub(in super::super) faults: Vec<Fault>,
    pub(in super::super) mentions: Vec<Mention>,
}

/// Something that a step names.
#[derive(Debug, Clone)]
pub(in super::super) struct Mention {
    /// Which step names it, by its place in the list.
    pub(in super::super) by: usize,
    pub(in super::super) place: Place,
    pub(in super::super) named: Named,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Named {
    /// Its own id.
    Itself(StepId),
    /// A step that has to come before.
    Need(StepId),
    /// A step to go to.
    Target(StepId),
    /// The head of a reference.
    Head(String),
}

/// The members of a node, known by their keys.
pub(super) struct Members<'n> {
    pub(super) place: Place,
    entries: &'n [(Key, Node)],
}

impl<'n> Members<'n> {
    /// Finds a member. One without a value is as good as none.
    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        let found = self.entries.iter().find(|(known, _)| known.text == key).map(|(_, node)| node);
        found.filter(|node| !matches!(node.content, Content::Null))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'n (Key, Node)> {
        self.entries.iter()
    }
}

impl<'s> Reader<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { source, faults: Vec::new(), mentions: Vec::new() }
    }

    pub(in super::super) fn fault(&mut self, place: Place, what: impl Into<String>) {
        self.faults.push(Fault { place, what: what.into() });
    }

    pub(super) fn unexpected<T>(&mut self, node: &Node, wanted: &str) -> Option<T> {
        self.fault(node.place, format!("{wanted} is expected here, not {}", node.kind()));
        None
    }

    pub(super) fn mention(&mut self, by: usize, place: Place, named: Named) {
        self.mentions.push(Mention { by, place, named });
    }

    /// The members of a node whose keys are `known`; others are faults.
    pub(super) fn members<'n>(&mut self, node: &'n Node, what: &str, known: &[&str]) -> Option<Members<'n>> {
        let members = self.any_members(node, what)?;
        for (key, _) in members.iter().filter(|(key, _)| !known.contains(&key.text.as_str())) {
            let shown = key.text.escape_debug();
            let hint = match closest(&key.text, known) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("known are {}", known.join(", ")),
            };
            self.fault(key.place, format!("{what} has no key `{shown}`; {hint}"));
        }
        Some(members)
    }

    pub(super) fn any_members<'n>(&mut self, node: &'n Node, what: &str) -> Option<Members<'n>> {
        match &node.content {
            Content::Map(entries) => Some(Members { place: node.place, entries }),
            _ => self.unexpected(node, &format!("{what} with its keys")),
        }
    }

    pub(super) fn list<'n>(&mut self, node: &'n Node) -> &'n [Node] {
        match &node.content {
            Content::List(list) => list,
            _ => self.unexpected(node, "a list").unwrap_or_default(),
        }
    }

    pub(super) fn text(&mut self, node: &Node) -> Option<String> {
        match &node.content {
            Content::Text(text) if text.contains('\0') => {
                self.fault(node.place, "a text cannot contain a NUL character");
                None
            }
            Content::Text(text) => Some(text.clone()),
            _ => self.unexpected(node, "a text"),
        }
    }

    /// A text; a number or a truth value counts as it is written.
    pub(super) fn word(&mut self, node: &Node) -> Option<String> {
        match &node.content {
            Content::Number(_) | Content::Bool(_) => match node.written(self.source) {
                Some(written) => Some(written.to_owned()),
                None => self.unexpected(node, "a text in quotes"),
            },
            _ => self.text(node),
        }
    }

    /// The place of a character of a text. Where it is not written as it is read, with escapes or over several lines,
    /// it is the place of the whole.
    pub(super) fn within(&self, node: &Node, text: &str, offset: usize) -> Place {
        let written = node.written(self.source).unwrap_or_default();
        let quote = usize::from(written.starts_with(['"', '\'']));
        let column = u32::try_from(quote + offset).unwrap_or_default();
        if written.trim_matches(['"', '\'']) != text.trim_matches(['"', '\'']) {
            return node.place;
        }
        Place { column: node.place.column.saturating_add(column), ..node.place }
    }

    pub(super) fn words(&mut self, node: &Node) -> Vec<(Place, String)> {
        let list = self.list(node);
        list.iter().filter_map(|node| Some((node.place, self.word(node)?))).collect()
    }

    pub(super) fn flag(&mut self, node: &Node) -> Option<bool> {
        match node.content {
            Content::Bool(truth) => Some(truth),
            _ => self.unexpected(node, "true or false"),
        }
    }

    /// A whole number from `least` to `most`.
    pub(super) fn whole(&mut self, node: &Node, least: u64, most: u64) -> Option<u64> {
        let wanted = format!("a whole number from {least} to {most}");
        let Content::Number(number) = &node.content else { return self.unexpected(node, &wanted) };
        let found = number.as_u64().filter(|number| (least..=most).contains(number));
        if found.is_none() {
            self.fault(node.place, format!("{wanted} is expected here, not {number}"));
        }
        found
    }

    pub(super) fn count(&mut self, node: &Node, most: u32) -> Option<u32> {
        self.whole(node, 1, most.into()).and_then(|number| u32::try_from(number).ok())
    }

    /// Any number from `least` to `most`.
    pub(super) fn number(&mut self, node: &Node, least: f64, most: f64) -> Option<f64> {
        let wanted = format!("a number from {least} to {most}");
        let Content::Number(number) = &node.content else { return self.unexpected(node, &wanted) };
        let found = number.as_f64().filter(|number| (least..=most).contains(number));
        if found.is_none() {
            self.fault(node.place, format!("{wanted} is expected here, not {number}"));
        }
        found
    }

    pub(super) fn duration(&mut self, node: &Node) -> Option<Duration> {
        let text = self.word(node)?;
        let found = parse_duration(&text);
        if found.is_none() {
            let shown = text.escape_debug();
            self.fault(
                node.place,
                format!("`{shown}` is no duration; write `500ms`, `90s`, `5m`, `2h` or `1d`"),
            );
        }
        found
    }

    /// A duration that is longer than nothing.
    pub(super) fn limit(&mut self, node: &Node) -> Option<Duration> {
        let found = self.duration(node)?;
        if found.is_zero() {
            self.fault(node.place, "a time limit of nothing would end everything at once");
            return None;
        }
        Some(found)
    }

    pub(super) fn command(&mut self, node: &Node) -> Option<Command> {
        match &node.content {
            Content::Text(line) if line.trim().is_empty() => {
                self.fault(node.place, "the command is empty");
                None
            }
            Content::Text(_) => self.text(node).map(Command::Shell),
            Content::List(list) if list.is_empty() => {
                self.fault(node.place, "the command is empty");
                None
            }
            Content::List(_) => {
                let argv: Vec<String> = self.words(node).into_iter().map(|(_, word)| word).collect();
                if argv.first().is_some_and(String::is_empty) {
                    self.fault(node.place, "the command is empty");
                }
                Some(Command::Argv(argv))
            }
            Content::Bool(_) | Content::Number(_) => {
                let what = format!("a command is expected here, not {}; put it in quotes", node.kind());
                self.fault(node.place, what);
                None
            }
            _ => self.unexpected(node, "a line for the shell or a list of a program and its arguments"),
        }
    }

    pub(super) fn step_id(&mut self, node: &Node) -> Option<StepId> {
        let text = self.word(node)?;
        StepId::new(text).map_err(|error| self.fault(node.place, error.to_string())).ok()
    }

    /// A text is a reference; anything else is the value itself.
    pub(super) fn source_of(&mut self, by: usize, node: &Node) -> Option<Source> {
        let Content::Text(text) = &node.content else { return Some(Source::Literal(node.json())) };
        match text.parse::<Reference>() {
            Ok(reference) => {
                self.mention(by, node.place, Named::Head(reference.head().to_owned()));
                Some(Source::Reference(reference))
            }
            Err(error) => {
                self.fault(node.place, error.to_string());
                None
            }
        }
    }

    /// A value that another part of the library knows how to read.
    pub(super) fn typed<T: DeserializeOwned>(&mut self, node: &Node) -> Option<T> {
        serde_json::from_value(node.json()).map_err(|error| self.fault(node.place, error.to_string())).ok()
    }
}

/// Finds the word that was probably meant.
pub(in super::super) fn closest<'w>(word: &str, known: &[&'w str]) -> Option<&'w str> {
    let word: String = word.chars().take(64).collect::<String>().to_lowercase().replace('-', "_");
    similar::get_close_matches(word.as_str(), known, 1, 0.6).first().copied()
}
