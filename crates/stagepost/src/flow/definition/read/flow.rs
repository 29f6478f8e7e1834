//! The top of the file.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::node::{Content, Node};
use super::super::{Flow, Place, Retention};
use super::Reader;

pub(in super::super) const FLOW: &[&str] =
    &["version", "name", "description", "env", "secrets", "input", "retention", "view", "steps"];
pub(in super::super) const RETENTION: &[&str] = &["keep_last"];

/// More steps than this were not written by hand, and a list of them helps nobody.
const MOST_STEPS: usize = 10_000;

/// What every step inherits.
pub(super) struct Inherited {
    pub(super) env: BTreeMap<String, String>,
    pub(super) secrets: Vec<String>,
}

impl Reader<'_> {
    /// Reads as much as makes sense; whether anything was wrong is told by the faults.
    pub(super) fn flow(&mut self, root: &Node) -> Flow {
        let mut flow = Flow {
            name: String::new(),
            description: String::new(),
            input: Value::Object(Map::new()),
            retention: Retention::default(),
            view: true,
            steps: Vec::new(),
        };
        let Some(members) = self.members(root, "a flow", FLOW) else { return flow };
        if let Some(node) = members.get("version") {
            self.whole(node, 1, 1);
        }
        match members.get("name") {
            Some(node) => flow.name = self.title(node).unwrap_or_default(),
            None => self.fault(members.place, "a flow needs a `name`"),
        }
        if let Some(node) = members.get("description") {
            flow.description = self.text(node).unwrap_or_default();
        }
        if let Some(node) = members.get("input") {
            flow.input = node.json();
        }
        if let Some(node) = members.get("retention") {
            flow.retention = self.retention(node);
        }
        if let Some(node) = members.get("view") {
            flow.view = self.flag(node).unwrap_or(true);
        }
        let inherited = Inherited {
            env: members.get("env").map(|node| self.env(node)).unwrap_or_default(),
            secrets: members.get("secrets").map(|node| self.secrets(node)).unwrap_or_default(),
        };
        match members.get("steps") {
            Some(node) => flow.steps = self.steps(node, &inherited),
            None => self.fault(members.place, "a flow needs `steps`"),
        }
        flow
    }

    fn steps(&mut self, node: &Node, inherited: &Inherited) -> Vec<super::super::Step> {
        let list = self.list(node);
        if matches!(&node.content, Content::List(list) if list.is_empty()) {
            self.fault(node.place, "there are no steps");
        }
        if list.len() > MOST_STEPS {
            self.fault(node.place, format!("there are {} steps, a flow may have {MOST_STEPS}", list.len()));
            return Vec::new();
        }
        let mut steps = Vec::with_capacity(list.len());
        for node in list {
            // A step that makes no sense leaves a gap; what is said about the others still counts.
            if let Some(step) = self.step(node, &steps, inherited) {
                steps.push(step);
            }
        }
        steps
    }

    fn retention(&mut self, node: &Node) -> Retention {
        let Some(members) = self.members(node, "`retention`", RETENTION) else { return Retention::default() };
        let keep_last = members.get("keep_last").and_then(|node| self.count(node, 1_000_000));
        keep_last.map_or_else(Retention::default, |keep_last| Retention { keep_last })
    }

    /// A name for people, on one line.
    pub(super) fn title(&mut self, node: &Node) -> Option<String> {
        let text = self.word(node)?;
        if text.trim().is_empty() || text.chars().any(char::is_control) || text.chars().count() > 200 {
            self.fault(node.place, "a name is one line of 1 to 200 characters");
            return None;
        }
        Some(text)
    }

    pub(super) fn env(&mut self, node: &Node) -> BTreeMap<String, String> {
        let Some(members) = self.any_members(node, "`env`") else { return BTreeMap::new() };
        let mut env = BTreeMap::new();
        for (key, node) in members.iter() {
            self.variable(key.place, &key.text);
            let value =
                if matches!(node.content, Content::Null) { Some(String::new()) } else { self.word(node) };
            if let Some(value) = value {
                env.insert(key.text.clone(), value);
            }
        }
        env
    }

    pub(super) fn secrets(&mut self, node: &Node) -> Vec<String> {
        let words = self.words(node);
        words.iter().for_each(|(place, word)| self.variable(*place, word));
        words.into_iter().map(|(_, word)| word).collect()
    }

    fn variable(&mut self, place: Place, name: &str) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_plain) || name.starts_with(|c: char| c.is_ascii_digit()) {
            let shown = name.escape_debug();
            self.fault(
                place,
                format!("`{shown}` is no name of a variable: letters, digits and `_` make one"),
            );
        } else if name.starts_with("STAGEPOST_") {
            self.fault(place, format!("`{name}` is set for every step and cannot be set here"));
        }
    }
}
