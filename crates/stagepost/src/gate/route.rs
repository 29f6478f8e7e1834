//! What the five questions of route planning are about, as the original design hands it in.
//!
//! The structs mirror its shapes. Whatever else the data holds is kept and hashed with it, but not shown.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::reply::{Choice, Kind};

/// What `confirm_intent` shows: the query as it was understood.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Intent {
    pub(super) query: Query,
    /// Each skill, and whether it will be used.
    pub(super) skills_needed: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Query {
    pub(super) destinations: Vec<Value>,
    pub(super) distance: Option<Value>,
    pub(super) constraints: Constraints,
    pub(super) reference: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Constraints {
    pub(super) must_visit: Vec<Value>,
    pub(super) avoid: Vec<Value>,
    pub(super) surface_preferences: Vec<Value>,
}

/// What `present_findings` shows: what each skill found.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Findings {
    pub(super) skill_results: Vec<SkillResult>,
    pub(super) insights: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SkillResult {
    pub(super) skill_name: String,
    pub(super) summary: String,
}

/// What `select_route` shows: the candidates.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Selection {
    pub(super) candidates: Vec<Route>,
}

/// A route, as a candidate, selected, or final.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Route {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) distance: Option<Value>,
    pub(super) elevation: Option<Value>,
    pub(super) highlights: Vec<Value>,
    pub(super) stops: Vec<Value>,
    pub(super) warnings: Vec<Value>,
    pub(super) adjustments: Vec<Value>,
    pub(super) nutrition_plan: Option<Value>,
    pub(super) clothing_recommendations: Vec<Value>,
}

/// What `refine_route` shows: the route that was selected, and what would be changed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Refinement {
    #[serde(alias = "selected")]
    pub(super) selected_route: Route,
    #[serde(alias = "refinements")]
    pub(super) proposed_refinements: Vec<Value>,
}

/// What `present_final` shows: the whole route.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Final {
    #[serde(alias = "route")]
    pub(super) final_route: Route,
}

/// Says what of the data does not have the shape that the kind shows.
pub(super) fn check(kind: Kind, data: &Value) -> Result<(), serde_json::Error> {
    if data.is_null() {
        return Ok(());
    }
    match kind {
        Kind::ConfirmIntent => Intent::deserialize(data).map(drop),
        Kind::PresentFindings => Findings::deserialize(data).map(drop),
        Kind::SelectRoute => Selection::deserialize(data).map(drop),
        Kind::RefineRoute => Refinement::deserialize(data).map(drop),
        Kind::PresentFinal => Final::deserialize(data).map(drop),
        _ => Ok(()),
    }
}

/// The candidates of a selection as options: their ids are the candidates' ids.
pub(super) fn choices(data: &Value) -> Vec<Choice> {
    let selection = Selection::deserialize(data).unwrap_or_default();
    selection.candidates.iter().map(Route::choice).collect()
}

impl Route {
    fn choice(&self) -> Choice {
        let name = if self.name.is_empty() { &self.id } else { &self.name };
        let id = if self.id.is_empty() { name } else { &self.id };
        Choice::new(id, name).described(self.in_short())
    }

    /// Length, climbing and highlights on one line.
    pub(super) fn in_short(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.distance.as_ref().map(|value| measured(value, "km")));
        parts.extend(self.elevation.as_ref().map(|value| format!("{} up", measured(value, "m"))));
        parts.extend(self.highlights.iter().map(plain));
        parts.join(", ")
    }
}

/// A number with its unit; a text has its own.
pub(super) fn measured(value: &Value, unit: &str) -> String {
    match value {
        Value::Number(number) => format!("{number} {unit}"),
        Value::Object(range) => match (range.get("min"), range.get("max")) {
            (Some(min), Some(max)) if !min.is_null() && !max.is_null() => {
                format!("{} to {} {unit}", plain(min), plain(max))
            }
            (Some(min), _) if !min.is_null() => format!("at least {} {unit}", plain(min)),
            (_, Some(max)) if !max.is_null() => format!("at most {} {unit}", plain(max)),
            _ => plain(value),
        },
        other => plain(other),
    }
}

/// A value in words, on one line.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(members) => object(members),
    }
}

/// A stop reads as `water: Fountain (Main Square)`; anything else as `name: value` pairs.
fn object(members: &Map<String, Value>) -> String {
    let text = |name: &str| members.get(name).filter(|value| !value.is_null()).map(plain);
    if let (Some(what), Some(name)) = (text("type"), text("name")) {
        let place = text("location").map(|place| format!(" ({place})")).unwrap_or_default();
        return format!("{what}: {name}{place}");
    }
    if let (Some(name), 1) = (text("name"), members.len()) {
        return name;
    }
    let pairs = members.iter().map(|(name, value)| format!("{}: {}", spaced(name), plain(value)));
    pairs.collect::<Vec<_>>().join(", ")
}

/// `mustVisit` and `must_visit` as people write it: `must visit`.
pub(super) fn spaced(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        match c {
            '_' | '-' => words.push(' '),
            c if c.is_uppercase() && words.ends_with(char::is_lowercase) => {
                words.push(' ');
                words.extend(c.to_lowercase());
            }
            c => words.push(c),
        }
    }
    words
}
