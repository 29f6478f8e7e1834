//! Scores and verdicts of three generations, brought to one form. The originals stay as they are.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use super::lenient;

/// What a judge thinks of a plan, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// It will not do.
    HardFail,
    /// It needs work.
    SoftFail,
    /// It is good enough.
    Approve,
}

impl Verdict {
    /// Returns the name used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::HardFail => "HARD_FAIL",
            Verdict::SoftFail => "SOFT_FAIL",
            Verdict::Approve => "APPROVE",
        }
    }

    fn read(value: &Value) -> Option<Self> {
        let text = value.as_str()?.trim().to_ascii_uppercase().replace([' ', '-'], "_");
        match text.as_str() {
            "APPROVE" | "APPROVED" => Some(Verdict::Approve),
            "SOFT_FAIL" => Some(Verdict::SoftFail),
            "HARD_FAIL" => Some(Verdict::HardFail),
            _ => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// From which scores on a plan is good enough, or worth more work. Up to 10 they are of 10, above of 100.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Thresholds {
    /// From here on it is approved.
    pub approve_at: f64,
    /// From here on it needs work; below it will not do.
    pub soft_fail_at: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { approve_at: 7.0, soft_fail_at: 5.0 }
    }
}

impl Thresholds {
    /// Both as parts of 1.
    pub fn fractions(&self) -> (f64, f64) {
        let full = if self.approve_at.max(self.soft_fail_at) > 10.0 { 100.0 } else { 10.0 };
        (self.approve_at / full, self.soft_fail_at / full)
    }

    fn verdict(&self, fraction: f64) -> Verdict {
        let (approve, soft) = self.fractions();
        match fraction {
            _ if fraction >= approve => Verdict::Approve,
            _ if fraction >= soft => Verdict::SoftFail,
            _ => Verdict::HardFail,
        }
    }
}

/// A judgement in one form, whatever generation it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Scored {
    /// The score as it was given.
    #[serde(serialize_with = "tidy_option")]
    pub score: Option<f64>,
    /// What the score is of: 10 or 100, unless the judge says so.
    #[serde(serialize_with = "tidy")]
    pub score_max: f64,
    /// What the judge thinks.
    pub verdict: Option<Verdict>,
}

impl Scored {
    /// Reads a judgement. `bar` is what the job demands, if there is a job.
    ///
    /// A `decision` stands, but an approval below the bar is none. A `status` yields to the score, and so does silence.
    pub fn of(evaluation: &Value, bar: Option<&Thresholds>) -> Self {
        let (score, score_max) = score_of(evaluation);
        let score = score.filter(|score| (0.0..=score_max).contains(score));
        let by_score = score.map(|score| bar.copied().unwrap_or_default().verdict(score / score_max));
        let passed = evaluation["pass_threshold"].as_bool().map(|passed| match (passed, by_score) {
            (true, _) => Verdict::Approve,
            (false, by_score) => by_score.unwrap_or(Verdict::SoftFail).min(Verdict::SoftFail),
        });
        let decision = Verdict::read(&evaluation["decision"]).or(passed);
        let verdict = match (decision, by_score.filter(|_| bar.is_some())) {
            (Some(decision), Some(by_score)) => Some(decision.min(by_score)),
            (Some(decision), None) => Some(decision),
            (None, _) => by_score.or_else(|| Verdict::read(&evaluation["status"])),
        };
        Self { score, score_max, verdict }
    }

    /// The score as a part of 1, so that scores of different kinds can be compared.
    pub fn fraction(&self) -> Option<f64> {
        self.score.map(|score| score / self.score_max)
    }
}

/// The score and what it is of, whether it is on that scale or not.
fn score_of(evaluation: &Value) -> (Option<f64>, f64) {
    let overall = evaluation["overall_score"].as_f64();
    let score = overall.or_else(|| evaluation["score"].as_f64());
    let stated = evaluation["score_max"].as_f64().filter(|max| *max > 0.0);
    let hundred = overall.is_some() || score.is_some_and(|score| score > 10.0);
    (score, stated.unwrap_or(if hundred { 100.0 } else { 10.0 }))
}

/// Says why a judgement cannot be used: it says nothing, or its score is off its scale. One that is no number is no fault
/// beside a decision.
pub fn fault_of(evaluation: &Value, scored: &Scored) -> Option<String> {
    match score_fault(evaluation) {
        Some(fault) if scored.verdict.is_none() || score_of(evaluation).0.is_some() => Some(fault),
        None if scored.verdict.is_none() => Some("it says neither a decision nor a score".to_owned()),
        _ => None,
    }
}

fn score_fault(evaluation: &Value) -> Option<String> {
    let given =
        [&evaluation["overall_score"], &evaluation["score"]].into_iter().find(|given| !given.is_null())?;
    match score_of(evaluation) {
        (Some(score), max) if (0.0..=max).contains(&score) => None,
        (Some(_), max) => Some(format!("its score {given} is not between 0 and {}", number(max))),
        (None, _) => {
            let given =
                given.as_str().and_then(lenient::name_of).map_or_else(|| given.to_string(), str::to_owned);
            Some(format!("its score {given} is not a number"))
        }
    }
}

/// Finds what the planner should hear: a text or a list, whatever the generation calls it.
pub fn feedback(evaluation: &Value) -> Value {
    const NAMES: [&str; 5] =
        ["feedback_for_planner", "feedback", "actionable_feedback", "overall_assessment", "summary"];
    let said =
        NAMES.iter().map(|name| &evaluation[*name]).find(|said| !said.is_null() && **said != json!(""));
    said.cloned().unwrap_or(Value::Null)
}

/// Lists the parts of a score by name.
pub fn breakdown(evaluation: &Value) -> Vec<(String, f64)> {
    let named = evaluation["score_breakdown"].as_object().into_iter().flatten();
    let named = named
        .filter_map(|(name, part)| Some((name.clone(), part.as_f64().or_else(|| part["score"].as_f64())?)));
    let listed = evaluation["category_scores"].as_array().into_iter().flatten();
    let listed =
        listed.filter_map(|one| Some((one["category"].as_str()?.to_owned(), one["score"].as_f64()?)));
    named.chain(listed).collect()
}

/// Writes a whole number as one.
pub(super) fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

fn tidy<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    number(*value).serialize(serializer)
}

fn tidy_option<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(number).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(evaluation: Value, bar: Option<&Thresholds>) -> (Option<f64>, f64, Option<Verdict>) {
        let Scored { score, score_max, verdict } = Scored::of(&evaluation, bar);
        (score, score_max, verdict)
    }

    #[test]
    fn three_generations_come_to_one_form() {
        use Verdict::{Approve, HardFail, SoftFail};
        let cases = [
            (json!({"overall_score": 90.61, "pass_threshold": true}), Some(90.61), 100.0, Some(Approve)),
            (json!({"overall_score": 61.0, "pass_threshold": false}), Some(61.0), 100.0, Some(SoftFail)),
            (json!({"overall_score": 9.0, "pass_threshold": false}), Some(9.0), 100.0, Some(HardFail)),
            (json!({"overall_score": 95, "pass_threshold": false}), Some(95.0), 100.0, Some(SoftFail)),
            (json!({"decision": "SOFT_FAIL", "score": 6}), Some(6.0), 10.0, Some(SoftFail)),
            (json!({"decision": "APPROVE", "score": 6}), Some(6.0), 10.0, Some(Approve)),
            (json!({"status": "APPROVE", "score": 4.9}), Some(4.9), 10.0, Some(HardFail)),
            (json!({"status": "HARD_FAIL", "score": 7.0}), Some(7.0), 10.0, Some(Approve)),
            (json!({"score": 72}), Some(72.0), 100.0, Some(Approve)),
            (json!({"score": 3, "score_max": 5}), Some(3.0), 5.0, Some(SoftFail)),
            (json!({"status": "soft fail"}), None, 10.0, Some(SoftFail)),
            (json!({"decision": "perhaps", "score": "8"}), None, 10.0, None),
            (json!({"score": 12, "score_max": 10}), None, 10.0, None),
            (json!({"score": -1, "decision": "HARD_FAIL"}), None, 10.0, Some(HardFail)),
            (json!({"score": 1e308}), None, 100.0, None),
        ];
        for (evaluation, score, max, verdict) in cases {
            assert_eq!(scored(evaluation.clone(), None), (score, max, verdict), "{evaluation}");
        }
    }

    #[test]
    fn an_approval_below_the_bar_of_the_job_is_none_and_a_rejection_above_it_stays() {
        let bar = Thresholds { approve_at: 9.0, soft_fail_at: 5.0 };
        let verdict = |evaluation| scored(evaluation, Some(&bar)).2;
        assert_eq!(verdict(json!({"decision": "APPROVE", "score": 8})), Some(Verdict::SoftFail));
        assert_eq!(verdict(json!({"decision": "HARD_FAIL", "score": 10})), Some(Verdict::HardFail));
        assert_eq!(verdict(json!({"decision": "APPROVE"})), Some(Verdict::Approve));
        assert_eq!(verdict(json!({"score": 90})), Some(Verdict::Approve));
        let of_hundred = Thresholds { approve_at: 85.0, soft_fail_at: 50.0 };
        assert_eq!(scored(json!({"score": 8}), Some(&of_hundred)).2, Some(Verdict::SoftFail));
    }

    #[test]
    fn feedback_and_parts_are_found_whatever_they_are_called() {
        assert_eq!(feedback(&json!({"feedback_for_planner": "", "feedback": "shorter"})), json!("shorter"));
        assert_eq!(feedback(&json!({"actionable_feedback": ["a", "b"]})), json!(["a", "b"]));
        assert_eq!(feedback(&json!({"score": 1})), Value::Null);
        let parts =
            breakdown(&json!({"category_scores": [{"category": "pace", "score": 80.0}, {"score": 1}]}));
        assert_eq!(parts, [("pace".to_owned(), 80.0)]);
        assert_eq!(breakdown(&json!({"score_breakdown": {"a": 7, "b": {"score": 2.5}}})).len(), 2);
    }
}
