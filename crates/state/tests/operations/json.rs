//! A model of operations that knows only plain JSON, and random values for it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;
use serde_json::value::RawValue;
use sessile_state::{Operation, SharedValue};

/// JSON with exact integers and with floats that are compared bit by bit.
#[derive(Debug, Clone)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

impl Json {
    pub(crate) fn parse(text: &str) -> Self {
        let raw: &RawValue = serde_json::from_str(text).expect("JSON");
        let text = raw.get().trim();
        match text.as_bytes()[0] {
            b'n' => Self::Null,
            b't' | b'f' => Self::Bool(text == "true"),
            b'"' => Self::Text(serde_json::from_str(text).expect("JSON")),
            b'[' => {
                let items: Vec<&RawValue> = serde_json::from_str(text).expect("JSON");
                Self::List(items.into_iter().map(|item| Self::parse(item.get())).collect())
            }
            b'{' => {
                let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).expect("JSON");
                Self::Object(
                    fields.into_iter().map(|(name, field)| (name, Self::parse(field.get()))).collect(),
                )
            }
            _ if text.contains(['.', 'e', 'E']) => Self::Float(text.parse().expect("a number")),
            _ => Self::Integer(text.parse().expect("a number")),
        }
    }

    /// Its text; floats as serde_json writes them.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => json!(value).to_string(),
            Self::Text(value) => json!(value).to_string(),
            Self::List(items) => {
                format!("[{}]", items.iter().map(Self::text).collect::<Vec<_>>().join(","))
            }
            Self::Object(fields) => {
                let field = |(name, value): (&String, &Self)| format!("{}:{}", json!(name), value.text());
                format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
            }
        }
    }

    pub(crate) fn shared(&self) -> SharedValue {
        SharedValue::from_json(&self.text()).expect("JSON")
    }

    /// Equality where 1 is 1.0. The integers that meet floats here are exact as floats.
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => one == other,
            (Self::Float(one), Self::Float(other)) => one == other,
            (Self::Integer(integer), Self::Float(float)) | (Self::Float(float), Self::Integer(integer)) => {
                float.fract() == 0.0 && *float as i128 == *integer
            }
            (Self::List(one), Self::List(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.same(other))
            }
            (Self::Object(one), Self::Object(other)) => {
                one.len() == other.len()
                    && one.iter().zip(other).all(|((a, one), (b, other))| a == b && one.same(other))
            }
            (one, other) => one.text() == other.text(),
        }
    }
}

/// Bit by bit.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Add { by: Json, min: Option<Json>, max: Option<Json> },
    Append(Vec<Json>),
    Union(Vec<Json>),
    Merge(Vec<(String, Json)>),
}

impl Op {
    pub(crate) fn operation(&self) -> Operation {
        let number = |value: &Json| serde_json::from_str::<serde_json::Number>(&value.text()).expect("JSON");
        match self {
            Self::Add { by, min, max } => {
                let mut add = Operation::add(number(by));
                if let Some(min) = min {
                    add = add.at_least(number(min));
                }
                if let Some(max) = max {
                    add = add.at_most(number(max));
                }
                add
            }
            Self::Append(items) => Operation::append(items.iter().map(Json::shared)),
            Self::Union(items) => Operation::union(items.iter().map(Json::shared)),
            Self::Merge(fields) => {
                Operation::union_fields(fields.iter().map(|(name, value)| (name, value.shared())))
            }
        }
    }

    /// What it makes of a value; `None` if it cannot be applied.
    pub(crate) fn apply(&self, held: Option<&Json>) -> Option<Json> {
        match (self, held) {
            (Self::Add { by, min, max }, held) => {
                let held = held.cloned().unwrap_or(Json::Integer(0));
                let sum = match (held, by) {
                    (Json::Integer(one), Json::Integer(other)) => {
                        let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
                        let sum = one + other;
                        Json::Integer(Some(sum).filter(|sum| range.contains(&one) && range.contains(sum))?)
                    }
                    (one, other) => {
                        Json::Float(Some(as_float(&one)? + as_float(other)?).filter(|sum| sum.is_finite())?)
                    }
                };
                let within = min.as_ref().is_none_or(|min| !less(&sum, min))
                    && max.as_ref().is_none_or(|max| !less(max, &sum));
                within.then_some(sum)
            }
            (Self::Append(items), None) => Some(Json::List(items.clone())),
            (Self::Append(items), Some(Json::List(held))) => {
                Some(Json::List(held.iter().chain(items).cloned().collect()))
            }
            (Self::Union(items), None) => Self::Union(items.clone()).apply(Some(&Json::List(Vec::new()))),
            (Self::Union(items), Some(Json::List(held))) => {
                let mut list = held.clone();
                for item in items {
                    if !list.iter().any(|held| held.same(item)) {
                        list.push(item.clone());
                    }
                }
                Some(Json::List(list))
            }
            (Self::Merge(fields), None) => Some(Json::Object(fields.iter().cloned().collect())),
            (Self::Merge(fields), Some(Json::Object(held))) => {
                let mut object = held.clone();
                object.extend(fields.iter().cloned());
                Some(Json::Object(object))
            }
            _ => None,
        }
    }
}

/// A number as a float; integers beyond 64 bits are not added to.
fn as_float(value: &Json) -> Option<f64> {
    match value {
        Json::Integer(value) if i64::try_from(*value).is_ok() || u64::try_from(*value).is_ok() => {
            Some(*value as f64)
        }
        Json::Float(value) => Some(*value),
        _ => None,
    }
}

/// Whether a number is less than another one. Floats here are either fractions or exact as
/// integers.
fn less(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Integer(one), Json::Integer(other)) => one < other,
        (Json::Float(one), Json::Float(other)) => one < other,
        (Json::Integer(one), Json::Float(other)) if other.abs() < 1e30 => *one < other.ceil() as i128,
        (Json::Float(one), Json::Integer(other)) if one.abs() < 1e30 => (one.floor() as i128) < *other,
        (_, Json::Float(other)) => *other > 0.0,
        (Json::Float(one), _) => *one < 0.0,
        _ => panic!("bounds are numbers"),
    }
}

fn integer() -> impl Strategy<Value = Json> {
    prop_oneof![
        8 => (-20_i128..20).prop_map(Json::Integer),
        1 => prop::sample::select(vec![
            i128::from(i64::MIN),
            i128::from(i64::MIN) - 1,
            i128::from(i64::MAX),
            i128::from(i64::MAX) + 1,
            i128::from(u64::MAX),
            i128::from(u64::MAX) + 1,
            9_007_199_254_740_993,
            12_345_678_901_234_567_890_123_456_789,
        ])
        .prop_map(Json::Integer),
    ]
}

fn float() -> impl Strategy<Value = Json> {
    prop_oneof![
        4 => (-40_i32..40).prop_map(|n| Json::Float(f64::from(n) / 8.0)),
        2 => prop::sample::select(vec![0.1, 0.2, 0.3, 1.0, 1e15, 1e16, 1e17, 1e22, 1e300, -1e300, 5e-324, f64::MAX])
            .prop_map(Json::Float),
        1 => any::<f64>().prop_filter("finite", |n| n.is_finite() && *n != 0.0).prop_map(Json::Float),
    ]
}

/// An addend or a bound.
fn number() -> impl Strategy<Value = Json> {
    let within = |value: &Json| !matches!(value, Json::Integer(n) if i64::try_from(*n).is_err() && u64::try_from(*n).is_err());
    prop_oneof![3 => integer().prop_filter("of 64 bits", within), 1 => float()]
}

pub(crate) fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        1 => Just(Json::Null),
        1 => any::<bool>().prop_map(Json::Bool),
        4 => integer(),
        2 => float(),
        2 => "[a-c\"\\\\é]{0,3}".prop_map(Json::Text),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::List),
            prop::collection::btree_map("[a-c]", inner, 0..3).prop_map(Json::Object),
        ]
    })
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let items = || prop::collection::vec(any_json(), 0..4);
    prop_oneof![
        4 => number().prop_map(|by| Op::Add { by, min: None, max: None }),
        2 => (number(), prop::option::of(number()), prop::option::of(number()))
            .prop_map(|(by, min, max)| Op::Add { by, min, max }),
        3 => items().prop_map(Op::Append),
        3 => items().prop_map(Op::Union),
        3 => prop::collection::btree_map("[a-c]", any_json(), 0..3)
            .prop_map(|fields| Op::Merge(fields.into_iter().collect())),
    ]
}
