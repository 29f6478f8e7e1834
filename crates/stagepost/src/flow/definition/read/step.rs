//! One step of the file.

use super::super::node::{Content, Node};
use super::super::{Action, Condition, Effects, ForEach, OnFailure, Output, Retry, Step, StepId};
use super::flow::Inherited;
use super::reader::{Members, closest};
use super::{Named, Reader};
use crate::model::{ArtifactName, RepoPath};

pub(in super::super) const STEP: &[&str] = &[
    "id",
    "name",
    "description",
    "run",
    "ask",
    "refine",
    "needs",
    "inputs",
    "outputs",
    "env",
    "secrets",
    "cwd",
    "timeout",
    "retry",
    "if",
    "on_failure",
    "snapshot",
    "for_each",
    "effects",
    "verify",
];
pub(in super::super) const OUTPUT: &[&str] = &["name", "path"];
pub(in super::super) const RETRY: &[&str] = &["attempts", "backoff", "factor", "on_exit"];
pub(in super::super) const FOR_EACH: &[&str] = &["list", "side_by_side"];
pub(in super::super) const ON_FAILURE: &[&str] = &["goto"];

/// What only a program that is run can have.
const OF_RUN: &[&str] = &["for_each", "verify", "retry", "cwd", "outputs", "inputs"];

impl Reader<'_> {
    pub(super) fn step(&mut self, node: &Node, before: &[Step], inherited: &Inherited) -> Option<Step> {
        let members = self.members(node, "a step", STEP)?;
        let by = before.len();
        let id = self.own_id(&members, by);
        let action = self.action(&members, by);
        self.fit(&members, action.as_ref());
        let mut env = inherited.env.clone();
        env.extend(members.get("env").map(|node| self.env(node)).unwrap_or_default());
        let mut secrets = inherited.secrets.clone();
        secrets.extend(members.get("secrets").map(|node| self.secrets(node)).unwrap_or_default());
        secrets.sort();
        secrets.dedup();
        if let (Some(node), Some(name)) =
            (members.get("env"), secrets.iter().find(|name| env.contains_key(*name)))
        {
            self.fault(node.place, format!("`{name}` is a secret and cannot be written here"));
        }
        let needs = match members.get("needs") {
            Some(node) => self.needs(node, by),
            None => before.last().map(|step| step.id.clone()).into_iter().collect(),
        };
        let step = Step {
            name: members.get("name").and_then(|node| self.title(node)).unwrap_or_default(),
            description: members.get("description").and_then(|node| self.text(node)).unwrap_or_default(),
            needs,
            inputs: members.get("inputs").map(|node| self.paths(node)).unwrap_or_default(),
            outputs: members.get("outputs").map(|node| self.outputs(node)).unwrap_or_default(),
            env,
            secrets,
            cwd: members.get("cwd").and_then(|node| self.folder(node)),
            timeout: members.get("timeout").and_then(|node| self.limit(node)),
            retry: members.get("retry").map(|node| self.retry(node)).unwrap_or_default(),
            condition: members.get("if").and_then(|node| self.condition(node, by)),
            on_failure: members.get("on_failure").map(|node| self.on_failure(node, by)).unwrap_or_default(),
            snapshot: members.get("snapshot").and_then(|node| self.flag(node)).unwrap_or_default(),
            for_each: members.get("for_each").and_then(|node| self.for_each(node, by)),
            effects: members.get("effects").and_then(|node| self.effects(node)).unwrap_or_default(),
            verify: members.get("verify").and_then(|node| self.command(node)),
            id: id?,
            action: action?,
        };
        Some(Step { name: if step.name.is_empty() { step.id.to_string() } else { step.name }, ..step })
    }

    fn own_id(&mut self, members: &Members<'_>, by: usize) -> Option<StepId> {
        let Some(node) = members.get("id") else {
            self.fault(members.place, "a step needs an `id`");
            return None;
        };
        let id = self.step_id(node)?;
        self.mention(by, node.place, Named::Itself(id.clone()));
        Some(id)
    }

    fn action(&mut self, members: &Members<'_>, by: usize) -> Option<Action> {
        let given: Vec<&Node> = ["run", "ask", "refine"].iter().filter_map(|key| members.get(key)).collect();
        if let [_, second, ..] = given.as_slice() {
            self.fault(second.place, "a step has only one of `run`, `ask` and `refine`");
        }
        if let Some(node) = members.get("run") {
            return self.command(node).map(Action::Run);
        }
        if let Some(node) = members.get("ask") {
            return self.ask(node, by).map(|ask| Action::Ask(Box::new(ask)));
        }
        if let Some(node) = members.get("refine") {
            return self.refine(node, by).map(|refine| Action::Refine(Box::new(refine)));
        }
        self.fault(members.place, "a step needs `run`, `ask` or `refine`");
        None
    }

    /// A key that would have no effect is a mistake, not decoration.
    fn fit(&mut self, members: &Members<'_>, action: Option<&Action>) {
        let Some(Action::Ask(_)) = action else { return };
        for key in OF_RUN {
            if let Some(node) = members.get(key) {
                self.fault(node.place, format!("`{key}` has no meaning where a person is asked"));
            }
        }
        if let Some(node) = members.get("timeout") {
            self.fault(node.place, "how long to wait for a person is said with `expires` in `ask`");
        }
    }

    fn needs(&mut self, node: &Node, by: usize) -> Vec<StepId> {
        let mut needs = Vec::new();
        for node in self.list(node) {
            let Some(id) = self.step_id(node) else { continue };
            self.mention(by, node.place, Named::Need(id.clone()));
            if needs.contains(&id) {
                self.fault(node.place, format!("`{id}` is needed twice"));
            } else {
                needs.push(id);
            }
        }
        needs
    }

    fn paths(&mut self, node: &Node) -> Vec<String> {
        let list = self.list(node);
        list.iter().filter_map(|node| self.path(node)).collect()
    }

    /// A path that can only mean a place within the project.
    fn path(&mut self, node: &Node) -> Option<String> {
        let text = self.word(node)?;
        let path = text.trim_start_matches("./").trim_end_matches('/');
        if path.is_empty() || !RepoPath::from(path).is_safe() || path.chars().any(char::is_control) {
            let shown = text.escape_debug();
            self.fault(node.place, format!("`{shown}` is no path within the project"));
            return None;
        }
        Some(path.to_owned())
    }

    fn folder(&mut self, node: &Node) -> Option<String> {
        match &node.content {
            Content::Text(text) if matches!(text.as_str(), "." | "./") => None,
            _ => self.path(node),
        }
    }

    fn outputs(&mut self, node: &Node) -> Vec<Output> {
        let mut outputs: Vec<Output> = Vec::new();
        for node in self.list(node) {
            let Some(output) = self.output(node) else { continue };
            if outputs.iter().any(|other| other.name == output.name) {
                self.fault(node.place, format!("`{}` is named twice", output.name));
            } else {
                outputs.push(output);
            }
        }
        outputs
    }

    fn output(&mut self, node: &Node) -> Option<Output> {
        let (path, name) = match &node.content {
            Content::Map(_) => {
                let members = self.members(node, "an output", OUTPUT)?;
                let Some(path) = members.get("path") else {
                    self.fault(node.place, "an output needs a `path`");
                    return None;
                };
                (path, members.get("name"))
            }
            _ => (node, None),
        };
        let path = self.path(path)?;
        let text = name.map_or_else(|| Some(path.clone()), |name| self.text(name))?;
        match ArtifactName::new(text) {
            Ok(name) => Some(Output { name, path }),
            Err(error) => {
                let hint = if name.is_none() { "; name it with `{ name: …, path: … }`" } else { "" };
                self.fault(node.place, format!("{error}{hint}"));
                None
            }
        }
    }

    fn retry(&mut self, node: &Node) -> Retry {
        let usual = Retry::default();
        let Some(members) = self.members(node, "`retry`", RETRY) else { return usual };
        let attempts = members.get("attempts").and_then(|node| self.count(node, 1000));
        if members.get("attempts").is_none() {
            self.fault(members.place, "`retry` needs `attempts`: how often it is tried in all");
        }
        Retry {
            attempts: attempts.unwrap_or(usual.attempts),
            backoff: members.get("backoff").and_then(|node| self.duration(node)).unwrap_or(usual.backoff),
            factor: members
                .get("factor")
                .and_then(|node| self.number(node, 1.0, 100.0))
                .unwrap_or(usual.factor),
            on_exit: members.get("on_exit").map(|node| self.exit_codes(node)).unwrap_or_default(),
        }
    }

    fn exit_codes(&mut self, node: &Node) -> Vec<i32> {
        let list = self.list(node);
        list.iter()
            .filter_map(|node| self.whole(node, 1, 255))
            .filter_map(|code| i32::try_from(code).ok())
            .collect()
    }

    fn condition(&mut self, node: &Node, by: usize) -> Option<Condition> {
        let text = match node.content {
            Content::Bool(truth) => truth.to_string(),
            _ => self.text(node)?,
        };
        match Condition::parse(&text) {
            Ok(condition) => {
                for reference in condition.references() {
                    self.mention(by, node.place, Named::Head(reference.head().to_owned()));
                }
                Some(condition)
            }
            Err(error) => {
                let place = self.within(node, &text, error.offset);
                self.fault(place, format!("the condition cannot be read: {error}"));
                None
            }
        }
    }

    fn on_failure(&mut self, node: &Node, by: usize) -> OnFailure {
        if let Content::Map(_) = node.content {
            let goto = self.members(node, "`on_failure`", ON_FAILURE).and_then(|members| members.get("goto"));
            let Some(goto) = goto else {
                self.fault(node.place, "`on_failure` with keys needs `goto`");
                return OnFailure::Stop;
            };
            let Some(id) = self.step_id(goto) else { return OnFailure::Stop };
            self.mention(by, goto.place, Named::Target(id.clone()));
            return OnFailure::GoTo(id);
        }
        match self.text(node).as_deref() {
            Some("continue") => OnFailure::Continue,
            Some("rollback") => OnFailure::Rollback,
            Some("stop") | None => OnFailure::Stop,
            Some(other) => {
                let known = ["stop", "continue", "rollback"];
                self.no_such(node, other, &known, ", or `{ goto: STEP }`").unwrap_or_default()
            }
        }
    }

    fn for_each(&mut self, node: &Node, by: usize) -> Option<ForEach> {
        let members = self.members(node, "`for_each`", FOR_EACH)?;
        let Some(list) = members.get("list") else {
            self.fault(members.place, "`for_each` needs a `list`");
            return None;
        };
        if !matches!(list.content, Content::List(_) | Content::Text(_)) {
            return self.unexpected(list, "a list, or where it comes from (such as `collect.files`),");
        }
        Some(ForEach {
            list: self.source_of(by, list)?,
            side_by_side: members.get("side_by_side").and_then(|node| self.count(node, 256)).unwrap_or(1),
        })
    }

    fn effects(&mut self, node: &Node) -> Option<Effects> {
        match self.text(node)?.as_str() {
            "none" => Some(Effects::None),
            "idempotent" => Some(Effects::Idempotent),
            "once" => Some(Effects::Once),
            other => self.no_such(node, other, &["none", "idempotent", "once"], ""),
        }
    }

    pub(super) fn no_such<T>(&mut self, node: &Node, word: &str, known: &[&str], more: &str) -> Option<T> {
        let meant =
            closest(word, known).map(|close| format!("; did you mean `{close}`?")).unwrap_or_default();
        let shown: String = word.escape_debug().take(80).collect();
        self.fault(node.place, format!("`{shown}` is not one of {}{more}{meant}", known.join(", ")));
        None
    }
}
