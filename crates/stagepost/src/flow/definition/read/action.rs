//! What is asked or refined at a step.

use super::super::node::{Content, Node};
use super::super::{Ask, Refine, Source, Target};
use super::reader::Members;
use super::{Named, Reader};
use crate::gate::{Options, Outcome, Prompt};
use crate::reply::{Action, Kind, Risk, open_actions};

pub(in super::super) const ASK: &[&str] = &[
    "kind",
    "message",
    "question",
    "data",
    "options",
    "multiple",
    "risk",
    "phrase",
    "languages",
    "unclear",
    "tries",
    "on",
    "expires",
];
pub(in super::super) const EXPIRES: &[&str] = &["after", "as"];
pub(in super::super) const REFINE: &[&str] = &[
    "planner",
    "judge",
    "validator",
    "input",
    "max_iterations",
    "approve_at",
    "soft_fail_at",
    "token_budget",
    "timeout",
];

impl Reader<'_> {
    pub(super) fn ask(&mut self, node: &Node, by: usize) -> Option<Ask> {
        let members = self.members(node, "`ask`", ASK)?;
        let kind = match members.get("kind") {
            Some(node) => self.kind(node)?,
            None => Kind::Confirm,
        };
        let mut prompt = Prompt::new(kind);
        self.words_of(&members, &mut prompt);
        let options = members.get("options").and_then(|node| self.options(node, by, &mut prompt));
        let ask = Ask {
            data: members.get("data").and_then(|node| self.source_of(by, node)),
            options,
            on: members.get("on").map(|node| self.transitions(node, kind, by)).unwrap_or_default(),
            expires: members.get("expires").and_then(|node| self.expires(node)),
            prompt,
        };
        self.check_choices(&members, &ask);
        Some(ask)
    }

    fn kind(&mut self, node: &Node) -> Option<Kind> {
        let text = self.text(node)?;
        let known: Vec<&str> = Kind::all().map(Kind::name).collect();
        text.parse().ok().or_else(|| self.no_such(node, &text, &known, ""))
    }

    fn words_of(&mut self, members: &Members<'_>, prompt: &mut Prompt) {
        let mut text = |key: &str| members.get(key).and_then(|node| self.text(node));
        prompt.message = text("message").unwrap_or_default();
        prompt.question = text("question").unwrap_or_default();
        prompt.phrase = text("phrase");
        if let Some(node) = members.get("multiple") {
            prompt.multiple = self.flag(node).unwrap_or_default();
        }
        if let Some(risk) = members.get("risk").and_then(|node| self.typed(node)) {
            prompt.risk = risk;
        }
        if let Some(languages) = members.get("languages").and_then(|node| self.typed(node)) {
            prompt.languages = languages;
        }
        if let Some(unclear) = members.get("unclear").and_then(|node| self.typed(node)) {
            prompt.unclear = unclear;
        }
        if let Some(tries) = members.get("tries").and_then(|node| self.count(node, 100)) {
            prompt.tries = tries;
        }
    }

    /// Options of the file go into the prompt; others are looked up later.
    fn options(&mut self, node: &Node, by: usize, prompt: &mut Prompt) -> Option<Source> {
        if let Content::List(_) = node.content {
            if let Some(Options(choices)) = self.typed(node) {
                prompt.options = choices;
            }
            return None;
        }
        match node.content {
            Content::Text(_) => self.source_of(by, node),
            _ => self.unexpected(node, "a list of options, or where it comes from,"),
        }
    }

    fn check_choices(&mut self, members: &Members<'_>, ask: &Ask) {
        let chooses = matches!(ask.prompt.kind, Kind::Choose | Kind::SelectRoute);
        let has_options = !ask.prompt.options.is_empty() || ask.options.is_some();
        if chooses && !has_options && ask.data.is_none() {
            self.fault(members.place, format!("`{}` needs `options` to choose from", ask.prompt.kind));
        }
        if let (false, Some(node)) = (chooses, members.get("options")) {
            self.fault(
                node.place,
                format!("nothing is chosen at `{}`; `choose` has options", ask.prompt.kind),
            );
        }
        if let (true, Some(node)) = (chooses && ask.prompt.risk == Risk::High, members.get("risk")) {
            self.fault(
                node.place,
                "only a yes can be asked for word by word: confirm the choice in a second step",
            );
        }
    }

    fn transitions(&mut self, node: &Node, kind: Kind, by: usize) -> Vec<(Action, Target)> {
        let Some(members) = self.any_members(node, "`on`") else { return Vec::new() };
        let open = open_actions(kind);
        let known: Vec<&str> = open.iter().map(|action| action.name()).collect();
        let mut transitions = Vec::new();
        for (key, node) in members.iter() {
            let action = open.iter().find(|action| action.name() == key.text);
            if action.is_none() {
                let shown = key.text.escape_debug();
                let what =
                    format!("nobody can answer `{shown}` at `{kind}`; answers are {}", known.join(", "));
                self.fault(key.place, what);
            }
            if let (Some(action), Some(target)) = (action, self.target(node, by)) {
                transitions.push((*action, target));
            }
        }
        transitions
    }

    fn target(&mut self, node: &Node, by: usize) -> Option<Target> {
        if self.word(node)? == Target::END {
            return Some(Target::End);
        }
        let id = self.step_id(node)?;
        self.mention(by, node.place, Named::Target(id.clone()));
        Some(Target::Step(id))
    }

    fn expires(&mut self, node: &Node) -> Option<(std::time::Duration, Outcome)> {
        let members = self.members(node, "`expires`", EXPIRES)?;
        let Some(after) = members.get("after") else {
            self.fault(members.place, "`expires` needs `after`: how long to wait");
            return None;
        };
        let outcome = members.get("as").and_then(|node| self.typed(node)).unwrap_or_default();
        Some((self.limit(after)?, outcome))
    }

    pub(super) fn refine(&mut self, node: &Node, by: usize) -> Option<Refine> {
        let members = self.members(node, "`refine`", REFINE)?;
        for key in ["planner", "judge"] {
            if members.get(key).is_none() {
                self.fault(members.place, format!("`refine` needs a `{key}`"));
            }
        }
        let mut command = |key: &str| members.get(key).and_then(|node| self.command(node));
        let (planner, judge, validator) = (command("planner"), command("judge"), command("validator"));
        let mut score = |key: &str| members.get(key).and_then(|node| self.number(node, 0.0, 1_000_000.0));
        let (approve_at, soft_fail_at) =
            (score("approve_at").unwrap_or(7.0), score("soft_fail_at").unwrap_or(5.0));
        if approve_at < soft_fail_at {
            self.fault(members.place, "`approve_at` is less than `soft_fail_at`");
        }
        Some(Refine {
            input: members.get("input").and_then(|node| self.source_of(by, node)),
            max_iterations: members
                .get("max_iterations")
                .and_then(|node| self.count(node, 1000))
                .unwrap_or(3),
            approve_at,
            soft_fail_at,
            token_budget: members.get("token_budget").and_then(|node| self.whole(node, 1, u64::MAX)),
            timeout: members.get("timeout").and_then(|node| self.limit(node)),
            validator,
            planner: planner?,
            judge: judge?,
        })
    }
}
