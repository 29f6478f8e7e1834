//! What a person reads: a title, sections of facts, one question, and what may be answered.
//!
//! A message is structure, not text. Its parts are plain texts that come from anywhere; only the renderers (Markdown
//! here, a terminal in `terminal`, JSON in `shapes`) decide what is a heading, and they let no part look like one.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::route::{Final, Findings, Intent, Refinement, Route, Selection, measured, plain, spaced};
use super::says::say;
use super::{Gate, Prompt};
use crate::reply::{Action, Kind, Risk, open_actions};

/// What a person reads at a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// What this is about, in two or three words.
    pub title: String,
    /// What leads up to the question.
    pub intro: String,
    /// The facts.
    pub sections: Vec<Section>,
    /// What was not understood the last time, and what it could have meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misunderstood: Option<String>,
    /// The one question.
    pub question: String,
    /// What may be answered.
    pub answers: Vec<Possible>,
}

/// Facts under a heading of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Section {
    /// The heading.
    pub heading: String,
    /// One fact per bullet.
    pub bullets: Vec<String>,
}

/// Something that may be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Possible {
    /// What it does.
    pub action: Action,
    /// The id of the option, where it takes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// What to say.
    pub say: String,
    /// What that means.
    pub means: String,
}

impl Message {
    /// Composes what a person reads at a gate.
    pub fn of(gate: &Gate) -> Self {
        let mut message = Self::of_prompt(&gate.prompt);
        message.misunderstood = gate.unclear.last().map(|attempt| {
            let could = could_mean(&gate.prompt, &attempt.reply.details.could_mean);
            format!("“{}” was not understood: {}{could}", shortened(&attempt.words), attempt.reply.because)
        });
        message
    }

    /// Composes what a person reads before anyone answered.
    pub fn of_prompt(prompt: &Prompt) -> Self {
        let mut sections = sections(prompt);
        sections.retain(|section| !section.bullets.is_empty());
        Self {
            title: title(prompt.kind).to_owned(),
            intro: prompt.message.clone(),
            sections,
            misunderstood: None,
            question: prompt.question().to_owned(),
            answers: answers(prompt),
        }
    }

    /// Writes the message as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n", escaped(&self.title));
        for line in self.intro.lines().filter(|line| !line.trim().is_empty()) {
            text.push_str(&format!("\n{}\n", escaped(line)));
        }
        for section in &self.sections {
            text.push_str(&format!("\n## {}\n\n", escaped(&section.heading)));
            section.bullets.iter().for_each(|bullet| text.push_str(&format!("- {}\n", escaped(bullet))));
        }
        if let Some(misunderstood) = &self.misunderstood {
            text.push_str(&format!("\n> {}\n", escaped(misunderstood)));
        }
        text.push_str(&format!("\n**{}**\n\n", escaped(&self.question)));
        for answer in &self.answers {
            text.push_str(&format!("- {}: {}\n", escaped(&answer.say), escaped(&answer.means)));
        }
        text
    }
}

/// What something unclear could have meant, in words.
fn could_mean(prompt: &Prompt, could: &[String]) -> String {
    let label = |id: &String| {
        let option = prompt.options.iter().find(|option| option.id == *id);
        option.map_or_else(|| spaced(id), |option| option.label.clone())
    };
    match could {
        [] => String::new(),
        some => format!("; did you mean {}?", some.iter().map(label).collect::<Vec<_>>().join(" or ")),
    }
}

fn shortened(words: &str) -> String {
    let mut shown: String = words.trim().chars().take(80).collect();
    if shown.len() < words.trim().len() {
        shown.push('…');
    }
    shown
}

fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Confirm => "Confirm",
        Kind::Choose => "Choose",
        Kind::Approve => "Approve",
        Kind::Input => "Answer",
        Kind::ConfirmIntent => "Confirm intent",
        Kind::PresentFindings => "Findings",
        Kind::SelectRoute => "Select a route",
        Kind::RefineRoute => "Refine the route",
        Kind::PresentFinal => "Final route",
    }
}

fn sections(prompt: &Prompt) -> Vec<Section> {
    let data = &prompt.data;
    match prompt.kind {
        Kind::ConfirmIntent => intent(&Intent::deserialize(data).unwrap_or_default()),
        Kind::PresentFindings => findings(&Findings::deserialize(data).unwrap_or_default()),
        Kind::SelectRoute => {
            let selection = Selection::deserialize(data).unwrap_or_default();
            selection.candidates.iter().enumerate().map(|(index, route)| candidate(index, route)).collect()
        }
        Kind::RefineRoute => refinement(&Refinement::deserialize(data).unwrap_or_default()),
        Kind::PresentFinal => whole_route(&Final::deserialize(data).unwrap_or_default().final_route),
        _ => facts(data),
    }
}

fn section(heading: impl Into<String>, bullets: Vec<String>) -> Section {
    Section { heading: heading.into(), bullets }
}

fn each(values: &[Value]) -> Vec<String> {
    values.iter().map(plain).collect()
}

fn intent(intent: &Intent) -> Vec<Section> {
    let query = &intent.query;
    let mut understood = Vec::new();
    let mut fact = |name: &str, value: Option<String>| {
        understood.extend(value.filter(|value| !value.is_empty()).map(|value| format!("{name}: {value}")));
    };
    fact("Destinations", Some(each(&query.destinations).join(", ")));
    fact("Distance", query.distance.as_ref().map(|distance| measured(distance, "km")));
    fact("Must visit", Some(each(&query.constraints.must_visit).join(", ")));
    fact("Avoid", Some(each(&query.constraints.avoid).join(", ")));
    fact("Surface", Some(each(&query.constraints.surface_preferences).join(", ")));
    fact("Reference", query.reference.as_ref().filter(|reference| !reference.is_null()).map(plain));
    let used = intent.skills_needed.iter().filter(|(_, needed)| needed.as_bool() != Some(false));
    let skills = used.map(|(name, _)| spaced(name)).collect();
    vec![section("What was understood", understood), section("What will be researched", skills)]
}

fn findings(findings: &Findings) -> Vec<Section> {
    let named = findings.skill_results.iter();
    let results = named.map(|result| format!("{}: {}", spaced(&result.skill_name), result.summary));
    vec![section("What was found", results.collect()), section("Insights", each(&findings.insights))]
}

fn candidate(index: usize, route: &Route) -> Section {
    section(format!("{}. {}", index + 1, route.name), described(route))
}

fn described(route: &Route) -> Vec<String> {
    let mut bullets = Vec::new();
    bullets.extend(route.distance.as_ref().map(|value| format!("Distance: {}", measured(value, "km"))));
    bullets.extend(route.elevation.as_ref().map(|value| format!("Elevation: {}", measured(value, "m"))));
    let mut list = |name: &str, values: &[Value]| {
        if !values.is_empty() {
            bullets.push(format!("{name}: {}", each(values).join(", ")));
        }
    };
    list("Highlights", &route.highlights);
    list("Stops", &route.stops);
    list("Warnings", &route.warnings);
    bullets
}

fn refinement(refinement: &Refinement) -> Vec<Section> {
    let route = &refinement.selected_route;
    let heading = if route.name.is_empty() { "The route".to_owned() } else { route.name.clone() };
    vec![
        section(heading, described(route)),
        section("Proposed refinements", each(&refinement.proposed_refinements)),
    ]
}

fn whole_route(route: &Route) -> Vec<Section> {
    let heading = if route.name.is_empty() { "The route".to_owned() } else { route.name.clone() };
    vec![
        section(heading, described(route)),
        section("Adjustments", each(&route.adjustments)),
        section("Nutrition", route.nutrition_plan.as_ref().map(lines).unwrap_or_default()),
        section("Clothing", each(&route.clothing_recommendations)),
    ]
}

/// Data of no known shape: one bullet for each of its members.
fn facts(data: &Value) -> Vec<Section> {
    vec![section("What it is about", lines(data))]
}

fn lines(data: &Value) -> Vec<String> {
    match data {
        Value::Null => Vec::new(),
        Value::Array(items) => each(items),
        Value::Object(members) => {
            members.iter().map(|(name, value)| format!("{}: {}", spaced(name), plain(value))).collect()
        }
        Value::String(text) => {
            text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
        }
        other => vec![plain(other)],
    }
}

/// What may be answered: the options, then what else is open at this kind of question.
fn answers(prompt: &Prompt) -> Vec<Possible> {
    let mut answers: Vec<Possible> = prompt
        .options
        .iter()
        .map(|option| Possible {
            action: Action::Select,
            option: Some(option.id.clone()),
            say: option.label.clone(),
            means: if option.description.is_empty() {
                "choose it".to_owned()
            } else {
                option.description.clone()
            },
        })
        .collect();
    let open = open_actions(prompt.kind);
    let said = |action: &Action| {
        let (say, means) = words(prompt, *action)?;
        Some(Possible { action: *action, option: None, say, means: means.to_owned() })
    };
    answers.extend(open.iter().filter_map(said));
    answers
}

/// What to say for an action, and what it means. Every one of these is read back as that action.
fn words(prompt: &Prompt, action: Action) -> Option<(String, &'static str)> {
    let kind = prompt.kind;
    let exact = prompt.phrase.as_ref().filter(|_| prompt.risk == Risk::High);
    if let Some(phrase) = exact.filter(|_| action.is_consent()) {
        return Some((phrase.clone(), "agree; exactly these words"));
    }
    let means = match (action, kind) {
        (Action::Confirm, Kind::Input) => return None,
        (Action::Confirm, Kind::ConfirmIntent) => "start the research",
        (Action::Confirm, Kind::PresentFindings) => "generate routes",
        (Action::Confirm, Kind::RefineRoute) => "make these refinements",
        (Action::Confirm, _) => "go on",
        (Action::Approve, Kind::PresentFinal) => "generate the GPX file",
        (Action::Approve, _) => "approve it",
        (Action::Reject, Kind::Choose) => "choose nothing",
        (Action::Reject, _) => "do not do it",
        (Action::Refine, _) => "say what should be different",
        (Action::RequestMore, Kind::PresentFindings) => "research further",
        (Action::RequestMore, _) => "ask for more",
        (Action::Clarify, Kind::ConfirmIntent) => "correct what was understood",
        (Action::Back, _) => "return to an earlier point",
        (Action::Cancel, _) => "stop altogether",
        _ => return None,
    };
    Some((say(action, kind, &prompt.languages)?.to_owned(), means))
}

/// Text as Markdown that shows exactly this text: on one line, and with nothing in it that means anything.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 8);
    for c in clean(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&' | '$' | '!') {
            safe.push('\\');
        }
        safe.push(c);
    }
    let trimmed = safe.trim();
    let listed = trimmed.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = trimmed.len() - listed.len();
    match trimmed.chars().next() {
        // At the start of a line these begin a list, a rule or an underlined heading.
        Some('-' | '+' | '=' | ':') => format!("\\{trimmed}"),
        Some(_) if number > 0 && listed.starts_with(['.', ')']) => {
            format!("{}\\{listed}", &trimmed[..number])
        }
        _ => trimmed.to_owned(),
    }
}

/// Text on one line, without anything that could drive a terminal or turn text around.
pub(super) fn clean(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                if !safe.ends_with(' ') {
                    safe.push(' ');
                }
            }
            c if acts(c) => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
    }
    safe
}

/// Characters that act on a terminal or print as nothing.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
