//! What is asked: words, data, options, and how much is at stake.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Error, Options, route};
use crate::model::{Hash, canonical, has_tokens, redact_text, redact_value};
use crate::reply::{self, Action, Choice, Kind, Language, Risk};

/// What is asked. An approval is bound to the hash of this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// The kind of question.
    pub kind: Kind,
    /// What leads up to the question, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The one question; empty means the usual one of the kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
    /// What the question is about.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
    /// What can be chosen; at `select_route` the candidates of the data, unless given.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "options")]
    #[schemars(with = "Vec<super::options::Given>")]
    pub options: Vec<Choice>,
    /// Whether several options may be chosen.
    #[serde(default)]
    pub multiple: bool,
    /// How much is at stake.
    #[serde(default)]
    pub risk: Risk,
    /// The exact words that agree where much is at stake; made from the hash unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phrase: Option<String>,
    /// The languages in which an answer counts.
    #[serde(default = "english")]
    pub languages: Vec<Language>,
    /// What an answer that is not understood does.
    #[serde(default)]
    pub unclear: Unclear,
    /// So often an asker asks again before it leaves the gate waiting.
    #[serde(default = "tries")]
    pub tries: u32,
}

/// What an answer that is not understood does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unclear {
    /// It is asked again.
    #[default]
    AskAgain,
    /// It is an answer: what a person says instead goes back to the run.
    Answers,
}

fn options<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Choice>, D::Error> {
    Options::deserialize(deserializer).map(|Options(choices)| choices)
}

fn english() -> Vec<Language> {
    vec![Language::English]
}

fn tries() -> u32 {
    3
}

/// More than this is a document: it belongs into an artifact, and its name into the question.
const MOST_BYTES: usize = 256 * 1024;
/// Nobody chooses among more.
const MOST_OPTIONS: usize = 1000;

impl Prompt {
    /// Makes a prompt of normal risk, in English, that says nothing yet.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            message: String::new(),
            question: String::new(),
            data: Value::Null,
            options: Vec::new(),
            multiple: false,
            risk: Risk::Normal,
            phrase: None,
            languages: english(),
            unclear: Unclear::AskAgain,
            tries: tries(),
        }
    }

    /// Sets the question.
    #[must_use]
    pub fn asking(mut self, question: impl Into<String>) -> Self {
        self.question = question.into();
        self
    }

    /// Sets what the question is about.
    #[must_use]
    pub fn about(mut self, data: Value) -> Self {
        self.data = data;
        self
    }

    /// Sets what can be chosen.
    #[must_use]
    pub fn among(mut self, options: Vec<Choice>) -> Self {
        self.options = options;
        self
    }

    /// Hashes what is asked. Languages and tries are not part of it. Of a prompt whose tokens are still in it, it is the
    /// hash of what is really asked: two questions that look the same without their tokens are two.
    pub fn shown(&self) -> Hash {
        Hash::of(canonical(&self.visible(self.phrase.as_deref())).as_bytes())
    }

    fn visible(&self, phrase: Option<&str>) -> Value {
        let Self { kind, message, question, data, options, multiple, risk, .. } = self;
        json!({
            "kind": kind, "message": message, "question": question, "data": data, "options": options,
            "multiple": multiple, "risk": risk, "phrase": phrase,
        })
    }

    /// Returns the one question, in words.
    pub fn question(&self) -> &str {
        if self.question.trim().is_empty() { usual(self.kind) } else { &self.question }
    }

    /// Fills in what can be derived and refuses what could not be answered. Tokens are still in it, for its hash.
    pub(crate) fn complete(mut self) -> Result<Self, Error> {
        let invalid = |what: String| Error::Invalid { what };
        route::check(self.kind, &self.data).map_err(|error| invalid(format!("the data: {error}")))?;
        if self.options.is_empty() && self.kind == Kind::SelectRoute {
            self.options = route::choices(&self.data);
        }
        let may_choose = self.options.is_empty() && self.kind == Kind::Choose;
        if let (true, Some(options)) = (may_choose, self.data.get("options")) {
            let read = Options::deserialize(options);
            self.options = read.map_err(|error| invalid(format!("the options in the data: {error}")))?.0;
        }
        self.options = Options::of(self.options).0;
        // Whoever says which words agree wants no others to.
        if self.phrase.is_some() && self.risk == Risk::Normal {
            self.risk = Risk::High;
        }
        if let Some(fault) = self.fault() {
            return Err(invalid(fault));
        }
        if let Some(what) = self.unseen() {
            return Err(Error::Unseen { what });
        }
        if self.risk == Risk::High && self.phrase.is_none() {
            let hash = Hash::of(canonical(&self.visible(None)).as_bytes()).to_string();
            let verb = if self.kind == Kind::Confirm { "confirm" } else { "approve" };
            self.phrase = Some(format!("{verb} {}", &hash[..4]));
        }
        Ok(self)
    }

    /// Takes out what looks like a token, to be stored and shown. An approval is bound to the hash from before.
    pub(super) fn without_tokens(&self) -> Self {
        let mut prompt = self.clone();
        redact_text(&mut prompt.message);
        redact_value(&mut prompt.data);
        prompt.options.iter_mut().for_each(|option| redact_text(&mut option.description));
        prompt
    }

    /// Names what a person must see to know what a yes or a choice means, and would not see without its tokens.
    fn unseen(&self) -> Option<String> {
        if has_tokens(&self.question) {
            return Some("the question".to_owned());
        }
        if self.phrase.as_deref().is_some_and(has_tokens) {
            return Some("the phrase that agrees".to_owned());
        }
        // What a step handed on has lost its tokens before: two that are left the same cannot be told apart.
        let is_left_the_same = |at: usize| {
            let label = &self.options[at].label;
            label.contains("***") && self.options[..at].iter().any(|other| other.label == *label)
        };
        let hides = |at: &usize| {
            let option = &self.options[*at];
            has_tokens(&option.id) || has_tokens(&option.label) || is_left_the_same(*at)
        };
        (0..self.options.len()).find(hides).map(|at| format!("option {}", at + 1))
    }

    /// Whether something is chosen, and not agreed to or said.
    fn chooses(&self) -> bool {
        matches!(self.kind, Kind::Choose | Kind::SelectRoute)
    }

    /// Whether several answers may be marked: nobody says yes and no at once.
    pub(super) fn takes_several(&self) -> bool {
        self.multiple && self.chooses()
    }

    fn fault(&self) -> Option<String> {
        let chooses = self.chooses();
        let unsafe_id = |choice: &&Choice| choice.id.is_empty() || choice.id.chars().any(char::is_control);
        if chooses && self.options.is_empty() {
            return Some("there is nothing to choose from".to_owned());
        }
        if !chooses && !self.options.is_empty() {
            return Some(format!("nothing is chosen at `{}`; `choose` has options", self.kind));
        }
        if let Some(choice) = self.options.iter().find(unsafe_id) {
            return Some(format!("`{}` cannot be the id of an option", choice.id.escape_debug()));
        }
        if self.options.len() > MOST_OPTIONS {
            return Some(format!("there are more than {MOST_OPTIONS} options"));
        }
        if self.risk == Risk::High && (chooses || self.kind == Kind::Input) {
            return Some(
                "only a yes can be asked for word by word: confirm the choice with a second gate".to_owned(),
            );
        }
        if self.phrase.is_some() && self.risk == Risk::Low {
            return Some("where only certain words agree, the risk is not low".to_owned());
        }
        if self.phrase.as_ref().is_some_and(|phrase| phrase.trim().is_empty()) {
            return Some("the words that agree are empty".to_owned());
        }
        if self.languages.is_empty() {
            return Some("no language is switched on".to_owned());
        }
        let size = canonical(&self.visible(None)).len();
        (size > MOST_BYTES).then(|| format!("it has {size} bytes, a question may have {MOST_BYTES}"))
    }

    /// Reads words as an answer to this.
    pub fn parse(&self, words: &str) -> reply::Reply {
        let question = reply::Question {
            kind: self.kind,
            text: Some(self.question()),
            options: &self.options,
            multiple: self.multiple,
            risk: self.risk,
            phrase: self.phrase.as_deref(),
            languages: &self.languages,
        };
        let mut reply = reply::parse(words, &question);
        if reply.action == Action::Refine && self.is_nearly_the_phrase(words) {
            reply.action = Action::Clarify;
            reply.because = "these are nearly the words that agree; only exactly those do".to_owned();
        }
        reply
    }

    /// Whether someone meant to type the exact words and slipped: that is asked again, and is no wish for a change.
    fn is_nearly_the_phrase(&self, words: &str) -> bool {
        let Some(phrase) = self.phrase.as_ref().filter(|_| self.risk == Risk::High) else { return false };
        let cut = |text: &str| -> Vec<String> {
            let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            words.map(str::to_lowercase).collect()
        };
        let (phrase, words) = (cut(phrase), cut(words));
        let said = phrase.iter().filter(|word| words.contains(word)).count();
        said == phrase.len() || (said > 0 && words.len() == phrase.len())
    }
}

/// The question of a kind that says nothing more special.
fn usual(kind: Kind) -> &'static str {
    match kind {
        Kind::Confirm => "Shall this be done?",
        Kind::Choose => "Which one shall it be?",
        Kind::Approve => "Do you approve this?",
        Kind::Input => "What shall it be?",
        Kind::ConfirmIntent => "Is this what you meant, and shall the research start?",
        Kind::PresentFindings => "Shall routes be generated from these findings?",
        Kind::SelectRoute => "Which route do you want?",
        Kind::RefineRoute => "Do you approve these refinements?",
        Kind::PresentFinal => "Do you approve this route, and shall the GPX file be generated?",
    }
}
