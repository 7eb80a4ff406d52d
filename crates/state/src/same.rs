//! Equality of JSON values as PostgreSQL's `jsonb` has it: numbers are compared by value, so 1 is
//! 1.0, and fields of objects have no order.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Number, Value};

use crate::number;
use crate::value::SharedValue;

/// Whether two values are the same JSON, numbers compared by value and to the last digit.
pub fn same_value(one: &SharedValue, other: &SharedValue) -> bool {
    if one.is_same(other) {
        return true;
    }
    match (one.exact_text(), other.exact_text()) {
        (None, None) => same(one, other),
        _ => canonical(&one.to_string()) == canonical(&other.to_string()),
    }
}

/// Whether two JSON texts are the same JSON, numbers compared by value and to the last digit. Texts
/// that are not JSON are the same if they are equal.
pub fn same_json(one: &str, other: &str) -> bool {
    one == other || canonical(one) == canonical(other)
}

fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => same_number(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let found = |(name, value): (&String, &Value)| other.get(name).is_some_and(|it| same(value, it));
            one.len() == other.len() && one.iter().all(found)
        }
        _ => one == other,
    }
}

/// An integer and a float are compared as the decimal numbers that their texts are. A large float
/// stands for an integer with more digits than its text has, and databases see the text.
fn same_number(one: &Number, other: &Number) -> bool {
    match (number::integer(one).is_some(), number::integer(other).is_some()) {
        (true, false) | (false, true) => {
            canonical_number(&one.to_string()) == canonical_number(&other.to_string())
        }
        _ => number::compare(one, other).is_eq(),
    }
}

/// A text in one spelling: fields sorted, no white space, numbers as sign, digits and exponent.
fn canonical(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    write_canonical(text.trim(), &mut out);
    out
}

fn write_canonical(text: &str, out: &mut String) {
    match text.as_bytes().first() {
        Some(b'{') => match serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(text) {
            Ok(fields) => {
                out.push('{');
                for (name, value) in fields {
                    out.push_str(&Value::from(name).to_string());
                    out.push(':');
                    write_canonical(value.get(), out);
                    out.push(',');
                }
                out.push('}');
            }
            Err(_) => out.push_str(text),
        },
        Some(b'[') => match serde_json::from_str::<Vec<Box<RawValue>>>(text) {
            Ok(items) => {
                out.push('[');
                for item in items {
                    write_canonical(item.get(), out);
                    out.push(',');
                }
                out.push(']');
            }
            Err(_) => out.push_str(text),
        },
        Some(b'-' | b'0'..=b'9') => out.push_str(&canonical_number(text)),
        // Escapes have many spellings; a parsed text has one.
        Some(b'"') => match serde_json::from_str::<String>(text) {
            Ok(content) => out.push_str(&Value::from(content).to_string()),
            Err(_) => out.push_str(text),
        },
        _ => out.push_str(text),
    }
}

/// A number as its significant digits and the exponent of the last of them: `-1.50e3` as `-15e2`.
fn canonical_number(text: &str) -> String {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return "0".to_owned(); // negative zero is zero
    }
    let exponent: i64 = exponent.trim_start_matches('+').parse().unwrap_or(0);
    let exponent = exponent - fraction.len() as i64 + (digits.len() - significant.len()) as i64;
    format!("{sign}{significant}e{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_the_same_json_are_the_same() {
        for (one, other) in [
            ("1", "1.0"),
            ("[1, {\"a\": 2.50}]", "[1.0,{\"a\":2.5}]"),
            ("1e2", "100"),
            ("{\"a\": 1, \"b\": 2}", "{\"b\": 2, \"a\": 1}"),
            ("123456789012345678901234567890", "1.2345678901234567890123456789e29"),
            ("-0.0", "0"),
            ("\"\\u0041\"", "\"A\""),
            ("[123456789012345678901234567890, 1]", "[123456789012345678901234567890.0, 1.0]"),
        ] {
            let read = |text: &str| SharedValue::from_json(text).expect("JSON");
            assert!(same_value(&read(one), &read(other)), "{one} and {other}");
            assert!(same_json(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn what_differs_is_told_apart() {
        for (one, other) in [
            ("1", "\"1\""),
            ("[1,2]", "[2,1]"),
            ("[1]", "[1,1]"),
            ("{\"a\": null}", "{}"),
            ("null", "false"),
            ("123456789012345678901234567890", "123456789012345678901234567891"),
            ("9007199254740993", "9007199254740992.0"),
            ("-1", "1"),
        ] {
            let read = |text: &str| SharedValue::from_json(text).expect("JSON");
            assert!(!same_value(&read(one), &read(other)), "{one} and {other}");
            assert!(!same_json(one, other), "{one} and {other}");
        }
    }
}
