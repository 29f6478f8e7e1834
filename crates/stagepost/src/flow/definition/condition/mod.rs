//! Conditions: `collect.exit == 0`, `draft.score >= 7 && !input.dry_run`, `exists(input.tag)`.
//!
//! A condition is read when the file is read and decided when its step begins. It can look at values and compare them,
//! nothing else. What is not there is null: it equals null, is false by itself, and is neither less nor greater than
//! anything. A comparison that makes no sense is an error, never a silent no.

mod decide;
mod parse;

use std::fmt;

use serde_json::Value;

use super::Reference;

pub use decide::Undecided;
pub use parse::InvalidCondition;

/// A condition, as it was written and understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    text: String,
    expression: Expression,
}

#[derive(Debug, Clone, PartialEq)]
enum Expression {
    Literal(Value),
    Reference(Reference),
    Exists(Reference),
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Compare(Box<Expression>, Comparison, Box<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Condition {
    /// Reads a condition.
    pub fn parse(text: &str) -> Result<Self, InvalidCondition> {
        Ok(Self { text: text.trim().to_owned(), expression: parse::parse(text)? })
    }

    /// Returns it as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Says whether it holds, given what is known.
    pub fn holds(&self, document: &Value) -> Result<bool, Undecided> {
        decide::truth(&self.expression, document)
    }

    /// Says whether it is about what a step is done for, and so decided for each by itself.
    pub fn is_about_items(&self) -> bool {
        self.references().iter().any(|reference| matches!(reference.head(), "item" | "index"))
    }

    /// Returns what it refers to.
    pub fn references(&self) -> Vec<&Reference> {
        let mut found = Vec::new();
        self.expression.collect(&mut found);
        found
    }
}

impl Expression {
    fn collect<'e>(&'e self, found: &mut Vec<&'e Reference>) {
        match self {
            Expression::Literal(_) => {}
            Expression::Reference(reference) | Expression::Exists(reference) => found.push(reference),
            Expression::Not(inner) => inner.collect(found),
            Expression::And(left, right)
            | Expression::Or(left, right)
            | Expression::Compare(left, _, right) => {
                left.collect(found);
                right.collect(found);
            }
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
