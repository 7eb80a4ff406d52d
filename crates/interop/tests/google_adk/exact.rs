//! JSON texts compared as they are: keys in any order, but every digit of every number.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

/// The JSON of a value, one line for each scalar, with the path to it.
pub(crate) fn lines(value: &impl Serialize) -> Vec<String> {
    let text = serde_json::to_string(value).expect("it has a JSON form");
    let mut lines = Vec::new();
    add(&mut lines, "", &text);
    lines
}

fn add(lines: &mut Vec<String>, path: &str, text: &str) {
    let text = text.trim();
    match text.as_bytes()[0] {
        b'{' if text[1..].trim() != "}" => {
            let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).expect("an object");
            fields.iter().for_each(|(name, value)| add(lines, &format!("{path}/{name}"), value.get()));
        }
        b'[' if text[1..].trim() != "]" => {
            let items: Vec<Box<RawValue>> = serde_json::from_str(text).expect("an array");
            items.iter().enumerate().for_each(|(n, item)| add(lines, &format!("{path}/{n}"), item.get()));
        }
        _ => lines.push(format!("{path}: {}", scalar(text))),
    }
}

/// A scalar in one spelling: texts without needless escapes, floats with the fewest digits that
/// mean the same float, integers as they are.
fn scalar(text: &str) -> String {
    let is_float = !text.starts_with('"') && text.contains(['.', 'e', 'E']) && text.parse::<f64>().is_ok();
    if is_float {
        return format!("{:?}", text.parse::<f64>().expect("a float"));
    }
    match serde_json::from_str::<String>(text) {
        Ok(string) => format!("{string:?}"),
        Err(_) => text.to_owned(),
    }
}

#[test]
fn what_differs_in_a_digit_differs() {
    let lines = |text: &str| super::exact::lines(&RawValue::from_string(text.to_owned()).unwrap());
    assert_eq!(lines(r#"{"b": [1.0, {}], "a": "\u00e9"}"#), lines(r#"{"a":"é","b":[1.00,{}]}"#));
    assert_eq!(lines("1e+16"), lines("1e16"));
    for (one, other) in [
        ("1", "1.0"),
        ("123456789012345678901234567890", "123456789012345678901234567891"),
        ("null", r#""null""#),
        (r#"{"a": null}"#, "{}"),
        ("[]", "{}"),
    ] {
        assert_ne!(lines(one), lines(other));
    }
}
