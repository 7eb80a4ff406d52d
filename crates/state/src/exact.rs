//! JSON texts whose numbers keep every digit.

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;
use serde_json::{Number, Value};

/// How deep a value may be nested: reading and dropping values recurses.
pub(crate) const MAX_DEPTH: usize = 200;

/// A value that a [`Value`] cannot hold without rounding, and its text.
pub(crate) struct Exact {
    pub(crate) text: Box<RawValue>,
    pub(crate) value: Value,
}

/// Parses a text; returns it too if the value alone would lose digits.
pub(crate) fn exact(text: &str) -> Result<(Value, Option<Box<RawValue>>), serde_json::Error> {
    let text = text.trim();
    if let Some(value) = simple(text) {
        return Ok((value, None));
    }
    let scan = scan(text);
    if scan.too_large {
        return Err(serde_json::Error::custom("a number is larger than any float"));
    }
    if scan.depth > MAX_DEPTH {
        return Err(serde_json::Error::custom(format!("nested deeper than {MAX_DEPTH} levels")));
    }
    let mut parser = serde_json::Deserializer::from_str(text);
    parser.disable_recursion_limit(); // the depth is known
    let value = Value::deserialize(&mut parser)?;
    parser.end()?;
    let text = if scan.rounded { Some(RawValue::from_string(text.to_owned())?) } else { None };
    Ok((value, text))
}

/// A fast path for short integers, the most common values, without a parser.
fn simple(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    if digits.len() > 18 || !is_integer {
        return None;
    }
    text.parse::<i64>().ok().map(Value::from)
}

struct Scan {
    depth: usize,
    /// Whether some number would be changed by a round trip through `Value`.
    rounded: bool,
    /// Whether some number is beyond the range of `f64`, so that a `Value` cannot hold it even
    /// rounded.
    too_large: bool,
}

/// Scans a text once, which need not be valid JSON: it only counts brackets and checks numbers.
fn scan(text: &str) -> Scan {
    let bytes = text.as_bytes();
    let (mut place, mut open, mut depth, mut rounded, mut too_large) = (0, 0_usize, 0, false, false);
    while place < bytes.len() {
        match bytes[place] {
            b'"' => place = end_of_string(bytes, place),
            b'[' | b'{' => {
                open += 1;
                depth = depth.max(open);
            }
            b']' | b'}' => open = open.saturating_sub(1),
            b'-' | b'0'..=b'9' => {
                let length = bytes[place..].iter().take_while(|byte| in_number(**byte)).count();
                let number = &text[place..place + length];
                rounded = rounded || is_rounded(number);
                too_large = too_large || number.parse().is_ok_and(f64::is_infinite);
                place += length - 1;
            }
            _ => {}
        }
        place += 1;
    }
    Scan { depth, rounded, too_large }
}

/// The place of the quote that closes the string opened at `start`, or the end of the text.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut place = start + 1;
    while place < bytes.len() && bytes[place] != b'"' {
        place += if bytes[place] == b'\\' { 2 } else { 1 };
    }
    place
}

fn in_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
}

/// Whether a number changes when it is stored as a `u64`, an `i64` or an `f64`.
fn is_rounded(number: &str) -> bool {
    if number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return number == "-0" || (number.parse::<u64>().is_err() && number.parse::<i64>().is_err());
    }
    // Two shortest texts can be equally close to a float, so only the digits that serde_json writes
    // count.
    match number.parse().ok().and_then(Number::from_f64) {
        Some(value) => digits(number) != digits(&value.to_string()),
        None => false, // not a number, or out of range: the caller reports it
    }
}

/// The significant digits: all between the first and the last that is not zero.
fn digits(number: &str) -> String {
    let mantissa = number.split(['e', 'E']).next().unwrap_or(number);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_value_would_round_keeps_its_text() {
        for text in [
            "0",
            "-1",
            "1.0",
            "0.1",
            "1e2",
            "1E+16",
            "1e-07",
            "18446744073709551615",
            "-9223372036854775808",
            "-0.0",
            "5e-324",
            "1.7976931348623157e308",
            "2023347301156851.2", // as close as 2023347301156851.3
            "\"123456789012345678901234567890\"",
            "[1, {\"a\": 2.5}]",
            "100.0",
        ] {
            assert!(exact(text).unwrap().1.is_none(), "{text}");
        }
        for text in [
            "18446744073709551616",
            "-9223372036854775809",
            "0.1000000000000000055511151231257827",
            "-0",
            "{\"a\": [3.14159265358979323846]}",
            "1234567890123456789012345678901234567890",
        ] {
            assert_eq!(exact(text).unwrap().1.expect(text).get(), text);
        }
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            "nul",
            "[1",
            "1 2",
            "NaN",
            "Infinity",
            "1e400",
            "\"\\ud800\"",
            "{\"a\":}",
            "'a'",
            "-",
            "\"\\",
        ] {
            assert!(exact(text).is_err(), "{text}");
        }
        assert!(exact(&("[".repeat(200) + &"]".repeat(200))).is_ok());
        assert!(exact(&("[".repeat(201) + &"]".repeat(201))).is_err());
        assert!(exact(&"[".repeat(1_000_000)).is_err());
    }
}
