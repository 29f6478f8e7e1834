//! What was understood: an action, its details, and why.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a reply asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// Yes, go on.
    Confirm,
    /// No.
    Reject,
    /// Not understood, or nothing a decision can rest on: ask again.
    Clarify,
    /// Takes one or several of the options.
    Select,
    /// Wants something changed.
    Refine,
    /// Yes to a proposal.
    Approve,
    /// Wants more: information, explanation, other options.
    RequestMore,
    /// Wants to return to an earlier point.
    Back,
    /// Wants to stop altogether.
    Cancel,
}

impl Action {
    /// Returns the snake_case name.
    pub fn name(self) -> &'static str {
        match self {
            Action::Confirm => "confirm",
            Action::Reject => "reject",
            Action::Clarify => "clarify",
            Action::Select => "select",
            Action::Refine => "refine",
            Action::Approve => "approve",
            Action::RequestMore => "request_more",
            Action::Back => "back",
            Action::Cancel => "cancel",
        }
    }

    /// Whether something may be done because of this answer without asking further.
    pub fn is_consent(self) -> bool {
        matches!(self, Action::Confirm | Action::Approve)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What belongs to an action.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Details {
    /// The ids of the chosen options, in the order of the options.
    pub option_ids: Vec<String>,
    /// The person's own words: the change they want, what they asked, what was not understood.
    pub text: Option<String>,
    /// What more is wanted about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<String>,
    /// Where to go back to, in the person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_to: Option<String>,
    /// What an unclear reply could have meant: actions, or ids of options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub could_mean: Vec<String>,
}

/// How a reply was understood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// What it asks for.
    pub action: Action,
    /// What belongs to that.
    pub details: Details,
    /// From 0 to 1: how plainly it was said. It never makes a consent out of anything.
    pub confidence: f32,
    /// Why it was read so, for people.
    pub because: String,
}

impl Reply {
    /// Makes a reply without details.
    pub(super) fn new(action: Action, confidence: f32, because: impl Into<String>) -> Self {
        Self { action, details: Details::default(), confidence, because: because.into() }
    }

    /// Makes a reply that has to be asked again, with what it could have meant.
    pub(super) fn clarify(because: impl Into<String>, could_mean: Vec<String>) -> Self {
        let details = Details { could_mean, ..Details::default() };
        Self { action: Action::Clarify, details, confidence: 0.3, because: because.into() }
    }

    /// Adds the person's own words.
    pub(super) fn with_text(mut self, text: impl Into<String>) -> Self {
        self.details.text = Some(text.into());
        self
    }
}
