//! The strict parser agrees with `serde_json`, but for what it refuses on purpose.

use proptest::prelude::*;
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::parse::{self, Node, parse};

/// Small, so that some documents are nested deeper.
const DEPTH: usize = 2;

/// White space as JSON allows it.
fn space() -> impl Strategy<Value = String> + Clone {
    "[ \t\n\r]{0,2}"
}

/// A string with all kinds of escapes, halves of surrogate pairs included.
fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-c ]{0,9}",
        1 => "\\PC{0,3}",
        1 => "\\\\[\"\\\\/bfnrt]",
        1 => "\\\\u00[0-7][0-9a-fA-F]",
        1 => "\\\\u[0-9a-fA-F]{4}",
        1 => Just("\\ud83d\\ude00".to_owned()),
    ];
    // A quote or a backslash of `\PC` would be an escape of its own.
    let piece = piece.prop_map(|piece| match piece.starts_with('\\') {
        true => piece,
        false => piece.replace(['"', '\\'], ""),
    });
    prop::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "-?(0|[1-9][0-9]{0,3})",
        1 => "-?[1-9][0-9]{15,30}",
        2 => "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
        1 => "-?0*[0-9]{0,2}\\.?[0-9]{0,2}e?",
    ]
}

/// A document, nearly always well-formed.
fn document() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec!["null", "true", "false"]).prop_map(str::to_owned);
    // Many keys of one letter, so that some are given twice.
    let flat = prop::collection::vec("\"[a-z]\":1", 0..14).prop_map(|fields| object(&fields));
    let leaf = prop_oneof![2 => word, 4 => number(), 4 => string(), 1 => flat];
    let nested = leaf.prop_recursive(4, 16, 4, |inner| {
        let item = (space(), inner, space()).prop_map(|texts| texts.0 + &texts.1 + &texts.2);
        let field = (space(), string(), space(), item.clone())
            .prop_map(|(before, key, after, value)| format!("{before}{key}{after}:{value}"));
        prop_oneof![
            prop::collection::vec(item, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(field, 0..4).prop_map(|fields| object(&fields)),
        ]
    });
    (space(), nested, space()).prop_map(|texts| texts.0 + &texts.1 + &texts.2)
}

fn object(fields: &[String]) -> String {
    format!("{{{}}}", fields.join(","))
}

/// A document in which one character was replaced, removed or inserted.
fn damaged() -> impl Strategy<Value = String> {
    let characters =
        vec!["", "\"", "\\", "{", "}", "[", "]", ",", ":", "0", "-", ".", "e", "n", "\u{1}", "é", " "];
    (document(), any::<prop::sample::Index>(), 0..2_usize, prop::sample::select(characters)).prop_map(
        |(text, at, removed, inserted)| {
            let letters: Vec<char> = text.chars().collect();
            let at = at.index(letters.len() + 1);
            let after = (at + removed).min(letters.len());
            letters[..at]
                .iter()
                .copied()
                .chain(inserted.chars())
                .chain(letters[after..].iter().copied())
                .collect()
        },
    )
}

/// The fields of an object, repeated ones included.
struct Pairs(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;

        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(PairsVisitor)
    }
}

/// How deep a document is nested, and whether an object of it has a key twice, as `serde_json` sees
/// it.
fn depth_and_repetition(text: &str) -> (usize, bool) {
    let items: Vec<Box<RawValue>> = match text.trim_start().as_bytes().first() {
        Some(b'[') => serde_json::from_str(text).expect("a list"),
        Some(b'{') => {
            let Pairs(mut pairs) = serde_json::from_str(text).expect("an object");
            pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
            if pairs.windows(2).any(|two| two[0].0 == two[1].0) {
                return (0, true);
            }
            pairs.into_iter().map(|(_, value)| value).collect()
        }
        _ => return (0, false),
    };
    items
        .iter()
        .map(|item| depth_and_repetition(item.get()))
        .fold((1, false), |(depth, repeats), item| (depth.max(item.0 + 1), repeats || item.1))
}

/// A node as a value of `serde_json`; a number is its text.
fn value_of(node: &Node<'_>) -> Value {
    match &node.value {
        parse::Value::Null => Value::Null,
        parse::Value::Flag(flag) => Value::from(*flag),
        parse::Value::Number => serde_json::from_str(node.raw).expect("the text of a number"),
        parse::Value::Text(text) => Value::from(&**text),
        parse::Value::List(items) => items.iter().map(value_of).collect(),
        parse::Value::Object(entries) => {
            entries.iter().map(|(key, node)| (key.clone().into_owned(), value_of(node))).collect()
        }
    }
}

fn check_agreement(text: &str) -> Result<(), TestCaseError> {
    let node = parse(text, DEPTH);
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        prop_assert!(node.is_err(), "serde_json refuses what the parser reads as {node:?}");
        return Ok(());
    };
    let (depth, repeats) = depth_and_repetition(text);
    match node {
        Ok(node) => {
            prop_assert!(depth <= DEPTH && !repeats, "{depth} levels, a key given twice: {repeats}");
            prop_assert_eq!(value_of(&node), value);
            prop_assert_eq!(serde_json::from_str::<Value>(node.raw).ok(), Some(value_of(&node)));
        }
        Err(error) => prop_assert!(depth > DEPTH || repeats, "refused: {error:?}"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_document_is_read_as_serde_json_reads_it(text in document()) {
        check_agreement(&text)?;
    }

    #[test]
    fn a_damaged_document_is_refused_when_serde_json_refuses_it(text in damaged()) {
        check_agreement(&text)?;
    }

    #[test]
    fn any_text_is_judged_as_serde_json_judges_it(text in "[\\[\\]{}:,\"\\\\ 0-2.eEtrufalsn+-]{0,12}") {
        check_agreement(&text)?;
    }
}
