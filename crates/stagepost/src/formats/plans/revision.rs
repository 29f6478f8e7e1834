//! What a judge asks the planner to change, as a typed record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Verdict, feedback};

/// How much a revision matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Priority {
    /// It would be nice.
    Low,
    /// It should be done.
    Medium,
    /// It has to be done.
    High,
    /// Nothing works without it.
    Critical,
}

/// What the planner is asked to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevisionRequest {
    /// How much it matters.
    pub priority: Priority,
    /// What to look at, at most ten.
    pub focus_areas: Vec<String>,
    /// What to change, at most twenty-five.
    pub specific_fixes: Vec<String>,
    /// What not to do, at most five.
    #[serde(default)]
    pub avoid: Vec<String>,
    /// What else the planner should know.
    #[serde(default)]
    pub context_for_planner: String,
}

/// How bad an issue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Severity {
    /// A matter of taste.
    Nit,
    /// It should not be so.
    Warn,
    /// It is wrong.
    Error,
}

/// Something that a judge found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Issue {
    /// Its name.
    #[serde(default)]
    pub issue_id: String,
    /// What it is about.
    #[serde(default)]
    pub category: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    #[serde(default)]
    pub fix_hint: String,
    /// How to tell that it is mended.
    #[serde(default)]
    pub acceptance_test: String,
    /// Whatever else the judge says of it.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl RevisionRequest {
    /// Reads the request in a judgement, or makes one from the issues it lists; `None` if there is neither.
    pub fn of(evaluation: &Value, verdict: Option<Verdict>) -> Option<Self> {
        if let Ok(stated) = serde_json::from_value::<Self>(evaluation["revision_request"].clone()) {
            return Some(stated);
        }
        let listed = evaluation["issues"].as_array().into_iter().flatten();
        let mut issues: Vec<Issue> =
            listed.filter_map(|issue| serde_json::from_value(issue.clone()).ok()).collect();
        // What is worst comes first, so that it is not what a limit cuts off.
        issues.sort_by_key(|issue| std::cmp::Reverse(issue.severity));
        let worst = issues.first()?.severity;
        Some(Self {
            priority: priority(worst, verdict),
            focus_areas: distinct(issues.iter().map(|issue| issue.category.as_str()), 10),
            specific_fixes: distinct(issues.iter().map(Issue::fix), 25),
            avoid: Vec::new(),
            context_for_planner: feedback(evaluation).as_str().unwrap_or_default().to_owned(),
        })
    }
}

impl Issue {
    fn fix(&self) -> &str {
        if self.fix_hint.is_empty() { &self.message } else { &self.fix_hint }
    }
}

fn priority(worst: Severity, verdict: Option<Verdict>) -> Priority {
    match (verdict, worst) {
        (Some(Verdict::HardFail), _) => Priority::Critical,
        (_, Severity::Error) => Priority::High,
        (_, Severity::Warn) => Priority::Medium,
        (_, Severity::Nit) => Priority::Low,
    }
}

fn distinct<'a>(texts: impl Iterator<Item = &'a str>, most: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts.filter(|text| !text.is_empty()) {
        if found.len() < most && !found.iter().any(|known| known == text) {
            found.push(text.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_is_read_or_made_from_the_issues_worst_first() {
        let evaluation = json!({"feedback": "mind the pace", "issues": [
            {"severity": "NIT", "category": "style", "message": "too many commas"},
            {"severity": "ERROR", "category": "pace", "message": "too fast", "fix_hint": "slow down", "rule": "R1"},
            {"severity": "WARN", "category": "pace", "message": "uneven"},
            {"what": "not an issue"},
        ]});
        let request = RevisionRequest::of(&evaluation, Some(Verdict::SoftFail)).unwrap();
        assert_eq!(request.priority, Priority::High);
        assert_eq!(request.focus_areas, ["pace", "style"]);
        assert_eq!(request.specific_fixes, ["slow down", "uneven", "too many commas"]);
        assert_eq!(request.context_for_planner, "mind the pace");
        let stated = json!({"revision_request": request, "issues": []});
        assert_eq!(RevisionRequest::of(&stated, None), Some(request));
        assert_eq!(RevisionRequest::of(&json!({"issues": []}), None), None);
    }
}
