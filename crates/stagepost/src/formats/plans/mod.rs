//! Plans with iterations: `<output_dir>/checkpoints/plans/{project}_{run}_iter{NN}_{type}.json` and its neighbours.
//!
//! Names, the envelope around an iteration, JSON as Python writes it, and scores of three generations of payloads.

mod cache;
mod lenient;
mod names;
mod revision;
mod score;

pub use cache::Meta;
pub use lenient::{LenientError, compact, finite, read, write};
pub use names::{FOLDER, Name, PLANS, file_name, folder_of};
pub use revision::{Issue, Priority, RevisionRequest, Severity};
pub use score::{Scored, Thresholds, Verdict, breakdown, fault_of, feedback};

use serde_json::{Map, Value, json};

/// The latest plan, before validation.
pub const RAW: &str = "raw";
/// The latest judgement.
pub const EVALUATION: &str = "evaluation";
/// The approved plan, or the best attempt.
pub const FINAL: &str = "final";
/// The plan made concrete.
pub const IMPLEMENTATION: &str = "implementation";
/// Compiled sequence data.
pub const SEQUENCE: &str = "sequence";
/// Audio features.
pub const AUDIO: &str = "audio";

/// The six types that the original program knows.
pub const TYPES: [&str; 6] = [RAW, IMPLEMENTATION, FINAL, EVALUATION, SEQUENCE, AUDIO];

const OWN: [&str; 3] = ["run_id", "iteration", "checkpoint_type"];

/// Puts the envelope of an iteration around a payload. As in the original, the payload comes second and wins.
pub fn envelope(run: &str, iteration: u32, part: &str, payload: &Map<String, Value>) -> Value {
    let mut whole = Map::new();
    whole.insert(OWN[0].to_owned(), json!(run));
    whole.insert(OWN[1].to_owned(), json!(iteration));
    whole.insert(OWN[2].to_owned(), json!(part));
    whole.extend(payload.iter().map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(whole)
}

/// Takes the envelope off, if there is one.
pub fn unwrap(mut value: Value) -> Value {
    if let Value::Object(members) = &mut value
        && OWN.iter().all(|name| members.contains_key(*name))
    {
        OWN.iter().for_each(|name| drop(members.shift_remove(*name)));
    }
    value
}

/// What an envelope says of itself: run, iteration, type.
pub fn stated(value: &Value) -> (Option<&str>, Option<u64>, Option<&str>) {
    (value["run_id"].as_str(), value["iteration"].as_u64(), value["checkpoint_type"].as_str())
}

/// The payload of a plan in an iteration.
pub fn raw(plan: &Value) -> Value {
    json!({ "plan": plan })
}

/// The payload of a judgement in an iteration.
pub fn evaluation(evaluation: &Value, plan: &Value, scored: &Scored) -> Value {
    let mut payload = Map::new();
    payload.insert("evaluation".to_owned(), evaluation.clone());
    if let Some(sections) = plan["sections"].as_array() {
        payload.insert("plan_sections".to_owned(), json!(sections.len()));
    }
    payload.insert("score".to_owned(), scored.score.map_or(Value::Null, score::number));
    payload.insert("decision".to_owned(), json!(scored.verdict.map(Verdict::as_str)));
    Value::Object(payload)
}

/// What is known at the end of a run.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    /// The plan that is kept.
    pub plan: &'a Value,
    /// How many iterations there were.
    pub iterations: u32,
    /// How many tokens were spent.
    pub total_tokens: u64,
    /// How long planner, judge and validator took together.
    pub duration_seconds: f64,
}

impl Ending<'_> {
    /// The payload of an approved plan.
    pub fn success(&self, evaluation: &Value) -> Value {
        json!({
            "status": "SUCCESS",
            "plan": self.plan,
            "evaluation": evaluation,
            "iterations": self.iterations,
            "total_tokens": self.total_tokens,
            "duration_seconds": score::number(self.duration_seconds),
        })
    }

    /// The payload of a best attempt.
    pub fn incomplete(&self, best: Option<f64>, reason: &str) -> Value {
        json!({
            "status": "INCOMPLETE",
            "plan": self.plan,
            "iterations": self.iterations,
            "total_tokens": self.total_tokens,
            "duration_seconds": score::number(self.duration_seconds),
            "best_score": best.map(score::number),
            "reason": reason,
        })
    }
}

/// Finds the plan in a payload: its member `plan`, or the whole.
pub fn plan_of(payload: &Value) -> &Value {
    payload.get("plan").unwrap_or(payload)
}

/// Finds the judgement in a payload: its member `evaluation`, or the whole.
pub fn evaluation_of(payload: &Value) -> &Value {
    payload.get("evaluation").filter(|inside| inside.is_object()).unwrap_or(payload)
}

/// Reads how a run ended from its last payload, and why.
pub fn status_of(payload: &Value) -> (Option<&str>, Option<&str>) {
    (payload["status"].as_str(), payload["reason"].as_str())
}

/// Reads what a run cost from its last payload, by the names of either generation: tokens, and seconds.
pub fn spent_of(payload: &Value) -> (u64, f64) {
    let either = |names: [&str; 2]| names.into_iter().find_map(|name| payload[name].as_f64());
    let seconds = either(["duration_seconds", "execution_time_s"]);
    let tokens = either(["total_tokens", "tokens_used"]).map_or(0, |tokens| tokens as u64);
    (tokens, seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0).unwrap_or(0.0))
}

/// Reads how many tokens an answer says it cost; no other member is a cost.
pub fn tokens_of(answer: &Value) -> u64 {
    answer["tokens"].as_u64().or_else(|| answer["tokens"].as_f64().map(|tokens| tokens as u64)).unwrap_or(0)
}

/// Reads what a validator says: whether the plan may be judged, and what is wrong with it.
pub fn validity_of(answer: &Value) -> Option<(bool, Vec<String>)> {
    let valid = answer["valid"].as_bool()?;
    let texts = |name: &str| -> Vec<String> {
        let listed = answer[name].as_array().into_iter().flatten();
        listed.map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned)).collect()
    };
    Some((valid, [texts("errors"), texts("issues")].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_comes_off_as_it_went_on_and_the_payload_wins() {
        let payload = json!({"plan": {"sections": []}});
        let whole = envelope("a3f9b2c1", 1, RAW, payload.as_object().unwrap());
        assert_eq!(
            serde_json::to_string(&whole).unwrap(),
            r#"{"run_id":"a3f9b2c1","iteration":1,"checkpoint_type":"raw","plan":{"sections":[]}}"#
        );
        assert_eq!(unwrap(whole), payload);
        let twice = envelope("a3f9b2c1", 1, RAW, json!({"iteration": 7}).as_object().unwrap());
        assert_eq!(twice["iteration"], 7);
        assert_eq!(unwrap(json!({"run_id": "x"})), json!({"run_id": "x"}), "not an envelope");
    }

    #[test]
    fn a_validator_must_say_whether_the_plan_is_valid() {
        assert_eq!(validity_of(&json!({"valid": true})), Some((true, vec![])));
        let invalid = json!({"valid": false, "errors": ["no title", {"code": 7}]});
        assert_eq!(validity_of(&invalid), Some((false, vec!["no title".into(), "{\"code\":7}".into()])));
        assert_eq!(validity_of(&json!({"ok": true})), None);
    }
}
