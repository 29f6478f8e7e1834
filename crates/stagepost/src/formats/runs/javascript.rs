//! JSON as JavaScript writes it: what it reads and writes again comes out the same, byte for byte.

use serde_json::{Map, Number, Value};

use crate::formats::shown::escaped;
use crate::model::canonical;

/// Writes JSON as `JSON.stringify(value)` would after `JSON.parse`.
pub fn compact(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, None);
    out
}

/// Writes JSON as `JSON.stringify(value, null, 2)` would after `JSON.parse`, with escapes for what would drive a terminal.
pub fn pretty(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, Some(0));
    escaped(&out).into_owned()
}

fn write(out: &mut String, value: &Value, depth: Option<usize>) {
    match value {
        Value::Number(number) => out.push_str(&written(number)),
        Value::Array(list) => {
            enclosed(out, ('[', ']'), depth, list.iter(), write);
        }
        Value::Object(members) => {
            enclosed(out, ('{', '}'), depth, ordered(members), |out, (key, value), depth| {
                out.push_str(&canonical(&Value::from(key.as_str())));
                out.push_str(if depth.is_some() { ": " } else { ":" });
                write(out, value, depth);
            });
        }
        other => out.push_str(&canonical(other)),
    }
}

fn enclosed<T>(
    out: &mut String,
    (open, close): (char, char),
    depth: Option<usize>,
    items: impl ExactSizeIterator<Item = T>,
    write: impl Fn(&mut String, T, Option<usize>),
) {
    let is_empty = items.len() == 0;
    let inner = depth.map(|depth| depth + 1);
    out.push(open);
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(',');
        }
        line(out, inner);
        write(out, item, inner);
    }
    if !is_empty {
        line(out, depth);
    }
    out.push(close);
}

fn line(out: &mut String, depth: Option<usize>) {
    if let Some(depth) = depth {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    }
}

/// Keys that are numbers of array elements come first there, by size; all others as they were made.
fn ordered(members: &Map<String, Value>) -> std::vec::IntoIter<(&String, &Value)> {
    let index =
        |key: &str| key.parse::<u32>().ok().filter(|number| *number != u32::MAX && number.to_string() == key);
    let mut ordered: Vec<_> = members.iter().collect();
    ordered.sort_by_key(|(key, _)| index(key).map_or((1, 0), |number| (0, number)));
    ordered.into_iter()
}

/// All numbers are fractions there: large whole ones lose their last digits.
fn written(number: &Number) -> String {
    const EXACT: u64 = 1 << 53;
    let exact = number.as_u64().is_some_and(|whole| whole <= EXACT)
        || number.as_i64().is_some_and(|whole| whole.unsigned_abs() <= EXACT);
    match number.as_f64() {
        Some(real) if !exact => canonical(&Value::from(real)),
        _ => number.to_string(),
    }
}
