//! Whole numbers that 64 bits do not hold: reading them as JSON values would round them without a word.

/// Finds the first whole number in JSON that does not fit into 64 bits, and would be rounded where it becomes a value.
pub fn beyond_64_bits(json: &[u8]) -> Option<&str> {
    let (mut at, mut in_string) = (0, false);
    if !may_have_one(json) {
        return None;
    }
    while at < json.len() {
        match json[at] {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            b'-' | b'0'..=b'9' if !in_string => {
                let number = number_at(json, at);
                if is_beyond_64_bits(number) {
                    return Some(number);
                }
                at += number.len().max(1);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Says whether a text is a whole number that does not fit into 64 bits.
pub(crate) fn is_beyond_64_bits(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let whole = digits.len() >= FEWEST && digits.bytes().all(|byte| byte.is_ascii_digit());
    whole && number.parse::<u64>().is_err() && number.parse::<i64>().is_err()
}

/// The number that begins at a place.
pub(crate) fn number_at(json: &[u8], at: usize) -> &str {
    let part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let length = json[at..].iter().take_while(|byte| part(byte)).count();
    std::str::from_utf8(&json[at..at + length]).unwrap_or_default()
}

/// With fewer digits every whole number fits.
const FEWEST: usize = 19;

/// So many digits in a row cover one of these places, so that most bytes need no look.
pub(crate) fn may_have_one(json: &[u8]) -> bool {
    json.iter().skip(FEWEST - 1).step_by(FEWEST).any(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_numbers_outside_of_strings_count() {
        for exact in [
            "{}",
            r#"{"a":18446744073709551615,"b":-9223372036854775808}"#,
            r#"{"a":"123456789012345678901234567890 \" 123456789012345678901"}"#,
            r#"{"a":0.123456789012345678901234567890,"b":1234567890123456789012e3}"#,
        ] {
            assert_eq!(beyond_64_bits(exact.as_bytes()), None, "{exact}");
        }
        for number in ["18446744073709551616", "-9223372036854775809", "123456789012345678901234567890"] {
            for shift in 0..20 {
                let json = format!("{{\"{}\\\"\":[1, {number}]}}", "k".repeat(shift));
                assert_eq!(beyond_64_bits(json.as_bytes()), Some(number), "{json}");
            }
        }
    }
}
