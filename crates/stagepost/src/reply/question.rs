//! What is asked: the kind of question, its choices, how much is at stake and which languages count.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a question; it decides which actions an answer can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// A yes-or-no question.
    Confirm,
    /// A choice among options.
    Choose,
    /// A proposal to approve, change or turn down.
    Approve,
    /// A question whose answer is any text.
    Input,
    /// Is this what you meant? (before research starts)
    ConfirmIntent,
    /// Is this enough to go on?
    PresentFindings,
    /// Which of these routes?
    SelectRoute,
    /// Shall these refinements be made?
    RefineRoute,
    /// Is this final?
    PresentFinal,
}

/// Every kind with its name and the camelCase name of the original design.
const NAMES: [(Kind, &str, &str); 9] = [
    (Kind::Confirm, "confirm", "confirm"),
    (Kind::Choose, "choose", "choose"),
    (Kind::Approve, "approve", "approve"),
    (Kind::Input, "input", "input"),
    (Kind::ConfirmIntent, "confirm_intent", "confirmIntent"),
    (Kind::PresentFindings, "present_findings", "presentFindings"),
    (Kind::SelectRoute, "select_route", "selectRoute"),
    (Kind::RefineRoute, "refine_route", "refineRoute"),
    (Kind::PresentFinal, "present_final", "presentFinal"),
];

impl Kind {
    /// Returns every kind, in the order of the documentation.
    pub fn all() -> impl Iterator<Item = Kind> {
        NAMES.iter().map(|(kind, ..)| *kind)
    }

    /// Returns the snake_case name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, name, _)| name)
    }

    /// The words such a question always says, whatever its text: repeating them adds nothing to a consent.
    pub(super) fn own_words(self) -> &'static str {
        match self {
            Kind::Confirm | Kind::Choose | Kind::Input => "",
            Kind::Approve => "approve proposal plan",
            Kind::ConfirmIntent => "confirm intent proceed start research plan",
            Kind::PresentFindings => "proceed generate routes findings",
            Kind::SelectRoute => "select route",
            Kind::RefineRoute => "approve refinements route",
            Kind::PresentFinal => "approve generate create write final route gpx file",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no kind of question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no kind of question")]
pub struct UnknownKind(String);

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = NAMES.iter().find(|(_, snake, camel)| text == *snake || text == *camel);
        found.map(|(kind, ..)| *kind).ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

/// One thing that can be chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// What a reply returns when this is chosen.
    pub id: String,
    /// What people see and call it.
    #[serde(default)]
    pub label: String,
    /// More words about it; they help to recognise it.
    #[serde(default)]
    pub description: String,
}

impl Choice {
    /// Makes a choice without a description.
    pub fn new(id: impl Into<String>, label: impl Into<String>) -> Self {
        Self { id: id.into(), label: label.into(), description: String::new() }
    }

    /// Adds a description.
    #[must_use]
    pub fn described(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }
}

/// How much is at stake.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// A lenient reading: a hedged or qualified yes ("I think so") is a yes.
    Low,
    /// Every word must agree.
    #[default]
    Normal,
    /// Only the exact words shown in the question are a consent.
    High,
}

/// A language a reply may be given in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub enum Language {
    /// English.
    #[serde(rename = "en")]
    English,
    /// Spanish.
    #[serde(rename = "es")]
    Spanish,
    /// French.
    #[serde(rename = "fr")]
    French,
    /// German.
    #[serde(rename = "de")]
    German,
}

impl Language {
    /// Every language there is a data file for.
    pub const ALL: [Language; 4] = [Language::English, Language::Spanish, Language::French, Language::German];

    /// Returns the two-letter code, such as `en`.
    pub fn code(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Spanish => "es",
            Language::French => "fr",
            Language::German => "de",
        }
    }

    /// Returns the language of a two-letter code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.code() == code)
    }
}

/// A question as the parser needs to know it.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Decides which actions are open.
    pub kind: Kind,
    /// The words that were asked, if known: an answer may repeat them.
    pub text: Option<&'a str>,
    /// What can be chosen.
    pub options: &'a [Choice],
    /// Whether several options may be chosen.
    pub multiple: bool,
    /// How much is at stake.
    pub risk: Risk,
    /// The exact words that consent. Where they are set, nothing else does: the risk is high then, unless it is said to
    /// be low.
    pub phrase: Option<&'a str>,
    /// The languages that count; in any other nothing is a consent.
    pub languages: &'a [Language],
}

impl<'a> Question<'a> {
    /// Makes a question of normal risk, in English, without text and options.
    pub fn new(kind: Kind) -> Self {
        let languages = &[Language::English];
        Self { kind, text: None, options: &[], multiple: false, risk: Risk::Normal, phrase: None, languages }
    }

    /// Whoever says which words agree wants no others to.
    pub(super) fn at_its_risk(self) -> Self {
        let exact = self.phrase.is_some() && self.risk == Risk::Normal;
        Self { risk: if exact { Risk::High } else { self.risk }, ..self }
    }

    /// Sets the words that were asked.
    #[must_use]
    pub fn asking(self, text: &'a str) -> Self {
        Self { text: Some(text), ..self }
    }

    /// Sets what can be chosen.
    #[must_use]
    pub fn among(self, options: &'a [Choice]) -> Self {
        Self { options, ..self }
    }

    /// Sets the languages that count.
    #[must_use]
    pub fn in_languages(self, languages: &'a [Language]) -> Self {
        Self { languages, ..self }
    }
}
