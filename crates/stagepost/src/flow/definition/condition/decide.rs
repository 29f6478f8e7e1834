//! Deciding a condition.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Comparison, Expression};

/// The error for a condition that has neither to hold nor not to hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Undecided {
    what: String,
}

pub(super) fn truth(expression: &Expression, document: &Value) -> Result<bool, Undecided> {
    match expression {
        Expression::Not(inner) => Ok(!truth(inner, document)?),
        Expression::And(left, right) => Ok(truth(left, document)? && truth(right, document)?),
        Expression::Or(left, right) => Ok(truth(left, document)? || truth(right, document)?),
        Expression::Compare(left, comparison, right) => {
            compare(&value(left, document)?, *comparison, &value(right, document)?)
        }
        Expression::Exists(reference) => Ok(reference.find(document).is_some_and(|found| !found.is_null())),
        Expression::Literal(found) => as_truth(found, "it"),
        Expression::Reference(reference) => {
            as_truth(reference.find(document).unwrap_or(&Value::Null), &format!("`{reference}`"))
        }
    }
}

fn as_truth(value: &Value, named: &str) -> Result<bool, Undecided> {
    match value {
        Value::Bool(truth) => Ok(*truth),
        Value::Null => Ok(false),
        other => Err(Undecided {
            what: format!(
                "{named} is {}, which is neither true nor false: compare it with something",
                kind(other)
            ),
        }),
    }
}

fn value(expression: &Expression, document: &Value) -> Result<Value, Undecided> {
    match expression {
        Expression::Literal(value) => Ok(value.clone()),
        Expression::Reference(reference) => Ok(reference.find(document).cloned().unwrap_or_default()),
        other => truth(other, document).map(Value::from),
    }
}

fn compare(left: &Value, comparison: Comparison, right: &Value) -> Result<bool, Undecided> {
    let is_equal = || match (left, right) {
        (Value::Number(_), Value::Number(_)) => numbers(left, right) == Some(Ordering::Equal),
        _ => left == right,
    };
    let order = || match (left, right) {
        (Value::Null, _) | (_, Value::Null) => Ok(None),
        (Value::Number(_), Value::Number(_)) => Ok(numbers(left, right)),
        (Value::String(left), Value::String(right)) => Ok(Some(left.cmp(right))),
        _ => Err(Undecided {
            what: format!("{} is neither less nor greater than {}", kind(left), kind(right)),
        }),
    };
    match comparison {
        Comparison::Equal => Ok(is_equal()),
        Comparison::Unequal => Ok(!is_equal()),
        Comparison::Less => Ok(order()?.is_some_and(Ordering::is_lt)),
        Comparison::AtMost => Ok(order()?.is_some_and(Ordering::is_le)),
        Comparison::Greater => Ok(order()?.is_some_and(Ordering::is_gt)),
        Comparison::AtLeast => Ok(order()?.is_some_and(Ordering::is_ge)),
    }
}

/// Whole numbers are compared as such: as fractions, large ones would be equal that are not.
fn numbers(left: &Value, right: &Value) -> Option<Ordering> {
    let whole = |value: &Value| value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
