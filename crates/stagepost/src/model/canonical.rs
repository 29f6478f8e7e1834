//! Canonical JSON: one sequence of bytes for one value, so that it can be hashed.
//!
//! The form is RFC 8785: no white space, members sorted by the UTF-16 units of their names, numbers as
//! ECMAScript prints them. One thing is stricter: integers are written with all their digits, where RFC 8785
//! would round beyond 2^53 and two different values would get one seal.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

/// Writes `value` in canonical form.
pub fn canonical(value: &Value) -> String {
    let mut out = String::with_capacity(512);
    write_value(&mut out, value);
    out
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => write_list(out, items, |item, out| write_value(out, item)),
        Value::Object(members) => write_object(out, members),
    }
}

pub(super) fn write_object(out: &mut String, members: &Map<String, Value>) {
    let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
    // Byte order is UTF-16 order unless a name goes beyond the basic plane.
    if members.keys().all(|name| name.is_ascii()) {
        sorted.sort_unstable_by_key(|(name, _)| *name);
    } else {
        sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    }
    out.push('{');
    for (index, (name, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, name);
        out.push(':');
        write_value(out, value);
    }
    out.push('}');
}

pub(super) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|b| b < 0x20 || b == b'"' || b == b'\\') {
        out.push_str(&rest[..at]);
        write_escape(out, rest.as_bytes()[at]);
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// Writes something whose printed form needs no escapes.
pub(super) fn write_shown(out: &mut String, shown: &impl std::fmt::Display) {
    let _ = write!(out, "\"{shown}\"");
}

pub(super) fn write_list<T>(out: &mut String, items: &[T], write: impl Fn(&T, &mut String)) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(']');
}

fn write_escape(out: &mut String, byte: u8) {
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        0x08 => out.push_str("\\b"),
        0x09 => out.push_str("\\t"),
        0x0a => out.push_str("\\n"),
        0x0c => out.push_str("\\f"),
        0x0d => out.push_str("\\r"),
        other => {
            let _ = write!(out, "\\u{other:04x}");
        }
    }
}

fn write_number(out: &mut String, number: &Number) {
    let _ = match (number.as_u64(), number.as_i64(), number.as_f64()) {
        (Some(whole), _, _) => write!(out, "{whole}"),
        (_, Some(whole), _) => write!(out, "{whole}"),
        (_, _, Some(real)) => {
            write_real(out, real);
            Ok(())
        }
        _ => write!(out, "{number}"),
    };
}

/// Lays the shortest digits that read back as `real` out as ECMAScript's `Number::toString` does.
fn write_real(out: &mut String, real: f64) {
    if real == 0.0 {
        return out.push('0');
    }
    let scientific = shortest(real);
    let (mantissa, exponent) = scientific.split_once('e').expect("the `e` format has an exponent");
    let exponent: i32 = exponent.parse().expect("the `e` format has a decimal exponent");
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits = mantissa.replace('.', "");
    out.push_str(sign);
    layout(out, &digits, exponent + 1);
}

/// The fewest digits that read back as `real`; of several such the nearest, and of two as near the even one.
fn shortest(real: f64) -> String {
    let some = format!("{real:e}");
    let fraction = some.find('.').map_or(0, |dot| some.find('e').map_or(0, |end| end - dot - 1));
    let nearest = format!("{real:.fraction$e}");
    if nearest.parse() == Ok(real) { nearest } else { some }
}

/// Writes `0.digits × 10^point`.
fn layout(out: &mut String, digits: &str, point: i32) {
    let count = i32::try_from(digits.len()).expect("a double has at most 17 digits");
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or(0));
    if (1..=21).contains(&point) {
        if count <= point {
            out.push_str(digits);
            out.push_str(&zeros(point - count));
        } else {
            let (whole, fraction) = digits.split_at(usize::try_from(point).expect("point is positive here"));
            let _ = write!(out, "{whole}.{fraction}");
        }
    } else if (-5..=0).contains(&point) {
        let _ = write!(out, "0.{}{digits}", zeros(-point));
    } else {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        let _ = write!(out, "{first}{dot}{rest}e{:+}", point - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_are_sorted_by_utf16_units() {
        // The example of RFC 8785, section 3.2.3.
        let value =
            json!({"\u{20ac}": 1, "\r": 2, "\u{fb33}": 3, "1": 4, "\u{1f600}": 5, "\u{80}": 6, "\u{f6}": 7});
        assert_eq!(
            canonical(&value),
            "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"\u{f6}\":7,\"\u{20ac}\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}"
        );
    }

    #[test]
    fn numbers_are_laid_out_as_ecmascript_does() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (5e-324, "5e-324"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (333_333_333.333_333_3, "333333333.3333333"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (-12.5, "-12.5"),
            (4.5, "4.5"),
            (1.5e300, "1.5e+300"),
            (9.999999999999997e22, "9.999999999999997e+22"),
            (9007199254740992.0, "9007199254740992"),
            (5.6294995342131e14, "562949953421310"),
            (7_304_370_648_143_453.0 / 4.0, "1826092662035863.2"),
            (-7_304_370_648_143_455.0 / 4.0, "-1826092662035863.8"),
        ];
        for (number, text) in cases {
            assert_eq!(canonical(&json!(number)), text);
        }
    }

    #[test]
    fn large_integers_keep_their_digits() {
        assert_eq!(
            canonical(&json!([u64::MAX, i64::MIN, 9007199254740993u64])),
            "[18446744073709551615,-9223372036854775808,9007199254740993]"
        );
    }

    #[test]
    fn strings_are_escaped_only_where_they_must_be() {
        assert_eq!(canonical(&json!("a\"\\\u{1}\u{8}\u{7f}é/")), "\"a\\\"\\\\\\u0001\\b\u{7f}é/\"");
    }
}
